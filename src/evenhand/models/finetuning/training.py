"""Fine-tuning on rewritten text, and what that does to the bias: measure, train, measure again.

The training minimises the masked-token loss with a warm-up and a linear decay of the learning rate;
the weights of the best evaluation are used. Where the mean bias of sentences that are watched goes
to the other side of one half, training ends, and weights between those of the two evaluations are
used, with which it is still on its side. An interrupted run resumes from its checkpoint.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self

import numpy as np

from evenhand import files
from evenhand.cache import Cache
from evenhand.errors import FileError, InputError, PartialFailure, parameter
from evenhand.files import document, public_name, save_json, versions
from evenhand.instruments import Instrument, Run, check_options, documented, option
from evenhand.judging import side
from evenhand.models.masked import MaskedModel, load_to_train
from evenhand.models.memory import ModelSource, is_path
from evenhand.models.metrics.crows import Crows
from evenhand.models.metrics.perplexity import Perplexity
from evenhand.models.metrics.pronouns import BUILT_IN, INTERVAL, Pronouns
from evenhand.models.pairs import compare_pairs
from evenhand.models.sentences import Sentence, built_in_sentences
from evenhand.models.sources import quiet
from evenhand.results import Comparison, Estimate, Items, Measurement
from evenhand.statistics.intervals import Floats, bootstrap_mean, paired_shares, wilson
from evenhand.training import (
    Loop,
    copy_weights,
    defer_interrupt,
    load_weights,
    make_optimizer,
    select,
)

if TYPE_CHECKING:
    import torch

    from evenhand.models.finetuning.text import Documents, HeldOut, TrainingText
    from evenhand.models.pairs import Pair

INTERVALS = (
    "studentised bootstrap over sentences, paired; perplexity: bootstrap over sentences; CrowS: "
    "Wilson and Newcombe over pairs; distance from the ideal: from the intervals of the paired "
    "difference and the paired sum. They hold the trained weights fixed: another seed of the "
    "training would give somewhat different ones."
)

StageProgress = Callable[[str, int, int, str], None]
"""Called with what is being done, how much is done, of how much, and a status text."""


class StepProgress(Protocol):
    """Called with how much is done, of how much, and a status text."""

    def __call__(self, done: int, total: int, status: str = "", /) -> None: ...


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneSettings:
    """How to fine-tune; with the defaults `mini` takes minutes on two CPU cores.

    Training ends after `epochs`, after `max_tokens` tokens in total, or when `patience` consecutive
    evaluations do not improve on the best; the weights of the best evaluation are used. With `stop`
    "ideal" and rewritten text it also ends where the mean bias of watched sentences (of the
    evaluation text, or given ones), measured at every evaluation, goes to the other side of .5;
    then weights between those of that evaluation and of the one before that is nearest to .5 are
    used, by bisection. With `average` "weights" the mean of the weights after each epoch that was
    trained is used (stochastic weight averaging, Izmailov et al. 2018). What is held out and the
    evaluation text are not trained on. Weights are always float32.

    Examples
    --------
    >>> FinetuneSettings(rewrite="swop")
    Traceback (most recent call last):
    evenhand.errors.UnknownNameError: unknown rewrite 'swop': did you mean 'swap'? (known: ...)
    """

    rewrite: Literal["none", "swap", "substitute", "neutralize"] = option(
        "substitute",
        help="How the text is rewritten: substitute swaps gender in half of the documents, redrawn "
        "in every epoch; swap in all; neutralize makes it neutral; none keeps it.",
    )
    block: int = option(
        256, minimum=8, flag="--max-length", help="The longest text or row in tokens."
    )
    batch: int = option(
        8,
        minimum=1,
        help="Blocks per step; shorter rows are combined up to as many tokens.",
    )
    epochs: int = option(30, minimum=1, help="Maximum number of passes over the text.")
    max_tokens: int = option(
        600_000,
        minimum=0,
        help="Maximum number of training tokens over all epochs; a larger input is sampled. 0: no "
        "limit, all epochs over all of the text.",
    )
    learning_rate: float = option(2e-4, above=0, help="The highest learning rate.")
    warmup: float = option(
        0.06, above=0, below=1, public=False, help="Share of the steps with a rising rate."
    )
    weight_decay: float = option(0.01, minimum=0, public=False, help="Weight decay of AdamW.")
    clip: float = option(1.0, above=0, public=False, help="Largest norm of the gradients.")
    mask: float = option(
        0.15, above=0, below=1, flag="--mask-share", help="Share of masked tokens."
    )
    evaluations: int = option(20, minimum=1, help="Points of the loss curve over the run.")
    patience: int = option(
        8, minimum=1, help="Stop after this many evaluations without improvement."
    )
    stop: Literal["ideal", "loss"] = option(
        "ideal",
        help="ideal: stop where the mean bias of watched sentences goes to the other side of one "
        "half, and use weights with which it has not yet (rewritten text only); loss: by the "
        "evaluation loss alone.",
    )
    average: Literal["none", "weights"] = option(
        "none",
        help="none: use the weights of the best evaluation; weights: the mean of those after each "
        "epoch (with stop loss).",
    )
    held_out: float = option(
        0.2,
        above=0,
        below=1,
        help="Share of documents held out for the measurements before and after.",
    )
    evaluation: float = option(
        0.05, above=0, below=1, public=False, help="Share of documents for the evaluation loss."
    )
    measure: bool = option(
        True,
        flag="--measure/--no-measure",
        help="Measure bias and perplexity before and after; or train on all of the text and "
        "measure nothing but the loss.",
    )
    top_k: int = option(
        10, minimum=1, help="Look for gender words among the K likeliest (the published score)."
    )
    prob: float = option(0.95, above=0, below=1, public=False, help="Probability of the intervals.")
    dtype: Literal["auto", "float32", "bfloat16"] = option(
        "auto",
        help="Data type of matrix products; auto: bfloat16 on a GPU, else float32.",
    )
    seed: int = option(0, minimum=0, public=False, help="Seed of all random draws.")

    def __post_init__(self) -> None:
        check_options(self)
        if self.held_out + self.evaluation >= 1:
            raise InputError("held_out and evaluation: expected to leave text to learn from")
        if self.watches and self.average != "none":
            raise InputError(
                f"{parameter('stop')}: expected loss with the mean of the weights, which may pass "
                f"the ideal, got {self.stop}"
            )

    @property
    def watches(self) -> bool:
        """Whether training is stopped where the bias passes the ideal."""
        return self.measure and self.stop == "ideal" and self.rewrite != "none"

    @property
    def most_tokens(self) -> int:
        """The largest number of training tokens."""
        return self.max_tokens or sys.maxsize


@dataclass(frozen=True, slots=True, kw_only=True)
class FinetuneResult:
    """What changed on held-out text, the loss curve, and the record of the run.

    The pronoun score is measured on held-out sentences of the training text (or given ones) and on
    the built-in sentences, of a kind not trained on: "mean bias, built-in sentences". An effect on
    the first kind says little about others. `changes` compare the fine-tuned model with the
    original; with a control run (the same training on the text as it is) `control` compares the
    control with the original, and `against_control` the fine-tuned model with the control: the
    effect of the rewriting without that of the domain. A comparison has in `details` the change of
    the distance from the ideal (`distance`), by which its `effect` says whether the measure is
    nearer its ideal.
    """

    model: str
    folder: Path
    settings: Mapping[str, Any]
    data: Mapping[str, Any]
    training: Mapping[str, Any]
    curve: Sequence[Mapping[str, Any]] = field(repr=False)
    changes: tuple[Comparison, ...]
    control: tuple[Comparison, ...] = ()
    against_control: tuple[Comparison, ...] = ()
    control_curve: Sequence[Mapping[str, Any]] = field(default=(), repr=False)
    crows: Comparison | None = field(default=None, repr=False)
    notes: tuple[str, ...] = ()

    def change(self, query: str) -> Comparison:
        """The change of one measure, such as "mean bias" or "pseudo-perplexity"."""
        for change in self.changes:
            if change.query == query:
                return change
        known = ", ".join(change.query for change in self.changes)
        raise InputError(f"no measure '{query}' (measures: {known})")

    @property
    def sentence(self) -> str:
        """The change of the mean score on both kinds of sentences, in one line."""
        kinds = {
            "held out": "held-out sentences of the training text",
            "given": "the given sentences",
            "built-in": "sentences of another kind (built-in)",
        }
        changes = [
            f"{c.change.value:+.3f} [{c.change.low:.3f}, {c.change.high:.3f}] on "
            f"{kinds[c.details['sentences']]}: {c.effect}"
            for c in self.changes
            if c.query in ("mean bias", f"mean bias, {BUILT_IN}")
        ]
        if not changes:
            return "not measured"
        return f"mean bias, change: {'; '.join(changes)}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON view, which is the content of results.json."""
        row = {
            each.name: getattr(self, each.name) for each in fields(self) if each.name != "folder"
        }
        for name in COMPARED:
            row[name] = [change.to_dict(items=False) for change in row[name]]
        row["crows"] = None if self.crows is None else self.crows.to_dict(items=False)
        return {**row, "sentence": self.sentence, "interval": INTERVALS}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any], folder: Path) -> Self:
        """Read what `to_dict` wrote."""
        values = {each.name: row[each.name] for each in fields(cls) if each.name != "folder"}
        for name in COMPARED:
            values[name] = tuple(map(Comparison.from_dict, row[name]))
        if row["crows"] is not None:
            values["crows"] = Comparison.from_dict(row["crows"])
        return cls(folder=folder, **{**values, "notes": tuple(row["notes"])})


