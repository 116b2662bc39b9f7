"""A toy text with planted regularities, and what the commands make of it."""

import dataclasses
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))

import pretrain
from pretraining import prepared
from pretraining.recipe import Recipe
from pretraining.training import Data, Run

PEOPLE = {"nurse": "she", "queen": "she", "guard": "he", "king": "he"}


def toy_document(rng):
    """A few sentences in which the person decides the pronoun, and the pronoun the verb."""
    person = rng.choice(list(PEOPLE))
    pronoun = PEOPLE[person]
    place = rng.choice(["house", "garden", "castle"])
    thing = rng.choice(["song", "book", "letter"])
    parts = [
        f"The {person} said that {pronoun} was tired.",
        f"Then {pronoun} went to the {place} with a {thing}.",
        f'"Is it far?" {pronoun} asked.',
        f"Dr. Low gave the {person} a {thing} about the {place}!",
        f"The {person} lost {'her' if pronoun == 'she' else 'his'} keys.",
    ]
    chosen = rng.choice(parts, rng.integers(1, 12))
    return " ".join(chosen[:3]) + ("\n" + " ".join(chosen[3:]) if len(chosen) > 3 else "")


TOY = Recipe(
    vocabulary=200, layers=2, width=32, heads=2, inner=64, max_positions=40, batch_tokens=400,
    shares="40:0.5,32:0.3,1:0.2", lr=1e-2, matrix_lr=1e-2, warmup=5, mask=0.3, late_mask=0.2,
)  # fmt: skip


@pytest.fixture(autouse=True, scope="module")
def one_thread():
    """Toy matrices are faster so, and other work on the machine disturbs less."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def toy(tmp_path_factory):
    """Folders of a toy text, its tokenizer and its prepared form, made by the commands."""
    folder = tmp_path_factory.mktemp("toy")
    rng = np.random.default_rng(0)
    text = "\n\n".join(toy_document(rng) for _ in range(1000)) + "\n"
    (folder / "toy.txt").write_text(text)
    words = folder / "tokenizer"
    assert pretrain.main(["tokenizer", f"{folder}/toy.txt", "--size", "200", f"--out={words}"]) == 0
    made = ["--tokenizer", str(words), "--out", str(folder / "data"), "--workers", "1"]
    assert pretrain.main(["prepare", f"{folder}/toy.txt", *made]) == 0
    return folder


@pytest.fixture(scope="module")
def pieces(toy):
    return (toy / "tokenizer" / "vocab.txt").read_text().split("\n")[:-1]


@pytest.fixture(scope="module")
def data(toy, pieces, recipe):
    return Data.of(prepared.load([toy / "data" / "toy.tokens.xz"]), pieces, recipe())


@pytest.fixture(scope="module")
def recipe(pieces):
    """The toy recipe with some changes."""
    return lambda **changes: dataclasses.replace(TOY, **{"vocabulary": len(pieces), **changes})


@pytest.fixture(scope="module")
def run_of(data, recipe):
    """A run of the toy recipe with some changes."""
    cpu = torch.device("cpu")
    return lambda **changes: Run(
        data, recipe(**changes), device=cpu, compiled=False, say=lambda _: None
    )
