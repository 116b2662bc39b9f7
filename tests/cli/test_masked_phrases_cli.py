"""`evenhand masked phrases` as its users meet it."""

import json

import pandas as pd
from cli_shell import failure, output

from evenhand.results import Measurement

OWN = """
carriers = ["Someone {phrase} and [MASK] leaves.", "Today [MASK] {phrase}.", "[MASK] {phrase}."]

[sets.tools.targets]
tools = ["saws the plank", "files the key", "sharpens the axe", "oils the gun"]
yarn = ["spins the wool", "winds the yarn", "sews a dress", "folds the lace"]
"""

WIDER = "Intervals of r: Fisher's or the bootstrap's, at each end the one further out"


def test_own_sets_as_json_with_files(capsys, tmp_path):
    path, folder = tmp_path / "own.toml", tmp_path / "out"
    path.write_text(OWN)
    found = json.loads(
        output(
            capsys, "masked", "phrases", "--set", str(path), "--vectors", "glove",
            "-o", str(folder), "--figure-format", "svg,html", "--json",
        )
    )  # fmt: skip
    assert found["schema"] == "evenhand/2"
    results = [Measurement.from_dict(row) for row in found["measurements"]]
    effects = [m for m in results if m.metric == "phrases"]
    assert [(m.subject, m.query) for m in effects] == [("mini", "tools"), ("glove", "tools")]
    for m in effects:
        for part in (m, m.part("raw", "embedding")):
            assert part.low <= part.value <= part.high
            assert part.details["partitions"] == 70
    correlations = [m for m in results if m.metric == "phrases_pronouns"]
    assert [(m.subject, m.details["pronouns_of"]) for m in correlations] == [
        ("mini", "mini"),
        ("glove", "mini"),
    ]
    within = correlations[0].part("within groups", "phrases")
    assert {"fisher", "bootstrap", "reliability", "corrected"} <= set(within.details)
    assert within.part("spearman").n == within.n == 8
    table = pd.read_csv(folder / "phrases.csv")
    assert len(table) == 4 * 8
    assert set(table["kind"]) == {"stereotyped male", "stereotyped female"}
    saved = json.loads((folder / "results.json").read_text())
    assert len(saved["measurements"][0]["items"]["word"]) == 8
    names = {file.name for file in (folder / "figures").iterdir()}
    assert {
        "effect-sizes.svg",
        "pronouns-mini-raw.html",
        "pronouns-glove-mini-centred.svg",
    } <= names


def test_each_panel_of_the_forest_shows_its_own_source(glove):
    from evenhand.lexicon.phrases import phrases
    from evenhand.masked import load
    from evenhand.masked.metrics.phrases import WordMean
    from evenhand.masked.metrics.phrases import phrases as measure
    from evenhand.report.masked import phrase_charts, phrase_scatter

    small = phrases().select(["neutral"])
    mini, agreement, by_glove, _ = measure(load("mini"), small, embeds={"glove": WordMean(glove)})
    chart = phrase_charts([mini, by_glove]).charts["effect-sizes"].to_dict()
    shown = {
        panel["title"]["text"]: sorted(row["value"] for row in panel["data"]["values"])
        for panel in chart["concat"]
    }
    for m in (mini, by_glove):
        assert shown[m.subject] == sorted([m.value, m.part("raw").value])
    points = phrase_scatter(agreement).to_dict()["layer"][2]["data"]["values"]
    assert len(points) == 36
    assert {"phrase", "association", "log_odds"} <= set(points[0])


def test_table(capsys):
    text = output(capsys, "masked", "phrases", "--set", "neutral")
    for wanted in ("within groups", "anisotropy", "reliability", "mini, centred", WIDER):
        assert wanted in text


def test_bad_input(capsys, tmp_path):
    assert "did you mean 'force'" in failure(capsys, "masked", "phrases", "--set", "forces")
    path = tmp_path / "own.toml"
    path.write_text("[sets.a.targets]\nx = ['a b', 'c d']")
    printed = failure(capsys, "masked", "phrases", "--set", str(path))
    assert "sets.a.targets: expected two named lists, got 1" in printed
    for old, new, key in (
        ("winds the yarn", "winds [MASK] yarn", "sets.tools.targets.yarn"),
        ("oils the gun", "oils <mask> gun", "sets.tools.targets.tools"),
        ("carriers", "control = ['a [MASK]', 'b']\ncarriers", "control"),
        ("\n[sets", "[attributes]\nx = ['he', 'a']\ny = ['she', '[MASK]']\n[sets", "attributes.y"),
    ):
        path.write_text(OWN.replace(old, new, 1))
        printed = failure(capsys, "masked", "phrases", "--set", str(path))
        assert f"own.toml: {key}: expected a phrase without a mask, got '" in printed
    printed = failure(capsys, "masked", "phrases", "--set", str(path), "--set", "b.toml")
    assert "expected one file, got 2" in printed


def test_phrases_of_filtered_sentences(capsys, tmp_path):
    text, accepted, folder = (tmp_path / name for name in ("s.txt", "accepted.jsonl", "out"))
    text.write_text(
        "The drummer sits at the back of the stage tapping her foot.\n"
        "The engineer lost her keys.\n"
        "The farmer repairs his tractor in the barn.\n"
        "The teacher waves at her class.\n"
        "The pilot checks his watch.\n"
    )
    output(capsys, "text", "filter", str(text), "-o", str(accepted))
    arguments = ("masked", "phrases", "--sentences", str(accepted))
    found = json.loads(output(capsys, *arguments, "-o", str(folder), "--json"))
    m = Measurement.from_dict(*found["measurements"])
    assert m.query == "filtered sentences"
    assert "the foot" in pd.read_csv(folder / "phrases.csv")["phrase"][0]
    assert "knocks the fighter down" in output(capsys, *arguments)
    assert "--set" in failure(capsys, *arguments, "--set", "force")
