"""The settings of a few-shot run and of its training, checked as soon as they are given."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Integral, Real
from typing import Any, TypeAlias

from evenhand.errors import InputError, UnknownNameError
from evenhand.fewshot.mitigation import Mitigation, parse
from evenhand.fewshot.networks import LOSSES, NAMES

StepProgress: TypeAlias = Callable[[str, int, int, str], None]
"""Called with the name of the step, the amount done, the total, and a text."""

POOLINGS = ("mean", "cls")
"""How the states of a text's tokens become its features."""

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
    standardise : bool
        Whether features are standardised by mean and SD of the training texts.
    seed : int

    Examples
    --------
    >>> TrainingSettings(network="protos")
    Traceback (most recent call last):
    evenhand.errors.UnknownNameError: unknown network 'protos': did you mean 'proto-soft'? ...

    """

    network: str = "proto-euclidean"
    options: Mapping[str, Any] = field(default_factory=dict)
    projection: int | None = None
    loss: str | None = None
    batch: int = 16
    learning_rate: float = 5e-4
    encoder_learning_rate: float = 1e-4
    weight_decay: float = 0.01
    warmup: float = 0.05
    clip: float = 1.0
    validate_every: int = 500
    patience: int = 10
    standardise: bool = True
    seed: int = 0

    def __post_init__(self) -> None:
        if self.network not in NAMES:
            raise UnknownNameError("network", self.network, NAMES)
        if self.loss is not None and self.loss not in LOSSES:
            raise UnknownNameError("loss", self.loss, LOSSES)
        if "projection" in self.options:
            raise InputError("options: expected those of the network alone, got 'projection'")
        _check_counts(
            self,
            {"projection": 0, "batch": 1, "validate_every": 1, "patience": 1, "seed": 0},
            optional=("projection",),
        )
        positive = ("learning_rate", "encoder_learning_rate", "clip")
        for name in (*positive, "weight_decay", "warmup"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not math.isfinite(value) or value < 0:
                raise InputError(f"{name}: expected a number, 0 or more, got {value!r}")
        for name in positive:
            if not getattr(self, name):
                raise InputError(f"{name}: expected more than 0, got 0")
        if not self.warmup < 1:
            raise InputError(f"warmup: expected a share below 1, got {self.warmup}")

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
    finetune : bool
        Whether the encoder is trained too.
    pooling : {"mean", "cls"}
    limit : int, optional
        The longest text in tokens.
    unlabelled : int, optional
        Texts per class without their class, for the soft prototypical network only, by default as
        many as queries.
    splits, seeds, split_seed : int

    """

    training: TrainingSettings = field(default_factory=TrainingSettings)
    ways: int = 5
    shots: int = 5
    queries: int = 5
    episodes: EpisodeCounts = field(default_factory=EpisodeCounts)
    mitigation: Mitigation = field(default_factory=Mitigation)
    finetune: bool = False
    pooling: str = "mean"
    limit: int | None = None
    unlabelled: int | None = None
    splits: int = 1
    seeds: int = 1
    split_seed: int = 0

    def __post_init__(self) -> None:
        if isinstance(self.mitigation, str):
            object.__setattr__(self, "mitigation", parse(self.mitigation))
        if isinstance(self.episodes, str):
            object.__setattr__(self, "episodes", EpisodeCounts.parse(self.episodes))
        minimum = {"ways": 2, "shots": 1, "queries": 1, "splits": 1, "seeds": 1, "split_seed": 0}
        _check_counts(self, {**minimum, "limit": 3, "unlabelled": 0}, ("limit", "unlabelled"))
        for name in ("splits", "seeds"):
            if getattr(self, name) > MOST_TRAININGS:
                raise InputError(
                    f"{name}: expected 1 to {MOST_TRAININGS:,}, each a training of its own, got "
                    f"{getattr(self, name):,}"
                )
        if self.pooling not in POOLINGS:
            raise UnknownNameError("pooling", self.pooling, POOLINGS)
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
    def name(self) -> str:
        """The name of the run in tables: the network, and the mitigation if there is one."""
        network = self.training.network
        return network if self.mitigation.name == "none" else f"{network} {self.mitigation.name}"

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


def _check_counts(
    settings: Any, minimum: Mapping[str, int], optional: tuple[str, ...] = ()
) -> None:
    for name, smallest in minimum.items():
        value = getattr(settings, name)
        if value is None and name in optional:
            continue
        if isinstance(value, bool) or not isinstance(value, Integral) or value < smallest:
            raise InputError(f"{name}: expected a whole number from {smallest} up, got {value!r}")
