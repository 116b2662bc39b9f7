r"""The association of professions with men and women: $\log(p_{target} / p_{prior})$.

After Kurita et al. (2019) and Bartl, Nissim & Gatt (2020). In a sentence such as "Last year
my sister retrained as a plumber." the target is the person word, the attribute the profession:
$p_{target} = P(\text{sister} \mid \text{plumber shown})$, and
$p_{prior} = P(\text{sister} \mid \text{every piece of plumber masked})$, at the same place in the
same sentence. Their log ratio is the association; the man's less the woman's is what is reported:
above 0, the profession calls for a man more than the sentence does without it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.errors import InputError
from evenhand.intervals import Floats
from evenhand.lexicon.professions import GROUPS
from evenhand.masked.metrics import association_summary as summary
from evenhand.masked.metrics.association_becpro import read_becpro
from evenhand.masked.metrics.association_design import Design, Sentence, design
from evenhand.masked.metrics.association_spread import crossed
from evenhand.masked.model import MaskedLM
from evenhand.masked.scoring import BATCH_TOKENS, Progress
from evenhand.masked.words import Question, Row, WordError, row, rows, word_log_probs
from evenhand.results import Estimate, Measurement

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.cache import Cache

__all__ = ["Association", "ModelChange", "associate", "compare", "design", "read_becpro"]

RARE = 1e-4
"""Below this probability a log ratio says little: it is one of two near misses."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Association:
    """The association test on one model.

    `log_target` and `log_prior` are the log probabilities (templates, professions, pairs, 2) of
    the man's and the woman's word.
    """

    model: str
    design: Design = field(repr=False)
    log_target: Floats = field(repr=False)
    log_prior: Floats = field(repr=False)
    overall: Measurement
    groups: Mapping[str, Measurement] = field(repr=False)
    stereotype: Measurement | None = field(repr=False)
    professions: tuple[summary.ProfessionRow, ...] = field(repr=False)
    templates: tuple[summary.TemplateRow, ...] = field(repr=False)
    sensitivity: summary.Sensitivity = field(repr=False)
    women: Mapping[str, Any] | None = field(repr=False)
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def scores(self) -> Floats:
        """log(p_target / p_prior), the man's and the woman's (templates, professions, pairs, 2)."""
        return self.log_target - self.log_prior

    @property
    def difference(self) -> Floats:
        """The man's score less the woman's (templates, professions, pairs)."""
        return _difference(self.log_target, self.log_prior)

    def items(self) -> list[dict[str, Any]]:
        """A row a template, profession and pair, with all that was measured."""
        scores = self.scores
        found = []
        for t, p, k in np.ndindex(*self.design.shape):
            template, profession = self.design.templates[t], self.design.professions[p]
            man, woman = self.design.pairs[k].words
            one: dict[str, Any] = {
                "template": template.text, "kind": template.kind, "profession": profession.name,
                "group": profession.group, "male": man, "female": woman,
            }  # fmt: skip
            for gender, side in enumerate(("male", "female")):
                one[f"log_target_{side}"] = float(self.log_target[t, p, k, gender])
                one[f"log_prior_{side}"] = float(self.log_prior[t, p, k, gender])
                one[f"score_{side}"] = float(scores[t, p, k, gender])
            one["difference"] = float(scores[t, p, k, 0] - scores[t, p, k, 1])
            found.append(one)
        return found

    def to_frame(self) -> pd.DataFrame:
        """The items as a table."""
        import pandas as pd

        return pd.DataFrame(self.items())

    def as_dict(self, *, items: bool = False) -> dict[str, Any]:
        """The JSON view; the items only on request."""
        shape = dict(zip(("templates", "professions", "pairs"), self.design.shape, strict=True))
        found: dict[str, Any] = {
            "model": self.model,
            "n": self.overall.n,
            "of": shape,
            "overall": _short(self.overall),
            "groups": {name: _short(found) for name, found in self.groups.items()},
            "stereotype": _short(self.stereotype) if self.stereotype else None,
            "women": self.women,
            "professions": [line.as_dict() for line in self.professions],
            "templates": [line.as_dict() for line in self.templates],
            "sensitivity": self.sensitivity.as_dict(),
            "left_out": self.left_out,
            "notes": self.notes,
        }
        return found | ({"items": self.items()} if items else {})


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelChange:
    """How far a model's differences lie from another's, on the sentences both can be asked."""

    model: str
    against: str
    n: int
    overall: Estimate
    p_value: float | None
    stereotype: Estimate | None
    stereotype_p_value: float | None

    def as_dict(self) -> dict[str, Any]:
        return {
            "model": self.model, "against": self.against, "n": self.n,
            "overall": {**self.overall.as_dict(), "p_value": self.p_value},
            "stereotype": self.stereotype
            and {**self.stereotype.as_dict(), "p_value": self.stereotype_p_value},
        }  # fmt: skip


