"""The stage that fine-tunes a model on the rewritten data and measures it again."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from evenhand.audit.stages import Options, Progress
from evenhand.errors import InputError
from evenhand.lexicon.pronoun_sentences import pronoun_sentences

if TYPE_CHECKING:
    from evenhand.fewshot.data import Dataset
    from evenhand.masked.finetune import FinetuneResult, Settings
    from evenhand.masked.model import Model

__all__ = ["MOST_WEIGHTS", "settings_for", "tune"]

MOST_WEIGHTS = 150_000_000
"""A larger model is not fine-tuned: on a CPU that would take hours."""
TOKENS, LEAST_TOKENS = 160_000, 40_000
"""Tokens that `mini` learns from, and the fewest that a larger model does."""
WEIGHTS = 8_000_000
"""The weights of `mini`, by which the tokens are scaled."""

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
    from evenhand.masked.finetune import Settings

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
    from evenhand.masked.finetune import finetune

    weights = sum(weight.numel() for weight in model.network.parameters())
    if weights > MOST_WEIGHTS:
        return _skipped(
            f"the model has {weights:,} weights; more than {MOST_WEIGHTS:,} take too long here: "
            "`evenhand masked finetune` does it on a GPU"
        )
    settings = settings_for(weights, options)
    tell = _phases(progress)
    parts = (model.fingerprint, data.digest, repr(settings.as_dict()))
    name = blake2b("\n".join(parts).encode(), digest_size=8).hexdigest()
    options.work.mkdir(parents=True, exist_ok=True)
    try:
        result = finetune(
            source, data.texts, settings, options.work / f"finetune-{name}",
            sentences=pronoun_sentences().sentences,
            progress=lambda what, done, of, _: tell(what, done, of),
        )  # fmt: skip
    except InputError as error:
        return _skipped(str(error))
    return {
        "content": {
            **result.as_dict(), "weights": weights, "data_name": data.name,
            "others": _others(model, result, options, tell),
        }
    }  # fmt: skip


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
    from evenhand.lexicon.phrases import phrases
    from evenhand.masked.kept import Kept
    from evenhand.masked.metrics import association
    from evenhand.masked.metrics.phrases import measure
    from evenhand.masked.model import load

    kept = Kept(options.work / "answers")
    after = load(result.folder / "model")

    def associate(one: Model, begun: int) -> association.Association:
        return association.associate(
            one, prob=options.prob, kept=kept,
            progress=lambda done, of: tell("professions", done + begun * of, 2 * of),
        )  # fmt: skip

    both = [associate(one, begun) for begun, one in enumerate((model, after))]
    [change] = association.compare(both, options.prob)
    found: list[dict[str, Any]] = []
    if change.stereotype is not None and both[0].stereotype and both[1].stereotype:
        found.append(
            {
                "measure": "professions, men's less women's", "n": change.n, "ideal": 0.0,
                "before": both[0].stereotype.estimate.as_dict(),
                "after": both[1].stereotype.estimate.as_dict(),
                "change": change.stereotype.as_dict(),
            }
        )  # fmt: skip
    lists = phrases()
    told = measure(
        {"before": model, "after": after}, lists, prob=options.prob, seed=options.seed, kept=kept,
        progress=lambda done, of: tell("phrases", done, of),
    )  # fmt: skip
    found += [
        {
            "measure": f"phrases, {one.before.query}", "n": one.paired, "ideal": 0.0,
            "before": one.before.estimate.as_dict(), "after": one.after.estimate.as_dict(),
            "change": one.change.as_dict(),
        }
        for one in told.comparisons
        if one.before.details["centred"] and not lists.sets[one.before.query].neutral
    ]  # fmt: skip
    return found
