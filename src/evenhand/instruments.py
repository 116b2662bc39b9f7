r"""Instruments: a measure is declared once, and everything else reads that declaration.

An instrument inherits from `Instrument` and has a `measure` method. The decorator `instrument`
makes it a frozen dataclass. Its fields are its options: the options of the command line, the keys
of a grid's YAML file and the identity of a grid's cell. The declaration has the label of tables,
the text of the methods page and of the reference, and the part that the measure has in a verdict.

A file in the `metrics` folder of a subject that declares an instrument is all it takes to add a
measure. Other packages add instruments by an entry point of the group `evenhand.instruments`.

>>> @instrument(name="length", subjects=("demo",), label="Mean length", ideal=None,
...             question="How long are the words?")
... class Length(Instrument):
...     limit: int = option(10, minimum=1, help="Longest word that counts.")
...     def measure(self, subject, material=None, run=Run()):
...         return None
>>> Length.declaration.label, [o.name for o in Length.declaration.options]
('Mean length', ['limit'])
>>> Length(limit=0)
Traceback (most recent call last):
evenhand.errors.InputError: limit: expected 1 or more, got 0
"""

from __future__ import annotations

import dataclasses
import inspect
import math
import numbers
import os
import pkgutil
import types
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, wraps
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar, Unpack, overload

from evenhand.arguments import check_fields, checked
from evenhand.cache import Cache, Progress, Querying
from evenhand.display import ResultList
from evenhand.errors import InputError, UnknownNameError
from evenhand.files import path_exists
from evenhand.judging import BiasTest, General, HasRole, Judgement, judge, simultaneous, widen
from evenhand.registry import entry_points
from evenhand.results import Comparison, Estimate, Item, Measurement, Measurements, Worse
from evenhand.statistics.intervals import jackknife, t_mean, two_way_jackknife
from evenhand.statistics.sizes import SizeKind
from evenhand.statistics.tests import holm
from evenhand.wording import percent, slug

if TYPE_CHECKING:
    from evenhand.charts import ChartSet

__all__ = [
    "Declaration",
    "Evidence",
    "Exhibit",
    "Instrument",
    "Job",
    "Option",
    "Progress",
    "Run",
    "charts_of",
    "check_options",
    "compare",
    "compare_together",
    "correct_p_values",
    "correct_results",
    "documented",
    "find",
    "instrument",
    "instruments",
    "is_ratio",
    "item_key",
    "judge_result",
    "judge_results",
    "lookup",
    "measure",
    "option",
    "options_of",
    "plan",
    "run_jobs",
    "tests_of",
]

T = TypeVar("T")

PACKAGES = {
    "vectors": "evenhand.vectors.metrics",
    "masked": "evenhand.models.metrics",
    "causal": "evenhand.models.metrics",
    "encoder": "evenhand.models.metrics",
    "corpus": "evenhand.text.metrics",
    "fewshot": "evenhand.fewshot.metrics",
    "predictions": "evenhand.classifier.metrics",
    "answers": "evenhand.answers.metrics",
}
"""Where the instruments of each subject are declared."""

LANGUAGE = {
    "masked": "masked language model",
    "causal": "causal language model",
    "encoder": "sentence encoder",
}
"""The kinds of language models, and what they are called."""
ENTRY_POINTS = "evenhand.instruments"
OPENERS = ("evenhand.vectors.store", "evenhand.models.loading", "evenhand.text.tables")
"""The modules that open a name, a path or an object of another library as a subject, each by its
function `open_subject`."""

Role: TypeAlias = Literal["leads", "required", "decides", "shown", "confirms", ""]
"""The parts that an instrument can have in a verdict, the first the strongest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Run-time settings. Only `seed` and `prob` affect the result.

    Parameters
    ----------
    seed : int
        Seed of every random draw.
    prob : float
        Probability of the intervals.
    cache : Cache, optional
        Cache of model answers.
    progress : callable, optional
        Called with (done, total).

    """

    seed: int = 0
    prob: float = 0.95
    cache: Cache | None = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.prob, int | float) and 0 < self.prob < 1):
            raise InputError(f"prob: expected a number between 0 and 1, got {self.prob!r}")
        if not (isinstance(self.seed, numbers.Integral) and 0 <= self.seed < 2**32):
            raise InputError(f"seed: expected a whole number of 0 or more, got {self.seed!r}")
        if isinstance(self.cache, str | os.PathLike):
            raise InputError(f"cache: expected Cache({self.cache!r}), got {self.cache!r}")
        if self.progress is not None and not callable(self.progress):
            raise InputError(f"progress: expected a function, got {self.progress!r}")

    @property
    def querying(self) -> Querying:
        """How models are queried, as keywords."""
        return {"cache": self.cache, "progress": self.progress}

    def steps(self, items: Sequence[T]) -> Iterator[T]:
        """The items, reporting how many are done."""
        report = self.progress or (lambda _done, _total: None)
        for done, item in enumerate(items):
            report(done, len(items))
            yield item
        report(len(items), len(items))


