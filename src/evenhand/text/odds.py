"""ODDSDOC."""

from __future__ import annotations

import math
import os
import re
import sys
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from evenhand.errors import InputError
from evenhand.intervals import Floats, holm, wilson
from evenhand.lexicon.pronouns import FEMALE, PRONOUNS
from evenhand.results import document, replace_file, save_json
from evenhand.text.tables import Source, Table, as_cell, open_table

if TYPE_CHECKING:
    import pandas as pd

PronounGender = Literal["female", "male", "tie", "none"]

_PRONOUN = re.compile(rf"\b(?:{'|'.join(PRONOUNS)})\b")


def pronoun_gender(text: str) -> PronounGender:
    """The gender of most of the text's pronouns (she her hers herself, he him his himself).

    `tie` where there are as many of each, `none` where there are none at all.

    >>> pronoun_gender("She's a surgeon; her father taught her all he knew.")
    'female'
    >>> pronoun_gender("He met her."), pronoun_gender("They met.")
    ('tie', 'none')
    """
    found = _PRONOUN.findall(text.lower())
    female = sum(word in FEMALE for word in found)
    if 2 * female == len(found):
        return "tie" if found else "none"
    return "female" if 2 * female > len(found) else "male"


_BLOCK = 2048
_NEGLIGIBLE = 50.0
"""Terms this far below the largest, in logarithms, add nothing to a sum of doubles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TableOdds:
    """An odds ratio with its log-normal interval, its exact interval and Fisher's p-value."""

    value: float
    low: float
    high: float
    exact_low: float
    exact_high: float
    p_value: float
    corrected: bool


@lru_cache(maxsize=4096)
def odds_ratio(a: int, b: int, c: int, d: int, prob: float = 0.95) -> TableOdds:
    r"""The odds ratio $ad / bc$ with two intervals and Fisher's exact test (two-sided).

    The first interval is normal on the logarithm, $\log(ad/bc) \pm z
    \sqrt{1/a + 1/b + 1/c + 1/d}$ (Woolf, 1955). Where a cell is 0 one half is added to all four,
    in the value and in this interval alone (Haldane, 1956; Anscombe, 1956), and `corrected` says
    so. The second is `conditional_interval`. A table with an empty row or column says nothing:
    the value is nan and the intervals are all that is possible. A p-value too small for a double
    reads as the smallest one, never as 0.

    >>> found = odds_ratio(30, 70, 10, 90)
    >>> [round(x, 3) for x in (found.value, found.low, found.high)]
    [3.857, 1.767, 8.422]
    >>> odds_ratio(5, 95, 0, 100).corrected
    True
    """
    from scipy.special import ndtri
    from scipy.stats import fisher_exact

    if 0 in (a + b, c + d, a + c, b + d):
        return TableOdds(
            value=math.nan,
            low=0.0,
            high=math.inf,
            exact_low=0.0,
            exact_high=math.inf,
            p_value=1.0,
            corrected=False,
        )
    value, error = _sample_odds(a, b, c, d)
    half = float(ndtri((1 + prob) / 2)) * error
    exact_low, exact_high = conditional_interval(a, b, c, d, prob)
    return TableOdds(
        value=value,
        low=value * math.exp(-half),
        high=value * math.exp(half),
        exact_low=exact_low,
        exact_high=exact_high,
        p_value=max(float(fisher_exact(np.array([[a, b], [c, d]])).pvalue), sys.float_info.min),
        corrected=0 in (a, b, c, d),
    )


def conditional_interval(a: int, b: int, c: int, d: int, prob: float = 0.95) -> tuple[float, float]:
    r"""The exact interval of the odds ratio given the margins (Fisher, 1935; Cornfield, 1956).

    Given its margins the table's first cell is noncentral hypergeometric, $P(x) \propto
    \binom{a+b}{x} \binom{c+d}{a+c-x} \psi^x$. The limits are the $\psi$ at which the tail from the
    observed $a$ on, upward and downward, has probability $(1 - prob)/2$.

    >>> [round(x, 3) for x in conditional_interval(7, 100, 2, 120)]
    [0.772, 42.079]
    """
    tail = (1 - prob) / 2
    above = _lower_limit(b, a, d, c, tail)
    return _lower_limit(a, b, c, d, tail), 1 / above if above > 0 else math.inf


