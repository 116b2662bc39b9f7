"""Every measure on a zoo of language models: do the measures agree? (docs/results-models.md)

    python benchmarks/model_study.py measure OUT NAME=SOURCE[@FAMILY] … --data DATA
    python benchmarks/model_study.py tables OUT [--publish docs/results/models.csv.gz]

DATA has the benchmarks as their authors publish them (stereoset/, crows/, gest/, bbq/,
holisticbias/, winogender/). Each model is measured by every measure that fits its kind, StereoSet,
CrowS-Pairs and GEST also with their controls; one JSON file per model and measure, so that a run
goes on where it ended. Models of one FAMILY (checkpoints, fine-tuned copies) are sampled together.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import time
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from evenhand.cache import Cache
from evenhand.errors import EvenhandError
from evenhand.files import document, read_document, save_json
from evenhand.instruments import Run, instruments
from evenhand.language.control import check_control, mark_control
from evenhand.language.models import load
from evenhand.results import Measurement
from evenhand.statistics.correlation import kendall

FILES = {
    "stereoset": "stereoset/stereoset_dev.jsonl.gz",
    "crows": "crows/crows_pairs_anonymized.csv",
    "sss": "crows/crows_pairs_anonymized.csv",
    "gest": "gest/gest_1.1.csv",
    "holisticbias": "holisticbias",
    "coreference": "winogender",
    "bbq": "bbq",
}
"""The material of the measures that have none built in."""
BUILT_IN = ("pronouns", "professions", "seat", "disco")
CONTROLLED = {
    "stereoset": ("swap", "negate", "identity"),
    "crows": ("negate", "identity"),
    "gest": ("negate",),
}
"""Controls that fit the items of a benchmark: CrowS-Pairs and GEST compare the swapped texts."""


def material(instrument: Any, data: Path) -> Any:
    """The material of an instrument; of several files, all of them."""
    name = instrument.declaration.name
    if name in BUILT_IN:
        return None
    path = data / FILES[name]
    if name == "bbq":
        return [row for file in sorted(path.glob("*.jsonl.gz")) for row in instrument.read(file)]
    return instrument.read(path)


def parse_model(text: str) -> tuple[str, str, str]:
    """NAME=SOURCE[@FAMILY]."""
    name, _, rest = text.partition("=")
    source, _, family = rest.partition("@")
    if not name or not source:
        raise SystemExit(f"expected NAME=SOURCE[@FAMILY], got {text!r}")
    return name, source, family or name


def measure(options: argparse.Namespace) -> None:
    """Measure every model by every measure that is not there yet."""
    options.out.mkdir(parents=True, exist_ok=True)
    read: dict[str, Any] = {}
    for text in options.models:
        name, source, family = parse_model(text)
        model = load(source, device=options.device, dtype=options.dtype)
        for metric, cls in instruments(model.subject_kind).items():
            if metric not in (*FILES, *BUILT_IN) or (
                options.metric and metric not in options.metric
            ):
                continue
            path = options.out / f"{name}.{metric}.json"
            if path.exists():
                continue
            instrument = cls()
            if metric not in read:
                read[metric] = material(instrument, options.data)
            begun = time.perf_counter()
            run = Run(cache=Cache(options.out / "cache"))
            try:
                found = instrument.measure(model, read[metric], run)
                results = found if isinstance(found, list) else [found]
                for control in CONTROLLED.get(metric, ()):
                    check = check_control(instrument, model, read[metric], control, run)
                    results = [mark_control(results[0], check), *results[1:]]
            except EvenhandError as error:
                print(f"{name} {metric}: {error}", flush=True)
                continue
            rows = [m.to_dict(items=False) for m in results]
            kind = model.subject_kind
            content = {"model": name, "family": family, "kind": kind, "measurements": rows}
            save_json(path, document(**content))
            taken = time.perf_counter() - begun
            print(f"{name} {metric}: {results[0]} ({taken:.0f} s)", flush=True)


def headline(metric: str, results: Sequence[Measurement]) -> Iterator[tuple[str, Measurement]]:
    """The numbers of a measure that models are compared by: more is more stereotyped."""
    first = results[0]
    if metric == "professions":
        yield "professions, contrast", next(iter(first.select("contrast")), first)
    elif metric == "seat":
        for m in results:
            if m.query in ("weat-6", "weat-7", "weat-8") or m.query.endswith(("6", "7", "8")):
                yield f"SEAT {m.query}", m
    elif metric == "bbq":
        yield "bbq, ambiguous", first
    else:
        yield metric, first


def read_results(folder: Path) -> list[dict[str, Any]]:
    """One row per model and number: model, family, kind, measure, value, low, high, outcome."""
    rows = []
    for path in sorted(folder.glob("*.json")):
        content = read_document(path)
        results = [Measurement.from_dict(m) for m in content["measurements"]]
        metric = path.name.removesuffix(".json").rpartition(".")[2]
        for name, m in headline(metric, results):
            controls = results[0].details.get("controls") or results[0].details.get("control")
            rows.append(
                {
                    "model": content["model"],
                    "family": content["family"],
                    "kind": content["kind"],
                    "measure": name,
                    "value": m.value,
                    "low": m.low,
                    "high": m.high,
                    "n": m.n,
                    "controls": json.dumps(controls) if controls else "",
                }
            )
    return rows


def tables(options: argparse.Namespace) -> None:
    """Print values with intervals, and the agreement of every two measures."""
    rows = read_results(options.out)
    models = list(dict.fromkeys(row["model"] for row in rows))
    measures = list(dict.fromkeys(row["measure"] for row in rows))
    family = {row["model"]: row["family"] for row in rows}
    found = {(row["model"], row["measure"]): row for row in rows}
    print(f"| model | {' | '.join(measures)} |\n|{' --- |' * (len(measures) + 1)}")
    for model in models:
        cells = [found.get((model, measure)) for measure in measures]
        shown = [f"{c['value']:.3f} [{c['low']:.3f}, {c['high']:.3f}]" if c else "–" for c in cells]
        print(f"| {model} | {' | '.join(shown)} |")
    print("\n| measures | models | τ | 95 %, models sampled | families sampled |")
    print("| --- | ---: | ---: | --- | --- |")
    for one, two in combinations(measures, 2):
        both = [m for m in models if (m, one) in found and (m, two) in found]
        if len(both) < 5:
            continue
        values = [[found[m, each]["value"] for m in both] for each in (one, two)]
        tau, low, high = kendall(*values)
        _, wide_low, wide_high = kendall(*values, clusters=[family[m] for m in both])
        print(
            f"| {one}, {two} | {len(both)} | {tau:.2f} | [{low:.2f}, {high:.2f}] | "
            f"[{wide_low:.2f}, {wide_high:.2f}] |"
        )
    if options.publish:
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        options.publish.write_bytes(gzip.compress(text.getvalue().encode(), mtime=0))


def main() -> None:
    """Run one of the two commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("measure")
    run.add_argument("out", type=Path)
    run.add_argument("models", nargs="+", metavar="NAME=SOURCE[@FAMILY]")
    run.add_argument("--data", type=Path, required=True)
    run.add_argument("--metric", action="append")
    run.add_argument("--device", default="auto")
    run.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    run.set_defaults(call=measure)
    show = commands.add_parser("tables")
    show.add_argument("out", type=Path)
    show.add_argument("--publish", type=Path)
    show.set_defaults(call=tables)
    options = parser.parse_args()
    options.call(options)


if __name__ == "__main__":
    main()
