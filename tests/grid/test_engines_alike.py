"""One grid of 200 cells by every engine."""

from __future__ import annotations

import pytest

from evenhand.grid import run


@pytest.mark.slow
@pytest.mark.parametrize(("engine", "options"), [("slurm", {"cluster": "local"}), ("ray", {})])
def test_200_cells_are_the_same_bytes_by_every_engine(squares, files, tmp_path, engine, options):
    pytest.importorskip("submitit" if engine == "slurm" else engine)
    grid = squares(200, size=50)
    run(grid, tmp_path / "local", workers=2)
    run(grid, tmp_path / engine, on=engine, workers=2, options=options)
    whole = files(tmp_path / "local")
    assert len(whole) == 200
    assert files(tmp_path / engine) == whole
