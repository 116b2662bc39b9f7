"""Execute the notebooks of docs/notebooks and store their outputs: `python tools/run_notebooks.py`.

The outputs are what the site shows. They have no times, no paths of a machine and no scripts:
charts are stored as SVG. `tests/test_notebooks.py` executes the notebooks again and compares.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import nbclient
import nbformat

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "notebooks"
SETUP = """import altair, warnings
altair.renderers.enable("svg")
warnings.simplefilter("ignore")"""


def execute(path: Path) -> Any:
    """The notebook with the outputs of a run in an empty folder."""
    notebook = nbformat.read(path, as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell(SETUP))
    with tempfile.TemporaryDirectory() as folder:
        nbclient.NotebookClient(
            notebook,
            timeout=900,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,
            resources={"metadata": {"path": folder}},
        ).execute()
    del notebook.cells[0]
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"]}
    for count, cell in enumerate((c for c in notebook.cells if c.cell_type == "code"), start=1):
        cell.execution_count = count
        for output in cell.outputs:
            if output.output_type == "execute_result":
                output.execution_count = count
    return notebook


if __name__ == "__main__":
    os.environ["OMP_NUM_THREADS"] = "1"
    for path in [FOLDER / name for name in sys.argv[1:]] or sorted(FOLDER.glob("*.ipynb")):
        nbformat.write(execute(path), path)
        print(path.name, f"{path.stat().st_size:,} bytes")
