"""Fine-tuning under faults: killed or stopped runs go on and end with the very same weights."""

from __future__ import annotations

import json
import random
import resource
import signal
from pathlib import Path

import pytest
from killing import errors, finished, killed, stopped

from evenhand import training
from evenhand.errors import FileError, PartialFailure
from evenhand.files import to_json
from evenhand.models.finetuning.training import FinetuneSettings, finetune
from small_encoder import save_small

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
from evenhand.cli import finetune
from evenhand import training

training.INTERVAL = float(sys.argv[1])
training.SHARE = 1.0

@contextmanager
def progress():
    yield lambda what, done, *_: what == "training" and print(what, done, flush=True)

finetune.step_bars = lambda *_: progress()
sys.exit(run(sys.argv[2:]))
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A folder with a small random model, with dropout, and text."""
    folder = tmp_path_factory.mktemp("kill")
    save_small(folder / "small")
    (folder / "text.txt").write_text("".join(f"{line}\n" for line in TEXT))
    (folder / "masked.txt").write_text("".join(f"{line}\n" for line in MASKED))
    (folder / "run.py").write_text(RUN)
    return folder


def command(output: str, interval: float) -> list[str]:
    flags = {"block": "max-length"}
    options = [
        f"--{flags.get(name, name.replace('_', '-'))}={value}" for name, value in OPTIONS.items()
    ]
    arguments = [str(interval), "finetune", "text.txt", "--model", "small"]
    return [*arguments, "--sentences", "masked.txt", "-o", output, *options]


def steps(folder: Path, output: str) -> list[str]:
    """Run to the end; the lines of progress."""
    lines = finished(folder, *command(output, 1e9))
    return [line for line in lines if line.startswith("training ")]


def content(folder: Path) -> dict[str, bytes]:
    names = ("model/model.safetensors", "curve.csv", "items.csv", "results.json")
    return {name: (folder / name).read_bytes() for name in names}


@pytest.fixture(scope="module")
def undisturbed(small):
    """What a run gives that nobody stops, and its lines of progress."""
    lines = steps(small, "undisturbed")
    return content(small / "undisturbed"), lines


def test_killed_again_and_again_the_weights_are_the_same(small, undisturbed):
    expected, lines = undisturbed
    moment = random.Random(8)  # noqa: S311
    rounds = 3
    for _ in range(rounds):
        most = len(lines) // (rounds + 1)
        killed(
            small,
            *command("killed", 0.0),
            lines=moment.randint(1, most),
            wait=moment.random() / 20,
        )
    assert not (small / "killed" / "results.json").exists()
    rest = steps(small, "killed")
    assert 0 < len(rest) < len(lines)
    assert content(small / "killed") == expected
    left = sorted(path.name for path in (small / "killed").iterdir())
    assert left == sorted(
        ["curve.csv", "figures", "items.csv", "model", "results.json", "run.json"]
    )


def test_ctrl_c_saves_and_the_same_command_goes_on(small, undisturbed):
    expected, lines = undisturbed
    code = stopped(small, *command("interrupted", 1e9), lines=5, wait=0, how=signal.SIGINT)
    assert code == 130
    said = errors(small)
    assert said.splitlines()[-1] == "error: stopped; run the same command again to resume"
    assert "Traceback" not in said
    assert (small / "interrupted" / "checkpoint" / "after.safetensors").is_file()
    assert len(steps(small, "interrupted")) < len(lines) - 4
    assert content(small / "interrupted") == expected


def test_a_full_disk_is_reported_and_the_checkpoint_before_is_whole(small, tmp_path, monkeypatch):
    monkeypatch.setattr(training, "INTERVAL", 0.0)
    monkeypatch.setattr(training, "SHARE", 1.0)
    options = {"settings": FinetuneSettings(**OPTIONS), "sentences": MASKED}
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
    options = {"settings": FinetuneSettings(**OPTIONS), "sentences": MASKED}

    def stop(what, done, total, words):
        if what == "training" and done > 2000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finetune(small / "small", TEXT, folder=tmp_path / "run", progress=stop, **options)
    checkpoint = tmp_path / "run" / "checkpoint" / "after.safetensors"
    checkpoint.write_bytes(b"cut off")
    with pytest.raises(FileError, match=r"after\.safetensors: not a checkpoint"):
        finetune(small / "small", TEXT, folder=tmp_path / "run", **options)
    message = json.loads((tmp_path / "run" / "run.json").read_text())
    assert message["identity"]["settings"]["max_tokens"] == OPTIONS["max_tokens"]


def test_two_runs_in_one_folder_do_not_mix(small, tmp_path):
    options = {"settings": FinetuneSettings(**OPTIONS), "sentences": MASKED}

    def meddle(what, done, total, words):
        if what == "training":
            with pytest.raises(FileError, match="another run is working in this folder"):
                finetune(small / "small", TEXT, folder=tmp_path / "run", **options)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        finetune(small / "small", TEXT, folder=tmp_path / "run", progress=meddle, **options)
