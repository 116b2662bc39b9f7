"""`evenhand masked phrases`: phrases of what people do, by embedding and by pronoun."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenhand.cli.masked.shared import (
    load_model,
    models_option,
    open_cache,
    running_options,
    scoring_bar,
)
from evenhand.cli.options import (
    folder_option,
    format_option,
    json_option,
    load_vectors,
    prob_option,
    seed_option,
)
from evenhand.cli.output import save_figures

if TYPE_CHECKING:
    from evenhand.lexicon.phrases import Phrases
    from evenhand.results import Comparison, Measurement


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
    embedding is closer to words for men or for women; the pronoun score, which pronoun the model
    predicts beside it in carrier sentences. The two are correlated, overall and within the sides of
    the sets. In the table d is the effect size, above 0 where the first side of a set leans to the
    first attributes (male in the built-in sets).

    A FILE.toml has [sets.NAME.targets] with two named lists of phrases, and perhaps attributes
    (two named lists), carriers (sentences with {phrase} and [MASK]) and control phrases.

    \b
    Examples:
      evenhand masked phrases
      evenhand masked phrases --vectors glove -o phrases/ --format svg,html
      evenhand masked phrases --sets machines --sets mine.toml --json
    """
    from evenhand.cli.output import print_json
    from evenhand.masked.metrics.phrases import CORRELATION, WordMean, refuse_masks
    from evenhand.masked.metrics.phrases import Phrases as Instrument
    from evenhand.masked.metrics.phrases import phrases as measure

    lists = _lists(names)
    loaded = {
        source: replace(load_model(source, device, dtype, int8), name=source)
        for source in dict.fromkeys(models)
    }
    file = next((name for name in names if name.endswith(".toml")), None)
    refuse_masks(lists, loaded.values(), file)
    embeds = {source: WordMean(load_vectors(source, "fallback")) for source in sources}
    results: list[Measurement] = []
    with scoring_bar("predicting pronouns") as progress:
        for model in loaded.values():
            measured = measure(
                model,
                lists,
                embeds=embeds,
                prob=prob,
                seed=seed,
                cache=open_cache(cache),
                progress=progress,
            )
            known = {(m.metric, m.subject) for m in results}
            results += [
                m for m in measured if m.metric == CORRELATION or (m.metric, m.subject) not in known
            ]
    effects = [m for m in results if m.metric != CORRELATION]
    first = {m.query: m for m in effects if m.subject == next(iter(loaded))}
    comparisons = [
        Instrument.compare(first[m.query], m)
        for m in effects
        if m.subject in loaded and m is not first[m.query]
    ]
    if output:
        _save(output, results, comparisons, formats)
    if as_json:
        print_json(measurements=results, comparisons=comparisons)
        return
    _print(results, comparisons)
    if output:
        click.echo(f"written to {output}: results.json, phrases.csv, figures/")


def _lists(names: tuple[str, ...]) -> Phrases:
    """The chosen sets: built-in ones by name, or those of one file."""
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


def _save(
    folder: Path,
    results: Sequence[Measurement],
    comparisons: Sequence[Comparison],
    formats: tuple[str, ...],
) -> None:
    import pandas as pd

    from evenhand.files import document, replace_file, save_json
    from evenhand.report.masked import phrase_charts

    folder.mkdir(exist_ok=True)
    frames = [
        part.to_frame().assign(
            source=m.subject, model=m.details["pronouns"], centred=part.details["centred"]
        )
        for m, part in _correlations(results)
    ]
    with replace_file(folder / "phrases.csv") as file:
        pd.concat(frames).to_csv(file, index=False)
    save_figures(phrase_charts(results), folder, formats)
    content = document(
        measurements=[m.to_dict() for m in results],
        comparisons=[c.to_dict(items=False) for c in comparisons],
    )
    save_json(folder / "results.json", content)


def _correlations(results: Sequence[Measurement]) -> list[tuple[Measurement, Measurement]]:
    """The correlations with the pronouns, each raw and centred."""
    from evenhand.masked.metrics.phrases import CORRELATION

    return [
        (m, part)
        for m in results
        if m.metric == CORRELATION
        for part in (m.part("raw", "embedding"), m)
    ]


def _print(results: Sequence[Measurement], comparisons: Sequence[Comparison]) -> None:
    from evenhand.cli.output import number, p_text, print_comparisons, table
    from evenhand.masked.metrics.phrases import CORRELATION

    effects = [m for m in results if m.metric != CORRELATION]
    table(
        "Phrase WEAT: effect size d of each set",
        ("embedded by", "set", "value", "interval", "p", "p of attributes", "n"),
        [
            (
                m.subject + (", centred" if part.details["centred"] else ""),
                m.query,
                number(part.value),
                f"[{number(part.low)}, {number(part.high)}]",
                p_text(part.p_value),
                p_text(part.details["p_attributes"]),
                str(part.n),
            )
            for m in effects
            for part in (m.part("raw", "embedding"), m)
        ],
    )
    if comparisons:
        print_comparisons("Against the first model, paired by phrase", comparisons, parts=True)
    for m, part in _correlations(results):
        _print_correlation(m, part)
    for subject, words in {m.subject: m.left_out for m in effects if m.left_out}.items():
        click.echo(f"{subject}: not known and skipped: {', '.join(words)}")
    click.echo(f"intervals: {results[0].prob:.0%}, over phrases.")
    for note in dict.fromkeys(note for m in results for note in m.notes):
        click.echo(f"- {note}")


def _print_correlation(m: Measurement, part: Measurement) -> None:
    from evenhand.cli.output import number, p_text, table

    centred = ", centred" if part.details["centred"] else ""
    table(
        f"Association by {m.subject}{centred} with the pronouns of {m.details['pronouns']}",
        ("phrases", "n", "Pearson's r", "p", "Spearman's r", "p", "reliability", "corrected r"),
        [
            (
                each.query,
                str(each.n),
                _coefficient(each),
                p_text(each.p_value),
                _coefficient(each.part("spearman")),
                p_text(each.part("spearman").p_value),
                " and ".join(number(r, 2) for r in each.details["reliability"].values()),
                number(each.details["corrected"], 2),
            )
            for each in part.select("phrases")
        ],
    )


def _coefficient(m: Measurement) -> str:
    from evenhand.cli.output import number

    return f"{number(m.value, 2)} [{number(m.low, 2)}, {number(m.high, 2)}]"
