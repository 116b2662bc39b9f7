"""Few-shot runs under SIGKILL, while encoding or training: repeated, they end with the same."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from evenhand.masked import load

RUN = """
import sys
from evenhand.fewshot import Dataset, sample
from evenhand.fewshot.encoders import Tuned, encoding, frozen
from evenhand.fewshot.training import Settings, evaluate, loop, train

kind, folder = sys.argv[1:]
encoding.TOKENS, encoding.STORED = 128, 1
loop.INTERVAL, loop.SHARE = 0.0, 1e9
told = lambda what, done, *more: print(what, done, flush=True)

things = ("horse", "bridge", "letter", "song", "fire", "clock", "coat", "lamp", "ship", "tree")
texts = [f"Number {k} is about a {t} {'of old ' * (k % 5)}days." for t in things for k in range(16)]
data = Dataset.of(texts, [t for t in things for _ in range(16)], name="things")
classes = {"train": things[:4], "valid": things[4:7], "test": things[7:]}
drawn = {
    name: sample(data, of, ways=3, shots=2, queries=2, episodes=count, seed=1, purpose=name)
    for (name, of), count in zip(classes.items(), (96, 20, 30))
}
if kind == "frozen":
    source = frozen("small", data.texts, cache=f"{folder}/cache", progress=told)
    settings = Settings(network="relation-ntl", options={"slices": 4}, batch=2, validate_every=8)
else:
    source = Tuned("small", data.texts)
    settings = Settings(batch=2, validate_every=8, encoder_learning_rate=1e-3)
trained = train(settings, source, drawn["train"], drawn["valid"], f"{folder}/run", progress=told)
evaluate(trained, source, drawn["test"]).save(f"{folder}/test.npy")
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fewshot")
    tokenizer = load("mini").tokenizer
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=64, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    BertForMaskedLM(config).save_pretrained(folder / "small")
    tokenizer.save_pretrained(folder / "small")
    (folder / "run.py").write_text(RUN)
    return folder


def start(place: Path, kind: str, folder: str) -> subprocess.Popen[str]:
    (place / folder).mkdir(exist_ok=True)
    return subprocess.Popen(
        [sys.executable, "run.py", kind, folder], cwd=place, text=True, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip


def finished(place: Path, kind: str, folder: str) -> list[str]:
    """Run to the end; the lines of progress."""
    with start(place, kind, folder) as process:
        lines, errors = process.communicate()
    assert process.returncode == 0, errors
    return lines.splitlines()


def killed(place: Path, kind: str, folder: str, lines: int, wait: float) -> None:
    """Kill a run some time after so many lines of progress."""
    with start(place, kind, folder) as process:
        assert process.stdout is not None
        for _ in range(lines):
            assert process.stdout.readline()
        time.sleep(wait)
        process.kill()
    assert process.returncode == -signal.SIGKILL


def content(folder: Path) -> dict[str, bytes]:
    names = ("run/trained.safetensors", "run/curve.csv", "test.npy")
    return {name: (folder / name).read_bytes() for name in names}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["frozen", "tuned"])
def test_killed_again_and_again_the_numbers_are_the_same(place, kind):
    lines = finished(place, kind, f"{kind} whole")
    moment = random.Random(7)  # noqa: S311
    rounds = 3
    for _ in range(rounds):
        most = len(lines) // (rounds + 1)
        killed(place, kind, f"{kind} parts", moment.randint(1, most), moment.random() / 50)
    rest = finished(place, kind, f"{kind} parts")
    assert 0 < len(rest) < len(lines)
    assert content(place / f"{kind} parts") == content(place / f"{kind} whole")
    assert not list((place / f"{kind} parts").glob("cache/*/*.part"))


@pytest.mark.slow
def test_killed_while_encoding_what_was_stored_is_used(place):
    lines = finished(place, "frozen", "whole")
    encoding = sum(line.startswith("encoding") for line in lines)
    assert encoding > 5
    killed(place, "frozen", "cut", encoding // 2, 0)
    rest = finished(place, "frozen", "cut")
    assert 0 < sum(line.startswith("encoding") for line in rest) < encoding
    assert content(place / "cut") == content(place / "whole")
