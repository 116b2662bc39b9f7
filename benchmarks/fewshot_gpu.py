"""Few-shot classification on a GPU: features and fine-tuned episodes, ours / usual way / limit.

    python benchmarks/fewshot_gpu.py [FOLDER] [--texts 23859] [--episodes 512] [--device cuda]

Two encoders: `mini`, and a random one of the size of MiniLM (6 layers × 384) with the tokenizer of
`mini`, made on the spot. The texts are simulated biographies. All times are on the clock and end
with the numbers on the host.

Features: texts/s of `encode` with its tokenisation, in float32 and bfloat16. The usual way is the
network of transformers over batches of 64 texts in order, padded to their longest. The limit is
the time of the matrix products of these tokens alone, in the same type, in passes of as many
tokens.

Episodes: 5 ways, 5 shots, 5 queries of prototypical networks, fine-tuned with 16 episodes per step.
The usual way tokenises, encodes and learns one episode at a time. The limit is three times the
products of the episodes' tokens (forward, and backward to inputs and weights).

With FOLDER the figures are written there as JSON. On a CPU: `--texts 300 --episodes 6 --rounds 1`.
"""

from __future__ import annotations

import argparse
import copy
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.nn import functional

from evenhand.fewshot import Dataset, Episodes, sample
from evenhand.fewshot.encoders import TunedEncoder, encode
from evenhand.fewshot.episodes import episode_rows
from evenhand.fewshot.settings import TrainingSettings
from evenhand.fewshot.training import train
from evenhand.models import MaskedModel, load
from evenhand.models.encoding import TOKENS, TokenRows
from evenhand.simulate.biographies import biographies

LIMIT = 128
"""The longest text in tokens."""


def main(given: argparse.Namespace) -> None:
    """Print one line per row, and write them."""
    device = torch.device(given.device)
    data = build_texts(given.texts)
    print(f"{describe(device)}; {len(data.texts):,} texts")
    print(f"{'':<12}{'':<22}{'':<10}{'ours':>10}{'usual':>10}{'limit':>10}  per second")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        for name in ("mini", build_minilm(Path(folder) / "minilm")):
            for dtype in ("float32", "bfloat16"):
                rows.append(measure_features(str(name), dtype, data, device, given.rounds))
                show(rows[-1])
            rows.append(measure_episodes(str(name), data, device, given.episodes))
            show(rows[-1])
    if given.folder is not None:
        given.folder.mkdir(parents=True, exist_ok=True)
        document = {"device": describe(device), "texts": len(data.texts), "rows": rows}
        (given.folder / "fewshot_gpu.json").write_text(json.dumps(document, indent=1) + "\n")


def show(row: dict[str, Any]) -> None:
    """One line of the table."""
    values = (row[way] for way in ("ours", "usual", "limit"))
    rates = "".join(f"{value:>10,.{0 if value >= 100 else 2}f}" for value in values)
    print(f"{row['encoder']:<12}{row['task']:<22}{row['dtype']:<10}{rates}", flush=True)