def _sample_odds(a: float, b: float, c: float, d: float) -> tuple[float, float]:
    """The odds ratio and the standard error of its log, one half added where a cell is 0."""
    if 0 in (a, b, c, d):
        a, b, c, d = a + 0.5, b + 0.5, c + 0.5, d + 0.5
    return a * d / (b * c), math.sqrt(1 / a + 1 / b + 1 / c + 1 / d)


def _lower_limit(a: int, b: int, c: int, d: int, tail: float) -> float:
    """The odds ratio at which a first cell of `a` or more has probability `tail`."""
    from scipy.optimize import brentq

    if a == 0 or d == 0:  # the least that the margins allow: every ratio down to 0 fits it
        return 0.0

    def excess(log_ratio: float) -> float:
        up = _log_sum(log_ratio, a, b, c, d)
        down = _log_sum(-log_ratio, b, a, d, c)
        # both sums hold the observed table's own term, 1
        beyond = down + math.log(-math.expm1(-down)) if down > 0 else -math.inf
        return up - float(np.logaddexp(up, beyond)) - math.log(tail)

    centre, error = _sample_odds(a, b, c, d)
    low = high = math.log(centre)
    step = error
    while excess(low) > 0:
        low -= step
        step *= 2
    step = error
    while excess(high) < 0:
        high += step
        step *= 2
    return math.exp(float(brentq(excess, low, high, xtol=1e-12)))


def _log_sum(log_ratio: float, a: int, b: int, c: int, d: int) -> float:
    r"""$\log \sum_{i \ge 0} P(a+i)/P(a)$, from the ratios of neighbouring terms.

    Adding one to the first cell multiplies the probability by $\psi bc / ((a+1)(d+1))$. The terms
    rise to one mode at most and fall ever faster after it, so the sum ends where they are
    negligible.
    """
    longest = min(b, c)
    parts: list[Floats] = [np.zeros(1)]
    largest = last = 0.0
    for start in range(0, longest, _BLOCK):
        i = np.arange(start, min(start + _BLOCK, longest), dtype=float)
        ratios = log_ratio + np.log((b - i) / (a + 1 + i)) + np.log((c - i) / (d + 1 + i))
        terms = last + np.cumsum(ratios)
        parts.append(terms)
        largest, last = max(largest, float(terms.max())), float(terms[-1])
        if last < largest - _NEGLIGIBLE:
            break
    every = np.concatenate(parts)
    return largest + math.log(float(np.exp(every - largest).sum()))