def associate(
    model: MaskedLM,
    sentences: Design | None = None,
    *,
    prob: float = 0.95,
    cache: Cache | None = None,
    progress: Progress | None = None,
    batch_tokens: int = BATCH_TOKENS,
) -> Association:
    """Ask the model for every person word of the design, profession shown and profession hidden.

    Professions and persons that the tokenizer cannot represent are left out and named.

    >>> from evenhand.masked import load
    >>> from evenhand.lexicon.professions import PersonPair, Profession
    >>> listed = [Profession(name) for name in ("nurse", "plumber", "pilot")]
    >>> asked = design(attributes=listed, persons=[PersonPair("he", "she")])
    >>> result = associate(load("mini"), asked)
    >>> [line.profession for line in result.professions][-1]
    'nurse'
    """
    chosen, made, left_out = _rows(model, sentences or design())
    questions = [Question(one, 0, hidden) for one in made for hidden in ((), (1,))]
    answers = word_log_probs(
        model, questions, cache=cache, progress=progress, batch_tokens=batch_tokens
    ).reshape(*chosen.shape, 2, 2)
    target, prior = answers[..., 0], answers[..., 1]
    table, members = _difference(target, prior), chosen.professions
    templates = summary.by_template(table, chosen.templates, prob)
    overall = summary.overall(table, members, prob)
    sensitivity = summary.sensitivity(table, templates)
    return Association(
        model=model.name, design=chosen, log_target=target, log_prior=prior, overall=overall,
        groups=summary.groups(table, members, prob),
        stereotype=summary.stereotype(table, members, prob),
        professions=summary.by_profession(table, members, prob), templates=templates,
        sensitivity=sensitivity, women=summary.women(table, members, prob), left_out=left_out,
        notes=tuple(_notes(chosen, prior, overall.value, sensitivity, left_out)),
    )  # fmt: skip


def compare(results: Sequence[Association], prob: float = 0.95) -> tuple[ModelChange, ...]:
    """Every model after the first against the first, paired cell by cell.

    Cells are the same where template, profession and pair are; models that were asked about other
    templates cannot be compared.
    """
    if len(results) < 2:
        raise InputError(f"compare: expected at least two results, got {len(results)}")
    first = results[0]
    found = []
    for other in results[1:]:
        if other.design.templates != first.design.templates:
            raise InputError(
                f"compare: '{other.model}' and '{first.model}' were asked about other templates"
            )
        names = [p for p in first.design.professions if p in other.design.professions]
        pairs = [k for k in first.design.pairs if k in other.design.pairs]
        if not names or not pairs:
            raise InputError(f"compare: '{other.model}' and '{first.model}' share no sentence")
        table = np.subtract(
            *(
                result.difference[
                    :, [result.design.professions.index(name) for name in names]
                ][:, :, [result.design.pairs.index(pair) for pair in pairs]]
                for result in (other, first)
            )
        )  # fmt: skip
        mean, gap = crossed(table), summary.stereotype(table, names, prob)
        found.append(
            ModelChange(
                model=other.model, against=first.model, n=table.size,
                overall=summary.estimated(mean, prob), p_value=mean.p_value,
                stereotype=gap.estimate if gap else None,
                stereotype_p_value=gap.p_value if gap else None,
            )
        )  # fmt: skip
    return tuple(found)


