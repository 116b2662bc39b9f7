"""Masked language models on a GPU: ours, the usual way and the limits, in one run.

    python benchmarks/masked_gpu.py [--out FOLDER] [--device cuda] [--dtype bfloat16]
                                    [--sentences 100000] [--models base,mini] [--quick]

For a network of the size of BERT-base (12 layers of 768, random weights, a vocabulary of 30,522)
and for the embedded mini, on distinct short sentences that are made here:

- `masked score`: reading sentences, tokenizing, scoring, writing the items as CSV, intervals;
- the core: positions that are tokenized already, the pronouns and the ten likeliest words;
- the usual way: transformers, sorted and padded batches of 256, the head at the mask;
- the limits: the matrix products of the pass alone, and the tokenizer alone.

Last, log p of the pronouns on 200 sentences against float32 on the CPU. Rates are sentences per
second on the clock, the best of the rounds. Figures are printed as they come, and written as
masked_gpu.json into the folder given with --out.
"""

from __future__ import annotations

import argparse
import json
import shutil
import tempfile
import time
from collections.abc import Callable
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evenhand.models import load
from evenhand.models.gender_words import mask_queries
from evenhand.models.masked import MaskedModel
from evenhand.models.masked_scoring import MaskedPositions, query_tokens
from evenhand.models.metrics.pronouns import Pronouns

TEXT = (
    "the a old young nurse doctor driver clerk farmer singer judge cook guard poet opened door and "
    "took coat said that was late again gave small box sat down while read letter from office "
    "smiled before left today noon town after long walk home day river garden school market horse "
    "bread table window street"
)
WORDS = TEXT.split()
PRONOUNS = ("he", "she", "his", "her", "him")
USUAL_BATCH = 256
BASE_VOCABULARY = 30_522
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.txt",
    "special_tokens_map.json",
)


def sentences(count: int) -> list[str]:
    """Distinct sentences of 17 words on average, with one mask each."""
    rng = np.random.default_rng(0)
    made: dict[str, None] = {}
    while len(made) < count:
        words = [WORDS[i] for i in rng.integers(len(WORDS), size=rng.integers(11, 22))]
        words[rng.integers(1, len(words))] = "[MASK]"
        made[f"{words[0].capitalize()} {' '.join(words[1:])}."] = None
    return list(made)


def save_base(folder: Path, *, quick: bool) -> None:
    """A network of the size of BERT-base with random weights and the tokenizer of mini."""
    from transformers import BertConfig, BertForMaskedLM

    torch.manual_seed(0)
    shape = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2} if quick else {}
    config = BertConfig(
        vocab_size=BASE_VOCABULARY,
        max_position_embeddings=512,
        pad_token_id=0,
        **shape,
        **({"intermediate_size": 128} if quick else {}),
    )
    BertForMaskedLM(config).save_pretrained(folder)
    for name in TOKENIZER_FILES:
        with resources.as_file(resources.files("evenhand.assets") / "mini" / name) as path:
            shutil.copy(path, folder)


def synchronize(device: torch.device) -> None:
    """Wait for a GPU."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def timed(work: Callable[[], object], device: torch.device, rounds: int) -> float:
    """The seconds of the best round."""
    best = float("inf")
    for _ in range(rounds):
        synchronize(device)
        start = time.perf_counter()
        work()
        synchronize(device)
        best = min(best, time.perf_counter() - start)
    return best


class Table:
    """Rows that are printed as they come."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def add(self, model: str, way: str, count: int, seconds: float, **more: Any) -> float:
        rate = count / seconds
        self.rows.append({"model": model, "way": way, "rate": rate, "seconds": seconds, **more})
        extra = "  ".join(f"{name} {value:,.3g}" for name, value in more.items())
        print(f"{model:<6}{way:<52}{rate:>12,.0f}/s{seconds:>9.2f} s  {extra}", flush=True)
        return rate


@torch.inference_mode()
def usual(network: Any, rows: list[list[int]], mask: int, tokens: list[int]) -> None:
    """Sorted, padded batches; the head at the mask only."""
    device = network.device
    order = sorted(range(len(rows)), key=lambda i: len(rows[i]))
    for start in range(0, len(order), USUAL_BATCH):
        part = [rows[i] for i in order[start : start + USUAL_BATCH]]
        longest = max(map(len, part))
        ids = torch.tensor([row + [0] * (longest - len(row)) for row in part])
        shown = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in part])
        at = (ids == mask).int().argmax(dim=1)
        ids, shown, at = ids.to(device), shown.to(device), at.to(device)
        hidden = network.base_model(input_ids=ids, attention_mask=shown).last_hidden_state
        logits = network.cls(hidden[torch.arange(len(at), device=device), at]).float()
        chances = torch.log_softmax(logits, dim=-1)
        chances.topk(10, dim=-1).indices.cpu()
        chances[:, tokens].cpu()


