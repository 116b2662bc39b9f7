"""`evenhand masked …`: measure, generate with and fine-tune masked language models."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli import completion
from evenhand.cli.commands import Group
from evenhand.cli.model import measure_model, measure_options, measure_with
from evenhand.cli.options import (
    ModelLoader,
    configure,
    declared_options,
    describe,
    device_option,
    figures_option,
    folder_option,
    form_of,
    format_option,
    format_options,
    items_option,
    json_option,
    limit_option,
    load_vectors,
    model_option,
    model_options,
    models_option,
    names_option,
    output_option,
    prob_option,
    restart_option,
    results_options,
    run_options,
    seed_option,
    vectors_option,
)
from evenhand.cli.output import (
    estimate,
    number,
    p_text,
    print_comparisons,
    print_finding,
    print_json,
    print_measurements,
    print_notes,
    save_figures,
    say,
)
from evenhand.cli.progress import progress_bar, step_bars
from evenhand.files import public_arguments, public_names
from evenhand.instruments import Run, compare_together, correct_results, instruments
from evenhand.masked.finetuning import Settings as FinetuneSettings
from evenhand.masked.generation import DIRECTIONS
from evenhand.masked.generation import Settings as GenerationSettings
from evenhand.masked.metrics.pronouns import BUILT_IN
from evenhand.text.structural import Filter

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.charts import ChartSet
    from evenhand.masked.designs import Design
    from evenhand.masked.finetuning import FinetuneResult
    from evenhand.masked.generation import Generation
    from evenhand.results import Comparison, Measurement

__all__ = ["masked"]

METRICS = list(instruments("model").values())
BY_COMMAND = {cls.declaration.command or cls.declaration.name: cls for cls in METRICS}
SCORE, ASSOCIATE, PHRASES, CROWS, CONTEXT = map(
    BY_COMMAND.__getitem__, ("score", "associate", "phrases", "crows", "context")
)


@click.group(cls=Group, short_help="Measure and reduce bias in masked language models.")
def masked() -> None:
    """Which gender does a masked language model expect, and what does fine-tuning change?

    A model is named mini (embedded, the default), by the path of a folder in the transformers
    layout, or as hf:NAME, the only case in which anything is downloaded.

    \b
    Examples:
      evenhand masked measure mini
      evenhand masked score sentences.txt --filter --model ./my-bert
      evenhand masked finetune sentences.txt -o even
    """


# ---- measure


MEASURE_HELP = f"""Measure a model by declared metrics, each on its default material or on FILE.

MODEL is mini, the path of a folder, or hf:NAME. The metrics:

{describe(METRICS)}

Without --metric, those that have built-in material are run. `evenhand list metrics NAME` explains
one of them.

\b
Examples:
  evenhand masked measure mini
  evenhand masked measure ./bert --metric pronouns --data biased.jsonl --json
  evenhand masked measure mini --metric crows,perplexity --data crows_pairs_anonymized.csv
