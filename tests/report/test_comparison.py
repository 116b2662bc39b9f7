from __future__ import annotations

import csv
import json
import math
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.audit import audit, main
from evenhand.cli import run
from evenhand.errors import FileError, InputError
from evenhand.files import to_json
from evenhand.instruments import compare
from evenhand.judging import simultaneous, widen
from evenhand.lexicon import Topic
from evenhand.lexicon.templates import TemplateSet
from evenhand.models.designs import design
from evenhand.models.metrics.professions import CONTRAST, Professions
from evenhand.report.comparison import (
    AuditComparison,
    ComparedMeasure,
    Side,
    _lines,
    compare_audits,
    comparison_sections,
    difference,
    line_forests,
    write_comparison,
)
from evenhand.report.findings import Findings, StageResult, read_findings
from evenhand.results import Comparison, Items, Measurement
from evenhand.simulate import world
from evenhand.simulate.masked import bigram_model
from evenhand.statistics.intervals import independent_difference, t_mean, wilson
from evenhand.vectors import nulls
from evenhand.vectors.store import Vectors

Make = Callable[..., Path]


@pytest.fixture(scope="module")
def make(tmp_path_factory: pytest.TempPathFactory) -> Make:
    """Small audits of simulated vectors, each made once."""
    made: dict[str, Path] = {}

    def of(
        name: str,
        *,
        bias: float = 0.5,
        dim: int = 30,
        seed: int = 3,
        topic: Any = None,
        **settings: Any,
    ) -> Path:
        if name not in made:
            w = world(bias=bias, dim=dim, vocabulary=600, seed=seed)
            v = Vectors.from_arrays(w.words, w.matrix, name=f"<i>{name}")
            asked = topic(w.topic) if topic else w.topic
            out = tmp_path_factory.mktemp("compared") / name
            with pytest.MonkeyPatch.context() as patch:
                few = partial(nulls.dimension_spread, dims=(2, 10, 50), points=100, repeats=4)
                patch.setattr(nulls, "dimension_spread", few)
                patch.setattr(main, "write_report", lambda place, *_: [place])
                audit(v, topics=[asked], out=out, quick=True, skip=("posterior",), **settings)
            made[name] = out
        return made[name]

    return of


@pytest.fixture(scope="module")
def two(make: Make) -> AuditComparison:
    return compare_audits([make("strong"), make("weak", bias=0.2)])


def lines(found: AuditComparison) -> dict[str, ComparedMeasure]:
    return {line.metric: line for line in found.lines}


def computed(change: Comparison | str | None) -> str:
    """How a difference was computed; "none" where there is a reason why it could not be."""
    return change.details["computed"] if isinstance(change, Comparison) else "none"


def unpaired_interval(first, second):
    ends = ((m.value, m.low, m.high) for m in (first, second))
    return independent_difference(*ends, first.prob, second.prob)


def measurement(value: float, low: float, high: float, **more: Any) -> Measurement:
    message = {"metric": "m", "query": "q", "n": 9, "ideal": 0.0, "worse": "away", "interval": ""}
    return Measurement(**{**message, "value": value, "low": low, "high": high, **more})


def test_paired_differences_are_those_of_compare(two: AuditComparison, make: Make) -> None:
    before, after = (read_findings(make(name)).measured("measures") for name in ("strong", "weak"))
    found = {(line.metric, line.query): line for line in two.lines}
    paired = 0
    for one, other in zip(before, after, strict=True):
        made = found[one.metric, one.query].differences[1]
        assert made is not None
        if one.metric == "ripa":
            assert isinstance(made, str)
            assert "length of the vectors" in made
            continue
        assert isinstance(made, Comparison)
        expected = compare(one, other)
        assert (computed(made), made.paired) == ("paired", expected.paired)
        assert made.change.value == expected.change.value
        assert made.change.low <= expected.change.low
        assert made.change.high >= expected.change.high
        paired += 1
    assert paired >= 6
    family = sum(computed(line.differences[1]) in ("paired", "unpaired") for line in two.lines)
    one, other = ({m.metric: m for m in ms}["association"] for ms in (before, after))
    alone, made = compare(one, other), found["association", one.query].differences[1]
    ends = (alone.change.value, alone.change.low, alone.change.high)
    wider = widen(ends, 0.95, simultaneous(0.95, family), df=alone.paired - 1)
    assert (made.change.low, made.change.high) == pytest.approx(wider[1:])


