"""The pronoun score: which gender a model puts at the mask of a sentence that names none.

After Ye et al. (2021), "Adversarial Examples Generation for Reducing Implicit Gender Bias in
Pre-trained Models", §3.3 and §4.2. The published score looks at the k likeliest words; since that
cut is itself a choice, the same score over the whole vocabulary always stands beside it.
"""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from evenhand.errors import EvenhandError, FileError, InputError
from evenhand.masked.metrics.pronouns_asking import Probabilities, Refused, asked, probabilities
from evenhand.masked.metrics.pronouns_asking import place_of as _place_of
from evenhand.masked.metrics.pronouns_compare import PairedDifference, compare
from evenhand.masked.metrics.pronouns_items import Write, check_ending, open_items
from evenhand.masked.metrics.pronouns_reading import Sentence, read_sentences
from evenhand.masked.metrics.pronouns_scores import LeftOut, PronounScores, columns_of
from evenhand.masked.metrics.pronouns_summary import VERDICTS, Rule, bias, verdicts
from evenhand.masked.metrics.pronouns_words import PRONOUNS, SLOTS, Words, check_pieces, gendered
from evenhand.masked.model import MaskedLM
from evenhand.masked.scoring import Progress
from evenhand.text.corpus.compression import source_name
from evenhand.text.structural import Filter

if TYPE_CHECKING:
    from evenhand.cache import Cache

__all__ = [
    "PRONOUNS",
    "SLOTS",
    "VERDICTS",
    "PairedDifference",
    "Probabilities",
    "PronounScores",
    "Refused",
    "Rule",
    "Sentence",
    "bias",
    "compare",
    "gendered",
    "probabilities",
    "read_sentences",
    "score",
    "score_file",
    "verdicts",
]

CHUNK = 4096
"""Sentences that are read and scored at once."""


