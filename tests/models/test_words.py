"""Words as pieces, on every kind of tokenizer, against plain calls of the model one at a time."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from masked_oracle import oracle, spans_of
from tokenizers import AddedToken, pre_tokenizers, processors

from evenhand.errors import InputError
from evenhand.models import load, words
from evenhand.models.words import (
    WordQuery,
    WordRow,
    cloze,
    find_mask,
    row,
    rows,
    single_pieces,
    word_log_probs,
)
from evenhand.simulate.masked import bigram_model


def lstripped(model):
    """The same model with a mask token that takes in the space before it, as RoBERTa's does."""
    tokenizer = load(model.folder).tokenizer
    backend = tokenizer.backend_tokenizer
    mask = AddedToken(tokenizer.mask_token, lstrip=True, special=True, normalized=False)
    backend.add_special_tokens([mask])
    if "roberta" in model.folder.name:
        backend.post_processor = processors.RobertaProcessing(
            ("</s>", tokenizer.sep_token_id),
            ("<s>", tokenizer.cls_token_id),
            trim_offsets=True,
            add_prefix_space=False,
        )
    return replace(model.loaded, tokenizer=tokenizer)


class Named:
    """A loaded model and where it came from."""

    def __init__(self, folder):
        self.folder, self.loaded = folder, load(folder)


@pytest.fixture(scope="module", params=["mask as it is", "mask takes the space"])
def model(request, family):
    named = Named(family)
    return named.loaded if request.param == "mask as it is" else lstripped(named)


def pieces_text(model, ids):
    """The text of pieces, without the marks that tokenizers put on them."""
    tokens = model.tokenizer.convert_ids_to_tokens(list(ids))
    return "".join(token.removeprefix("##").strip("Ġ▁") for token in tokens).lower()


CASES = [
    ("He is a teacher.", "He", "teacher"),
    ("The engineer said that she was late.", "she", "engineer"),
    ("Then he, the nurse, reads a book.", "he", "nurse"),
    ("A doctor (she reads) is here.", "she", "doctor"),
    ("The table nurse was here and he was late.", "he", "table nurse"),
    ("the earlytable reads to him.", "him", "earlytable"),
    ("To her the teacher is late", "her", "teacher"),
]


@pytest.mark.parametrize(("text", "target", "hidden"), CASES)
def test_word_log_probs_are_those_of_plain_calls(model, text, target, hidden):
    encoded = row(model, text, spans_of(text, target, hidden))
    queries = [
        WordQuery(encoded, 0),
        WordQuery(encoded, 0, (1,)),
        WordQuery(encoded, 1),
        WordQuery(encoded, 1, (0,)),
    ]
    expected = [
        oracle(model, text, target),
        oracle(model, text, target, hidden),
        oracle(model, text, hidden),
        oracle(model, text, hidden, target),
    ]
    np.testing.assert_allclose(word_log_probs(model, queries), expected, atol=1e-5)


def test_a_profession_of_several_pieces_is_hidden_whole(model):
    text = "She is the earlytable here."
    encoded = row(model, text, spans_of(text, "earlytable"))
    start, stop = encoded.spans[0]
    assert stop - start >= 2
    hidden = encoded.hide(model.tokenizer.mask_token_id, 0)
    assert hidden[start:stop] == (model.tokenizer.mask_token_id,) * (stop - start)
    assert hidden[:start] + hidden[stop:] == encoded.ids[:start] + encoded.ids[stop:]


def test_a_pronoun_takes_in_its_space_and_only_its_own(family):
    model = load(family)
    for text in ("and he reads", "and  he reads", "(he reads)", '"he reads"', "he, she"):
        encoded = row(model, text, spans_of(text, "he"))
        assert pieces_text(model, encoded.pieces(0)) == "he"
        before = model.tokenizer(text[: text.index("he")].removesuffix(" "))["input_ids"]
        assert list(encoded.ids[: encoded.spans[0][0]]) == before[:-1]
    inside = row(model, "and he reads", spans_of("and he reads", "he")).pieces(0)
    bracket = row(model, "(he reads)", spans_of("(he reads)", "he")).pieces(0)
    spaced = model.tokenizer.convert_ids_to_tokens(list(inside))[0]
    assert spaced.startswith({"roberta": "Ġ", "albert": "▁"}.get(kind(family), "he"))
    assert (inside == bracket) == (kind(family) not in ("roberta", "albert"))


def kind(folder):
    return folder.name.rstrip("0123456789")


WORDS = ["the", "he", "The", "said", "teacher", "table", "late", "his", "keys", "A", "doctor"]
MARKS = ["", ",", ".", ";"]


