"""Every public result class is short at a prompt, a table in a notebook, a frame and a chart."""

from __future__ import annotations

import html
import inspect
from dataclasses import replace
from html.parser import HTMLParser

import pandas as pd
import pytest
from fewshot_runs import measured as measured_runs
from fewshot_runs import run_of

import evenhand as eh
from evenhand.display import Result, ResultList, Shown
from evenhand.simulate import world
from test_public import PUBLIC

DATA = {"label": list("abab") * 30, "prediction": list("aabb") * 30, "group": list("mmff") * 30}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """An example of each class, by its name."""
    simulated = world(bias=0.3, dim=20, seed=1)
    v = eh.vectors.Vectors.from_arrays(list(simulated.words), simulated.matrix)
    topic = simulated.topic
    measured = eh.measure(v, topic, ["association", "weat"], options={"permutations": 100})
    debiased = eh.vectors.hard(v, topic.definitional)
    after = eh.measure(debiased.vectors, topic, ["association"], options={"permutations": 100})
    table = eh.vectors.distance_table(v, topic)
    fitted = eh.posterior.fit_models(table, ["crossed"], draws=200)
    fit = fitted.fits["crossed"]
    scores = pd.DataFrame(
        [(i, model, (i * k) % 7 / 7) for i in range(20) for k, model in enumerate("abc", 2)],
        columns=["item", "model", "score"],
    )
    rule = {"metric": "weat", "min": -0.5, "max": 0.5}
    gate = eh.gate.check(rule, measured)
    plan = eh.gate.plan(rule, measured, worsenings=[0.1])
    verdict = eh.report.Verdict(
        subject="vectors",
        name="small",
        topic="gender",
        level="some",
        sentence="Some evidence.",
        numbers=(),
    )
    predictions = eh.classifier.read_predictions(pd.DataFrame(DATA), group="group")
    few_shot = measured_runs(2.0).results(measured_runs(0.0))
    text = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    text.write_text("The clerk reads the books.\n" * 20)
    listed = [
        eh.audit(
            predictions=predictions,
            out=tmp_path_factory.mktemp("audit"),
            quick=True,
            skip=["corpus", "vectors", "posterior", "masked", "fewshot"],
        ),
        few_shot,
        run_of(few_shot),
        measured,
        measured[0],
        measured[0].items,
        measured[0].estimate,
        eh.compare(measured[0], after[0]),
        eh.compare(measured, after),
        eh.ask("The clerk lost [MASK] keys."),
        eh.ask("The clerk lost [MASK] keys.")[0],
        debiased,
        table,
        fitted,
        fit,
        fit.table,
        eh.posterior.compute_criteria(fit),
        eh.posterior.assess(fitted, prob=0.89),
        eh.posterior.check_posterior(fit, replicates=20),
        eh.posterior.check_posterior(fit, replicates=20)[0],
        eh.posterior.describe_table(table),
        eh.scores.read(scores),
        eh.scores.analyze(scores),
        gate,
        gate.rows[0],
        plan,
        plan.rows[0],
        eh.posterior.plan("religion", effect=0.1, sets=10),
        verdict,
        predictions,
        eh.answers.Difference.example()[0],
        eh.text.swap("She sings."),
        eh.fewshot.read("simulated"),
        eh.vectors.pair_analogies(v, *topic.definitional[0], n=5),
        eh.vectors.train(text, settings=eh.vectors.TrainSettings(dimensions=4, epochs=1)),
    ]
    return {type(result).__name__: result for result in listed}


ELSEWHERE = {
    "Change": "below",
    "VectorMitigation": "below",
}
CLASSES = {
    value.__name__: value
    for value in PUBLIC.values()
    if inspect.isclass(value) and issubclass(value, Shown) and value not in (Shown, Result)
}


