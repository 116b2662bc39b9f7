"""`lab fewshot run` under SIGKILL at any moment: the same command ends with the same bytes."""

from __future__ import annotations

import random
import re
from functools import cache
from pathlib import Path

import pytest
from killing import finished, killed

from small_encoder import save_small

pytestmark = pytest.mark.slow

RUN = """
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from evenhand.cli import fewshot, run
from evenhand import files, training
from evenhand.fewshot import runs
from evenhand.models import encoding

encoding.TOKENS, encoding.STORED = {"cpu": 512}, {"cpu": 1}
training.INTERVAL, training.SHARE = 0.0, 1e9
seen = lambda what, done, *_: print("at", what, done, flush=True)

@contextmanager
def step_bars(units):
    yield seen

def announced(name, act):
    def announce(*arguments, **more):
        seen(name, 0)
        while Path("hold " + name).exists():
            time.sleep(0.01)
        return act(*arguments, **more)
    return announce

fewshot.step_bars = step_bars
for module, name in ((files, "save_csv"), (runs, "save_json")):
    setattr(module, name, announced(name, getattr(module, name)))
arguments = sys.argv[1:]
sys.exit(run([*arguments, "--cache", arguments[-1] + " cache", "--json"]) or seen("end", 0))
"""

QUICK = (
    "lab",
    "fewshot",
    "run",
    "--data",
    "simulated:per_class=10",
    "--leaning",
    "share",
    "--ways",
    "3",
    "--shots",
    "2",
    "--queries",
    "3",
    "--episodes",
    "24/6/12",
    "--batch",
    "2",
    "--validate-every",
    "6",
    "--encoder",
    "small",
    "--workers",
    "1",
)
KINDS = {
    "frozen": ("--splits", "2", "--network", "relation-ntl", "--option", "slices=4"),
    "tuned": ("--finetune", "--seeds", "2", "--mitigation", "augment"),
}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fewshot run")
    save_small(folder / "small")
    (folder / "run.py").write_text(RUN)
    return folder


def steps(place: Path, *arguments: str) -> list[str]:
    """Run to the end; its lines of progress, without the result."""
    return [line for line in finished(place, *arguments) if line.startswith("at ")]


def content(folder: Path) -> dict[str, bytes]:
    """All files but the record; the page too has the folder's own name, in its command."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "run.json"]
    found = {str(path.relative_to(folder)): path.read_bytes() for path in files}
    found["report.html"] = re.sub(rb"--out [^<]*", b"", found["report.html"])
    return found


@pytest.fixture(scope="module")
def undisturbed(place):
    """The lines of progress and the files of a run that nobody stops, of each kind."""

    @cache
    def undisturbed(kind: str) -> tuple[list[str], dict[str, bytes]]:
        lines = steps(place, *QUICK, *KINDS[kind], "--out", f"{kind} whole")
        return lines, content(place / f"{kind} whole")

    return undisturbed


@pytest.mark.parametrize("kind", KINDS)
def test_killed_again_and_again_the_files_are_the_same(place, undisturbed, kind):
    lines, expected = undisturbed(kind)
    assert {"results.json", "by_class.csv", "splits.json", "split-0/baseline.npz"} <= set(expected)
    assert sum(name.endswith("answers.npz") for name in expected) == 2
    assert sum(name.endswith("trained.safetensors") for name in expected) == 2
    parts = (*QUICK, *KINDS[kind], "--out", f"{kind} parts")
    moment = random.Random(11)  # noqa: S311
    rounds = 3
    for _ in range(rounds):
        most = len(lines) // (rounds + 1)
        killed(place, *parts, lines=moment.randint(1, most), wait=moment.random() / 20)
    rest = steps(place, *parts)
    assert 0 < len(rest) < len(lines)
    assert content(place / f"{kind} parts") == expected


def test_killed_while_the_results_are_written(place, undisturbed):
    lines, expected = undisturbed("frozen")
    late = (*QUICK, *KINDS["frozen"], "--out", "late")
    hold = place / "hold save_json"
    hold.touch()
    killed(place, *late, lines=lines.index("at save_json 0") + 1, wait=0)
    hold.unlink()
    assert (place / "late" / "by_class.csv").exists()
    assert not (place / "late" / "results.json").exists()
    (place / "late" / "split-0" / ".answers.npz.abcd1234").write_text("cut short")
    assert not any("training" in line for line in steps(place, *late))
    assert content(place / "late") == expected
