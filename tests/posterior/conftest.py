"""The fitted models of a small simulated table."""

from __future__ import annotations

import pytest

from evenhand.posterior.models import Fitted, fit_models
from evenhand.posterior.tables import simulate


@pytest.fixture(scope="session")
def fitted() -> Fitted:
    table = simulate(delta=-0.2, seed=1, words=(3, 3), stereotypes=(4, 4), human=6, neutral=10)
    return fit_models(table, draws=800)
