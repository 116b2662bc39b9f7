"""Texts of a data set in every version that runs need, and their features, each computed once.

A version is rewritten for all texts at once, and its features are computed in one request. So the
numbers depend on the data set, the version, the encoder, the pooling and the limit only: not on
which run came first, on what it requested, or on a kill in between. Everything is stored in a
folder that many processes may share: one computes, the others wait and read.
"""

from __future__ import annotations

import io
import json
import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.fewshot.baseline import predict_baseline, word_vectors
from evenhand.fewshot.data import Dataset
from evenhand.fewshot.mitigation import (
    Mitigated,
    Mitigation,
    neutralize,
    pool_texts,
    swap_gender,
)
from evenhand.files import replace_file, versions

if TYPE_CHECKING:
    from evenhand.fewshot.answers import Answers
    from evenhand.fewshot.encoders import TunedEncoder
    from evenhand.fewshot.episodes import Episodes
    from evenhand.fewshot.settings import StepProgress
    from evenhand.fewshot.training import Source, Table
    from evenhand.masked.memory import ModelSource

__all__ = ["VERSIONS", "FeatureStore", "load_word_vectors"]

Lock: TypeAlias = Callable[[str], AbstractContextManager[None]]
"""Waits until no other process holds a name, and holds it."""

VERSIONS = ("plain", "swapped", "drawn", "neutral", "neutral swapped", "neutral drawn")
"""The texts as they are, of the other gender with names swapped by fixed pairs (counterfactuals of
queries) or drawn at random (those of augmentation), and the same neutralised."""
BASELINES = 16
"""The number of the baseline's answers held in memory."""


class FeatureStore:
    """All texts of a data set as any mitigation has them, with their features by one encoder.

    Parameters
    ----------
    dataset : Dataset
    encoder : str, path or Model
    folder : path
        Where texts and features are stored.
    pooling, limit, device
        As for `evenhand.fewshot.encoders.encode`.
    workers : int
        Processes that rewrite texts.
    lock : callable, optional
        Holds a name against other processes; by default with lock files in the folder, which work
        on one machine.

    """

    def __init__(
        self,
        dataset: Dataset,
        encoder: ModelSource,
        folder: str | os.PathLike[str],
        *,
        pooling: str = "mean",
        limit: int | None = None,
        device: str = "auto",
        workers: int = 1,
        lock: Lock | None = None,
    ) -> None:
        from evenhand.masked.memory import is_path
        from evenhand.masked.model import load

        self.dataset, self.folder = dataset, Path(folder)
        self.model = load(encoder, device=device, head=False)
        self.encoder = str(encoder) if is_path(encoder) else self.model.name
        self.fingerprint = self.model.fingerprint
        self.pooling, self.limit, self.workers = pooling, limit, workers
        self.lock = lock or _file_lock(self.folder / "locks")
        self._texts: dict[str, tuple[str, ...]] = {"plain": dataset.texts}
        self._mitigated: dict[tuple[bool, bool], Mitigated] = {}
        self._tables: dict[tuple[str, ...], Table] = {}
        self._tuned: dict[tuple[str, ...], TunedEncoder] = {}
        self._baselines: OrderedDict[str, Answers] = OrderedDict()

    @cached_property
    def has_counterfactuals(self) -> bool:
        """Whether any gender is known, so that counterfactuals can be compared."""
        return bool((self.dataset.genders >= 0).any())

    def texts(self, version: str) -> tuple[str, ...]:
        """All texts in one of `VERSIONS`."""
        if version not in self._texts:
            path = self.folder / "texts" / f"{self._key(version)}.npz"
            if (texts := _read_texts(path)) is None:
                with self.lock(path.stem):
                    if (texts := _read_texts(path)) is None:
                        texts = self._rewrite(version)
                        content = json.dumps(texts).encode()
                        _save_array(path, np.frombuffer(content, dtype=np.uint8))
            self._texts[version] = texts
        return self._texts[version]

    def features(
        self, version: str, *, progress: StepProgress | None = None
    ) -> NDArray[np.float32]:
        """Those of all texts in one of `VERSIONS`, (texts, dim)."""
        from evenhand.fewshot.encoders import encode

        key = _key(self._key(version), self.fingerprint, self.pooling, self.limit)
        path = self.folder / "features" / f"{key}.npz"
        if (features := _read_array(path)) is not None:
            return features
        texts = self.texts(version)
        with self.lock(key):
            if (features := _read_array(path)) is not None:
                return features
            # batches are stored as they come, so that a kill costs little
            parts = self.folder / "features" / f"{key}.parts"
            features = encode(
                self.model,
                texts,
                pooling=self.pooling,
                limit=self.limit,
                cache=parts,
                progress=progress,
            )
            _save_array(path, features)
            shutil.rmtree(parts, ignore_errors=True)
            return features

    def mitigated(self, mitigation: Mitigation) -> Mitigated:
        """All texts as a mitigation has them: what `mitigation.apply` gives."""
        key = (mitigation.augment, mitigation.neutralize)
        if key not in self._mitigated:
            unchanged = 0
            if mitigation.augment:
                pairs = zip(self.dataset.texts, self.texts("drawn"), strict=True)
                unchanged = sum(text == swapped for text, swapped in pairs)
            texts = self._joint(_pool_versions(mitigation))
            self._mitigated[key] = pool_texts(self.dataset, mitigation, texts, unchanged)
        pooled = self._mitigated[key]
        return Mitigated(mitigation, pooled.pool, pooled.texts, pooled.unchanged)

    def counterfactuals(self, mitigation: Mitigation) -> tuple[str, ...]:
        """The counterfactual of each text as a classifier with the mitigation reads it."""
        return self.texts(_read_as("swapped", mitigation)) if self.has_counterfactuals else ()

    def source(
        self,
        mitigation: Mitigation,
        *,
        tested: Mitigation | None = None,
        neutral: bool = False,
        finetune: bool = False,
        progress: StepProgress | None = None,
    ) -> Source:
        """The features of the pool of a mitigation, of the texts as they are where the test
        (`tested`, by default the same) has them so and the pool does not, of the counterfactuals,
        and with `neutral` of the neutral versions, on the model's device; or the encoder that
        learns to read them, which starts afresh with every training.
        """
        tested = mitigation if tested is None else tested
        names = _pool_versions(mitigation)
        if mitigation.neutralize and not tested.neutralize:
            names = (*names, "plain")
        if self.has_counterfactuals:
            names = (*names, _read_as("swapped", tested), *(("neutral",) if neutral else ()))
        if finetune:
            return self._tuned_encoder(names)
        if names not in self._tables:
            from evenhand.fewshot.training import Table

            parts = [self.features(version, progress=progress) for version in names]
            self._tables[names] = Table(np.concatenate(parts), self.model.device)
        return self._tables[names]

    @cached_property
    def word_vectors(self) -> NDArray[np.float32]:
        """Those of the baseline."""
        with self.lock(_key("baseline", self.dataset.digest)):
            return load_word_vectors(self.dataset, self.folder)

    def baseline(self, episodes: Episodes) -> Answers:
        """The answers of the baseline to the queries of the episodes."""
        key = episodes.digest
        if key not in self._baselines:
            vectors = self.word_vectors
            self._baselines[key] = predict_baseline(self.dataset, episodes, vectors=vectors)
            while len(self._baselines) > BASELINES:
                self._baselines.popitem(last=False)
        return self._baselines[key]

    def _key(self, version: str) -> str:
        return _key("texts", self.dataset.digest, version, versions()["evenhand"])

    def _rewrite(self, version: str) -> tuple[str, ...]:
        if version == "neutral":
            return neutralize(self.dataset.texts, workers=self.workers)
        if version.startswith("neutral "):
            return neutralize(self.texts(version.removeprefix("neutral ")), workers=self.workers)
        names = {"swapped": "fixed", "drawn": "random"}[version]
        return swap_gender(self.dataset.texts, names=names, workers=self.workers)

    def _joint(self, names: Sequence[str]) -> tuple[str, ...]:
        return tuple(text for version in names for text in self.texts(version))

    def _tuned_encoder(self, names: tuple[str, ...]) -> TunedEncoder:
        """One at a time: it has a copy of the encoder."""
        from evenhand.fewshot.encoders import TunedEncoder

        if names not in self._tuned:
            self._tuned.clear()
            self._tuned[names] = TunedEncoder(
                self.model, self._joint(names), pooling=self.pooling, limit=self.limit
            )
        return self._tuned[names]


