"""Everything that decides what a fine-tuning learns, checked as soon as it is given."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from evenhand.errors import InputError, UnknownNameError

__all__ = ["REWRITES", "Settings"]

REWRITES = ("none", "swap", "substitute", "neutralize")
"""How the text is rewritten as it is read."""

DTYPES = ("auto", "float32", "bfloat16")

_LEAST = {
    "block": 8, "batch": 1, "epochs": 1, "max_tokens": 1, "evaluations": 1, "patience": 1,
    "top_k": 1, "seed": 0,
}  # fmt: skip
_SHARES = ("mask", "warmup", "held_out", "evaluation", "prob")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How to fine-tune; the defaults take `mini` through in minutes on two CPU cores.

    A step learns from `batch` blocks of `block` tokens, or from as many more rows as fill them
    where rows are shorter. Training ends after `epochs`, after `max_tokens` tokens in all, or when
    `patience` evaluations in a row, of the `evaluations` that are spread over it, were no better
    than the best; the weights of the best one are kept. Of the documents a share `held_out` is for
    the measurements before and after, and a share `evaluation` for the evaluation loss; neither is
    learned from. `rewrite` is "substitute" (half of the documents swapped, drawn anew in every
    epoch), "swap" (all of them), "neutralize" or "none". `dtype` is "auto" (bfloat16 on a GPU,
    float32 elsewhere), "float32" or "bfloat16"; weights are float32 always.

    >>> Settings(rewrite="swop")
    Traceback (most recent call last):
    evenhand.errors.UnknownNameError: unknown rewrite 'swop': did you mean 'swap'? (known: ...)
    """

    rewrite: str = "substitute"
    block: int = 256
    batch: int = 8
    epochs: int = 30
    max_tokens: int = 600_000
    learning_rate: float = 2e-4
    warmup: float = 0.06
    weight_decay: float = 0.01
    clip: float = 1.0
    mask: float = 0.15
    evaluations: int = 20
    patience: int = 8
    held_out: float = 0.2
    evaluation: float = 0.05
    top_k: int = 10
    prob: float = 0.95
    dtype: str = "auto"
    seed: int = 0

    def __post_init__(self) -> None:
        if self.rewrite not in REWRITES:
            raise UnknownNameError("rewrite", self.rewrite, REWRITES)
        if self.dtype not in DTYPES:
            raise UnknownNameError("dtype", self.dtype, DTYPES)
        for name, least in _LEAST.items():
            if getattr(self, name) < least:
                raise InputError(f"{name}: expected {least} or more, got {getattr(self, name)}")
        for name in _SHARES:
            if not 0 < getattr(self, name) < 1:
                raise InputError(f"{name}: expected between 0 and 1, got {getattr(self, name)}")
        for name in ("learning_rate", "clip"):
            if not getattr(self, name) > 0:
                raise InputError(f"{name}: expected more than 0, got {getattr(self, name)}")
        if not self.weight_decay >= 0:
            raise InputError(f"weight_decay: expected 0 or more, got {self.weight_decay}")
        if self.held_out + self.evaluation >= 1:
            raise InputError("held_out and evaluation: expected to leave text to learn from")

    def as_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)}
