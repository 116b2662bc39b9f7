"""Judges of generated sentences: hand-computed pushes, and the tables of the page."""

import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))

import generate_judges as study  # noqa: E402


def row(direction, seed, generated, random):
    names = ("seed: m, pronoun", "generated: m, pronoun", "random: m, pronoun")
    scores = dict(zip(names, (seed, generated, random), strict=True))
    return {"guide": "pronouns", "direction": direction, **scores}


def test_pushes_are_towards_the_target_and_a_seed_without_result_counts_with_its_own_score():
    rows = [
        row("male", "1.0", "2.0", "1.5"),  # pushed by 1 and .5
        row("female", "1.0", "0.0", "2.0"),  # pushed by 1 and -1
        row("male", "1.0", "", "0.5"),  # pushed by 0 and -.5
    ]
    found = study.compare([*rows, {**rows[0], "guide": "phrases"}], "m, pronoun", "pronouns")
    assert [m.value for m in found] == pytest.approx([2 / 3, -1 / 3, 1.0])
    assert {m.n for m in found} == {3}
    assert study.judges_of(rows) == ["m, pronoun"]


def test_the_odds_of_a_masked_and_of_a_causal_model_are_of_the_two_versions(monkeypatch):
    import numpy as np

    from evenhand.simulate import causal, masked

    rows = [{"seed": "the cook lost [MASK] spoon", "male": "his", "female": "her"}]
    words = {"the": {}, "cook": {}, "spoon": {}}
    odds = {"lost": {"his": 0.6, "her": 0.2}}
    for model in (masked.bigram_model({**words, **odds}), causal.bigram_model({**words, **odds})):
        monkeypatch.setattr(study, "load", lambda _, model=model: model)
        assert study.pronoun_odds("any", rows, "seed") == pytest.approx([np.log(3)], abs=1e-5)


@pytest.mark.slow
def test_the_generating_model_is_scored_by_pronoun_and_phrase(tmp_path):
    path = tmp_path / "rows.csv.xz"
    study.save(path, study.edit("tale", ["The cook put her spoon on the table."], "phrases"))
    study.score("mini", "mini", path)
    [scored] = study.read_rows(path)
    assert scored["phrase seed"] == "put the spoon on the table"
    assert (scored["male"], scored["female"]) == ("his", "her")
    assert study.judges_of([scored]) == ["mini, pronoun", "mini, phrase"]
    if scored["generated"]:
        side = 1 if scored["direction"] == "male" else -1
        pushed = float(scored["generated: mini, phrase"]) - float(scored["seed: mini, phrase"])
        assert side * pushed > 0


def test_the_page_has_the_published_tables():
    page = (ROOT / "docs" / "experiments" / "generate.md").read_text(encoding="utf-8")
    for table in study.tables(study.RESULTS).split("\n\n"):
        assert table in page
