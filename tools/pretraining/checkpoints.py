"""Checkpoints in files of at most 15 MiB, so that they pass where large files do not.

`full` has everything in float32: the run goes on bit for bit. `compact` has the weights in
float16 and the optimizer's state in bfloat16: half or less, and the run goes on, not bit for bit.
`weights` has the float16 weights alone, for evaluation and export.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from evenhand.errors import FileError, UnknownNameError
from evenhand.files import replace_file

from .recipe import Recipe

Kind = Literal["full", "compact", "weights"]
PART = 15 * 2**20
_WEIGHTS = {"full": torch.float32, "compact": torch.float16, "weights": torch.float16}


@dataclass(frozen=True)
class Checkpoint:
    """Where a run stands."""

    recipe: Recipe
    step: int
    epoch: int
    batch: int
    """The next batch of that epoch."""
    weights: dict[str, Tensor]
    optimizer: dict[str, Tensor]


def save(checkpoint: Checkpoint, folder: Path, kind: Kind = "full") -> None:
    """Write a checkpoint; the index that names the parts comes last: a killed write is harmless."""
    if kind not in _WEIGHTS:
        raise UnknownNameError("kind of checkpoint", kind, _WEIGHTS)
    folder.mkdir(parents=True, exist_ok=True)
    tensors = {
        f"weights.{name}": value.to(_WEIGHTS[kind]) for name, value in checkpoint.weights.items()
    }
    if kind != "weights":
        for name, value in checkpoint.optimizer.items():
            exact = kind == "full" or name.startswith("step.")
            tensors[f"optimizer.{name}"] = value if exact else value.to(torch.bfloat16)
    names = []
    for number, part in enumerate(_parts(tensors)):
        names.append(f"step-{checkpoint.step}-{number}.safetensors")
        with replace_file(folder / names[-1]) as file:
            file.write(save_tensors(part))
    index = {
        "recipe": json.loads(checkpoint.recipe.to_json()),
        "step": checkpoint.step,
        "epoch": checkpoint.epoch,
        "batch": checkpoint.batch,
        "parts": names,
    }
    with replace_file(folder / "checkpoint.json") as file:
        file.write((json.dumps(index, indent=2) + "\n").encode())
    for old in folder.glob("step-*.safetensors"):
        if old.name not in names:
            old.unlink()


def _parts(tensors: dict[str, Tensor]) -> list[dict[str, Tensor]]:
    """Split into groups below the limit, a large tensor along its first dimension if need be."""
    pieces: dict[str, Tensor] = {}
    for name, value in tensors.items():
        count = -(-value.nbytes // PART)
        if count > 1:
            chunks = value.tensor_split(count)
            pieces |= {f"{name}@{i:03d}": chunk for i, chunk in enumerate(chunks)}
        else:
            pieces[name] = value
    groups: list[dict[str, Tensor]] = []
    size = PART
    for name, value in sorted(pieces.items(), key=lambda item: -item[1].nbytes):
        if size + value.nbytes > PART:
            groups.append({})
            size = 0
        groups[-1][name] = value.detach().cpu().contiguous()
        size += value.nbytes
    return groups


def exists(folder: Path) -> bool:
    """Whether a folder holds a checkpoint."""
    return (folder / "checkpoint.json").is_file()


def load(folder: Path) -> Checkpoint:
    """Read a checkpoint of any kind."""
    path = folder / "checkpoint.json"
    try:
        index = json.loads(path.read_text())
        pieces: dict[str, Tensor] = {}
        for name in index["parts"]:
            pieces |= load_tensors((folder / name).read_bytes())
        recipe = Recipe(**index["recipe"])
        place = int(index["step"]), int(index["epoch"]), int(index["batch"])
    except (OSError, ValueError, KeyError, TypeError) as problem:
        raise FileError(path, f"expected a checkpoint, got: {problem}") from problem
    whole: dict[str, Tensor] = {}
    for name in sorted(pieces):
        stem, cut, _ = name.partition("@")
        whole[stem] = (
            torch.cat([whole[stem], pieces[name]]) if cut and stem in whole else pieces[name]
        )
    weights = {n.removeprefix("weights."): t for n, t in whole.items() if n.startswith("weights.")}
    kept = {n.removeprefix("optimizer."): t for n, t in whole.items() if n.startswith("optimizer.")}
    return Checkpoint(recipe, *place, {n: t.float() for n, t in weights.items()}, kept)
