"""`evenhand rewrite`, `filter`, `odds` and `lab annotate`: rewrite, filter and count text."""

from __future__ import annotations

import math
import os
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli import completion
from evenhand.cli import options as opt
from evenhand.cli.commands import Command, Group
from evenhand.cli.options import F
from evenhand.cli.output import (
    estimate,
    print_finding,
    print_json,
    print_measurements,
    print_notes,
    say,
    table,
)
from evenhand.cli.outputs import OutputFile
from evenhand.cli.progress import is_set, progress_bar
from evenhand.fewshot.settings import DataSettings
from evenhand.instruments import Run
from evenhand.text.metrics.annotation import Annotation
from evenhand.text.metrics.odds import Odds
from evenhand.text.rewrite import rewrite_all
from evenhand.text.rewrite.counterfactuals import VERSIONS
from evenhand.text.rewrite.names import Anonymize
from evenhand.text.rewrite.neutralize import Neutralize
from evenhand.text.rewrite.swap import Swap
from evenhand.text.structural import Filter

if TYPE_CHECKING:
    from evenhand.results import Measurement
    from evenhand.text.corpus.formats import Form
    from evenhand.text.corpus.pipeline import CorpusWork, Flip, RewriteWork
    from evenhand.text.rewrite.stereotype import Selection


@click.group(cls=Group)
def rewrite() -> None:
    """Rewrite the gender of texts: swap it, neutralize it, anonymize names, or undo that.

    FILE is text with one document per line, or a CSV, TSV or JSONL file, also compressed; - is the
    standard input.

    \b
    Examples:
      evenhand rewrite swap "Her neighbour waved to her."
      evenhand rewrite neutralize posts.jsonl --text text -o neutral.jsonl
    """


# ---- documents in files


streaming_options = opt.combine(
    opt.format_options,
    opt.workers_option,
    opt.restart_option,
)


def stream_documents(
    work: CorpusWork | RewriteWork,
    options: Mapping[str, Any],
    output: str,
    form: Form,
    **about: Any,
) -> dict[str, int]:
    """Stream the documents of the files through the work, with progress on stderr.

    The standard input has no length, and may be typed: it has no progress.
    """
    from evenhand.text.corpus.pipeline import stream

    sources = options["files"] or ("-",)
    typed = list(sources) == ["-"]
    with nullcontext() if typed else progress_bar("reading", "kB", scale=1000) as progress:
        return stream(
            sources,
            output,
            work,
            form=form,
            workers=opt.worker_count(options["workers"], sources),
            restart=options["restart"],
            progress=progress,
            **about,
        )


def _form(options: Mapping[str, Any]) -> Form:
    return opt.form_of(options["files"] or ("-",), options["field"], options["form"])


# ---- rewriting


class Direction(click.Choice[str]):
    """male-to-female, also written male→female or m2f."""

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        spelled = str(value).replace("→", "-to-").replace("m2f", "male-to-female")
        return super().convert(spelled.replace("f2m", "female-to-male"), param, ctx)


rewriting_options = opt.combine(
    click.argument("files", nargs=-1, metavar="[FILE…|TEXT…|-]", type=completion.TEXT_FILE),
    opt.output_option("Write here instead of stdout; .gz, .bz2 and .zst compress."),
    click.option(
        "--edits",
        type=OutputFile(dir_okay=False),
        help="Write every edit here, one JSON line each: document, offset, rule, before, after.",
    ),
    streaming_options,
    opt.json_option,
)
append_option = opt.shared(
    "--append",
    is_flag=True,
    help="Write every record, followed by its rewritten copy where it changed (CDA).",
)


def _names_or_none(values: tuple[str, ...]) -> tuple[str, ...] | None:
    return opt.split_names(values) or None


WORDS: Mapping[str, Mapping[str, object]] = {
    "kinds": {"callback": opt.callback(_names_or_none)},
    "pairs": {"type": click.Path(exists=True, dir_okay=False)},
}
"""Changes to the declared options that choose word pairs."""


