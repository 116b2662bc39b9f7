"""The header of a GGUF file: what the model is, checked against the size of the file.

A few kilobytes can declare a billion blocks, and the readers of GGUF build what is declared. So
the header is read here first: every count is bounded by the bytes that are there.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from evenhand.errors import FileError
from evenhand.models.sources import MOST_LAYERS

NUMBERS = {
    0: "<B",
    1: "<b",
    2: "<H",
    3: "<h",
    4: "<I",
    5: "<i",
    6: "<f",
    7: "<?",
    10: "<Q",
    11: "<q",
    12: "<d",
}
"""The format of each kind of number."""
STRING, ARRAY = 8, 9
MOST_DIMENSIONS = 8
LEAST_TENSOR = 24
"""Bytes that the header has for a tensor, at least; of a setting, 13."""
LEAST_BITS = 1
"""Bits that a weight has in the file, at least."""


@dataclass(frozen=True, kw_only=True)
class GgufHeader:
    """The settings of a GGUF file, its tensors' numbers of weights, and lengths of its arrays."""

    settings: Mapping[str, Any]
    tensors: Mapping[str, int]
    lengths: Mapping[str, int]

    def setting(self, name: str, default: int = 0) -> int:
        """A number of the architecture, such as `block_count`."""
        value = self.settings.get(f"{self.settings.get('general.architecture')}.{name}", default)
        return int(value) if isinstance(value, int | float) else default

    def describe(self, name: str) -> dict[str, Any]:
        """What the model is, as `evenhand.models.loading.describe` says it of a loaded one."""
        return {
            "name": name,
            "kind": "causal language model",
            "architecture": str(self.settings.get("general.architecture", "")),
            "weights": sum(self.tensors.values()),
            "layers": self.setting("block_count"),
            "vocabulary": self.lengths.get("tokenizer.ggml.tokens", self.setting("vocab_size")),
            "longest_input": self.setting("context_length"),
        }


class _Reader:
    def __init__(self, path: Path, file: IO[bytes], size: int) -> None:
        self.path, self.file, self.left = path, file, size

    def bytes(self, count: int) -> bytes:
        self.claim(count)
        content = self.file.read(count)
        if len(content) < count:
            raise self.damaged(f"{count:,} bytes more")
        self.left -= count
        return content

    def claim(self, count: int) -> None:
        """Check that the file can have this many more bytes."""
        if count > self.left:
            raise self.damaged(f"{count:,} bytes more, with {self.left:,} left")

    def number(self, kind: int) -> Any:
        pattern = NUMBERS[kind]
        [value] = struct.unpack(pattern, self.bytes(struct.calcsize(pattern)))
        return value

    def text(self) -> str:
        return self.bytes(self.number(10)).decode("utf-8", "replace")

    def value(self, name: str, kind: int, lengths: dict[str, int]) -> Any:
        if kind == STRING:
            return self.text()
        if kind == ARRAY:
            inner, count = self.number(4), self.number(10)
            lengths[name] = count
            if inner == STRING:
                self.claim(8 * count)
                for _ in range(count):
                    self.bytes(self.number(10))
            elif inner in NUMBERS:
                size = struct.calcsize(NUMBERS[inner]) * count
                self.claim(size)
                self.file.seek(size, 1)
                self.left -= size
            else:
                raise self.damaged(f"{name}: an array of numbers or texts, got the type {inner}")
            return None
        if kind not in NUMBERS:
            raise self.damaged(f"{name}: a number or a text, got the type {kind}")
        value = self.number(kind)
        if isinstance(value, float) and not math.isfinite(value):
            raise FileError(self.path, f"{name}: expected a finite number, got {value}")
        return value

    def damaged(self, expected: str) -> FileError:
        return FileError(self.path, f"damaged GGUF header: expected {expected}")


def read_header(path: Path) -> GgufHeader:
    """Read the header of a GGUF file; one that declares more than the file has is refused."""
    size = path.stat().st_size
    with path.open("rb") as file:
        reader = _Reader(path, file, size)
        if size < 24 or reader.bytes(4) != b"GGUF":
            raise FileError(path, "expected a GGUF file, got something else")
        version = reader.number(4)
        if version not in (2, 3):
            raise FileError(path, f"expected GGUF of version 2 or 3, got {version}")
        tensor_count, setting_count = reader.number(10), reader.number(10)
        reader.claim(LEAST_TENSOR * tensor_count + 13 * setting_count)
        lengths: dict[str, int] = {}
        settings = {}
        for _ in range(setting_count):
            name = reader.text()
            settings[name] = reader.value(name, reader.number(4), lengths)
        tensors = {}
        for _ in range(tensor_count):
            name, dimensions = reader.text(), reader.number(4)
            if dimensions > MOST_DIMENSIONS:
                raise reader.damaged(f"{name}: at most {MOST_DIMENSIONS} dimensions")
            tensors[name] = math.prod(reader.number(10) for _ in range(dimensions))
            reader.number(4)
            if reader.number(10) > size:
                raise reader.damaged(f"{name}: weights within the file")
        header = GgufHeader(settings=settings, tensors=tensors, lengths=lengths)
    if sum(tensors.values()) * LEAST_BITS > 8 * size:
        raise reader.damaged(f"at most {8 * size:,} weights, got {sum(tensors.values()):,}")
    layers = header.setting("block_count")
    if not 1 <= layers <= min(MOST_LAYERS, len(tensors)):
        raise FileError(
            path,
            f"block_count: expected 1 to {min(MOST_LAYERS, len(tensors)):,} blocks of "
            f"{len(tensors):,} tensors, got {layers:,}",
        )
    return header