COMPARED = ("changes", "control", "against_control")
"""The fields of a result that are comparisons."""


def finetune(
    source: ModelSource,
    texts: Iterable[str],
    settings: FinetuneSettings | None = None,
    folder: str | os.PathLike[str] = "finetuned",
    *,
    sentences: Iterable[str | Sentence] | None = None,
    watched: Iterable[str | Sentence] | None = None,
    pairs: Sequence[Pair] = (),
    control: bool = False,
    restart: bool = False,
    device: str = "auto",
    run: Mapping[str, Any] | None = None,
    progress: StageProgress | None = None,
) -> FinetuneResult:
    """Fine-tune a masked language model on texts and measure what that changed.

    Parameters
    ----------
    source : str or path
        The model, as for `load`.
    texts : iterable of str
        Documents. They are rewritten as they are read, as the settings say, and split by their
        content: most are learned from, some give the evaluation loss, and on some the model is
        measured before and after. The pronoun score is also measured on the built-in sentences,
        which are of another kind.
    settings : FinetuneSettings, optional
    folder : path
        Gets `model/`, `curve.csv`, `items.csv`, `run.json` and `results.json`. An interrupted call
        resumes when it is repeated; a finished one returns its result again; the folder of another
        run is refused.
    sentences : iterable of str or Sentence, optional
        Masked sentences to measure on instead of those that the structural filter finds in the
        held-out documents; where these are fewer than two, the built-in sentences are. Documents
        with a sentence that is measured on, or its counterfactual, are not learned from.
    watched : iterable of str or Sentence, optional
        Masked sentences whose mean bias decides when to stop, none of them measured on, instead of
        those that the structural filter finds in the evaluation text.
    pairs : sequence of Pair
        Sentence pairs, to measure CrowS-Pairs too.
    control : bool
        Whether to train a second time on the text as it is, for as many steps.
    restart : bool
        Whether to clear another run from the folder.
    device : str
    run : mapping, optional
        Added to `run.json`.
    progress : callable, optional
        Called with (what, done, total, status).

    Returns
    -------
    FinetuneResult

    """
    from evenhand.models.finetuning.text import HeldOut, TrainingText, collect, held_out, watch

    settings = settings or FinetuneSettings()
    if not settings.measure and (sentences is not None or pairs or watched is not None):
        raise InputError("measure: expected sentences and pairs to measure on, or none of it")
    if settings.stop != "ideal" and watched is not None:
        raise InputError(
            f"{parameter('watched', option='--watch')}: expected stop 'ideal' with sentences "
            "to watch"
        )
    documents = collect(
        texts,
        held_out=settings.held_out if settings.measure else 0.0,
        evaluation=settings.evaluation,
        max_tokens=settings.most_tokens,
    )
    given, given_watched = (
        None if masked is None else tuple(map(_sentence, masked)) for masked in (sentences, watched)
    )
    with FinetuneFolder.working(folder) as run_folder:
        model = load_to_train(source, device)
        identity = {
            "settings": {k: v for k, v in asdict(settings).items() if k != "prob"},
            "model": model.fingerprint,
            "text": documents.fingerprint(),
            "sentences": _digest(given),
            "watched": _digest(given_watched),
            "built_in": _digest(built_in_sentences()),
            "crows": _digest(pairs),
            "control": control,
        }
        about = {
            "model": public_name(source) if is_path(source) else model.name,
            "versions": versions("tokenizers", "torch", "transformers"),
            **(run or {}),
        }
        resuming = not restart and run_folder.holds(identity)
        done = run_folder.finished(settings.prob) if resuming else None
        if done is not None:
            return done
        held_out_text = HeldOut((), (), (), "not measured")
        if settings.measure:
            held_out_text = held_out(model, documents, given=given, pairs=pairs)
        to_watch = (sentence.text for sentence in given_watched or ())
        documents = documents.without([*held_out_text.texts(), *to_watch])
        if settings.watches:
            watched_text = watch(model, documents, held_out_text, given=given_watched)
            held_out_text = replace(held_out_text, watched=watched_text)
        material = TrainingText(model, documents, settings)
        if not resuming:  # only after all input is checked
            run_folder.claim(identity, about)
        loop = _Loop(run_folder, settings, documents, held_out_text, progress)
        return loop.go(model, material, source, device, control)