@dataclass(frozen=True, slots=True, kw_only=True)
class Option:
    """One option of an instrument: a field of its dataclass, with what a user needs to know."""

    name: str
    type: type
    default: Any
    help: str
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    below: float | None = None
    choices: tuple[Any, ...] = ()
    flag: str | None = None
    """The name on the command line where it is not `--name`."""
    metavar: str | None = None
    public: bool = True
    """Whether commands and grids have it too."""
    multiple: bool = False
    optional: bool = False

    def check(self, value: Any) -> None:
        """Raise InputError where the value is not allowed."""
        if value is None and self.optional:
            return
        if self.choices:
            for each in value if self.multiple else (value,):
                if each not in self.choices:
                    raise UnknownNameError(self.name, str(each), map(str, self.choices))
            return
        if self.type in (int, float) and not self.multiple:
            real = isinstance(value, numbers.Real) and not isinstance(value, bool)
            if not real or not math.isfinite(value):
                kind = "a whole number" if self.type is int else "a number"
                raise InputError(f"{self.name}: expected {kind}, got {value!r}")
            number = float(value)
            if self.type is int and not isinstance(value, numbers.Integral):
                raise InputError(f"{self.name}: expected a whole number, got {value!r}")
            low = self.minimum is not None and number < self.minimum
            high = self.maximum is not None and number > self.maximum
            low |= self.above is not None and number <= self.above
            high |= self.below is not None and number >= self.below
            if low or high:
                raise InputError(f"{self.name}: expected {self.range_text}, got {value}")

    @property
    def range_text(self) -> str:
        """The allowed range in words."""
        if self.minimum is not None and self.maximum is not None:
            return f"{self.minimum:g} to {self.maximum:g}"
        ends = [] if self.minimum is None else [f"{self.minimum:g} or more"]
        ends += [] if self.maximum is None else [f"{self.maximum:g} or less"]
        ends += [] if self.above is None else [f"more than {self.above:g}"]
        ends += [] if self.below is None else [f"less than {self.below:g}"]
        return " and ".join(ends) or "a number"


