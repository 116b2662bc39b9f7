"""A masked model within the page: what the script of the page needs to answer as `ask` does."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.errors import FileError, InputError, parameter
from evenhand.files import document, read_document, replace_file
from evenhand.judging import LEAST_SHARE
from evenhand.lexicon import professions
from evenhand.lexicon.pronoun_sentences import MASK, SENTENCE, pronoun_sentences
from evenhand.lexicon.templates import template_set
from evenhand.models.asking import FORMS, WORDS, find_reference, pronoun_probabilities
from evenhand.text.people import ordinary_words

if TYPE_CHECKING:
    from evenhand.models.masked import MaskedModel

Facts = dict[str, Any]
Embed = Callable[[int], Facts]
"""The facts of a model for a page with room for this number of bytes."""

FILE = "interactive.json"
"""The folder of what an audit saves for the page, beside `results.json`."""
PAGE_BYTES = 15_000_000
"""The size that a page with a model stays under, where the coarsest rounding allows it."""
MOST_WEIGHTS = 10_000_000
BITS = ((10, 10), (9, 10), (9, 9), (8, 9), (8, 8))
"""Bits of the word embeddings and of the layers; a page gets the finest that it has room for."""
FINE_BITS = 16
"""Bits of vectors and of the small matrices on which the probabilities depend most."""
FINE = ("position_embeddings", "token_type_embeddings", "predictions.transform")
UNUSED = ("cls.predictions.decoder.", "bert.pooler.", "bert.embeddings.position_ids")
"""Weights that are those of another name, and what a masked model does not use."""


def check_embeddable(model: MaskedModel) -> None:
    """Raise an error that says what can be embedded if a model cannot."""
    settings: Mapping[str, Any] = getattr(model, "settings", {})
    family = str(settings.get("model_type", "of another kind"))
    weights = sum(tensor.numel() for tensor in _weights(model).values()) if settings else 0
    if (
        family != "bert"
        or settings.get("hidden_act") != "gelu"
        or weights > MOST_WEIGHTS
        or not _has_bert_tokenizer(model)
    ):
        size = f", {weights:,} weights" if weights else ""
        raise InputError(
            f"{parameter('interactive', True)}: expected a masked model of the family bert with "
            f"its WordPiece tokenizer and at most {MOST_WEIGHTS // 10**6} million weights, such as "
            f"mini, got {model.name} ({family}{size})"
        )


def embed(model: MaskedModel, room: int) -> Facts:
    """Everything that the script needs to answer as `evenhand.ask` does, as plain JSON values.

    Parameters
    ----------
    model : MaskedModel
        A masked model for which `check_embeddable` raises no error.
    room : int
        Bytes that the page has for it: the weights are rounded as finely as fits.

    Returns
    -------
    dict
        `weights` as text, their names, shapes and bits, the vocabulary, the pronouns, the bias of
        the model in the built-in sentences, its `limits` in neutral sentences and the other numbers
        by which a lean is judged, and `difference`: the most that rounding changes the
        probability of a pronoun or a bias in the `checked` sentences of `template_sentences`, which
        the rounding does not know.

    """
    from evenhand.models.packing import (
        input_moments,
        pack,
        packed_size,
        round_rows,
        to_text,
        unpack,
        with_weights,
    )

    settings, usual = model.settings, find_reference(model)
    facts = {
        "name": model.name,
        "layers": settings["num_hidden_layers"],
        "heads": settings["num_attention_heads"],
        "width": settings["hidden_size"],
        "epsilon": settings["layer_norm_eps"],
        "longest": model.longest,
        **_tokenizer(model),
        "forms": list(FORMS.values()),
        "biases": [round(float(bias), 4) for bias in usual.biases],
        "frames": [frame.partition(SENTENCE)[0::2] for frame in pronoun_sentences().frames],
        "limits": usual.limits,
        "neutral": usual.neutral,
        "least": LEAST_SHARE,
    }
    weights = _weights(model)
    left = room - len(json.dumps(facts)) - 200 * len(weights)
    for bits in BITS:
        chosen = {name: _bits(name, tensor, *bits) for name, tensor in weights.items()}
        sizes = [packed_size(tensor.shape, chosen[name]) for name, tensor in weights.items()]
        if sum(sizes) * 16 <= left * 13:
            break
    moments = input_moments(model, pronoun_sentences().sentences)
    packed, tensors, rounded = [], [], {}
    for name, tensor in weights.items():
        numbers = tensor.detach().float().cpu().numpy()
        matrix = numbers.reshape(-1, numbers.shape[-1])
        known = moments.get(name) if chosen[name] < FINE_BITS else None
        packed.append(pack(*round_rows(matrix, chosen[name], known), chosen[name]))
        rounded[name] = unpack(packed[-1], matrix.shape, chosen[name]).reshape(numbers.shape)
        rows, columns = matrix.shape
        tensors.append({"name": name, "rows": rows, "columns": columns, "bits": chosen[name]})
    checked = template_sentences(every=4)
    return {
        **facts,
        "bits": sorted(set(bits)),
        "difference": difference(model, with_weights(model, rounded), checked),
        "checked": len(checked),
        "tensors": tensors,
        "weights": to_text(b"".join(packed)),
    }


def template_sentences(every: int = 1) -> list[str]:
    """The built-in templates with every n-th built-in profession, the person masked.

    >>> template_sentences()[0]
    '[MASK] earns a living as a carpenter.'
    """
    return [
        template.text.replace("{person:object}", MASK)
        .replace("{person}", MASK)
        .replace("{profession}", profession.name)
        for template in template_set().templates
        for profession in professions()[::every]
    ]


def difference(model: MaskedModel, other: MaskedModel, texts: list[str]) -> float:
    """The largest difference of the probability of a pronoun, or of a bias, between two models.

    The bias is P(man) / (P(man) + P(woman)) of the pronouns that the first expects.
    """
    own, changed = (pronoun_probabilities(each, texts) for each in (model, other))
    slots = np.array([[WORDS.index(word) for word in forms] for forms in FORMS.values()])
    columns = slots[own[:, slots].sum(axis=2).argmax(axis=1)][:, :2]
    pairs = [np.take_along_axis(table, columns, axis=1) for table in (own, changed)]
    biases = [pair[:, 0] / pair.sum(axis=1) for pair in pairs]
    return float(max(np.abs(own - changed).max(), np.abs(biases[0] - biases[1]).max()))


def save_embedded(folder: str | os.PathLike[str], facts: Mapping[str, Any] | None) -> None:
    """Save what the page of an audit embeds; None removes what an earlier audit saved."""
    path = Path(folder) / FILE
    if facts is None:
        path.unlink(missing_ok=True)
        return
    with replace_file(path) as file:
        file.write(json.dumps(document(**facts)).encode())


def read_embedded(folder: str | os.PathLike[str]) -> Facts | None:
    """What the page of an audit embeds, None if it embeds nothing."""
    path = Path(folder) / FILE
    if not path.exists():
        return None
    facts = read_document(path)
    if "<" in facts["weights"]:  # it stands in the page as it is
        raise FileError(path, "expected packed weights, got a text with '<'")
    return facts


def _weights(model: MaskedModel) -> dict[str, Any]:
    """The weights by name, each once."""
    return {
        name: tensor
        for name, tensor in sorted(model.core.state_dict().items())
        if not name.startswith(UNUSED)
    }


def _bits(name: str, tensor: Any, embeddings: int, layers: int) -> int:
    if tensor.ndim == 1 or any(part in name for part in FINE):
        return FINE_BITS
    return embeddings if "word_embeddings" in name else layers


# ---------------------------------------------------------------------------------- the tokenizer


def _has_bert_tokenizer(model: MaskedModel) -> bool:
    """Whether the script tokenizes as the model's tokenizer does, each pronoun to one piece."""
    from evenhand.models.tokenizer import content

    parts = json.loads(content(model.tokenizer.backend_tokenizer))
    pieces, normalizer = parts["model"], parts["normalizer"] or {}
    return (
        pieces["type"] == "WordPiece"
        and pieces["continuing_subword_prefix"] == "##"
        and pieces["max_input_chars_per_word"] == 100
        and normalizer.get("type") == "BertNormalizer"
        and normalizer["clean_text"] is True
        and normalizer["handle_chinese_chars"] is True
        and parts["pre_tokenizer"] == {"type": "BertPreTokenizer"}
        and not any(
            token["normalized"] or token["lstrip"] or token["rstrip"] or token["single_word"]
            for token in parts["added_tokens"]
        )
        and all(_piece(model, form) is not None for w in WORDS for form in (w, w.capitalize()))
    )


def _piece(model: MaskedModel, word: str) -> int | None:
    """The only piece of a word, None if it has several or is unknown."""
    ids = model.tokenizer(word, add_special_tokens=False)["input_ids"]
    return ids[0] if len(ids) == 1 and ids[0] != model.tokenizer.unk_token_id else None


def _tokenizer(model: MaskedModel) -> Facts:
    from evenhand.models.tokenizer import content

    tokenizer = model.tokenizer
    parts = json.loads(content(tokenizer.backend_tokenizer))
    lower, accents = (parts["normalizer"][name] for name in ("lowercase", "strip_accents"))
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    return {
        "lower": lower,
        "strip": lower if accents is None else accents,
        "ordinary": [] if lower else sorted(ordinary_words()),
        "vocabulary": [token for token, _ in vocabulary],
        "added": {token["content"]: token["id"] for token in parts["added_tokens"]},
        "special": {
            name: getattr(tokenizer, f"{name}_token_id") for name in ("cls", "sep", "mask", "unk")
        },
        "words": {word: [_piece(model, word), _piece(model, word.capitalize())] for word in WORDS},
    }
