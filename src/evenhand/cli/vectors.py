"""`evenhand lab vectors …`: train word vectors; distances, analogies and random words in them."""

from __future__ import annotations

from collections.abc import Callable
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli import completion
from evenhand.cli import options as opt
from evenhand.cli.commands import Group
from evenhand.cli.output import (
    print_finding,
    print_json,
    print_measurements,
    print_rows,
    print_skipped,
    save_figures,
    say,
    table,
)
from evenhand.cli.progress import bar, is_set, step_bars
from evenhand.errors import InputError
from evenhand.instruments import Run, plan, run_jobs
from evenhand.results import Measurement
from evenhand.vectors.metrics.analogies import Analogies, AnalogyAccuracy
from evenhand.vectors.metrics.association import Association
from evenhand.vectors.training import TrainSettings
from evenhand.wording import number

if TYPE_CHECKING:
    from evenhand.vectors.store import Vectors


@click.group(cls=Group)
def vectors() -> None:
    """Further tools for static word vectors: training, distances, analogies, random words.

    SRC is an embedded name (glove) or a file: GloVe or word2vec text, word2vec binary, fastText
    .vec, Evenhand's .npz, or gzip of these.

    \b
    Examples:
      evenhand lab vectors analogies glove man doctor woman
      evenhand lab vectors null glove --topic gender --metric direct_bias
      evenhand lab vectors train corpus.txt.gz -o own.npz
    """


@vectors.command(short_help="Distances of protected words to stereotypes and control words.")
@opt.source_argument
@opt.topic_option()
@opt.output_option("Write the complete table here as CSV.")
@opt.declared_options(Association, only=["extended"])
@opt.case_option
@opt.run_options
@opt.json_option
def distances(
    source: str,
    topics: tuple[str, ...],
    output: str | None,
    case: str,
    run: Run,
    **extended: bool,
) -> None:
    """Compute cosine distances of protected words to stereotypes and control words.

    The CSV has the columns protectedWord, wordToCompare, wordClass, cosineDistance,
    cosineSimilarity, connection. The contrast compares each stereotype's distance to its own
    class with that to the others; below 0 means that stereotypes are closer to their class.

    \b
    Example:  evenhand lab vectors distances glove --topic religion -o religion.csv
    """
    from evenhand.lexicon import topic as read_topic
    from evenhand.vectors import Association, distance_table

    topic = read_topic(opt.single(topics, "--topic"))
    distance = distance_table(opt.load_vectors(source, case), topic, **extended)
    contrast = Association().measure_table(distance, run)
    frame = distance.to_frame()
    by_connection = frame.groupby("connection")["cosineDistance"].agg(["mean", "median", "size"])
    if output:
        distance.save(output)
    if print_json(
        topic=distance.topic,
        rows=len(frame),
        output=output,
        left_out=list(distance.left_out),
        connections=by_connection.to_dict(orient="index"),
        measurements=[contrast],
    ):
        return
    sizes = f"{len(distance.protected)} protected words × {len(distance.attributes)} attributes"
    table(
        f"{distance.topic}: {sizes}",
        ("connection", "mean", "median", "n"),
        (
            (name, row["mean"], row["median"], str(int(row["size"])))
            for name, row in by_connection.iterrows()
        ),
    )
    print_measurements("Contrast associated - different, same attribute", [contrast])
    if distance.left_out:
        say(f"left out, no vector: {', '.join(distance.left_out)}")
    if output:
        say(f"{len(frame):,} rows written to {output}")
    print_finding([contrast])


@vectors.command(short_help="A : B :: C : ?, inputs barred and allowed.")
@opt.source_argument
@click.argument("words", nargs=-1, metavar="[A B C]")
@opt.declared_options(Analogies)
@opt.case_option
@opt.prob_option()
@opt.results_options()
@opt.json_option
def analogies(source: str, words: tuple[str, ...], answers: int, case: str, prob: float) -> None:
    """Answer "A is to B as C is to …", with the three words barred from the answers and allowed.

    Without words: the built-in occupations and traits for man/woman and the like, and factual
    analogies as a control. Most tools bar the inputs, so that they cannot answer
    "man : doctor :: woman : doctor".

    \b
    Example:  evenhand lab vectors analogies glove man doctor woman
    """
    if len(words) not in (0, 3):
        raise click.UsageError(f"analogies: expected three words A B C or none, got {len(words)}")
    v = opt.load_vectors(source, case)
    if words:
        _answer_analogy(v, words, answers)
        return
    bias = Analogies(answers=answers).measure(v, run=Run(prob=prob))
    control = AnalogyAccuracy().measure(v, run=Run(prob=prob))
    if print_json(True, measurements=[bias, control]):
        return
    print_rows(
        "a : word :: c : ?",
        bias.items,
        {
            "a→c": "group",
            "word": "word",
            "inputs allowed": "allowed",
            "inputs barred": lambda item: ", ".join(item["top_barred"]),
        },
    )
    print_measurements("Share answered with the word itself; factual control", [bias, control])
    print_finding([bias, control])


