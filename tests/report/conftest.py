"""A finished audit of a small world with a planted bias, made once for all tests of the report."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from evenhand.audit import audit
from evenhand.report.findings import Findings, read_findings
from evenhand.simulate import world
from evenhand.vectors import nulls
from evenhand.vectors.store import Vectors


@pytest.fixture(scope="session")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    w = world(bias=0.5, dim=30, vocabulary=600, seed=3)
    v = Vectors.from_arrays(w.words, w.matrix, name="<b>small & biased")
    with pytest.MonkeyPatch.context() as patch:
        few = partial(nulls.dimension_spread, dims=(2, 10, 50), points=100, repeats=4)
        patch.setattr(nulls, "dimension_spread", few)
        return audit(
            v, topics=[w.topic], skip=("posterior",), out=tmp_path_factory.mktemp("report") / "out"
        ).out


@pytest.fixture(scope="session")
def findings(audited: Path) -> Findings:
    return read_findings(audited)
