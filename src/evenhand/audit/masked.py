"""The stages for a masked language model: pronouns, professions, phrases, fine-tuning."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from evenhand.audit.stages import Options, Progress, Stage
from evenhand.audit.text import structural
from evenhand.errors import InputError
from evenhand.instruments import Run, identity, instruments
from evenhand.lexicon.pronoun_sentences import pronoun_sentences
from evenhand.results import Comparison, Measurement

if TYPE_CHECKING:
    from evenhand.cache import Cache
    from evenhand.fewshot.data import Dataset
    from evenhand.masked.finetuning import FinetuneResult, Settings
    from evenhand.masked.model import Model
    from evenhand.masked.sentences import Sentence

FEWEST = 20
"""Sentences of the data that are worth a score of their own."""
MOST = 2000
"""Sentences of the data that are scored, at most."""
BUILT_IN, FROM_DATA = "built-in sentences", "sentences of the data"


def masked_stages(model: str, data: Dataset, options: Options) -> list[Stage]:
    """The stages for a model; the data give sentences to score and text to fine-tune on."""
    depends = {"model": loaded(model).fingerprint, "prob": options.prob, "seed": options.seed}
    with_data = {**depends, "data": data.digest}
    stages = [
        Stage(
            kind="pronouns",
            title="model: pronouns",
            depends=with_data | {"quick": options.quick},
            compute=partial(_pronouns, model, data, options),
        ),
        Stage(
            kind="professions",
            title="model: professions",
            depends=depends,
            compute=partial(_professions, model, options),
        ),
        Stage(
            kind="phrases",
            title="model: phrases",
            depends=depends,
            compute=partial(_phrases, model, options),
        ),
    ]
    stages += [
        Stage(
            kind="instruments",
            title=f"model: {cls.declaration.label}",
            depends={**depends, **identity(cls())},
            compute=partial(_instrument, model, cls, options),
        )
        for name, cls in instruments("model").items()
        if cls.declaration.audit and name not in ("pronouns", "professions", "phrases")
    ]
    if not options.quick:
        stages.append(
            Stage(
                kind="finetune",
                title="model: before and after fine-tuning",
                depends=with_data,
                compute=lambda progress: tune(loaded(model), model, data, options, progress),
            )
        )
    return stages


def _instrument(source: str, cls: Any, options: Options, progress: Progress) -> dict[str, Any]:
    """Any other instrument that is declared for audits, on its default material."""
    run = Run(seed=options.seed, prob=options.prob, cache=_answers(options), progress=progress.step)
    try:
        result = cls().measure(loaded(source), None, run)
    except InputError as error:
        skip = {"metric": cls.declaration.name, "query": "", "reason": str(error)}
        return {"skipped": (skip,)}
    return {"measurements": (result,) if isinstance(result, Measurement) else tuple(result)}


@lru_cache(maxsize=1)
def loaded(source: str) -> Model:
    """The model, loaded once for all stages."""
    from evenhand.masked.model import load

    return load(source)


def _answers(options: Options) -> Cache:
    """The cache of the model's answers, so that an interrupted audit resumes."""
    from evenhand.cache import Cache

    options.work.mkdir(parents=True, exist_ok=True)
    return Cache(options.work / "answers")


def _pronouns(source: str, data: Dataset, options: Options, progress: Progress) -> dict[str, Any]:
    from evenhand.masked.metrics.pronouns import pronouns

    model, built_in = loaded(source), pronoun_sentences()
    accepted = _sentences(data, options)
    enough = len(accepted) >= FEWEST
    sets: dict[str, Sequence[Sentence] | None] = {BUILT_IN: None}
    if enough:
        sets[FROM_DATA] = accepted
    of, scored = len(built_in.sentences) + enough * len(accepted), 0
    measured = []
    for name, sentences in sets.items():
        m = pronouns(
            model,
            sentences,
            prob=options.prob,
            seed=options.seed,
            cache=_answers(options),
            progress=_offset(progress.step, scored, of),
        )
        measured.append(replace(m, query=name))
        scored += len(built_in.sentences)
    return {
        "measurements": tuple(measured),
        "details": {
            "provenance": built_in.provenance,
            "titles": {name: group.title for name, group in built_in.groups.items()},
            "data_name": data.name,
            "data_found": len(accepted),
            "fewest": FEWEST,
        },
    }


