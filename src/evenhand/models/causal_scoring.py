"""The scoring core: log-likelihoods of rows of tokens, or of their last tokens.

Rows that begin alike are one tree, of which each token is computed once; trees share a batch, whose
products have no padding; the head is computed where a token is predicted. The numbers do not depend
on the batch: they equal those of a direct call of the model, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.cache import Cache, Progress
from evenhand.errors import InputError
from evenhand.models.masked_scoring import read_cached
from evenhand.models.trees import Tree, grow

if TYPE_CHECKING:
    import torch

    from evenhand.models.causal import CausalLM
    from evenhand.models.decoder import Decoder

Floats = NDArray[np.float64]
Row = Sequence[int] | NDArray[Any]

BATCH_TOKENS, GPU_BATCH_TOKENS = 2048, 1 << 17
"""Tokens per batch."""
LOGITS, GPU_LOGITS = 1 << 24, 1 << 28
"""Logits that are held in memory at once."""
STEP = 512
"""Rows that are computed, and whose answers are cached, at once."""


def log_likelihoods(
    model: CausalLM,
    rows: Sequence[Row],
    begins: Sequence[int] | None = None,
    *,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Floats:
    r"""Compute the log probability of each row's tokens, given those before them.

    Parameters
    ----------
    model : CausalLM
    rows : sequence of rows of token ids
        With the token that begins a text, where the model has one.
    begins : sequence of int, optional
        The first token of each row that counts; by default the second one, so that the first is
        given.
    cache, progress
        As for `Run`.

    Returns
    -------
    array (rows)
        $\sum_{t \ge b} \log P(w_t \mid w_1 … w_{t-1})$

    """
    arrays = [np.asarray(row, dtype=np.int64) for row in rows]
    starts = [1] * len(arrays) if begins is None else [int(begin) for begin in begins]
    for row, begin in zip(arrays, starts, strict=True):
        if not 1 <= begin < len(row):
            raise InputError(f"begin: expected 1 to {len(row) - 1}, within the row, got {begin}")
        if len(row) - 1 > model.longest:
            raise InputError(
                f"model '{model.name}': expected {model.longest + 1} tokens or fewer, "
                f"got {len(row)}"
            )
    contents = (
        np.array([begin, *row], dtype=np.int32).tobytes()
        for begin, row in zip(starts, arrays, strict=True)
    )

    def compute(chosen: list[int]) -> Floats:
        values = _compute(model, [arrays[i] for i in chosen], [starts[i] for i in chosen])
        return values[:, None]

    result = np.empty((len(arrays), 1))
    _fill(result, model, "likelihood", contents, arrays, compute, cache, progress)
    return result[:, 0]


def _fill(
    result: NDArray[Any],
    model: CausalLM,
    context: str,
    contents: Iterable[bytes],
    rows: Sequence[NDArray[Any]],
    compute: Callable[[list[int]], NDArray[Any]],
    cache: Cache | None,
    progress: Progress | None,
) -> None:
    """Fill the result of each row, from the cache or computed step by step.

    Rows that begin alike are computed together.
    """
    keys, absent = read_cached(model, cache, context, contents, result)
    missing = sorted(absent.tolist(), key=lambda i: rows[i].tolist())
    done = len(rows) - len(missing)
    for first in range(0, len(missing), STEP):
        chosen = missing[first : first + STEP]
        result[chosen] = compute(chosen)
        if keys and cache is not None:
            cache.store([keys[i] for i in chosen], result[chosen])
        done += len(chosen)
        if progress is not None:
            progress(done, len(rows))


def next_log_probs(
    model: CausalLM,
    rows: Sequence[Row],
    tokens: Sequence[int],
    *,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Floats:
    """Compute the log probability of each token after each row (rows, tokens)."""
    longer = [[*map(int, row), int(token)] for row in rows for token in tokens]
    begins = [len(row) - 1 for row in longer]
    values = log_likelihoods(model, longer, begins, cache=cache, progress=progress)
    return values.reshape(len(rows), len(tokens))


def _compute(model: CausalLM, rows: Sequence[NDArray[Any]], begins: Sequence[int]) -> Floats:
    decoder = model.decoder
    if decoder is None:
        return _compute_any(model, rows, begins)
    values = np.zeros(len(rows))
    limit = GPU_BATCH_TOKENS if decoder.head.is_cuda else BATCH_TOKENS
    for trees in _batches(sorted(grow(rows), key=len), limit):
        _add(decoder, trees, rows, begins, values)
    return values


def _batches(trees: Sequence[Tree], limit: int) -> Iterator[list[Tree]]:
    """Batches of trees of similar sizes, at most `limit` tokens with padding."""
    batch: list[Tree] = []
    for tree in trees:
        if batch and (len(batch) + 1) * len(tree) > limit:
            yield batch
            batch = []
        batch.append(tree)
    if batch:
        yield batch


def _add(
    decoder: Decoder,
    trees: Sequence[Tree],
    rows: Sequence[NDArray[Any]],
    begins: Sequence[int],
    values: Floats,
) -> None:
    """Add the log probabilities of the tokens of a batch to the values of their rows."""
    import torch

    firsts = np.cumsum([0, *map(len, trees)])
    nodes, targets, owners = [], [], []
    for first, tree in zip(firsts, trees, strict=False):
        for row, path in zip(tree.rows, tree.paths, strict=True):
            begin = begins[row]
            nodes.append(first + path[begin - 1 :])
            targets.append(rows[row][begin:])
            owners.append(np.full(len(path) - begin + 1, row))
    distinct, index = np.unique(np.concatenate(nodes), return_inverse=True)
    wanted = np.concatenate(targets)
    with torch.inference_mode():
        states = decoder.norm(_states(decoder, trees)[_tensor(distinct, decoder)])
        step = max(1, (GPU_LOGITS if states.is_cuda else LOGITS) // len(decoder.head))
        log_probs = np.empty(len(wanted))
        for start in range(0, len(distinct), step):
            logits = torch.nn.functional.linear(states[start : start + step], decoder.head).float()
            at = np.flatnonzero((index >= start) & (index < start + step))
            total = logits.logsumexp(dim=1).double()
            rows_at = _tensor(index[at] - start, decoder)
            chosen = logits[rows_at, _tensor(wanted[at], decoder)].double() - total[rows_at]
            log_probs[at] = chosen.cpu().numpy()
    np.add.at(values, np.concatenate(owners), log_probs)


def _states(decoder: Decoder, trees: Sequence[Tree]) -> torch.Tensor:
    """The states of all nodes after the last layer, tree after tree."""
    import torch

    from evenhand.models.decoder import attend, rotate

    sizes = np.array([len(tree) for tree in trees])
    width = int(sizes.max())
    places = _tensor(
        np.concatenate([i * width + np.arange(size) for i, size in enumerate(sizes)]), decoder
    )
    tokens = _tensor(np.concatenate([tree.tokens for tree in trees]), decoder)
    depths = _tensor(np.concatenate([tree.depths for tree in trees]), decoder)
    mask = None
    if not all(tree.is_row for tree in trees):
        seen = np.zeros((len(trees), 1, width, width), dtype=bool)
        seen[:, :, np.arange(width), np.arange(width)] = True  # so that padding sees something
        for i, tree in enumerate(trees):
            seen[i, 0, : len(tree), : len(tree)] = tree.mask()
        mask = torch.from_numpy(seen).to(tokens.device)
    rotation = decoder.rotation(depths)
    both = decoder.heads + decoder.groups
    full = bool((sizes == width).all())
    states = decoder.embed(tokens, depths)
    for number, layer in enumerate(decoder.layers, start=1):
        qkv = layer.qkv(layer.before(states)).view(len(tokens), -1, decoder.size)
        if rotation is not None:
            qkv = torch.cat([rotate(qkv[:, :both], rotation), qkv[:, both:]], dim=1)
        if full:
            padded = qkv
        else:
            padded = qkv.new_zeros(len(trees) * width, *qkv.shape[1:])
            padded[places] = qkv
        seen_states = attend(decoder, padded.view(len(trees), width, *qkv.shape[1:]), mask)
        flat = seen_states.reshape(len(trees) * width, -1)
        states = states + layer.out(flat if full else flat[places])
        states = states + layer.feed(layer.after(states))
        if number in decoder.maps:
            states = decoder.maps[number](states)
    return states


def run_rows(decoder: Decoder, rows: Sequence[Row]) -> None:
    """Run the layers on rows in this order, for what the maps of the decoder see of them."""
    import torch

    trees = [tree for row in rows for tree in grow([np.array([*map(int, row), 0])])]
    limit = GPU_BATCH_TOKENS if decoder.head.is_cuda else BATCH_TOKENS
    with torch.inference_mode():
        for batch in _batches(trees, limit):
            _states(decoder, batch)


def mean_states(
    model: CausalLM,
    texts: Sequence[str],
    *,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> NDArray[np.float32]:
    """Compute the mean of the last states of each text's tokens, after the norm (texts, width).

    The token that begins a text is read but not averaged: its state is the same for all texts, and
    far longer than the others.
    """
    before = [] if model.begin is None else [model.begin]
    rows = [np.array([*before, *coded.ids], dtype=np.int64) for coded in model.encode(texts)]
    for text, row in zip(texts, rows, strict=True):
        if not len(before) < len(row) <= model.longest:
            raise InputError(
                f"'{text[:60]}': expected 1 to {model.longest - len(before)} tokens for model "
                f"'{model.name}', got {len(row) - len(before)}"
            )
    by_content = {row.tobytes(): row for row in rows}
    distinct = list(by_content.values())

    def compute(chosen: list[int]) -> NDArray[np.float32]:
        return _mean_states(model, [distinct[i] for i in chosen], len(before))

    result = np.empty((len(distinct), _width(model)), dtype=np.float32)
    _fill(result, model, "mean state", by_content, distinct, compute, cache, progress)
    numbers = {content: i for i, content in enumerate(by_content)}
    return np.asarray(result[[numbers[row.tobytes()] for row in rows]])


def _width(model: CausalLM) -> int:
    """The width of the states of a model."""
    if model.decoder is not None:
        return model.decoder.head.shape[1]
    dim: int | None = getattr(model, "dim", None)
    if dim is None:
        raise InputError(f"model '{model.name}': expected a network with inner states, got none")
    return dim


def _mean_states(model: CausalLM, rows: Sequence[NDArray[Any]], begin: int) -> NDArray[np.float32]:
    import torch

    decoder = model.decoder
    if decoder is None:
        network: Any = getattr(model, "network", None)
        means = []
        with torch.inference_mode():
            for row in rows:
                ids = torch.from_numpy(row)[None].to(network.device)
                states = network(input_ids=ids, output_hidden_states=True).hidden_states[-1][0]
                means.append(states[begin:].float().mean(dim=0).cpu().numpy())
        return np.stack(means)
    result = np.empty((len(rows), _width(model)), dtype=np.float32)
    limit = GPU_BATCH_TOKENS if decoder.head.is_cuda else BATCH_TOKENS
    longer = [np.append(row, 0) for row in rows]  # the last token of a row is not read
    for trees in _batches(sorted(grow(longer), key=len), limit):
        firsts = np.cumsum([0, *map(len, trees)])
        with torch.inference_mode():
            states = decoder.norm(_states(decoder, trees)).float().cpu().numpy()
        for first, tree in zip(firsts, trees, strict=False):
            for number, path in zip(tree.rows, tree.paths, strict=True):
                result[number] = states[first + path[begin:]].mean(axis=0)
    return result


def row_logits(decoder: Decoder, row: NDArray[Any]) -> NDArray[np.float32]:
    """Compute the logits (tokens, vocabulary) of the token after each token of a row."""
    import torch

    [tree] = grow([np.array([*map(int, row), 0])], largest=len(row))  # the last one is not read
    with torch.inference_mode():
        states = decoder.norm(_states(decoder, [tree]))
        logits = torch.nn.functional.linear(states, decoder.head).float()
        return np.asarray(logits.cpu().numpy())


def _tensor(numbers: NDArray[Any], decoder: Decoder) -> torch.Tensor:
    import torch

    return torch.from_numpy(np.ascontiguousarray(numbers, dtype=np.int64)).to(decoder.head.device)


def _compute_any(model: CausalLM, rows: Sequence[NDArray[Any]], begins: Sequence[int]) -> Floats:
    """The same through the model's own call, row by row."""
    values = np.zeros(len(rows))
    for i, (row, begin) in enumerate(zip(rows, begins, strict=True)):
        logits = model.logits(row[:-1])[begin - 1 :]
        top = logits.max(axis=1)
        total = top + np.log(np.exp(logits - top[:, None]).sum(axis=1))
        values[i] = float((logits[np.arange(len(logits)), row[begin:]] - total).sum())
    return values


