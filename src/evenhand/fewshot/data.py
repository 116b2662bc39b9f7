"""Labelled texts for few-shot classification: the data set, and how one is read.

A data set has texts, the class of each and, where known, the gender of the person it is about. It
comes from a CSV, TSV, JSONL or Parquet file, a DataFrame, the hub (`hf:NAME`) or is simulated.
"""

from __future__ import annotations

import inspect
import itertools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import check_arguments, checked
from evenhand.display import Shown
from evenhand.errors import FileError, InputError, MissingExtraError, UnknownNameError, parameter
from evenhand.files import HUB
from evenhand.instruments import check_options
from evenhand.statistics.odds import Leaning, LeaningRule, class_leanings, class_odds_ratios
from evenhand.text.tables import Cell, InputTable, Source, open_table

if TYPE_CHECKING:
    from evenhand.fewshot.settings import DataSettings

MALE, FEMALE, UNKNOWN, NEITHER = 0, 1, -1, -2
_CODES = {
    **dict.fromkeys(("m", "male", "man"), MALE),
    **dict.fromkeys(("f", "female", "woman"), FEMALE),
    **dict.fromkeys(("other", "nonbinary", "non-binary", "nb", "x", "neither", "they"), NEITHER),
    **dict.fromkeys(("", "unknown"), UNKNOWN),
}
"""The genders by the usual words, in lower case."""
ODDS = ("odds_ratio", "odds_low", "odds_high")
"""An odds ratio and the ends of its interval, in the record of a run."""


