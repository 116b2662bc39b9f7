"""`evenhand measure` and `evenhand compare`: word vectors and language models, by any metric.

The first argument can name a metric, which then has the options of its declaration and a help of
its own. Nothing here knows a metric by name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import replace
from itertools import product
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click

from evenhand.cache import Cache
from evenhand.cli import completion
from evenhand.cli import options as opt
from evenhand.cli.commands import Command, Variants
from evenhand.cli.options import F
from evenhand.cli.output import (
    print_comparisons,
    print_finding,
    print_items,
    print_json,
    print_measurements,
    print_notes,
    print_skipped,
    save_figures,
)
from evenhand.cli.progress import bar, is_set, progress_bar
from evenhand.errors import EvenhandError, FileError, InputError, UnknownNameError, VocabularyError
from evenhand.explore.subjects import name_subjects
from evenhand.files import public_names
from evenhand.instruments import (
    LANGUAGE,
    Declaration,
    Instrument,
    Job,
    Option,
    Run,
    charts_of,
    compare_together,
    correct_results,
    find,
    instruments,
    lookup,
    plan,
    run_jobs,
)
from evenhand.results import Comparison, Measurement, Measurements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evenhand.lexicon import Query
    from evenhand.vectors.store import Vectors


KINDS = ("vectors", *LANGUAGE)
CONTROLS = ("swap", "negate", "identity")


def all_metrics() -> dict[str, list[type[Instrument]]]:
    """The metrics of word vectors and language models by name, each with its classes."""
    named: dict[str, list[type[Instrument]]] = {}
    for kind in KINDS:
        for name, cls in instruments(kind).items():
            if cls not in named.setdefault(name, []):
                named[name].append(cls)
    return named


class ByMetric(Variants):
    """A command whose first argument can be a metric: it then has the options of that metric."""

    def variant(self, args: Sequence[str]) -> tuple[Command, str, list[str]] | None:
        if not args or args[0].startswith("-") or args[0] not in all_metrics():
            return None
        return _command(str(self.name), args[0]), f" {args[0]}", list(args[1:])

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Metrics"):
            formatter.write_dl(
                [(name, cls.declaration.question) for name, (cls, *_) in all_metrics().items()]
            )
        super().format_options(ctx, formatter)


# ---- options

vectors_questions = opt.combine(
    opt.question_options,
    opt.names_option(
        "--wefat",
        "wefats",
        type=completion.WEFATS,
        help="Built-in WEFATs, or all; repeatable.",
    ),
    click.option(
        "--robust", is_flag=True, help="Queries: add leave-one-out and split halves of WEAT."
    ),
)
model_questions = opt.combine(
    opt.data_option,
    click.option(
        "--control",
        type=click.Choice(CONTROLS),
        help="Also measure the material with gendered words swapped, sentences negated, or "
        "groups replaced by others, and mark metrics whose score survives that.",
    ),
)
filter_options = opt.combine(
    click.option(
        "--filter",
        "filtered",
        is_flag=True,
        help="--data is plain text, one sentence per line: score what `evenhand filter` accepts.",
    ),
    click.option(
        "--keep-someone",
        "someone",
        is_flag=True,
        help="--filter: also accept sentences about someone, nobody and the like.",
    ),
)


def _command(name: str, metric: str) -> Command:
    """The command `measure` or `compare` for one metric."""
    classes = all_metrics()[metric]

    @_options(name, classes)
    def run_metric(**given: Any) -> None:
        _run(name, classes, **given)

    return click.command(f"{name} {metric}", cls=Command, help=_help(name, metric))(run_metric)


def _help(name: str, metric: str) -> str:
    """Question, formula and examples of a metric."""
    cls = all_metrics()[metric][0]
    about = cls.declaration
    subjects = [kind for each in all_metrics()[metric] for kind in each.declaration.subjects]
    sources = {"vectors": ("glove", "my.vec"), "encoder": ("./encoder", "./other")}
    usual = ("mini", "./bert") if "masked" in subjects else ("./gpt2", "./other")
    first, second = sources.get(subjects[0], usual)
    data = " --data FILE" if cls.requires_material else ""
    both = f"{first} {second}" if name == "compare" else first
    lines = [f"  evenhand {name} {metric} {both}{data}"]
    if "vectors" in subjects and "answers" not in {option.name for option in about.options}:
        lines.append(f"  evenhand {name} {metric} {both} --topic gender")
    else:
        lines.append(f"  evenhand {name} {metric} {both}{data} --json")
    facts = [("formula", about.formula), ("source", about.source), ("data", about.material)]
    rows = "\n".join(f"  {key.ljust(7)}  {text}" for key, text in facts if text)
    return (
        f"{about.label}. {about.question}\n\n{about.reading}\n\n\b\n{rows}\n\n\b\nExamples:\n"
        + "\n".join(lines)
    )


def _options(name: str, classes: Sequence[type[Instrument]] = ()) -> Callable[[F], F]:
    """The options of `measure` or `compare` where these classes measure; none: all metrics."""
    subjects = {kind for cls in classes for kind in cls.declaration.subjects} or set(KINDS)
    vectors, models = "vectors" in subjects, bool(subjects & set(LANGUAGE))
    beside = any(cls.with_vectors is not Instrument.with_vectors for cls in classes)
    by_sentence = any(cls.measure_file is not Instrument.measure_file for cls in classes)
    sources = (
        click.argument("sources", metavar="A B", nargs=2, type=completion.MEASURED)
        if name == "compare"
        else click.argument(
            "sources", metavar="SRC…", nargs=-1, required=True, type=completion.MEASURED
        )
    )
    own = [option for cls in classes for option in cls.material_options]
    return opt.combine(
        sources,
        *([] if classes else [opt.metric_option(*KINDS), _option_option]),
        *([vectors_questions] if vectors else []),
        *([model_questions] if models else []),
        opt.declared_options(*classes, *own),
        *([filter_options] if by_sentence else []),
        *([_beside_option] if beside else []),
        opt.results_options(),
        opt.figures_option(help="Draw the figures of the results into this folder."),
        opt.format_option,
        *([opt.case_option] if vectors else []),
        *([opt.model_options] if models else [opt.size_option]),
        opt.run_options,
        opt.json_option,
    )


_option_option = click.option(
    "--option",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of all metrics that have it, such as null=0; repeatable.",
)
_beside_option = opt.vectors_option(
    help="Also embed phrases by the mean of word vectors: glove or a file; repeatable."
)


# ---- the commands


@click.command(cls=ByMetric)
@_options("measure")
def measure(**given: Any) -> None:
    """Measure word vectors or a language model: evenhand measure [METRIC] SRC…

    SRC is an embedded name (glove, mini), a file of vectors, the folder of a model (transformers or
    sentence-transformers), a GGUF file, or hf:NAME. Its kind is detected. Without METRIC the
    default metrics of that kind are run: of vectors all that fit the topics and queries, of models
    those with built-in material. Several sources are compared with the first. A metric has options
    and help of its own: evenhand measure METRIC --help. A file called as a metric is ./METRIC.

    \b
    Examples:
      evenhand measure glove --topic gender
      evenhand measure weat my.vec --weat 7 --alternative less
      evenhand measure mini
      evenhand measure crows mini ./tuned --data crows_pairs_anonymized.csv
      echo "[MASK] waves at the driver." | evenhand measure pronouns mini --data - --json
    """
    _run("measure", (), **given)


@click.command(cls=ByMetric)
@_options("compare")
def compare(**given: Any) -> None:
    """Compare two sources by the same measures: evenhand compare [METRIC] A B

    A and B are sources as for evenhand measure, of the same kind, or two files that
    `evenhand measure -o FILE.json` saved. Items are paired where both have them.

    \b
    Examples:
      evenhand compare glove fair.vec --topic gender
      evenhand compare pronouns mini ./tuned
      evenhand compare before.json after.json
    """
    _run("compare", (), **given)


def _run(
    name: str,
    classes: Sequence[type[Instrument]],
    *,
    sources: Sequence[str],
    run: Run,
    figures: Path | None,
    formats: tuple[str, ...],
    load: opt.ModelLoader | None = None,
    metrics: tuple[str, ...] = (),
    pairs: tuple[str, ...] = (),
    **given: Any,
) -> None:
    """Measure the sources, compare them, and print what was found."""
    if name == "compare" and all(source.endswith(".json") for source in sources):
        _print(name, "", *_saved(sources))
        return
    known = [] if classes else list(all_metrics())
    kinds = {opt.kind_of_source(source, known): source for source in sources}
    if len(kinds) > 1:
        listed = ", ".join(f"{source} ({kind})" for kind, source in kinds.items())
        raise InputError(f"{name}: expected sources of one kind, got {listed}")
    [kind] = kinds
    if load is not None and kind != "vectors":
        load.check_device()
    named = bool(classes or metrics)
    chosen = _chosen(kind, classes, metrics, given, dict(opt.parse_pairs(pairs)))
    with ExitStack() as stack:
        cache = None if load is None else stack.enter_context(_cache(load, given))
        if kind == "vectors":
            jobs, strict = _vector_jobs(chosen, named, given)
        else:
            jobs, strict = _model_jobs(kind, chosen, named, run, given), True
        if given.get("vectors"):
            names = public_names(given["vectors"])
            beside = {names[each]: opt.load_vectors(each, "fallback") for each in given["vectors"]}
            jobs = [Job(job.instrument.with_vectors(beside), job.material) for job in jobs]
        subjects = _load(kind, sources, load, given)
        measured = [
            _measure(subject, jobs, replace(run, cache=cache), strict, given)
            for subject in subjects
        ]
    compared = {job.metric for job in jobs}
    results, checks = _together([results for results, _, _ in measured], compared)
    skipped = [skip for _, skips, _ in measured for skip in skips]
    controls = [control for _, _, controls in measured for control in controls]
    if not results:
        raise VocabularyError(f"nothing could be measured: {skipped[0]['reason']}")
    if given.get("data") and not any(m.n or len(m.items) for m in results):
        why = results[0].left_out[0] if results[0].left_out else "there are none"
        raise FileError(given["data"], f"expected {jobs[0].instrument.declaration.unit}: {why}")
    _print(
        name,
        ", ".join(subject.name for subject in subjects),
        results,
        checks,
        skipped,
        controls,
        about=chosen[0].declaration if named and len(chosen) == 1 else None,
        control=given.get("control"),
        kind=kind,
    )
    if figures is not None:
        save_figures(charts_of(results, checks), figures, formats)


@contextmanager
def _cache(load: opt.ModelLoader, given: Mapping[str, Any]) -> Iterator[Cache | None]:
    """The cache of a model's answers.

    With --items and without --cache they are stored in the folder FILE.partial until the end, so
    that the same command resumes after a kill. A control measures twice and computes once.
    """
    items = click.get_current_context().params["items"]
    if load.cache is not None or (items is None and not given.get("control")):
        yield load.cache
        return
    if items is None:
        with TemporaryDirectory() as folder:
            yield Cache(Path(folder))
        return
    partial = Path(f"{items}.partial")
    resumed = partial.exists()
    try:
        yield Cache(partial)
    except EvenhandError:
        if not resumed:
            rmtree(partial, ignore_errors=True)
        raise
    rmtree(partial, ignore_errors=True)


def _chosen(
    kind: str,
    classes: Sequence[type[Instrument]],
    names: Sequence[str],
    given: Mapping[str, Any],
    pairs: Mapping[str, str],
) -> list[Instrument]:
    """The instruments with the options that were given; without names the default ones."""
    known = instruments(kind)
    if classes:
        name = classes[0].declaration.name
        if name not in known and kind == "vectors":
            fitting = ", ".join(known)
            raise InputError(f"metric '{name}' does not measure word vectors; these do: {fitting}")
        cls = lookup(kind, name)
        own = {option.name for option in cls.declaration.options}
        options = opt.given_options(given)
        every = {option.name for each in classes for option in each.declaration.options}
        for unused in options.keys() & (every - own):
            raise click.UsageError(f"--{unused}: {name} has it for other kinds of models only")
        return [cls(**{name: value for name, value in options.items() if name in own})]
    listed = [lookup(kind, each) for each in names] or [
        cls for cls in known.values() if kind == "vectors" or cls.declaration.audits(kind)
    ]
    declared = {option.name: option for cls in listed for option in cls.declaration.options}
    for option in pairs:
        if option not in declared:
            raise UnknownNameError("option", option, declared)
    return [
        cls(
            **{
                option.name: _value(option, pairs[option.name])
                for option in cls.declaration.options
                if option.name in pairs
            }
        )
        for cls in listed
    ]


def _value(option: Option, text: str) -> object:
    """A text as the value of an option."""
    if option.type is bool:
        return text.lower() in ("1", "true", "yes", "on")
    try:
        value = option.type(text)
    except ValueError:
        raise InputError(f"--option {option.name}: expected a number, got '{text}'") from None
    return (value,) if option.multiple else value


def _load(
    kind: str, sources: Sequence[str], load: opt.ModelLoader | None, given: Mapping[str, Any]
) -> list[Any]:
    """The subjects; those of one name are distinguished by how they were given."""
    if kind == "vectors":
        named = name_subjects(sources, lambda source: opt.load_vectors(source, given["case"]))
    elif load is not None:
        named = name_subjects(sources, load.any)
    return list(named.values())


def _vector_jobs(
    chosen: list[Instrument], named: bool, given: Mapping[str, Any]
) -> tuple[list[Job], bool]:
    """The jobs of vectors: the topics and queries given, else all that are built in."""
    from evenhand import lexicon

    if given.get("data") or given.get("control"):
        raise click.UsageError("--data, --control: word vectors take --topic, --weat or --query")
    topics, weats, wefats = (given[key] for key in ("topics", "weats", "wefats"))
    everything = not (topics or weats or wefats or given["queries"])
    if everything:
        topics, weats, wefats = lexicon.topic_names(), ("all",), ("all",)
    facts = lexicon.wefat_queries() if "all" in wefats else map(lexicon.wefat, wefats)
    materials = [*map(lexicon.topic, topics), *_queries(weats, given["queries"])]
    fitting = everything or not named
    jobs = [
        job for material in materials for job in plan("vectors", material, chosen, fitting=fitting)
    ]
    jobs += [job for fact in facts for job in plan("vectors", fact, chosen, fitting=True)]
    if everything and named and not jobs:
        jobs = plan("vectors", None, chosen)
    if not jobs:
        raise InputError(f"metric '{chosen[0].declaration.name}' does not fit what was given")
    return jobs, named and not everything


def _queries(weats: Sequence[str], paths: Sequence[str]) -> list[Any]:
    from evenhand import lexicon

    numbered = lexicon.weat_queries() if "all" in weats else map(lexicon.weat, weats)
    return [*numbered, *map(lexicon.read_query, paths)]


def _model_jobs(
    kind: str, chosen: list[Instrument], named: bool, run: Run, given: Mapping[str, Any]
) -> list[Job]:
    """The metrics with their material, read and checked before a model is loaded."""
    from evenhand.models.control import controls

    data = given.get("data")
    if any(given.get(key) for key in ("topics", "weats", "wefats", "queries", "robust")):
        raise click.UsageError(
            f"--topic, --weat, --wefat, --query, --robust: for word vectors; a {LANGUAGE[kind]} "
            "takes --data"
        )
    if data is not None and not named:
        raise click.UsageError("--data: name the metric that reads it: evenhand measure METRIC SRC")
    jobs = [Job(instrument, _material(instrument, data, given)) for instrument in chosen]
    for job in jobs if given.get("control") else ():
        controls(job.material, given["control"], seed=run.seed)
    return jobs


def _material(instrument: Instrument, data: str | None, given: Mapping[str, Any]) -> Any:
    """The material of a file or of choices; None for the built-in one."""
    choices = {
        option.name: given[option.name]
        for option in instrument.material_options
        if given.get(option.name)
    }
    if data is not None and choices:
        flags = ", ".join(f"--{name}" for name in choices)
        raise click.UsageError(f"--data has its own material: give it without {flags}")
    if given.get("someone") and not given["filtered"]:
        raise click.UsageError("--keep-someone goes with --filter")
    if given.get("filtered"):
        from evenhand.models.sentences import read_sentences
        from evenhand.text.structural import Filter

        if data is None:
            raise click.UsageError("--filter goes with --data")
        return list(read_sentences(data, keep=Filter(someone=given["someone"])))
    if choices:
        return instrument.choose(**choices)
    if data is None and instrument.requires_material:
        raise click.UsageError(
            f"{instrument.declaration.name}: expected --data FILE with "
            f"{instrument.declaration.material}"
        )
    return None if data is None else instrument.read(data)


Measured = tuple[list[Measurement], list[Mapping[str, str]], list[Comparison]]


def _measure(
    subject: Any, jobs: Sequence[Job], run: Run, strict: bool, given: Mapping[str, Any]
) -> Measured:
    """The results of one subject, what was skipped, and the checks by a control."""
    from evenhand.models.control import check_control, mark_control

    results: list[Measurement] = []
    skipped: list[Mapping[str, str]] = []
    checks: list[Comparison] = []
    is_vectors = subject.subject_kind == "vectors"
    for job in bar(jobs, f"measuring {subject.name}") if is_vectors else jobs:
        label = f"{job.metric}, {subject.name}"
        with nullcontext() if is_vectors else progress_bar(label) as show:
            how = replace(run, progress=show)
            found = run_jobs(subject, [job], how, strict=strict)
            skipped += found.skipped
            measured = list(found)
            if control := given.get("control"):
                check = check_control(job.instrument, subject, job.material, control, how)
                checks.append(check)
                measured[0] = mark_control(measured[0], check)
        results += measured
    if given.get("robust"):
        more = _check_robustness(subject, _queries(given["weats"], given["queries"]), run)
        results += more
        skipped += more.skipped
    return results, skipped, checks


def _check_robustness(v: Vectors, queries: Iterable[Query], run: Run) -> Measurements:
    """Leave-one-out and split halves of each query that WEAT takes."""
    from evenhand.vectors import leave_one_out, split_half

    results: list[Measurement] = []
    skipped: list[dict[str, str]] = []
    taken = [query for query in queries if len(query.targets) == len(query.attributes) == 2]
    for query, check in product(taken, (leave_one_out, split_half)):
        try:
            results.append(check(v, query, seed=run.seed, prob=run.prob))
        except InputError as error:
            reason = {"metric": check.__name__, "query": query.name, "reason": str(error)}
            skipped.append(reason)
    return Measurements(results, skipped)


def _together(
    several: Sequence[Sequence[Measurement]],
    names: Collection[str] | None = None,
) -> tuple[list[Measurement], list[Comparison]]:
    """All results, corrected together; those of the named metrics are compared with the first's."""
    flat: dict[tuple[str, str, str], Measurement] = {}
    for m in (m for results in several for m in results):
        flat.setdefault((m.subject, m.metric, m.query), m)  # vectors beside two models count once
    results = correct_results(list(flat.values()))
    first = {(m.metric, m.query): m for m in reversed(several[0])}
    changes = [
        (find(m.metric) or Instrument).compare(first[key], m)
        for others in several[1:]
        for m in others
        if (names is None or m.metric in names)
        and (key := (m.metric, m.query)) in first
        and first[key].subject != m.subject
    ]
    return results, compare_together(changes)


