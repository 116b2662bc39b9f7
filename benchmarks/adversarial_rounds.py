r"""Adversarial training: generate, train, generate again, against generating once.

    python benchmarks/adversarial_rounds.py --material OUT/material.json.gz -o OUT [--device cuda]

The material is that of `generate_controls.py --collect`: seeds of several corpora, sentences of a
corpus that nothing is generated from, and plain text of it. The rules below were written before
anything was run.

**Arms**, each with `--rounds` rounds of training from the weights of the round before, half of the
sentences swapped, the same number of sentences and tokens in each:

- *adversarial*: the sentences are generated anew in every round, from the same seeds, by the model
  as it is then;
- *once*: those that the untrained model generated, in every round;
- *random*: random edits by the model as it is then, drawn anew in every round;
- *seeds*: the seeds themselves.

A seed without a result counts with its own sentence, so that all arms have as many.

**Outcome**: after the last round the change of the mean |bias - .5| on sentences of the held-out
corpus (main outcome) and on the built-in ones, of the mean bias on both, and the ratio of
pseudo-perplexities of plain text: those of generate_controls.py. Adversarial minus each control,
paired by sentence. With several `--seeds` sentences and training seeds both count in the interval
(two-way); with one only sentences do, and the table says so. The sentence is that of
generate_controls.py: "more" where the interval of the main outcome excludes 0 and the mean bias is
not on the other side of .5.

OUT gets one folder and one row of rounds.csv per arm, seed and round. The same command resumes.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
from pathlib import Path

import numpy as np

from evenhand.cache import Cache
from evenhand.files import save_json
from evenhand.models import load
from evenhand.models.finetuning.text import counterfactual_key
from evenhand.models.finetuning.training import finetune
from evenhand.models.generation.search import generate
from evenhand.statistics.intervals import crossed_mean, t_mean
from generate_controls import OUTCOMES, SEARCH, Row, as_row, measure, training_settings

ARMS = ("adversarial", "once", "random", "seeds")


def read_texts(options: argparse.Namespace) -> Row:
    """The seeds, and the sentences and plain text to measure on, none of them about the same."""
    with gzip.open(options.material, "rt", encoding="utf-8") as file:
        material = json.load(file)
    seeds = [text for several in material["seeds"].values() for text in several[: options.most]]
    learned = {counterfactual_key(text) for text in seeds}
    masked = [m for m, text in material["held_out"] if counterfactual_key(text) not in learned]
    plain = [t for t in material["held_out_plain"] if counterfactual_key(t) not in learned]
    return {
        "seeds": seeds,
        "measured": masked[: options.measured],
        "watched": masked[options.measured :][: options.measured],
        "plain": plain[: options.plain],
    }


def edited(source: str, seeds: list[str], kind: str, options: argparse.Namespace) -> list[str]:
    """What a model makes of each seed, by search or at random; the seed itself where nothing."""
    cache = Cache(options.out / "answers")
    result = generate(load(source, device=options.device), seeds, settings=SEARCH, cache=cache)
    rows = result.controls if kind == "random" else result.sentences
    found = {row["seed"]: row["sentence"] for row in rows}
    return [found.get(seed, seed) for seed in seeds]


def train_round(options: argparse.Namespace, texts: Row, arm: str, seed: int, number: int) -> Row:
    """One round, from the model of the round before; a finished one is read again."""
    folder = options.out / "rounds" / f"{arm}-{seed}-{number}"
    before = folder.with_name(f"{arm}-{seed}-{number - 1}") / "tuned" / "model"
    source = options.model if number == 1 else str(before)
    path = folder / "measured.json"
    if path.is_file():
        row: Row = json.loads(path.read_text(encoding="utf-8"))
        return row
    folder.mkdir(parents=True, exist_ok=True)
    chosen = folder / "sentences.json"
    if not chosen.is_file():
        by = options.model if arm == "once" else source
        own = texts["seeds"] if arm == "seeds" else edited(by, texts["seeds"], arm, options)
        save_json(chosen, {"sentences": own})
    sentences = json.loads(chosen.read_text(encoding="utf-8"))["sentences"]
    settings = training_settings(options, "loss", 100 * seed + number)
    given = {"sentences": texts["measured"], "device": options.device}
    result = finetune(source, sentences, settings, folder / "tuned", **given)
    model = load(folder / "tuned" / "model", device=options.device)
    row = {
        "arm": arm,
        "seed": seed,
        "stop": f"round {number}",
        "ended": result.training["ended"],
        "step": result.training["best"]["step"],
        "steps": result.training["steps"],
        "loss": result.training["evaluation_loss"],
        "changed": sum(a != b for a, b in zip(sentences, texts["seeds"], strict=True)),
        **measure(model, texts),
    }
    save_json(path, row)
    return row


def describe(before: Row, last: dict[str, list[Row]]) -> str:
    """The table of differences after the last round, in Markdown."""
    several = len(last["adversarial"]) > 1
    over = "sentences and training seeds" if several else "sentences only: one training seed"
    lines = [
        f"| adversarial minus (intervals over {over}) | {' | '.join(OUTCOMES)} |",
        "|" + " --- |" * (len(OUTCOMES) + 1),
    ]
    for arm in ARMS[1:]:
        cells = []
        for table in OUTCOMES.values():
            difference = table(before, last["adversarial"]) - table(before, last[arm])
            value, low, high = crossed_mean(difference) if several else t_mean(difference[0])
            cells.append(f"{value:.3f} [{low:.3f}, {high:.3f}]")
        lines.append(f"| {arm} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Train every round of every arm, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--material", type=Path, required=True)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--model", default="mini")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--most", type=int, default=120)
    parser.add_argument("--measured", type=int, default=300)
    parser.add_argument("--plain", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--tokens", type=int, default=17_000, help="per round")
    parser.add_argument("--evaluations", type=int, default=8)
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True, parents=True)
    texts = read_texts(options)
    untrained = {"arm": "before", "seed": 0, "stop": "", "ended": "", "step": 0, "steps": 0}
    untrained |= {"loss": {"before": np.nan, "after": np.nan}, "changed": 0}
    before = {**untrained, **measure(load(options.model, device=options.device), texts)}
    rows = [before]
    last: dict[str, list[Row]] = {arm: [] for arm in ARMS}
    for seed in range(options.seeds):
        for arm in ARMS:
            for number in range(1, options.rounds + 1):
                rows.append(train_round(options, texts, arm, seed, number))
                save_table(options.out / "rounds.csv", rows, len(texts["seeds"]), options.tokens)
                print(f"{arm}, seed {seed}, round {number}: done", flush=True)
            last[arm].append(rows[-1])
    print(describe(before, last))


def save_table(path: Path, rows: list[Row], sentences: int, tokens: int) -> None:
    """One row per arm, seed and round."""
    named = [{**as_row(row, sentences, tokens), "changed": row["changed"]} for row in rows]
    with path.open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, named[0].keys(), lineterminator="\n")
        table.writeheader()
        table.writerows(
            {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()} for row in named
        )


if __name__ == "__main__":
    main()