@dataclass(frozen=True, slots=True, kw_only=True)
class OddsRatio:
    """One class: above 1 it leans male, below 1 female.

    `low` and `high` are normal on the log scale, `exact_low` and `exact_high` hold given the
    margins, `p_value` is Fisher's (two-sided), `p_holm` corrected for the number of classes, `male`
    and `female` count the class's rows. Where `corrected`, a cell was 0 and one half was added to
    every cell for `odds_ratio`, `low` and `high`.
    """

    label: str
    odds_ratio: float
    low: float
    high: float
    exact_low: float
    exact_high: float
    p_value: float
    p_holm: float
    male: int
    female: int
    corrected: bool

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How often the majority of a row's pronouns says what its gender column says."""

    compared: int
    agree: int
    undecided: int
    share: float
    low: float
    high: float

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Odds:
    """The odds ratios of all classes, from most male to most female, and what they rest on.

    `counts` has the rows read, male, female and left out; `left_out` counts the last by reason.
    """

    rows: tuple[OddsRatio, ...]
    source: str
    label: str
    gender_from: str
    counts: Mapping[str, int]
    left_out: Mapping[str, int]
    prob: float = 0.95
    agreement: Agreement | None = None
    notes: tuple[str, ...] = ()

    def top(self, k: int = 10) -> tuple[tuple[OddsRatio, ...], tuple[OddsRatio, ...]]:
        """The k classes that lean most to men and the k that lean most to women, most first."""
        male = [row for row in self.rows if row.odds_ratio > 1]
        female = [row for row in reversed(self.rows) if row.odds_ratio < 1]
        return tuple(male[:k]), tuple(female[:k])

    def as_dict(self) -> dict[str, Any]:
        """The JSON view; an interval without an end has null there."""
        names = ("source", "label", "gender_from", "counts", "left_out", "prob", "notes")
        return document(
            **{name: getattr(self, name) for name in names},
            agreement=None if self.agreement is None else self.agreement.as_dict(),
            interval="normal on the log odds ratio (low, high); exact given the margins "
            "(exact_low, exact_high); rows taken as independent",
            test="Fisher's exact test, two-sided; p_holm corrected over the classes",
            rows=[row.as_dict() for row in self.rows],
        )

    def to_frame(self) -> pd.DataFrame:
        """A row a class."""
        import pandas as pd

        return pd.DataFrame([row.as_dict() for row in self.rows])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the classes as .csv or everything as .json, whole or not at all."""
        match Path(path).suffix.lower():
            case ".json":
                save_json(path, self.as_dict())
            case ".csv":
                with replace_file(path) as file:
                    self.to_frame().to_csv(file, index=False)
            case ending:
                raise InputError(f"{os.fspath(path)}: expected .csv or .json, got '{ending}'")

    def __str__(self) -> str:
        male, female = self.top(5)
        lines = [
            f"odds ratios of {len(self.rows)} classes in '{self.label}' of {self.source}: "
            f"{self.counts['male']:,} male, {self.counts['female']:,} female rows "
            f"(gender by {self.gender_from})"
        ]
        for title, rows in (("leaning male", male), ("leaning female", female)):
            lines += [f"{title}:"] if rows else []
            lines += [
                f"  {row.label}: {row.odds_ratio:.3g} [{row.low:.3g}, {row.high:.3g}] "
                f"({self.prob:.0%}){' corrected for an empty cell' if row.corrected else ''}"
                for row in rows
            ]
        out = ", ".join(f"{reason} {n:,}" for reason, n in self.left_out.items())
        return "\n".join([*lines, *([f"left out: {out}"] if out else []), *self.notes])


Gender = Literal["male", "female"]

_MALE = frozenset({"m", "male", "males", "man", "men"})
_FEMALE = frozenset({"f", "female", "females", "woman", "women"})
_GENDER_COLUMNS = ("gender", "sex")
_UNDECIDED = {
    "none": "undecided: no gendered pronoun",
    "tie": "undecided: as many female as male pronouns",
}
_MOST_CLASSES = 100_000
_MOST_VALUES = 100
"""So many unknown values of a gender column are counted by name."""


def odds(
    source: Source,
    label: str,
    gender: str | None = None,
    text: str | None = None,
    *,
    male: object = None,
    female: object = None,
    prob: float = 0.95,
) -> Odds:
    """The odds ratio of every class in column `label` of a CSV, TSV, JSONL or Parquet file.

    `source` may also be "-" (standard input) or a DataFrame; it is read in one pass. The gender of
    a row comes from column `gender` (M/F, male/female, man/woman in any case; other codes are
    named with `male` and `female`, one value or several). Without such a column it is that of
    most pronouns in column `text`. With both, the column counts, and how often the pronouns agree
    is reported. With neither, a column gender, sex or text is looked for. Rows without a class or
    without a clear gender are left out and counted by reason.

    >>> import pandas as pd
    >>> frame = pd.DataFrame({"job": ["nurse"] * 40 + ["pilot"] * 40,
    ...                       "sex": ["F"] * 30 + ["M"] * 10 + ["F"] * 10 + ["M"] * 30})
    >>> [(row.label, round(row.odds_ratio, 2)) for row in odds(frame, "job", "sex").rows]
    [('pilot', 9.0), ('nurse', 0.11)]
    """
    return count_rows(source, label, gender, text, male=male, female=female).odds(prob)


def count_rows(
    source: Source,
    label: str,
    gender: str | None = None,
    text: str | None = None,
    *,
    male: object = None,
    female: object = None,
) -> Counts:
    """The counts that `odds` is made of: those of several files can be added up."""
    codes = _codes(male, female)
    with open_table(source) as table:
        if gender is None and text is None:
            gender, text = _guessed(table)
        found = f"majority of the pronouns in column '{text}'"
        if gender is not None:
            found = f"column '{gender}'"
        counts = Counts(
            source=table.name,
            label=label,
            gender_from=found,
            compares=gender is not None and text is not None,
        )
        if gender is not None:
            _count_column(counts, table, label, gender, text, codes)
        else:
            _count_pronouns(counts, table, label, str(text))
    return counts


def class_odds(
    male: Mapping[str, int], female: Mapping[str, int], prob: float = 0.95
) -> tuple[OddsRatio, ...]:
    """The odds ratio of each class from the counts of its rows, from most male to most female.

    >>> [row.label for row in class_odds({"nurse": 1, "pilot": 9}, {"nurse": 8, "pilot": 2})]
    ['pilot', 'nurse']
    """
    if not 0 < prob < 1:
        raise InputError(f"prob: expected a number between 0 and 1, got {prob}")
    men, women = sum(male.values()), sum(female.values())
    labels = sorted({*male, *female})
    found = [
        odds_ratio(m, men - m, f, women - f, prob)
        for m, f in ((male.get(name, 0), female.get(name, 0)) for name in labels)
    ]
    corrected = holm([ratio.p_value for ratio in found])
    rows = [
        OddsRatio(
            label=name,
            odds_ratio=ratio.value,
            low=ratio.low,
            high=ratio.high,
            exact_low=ratio.exact_low,
            exact_high=ratio.exact_high,
            p_value=ratio.p_value,
            p_holm=p_holm,
            male=male.get(name, 0),
            female=female.get(name, 0),
            corrected=ratio.corrected,
        )
        for name, ratio, p_holm in zip(labels, found, corrected, strict=True)
    ]
    return tuple(sorted(rows, key=lambda row: -row.odds_ratio))


class Counts:
    """Rows by gender and class, and those left out by reason."""

    def __init__(
        self, *, source: str, label: str, gender_from: str, compares: bool = False
    ) -> None:
        self.source, self.label = source, label
        self.gender_from, self.compares = gender_from, compares
        self.read = self.agree = self.compared = self.undecided = 0
        self.rows: dict[Gender, Counter[str]] = {"male": Counter(), "female": Counter()}
        self.left_out: Counter[str] = Counter()
        self.labels: set[str] = set()

    def odds(self, prob: float = 0.95) -> Odds:
        """The odds ratio of every class; counts that leave nothing to compare are refused."""
        self.check(f"{self.source}: gender by {self.gender_from}")
        return Odds(
            rows=class_odds(self.rows["male"], self.rows["female"], prob),
            source=self.source,
            label=self.label,
            gender_from=self.gender_from,
            counts=self.totals(),
            left_out=dict(self.left_out.most_common()),
            prob=prob,
            agreement=self.agreement(prob) if self.compares else None,
            notes=self.notes(self.label),
        )

    def totals(self) -> dict[str, int]:
        """The rows read, male, female and left out."""
        return {
            "read": self.read,
            "male": self.rows["male"].total(),
            "female": self.rows["female"].total(),
            "left_out": self.left_out.total(),
        }

    def labelled(self, label: str | None) -> bool:
        """Take note of a row's class; False where it has none."""
        self.read += 1
        if label is None:
            self.left_out["label missing"] += 1
            return False
        self.labels.add(label)
        if len(self.labels) > _MOST_CLASSES:
            raise InputError(
                f"label: more than {_MOST_CLASSES:,} different values, the last "
                f"'{label[:40]}': expected a column of classes"
            )
        return True

    def unknown(self, value: str) -> None:
        """Count a row whose gender is none of the known values."""
        reason = f"gender '{value[:40]}'"
        if len(self.left_out) >= _MOST_VALUES and reason not in self.left_out:
            reason = "gender: other values"
        self.left_out[reason] += 1

    def compare(self, given: Gender, inferred: str) -> None:
        """Count how a row's pronouns stand to its given gender."""
        self.undecided += inferred in _UNDECIDED
        self.compared += inferred not in _UNDECIDED
        self.agree += inferred == given

    def agreement(self, prob: float) -> Agreement:
        """How often the pronouns say what the column says."""
        share, low, high = wilson(self.agree, self.compared, prob)
        return Agreement(
            compared=self.compared,
            agree=self.agree,
            undecided=self.undecided,
            share=share,
            low=low,
            high=high,
        )

    def check(self, place: str) -> None:
        """Refuse counts that leave nothing to compare."""
        if not self.read:
            raise InputError(f"{place}: the table has no rows")
        for gender, rows in self.rows.items():
            if not rows:
                out = ", ".join(f"{reason} ({n:,})" for reason, n in self.left_out.most_common(6))
                raise InputError(
                    f"{place}: no row is {gender}; left out: {out or 'none'}"
                    "; other codes are named with male and female"
                )
        classes = {*self.rows["male"], *self.rows["female"]}
        if len(classes) < 2:
            raise InputError(f"{place}: expected two classes or more, got only '{classes.pop()}'")

    def notes(self, label: str) -> tuple[str, ...]:
        """What a reader should know: classes that dropped out, a column that has no classes."""
        notes = []
        if 2 * len(self.labels) > self.read and self.read > _MOST_VALUES:
            notes.append(
                f"{len(self.labels):,} values of '{label}' in {self.read:,} rows: "
                "is it a column of classes?"
            )
        gone = sorted(self.labels - {*self.rows["male"], *self.rows["female"]})
        if gone:
            more = f" and {len(gone) - 10:,} more" if len(gone) > 10 else ""
            notes.append(f"every row left out of the classes: {', '.join(gone[:10])}{more}")
        return tuple(notes)


