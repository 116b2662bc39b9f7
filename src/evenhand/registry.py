"""Short name → "module:attribute", imported when it is used, so that naming costs no import.

Other packages add names through entry points of a group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenhand.errors import UnknownNameError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoints


@cache
def entry_points(group: str) -> EntryPoints:
    """The entry points of a group; the files of all installed packages are read once."""
    from importlib.metadata import entry_points

    return entry_points(group=group)


class Registry(Mapping[str, Any]):
    """Names that are looked up lazily; an unknown one suggests the nearest.

    >>> tools = Registry("tool", {"join": "os.path:join"})
    >>> tools["join"]("a", "b")
    'a/b'
    >>> tools["jion"]
    Traceback (most recent call last):
    evenhand.errors.UnknownNameError: unknown tool 'jion': did you mean 'join'? (known: join)
    """

    def __init__(
        self, kind: str, locations: Mapping[str, str], *, group: str | None = None
    ) -> None:
        self.kind = kind
        self.group = group
        self._locations = dict(locations)

    def _all(self) -> dict[str, str]:
        if self.group is None:
            return self._locations
        plugins = {plugin.name: plugin.value for plugin in entry_points(self.group)}
        return {**plugins, **self._locations}

    def __getitem__(self, name: str) -> Any:
        location = self._locations.get(name) or self._all().get(name)
        if location is None:
            raise UnknownNameError(self.kind, name, self._all())
        module, _, attribute = location.partition(":")
        return getattr(import_module(module), attribute)

    def __contains__(self, name: object) -> bool:
        return name in self._all()

    def __iter__(self) -> Iterator[str]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())
