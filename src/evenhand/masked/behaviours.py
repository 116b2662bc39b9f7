"""What people do in filtered sentences: the clause around the pronoun, as a phrase without gender.

Ye et al. (2021), §6, ask whether the phrase WEAT agrees with the pronoun score on the sentences
that their filter accepts. From each sentence the clause around the pronoun is taken as its
behaviour phrase, and its association with words for men and women is correlated with the log odds
of a male pronoun at the mask of the same sentence.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from evenhand.errors import FileError, InputError
from evenhand.files import parse_json_line
from evenhand.instruments import Run
from evenhand.masked.metrics.phrases import (
    PERMUTATIONS,
    RESAMPLES,
    Embed,
    correlation_measurement,
    pronoun_odds,
)
from evenhand.masked.model import Model
from evenhand.results import Items, Measurement
from evenhand.statistics.association import association, unit
from evenhand.statistics.correlation import agreement
from evenhand.text.grammar import her_is_possessive, his_is_determiner

__all__ = ["PAPER", "Behaviour", "behaviour", "correlate_sentences", "read_behaviours"]

PAPER = ("knocks the fighter down", "wears a revealing dress")
"""The phrases that Ye et al. (2021), §2.1, name: the first for men, the second for women."""

BOUNDARY = re.compile(
    r"[,;:.!?()\"“”]|\s-+\s|\b(?:and|but|or|nor|while|when|as|because|who|which|that|if|then|before|"
    r"after|until|since|so|although|though|where)\b",
    re.IGNORECASE,
)
NEUTRAL = {"possessive": "the", "absolute": "theirs", "object": "someone", "reflexive": ""}
FEWEST_WORDS = 2


@dataclass(frozen=True, slots=True)
class Behaviour:
    """A filtered sentence, its behaviour phrase ("" where it has none), and the pronoun's role."""

    sentence: str
    masked: str
    phrase: str
    role: str


def behaviour(sentence: str, pronoun: str, offset: int, antecedent: str = "") -> tuple[str, str]:
    """Extract the clause around a pronoun, without the pronoun's gender, and the pronoun's role.

    A subject pronoun is followed by its clause. For any other pronoun the clause begins at the
    nearest boundary before it (punctuation or a conjunction, or the end of the antecedent) and ends
    at the next. The pronoun is replaced by a word without gender. A clause of fewer than two words
    gives "".

    >>> behaviour("The drummer sits at the back tapping her foot, alone.", "her", 37, "The drummer")
    ('sits at the back tapping the foot', 'possessive')
    >>> behaviour("The clerk smiles when she finds the key.", "she", 22, "The clerk")
    ('finds the key', 'subject')
    """
    end = offset + len(pronoun)
    role = _role(sentence, pronoun.lower(), offset, end)
    following = BOUNDARY.search(sentence, end)
    right = sentence[end : following.start() if following else len(sentence)]
    if role == "subject":
        words = right.split()
    else:
        start = max((match.end() for match in BOUNDARY.finditer(sentence, 0, offset)), default=0)
        subject = sentence.find(antecedent, 0, offset) if antecedent else -1
        if subject >= start:
            start = subject + len(antecedent)
        words = [*sentence[start:offset].split(), *NEUTRAL[role].split(), *right.split()]
    return (" ".join(words) if len(words) >= FEWEST_WORDS else ""), role


def _role(sentence: str, pronoun: str, start: int, end: int) -> str:
    if pronoun in ("he", "she"):
        return "subject"
    if pronoun in ("himself", "herself"):
        return "reflexive"
    if pronoun == "her":
        return "possessive" if her_is_possessive(sentence, start, end) else "object"
    if pronoun == "his":
        return "possessive" if his_is_determiner(sentence, start, end) else "absolute"
    return "absolute" if pronoun == "hers" else "object"


def read_behaviours(path: str | os.PathLike[str]) -> list[Behaviour]:
    """Read the sentences that `evenhand text filter` wrote, with their behaviour phrases.

    A repeated sentence counts once.
    """
    from evenhand.text.corpus.compression import open_content, source_name, text_lines

    name = source_name(os.fspath(path))
    distinct: dict[str, Behaviour] = {}
    with open_content(os.fspath(path)) as file:
        for number, line in text_lines(name, file):
            if line.strip():
                row = _row(name, number, line)
                phrase, role = behaviour(
                    row["sentence"], row["pronoun"], row["offset"], row["antecedent"]
                )
                distinct.setdefault(
                    row["sentence"], Behaviour(row["sentence"], row["masked"], phrase, role)
                )
    return list(distinct.values())