@dataclass(frozen=True)
class _Loop:
    folder: FinetuneFolder
    settings: FinetuneSettings
    documents: Documents
    held_out: HeldOut
    progress: StageProgress | None

    def go(
        self,
        model: MaskedModel,
        material: TrainingText,
        source: ModelSource,
        device: str,
        control: bool,
    ) -> FinetuneResult:
        from evenhand.models.finetuning.text import TrainingText

        measured: dict[str, Measured] = {}
        if self.settings.measure:
            measured["before"] = self.measure(model, "before")
        state = self.arm(model, material, "after", measured)
        training = state.to_dict(material)
        plain: list[dict[str, Any]] = []
        if control:
            settings = replace(self.settings, rewrite="none")
            model = load_to_train(source, device)
            until = state.used.step if state.ended == "ideal" else None
            unchanged = TrainingText(model, self.documents, settings)
            plain = self.arm(model, unchanged, "control", measured, "control", until=until).curve()
        kind = self.held_out.kind
        compared = {
            name: _changes(measured[first], measured[second], self.settings, kind)
            for name, first, second in (
                ("changes", "before", "after"),
                ("control", "before", "control"),
                ("against_control", "control", "after"),
            )
            if first in measured and second in measured
        }
        result = FinetuneResult(
            model=model.name,
            folder=self.folder.path,
            settings=asdict(self.settings),
            data=self.data(),
            training=training,
            curve=state.curve(),
            control_curve=plain,
            crows=compare_pairs(measured["before"]["pairs"], measured["after"]["pairs"])
            if self.held_out.pairs
            else None,
            notes=tuple(self.notes(state, training["documents"])),
            **{"changes": (), **compared},
        )
        if measured:
            self.folder.save_table(_items(measured, kind), "items.csv")
        self.folder.finish(result)
        return result

    def arm(
        self,
        model: MaskedModel,
        material: TrainingText,
        name: str,
        measured: dict[str, Measured],
        *under: str,
        until: int | None = None,
    ) -> FinetuneState:
        """Train and measure once; the model and its curve are written as soon as it is trained."""
        self.folder.checkpoints.mkdir(exist_ok=True)
        report = self._stage(f"training {name}" if under else "training")
        checkpoint = self.folder.checkpoints / f"{name}.safetensors"
        watched = () if under else self.held_out.watched
        state = train(model, material, checkpoint, report, watched=watched, until=until)
        self.folder.save_model(model, *under, "model")
        self.folder.save_table(state.curve(), *under, "curve.csv")
        if self.settings.measure:
            measured[name] = self.measure(model, name)
        return state

    def measure(self, model: MaskedModel, name: str) -> Measured:
        """Pronoun scores, pseudo-likelihoods of plain text and, where there are pairs, CrowS."""
        cache, held_out = Cache(self.folder.checkpoints / "answers"), self.held_out
        pronouns = Pronouns(top_k=self.settings.top_k)
        measures: tuple[tuple[str, str, Pronouns | Perplexity | Crows, Sequence[Any]], ...] = (
            ("sentences", "pronouns", pronouns, held_out.sentences),
            ("built-in", BUILT_IN, pronouns, held_out.built_in),
            ("plain", "perplexity", Perplexity(), held_out.plain),
            ("pairs", "CrowS", Crows(), held_out.pairs),
        )
        run = Run(prob=self.settings.prob, seed=self.settings.seed, cache=cache)
        return {
            key: instrument.measure(
                model, material, replace(run, progress=self._stage(f"{what} {name}"))
            )
            for key, what, instrument, material in measures
            if material
        }

    def data(self) -> dict[str, Any]:
        """The number of documents and sentences of each part."""
        documents = self.documents
        return {
            "documents_read": documents.read,
            "empty": documents.empty,
            "above_cap": documents.above_cap,
            "training": len(documents.training),
            "evaluation": len(documents.evaluation),
            "held_out": len(documents.held_out),
            "held_out_elsewhere": documents.held_out_elsewhere,
            "sentences": len(self.held_out.sentences),
            "sentences_from": self.held_out.origin,
            "sentences_twice": self.held_out.duplicates,
            "sentences_refused": self.held_out.refused,
            "built_in_sentences": len(self.held_out.built_in),
            "watched_sentences": len(self.held_out.watched),
            "plain_sentences": len(self.held_out.plain),
            "pairs": len(self.held_out.pairs),
        }

    def notes(self, trained: FinetuneState, documents: int) -> Iterable[str]:
        """Remarks that a reader of the numbers needs."""
        if documents < len(self.documents.training) or self.documents.above_cap:
            yield (
                f"learned from a sample of {documents:,} documents: max_tokens is "
                f"{self.settings.max_tokens:,}"
            )
        if self.held_out.kind == "built-in":
            yield f"measured on the {self.held_out.origin}"
        yield from self.stopping(trained)
        if trained.averaged:
            yield f"the weights are the mean of those after each of {trained.averaged:,} epochs"
        if self.held_out.refused:
            yield f"{self.held_out.refused:,} sentences are left out: the model cannot score them"
        if trained.used.evaluation > trained.points[0].evaluation:
            yield "the evaluation loss is worse than before: try a smaller learning rate"

    def stopping(self, trained: FinetuneState) -> Iterable[str]:
        """Whether training was stopped at the ideal, or why it could not be."""
        n = len(self.held_out.watched)
        if not self.settings.watches:
            return
        first, last = trained.points[0].bias, trained.passed
        if not n:
            yield (
                "training was not watched for the ideal: the evaluation text has too few "
                "sentences for it; give others to watch"
            )
        elif trained.ended == "ideal":
            yield (
                f"stopped at step {trained.step:,}: the mean bias of {n:,} watched sentences went "
                f"from {first:.3f} to the other side of .5 ({last:.3f}); weights with which it is "
                f"{trained.used.bias:.3f} are used, those of {trained.chosen}"
            )
        elif not trained.side:
            yield (
                f"training was not stopped at the ideal: the mean bias of {n:,} watched sentences "
                f"({first:.3f}) is not clearly on one side of .5"
            )

    def _stage(self, what: str) -> StepProgress | None:
        progress = self.progress
        if progress is None:
            return None
        return lambda done, total, words="": progress(what, done, total, words)