def option(
    default: Any,
    *,
    help: str,  # noqa: A002
    minimum: float | None = None,
    maximum: float | None = None,
    above: float | None = None,
    below: float | None = None,
    flag: str | None = None,
    metavar: str | None = None,
    public: bool = True,
) -> Any:
    """A field of an instrument, or of the settings of other work, that users can set.

    Parameters
    ----------
    default : Any
        The value where the user gives none; `dict` for an empty mapping.
    help : str
        One sentence, as the command line shows it.
    minimum, maximum : float, optional
        The allowed range, ends included.
    above, below : float, optional
        The allowed range, ends excluded.
    flag : str, optional
        The option's name on the command line where it is not `--name`.
    metavar : str, optional
        What the help of the command line shows for the value.
    public : bool
        Whether commands and grids have it too; otherwise only Python.

    """
    about = {
        "help": help,
        "minimum": minimum,
        "maximum": maximum,
        "above": above,
        "below": below,
        "flag": flag,
        "metavar": metavar,
        "public": public,
    }
    if default is dict:
        return field(default_factory=dict, metadata={"option": about})
    return field(default=default, metadata={"option": about})


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration(HasRole):
    """Static metadata of an instrument.

    Parameters
    ----------
    name, label, question : str
        Its name, its label in tables, and the question it answers.
    subjects : tuple of str
        What it measures, of "vectors", "masked", "causal", "encoder", "fewshot", "predictions",
        "corpus" and "answers".
    formula : str
        In plain text, as terminals and pages show it.
    source : str
        Who published it.
    ideal : float or None
        The value without bias.
    worse : {"higher", "lower", "away"}
    role : {"leads", "required", "decides", "shown", "confirms", ""}
        Its part in a verdict. The first three decide: their tests are corrected together, and one
        of them is some evidence. Strong evidence needs those that lead or are required; the one
        that leads is shown first. Those that decide or confirm can support the ones required. One
        that is "shown" has no part in it, but is listed with those that decide, on cards too.
    minimum : int
        The number of items below which its tests do not count.
    stereotype : int
        The sign of a value that agrees with the stereotype; 0 where the sign has no such meaning.
    varies_with : {"", "dimension", "length"}
        What else of word vectors its size depends on: vectors that differ in it are not comparable.
    compared : {"difference", "ratio"}
        How two values are compared.
    size : {"", "d", "spread", "log-odds", "odds", "share", "gap"}
        What the value is, for `evenhand.statistics.sizes.to_size`, which puts it on the scale that
        all measures share.
    unit : str
        What is counted in `n`, in the plural, such as "sentences".
    material : str
        What it takes beside the subject, for the help text, such as "sentence pairs (CSV)".
    reading : str
        How to read the value, in a sentence or two.
    above, below : str
        What a value above or below the ideal says, as a clause; {query}, {n}, {percent} and {other}
        (the value and the rest as shares) can be in it. An instrument can have a method
        `clause(measurement)` instead.
    bias : bool
        Whether it measures bias; otherwise usefulness or quality.
    estimates : tuple of str
        Results of models that estimate the same, as "metric query".
    scale : str
        What the value axis of a chart is called; measures with the same scale share an axis.
    caveats : tuple of str
    audit : bool or tuple of str
        Whether an audit runs it on its default material, or for which subjects only.
    command : str
        Its command on the command line where that has another name.

    """

    name: str
    subjects: tuple[str, ...]
    label: str
    question: str
    formula: str = ""
    source: str = ""
    ideal: float | None = 0.0
    worse: Worse = "away"
    role: Role = ""
    minimum: int = 0
    stereotype: int = 1
    varies_with: Literal["", "dimension", "length"] = ""
    compared: Literal["difference", "ratio"] = "difference"
    size: SizeKind = ""
    unit: str = "items"
    material: str = ""
    reading: str = ""
    above: str = ""
    below: str = ""
    bias: bool = True
    estimates: tuple[str, ...] = ()
    scale: str = ""
    caveats: tuple[str, ...] = ()
    audit: bool | tuple[str, ...] = False
    command: str = ""
    options: tuple[Option, ...] = ()

    def measures(self, kind: str) -> bool:
        """Whether subjects of the kind are measured."""
        return kind in self.subjects

    def audits(self, kind: str) -> bool:
        """Whether an audit of subjects of the kind runs it."""
        return self.measures(kind) and (
            self.audit if isinstance(self.audit, bool) else kind in self.audit
        )

    def result(
        self, run: Run, query: str, estimate: tuple[float, float, float], **fields: Any
    ) -> Measurement:
        """A measurement by this instrument.

        Parameters
        ----------
        run : Run
        query : str
            The name of the question.
        estimate : (float, float, float)
            Value, low and high, as the functions of `evenhand.statistics` return them.
        **fields
            Further fields of `Measurement`. Name, ideal and direction come from the declaration,
            seed and probability from the run; a part that differs in one of them gives it here.

        """
        known = {
            "metric": self.name,
            "ideal": self.ideal,
            "worse": self.worse,
            "prob": run.prob,
            "seed": run.seed,
        }
        value, low, high = estimate
        return Measurement(query=query, value=value, low=low, high=high, **{**known, **fields})


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A test of an instrument as a verdict uses it.

    Parameters
    ----------
    measurement : Measurement
        Its value, interval and p-value.
    label : str
        Its label in tables; without it, that of the instrument and the query.
    sentence : str
        What it means where it holds.
    quantity : str
        What it estimates, as in "a mean score between 0.4 and 0.6".
    general : Measurement, optional
        The same value with the interval and p-value for new classes, where those of `measurement`
        hold for the tested ones only.
    points : bool
        Whether the value is a share that is shown in percentage points.
    claim : str
        The shortest form of `sentence`, after the name of the subject: "assumes a man in …".
    size : {"", "d", "spread", "log-odds", "odds", "share", "gap"}
        What the value is, where that differs from the declaration.
    spread : float, optional
        The standard deviation of the items within their groups, in the unit in which the value is
        the difference of two groups.
    repeats : str
        The metric whose test this one repeats on the same question; it counts once.

    """

    measurement: Measurement
    label: str = ""
    sentence: str = ""
    quantity: str = ""
    general: Measurement | None = None
    points: bool = False
    claim: str = ""
    size: SizeKind = ""
    spread: float | None = None
    repeats: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Exhibit:
    """One item that shows what a result means, as readers can check it.

    Parameters
    ----------
    text : str
        The item: a sentence, a word, a class.
    readings : tuple of (str, str, float or None)
        What was measured of it, such as ("he", "93 %", 0.93); the last is a share to draw.
    effect : float
        The effect of the item, by which it was chosen.

    """

    text: str
    readings: tuple[tuple[str, str, float | None], ...]
    effect: float


READABLE = 140
"""The longest text of an exhibit, in characters."""


class RunOptions(Querying, total=False):
    """The keywords of a call, as for `Run`."""

    seed: int
    prob: float


class Instrument:
    """Base of all instruments: a subclass writes `measure` and what differs from the defaults.

    The class is callable: `Weat(null=200)(vectors, query, seed=1)` measures, and reads the material
    where a file is given.
    """

    declaration: ClassVar[Declaration]
    shared: ClassVar[Mapping[str, Any]] = {}
    """Fields of the declaration that instruments of a family have in common."""
    requires_material: ClassVar[bool] = False
    """Whether there is no default material."""
    controls: ClassVar[tuple[str, ...]] = ()
    """Queries about harmless associations."""
    material_options: ClassVar[tuple[Option, ...]] = ()
    """Options of commands from which `choose` makes the material."""
    audit_uses_data: ClassVar[bool] = False
    """Whether the result of `audit` depends on the audit's texts."""
    prompts: ClassVar[str] = ""
    """Of instruments of answers: the built-in prompts that an audit asks a model."""

    def measure(
        self, subject: Any, material: Any = None, run: Run = Run()
    ) -> Measurement | list[Measurement]:
        """Measure the subject: the one method that every instrument has to write."""
        raise NotImplementedError(f"{type(self).__name__}: expected a method measure")

    def __call__(
        self, subject: object, material: object = None, **run: Unpack[RunOptions]
    ) -> Measurement:
        """Measure the subject, as `evenhand.measure` does for one metric."""
        return measure(subject, material, self, **run)

    def read(self, path: Any) -> Any:
        """Read the material from a file or DataFrame; by default it is taken as it is."""
        return path

    @staticmethod
    def choose(*args: Any, **choices: Any) -> Any:
        """Make the material of names and files given by key."""
        raise NotImplementedError

    def misfit(self, material: Any = None) -> str | None:
        """Why material of this shape cannot be taken; None where it can."""
        return None

    def questions(self, material: Any = None) -> Sequence[Any]:
        """Split material into questions that are measured, or skipped, one by one."""
        return [material]

    def with_vectors(self, vectors: Mapping[str, Any]) -> Instrument:
        """The instrument that measures word vectors beside a model."""
        return self

    def audit(self, subject: Any, run: Run, data: Any) -> dict[str, Any]:
        """The fields `measurements`, `skipped` and `details` of an audit's stage.

        `data` has the audit's texts (`dataset`, `name`) and the sentences that the structural
        filter accepts (`accepted()`).
        """
        result = self.measure(subject, None, run)
        return {"measurements": (result,) if isinstance(result, Measurement) else tuple(result)}

    @staticmethod
    def evidence(measurement: Measurement) -> list[Evidence]:
        """The tests that decide a verdict; by default the result, over its wider sampling unit."""
        return [_evidence(measurement)]

    @staticmethod
    def explained(measurement: Measurement) -> str:  # noqa: ARG004
        """What explains a value other than a bias, in words."""
        return ""

    @staticmethod
    def exhibit(measurement: Measurement) -> Exhibit | None:  # noqa: ARG004
        """The item that shows what a finding means: readable, of the largest effect."""
        return None

    @staticmethod
    def charts(measurement: Measurement) -> dict[str, Any]:  # noqa: ARG004
        """Altair charts special to the measure, by name; a forest and tables are always shown.

        The `description` of a chart says how to read it.
        """
        return {}

    @classmethod
    def clause(cls, measurement: Measurement) -> str:
        """What a value says; by default `above` or `below` of the declaration."""
        m, about = measurement, cls.declaration
        text = about.above if m.value > (m.ideal or 0.0) else about.below
        share, other = percent(m.value), percent(1 - m.value)
        return text.format(query=m.query, n=f"{m.n:,}", percent=share, other=other)

    @staticmethod
    def compare(before: Measurement, after: Measurement) -> Comparison:
        """The change between two results; by default over the items that both have."""
        return paired_comparison(before, after)

    @staticmethod
    def with_replicates(measurement: Measurement) -> Measurement:
        """Add the value without each item to a result's items."""
        return measurement

    @staticmethod
    def compact(measurement: Measurement) -> Measurement:
        """Leave only what `pool` needs."""
        return measurement

    def tally(self, subject: Any) -> dict[str, Any]:
        """Count a shard of a corpus, for `pool`."""
        raise NotImplementedError

    @staticmethod
    def pool(parts: Any) -> Measurement:
        """One result of those of the shards of a corpus, or of their tallies."""
        raise NotImplementedError

    def measure_file(
        self, subject: Any, path: Any, run: Run = Run(), *, output: Any = None, keep: Any = None
    ) -> Measurement:
        """Measure a file and write one row per item."""
        raise NotImplementedError

    @classmethod
    def example(cls) -> tuple[Any, Any]:
        """A subject and material to try the instrument on."""
        raise NotImplementedError(f"{cls.__name__}: expected a method example")