def _sentences(data: Dataset, options: Options) -> list[Sentence]:
    """The first accepted sentence of each text: several of one text are no sample."""
    from evenhand.masked.sentences import Sentence
    from evenhand.masked.words import MASKS

    first: dict[int, Sentence] = {}
    for row in structural(data, options).accepted:
        if sum(map(row["masked"].count, MASKS)) == 1:
            first.setdefault(row["row"], Sentence(row["masked"], row["pronoun"], row["row"] + 1))
    distinct = {sentence.text: sentence for sentence in reversed(first.values())}
    return list(reversed(distinct.values()))[:MOST]


def _offset(step: Callable[[int, int], None], start: int, of: int) -> Callable[[int, int], None]:
    return lambda done, _: step(start + done, of)


def _professions(source: str, options: Options, progress: Progress) -> dict[str, Any]:
    from evenhand.masked.metrics.professions import professions

    m = professions(
        loaded(source), prob=options.prob, cache=_answers(options), progress=progress.step
    )
    return {"measurements": (m,)}


def _phrases(source: str, options: Options, progress: Progress) -> dict[str, Any]:
    from evenhand.lexicon.phrases import phrases as built_in
    from evenhand.masked.metrics.phrases import phrases

    lists = built_in()
    results = phrases(
        loaded(source),
        lists,
        prob=options.prob,
        seed=options.seed,
        cache=_answers(options),
        progress=progress.step,
    )
    return {
        "measurements": tuple(results),
        "details": {
            "titles": {name: listed.title for name, listed in lists.sets.items()},
            "provenance": lists.provenance,
        },
    }


# ------------------------------------------------------------------------------------- fine-tuning

MOST_WEIGHTS = 150_000_000
"""A larger model is not fine-tuned: on a CPU that would take hours."""
TOKENS, LEAST_TOKENS = 160_000, 40_000
"""Tokens that `mini` learns from, and the fewest that a larger model does."""
WEIGHTS = 8_000_000
"""The weights of `mini`, by which the tokens are scaled."""

LONGEST = 600
"""Seconds that the stage may take, estimated from one training step; longer ones are skipped."""
ROWS, LENGTH = 2, 256
"""The texts of the step that is measured, and their tokens."""

PHASES = {
    "pronouns before": 2,
    "perplexity before": 15,
    "training": 60,
    "pronouns after": 1,
    "perplexity after": 12,
    "professions": 7,
    "phrases": 3,
}
"""What is done in turn, and the percentage of the time that it takes."""


