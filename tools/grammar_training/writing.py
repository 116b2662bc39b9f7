"""The trained judge as a file that `evenhand.text.grammar.read_model` reads."""

from __future__ import annotations

import io

import numpy as np

from evenhand.text.grammar import STEP, Model


def _pack(lines: list[str]) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    return np.frombuffer("\n".join(lines).encode(), dtype=np.uint8)


def write_model(model: Model) -> bytes:
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
