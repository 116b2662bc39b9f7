"""Few-shot runs under SIGKILL, while encoding or training: repeated, they end with the same."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import pytest
from killing import finished, killed

from small_encoder import save_small

pytestmark = pytest.mark.slow

RUN = """
import sys
from pathlib import Path
import numpy
from evenhand import training
from evenhand.fewshot import Dataset, sample
from evenhand.fewshot.encoders import TunedEncoder, encode
from evenhand.fewshot.settings import TrainingSettings
from evenhand.fewshot.training import evaluate, train
from evenhand.models import encoding

kind, folder = sys.argv[1:]
Path(folder).mkdir(exist_ok=True)
encoding.TOKENS, encoding.STORED = {"cpu": 128}, {"cpu": 1}
training.INTERVAL, training.SHARE = 0.0, 1e9
report = lambda what, done, *more: print(what, done, flush=True)

things = ("horse", "bridge", "letter", "song", "fire", "clock", "coat", "lamp", "ship", "tree")
texts = [f"Number {k} is about a {t} {'of old ' * (k % 5)}days." for t in things for k in range(16)]
data = Dataset.of(texts, [t for t in things for _ in range(16)], name="things")
classes = {"train": things[:4], "valid": things[4:7], "test": things[7:]}
drawn = {
    name: sample(data, of, ways=3, shots=2, queries=2, episodes=count, seed=1, purpose=name)
    for (name, of), count in zip(classes.items(), (96, 20, 30))
}
if kind == "frozen":
    source = encode("small", data.texts, cache=f"{folder}/cache", progress=report)
    own = {"network": "relation-ntl", "options": {"slices": 4}}
    settings = TrainingSettings(**own, batch=2, validate_every=8)
else:
    source = TunedEncoder("small", data.texts)
    settings = TrainingSettings(batch=2, validate_every=8, encoder_learning_rate=1e-3)
trained = train(settings, source, drawn["train"], drawn["valid"], f"{folder}/run", progress=report)
numpy.save(f"{folder}/test.npy", evaluate(trained, source, drawn["test"]).log_probs)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("fewshot")
    save_small(folder / "small")
    (folder / "run.py").write_text(RUN)
    return folder


def content(folder: Path) -> dict[str, bytes]:
    names = ("run/trained.safetensors", "run/curve.csv", "test.npy")
    return {name: (folder / name).read_bytes() for name in names}


@pytest.fixture(scope="module")
def undisturbed(place):
    """The lines of progress and the files of a run that nobody stops, of each kind."""

    @cache
    def undisturbed(kind: str) -> tuple[list[str], dict[str, bytes]]:
        return finished(place, kind, f"{kind} whole"), content(place / f"{kind} whole")

    return undisturbed


@pytest.mark.parametrize("kind", ["frozen", "tuned"])
def test_killed_again_and_again_the_numbers_are_the_same(place, undisturbed, kind):
    lines, expected = undisturbed(kind)
    moment = random.Random(7)  # noqa: S311
    rounds = 3
    for _ in range(rounds):
        most = len(lines) // (rounds + 1)
        killed(
            place, kind, f"{kind} parts", lines=moment.randint(1, most), wait=moment.random() / 50
        )
    rest = finished(place, kind, f"{kind} parts")
    assert 0 < len(rest) < len(lines)
    assert content(place / f"{kind} parts") == expected
    assert not list((place / f"{kind} parts").glob("cache/.request.*"))


def test_killed_while_encoding_what_was_stored_is_used(place, undisturbed):
    lines, expected = undisturbed("frozen")
    encoding = sum(line.startswith("encoding") for line in lines)
    assert encoding > 5
    killed(place, "frozen", "cut", lines=encoding // 2, wait=0)
    rest = finished(place, "frozen", "cut")
    assert 0 < sum(line.startswith("encoding") for line in rest) < encoding
    assert content(place / "cut") == expected