C = TypeVar("C", bound=Instrument)


@typing.dataclass_transform(kw_only_default=True, frozen_default=True)
def instrument(**about: Any) -> Callable[[type[C]], type[C]]:
    """Declare a class with a `measure` method as an instrument, and make it a frozen dataclass.

    Takes the fields of `Declaration` except `options`, which come from the fields of the class.
    What is not given is as in `shared` of the class.
    """

    def declare(cls: type[C]) -> type[C]:
        _check_base(cls)
        made: type = cls
        if "__dataclass_fields__" not in vars(cls):
            made = dataclass(frozen=True, kw_only=True)(cls)
        declaration = Declaration(options=options_of(made), **{**cls.shared, **about})
        original = cls.__init__

        @wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            original(self, *args, **kwargs)
            check_options(self)

        cls.__init__ = __init__  # type: ignore[method-assign]
        cls.declaration = declaration
        cls.__doc__ = _with_parameters(inspect.getdoc(cls) or "", declaration.options)
        return cls

    return declare


def _with_parameters(text: str, options: Sequence[Option]) -> str:
    """The docstring with the options as the numpydoc section Parameters."""
    if not options:
        return text
    section = "Parameters\n----------\n" + "\n".join(
        f"{each.name} : {' | '.join(map(repr, each.choices)) or each.type.__name__}, "
        f"default {each.default!r}\n    {each.help}"
        for each in options
    )
    lines = text.split("\n")
    start = next((i for i, line in enumerate(lines) if line[:3] == "---"), len(lines) + 1) - 1
    parts = ("\n".join(lines[:start]).rstrip(), section, "\n".join(lines[start:]))
    return "\n\n".join(filter(None, parts))


def documented(cls: type[T]) -> type[T]:
    """Add the options of a dataclass to its docstring, as the section Parameters."""
    settings: type = cls
    cls.__doc__ = _with_parameters(inspect.getdoc(cls) or "", options_of(settings))
    return cls


def _check_base(cls: type) -> None:
    if not issubclass(cls, Instrument):
        raise TypeError(
            f"{cls.__name__}: an instrument inherits from evenhand.instruments.Instrument"
        )


instrument.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
    [
        parameter
        for parameter in inspect.signature(Declaration).parameters.values()
        if parameter.name != "options"
    ]
)


@cache
def options_of(cls: type) -> tuple[Option, ...]:
    """The options that the fields of a dataclass declare.

    >>> @dataclass
    ... class Settings:
    ...     rate: float = option(0.1, above=0, help="The learning rate.")
    >>> [(o.name, o.default, o.range_text) for o in options_of(Settings)]
    [('rate', 0.1, 'more than 0')]
    """
    hints = typing.get_type_hints(cls)
    return tuple(
        _option_of(each.name, hints[each.name], each.default, each.metadata["option"])
        for each in dataclasses.fields(cls)
        if "option" in each.metadata
    )


def check_options(settings: object) -> None:
    """Raise InputError where a field of a dataclass is not as its option allows."""
    check_fields(settings)
    cls: type = type(settings)
    for declared in options_of(cls):
        declared.check(getattr(settings, declared.name))


def _option_of(name: str, hint: Any, default: Any, about: Mapping[str, Any]) -> Option:
    optional = multiple = False
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        hint = next(each for each in typing.get_args(hint) if each is not types.NoneType)
        optional = True
    if typing.get_origin(hint) is tuple:
        hint, multiple = typing.get_args(hint)[0], True
    choices: tuple[Any, ...] = ()
    if typing.get_origin(hint) is Literal:
        choices = typing.get_args(hint)
        hint = type(choices[0])
    if typing.get_origin(hint) is Mapping:
        hint, default = dict, {}
    if name in DRAWN and hint is int and about["maximum"] is None:
        about = {**about, "maximum": MOST_DRAWN}
    return Option(
        name=name,
        type=hint if hint in (bool, int, float, dict) else str,
        default=default,
        choices=choices,
        multiple=multiple,
        optional=optional,
        **about,
    )


DRAWN = ("permutations", "null", "draws", "resamples", "replicates")
MOST_DRAWN = 10_000_000
"""Most random draws of an option that counts them: more would run for days."""


_LOADED: dict[str, dict[str, type[Instrument]]] = {}


def instruments(subject: str) -> Mapping[str, type[Instrument]]:
    """The instruments of a subject by name.

    The one that leads a verdict comes first, then those that are required, that decide, that
    confirm, and the others; in each group our own come before those of other packages.
    """
    if subject not in PACKAGES:
        raise UnknownNameError("subject", subject, PACKAGES)
    if subject not in _LOADED:
        declared: dict[str, type[Instrument]] = {}
        package = import_module(PACKAGES[subject])
        for module in pkgutil.iter_modules(package.__path__):
            for cls in vars(import_module(f"{package.__name__}.{module.name}")).values():
                if not (isinstance(cls, type) and issubclass(cls, Instrument)):
                    continue
                if "declaration" in vars(cls) and cls.declaration.measures(subject):
                    declared[cls.declaration.name] = cls
        for entry in entry_points(ENTRY_POINTS):
            cls = entry.load()
            _check_base(cls)
            if cls.declaration.measures(subject):
                declared.setdefault(cls.declaration.name, cls)
        _LOADED[subject] = dict(sorted(declared.items(), key=lambda item: _rank(item[1])))
    return types.MappingProxyType(_LOADED[subject])