def _sentence(given: str | Sentence) -> Sentence:
    return given if isinstance(given, Sentence) else Sentence(given)


def _digest(given: Iterable[Any] | None) -> str:
    if given is None:
        return "none"
    return hashlib.sha256("\n".join(map(repr, given)).encode()).hexdigest()


class FinetuneFolder(files.RunFolder):
    """The folder of `finetune`."""

    command = "masked finetune"
    products = ("results.json", "model", "control", "checkpoint/*.safetensors")
    cleared = (
        "results.json",
        "curve.csv",
        "items.csv",
        "checkpoint",
        "model",
        "control",
        "figures",
    )

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.checkpoints = path / "checkpoint"

    def finished(self, prob: float) -> FinetuneResult | None:
        """The result of a finished run; its intervals must have the requested probability."""
        file = self.path / "results.json"
        if not file.is_file():
            return None
        try:
            result = FinetuneResult.from_dict(json.loads(file.read_bytes()), self.path)
            saved_prob = float(result.settings["prob"])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise FileError(
                file,
                f"not the result of a run: {error!r}; {parameter('restart', True)} starts over",
            ) from error
        if saved_prob != prob:
            raise FileError(
                self.path,
                f"this run is complete, with intervals of prob {saved_prob:g}, not {prob:g}: "
                f"request those, give another folder, or "
                f"{parameter('restart', True)} to train again",
            )
        return result

    def finish(self, result: FinetuneResult) -> None:
        """Write the result; the checkpoints are no longer needed."""
        save_json(self.path / "results.json", document(**result.to_dict()))
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    def save_model(self, model: MaskedModel, *parts: str) -> None:
        """Write model and tokenizer in the transformers layout, atomically."""
        from safetensors import SafetensorError

        target = self.path.joinpath(*parts)
        target.parent.mkdir(exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=files.PARTIAL, dir=self.path))
        try:
            with quiet():
                model.network.save_pretrained(partial)
            model.tokenizer.save_pretrained(partial)
            if model.maps is not None:
                model.maps.save(partial)
            partial.chmod(0o755)
            shutil.rmtree(target, ignore_errors=True)
            os.replace(partial, target)
        except SafetensorError as error:
            raise PartialFailure(f"{target}: {error}; {files.RESUMES}") from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)


