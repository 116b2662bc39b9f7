"""The experiment of El Zein (2021, §5.3): an encoder tuned on each of five versions of a corpus.

    python benchmarks/corpus_versions.py bios.csv --prepare versions.jsonl.gz [--texts N]
    python benchmarks/corpus_versions.py versions.jsonl.gz --out FOLDER [--workers 6]
    python benchmarks/corpus_versions.py --figure FOLDER

The first line rewrites labelled biographies: as they are (original), every person of the gender
that the class leans to (pro) or of the other (anti), without gender (neutral), and with a copy of
the other gender of every text (balanced). The second tunes a masked language model on each version
(blocks of 256 tokens, 30 epochs, §5.2) and measures it before and after: the association of
professions with men and women, the pronoun score of the built-in sentences, the pseudo-perplexity
of sentences of other biographies. Then a few-shot classifier on its frozen features is trained and
tested twice: on the original corpus (the fixed test set of §5.2) and on the encoder's own version.
The untuned model is tested on all five. A step that is done is not repeated when the same command
runs again. FOLDER gets settings.json and, as docs/results has them, curves.csv.gz and
results.csv.gz; the third line draws loss.svg (Figure 3 for all versions) and prints the tables from
these two files.

The balanced version has twice the text, so it is tuned for half the epochs: all encoders learn from
the same number of tokens. A text and its copy are never one in training and the other in the
evaluation of the loss, or one in the support and the other among the queries.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "2")

import numpy as np

import evenhand as eh
from evenhand.fewshot.data import FEMALE, MALE, Dataset, read
from evenhand.fewshot.settings import EpisodeCounts, RunSettings, TrainingSettings
from evenhand.files import document, read_document, replace_file, save_json
from evenhand.results import Comparison, Measurement, Measurements, load
from published import drop_zero, read_rows, save_rows

VERSIONS = ("original", "pro", "anti", "neutral", "balanced")
UNTUNED = "untuned"
CURVES, RESULTS = "curves.csv.gz", "results.csv.gz"
HELD_OUT = 300
"""Sentences of the pseudo-perplexity."""
CODES = {"M": MALE, "F": FEMALE, "": -1}


def prepare(source: str, target: Path, *, at_least: int, texts: int, seed: int = 0) -> None:
    """Write every text in its versions, in random order, then sentences of left-out classes."""
    from evenhand.fewshot.mitigation import neutralize, swap_gender

    everything = read(source)
    data = everything.at_least(at_least)
    leaning = {
        name: side
        for name, side in zip(data.classes, data.leaning, strict=True)
        if side in ("male", "female")
    }
    order = np.random.default_rng(seed).permutation(len(data))[: texts or None]
    chosen = [data.texts[row] for row in order]
    labels = [data.classes[data.labels[row]] for row in order]
    genders = [{MALE: "M", FEMALE: "F"}.get(int(data.genders[row]), "") for row in order]
    columns = {
        "original": chosen,
        **{
            version: [
                text.text
                for text in eh.text.stereotype(
                    chosen, labels, genders, version, leaning=leaning, seed=seed
                )
            ]
            for version in ("pro", "anti")
        },
        "neutral": neutralize(chosen),
        "swapped": swap_gender(chosen, seed=seed),
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    with replace_file(target) as file, gzip.GzipFile("", "wb", 9, file, mtime=0) as packed:

        def write(row: Mapping[str, Any]) -> None:
            packed.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")

        write({"source": data.name, "leaning": leaning})
        for number, (label, gender) in enumerate(zip(labels, genders, strict=True)):
            versions = {name: column[number] for name, column in columns.items()}
            write({"label": label, "gender": gender, **versions})
        for sentence in held_out(everything, {*data.classes}):
            write({"held_out": sentence})
    print(f"{target}: {len(chosen):,} texts, {target.stat().st_size / 1e6:.1f} MB")


def held_out(data: Dataset, classes: set[str]) -> Iterator[str]:
    """A sentence of 8 to 30 words from each of some texts of the other classes."""
    from evenhand.text.tokens import sentences

    found = 0
    for text, label in zip(data.texts, data.labels.tolist(), strict=True):
        if data.classes[label] in classes:
            continue
        for start, end in sentences(text):
            if 8 <= len(text[start:end].split()) <= 30:
                yield text[start:end]
                found += 1
                break
        if found == HELD_OUT:
            return


@dataclass(frozen=True)
class Corpus:
    """The prepared texts."""

    rows: Sequence[Mapping[str, str]]
    leaning: Mapping[str, str]
    held_out: Sequence[str]
    source: str

    @classmethod
    def read(cls, path: Path, texts: int, fewest: int) -> Corpus:
        """The first texts of a file, of the classes that have enough of them."""
        with gzip.open(path, "rt", encoding="utf-8") as file:
            about, *rows = map(json.loads, file)
        labelled = [row for row in rows if "label" in row][: texts or None]
        names = [row["label"] for row in labelled]
        large = {name for name in set(names) if names.count(name) >= fewest}
        return cls(
            [row for row in labelled if row["label"] in large],
            about["leaning"],
            [row["held_out"] for row in rows if "held_out" in row],
            about["source"],
        )

    def tuning_texts(self, version: str, evaluation: float) -> list[str]:
        """What the encoder is tuned on."""
        if version != "balanced":
            return [row[version] for row in self.rows]
        from evenhand.models.finetuning.text import collect

        pairs = [(row["original"], row["swapped"]) for row in self.rows]
        both = [text for pair in pairs for text in dict.fromkeys(pair)]
        parts = collect(both, held_out=0, evaluation=evaluation, max_tokens=10**12)
        evaluated = {*parts.evaluation}
        return [
            text
            for pair in pairs
            for text in dict.fromkeys(pair)
            if text in evaluated or evaluated.isdisjoint(pair)
        ]

    def dataset(self, version: str) -> Dataset:
        """What the few-shot classifier is trained and tested on, always in the same order.

        That of balanced is the original: `augment` adds the copies to its episodes.
        """
        name = "original" if version == "balanced" else version
        classes = tuple(sorted({row["label"] for row in self.rows}))
        genders = [CODES[row["gender"]] for row in self.rows]
        if version in ("pro", "anti"):
            sides = [self.leaning.get(row["label"]) for row in self.rows]
            genders = [
                gender if side is None or gender < 0 else (side == "male") == (version == "anti")
                for side, gender in zip(sides, genders, strict=True)
            ]
        return Dataset(
            texts=tuple(row[name] for row in self.rows),
            labels=np.array([classes.index(row["label"]) for row in self.rows]),
            genders=np.array(genders),
            classes=classes,
            name=f"{self.source}, {name}",
            leaning_by={name: self.leaning[name] for name in classes if name in self.leaning},
        )


def work(job: dict[str, Any]) -> str:
    """Tune, measure and test one encoder; everything is saved under its name."""
    encoder, out = job["encoder"], Path(job["out"])
    corpus = Corpus.read(Path(job["data"]), job["texts"], job["shots"] + job["queries"])
    folder = out / encoder
    folder.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    model = job["model"]
    if encoder != UNTUNED:
        model = tune(job, corpus, folder)
    tuned = time.perf_counter()
    measure(job, corpus, folder, model)
    for version in VERSIONS if encoder == UNTUNED else dict.fromkeys(("original", encoder)):
        classify(job, corpus, folder, model, version)
    seconds = f"tuned in {tuned - started:.0f} s, rest {time.perf_counter() - tuned:.0f} s"
    print(f"{encoder}: {seconds}", flush=True)
    return str(encoder)


def tune(job: Mapping[str, Any], corpus: Corpus, folder: Path) -> str:
    """The folder of the tuned model."""
    from evenhand.models.finetuning.training import FinetuneSettings, finetune

    version, epochs = job["encoder"], job["epochs"]
    settings = FinetuneSettings(
        rewrite="none",
        measure=False,
        epochs=max(1, epochs // 2) if version == "balanced" else epochs,
        max_tokens=0,
        block=job["block"],
        batch=job["batch"],
        learning_rate=job["learning_rate"],
        evaluations=job["evaluations"],
        patience=job["evaluations"] + 1,
        seed=job["seed"],
    )
    texts = corpus.tuning_texts(version, settings.evaluation)
    finetune(job["model"], texts, settings, folder / "tuned", device=job["device"])
    return str(folder / "tuned" / "model")


def measure(job: Mapping[str, Any], corpus: Corpus, folder: Path, source: str) -> None:
    """The bias of the language model and its pseudo-perplexity, each in a file."""
    from evenhand.models import load as load_model
    from evenhand.models.metrics.perplexity import Perplexity
    from evenhand.models.metrics.professions import Professions
    from evenhand.models.metrics.pronouns import Pronouns
    from evenhand.models.sentences import built_in_sentences

    instruments = {
        "professions": Professions(),
        "pronouns": lambda model: Pronouns()(model, built_in_sentences()),
        "perplexity": lambda model: Perplexity()(model, corpus.held_out[: job["sentences"]]),
    }
    missing = {name: f for name, f in instruments.items() if not (folder / f"{name}.json").exists()}
    if missing:
        model = load_model(source, device=job["device"])
        for name, function in missing.items():
            function(model).save(folder / f"{name}.json")


def classify(
    job: Mapping[str, Any], corpus: Corpus, folder: Path, encoder: str, version: str
) -> None:
    """Train and test each network on one version of the corpus, in a folder of its own."""
    from evenhand.fewshot.features import FeatureStore
    from evenhand.fewshot.runs import run
    from evenhand.fewshot.splits import make_splits

    targets = {name: fewshot_folder(folder, version, name) for name in job["network"]}
    if all((target / "results.json").exists() for target in targets.values()):
        return
    dataset = corpus.dataset(version)
    store = FeatureStore(
        dataset, encoder, Path(job["out"]) / "features", limit=job["block"], device=job["device"]
    )
    for name, target in targets.items():
        settings = RunSettings(
            training=TrainingSettings(
                network=name, seed=job["seed"], validate_every=1000, patience=3
            ),
            ways=job["ways"],
            shots=job["shots"],
            queries=job["queries"],
            splits=job["splits"],
            limit=job["block"],
            episodes=EpisodeCounts.parse(job["episodes"]),
            mitigation="augment" if version == "balanced" else "none",
            mitigate="all",
        )
        splits = make_splits(corpus.dataset("original"), job["splits"])
        run(dataset, settings, target, splits=splits, store=store)


def fewshot_folder(folder: Path, version: str, network: str) -> Path:
    """Where a classifier on the features of an encoder is saved."""
    return folder / "fewshot" / f"{version}-{network}"


def collect_results(
    out: Path, networks: Sequence[str]
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The points of the loss curves, and one row per encoder, data, network and measure."""
    curves, rows = [], []
    encoders = (UNTUNED, *VERSIONS)
    for encoder in VERSIONS:
        result = read_document(out / encoder / "tuned" / "results.json")
        curves += [{"version": encoder, **point} for point in result["curve"]]
    for name in ("professions", "pronouns", "perplexity"):
        measured = {encoder: load(out / encoder / f"{name}.json") for encoder in encoders}
        for encoder, m in measured.items():
            change = None if encoder == UNTUNED else eh.compare(measured[UNTUNED], m)
            against = None if encoder in (UNTUNED, "original") else measured["original"]
            second = None if against is None else eh.compare(against, m)
            # the change is over all sentences, the value over those that are decided
            shown = m.part("all sentences", by="subset") if name == "pronouns" else m
            parts = [(shown.query, shown, change, second)]
            if name == "professions" and m.select("contrast"):
                found = [None if c is None else next(iter(c.parts), None) for c in (change, second)]
                part = m.select("contrast")[0]
                parts.append((part.query, part, *found))
            for query, part, *changes in parts:
                rows.append(result_row(encoder, "", "", name, query, part, *changes))
    for network in networks:
        for version in VERSIONS:
            tested = encoders if version == "original" else (UNTUNED, version)
            measured = {
                encoder: load(fewshot_folder(out / encoder, version, network) / "results.json")
                for encoder in tested
            }
            for encoder, results in measured.items():
                own = {
                    (m.metric, m.query): result_row(encoder, version, network, m.metric, m.query, m)
                    for m in fewshot_parts(results)
                }
                for column, other in (("change", UNTUNED), ("to_original", "original")):
                    if encoder == UNTUNED or other == encoder or other not in measured:
                        continue
                    for c in fewshot_changes(measured[other], results):
                        if (c.metric, c.query) in own:
                            own[c.metric, c.query].update(columns(column, c))
                rows.extend(own.values())
    return curves, rows