@dataclass(frozen=True, eq=False, repr=False)
class Dataset(Shown):
    """Texts with a class each and, where known, a gender.

    Parameters
    ----------
    texts : tuple of str
    labels : array of int
        The class of each text as an index of `classes`.
    genders : array of int
        0 male, 1 female, -2 neither, -1 unknown.
    classes : tuple of str
    name : str
    left_out : Mapping of str to int
        The number of rows that were left out, by reason.
    rows : array of int, optional
        The row of the source that each text comes from, counted from 0.
    leaning_by : {"odds", "point", "share"} or Mapping of str to str
        How `leaning` is determined; or the gender that each class leans to, male or female, where
        the texts cannot show it, as those of an anti-stereotypical version of a corpus. Classes
        that are absent lean nowhere.
    tested : tuple of str
        The classes to test on, where they are those of another data set (`join_domains`). Each of
        the two has leanings of its own.

    """

    texts: tuple[str, ...] = field(repr=False)
    labels: NDArray[np.int64] = field(repr=False)
    genders: NDArray[np.int8] = field(repr=False)
    classes: tuple[str, ...]
    name: str
    left_out: Mapping[str, int] = field(default_factory=dict)
    rows: NDArray[np.int64] = field(default=None, repr=False)  # type: ignore[arg-type]
    leaning_by: LeaningRule | Mapping[str, Literal["male", "female"]] = "odds"
    tested: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_arguments(Dataset, {"texts": self.texts, "classes": self.classes})
        if isinstance(self.leaning_by, str):
            if self.leaning_by not in get_args(LeaningRule):
                raise UnknownNameError("leaning", self.leaning_by, get_args(LeaningRule))
        elif not {*self.leaning_by.values()} <= {"male", "female"}:
            given = ", ".join(sorted({*self.leaning_by.values()}))
            raise InputError(f"leaning: expected male or female for each class, got {given}")
        count = len(self.texts)
        rows = np.arange(count) if self.rows is None else self.rows
        arrays = (
            ("labels", self.labels, np.int64),
            ("genders", self.genders, np.int8),
            ("rows", rows, np.int64),
        )
        for name, values, dtype in arrays:
            array = np.array(values, dtype=dtype)
            if array.shape != (count,):
                raise InputError(f"{name}: expected {count}, one per text, got shape {array.shape}")
            array.flags.writeable = False
            object.__setattr__(self, name, array)
        if len(set(self.classes)) < len(self.classes):
            raise InputError("classes: expected each name once")
        if count and not (self.labels.min() >= 0 and self.labels.max() < len(self.classes)):
            raise InputError(f"labels: expected 0 to {len(self.classes) - 1}, indices of `classes`")
        if not np.isin(self.genders, (MALE, FEMALE, UNKNOWN, NEITHER)).all():
            raise InputError("genders: expected 0 (male), 1 (female), -2 (neither) or -1 (unknown)")

    @classmethod
    def of(
        cls,
        texts: Iterable[str | None],
        labels: Iterable[str | None],
        genders: Iterable[object] | None = None,
        *,
        name: str,
        leaning_by: LeaningRule = "odds",
        duplicates: Literal["once", "class"] = "once",
    ) -> Dataset:
        """A data set from texts and the names of their classes, cleaned.

        Left out and counted: empty texts, texts without a class, all but the first of equal texts,
        and every copy of a text that appears under several classes, since none of them can be
        trusted; with `duplicates` "class" it counts once in each of them. Copies with both genders
        have the gender unknown.

        >>> data = Dataset.of(["a", "b", "b", " "], ["x", "y", "y", "x"], "MFFM", name="tiny")
        >>> data.classes, data.labels.tolist(), data.genders.tolist(), dict(data.left_out)
        (('x', 'y'), [0, 1], [0, 1], {'duplicate text': 1, 'empty text': 1})
        """
        columns = [list(texts), list(labels)]
        listed_genders = [None] * len(columns[0]) if genders is None else list(genders)
        if not len(columns[0]) == len(columns[1]) == len(listed_genders):
            counts = ", ".join(str(len(column)) for column in (*columns, listed_genders))
            raise InputError(f"{name}: expected as many texts, labels and genders, got {counts}")
        left: Counter[str] = Counter()
        copies: dict[tuple[str, str], list[tuple[int, str, int]]] = {}
        for row, (text, label, gender) in enumerate(zip(*columns, listed_genders, strict=True)):
            text, label = (text or "").strip(), (label or "").strip()
            if text and label:
                try:
                    key = (text, label if duplicates == "class" else "")
                    copies.setdefault(key, []).append((row, label, gender_code(gender)))
                except InputError as error:
                    raise InputError(f"{name}, row {row + 1}: {error}") from None
            else:
                left["no class" if text else "empty text"] += 1
        accepted: list[tuple[str, int, str, int]] = []
        for (text, _), same in copies.items():
            row, label, _ = same[0]
            if any(other != label for _, other, _ in same):
                left["text under several classes"] += len(same)
                continue
            if len(same) > 1:
                left["duplicate text"] += len(same) - 1
            known = {gender for _, _, gender in same} - {UNKNOWN}
            accepted.append((text, row, label, known.pop() if len(known) == 1 else UNKNOWN))
        if not accepted:
            reasons = ", ".join(f"{reason}: {count}" for reason, count in left.items())
            raise InputError(f"{name}: no text with a class is left ({reasons or 'no rows'})")
        classes = tuple(sorted({label for _, _, label, _ in accepted}))
        index = {label: number for number, label in enumerate(classes)}
        return cls(
            texts=tuple(text for text, _, _, _ in accepted),
            labels=np.array([index[label] for _, _, label, _ in accepted]),
            genders=np.array([gender for _, _, _, gender in accepted]),
            classes=classes,
            name=name,
            left_out=dict(sorted(left.items())),
            rows=np.array([row for _, row, _, _ in accepted]),
            leaning_by=leaning_by,
        )

    def __len__(self) -> int:
        return len(self.texts)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """How many texts each class has."""
        return np.bincount(self.labels, minlength=len(self.classes))

    @cached_property
    def gender_sizes(self) -> NDArray[np.int64]:
        """How many texts of men and of women each class has, (classes, 2)."""
        return np.stack([self._count(gender) for gender in (MALE, FEMALE)], axis=1)

    @cached_property
    def neither_sizes(self) -> NDArray[np.int64]:
        """How many texts of persons who are neither men nor women each class has."""
        return self._count(NEITHER)

    def _count(self, gender: int) -> NDArray[np.int64]:
        """How many texts of a gender each class has."""
        return np.bincount(self.labels[self.genders == gender], minlength=len(self.classes))

    @property
    def share_of_women(self) -> NDArray[np.float64]:
        """The share of women in each class among the texts of known gender, NaN without any."""
        known = self.gender_sizes.sum(axis=1)
        return np.where(known, self.gender_sizes[:, FEMALE] / np.maximum(known, 1), np.nan)

    @cached_property
    def odds_ratios(self) -> NDArray[np.float64]:
        """The odds ratio of each class, men to women, against the other classes: value, low, high.

        The 95 % interval is normal on the logarithm; NaN, from 0 to infinity, where it is not
        defined (`evenhand.statistics.odds.class_odds_ratios`).
        """
        result = np.empty((len(self.classes), len(ODDS)))
        for own in self._domains:
            result[own] = class_odds_ratios(*self.gender_sizes[own].T.tolist())
        return result

    @cached_property
    def leaning(self) -> tuple[Leaning, ...]:
        """The gender that each class leans to: male, female, even, or unknown.

        By "odds" a class leans where the interval of its odds ratio excludes 1, by "point" the odds
        ratio itself decides, by "share" which gender has more texts in the class; or it is given.

        >>> rows = [("a", "M")] * 30 + [("a", "F")] * 20 + [("b", "M")] * 60 + [("b", "F")] * 5
        >>> texts, (labels, genders) = map(str, range(115)), zip(*rows)
        >>> data = Dataset.of(texts, labels, genders, name="tiny")
        >>> data.leaning, replace(data, leaning_by="share").leaning
        (('female', 'male'), ('male', 'male'))
        """
        if not isinstance(self.leaning_by, str):
            sides: Mapping[str, Leaning] = self.leaning_by
            return tuple(sides.get(name, "even") for name in self.classes)
        result: list[Leaning] = ["unknown"] * len(self.classes)
        for own in self._domains:
            men, women = self.gender_sizes[own].T.tolist()
            for index, side in zip(own, class_leanings(men, women, self.leaning_by), strict=True):
                result[index] = side
        return tuple(result)

    @property
    def _domains(self) -> list[list[int]]:
        """The classes of each data set that these texts are from."""
        own: list[list[int]] = [[], []]
        for index, name in enumerate(self.classes):
            own[name in self.tested].append(index)
        return [indices for indices in own if indices]

    @cached_property
    def digest(self) -> str:
        """A hash of the texts, their classes and genders; the name does not enter."""
        lengths = np.array([len(text) for text in self.texts], dtype="<i8")
        digest = blake2b(digest_size=16)
        for part in (
            "\n".join(self.classes).encode(),
            lengths.tobytes(),
            "".join(self.texts).encode("utf-8", "surrogatepass"),
            self.labels.astype("<i8").tobytes(),
            self.genders.tobytes(),
        ):
            digest.update(len(part).to_bytes(8, "little"))
            digest.update(part)
        return digest.hexdigest()

    def subset(self, classes: Iterable[str]) -> Dataset:
        """The texts of these classes only, in their order here."""
        chosen = set(self.indices(classes))
        return self._select([index for index in range(len(self.classes)) if index in chosen])

    def at_least(self, count: int, *, each_gender: int = 0) -> Dataset:
        """Without classes of fewer than `count` texts, or fewer than `each_gender` of one gender.

        >>> data = Dataset.of(["a", "b", "c"], ["x", "x", "y"], name="tiny").at_least(2)
        >>> data.classes, dict(data.left_out)
        (('x',), {"class 'y': fewer than 2 texts": 1})
        """
        left = dict(self.left_out)
        large = []
        for index, name in enumerate(self.classes):
            size, fewest = int(self.sizes[index]), int(self.gender_sizes[index].min())
            if size < count:
                left[f"class '{name}': fewer than {count} texts"] = size
            elif fewest < each_gender:
                left[f"class '{name}': fewer than {each_gender} texts of one gender"] = size
            else:
                large.append(index)
        if not large:
            gender = f", {each_gender} of each gender," if each_gender else ""
            raise InputError(f"{self.name}: no class has {count} texts{gender} or more")
        return self._select(large, left)

    def indices(self, classes: Iterable[str]) -> list[int]:
        """The indices of the named classes in `classes`; each may be named once."""
        if isinstance(classes, str):
            raise InputError(f"classes: expected a list of names, got the text {classes!r}")
        known = {name: index for index, name in enumerate(self.classes)}
        result: list[int] = []
        for name in classes:
            if name not in known:
                raise UnknownNameError("class", name, self.classes)
            if known[name] in result:
                raise InputError(f"classes: expected each once, got '{name}' twice")
            result.append(known[name])
        return result

    def to_dict(self) -> dict[str, Any]:
        """The record of the data in the folder of a run."""
        return {
            "name": self.name,
            "texts": len(self),
            "digest": self.digest,
            "left_out": dict(self.left_out),
            "leaning_by": self.leaning_by if isinstance(self.leaning_by, str) else "given",
            **({"tested": list(self.tested)} if self.tested else {}),
            "classes": {
                name: {
                    "texts": int(self.sizes[i]),
                    "men": int(self.gender_sizes[i, MALE]),
                    "women": int(self.gender_sizes[i, FEMALE]),
                    "neither": int(self.neither_sizes[i]),
                    "leaning": self.leaning[i],
                    **dict(zip(ODDS, self.odds_ratios[i].tolist(), strict=True)),
                }
                for i, name in enumerate(self.classes)
            },
        }

    def _select(self, indices: list[int], left_out: Mapping[str, int] | None = None) -> Dataset:
        new = np.full(len(self.classes), -1)
        new[indices] = np.arange(len(indices))
        rows = np.flatnonzero(new[self.labels] >= 0)
        return replace(
            self,
            texts=tuple(self.texts[row] for row in rows),
            labels=new[self.labels[rows]],
            genders=self.genders[rows],
            classes=tuple(self.classes[index] for index in indices),
            tested=tuple(self.classes[i] for i in indices if self.classes[i] in self.tested),
            rows=self.rows[rows],
            left_out=self.left_out if left_out is None else left_out,
        )

    def _headline(self) -> str:
        return f"{self.name}: {len(self):,} texts of {len(self.classes)} classes"

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        genders = {MALE: "male", FEMALE: "female"}
        return [
            {"text": text, "label": self.classes[label], "gender": genders.get(int(gender), "")}
            for text, label, gender in zip(self.texts, self.labels, self.genders, strict=True)
        ]