HALVINGS = 5
"""Bisections between the weights before and after the bias passed the ideal."""


@dataclass(frozen=True, slots=True)
class LossPoint:
    """A point of the loss curve; the training loss is the mean since the point before.

    `bias` is the mean bias of the watched sentences. With a `share` below 1 the weights are those
    of this step by that share, and for the rest those of the point nearest to the ideal before.
    """

    step: int
    epoch: float
    tokens: int
    training: float | None
    evaluation: float
    bias: float | None = None
    share: float = 1.0


@dataclass(slots=True)
class FinetuneState:
    """The state of a training, besides the weights and the moments of the optimizer."""

    epoch: int = 0
    batch: int = 0
    step: int = 0
    tokens: int = 0
    loss_sum: float = 0.0
    loss_count: int = 0
    waited: int = 0
    best: int | None = None
    """The number of the best point."""
    side: int = 0
    """1 where the bias of the watched sentences is clearly above .5 at first, -1 below it."""
    nearest: int = 0
    """The number of the point nearest to .5 on that side."""
    ended: str = ""
    """Why the training ended; empty while it continues."""
    averaged: int = 0
    """The number of epochs whose weights are in the mean."""
    points: list[LossPoint] = field(default_factory=list)

    @property
    def used(self) -> LossPoint:
        """The point whose weights are used."""
        assert self.best is not None  # noqa: S101
        return self.points[self.best]

    @property
    def passed(self) -> float | None:
        """The watched bias of the last step."""
        return next(p.bias for p in reversed(self.points) if p.share == 1)

    @property
    def chosen(self) -> str:
        """The weights that are used, in words."""
        near, step, share = self.points[self.nearest].step, self.used.step, self.used.share
        if share < 1:
            return f"step {near:,} and of step {step:,}, averaged {share:.0%} to the latter"
        return f"step {step:,}"

    def curve(self) -> list[dict[str, Any]]:
        """The points as rows of a table."""
        return list(map(asdict, self.points))

    def to_dict(self, material: TrainingText) -> dict[str, Any]:
        """The summary of a finished training on the material."""
        first, used = self.points[0], self.used
        return {
            "ended": self.ended,
            "steps": self.step,
            "tokens": self.tokens,
            "planned_tokens": material.planned,
            "epoch_tokens": material.epoch_tokens,
            "epochs": self.points[-1].epoch,
            "documents": len(material.training),
            "evaluation_documents": len(material.evaluation_documents),
            "best": {"step": used.step, "epoch": used.epoch, "share": used.share},
            "averaged": self.averaged,
            "evaluation_loss": {"before": first.evaluation, "after": used.evaluation},
            "watched_bias": {"before": first.bias, "after": used.bias},
        }


