r"""Encoders of few-shot classifiers: causal models beside a masked one, on biographies.

    python benchmarks/fewshot_encoders.py                       # the table of the published rows
    python benchmarks/fewshot_encoders.py --compute WORK --data bios/wikibios.csv.gz \
        --smollm smollm2.gguf                                   # computes the rows

Decided before any result was seen: the classes of docs/grids/wikibios-in-context.yaml with their
leanings by the full data, of each the first 30 texts of the file, at most 32 tokens of each; its
five class splits; two and five ways, two and sixteen shots, 4 queries; the euclidean prototypical
and the cosine matching network, 300 training, 60 validation and 100 test episodes per split, all
other settings as they come; every encoder with every pooling it has by the mean and the last token.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.fewshot import RunSettings, TrainingSettings, read, run
from evenhand.fewshot.data import Dataset
from grid_tables import markdown, shown
from published import read_rows, save_rows

PUBLISHED = Path(__file__).parents[1] / "docs" / "results" / "fewshot-encoders"
TEXTS, TOKENS, EACH_GENDER = 30, 32, 24
POOLINGS = {"mini": ("mean",), "tiny-causal": ("last", "mean"), "SmolLM2": ("last", "mean")}
NETWORKS = ("proto-euclidean", "matching-cosine")
CORNERS = ((2, 2), (2, 16), (5, 2), (5, 16))
SETTING = ("encoder", "pooling", "network", "ways", "shots")
VALUES = ("accuracy", "baseline", "association", "epsilon")


def first_texts(data: Dataset, count: int) -> Dataset:
    """The first texts of each class; the classes lean as all of their texts say."""
    kept = np.sort(
        np.concatenate([np.flatnonzero(data.labels == k)[:count] for k in range(len(data.classes))])
    )
    sides = zip(data.classes, data.leaning, strict=True)
    return replace(
        data,
        texts=tuple(data.texts[row] for row in kept),
        labels=data.labels[kept],
        genders=data.genders[kept],
        rows=data.rows[kept],
        leaning_by={name: side for name, side in sides if side in ("male", "female")},
    )


def settings_of(
    network: str, ways: int, shots: int, pooling: str, *, episodes: str, splits: int
) -> RunSettings:
    """The settings of a row."""
    return RunSettings(
        training=TrainingSettings(network=network, validate_every=30),
        ways=ways,
        shots=shots,
        queries=4,
        episodes=episodes,
        pooling=pooling,
        limit=TOKENS,
        neutral=False,
        splits=splits,
    )


def compute(
    data: Dataset,
    encoders: dict[str, str],
    work: Path,
    *,
    episodes: str = "300/60/100",
    splits: int = 5,
) -> Iterator[dict[str, Any]]:
    """The rows, each from a finished run; a run that is there is read."""
    for encoder, source in encoders.items():
        for pooling in POOLINGS[encoder]:
            for network in NETWORKS:
                for ways, shots in CORNERS:
                    setting = (encoder, pooling, network, ways, shots)
                    settings = settings_of(
                        network, ways, shots, pooling, episodes=episodes, splits=splits
                    )
                    done = run(
                        data,
                        settings,
                        work / "-".join(map(str, setting)),
                        encoder=source,
                        cache=work / "cache",
                    )
                    yield dict(zip(SETTING, setting, strict=True)) | values_of(done.results)


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


def table(rows: list[dict[str, str]]) -> str:
    """The rows as they are on the page."""
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
    parser.add_argument("--published", type=Path, default=PUBLISHED)
    options = parser.parse_args(given)
    file = options.published / "corners.csv"
    if options.compute is not None:
        data = first_texts(read(options.data).at_least(1, each_gender=EACH_GENDER), TEXTS)
        encoders = {"mini": "mini", "tiny-causal": "tiny-causal"}
        if options.smollm is not None:
            encoders["SmolLM2"] = str(options.smollm)
        rows = []
        for row in compute(data, encoders, options.compute):
            rows.append(row)
            print(*row.values(), flush=True)
        options.published.mkdir(parents=True, exist_ok=True)
        save_rows(file, [list(rows[0]), *([str(cell) for cell in row.values()] for row in rows)])
    print(table(read_rows(file)))


if __name__ == "__main__":
    main()
