"""The embedded vectors: whole, in order, and with every word the built-in lists need."""

from __future__ import annotations

import hashlib
import importlib.util
from importlib import resources
from pathlib import Path

import numpy as np
import pytest

from evenhand.vectors.store import load

TOOL = Path(__file__).parents[2] / "tools" / "make_glove.py"
ASSETS = resources.files("evenhand.assets")
LACKING = {
    "construction worker",
    "fighter pilot",
    "gladiola",
    "guidance counselor",
    "interior designer",
    "personal trainer",
    "software engineer",
    "yoga teacher",
}
"""Words of the built-in lists that the source of the vectors has not."""


@pytest.fixture(scope="module")
def glove():
    return load("glove")


@pytest.fixture(scope="module")
def tool():
    if not TOOL.exists():
        pytest.skip("tools/ is not there: not a checkout of the repository")
    spec = importlib.util.spec_from_file_location("make_glove", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_size_and_order(glove):
    assert glove.dim == 100
    assert 50_000 <= len(glove) < 50_300
    assert glove.words[:5] == ["the", "of", "to", "and", "in"]
    ranks = glove.ranks.astype(np.int64)
    assert (np.diff(ranks) > 0).all()
    assert (ranks[0], ranks[1], ranks[2]) == (0, 3, 4)
    assert (glove.name, glove.source, glove.notes) == ("glove", "glove", ())


def test_every_vector_has_a_direction(glove):
    assert glove.matrix.any(axis=1).all()
    assert np.isfinite(glove.matrix).all()


def test_words_are_plain(glove, tool):
    assert [word for word in glove.words if not tool.PLAIN.fullmatch(word)] == []


def test_every_word_of_the_built_in_lists_that_the_source_has(glove, tool):
    assert set(glove.find(tool.lexicon_words()).missing) == LACKING


def test_known_neighbours(glove):
    near = glove.unit(np.arange(len(glove))) @ glove.unit(glove.find(["queen"]).rows)[0]
    best = [glove.words[row] for row in np.argsort(-near)[:6]]
    assert best[0] == "queen"
    assert {"princess", "king"} <= set(best)


def test_the_card_states_the_file(glove):
    card = (ASSETS / "glove.md").read_text()
    assert hashlib.sha256((ASSETS / "glove.npz").read_bytes()).hexdigest() in card
    assert f"{len(glove):,}" in card


def test_the_tool_chooses_frequent_plain_words_and_wanted_rare_ones(tool, monkeypatch):
    monkeypatch.setattr(tool, "SIZE", 3)
    words = ["the", ",", "of", "f-14", "mid-day", "rock'n'roll", "rare", "rarer"]
    ranks, absent = tool.chosen(words, ["Rarer", "of", "gone"])
    assert [words[rank] for rank in ranks] == ["the", "of", "mid-day", "rarer"]
    assert absent == ["gone"]


def test_plain_words(tool):
    words = ["the", "mother-in-law", "o'clock", "f-14", "-a", "a-", "a--b", "é", "U", "u.s."]
    assert list(filter(tool.PLAIN.fullmatch, words)) == ["the", "mother-in-law", "o'clock"]
