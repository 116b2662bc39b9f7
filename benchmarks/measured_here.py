"""Real vectors and models, measured here: the tables of docs/experiments/measured-here.md.

    python benchmarks/measured_here.py vectors GLOVE OUT
    python benchmarks/measured_here.py phrases OUT NAME=SOURCE …
    python benchmarks/measured_here.py publish OUT docs/results/real-models
    python benchmarks/measured_here.py tables docs/results/real-models

`vectors` writes the 400,000 words of GLOVE (`glove_6B_50d_emb.npy`, `glove_6B_index.parquet`) as
`.npz`, and with them the words that the embedded `glove` has, so that dimension and vocabulary can
be told apart. `phrases` measures the phrase WEAT of sentence encoders. All else is measured by
`evenhand measure` and `evenhand compare`, with `-o OUT/NAME.json`; the page has the commands.
The `results.json` of a few-shot run is OUT/ENCODER.fewshot.json.
`publish` puts the results of OUT into two tables, from which `tables` prints the page. Rows of the
same subject and measure are replaced, others stay: OUT need not have all results.

The tests of one file are one family (Holm), as on the screen of the command, and so are those of
several files of one measure (OUT/NAME.METRIC.….json); outcomes are those of the judge, and an
interval is the one that decides.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, groupby, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import evenhand as eh
from evenhand.files import document, read_document, save_json
from evenhand.instruments import Run, correct_results, judge_results
from evenhand.lexicon.phrases import phrases as built_in
from evenhand.models.metrics.phrases import embed_phrases, weat
from evenhand.results import Comparison, Measurement
from evenhand.wording import interval, number, p_value
from published import read_rows, save_rows

FULL, SAME = "glove-400k", "glove-400k-same-words"
"""The vectors of all words, and of those that are embedded too."""
EMBEDDED = "glove"
VALUES, CHANGES = "measured-here.csv.gz", "measured-here-changes.csv.gz"
VECTORS = {
    EMBEDDED: "embedded, 100",
    f"{SAME}.npz": "its words, 50",
    f"{FULL}.npz": "all words, 50",
}
"""Vectors by subject: their words and dimensions."""
FOUND, COMPONENT, NO_CHANGE = "found", "component", "no clear change"
NO_TEST = (COMPONENT, "not judged")
SPREAD = "accuracy_sd"
"""The components of a few-shot run's accuracy, which are no scores."""
Row = Mapping[str, str]
Key = tuple[str, str]


def convert_vectors(options: argparse.Namespace) -> None:
    """Write all vectors, and those of the embedded words, in their order."""
    words = pd.read_parquet(options.folder / "glove_6B_index.parquet")["index"].tolist()
    matrix = np.load(options.folder / "glove_6B_50d_emb.npy")
    embedded = set(eh.vectors.load(EMBEDDED).words)
    options.out.mkdir(parents=True, exist_ok=True)
    same = [i for i, word in enumerate(words) if word in embedded]
    for name, rows in ((FULL, range(len(words))), (SAME, same)):
        chosen = [words[i] for i in rows]
        v = eh.vectors.Vectors.from_arrays(chosen, matrix[list(rows)], name=name)
        v.save(options.out / f"{name}.npz")
        print(v)


def measure_phrases(options: argparse.Namespace) -> None:
    """Measure the phrase WEAT of every built-in set of phrases by the vectors of each encoder."""
    lists = built_in()
    for text in options.models:
        name, _, source = text.partition("=")
        space = embed_phrases(eh.models.load(source).encode, lists, source=name)
        found = correct_results([weat(space, each, Run()) for each in lists.sets])
        rows = [m.to_dict(items=False) for m in found]
        save_json(options.out / f"{name}.phrases.json", document(measurements=rows))


def value_rows(measurements: Sequence[Measurement]) -> Iterator[dict[str, Any]]:
    """The tests of a file with what the judge says, and the components of each result."""
    for tested, judgement in judge_results(measurements):
        m = tested.evidence.measurement
        yield {
            **about(m),
            "question": judgement.test.label,
            "low": judgement.low,
            "high": judgement.high,
            "random": m.details.get("null_median", m.details.get("random_model")),
            "p_corrected": judgement.p,
            "draws": judgement.draws,
            "family": judgement.family,
            "outcome": judgement.outcome,
        }
    empty = dict.fromkeys(("random", "p_corrected", "draws", "family"))
    for m in measurements:
        for part in m.select("component"):
            if part.metric != SPREAD:
                question = {"question": f"{m.query}: {part.query}"}
                yield {**about(part), **question, **empty, "outcome": COMPONENT}


def about(m: Measurement) -> dict[str, Any]:
    """What a result is of, and its numbers."""
    names = ("value", "low", "high", "prob", "n", "ideal", "p_value")
    of = {"subject": m.subject, "metric": m.metric, "query": m.query, "question": m.query}
    return of | {name: getattr(m, name) for name in names}


def change_rows(comparisons: Iterable[Comparison]) -> Iterator[dict[str, Any]]:
    """Each change, and what it means for the bias."""
    for c in comparisons:
        yield {
            "before": c.before.subject,
            "after": c.after.subject,
            "metric": c.metric,
            "query": c.query,
            "value": c.change.value,
            "low": c.change.low,
            "high": c.change.high,
            "prob": c.change.prob,
            "family": c.family,
            "effect": c.effect,
        }


