r"""How much more likely a class is among men than among women, for each class of a corpus.

For class j the odds ratio is $[m_j / \sum_{i \ne j} m_i] / [f_j / \sum_{i \ne j} f_i]$, with
$m_j$ and $f_j$ the rows of men and of women (D0 eq. 18, after Sun & Peng 2021). Above 1 the class
leans male, below 1 female. Rows count as independent of each other: where one person has several,
the intervals are too narrow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from evenhand.errors import InputError
from evenhand.intervals import holm, wilson
from evenhand.text.gender_odds.pronouns import pronoun_gender
from evenhand.text.gender_odds.ratio import odds_ratio
from evenhand.text.gender_odds.result import Agreement, Odds, OddsRatio
from evenhand.text.tables import Source, Table, as_cell, open_table

__all__ = ["Counts", "class_odds", "count_rows", "odds"]

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
            source=table.name, label=label, gender_from=found,
            compares=gender is not None and text is not None,
        )  # fmt: skip
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
            label=name, odds_ratio=ratio.value, low=ratio.low, high=ratio.high,
            exact_low=ratio.exact_low, exact_high=ratio.exact_high,
            p_value=ratio.p_value, p_holm=p_holm,
            male=male.get(name, 0), female=female.get(name, 0), corrected=ratio.corrected,
        )
        for name, ratio, p_holm in zip(labels, found, corrected, strict=True)
    ]  # fmt: skip
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
            compared=self.compared, agree=self.agree, undecided=self.undecided,
            share=share, low=low, high=high,
        )  # fmt: skip

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
