r"""Encoders of few-shot classifiers, causal models beside a masked one; and domain drift.

    python benchmarks/fewshot_encoders.py                       # the tables of the published rows
    python benchmarks/fewshot_encoders.py --compute WORK --data bios/wikibios.csv.gz \
        --smollm smollm2.gguf                                   # computes the corners
    python benchmarks/fewshot_encoders.py --compute WORK --data bios/wikibios.csv.gz \
        --events events/final_manual.csv                        # computes the drift

Decided before any result was seen. Corners: the classes of docs/grids/wikibios-in-context.yaml with
their leanings by the full data, of each the first 30 texts of the file, at most 32 tokens of each;
five class splits; two and five ways, two and sixteen shots, 4 queries; the euclidean prototypical
and the cosine matching network, 300 training, 60 validation and 100 test episodes per split, all
other settings as they come. Drift: these texts and WikipediaGenderEvents, in which a class leans by
the point estimate, at most 128 tokens of each; frozen mini, two ways, five shots and queries, the
other numbers the same; without the biographies of classes that the events have too; beside it the
same test data with training classes of their own.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.fewshot import RunSettings, TrainingSettings, read, run
from evenhand.fewshot.data import Dataset, join_domains
from evenhand.fewshot.encoders import load_encoder
from grid_tables import markdown, shown
from published import read_rows, save_rows

PUBLISHED = Path(__file__).parents[1] / "docs" / "results" / "fewshot-encoders"
TEXTS, TOKENS, EACH_GENDER = 30, 32, 24
POOLINGS = {"mini": ("mean",), "tiny-causal": ("last", "mean"), "SmolLM2": ("last", "mean")}
NETWORKS = ("proto-euclidean", "matching-cosine")
CORNERS = ((2, 2), (2, 16), (5, 2), (5, 16))
SETTING = ("encoder", "pooling", "network", "ways", "shots")
DRIFT = ("trained_on", "tested_on", "network")
VALUES = ("accuracy", "baseline", "association", "epsilon")


def first_texts(data: Dataset, count: int) -> Dataset:
    """The first texts of each class; the classes lean as all of their texts say."""
    kept = np.sort(
        np.concatenate([np.flatnonzero(data.labels == k)[:count] for k in range(len(data.classes))])
    )
    return replace(
        leaning_given(data),
        texts=tuple(data.texts[row] for row in kept),
        labels=data.labels[kept],
        genders=data.genders[kept],
        rows=data.rows[kept],
    )


def settings_of(
    network: str,
    ways: int,
    shots: int,
    pooling: str,
    *,
    queries: int = 4,
    limit: int = TOKENS,
    episodes: str = "300/60/100",
    splits: int = 5,
) -> RunSettings:
    """The settings of a row."""
    return RunSettings(
        training=TrainingSettings(network=network, validate_every=30),
        ways=ways,
        shots=shots,
        queries=queries,
        episodes=episodes,
        pooling=pooling,
        limit=limit,
        neutral=False,
        splits=splits,
    )


def corners(
    data: Dataset, encoders: dict[str, str], work: Path, **smaller: Any
) -> Iterator[dict[str, Any]]:
    """The rows of each encoder, from finished runs; a run that is there is read."""
    for encoder, source in encoders.items():
        loaded = load_encoder(source)
        for pooling in POOLINGS[encoder]:
            for network in NETWORKS:
                for ways, shots in CORNERS:
                    setting = (encoder, pooling, network, ways, shots)
                    settings = settings_of(network, ways, shots, pooling, **smaller)
                    done = run(
                        data,
                        settings,
                        work / "-".join(map(str, setting)),
                        encoder=loaded,
                        cache=work / "cache",
                    )
                    yield dict(zip(SETTING, setting, strict=True)) | values_of(done.results)


def drift(
    bios: Dataset, events: Dataset, encoder: str, work: Path, **smaller: Any
) -> Iterator[dict[str, Any]]:
    """The rows of each test data, trained on the classes of the other data and on its own.

    Biographies of the classes that the events have too are left out.
    """
    others = set(join_domains(bios, events).classes) - set(events.classes)
    named = {"WikiBios": leaning_given(bios).subset(others), "events": leaning_given(events)}
    for tested, test in named.items():
        for trained, training in named.items():
            data = test
            if trained != tested:
                sides = {**dict(training.leaning_by), **dict(test.leaning_by)}
                data = replace(join_domains(training, test), leaning_by=sides)
            for network in NETWORKS:
                chosen = {"queries": 5, "limit": 128, **smaller}
                if trained == tested == "events":
                    chosen["splits"] = min(chosen.get("splits", 5), 4)  # two of eight classes each
                settings = settings_of(network, 2, 5, "mean", **chosen)
                setting = (trained, tested, network)
                done = run(
                    data,
                    settings,
                    work / "-".join(("drift", *setting)),
                    encoder=encoder,
                    cache=work / "cache",
                )
                yield dict(zip(DRIFT, setting, strict=True)) | values_of(done.results)


def leaning_given(data: Dataset) -> Dataset:
    """The same with the leaning of each class by name, which holds in joined data too."""
    sides = zip(data.classes, data.leaning, strict=True)
    return replace(data, leaning_by={n: side for n, side in sides if side in ("male", "female")})


def values_of(results: Any) -> dict[str, float]:
    """Accuracy, that of counting words, and the bias, with their intervals."""
    measured = {"accuracy": results.accuracy.estimate, "baseline": results.baseline.estimate}
    for name in VALUES[2:]:
        measured[name] = results.bias.part(name, by="measure").estimate
    return {
        f"{name}{end}": getattr(estimate, field)
        for name, estimate in measured.items()
        for end, field in (("", "value"), ("_low", "low"), ("_high", "high"))
    }


def drift_table(rows: list[dict[str, str]]) -> str:
    """The rows of the drift as they are on the page."""
    head = ["trained on", "tested on", "network", "accuracy", "counting words", "association"]
    values = ("accuracy", "baseline", "association")
    cells = [[row[name] for name in DRIFT] + [shown(row, name) for name in values] for row in rows]
    return markdown(head, cells)


def corner_table(rows: list[dict[str, str]]) -> str:
    """The rows of the corners as they are on the page."""
    head = ["encoder", "pooling", "network", "C", "K", "accuracy", "association"]
    cells = []
    for row in rows:
        values = [shown(row, name) for name in ("accuracy", "association")]
        cells.append([row[name] for name in SETTING] + values)
    for setting in dict.fromkeys((row["ways"], row["shots"]) for row in rows):
        [row, *_] = [row for row in rows if (row["ways"], row["shots"]) == setting]
        cells.append(["counting words", "", "", *setting, shown(row, "baseline"), ""])
    return markdown(head, cells)


def main(given: list[str] | None = None) -> None:
    """Compute the rows, or print the published ones."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--compute", type=Path, metavar="WORK")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--smollm", type=Path)
    parser.add_argument("--events", type=Path)
    parser.add_argument("--published", type=Path, default=PUBLISHED)
    options = parser.parse_args(given)
    tables = {"corners": corner_table, "drift": drift_table}
    if options.compute is not None:
        bios = first_texts(read(options.data).at_least(1, each_gender=EACH_GENDER), TEXTS)
        if options.events is not None:
            events = read(options.events, leaning="point", duplicates="class")
            name, found = "drift", drift(bios, events, "mini", options.compute)
        else:
            encoders = {"mini": "mini", "tiny-causal": "tiny-causal"}
            if options.smollm is not None:
                encoders["SmolLM2"] = str(options.smollm)
            name, found = "corners", corners(bios, encoders, options.compute)
        rows = []
        for row in found:
            rows.append(row)
            print(*row.values(), flush=True)
        options.published.mkdir(parents=True, exist_ok=True)
        cells = [list(rows[0]), *(list(row.values()) for row in rows)]
        save_rows(options.published / f"{name}.csv.gz", cells)
    for name, table in tables.items():
        file = options.published / f"{name}.csv.gz"
        if file.is_file():
            print(f"{table(read_rows(file))}\n")


if __name__ == "__main__":
    main()
