"""Everything that decides how a network is trained, checked as soon as it is given."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from numbers import Integral, Real
from typing import Any

from evenhand.errors import InputError, UnknownNameError
from evenhand.fewshot.networks import LOSSES, NAMES

__all__ = ["Settings"]

_LEAST = {"projection": 0, "batch": 1, "validate_every": 1, "patience": 1, "seed": 0}
_FEW_WEIGHTS = ("matching", "proto", "maml")
_ABOVE = ("learning_rate", "encoder_learning_rate", "clip")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to train; all networks learn with AdamW, `batch` episodes a step.

    `options` are the network's own. `projection` puts a learnt linear map to so many dimensions
    before the network, 0 none; by default there is one of the features' own width where the
    network has next to nothing else to learn: matching, prototypical and MAML on features that
    stay as they are. `loss` is "ce" or "mse", by default what
    the network is usually trained with. The learning rates rise in a line over the share `warmup`
    of the episodes and then fall in a line to 0. After every `validate_every` episodes the network
    is tried on the validation episodes; after `patience` trials in a row that were no better than
    the best, training stops; the weights of the best trial are kept, which may be the first, before
    any training. `standardise` measures features from the mean of the training texts, in their
    standard deviations.

    >>> Settings(network="protos")
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
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if name == "projection" and value is None:
                continue
            if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
                raise InputError(f"{name}: expected a whole number from {least} up, got {value!r}")
        for name in (*_ABOVE, "weight_decay", "warmup"):
            value = getattr(self, name)
            if not isinstance(value, Real) or not math.isfinite(value) or value < 0:
                raise InputError(f"{name}: expected a number, 0 or more, got {value!r}")
        for name in _ABOVE:
            if not getattr(self, name):
                raise InputError(f"{name}: expected more than 0, got 0")
        if not self.warmup < 1:
            raise InputError(f"warmup: expected a share below 1, got {self.warmup}")

    def projected(self, dim: int, *, tuned: bool) -> int | None:
        """The width of the projection for features of a width, None without one.

        >>> Settings().projected(256, tuned=False), Settings().projected(256, tuned=True)
        (256, None)
        """
        if self.projection is not None:
            return self.projection or None
        return dim if self.network.startswith(_FEW_WEIGHTS) and not tuned else None

    def as_dict(self) -> dict[str, Any]:
        told = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**told, "options": dict(self.options)}
