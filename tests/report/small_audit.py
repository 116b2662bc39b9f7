"""A finished audit of a small world with a planted bias, made once for all tests of the report."""

from __future__ import annotations

import tempfile
from functools import cache, partial
from pathlib import Path

import pytest

from evenhand.audit import audit
from evenhand.simulate import world
from evenhand.vectors import nulls
from evenhand.vectors.store import Vectors

_PLACE = tempfile.TemporaryDirectory(prefix="evenhand-report-")


@cache
def small_audit() -> Path:
    w = world(bias=0.5, dim=30, vocabulary=600, seed=3)
    v = Vectors.from_arrays(w.words, w.matrix, name="<b>small & biased")
    with pytest.MonkeyPatch.context() as patch:
        few = partial(nulls.dimension_spread, dims=(2, 10, 50), points=100, repeats=4)
        patch.setattr(nulls, "dimension_spread", few)
        return audit(v, topics=[w.topic], out=Path(_PLACE.name) / "out").out
