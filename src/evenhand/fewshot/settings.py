"""The settings of a few-shot run and of its training, checked as soon as they are given."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from numbers import Integral
from typing import Any, Literal, TypeAlias, get_args

from evenhand.errors import InputError, UnknownNameError, parameter
from evenhand.fewshot.networks import CHOICES, IN_CONTEXT
from evenhand.instruments import Option, check_options, documented, option, options_of

StepProgress: TypeAlias = Callable[[str, int, int, str], None]
"""Called with the name of the step, the amount done, the total, and a text."""

Pooling: TypeAlias = Literal["mean", "cls", "last"]
"""How the states of a text's tokens become its features."""

POOLINGS: tuple[str, ...] = get_args(Pooling)

Scope: TypeAlias = Literal["train", "all"]
"""The episodes that a mitigation is applied to: those to train and validate with, or all."""

LabelBy: TypeAlias = Literal["calibrated", "likelihood", "written"]
"""How the class of a query is read from a model that has the examples in its prompt."""

SOFT = "proto-soft"
LIMIT, ORDERS = 128, 2
"""The longest text of a prompt in words, and the orders of its examples, unless others are given.
"""
MOST_TRAININGS = 1000
"""Splits, and seeds of each."""


def check_pooling(pooling: str, kind: str) -> None:
    """Raise unless a kind of model has this pooling."""
    if pooling not in POOLINGS:
        raise UnknownNameError("pooling", pooling, POOLINGS)
    if pooling == "cls" and kind == "causal":
        raise InputError(
            "pooling: expected last or mean for a causal model, whose first token has read "
            "nothing of the text, got cls"
        )


def half_of_each_gender(name: str, number: int) -> int:
    """Half of a number of texts; an odd one is an error."""
    if number % 2:
        raise InputError(
            f"{name}: expected an even number, one half of each gender, got {number} "
            "(calibration takes K/2 men and K/2 women, El Zein 2021, §4.2.3)"
        )
    return number // 2