def _answer_analogy(v: Vectors, words: tuple[str, ...], answers: int) -> None:
    from evenhand.vectors import analogy

    best = analogy(v, words[0], words[1], words[2], n=answers)
    if is_set("json"):
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
                for text in ((answer.word, answer.score) if answer else ("", ""))
            ]
            for pair in zip_longest(best.allowed, best.barred)
        ),
    )


@vectors.command(short_help="Occupations on the axes he and she.")
@opt.source_argument
@opt.topic_option("gender")
@opt.folder_option("Folder for occupations.csv and the figure.")
@opt.format_option
@opt.case_option
@opt.run_options
@opt.json_option
def occupations(
    source: str,
    topics: tuple[str, ...],
    folder: Path | None,
    formats: tuple[str, ...],
    case: str,
    run: Run,
) -> None:
    """Show how near each occupation is to he and to she, and on which side of the line it falls.

    The two words are the topic's first defining pair. A name of several words that has no vector,
    such as "interior designer", is the mean of the vectors of its words.

    \b
    Example:  evenhand lab vectors occupations glove -o FOLDER
    """
    from evenhand.charts import ChartSet
    from evenhand.lexicon import topic as read_topic
    from evenhand.vectors.metrics.projections import Projections, ends_of

    topic = read_topic(opt.single(topics, "--topic"))
    (m,) = Projections(average=True).measure(opt.load_vectors(source, case), topic, run)
    if folder:
        from evenhand.files import replace_file

        folder.mkdir(exist_ok=True)
        save_figures(ChartSet(Projections.charts(m)), folder, formats)
        frame = m.to_frame()
        frame.insert(0, "metric", m.metric)
        frame.insert(1, "query", m.query)
        with replace_file(folder / "occupations.csv") as file:
            frame.to_csv(file, index=False)
    if print_json(True, measurements=[m]):
        return
    first, second = ends_of(m)
    averaged = m.details["averaged"]
    print_rows(
        f"Cosine of each occupation with {first} and {second}",
        sorted(m.items, key=lambda item: -item["score"]),
        {
            "occupation": lambda item: item["word"] + "*" * (item["word"] in averaged),
            "associated with": "group",
            first: first,
            second: second,
            f"{first} - {second}": "score",
        },
    )
    if averaged:
        say("*: mean of the vectors of its words")
    print_measurements("Difference of the mean projections", [m])
    print_finding([m])


@vectors.command(short_help="Pairs analogous to A B, and their threshold.")
@opt.source_argument
@click.argument("words", nargs=-1, metavar="[A B]")
@click.option(
    "--max-distance",
    "threshold",
    type=click.FloatRange(0, 2, min_open=True, max_open=True),
    default=1.0,
    help="Largest length of the difference of two words, vectors at length one.",
)
@opt.declared_options(Analogies, answers={"default": 20})
@opt.limit_option(type=click.IntRange(2), default=10_000)
@opt.case_option
@opt.json_option
def pairs(source: str, words: tuple[str, ...], answers: int, case: str, **search: Any) -> None:
    """Search the pairs of words whose difference is most like that of A and B (she, he).

    As Bolukbasi et al. (2016): two words form a pair if their difference is at most --max-distance
    long. The second table shows how much the list depends on it.

    \b
    Example:  evenhand lab vectors pairs glove she he
    """
    if len(words) not in (0, 2):
        raise click.UsageError(f"pairs: expected two words A B or none, got {len(words)}")
    from evenhand.vectors import pair_analogies

    first, second = words or ("she", "he")
    v = opt.load_vectors(source, case)
    found = pair_analogies(v, first, second, n=answers, **search)
    if print_json(**found.to_dict()):
        return
    print_rows(
        f"{first} : {second} :: x : y, {found.words:,} words, threshold {search['threshold']:g}",
        found.pairs,
        {"x": "first", "y": "second", "cosine": "score", "length": "length"},
    )
    print_rows(
        "The same at other thresholds",
        found.sensitivity,
        {
            "threshold": lambda effect: f"{effect.threshold:g}",
            "candidate pairs": "candidates",
            "listed": lambda effect: str(effect.pairs),
            "shared with the list above": lambda effect: f"{effect.shared} of {len(found.pairs)}",
            "median cosine": "median_score",
        },
    )


