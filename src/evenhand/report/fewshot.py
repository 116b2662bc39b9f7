"""What pages show of few-shot classifiers: accuracy, gender bias, mitigations, classes.

An audit has a section on them, and runs (`evenhand fewshot run`, `fewshot bias`) have a page.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evenhand.charts import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    Chart,
    ChartSet,
    curves,
    finite,
    forest,
    forests,
    panel_heading,
    panels,
    row_of,
    unique,
    wrap,
)
from evenhand.errors import InputError
from evenhand.fewshot.metrics.bias import LABELS, ORIGINALS, VERSIONS
from evenhand.fewshot.runs import FewShotRun, RunResults, summarise
from evenhand.files import public_names
from evenhand.instruments import compare
from evenhand.report.blocks import (
    Block,
    Cell,
    P,
    Prose,
    Section,
    Table,
    Text,
    cell,
    change_columns,
    count,
    n_column,
    not_measured,
    p_cell,
    result_table,
    share,
    span,
    value_columns,
    write_results,
)
from evenhand.report.findings import Findings, StageResult
from evenhand.report.verdicts import best_mitigation
from evenhand.results import Comparison, Measurement
from evenhand.summary import summarize
from evenhand.wording import interval, number, p_value, percent

prose = Prose("fewshot")

Row = Mapping[str, Any]
Points = Sequence[Row]
Change = tuple[Comparison, Comparison]
"""What a mitigation changed: the accuracy, and the bias."""

MEASURES = {
    "association": ("Association", "log(p pro / p anti)"),
    "epsilon": ("Accuracy gap (ε)", "accuracy, pro minus anti"),
    "skew": ("Skew", "F1, men's versions minus women's"),
    "stereotype": ("Stereotype", "F1, pro minus anti"),
}
"""The label of each bias measure, and what its axis says."""
ACCURACY = "accuracy"
LOOKS = {"male": (BLUE, "circle"), "female": (ORANGE, "triangle-up"), "neither": (INK, "diamond")}
UNCLEAR = "no clear change"
NEARER, FURTHER, CROSSED = "nearer the ideal", "further from the ideal", "on its other side"
EFFECTS = {
    NEARER: (BLUE, "circle"),
    UNCLEAR: (GREY, "square"),
    FURTHER: (ORANGE, "triangle-up"),
    CROSSED: (PURPLE, "diamond"),
}
"""The marks of the effects of a change; the other side of the ideal has its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    """The runs of one network by mitigation, and what each mitigation changed."""

    name: str
    runs: Mapping[str, RunResults]
    changes: Mapping[str, Change]
    details: Mapping[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, stage: StageResult) -> Network:
        """The network of a stage of an audit."""
        measured = {(m.details["mitigation"], m.details["role"]): m for m in stage.measurements}
        compared = {(c.details["mitigation"], c.details["role"]): c for c in stage.comparisons}
        return cls(
            name=stage.details["network"],
            runs={
                name: RunResults(
                    accuracy=measured[name, "performance"],
                    baseline=measured[name, "baseline"],
                    above_baseline=compared[name, "above baseline"],
                    bias=measured.get((name, "bias")),
                )
                for name in stage.details["mitigations"]
            },
            changes={
                name: (compared[name, "performance"], change)
                for (name, role), change in compared.items()
                if role == "bias"
            },
            details=stage.details,
        )

    @classmethod
    def of_run(cls, run: FewShotRun) -> Network:
        """The network of one run, which has results."""
        data, settings = run.record["data"], run.settings
        mitigation = settings.mitigation.name
        if mitigation != "none" and settings.mitigate == "train":
            mitigation += " (train)"
        assert run.results is not None  # noqa: S101
        people = {
            name: (counts["women"], counts["men"] + counts["women"])
            for name, counts in data["classes"].items()
        }
        return cls(
            name=run.name.removesuffix(f" {mitigation}"),
            runs={mitigation: run.results},
            changes={},
            details={
                "task": {
                    "ways": settings.ways,
                    "shots": settings.shots,
                    "splits": settings.splits,
                    "tokens": settings.limit,
                },
                "data": data,
                "share_of_women": {
                    name: women / known if known else None
                    for name, (women, known) in people.items()
                },
            },
        )

    @property
    def first(self) -> RunResults:
        """The run without mitigation; of a network with one run, that."""
        return next(iter(self.runs.values()))

    @property
    def how(self) -> str:
        """With what mitigation the first run was made, in words."""
        name = next(iter(self.runs))
        return "without mitigation" if name == "none" else f"with {name}"

    @property
    def bias(self) -> Measurement:
        """The bias of the first run."""
        bias = self.first.bias
        assert bias is not None  # noqa: S101
        return bias


