r"""Do generated sentences move models that are no relatives of the model that generated them?

    python benchmarks/generate_judges.py generate [--each 25] [-o docs/results/generated.csv.xz]
    python benchmarks/generate_judges.py score mini tiny-causal MiniLM=FOLDER
    python benchmarks/generate_judges.py score SmolLM2=FILE.gguf [--each 12]
    python benchmarks/generate_judges.py tables

Seeds are sentences of the published data set (docs/data/implicit-*.csv.xz), so many of each corpus
drawn at random with seed 0. `mini` edits each in its own direction, guided by the pronoun score
and guided by the phrase WEAT (`lab generate --guide`), and at random (the control of the same run).
The rules below were written before anything was generated.

**Judges.** A masked or causal model gives the log odds of the version with the male pronoun to the
one with the female one: at the mask, or of the likelihoods of the whole text. A sentence encoder
gives the association of the clause around the pronoun with words for men less women (centred). The
generating model is scored in both ways too; what it maximised is no evidence.

**Outcome.** For each guide and judge the mean of (generated - random), times -1 where the sentence
was pushed towards female. A seed without a result counts with its own sentence, as in `lab
generate`. Intervals are Student's over seeds, p is of the sign test; all tests of the table are one
family, and "found" is what the judge of the package says of it.
"""

from __future__ import annotations

import argparse
import csv
import io
import lzma
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from contextual import p_text
from evenhand.instruments import judge_results
from evenhand.lexicon.phrases import phrases
from evenhand.lexicon.pronouns import SLOTS
from evenhand.models import load
from evenhand.models.generation.search import GenerateSettings, generate
from evenhand.models.likelihood import is_causal, likelihoods, word_likelihoods
from evenhand.models.metrics.behaviours import behaviour
from evenhand.models.metrics.phrases import Embed, embed_phrases
from evenhand.results import Measurement
from evenhand.statistics.association import association, unit
from evenhand.statistics.intervals import Floats, t_mean
from evenhand.statistics.tests import sign_test
from evenhand.text.structural import Accepted, Filter
from implicit_data import PUBLISHED, sentence_id

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results" / "generated.csv.xz"
SEARCH = GenerateSettings(beam=1, tried=16)
GUIDES = ("pronouns", "phrases")
KINDS = ("seed", "generated", "random")
PAIRS = {**SLOTS, "absolute": ("his", "hers")}
Row = dict[str, str]


def choose_seeds(corpus: str, each: int) -> list[str]:
    """Published sentences of a corpus, drawn at random, in their order."""
    path = ROOT / "docs" / "data" / f"implicit-{corpus}.csv.xz"
    rows = read_rows(path)
    order = np.sort(np.random.default_rng(0).permutation(len(rows))[:each])
    return [rows[i]["sentence"] for i in order]


