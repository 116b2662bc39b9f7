"""The script that computes the percent of women among the bearers of a name."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from evenhand import lexicon

SCRIPT = Path(__file__).parents[2] / "tools" / "name_shares.py"


@pytest.fixture
def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("name_shares", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Two years of births: Kelly 30 girls and 10 boys in 1950, 0 and 60 in 1951; others 1 and 1."""
    folder = tmp_path / "raw-data"
    folder.mkdir()
    names = lexicon.wefat("wefat-names").words
    others = "".join(f"{name},F,1\n{name},M,1\n" for name in names if name != "Kelly")
    (folder / "yob1950.txt").write_text("Kelly,F,30\nKelly,M,10\n" + others)
    (folder / "yob1951.txt").write_text("Kelly,M,60\nSomeone,F,9\n")
    return tmp_path


def test_names_are_those_of_the_query(script: ModuleType) -> None:
    assert lexicon.wefat("wefat-names").words == script.NAMES


def test_shares(script: ModuleType, package: Path, capsys: pytest.CaptureFixture[str]) -> None:
    script.main([str(package), "--first", "1950", "--last", "1950"])
    assert capsys.readouterr().out.splitlines()[:2] == ["Kelly = 75.00", "Tracy = 50.00"]
    script.main([str(package), "--first", "1950", "--last", "1951"])
    assert capsys.readouterr().out.splitlines()[0] == "Kelly = 30.00"


def test_missing_years_and_names(script: ModuleType, package: Path) -> None:
    with pytest.raises(SystemExit, match=r"yob1952\.txt: No such file"):
        script.main([str(package), "--first", "1950", "--last", "1952"])
    with pytest.raises(SystemExit, match="no births of the name Tracy"):
        script.main([str(package), "--first", "1951", "--last", "1951"])
