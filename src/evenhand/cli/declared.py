"""Command-line options from the declarations of instruments."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

import click
from click.core import ParameterSource

from evenhand.instruments import Option

F = TypeVar("F", bound=Callable[..., Any])


def declared_options(*classes: Any) -> Callable[[F], F]:
    """The options of these instruments; an option that several share appears once."""
    options: dict[str, Option] = {}
    for cls in classes:
        for option in cls.declaration.options:
            options.setdefault(option.name, option)

    def decorate(command: F) -> F:
        for option in reversed(options.values()):
            command = _click_option(option)(command)
        return command

    return decorate


def configure(cls: Any, parameters: Mapping[str, Any], **fixed: Any) -> Any:
    """The instrument with its options taken from the parameters of a command."""
    names = {option.name for option in cls.declaration.options}
    return cls(**{name: parameters[name] for name in names & parameters.keys()}, **fixed)


def given_options(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a command's parameters that the user gave; the others have their defaults."""
    context = click.get_current_context()
    return {
        name: value
        for name, value in parameters.items()
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }


def describe(classes: Iterable[Any]) -> str:
    """The instruments for a help text: name and question, one line each."""
    rows = [(cls.declaration.name, cls.declaration.question) for cls in classes]
    width = max(len(name) for name, _ in rows)
    lines = "\n".join(f"  {name.ljust(width)}  {question}" for name, question in rows)
    return f"\b\n{lines}"


def flags_of(option: Option) -> list[str]:
    """The names of an option on the command line."""
    return (option.flag or f"--{option.name.replace('_', '-')}").split()


def _click_option(option: Option) -> Callable[[F], F]:
    flags = flags_of(option)
    if option.type is bool:
        return click.option(
            *flags, option.name, is_flag=True, default=option.default, help=option.help
        )
    kind: Any = option.type
    if option.choices:
        kind = click.Choice([str(choice) for choice in option.choices])
    elif option.type is int and (option.minimum is not None or option.maximum is not None):
        kind = click.IntRange(_whole(option.minimum), _whole(option.maximum))
    elif option.type is float and (option.minimum is not None or option.maximum is not None):
        kind = click.FloatRange(option.minimum, option.maximum)
    return click.option(
        *flags,
        option.name,
        type=kind,
        default=option.default,
        multiple=option.multiple,
        show_default=option.default not in (None, ()),
        help=option.help,
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
