"""Prompts: what a model is asked, from a file or a built-in set."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path

from evenhand.errors import FileError, InputError, parameter
from evenhand.lexicon.prompts import prompt_rows, prompt_sets
from evenhand.models.writing import Message
from evenhand.text.tables import Source, open_table

__all__ = ["Prompt", "read_prompts"]

USUAL = ("prompt", "question", "input", "text")


@dataclass(frozen=True, slots=True)
class Prompt:
    """One prompt.

    Parameters
    ----------
    text : str
    columns : Mapping of str to str
        What is said of it, such as its item, wording and groups; answers have the same columns.
    system : str
        The system prompt; none if empty.

    """

    text: str
    columns: Mapping[str, str | None] = field(default_factory=dict)
    system: str = ""

    @property
    def messages(self) -> tuple[Message, ...]:
        """The messages of the request."""
        system = (Message("system", self.system),) if self.system else ()
        return (*system, Message("user", self.text))

    @property
    def key(self) -> str:
        """A hash of what the model reads."""
        return blake2b(repr((self.system, self.text)).encode(), digest_size=8).hexdigest()


def read_prompts(source: Source, *, prompt: str | None = None, system: str = "") -> list[Prompt]:
    """Read prompts from a table with one row per prompt, or take a built-in set.

    Parameters
    ----------
    source : path, name or DataFrame
        A table, or the name of a built-in set (`evenhand list prompts`); write ./NAME for a file
        of the same name.
    prompt : str, optional
        The column of the prompts; by default "prompt", "question", "input" or "text".
    system : str
        A system prompt for all of them; a column "system" has one for each.

    Returns
    -------
    list of Prompt

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"prompt": ["Describe a nurse."], "item": ["nurse"]})
    >>> [(each.text, each.columns) for each in read_prompts(table)]
    [('Describe a nurse.', {'item': 'nurse'})]
    >>> read_prompts("decisions")[0].columns["stakes"]
    'harmless'
    """
    if isinstance(source, str) and source in prompt_sets():
        return [Prompt(text, columns, system) for text, columns in prompt_rows(source)]
    if isinstance(source, str) and source != "-" and not Path(source).exists():
        known = ", ".join(prompt_sets())
        raise InputError(f"prompts '{source}': no such file, and not built in ({known})")
    with open_table(source) as table:
        column = table.column(prompt, USUAL)
        if column is None:
            raise FileError(
                table.name,
                f"which column is the prompt? Name it with {parameter('prompt')} (columns: "
                f"{', '.join(table.columns)})",
            )
        prompts = []
        for number, row in enumerate(table.rows(*table.columns), 1):
            cells = dict(zip(table.columns, row, strict=True))
            text = cells.pop(column)
            if text is None:
                raise FileError(
                    table.name, f"row {number}: '{column}': expected a prompt, got none"
                )
            prompts.append(Prompt(text, cells, cells.pop("system", None) or system))
        if not prompts:
            raise FileError(os.fspath(table.name), "expected prompts, got a header only")
    return prompts