def sentence_log_likelihoods(
    model: CausalLM,
    texts: Sequence[str],
    *,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> tuple[Floats, NDArray[np.int64]]:
    """Compute the log-likelihood of each text, and how many tokens it counts.

    All tokens of a text count where the model has a token that begins or ends a text: it is put
    before them. Otherwise the first token is given and does not count. A text with nothing to count
    has a log-likelihood of 0.

    Examples
    --------
    >>> from evenhand.simulate.causal import bigram_model
    >>> model = bigram_model({"[BOS]": {"she": 0.5}, "she": {"sings": 0.25}})
    >>> values, tokens = sentence_log_likelihoods(model, ["She sings"])
    >>> round(float(np.exp(values[0])), 3), int(tokens[0])
    (0.125, 2)
    """
    before = [] if model.begin is None else [model.begin]
    rows = [[*before, *coded.ids] for coded in model.encode(texts)]
    counted = np.array([max(len(row) - 1, 0) for row in rows], dtype=np.int64)
    values = np.zeros(len(rows))
    some = np.flatnonzero(counted)
    values[some] = log_likelihoods(model, [rows[i] for i in some], cache=cache, progress=progress)
    return values, counted


def continuation_log_likelihoods(
    model: CausalLM,
    contexts: Sequence[str],
    continuations: Sequence[str],
    *,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> tuple[Floats, NDArray[np.int64]]:
    """Compute the log-likelihood of each continuation after its context, and its tokens.

    Context and continuation are tokenized as one text. A token with letters of both belongs to the
    continuation; so do spaces at the end of a context, which many tokenizers join to the next word.

    Examples
    --------
    >>> from evenhand.simulate.causal import bigram_model
    >>> model = bigram_model({"nurse": {"she": 0.8}})
    >>> values, _ = continuation_log_likelihoods(model, ["The nurse"], [" she"])
    >>> round(float(np.exp(values[0])), 3)
    0.8
    """
    shorter = [context.rstrip() for context in contexts]
    joined = [
        f"{context}{continuation}"
        for context, continuation in zip(contexts, continuations, strict=True)
    ]
    before = [] if model.begin is None else [model.begin]
    rows, begins = [], []
    for text, context, coded in zip(joined, shorter, model.encode(joined), strict=True):
        own = next((i for i, (_, end) in enumerate(coded.offsets) if end > len(context)), None)
        if own is None or (not before and own == 0):
            missing = "continuation" if own is None else "context"
            raise InputError(f"'{text[:60]}': expected a {missing} of one token or more, got none")
        rows.append([*before, *coded.ids])
        begins.append(len(before) + own)
    values = log_likelihoods(model, rows, begins, cache=cache, progress=progress)
    return values, np.array([len(r) - b for r, b in zip(rows, begins, strict=True)], dtype=np.int64)
