"""The sets of charts of few-shot runs, from the documents of `fewshot run` and `fewshot bias`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.errors import InputError
from evenhand.report.charts_fewshot_accuracy import accuracies, by_class
from evenhand.report.charts_fewshot_bias import associations, bias_measures
from evenhand.report.charts_fewshot_changes import bias_changes
from evenhand.report.charts_fewshot_training import learning_curves
from evenhand.report.charts_saving import ChartSet

__all__ = [
    "accuracies", "associations", "bias_changes", "bias_charts", "bias_measures", "by_class",
    "learning_curves", "run_charts",
]  # fmt: skip


def run_charts(result: Mapping[str, Any]) -> ChartSet:
    """The charts of `fewshot run` from its document, in the order of reading."""
    made = ChartSet()
    name = str(result.get("name") or "run")
    prob = (result.get("accuracy") or {}).get("prob")
    chance = result.get("chance")
    floor = (result.get("floor") or {}).get("accuracy")
    made.add(
        "accuracy",
        lambda: accuracies(
            [{"name": name, **_part(result, "accuracy")}], chance=chance, floor=floor
        ),
    )
    made.add("classes", lambda: by_class(_part(result, "by_class"), chance=chance, prob=prob))
    made.add("curves", lambda: learning_curves(_part(result, "curves")))
    made.add("bias", lambda: bias_measures({name: _part(result, "bias")}))
    made.add("associations", lambda: associations(_part(result, "associations")))
    return made


def bias_charts(result: Mapping[str, Any]) -> ChartSet:
    """The charts of `fewshot bias` from its document; a run without a part gets an empty row."""
    made = ChartSet()
    runs: Mapping[str, Mapping[str, Any]] = result.get("runs") or {}

    def every(key: str) -> dict[str, Mapping[str, Any]]:
        found = {name: run.get(key) or {} for name, run in runs.items()}
        if not any(found.values()):
            raise InputError(f"{key}: the result has none")
        return found

    made.add(
        "accuracy",
        lambda: accuracies([{"name": name, **score} for name, score in every("accuracy").items()]),
    )
    made.add("bias", lambda: bias_measures(every("bias")))
    made.add("changes", lambda: bias_changes(_part(result, "changes")))
    return made


def _part(result: Mapping[str, Any], key: str) -> Any:
    found = result.get(key)
    if not found:
        raise InputError(f"{key}: the result has none")
    return found
