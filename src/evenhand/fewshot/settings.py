"""The settings of a few-shot run and of its training, checked as soon as they are given."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.fewshot.mitigation import Mitigation, Scope, parse
from evenhand.fewshot.networks import NAMES
from evenhand.instruments import Option, check_options, option, options_of

if TYPE_CHECKING:
    from evenhand.fewshot.data import Dataset

StepProgress: TypeAlias = Callable[[str, int, int, str], None]
"""Called with the name of the step, the amount done, the total, and a text."""

Pooling: TypeAlias = Literal["mean", "cls"]
"""How the states of a text's tokens become its features."""

POOLINGS: tuple[str, ...] = get_args(Pooling)

SOFT = "proto-soft"
MOST_TRAININGS = 1000
"""Splits, and seeds of each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """How a network is trained: AdamW, `batch` episodes per step.

    Parameters
    ----------
    network : str
        The name of a network (`evenhand.fewshot.networks.NAMES`).
    options : Mapping
        Options of that network.
    projection : int, optional
        The width of a learned linear map before the network; 0 for none. By default there is one
        of the features' own width where the network has little else to learn: matching,
        prototypical and MAML on frozen features.
    loss : {"ce", "mse"}, optional
        By default what the network is usually trained with.
    learning_rate, encoder_learning_rate, weight_decay, clip : float
    warmup : float
        The learning rates rise linearly over this share of the episodes and then fall linearly
        to 0.
    validate_every : int
        Episodes between validations.
    patience : int
        Training stops after this many validations in a row no better than the best. The weights of
        the best validation are used, which may be the first, before any training.
    adapt : int
        Gradient steps on the support of each test episode before its queries are answered (El Zein
        2021, §1.3.2). MAML is also trained and validated through them, with the encoder among the
        weights that move where it is trained; second order where its option says so.
    adapt_rate : float
        The rate of these steps; that of an encoder is lower by the ratio of the learning rates.
    standardise : bool
        Whether features are standardised by mean and SD of the training texts.
    seed : int

    Examples
    --------
    >>> TrainingSettings(network="protos")
    Traceback (most recent call last):
    evenhand.errors.UnknownNameError: unknown network 'protos': did you mean 'proto-soft'? ...

    """

    network: str = option("proto-euclidean", metavar="NAME", help=f"One of {', '.join(NAMES)}.")
    options: Mapping[str, int | float] = option(
        dict,
        flag="--option",
        help="An option of the network, such as slices=50 of relation-ntl.",
    )
    projection: int | None = option(
        None, minimum=0, public=False, help="Width of a learned linear map before the network."
    )
    loss: Literal["ce", "mse"] | None = option(
        None,
        help="Cross-entropy or squared error (El Zein 2021); by default what the network is "
        "usually trained with.",
    )
    batch: int = option(16, minimum=1, help="Episodes per step.")
    learning_rate: float = option(5e-4, above=0, help="The highest learning rate.")
    encoder_learning_rate: float = option(
        1e-4, above=0, help="That of the encoder, where it is fine-tuned."
    )
    weight_decay: float = option(0.01, minimum=0, public=False, help="Weight decay of AdamW.")
    warmup: float = option(
        0.05, minimum=0, below=1, public=False, help="Share of the episodes with a rising rate."
    )
    clip: float = option(1.0, above=0, public=False, help="Largest norm of the gradients.")
    validate_every: int = option(
        500,
        minimum=1,
        help="Episodes between validations; by default a tenth of the training episodes, 500 at "
        "most.",
    )
    patience: int = option(
        10, minimum=1, help="Stop after this many validations no better than the best."
    )
    adapt: int = option(
        0,
        minimum=0,
        maximum=1000,
        metavar="STEPS",
        help="Gradient steps on the support of each test episode before its queries are answered; "
        "maml is trained through them too.",
    )
    adapt_rate: float = option(0.01, above=0, help="The rate of the steps of adaptation.")
    standardise: bool = True
    seed: int = option(
        0,
        minimum=0,
        maximum=2**32 - 1,
        help="Seed of the training: initial weights and training episodes.",
    )

    def __post_init__(self) -> None:
        if self.network not in NAMES:
            raise UnknownNameError("network", self.network, NAMES)
        if "projection" in self.options:
            raise InputError("options: expected those of the network alone, got 'projection'")
        check_options(self)

    @property
    def trains_through_adaptation(self) -> bool:
        """Whether the inner steps are part of the training, as in MAML."""
        return self.network == "maml" and self.adapt > 0

    def projection_width(self, dim: int, *, tuned: bool) -> int | None:
        """The width of the projection for features of width `dim`, None without one.

        >>> settings = TrainingSettings()
        >>> settings.projection_width(256, tuned=False), settings.projection_width(256, tuned=True)
        (256, None)
        """
        if self.projection is not None:
            return self.projection or None
        few_weights = self.network.startswith(("matching", "proto", "maml"))
        return dim if few_weights and not tuned else None

    def to_dict(self) -> dict[str, Any]:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "options": dict(self.options)}


@dataclass(frozen=True, slots=True)
class EpisodeCounts:
    """The numbers of episodes to train, validate and test with.

    >>> EpisodeCounts.parse("10000/600/600")
    EpisodeCounts(train=10000, valid=600, test=600)
    """

    train: int = 10_000
    valid: int = 600
    test: int = 600

    def __post_init__(self) -> None:
        for part in fields(self):
            value = getattr(self, part.name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise InputError(
                    f"episodes: {part.name}: expected a whole number from 1 up, got {value!r}"
                )

    @classmethod
    def parse(cls, text: str) -> EpisodeCounts:
        """Three numbers joined by slashes."""
        parts = text.split("/")
        if len(parts) != 3 or not all(part.strip().isdecimal() for part in parts):
            raise InputError(
                f"episodes: expected TRAIN/VALID/TEST such as 10000/600/600, got '{text}'"
            )
        return cls(*map(int, parts))

    @property
    def validate_every(self) -> int:
        """The default number of episodes between validations: a tenth of them, 500 at most."""
        return max(1, min(500, self.train // 10))

    def __str__(self) -> str:
        return f"{self.train}/{self.valid}/{self.test}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """One network with one mitigation, on `splits` class splits with `seeds` trainings each.

    The class splits and the episodes to validate and to test on are drawn with `split_seed`, the
    rest with the training's own seed: runs of other networks, mitigations and seeds have the same
    test queries.

    Parameters
    ----------
    training : TrainingSettings
        Its seed is that of the first of the `seeds`.
    ways, shots, queries : int
        Classes per episode, supports and queries per class.
    episodes : EpisodeCounts or str
    mitigation : Mitigation or str
    mitigate : {"train", "all"}
        Whether the mitigation is applied to training and validation episodes only, with the test
        episodes as without it, or to the test episodes too.
    finetune : bool
        Whether the encoder is trained too.
    pooling : {"mean", "cls"}
    limit : int, optional
        The longest text in tokens.
    neutral : bool
        Whether every test query of known gender is also answered in its neutral version (they).
    unlabelled : int, optional
        Texts per class without their class, for the soft prototypical network only, by default as
        many as queries.
    splits, seeds, split_seed : int

    """

    training: TrainingSettings = field(default_factory=TrainingSettings)
    ways: int = option(5, minimum=2, help="Classes per task (C).")
    shots: int = option(5, minimum=1, help="Labelled texts per class (K).")
    queries: int = option(5, minimum=1, help="Query texts per class (Q).")
    episodes: EpisodeCounts = option(
        str(EpisodeCounts()),
        metavar="TRAIN/VALID/TEST",
        help="Numbers of tasks to train, to validate and to test with.",
    )
    mitigation: Mitigation = option(
        "none",
        metavar="M[+M]",
        help="none, or some of augment, neutralize, calibrate joined by +.",
    )
    mitigate: Scope = option(
        "train",
        help="Mitigate training and validation only, and test on the texts as they are; or all: "
        "the test supports and queries too.",
    )
    finetune: bool = option(
        False,
        flag="--finetune/--frozen",
        help="Train the encoder too; or leave it as it is, its features cached on disk.",
    )
    pooling: Pooling = option("mean", help="How a text's tokens become its features.")
    limit: int | None = option(
        None,
        minimum=3,
        flag="--max-length",
        help="The longest text or row in tokens; by default that of the encoder.",
    )
    neutral: bool = option(
        True,
        flag="--neutral/--no-neutral",
        help="Answer each test query also in its neutral version (they), where genders are known.",
    )
    unlabelled: int | None = option(
        None,
        minimum=0,
        help="Texts per class without their label; used by proto-soft only, by default as many as "
        "queries.",
    )
    splits: int = option(
        1, minimum=1, maximum=MOST_TRAININGS, help="Class splits to train and test on."
    )
    seeds: int = option(
        1,
        minimum=1,
        maximum=MOST_TRAININGS,
        help="Trainings of each split, with the seeds seed, seed + 1, …",
    )
    split_seed: int = option(
        0,
        minimum=0,
        help="Seed of the class splits, validation and test episodes; leave it as it is in runs "
        "that are to be compared.",
    )

    def __post_init__(self) -> None:
        if isinstance(self.mitigation, str):
            object.__setattr__(self, "mitigation", parse(self.mitigation))
        if isinstance(self.episodes, str):
            object.__setattr__(self, "episodes", EpisodeCounts.parse(self.episodes))
        check_options(self)
        if self.mitigation.calibrate and self.shots % 2:
            raise InputError(
                f"shots: expected an even number, one half of each gender, got {self.shots} "
                "(calibration takes K/2 men and K/2 women, El Zein 2021, §4.2.3)"
            )
        soft = self.training.network == SOFT
        if self.unlabelled is None:
            object.__setattr__(self, "unlabelled", self.queries if soft else 0)
        elif self.unlabelled and not soft:
            raise InputError(
                f"unlabelled: expected none, the network {self.training.network} does not use "
                f"them ({SOFT} does), got {self.unlabelled}"
            )

    @property
    def test_mitigation(self) -> Mitigation:
        """What is applied to the test episodes."""
        return self.mitigation if self.mitigate == "all" else Mitigation()

    @property
    def name(self) -> str:
        """The name of the run in tables: the network, and the mitigation if there is one."""
        network = self.training.network
        if self.training.adapt:
            network = f"{network} adapt {self.training.adapt}"
        if self.mitigation.name == "none":
            return network
        scope = " (train)" if self.mitigate == "train" else ""
        return f"{network} {self.mitigation.name}{scope}"

    def training_of(self, number: int) -> TrainingSettings:
        """The training settings of the seed of that number, from 0 up."""
        return replace(self.training, seed=self.training.seed + number)

    def to_dict(self) -> dict[str, Any]:
        return {
            **{field.name: getattr(self, field.name) for field in fields(self)},
            "training": self.training.to_dict(),
            "mitigation": str(self.mitigation),
            "episodes": str(self.episodes),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunSettings:
        """Read what `to_dict` gave."""
        return cls(**{**values, "training": TrainingSettings(**values["training"])})


@dataclass(frozen=True, slots=True, kw_only=True)
class DataSettings:
    """Labelled texts: where they are, their columns, and how large a class must be.

    Parameters
    ----------
    data : str
        `simulated`, the path of a file, or `hf:NAME`.
    text, label, gender : str, optional
        The columns; by default the known names.
    male, female : str, optional
        The codes in the column of the gender; by default the known ones.
    at_least, each_gender : int, optional
        Classes with fewer texts, or fewer texts of one gender, are left out.
    leaning : {"odds", "point", "share"}
        How the gender that a class leans to is determined; see `Dataset.leaning`.
    duplicates : {"once", "class"}
        Whether a text under several classes is left out, or counts once in each of them.

    """

    data: str = option(
        "simulated",
        metavar="SRC",
        help="Labelled texts: simulated (parameters after a colon, as "
        "simulated:leak=0.8,per_class=300), a CSV, TSV, JSONL or Parquet file (compressed too), or "
        "hf:NAME.",
    )
    text: str | None = option(
        None, metavar="COLUMN", help="Column of the text, if not text, sentence or hard_text."
    )
    label: str | None = option(
        None, metavar="COLUMN", help="Column of the class, if not label, occupation, profession."
    )
    gender: str | None = option(
        None,
        metavar="COLUMN",
        help="Column of the person's gender, if not gender. Without one, what compares women and "
        "men is left out.",
    )
    male: str | None = option(
        None, metavar="CODE", help="What the file has for a man, if not M or male."
    )
    female: str | None = option(
        None, metavar="CODE", help="What it has for a woman, if not F or female."
    )
    at_least: int | None = option(None, minimum=1, help="Leave out classes with fewer texts.")
    each_gender: int | None = option(
        None, minimum=1, help="Leave out classes with fewer texts of one gender."
    )
    leaning: Literal["odds", "point", "share"] = option(
        "odds",
        help="A class leans to a gender by its odds ratio against the other classes, where the 95% "
        "interval excludes 1 (odds); by that ratio alone, as in El Zein 2021 (point); or by which "
        "gender has more texts in it (share).",
    )
    duplicates: Literal["once", "class"] = option(
        "once",
        help="Equal texts count once, and a text under several classes is left out (once) or "
        "counts in each of them (class).",
    )

    @property
    def columns(self) -> dict[str, str]:
        """The columns and codes that are given."""
        values = {name: getattr(self, name) for name in COLUMNS}
        return {name: value for name, value in values.items() if value is not None}

    def read(self) -> Dataset:
        """Read the texts, without the classes that are too small."""
        from evenhand.fewshot.data import read

        check_options(self)
        columns: dict[str, Any] = self.columns
        simulated = self.data.partition(":")[0] == "simulated" and not Path(self.data).exists()
        if columns and simulated:
            raise InputError(f"{next(iter(columns))}: simulated data have no columns to name")
        try:
            dataset = read(self.data, **columns, leaning=self.leaning, duplicates=self.duplicates)
        except FileNotFoundError:
            problem = "no such file, and not simulated; a data set of the hub is named hf:NAME"
            raise FileError(self.data, problem) from None
        if self.at_least or self.each_gender:
            dataset = dataset.at_least(self.at_least or 1, each_gender=self.each_gender or 0)
        return dataset


COLUMNS = ("text", "label", "gender", "male", "female")
"""The fields of `DataSettings` that name columns and codes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSettings:
    """What the runs of a study share besides their data: the encoder, and who tests on what.

    Parameters
    ----------
    encoder : str
        `mini`, the path of a folder, or `hf:NAME`.
    shares : str
        Per cent of the classes to train, validate and test on.
    any_leaning : bool
        Whether parts without a class that leans male, or female, are allowed.

    """

    encoder: str = option(
        "mini", metavar="SRC", help="The encoder: mini, the path of a folder, or hf:NAME."
    )
    shares: str = option(
        "50/25/25",
        metavar="TRAIN/VALID/TEST",
        help="Per cent of the classes to train, validate and test on.",
    )
    any_leaning: bool = option(
        False, help="Allow parts without a class that leans male, or female."
    )


