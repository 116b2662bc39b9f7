"""Command-line options from the declarations of instruments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click

from evenhand.instruments import Option

F = TypeVar("F", bound=Callable[..., Any])


def declared_options(*classes: Any) -> Callable[[F], F]:
    """The options of these instruments; an option that several share appears once."""
    options: dict[str, Option] = {}
    for cls in classes:
        for each in cls.declaration.options:
            options.setdefault(each.name, each)

    def decorate(command: F) -> F:
        for each in reversed(options.values()):
            command = _click_option(each)(command)
        return command

    return decorate


def configure(cls: Any, parameters: Mapping[str, Any], **fixed: Any) -> Any:
    """The instrument with its options taken from the parameters of a command."""
    names = {each.name for each in cls.declaration.options}
    return cls(**{name: parameters[name] for name in names & parameters.keys()}, **fixed)


def describe(classes: Iterable[Any]) -> str:
    """The instruments for a help text: name and question, one line each, kept as they are."""
    rows = [(cls.declaration.name, cls.declaration.question) for cls in classes]
    width = max(len(name) for name, _ in rows)
    lines = "\n".join(f"  {name.ljust(width)}  {question}" for name, question in rows)
    return f"\b\n{lines}"


def _click_option(each: Option) -> Callable[[F], F]:
    flag = each.flag or f"--{each.name.replace('_', '-')}"
    if each.type is bool:
        return click.option(flag, each.name, is_flag=True, default=each.default, help=each.help)
    kind: Any = each.type
    if each.choices:
        kind = click.Choice([str(choice) for choice in each.choices])
    elif each.type is int and (each.minimum is not None or each.maximum is not None):
        kind = click.IntRange(_whole(each.minimum), _whole(each.maximum))
    elif each.type is float and (each.minimum is not None or each.maximum is not None):
        kind = click.FloatRange(each.minimum, each.maximum)
    return click.option(
        flag,
        each.name,
        type=kind,
        default=each.default,
        multiple=each.multiple,
        show_default=each.default not in (None, ()),
        help=each.help,
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
