"""What every measurement returns: a number with its interval, its items and what was left out.

Frozen types with a JSON view, a DataFrame view and an atomic save, so that a killed run leaves
either the whole file or none.
"""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "SCHEMA",
    "Comparison",
    "Estimate",
    "Item",
    "Measurement",
    "Worse",
    "document",
    "replace_file",
    "save_csv",
    "save_json",
    "to_json",
]

SCHEMA = "evenhand/1"

Worse = Literal["higher", "lower", "away"]
"""Which way is worse: above the ideal, below it, or away from it on either side."""

Item = Mapping[str, Any]
"""One row behind a measurement: a word, a pair or a sentence with its own score."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A value with the interval that holds the truth with probability `prob`."""

    value: float
    low: float
    high: float
    prob: float = 0.95

    def as_dict(self) -> dict[str, Any]:
        return {"value": self.value, "low": self.low, "high": self.high, "prob": self.prob}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One measured bias: the number, how sure we are, and everything it was made of.

    `ideal` is the measure's perfect value and `worse` the direction of more bias. Measures of
    size alone, such as direct bias, never read 0 on real words: `details` has the null, what
    random words read, where there is one. `interval` and `test` say in words what `low`, `high`
    and `p_value` rest on. Each item
    has at least `word` and `score`; `without`, where present, is the value with that item left
    out (the jackknife replicate that comparisons are made of).
    """

    metric: str
    query: str
    value: float
    low: float
    high: float
    n: int
    ideal: float | None
    worse: Worse
    interval: str
    prob: float = 0.95
    p_value: float | None = None
    test: str = ""
    items: tuple[Item, ...] = field(default=(), repr=False)
    left_out: tuple[str, ...] = ()
    seed: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def estimate(self) -> Estimate:
        """The value and its interval alone."""
        return Estimate(value=self.value, low=self.low, high=self.high, prob=self.prob)

    def __str__(self) -> str:
        p = "" if self.p_value is None else f", p = {self.p_value:.2g}"
        ideal = "" if self.ideal is None else f"; ideal {self.ideal:g}"
        if "null_median" in self.details:
            ideal += f", random words read {self.details['null_median']:.3f}"
        out = f"; left out: {', '.join(self.left_out)}" if self.left_out else ""
        return (
            f"{self.metric} {self.query}: {self.value:.3f} [{self.low:.3f}, {self.high:.3f}] "
            f"({self.prob:.0%}){p}, n = {self.n}{ideal}{out}"
        )

    def as_dict(self, *, items: bool = False) -> dict[str, Any]:
        """The JSON view; the raw items only on request, since they can be thousands."""
        row = {name: getattr(self, name) for name in self.__slots__ if name != "items"}
        if items:
            row["items"] = [dict(item) for item in self.items]
        return row

    def to_frame(self) -> pd.DataFrame:
        """The items as a table, a row a word."""
        import pandas as pd

        return pd.DataFrame([dict(item) for item in self.items])

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole measurement, items included, as one JSON document."""
        save_json(path, document(measurements=[self.as_dict(items=True)]))


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The same measurement twice, with an interval on the change, paired item by item."""

    before: Measurement
    after: Measurement
    change: Estimate
    interval: str
    paired: int

    def as_dict(self, *, items: bool = False) -> dict[str, Any]:
        return {
            "metric": self.before.metric,
            "query": self.before.query,
            "before": self.before.as_dict(items=items),
            "after": self.after.as_dict(items=items),
            "change": self.change.as_dict(),
            "interval": self.interval,
            "paired": self.paired,
        }


def document(**content: Any) -> dict[str, Any]:
    """A JSON document of ours: the schema first, then the content."""
    return {"schema": SCHEMA, **content}


def to_json(value: Any, *, indent: int | None = 2) -> str:
    """Strict JSON (numbers that are not finite become null), stable and readable.

    >>> to_json({"a": float("nan"), "b": (1, 2)}, indent=None)
    '{"a": null, "b": [1, 2]}'
    """
    return json.dumps(_plain(value), indent=indent, ensure_ascii=False, allow_nan=False)


def save_json(path: str | os.PathLike[str], value: Any) -> None:
    """Write `value` as JSON, whole or not at all."""
    with replace_file(path) as file:
        file.write((to_json(value) + "\n").encode())


def save_csv(
    path: str | os.PathLike[str],
    rows: Iterable[Mapping[str, Any]],
    columns: Iterable[str] | None = None,
) -> None:
    """Write rows as CSV, whole or not at all; by default every column that a row has."""
    kept = list(rows)
    names = list(columns or dict.fromkeys(name for row in kept for name in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, names, lineterminator="\n")
    writer.writeheader()
    writer.writerows(kept)
    with replace_file(path) as file:
        file.write(text.getvalue().encode())


@contextmanager
def replace_file(path: str | os.PathLike[str]) -> Iterator[IO[bytes]]:
    """Write a file under a temporary name beside `path`; it takes its place only when complete.

    A link is followed: the file it leads to is replaced.
    """
    target = Path(path).resolve()
    if target.is_dir():
        raise IsADirectoryError(errno.EISDIR, "is a folder: expected a file to write", str(path))
    if target.exists() and not target.is_file():
        with target.open("wb") as file:  # a device or a pipe: nothing there to take the place of
            yield file
        return
    handle, temporary = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _plain(value: Any) -> Any:
    """Numpy scalars and arrays, tuples, mappings and result types as plain JSON values."""
    if hasattr(value, "as_dict"):
        value = value.as_dict()
    if hasattr(value, "tolist"):
        value = value.tolist()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return [_plain(item) for item in value]
    return value