def _rank(cls: type[Instrument]) -> int:
    return typing.get_args(Role).index(cls.declaration.role)


def lookup(subject: str, name: str) -> Any:
    """The instrument of that name.

    An unknown name is an error that suggests the nearest, one of another kind of language model an
    error that says which fit.
    """
    known = instruments(subject)
    if name in known:
        return known[name]
    if subject in LANGUAGE and any(name in instruments(kind) for kind in LANGUAGE):
        raise InputError(
            f"metric '{name}' does not measure a {LANGUAGE[subject]}; these do: {', '.join(known)}"
        )
    raise UnknownNameError("metric", name, known)


def find(name: str) -> type[Instrument] | None:
    """The instrument of that name, of any subject, or None."""
    for subject in PACKAGES:
        cls = instruments(subject).get(name)
        if cls is not None:
            return cls
    return None


def is_ratio(metric: str) -> bool:
    """Whether values of a measure are compared as a ratio, on the logarithm."""
    cls = find(metric)
    return cls is not None and cls.declaration.compared == "ratio"


def subject_of(value: object) -> str:
    """The kind of a subject: every class that can be measured says it in `subject_kind`."""
    kind = getattr(value, "subject_kind", None)
    if kind is None and hasattr(value, "tokenizer") and hasattr(value, "logits"):
        kind = "masked"
    if kind not in PACKAGES:
        raise InputError(
            "measure: expected word vectors, a language model, a corpus or a few-shot run, got "
            f"{type(value).__name__}"
        )
    return str(kind)


def open_subject(source: object) -> object:
    """What can be measured, of a name, a path or an object of another library.

    A folder is a language model; a file is a table of texts by its ending (.csv, .jsonl …), else
    word vectors. What can be measured already is returned as it is.
    """
    if hasattr(source, "subject_kind") or (
        hasattr(source, "tokenizer") and hasattr(source, "logits")
    ):
        return source
    for module in map(import_module, OPENERS):
        opened = module.open_subject(source)
        if opened is not None:
            return opened
    given = type(source).__name__
    if isinstance(source, str | os.PathLike):
        given = f"'{os.fspath(source)}', which is no embedded name, file or folder"
    raise InputError(
        f"measure: expected word vectors, a language model, a corpus or a few-shot run, got {given}"
    )


Metric: TypeAlias = str | Instrument | type[Instrument]
"""An instrument by its name, with its options, or its class."""


class MeasureOptions(RunOptions, total=False):
    """The keywords of `measure`."""

    options: Mapping[str, Any] | None


