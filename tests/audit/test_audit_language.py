"""Audits of causal models and sentence encoders: stages, verdicts, page and cards."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

import evenhand as eh
from evenhand.audit import audit, inputs
from evenhand.cli import run
from evenhand.errors import InputError
from evenhand.fewshot.data import Dataset
from evenhand.instruments import LANGUAGE, all_declarations, instruments
from evenhand.lexicon import weat_queries
from evenhand.report.findings import Findings, StageResult
from evenhand.report.stages import coverage_section
from evenhand.report.verdicts import SUBJECTS, explain, judge_subject
from evenhand.simulate.encoders import SimulatedEncoder
from small_sentence_encoder import save_encoder

pytestmark = pytest.mark.slow


def save_causal(folder):
    """A small random causal model that knows the words of the built-in material."""
    mini = eh.models.load("mini").tokenizer
    words = {"<s>": 0, "<unk>": 1}
    for word in sorted(w for w in mini.get_vocab() if w.isalpha()):
        words.setdefault(word, len(words))
    for query in weat_queries():
        for own in (*query.targets.values(), *query.attributes.values()):
            for word in own:
                words.setdefault(word, len(words))
                words.setdefault(word.capitalize(), len(words))
    backend = Tokenizer(models.WordLevel(words, unk_token="<unk>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="<s>", unk_token="<unk>"
    )
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize(("save", "kind"), [(save_causal, "causal"), (save_encoder, "encoder")])
def test_an_audit_of_each_kind(tmp_path, save, kind):
    result = audit(model=save(tmp_path / "small"), out=tmp_path / "out", quick=True)
    assert not result.failed
    declared = [c for c in instruments(kind).values() if c.declaration.audits(kind)]
    assert [stage.kind for stage in result.stages] == [c.declaration.name for c in declared]
    assert {stage.subject for stage in result.stages} == {kind}
    assert {"gender", "race", "age"} <= {verdict.topic for verdict in result.verdicts}
    assert {verdict.subject for verdict in result.verdicts} == {kind}
    page = result.report.read_text()
    assert f"<h2>{SUBJECTS[kind]}<" in page
    assert f"<h2>{SUBJECTS['masked']}<" not in page
    for about in all_declarations(LANGUAGE):
        assert about.label in page
    assert "does not fit this kind" in page
    assert ("that of the sentence with any of the professions" in page) == (kind == "causal")
    saved = json.loads((tmp_path / "out/results.json").read_text())
    assert saved["subjects"].keys() == {kind}
    assert saved["settings"]["parts"] == [kind]
    for name in ("summary.md", "model_card.md"):
        assert "small" in (tmp_path / "out" / name).read_text()
    before = result.report.read_bytes()
    again = audit(model=tmp_path / "small", out=tmp_path / "out", quick=True)
    assert [m.value for m in again.measurements] == [m.value for m in result.measurements]
    assert len(again.report.read_bytes()) == pytest.approx(len(before), rel=0.01)


def findings_of(measurements, subject="encoder", skipped=()):
    stage = StageResult(
        name="seat",
        kind="seat",
        title="SEAT",
        subject=subject,
        measurements=tuple(measurements),
        skipped=tuple(skipped),
    )
    return Findings(
        subjects={subject: {"name": "small"}},
        settings={"parts": [subject]},
        topics=(),
        stages=(stage,),
        run={},
    )


def levels(bias, seed=0):
    measured = [
        eh.models.Seat()(SimulatedEncoder(query, bias=bias, seed=seed), query)
        for query in weat_queries()
    ]
    return {v.topic: v.level for v in judge_subject(findings_of(measured), "encoder")}


def test_verdicts_by_topic():
    clean = [levels(0.0, seed) for seed in range(4)]
    assert list(clean[0]) == ["gender", "age", "disease", "race"]
    assert sum(set(found.values()) <= {"none found", "undecided"} for found in clean) >= 3
    assert not any("strong evidence" in found.values() for found in clean)
    planted = levels(1.0)
    assert (planted["gender"], planted["race"]) == ("strong evidence", "strong evidence")
    # a topic with one test has no strong evidence
    assert planted["age"] == "some evidence"
    against = levels(-1.0)
    assert set(against.values()) == {"some evidence"}


def test_harmless_associations_do_not_decide():
    flowers = eh.models.Seat()(SimulatedEncoder(weat_queries()[0], bias=1.0), weat_queries()[0])
    [verdict] = judge_subject(findings_of([flowers]), "encoder")
    assert (verdict.topic, verdict.level) == ("gender", "not measured")


def test_the_rules_are_written_down():
    for kind in ("causal", "encoder"):
        rules = explain(kind)
        assert rules[0].startswith("Strong evidence: at least two tests")
        assert "SEAT" in rules[0]
    assert not any("SEAT" in rule for rule in explain("masked"))


def test_the_page_says_what_was_not_measured_and_why():
    skip = {"metric": "seat", "query": "", "reason": "no words"}
    [_, table] = coverage_section(findings_of((), skipped=[skip])).blocks
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in table.rows}
    assert rows["SEAT"] == ["yes", "yes", "yes", "not measured: no words"]
    assert rows["GEST"] == ["yes", "yes", "–", "does not fit this kind"]
    [_, table] = coverage_section(findings_of((), "causal")).blocks
    rows = {row[0].text: row[-1].text for row in table.rows}
    assert rows["GEST"].startswith("needs a file: evenhand measure gest MODEL")


def test_data_with_a_causal_model_say_that_few_shot_does_not_fit(tmp_path):
    texts = [f"Number {i}: she sang a song." for i in range(24)]
    data = Dataset.of(texts, ["a", "b"] * 12, name="songs")
    folder = save_causal(tmp_path / "small")
    result = audit(model=folder, data=data, out=tmp_path / "out", quick=True)
    reasons = [skip["reason"] for stage in result.stages for skip in stage.skipped]
    assert "expected a masked model or an encoder, got a causal language model" in reasons


def test_parts_of_other_kinds_cannot_be_all_that_is_left(tmp_path):
    folder = save_encoder(tmp_path / "small")
    with pytest.raises(InputError, match="nothing is left to audit: all of encoder is skipped"):
        audit(model=folder, out=tmp_path / "out", skip=["encoder"])
    given = inputs.gather(None, folder, None)
    assert (given.kind, given.parts) == ("encoder", ("encoder",))
    facts = given.subjects["encoder"]
    assert (facts["dimension"], facts["pooling"], facts["layers"]) == (16, "mean", 2)


def test_a_file_that_is_no_model(tmp_path, capsys):
    (tmp_path / "weights.bin").write_bytes(b"x")
    assert (
        run(["audit", "--model", str(tmp_path / "weights.bin"), "--out", str(tmp_path / "o")]) == 2
    )
    assert "expected the folder of a model" in capsys.readouterr().err
    (tmp_path / "broken.gguf").write_bytes(b"x")
    assert (
        run(["audit", "--model", str(tmp_path / "broken.gguf"), "--out", str(tmp_path / "o")]) == 2
    )
    error = capsys.readouterr().err
    assert "broken.gguf" in error
    assert error.count("\n") == 1


def test_two_audits_of_encoders_are_compared(tmp_path):
    for name, modes in (("a", "mean_tokens"), ("b", "max_tokens")):
        folder = save_encoder(tmp_path / name, (modes,))
        audit(model=folder, out=tmp_path / f"{name}-out", quick=True)
    out = tmp_path / "compared"
    assert run(["report", str(tmp_path / "a-out"), str(tmp_path / "b-out"), "--out", str(out)]) == 0
    [page] = list(out.rglob("*.html")) if out.is_dir() else [out]
    assert "Sentence encoder" in page.read_text()


def test_a_measurement_without_a_topic_counts_as_gender():
    query = weat_queries()[6]
    m = eh.models.Seat()(SimulatedEncoder(query, bias=1.0), query)
    plain = replace(m, details={**m.details, "topic": ""})
    [verdict] = judge_subject(findings_of([plain]), "encoder")
    assert verdict.topic == "gender"