def run_options() -> tuple[Option, ...]:
    """The options of a run with its training, as commands and grids have them."""
    declared = (*options_of(RunSettings), *options_of(TrainingSettings))
    return tuple(
        replace(each, default=None, optional=True) if each.name == "validate_every" else each
        for each in declared
        if each.public
    )


def run_settings(given: Mapping[str, Any]) -> RunSettings:
    """The settings of a run from its options; None for `queries` means as many as shots."""
    values = {each.name: given[each.name] for each in run_options()}
    episodes = EpisodeCounts.parse(values.pop("episodes"))
    own = {each.name for each in options_of(TrainingSettings)}
    training = {name: values.pop(name) for name in own & values.keys()}
    training["validate_every"] = training["validate_every"] or episodes.validate_every
    values["queries"] = values["queries"] or values["shots"]
    return RunSettings(training=TrainingSettings(**training), episodes=episodes, **values)


def parse_shares(text: str) -> tuple[float, ...]:
    """Three numbers joined by slashes, per cent or ratios, as shares that add up to 1.

    >>> parse_shares("50/25/25"), parse_shares("2/1/1")
    ((0.5, 0.25, 0.25), (0.5, 0.25, 0.25))
    """
    try:
        numbers = [float(part) for part in text.split("/")]
    except ValueError:
        numbers = []
    if len(numbers) != 3 or not all(0 < number < math.inf for number in numbers):
        raise InputError(f"shares: expected three numbers such as 50/25/25, got '{text}'")
    if max(numbers) >= 10 and not math.isclose(sum(numbers), 100, rel_tol=0.011):
        raise InputError(
            f"shares: expected three numbers that add up to 100, such as 50/25/25, got '{text}', "
            f"which add up to {sum(numbers):g}"
        )
    return tuple(number / sum(numbers) for number in numbers)
