"""The sections on stages of an audit, built from what was saved alone."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from evenhand.audit import posterior
from evenhand.audit.stages import Options, Silent, run_stage
from evenhand.fewshot.data import Dataset
from evenhand.files import to_json
from evenhand.report.blocks import Figure, PageTable, Text
from evenhand.report.findings import Findings, StageResult
from evenhand.report.methods import methods
from evenhand.report.stages import stage_blocks, subject_section
from evenhand.report.verdicts import judge_subject
from evenhand.results import Comparison, Estimate, Measurement
from evenhand.simulate import world
from evenhand.vectors.store import Vectors
from masked_worlds import World, audited_data, audited_model

PLACES = ("wall", "door", "fence", "gate", "tree", "stage", "river", "house", "tent", "road")
DATA = Dataset.of(
    [
        f"The drummer sits {where} the {what} tapping her foot."
        for what in PLACES
        for where in ("by", "near")
    ]
    + [f"Rain fell on the {what}." for what in PLACES],
    ["music"] * 20 + ["weather"] * 10,
    ["F"] * 16 + ["M"] * 12 + ["F"] * 2,
    name="<b>drums & rain",
)


@pytest.fixture(scope="module")
def found(tmp_path_factory) -> Findings:
    folder = tmp_path_factory.mktemp("found")
    with pytest.MonkeyPatch.context() as patch:
        model = audited_model(World(bias=0.7, slope=0.7, embedded=1), DATA, folder / "m", patch)
    data = audited_data(DATA, folder / "d")
    tuned = StageResult(
        name="finetune",
        kind="finetune",
        title="tuned",
        subject="masked",
        measures=False,
        details=tuned_content(),
        comparisons=(*score_changes(), professions_change()),
    )
    return replace(
        model,
        subjects={**model.subjects, **data.subjects},
        stages=(*data.stages, *model.stages, tuned),
    )


@pytest.fixture(scope="module")
def data(found):
    return subject_section(found, "corpus")


@pytest.fixture(scope="module")
def model(found):
    return subject_section(found, "masked")


def professions_change() -> Comparison:
    m = Measurement(
        metric="professions",
        query="leaning",
        value=0.7,
        low=0.6,
        high=0.8,
        n=9,
        ideal=0.0,
        worse="away",
        interval="",
    )
    change = Estimate(value=-0.1, low=-0.2, high=0.1)
    return Comparison(
        before=m, after=replace(m, value=0.6), change=change, interval="", paired=6132
    )


def score_changes() -> list[Comparison]:
    """What a fine-tuning changed."""

    def change(query: str, ideal: float | None) -> Comparison:
        before, after = (
            Measurement(
                metric="pronouns",
                query=query,
                value=value,
                low=value - 0.04,
                high=value + 0.04,
                n=120,
                ideal=ideal,
                worse="away",
                interval="",
            )
            for value in (0.7, 0.6)
        )
        return Comparison(
            before=before,
            after=after,
            change=Estimate(value=-0.1, low=-0.14, high=-0.06),
            interval="",
            paired=120,
            details={
                "distance": None,
                "sentences": "built-in" if query.endswith("built-in sentences") else "held out",
            },
        )

    measures = {"mean bias": 0.5, "mean |bias - .5|": 0.0, "pseudo-perplexity": None}
    other = {"mean bias": 0.5, "mean |bias - .5|": 0.0}
    measures |= {f"{query}, built-in sentences": ideal for query, ideal in other.items()}
    return [change(query, ideal) for query, ideal in measures.items()]


def tuned_content() -> dict:
    """A fine-tuning as the stage saves it: what JSON makes of it."""
    content = {
        "settings": {"top_k": 10},
        "data": {"sentences": 44, "built_in_sentences": 120},
        "training": {
            "documents": 900,
            "tokens": 160_000,
            "epochs": 1.0,
            "best": {"step": 40},
            "evaluation_loss": {"before": 2.2, "after": 1.3},
        },
        "notes": ["a note"],
        "curve": [
            {"step": 0, "epoch": 0.0, "training": None, "evaluation": 2.2},
            {"step": 40, "epoch": 1.0, "training": 1.5, "evaluation": 1.3},
        ],
        "weights": 8,
        "data_name": "drums",
    }
    return json.loads(to_json(content))


def blocks(section, kind):
    return [block for part in section.parts for block in part.blocks if isinstance(block, kind)]


def test_every_part_is_there_with_its_figures(data, model):
    assert [part.name for part in data.parts] == ["corpus-odds", "corpus-filter"]
    assert [part.name for part in model.parts] == [
        "masked-pronouns",
        "masked-professions",
        "masked-phrases",
        "masked-finetune",
    ]
    figures = [*data.figures(), *model.figures()]
    assert len({figure.name for figure in figures}) == len(figures) > 8
    for figure in figures:
        assert figure.caption.startswith("How to read it")
        assert figure.words
        assert "NaN" not in figure.svg
        assert "undefined" not in figure.svg


def test_every_sentence_can_be_searched(found, model):
    items = found.measured("pronouns")[0].items
    tables = [t for t in blocks(model, PageTable) if "Masked" in t.headers]
    shown = {row[list(t.headers).index("Masked")].text for t in tables for row in t.rows}
    assert {item["masked"] for item in items} <= shown


def test_tables_agree_with_what_was_measured(found, data, model):
    m = next(m for m in found.measured("odds") if m.query == "music")
    odds = next(t for t in blocks(data, PageTable) if t.caption == "The results")
    assert m.value in [row[1].value for row in odds.rows]
    [expected] = found.measured("professions")[0].select("contrast")
    parts = [t for t in blocks(model, PageTable) if t.caption == "The results, part by part"]
    [row] = [row for t in parts for row in t.rows if row[1].text == f"contrast: {expected.query}"]
    assert row[2].value == expected.value


def test_fine_tuning_says_what_changed_and_what_it_cost(model):
    part = model.parts[-1]
    words = " ".join(block.words for block in part.blocks if isinstance(block, Text))
    assert "44 of held-out texts of the same data, and 120 built-in sentences" in words
    [table] = [block for block in part.blocks if isinstance(block, PageTable)]
    assert "nearer the ideal" in [cell.text for cell in table.rows[0]]
    last = [cell.text for cell in table.rows[-1]]
    assert last[0].startswith("Profession association")
    assert "no clear change" in last
    assert "6,132" in last


def test_the_page_stays_small(data, model):
    for section in (data, model):
        figures = sum(len(figure.inlined) for figure in section.figures())
        cells = sum(
            len(c.text) + 30 for t in blocks(section, PageTable) for row in t.rows for c in row
        )
        assert figures + cells < 1_000_000


def test_an_audit_saved_without_the_rules_of_the_filter_is_shown_the_same(found, data):
    older = tuple(
        replace(stage, details={k: v for k, v in stage.details.items() if k != "rules"})
        for stage in found.stages
    )
    shown = subject_section(replace(found, stages=older), "corpus")
    tables = [[t.rows for t in blocks(section, PageTable)] for section in (shown, data)]
    assert tables[0] == tables[1]
    assert any("no gendered pronoun" in c.text for t in tables[0] for row in t for c in row)


def test_a_posterior_answers_first_and_shows_its_check(tmp_path, monkeypatch):
    monkeypatch.setattr(posterior, "DRAWS", 640)
    w = world(bias=0.5, dim=30, vocabulary=200, protected=3, stereotypes=5, seed=2)
    v = Vectors.from_arrays(w.words, w.matrix)
    (stage,) = posterior.posterior_stages(v, [w.topic], Options(quick=True, work=tmp_path))
    result, _ = run_stage(stage, tmp_path, stage.key({}), Silent())
    shown = [*stage_blocks("p", [result])]
    assert shown[0].words.startswith("Stereotypes are nearer to their own class, by ")
    check = next(b for b in shown if isinstance(b, Figure) and b.name == "p-check")
    assert "far from all of them" in check.caption
    [delta] = [m for m in result.measurements if m.query == "associated-different"][:1]
    for low, high, start in ((0.1, 0.3, "Stereotypes are farther"), (-0.1, 0.3, "Whether")):
        moved = replace(result, measurements=(replace(delta, value=0.2, low=low, high=high),))
        [text, *_] = stage_blocks("p", [moved])
        assert text.words.startswith(start)
    rough = replace(delta, low=-0.3, high=-0.01, details={**delta.details, "interval_error": 0.02})
    [text, *_] = stage_blocks("p", [replace(result, measurements=(rough,))])
    assert text.words.startswith("Whether")  # as the judge and the shell say
    assert "Monte Carlo error" in text.words
    assert "0 is among the plausible values" not in text.words


def test_what_was_left_out_is_said(found):
    kinds = ("odds", "pronouns", "professions", "phrases", "finetune")
    skipped = tuple(
        StageResult(
            name=kind,
            kind=kind,
            title=kind,
            subject="corpus" if kind == "odds" else "masked",
            measures=kind != "finetune",
            skipped=({"metric": kind, "query": "", "reason": f"no {kind} here"},),
        )
        for kind in kinds
    )
    bare = replace(found, stages=skipped)
    warnings = [
        block.words
        for section in (subject_section(bare, "corpus"), subject_section(bare, "masked"))
        for block in blocks(section, Text)
        if block.kind == "warning"
    ]
    assert len(warnings) == 5
    assert all(f"no {kind} here" in " ".join(warnings) for kind in kinds)
    [verdict] = judge_subject(bare, "masked")
    assert verdict.level == "not measured"
    assert "no pronouns here" in verdict.sentence


def test_failed_stages_leave_a_verdict_that_says_so(found):
    failed = tuple(
        replace(stage, measurements=(), details={}, failed="out of memory")
        for stage in found.stages
        if stage.kind in ("pronouns", "professions", "phrases")
    )
    [verdict] = judge_subject(replace(found, stages=failed), "masked")
    assert verdict.level == "not measured"
    assert "out of memory" in verdict.sentence


def test_a_verdict_says_what_it_had_to_do_without(found):
    kept = tuple(stage for stage in found.stages if stage.kind == "pronouns")
    [verdict] = judge_subject(replace(found, stages=kept), "masked")
    assert verdict.level == "some evidence"
    assert verdict.sentence.endswith("Not measured: Profession association and Phrase WEAT.")
    few = replace(kept[0].measurements[0], n=19)
    undecided = replace(kept[0], measurements=(few,))
    [verdict] = judge_subject(replace(found, stages=(undecided,)), "masked")
    assert verdict.level == "not measured"
    assert "fewer than 20 items" in verdict.sentence


def test_nothing_measured_gives_empty_sections(found):
    bare = replace(found, stages=())
    assert not subject_section(bare, "corpus").parts
    assert not subject_section(bare, "masked").parts
    assert judge_subject(bare, "masked") == []


def test_every_metric_is_explained(found):
    kinds = {"odds": "corpus", "pronouns": "masked", "professions": "masked", "phrases": "masked"}
    for kind, part in kinds.items():
        for m in found.measured(kind):
            assert m.metric in methods(part)
    for method in (*methods("corpus").values(), *methods("masked").values()):
        assert method.question.endswith("?")
        assert method.source
        assert method.formula
