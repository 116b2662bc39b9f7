"""Everything that decides a few-shot run, checked as soon as it is given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from numbers import Integral
from typing import Any

from evenhand.errors import InputError, UnknownNameError
from evenhand.fewshot.encoders import POOLINGS
from evenhand.fewshot.mitigation import Mitigation, parse
from evenhand.fewshot.training.settings import Settings

__all__ = ["EpisodeCounts", "RunSettings", "parse_shares"]

_LEAST = {"ways": 2, "shots": 1, "queries": 1, "splits": 1, "seeds": 1, "split_seed": 0,
          "limit": 3, "unlabelled": 0}  # fmt: skip
_MAY_LACK = ("limit", "unlabelled")
SOFT = "proto-soft"


@dataclass(frozen=True, slots=True)
class EpisodeCounts:
    """How many episodes to train, validate and test with.

    >>> EpisodeCounts.parse("10000/600/600")
    EpisodeCounts(train=10000, valid=600, test=600)
    """

    train: int = 10_000
    valid: int = 600
    test: int = 600

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
                raise InputError(
                    f"episodes: {each.name}: expected a whole number from 1 up, got {value!r}"
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
        """Episodes between validations where none are asked for: a tenth of them, 500 at most."""
        return max(1, min(500, self.train // 10))

    def __str__(self) -> str:
        return f"{self.train}/{self.valid}/{self.test}"


def parse_shares(text: str) -> tuple[float, ...]:
    """Three numbers joined by slashes as shares that add up to 1.

    >>> parse_shares("50/25/25")
    (0.5, 0.25, 0.25)
    """
    try:
        numbers = [float(part) for part in text.split("/")]
    except ValueError:
        numbers = []
    if len(numbers) != 3 or not all(0 < number < math.inf for number in numbers):
        raise InputError(f"shares: expected three numbers such as 50/25/25, got '{text}'")
    return tuple(number / sum(numbers) for number in numbers)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSettings:
    """One network with one mitigation, on `splits` class splits with `seeds` trainings each.

    The class splits and the episodes to validate and to test on are drawn by `split_seed`, the
    rest by the training's own seed: runs of other networks, mitigations and seeds have the same
    test queries. `unlabelled` is a number of texts a class, for the soft prototypical network
    alone, which has as many as queries by default. `finetune` trains the encoder along. The seed
    of `training` is that of the first of the `seeds`.
    """

    training: Settings = field(default_factory=Settings)
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
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is None and name in _MAY_LACK:
                continue
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise InputError(f"{name}: expected a whole number from {least} up, got {value!r}")
        if self.pooling not in POOLINGS:
            raise UnknownNameError("pooling", self.pooling, POOLINGS)
        if self.mitigation.calibrate and self.shots % 2:
            raise InputError(
                f"shots: expected an even number, one half of each gender, got {self.shots} "
                "(D0 §4.2.3 calibrates with K/2 men and K/2 women)"
            )
        soft = self.training.network == SOFT
        if self.unlabelled is None:
            object.__setattr__(self, "unlabelled", self.queries if soft else 0)
        elif self.unlabelled and not soft:
            raise InputError(
                f"unlabelled: expected none, the network {self.training.network} takes no account "
                f"of them ({SOFT} does), got {self.unlabelled}"
            )

    @property
    def name(self) -> str:
        """What the run is called in tables: the network, and the mitigation where there is one."""
        network = self.training.network
        return network if self.mitigation.name == "none" else f"{network} {self.mitigation.name}"

    def seeded(self, number: int) -> Settings:
        """How to train with the seed of that number, from 0 up."""
        return replace(self.training, seed=self.training.seed + number)

    def as_dict(self) -> dict[str, Any]:
        told = {each.name: getattr(self, each.name) for each in fields(self)}
        return {
            **told, "training": self.training.as_dict(), "mitigation": str(self.mitigation),
            "episodes": str(self.episodes),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> RunSettings:
        """What `as_dict` gave."""
        return cls(**{**told, "training": Settings(**told["training"])})
