"""The oldest versions that pyproject.toml allows, installed into a fresh environment."""

from __future__ import annotations

import subprocess
import sys

import pytest

import check_wheel

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def oldest(tmp_path_factory):
    folder = tmp_path_factory.mktemp("oldest")
    words = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "lazy-loader==0.4"]
    asked = subprocess.run(
        [*words, "--dest", str(folder)], capture_output=True, timeout=60, check=False
    )
    if asked.returncode:
        pytest.skip("needs the package index, which does not answer")
    environment = check_wheel.Environment(folder / "environment")
    environment.install(str(check_wheel.build(folder)), constraints="constraints-oldest.txt")
    return environment


def test_commands_work_with_the_oldest_versions(oldest):
    oldest.run(check_wheel.IMPORT)
    for line, given, expected in check_wheel.BASE_COMMANDS[:5]:
        oldest.command(line, given, expected)
    line = 'ask "The clerk lost [MASK] keys."'
    oldest.command(line, "", "pip install 'evenhand[models]'", code=2)
