"""`evenhand text …`: rewrite, filter and count text."""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli import completion
from evenhand.cli.commands import Group
from evenhand.cli.options import (
    F,
    combine,
    configure,
    declared_options,
    form_of,
    format_options,
    item_option,
    items_option,
    json_option,
    names_option,
    output_option,
    prob_option,
    reading_options,
    restart_option,
    results_options,
    seed_option,
    shared,
    split_names,
    worker_count,
    workers_option,
)
from evenhand.cli.output import (
    estimate,
    print_finding,
    print_json,
    print_measurements,
    print_notes,
    say,
    table,
)
from evenhand.cli.progress import progress_bar
from evenhand.fewshot.settings import DataSettings
from evenhand.instruments import Run, instruments
from evenhand.text.rewrite import rewrite_all
from evenhand.text.rewrite.counterfactuals import VERSIONS
from evenhand.text.rewrite.names import Anonymize
from evenhand.text.rewrite.neutralize import Neutralize
from evenhand.text.rewrite.swap import Swap
from evenhand.text.structural import Filter

if TYPE_CHECKING:
    from evenhand.results import Measurement
    from evenhand.text.corpus.pipeline import Flip
    from evenhand.text.rewrite import Rewriter
    from evenhand.text.rewrite.stereotype import Selection

__all__ = ["text"]

ODDS, ANNOTATION = map(instruments("corpus").__getitem__, ("odds", "annotation"))


@click.group(cls=Group, short_help="Rewrite, filter and count text.")
def text() -> None:
    """Rewrite the gender of texts, find sentences that show bias, and count who stands for what.

    FILE is text with one document per line, or a CSV, TSV or JSONL file, also compressed; - is the
    standard input.

    \b
    Examples:
      evenhand text swap "Her neighbour waved to her."
      evenhand text filter sentences.txt -o biased.jsonl
      evenhand text odds bios.csv --label occupation --gender gender
    """


# ---- documents in files


streaming_options = combine(
    format_options,
    workers_option,
    restart_option,
)


def reading_bar(sources: Sequence[str]) -> AbstractContextManager[Any]:
    """The progress through the files; the standard input has no length, and may be typed."""
    if list(sources) == ["-"]:
        return nullcontext()
    return progress_bar("reading", "kB", scale=1000)


# ---- rewriting


