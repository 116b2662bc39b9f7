from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from evenhand.charts import Chart, save_charts, to_svg
from evenhand.cli import run
from evenhand.errors import InputError, UnknownNameError
from evenhand.posterior import (
    Fit,
    Fitted,
    Priors,
    Table,
    compare_tables,
    fit_models,
    measure_contrasts,
    measure_levels,
    read_table,
    simulate,
)
from evenhand.posterior.checks import assess, check_posterior
from evenhand.posterior.contrasts import Change
from evenhand.report import posterior as forests
from evenhand.report import posterior as pictures
from evenhand.report.posterior import LOOKS, change_charts, fit_charts, telling_words

ORDER = [
    "contrasts",
    "word-deltas",
    "levels",
    "word-means",
    "coefficients",
    "densities",
    "radial-{}",
    "radial-{}",
    "priors-crossed",
    "priors-coefficients",
    "check",
]


def small(delta: float = -0.2, seed: int = 1) -> Table:
    return simulate(delta=delta, seed=seed, words=(3, 3), stereotypes=(4, 4), human=8, neutral=10)


@pytest.fixture(scope="module")
def fitted() -> Fitted:
    return fit_models(small(), draws=400)


@pytest.fixture(scope="module")
def crossed(fitted: Fitted) -> Fit:
    return fitted.fits["crossed"]


@pytest.fixture(scope="module")
def change() -> Change:
    table = small()
    noise = 0.01 * np.random.default_rng(0).standard_normal(table.rows)
    after = table.with_distance(table.distance + 0.1 * (table.connection == 0) + noise, "after")
    return compare_tables(table, after, draws=400)


def parts(spec: Any) -> Iterator[dict[str, Any]]:
    """Every rectangle of a specification, the whole first."""
    yield spec
    for key in ("layer", "concat", "vconcat", "hconcat"):
        for part in spec.get(key, ()):
            yield from parts(part)


def data(chart: Chart) -> list[dict[str, Any]]:
    """All rows of a chart, in the order of its parts."""
    return [
        row for part in parts(chart.to_dict()) for row in part.get("data", {}).get("values", [])
    ]


def intervals(chart: Chart) -> list[dict[str, Any]]:
    return [row for row in data(chart) if "inner_low" in row]


def ends(row: Mapping[str, Any]) -> tuple[float, ...]:
    return tuple(row[key] for key in ("value", "low", "high", "inner_low", "inner_high"))


