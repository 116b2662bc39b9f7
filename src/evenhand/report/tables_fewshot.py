"""What the few-shot stages found, as rows for CSV files and for the tables of the page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

__all__ = ["BIAS", "fewshot_tables", "run_name"]

BIAS = {
    "association": "Association",
    "epsilon": "Accuracy gap (ε)",
    "skew": "Skew",
    "stereotype": "Stereotype",
}
"""The bias measures as the page calls them."""

Rows = list[dict[str, Any]]


def fewshot_tables(contents: Sequence[Mapping[str, Any]]) -> dict[str, Rows]:
    """Rows by the name of their table: accuracy, bias, changes, classes, genders, associations."""
    return {
        "fewshot-accuracy": list(_accuracy(contents)),
        "fewshot-bias": list(_bias(contents)),
        "fewshot-changes": list(_changes(contents)),
        "fewshot-genders": list(_genders(contents)),
        "fewshot-classes": list(_listed(contents, "by_class")),
        "fewshot-associations": list(_listed(contents, "associations")),
    }


def run_name(network: str, mitigation: str) -> str:
    """What a run is called: the network, and the mitigation where there is one.

    >>> run_name("induction", "none"), run_name("induction", "augment")
    ('induction', 'induction augment')
    """
    return network if mitigation == "none" else f"{network} {mitigation}"


def _runs(contents: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    for content in contents:
        for mitigation, run in content["runs"].items():
            yield content["network"], mitigation, run


def _accuracy(contents: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each run, with what counting words reaches with the same support texts."""
    for network, mitigation, run in _runs(contents):
        beyond = run["beyond_floor"]["accuracy"]
        yield {
            "network": network, "mitigation": mitigation,
            **_some(run["accuracy"], "value", "low", "high", "naive_low", "naive_high"),
            "chance": run["chance"], "floor": run["floor"]["accuracy"]["value"],
            **{f"beyond_floor_{key}": value
               for key, value in _some(beyond, "value", "low", "high", "p_value").items()},
            **{f"f1_{key}": value for key, value in _some(run["f1"], "value", "low",
                                                          "high").items()},
            "classes": run["accuracy"]["classes"], "episodes": run["accuracy"]["episodes"],
            "prob": run["accuracy"]["prob"],
        }  # fmt: skip


def _bias(contents: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Each measure of each run with its sign: above 0 is towards the stereotype."""
    for network, mitigation, run in _runs(contents):
        for metric in BIAS:
            one = run["bias"][metric]
            yield {
                "network": network, "mitigation": mitigation, "measure": metric,
                "value": one["signed"], "low": one["signed_low"], "high": one["signed_high"],
                **_some(one, "p_value", "null_high", "null_p", "n", "classes", "prob"),
            }  # fmt: skip


def _changes(contents: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """What each mitigation changed in each measure, and in the accuracy."""
    for content in contents:
        runs = content["runs"]
        for mitigation, change in content["changes"].items():
            named = {"network": content["network"], "mitigation": mitigation}
            for metric in BIAS:
                kept = ("before", "after", "change", "low", "high", "p_value", "direction", "prob")
                yield {**named, "measure": metric, **_some(change[metric], *kept)}
            cost = change["accuracy"]
            yield {
                **named, "measure": "accuracy", "before": runs["none"]["accuracy"]["value"],
                "after": runs[mitigation]["accuracy"]["value"], "change": cost["value"],
                **_some(cost, "low", "high", "p_value"), "direction": "",
                "prob": cost["prob"],
            }  # fmt: skip


def _genders(contents: Sequence[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Accuracy on men's and on women's texts as they are, and the gap within classes."""
    for network, mitigation, run in _runs(contents):
        for side in ("male", "female", "gap"):
            if side in run["by_gender"]:
                yield {
                    "network": network, "mitigation": mitigation, "texts": side,
                    **_some(run["by_gender"][side], "value", "low", "high", "p_value", "classes",
                            "prob"),
                }  # fmt: skip


def _listed(contents: Sequence[Mapping[str, Any]], part: str) -> Iterator[dict[str, Any]]:
    for network, mitigation, run in _runs(contents):
        for row in run[part]:
            yield {"network": network, "mitigation": mitigation, **row}


def _some(row: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: row.get(name) for name in names}