def publish(options: argparse.Namespace) -> None:
    """Write one row per test and component, and one per change, beside those published before."""
    values: list[dict[str, Any]] = []
    changes: list[dict[str, Any]] = []
    for name, paths in groupby(sorted(options.out.glob("*.json")), family_of):
        contents = [read_document(path) for path in paths]
        for content in contents:
            changes += change_rows(map(Comparison.from_dict, content.get("comparisons", ())))
        together = chain.from_iterable(content["measurements"] for content in contents)
        rows = value_rows([Measurement.from_dict(m) for m in together])
        if "encoder" in contents[0]:  # a few-shot run is named by its network
            encoder = name.partition(".")[0]
            rows = ({**row, "subject": f"{encoder}, {row['subject']}"} for row in rows)
        values += rows
    options.folder.mkdir(parents=True, exist_ok=True)
    for file, new, of in (
        (VALUES, values, ("subject", "metric")),
        (CHANGES, changes, ("before", "after", "metric")),
    ):
        if not new:
            continue
        path = options.folder / file
        before = read_rows(path) if path.exists() else []
        tables: list[dict[Any, list[Mapping[str, Any]]]] = [{}, {}]
        for table, rows in zip(tables, (before, new), strict=True):
            for row in rows:
                table.setdefault(tuple(row[name] for name in of), []).append(row)
        merged = list(chain.from_iterable((tables[0] | tables[1]).values()))
        save_rows(path, [list(merged[0]), *(row.values() for row in merged)])


def family_of(path: Path) -> str:
    """The name of all files whose tests are one family."""
    return ".".join(path.name.split(".")[:2])


def print_tables(options: argparse.Namespace) -> None:
    """Print every table of the page."""
    rows = read_rows(options.folder / VALUES)
    print_vectors(rows, read_rows(options.folder / CHANGES))
    print("\n| model | measure | question | value | interval | p | outcome |")
    print("| --- | --- | --- | ---: | --- | ---: | --- |")
    times = Counter((row["subject"], row["metric"], row["query"]) for row in rows)
    for row in rows:
        if row["subject"] not in VECTORS:
            of = row["subject"], row["metric"], row["query"]
            question = row["question" if times[of] > 1 else "query"]
            print(f"| {' | '.join(of[:2])} | {question} | {cells(row)} |")


def print_vectors(rows: Sequence[Row], changes: Sequence[Row]) -> None:
    """Findings by measure, what changes from one kind of vectors to the next, and all tests."""
    by_subject: dict[str, dict[Key, Row]] = {}
    for row in rows:
        by_subject.setdefault(row["subject"], {})[row["metric"], row["query"]] = row
    spaces = [by_subject[subject] for subject in VECTORS]
    tests = [key for key, row in spaces[0].items() if row["outcome"] not in NO_TEST]
    names = " | ".join(f"found, {name}" for name in VECTORS.values())
    print(f"| measure | tests | {names} |\n| --- |{' ---: |' * 4}")
    for metric in (*dict.fromkeys(metric for metric, _ in tests), "all"):
        keys = [key for key in tests if metric in ("all", key[0])]
        found = [str(sum(each[key]["outcome"] == FOUND for key in keys)) for each in spaces]
        print(f"| {metric} | {len(keys)} | {' | '.join(found)} |")

    print("\n| from | to | values compared | differ | tests | other outcome |")
    print(f"| --- | --- |{' ---: |' * 4}")
    for pair in pairwise(VECTORS):
        compared = [row for row in changes if (row["before"], row["after"]) == pair]
        differ = sum(row["effect"] != NO_CHANGE for row in compared)
        before, after = (by_subject[subject] for subject in pair)
        other = sum(before[key]["outcome"] != after[key]["outcome"] for key in tests)
        shown = (VECTORS[subject] for subject in pair)
        print(f"| {' | '.join(shown)} | {len(compared)} | {differ} | {len(tests)} | {other} |")

    one, _, every = spaces
    changed = [key for key in tests if one[key]["outcome"] != every[key]["outcome"]]
    for title, keys in (("Other outcome", changed), ("All", list(one))):
        print(f"\n{title}\n\n| measure | topic |{' value | interval | p | outcome |' * 2}")
        print(f"| --- | --- |{' ---: | --- | ---: | --- |' * 2}")
        for key in keys:
            print(f"| {' | '.join(key)} | {cells(one[key])} | {cells(every[key])} |")

    print("\n| measure | topic | change | interval | meaning |\n| --- | --- | ---: | --- | --- |")
    for row in changes:
        if row["before"] in VECTORS and row["effect"] != NO_CHANGE:
            numbers = value_and_interval(row)
            print(f"| {row['metric']} | {row['query']} | {numbers} | {row['effect']} |")


def cells(row: Row) -> str:
    """Value, interval, corrected p and outcome."""
    p, draws = (float(row[name]) if row[name] else None for name in ("p_corrected", "draws"))
    return f"{value_and_interval(row)} | {drop_zeros(p_value(p, draws))} | {row['outcome']}"


def value_and_interval(row: Row) -> str:
    """The cells of a value and its interval."""
    value, low, high = (float(row[name]) for name in ("value", "low", "high"))
    return drop_zeros(f"{number(value)} | {interval(low, high)}")


def drop_zeros(text: str) -> str:
    """Numbers without the 0 before their point."""
    return re.sub(r"\b0\.", ".", text)


def main() -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    for name, call, first, second in (
        ("vectors", convert_vectors, "folder", "out"),
        ("phrases", measure_phrases, "out", "models"),
        ("publish", publish, "out", "folder"),
        ("tables", print_tables, "folder", None),
    ):
        command = commands.add_parser(name)
        command.add_argument(first, type=Path)
        if second == "models":
            command.add_argument(second, nargs="+", metavar="NAME=SOURCE")
        elif second:
            command.add_argument(second, type=Path)
        command.set_defaults(call=call)
    options = parser.parse_args()
    options.call(options)


if __name__ == "__main__":
    main()