def gender_code(
    value: object,
    male: str | None = None,
    female: str | None = None,
    neither: str | None = None,
) -> int:
    """0 for a man, 1 for a woman, -2 for a person who is neither (other, nonbinary, nb, x, they),
    -1 where unknown; `male`, `female` and `neither` name other codes.

    Numbers are taken as they are (0, 1, -1, -2); as text they must be named, since files differ.

    >>> gender_code("F"), gender_code("Male"), gender_code(None), gender_code("2", female="2")
    (1, 0, -1, 1)
    >>> gender_code("non-binary"), gender_code("unknown")
    (-2, -1)
    """
    if isinstance(value, str):
        for other, code in ((male, MALE), (female, FEMALE), (neither, NEITHER)):
            if other == value:
                return code
        known = _CODES.get(value.strip().lower())
        if known is not None:
            return known
    elif value is None:
        return UNKNOWN
    elif not isinstance(value, bool) and value in (MALE, FEMALE, UNKNOWN, NEITHER):
        return int(value)
    raise InputError(
        "gender: expected M or F, male or female (other codes are named with "
        f"{parameter('male')} and {parameter('female')}), got {value!r}"
    )


PROFESSIONS = (
    *("accountant", "architect", "attorney", "chiropractor", "comedian", "composer", "dentist"),
    *("dietitian", "dj", "filmmaker", "interior_designer", "journalist", "model", "nurse"),
    *("painter", "paralegal", "pastor", "personal_trainer", "photographer", "physician", "poet"),
    *("professor", "psychologist", "rapper", "software_engineer", "surgeon", "teacher"),
    "yoga_teacher",
)
"""The professions of Bias in Bios (De-Arteaga et al. 2019) in the order of the hub's numbers."""