@vectors.command(short_help="The values of a metric on random words.")
@opt.source_argument
@opt.question_options
@opt.metric_option("vectors")
@click.option(
    "--null",
    "draws",
    type=click.IntRange(1),
    default=1000,
    help="Draws of random words of similar frequency.",
)
@click.option(
    "--by-dimension",
    "dimension",
    is_flag=True,
    help="Instead: spread of random cosines against dimension.",
)
@opt.results_options()
@opt.case_option
@opt.run_options
@opt.json_option
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
) -> None:
    """Compute a metric on random words of similar frequency in place of the probe words.

    A value is large where random words rarely reach it. With --by-dimension: how the spread of
    cosines between random vectors shrinks as their dimension grows (Dobrzeniecka 2021).

    \b
    Examples:
      evenhand lab vectors null glove --topic gender --metric direct_bias
      evenhand lab vectors null glove --by-dimension
    """
    from evenhand import lexicon

    if dimension:
        _show_dimension(run)
        return
    questions: list[Any] = [
        *map(lexicon.topic, topics),
        *map(lexicon.weat, weats),
        *map(lexicon.read_query, queries),
    ]
    if len(questions) != 1:
        raise click.UsageError("null: expected one of --topic, --weat, --query or --by-dimension")
    jobs = plan("vectors", questions[0], list(metrics) or None, {"permutations": 0, "null": draws})
    v = opt.load_vectors(source, case)
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
    if print_json(measurements=with_null, skipped=measured.skipped):
        return
    print_measurements(
        f"Draws of random words of similar frequency in {v.name}",
        with_null,
        columns={
            **{
                f"null {float(level):.1%}": _null_quantile(level)
                for level in ("0.025", "0.25", "0.5", "0.75", "0.975")
            },
            "draws": "null_draws",
        },
        hide=["null"],
    )
    print_skipped(measured.skipped)
    print_finding(with_null, skipped=measured.skipped)


def _null_quantile(level: str) -> Callable[[Measurement], object]:
    return lambda m: m.details["null_quantiles"][level]


def _show_dimension(run: Run) -> None:
    from evenhand.vectors import dimension_spread

    spread = dimension_spread(seed=run.seed, prob=run.prob)
    if print_json(True, measurements=[spread]):
        return
    print_rows(
        "Standard deviation of the cosine of random vectors",
        spread.items,
        {
            "dimension": lambda item: number(item["dimension"], 0),
            "uniform on [0, 1]": lambda item: number(item["sd_uniform"], 4),
            "normal": lambda item: number(item["sd_normal"], 4),
            "1/√d": lambda item: number(item["theory_normal"], 4),
        },
    )
    print_measurements("Slope of log spread on log dimension, normal vectors", [spread])
    print_finding([spread])


@vectors.command(short_help="Skip-gram vectors of your own corpus.")
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=completion.TEXT_FILE)
@opt.output_option("Write the vectors here: .npz, .txt, .vec or .bin.", required=True)
@opt.declared_options(TrainSettings)
@opt.format_options
@opt.restart_option
@opt.seed_option()
@opt.json_option
def train(
    files: tuple[str, ...],
    output: str,
    field: str | None,
    form: str | None,
    restart: bool,
    **options: Any,
) -> None:
    """Train skip-gram vectors with negative sampling on a corpus (Mikolov et al. 2013).

    A document is a line, or with --text a field of a JSONL or CSV file; files may be compressed.
    Words are in lower case, and apostrophes and hyphens separate them. Beside the vectors,
    NAME.run.json has the digests of the corpus, the settings and the versions. The same command
    resumes an interrupted run: with one thread it ends with the same vectors, byte for byte.

    \b
    Examples:
      evenhand lab vectors train corpus.txt.gz -o own.npz
      evenhand rewrite swap corpus.txt --append -o swapped.txt
      evenhand lab vectors train swapped.txt --epochs 3 --min-count 20 --seed 1 -o swapped.npz
    """
    from evenhand.vectors.training import train as run_training

    cut = opt.form_of(files, field, form)
    settings = opt.configure(TrainSettings, options)
    with step_bars({"counting": "kB", "training": "words"}) as progress:
        result = run_training(files, output, settings, form=cut, restart=restart, progress=progress)
    if print_json(output=output, **result.to_dict()):
        return
    corpus = result.corpus
    say(
        f"{corpus['words']:,} words of text, {corpus['types']:,} different ones, in "
        f"{corpus['texts']:,} texts\n"
        f"{len(result.vectors):,} words that occur {settings.min_count} times or more, "
        f"{settings.dimensions} dimensions: written to {output}"
    )
