"""Grids of experiments that finish: every cell a file, whoever computes it, whatever is killed."""

from evenhand.grid.cells import Cell
from evenhand.grid.launch import Launched, run
from evenhand.grid.spec import Grid, make_grid, read_grid
from evenhand.grid.store import Store

__all__ = ["Cell", "Grid", "Launched", "Store", "make_grid", "read_grid", "run"]