def _row(name: str, number: int, line: str) -> Mapping[str, Any]:
    row = parse_json_line(line, name, number)
    needed = {"sentence": str, "masked": str, "pronoun": str, "offset": int, "antecedent": str}
    if not isinstance(row, dict) or any(
        not isinstance(row.get(key), kind) for key, kind in needed.items()
    ):
        problem = (
            f"expected an object with {', '.join(needed)}, as `evenhand text filter` writes it"
        )
        raise FileError(name, problem, line=number)
    return row


def correlate_sentences(
    model: Model,
    sentences: Sequence[Behaviour],
    run: Run = Run(),
    *,
    embed: Embed | None = None,
    source: str = "",
) -> Measurement:
    """Correlate the associations of behaviour phrases with the pronouns of the same sentences.

    Parameters
    ----------
    model : Model
        Predicts the pronouns, and embeds the phrases unless `embed` does.
    sentences : sequence of Behaviour
        As `read_behaviours` reads them.
    run : Run
    embed : Embed, optional
        Another way of embedding, such as `WordMean` on word vectors, called `source`.

    Returns
    -------
    Measurement
        Pearson's r within the roles of the pronoun (subject, possessive …), whose log odds differ
        for reasons of grammar. Parts by "phrases": all sentences, and each role; Spearman's r is a
        part of each. `details["paper"]` has the associations of the paper's own phrases.
    """
    from evenhand.lexicon.phrases import phrases as built_in

    lists = built_in()
    chosen = [s for s in sentences if s.phrase]
    texts = [s.phrase for s in chosen]
    attributes = [list(words) for words in lists.attributes.values()]
    groups = [texts, list(PAPER), *attributes, list(lists.control)]
    every = list(dict.fromkeys(text for group in groups for text in group))
    matrix = np.asarray((embed or model.embed)(every), dtype=float)
    row = {text: i for i, text in enumerate(every) if np.isfinite(matrix[i]).all()}
    chosen = [s for s in chosen if s.phrase in row]
    if len(chosen) < 4:
        raise InputError(
            f"phrases: expected 4 or more filtered sentences with a phrase, got {len(chosen)}"
        )
    centre = matrix[[row[text] for text in lists.control if text in row]].mean(axis=0)
    first, second, phrases, paper = (
        unit(matrix[[row[text] for text in group if text in row]] - centre)
        for group in (*attributes, [s.phrase for s in chosen], list(PAPER))
    )
    scores = association(phrases, first, second)
    masked = [s.masked for s in chosen]
    table, leaning = pronoun_odds(
        model, masked, ["{phrase}"], cache=run.cache, progress=run.progress
    )
    odds = table[:, 0]
    roles = [s.role for s in chosen]
    numbers = {role: i for i, role in enumerate(dict.fromkeys(roles))}
    labels = np.array([numbers[role] for role in roles])

    def part(name: str, members: Any, within: bool) -> Measurement:
        found = agreement(
            scores[members, None],
            odds[members, None],
            labels[members],
            within=within,
            prob=run.prob,
            resamples=RESAMPLES,
            permutations=PERMUTATIONS,
            seed=run.seed,
        )
        pearson, spearman = (
            replace(
                correlation_measurement(
                    query,
                    by,
                    coefficient.interval,
                    coefficient.p_value,
                    found.n,
                    source or model.name,
                    run,
                    interval="Fisher's or bootstrap over sentences, the wider",
                    unit="sentences",
                ),
                details={"draws": found.draws},
            )
            for query, by, coefficient in (
                (name, "phrases", found.pearson),
                ("spearman", "coefficient", found.spearman),
            )
        )
        return replace(pearson, parts=(spearman,))

    everything = np.ones(len(chosen), dtype=bool)
    parts = [part("all sentences", everything, False), part("within roles", everything, True)]
    parts += [
        part(role, labels == number, False)
        for role, number in numbers.items()
        if (labels == number).sum() >= 10
    ]
    used = set(chosen)
    left_out = [s for s in sentences if s not in used]
    columns: dict[str, Any] = {
        "sentence": [s.sentence for s in chosen],
        "phrase": [s.phrase for s in chosen],
        "role": roles,
        "association": scores,
        "log_odds": odds,
        "bias": leaning[:, 0],
    }
    return replace(
        parts[1],
        query="filtered sentences",
        by="",
        parts=tuple(parts),
        items=Items(columns),
        left_out=tuple(f"'{s.sentence[:60]}' (no phrase)" for s in left_out),
        details={
            **parts[1].details,
            "pronouns_of": model.name,
            "centred": True,
            "paper": dict(
                zip(
                    [text for text in PAPER if text in row],
                    association(paper, first, second).tolist(),
                    strict=True,
                )
            ),
        },
    )
