"""Word vectors trained on a corpus: skip-gram with negative sampling (Mikolov et al. 2013).

gensim computes the updates. The corpus is read here, once to count words and once per epoch, in
pieces: so an error in a file has its line, and a run can go on where it was killed. The state of a
run is all that later updates depend on; with one thread a resumed run has the same bytes.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from time import monotonic
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import checked
from evenhand.display import Shown
from evenhand.errors import FileError, InputError, parameter
from evenhand.files import (
    check_folder,
    current_reading,
    digest_of,
    document,
    is_ours,
    lock_folder,
    plain,
    public,
    public_names,
    read_document,
    real_path,
    record_of,
    replace_file,
    save_json,
    versions,
)
from evenhand.instruments import check_options, option
from evenhand.text.corpus.compression import STDIN, SURROGATE, source_name
from evenhand.text.corpus.formats import Form, Lines
from evenhand.text.corpus.reading import Chunk, CorpusPosition, chunks, total_size
from evenhand.text.external import import_package
from evenhand.text.tokens import Words
from evenhand.training import defer_interrupt
from evenhand.vectors.formats import format_of
from evenhand.vectors.store import Vectors, load

Floats32: TypeAlias = NDArray[np.float32]
StepProgress: TypeAlias = Callable[[str, int, int | None, str], None]
"""Called with the name of the step, what is done, what there is in all, and a text."""

LONGEST = 10_000
"""Words of a text that gensim trains on at once; a longer text is cut."""
LOWEST_RATE = 1e-4
INTERVAL = 60.0
"""Seconds between two checkpoints."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainSettings:
    """How to train word vectors; the defaults are gensim's.

    Examples
    --------
    >>> TrainSettings(window=0)
    Traceback (most recent call last):
    evenhand.errors.InputError: window: expected 1 to 1000, got 0
    """

    dimensions: int = option(100, minimum=1, maximum=10_000, help="Numbers of each vector.")
    window: int = option(
        5, minimum=1, maximum=1000, help="The most words between a word and one it predicts."
    )
    negative: int = option(5, minimum=1, maximum=1000, help="Random words for every observed one.")
    epochs: int = option(5, minimum=1, help="Passes over the corpus.")
    min_count: int = option(5, minimum=1, help="Leave out words that occur less often.")
    sample: float = option(
        1e-3,
        minimum=0,
        below=1,
        help="Words more frequent than this share are left out at random; 0: none.",
    )
    learning_rate: float = option(
        0.025,
        above=LOWEST_RATE,
        maximum=1,
        help="The rate at the start, from which it falls evenly.",
    )
    threads: int = option(
        1,
        minimum=1,
        maximum=256,
        help="With 1 the same seed gives the same bytes on the same machine; with more it does "
        "not.",
    )
    seed: int = option(
        0, minimum=0, maximum=2**32 - 1, public=False, help="Seed of all random draws."
    )

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class TrainedVectors(Shown):
    """Trained vectors, most frequent word first, and the corpus that they were trained on."""

    vectors: Vectors
    settings: TrainSettings
    corpus: Mapping[str, Any]
    """`sha256` of the text, `texts`, `words`, different words (`types`), and `learned`: the words
    of the vocabulary as they occur.
    """

    def to_dict(self) -> dict[str, object]:
        """The JSON view; the vectors are in their file."""
        return {
            "vocabulary": len(self.vectors),
            "corpus": dict(self.corpus),
            "settings": asdict(self.settings),
        }

    def _headline(self) -> str:
        return f"{self.vectors!r} of {self.corpus['words']:,} words of text"

    def _rows(self) -> Sequence[Mapping[str, object]]:
        return [{**self.corpus, **asdict(self.settings)}]


