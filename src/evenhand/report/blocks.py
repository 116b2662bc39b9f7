"""What a page is built of: sections with paragraphs, figures and tables, and their templates."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from evenhand.charts import Chart, chart_title, finite, inline, not_drawn, to_svgs
from evenhand.errors import DrawingError, InputError
from evenhand.files import replace_file, signed
from evenhand.wording import (
    interval,
    number,
    p_relation,
    p_value,
    percent,
    probability,
    slug,
    upper_first,
    visible,
)

if TYPE_CHECKING:
    from jinja2 import Environment

    from evenhand.report.verdicts import Verdict


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph; a `warning` stands out."""

    words: str
    kind: Literal["text", "warning"] = "text"


@dataclass(frozen=True, slots=True)
class Figure:
    """A chart with the sentence on how to read it and the text that stands for it.

    `narrow` is the chart redrawn for a phone. A `folded` one opens on request; `like` is the figure
    that the rest of the explanation is at, where an earlier one was explained in the same words.
    """

    name: str
    svg: str = field(repr=False)
    caption: str
    words: str
    narrow: str = field(default="", repr=False)
    folded: bool = False
    like: str = ""
    kind: Literal["figure"] = "figure"

    @classmethod
    def of(cls, name: str, chart: Chart, caption: str, words: str) -> Figure:
        try:
            wide, narrow = to_svgs(chart)
        except DrawingError as error:
            wide = narrow = not_drawn(error)
        return cls(name, wide, caption, words, narrow)

    @property
    def title(self) -> str:
        """What the chart shows, in a few words: the beginning of the text that stands for it."""
        return re.split(r"[:.;](?:\s|$)", self.words, maxsplit=1)[0]

    @property
    def inlined(self) -> str:
        """The chart as part of a page, for wide screens and for narrow ones."""
        narrow = inline(self.narrow, f"{self.name}-n", self.words, room="narrow")
        return inline(self.svg, self.name, self.words) + (narrow if self.narrow else "")


@dataclass(frozen=True, slots=True)
class TableCell:
    """The text of a cell, and for numbers its sort key."""

    text: str
    value: float | None = None


def cell(value: float | str | None, digits: int = 3) -> TableCell:
    """A cell with a number or a text."""
    if isinstance(value, str):
        return TableCell(value)
    return TableCell(number(value, digits), finite(value))


def count(value: int | None) -> TableCell:
    """A cell with a whole number."""
    return TableCell("–") if value is None else TableCell(f"{value:,}", float(value))


def share(value: float | None) -> TableCell:
    """A cell with a share in percent."""
    return TableCell("–" if value is None else percent(value), value)


def span(low: float | None, high: float | None, digits: int = 3) -> TableCell:
    """A cell with an interval, sorted by its lower end."""
    return TableCell(interval(low, high, digits), finite(low))


def p_cell(p: float | None, draws: float | None = None) -> TableCell:
    """A cell with a p-value, with the digits that its random draws support."""
    return TableCell(p_value(p, draws), p)


@dataclass(frozen=True, slots=True)
class PageTable:
    """A sortable table with a `name` of its own on its page.

    Long ones open on request; `folded` ones always do, and are not printed where they are long.
    """

    caption: str
    headers: Sequence[str]
    rows: Sequence[Sequence[TableCell]] = field(repr=False)
    words: bool = False
    folded: bool = False
    name: str = ""
    kind: Literal["table"] = "table"

    @property
    def title(self) -> str:
        """The caption without the brackets at its end."""
        return self.caption.split(" (")[0]

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
        rows: Iterable[Sequence[TableCell | str]],
        *,
        words: bool = False,
        folded: bool = False,
    ) -> PageTable:
        cells = [[TableCell(c) if isinstance(c, str) else c for c in row] for row in rows]
        return cls(caption, headers, cells, words, folded)


Columns = Mapping[str, Callable[[Any], TableCell | str]]
"""The headings of a table, each with what its cells show of a result."""