def test_the_planted_difference_is_found(two: AuditComparison) -> None:
    line = lines(two)["association"]
    made = line.differences[1]
    assert isinstance(made, Comparison)
    assert made.direction
    assert made.change.low < made.change.value < made.change.high
    assert made.change.value == pytest.approx(0.285, abs=0.02)
    assert line.effect(1) == "better"
    weat = lines(two)["weat"].differences[1]
    assert isinstance(weat, Comparison)
    assert weat.change.value < 0


def test_pairing_is_narrower_than_two_intervals(two: AuditComparison) -> None:
    line = lines(two)["association"]
    first, second = line.sides
    assert first is not None
    assert second is not None
    made = difference(first, second)
    _, low, high = unpaired_interval(first, second)
    assert isinstance(made, Comparison)
    assert made.change.high - made.change.low < 0.7 * (high - low)


def test_an_audit_of_the_same_vectors_has_nothing_to_tell(make: Make, tmp_path: Path) -> None:
    copy = shutil.copytree(make("strong"), tmp_path / "copy")
    found = compare_audits([make("strong"), copy])
    assert {computed(d) for line in found.lines for d in line.differences if d} == {"same input"}
    assert lines(found)["association"].effect(1) == "no clear change"
    measures = comparison_sections(found)[1]
    assert measures.parts == []
    assert "not shown: word vectors" in measures.blocks[-1].words


def test_cosines_of_other_dimensions_get_no_difference(make: Make) -> None:
    found = lines(compare_audits([make("strong"), make("wide", dim=50)]))
    for metric in ("association", "direct_bias", "same", "mac", "rnd"):
        made = found[metric].differences[1]
        assert isinstance(made, str)
        assert "30 and in 50 dimensions" in made
    assert computed(found["weat"].differences[1]) == "paired"


def test_other_word_lists_are_not_compared(make: Make) -> None:
    def fewer(topic: Topic) -> Topic:
        words = {name: found[:-1] for name, found in topic.stereotypes.items()}
        return replace(topic, stereotypes=words)

    found = compare_audits([make("strong"), make("fewer", bias=0.2, topic=fewer)])
    made = [d for line in found.lines for d in line.differences if d]
    assert made
    assert all(isinstance(d, str) and "word lists" in d for d in made)


def test_words_without_a_vector_are_not_paired() -> None:
    items = [{"word": f"w{i}", "without": 0.1 * i, "score": 1.0} for i in range(5)]
    one = measurement(1, 0, 2, items=Items(items))
    other = measurement(3, 2, 4, items=Items(items[:-1]))
    assert computed(difference(one, other)) == "unpaired"
    assert computed(difference(one, replace(other, items=Items(items)))) == "paired"
    lost = Items([{**items[0], "without": None}, *items[1:]])
    assert computed(difference(one, replace(other, items=lost))) == "unpaired"


def test_no_interval_no_difference() -> None:
    one = measurement(1, 0, 2)
    assert computed(difference(one, measurement(math.nan, 0, 1))) == "none"
    assert computed(difference(one, measurement(1, math.nan, 2))) == "none"
    assert computed(difference(one, measurement(1, -math.inf, 2))) == "none"


def test_a_mean_of_sentences_is_paired_over_all_of_them() -> None:
    rng = np.random.default_rng(0)
    easy = rng.normal(0.5, 0.2, 60)

    def scored(shift: float, undecided: set[int]) -> Measurement:
        scores = easy + shift + rng.normal(0, 0.01, 60)
        kept = [score for i, score in enumerate(scores) if i not in undecided]
        mean, low, high = t_mean(kept)
        items = Items(
            {"word": f"s{i}", "score": score, "full_verdict": "undecided" if i in undecided else ""}
            for i, score in enumerate(scores)
        )
        return measurement(mean, low, high, metric="pronouns", items=items, ideal=0.5)

    every = difference(scored(0, set()), scored(0.05, set()))
    assert (computed(every), every.paired) == ("paired", 60)
    assert every.change.high - every.change.low < 0.012
    assert every.change.low < 0.05 < every.change.high
    some = difference(scored(0, {1}), scored(0.05, {2, 3}))
    assert computed(some) == "paired"
    off = replace(scored(0, set()), value=0.9)
    assert computed(difference(off, scored(0, set()))) == "unpaired"


