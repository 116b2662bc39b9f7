"""Every choice of a pretraining run in one place; the command line has an option for each."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from evenhand.errors import InputError, UnknownNameError


@dataclass(frozen=True)
class Recipe:
    """The shape of the model, the mixture of rows, the masking and the optimizer."""

    kind: str = "masked"
    """`masked` (BERT) or `causal` (Llama): that of the tokenizer."""
    vocabulary: int = 12_000
    layers: int = 10
    width: int = 256
    heads: int = 4
    inner: int = 1024
    max_positions: int = 256
    batch_tokens: int = 131_072
    shares: str = "256:0.1,128:0.6,64:0.15,1:0.15"
    """Part of the tokens in rows of each length limit; the limit 1 means single sentences."""
    optimizer: str = "muon"
    lr: float = 2e-3
    """Of AdamW; with Muon it is for embeddings, biases and norms only."""
    matrix_lr: float = 4e-3
    """Of Muon, for the matrices, in the scale of AdamW (Liu et al. 2025)."""
    weight_decay: float = 0.05
    beta1: float = 0.9
    beta2: float = 0.98
    clip: float = 1.0
    warmup: int = 500
    decay: float = 0.34
    """Last part of the steps, in which the learning rate falls linearly to 0."""
    mask: float = 0.3
    late_mask: float = 0.2
    """The masked part of the tokens before and during the decay."""
    whole_words: bool = False
    seed: int = 0

    def __post_init__(self) -> None:
        if self.kind not in ("masked", "causal"):
            raise UnknownNameError("kind of model", self.kind, ["masked", "causal"])
        if self.optimizer not in ("adamw", "muon"):
            raise UnknownNameError("optimizer", self.optimizer, ["adamw", "muon"])
        if self.width % self.heads:
            raise InputError(f"width: expected a multiple of {self.heads} heads, got {self.width}")
        for name in ("mask", "late_mask", "decay"):
            value = getattr(self, name)
            if not 0 < value < 1:
                raise InputError(f"{name}: expected a number between 0 and 1, got {value}")
        self.mixture()

    def mixture(self) -> dict[int, float]:
        """The shares as numbers: length limit -> part of the tokens.

        >>> Recipe(shares="128:0.8,1:0.2").mixture()
        {128: 0.8, 1: 0.2}
        """
        try:
            pairs = [pair.split(":") for pair in self.shares.split(",")]
            mixture = {int(limit): float(share) for limit, share in pairs}
        except ValueError:
            mixture = {}
        whole = abs(sum(mixture.values()) - 1) < 1e-6
        if not (mixture and whole and min(mixture) >= 1 and max(mixture) <= self.max_positions):
            raise InputError(
                f"shares: expected limit:part,… with limits up to {self.max_positions} and parts "
                f"that sum to 1, got {self.shares!r}"
            )
        return mixture

    def learning_rate(self, step: int, steps: int) -> float:
        """The factor on the learning rate: a linear rise, a plateau, a linear fall to 0.

        >>> recipe = Recipe(warmup=10, decay=0.5)
        >>> [round(recipe.learning_rate(step, 100), 2) for step in (0, 9, 49, 75, 99)]
        [0.1, 1.0, 1.0, 0.5, 0.02]
        """
        rise = (step + 1) / max(self.warmup, 1)
        fall = (steps - step) / max(self.decay * steps, 1)
        return min(1.0, rise, fall)

    def late(self, step: int, steps: int) -> bool:
        """Whether the step is in the decay, where less is masked."""
        return step >= steps * (1 - self.decay)

    def to_json(self) -> str:
        return json.dumps(dataclasses.asdict(self))

    def changed(self, settings: Mapping[str, str]) -> Recipe:
        """The recipe with some choices set from text, as a probe names them.

        >>> Recipe().changed({"layers": "8", "whole_words": "true"}).layers
        8
        """
        kinds = {field.name: type(getattr(self, field.name)) for field in dataclasses.fields(self)}
        values: dict[str, Any] = {}
        for name, text in settings.items():
            if name not in kinds:
                raise UnknownNameError("choice", name, kinds)
            try:
                values[name] = text == "true" if kinds[name] is bool else kinds[name](text)
            except ValueError:
                wanted = kinds[name].__name__
                raise InputError(
                    f"{name}: expected a value of type {wanted}, got {text!r}"
                ) from None
        return dataclasses.replace(self, **values)
