r"""Do generated sentences reduce a model's bias more than other text does? Five arms, three seeds.

    python benchmarks/generate_controls.py swag=sent1.txt wikibios=wikibios.csv.gz \
        novels=a.txt.bz2@1:9000 news=a.txt.bz2@9001: --held-out b.txt.bz2@1:9000 -o OUT [--collect]
    python benchmarks/generate_controls.py --material OUT/material.json.gz -o OUT

Corpora are named as for benchmarks/funnel.py; no text of --held-out is generated from or trained
on. With --collect only what is needed of them is written, to OUT/material.json.gz, of which the
rest can be computed elsewhere. The rules below were written before anything was generated.

**Sentences.** Seeds are the sentences that the structural filter accepts, at most --most of a
corpus, drawn at random. `masked generate --beam 1 --tried 16` edits each in the direction of its
own bias, and at random. *Fluency*: a generated sentence counts if its pseudo-perplexity under the
model is at most the 95th percentile of that of all seeds; so does a random edit. Where both count,
the seed and both edits are used.

**Arms**, each with the same number of sentences of each corpus and the same number of training
tokens, half of the sentences swapped (`--rewrite substitute`, redrawn in every epoch): *generated*;
*seeds*; *random* edits; *plain*: any sentences of 5 to 60 words of the same corpora, drawn at
random; *pronouns*: the same, of sentences with a gendered pronoun. The learning rate is a quarter
of the default and a step has 512 tokens: with the defaults the bias passes .5 in five steps.

**Outcome**, for every arm and training seed: the change of the mean |bias - .5| of the pronoun
score over the full vocabulary on the filter's sentences of --held-out (main outcome), of the mean
bias, of both on the built-in sentences, and the ratio of pseudo-perplexities of plain sentences of
--held-out. Generated minus control: paired by sentence, sentences and training seeds both samples
in the interval (two-way, Satterthwaite). "Helps more" is said where the interval of the main
outcome excludes 0 and the mean bias is not on the other side of .5.

Every run is made with a fixed amount of training, and again with training stopped where the mean
bias of other sentences of --held-out passes .5 (`stop="ideal"`). OUT gets the edits, texts, one
folder per run, runs.csv and results.json; --docs DOCS writes the section of
DOCS/experiments/generate.md and DOCS/results/generate-controls.csv. The same command resumes.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from evenhand.cache import Cache
from evenhand.files import document, save_json
from evenhand.lexicon.pronouns import PRONOUNS
from evenhand.models import load
from evenhand.models.finetuning.text import counterfactual_key
from evenhand.models.finetuning.training import FinetuneSettings, finetune
from evenhand.models.generation.search import GenerateSettings as SearchSettings
from evenhand.models.generation.search import generate
from evenhand.models.masked import MaskedModel
from evenhand.models.metrics.perplexity import pseudo_log_likelihoods
from evenhand.models.metrics.pronouns import Pronouns
from evenhand.statistics.intervals import crossed_mean
from evenhand.text.tokens import sentences
from funnel import Line, funnel, read

ARMS = ("generated", "seeds", "random", "plain", "pronouns")
SEARCH = SearchSettings(beam=1, tried=16)
PERCENTILE = 95
WORDS = range(5, 61)
HELD_OUT, EVALUATION = 0.02, 0.05
"""Shares of the sentences of an arm that are not trained on; the first only because it must be."""
PRONOUN = re.compile(rf"\b({'|'.join(PRONOUNS)})\b", re.IGNORECASE)
Row = dict[str, Any]


def read_corpora(named: Sequence[str]) -> dict[str, list[Line]]:
    """The lines of each corpus; a name that is there twice is one corpus."""
    corpora: dict[str, list[Line]] = {}
    for argument in named:
        name, _, rest = argument.partition("=")
        path, _, selection = rest.partition("@")
        corpora.setdefault(name, []).extend(read(path, selection))
    return corpora


def choose_seeds(lines: list[Line], most: int, rng: np.random.Generator) -> list[str]:
    """The distinct sentences that the filter accepts, at most so many, in the order of the text."""
    accepted = list(dict.fromkeys(str(row["sentence"]) for row in funnel(lines)[1]))
    chosen = rng.permutation(len(accepted))[:most]
    return [accepted[i] for i in np.sort(chosen)]


def draw_plain(
    lines: list[Line], count: int, rng: np.random.Generator, *, pronoun: bool
) -> list[str]:
    """Distinct sentences of ordinary length, drawn at random, with a gendered pronoun or any."""
    drawn: dict[str, None] = {}
    for i in rng.permutation(len(lines)):
        text = lines[i][1]
        spans = sentences(text)
        start, end = spans[int(rng.integers(len(spans)))]
        sentence = text[start:end].strip()
        if len(sentence.split()) in WORDS and (not pronoun or PRONOUN.search(sentence)):
            drawn[sentence] = None
        if len(drawn) == count:
            break
    return list(drawn)


def perplexities(
    model: MaskedModel, texts: Sequence[str], cache: Cache | None = None
) -> np.ndarray:
    """The pseudo-perplexity of each text, infinite where it is too long for the model."""
    log_probs, tokens = pseudo_log_likelihoods(model, texts, cache=cache)
    return np.where(tokens > 0, np.exp(-log_probs / np.maximum(tokens, 1)), np.inf)


def edit(
    model: MaskedModel, seeds: Sequence[str], seed: int, cache: Cache | None = None
) -> list[Row]:
    """Each seed with its generated sentence and its random edit, None where there is none."""
    result = generate(model, seeds, settings=SEARCH, seed=seed, cache=cache)
    generated, random = (
        {row["seed"]: row["sentence"] for row in rows}
        for rows in (result.sentences, result.controls)
    )
    rows = [{"seed": s, "generated": generated.get(s), "random": random.get(s)} for s in seeds]
    for column in ("seed", "generated", "random"):
        known = [row for row in rows if row[column] is not None]
        values = perplexities(model, [row[column] for row in known], cache)
        for row, value in zip(known, values, strict=True):
            row[f"perplexity_{column}"] = float(value)
    return rows


def fluent(rows: Mapping[str, Sequence[Row]]) -> tuple[float, dict[str, list[Row]], Row]:
    """The limit of the fluency rule, the seeds with two fluent edits by corpus, and counts."""
    every = [row for corpus in rows.values() for row in corpus]
    limit = float(np.percentile([row["perplexity_seed"] for row in every], PERCENTILE))
    passed = {
        kind: [row for row in every if row.get(f"perplexity_{kind}", np.inf) <= limit]
        for kind in ("generated", "random")
    }
    both = {
        name: [
            row
            for row in corpus
            if all(row.get(f"perplexity_{k}", np.inf) <= limit for k in ("generated", "random"))
        ]
        for name, corpus in rows.items()
    }
    counts: Row = {"seeds": {name: len(corpus) for name, corpus in rows.items()}}
    for kind in ("generated", "random"):
        counts[kind] = sum(row[kind] is not None for row in every)
        counts[f"{kind}_fluent"] = len(passed[kind])
    counts["used"] = {name: len(corpus) for name, corpus in both.items()}
    return limit, both, counts


def collect(named: Sequence[str], held_out: Sequence[str], most: int) -> Row:
    """What is used of the corpora: seeds, plain sentences, and sentences of the held-out one."""
    material: Row = {"seeds": {}, "plain": {}, "pronouns": {}}
    for number, (name, lines) in enumerate(read_corpora(named).items()):
        material["seeds"][name] = choose_seeds(lines, most, np.random.default_rng([0, number]))
        for k, arm in enumerate(ARMS[3:], 1):
            rng = np.random.default_rng([k, number])
            material[arm][name] = draw_plain(lines, most, rng, pronoun=arm == "pronouns")
    [lines] = read_corpora([f"held out={path}" for path in held_out]).values()
    accepted = list({str(row["masked"]): str(row["sentence"]) for row in funnel(lines)[1]}.items())
    order = np.random.default_rng(3).permutation(len(accepted))
    material["held_out"] = [accepted[i] for i in order]
    material["held_out_plain"] = draw_plain(lines, most, np.random.default_rng(4), pronoun=False)
    return material


def prepare(options: argparse.Namespace) -> Row:
    """The texts of every arm and the sentences to measure on, written once."""
    path = options.out / "texts.json"
    if path.is_file():
        texts: Row = json.loads(path.read_text(encoding="utf-8"))
        return texts
    with gzip.open(options.material, "rt", encoding="utf-8") as file:
        material = json.load(file)
    model = load(options.model, device=options.device)
    cache = Cache(options.out / "answers")
    rows: dict[str, list[Row]] = {}
    for name, seeds in material["seeds"].items():
        done = options.out / f"edits-{name}.json"
        if not done.is_file():
            save_json(done, {"rows": edit(model, seeds, 0, cache)})
        rows[name] = json.loads(done.read_text(encoding="utf-8"))["rows"]
        print(f"{name}: {len(rows[name]):,} seeds edited", flush=True)
    limit, both, counts = fluent(rows)
    columns = {"generated": "generated", "seeds": "seed", "random": "random"}
    arms = {
        arm: [row[column] for chosen in both.values() for row in chosen]
        for arm, column in columns.items()
    }
    for arm in ARMS[3:]:
        arms[arm] = [
            text for name, chosen in both.items() for text in material[arm][name][: len(chosen)]
        ]
    learned = {counterfactual_key(text) for arm in arms.values() for text in arm}
    masked = [m for m, text in material["held_out"] if counterfactual_key(text) not in learned]
    plain = [t for t in material["held_out_plain"] if counterfactual_key(t) not in learned]
    cut = len(masked) // 3
    texts = {
        "counts": counts,
        "limit": limit,
        "arms": arms,
        "watched": masked[:cut],
        "measured": masked[cut : cut + options.measured],
        "plain": plain[: options.plain],
    }
    save_json(path, texts)
    return texts


def training_settings(options: argparse.Namespace, stop: str, seed: int) -> FinetuneSettings:
    """The settings of every training."""
    return FinetuneSettings(
        max_tokens=options.tokens,
        epochs=1000,
        batch=2,
        learning_rate=5e-5,
        evaluations=options.evaluations,
        patience=options.evaluations,
        held_out=HELD_OUT,
        evaluation=EVALUATION,
        rewrite="substitute",
        dtype="float32",
        stop=stop,
        seed=seed,
    )


def train(options: argparse.Namespace, texts: Row, arm: str, seed: int, stop: str) -> Row:
    """One run: fine-tune on the sentences of an arm, then measure; a finished one is read again."""
    folder = options.out / "runs" / f"{arm}-{seed}-{stop}"
    path = folder / "measured.json"
    if path.is_file():
        row: Row = json.loads(path.read_text(encoding="utf-8"))
        return row
    settings = training_settings(options, stop, seed)
    folder.parent.mkdir(exist_ok=True)
    given: Row = {"sentences": texts["measured"], "device": options.device}
    if stop == "ideal":
        given["watched"] = texts["watched"]
    result = finetune(options.model, texts["arms"][arm], settings, folder / "tuned", **given)
    model = load(folder / "tuned" / "model", device=options.device)
    row = {
        "arm": arm,
        "seed": seed,
        "stop": stop,
        "ended": result.training["ended"],
        "step": result.training["best"]["step"],
        "steps": result.training["steps"],
        "loss": result.training["evaluation_loss"],
        **measure(model, texts),
    }
    save_json(path, row)
    return row


def measure(model: MaskedModel, texts: Row) -> Row:
    """The scores of both kinds of sentences, of the watched ones, and the likelihoods."""
    kinds = {"held_out": texts["measured"], "watched": texts["watched"], "built_in": None}
    scores = {
        name: Pronouns()(model, sentences).items["full_bias"].tolist()
        for name, sentences in kinds.items()
    }
    log_probs, tokens = pseudo_log_likelihoods(model, texts["plain"])
    return {**scores, "log_probs": log_probs.tolist(), "tokens": tokens.tolist()}


def change(before: Row, runs: Sequence[Row], name: str, kind: str) -> np.ndarray:
    """The change of a score (seeds, sentences), of the mean bias or of the distance from .5."""
    first, after = np.array(before[name]), np.array([run[name] for run in runs])
    if kind == "distance":
        first, after = abs(first - 0.5), abs(after - 0.5)
    known = np.isfinite(first) & np.isfinite(after).all(axis=0)
    table: np.ndarray = (after - first)[:, known]
    return table


def log_ratio(before: Row, runs: Sequence[Row]) -> np.ndarray:
    """The logarithm of the ratio of perplexities, a share of it per sentence (seeds, sentences)."""
    tokens = np.array(before["tokens"])
    used = tokens > 0
    gain = np.array(before["log_probs"]) - np.array([run["log_probs"] for run in runs])
    table: np.ndarray = gain[:, used] / tokens[used].mean()
    return table


OUTCOMES = {
    "distance": lambda b, r: change(b, r, "held_out", "distance"),
    "bias": lambda b, r: change(b, r, "held_out", "bias"),
    "distance_built_in": lambda b, r: change(b, r, "built_in", "distance"),
    "bias_built_in": lambda b, r: change(b, r, "built_in", "bias"),
    "log_perplexity": log_ratio,
}
"""Tables of one value per training seed and sentence; the mean over all is the outcome."""


def tables(before: Row, runs: Mapping[str, Sequence[Row]]) -> Row:
    """Every outcome of every arm, and generated minus each control, with two-way intervals."""
    results: Row = {"before": {}, "arms": {}, "differences": {}}
    for name in ("held_out", "built_in"):
        bias = np.array(before[name])
        bias = bias[np.isfinite(bias)]
        results["before"][name] = {
            "n": len(bias),
            "bias": float(bias.mean()),
            "distance": float(abs(bias - 0.5).mean()),
        }
    for arm, several in runs.items():
        results["arms"][arm] = {}
        results["differences"][arm] = {}
        for outcome, table in OUTCOMES.items():
            own = table(before, several)
            results["arms"][arm][outcome] = crossed_mean(own)
            if arm != "generated" and "generated" in runs:
                difference = table(before, runs["generated"]) - own
                results["differences"][arm][outcome] = crossed_mean(difference)
    return results


COLUMNS = (
    *("arm", "seed", "stop", "ended", "step", "steps", "sentences", "tokens", "loss_before"),
    *("loss_after", "n", "bias", "distance", "bias_built_in", "distance_built_in"),
    *("bias_watched", "perplexity"),
)


def as_row(run: Row, sentences: int, tokens: int) -> Row:
    """One line of runs.csv."""
    row = {name: run[name] for name in ("arm", "seed", "stop", "ended", "step", "steps")}
    row |= {"sentences": sentences, "tokens": tokens}
    row |= {f"loss_{when}": run["loss"][when] for when in ("before", "after")}
    for end, name in (("", "held_out"), ("_built_in", "built_in"), ("_watched", "watched")):
        bias = np.array(run[name])
        bias = bias[np.isfinite(bias)]
        row |= {"bias" + end: float(bias.mean()), "distance" + end: float(abs(bias - 0.5).mean())}
        row.setdefault("n", len(bias))
    used = np.array(run["tokens"]) > 0
    loss = -np.array(run["log_probs"])[used].sum() / np.array(run["tokens"])[used].sum()
    return row | {"perplexity": float(np.exp(loss))}


def main() -> None:
    """Prepare the texts, train and measure every run, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="*", metavar="NAME=FILE[@FIRST:LAST]")
    parser.add_argument("--held-out", action="append", default=[], metavar="FILE[@FIRST:LAST]")
    parser.add_argument("--material", type=Path)
    parser.add_argument("--collect", action="store_true")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--model", default="mini")
    parser.add_argument("--most", type=int, default=500)
    parser.add_argument("--measured", type=int, default=300)
    parser.add_argument("--plain", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=50_000)
    parser.add_argument("--evaluations", type=int, default=25)
    parser.add_argument("--docs", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True, parents=True)
    options.material = options.material or options.out / "material.json.gz"
    if not options.material.is_file():
        material = json.dumps(collect(options.corpora, options.held_out, options.most))
        options.material.write_bytes(gzip.compress(material.encode(), mtime=0))
    if options.collect:
        return
    texts = prepare(options)
    counts = texts["counts"]
    print(f"{counts}\nfluent: pseudo-perplexity of at most {texts['limit']:.1f}", flush=True)
    untrained = {"arm": "before", "seed": 0, "stop": "", "ended": "", "step": 0, "steps": 0}
    untrained |= {"loss": {"before": np.nan, "after": np.nan}}
    before = {**untrained, **measure(load(options.model, device=options.device), texts)}
    runs: dict[str, dict[str, list[Row]]] = {}
    rows = [as_row(before, 0, 0)]
    for seed in range(options.seeds):
        for arm in ARMS:
            fixed = train(options, texts, arm, seed, "loss")
            stopped = train(options, texts, arm, seed, "ideal")
            for stop, run in (("loss", fixed), ("ideal", stopped)):
                runs.setdefault(stop, {}).setdefault(arm, []).append(run)
                rows.append(as_row(run, len(texts["arms"][arm]), options.tokens))
            print(f"{arm}, seed {seed}: done", flush=True)
            with (options.out / "runs.csv").open("w", newline="", encoding="utf-8") as file:
                table = csv.DictWriter(file, COLUMNS, extrasaction="ignore", lineterminator="\n")
                table.writeheader()
                table.writerows(
                    {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
                    for row in rows
                )
    tabulated = {stop: tables(before, several) for stop, several in runs.items()}
    results = document(counts=counts, limit=texts["limit"], **tabulated)
    save_json(options.out / "results.json", results)
    print(f"\n{describe(results)}")
    if options.docs:
        write_docs(describe(results), options.out, options.docs)


TITLES = {"loss": "a fixed amount of training", "ideal": "training stopped at the ideal"}
HEADS = (
    *("mean \\|bias - .5\\|", "mean bias", "mean \\|bias - .5\\|, built-in"),
    *("mean bias, built-in", "perplexity, ratio"),
)
LABELS = {
    "generated": "generated sentences",
    "seeds": "seeds alone",
    "random": "random edits",
    "plain": "plain sentences",
    "pronouns": "plain sentences with a pronoun",
}


def describe(results: Row) -> str:
    """The counts, the tables and the answer, in Markdown."""
    counts, first = results["counts"], results["loss"]["before"]
    used = ", ".join(f"{name} {n}" for name, n in counts["used"].items())
    held_out, built_in = first["held_out"], first["built_in"]
    lines = [
        f"Of {sum(counts['seeds'].values()):,} seeds, {counts['generated']:,} yielded a generated "
        f"sentence and {counts['random']:,} a random edit; {counts['generated_fluent']:,} and "
        f"{counts['random_fluent']:,} are fluent (pseudo-perplexity of at most "
        f"{results['limit']:.1f}). Each arm has {sum(counts['used'].values()):,} sentences "
        f"({used}).",
        f"Before the training the mean bias of the {held_out['n']} held-out sentences is "
        f"{held_out['bias']:.3f} and their mean distance from .5 {held_out['distance']:.3f}; of "
        f"the {built_in['n']} built-in ones {built_in['bias']:.3f} and {built_in['distance']:.3f}.",
    ]
    for stop, title in TITLES.items():
        for part, name in (("arms", "changes with"), ("differences", "generated minus")):
            rows = [
                f"| {LABELS[arm]} | {' | '.join(_cells(outcomes))} |"
                for arm, outcomes in results[stop][part].items()
                if outcomes
            ]
            head = f"| {title}: {name} | {' | '.join(HEADS)} |\n|{' --- |' * (len(HEADS) + 1)}"
            lines.append("\n".join([head, *rows]))
        lines.append(answer(results[stop], title))
    return "\n\n".join(lines)


def _cells(outcomes: Row) -> list[str]:
    cells = []
    for name, ends in outcomes.items():
        value, low, high = np.exp(ends) if name == "log_perplexity" else ends
        cells.append(f"{value:.3f} [{low:.3f}, {high:.3f}]")
    return cells


def answer(result: Row, title: str) -> str:
    """Whether the generated sentences helped more than each control, by the rule above."""
    before = result["before"]["held_out"]["bias"]
    after = before + result["arms"]["generated"]["bias"][0]
    crossed = (before - 0.5) * (after - 0.5) < 0
    more = "more than" if not crossed else "to less distance from .5, but on its other side, than"
    kinds: dict[str, list[str]] = {}
    for arm, outcomes in result["differences"].items():
        if outcomes:
            _, low, high = outcomes["distance"]
            verdict = more if high < 0 else "less than" if low > 0 else "not clearly more than"
            kinds.setdefault(verdict, []).append(LABELS[arm])
    parts = [f"{verdict} {', '.join(arms)}" for verdict, arms in kinds.items()]
    side = f"; the mean bias went to the other side of .5 ({after:.3f})" if crossed else ""
    return f"**With {title}, generated sentences helped {'; '.join(parts)}**{side}."


def write_docs(description: str, out: Path, docs: Path) -> None:
    """Put the description into experiments/generate.md, and the runs beside the other results."""
    page = docs / "experiments" / "generate.md"
    begin, end = "<!-- results of generate_controls.py -->", "<!-- end of results -->"
    head, _, rest = page.read_text(encoding="utf-8").partition(begin)
    _, found, tail = rest.partition(end)
    if not found:
        raise SystemExit(f"{page}: expected {begin} and {end}")
    text = f"{head}{begin}\n{description}\n{end}{tail}"
    page.write_text(text, encoding="utf-8")
    target = docs / "results" / "generate-controls.csv"
    target.parent.mkdir(exist_ok=True)
    target.write_bytes((out / "runs.csv").read_bytes())


if __name__ == "__main__":
    main()
