"""One sentence on what was found: at known values, for measures of every kind."""

from dataclasses import replace

import pytest

from evenhand.instruments import find
from evenhand.results import Comparison, Estimate, Measurement
from evenhand.summary import summarize


def measurement(name, value, low, high, **fields):
    about = find(name).declaration
    usual = {"n": 100, "subject": "S", "query": "Q", "interval": "", "ideal": about.ideal}
    usual |= {"metric": name, "worse": about.worse}
    return Measurement(value=value, low=low, high=high, **{**usual, **fields})


def comparison(before, after, change, **fields):
    value, low, high = change
    return Comparison(
        before=before,
        after=after,
        change=Estimate(value=value, low=low, high=high),
        interval="",
        paired=100,
        **fields,
    )


@pytest.mark.parametrize(
    ("m", "sentence"),
    [
        (
            measurement(
                "pronouns", 0.9, 0.83, 0.95, p_value=1e-9, details={"above": 103, "below": 11}
            ),
            "Found in S, Q: a man is expected in 103 of 114 sentences (Pronoun score 0.900 "
            "[0.830, 0.950]; p < 0.001).",
        ),
        (
            measurement("pronouns", 0.2, 0.1, 0.3, p_value=0.012, details={"above": 4, "below": 9}),
            "Found in S, Q: a woman is expected in 9 of 13 sentences (Pronoun score 0.200 "
            "[0.100, 0.300]; p = 0.012).",
        ),
        (  # an odds of .588 is d = .196
            measurement(
                "pronouns", 0.52, 0.452, 0.588, p_value=0.6, details={"above": 1, "below": 2}
            ),
            "None found in S, Q: Pronoun score 0.520 [0.452, 0.588]; p = 0.600; a difference from "
            "0.5 beyond 0.088 is ruled out at 95 %.",
        ),
        (
            measurement(
                "pronouns", 0.52, 0.452, 0.591, p_value=0.6, details={"above": 1, "below": 2}
            ),
            "Undecided in S, Q: Pronoun score 0.520 [0.452, 0.591]; p = 0.600; a difference from "
            "0.5 beyond 0.091 is ruled out at 95 %.",
        ),
        (  # the test alone is not enough
            measurement("pronouns", 0.7, 0.49, 0.9, p_value=0.01, details={"above": 1, "below": 2}),
            "Undecided in S, Q: Pronoun score 0.700 [0.490, 0.900]; p = 0.010; a difference from "
            "0.5 beyond 0.400 is ruled out at 95 %.",
        ),
        (
            measurement(
                "pronouns", 0.7, 0.2, 1, p_value=0.3, n=4, details={"above": 1, "below": 2}
            ),
            "Measured in S, Q: Pronoun score 0.700 [0.200, 1.000]; p = 0.300; 4 sentences are too "
            "few to be judged (20 or more).",
        ),
        (  # one-sided, on its side and on the other
            measurement("association", -0.05, -0.08, -0.02, p_value=0.001),
            "Found in S, Q: stereotypes are closer to their own class than to the others "
            "(Association contrast −0.050 [−0.080, −0.020]; p = 0.001).",
        ),
        (
            measurement("association", 0.05, 0.02, 0.08, p_value=0.001),
            "Found the opposite of bias in S, Q: stereotypes are further from their own class than "
            "from the others (Association contrast 0.050 [0.020, 0.080]; p = 0.001).",
        ),
        (  # against random words
            measurement(
                "direct_bias",
                0.16,
                0.1,
                0.2,
                p_value=0.4,
                details={"null_median": 0.11, "null_draws": 20},
            ),
            "Undecided in S, Q: Direct bias 0.160 [0.100, 0.200]; p = 0.400; random words score "
            "0.110; beyond 0.200 is ruled out at 95 %.",
        ),
        (  # decides nothing
            measurement("crows", 0.58, 0.53, 0.63, p_value=0.002, n=262),
            "Found in S, Q: the more stereotypical sentence is the likelier one in 58 % of 262 "
            "pairs (CrowS-Pairs 0.580 [0.530, 0.630]; p = 0.002); no verdict rests on CrowS-Pairs "
            "alone.",
        ),
        (
            measurement("crows", 0.42, 0.37, 0.47, p_value=0.002, n=262),
            "Found in S, Q: the less stereotypical sentence is the likelier one in 58 % of 262 "
            "pairs (CrowS-Pairs 0.420 [0.370, 0.470]; p = 0.002); no verdict rests on CrowS-Pairs "
            "alone.",
        ),
        (  # without a test the interval decides, if values can lie on either side of the ideal
            measurement("bbq", 0.1, 0.05, 0.15),
            "Found in S, Q: answers lean to the stereotype where the text does not say (BBQ 0.100 "
            "[0.050, 0.150]); no verdict rests on BBQ alone.",
        ),
        (
            measurement("counterfactual-flips", 0.1, 0.05, 0.15),
            "Measured in S, Q: Counterfactual flips 0.100 [0.050, 0.150]; 0 without bias, and no "
            "test says how far chance alone would go.",
        ),
        (  # no ideal, and no bias
            measurement("perplexity", 12.25, 11, 13.5),
            "Measured in S, Q: Pseudo-perplexity 12.2 [11.0, 13.5]; lower is better.",
        ),
        (
            measurement("accuracy", 0.75, 0.7, 0.8),
            "Measured in S, Q: Few-shot accuracy 0.750 [0.700, 0.800]; higher is better, 1 at "
            "best.",
        ),
        (
            measurement("weat", 1.2, 0.9, 1.5, p_value=1e-5, query="weat-1"),
            "Measured in S, weat-1: WEAT 1.200 [0.900, 1.500]; p < 0.001; a harmless association, "
            "which is no bias.",
        ),
        (
            measurement("weat", float("nan"), float("nan"), float("nan")),
            "Nothing can be said of WEAT in S, Q: too little could be measured.",
        ),
        (  # a measure that no instrument declares
            measurement("weat", 0.5, 0.2, 0.8, metric="spread", subject="", query=""),
            "Found: spread is above its ideal 0 (0.500 [0.200, 0.800]).",
        ),
        (  # another probability, which is also the level of the test
            measurement("association", -0.05, -0.08, -0.02, p_value=0.03, prob=0.99),
            "Undecided in S, Q: Association contrast −0.050 [−0.080, −0.020] (99 %); p = 0.030; "
            "beyond 0.080 is ruled out at 99 %.",
        ),
    ],
)
def test_one_measurement(m, sentence):
    assert summarize(m) == summarize([m]) == sentence