def texts(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)  # noqa: S314
    return ["".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text")]


def check_set(fitted: Fitted) -> None:
    figures = fit_charts(assess(fitted), Priors())
    assert figures.skipped == {}
    words = iter(telling_words(fitted.table))
    assert list(figures.charts) == [
        name.format(next(words)) if "{}" in name else name for name in ORDER
    ]
    for name, chart in figures.charts.items():
        svg = to_svg(chart)
        assert len(data(chart)) <= 5000, name
        assert len(texts(svg)) > 5, name
        assert "NaN" not in svg, name
        assert "undefined" not in svg, name


@pytest.mark.slow
def test_every_chart_of_simulated_data_is_drawn(fitted: Fitted) -> None:
    check_set(fitted)


@pytest.mark.slow
def test_every_chart_of_the_thesis_religion_table_is_drawn(shared: Path) -> None:
    table = read_table(shared / "data" / "cosine" / "religionReddit.csv")
    check_set(fit_models(table, draws=160))
    assert telling_words(table)[0] == "muslim"


def test_the_contrasts_are_those_of_both_models(fitted: Fitted, crossed: Fit) -> None:
    naive = fitted.fits["coefficients"]
    measured = {
        forests.CROSSED: measure_contrasts(crossed, 0.8),
        forests.PUBLISHED: measure_contrasts(naive, 0.8),
    }
    chart = forests.contrast_forest(measured, "a table")
    drawn = {(row["series"], row["label"]): row for row in intervals(chart)}
    assert len(drawn) == 8
    for fit, series in ((crossed, forests.CROSSED), (naive, forests.PUBLISHED)):
        wide, narrow = measure_contrasts(fit, 0.8), measure_contrasts(fit, 0.5)
        for name, m in wide.items():
            row = drawn[series, name.replace("-", " − ")]
            assert ends(row) == (m.value, m.low, m.high, narrow[name].low, narrow[name].high)
    assert next(iter(drawn)) == (forests.CROSSED, "associated − different")
    words = texts(to_svg(chart))
    assert "P(< 0)" in words
    assert any("80 %" in word for word in words)
    assert any(re.fullmatch(r"0\.\d{3}|[<>]\s0\.\d{3}", word) for word in words)
    alone = {forests.CROSSED: measured[forests.CROSSED]}
    assert len(intervals(forests.contrast_forest(alone, "a table"))) == 4


def test_word_deltas_are_sorted_within_their_class(crossed: Fit) -> None:
    delta = measure_contrasts(crossed)["associated-different"]
    rows = intervals(forests.delta_forest(delta, "a table"))
    expected = {part.query: part for part in delta.select("word")}
    words = [row for row in rows if row["label"] in expected]
    assert {row["label"] for row in words} == set(expected)
    for row in words:
        m = expected[row["label"]]
        assert ends(row)[:3] == (m.value, m.low, m.high)
    classes = [expected[row["label"]].details["class"] for row in words]
    assert classes == sorted(classes, key=classes.index)
    for label in set(classes):
        means = [r["value"] for r, c in zip(words, classes, strict=True) if c == label]
        assert means == sorted(means)
    of_class = [ends(row)[:3] for row in rows if row["label"] not in expected]
    assert sorted(of_class) == sorted((m.value, m.low, m.high) for m in delta.select("class"))


def test_levels_of_several_topics_share_one_scale(crossed: Fit) -> None:
    chart = forests.level_forests({"one": crossed, "two": crossed})
    domains = {
        str(part["encoding"]["x"]["scale"]["domain"])
        for part in parts(chart.to_dict())
        if "scale" in part.get("encoding", {}).get("x", {})
    }
    assert len(domains) == 1
    m = measure_levels(crossed)["associated"]
    assert ends(intervals(chart)[0])[:3] == (m.value, m.low, m.high)


def test_levels_refuse_models_on_different_scales(fitted: Fitted, crossed: Fit) -> None:
    with pytest.raises(InputError, match="one model with levels, got coefficients, crossed"):
        forests.level_forests({"a": crossed, "b": fitted.fits["coefficients"]})
    with pytest.raises(InputError, match="got baseline"):
        forests.level_forests({"a": fitted.fits["baseline"]})


def test_word_means_before_and_after_are_paired(change: Change) -> None:
    chart = forests.word_means({"before": change.before, "after": change.after})
    drawn = intervals(chart)
    for when, fit in (("before", change.before), ("after", change.after)):
        found = [row for row in drawn if row["series"] == when]
        measured = [part for level in measure_levels(fit).values() for part in level.parts]
        assert len(found) == len(measured) == 24
        assert sorted(ends(r)[:3] for r in found) == sorted(
            (m.value, m.low, m.high) for m in measured
        )
    with pytest.raises(InputError, match="before and after, got a, b"):
        forests.word_means({"a": change.before, "b": change.after})


def test_connections_keep_their_colours_in_every_panel(crossed: Fit) -> None:
    svg = to_svg(forests.word_means({"table": crossed}))
    for colour, _ in LOOKS.values():
        assert svg.lower().count(f'fill="{colour.lower()}"') >= len(crossed.table.words)


def test_changes_carry_all_three_intervals(change: Change) -> None:
    chart = forests.change_forest(list(change.contrasts().values()))
    drawn = {(row["label"], row["series"]): row for row in intervals(chart)}
    for name, c in change.contrasts().items():
        for when, m in (("before", c.before), ("after", c.after), ("change", c.change)):
            row = drawn[name.replace("-", " − "), when]
            assert ends(row)[:3] == (m.value, m.low, m.high)
    assert any("by construction" in text for text in texts(to_svg(chart)))


def test_densities_enclose_one_with_and_without_human(fitted: Fitted) -> None:
    spec = pictures.distance_densities(fitted.table).to_dict()
    above, below = ({row["series"] for row in part["data"]["values"]} for part in spec["concat"])
    assert below - above == {"word about people"}
    rows = spec["concat"][1]["data"]["values"]
    for kind in below:
        x, y = np.array([(r["x"], r["density"]) for r in rows if r["series"] == kind]).T
        assert float((np.diff(x) * (y[1:] + y[:-1]) / 2).sum()) == pytest.approx(1, abs=0.03)


def test_densities_of_a_table_without_human_words_name_their_axis(fitted: Fitted) -> None:
    table = fitted.table
    shown = texts(to_svg(pictures.distance_densities(table.select(table.connection != 2))))
    assert shown.count("cosine distance") == 1
    assert "with words about people" not in shown


def test_the_radius_is_the_distance(fitted: Fitted) -> None:
    table, word = fitted.table, "word2"
    drawn = [row for row in data(pictures.radial(table, word, seed=4)) if "similarity" in row]
    mine = table.select_words([word])
    distance = dict(zip((mine.attributes[j] for j in mine.attribute), mine.distance, strict=True))
    for row in drawn:
        assert np.hypot(row["x"], row["y"]) == pytest.approx(distance[row["word"]])
        assert row["similarity"] == pytest.approx(1 - distance[row["word"]])
    kinds = [row["kind"] for row in drawn]
    assert list(map(kinds.count, dict.fromkeys(kinds))) == [4, 4, 5, 5]
    angles = np.unwrap([np.arctan2(row["y"], row["x"]) for row in drawn])
    assert np.diff(angles) == pytest.approx(np.diff(angles)[0])


def test_radial_controls_follow_the_seed(fitted: Fitted) -> None:
    def chosen(seed: int) -> list[str]:
        chart = pictures.radial(fitted.table, "word1", seed=seed)
        return [row["word"] for row in data(chart) if "similarity" in row]

    assert chosen(1) == chosen(1)
    assert chosen(1) != chosen(2)
    shown = texts(to_svg(pictures.radial(fitted.table, "word1", seed=1)))
    assert {"0.5", "1", "1.5", "word1", *chosen(1)} <= set(shown)
    with pytest.raises(InputError, match="no protected word 'nobody'"):
        pictures.radial(fitted.table, "nobody")


def test_prior_curves_follow_the_prior_that_was_chosen(crossed: Fit) -> None:
    def width(priors: Priors) -> float:
        spec = pictures.prior_curves(crossed, priors).to_dict()
        rows = spec["concat"][0]["data"]["values"]
        high = [row["x"] for row in rows if row["series"] == "prior" and row["y"] >= 0.5]
        return float(max(high) - min(high))

    half_maximum = 2 * np.sqrt(2 * np.log(2))
    for sd in (0.5, 0.25):
        given = Priors().update([f"crossed.delta_sd={sd}"])
        assert width(given) == pytest.approx(half_maximum * sd, abs=0.05)


def test_the_prior_of_m_is_drawn(fitted: Fitted) -> None:
    for model, panels in (("baseline", 2), ("coefficients", 6), ("separate", 2)):
        spec = pictures.prior_curves(fitted.fits[model], Priors()).to_dict()
        assert len(spec["concat"]) == panels
        rows = spec["concat"][0]["data"]["values"]
        prior = max((row for row in rows if row["series"] == "prior"), key=lambda row: row["y"])
        assert prior["x"] == pytest.approx(1, abs=0.03)
    with pytest.raises(InputError, match="got paper"):
        pictures.prior_curves(fitted.fits["paper"], Priors())


def test_topics_before_and_after_share_a_figure(change: Change, crossed: Fit) -> None:
    times = {"before": change.before, "after": change.after}
    chart = forests.topic_forests({"religion": times, "gender": {"before": crossed}})
    drawn = intervals(chart)
    assert [row["series"] for row in drawn] == ["before", "after"] * 4 + ["before"] * 4
    m = measure_levels(change.after)["associated"]
    assert ends(drawn[1])[:3] == (m.value, m.low, m.high)
    one = forests.topic_forests({"a": {"before": crossed}, "b": {}})
    assert one.to_dict() == forests.level_forests({"a": crossed}).to_dict()


def test_prior_charts_have_the_posterior_where_it_is(crossed: Fit) -> None:
    spec = pictures.prior_curves(crossed, Priors()).to_dict()
    rows = spec["concat"][0]["data"]["values"]
    peak = max((row for row in rows if row["series"] == "posterior"), key=lambda row: row["y"])
    assert peak["x"] == pytest.approx(float(np.median(crossed.draws["delta"])), abs=0.05)
    assert len(spec["concat"]) == 7


def test_the_check_distinguishes_the_crossed_model(fitted: Fitted) -> None:
    found = {name: check_posterior(fit) for name, fit in fitted.fits.items()}
    saved = {name: [check.to_dict() for check in checks] for name, checks in found.items()}
    rows = {row["label"]: row for row in data(forests.check_forest(saved)) if "series" in row}
    assert list(rows) == list(fitted.fits)
    for name, checks in found.items():
        check = next(c for c in checks if c.statistic == forests.INTRA_CLASS)
        assert (rows[name]["low"], rows[name]["high"]) == (check.low, check.high)
        assert rows[name]["observed"] == check.observed
    assert rows["crossed"]["series"] == "yes"
    assert rows["separate"]["series"] == "no"


def test_what_cannot_be_drawn_is_named(fitted: Fitted) -> None:
    only = Fitted(fitted.table, {"baseline": fitted.fits["baseline"]}, {})
    figures = fit_charts(assess(only), Priors(), words=["word1"])
    assert list(figures.charts) == ["densities", "radial-word1", "priors-baseline", "check"]
    few = fitted.table.select(fitted.table.attribute == 0).select_words(["word1"])
    report = assess(Fitted(few, only.fits, {}))
    figures = fit_charts(report, Priors())
    assert "three different distances" in figures.skipped["densities"]


@pytest.mark.slow
def test_charts_are_saved_whole_in_every_format(
    change: Change, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    charts = change_charts(change).charts
    first = {"changes": charts["changes"]}
    paths = save_charts(first, tmp_path, ("svg", "pdf", "html"))
    assert [path.name for path in paths] == ["changes.svg", "changes.pdf", "changes.html"]
    assert paths[1].read_bytes().startswith(b"%PDF-")
    assert b"%%EOF" in paths[1].read_bytes()[-32:]
    page = paths[2].read_text(encoding="utf-8")
    assert not re.search(r"<(script|link)[^>]+(src|href)=", page)
    with pytest.raises(UnknownNameError, match="pfd"):
        save_charts(first, tmp_path, ("pfd",))

    def broken(*arguments: object) -> None:
        raise OSError("disk full")

    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    monkeypatch.setattr("os.fsync", broken)
    with pytest.raises(OSError, match="disk full"):
        save_charts({"changes": charts["levels"]}, tmp_path, ("pdf",))
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.slow
def test_the_command_draws_into_its_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    import pandas as pd

    table = small()
    path, out = tmp_path / "d.csv", tmp_path / "out"
    pd.DataFrame(
        {
            "protectedWord": [table.words[i] for i in table.word],
            "wordToCompare": [table.attributes[j] for j in table.attribute],
            "wordClass": [table.attribute_class[j] for j in table.attribute],
            "cosineDistance": table.distance,
            "connection": [list(LOOKS)[k] for k in table.connection],
        }
    ).to_csv(path)
    fit = ("posterior", "fit", str(path), "--family", "crossed", "--draws", "160", "--seed", "2")
    assert run((*fit, "-o", str(out), "--figure-format", "svg,pdf", "--figure-word", "word3")) == 0
    names = {file.name for file in (out / "figures").iterdir()}
    assert {"contrasts.svg", "contrasts.pdf", "radial-word3.svg", "priors-crossed.pdf"} <= names
    assert not [name for name in names if name.endswith(".html") or "word1" in name]
    assert "figures/" in capsys.readouterr().out
    assert run((*fit, "-o", str(out), "--figure-word", "nobody")) == 2
    assert "no protected word 'nobody'" in capsys.readouterr().err
    assert run((*fit, "--figure-word", "word3")) == 2
    assert "expected -o FOLDER" in capsys.readouterr().err
    assert run((*fit, "-o", str(out), "--figure-format", "svg,png")) == 2
    assert "expected some of svg, pdf, html, got 'png'" in capsys.readouterr().err
