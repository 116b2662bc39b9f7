"""What a report shows of few-shot classifiers: accuracy, gender bias, mitigations, classes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from evenhand.charts import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    Chart,
    ChartSet,
    curves,
    finite,
    forest,
    forests,
    panel_heading,
    panels,
    unique,
    wrap,
)
from evenhand.errors import InputError
from evenhand.fewshot.runs import RunResults, association_rows, by_class_rows
from evenhand.report.blocks import (
    Block,
    Cell,
    Prose,
    Section,
    Table,
    Text,
    cell,
    p_cell,
    share,
    span,
)
from evenhand.report.findings import Findings, StageResult
from evenhand.report.verdicts import best_mitigation
from evenhand.results import Comparison, Measurement
from evenhand.wording import interval, number, p_value, percent

prose = Prose("fewshot")

Row = Mapping[str, Any]
Rows = list[dict[str, Any]]
Points = Sequence[Row]

MEASURES = {
    "association": ("Association", "log(p pro / p anti)"),
    "epsilon": ("Accuracy gap (ε)", "accuracy, pro minus anti"),
    "skew": ("Skew", "F1, men's versions minus women's"),
    "stereotype": ("Stereotype", "F1, pro minus anti"),
}
"""The label of each bias measure, and what its axis says."""
LOOKS = {"male": (BLUE, "circle"), "female": (ORANGE, "triangle-up"), "neither": (INK, "diamond")}
UNCLEAR = "no clear change"
DIRECTIONS = {
    "less bias": (BLUE, "circle"),
    UNCLEAR: (GREY, "square"),
    "more bias": (ORANGE, "triangle-up"),
}


# ------------------------------------------------------------------------------------- figures


def run_charts(result: Row) -> ChartSet:
    """The figures of `fewshot run` from its document, in the order of reading."""
    figures = ChartSet()
    name = str(result.get("name") or "run")
    prob = (result.get("accuracy") or {}).get("prob")
    chance = result.get("chance")
    baseline = (result.get("baseline") or {}).get("accuracy")
    figures.add(
        "accuracy",
        lambda: accuracies(
            [{"name": name, **_part(result, "accuracy")}], chance=chance, baseline=baseline
        ),
    )
    figures.add("classes", lambda: by_class(_part(result, "by_class"), chance=chance, prob=prob))
    figures.add("curves", lambda: learning_curves(_part(result, "curves")))
    figures.add("bias", lambda: bias_measures({name: _part(result, "bias")}))
    figures.add("associations", lambda: associations(_part(result, "associations")))
    return figures


def bias_charts(result: Row) -> ChartSet:
    """The figures of `fewshot bias` from its document; a run without a part gets an empty row."""
    figures = ChartSet()
    runs: Mapping[str, Row] = result.get("runs") or {}

    def every(key: str) -> dict[str, Row]:
        found = {name: run.get(key) or {} for name, run in runs.items()}
        if not any(found.values()):
            raise InputError(f"{key}: the result has none")
        return found

    figures.add(
        "accuracy",
        lambda: accuracies([{"name": name, **score} for name, score in every("accuracy").items()]),
    )
    figures.add("bias", lambda: bias_measures(every("bias")))
    figures.add("changes", lambda: bias_changes(_part(result, "changes")))
    return figures


def _part(result: Row, key: str) -> Any:
    found = result.get(key)
    if not found:
        raise InputError(f"{key}: the result has none")
    return found


def accuracies(
    runs: Sequence[Row], *, chance: float | None = None, baseline: Row | None = None
) -> Chart:
    """One row per run: the accuracy, its interval for new classes, and inside it the naive one.

    The thin line is what a claim about other classes needs; the thick line in it only says how far
    other episodes of the same classes would move it. `chance` is 1 / ways; `baseline` is what
    counting words reaches, with its interval for new classes as a band.
    """
    unique((run["name"] for run in runs), "runs")
    prob = percent(next((run["prob"] for run in runs if "prob" in run), 0.95))
    rows = [
        {
            "label": run["name"],
            "run": run["name"],
            **{name: run.get(name) for name in ("value", "low", "high", "classes", "episodes")},
            "inner_low": finite(run.get("naive_low")),
            "inner_high": finite(run.get("naive_high")),
            "naive": interval(finite(run.get("naive_low")), finite(run.get("naive_high"))),
            "meaning": run.get("interval"),
        }
        for run in runs
    ]
    references = []
    lines = [f"line: {prob} interval for new classes; thick part: naive, over episodes alone"]
    if finite(chance) is not None:
        references.append({"value": chance, "text": f"chance {number(chance, 2)}"})
    if baseline and finite(baseline.get("value")) is not None:
        ends = {name: baseline.get(name) for name in ("value", "low", "high")}
        text = f"baseline {number(ends['value'], 2)}"
        references.append({**ends, "text": text, "colour": GREEN})
        lines.append(
            "baseline: counting words (TF-IDF, nearest centroid), "
            f"{number(ends['value'])} {interval(ends['low'], ends['high'])}"
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


def by_class(
    classes: Sequence[Row], *, chance: float | None = None, prob: float | None = None
) -> Chart:
    """One row per class, the easiest first: the share of its queries that are classified correctly.

    The interval is for new texts of the class against new opponents. The colour is the gender that
    the class has more texts of.
    """
    unique((row["name"] for row in classes), "classes")
    rows = [
        {
            "label": row["name"],
            "value": finite(row["accuracy"]),
            "low": row["accuracy_low"],
            "high": row["accuracy_high"],
            "series": leaning if (leaning := row.get("leaning")) in LOOKS else "neither",
            "taken_for": row.get("taken_for") or "–",
            "texts": row["texts"],
            "queries": row["queries"],
            "f1": f"{number(finite(row.get('f1')))} "
            f"{interval(finite(row.get('f1_low')), finite(row.get('f1_high')))}",
        }
        for row in classes
    ]
    if not any(row["value"] is not None for row in rows):
        raise InputError("classes: expected at least one with an accuracy, got none")
    rows.sort(key=lambda row: (row["value"] is None, -(row["value"] or 0.0), row["label"]))
    level = finite(chance)
    line = f"line: {percent(prob) + ' ' if prob else ''}interval for new texts and new opponents"
    if level is not None:
        line += f"; dashed: chance, {number(level, 2)}"
    return forest(
        rows,
        title="Accuracy by class",
        subtitle=[line],
        x="accuracy",
        looks=LOOKS,
        legend="leans",
        references=[] if level is None else [{"value": level}],
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


def associations(found: Sequence[Row]) -> Chart:
    """One row per class and gender: how much better texts fit their class than counterfactuals do.

    Right of 0 the text as it is helps its class. Classes go from the fewest women to the most
    where `share_of_women` is given, else from those that lean male to the others.
    """
    unique((f"{row['name']}, {row['gender']}" for row in found), "associations")

    def women(row: Row) -> tuple[bool, float, bool]:
        part = finite(row.get("share_of_women"))
        return part is None, part or 0.0, row["leaning"] != "male"

    def label(row: Row) -> str:
        part = finite(row.get("share_of_women"))
        return str(row["name"]) if part is None else f"{row['name']} ({percent(part)} women)"

    rows = [
        {
            "label": label(row),
            "name": row["name"],
            "series": row["gender"],
            "gender": row["gender"],
            "value": row["association"],
            "low": row["low"],
            "high": row["high"],
            "leaning": row["leaning"],
            "texts": row["texts"],
        }
        for row in sorted(found, key=women)
    ]
    prob = percent(found[0].get("prob", 0.95))
    return forest(
        rows,
        title="Association of texts with their class, by class and gender",
        subtitle=[
            f"mean over texts with its {prob} interval; right of 0: the text fits better than its "
            "counterfactual"
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


def bias_measures(runs: Mapping[str, Row]) -> Chart:
    """A panel for each measure, a row for each run: the signed value, interval for new classes.

    The grey band is what chance gives in these classes, with the versions of each text assigned at
    random. A value outside the band is more than chance gives in these classes; an interval
    without 0 is bias to be expected in new classes too.
    """
    every = {
        measure: [_bias_row(name, bias.get(measure) or {}) for name, bias in runs.items()]
        for measure in MEASURES
    }
    return _measure_panels(
        every,
        kind="bias",
        title="Gender bias by its measures",
        subtitle=[
            f"line: {_prob(runs)} interval for new classes; grey band: what chance gives in these "
            "classes;",
            "right of 0: in favour of pro-stereotypical versions of texts, or (skew) of men's",
        ],
        tips={"p": "p, new classes", "chance": "chance gives", "null_p": "p, these classes"},
    )


def _bias_row(name: str, bias: Row) -> dict[str, Any]:
    band = finite(bias.get("null_high"))
    return {
        "label": name,
        "run": name,
        "value": finite(bias.get("signed")),
        "low": bias.get("signed_low"),
        "high": bias.get("signed_high"),
        "band_low": None if band is None else -band,
        "band_high": band,
        "chance": f"± {number(band)}",
        "p": p_value(bias.get("p_value")),
        "null_p": p_value(bias.get("null_p")),
    }


def bias_changes(changes: Mapping[str, Row]) -> Chart:
    """A panel for each measure, a row for each mitigation: hollow before, filled after; then cost.

    The line is the interval of the change, around the dot after: the change is clear where it does
    not reach the dot before. That is less bias only where the measure was clearly not 0 before, and
    more only where it is clearly not 0 after: those are coloured, all else is grey.
    """
    every = {
        measure: [_change_row(name, change.get(measure) or {}) for name, change in changes.items()]
        for measure in MEASURES
    }
    cost = [_cost_row(name, change.get("accuracy") or {}) for name, change in changes.items()]
    return _measure_panels(
        every,
        kind="changes",
        cost=cost,
        title="Bias before and after, on the same texts",
        subtitle=[
            f"hollow: before; filled: after; line: {_prob(changes)} interval of the change, around "
            "after;",
            "coloured: the line does not reach the hollow dot, and the bias (for less: before, for "
            "more: after) is clearly not 0",
        ],
        looks=DIRECTIONS,
        tips={"value": "after", "change": "change", "p": "p"},
    )


def _change_row(name: str, change: Row) -> dict[str, Any]:
    """The row of a measure; the interval of the change is moved so that the dot before is 0."""
    before, after, by = (finite(change.get(key)) for key in ("before", "after", "change"))
    low, high = (finite(change.get(key)) for key in ("low", "high"))
    known = before is not None and after is not None
    return {
        "label": name,
        "run": name,
        "value": after if known else None,
        "low": None if before is None or low is None else before + low,
        "high": None if before is None or high is None else before + high,
        "before": before if known else None,
        "direction": change.get("direction") or UNCLEAR,
        "series": change.get("direction") or UNCLEAR,
        "change": f"{number(by)} {interval(low, high)}",
        "p": p_value(change.get("p_value")),
    }


def _cost_row(name: str, score: Row) -> dict[str, Any]:
    low, high = (finite(score.get(key)) for key in ("naive_low", "naive_high"))
    return {
        "label": name,
        "run": name,
        "value": finite(score.get("value")),
        "low": score.get("low"),
        "high": score.get("high"),
        "series": UNCLEAR,
        "naive": interval(low, high),
        "p": p_value(score.get("p_value")),
    }


COST = "Accuracy, its change"


def _measure_panels(
    every: Mapping[str, Sequence[Row]],
    *,
    kind: str,
    cost: Sequence[Row] | None = None,
    subtitle: Sequence[str],
    tips: Mapping[str, str],
    **options: Any,
) -> Chart:
    """The measures that have a value; those without any are named below the title."""
    drawn = {m: rows for m, rows in every.items() if any(r["value"] is not None for r in rows)}
    if not drawn:
        raise InputError(f"{kind}: expected at least one measure with a value, got none")
    parts = {MEASURES[measure][0]: rows for measure, rows in drawn.items()}
    missing = [MEASURES[measure][0] for measure in MEASURES if measure not in drawn]
    axes = {MEASURES[measure][0]: MEASURES[measure][1] for measure in drawn}
    if cost is not None and any(row["value"] is not None for row in cost):
        parts[COST] = cost
        axes[COST] = "after minus before; left of 0: it cost accuracy"
    elif cost is not None:
        missing.append("accuracy")
    lines = [*subtitle, *([f"no value at all: {', '.join(missing)}"] if missing else [])]
    own = {
        COST: {
            "tips": {
                "value": "change of accuracy",
                "interval": "interval, new classes",
                "naive": "interval, naive",
                "p": "p",
            }
        }
    }
    return forests(
        parts,
        columns=2,
        subtitle=lines,
        x=axes,
        scale=lambda title: title if title in ("Association", COST) else "shares",
        width=230,
        options=own,
        references=[{"value": 0}],
        tips=tips,
        ticks=4,
        step=24,
        **options,
    )


def _prob(runs: Mapping[str, Row]) -> str:
    """The probability of the intervals of some bias measures or changes."""
    found = [run[m]["prob"] for run in runs.values() for m in MEASURES if run.get(m)]
    return percent(found[0] if found else 0.95)


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
    found = [(finite(point["validation_accuracy"]), -i) for i, point in enumerate(points)]
    known = [pair for pair in found if pair[0] is not None]
    return -max(known)[1] if known else None


def _curve_rows(name: str, points: Points, measures: Iterable[str]) -> Rows:
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
    found = [r["value"] for r in rows if r["measure"] == measure and r["value"] is not None]
    low, high = min(found, default=0.0), max(found, default=1.0)
    margin = 0.05 * (high - low) or 0.05
    return [low - margin, high + margin]


# ---------------------------------------------------------------------------- results as rows

_COMPONENTS = (
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


def run_rows(
    results: RunResults, name: str = "", curves: Mapping[str, Points] | None = None
) -> dict[str, Any]:
    """Everything of a run."""
    accuracy, baseline, above = results.accuracy, results.baseline, results.above_baseline
    return {
        "name": name,
        "chance": accuracy.details["chance"],
        "baseline": {"accuracy": score_row(baseline)},
        "accuracy": score_row(accuracy),
        "f1": score_row(accuracy.part("f1", by="score")),
        "above_baseline": {"accuracy": gap_row(above)},
        "by_class": class_rows(accuracy),
        "by_gender": gender_rows(accuracy),
        "bias": None if results.bias is None else bias_rows(results.bias),
        "associations": [] if results.bias is None else gender_association_rows(results.bias),
        "curves": dict(curves or {}),
    }


def contents_of(findings: Findings) -> list[dict[str, Any]]:
    """The few-shot stages that measured something: each with its runs and changes as rows."""
    return [content_of(stage) for stage in findings.of("fewshot") if stage.measurements]


def content_of(stage: StageResult) -> dict[str, Any]:
    """The runs of one network by mitigation, and what each mitigation changed."""
    women = stage.details["share_of_women"]
    measured = {(m.details["mitigation"], m.details["role"]): m for m in stage.measurements}
    compared = {(c.details["mitigation"], c.details["role"]): c for c in stage.comparisons}
    runs = {}
    for name in stage.details["mitigations"]:
        results = RunResults(
            accuracy=measured[name, "performance"],
            baseline=measured[name, "baseline"],
            above_baseline=compared[name, "above baseline"],
            bias=measured.get((name, "bias")),
        )
        runs[name] = run_rows(results)
        for part in ("by_class", "associations"):
            runs[name][part] = [
                {**row, "share_of_women": women[row["name"]]} for row in runs[name][part]
            ]
    changes = {
        name: change_rows(compared[name, "performance"], compared[name, "bias"])
        for name in runs
        if (name, "bias") in compared
    }
    return {**stage.details, "runs": runs, "changes": changes}


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
            "parts": {key: details[key] for key in _COMPONENTS if key in details},
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


# -------------------------------------------------------------------------------------- tables


def fewshot_tables(contents: Sequence[Row]) -> dict[str, Rows]:
    """Rows by the name of their table, for CSV files and for the page."""
    return {
        "fewshot-accuracy": list(_accuracy_rows(contents)),
        "fewshot-bias": list(_bias_rows(contents)),
        "fewshot-changes": list(_change_rows(contents)),
        "fewshot-genders": list(_gender_rows(contents)),
        "fewshot-classes": list(_listed(contents, "by_class")),
        "fewshot-associations": list(_listed(contents, "associations")),
    }


def run_name(network: str, mitigation: str) -> str:
    """The name of a run: the network, and the mitigation where there is one.

    >>> run_name("induction", "none"), run_name("induction", "augment")
    ('induction', 'induction augment')
    """
    return network if mitigation == "none" else f"{network} {mitigation}"


def _runs(contents: Iterable[Row]) -> Iterator[tuple[dict[str, Any], Row]]:
    for content in contents:
        for mitigation, run in content["runs"].items():
            yield {"network": content["network"], "mitigation": mitigation}, run


def _some(row: Row, *names: str, prefix: str = "") -> dict[str, Any]:
    return {prefix + name: row.get(name) for name in names}


def _accuracy_rows(contents: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Each run, with what counting words reaches with the same support texts."""
    ends = ("value", "low", "high")
    for named, run in _runs(contents):
        yield {
            **named,
            **_some(run["accuracy"], *ends, "naive_low", "naive_high"),
            "chance": run["chance"],
            "baseline": run["baseline"]["accuracy"]["value"],
            **_some(run["above_baseline"]["accuracy"], *ends, "p_value", prefix="above_baseline_"),
            **_some(run["f1"], *ends, prefix="f1_"),
            **_some(run["accuracy"], "classes", "episodes", "prob"),
        }


