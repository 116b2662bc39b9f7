"""Whole audits of simulated worlds: planted bias is called bias, and clean inputs are not.

Clean worlds are those of the first seeds. A verdict on one may be an alarm in 5 % of them, so as
many alarms are let pass as chance at that rate exceeds in 1 % of all tests. test_audit_masked.py
and test_audit_fewshot.py have more worlds.
"""

from __future__ import annotations

import csv
from collections import Counter
from functools import partial

import numpy as np
import pytest
from scipy.stats import binom

from evenhand.audit import audit, main
from evenhand.fewshot import Dataset
from evenhand.lexicon.phrases import phrases
from evenhand.lexicon.pronoun_sentences import pronoun_sentences
from evenhand.lexicon.templates import professions
from evenhand.simulate import world
from evenhand.simulate.biographies import biographies
from evenhand.vectors import nulls
from evenhand.vectors.store import Vectors
from masked_worlds import PAIRS, SHARES, base
from small_encoder import save_small

BIASED = ("some evidence", "strong evidence")
PLAIN = Dataset.of(["Rain fell.", "Snow fell."], ["rain", "snow"], name="plain")
WIDTH, STEEP = 32, 10.0
"""Of the masked models: the hidden size, and how much a word moves the odds."""


@pytest.fixture(autouse=True)
def _verdicts_alone(monkeypatch):
    """The page is tested elsewhere, and so is how distances spread with the dimension."""
    monkeypatch.setattr(main, "write_report", lambda folder, *_: [folder / "report.html"])
    few = partial(nulls.dimension_spread, dims=(2, 10), points=50, repeats=2)
    monkeypatch.setattr(nulls, "dimension_spread", few)


def judged(subject, out, *given, **asked):
    """The one verdict of a quick audit; that on its subject."""
    found = audit(*given, out=out, quick=True, **asked)
    assert not found.failed
    (verdict,) = found.verdicts
    assert verdict.subject == subject
    assert verdict.numbers
    return verdict


def alarms(worlds, level_of):
    """How many of clean worlds are called biased, and how many may be."""
    levels = Counter(level_of(seed) for seed in range(worlds))
    assert set(levels) <= {"undecided", "none found", *BIASED}
    return sum(levels[level] for level in BIASED), binom.ppf(0.99, worlds, 0.05)


def vectors_level(folder, seed, bias):
    w = world(bias=bias, dim=30, vocabulary=600, seed=seed)
    path = folder / f"{seed}.vec"
    Vectors.from_arrays(w.words, w.matrix).save(path)
    out = folder / str(seed)
    return judged("vectors", out, path, topics=[w.topic], skip=["posterior"]).level


def test_vectors_with_planted_bias(tmp_path):
    assert [vectors_level(tmp_path, seed, 0.5) for seed in range(2)] == ["strong evidence"] * 2


@pytest.mark.slow
def test_clean_vectors(tmp_path):
    seen, allowed = alarms(6, lambda seed: vectors_level(tmp_path, seed, 0.0))
    assert seen <= allowed


def data_level(folder, seed, shares):
    """Of a CSV file of persons whose gender goes with their occupation as much as `shares`."""
    made = biographies(15, shares=shares, seed=seed)
    path = folder / f"{seed}.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        write = csv.writer(file)
        write.writerow(["text", "label", "gender"])
        write.writerows(zip(made.texts, made.occupations, made.genders, strict=True))
    return judged("corpus", folder / str(seed), data=path, skip=["fewshot"]).level


def test_data_with_planted_leanings(tmp_path):
    assert [data_level(tmp_path, seed, 1.0) for seed in range(2)] == ["strong evidence"] * 2


def test_clean_data(tmp_path):
    seen, allowed = alarms(6, lambda seed: data_level(tmp_path, seed, 0.0))
    assert seen <= allowed


