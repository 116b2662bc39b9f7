"""The stages for a masked language model: pronouns, professions, phrases, fine-tuning."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from evenhand.audit.masked_finetune import tune
from evenhand.audit.stages import Options, Progress, Stage
from evenhand.audit.text import structural
from evenhand.lexicon.pronoun_sentences import pronoun_sentences
from evenhand.results import Measurement

if TYPE_CHECKING:
    from evenhand.cache import Cache
    from evenhand.fewshot.data import Dataset
    from evenhand.masked.metrics.pronouns import PronounScores, Sentence
    from evenhand.masked.model import Model

__all__ = ["loaded", "masked_stages"]

FEWEST = 20
"""Sentences of the data that are worth a score of their own."""
MOST = 2000
SHOWN = 500
"""Sentences of the data that are scored, and that are kept with their scores, at most."""
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
    from evenhand.masked.metrics.pronouns import score

    model, built_in = loaded(source), pronoun_sentences()
    found = _sentences(data, options)
    enough = len(found) >= FEWEST
    sets: dict[str, Sequence[str | Sentence]] = {BUILT_IN: built_in.sentences}
    if enough:
        sets[FROM_DATA] = found
    of, scored = sum(map(len, sets.values())), 0
    scores: dict[str, PronounScores] = {}
    for name, sentences in sets.items():
        scores[name] = score(
            model, sentences, prob=options.prob, seed=options.seed, cache=_answers(options),
            progress=_onwards(progress.step, scored, of),
        )  # fmt: skip
        scored += len(sentences)
    groups = built_in.group_of
    return {
        "measurements": tuple(_measured(name, told, groups) for name, told in scores.items()),
        "content": {
            "model": model.name,
            "provenance": built_in.provenance,
            "built_in": _content(scores[BUILT_IN], groups),
            "groups": _groups(scores[BUILT_IN], groups),
            "data": _content(scores[FROM_DATA], {}) if enough else None,
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


def _measured(name: str, told: PronounScores, groups: Mapping[str, str]) -> Measurement:
    """The mean full-vocabulary score of the decided sentences, with the sentences as items."""
    full = told.full
    return Measurement(
        metric="pronoun_score", query=name, value=full.mean_bias.value, low=full.mean_bias.low,
        high=full.mean_bias.high, prob=told.rule.prob, n=full.decided, ideal=0.5, worse="away",
        interval="studentised bootstrap over sentences", p_value=full.p_value,
        test="sign test: as many decided sentences above .5 as below",
        seed=told.rule.seed,
        items=tuple(
            {"word": row.pop("masked"), "score": row.pop("full_bias"), **row}
            for row in _items(told, groups)
        ),
        details={"above": full.above, "below": full.below},
    )  # fmt: skip


def _items(told: PronounScores, groups: Mapping[str, str]) -> list[dict[str, Any]]:
    from evenhand.masked.metrics.pronouns_scores import columns_of

    columns = columns_of(told.model, told.sentences or (), told.probabilities, told.rule)
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    for row in rows:
        row["group"] = groups.get(row["masked"], "")
        del row["model"]
    return rows


def _content(told: PronounScores, groups: Mapping[str, str]) -> dict[str, Any]:
    """The scores as they are told, with those sentences that lie furthest from .5 first."""
    rows = sorted(_items(told, groups), key=lambda row: -abs(row["full_bias"] - 0.5))
    return {**told.as_dict(), "items": rows[:SHOWN]}


def _groups(told: PronounScores, groups: Mapping[str, str]) -> list[dict[str, Any]]:
    """The mean score of each group of the built-in sentences."""
    import numpy as np

    from evenhand.masked.metrics.pronouns_interval import bootstrap_mean
    from evenhand.masked.metrics.pronouns_summary import verdicts

    p = told.probabilities
    decided = verdicts(p.p_male, p.p_female, told.rule) > 0
    labels = np.array([groups[sentence.text] for sentence in told.sentences or ()])
    return [
        {
            "group": name, "title": group.title, "n": int((labels == name).sum()),
            "decided": int(((labels == name) & decided).sum()),
            **bootstrap_mean(
                told.full_bias[(labels == name) & decided],
                prob=told.rule.prob, seed=told.rule.seed,
            ).as_dict(),
        }
        for name, group in pronoun_sentences().groups.items()
    ]  # fmt: skip


def _professions(source: str, options: Options, progress: Progress) -> dict[str, Any]:
    from evenhand.masked.metrics.association import associate

    told = associate(
        loaded(source), prob=options.prob, cache=_answers(options), progress=progress.step
    )
    found = [told.overall, *told.groups.values()]
    found += [told.stereotype] if told.stereotype else []
    return {
        "measurements": tuple(replace(m, metric="profession_association") for m in found),
        "content": told.as_dict(),
    }


def _phrases(source: str, options: Options, progress: Progress) -> dict[str, Any]:
    from evenhand.lexicon.phrases import phrases
    from evenhand.masked.metrics.phrases import measure

    model, lists = loaded(source), phrases()
    report = measure(
        {model.name: model}, lists, prob=options.prob, seed=options.seed,
        cache=_answers(options), progress=progress.step,
    )  # fmt: skip
    return {
        "measurements": report.measurements,
        "content": {
            "model": model.name,
            "sets": {
                name: {
                    "title": one.title, "neutral": one.neutral, "sides": list(one.targets),
                }
                for name, one in lists.sets.items()
            },
            "correlations": [
                {**found.as_dict(items=True), "kinds": found.kinds}
                for found in report.correlations
                if found.centred
            ],
            "provenance": lists.provenance,
            "left_out": {name: list(words) for name, words in report.left_out.items()},
            "notes": list(report.notes),
        },
    }  # fmt: skip
