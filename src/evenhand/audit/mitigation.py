"""The stages that change a subject and measure again: debiased vectors, a fine-tuned model."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from hashlib import blake2b
from itertools import product
from typing import TYPE_CHECKING, Any

from evenhand.audit.stages import Options, Progress, Stage, loaded, skip
from evenhand.errors import InputError, VocabularyError
from evenhand.files import plain
from evenhand.instruments import Instrument, Run, compare, compare_together, instruments
from evenhand.lexicon import Topic
from evenhand.results import Comparison, Measurement

if TYPE_CHECKING:
    from evenhand.fewshot.data import Dataset
    from evenhand.models.finetuning.training import FinetuneResult, FinetuneSettings
    from evenhand.models.masked import MaskedModel
    from evenhand.vectors.store import Vectors

METHODS: Mapping[str, Mapping[str, Any]] = {
    "hard": {"method": "hard"},
    "soft, summed": {"method": "soft", "scale": "sum"},
    "soft, averaged": {"method": "soft", "scale": "mean"},
    "INLP": {"method": "inlp"},
}
"""The mitigations of a full audit, with the options each is called with."""


def debias_stages(
    v: Vectors, topics: Sequence[Topic], depends: Mapping[str, Any], options: Options
) -> list[Stage]:
    """A stage for each topic and method (quick: one of each), and how large cosines are."""
    tried = [(topic, name) for topic in topics for name in METHODS]
    if options.quick:
        tried = [(next((t for t in topics if t.name == "gender"), topics[0]), "hard")]
    stages = [
        Stage(
            kind="mitigation",
            title=f"{topic.name}: {name} debiasing",
            subject="vectors",
            measures=False,
            topic=topic,
            depends={**depends, "options": METHODS[name]},
            compute=partial(_debias, v, topic, name, options),
        )
        for topic, name in tried
    ]
    return [
        *stages,
        Stage(
            kind="dimension",
            title="dimension",
            subject="vectors",
            measures=False,
            depends=depends,
            compute=partial(_dimension, options),
        ),
    ]


def _debias(
    v: Vectors,
    topic: Topic,
    name: str,
    options: Options,
    progress: Progress,  # noqa: ARG001
) -> dict[str, Any]:
    from evenhand.vectors.mitigation import mitigate

    try:
        done = mitigate(v, topic, **METHODS[name], seed=options.seed, prob=options.prob)
    except VocabularyError as error:
        return skip(name, topic.name, error)
    return {
        "measurements": done.utility,
        "comparisons": (*done.measures, *done.hiding),
        "details": {"method": name, "debias": plain(done.debiased)},
    }


def _dimension(options: Options, progress: Progress) -> dict[str, Any]:  # noqa: ARG001
    from evenhand.vectors.nulls import dimension_spread

    return {"measurements": (dimension_spread(seed=options.seed, prob=options.prob),)}


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

OTHERS = "other measures"
PHASES = {
    "pronouns before": 2,
    "perplexity before": 15,
    "training": 60,
    "pronouns after": 1,
    "perplexity after": 12,
    OTHERS: 10,
}
"""What is done in turn, and the percentage of the time that it takes."""


def finetune_stages(
    source: str, data: Dataset, depends: Mapping[str, Any], options: Options
) -> list[Stage]:
    """One stage, which a quick audit leaves out."""
    if options.quick:
        return []
    return [
        Stage(
            kind="finetune",
            title="model: before and after fine-tuning",
            subject="masked",
            measures=False,
            depends={**depends, "data": data.digest},
            compute=lambda progress: tune(
                loaded(source, options.device), source, data, options, progress
            ),
        )
    ]


def settings_for(weights: int, options: Options) -> FinetuneSettings:
    """The settings: half of the texts swapped, and as many tokens as a few minutes allow.

    >>> from pathlib import Path
    >>> settings_for(8_000_000, Options(work=Path())).max_tokens
    160000
    """
    from evenhand.models.finetuning.training import FinetuneSettings

    tokens = max(LEAST_TOKENS, min(TOKENS, TOKENS * WEIGHTS // max(weights, 1)))
    return FinetuneSettings(
        rewrite="substitute",
        max_tokens=tokens,
        evaluations=6,
        patience=6,
        evaluation=0.03,
        prob=options.prob,
        seed=options.seed,
    )


def tune(
    model: MaskedModel, source: str, data: Dataset, options: Options, progress: Progress
) -> dict[str, Any]:
    """Fine-tune on the data with the genders of half of the texts swapped, and measure again.

    The pronouns are those of held-out texts and of the built-in sentences, as in the verdict, or of
    these alone where the texts have too few; the perplexity is that of held-out texts.
    """
    from evenhand.models.finetuning.training import finetune

    weights = sum(weight.numel() for weight in model.network.parameters())
    if weights > MOST_WEIGHTS:
        return _skipped(
            f"the model has {weights:,} weights; more than {MOST_WEIGHTS:,} take too long here: "
            "`evenhand finetune` does it on a GPU"
        )
    settings = settings_for(weights, options)
    report = _phases(progress)
    kinds = "held-out and built-in sentences"
    parts = (model.fingerprint, data.digest, repr(asdict(settings)), kinds)
    name = blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()
    folder = options.work / f"finetune-{name}"
    if weights > WEIGHTS and not folder.exists():  # a started run is finished
        seconds = seconds_for(settings.max_tokens, _speed(model))
        if seconds > LONGEST:
            return _skipped(
                f"at the speed of a measured training step the {weights:,} weights would take "
                f"about {seconds / 60:.0f} minutes, more than the {LONGEST // 60} of an audit: "
                "use `evenhand finetune`, or a GPU"
            )
    options.work.mkdir(parents=True, exist_ok=True)
    try:
        result = finetune(
            source,
            data.texts,
            settings,
            folder,
            device=options.device,
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


def _speed(model: MaskedModel) -> float:
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


_skipped = partial(skip, "finetune", "fine-tuning")


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
    model: MaskedModel,
    result: FinetuneResult,
    options: Options,
    report: Callable[[str, int, int], None],
) -> list[Comparison]:
    """What other instruments decide by, before and after, paired; it was no target of the training.

    The one that leads is measured by the fine-tuning itself.
    """
    from evenhand.cache import Cache
    from evenhand.models.masked import load

    cache = Cache(options.work / "answers")
    models = (model, load(result.folder / "model", device=options.device))
    deciding = [
        cls()
        for cls in instruments("masked").values()
        if cls.declaration.audits("masked")
        and cls.declaration.decides
        and cls.declaration.role != "leads"
    ]
    measured: list[Sequence[Measurement]] = []
    for number, (chosen, subject) in enumerate(product(deciding, models)):

        def progress(done: int, of: int, before: int = number) -> None:
            report(OTHERS, done + before * of, len(deciding) * len(models) * of)

        run = Run(seed=options.seed, prob=options.prob, cache=cache, progress=progress)
        found = chosen.measure(subject, None, run)
        measured.append([found] if isinstance(found, Measurement) else found)
    changes: list[Comparison] = []
    for chosen, before, after in zip(deciding, measured[::2], measured[1::2], strict=True):
        for first, second in zip(before, after, strict=True):
            if first.metric == chosen.declaration.name:
                changes += _deciding(chosen, first, compare(first, second))
    return compare_together(changes)


def _deciding(chosen: Instrument, before: Measurement, change: Comparison) -> list[Comparison]:
    """The comparisons of what decides: the whole, or parts of it."""
    tests = [evidence.measurement for evidence in chosen.evidence(before)]
    return [
        part
        for part in (change, *change.parts)
        if any(part.before.query == test.query and part.before.by == test.by for test in tests)
    ]