def train(
    model: MaskedModel,
    material: TrainingText,
    checkpoint: Path,
    progress: StepProgress | None = None,
    *,
    watched: Sequence[Sentence] = (),
    until: int | None = None,
) -> FinetuneState:
    """Train the model in place, resuming from the checkpoint if there is one.

    At the end it has the weights of the best evaluation or, if the mean bias of the `watched`
    sentences passed the ideal, weights just before that. `until` is a number of steps after which
    to stop with the weights as they are.
    """
    import torch

    devices = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices), defer_interrupt() as interrupt:
        run = _Training(model, material, checkpoint, progress, interrupt, watched, until)
        run.go()
        load_weights(run.weights, run.best)
        run.network.eval()
    return run.state


class _Training(Loop):
    settings: FinetuneSettings
    state: FinetuneState

    def __init__(
        self,
        model: MaskedModel,
        material: TrainingText,
        checkpoint: Path,
        progress: StepProgress | None,
        interrupt: threading.Event,
        watched: Sequence[Sentence],
        until: int | None,
    ) -> None:
        self.watched, self.until = watched, until
        self.model, self.material = model, material
        self.settings, self.progress = material.settings, progress
        self.network: Any = model.network
        weights = dict(self.network.named_parameters())
        settings = self.settings
        optimizer = make_optimizer(weights, {"": settings.learning_rate}, settings.weight_decay)
        self.state = FinetuneState()
        super().__init__(weights, optimizer, checkpoint, interrupt)
        self.nearest: dict[str, torch.Tensor] = {}
        self.mean: dict[str, torch.Tensor] = {}
        if self.checkpoint is not None and checkpoint.is_file():
            record, self.best, others = self.checkpoint.restore(weights, optimizer)
            self.nearest, self.mean = select("nearest.", others), select("mean.", others)
            points = [LossPoint(**point) for point in record.pop("points")]
            self.state = FinetuneState(**record, points=points)

    def go(self) -> None:
        """Step by step until the end, or until Ctrl-C."""
        state = self.state
        if not state.points:
            state.ended = "steps" if self.until == 0 else ""
            self.evaluate()
        while not state.ended:
            plan = self.material.batches(state.epoch)
            while state.batch < len(plan) and not state.ended:
                self.learn(plan[state.batch], state.batch + 1 == len(plan))
            if not state.ended:
                state.epoch, state.batch = state.epoch + 1, 0

    def learn(self, chosen: list[int], last_of_epoch: bool) -> None:
        """Do one step, then evaluate, save a checkpoint or stop if due."""
        import torch

        from evenhand.models.finetuning.text import derived_seed, masked_loss

        state, planned = self.state, self.material.planned
        hidden, tokens = self.material.step(state.epoch, chosen, state.step)
        torch.manual_seed(derived_seed(self.settings.seed, "dropout", state.step))
        self.set_rate((state.tokens + tokens / 2) / planned)
        self.network.train()
        with self.precision():
            loss = masked_loss(self.network, hidden.to(self.model.device))
        torch.autograd.backward(loss)
        self.update()
        number = loss.item()
        rate = f"{self.settings.learning_rate:g}"
        self.check_loss(number, state.step, f"a smaller learning_rate than {rate}")
        every = planned / self.settings.evaluations
        due = int((state.tokens + tokens) / every) > int(state.tokens / every)
        # after 1, 2, 4 … steps too, since the bias moves fast at first
        early = bool(state.side) and not due and state.tokens + tokens < every
        early = early and (state.step + 1).bit_count() == 1
        state.batch += 1
        state.step += 1
        state.tokens += tokens
        state.loss_sum += number
        state.loss_count += 1
        last = state.epoch + 1 == self.settings.epochs and last_of_epoch
        if state.tokens >= planned or last:
            state.ended = "epochs" if last else "max_tokens"
        if state.step == self.until:
            state.ended = "steps"
        if due or early or state.ended:
            self.evaluate(watch_only=early and not state.ended)
        if self.settings.average == "weights":
            if last_of_epoch or (state.ended and not state.averaged):
                self.add_to_mean()
            if state.ended:
                self.use_mean()
        if self.progress is not None:
            self.progress(min(state.tokens, planned), planned, self.status(number))
        self.finish_step()

    def evaluate(self, *, watch_only: bool = False) -> None:
        """Add a point to the curve; copy the weights if it is the best, stop after `patience`.

        With `watch_only` the point is there for the bias alone: it is not compared by its loss.
        """
        state = self.state
        evaluation = self.evaluation_loss()
        training = state.loss_sum / state.loss_count if state.loss_count else None
        state.loss_sum, state.loss_count = 0.0, 0
        epoch = state.tokens / self.material.epoch_tokens
        bias = self.watch()
        state.points.append(LossPoint(state.step, epoch, state.tokens, training, evaluation, bias))
        if state.ended == "steps":
            self.use_last()
            return
        if bias is not None and state.side * (bias - 0.5) < 0:
            state.ended = "ideal"
            self.step_back()
            return
        nearest = state.points[state.nearest].bias
        closer = None if bias is None or nearest is None else state.side * (bias - nearest) <= 0
        if state.side and closer:
            state.nearest, self.nearest = len(state.points) - 1, copy_weights(self.weights)
        if watch_only or not state.step:
            return
        best = None if state.best is None else state.points[state.best].evaluation
        self.compare(better=best is None or evaluation < best)

    def add_to_mean(self) -> None:
        """Add the weights of an epoch to the mean."""
        self.state.averaged += 1
        weights = copy_weights(self.weights)
        share = 1 / self.state.averaged
        self.mean = {n: self.mean.get(n, w).lerp(w, share) for n, w in weights.items()}

    def use_mean(self) -> None:
        """Use the mean of the weights; its loss is another point of the curve."""
        state = self.state
        load_weights(self.weights, self.mean)
        last = replace(state.points[-1], training=None, evaluation=self.evaluation_loss())
        state.points.append(last)
        self.use_last()

    def evaluation_loss(self) -> float:
        """The mean loss at the hidden tokens of the evaluation text."""
        import torch

        from evenhand.models.finetuning.text import masked_loss

        total, count = 0.0, 0
        self.network.eval()
        with torch.inference_mode(), self.precision():
            for hidden in self.material.evaluation:
                loss = masked_loss(self.network, hidden.to(self.model.device))
                total += float(loss) * len(hidden.labels)
                count += len(hidden.labels)
        return total / count

    def step_back(self) -> None:
        """Use weights between the point nearest to the ideal and the one that passed it.

        The share of the latter is found by bisection, the largest tried with which the bias is
        still on its side. Weights of one training can be averaged (Wortsman et al. 2022).
        """
        state, before, after = self.state, self.nearest, copy_weights(self.weights)
        low, high, bias = 0.0, 1.0, state.points[state.nearest].bias
        for _ in range(HALVINGS):
            share = (low + high) / 2
            load_weights(self.weights, {n: before[n].lerp(after[n], share) for n in before})
            mean = self.watch()
            if mean is not None and state.side * (mean - 0.5) >= 0:
                low, bias, self.best = share, mean, copy_weights(self.weights)
            else:
                high = share
        if not low:
            state.best, self.best, self.nearest = state.nearest, before, {}
            return
        load_weights(self.weights, self.best)
        last = state.points[-1]
        point = replace(
            last, training=None, evaluation=self.evaluation_loss(), bias=bias, share=low
        )
        state.points.append(point)
        state.best, self.nearest = len(state.points) - 1, {}

    def watch(self) -> float | None:
        """The mean bias of the watched sentences; at first also on which side of .5 it is."""
        if not self.watched:
            return None
        biases = (
            Pronouns(top_k=self.settings.top_k).measure(self.model, self.watched).items["full_bias"]
        )
        biases = biases[np.isfinite(biases)]
        value, low, high = bootstrap_mean(biases, prob=self.settings.prob, seed=self.settings.seed)
        if not self.state.step:
            self.state.side = side(low, high, 0.5)
        return value if biases.size else None

    def record(self) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
        others = {"nearest": self.nearest, "mean": self.mean}
        named = {f"{kind}.{n}": w for kind, own in others.items() for n, w in own.items()}
        return asdict(self.state), named

    def precision(self) -> AbstractContextManager[object]:
        """Autocast to bfloat16 if requested; weights and sums stay float32."""
        import torch

        kind = self.model.device.type
        dtype = self.settings.dtype
        if dtype == "bfloat16" or (dtype == "auto" and kind == "cuda"):
            return torch.autocast(kind, dtype=torch.bfloat16)
        return nullcontext()

    def status(self, loss: float) -> str:
        last = self.state.points[-1]
        return f"epoch {self.state.epoch + 1}, loss {loss:.3f}, evaluation {last.evaluation:.3f}"


