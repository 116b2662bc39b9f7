"""A trained network: its weights, those of its encoder, and how the training went."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from torch import Tensor

from evenhand.errors import InputError
from evenhand.fewshot.encoders.tuned import Tuned
from evenhand.fewshot.networks import make
from evenhand.fewshot.networks.base import Network
from evenhand.fewshot.training.files import read_tensors, save_tensors
from evenhand.fewshot.training.settings import Settings
from evenhand.fewshot.training.sources import Scaling, Source

__all__ = ["FILE", "Point", "Trained", "network_of"]

FILE = "trained.safetensors"


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the curves, after so many episodes; the training ones are since the one before."""

    episodes: int
    training_loss: float | None
    training_accuracy: float | None
    validation_loss: float
    validation_accuracy: float


@dataclass(frozen=True, eq=False)
class Trained:
    """A network with the weights of its best validation, ready for `evaluate`.

    `encoder` has the weights of a tuned encoder and `origin` says which model they began as.
    """

    settings: Settings
    network: Network = field(repr=False)
    scaling: Scaling | None = field(repr=False)
    points: tuple[Point, ...] = field(repr=False)
    best: Point
    ended: str
    """Why it ended: `episodes` or `patience`."""
    encoder: dict[str, Tensor] = field(default_factory=dict, repr=False)
    origin: str = ""
    identity: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def episodes(self) -> int:
        """How many episodes it learned from."""
        return self.points[-1].episodes

    def ready(self, source: Source) -> Source:
        """See that features of this source fit; an encoder is given the learnt weights."""
        if source.dim != self.network.dim:
            raise InputError(
                f"features: expected {self.network.dim} dimensions as in training, got {source.dim}"
            )
        if bool(self.encoder) != isinstance(source, Tuned):
            wanted = "its encoder: expected a Tuned" if self.encoder else "features: expected some"
            raise InputError(f"this network was trained with {wanted}, got {type(source).__name__}")
        if isinstance(source, Tuned):
            if source.origin != self.origin:
                raise InputError("this network was trained with an encoder of another model")
            source.load(self.encoder)
        self.network.to(source.device)
        return source

    def as_dict(self) -> dict[str, Any]:
        return {
            "settings": self.settings.as_dict(), "ended": self.ended, "episodes": self.episodes,
            "kept": asdict(self.best), "weights": sum(w.numel() for w in self.network.parameters()),
        }  # fmt: skip

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write one file into the folder, whole or not at all."""
        tensors = {f"network.{name}": each for name, each in self.network.state_dict().items()}
        tensors |= {f"encoder.{name}": each for name, each in self.encoder.items()}
        if self.scaling is not None:
            tensors |= {"mean": self.scaling.mean, "deviation": self.scaling.deviation}
        told = {
            "settings": self.settings.as_dict(), "dim": self.network.dim, "ended": self.ended,
            "points": [asdict(point) for point in self.points], "origin": self.origin,
            "best": self.points.index(self.best), "identity": self.identity,
        }  # fmt: skip
        save_tensors(Path(folder) / FILE, tensors, told)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Trained:
        """Read what `save` wrote."""
        tensors, told = read_tensors(Path(folder) / FILE)
        settings = Settings(**told["settings"])
        encoder = _of("encoder.", tensors)
        network = network_of(settings, told["dim"], tuned=bool(encoder))
        network.load_state_dict(_of("network.", tensors))
        points = tuple(Point(**point) for point in told["points"])
        scaled = "mean" in tensors
        return cls(
            settings=settings, network=network.eval(),
            scaling=Scaling(tensors["mean"], tensors["deviation"]) if scaled else None,
            points=points, best=points[told["best"]], ended=told["ended"],
            encoder=encoder, origin=told["origin"], identity=told["identity"],
        )  # fmt: skip


def network_of(settings: Settings, dim: int, *, tuned: bool) -> Network:
    """The network of the settings before it has learnt anything."""
    projection = settings.projected(dim, tuned=tuned)
    return make(
        settings.network, dim, projection=projection, seed=settings.seed, **settings.options
    )


def _of(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    return {name.removeprefix(prefix): t for name, t in tensors.items() if name.startswith(prefix)}
