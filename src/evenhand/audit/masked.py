"""The stages for a masked language model: pronouns, professions, phrases, fine-tuning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from evenhand.audit.masked_finetune import tune
from evenhand.audit.stages import Options, Progress, Stage
from evenhand.audit.text import structural
from evenhand.lexicon.pronoun_sentences import pronoun_sentences

if TYPE_CHECKING:
    from evenhand.cache import Cache
    from evenhand.fewshot.data import Dataset
    from evenhand.masked.metrics.pronouns import Sentence
    from evenhand.masked.model import Model

__all__ = ["loaded", "masked_stages"]

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
            kind="pronouns", title="model: pronouns", depends=with_data | {"quick": options.quick},
            compute=partial(_pronouns, model, data, options),
        ),
        Stage(
            kind="profession", title="model: professions", depends=depends,
            compute=partial(_professions, model, options),
        ),
        Stage(
            kind="phrases", title="model: phrases", depends=depends,
            compute=partial(_phrases, model, options),
        ),
    ]  # fmt: skip
    if not options.quick:
        stages.append(
            Stage(
                kind="finetune", title="model: before and after fine-tuning", depends=with_data,
                compute=lambda progress: tune(loaded(model), model, data, options, progress),
            )
        )  # fmt: skip
    return stages


@lru_cache(maxsize=1)
def loaded(source: str) -> Model:
    """The model, loaded once for all stages."""
    from evenhand.masked.model import load

    return load(source)


def _answers(options: Options) -> Cache:
    """The model's answers so far, for a run that goes on after a break."""
    from evenhand.cache import Cache

    options.work.mkdir(parents=True, exist_ok=True)
    return Cache(options.work / "answers")


def _pronouns(source: str, data: Dataset, options: Options, progress: Progress) -> dict[str, Any]:
    from evenhand.masked.metrics.pronouns import pronouns

    model, built_in = loaded(source), pronoun_sentences()
    found = _sentences(data, options)
    enough = len(found) >= FEWEST
    sets: dict[str, Sequence[Sentence] | None] = {BUILT_IN: None}
    if enough:
        sets[FROM_DATA] = found
    of, scored = len(built_in.sentences) + enough * len(found), 0
    measured = []
    for name, sentences in sets.items():
        m = pronouns(
            model, sentences, prob=options.prob, seed=options.seed, cache=_answers(options),
            progress=_onwards(progress.step, scored, of),
        )  # fmt: skip
        measured.append(replace(m, query=name))
        scored += len(built_in.sentences)
    return {
        "measurements": tuple(measured),
        "content": {
            "provenance": built_in.provenance,
            "titles": {name: group.title for name, group in built_in.groups.items()},
            "data_name": data.name,
            "data_found": len(found),
            "fewest": FEWEST,
        },
    }


def _sentences(data: Dataset, options: Options) -> list[Sentence]:
    """The first sentence that the filter kept of each text: those of one text are no sample."""
    from evenhand.masked.metrics.pronouns import Sentence
    from evenhand.masked.words import MASKS

    first: dict[int, Sentence] = {}
    for one in structural(data, options).kept:
        if sum(map(one["masked"].count, MASKS)) == 1:
            first.setdefault(one["row"], Sentence(one["masked"], one["pronoun"], one["row"] + 1))
    distinct = {one.text: one for one in reversed(first.values())}
    return list(reversed(distinct.values()))[:MOST]


def _onwards(step: Callable[[int, int], None], begun: int, of: int) -> Callable[[int, int], None]:
    return lambda done, _: step(begun + done, of)


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
        loaded(source), lists, prob=options.prob, seed=options.seed, cache=_answers(options),
        progress=progress.step,
    )  # fmt: skip
    return {
        "measurements": tuple(results),
        "content": {
            "titles": {name: listed.title for name, listed in lists.sets.items()},
            "provenance": lists.provenance,
        },
    }