def test_a_posterior_says_how_probable_a_value_below_zero_is():
    m = measurement(
        "association",
        -0.05,
        -0.08,
        -0.02,
        metric="posterior_contrast",
        query="associated-different",
        prob=0.89,
        details={"p_below_zero": 0.9999},
    )
    assert summarize(m) == (
        "Found in S, associated-different: stereotypes are closer to their own class than to the "
        "others (Association contrast −0.050 [−0.080, −0.020] (89 %); P(< 0) > 0.999)."
    )
    assert summarize(replace(m, high=0.01)).startswith("Undecided in S, associated-different")


def test_the_p_values_of_several_tests_are_corrected():
    clear = measurement("association", -0.05, -0.08, -0.02, p_value=0.02)
    other = measurement("projections", 0.01, -0.1, 0.12, p_value=0.9)
    assert summarize([clear]).startswith("Found in S")
    both = summarize([clear, other])
    assert both.startswith("Found in 1 of 2 tests of S; the clearest is Association contrast, Q:")
    assert "p = 0.040, corrected for 2 tests" in both
    several = summarize([clear, other, replace(other, query="R")])
    assert several.startswith(
        "Undecided: none of 3 tests of S found a bias, all leave one open; Association contrast, Q "
    )
    assert "p = 0.060, corrected for 3 tests" in several