BIAS = "fewshot_bias"
KEYS = ("encoder", "data", "network", "metric", "query")


def fewshot_parts(results: Measurements) -> Iterator[Measurement]:
    """Accuracy, and the measures of bias, those of eq. 20 and 21 too."""
    yield results["accuracy"]
    if BIAS in {m.metric for m in results}:
        yield from results[BIAS].select("measure")
        yield from results[BIAS].select("original")


def fewshot_changes(before: Measurements, after: Measurements) -> Iterator[Comparison]:
    """The differences of what `fewshot_parts` has, on the same queries."""
    yield eh.compare(before["accuracy"], after["accuracy"])
    if BIAS in {m.metric for m in after}:
        change = eh.compare(before[BIAS], after[BIAS])
        yield from (change, *change.parts)


def columns(name: str, c: Comparison | None) -> dict[str, float | None]:
    """A change and its interval as cells."""
    if c is None:
        return {name: None, f"{name}_low": None, f"{name}_high": None}
    return {name: c.change.value, f"{name}_low": c.change.low, f"{name}_high": c.change.high}


def result_row(
    encoder: str,
    data: str,
    network: str,
    metric: str,
    query: str,
    m: Measurement,
    change: Comparison | None = None,
    to_original: Comparison | None = None,
) -> dict[str, Any]:
    """A measurement, its change from the untuned model and its difference from `original`."""
    return {
        **dict(zip(KEYS, (encoder, data, network, metric, query), strict=True)),
        "value": m.value,
        "low": m.low,
        "high": m.high,
        "p_value": m.p_value,
        "n": m.n,
        **columns("change", change),
        **columns("to_original", to_original),
    }