def masked_model(folder, seed, bias=0.0, slope=0.0):
    """A BERT on disk that reads its sentence as the sum of a number for each word.

    At the mask the log odds of a male word against a female one are about `bias`, and more with
    professions that more men hold, less with those of women, as `slope` says. They have noise of
    their own in each sentence and each profession, and each phrase has an embedding of its own, for
    what several share would be a bias of this model. Attention is even over all words, the layer
    does nothing else, and gelu(x) - gelu(-x) = x in its head.
    """
    import torch
    from transformers import BertConfig, BertForMaskedLM

    tokenizer = base().tokenizer
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=WIDTH,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=4,
        max_position_embeddings=64,
        tie_word_embeddings=False,
        pad_token_id=tokenizer.pad_token_id,
        hidden_act="gelu",
    )
    model = BertForMaskedLM(config)
    pairs = zip(PAIRS, SHARES.tolist(), strict=True)
    likely = [
        (word, sign, share)
        for both, share in pairs
        for word, sign in zip(both, (1, -1), strict=True)
    ]
    chances = np.full(len(tokenizer), 1e-5)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.fill_(1.0 if "LayerNorm.weight" in name else 0.0)
        head, attention = model.cls.predictions, model.bert.encoder.layer[0].attention
        words = word_vectors(tokenizer, np.random.default_rng(seed), slope)
        model.bert.embeddings.word_embeddings.weight.copy_(torch.tensor(words))
        attention.self.value.weight[:2, 0] = torch.tensor([1.0, -1.0])
        attention.output.dense.weight.copy_(torch.eye(WIDTH))
        head.transform.dense.weight[:2, 0] = torch.tensor([1.0, -1.0])
        head.transform.dense.bias[2 : WIDTH // 2] = 5.0
        for word, sign, share in likely:
            place = tokenizer.convert_tokens_to_ids(word)
            chances[place] += share * np.exp(sign * bias / 2)
            head.decoder.weight[place, :2] = torch.tensor([STEEP * sign, -STEEP * sign])
        head.decoder.bias.copy_(torch.tensor(np.log(chances)))
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def word_vectors(tokenizer, rng, slope):
    """Each word's number in the first two places, its meaning in the next, or in the last two the
    sign that it has none.
    """

    def single(texts):
        """The words of each text that no other has."""
        ids = [set(tokenizer(text, add_special_tokens=False)["input_ids"]) for text in texts]
        counts = Counter(i for each in ids for i in each)
        return [sorted(i for i in each if counts[i] == 1) for each in ids]

    jobs, lists = list(professions()), phrases()
    names = single(one.name for one in jobs)
    message = [text for one in lists.sets.values() for text in one.phrases]
    message += [text for side in lists.attributes.values() for text in side]
    meant = [i for own in single(message) for i in own]
    made = np.zeros((len(tokenizer), WIDTH))
    made[:, -2:] = 1, -1
    made[meant] = 0
    made[meant, 2:-2] = rng.normal(size=(len(meant), WIDTH - 4))
    made[meant, 2:-2] -= made[meant, 2:-2].mean(axis=1, keepdims=True)
    made *= np.sqrt(WIDTH) / np.linalg.norm(made, axis=1, keepdims=True)
    noisy = sorted({i for each in (*names, *single(pronoun_sentences().sentences)) for i in each})
    made[noisy, 0] = 0.5 * rng.normal(size=len(noisy))
    for one, own in zip(jobs, names, strict=True):
        made[own, 0] += {"male": slope, "female": -slope}.get(one.group, 0.0)
    made[:, 1] = -made[:, 0]
    return made


def masked_level(folder, seed, **dials):
    model = masked_model(folder / f"model-{seed}", seed, **dials)
    skip = ["corpus", "fewshot"]
    return judged("masked", folder / str(seed), model=model, data=PLAIN, skip=skip).level


@pytest.mark.slow
def test_a_model_with_planted_bias(tmp_path):
    assert masked_level(tmp_path, 0, bias=1.0, slope=1.0) == "strong evidence"


@pytest.mark.slow
def test_a_model_with_planted_stereotypes_of_professions_alone(tmp_path):
    assert masked_level(tmp_path, 0, slope=1.0) == "some evidence"


@pytest.mark.slow
def test_clean_models(tmp_path):
    seen, allowed = alarms(4, lambda seed: masked_level(tmp_path, seed))
    assert seen <= allowed


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return save_small(tmp_path_factory.mktemp("encoder"))


def fewshot_level(encoder, folder, seed, leak):
    data = f"simulated:per_class=40,leak={leak},seed={seed}"
    out, skip = folder / f"{leak}-{seed}", ["corpus", "masked"]
    return judged("fewshot", out, model=encoder, data=data, skip=skip, seed=seed).level


@pytest.mark.slow
def test_classifiers_of_texts_that_tell_the_gender(encoder, tmp_path):
    assert all(fewshot_level(encoder, tmp_path, seed, 1) in BIASED for seed in range(2))


@pytest.mark.slow
def test_classifiers_of_texts_that_tell_no_gender(encoder, tmp_path):
    seen, allowed = alarms(4, lambda seed: fewshot_level(encoder, tmp_path, seed, 0))
    assert seen <= allowed