class Direction(click.Choice[str]):
    """male-to-female, also written male→female or m2f."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        spelled = str(value).replace("→", "-to-").replace("m2f", "male-to-female")
        return super().convert(spelled.replace("f2m", "female-to-male"), param, ctx)


rewriting_options = combine(
    click.argument("files", nargs=-1, metavar="[FILE…|TEXT…|-]", type=completion.TEXT_FILE),
    output_option("Write here instead of stdout; .gz, .bz2 and .zst compress."),
    click.option(
        "--edits",
        type=click.Path(dir_okay=False),
        help="Write every edit here, one JSON line each: document, offset, rule, before, after.",
    ),
    streaming_options,
    json_option,
)
append_option = shared(
    "--append",
    is_flag=True,
    help="Write every record, and behind it its rewritten copy where it changed (CDA).",
)


def _kinds(
    ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]
) -> tuple[str, ...] | None:
    return split_names(ctx, parameter, values) or None


def swap_options(names: str, probability: float) -> Callable[[F], F]:
    """The options of swap and substitute, which differ in two defaults."""
    return combine(
        declared_options(
            Swap,
            direction={"type": Direction(["both", "male-to-female", "female-to-male"])},
            names={"default": names},
            probability={"default": probability},
            kinds={"callback": _kinds},
            pairs={"type": click.Path(exists=True, dir_okay=False)},
        ),
        seed_option(),
        click.option(
            "--flip",
            metavar="COLUMN",
            help="Also swap the gender code (M, F, male, woman …) in this column of the records "
            "that change.",
        ),
        append_option(),
    )


@text.command(short_help="Every gendered word to its dual: he ↔ she, mother ↔ father.")
@rewriting_options
@swap_options("off", 1.0)
def swap(**options: Any) -> None:
    """Replace every gendered word by its dual; case and punctuation stay. One document per line.

    `her` becomes him or his, `his` becomes her or hers, by grammar. Hashtags, addresses and
    mentions are not changed.

    \b
    Examples:
      evenhand text swap "Her neighbour waved to her."
      evenhand text swap corpus.txt.gz -o swapped.txt.gz --edits edits.jsonl --workers 2
      evenhand text swap reviews.csv --text text --flip gender --append -o augmented.csv
    """
    _run_swap(options)


@text.command(short_help="Swap half of the documents in place, first names too (CDS).")
@rewriting_options
@swap_options("fixed", 0.5)
def substitute(**options: Any) -> None:
    """Counterfactual data substitution: swap each document with probability one half, in place.

    First names are swapped too, by fixed pairs of similar frequency, or at random; a name becomes
    the same new name in all of a document.

    \b
    Example:  evenhand text substitute corpus.txt -o balanced.txt --seed 1
    """
    _run_swap(options)


def _run_swap(options: dict[str, Any], **more: Any) -> None:
    own = options["pairs"]
    _run(Swap, options, own_pairs=Path(own).read_bytes() if own else b"", **more)


@text.command(short_help="The pro- or anti-stereotypical version of a labelled corpus.")
@rewriting_options
@click.option(
    "--stereotype",
    "version",
    type=click.Choice(["pro", "anti"]),
    required=True,
    help="Persons of the gender that their class leans to, or of the other.",
)
@declared_options(
    DataSettings,
    only=["label", "gender", "male", "female", "leaning"],
    label={"required": True, "help": "Column of the class."},
    gender={"required": True, "help": "Column of the person's gender, changed with the text."},
)
@declared_options(
    Swap,
    only=["names", "keep_named", "kinds", "unsafe", "pairs", "judge"],
    names={"default": "random"},
    kinds={"callback": _kinds},
    pairs={"type": click.Path(exists=True, dir_okay=False)},
)
@seed_option()
def stereotype(
    version: str,
    label: str,
    gender: str,
    male: str | None,
    female: str | None,
    leaning: str,
    **options: Any,
) -> None:
    """Write a labelled corpus with every person of the gender that the stereotype calls for.

    The file is read twice: to see which classes lean to men and which to women, and to swap the
    gendered words and first names of the persons who are not of that gender (pro), or who are
    (anti). Texts of classes that lean nowhere and of unknown gender stay as they are, and are
    counted (El Zein 2021, §4.1.3 and §5.3).

    \b
    Examples:
      evenhand text stereotype bios.csv --label job --gender sex --stereotype pro -o pro.csv
      evenhand text stereotype bios.csv --label job --gender sex --stereotype anti -o anti.csv
    """
    from evenhand.text.corpus.pipeline import GENDER_CODES, Flip
    from evenhand.text.metrics.odds import Counts, count_rows
    from evenhand.text.rewrite.stereotype import Selection, leanings

    sources = options["files"]
    if not sources or "-" in sources:
        raise click.UsageError("expected files: they are read twice, which stdin cannot be")
    if (male is None) != (female is None):
        raise click.UsageError("--male and --female go together")
    own = ((male.casefold(), female.casefold()),) if male and female else ()
    codes = {
        code: side
        for pair in (own or GENDER_CODES)
        for code, side in zip(pair, ("male", "female"), strict=True)
    }
    sides = [[code for code, side in codes.items() if side == name] for name in ("male", "female")]
    counts = Counts.join(
        [
            count_rows(source, label, gender, male=sides[0], female=sides[1]).to_dict()
            for source in sources
        ]
    )
    counts.check(", ".join(sources))
    rows = counts.rows
    select = Selection(
        version,  # type: ignore[arg-type]
        leanings(rows["male"], rows["female"], leaning),  # type: ignore[arg-type]
        codes,
    )
    named = {side: [n for n, s in select.leaning.items() if s == side] for side in rows}
    if not options["as_json"]:
        shown = "; ".join(f"{side}: {', '.join(named[side]) or 'none'}" for side in named)
        click.echo(f"classes that lean {shown}", err=True)
    _run_swap(
        {**options, "append": False},
        flip=Flip(gender, codes=own or GENDER_CODES),
        select=select,
        label=label,
    )


@text.command(short_help="Singular they with its verbs, neutral titles and roles.")
@rewriting_options
@declared_options(Neutralize)
@append_option()
def neutralize(**options: Any) -> None:
    """He and she become they, and their verbs agree: "she runs and sings" → "they run and sing".

    \b
    Examples:
      echo "Does she know he's here?" | evenhand text neutralize
      evenhand text neutralize posts.jsonl --text text -o neutral.jsonl --nouns all
    """
    _run(Neutralize, options)


@text.command(short_help="Person names to E1, E2 …, the same name to the same number.")
@rewriting_options
@declared_options(Anonymize)
@append_option()
def anonymize(**options: Any) -> None:
    """Person names become E1, E2 … consistently within a document (a line, or a field).

    \b
    Example:
      echo "Marie Curie spoke. Curie was thanked." | evenhand text anonymize
    """
    _run(Anonymize, options)


@text.command(short_help="Every text with versions of another gender, or of none.")
@click.argument("source", metavar="FILE", type=completion.TABLE)
@click.option("--text", "column", metavar="COLUMN", help="Column of the text.")
@item_option
@names_option(
    "--versions",
    default=tuple(VERSIONS),
    show_default=True,
    type=completion.Value(lambda: VERSIONS, separator=","),
    help="Which versions: words and names swapped, words or names alone, no gender stated.",
)
@output_option("Where they are written: .jsonl, .csv or .parquet.")
@json_option
def counterfactuals(
    source: str,
    column: str | None,
    item: str | None,
    versions: tuple[str, ...],
    output: str | None,
    as_json: bool,
) -> None:
    """Write each text of a table with its counterfactual versions, for any classifier to answer.

    FILE is a table (CSV, TSV, JSONL, Parquet). Each row is written with the column `version`,
    "original", followed by the versions that differ from it, with the same `item` and otherwise the
    same columns. Let your program add its answers, then measure them with `evenhand classifier`.

    \b
    Examples:
      evenhand text counterfactuals bios.csv --text bio -o pairs.jsonl
      evenhand classifier pairs-with-answers.jsonl --pred answer --group gender
    """
    from evenhand.files import check_row_format, open_rows
    from evenhand.text.rewrite.counterfactuals import counterfactual_rows
    from evenhand.text.tables import open_table, text_column

    if output is None:
        raise click.UsageError("-o: name the file that the texts are written to")
    check_row_format(output)
    chosen = column or text_column(source, "Name it with --text")
    names = list(versions)
    counts: Counter[str] = Counter()
    with open_table(source) as table, open_rows(output) as write:
        for name in (chosen, item):
            table.column(name)
        rows = counterfactual_rows(table, chosen, item, names)
        while block := list(islice(rows, 1000)):
            write({key: [row[key] for row in block] for key in block[0]})
            counts.update(row["version"] for row in block)
    written = {name: counts[name] for name in ("original", *names)}
    if as_json:
        print_json(command="text counterfactuals", output=output, versions=written)
        return
    shown = ", ".join(f"{count:,} {name}" for name, count in written.items())
    click.echo(f"written: {output} ({shown})")


def _run(
    cls: Callable[..., Rewriter],
    parameters: Mapping[str, Any],
    own_pairs: bytes = b"",
    *,
    flip: Flip | None = None,
    select: Selection | None = None,
    label: str | None = None,
) -> None:
    """Rewrite the documents by the rewriter with the options among the parameters.

    `select` takes some of the records, by the columns `label` and that of `flip`.
    """
    from evenhand.text.corpus.formats import Csv, Jsonl
    from evenhand.text.corpus.pipeline import Flip, RewriteWork, stream

    given = dict(parameters)
    seed = {"seed": given["seed"]} if "seed" in given else {}
    if given.get("flip"):
        flip = Flip(given["flip"], given["direction"])
    work = RewriteWork(
        configure(cls, given, **seed), append=given["append"], flip=flip, select=select
    )
    if texts := _given_texts(given["files"]):
        for rewritten in rewrite_all(texts, work.rewriter):
            click.echo(rewritten.text)
        return
    output, as_json = given["output"], given["as_json"]
    if as_json and output is None:
        raise click.UsageError("--json needs -o: stdout is where the rewritten text would go")
    sources = given["files"] or ("-",)
    form = form_of(sources, given["field"], given["form"])
    if flip is not None:
        if not isinstance(form, Csv | Jsonl):
            name = "--flip" if select is None else "--label and --gender"
            verb = "goes" if select is None else "go"
            raise click.UsageError(f"{name} {verb} with JSONL and CSV, not with lines")
        form = replace(form, flip=flip.column, label=label)
    with reading_bar(sources) as progress:
        counts = stream(
            sources,
            output or "-",
            work,
            form=form,
            edits=given["edits"],
            workers=worker_count(given["workers"], sources),
            restart=given["restart"],
            progress=progress,
            fingerprint=f"{work!r} {own_pairs!r}",
        )
    if as_json:
        command = click.get_current_context().info_name
        leaning = {} if select is None else {"leaning": dict(select.leaning)}
        print_json(command=command, output=output, **_rewriting_counts(counts), **leaning)
    elif output is not None or sys.stderr.isatty():
        click.echo(_rewriting_summary(counts, output), err=True)


def _given_texts(arguments: Sequence[str]) -> list[str]:
    """The arguments where they are texts: with spaces, and not the name of a file.

    What ends like a file's name is taken for one, so that a misspelled name is an error.
    """
    texts = [
        text
        for text in arguments
        if " " in text.strip() and not Path(text).suffix and not Path(text).exists()
    ]
    if texts and len(texts) < len(arguments):
        raise click.UsageError(f"expected files or texts, got both: '{texts[0][:40]}' is no file")
    return texts


def _rewriting_counts(counts: Mapping[str, int]) -> dict[str, Any]:
    rules = {k.removeprefix("rule:"): n for k, n in counts.items() if k.startswith("rule:")}
    left = {
        k.removeprefix("unchanged:"): n for k, n in counts.items() if k.startswith("unchanged:")
    }
    others = {k: n for k, n in counts.items() if ":" not in k}
    unchanged = {"unchanged": left} if left else {}
    return {
        **others,
        "rules": dict(sorted(rules.items(), key=lambda item: -item[1])),
        **unchanged,
    }


def _rewriting_summary(counts: Mapping[str, int], output: str | None) -> str:
    rows = _rewriting_counts(counts)
    rules = ", ".join(f"{name} {n:,}" for name, n in rows["rules"].items())
    message = (
        f"{rows.get('changed', 0):,} of {rows.get('documents', 0):,} documents changed, "
        f"{rows.get('edits', 0):,} edits"
    )
    left = ", ".join(f"{reason}: {n:,}" for reason, n in rows.get("unchanged", {}).items())
    message += f" ({rules})" if rules else ""
    return (
        message
        + (f"; left as they are: {left}" if left else "")
        + (f" → {output}" if output else "")
    )


@text.command(short_help="The input back, from the output and its edits.")
@click.argument("rewritten", type=click.Path(exists=True, dir_okay=False))
@click.argument("edits", type=click.Path(exists=True, dir_okay=False))
@output_option("Where the original input is written; required.")
@format_options
@append_option(help="The output was written with --append.")
@json_option
def undo(
    rewritten: str,
    edits: str,
    output: str | None,
    field: str | None,
    form: str | None,
    append: bool,
    as_json: bool,
) -> None:
    """Invert the edits of `--edits`: byte for byte what was read.

    \b
    Example:
      evenhand text swap in.txt -o out.txt --edits edits.jsonl
      evenhand text undo out.txt edits.jsonl -o back.txt
    """
    from evenhand.text.corpus.pipeline import restore

    if output is None:
        raise click.UsageError("-o is needed: where should the input be written?")
    count = restore(rewritten, edits, output, form=form_of([rewritten], field, form), append=append)
    if as_json:
        print_json(command="text undo", documents=count, output=output)
        return
    click.echo(f"{count:,} documents restored → {output}", err=True)


# ---- structural filter


@text.command("filter", short_help="Sentences with structural bias, their pronoun masked.")
@click.argument("files", nargs=-1, metavar="[FILE…|-]", type=completion.TEXT_FILE)
@output_option("Write the accepted sentences here instead of stdout, one JSON line each.")
@click.option(
    "--rejected",
    type=click.Path(dir_okay=False),
    help="Write the rejected sentences here, one JSON line each, with the reason.",
)
@click.option("--funnel", is_flag=True, help="Print how many sentences each step leaves.")
@declared_options(Filter)
@streaming_options
@json_option
def filter_command(
    files: tuple[str, ...],
    output: str | None,
    rejected: str | None,
    funnel: bool,
    field: str | None,
    form: str | None,
    workers: int | None,
    restart: bool,
    as_json: bool,
    **options: Any,
) -> None:
    """Find sentences in which a gendered pronoun stands for a gender-neutral word, and mask it.

    Four steps (Ye et al. 2021): exactly one gendered pronoun; no other word that states a sex; the
    pronoun and one other expression, not "someone", refer to the same person; the pronoun masked.
    A document is a line and holds one sentence, unless --split-sentences is given. With --json
    stdout has the counts of each step alone: the sentences go to -o, or nowhere.

    \b
    Examples:
      evenhand text filter sentences.txt -o biased.jsonl --funnel
      evenhand text filter news.jsonl --text body --split-sentences -o biased.jsonl
    """
    from evenhand.text.coreference import resolver as load_resolver
    from evenhand.text.corpus.pipeline import stream

    load_resolver(options["resolver"])  # a missing package or model is an error before any work
    work = configure(Filter, options, log=rejected is not None)
    sources = files or ("-",)
    with reading_bar(sources) as progress:
        counts = stream(
            sources,
            output or (os.devnull if as_json else "-"),
            work,
            form=form_of(sources, field, form),
            edits=rejected,
            workers=worker_count(workers, sources),
            restart=restart,
            progress=progress,
        )
    if as_json:
        steps = _filter_counts(counts)
        resolver = options["resolver"]
        print_json(command="text filter", output=output, resolver=resolver, **steps)
    elif funnel:
        click.echo(_funnel_table(counts), err=output is None)
    elif output is not None or sys.stderr.isatty():
        message = f"{counts['accepted']:,} of {counts['read']:,} sentences accepted"
        click.echo(message + (f" → {output}" if output else ""), err=True)


def _filter_counts(counts: Mapping[str, int]) -> dict[str, Any]:
    """The counts of the steps, then the reasons."""
    from evenhand.text.structural import REASONS, STEPS

    reasons = {reason: counts.get("reason:" + reason, 0) for reason in REASONS}
    return {**{step: counts.get(step, 0) for step in STEPS}, "reasons": reasons}


def _funnel_table(counts: Mapping[str, int]) -> str:
    """The funnel for reading: each step, what it leaves, and why the rest was rejected."""
    from evenhand.text.structural import REASONS, STEP_OF, STEPS

    names = (
        "sentences read",
        "one gendered pronoun",
        "no other sex indicator",
        "linked",
        "accepted",
    )
    read = max(counts.get("read", 0), 1)
    lines = []
    for step, name in zip(STEPS, names, strict=True):
        left = counts.get(step, 0)
        lines.append(f"{name:<24}{left:>12,}  {left / read:>7.2%}")
        for reason, at in STEP_OF.items():
            if at == step and counts.get("reason:" + reason):
                number = counts["reason:" + reason]
                lines.append(f"    {-number:>+12,}  {REASONS[reason]}")
    return "\n".join(lines)


# ---- odds ratios


@text.command(short_help="Which classes of a corpus lean male, which female.")
@click.argument("file", type=completion.TABLE)
@declared_options(ODDS)
@reading_options
@click.option(
    "--top",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="Number of rows shown, of each side where there are two.",
)
@click.option("--exact", is_flag=True, help="Show the exact interval in the table.")
@results_options(items=False)
@items_option("Save all classes, one row each: .csv.")
@prob_option()
@json_option
def odds(
    file: str, top: int, exact: bool, items: str | None, prob: float, as_json: bool, **options: Any
) -> None:
    """The odds ratio of each class: its odds among men over its odds among women.

    FILE is CSV, TSV, JSONL (also as gzip, bzip2 or zstd), Parquet, or - for standard input. Gender
    comes from --gender (M/F, male/female, man/woman; --male and --female name other codes) or, with
    --text alone, from the majority of the text's pronouns. Above 1 a class leans male.

    \b
    Examples:
      evenhand text odds bios.csv --label occupation --gender gender
      evenhand text odds bios.jsonl.gz --label job --gender sex --male 0 --female 1 --json
      evenhand text odds bios.parquet --label job --text biography --top 5 --items odds.csv
    """
    from evenhand.files import save_csv
    from evenhand.text import leaning
    from evenhand.text.corpus.pipeline import check
    from evenhand.text.tables import Corpus

    if items:
        check([file], items)
    with progress_bar(f"reading {file}"):
        measurement = configure(ODDS, options).measure(Corpus(file), None, Run(prob=prob))
    if items:
        save_csv(items, map(_csv_row, measurement.items))
    if as_json:
        male, female = ([part.query for part in side] for side in leaning(measurement, top))
        print_json(measurements=[measurement], leaning_male=male, leaning_female=female)
        return
    _print_odds(measurement, top, exact)
    if items:
        say(f"{len(measurement.items):,} classes written to {items}")
    print_finding([measurement])


def _format_share(part: Measurement) -> str:
    share, low, high = (100 * part.details[f"women{end}"] for end in ("", "_low", "_high"))
    return f"{share:.1f} [{low:.1f}, {high:.1f}]"


def _csv_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """A row of the items, with an open end of the exact interval as infinity."""
    return {**row, "exact_high": math.inf if math.isnan(row["exact_high"]) else row["exact_high"]}


def _print_odds(measurement: Measurement, top: int, exact: bool) -> None:
    from evenhand.text import leaning

    sides = leaning(measurement, top)
    for title, parts in zip(("Leaning male", "Leaning female"), sides, strict=True):
        print_measurements(
            title,
            [_with_exact_interval(part) if exact else part for part in parts],
            label=lambda part: part.query + ("*" if part.details["corrected"] else ""),
            text=_format_ratio,
            columns={
                **{
                    gender: lambda part, gender=gender: f"{part.details[gender]:,}"  # type: ignore[misc]
                    for gender in ("male", "female")
                },
                "women, %": _format_share,
            },
            hide=["ideal", "n", "legend"],
        )
    counts = measurement.details["counts"]
    kind = "exact, given the margins" if exact else "normal on the log odds ratio"
    say(
        f"{len(measurement.items):,} classes in '{measurement.query}', {counts['read']:,} rows: "
        f"{counts['male']:,} male, {counts['female']:,} female, {counts['left_out']:,} left out. "
        f"Gender: {measurement.details['gender_from']}."
    )
    say(f"duplicates: {measurement.details['duplicates']}")
    say(
        f"interval: {measurement.prob:.0%}, {kind}; rows taken as independent. "
        "p: Fisher's exact test, Holm-corrected over the classes. women: their share of the class, "
        "Wilson interval."
    )
    if any(part.details["corrected"] for side in sides for part in side):
        say("*: a cell is 0; one half added to all four (not in the exact interval).")
    for reason, count in measurement.details["left_out"].items():
        say(f"left out: {reason}: {count:,}")
    for part in measurement.select("agreement"):
        say(
            f"pronouns agree with the column in {part.details['agree']:,} of {part.n:,} rows "
            f"({estimate(part.estimate, 4)}); {part.details['undecided']:,} undecided"
        )
    print_notes(measurement.notes)


def _with_exact_interval(part: Measurement) -> Measurement:
    high = part.details["exact_high"]
    return replace(part, low=part.details["exact_low"], high=math.inf if high is None else high)


def _format_ratio(value: float) -> str:
    """Three significant digits, since odds ratios span powers of ten.

    >>> _format_ratio(0.02284), _format_ratio(31.07), _format_ratio(1543.2)
    ('0.0228', '31.1', '1,543')
    """
    if value == float("inf"):
        return "∞"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


# ---- annotation


@text.group(short_help="Sheets for annotators, and their verdicts back.")
def annotate() -> None:
    """How many of the filter's sentences do people find right? Write a sheet, read it back.

    \b
    Examples:
      evenhand text annotate sheet accepted.jsonl -o sheet.csv --sample 100
      evenhand text annotate read ann.csv ben.csv cleo.csv
    """


@annotate.command(short_help="Write a sheet from the filter's output.")
@reading_options
@click.argument("filtered", type=completion.TEXT_FILE)
@output_option("The sheet to write, a CSV.")
@click.option("--sample", type=click.IntRange(1), help="Only so many sentences, at random.")
@seed_option()
@json_option
def sheet(filtered: str, output: str | None, sample: int | None, seed: int, as_json: bool) -> None:
    """Write a CSV with one row per sentence and an empty column verdict, to be filled: yes or no.

    FILTERED is what `evenhand text filter` wrote. Every annotator gets a copy of the same sheet.

    \b
    Example:  evenhand text annotate sheet accepted.jsonl -o sheet.csv --sample 100
    """
    from evenhand.text.sheets import write_sheet

    if output is None:
        raise click.UsageError("sheet: expected -o and the name of the sheet to write")
    count = write_sheet(filtered, output, sample=sample, seed=seed)
    if as_json:
        print_json(command="text annotate sheet", sentences=count, output=output)
        return
    say(f"{count:,} sentences written to {output}")


@annotate.command(short_help="Majority, accuracy and agreement of filled sheets.")
@click.argument("sheets", nargs=-1, required=True, metavar="SHEET…", type=completion.TABLE)
@declared_options(ANNOTATION)
@reading_options
@click.option("--filtered", help="The filter's JSONL: check the ids, carry over all its fields.")
@results_options(items=False)
@items_option("Save the sentences with their verdicts as JSON lines.", endings=())
@prob_option()
@json_option
def read(
    sheets: tuple[str, ...],
    filtered: str | None,
    items: str | None,
    prob: float,
    as_json: bool,
    **options: Any,
) -> None:
    """Read filled sheets, one per annotator, and report how many sentences are truly structural.

    \b
    Example:  evenhand text annotate read ann.csv ben.csv cleo.csv dan.csv --items judged.jsonl
    """
    from evenhand.text import save_verdicts
    from evenhand.text.corpus.pipeline import check
    from evenhand.text.tables import Corpus

    if items:
        check([*sheets, *([filtered] if filtered else [])], items)
    corpus = Corpus(filtered) if filtered else None
    measurement = configure(ANNOTATION, options).measure(corpus, sheets, Run(prob=prob))
    if items:
        save_verdicts(measurement, items)
    if as_json:
        print_json(measurements=[measurement])
        return
    annotators = measurement.details["annotators"]
    table(
        "Annotators",
        ("annotator", "yes", "no", "empty", "absent"),
        ([name, *(f"{n:,}" for n in tally.values())] for name, tally in annotators.items()),
    )
    print_measurements("Verdict of the majority, and agreement", [measurement], parts=True)
    counts = measurement.details["counts"]
    say(
        f"{counts['sentences']:,} sentences: {counts['yes']:,} structural (yes by "
        f"{measurement.details['majority']} of {len(sheets)} or more), {counts['no']:,} not, "
        f"{counts['undecided']:,} undecided for lack of verdicts."
    )
    print_notes([*measurement.notes, *(note for m in measurement.parts for note in m.notes)])
    if items:
        say(f"{counts['sentences']:,} sentences written to {items}")
    print_finding([measurement])
