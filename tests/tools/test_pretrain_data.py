"""Pretraining's data at toy size: sentences, prepared text, rows, batches, masks."""

import doctest

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pretraining import corpus, masking, model, packing, prepared
from pretraining import recipe as recipes
from pretraining.tokenizer import CLS, MASK, PAD, SEP

patient = settings(deadline=None, max_examples=60)


@pytest.mark.parametrize("module", [corpus, masking, recipes])
def test_examples_in_the_docstrings(module):
    found = doctest.testmod(module)
    assert found.attempted
    assert not found.failed


# --- text


def test_sentences_end_where_they_should():
    text = (
        'Mr. Low, of No. 5, met J. R. Smith Jr. in the U.S. Army. "Stop!" she cried. He did... '
        "(It was 3 p.m.) The 1940s. What now? Apple Inc. grew. It cost Rs. 500 etc. Then it fell."
    )
    assert corpus.sentences(text) == [
        "Mr. Low, of No. 5, met J. R. Smith Jr. in the U.S. Army.",
        '"Stop!" she cried.',
        "He did...",
        "(It was 3 p.m.)",
        "The 1940s.",
        "What now?",
        "Apple Inc. grew.",
        "It cost Rs. 500 etc.",
        "Then it fell.",
    ]


@patient
@given(st.text(alphabet='aAI .!?"0', max_size=60))
def test_sentences_lose_nothing(text):
    text = " ".join(text.split())
    assert " ".join(corpus.sentences(text)) == text


def test_documents_and_held_out(toy):
    found = list(corpus.documents([toy / "toy.txt"]))
    assert len(found) == 1000
    assert 0 < sum(corpus.held_out(item, 20) for item in found) < 200
    texts = prepared.load([toy / "data" / "toy.tokens.xz"])
    assert texts.held_out.tolist() == [corpus.held_out(item) for item in found]


def test_prepared_text_is_the_text(toy):
    from transformers import AutoTokenizer

    read = prepared.load([toy / "data" / "toy.tokens.xz"]).text
    words = AutoTokenizer.from_pretrained(toy / "tokenizer")
    parts = [
        sentence
        for document in corpus.documents([toy / "toy.txt"])
        for paragraph in document
        for sentence in corpus.sentences(paragraph)
    ]
    assert len(parts) == len(read.lengths) == read.documents.sum()
    ends = np.cumsum(read.lengths)
    for number in (0, 1, 700, len(parts) - 1):
        ids = read.tokens[ends[number] - read.lengths[number] : ends[number]]
        assert ids.tolist() == words(parts[number], add_special_tokens=False)["input_ids"]


def test_tokenizer_is_a_bert_tokenizer(toy):
    from transformers import AutoTokenizer

    words = AutoTokenizer.from_pretrained(toy / "tokenizer")
    assert words.is_fast
    assert words.model_max_length == 256
    ids = words("The NURSE said [MASK].")["input_ids"]
    assert words.convert_ids_to_tokens(ids) == "[CLS] the nurse said [MASK] . [SEP]".split()  # noqa: SIM905
    assert [words.pad_token_id, words.unk_token_id, words.mask_token_id] == [PAD, 1, MASK]


# --- rows and batches

texts = st.lists(st.lists(st.integers(1, 40), min_size=1, max_size=12), min_size=1, max_size=12)
mixtures = st.sampled_from([{32: 1.0}, {32: 0.5, 16: 0.3, 1: 0.2}, {1: 1.0}])


def text_of(lengths):
    """A text whose every token is a number of its own, with sentences of the given lengths."""
    flat = [size for document in lengths for size in document]
    counts = np.array([len(document) for document in lengths])
    return prepared.Text(np.arange(sum(flat), dtype=np.uint16), np.array(flat), counts)


@patient
@given(texts, mixtures, st.integers(0, 5), st.data())
def test_rows_are_whole_sentences_of_one_document(lengths, mixture, seed, data):
    text = text_of(lengths)
    ends = np.array(data.draw(st.lists(st.booleans(), min_size=len(text.lengths),
                                       max_size=len(text.lengths))))  # fmt: skip
    rows = packing.pack(text, mixture, ends, 34, seed)
    sentence_start = np.cumsum(text.lengths) - text.lengths
    document = np.repeat(np.arange(len(lengths)), text.documents)
    seen = np.zeros(len(text.tokens), dtype=int)
    for start, size in zip(rows.starts, rows.sizes, strict=True):
        inside = (sentence_start >= start) & (sentence_start < start + size)
        assert start in sentence_start
        assert text.lengths[inside].sum() == size
        assert len(set(document[inside])) == 1
        assert size + 2 <= 34
        assert inside.sum() == 1 or size + 2 <= max(64 if 1 in mixture else 0, *mixture)
        seen[start : start + size] += 1
    kept = np.repeat(text.lengths <= 32, text.lengths)
    assert (seen == kept).all()


