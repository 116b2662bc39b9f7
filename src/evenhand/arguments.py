"""Arguments of public functions, checked against the annotations before any work.

>>> @checked
... def repeat(text: str, times: int = 2) -> str:
...     return text * times
>>> repeat("a", times="b")
Traceback (most recent call last):
evenhand.errors.InputError: times: expected a whole number, got 'b'
"""

from __future__ import annotations

import collections.abc
import inspect
import numbers
import os
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import suppress
from functools import cache, wraps
from typing import Any, Literal, ParamSpec, TypeVar

from evenhand.errors import InputError, UnknownNameError

P = ParamSpec("P")
T = TypeVar("T")

WORDS: dict[object, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "True or False",
    types.NoneType: "None",
    os.PathLike: "a path",
}


def checked(function: Callable[P, T]) -> Callable[P, T]:
    """Check the arguments of a function; see `check_arguments`."""
    signature = inspect.signature(function)

    @wraps(function)
    def call(*given: P.args, **named: P.kwargs) -> T:
        check_arguments(function, signature.bind(*given, **named).arguments)
        return function(*given, **named)

    return call


def check_fields(settings: object) -> None:
    """Check the fields of a dataclass; see `check_arguments`."""
    owner: type = type(settings)
    check_arguments(owner, {name: getattr(settings, name) for name in _hints(owner)})


def check_arguments(owner: Callable[..., object], given: Mapping[str, object]) -> None:
    """Raise an InputError that names the first argument that is not what its annotation says.

    Numbers, texts, choices, collections, functions and classes are checked; what a module
    imports only for type checkers, and protocols, allow anything.
    """
    for name, hint in _hints(owner).items():
        if name in given and not _allows(hint, given[name]):
            kinds = [each for each in _members(hint) if each is not types.NoneType]
            chosen = all(typing.get_origin(each) is Literal for each in kinds)
            if chosen and isinstance(given[name], str):
                known = [choice for each in kinds for choice in typing.get_args(each)]
                raise UnknownNameError(name, str(given[name]), known)
            raise InputError(f"{name}: expected {_describe(hint)}, got {given[name]!r:.80}")


@cache
def _hints(owner: Any) -> Mapping[str, object]:
    hints: dict[str, object] = {}
    for base in reversed(owner.__mro__) if isinstance(owner, type) else (owner,):
        names = vars(sys.modules[base.__module__])
        for name, written in inspect.get_annotations(base).items():
            one = types.SimpleNamespace(__annotations__={name: written})
            with suppress(NameError, TypeError):  # imported for type checkers only
                hints |= typing.get_type_hints(one, names)
    hints.pop("return", None)
    return hints


def _members(hint: Any) -> tuple[Any, ...]:
    """The annotations of a union, or the only one."""
    union = typing.get_origin(hint) in (typing.Union, types.UnionType)
    return typing.get_args(hint) if union else (hint,)


def _allows(hint: Any, value: Any) -> bool:
    """Whether an annotation allows a value."""
    if len(_members(hint)) > 1:
        return any(_allows(each, value) for each in _members(hint))
    origin, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is Literal:
        return any(value is each or (type(value) is type(each) and value == each) for each in inner)
    if origin is collections.abc.Callable:
        return callable(value)
    if origin is object or not isinstance(origin, type) or hint == Any:
        return True
    if getattr(origin, "_is_protocol", False):
        return "__call__" not in vars(origin) or callable(value)
    if origin is bool or isinstance(value, bool):
        return isinstance(value, bool) and origin is bool
    if origin is int:
        return isinstance(value, numbers.Integral)
    if origin is float:
        return isinstance(value, numbers.Real)
    if issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(
            _allows(inner[-1], each) for each in value.values() if inner
        )
    if issubclass(origin, Collection | Iterable) and inner and not issubclass(origin, str):
        if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable):
            return False
        of = Any if origin.__module__ == "numpy" else inner[0]
        nested = typing.get_origin(of) is not None  # of a word for a list, functions say more
        return not isinstance(value, Collection) or all(
            _allows(of, each) for each in value if not (nested and isinstance(each, str))
        )
    return isinstance(value, origin)


def _describe(hint: Any) -> str:
    """An annotation in words."""
    if len(_members(hint)) > 1:
        return " or ".join(dict.fromkeys(map(_describe, _members(hint))))
    origin, inner = typing.get_origin(hint) or hint, typing.get_args(hint)
    if origin is Literal:
        return ", ".join(map(repr, inner))
    if origin in WORDS:
        return WORDS[origin]
    if issubclass(origin, Mapping):
        return "a mapping"
    if issubclass(origin, Collection | Iterable) and inner:
        return {
            str: "a list of texts",
            int: "a list of whole numbers",
            float: "a list of numbers",
        }.get(inner[0], "a list")
    return "a function" if origin is collections.abc.Callable else origin.__name__
