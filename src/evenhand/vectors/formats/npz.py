"""Vectors in Evenhand's .npz: `words` (UTF-8, one per line), `matrix` (float16 or float32), `meta`
(JSON) and, where the words are a selection, `ranks` (their frequency ranks among all words).
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Mapping
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import FileError
from evenhand.files import current_reading
from evenhand.vectors.formats.input import VectorTable, all_finite, undecodable

NPZ = "evenhand-vectors/1"
_DATE = (1980, 1, 1, 0, 0, 0)


def read_npz(file: IO[bytes], path: str) -> VectorTable:
    """Read and check one file; zip's checksums find damaged bytes."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = archive.infolist()
            expanded = sum(member.file_size for member in members)
            packed = sum(member.compress_size for member in members)
        current_reading().check_expanded(path, expanded, packed)
        file.seek(0)
        with np.load(file, allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except FileError:
        raise
    except Exception as error:  # a damaged zip can raise almost anything
        raise FileError(path, f"cannot be read as .npz ({error})") from error
    missing = [name for name in ("meta", "words", "matrix") if name not in arrays]
    if missing:
        got = ", ".join(sorted(arrays)) or "none"
        problem = f"no array '{missing[0]}': expected an .npz of evenhand, its arrays are {got}"
        raise FileError(path, problem)
    _check_meta(arrays["meta"], path)
    matrix, words = arrays["matrix"], arrays["words"]
    if matrix.ndim != 2 or 0 in matrix.shape or matrix.dtype not in (np.float16, np.float32):
        problem = f"'matrix' must be n × d of float16 or float32, got {matrix.shape} {matrix.dtype}"
        raise FileError(path, problem)
    if words.ndim != 1 or words.dtype != np.uint8:
        raise FileError(path, f"'words' must be bytes, got {words.shape} {words.dtype}")
    blob = words.tobytes()
    parts = blob.split(b"\n")
    if len(parts) != len(matrix):
        raise FileError(path, f"{len(parts):,} words for {len(matrix):,} vectors")
    if b"" in parts or len(set(parts)) != len(parts):
        raise FileError(path, "'words' has an empty or a repeated word")
    matrix = matrix.astype(np.float32, copy=False)
    if not all_finite(matrix):
        raise FileError(path, "'matrix' has a number that is nan or infinite")
    odd = undecodable(blob)
    notes = (f"{odd:,} words not in UTF-8: odd bytes shown as \\xNN",) if odd else ()
    return VectorTable(words=blob, matrix=matrix, ranks=_ranks(arrays, path), notes=notes)


def write_npz(
    file: IO[bytes],
    words: bytes,
    matrix: NDArray[np.float16] | NDArray[np.float32],
    ranks: NDArray[np.uint32] | None,
    meta: Mapping[str, object],
    *,
    compress: bool = False,
) -> None:
    """Write one file, byte for byte the same for the same content (zip's dates are fixed)."""
    content = json.dumps({"format": NPZ, **meta}, ensure_ascii=False, sort_keys=True).encode()
    arrays: dict[str, NDArray[Any]] = {
        "meta": np.frombuffer(content, dtype=np.uint8),
        "words": np.frombuffer(words, dtype=np.uint8),
        "matrix": matrix,
    }
    if ranks is not None:
        arrays["ranks"] = ranks
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy", _DATE)
            info.compress_type = zipfile.ZIP_DEFLATED if compress else zipfile.ZIP_STORED
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, np.ascontiguousarray(array), allow_pickle=False)


def _check_meta(meta: NDArray[Any], path: str) -> None:
    try:
        kind = json.loads(meta.astype(np.uint8).tobytes())["format"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise FileError(path, "'meta' is not the JSON of an .npz of evenhand") from error
    if kind != NPZ:
        raise FileError(path, f"expected the format {NPZ}, got {kind!r}")


def _ranks(arrays: Mapping[str, NDArray[Any]], path: str) -> NDArray[np.uint32] | None:
    ranks = arrays.get("ranks")
    if ranks is None:
        return None
    if ranks.shape != arrays["matrix"].shape[:1] or ranks.dtype != np.uint32:
        raise FileError(path, f"'ranks' must be a uint32 a word, got {ranks.shape} {ranks.dtype}")
    return ranks