def draw(out: Path) -> None:
    """Evaluation and training loss by version, as Figure 3 has them for one."""
    from evenhand.charts import BLUE, GREEN, GREY, ORANGE, PURPLE, curves, panels, to_svg

    points = read_rows(out / CURVES)
    colours = dict(zip(VERSIONS, (GREY, BLUE, ORANGE, GREEN, PURPLE), strict=True))
    charts = [
        curves(
            [
                {
                    "step": int(point["step"]),
                    "loss": float(point[part]),
                    "series": point["version"],
                }
                for point in points
                if point[part]
            ],
            {version: (colour, (1, 0)) for version, colour in colours.items()},
            x="step",
            y="loss",
            x_title="step",
            y_title="loss at hidden tokens (nats)",
            title=f"{part} text",
            y_scale={"zero": False, "nice": True},
            x_axis={"tickMinStep": 1, "format": ",d"},
            width=340,
            columns=5,
        )
        for part in ("evaluation", "training")
    ]
    (out / "loss.svg").write_text(
        to_svg(panels(charts, columns=2, title="Loss while tuning on five versions of a corpus")),
        encoding="utf-8",
    )


def print_tables(out: Path) -> None:
    """Print the results in Markdown: the language models, then the classifiers."""

    def cell(row: Mapping[str, str], name: str) -> str:
        ends = (
            ("value", "low", "high") if name == "value" else (name, f"{name}_low", f"{name}_high")
        )
        if not row[ends[0]]:
            return ""
        texts = [f"{float(row[end]):.3f}" if row[end] else "–" for end in ends]
        value, low, high = map(drop_zero, texts)
        return f"{value} [{low}, {high}]"

    rows = read_rows(out / RESULTS)
    shown = ("value", "change", "to_original")
    for network in dict.fromkeys(row["network"] for row in rows):
        heads = ("encoder", "data", "measure") if network else ("encoder", "measure")
        columns = ("value", "change from untuned", "difference from original")
        print(f"\n{network or 'language models'}\n\n| {' | '.join((*heads, *columns))} |")
        print("| --- " * len(heads) + "| ---: " * len(columns) + "|")
        for row in rows:
            if row["network"] == network:
                name = row["metric"] if row["metric"] in PLAIN else row["query"]
                begin = [row["encoder"], *([row["data"]] if network else []), name]
                print(f"| {' | '.join([*begin, *(cell(row, key) for key in shown)])} |")


