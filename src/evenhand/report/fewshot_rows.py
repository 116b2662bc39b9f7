"""Few-shot measurements as the rows that the charts, tables and verdicts of the report read."""

from __future__ import annotations

from typing import Any

from evenhand.fewshot.metrics.bias import MEASURES
from evenhand.fewshot.runs import FewShotRun, association_rows, by_class_rows, summarise
from evenhand.results import Comparison, Measurement

__all__ = ["bias_rows", "change_rows", "class_rows", "gender_rows", "run_rows", "score_row"]

COMPONENTS = (
    "accuracy_pro",
    "accuracy_anti",
    "f1_pro_male",
    "f1_pro_female",
    "f1_anti_male",
    "f1_anti_female",
    "easier",
    "original",
    "original_null_mean",
)


def run_rows(run: FewShotRun) -> dict[str, Any]:
    """Everything of a run."""
    results = run.results or summarise(run)
    scores = {"accuracy": results.accuracy, "f1": results.accuracy.part("f1", by="score")}
    baseline = {"accuracy": results.baseline, "f1": results.baseline.part("f1", by="score")}
    above = {"accuracy": results.above_baseline, "f1": results.above_baseline.part("f1")}
    return {
        "name": run.name,
        "chance": results.accuracy.details["chance"],
        "floor": {name: score_row(m) for name, m in baseline.items()},
        **{name: score_row(m) for name, m in scores.items()},
        "beyond_floor": {name: gap_row(c) for name, c in above.items()},
        "by_class": class_rows(results.accuracy),
        "by_gender": gender_rows(results.accuracy),
        "variance": [
            {"source": m.query, "sd": m.value, "low": m.low, "high": m.high, "units": m.n}
            for m in results.accuracy.select("component")
        ],
        "bias": None if results.bias is None else bias_rows(results.bias),
        "associations": [] if results.bias is None else gender_association_rows(results.bias),
        "curves": dict(run.curves),
    }


def score_row(measured: Measurement) -> dict[str, Any]:
    """Accuracy or F1 with both intervals."""
    return {
        "metric": measured.metric,
        "value": measured.value,
        "low": measured.low,
        "high": measured.high,
        "p_value": measured.p_value,
        "prob": measured.prob,
        "interval": measured.interval,
        **measured.details,
    }


def gap_row(comparison: Comparison) -> dict[str, Any]:
    """The difference of two accuracies, or of two F1."""
    return {
        "metric": comparison.metric,
        **comparison.change.to_dict(),
        "p_value": comparison.p_value,
        "interval": comparison.interval,
        **comparison.details,
    }


def class_rows(accuracy: Measurement) -> list[dict[str, Any]]:
    """Accuracy and F1 by class."""
    return [
        {"name": row["class"], "taken_for": row["confused_with"], **row}
        for row in by_class_rows(accuracy)
    ]


def gender_rows(accuracy: Measurement) -> dict[str, Any]:
    """Accuracy and F1 by gender, and their gaps."""
    f1 = accuracy.part("f1", by="score")
    return {part.query: score_row(part) for part in accuracy.select("gender")} | {
        f"{part.query}_f1": score_row(part) for part in f1.select("gender")
    }


def bias_rows(bias: Measurement) -> dict[str, Any]:
    """The bias measures by name, and whether the classifier is ε-robust."""
    rows: dict[str, Any] = {}
    for name in MEASURES:
        part = bias.part(name, by="measure")
        details = part.details
        sized = "size" in details
        rows[name] = {
            "metric": name,
            "value": details["size"] if sized else part.value,
            "low": details["size_low"] if sized else part.low,
            "high": details["size_high"] if sized else part.high,
            "signed": part.value,
            "signed_low": part.low,
            "signed_high": part.high,
            "p_value": part.p_value,
            "n": part.n,
            "prob": part.prob,
            **{key: details[key] for key in ("null_mean", "null_high", "null_p", "corrected")},
            "classes": details["classes"],
            "parts": {key: details[key] for key in COMPONENTS if key in details},
        }
    robust = {"margin": bias.details["margin"], "verdict": bias.details["verdict"]}
    return {**rows, "robust": robust, "left_out": bias.details["left_out"]}


def change_rows(accuracy: Comparison, bias: Comparison) -> dict[str, Any]:
    """What a mitigation changed: the accuracy, and each bias measure."""
    return {"accuracy": gap_row(accuracy)} | {
        part.query: {
            "metric": part.query,
            "before": part.before.value,
            "after": part.after.value,
            "change": part.change.value,
            "low": part.change.low,
            "high": part.change.high,
            "p_value": part.p_value,
            "direction": part.details["direction"],
            "prob": part.change.prob,
        }
        for part in bias.parts
    }


def gender_association_rows(bias: Measurement) -> list[dict[str, Any]]:
    """The associations by class and gender."""
    return [
        {
            "name": row["class"],
            **row,
            "low": row["association_low"],
            "high": row["association_high"],
            "prob": bias.prob,
        }
        for row in association_rows(bias)
    ]