@dataclass(frozen=True, slots=True)
class ColumnLayout:
    """The columns of a published data set, and its numeric codes where it has some.

    `gender` may be absent from a file: the genders are then unknown. `male` and `female` are codes
    besides the usual words, `labels` the names of classes given as numbers from 0.
    """

    name: str
    text: str
    label: str
    gender: str = ""
    male: str | None = None
    female: str | None = None
    labels: tuple[str, ...] = ()


LAYOUTS = (
    ColumnLayout("Bias in Bios", "hard_text", "profession", "gender", "0", "1", PROFESSIONS),
    ColumnLayout("biographies", "text", "occupation", "gender"),
    ColumnLayout("WikipediaGenderEvents", "Text", "Occupation", "Gender"),
    ColumnLayout("intents", "sentence", "label"),
    ColumnLayout("plain", "text", "label", "gender"),
)
"""The known layouts, tried in this order."""


@checked
def read(
    source: Source,
    *,
    text: str | None = None,
    label: str | None = None,
    gender: str | None = None,
    male: str | None = None,
    female: str | None = None,
    neither: str | None = None,
    name: str | None = None,
    leaning: LeaningRule = "odds",
    duplicates: Literal["once", "class"] = "once",
) -> Dataset:
    """Read labelled texts.

    Parameters
    ----------
    source : path, DataFrame or str
        A CSV, TSV, JSONL or Parquet file (compressed too), a DataFrame, `hf:NAME` (all parts of a
        data set of the hub), or `simulated` with its parameters, such as `simulated:leak=0.8`.
    text, label, gender : str, optional
        The columns; by default those of the first of `LAYOUTS` that fits.
    male, female, neither : str, optional
        Codes for the genders other than M and F, male and female, and than other, nonbinary, x and
        they. Of numeric codes only those of Bias in Bios are known (0 male, 1 female).
    name : str, optional
        The name of the data set; by default that of the source.
    leaning : {"odds", "point", "share"}
        How the gender that a class leans to is determined; see `Dataset.leaning`.
    duplicates : {"once", "class"}
        Whether a text under several classes is left out, or counts once in each of them.

    Returns
    -------
    Dataset
        Cleaned as `Dataset.of` does.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"bio": ["a", "b"], "job": ["cook", "poet"], "sex": ["F", "M"]})
    >>> read(table, text="bio", label="job", gender="sex").genders.tolist()
    [1, 0]

    """
    columns = {"text": text, "label": label, "gender": gender}
    columns |= {"male": male, "female": female, "neither": neither}
    if isinstance(source, str):
        if source.partition(":")[0] == SIMULATED and not Path(source).exists():
            return replace(simulated(source), leaning_by=leaning)
        if source.startswith(HUB):
            return _collect(open_hub(source), name or source, leaning, duplicates, columns)
    file_name = Path(source).name if isinstance(source, str | os.PathLike) else "DataFrame"
    with open_table(source) as table:
        return _collect(table, name or file_name, leaning, duplicates, columns)


