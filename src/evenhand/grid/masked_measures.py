"""The measures of masked cells, each by the functions of its command, and their main figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from evenhand.cache import Cache
from evenhand.grid import masked_material as material
from evenhand.grid.masked_shards import scored
from evenhand.grid.task import Workspace
from evenhand.grid.vector_files import vectors_of

if TYPE_CHECKING:
    from evenhand.grid.task_masked import MaskedSettings
    from evenhand.masked.model import Model

__all__ = ["MEASURES", "figures"]

Measure = Callable[["Model", "MaskedSettings", Workspace], dict[str, Any]]
ENDS = ("value", "low", "high")


def _score(model: Model, settings: MaskedSettings, place: Workspace) -> dict[str, Any]:
    return scored(model, settings, place, _cache(place), _steps(place, "sentences"))


def _associate(model: Model, settings: MaskedSettings, place: Workspace) -> dict[str, Any]:
    from evenhand.masked.designs import design, read_becpro
    from evenhand.masked.metrics.professions import professions

    left_out: tuple[str, ...] = ()
    if settings.data:
        asked, left_out = read_becpro(settings.data)
    else:
        asked = design(*material.associated(settings))
    m = professions(
        model, asked, prob=settings.prob, cache=_cache(place), progress=_steps(place, "words")
    )
    return {**m.to_dict(items=False), "incomplete": left_out}


def _phrases(model: Model, settings: MaskedSettings, place: Workspace) -> dict[str, Any]:
    from evenhand.masked.metrics.phrases import WordMean, phrases

    results = phrases(
        model,
        material.lists(settings),
        embeds={PurePath(each).name: WordMean(vectors_of(each)) for each in settings.vectors},
        prob=settings.prob,
        seed=settings.seed,
        cache=_cache(place),
        progress=_steps(place, "phrases"),
    )
    return {"model": model.name, "measurements": [m.to_dict(items=False) for m in results]}


def _crows(model: Model, settings: MaskedSettings, place: Workspace) -> dict[str, Any]:
    from evenhand.masked.metrics.crows import crows
    from evenhand.masked.pairs import read_pairs

    return crows(
        model,
        read_pairs(settings.data),
        method=settings.method,
        prob=settings.prob,
        seed=settings.seed,
        cache=_cache(place),
        progress=_steps(place, "sentences"),
    ).to_dict(items=False)


MEASURES: Mapping[str, Measure] = {
    "score": _score,
    "associate": _associate,
    "phrases": _phrases,
    "crows": _crows,
}


def figures(result: Mapping[str, Any]) -> dict[str, Any]:
    """The main figures of a result: by name a number, or a value with its interval."""
    return _FIGURES[result["measure"]](result)


def _parts(result: Mapping[str, Any], by: str) -> list[Mapping[str, Any]]:
    return [part for part in result["parts"] if part["by"] == by]


def _score_figures(result: Mapping[str, Any]) -> dict[str, Any]:
    [top], [every] = _parts(result, "vocabulary"), _parts(result, "subset")
    shares = {part["query"]: part for part in _parts(result, "verdict")}
    return {
        "sentences": result["details"]["sentences"],
        "score": _short(every),
        "score of decided": _short(result),
        f"score of decided, {top['query']}": _short(top),
        **{
            f"share {verdict}": _short(shares[verdict])
            for verdict in ("male", "female", "neutral", "undecided")
        },
        "p": result["p_value"],
    }


def _associate_figures(result: Mapping[str, Any]) -> dict[str, Any]:
    parts = {"association": result}
    parts |= {f"association, {part['query']} professions": part for part in _parts(result, "group")}
    for part in _parts(result, "contrast"):
        parts["stereotype"] = part
    return {name: _short(part) for name, part in parts.items()}


def _phrases_figures(result: Mapping[str, Any]) -> dict[str, Any]:
    effects = [m for m in result["measurements"] if m["metric"] == "phrases"]
    raw = {f"{m['query']} by {m['subject']}": _short(m["parts"][0]) for m in effects}
    return raw | {f"{m['query']} by {m['subject']}, centred": _short(m) for m in effects}


def _crows_figures(result: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "pairs": result["n"],
        "stereotype": _short(result),
        "difference": _short(_parts(result, "component")[0]),
        **{
            f"stereotype, {part['query']}": _short(part)
            for part in (*_parts(result, "direction"), *_parts(result, "category"))
        },
        "p": result["p_value"],
    }


_FIGURES: Mapping[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
    "score": _score_figures,
    "associate": _associate_figures,
    "phrases": _phrases_figures,
    "crows": _crows_figures,
}


def _short(told: Mapping[str, Any]) -> dict[str, Any]:
    return {end: told[end] for end in ENDS}


def _cache(place: Workspace) -> Cache:
    """The model's answers so far: a cell that is taken up again computes the rest.

    They are this cell's alone, since the last bits of an answer hang on what it was batched with.
    """
    return Cache(place.work / "answers")


def _steps(place: Workspace, what: str) -> Callable[[int, int], None] | None:
    if (tell := place.progress) is None:
        return None
    return lambda done, total: tell(what, done, total, "")
