"""What every command has: --quiet, help in groups of options, and errors that name the nearest."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Mapping, Sequence
from importlib import import_module
from textwrap import wrap
from typing import Any

import click
from click.shell_completion import CompletionItem

from evenhand import threads
from evenhand.cli.outputs import check_outputs, has_outputs, overwrite_option
from evenhand.cli.progress import flag
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
        *("--overwrite", "--json", "--quiet", "--help"),
    ),
}
"""Options that several commands have, in the order in which help shows them after a command's own
options."""

METAVARS = {" INTEGER RANGE": " N", " FLOAT RANGE": " X", " INTEGER": " N", " FLOAT": " X"}
"""The placeholder of a value in help, shorter than click's."""

SEEDS = "; 0<=x<=4294967295"
"""Click's range text for seeds, hidden from help."""


class _Help:
    """Help whose examples and lists fit the terminal."""

    help: str | None

    def format_help_text(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
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
        if has_outputs(self.params):
            self.params.append(overwrite_option())
        self.params.append(click.Option(["-q", "--quiet"], **flag("No progress on stderr.")))

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            rest = super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            raise click.UsageError(_unknown(error.option_name, ctx), ctx) from None
        if not ctx.resilient_parsing:
            check_outputs(ctx)
        return rest

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


class Variants(Command):
    """A command whose arguments decide on its options."""

    def variant(self, args: Sequence[str]) -> tuple[Command, str, list[str]] | None:
        """The command that runs with these arguments, what its name adds, and its arguments."""
        raise NotImplementedError

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: object,
    ) -> click.Context:
        if (found := self.variant(args)) is not None:
            own, added, rest = found
            return own.make_context(f"{info_name}{added}", rest, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


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


def _unknown(name: str, ctx: click.Context) -> str:
    """The error for an unknown option, with the nearest known one."""
    flags = [flag for p in ctx.command.get_params(ctx) for flag in (*p.opts, *p.secondary_opts)]
    known = [flag for flag in flags if flag.startswith("--")]
    near = difflib.get_close_matches(name, known, n=1)
    if near:
        return f"no such option {name}: did you mean {near[0]}?"
    return f"no such option {name}; `{ctx.command_path} --help` lists them"


class CommandTree(Group):
    """A group from a table: sections of commands, imported when they are used.

    Each name has a short help and, as "module:attribute", where its command is.
    """

    def __init__(self, sections: Mapping[str, Mapping[str, tuple[str, str]]], **about: Any) -> None:
        super().__init__(**about)
        self.sections = sections
        self.table = {name: row for commands in sections.values() for name, row in commands.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self.table:
            return None
        threads.configure(ctx.find_root().params.get("threads"))  # before NumPy is loaded
        module, _, attribute = self.table[cmd_name][1].partition(":")
        command: click.Command = getattr(import_module(f"evenhand.cli.{module}"), attribute)
        command.short_help = self.table[cmd_name][0]
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in self.table if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=self.table[name][0]) for name in names), *options]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for title, commands in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name, text) for name, (text, _) in commands.items()])