@settings(max_examples=25, deadline=None)
@given(
    parts=st.lists(
        st.tuples(st.sampled_from(WORDS), st.sampled_from(MARKS), st.sampled_from([" ", "  "])),
        min_size=1,
        max_size=4,
    ),
    chosen=st.data(),
)
def test_every_span_is_covered_by_exactly_its_pieces(tokenizers_, parts, chosen):
    text, spans = "", []
    for word, mark, space in parts:
        spans.append((len(text), len(text) + len(word)))
        text += word + mark + space
    picked = chosen.draw(st.lists(st.sampled_from(range(len(spans))), unique=True, max_size=3))
    for model in tokenizers_:
        encoded = row(model, text, spans)
        mask = model.tokenizer.mask_token_id
        inside = [i for start, stop in encoded.spans for i in range(start, stop)]
        assert len(inside) == len(set(inside))
        for i, (begin, end) in enumerate(spans):
            assert pieces_text(model, encoded.pieces(i)) == text[begin:end].lower()
        outside = [t for i, t in enumerate(encoded.ids) if i not in inside]
        rest = pieces_text(model, outside[1:-1])
        assert rest == "".join(mark for _, mark, _ in parts)
        hidden = encoded.hide(mask, *picked)
        masked = {i for k in picked for i in range(*encoded.spans[k])}
        assert hidden == tuple(mask if i in masked else t for i, t in enumerate(encoded.ids))


@pytest.fixture(scope="module")
def tokenizers_(family):
    named = Named(family)
    return [named.loaded, lstripped(named)]


CLOZES = [
    "{} is late.",
    "and {} reads.",
    "and {}.",
    "Then {}, the doctor, was late.",
    "The nurse said that {} was here",
    "({} reads)",
    "and  {} reads",
    "to {}",
]


@pytest.mark.parametrize("frame", CLOZES)
@pytest.mark.parametrize("mark", ["[MASK]", "<mask>"])
def test_a_cloze_is_the_row_of_a_one_piece_word_hidden(model, frame, mark):
    text = frame.format(mark)
    query = cloze(model, text)
    assert query.ids[query.position] == model.tokenizer.mask_token_id
    assert query.ids.count(model.tokenizer.mask_token_id) == 1
    result = single_pieces(model, text, ["he", "she", "the", "nurse"])
    if "(" not in frame:
        assert set(result.values()) >= {"he"}
    for token, word in result.items():
        for form in (word, word.capitalize(), word.upper()):
            filled = frame.format(form)
            at = frame.index("{}")
            encoded = row(model, filled, [(at, at + len(form))])
            if encoded.pieces(0) == (token,):
                assert encoded.hide(model.tokenizer.mask_token_id, 0) == query.ids
                assert encoded.spans[0] == (query.position, query.position + 1)
                break
        else:
            pytest.fail(f"no form of {word} is token {token} in {filled}")


def test_single_pieces_know_the_cased_forms_and_the_leading_space(family):
    model = load(family)
    first = single_pieces(model, "[MASK] reads", ["he"])
    inner = single_pieces(model, "and [MASK] reads", ["he"])
    tokens = {
        k: set(model.tokenizer.convert_ids_to_tokens(list(v)))
        for k, v in {"first": first, "inner": inner}.items()
    }
    if kind(family) == "roberta":
        assert "he" in tokens["first"]
        assert "Ġhe" in tokens["inner"]
        assert not tokens["first"] & tokens["inner"]
    elif kind(family) == "distilbert":
        assert tokens["inner"] == {"he", "He"}
    else:
        assert first == inner
        assert len(inner) == 1


def test_single_pieces_are_remembered_by_what_stands_beside_the_mask(family, monkeypatch):
    model = load(family)
    expected = single_pieces(model, "The nurse said [MASK] reads.", ["he", "she"])
    monkeypatch.setattr(words, "encode", lambda *_: pytest.fail("tokenised again"))
    assert single_pieces(model, "A doctor and [MASK] is late", ["he", "she"]) == expected


def test_questions_share_rows_and_come_back_in_order(family):
    model = load(family)
    texts = ["He is a teacher.", "The is a teacher.", "He is a teacher."]
    encoded = rows(model, [(text, [(0, text.index(" "))]) for text in texts])
    passes = []
    got = word_log_probs(
        model, [WordQuery(r, 0) for r in encoded], progress=lambda _, total: passes.append(total)
    )
    assert got[0] == got[2] != got[1]
    pieces = {(r.hide(0, 0), piece) for r in encoded for piece in r.pieces(0)}
    assert set(passes) == {len(pieces)}