def product_seconds(model: MaskedModel, lengths: np.ndarray, rounds: int) -> tuple[float, float]:
    """The seconds of the matrix products that the pass needs, and their operations."""
    config = model.core.settings
    width, inner = config["hidden_size"], config["intermediate_size"]
    layers, vocabulary = config["num_hidden_layers"], config["vocab_size"]
    device, dtype = model.device, model.dtype
    tokens, rows = int(lengths.sum()), len(lengths)
    size = min(tokens, 1 << (18 if device.type == "cuda" else 11))
    states, wide = (torch.randn(size, n, device=device, dtype=dtype) for n in (width, inner))
    maps = [
        torch.randn(a, b, device=device, dtype=dtype)
        for a, b in ((width, 3 * width), (width, width), (width, inner), (inner, width))
    ]
    table = torch.randn(width, vocabulary, device=device, dtype=dtype)
    few = states[: min(size, 8192 if device.type == "cuda" else 512)]

    def layer() -> None:
        for weights in maps:
            torch.mm(wide if len(weights) == inner else states, weights)

    def head() -> None:
        torch.mm(few, table)

    with torch.inference_mode():
        layer()
        head()
        of_layer, of_head = timed(layer, device, rounds + 2), timed(head, device, rounds + 2)
    per_token = 2 * (4 * width * width + 2 * width * inner)
    operations = tokens * (layers - 1) * per_token + rows * 2 * width * vocabulary
    return of_layer * tokens / size * (layers - 1) + of_head * rows / len(few), operations


def measure(name: str, source: Any, texts: list[str], given: Any, work: Path, table: Table) -> None:
    """All rows of one model."""
    model = load(source, device=given.device, dtype=given.dtype)
    device, count = model.device, len(texts)
    path = work / "sentences.txt"
    path.write_text("\n".join(texts) + "\n")
    warm = work / "warm.txt"
    warm.write_text("\n".join(texts[: max(count // 5, 1)]) + "\n")
    items = work / "items.csv"
    measure = Pronouns().measure_file
    measure(model, warm, output=items)
    seconds = timed(lambda: measure(model, path, output=items), device, given.rounds)
    table.add(name, "ours: masked score, read and written", count, seconds)
    items_json = work / "items.jsonl"
    seconds = timed(lambda: measure(model, path, output=items_json), device, 1)
    table.add(name, "ours: masked score, written as JSON lines", count, seconds)
    tokenizer = model.tokenizer
    seconds = timed(lambda: mask_queries(model, texts), torch.device("cpu"), given.rounds)
    table.add(name, "ours: sentences to queries, host only", count, seconds)
    positions = mask_queries(model, texts).positions
    tokens = tokenizer.convert_tokens_to_ids(list(PRONOUNS))
    warm_up = positions[: max(count // 5, 1)]
    query_tokens(model, warm_up, tokens=tokens, k=10)
    seconds = timed(
        lambda: query_tokens(model, positions, tokens=tokens, k=10), device, given.rounds
    )
    core = table.add(name, "ours: core, queries to log p and top 10", count, seconds)
    floor, operations = product_seconds(model, positions.lengths, given.rounds)
    table.add(
        name,
        "limit: matrix products alone",
        count,
        floor,
        TFLOPs=operations / floor / 1e12,
        core_share=core / (count / floor),
    )
    filled = [text.replace("[MASK]", "he") for text in texts]
    backend = tokenizer.backend_tokenizer
    seconds = timed(lambda: backend.encode_batch(filled), torch.device("cpu"), given.rounds)
    table.add(name, "limit: the tokenizer alone", count, seconds)
    agree(name, source, model, positions, tokens, table)
    rows = [list(position.ids) for position in positions[: count // given.usual_share]]
    network = model.network  # that of transformers; from here on it is the one that is run
    usual(network, rows[: USUAL_BATCH * 4], tokenizer.mask_token_id, tokens)
    seconds = timed(
        lambda: usual(network, rows, tokenizer.mask_token_id, tokens), device, given.rounds
    )
    table.add(name, f"usual: transformers, sorted batches of {USUAL_BATCH}", len(rows), seconds)


def agree(
    name: str,
    source: Any,
    model: MaskedModel,
    positions: MaskedPositions,
    tokens: list[int],
    table: Table,
) -> None:
    """The differences from float32 on the CPU, in the data type given and in float32."""
    step = max(len(positions) // 200, 1)
    some = positions[::step][:200]
    exact = query_tokens(load(source, device="cpu"), some, tokens=tokens, k=1).log_probs
    device = str(model.device)
    half = load(source, device=device, dtype="float16")
    for kind in (model, half, load(source, device=device)):
        result = query_tokens(kind, some, tokens=tokens, k=1).log_probs
        apart = np.abs(result - exact)
        dtype = str(kind.dtype).removeprefix("torch.")
        row = {"mean": float(apart.mean()), "max": float(apart.max())}
        table.rows.append({"model": name, "way": f"log p, {dtype} against float32 CPU", **row})
        print(
            f"{name:<6}log p in {dtype} against float32 on the CPU, {len(some)} sentences:"
            f" {row['mean']:.2g} on average, {row['max']:.2g} at most",
            flush=True,
        )


def main() -> None:
    """Print the rows."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--dtype", default="bfloat16", choices=("bfloat16", "float16", "float32"))
    parser.add_argument("--sentences", type=int, default=100_000)
    parser.add_argument("--models", default="base,mini")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--usual-share", type=int, default=2, help="one in so many sentences")
    parser.add_argument("--quick", action="store_true", help="a small network in place of base")
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    table = Table()
    device = torch.device(given.device)
    where = torch.cuda.get_device_name(device) if device.type == "cuda" else "CPU"
    print(f"{where}, torch {torch.__version__}, {given.dtype}", flush=True)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        texts = sentences(given.sentences)
        for name in given.models.split(","):
            source: Any = name
            if name == "base":
                source = work / "base"
                save_base(source, quick=given.quick)
            measure(name, source, texts, given, work, table)
    print(f"all in {time.perf_counter() - start:.0f} s")
    if given.out is not None:
        given.out.mkdir(parents=True, exist_ok=True)
        content = {"device": where, "dtype": given.dtype, "sentences": given.sentences}
        content["rows"] = table.rows
        (given.out / "masked_gpu.json").write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