Measured = dict[str, Measurement]
"""The measurements of one model: "sentences", "built-in", "plain" and "pairs"."""


def _items(measured: Mapping[str, Measured], kind: str) -> list[dict[str, Any]]:
    """The sentences, their kind, and each model's two scores."""
    rows: list[dict[str, Any]] = []
    for key, name in (("sentences", kind), ("built-in", "built-in")):
        items = {
            model: of_model[key].items for model, of_model in measured.items() if key in of_model
        }
        for i, row in enumerate(next(iter(items.values()), ())):
            biases = {
                f"{column}_{model}": float(own[source][i])
                for model, own in items.items()
                for column, source in (("bias", "full_bias"), ("bias_top", "bias"))
            }
            rows.append(
                {"masked": row["masked"], "pronoun": row["pronoun"], "sentences": name, **biases}
            )
    return rows


def _changes(
    before: Measured, after: Measured, settings: FinetuneSettings, kind: str
) -> tuple[Comparison, ...]:
    """The changes from one model to the other by measure, on both kinds of sentences."""
    both = [
        _score_changes(before[key], after[key], settings, name, end)
        for key, name, end in (
            ("sentences", kind, ""),
            ("built-in", "built-in", f", {BUILT_IN}"),
        )
        if key in before
    ]
    changes = [change for each in zip(*both, strict=True) for change in each]
    ratio = Perplexity.compare(before["plain"], after["plain"])
    first, second = (
        replace(m, query="pseudo-perplexity", items=Items()) for m in (ratio.before, ratio.after)
    )
    changes.append(_with_distance(replace(ratio, before=first, after=second), None))
    if "pairs" in before:
        changes.append(_crows_change(before["pairs"], after["pairs"]))
    return tuple(changes)