def load_word_vectors(
    dataset: Dataset, cache: str | os.PathLike[str] | None
) -> NDArray[np.float32]:
    """The baseline's vectors of all texts, from the cache if it has them."""
    if cache is None:
        return word_vectors(dataset.texts)
    key = _key(dataset.digest, versions("scikit-learn"))
    path = Path(cache) / ".baseline" / f"{key}.npz"
    if (stored := _read_array(path)) is not None:
        return stored
    vectors = word_vectors(dataset.texts)
    with suppress(OSError):  # they can be computed again: no reason to lose a run at its end
        _save_array(path, vectors)
    return vectors


def _pool_versions(mitigation: Mitigation) -> tuple[str, ...]:
    names = ("plain", "drawn") if mitigation.augment else ("plain",)
    return tuple(_read_as(version, mitigation) for version in names)


def _read_as(version: str, mitigation: Mitigation) -> str:
    """A version as a classifier with the mitigation reads it."""
    if not mitigation.neutralize:
        return version
    return "neutral" if version == "plain" else f"neutral {version}"


def _key(*parts: object) -> str:
    return blake2b("\n".join(map(repr, parts)).encode(), digest_size=16).hexdigest()


def _read_texts(path: Path) -> tuple[str, ...] | None:
    content = _read_array(path)
    return None if content is None else tuple(json.loads(content.tobytes()))


def _read_array(path: Path) -> NDArray[Any] | None:
    """The stored array; None if there is none, or if it is damaged."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            if file.zip.testzip() is None:
                array: NDArray[Any] = file["array"]
                return array
    except Exception:  # noqa: S110  # a damaged zip can raise almost anything: it is written again
        pass
    return None


def _save_array(path: Path, array: NDArray[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(path) as file:
        np.savez(file, array=array)


def _file_lock(folder: Path) -> Lock:
    """Locks by files in a folder, for processes of one machine."""

    @contextmanager
    def lock(name: str) -> Iterator[None]:
        from filelock import FileLock

        folder.mkdir(parents=True, exist_ok=True)
        with FileLock(folder / f"{name}.lock"):
            yield

    return lock