def loss_table(out: Path) -> str:
    """Training loss (mean of the first epoch, highest, last) and evaluation loss by version."""
    points = read_rows(out / CURVES)
    lines = []
    for version in dict.fromkeys(point["version"] for point in points):
        cells = []
        for part in ("training", "evaluation"):
            losses = [float(p[part]) for p in points if p["version"] == version and p[part]]
            cells += [f"{loss:.2f}" for loss in (losses[0], max(losses), losses[-1])]
        lines.append(f"| {version} | {' | '.join(cells)} |")
    return "\n".join(lines)


PLAIN = ("accuracy", "pronouns", "perplexity")


def main(given: Sequence[str] | None = None) -> None:
    """Prepare, run or draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", nargs="?")
    parser.add_argument("--prepare", type=Path, metavar="FILE")
    parser.add_argument("--figure", type=Path, metavar="FOLDER")
    parser.add_argument("--out", type=Path, default=Path("corpus-versions"))
    parser.add_argument("--texts", type=int, default=0, help="0: all")
    parser.add_argument("--at-least", type=int, default=100)
    parser.add_argument("--model", default="mini", help="needs a masked-language-model head")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=30)
    parser.add_argument("--block", type=int, default=256)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--learning-rate", type=float, default=2e-4)
    parser.add_argument("--evaluations", type=int, default=30)
    parser.add_argument("--sentences", type=int, default=HELD_OUT)
    parser.add_argument("--network", nargs="+", default=["proto-euclidean", "matching-cosine"])
    parser.add_argument("--ways", type=int, default=5)
    parser.add_argument("--shots", type=int, default=6)
    parser.add_argument("--queries", type=int, default=6)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--episodes", default="10000/600/600")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args(given)
    if arguments.figure:
        draw(arguments.figure)
        print(loss_table(arguments.figure))
        print_tables(arguments.figure)
        return
    if arguments.data is None:
        parser.error("expected DATA")
    if arguments.prepare:
        prepare(
            arguments.data, arguments.prepare, at_least=arguments.at_least, texts=arguments.texts
        )
        return
    jobs = [{**vars(arguments), "encoder": name} for name in (*VERSIONS[::-1], UNTUNED)]
    if arguments.workers > 1:
        with ProcessPoolExecutor(arguments.workers, mp_context=get_context("spawn")) as pool:
            list(pool.map(work, jobs))
    else:
        for job in jobs:
            work(job)
    curves, rows = collect_results(arguments.out, arguments.network)
    for name, table in ((CURVES, curves), (RESULTS, rows)):
        save_rows(arguments.out / name, [[*table[0]], *([*row.values()] for row in table)])
    settings = {key: value for key, value in vars(arguments).items() if key not in ("out", "data")}
    save_json(arguments.out / "settings.json", document(settings=settings))
    print_tables(arguments.out)


if __name__ == "__main__":
    main()
