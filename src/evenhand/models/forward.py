"""A forward pass of a masked language model that computes only what is needed.

Token rows of any length are processed together without padding: everything except attention works
on single tokens, and attention on rows of one length. The operations between two attentions are
done tile by tile, so that the states stay in the processor's cache. The last layer and the head are
computed at the requested positions only.

BERT, RoBERTa, ELECTRA and related families, DistilBERT and ALBERT compute the same under different
names: attention, a residual and a norm, then two linear layers, a residual and a norm. A layer that
differs from that (other parts, adapters, hooks) is not decomposed, and its model is run unchanged.

With eight-bit linear layers (`Int8`) a pass is faster and no longer exact. A weight has the scale
of its output channel, a token state the scale of its token, so that neither the batch nor an
unusual token changes another token's numbers. Embeddings, norms, attention, the last layer at the
requested positions and the head stay as they are.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError

if TYPE_CHECKING:
    import torch
    from torch import nn
    from transformers import PreTrainedModel

Ints = NDArray[np.integer[Any]]
Activation = Callable[["torch.Tensor"], "torch.Tensor"]

TILE = 512
"""Tokens processed together by a layer on the CPU."""
LEVELS = 255
"""Steps between the smallest and the largest value of an 8-bit state."""


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: attention (`query`, `key`, `value`, `out`), then `up`, the activation, `down`."""

    heads: int
    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    out: nn.Linear
    norm: nn.LayerNorm
    up: nn.Linear
    activation: Callable[[torch.Tensor], torch.Tensor]
    down: nn.Linear
    last_norm: Callable[[torch.Tensor], torch.Tensor]

    @property
    def linear(self) -> tuple[nn.Linear, ...]:
        return (self.query, self.key, self.value, self.out, self.up, self.down)


class LayerNames(NamedTuple):
    """The paths of the parts of a family's layers, which are the fields of `Layer`."""

    heads: str
    query: str
    key: str
    value: str
    out: str
    norm: str
    up: str
    activation: str
    down: str
    last_norm: str

    def read(self, module: nn.Module) -> Layer:
        """A layer with the parts of a module."""
        return Layer(*attrgetter(*self)(module))


BERT_LAYER = LayerNames(
    "attention.self.num_attention_heads",
    *("attention.self.query", "attention.self.key", "attention.self.value"),
    *("attention.output.dense", "attention.output.LayerNorm"),
    *("intermediate.dense", "intermediate.intermediate_act_fn"),
    *("output.dense", "output.LayerNorm"),
)
DISTILBERT_LAYER = LayerNames(
    "attention.n_heads",
    *("attention.q_lin", "attention.k_lin", "attention.v_lin", "attention.out_lin"),
    "sa_layer_norm",
    *("ffn.lin1", "ffn.activation", "ffn.lin2"),
    "output_layer_norm",
)
ALBERT_LAYER = LayerNames(
    "attention.num_attention_heads",
    *("attention.query", "attention.key", "attention.value", "attention.dense"),
    "attention.LayerNorm",
    *("ffn", "activation", "ffn_output"),
    "full_layer_layer_norm",
)
LAYERS = {
    **dict.fromkeys(("BertLayer", "CamembertLayer", "ElectraLayer"), BERT_LAYER),
    **dict.fromkeys(("RobertaLayer", "XLMRobertaLayer"), BERT_LAYER),
    "AlbertLayer": ALBERT_LAYER,
    "TransformerBlock": DISTILBERT_LAYER,
}
"""The parts of layers by the names of their classes in transformers."""


