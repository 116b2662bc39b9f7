"""The published results of the grid, and the tables of the page that are printed from them."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

from published import drop_zero, read_rows

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "docs" / "results"


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "benchmarks" / "grid_tables.py"))


@pytest.mark.parametrize(
    ("grid", "tables"),
    [
        (
            "wikibios-minilm",
            ["width", "measure", "task", "network", "baseline", "mitigation"],
        ),
        ("wikibios-mini", ["network", "mitigation"]),
        ("events-minilm", ["network", "mitigation"]),
        ("wikibios-seeds", ["seed"]),
        ("wikibios-minilm-tuned", ["network", "mitigation"]),
        ("wikibios-minilm-tuned-corners", ["mitigation"]),
        ("simulated", ["network", "mitigation"]),
    ],
)
def test_the_tables_of_the_page_are_those_of_the_published_results(script, grid, tables):
    names = ("results.md", "experiments/fewshot-grids.md")
    page = "".join((ROOT / "docs" / name).read_text(encoding="utf-8") for name in names)
    for table in tables:
        assert script[f"{table}_table"](RESULTS / grid) in page


@pytest.mark.parametrize(
    ("grid", "calibrated"),
    [
        ("wikibios-minilm", "calibrate (all)"),
        ("wikibios-mini", "calibrate (all)"),
        ("wikibios-minilm-tuned", "calibrate (all)"),
        ("wikibios-minilm-tuned-corners", "calibrate (all)"),
        ("events-minilm", "calibrate (all)"),
        ("simulated", "calibrate"),
    ],
)
def test_the_summary_of_the_grids_has_the_numbers_of_their_tables(script, grid, calibrated):
    lines = script["mitigation_table"](RESULTS / grid).splitlines()[2:]
    rows = {cells[0]: cells for cells in (line[2:-2].split(" | ") for line in lines)}
    changes = [
        rows[name][2] if name in rows else "not run" for name in ("neutralize (train)", calibrated)
    ]
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert f"| {' | '.join([rows['none'][1], rows['none'][-1], *changes])} |" in page


@pytest.mark.parametrize(
    ("grid", "cells", "splits"),
    [
        ("wikibios-minilm", 9 * 4 * 4 * 7, "5"),
        ("wikibios-mini", 9 * 4 * 4 * 3, "5"),
        ("events-minilm", 9 * 4 * 7, "4"),
        ("wikibios-seeds", 2 * 2 * 4 * 4, "5"),
        ("wikibios-minilm-tuned", 9 * 2, "3"),
        ("wikibios-minilm-tuned-corners", 2 * 2 * 7, "3"),
        ("simulated", 9 * 4 * 4 * 4, "5"),
    ],
)
def test_every_cell_of_the_grids_is_published(script, grid, cells, splits):
    rows = script["read"](RESULTS / grid, "results")
    keys = ("network", "ways", "shots", "mitigation", "seeds")
    assert len(rows) == len({tuple(row[key] for key in keys) for row in rows}) == cells
    assert {row["splits"] for row in rows} == {splits}


@pytest.mark.parametrize(
    ("text", "short"), [("0.25", ".25"), ("-0.25", "-.25"), ("−0.25", "−.25"), ("10.2", "10.2")]
)
def test_only_a_zero_before_the_point_is_dropped(text, short):
    assert drop_zero(text) == short


def test_two_seeds_are_compared_within_each_cell(script, tmp_path):
    grids = []
    for seed, value in ((0, 0.5), (1, 0.7)):
        report = tmp_path / str(seed) / "report"
        report.mkdir(parents=True)
        names = ("accuracy", "association", "epsilon")
        head = ",".join(f"{name},{name}_low,{name}_high" for name in names)
        cells = ",".join([f"{value},0,0.392"] * 3)
        text = f"network,ways,shots,seeds,{head}\nmaml,2,2,{seed},{cells}\n"
        (report / "results.csv").write_text(text, encoding="utf-8")
        grids.append(tmp_path / str(seed))
    script["publish"](grids, tmp_path / "out")
    # between seeds .2² / 2 = .02, for new classes (.392 / 2 / 1.96)² = .01
    assert "| maml | accuracy | .1414 | .1000 | 200.0% |" in script["seed_table"](tmp_path / "out")


def test_counts_of_intervals_have_the_number_after_holm(script):
    """Four intervals exclude 0; after Holm over the six settings two of them do."""
    settings = [(0.1, 0.9, 0.001)] * 2 + [(0.1, 0.9, 0.03)] * 2 + [(-0.1, 0.9, 0.4)] * 2
    names = ("x_low", "x_high", "x_p_value")
    cells = [dict(zip(names, map(str, row), strict=True)) for row in settings]
    assert script["counted"](cells, "x") == "4 (2) of 6"
    sizes = [{name: row[name] for name in names[:2]} for row in cells]
    assert script["counted"](sizes, "x") == "–"


def test_what_the_page_says_of_the_networks_and_of_equations_20_and_21(script):
    networks = script["read"](RESULTS / "wikibios-minilm", "networks")
    ps = [float(row["association_p_value"]) for row in networks if row["mitigation"] == "none"]
    assert sum(p < 0.05 for p in script["holm"](ps)) == 8
    cells = script["read"](RESULTS / "wikibios-minilm", "results")
    cells = [cell for cell in cells if cell["mitigation"] == "none"]
    of_ease = {
        name: [
            abs(float(cell[name]) - abs(float(cell[own]))) > 2e-6  # printed with six digits
            for cell in cells
        ]
        for name, own in (("mu_skew", "skew"), ("mu_stereo", "stereotype"))
    }
    assert sum(of_ease["mu_skew"]) == 107
    both = [c for c, *d in zip(cells, *of_ease.values(), strict=True) if all(d)]
    assert len(both) == 48
    assert all(c["mu_skew"] == c["mu_stereo"] for c in both)


def test_published_files_are_rounded_copies_of_a_report(script, tmp_path):
    report = tmp_path / "grid" / "report"
    report.mkdir(parents=True)
    for name in script["FILES"]:
        text = "network,ways,value,low\nmaml,16,0.123456789,nan\n"
        (report / f"{name}.csv").write_text(text, encoding="utf-8")
    script["publish"]([tmp_path / "grid"], tmp_path / "out")
    expected = {"network": "maml", "ways": "16", "value": "0.123457", "low": "nan"}
    assert script["read"](tmp_path / "out", "effects") == [expected]


def test_numbers_are_written_without_a_leading_zero(script):
    row = {"x": "-0.0304", "x_low": "-0.0004", "x_high": "1.25"}
    assert script["shown"](row, "x") == "−.030 [.000, 1.250]"


def test_the_tables_of_parity_and_training_on_one_version_are_those_published():
    page = (ROOT / "docs" / "experiments" / "fewshot.md").read_text(encoding="utf-8")
    script = runpy.run_path(str(ROOT / "benchmarks" / "fewshot_versions.py"))
    folder = RESULTS / "fewshot-versions"
    runs, changes = (read_rows(folder / f"{name}.csv.gz") for name in ("runs", "changes"))
    for table in script["tables"](runs, changes).split("\n\n"):
        assert table in page
    cost = next(row for row in changes if row["to"] == "parity")
    ends = [f"{-float(cost[name]):.3f}" for name in ("accuracy", "accuracy_high", "accuracy_low")]
    assert "cost of {} [{}, {}] in accuracy".format(*map(drop_zero, ends)) in page
    labels = drop_zero(f"{float(runs[0]['shares_labels']):.3f}")
    assert f"true classes it is {labels}" in page


@pytest.mark.slow
def test_parity_and_training_on_one_version_can_be_computed_again(tmp_path):
    script = runpy.run_path(str(ROOT / "benchmarks" / "fewshot_versions.py"))
    sizes = {"ways": 3, "shots": 2, "queries": 2, "episodes": "12/4/30", "splits": 1}
    data = "simulated:leak=1,per_class=16"
    tables = script["compute"](tmp_path, data, **sizes)
    for name, rows in zip(("runs", "changes"), tables, strict=True):
        script["save_rows"](tmp_path / f"{name}.csv.gz", rows)
    runs, changes = (read_rows(tmp_path / f"{name}.csv.gz") for name in ("runs", "changes"))
    assert [row["run"] for row in runs] == [*script["RUNS"]]
    by_name = {row["run"]: row for row in runs}
    for row in changes:
        for name in script["MEASURES"]:
            first, second = (float(by_name[row[side]][name]) for side in ("from", "to"))
            assert float(row[name]) == pytest.approx(second - first, abs=1e-5)


def test_the_page_of_corpus_versions_has_the_published_numbers():
    page = (ROOT / "docs" / "experiments" / "corpus-versions.md").read_text(encoding="utf-8")
    rows = read_rows(RESULTS / "corpus-versions" / "results.csv.gz")
    checked = 0
    for row in rows:
        on_page = row["metric"] in ("accuracy", "pronouns") or row["query"] == "association"
        contrast = row["query"].startswith("male-leaning")
        if (on_page and row["data"] in ("", "original")) or contrast:
            names = ("value", "low", "high")
            numbers = [drop_zero(f"{float(row[name]):.3f}") for name in names]
            value, low, high = (text.replace("-", "−") for text in numbers)
            assert f"{value} [{low}, {high}]" in page, row
            checked += 1
    losses = runpy.run_path(str(ROOT / "benchmarks" / "corpus_versions.py"))["loss_table"]
    assert losses(RESULTS / "corpus-versions") in page
    assert checked == 6 + 6 + 2 * 2 * 6  # contrast, pronouns; accuracy, association of two networks


def test_the_page_has_the_published_tables_of_encoders_and_of_drift():
    page = (ROOT / "docs" / "experiments" / "fewshot-grids.md").read_text(encoding="utf-8")
    script = runpy.run_path(str(ROOT / "benchmarks" / "fewshot_encoders.py"))
    for name, table, rows in (("corners", "corner_table", 24), ("drift", "drift_table", 8)):
        published = read_rows(RESULTS / "fewshot-encoders" / f"{name}.csv.gz")
        assert len(published) == rows
        assert script[table](published) in page
