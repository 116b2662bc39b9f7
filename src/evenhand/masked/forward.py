"""One pass of a masked language model that computes what is asked for and no more.

Token rows of any lengths go through together without padding: everything but attention works on
single tokens, and attention on rows of one length. What is done to a token between two attentions
is done tile by tile, so that it stays in the processor's cache. The last layer and the head are
computed at the places that are asked about only. Models whose layers are not known (layers.py)
are run as they are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, groupby, pairwise
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch
    from torch import nn
    from transformers import PreTrainedModel

    from evenhand.masked.layers import Layer

__all__ = ["Dense", "Linear", "Pass", "Stage", "entering", "logits_of", "stages_of"]

TILE = 512
"""Tokens that are taken through a layer at once on the CPU."""


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
    from evenhand.errors import InputError

    kind = type(network).__name__
    raise InputError(f"model: expected a masked language model with a known head, got {kind}")
