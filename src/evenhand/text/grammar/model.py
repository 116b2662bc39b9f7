"""The embedded model of the pronouns: three log-linear classifiers in one small file.

Made by `tools/train_grammar.py`; assets/grammar.md says from what and how well it does.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources
from itertools import repeat

import numpy as np

from evenhand.text.grammar.context import (
    Kind,
    Left,
    Neighbours,
    Right,
    far_features,
    near_features,
    subject,
)

__all__ = ["CLEAR", "Classifier", "Model", "embedded", "read", "write"]

TASKS = ("her", "his", "contraction")
STEP = 1 / 16
"""Weights are kept as whole multiples of this."""
CLEAR = 4.0
"""Log odds of the near features from which on the far ones are not asked."""


@dataclass(frozen=True, slots=True)
class Classifier:
    """One question: the weights of its features, and what the next token alone settles."""

    bias: float
    weights: Mapping[str, float]
    settled: Mapping[str, bool]

    def sum(self, features: Iterable[str]) -> float:
        return sum(map(self.weights.get, features, repeat(0.0)))


@dataclass(frozen=True, slots=True)
class Model:
    """Word classes, the verbs that matter, and a classifier for each question."""

    kinds: Mapping[str, Kind]
    verbs: Mapping[str, tuple[str, str]]
    tasks: Mapping[str, Classifier]

    def score(self, task: str, around: Neighbours) -> float:
        """The log odds that the answer is yes."""
        asked = self.tasks[task]
        near = near_features(around.right, around.left, self.kinds)
        far = far_features(around, self.kinds, self.verbs)
        return asked.bias + asked.sum(near) + asked.sum(far)

    def near(self, task: str, right: Right, left: Left) -> float:
        """The log odds by the nearest tokens alone; beyond `CLEAR` they leave no doubt."""
        asked = self.tasks[task]
        return asked.bias + asked.sum(near_features(right, left, self.kinds))

    def yes(
        self, task: str, near: float, text: str, start: int, right: Right, left: Left, own: str
    ) -> bool:
        """The answer by `score`, from what the near features said already."""
        asked = self.tasks[task]
        around = Neighbours(right, left, subject(text, start, own))
        return near + asked.sum(far_features(around, self.kinds, self.verbs)) > 0


@cache
def embedded() -> Model:
    """The model that comes with the package, read when it is first asked for."""
    return read((resources.files("evenhand") / "assets" / "grammar.npz").read_bytes())


def _pack(lines: list[str]) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer("\n".join(lines).encode(), dtype=np.uint8)


def write(model: Model) -> bytes:
    """The model as the bytes of a compressed npz; the same model gives the same bytes."""
    words = sorted(model.kinds)
    arrays = {
        "words": _pack(words),
        "kinds": _pack(["\t".join(model.kinds[word]) for word in words]),
        "verbs": _pack([f"{form}\t{base}\t{group}" for form, (base, group) in model.verbs.items()]),
    }
    for name, task in model.tasks.items():
        keys = sorted(task.weights)
        steps = np.rint(np.array([task.weights[key] for key in keys]) / STEP)
        arrays[f"{name}_keys"] = _pack(keys)
        arrays[f"{name}_weights"] = np.clip(steps, -127, 127).astype(np.int8)
        arrays[f"{name}_bias"] = np.array([task.bias])
        arrays[f"{name}_settled"] = _pack(
            [f"{int(answer)}{token}" for token, answer in sorted(task.settled.items())]
        )
    out = io.BytesIO()
    np.savez_compressed(out, allow_pickle=False, **arrays)
    return out.getvalue()


def read(data: bytes) -> Model:
    """The model in the bytes of a file that `write` made."""
    with np.load(io.BytesIO(data), allow_pickle=False) as arrays:

        def lines(name: str) -> list[str]:
            text = arrays[name].tobytes().decode()
            return text.split("\n") if text else []

        written = lines("kinds")
        kinds = {line: tuple(line.split("\t")) for line in set(written)}
        verbs = (line.split("\t") for line in lines("verbs"))
        tasks = {
            task: Classifier(
                bias=float(arrays[f"{task}_bias"][0]),
                weights=dict(
                    zip(
                        lines(f"{task}_keys"),
                        (arrays[f"{task}_weights"] * STEP).tolist(),
                        strict=True,
                    )
                ),
                settled={line[1:]: line[0] == "1" for line in lines(f"{task}_settled")},
            )
            for task in TASKS
        }
        return Model(
            kinds=dict(zip(lines("words"), map(kinds.__getitem__, written), strict=True)),  # type: ignore[arg-type]
            verbs={form: (base, group) for form, base, group in verbs},
            tasks=tasks,
        )
