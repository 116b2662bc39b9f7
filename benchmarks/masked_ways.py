"""What masked.py measures: the inputs, and the usual ways to have a model score them."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from evenhand.models import MaskedModel, MaskedPosition
from evenhand.models.forward import layers_of
from evenhand.models.gender_words import probabilities
from evenhand.models.masked_scoring import log_probs, query_tokens
from evenhand.models.metrics.perplexity import pseudo_log_likelihoods
from evenhand.models.tokenizer import Tokenizer

DATA = Path(__file__).resolve().parents[2] / "shared/data"
PRONOUN = re.compile(r"\b(?:he|she|his|her|him)\b", re.IGNORECASE)
PEOPLE = (
    "doctor",
    "nurse",
    "driver",
    "clerk",
    "farmer",
    "singer",
    "judge",
    "cook",
    "guard",
    "poet",
)
DEEDS = ("opened the door and took {} coat", "said that {} was late again", "gave {} a small box",
         "sat down while {} read the letter from the office", "smiled before {} left")  # fmt: skip
TIMES = ("Today", "Before noon", "In the old town", "After a long walk home", "On that day")
BATCH = 32


def sentences(model: MaskedModel, wanted: int) -> tuple[list[str], str]:
    """Sentences with one pronoun, masked, and where they are from."""
    path = DATA / "swag/swag_sent1_subset.txt"
    mask = str(model.tokenizer.mask_token)
    if path.is_file():
        lines = path.read_text().splitlines()
        one = [PRONOUN.sub(mask, line) for line in lines if len(PRONOUN.findall(line)) == 1]
        chosen = np.random.default_rng(0).permutation(len(one))[:wanted]
        return [one[i] for i in sorted(chosen)], "SWAG, sentences with one pronoun"
    parts = itertools.product(TIMES, PEOPLE, DEEDS, PEOPLE)
    made = [
        f"{when} the {a} {deed.format(mask)}, and the {b} saw it." for when, a, deed, b in parts
    ]
    several = itertools.islice(itertools.cycle(made), wanted)
    return [f"{k}: {text}" for k, text in enumerate(several)], "made up here (no ../shared)"


def associations(model: MaskedModel) -> tuple[list[str], str]:
    """Masked inputs of an association test: few distinct ones, repeated for every person word."""
    path = DATA / "becpro/BEC-Pro_EN.tsv"
    mask = str(model.tokenizer.mask_token)
    if path.is_file():
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
        texts = [row[kind] for kind in ("Sent_TM", "Sent_TAM") for row in rows]
        return [text.replace("[MASK]", mask) for text in texts], "BEC-Pro"
    texts = [f"{mask} works as a {job} {n}." for job in PEOPLE for n in range(50)]
    return [*texts, *[f"{mask} works as a {mask}."] * 500] * 10, "association, made up here"


def pairs(model: MaskedModel, wanted: int) -> tuple[list[tuple[str, str]], str]:
    """Pairs of sentences that differ in a word or two."""
    path = DATA / "crows/crows_pairs_anonymized.csv"
    if path.is_file():
        with path.open(newline="", encoding="utf-8") as file:
            every = [(row["sent_more"], row["sent_less"]) for row in csv.DictReader(file)]
        step = max(1, len(every) // wanted)
        return every[::step][:wanted], "CrowS-Pairs"
    texts = [
        text.replace(str(model.tokenizer.mask_token), "{}") for text in sentences(model, wanted)[0]
    ]
    return [(text.format("he"), text.format("she")) for text in texts], "pairs made up here"


def ours(model: MaskedModel, texts: Sequence[str]) -> np.ndarray:
    """The scoring core: the pronouns' log probabilities and the ten likeliest words."""
    tokenizer = model.tokenizer
    rows = [tuple(ids) for ids in tokenizer(list(texts))["input_ids"]]
    positions = [MaskedPosition(row, row.index(tokenizer.mask_token_id)) for row in rows]
    return query_tokens(model, positions, tokens=pronouns(model), k=10).log_probs


def pronouns(model: MaskedModel) -> list[int]:
    """he, she, his, her, him as the model has them."""
    found = [model.tokenizer(f" {word}", add_special_tokens=False)["input_ids"][-1]
             for word in ("he", "she", "his", "her", "him")]  # fmt: skip
    return [int(token) for token in found]


