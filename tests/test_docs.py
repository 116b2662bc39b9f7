"""Every example of the pages is run: Python blocks as doctests, `$ evenhand` lines as commands."""

import doctest
import io
import re
import shlex
from pathlib import Path

import pytest

from evenhand.cli import run
from number_checker import NumberChecker, agree, with_documented_numbers

ROOT = Path(__file__).resolve().parents[1]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if page.parent.name != "data"),
]
"""The pages; tests/text/test_implicit_data.py runs that of the data."""
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
SHOWN = {
    "query.json": ("guides/own-words.md", "json"),
    "age.toml": ("guides/own-words.md", "toml"),
    "sentences.txt": ("guides/filter.md", "text"),
    "reviews.csv": ("guides/odds.md", "csv"),
    "prompts.csv": ("guides/answers.md", "csv"),
}
"""The files of the examples, with the page and the language of the block that shows them."""
LONG = (
    "README.md",
    "association.md",
    "audit.md",
    "fewshot.md",
    "finetune.md",
    "generate.md",
    "grid.md",
    "model-debias.md",
    "models.md",
    "phrases.md",
    "posterior.md",
    "vectors.md",
)
EXAMPLES = [
    pytest.param(page, marks=pytest.mark.slow) if page.name in LONG else page for page in PAGES
]


def path_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page, language):
    return re.findall(rf"```{language}\n(.*?)```", page.read_text(), re.DOTALL)


@pytest.fixture
def workplace(tmp_path, monkeypatch):
    """A folder with the files that the pages show, written as they show them."""
    monkeypatch.chdir(tmp_path)
    for name, (page, language) in SHOWN.items():
        Path(name).write_text(blocks(ROOT / "docs" / page, language)[-1])
    return tmp_path


@pytest.mark.parametrize("page", EXAMPLES, ids=path_of)
def test_python_examples(page, workplace):
    text = "\n".join(blocks(page, "python"))
    test = doctest.DocTestParser().get_doctest(text, {}, page.name, str(page), 0)
    runner = doctest.DocTestRunner(checker=NumberChecker(), optionflags=FLAGS)
    report: list[str] = []
    runner.run(test, out=report.append)
    assert not report, "".join(report)


SHELL = re.compile(r"\$ (?:echo (?P<said>\"[^\"]*\") \| )?(?P<command>evenhand .*)")


@pytest.mark.parametrize("page", EXAMPLES, ids=path_of)
def test_shell_examples(page, workplace, monkeypatch, capsys):
    """The line below an `echo` is what the command prints, unless it is the next command."""
    for block in blocks(page, "console"):
        lines = block.splitlines()
        for line, following in zip(lines, [*lines[1:], ""], strict=True):
            shown = SHELL.fullmatch(line)
            if shown is None or shown["command"].startswith("evenhand audit"):
                continue  # an audit takes minutes; tests/test_audit.py runs it
            said = shlex.split(shown["said"])[0] + "\n" if shown["said"] else ""
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(said.encode())))
            assert run(shlex.split(shown["command"])[1:]) == 0, capsys.readouterr().err
            printed = capsys.readouterr().out
            if said and following and not following.startswith("$ "):
                assert with_documented_numbers(following, printed) == following + "\n"


@pytest.mark.parametrize("page", PAGES, ids=path_of)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text()):
        path = (page.parent / target).resolve()
        generated = path.is_relative_to(ROOT / "docs" / "reference")  # `make docs` checks these
        assert "://" in target or generated or path.exists(), target


def test_a_documented_number_may_differ_in_its_last_digit_only():
    assert agree("[0.208"[1:], "0.209")
    shown, other = "[0.208, 1.637]", "[0.208, 1.638]"
    assert with_documented_numbers(shown, other) == shown
    assert with_documented_numbers(shown, "[0.208, 1.641]") != shown
    assert with_documented_numbers("3 of 4", "4 of 4") != "3 of 4"
