"""Word vectors in memory: `load` reads them, `Vectors` looks words up in them.

load ──► formats (by content) ──► cache ──► Vectors ──► find, raw, unit ──► save
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeAlias, get_args, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.arguments import checked
from evenhand.errors import FileError, InputError, UnknownNameError, VocabularyError
from evenhand.vectors.cache import key_of, read_cache, write_cache
from evenhand.vectors.formats import read, shortened
from evenhand.vectors.formats.input import Progress, VectorTable, all_finite
from evenhand.vectors.formats.npz import read_npz
from evenhand.vectors.vocabulary import Case, Lookup, Vocabulary

Source: TypeAlias = "str | os.PathLike[str] | Vectors | Any"
"""A name or a path, or vectors in memory."""
EMBEDDED = ("glove",)
"""Names of the vectors that come with the package."""


@runtime_checkable
class Keyed(Protocol):
    """`KeyedVectors` of gensim."""

    index_to_key: Sequence[str]
    vectors: NDArray[np.floating]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Vectors:
    """Words in order of frequency (most frequent first), each with a row of `matrix`; immutable.

    Examples
    --------
    >>> v = Vectors.from_arrays(["he", "she"], [[3.0, 4.0], [0.0, 2.0]])
    >>> v.find(["She", "they"])
    Lookup(words=('She',), rows=array([1]), missing=('they',))
    >>> v.unit([0])
    array([[0.6, 0.8]])

    """

    subject_kind: ClassVar[str] = "vectors"

    name: str
    source: str
    matrix: NDArray[np.float32]
    vocabulary: Vocabulary
    case: Case = "fallback"
    notes: tuple[str, ...] = ()
    stored_ranks: NDArray[np.uint32] | None = None

    @classmethod
    def from_arrays(
        cls,
        words: Sequence[str],
        matrix: ArrayLike,
        *,
        name: str = "memory",
        case: Case = "fallback",
    ) -> Vectors:
        """Vectors from words and a matrix of as many rows, checked."""
        _check_case(case)
        for row, word in enumerate(words):
            if not word or "\n" in word:
                raise InputError(f"word {row + 1}: expected one without line ends, got {word!r}")
        if len(set(words)) != len(words):
            repeated = next(word for row, word in enumerate(words) if word in words[:row])
            raise InputError(f"words: expected each word once, got '{repeated}' twice")
        try:
            blob = "\n".join(words).encode()
        except UnicodeEncodeError as error:
            raise InputError(f"a word is not valid Unicode: {error}") from None
        return cls(
            name=name,
            source=name,
            matrix=_checked(matrix, len(words)),
            case=case,
            vocabulary=Vocabulary(blob),
        )

    @property
    def words(self) -> list[str]:
        """All words, most frequent first."""
        return self.vocabulary.words

    @property
    def dim(self) -> int:
        """The number of dimensions."""
        return int(self.matrix.shape[1])

    @property
    def ranks(self) -> NDArray[np.uint32]:
        """Each row's frequency rank (0: most frequent) among all words, also those left out."""
        if self.stored_ranks is None:
            return np.arange(len(self), dtype=np.uint32)
        return self.stored_ranks

    @cached_property
    def blank(self) -> NDArray[np.bool_]:
        """Mask of the rows that are zero vectors, whose cosine is undefined."""
        return np.asarray(~self.matrix.any(axis=1))

    def __len__(self) -> int:
        return len(self.matrix)

    def __contains__(self, word: object) -> bool:
        return isinstance(word, str) and bool(self.find([word]).words)

    def __getitem__(self, word: str) -> NDArray[np.float32]:
        row = self.vocabulary.row(word, self.case)
        if row is None:
            near = self.vocabulary.nearest(word)
            hint = f": did you mean '{near}'?" if near else ""
            raise VocabularyError(f"'{word}' has no vector in {self.name}{hint}")
        vector: NDArray[np.float32] = self.matrix[row]
        return vector

    def __repr__(self) -> str:
        return f"<Vectors {self.name}: {len(self):,} words × {self.dim}>"

    def find(self, words: Iterable[str]) -> Lookup:
        """Look up words by the case policy; the missing ones are named."""
        if isinstance(words, str):
            raise InputError(f"expected a list of words, got the string '{words}'")
        looked_up: list[tuple[str, int | None]] = []
        for word in words:
            if not isinstance(word, str):
                raise InputError(f"expected words, got {word!r} of type {type(word).__name__}")
            looked_up.append((word, self.vocabulary.row(word, self.case)))
        known = np.array([row for _, row in looked_up if row is not None], dtype=np.intp)
        nonzero = set(known[np.take(self.matrix, known, axis=0).any(axis=1)].tolist())
        rows: dict[int, str] = {}
        missing: dict[str, None] = {}
        for word, row in looked_up:
            if row is None or row not in nonzero:
                missing[word] = None
            else:
                rows.setdefault(row, word)
        return Lookup(
            words=tuple(rows.values()),
            rows=np.fromiter(rows, dtype=np.intp, count=len(rows)),
            missing=tuple(missing),
        )

    def raw(self, rows: ArrayLike) -> NDArray[np.float64]:
        """The vectors of these rows as they are, in float64."""
        return np.take(self.matrix, np.asarray(rows, dtype=np.intp), axis=0).astype(np.float64)

    def unit(self, rows: ArrayLike) -> NDArray[np.float64]:
        """The vectors of these rows scaled to length 1, in float64."""
        vectors = self.raw(rows)
        lengths = np.linalg.norm(vectors, axis=-1, keepdims=True)
        if not lengths.all():
            row = np.asarray(rows)[lengths[..., 0] == 0][0]
            raise VocabularyError(f"'{self.words[row]}' has a zero vector: it has no direction")
        vectors /= lengths
        return vectors

    def with_matrix(self, matrix: ArrayLike, *, name: str) -> Vectors:
        """The same words with other vectors, as after debiasing; words and index are shared."""
        return replace(self, name=name, matrix=_checked(matrix, len(self)))

    def save(self, path: str | os.PathLike[str], format: str | None = None) -> tuple[str, ...]:  # noqa: A002
        """Write the vectors, atomically.

        Parameters
        ----------
        path : str or PathLike
        format : {"npz", "word2vec", "word2vec-binary", "glove"}, optional
            By default from the ending: .npz; .txt and .vec are word2vec text (with a header
            line), .bin is word2vec binary; the last three also with .gz. `glove` is text without
            a header line.

        Returns
        -------
        tuple of str
            Notes on what had to be changed: outside npz, spaces in words become underscores.

        """
        from evenhand.vectors.formats import save

        return save(self, path, format)


