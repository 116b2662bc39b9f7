"""A causal language model by name: embedded, a folder, `hf:NAME` from the hub, or a GGUF file.

torch is imported when a model is loaded, not before; transformers too, but for embedded models only
when its own network is asked for. Nothing is ever fetched unless the name begins with `hf:`.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field, replace
from importlib import resources
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.masked.forward import guard_half, is_unmodified
from evenhand.masked.layers import LayerMaps, read_maps
from evenhand.masked.memory import ModelSource, borrow, is_path, name_in_memory, split
from evenhand.masked.model import (
    NetworkField,
    Networks,
    check_vocabulary,
    choose_device,
    fingerprint_of,
    mapped_networks,
    name_of,
    quiet,
    refusing,
)
from evenhand.masked.sources import bounded, check_model_folder, fetch

if TYPE_CHECKING:
    import torch

    from evenhand.causal.decoder import Decoder

__all__ = ["EMBEDDED", "CausalLM", "Model", "load"]

EMBEDDED = ("tiny-causal",)
"""Names of the models that come with the package."""
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
class Model:
    """A loaded causal language model."""

    name: str
    network: Any = field(repr=False)
    """The network of transformers. An embedded model loads it on first use."""
    tokenizer: Any = field(repr=False)
    maps: LayerMaps | None = field(default=None, repr=False)
    """Affine maps of the states after some layers; see `with_maps`."""
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
        from evenhand.causal.decoder import read_decoder

        if not (
            isinstance(self.core, ReadNetwork)
            or self.maps is not None
            or all(is_unmodified(part) for part in self.core.modules())
        ):
            return None
        weights = {name: weight.detach() for name, weight in self.core.state_dict().items()}
        decoder = read_decoder(self.__dict__["_networks"].settings(), weights)
        if decoder is None or self.maps is None:
            return decoder
        return replace(decoder, maps=self.maps.functions)

    @property
    def core(self) -> Any:
        """The network of transformers, or the one that was read without it."""
        return self.__dict__["_networks"].core

    @property
    def device(self) -> torch.device:
        device: torch.device = self.core.device
        return device

    @property
    def layers(self) -> int:
        """The number of layers."""
        settings = self.__dict__["_networks"].settings()
        return int(settings.get("num_hidden_layers") or settings["n_layer"])

    @property
    def dim(self) -> int:
        """The width of a state."""
        settings = self.__dict__["_networks"].settings()
        return int(settings.get("hidden_size") or settings["n_embd"])

    def with_maps(self, maps: LayerMaps, *, copied: bool = True) -> Model:
        """The same model with affine maps of the states after some of its layers.

        The network of transformers, if it is loaded, is copied: this model stays as it is.
        """
        networks: Any = mapped_networks(self, maps, copied)
        return Model(self.name, networks, self.tokenizer, maps)

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
    def fingerprint(self) -> str:
        """A hash of everything the results depend on, computed once per state of the weights."""
        state = self._state
        known = self.__dict__.get("_fingerprint")
        if known is None or known[0] != state:
            known = self.__dict__["_fingerprint"] = (state, self._hash())
        return str(known[1])

    def _hash(self) -> str:
        settings = self.__dict__["_networks"].settings()
        for irrelevant in ("_name_or_path", "transformers_version"):
            settings.pop(irrelevant, None)
        weights = dict(self.core.state_dict())
        if settings.get("tie_word_embeddings"):
            weights.pop("lm_head.weight", None)
        digest = fingerprint_of(sorted(weights.items()), settings, self.tokenizer)
        return digest if self.maps is None else f"{self.maps.fingerprint} {digest}"

    def logits(self, row: NDArray[Any]) -> NDArray[np.float32]:
        """The logits (tokens, vocabulary) of the token after each token of a row."""
        import torch

        if isinstance(self.core, ReadNetwork) and self.decoder is not None:
            from evenhand.causal.scoring import row_logits

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


Model.network = NetworkField()


@dataclass(frozen=True, eq=False)
class ReadNetwork:
    """The configuration and the weights of a folder, read without transformers."""

    settings: dict[str, Any]
    weights: dict[str, torch.Tensor]

    @property
    def device(self) -> torch.device:
        return next(iter(self.weights.values())).device

    def state_dict(self) -> dict[str, torch.Tensor]:
        return self.weights


def load(
    source: ModelSource,
    *,
    device: str = "auto",
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
) -> Model:
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
    if isinstance(source, Model):
        return source
    if not is_path(source):
        return _from_memory(source)
    name = os.fspath(source)
    if dtype not in ("float32", "bfloat16", "float16"):
        raise UnknownNameError("dtype", dtype, ["float32", "bfloat16", "float16"])
    torch_device = choose_device(device)
    if name in EMBEDDED:
        with resources.as_file(resources.files("evenhand.assets") / name) as folder:
            return read_folder(name, folder, torch_device, dtype)
    if name.startswith("hf:"):
        return _loaded(name, name, fetch(name[3:]), torch_device, dtype)
    path = Path(name)
    if path.is_file():
        if path.suffix.lower() != ".gguf":
            raise FileError(path, "expected a folder with config.json and weights, or a .gguf file")
        with refusing(name, "causal"):
            return _loaded_gguf(path, torch_device, dtype)
    if not path.is_dir():
        raise InputError(
            f"model '{name}': no such folder or file; embedded: {', '.join(EMBEDDED)}; "
            "a model of the hub is named hf:NAME"
        )
    return _loaded(name_of(path), str(path), path, torch_device, dtype)


def read_folder(name: str, folder: Path, device: torch.device, dtype: str) -> Model:
    """Load a folder of a known family without transformers, as embedded models are."""
    import torch
    from safetensors.torch import load_file

    from evenhand.masked.tokenizer import read_tokenizer

    place = str(folder)
    check_model_folder(folder, place, "causal")

    def complete() -> Any:
        return _loaded(name, place, folder, device, dtype).network

    with refusing(place, "causal"):
        settings = json.loads((folder / "config.json").read_bytes())
        weights = {
            key: weight.to(device, getattr(torch, dtype))
            for key, weight in load_file(folder / "model.safetensors").items()
        }
        tokenizer = read_tokenizer(folder, settings["model_type"])
        networks: Any = Networks(ReadNetwork(settings, weights), complete)
        model = Model(name, networks, tokenizer)
        if tokenizer is None or model.decoder is None:
            raise FileError(place, "expected a decoder of a known family with its tokenizer")
        return _checked_run(place, model)


def _from_memory(source: Any) -> Model:
    network, own = split(source)
    name = name_in_memory(network)
    if network.get_output_embeddings() is None:
        raise InputError(
            f"model '{name}': expected a causal language model with its head, got "
            f"{type(network).__name__}"
        )
    network, tokenizer = borrow(network, own)
    if network.device.type == "cpu" and network.dtype.itemsize < 4:
        guard_half()
    with refusing(name, "causal"):
        check_vocabulary(name, tokenizer, network)
        return _checked_run(name, Model(name, network, tokenizer))


def _loaded(name: str, place: str, folder: Path, device: torch.device, dtype: str) -> Model:
    import torch

    check_model_folder(folder, place, "causal")
    with refusing(place, "causal"):
        from transformers import AutoModelForCausalLM, AutoTokenizer

        options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        with quiet(), bounded(folder, place):
            tokenizer = AutoTokenizer.from_pretrained(str(folder), use_fast=True, **options)
            loaded: Any = AutoModelForCausalLM.from_pretrained(
                str(folder),
                dtype=getattr(torch, dtype),
                output_loading_info=True,
                ignore_mismatched_sizes=True,
                **options,
            )
        network, info = loaded
        for key, stored, expected in sorted(info["mismatched_keys"]):
            raise FileError(
                place, f"{key}: expected the shape {tuple(expected)}, got {tuple(stored)}"
            )
        if info["missing_keys"]:
            first = min(info["missing_keys"])
            raise FileError(
                place, f"expected the weights of a causal language model, got none for {first}"
            )
        model = _checked(place, Model(name, network.eval().to(device), tokenizer))
        maps = read_maps(folder)
        return model if maps is None else _checked_run(place, model.with_maps(maps, copied=False))


def _loaded_gguf(path: Path, device: torch.device, dtype: str) -> Model:
    """A GGUF file, its weights as numbers of the data type."""
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
        tokenizer = AutoTokenizer.from_pretrained(str(path.parent), **options)
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
    return _checked(str(path), Model(path.stem, fresh.eval(), tokenizer))


def _checked(place: str, model: Model) -> Model:
    """Check that the tokenizer belongs to the model, which predicts with finite numbers."""
    from transformers import PreTrainedTokenizerFast

    if not isinstance(model.tokenizer, PreTrainedTokenizerFast):
        kind = type(model.tokenizer).__name__
        raise FileError(place, f"expected a fast tokenizer, got {kind}")
    size = int(model.network.get_input_embeddings().weight.shape[0])
    largest = max(model.tokenizer.get_vocab().values(), default=0)
    if largest >= size:
        raise FileError(
            place,
            f"expected a tokenizer of the model's {size:,} tokens, got one of {largest + 1:,}: "
            "they do not belong together",
        )
    return _checked_run(place, model)


def _checked_run(place: str, model: Model) -> Model:
    [coded] = model.encode(["She reads."])
    if not coded.ids or not np.isfinite(model.logits(np.array(coded.ids))).all():
        raise FileError(place, "expected finite predictions of a text, got none")
    return model