@dataclass(frozen=True, slots=True)
class TextMitigation:
    """The mitigations that are applied; without any, the name is `none`.

    `pro` and `anti` are none: what is learned from has the pro- or the anti-stereotypical version
    of every text (El Zein 2021, §4.1.3).
    """

    augment: bool = False
    neutralize: bool = False
    rename: bool = False
    calibrate: bool = False
    parity: bool = False
    pro: bool = False
    anti: bool = False

    @property
    def name(self) -> str:
        """The names joined by +, always in the same order."""
        on = [option.name for option in fields(self) if getattr(self, option.name)]
        return "+".join(on) or "none"

    @property
    def swaps(self) -> bool:
        """Whether counterfactuals of the texts are needed."""
        return self.augment or self.pro or self.anti

    @property
    def rewritten(self) -> str:
        """The kind of texts without gender that are read, "" for texts as they are."""
        return "neutral" if self.neutralize else "renamed" if self.rename else ""

    def __str__(self) -> str:
        return self.name

    @classmethod
    def parse(cls, name: str) -> TextMitigation:
        """A mitigation by its names joined by +, in any order.

        >>> str(TextMitigation.parse("calibrate+augment"))
        'augment+calibrate'
        """
        known = [option.name for option in fields(cls)]
        words = [word.strip() for word in name.split("+")]
        if words == ["none"]:
            return cls()
        for word in words:
            if word in ("none", "pro", "anti") and len(words) > 1:
                raise InputError(f"mitigation: expected '{word}' by itself, got '{name}'")
            if word not in known:
                raise UnknownNameError("mitigation", word, ["none", *known])
            if words.count(word) > 1:
                raise InputError(f"mitigation: expected each once, got '{word}' twice in '{name}'")
        if {"neutralize", "rename"} <= set(words):
            raise InputError(f"mitigation: expected neutralize or rename, got both in '{name}'")
        return cls(**dict.fromkeys(words, True))


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingSettings:
    """How a network is trained: AdamW, `batch` episodes per step.

    `in-context` is not trained: of these settings it has the seed alone, that of the order of the
    examples. The rates rise linearly over the share `warmup` of the episodes and then fall linearly
    to 0. The weights of the best validation are used, which may be the first, before any training.
    `standardise` says whether features are standardised by mean and SD of the training texts. By
    default there is a projection of the features' own width where the network has little else to
    learn: matching, prototypical and MAML on frozen features; 0 is none.

    The steps of adaptation are those of El Zein (2021, §1.3.2). MAML is trained and validated
    through them, with the encoder among the weights that move where it is trained, at a rate lower
    by the ratio of the learning rates; second order where its option says so.

    Examples
    --------
    >>> TrainingSettings(network="protos")
    Traceback (most recent call last):
    evenhand.errors.UnknownNameError: unknown network 'protos': did you mean 'proto-soft'? ...

    """

    network: str = option("proto-euclidean", metavar="NAME", help=f"One of {', '.join(CHOICES)}.")
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
        check_options(self)
        if self.network not in CHOICES:
            raise UnknownNameError("network", self.network, CHOICES)
        if "projection" in self.options:
            raise InputError("options: expected those of the network alone, got 'projection'")

    def with_rate(self, rate: float) -> TrainingSettings:
        """The same with another learning rate, and that of the encoder in proportion.

        >>> TrainingSettings().with_rate(1e-3).encoder_learning_rate
        0.0002
        """
        encoder = self.encoder_learning_rate * rate / self.learning_rate
        return replace(self, learning_rate=rate, encoder_learning_rate=encoder)

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
        return asdict(self)


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


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """One network with one mitigation, on `splits` class splits with `seeds` trainings each.

    The class splits and the episodes to validate and to test on are drawn with `split_seed`, the
    rest with the training's own seed: runs of other networks, mitigations and seeds have the same
    test queries.

    `training` has the seed of the first of the `seeds`; for in-context each seed is an order of the
    examples of each episode.
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
    mitigation: TextMitigation = option(
        "none",
        metavar="M[+M]",
        help="none, or some of augment, neutralize or rename, calibrate, parity joined by +; or "
        "pro or anti: learn from the pro- or anti-stereotypical version of every text.",
    )
    mitigate: Scope = option(
        "train",
        help="Mitigate training and validation only, and test on the texts as they are; or all: "
        "the test supports and queries too. The training of in-context is the test supports.",
    )
    finetune: bool = option(
        False,
        flag="--finetune/--frozen",
        help="Train the encoder too; or leave it as it is, its features cached on disk.",
    )
    pooling: Pooling = option(
        "mean",
        help="How a text's tokens become its features: their mean, the first or the last of them.",
    )
    limit: int | None = option(
        None,
        minimum=3,
        flag="--max-length",
        help="The longest text or row in tokens; by default that of the encoder. Of in-context the "
        f"longest text in words, by default {LIMIT}.",
    )
    label_by: LabelBy = option(
        "calibrated",
        help="in-context: the class by the likelihood of its label over that after queries without "
        "content (Zhao et al. 2021), by the likelihood alone, or by the first label in the answer "
        "that the model writes.",
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
        help="Trainings of each split, with the seeds seed, seed + 1, …; of in-context orders of "
        f"the examples. By default 1, of in-context {ORDERS}.",
    )
    learning_rates: str | None = option(
        None,
        metavar="RATE,RATE",
        help="Train with each of these learning rates, the encoder's in proportion, and test the "
        "network that is best on the validation classes.",
    )
    split_seed: int = option(
        0,
        minimum=0,
        help="Seed of the class splits, validation and test episodes; leave it as it is in runs "
        "that are to be compared.",
    )

    def __post_init__(self) -> None:
        if isinstance(self.mitigation, str):
            object.__setattr__(self, "mitigation", TextMitigation.parse(self.mitigation))
        if isinstance(self.episodes, str):
            object.__setattr__(self, "episodes", EpisodeCounts.parse(self.episodes))
        check_options(self)
        if self.mitigation.calibrate:
            half_of_each_gender("shots", self.shots)
        if self.mitigation.parity and self.mitigate != "all":
            raise InputError(
                f"{parameter('mitigate')}: expected all with parity, which changes the answers to "
                f"test queries and no training, got {self.mitigate}"
            )
        if len(self.rates) != len(set(self.rates)) or not all(0 < r < math.inf for r in self.rates):
            raise InputError(
                "learning_rates: expected different numbers above 0 such as 1e-3,3e-4, got "
                f"'{self.learning_rates}'"
            )
        if self.in_context:
            self._check_in_context()
        soft = self.training.network == SOFT
        if self.unlabelled is None:
            object.__setattr__(self, "unlabelled", self.queries if soft else 0)
        elif self.unlabelled and not soft:
            raise InputError(
                f"unlabelled: expected none, the network {self.training.network} does not use "
                f"them ({SOFT} does), got {self.unlabelled}"
            )

    def _check_in_context(self) -> None:
        """Refuse what needs training; what only trainings have is as if it were not given."""
        training = self.training
        for name, given in {
            "options": dict(training.options),
            "adapt": training.adapt,
            "finetune": self.finetune,
            "learning_rates": self.learning_rates,
        }.items():
            if given:
                raise InputError(
                    f"{name}: expected none, the network {IN_CONTEXT} is not trained, got {given}"
                )
        alone = TrainingSettings(network=IN_CONTEXT, seed=training.seed)
        object.__setattr__(self, "training", alone)
        object.__setattr__(self, "limit", self.limit or LIMIT)

    @property
    def rates(self) -> tuple[float, ...]:
        """The learning rates to choose from; none where there is no choice."""
        if self.learning_rates is None:
            return ()
        try:
            return tuple(map(float, self.learning_rates.split(",")))
        except ValueError:
            return (math.nan,)

    @property
    def in_context(self) -> bool:
        """Whether a causal model reads the examples in its prompt, without training."""
        return self.training.network == IN_CONTEXT

    @property
    def support_mitigation(self) -> TextMitigation:
        """The mitigation of the test supports, which are all that in-context learns from."""
        return self.mitigation if self.in_context else self.test_mitigation

    @property
    def test_mitigation(self) -> TextMitigation:
        """The mitigation of the test queries, and of the test supports unless in-context."""
        return self.mitigation if self.mitigate == "all" else TextMitigation()

    @property
    def name(self) -> str:
        """The name of the run in tables: the network, and the mitigation if there is one."""
        network = self.training.network
        if self.training.adapt:
            network = f"{network} adapt {self.training.adapt}"
        if self.label_by != "calibrated" and self.in_context:
            network = f"{network} {self.label_by}"
        if self.mitigation.name == "none":
            return network
        scope = " (train)" if self.mitigate == "train" else ""
        return f"{network} {self.mitigation.name}{scope}"

    def training_of(self, number: int) -> TrainingSettings:
        """The training settings of the seed of that number, from 0 up."""
        return replace(self.training, seed=self.training.seed + number)

    def to_dict(self) -> dict[str, Any]:
        own = {field.name: getattr(self, field.name) for field in fields(self)}
        if not self.in_context:
            del own["label_by"]
        if self.learning_rates is None:
            del own["learning_rates"]
        return {
            **own,
            "training": self.training.to_dict(),
            "mitigation": str(self.mitigation),
            "episodes": str(self.episodes),
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> RunSettings:
        """Read what `to_dict` gave."""
        return cls(**{**values, "training": TrainingSettings(**values["training"])})


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class DataSettings:
    """Labelled texts: where they are, their columns, and how large a class must be."""

    data: str = option(
        "simulated",
        metavar="SRC",
        help="Labelled texts: simulated (parameters after a colon, as "
        "simulated:leak=0.8,per_class=300), a CSV, TSV, JSONL or Parquet file (compressed too), or "
        "hf:NAME.",
    )
    test_data: str | None = option(
        None,
        metavar="SRC",
        help="Test on all classes of these texts, read as the others are, whose classes are then "
        "to train and to validate on alone.",
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
    neither: str | None = option(
        None,
        metavar="CODE",
        help="What it has for a person who is neither, if not other, nonbinary, x or they.",
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


COLUMNS = ("text", "label", "gender", "male", "female", "neither")
"""The fields of `DataSettings` that name columns and codes."""


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSettings:
    """Settings that runs share besides their data: the encoder, the division of classes."""

    encoder: str = option(
        "mini",
        metavar="SRC",
        help="The encoder: mini, tiny-causal, the path of a folder or of a GGUF file, hf:NAME, or "
        "bilstm, a Bi-LSTM over the embedded GloVe that is trained through the episodes.",
    )
    model: str | None = option(
        None,
        metavar="SRC",
        help="The causal model of in-context, in place of an encoder: tiny-causal, the path of a "
        "folder or of a GGUF file, hf:NAME, or the address of a server that speaks the protocol of "
        "OpenAI, such as http://127.0.0.1:8080/v1.",
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
    chosen = ("validate_every", "seeds")
    return tuple(
        replace(each, default=None, optional=True) if each.name in chosen else each
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
    values["seeds"] = values["seeds"] or (ORDERS if training["network"] == IN_CONTEXT else 1)
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