def test_the_mean_without_a_sentence_is_the_jackknife_of_the_mean() -> None:
    scores = [(0.2, 0.5), (0.4, 0.4), (0.9, 0.7), (0.6, 0.1)]
    one, two = (
        measurement(
            float(np.mean(column)),
            0,
            1,
            metric="pronouns",
            items=Items({"word": str(i), "score": score} for i, score in enumerate(column)),
        )
        for column in zip(*scores, strict=True)
    )
    made = difference(one, two)
    expected = t_mean([after - before for before, after in scores])
    assert (made.change.value, made.change.low, made.change.high) == pytest.approx(expected)


def test_unpaired_intervals_are_the_usual_ones_where_symmetric() -> None:
    found = unpaired_interval(measurement(1, 0.5, 1.5), measurement(2, 1.2, 2.8))
    half = math.hypot(0.5, 0.8)
    assert found == pytest.approx((1, 1 - half, 1 + half))


def test_newcombe_s_interval_of_two_shares() -> None:
    one, two = (measurement(*wilson(hits, n)) for hits, n in ((48, 80), (56, 70)))
    assert unpaired_interval(one, two) == pytest.approx((0.2, 0.0524, 0.3339), abs=1e-4)


def test_a_level_is_brought_to_the_first_one_s() -> None:
    one = measurement(0, -1.959964, 1.959964)
    other = measurement(1, 1 - 1.644854, 1 + 1.644854, prob=0.9)
    half = 1.959964 * math.sqrt(2)
    assert unpaired_interval(one, other) == pytest.approx((1, 1 - half, 1 + half), abs=1e-5)


def test_odds_ratios_are_compared_as_ratios() -> None:
    one = measurement(2, 1, 4, metric="odds", ideal=1.0)
    other = measurement(6, 3, 12, metric="odds", ideal=1.0)
    made = difference(one, other)
    assert (computed(made), made.kind) == ("unpaired", "ratio")
    factor = 2 ** math.sqrt(2)
    ends = (made.change.value, made.change.low, made.change.high)
    assert ends == pytest.approx((3, 3 / factor, 3 * factor))
    assert made.direction
    assert not difference(one, replace(other, value=2, low=0.5, high=8)).direction


def test_an_unpaired_interval_covers() -> None:
    rng = np.random.default_rng(7)
    hit = 0
    for _ in range(600):
        one = measurement(*t_mean(rng.normal(0, 1, 25)))
        two = measurement(*t_mean(rng.normal(1, 3, 40)))
        _, low, high = unpaired_interval(one, two)
        hit += low <= 1 <= high
    assert 0.925 <= hit / 600 <= 0.98


@pytest.mark.parametrize(
    ("way", "first", "second", "expected"),
    [
        ("higher", 1.0, 3.0, "worse"),
        ("higher", 3.0, 1.0, "better"),
        ("lower", 1.0, 3.0, "better"),
        ("away", -3.0, -1.0, "nearer the ideal"),
        ("away", 1.0, 3.0, "further from the ideal"),
        ("away", -1.0, 2.0, "further from the ideal, on its other side"),
        ("higher", 1.0, 1.1, "no clear change"),
    ],
)
def test_how_an_audit_reads_against_the_first(
    way: str, first: float, second: float, expected: str
) -> None:
    one, two = (measurement(x, x - 0.2, x + 0.2, worse=way) for x in (first, second))
    line = ComparedMeasure(
        subject="vectors",
        topic="",
        metric="m",
        query="q",
        sides=(one, two),
        differences=(None, difference(one, two)),
    )
    assert line.effect(1) == expected
    control = replace(line, metric="weat", query="weat-1")
    assert control.effect(1) == "a control"


def test_verdicts_stand_side_by_side(two: AuditComparison) -> None:
    ((key, judged),) = two.verdicts.items()
    assert key == ("vectors", "simulated", "")
    assert all(verdict is not None for verdict in judged)


