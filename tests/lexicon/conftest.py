"""What the lexicon tests share: nested tables written as TOML."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest


@pytest.fixture(scope="session")
def as_toml() -> Callable[[dict[str, Any]], str]:
    return document


def document(content: dict[str, Any]) -> str:
    """`content` as one TOML document: texts, numbers, lists and tables, in their order."""
    return "".join(f"{quoted(name)} = {value(entry)}\n" for name, entry in content.items())


def value(entry: Any) -> str:
    if isinstance(entry, dict):
        return (
            "{" + ", ".join(f"{quoted(name)} = {value(item)}" for name, item in entry.items()) + "}"
        )
    if isinstance(entry, list | tuple):
        return "[" + ", ".join(map(value, entry)) + "]"
    return quoted(entry) if isinstance(entry, str) else json.dumps(entry)


def quoted(text: str) -> str:
    """A basic string; TOML knows JSON's escapes, but wants DEL escaped too."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