def join_domains(training: Dataset, test: Dataset) -> Dataset:
    """One data set to train on the classes of the first and to test on those of the second.

    The classes of the test are new ones: classes of the first with the name of one of them, up to
    case, underscores and a final s, are left out. So are texts of the first that the second has.

    >>> bios = Dataset.of("abce", ["poet", "chef", "judge", "judge"], name="bios")
    >>> joined = join_domains(bios, Dataset.of("cdd", ["Chefs"] * 3, name="events"))
    >>> joined.name, joined.classes, joined.tested, dict(joined.left_out)["class of the test"]
    ('bios, tested on events', ('judge', 'poet', 'Chefs'), ('Chefs',), 1)
    """

    def bare(name: str) -> str:
        return " ".join(name.casefold().replace("_", " ").split()).removesuffix("s")

    new = {bare(name) for name in test.classes}
    kept = [index for index, name in enumerate(training.classes) if bare(name) not in new]
    if not kept:
        raise InputError(f"{training.name}: expected classes that {test.name} has not, got none")
    first = training._select(kept)
    known = set(test.texts)
    rows = [row for row, text in enumerate(first.texts) if text not in known]
    left = Counter({**training.left_out}) + Counter({**test.left_out})
    left["class of the test"] = len(training) - len(first)
    left["text of the test"] = len(first) - len(rows)
    return replace(
        first,
        texts=(*(first.texts[row] for row in rows), *test.texts),
        labels=np.concatenate([first.labels[rows], len(kept) + test.labels]),
        genders=np.concatenate([first.genders[rows], test.genders]),
        classes=(*first.classes, *test.classes),
        name=f"{training.name}, tested on {test.name}",
        left_out={reason: count for reason, count in left.items() if count},
        rows=np.concatenate([first.rows[rows], test.rows]),
        tested=test.classes,
    )


