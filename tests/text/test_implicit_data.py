"""The funnel of several corpora, the published sentences, and the count of their verdicts."""

import csv
import json
import lzma
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "docs" / "data"
sys.path.insert(0, str(ROOT / "benchmarks"))

import funnel  # noqa: E402
import implicit_data  # noqa: E402
import text_filter  # noqa: E402

TEXT = """It rained. The nurse lost her keys.

The engineer raised his arm.
A girl took her kite to the beach.
The nurse lost her keys.
"""


def test_the_funnel_reads_lines_of_files_and_writes_what_it_keeps(tmp_path, monkeypatch, capsys):
    (tmp_path / "a.txt").write_text(TEXT)
    (tmp_path / "b.csv").write_text("id,text\n77,The cook dropped her spoon. It fell.\n")
    arguments = ["kept=a.txt@1:3", "kept=b.csv", "other=a.txt@4:", "--sample", "9", "-o", "out"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["funnel.py", *arguments])
    funnel.main()
    shown = capsys.readouterr().out
    assert "| read | 5 | 2 |" in shown
    assert "| accepted | 3 | 1 |" in shown
    assert "| another word states a sex | 0 | 1 |" in shown
    rows = [json.loads(line) for line in (tmp_path / "out" / "kept.jsonl").read_text().splitlines()]
    assert [(r["source"], r["line"], r["antecedent"]) for r in rows] == [
        ("a.txt", "1", "The nurse"),
        ("a.txt", "3", "The engineer"),
        ("b.csv", "77", "The cook"),
    ]
    counts = json.loads((tmp_path / "out" / "funnel.json").read_text())
    assert counts["kept"]["read"] == counts["kept"]["reason:no_pronoun"] + 3
    with (tmp_path / "out" / "kept.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 3  # fewer than the sample: all of them


def test_the_data_set_has_the_verdicts_of_what_was_judged(tmp_path):
    accepted = tmp_path / "news.jsonl"
    sentences = ["The nurse lost her keys.", "The cook dropped her spoon."]
    accepted.write_text(
        "".join(
            json.dumps({"sentence": s, "masked": s.replace("her", "[MASK]")}) + "\n"
            for s in sentences
        )
    )
    name = implicit_data.sentence_id(sentences[1])
    verdict = {"corpus": "news", "id": name, "verdict": "no", "error": "person"}
    out = tmp_path / "out.csv.xz"
    assert implicit_data.write_corpus(accepted, [verdict], out) == 2
    with lzma.open(out, "rt", newline="") as file:
        assert [row["verdict"] for row in csv.DictReader(file)] == ["", "no"]
    [(judged, (share, low, high), errors)] = implicit_data.precision([verdict] * 4).values()
    assert (judged, share, errors["person"]) == (4, 0.0, 4)
    assert low == 0 < high < 1
    with pytest.raises(SystemExit, match="1 judged sentences are not in it"):
        implicit_data.write_corpus(accepted, [{**verdict, "id": "0"}], out)


def test_published_verdicts_are_of_published_sentences_and_give_the_documented_shares():
    verdicts = implicit_data.read_verdicts(DATA / "implicit-verdicts.csv")
    found = implicit_data.precision(verdicts)
    assert {name: n for name, (n, _, _) in found.items()} == {
        "swag": 92,
        "wikibios": 74,
        "novels": 100,
        "news": 100,
    }
    card = (DATA / "implicit.md").read_text()
    for name in implicit_data.PUBLISHED:
        with lzma.open(
            DATA / f"implicit-{name}.csv.xz", "rt", newline="", encoding="utf-8"
        ) as file:
            rows = {row["id"]: row for row in csv.DictReader(file)}
        for row in rows.values():
            assert row["id"] == implicit_data.sentence_id(row["sentence"])
            assert row["sentence"][int(row["start"]) :].startswith(row["pronoun"])
        judged = {row["id"]: row["verdict"] for row in verdicts if row["corpus"] == name}
        assert judged == {key: row["verdict"] for key, row in rows.items() if row["verdict"]}
        assert f"{len(rows):,}" in card
        assert f"{100 * found[name][1][0]:.0f} %" in card
    assert max(path.stat().st_size for path in DATA.iterdir()) < 100_000


@pytest.mark.slow
def test_the_cost_of_the_resolver_is_the_documented_one():
    shared = ROOT.parent / "shared" / "data"
    if not shared.is_dir():
        pytest.skip(f"needs {shared}")
    table = text_filter.levels(shared)
    assert table in (DATA / "implicit.md").read_text()
    links = text_filter.published_links()
    assert min(confidence for each in links.values() for confidence, _ in each) >= 0.7
