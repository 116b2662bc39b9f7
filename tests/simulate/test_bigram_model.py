import numpy as np
import pytest

from evenhand.errors import InputError
from evenhand.simulate.masked import bigram_model

TABLE = {"[CLS]": {"he": 0.6, "she": 0.2}, "doctor": {"he": 0.7, "she": 0.1}, "nurse": {"she": 0.9}}


def probability(model, text, word):
    row = model.tokenizer(text)["input_ids"]
    position = row.index(model.tokenizer.mask_token_id)
    return float(
        np.exp(model.logits([row], [position])[0][model.tokenizer.convert_tokens_to_ids(word)])
    )


def test_probabilities_are_the_planted_ones():
    model = bigram_model(TABLE)
    assert probability(model, "[MASK] nurse", "he") == pytest.approx(0.6)
    assert probability(model, "the doctor [MASK]", "she") == pytest.approx(0.1)
    assert probability(model, "Nurse [MASK].", "she") == pytest.approx(0.9)


def test_every_row_sums_to_one_and_special_tokens_never_come():
    model = bigram_model(TABLE)
    assert np.allclose(model.table.sum(axis=1), 1)
    special = model.tokenizer.all_special_ids
    assert (model.table[:, special] == 0).all()


def test_impossible_probabilities_are_refused():
    with pytest.raises(
        InputError, match="after 'he': expected probabilities that sum to at most 1"
    ):
        bigram_model({"he": {"she": 1.2}})
