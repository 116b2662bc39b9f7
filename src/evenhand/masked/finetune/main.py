"""The whole loop: measure, fine-tune on rewritten text, measure again on what was held out."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from evenhand.folders import versions
from evenhand.masked.finetune.documents import Documents, collect
from evenhand.masked.finetune.folder import RunFolder
from evenhand.masked.finetune.held_out import HeldOut, held_out
from evenhand.masked.finetune.material import Material
from evenhand.masked.finetune.measuring import Measured, changes, crows_change, items, measure
from evenhand.masked.finetune.result import FinetuneResult
from evenhand.masked.finetune.settings import Settings
from evenhand.masked.finetune.training import Trained, train
from evenhand.masked.metrics.pronouns import Sentence
from evenhand.masked.model import Model, load

if TYPE_CHECKING:
    from evenhand.masked.pairs import Pair

__all__ = ["Progress", "finetune"]

Progress = Callable[[str, int, int, str], None]
"""Told as the work goes on: what is being done, how much of it, of how much, and more in words."""


def finetune(
    source: str | os.PathLike[str],
    texts: Iterable[str],
    settings: Settings | None = None,
    folder: str | os.PathLike[str] = "finetuned",
    *,
    sentences: Iterable[str | Sentence] | None = None,
    pairs: Sequence[Pair] = (),
    control: bool = False,
    restart: bool = False,
    device: str = "auto",
    run: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> FinetuneResult:
    """Fine-tune a masked language model on the texts and say what that changed.

    `texts` are documents. They are rewritten as they are read, as the settings say, and split by
    their content: a part is learned from, a part gives the evaluation loss, and on a part the
    model is measured before and after. `sentences`, with a mask each, are measured on instead of
    those the structural filter finds in that part. Documents that hold a sentence that is measured
    on, or its swapped twin, are not learned from.
    `pairs` adds CrowS-Pairs. `control` trains a second time on the text as it is.

    The folder gets `model/`, `curve.csv`, `items.csv`, `run.json` and `results.json`. A call that
    was broken off goes on when it is made again; one that is done gives its result again; a folder
    of another run is refused, unless `restart` clears it. `run` is added to `run.json`.
    """
    settings = settings or Settings()
    documents = collect(
        texts, held_out=settings.held_out, evaluation=settings.evaluation,
        max_tokens=settings.max_tokens,
    )  # fmt: skip
    given = None if sentences is None else tuple(map(_sentence, sentences))
    with RunFolder.working(folder) as place:
        model = load(source, device=device)
        identity = {
            "settings": {k: v for k, v in settings.as_dict().items() if k != "prob"},
            "model": model.fingerprint,
            "text": documents.fingerprint(), "sentences": _digest(given), "crows": _digest(pairs),
            "control": control,
        }  # fmt: skip
        about = {
            "model": os.fspath(source),
            "versions": versions("tokenizers", "torch", "transformers"),
            **(run or {}),
        }
        here = not restart and place.holds(identity)
        done = place.finished(settings.prob) if here else None
        if done is not None:
            return done
        held = held_out(model, documents, given=given, pairs=pairs)
        documents = documents.without(held.texts())
        material = Material(model, documents, settings)
        if not here:  # only now, when nothing of the input can be wrong any more
            place.claim(identity, about)
        loop = _Loop(place, settings, documents, held, progress)
        return loop.go(model, material, source, device, control)


@dataclass(frozen=True)
class _Loop:
    place: RunFolder
    settings: Settings
    documents: Documents
    held: HeldOut
    progress: Progress | None

    def go(
        self,
        model: Model,
        material: Material,
        source: str | os.PathLike[str],
        device: str,
        control: bool,
    ) -> FinetuneResult:
        before = self.measure(model, "before")
        trained, after = self.arm(model, material, "after")
        measured = {"before": before, "after": after}
        plain: Trained | None = None
        if control:
            settings = replace(self.settings, rewrite="none")
            model = load(source, device=device)
            material = Material(model, self.documents, settings)
            plain, measured["control"] = self.arm(model, material, "control", "control")
        made = {
            name: changes(measured[one], measured[two], self.settings)
            for name, one, two in (
                ("changes", "before", "after"),
                ("control", "before", "control"),
                ("beyond_control", "control", "after"),
            )
            if one in measured and two in measured
        }
        result = FinetuneResult(
            model=model.name, folder=self.place.path, settings=self.settings.as_dict(),
            data=self.data(), training=trained.as_dict(), curve=_curve(trained),
            control_curve=_curve(plain) if plain else (), crows=crows_change(before, after),
            notes=tuple(self.notes(trained)), **made,
        )  # fmt: skip
        columns = items(measured)
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        self.place.save_table(rows, "items.csv")
        self.place.finish(result)
        return result

    def arm(
        self, model: Model, material: Material, name: str, *under: str
    ) -> tuple[Trained, Measured]:
        """Train and measure once; the model and its curve are written as soon as it is trained."""
        self.place.checkpoints.mkdir(exist_ok=True)
        tell = self._stage(f"training {name}" if under else "training")
        checkpoint = self.place.checkpoints / f"{name}.safetensors"
        trained = train(model, material, checkpoint, tell)
        self.place.save_model(model, *under, "model")
        self.place.save_table(_curve(trained), *under, "curve.csv")
        return trained, self.measure(model, name)

    def measure(self, model: Model, name: str) -> Measured:
        from evenhand.cache import Cache

        def stage(what: str) -> Callable[[int, int], None] | None:
            tell = self._stage(f"{what} {name}")
            return None if tell is None else lambda done, total: tell(done, total, "")

        cache = Cache(self.place.checkpoints / "answers")
        return measure(model, self.held, self.settings, stage=stage, cache=cache)

    def data(self) -> dict[str, Any]:
        """How many documents went where."""
        documents = self.documents
        return {
            "documents_read": documents.read, "empty": documents.empty,
            "beyond_cap": documents.beyond, "training": len(documents.training),
            "evaluation": len(documents.evaluation), "held_out": len(documents.held_out),
            "held_out_elsewhere": documents.held_out_elsewhere,
            "sentences": len(self.held.sentences), "sentences_from": self.held.origin,
            "sentences_twice": self.held.duplicates, "sentences_refused": self.held.refused,
            "plain_sentences": len(self.held.plain), "pairs": len(self.held.pairs),
        }  # fmt: skip

    def notes(self, trained: Trained) -> Iterable[str]:
        """What a reader of the numbers has to know."""
        if trained.documents < len(self.documents.training) or self.documents.beyond:
            yield (
                f"learned from a sample of {trained.documents:,} documents: max_tokens is "
                f"{self.settings.max_tokens:,}"
            )
        if self.held.refused:
            yield f"{self.held.refused:,} sentences are left out: the model cannot score them"
        if trained.best.evaluation > trained.points[0].evaluation:
            yield "the evaluation loss is worse than before: try a smaller learning rate"

    def _stage(self, what: str) -> Callable[[int, int, str], None] | None:
        progress = self.progress
        if progress is None:
            return None
        return lambda done, total, words: progress(what, done, total, words)


def _curve(trained: Trained) -> list[dict[str, Any]]:
    return [asdict(point) for point in trained.points]


def _sentence(given: str | Sentence) -> Sentence:
    return given if isinstance(given, Sentence) else Sentence(given)


def _digest(given: Iterable[Any] | None) -> str:
    if given is None:
        return "none"
    return hashlib.sha256("\n".join(map(repr, given)).encode()).hexdigest()
