r"""Instruments: a measure is declared once, and everything else reads that declaration.

An instrument is a frozen dataclass with a `measure` method. Its fields are its options: the
options of the command line, the keys of a grid's YAML file and the identity of a grid's cell. The
declaration above it has the label of tables, the text of the methods page and of the reference,
and the part that the measure has in a verdict.

A file in the `metrics` folder of a subject that declares an instrument is all it takes to add a
measure. Other packages add instruments by an entry point of the group `evenhand.instruments`.

>>> from dataclasses import dataclass
>>> @instrument(name="length", subject="demo", label="Mean length", ideal=None,
...             question="How long are the words?")
... @dataclass(frozen=True, kw_only=True)
... class Length:
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
from pathlib import Path
from typing import Any, ClassVar, Literal, Protocol, TypeAlias, TypeVar, overload

from evenhand.display import ResultList
from evenhand.errors import InputError, UnknownNameError
from evenhand.judging import BiasTest, General, HasRole, Judgement, judge, simultaneous, widen
from evenhand.registry import entry_points
from evenhand.results import Comparison, Estimate, Measurement, Measurements, Worse
from evenhand.statistics.intervals import jackknife, two_way_jackknife
from evenhand.statistics.sizes import SizeKind
from evenhand.statistics.tests import holm

__all__ = [
    "Declaration",
    "Evidence",
    "Exhibit",
    "Instrument",
    "Job",
    "Option",
    "Progress",
    "Run",
    "check_options",
    "compare",
    "compare_together",
    "correct_p_values",
    "correct_results",
    "find",
    "instrument",
    "instruments",
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
    "vectors": ("evenhand.vectors.metrics",),
    "model": ("evenhand.masked.metrics", "evenhand.language.metrics"),
    "causal": ("evenhand.language.metrics",),
    "encoder": ("evenhand.language.metrics",),
    "corpus": ("evenhand.text.metrics",),
    "classifier": ("evenhand.fewshot.metrics",),
    "predictions": ("evenhand.classifier.metrics",),
}
"""Where the instruments of each subject are declared. Those of the subject `language` measure
language models of several kinds."""

LANGUAGE = {
    "model": "masked language model",
    "causal": "causal language model",
    "encoder": "sentence encoder",
}
"""The kinds of language models, and what they are called."""
ENTRY_POINTS = "evenhand.instruments"
OPENERS = ("evenhand.vectors.store", "evenhand.language.models", "evenhand.text.tables")
"""The modules that open a name, a path or an object of another library as a subject, each by its
function `open_subject`."""

Role: TypeAlias = Literal["leads", "required", "decides", "shown", "confirms", ""]
"""The parts that an instrument can have in a verdict, the first the strongest."""

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of items done and of all items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """How an instrument runs: what its result does not depend on, and seed and probability.

    Parameters
    ----------
    seed : int
        Seed of every random draw.
    prob : float
        Probability of the intervals.
    cache : object, optional
        Cache of model answers.
    progress : callable, optional
        Called with (done, total).

    """

    seed: int = 0
    prob: float = 0.95
    cache: Any = None
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if not (isinstance(self.prob, int | float) and 0 < self.prob < 1):
            raise InputError(f"prob: expected a number between 0 and 1, got {self.prob!r}")
        if not (isinstance(self.seed, numbers.Integral) and 0 <= self.seed < 2**32):
            raise InputError(f"seed: expected a whole number of 0 or more, got {self.seed!r}")

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
    """What is known of an instrument without running it.

    Parameters
    ----------
    name, subject, label, question : str
        Its name, what it measures ("vectors", "model", "causal", "encoder", "language", "corpus",
        "classifier"), its label in tables, and the question it answers.
    kinds : tuple of str
        Of the subject "language": the kinds of models that it measures.
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
        Whether an audit runs it on its default material; of the subject "language", or only for
        which kinds of models.
    command : str
        Its command on the command line where that has another name.

    """

    name: str
    subject: str
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
    kinds: tuple[str, ...] = ("model", "causal")
    options: tuple[Option, ...] = ()

    def measures(self, kind: str) -> bool:
        """Whether subjects of the kind are measured."""
        return self.subject == kind or (self.subject == "language" and kind in self.kinds)

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


class Instrument(Protocol):
    """What an instrument is: its declaration and `measure`.

    Optional methods:

    - `compare(before, after)` where pairing takes more than the jackknife over items;
    - `read(path)` that reads its material from a file, `choose(*, key=None, …)` that makes it of
      names and files given by key, and `requires_material` (a class attribute) where there is no
      default material;
    - `with_vectors(vectors)` where word vectors can be measured beside a model;
    - `misfit(material)` that says why material of that shape cannot be taken (None where it can),
      and `questions(material)` that splits material into questions that are measured, or skipped,
      one by one;
    - `audit(subject, run, data)` where an audit does more than measure the default material: the
      fields `measurements`, `skipped` and `details` of a stage. `data` has the audit's texts
      (`dataset`, `name`) and the sentences that the structural filter accepts (`accepted()`);
      `audit_uses_data` (a class attribute) says that the result depends on them;
    - `evidence(measurement)` that says which of a result and its parts are tests that decide a
      verdict, and what they mean; by default the result where it has a p-value. `controls` (a class
      attribute) names queries about harmless associations;
    - `exhibit(measurement)` that chooses the item shown as an example of a finding: the largest
      effect among the items that go in the direction of the result and can be read (`READABLE`);
    - `clause(measurement)` that says what a value means, where `above` and `below` do not suffice;
    - `with_replicates(measurement)` that adds the value without each item to a result's items;
    - for grids over the shards of a corpus: `pool(measurements)` with `compact(measurement)`, which
      leaves only what pooling needs, or `pool(tallies, prob=…)` with `tally(subject)`; and
      `measure_file(subject, path, run, output=…, keep=…)` that writes a row per item.
    """

    declaration: ClassVar[Declaration]

    def measure(
        self, subject: Any, material: Any = None, run: Run = ...
    ) -> Measurement | Sequence[Measurement]: ...


C = TypeVar("C")


def instrument(**about: Any) -> Callable[[type[C]], type[C]]:
    """Declare a frozen dataclass with a `measure` method as an instrument.

    Takes the fields of `Declaration` except `options`, which come from the dataclass.
    """

    def declare(cls: type[C]) -> type[C]:
        if not dataclasses.is_dataclass(cls):
            raise TypeError(f"{cls.__name__}: @instrument goes above @dataclass")
        declaration = Declaration(options=options_of(cls), **about)
        original = cls.__init__

        @wraps(original)
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            original(self, *args, **kwargs)
            check_options(self)

        cls.__init__ = __init__  # type: ignore[method-assign]
        cls.declaration = declaration  # type: ignore[attr-defined]
        return cls

    return declare


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


def check_options(settings: Any) -> None:
    """Raise InputError where a field of a dataclass is not as its option allows."""
    cls: type = type(settings)
    for declared in options_of(cls):
        declared.check(getattr(settings, declared.name))


def _option_of(name: str, hint: Any, default: Any, about: Mapping[str, Any]) -> Option:
    optional = multiple = False
    if typing.get_origin(hint) in (types.UnionType, typing.Union):
        (hint,) = (each for each in typing.get_args(hint) if each is not types.NoneType)
        optional = True
    if typing.get_origin(hint) is tuple:
        hint, multiple = typing.get_args(hint)[0], True
    choices: tuple[Any, ...] = ()
    if typing.get_origin(hint) is Literal:
        choices = typing.get_args(hint)
        hint = type(choices[0])
    if typing.get_origin(hint) is Mapping:
        hint, default = dict, {}
    return Option(
        name=name,
        type=hint if hint in (bool, int, float, dict) else str,
        default=default,
        choices=choices,
        multiple=multiple,
        optional=optional,
        **about,
    )


_LOADED: dict[str, dict[str, Any]] = {}


def instruments(subject: str) -> Mapping[str, Any]:
    """The instruments of a subject by name.

    The one that leads a verdict comes first, then those that are required, that decide, that
    confirm, and the others; in each group our own come before those of other packages.
    """
    if subject not in PACKAGES:
        raise UnknownNameError("subject", subject, PACKAGES)
    if subject not in _LOADED:
        declared: dict[str, Any] = {}
        for package in map(import_module, PACKAGES[subject]):
            for module in pkgutil.iter_modules(package.__path__):
                for cls in vars(import_module(f"{package.__name__}.{module.name}")).values():
                    declaration = getattr(cls, "declaration", None)
                    if not (isinstance(cls, type) and isinstance(declaration, Declaration)):
                        continue
                    if declaration.measures(subject):
                        declared[declaration.name] = cls
        for entry in entry_points(ENTRY_POINTS):
            cls = entry.load()
            if cls.declaration.measures(subject):
                declared.setdefault(cls.declaration.name, cls)
        _LOADED[subject] = dict(sorted(declared.items(), key=lambda item: _rank(item[1])))
    return types.MappingProxyType(_LOADED[subject])


def _rank(cls: Any) -> int:
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


def find(name: str) -> Any | None:
    """The instrument of that name, of any subject, or None."""
    for subject in PACKAGES:
        cls = instruments(subject).get(name)
        if cls is not None:
            return cls
    return None


def subject_of(value: Any) -> str:
    """The kind of a subject: every class that can be measured says it in `subject_kind`."""
    kind = getattr(value, "subject_kind", None)
    if kind is None and hasattr(value, "tokenizer") and hasattr(value, "logits"):
        kind = "model"
    if kind not in PACKAGES:
        raise InputError(
            "measure: expected word vectors, a language model, a corpus or a few-shot run, got "
            f"{type(value).__name__}"
        )
    return str(kind)


def open_subject(source: Any) -> Any:
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
    known = isinstance(source, str | os.PathLike)
    given = f"'{os.fspath(source)}'" if known else type(source).__name__
    raise InputError(
        "measure: expected word vectors, a language model, a corpus or a few-shot run, got "
        f"{given}{', which is no embedded name, file or folder' if known else ''}"
    )


def measure(
    subject: Any,
    material: Any = None,
    metrics: str | Any | Sequence[str | Any] | None = None,
    *,
    options: Mapping[str, Any] | None = None,
    seed: int = 0,
    prob: float = 0.95,
    cache: Any = None,
    progress: Progress | None = None,
) -> Measurements:
    """Measure word vectors, a language model, a corpus or a few-shot run.

    Parameters
    ----------
    subject : Vectors, model, corpus, predictions or few-shot run
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
    Measurements
        A named metric that does not fit is an error; without names, what does not fit is left out
        and what fails for want of data is listed in `skipped` with the reason.

    Examples
    --------
    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove")
    >>> [m.metric for m in measure(v, eh.lexicon.weat(7), ["weat", "mac"])]
    ['weat', 'mac']

    """
    subject = open_subject(subject)
    jobs = plan(subject_of(subject), material, metrics, options)
    run = Run(seed=seed, prob=prob, cache=cache, progress=progress)
    return run_jobs(subject, jobs, run, strict=metrics is not None)


@dataclass(frozen=True, slots=True)
class Job:
    """One instrument, with its options, on one question."""

    instrument: Any
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
    material: Any = None,
    metrics: str | Any | Sequence[str | Any] | None = None,
    options: Mapping[str, Any] | None = None,
    *,
    fitting: bool = False,
) -> list[Job]:
    """What `measure` would run on subjects of this kind, without running it.

    Parameters
    ----------
    kind : {"vectors", "model", "causal", "encoder", "corpus", "classifier"}
    material, metrics, options
        As for `measure`.
    fitting : bool
        Leave out named metrics that do not fit the material; by default they are an error.

    """
    alone = isinstance(metrics, str) or hasattr(metrics, "declaration")
    given: Any = [metrics] if alone else metrics
    chosen: list[Any] = [
        each if isinstance(getattr(each, "declaration", None), Declaration) else lookup(kind, each)
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
        content = _read_material(metric, material)
        reason = metric.misfit(content) if hasattr(metric, "misfit") else None
        if reason is None:
            split = hasattr(metric, "questions")
            questions = metric.questions(content) if split else [content]
            jobs += [Job(metric, question) for question in questions]
        elif given is not None and not fitting:
            raise InputError(f"metric '{metric.declaration.name}' {reason}")
    return jobs


def _read_material(metric: Any, material: Any) -> Any:
    """The material of an instrument, read where a file or a DataFrame is given."""
    if metric.declaration.subject == "vectors" or not hasattr(metric, "read"):
        return material
    if isinstance(material, str) and any(map(str.isspace, material)) and not _exists(material):
        return [material]  # a sentence
    is_path = isinstance(material, str | os.PathLike)
    return metric.read(material) if is_path or hasattr(material, "columns") else material


def _exists(path: str) -> bool:
    try:
        return Path(path).exists()
    except (OSError, ValueError):
        return False


def run_jobs(
    subject: Any, jobs: Iterable[Job], run: Run | None = None, *, strict: bool = False
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
def compare(
    before: Measurement | Measurements, after: Measurement | Measurements
) -> Comparison | ResultList[Comparison]:
    """The change from `before` to `after`: the same measurement of other vectors or models.

    What both share (easy words, hard words) cancels, since items are paired. An instrument may
    have a paired method of its own; otherwise the interval is the paired jackknife over items.

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
    >>> eh.compare(before, after)[0].effect
    'better'

    """
    if isinstance(before, Measurements) or isinstance(after, Measurements):
        return _compare_several(before, after)
    if (before.metric, before.query) != (after.metric, after.query):
        raise InputError(
            f"compare: expected the same measurement twice, got {before.metric} '{before.query}' "
            f"and {after.metric} '{after.query}'"
        )
    cls = find(before.metric)
    if cls is not None and hasattr(cls, "compare"):
        comparison: Comparison = cls.compare(before, after)
        return comparison
    return paired_jackknife(before, after)


def _compare_several(before: Any, after: Any) -> ResultList[Comparison]:
    several = [[m] if isinstance(m, Measurement) else m for m in (before, after)]
    first, second = ({(m.metric, m.query): m for m in listed} for listed in several)
    shared = [key for key in first if key in second]
    if not shared:
        raise InputError("compare: expected the same measurements twice, got none that both have")
    return ResultList(compare_together([compare(first[key], second[key]) for key in shared]))


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
        df, ratio = (c.paired - 1 if c.paired > 1 else None), c.kind == "ratio"
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
        named = cls.evidence(m) if hasattr(cls, "evidence") else [_evidence(m)]
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


def _bias_test(
    evidence: Evidence, about: Declaration | None, *, judged: bool, named: bool
) -> BiasTest:
    m, general = evidence.measurement, evidence.general
    distance = m.value - (m.ideal or 0.0)
    sign = 0 if about is None else about.stereotype or _SIGNS[m.worse]
    sides = about is not None and bool(about.above and about.below)
    few = about is not None and m.n < about.minimum
    return BiasTest(
        metric=m.metric,
        query=m.query,
        label=evidence.label or _label(about, m),
        value=m.value,
        low=m.low,
        high=m.high,
        prob=m.prob,
        ideal=m.ideal,
        p_value=m.p_value,
        draws=m.details.get("draws") if general is None else None,
        n=m.n,
        df=m.details.get("df"),
        one_sided=m.worse != "away" and not sides,
        opposite=m.worse != "away" and distance * _SIGNS[m.worse] < 0,
        towards=not sign or distance * sign > 0,
        role=about.role if about is not None and named else "",
        size=evidence.size or ("" if about is None else about.size),
        spread=evidence.spread,
        sign=sign,
        ratio=about is not None and about.compared == "ratio",
        general=None
        if general is None
        else General(low=general.low, high=general.high, p_value=general.p_value),
        repeats=evidence.repeats,
        corrected=None
        if (general or m).p_corrected is None
        else (float((general or m).p_corrected or 0.0), (general or m).family),
        judged=judged and not few and (about is None or about.bias),
    )


_SIGNS = {"higher": 1, "lower": -1, "away": 0}
"""The side of the ideal that is worse."""


@cache
def _estimated() -> dict[str, str]:
    """Results of models, and the instruments that measure the same."""
    return {result: about.name for about in all_declarations() for result in about.estimates}


def _explained(cls: type[Any] | None, m: Measurement) -> str:
    """What explains a value other than a bias, in words."""
    if m.query.partition(":")[0] in _controls(None if cls is None else cls.declaration):
        return "a harmless association, which is no bias"
    explain = getattr(cls, "explained", None)
    return "" if explain is None else str(explain(m))


def _controls(about: Declaration | None) -> frozenset[str]:
    """The questions about harmless associations, of the subjects that an instrument measures."""
    return frozenset(
        query
        for subject in PACKAGES
        if about is None or about.measures(subject)
        for cls in instruments(subject).values()
        for query in getattr(cls, "controls", ())
    )


def _label(about: Declaration | None, m: Measurement) -> str:
    return f"{m.metric if about is None else about.label}{f', {m.query}' if m.query else ''}"


def judge_results(
    results: Iterable[Measurement], others: Iterable[Measurement] = ()
) -> list[tuple[Tested, Judgement]]:
    """The tests of results that a reader sees together, each with what the judge says of it.

    `others` belong to the same families but are judged elsewhere, such as those of other topics.
    """
    tested = [each for m in results for each in tests_of(m)]
    beside = [each.test for m in others for each in tests_of(m)]
    judgements = judge([each.test for each in tested], beside)
    return list(zip(tested, judgements, strict=True))


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


def identity(chosen: Any) -> dict[str, Any]:
    """What the result of an instrument depends on besides its subject and material."""
    declaration: Declaration = chosen.declaration
    options = {each.name: getattr(chosen, each.name) for each in declaration.options}
    return {"metric": declaration.name, **options}


def all_declarations(subjects: Iterable[str] = tuple(PACKAGES)) -> list[Declaration]:
    """The declarations of every instrument of these subjects."""
    declared = (cls.declaration for subject in subjects for cls in instruments(subject).values())
    return list({id(about): about for about in declared}.values())