def read_dataset(settings: DataSettings) -> Dataset:
    """Read the texts that the settings name, without the classes that are too small."""
    check_options(settings)
    if settings.test_data is not None:
        given = (settings.data, settings.test_data)
        return join_domains(
            *(read_dataset(replace(settings, data=data, test_data=None)) for data in given)
        )
    columns: dict[str, Any] = settings.columns
    simulated = settings.data.partition(":")[0] == SIMULATED and not Path(settings.data).exists()
    if columns and simulated:
        raise InputError(f"{next(iter(columns))}: simulated data have no columns to name")
    try:
        dataset = read(
            settings.data, **columns, leaning=settings.leaning, duplicates=settings.duplicates
        )
    except FileNotFoundError:
        problem = "no such file, and not simulated; a data set of the hub is named hf:NAME"
        raise FileError(settings.data, problem) from None
    if settings.at_least or settings.each_gender:
        dataset = dataset.at_least(settings.at_least or 1, each_gender=settings.each_gender or 0)
    return dataset


def _collect(
    table: InputTable,
    name: str,
    leaning: LeaningRule,
    duplicates: Literal["once", "class"],
    columns: Mapping[str, str | None],
) -> Dataset:
    layout = _layout(table, columns)
    given = {name: columns[name] for name in ("male", "female", "neither")}
    for one, other in itertools.combinations(given, 2):
        if given[one] is not None and given[one] == given[other]:
            names = f"{parameter(one)}, {parameter(other)}"
            raise InputError(f"{names}: expected different values, got '{given[one]}' for both")
    own = {"male": layout.male, "female": layout.female, "neither": None}
    codes = {name: own[name] if code is None else code for name, code in given.items()}
    wanted = [layout.text, layout.label, *([layout.gender] if layout.gender else [])]
    texts: list[Cell] = []
    labels: list[Cell] = []
    genders: list[int] = []
    for number, row in enumerate(table.rows(*wanted), 1):
        texts.append(row[0])
        try:
            labels.append(_class_name(row[1], layout))
            genders.append(gender_code(row[2] if layout.gender else None, **codes))
        except InputError as error:
            raise FileError(table.name, f"row {number}: {error}") from None
    try:
        return Dataset.of(
            texts, labels, genders, name=name, leaning_by=leaning, duplicates=duplicates
        )
    except InputError as error:
        raise FileError(table.name, str(error).removeprefix(f"{name}: ")) from None


def _class_name(cell: Cell, layout: ColumnLayout) -> Cell:
    if cell is None or not layout.labels or not cell.lstrip("-").isdecimal():
        return cell
    number = int(cell)
    if not 0 <= number < len(layout.labels):
        raise InputError(
            f"{layout.label}: expected a name or 0 to {len(layout.labels) - 1}, got {cell}"
        )
    return layout.labels[number]


def _layout(table: InputTable, columns: Mapping[str, str | None]) -> ColumnLayout:
    """The first known layout that fits, with the given columns instead of its own."""
    text, label, gender = (columns[name] for name in ("text", "label", "gender"))
    for option, column in (("text", text), ("label", label), ("gender", gender)):
        if column is not None and column not in table.columns:
            problem = f"{option}: {UnknownNameError('column', column, table.columns)}"
            raise FileError(table.name, problem)
    for known in LAYOUTS:
        chosen = replace(known, text=text or known.text, label=label or known.label)
        if {chosen.text, chosen.label} <= set(table.columns):
            own = (chosen.text, chosen.label) == (known.text, known.label)
            column = gender or (known.gender if known.gender in table.columns else "")
            if not own or column != known.gender:
                chosen = replace(chosen, male=None, female=None)
            return replace(chosen, gender=column, labels=known.labels if own else ())
    raise FileError(
        table.name,
        f"expected columns {', '.join(_expected(text, label))}, or others named with "
        f"{parameter('text')} and {parameter('label')}; the columns are "
        f"{', '.join(table.columns) or 'none'}",
    )


