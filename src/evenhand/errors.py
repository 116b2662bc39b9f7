"""Everything Evenhand raises on purpose.

EvenhandError
├── InputError (a ValueError)   what the user gave is wrong; the shell exits with 2
│   ├── FileError               a file is not what it claims to be: names file and line
│   ├── LexiconError            a topic or word list breaks its format: names file and key
│   ├── SmallDataError          too few classes or texts for the tasks that were requested
│   ├── UnknownNameError        no metric, topic, model … of that name: suggests the nearest
│   └── VocabularyError         too few of the asked-for words have vectors
├── DrawingError                a chart could not be drawn; the page is written without it
├── MissingExtraError           an optional package is not installed: says how to get it
└── PartialFailure              some of the work failed, the rest is saved; exit 1
"""

from __future__ import annotations

import copyreg
import difflib
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from importlib.util import find_spec
from numbers import Integral
from os import PathLike, fspath

__all__ = [
    "DrawingError",
    "EntryWarning",
    "EvenhandError",
    "FileError",
    "InputError",
    "LexiconError",
    "MissingExtraError",
    "PartialFailure",
    "SmallDataError",
    "UnknownNameError",
    "VocabularyError",
    "in_shell",
    "is_shell",
    "parameter",
    "require_models",
]

_IN_SHELL: ContextVar[bool] = ContextVar("in_shell", default=False)


def is_shell() -> bool:
    """Whether messages name parameters as options of the command line."""
    return _IN_SHELL.get()


@contextmanager
def in_shell(shell: bool = True) -> Iterator[None]:
    """Let messages name parameters as options of the command line."""
    token = _IN_SHELL.set(shell)
    try:
        yield
    finally:
        _IN_SHELL.reset(token)


def parameter(name: str, value: object = None, *, python: str = "", option: str = "") -> str:
    """Name a parameter in a message as the user gives it: in Python, or on the command line.

    Parameters
    ----------
    name : str
        Its name in Python.
    value : optional
        The value that the user would give it.
    python, option : str, optional
        What the user would write, where it is not `name=` and `--name`.

    Examples
    --------
    >>> parameter("each_gender")
    'each_gender='
    >>> with in_shell():
    ...     parameter("each_gender")
    '--each-gender'
    >>> parameter("restart", True), parameter("ways", 5)
    ('restart=True', 'ways=5')
    >>> with in_shell():
    ...     parameter("restart", True), parameter("measure", False), parameter("ways", 5)
    ('--restart', '--no-measure', '--ways 5')

    """
    if not is_shell():
        return python or f"{name}={'' if value is None else repr(value)}"
    words = f"no_{name}" if value is False else name
    given = "" if value is None or isinstance(value, bool) else f" {value}"
    return option or f"--{words.replace('_', '-')}{given}"


class EvenhandError(Exception):
    """The root: catch this to catch everything Evenhand raises on purpose."""

    def __reduce__(self) -> tuple[object, ...]:
        """Pickle without `__init__`, whose parameters differ between the classes."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]


class InputError(EvenhandError, ValueError):
    """Invalid input: names the place, what was expected and what was received."""


class EntryWarning(UserWarning):
    """An entry of a cache was ignored: it is not a plain file of this user."""


class FileError(InputError):
    """A file is not what it should be.

    >>> str(FileError("a.vec", "expected 100 numbers, got 99", line=7))
    'a.vec, line 7: expected 100 numbers, got 99'
    """

    def __init__(self, path: str | PathLike[str], problem: str, *, line: int | None = None) -> None:
        self.path = fspath(path)
        self.line = line
        self.problem = problem
        place = self.path if line is None else f"{self.path}, line {line}"
        super().__init__(f"{place}: {problem}")


class LexiconError(FileError):
    """A topic, query or word list breaks its format."""


class SmallDataError(InputError):
    """The data have too few classes or texts for what was requested."""


class UnknownNameError(InputError):
    """No such name; the message lists what there is and suggests the nearest.

    >>> str(UnknownNameError("metric", "waet", ["mac", "weat"]))
    "unknown metric 'waet': did you mean 'weat'? (known: mac, weat)"
    """

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        name, names = str(name), sorted(known)
        near = difflib.get_close_matches(name, names, n=1)
        hint = f": did you mean '{near[0]}'?" if near else ""
        super().__init__(f"unknown {kind} '{name}'{hint} (known: {', '.join(names) or 'none'})")


class VocabularyError(InputError):
    """Too few of the asked-for words have vectors for the question to make sense."""


class MissingExtraError(EvenhandError):
    """An optional package is missing."""

    def __init__(self, package: str, purpose: str, install: str) -> None:
        super().__init__(f"{purpose} needs the package {package}: pip install '{install}'")


class DrawingError(EvenhandError):
    """A chart could not be drawn."""


MODELS = ("torch", "transformers", "tokenizers")
"""The packages of the extra `models`; everything but language models does without them."""


def check_whole(minimum: int = 1, /, **numbers: object) -> None:
    """Raise an InputError that names the first number that is not whole, or below the minimum."""
    for name, value in numbers.items():
        if isinstance(value, bool) or not isinstance(value, Integral) or value < minimum:
            raise InputError(f"{name}: expected a whole number from {minimum} up, got {value!r}")


def require_models(purpose: str = "a language model") -> None:
    """Raise MissingExtraError where a package of the extra `models` is not installed.

    Parameters
    ----------
    purpose : str
        What needs them, as the message begins.

    """
    for package in MODELS:
        if package not in sys.modules and find_spec(package) is None:
            raise MissingExtraError(package, purpose, "evenhand[models]")


class PartialFailure(EvenhandError):  # noqa: N818
    """Some of the work failed; what succeeded is saved."""
