"""What a fine-tuning gives back: the changes it made, each with its interval, and its curve."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from evenhand.errors import InputError
from evenhand.results import Estimate

__all__ = ["INTERVAL", "Change", "FinetuneResult"]

INTERVAL = (
    "studentised bootstrap over sentences, paired; perplexity: bootstrap over sentences; CrowS: "
    "Wilson and Newcombe over pairs; distance from the ideal: from the intervals of the paired "
    "difference and the paired sum. They hold the trained weights fixed: another seed of the "
    "training would give somewhat other ones."
)

Kind = Literal["difference", "ratio"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A measure before and after on the same n items; `change` is after - before, or after/before.

    `ideal` is what no bias would read, None for a measure of usefulness; `distance` is the change
    of the distance from it, |after - ideal| - |before - ideal|: .55 to .455 is a clear change, and
    yet about as far from .5 as before.
    """

    measure: str
    n: int
    before: Estimate
    after: Estimate
    change: Estimate
    kind: Kind = "difference"
    ideal: float | None = None
    distance: Estimate | None = None

    @property
    def significant(self) -> bool:
        """Whether the interval of the change leaves out no change."""
        nothing = 0.0 if self.kind == "difference" else 1.0
        return not self.change.low <= nothing <= self.change.high

    @property
    def nearer(self) -> bool | None:
        """Whether the measure is nearer its ideal than before; None where the interval of the
        distance leaves it open, or there is no ideal.
        """
        if self.distance is None or self.distance.low <= 0 <= self.distance.high:
            return None
        return self.distance.high < 0

    @property
    def verdict(self) -> str:
        """The change in words."""
        if not self.significant:
            return "no clear change"
        if self.ideal is None:
            return "better" if self.change.value < 1 else "worse"
        if self.nearer is not None:
            return "nearer the ideal" if self.nearer else "further from the ideal"
        crossed = (self.before.value - self.ideal) * (self.after.value - self.ideal) < 0
        return "past the ideal" if crossed else "changed; distance unclear"

    def as_dict(self) -> dict[str, Any]:
        return {
            "measure": self.measure, "n": self.n, "before": self.before.as_dict(),
            "after": self.after.as_dict(), "change": self.change.as_dict(), "kind": self.kind,
            "ideal": self.ideal, "significant": self.significant,
            "distance": None if self.distance is None else self.distance.as_dict(),
            "nearer": self.nearer, "verdict": self.verdict,
        }  # fmt: skip

    @classmethod
    def from_dict(cls, told: Mapping[str, Any]) -> Self:
        """The change that `as_dict` told of."""
        return cls(
            measure=told["measure"], n=told["n"], kind=told["kind"], ideal=told["ideal"],
            distance=None if told["distance"] is None else _estimate(told["distance"]),
            **{name: _estimate(told[name]) for name in ("before", "after", "change")},
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneResult:
    """What changed on held-out text, the loss curve, and what everything rests on.

    `changes` are of the fine-tuned model against the one it began as; with a control run (the
    same training on the text as it is) `control` are those of the control, and `beyond_control`
    those of the fine-tuned model against the control: what the rewriting did beyond the domain.
    """

    model: str
    folder: Path
    settings: Mapping[str, Any]
    data: Mapping[str, Any]
    training: Mapping[str, Any]
    curve: Sequence[Mapping[str, Any]] = field(repr=False)
    changes: tuple[Change, ...]
    control: tuple[Change, ...] = ()
    beyond_control: tuple[Change, ...] = ()
    control_curve: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    crows: Mapping[str, Any] | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()

    def change(self, measure: str) -> Change:
        """The change of one measure."""
        for found in self.changes:
            if found.measure == measure:
                return found
        known = ", ".join(found.measure for found in self.changes)
        raise InputError(f"no measure '{measure}' (measures: {known})")

    def as_dict(self) -> dict[str, Any]:
        """The JSON view, which is what results.json holds."""
        return {
            "model": self.model, "settings": dict(self.settings), "data": dict(self.data),
            "training": dict(self.training),
            "changes": [change.as_dict() for change in self.changes],
            "control": [change.as_dict() for change in self.control],
            "beyond_control": [change.as_dict() for change in self.beyond_control],
            "crows": self.crows, "interval": INTERVAL, "notes": list(self.notes),
            "curve": [dict(point) for point in self.curve],
            "control_curve": [dict(point) for point in self.control_curve],
        }  # fmt: skip

    @classmethod
    def from_dict(cls, told: Mapping[str, Any], folder: Path) -> Self:
        """The result that `as_dict` told of."""
        parts: dict[str, Any] = {
            name: tuple(Change.from_dict(change) for change in told[name])
            for name in ("changes", "control", "beyond_control")
        }
        plain: dict[str, Any] = {
            name: told[name] for name in ("model", "settings", "data", "training", "crows")
        }
        return cls(
            folder=folder, curve=told["curve"], control_curve=told["control_curve"],
            notes=tuple(told["notes"]), **plain, **parts,
        )  # fmt: skip


def _estimate(told: Mapping[str, Any]) -> Estimate:
    """The estimate; a mean of nothing is null in JSON."""
    return Estimate(**{**told, "value": math.nan if told["value"] is None else told["value"]})
