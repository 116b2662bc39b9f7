"""`evenhand text swap | substitute | neutralize | anonymize`: filters in the Unix sense."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from evenhand.cli.options import json_option, output_option, seed_option
from evenhand.cli.text.streaming import form_of, progress_bar, streaming_options

if TYPE_CHECKING:
    from evenhand.text.rewrite import Rewriter

__all__ = ["anonymize", "neutralize", "substitute", "swap"]

F = TypeVar("F", bound=Callable[..., Any])


class Direction(click.Choice[str]):
    """male-to-female, also written male→female or m2f."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        spelled = str(value).replace("→", "-to-").replace("m2f", "male-to-female")
        return super().convert(spelled.replace("f2m", "female-to-male"), param, ctx)


direction_option = click.option(
    "--direction", type=Direction(["both", "male-to-female", "female-to-male"]), default="both",
    show_default=True, help="Which words are swapped: all, only those for men, only for women.",
)  # fmt: skip
kinds_option = click.option(
    "--kinds", metavar="KIND,…",
    help="Only some kinds of words: pronoun, title, family, person, role, royalty, religion, "
    "fiction, animal, body.",
)  # fmt: skip
unsafe_option = click.option(
    "--unsafe", is_flag=True,
    help="Also pairs that are wrong in much running text (count and countess, cow and bull).",
)  # fmt: skip
pairs_option = click.option(
    "--pairs", type=click.Path(exists=True, dir_okay=False),
    help="Your own pairs instead: a CSV file with the columns female and male.",
)  # fmt: skip
judge_option = click.option(
    "--judge", default="embedded", show_default=True, metavar="NAME",
    help="Who tells her (him) from her (his): embedded, or spacy:MODEL.",
)  # fmt: skip
keep_named_option = click.option(
    "--keep-named", is_flag=True,
    help="Leave words alone that refer to somebody named (CDA's rule): Elizabeth … she … queen.",
)  # fmt: skip
append_option = click.option(
    "--append", is_flag=True,
    help="Keep every record and put its rewritten copy behind it where it changed (CDA).",
)  # fmt: skip


def names_option(default: str) -> Callable[[F], F]:
    """--names, off for swap and fixed for substitute."""
    return click.option(
        "--names", type=click.Choice(["fixed", "random", "off"]), default=default,
        show_default=True,
        help="First names too: by fixed pairs of like frequency, or drawn anew in each document.",
    )  # fmt: skip


def probability_option(default: float) -> Callable[[F], F]:
    """--probability, 1 for swap and one half for substitute."""
    return click.option(
        "--probability", type=click.FloatRange(0, 1), default=default, show_default=True,
        help="Probability that a document is rewritten; drawn from the seed and its number.",
    )  # fmt: skip


def rewriting_options(command: F) -> F:
    """What all four filters share: files, output, the log of edits, how a document is cut out."""
    options = [
        click.argument("files", nargs=-1, metavar="[FILE…|-]"),
        output_option("Write here instead of stdout; .gz, .bz2 and .zst compress."),
        click.option(
            "--edits", type=click.Path(dir_okay=False),
            help="Write every edit here, a JSON line each: document, offset, rule, before, after.",
        ),
        streaming_options,
        json_option,
    ]  # fmt: skip
    for option in reversed(options):
        command = option(command)
    return command


def _swap_options(names: str, probability: float) -> Callable[[F], F]:
    options = [
        direction_option, names_option(names), probability_option(probability), seed_option,
        kinds_option, unsafe_option, pairs_option, keep_named_option, judge_option, append_option,
    ]  # fmt: skip

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@click.command(short_help="Every gendered word to its dual: he ↔ she, mother ↔ father.")
@rewriting_options
@_swap_options("off", 1.0)
def swap(**options: Any) -> None:
    """Every gendered word to its dual, case and punctuation kept, a document a line.

    `her` becomes him or his, `his` becomes her or hers, by grammar. Hashtags, addresses and
    mentions are left alone.

    \b
    Examples:
      echo "Her neighbour waved to her." | evenhand text swap
      evenhand text swap corpus.txt.gz -o swapped.txt.gz --edits edits.jsonl --jobs 2
      evenhand text swap reviews.csv --field text --append -o augmented.csv
    """
    _run_swap(options)


