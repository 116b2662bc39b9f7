"""One pass of an encoder over rows of any lengths, through which gradients flow.

Tokens of all rows lie one after the other, so that nothing is padded: all but attention works on
single tokens, and attention on groups of rows of one length, or on a GPU of like lengths, which
are padded for attention alone. Past the attention of the last layer only the tokens that are
pooled are computed. Models of unknown families run as they are, group by group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional
from transformers import PreTrainedModel

from evenhand.fewshot.encoders.tokens import Group
from evenhand.masked.forward import Layer, entering, layers_of

__all__ = ["packed"]


def packed(network: PreTrainedModel, groups: Sequence[Group]) -> Tensor:
    """The pooled last states (n, width) of the rows, group by group."""
    layers = layers_of(network)
    if layers is None:
        states = [
            network.base_model(input_ids=g.ids, attention_mask=g.there).last_hidden_state[g.kept]
            for g in groups
        ]
        return _means(torch.cat(states), groups)
    spans = [_Span.of(group) for group in groups]
    tokens = torch.cat(
        [
            span.taken(entering(network, group.ids).flatten(0, 1))
            for span, group in zip(spans, groups, strict=True)
        ]
    )
    kept = torch.cat([span.taken(g.kept.flatten()) for span, g in zip(spans, groups, strict=True)])
    pooled = kept.nonzero().squeeze(1)
    for number, layer in enumerate(layers, start=1):
        attended = _attention(layer, tokens, spans)
        if number == len(layers):
            tokens, attended = tokens.index_select(0, pooled), attended.index_select(0, pooled)
        middle = layer.norm(tokens + layer.out(attended))
        tokens = layer.last_norm(middle + layer.down(layer.activation(layer.up(middle))))
    return _means(tokens, groups)


@dataclass(frozen=True, slots=True)
class _Span:
    """A group's tokens: rows (n, length), where padded the places of those that are there."""

    tokens: int
    rows: int
    length: int
    places: Tensor | None = None
    mask: Tensor | None = None

    @classmethod
    def of(cls, group: Group) -> _Span:
        rows, length = group.ids.shape
        if group.there is None:
            return cls(rows * length, rows, length)
        places = group.there.flatten().nonzero().squeeze(1)
        return cls(len(places), rows, length, places, group.there[:, None, None, :])

    def taken(self, values: Tensor) -> Tensor:
        """Of values for all places those of tokens that are there."""
        return values if self.places is None else values.index_select(0, self.places)


def _attention(layer: Layer, tokens: Tensor, spans: Sequence[_Span]) -> Tensor:
    """What each token gathers from its row (tokens, width), before the layer's `out`."""
    three = (layer.query, layer.key, layer.value)
    weight = torch.cat([linear.weight for linear in three])
    joint = functional.linear(tokens, weight, torch.cat([linear.bias for linear in three]))
    parts = []
    # split and not sliced: on the way back the parts are then put together once
    for span, own in zip(spans, torch.split(joint, [span.tokens for span in spans]), strict=True):
        if span.places is not None:
            room = own.new_zeros(span.rows * span.length, own.shape[1])
            own = room.index_copy(0, span.places, own)
        shaped = own.view(span.rows, span.length, 3, layer.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = shaped.unbind()
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=span.mask)
        flat = mixed.transpose(1, 2).reshape(span.rows * span.length, -1)
        parts.append(span.taken(flat))
    return torch.cat(parts)


def _means(tokens: Tensor, groups: Sequence[Group]) -> Tensor:
    """The mean over each row's pooled tokens, which lie one after the other."""
    counts = torch.cat([group.kept.sum(dim=1) for group in groups])
    owner = torch.arange(len(counts), device=counts.device).repeat_interleave(counts)
    total = torch.zeros(len(counts), tokens.shape[1], device=tokens.device)
    return total.index_add(0, owner, tokens.float()) / counts[:, None]