def _score_changes(
    before: Measurement, after: Measurement, settings: FinetuneSettings, kind: str, end: str
) -> list[Comparison]:
    """The changes of the pronoun score on one kind of sentences, which is in the details.

    `end` is added to the name of each measure.
    """
    changes = []
    for column, by in (("full_bias", ""), ("bias", f", top {settings.top_k}")):
        first, second = before.items[column], after.items[column]
        both = np.isfinite(first) & np.isfinite(second)
        first, second = first[both], second[both]
        distances = abs(first - 0.5), abs(second - 0.5)
        changes += [
            _mean_change(f"mean bias{by}{end}", first, second, settings, ideal=0.5),
            _mean_change(
                f"mean |bias - .5|{by}{end}", *distances, settings, ideal=0.0, highest=0.5
            ),
        ]
    return [replace(c, details={**c.details, "sentences": kind}) for c in changes]


def _mean_change(
    name: str,
    first: Floats,
    second: Floats,
    settings: FinetuneSettings,
    *,
    ideal: float,
    highest: float = 1.0,
) -> Comparison:
    def mean(x: Floats, lowest: float) -> Estimate:
        bounds = (lowest, highest)
        interval = bootstrap_mean(x, prob=settings.prob, seed=settings.seed, bounds=bounds)
        return Estimate.of(interval, settings.prob)

    change = mean(second - first, -highest)
    # no value is below an ideal of 0: there the change is the change of the distance
    distance = distance_change(change, mean(first + second - 2 * ideal, -1.0)) if ideal else change
    before, after = (
        _measurement(Pronouns, name, mean(x, 0.0), first.size, ideal=ideal, interval=INTERVAL)
        for x in (first, second)
    )
    comparison = Comparison(
        before=before,
        after=after,
        change=change,
        interval=f"{INTERVAL}, paired",
        paired=int(first.size),
    )
    return _with_distance(comparison, distance)


def _crows_change(before: Measurement, after: Measurement) -> Comparison:
    """The shares of both over the pairs that are a tie for neither, as the change is."""
    shift = compare_pairs(before, after)
    n, prob, counts = shift.paired, shift.change.prob, shift.details
    first, second = (round(counts[when] * n) if n else 0 for when in ("before", "after"))
    both = first - counts["to_less"]
    neither = n - both - counts["to_less"] - counts["to_more"]
    # after + before - 1 is after - (1 - before): the same with the sides of `before` swapped
    total = paired_shares(counts["to_more"], neither, both, counts["to_less"], prob=prob)
    name, interval = "CrowS stereotype share", "Wilson's, over pairs that are a tie for neither"
    share_before, share_after = (
        _measurement(Crows, name, Estimate.of(wilson(k, n, prob), prob), n, interval=interval)
        for k in (first, second)
    )
    comparison = replace(shift, before=share_before, after=share_after, parts=())
    return _with_distance(comparison, distance_change(shift.change, Estimate.of(total, prob)))


def _measurement(
    instrument: type[Instrument], query: str, estimate: Estimate, n: int, **fields: object
) -> Measurement:
    ends = (estimate.value, estimate.low, estimate.high)
    run = Run(prob=estimate.prob)
    return instrument.declaration.result(run, query, ends, n=int(n), **fields)


def _with_distance(change: Comparison, distance: Estimate | None) -> Comparison:
    """The comparison with the change of the distance from the ideal, which decides its effect.

    `distance` is |after - ideal| - |before - ideal|: .55 to .455 is a clear change, and yet about
    as far from .5 as before.
    """
    gap = None if distance is None else distance.to_dict()
    return replace(change, details={**change.details, "distance": gap})


def distance_change(change: Estimate, total: Estimate) -> Estimate:
    r"""The change of the distance from the ideal, of the paired difference and the paired sum.

    With $a$ and $b$ the gaps after and before, $d = a - b$ and $s = a + b$,
    $|a| - |b| = \mathrm{sign}(sd) \min(|s|, |d|)$. The interval is what this gives over those of
    $d$ and $s$; it lies below 0 only where both are clear of 0, with opposite signs: an
    intersection-union test (Berger 1982), which keeps its level without a correction. (The
    bootstrap of a difference of absolute values fails near the ideal, where they have a kink.)

    >>> change = Estimate(value=-.095, low=-.12, high=-.07)
    >>> distance = distance_change(change, Estimate(value=.005, low=-.03, high=.04))
    >>> distance.value, distance.low, distance.high
    (-0.005, -0.04, 0.03)
    """

    def difference(d: float, s: float) -> float:
        return math.copysign(min(abs(d), abs(s)), d * s)

    ends = [difference(d, s) for d in (change.low, change.high) for s in (total.low, total.high)]
    return Estimate(
        value=difference(change.value, total.value), low=min(ends), high=max(ends), prob=change.prob
    )
