r"""How much more likely a class is among men than among women, for each class of a corpus.

For class j the odds ratio is $[m_j / \sum_{i \ne j} m_i] / [f_j / \sum_{i \ne j} f_i]$, with
$m_j$ and $f_j$ the rows of men and of women (El Zein 2021, eq. 18, after Sun & Peng 2021). Above 1
the class leans male, below 1 female.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any, Literal

from evenhand.arguments import checked
from evenhand.errors import InputError, parameter
from evenhand.instruments import (
    READABLE,
    Evidence,
    Exhibit,
    Instrument,
    Run,
    correct_p_values,
    instrument,
    option,
)
from evenhand.lexicon.pronouns import FEMALE, PRONOUNS
from evenhand.results import Comparison, Estimate, Items, Measurement
from evenhand.statistics.intervals import wilson
from evenhand.statistics.odds import conditional_interval, fisher_test, odds_ratio
from evenhand.text.tables import Corpus, InputTable, Source, as_cell, open_table
from evenhand.wording import percent

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
Duplicates = Literal["count", "once", "class"]
DUPLICATES: dict[Duplicates, str] = {
    "count": "every row counts; few-shot runs and audits count equal texts once (duplicates: once)",
    "once": "equal texts count once, as in few-shot runs and audits",
    "class": "equal texts count once in each class",
}
_UNDECIDED = {
    "none": "undecided: no gendered pronoun",
    "tie": "undecided: as many female as male pronouns",
}
_NO_GENDER = "gender, the column with each row's gender, or text, the column to infer it from"
_NO_TEXT = "text, the column whose equal texts count once"
_AGREEMENT = ("agree", "compared", "undecided")
_MAX_CLASSES = 100_000
_MAX_VALUES = 100
"""The number of unknown values of a gender column that are counted by name."""


@instrument(
    name="odds",
    subjects=("corpus",),
    label="Odds ratio of a class",
    question="Is a class more common among men or among women in these data?",
    material="none: the corpus has the classes and the genders",
    reading=(
        "m and f count the texts of men and of women in a class. Above 1 the class leans male, "
        "below 1 female. Where a count is 0, one half is added to all four counts."
    ),
    above="'{query}' leans male",
    below="'{query}' leans female",
    formula="(m_j / sum of m_i, i ≠ j) / (f_j / sum of f_i, i ≠ j)",
    source="Sun & Peng (2021)",
    ideal=1.0,
    caveats=(
        "Rows are taken as independent: where one person has several, the intervals are too "
        "narrow.",
    ),
    role="leads",
    stereotype=0,
    compared="ratio",
    size="odds",
    unit="texts",
    audit=True,
)
class Odds(Instrument):
    r"""Odds ratio of every class of a corpus between men and women, one part per class.

    The subject is a table of texts: a CSV, TSV, JSONL or Parquet file or a DataFrame, read in one
    pass. Genders are M/F, male/female, man/woman in any case, or the values given. With `gender`
    and `text` the gender column counts, and how often the pronouns agree with it is a part. With
    neither, a column gender, sex or text is used.

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
    >>> frame = pd.DataFrame(
    ...     {
    ...         "job": ["nurse"] * 40 + ["pilot"] * 40,
    ...         "sex": ["F"] * 30 + ["M"] * 10 + ["F"] * 10 + ["M"] * 30,
    ...     }
    ... )
    >>> m = Odds(label="job", gender="sex")(frame)
    >>> [(part.query, round(part.value, 2)) for part in m.parts]
    [('pilot', 9.0), ('nurse', 0.11)]
    """

    label: str | None = option(
        None, help="The column with the class of each row (default: label or class)."
    )
    gender: str | None = option(None, help="The column with the gender of each row.")
    text: str | None = option(
        None, help="The column whose pronouns give the gender, or are compared with it."
    )
    male: tuple[Any, ...] = option((), help="A value that means male; repeatable.")
    female: tuple[Any, ...] = option((), help="A value that means female; repeatable.")
    duplicates: Duplicates = option(
        "count",
        help="Equal texts: count every row; or as few-shot runs and audits do: once, and none of "
        "a text that is in several classes; or once in each class.",
    )

    def measure(self, subject: Corpus, material: None = None, run: Run = Run()) -> Measurement:
        counts = self._count(subject)
        counts.source = subject.name
        return counts.measure(run)

    def audit(self, subject: Any, run: Run, data: Any) -> dict[str, Any]:
        """The classes of labelled texts whose genders are known or not."""
        texts = data.dataset
        sizes = zip(texts.classes, texts.gender_sizes.tolist(), strict=True)
        known = {name: counts for name, counts in sizes if sum(counts)}
        men, women = ({name: counts[side] for name, counts in known.items()} for side in (0, 1))
        total = sum(men.values()), sum(women.values())
        reason = ""
        if not all(total):
            missing = "men and women" if not known else "women" if total[0] else "men"
            reason = f"the data have no text with the gender of {missing}"
            if not known:
                reason += f" (name a column that is not called gender with {parameter('gender')})"
        elif len(known) < 2:
            reason = f"expected two classes or more with genders, got only '{next(iter(known))}'"
        if reason:
            skip = {"metric": "odds", "query": texts.name, "reason": reason}
            return {"skipped": (skip,)}
        rows = class_odds(men, women, run.prob)
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

    def _count(self, subject: Corpus) -> GenderCounts:
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
        return GenderCounts.join(tallies).measure(Run(prob=prob))

    def misfit(self, material: object = None) -> str | None:
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


@checked
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
    duplicates: Duplicates = "count",
) -> GenderCounts:
    """The counts behind `odds`; those of several files can be added up."""
    codes = _codes(male, female)
    with open_table(source, held=False) as table:
        label = label or _column(table, _LABEL_COLUMNS, "label, the column with each row's class")
        if gender is None and text is None:
            gender = table.column(None, _GENDER_COLUMNS)
            text = None if gender else _column(table, ("text",), _NO_GENDER)
        counts = GenderCounts(
            source=table.name,
            label=label,
            gender_from=f"column '{gender}'"
            if gender is not None
            else f"majority of the pronouns in column '{text}'",
            compares=gender is not None and text is not None,
            duplicates=duplicates,
        )
        if duplicates != "count":
            text = text or _column(table, _TEXT_COLUMNS, _NO_TEXT, "duplicates: ")
        for name, value, words in table.rows(label, gender or label, text or label):
            if not counts.add_label(name):
                continue
            if gender is None:
                known = counts.infer(words)
            else:
                known = codes.get((value or "").casefold())
                if known is None:
                    counts.leave_out(f"gender '{value[:40]}'" if value else "gender missing")
            if known and counts.add(known, str(name), words) and counts.compares:
                counts.compare(known, pronoun_gender(words or ""))
    return counts


@dataclass(kw_only=True)
class GenderCounts:
    """Rows by gender and class, and those left out by reason.

    Where equal texts count once, `seen` has the class and gender of each by its hash, None where
    it is left out.
    """

    source: str
    label: str
    gender_from: str
    compares: bool = False
    duplicates: Duplicates = "count"
    read: int = 0
    agree: int = 0
    compared: int = 0
    undecided: int = 0
    rows: dict[Gender, Counter[str]] = field(
        default_factory=lambda: {"male": Counter(), "female": Counter()}
    )
    left_out: Counter[str] = field(default_factory=Counter)
    labels: set[str] = field(default_factory=set)
    seen: dict[bytes, tuple[str, Gender | None] | None] = field(default_factory=dict)

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
                "duplicates": DUPLICATES[self.duplicates],
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
    def join(cls, tallies: Sequence[Mapping[str, Any]]) -> GenderCounts:
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

    def infer(self, text: str | None) -> Gender | None:
        """The gender by the pronouns of a text; None, the row being left out, where undecided."""
        inferred = pronoun_gender(text or "")
        if inferred == "male" or inferred == "female":
            return inferred
        self.leave_out("text missing" if text is None else _UNDECIDED[inferred])
        return None

    def leave_out(self, reason: str) -> None:
        """Count a row that is left out."""
        many = len(self.left_out) >= _MAX_VALUES and reason not in self.left_out
        if many and reason.startswith("gender '"):
            reason = "gender: other values"
        self.left_out[reason] += 1

    def add(self, gender: Gender, label: str, text: str | None) -> bool:
        """Count a row of known gender; False where another one has the same text."""
        if self.duplicates == "count":
            self.rows[gender][label] += 1
            return True
        if text is None:
            self.left_out["text missing"] += 1
            return False
        content = f"{label}\n{text}" if self.duplicates == "class" else text
        key = blake2b(content.encode("utf-8", "surrogatepass"), digest_size=12).digest()
        if key not in self.seen:
            self.seen[key] = (label, gender)
            self.rows[gender][label] += 1
            return True
        earlier = self.seen[key]
        if earlier is None or earlier[0] != label:
            reason = "text under several classes"
            self.seen[key] = None
            self._remove(earlier, reason)
        else:
            reason = "duplicate text"
            if earlier[1] not in (gender, None):
                self.seen[key] = (label, None)
                self._remove(earlier, "equal texts of both genders")
        self.left_out[reason] += 1
        return False

    def _remove(self, earlier: tuple[str, Gender | None] | None, reason: str) -> None:
        label, gender = earlier or ("", None)
        if gender is None:
            return
        self.rows[gender][label] -= 1
        if not self.rows[gender][label]:
            del self.rows[gender][label]
        self.left_out[reason] += 1

    def compare(self, given: Gender, inferred: str) -> None:
        """Count whether a row's pronouns agree with its given gender."""
        self.undecided += inferred in _UNDECIDED
        self.compared += inferred not in _UNDECIDED
        self.agree += inferred == given

    def agreement(self, run: Run) -> Measurement:
        """The share of rows whose pronouns agree with the gender column."""
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
        """Notes for readers: classes without rows, a column that has no classes."""
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


def _codes(male: object, female: object) -> dict[str, Gender]:
    """The meaning of the values of a gender column, in lower case."""
    men, women = _values(male) or _MALE, _values(female) or _FEMALE
    if both := sorted(men & women):
        raise InputError(f"male, female: expected different values, got '{both[0]}' for both")
    meaning: dict[str, Gender] = dict.fromkeys(men, "male")
    return meaning | dict.fromkeys(women, "female")


def _values(given: object) -> frozenset[str]:
    values = given if isinstance(given, list | tuple | set | frozenset) else [given]
    return frozenset(cell.casefold() for cell in map(as_cell, values) if cell is not None)


def _column(table: InputTable, names: Sequence[str], expected: str, option: str = "") -> str:
    """The column of one of the names; without one, an error that says what was expected."""
    if found := table.column(None, names):
        return found
    columns = ", ".join(table.columns)
    raise InputError(f"{table.name}: {option}expected {expected} (columns: {columns})")
