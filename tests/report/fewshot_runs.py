"""Few-shot runs measured by the real functions, and what is in a chart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np

from evenhand.charts import Chart, to_svg
from evenhand.fewshot.answers import Counterfactuals, FewShotPredictions
from evenhand.fewshot.metrics.accuracy import Accuracy
from evenhand.fewshot.metrics.bias import Bias
from evenhand.fewshot.runs import FewShotRun, RunResults
from evenhand.fewshot.settings import RunSettings
from evenhand.fewshot.training import CurvePoint
from evenhand.instruments import compare
from evenhand.report.findings import StageResult
from evenhand.results import Comparison, Measurement

NAMES = ("baker", "tailor", "mason", "florist", "weaver", "glazier")
SHARES = dict(zip(NAMES, (0.45, 0.7, 0.05, 0.9, 0.6, 0.2), strict=True))
LEANING = ("male", "female", "male", "female", "female", "male")


def counterfactuals(effect: float, seed: int = 0) -> Counterfactuals:
    """Predictions whose texts gain or lose by their gender as the class leans."""
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
    answers = FewShotPredictions(versions[0], rows, truth, classes, genders, NAMES)
    return Counterfactuals.of(answers, versions[1], LEANING)


def curve(top: float) -> list[dict[str, Any]]:
    points = [CurvePoint(0, None, None, 1.2, 0.4)]
    for i, right in enumerate((0.5, top, 0.6, top), 1):
        points.append(CurvePoint(100 * i, 1 - right, right + 0.05, 1.1 - right, right))
    return [asdict(point) for point in points]


@dataclass(frozen=True)
class Measured:
    """A classifier with what was measured of it."""

    both: Counterfactuals
    accuracy: Measurement
    bias: Measurement

    def change(self, after: Measured) -> tuple[Comparison, Comparison]:
        return compare(self.accuracy, after.accuracy), compare(self.bias, after.bias)

    def results(self, baseline: Measured) -> RunResults:
        return RunResults(
            accuracy=self.accuracy,
            baseline=baseline.accuracy,
            above_baseline=compare(baseline.accuracy, self.accuracy),
            bias=self.bias,
        )


def measured(effect: float, seed: int = 0) -> Measured:
    both = counterfactuals(effect, seed)
    return Measured(both, Accuracy()(both), Bias(permutations=60)(both))


def run_of(results: RunResults, name: str = "guilds.csv", **settings: Any) -> FewShotRun:
    """A run with these results, as `run` returns it."""
    counts = {
        label: {"men": round(100 * (1 - share)), "women": round(100 * share), "leaning": leaning}
        for (label, share), leaning in zip(SHARES.items(), LEANING, strict=True)
    }
    record = {
        "data": {
            "name": name,
            "texts": 600,
            "digest": "d1",
            "left_out": {"no text": 3},
            "classes": counts,
        },
        "encoder": {"source": "mini", "fingerprint": "e1"},
        "versions": {"evenhand": "0"},
        "arguments": ["lab", "fewshot", "run", "--data", name],
    }
    chosen = RunSettings(ways=3, shots=4, queries=4, **settings)
    return FewShotRun(Path(), chosen, record, (), (), {"split 0, seed 0": curve(0.7)}, results)


def with_parts(m: Any, *queries: str, details: dict[str, Any] | None = None, **fields: Any) -> Any:
    """The measurement or comparison with other fields in the parts of these names."""

    def other(part: Any) -> Any:
        if part.query not in queries:
            return part
        return replace(part, details={**part.details, **(details or {})}, **fields)

    return replace(m, parts=tuple(map(other, m.parts)))


def stage_of(
    network: str,
    runs: dict[str, RunResults],
    changes: dict[str, tuple[Comparison, Comparison]],
    **details: Any,
) -> StageResult:
    """A network as its stage has it."""

    def marked(result: Any, mitigation: str, role: str) -> Any:
        about = {**result.details, "network": network, "mitigation": mitigation, "role": role}
        return replace(result, details=about)

    measurements = [
        marked(m, name, role)
        for name, run in runs.items()
        for role, m in (
            ("performance", run.accuracy),
            ("baseline", run.baseline),
            ("bias", run.bias),
        )
    ]
    comparisons = [marked(run.above_baseline, name, "above baseline") for name, run in runs.items()]
    comparisons += [
        marked(c, name, role)
        for name, pair in changes.items()
        for role, c in zip(("performance", "bias"), pair, strict=True)
    ]
    return StageResult(
        name=network,
        kind="fewshot",
        title=network,
        subject="fewshot",
        measurements=tuple(measurements),
        comparisons=tuple(comparisons),
        details={"network": network, "mitigations": list(runs), **details},
    )


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
    rows = [row for part in parts(spec) for row in part.get("data", {}).get("values", [])]
    return list({json.dumps(row): row for row in rows}.values())


def data(chart: Chart) -> list[dict[str, Any]]:
    return rows_in(spec_of(chart))


def panel(chart: Chart, title: str) -> list[dict[str, Any]]:
    """The rows of one panel of several."""
    (drawn,) = (
        part
        for part in parts(spec_of(chart))
        if isinstance(part.get("title"), dict) and part["title"]["text"] == title
    )
    return [row for row in rows_in(drawn) if "label" in row]


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
