"""Documents of few-shot runs made by the real functions, and what is in a chart."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any
from xml.etree import ElementTree

import numpy as np

from evenhand.charts import Chart, to_svg
from evenhand.fewshot.answers import Answers, Counterfactuals
from evenhand.fewshot.metrics.accuracy import accuracy
from evenhand.fewshot.metrics.bias import bias
from evenhand.fewshot.training import Point
from evenhand.files import to_json
from evenhand.instruments import compare
from evenhand.report.fewshot import (
    bias_rows,
    change_rows,
    class_rows,
    gender_association_rows,
    score_row,
)
from evenhand.report.findings import StageResult
from evenhand.results import Comparison, Estimate, Measurement

NAMES = ("baker", "tailor", "mason", "florist", "weaver", "glazier")
SHARES = dict(zip(NAMES, (0.45, 0.7, 0.05, 0.9, 0.6, 0.2), strict=True))
LEANING = ("male", "female", "male", "female", "female", "male")


def counterfactuals(effect: float, seed: int = 0) -> Counterfactuals:
    """Answers whose texts gain or lose by their gender as the class leans."""
    rng = np.random.default_rng(seed)
    episodes, ways, queries, texts = 60, 3, 4, 12
    classes = np.argsort(rng.random((episodes, len(NAMES))), axis=1)[:, :ways]
    truth = np.tile(np.repeat(np.arange(ways), queries), (episodes, 1))
    own = np.take_along_axis(classes, truth, axis=1)
    rows = own * texts + rng.integers(0, texts, own.shape)
    genders = rows % 2
    women = np.array([word == "female" for word in LEANING])
    side = np.where(women[own] == (genders == 1), 0.5, -0.5)
    logits = rng.normal(size=(episodes, ways * queries, ways)) / 2
    right = np.eye(ways)[truth]
    versions = []
    for sign in (1, -1):
        both = logits + right * (1 + sign * effect * side)[:, :, None]
        versions.append(both - np.log(np.exp(both).sum(-1, keepdims=True)))
    answers = Answers(versions[0], rows, truth, classes, genders, NAMES)
    return Counterfactuals.of(answers, versions[1], LEANING)


def curve(top: float) -> list[dict[str, Any]]:
    points = [Point(0, None, None, 1.2, 0.4)]
    for i, right in enumerate((0.5, top, 0.6, top), 1):
        points.append(Point(100 * i, 1 - right, right + 0.05, 1.1 - right, right))
    return [asdict(point) for point in points]


@dataclass(frozen=True)
class Measured:
    """A classifier with what was measured of it."""

    both: Counterfactuals
    accuracy: Measurement
    bias: Measurement

    @property
    def rows(self) -> dict[str, Any]:
        return bias_rows(self.bias)

    def change(self, after: Measured) -> dict[str, Any]:
        return change_rows(compare(self.accuracy, after.accuracy), compare(self.bias, after.bias))


def measured(effect: float, seed: int = 0) -> Measured:
    both = counterfactuals(effect, seed)
    return Measured(both, accuracy(both), bias(both, permutations=60))


def run_document(before: Measured) -> dict[str, Any]:
    """What the charts of `fewshot run` read."""
    content = {
        "name": "proto-euclidean",
        "accuracy": score_row(before.accuracy),
        "baseline": {"accuracy": score_row(accuracy(counterfactuals(0, seed=4)))},
        "chance": 1 / 3,
        "by_class": class_rows(before.accuracy),
        "curves": {"split 0, seed 0": curve(0.7), "split 0, seed 1": curve(0.8)},
        "bias": before.rows,
        "associations": [
            {**row, "share_of_women": SHARES[row["name"]]}
            for row in gender_association_rows(before.bias)
        ],
    }
    document: dict[str, Any] = json.loads(to_json(content))
    return document


def bias_document(before: Measured, after: Measured) -> dict[str, Any]:
    """What the charts of `fewshot bias` read."""
    content = {
        "runs": {
            name: {"accuracy": score_row(one.accuracy), "bias": one.rows}
            for name, one in (("none", before), ("augment", after))
        },
        "changes": {"augment": before.change(after)},
    }
    document: dict[str, Any] = json.loads(to_json(content))
    return document


def spec_of(chart: Chart) -> dict[str, Any]:
    """The specification; that it is a valid one is seen when it is drawn."""
    spec: dict[str, Any] = chart.to_dict(validate=False)
    return spec


def parts(spec: Any) -> Iterator[dict[str, Any]]:
    """Every rectangle of a specification, the whole first."""
    yield spec
    for key in ("layer", "concat", "vconcat", "hconcat"):
        for part in spec.get(key, ()):
            yield from parts(part)


def rows_in(spec: Any) -> list[dict[str, Any]]:
    """All rows of a specification, each once, in the order of its parts."""
    found = [one for part in parts(spec) for one in part.get("data", {}).get("values", [])]
    return list({json.dumps(one): one for one in found}.values())


def data(chart: Chart) -> list[dict[str, Any]]:
    return rows_in(spec_of(chart))


def panel(chart: Chart, title: str) -> list[dict[str, Any]]:
    """The rows of one panel of several, a run each."""
    (found,) = (
        part
        for part in parts(spec_of(chart))
        if isinstance(part.get("title"), dict) and part["title"]["text"] == title
    )
    return [one for one in rows_in(found) if "run" in one]


def words(chart: Chart) -> list[str]:
    svg = to_svg(chart)
    assert "NaN" not in svg
    assert "undefined" not in svg
    root = ElementTree.fromstring(svg)  # noqa: S314
    return ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]


def below_title(chart: Chart) -> str:
    return " ".join(spec_of(chart)["title"]["subtitle"])


def axis_domains(chart: Chart) -> list[list[float]]:
    """The domains of the horizontal axes, in the order of the panels."""
    return [
        part["encoding"]["x"]["scale"]["domain"]
        for part in parts(spec_of(chart))
        if "domain" in part.get("encoding", {}).get("x", {}).get("scale", {})
    ]


def stage_of(content: dict[str, Any]) -> StageResult:
    """A stage with these rows as its details, and their numbers as its results."""
    about = {"network": content["network"]}
    bias = [
        _bias_of(run["bias"], {**about, "mitigation": name, "role": "bias"})
        for name, run in content["runs"].items()
    ]
    changes = [
        comparison
        for name, rows in content["changes"].items()
        for comparison in _changes_of(rows, {**about, "mitigation": name})
    ]
    return StageResult(
        name=content["network"],
        kind="fewshot",
        title=content["network"],
        subject="classifier",
        details=content,
        measurements=tuple(bias),
        comparisons=tuple(changes),
    )


def _bias_of(rows: dict[str, Any], about: dict[str, Any]) -> Measurement:
    parts = [
        Measurement(
            metric="fewshot_bias",
            query=name,
            by="measure",
            value=math.nan if row["signed"] is None else row["signed"],
            low=-math.inf if row["signed_low"] is None else row["signed_low"],
            high=math.inf if row["signed_high"] is None else row["signed_high"],
            p_value=row["p_value"],
            prob=row["prob"],
            n=row["classes"],
            ideal=0.0,
            worse="away",
            interval="",
            details={key: row[key] for key in ("null_p", "null_high", "classes")},
        )
        for name, row in rows.items()
        if name in ("association", "epsilon")
    ]
    return replace(parts[0], query="gender", by="", parts=tuple(parts), details=about)


def _changes_of(rows: dict[str, Any], about: dict[str, Any]) -> Iterator[Comparison]:
    bare = Measurement(
        metric="fewshot_bias",
        query="gender",
        value=0.0,
        low=0.0,
        high=0.0,
        n=1,
        ideal=0.0,
        worse="away",
        interval="",
    )
    moved, cost = rows["association"], rows["accuracy"]
    yield Comparison(
        before=replace(bare, value=moved["before"]),
        after=replace(bare, value=moved["after"]),
        change=Estimate(value=moved["change"], low=moved["low"], high=moved["high"]),
        interval="",
        paired=1,
        details={**about, "role": "bias"},
    )
    yield Comparison(
        before=bare,
        after=bare,
        change=Estimate(value=cost["value"], low=cost["low"], high=cost["high"]),
        interval="",
        paired=1,
        details={**about, "role": "performance"},
    )