def read_rows(path: Path) -> list[Row]:
    """The rows of a compressed CSV file."""
    with lzma.open(path, "rt", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def save(path: Path, rows: Sequence[Row]) -> None:
    """Write rows."""
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes(lzma.compress(text.getvalue().encode(), preset=9))


def described(accepted: Accepted) -> tuple[str, str, str]:
    """The masked sentence, the clause around the pronoun, and the role of the pronoun."""
    clause, role = behaviour(
        accepted.sentence, accepted.pronoun, accepted.offset, accepted.antecedent
    )
    return accepted.masked, clause, role


def edit(corpus: str, seeds: Sequence[str], guide: str) -> list[Row]:
    """Each seed with its generated sentence and its random edit, masked."""
    settings = replace(SEARCH, guide=guide)
    result = generate(load("mini"), seeds, settings=settings, seed=0)
    edited = {
        kind: {row["seed"]: row["sentence"] for row in rows}
        for kind, rows in (("generated", result.sentences), ("random", result.controls))
    }
    rows = []
    for outcome in result.outcomes:
        seed = outcome.task.context.seed.accepted.sentence
        row = {"corpus": corpus, "id": sentence_id(seed), "guide": guide}
        row["direction"] = outcome.task.side
        for kind in KINDS:
            sentence = seed if kind == "seed" else edited[kind].get(seed, "")
            accepted = Filter().sentence(sentence) if sentence else None
            known = isinstance(accepted, Accepted)
            row[kind], row[f"phrase {kind}"], role = (
                described(accepted) if isinstance(accepted, Accepted) else ("", "", "")
            )
            if kind == "seed" and known:
                row["male"], row["female"] = PAIRS[role]
        rows.append(row)
    return rows


def pronoun_odds(source: str, rows: Sequence[Row], kind: str) -> Floats:
    """The log odds of the version with the male pronoun."""
    model = load(source)
    texts = [
        (row[kind].replace("[MASK]", row[name])) for row in rows for name in ("male", "female")
    ]
    if is_causal(model):
        values = likelihoods(model, texts)[0]
    else:
        divided = [
            (before, row[name], after)
            for row in rows
            for before, _, after in [row[kind].partition("[MASK]")]
            for name in ("male", "female")
        ]
        values = word_likelihoods(model, divided)[0]
    return np.asarray(values.reshape(-1, 2) @ [1.0, -1.0])


def phrase_scores(embed: Embed, texts: Sequence[str]) -> Floats:
    """The association of phrases with words for men less women."""
    space = embed_phrases(embed, phrases())
    distinct = list(dict.fromkeys(texts))
    vectors = unit(np.asarray(embed(distinct), dtype=float) - space.control.mean(axis=0))
    scores = association(vectors, *space.unit_vectors(centred=True)[1:])
    known = dict(zip(distinct, scores.tolist(), strict=True))
    return np.array([known[text] for text in texts])


def score(name: str, source: str, path: Path, each: int = 0) -> None:
    """Add the scores of a judge: of pronouns, of phrases, or both for the generating model.

    With `each` only the first so many seeds of every corpus and guide are scored.
    """
    everything = read_rows(path)
    places = Counter[tuple[str, str]]()
    rows = []
    for row in everything:
        key = row["corpus"], row["guide"]
        places[key] += 1
        if not each or places[key] <= each:
            rows.append(row)
    model = load(source)
    encoder = getattr(model, "subject_kind", "masked") == "encoder"
    for kind in KINDS:
        if not encoder:
            chosen = [row for row in rows if row[kind]]
            for row, value in zip(chosen, pronoun_odds(source, chosen, kind), strict=True):
                row[f"{kind}: {name}, pronoun"] = f"{value:.4g}"
        if encoder or name == "mini":
            embed = model.encode if encoder else model.embed
            chosen = [row for row in rows if row[f"phrase {kind}"]]
            texts = [row[f"phrase {kind}"] for row in chosen]
            for row, value in zip(chosen, phrase_scores(embed, texts), strict=True):
                row[f"{kind}: {name}, phrase"] = f"{value:.4g}"
    columns = list(dict.fromkeys(column for row in everything for column in row))
    save(path, [{column: row.get(column, "") for column in columns} for row in everything])


def compare(rows: Sequence[Row], judge: str, guide: str) -> list[Measurement]:
    """The mean push of generated sentences and of random edits, and their difference."""
    scored = [row for row in rows if row["guide"] == guide and row[f"seed: {judge}"]]
    sign = np.array([1.0 if row["direction"] == "male" else -1.0 for row in scored])
    values = {
        kind: np.array([float(row[f"{kind}: {judge}"] or row[f"seed: {judge}"]) for row in scored])
        for kind in KINDS
    }
    differences = {
        "generated - seed": values["generated"] - values["seed"],
        "random - seed": values["random"] - values["seed"],
        "generated - random": values["generated"] - values["random"],
    }
    return [
        Measurement(
            metric="generation",
            query=f"{guide}, {judge}: {name}",
            **dict(zip(("value", "low", "high"), t_mean(sign * x), strict=True)),
            n=len(scored),
            ideal=0.0,
            worse="away",
            interval="Student's, over seeds",
            p_value=sign_test(sign * x),
            test="sign test over seeds, two-sided",
            subject=judge,
        )
        for name, x in differences.items()
    ]


def judges_of(rows: Sequence[Row]) -> list[str]:
    """The judges with scores in the file."""
    return [name.removeprefix("seed: ") for name in rows[0] if name.startswith("seed: ")]


def tables(path: Path) -> str:
    """The tables of docs/experiments/generate.md."""
    rows = read_rows(path)
    lines = ["| guided by | seeds | generated | random edits |", "| --- | ---: | ---: | ---: |"]
    for guide in GUIDES:
        own = [row for row in rows if row["guide"] == guide]
        counts = [sum(bool(row[kind]) for row in own) for kind in KINDS]
        lines.append(f"| {guide} | {' | '.join(map(str, counts))} |")
    heads = ("guided by", "judge", "n", "random - seed", "generated - random", "p, corrected", "")
    lines += ["", f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    compared = [
        (guide, judge, compare(rows, judge, guide)) for guide in GUIDES for judge in judges_of(rows)
    ]
    judged = judge_results([several[2] for _, _, several in compared])
    for (guide, judge, several), (_, judgement) in zip(compared, judged, strict=True):
        cells = [f"{m.value:.3f} [{m.low:.3f}, {m.high:.3f}]" for m in several[1:]]
        lines.append(
            f"| {guide} | {judge} | {several[2].n} | {' | '.join(cells)} | "
            f"{p_text(judgement.p)} | "
            f"{judgement.outcome} |"
        )
    return "\n".join(lines)


def main() -> None:
    """Generate, score, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("generate", "score", "tables"))
    parser.add_argument("sources", nargs="*", metavar="[NAME=]SRC")
    parser.add_argument("--each", type=int, default=0)
    parser.add_argument("-o", "--data", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.step == "generate":
        rows = []
        for guide in GUIDES:
            for corpus in PUBLISHED:
                rows += edit(corpus, choose_seeds(corpus, options.each or 25), guide)
                print(f"{guide}, {corpus}: {len(rows)} rows", flush=True)
        save(options.data, rows)
    elif options.step == "score":
        for text in options.sources:
            name, _, source = text.partition("=")
            score(name, source or name, options.data, options.each)
            print(f"{name}: scored", flush=True)
    else:
        print(tables(options.data))


if __name__ == "__main__":
    main()
