"""Every example of the pages is run: Python blocks as doctests, `$ evenhand` lines as commands."""

import doctest
import re
import shlex
from pathlib import Path

import pytest

from evenhand.cli import run

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder with the files that the pages show, written as they show them."""
    monkeypatch.chdir(tmp_path)
    for page in PAGES:
        for text in blocks(page, "json"):
            Path("query.json").write_text(text)
        for text in blocks(page, "toml"):
            Path("age.toml").write_text(text)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_examples(page, workplace):
    text = "\n".join(blocks(page, "python"))
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    report: list[str] = []
    runner.run(test, out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_shell_examples(page, workplace, capsys):
    lines = [line for block in blocks(page, "console") for line in block.splitlines()]
    commands = [shlex.split(line[2:]) for line in lines if line.startswith("$ evenhand ")]
    for command in commands:
        if command[1] == "audit":
            continue  # minutes; tests/test_audit.py runs it
        assert run(command[1:]) == 0, capsys.readouterr().err


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        assert "://" in target or (page.parent / target).exists(), target
