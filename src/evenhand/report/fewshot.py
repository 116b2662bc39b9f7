"""The page of few-shot runs: results, what each run changed, training and set-up."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenhand.charts import Chart, ChartSet, finite, learning_curves
from evenhand.fewshot.runs import FewShotRun, RunResults, compare_runs, name_runs, summarise
from evenhand.instruments import charts_of
from evenhand.report.blocks import Block, PageTable, Prose, Section, Text, figure, write_results
from evenhand.report.methods import label_of
from evenhand.report.stages import change_blocks, result_blocks
from evenhand.report.verdicts import best_mitigation
from evenhand.summary import summarize

prose = Prose("fewshot")


def run_charts(run: FewShotRun) -> ChartSet:
    """The charts of `fewshot run`: results and learning curves."""
    charts = charts_of(_measured(_results(run)))
    if run.curves:
        charts.add("curves", lambda: curve_chart(run.curves))
    return charts


def curve_chart(every: Mapping[str, Sequence[Mapping[str, Any]]]) -> Chart:
    """Accuracy and loss of each training; the line marks the point whose weights were saved.

    That is the first with the largest validation accuracy.
    """
    chosen = {}
    for name, points in every.items():
        known = [point for point in points if finite(point["validation_accuracy"]) is not None]
        if known:
            best = max(known, key=lambda point: point["validation_accuracy"])
            chosen[name] = best["episodes"]
    measures = {
        measure: (f"training_{measure}", f"validation_{measure}")
        for measure in ("accuracy", "loss")
    }
    return learning_curves(every, x="episodes", measures=measures, chosen=chosen)


def write_run(run: FewShotRun | Sequence[FewShotRun], path: str | os.PathLike[str]) -> Path:
    """Write the page of a few-shot run, one HTML file that loads nothing from elsewhere.

    Parameters
    ----------
    run : FewShotRun, or several
        The `results` are shown; a run without them is measured. Of several, the page has what each
        changed against the first, paired on the same queries.
    path : path
        The file to write.

    Returns
    -------
    Path
        The file.

    """
    runs = [
        replace(each, results=_results(each))
        for each in ([run] if isinstance(run, FewShotRun) else run)
    ]
    first, *others = runs
    trained = [each for each in runs if each.curves]
    names = name_runs(runs)
    every = {name: _results(each) for name, each in zip(names, runs, strict=True)}
    results = every[names[0]]
    measured = {name: own.bias for name, own in every.items() if own.bias is not None}
    changes = {}
    if results.bias is not None:
        compared = compare_runs([(every[name].accuracy, bias) for name, bias in measured.items()])
        changes = dict(zip([*measured][1:], compared, strict=True))
    shown = [(name if others else "", own) for name, own in every.items()]
    rows = [
        (name, f"{label} of counting words" if m is own.baseline else label, m)
        for name, own in shown
        for m in _measured(own)
        for label in [label_of(m.metric)]
    ]
    start: list[Block] = [prose.text("versions")]
    if results.bias is None:
        start.append(Text(prose.no_bias(), "warning"))
    else:
        left = {reason: n for reason, n in results.bias.details["left_out"].items() if n}
        start.append(prose.text("robust", bias=results.bias, left=left))
    difference = [
        (name, "accuracy, counting words and network", own.above_baseline) for name, own in shown
    ]
    changed = [
        (name, label, c)
        for name, both in changes.items()
        for label, c in zip(("accuracy", "gender bias"), both, strict=True)
    ]
    sections = [
        Section("fewshot", "Accuracy and gender bias", [*start, *result_blocks("fewshot", rows)]),
        Section("baseline", "Beside counting words", [*change_blocks("baseline", difference)]),
    ]
    if changed:
        best = best_mitigation({first.name: changes})
        texts = [Text(text) for text in (prose.against(name=first.name), best) if text]
        sections.append(
            Section("changes", "What mitigations change", [*texts, *change_blocks("c", changed)])
        )
    simulated = any(str(each.record["data"]["name"]).startswith("simulated") for each in runs)
    return write_results(
        path,
        f"Few-shot classifiers, {len(runs)} runs"
        if others
        else f"Few-shot classifier {first.name}",
        [
            summarize([], [bias for _, bias in changes.values()]) if changes else results.sentence,
            summarize(results.above_baseline),
        ],
        [
            *([_by_run("training", "Training", trained, _training)] if trained else []),
            _by_run("setup", "Set-up", runs, _setup),
        ],
        "Intervals are for new classes of the same kind, and say nothing about other data.",
        start=sections,
        notices=[prose.simulated()] if simulated else [],
    )


def _results(run: FewShotRun) -> RunResults:
    return run.results or summarise(run)


def _measured(results: RunResults) -> list[Any]:
    return [m for m in (results.accuracy, results.baseline, results.bias) if m is not None]


def _by_run(
    name: str,
    title: str,
    runs: Sequence[FewShotRun],
    blocks: Callable[[FewShotRun, str], list[Block]],
) -> Section:
    """A section with the blocks of a run, or with a part for each run."""
    if len(runs) == 1:
        return Section(name, title, blocks(runs[0], ""))
    parts = [
        Section(f"{name}-{i}", f"Run {i}: {run.name}", blocks(run, f"-{i}"))
        for i, run in enumerate(runs, 1)
    ]
    return Section(name, title, parts=parts)


def _training(run: FewShotRun, ending: str) -> list[Block]:
    return [figure(f"fewshot-curves{ending}", lambda: curve_chart(run.curves))]


def _setup(run: FewShotRun, ending: str) -> list[Block]:  # noqa: ARG001
    """What was run, on what and how."""
    data, chosen = run.record["data"], run.settings
    model = run.record["model" if chosen.in_context else "encoder"]
    accuracy, command = _results(run).accuracy, run.record.get("arguments", ())
    left_out = "; ".join(f"{reason}: {n:,}" for reason, n in data["left_out"].items())
    settings = chosen.to_dict()
    facts = {
        "Data": f"{data['name']}: {data['texts']:,} texts in {len(data['classes'])} classes",
        "Left out": left_out or "–",
        "Model" if chosen.in_context else "Encoder": model["source"],
        **(
            {"Texts cut": f"{model['texts_cut']:,}, to {chosen.limit} words"}
            if chosen.in_context
            else {}
        ),
        "Test": f"{accuracy.details['episodes']:,} episodes over {accuracy.n} classes",
        "Command": " ".join(("evenhand", *command)) if command else "called from Python",
    }
    details = {
        **{name: value for name, value in settings.items() if name != "training"},
        **settings["training"],
        "digest of the data": data["digest"],
        "digest of the model": model["fingerprint"],
        **{f"version of {name}": text for name, text in run.record["versions"].items()},
    }
    return [
        prose.text(
            "task",
            settings=chosen,
            data=data,
            tested=accuracy.details["classes"],
            model=model["source"],
        ),
        *(
            [
                prose.text(
                    "mitigated",
                    name=chosen.mitigation.name,
                    scope=chosen.mitigate,
                    in_context=chosen.in_context,
                )
            ]
            if chosen.mitigation.name != "none"
            else []
        ),
        PageTable.of("The run", ("What", "Value"), list(facts.items())),
        PageTable.of(
            "Settings, digests and versions",
            ("What", "Value"),
            [(name.replace("_", " "), _setting(value)) for name, value in details.items()],
            folded=True,
        ),
    ]


def _setting(value: object) -> str:
    if isinstance(value, Mapping):
        value = ", ".join(f"{name}={item}" for name, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value in (None, "") else str(value)
