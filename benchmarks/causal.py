"""Causal language models: likelihoods of sentence pairs, ours / usual way / limit, in one run.

    python benchmarks/causal.py MODEL [--pairs 1000] [--threads 1] [--device cpu] [--plain 100]
        [--dtype float32]

MODEL is a folder or a GGUF file. The pairs are made here: sentences of about 16 words that differ
in one word, as in CrowS-Pairs. The usual way is one call of transformers per sentence, in float32.
The limit is the time of the matrix products of the distinct tokens alone. Rates are sentences per
second of processor time on a CPU, and on the clock elsewhere.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable

import numpy as np
import torch

from evenhand.models.causal import CausalModel, load
from evenhand.models.causal_scoring import log_likelihoods
from evenhand.models.trees import grow

NAME_TEXT = "woman man nurse doctor driver clerk farmer singer judge cook guard poet lawyer pilot"
NAMES = NAME_TEXT.split()
WORD_TEXT = (
    "opened the door and took a coat said that it was late again gave small box sat down while "
    "they read letter from office smiled before left today at noon in town after long walk home"
)
WORDS = WORD_TEXT.split()


def make_pairs(count: int) -> list[str]:
    """Sentences in pairs that differ in one word, at a random place."""
    rng = np.random.default_rng(0)
    texts = []
    for _ in range(count):
        words = [WORDS[i] for i in rng.integers(len(WORDS), size=rng.integers(11, 20))]
        place = rng.integers(1, len(words))
        for name in rng.choice(NAMES, 2, replace=False):
            text = " ".join([*words[:place], str(name), *words[place:]])
            texts.append(f"{text.capitalize()}.")
    return texts


def timed(work: Callable[[], object], device: torch.device) -> float:
    """Processor time, or the time on the clock of a GPU."""
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    start = clock()
    work()
    return clock() - start


@torch.inference_mode()
def usual(model: CausalModel, rows: list[list[int]]) -> list[float]:
    """One call per sentence."""
    values = []
    for row in rows:
        ids = torch.tensor([row], device=model.device)
        log_probs = model.network(input_ids=ids).logits[0, :-1].float().log_softmax(-1)
        values.append(float(log_probs.gather(1, ids[0, 1:, None]).double().sum()))
    return values


@torch.inference_mode()
def products(model: CausalModel, rows: list[list[int]]) -> None:
    """The matrix products of the distinct tokens of all rows."""
    decoder = model.decoder
    assert decoder is not None  # noqa: S101
    trees = list(grow([np.array(row) for row in rows]))
    for start in range(0, sum(map(len, trees)), 2048):
        count = min(2048, sum(map(len, trees)) - start)
        states = torch.randn(count, decoder.head.shape[1], device=model.device)
        states = states.to(decoder.head.dtype)
        for layer in decoder.layers:
            layer.qkv(states)
            layer.out(states)
            layer.feed(states)
        for part in states.split(341):
            part @ decoder.head.T


def main() -> None:
    """Print one line per way."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("--pairs", type=int, default=1000)
    parser.add_argument("--plain", type=int, default=100, help="sentences of the usual way")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", default="float32", choices=["float32", "bfloat16", "float16"])
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    exact = load(given.model, device=given.device)
    model = exact
    if given.dtype != "float32":
        model = load(given.model, device=given.device, dtype=given.dtype)
    texts = make_pairs(given.pairs)
    rows = [[model.begin or 0, *coded.ids] for coded in model.encode(texts)]
    log_likelihoods(model, rows[:8])
    usual(exact, rows[:2])
    step = max(1, len(rows) // given.plain)
    some = rows[::step]
    ours = len(rows) / timed(lambda: log_likelihoods(model, rows), model.device)
    plain = len(some) / timed(lambda: usual(exact, some), model.device)
    limit = len(rows) / timed(lambda: products(model, rows), model.device)
    differences = np.abs(log_likelihoods(model, some) - usual(exact, some))
    tokens = sum(map(len, rows))
    distinct = sum(len(tree) for tree in grow([np.array(row) for row in rows]))
    print(f"{model.name}: {len(rows):,} sentences, {tokens:,} tokens, {distinct:,} distinct")
    print(f"{f'ours, {given.dtype}':<40}{ours:>10.1f} sentences/s")
    print(
        f"{'usual way: one call per sentence':<40}{plain:>10.1f}  ours is {ours / plain:.1f} times"
    )
    print(
        f"{'limit: matrix products alone':<40}{limit:>10.1f}  {limit / plain:.1f} times the usual "
        f"way; ours is {ours / limit:.2f} of it"
    )
    length = tokens / len(rows)
    print(f"log-likelihoods differ by {differences.max():.1e} at most, of {length:.0f} tokens")


if __name__ == "__main__":
    main()