@overload
def measure(
    subject: Any, material: Any = None, *, metrics: Metric, **keywords: Unpack[MeasureOptions]
) -> Measurement: ...
@overload
def measure(
    subject: Any, material: Any, metrics: Metric, **keywords: Unpack[MeasureOptions]
) -> Measurement: ...
@overload
def measure(
    subject: Any,
    material: Any = None,
    metrics: Sequence[Metric] | None = None,
    **keywords: Unpack[MeasureOptions],
) -> Measurements: ...
@checked
def measure(
    subject: Any,
    material: Any = None,
    metrics: Metric | Sequence[Metric] | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    prob: float = 0.95,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Measurement | Measurements:
    """Measure word vectors, a language model, a corpus, predictions, answers or a few-shot run.

    Parameters
    ----------
    subject : Vectors, model, corpus, predictions, answers or few-shot run
        What is measured; or a name, a path, or an object of another library: `KeyedVectors` of
        gensim, the pair (network, tokenizer) or a pipeline of transformers, a DataFrame of texts.
    material : optional
        What the question is about: a topic or a query for vectors, sentences or sentence pairs
        for models, or a file or DataFrame of them. Without it every instrument uses its default
        material.
    metrics : str, instrument or sequence of these, optional
        The instruments by name, or with their options, such as `Weat(null=200)`; without them
        every one that fits.
    options : Mapping, optional
        Options of the instruments that are given by name, such as `{"null": 200}`. One that none of
        them has is an error.
    seed, prob, cache, progress
        As for `Run`.

    Returns
    -------
    Measurement, or Measurements for several metrics
        One metric gives one result; where the material asks it several questions (a topic of three
        groups, say), name it in a list. A named metric that does not fit is an error; without
        names, what does not fit is left out and what fails for want of data is listed in `skipped`
        with the reason.

    Examples
    --------
    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove")
    >>> measure(v, eh.lexicon.weat(7), "weat").metric
    'weat'
    >>> [m.metric for m in measure(v, eh.lexicon.weat(7), ["weat", "mac"])]
    ['weat', 'mac']

    """
    subject = open_subject(subject)
    jobs = plan(subject_of(subject), material, metrics, options)
    run = Run(seed=seed, prob=prob, cache=cache, progress=progress)
    results = run_jobs(subject, jobs, run, strict=metrics is not None)
    if not isinstance(metrics, str | Instrument | type):
        return results
    if len(results) != 1:
        raise InputError(
            f"measure: '{jobs[0].metric}' has {len(results)} results here, "
            f"{', '.join(dict.fromkeys(m.query for m in results))}: expected one; name the metric "
            "in a list for all of them"
        )
    return results[0]


@dataclass(frozen=True, slots=True)
class Job:
    """One instrument, with its options, on one question."""

    instrument: Instrument
    material: Any

    @property
    def metric(self) -> str:
        """The name of the instrument."""
        return str(self.instrument.declaration.name)

    @property
    def query(self) -> str:
        """The name of the question."""
        return str(getattr(self.material, "name", ""))


def plan(
    kind: str,
    material: object = None,
    metrics: Metric | Sequence[Metric] | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    fitting: bool = False,
) -> list[Job]:
    """What `measure` would run on subjects of this kind, without running it.

    Parameters
    ----------
    kind : {"vectors", "masked", "causal", "encoder", "fewshot", "predictions", "corpus", "answers"}
    material, metrics, options
        As for `measure`.
    fitting : bool
        Leave out named metrics that do not fit the material; by default they are an error.

    """
    alone = isinstance(metrics, str | Instrument | type)
    given: Any = [metrics] if alone else metrics
    chosen: list[Any] = [
        lookup(kind, each) if isinstance(each, str) else each
        for each in (instruments(kind) if given is None else given)
    ]
    classes: list[Any] = [each for each in chosen if isinstance(each, type)]
    options = options or {}
    accepted = {each.name for cls in classes for each in cls.declaration.options}
    for name in options:
        if name not in accepted:
            raise UnknownNameError("option", name, {*accepted, "seed", "prob"})
    jobs: list[Job] = []
    for metric in chosen:
        if metric in classes:
            own = {declared.name for declared in metric.declaration.options}
            metric = metric(**{name: value for name, value in options.items() if name in own})
        if not metric.declaration.measures(kind):
            lookup(kind, metric.declaration.name)
        try:
            content = _read_material(metric, material)
        except FileNotFoundError:  # the name of a topic, which instruments that read files lack
            if given is None:
                continue
            raise
        reason = metric.misfit(content)
        if reason is None:
            jobs += [Job(metric, question) for question in metric.questions(content)]
        elif given is not None and not fitting:
            raise InputError(f"metric '{metric.declaration.name}' {reason}")
    return jobs


def _read_material(metric: Instrument, material: object) -> object:
    """The material of an instrument, read where a file or a DataFrame is given."""
    if type(metric).read is Instrument.read:
        return material
    if isinstance(material, str) and any(map(str.isspace, material)) and not path_exists(material):
        return [material]  # a sentence
    is_path = isinstance(material, str | os.PathLike)
    return metric.read(material) if is_path or hasattr(material, "columns") else material


def run_jobs(
    subject: object, jobs: Iterable[Job], run: Run | None = None, *, strict: bool = False
) -> Measurements:
    """Run the jobs in order.

    A job that fails for want of data is an error if `strict`; otherwise it is listed in `skipped`
    with the reason.
    """
    run = run or Run()
    results: list[Measurement] = []
    skipped: list[dict[str, str]] = []
    for job in jobs:
        try:
            result = job.instrument.measure(subject, job.material, run)
        except InputError as error:
            if strict:
                raise
            skipped.append({"metric": job.metric, "query": job.query, "reason": str(error)})
            continue
        results += [result] if isinstance(result, Measurement) else result
    return Measurements(correct_results(results), skipped)


@overload
def compare(before: Measurement, after: Measurement) -> Comparison: ...
@overload
def compare(before: Measurements, after: Measurements) -> ResultList[Comparison]: ...
@checked
def compare(
    before: Measurement | Measurements, after: Measurement | Measurements
) -> Comparison | ResultList[Comparison]:
    """The change from `before` to `after`: the same measurement of other vectors or models.

    What both share (easy words, hard words) cancels, since items are paired. An instrument may
    have a paired method of its own. Otherwise the interval is Student's over the items' scores,
    where the values are their means, or the paired jackknife over the values without each item.

    Parameters
    ----------
    before, after : Measurement or Measurements
        Of the same metric and query. Of several measurements those are compared that both have.

    Returns
    -------
    Comparison, or ResultList of Comparison
        Without paired items the interval is unbounded, and says so.

    Examples
    --------
    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove")
    >>> fair = eh.vectors.hard(v, eh.lexicon.topic("gender").definitional).vectors
    >>> before, after = (eh.measure(each, "gender", "direct_bias") for each in (v, fair))
    >>> eh.compare(before, after).effect
    'better'

    """
    if isinstance(before, Measurements) or isinstance(after, Measurements):
        return _compare_several(before, after)
    if (before.metric, before.query) != (after.metric, after.query):
        raise InputError(
            f"compare: expected the same measurement twice, got {before.metric} '{before.query}' "
            f"and {after.metric} '{after.query}'"
        )
    return (find(before.metric) or Instrument).compare(before, after)


def _compare_several(
    before: Measurement | Measurements, after: Measurement | Measurements
) -> ResultList[Comparison]:
    several = [[m] if isinstance(m, Measurement) else m for m in (before, after)]
    first, second = ({(m.metric, m.query): m for m in listed} for listed in several)
    shared = [key for key in first if key in second]
    if not shared:
        raise InputError("compare: expected the same measurements twice, got none that both have")
    return ResultList(compare_together([compare(first[key], second[key]) for key in shared]))


def charts_of(
    results: Sequence[Measurement],
    comparisons: Sequence[Comparison] = (),
    instrument: type[Instrument] = Instrument,
) -> ChartSet:
    """The charts of results by name: forests, also of their parts, and those of instruments.

    Parameters
    ----------
    results, comparisons : sequence
        `results` and `changes` are forests of them.
    instrument : type of Instrument
        Draws the results whose metric is no instrument.

    """
    from evenhand.charts import ChartSet

    charts = ChartSet()
    charts.add("results", Measurements(results).plot)
    if comparisons:
        charts.add("changes", ResultList(comparisons).plot)
    several = len({m.subject for m in results}) > 1, len({m.query for m in results}) > 1
    for m in results:
        ending = [
            text for text, needed in zip((m.subject, m.query), several, strict=True) if needed
        ]
        for by in dict.fromkeys(part.by for part in m.parts):
            own = Measurements(m.select(by))
            if len(own) > 1:
                charts.add(slug(" ".join([m.metric, by, *ending])), own.plot)
        try:
            drawn = (find(m.metric) or instrument).charts(m)
        except InputError as error:
            charts.skipped[slug(" ".join([m.metric, *ending]))] = str(error)
            continue
        charts.charts.update(
            {slug(" ".join([name, *ending])): chart for name, chart in drawn.items()}
        )
    return charts


def compare_together(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """Comparisons that a reader sees together, with intervals that hold together.

    Intervals are widened, and p-values corrected, for the number of comparisons (Bonferroni).
    """
    family = sum(math.isfinite(c.change.high - c.change.low) for c in comparisons)
    if family < 2:
        return list(comparisons)
    together = []
    for c in comparisons:
        prob = simultaneous(c.change.prob, family)
        df = c.details.get("freedom", c.paired - 1 if c.paired > 1 else None)
        ratio = c.kind == "ratio"
        ends = (c.change.value, c.change.low, c.change.high)
        change = Estimate.of(widen(ends, c.change.prob, prob, df=df, ratio=ratio), c.change.prob)
        details = dict(c.details)
        if (distance := c.details.get("distance")) is not None:
            ends = (distance["value"], distance["low"], distance["high"])
            wider = widen(ends, c.change.prob, prob, df=df)
            details["distance"] = Estimate.of(wider, c.change.prob).to_dict()
        together.append(
            dataclasses.replace(
                c,
                change=change,
                details=details,
                p_corrected=None if c.p_value is None else min(1.0, family * c.p_value),
                family=family,
                interval=f"{c.interval}; {family} intervals that hold together (Bonferroni)",
            )
        )
    return together


def paired_comparison(before: Measurement, after: Measurement) -> Comparison:
    """Compare by the scores of the same items, by Student's t; clusters (`cluster`) count once.

    That holds where the change of the value is the mean change of the scores: values that are
    means, or means plus a constant. Otherwise the values without each item are compared; without
    these the interval is unbounded and says why.
    """
    first, second = _scores(before), _scores(after)
    if not first or first.keys() != second.keys():
        return paired_jackknife(before, after)
    clusters: dict[str, list[float]] = {}
    for key, score in first.items():
        clusters.setdefault(key[0] or key[1], []).append(second[key] - score)
    change = after.value - before.value
    mean = math.fsum(x for each in clusters.values() for x in each) / len(first)
    if not math.isclose(mean, change, rel_tol=1e-9, abs_tol=1e-9):
        reason = "none: the value is not the mean of its items' scores, and they have no 'without'"
        return dataclasses.replace(paired_jackknife(before, after), interval=reason)
    weight = len(clusters) / len(first)
    _, low, high = t_mean(
        [change + weight * math.fsum(x - change for x in each) for each in clusters.values()],
        before.prob,
    )
    unit = "items" if len(clusters) == len(first) else "clusters"
    return Comparison(
        before=before,
        after=after,
        change=Estimate(value=change, low=low, high=high, prob=before.prob),
        interval=f"Student t over the paired {unit}",
        paired=len(clusters),
    )


def paired_jackknife(before: Measurement, after: Measurement) -> Comparison:
    """Compare by the values with each item left out (`without`), which both measurements have.

    Their differences are the jackknife replicates of the change. Where the items are of two kinds
    (`axis`: attributes and protected words), both count; where they come in clusters (`cluster`),
    `without` is the value without the whole cluster, which counts once. What the measurement's
    own interval holds fixed is held fixed here too.
    """
    first, second = _replicates(before), _replicates(after)
    shared = [key for key in first if key in second]
    axes: dict[str, list[float]] = {}
    for key in shared:
        axes.setdefault(key[0], []).append(second[key] - first[key])
    value = after.value - before.value
    if len(axes) == 2:
        rows, columns = axes.values()
        low, high = two_way_jackknife(value, rows, columns, prob=before.prob)
    else:
        differences = [x for axis in axes.values() for x in axis]
        low, high = jackknife(value, differences, before.prob)
    interval = f"paired jackknife; each value: {before.interval}"
    return Comparison(
        before=before,
        after=after,
        change=Estimate(value=value, low=low, high=high, prob=before.prob),
        interval=interval if shared else "none: no paired items",
        paired=len(shared),
    )


def _scores(measurement: Measurement) -> dict[tuple[str, str], float]:
    """The scores by cluster and item, where every item has one and none has `without`."""
    items, columns = measurement.items, measurement.items.columns
    name = next((each for each in ("item", "id", "word") if each in columns), None)
    if name is None or "score" not in columns or "without" in columns:
        return {}
    scores = {(str(item.get("cluster", "")), str(item[name])): item["score"] for item in items}
    known = [x for x in scores.values() if isinstance(x, int | float) and math.isfinite(x)]
    return scores if len(known) == len(items) else {}


def shared_items(
    before: Measurement, after: Measurement, *columns: str
) -> tuple[list[Item], list[Item]]:
    """The items of both that agree in these columns, in the order of `before`; none is an error."""
    first, second = (
        {tuple(item[name] for name in columns): item for item in m.items} for m in (before, after)
    )
    shared = [key for key in first if key in second]
    if not shared:
        raise InputError("compare: expected two measurements with items in common, got none")
    return [first[key] for key in shared], [second[key] for key in shared]


def item_key(item: Mapping[str, Any]) -> tuple[str, str, str]:
    """What identifies the unit of a `without` value: its axis, name and group."""
    names = (item[column] for column in ("cluster", "word", "item") if column in item)
    return item.get("axis", ""), next(names, ""), item.get("group", "")


def _replicates(measurement: Measurement) -> dict[tuple[str, str, str], float]:
    if "without" not in measurement.items.columns:
        return {}
    return {
        item_key(item): item["without"]
        for item in measurement.items
        if math.isfinite(item["without"])
    }


R = TypeVar("R", Measurement, Comparison)


def correct_p_values(results: Sequence[R]) -> list[R]:
    """The results, each with its p-value corrected for their number (Holm): one family.

    A result without a p-value is not counted and stays as it is.
    """
    tested = [(i, result.p_value) for i, result in enumerate(results) if result.p_value is not None]
    corrected = list(results)
    for (i, _), p in zip(tested, holm([p for _, p in tested]), strict=True):
        corrected[i] = dataclasses.replace(results[i], p_corrected=p, family=len(tested))
    return corrected


@dataclass(frozen=True, slots=True, kw_only=True)
class Tested:
    """A test of a result: what it means, how it is judged, and the result that it is of."""

    evidence: Evidence
    test: BiasTest
    about: Declaration | None
    explained: str = ""
    """What explains the value other than a bias, in words."""

    @property
    def measurement(self) -> Measurement:
        """The result with the p-value and interval that decide."""
        return self.evidence.general or self.evidence.measurement


def tests_of(m: Measurement) -> list[Tested]:
    """The tests of a result: those that its instrument names, or the result itself.

    A result that its instrument does not name decides nothing. A part by "unit" is the same value
    with a wider sampling unit, such as the writers of sentence pairs: then it decides.
    """
    cls = find(m.metric) or find(_estimated().get(f"{m.metric} {m.query}", ""))
    about: Declaration | None = None if cls is None else cls.declaration
    named: list[Evidence] = []
    plays = about is not None and m.metric == about.name and about.role not in ("shown", "")
    if cls is not None and plays and not m.by:
        named = cls.evidence(m)
    explained = _explained(cls, m)
    return [
        Tested(
            evidence=each,
            test=_bias_test(each, about, judged=not explained, named=bool(named)),
            about=about,
            explained=explained,
        )
        for each in named or [_evidence(m)]
    ]


def _evidence(m: Measurement) -> Evidence:
    """The result as a test; over the wider sampling unit (a part by "unit") where it has one."""
    return Evidence(measurement=m, general=next(iter(m.select("unit")), None))


def bias_test(m: Measurement, **known: Any) -> BiasTest:
    """A result as the judge needs it; `known` has the fields that the result does not say."""
    names = ("subject", "metric", "query", "value", "low", "high", "prob", "ideal", "p_value", "n")
    own = {name: getattr(m, name) for name in names}
    return BiasTest(**own, df=m.details.get("df"), **known)


def _bias_test(
    evidence: Evidence, declared: Declaration | None, *, judged: bool, named: bool
) -> BiasTest:
    m, general = evidence.measurement, evidence.general
    decides, about = general or m, declared or _UNDECLARED
    distance = m.value - (m.ideal or 0.0)
    sign = 0 if declared is None else about.stereotype or _SIGNS[m.worse]
    wider, corrected = None, None
    if general is not None:
        wider = General(low=general.low, high=general.high, p_value=general.p_value)
    if decides.p_corrected is not None:
        corrected = (decides.p_corrected, decides.family)
    return bias_test(
        m,
        label=evidence.label or f"{about.label or m.metric}{f', {m.query}' if m.query else ''}",
        draws=None if general else m.details.get("draws"),
        error=None if general else m.details.get("interval_error"),
        one_sided=m.worse != "away" and not (about.above and about.below),
        opposite=m.worse != "away" and distance * _SIGNS[m.worse] < 0,
        towards=not sign or distance * sign > 0,
        role=about.role if named else "",
        size=evidence.size or about.size,
        spread=evidence.spread,
        sign=sign,
        ratio=about.compared == "ratio",
        general=wider,
        repeats=evidence.repeats,
        corrected=corrected,
        judged=judged and about.bias and m.n >= about.minimum,
    )


_UNDECLARED = Declaration(name="", subjects=(), label="", question="")
"""Of a result that is by no instrument."""
_SIGNS = {"higher": 1, "lower": -1, "away": 0}
"""The side of the ideal that is worse."""


@cache
def _estimated() -> dict[str, str]:
    """Results of models, and the instruments that measure the same."""
    return {result: about.name for about in all_declarations() for result in about.estimates}


def _explained(cls: type[Instrument] | None, m: Measurement) -> str:
    """What explains a value other than a bias, in words."""
    if m.query.partition(":")[0] in _controls(None if cls is None else cls.declaration):
        return "a harmless association, which is no bias"
    return "" if cls is None else cls.explained(m)


def _controls(about: Declaration | None) -> frozenset[str]:
    """The questions about harmless associations, of the subjects that an instrument measures."""
    return frozenset(
        query
        for subject in PACKAGES
        if about is None or about.measures(subject)
        for cls in instruments(subject).values()
        for query in cls.controls
    )


def judge_results(
    results: Iterable[Measurement], others: Iterable[Measurement] = ()
) -> list[tuple[Tested, Judgement]]:
    """The tests of results that a reader sees together, each with what the judge says of it.

    `others` belong to the same families but are judged elsewhere, such as those of other topics.
    """
    tested = [each for m in results for each in tests_of(m)]
    beside = [each.test for m in others for each in tests_of(m)]
    judgements = judge([each.test for each in tested], beside)
    return [
        (dataclasses.replace(each, test=judgement.test), judgement)
        for each, judgement in zip(tested, judgements, strict=True)
    ]


def judge_result(m: Measurement) -> Judgement:
    """What the judge says of one result, in the family that it was corrected for."""
    [(_, judgement), *_] = judge_results([m])
    return judgement


def correct_results(
    results: Sequence[Measurement], others: Iterable[Measurement] = ()
) -> list[Measurement]:
    """The results, the p-values of their tests corrected for the families that the judge sees."""
    corrected = {
        id(tested.measurement): dataclasses.replace(
            tested.measurement, p_corrected=judgement.p, family=judgement.family
        )
        for tested, judgement in judge_results(results, others)
        if judgement.p is not None
    }

    def rebuild(m: Measurement) -> Measurement:
        parts = tuple(map(rebuild, m.parts))
        m = corrected.get(id(m), m)
        same = all(one is other for one, other in zip(parts, m.parts, strict=True))
        return m if same else dataclasses.replace(m, parts=parts)

    return list(map(rebuild, results))


def identity(chosen: Instrument) -> dict[str, Any]:
    """What the result of an instrument depends on besides its subject and material."""
    declaration = chosen.declaration
    options = {each.name: getattr(chosen, each.name) for each in declaration.options}
    return {"metric": declaration.name, **options}


def all_declarations(subjects: Iterable[str] = tuple(PACKAGES)) -> list[Declaration]:
    """The declarations of every instrument of these subjects."""
    declared = (cls.declaration for subject in subjects for cls in instruments(subject).values())
    return list({id(about): about for about in declared}.values())
