import pytest

from evenhand import lexicon
from evenhand.errors import InputError, UnknownNameError, VocabularyError
from evenhand.lexicon import Query
from evenhand.vectors import measure
from evenhand.vectors.measuring import METRICS, query_jobs, topic_jobs

FAST = {"permutations": 999, "null": 49}


def test_every_metric_returns_a_whole_measurement(glove):
    for question in (lexicon.weat(7), lexicon.topic("gender"), lexicon.topic("race")):
        for m in measure(glove, question, **FAST).measurements:
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
    names = [m.metric for m in measure(glove, lexicon.weat(8), **FAST).measurements]
    assert names[0] == "weat"
    assert {"mac", "rnd", "ect", "same", "rnsb", "direct_bias", "ripa"} <= set(names)
    assert "wefat" not in names


def test_a_topic_runs_each_two_classes(glove):
    jobs = topic_jobs(lexicon.topic("religion"))
    assert sum(job.metric == "weat" for job in jobs) == 3
    assert "ripa" not in {job.metric for job in jobs}
    gender = {job.metric for job in topic_jobs(lexicon.topic("gender"))}
    assert {"ripa", "projections", "association"} <= gender


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
    with pytest.raises(UnknownNameError, match="metric for topic 'race'"):
        measure(glove, lexicon.topic("race"), ["projections"])


def test_unknown_words_skip_by_name_or_fail_when_asked(glove):
    strange = Query(
        name="strange",
        targets={"a": ("zzzqx", "zzzqy"), "b": ("she", "her")},
        attributes={"c": ("cook", "nurse"), "d": ("boss", "pilot")},
    )
    measured = measure(glove, strange, **FAST)
    assert any(skip["metric"] == "weat" and "zzzqx" in skip["reason"] for skip in measured.skipped)
    with pytest.raises(VocabularyError, match="zzzqx"):
        measure(glove, strange, ["weat"])


def test_results_are_the_same_for_the_same_seed(glove):
    one = measure(glove, lexicon.topic("gender"), **FAST, seed=3)
    assert one == measure(glove, lexicon.topic("gender"), **FAST, seed=3)
    assert one != measure(glove, lexicon.topic("gender"), **FAST, seed=4)


def test_every_registered_metric_states_its_shape():
    query = lexicon.weat(7)
    assert {job.metric for job in query_jobs(query)} == {
        name for name in METRICS if METRICS[name].misfit(query) is None
    }
