from dataclasses import replace

import pytest

from evenhand import lexicon, measure
from evenhand.errors import InputError, UnknownNameError, VocabularyError
from evenhand.instruments import instruments, plan
from evenhand.lexicon import Query

FAST = {"permutations": 999, "null": 49}


def test_every_metric_returns_a_complete_measurement(glove):
    for question in (lexicon.weat(7), lexicon.topic("gender"), lexicon.topic("race")):
        for m in measure(glove, question, options=FAST):
            assert m.low <= m.value <= m.high, m.metric
            assert m.n > 0
            assert 0 < m.p_value <= 1
            assert m.interval
            assert m.test
            assert m.worse in ("higher", "lower", "away")
            assert m.ideal is not None
            assert m.seed == 0
            assert sum(item.get("axis") != "protected" for item in m.items) == m.n
            assert {"word", "group", "score", "without"} <= m.items[0].keys()


def test_a_query_runs_what_fits_weat_first(glove):
    names = [m.metric for m in measure(glove, lexicon.weat(8), options=FAST)]
    assert names[0] == "weat"
    assert {"mac", "rnd", "ect", "same", "rnsb", "direct_bias", "ripa"} <= set(names)
    assert "wefat" not in names


def test_a_topic_runs_each_two_classes():
    jobs = plan("vectors", lexicon.topic("religion"))
    assert sum(job.metric == "weat" for job in jobs) == 3
    assert "ripa" not in {job.metric for job in jobs}
    gender = {job.metric for job in plan("vectors", lexicon.topic("gender"))}
    assert {"ripa", "projections", "association"} <= gender


def test_a_topic_by_its_name_is_the_topic(glove):
    by_name = measure(glove, "gender", ["association", "ripa"], options=FAST)
    assert by_name == measure(glove, lexicon.topic("gender"), ["association", "ripa"], options=FAST)
    with pytest.raises(UnknownNameError, match="did you mean 'gender'"):
        measure(glove, "gendre")
    with pytest.raises(InputError, match="expected a topic, its name or a query, got int"):
        measure(glove, 7)


def test_tests_that_decide_come_first(glove):
    names = [m.metric for m in measure(glove, "gender", options=FAST)]
    assert names[:3] == ["association", "projections", "weat"]


def test_extended_adds_our_words(glove):
    published = measure(glove, "gender", "mac", options=FAST)
    assert measure(glove, "gender", "mac", options={"extended": True, **FAST}).n > published.n


def test_an_option_that_no_metric_has_is_an_error(glove):
    with pytest.raises(UnknownNameError, match="did you mean 'permutations'"):
        measure(glove, "gender", options={"permutation": 5})
    with pytest.raises(UnknownNameError, match="unknown option 'strictness'"):
        measure(glove, "gender", "weat", options={"strictness": 2})


def test_skipped_questions_leave_the_others(glove):
    """One class without known stereotypes: its pairs are skipped by name, the rest is measured."""
    religion = lexicon.topic("religion")
    lists = {**religion.stereotypes, "christian": ("zzzqx", "zzzqy", "zzzqz")}
    measured = measure(glove, replace(religion, stereotypes=lists), options=FAST)
    assert [m.query for m in measured if m.metric == "weat"] == ["religion: jew/muslim"]
    assert sum(skip["metric"] == "weat" for skip in measured.skipped) == 2


def test_a_named_metric_that_does_not_fit_is_an_error(glove):
    lone = Query(name="lone", targets={"a": ("he", "him")}, attributes={"b": ("nurse", "cook")})
    with pytest.raises(InputError, match="metric 'weat' needs 2 target sets, 'lone' has 1"):
        measure(glove, lone, ["weat"])
    uneven = Query(
        name="uneven", targets={"a": ("he", "him"), "b": ("she",)}, attributes={"c": ("cook",)}
    )
    with pytest.raises(InputError, match="unequal"):
        measure(glove, uneven, ["ripa"])
    with pytest.raises(UnknownNameError, match="did you mean 'weat'"):
        measure(glove, lexicon.weat(1), ["waet"])
    with pytest.raises(InputError, match="'projections' needs a topic with two classes"):
        measure(glove, lexicon.topic("race"), ["projections"])


def test_unknown_words_skip_by_name_or_fail_when_named(glove):
    strange = Query(
        name="strange",
        targets={"a": ("zzzqx", "zzzqy"), "b": ("she", "her")},
        attributes={"c": ("cook", "nurse"), "d": ("boss", "pilot")},
    )
    measured = measure(glove, strange, options=FAST)
    assert any(skip["metric"] == "weat" and "zzzqx" in skip["reason"] for skip in measured.skipped)
    with pytest.raises(VocabularyError, match="zzzqx"):
        measure(glove, strange, ["weat"])


def test_results_are_the_same_for_the_same_seed(glove):
    one = measure(glove, lexicon.topic("gender"), options=FAST, seed=3)
    assert one == measure(glove, lexicon.topic("gender"), options=FAST, seed=3)
    assert one != measure(glove, lexicon.topic("gender"), options=FAST, seed=4)


def test_a_query_runs_every_metric_that_fits():
    query = lexicon.weat(7)
    assert {job.metric for job in plan("vectors", query)} == {
        name for name, cls in instruments("vectors").items() if cls().misfit(query) is None
    }
