"""Gathering a batch on the device, and what is to be predicted in it.

Masked models predict some hidden tokens (Devlin et al. 2019), causal ones every next token.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .model import Batch
from .tokenizer import CLS, MASK, PAD, SEP, SPECIAL

MARKS = (CLS, SEP, PAD)
CAUSAL_MARKS = (0, 0, 0)
IGNORED = -100
"""The label of a token after which nothing is predicted."""


def gather(
    text: Tensor,
    starts: Tensor,
    bounds: Tensor,
    tokens: int,
    longest: int,
    marks: tuple[int, int, int] = MARKS,
) -> Batch:
    """Cut the rows out of the text and put `[CLS]` and `[SEP]` around each, or other marks.

    `tokens` is the number of tokens in the batch, `longest` the length that no row exceeds.

    >>> text = torch.tensor([11, 12, 13, 14, 15])
    >>> starts, bounds = torch.tensor([3, 0, -1]), torch.tensor([0, 4, 7, 8])
    >>> gather(text, starts, bounds, 8, 4).tokens.tolist()
    [2, 14, 15, 3, 2, 11, 3, 0]
    """
    lengths = bounds.diff()
    slots = torch.arange(len(starts), device=text.device)
    row = torch.repeat_interleave(slots, lengths, output_size=tokens)
    offset = torch.arange(tokens, device=text.device) - bounds[row]
    begin = starts[row]
    ids = text[(begin + offset - 1).clamp(0, len(text) - 1)].long()
    first, last, padding = marks
    ids = torch.where(offset == 0, first, ids)
    ids = torch.where(offset == lengths[row] - 1, last, ids)
    return Batch(torch.where(begin < 0, padding, ids), offset, bounds, longest)


def next_tokens(batch: Batch) -> Tensor:
    """The label of every token: the next one of its row.

    The mark after a row is no label: documents have one of their own, rows that were full end
    anywhere. Padding has no labels; only there two marks are neighbours.

    >>> text = torch.tensor([11, 12, 13, 14, 0])
    >>> starts, bounds = torch.tensor([3, 0, -1]), torch.tensor([0, 4, 8, 11])
    >>> batch = gather(text, starts, bounds, 11, 4, CAUSAL_MARKS)
    >>> batch.tokens.tolist()
    [0, 14, 0, 0, 0, 11, 12, 0, 0, 0, 0]
    >>> next_tokens(batch).tolist()
    [14, 0, -100, -100, 11, 12, -100, -100, -100, -100, -100]
    """
    tokens, positions = batch.tokens, batch.positions
    following = tokens.roll(-1)
    within = positions.roll(-2) == positions + 2
    return torch.where(within & ((tokens != 0) | (following != 0)), following, IGNORED)


def hide(
    batch: Batch,
    count: int,
    vocabulary: int,
    generator: torch.Generator,
    *,
    continues: Tensor | None = None,
    only_mask: bool = False,
) -> tuple[Batch, Tensor, Tensor]:
    """Choose `count` ordinary tokens at random: the batch with them hidden, places and labels.

    Of the chosen, 80 % become `[MASK]`, 10 % a random piece, 10 % stay; with `only_mask` all
    become `[MASK]`. `continues` says of every piece whether it continues a word (`##`): given it,
    whole words are chosen, all pieces or none but for the last word chosen.
    """
    tokens = batch.tokens
    device = tokens.device
    scores = torch.rand(len(tokens), generator=generator, device=device)
    if continues is not None:
        places = torch.arange(len(tokens), device=device)
        scores = scores[torch.where(continues[tokens], 0, places).cummax(0).values]
    scores = torch.where(tokens < len(SPECIAL), -1.0, scores)
    chosen = scores.topk(count, sorted=False).indices
    labels = tokens[chosen]
    if only_mask:
        shown = torch.full_like(labels, MASK)
    else:
        fate = torch.rand(count, generator=generator, device=device)
        anything = torch.randint(
            len(SPECIAL), vocabulary, (count,), generator=generator, device=device
        )
        shown = torch.where(fate < 0.8, MASK, torch.where(fate < 0.9, anything, labels))
    hidden = tokens.scatter(0, chosen, shown)
    return Batch(hidden, batch.positions, batch.bounds, batch.longest), chosen, labels