def read_networks(findings: Findings) -> list[Network]:
    """The networks of which something was measured."""
    return [Network.of(stage) for stage in findings.of("fewshot") if stage.measurements]


def measures(bias: Measurement) -> dict[str, Measurement]:
    """The bias by measure."""
    return {name: bias.part(name, by="measure") for name in MEASURES}


# ------------------------------------------------------------------------------------- figures


def run_charts(results: RunResults, name: str, points: Mapping[str, Points]) -> ChartSet:
    """The figures of `fewshot run`, in the order of reading; `points` are its learning curves."""
    figures, bias = ChartSet(), results.bias
    figures.add("accuracy", lambda: accuracies({name: results.accuracy}, baseline=results.baseline))
    figures.add("classes", lambda: by_class(results.accuracy))
    figures.add("curves", lambda: learning_curves(points))
    if bias is not None:
        figures.add("bias", lambda: bias_measures({name: bias}))
        figures.add("associations", lambda: associations(bias))
    return figures


def bias_charts(
    runs: Mapping[str, tuple[Measurement, Measurement]], changes: Mapping[str, Change]
) -> ChartSet:
    """The figures of `fewshot bias`: accuracy and bias of each run, and what it changed."""
    figures = ChartSet()
    figures.add("accuracy", lambda: accuracies({name: right for name, (right, _) in runs.items()}))
    figures.add("bias", lambda: bias_measures({name: bias for name, (_, bias) in runs.items()}))
    if changes:
        figures.add("changes", lambda: bias_changes(changes))
    return figures


def accuracies(runs: Mapping[str, Measurement], *, baseline: Measurement | None = None) -> Chart:
    """One row per run: the accuracy, its interval for new classes, and inside it the naive one.

    The thin line is what a claim about other classes needs; the thick line in it only says how far
    other episodes of the same classes would move it. With `baseline`, what counting words reaches,
    there are lines for it, with its interval for new classes as a band, and for chance, 1 / ways.
    """
    prob = percent(next(iter(runs.values())).prob)
    rows = [
        row_of(
            m,
            name,
            inner_low=m.details["naive_low"],
            inner_high=m.details["naive_high"],
            naive=interval(m.details["naive_low"], m.details["naive_high"]),
            meaning=m.interval,
            classes=m.details["classes"],
            episodes=m.details["episodes"],
        )
        for name, m in runs.items()
    ]
    lines = [f"line: {prob} interval for new classes; thick part: naive, over episodes alone"]
    references: list[Row] = []
    if baseline is not None:
        chance = baseline.details["chance"]
        references = [
            {"value": chance, "text": f"chance {number(chance, 2)}"},
            row_of(baseline, "", text=f"baseline {number(baseline.value, 2)}", colour=GREEN),
        ]
        lines.append(
            "baseline: counting words (TF-IDF, nearest centroid), "
            f"{number(baseline.value)} {interval(baseline.low, baseline.high)}"
        )
    return forest(
        rows,
        title="Accuracy on classes never trained on",
        subtitle=lines,
        x="accuracy",
        references=references,
        tips={
            "value": "accuracy",
            "interval": f"{prob}, new classes",
            "naive": f"{prob}, naive",
            "meaning": "meant for",
            "classes": "classes",
            "episodes": "episodes",
        },
        text="shown",
        width=340,
        step=24,
        line=34,
    )


