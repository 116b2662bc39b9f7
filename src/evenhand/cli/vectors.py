"""`evenhand vectors …`: inspect, measure and debias static word vectors."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli import completion
from evenhand.cli.commands import Group
from evenhand.cli.options import (
    F,
    case_option,
    combine,
    configure,
    declared_options,
    describe,
    folder_option,
    format_option,
    given_options,
    json_option,
    limit_option,
    load_vectors,
    metric_option,
    names_option,
    output_option,
    prob_option,
    results_options,
    run_options,
    single,
    source_argument,
    topic_option,
)
from evenhand.cli.output import (
    number,
    print_comparisons,
    print_finding,
    print_json,
    print_measurements,
    print_notes,
    print_skipped,
    save_figures,
    say,
    shortened,
    table,
)
from evenhand.cli.progress import bar
from evenhand.errors import InputError, UnknownNameError, VocabularyError
from evenhand.instruments import Run, instruments, plan, run_jobs
from evenhand.results import Measurements
from evenhand.vectors.mitigation import DebiasSettings

if TYPE_CHECKING:
    from evenhand.lexicon import Query
    from evenhand.results import Measurement

KNOWN = instruments("vectors")
METRICS = [cls for cls in KNOWN.values() if not cls.declaration.command]
"""The metrics of `vectors measure`; the others have a command of their own."""
ANALOGIES = [cls for cls in KNOWN.values() if cls.declaration.command]
"""Those of `vectors analogies`: the share of biased answers, and the factual control."""

MEASURE_HELP = f"""Measure bias: topics, the published WEATs and WEFATs, or a query of yours.

Without --topic, --weat, --wefat or --query: everything built in. Every metric that fits is run
unless --metric names some:

{describe(METRICS)}

`evenhand list metrics NAME` explains one of them.

\b
Examples:
  evenhand vectors measure glove --topic gender
  evenhand vectors measure my.vec --weat 7 --weat 8 --robust
  evenhand vectors measure my.bin --query q.json --metric weat --json