@dataclass(frozen=True, slots=True)
class _Codes:
    """Which values of a gender column say male and which female, in lower case."""

    male: Collection[str]
    female: Collection[str]

    def read(self, value: str) -> Gender | None:
        folded = value.casefold()
        if folded in self.male:
            return "male"
        return "female" if folded in self.female else None


def _codes(male: object, female: object) -> _Codes:
    codes = _Codes(_values(male) or _MALE, _values(female) or _FEMALE)
    both = sorted(set(codes.male) & set(codes.female))
    if both:
        raise InputError(f"male, female: expected different values, got '{both[0]}' for both")
    return codes


def _values(given: object) -> frozenset[str]:
    if given is None:
        return frozenset()
    each = given if isinstance(given, list | tuple | set | frozenset) else [given]
    return frozenset(cell.casefold() for cell in map(as_cell, each) if cell is not None)


def _guessed(table: Table) -> tuple[str | None, str | None]:
    """The columns named gender or sex, else text, where neither was asked for."""
    folded = {column.casefold(): column for column in table.columns}
    for name in _GENDER_COLUMNS:
        if name in folded:
            return folded[name], None
    if "text" in folded:
        return None, folded["text"]
    raise InputError(
        f"{table.name}: expected gender, the column with each row's gender, or text, the column "
        f"to infer it from (columns: {', '.join(table.columns)})"
    )


def _count_column(
    counts: Counts, table: Table, label: str, gender: str, text: str | None, codes: _Codes
) -> None:
    names = (label, gender) if text is None else (label, gender, text)
    for name, value, *words in table.rows(*names):
        if not counts.labelled(name):
            continue
        if value is None:
            counts.left_out["gender missing"] += 1
        elif (known := codes.read(value)) is None:
            counts.unknown(value)
        else:
            counts.rows[known][str(name)] += 1
            if words:
                counts.compare(known, pronoun_gender(words[0] or ""))


def _count_pronouns(counts: Counts, table: Table, label: str, text: str) -> None:
    rows: Iterator[tuple[str | None, ...]] = table.rows(label, text)
    for name, words in rows:
        if not counts.labelled(name):
            continue
        inferred = pronoun_gender(words) if words is not None else None
        if inferred is None:
            counts.left_out["text missing"] += 1
        elif inferred == "male" or inferred == "female":
            counts.rows[inferred][str(name)] += 1
        else:
            counts.left_out[_UNDECIDED[inferred]] += 1
