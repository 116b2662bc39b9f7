"""Training through episodes, on frozen features or with the encoder, and evaluation.

AdamW over batches of episodes; the weights of the best validation are used. A run that was
interrupted resumes from its checkpoint and, on a CPU with the same number of threads, ends with the
same numbers bit for bit as one that was not.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from evenhand.arguments import checked
from evenhand.errors import FileError, InputError, parameter
from evenhand.fewshot.adaptation import Adaptation, gather
from evenhand.fewshot.answers import FewShotPredictions
from evenhand.fewshot.data import Dataset
from evenhand.fewshot.encoders import TunedEncoder, check_rows
from evenhand.fewshot.episodes import Episodes, episode_rows, split_rows
from evenhand.fewshot.networks import make
from evenhand.fewshot.networks.base import FewShotNetwork
from evenhand.fewshot.settings import StepProgress, TrainingSettings
from evenhand.files import RunFolder
from evenhand.training import (
    Loop,
    TrainingCheckpoint,
    load_weights,
    make_optimizer,
    read_tensors,
    save_tensors,
    select,
)

TRAINED, CHECKPOINT, CURVE = "trained.safetensors", "checkpoint.safetensors", "curve.csv"

FITTED = 4096
"""Training texts that a scaling is fitted on, at most."""
FEWEST = 256
"""The smallest number of rows of a part of a table: fewer may be multiplied by other routines than
the full table, with other last bits."""
NUMBERS, GPU_NUMBERS = 1 << 20, 1 << 23
"""Numbers of features gathered at once: as many as fit the processor's caches."""
LAUNCHED = 3
"""Steps on a GPU before one is captured: libraries choose their kernels in the first ones."""
READ_EVERY = 32
"""Steps after which the losses of a GPU are read: reading waits for it."""


# where features come from, and how episodes take theirs


class Source(Protocol):
    """Features of the rows of a data set."""

    digest: str

    @property
    def dim(self) -> int: ...
    @property
    def device(self) -> torch.device: ...
    def weights(self) -> dict[str, nn.Parameter]:
        """Its learned weights by name."""

    def reset(self, seed: int = 0) -> None:
        """Restore the initial weights, or draw them where they are random."""

    def points(
        self,
        rows: NDArray[Any],
        weights: Mapping[str, Tensor] | None = None,
        *,
        through: bool = False,
    ) -> tuple[Tensor, NDArray[Any]]:
        """Features that include those of the rows, and the index of each row's.

        They are a differentiable function of these weights, by default its own; twice
        differentiable with `through`.
        """

    def table(self, rows: NDArray[Any]) -> tuple[Tensor, NDArray[Any]]:
        """`points` without gradients."""


class FeatureTable:
    """Frozen features (n, dim) on a device, by default the CPU."""

    def __init__(
        self, features: NDArray[np.float32], device: str | torch.device | None = None
    ) -> None:
        array = np.array(features, dtype="<f4", order="C")
        if array.ndim != 2 or not array.size:
            raise InputError(f"features: expected (texts, dimensions), got shape {array.shape}")
        if not np.isfinite(array).all():
            raise InputError("features: expected numbers, got some that are not finite")
        self.features = torch.from_numpy(array).to(device or "cpu")
        self.digest = blake2b(array.data, digest_size=16).hexdigest()

    @property
    def dim(self) -> int:
        return int(self.features.shape[1])

    @property
    def device(self) -> torch.device:
        return self.features.device

    def weights(self) -> dict[str, nn.Parameter]:
        return {}

    def points(
        self,
        rows: NDArray[Any],
        weights: Mapping[str, Tensor] | None = None,
        *,
        through: bool = False,
    ) -> tuple[Tensor, NDArray[Any]]:
        check_rows(rows, len(self.features))
        return self._select(rows), np.arange(rows.size).reshape(rows.shape)

    def table(self, rows: NDArray[Any]) -> tuple[Tensor, NDArray[Any]]:
        """The rows, or the full table where a part would save little."""
        check_rows(rows, len(self.features))
        distinct, index = np.unique(rows, return_inverse=True)
        if not FEWEST <= len(distinct) <= len(self.features) // 2:
            return self.features, rows
        return self._select(distinct), index.reshape(rows.shape)

    def reset(self, seed: int = 0) -> None:
        """Nothing is learned."""

    def _select(self, rows: NDArray[Any]) -> Tensor:
        chosen = torch.from_numpy(rows.ravel().astype(np.int64)).to(self.device)
        return self.features.index_select(0, chosen)


