"""A whole few-shot run: train on each class split with each seed, then test, once, at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.fewshot.bias import leanings
from evenhand.fewshot.data_set import Dataset
from evenhand.fewshot.floor import floor
from evenhand.fewshot.runs.floors import kept_word_vectors
from evenhand.fewshot.runs.folder import ANSWERS, EPISODES, FLOOR, RunFolder, SavedRun, read_run
from evenhand.fewshot.runs.kept import Kept
from evenhand.fewshot.runs.material import Material, Part, parts_of, prepared
from evenhand.fewshot.runs.settings import RunSettings
from evenhand.fewshot.splits import Split, save_splits
from evenhand.folders import versions
from evenhand.results import to_json

if TYPE_CHECKING:
    from evenhand.fewshot.runs.library import Library
    from evenhand.fewshot.training.sources import Source
    from evenhand.masked.model import Model

__all__ = ["Progress", "run"]

Progress = Callable[[str, int, int, str], None]
"""Told as the work goes on: what is being done, how much of it, of how much, and more in words."""


def run(
    dataset: Dataset,
    settings: RunSettings,
    folder: str | os.PathLike[str],
    *,
    encoder: str | os.PathLike[str] = "mini",
    splits: Sequence[Split] | None = None,
    shares: Sequence[float] = (0.5, 0.25, 0.25),
    both_leanings: bool = True,
    cache: str | os.PathLike[str] | None = None,
    device: str = "auto",
    jobs: int = 1,
    restart: bool = False,
    about: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    finish: Callable[[SavedRun], None] | None = None,
    library: Library | None = None,
) -> SavedRun:
    """Train and test; everything is kept in the folder, and `summary` says what came of it.

    `encoder` is a model's name or folder. `splits` gives the class splits, which are else drawn
    with `shares` of the classes to train, validate and test on. `cache` is a folder for the
    features of a frozen encoder and the vectors of the floor. A call that was broken off goes on
    when it is made again and ends with the same numbers; a folder of another run is refused,
    unless `restart` clears it. `about` is added to `run.json`. `finish` is called with the finished
    run while the folder is still this process's alone, to write more into it. `library` has the
    texts and features of this data set ready, and its own encoder, cache and device.
    """
    from evenhand.masked.model import load

    if library is not None:
        _check_library(library, dataset, settings)
    parts = parts_of(dataset, settings, splits, shares=shares, both_leanings=both_leanings)
    with RunFolder.working(folder) as place:
        model = load(encoder, device=device, head=False) if library is None else library.model
        fingerprint = model.fingerprint if library is None else library.fingerprint
        _check_network(settings, model.dim)
        identity = {
            "settings": settings.as_dict(), "data": dataset.digest, "encoder": fingerprint,
            "splits": _digest(parts),
        }  # fmt: skip
        if restart or not place.holds(identity):
            place.claim(
                identity,
                {
                    "settings": settings.as_dict(),
                    "data": dataset.as_dict(),
                    "encoder": {
                        "source": os.fspath(encoder) if library is None else library.encoder,
                        "fingerprint": fingerprint,
                    },
                    "versions": versions("scikit-learn", "torch", "transformers"),
                    **(about or {}),
                },
            )
        work = _Work(place, dataset, settings, parts, model, cache, jobs, progress, library)
        work.lay_out()
        work.train_and_test()
        work.floors()
        done = read_run(place.path)
        if finish is not None:
            finish(done)
        return done


@dataclass(frozen=True)
class _Work:
    place: RunFolder
    dataset: Dataset
    settings: RunSettings
    parts: tuple[Part, ...]
    model: Model
    cache: str | os.PathLike[str] | None
    jobs: int
    progress: Progress | None
    library: Library | None

    def lay_out(self) -> None:
        """The splits and the test episodes, which any other tool can replay."""
        save_splits(self.place.path / "splits.json", [part.split for part in self.parts])
        for part in self.parts:
            folder = self.place.split(part.number)
            folder.mkdir(exist_ok=True)
            part.test.save(folder / EPISODES)

    def train_and_test(self) -> None:
        """Each split with each seed that has no answers yet."""
        missing = [
            (part, number)
            for part in self.parts
            for number in range(self.settings.seeds)
            if not (self._seed(part, number) / ANSWERS).is_file()
        ]
        if not missing:
            return
        self._tell("rewriting", 0, 1)
        material = prepared(
            self.dataset, self.settings, self.parts, jobs=self.jobs, library=self.library
        )
        source = self._source(material)
        for part, number in missing:
            self._one(material, source, part, number)

    def floors(self) -> None:
        """The answers of counting words to the test queries of each split."""
        missing = [
            (part, file)
            for part in self.parts
            if not (file := self.place.split(part.number) / FLOOR).is_file()
        ]
        if not missing:
            return
        self._tell("counting words", 0, 1)
        vectors = None
        if self.library is None:
            vectors = kept_word_vectors(self.dataset, self.cache)
        for part, file in missing:
            if self.library is None:
                made = floor(self.dataset, part.test, vectors=vectors)
            else:
                made = self.library.floor(part.test)
            Kept(made, None, leanings(self.dataset.leaning)).save(file)

    def _one(self, material: Material, source: Source, part: Part, number: int) -> None:
        from evenhand.fewshot.training import evaluate, train

        folder = self._seed(part, number)
        settings = self.settings.seeded(number)
        where = f"split {part.number}, seed {settings.seed}: "

        def told(what: str, done: int, total: int, words: str) -> None:
            self._tell(where + what, done, total, words)

        trained = train(
            settings, source, material.training(part, number), material.validation(part), folder,
            progress=told,
        )  # fmt: skip
        said = evaluate(trained, source, material.test(part))
        answers = type(said)(said.log_probs, part.test).answers(self.dataset)
        twins = material.twins(part) if material.has_twins else None
        swapped = None if twins is None else evaluate(trained, source, twins).log_probs
        Kept(answers, swapped, leanings(self.dataset.leaning)).save(folder / ANSWERS)

    def _source(self, material: Material) -> Source:
        """Features that stay as they are, or the encoder that learns."""
        from evenhand.fewshot.encoders import Tuned, frozen
        from evenhand.fewshot.training.sources import as_source

        if self.library is not None:
            return self.library.source(
                self.settings.mitigation, finetune=self.settings.finetune, progress=self.progress
            )
        how: dict[str, Any] = {"pooling": self.settings.pooling, "limit": self.settings.limit}
        if self.settings.finetune:
            return Tuned(self.model, material.texts, **how)
        try:
            made = frozen(
                self.model, material.texts, cache=self.cache, progress=self.progress, **how
            )
        except OSError as error:  # a full disk does not say which one it is
            named = error.filename or self.cache
            raise OSError(error.errno, error.strerror, named) from error
        return as_source(made, self.model.device)

    def _seed(self, part: Part, number: int) -> Path:
        return self.place.seed(part.number, self.settings.seeded(number).seed)

    def _tell(self, what: str, done: int, total: int, words: str = "") -> None:
        if self.progress is not None:
            self.progress(what, done, total, words)


def _check_library(library: Library, dataset: Dataset, settings: RunSettings) -> None:
    if library.dataset.digest != dataset.digest:
        raise InputError("library: expected that of this data set, got that of other texts")
    for name in ("pooling", "limit"):
        there, asked = getattr(library, name), getattr(settings, name)
        if there != asked:
            raise InputError(f"library: {name}: expected {asked}, got {there}")


def _check_network(settings: RunSettings, dim: int) -> None:
    """Options that the network does not take are told of before the texts are encoded."""
    from evenhand.fewshot.training.trained import network_of

    try:
        network_of(settings.training, dim, tuned=settings.finetune)
    except TypeError:
        given = ", ".join(f"{name}={value}" for name, value in settings.training.options.items())
        raise InputError(
            f"network {settings.training.network}: options: expected whole numbers, got {given}"
        ) from None


def _digest(parts: Sequence[Part]) -> str:
    told = to_json([part.split.as_dict() for part in parts], indent=None)
    return blake2b(told.encode(), digest_size=16).hexdigest()
