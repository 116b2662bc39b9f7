"""The stage that fine-tunes a model on the rewritten data and measures it again."""

from __future__ import annotations

import time
from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from evenhand.audit.stages import Options, Progress
from evenhand.errors import InputError
from evenhand.lexicon.pronoun_sentences import pronoun_sentences

if TYPE_CHECKING:
    from evenhand.fewshot.data import Dataset
    from evenhand.masked.finetuning import FinetuneResult, Settings
    from evenhand.masked.model import Model
    from evenhand.results import Measurement

__all__ = ["LONGEST", "MOST_WEIGHTS", "seconds_for", "settings_for", "tune"]

MOST_WEIGHTS = 150_000_000
"""A larger model is not fine-tuned: on a CPU that would take hours."""
TOKENS, LEAST_TOKENS = 160_000, 40_000
"""Tokens that `mini` learns from, and the fewest that a larger model does."""
WEIGHTS = 8_000_000
"""The weights of `mini`, by which the tokens are scaled."""

LONGEST = 600
"""Seconds that the stage may take as far as a measured step tells; more is not begun."""
ROWS, LENGTH = 2, 256
"""The texts of the step that is measured, and their tokens."""

PHASES = {
    "pronouns before": 2, "perplexity before": 15, "training": 60, "pronouns after": 1,
    "perplexity after": 12, "professions": 7, "phrases": 3,
}  # fmt: skip
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
        rewrite="substitute", max_tokens=tokens, evaluations=6, patience=6, evaluation=0.03,
        prob=options.prob, seed=options.seed,
    )  # fmt: skip


def tune(
    model: Model, source: str, data: Dataset, options: Options, progress: Progress
) -> dict[str, Any]:
    """Fine-tune on the data with the genders of half of the texts swapped, and measure again.

    The pronouns are those of the built-in sentences, so that before and after speak of the same
    as the verdict does; the perplexity is that of texts held out.
    """
    from evenhand.masked.finetuning import finetune

    weights = sum(weight.numel() for weight in model.network.parameters())
    if weights > MOST_WEIGHTS:
        return _skipped(
            f"the model has {weights:,} weights; more than {MOST_WEIGHTS:,} take too long here: "
            "`evenhand masked finetune` does it on a GPU"
        )
    settings = settings_for(weights, options)
    tell = _phases(progress)
    parts = (model.fingerprint, data.digest, repr(settings.to_dict()))
    name = blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()
    folder = options.work / f"finetune-{name}"
    if weights > WEIGHTS and not folder.exists():  # what was begun is ended
        seconds = seconds_for(settings.max_tokens, _speed(model))
        if seconds > LONGEST:
            return _skipped(
                f"a step of learning was measured, and at its speed the {weights:,} weights would "
                f"take about {seconds / 60:.0f} minutes, more than the {LONGEST // 60} that an "
                "audit gives them: `evenhand masked finetune` takes its time, or a GPU"
            )
    options.work.mkdir(parents=True, exist_ok=True)
    try:
        result = finetune(
            source, data.texts, settings, folder,
            sentences=pronoun_sentences().sentences,
            progress=lambda what, done, of, _: tell(what, done, of),
        )  # fmt: skip
    except InputError as error:
        return _skipped(str(error))
    return {
        "content": {
            **result.to_dict(), "weights": weights, "data_name": data.name,
            "others": _others(model, result, options, tell),
        }
    }  # fmt: skip


def seconds_for(tokens: int, speed: float) -> float:
    """The time of the whole stage for so many tokens at a speed, in tokens a second.

    What else is done takes a share of the time of `mini` (`PHASES`), and as much longer for
    another model as its steps do.

    >>> round(seconds_for(160_000, 4_000)), round(seconds_for(40_000, 330))
    (67, 444)
    """
    learning = PHASES["training"] / sum(PHASES.values())
    return (tokens + TOKENS * (1 - learning) / learning) / speed


def _speed(model: Model) -> float:
    """Tokens a second of a step of learning, the second of two; the weights stay as they are."""
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
    """Tells of the phases as parts of one whole, and never goes back."""
    whole = sum(PHASES.values())
    begins = {name: sum(list(PHASES.values())[:i]) for i, name in enumerate(PHASES)}
    furthest = 0

    def tell(what: str, done: int, of: int) -> None:
        nonlocal furthest
        if what in PHASES:
            share = begins[what] + PHASES[what] * min(1.0, done / max(of, 1))
            furthest = max(furthest, round(10 * share))
            progress.step(furthest, 10 * whole)

    return tell


def _others(
    model: Model, result: FinetuneResult, options: Options, tell: Callable[[str, int, int], None]
) -> list[dict[str, Any]]:
    """Professions and phrases before and after, paired; these words were not trained towards."""
    from evenhand.cache import Cache
    from evenhand.lexicon.phrases import phrases as built_in
    from evenhand.masked.metrics.phrases import CORRELATION, Phrases, phrases
    from evenhand.masked.metrics.professions import Professions, professions
    from evenhand.masked.model import load

    cache = Cache(options.work / "answers")
    after = load(result.folder / "model")

    def associate(one: Model, begun: int) -> Measurement:
        return professions(
            one, prob=options.prob, cache=cache,
            progress=lambda done, of: tell("professions", done + begun * of, 2 * of),
        )  # fmt: skip

    both = [associate(one, begun) for begun, one in enumerate((model, after))]
    change = Professions.compare(*both)
    found: list[dict[str, Any]] = [
        {
            "measure": "professions, men's less women's", "n": change.paired, "ideal": 0.0,
            "before": contrast.before.estimate.to_dict(),
            "after": contrast.after.estimate.to_dict(),
            "change": contrast.change.to_dict(),
        }
        for contrast in change.parts
    ]  # fmt: skip
    lists = built_in()
    before, tuned = (
        [
            m
            for m in phrases(
                each, lists, prob=options.prob, seed=options.seed, cache=cache,
                progress=lambda done, of, begun=begun: tell("phrases", done + begun * of, 2 * of),
            )
            if m.metric != CORRELATION and not m.details["neutral"]
        ]
        for begun, each in enumerate((model, after))
    )  # fmt: skip
    for one, two in zip(before, tuned, strict=True):
        change = Phrases.compare(one, two)
        found.append(
            {
                "measure": f"phrases, {one.query}", "n": change.paired, "ideal": 0.0,
                "before": one.estimate.to_dict(), "after": two.estimate.to_dict(),
                "change": change.change.to_dict(),
            }
        )  # fmt: skip
    return found
