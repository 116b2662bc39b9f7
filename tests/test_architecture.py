"""How far the arithmetic of a measure is from the shell."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

import evenhand
from evenhand.cli import run

ROOT = Path(evenhand.__file__).parent
MOST_FILES = 10


@pytest.mark.parametrize(
    ("command", "file", "function"),
    [
        (
            "vectors measure glove --weat 6 --metric weat --json",
            "statistics/association.py",
            "association",
        ),
        ("masked score - --json", "masked/gender_words.py", "bias"),
    ],
)
def test_the_arithmetic_is_near_the_shell(command, file, function, monkeypatch, capsys):
    """The files between the shell and the formula, as a debugger's call stack shows them."""
    path: list[str] = []

    def profile(frame, event, _):
        if event != "call" or path or frame.f_code.co_name != function:
            return
        stack = []
        while frame is not None:
            name = Path(frame.f_code.co_filename)
            if name.is_relative_to(ROOT):
                stack.append(name.relative_to(ROOT).as_posix())
            frame = frame.f_back
        if stack and stack[0] == file:
            path.extend(dict.fromkeys(reversed(stack)))

    text = b"The clerk lost [MASK] keys.\n"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text)))
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        code = run(command.split())
    finally:
        sys.setprofile(before)
    assert code == 0, capsys.readouterr().err
    assert 0 < len(path) <= MOST_FILES, path
