from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from huggingface_hub import DatasetCard, EvalResult, ModelCard

from evenhand.audit import audit
from evenhand.errors import InputError
from evenhand.report import cards
from evenhand.report.cards import data_card, model_card, summary_markdown, write_cards
from evenhand.report.findings import Findings, read_findings
from evenhand.report.verdicts import Number, Verdict, VerdictTest

NAME = "<b>small & biased"


@pytest.fixture(scope="module")
def of_data(tmp_path_factory: pytest.TempPathFactory) -> Findings:
    out = tmp_path_factory.mktemp("cards") / "out"
    audit(data="simulated:per_class=12", skip=("fewshot",), out=out, quick=True)
    return read_findings(out)


COUNTERFACTUALS = VerdictTest(
    label="Counterfactuals", metric="bias", query="", value=0.1, low=0.05, high=0.15, p=0.0305
)


@pytest.fixture
def mixed(findings: Findings, monkeypatch: pytest.MonkeyPatch) -> Findings:
    """An audit of everything, with verdicts that are made by hand."""
    score = Number(label="Pronoun score", value=0.7, low=0.6, high=0.8, p_value=0.004, ideal=0.5)
    lost = Number(label="Lost", value=math.nan, low=math.nan, high=math.nan)
    open_end = Number(label="Open", value=1.5, low=0.1, high=math.inf)
    judged = [
        Verdict(
            subject="corpus", name="bios", topic="gender", level="none found", sentence="Even."
        ),
        Verdict(
            subject="vectors",
            name=NAME,
            topic="simulated",
            level="none found",
            sentence="Nothing.",
            cannot_mean="Not that there is none.",
        ),
        Verdict(
            subject="masked",
            name="my|bert",
            topic="gender",
            level="some evidence",
            sentence="It leans.",
            numbers=(score, lost),
            cannot_mean="Not that it is fair.",
        ),
        Verdict(
            subject="fewshot",
            name="few-shot on my|bert",
            topic="gender",
            level="strong evidence",
            sentence="It counts.",
            numbers=(open_end,),
            tests=(COUNTERFACTUALS,),
        ),
    ]
    monkeypatch.setattr(cards, "rules", lambda _: [("Masked language model", ["By a rule."])])
    subjects = {
        **findings.subjects,
        "masked": {"name": "my|bert", "source": "/home/me/my-bert", "weights": 1234567},
        "corpus": {
            "name": "bios",
            "source": "hf:someone/bios",
            "texts": 2500,
            "classes": 3,
            "left_out": {"empty text": 4},
        },
    }
    return replace(findings, subjects=subjects, verdicts=tuple(judged))


def front(card: str) -> dict[str, Any]:
    metadata: dict[str, Any] = yaml.safe_load(card.split("---")[1])
    return metadata


def section(card: str, heading: str) -> str:
    return re.split(r"^#+ ", card.split(f" {heading}\n")[1], flags=re.M)[0]


def test_the_hub_reads_the_numbers_of_the_audit(findings: Findings) -> None:
    card = ModelCard(model_card(findings))
    assert card.data.model_name == NAME
    results: list[EvalResult] = card.data.eval_results
    measured = {m.metric: m for m in findings.measured("measures")}
    by_type = {result.metric_type: result for result in results}
    assert set(by_type) == {"association_contrast", "weat"}
    for name, metric in (("association_contrast", "association"), ("weat", "weat")):
        result, m = by_type[name], measured[metric]
        assert result.metric_value == pytest.approx(m.value, rel=1e-5)
        assert result.metric_args["low"] == pytest.approx(m.low, rel=1e-5)
        assert result.metric_args["high"] == pytest.approx(m.high, rel=1e-5)
        assert result.metric_args["p_value"] == pytest.approx(m.p, rel=1e-5)
        assert result.metric_args["prob"] == 0.95
        assert f"{m.low:.3f} to {m.high:.3f}".replace("-", "−") in str(result.metric_name)
        assert (result.task_type, result.verified) == ("feature-extraction", None)


def test_the_index_has_what_the_format_requires(mixed: Findings) -> None:
    (entry,) = front(model_card(mixed))["model-index"]
    assert entry["name"] == "my|bert"
    tasks = {result["task"]["type"]: result for result in entry["results"]}
    assert set(tasks) == {"fill-mask", "text-classification"}
    for result in entry["results"]:
        assert {"type", "name"} <= set(result["dataset"])
        assert all({"type", "name", "value", "args"} <= set(metric) for metric in result["metrics"])
    assert tasks["text-classification"]["dataset"] == {"type": "someone/bios", "name": "bios"}


def test_what_is_no_number_stays_out_of_the_index(mixed: Findings) -> None:
    card = model_card(mixed)
    (entry,) = front(card)["model-index"]
    metrics = {
        metric["name"]: metric for result in entry["results"] for metric in result["metrics"]
    }
    assert not any(name.startswith("Lost") for name in metrics)
    assert metrics["Open (95 % interval 0.100 to ∞)"]["args"] == {"low": 0.1, "prob": 0.95}
    assert ".nan" not in card
    assert ".inf" not in card
    assert "| Lost | – | – to – |" in card


