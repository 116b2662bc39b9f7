"""The tab *Sentence*: the pronouns a model expects, and how likely counterfactual versions are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenhand.errors import InputError
from evenhand.explore.subjects import Subjects
from evenhand.lexicon.pronoun_sentences import MASK, pronoun_sentences
from evenhand.models.asking import FORMS, WORDS, answer, positions
from evenhand.models.likelihood import likelihoods
from evenhand.text.rewrite.counterfactuals import counterfactuals

MOST_POSITIONS = 8


def read_sentence(subjects: Subjects, text: str, models: Sequence[str]) -> dict[str, Any]:
    """The answers of each model at each pronoun of a text, the other pronouns as they are."""
    where = positions(text)
    if len(where) > MOST_POSITIONS:
        raise InputError(f"expected at most {MOST_POSITIONS} pronouns, got {len(where)}")
    answers = {
        name: answer(
            subjects.model(name),
            [position.masked for position in where],
            subjects.reference(name),
            subjects.answers(),
        )
        if where
        else []
        for name in models
    }
    return {
        "text": text,
        "positions": [
            {
                "start": position.start,
                "end": position.end,
                "shown": position.shown,
                "masked": position.masked,
                "answers": [
                    {**answers[name][i].to_dict(), "summary": str(answers[name][i]).splitlines()}
                    for name in models
                ],
            }
            for i, position in enumerate(where)
        ],
    }


def read_built_in(subjects: Subjects, model: str) -> dict[str, Any]:
    """The bias of a model in each built-in sentence."""
    return {
        "model": model,
        "bias": subjects.reference(model).biases,
        "sentences": pronoun_sentences().sentences,
    }


def versions(text: str) -> dict[str, str]:
    """The counterfactual versions of a text, each once; with a mask, every pronoun in its place.

    Examples
    --------
    >>> versions("The nurse said she was late.")["swapped"]
    'The nurse said he was late.'
    """
    if MASK not in text:
        [rewritten] = counterfactuals([text])
        first = {own: version for version, own in reversed(rewritten.items())}
        return {version: own for version, own in rewritten.items() if first[own] == version}
    [position] = positions(text)
    before, after = text[: position.start], text[position.end :]
    words = [word.capitalize() if not before.strip() else word for word in WORDS]
    return {word: f"{before}{word}{after}" for word in words}


def read_versions(subjects: Subjects, text: str, models: Sequence[str]) -> dict[str, Any]:
    """The likelihood of each version of a text under each model.

    Of a text with a mask, the versions are its pronouns in the slot that the first model expects.
    """
    rewritten = versions(text)
    if MASK in text:
        [found] = read_sentence(subjects, text, models[:1])["positions"]
        slot = {row["word"] for row in found["answers"][0]["words"]}
        rewritten = {word: own for word, own in rewritten.items() if word.lower() in slot}
        order = {word: i for forms in FORMS.values() for i, word in enumerate(forms)}
        rewritten = dict(sorted(rewritten.items(), key=lambda row: order[row[0].lower()]))
    texts = list(rewritten.values())
    columns = []
    for name in models:
        values, tokens = likelihoods(subjects.model(name), texts, cache=subjects.answers())
        columns.append(
            [
                {"model": name, "log_likelihood": float(value), "tokens": int(count)}
                for value, count in zip(values, tokens, strict=True)
            ]
        )
    return {
        "text": text,
        "versions": [
            {"version": version, "text": own, "models": list(cells)}
            for (version, own), *cells in zip(rewritten.items(), *columns, strict=True)
        ],
    }
