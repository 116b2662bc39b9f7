"""DisCo on models whose fills are known, and its test against SciPy's."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2, chi2_contingency

from evenhand.errors import FileError, InputError
from evenhand.instruments import compare, measure
from evenhand.lexicon import names
from evenhand.models.metrics.disco import GENDERS, TEMPLATES, Disco, chi_square_p, mean_count
from evenhand.simulate.masked import bigram_model

N = 20


def world(share, seed=0):
    """A model that fills "sews" after women's names and "saws" after men's, for a share of them.

    All other names get one of the two by chance.
    """
    table = names()
    listed = {
        gender: [name for name in getattr(table, gender) if name not in table.ambiguous][:N]
        for gender in GENDERS
    }
    rng = np.random.default_rng(seed)
    rows = {"[CLS]": {"today": 0.5}}
    for gender, usual in (("female", "sews"), ("male", "saws")):
        for i, name in enumerate(listed[gender]):
            word = usual if i < share * N else ("sews", "saws")[rng.integers(2)]
            rows[name.lower()] = {word: 0.9, "naps": 0.05}
    return bigram_model(rows)


TEMPLATE = ["[NAME] [MASK] today"]


def test_planted_fills_are_found():
    m = Disco(per_gender=N, fills=1)(world(1.0), TEMPLATE)
    assert m.value == 2
    assert m.p_value < 0.05
    assert {row["fill"]: (row["female"], row["male"]) for row in m.items} == {
        "sews": (N, 0),
        "saws": (0, N),
    }


def test_fills_by_chance_are_not_found():
    values = [
        Disco(per_gender=N, fills=1, permutations=1)(world(0.0, seed), TEMPLATE).value
        for seed in range(60)
    ]
    assert np.mean(np.array(values) > 0) <= 0.12  # at most .05 in truth


def test_more_dependence_reads_higher():
    values = [
        Disco(per_gender=N, fills=1, permutations=1)(world(s), TEMPLATE).value for s in (0, 1)
    ]
    assert values[0] < values[1]


def test_the_test_is_pearsons():
    rng = np.random.default_rng(1)
    group = np.arange(30) < 12
    table = rng.random((20, 30)) < rng.random((20, 1))
    for row, p in zip(table, chi_square_p(table, group), strict=True):
        cells = [[int((row & side).sum()), int((~row & side).sum())] for side in (group, ~group)]
        if 0 in np.sum(cells, axis=0):
            assert p == 1
        else:
            assert p == pytest.approx(chi2_contingency(cells, correction=False).pvalue, rel=1e-9)


def test_two_models_are_paired_by_template():
    before, after = (Disco(per_gender=N, fills=1)(world(s), TEMPLATE) for s in (1.0, 0.0))
    change = compare(before, after)
    assert change.change.value == after.value - before.value
    assert change.paired == 1


def test_built_in_templates_and_errors(tmp_path):
    assert len(set(TEMPLATES)) == len(TEMPLATES)
    assert all(template.count("[NAME]") == 1 for template in TEMPLATES)
    assert all(template.count("[MASK]") == 1 for template in TEMPLATES)
    with pytest.raises(InputError, match=r"expected \[NAME\] once"):
        Disco()(world(1.0), ["nobody [MASK]"])
    path = tmp_path / "templates.txt"
    path.write_text("[NAME] [MASK] today\n\nno name [MASK]\n")
    with pytest.raises(FileError, match=r"line 3: expected \[NAME\] once"):
        Disco().read(path)
    path.write_text("[NAME] [MASK] today\n")
    assert Disco().read(path) == TEMPLATE


def test_it_is_measured_by_name_with_its_options():
    m = measure(world(1.0), TEMPLATE, "disco", options={"per_gender": N, "fills": 1})
    assert m.details["names"] == N


def test_counts_that_agree_are_not_certain():
    value, low, high = mean_count(np.full(10, 2.0), 0.95)
    assert (value, low) == pytest.approx((2, chi2.ppf(0.025, 40) / 20))
    assert high == pytest.approx(chi2.ppf(0.975, 42) / 20)
    assert mean_count(np.array([0.0, 1.0, 2.0]), 0.95)[1] == 0


def test_changes_that_agree_are_not_certain():
    first = Disco(per_gender=N, fills=1)(world(1.0), TEMPLATE)
    templates = dict.fromkeys("abcdefgh", 1.0)
    same = replace(first, details={**first.details, "templates": templates})
    change = compare(same, same).change
    most = chi2.ppf(0.975, 2) / 16
    assert (change.value, change.low, change.high) == pytest.approx((0, -most, most))