def by_class(accuracy: Measurement) -> Chart:
    """One row per class, the easiest first: the share of its queries that are classified correctly.

    The interval is for new texts of the class against new opponents. The colour is the gender that
    the class has more texts of.
    """
    classes, f1 = accuracy.select("class"), accuracy.part("f1", by="score")
    unique((part.query for part in classes), "classes")
    known = {part.query: part for part in f1.select("class")}
    chance = accuracy.details["chance"]
    ordered = sorted(
        classes, key=lambda m: (finite(m.value) is None, -(finite(m.value) or 0.0), m.query)
    )
    return forest(
        [
            row_of(
                part,
                part.query,
                series=leaning if (leaning := part.details["leaning"]) in LOOKS else "neither",
                taken_for=part.details["confused_with"] or "–",
                texts=part.details["texts"],
                queries=part.details["queries"],
                f1=_shown(known[part.query]),
            )
            for part in ordered
        ],
        title="Accuracy by class",
        subtitle=[
            f"line: {percent(accuracy.prob)} interval for new texts and new opponents; dashed: "
            f"chance, {number(chance, 2)}"
        ],
        x="accuracy",
        looks=LOOKS,
        legend="leans",
        references=[{"value": chance}],
        tips={
            "series": "leans",
            "value": "accuracy",
            "interval": "interval",
            "taken_for": "most often taken for",
            "f1": "F1",
            "texts": "texts",
            "queries": "queries",
        },
        domain=[0, 1],
        ticks=10,
        width=340,
        step=16,
    )


def _shown(m: Any) -> str:
    return f"{number(m.value)} {interval(m.low, m.high)}"


def by_class_and_gender(bias: Measurement) -> list[tuple[Measurement, Measurement]]:
    """Each class with the association of its texts of one gender."""
    return [(part, own) for part in bias.select("class") for own in part.select("gender")]


def associations(bias: Measurement, women: Mapping[str, float] | None = None) -> Chart:
    """One row per class and gender: how much better texts fit their class than counterfactuals do.

    Right of 0 the text as it is helps its class. Classes go from the fewest women to the most
    where their shares of `women` are given, else from those that lean male to the others.
    """
    shares = {name: known for name, known in (women or {}).items() if finite(known) is not None}

    def order(pair: tuple[Measurement, Measurement]) -> tuple[bool, float, bool]:
        name = pair[0].query
        return name not in shares, shares.get(name, 0.0), pair[0].details["leaning"] != "male"

    def label(name: str) -> str:
        return f"{name} ({percent(shares[name])} women)" if name in shares else name

    listed = sorted(by_class_and_gender(bias), key=order)
    unique((f"{part.query}, {own.query}" for part, own in listed), "associations")
    return forest(
        [
            row_of(
                own,
                label(part.query),
                series=own.query,
                leaning=part.details["leaning"],
                texts=own.n,
            )
            for part, own in listed
        ],
        title="Association of texts with their class, by class and gender",
        subtitle=[
            f"mean over texts with its {percent(bias.prob)} interval; right of 0: the text fits "
            "better than its counterfactual"
        ],
        x="log(p of the class by the text / by its gender-swapped counterfactual)",
        looks={name: LOOKS[name] for name in ("male", "female")},
        legend="gender of the texts",
        beside=True,
        references=[{"value": 0}],
        tips={
            "leaning": "leans",
            "series": "gender of the texts",
            "texts": "texts",
            "value": "association",
            "interval": "interval",
        },
        width=360,
        step=28,
    )


def bias_measures(runs: Mapping[str, Measurement]) -> Chart:
    """A panel for each measure, a row for each run: the signed value, interval for new classes.

    The grey band is what chance gives in these classes, with the versions of each text assigned at
    random. A value outside the band is more than chance gives in these classes; an interval
    without 0 is bias to be expected in new classes too.
    """
    parts: dict[str, list[Row]] = {name: [] for name in MEASURES}
    for run, bias in runs.items():
        for name, m in measures(bias).items():
            band = finite(m.details["null_high"])
            parts[name].append(
                row_of(
                    m,
                    run,
                    band_low=None if band is None else -band,
                    band_high=band,
                    chance=f"± {number(band)}",
                    p=p_value(m.p),
                    null_p=p_value(m.details["null_p"], m.details.get("permutations")),
                )
            )
    prob = percent(next(iter(runs.values())).prob)
    return _measure_panels(
        parts,
        kind="bias",
        title="Gender bias by its measures",
        subtitle=[
            f"line: {prob} interval for new classes; grey band: what chance gives in these "
            "classes;",
            "right of 0: in favour of pro-stereotypical versions of texts, or (skew) of men's",
        ],
        tips={"p": "p, new classes", "chance": "chance gives", "null_p": "p, these classes"},
    )


