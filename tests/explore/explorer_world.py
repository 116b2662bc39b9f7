"""A small explorer: simulated models, a hand-made audit, predictions; its address and token."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from evenhand.answers.table import Answers, read_answers
from evenhand.cache import Cache
from evenhand.explore.run import PredictionTable, read_prediction_table
from evenhand.explore.subjects import Subjects
from evenhand.models.asking import WORDS
from evenhand.report.findings import Findings, StageResult
from evenhand.report.verdicts import Number, Verdict, VerdictTest
from evenhand.results import Items, Measurement
from evenhand.simulate import causal, masked
from evenhand.vectors import Vectors

TOKEN = "the-token-of-this-run"  # noqa: S105
PORT = 8750
ORIGIN = f"http://127.0.0.1:{PORT}"


def measurement(metric: str, query: str, **more: Any) -> Measurement:
    known: dict[str, Any] = {"value": 0.77, "low": 0.7, "high": 0.8, "n": 3, "ideal": 0.5}
    known |= {"worse": "away", "interval": "a test's", "p_value": 0.001}
    return Measurement(metric=metric, query=query, **{**known, **more})


def make_findings() -> Findings:
    """An audit with a verdict whose test has items, and one whose test is a part."""
    items = Items(
        {
            "masked": ["[MASK] sang.", "=1+1 [MASK]", "Then [MASK] left."],
            "verdict": ["male", "female", "male"],
            "bias": [0.9, float("nan"), 0.4],
            "top": [["he", "she"], ["she"], []],
        }
    )
    parts = (measurement("professions", "difference", by="group", value=0.1, low=0.0, high=0.2),)
    stages = (
        StageResult(
            name="pronouns",
            kind="pronouns",
            title="model: pronouns",
            subject="masked",
            measurements=(measurement("pronouns", "built-in sentences", items=items),),
        ),
        StageResult(
            name="professions",
            kind="professions",
            title="model: professions",
            subject="masked",
            measurements=(measurement("professions", "all", parts=parts),),
        ),
        StageResult(
            name="odds",
            kind="odds",
            title="data: odds",
            subject="corpus",
            measurements=(measurement("odds", "nurse"), measurement("odds", "judge")),
        ),
    )

    def test(metric: str, query: str, **known: float) -> VerdictTest:
        numbers = {"value": 0.77, "low": 0.7, "high": 0.8, "p_value": 0.001, "p": 0.002}
        return VerdictTest(label=metric, metric=metric, query=query, **{**numbers, **known})

    verdicts = (
        Verdict(
            subject="masked",
            name="tiny",
            topic="gender",
            level="strong evidence",
            sentence="It expects a man.",
            numbers=(Number(label="Score", value=0.77, low=0.7, high=float("inf")),),
            tests=(
                test("pronouns", "built-in sentences", p=0.206, draws=1000),
                test("professions", "difference"),
            ),
        ),
        Verdict(
            subject="corpus",
            name="letters",
            topic="gender",
            level="some evidence",
            sentence="Nurses are women.",
            tests=(test("odds", "judge"), test("unknown", "x")),
        ),
    )
    return Findings(
        subjects={"masked": {"name": "tiny"}},
        settings={},
        topics=(),
        stages=stages,
        verdicts=verdicts,
        run={"time": "2026-11-17T00:00:00"},
    )


def make_predictions(folder: Path) -> PredictionTable:
    """Three texts with versions; one error, one flip."""
    rows = [
        ("1", "original", "She nurses.", "f", "nurse", "nurse"),
        ("1", "swapped", "He nurses.", "f", "nurse", "judge"),
        ("2", "original", "He judges.", "m", "judge", "nurse"),
        ("2", "swapped", "She judges.", "m", "judge", "nurse"),
        ("3", "original", "It was decided by the court.", "m", "judge", "judge"),
    ]
    columns = ["item", "version", "bio", "gender", "y_true", "y_pred"]
    path = folder / "test.csv"
    lines = [",".join(row) for row in (columns, *rows)]
    path.write_text("\n".join(lines), encoding="utf-8")
    return read_prediction_table(str(path), group=["gender"], text="bio")


HOSTILE = "<img src=x onerror=window.pwned=1></script><script>window.pwned=1</script>\x1b\u202e"


def make_answers(folder: Path) -> Answers:
    """Two items in two wordings for two groups, seven samples; one refused, one without text."""
    rows = []
    for item, topic in (("nurse", "care"), ("judge", "law")):
        for wording in ("describe", "story"):
            for gender, name in (("woman", "Mary"), ("man", "John")):
                for sample in range(7):
                    text, outcome = f"{name} is number {sample}.", "answered"
                    if (item, wording, sample) == ("nurse", "story", 5):
                        text, outcome = ("I can't help with that.", "refused")
                    if (item, gender, sample) == ("judge", "man", 6):
                        text, outcome = ("", "empty")
                    if sample == 1:
                        text += HOSTILE + " and so on" * 100
                    prompt = f"{wording} {name}, a {item}"
                    row = {"item": item, "topic": topic, "wording": wording, "gender": gender}
                    race = ("Black", "white")[sample % 2]
                    row |= {"race": race, "prompt": prompt, "text": text, "outcome": outcome}
                    rows.append({**row, "stars": sample, "verdict": HOSTILE if sample else None})
    path = folder / "answers.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    groups = ["gender", "race"]
    return read_answers(str(path), group=groups, score="stars", label="verdict")


def make_subjects(vectors: Vectors, folder: Path) -> Subjects:
    """A masked and a causal model, vectors, an audit, predictions and answers."""
    other = dict.fromkeys(WORDS, 0.01)
    table = {"lost": {"his": 0.4, "her": 0.1, "their": 0.05}, "[CLS]": {"he": 0.2, "she": 0.3}}
    words = {"said": {"he": 0.3, "she": 0.1}, "he": {"left": 0.5}, "she": {"left": 0.25}}
    words |= {key: {} for key in ("[BOS]", "[UNK]", "left")}
    words = {word: {**row, "[UNK]": 0.1} for word, row in words.items()}
    return Subjects(
        models={
            "masked": masked.bigram_model({**table, "other": other}, name="masked"),
            "causal": causal.bigram_model(words, name="causal"),
        },
        vectors={"glove": vectors},
        findings=make_findings(),
        predictions=make_predictions(folder),
        collected=make_answers(folder),
        cache=Cache(folder / "cache"),
    )
