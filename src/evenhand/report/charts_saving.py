"""A set of charts by name, and saving it as SVG, PDF or a page."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from evenhand.errors import InputError, UnknownNameError
from evenhand.report.charts import Chart, styled, to_svg
from evenhand.results import replace_file

__all__ = ["FORMATS", "ChartSet", "save_charts"]

FORMATS = ("svg", "pdf", "html")


@dataclass(frozen=True, slots=True)
class ChartSet:
    """Charts by name, in the order of reading, and those that the data do not allow, with why."""

    charts: dict[str, Chart] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, make: Callable[[], Chart]) -> None:
        """Make one chart, or keep the reason why it cannot be made."""
        try:
            self.charts[name] = make()
        except InputError as error:
            self.skipped[name] = str(error)


def save_charts(
    charts: Mapping[str, Chart], folder: Path, formats: Iterable[str] = ("svg",)
) -> list[Path]:
    """Write each chart in each format, whole or not at all; an HTML file needs no network."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, chart in charts.items():
        for kind in formats:
            path = folder / f"{name}.{kind}"
            content = _content(chart, kind)
            with replace_file(path) as file:
                file.write(content)
            paths.append(path)
    return paths


def _content(chart: Chart, kind: str) -> bytes:
    if kind not in FORMATS:
        raise UnknownNameError("format", kind, FORMATS)
    if kind == "svg":
        return to_svg(chart).encode()
    if kind == "pdf":
        pages = io.BytesIO()
        styled(chart).save(pages, format="pdf")
        return pages.getvalue()
    text = io.StringIO()
    styled(chart).save(text, format="html", inline=True)
    return text.getvalue().encode()
