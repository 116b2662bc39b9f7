"""Features of texts by a model that stays as it is, each text encoded once and then kept."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from evenhand.fewshot.encoders.cache import Cache
from evenhand.fewshot.encoders.packed import packed
from evenhand.fewshot.encoders.tokens import Rows, pieces
from evenhand.masked.model import Model, load

__all__ = ["Progress", "encoded", "frozen"]

TOKENS = 4096
"""Tokens that go through the model at once."""
STORED = 16
"""So many of these passes are stored together."""

Progress = Callable[[str, int, int, str], None]
"""Told as the work goes on: what is being done, how much of it, of how much, and more in words."""


def frozen(
    source: str | os.PathLike[str] | Model,
    texts: Sequence[str],
    *,
    pooling: str = "mean",
    limit: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    device: str = "auto",
    progress: Progress | None = None,
) -> NDArray[np.float32]:
    """The features (n, dim) of texts by a model, or a model's name or folder, in the order given.

    `pooling` is the mean over a text's tokens, or `cls`, the first one; `limit` cuts texts after so
    many tokens, by default where the model ends. `cache` is a folder where features are kept: they
    are found again by the text, the model's content, the pooling and the limit.

    >>> frozen("mini", ["she sings.", "he cooks.", "she sings."]).shape
    (3, 256)
    """
    model = source if isinstance(source, Model) else load(source, device=device, head=False)
    keys = Cache.keys(texts)
    if cache is None:
        places = {key: place for place, key in enumerate(keys)}
        rows = Rows(model, [texts[p] for p in places.values()], pooling=pooling, limit=limit)
        made = np.empty((len(places), model.dim), dtype=np.float32)
        for chosen, features in encoded(model, rows, np.arange(len(places)), progress=progress):
            made[chosen] = features
        order = {key: number for number, key in enumerate(places)}
        return made[[order[key] for key in keys]]
    probe = Rows(model, [], pooling=pooling, limit=limit)
    depends = {"model": model.fingerprint, "pooling": pooling, "limit": probe.limit}
    kept = Cache(cache, depends, model.dim)
    if kept.missing(keys):
        with kept.alone():
            missing = kept.missing(keys)
            if missing:
                some = [texts[place] for place in missing]
                _fill(kept, model, some, Rows(model, some, pooling=pooling, limit=limit), progress)
    return kept.find(keys)


def encoded(
    model: Model,
    rows: Rows,
    chosen: NDArray[np.int64],
    *,
    done: Callable[[int], bool] = lambda number: False,  # noqa: ARG005
    progress: Progress | None = None,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.float32]]]:
    """The features of the chosen rows, piece by piece, from the shortest rows to the longest.

    Where the pieces are cut depends on the rows alone; those that are `done` come out empty.
    """
    total = int(rows.lengths[chosen].sum())
    so_far = count = 0
    for number, piece in enumerate(pieces(rows.lengths, rows.by_length(chosen), TOKENS * STORED)):
        if done(number):
            yield piece, np.empty((0, model.dim), dtype=np.float32)
        else:
            features = np.empty((len(piece), model.dim), dtype=np.float32)
            begin = 0
            for part in pieces(rows.lengths, piece, TOKENS):
                with torch.inference_mode():
                    states = packed(model.network, rows.groups(part, model.device))
                features[begin : begin + len(part)] = states.cpu().numpy()
                begin += len(part)
                if progress is not None:
                    tokens = int(rows.lengths[piece[:begin]].sum())
                    words = f"{count + begin:,} of {len(chosen):,} texts"
                    progress("encoding", so_far + tokens, total, words)
            yield piece, features
        so_far += int(rows.lengths[piece].sum())
        count += len(piece)


def _fill(
    kept: Cache, model: Model, texts: Sequence[str], rows: Rows, progress: Progress | None
) -> None:
    keys = Cache.keys(texts)
    with kept.writing(keys) as request:
        made = encoded(model, rows, np.arange(len(texts)), done=request.has, progress=progress)
        for number, (piece, features) in enumerate(made):
            if len(features):
                request.store(number, [keys[place] for place in piece.tolist()], features)
