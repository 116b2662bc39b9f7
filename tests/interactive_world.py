"""Sentences to compare a model in a page with the one in Python, and its rounded weights."""

from __future__ import annotations

from typing import Any

from evenhand.lexicon.pronoun_sentences import pronoun_sentences
from evenhand.models.masked import MaskedModel
from evenhand.models.packing import packed_size, to_bytes, unpack, with_weights
from evenhand.report.interactive import template_sentences

ROOM = 11_400_000
"""What the page of an audit of everything leaves for a model."""


def sentences(every: int = 1) -> list[str]:
    """The built-in sentences, and the built-in templates with every n-th built-in profession."""
    return [*pronoun_sentences().sentences, *template_sentences(every)]


def rounded(model: MaskedModel, facts: dict[str, Any]) -> MaskedModel:
    """The model with the weights that a page has."""
    content, at, weights = to_bytes(facts["weights"]), 0, {}
    shapes = {name: tensor.shape for name, tensor in model.core.state_dict().items()}
    for tensor in facts["tensors"]:
        name, shape, bits = tensor["name"], (tensor["rows"], tensor["columns"]), tensor["bits"]
        weights[name] = unpack(content[at:], shape, bits).reshape(shapes[name])
        at += packed_size(shape, bits)
    assert at == len(content)
    return with_weights(model, weights)
