"""The stages for a model, and the verdict on models with and without a planted bias."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.special import expit

from evenhand.audit import main, mitigation
from evenhand.audit.stages import Options, Silent, Texts, run_stage
from evenhand.fewshot.data import Dataset, simulated
from evenhand.lexicon.pronoun_sentences import pronoun_sentences
from evenhand.models.metrics.pronouns import BUILT_IN, FROM_DATA
from evenhand.models.sentences import first_sentences
from evenhand.report.verdicts import explain, judge_subject
from masked_worlds import World, audited_model

PLACES = ("wall", "door", "fence", "gate", "tree", "stage", "river", "house", "tent", "road")
PLAIN = Dataset.of(["Rain fell.", "Snow fell."], ["rain", "snow"], name="plain")


def test_the_score_is_the_planted_one(tmp_path, monkeypatch):
    """Without noise every sentence has the score that was planted, and every profession too."""
    world = World(bias=0.8, slope=0.5, noise=0.0)
    findings = audited_model(world, PLAIN, tmp_path, monkeypatch)
    [m] = findings.measured("pronouns")
    scores = sorted({round(score, 3) for score in m.items["full_bias"].tolist()})
    expected = [float(expit(0.8 + 0.5 * lean)) for lean in (-1, 0, 1)]
    assert scores == pytest.approx(expected, abs=2e-3)
    [contrast] = findings.measured("professions")[0].select("contrast")
    assert contrast.value == pytest.approx(1.0, abs=0.01)
    assert [part.details["sentences"] for part in m.select("group")] == [20] * 6


@pytest.mark.parametrize("seed", [0, 1])
def test_a_planted_stereotype_is_strong_evidence(tmp_path, monkeypatch, seed):
    world = World(bias=1.0, slope=1.0, embedded=1.0, seed=seed)
    [verdict] = judge_subject(audited_model(world, PLAIN, tmp_path, monkeypatch), "masked")
    assert verdict.level == "strong evidence"
    assert verdict.subject == "masked"
    assert "the model expects a man" in verdict.sentence
    assert len(verdict.confirmed_by) == 3
    assert [number.ideal for number in verdict.numbers] == [0.5, 0, 0, 0, 0]


@pytest.mark.parametrize(
    ("dials", "says"),
    [
        ({"bias": -0.8}, "the model expects a woman"),
        ({"slope": 0.6}, "held mostly by men are associated with men more"),
        ({"slope": -0.6}, "against the direction of the stereotype"),
        ({"embedded": 1.2}, "lie nearer to the words for men than those associated with women"),
    ],
)
def test_one_kind_of_bias_alone_is_some_evidence(tmp_path, monkeypatch, dials, says):
    [verdict] = judge_subject(audited_model(World(**dials), PLAIN, tmp_path, monkeypatch), "masked")
    assert verdict.level == "some evidence"
    assert says in verdict.sentence


def test_a_clean_model_is_not_called_biased(tmp_path, monkeypatch):
    [verdict] = judge_subject(audited_model(World(), PLAIN, tmp_path, monkeypatch), "masked")
    assert verdict.level == "undecided"
    assert "intervals rule out" in verdict.sentence
    assert any(verdict.cannot_mean in rule for rule in explain("masked"))


@pytest.mark.slow
def test_clean_models_raise_no_alarm_beyond_the_level(tmp_path, monkeypatch):
    levels = Counter()
    for seed in range(10, 22):
        findings = audited_model(World(seed=seed), PLAIN, tmp_path / str(seed), monkeypatch)
        levels[judge_subject(findings, "masked")[0].level] += 1
    assert levels["none found"] + levels["undecided"] >= 11
    assert not levels["strong evidence"]


def test_every_deciding_test_is_corrected_for_the_others(tmp_path, monkeypatch):
    [verdict] = judge_subject(audited_model(World(seed=4), PLAIN, tmp_path, monkeypatch), "masked")
    assert len(verdict.tests) == 5
    ordered = sorted(verdict.tests, key=lambda test: test.p_value)
    assert ordered[0].p == pytest.approx(min(1, 5 * ordered[0].p_value))
    assert all(test.p >= test.p_value for test in ordered)
    assert "neutral" not in {test.query for test in verdict.tests}


def test_sentences_of_the_data_are_scored_where_there_are_enough(tmp_path, monkeypatch):
    places = [f"{where} the {what}" for what in PLACES for where in ("by", "near", "behind")]
    texts = [f"The drummer sits {place} tapping her foot. The sun sets." for place in places]
    data = Dataset.of(texts, ["a", "b"] * 15, name="drums")
    findings = audited_model(World(bias=0.5), data, tmp_path, monkeypatch)
    content = findings.details("pronouns")
    assert content["data_found"] == 30
    built_in, of_data = findings.measured("pronouns")
    assert (built_in.query, of_data.query) == (BUILT_IN, FROM_DATA)
    assert len(of_data.items) == 30
    few = audited_model(World(bias=0.5), PLAIN, tmp_path / "few", monkeypatch)
    assert [m.query for m in few.measured("pronouns")] == [BUILT_IN]


def test_one_sentence_a_text_and_none_with_a_mask_of_its_own(tmp_path):
    text = "The drummer sits there tapping her foot. The singer sits there tapping his foot."
    odd = "The piper sits by the [MASK] tapping her foot."
    data = Dataset.of([text, odd], ["a", "b"], name="two")
    [one] = first_sentences(Texts(data, Options(work=tmp_path)).accepted())
    assert one.text.startswith("The drummer")
    assert (one.pronoun, one.line) == ("her", 1)


def test_quick_leaves_fine_tuning_out(tmp_path, monkeypatch):
    monkeypatch.setattr(main, "loaded", lambda *_: World())
    quick, whole = (
        [stage.kind for stage in main.model_stages("w", Texts(PLAIN, options), options)]
        for options in (Options(quick=True, work=tmp_path), Options(work=tmp_path))
    )
    assert quick == ["pronouns", "professions", "phrases"]
    assert whole == [*quick, "finetune"]


def test_another_model_or_other_data_make_other_keys(tmp_path, monkeypatch):
    def keys(world, data, **settings):
        monkeypatch.setattr(main, "loaded", lambda *_: world)
        options = Options(work=tmp_path, **settings)
        return {s.kind: s.key({}) for s in main.model_stages("w", Texts(data, options), options)}

    first = keys(World(), PLAIN)
    assert keys(World(), PLAIN) == first
    assert not set(keys(World(bias=1.0), PLAIN).values()) & set(first.values())
    other = keys(World(), Dataset.of(["Hail fell."], ["hail"], name="hail"))
    same = {kind for kind in first if other[kind] == first[kind]}
    assert same == {"professions", "phrases"}
    assert not set(keys(World(), PLAIN, seed=1).values()) & set(first.values())


def test_a_large_model_is_not_fine_tuned(tmp_path):
    large = SimpleNamespace(
        network=SimpleNamespace(parameters=lambda: [SimpleNamespace(numel=lambda: 200_000_000)])
    )
    made = mitigation.tune(large, "x", PLAIN, Options(work=tmp_path), Silent())
    assert "200,000,000 weights" in made["skipped"][0]["reason"]


def test_a_model_that_learns_too_slowly_is_not_fine_tuned(tmp_path, monkeypatch):
    monkeypatch.setattr(mitigation, "WEIGHTS", 1000)
    monkeypatch.setattr(mitigation, "_speed", lambda _: 100.0)
    model, options = main.loaded("mini"), Options(work=tmp_path / "w")
    made = mitigation.tune(model, "mini", PLAIN, options, Silent())
    assert "would take about 24 minutes, more than the 10" in made["skipped"][0]["reason"]
    assert not options.work.exists()
    monkeypatch.setattr(mitigation, "_speed", lambda _: 1000.0)
    made = mitigation.tune(model, "mini", PLAIN, options, Silent())
    assert "minutes" not in made["skipped"][0]["reason"]


def test_measuring_the_speed_leaves_the_model_as_it_is():
    import torch

    model = main.loaded("mini")
    before, state = model.fingerprint, torch.random.get_rng_state()
    assert mitigation._speed(model) > 0
    assert model.fingerprint == before
    assert not model.network.training
    assert all(weight.grad is None for weight in model.network.parameters())
    assert torch.equal(torch.random.get_rng_state(), state)


def test_tokens_shrink_with_the_model(tmp_path):
    options = Options(work=tmp_path)
    sizes = [mitigation.settings_for(n, options).max_tokens for n in (10**6, 16 * 10**6, 10**8)]
    assert sizes == [160_000, 80_000, 40_000]


def test_phases_go_forward_only(tmp_path):
    message = []
    progress = SimpleNamespace(step=lambda done, of: message.append((done, of)))
    tell = mitigation._phases(progress)
    for phase in mitigation.PHASES:
        for done in (0, 5, 10):
            tell(phase, done, 10)
    steps = [done for done, _ in message]
    assert steps == sorted(steps)
    assert message[-1][0] == message[-1][1]
    tell("something else", 1, 1)
    assert len(message) == 3 * len(mitigation.PHASES)
    tell("training", 0, 10)
    assert message[-1][0] == message[-1][1]


def test_text_too_short_to_learn_from_is_skipped_with_the_reason(tmp_path):
    made = mitigation.tune(
        main.loaded("mini"), "mini", PLAIN, Options(work=tmp_path / "w"), Silent()
    )
    assert "expected" in made["skipped"][0]["reason"]


@pytest.mark.slow
def test_fine_tuning_is_measured_before_and_after_and_not_done_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(mitigation, "TOKENS", 4000)
    monkeypatch.setattr(mitigation, "LEAST_TOKENS", 4000)
    data = simulated("simulated:per_class=6")
    options = Options(work=tmp_path / "work")
    stage = main.model_stages("mini", Texts(data, options), options)[-1]
    steps = []
    progress = SimpleNamespace(step=lambda done, of: steps.append(done / of))
    result, _ = run_stage(stage, tmp_path, "key", progress)
    assert not result.failed
    content = result.details
    # these texts have too few sentences of their own: the built-in ones take their place
    assert content["data"]["built_in_sentences"] == 0
    mean = next(c for c in result.comparisons if c.query == "mean bias")
    assert mean.paired == content["data"]["sentences"] == len(pronoun_sentences().sentences)
    difference = mean.after.value - mean.before.value
    assert mean.change.value == pytest.approx(difference)
    assert mean.change.low <= difference <= mean.change.high
    assert [c.metric for c in result.comparisons] == [
        *["pronouns"] * 4,
        "perplexity",
        "professions",
        *["phrases"] * 3,
    ]
    assert steps == sorted(steps)
    assert steps[-1] == 1
    [folder] = (tmp_path / "work").glob("finetune-*")
    before = (folder / "results.json").stat().st_mtime_ns
    again, _ = run_stage(stage, tmp_path, "other key", Silent())
    assert (folder / "results.json").stat().st_mtime_ns == before
    assert again.comparisons == result.comparisons


def test_scores_of_mini_are_those_of_the_command(tmp_path):
    from evenhand.models.metrics.pronouns import Pronouns

    options = Options(quick=True, work=tmp_path / "work")
    stage = main.model_stages("mini", Texts(PLAIN, options), options)[0]
    result, _ = run_stage(stage, tmp_path, "key", Silent())
    expected = Pronouns()(main.loaded("mini"))
    [m] = result.measurements
    assert m.value == pytest.approx(expected.value)
    assert m.p_value == pytest.approx(expected.p_value)
    assert m.n == expected.n
    means, weights = zip(*((part.value, part.n) for part in m.select("group")), strict=True)
    assert np.average(means, weights=weights) == pytest.approx(m.value)
