"""Few-shot results for reading: accuracy against the floor, bias, and what mitigations changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

from evenhand.cli.output import number, p_text, table

if TYPE_CHECKING:
    from evenhand.fewshot.bias import Bias, Change, Measure
    from evenhand.fewshot.runs import BiasSummary, RunSummary
    from evenhand.fewshot.statistics import Score

__all__ = ["print_bias", "print_changes", "print_run"]

MEASURES = {
    "association": "association: log p, pro- less anti-stereotypical",
    "epsilon": "ε: accuracy, pro- less anti-stereotypical",
    "skew": "skew: F1, men's less women's versions",
    "stereotype": "stereotype: F1, pro- less anti-stereotypical",
}


def print_run(found: RunSummary) -> None:
    """Accuracy first, the floor before the network; then tables by gender, bias and spread."""
    settings, accuracy = found.run.settings, found.scores["accuracy"]
    encoder = "fine-tuned" if settings.finetune else "frozen"
    title = (
        f"{settings.ways} ways, {settings.shots} shots, {settings.queries} queries, {encoder} "
        f"encoder: {accuracy.episodes} test episodes over {accuracy.classes} classes"
    )
    rows = [
        ("counting words (TF-IDF)", *_row(found.floor)),
        (found.name, *_row(found.scores)),
        ("difference", *_row(found.beyond_floor)),
    ]
    _data(found)
    table(title, ("", "accuracy", "new classes", "episodes alone", "p", "F1", "F1 interval"), rows)
    click.echo(
        f"chance: {found.chance:.3f}. new classes: {_percent(accuracy.prob)} intervals for "
        f"{accuracy.interval}.\nepisodes alone: the usual ones, of these classes only. "
        "F1: the mean over classes."
    )
    _by_class(found)
    if found.by_gender:
        _by_gender(found.by_gender)
    if found.bias is not None:
        print_bias([found.bias])
    else:
        click.echo(
            "gender bias not measured: no test query is of known gender in a class that leans male "
            "or female"
        )
    if settings.splits > 1 or settings.seeds > 1:
        _spread(found)


def print_bias(runs: Sequence[BiasSummary]) -> None:
    """A row a measure for each run, with what chance gives."""
    for each in runs:
        bias = each.bias
        table(
            f"Gender bias of {each.name}",
            ("measure", "value", "interval", "p", "chance gives", "p of chance", "classes"),
            [_measure(MEASURES[name], bias[name]) for name in MEASURES],
        )
        click.echo(_robustness(bias))
        left = ", ".join(f"{reason}: {count}" for reason, count in bias.left_out.items() if count)
        if left:
            click.echo(f"queries left out: {left}")
    click.echo(
        "value: with its sign; interval and p: for new classes. chance gives: sizes up to this in "
        f"{_percent(runs[0].bias.accuracy.prob)} of tosses\nof which version of each text is the "
        "pro-stereotypical one; p of chance: for these classes."
    )


def print_changes(before: str, changes: Sequence[tuple[str, Change]]) -> None:
    """What each run changed against the first."""
    for name, change in changes:
        cost = change.accuracy
        rows: list[tuple[str, ...]] = [
            (
                MEASURES[measure], number(one.before), number(one.after), number(one.change),
                f"[{number(one.low)}, {number(one.high)}]", p_text(one.p_value), one.direction,
            )
            for measure, one in change.measures.items()
        ]  # fmt: skip
        rows.append(
            ("accuracy", "", "", number(cost.value), f"[{number(cost.low)}, {number(cost.high)}]",
             p_text(cost.p_value), "")
        )  # fmt: skip
        table(
            f"{before} → {name}: paired on the same queries",
            ("measure", "before", "after", "change", "interval", "p", ""),
            rows,
        )


def _percent(prob: float) -> str:
    return f"{prob * 100:g}%"


def _data(found: RunSummary) -> None:
    """How many texts there are, and what of the data was left out."""
    data = found.run.about["data"]
    left = "; ".join(f"{reason}: {count:,}" for reason, count in data["left_out"].items())
    click.echo(
        f"data: {data['name']}, {data['texts']:,} texts in {len(data['classes'])} classes"
        + (f" (left out: {left})" if left else "")
    )


def _by_class(found: RunSummary) -> None:
    rows = [
        (
            each.name, found.leaning[each.name], str(each.texts), number(each.accuracy),
            f"[{number(each.accuracy_low)}, {number(each.accuracy_high)}]", number(each.f1),
            f"[{number(each.f1_low)}, {number(each.f1_high)}]", each.taken_for,
        )
        for each in found.by_class
    ]  # fmt: skip
    headers = ("", "leans", "n", "accuracy", "interval", "F1", "F1 interval", "taken for")
    table("By class: new texts of it, new opponents", headers, rows)


def _row(scores: Mapping[str, Score]) -> tuple[str, ...]:
    accuracy, f1 = scores["accuracy"], scores["f1"]
    return (
        number(accuracy.value), f"[{number(accuracy.low)}, {number(accuracy.high)}]",
        f"[{number(accuracy.naive_low)}, {number(accuracy.naive_high)}]",
        p_text(accuracy.p_value), number(f1.value), f"[{number(f1.low)}, {number(f1.high)}]",
    )  # fmt: skip


def _measure(words: str, one: Measure) -> tuple[str, ...]:
    return (
        words, number(one.signed), f"[{number(one.signed_low)}, {number(one.signed_high)}]",
        p_text(one.p_value), number(one.null_high), p_text(one.null_p), str(one.classes),
    )  # fmt: skip


def _robustness(bias: Bias) -> str:
    gap = bias["epsilon"]
    return (
        f"ε-robust at {bias.margin:g}: {bias.verdict} "
        f"(accuracy {number(gap.parts['accuracy_pro'])} pro-, "
        f"{number(gap.parts['accuracy_anti'])} anti-stereotypical; "
        f"ε {number(gap.value)} [{number(abs(gap.low))}, {number(abs(gap.high))}])"
    )


def _by_gender(found: Mapping[str, Score]) -> None:
    names = {"male": "men", "female": "women", "gap": "women less men"}
    rows = [
        (
            words, number(found[name].value),
            f"[{number(found[name].low)}, {number(found[name].high)}]",
            p_text(found[name].p_value), number(found[f"{name}_f1"].value),
            f"[{number(found[f'{name}_f1'].low)}, {number(found[f'{name}_f1'].high)}]",
        )
        for name, words in names.items()
    ]  # fmt: skip
    headers = ("", "accuracy", "interval", "p", "F1", "F1 interval")
    table("By gender, classes counting alike", headers, rows)


def _spread(found: RunSummary) -> None:
    rows = [
        (each.source, number(each.sd), f"[{number(each.low)}, {number(each.high)}]",
         str(each.units))
        for each in found.variance
    ]  # fmt: skip
    table("SD that each source gives the accuracy of one run", ("", "value", "interval", "n"), rows)
