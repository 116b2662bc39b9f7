"""The charts of a fine-tuning: the loss, and the bias before and after."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenhand.charts import Chart, ChartSet, learning_curves
from evenhand.display import ResultList

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from evenhand.models.finetuning.training import FinetuneResult


def loss_curve(curve: Sequence[Mapping[str, Any]], chosen: int | None = None) -> Chart:
    """Training and evaluation loss over the steps; a line marks the weights that were saved."""
    return learning_curves(
        {"": curve},
        x="step",
        measures={"loss at hidden tokens (nats)": ("training", "evaluation")},
        chosen=None if chosen is None else {"": chosen},
    )


def finetune_charts(result: FinetuneResult) -> ChartSet:
    """The loss, that of the control, and the changes of the bias."""
    charts = ChartSet()
    charts.add("loss", lambda: loss_curve(result.curve, result.training["best"]["step"]))
    if result.control_curve:
        charts.add("loss_control", lambda: loss_curve(result.control_curve))
    if result.changes:
        charts.add("bias", ResultList(result.changes).plot)
    return charts