def bias_changes(changes: Mapping[str, Change]) -> Chart:
    """A panel for each measure, a row for each mitigation: hollow before, filled after; then cost.

    The line is the interval of the change, around the dot after: the change is clear where it does
    not reach the dot before. Clear changes are coloured by their effect, all else is grey.
    """
    parts: dict[str, list[Row]] = {name: [] for name in (*MEASURES, ACCURACY)}
    for name, (accuracy, bias) in changes.items():
        for measure in MEASURES:
            parts[measure].append(_change_row(name, bias.part(measure)))
        naive = interval(accuracy.details["naive_low"], accuracy.details["naive_high"])
        p = p_value(accuracy.p_value)
        parts[ACCURACY].append(row_of(accuracy.change, name, series=UNCLEAR, naive=naive, p=p))
    prob = percent(next(iter(changes.values()))[1].change.prob)
    return _measure_panels(
        parts,
        kind="changes",
        title="Bias before and after, on the same texts",
        subtitle=[
            f"hollow: before; filled: after; line: {prob} interval of the change, around after;",
            "coloured: the line does not reach the hollow dot: nearer the ideal, further from it, "
            "or on its other side",
        ],
        looks=EFFECTS,
        tips={"value": "after", "change": "change", "p": "p"},
    )


def _change_row(name: str, c: Comparison) -> Row:
    """The row of a measure; the interval of the change is moved so that the dot before is 0."""
    known = finite(c.before.value) is not None and finite(c.after.value) is not None
    return {
        "label": name,
        "value": c.after.value if known else None,
        "low": c.before.value + c.change.low,
        "high": c.before.value + c.change.high,
        "before": c.before.value if known else None,
        "series": CROSSED if c.effect.endswith(CROSSED) else c.effect,
        "change": _shown(c.change),
        "p": p_value(c.p),
    }


COST = "Accuracy, its change"


def _measure_panels(
    parts: Mapping[str, Sequence[Row]], *, kind: str, subtitle: Sequence[str], **options: Any
) -> Chart:
    """The measures that have a value; those without any are named below the title."""
    cost = {ACCURACY: (COST, "after minus before; left of 0: it cost accuracy")}
    drawn = {
        name: rows
        for name, rows in parts.items()
        if any(finite(row["value"]) is not None for row in rows)
    }
    if not set(drawn) - set(cost):
        raise InputError(f"{kind}: expected at least one measure with a value, got none")
    missing = [MEASURES.get(name, (name,))[0] for name in parts if name not in drawn]
    texts = {**MEASURES, **cost}
    tips = {
        "value": "change of accuracy",
        "interval": "interval, new classes",
        "naive": "interval, naive",
        "p": "p",
    }
    return forests(
        {texts[name][0]: rows for name, rows in drawn.items()},
        columns=2,
        subtitle=[*subtitle, *([f"no value at all: {', '.join(missing)}"] if missing else [])],
        x={texts[name][0]: texts[name][1] for name in drawn},
        scale=lambda title: title if title in ("Association", COST) else "shares",
        width=230,
        options={COST: {"tips": tips}},
        references=[{"value": 0}],
        ticks=4,
        step=24,
        **options,
    )


