"""The command line: parse, call, print. Nothing here computes.

Exit 0: done. 1: some of the work failed, what succeeded is saved. 2: the input is wrong; one line
on stderr beginning `error:`. 3: a gate is not met.
"""

from __future__ import annotations

import codecs
import gc
import sys
import warnings
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any

import click

from evenhand import __version__
from evenhand.cli.commands import CommandTree
from evenhand.errors import (
    MODELS,
    EntryWarning,
    EvenhandError,
    MissingExtraError,
    PartialFailure,
    in_shell,
)
from evenhand.wording import encodable, visible

__all__ = ["command", "main", "run"]


SECTIONS = {
    "Measure": {
        "ask": ("Which pronoun a model expects in a sentence, in one short answer.", "ask:ask"),
        "info": ("What vectors or a model are, and which metrics measure it.", "info:info"),
        "measure": ("Measure the bias of word vectors or a language model.", "measure:measure"),
        "compare": ("The same measures on two sources or saved results.", "measure:compare"),
        "classifier": ("Gaps between groups, from predictions.", "classifier:classifier"),
        "scores": ("Compare models by per-item scores from any tool.", "scores:scores"),
        "answers": ("What chat models write: collect it, measure it.", "answers:answers"),
    },
    "Reduce": {
        "debias": ("Reduce the bias of vectors or a model; measure again.", "debias:debias"),
        "finetune": ("Train a masked model on rewritten text.", "finetune:finetune"),
        "rewrite": ("Rewrite text: swap, neutralize, anonymize …", "text:rewrite"),
        "filter": ("Sentences with structural bias, their pronoun masked.", "text:filter_command"),
        "odds": ("Which classes of a corpus lean male, which female.", "text:odds"),
    },
    "Report and control": {
        "audit": ("Audit vectors, a model and data; write one page.", "audit:audit"),
        "report": ("Write the page of an audit again, or compare audits.", "report:report"),
        "gate": ("Check results against a policy; exit 3 if not met.", "gate:gate"),
        "explore": ("Models, vectors, audits and answers in the browser.", "explore:explore"),
        "plan": ("How many words a study needs.", "posterior:plan"),
    },
    "Help": {
        "list": ("Topics, metrics, models, networks, templates.", "reference:reference"),
        "cite": ("How to cite Evenhand, and the authors of a measure.", "cite:cite"),
        "doctor": ("What is installed, devices, caches and versions.", "doctor:doctor"),
        "completion": ("Completion of commands by the shell.", "completion:completion"),
        "help": ("This overview, or the help of a command.", "helping:show_help"),
    },
    "Research": {
        "lab": ("Few-shot classifiers, grids, posteriors, generation, annotation.", "lab:lab"),
    },
}
"""Every command with its short help and where it is, in the order in which help shows them."""


@click.group(
    cls=CommandTree,
    sections=SECTIONS,
    context_settings={
        "help_option_names": ["-h", "--help"],
        "max_content_width": 100,
        "show_default": True,
    },
    epilog="\b\nStart with:\n"
    '  evenhand ask "The clerk lost [MASK] keys."\n'
    "  evenhand measure glove --topic gender\n"
    "  evenhand measure mini\n"
    '  evenhand rewrite swap "Her neighbour waved to her."\n'
    "  evenhand audit\n"
    "  evenhand help measure",
)
@click.option(
    "--threads",
    type=click.IntRange(1),
    help="Threads that numeric libraries use.  [default: OMP_NUM_THREADS, or one per free core]",
)
@click.version_option(__version__, prog_name="evenhand")
def command(threads: int | None) -> None:
    """Measure, explain and reduce social bias in text, word embeddings, language models and
    classifiers, with the uncertainty of every measure.

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
    except OverflowError:
        return _fail("the input has a number that is too large", 2)
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


def _shorten_warnings() -> None:
    """Warn of entries of a cache in one line, without the place in the code."""
    usual = warnings.formatwarning

    def one_line(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> str:
        if issubclass(category, EntryWarning):
            return f"note: {visible(str(message))}\n"
        return usual(message, category, *place, **more)

    warnings.formatwarning = one_line


def main() -> None:
    """The console entry point."""
    _allow_every_character()
    _shorten_warnings()
    gc.set_threshold(100_000)  # by default it runs hundreds of times while modules are imported
    code = run(sys.argv[1:])
    gc.freeze()  # a last collection of all modules would find nothing and takes 0.1 s
    sys.exit(code)
