from __future__ import annotations

import re
from itertools import combinations
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import evenhand as eh
from evenhand.charts import Chart, to_svg
from evenhand.report import vectors
from evenhand.report.findings import Findings
from evenhand.report.methods import label_of, scale_of
from evenhand.vectors import projections, wefat


def texts(chart: Chart) -> list[ElementTree.Element]:
    root = ElementTree.fromstring(to_svg(chart))  # noqa: S314
    return list(root.iter("{http://www.w3.org/2000/svg}text"))


def words_of(chart: Chart) -> list[str]:
    return [text.text or "" for text in texts(chart)]


def test_the_forest_has_a_labelled_row_for_each_measure_in_order(findings: Findings) -> None:
    measured = findings.measured("measures")
    shown = words_of(vectors.topic_forest(measured, "simulated"))
    for scale in {scale_of(m.metric) for m in measured}:
        expected = [label_of(m, "simulated") for m in measured if scale_of(m.metric) == scale]
        assert [word for word in shown if word in expected] == expected


def test_every_topic_measure_has_a_scale(findings: Findings) -> None:
    assert all(scale_of(m.metric) for m in findings.measured("measures"))


def test_density_curves_enclose_one(findings: Findings) -> None:
    table = findings.of("measures")[0].distances
    assert table is not None
    values = vectors.distance_densities(table).to_dict()["data"]["values"]
    for kind in vectors.CONNECTIONS.values():
        curve = [(row["x"], row["density"]) for row in values if row["series"] == kind]
        x, y = np.array(curve).T
        area = float((np.diff(x) * (y[1:] + y[:-1]) / 2).sum())
        assert area == pytest.approx(1, abs=0.03)


def test_occupations_and_ends_are_named() -> None:
    v = eh.vectors.load("glove")
    groups = {"male": ["captain", "boss"], "female": ["nurse", "nanny"]}
    shown = words_of(vectors.occupations(projections(v, groups)))
    jobs = [word for word in shown if word in ("captain", "boss", "nurse", "nanny")]
    assert set(jobs[:2]) == {"captain", "boss"}
    assert set(jobs[2:]) == {"nurse", "nanny"}
    assert any("nearer she" in word and "nearer he" in word for word in shown)


def test_wefat_labels_do_not_lie_on_each_other() -> None:
    v, query = eh.vectors.load("glove"), eh.lexicon.wefat("wefat-occupations")
    m = wefat(
        v,
        query.words,
        query.attributes["female"],
        query.attributes["male"],
        query.shares,
        permutations=0,
        query=query.name,
    )
    boxes = []
    for text in texts(vectors.wefat_scatter([m], {query.name: ""})):
        if text.text in query.words:
            x, y = map(float, re.findall(r"-?[\d.]+", text.get("transform", ""))[:2])
            width = 5.0 * len(text.text)
            left = x - width if text.get("text-anchor") == "end" else x
            boxes.append((left, left + width, y))
    assert len(boxes) >= 5
    for (a, b, y), (c, d, z) in combinations(boxes, 2):
        assert abs(y - z) >= 9 or b <= c or d <= a


def test_weat_rows_carry_their_titles() -> None:
    v, query = eh.vectors.load("glove"), eh.lexicon.weat(7)
    measured = eh.measure(v, query, ["weat"], options={"permutations": 100})
    shown = words_of(vectors.weat_forest(measured, {query.name: query.title}))
    assert any("Math and arts" in word for word in shown)


def test_mitigation_panels_name_every_method(findings: Findings) -> None:
    stages = findings.of("mitigation")
    methods = [stage.details["method"] for stage in stages]
    assert len(methods) == 4
    for chart in (
        vectors.mitigation_forests(stages, lambda c: label_of(c.metric)),
        vectors.utility_forests(stages),
    ):
        assert set(methods) <= set(words_of(chart))


def test_saved_figures_are_valid_svg(audited: Path) -> None:
    paths = list((audited / "figures").glob("*.svg"))
    assert len(paths) >= 5
    for path in paths:
        assert ElementTree.parse(path).getroot().tag.endswith("svg")  # noqa: S314
