"""The packed weights are the rounded ones, and the rounded model answers as the model does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.errors import InputError
from evenhand.language.asking import pronoun_probabilities
from evenhand.masked import load
from evenhand.masked.model import Model
from evenhand.report import interactive
from evenhand.report.interactive import (
    check_embeddable,
    embed,
    pack,
    read_embedded,
    save_embedded,
    unpack,
)
from evenhand.simulate.causal import bigram_model
from interactive_world import rounded, sentences
from small_encoder import save_small


@pytest.fixture(scope="module")
def mini() -> Model:
    return load("mini")


@pytest.fixture(scope="module")
def facts(mini: Model) -> dict[str, Any]:
    return embed(mini)


def test_bytes_of_a_packed_matrix_by_hand() -> None:
    # ten bits: 511 is the largest number, 512 is added, the scale of the row is 1
    matrix = np.array([[511, -511, 0, 1, -256]], dtype=np.float32)
    stored = [1023, 1, 512, 513, 256]
    low = bytes(number & 255 for number in stored)
    high = [number >> 8 for number in stored]  # 3, 0, 2, 2, 1
    rest = bytes([high[0] | high[1] << 2 | high[2] << 4 | high[3] << 6, high[4]])
    content = np.array([1], "<f4").tobytes() + low + rest
    assert pack(matrix, 10) == content + bytes(-len(content) % 3)


@pytest.mark.parametrize("bits", [8, 9, 10, 12, 16])
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (5, 256)])
def test_a_rounded_matrix_is_packed_without_loss(bits: int, shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(bits).normal(size=shape).astype(np.float32)
    content = pack(matrix, bits)
    once = unpack(content, shape, bits)
    assert len(content) % 3 == 0
    step = np.abs(matrix).max(axis=1, keepdims=True) / (2 ** (bits - 1) - 1)
    assert (np.abs(once - matrix) <= 0.501 * step + 1e-7).all()
    np.testing.assert_allclose(unpack(pack(once, bits), shape, bits), once, rtol=1e-6)


def test_a_row_of_zeros_stays_zero() -> None:
    matrix = np.array([[0, 0], [1, -1]], dtype=np.float32)
    np.testing.assert_array_equal(unpack(pack(matrix, 9), (2, 2), 9), matrix)


def test_mini_fits_and_states_how_much_rounding_changes(facts: dict[str, Any]) -> None:
    assert len(facts["weights"]) <= interactive.LARGEST
    assert 0 < facts["difference"] < interactive.TOLERANCE
    assert len(facts["biases"]) == 120
    assert len(facts["vocabulary"]) == 12_000
    json.dumps(facts)


def compare(mini: Model, facts: dict[str, Any], texts: list[str]) -> tuple[float, float]:
    """The largest difference of a probability, and of a bias by the words of the slot."""
    own = pronoun_probabilities(mini, texts)
    other = pronoun_probabilities(rounded(mini, facts), texts)
    words = list(facts["words"])
    slots = [[words.index(word) for word in forms] for forms in facts["forms"]]
    columns = np.array([slots[np.argmax([row[slot].sum() for slot in slots])][:2] for row in own])
    pairs = [np.take_along_axis(table, columns, axis=1) for table in (own, other)]
    biases = [pair[:, 0] / pair.sum(axis=1) for pair in pairs]
    return float(np.abs(own - other).max()), float(np.abs(biases[0] - biases[1]).max())


def test_the_stated_difference_is_that_of_the_packed_weights(
    mini: Model, facts: dict[str, Any]
) -> None:
    probability, bias = compare(mini, facts, sentences(1000)[:120])
    assert facts["difference"] == pytest.approx(max(probability, bias), abs=1e-6)


@pytest.mark.slow
def test_over_a_thousand_sentences_rounding_changes_little(
    mini: Model, facts: dict[str, Any]
) -> None:
    texts = sentences()
    assert len(texts) > 1000
    probability, bias = compare(mini, facts, texts)
    assert probability < 0.02
    assert bias < 0.02


def test_a_small_model_is_packed_from_its_folder_and_in_memory(tmp_path: Path) -> None:
    model = load(str(save_small(tmp_path / "small")))
    check_embeddable(model)
    first = embed(model)
    assert model.network is not None  # from now on that of transformers
    again = embed(model)
    assert again.pop("difference") == pytest.approx(first.pop("difference"), abs=1e-6)
    assert again.pop("biases") == pytest.approx(first.pop("biases"), abs=1e-3)
    assert again == first
    assert first["longest"] == 64


def test_what_cannot_be_embedded_is_named_with_what_can(
    mini: Model, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_embeddable(mini)
    with pytest.raises(InputError, match="expected a masked model of the family bert.*mini, got"):
        check_embeddable(bigram_model({"[BOS]": {"she": 0.5, "he": 0.5}}))
    monkeypatch.setattr(interactive, "LARGEST", 5_000_000)
    with pytest.raises(InputError, match=r"at most 4 million weights.*\(bert, 7,\d{3},\d{3} we"):
        check_embeddable(mini)


def test_a_model_that_rounding_changes_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = load(str(save_small(tmp_path / "small")))
    monkeypatch.setattr(interactive, "TOLERANCE", 0.0)
    with pytest.raises(InputError, match="can be rounded to 10 bits, got small, whose prob"):
        embed(model)


def test_saved_read_back_and_removed(tmp_path: Path) -> None:
    given = {"name": "</script>", "weights": "AAAA"}
    save_embedded(tmp_path, given)
    assert given.items() <= (read_embedded(tmp_path) or {}).items()
    save_embedded(tmp_path, None)
    assert read_embedded(tmp_path) is None
