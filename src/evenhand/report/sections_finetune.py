"""The part on fine-tuning: the model before and after, and what it cost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from evenhand.errors import InputError
from evenhand.masked.finetuning import FinetuneResult
from evenhand.report.blocks import Block, Cell, Figure, Section, Table, Text, cell, span
from evenhand.report.charts import Chart
from evenhand.report.charts_masked_training import bias_changes, loss_curve, measure_label
from evenhand.report.findings import Findings
from evenhand.report.wording import interval, number
from evenhand.results import Comparison

__all__ = ["finetune_part"]


def finetune_part(findings: Findings) -> Section:
    """Measured, fine-tuned on text with swapped genders, and measured again."""
    title = "Does fine-tuning on swapped text help?"
    content = findings.content("finetune")
    if content is None:
        return Section("masked-finetune", title, [
            Text(f"Not done: {skip['reason']}.", "warning")
            for stage in findings.of("finetune")
            for skip in stage.skipped
        ])  # fmt: skip
    result = FinetuneResult.from_dict(content, Path())
    training, data = result.training, result.data
    blocks: list[Block] = [
        Text(
            f"The model went on learning from {training['documents']:,} texts of "
            f"“{content['data_name']}” ({training['tokens']:,} tokens). In half of the texts, "
            "drawn by chance, the gendered words were swapped, so that the text tells as much of "
            f"women as of men. Before and after, the same {data['sentences']} built-in sentences "
            "were scored; none of them was learned from."
        ),
        Text(_told(result)),
    ]
    blocks += _figure(
        "masked-finetune-bias",
        partial(bias_changes, result.changes),
        "How to read it: orange is before, blue after, the grey tick is what no bias would read. "
        "The change with its interval stands at the right; if the interval holds 0, nothing clear "
        "has changed.",
        "Pronoun bias before and after fine-tuning: "
        + "; ".join(_spoken(change) for change in result.changes),
    )
    blocks += _figure(
        "masked-finetune-loss",
        partial(loss_curve, result.curve, kept=training["best"]["step"]),
        "How to read it: the loss says how badly hidden words are guessed. It falls while the "
        "model gets used to the text; the dashed line marks the weights that were kept.",
        f"Loss on evaluation text from {number(training['evaluation_loss']['before'], 2)} to "
        f"{number(training['evaluation_loss']['after'], 2)}.",
    )
    blocks += [
        _table(result, content["others"]),
        Text(
            "The intervals speak of sentences, professions or phrases of the same kind; they hold "
            "the trained weights fixed. Another seed of the training would give somewhat other "
            "weights. A pronoun score nearer 0.5 does not show that what is built on the model "
            "treats people alike."
        ),
    ]
    blocks += [Text(f"Note: {note}.") for note in result.notes]
    return Section("masked-finetune", title, blocks)


def _figure(name: str, make: Callable[[], Chart], caption: str, words: str) -> list[Block]:
    try:
        return [Figure.of(name, make(), caption, words)]
    except InputError as error:
        return [Text(f"No figure: {error}.", "warning")]


def _told(result: FinetuneResult) -> str:
    """The change of the mean score and of the usefulness, in two sentences."""
    mean, spread = result.change("mean bias"), result.change("mean |bias - .5|")
    cost = result.change("pseudo-perplexity")
    says = {
        True: "nearer to even than before", False: "further from even than before",
        None: "neither clearly nearer to even nor clearly further from it",
    }  # fmt: skip
    return (
        f"The mean score went from {number(mean.before.value, 2)} to "
        f"{number(mean.after.value, 2)}: {says[mean.details['nearer']]}. The single "
        f"sentences' distance from 0.5 changed by {number(spread.change.value, 3)} "
        f"{interval(spread.change.low, spread.change.high)}. The perplexity on held-out text (how "
        "hard the model finds it; lower is better) is "
        f"{number(cost.change.value, 2)} {interval(cost.change.low, cost.change.high, 2)} times "
        "what it was."
    )


def _spoken(change: Comparison) -> str:
    return (
        f"{measure_label(change.query)} {number(change.before.value)} to "
        f"{number(change.after.value)}, "
        f"change {number(change.change.value)} {interval(change.change.low, change.change.high)}"
    )


def _table(result: FinetuneResult, others: Sequence[Mapping[str, Any]]) -> Table:
    rows: list[tuple[Any, ...]] = [
        (
            measure_label(change.query), cell(change.before.value), cell(change.after.value),
            cell(change.change.value), span(change.change.low, change.change.high),
            "–" if change.before.ideal is None else f"{change.before.ideal:g}",
            change.details["verdict"], _count(change.paired),
        )
        for change in result.changes
    ]  # fmt: skip
    rows += [
        (
            row["measure"], cell(row["before"]["value"]), cell(row["after"]["value"]),
            cell(row["change"]["value"]), span(row["change"]["low"], row["change"]["high"]),
            f"{row['ideal']:g}", _verdict(row), _count(row["n"]),
        )
        for row in others
    ]  # fmt: skip
    return Table.of(
        "Every measure before and after (score: 1 male, 0 female; the change of the perplexity is "
        "a ratio)",
        ("Measure", "Before", "After", "Change", "Interval of the change", "Ideal", "In words",
         "Items"),
        rows,
    )  # fmt: skip


def _count(n: int) -> Cell:
    return Cell(f"{n:,}", float(n))


def _verdict(row: Mapping[str, Any]) -> str:
    low, high = row["change"]["low"], row["change"]["high"]
    if low is None or high is None or low <= 0 <= high:
        return "no clear change"
    return "lower" if high < 0 else "higher"
