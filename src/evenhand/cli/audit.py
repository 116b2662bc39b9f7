"""`evenhand audit`: everything on the embedded vectors or on yours, and one page."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from evenhand.cli.options import json_option, load_vectors, seed_option

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

    from evenhand.audit import Audit
    from evenhand.results import Measurement

__all__ = ["audit"]


@click.command()
@click.option(
    "--vectors", "source", default="glove", show_default=True, metavar="SRC",
    help="An embedded name or a file of vectors.",
)  # fmt: skip
@click.option(
    "--topics", default="gender,religion,race", show_default=True,
    help="Built-in topics or .toml files of yours, with commas between them.",
)  # fmt: skip
@click.option("--quick", is_flag=True, help="One mitigation on one topic instead of four on each.")
@click.option(
    "--out", default="audit-out", show_default=True, type=click.Path(),
    help="Folder for the page, results, tables and figures.",
)  # fmt: skip
@seed_option
@json_option
def audit(source: str, topics: str, quick: bool, out: str, seed: int, as_json: bool) -> None:
    """Measure, mitigate, measure again, and write one page with a verdict on each topic.

    The same command takes up where it was stopped.

    \b
    Examples:
      evenhand audit
      evenhand audit --vectors my.vec --topics gender,mine.toml --out my-audit
    """
    from evenhand import lexicon
    from evenhand.audit import audit as run
    from evenhand.cli.output import print_json
    from evenhand.errors import PartialFailure

    asked = [lexicon.topic(name.strip()) for name in topics.split(",") if name.strip()]
    v = load_vectors(source, "fallback")
    with _bars(quiet=as_json) as progress:
        found = run(
            v, topics=asked, out=out, quick=quick, seed=seed, progress=progress, read_from=source,
            command=["evenhand", *sys.argv[1:]],
        )  # fmt: skip
    if as_json:
        print_json(
            verdicts=found.verdicts, report=str(found.report), out=str(found.out),
            failed=found.failed, vectors={"name": v.name, "words": len(v), "dim": v.dim},
        )  # fmt: skip
    else:
        _show(found)
    if found.failed:
        reasons = "; ".join(f"{title} ({reason})" for title, reason in found.failed.items())
        raise PartialFailure(f"failed, the rest is saved: {reasons}")


def _numbers(m: Measurement | None) -> tuple[str, str, str]:
    from evenhand.cli.output import number, p_text

    if m is None:
        return "–", "–", "–"
    return number(m.value), f"[{number(m.low)}, {number(m.high)}]", p_text(m.p_value)


def _show(found: Audit) -> None:
    from evenhand.cli.output import table

    table(
        "Verdicts",
        ("topic", "verdict", "value", "interval", "p", "what it says"),
        (
            (
                verdict.topic, verdict.level, *_numbers(verdict.association), verdict.sentence
            )
            for verdict in found.verdicts
        ),
    )  # fmt: skip
    click.echo(f"report: {found.report}")


class _Shown:
    """Two bars: the stages, and the steps of the present one."""

    def __init__(self, bars: Bars) -> None:
        self.bars = bars
        self.whole = bars.add_task("audit", total=None)
        self.part = bars.add_task("", total=None)

    def stage(self, title: str, number: int, of: int) -> None:
        self.bars.update(self.whole, completed=number - 1, total=of)
        self.bars.reset(self.part, description=title, total=None)

    def step(self, done: int, of: int) -> None:
        self.bars.update(self.part, completed=done, total=of)


@contextmanager
def _bars(*, quiet: bool) -> Iterator[_Shown | None]:
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        yield _Shown(bars)