@runtime_checkable
class PlainNetwork(Protocol):
    """A network that names its parts itself, as `evenhand.models.network` reads it."""

    base_model: nn.Module

    def layers(self) -> list[Layer]:
        """The layers in the order in which they are run."""

    def embed(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """The input of the first layer (tokens, width), before any projection."""

    def positions(self, ids: Ints, lengths: Ints) -> Ints:
        """The numbers of the positions of packed rows."""

    def head(self) -> tuple[nn.Linear, Activation, nn.LayerNorm, nn.Linear]:
        """The parts of the head in the order in which they are run."""


def layers_of(network: Any) -> Sequence[Layer] | None:
    """The layers in the order they are run (ALBERT runs one several times), None if unknown."""
    if isinstance(network, PlainNetwork):
        return network.layers()
    base = network.base_model
    encoder = getattr(base, "encoder", None) or getattr(base, "transformer", None)
    groups = getattr(encoder, "albert_layer_groups", None)
    if groups is None:
        modules = list(getattr(encoder, "layer", None) or [])
    elif len(groups) != 1 or len(groups[0].albert_layers) != 1:
        return None
    else:
        modules = [groups[0].albert_layers[0]] * int(network.config.num_hidden_layers)
    kinds = {type(module).__name__ for module in modules}
    names = LAYERS.get(kinds.pop()) if len(kinds) == 1 else None
    if names is None or not _is_plain(network):
        return None
    layers = [names.read(module) for module in modules]
    return layers if all(_is_standard(layer) for layer in layers) else None


def _is_plain(network: PreTrainedModel) -> bool:
    """Whether the model only combines its parts: absolute positions, bidirectional, modules of
    torch and transformers without hooks, no dropout.
    """
    settings: Any = network.config
    positions = getattr(settings, "position_embedding_type", "absolute") or "absolute"
    causal = getattr(settings, "is_decoder", False)
    return (
        positions == "absolute"
        and not causal
        and not network.training
        and all(is_unmodified(part) for part in network.base_model.modules())
    )


def is_unmodified(part: nn.Module) -> bool:
    """Whether a module is one of torch or transformers without hooks."""
    hooked = part._forward_hooks or part._forward_pre_hooks or "forward" in vars(part)
    return not hooked and type(part).__module__.startswith(("torch.nn.", "transformers."))


def _is_standard(layer: Layer) -> bool:
    """Whether every part has the standard class (an adapter, for example, has another)."""
    from torch import nn

    linear = all(type(part) is nn.Linear and part.bias is not None for part in layer.linear)
    return linear and all(type(part) is nn.LayerNorm for part in (layer.norm, layer.last_norm))


class Linear(Protocol):
    """A linear map of token states (n, in) to (n, out)."""

    def __call__(self, states: torch.Tensor) -> torch.Tensor: ...
    def onto(self, residual: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """The residual plus the map of the states."""


class Dense:
    """Linear layers of the model; several with the same input are stacked."""

    def __init__(self, *linear: nn.Linear) -> None:
        import torch

        single = len(linear) == 1
        self.bias = linear[0].bias if single else torch.cat([layer.bias for layer in linear])
        weight = linear[0].weight if single else torch.cat([layer.weight for layer in linear])
        self.weight = weight.t()

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        import torch

        return torch.addmm(self.bias, states, self.weight)

    def onto(self, residual: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        return (residual + self.bias).addmm_(states, self.weight)


@dataclass(frozen=True, slots=True)
class LayerStage:
    """A layer of the model and its linear maps, ready to run."""

    layer: Layer
    attend: Linear
    out: Linear
    up: Linear
    down: Linear

    def rest(self, before: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        """The part after attention, token by token: out, up, down, each half with its norm."""
        middle = self.layer.norm(self.out.onto(before, attended))
        inner = _activate(self.layer.activation, self.up(middle))
        finished: torch.Tensor = self.layer.last_norm(self.down.onto(middle, inner))
        return finished


def stages_of(layers: Sequence[Layer], linear: Callable[..., Linear]) -> list[LayerStage]:
    """The layers with maps built by `linear`; a layer that is run several times is built once."""
    stages: dict[int, LayerStage] = {}
    for layer in layers:
        if id(layer.out) not in stages:
            attend = linear(layer.query, layer.key, layer.value)
            rest = (linear(layer.out), linear(layer.up), linear(layer.down))
            stages[id(layer.out)] = LayerStage(layer, attend, *rest)
    return [stages[id(layer.out)] for layer in layers]


def map_stages(
    stages: Sequence[LayerStage], maps: Mapping[int, Callable[[torch.Tensor], torch.Tensor]]
) -> list[LayerStage]:
    """The stages with a map of the states after some of them, by number from 1."""

    def mapped(stage: LayerStage, change: Activation) -> LayerStage:
        norm = stage.layer.last_norm
        return replace(
            stage, layer=replace(stage.layer, last_norm=lambda states: change(norm(states)))
        )

    return [
        mapped(stage, maps[number]) if number in maps else stage
        for number, stage in enumerate(stages, start=1)
    ]


@dataclass(frozen=True, slots=True)
class _Group:
    """The rows of one length: their numbers, and their tokens among all tokens."""

    rows: slice
    tokens: slice
    length: int

    def of(self, states: torch.Tensor) -> torch.Tensor:
        """Token states (tokens, …) as rows (n, length, …) of this group."""
        return states[self.tokens].view(-1, self.length, *states.shape[1:])


def _groups(lengths: Ints) -> list[_Group]:
    groups, row, token = [], 0, 0
    for length, count in zip(*np.unique(lengths, return_counts=True), strict=True):
        rows, tokens = slice(row, row + int(count)), slice(token, token + int(count * length))
        groups.append(_Group(rows, tokens, int(length)))
        row, token = rows.stop, tokens.stop
    return groups


class ForwardPass:
    """A run of the model on token rows that gives hidden states at requested positions.

    Parameters
    ----------
    network : torch.nn.Module
    ids : array
        The token ids of all rows, one row after the other, in order of length.
    lengths : array
        The lengths of the rows.
    stages : sequence of LayerStage or None
        The layers, if known; otherwise the model is run unchanged.

    """

    def __init__(
        self, network: Any, ids: Ints, lengths: Ints, stages: Sequence[LayerStage] | None
    ) -> None:
        import torch

        self._starts = np.cumsum(lengths) - lengths
        self._groups = _groups(lengths)
        self._last = stages[-1] if stages else None
        self._attention: Attention | None = None
        tokens = to_device(ids, network.device, torch.long)
        if stages:
            if is_packed(network.device, network.dtype, stages[0].layer):
                self._attention = PackedAttention(self._starts, lengths, network.device)
            else:
                self._attention = GroupedAttention(self._groups)
            embedded = _embed_rows(network, tokens, ids, lengths, self._groups)
            self._states = _run_stages(stages[:-1], embedded, self._attention)
        else:
            self._states = torch.cat(
                [
                    network.base_model(
                        input_ids=group.of(tokens), attention_mask=None
                    ).last_hidden_state.flatten(0, 1)
                    for group in self._groups
                ]
            )

    @property
    def is_packed(self) -> bool:
        """Whether the states at all positions are best computed at once."""
        return isinstance(self._attention, PackedAttention)

    def states_at(self, rows: Ints, positions: Ints) -> torch.Tensor:
        """The last hidden states (n, width) at one position per row, rows in order."""
        import torch

        states = self._states
        if self._last is None:
            return states[to_device(self._starts[rows] + positions, states.device, torch.long)]
        if isinstance(self._attention, PackedAttention):
            return _run_last_layer_packed(self._last, states, self._attention, rows, positions)
        parts = []
        for group in self._groups:
            begin, end = np.searchsorted(rows, (group.rows.start, group.rows.stop))
            if end > begin:
                parts.append(
                    _run_last_layer(
                        self._last.layer,
                        group.of(states),
                        rows[begin:end] - group.rows.start,
                        positions[begin:end],
                    )
                )
        return torch.cat(parts)

    def all_states(self) -> list[torch.Tensor]:
        """The last hidden states at every position (rows, length, width), one tensor per length."""
        states = self._states
        if self._last is not None and self._attention is not None:
            states = _run_stages([self._last], states, self._attention)
        return [group.of(states) for group in self._groups]


def batches(sizes: Iterable[int], limit: int) -> Iterator[slice]:
    """Consecutive items in batches of at most `limit` together, or of a single item.

    >>> [(batch.start, batch.stop) for batch in batches([2, 3, 5, 9], 10)]
    [(0, 3), (3, 4)]
    """
    begin = total = count = 0
    for count, size in enumerate(sizes, start=1):
        if begin < count - 1 and total + size > limit:
            yield slice(begin, count - 1)
            begin, total = count - 1, 0
        total += size
    if count:
        yield slice(begin, count)


def to_device(values: Ints, device: torch.device, dtype: torch.dtype) -> torch.Tensor:
    """An array as a tensor; the copy to a GPU does not block."""
    import torch

    tensor = torch.from_numpy(np.ascontiguousarray(values)).to(dtype)
    if device.type != "cuda":
        return tensor.to(device)
    return tensor.pin_memory().to(device, non_blocking=True)


def embed_tokens(network: PreTrainedModel, ids: torch.Tensor) -> torch.Tensor:
    """The input of the first layer, for rows (n, length) of token ids."""
    base: Any = network.base_model
    return _project_embeddings(base, base.embeddings(input_ids=ids))


def _project_embeddings(base: object, states: torch.Tensor) -> torch.Tensor:
    encoder: Any = getattr(base, "encoder", None)
    for part in (
        getattr(base, "embeddings_project", None),
        getattr(encoder, "embedding_hidden_mapping_in", None),
    ):
        states = states if part is None else part(states)
    return states


def _embed_rows(
    network: Any, tokens: torch.Tensor, ids: Ints, lengths: Ints, groups: Sequence[_Group]
) -> torch.Tensor:
    """The input of the first layer (tokens, width) of packed rows."""
    import torch

    if isinstance(network, PlainNetwork):
        positions = to_device(network.positions(ids, lengths), tokens.device, torch.long)
        return _project_embeddings(network.base_model, network.embed(tokens, positions))
    return torch.cat([embed_tokens(network, group.of(tokens)).flatten(0, 1) for group in groups])


class Attention(Protocol):
    """Attention within rows that are packed one after the other."""

    def __call__(self, heads: int, joint: torch.Tensor) -> torch.Tensor:
        """Attend with query, key and value (tokens, 3 × width): (tokens, width)."""


@dataclass(frozen=True, slots=True)
class GroupedAttention:
    """Attention of one length after the other."""

    groups: Sequence[_Group]

    def __call__(self, heads: int, joint: torch.Tensor) -> torch.Tensor:
        from torch.nn.functional import scaled_dot_product_attention

        attended = joint.new_empty(len(joint), joint.shape[1] // 3)
        for group in self.groups:
            rows = group.of(joint)
            query, key, value = rows.view(*rows.shape[:2], 3, heads, -1).permute(2, 0, 3, 1, 4)
            result = scaled_dot_product_attention(query, key, value).transpose(1, 2)
            attended[group.tokens] = result.reshape(-1, attended.shape[1])
        return attended


@dataclass(frozen=True, slots=True)
class CountedAttention(GroupedAttention):
    """The same, adding up in `received` how much attention each token gets."""

    received: torch.Tensor

    def __call__(self, heads: int, joint: torch.Tensor) -> torch.Tensor:
        for group in self.groups:
            rows = group.of(joint)
            query, key, _ = rows.view(*rows.shape[:2], 3, heads, -1).permute(2, 0, 3, 1, 4)
            scores = query @ key.transpose(2, 3) * query.shape[-1] ** -0.5
            weights = scores.float().softmax(dim=-1)
            self.received[group.tokens] += weights.mean(dim=(1, 2)).reshape(-1)
        return GroupedAttention.__call__(self, heads, joint)


def received_attention(
    network: Any, ids: Ints, lengths: Ints, stages: Sequence[LayerStage]
) -> NDArray[np.float64]:
    """The attention that each token of packed rows gets: the mean over layers, heads and tokens.

    Within a row it sums to 1. Rows are in order of length.
    """
    import torch

    with torch.inference_mode():
        groups = _groups(lengths)
        tokens = to_device(ids, network.device, torch.long)
        received = torch.zeros(len(tokens), dtype=torch.float32, device=network.device)
        embedded = _embed_rows(network, tokens, ids, lengths, groups)
        _run_stages(stages, embedded, CountedAttention(groups, received))
        return np.asarray(received.double().cpu().numpy()) / len(stages)


class PackedAttention:
    """Attention of rows of all lengths in one call; `attend` is the kernel."""

    def __init__(self, starts: Ints, lengths: Ints, device: torch.device) -> None:
        self.starts, self.lengths = starts, lengths
        self.ends = self._boundaries(lengths, device)

    @staticmethod
    def _boundaries(counts: Ints, device: torch.device) -> torch.Tensor:
        import torch

        return to_device(np.concatenate([[0], np.cumsum(counts)]), device, torch.int32)

    def __call__(self, heads: int, joint: torch.Tensor) -> torch.Tensor:
        query, key, value = joint.view(len(joint), 3, heads, -1).unbind(1)
        longest = int(self.lengths.max(initial=1))
        attended = attend_packed(query, key, value, self.ends, self.ends, longest, longest)
        return attended.reshape(len(joint), -1)

    def at(self, heads: int, query: torch.Tensor, joint: torch.Tensor, rows: Ints) -> torch.Tensor:
        """Attend with queries (n, width), rows in order, to key and value (tokens, 2 × width)."""
        counts = np.bincount(rows, minlength=len(self.lengths))
        key, value = joint.view(len(joint), 2, heads, -1).unbind(1)
        attended = attend_packed(
            query.view(len(query), heads, -1),
            key,
            value,
            self._boundaries(counts, query.device),
            self.ends,
            int(counts.max(initial=1)),
            int(self.lengths.max(initial=1)),
        )
        return attended.reshape(len(query), -1)


def is_packed(device: torch.device, dtype: torch.dtype, layer: Layer) -> bool:
    """Whether attention runs on packed rows: half precision on a GPU, where torch has a kernel."""
    import torch

    size = layer.query.out_features // layer.heads
    if device.type != "cuda" or dtype not in (torch.float16, torch.bfloat16):
        return False
    if size % 8 or size > 256:
        return False
    try:
        from torch.nn.attention.varlen import varlen_attn  # noqa: F401
    except ImportError:
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)


def attend_packed(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    query_ends: torch.Tensor,
    key_ends: torch.Tensor,
    most_queries: int,
    longest: int,
) -> torch.Tensor:
    """Attention of packed rows (tokens, heads, size); the ends of the rows begin with 0."""
    from torch.nn.attention.varlen import varlen_attn

    kernel: Any = varlen_attn
    attended: torch.Tensor = kernel(query, key, value, query_ends, key_ends, most_queries, longest)
    return attended


def _run_stages(
    stages: Sequence[LayerStage], tokens: torch.Tensor, attention: Attention
) -> torch.Tensor:
    """Run layers on token states (tokens, width) of rows of several lengths."""
    import torch

    tile = TILE if tokens.device.type == "cpu" else max(len(tokens), 1)
    tiles = [slice(start, start + tile) for start in range(0, len(tokens), tile)]
    for stage in stages:
        attended = attention(stage.layer.heads, stage.attend(tokens))
        if len(tiles) == 1:
            tokens = stage.rest(tokens, attended)
        else:
            finished = torch.empty_like(tokens)
            for part in tiles:
                finished[part] = stage.rest(tokens[part], attended[part])
            tokens = finished
    return tokens


def _run_last_layer_packed(
    stage: LayerStage,
    states: torch.Tensor,
    attention: PackedAttention,
    rows: Ints,
    positions: Ints,
) -> torch.Tensor:
    """Run the last layer at some positions of packed rows."""
    import torch
    from torch.nn.functional import linear

    layer = stage.layer
    indices = to_device(attention.starts[rows] + positions, states.device, torch.long)
    chosen = states[indices]
    weight = torch.cat([layer.key.weight, layer.value.weight])
    joint = linear(states, weight, torch.cat([layer.key.bias, layer.value.bias]))
    attended = attention.at(layer.heads, layer.query(chosen), joint, rows)
    return stage.rest(chosen, attended)


def _run_last_layer(
    layer: Layer, states: torch.Tensor, rows: Ints, positions: Ints
) -> torch.Tensor:
    """Run the last layer at one position per row.

    With q the query of the position in a head, its scores q · (K h_t) over the tokens h_t of the
    row are (Kᵀ q) · h_t, up to a constant that softmax drops, and its mean Σ a_t V h_t is
    V (Σ a_t h_t): key and value need not be computed token by token.
    """
    import torch

    device, length = states.device, states.shape[1]
    flat = to_device(rows * length + positions, device, torch.long)
    chosen = states.flatten(0, 1)[flat]
    n, width = chosen.shape
    all_rows = n == len(states) and bool((rows == np.arange(n)).all())
    seen = states if all_rows else states[to_device(rows, device, torch.long)]
    heads, size = layer.heads, layer.query.out_features // layer.heads
    query = layer.query(chosen).view(n, heads, size).transpose(0, 1)
    reach = torch.bmm(query, layer.key.weight.view(heads, size, width)).transpose(0, 1)
    weights = torch.softmax(torch.bmm(reach, seen.transpose(1, 2)) * size**-0.5, dim=-1)
    mixed = torch.bmm(weights, seen).transpose(0, 1)
    value = torch.bmm(mixed, layer.value.weight.view(heads, size, width).transpose(1, 2))
    attended = value.transpose(0, 1).reshape(n, -1) + layer.value.bias
    middle = layer.norm(chosen + layer.out(attended))
    inner = _activate(layer.activation, layer.up(middle))
    finished: torch.Tensor = layer.last_norm(middle + layer.down(inner))
    return finished


def _activate(activation: Activation, states: torch.Tensor) -> torch.Tensor:
    """Apply the activation, in place for GELU."""
    import torch

    if getattr(activation, "act", None) is torch.nn.functional.gelu:
        activated: torch.Tensor = torch.ops.aten.gelu_(states)
        return activated
    return activation(states)


def logits_of(network: object, hidden: torch.Tensor) -> torch.Tensor:
    """The head of the model on hidden states (n, width): logits (n, vocabulary)."""
    return _head(network)(hidden)


def _head(network: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    """The head of a model, by the attribute names of transformers."""
    if isinstance(network, PlainNetwork):
        dense, activation, norm, last = network.head()
        return lambda hidden: _decode(last, norm(activation(dense(hidden))))
    if (electra := getattr(network, "generator_lm_head", None)) is not None:
        return lambda hidden: electra(network.generator_predictions(hidden))
    if (distilbert := getattr(network, "vocab_projector", None)) is not None:
        return lambda hidden: distilbert(
            network.vocab_layer_norm(network.activation(network.vocab_transform(hidden)))
        )
    decoder = getattr(network, "decoder", None)
    if decoder is not None and getattr(network, "head", None) is not None:
        return lambda hidden: decoder(network.head(hidden))
    for name in ("cls", "lm_head", "predictions"):
        head: Activation | None = getattr(network, name, None)
        if head is not None:
            return head
    kind = type(network).__name__
    raise InputError(f"model: expected a masked language model with a known head, got {kind}")


def _decode(decoder: nn.Linear, states: torch.Tensor) -> torch.Tensor:
    """Logits; on a GPU those of half precision are sums in float32 that are not rounded again."""
    import torch

    if states.device.type != "cuda" or states.dtype == torch.float32:
        logits: torch.Tensor = decoder(states)
        return logits
    logits = torch.mm(states, decoder.weight.t(), out_dtype=torch.float32)
    return logits.add_(decoder.bias)


class Int8:
    """Linear layers with one input, stacked: int8 weights, uint8 states.

    A state x is low + step · q with q in 0 … 255, so that W x + b = step · (W q) + low · (W 1) + b.
    """

    def __init__(self, *linear: nn.Linear) -> None:
        import torch

        weight = torch.cat([layer.weight.detach() for layer in linear])
        scale = (weight.abs().amax(dim=1) / 127).clamp_min(1e-12)
        zero = torch.zeros(len(scale), dtype=torch.long)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch has deprecated quantised tensors
            quantized = torch.quantize_per_channel(weight, scale.double(), zero, 0, torch.qint8)
            self.packed = torch.ops.quantized.linear_prepack(quantized, None)
            sums = quantized.dequantize().sum(dim=1)
        self.fixed = torch.stack([sums, torch.cat([layer.bias.detach() for layer in linear])])

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        product, step, shift = self._product(states)
        return product.mul_(step).addmm_(shift, self.fixed)

    def onto(self, residual: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        product, step, shift = self._product(states)
        return product.mul_(step).add_(residual).addmm_(shift, self.fixed)

    def _product(self, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """W q, step, and the factors of `fixed`: low and 1."""
        import torch

        high, low = states.amax(dim=1, keepdim=True), states.amin(dim=1, keepdim=True)
        step = ((high - low) / LEVELS).clamp_min(1e-12)
        product = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            (states - low).div_(step), 1.0, 0, self.packed
        )
        return product, step, torch.cat([low, torch.ones_like(low)], dim=1)


def int8_stages(network: Any) -> tuple[LayerStage, ...]:
    """The layers of the model with their linear maps in eight bits."""
    import torch

    layers = layers_of(network)
    if layers is None:
        kind = type(network).__name__
        raise InputError(f"int8: expected a model of the BERT family, got {kind}")
    if network.device.type != "cpu" or network.dtype != torch.float32:
        raise InputError(
            f"int8: expected device cpu and dtype float32, got {network.device.type} and"
            f" {str(network.dtype).removeprefix('torch.')}"
        )
    return tuple(stages_of(layers, Int8))


@lru_cache
def guard_half() -> None:
    """Ensure that half-precision arithmetic does not kill the process on this CPU.

    Some virtual machines announce the matrix unit AMX and kill a program that uses it. That cannot
    be caught, so another process tries it; if it dies, the library that uses the unit (oneDNN) is
    disabled, which is slower.
    """
    import torch

    if "amx_tile" not in _processor_flags():
        return
    attempt = (
        "import torch; a = torch.ones(512, 512, dtype=torch.bfloat16); torch.mm(a, a);"
        " a = a.half(); torch.mm(a, a)"
    )
    trial = subprocess.run([sys.executable, "-c", attempt], capture_output=True, check=False)
    if trial.returncode:
        torch.backends.mkldnn.set_flags(_enabled=False)  # type: ignore[no-untyped-call]


def _processor_flags() -> str:
    """The processor description of the system, empty if there is none."""
    try:
        return Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