"""


@masked.command(short_help="Measure a model by any declared metric.", help=MEASURE_HELP)
@measure_options(METRICS)
def measure(source: str, load: ModelLoader, **given: Any) -> None:
    measure_model("masked measure", "model", source, load, load.cache, **given)


def _save(
    folder: Path,
    results: Sequence[Measurement],
    comparisons: Sequence[Comparison],
    frames: Iterable[pd.DataFrame],
    name: str,
    charts: ChartSet,
    formats: tuple[str, ...],
    *,
    items: bool = False,
    **more: Any,
) -> None:
    """Write results.json, a table of items and the figures into a folder."""
    from evenhand.files import document, save_json

    folder.mkdir(exist_ok=True)
    content = document(
        measurements=[m.to_dict(items=items) for m in results],
        comparisons=[c.to_dict(items=False) for c in comparisons],
        **more,
    )
    save_json(folder / "results.json", content)
    _save_frames(folder / name, frames)
    save_figures(charts, folder / "figures", formats)


def _save_frames(path: str | Path, frames: Iterable[pd.DataFrame]) -> None:
    import pandas as pd

    from evenhand.files import replace_file

    with replace_file(path) as file:
        pd.concat(frames).to_csv(file, index=False)


# ---- score


@masked.command("score", short_help="The gender a model predicts where a pronoun was masked.")
@click.argument("file", metavar="FILE|-", type=completion.TEXT_FILE)
@models_option
@click.option(
    "--filter",
    "filtered",
    is_flag=True,
    help="FILE is plain text, one sentence per line: score what `evenhand text filter` accepts.",
)
@declared_options(Filter, only=["someone"])
@declared_options(SCORE)
@results_options(items=False)
@items_option("Save every sentence's score: .csv, .jsonl or .parquet.", endings=())
@figures_option(help="Draw the distribution of the scores, and the differences of several models.")
@format_option
@model_options
@run_options
@json_option
def score(
    file: str,
    models: tuple[str, ...],
    filtered: bool,
    someone: bool,
    items: str | None,
    figures: Path | None,
    formats: tuple[str, ...],
    load: ModelLoader,
    run: Run,
    as_json: bool,
    **options: Any,
) -> None:
    """Score masked sentences: bias = P(male) / (P(male) + P(female)), 1 male, 0 female.

    FILE has what `evenhand text filter` wrote (JSON lines with "masked"), or text with one [MASK]
    per line, or with --filter plain text. P is the probability of the likeliest word of that gender
    in the full vocabulary or, as published by Ye et al. (2021), among the --top-k likeliest words,
    where a gender without a word counts 0. A repeated sentence counts once. Intervals come from a
    bootstrap over sentences. With --items or --cache the same command resumes after a break.

    \b
    Examples:
      evenhand text filter sentences.txt -o biased.jsonl
      evenhand masked score biased.jsonl --items items.csv
      evenhand masked score biased.jsonl --model mini --model ./tuned --figures out
      evenhand masked score sentences.txt --filter --keep-someone --figures out
      echo "[MASK] waves at the driver." | evenhand masked score - --json
    """
    from evenhand.masked import pronouns_of_file

    instrument = configure(SCORE, options)
    if someone and not filtered:
        raise click.UsageError("--keep-someone goes with --filter")
    keep = Filter(someone=someone) if filtered else None
    loaded = load.each(models)
    with progress_bar("scoring", "sentences") as progress:
        run = replace(run, cache=load.cache, progress=progress)
        results = pronouns_of_file(loaded, file, instrument, run, output=items, keep=keep)
    comparisons = compare_together(
        [SCORE.compare(first, second) for first, second in combinations(results, 2)]
    )
    if as_json:
        print_json(
            command="masked score",
            file=file,
            items=items,
            measurements=results,
            comparisons=comparisons,
        )
    else:
        _print_scores(results, comparisons)
    if figures is not None:
        from evenhand.report.masked import score_charts

        save_figures(score_charts(results, comparisons), figures, formats)


def _print_scores(results: Sequence[Measurement], comparisons: Sequence[Comparison]) -> None:
    settings = results[0].details["settings"]
    delta, top = settings["delta"], f"top {settings['top_k']}"
    verdicts = ("male", "female", "neutral", "undecided")
    print_measurements(
        "Pronoun score: how many sentences (and their mean score)",
        [row for m in results for row in (m.part(top, "vocabulary"), m)],
        label=lambda m: m.query if m.by else "full vocabulary",
        columns={
            "sentences": lambda m: str(m.details["sentences"]),
            **{verdict: _counter(verdict) for verdict in verdicts},
        },
        hide=["left out"],
        note="\nvalue: the mean of P(male)/(P(male)+P(female)) over decided sentences; male above "
        f"{0.5 + delta:g}, female below {0.5 - delta:g}; undecided: no gender word of at least "
        f"{settings['threshold']:g}. p: as many above .5 as below (sign test).",
    )
    for m in results:
        _print_remarks(m, top)
    details = results[0].details
    if details["filtered"]:
        say(f"sentences that the structural filter left out: {details['filtered']:,}")
    if details["duplicates"]:
        say(f"repeated sentences, which count once: {details['duplicates']}")
    print_measurements(
        "By the role of the pronoun in the sentence: full vocabulary, all sentences",
        [part for m in results for part in m.select("slot")],
        label=lambda m: m.query,
        columns={top: lambda m: estimate(m.part(top).estimate)},
    )
    print_comparisons(
        "Models on the same sentences: difference of the score, paired, full vocabulary",
        comparisons,
        label=lambda c: f"{c.after.subject} - {c.before.subject}",
        columns={
            "n": lambda c: str(c.paired),
            "decided by both": lambda c: str(c.details["decided"]["both"]),
            top: lambda c: estimate(c.parts[0].change),
        },
        note="p: sign test on the full-vocabulary differences, corrected (Holm).",
    )
    print_finding(results, comparisons)


def _counter(verdict: str) -> Callable[[Measurement], str]:
    """A column: the number of sentences with a verdict, and their mean score."""

    def cell(m: Measurement) -> str:
        part = m.part(verdict, "verdict")
        count = part.details["count"]
        if verdict == "undecided" or not count:
            return str(count)
        return f"{count} ({number(part.part('mean score').value)})"

    return cell


def _print_remarks(m: Measurement, top: str) -> None:
    """What was left out or needs a comment, one line each."""
    remarks = [f"left out: {reason}" for reason in m.left_out[:10]]
    if len(m.left_out) > 10:
        remarks.append(f"left out: {len(m.left_out) - 10} more (see --json)")
    one_sided = sum(m.part(top, "vocabulary").details["one_sided"].values())
    if one_sided:
        remarks.append(
            f"only one gender is among the {top} (the other counts 0) in {one_sided} of the "
            "sentences."
        )
    for remark in (*remarks, *m.notes):
        say(f"{m.subject}: {remark}")


# ---- associate

SHOWN_PROFESSIONS = 8
"""Professions shown of either end; JSON and -o FOLDER have all."""


@masked.command(short_help="Which professions suggest a man, which a woman.")
@click.argument("file", metavar="[FILE.tsv]", type=click.Path(), required=False)
@models_option
@click.option(
    "--templates",
    metavar="FILE",
    type=click.Path(),
    help="Your own sentences with {person} and {profession}: one per line, or a TOML file.",
)
@click.option(
    "--professions",
    metavar="FILE",
    type=click.Path(),
    help="Your own professions: one per line, or CSV with profession, group, women.",
)
@click.option(
    "--persons",
    metavar="MALE/FEMALE",
    multiple=True,
    help="Your own pair of persons, such as he/she or 'my brother/my sister'. Repeatable.",
)
@folder_option("Folder for results.json, items.csv and the figures.")
@format_option
@model_options
@prob_option()
@json_option
def associate(
    file: str | None,
    models: tuple[str, ...],
    folder: Path | None,
    formats: tuple[str, ...],
    load: ModelLoader,
    prob: float,
    as_json: bool,
    **own: Any,
) -> None:
    """The association of professions with men and women: log(p_target / p_prior).

    p_target is the probability of the person word with the profession shown, p_prior that of the
    same word at the same position with every piece of the profession masked (Kurita et al. 2019,
    Bartl et al. 2020); reported is the man's minus the woman's. Above 0 the profession suggests a
    man. Templates, professions and person words are all samples, and the intervals allow for all
    three.

    Without FILE the built-in templates, professions and persons are used, or yours. FILE is a table
    in the layout of BEC-Pro (columns Sentence, Template, Person, Gender, Profession, Prof_Gender).

    \b
    Examples:
      evenhand masked associate
      evenhand masked associate BEC-Pro_EN.tsv --model ./bert --json
      evenhand masked associate --model mini --model ./tuned -o out
      evenhand masked associate --persons he/she --professions jobs.txt --templates own.toml
    """
    sentences, incomplete = _design(file, own)
    loaded = load.each(models)
    results = correct_results(
        [
            m
            for model in loaded
            for m in measure_with(ASSOCIATE(), model, sentences, Run(prob=prob), load.cache)
        ]
    )
    changes = compare_together([ASSOCIATE.compare(results[0], other) for other in results[1:]])
    if folder:
        from evenhand.report.masked import association_charts

        frames = [m.to_frame().assign(model=m.subject) for m in results]
        _save(
            folder,
            results,
            changes,
            frames,
            "items.csv",
            association_charts(results),
            formats,
            incomplete=incomplete,
        )
    if as_json:
        print_json(
            command="masked associate",
            file=file,
            incomplete=incomplete,
            measurements=results,
            comparisons=changes,
        )
        return
    for m in results:
        _print_association(m)
    print_comparisons(
        "Models on the same sentences: difference, paired",
        changes,
        parts=True,
        label=lambda c: f"{c.after.subject} - {c.before.subject}, {_group(c.before)}",
        columns={"n": lambda c: f"{c.paired:,}"},
    )
    if incomplete:
        say(f"left out, since {file} lacks some of their sentences: {', '.join(incomplete)}")
    print_finding(results, changes)


def _design(file: str | None, own: dict[str, Any]) -> tuple[Design, tuple[str, ...]]:
    """The sentences, and the professions for which some are missing."""
    if file is None:
        return ASSOCIATE.choose(**own), ()
    if any(own.values()):
        names = ", ".join(f"--{name}" for name in own)
        raise click.UsageError(f"FILE has its own sentences: give it without {names}")
    from evenhand.masked.designs import read_becpro

    return read_becpro(file)


def _group(m: Measurement) -> str:
    return "male - female" if m.by == "contrast" else m.query if m.by == "group" else "all"


def _print_association(m: Measurement) -> None:
    parts = m.select("profession")
    sizes = {
        "templates": m.details["templates"],
        "professions": len(parts),
        "pairs of persons": m.details["pairs"],
    }
    counted = " × ".join(f"{n} {name if n > 1 else _singular(name)}" for name, n in sizes.items())
    several = [name for name, n in sizes.items() if n > 1]
    listed = ", ".join(several[:-1]) + " and " * (len(several) > 1) + "".join(several[-1:])
    print_measurements(
        f"Association of {m.subject}: {counted}",
        [m, *m.select("group"), *m.select("contrast")],
        label=_group,
        note=f"\nvalue: log(p_target / p_prior) of men minus that of women, {m.prob:.0%} interval "
        f"over {listed or 'none'}. groups: who mostly holds the profession.",
        hide=["left out"],
    )
    for women in m.select("correlation"):
        say(f"rank correlation with the share of women, n = {women.n}: {estimate(women.estimate)}")
    shown = SHOWN_PROFESSIONS
    few = len(parts) <= 2 * shown
    print_measurements(
        "Professions, the most male first"
        if few
        else f"Professions, the {shown} most male and the {shown} most female",
        parts if few else (*parts[:shown], *parts[-shown:]),
        label=lambda part: part.query,
        columns={
            "group": lambda part: part.details["group"] or "–",
            "pooled": lambda part: estimate(part.part("pooled").estimate),
        },
        hide=["ideal", "legend"],
    )
    print_measurements(
        "Templates: the value of each, and of all others without it",
        m.select("template"),
        label=lambda part: part.query,
        columns={
            "without": lambda part: number(part.details["without"]),
            "sign changes": lambda part: f"{part.details['sign_changes']:.0%}",
            "agreement": lambda part: number(part.details["agreement"], 2),
        },
        hide=["ideal", "legend"],
    )
    sensitivity = m.details["sensitivity"]
    if sensitivity["low"] is not None:
        say(
            f"one template left out: {number(sensitivity['low'])} to "
            f"{number(sensitivity['high'])}. {sensitivity['changing']:.0%} of the professions "
            f"change sign with the template, {sensitivity['sign_changes']:.0%} of single answers "
            "differ in sign from their profession's mean."
        )
    print_notes(m.notes)


def _singular(name: str) -> str:
    return "pair of persons" if name.startswith("pairs") else name[:-1]


# ---- phrases


@masked.command(short_help="Phrase WEAT, and whether it agrees with the pronouns.")
@models_option
@vectors_option(
    "sources",
    help="Also embed phrases by the mean of word vectors: glove or a file; repeatable.",
)
@names_option(
    "--set",
    "sets",
    type=completion.PHRASE_SETS,
    help="Phrase sets: force, machines, command, neutral (all by default), or a file of yours.",
)
@click.option(
    "--sentences",
    metavar="FILE",
    type=click.Path(allow_dash=True),
    help="Instead of sets, the clauses of what `evenhand text filter` wrote.",
)
@folder_option("Folder for results.json, phrases.csv and the figures.")
@format_option
@model_options
@run_options
@json_option
def phrases(
    models: tuple[str, ...],
    sources: tuple[str, ...],
    sets: tuple[str, ...],
    sentences: str | None,
    folder: Path | None,
    formats: tuple[str, ...],
    load: ModelLoader,
    run: Run,
    as_json: bool,
) -> None:
    """Measure how phrases of what people do lean to one gender, in two ways.

    A phrase such as "welds the steel frame" states no gender. The phrase WEAT measures whether its
    embedding is closer to words for men or for women; the pronoun score, which pronoun the model
    predicts beside it in carrier sentences. The two are correlated, overall and within the sides of
    the sets. In the table d is the effect size, above 0 where the first side of a set leans to the
    first attributes (male in the built-in sets).

    A FILE.toml has [sets.NAME.targets] with two named lists of phrases, and perhaps attributes
    (two named lists), carriers (sentences with {phrase} and [MASK]) and control phrases.

    With --sentences the phrase of each filtered sentence is the clause around its pronoun, and its
    association is correlated with the pronoun that the model predicts in the same sentence.

    \b
    Examples:
      evenhand masked phrases
      evenhand masked phrases --sentences accepted.jsonl -o phrases/
      evenhand masked phrases --vectors glove -o phrases/ --figure-format svg,html
      evenhand masked phrases --set machines --set mine.toml --json
    """
    if sentences is not None:
        if sets:
            raise click.UsageError("--set does not go with --sentences")
        _phrases_of_sentences(sentences, models, sources, folder, load, run, as_json)
        return
    lists = PHRASES.choose(sets=sets)
    names = public_names([*models, *sources])
    loaded = [replace(load(source), name=names[source]) for source in dict.fromkeys(models)]
    vectors = {names[source]: load_vectors(source, "fallback") for source in sources}
    instrument = PHRASES().with_vectors(vectors)
    effects: list[Measurement] = []
    correlations: list[Measurement] = []
    for model in loaded:
        for m in measure_with(instrument, model, lists, run, load.cache):
            if m.metric != PHRASES.declaration.name:
                correlations.append(m)
            elif (m.subject, m.query) not in {(known.subject, known.query) for known in effects}:
                effects.append(m)
    effects = correct_results(effects)
    first = {m.query: m for m in effects if m.subject == loaded[0].name}
    others = {model.name for model in loaded[1:]}
    comparisons = compare_together(
        [PHRASES.compare(first[m.query], m) for m in effects if m.subject in others]
    )
    results = [*effects, *correlations]
    if folder:
        from evenhand.report.masked import phrase_charts

        frames = [
            part.to_frame().assign(
                source=m.subject, model=m.details["pronouns_of"], centred=part.details["centred"]
            )
            for m in correlations
            for part in _raw_and_centred(m)
        ]
        charts = phrase_charts(results)
        _save(folder, results, comparisons, frames, "phrases.csv", charts, formats, items=True)
    if as_json:
        print_json(measurements=results, comparisons=comparisons)
        return
    _print_phrases(effects, correlations, comparisons)
    if folder:
        say(f"written to {folder}: results.json, phrases.csv, figures/")


def _raw_and_centred(m: Measurement) -> tuple[Measurement, Measurement]:
    return m.part("raw", "embedding"), m


def _centred(m: Measurement) -> str:
    return ", centred" if m.details["centred"] else ""


def _print_phrases(
    effects: Sequence[Measurement],
    correlations: Sequence[Measurement],
    comparisons: Sequence[Comparison],
) -> None:
    print_measurements(
        "Phrase WEAT: effect size d of each set",
        [replace(part, query=m.query) for m in effects for part in _raw_and_centred(m)],
        label=lambda m: m.query + _centred(m),
        columns={
            "p of attributes": lambda m: p_text(
                m.details["p_attributes"], m.details.get("draws_attributes")
            )
        },
        hide=["left out"],
    )
    print_comparisons("Against the first model, paired by phrase", comparisons, parts=True)
    for m in correlations:
        for part in _raw_and_centred(m):
            print_measurements(
                f"Association by {m.subject}{_centred(part)} with the pronouns of "
                f"{m.details['pronouns_of']}",
                part.select("phrases"),
                label=lambda row: row.query,
                columns={
                    "Spearman's r": lambda row: estimate(row.part("spearman").estimate, 2),
                    "its p": lambda row: p_text(
                        row.part("spearman").p_value, row.part("spearman").draws
                    ),
                    "reliability": lambda row: " and ".join(
                        number(r, 2) for r in row.details["reliability"].values()
                    ),
                    "corrected r": lambda row: number(row.details["corrected"], 2),
                },
                hide=["ideal", "legend", "left out"],
            )
    for subject, words in {m.subject: m.left_out for m in effects if m.left_out}.items():
        say(f"{subject}: not known and skipped: {', '.join(words)}")
    say(f"value: Pearson's r; intervals: {effects[0].prob:.0%}, over phrases.")
    print_notes(note for m in (*effects, *correlations) for note in m.notes)
    print_finding(effects, comparisons)


def _phrases_of_sentences(
    path: str,
    models: tuple[str, ...],
    sources: tuple[str, ...],
    folder: Path | None,
    load: ModelLoader,
    run: Run,
    as_json: bool,
) -> None:
    """The correlation of phrases and pronouns on the sentences of the structural filter."""
    from evenhand.masked.behaviours import correlate_sentences, read_behaviours
    from evenhand.masked.metrics.phrases import WordMean

    sentences = read_behaviours(path)
    names = public_names([*models, *sources])
    vectors = {names[source]: WordMean(load_vectors(source, "fallback")) for source in sources}
    results: list[Measurement] = []
    for source in dict.fromkeys(models):
        model = replace(load(source), name=names[source])
        own = replace(run, cache=load.cache)
        results.append(correlate_sentences(model, sentences, own))
        results += [
            correlate_sentences(model, sentences, own, embed=embed, source=name)
            for name, embed in vectors.items()
        ]
    if folder:
        from evenhand.files import document, save_json

        folder.mkdir(exist_ok=True)
        measured = [m.to_dict(items=False) for m in results]
        save_json(folder / "results.json", document(measurements=measured, comparisons=[]))
        frames = [
            m.to_frame().assign(source=m.subject, model=m.details["pronouns_of"]) for m in results
        ]
        _save_frames(folder / "phrases.csv", frames)
    if as_json:
        print_json(command="masked phrases", measurements=results, comparisons=[])
        return
    print_measurements(
        "Phrases of filtered sentences: correlation of association and log odds of the pronoun",
        [part for m in results for part in m.parts],
        label=lambda m: m.query,
        columns={"spearman": lambda m: estimate(m.part("spearman").estimate)},
        hide=["ideal", "left out"],
        note="\nvalue: Pearson's r. within roles: each role of the pronoun at its own mean.",
    )
    for m in results:
        for phrase, score in m.details["paper"].items():
            say(f'{m.subject}: association of "{phrase}" (Ye et al. 2021): {score:+.3f}')
        if m.left_out:
            say(f"{m.subject}: sentences without a phrase: {len(m.left_out)}")
    print_finding(results)


# ---- crows


def _measure_models(
    instrument: Any, models: Sequence[str], material: Any, run: Run, load: ModelLoader
) -> tuple[list[Measurement], list[Comparison]]:
    """Measure each model once, and compare each with the first."""
    results: list[Measurement] = []
    for source in dict.fromkeys(models):
        [m] = measure_with(instrument, load(source), material, run, load.cache)
        results.append(replace(m, subject=source))
    results = correct_results(results)
    changes = [instrument.compare(results[0], other) for other in results[1:]]
    return results, compare_together(changes)


@masked.command(short_help="CrowS-Pairs: is the stereotype the likelier sentence?")
@click.argument("path", metavar="FILE", type=click.Path(allow_dash=True))
@models_option
@declared_options(CROWS)
@results_options()
@model_options
@run_options
@json_option
def crows(
    path: str,
    models: tuple[str, ...],
    load: ModelLoader,
    run: Run,
    as_json: bool,
    **options: Any,
) -> None:
    """Score the sentence pairs of CrowS-Pairs, or of a CSV file with its columns.

    In each pair the tokens that both sentences share are hidden one at a time; the sentence in
    which they are likelier counts as preferred. Without a preference half of the pairs would go
    each way. FILE has the columns sent_more, sent_less, stereo_antistereo, bias_type and optionally
    anon_writer, as crows_pairs_anonymized.csv; it may be compressed, and - is the standard input.
    With several models each is compared with the first, pair by pair.

    \b
    Examples:
      evenhand masked crows crows_pairs_anonymized.csv
      evenhand masked crows crows_pairs_anonymized.csv --items pairs.csv --json
      evenhand masked crows pairs.csv --model mini --model tuned/ --cache answers/
    """
    instrument = configure(CROWS, options)
    pairs = instrument.read(path)
    results, changes = _measure_models(instrument, models, pairs, run, load)
    if as_json:
        print_json(measurements=results, comparisons=changes)
        return
    for m in results:
        _print_pairs(m)
    for change in changes:
        _print_pair_changes(change)
    say("Read with care:")
    for caveat in CROWS.declaration.caveats:
        say(f"- {caveat}")
    print_finding(results, changes)


def _pairs_of(m: Measurement) -> str:
    return f"direction {m.query}" if m.by == "direction" else m.query if m.by else "all pairs"


def _print_pairs(m: Measurement) -> None:
    print_measurements(
        f"{m.subject}: share of pairs whose more stereotypical sentence is the likelier",
        [m, *m.select("direction"), *m.select("category")],
        label=_pairs_of,
        columns={
            "mean difference": lambda part: estimate(part.part("mean difference").estimate),
        },
        hide=["left out"],
        note="\np: exact against .5, for the categories corrected for their number (Holm). mean "
        "difference: score of the more minus the less stereotypical sentence, in nats. Share with "
        f"ties as not stereotyped, as the authors count: {m.details['authors_score']:.2f} %, "
        f"{'ties ' + str(m.details['ties']) if m.details['ties'] else 'no ties'}.",
    )
    for by_writer in m.select("unit"):
        say(
            f"all pairs, with the {m.details['writers']} writers as the unit: "
            f"{estimate(by_writer.estimate)}, p {p_text(by_writer.p)}; this decides"
        )
    if m.left_out:
        more = f"; and {len(m.left_out) - 5} more" if len(m.left_out) > 5 else ""
        say(f"left out: {len(m.left_out)} pairs: {'; '.join(m.left_out[:5])}{more}")


def _print_pair_changes(change: Comparison) -> None:
    categories = [part for part in change.parts if part.before.by == "category"]
    print_comparisons(
        f"{change.after.subject} against {change.before.subject}, pair by pair",
        [_of_paired(part) for part in (change, *categories)],
        label=lambda c: _pairs_of(c.before),
        columns={
            "n": lambda c: str(c.paired),
            "mean difference": lambda c: estimate(c.part("mean difference").change),
        },
        note=f"intervals: {change.change.prob:.0%}. change: of the share (Newcombe's paired "
        "interval; p: McNemar's exact test, for the categories corrected by Holm). mean "
        "difference: its change, in nats. Pairs that only one model took: "
        f"{change.details['unpaired']}.",
    )


def _of_paired(c: Comparison) -> Comparison:
    """The comparison with the shares among the pairs that both models took."""
    shares = [c.details[when] for when in ("before", "after")]
    before, after = (float("nan") if share is None else share for share in shares)
    return replace(c, before=replace(c.before, value=before), after=replace(c.after, value=after))


# ---- context

SHOWN_SENTENCES = 10
"""Sentences shown of either end; --items has all."""


@masked.command("context", short_help="Is what a sentence says likelier of a man or a woman?")
@click.argument("path", metavar="[FILE|-]", type=click.Path(allow_dash=True), required=False)
@models_option
@declared_options(CONTEXT)
@results_options()
@model_options
@run_options
@json_option
def context_command(
    path: str | None,
    models: tuple[str, ...],
    load: ModelLoader,
    run: Run,
    as_json: bool,
    **options: Any,
) -> None:
    """Contextual bias: the context of gendered words with men and with women.

    Every gendered word of a sentence is swapped (wives becomes husbands). The words that both
    versions share are hidden one at a time; the score is how much likelier they are with men than
    with women, in nats, less the same for the gendered words in neutral sentences. 0: no
    difference. FILE has one sentence per line, plain or compressed; sentences without a gendered
    word, or with words for both genders, are left out and counted. Without FILE the three examples
    of Ye et al. (2021) are scored. With several models each is compared with the first.

    \b
    Examples:
      evenhand masked context
      evenhand masked context sentences.txt --items items.csv
      evenhand masked context sentences.txt --model mini --model tuned/ --json
      echo "My sister repairs old cars." | evenhand masked context -
    """
    instrument = configure(CONTEXT, options)
    sentences = instrument.read(path) if path else None
    results, changes = _measure_models(instrument, models, sentences, run, load)
    if as_json:
        print_json(command="masked context", measurements=results, comparisons=changes)
        return
    print_measurements(
        "Contextual bias: log-likelihood of the context with men less with women, in nats",
        [row for m in results for row in (m, *m.parts)],
        label=lambda m: m.query,
        hide=["left out"],
        note="\nas written: the version written less the other. uncorrected: before the neutral "
        "carriers are subtracted. carriers: an interval over sentences and carriers.",
    )
    for m in results:
        _print_contexts(m)
    print_comparisons(
        "Models on the same sentences, paired",
        changes,
        label=lambda c: f"{c.after.subject} - {c.before.subject}",
        columns={"n": lambda c: str(c.paired)},
    )
    print_notes(CONTEXT.declaration.caveats)
    print_finding(results, changes)


def _print_contexts(m: Measurement) -> None:
    """The sentences of either end, and how many were left out for which reason."""
    from collections import Counter

    rows = sorted(m.items, key=lambda item: float(item["score"]))
    few = len(rows) <= 2 * SHOWN_SENTENCES
    for item in rows if few else rows[:SHOWN_SENTENCES] + rows[-SHOWN_SENTENCES:]:
        say(f"{m.subject}: {item['score']:+.2f} {item['sentence']} [{item['words']}]")
    reasons = Counter(text.rpartition(" (")[2].rstrip(")") for text in m.left_out)
    for reason, count in reasons.items():
        say(f"{m.subject}: left out: {count:,} ({reason})")
    if m.details["duplicates"]:
        say(f"repeated sentences, which count once: {m.details['duplicates']:,}")


# ---- generate


@masked.command("generate", short_help="Edit sentences until a model's gender bias shows.")
@click.argument("file", metavar="FILE|-", type=completion.TEXT_FILE)
@model_option()
@click.option(
    "--toward",
    "direction",
    type=click.Choice(DIRECTIONS),
    default="own",
    show_default=True,
    help="Direction of the bias: the way each seed leans (own), both, or one gender.",
)
@limit_option(type=click.IntRange(1))
@declared_options(GenerationSettings)
@declared_options(
    Filter,
    only=["resolver", "someone", "split"],
)
@click.option(
    "--control-edits/--no-control-edits",
    "control",
    default=True,
    show_default=True,
    help="Compare with random edits of the same seeds.",
)
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="SRC",
    type=completion.MODEL,
    help="Another model that scores the sentences. May be repeated.",
)
@click.option(
    "--min-bias",
    "threshold",
    type=click.FloatRange(0, 0.5, max_open=True),
    default=0.4,
    show_default=True,
    help="Count sentences whose bias is at least this far from .5 toward the target side.",
)
@output_option("Write the sentences here instead of stdout, as JSON lines.")
@model_options
@run_options
@json_option
def generate(
    file: str,
    model: str,
    direction: Any,
    limit: int | None,
    resolver: str,
    someone: bool,
    split: bool,
    control: bool,
    judges: tuple[str, ...],
    threshold: float,
    output: str | None,
    load: ModelLoader,
    run: Run,
    as_json: bool,
    **options: Any,
) -> None:
    """Edit sentences to push the bias of a model, P(male) / (P(male) + P(female)), to one end.

    FILE is the output of `evenhand text filter`, or text, from which the filter selects the
    sentences in which a pronoun refers to a neutral word. One to three words are replaced by words
    that the model expects there. No gendered word or name is added, the sentence stays about as
    likely, and it passes the filter again with the same antecedent. The output has the format of
    the filter, for `text annotate`, `masked score` and `masked finetune`, with the seed, the edits,
    and the bias before and after.

    The control replaces as many words of each seed at random. The search maximises the score of
    its own model at the pronoun of the sentence, which is no evidence by itself: all sentences are
    judged by the masked pronouns of continuations ("Later [MASK] went home."), which the search
    never scores. Add other models with --judge to see whether the bias transfers. With --json
    stdout has only the summary: the sentences are written to -o, if given.

    \b
    Examples:
      evenhand masked generate biased.jsonl -o pushed.jsonl
      evenhand masked generate sentences.txt --toward both --max-edits 3 -o pushed.jsonl
      evenhand masked generate biased.jsonl --judge ./bert-base -o pushed.jsonl --json
    """
    from evenhand.masked.generation import generate as run_generation
    from evenhand.masked.generation import read_seeds
    from evenhand.text.coreference import resolver as load_resolver

    load_resolver(resolver)  # report a missing package or model before any work
    chosen = Filter(resolver=resolver, someone=someone)
    seeds = read_seeds(file, filter=chosen, split=split, limit=limit)
    searched, *readers = map(load, (model, *judges))
    with progress_bar("searching", "queries") as progress:
        result = run_generation(
            searched,
            seeds,
            direction=direction,
            settings=configure(GenerationSettings, options),
            filter=chosen,
            control=control,
            judges=readers,
            threshold=threshold,
            prob=run.prob,
            seed=run.seed,
            cache=load.cache,
            progress=progress,
        )
    if output is not None:
        result.save(output)
    if as_json:
        print_json(command="masked generate", file=file, output=output, **result.to_dict())
    elif output is not None:
        say(f"{_generation_text(result)} → {output}")
        _print_generation(result)
    else:
        click.echo(result.lines(), nl=False)
        if sys.stderr.isatty():
            say(_generation_text(result), err=True)


def _generation_text(result: Generation) -> str:
    from evenhand.masked.generation import REASONS

    text = f"{len(result.sentences):,} sentences from {len(result.outcomes):,} searches"
    for reason, n in result.nothing.items():
        text += f"\n  nothing {n:,}×: {REASONS[reason]}"
    left_out = ", ".join(f"{reason} {n:,}" for reason, n in result.left_out.items())
    return text + (f"\n  of {result.read:,} read no seeds: {left_out}" if left_out else "")


def _print_generation(result: Generation) -> None:
    """The distance from .5, by model, direction and kind of sentence."""
    rule = result.rule
    parts = {
        "top k": ("distance_top", 3),
        "target side": ("push", 3),
        "moved": ("moved", 2),
        "above": ("above_threshold", 2),
    }

    def column(name: str, digits: int) -> Callable[[Measurement], str]:
        return lambda arm: (
            "" if name == "moved" and "seeds" in arm.query else _part(arm, name, digits)
        )

    print_measurements(
        "|bias - .5| of the seeds, of the generated sentences and of random edits",
        [
            replace(arm, query=f"toward {m.query}: {arm.query}")
            for m in result.measurements
            for arm in m.select("sentences")
        ],
        label=lambda arm: arm.query,
        columns={
            "score": lambda arm: arm.details["score"],
            **{header: column(*about) for header, about in parts.items()},
        },
        note="\nscore: of the pronoun that the search maximises, or of the masked pronouns of "
        "continuations that it never scores, which alone is evidence. intervals: "
        "bootstrap over seeds; p: sign test. target side: the distance of the bias from .5 toward "
        "the target side. moved: share of seeds whose bias moved "
        f"{rule.gain:g} or more to that side; above: {rule.threshold:g} or more from .5 on that "
        "side. A seed without a result counts as its own sentence.",
    )
    for c in result.comparisons:
        if c.query == "random":
            [push] = c.parts
            say(
                f"{c.before.subject}, toward {c.details['toward']}, {c.details['score']}: "
                "found - random "
                f"{estimate(c.change)} in |bias - .5| (p = {c.p_value:.2g}), "
                f"{estimate(push.change)} toward the target side (p = {push.p_value:.2g}), paired "
                f"over {c.paired:,} seeds"
            )
    say(result.sentence)


def _part(m: Measurement, name: str, digits: int) -> str:
    return estimate(m.part(name).estimate, digits)


# ---- finetune


@masked.command(short_help="Train on rewritten text; bias and perplexity before and after.")
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=completion.TEXT_FILE)
@folder_option("Folder for the model, the curve, the figures and the results.", default="finetuned")
@model_option()
@declared_options(FinetuneSettings)
@format_options
@click.option(
    "--sentences",
    metavar="FILE",
    type=click.Path(),
    help="Measure on these: output of `evenhand text filter`, or text with one [MASK] per line. By"
    " default the filter selects sentences of the held-out documents.",
)
@click.option(
    "--watch",
    "watched",
    metavar="FILE",
    type=click.Path(),
    help="Stop by the mean bias of these sentences, in the same form; none is measured on. By"
    " default those of the evaluation text.",
)
@click.option(
    "--crows", "pairs", metavar="FILE", type=click.Path(), help="Measure CrowS-Pairs as well."
)
@click.option(
    "--control-training",
    "control",
    is_flag=True,
    help="Train a second time on the unchanged text, to separate rewriting and domain effects.",
)
@format_option
@restart_option
@device_option()
@seed_option()
@prob_option()
@json_option
def finetune(
    files: tuple[str, ...],
    folder: Path,
    model: str,
    field: str | None,
    form: str | None,
    sentences: str | None,
    watched: str | None,
    pairs: str | None,
    control: bool,
    formats: tuple[str, ...],
    restart: bool,
    device: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Fine-tune a masked language model on text rewritten on the fly and measure the change.

    A document is a line, or with --text a field of a JSONL or CSV file; files may be compressed
    and are not changed. The documents are split by a hash of their content: most are for training,
    some for the evaluation loss, some are held out. On held-out sentences the pronoun bias and the
    pseudo-perplexity are measured before and after, and each change has an interval. The pronoun
    bias is also measured on the built-in sentences, of a kind not trained on: an effect on one kind
    of text need not hold on another. Where the held-out text has no such sentences, as job
    biographies have not, the built-in ones are measured on alone; --no-measure trains on all of the
    text and measures nothing. Where the mean bias of sentences of the evaluation text (--watch: of
    others) goes to the other side of one half, training stops, and weights with which it has not
    yet are used (--stop). The same command resumes an interrupted run.

    \b
    Examples:
      evenhand masked finetune sentences.txt -o even
      evenhand masked finetune news.jsonl.gz --text body --rewrite swap --control-training -o even
      evenhand masked finetune generated.jsonl --text sentence --crows crows.csv -o even
      evenhand masked finetune bios.csv --text text --rewrite none --max-tokens 0 --no-measure
      evenhand masked score biased.jsonl --model mini --model even/model
    """
    from evenhand.masked.finetuning import finetune as run_finetuning
    from evenhand.masked.learning_text import input_hashes, read_documents
    from evenhand.masked.pairs import read_pairs
    from evenhand.masked.sentences import read_sentences
    from evenhand.report.masked import finetune_charts

    cut = form_of(files, field, form)
    named = [*files, *(name for name in (sentences, watched, pairs) if name)]
    with step_bars({"training": "tokens"}) as progress:
        result = run_finetuning(
            model,
            read_documents(files, cut),
            configure(FinetuneSettings, options),
            folder,
            sentences=read_sentences(sentences) if sentences else None,
            watched=read_sentences(watched) if watched else None,
            pairs=read_pairs(pairs) if pairs else (),
            control=control,
            restart=restart,
            device=device,
            progress=progress,
            run={
                "arguments": public_arguments(sys.argv[1:]),
                "inputs": input_hashes(named),
            },
        )
    save_figures(finetune_charts(result), result.folder / "figures", formats)
    if as_json:
        print_json(**result.to_dict())
    else:
        _print_finetuning(result)


