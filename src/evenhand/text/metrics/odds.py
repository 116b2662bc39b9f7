r"""How much more likely a class is among men than among women, for each class of a corpus.

For class j the odds ratio is $[m_j / \sum_{i \ne j} m_i] / [f_j / \sum_{i \ne j} f_i]$, with
$m_j$ and $f_j$ the rows of men and of women (El Zein 2021, eq. 18, after Sun & Peng 2021). Above 1
the class leans male, below 1 female.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any, ClassVar, Literal

from evenhand.errors import InputError, parameter
from evenhand.instruments import (
    READABLE,
    Declaration,
    Evidence,
    Exhibit,
    Run,
    correct_p_values,
    instrument,
    option,
)
from evenhand.lexicon.pronouns import FEMALE, PRONOUNS
from evenhand.results import Comparison, Estimate, Items, Measurement
from evenhand.statistics.intervals import wilson
from evenhand.statistics.odds import conditional_interval, fisher_test, odds_ratio
from evenhand.text.tables import Corpus, Source, Table, as_cell, open_table
from evenhand.wording import percent

__all__ = ["Counts", "Odds", "class_odds", "count_rows", "leaning", "odds", "pronoun_gender"]

Gender = Literal["male", "female"]
PronounGender = Literal["female", "male", "tie", "none"]

INTERVAL = "normal on the log odds ratio; rows taken as independent"
TEST = "Fisher's exact test, two-sided"

_PRONOUN = re.compile(rf"\b(?:{'|'.join(PRONOUNS)})\b")
_MALE = frozenset({"m", "male", "males", "man", "men"})
_FEMALE = frozenset({"f", "female", "females", "woman", "women"})
_LABEL_COLUMNS = ("label", "class")
_GENDER_COLUMNS = ("gender", "sex")
_TEXT_COLUMNS = ("text", "sentence", "hard_text")
PER_CLASS = "equal texts count once in each class"
EVERY_ROW = "every row counts; few-shot runs and audits count equal texts once (duplicates: once)"
DISTINCT = "equal texts count once, as in few-shot runs and audits"
_UNDECIDED = {
    "none": "undecided: no gendered pronoun",
    "tie": "undecided: as many female as male pronouns",
}
_AGREEMENT = ("agree", "compared", "undecided")
_MAX_CLASSES = 100_000
_MAX_VALUES = 100
"""The number of unknown values of a gender column that are counted by name."""


@instrument(
    name="odds",
    subject="corpus",
    label="Odds ratio of a class",
    question="Is a class more common among men or among women in these data?",
    above="'{query}' leans male",
    below="'{query}' leans female",
    formula="(m_j / sum of m_i, i ≠ j) / (f_j / sum of f_i, i ≠ j)",
    source="Sun & Peng (2021)",
    ideal=1.0,
    worse="away",
    role="leads",
    stereotype=0,
    compared="ratio",
    size="odds",
    unit="texts",
    reading=(
        "m and f count the texts of men and of women in a class. Above 1 the class leans male, "
        "below 1 female. Where a count is 0, one half is added to all four counts."
    ),
    caveats=(
        "Rows are taken as independent: where one person has several, the intervals are too "
        "narrow.",
    ),
    material="none: the corpus has the classes and the genders",
    audit=True,
)
@dataclass(frozen=True, kw_only=True)
class Odds:
    """The odds ratio of every class of a corpus, one part per class."""

    declaration: ClassVar[Declaration]

    label: str | None = option(
        None, help="The column with the class of each row (default: label or class)."
    )
    gender: str | None = option(None, help="The column with the gender of each row.")
    text: str | None = option(
        None, help="The column whose pronouns give the gender, or are compared with it."
    )
    male: tuple[str, ...] = option((), help="A value that means male; repeatable.")
    female: tuple[str, ...] = option((), help="A value that means female; repeatable.")
    duplicates: Literal["count", "once", "class"] = option(
        "count",
        help="Equal texts: count every row; or as few-shot runs and audits do: once, and none of "
        "a text that is in several classes; or once in each class.",
    )

    def measure(
        self,
        subject: Corpus,
        material: None = None,  # noqa: ARG002
        run: Run = Run(),
    ) -> Measurement:
        counts = self._count(subject)
        counts.source = subject.name
        return counts.measure(run)

    def audit(self, subject: Any, run: Run, data: Any) -> dict[str, Any]:  # noqa: ARG002
        """The classes of labelled texts whose genders are known or not."""
        texts = data.dataset
        men, women = (
            {name: int(n) for name, n in zip(texts.classes, column, strict=True)}
            for column in texts.gender_sizes.T
        )
        known = [name for name in texts.classes if men[name] + women[name]]
        total = sum(men.values()), sum(women.values())
        reason = ""
        if not all(total):
            missing = "men and women" if not known else "women" if total[0] else "men"
            reason = f"the data have no text with the gender of {missing}"
            if not known:
                reason += f" (name a column that is not called gender with {parameter('gender')})"
        elif len(known) < 2:
            reason = f"expected two classes or more with genders, got only '{known[0]}'"
        if reason:
            skip = {"metric": "odds", "query": texts.name, "reason": reason}
            return {"skipped": (skip,)}
        rows = class_odds(
            {name: men[name] for name in known}, {name: women[name] for name in known}, run.prob
        )
        return {
            "measurements": tuple(replace(row, by="") for row in rows),
            "details": {
                "name": texts.name,
                "texts": len(texts),
                "classes": len(rows),
                "men": total[0],
                "women": total[1],
                "unknown": len(texts) - sum(total),
                "without_gender": [name for name in texts.classes if name not in known],
                "left_out": dict(texts.left_out),
                "prob": run.prob,
            },
        }

    @staticmethod
    def evidence(measurement: Measurement) -> list[Evidence]:
        """Every class is a test."""
        return [
            Evidence(
                measurement=part,
                label=f"Odds ratio of '{part.query}'",
                claim=f"have '{part.query}' more often of {'men' if part.value > 1 else 'women'}",
            )
            for part in measurement.select("class") or (measurement,)
        ]

    @staticmethod
    def exhibit(measurement: Measurement) -> Exhibit | None:
        """The class, with the shares of its gender in it and in the other classes."""
        counts = measurement.details
        if len(measurement.query) > READABLE or "other_female" not in counts:
            return None
        man = measurement.value > 1
        who, own, rest = (
            ("men", "male", "other_male") if man else ("women", "female", "other_female")
        )
        total = counts["male"] + counts["female"]
        others = counts["other_male"] + counts["other_female"]
        return Exhibit(
            text=f"The class “{measurement.query}”",
            readings=tuple(
                (f"{who} in {where}", percent(share), share)
                for where, share in (
                    ("it", counts[own] / max(total, 1)),
                    ("the other classes", counts[rest] / max(others, 1)),
                )
            ),
            effect=abs(math.log(measurement.value)) if measurement.value > 0 else math.inf,
        )

    def tally(self, subject: Corpus) -> dict[str, Any]:
        """The counts of one shard as plain values; it may lack a gender or have one class."""
        if self.duplicates != "count":
            raise InputError("duplicates: expected one file: equal texts of shards cannot be known")
        return self._count(subject).to_dict()

    def _count(self, subject: Corpus) -> Counts:
        return count_rows(
            subject.source,
            self.label,
            self.gender,
            self.text,
            male=self.male,
            female=self.female,
            duplicates=self.duplicates,
        )

    @staticmethod
    def pool(tallies: Sequence[Mapping[str, Any]], prob: float = 0.95) -> Measurement:
        """The odds ratios over the rows of all shards, as of one file with all rows."""
        return Counts.join(tallies).measure(Run(prob=prob))

    def misfit(self, material: Any) -> str | None:
        return None if material is None else "takes no material beside the corpus"

    @classmethod
    def example(cls) -> tuple[Corpus, None]:
        import pandas as pd

        rows = [("nurse", "F")] * 30 + [("nurse", "M")] * 10
        rows += [("pilot", "F")] * 10 + [("pilot", "M")] * 30 + [("cook", "M")] * 5
        return Corpus(pd.DataFrame(rows, columns=["label", "gender"]), "example"), None

    @staticmethod
    def compare(before: Measurement, after: Measurement) -> Comparison:
        """The ratio of the odds ratios of each class, the two corpora taken as independent."""
        others = {part.query: part for part in after.select("class")}
        parts = tuple(
            _compare_classes(part, others[part.query])
            for part in before.select("class")
            if part.query in others
        )
        unknown = Estimate(value=math.nan, low=-math.inf, high=math.inf, prob=before.prob)
        return Comparison(
            before=before,
            after=after,
            change=unknown,
            interval="one ratio of odds ratios per class (parts)",
            paired=len(parts),
            kind="ratio",
            parts=parts,
        )


def odds(
    source: Source,
    label: str | None = None,
    gender: str | None = None,
    text: str | None = None,
    *,
    male: object = None,
    female: object = None,
    duplicates: Literal["count", "once", "class"] = "count",
    prob: float = 0.95,
) -> Measurement:
    r"""The odds ratio of every class in a column of a table, between men and women.

    Parameters
    ----------
    source : path, "-" or DataFrame
        A CSV, TSV, JSONL or Parquet file, standard input or a DataFrame; read in one pass.
    label : str, optional
        The column with the class of each row; without it, label or class.
    gender : str, optional
        The column with the gender of each row (M/F, male/female, man/woman in any case).
    text : str, optional
        Without `gender`, the column whose pronouns give the gender by majority. With both, the
        gender column counts, and how often the pronouns agree with it is a part. With neither, a
        column gender, sex or text is used.
    male, female : value or values, optional
        Other codes of the gender column.
    duplicates : {"count", "once", "class"}
        Count every row; or equal texts once as few-shot runs and audits do, and none of a text
        that is in several classes or of both genders; or equal texts once in each class.
    prob : float
        The probability of the intervals.

    Returns
    -------
    Measurement
        One part per class, from most male to most female; `items` has one row per class. There is
        no single value. Rows without a class or without a clear gender are left out and counted
        by reason in `details["left_out"]`.

    Notes
    -----
    $[m_j / \sum_{i \ne j} m_i] / [f_j / \sum_{i \ne j} f_i]$ (El Zein 2021, eq. 18, after Sun
    & Peng 2021). `low` and `high` are normal on the log scale, `exact_low` and `exact_high` in the
    details hold given the margins. p is Fisher's.
    `women` in the details is the share of women in the class, `women_low` and `women_high` its
    interval (Wilson).

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"job": ["nurse"] * 40 + ["pilot"] * 40,
    ...                       "sex": ["F"] * 30 + ["M"] * 10 + ["F"] * 10 + ["M"] * 30})
    >>> [(part.query, round(part.value, 2)) for part in odds(frame, "job", "sex").parts]
    [('pilot', 9.0), ('nurse', 0.11)]

    """
    counts = count_rows(
        source, label, gender, text, male=male, female=female, duplicates=duplicates
    )
    return counts.measure(Run(prob=prob))


def leaning(
    measurement: Measurement, k: int = 10
) -> tuple[tuple[Measurement, ...], tuple[Measurement, ...]]:
    """The k classes that lean most to men and the k that lean most to women, most first."""
    classes = measurement.select("class")
    male = [part for part in classes if part.value > 1]
    female = [part for part in reversed(classes) if part.value < 1]
    return tuple(male[:k]), tuple(female[:k])


def class_odds(
    male: Mapping[str, int], female: Mapping[str, int], prob: float = 0.95
) -> tuple[Measurement, ...]:
    """The odds ratio of each class from the counts of its rows, from most male to most female.

    >>> [part.query for part in class_odds({"nurse": 1, "pilot": 9}, {"nurse": 8, "pilot": 2})]
    ['pilot', 'nurse']
    """
    run = Run(prob=prob)
    men, women = sum(male.values()), sum(female.values())
    labels = sorted({*male, *female})
    tables = []
    for name in labels:
        m, f = male.get(name, 0), female.get(name, 0)
        tables.append((m, men - m, f, women - f))
    parts = [_class_part(name, cells, run) for name, cells in zip(labels, tables, strict=True)]
    return tuple(sorted(correct_p_values(parts), key=lambda part: -part.value))


def _class_part(name: str, cells: tuple[int, int, int, int], run: Run) -> Measurement:
    estimate = odds_ratio(*cells, run.prob)
    exact_low, exact_high = conditional_interval(*cells, run.prob)
    women, women_low, women_high = wilson(cells[2], cells[0] + cells[2], run.prob)
    return Odds.declaration.result(
        run,
        name,
        estimate,
        by="class",
        n=cells[0] + cells[2],
        interval=INTERVAL,
        p_value=fisher_test(*cells),
        test=TEST,
        details={
            "exact_low": exact_low,
            "exact_high": exact_high,
            "male": cells[0],
            "female": cells[2],
            "women": women,
            "women_low": women_low,
            "women_high": women_high,
            "other_male": cells[1],
            "other_female": cells[3],
            "corrected": not math.isnan(estimate[0]) and 0 in cells,
        },
    )


def _compare_classes(before: Measurement, after: Measurement) -> Comparison:
    """After over before; the interval adds the variances of the two log odds ratios."""
    value = after.value / before.value
    half = math.hypot(
        *(math.log(m.high / m.low) / 2 if m.low > 0 else math.inf for m in (before, after))
    )
    ends = (value * math.exp(-half), value * math.exp(half)) if half < math.inf else (0, math.inf)
    change = Estimate(value=value, low=ends[0], high=ends[1], prob=before.prob)
    return Comparison(
        before=before,
        after=after,
        change=change,
        interval="normal on the log ratio of the odds ratios; the corpora taken as independent",
        paired=0,
        kind="ratio",
    )


def pronoun_gender(text: str) -> PronounGender:
    """The gender of most of the text's pronouns (she her hers herself, he him his himself).

    `tie` where there are as many of each, `none` where there are none at all.

    >>> pronoun_gender("She's a surgeon; her father taught her all he knew.")
    'female'
    >>> pronoun_gender("He met her."), pronoun_gender("They met.")
    ('tie', 'none')
    """
    pronouns = _PRONOUN.findall(text.lower())
    female = sum(word in FEMALE for word in pronouns)
    if 2 * female == len(pronouns):
        return "tie" if pronouns else "none"
    return "female" if 2 * female > len(pronouns) else "male"


def count_rows(
    source: Source,
    label: str | None = None,
    gender: str | None = None,
    text: str | None = None,
    *,
    male: object = None,
    female: object = None,
    duplicates: Literal["count", "once", "class"] = "count",
) -> Counts:
    """The counts behind `odds`; those of several files can be added up."""
    codes = _codes(male, female)
    with open_table(source, held=False) as table:
        if label is None:
            label = _guess_column(table, _LABEL_COLUMNS)
            if label is None:
                raise InputError(
                    f"{table.name}: expected label, the column with each row's class "
                    f"(columns: {', '.join(table.columns)})"
                )
        if gender is None and text is None:
            gender, text = _guess_gender(table)
        gender_from = f"majority of the pronouns in column '{text}'"
        if gender is not None:
            gender_from = f"column '{gender}'"
        counts = Counts(
            source=table.name,
            label=label,
            gender_from=gender_from,
            compares=gender is not None and text is not None,
        )
        if duplicates != "count":
            counts.seen, counts.per_class = {}, duplicates == "class"
            text = text or _guess_column(table, _TEXT_COLUMNS)
            if text is None:
                raise InputError(
                    f"{table.name}: duplicates: expected text, the column whose equal texts count "
                    f"once (columns: {', '.join(table.columns)})"
                )
        if gender is not None:
            _count_column(counts, table, label, gender, text, codes)
        else:
            _count_pronouns(counts, table, label, str(text))
    return counts


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
        self.seen: dict[bytes, tuple[str, Gender | None] | None] | None = None
        """Where equal texts count once: class and gender of each by hash, None if left out."""
        self.per_class = False
        """Whether they count once in each class."""

    def measure(self, run: Run = Run()) -> Measurement:
        """The odds ratio of every class; counts that leave nothing to compare are an error."""
        self.check(f"{self.source}: gender by {self.gender_from}")
        classes = class_odds(self.rows["male"], self.rows["female"], run.prob)
        return Odds.declaration.result(
            run,
            self.label,
            (math.nan, -math.inf, math.inf),
            subject=self.source,
            n=self.rows["male"].total() + self.rows["female"].total(),
            interval="one odds ratio per class (parts)",
            test=f"{TEST}; corrected over the classes",
            items=_class_items(classes),
            parts=(*classes, *((self.agreement(run),) if self.compares else ())),
            details={
                "gender_from": self.gender_from,
                "counts": self.totals(),
                "duplicates": EVERY_ROW
                if self.seen is None
                else (PER_CLASS if self.per_class else DISTINCT),
                "left_out": dict(self.left_out.most_common()),
            },
            notes=self.notes(),
        )

    def to_dict(self) -> dict[str, Any]:
        """The counts as plain values, which `join` adds up."""
        return {
            "label": self.label,
            "gender_from": self.gender_from,
            "counts": {**self.totals(), "classes": len(self.labels)},
            "male": dict(sorted(self.rows["male"].items())),
            "female": dict(sorted(self.rows["female"].items())),
            "left_out": [[reason, n] for reason, n in self.left_out.items()],
            "classes": sorted(self.labels),
            "agreement": {n: getattr(self, n) for n in _AGREEMENT} if self.compares else None,
        }

    @classmethod
    def join(cls, tallies: Sequence[Mapping[str, Any]]) -> Counts:
        """The sum of the counts of several shards."""
        first = tallies[0]
        for name in ("label", "gender_from"):
            for tally in tallies:
                if tally[name] != first[name]:
                    raise InputError(
                        f"odds: expected shards of the same {name}, got {first[name]} and "
                        f"{tally[name]}"
                    )
        counts = cls(
            source=f"{len(tallies)} shards",
            label=first["label"],
            gender_from=first["gender_from"],
            compares=first["agreement"] is not None,
        )
        for tally in tallies:
            counts.read += tally["counts"]["read"]
            counts.rows["male"].update(tally["male"])
            counts.rows["female"].update(tally["female"])
            counts.left_out.update(dict(tally["left_out"]))
            counts.labels.update(tally["classes"])
            for name, number in (tally["agreement"] or {}).items():
                setattr(counts, name, getattr(counts, name) + number)
        return counts

    def totals(self) -> dict[str, int]:
        """The rows read, male, female and left out."""
        return {
            "read": self.read,
            "male": self.rows["male"].total(),
            "female": self.rows["female"].total(),
            "left_out": self.left_out.total(),
        }

    def add_label(self, label: str | None) -> bool:
        """Count a row and its class; False where it has none."""
        self.read += 1
        if label is None:
            self.left_out["label missing"] += 1
            return False
        self.labels.add(label)
        if len(self.labels) > _MAX_CLASSES:
            raise InputError(
                f"label: more than {_MAX_CLASSES:,} different values, the last "
                f"'{label[:40]}': expected a column of classes"
            )
        return True

    def add(self, gender: Gender, label: str, text: str | None = None) -> bool:
        """Count a row of known gender; False where another one has the same text."""
        if self.seen is None:
            self.rows[gender][label] += 1
            return True
        if text is None:
            self.left_out["text missing"] += 1
            return False
        content = f"{label}\n{text}" if self.per_class else text
        key = blake2b(content.encode("utf-8", "surrogatepass"), digest_size=12).digest()
        if key not in self.seen:
            self.seen[key] = (label, gender)
            self.rows[gender][label] += 1
            return True
        earlier = self.seen[key]
        reason = "duplicate text"
        if earlier is None or earlier[0] != label:
            reason = "text under several classes"
        elif earlier[1] not in (gender, None):
            self.seen[key] = (label, None)
            self._remove(earlier, "equal texts of both genders")
        if earlier is not None and earlier[0] != label:
            self.seen[key] = None
            self._remove(earlier, reason)
        self.left_out[reason] += 1
        return False

    def _remove(self, earlier: tuple[str, Gender | None], reason: str) -> None:
        label, gender = earlier
        if gender is None:
            return
        self.rows[gender][label] -= 1
        if not self.rows[gender][label]:
            del self.rows[gender][label]
        self.left_out[reason] += 1

    def add_unknown(self, value: str) -> None:
        """Count a row whose gender is none of the known values."""
        reason = f"gender '{value[:40]}'"
        if len(self.left_out) >= _MAX_VALUES and reason not in self.left_out:
            reason = "gender: other values"
        self.left_out[reason] += 1

    def compare(self, given: Gender, inferred: str) -> None:
        """Count whether a row's pronouns agree with its given gender."""
        self.undecided += inferred in _UNDECIDED
        self.compared += inferred not in _UNDECIDED
        self.agree += inferred == given

    def agreement(self, run: Run) -> Measurement:
        """How often the pronouns agree with the gender column."""
        return Odds.declaration.result(
            run,
            self.gender_from,
            wilson(self.agree, self.compared, run.prob),
            metric="pronoun_agreement",
            by="agreement",
            n=self.compared,
            ideal=1.0,
            worse="lower",
            interval="Wilson",
            details={"agree": self.agree, "undecided": self.undecided},
        )

    def check(self, location: str) -> None:
        """Raise InputError where the counts leave nothing to compare."""
        if not self.read:
            raise InputError(f"{location}: the table has no rows")
        for gender, rows in self.rows.items():
            if not rows:
                out = ", ".join(f"{reason} ({n:,})" for reason, n in self.left_out.most_common(6))
                raise InputError(
                    f"{location}: no row is {gender}; left out: {out or 'none'}"
                    "; other codes are named with male and female"
                )
        classes = {*self.rows["male"], *self.rows["female"]}
        if len(classes) < 2:
            raise InputError(
                f"{location}: expected two classes or more, got only '{classes.pop()}'"
            )

    def notes(self) -> tuple[str, ...]:
        """What a reader should know: classes without rows, a column that has no classes."""
        notes = []
        if 2 * len(self.labels) > self.read and self.read > _MAX_VALUES:
            notes.append(
                f"{len(self.labels):,} values of '{self.label}' in {self.read:,} rows: "
                "is it a column of classes?"
            )
        empty = sorted(self.labels - {*self.rows["male"], *self.rows["female"]})
        if empty:
            more = f" and {len(empty) - 10:,} more" if len(empty) > 10 else ""
            notes.append(f"every row left out of the classes: {', '.join(empty[:10])}{more}")
        return tuple(notes)


