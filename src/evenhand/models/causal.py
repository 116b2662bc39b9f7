"""A causal language model by name: embedded, a folder, `hf:NAME` from the hub, or a GGUF file.

torch is imported when a model is loaded, not before; transformers too, but for embedded models only
when its own network is asked for. Nothing is ever fetched unless the name begins with `hf:`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import FileError, InputError
from evenhand.models.base import LoadedModel, Networks, Tensors, check_vocabulary, load_networks
from evenhand.models.forward import is_unmodified
from evenhand.models.gguf_header import read_header
from evenhand.models.memory import ModelSource, borrow, is_path, name_in_memory, split
from evenhand.models.sources import (
    EMBEDDED,
    DType,
    check_dtype,
    check_model_folder,
    choose_device,
    locate,
    quiet,
    refusing,
)

if TYPE_CHECKING:
    import torch

    from evenhand.models.decoder import Decoder

LONGEST = 1 << 20
BETWEEN = "<|endoftext|>"


class CausalLM(Protocol):
    """A model that predicts the next token."""

    @property
    def name(self) -> str: ...
    @property
    def tokenizer(self) -> Any: ...
    @property
    def decoder(self) -> Decoder | None:
        """Its network as `scoring` computes it; None if only `logits` can."""

    @property
    def longest(self) -> int:
        """The maximum number of tokens that it reads."""

    @property
    def begin(self) -> int | None:
        """The token before a text, if there is one."""

    def encode(self, texts: Sequence[str]) -> list[Any]:
        """The encodings of texts, without special tokens."""

    def logits(self, row: NDArray[Any]) -> NDArray[np.float32]:
        """The logits (tokens, vocabulary) of the token after each token of a row."""


@dataclass(frozen=True, eq=False)
class CausalModel(LoadedModel):
    """A loaded causal language model."""

    subject_kind: ClassVar[str] = "causal"

    @property
    def decoder(self) -> Decoder | None:
        """The network as `scoring` computes it, from the current weights; None for a family that is
        not known there.
        """
        state = self._state
        known = self.__dict__.get("_decoder")
        if known is None or known[0] != state:
            known = self.__dict__["_decoder"] = (state, self._read_decoder())
        decoder: Decoder | None = known[1]
        return decoder

    @property
    def _state(self) -> tuple[tuple[int, int], ...]:
        """What changes when the weights are trained."""
        if isinstance(self.core, ReadNetwork):
            return ()
        return tuple((weight.data_ptr(), weight._version) for weight in self.core.parameters())

    def _read_decoder(self) -> Decoder | None:
        from evenhand.models.decoder import read_decoder

        if not (
            isinstance(self.core, ReadNetwork)
            or self.maps is not None
            or all(is_unmodified(part) for part in self.core.modules())
        ):
            return None
        weights = {name: weight.detach() for name, weight in self.core.state_dict().items()}
        decoder = read_decoder(self.settings, weights)
        if decoder is None or self.maps is None:
            return decoder
        return replace(decoder, maps=self.maps.functions)

    @property
    def longest(self) -> int:
        if self.decoder is not None:
            return self.decoder.longest
        return int(getattr(self.network.config, "max_position_embeddings", LONGEST))

    @property
    def begin(self) -> int | None:
        """The token before a text: the one between the documents of training, which chat models
        have besides their own; else that which begins a text, or ends one.
        """
        tokenizer = self.tokenizer
        between = tokenizer.get_vocab().get(BETWEEN)
        choices = (between, tokenizer.bos_token_id, tokenizer.eos_token_id)
        return next((token for token in choices if token is not None), None)

    @property
    def before(self) -> tuple[int, ...]:
        return () if self.begin is None else (self.begin,)

    def tensors(self) -> Tensors:
        weights = dict(self.core.state_dict())
        if self.settings.get("tie_word_embeddings"):
            weights.pop("lm_head.weight", None)
        return sorted(weights.items())

    def logits(self, row: NDArray[Any]) -> NDArray[np.float32]:
        """The logits (tokens, vocabulary) of the token after each token of a row."""
        import torch

        if isinstance(self.core, ReadNetwork) and self.decoder is not None:
            from evenhand.models.causal_scoring import row_logits

            return row_logits(self.decoder, row)
        with torch.inference_mode():
            ids = torch.tensor([list(map(int, row))], device=self.device)
            return np.asarray(self.network(input_ids=ids).logits[0].float().cpu().numpy())

    def encode(self, texts: Sequence[str]) -> list[Any]:
        """The encodings of texts, without special tokens."""
        backend = self.tokenizer.backend_tokenizer
        backend.no_truncation()
        backend.no_padding()
        encoded: list[Any] = backend.encode_batch(list(texts), add_special_tokens=False)
        return encoded


@dataclass(frozen=True, eq=False)
class ReadNetwork:
    """The configuration and the weights of a folder, read without transformers."""

    settings: dict[str, Any]
    weights: dict[str, torch.Tensor]

    @property
    def config(self) -> SimpleNamespace:
        """The depth and the width, by the names that transformers gives them."""
        layers = self.settings.get("num_hidden_layers") or self.settings["n_layer"]
        width = self.settings.get("hidden_size") or self.settings["n_embd"]
        return SimpleNamespace(num_hidden_layers=layers, hidden_size=width)

    @property
    def device(self) -> torch.device:
        return next(iter(self.weights.values())).device

    @property
    def dtype(self) -> torch.dtype:
        return next(iter(self.weights.values())).dtype

    def parameters(self) -> Iterable[torch.Tensor]:
        return self.weights.values()

    def state_dict(self) -> dict[str, torch.Tensor]:
        return self.weights


def load(
    source: ModelSource,
    *,
    device: str = "auto",
    dtype: DType = "float32",
) -> CausalModel:
    """Load a causal language model; raises an error if a part of it is missing.

    Parameters
    ----------
    source : str, path, (network, tokenizer) or pipeline
        The name of an embedded model, a folder in the transformers layout, `hf:NAME` for a model
        of the hub (the only case in which something may be downloaded), a GGUF file (needs the
        extra `gguf`), or a model in memory: the pair (network, tokenizer) of transformers, or its
        pipeline. A model in memory is not changed; it stays on its device and in its data type.
    device : str
        `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:1` …
    dtype : {"float32", "bfloat16", "float16"}
        The data type of the computation.

    """
    if isinstance(source, CausalModel):
        return source
    if not is_path(source):
        return _from_memory(source)
    check_dtype(dtype)
    name, path, place = locate(source, "causal")
    torch_device = choose_device(device)
    if name in EMBEDDED:
        return read_folder(name, path, torch_device, dtype)
    if path.is_dir():
        check_model_folder(path, place, "causal")
    with refusing(place, "causal"):
        if path.is_file():
            return _loaded_gguf(path, torch_device, dtype)
        model = CausalModel(name, *load_networks("causal", place, path, torch_device, dtype))
        return _checked_run(place, model.with_maps_of(path))


def read_folder(name: str, folder: Path, device: torch.device, dtype: str) -> CausalModel:
    """Load a folder of a known family without transformers, as embedded models are."""
    import torch
    from safetensors.torch import load_file

    from evenhand.models.tokenizer import read_tokenizer

    place = str(folder)
    check_model_folder(folder, place, "causal")
    with refusing(place, "causal"):
        settings = json.loads((folder / "config.json").read_bytes())
        weights = {
            key: weight.to(device, getattr(torch, dtype))
            for key, weight in load_file(folder / "model.safetensors").items()
        }
        own = ReadNetwork(settings, weights), read_tokenizer(folder, settings["model_type"])
        model = CausalModel(name, *load_networks("causal", place, folder, device, dtype, own))
        if model.tokenizer is None or model.decoder is None:
            raise FileError(place, "expected a decoder of a known family with its tokenizer")
        return _checked_run(place, model)


def _from_memory(source: object) -> CausalModel:
    network, own = split(source)
    name = name_in_memory(network)
    if network.get_output_embeddings() is None:
        raise InputError(
            f"model '{name}': expected a causal language model with its head, got "
            f"{type(network).__name__}"
        )
    network, tokenizer = borrow(network, own)
    with refusing(name, "causal"):
        check_vocabulary(name, tokenizer, network)
        return _checked_run(name, CausalModel(name, Networks(network), tokenizer))


def _loaded_gguf(path: Path, device: torch.device, dtype: str) -> CausalModel:
    """A GGUF file, its weights as numbers of the data type."""
    read_header(path)
    try:
        import gguf  # noqa: F401
    except ImportError:
        raise InputError(
            f"{path}: GGUF files need the package gguf: pip install 'evenhand[gguf]'"
        ) from None
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    from transformers.modeling_gguf_pytorch_utils import load_gguf_checkpoint

    options: dict[str, Any] = {"gguf_file": path.name, "local_files_only": True}
    with quiet(), redirect_stderr(StringIO()):  # its progress bar cannot be switched off
        config = AutoConfig.from_pretrained(str(path.parent), **options)
        tokenizer: Any = AutoTokenizer.from_pretrained(str(path.parent), **options)
        with torch.device("meta"):
            network: Any = AutoModelForCausalLM.from_config(config)  # type: ignore[no-untyped-call]
        content = load_gguf_checkpoint(  # type: ignore[no-untyped-call]
            str(path), return_tensors=True, model_to_load=network
        )
    weights = {
        name: weight.to(getattr(torch, dtype)) for name, weight in content["tensors"].items()
    }
    tied = {"lm_head.weight"} if config.tie_word_embeddings else set()
    lacking = {name for name, _ in network.named_parameters()} - weights.keys() - tied
    if lacking:
        raise FileError(
            path, f"expected the weights of a causal language model, got none for {min(lacking)}"
        )
    network.load_state_dict(weights, strict=False, assign=True)
    network.tie_weights()
    with torch.device(device):
        fresh = type(network)(config)  # for buffers, which a network without memory does not have
    fresh.to(getattr(torch, dtype))
    fresh.load_state_dict(network.state_dict(), strict=False)
    fresh.tie_weights()
    check_vocabulary(str(path), tokenizer, fresh)
    return _checked_run(str(path), CausalModel(path.stem, Networks(fresh.eval()), tokenizer))


def _checked_run(place: str, model: CausalModel) -> CausalModel:
    """Check that the model predicts with finite numbers."""
    [coded] = model.encode(["She reads."])
    if not coded.ids or not np.isfinite(model.logits(np.array(coded.ids))).all():
        raise FileError(place, "expected finite predictions of a text, got none")
    return model
