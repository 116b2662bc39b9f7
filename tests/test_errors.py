"""Messages name parameters as the user gives them: options in the shell, names in Python."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pandas as pd
import pytest
from cli_shell import failure

import evenhand as eh
from evenhand.errors import InputError, in_shell, parameter
from evenhand.text.tables import lines_of

TABLE = "a,b\nx,1\ny,2\n"
CASES: dict[str, tuple[Callable[[str], object], list[str], list[str], list[str]]] = {
    "few-shot data": (
        eh.fewshot.read,
        ["text=", "label="],
        ["lab", "fewshot", "run", "--data"],
        ["--text", "--label"],
    ),
    "predictions": (
        lambda path: eh.classifier.read_predictions(path, group="a"),
        ["pred="],
        ["classifier", "--group", "a"],
        ["--pred"],
    ),
    "scores": (eh.scores.read, ["item="], ["scores"], ["--item"]),
}


@pytest.mark.parametrize("name", CASES)
def test_a_missing_column_is_named_as_the_user_gives_it(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "table.csv"
    path.write_text(TABLE)
    call, parameters, command, options = CASES[name]
    with pytest.raises(InputError) as caught:
        call(str(path))
    assert "--" not in str(caught.value)
    assert all(text in str(caught.value) for text in parameters)
    message = failure(capsys, *command, str(path))
    assert all(text in message for text in options)
    assert not any(text in message for text in parameters)
    with pytest.raises(InputError) as again:  # the shell leaves nothing behind
        call(str(path))
    assert str(again.value) == str(caught.value)


def test_a_frame_without_one_column_of_text_gets_no_option() -> None:
    frame = pd.DataFrame({"a": ["She sang for years."], "b": ["He sang for years."]})
    with pytest.raises(InputError, match=r"Give that column alone \(columns: a, b\)$"):
        list(lines_of(frame))


def test_the_shell_ends_with_its_block() -> None:
    with in_shell():
        assert parameter("split_seed") == "--split-seed"
    assert parameter("split_seed") == "split_seed="


OPTION = re.compile(r"(?<![\w-])--[a-z]")
ELSEWHERE = {
    "charts.py": "a property of a style sheet",
    "fewshot/splits.py": "the options of a suggested command",
    "gate/plugin.py": "options of pytest",
    "grid/slurm.py": "options of Slurm's commands",
    "scores/reading.py": "an option of Inspect's command",
}
"""Files whose texts have options that are not parameters of the library, and what they are."""


def texts_of(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """The strings that code uses: neither docstrings, nor an option's own name.

    An f-string is one string, with its fields empty.
    """
    if isinstance(tree, ast.Expr) and isinstance(tree.value, ast.Constant):
        return
    if isinstance(tree, ast.keyword) and tree.arg in ("flag", "option"):
        return
    if isinstance(tree, ast.JoinedStr):
        constants = (part.value for part in tree.values if isinstance(part, ast.Constant))
        yield tree.lineno, "".join(map(str, constants))
    elif isinstance(tree, ast.Constant) and isinstance(tree.value, str):
        yield tree.lineno, tree.value
    else:
        for node in ast.iter_child_nodes(tree):
            yield from texts_of(node)


def test_no_text_of_the_library_names_an_option_of_the_shell() -> None:
    """Such a text is also read in Python; a whole command, `evenhand … --name`, is fine."""
    root = Path(eh.__file__).parent
    naming: dict[str, list[str]] = {}
    for path in sorted(root.rglob("*.py")):
        file = path.relative_to(root).as_posix()
        for line, text in texts_of(ast.parse(path.read_text(encoding="utf-8"))):
            if OPTION.search(re.sub(r"evenhand [a-z].*", "", text)) and not file.startswith("cli/"):
                naming.setdefault(file, []).append(f"{line}: {text}")
    assert {file: texts for file, texts in naming.items() if file not in ELSEWHERE} == {}
    assert set(naming) == set(ELSEWHERE)


@pytest.mark.parametrize("text", ['raise E(f"{x}; --restart starts over")', 'help="see --adapt"'])
def test_an_option_in_a_text_is_seen(text: str) -> None:
    call = ast.parse(f"f({text})" if "=" in text else text)
    assert [line for line, found in texts_of(call) if OPTION.search(found)] == [1]


def test_workers_name_options_as_their_shell_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "in.txt"
    path.write_bytes("She saw the caf\xe9.\n".encode("latin-1"))
    message = failure(capsys, "rewrite", "swap", str(path), "--workers", "2")
    assert message.endswith("it looks like Latin-1: --encoding latin-1\n")
