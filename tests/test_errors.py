"""Messages name parameters as the user gives them: options in the shell, names in Python."""

from __future__ import annotations

from collections.abc import Callable
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
        ["fewshot", "run", "--data"],
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