@checked
def load(
    source: Source,
    *,
    case: Case = "fallback",
    cache: bool = True,
    limit: int | None = None,
    progress: Progress | None = None,
) -> Vectors:
    """Read word vectors.

    Parameters
    ----------
    source : str, PathLike or vectors in memory
        An embedded name (`glove`) or a file: GloVe or word2vec text, word2vec binary, fastText
        .vec, Evenhand's .npz, or gzip of these. The format is detected from the content. In memory:
        `KeyedVectors` of gensim or a model that has them (`wv`), a mapping of words to vectors, or
        a DataFrame of pandas or polars with one row per word; the words are its only column that is
        not a number, or the index. They are not changed.
    case : {"fallback", "exact"}
        How words are looked up: as they are, then in lower case, Capitalised and UPPER; or as
        they are only.
    cache : bool
        Whether to write a cache beside the file (or in the user's cache folder), so that the next
        load takes milliseconds.
    limit : int, optional
        Read the first rows only.
    progress : callable, optional
        Called with the bytes read and all bytes.

    Returns
    -------
    Vectors

    Examples
    --------
    >>> import evenhand as eh
    >>> eh.vectors.load("glove")
    <Vectors glove: 50,051 words × 100>

    """
    _check_case(case)
    if limit is not None and limit < 1:
        raise InputError(f"limit: expected at least 1, got {limit}")
    if isinstance(source, Vectors):
        return source
    if not isinstance(source, str | os.PathLike):
        words, matrix = _in_memory(source)
        name = f"{type(source).__name__} (in memory)"
        return Vectors.from_arrays(words[:limit], matrix[:limit], name=name, case=case)
    text = os.fspath(source)
    if text.startswith("hf:"):
        raise InputError(
            f"'{text}': static vectors are read from files or embedded ({', '.join(EMBEDDED)}),"
            " not from a hub"
        )
    if text in EMBEDDED:
        with (resources.files("evenhand.assets") / f"{text}.npz").open("rb") as file:
            table = shortened(read_npz(file, f"{text}.npz"), limit)
        return _vectors(table, text, text, case)
    path = Path(text)
    _check_file(path)
    return _vectors(_table(path, cache, limit, progress), path.name, text, case)


