"""Weights of a masked model as a short text: rounded to a few bits and packed.

`evenhand.report.interactive` embeds the text in a page, whose script unpacks it.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from evenhand.models.masked import MaskedModel

Floats = NDArray[np.float32]
Ints = NDArray[np.int32]

ALPHABET = "".join(chr(code) for code in range(33, 127) if chr(code) not in "\"'<")
"""The 91 characters of a packed text; two of them have 13 bits. None can end an HTML script."""
BLOCK = 13
"""Bytes that are 16 characters."""
DAMPING = 0.01


def round_rows(
    matrix: Floats, bits: int, moments: NDArray[np.float64] | None = None
) -> tuple[Ints, Floats]:
    r"""Round a matrix to whole numbers of some bits, with one scale per row.

    Parameters
    ----------
    matrix : array (rows, columns)
        The weights $W$ of a linear map.
    bits : int
    moments : array (columns, columns), optional
        $\sum_i x_i x_i^T$ of inputs of the map. With it, what rounding a column changes is made up
        for by the columns that are not yet rounded, so that $\sum_i \lVert (W - Q) x_i \rVert^2$
        is small (GPTQ; Frantar et al. 2023).

    Returns
    -------
    numbers : array of int (rows, columns)
        From $-(2^{bits - 1} - 1)$ to $2^{bits - 1} - 1$.
    scales : array (rows)

    Examples
    --------
    >>> numbers, scales = round_rows(np.array([[1.0, -0.5]], np.float32), 8)
    >>> numbers.tolist(), round(float(1 / scales[0]))
    ([[127, -64]], 127)
    """
    top = 2 ** (bits - 1) - 1
    scales = (np.abs(matrix).max(axis=1) / np.float32(top)).astype(np.float32)
    scales[scales == 0] = 1
    if moments is None:
        return np.rint(matrix / scales[:, None]).clip(-top, top).astype(np.int32), scales
    damped = moments + DAMPING * np.trace(moments) / len(moments) * np.eye(len(moments))
    upper = np.linalg.cholesky(np.linalg.inv(damped)).T
    remaining = matrix.astype(np.float64)
    numbers = np.empty(matrix.shape, dtype=np.int32)
    for i in range(matrix.shape[1]):
        numbers[:, i] = np.rint(remaining[:, i] / scales).clip(-top, top)
        error = (remaining[:, i] - numbers[:, i] * scales) / upper[i, i]
        remaining[:, i:] -= np.outer(error, upper[i, i:])
    return numbers, scales


def pack(numbers: Ints, scales: Floats, bits: int) -> bytes:
    """Whole numbers of 8, 9, 10, 12 or 16 bits and the scales of their rows as bytes.

    The scales come first, as float32, little-endian; for each number, increased by 2^(bits - 1),
    its lowest 8 bits as a byte; then the other bits, those of several numbers in a byte, the first
    in the lowest bits; then zeros up to a multiple of 13 bytes.
    """
    stored = numbers.ravel() + 2 ** (bits - 1)
    content: bytes = scales.astype("<f4").tobytes() + (stored & 255).astype(np.uint8).tobytes()
    if bits > 8:
        per_byte = 8 // (bits - 8)
        rest = np.zeros(-(-stored.size // per_byte) * per_byte, dtype=np.int32)
        rest[: stored.size] = stored >> 8
        shifted = rest.reshape(-1, per_byte) << ((bits - 8) * np.arange(per_byte))
        content += shifted.sum(axis=1).astype(np.uint8).tobytes()
    return content + bytes(-len(content) % BLOCK)


def unpack(content: bytes, shape: tuple[int, int], bits: int) -> Floats:
    """The rounded matrix of packed bytes, as the script of a page reads it."""
    rows, size, high = shape[0], shape[0] * shape[1], bits - 8
    scales = np.frombuffer(content, "<f4", rows)
    numbers = np.frombuffer(content, np.uint8, size, 4 * rows).astype(np.int32)
    if high:
        per_byte = 8 // high
        stored = np.frombuffer(content, np.uint8, -(-size // per_byte), 4 * rows + size)
        rest = (stored[:, None] >> (high * np.arange(per_byte))) & (2**high - 1)
        numbers |= rest.ravel()[:size].astype(np.int32) << 8
    return np.asarray((numbers - 2 ** (bits - 1)).reshape(shape) * scales[:, None], np.float32)


def packed_size(shape: Sequence[int], bits: int) -> int:
    """The number of bytes of a packed matrix."""
    rows, size = int(np.prod(shape[:-1])), int(np.prod(shape))
    return -(-(4 * rows + size + -(-size * (bits - 8) // 8)) // BLOCK) * BLOCK


def to_text(content: bytes) -> str:
    """Bytes, a multiple of 13 of them, as text: 13 bits, the highest first, are two characters.

    >>> to_text(bytes(12) + b"1")
    '!!!!!!!!!!!!!!!U'
    """
    symbols = np.frombuffer(ALPHABET.encode(), np.uint8)
    places = 1 << np.arange(BLOCK - 1, -1, -1, dtype=np.uint16)
    parts = []
    for start in range(0, len(content), 100_000 * BLOCK):
        block = np.frombuffer(content[start : start + 100_000 * BLOCK], np.uint8)
        values = np.unpackbits(block).reshape(-1, BLOCK) @ places
        digits = np.stack(np.divmod(values, len(ALPHABET)), axis=1)
        parts.append(symbols[digits.ravel()].tobytes())
    return b"".join(parts).decode()


def to_bytes(text: str) -> bytes:
    """The bytes of a text of `to_text`.

    >>> to_bytes(to_text(bytes(range(13)))) == bytes(range(13))
    True
    """
    digits = np.zeros(128, dtype=np.uint16)
    digits[np.frombuffer(ALPHABET.encode(), np.uint8)] = np.arange(len(ALPHABET))
    pairs = digits[np.frombuffer(text.encode(), np.uint8)].reshape(-1, 2)
    values = pairs[:, 0] * np.uint16(len(ALPHABET)) + pairs[:, 1]
    bits = (values[:, None] >> np.arange(BLOCK - 1, -1, -1, dtype=np.uint16)) & 1
    return np.packbits(bits.astype(np.uint8)).tobytes()


def input_moments(model: MaskedModel, texts: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    r"""$\sum_i x_i x_i^T$ of the inputs of each linear map of a network's layers, by its name.

    Parameters
    ----------
    model : MaskedModel
    texts : sequence of str
        Texts with the mask of the model's tokenizer.

    """
    import torch

    moments: dict[str, torch.Tensor] = {}

    def add(name: str, _: object, inputs: tuple[torch.Tensor, ...], __: object) -> None:
        states = inputs[0].reshape(-1, inputs[0].shape[-1]).double().cpu()
        moments[name] = moments.get(name, 0) + states.T @ states

    network: Any = copy.deepcopy(model.network)
    network.float()
    for name, module in network.named_modules():
        if isinstance(module, torch.nn.Linear) and ".layer." in name:
            module.register_forward_hook(partial(add, f"{name}.weight"))
    with torch.inference_mode():
        for text in texts:
            ids = model.tokenizer(text)["input_ids"]
            network(torch.tensor([ids], device=network.device))
    return {name: total.numpy() for name, total in moments.items()}


def with_weights(model: MaskedModel, weights: Mapping[str, Floats]) -> MaskedModel:
    """A copy of a model with other weights; those that are tied change with their source."""
    import torch

    from evenhand.models.base import Networks
    from evenhand.models.masked import MaskedModel

    core = copy.deepcopy(model.core)
    own = core.state_dict()
    with torch.no_grad():
        for name, values in weights.items():
            own[name].copy_(torch.from_numpy(values))
    return MaskedModel(model.name, Networks(core), model.tokenizer)