def result_table(
    caption: str,
    names: Sequence[str],
    rows: Iterable[Sequence[Any]],
    columns: Columns,
    *,
    words: bool = False,
    folded: bool = False,
) -> PageTable:
    """A table of results: one row per result, which comes last in its row, after its names.

    >>> from evenhand.results import Estimate
    >>> rows = [("weat", Estimate(value=1.5, low=1.0, high=1.9))]
    >>> [c.text for c in result_table("", ("Measure",), rows, value_columns(0.95)).rows[0]]
    ['weat', '1.500', '[1.000, 1.900]']
    """
    return PageTable.of(
        caption,
        (*names, *columns),
        ((*texts, *(show(result) for show in columns.values())) for *texts, result in rows),
        words=words,
        folded=folded,
    )


def value_columns(prob: float | None = None, value: str = "Value") -> Columns:
    """A value and its interval."""
    return {
        value: lambda m: cell(m.value),
        f"{percent(prob)} interval" if prob else "Interval": lambda m: span(m.low, m.high),
    }


P: Columns = {"p": lambda m: p_cell(m.p, m.draws)}


@dataclass(frozen=True, slots=True)
class Judged:
    """The verdicts on a subject as cards; `titles` are those of topics."""

    verdicts: Sequence[Verdict]
    titles: Mapping[str, str]
    kind: Literal["judged"] = "judged"


Block = Text | Figure | PageTable | Judged


@dataclass(frozen=True, slots=True)
class Section:
    """A heading with what stands under it; parts are sections one level down."""

    name: str
    title: str
    blocks: Sequence[Block] = ()
    parts: Sequence[Section] = ()

    @classmethod
    def of(
        cls, name: str, title: str, parts: Iterable[Section], blocks: Sequence[Block] = ()
    ) -> Section:
        """The section with the parts that are not empty, and its blocks if there is one."""
        shown = [part for part in parts if part.blocks or part.parts]
        return cls(name, title, blocks if shown else (), shown)

    def figures(self) -> Iterable[Figure]:
        """The figures of the section and its parts."""
        yield from (block for block in self.blocks if isinstance(block, Figure))
        for part in self.parts:
            yield from part.figures()


def lay_out(sections: Sequence[Section]) -> list[Section]:
    """The sections as a page shows them.

    Of the figures of a section the first is open and the others are folded. Tables have unique
    names. What an earlier figure has said on how to read it is not repeated.
    """
    names: set[str] = set()
    said: dict[str, str] = {}

    def shown(block: Block, *, first: bool) -> Block:
        if isinstance(block, Figure):
            head, _, text = block.caption.rpartition("How to read it: ")
            sentences = re.split(r"(?<=[.!?])\s+(?=[A-Z])", text)
            like = next((said[sentence] for sentence in sentences if sentence in said), "")
            new = " ".join(sentence for sentence in sentences if sentence not in said)
            said.update({sentence: block.name for sentence in sentences if sentence not in said})
            caption = head + upper_first(new) if like else block.caption
            return replace(block, caption=caption, like=like, folded=not first)
        if isinstance(block, PageTable):
            name = slug(block.caption)
            count = itertools.count(2)
            unique = name
            while unique in names:
                unique = f"{name}-{next(count)}"
            names.add(unique)
            return replace(block, name=unique)
        return block

    def laid_out(section: Section) -> Section:
        figures = [block for block in section.blocks if isinstance(block, Figure)]
        blocks = [shown(block, first=block in figures[:1]) for block in section.blocks]
        return replace(section, blocks=blocks, parts=[laid_out(part) for part in section.parts])

    return [laid_out(section) for section in sections]


