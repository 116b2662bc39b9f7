"""What every command has: --quiet, help in groups of options, and errors that name the nearest."""

from __future__ import annotations

import difflib
import inspect
import re
from textwrap import wrap
from typing import Any

import click

from evenhand.cli.progress import QUIET
from evenhand.errors import UnknownNameError

GROUPS: dict[str, tuple[str, ...]] = {
    "Input": (
        *("--data", "--text", "--label", "--gender", "--male", "--female"),
        *("--predictions", "--true", "--pred", "--score", "--group", "--cluster", "--item"),
        *("--model-column", "--version-column", "--case", "--input-format", "--encoding"),
        "--max-size",
    ),
    "Model": ("--model", "--device", "--dtype", "--int8", "--cache"),
    "Run": ("--seed", "--prob", "--workers", "--threads", "--restart"),
    "Output": (
        *("--out", "--out-format", "--items", "--figures", "--figure-format"),
        *("--json", "--quiet", "--help"),
    ),
}
"""Options that several commands have, in the order in which help shows them after a command's own
options."""

METAVARS = {" INTEGER RANGE": " N", " FLOAT RANGE": " X", " INTEGER": " N", " FLOAT": " X"}
"""What stands for a value in help, shorter than what click writes."""

SEEDS = "; 0<=x<=4294967295"
"""The range of a seed, which helps nobody."""

RENAMED = {
    "--answers": ("--top",),
    "--beyond": ("--min-bias",),
    "--block": ("--max-length",),
    "--classes": ("--class",),
    "--control": ("--control-training", "--control-edits"),
    "--dimension": ("--by-dimension",),
    "--direction": ("--toward", "--stereotype"),
    "--draws": ("--null",),
    "--duplicates": ("--repeats",),
    "--edits": ("--max-edits",),
    "--field": ("--text",),
    "--format": ("--figure-format", "--input-format", "--out-format"),
    "--jobs": ("--workers",),
    "--judge": ("--tagger",),
    "--kinds": ("--kind",),
    "--least": ("--threshold",),
    "--limit": ("--max-length",),
    "--mask": ("--mask-share",),
    "--max-threads": ("--threads",),
    "--model": ("--family", "--model-column"),
    "--no-control": ("--no-control-edits",),
    "--no-resume": ("--restart",),
    "--output": ("--out",),
    "--probability": ("--rewrite-share",),
    "--resume": ("--restart",),
    "--sentences": ("--split-sentences", "--per-descriptor"),
    "--sets": ("--set", "--simulations"),
    "--threshold": ("--max-distance",),
    "--topics": ("--topic",),
    "--tosses": ("--permutations",),
    "--version": ("--version-column",),
    "--words": ("--word", "--gender-words"),
    "-k": ("--dimensions",),
    "-n": ("--top",),
}
"""Spellings of version 0.1 and what an error suggests instead."""


class _Help:
    """Help whose examples and lists fit the terminal."""

    help: str | None

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        text = inspect.cleandoc(self.help or "").partition("\f")[0]
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text(fold(text, formatter.width - 2))


def fold(text: str, width: int) -> str:
    """Break long lines of what click leaves as it is: commands, and lists of names.

    >>> print(fold("\\b\\n  evenhand audit --quick --model ./my-model -o out", 33)[2:])
      evenhand audit --quick \\
          --model ./my-model -o out
    >>> print(fold("\\b\\n  weat  Do two sets of words differ?", 26)[2:])
      weat  Do two sets of
            words differ?
    """
    lines: list[str] = []
    literal = False
    for line in text.split("\n"):
        literal = line.strip() == "\b" or (literal and bool(line.strip()))
        if not literal or len(line) <= width:
            lines.append(line)
            continue
        indent = len(line) - len(line.lstrip())
        listed = re.match(r" *\S+  +", line)
        if listed:
            lines += wrap(line, width, subsequent_indent=" " * listed.end())
        elif line.lstrip().startswith(("evenhand ", "echo ")):
            joined = re.sub(r"( -\S+) (?!-)", rf"\1{JOINED}", line)  # an option and its value
            parts = wrap(joined, width - 2, subsequent_indent=" " * (indent + 4), **UNBROKEN)
            parts = [part.replace(JOINED, " ") for part in parts]
            lines += [part + " \\" for part in parts[:-1]] + parts[-1:]
        else:
            lines += wrap(line, width, subsequent_indent=" " * (indent + 2))
    return "\n".join(lines)


JOINED = "\x00"
UNBROKEN: dict[str, Any] = {"break_long_words": False, "break_on_hyphens": False}


class Command(_Help, click.Command):
    """A command with --quiet, whose help groups the options that several commands have."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.params.append(
            click.Option(
                ["-q", "--quiet"],
                is_flag=True,
                expose_value=False,
                callback=_set_quiet,
                help="No progress on stderr.",
            )
        )

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise click.UsageError(_unknown(error.option_name, ctx), ctx) from None

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        records = {
            parameter: record
            for parameter in self.get_params(ctx)
            if isinstance(parameter, click.Option)
            and (record := parameter.get_help_record(ctx)) is not None
        }
        grouped = {flag: name for name, flags in GROUPS.items() for flag in flags}
        sections: dict[str, list[tuple[int, tuple[str, str]]]] = {
            name: [] for name in ("Options", *GROUPS)
        }
        for parameter, record in records.items():
            flag = next((flag for flag in parameter.opts if flag in grouped), "")
            name = grouped.get(flag, "Options")
            names, text = record
            for long, short in METAVARS.items():
                names = names.replace(long, short)
            text = text.replace(SEEDS, "")
            sections[name].append((GROUPS[name].index(flag) if flag else 0, (names, text)))
        for name, rows in sections.items():
            if rows:
                with formatter.section(name):
                    formatter.write_dl([row for _, row in sorted(rows, key=lambda row: row[0])])


class Group(_Help, click.Group):
    """A group of such commands; an unknown one is an error that names the nearest."""

    command_class = Command
    group_class = type

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        known = self.list_commands(ctx)
        if args[0] not in known and not ctx.resilient_parsing and not args[0].startswith("-"):
            raise UnknownNameError("command", args[0], known)
        return super().resolve_command(ctx, args)


def _set_quiet(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:  # noqa: ARG001
    ctx.meta[QUIET] = value


def _unknown(name: str, ctx: click.Context) -> str:
    """That there is no such option, and which one may be meant."""
    flags = [flag for p in ctx.command.get_params(ctx) for flag in (*p.opts, *p.secondary_opts)]
    known = [flag for flag in flags if flag.startswith("--")]
    near = [flag for flag in RENAMED.get(name, ()) if flag in known]
    near = near or difflib.get_close_matches(name, known, n=1)
    if near:
        return f"no such option {name}: did you mean {' or '.join(near)}?"
    return f"no such option {name}; `{ctx.command_path} --help` lists them"