def settings_for(weights: int, options: Options) -> Settings:
    """The settings: half of the texts swapped, and as many tokens as a few minutes allow.

    >>> from pathlib import Path
    >>> settings_for(8_000_000, Options(work=Path())).max_tokens
    160000
    """
    from evenhand.masked.finetuning import Settings

    tokens = max(LEAST_TOKENS, min(TOKENS, TOKENS * WEIGHTS // max(weights, 1)))
    return Settings(
        rewrite="substitute",
        max_tokens=tokens,
        evaluations=6,
        patience=6,
        evaluation=0.03,
        prob=options.prob,
        seed=options.seed,
    )


def tune(
    model: Model, source: str, data: Dataset, options: Options, progress: Progress
) -> dict[str, Any]:
    """Fine-tune on the data with the genders of half of the texts swapped, and measure again.

    The pronouns are those of the built-in sentences, as in the verdict; the perplexity is that of
    held-out texts.
    """
    from evenhand.masked.finetuning import finetune

    weights = sum(weight.numel() for weight in model.network.parameters())
    if weights > MOST_WEIGHTS:
        return _skipped(
            f"the model has {weights:,} weights; more than {MOST_WEIGHTS:,} take too long here: "
            "`evenhand masked finetune` does it on a GPU"
        )
    settings = settings_for(weights, options)
    report = _phases(progress)
    parts = (model.fingerprint, data.digest, repr(settings.to_dict()))
    name = blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()
    folder = options.work / f"finetune-{name}"
    if weights > WEIGHTS and not folder.exists():  # a started run is finished
        seconds = seconds_for(settings.max_tokens, _speed(model))
        if seconds > LONGEST:
            return _skipped(
                f"at the speed of a measured training step the {weights:,} weights would take "
                f"about {seconds / 60:.0f} minutes, more than the {LONGEST // 60} of an audit: "
                "use `evenhand masked finetune`, or a GPU"
            )
    options.work.mkdir(parents=True, exist_ok=True)
    try:
        result = finetune(
            source,
            data.texts,
            settings,
            folder,
            sentences=pronoun_sentences().sentences,
            progress=lambda what, done, of, _: report(what, done, of),
        )
    except InputError as error:
        return _skipped(str(error))
    return {
        "comparisons": (*result.changes, *_others(model, result, options, report)),
        "details": {
            "settings": result.settings,
            "data": result.data,
            "training": result.training,
            "curve": result.curve,
            "notes": result.notes,
            "weights": weights,
            "data_name": data.name,
        },
    }


def seconds_for(tokens: int, speed: float) -> float:
    """The time of the stage for so many tokens at a speed in tokens per second.

    What else is done takes a share of the time of `mini` (`PHASES`), and as much longer for
    another model as its steps do.

    >>> round(seconds_for(160_000, 4_000)), round(seconds_for(40_000, 330))
    (67, 444)
    """
    learning = PHASES["training"] / sum(PHASES.values())
    return (tokens + TOKENS * (1 - learning) / learning) / speed


def _speed(model: Model) -> float:
    """Tokens per second of the second of two training steps; the weights do not change."""
    import torch

    network: Any = model.network
    length = min(LENGTH, model.longest)
    devices = [model.device] if model.device.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        ids = torch.randint(len(model.tokenizer), (ROWS, length), device=model.device)
        network.train()
        try:
            for _ in range(2):
                began = time.monotonic()
                network(input_ids=ids, labels=ids).loss.backward()
                seconds = time.monotonic() - began
        finally:
            network.eval()
            network.zero_grad(set_to_none=True)
    return ROWS * length / seconds


def _skipped(reason: str) -> dict[str, Any]:
    return {"skipped": ({"metric": "finetune", "query": "fine-tuning", "reason": reason},)}


def _phases(progress: Progress) -> Callable[[str, int, int], None]:
    """Report the phases as parts of one total, which never decreases."""
    total = sum(PHASES.values())
    begins = {name: sum(list(PHASES.values())[:i]) for i, name in enumerate(PHASES)}
    furthest = 0

    def report(what: str, done: int, of: int) -> None:
        nonlocal furthest
        if what in PHASES:
            share = begins[what] + PHASES[what] * min(1.0, done / max(of, 1))
            furthest = max(furthest, round(10 * share))
            progress.step(furthest, 10 * total)

    return report


def _others(
    model: Model, result: FinetuneResult, options: Options, report: Callable[[str, int, int], None]
) -> list[Comparison]:
    """Professions and phrases before and after, paired; they were no target of the training."""
    from evenhand.cache import Cache
    from evenhand.masked.metrics.phrases import CORRELATION, Phrases, phrases
    from evenhand.masked.metrics.professions import Professions, professions
    from evenhand.masked.model import load

    cache = Cache(options.work / "answers")
    models = (model, load(result.folder / "model"))

    def reporting(phase: str, number: int) -> Callable[[int, int], None]:
        return lambda done, of: report(phase, done + number * of, 2 * of)

    both = [
        professions(each, prob=options.prob, cache=cache, progress=reporting("professions", number))
        for number, each in enumerate(models)
    ]
    before, after = (
        [
            m
            for m in phrases(
                each,
                prob=options.prob,
                seed=options.seed,
                cache=cache,
                progress=reporting("phrases", number),
            )
            if m.metric != CORRELATION and not m.details["neutral"]
        ]
        for number, each in enumerate(models)
    )
    changes = [Phrases.compare(*pair) for pair in zip(before, after, strict=True)]
    return [*Professions.compare(*both).parts, *changes]