def _expected(text: str | None, label: str | None) -> list[str]:
    """The pairs of columns that would fit, each once."""
    pairs = [f"{text or known.text} and {label or known.label}" for known in LAYOUTS]
    return [*dict.fromkeys(pairs[:-1]), f"or {pairs[-1]}"] if len(set(pairs)) > 1 else pairs[:1]


SIMULATED = "simulated"
"""Simulated biographies by name: `simulated`, or `simulated:leak=0.8,per_class=300`."""


def simulated(source: str = SIMULATED) -> Dataset:
    """The data set of `simulate.biographies`, with its parameters after a colon.

    >>> data = simulated("simulated:leak=0.8,per_class=5")
    >>> data.name, len(data), len(data.classes)
    ('simulated:leak=0.8,per_class=5', 140, 28)
    """
    from evenhand.simulate.biographies import biographies

    drawn = biographies(**_parameters(source, biographies))
    return Dataset.of(drawn.texts, drawn.occupations, drawn.genders, name=source)


def _parameters(source: str, function: Callable[..., object]) -> dict[str, Any]:
    """The text after the colon as arguments of the function."""
    known = {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if isinstance(parameter.default, int | float)
    }
    given: dict[str, Any] = {}
    for part in source.partition(":")[2].split(","):
        if not part:
            continue
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if name not in known:
            raise UnknownNameError("parameter of simulated data", name, known)
        if name in given:
            raise InputError(f"data '{source}': {name}: expected once, got it twice")
        kind = type(known[name])
        try:
            given[name] = kind(value)
        except ValueError:
            number = "whole number" if kind is int else "number"
            raise InputError(
                f"data '{source}': {name}: expected a {number} such as {name}={known[name]}, "
                f"got '{value if equals else part}'"
            ) from None
    return given


def open_hub(source: str) -> InputTable:
    """All parts (train, test …) of a data set of the hub, by `hf:NAME`, as one table.

    Columns whose values the hub stores as numbers with names are given by name.
    """
    try:
        datasets = import_module("datasets")
    except ImportError:
        raise MissingExtraError("datasets", f"data '{source}'", "evenhand[hub]") from None
    from evenhand.models.sources import offline, reachable

    load: Any = datasets.load_dataset
    # versions before 4 run code of the hub if they may, and ask on stdin whether they may
    asks = "trust_remote_code" in inspect.signature(load).parameters
    options = {"trust_remote_code": False} if asks else {}
    try:
        with nullcontext() if reachable() else offline():
            loaded = load(source.removeprefix(HUB), **options)
    except Exception as error:  # the package raises of every kind, network errors among them
        reason = str(error).strip().partition("\n")[0] or "no reason given"
        raise InputError(
            f"{source}: expected a data set of the hub and a network to fetch it by, "
            f"got {type(error).__name__}: {reason}"
        ) from error
    parts = list(loaded.values())
    columns = tuple(parts[0].column_names) if parts else ()
    for part in parts:
        if set(part.column_names) != set(columns):
            raise FileError(source, "expected the same columns in all its parts, got others")

    def read(names: Sequence[str]) -> Iterator[tuple[int, Sequence[object]]]:
        number = 0
        for part in parts:
            value_names = [getattr(part.features.get(name), "names", None) for name in names]
            for values in zip(*(part[name] for name in names), strict=True):
                number += 1
                yield number, [_name(*pair) for pair in zip(values, value_names, strict=True)]

    return InputTable(source, columns, read)


def _name(value: object, names: Sequence[str] | None) -> object:
    """The name of a number that has one; a missing one (-1) is None."""
    if names is None or not isinstance(value, int):
        return value
    return names[value] if 0 <= value < len(names) else None