"""


def question_options() -> Callable[[F], F]:
    """--topic, --weat and --query as `topics`, `weats` and `queries`."""
    return combine(
        topic_option(),
        names_option(
            "--weat",
            "weats",
            metavar="N[,N…]",
            type=completion.WEATS,
            help="Built-in WEATs, 1 to 10, or all; repeatable.",
        ),
        click.option(
            "--query",
            "queries",
            multiple=True,
            type=click.Path(),
            help='A JSON file {"name", "targets": {name: [words]}, "attributes": {name: [words]}}; '
            "repeatable.",
        ),
    )


@click.group(cls=Group)
def vectors() -> None:
    """How biased are static word vectors, what shows it, and what does debiasing change?

    SRC is an embedded name (glove) or a file: GloVe or word2vec text, word2vec binary, fastText
    .vec, Evenhand's .npz, or gzip of these.

    \b
    Examples:
      evenhand vectors measure glove --topic gender
      evenhand vectors debias my.vec --topic gender -o fair.vec
    """


@vectors.command(short_help="Size, dimension, and coverage of the built-in word lists.")
@source_argument
@case_option
@json_option
def info(source: str, case: str, as_json: bool) -> None:
    """Show the size and dimension of vectors, and which words of the built-in lists they have.

    \b
    Example:  evenhand vectors info glove
    """
    import numpy as np

    from evenhand import lexicon
    from evenhand.files import public_name

    v = load_vectors(source, case)
    lists = {name: lexicon.topic(name).words() for name in lexicon.topic_names()}
    for query in lexicon.weat_queries():
        sets = [*query.targets.values(), *query.attributes.values()]
        lists[query.name] = tuple(dict.fromkeys(word for words in sets for word in words))
    coverage = {name: v.find(words) for name, words in lists.items()}
    norms = np.linalg.norm(v.matrix[: min(len(v), 50_000)].astype(float), axis=1)
    if as_json:
        print_json(
            name=v.name,
            source=public_name(v.source),
            words=len(v),
            dim=v.dim,
            notes=list(v.notes),
            median_norm=float(np.median(norms)),
            coverage={
                name: {
                    "found": len(rows.words),
                    "of": len(rows.words) + len(rows.missing),
                    "missing": list(rows.missing),
                }
                for name, rows in coverage.items()
            },
        )
        return
    say(f"{v.name}: {len(v):,} words × {v.dim}, median length {number(np.median(norms), 2)}")
    print_notes(v.notes)
    table(
        "Words of the built-in lists",
        ("list", "words", "of", "without a vector"),
        (
            (
                name,
                str(len(rows.words)),
                str(len(rows.words) + len(rows.missing)),
                shortened(rows.missing, 8),
            )
            for name, rows in coverage.items()
        ),
    )


@vectors.command(short_help="Distances of protected words to stereotypes and control words.")
@source_argument
@topic_option()
@output_option("Write the complete table here as CSV.")
@declared_options(*METRICS, only=["extended"])
@case_option
@run_options
@json_option
def distances(
    source: str,
    topics: tuple[str, ...],
    output: str | None,
    extended: bool,
    case: str,
    run: Run,
    as_json: bool,
) -> None:
    """Compute cosine distances of protected words to stereotypes and control words.

    The CSV has the columns protectedWord, wordToCompare, wordClass, cosineDistance,
    cosineSimilarity, connection. The contrast compares each stereotype's distance to its own
    class with that to the others; below 0 means that stereotypes are closer to their class.

    \b
    Example:  evenhand vectors distances glove --topic religion -o religion.csv
    """
    from evenhand.lexicon import topic as read_topic
    from evenhand.vectors import association_contrast, distance_table

    topic = read_topic(single(topics, "--topic"))
    distance = distance_table(load_vectors(source, case), topic, extended=extended)
    contrast = association_contrast(distance, seed=run.seed, prob=run.prob)
    frame = distance.to_frame()
    by_connection = frame.groupby("connection")["cosineDistance"].agg(["mean", "median", "size"])
    if output:
        distance.save(output)
    if as_json:
        print_json(
            topic=distance.topic,
            rows=len(frame),
            output=output,
            left_out=list(distance.left_out),
            connections=by_connection.to_dict(orient="index"),
            measurements=[contrast],
        )
        return
    sizes = f"{len(distance.protected)} protected words × {len(distance.attributes)} attributes"
    table(
        f"{distance.topic}: {sizes}",
        ("connection", "mean", "median", "n"),
        (
            (str(name), number(row["mean"]), number(row["median"]), str(int(row["size"])))
            for name, row in by_connection.iterrows()
        ),
    )
    print_measurements("Contrast associated - different, same attribute", [contrast])
    if distance.left_out:
        say(f"left out, no vector: {', '.join(distance.left_out)}")
    if output:
        say(f"{len(frame):,} rows written to {output}")
    print_finding([contrast])


@vectors.command(
    short_help="Measure bias: topics, published tests or your query.",
    help=MEASURE_HELP,
)
@source_argument
@question_options()
@names_option(
    "--wefat",
    "wefats",
    type=completion.WEFATS,
    help="Built-in WEFATs, or all; repeatable.",
)
@metric_option("vectors")
@declared_options(*METRICS)
@click.option("--robust", is_flag=True, help="Queries: add leave-one-out and split halves of WEAT.")
@results_options()
@case_option
@run_options
@json_option
def measure(
    source: str,
    topics: tuple[str, ...],
    weats: tuple[str, ...],
    wefats: tuple[str, ...],
    queries: tuple[str, ...],
    metrics: tuple[str, ...],
    robust: bool,
    case: str,
    run: Run,
    as_json: bool,
    **parameters: Any,
) -> None:
    """Measure what the options name; `MEASURE_HELP` is the help text."""
    from evenhand import lexicon

    everything = not (topics or weats or wefats or queries)
    if everything:
        topics, weats, wefats = lexicon.topic_names(), ("all",), ("all",)
    options = given_options(parameters)
    numbered = lexicon.weat_queries() if "all" in weats else [lexicon.weat(n) for n in weats]
    questions = [*numbered, *(lexicon.read_query(path) for path in queries)]
    facts = lexicon.wefat_queries() if "all" in wefats else map(lexicon.wefat, wefats)
    jobs = [
        job
        for material in (*map(lexicon.topic, topics), *questions)
        for job in plan("vectors", material, list(metrics) or None, options, fitting=everything)
    ]
    jobs += [
        job
        for fact in facts
        for job in plan("vectors", fact, None, options)
        if not everything or not metrics or job.metric in metrics
    ]
    if not jobs:
        raise UnknownNameError(
            "metric", ", ".join(metrics), [cls.declaration.name for cls in METRICS]
        )
    v = load_vectors(source, case)
    strict = bool(metrics) and not everything
    measured = run_jobs(v, bar(jobs, "measuring"), run, strict=strict)
    if robust:
        measured += _check_robustness(v, questions, run)
    if not measured:
        raise VocabularyError(f"nothing could be measured: {measured.skipped[0]['reason']}")
    if as_json:
        print_json(
            vectors={"name": v.name, "words": len(v), "dim": v.dim},
            measurements=list(measured),
            skipped=measured.skipped,
        )
        return
    print_measurements(f"Bias in {v.name}, {len(v):,} words × {v.dim}", measured)
    print_skipped(measured.skipped)
    print_finding(measured, skipped=measured.skipped)


def _check_robustness(v: Any, queries: list[Query], run: Run) -> Measurements:
    """Leave-one-out and split halves of each query that WEAT takes."""
    from evenhand.vectors import leave_one_out, split_half

    results: list[Measurement] = []
    skipped: list[dict[str, str]] = []
    fitting = [query for query in queries if len(query.targets) == len(query.attributes) == 2]
    for query in fitting:
        for check in (leave_one_out, split_half):
            try:
                results.append(check(v, query, seed=run.seed, prob=run.prob))
            except InputError as error:
                reason = {"metric": check.__name__, "query": query.name, "reason": str(error)}
                skipped.append(reason)
    return Measurements(results, skipped)


def _save_items(path: str, measurements: Measurements) -> None:
    import pandas as pd

    from evenhand.files import replace_file

    frames = [
        m.to_frame().assign(metric=m.metric, query=m.query).set_index(["metric", "query"])
        for m in measurements
    ]
    with replace_file(path) as file:
        pd.concat(frames).reset_index().to_csv(file, index=False)


@vectors.command(short_help="Reduce a topic's bias, then measure again.")
@source_argument
@topic_option("gender")
@declared_options(DebiasSettings)
@output_option(
    "Write the vectors here: .txt or .vec word2vec text, .bin binary, .npz Evenhand's; .gz of text."
)
@click.option(
    "--out-format",
    "file_format",
    help="word2vec, word2vec-binary, glove or npz; by default from the ending.",
)
@case_option
@run_options
@json_option
def debias(
    source: str,
    topics: tuple[str, ...],
    output: str | None,
    file_format: str | None,
    case: str,
    run: Run,
    as_json: bool,
    **options: Any,
) -> None:
    """Reduce a topic's bias, then measure again: the same metrics, hidden bias, and the cost.

    \b
    Example:  evenhand vectors debias glove --topic gender --method hard -o fair.bin
    """
    from evenhand.lexicon import topic as read_topic
    from evenhand.vectors import mitigate
    from evenhand.vectors.formats import format_of

    topic = single(topics, "--topic")
    material = read_topic(topic)
    if output:
        format_of(output, file_format)
    v = load_vectors(source, case)
    result = mitigate(v, material, seed=run.seed, prob=run.prob, **options)
    debiased = result.debiased
    notes = list(debiased.notes)
    if output:
        notes += debiased.vectors.save(output, file_format)
    if as_json:
        print_json(
            output=output,
            debias=debiased.to_dict(),
            comparisons=[*result.measures, *result.hiding],
            measurements=list(result.utility),
        )
        return
    print_comparisons(f"{debiased.vectors.name}: {topic}", result.measures)
    print_comparisons(
        "Hidden bias (words most associated with each class, none of them fitted on)", result.hiding
    )
    print_measurements("Utility: what is left of the geometry of the vectors", result.utility)
    print_notes(notes)
    if debiased.left_out:
        say(f"left out, no vector: {', '.join(debiased.left_out)}")
    if output:
        say(f"{len(v):,} words written to {output}")
    print_finding(result.utility, [*result.measures, *result.hiding])


@vectors.command(short_help="A : B :: C : ?, inputs barred and allowed.")
@source_argument
@click.argument("words", nargs=-1, metavar="[A B C]")
@declared_options(*ANALOGIES)
@case_option
@prob_option()
@results_options()
@json_option
def analogies(
    source: str, words: tuple[str, ...], answers: int, case: str, prob: float, as_json: bool
) -> None:
    """Answer "A is to B as C is to …", with the three words barred from the answers and allowed.

    Without words: the built-in occupations and traits for man/woman and the like, and factual
    analogies as a control. Most tools bar the inputs, so that they cannot answer
    "man : doctor :: woman : doctor".

    \b
    Example:  evenhand vectors analogies glove man doctor woman
    """
    if len(words) not in (0, 3):
        raise click.UsageError(f"analogies: expected three words A B C or none, got {len(words)}")
    v = load_vectors(source, case)
    if words:
        _answer_analogy(v, words, answers, as_json)
        return
    bias, control = (
        configure(cls, {"answers": answers}).measure(v, run=Run(prob=prob)) for cls in ANALOGIES
    )
    if as_json:
        print_json(True, measurements=[bias, control])
        return
    table(
        "a : word :: c : ?",
        ("a→c", "word", "inputs allowed", "inputs barred"),
        (
            (item["group"], item["word"], item["allowed"], ", ".join(item["top_barred"]))
            for item in bias.items
        ),
    )
    print_measurements("Share answered with the word itself; factual control", [bias, control])
    print_finding([bias, control])


def _answer_analogy(v: Any, words: tuple[str, ...], answers: int, as_json: bool) -> None:
    from evenhand.vectors import analogy

    best = analogy(v, words[0], words[1], words[2], n=answers)
    if as_json:
        lists = {
            kind: [{"word": answer.word, "score": answer.score} for answer in getattr(best, kind)]
            for kind in ("allowed", "barred")
        }
        print_json(question=list(words), **lists)
        return
    table(
        f"{words[0]} : {words[1]} :: {words[2]} : ?",
        ("inputs allowed", "score", "inputs barred", "score"),
        (
            [
                text
                for answer in pair
                for text in ((answer.word, number(answer.score)) if answer else ("", ""))
            ]
            for pair in zip_longest(best.allowed, best.barred)
        ),
    )


@vectors.command(short_help="Occupations on the axes he and she.")
@source_argument
@topic_option("gender")
@folder_option("Folder for occupations.csv and the figure.")
@format_option
@case_option
@run_options
@json_option
def occupations(
    source: str,
    topics: tuple[str, ...],
    folder: Path | None,
    formats: tuple[str, ...],
    case: str,
    run: Run,
    as_json: bool,
) -> None:
    """Show how near each occupation is to he and to she, and on which side of the line it falls.

    The two words are the topic's first defining pair. A name of several words that has no vector,
    such as "interior designer", is the mean of the vectors of its words.

    \b
    Example:  evenhand vectors occupations glove -o FOLDER
    """
    from evenhand.lexicon import topic as read_topic
    from evenhand.vectors.metrics.projections import Projections

    topic = read_topic(single(topics, "--topic"))
    (m,) = Projections(average=True).measure(load_vectors(source, case), topic, run)
    if folder:
        from evenhand.charts import ChartSet
        from evenhand.report.vectors import occupation_axes

        folder.mkdir(exist_ok=True)
        figures = ChartSet()
        figures.add("occupations", lambda: occupation_axes(m))
        save_figures(figures, folder, formats)
        _save_items(str(folder / "occupations.csv"), Measurements([m]))
    if as_json:
        print_json(True, measurements=[m])
        return
    first, second = [k for k in m.items[0] if k not in ("word", "group", "score", "without")]
    averaged = m.details["averaged"]
    table(
        f"Cosine of each occupation with {first} and {second}",
        ("occupation", "associated with", first, second, f"{first} - {second}"),
        (
            (
                item["word"] + "*" * (item["word"] in averaged),
                item["group"],
                number(item[first]),
                number(item[second]),
                number(item["score"]),
            )
            for item in sorted(m.items, key=lambda item: -item["score"])
        ),
    )
    if averaged:
        say("*: mean of the vectors of its words")
    print_measurements("Difference of the mean projections", [m])
    print_finding([m])


@vectors.command(short_help="Pairs analogous to A B, and their threshold.")
@source_argument
@click.argument("words", nargs=-1, metavar="[A B]")
@click.option(
    "--max-distance",
    "threshold",
    type=click.FloatRange(0, 2, min_open=True, max_open=True),
    default=1.0,
    show_default=True,
    help="Largest length of the difference of two words, vectors at length one.",
)
@declared_options(*ANALOGIES, answers={"default": 20})
@limit_option(type=click.IntRange(2), default=10_000, show_default=True)
@case_option
@json_option
def pairs(
    source: str,
    words: tuple[str, ...],
    threshold: float,
    answers: int,
    limit: int,
    case: str,
    as_json: bool,
) -> None:
    """Search the pairs of words whose difference is most like that of A and B (she, he).

    As Bolukbasi et al. (2016): two words form a pair if their difference is at most --max-distance
    long. The second table shows how much the list depends on it.

    \b
    Example:  evenhand vectors pairs glove she he
    """
    if len(words) not in (0, 2):
        raise click.UsageError(f"pairs: expected two words A B or none, got {len(words)}")
    from evenhand.vectors import pair_analogies

    first, second = words or ("she", "he")
    v = load_vectors(source, case)
    found = pair_analogies(v, first, second, threshold=threshold, n=answers, limit=limit)
    if as_json:
        print_json(**found.to_dict())
        return
    table(
        f"{first} : {second} :: x : y, {found.words:,} words, threshold {threshold:g}",
        ("x", "y", "cosine", "length"),
        ((p.first, p.second, number(p.score), number(p.length)) for p in found.pairs),
    )
    table(
        "The same at other thresholds",
        ("threshold", "candidate pairs", "listed", "shared with the list above", "median cosine"),
        (
            (
                f"{effect.threshold:g}",
                f"{effect.candidates:,}",
                str(effect.pairs),
                f"{effect.shared} of {len(found.pairs)}",
                number(effect.median_score),
            )
            for effect in found.sensitivity
        ),
    )


@vectors.command(short_help="The values of a metric on random words.")
@source_argument
@question_options()
@metric_option("vectors")
@click.option(
    "--null",
    "draws",
    type=click.IntRange(1),
    default=1000,
    show_default=True,
    help="Draws of random words of similar frequency.",
)
@click.option(
    "--by-dimension",
    "dimension",
    is_flag=True,
    help="Instead: spread of random cosines against dimension.",
)
@results_options()
@case_option
@run_options
@json_option
def null(
    source: str,
    topics: tuple[str, ...],
    weats: tuple[str, ...],
    queries: tuple[str, ...],
    metrics: tuple[str, ...],
    draws: int,
    dimension: bool,
    case: str,
    run: Run,
    as_json: bool,
) -> None:
    """Compute a metric on random words of similar frequency in place of the probe words.

    A value is large where random words rarely reach it. With --by-dimension: how the spread of
    cosines between random vectors shrinks as their dimension grows (Dobrzeniecka 2021).

    \b
    Examples:
      evenhand vectors null glove --topic gender --metric direct_bias
      evenhand vectors null glove --by-dimension
    """
    from evenhand import lexicon

    if dimension:
        _show_dimension(run, as_json)
        return
    questions: list[Any] = [
        *map(lexicon.topic, topics),
        *map(lexicon.weat, weats),
        *map(lexicon.read_query, queries),
    ]
    if len(questions) != 1:
        raise click.UsageError("null: expected one of --topic, --weat, --query or --by-dimension")
    jobs = plan("vectors", questions[0], list(metrics) or None, {"permutations": 0, "null": draws})
    v = load_vectors(source, case)
    jobs_shown = bar(jobs, "drawing")
    measured = run_jobs(v, jobs_shown, run, strict=bool(metrics))
    with_null = [m for m in measured if "null_draws" in m.details]
    if not with_null:
        reasons = [skip["reason"] for skip in measured.skipped]
        raise InputError(
            f"nothing to draw for: {reasons[0]}"
            if reasons
            else "null: association permutes classes and has no null of random words"
        )
    if as_json:
        print_json(measurements=with_null, skipped=measured.skipped)
        return
    print_measurements(
        f"Draws of random words of similar frequency in {v.name}",
        with_null,
        columns={
            f"null {float(level):.1%}": lambda m, level=level: number(
                m.details["null_quantiles"][level]
            )
            for level in ("0.025", "0.25", "0.5", "0.75", "0.975")
        }
        | {"draws": lambda m: f"{m.details['null_draws']:,}"},
        hide=["null"],
    )
    print_skipped(measured.skipped)
    print_finding(with_null, skipped=measured.skipped)


def _show_dimension(run: Run, as_json: bool) -> None:
    from evenhand.vectors import dimension_spread

    spread = dimension_spread(seed=run.seed, prob=run.prob)
    if as_json:
        print_json(True, measurements=[spread])
        return
    columns = ("dimension", "sd_uniform", "sd_normal", "theory_normal")
    table(
        "Standard deviation of the cosine of random vectors",
        ("dimension", "uniform on [0, 1]", "normal", "1/√d"),
        (
            [number(item[name], 4 * (name != "dimension")) for name in columns]
            for item in spread.items
        ),
    )
    print_measurements("Slope of log spread on log dimension, normal vectors", [spread])
    print_finding([spread])
