"""SSS against a direct computation, and on a model whose probabilities are known."""

import math

import numpy as np
import pytest

from evenhand.errors import InputError
from evenhand.instruments import compare, measure
from evenhand.models.masked import load
from evenhand.models.metrics.sss import Sss
from evenhand.models.pairs import Pair, shared_tokens
from evenhand.simulate.masked import bigram_model

PAIRS = [
    Pair("My aunt repairs old cars.", "My uncle repairs old cars.", "antistereo", "gender"),
    Pair("The nurse said she was late.", "The nurse said he was late.", "stereo", "gender"),
    Pair("Grandmothers cannot use a phone.", "Teenagers cannot use a phone.", "stereo", "age"),
]


def directly(model, sentence, other):
    """Every changed token hidden, one plain call of the model per token."""
    mask = model.tokenizer.mask_token_id
    ids, theirs = (model.tokenizer(text)["input_ids"] for text in (sentence, other))
    common = {i + 1 for i, _ in shared_tokens(ids[1:-1], theirs[1:-1])}
    changed = [i for i in range(1, len(ids) - 1) if i not in common]
    hidden = [mask if i in changed else token for i, token in enumerate(ids)]
    scores = []
    for i in changed:
        logits = model.logits([hidden], [i])[0].astype(float)
        scores.append(logits[ids[i]] - np.logaddexp.reduce(logits))
    return scores


@pytest.mark.parametrize("reduce", ["mean", "sum"])
def test_scores_agree_with_a_direct_computation(reduce):
    model = load("mini")
    m = Sss(reduce=reduce)(model, PAIRS)
    add = np.mean if reduce == "mean" else np.sum
    for pair, item in zip(PAIRS, m.items, strict=True):
        expected = add(directly(model, pair.more, pair.less))
        assert item["score_more"] == pytest.approx(expected, abs=1e-4)
        assert item["score_less"] == pytest.approx(
            add(directly(model, pair.less, pair.more)), abs=1e-4
        )


def world(dial):
    """A model that expects nurses exp(dial) times as much as guards."""
    share = 1 / (1 + math.exp(-dial))
    return bigram_model(
        {"[CLS]": {"nurses": share, "guards": 1 - share}, "nurses": {"cry": 0.5, "sing": 0.5}}
    )


@pytest.mark.parametrize("dial", [-1.0, 0.0, 2.0])
def test_the_difference_is_the_dial(dial):
    pairs = [Pair(f"nurses {verb}", f"guards {verb}", "stereo", "work") for verb in ("cry", "sing")]
    m = Sss()(world(dial), pairs)
    assert m.part("mean difference").value == pytest.approx(dial, abs=1e-6)
    assert m.details["ties"] == (2 if dial == 0 else 0)
    if dial:
        assert m.value == (dial > 0)


def test_two_models_are_paired():
    pairs = [Pair("nurses cry", "guards cry", "stereo", "work")]
    before, after = (Sss()(world(dial), pairs) for dial in (1.0, -1.0))
    change = compare(before, after)
    assert change.change.value == -1
    assert change.part("mean difference").change.value == pytest.approx(-2, abs=1e-6)


def test_a_pair_without_a_changed_token_is_left_out():
    pairs = [
        Pair("nurses cry", "nurses cry sing", "stereo", "work"),
        Pair("nurses cry", "guards cry", "stereo", "work"),
    ]
    m = Sss()(world(1.0), pairs)
    assert m.n == 1
    assert "no token to score" in m.left_out[0]


def test_it_is_measured_by_name():
    m = measure(world(1.0), [Pair("nurses cry", "guards cry", "stereo", "work")], "sss")
    assert m.metric == "sss"
    with pytest.raises(InputError, match="sss: expected sentence pairs"):
        Sss().measure(world(1.0))
