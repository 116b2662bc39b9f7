"""What people do in filtered sentences: the clause around the pronoun, as a phrase without gender.

Ye et al. (2021), §6, ask whether the phrase WEAT agrees with the pronoun score on the sentences
that their filter accepts. From each sentence the clause around the pronoun is taken as its
behaviour phrase, and its association with words for men and women is correlated with the log odds
of a male pronoun at the mask of the same sentence.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.instruments import Instrument, Run, instrument
from evenhand.models.masked import MaskedModel
from evenhand.models.metrics.phrases import (
    CORRELATION,
    Embed,
    WordMean,
    WordVectors,
    correlation,
    embed_known,
    pronoun_odds,
)
from evenhand.results import Items, Measurement
from evenhand.statistics.association import association, unit
from evenhand.text.grammar import her_is_possessive, his_is_determiner
from evenhand.text.tables import Kind, read_records

PAPER = ("knocks the fighter down", "wears a revealing dress")
"""The phrases that Ye et al. (2021), §2.1, name: the first for men, the second for women."""

BOUNDARY = re.compile(
    r"[,;:.!?()\"“”]|\s-+\s|\b(?:and|but|or|nor|while|when|as|because|who|which|that|if|then|before|"
    r"after|until|since|so|although|though|where)\b",
    re.IGNORECASE,
)
NEUTRAL = {"possessive": "the", "absolute": "theirs", "object": "someone", "reflexive": ""}
FEWEST_WORDS = 2
WRITTEN = "sentences that `evenhand filter` wrote"
COLUMNS: dict[str, Kind] = {
    **dict.fromkeys(("sentence", "masked", "pronoun", "antecedent"), str),
    "offset": int,
}


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
    """Read the sentences that `evenhand filter` wrote, with their behaviour phrases.

    A repeated sentence counts once.
    """
    distinct: dict[str, Behaviour] = {}
    for row in read_records(path, WRITTEN, COLUMNS, blank=["antecedent"]):
        phrase, role = behaviour(row["sentence"], row["pronoun"], row["offset"], row["antecedent"])
        distinct.setdefault(
            row["sentence"], Behaviour(row["sentence"], row["masked"], phrase, role)
        )
    return list(distinct.values())


def correlate_sentences(
    model: MaskedModel,
    sentences: Sequence[Behaviour],
    run: Run = Run(),
    *,
    embed: Embed | None = None,
    source: str = "",
) -> Measurement:
    """Correlate the associations of behaviour phrases with the pronouns of the same sentences.

    Parameters
    ----------
    model : MaskedModel
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
    attributes = list(lists.attributes.values())
    every = (text for group in (texts, PAPER, *attributes, lists.control) for text in group)
    vectors = embed_known(embed or model.embed, list(dict.fromkeys(every)))
    chosen = [s for s in chosen if s.phrase in vectors]
    if len(chosen) < 4:
        raise InputError(
            f"phrases: expected 4 or more filtered sentences with a phrase, got {len(chosen)}"
        )
    centre = np.mean([vectors[text] for text in lists.control if text in vectors], axis=0)
    first, second, phrases, paper = (
        unit(
            np.array([vectors[t] for t in group if t in vectors]).reshape(-1, len(centre)) - centre
        )
        for group in (*attributes, [s.phrase for s in chosen], PAPER)
    )
    scores = association(phrases, first, second)
    table, leaning = pronoun_odds(model, [s.masked for s in chosen], ["{phrase}"], **run.querying)
    odds = table[:, 0]
    roles = [s.role for s in chosen]
    counts = Counter(roles)
    labels = np.array([list(counts).index(role) for role in roles])

    def part(name: str, members: NDArray[np.bool_], within: bool) -> Measurement:
        own = scores[members, None], odds[members, None], labels[members]
        return correlation(
            name, *own, source or model.name, run, within=within, unit="sentences", held=""
        )

    everything = np.ones(len(chosen), dtype=bool)
    parts = [part("all sentences", everything, False), part("within roles", everything, True)]
    parts += [part(role, np.array(roles) == role, False) for role in counts if counts[role] >= 10]
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
                    filter(vectors.__contains__, PAPER),
                    association(paper, first, second).tolist(),
                    strict=True,
                )
            ),
        },
    )


@instrument(
    name=CORRELATION,
    subjects=("masked",),
    label="Phrases and pronouns",
    question="Do phrases that lean to one gender come with the pronoun of that gender?",
    formula="Pearson's r of the association of a phrase and the log odds of a male pronoun at the "
    "mask of its sentence, within the roles of the pronoun",
    source="Ye et al. (2021), section 6",
    ideal=None,
    unit="sentences",
    material="sentences that `evenhand filter` wrote (JSON lines)",
    reading="The phrase of a sentence is the clause around its pronoun. Near 1 the two measures "
    "agree, near 0 they have nothing in common.",
    bias=False,
)
class PhrasesPronouns(Instrument):
    """Correlation of phrase associations and pronouns on filtered sentences."""

    requires_material: ClassVar[bool] = True

    embeds: Mapping[str, Embed] = field(default_factory=dict, repr=False)
    """Further ways of embedding, by name."""

    def with_vectors(self, vectors: Mapping[str, WordVectors]) -> PhrasesPronouns:
        """The instrument that also embeds phrases by the mean of these word vectors."""
        return replace(self, embeds={name: WordMean(each) for name, each in vectors.items()})

    def read(self, path: str | os.PathLike[str]) -> list[Behaviour]:
        """The filtered sentences of a file, with their phrases."""
        return read_behaviours(path)

    def measure(
        self, subject: MaskedModel, material: Sequence[Behaviour] | None = None, run: Run = Run()
    ) -> list[Measurement]:
        sentences = material or ()
        return [
            correlate_sentences(subject, sentences, run),
            *(
                correlate_sentences(subject, sentences, run, embed=embed, source=name)
                for name, embed in self.embeds.items()
            ),
        ]

    @classmethod
    def example(cls) -> tuple[MaskedModel, list[Behaviour]]:
        """The embedded model and sentences about four jobs."""
        from evenhand.models.masked import load

        texts = [f"The {job} told us that she finds the key." for job in ("nurse", "cook")]
        texts += [f"The {job} told us that he lost the map." for job in ("guard", "clerk", "pilot")]
        found = []
        for text in texts:
            pronoun = "she" if " she " in text else "he"
            phrase, role = behaviour(text, pronoun, text.index(f" {pronoun} ") + 1)
            masked = text.replace(f" {pronoun} ", " [MASK] ")
            found.append(Behaviour(text, masked, phrase, role))
        return load("mini"), found