def score(model: MaskedModel, texts: Sequence[str]) -> object:
    """What `evenhand measure pronouns` does with the model, gender words looked up and all."""
    return probabilities(model, texts)


def pipeline(model: MaskedModel, size: int | None) -> Callable[[Sequence[str]], object]:
    """The fill-mask pipeline of transformers, `size` sentences a batch, or one call a sentence."""
    from transformers import pipeline as make

    known = model.tokenizer
    tokenizer = known.complete() if isinstance(known, Tokenizer) else known
    fill = make("fill-mask", model=model.network, tokenizer=tokenizer, top_k=10, device=-1)
    if size is None:
        return lambda texts: [fill(text) for text in texts]
    return lambda texts: fill(list(texts), batch_size=size)


@torch.no_grad()
def padded(model: MaskedModel, texts: Sequence[str], size: int = BATCH) -> np.ndarray:
    """The usual batch: in the order given, padded, the whole head, softmax over it all."""
    found = []
    for start in range(0, len(texts), size):
        coded = model.tokenizer(
            list(texts[start : start + size]), padding=True, return_tensors="pt"
        )
        logits = model.network(**coded).logits
        at = (coded["input_ids"] == model.tokenizer.mask_token_id).int().argmax(dim=1)
        chances = torch.log_softmax(logits, dim=-1)[torch.arange(len(at)), at]
        found.append(chances[:, pronouns(model)].numpy())
    return np.concatenate(found)


def ours_associations(model: MaskedModel, texts: Sequence[str]) -> object:
    """The pronouns at the first mask of every text; texts that are the same are computed once."""
    tokenizer = model.tokenizer
    rows = [tuple(ids) for ids in tokenizer(list(texts))["input_ids"]]
    positions = [MaskedPosition(row, row.index(tokenizer.mask_token_id)) for row in rows]
    return log_probs(model, positions, pronouns(model))


def ours_pairs(model: MaskedModel, asked: Sequence[tuple[str, str]]) -> object:
    """The pseudo-log-likelihood of all sentences in one pass."""
    return pseudo_log_likelihoods(model, [text for pair in asked for text in pair])[0]


@torch.no_grad()
def naive_pairs(model: MaskedModel, asked: Sequence[tuple[str, str]]) -> object:
    """One call of the whole model for every token, as published code does."""
    sums = []
    for text in itertools.chain.from_iterable(asked):
        ids = model.tokenizer(text, return_tensors="pt")["input_ids"]
        total = 0.0
        for position in range(1, ids.shape[1] - 1):
            hidden = ids.clone()
            hidden[0, position] = model.tokenizer.mask_token_id
            chances = torch.log_softmax(model.network(input_ids=hidden).logits[0, position], dim=-1)
            total += float(chances[ids[0, position]])
        sums.append(total)
    return np.array(sums)


def operations(model: MaskedModel, texts: Sequence[str]) -> float:
    """Floating-point operations that the distinct texts need: every layer but the last at every
    token, the last and the head at the mask; norms and activations not counted.
    """
    layers = layers_of(model.core)
    if layers is None:
        raise SystemExit(f"{model.name}: its layers are not known")
    up = layers[0].up
    width, inner, vocabulary = up.in_features, up.out_features, model.core.config.vocab_size
    lengths = [len(ids) for ids in model.tokenizer(sorted(set(texts)))["input_ids"]]
    token = 2 * (4 * width**2 + 2 * width * inner)
    total = 0.0
    for length in lengths:
        layer = length * (token + 4 * length * width)
        last = token + 4 * length * layers[0].heads * width
        total += (len(layers) - 1) * layer + last + 2 * width * (width + vocabulary)
    return total


def products(model: MaskedModel, tokens: int = 1024) -> tuple[Callable[[], object], float]:
    """The matrix products of one layer, on tokens enough, and their operations."""
    layer = (layers_of(model.core) or [])[0]
    width, inner = layer.up.in_features, layer.up.out_features
    shapes = [(width, 3 * width), (width, width), (width, inner), (inner, width)]
    given = [(torch.randn(tokens, a), torch.randn(b, a), torch.empty(tokens, b)) for a, b in shapes]

    def work() -> None:
        for _ in range(20):
            for states, weight, out in given:
                torch.mm(states, weight.t(), out=out)

    return work, 20 * sum(2.0 * tokens * a * b for a, b in shapes)
