"""The model of a page answers as the model does, and says how far it may be off."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evenhand.audit import audit
from evenhand.errors import FileError, InputError
from evenhand.models import load
from evenhand.models.asking import ask
from evenhand.models.masked import MaskedModel
from evenhand.report import interactive
from evenhand.report.interactive import (
    check_embeddable,
    difference,
    embed,
    read_embedded,
    save_embedded,
    template_sentences,
)
from evenhand.report.page import write_report
from evenhand.simulate.causal import bigram_model
from interactive_world import ROOM, rounded, sentences
from small_encoder import save_small


@pytest.mark.slow
def test_mini_fits_beside_an_audit_of_everything_and_is_close(
    mini: MaskedModel, facts: dict[str, Any]
) -> None:
    assert len(json.dumps(facts)) <= ROOM
    other = rounded(mini, facts)
    checked = template_sentences(every=4)
    assert len(checked) == facts["checked"] > 250
    assert facts["difference"] == pytest.approx(difference(mini, other, checked), abs=1e-6)
    texts = sentences()
    assert len(texts) > 1000
    assert difference(mini, other, texts) < 0.02


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> MaskedModel:
    return load(str(save_small(tmp_path_factory.mktemp("models") / "small")))


@pytest.mark.slow
def test_a_page_gets_the_finest_rounding_that_it_has_room_for(small: MaskedModel) -> None:
    sizes = []
    for room, bits in ((10_000_000, [10]), (0, [8])):
        facts = embed(small, room)
        assert facts["bits"] == bits
        sizes.append(len(facts["weights"]))
    rest = len(json.dumps(facts)) - sizes[1]
    between = embed(small, sum(sizes) // 2 + rest)
    assert sizes[1] < len(between["weights"]) < sizes[0]


def test_facts_of_a_small_model(small: MaskedModel) -> None:
    facts = embed(small, 10_000_000)
    assert (facts["layers"], facts["heads"], facts["width"], facts["longest"]) == (2, 2, 16, 64)
    assert 0 < facts["difference"] < 0.001
    assert facts["vocabulary"][facts["words"]["she"][0]] == "she"
    [answer] = ask("[MASK] is here.", small)
    assert answer.more_male == sum(bias < answer.bias for bias in facts["biases"])
    assert np.exp(facts["limits"]) == pytest.approx((answer.neutral_low, answer.neutral_high))
    assert (facts["neutral"], len(facts["frames"]) + 1) == (40, len(answer.wordings))
    assert difference(small, rounded(small, facts), template_sentences(4)) == pytest.approx(
        facts["difference"], abs=1e-6
    )


def test_difference_is_the_largest_of_a_probability_or_a_bias(
    small: MaskedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = {"a": np.full((1, 11), 0.01), "b": np.full((1, 11), 0.01)}
    tables["a"][0, :3] = 0.3, 0.1, 0.05  # he, she, they
    tables["b"][0, :3] = 0.2, 0.1, 0.05
    monkeypatch.setattr(interactive, "pronoun_probabilities", lambda name, _: tables[name])
    assert difference("a", "b", ["x"]) == pytest.approx(0.1)  # the bias: .75 and .667
    tables["b"][0, :3] = 0.25, 0.2, 0.05
    assert difference("a", "b", ["x"]) == pytest.approx(0.75 - 0.25 / 0.45)


def test_what_cannot_be_embedded_is_named_with_what_can(
    mini: MaskedModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_embeddable(mini)
    with pytest.raises(InputError, match=r"masked model of the family bert.*mini, got"):
        check_embeddable(bigram_model({"[BOS]": {"she": 0.5, "he": 0.5}}))
    monkeypatch.setattr(interactive, "MOST_WEIGHTS", 5_000_000)
    with pytest.raises(InputError, match=r"at most 5 million weights.*\(bert, 7,\d{3},\d{3} we"):
        check_embeddable(mini)


def test_saved_read_back_and_removed(tmp_path: Path) -> None:
    given = {"name": "</script>", "weights": "!!!!"}
    save_embedded(tmp_path, given)
    assert given.items() <= (read_embedded(tmp_path) or {}).items()
    save_embedded(tmp_path, {**given, "weights": "</script><script>window.pwned=1</script>"})
    with pytest.raises(FileError, match="expected packed weights, got a text with '<'"):
        read_embedded(tmp_path)
    save_embedded(tmp_path, None)
    assert read_embedded(tmp_path) is None


def test_an_audit_without_a_masked_model_is_refused_before_it_starts(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="a masked model, such as mini, got an audit of vectors"):
        audit("glove", skip=["posterior"], out=tmp_path / "out", interactive=True)
    with pytest.raises(InputError, match="a masked model, such as mini, got an audit of causal"):
        audit(model="tiny-causal", out=tmp_path / "out", interactive=True)
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_page_of_an_audit_keeps_its_model_until_an_audit_without(tmp_path: Path) -> None:
    model, out = save_small(tmp_path / "small"), tmp_path / "out"
    page = audit(model=model, out=out, quick=True, interactive=True).report
    first = page.read_text(encoding="utf-8")
    assert '<section id="try">' in first
    assert page.stat().st_size < interactive.PAGE_BYTES
    write_report(out)  # as `evenhand report` does
    assert page.read_text(encoding="utf-8") == first
    audit(model=model, out=out, quick=True)
    assert "try-weights" not in page.read_text(encoding="utf-8")
    assert read_embedded(out) is None
