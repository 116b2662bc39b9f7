"""A masked language model by name: `mini` (embedded), a folder, or `hf:NAME` from the hub.

torch is imported when a model is loaded, not before; transformers only for families that
`network` does not read, and when its own network or tokenizer is asked for, as for training.
Nothing is ever fetched unless the name begins with `hf:`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import FileError, InputError
from evenhand.models.base import LoadedModel, Networks, Tensors, check_vocabulary, load_networks
from evenhand.models.forward import (
    Dense,
    ForwardPass,
    LayerStage,
    guard_half,
    int8_stages,
    layers_of,
    logits_of,
    map_stages,
    stages_of,
)
from evenhand.models.memory import ModelSource, borrow, is_path, name_in_memory, split
from evenhand.models.sources import (
    DType,
    check_dtype,
    check_model_folder,
    choose_device,
    locate,
    refusing,
)

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast

Pooling = Literal["mean", "cls"]


class MaskedLM(Protocol):
    """A model that can be scored: its tokenizer, and logits at given positions."""

    @property
    def name(self) -> str: ...
    @property
    def tokenizer(self) -> PreTrainedTokenizerFast: ...

    def logits(
        self, rows: Sequence[Sequence[int]], positions: Sequence[int]
    ) -> NDArray[np.float32]:
        """The logits (n, vocabulary) at one position per row of token ids, rows of one length."""


@dataclass(frozen=True, eq=False)
class MaskedModel(LoadedModel):
    """A loaded transformers masked language model."""

    int8: tuple[LayerStage, ...] | None = field(default=None, repr=False)
    """The 8-bit layers of a model loaded with `int8`."""
    subject_kind: ClassVar[str] = "masked"

    @property
    def longest(self) -> int:
        """The maximum number of tokens of an input, special ones included."""
        core = self.core
        positions = int(getattr(core.config, "max_position_embeddings", 1 << 20))
        embeddings: Any = getattr(core.base_model, "embeddings", None)
        table = getattr(embeddings, "position_embeddings", None)
        padding = getattr(table, "padding_idx", None)  # RoBERTa-like models count from there
        offset = 0 if padding is None else padding + 1
        return min(positions - offset, self.tokenizer.model_max_length)

    def tensors(self) -> Tensors:
        from evenhand.models.network import parameters_of

        return list(parameters_of(self.core))

    @property
    def fingerprint(self) -> str:
        digest = super().fingerprint
        return f"int8 {digest}" if self.int8 else digest

    def stages(self) -> Sequence[LayerStage] | None:
        """The layers ready to run, from the current weights, since these may be trained. None for
        a model of an unknown family, which is run unchanged.
        """
        stages: Sequence[LayerStage] | None = self.int8
        if stages is None:
            layers = layers_of(self.core)  # None where the network has the maps as hooks
            stages = None if layers is None else stages_of(layers, Dense)
        if stages is None or self.maps is None:
            return stages
        return map_stages(stages, self.maps.functions)

    def logits(
        self, rows: Sequence[Sequence[int]], positions: Sequence[int]
    ) -> NDArray[np.float32]:
        """The logits at one position per row; rows have one length, so there is no padding."""
        import torch

        if len({len(row) for row in rows}) > 1:
            raise InputError("logits: expected rows of one length, got several")
        with torch.inference_mode():
            ids, lengths = np.array(rows), np.array([len(row) for row in rows])
            hidden = ForwardPass(self.core, ids.reshape(-1), lengths, self.stages()).states_at(
                np.arange(len(rows)), np.array(positions)
            )
            return np.asarray(logits_of(self.core, hidden).float().cpu().numpy())

    def embed(
        self, texts: Iterable[str], *, pooling: Pooling = "mean", batch_size: int = 64
    ) -> NDArray[np.float32]:
        """Sentence embeddings (n, dim) from the last layer, in the order given.

        `mean` averages over the tokens of the text without special tokens; `cls` takes the first
        token. Texts longer than the model allows are truncated. There is no padding, and the batch
        does not change the numbers.

        >>> import evenhand as eh
        >>> eh.models.load("mini").embed(["she reads.", "he sings a song."]).shape
        (2, 256)
        """
        import torch

        from evenhand.models.encoding import TokenRows, pool

        rows = TokenRows(self, list(texts), pooling=pooling, limit=None)
        result = np.empty((len(rows), self.dim * len(rows.modes)), dtype=np.float32)
        ordered, stages = rows.by_length(np.arange(len(rows))), self.stages()
        for start in range(0, len(ordered), batch_size):
            chosen = ordered[start : start + batch_size]
            packed, ids = rows.pack(chosen, self.device), rows.select(chosen)
            with torch.inference_mode():
                by_length = ForwardPass(self.core, ids, rows.lengths[chosen], stages).all_states()
                states = torch.cat([each.flatten(0, 1) for each in by_length])
                result[chosen] = pool(states[packed.pooled], packed).cpu().numpy()
        return result


def load(
    source: ModelSource = "mini",
    *,
    device: str = "auto",
    dtype: DType = "float32",
    int8: bool = False,
    head: bool = True,
) -> MaskedModel:
    """Load a masked language model; raises an error if a part of it is missing.

    Parameters
    ----------
    source : str, path, (network, tokenizer) or pipeline
        `mini`, the path of a folder in the transformers layout, `hf:NAME` for a model of the hub
        (the only case in which something may be downloaded), or a model in memory: the pair
        (network, tokenizer) of transformers, or its pipeline. A model in memory is not changed; it
        stays on its device and in its data type.
    device : str
        `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:1` …
    dtype : {"float32", "bfloat16", "float16"}
        The data type of the computation.
    int8 : bool
        Whether linear maps are computed with 8-bit integers.
    head : bool
        Without it an encoder is sufficient, which can embed texts but not predict words.

    Examples
    --------
    >>> load("mini").name
    'mini'

    """
    if isinstance(source, MaskedModel):
        return source
    if not is_path(source):
        return _from_memory(source, int8, head)
    check_dtype(dtype)
    name, folder, place = locate(source, "masked")
    torch_device = choose_device(device)
    check_model_folder(folder, place)
    with refusing(place):
        own = _read_own(folder, torch_device, dtype) if head else None
        networks, tokenizer = load_networks(
            "masked", place, folder, torch_device, dtype, own, head=head
        )
        if tokenizer.mask_token_id is None:
            raise InputError(f"model '{name}': its tokenizer has no mask token")
        if torch_device.type == "cpu" and dtype != "float32":
            guard_half()
        stages = int8_stages(networks.core) if int8 else None
        model = MaskedModel(f"{name} (int8)" if int8 else name, networks, tokenizer, int8=stages)
        model = model.with_maps_of(folder)
        check_run(place, model)
        return model


def _from_memory(source: object, int8: bool, head: bool) -> MaskedModel:
    given, own = split(source)
    name = name_in_memory(given)
    if head and (given._forward_hooks or given._forward_pre_hooks):
        raise InputError(f"model '{name}': expected hooks inside of the network only")
    network, tokenizer = borrow(given, own)
    stages = int8_stages(network) if int8 else None
    shown = f"{name}, int8" if int8 else name
    model = MaskedModel(shown, Networks(network), tokenizer, int8=stages)
    if not head:
        return model
    if tokenizer.mask_token_id is None:
        raise InputError(f"model '{name}': its tokenizer has no mask token")
    with refusing(name):
        check_vocabulary(name, tokenizer, network)
        check_run(name, model)
    return model


def load_to_train(source: ModelSource, device: str = "auto") -> MaskedModel:
    """A model whose weights may be changed: those of a model in memory are copied."""
    model = load(source, device=device)
    return model if is_path(source) else replace(model, networks=model.networks.copy())


def _read_own(folder: Path, device: torch.device, dtype: str) -> tuple[Any, Any] | None:
    """The network and the tokenizer of a known family, read without transformers; else None."""
    import torch

    from evenhand.models.network import read_network
    from evenhand.models.tokenizer import read_tokenizer

    network = read_network(folder, getattr(torch, dtype))
    if network is None:
        return None
    tokenizer = read_tokenizer(folder, str(network.settings["model_type"]))
    if tokenizer is None or tokenizer.mask_token_id is None:
        return None
    largest = max(tokenizer.get_vocab().values(), default=0)
    fits = max(len(tokenizer), largest + 1) <= network.config.vocab_size
    return (network.to(device), tokenizer) if fits else None


def check_run(place: str, model: MaskedModel) -> None:
    """Check that the model reads a text and predicts with finite numbers."""
    longest = model.longest
    if longest < 3:
        raise FileError(place, f"expected a model for texts of 3 tokens or more, got {longest}")
    tokenizer = model.tokenizer
    row: list[int] = tokenizer(
        f"{tokenizer.mask_token} reads.", truncation=True, max_length=longest
    )["input_ids"]
    if not row or len(row) > longest:
        raise FileError(place, f"its tokenizer makes {len(row)} tokens of a text of three words")
    logits = model.logits([row], [0])
    if not np.isfinite(logits).all():
        raise FileError(place, "expected finite predictions, got nan or infinite ones")
    if logits.shape[1] <= (tokenizer.mask_token_id or 0):
        raise FileError(place, f"expected predictions for all tokens, got {logits.shape[1]:,}")
