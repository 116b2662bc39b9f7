"""Findings as the metadata of a card on the Hugging Face hub, in the format the hub checks.

A result of the `model-index` is a task, a data set and its metrics; a metric has a type, a name and
a value. The format has no place for an interval, so it stands in the metric's name, where readers
see it, and with the p-value and the ideal in its `args`, where programs do.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeGuard

from evenhand.report.findings import Findings
from evenhand.report.kinds import bare
from evenhand.report.tables import slug
from evenhand.report.verdicts import Number, Subject, Verdict
from evenhand.report.wording import number, percent

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

__all__ = ["dataset_metadata", "model_metadata"]

TASKS: dict[Subject, tuple[str, str]] = {
    "vectors": ("feature-extraction", "Word vectors"),
    "model": ("fill-mask", "Masked language model"),
    "classifier": ("text-classification", "Few-shot classification"),
}
"""The hub's name of what is done with each subject, and ours."""

SIZES = ("n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M", "10M<n<100M")


def model_metadata(
    name: str, findings: Findings, judged: Sequence[tuple[Verdict, Sequence[Number]]]
) -> str:
    """The `model-index` of the numbers behind some verdicts as YAML; empty without any number."""
    from huggingface_hub import ModelCardData

    results = [
        _result(findings, verdict, one)
        for verdict, numbers in judged
        for one in numbers
        if _known(one.value)
    ]
    if not results:
        return ""
    return _front(ModelCardData(model_name=name, eval_results=results).to_yaml())


def dataset_metadata(name: str, texts: int) -> str:
    """The part of a data set's metadata that an audit knows."""
    from huggingface_hub import DatasetCardData

    size = SIZES[min(max(len(str(texts)) - 3, 0), len(SIZES) - 1)]
    return _front(DatasetCardData(pretty_name=name, size_categories=[size]).to_yaml())


def _front(yaml: str) -> str:
    return f"---\n{yaml}\n---"


def _result(findings: Findings, verdict: Verdict, one: Number) -> EvalResult:
    from huggingface_hub import EvalResult

    task, task_name = TASKS[verdict.subject]
    dataset, dataset_name = _dataset(findings, verdict)
    prob = findings.settings["prob"]
    args = {"low": one.low, "high": one.high, "prob": prob, "p_value": one.p_value,
            "ideal": one.ideal}  # fmt: skip
    return EvalResult(
        task_type=task, task_name=task_name, dataset_type=dataset, dataset_name=dataset_name,
        metric_type=slug(bare(one.label)).replace("-", "_"), metric_value=_short(one.value),
        metric_name=f"{one.label} ({percent(prob)} interval {number(one.low)} to "
        f"{number(one.high)})",
        metric_args={
            key: _short(value)
            for key, value in args.items()
            if _known(value)
        },
    )  # fmt: skip


def _dataset(findings: Findings, verdict: Verdict) -> tuple[str, str]:
    """What the numbers were measured on: an id of the hub's where there is one, and a name."""
    data: Any = findings.subjects.get("data")
    if verdict.subject == "classifier" and data is not None:
        source = str(data["source"])
        known = source.removeprefix("hf:") if source.startswith("hf:") else slug(data["name"])
        return known, str(data["name"])
    kinds = {"vectors": "word lists", "model": "sentences", "classifier": "texts"}
    kind = kinds[verdict.subject]
    return slug(f"evenhand {verdict.topic} {kind}"), f"Evenhand's {kind}: {verdict.topic}"


def _known(value: float | None) -> TypeGuard[float]:
    return value is not None and math.isfinite(value)


def _short(value: float) -> float:
    """Six digits: more than the intervals allow, and none that the machine's noise made."""
    return float(f"{value:.6g}")
