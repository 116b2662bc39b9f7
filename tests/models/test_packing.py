"""Weights as text: packed without loss, rounded to the nearest or with less error in the output."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from evenhand.models import load
from evenhand.models.packing import (
    ALPHABET,
    input_moments,
    pack,
    packed_size,
    round_rows,
    to_bytes,
    to_text,
    unpack,
    with_weights,
)


def test_bytes_of_a_packed_matrix_by_hand() -> None:
    numbers = np.array([[511, -511, 0, 1, -256]], dtype=np.int32)
    stored = [1023, 1, 512, 513, 256]  # 2^9 is added
    high = [number >> 8 for number in stored]
    assert high == [3, 0, 2, 2, 1]
    rest = bytes([3 | 0 << 2 | 2 << 4 | 2 << 6, 1])
    content = np.array([0.5], "<f4").tobytes() + bytes(n & 255 for n in stored) + rest
    packed = pack(numbers, np.array([0.5], np.float32), 10)
    assert packed == content + bytes(2)
    np.testing.assert_array_equal(unpack(packed, (1, 5), 10), numbers / 2)


@pytest.mark.parametrize("bits", [8, 9, 10, 12, 16])
@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (5, 256)])
def test_packing_loses_nothing(bits: int, shape: tuple[int, int]) -> None:
    matrix = np.random.default_rng(bits).normal(size=shape).astype(np.float32)
    numbers, scales = round_rows(matrix, bits)
    content = pack(numbers, scales, bits)
    assert len(content) == packed_size(shape, bits)
    once = unpack(to_bytes(to_text(content)), shape, bits)
    np.testing.assert_array_equal(once, numbers.astype(np.float32) * scales[:, None])
    step = np.abs(matrix).max(axis=1, keepdims=True) / (2 ** (bits - 1) - 1)
    assert (np.abs(once - matrix) <= 0.501 * step + 1e-6).all(), "rounded to the nearest"


def test_text_has_two_characters_for_13_bits() -> None:
    content = np.random.default_rng(0).integers(0, 256, 13 * 250_000, np.uint8).tobytes()
    text = to_text(content)
    assert len(text) == len(content) * 16 // 13
    assert set(text) <= set(ALPHABET)
    assert not set(ALPHABET) & set("<\"' \n")
    assert to_bytes(text) == content
    number = int.from_bytes(content[:13], "big")  # by hand: 104 bits as eight numbers
    values = [number >> 13 * i & 8191 for i in range(7, -1, -1)]
    assert text[:16] == "".join(ALPHABET[v // 91] + ALPHABET[v % 91] for v in values)


def test_a_row_of_zeros_stays_zero() -> None:
    matrix = np.array([[0, 0], [1, -1]], dtype=np.float32)
    assert round_rows(matrix, 9)[0].tolist() == [[0, 0], [255, -255]]


def test_with_moments_the_output_changes_less() -> None:
    rng = np.random.default_rng(1)
    mixing = rng.normal(size=(24, 24)) * 0.9 ** np.arange(24)  # inputs that depend on each other
    inputs = rng.normal(size=(2000, 24)) @ mixing.T
    matrix = rng.normal(size=(16, 24)).astype(np.float32)

    def error(moments: object) -> float:
        numbers, scales = round_rows(matrix, 8, moments)
        return float(np.square(inputs @ (matrix - numbers * scales[:, None]).T).sum())

    assert error(inputs.T @ inputs) < 0.5 * error(None)


def test_with_uncorrelated_inputs_each_weight_is_rounded_to_the_nearest() -> None:
    matrix = np.random.default_rng(2).normal(size=(4, 6)).astype(np.float32)
    nearest, by_moments = round_rows(matrix, 8), round_rows(matrix, 8, np.eye(6))
    np.testing.assert_array_equal(nearest[0], by_moments[0])


def test_moments_of_mini_by_its_own_states() -> None:
    mini = load("mini")
    text = "The clerk lost [MASK] keys."
    moments = input_moments(mini, [text, text])
    assert len(moments) == 6 * 6
    ids = torch.tensor([mini.tokenizer(text)["input_ids"]])
    states = mini.network.bert.embeddings(ids)[0].detach().double().numpy()
    first = moments["bert.encoder.layer.0.attention.self.query.weight"]
    np.testing.assert_allclose(first, 2 * states.T @ states, rtol=1e-4, atol=1e-4)


def test_other_weights_change_a_copy_with_its_tied_weights() -> None:
    mini = load("mini")
    name = "bert.embeddings.word_embeddings.weight"
    table = mini.core.state_dict()[name].numpy()
    before = table.copy()
    other = with_weights(mini, {name: np.zeros_like(before)})
    assert not other.core.state_dict()["cls.predictions.decoder.weight"].any()
    np.testing.assert_array_equal(mini.core.state_dict()[name].numpy(), before)