@click.command(short_help="Swap half of the documents in place, first names too (CDS).")
@rewriting_options
@_swap_options("fixed", 0.5)
def substitute(**options: Any) -> None:
    """Counterfactual data substitution: each document swapped with probability one half, in place.

    First names are swapped too, by fixed pairs of like frequency, or at random; the same name is
    the same new name all through a document.

    \b
    Example:  evenhand text substitute corpus.txt -o balanced.txt --seed 1
    """
    _run_swap(options)


def _run_swap(options: dict[str, Any]) -> None:
    from evenhand.text.rewrite.swap import Swap

    kinds, own = options.pop("kinds"), options["pairs"]
    rewriter = Swap(
        kinds=tuple(k.strip() for k in kinds.split(",")) if kinds else None,
        **{name: options.pop(name) for name in _SWAP},
    )
    _run(rewriter, **options, own_pairs=Path(own).read_bytes() if own else b"")


_SWAP = ("direction", "names", "probability", "seed", "unsafe", "pairs", "keep_named", "judge")


@click.command(short_help="Singular they with its verbs, neutral titles and roles.")
@rewriting_options
@click.option(
    "--nouns", type=click.Choice(["roles", "all", "none"]), default="roles", show_default=True,
    help="roles: chairman → chair; all: also mother → parent, man → person; none: pronouns and "
    "titles only.",
)  # fmt: skip
@click.option(
    "--reflexive", type=click.Choice(["themself", "themselves"]), default="themself",
    show_default=True, help="What himself and herself become.",
)  # fmt: skip
@judge_option
@append_option
def neutralize(nouns: str, reflexive: str, judge: str, **options: Any) -> None:
    """He and she become they, and their verbs agree: "she runs and sings" → "they run and sing".

    \b
    Examples:
      echo "Does she know he's here?" | evenhand text neutralize
      evenhand text neutralize posts.jsonl --field text -o neutral.jsonl --nouns all
    """
    from evenhand.text.rewrite.neutralize import Neutralize

    _run(Neutralize(nouns=nouns, reflexive=reflexive, judge=judge), **options)


@click.command(short_help="Person names to E1, E2 …, the same name to the same number.")
@rewriting_options
@click.option(
    "--entities", default="rules", show_default=True, metavar="NAME",
    help="Who finds the names: rules, or spacy:MODEL.",
)  # fmt: skip
@append_option
def anonymize(entities: str, **options: Any) -> None:
    """Person names become E1, E2 … consistently within a document (a line, or a field).

    \b
    Example:
      echo "Marie Curie spoke. Curie was thanked." | evenhand text anonymize
    """
    from evenhand.text.rewrite.names import Anonymize

    _run(Anonymize(entities=entities), **options)


def _run(
    rewriter: Rewriter,
    *,
    files: tuple[str, ...],
    output: str | None,
    edits: str | None,
    append: bool,
    field: str | None,
    form: str | None,
    jobs: int,
    resume: bool,
    as_json: bool,
    own_pairs: bytes = b"",
) -> None:
    from evenhand.text.corpus.pipeline import RewriteWork, stream

    work = RewriteWork(rewriter, append=append)
    if as_json and output is None:
        raise click.UsageError("--json needs -o: stdout is where the rewritten text would go")
    sources = files or ("-",)
    with progress_bar(sources) as progress:
        counts = stream(
            sources,
            output or "-",
            work,
            form=form_of(sources, field, form),
            edits=edits,
            jobs=jobs,
            resume=resume,
            progress=progress,
            fingerprint=f"{work!r} {own_pairs!r}",
        )
    if as_json:
        from evenhand.cli.output import print_json

        print_json(command=click.get_current_context().info_name, output=output, **_told(counts))
    elif output is not None or sys.stderr.isatty():
        click.echo(_summary(counts, output), err=True)


def _told(counts: Mapping[str, int]) -> dict[str, Any]:
    rules = {k.removeprefix("rule:"): n for k, n in counts.items() if k.startswith("rule:")}
    others = {k: n for k, n in counts.items() if not k.startswith("rule:")}
    return {**others, "rules": dict(sorted(rules.items(), key=lambda item: -item[1]))}


def _summary(counts: Mapping[str, int], output: str | None) -> str:
    told = _told(counts)
    rules = ", ".join(f"{name} {n:,}" for name, n in told["rules"].items())
    text = (
        f"{told.get('changed', 0):,} of {told.get('documents', 0):,} documents changed, "
        f"{told.get('edits', 0):,} edits"
    )
    return text + (f" ({rules})" if rules else "") + (f" → {output}" if output else "")
