"""The sentences a search found, in the structural filter's form, and how they came about."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from evenhand.masked.generate.reading import INTERVAL, TEST, Reading, Rule
from evenhand.masked.generate.search import Found, Missed, Settings, Task
from evenhand.results import replace_file, to_json

__all__ = ["Direction", "Generation", "Outcome"]

Direction = Literal["own", "both", "male", "female"]


@dataclass(frozen=True)
class Outcome:
    """A seed pushed to one side: what the search found, and what random edits made of it."""

    task: Task
    search: Found | Missed
    control: Found | Missed | None


@dataclass(frozen=True, kw_only=True)
class Generation:
    """The sentences found, why some seeds yielded none, and the comparison with random edits."""

    model: str
    direction: Direction
    settings: Settings
    read: int
    left_out: Mapping[str, int]
    outcomes: tuple[Outcome, ...] = field(repr=False)
    readings: tuple[Reading, ...]
    rule: Rule

    @property
    def sentences(self) -> list[dict[str, Any]]:
        """The sentences found, as the filter writes them, with seed, edits, bias and fluency."""
        return self._records([(o.task, o.search) for o in self.outcomes])

    @property
    def controls(self) -> list[dict[str, Any]]:
        """The sentences that random edits made, in the same form."""
        return self._records([(o.task, o.control) for o in self.outcomes])

    def _records(self, made: Iterable[tuple[Task, Found | Missed | None]]) -> list[dict[str, Any]]:
        return [_record(self.model, task, f) for task, f in made if isinstance(f, Found)]

    @property
    def nothing(self) -> dict[str, int]:
        """How many searches yielded nothing, by what ruled out most of their candidates."""
        return _reasons(o.search for o in self.outcomes)

    def lines(self) -> bytes:
        """The sentences, a JSON line each."""
        return "".join(to_json(row, indent=None) + "\n" for row in self.sentences).encode()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sentences, whole or not at all."""
        with replace_file(path) as file:
            file.write(self.lines())

    def as_dict(self) -> dict[str, Any]:
        """The summary; the sentences stand apart."""
        return {
            "model": self.model,
            "direction": self.direction,
            "settings": asdict(self.settings),
            "seed": self.rule.seed,
            "read": self.read,
            "left_out": dict(self.left_out),
            "searches": len(self.outcomes),
            "generated": len(self.sentences),
            "nothing": self.nothing,
            "controls": len(self.controls),
            "control_nothing": _reasons(o.control for o in self.outcomes),
            "beyond": self.rule.beyond,
            "interval": INTERVAL,
            "test": TEST,
            "readings": [asdict(reading) for reading in self.readings],
        }


def _reasons(found: Iterable[Found | Missed | None]) -> dict[str, int]:
    return dict(sorted(Counter(f.reason for f in found if isinstance(f, Missed)).items()))


def _record(model: str, task: Task, found: Found) -> dict[str, Any]:
    """A line of the output."""
    seed = task.ground.seed
    return {
        "line": seed.line,
        "source": seed.source,
        **{name: getattr(found.kept, name) for name in found.kept.__slots__},
        "model": model,
        "direction": task.side,
        "seed": seed.found.sentence,
        "edits": [edit.as_dict() for edit in found.draft.edits],
        "bias_before": task.before.bias,
        "bias_after": found.slot.bias,
        "perplexity_ratio": found.fluency.ratio,
        "fluency_loss": found.fluency.loss,
    }
