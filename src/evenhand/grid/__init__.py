"""Grids of experiments: one atomic result file per cell, resumable, on one machine or a cluster."""

from evenhand.grid.run import Launch, run
from evenhand.grid.spec import Cell, Grid, make_grid, read_grid
from evenhand.grid.store import Status, Store, status

__all__ = ["Cell", "Grid", "Launch", "Status", "Store", "make_grid", "read_grid", "run", "status"]