def learning_curves(every: Mapping[str, Points]) -> Chart:
    """A panel for each training: accuracy above, loss below, over the episodes trained on.

    Training figures are means since the point before, on training classes; validation is on
    classes not trained on, the same episodes every time. All panels have the same scales. The black
    diamond is the point whose weights were saved.
    """
    heights = {"accuracy": 130, "loss": 90}
    values = {name: _curve_rows(name, points, heights) for name, points in every.items()}
    rows = [row for part in values.values() for row in part]
    if not any(row["value"] is not None for row in rows):
        raise InputError("curves: expected points with numbers, got none")
    columns = 2 if len(values) == 4 else min(3, len(values))
    width = (440, 260, 180)[columns - 1]
    start, last = (end(row["episodes"] for row in rows) for end in (min, max))
    domains = {measure: _curve_domain(rows, measure) for measure in heights}
    charts = []
    for index, (name, part) in enumerate(values.items()):
        left, lowest = index % columns == 0, index >= len(values) - columns
        stack = [
            curves(
                [row for row in part if row["measure"] == measure],
                {"training": (ORANGE, (1, 0)), "validation": (BLUE, (1, 0))},
                x="episodes",
                y="value",
                x_title="episodes" if lowest and measure == "loss" else None,
                y_title=measure if left else None,
                title=panel_heading(wrap(name, 80 // columns)) if measure == "accuracy" else None,
                points=True,
                tips={"run": "run", "episodes": "episodes", "value": measure},
                width=width,
                height=height,
                x_scale={"domain": [0, max(1, last)]},
                y_scale={"domain": domains[measure]},
                x_axis={
                    "format": ",d",
                    "tickCount": max(2, width // 80),
                    "labels": lowest and measure == "loss",
                },
                y_axis={"tickCount": 5, "labels": left, "minExtent": 36 if left else 0},
            )
            for measure, height in heights.items()
        ]
        charts.append(_stack(stack))
    broken = any(row["value"] is None and row["episodes"] > start for row in rows)
    return panels(
        charts,
        columns=columns,
        title="Learning curves",
        subtitle=[
            "training: mean since the point before, on training classes; validation: on classes "
            "not trained on;",
            "diamond: the saved point, the first with the largest validation accuracy",
            *(["a line breaks where a value is missing"] if broken else []),
        ],
    )


def _stack(charts: Sequence[Chart]) -> Chart:
    import altair as alt

    return alt.vconcat(*charts, spacing=16, bounds="flush")


def saved_point(points: Points) -> int | None:
    """The number of the point whose weights training saves.

    >>> saved_point([{"validation_accuracy": x} for x in (0.5, float("nan"), 0.7, 0.7)])
    2
    """
    values = [(finite(point["validation_accuracy"]), -i) for i, point in enumerate(points)]
    known = [pair for pair in values if pair[0] is not None]
    return -max(known)[1] if known else None


def _curve_rows(name: str, points: Points, measures: Iterable[str]) -> list[Row]:
    best = saved_point(points)
    return [
        {
            "run": name,
            "episodes": point["episodes"],
            "series": series,
            "measure": measure,
            "value": finite(point[f"{series}_{measure}"]),
            "chosen": index == best and series == "validation",
        }
        for index, point in enumerate(points)
        for measure in measures
        for series in ("training", "validation")
    ]


def _curve_domain(rows: Sequence[Row], measure: str) -> list[float]:
    values = [r["value"] for r in rows if r["measure"] == measure and r["value"] is not None]
    low, high = min(values, default=0.0), max(values, default=1.0)
    margin = 0.05 * (high - low) or 0.05
    return [low - margin, high + margin]


# ------------------------------------------------------------------------------------ sections


def fewshot_section(findings: Findings) -> Section:
    """What was measured of few-shot classifiers."""
    networks = read_networks(findings)
    missing = not_measured(
        findings.skipped("fewshot"), lambda skip: f"{skip['metric']}, {skip['query']}"
    )
    if not networks:
        return Section("fewshot", "Few-shot classifiers", missing)
    first = networks[0]
    blocks: list[Block] = [
        prose.text(
            "task",
            task=first.details["task"],
            data=first.details["data"],
            tested=first.first.accuracy.details["classes"],
            networks=[network.name for network in networks],
            model=str(findings.model.get("name", "the model")),
        ),
        prose.text("versions"),
    ]
    if first.changes:
        tried = [prose.mitigation(name=name) for name in first.changes]
        blocks.append(Text(f"Mitigations tried: {'; '.join(tried)}."))
    blocks += [*map(Text, first.details["notes"]), *missing]
    parts = (_accuracy(networks), _bias(networks), _changes(networks), _classes(networks))
    return Section.of("fewshot", "Few-shot classifiers", parts, blocks)


def run_name(network: str, mitigation: str) -> str:
    """The name of a run: the network, and the mitigation where there is one.

    >>> run_name("induction", "none"), run_name("induction", "augment")
    ('induction', 'induction augment')
    """
    return network if mitigation == "none" else f"{network} {mitigation}"


def _runs(networks: Iterable[Network]) -> Iterator[tuple[str, str, RunResults]]:
    for network in networks:
        for mitigation, run in network.runs.items():
            yield network.name, mitigation, run


def _accuracy(networks: Sequence[Network]) -> Section:
    runs = {run_name(name, mitigation): run.accuracy for name, mitigation, run in _runs(networks)}
    first = networks[0].first
    figure = prose.figure(
        "fewshot-accuracy", lambda: accuracies(runs, baseline=first.baseline), runs=runs
    )
    table = result_table(
        "Accuracy on classes never trained on, and how much better than counting words",
        ("Network", "Mitigation"),
        _runs(networks),
        {
            "Accuracy": lambda run: cell(run.accuracy.value),
            f"{percent(first.accuracy.prob)} interval, new classes": lambda run: span(
                run.accuracy.low, run.accuracy.high
            ),
            "Interval, other tasks alone": lambda run: span(
                run.accuracy.details["naive_low"], run.accuracy.details["naive_high"]
            ),
            "Counting words": lambda run: cell(run.baseline.value),
            "Above it": lambda run: cell(run.above_baseline.change.value),
            "Interval": lambda run: span(
                run.above_baseline.change.low, run.above_baseline.change.high
            ),
            "p": lambda run: p_cell(run.above_baseline.p_value),
            "F1": lambda run: cell(run.accuracy.part("f1", by="score").value),
            "Classes": lambda run: count(run.accuracy.details["classes"]),
        },
    )
    return Section("fewshot-accuracy-part", prose.title_accuracy(), [figure, table])


def _bias(networks: Sequence[Network]) -> Section:
    labels = {measure: label for measure, (label, _) in MEASURES.items()}
    figure = prose.figure(
        "fewshot-bias",
        lambda: bias_measures({network.name: network.bias for network in networks}),
        measured=[
            (f"{network.name} {labels[name]}", m)
            for network in networks
            for name, m in measures(network.bias).items()
        ],
        how=networks[0].how if len({network.how for network in networks}) == 1 else "of each",
    )
    ends = f"{percent(networks[0].bias.prob)} interval, new classes"
    table = result_table(
        prose.table_bias(),
        ("Network", "Mitigation", "Measure"),
        (
            (name, mitigation, labels[measure], m)
            for name, mitigation, run in _runs(networks)
            if run.bias is not None
            for measure, m in measures(run.bias).items()
        ),
        {
            **value_columns(interval=ends),
            "p, new classes": lambda m: p_cell(m.p),
            "Chance gives up to": lambda m: Cell(
                f"± {number(m.details['null_high'])}", m.details["null_high"]
            ),
            "p of chance": lambda m: p_cell(m.details["null_p"], m.details.get("permutations")),
            **n_column("Texts"),
            "Classes": lambda m: count(m.details["classes"]),
        },
    )
    sides = {"male": "men's", "female": "women's", "gap": "women's minus men's"}
    sides["neither"] = "neither men's nor women's"
    genders = result_table(
        prose.table_genders(),
        ("Network", "Mitigation", "Texts"),
        (
            (name, mitigation, sides[part.query], part)
            for name, mitigation, run in _runs(networks)
            for part in run.accuracy.select("gender")
        ),
        {**value_columns(value="Accuracy", interval="Interval, new classes"), **P},
        folded=True,
    )
    blocks = [figure, table, *([genders] if genders.rows else [])]
    return Section("fewshot-bias-part", prose.title_bias(), blocks)


def _changes(networks: Sequence[Network], against: str = "") -> Section:
    changes = {
        run_name(network.name, mitigation): change
        for network in networks
        for mitigation, change in network.changes.items()
    }
    if not changes:
        return Section("fewshot-changes-part", prose.title_changes())
    table = result_table(
        "Every measure before and after, paired on the same texts",
        ("Network", "Mitigation", "Measure"),
        (
            (network.name, mitigation, label, c)
            for network in networks
            for mitigation, (accuracy, bias) in network.changes.items()
            for label, c in (
                *((label, bias.part(name)) for name, (label, _) in MEASURES.items()),
                ("Accuracy", accuracy),
            )
        ),
        {
            **change_columns(f"{percent(networks[0].bias.prob)} interval of the change"),
            **P,
        },
    )
    best = best_mitigation(networks)
    figure = prose.figure("fewshot-changes", lambda: bias_changes(changes), changes=changes)
    return Section(
        "fewshot-changes-part",
        prose.title_changes(),
        [*map(Text, filter(None, (against, best))), figure, table],
    )


def _classes(networks: Sequence[Network]) -> Section:
    return Section(
        "fewshot-classes-part",
        "Class by class",
        [*_associations(networks), _class_table(networks)],
    )


def _associations(networks: Sequence[Network]) -> list[Block]:
    first = networks[0]
    figure = prose.figure(
        "fewshot-associations",
        lambda: associations(first.bias, first.details["share_of_women"]),
        network=first.name,
        measured=[
            (f"{part.query}, {own.query}", own) for part, own in by_class_and_gender(first.bias)
        ],
    )
    table = result_table(
        prose.table_associations(first.how),
        ("Class", "Leans", "Texts of", "Network"),
        (
            (
                part.query,
                part.details["leaning"],
                {"male": "men", "female": "women"}[own.query],
                network.name,
                own,
            )
            for network in networks
            for part, own in by_class_and_gender(network.bias)
        ),
        {**value_columns(value="Association"), **n_column("Texts")},
        words=True,
        folded=True,
    )
    return [figure, table]


def _class_table(networks: Sequence[Network]) -> Table:
    women = networks[0].details["share_of_women"]

    def rows() -> Iterator[tuple[Any, ...]]:
        for network in networks:
            accuracy = network.first.accuracy
            f1 = accuracy.part("f1", by="score")
            for part in accuracy.select("class"):
                about = (part.details["leaning"] or "neither", share(women[part.query]))
                yield (
                    part.query,
                    *about,
                    network.name,
                    (part, f1.part(part.query, by="class")),
                )

    return result_table(
        f"Accuracy class by class, {networks[0].how}",
        ("Class", "Leans", "Women", "Network"),
        rows(),
        {
            "Accuracy": lambda pair: cell(pair[0].value),
            "Interval": lambda pair: span(pair[0].low, pair[0].high),
            "F1": lambda pair: cell(pair[1].value),
            "Interval of F1": lambda pair: span(pair[1].low, pair[1].high),
            "Most often taken for": lambda pair: pair[0].details["confused_with"] or "–",
            "Texts": lambda pair: count(pair[0].details["texts"]),
        },
        words=True,
        folded=True,
    )


# ------------------------------------------------------------------------------- page of runs


def write_run(run: FewShotRun | Sequence[FewShotRun], path: str | os.PathLike[str]) -> Path:
    """Write the page of a few-shot run, one HTML file that loads nothing from elsewhere.

    Parameters
    ----------
    run : FewShotRun, or several
        The `results` are shown; a run without them is measured. Of several, the page has what each
        changed against the first, paired on the same queries, and the classes of the first.
    path : path
        The file to write.

    Returns
    -------
    Path
        The file.

    """
    runs = [
        replace(each, results=each.results or summarise(each))
        for each in ([run] if isinstance(run, FewShotRun) else run)
    ]
    first, *others = runs
    networks = _networks(runs)
    results = networks[0].first
    changes = [change for network in networks for _, change in network.changes.values()]
    simulated = any(str(each.record["data"]["name"]).startswith("simulated") for each in runs)
    return write_results(
        path,
        f"Few-shot classifiers, {len(runs)} runs"
        if others
        else f"Few-shot classifier {first.name}",
        [
            summarize([], changes) if changes else results.sentence,
            summarize(results.above_baseline),
        ],
        [
            _run_classes(networks[:1], results),
            _by_run("training", "Training", runs, _training),
            _by_run("setup", "Set-up", runs, _setup),
        ],
        "Intervals are for new classes of the same kind, and say nothing about other data.",
        start=[
            _accuracy(networks),
            _run_bias(networks, results),
            *([_changes(networks, prose.against(name=first.name))] if others else []),
        ],
        notices=[prose.simulated()] if simulated else [],
    )


def _networks(runs: Sequence[FewShotRun]) -> list[Network]:
    """The runs by network and mitigation; what each changed, against the first run."""
    networks: dict[str, Network] = {}
    names, folders = [run.name for run in runs], public_names(run.folder for run in runs)
    for run in runs:
        own = Network.of_run(run)
        if names.count(run.name) > 1:
            own = replace(own, name=f"{own.name} ({folders[str(run.folder)]})")
        [(mitigation, results)] = own.runs.items()
        before = next(iter(networks.values())).first if networks else None
        if before is not None and before.bias is not None and results.bias is not None:
            accuracy = compare(before.accuracy, results.accuracy)
            own = replace(own, changes={mitigation: (accuracy, compare(before.bias, results.bias))})
        known = networks.get(own.name, own)
        networks[own.name] = replace(
            known, runs={**known.runs, **own.runs}, changes={**known.changes, **own.changes}
        )
    return list(networks.values())


def _run_bias(networks: Sequence[Network], results: RunResults) -> Section:
    """The bias by its measures, then further readings of it."""
    if results.bias is None:
        return Section("fewshot-bias-part", prose.title_bias(), [Text(prose.no_bias(), "warning")])
    bias, section = results.bias, _bias(networks)
    parts = [(LABELS[name], bias.part(name, by="original")) for name in ORIGINALS]
    parts += [(f"association, {VERSIONS[part.query]}", part) for part in bias.select("version")]
    further = result_table(
        prose.table_further(), ("Measure",), parts, {**value_columns(bias.prob), **P}, folded=True
    )
    left = {reason: count for reason, count in bias.details["left_out"].items() if count}
    texts = [prose.text("versions"), prose.text("robust", bias=bias, left=left)]
    return Section(section.name, section.title, [*texts, *section.blocks, further])


def _run_classes(networks: Sequence[Network], results: RunResults) -> Section:
    figure = prose.figure(
        "fewshot-classes", lambda: by_class(results.accuracy), accuracy=results.accuracy
    )
    parts = [Section("classes-accuracy", "Accuracy", [figure, _class_table(networks)])]
    if results.bias is not None:
        parts.append(Section("classes-association", "Association", _associations(networks)))
    return Section("classes", "Class by class", parts=parts)


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
    """The learning curves, and where the spread of the accuracy comes from."""
    accuracy = Network.of_run(run).first.accuracy
    blocks: list[Block] = [
        prose.figure(
            f"fewshot-curves{ending}",
            lambda: learning_curves(run.curves),
            "fewshot_curves",
            curves=run.curves,
        )
    ]
    if run.settings.splits > 1 or run.settings.seeds > 1:
        blocks.append(
            result_table(
                "SD that each source gives the accuracy of one run",
                ("Source",),
                ((part.query, part) for part in accuracy.select("component")),
                value_columns(accuracy.prob, "SD"),
            )
        )
    return blocks


def _setup(run: FewShotRun, ending: str) -> list[Block]:  # noqa: ARG001
    """What was run, on what and how."""
    network = Network.of_run(run)
    data, encoder, mitigation = run.record["data"], run.record["encoder"], run.settings.mitigation
    accuracy, command = network.first.accuracy, run.record.get("arguments", ())
    left_out = "; ".join(f"{reason}: {n:,}" for reason, n in data["left_out"].items())
    facts = {
        "Data": f"{data['name']}: {data['texts']:,} texts in {len(data['classes'])} classes",
        "Left out": left_out or "–",
        "Encoder": encoder["source"],
        "Test": f"{accuracy.details['episodes']:,} episodes over {accuracy.n} classes",
        "Command": " ".join(("evenhand", *command)) if command else "called from Python",
    }
    settings = run.settings.to_dict()
    details = {
        **{name: value for name, value in settings.items() if name != "training"},
        **settings["training"],
        "digest of the data": data["digest"],
        "digest of the encoder": encoder["fingerprint"],
        **{f"version of {name}": text for name, text in run.record["versions"].items()},
    }
    blocks: list[Block] = [
        prose.text(
            "task",
            **{name: network.details[name] for name in ("task", "data")},
            tested=accuracy.details["classes"],
            networks=[network.name],
            model=encoder["source"],
            finetune=run.settings.finetune,
        )
    ]
    if mitigation.name != "none":
        blocks.append(prose.text("mitigated", name=mitigation.name, scope=run.settings.mitigate))
    return [
        *blocks,
        Table.of("The run", ("What", "Value"), list(facts.items())),
        Table.of(
            "Settings, digests and versions",
            ("What", "Value"),
            [(name.replace("_", " "), _setting(value)) for name, value in details.items()],
            folded=True,
        ),
    ]


def _setting(value: Any) -> str:
    if isinstance(value, Mapping):
        value = ", ".join(f"{name}={item}" for name, item in value.items())
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "–" if value in (None, "") else str(value)
