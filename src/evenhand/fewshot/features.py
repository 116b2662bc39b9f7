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
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.fewshot.baseline import predict_baseline, word_vectors
from evenhand.fewshot.data import Dataset
from evenhand.fewshot.mitigation import Mitigated, neutralize, pool_texts, swap_gender
from evenhand.fewshot.settings import TextMitigation
from evenhand.files import own_entries, replace_file, versions

if TYPE_CHECKING:
    from evenhand.fewshot.answers import FewShotPredictions
    from evenhand.fewshot.encoders import TunedEncoder
    from evenhand.fewshot.episodes import Episodes
    from evenhand.fewshot.settings import StepProgress
    from evenhand.fewshot.training import FeatureTable, Source
    from evenhand.models.base import LoadedModel

Lock: TypeAlias = Callable[[str], AbstractContextManager[object]]
"""Waits until no other process holds a name, and holds it."""

VERSIONS = (
    *("plain", "swapped", "drawn"),
    *("neutral", "neutral swapped", "neutral drawn"),
    *("renamed", "renamed swapped", "renamed drawn"),
)
"""The texts as they are, of the other gender with names swapped by fixed pairs (counterfactuals of
queries) or drawn at random (those of augmentation), the same neutralised, and the same neutralised
with gender-free names."""
BECOME: dict[str, Literal["numbers", "names"]] = {"neutral": "numbers", "renamed": "names"}
"""What person names become in versions without gender."""
NAMES = {"swapped": "fixed", "drawn": "random"}


class FeatureStore:
    """All texts of a data set as any mitigation has them, with their features by one encoder.

    Parameters
    ----------
    dataset : Dataset
    encoder : str or path
    folder : path
        Where texts and features are stored.
    pooling, limit, device
        As for `evenhand.fewshot.encoders.encode`.

    Attributes
    ----------
    lock : callable
        Holds a name against other processes; by default nothing is held.

    """

    def __init__(
        self,
        dataset: Dataset,
        encoder: str | os.PathLike[str],
        folder: str | os.PathLike[str],
        *,
        pooling: str = "mean",
        limit: int | None = None,
        device: str = "auto",
    ) -> None:
        self.dataset, self.folder = dataset, Path(folder)
        self.encoder, self.device = str(encoder), device
        self.pooling, self.limit = pooling, limit
        self.lock: Lock = nullcontext
        self._texts: dict[str, tuple[str, ...]] = {"plain": dataset.texts}
        self._mitigated: dict[tuple[str, ...], Mitigated] = {}
        self._tables: dict[tuple[str, ...], FeatureTable] = {}
        self._tuned: dict[tuple[str, ...], TunedEncoder] = {}

    @cached_property
    def model(self) -> LoadedModel:
        """The encoder, loaded when features are needed."""
        from evenhand.fewshot.encoders import load_encoder

        return load_encoder(self.encoder, device=self.device)

    @cached_property
    def has_counterfactuals(self) -> bool:
        """Whether any gender is known, so that counterfactuals can be compared."""
        return bool((self.dataset.genders >= 0).any())

    def texts(self, version: str) -> tuple[str, ...]:
        """All texts in one of `VERSIONS`."""
        if version not in self._texts:
            content = self._stored(
                "texts",
                self._key(version),
                lambda _: np.frombuffer(json.dumps(self._rewrite(version)).encode(), np.uint8),
            )
            self._texts[version] = tuple(json.loads(content.tobytes()))
        return self._texts[version]

    def features(
        self, version: str, *, progress: StepProgress | None = None
    ) -> NDArray[np.float32]:
        """The features of all texts in one of `VERSIONS`, (texts, dim)."""
        from evenhand.fewshot.encoders import encode

        def compute(path: Path) -> NDArray[np.float32]:
            # batches are stored as they come, so that a kill costs little
            return encode(
                self.model,
                self.texts(version),
                pooling=self.pooling,
                limit=self.limit,
                cache=path.with_suffix(".parts"),
                progress=progress,
            )

        key = _key(self._key(version), self.model.fingerprint, self.pooling, self.limit)
        return self._stored("features", key, compute)

    def _stored(self, kind: str, key: str, compute: Callable[[Path], NDArray[Any]]) -> NDArray[Any]:
        """The array stored by a key; the first process that needs it computes it."""
        path = self.folder / kind / f"{key}.npz"
        array = _read_array(path)
        if array is None:
            with self.lock(key):
                array = _read_array(path)
                if array is None:
                    array = compute(path)
                    _save_array(path, array)
                    shutil.rmtree(path.with_suffix(".parts"), ignore_errors=True)
        return array

    def mitigated(self, mitigation: TextMitigation) -> Mitigated:
        """All texts as a mitigation has them: what `mitigation.apply` gives."""
        names = _pool_versions(mitigation)
        if names not in self._mitigated:
            self._mitigated[names] = pool_texts(self.dataset, mitigation, self._joint(names))
        return replace(self._mitigated[names], mitigation=mitigation)

    def counterfactuals(self, mitigation: TextMitigation) -> tuple[str, ...]:
        """The counterfactual of each text as a classifier with the mitigation reads it."""
        return self.texts(_read_as("swapped", mitigation)) if self.has_counterfactuals else ()

    def source(
        self,
        mitigation: TextMitigation,
        *,
        tested: TextMitigation | None = None,
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
        if mitigation.rewritten and not tested.rewritten:
            names = (*names, "plain")
        if self.has_counterfactuals:
            names = (*names, _read_as("swapped", tested), *(("neutral",) if neutral else ()))
        if finetune:
            return self._tuned_encoder(names)
        if names not in self._tables:
            from evenhand.fewshot.training import FeatureTable

            parts = [self.features(version, progress=progress) for version in names]
            self._tables[names] = FeatureTable(np.concatenate(parts), self.model.device)
        return self._tables[names]

    @cached_property
    def word_vectors(self) -> NDArray[np.float32]:
        """The word vectors of the baseline."""
        with self.lock(_key("baseline", self.dataset.digest)):
            return load_word_vectors(self.dataset, self.folder)

    def baseline(self, episodes: Episodes) -> FewShotPredictions:
        """The answers of the baseline to the queries of the episodes."""
        return predict_baseline(self.dataset, episodes, vectors=self.word_vectors)

    def _key(self, version: str) -> str:
        return _key("texts", self.dataset.digest, version, versions()["evenhand"])

    def _rewrite(self, version: str) -> tuple[str, ...]:
        for kind, become in BECOME.items():
            if version.startswith(kind):
                texts = self.texts(version.removeprefix(kind).strip() or "plain")
                return neutralize(texts, become=become)
        return swap_gender(self.dataset.texts, names=NAMES[version])

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


def _pool_versions(mitigation: TextMitigation) -> tuple[str, ...]:
    names = ("plain", "drawn") if mitigation.swaps else ("plain",)
    return tuple(_read_as(version, mitigation) for version in names)


def _read_as(version: str, mitigation: TextMitigation) -> str:
    """A version as a classifier with the mitigation reads it."""
    kind = mitigation.rewritten
    if not kind:
        return version
    return kind if version == "plain" else f"{kind} {version}"


def _key(*parts: object) -> str:
    return blake2b("\n".join(map(repr, parts)).encode(), digest_size=16).hexdigest()


def _read_array(path: Path) -> NDArray[Any] | None:
    """The stored array; None if there is none, or if it is damaged."""
    if not own_entries([path]):
        return None
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
    with replace_file(path, entry=True) as file:
        np.savez(file, array=array)
