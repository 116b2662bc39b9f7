"""P-values that are counted from random draws: the results say so, and print no digits beyond."""

from __future__ import annotations

import numpy as np
import pytest

import evenhand as eh
from by_lists import wefat
from evenhand.cli.audit import verdict_row
from evenhand.cli.output import p_text
from evenhand.instruments import correct_p_values
from evenhand.report.verdicts import Number, Verdict
from evenhand.results import Measurement
from evenhand.wording import p_relation, p_value, supported


@pytest.mark.parametrize(
    ("p", "draws", "page"),
    [
        (0.0509, 1000, "0.05"),
        (0.0509, 100_000, "0.051"),
        (0.0012, 10_000, "0.001"),
        (0.3, 1000, "0.3"),
        (0.3, 20_000, "0.30"),
        (1 / 1001, 1000, "<\u00a00.003"),
        (1 / 2001, 2000, "<\u00a00.002"),
        (1 / 100_001, 100_000, "<\u00a00.001"),
        (0.0004, 100_000, "<\u00a00.001"),
        (0.0008, 10_000, "0.001"),
        (0.03, 100, "<\u00a00.07"),
        (1.0, 1000, "1.000"),
        (0.0509, None, "0.051"),
        (0.0004, None, "<\u00a00.001"),
    ],
)
def test_printed_digits(p: float, draws: int | None, page: str) -> None:
    assert p_value(p, draws) == page
    assert p_text(p, draws) == page.replace("\u00a0", " ")


def test_relation_of_a_bound() -> None:
    assert p_relation(1 / 1001, 1000) == "<\u00a00.003"
    assert p_relation(0.0509, 1000) == "=\u00a00.05"


def test_two_seeds_print_alike_within_two_units() -> None:
    rng = np.random.default_rng(0)
    for share in (0.002, 0.02, 0.05, 0.4):
        for draws in (1000, 10_000, 100_000):
            p = (rng.binomial(draws, share, 200) + 1) / (draws + 1)
            shown = [supported(value, draws) for value in p]
            for value, decimals, bound in shown:
                if not bound:
                    assert abs(value - share) <= 4.5 * 10.0**-decimals


def measurement(p: float, **details) -> Measurement:
    return Measurement(
        metric="mac",
        query="gender",
        value=0.1,
        low=0.0,
        high=0.2,
        n=10,
        ideal=0.0,
        worse="away",
        interval="",
        p_value=p,
        details=details,
    )


def test_a_result_in_one_line() -> None:
    assert "p = 0.05," in str(measurement(0.0509, draws=1000))
    assert "p = 0.051," in str(measurement(0.0509))
    assert "p < 0.003," in str(measurement(1 / 1001, draws=1000))


def test_the_error_of_a_corrected_p_value_is_multiplied() -> None:
    corrected = correct_p_values([measurement(0.0051, draws=10_000), *[measurement(0.9)] * 9])
    m = corrected[0]
    assert m.p == pytest.approx(0.051)
    assert m.draws == pytest.approx(1000)
    assert p_text(m.p, m.draws) == "0.05"
    assert p_text(m.p_value, m.details["draws"]) == "0.005"
    assert corrected[1].draws is None


def test_results_say_how_many_draws_are_behind_p() -> None:
    v = eh.vectors.load("glove")
    options = {"permutations": 2000, "null": 200}
    for m in eh.measure(v, "gender", options=options):
        assert m.p_value is not None
        if m.details.get("exact"):
            assert "draws" not in m.details
            continue
        draws = m.details["draws"]
        share = m.p_value * (draws + 1)
        if m.null == "random words":
            assert draws == m.details["null_draws"] // (2 if m.worse == "away" else 1)
            assert f"{m.details['null_draws']:,} draws" in m.test
        else:
            assert share == pytest.approx(round(share))
            assert f"{draws:,}" in m.test
    words, facts = ["nurse", "teacher", "miner", "pilot", "judge", "cook"], [9, 7, 0, 1, 4, 5]
    named = dict(zip(words, map(float, facts), strict=True))
    m = wefat(v, words, ["she", "her"], ["he", "him"], named, permutations=2000)
    assert f"{m.details['draws']:,} random" in m.test


def test_the_table_of_an_audit_prints_what_its_draws_support() -> None:
    first = Number(label="d", value=1.0, low=0.5, high=1.5, p_value=0.2063, draws=1000.0)
    verdict = Verdict(
        subject="vectors",
        name="glove",
        topic="gender",
        level="undecided",
        sentence="",
        numbers=(first,),
    )
    assert verdict_row(verdict)[4] == p_text(0.2063, 1000) == "0.2"
