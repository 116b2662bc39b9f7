"""Every measure on a zoo of language models: do the measures agree? (docs/results-models.md)

    python benchmarks/model_study.py measure OUT NAME=SOURCE[@FAMILY] … --data DATA
    python benchmarks/model_study.py publish OUT docs/results/models
    python benchmarks/model_study.py tables docs/results/models

DATA has the benchmarks as their authors publish them (stereoset/, crows/, gest/, bbq/,
holisticbias/, winogender/). Each model is measured by every measure that fits its kind, StereoSet,
CrowS-Pairs and GEST also with their controls; one JSON file per model and measure, so that a run
goes on where it ended. Models of one FAMILY (checkpoints, fine-tuned copies) are sampled together.
`publish` writes two compressed tables (values, controls), from which `tables` prints the page.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

from evenhand.cache import Cache
from evenhand.errors import EvenhandError
from evenhand.files import document, read_document, save_json
from evenhand.instruments import Run, instruments
from evenhand.judging import simultaneous
from evenhand.models.control import check_control
from evenhand.models.loading import load
from evenhand.results import Measurement
from evenhand.statistics.correlation import kendall
from evenhand.statistics.intervals import jackknife
from published import drop_zero, read_rows, save_rows

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
MANY_GROUPS = ("bbq, ambiguous", "crows", "holisticbias", "sss", "stereoset")
"""Measures whose items are about many groups; all others are about women and men."""
OUTCOMES = ("survives", "responds", "undecided", "no effect")
NONE = "–"
FEWEST = 5
"""Models that two measures must have in common to be compared."""

Values = Mapping[tuple[str, str], float]
"""The value of each model and measure."""


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
                checks = [
                    check_control(instrument, model, read[metric], control, run)
                    for control in CONTROLLED.get(metric, ())
                ]
            except EvenhandError as error:
                print(f"{name} {metric}: {error}", flush=True)
                continue
            rows = [m.to_dict(items=False) for m in results]
            kind = model.subject_kind
            content = {"model": name, "family": family, "kind": kind, "measurements": rows}
            content["controls"] = [
                {
                    "control": check.details["control"],
                    "items": check.before.n,
                    **{
                        f"{when}{end}": getattr(m, end or "value")
                        for when, m in (("before", check.before), ("after", check.after))
                        for end in ("", "low", "high")
                    },
                    "outcome": check.details["outcome"],
                }
                for check in checks
            ]
            save_json(path, document(**content))
            taken = time.perf_counter() - begun
            print(f"{name} {metric}: {results[0]} ({taken:.0f} s)", flush=True)


def headline(metric: str, results: Sequence[Measurement]) -> Iterator[tuple[str, Measurement]]:
    """The numbers of a measure that models are compared by: more is more stereotyped."""
    first = results[0]
    if metric == "professions":
        yield "professions, contrast", next(iter(first.select("contrast")), first)
    elif metric == "pronouns":  # a model without a decided sentence has a value too
        yield "pronouns", first.part("all sentences", by="subset")
    elif metric == "seat":
        for m in results:
            if m.query in ("weat-6", "weat-7", "weat-8"):
                yield f"SEAT {m.query}", m
    elif metric == "bbq":
        yield "bbq, ambiguous", first
    else:
        yield metric, first


def publish(options: argparse.Namespace) -> None:
    """Write one row per model and number, and one per model, benchmark and control."""
    values, controls = [], []
    for path in sorted(options.out.glob("*.json")):
        content = read_document(path)
        about = {key: content[key] for key in ("model", "family", "kind")}
        metric = path.name.removesuffix(".json").rpartition(".")[2]
        controls += [{**about, "measure": metric, **row} for row in content["controls"]]
        results = [Measurement.from_dict(m) for m in content["measurements"]]
        for name, m in headline(metric, results):
            numbers = {"value": m.value, "low": m.low, "high": m.high, "n": m.n}
            values.append({**about, "measure": name, **numbers})
    options.folder.mkdir(parents=True, exist_ok=True)
    for name, rows in (("values", values), ("controls", controls)):
        if rows:
            save_rows(
                options.folder / f"{name}.csv.gz", [list(rows[0]), *(row.values() for row in rows)]
            )


def tables(options: argparse.Namespace) -> None:
    """Print values with intervals, the agreement of measures, and what the controls showed."""
    rows = read_rows(options.folder / "values.csv.gz")
    models = list(dict.fromkeys(row["model"] for row in rows))
    measures = list(dict.fromkeys(row["measure"] for row in rows))
    family = {row["model"]: row["family"] for row in rows}
    found = {(row["model"], row["measure"]): row for row in rows}
    value = {key: float(row["value"]) for key, row in found.items()}
    value = {key: number for key, number in value.items() if math.isfinite(number)}
    of_many = [m for m in measures if m in MANY_GROUPS]
    of_gender = [m for m in measures if m not in MANY_GROUPS]
    for group in (of_gender, of_many):
        print(f"| model | {' | '.join(group)} |\n|{' --- |' * (len(group) + 1)}")
        for model in models:
            cells = [show(found.get((model, measure))) for measure in group]
            if any(cell != NONE for cell in cells):
                print(f"| {model} | {' | '.join(cells)} |")
        print()

    print("| measures | models | τ | 95 %, models sampled | families sampled |")
    print("| --- | ---: | ---: | --- | --- |")
    for one, two in combinations(measures, 2):
        both = measured_by(value, one, two)
        if len(both) < FEWEST:
            continue
        scores = [[value[m, each] for m in both] for each in (one, two)]
        tau, low, high = kendall(*scores)
        _, wide_low, wide_high = kendall(*scores, clusters=[family[m] for m in both])
        print(
            f"| {one}, {two} | {len(both)} | {tau:.2f} | [{low:.2f}, {high:.2f}] | "
            f"[{wide_low:.2f}, {wide_high:.2f}] |"
        )

    kinds = {
        "both about gender": list(combinations(of_gender, 2)),
        "both about many groups": list(combinations(of_many, 2)),
        "one of each": [(one, two) for one in of_gender for two in of_many],
    }
    together = simultaneous(0.95, len(kinds))
    print("\n| pairs | number | mean τ | 95 %, families left out in turn | all three together |")
    print("| --- | ---: | ---: | --- | --- |")
    for name, pairs in kinds.items():
        pairs = [pair for pair in pairs if ranks_models(value, *pair)]
        if pairs:
            tau, low, high = mean_agreement(value, family, pairs)
            _, wide_low, wide_high = mean_agreement(value, family, pairs, together)
            print(
                f"| {name} | {len(pairs)} | {tau:.2f} | [{low:.2f}, {high:.2f}] | "
                f"[{wide_low:.2f}, {wide_high:.2f}] |"
            )

    outcomes: dict[tuple[str, str], dict[str, int]] = {}
    controls = options.folder / "controls.csv.gz"
    for row in read_rows(controls) if controls.exists() else []:
        counts = outcomes.setdefault((row["measure"], row["control"]), dict.fromkeys(OUTCOMES, 0))
        counts[row["outcome"]] += 1
    print(f"\n| benchmark | control | {' | '.join(OUTCOMES)} |")
    print("| --- | --- " + "| ---: " * len(OUTCOMES) + "|")
    for (measure_name, control), counts in outcomes.items():
        print(f"| {measure_name} | {control} | {' | '.join(map(str, counts.values()))} |")


def measured_by(value: Values, one: str, two: str) -> list[str]:
    """The models that have both measures."""
    return [model for model, measure in value if measure == one and (model, two) in value]


def ranks_models(value: Values, one: str, two: str) -> bool:
    """Whether both measures rank the models: enough of them, and not all with equal values."""
    both = measured_by(value, one, two)
    return len(both) >= FEWEST and all(
        len({value[m, each] for m in both}) > 1 for each in (one, two)
    )


def mean_agreement(
    value: Values,
    family: Mapping[str, str],
    pairs: Sequence[tuple[str, str]],
    prob: float = 0.95,
) -> tuple[float, float, float]:
    """The mean τ over pairs of measures, with the jackknife over families of models.

    Every replicate averages the same pairs, however few of their models are left: the mean of
    other pairs would differ for another reason than the family. Where a pair has no τ without a
    family, there is no interval.
    """

    def mean_tau(left_out: str = "") -> float:
        taus = []
        for one, two in pairs:
            both = [m for m in measured_by(value, one, two) if family[m] != left_out]
            taus.append(kendall(*([value[m, each] for m in both] for each in (one, two)))[0])
        return sum(taus) / len(taus)

    tau, without = mean_tau(), [mean_tau(each) for each in dict.fromkeys(family.values())]
    return tau, *jackknife(tau, without, prob)


def show(row: dict[str, str] | None) -> str:
    """A value with its interval."""
    if row is None or not math.isfinite(float(row["value"])):
        return NONE
    value, low, high = (drop_zero(f"{float(row[key]):.2f}") for key in ("value", "low", "high"))
    return f"{value} [{low}, {high}]"


def main() -> None:
    """Run one of the commands."""
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
    write = commands.add_parser("publish")
    write.add_argument("out", type=Path)
    write.add_argument("folder", type=Path)
    write.set_defaults(call=publish)
    printed = commands.add_parser("tables")
    printed.add_argument("folder", type=Path)
    printed.set_defaults(call=tables)
    options = parser.parse_args()
    options.call(options)


if __name__ == "__main__":
    main()
