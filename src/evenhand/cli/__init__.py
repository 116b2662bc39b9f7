"""The command line: parse, call, print. Nothing here computes.

Exit 0: done. 1: some of the work failed, what succeeded is saved. 2: the input is wrong; one line
on stderr beginning `error:`. 3: a gate is not met.
"""

from __future__ import annotations

import codecs
import gc
import sys
from collections.abc import Sequence
from importlib import import_module
from io import TextIOWrapper

import click
from click.shell_completion import CompletionItem

from evenhand import __version__, threads
from evenhand.cli.commands import Group
from evenhand.errors import MODELS, EvenhandError, MissingExtraError, PartialFailure, in_shell
from evenhand.wording import encodable, visible

__all__ = ["command", "main", "run"]


COMMANDS = {
    "ask": "Which pronoun a model expects in a sentence, in one short answer.",
    "audit": "Audit word vectors, a language model and data; write one page.",
    "cite": "How to cite Evenhand, and the authors of a measure.",
    "classifier": "Gaps of any classifier between groups, from its predictions.",
    "completion": "Let the shell complete commands, options and values.",
    "doctor": "What is installed, devices, caches and versions.",
    "explore": "Models, vectors and audits in the browser, live.",
    "fewshot": "Train few-shot classifiers and measure their accuracy and gender bias.",
    "gate": "Check results against a policy, by intervals; exit 3 if not met.",
    "grid": "Run many experiments, on one machine, a Slurm cluster or Ray.",
    "list": "List what there is, such as every metric with its formula and options.",
    "masked": "Measure, fine-tune and probe masked language models.",
    "model": "Measure language models of every kind, masked and causal.",
    "posterior": "Posteriors of cosine bias, and how many words a study needs.",
    "report": "Write the page of an audit again, or compare audits.",
    "scores": "Compare models by item scores of any tool: intervals, ranks, power.",
    "text": "Rewrite, filter and annotate text; measure the gender odds of a corpus.",
    "vectors": "Inspect, measure and debias static word vectors.",
}
"""Every command with its short help; `evenhand.cli.NAME` has the command `NAME`."""


class Commands(Group):
    """The commands, imported when they are used, so that `--help` is fast."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        name = "reference" if cmd_name == "list" else cmd_name
        threads.configure(ctx.params.get("threads"))  # before NumPy and torch are loaded
        command: click.Command = getattr(import_module(f"evenhand.cli.{name}"), name)
        return command

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [name for name in COMMANDS if name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(name, help=COMMANDS[name]) for name in names), *options]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.group(
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nStart with:\n"
    '  evenhand ask "The clerk lost [MASK] keys."\n'
    '  evenhand text swap "Her neighbour waved to her."\n'
    "  evenhand vectors measure glove --topic gender\n  evenhand audit",
)
@click.option(
    "--threads",
    type=click.IntRange(1),
    help="Threads that numeric libraries use.  [default: OMP_NUM_THREADS, or one per free core]",
)
@click.version_option(__version__, prog_name="evenhand")
def command(threads: int | None) -> None:
    """Measure, explain and reduce social bias in text, word embeddings, language models and
    classifiers, with the uncertainty of every number.

    Vectors and models are named the same way everywhere: an embedded name (glove, mini), the path
    of a file of vectors (GloVe or word2vec text, word2vec binary, fastText .vec, Evenhand's .npz,
    or gzip of these) or of a model's folder (transformers layout), or hf:NAME for a model of the
    hub.
    """


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; errors become one line on stderr."""
    try:
        with in_shell():
            code = command.main(list(arguments), prog_name="evenhand", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except click.exceptions.NoArgsIsHelpError as error:
        click.echo(error.format_message(), err=True)
        return 2
    except click.ClickException as error:
        return _fail(error.format_message(), 2)
    except (click.Abort, KeyboardInterrupt):
        return _fail("stopped; run the same command again to resume", 130)
    except PartialFailure as error:
        return _fail(str(error), 1)
    except EvenhandError as error:
        return _fail(str(error), 2)
    except ModuleNotFoundError as error:
        package = (error.name or "").partition(".")[0]
        if package not in MODELS:
            raise
        return _fail(str(MissingExtraError(package, "this command", "evenhand[models]")), 2)
    except RecursionError:
        return _fail("the input is nested too deeply", 2)
    except MemoryError:
        return _fail("the input needs more memory than there is", 2)
    except OSError as error:
        file = f"{error.filename}: " if error.filename else ""
        return _fail(f"{file}{error.strerror or error}", 2)


def _fail(message: str, code: int) -> int:
    click.echo("error: " + visible(" ".join(message.split())), err=True)
    return code


def _allow_every_character() -> None:
    """Make printing never fail on a character that a code page, such as cp1252, does not have."""
    codecs.register_error("spell", _spell)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="spell")


def _spell(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return encodable(error.object[error.start : error.end], error.encoding), error.end


def main() -> None:
    """The console entry point."""
    _allow_every_character()
    gc.set_threshold(100_000)  # by default it runs hundreds of times while modules are imported
    code = run(sys.argv[1:])
    gc.freeze()  # a last collection of all modules would find nothing and takes 0.1 s
    sys.exit(code)
