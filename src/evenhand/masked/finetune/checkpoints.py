"""Where a training stands, in one file that is replaced as a whole: a kill leaves the last one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import FileError
from evenhand.results import replace_file

if TYPE_CHECKING:
    import torch

    Tensors = dict[str, torch.Tensor]

__all__ = ["Point", "State", "restore", "save"]

MOMENTS = ("exp_avg", "exp_avg_sq")


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the loss curve; the training loss is the mean since the point before."""

    step: int
    epoch: float
    tokens: int
    training: float | None
    evaluation: float


@dataclass(slots=True)
class State:
    """How far a training is; with the weights and the optimizer's moments, all it needs.

    Order, rewriting, hidden tokens and dropout are drawn from seeds made of the position, so
    there are no states of random generators to keep.
    """

    epoch: int = 0
    batch: int = 0
    step: int = 0
    tokens: int = 0
    loss_sum: float = 0.0
    loss_count: int = 0
    waited: int = 0
    best: int | None = None
    """The number of the best point."""
    ended: str = ""
    """Why the training ended; empty while it goes on."""
    points: list[Point] = field(default_factory=list)


def save(path: Path, state: State, network: torch.nn.Module, optimizer: Any, best: Tensors) -> None:
    """Write a checkpoint; where there is no room for it, the one before stays."""
    from safetensors.torch import save as packed

    tensors = {f"best.{name}": value for name, value in best.items()}
    for name, weight in network.named_parameters():
        tensors[f"weight.{name}"] = weight.detach()
        for moment in MOMENTS:
            if moment in optimizer.state.get(weight, {}):
                tensors[f"{moment}.{name}"] = optimizer.state[weight][moment]
    with replace_file(path) as file:
        file.write(packed(tensors, metadata={"state": json.dumps(asdict(state))}))


def restore(path: Path, network: torch.nn.Module, optimizer: Any) -> tuple[State, Tensors]:
    """Put the weights and the optimizer back; where the training stood, and its best weights."""
    import torch
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            told = json.loads(file.metadata()["state"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise FileError(path, f"not a checkpoint: {error}; --restart begins anew") from error
    points = [Point(**point) for point in told.pop("points")]
    state = State(**told, points=points)
    with torch.no_grad():
        for name, weight in network.named_parameters():
            weight.copy_(tensors[f"weight.{name}"])
            if f"{MOMENTS[0]}.{name}" in tensors:
                optimizer.state[weight] = {
                    "step": torch.tensor(float(state.step), device=weight.device),
                    **{m: tensors[f"{m}.{name}"].to(weight.device) for m in MOMENTS},
                }
    return state, _of("best.", tensors.items())


def _of(prefix: str, tensors: Iterable[tuple[str, torch.Tensor]]) -> Tensors:
    return {name.removeprefix(prefix): t for name, t in tensors if name.startswith(prefix)}