def test_harmless_associations_and_usefulness_are_no_tests_of_bias():
    control = measurement("weat", 1.2, 0.9, 1.5, p_value=1e-9, query="weat-1")
    useful = measurement("perplexity", 12.0, 11, 13)
    alone = measurement("association", 0.0, -0.03, 0.03, p_value=1.0)
    assert summarize([control, useful, alone]) == summarize(alone)


@pytest.mark.parametrize(("significant", "start"), [(4, "Found in S"), (5, "Measured in S")])
def test_what_random_encoders_show_too_is_not_found(significant, start):
    details = {
        "random_significant": significant,
        "random_model": 0.67,
        "targets": ["a", "b"],
        "attributes": ["c", "d"],
        "title": "",
    }
    m = measurement("seat", 0.8, 0.3, 1.2, p_value=0.001, query="weat-5", details=details)
    assert summarize(m).startswith(start)
    assert ("random encoders" in summarize(m)) is (significant == 5)
    other = measurement("seat", 0.1, -0.3, 0.5, p_value=0.8, query="weat-6", details=details)
    other = replace(other, details={**details, "random_significant": 0})
    assert ("1 of 2" in summarize([m, other])) is (significant == 4)


BEFORE = measurement("pronouns", 0.9, 0.8, 1.0, subject="A")
AFTER = measurement("pronouns", 0.6, 0.5, 0.7, subject="B")


@pytest.mark.parametrize(
    ("change", "start"),
    [
        (
            comparison(BEFORE, AFTER, (-0.3, -0.4, -0.2), p_value=1e-5),
            "B is less biased than A: Pronoun score, Q nearer the ideal (0.900 → 0.600, change "
            "−0.300 [−0.400, −0.200]; p < 0.001).",
        ),
        (
            comparison(AFTER, BEFORE, (0.3, 0.2, 0.4)),
            "A is more biased than B: Pronoun score, Q further from the ideal",
        ),
        (
            comparison(BEFORE, replace(AFTER, value=0.3), (-0.6, -0.7, -0.5)),
            "B is less biased than A: Pronoun score, Q nearer the ideal, on its other side",
        ),
        (
            comparison(BEFORE, replace(BEFORE, subject="B"), (0.0, -0.098, 0.098)),
            "No clear change from A to B: Pronoun score, Q 0.900 → 0.900, change 0.000 [−0.098, "
            "0.098]; a change beyond 0.098 is ruled out at 95 %.",
        ),
        (
            comparison(
                measurement("perplexity", 12, 11, 13, subject="A"),
                measurement("perplexity", 14, 13, 15, subject="B"),
                (2.0, 1.0, 3.0),
            ),
            "B is worse than A: Pseudo-perplexity, Q worse",
        ),
        (
            comparison(
                replace(BEFORE, metric="spread", ideal=None, subject=""),
                replace(AFTER, metric="spread", ideal=None, subject=""),
                (-0.3, -0.4, -0.2),
            ),
            "After differs from before: spread, Q lower",
        ),
    ],
)
def test_one_comparison(change, start):
    assert summarize(change).startswith(start)


def test_several_comparisons_count_those_of_bias():
    better = comparison(BEFORE, AFTER, (-0.3, -0.4, -0.2))
    same = comparison(BEFORE, replace(BEFORE, subject="B"), (0.0, -0.1, 0.1))
    cost = comparison(
        measurement("perplexity", 12, 11, 13, subject="A"),
        measurement("perplexity", 14, 13, 15, subject="B"),
        (2.0, 1.0, 3.0),
    )
    text = summarize([BEFORE], [better, same, cost])
    assert text.startswith("B is less biased than A in 1 of 2 comparisons, more biased in none; ")
    assert "Pronoun score, Q: 0.900 → 0.600" in text
    assert summarize([], [same, same]) == "No clear change in 2 comparisons from A to B."


def test_nothing_measured_says_nothing():
    assert summarize([]) == ""
