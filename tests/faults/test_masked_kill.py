"""Fine-tuning under faults: killed or stopped runs go on and end with the very same weights."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from evenhand import training
from evenhand.errors import FileError, PartialFailure
from evenhand.files import to_json
from evenhand.masked import load
from evenhand.masked.finetuning import Settings, finetune

pytestmark = pytest.mark.slow

JOBS = ("nurse", "doctor", "teacher", "guard", "clerk", "cook")
TEXT = [
    f"The {job} told {who} that {pronoun} had lost the {thing}."
    for job in JOBS
    for pronoun in ("he", "she")
    for who in ("everyone", "the crowd", "a friend", "nobody")
    for thing in ("keys", "book", "map", "hat")
]
MASKED = [f"The {job} raised [MASK] hand." for job in JOBS]
OPTIONS = {"max_tokens": 6000, "batch": 2, "block": 64, "evaluations": 6, "learning_rate": 1e-3}

RUN = """
import sys
from contextlib import contextmanager
from evenhand.cli import run
from evenhand.cli import masked
from evenhand import training

training.INTERVAL = float(sys.argv[1])
training.SHARE = 1.0

@contextmanager
def told():
    yield lambda what, done, total, words: print(what, done, file=sys.stderr, flush=True)

masked.step_bars = lambda *_: told()
sys.exit(run(sys.argv[2:]))
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A folder with a small random model, with dropout, and text."""
    folder = tmp_path_factory.mktemp("kill")
    tokenizer = load("mini").tokenizer
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id,
    )
    BertForMaskedLM(config).save_pretrained(folder / "small")
    tokenizer.save_pretrained(folder / "small")
    (folder / "text.txt").write_text("".join(f"{line}\n" for line in TEXT))
    (folder / "masked.txt").write_text("".join(f"{line}\n" for line in MASKED))
    (folder / "run.py").write_text(RUN)
    return folder


def start(folder: Path, output: str, interval: float, *more: str) -> subprocess.Popen[str]:
    flags = {"block": "max-length"}
    options = [
        f"--{flags.get(name, name.replace('_', '-'))}={value}" for name, value in OPTIONS.items()
    ]
    command = [sys.executable, "run.py", str(interval), "masked", "finetune", "text.txt"]
    command += ["--model", "small", "--sentences", "masked.txt", "-o", output, *options, *more]
    return subprocess.Popen(
        command,
        cwd=folder,
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        # a job in the background begins with SIGINT ignored, and so would what it starts
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )


def finished(folder: Path, output: str, *more: str) -> list[str]:
    """Run to the end; the lines of progress."""
    with start(folder, output, 1e9, *more) as process:
        _, errors = process.communicate()
    assert process.returncode == 0, errors
    return [line for line in errors.splitlines() if line.startswith("training ")]


def stopped(folder: Path, output: str, how: signal.Signals, steps: int, wait: float) -> str:
    """Stop a run some time after so many steps; what it said after that."""
    with start(folder, output, 0.0 if how == signal.SIGKILL else 1e9) as process:
        assert process.stderr is not None
        for line in process.stderr:
            steps -= line.startswith("training ")
            if steps <= 0:
                break
        time.sleep(wait)
        process.send_signal(how)
        rest = process.stderr.read()
    assert process.returncode == (-signal.SIGKILL if how == signal.SIGKILL else 130), rest
    return rest


def content(folder: Path) -> dict[str, bytes]:
    names = ("model/model.safetensors", "curve.csv", "items.csv", "results.json")
    return {name: (folder / name).read_bytes() for name in names}


@pytest.fixture(scope="module")
def undisturbed(small):
    """What a run gives that nobody stops, and its lines of progress."""
    lines = finished(small, "undisturbed")
    return content(small / "undisturbed"), lines


@pytest.mark.parametrize("rounds", [1, 8])
def test_killed_again_and_again_the_weights_are_the_same(small, undisturbed, rounds):
    expected, lines = undisturbed
    output = f"killed{rounds}"
    moment = random.Random(rounds)  # noqa: S311
    for _ in range(rounds):
        most = len(lines) // (rounds + 1)
        stopped(small, output, signal.SIGKILL, moment.randint(1, most), moment.random() / 20)
    assert not (small / output / "results.json").exists()
    rest = finished(small, output)
    assert 0 < len(rest) < len(lines)
    assert content(small / output) == expected
    left = sorted(path.name for path in (small / output).iterdir())
    assert left == sorted(
        ["curve.csv", "figures", "items.csv", "model", "results.json", "run.json"]
    )


def test_ctrl_c_saves_and_the_same_command_goes_on(small, undisturbed):
    expected, lines = undisturbed
    rest = stopped(small, "interrupted", signal.SIGINT, 5, 0)
    assert rest.splitlines()[-1] == "error: stopped; run the same command again to resume"
    assert "Traceback" not in rest
    assert (small / "interrupted" / "checkpoint" / "after.safetensors").is_file()
    assert len(finished(small, "interrupted")) < len(lines) - 4
    assert content(small / "interrupted") == expected


def test_a_full_disk_is_told_of_and_the_checkpoint_before_is_whole(small, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "INTERVAL", 0.0)
    monkeypatch.setattr(training, "SHARE", 1.0)
    options = {"settings": Settings(**OPTIONS), "sentences": MASKED}
    undisturbed = finetune(small / "small", TEXT, folder=tmp_path / "undisturbed", **options)
    weights = (tmp_path / "undisturbed" / "model" / "model.safetensors").read_bytes()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # room for weights and two moments, and none for the best weights, which come later
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(3.5 * len(weights)), hard))
    try:
        with pytest.raises(PartialFailure, match="File too large; results saved so far"):
            finetune(small / "small", TEXT, folder=tmp_path / "full", **options)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert (tmp_path / "full" / "checkpoint" / "after.safetensors").is_file()
    steps: list[str] = []
    again = finetune(
        small / "small",
        TEXT,
        folder=tmp_path / "full",
        **options,
        progress=lambda what, *_: steps.append(what),
    )
    assert 0 < steps.count("training") < undisturbed.training["steps"]
    assert to_json(again.to_dict()) == to_json(undisturbed.to_dict())
    assert (tmp_path / "full" / "model" / "model.safetensors").read_bytes() == weights


def test_a_damaged_checkpoint_is_named(small, tmp_path):
    options = {"settings": Settings(**OPTIONS), "sentences": MASKED}

    def stop(what, done, total, words):
        if what == "training" and done > 2000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finetune(small / "small", TEXT, folder=tmp_path / "run", progress=stop, **options)
    checkpoint = tmp_path / "run" / "checkpoint" / "after.safetensors"
    checkpoint.write_bytes(b"cut off")
    with pytest.raises(FileError, match=r"after\.safetensors: not a checkpoint"):
        finetune(small / "small", TEXT, folder=tmp_path / "run", **options)
    told = json.loads((tmp_path / "run" / "run.json").read_text())
    assert told["identity"]["settings"]["max_tokens"] == OPTIONS["max_tokens"]


def test_two_runs_in_one_folder_do_not_mix(small, tmp_path):
    options = {"settings": Settings(**OPTIONS), "sentences": MASKED}

    def meddle(what, done, total, words):
        if what == "training":
            with pytest.raises(FileError, match="another run is working in this folder"):
                finetune(small / "small", TEXT, folder=tmp_path / "run", **options)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finetune(small / "small", TEXT, folder=tmp_path / "run", progress=meddle, **options)