def swap_options(names: str, probability: float) -> Callable[[F], F]:
    """The options of swap and substitute, which differ in two defaults."""
    return opt.combine(
        opt.declared_options(
            Swap,
            direction={"type": Direction(["both", "male-to-female", "female-to-male"])},
            names={"default": names},
            probability={"default": probability},
            **WORDS,
        ),
        opt.seed_option(),
        click.option(
            "--flip",
            metavar="COLUMN",
            help="Also swap the gender code (M, F, male, woman …) in this column of the records "
            "that change.",
        ),
        append_option(),
    )


@rewrite.command(short_help="Every gendered word to its dual: he ↔ she, mother ↔ father.")
@rewriting_options
@swap_options("off", 1.0)
def swap(**options: object) -> None:
    """Replace every gendered word by its dual; case and punctuation stay. One document per line.

    `her` becomes him or his, `his` becomes her or hers, by grammar. Hashtags, addresses and
    mentions are not changed.

    \b
    Examples:
      evenhand rewrite swap "Her neighbour waved to her."
      evenhand rewrite swap corpus.txt.gz -o swapped.txt.gz --edits edits.jsonl --workers 2
      evenhand rewrite swap reviews.csv --text text --flip gender --append -o augmented.csv
    """
    _run_swap(options)


@rewrite.command(short_help="Swap half of the documents in place, first names too (CDS).")
@rewriting_options
@swap_options("fixed", 0.5)
def substitute(**options: object) -> None:
    """Counterfactual data substitution: swap each document with probability one half, in place.

    First names are swapped too, by fixed pairs of similar frequency, or at random; a name becomes
    the same new name in all of a document.

    \b
    Example:  evenhand rewrite substitute corpus.txt -o balanced.txt --seed 1
    """
    _run_swap(options)


def _run_swap(options: dict[str, Any], **more: Any) -> None:
    own = options["pairs"]
    _run(Swap, options, own_pairs=Path(own).read_bytes() if own else b"", **more)