def _print_finetuning(result: FinetuneResult) -> None:
    data, training, settings = result.data, result.training, result.settings
    loss = training["evaluation_loss"]
    ended = {
        "epochs": "all epochs done",
        "max_tokens": f"--max-tokens {settings['max_tokens']:,} reached",
        "patience": f"no better in {settings['patience']} evaluations",
        "ideal": "stopped at the ideal",
    }[training["ended"]]
    chosen = "just before it" if training["ended"] == "ideal" else "the best"
    say(
        f"{data['documents_read']:,} documents read, {training['documents']:,} learned from "
        f"({training['epoch_tokens']:,} tokens), {training['evaluation_documents']:,} for the "
        f"evaluation loss, {data['held_out']:,} held out; rewrite: {settings['rewrite']}\n"
        f"{training['steps']:,} steps, {training['tokens']:,} tokens, {training['epochs']:.1f} "
        f"epochs: {ended}; evaluation loss {loss['before']:.3f} → {loss['after']:.3f} "
        f"({chosen}, of step {training['best']['step']:,})"
    )
    if not result.changes:
        print_notes(result.notes)
        written = "model/, curve.csv, figures/, results.json, run.json"
        say(f"written to {result.folder}: {written}")
        return
    say(
        f"measured on {data['sentences']:,} sentences ({data['sentences_from']}), "
        f"{data['built_in_sentences']:,} built-in sentences, which are of another kind, and "
        f"{data['plain_sentences']:,} plain sentences\n"
    )
    compared = ("before", "after")
    for title, times, changes in (
        (f"{result.model}: before and after", compared, result.changes),
        ("Control: the same training on the unchanged text", compared, result.control),
        ("The rewriting against the control", ("control", "rewritten"), result.against_control),
    ):
        print_comparisons(
            title,
            [
                replace(c, before=replace(c.before, subject=""), after=replace(c.after, subject=""))
                for c in changes
            ],
            times=times,
            label=lambda change: change.query.removesuffix(f", {BUILT_IN}"),
            columns={
                "sentences": lambda change: change.details.get("sentences", ""),
                "n": lambda change: str(change.paired),
            },
        )
    print_notes(result.notes)
    say(
        f"ideal: the value without bias. The intervals ({settings['prob']:.0%}) hold the trained "
        f"weights fixed.\nwritten to {result.folder}: model/, curve.csv, items.csv, figures/, "
        "results.json, run.json"
    )
    say(result.sentence)
