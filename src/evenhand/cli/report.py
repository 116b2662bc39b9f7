"""`evenhand report`: make the page again from saved results."""

from __future__ import annotations

import click

__all__ = ["report"]


@click.command()
@click.argument("folder", metavar="DIR", type=click.Path())
def report(folder: str) -> None:
    """Make report.html and its figures again from the results that an audit saved in DIR.

    \b
    Example:  evenhand report audit-out
    """
    from evenhand.report import write_report

    page, *figures = write_report(folder)
    click.echo(f"{len(figures)} figures written")
    click.echo(f"report: {page}")
