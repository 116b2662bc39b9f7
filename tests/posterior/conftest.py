"""A quick fitted table for the tests of what is made from fits."""

from __future__ import annotations

import warnings

import pytest

from evenhand.posterior.models import Fitted, fit_models
from evenhand.posterior.simulation import simulate


@pytest.fixture(scope="session")
def fitted() -> Fitted:
    table = simulate(delta=-0.2, seed=1, words=(3, 3), stereotypes=(4, 4), human=6, neutral=10)
    return fit_models(table, draws=800)


@pytest.fixture(scope="session")
def arviz():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("arviz", reason="needs arviz, of the extra dev")