def _saved(paths: Sequence[str]) -> tuple[list[Measurement], list[Comparison]]:
    """The results of two files, and their comparison."""
    from evenhand.results import load

    several = []
    for path in paths:
        loaded = load(path)
        if isinstance(loaded, Comparison):
            raise FileError(path, "expected measurements, got a comparison")
        several.append([loaded] if isinstance(loaded, Measurement) else list(loaded))
    results, changes = _together(
        [
            [replace(m, subject=f"{path}: {m.subject}") for m in measured]
            for path, measured in zip(paths, several, strict=True)
        ]
    )
    if not changes:
        raise InputError("compare: expected the same measurements twice, got none that both have")
    return results, changes


def _print(
    name: str,
    title: str,
    results: list[Measurement],
    changes: list[Comparison],
    skipped: Sequence[Mapping[str, str]] = (),
    controls: Sequence[Comparison] = (),
    *,
    about: Declaration | None = None,
    control: str | None = None,
    kind: str = "",
) -> None:
    """Results, their parts and items, comparisons, and what was found."""
    if is_set("json"):
        content: dict[str, Any] = {"kind": kind} if kind else {}
        content |= {"controls": controls} if control else {}
        print_json(
            command=name,
            **content,
            measurements=results,
            comparisons=changes,
            skipped=list(skipped),
        )
        return
    columns = {"control": _outcome} if control else None
    label = f"{about.label}: {title}" if about else title
    if name == "measure":
        print_measurements(label, results, parts=bool(about), columns=columns)
        for m in results if about and len(results) <= 3 else ():
            print_items(m)
    print_comparisons(
        f"Control: {control}", controls, columns=columns, times=("original", "control")
    )
    print_comparisons(
        label if name == "compare" else f"Compared with {results[0].subject}",
        changes,
        parts=bool(about),
        columns={"n": lambda c: f"{c.paired:,}"},
    )
    print_skipped(skipped)
    notes = [note for m in results for note in m.notes]
    print_notes([*notes, *(about.caveats if about else ())])
    print_finding(results if name == "measure" else (), changes, skipped)


def _outcome(result: Measurement | Comparison) -> str:
    """Whether a score survives its control, for tables."""
    return str(result.details.get("outcome", ""))
