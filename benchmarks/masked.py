"""Masked language models: ours, the usual ways and the floor, in one run.

    python benchmarks/masked.py [--model mini] [--sentences 1000] [--threads 1] [--json]

Sentences a second with tokenisation on all sides: of processor time with one thread, of time on
the clock with several. The ways take turns, round by round, so that other work on the machine
strikes all alike; a rate is the best round's, a ratio that of the rates. The slow ways get a
part of the sentences. `floor` is the arithmetic alone at the rate of
the model's own matrix products, measured in the same rounds. The sentences are SWAG's from
../shared, or made up here where that is absent.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

import masked_ways as ways
from evenhand.models import load
from evenhand.models.masked import MaskedModel


@dataclass
class Way:
    """One way to do the work, on so many units a round."""

    name: str
    work: Callable[[], object]
    units: float
    seconds: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return self.units / min(self.seconds)


def take_turns(listed: Sequence[Way], rounds: int) -> None:
    """Every way once to warm up, then all of them in every round."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    for way in listed:
        way.work()
    for _ in range(rounds):
        for way in listed:
            start = clock()
            way.work()
            way.seconds.append(clock() - start)


def on_sentences(
    model: MaskedModel, plain: MaskedModel, int8: MaskedModel | None, texts: list[str]
) -> list[Way]:
    """All ways to score sentences with one mask; ours first, the usual ones with `plain`."""
    some, few = texts[: max(ways.BATCH * 4, len(texts) // 8)], texts[:50]
    batched, single = ways.pipeline(plain, ways.BATCH), ways.pipeline(plain, None)
    listed = [Way("ours, float32", lambda: ways.ours(model, texts), len(texts))]
    if int8 is not None:
        listed.append(Way("ours, int8", lambda: ways.ours(int8, texts), len(texts)))
    return [
        *listed,
        Way("ours, the whole pronoun score", lambda: ways.score(model, texts), len(texts)),
        Way("fill-mask pipeline, batch 32", lambda: batched(some), len(some)),
        Way("usual padded batch of 32", lambda: ways.padded(plain, some), len(some)),
        Way("fill-mask pipeline, one at a time", lambda: single(few), len(few)),
        Way("plain call, one at a time", lambda: ways.padded(plain, few, 1), len(few)),
    ]


def int8_error(model: MaskedModel, int8: MaskedModel, texts: list[str]) -> dict[str, float]:
    """How far eight bits are from float32 on these sentences."""
    exact, found = (np.asarray(ways.ours(each, texts)) for each in (model, int8))

    def bias(logs: np.ndarray) -> np.ndarray:
        male, female = (np.exp(logs[:, columns]).max(axis=1) for columns in ([0, 2, 4], [1, 3]))
        return np.asarray(male / (male + female))

    apart, change = np.abs(found - exact), bias(found) - bias(exact)
    return {
        "sentences": len(texts),
        "log_prob_mean": float(apart.mean()),
        "log_prob_max": float(apart.max()),
        "bias_change": float(change.mean()),
        "bias_change_mean": float(np.abs(change).mean()),
        "bias_change_max": float(np.abs(change).max()),
    }


def measured(given: argparse.Namespace) -> dict[str, object]:
    """All tables as one document."""
    model, plain = (load(given.model, device="cpu") for _ in range(2))
    int8 = None if given.no_int8 else load(given.model, device="cpu", int8=True)
    texts, source = ways.sentences(model, given.sentences)
    repeated, repeated_source = ways.associations(model)
    asked, pair_source = ways.pairs(model, given.pairs)
    part, few = repeated[:: max(1, len(repeated) // 320)], asked[: max(1, given.pairs // 20)]
    work, per_round = ways.products(model)
    products = Way("products", work, per_round)
    scoring = on_sentences(model, plain, int8, texts)
    association = [
        Way("ours", lambda: ways.ours_associations(model, repeated), len(repeated)),
        Way("usual padded batch of 32", lambda: ways.padded(plain, part), len(part)),
    ]
    likelihood = [
        Way("ours", lambda: ways.ours_pairs(model, asked), len(asked)),
        Way("one call a token, whole head", lambda: ways.naive_pairs(plain, few), len(few)),
    ]
    take_turns([products, *scoring, *association, *likelihood], given.rounds)
    distinct = len(set(texts))
    floor = products.rate / ways.operations(model, texts) * distinct

    def table(listed: list[Way]) -> list[dict[str, object]]:
        best = listed[0].rate
        return [{"way": w.name, "rate": w.rate, "ours_is": best / w.rate} for w in listed]

    rows = table(scoring)
    rows.append({"way": "floor", "rate": floor, "ours_is": scoring[0].rate / floor})
    lengths = [len(ids) for ids in model.tokenizer(texts)["input_ids"]]
    return {
        "model": model.name, "threads": torch.get_num_threads(), "rounds": given.rounds,
        "clock": "processor" if torch.get_num_threads() == 1 else "wall",
        "source": source, "sentences": len(texts), "tokens": float(np.mean(lengths)),
        "gigaflops": products.rate / 1e9, "scoring": rows,
        "association": {"source": repeated_source, "inputs": len(repeated),
                        "distinct": len(set(repeated)), "rows": table(association)},
        "likelihood": {"source": pair_source, "pairs": len(asked), "rows": table(likelihood)},
        "int8_error": None if int8 is None else int8_error(model, int8, texts[:500]),
    }  # fmt: skip


def show(result: dict[str, object]) -> None:
    """The tables for reading."""
    association, likelihood, error = (
        result["association"],
        result["likelihood"],
        result["int8_error"],
    )
    titles = [
        (f"{result['sentences']:,} sentences ({result['source']}), {result['tokens']:.1f} tokens",
         result["scoring"], "sentences/s"),
        (f"{association['inputs']:,} masked inputs ({association['source']}), "
         f"{association['distinct']:,} distinct", association["rows"], "inputs/s"),
        (f"pseudo-log-likelihood of {likelihood['pairs']:,} pairs ({likelihood['source']})",
         likelihood["rows"], "pairs/s"),
    ]  # fmt: skip
    threads = result["threads"]
    print(f"{result['model']}, {threads} thread{'s' if threads > 1 else ''},", end=" ")
    print(f"matrix products at {result['gigaflops']:.0f} GFLOP/s")
    for title, rows, unit in titles:
        print(f"\n{title}\n{'':<36}{unit:>14}{'ours is':>10}")
        for row in rows:
            print(f"{row['way']:<36}{row['rate']:>14,.1f}{row['ours_is']:>9.2f}x")
    if error:
        print(
            f"\nint8 against float32, {error['sentences']} sentences: log p off by"
            f" {error['log_prob_mean']:.3f} on average, {error['log_prob_max']:.2f} at most;"
            f" bias score {error['bias_change']:+.4f} on average, by"
            f" {error['bias_change_mean']:.4f} a sentence, {error['bias_change_max']:.3f} at most"
        )


def main() -> None:
    """Print the tables, or one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="mini", help="mini, a folder or hf:NAME")
    parser.add_argument("--sentences", type=int, default=1000)
    parser.add_argument("--pairs", type=int, default=60, help="pairs for the likelihood")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--no-int8", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    warnings.simplefilter("ignore")  # the pipeline's remarks on how it is called
    result = measured(given)
    if given.json:
        print(json.dumps(result, indent=2))
    else:
        show(result)


if __name__ == "__main__":
    main()