def test_the_json_view_is_strict_and_whole(two: AuditComparison) -> None:
    message = json.loads(to_json(two.to_dict()))
    assert [one["letter"] for one in message["audits"]] == ["A", "B"]
    assert message["verdicts"][0]["verdicts"][1]["topic"] == "simulated"
    by_metric = {row["metric"]: row for row in message["measures"] if row["audit"] == "B"}
    made = lines(two)["association"].differences[1]
    assert isinstance(made, Comparison)
    assert by_metric["association"]["difference_low"] == made.change.low
    assert by_metric["association"]["difference_p"] == made.p
    assert by_metric["ripa"]["difference"] is None


def test_the_rows_have_the_corrected_p_values(two: AuditComparison) -> None:
    line = lines(two)["association"]
    sides = tuple(m and replace(m, p_corrected=0.0123, family=7) for m in line.sides)
    rows = replace(two, lines=(replace(line, sides=sides),)).rows()
    assert [(row["p_corrected"], row["family"]) for row in rows] == [(0.0123, 7)] * 2


def test_the_finding_counts_measures_of_bias(two: AuditComparison) -> None:
    tally = two.tally(1)
    [finding] = two.findings
    less, more, unclear = (tally[name] for name in ("less_biased", "more_biased", "unclear"))
    total = len([*less, *more, *unclear])
    assert "association" in {line.metric for line in less}
    assert not {line.metric for line in two.lines if line in more} & {"association"}
    assert not {line.metric for line in unclear} & {"accuracy", "analogy_accuracy"}
    for line in less:
        assert line.effect(1).startswith(("better", "nearer"))
    fewer, others = (len(part) or "none" for part in (less, more))
    counts = f"in {fewer} of {total} measures, more biased in {others}"
    assert finding.startswith(f"B is less biased than A {counts}")
    assert two.tally(1, "vectors") == tally
    assert not any(two.tally(1, "masked").values())


def test_nothing_differs_with_the_same_input(make: Make, tmp_path: Path) -> None:
    copy = shutil.copytree(make("strong"), tmp_path / "copy")
    compared = compare_audits([make("strong"), copy])
    assert compared.findings == [
        "No measure of bias of B differs in a way that can be compared with A."
    ]


def test_labels_stand_for_letters(make: Make, tmp_path: Path) -> None:
    folders = [make("strong"), make("weak", bias=0.2)]
    compared = compare_audits(folders, {"A": "before", "B": "after <1>"})
    assert compared.findings[0].startswith("“after <1>” is less biased than “before” in ")
    text = write_comparison(compared, tmp_path / "c.html").read_text(encoding="utf-8")
    assert "<h1>“after &lt;1&gt;” is less biased than “before” in " in text
    assert "after &lt;1&gt; − before" in text
    assert [side["label"] for side in compared.to_dict()["audits"]] == ["before", "after <1>"]
    for labels, wrong in (
        ({"C": "x"}, r"label: expected the letter of an audit \(A to B\), got 'C'"),
        ({"A": " "}, "label: expected a text for A, got nothing"),
        ({"A": "x", "B": "x"}, "label: expected different labels, got 'x' twice"),
        ({"A": "B"}, "label: expected different labels, got 'B' twice"),
    ):
        with pytest.raises(InputError, match=wrong):
            compare_audits(folders, labels)


def test_the_csv_has_a_row_for_each_measure_and_audit(two: AuditComparison, tmp_path: Path) -> None:
    path = write_comparison(two, tmp_path / "compared.csv")
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == sum(m is not None for line in two.lines for m in line.sides)
    line = lines(two)["association"]
    first, second = (row for row in rows if row["metric"] == "association")
    assert (first["audit"], second["audit"]) == ("A", "B")
    assert first["difference"] == ""
    gap = line.differences[1]
    assert isinstance(gap, Comparison)
    numbers = [float(second[name]) for name in ("value", "difference", "difference_low")]
    assert numbers == [line.sides[1].value, gap.change.value, gap.change.low]  # type: ignore[union-attr]
    assert (second["computed"], second["effect"]) == ("paired", "better")


def test_the_json_file_is_the_document(two: AuditComparison, tmp_path: Path) -> None:
    written = json.loads(write_comparison(two, tmp_path / "compared.json").read_text())
    assert written["findings"] == two.findings
    assert written["audits"][0]["against_first"] is None
    counted = written["audits"][1]["against_first"]
    assert counted["compared"] == sum(map(len, two.tally(1).values()))
    association = [m for m in written["measures"] if m["metric"] == "association"]
    assert [m.get("effect") for m in association] == [None, "better"]