@rewrite.command(short_help="The pro- or anti-stereotypical version of a labelled corpus.")
@rewriting_options
@click.option(
    "--stereotype",
    "version",
    type=click.Choice(["pro", "anti"]),
    required=True,
    help="Persons of the gender that their class leans to, or of the other.",
)
@opt.declared_options(
    DataSettings,
    only=["label", "gender", "male", "female", "leaning"],
    label={"required": True, "help": "Column of the class."},
    gender={"required": True, "help": "Column of the person's gender, changed with the text."},
)
@opt.declared_options(
    Swap,
    only=["names", "keep_named", "kinds", "unsafe", "pairs", "judge"],
    names={"default": "random"},
    **WORDS,
)
@opt.seed_option()
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
      evenhand rewrite stereotype bios.csv --label job --gender sex --stereotype pro -o pro.csv
      evenhand rewrite stereotype bios.csv --label job --gender sex --stereotype anti -o anti.csv
    """
    from evenhand.text.corpus.pipeline import GENDER_CODES, Flip
    from evenhand.text.metrics.odds import GenderCounts, count_rows
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
    male_codes, female_codes = (
        [c for c in codes if codes[c] == side] for side in ("male", "female")
    )
    counts = GenderCounts.join(
        [
            count_rows(source, label, gender, male=male_codes, female=female_codes).to_dict()
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
    if not is_set("json"):
        shown = "; ".join(f"{side}: {', '.join(named[side]) or 'none'}" for side in named)
        click.echo(f"classes that lean {shown}", err=True)
    _run_swap(
        {**options, "append": False},
        flip=Flip(gender, codes=own or GENDER_CODES),
        select=select,
        label=label,
    )


@rewrite.command(short_help="Singular they with its verbs, neutral titles and roles.")
@rewriting_options
@opt.declared_options(Neutralize)
@append_option()
def neutralize(**options: object) -> None:
    """He and she become they, and their verbs agree: "she runs and sings" → "they run and sing".

    \b
    Examples:
      echo "Does she know he's here?" | evenhand rewrite neutralize
      evenhand rewrite neutralize posts.jsonl --text text -o neutral.jsonl --nouns all
    """
    _run(Neutralize, options)


@rewrite.command(short_help="Person names to E1, E2 …, the same name to the same number.")
@rewriting_options
@opt.declared_options(Anonymize)
@append_option()
def anonymize(**options: object) -> None:
    """Person names become E1, E2 … consistently within a document (a line, or a field).

    With --become names they become gender-free first names instead.

    \b
    Examples:
      echo "Marie Curie spoke. Curie was thanked." | evenhand rewrite anonymize
      echo "Marie Curie spoke. Curie was thanked." | evenhand rewrite anonymize --become names
    """
    _run(Anonymize, options)


@rewrite.command(short_help="Every text with versions of another gender, or of none.")
@click.argument("source", metavar="FILE", type=completion.TABLE)
@click.option("--text", "column", metavar="COLUMN", help="Column of the text.")
@opt.item_option
@opt.names_option(
    "--versions",
    default=tuple(VERSIONS),
    type=completion.Value(lambda: VERSIONS, separator=","),
    help="Which versions: words and names swapped, words or names alone, no gender stated.",
)
@opt.output_option("Where they are written: .jsonl, .csv or .parquet.", required=True)
@opt.reading_options
@opt.json_option
def counterfactuals(
    source: str,
    column: str | None,
    item: str | None,
    versions: tuple[str, ...],
    output: str,
) -> None:
    """Write each text of a table with its counterfactual versions, for any classifier to answer.

    FILE is a table (CSV, TSV, JSONL, Parquet). Each row is written with the column `version`,
    "original", followed by the versions that differ from it, with the same `item` and otherwise the
    same columns. Let your program add its answers, then measure them with `evenhand classifier`.

    \b
    Examples:
      evenhand rewrite counterfactuals bios.csv --text bio -o pairs.jsonl
      evenhand classifier pairs-with-answers.jsonl --pred answer --group gender
    """
    from evenhand.files import check_row_format, open_rows
    from evenhand.text.rewrite.counterfactuals import counterfactual_rows
    from evenhand.text.tables import open_table, text_column

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
    if print_json(command="rewrite counterfactuals", output=output, versions=written):
        return
    shown = ", ".join(f"{count:,} {name}" for name, count in written.items())
    click.echo(f"written: {output} ({shown})")


def _run(
    cls: type[Swap | Neutralize | Anonymize],
    given: Mapping[str, Any],
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
    from evenhand.text.corpus.pipeline import Flip, RewriteWork

    seed = {"seed": given["seed"]} if "seed" in given else {}
    if given.get("flip"):
        flip = Flip(given["flip"], given["direction"])
    work = RewriteWork(
        opt.configure(cls, given, **seed), append=given["append"], flip=flip, select=select
    )
    if texts := _given_texts(given["files"]):
        for rewritten in rewrite_all(texts, work.rewriter):
            click.echo(rewritten.text)
        return
    output = given["output"]
    if is_set("json") and output is None:
        raise click.UsageError("--json needs -o: stdout is where the rewritten text would go")
    form = _form(given)
    if flip is not None:
        if not isinstance(form, Csv | Jsonl):
            name = "--flip goes" if select is None else "--label and --gender go"
            raise click.UsageError(f"{name} with JSONL and CSV, not with lines")
        form = replace(form, flip=flip.column, label=label)
    counts = stream_documents(
        work,
        given,
        output or "-",
        form,
        edits=given["edits"],
        fingerprint=f"{work!r} {own_pairs!r}",
    )
    if is_set("json"):
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


def _counts_of(kind: str, counts: Mapping[str, int]) -> dict[str, int]:
    """The counts of one kind, such as "rule:name"."""
    return {k.removeprefix(kind): n for k, n in counts.items() if k.startswith(kind)}


def _rewriting_counts(counts: Mapping[str, int]) -> dict[str, Any]:
    rules, left = _counts_of("rule:", counts), _counts_of("unchanged:", counts)
    return {
        **{k: n for k, n in counts.items() if ":" not in k},
        "rules": dict(sorted(rules.items(), key=lambda item: -item[1])),
        **({"unchanged": left} if left else {}),
    }


def _rewriting_summary(counts: Mapping[str, int], output: str | None) -> str:
    rows = _rewriting_counts(counts)
    message = (
        f"{rows.get('changed', 0):,} of {rows.get('documents', 0):,} documents changed, "
        f"{rows.get('edits', 0):,} edits"
    )
    if rows["rules"]:
        message += f" ({', '.join(f'{name} {n:,}' for name, n in rows['rules'].items())})"
    if left := rows.get("unchanged"):
        reasons = ", ".join(f"{reason}: {n:,}" for reason, n in left.items())
        message += f"; left as they are: {reasons}"
    return message + (f" → {output}" if output else "")


@rewrite.command(short_help="The input back, from the output and its edits.")
@click.argument("rewritten", type=click.Path(exists=True, dir_okay=False))
@click.argument("edits", type=click.Path(exists=True, dir_okay=False))
@opt.output_option("Where the original input is written.", required=True)
@opt.format_options
@append_option(help="The output was written with --append.")
@opt.json_option
def undo(
    rewritten: str,
    edits: str,
    output: str,
    field: str | None,
    form: str | None,
    append: bool,
) -> None:
    """Invert the edits of `--edits`: byte for byte what was read.

    \b
    Example:
      evenhand rewrite swap in.txt -o out.txt --edits edits.jsonl
      evenhand rewrite undo out.txt edits.jsonl -o back.txt
    """
    from evenhand.text.corpus.pipeline import restore

    count = restore(
        rewritten, edits, output, form=opt.form_of([rewritten], field, form), append=append
    )
    if print_json(command="rewrite undo", documents=count, output=output):
        return
    click.echo(f"{count:,} documents restored → {output}", err=True)


# ---- structural filter


@click.command("filter", cls=Command)
@click.argument("files", nargs=-1, metavar="[FILE…|-]", type=completion.TEXT_FILE)
@opt.output_option("Write the accepted sentences here instead of stdout, one JSON line each.")
@click.option(
    "--rejected",
    type=OutputFile(dir_okay=False),
    help="Write the rejected sentences here, one JSON line each, with the reason.",
)
@click.option("--funnel", is_flag=True, help="Print how many sentences each step leaves.")
@opt.declared_options(Filter)
@streaming_options
@opt.json_option
def filter_command(output: str | None, rejected: str | None, funnel: bool, **options: Any) -> None:
    """Find sentences in which a gendered pronoun stands for a gender-neutral word, and mask it.

    Four steps (Ye et al. 2021): exactly one gendered pronoun; no other word that states a sex; the
    pronoun and one other expression, not "someone", refer to the same person; the pronoun masked.
    A document is a line and holds one sentence, unless --split-sentences is given. With --json
    stdout has the counts of each step alone: the sentences go to -o, or nowhere.

    \b
    Examples:
      evenhand filter sentences.txt -o biased.jsonl --funnel
      evenhand filter news.jsonl --text body --split-sentences -o biased.jsonl
    """
    from evenhand.text.coreference import resolver as load_resolver

    load_resolver(options["resolver"])  # a missing package or model is an error before any work
    work = opt.configure(Filter, options, log=rejected is not None)
    target = output or (os.devnull if is_set("json") else "-")
    counts = stream_documents(work, options, target, _form(options), edits=rejected)
    if is_set("json"):
        steps = _filter_counts(counts)
        resolver = options["resolver"]
        print_json(command="filter", output=output, resolver=resolver, **steps)
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


@click.command(cls=Command)
@click.argument("file", type=completion.TABLE)
@opt.declared_options(Odds)
@opt.reading_options
@click.option(
    "--top",
    type=click.IntRange(1),
    default=10,
    help="Number of rows shown, of each side where there are two.",
)
@click.option("--exact", is_flag=True, help="Show the exact interval in the table.")
@opt.results_options(items=False)
@opt.items_option("Save all classes, one row each: .csv.")
@opt.prob_option()
@opt.json_option
def odds(
    file: str,
    top: int,
    exact: bool,
    items: str | None,
    prob: float,
    **options: object,
) -> None:
    """The odds ratio of each class: its odds among men over its odds among women.

    FILE is CSV, TSV, JSONL (also as gzip, bzip2 or zstd), Parquet, or - for standard input. Gender
    comes from --gender (M/F, male/female, man/woman; --male and --female name other codes) or, with
    --text alone, from the majority of the text's pronouns. Above 1 a class leans male.

    \b
    Examples:
      evenhand odds bios.csv --label occupation --gender gender
      evenhand odds bios.jsonl.gz --label job --gender sex --male 0 --female 1 --json
      evenhand odds bios.parquet --label job --text biography --top 5 --items odds.csv
    """
    from evenhand.files import save_csv
    from evenhand.text import leaning
    from evenhand.text.corpus.pipeline import check
    from evenhand.text.tables import Corpus

    if items:
        check([file], items)
    with progress_bar(f"reading {file}"):
        measurement = opt.configure(Odds, options).measure(Corpus(file), None, Run(prob=prob))
    if items:
        save_csv(items, map(_csv_row, measurement.items))
    if is_set("json"):
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
            columns={"male": "male", "female": "female", "women, %": _format_share},
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


@click.group(cls=Group)
def annotate() -> None:
    """How many of the filter's sentences do people find right? Write a sheet, read it back.

    \b
    Examples:
      evenhand lab annotate sheet accepted.jsonl -o sheet.csv --sample 100
      evenhand lab annotate read ann.csv ben.csv cleo.csv
    """


@annotate.command(short_help="Write a sheet from the filter's output.")
@opt.reading_options
@click.argument("filtered", type=completion.TEXT_FILE)
@opt.output_option("The sheet to write, a CSV.", required=True)
@click.option("--sample", type=click.IntRange(1), help="Number of sentences, drawn at random.")
@opt.seed_option()
@opt.json_option
def sheet(filtered: str, output: str, sample: int | None, seed: int) -> None:
    """Write a CSV with one row per sentence and an empty column verdict, to be filled: yes or no.

    FILTERED is what `evenhand filter` wrote. Every annotator gets a copy of the same sheet.

    \b
    Example:  evenhand lab annotate sheet accepted.jsonl -o sheet.csv --sample 100
    """
    from evenhand.text.sheets import write_sheet

    count = write_sheet(filtered, output, sample=sample, seed=seed)
    if print_json(command="lab annotate sheet", sentences=count, output=output):
        return
    say(f"{count:,} sentences written to {output}")


@annotate.command(short_help="Majority, accuracy and agreement of filled sheets.")
@click.argument("sheets", nargs=-1, required=True, metavar="SHEET…", type=completion.TABLE)
@opt.declared_options(Annotation)
@opt.reading_options
@click.option("--filtered", help="The filter's JSONL: check the ids, carry over all its fields.")
@opt.results_options(items=False)
@opt.items_option("Save the sentences with their verdicts as JSON lines.", endings=())
@opt.prob_option()
@opt.json_option
def read(
    sheets: tuple[str, ...],
    filtered: str | None,
    items: str | None,
    prob: float,
    **options: object,
) -> None:
    """Read filled sheets, one per annotator, and report how many sentences are truly structural.

    \b
    Example:  evenhand lab annotate read ann.csv ben.csv cleo.csv dan.csv --items judged.jsonl
    """
    from evenhand.text import save_verdicts
    from evenhand.text.corpus.pipeline import check
    from evenhand.text.tables import Corpus

    if items:
        check([*sheets, *([filtered] if filtered else [])], items)
    corpus = Corpus(filtered) if filtered else None
    measurement = opt.configure(Annotation, options).measure(corpus, sheets, Run(prob=prob))
    if items:
        save_verdicts(measurement, items)
    if print_json(measurements=[measurement]):
        return
    annotators = measurement.details["annotators"]
    table(
        "Annotators",
        ("annotator", "yes", "no", "empty", "absent"),
        ([name, *tally.values()] for name, tally in annotators.items()),
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