def score(
    model: MaskedLM,
    sentences: Iterable[str | Sentence],
    *,
    top_k: int = 10,
    delta: float = 0.05,
    least: float = 0.05,
    words: Words = "all",
    prob: float = 0.95,
    seed: int = 0,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> PronounScores:
    """Score sentences that have a mask where a pronoun stood.

    A sentence that comes again counts once: it would tell nothing new and narrow the interval. A
    text without exactly one mask is an error; one that the model cannot take is left out and named.

    >>> from evenhand.simulate.masked import bigram_model
    >>> model = bigram_model({"[CLS]": {"he": 0.435, "she": 0.195, "it": 0.37}})
    >>> told = score(model, ["[MASK] waves at the driver."])
    >>> round(told.top.mean_bias.value, 2), told.top.groups["male"].n
    (0.69, 1)
    """
    rule = Rule(top_k=top_k, delta=delta, least=least, words=words, prob=prob, seed=seed)
    run = _Run([model], rule, cache=cache, hold=True, progress=progress)
    run.take(entry if isinstance(entry, Sentence) else Sentence(entry) for entry in sentences)
    return run.scores()[0]


def score_file(
    models: Sequence[MaskedLM],
    path: str | os.PathLike[str],
    *,
    rule: Rule | None = None,
    output: str | os.PathLike[str] | None = None,
    cache: Cache | None = None,
    progress: Progress | None = None,
    keep: Filter | None = None,
) -> tuple[PronounScores, ...]:
    """Score the sentences of a file by each model, chunk by chunk; only numbers are held.

    With `output` every sentence's score is written there as it comes (.csv, .jsonl or .parquet),
    a row for each model. The model's answers are kept beside it in a folder, `output`.partial,
    until all is done, so that the same call goes on where a killed one stopped; with `kept` they
    are kept there instead, for good. A file of masked sentences is read once before any work, to
    find its faults. With `keep` the file is plain text, and the sentences that this filter keeps
    are scored.
    """
    name, rule = os.fspath(path), rule or Rule()
    if output is not None:
        check_ending(output)
    again = keep is None and Path(name).is_file()  # a pipe cannot be, filtering need not be
    total = sum(1 for _ in read_sentences(name)) * len(models) if again else None
    counts = Counter[str]()
    with ExitStack() as stack:
        write: Write | None = None
        partial = None
        if output is not None:
            write = stack.enter_context(open_items(output))
            if cache is None:
                from evenhand.cache import Cache

                partial = Path(f"{os.fspath(output)}.partial")
                if not partial.exists():  # nothing to go on with after an error
                    stack.push(_forgotten(partial))
                cache = Cache(partial)
        run = _Run(models, rule, cache=cache, write=write, progress=progress, total=total)
        run.take(read_sentences(name, counts=counts, keep=keep), name)
        scores = run.scores(blank=counts["blank"], filtered=counts["filtered"])
        for told in scores:
            if not len(told):
                why = told.left_out[0].reason if told.left_out else "there are none"
                raise FileError(source_name(name), f"expected sentences to score: {why}")
    if partial is not None:
        shutil.rmtree(partial)
    return scores


def _forgotten(folder: Path) -> Callable[..., bool]:
    """Clears the folder away when bad input ends the work; a kill or a full disk leaves it."""

    def leave(kind: type[BaseException] | None, *_: object) -> bool:
        if kind is not None and issubclass(kind, EvenhandError):
            shutil.rmtree(folder, ignore_errors=True)
        return False

    return leave


@dataclass
class _Run:
    """Sentences going through several models, chunk by chunk."""

    models: Sequence[MaskedLM]
    rule: Rule
    cache: Cache | None = None
    write: Write | None = None
    hold: bool = False
    progress: Progress | None = None
    total: int | None = None
    parts: list[list[Probabilities]] = field(default_factory=list)
    keys: list[list[int]] = field(default_factory=list)
    pronouns: list[list[str]] = field(default_factory=list)
    held: list[list[Sentence]] = field(default_factory=list)
    left_out: list[list[LeftOut]] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)
    read: int = 0
    duplicates: int = 0
    done: int = 0
    notes: list[tuple[str, ...]] = field(default_factory=list)

    def __post_init__(self) -> None:
        for model in self.models:
            lacks = check_pieces(model, self.rule.words)
            self.notes.append(
                tuple(
                    f"'{word}' is no single piece of this model: it is never the best word"
                    for word in lacks
                )
            )
            for lists in (self.parts, self.keys, self.pronouns, self.held, self.left_out):
                lists.append([])

    def take(self, sentences: Iterable[Sentence], source: str = "") -> None:
        """Score all of them, each that is new."""
        for chunk in _chunks(sentences):
            fresh = [(sentence, key) for sentence, key in chunk if self._new(key)]
            for number, model in enumerate(self.models):
                self._score(number, model, fresh, source)
                self.done += len(chunk) - len(fresh)
                if self.progress is not None:
                    self.progress(self.done, self.total or self.done)

    def scores(self, blank: int = 0, filtered: int = 0) -> tuple[PronounScores, ...]:
        """What was found for each model."""
        return tuple(
            PronounScores(
                model=model.name,
                rule=self.rule,
                probabilities=Probabilities.joined(self.parts[i]),
                keys=np.array(self.keys[i], dtype=np.uint64),
                pronouns=np.array(self.pronouns[i], dtype="<U10"),
                sentences=tuple(self.held[i]) if self.hold else None,
                left_out=tuple(self.left_out[i]),
                duplicates=self.duplicates,
                blank=blank,
                filtered=filtered,
                notes=self.notes[i],
            )
            for i, model in enumerate(self.models)
        )

    def _new(self, key: int) -> bool:
        if key in self.seen:
            self.duplicates += 1
            return False
        self.seen.add(key)
        return True

    def _score(
        self, i: int, model: MaskedLM, fresh: Sequence[tuple[Sentence, int]], source: str
    ) -> None:
        taken, places = [], []
        for sentence, key in fresh:
            try:
                places.append(_place_of(model, sentence.text, self.rule.words))
                taken.append((sentence, key))
            except Refused as refused:
                self.left_out[i].append(LeftOut(sentence.line, str(refused)))
            except InputError as error:
                if not source:
                    raise
                raise FileError(source_name(source), str(error), line=sentence.line) from None
        begun = self.done + len(fresh) - len(taken)

        def told(done: int, _: int) -> None:
            if self.progress is not None:
                self.progress(begun + done, self.total or begun + len(taken))

        sentences = [sentence for sentence, _ in taken]
        found = asked(
            model, [sentence.text for sentence in sentences], places,
            words=self.rule.words, top_k=self.rule.top_k, cache=self.cache, progress=told,
        )  # fmt: skip
        self.done = begun + len(taken)
        self.parts[i].append(found)
        self.keys[i].extend(key for _, key in taken)
        self.pronouns[i].extend(sentence.pronoun.lower() for sentence in sentences)
        if self.hold:
            self.held[i].extend(sentences)
        if self.write is not None:
            self.write(columns_of(model.name, sentences, found, self.rule))


def _chunks(sentences: Iterable[Sentence]) -> Iterator[list[tuple[Sentence, int]]]:
    """The sentences, each with a number that tells it from others, so many at once."""
    rest = iter(sentences)
    while chunk := list(islice(rest, CHUNK)):
        yield [(sentence, _key(sentence.text)) for sentence in chunk]


def _key(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest())