def test_the_command_says_what_was_found(
    make: Make, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = [str(make("strong")), str(make("weak", bias=0.2))]
    out = tmp_path / "page.html"
    assert run(["report", *folders, "--label", "b=after", "-o", str(out)]) == 0
    finding, place = capsys.readouterr().out.splitlines()
    assert finding.startswith("“after” is less biased than A in ")
    assert place == f"comparison: {out}"
    assert run(["report", *folders, "--json", "-o", str(tmp_path / "c.csv")]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["findings"][0].startswith("B is less biased than A in ")
    assert (tmp_path / "c.csv").is_file()
    assert run(["report", *folders, "--label", "after"]) == 2
    assert "expected A=TEXT, got 'after'" in capsys.readouterr().err
    assert run(["report", folders[0], "--json"]) == 2
    assert "--json is for the comparison of several audits" in capsys.readouterr().err


def side_of(kind: str, m: Measurement, findings: Findings, letter: str) -> Side:
    stage = StageResult(
        name="professions",
        kind="professions",
        title="Professions",
        subject=kind,
        measurements=(m,),
    )
    subjects = {kind: {"name": letter, "fingerprint": letter}}
    alone = replace(findings, subjects=subjects, stages=(stage,), verdicts=())
    return Side(letter=letter, folder=letter, findings=alone)


def test_models_of_two_kinds_are_paired_on_the_contrast_of_professions(make: Make) -> None:
    findings = read_findings(make("strong"))
    model, sentences = Professions.example()
    first = Professions().measure(model, sentences)
    words = {"he": {"is": 0.6, "was": 0.2}, "she": {"is": 0.2, "was": 0.5}}
    jobs = {"pilot": 0.5, "guard": 0.1, "nurse": 0.2}
    second = Professions().measure(
        bigram_model({"[CLS]": {"he": 0.5, "she": 0.1}, **words, "a": jobs}), sentences
    )
    masked = side_of("masked", first, findings, "A")
    found = {
        line.query: line for line in _lines([masked, side_of("causal", second, findings, "B")])
    }
    assert found[CONTRAST].subject == "masked"
    gap, expected = found[CONTRAST].differences[1], compare(first, second).part(CONTRAST)
    assert expected.change.value == 0
    assert expected.change.high == math.inf, "two templates that agree say nothing of others"
    assert isinstance(gap, str)
    assert not found["professions"].shared, "means of two kinds are not on one scale"
    half = design(
        TemplateSet(sentences.templates[:1], sentences.pairs),
        sentences.professions,
        sentences.pairs,
    )
    other = side_of("causal", Professions().measure(model, half), findings, "B")
    gap = {line.query: line for line in _lines([masked, other])}[CONTRAST].differences[1]
    assert computed(gap) != "paired", "other templates are not paired"


def test_ranges_are_not_taken_for_intervals(two: AuditComparison) -> None:
    metrics = {line.metric for line in two.lines}
    assert "leave_one_out(weat)" not in metrics
    assert "dimension_spread" not in metrics


def test_three_audits_are_each_compared_with_the_first(make: Make, tmp_path: Path) -> None:
    names = [make("strong"), make("weak", bias=0.2), make("none", bias=0.0, seed=5, prob=0.9)]
    found = compare_audits(names)
    line = lines(found)["weat"]
    assert [computed(d) for d in line.differences] == ["none", "paired", "paired"]
    assert [side.letter for side in found.sides] == ["A", "B", "C"]
    path = write_comparison(found, tmp_path / "three.html")
    assert "not of the same level" in path.read_text(encoding="utf-8")
    assert len(found.findings) == 2


def test_what_differs_is_listed(two: AuditComparison) -> None:
    setup = comparison_sections(two)[-1]
    differing, same = (b for b in setup.blocks if b.kind == "table")
    shown = {row[0].text: [cell.text for cell in row[1:]] for row in differing.rows}
    assert shown["Vectors: name"] == ["<i>strong", "<i>weak"]
    assert len(set(shown["Vectors: SHA-256 of the content"])) == 2
    held = {row[0].text for row in same.rows}
    assert {"Seed", "Vectors: dimensions", "Version of numpy"} <= held
    assert not held & set(shown)


def test_the_page_has_the_numbers_and_nothing_from_elsewhere(make: Make, tmp_path: Path) -> None:
    compared = compare_audits([make("strong"), make("weak", bias=0.2)])
    path = write_comparison(compared, tmp_path / "comparison.html")
    text = path.read_text(encoding="utf-8")
    found = compare_audits([make("strong"), make("weak")])
    made = lines(found)["association"].differences[1]
    assert isinstance(made, Comparison)
    change = made.change
    assert f"{change.value:.3f}" in text
    assert f"[{change.low:.3f}, {change.high:.3f}]".replace("-", "−") in text
    assert "paired, 40 items" in text
    assert "<i>strong" not in text
    assert "&lt;i&gt;strong" in text
    assert not re.search(r"https?://", text)
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert {link[1:] for link in re.findall(r'href="(#[^"]+)"', text)} <= set(ids)
    assert text.count("How to read it:") == text.count("<figure ")


def test_it_says_that_mitigations_are_not_compared(two: AuditComparison) -> None:
    def message(found: AuditComparison) -> bool:
        [section] = [one for one in comparison_sections(found) if one.name == "measures"]
        return any("is not compared here" in getattr(one, "words", "") for one in section.blocks)

    assert message(two)
    sides = [
        replace(
            side,
            findings=replace(
                side.findings,
                stages=tuple(stage for stage in side.findings.stages if stage.kind != "mitigation"),
            ),
        )
        for side in two.sides
    ]
    assert not message(replace(two, sides=tuple(sides)))


def test_a_mark_tells_its_audit_and_the_difference(two: AuditComparison) -> None:
    drawn = line_forests(two.lines, [side.name for side in two.sides]).to_dict()
    rows = _values(drawn)
    marks = [row for row in rows if row.get("series") == "B: <i>weak"]
    association = next(row for row in marks if row["label"] == "Association contrast")
    line = lines(two)["association"]
    assert line.sides[1] is not None
    assert association["value"] == line.sides[1].value
    assert association["difference"].startswith("0.285 [")
    assert association["difference"].endswith("from A, paired")


def _values(spec: Any) -> list[dict[str, Any]]:
    if isinstance(spec, dict):
        own = spec.get("data", {}).get("values", []) if isinstance(spec.get("data"), dict) else []
        return own + [row for value in spec.values() for row in _values(value)]
    return [row for value in spec for row in _values(value)] if isinstance(spec, list) else []


def test_folders_that_cannot_be_compared_are_named(make: Make, tmp_path: Path) -> None:
    good = make("strong")
    with pytest.raises(InputError, match="expected two audits or more, got 1"):
        compare_audits([good])
    with pytest.raises(InputError, match=r"got .* twice"):
        compare_audits([good, good.parent / "." / good.name])
    with pytest.raises(InputError, match="nowhere: expected the folder of an audit, got nothing"):
        compare_audits([good, tmp_path / "nowhere"])
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="file: expected the folder of an audit, got a file"):
        compare_audits([good, tmp_path / "file"])
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match=r"results\.json: no such file"):
        compare_audits([good, tmp_path / "empty"])


@pytest.fixture(scope="module")
def texts(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Two audits of data that were drawn from the same simulated world."""
    place = tmp_path_factory.mktemp("texts")
    for seed in (1, 2):
        drawn = f"simulated:per_class=30,seed={seed}"
        audit(data=drawn, skip=("fewshot",), out=place / str(seed), quick=True)
    return [place / "1", place / "2"]


def test_two_draws_of_the_same_texts_hardly_differ(texts: list[Path]) -> None:
    found = compare_audits(texts)
    made = [d for line in found.lines for d in line.differences if d]
    assert len(made) == 28
    assert {(computed(d), d.kind) for d in made} == {("unpaired", "ratio")}
    assert sum(d.direction != "" for d in made) <= 4
    line = found.lines[0]
    first, second = line.sides
    assert first is not None
    assert second is not None
    assert isinstance(line.differences[1], Comparison)
    assert line.differences[1].change.value == pytest.approx(second.value / first.value)


def test_audits_with_nothing_in_common_are_refused(make: Make, texts: list[Path]) -> None:
    with pytest.raises(InputError, match=r"in common, got A \(strong\): vectors on simulated; B"):
        compare_audits([make("strong"), texts[0]])