def as_source(
    given: NDArray[np.float32] | Source, device: str | torch.device | None = None
) -> Source:
    """Features as a table on a device; a source as it is."""
    return FeatureTable(given, device) if isinstance(given, np.ndarray) else given


def fit_scaling(network: FewShotNetwork, source: Source, episodes: Episodes) -> None:
    """Standardise by the texts of the training episodes, an even selection of many."""
    rows = np.unique(episode_rows(episodes))
    points, index = source.table(rows[:: -(-len(rows) // FITTED)])
    selected = gather(points, index).double()
    deviation = selected.std(dim=0, correction=0)
    deviation[deviation == 0] = 1.0
    network.mean.copy_(selected.mean(dim=0))
    network.deviation.copy_(deviation)


def targets(episodes: Episodes) -> NDArray[np.int64]:
    """The class of each query as an index within the episode (C * Q)."""
    return np.repeat(np.arange(episodes.ways), episodes.queries)


# evaluation


@dataclass(frozen=True, eq=False)
class EpisodePredictions:
    """The log-probabilities (E, M, C) of each episode's M = C * Q queries, class by class."""

    log_probs: NDArray[np.float32] = field(repr=False)
    episodes: Episodes

    @property
    def accuracy(self) -> float:
        """The share of queries classified correctly; `answers` leads to its interval."""
        return float((self.log_probs.argmax(axis=2) == targets(self.episodes)).mean())

    def answers(self, dataset: Dataset) -> FewShotPredictions:
        """The same with the texts, classes and genders of the data set, for statistics."""
        return FewShotPredictions.of(self.log_probs, self.episodes, dataset)


@checked
def evaluate(
    trained: TrainedNetwork, source: NDArray[np.float32] | Source, episodes: Episodes
) -> EpisodePredictions:
    """Classify the queries of all episodes; each text is encoded once.

    Parameters
    ----------
    trained : TrainedNetwork
    source : array (n, dim) or TunedEncoder
        The features of the texts that the episodes' rows are of, or an encoder of these texts,
        created from the model that training began with: it receives the learned weights.
    episodes : Episodes

    """
    ready = trained.prepare(as_source(source))
    if trained.settings.adapt:
        parts = Adaptation(trained.settings, trained.network, ready).scores(episodes)
    else:
        parts = scores(trained.network, ready, episodes)
    log_probs = [trained.network.log_probabilities(part).cpu().numpy() for part in parts]
    return EpisodePredictions(np.concatenate(log_probs), episodes)


@torch.no_grad()
def scores(network: FewShotNetwork, source: Source, episodes: Episodes) -> Iterator[Tensor]:
    """The network's scores (some episodes, M, C), a few episodes at a time."""
    network.eval()
    points, index = source.table(episode_rows(episodes))
    points = network.project(network.scaled(points))
    support, query, unlabelled = split_rows(episodes, index)
    if not network.uses_unlabelled:
        unlabelled = None
    size = len(episode_rows(episodes, slice(1))) * points.shape[1]
    step = max(1, (GPU_NUMBERS if points.is_cuda else NUMBERS) // size)
    for first in range(0, len(episodes), step):
        part = slice(first, first + step)
        yield network.score(
            gather(points, support[part]),
            gather(points, query[part]),
            None if unlabelled is None else gather(points, unlabelled[part]),
        )


# a trained network


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """A point of the learning curves; the training values are since the point before."""

    episodes: int
    training_loss: float | None
    training_accuracy: float | None
    validation_loss: float
    validation_accuracy: float


@dataclass(frozen=True, eq=False)
class TrainedNetwork:
    """A network with the weights of its best validation, ready for `evaluate`.

    `encoder` has the weights of a tuned encoder and `origin` says which model they began as.
    `ended` says why training ended: `episodes` or `patience`.
    """

    settings: TrainingSettings
    network: FewShotNetwork = field(repr=False)
    points: tuple[CurvePoint, ...] = field(repr=False)
    best: CurvePoint
    ended: str
    encoder: dict[str, Tensor] = field(default_factory=dict, repr=False)
    origin: str = ""
    identity: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def episodes(self) -> int:
        """How many episodes it was trained on."""
        return self.points[-1].episodes

    def prepare(self, source: Source) -> Source:
        """Check that the source fits; an encoder receives the learned weights."""
        if source.dim != self.network.dim:
            raise InputError(
                f"features: expected {self.network.dim} dimensions as in training, got {source.dim}"
            )
        if bool(self.encoder) != isinstance(source, TunedEncoder):
            wanted = "its encoder: expected a TunedEncoder" if self.encoder else "features"
            raise InputError(f"this network was trained with {wanted}, got {type(source).__name__}")
        if isinstance(source, TunedEncoder):
            if source.origin != self.origin:
                raise InputError("this network was trained with an encoder of another model")
            source.load(self.encoder)
        self.network.to(source.device)
        return source

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write one file into the folder, atomically."""
        tensors = {f"network.{name}": tensor for name, tensor in self.network.state_dict().items()}
        tensors |= {f"encoder.{name}": tensor for name, tensor in self.encoder.items()}
        record = {
            "settings": self.settings.to_dict(),
            "dim": self.network.dim,
            "ended": self.ended,
            "points": [asdict(point) for point in self.points],
            "origin": self.origin,
            "best": self.points.index(self.best),
            "identity": self.identity,
        }
        save_tensors(Path(folder) / TRAINED, tensors, record)

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> TrainedNetwork:
        """Read what `save` wrote."""
        tensors, record = read_tensors(Path(folder) / TRAINED, "trained network")
        settings = TrainingSettings(**record["settings"])
        encoder = select("encoder.", tensors)
        network = make_network(settings, record["dim"], tuned=bool(encoder))
        network.load_state_dict(select("network.", tensors))
        points = tuple(CurvePoint(**point) for point in record["points"])
        return cls(
            settings=settings,
            network=network.eval(),
            points=points,
            best=points[record["best"]],
            ended=record["ended"],
            encoder=encoder,
            origin=record["origin"],
            identity=record["identity"],
        )


def choose(trained: Sequence[TrainedNetwork]) -> TrainedNetwork:
    """The network of the best accuracy on the validation classes, the first of equal ones."""
    return max(trained, key=lambda each: each.best.validation_accuracy)


def make_network(settings: TrainingSettings, dim: int, *, tuned: bool) -> FewShotNetwork:
    """The network of the settings before any training."""
    projection = settings.projection_width(dim, tuned=tuned)
    return make(
        settings.network,
        dim,
        projection=projection,
        seed=settings.seed,
        settings=settings.options,
    )


# the loop


@checked
def train(
    settings: TrainingSettings,
    source: NDArray[np.float32] | Source,
    training: Episodes,
    validation: Episodes,
    folder: str | os.PathLike[str] | None = None,
    *,
    restart: bool = False,
    progress: StepProgress | None = None,
) -> TrainedNetwork:
    """Train a network on the training episodes, each of which is used once.

    Parameters
    ----------
    settings : TrainingSettings
    source : array (n, dim) or TunedEncoder
        The features of the texts that the episodes' rows are of, or an encoder of these texts,
        which is trained too and ends with the best weights.
    training, validation : Episodes
        Of different classes.
    folder : path, optional
        It receives `trained.safetensors` and `curve.csv`, and a checkpoint during training: an
        interrupted call resumes when it is repeated, a finished one returns its result again. A
        folder of another training is refused.
    restart : bool
        Whether the folder is cleared first.
    progress : callable, optional
        Called with ("training", episodes done, episodes, text).

    Returns
    -------
    TrainedNetwork

    """
    ready = as_source(source)
    _check_classes(training, validation)
    identity = {
        "settings": settings.to_dict(),
        "features": ready.digest,
        "training": training.digest,
        "validation": validation.digest,
    }
    if folder is None:
        return _Training(settings, ready, training, validation, identity, None, progress).run()
    with RunFolder.working(folder) as place:
        path = place.path
        if restart:
            for name in (TRAINED, CHECKPOINT, CURVE):
                (path / name).unlink(missing_ok=True)
        if (path / TRAINED).is_file():
            trained = TrainedNetwork.load(path)
            _check_identity(path, trained.identity, identity)
            trained.prepare(ready)
        else:
            trained = _Training(
                settings, ready, training, validation, identity, path, progress
            ).run()
            place.save_table([asdict(point) for point in trained.points], CURVE)
            trained.save(path)
        (path / CHECKPOINT).unlink(missing_ok=True)
    return trained


@dataclass(slots=True)
class _State:
    """The state of a training; with the weights and the optimiser's moments, all it needs.

    `loss`, `right` and `queries` are sums since the last validation: losses times queries, correct
    queries, queries. `best` is the index of the best point.
    """

    step: int = 0
    episodes: int = 0
    loss: float = 0.0
    right: int = 0
    queries: int = 0
    waited: int = 0
    best: int = 0
    ended: str = ""
    points: list[CurvePoint] = field(default_factory=list)


class _Training(Loop):
    settings: TrainingSettings
    state: _State

    def __init__(
        self,
        settings: TrainingSettings,
        source: Source,
        training: Episodes,
        validation: Episodes,
        identity: Mapping[str, Any],
        folder: Path | None,
        progress: StepProgress | None,
    ) -> None:
        self.settings, self.source = settings, source
        self.training, self.validation = training, validation
        self.identity, self.progress = dict(identity), progress
        self.network = make_network(settings, source.dim, tuned=bool(source.weights()))
        self.network.to(source.device)
        source.reset(settings.seed)
        weights: dict[str, nn.Parameter] = {
            **{f"network.{name}": weight for name, weight in self.network.named_parameters()},
            **{f"encoder.{name}": weight for name, weight in source.weights().items()},
        }
        replays = isinstance(source, FeatureTable) and source.device.type == "cuda"
        replays = replays and not settings.trains_through_adaptation
        rates = {
            "network.": settings.learning_rate,
            "encoder.": settings.encoder_learning_rate,
        }
        # most word embeddings are not in a batch: they do not decay
        optimizer = make_optimizer(
            weights, rates, settings.weight_decay, embeddings=False, captured=replays
        )
        self.state = _State()
        path = None if folder is None else folder / CHECKPOINT
        super().__init__(weights, optimizer, path)
        self.targets = torch.from_numpy(targets(training)).to(source.device)
        if settings.standardise:
            fit_scaling(self.network, source, training)
        if self.checkpoint is not None and self.checkpoint.path.is_file():
            self.restore(self.checkpoint)
        self.sums = torch.tensor(
            [self.state.loss, self.state.right], dtype=torch.float64, device=source.device
        )
        self.replay = (
            _Replay(self.learn, self.network, source.features, training, settings.batch)
            if replays and isinstance(source, FeatureTable)
            else None
        )
        self.began, self.began_at = time.monotonic(), self.state.episodes

    def run(self) -> TrainedNetwork:
        """Train to the end; the network and the encoder then have the best weights."""
        state = self.state
        if not state.points:
            self.validate()
        while not state.ended:
            self.advance()
        if self.replay is not None:  # several processes may share a GPU
            self.replay = None
            torch.cuda.empty_cache()
        load_weights(self.weights, self.best)
        tuned = self.source if isinstance(self.source, TunedEncoder) else None
        return TrainedNetwork(
            settings=self.settings,
            network=self.network.eval(),
            points=tuple(state.points),
            best=state.points[state.best],
            ended=state.ended,
            encoder={} if tuned is None else tuned.state(),
            origin="" if tuned is None else tuned.origin,
            identity=self.identity,
        )

    def advance(self) -> None:
        """One step, and what is due after it: validation, checkpoint, end."""
        state, total = self.state, len(self.training)
        first, end = state.episodes, min(state.episodes + self.settings.batch, total)
        self.set_rate((first + end) / 2 / total)
        self.step(slice(first, end))
        state.step, state.episodes = state.step + 1, end
        state.queries += (end - first) * len(self.targets)
        every = self.settings.validate_every
        if end == total:
            state.ended = "episodes"
        validates = bool(end // every > first // every or state.ended)
        if self.replay is not None and not validates and state.step % READ_EVERY:
            return
        state.loss, right = self.sums.tolist()
        state.right = int(right)
        loss = state.loss / state.queries
        rates = f"{self.settings.learning_rate:g} and {self.settings.encoder_learning_rate:g}"
        self.check_loss(loss, state.step - 1, f"smaller learning rates than {rates}")
        if validates:
            self.validate()
        if self.progress is not None:
            self.progress("training", end, total, self.status(loss))
        self.finish_step()

    def step(self, part: slice) -> None:
        """Learn from some episodes."""
        self.network.train()
        if self.settings.trains_through_adaptation:
            loss, right, queries = self.adaptation.learn(self.training, part, self.targets)
            self.update()
            self.sums += torch.tensor([loss * queries, right], dtype=torch.float64).to(self.sums)
            return
        if self.replay is not None and part.stop - part.start == self.settings.batch:
            self.replay(part)
            return
        points, index = self.source.points(episode_rows(self.training, part))
        scaled = self.network.scaled(points)
        support, query, unlabelled = split_rows(self.training, index, part)
        self.learn(
            gather(scaled, support),
            gather(scaled, query),
            None if unlabelled is None else gather(scaled, unlabelled),
        )

    def learn(self, support: Tensor, query: Tensor, unlabelled: Tensor | None) -> None:
        """Learn from the features of some episodes, and add up losses and correct queries."""
        output = self.network(support, query, unlabelled)
        wanted = self.targets.expand(len(support), -1)
        loss = self.network.loss(output, wanted, self.settings.loss)
        torch.autograd.backward(loss)
        self.update()
        right = (output.detach().argmax(dim=-1) == wanted).sum()
        self.sums += torch.stack([loss.detach().double() * wanted.numel(), right.double()])

    @property
    def adaptation(self) -> Adaptation:
        return Adaptation(self.settings, self.network, self.source)

    def validate(self) -> None:
        """Add a point to the curves; store the weights of the best; end after too many others."""
        state = self.state
        wanted = torch.from_numpy(targets(self.validation)).to(self.source.device)
        loss, right, queries = 0.0, 0, 0
        if self.settings.trains_through_adaptation:
            outputs = self.adaptation.scores(self.validation)
        else:
            outputs = scores(self.network, self.source, self.validation)
        for output in outputs:
            labels = wanted.expand(len(output), -1)
            own = self.network.loss(output, labels, self.settings.loss).double()
            correct = (output.argmax(dim=-1) == labels).sum()
            value, count = torch.stack([own, correct.double()]).tolist()
            loss, right = loss + value * labels.numel(), right + int(count)
            queries += labels.numel()
        since = state.queries
        state.points.append(
            CurvePoint(
                state.episodes,
                state.loss / since if since else None,
                state.right / since if since else None,
                loss / queries,
                right / queries,
            )
        )
        state.loss, state.right, state.queries = 0.0, 0, 0
        self.sums.zero_()
        best, last = state.points[state.best], state.points[-1]
        first = len(state.points) == 1
        self.compare(better=first or last.validation_accuracy > best.validation_accuracy)

    def record(self) -> tuple[dict[str, Any], dict[str, Tensor]]:
        state = asdict(self.state)
        return {"step": self.state.step, "state": state, "identity": self.identity}, {}

    def restore(self, checkpoint: TrainingCheckpoint) -> None:
        """Restore weights, moments and state; the checkpoint of another training is refused."""
        record, self.best, _ = checkpoint.restore(
            self.weights,
            self.optimizer,
            lambda there: _check_identity(checkpoint.path.parent, there["identity"], self.identity),
        )
        points = [CurvePoint(**point) for point in record["state"].pop("points")]
        self.state = _State(**record["state"], points=points)

    def status(self, loss: float) -> str:
        done = self.state.episodes - self.began_at
        rate = done / max(time.monotonic() - self.began, 1e-9)
        left = round((len(self.training) - self.state.episodes) / rate)
        best = self.state.points[self.state.best].validation_accuracy
        return (
            f"{rate:,.0f} episodes/s, {left // 60}:{left % 60:02} left, loss {loss:.3f}, "
            f"best validation {best:.1%}"
        )


class _Replay:
    """Steps on frozen features of a GPU: one is captured with all its kernels, and then replayed.

    Launching the kernels of a step takes a CPU ten times as long as running them takes a GPU.
    """

    def __init__(
        self,
        learn: Callable[[Tensor, Tensor, Tensor | None], None],
        network: FewShotNetwork,
        features: Tensor,
        episodes: Episodes,
        batch: int,
    ) -> None:
        self.learn, self.network, self.features = learn, network, features
        self.drawn = [
            None if rows is None else torch.from_numpy(rows.astype(np.int64)).to(features.device)
            for rows in (
                episodes.support,
                episodes.query.reshape(len(episodes), -1),
                episodes.unlabelled,
            )
        ]
        self.rows = [None if drawn is None else drawn[:batch].clone() for drawn in self.drawn]
        self.stream: Any = torch.cuda.Stream(features.device)  # type: ignore[no-untyped-call]
        self.graph: torch.cuda.CUDAGraph | None = None
        self.launched = 0

    def __call__(self, part: slice) -> None:
        """Learn from some episodes, always as many."""
        for rows, drawn in zip(self.rows, self.drawn, strict=True):
            if rows is not None and drawn is not None:
                rows.copy_(drawn[part])
        if self.graph is None:
            current: Any = torch.cuda.current_stream(self.features.device)
            self.stream.wait_stream(current)
            with torch.cuda.stream(self.stream):
                if self.launched < LAUNCHED:
                    self.launched += 1
                    self._launch()
                else:
                    self.graph = torch.cuda.CUDAGraph()
                    self.graph.capture_begin(capture_error_mode="thread_local")
                    self._launch()
                    self.graph.capture_end()
            current.wait_stream(self.stream)
            if self.graph is None:
                return
        self.graph.replay()

    def _launch(self) -> None:
        support, query, unlabelled = (
            None if rows is None else self.network.scaled(functional.embedding(rows, self.features))
            for rows in self.rows
        )
        assert support is not None and query is not None  # noqa: S101, PT018
        self.learn(support, query, unlabelled)


def _check_classes(training: Episodes, validation: Episodes) -> None:
    if training.dataset != validation.dataset:
        raise InputError("episodes: expected training and validation of one data set, got two")
    shared = np.intersect1d(training.classes, validation.classes)
    if len(shared):
        raise InputError(
            f"episodes: expected other classes in validation than in training, got class "
            f"{shared[0]} in both"
        )


def _check_identity(folder: Path, there: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    known = json.loads(json.dumps(now))
    other = [name for name in known if there.get(name) != known[name]]
    if other:
        raise FileError(
            folder,
            f"has another training (other {', '.join(other)}): give another folder, or "
            f"{parameter('restart', True)} to start over here",
        )


@contextmanager
def thread_count(count: int) -> Iterator[None]:
    """Limit torch and the linear algebra of other libraries to `count` threads in a block.

    The last bits of sums may depend on the number of threads.
    """
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(count):
            yield
    finally:
        torch.set_num_threads(before)