def test_errors_say_what_and_where(family):
    model = load(family)
    with pytest.raises(InputError, match=r"'The nurse reads.': expected one mask.*got none"):
        cloze(model, "The nurse reads.")
    with pytest.raises(InputError, match=r"expected one mask.*got 2"):
        find_mask(model, "[MASK] reads <mask>")
    with pytest.raises(InputError, match=r"'he he .*…': expected at most 40 tokens.*got \d+"):
        cloze(model, "he " * 60 + "[MASK]")
    with pytest.raises(InputError, match=r"'he he .*…': expected at most 40 tokens"):
        row(model, "he " * 60, [(0, 2)])
    word = "said" if kind(family) == "roberta" else "the"
    with pytest.raises(InputError, match=f"'{word[1:3]}' is no word of its own in 'a {word}'"):
        row(model, f"a {word}", [(3, 5)])
    for span in ((2, 2), (3, 4), (4, 99)):
        with pytest.raises(InputError, match="expected a word of 'the nurse'"):
            row(model, "the nurse", [span])


def test_a_word_without_pieces_is_never_scored(family):
    model = load(family)
    text = "the ☃ reads"
    if kind(family) == "roberta":  # bytes can say anything
        encoded = row(model, text, spans_of(text, "☃"))
        assert np.isfinite(word_log_probs(model, [WordQuery(encoded, 0)])).all()
        return
    with pytest.raises(InputError, match="cannot represent '☃' in 'the ☃ reads'"):
        row(model, text, spans_of(text, "☃"))
    unknown = WordRow((1, model.tokenizer.unk_token_id, 2), ((1, 2),))
    with pytest.raises(InputError, match="expected a word the tokenizer can represent"):
        word_log_probs(model, [WordQuery(unknown, 0)])


def test_a_mask_inside_a_word_still_has_a_row(family):
    model = load(family)
    query = cloze(model, "the nurse[MASK]self reads")
    assert query.ids.count(model.tokenizer.mask_token_id) == 1


TRICKY = [
    "{}",
    "{} reads",
    "and {}",
    "he said that {} was late and he reads",
    "The nurse said he was here, and {} was late.",
    "and  {} reads",
    "and\t{}\treads",
    "and \u00a0{} reads",
    "({} reads)",
    "the nurse({})reads",
    "“{}”, said the doctor",
    "the nurse{}self reads",
    "t{} nurse",
    "the-{}-the",
    "to {}'s keys",
    "to {}\u0301 keys",
    "caf\u00e9 {} h\u00e9 reads",
    "the ☃ {} ☃",
    "☃{}☃",
    "HE and {} and He",
    "</s> {} [SEP]",
    "  {}  ",
    "he " * 60 + "{}",
]


def test_a_mask_found_by_ids_is_the_one_found_by_offsets(model, monkeypatch):
    """Both ways give the same rows, positions and problems, whatever is beside the mask."""
    masked = words.MaskedTexts.of(model, [text.format("[MASK]") for text in TRICKY])
    quick, quick_problems = words.clozes(model, masked)
    by_ids = len(TRICKY) - len(words._usual_rows(model, masked)[2])
    monkeypatch.setattr(words, "_splits_at_spaces", lambda _: False)
    assert words._usual_rows(model, masked)[2] == list(range(len(TRICKY)))
    slow, slow_problems = words.clozes(model, masked)
    assert list(quick) == list(slow)
    assert {i: str(e) for i, e in quick_problems.items()} == {
        i: str(e) for i, e in slow_problems.items()
    }
    assert by_ids > 5


def test_a_tokenizer_whose_pieces_reach_over_spaces_is_not_trusted_by_ids():
    splits = [
        (pre_tokenizers.BertPreTokenizer(), True),
        (pre_tokenizers.ByteLevel(add_prefix_space=False), True),
        (pre_tokenizers.Metaspace(), True),
        (pre_tokenizers.Metaspace(split=False), False),
        (pre_tokenizers.ByteLevel(use_regex=False), False),
        (None, False),
    ]
    for splitter, expected in splits:
        backend = SimpleNamespace(pre_tokenizer=splitter)
        stub = SimpleNamespace(tokenizer=SimpleNamespace(backend_tokenizer=backend))
        assert words._splits_at_spaces(stub) is expected


def test_known_probabilities_come_back():
    model = bigram_model({"doctor": {"he": 0.5, "she": 0.1}, "[MASK]": {"he": 0.3, "she": 0.3}})
    text = "doctor he"
    encoded = row(model, text, spans_of(text, "doctor", "he"))
    got = word_log_probs(model, [WordQuery(encoded, 1), WordQuery(encoded, 1, (0,))])
    np.testing.assert_allclose(np.exp(got), [0.5, 0.3], rtol=1e-6)