def test_a_model_card_is_about_the_model_alone(mixed: Findings) -> None:
    card = model_card(mixed)
    assert "**my\\|bert, gender: some evidence.** It leans." in card
    assert "**few-shot on my\\|bert, gender: strong evidence.**" in card
    assert "Nothing." not in card
    assert "/home/me" not in card
    assert "Not that it is fair." in section(card, "What “none found” cannot mean")
    assert "| few-shot on my\\|bert, gender | Counterfactuals | 0.030 | undecided |" in card
    assert "By a rule." in section(card, "How it was measured")
    assert "1,234,567" in section(card, "Versions and seed")
    assert "The model is measured here" in section(card, "What these numbers cannot say")


def test_a_card_of_the_vectors_on_request(mixed: Findings) -> None:
    card = model_card(mixed, "vectors")
    (entry,) = front(card)["model-index"]
    assert entry["name"] == NAME
    assert {result["task"]["type"] for result in entry["results"]} == {"feature-extraction"}
    assert "It leans." not in card
    assert mixed.subjects["vectors"]["content_sha256"] in card


def test_names_are_escaped_and_tables_even(findings: Findings, mixed: Findings) -> None:
    for text in (model_card(findings), summary_markdown(findings), model_card(mixed)):
        assert "<b>" not in text.split("---\n")[-1].replace("\\<b>", "")
        for block in re.findall(r"(?:^\|.*\n?)+", text, flags=re.M):
            widths = {len(re.findall(r"(?<!\\)\|", line)) for line in block.splitlines()}
            assert len(widths) == 1, block


def test_versions_seed_and_limits_are_there(findings: Findings) -> None:
    card = model_card(findings)
    assert card.count("## Bias, risks and limitations\n") == 1
    facts = section(card, "Versions and seed")
    assert f"| Seed | {findings.run['seed']} |" in facts
    for package, version in findings.run["versions"].items():
        assert f"| Version of {package} | {version} |".replace("_", "\\_") in facts
    assert "free of bias" in section(card, "What “none found” cannot mean")
    assert "English" in section(card, "What these numbers cannot say")
    assert "weat-10" in section(card, "What was left out")


def test_a_failed_stage_is_named(findings: Findings) -> None:
    broken = [replace(stage, failed="no memory") for stage in findings.of("weat")]
    others = [stage for stage in findings.stages if stage.kind != "weat"]
    card = model_card(replace(findings, stages=(*others, *broken)))
    assert f"{broken[0].title} failed: no memory" in section(card, "What was left out")


def test_the_data_card_counts_and_has_every_class(of_data: Findings) -> None:
    text = data_card(of_data)
    card = DatasetCard(text)
    assert card.data.pretty_name == "simulated:per_class=12"
    assert card.data.size_categories == ["n<1K"]
    measured = of_data.measured("odds")
    rows = section(text, "Odds ratios of the classes").splitlines()
    for m in measured:
        (row,) = [row for row in rows if row.startswith(f"| {m.query} |")]
        ends = f"{m.value:.2f} | {m.low:.2f} to {m.high:.2f} |"
        assert f"| {m.details['male']} | {m.details['female']} | {ends}" in row
    assert "| Classes | 28 |" in text
    assert "| Texts | 336 |" in text
    assert "simulated: what was found" in section(text, "What these numbers cannot say")
    assert "classifiers were trained" not in text


def test_what_the_data_lack_is_named(mixed: Findings) -> None:
    text = data_card(mixed)
    assert "| Left out: empty text | 4 |" in text
    assert DatasetCard(text).data.size_categories == ["1K<n<10K"]
    assert "Odds ratios" not in text


def test_cards_of_what_was_not_audited_are_refused(findings: Findings, of_data: Findings) -> None:
    with pytest.raises(InputError, match=r"data card: expected an audit of data, got .* vectors"):
        data_card(findings)
    with pytest.raises(InputError, match="model or vectors, got one of corpus"):
        model_card(of_data)
    with pytest.raises(InputError, match="an audit of model, got one of vectors"):
        model_card(findings, "model")


def test_the_summary_links_to_files_that_are_there(audited: Path) -> None:
    text = summary_markdown(read_findings(audited))
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert "figures/vectors-measures-simulated-forest.svg" in links
    assert "tables/measurements.csv" in links
    assert all((audited / link).is_file() for link in links)
    assert "strong evidence" in text
    assert "| simulated | hard |" in text


def test_cards_are_written_beside_the_page(audited: Path, tmp_path: Path) -> None:
    for name in ("results.json", "run.json"):
        (tmp_path / name).write_bytes((audited / name).read_bytes())
    written = write_cards(tmp_path)
    assert {path.name for path in written} == {"summary.md", "model_card.md"}
    assert (tmp_path / "model_card.md").read_text() == model_card(read_findings(audited))
    before = [path.read_bytes() for path in written]
    assert [path.read_bytes() for path in write_cards(tmp_path)] == before
    assert {path.name for path in tmp_path.iterdir()} == {
        "results.json",
        "run.json",
        "summary.md",
        "model_card.md",
    }


def test_every_subject_gets_its_card(
    mixed: Findings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cards, "read_findings", lambda _: mixed)
    names = {path.name for path in write_cards(tmp_path)}
    assert names == {"summary.md", "model_card.md", "vectors_card.md", "data_card.md"}
