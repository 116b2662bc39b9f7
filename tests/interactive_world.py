"""The model `mini` as a page embeds it, and sentences to compare it with Python on."""

from __future__ import annotations

import base64
from typing import Any

from evenhand.lexicon import professions
from evenhand.lexicon.professions import template_set
from evenhand.lexicon.pronoun_sentences import pronoun_sentences
from evenhand.masked.model import Model
from evenhand.report.interactive import unpack, with_weights


def sentences(every: int = 1) -> list[str]:
    """The built-in sentences, and the built-in templates with every n-th built-in profession."""
    filled = [
        template.text.replace("{person:object}", "{person}")
        .replace("{person}", "[MASK]")
        .replace("{profession}", profession.name)
        for template in template_set().templates
        for profession in professions()[::every]
    ]
    return [*pronoun_sentences().sentences, *filled]


def rounded(model: Model, facts: dict[str, Any]) -> Model:
    """The model with the weights that a page has."""
    content, at, weights = base64.b64decode(facts["weights"]), 0, {}
    shapes = {name: tensor.shape for name, tensor in model.core.state_dict().items()}
    for tensor in facts["tensors"]:
        rows, columns, bits = tensor["rows"], tensor["columns"], tensor["bits"]
        weights[tensor["name"]] = unpack(content[at:], (rows, columns), bits).reshape(
            shapes[tensor["name"]]
        )
        size = 4 * rows + rows * columns + -(-rows * columns * (bits - 8) // 8)
        at += -(-size // 3) * 3
    assert at == len(content)
    return with_weights(model, weights)
