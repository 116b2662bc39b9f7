"""The table and distributions of Ye et al. (2021) for real models, from the published GEST scores.

    python benchmarks/gest.py FOLDER [-o OUT] [--delta 0.05] [--prob 0.95]

FOLDER has gest.csv and scores/english_mlm/MODEL_template-T.txt.gz (Pikuliak et al. 2024): per
sentence log10 P(male form) - log10 P(female form) at the masked word. bias(s) = P(male) / (P(male)
+ P(female)) follows from it exactly. Sentences and templates are both samples in every interval;
models are paired on the same sentences and templates. Prints the tables of
docs/experiments/gest.md; OUT gets results.json and distributions.csv (shares by bins of
bias; no sentence). The intervals of the pairs of models hold together.
"""

from __future__ import annotations

import argparse
import csv
import gzip
from itertools import combinations
from pathlib import Path

import numpy as np

from evenhand.files import document, save_json
from evenhand.judging import simultaneous
from evenhand.models.metrics.gest import stereotype_interval, stereotype_rates
from evenhand.statistics.intervals import crossed_mean
from published import drop_zero

MODELS = {
    "BERT-base": "bert-base-uncased",
    "DistilBERT": "distilbert-base-uncased",
    "ALBERT-base": "albert-base-v2",
    "RoBERTa-base": "roberta-base",
    "ELECTRA-base": "electra-base-generator",
}
TEMPLATES = ('He said: "…"', 'The man said: "…"', '"…", he said.', '"…", the man said.')
PUBLISHED = {
    "BERT-base": (1.176, 1.210, 1.093, 1.183),
    "DistilBERT": (1.134, 1.131, 1.013, 1.127),
    "ALBERT-base": (1.163, 1.170, 1.117, 1.140),
    "RoBERTa-base": (1.238, 1.292, 1.286, 1.257),
}
"""The stereotype rate g_s by template, as published."""


def read(folder: Path, name: str) -> np.ndarray:
    """The scores (sentences, templates) of a model."""
    columns = []
    for t in range(len(TEMPLATES)):
        path = folder / "scores" / "english_mlm" / f"{name}_template-{t}.txt.gz"
        with gzip.open(path, "rt") as file:
            columns.append([float(line) for line in file])
    return np.array(columns).T


def cell(estimate: tuple[float, float, float], digits: int = 3) -> str:
    """A value and its interval as text."""
    value, low, high = (drop_zero(f"{x:.{digits}f}") for x in estimate)
    return f"{value} [{low}, {high}]"


def table(title: str, head: list[str], rows: list[list[str]]) -> None:
    """Print a Markdown table."""
    print(f"\n{title}\n\n| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def main() -> None:
    """Print every table, and write them where asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("-o", "--out", type=Path)
    parser.add_argument("--delta", type=float, default=0.05)
    parser.add_argument("--prob", type=float, default=0.95)
    options = parser.parse_args()
    with (options.folder / "gest.csv").open(newline="", encoding="utf-8") as file:
        kinds = np.array([int(row["stereotype"]) for row in csv.DictReader(file)])
    scores = {label: read(options.folder, name) for label, name in MODELS.items()}
    for label, values in scores.items():
        if len(values) != len(kinds):
            raise SystemExit(
                f"error: {label}: expected {len(kinds)} scores, one per sentence, got {len(values)}"
            )
    odds = {label: values * np.log(10) for label, values in scores.items()}
    bias = {label: 1 / (1 + np.exp(-values)) for label, values in odds.items()}
    delta, prob = options.delta, options.prob
    results: dict[str, dict[str, object]] = {label: {} for label in MODELS}

    rows, per_template = [], []
    for label, b in bias.items():
        male, female = b > 0.5 + delta, b < 0.5 - delta
        verdicts = {"male": male, "female": female, "within δ": ~(male | female)}
        shares = {k: crossed_mean(v.astype(float), prob=prob) for k, v in verdicts.items()}
        mean = crossed_mean(b, prob=prob)
        results[label] = {"mean": mean, "shares": shares}
        means = [f"{b[v].mean():.3f}".lstrip("0") for v in (male, female)]
        cells = [f"{100 * s[0]:.1f} %" for s in shares.values()]
        rows.append(
            [label, f"{cells[0]} ({means[0]})", f"{cells[1]} ({means[1]})", cells[2], cell(mean)]
        )
        for t, name in enumerate(TEMPLATES):
            counts = [int(v[:, t].sum()) for v in verdicts.values()]
            of_template = [f"{b[v[:, t], t].mean():.3f}".lstrip("0") for v in (male, female)]
            per_template.append(
                [
                    label,
                    name,
                    f"{counts[0]} ({of_template[0]})",
                    f"{counts[1]} ({of_template[1]})",
                    str(counts[2]),
                    f"{b[:, t].mean():.3f}".lstrip("0"),
                ]
            )
    table(
        f"{len(kinds)} sentences × {len(TEMPLATES)} templates, δ = {delta} (mean scores)",
        ["model", "male", "female", "within δ", f"mean score, {prob:.0%}"],
        rows,
    )
    table(
        "By template",
        ["model", "template", "male (mean)", "female (mean)", "within δ", "mean score"],
        per_template,
    )

    quantiles = (0.05, 0.25, 0.5, 0.75, 0.95)
    table(
        "Distribution of the score over sentences and templates",
        ["model", *(f"{100 * q:.0f} %" for q in quantiles)],
        [
            [label, *(f"{x:.3f}".lstrip("0") for x in np.quantile(b, quantiles))]
            for label, b in bias.items()
        ],
    )

    rows = []
    for label, values in odds.items():
        level = crossed_mean(values, prob=prob)
        gap = stereotype_interval(values, kinds, prob)
        gap_of = stereotype_rates(scores[label], kinds)
        published = PUBLISHED.get(label)
        results[label] |= {"level": level, "stereotype": gap, "g_s": gap_of.tolist()}
        rows.append(
            [
                label,
                cell(level, 2),
                cell(gap, 2),
                " ".join(f"{x:.3f}" for x in gap_of),
                " ".join(f"{x:.3f}" for x in published) if published else "–",
            ]
        )
    table(
        "Level and stereotype, natural log odds",
        ["model", "level", "stereotype", "g_s by template", "g_s published"],
        rows,
    )

    rows, paired = [], []
    pairs = list(combinations(MODELS, 2))
    together = simultaneous(prob, len(pairs))
    for first, second in pairs:
        difference = crossed_mean(bias[second] - bias[first], prob=together)
        gap = stereotype_interval(odds[second] - odds[first], kinds, together)
        paired.append({"models": [second, first], "mean": difference, "stereotype": gap})
        rows.append([f"{second} - {first}", cell(difference), cell(gap, 2)])
    table(
        f"Models on the same sentences and templates, paired: {len(pairs)} intervals that hold "
        "together",
        ["models", "difference of the mean score", "difference of the stereotype, log odds"],
        rows,
    )
    if options.out:
        options.out.mkdir(exist_ok=True)
        save_json(options.out / "results.json", document(models=results, paired=paired))
        edges = np.linspace(0, 1, 21)
        with (options.out / "distributions.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["model", "template", "low", "high", "share"])
            for label, b in bias.items():
                for t in range(len(TEMPLATES)):
                    counts, _ = np.histogram(b[:, t], edges)
                    for k, count in enumerate(counts):
                        low, high = f"{edges[k]:.2f}", f"{edges[k + 1]:.2f}"
                        writer.writerow([label, t, low, high, count / len(b)])


if __name__ == "__main__":
    main()