def describe(device: torch.device) -> str:
    """The device in words."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{device.type}, {torch.get_num_threads()} threads"


def build_texts(count: int) -> Dataset:
    """Simulated biographies, so many."""
    classes = len(set(biographies(1, seed=0).occupations))
    drawn = biographies(-(-count // classes), seed=0)
    order = np.random.default_rng(0).permutation(len(drawn.texts))[:count]
    return Dataset.of(
        [drawn.texts[i] for i in order],
        [drawn.occupations[i] for i in order],
        name="simulated biographies",
    )


def build_minilm(folder: Path) -> Path:
    """A random encoder of the size of MiniLM with the tokenizer of `mini`."""
    from transformers import BertConfig, BertForMaskedLM

    mini = load("mini", device="cpu", head=False)
    torch.manual_seed(0)
    network = BertForMaskedLM(
        BertConfig(
            vocab_size=len(mini.tokenizer),
            hidden_size=384,
            num_hidden_layers=6,
            num_attention_heads=12,
            intermediate_size=1536,
            max_position_embeddings=512,
            pad_token_id=mini.tokenizer.pad_token_id,
        )
    )
    network.save_pretrained(folder)
    tokenizer: Any = mini.tokenizer
    tokenizer.save_pretrained(folder)
    return folder


def clock(device: torch.device, work: Callable[[], Any], rounds: int) -> float:
    """The shortest time on the clock of some rounds after a first one."""
    best = float("inf")
    for number in range(rounds + 1):
        _wait(device)
        begin = time.perf_counter()
        work()
        _wait(device)
        if number:
            best = min(best, time.perf_counter() - begin)
    return best


def _wait(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def measure_features(
    name: str, dtype: str, data: Dataset, device: torch.device, rounds: int
) -> dict[str, Any]:
    """Texts per second."""
    chosen: Any = dtype
    model = load(name, device=str(device), dtype=chosen, head=False)
    texts = list(dict.fromkeys(data.texts))
    rows = TokenRows(model, texts, pooling="mean", limit=LIMIT)
    ours = clock(device, lambda: encode(model, texts, limit=LIMIT), rounds)
    few = texts[: max(64, len(texts) // 8)]
    usual = clock(device, lambda: encode_usual(model, few), 1) / len(few) * len(texts)
    limit = multiply(model, int(rows.lengths.sum()), device, 1, getattr(torch, dtype))
    return {
        "encoder": Path(name).name,
        "task": "features",
        "dtype": dtype,
        "ours": len(texts) / ours,
        "usual": len(texts) / usual,
        "limit": len(texts) / limit,
        "tokens": int(rows.lengths.sum()),
    }


@torch.inference_mode()
def encode_usual(model: MaskedModel, texts: list[str]) -> None:
    """Batches of 64 in order, padded."""
    tokenizer: Any = model.tokenizer
    for first in range(0, len(texts), 64):
        batch = tokenizer(
            texts[first : first + 64],
            padding=True,
            truncation=True,
            max_length=LIMIT,
            return_tensors="pt",
        ).to(model.device)
        states = model.network.base_model(**batch).last_hidden_state
        weights = batch["attention_mask"].unsqueeze(-1).to(states.dtype)
        ((states * weights).sum(dim=1) / weights.sum(dim=1)).float().cpu().numpy()


@torch.inference_mode()
def multiply(
    model: MaskedModel, tokens: int, device: torch.device, times: int, dtype: torch.dtype
) -> float:
    """Seconds of the matrix products of all layers for so many tokens, `times` over."""
    config = model.network.config
    width, inner = int(config.hidden_size), int(config.intermediate_size)
    at_once = TOKENS["cuda" if device.type == "cuda" else "cpu"]
    shapes = [(width, 3 * width), (width, width), (width, inner), (inner, width)]
    inputs = {n: torch.randn(at_once, n, device=device, dtype=dtype) for n in (width, inner)}
    weights = [torch.randn(*shape, device=device, dtype=dtype) for shape in shapes]

    def run_pass() -> None:
        for _ in range(int(config.num_hidden_layers)):
            for (n, _), weight in zip(shapes, weights, strict=True):
                torch.mm(inputs[n], weight)

    return clock(device, run_pass, 3) * times * tokens / at_once


def measure_episodes(
    name: str, data: Dataset, device: torch.device, episodes: int
) -> dict[str, Any]:
    """Episodes per second of training."""
    half = len(data.classes) // 2

    def draw(classes: Any, count: int, purpose: str) -> Episodes:
        return sample(data, classes, ways=5, shots=5, queries=5, episodes=count, purpose=purpose)

    training = draw(data.classes[:half], episodes, "training")
    validation = draw(data.classes[half:], 2, "validation")
    encoder = TunedEncoder(name, data.texts, limit=LIMIT, device=str(device))
    settings = TrainingSettings(batch=min(16, episodes // 3), validate_every=10**9)
    moments: list[tuple[int, float]] = []
    train(
        settings,
        encoder,
        training,
        validation,
        progress=lambda _step, done, _total, _text: moments.append((done, time.perf_counter())),
    )
    (first, began), (last, ended) = moments[0], moments[-2]
    model = load(name, device=str(device), head=False)
    count = min(episodes, 16)
    usual = learn_usual(model, data, training, count)
    tokens = int(encoder.rows.lengths[episode_rows(training)].sum())
    half_type = torch.bfloat16 if device.type == "cuda" else torch.float32
    return {
        "encoder": Path(name).name,
        "task": "fine-tuned episodes",
        "dtype": str(half_type).removeprefix("torch."),
        "ours": (last - first) / (ended - began),
        "usual": count / usual,
        "limit": episodes / multiply(model, tokens, device, 3, half_type),
        "tokens": tokens,
    }


def learn_usual(model: MaskedModel, data: Dataset, episodes: Episodes, count: int) -> float:
    """Seconds of one episode after the other, as it is usually written."""
    network: Any = copy.deepcopy(model.network.base_model).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-5)
    tokenizer: Any = model.tokenizer
    wanted = torch.arange(episodes.ways, device=model.device).repeat_interleave(episodes.queries)
    begin = 0.0
    for number in range(count + 1):
        if number == 1:  # the first one is a warm-up
            begin = time.perf_counter()
        place = number % count
        support, query = episodes.support[place], episodes.query[place]
        texts = [data.texts[row] for row in (*support.ravel().tolist(), *query.ravel().tolist())]
        batch = tokenizer(
            texts, padding=True, truncation=True, max_length=LIMIT, return_tensors="pt"
        ).to(model.device)
        states = network(**batch).last_hidden_state
        weights = batch["attention_mask"].unsqueeze(-1).float()
        points = (states * weights).sum(dim=1) / weights.sum(dim=1)
        prototypes = points[: support.size].view(*support.shape, -1).mean(dim=1)
        distances = torch.cdist(points[support.size :], prototypes).square()
        loss = functional.cross_entropy(-distances, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        loss.item()
    return time.perf_counter() - begin


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--texts", type=int, default=23_859)
    parser.add_argument("--episodes", type=int, default=512)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    main(parser.parse_args())
