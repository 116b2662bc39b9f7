"""The texts of a data set in every wording that runs need, and their features, each made once.

A wording is made of all texts at once, and its features are computed in one request. So the
numbers depend on the data set, the wording, the encoder, the pooling and the limit alone: not on
which run came first, on what it asked for, or on a kill in between. All is kept in a folder that
many processes may share: one makes a thing, the others wait and find it.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import OrderedDict
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.fewshot.data_set import Dataset
from evenhand.fewshot.floor import floor
from evenhand.fewshot.mitigation import Mitigated, Mitigation, neutralized, pooled, swapped
from evenhand.fewshot.runs.arrays import Alone, key_of, locked, read_array, save_array
from evenhand.fewshot.runs.floors import kept_word_vectors
from evenhand.folders import versions

if TYPE_CHECKING:
    from evenhand.fewshot.encoders import Tuned
    from evenhand.fewshot.episodes import Episodes
    from evenhand.fewshot.statistics import Answers
    from evenhand.fewshot.training.sources import Source, Table
    from evenhand.masked.model import Model

__all__ = ["WORDINGS", "Library"]

Progress = Callable[[str, int, int, str], None]

WORDINGS = ("plain", "swapped", "drawn", "neutral", "neutral swapped", "neutral drawn")
"""The texts as they are, of the other gender with names swapped by fixed pairs (the twins of
queries) or drawn at random (the twins of augmentation), and the same neutralised."""
FLOORS = 16
"""So many answers of the floor are held."""


class Library:
    """All texts of a data set as any mitigation has them, with their features by one encoder.

    `encoder` is a model, its name or its folder. `alone` holds a name against other processes;
    by default by locks in the folder, which are good on one machine.
    """

    def __init__(
        self,
        dataset: Dataset,
        encoder: str | os.PathLike[str] | Model,
        folder: str | os.PathLike[str],
        *,
        pooling: str = "mean",
        limit: int | None = None,
        device: str = "auto",
        jobs: int = 1,
        alone: Alone | None = None,
    ) -> None:
        from evenhand.masked.model import Model, load

        self.dataset, self.folder = dataset, Path(folder)
        self.model = (
            encoder if isinstance(encoder, Model) else load(encoder, device=device, head=False)
        )
        self.encoder = self.model.name if isinstance(encoder, Model) else os.fspath(encoder)
        self.fingerprint = self.model.fingerprint
        self.pooling, self.limit, self.jobs = pooling, limit, jobs
        self.alone = alone or locked(self.folder / "locks")
        self._texts: dict[str, tuple[str, ...]] = {"plain": dataset.texts}
        self._mitigated: dict[tuple[bool, bool], Mitigated] = {}
        self._tables: dict[tuple[str, ...], Table] = {}
        self._tuned: dict[tuple[str, ...], Tuned] = {}
        self._floors: OrderedDict[str, Answers] = OrderedDict()

    @cached_property
    def has_twins(self) -> bool:
        """Whether anybody's gender is known, so that twins tell something."""
        return bool((self.dataset.genders >= 0).any())

    def texts(self, wording: str) -> tuple[str, ...]:
        """All texts in one of `WORDINGS`."""
        if wording not in self._texts:
            path = self.folder / "texts" / f"{self._key(wording)}.npz"
            if (found := _read_texts(path)) is None:
                with self.alone(path.stem):
                    if (found := _read_texts(path)) is None:
                        found = self._worded(wording)
                        content = json.dumps(found).encode()
                        save_array(path, np.frombuffer(content, dtype=np.uint8))
            self._texts[wording] = found
        return self._texts[wording]

    def features(self, wording: str, *, progress: Progress | None = None) -> NDArray[np.float32]:
        """Those of all texts in one of `WORDINGS`, (texts, dim)."""
        from evenhand.fewshot.encoders import frozen

        key = key_of(self._key(wording), self.fingerprint, self.pooling, self.limit)
        path = self.folder / "features" / f"{key}.npz"
        if (found := read_array(path)) is not None:
            return found
        texts = self.texts(wording)
        with self.alone(key):
            if (found := read_array(path)) is not None:
                return found
            # pieces are kept as they come, so that a kill costs little
            parts = self.folder / "features" / f"{key}.parts"
            made = frozen(
                self.model, texts, pooling=self.pooling, limit=self.limit, cache=parts,
                progress=progress,
            )  # fmt: skip
            save_array(path, made)
            shutil.rmtree(parts, ignore_errors=True)
            return made

    def mitigated(self, mitigation: Mitigation) -> Mitigated:
        """All texts as a mitigation has them: what `mitigation.apply` gives."""
        key = (mitigation.augment, mitigation.neutralize)
        if key not in self._mitigated:
            unchanged = 0
            if mitigation.augment:
                pairs = zip(self.dataset.texts, self.texts("drawn"), strict=True)
                unchanged = sum(text == twin for text, twin in pairs)
            texts = self._joint(_pool(mitigation))
            self._mitigated[key] = pooled(self.dataset, mitigation, texts, unchanged)
        found = self._mitigated[key]
        return Mitigated(mitigation, found.pool, found.texts, found.unchanged)

    def twins(self, mitigation: Mitigation) -> tuple[str, ...]:
        """The twin of each text as a classifier with the mitigation reads it."""
        return self.texts(_read_as("swapped", mitigation)) if self.has_twins else ()

    def source(
        self, mitigation: Mitigation, *, finetune: bool = False, progress: Progress | None = None
    ) -> Source:
        """The features of the pool of a mitigation and then of the twins, on the model's device;
        or the encoder that learns to read them, which begins anew with every training.
        """
        wordings = _pool(mitigation)
        if self.has_twins:
            wordings = (*wordings, _read_as("swapped", mitigation))
        if finetune:
            return self._learning(wordings)
        if wordings not in self._tables:
            from evenhand.fewshot.training.sources import Table

            parts = [self.features(wording, progress=progress) for wording in wordings]
            self._tables[wordings] = Table(np.concatenate(parts), self.model.device)
        return self._tables[wordings]

    @cached_property
    def word_vectors(self) -> NDArray[np.float32]:
        """Those of the floor."""
        with self.alone(key_of("floor", self.dataset.digest)):
            return kept_word_vectors(self.dataset, self.folder)

    def floor(self, episodes: Episodes) -> Answers:
        """The answers of the floor to the queries of the episodes."""
        key = episodes.digest
        if key not in self._floors:
            self._floors[key] = floor(self.dataset, episodes, vectors=self.word_vectors)
            while len(self._floors) > FLOORS:
                self._floors.popitem(last=False)
        return self._floors[key]

    def _key(self, wording: str) -> str:
        return key_of("texts", self.dataset.digest, wording, versions()["evenhand"])

    def _worded(self, wording: str) -> tuple[str, ...]:
        if wording == "neutral":
            return neutralized(self.dataset.texts, jobs=self.jobs)
        if wording.startswith("neutral "):
            return neutralized(self.texts(wording.removeprefix("neutral ")), jobs=self.jobs)
        names = {"swapped": "fixed", "drawn": "random"}[wording]
        return swapped(self.dataset.texts, names=names, jobs=self.jobs)

    def _joint(self, wordings: Sequence[str]) -> tuple[str, ...]:
        return tuple(text for wording in wordings for text in self.texts(wording))

    def _learning(self, wordings: tuple[str, ...]) -> Tuned:
        """One at a time: it has a copy of the encoder."""
        from evenhand.fewshot.encoders import Tuned

        if wordings not in self._tuned:
            how: dict[str, Any] = {"pooling": self.pooling, "limit": self.limit}
            self._tuned.clear()
            self._tuned[wordings] = Tuned(self.model, self._joint(wordings), **how)
        return self._tuned[wordings]


def _pool(mitigation: Mitigation) -> tuple[str, ...]:
    given = ("plain", "drawn") if mitigation.augment else ("plain",)
    return tuple(_read_as(wording, mitigation) for wording in given)


def _read_as(wording: str, mitigation: Mitigation) -> str:
    """A wording as a classifier with the mitigation reads it."""
    if not mitigation.neutralize:
        return wording
    return "neutral" if wording == "plain" else f"neutral {wording}"


def _read_texts(path: Path) -> tuple[str, ...] | None:
    found = read_array(path)
    return None if found is None else tuple(json.loads(found.tobytes()))