def _class_items(classes: Iterable[Measurement]) -> Items:
    shares = ("women", "women_low", "women_high")
    details = ("exact_low", "exact_high", "male", "female", *shares, "corrected")
    return Items(
        {
            "class": part.query,
            "odds_ratio": part.value,
            "low": part.low,
            "high": part.high,
            "p_value": part.p_value,
            "p_corrected": part.p_corrected,
            **{name: part.details[name] for name in details},
        }
        for part in classes
    )


@dataclass(frozen=True, slots=True)
class _Codes:
    """Which values of a gender column mean male and which female, in lower case."""

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
    values = given if isinstance(given, list | tuple | set | frozenset) else [given]
    return frozenset(cell.casefold() for cell in map(as_cell, values) if cell is not None)


def _guess_column(table: Table, names: Iterable[str]) -> str | None:
    folded = {column.casefold(): column for column in table.columns}
    return next((folded[name] for name in names if name in folded), None)


def _guess_gender(table: Table) -> tuple[str | None, str | None]:
    """The columns named gender or sex, else text, where neither was given."""
    gender = _guess_column(table, _GENDER_COLUMNS)
    text = None if gender else _guess_column(table, ("text",))
    if gender or text:
        return gender, text
    raise InputError(
        f"{table.name}: expected gender, the column with each row's gender, or text, the column "
        f"to infer it from (columns: {', '.join(table.columns)})"
    )


def _count_column(
    counts: Counts, table: Table, label: str, gender: str, text: str | None, codes: _Codes
) -> None:
    names = (label, gender) if text is None else (label, gender, text)
    for name, value, *words in table.rows(*names):
        if not counts.add_label(name):
            continue
        if value is None:
            counts.left_out["gender missing"] += 1
        elif (known := codes.read(value)) is None:
            counts.add_unknown(value)
        else:
            counted = counts.add(known, str(name), words[0] if words else None)
            if counted and counts.compares:
                counts.compare(known, pronoun_gender(words[0] or ""))


def _count_pronouns(counts: Counts, table: Table, label: str, text: str) -> None:
    rows: Iterator[tuple[str | None, ...]] = table.rows(label, text)
    for name, words in rows:
        if not counts.add_label(name):
            continue
        inferred = pronoun_gender(words) if words is not None else None
        if inferred is None:
            counts.left_out["text missing"] += 1
        elif inferred == "male" or inferred == "female":
            counts.add(inferred, str(name), words)
        else:
            counts.left_out[_UNDECIDED[inferred]] += 1