@patient
@given(texts, st.integers(40, 90), st.integers(0, 9))
def test_batches_hold_every_row_once_in_fixed_shapes(lengths, tokens, seed):
    text = text_of(lengths)
    rows = packing.pack(text, {34: 1.0}, np.ones(len(text.lengths), dtype=bool), 34, 0)
    order = np.random.default_rng(seed).permutation(len(rows.starts))
    if not len(order):
        return
    made = packing.batches(rows, tokens, max(1, int(tokens / np.mean(rows.sizes + 2))), 34, order)
    assert made.bounds.shape == (len(made.starts), made.starts.shape[1] + 1)
    sizes = np.diff(made.bounds)
    assert (made.bounds[:, 0] == 0).all()
    assert (made.bounds[:, -1] == tokens).all()
    assert ((sizes >= 0) & (sizes <= 34)).all()
    assert made.starts[made.starts >= 0].tolist() == rows.starts[order].tolist()
    assert sizes[made.starts >= 0].tolist() == (rows.sizes[order] + 2).tolist()


def test_single_rows_have_final_punctuation(data, pieces, recipe):
    number = {piece: token for token, piece in enumerate(pieces)}
    packer = data.packer(recipe())
    last = data.training.tokens[np.cumsum(data.training.lengths) - 1]
    assert packer.ends.all()
    assert set(last.tolist()) <= {number["."], number["!"]}
    none = packing.pack(data.training, {1: 1.0}, ~packer.ends, 40, 0)
    all_single = packing.pack(data.training, {1: 1.0}, packer.ends, 40, 0)
    assert len(all_single.starts) == len(data.training.lengths) > len(none.starts)


def test_epochs_are_the_same_ahead_in_another_process(data, recipe):
    packer = data.packer(recipe())
    here = packer.epochs(3, ahead=False)
    there = packer.epochs(3, ahead=True)
    for _ in range(2):
        one, other = next(here), next(there)
        assert np.array_equal(one.starts, other.starts)
        assert np.array_equal(one.bounds, other.bounds)
    there.close()


def test_gathered_batch_is_the_text(data, recipe):
    packer = data.packer(recipe())
    made = packer.epoch(0)
    text = torch.from_numpy(data.training.tokens.astype(np.int16))
    bounds = torch.from_numpy(made.bounds[0]).to(torch.int32)
    batch = masking.gather(text, torch.from_numpy(made.starts[0]), bounds, 400, 40)
    for slot, start in enumerate(made.starts[0]):
        first, last = made.bounds[0, slot : slot + 2]
        row = batch.tokens[first:last].tolist()
        if start < 0:
            assert set(row) <= {PAD}
            continue
        content = data.training.tokens[start : start + last - first - 2].tolist()
        assert row == [CLS, *content, SEP]
        assert batch.positions[first:last].tolist() == list(range(last - first))


# --- masking


def test_hidden_tokens_follow_the_scheme():
    tokens = torch.arange(20_000) % 195 + 5
    tokens[::10] = SEP
    batch = model.Batch(tokens, tokens, tokens, 0)
    generator = torch.Generator().manual_seed(0)
    hidden, places, labels = masking.hide(batch, 6000, 200, generator)
    assert len(set(places.tolist())) == 6000
    assert (labels == tokens[places]).all()
    assert (labels > MASK).all()
    shown = hidden.tokens[places]
    assert abs(float((shown == MASK).float().mean()) - 0.8) < 0.02
    assert abs(float((shown == labels).float().mean()) - 0.1) < 0.02
    untouched = torch.ones(20_000, dtype=torch.bool)
    untouched[places] = False
    assert (hidden.tokens == tokens)[untouched].all()
    only, places, _ = masking.hide(batch, 6000, 200, generator, only_mask=True)
    assert (only.tokens[places] == MASK).all()


def test_whole_words_are_hidden_together():
    tokens = torch.tensor([2, 10, 11, 12, 20, 10, 11, 3] * 50)
    continues = torch.zeros(30, dtype=torch.bool)
    continues[[11, 12]] = True
    batch = model.Batch(tokens, tokens, tokens, 0)
    generator = torch.Generator().manual_seed(1)
    _, places, _ = masking.hide(batch, 120, 30, generator, continues=continues)
    chosen = torch.zeros(400, dtype=torch.bool)
    chosen[places] = True
    words = chosen.view(50, 8)
    broken = (words[:, 1:4].sum(1) % 3 > 0).sum() + (words[:, 5:7].sum(1) % 2 > 0).sum()
    assert int(broken) <= 1