class Prose:
    """The sentences of one template, by name.

    A template has a macro for each text; its parameters are what the text needs.

    >>> Prose("stages").title("filter")
    'Sentences that assume a gender'
    """

    def __init__(self, template: str) -> None:
        self._template = template

    def __getattr__(self, name: str) -> Callable[..., str]:
        def say(*values: object, **named: object) -> str:
            macros = _texts().get_template(f"{self._template}.jinja").module
            return re.sub(r"[ \n]+", " ", str(getattr(macros, name)(*values, **named))).strip()

        return say

    def lines(self, name: str, /, *values: object, **named: object) -> list[str]:
        """The items of a text that is a list, each beginning with a dash on a new line."""
        text = str(
            getattr(_texts().get_template(f"{self._template}.jinja").module, name)(*values, **named)
        )
        items = re.split(r"^- ", text.strip(), flags=re.MULTILINE)
        return [re.sub(r"[ \n]+", " ", item).strip() for item in items if item.strip()]

    def text(self, name: str, /, *values: object, **named: object) -> Text:
        """The text as a paragraph."""
        return Text(getattr(self, name)(*values, **named))


HOW = (
    "the dot is the value and the line its interval, which covers the values that the data leave "
    "plausible; a dashed line or a grey tick is the value without bias, a pale band what chance "
    "gives."
)
"""How to read a forest."""


def figure(name: str, draw: Callable[[], Chart], words: str = "", how: str = HOW) -> Figure | Text:
    """The chart as a figure; without data to draw, a warning with the reason.

    A chart that has a description says itself how to read it; `words` stand for the chart, by
    default its title.
    """
    from altair.utils.schemapi import debug_mode

    try:
        with debug_mode(False):  # charts are valid, as tests show; a check takes half the time
            chart = draw()
    except InputError as error:
        return Text(f"No figure: {error}.", "warning")
    own = chart._get("description")
    how = own if isinstance(own, str) else how
    title = words or f"{chart_title(chart) or name}. The tables have all numbers."
    return Figure.of(name, chart, f"How to read it: {how}", visible(title))


def listed(results: Iterable[tuple[str, Any]]) -> str:
    """The labels and values of results with their intervals.

    >>> from evenhand.results import Estimate
    >>> listed([("weat", Estimate(value=1.5, low=1.0, high=1.9))])
    'weat 1.500 [1.000, 1.900]'
    """
    return "; ".join(f"{label} {number(m.value)} {interval(m.low, m.high)}" for label, m in results)


FILTERS: Mapping[str, Any] = {
    "listed": listed,
    "number": number,
    "p": p_value,
    "p_relation": p_relation,
    "percent": percent,
    "probability": probability,
    "thousands": lambda value: f"{value:,}",
    "upper_first": upper_first,
}


@cache
def _environment(*, html: bool) -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("evenhand.report"),
        autoescape=html,  # noqa: S701 (plain texts are escaped by the page)
        finalize=lambda value: visible(value) if type(value) is str else value,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= FILTERS
    environment.globals |= {"interval": interval}
    return environment


@cache
def _texts() -> Environment:
    return _environment(html=False)


def render_page(
    template: str, sections: Sequence[Section], start: Sequence[Section] = (), **values: object
) -> str:
    """One self-contained HTML file: `start` on the first tab, then a tab for each section.

    A name that the template has and `values` lacks is an error.
    """
    templates = resources.files("evenhand.report") / "templates"
    shown = lay_out([*start, *sections])
    return (
        _environment(html=True)
        .get_template(template)
        .render(
            start=shown[: len(start)],
            sections=shown[len(start) :],
            style="".join(
                (templates / name).read_text(encoding="utf-8")
                for name in ("colours.css", "style.css")
            ),
            script=(templates / "script.js").read_text(encoding="utf-8"),
            **values,
        )
    )


def write_results(
    path: str | os.PathLike[str],
    title: str,
    summary: Sequence[str],
    sections: Iterable[Section],
    limits: str,
    *,
    start: Sequence[Section] = (),
    notices: Sequence[str] = (),
) -> Path:
    """Write the page of results that are no audit.

    The first tab has notices, the summary, whose first sentence is the answer, and `start`; then
    comes a tab for each section.
    """
    text = render_page(
        "results.html",
        [section for section in sections if section.blocks or section.parts],
        start,
        title=title,
        summary=summary,
        limits=limits,
        notices=notices,
    )
    with replace_file(path) as file:
        file.write(signed(text))
    return Path(path)


def render_text(template: str, **values: object) -> str:
    """A text file, such as Markdown, from its template."""
    return _texts().get_template(template).render(**values)
