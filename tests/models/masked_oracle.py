"""The slow way to a word's probability: the plain model, one row at a time."""

from __future__ import annotations

import re

import torch


def spans_of(text, *words):
    return [re.search(rf"(?<!\w){word}(?!\w)", text).span() for word in words]


def plain(model, ids, place, token):
    """One call of the model on one row."""
    with torch.no_grad():
        out = model.network(input_ids=torch.tensor([ids])).logits[0, place].double()
    return float(out[token] - out.logsumexp(0))


def oracle(model, text, target, hidden=None):
    """log P(target | rest), with the pieces found by tokenising what comes before the word."""

    def count(part):
        return len(model.tokenizer(part, add_special_tokens=False)["input_ids"])

    def where(word):
        ((begin, end),) = spans_of(text, word)
        return range(1 + count(text[:begin].rstrip()), 1 + count(text[:end]))

    ids = list(model.tokenizer(text)["input_ids"])
    total, shown = 0.0, list(ids)
    for i in where(hidden) if hidden else ():
        shown[i] = model.tokenizer.mask_token_id
    for j in where(target):
        now = list(shown)
        for i in where(target):
            if i >= j:
                now[i] = model.tokenizer.mask_token_id
        total += plain(model, now, j, ids[j])
    return total