class Balanced(HTMLParser):
    """Fails where a tag is not closed."""

    def __init__(self, text):
        super().__init__()
        self.open = []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, _attributes):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def check_shown(result):
    text = repr(result)
    assert len(text) <= 200, text
    assert text.count("\n") <= 1
    assert text.startswith("<")
    assert "array(" not in text
    page = result._repr_html_()
    Balanced(page)
    assert "color:#" not in page
    assert len(page) < 50_000
    assert isinstance(result.to_frame(), pd.DataFrame)


@pytest.mark.parametrize("name", CLASSES)
def test_results_are_shown(results, name):
    if name in ELSEWHERE:
        pytest.skip(f"shown by {ELSEWHERE[name]}")
    check_shown(results[name])


@pytest.mark.parametrize("name", [name for name in CLASSES if issubclass(CLASSES[name], Result)])
def test_results_are_plotted(results, name):
    if name in ELSEWHERE or name == "Verdict":
        pytest.skip("needs more than a small example")
    assert results[name].plot().to_dict()["config"]


def test_result_classes_that_users_get_are_all_shown():
    """A class with `to_dict` that has numbers is a result; settings and subjects are not."""
    settings = {
        "EpisodeCounts",
        "RunSettings",
        "Split",
        "TrainingSettings",
        "Declaration",
    }
    left = {
        name.rpartition(".")[2]
        for name, value in PUBLIC.items()
        if inspect.isclass(value) and hasattr(value, "to_dict") and not issubclass(value, Shown)
    }
    assert left <= settings


def test_lists_of_results(results):
    answers = results["ResultList"]
    assert isinstance(answers, ResultList)
    assert answers == list(answers)
    assert len(answers.to_frame()) >= len(answers)


def test_long_tables_are_cut_and_say_so():
    items = eh.results.Items({"word": [f"w{i}" for i in range(1000)]})
    assert "970 more rows" in items._repr_html_()


def test_text_is_escaped():
    items = eh.results.Items({"word": ["<script>alert(1)</script>"]})
    assert "<script>" not in items._repr_html_()


@pytest.mark.slow
def test_mitigations_and_changes_are_shown():
    v = eh.vectors.load("glove", limit=8000)
    mitigation = eh.vectors.mitigate(v, "gender", n=50)
    check_shown(mitigation)
    assert mitigation.plot().to_dict()["config"]
    tables = [
        eh.vectors.distance_table(each, "gender") for each in (v, mitigation.debiased.vectors)
    ]
    change = eh.posterior.compare_tables(*tables, draws=200)
    check_shown(change)
    assert change.plot().to_dict()["config"]


def test_the_heading_of_several_results_is_whole():
    measured = eh.measure(eh.vectors.load("glove", limit=5000), "gender", ["direct_bias"])
    assert measured._repr_html_().count(">Measurements of 1: ") == 1
    answers = eh.ask("The clerk lost [MASK] keys.")
    assert ">ResultList of 1 × Answer: mini" in answers._repr_html_()
    assert not repr(answers).endswith("…>"), "one answer is all there is"
    [only] = measured
    assert f"{only.value:.3f} [{only.low:.3f}, {only.high:.3f}]" in repr(measured)
    assert ">mini" in answers[0]._repr_html_()


def test_audits_and_runs_say_what_was_found(results):
    audit, run = results["Audit"], results["FewShotRun"]
    assert repr(audit).endswith("report.html>")
    (verdict,) = audit.verdicts
    assert verdict.level in repr(audit)
    assert html.escape(verdict.sentence) in audit._repr_html_()
    accuracy, bias = run.results.accuracy, run.results.bias
    assert (
        repr(run) == f"<FewShotRun {run.name}: accuracy {accuracy.estimate}, bias {bias.estimate}>"
    )
    assert repr(run.results) == repr(run).replace(f"FewShotRun {run.name}:", "RunResults")
    assert list(run.to_frame()["value"]) == list(run.results.to_frame()["value"])
    assert {accuracy.value, bias.value} <= set(run.to_frame()["value"])
    bare = replace(run, results=None)
    assert repr(bare) == f"<FewShotRun {run.name}: not measured yet>"
    assert "<table>" not in bare._repr_html_()