@checked
def train(
    corpus: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    output: str | os.PathLike[str] | None = None,
    settings: TrainSettings | None = None,
    *,
    form: Form = Lines(),  # noqa: B008
    restart: bool = False,
    progress: StepProgress | None = None,
) -> TrainedVectors:
    """Train skip-gram vectors with negative sampling on text files (extra `word2vec`).

    Parameters
    ----------
    corpus : path or sequence of paths
        Text with one document per line, or tables; also compressed. Words are in lower case, and
        apostrophes and hyphens separate them; the window does not go beyond a document.
    output : path, optional
        Where the vectors are written, as by `Vectors.save`; beside it a record of the run,
        `NAME.run.json`. A run that is killed leaves a hidden folder there, from which the same
        call goes on. Without it nothing is written, and a run cannot be resumed.
    settings : TrainSettings, optional
    form : Form
        How documents are cut out of the files: `Lines()`, `Jsonl(field)` or `Csv(field)`.
    restart : bool
        Start over.
    progress : callable, optional

    Returns
    -------
    TrainedVectors

    Notes
    -----
    Mikolov, Sutskever, Chen, Corrado & Dean (2013). With one thread the same seed gives the same
    bytes on the same machine, and so does a run that was interrupted. With several threads the
    updates come in any order.

    """
    settings = settings or TrainSettings()
    import_package("gensim", "training word vectors", "evenhand[word2vec]")
    given = [corpus] if isinstance(corpus, str | os.PathLike) else corpus
    sources = [os.fspath(source) for source in given]
    _check_files(sources, output)
    names = public_names(sources)
    identity = plain(
        {
            "inputs": {names[source]: digest_of(source) for source in sources},
            "form": repr(form),
            "encoding": current_reading().encoding,
            "settings": asdict(settings),
            "versions": versions("gensim"),
        }
    )
    if output is not None and not restart and (finished := _finished(output, identity)):
        return finished
    with _checkpoint(output, restart) as checkpoint, defer_interrupt() as interrupt:
        state = TrainState.read(checkpoint, identity) if checkpoint else None
        run = SkipGram(state or count_words(sources, form, settings, progress), settings)
        saved = monotonic()
        for chunk in run.left(sources, form):
            run.learn(chunk)
            if progress is not None:
                done, planned = run.state.done, run.planned
                progress(
                    "training", done, planned, f"epoch {done * settings.epochs // planned + 1}"
                )
            pressed = interrupt.is_set()
            if checkpoint and (pressed or monotonic() - saved >= INTERVAL):
                run.save(checkpoint, identity)
                saved = monotonic()
            if pressed:
                raise KeyboardInterrupt
        name = "skip-gram" if output is None else Path(output).name
        trained = TrainedVectors(
            vectors=run.vectors(name), settings=settings, corpus=run.state.corpus
        )
        if output is not None:
            _save(trained, output, identity)
    return trained


# ---- files


def _check_files(sources: Sequence[str], output: str | os.PathLike[str] | None) -> None:
    if not sources:
        raise InputError("corpus: expected one file or more, got none")
    for source in sources:
        if source == STDIN or (Path(source).exists() and not Path(source).is_file()):
            name = source_name(source)
            raise FileError(name, "expected a file, which can be read several times")
    if output is not None:
        format_of(output, None)
        check_folder(Path(output).parent)
        if Path(output).is_dir():
            raise FileError(output, "is a folder: expected a file to write")
        record = record_of(output)
        if record.exists() and not is_ours(record):
            raise FileError(record, "expected the record of a training, got another file")


@contextmanager
def _checkpoint(output: str | os.PathLike[str] | None, restart: bool) -> Iterator[Path | None]:
    """The file of the run's state, in a hidden folder beside the output; removed on success."""
    if output is None:
        yield None
        return
    target = real_path(output)
    folder = target.with_name(f".{target.name}.training")
    folder.mkdir(parents=True, exist_ok=True)
    checkpoint = folder / "checkpoint.npz"
    try:
        with lock_folder(folder, busy="another run is training these vectors"):
            if restart:
                checkpoint.unlink(missing_ok=True)
            yield checkpoint
            checkpoint.unlink(missing_ok=True)
    finally:
        with suppress(OSError):  # there is something to go on from
            folder.rmdir()


def _save(
    trained: TrainedVectors, output: str | os.PathLike[str], identity: Mapping[str, Any]
) -> None:
    """Write the vectors and, beside them, the record of the run."""
    trained.vectors.save(output)
    content = document(
        command="vectors train",
        file=Path(output).name,
        sha256=digest_of(output),
        identity=identity,
        **trained.to_dict(),
    )
    save_json(record_of(output), content)


def _finished(output: str | os.PathLike[str], identity: Mapping[str, Any]) -> TrainedVectors | None:
    """The vectors of a run that is complete, if it is this one."""
    if not (record_of(output).is_file() and is_ours(Path(output))):
        return None
    record = read_document(record_of(output))
    if record.get("identity") != public(identity):
        return None
    settings = TrainSettings(**record["settings"])
    return TrainedVectors(vectors=load(output), settings=settings, corpus=record["corpus"])


# ---- text


def texts_of(chunk: Chunk) -> list[list[str]]:
    """The words of each text of a chunk in lower case; long texts are cut, empty ones left out."""
    block = chunk.layout.parse(chunk.text(), chunk.location).block
    found = Words(block.text)
    text = block.text
    bounds = zip(found.starts.tolist(), found.ends.tolist(), strict=True)
    words = [text[start:end].lower() for start, end in bounds]
    edges = [*np.searchsorted(found.starts, block.starts).tolist(), len(words)]
    return [
        words[start : min(end, start + LONGEST)]
        for first, end in pairwise(edges)
        for start in range(first, end, LONGEST)
    ]


