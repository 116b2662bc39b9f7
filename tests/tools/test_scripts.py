"""The scripts of benchmarks and tools import names that exist."""

from __future__ import annotations

import ast
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted(path for name in ("benchmarks", "tools") for path in (ROOT / name).rglob("*.py"))


def imported(path: Path) -> list[tuple[str, str]]:
    """Module and name of every import from the package, inside functions too."""
    return [
        (node.module or "", alias.name)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "evenhand"
        for alias in node.names
    ]


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_import_what_exists(path):
    for module, name in imported(path):
        if not hasattr(import_module(module), name):
            import_module(f"{module}.{name}")
