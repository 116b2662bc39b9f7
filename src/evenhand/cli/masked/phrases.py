"""`evenhand masked phrases`: phrases of what people do, by embedding and by pronoun."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenhand.cli.figures import format_option, save_figures
from evenhand.cli.masked.shared import (
    load_model,
    models_option,
    open_cache,
    running_options,
    scoring_bar,
)
from evenhand.cli.options import folder_option, json_option, load_vectors, prob_option, seed_option

if TYPE_CHECKING:
    from evenhand.lexicon.phrases import Phrases
    from evenhand.masked.metrics.phrases import Coefficient, PhraseCorrelation, PhraseReport

__all__ = ["phrases"]


@click.command(short_help="Phrase WEAT, and whether it agrees with the pronouns.")
@models_option
@click.option(
    "--vectors", "sources", multiple=True, metavar="SRC",
    help="Also embed phrases by the mean of word vectors: glove or a file; repeatable.",
)  # fmt: skip
@click.option(
    "--sets", "names", multiple=True, metavar="NAME|FILE.toml",
    help="Phrase sets: force, machines, command, neutral (all by default), or a file of yours.",
)  # fmt: skip
@folder_option("Folder for results.json, phrases.csv and the figures.")
@format_option
@running_options
@seed_option
@prob_option
@json_option
def phrases(
    models: tuple[str, ...],
    sources: tuple[str, ...],
    names: tuple[str, ...],
    output: Path | None,
    formats: tuple[str, ...],
    device: str,
    dtype: str,
    int8: bool,
    cache: str | None,
    seed: int,
    prob: float,
    as_json: bool,
) -> None:
    """Measure how phrases of what people do lean to one gender, in two ways.

    A phrase such as "welds the steel frame" states no gender. The phrase WEAT asks whether its
    embedding lies nearer to words for men or for women; the pronoun score, which pronoun the
    model puts beside it in carrier sentences. The two are correlated, overall and within the
    sides of the sets. In the table d is the effect size, above 0 where the first side of a set
    leans to the first attributes (male in the built-in sets).

    A FILE.toml has [sets.NAME.targets] with two named lists of phrases, and perhaps attributes
    (two named lists), carriers (sentences with {phrase} and [MASK]) and control phrases.

    \b
    Examples:
      evenhand masked phrases
      evenhand masked phrases --vectors glove -o phrases/ --format svg,html
      evenhand masked phrases --sets machines --sets mine.toml --json
    """
    from evenhand.cli.output import print_json
    from evenhand.masked.metrics.phrases import WordMean, measure, refuse_masks

    lists = _lists(names)
    loaded = {source: load_model(source, device, dtype, int8) for source in dict.fromkeys(models)}
    refuse_masks(
        lists, loaded.values(), next((name for name in names if name.endswith(".toml")), None)
    )
    with scoring_bar("asking for pronouns") as progress:
        report = measure(
            loaded, lists, prob=prob, seed=seed, progress=progress, cache=open_cache(cache),
            embeds={source: WordMean(load_vectors(source, "fallback")) for source in sources},
        )  # fmt: skip
    if output:
        _save(output, report, formats)
    if as_json:
        print_json(**report.as_dict())
        return
    _print(report)
    if output:
        click.echo(f"written to {output}: results.json, phrases.csv, figures/")


def _lists(names: tuple[str, ...]) -> Phrases:
    """The sets asked for: built-in ones by name, or those of one file."""
    from evenhand.errors import InputError
    from evenhand.lexicon.phrases import phrases as built_in
    from evenhand.lexicon.phrases import read_phrases

    files = [name for name in names if name.endswith(".toml")]
    chosen = [name for name in names if name not in files]
    if not files:
        return built_in().select(chosen) if chosen else built_in()
    if len(files) > 1:
        raise InputError(f"--sets: expected one file, got {len(files)}: {', '.join(files)}")
    own = read_phrases(files[0])
    return own.join(built_in().select(chosen)) if chosen else own


def _save(folder: Path, report: PhraseReport, formats: tuple[str, ...]) -> None:
    import pandas as pd

    from evenhand.report.charts_masked_phrases import phrase_charts
    from evenhand.results import document, replace_file, save_json

    folder.mkdir(exist_ok=True)
    frames = [
        pd.DataFrame(list(found.items)).assign(
            source=found.source, model=found.model, centred=found.centred
        )
        for found in report.correlations
    ]
    with replace_file(folder / "phrases.csv") as file:
        pd.concat(frames).to_csv(file, index=False)
    save_figures(phrase_charts(report), folder, formats)
    save_json(folder / "results.json", document(**report.as_dict(items=True)))


def _print(report: PhraseReport) -> None:
    from evenhand.cli.output import number, p_text, print_comparisons, table

    table(
        "Phrase WEAT: effect size d of each set",
        ("embedded by", "set", "value", "interval", "p", "p of attributes", "n"),
        [
            (
                m.details["source"] + (", centred" if m.details["centred"] else ""),
                m.query,
                number(m.value),
                f"[{number(m.low)}, {number(m.high)}]",
                p_text(m.p_value),
                p_text(m.details["p_attributes"]),
                str(m.n),
            )
            for m in report.measurements
        ],
    )
    if report.comparisons:
        print_comparisons("Against the first model, paired by phrase", report.comparisons)
    for found in report.correlations:
        _print_correlation(found)
    for source, words in report.left_out.items():
        click.echo(f"{source}: not known and passed over: {', '.join(words)}")
    click.echo(f"intervals: {report.measurements[0].prob:.0%}, over phrases.")
    for note in report.notes:
        click.echo(f"- {note}")


def _print_correlation(found: PhraseCorrelation) -> None:
    from evenhand.cli.output import number, table

    how = ", centred" if found.centred else ""
    table(
        f"Association by {found.source}{how} with the pronouns of {found.model}",
        ("phrases", "n", "Pearson's r", "p", "Spearman's r", "p", "reliability", "corrected r"),
        [
            (
                name,
                str(part.n),
                _coefficient(part.pearson),
                _p(part.pearson),
                _coefficient(part.spearman),
                _p(part.spearman),
                " and ".join(number(r, 2) for r in part.reliability),
                number(part.corrected, 2),
            )
            for name, part in found.parts.items()
        ],
    )


def _p(found: Coefficient) -> str:
    from evenhand.cli.output import p_text

    return p_text(None if math.isnan(found.p_value) else found.p_value)


def _coefficient(found: Coefficient) -> str:
    from evenhand.cli.output import number

    r = found.estimate
    return f"{number(r.value, 2)} [{number(r.low, 2)}, {number(r.high, 2)}]"