def count_words(
    sources: Sequence[str], form: Form, settings: TrainSettings, progress: StepProgress | None
) -> TrainState:
    """Read the corpus once: the state at the beginning of a training."""
    counts: Counter[str] = Counter()
    digest = hashlib.sha256()
    total, texts = total_size(sources), 0
    for chunk in chunks(sources, form, same_columns=False):
        digest.update(chunk.data)
        read = texts_of(chunk)
        texts += len(read)
        for text in read:
            counts.update(text)
        if progress is not None:
            progress("counting", chunk.done // 1000, total // 1000, "")
    if not counts:
        raise InputError(f"corpus: expected text, got no words in {', '.join(sources)}")
    # a word that is not valid Unicode (lenient encoding) can have no vector
    kept = {
        word: count
        for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        if count >= settings.min_count and not SURROGATE.search(word)
    }
    if len(kept) < 2:
        word, count = counts.most_common(1)[0]
        raise InputError(
            f"{parameter('min_count')}: expected two or more words that occur "
            f"{settings.min_count:,} times, got {len(kept)}; '{word}' is the most frequent, "
            f"{count:,} times"
        )
    corpus = {
        "sha256": digest.hexdigest(),
        "texts": texts,
        "words": counts.total(),
        "types": len(counts),
        "learned": sum(kept.values()),
    }
    return TrainState(counts=kept, corpus=corpus)


# ---- training


@dataclass(slots=True)
class TrainState:
    """All that the rest of a training depends on, besides corpus and settings."""

    counts: Mapping[str, int]
    """The words of the vocabulary, most frequent first, and how often they occur."""
    corpus: Mapping[str, Any]
    position: CorpusPosition = field(default_factory=CorpusPosition)
    done: int = 0
    """Words of text read in training, over all epochs."""
    weights: tuple[Floats32, Floats32] | None = None
    """The vectors of words, and of words as contexts; None at the beginning."""

    @classmethod
    def read(cls, path: Path, identity: Mapping[str, Any]) -> TrainState | None:
        """The state in a checkpoint; None where there is none, or one of another run."""
        try:
            with path.open("rb") as raw, np.load(raw, allow_pickle=False) as file:
                record = json.loads(file["record"].tobytes())
                if record["identity"] != identity:
                    return None
                return cls(
                    counts=record["counts"],
                    corpus=record["corpus"],
                    position=CorpusPosition(**record["position"]),
                    done=record["done"],
                    weights=(file["words"], file["contexts"]),
                )
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
            raise FileError(
                path, f"not a checkpoint: {error}; {parameter('restart', True)} starts over"
            ) from error


class SkipGram:
    """A model of gensim under training; its draws come from seeds made of the position."""

    def __init__(self, state: TrainState, settings: TrainSettings) -> None:
        from gensim.models import Word2Vec  # type: ignore[import-untyped]

        self.state, self.settings = state, settings
        self.planned: int = state.corpus["words"] * settings.epochs
        self.model: Any = Word2Vec(
            sg=1,
            hs=0,
            vector_size=settings.dimensions,
            window=settings.window,
            negative=settings.negative,
            sample=settings.sample,
            alpha=settings.learning_rate,
            min_count=1,
            workers=settings.threads,
            seed=settings.seed,
            sorted_vocab=0,
        )
        self.model.lifecycle_events = None
        self.model.build_vocab_from_freq(dict(state.counts))
        if state.weights is not None:
            self.model.wv.vectors[:], self.model.syn1neg[:] = state.weights

    def left(self, sources: Sequence[str], form: Form) -> Iterator[Chunk]:
        """What is left to read of the corpus in all epochs."""
        state, words = self.state, self.state.corpus["words"]
        for epoch in range(state.done // words, self.settings.epochs):
            yield from chunks(sources, form, start=state.position, same_columns=False)
            if state.done != (epoch + 1) * words:
                raise InputError(f"{', '.join(sources)}: changed while it was read")
            state.position = CorpusPosition()

    def learn(self, chunk: Chunk) -> None:
        """Train on the texts of a chunk."""
        texts = texts_of(chunk)
        state = self.state
        after = state.done + sum(map(len, texts))
        if texts:
            self.model.random = np.random.RandomState(self._seed())
            self.model.train(
                texts,
                total_examples=len(texts),
                epochs=1,
                start_alpha=self._rate(state.done),
                end_alpha=self._rate(after),
            )
        state.position, state.done = chunk.after, after

    def vectors(self, name: str) -> Vectors:
        """The vectors of the words, most frequent first."""
        return Vectors.from_arrays(list(self.state.counts), self.model.wv.vectors, name=name)

    def save(self, path: Path, identity: Mapping[str, Any]) -> None:
        """Write the state, atomically."""
        state = self.state
        record = {
            "identity": identity,
            "counts": state.counts,
            "corpus": state.corpus,
            "position": asdict(state.position),
            "done": state.done,
        }
        content = np.frombuffer(json.dumps(record).encode(), dtype=np.uint8)
        with replace_file(path) as file:
            np.savez(file, record=content, words=self.model.wv.vectors, contexts=self.model.syn1neg)

    def _rate(self, done: int) -> float:
        """The learning rate, which falls evenly with the words read."""
        first = self.settings.learning_rate
        return first - (first - LOWEST_RATE) * done / self.planned

    def _seed(self) -> list[int]:
        digest = hashlib.blake2b(f"{self.settings.seed} {self.state.done}".encode()).digest()
        return [int(part) for part in np.frombuffer(digest, dtype="<u4")]