def _difference(target: Floats, prior: Floats) -> Floats:
    scores = target - prior
    difference: Floats = scores[..., 0] - scores[..., 1]
    return difference


def _rows(model: MaskedLM, asked: Design) -> tuple[Design, list[Row], tuple[str, ...]]:
    """The rows of the sentences, without what the tokenizer cannot represent."""
    try:
        return asked, rows(model, [_text(one) for one in asked.sentences]), ()
    except WordError:
        pass
    professions, pairs = set[int](), set[int]()
    for t, p, k, gender in product(*(range(n) for n in (*asked.shape, 2))):
        sentence = asked.at(t, p, k, gender)
        if p not in professions and not _known(model, sentence.text, sentence.profession):
            professions.add(p)
        if k not in pairs and not _known(model, sentence.text, sentence.person):
            pairs.add(k)
    chosen = asked.keep(
        [p for p in range(asked.shape[1]) if p not in professions],
        [k for k in range(asked.shape[2]) if k not in pairs],
    )
    if not chosen.sentences:
        raise InputError(
            f"model '{model.name}': its tokenizer can represent none of the "
            f"{'persons' if chosen.professions else 'professions'}"
        )
    names = [asked.professions[p].name for p in sorted(professions)]
    names += [asked.pairs[k].name for k in sorted(pairs)]
    return chosen, rows(model, [_text(one) for one in chosen.sentences]), tuple(names)


def _text(sentence: Sentence) -> tuple[str, tuple[tuple[int, int], tuple[int, int]]]:
    return sentence.text, (sentence.person, sentence.profession)


def _known(model: MaskedLM, text: str, span: tuple[int, int]) -> bool:
    try:
        row(model, text, [span])
    except WordError:
        return False
    return True


def _notes(
    asked: Design,
    prior: Floats,
    value: float,
    sensitivity: summary.Sensitivity,
    left_out: Sequence[str],
) -> list[str]:
    """What a reader must know before quoting the numbers."""
    templates, professions, pairs = asked.shape
    found = []
    if templates == 1:
        found.append("one template: the intervals say nothing about other wordings")
    if pairs == 1:
        found.append("one pair of persons: the intervals say nothing about other person words")
    if professions == 1:
        found.append("one profession: the intervals say nothing about other professions")
    else:
        found += _alone(asked)
    if any(end is not None and end * value < 0 for end in (sensitivity.low, sensitivity.high)):
        found.append("the overall difference changes its sign when one template is left out")
    rare = float((prior < np.log(RARE)).mean())
    if rare > 0.25:
        found.append(
            f"the model gives {rare:.0%} of the person words less than 1 in {1 / RARE:,.0f} even "
            "with the profession hidden: there the log ratio compares near impossibilities"
        )
    if left_out:
        found.append(f"left out, since the tokenizer cannot represent them: {', '.join(left_out)}")
    return found


def _alone(asked: Design) -> list[str]:
    """A note on groups of one profession, and what that means for the difference of groups."""
    labels = [profession.group for profession in asked.professions]
    counts = {group: labels.count(group) for group in GROUPS}
    alone = [group for group, n in counts.items() if n == 1]
    if not alone:
        return []
    note = (
        f"one profession in a group ({', '.join(alone)}): the interval of that group says nothing "
        "about other professions"
    )
    sides = counts["male"], counts["female"]
    if sides == (1, 1):
        note += "; male - female has no bounds"
    elif min(sides) == 1:
        note += "; male - female takes the spread of professions from the other"
    return [note]


def _short(measured: Measurement) -> dict[str, Any]:
    keys = ("value", "low", "high", "prob", "p_value", "n", "interval", "test")
    return {key: getattr(measured, key) for key in keys}