def _in_memory(source: Any) -> tuple[list[str], NDArray[Any]]:
    """The words and vectors of an object of another library, in its order."""
    keyed = getattr(source, "wv", source)
    if isinstance(keyed, Keyed):
        return list(map(str, keyed.index_to_key)), np.asarray(keyed.vectors)
    if isinstance(source, Mapping):
        lengths = {np.shape(vector) for vector in source.values()}
        if len(lengths) == 1:
            try:
                return list(map(str, source)), np.array(list(source.values()), dtype=float)
            except (TypeError, ValueError):
                raise InputError("vectors: expected a list of numbers for each word") from None
        raise InputError(f"vectors: expected vectors of one length, got {len(lengths)} lengths")
    if getattr(source, "columns", None) is not None:
        numeric = [name for name in source.columns if _is_numeric(source[name])]
        others = [name for name in source.columns if name not in numeric]
        indexed = getattr(source, "index", None) is not None
        if numeric and (len(others) == 1 or (not others and indexed)):
            words = source[others[0]] if others else source.index
            return [str(word) for word in words], source[numeric].to_numpy()
        names = ", ".join(map(str, others)) or "none"
        raise InputError(
            "vectors: expected a DataFrame with one column of words and columns of numbers, got "
            f"the columns {names} that are not numbers"
        )
    raise InputError(
        "vectors: expected a name, a path, KeyedVectors, a DataFrame or a mapping of words to "
        f"vectors, got {type(source).__name__}"
    )


def _is_numeric(column: Any) -> bool:
    polars = getattr(column.dtype, "is_numeric", None)
    return bool(polars()) if polars else getattr(column.dtype, "kind", "O") in "fiu"


def open_subject(source: Any) -> Vectors | None:
    """Word vectors where the source is a name, a file or an object of them; else None."""
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        tables = (".csv", ".tsv", ".jsonl", ".parquet", ".gguf")
        is_file = path.is_file() and path.suffix.lower() not in tables
        return load(source) if os.fspath(source) in EMBEDDED or is_file else None
    keyed = getattr(source, "wv", source)
    return load(source) if isinstance(keyed, Keyed | Mapping) else None


def _table(path: Path, cache: bool, limit: int | None, progress: Progress | None) -> VectorTable:
    try:
        if not cache:
            return read(path, limit=limit, progress=progress)
        key = key_of(path)
        table = read_cache(path, key)
        if table is not None and (limit is None or not table.duplicates):
            return shortened(table, limit)
        table = read(path, limit=limit, progress=progress)
    except OSError as error:
        raise FileError(path, f"cannot be read ({error.strerror or error})") from error
    if limit is None:
        write_cache(path, key, table)
    return table


def _vectors(table: VectorTable, name: str, source: str, case: Case) -> Vectors:
    return Vectors(
        name=name,
        source=source,
        matrix=_read_only(table.matrix),
        case=case,
        notes=table.notes,
        vocabulary=Vocabulary(table.words),
        stored_ranks=table.ranks,
    )


def _checked(matrix: ArrayLike, count: int) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):
        rows = np.ascontiguousarray(matrix, dtype=np.float32)
    if rows.ndim != 2 or 0 in rows.shape or len(rows) != count:
        raise InputError(f"matrix: expected {count} rows of numbers, got the shape {rows.shape}")
    if not all_finite(rows):
        raise InputError("matrix: a number is nan or infinite")
    return _read_only(rows)


def _read_only(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    view = matrix.view()
    view.flags.writeable = False
    return view


def _check_case(case: str) -> None:
    if case not in get_args(Case):
        raise InputError(f"case: expected one of {', '.join(get_args(Case))}, got {case!r}")


def _check_file(path: Path) -> None:
    if path.is_dir():
        raise FileError(path, "is a folder: expected a file of vectors")
    if path.is_file():
        return
    if path.exists():
        raise FileError(path, "is not a regular file: a stream cannot be read twice; save it first")
    if path.suffix or path.name != str(path):
        embedded = ", ".join(EMBEDDED)
        raise FileError(path, f"no such file (embedded vectors: {embedded})")
    raise UnknownNameError("vectors", str(path), EMBEDDED)