def _bias_rows(contents: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Each measure of each run with its sign: above 0 is towards the stereotype."""
    for named, run in _runs(contents):
        for measure in MEASURES:
            bias = run["bias"][measure]
            yield {
                **named,
                "measure": measure,
                "value": bias["signed"],
                "low": bias["signed_low"],
                "high": bias["signed_high"],
                **_some(bias, "p_value", "null_high", "null_p", "n", "classes", "prob"),
            }


def _change_rows(contents: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """What each mitigation changed in each measure, and in the accuracy."""
    names = ("before", "after", "change", "low", "high", "p_value", "direction", "prob")
    for content in contents:
        runs = content["runs"]
        for mitigation, change in content["changes"].items():
            named = {"network": content["network"], "mitigation": mitigation}
            for measure in MEASURES:
                yield {**named, "measure": measure, **_some(change[measure], *names)}
            cost = change["accuracy"]
            yield {
                **named,
                "measure": "accuracy",
                "before": runs["none"]["accuracy"]["value"],
                "after": runs[mitigation]["accuracy"]["value"],
                "change": cost["value"],
                **_some(cost, "low", "high", "p_value"),
                "direction": "",
                "prob": cost["prob"],
            }


def _gender_rows(contents: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Accuracy on men's and on women's texts as they are, and the gap within classes."""
    names = ("value", "low", "high", "p_value", "classes", "prob")
    for named, run in _runs(contents):
        for side in ("male", "female", "gap"):
            if side in run["by_gender"]:
                yield {**named, "texts": side, **_some(run["by_gender"][side], *names)}


def _listed(contents: Sequence[Row], part: str) -> Iterator[dict[str, Any]]:
    for named, run in _runs(contents):
        for row in run[part]:
            yield {**named, **row}


# ------------------------------------------------------------------------------------ sections


def fewshot_section(findings: Findings) -> Section:
    """What was found of few-shot classifiers."""
    contents = contents_of(findings)
    missing = [
        Text(f"Not measured: {skip['metric']}, {skip['query']}: {skip['reason']}.", "warning")
        for skip in findings.skipped("fewshot")
    ]
    if not contents:
        return Section("fewshot", "Few-shot classifiers", missing)
    tables = fewshot_tables(contents)
    first = contents[0]
    model = str(findings.subjects.get("model", {}).get("name", "the model"))
    blocks: list[Block] = [
        prose.text(
            "task",
            task=first["task"],
            data=first["data"],
            tested=first["runs"]["none"]["accuracy"]["classes"],
            networks=[content["network"] for content in contents],
            model=model,
        ),
        prose.text("versions"),
    ]
    if first["changes"]:
        tried = [prose.mitigation(name=name) for name in first["changes"]]
        blocks.append(Text(f"Mitigations tried: {'; '.join(tried)}."))
    blocks += map(Text, first["notes"])
    parts = (
        _accuracy(contents, tables),
        _bias(contents, tables),
        _changes(contents, tables, best_mitigation(findings.of("fewshot"))),
        _classes(contents, tables),
    )
    return Section(
        "fewshot",
        "Few-shot classifiers",
        [*blocks, *missing],
        [part for part in parts if part.blocks],
    )


def _accuracy(contents: Sequence[Row], tables: Mapping[str, Rows]) -> Section:
    rows = tables["fewshot-accuracy"]
    first = contents[0]["runs"]["none"]
    runs = [{"name": run_name(**named), **run["accuracy"]} for named, run in _runs(contents)]
    figure = prose.figure(
        "fewshot-accuracy",
        lambda: accuracies(runs, chance=first["chance"], baseline=first["baseline"]["accuracy"]),
        runs=runs,
    )
    table = Table.of(
        "Accuracy on classes never trained on, and how much better than counting words",
        (
            "Network",
            "Mitigation",
            "Accuracy",
            f"{percent(rows[0]['prob'])} interval, new classes",
            "Interval, other tasks alone",
            "Counting words",
            "Above it",
            "Interval",
            "p",
            "F1",
            "Classes",
        ),
        (
            (
                r["network"],
                r["mitigation"],
                cell(r["value"]),
                span(r["low"], r["high"]),
                span(r["naive_low"], r["naive_high"]),
                cell(r["baseline"]),
                cell(r["above_baseline_value"]),
                span(r["above_baseline_low"], r["above_baseline_high"]),
                p_cell(r["above_baseline_p_value"]),
                cell(r["f1_value"]),
                cell(float(r["classes"]), 0),
            )
            for r in rows
        ),
    )
    return Section("fewshot-accuracy-part", prose.title_accuracy(), [figure, table])


def _bias(contents: Sequence[Row], tables: Mapping[str, Rows]) -> Section:
    biases = {content["network"]: content["runs"]["none"]["bias"] for content in contents}
    rows = tables["fewshot-bias"]
    labels = {measure: label for measure, (label, _) in MEASURES.items()}
    figure = prose.figure(
        "fewshot-bias", lambda: bias_measures(biases), biases=biases, labels=labels
    )
    table = Table.of(
        prose.table_bias(),
        (
            "Network",
            "Mitigation",
            "Measure",
            "Value",
            f"{percent(rows[0]['prob'])} interval, new classes",
            "p, new classes",
            "Chance gives up to",
            "p of chance",
            "Texts",
            "Classes",
        ),
        (
            (
                r["network"],
                r["mitigation"],
                labels[r["measure"]],
                cell(r["value"]),
                span(r["low"], r["high"]),
                p_cell(r["p_value"]),
                Cell(f"± {number(r['null_high'])}", r["null_high"]),
                p_cell(r["null_p"]),
                cell(float(r["n"]), 0),
                cell(float(r["classes"]), 0),
            )
            for r in rows
        ),
    )
    sides = {"male": "men's", "female": "women's", "gap": "women's minus men's"}
    genders = Table.of(
        prose.table_genders(),
        ("Network", "Mitigation", "Texts", "Accuracy", "Interval, new classes", "p"),
        (
            (
                r["network"],
                r["mitigation"],
                sides[r["texts"]],
                cell(r["value"]),
                span(r["low"], r["high"]),
                p_cell(r["p_value"]),
            )
            for r in tables["fewshot-genders"]
        ),
        folded=True,
    )
    blocks = [figure, table, *([genders] if genders.rows else [])]
    return Section("fewshot-bias-part", prose.title_bias(), blocks)


def _changes(contents: Sequence[Row], tables: Mapping[str, Rows], best: str) -> Section:
    changes = {
        run_name(content["network"], mitigation): change
        for content in contents
        for mitigation, change in content["changes"].items()
    }
    if not changes:
        return Section("fewshot-changes-part", prose.title_changes())
    rows = tables["fewshot-changes"]
    table = Table.of(
        "Every measure before and after, paired on the same texts",
        (
            "Network",
            "Mitigation",
            "Measure",
            "Before",
            "After",
            "Change",
            f"{percent(rows[0]['prob'])} interval of the change",
            "p",
            "Result",
        ),
        (
            (
                r["network"],
                r["mitigation"],
                MEASURES.get(r["measure"], ("Accuracy", ""))[0],
                cell(r["before"]),
                cell(r["after"]),
                cell(r["change"]),
                span(r["low"], r["high"]),
                p_cell(r["p_value"]),
                r["direction"],
            )
            for r in rows
        ),
    )
    figure = prose.figure("fewshot-changes", lambda: bias_changes(changes), changes=changes)
    return Section(
        "fewshot-changes-part",
        prose.title_changes(),
        [*([Text(best)] if best else []), figure, table],
    )


def _classes(contents: Sequence[Row], tables: Mapping[str, Rows]) -> Section:
    first = contents[0]
    found = first["runs"]["none"]["associations"]
    figure = prose.figure(
        "fewshot-associations",
        lambda: associations(found),
        network=first["network"],
        rows=found,
    )
    plain = {
        name: [r for r in tables[f"fewshot-{name}"] if r["mitigation"] == "none"]
        for name in ("classes", "associations")
    }
    classes = Table.of(
        "Accuracy class by class, without mitigation",
        (
            "Class",
            "Leans",
            "Women",
            "Network",
            "Accuracy",
            "Interval",
            "F1",
            "Interval of F1",
            "Most often taken for",
            "Texts",
        ),
        (
            (
                r["name"],
                r["leaning"] or "neither",
                share(r["share_of_women"]),
                r["network"],
                cell(r["accuracy"]),
                span(r["accuracy_low"], r["accuracy_high"]),
                cell(r["f1"]),
                span(r["f1_low"], r["f1_high"]),
                r["taken_for"] or "–",
                cell(float(r["texts"]), 0),
            )
            for r in plain["classes"]
        ),
        words=True,
        folded=True,
    )
    listed = Table.of(
        prose.table_associations(),
        ("Class", "Leans", "Texts of", "Network", "Association", "Interval", "Texts"),
        (
            (
                r["name"],
                r["leaning"],
                {"male": "men", "female": "women"}[r["gender"]],
                r["network"],
                cell(r["association"]),
                span(r["low"], r["high"]),
                cell(float(r["texts"]), 0),
            )
            for r in plain["associations"]
        ),
        words=True,
        folded=True,
    )
    return Section("fewshot-classes-part", "Class by class", [figure, listed, classes])
