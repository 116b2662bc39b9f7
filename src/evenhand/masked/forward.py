"""One pass of a masked language model that computes what is needed and no more.

Token rows of any lengths go through together without padding: everything but attention works on
single tokens, and attention on rows of one length. What is done to a token between two attentions
is done tile by tile, so that it stays in the processor's cache. The last layer and the head are
computed at the requested positions only.

BERT, RoBERTa, ELECTRA and related families, DistilBERT and ALBERT compute the same under different
names: attention, a residual and a norm, then two linear layers, a residual and a norm. A layer that
differs from that (other parts, adapters, hooks) is not taken apart, and its model is run as it is.

With eight-bit linear layers (`Int8`) a pass is faster and no longer exact. A weight has the scale
of its output channel, a token state the scale of its token, so that neither the batch nor an
unusual token changes another token's numbers. Embeddings, norms, attention, the last layer at the
requested positions and the head stay as they are.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, groupby, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from evenhand.errors import InputError

if TYPE_CHECKING:
    import torch
    from torch import nn
    from transformers import PreTrainedModel

TILE = 512
"""Tokens that are taken through a layer at once on the CPU."""
LEVELS = 255
"""Steps between the smallest and the largest number of a state in eight bits."""


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
    last_norm: nn.LayerNorm

    @property
    def linear(self) -> tuple[nn.Linear, ...]:
        return (self.query, self.key, self.value, self.out, self.up, self.down)


def layers_of(network: PreTrainedModel) -> Sequence[Layer] | None:
    """The layers in the order they are run (ALBERT runs one several times), None if unknown."""
    base: Any = network.base_model
    encoder: Any = getattr(base, "encoder", None)
    if hasattr(encoder, "albert_layer_groups"):
        groups = encoder.albert_layer_groups
        if len(groups) != 1 or len(groups[0].albert_layers) != 1:
            return None
        found = [groups[0].albert_layers[0]] * int(network.config.num_hidden_layers)
    else:
        found = list(getattr(encoder or getattr(base, "transformer", None), "layer", None) or [])
    kinds = {type(each).__name__ for each in found}
    if len(kinds) != 1 or not kinds <= _READ.keys() or not _plain(network):
        return None
    read = _READ[type(found[0]).__name__]
    layers = [read(each) for each in found]
    return layers if all(_usual(layer) for layer in layers) else None


def _plain(network: PreTrainedModel) -> bool:
    """Whether the model does what its parts do: absolute positions, both ways, all parts the
    libraries' own, nothing hooked, no dropout.
    """
    settings: Any = network.config
    positions = getattr(settings, "position_embedding_type", "absolute") or "absolute"
    causal = getattr(settings, "is_decoder", False)
    return (
        positions == "absolute"
        and not causal
        and not network.training
        and all(_untouched(part) for part in network.base_model.modules())
    )


def _untouched(part: nn.Module) -> bool:
    hooked = part._forward_hooks or part._forward_pre_hooks or "forward" in vars(part)
    return not hooked and type(part).__module__.startswith(("torch.nn.", "transformers."))


def _usual(layer: Layer) -> bool:
    """Whether every part is a plain one (an adapter, say, is another class)."""
    from torch import nn

    linear = all(type(each) is nn.Linear and each.bias is not None for each in layer.linear)
    return linear and all(type(each) is nn.LayerNorm for each in (layer.norm, layer.last_norm))


def _bert(layer: Any) -> Layer:
    inner, attended, up = layer.attention.self, layer.attention.output, layer.intermediate
    return Layer(
        inner.num_attention_heads,
        inner.query,
        inner.key,
        inner.value,
        attended.dense,
        attended.LayerNorm,
        up.dense,
        up.intermediate_act_fn,
        layer.output.dense,
        layer.output.LayerNorm,
    )


def _distilbert(layer: Any) -> Layer:
    inner, ffn = layer.attention, layer.ffn
    return Layer(
        inner.n_heads,
        inner.q_lin,
        inner.k_lin,
        inner.v_lin,
        inner.out_lin,
        layer.sa_layer_norm,
        ffn.lin1,
        ffn.activation,
        ffn.lin2,
        layer.output_layer_norm,
    )


def _albert(layer: Any) -> Layer:
    inner = layer.attention
    return Layer(
        inner.num_attention_heads,
        inner.query,
        inner.key,
        inner.value,
        inner.dense,
        inner.LayerNorm,
        layer.ffn,
        layer.activation,
        layer.ffn_output,
        layer.full_layer_layer_norm,
    )


_READ: dict[str, Callable[[Any], Layer]] = {
    "AlbertLayer": _albert,
    "BertLayer": _bert,
    "CamembertLayer": _bert,
    "ElectraLayer": _bert,
    "RobertaLayer": _bert,
    "TransformerBlock": _distilbert,
    "XLMRobertaLayer": _bert,
}


class Linear(Protocol):
    """A linear map of token states (n, in) to (n, out)."""

    def __call__(self, states: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor: ...
    def onto(self, residual: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        """The residual plus the map of the states."""


class Dense:
    """Linear layers as the model has them; several with one input are stacked into one."""

    def __init__(self, *linear: nn.Linear) -> None:
        import torch

        one = len(linear) == 1
        self.bias = linear[0].bias if one else torch.cat([each.bias for each in linear])
        weight = linear[0].weight if one else torch.cat([each.weight for each in linear])
        self.weight = weight.t()

    def __call__(self, states: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        import torch

        return torch.addmm(self.bias, states, self.weight, out=out)

    def onto(self, residual: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        return (residual + self.bias).addmm_(states, self.weight)


@dataclass(frozen=True, slots=True)
class Stage:
    """A layer of the model and its linear maps, ready to run."""

    layer: Layer
    attend: Linear
    out: Linear
    up: Linear
    down: Linear

    def rest(self, before: torch.Tensor, attended: torch.Tensor) -> torch.Tensor:
        """What follows attention, token by token: out, up, down, each half with its norm."""
        middle = self.layer.norm(self.out.onto(before, attended))
        inner = _activated(self.layer.activation, self.up(middle))
        finished: torch.Tensor = self.layer.last_norm(self.down.onto(middle, inner))
        return finished


def stages_of(layers: Sequence[Layer], linear: Callable[..., Linear]) -> list[Stage]:
    """The layers with their maps made by `linear`; one that is run several times is made once."""
    made: dict[int, Stage] = {}
    for layer in layers:
        if id(layer.out) not in made:
            attend = linear(layer.query, layer.key, layer.value)
            rest = (linear(layer.out), linear(layer.up), linear(layer.down))
            made[id(layer.out)] = Stage(layer, attend, *rest)
    return [made[id(layer.out)] for layer in layers]


class Pass:
    """The model run on token rows, to be asked for hidden states at places of them.

    Rows come in order of their length. `stages` are the layers if they are known.
    """

    def __init__(
        self,
        network: PreTrainedModel,
        rows: Sequence[Sequence[int]],
        stages: Sequence[Stage] | None,
    ) -> None:
        import torch

        groups = [
            torch.tensor(list(same), dtype=torch.long, device=network.device)
            for _, same in groupby(rows, key=len)
        ]
        self._last = stages[-1] if stages else None
        if stages:
            embedded = [entering(network, ids) for ids in groups]
            self._states = _through(stages[:-1], embedded)
        else:
            self._states = [
                network.base_model(input_ids=ids, attention_mask=None).last_hidden_state
                for ids in groups
            ]

    def at(self, rows: Sequence[int], places: Sequence[int]) -> torch.Tensor:
        """The last hidden states (n, width) at a place of each of the rows, rows in order."""
        import torch

        parts = []
        first = begin = 0
        for states in self._states:
            end = bisect_left(rows, first + len(states), lo=begin)
            own = torch.tensor(rows[begin:end], device=states.device, dtype=torch.long) - first
            where = torch.tensor(places[begin:end], device=states.device, dtype=torch.long)
            if self._last is None:
                parts.append(states[own, where])
            elif end > begin:
                parts.append(_finished(self._last.layer, states, own, where))
            first, begin = first + len(states), end
        return torch.cat(parts)

    def whole(self) -> list[torch.Tensor]:
        """The last hidden states at every place (rows, length, width), length by length."""
        return self._states if self._last is None else _through([self._last], self._states)


def entering(network: PreTrainedModel, ids: torch.Tensor) -> torch.Tensor:
    """What enters the first layer."""
    base: Any = network.base_model
    states: torch.Tensor = base.embeddings(input_ids=ids)
    encoder: Any = getattr(base, "encoder", None)
    for part in (
        getattr(base, "embeddings_project", None),
        getattr(encoder, "embedding_hidden_mapping_in", None),
    ):
        states = states if part is None else part(states)
    return states


def _through(stages: Sequence[Stage], groups: Sequence[torch.Tensor]) -> list[torch.Tensor]:
    """Some layers on rows of several lengths at once, each group (rows, length, width)."""
    import torch

    tokens = torch.cat([states.flatten(0, 1) for states in groups])
    ends = list(accumulate(states.shape[0] * states.shape[1] for states in groups))
    spans = [slice(*span) for span in pairwise([0, *ends])]
    tile = TILE if tokens.device.type == "cpu" else len(tokens)
    tiles = [slice(start, start + tile) for start in range(0, len(tokens), tile)]
    states = [tokens[part] for part in tiles]
    for stage in stages:
        inner = stage.layer.query.out_features
        joint, attended = (
            tokens.new_empty(len(tokens), 3 * inner),
            tokens.new_empty(len(tokens), inner),
        )
        for part, before in zip(tiles, states, strict=True):
            stage.attend(before, out=joint[part])
        for span, group in zip(spans, groups, strict=True):
            attended[span] = _attended(stage.layer.heads, joint[span].view(*group.shape[:2], -1))
        states = [
            stage.rest(before, attended[part]) for part, before in zip(tiles, states, strict=True)
        ]
    finished = torch.cat(states)
    return [finished[span].view(group.shape) for span, group in zip(spans, groups, strict=True)]


def _attended(heads: int, joint: torch.Tensor) -> torch.Tensor:
    """Attention over rows of one length (n, length, 3 × width): (n × length, width)."""
    from torch.nn.functional import scaled_dot_product_attention

    n, length, _ = joint.shape
    query, key, value = joint.view(n, length, 3, heads, -1).permute(2, 0, 3, 1, 4)
    return scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(n * length, -1)


def _finished(
    layer: Layer, states: torch.Tensor, rows: torch.Tensor, places: torch.Tensor
) -> torch.Tensor:
    """The last layer at one place of each of the rows.

    With q the query of the place in a head, its scores q · (K h_t) over the tokens h_t of the row
    are (Kᵀ q) · h_t, up to a constant that softmax drops, and its mean Σ a_t V h_t is
    V (Σ a_t h_t): key and value need not be computed token by token.
    """
    import torch

    chosen = states[rows, places]
    n, width = chosen.shape
    every = n == len(states) and bool((rows == torch.arange(n, device=rows.device)).all())
    seen = states if every else states[rows]
    heads, size = layer.heads, layer.query.out_features // layer.heads
    query = layer.query(chosen).view(n, heads, size).transpose(0, 1)
    reach = torch.bmm(query, layer.key.weight.view(heads, size, width)).transpose(0, 1)
    weights = torch.softmax(torch.bmm(reach, seen.transpose(1, 2)) * size**-0.5, dim=-1)
    mixed = torch.bmm(weights, seen).transpose(0, 1)
    value = torch.bmm(mixed, layer.value.weight.view(heads, size, width).transpose(1, 2))
    attended = value.transpose(0, 1).reshape(n, -1) + layer.value.bias
    middle = layer.norm(chosen + layer.out(attended))
    inner = _activated(layer.activation, layer.up(middle))
    finished: torch.Tensor = layer.last_norm(middle + layer.down(inner))
    return finished


def _activated(
    activation: Callable[[torch.Tensor], torch.Tensor], states: torch.Tensor
) -> torch.Tensor:
    """The activation, in place where it is the usual one."""
    import torch

    if getattr(activation, "act", None) is torch.nn.functional.gelu:
        made: torch.Tensor = torch.ops.aten.gelu_(states)
        return made
    return activation(states)


def logits_of(network: PreTrainedModel, hidden: torch.Tensor) -> torch.Tensor:
    """The head of the model on hidden states (n, width): logits (n, vocabulary)."""
    return _head(network)(hidden)


def _head(network: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    """What a model puts on its last hidden states, by the names transformers gives it."""
    if hasattr(network, "generator_lm_head"):
        return lambda hidden: network.generator_lm_head(network.generator_predictions(hidden))
    if hasattr(network, "vocab_projector"):
        return lambda hidden: network.vocab_projector(
            network.vocab_layer_norm(network.activation(network.vocab_transform(hidden)))
        )
    if hasattr(network, "head") and hasattr(network, "decoder"):
        return lambda hidden: network.decoder(network.head(hidden))
    for name in ("cls", "lm_head", "predictions"):
        if hasattr(network, name):
            head: Callable[[torch.Tensor], torch.Tensor] = getattr(network, name)
            return head
    kind = type(network).__name__
    raise InputError(f"model: expected a masked language model with a known head, got {kind}")


class Int8:
    """Linear layers with one input, stacked: int8 weights, uint8 states.

    A state x is low + step · q with q in 0 … 255, so that W x + b = step · (W q) + low · (W 1) + b.
    """

    def __init__(self, *linear: nn.Linear) -> None:
        import torch

        weight = torch.cat([each.weight.detach() for each in linear])
        scale = (weight.abs().amax(dim=1) / 127).clamp_min(1e-12)
        zero = torch.zeros(len(scale), dtype=torch.long)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch means to drop quantised tensors some day
            made = torch.quantize_per_channel(weight, scale.double(), zero, 0, torch.qint8)
            self.packed = torch.ops.quantized.linear_prepack(made, None)
            sums = made.dequantize().sum(dim=1)
        self.fixed = torch.stack([sums, torch.cat([each.bias.detach() for each in linear])])

    def __call__(self, states: torch.Tensor, out: torch.Tensor | None = None) -> torch.Tensor:
        import torch

        product, step, shift = self._product(states)
        return torch.mul(product, step, out=out).addmm_(shift, self.fixed)

    def onto(self, residual: torch.Tensor, states: torch.Tensor) -> torch.Tensor:
        product, step, shift = self._product(states)
        return product.mul_(step).add_(residual).addmm_(shift, self.fixed)

    def _product(self, states: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        """W q, step, and what `fixed` is to be multiplied by: low and 1."""
        import torch

        high, low = states.amax(dim=1, keepdim=True), states.amin(dim=1, keepdim=True)
        step = ((high - low) / LEVELS).clamp_min(1e-12)
        product = torch.ops.quantized.linear_with_input_q_dq_qweight_dq_output_fp32(
            (states - low).div_(step), 1.0, 0, self.packed
        )
        return product, step, torch.cat([low, torch.ones_like(low)], dim=1)


def int8_stages(network: PreTrainedModel) -> tuple[Stage, ...]:
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
    """See to it that arithmetic in half precision does not end the process on this CPU.

    Some virtual machines announce the matrix unit AMX and stop a program that uses it. That
    cannot be caught, so another process tries it; where it dies, the library that would use the
    unit (oneDNN) is switched off, which is slow and works.
    """
    import torch

    if "amx_tile" not in _processor():
        return
    attempt = (
        "import torch; a = torch.ones(512, 512, dtype=torch.bfloat16); torch.mm(a, a);"
        " a = a.half(); torch.mm(a, a)"
    )
    tried = subprocess.run([sys.executable, "-c", attempt], capture_output=True, check=False)
    if tried.returncode:
        torch.backends.mkldnn.set_flags(_enabled=False)  # type: ignore[no-untyped-call]


def _processor() -> str:
    """What the processor announces, where the system tells it."""
    try:
        return Path("/proc/cpuinfo").read_text()
    except OSError:
        return ""
