"""The option for figures and how they are saved, the same for every command."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from evenhand.charts import ChartSet

__all__ = ["format_option", "save_figures"]


def _formats(
    ctx: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    value: str,
) -> tuple[str, ...]:
    from evenhand.charts import FORMATS

    asked = tuple(dict.fromkeys(name.strip().lower() for name in value.split(",")))
    for name in asked:
        if name not in FORMATS:
            raise click.BadParameter(f"expected some of {', '.join(FORMATS)}, got '{name}'")
    return asked


format_option = click.option(
    "--format", "formats", default="svg", show_default=True, callback=_formats,
    metavar="FORMAT,…", help="Formats of the figures in FOLDER: svg, pdf, html.",
)  # fmt: skip


def save_figures(made: ChartSet, folder: Path, formats: tuple[str, ...]) -> None:
    """Write the charts into the folder's figures; those that could not be made are named."""
    from evenhand.charts import save_charts

    save_charts(made.charts, folder / "figures", formats)
    for name, reason in made.skipped.items():
        click.echo(f"figure not drawn: {name}: {reason}", err=True)
