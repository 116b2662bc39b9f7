"""What a page is built of: sections with paragraphs, figures and tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from evenhand.report.charts import inline, to_svg
from evenhand.report.wording import interval, number, p_value

if TYPE_CHECKING:
    from evenhand.report.charts import Chart

__all__ = ["Block", "Cell", "Figure", "Section", "Table", "Text", "cell", "p_cell", "span"]


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; a `warning` stands out."""

    words: str
    kind: Literal["text", "warning"] = "text"


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with the sentence on how to read it and the words that stand for it."""

    name: str
    svg: str = field(repr=False)
    caption: str
    words: str
    kind: Literal["figure"] = "figure"

    @classmethod
    def of(cls, name: str, chart: Chart, caption: str, words: str) -> Figure:
        return cls(name, to_svg(chart), caption, words)

    @property
    def inlined(self) -> str:
        """The chart as part of a page."""
        return inline(self.svg, self.name, self.words)


@dataclass(frozen=True, slots=True)
class Cell:
    """What a cell shows, and for numbers what it is sorted by."""

    text: str
    value: float | None = None


def cell(value: float | str | None, digits: int = 3) -> Cell:
    """A cell with a number or a text."""
    if isinstance(value, str):
        return Cell(value)
    return Cell(number(value, digits), value)


def span(low: float, high: float, digits: int = 3) -> Cell:
    """A cell with an interval, sorted by its lower end."""
    return Cell(interval(low, high, digits), low)


def p_cell(p: float | None) -> Cell:
    """A cell with a p-value."""
    return Cell(p_value(p), p)


@dataclass(frozen=True, slots=True)
class Table:
    """A sortable table; `words` tables can be searched, `folded` ones open on request."""

    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[Cell]] = field(repr=False)
    words: bool = False
    folded: bool = False
    kind: Literal["table"] = "table"

    @property
    def numeric(self) -> list[bool]:
        """Which columns hold numbers."""
        return [
            any(row[i].value is not None for row in self.rows) for i in range(len(self.headers))
        ]

    @classmethod
    def of(
        cls,
        caption: str,
        headers: Sequence[str],
        rows: Iterable[Sequence[Cell | str]],
        *,
        words: bool = False,
        folded: bool = False,
    ) -> Table:
        cells = [[Cell(c) if isinstance(c, str) else c for c in row] for row in rows]
        return cls(caption, headers, cells, words, folded)


Block = Text | Figure | Table


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with what stands under it; parts are sections one level down."""

    name: str
    title: str
    blocks: Sequence[Block] = ()
    parts: Sequence[Section] = ()

    def figures(self) -> Iterable[Figure]:
        """The figures of the section and its parts."""
        yield from (block for block in self.blocks if isinstance(block, Figure))
        for part in self.parts:
            yield from part.figures()
