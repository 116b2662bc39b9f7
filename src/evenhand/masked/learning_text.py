"""The text of a fine-tuning: what is learned from, what is measured on, and how it is read.

A document's own words decide by a hash whether it is learned from, gives the evaluation loss or is
held out, so that the same text always lands on the same side however the input is ordered or cut
into files. Gendered pronouns and masks do not count, so that a sentence and its masked form are the
same document. What is measured on is then looked up in the training text by a second key, for which
the gendered words of safe pairs are equal too: it does not come back as its counterfactual. First
names do count; a counterfactual with another name may be learned.

Text is rewritten as it is read: the files stay as they are, and every epoch may draw anew.
"""

from __future__ import annotations

import hashlib
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import FileError, InputError
from evenhand.lexicon import pairs
from evenhand.lexicon.pronouns import PRONOUNS
from evenhand.masked.forward import logits_of
from evenhand.masked.gender_words import UnscorableTextError, mask_query
from evenhand.masked.metrics.pronouns import Sentence
from evenhand.masked.model import Model
from evenhand.masked.words import MASKS
from evenhand.text.corpus.compression import STDIN, SURROGATE
from evenhand.text.corpus.formats import Form
from evenhand.text.corpus.reading import chunks
from evenhand.text.rewrite import Rewriter, rewrite_all
from evenhand.text.structural import Accepted, Filter
from evenhand.text.tokens import sentences

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from evenhand.masked.finetuning import Settings
    from evenhand.masked.pairs import Pair

WORD = re.compile(r"[^\W_]+")
SILENT = frozenset(PRONOUNS) | {"mask"}
CHARACTERS_A_TOKEN = 12
"""So much text is held for every token that is to be learned from, held-out text included."""
CHARACTERS = 4_000_000
"""So much is held in any case, so that there is enough to measure on."""


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a run in three parts that share no text, and how they came about."""

    training: tuple[str, ...]
    evaluation: tuple[str, ...]
    held_out: tuple[str, ...]
    read: int
    empty: int
    above_cap: int
    """Documents above the cap, left out by their hash: the rest is a random sample."""
    held_out_elsewhere: int = 0
    """Documents left out of training because they hold a sentence that is measured on."""

    def without(self, measured: Iterable[str]) -> Documents:
        """The same with every training document gone that holds one of the measured sentences."""
        known = {counterfactual_key(text) for text in measured}
        parts = [
            tuple(text for text in part if known.isdisjoint(_keys_of(text)))
            for part in (self.training, self.evaluation)
        ]
        gone = len(self.training) + len(self.evaluation) - sum(map(len, parts))
        return replace(self, training=parts[0], evaluation=parts[1], held_out_elsewhere=gone)

    def learned(self) -> set[bytes]:
        """The keys of all documents that are learned from, and of their sentences."""
        return {made for text in (*self.training, *self.evaluation) for made in _keys_of(text)}

    def fingerprint(self) -> str:
        """A hash of the text of all parts."""
        made = hashlib.sha256()
        for part in (self.training, self.evaluation, self.held_out):
            made.update(f"{len(part)}\n".encode())
            for text in part:
                made.update(text.encode() + b"\0")
        return made.hexdigest()


def key(text: str) -> bytes:
    """A hash of the words of a text, pronouns and masks left out.

    >>> key("She lost her keys.") == key("[MASK] lost  his keys")
    True
    """
    return _hash(_words(text))


def counterfactual_key(text: str) -> bytes:
    """The same with both words of a safe pair as one: a text and its counterfactual share it.

    >>> swapped = counterfactual_key("The waiter saw his daughter.")
    >>> counterfactual_key("The waitress saw her son.") == swapped
    True
    """
    forms = _forms()
    return _hash(forms.get(word, word) for word in _words(text))


def collect(
    texts: Iterable[str], *, held_out: float, evaluation: float, max_tokens: int
) -> Documents:
    """Read the documents, sample where there are more than can be learned from, and split them.

    >>> made = collect(["One day.", "Two nights.", " "], held_out=.3, evaluation=.3, max_tokens=9)
    >>> made.read, made.empty, len(made.training + made.evaluation + made.held_out)
    (3, 1, 2)
    """
    most = max(CHARACTERS, CHARACTERS_A_TOKEN * max_tokens)
    held: list[tuple[bytes, int, str]] = []
    read = empty = size = 0
    limit: bytes | None = None
    for given in texts:
        read += 1
        text = SURROGATE.sub("\ufffd", given)
        if not text.strip():
            empty += 1
            continue
        made = key(text)
        order = made[8:]
        if limit is not None and order > limit:
            continue
        held.append((made, read, text))
        size += len(text)
        if size > 2 * most:
            held, size = _fitting(held, most)
            limit = held[-1][0][8:]
    held, _ = _fitting(held, most)
    parts: dict[str, list[str]] = {"training": [], "evaluation": [], "held_out": []}
    for made, _, text in held:
        place = int.from_bytes(made[:8], "big") / 2**64
        held_back = "evaluation" if place < held_out + evaluation else "training"
        parts["held_out" if place < held_out else held_back].append(text)
    return Documents(
        training=tuple(parts["training"]),
        evaluation=tuple(parts["evaluation"]),
        held_out=tuple(parts["held_out"]),
        read=read,
        empty=empty,
        above_cap=read - empty - len(held),
    )


def _fitting(
    held: Sequence[tuple[bytes, int, str]], most: int
) -> tuple[list[tuple[bytes, int, str]], int]:
    """The documents in the order of their hashes, as many as fit, and their size."""
    ordered = sorted(held, key=lambda one: (one[0][8:], one[1]))
    size = 0
    for number, one in enumerate(ordered):
        if size and size + len(one[2]) > most:
            return ordered[:number], size
        size += len(one[2])
    return ordered, size


def _keys_of(text: str) -> set[bytes]:
    """The keys of a document and of its sentences."""
    return {
        counterfactual_key(text),
        *(counterfactual_key(text[start:end]) for start, end in sentences(text)),
    }


def _words(text: str) -> Iterable[str]:
    return (word for word in WORD.findall(text.lower()) if word not in SILENT)


def _hash(words: Iterable[str]) -> bytes:
    return hashlib.blake2b(" ".join(words).encode(), digest_size=16).digest()


@cache
def _forms() -> dict[str, str]:
    """One form for all words that safe pairs link, as mrs, ms, miss and mr are."""
    forms: dict[str, str] = {}
    for pair in pairs():
        if pair.safe:
            one, two = (forms.setdefault(word, word) for word in (pair.female, pair.male))
            forms.update({word: two for word, form in forms.items() if form == one})
    return forms


REWRITTEN_AT_ONCE = 2000
"""Documents rewritten together."""


def derived_seed(seed: int, *names: object) -> int:
    """A seed of its own for each use of one seed (63 bits, the same on every machine).

    >>> derived_seed(0, "mask", 1) != derived_seed(0, "mask", 2)
    True
    """
    told = ":".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.blake2b(told.encode(), digest_size=8).digest(), "big") >> 1


def rewriter_of(rewrite: str, seed: int, epoch: int | str) -> Rewriter | None:
    """The rewriting of an epoch: substitution draws its documents, and names, from the epoch."""
    if rewrite == "swap":
        from evenhand.text.rewrite.swap import Swap

        return Swap()
    if rewrite == "substitute":
        from evenhand.text.rewrite.swap import build_substitution

        return build_substitution(seed=derived_seed(seed, "substitute", epoch))
    if rewrite == "neutralize":
        from evenhand.text.rewrite.neutralize import Neutralize

        return Neutralize()
    return None


def rewritten(texts: Sequence[str], rewrite: str, seed: int, epoch: int | str) -> list[str]:
    """The texts as an epoch reads them.

    >>> rewritten(["She sings."], "swap", 0, 1)
    ['He sings.']
    """
    rewriter = rewriter_of(rewrite, seed, epoch)
    if rewriter is None:
        return list(texts)
    made: list[str] = []
    for first in range(0, len(texts), REWRITTEN_AT_ONCE):
        part = texts[first : first + REWRITTEN_AT_ONCE]
        made.extend(done.text for done in rewrite_all(part, rewriter, first=first))
    return made


Ids = NDArray[np.int64]
WINDOW = 16
"""Batches whose rows are sorted by length together: what is padded is little, the order random."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of token ids, special tokens included, and how many of these begin and end each."""

    ids: list[Ids]
    before: int
    after: int

    @property
    def tokens(self) -> int:
        """All tokens, special ones included: what the model computes."""
        return sum(map(len, self.ids))


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows side by side: ids and which of them are there (n, longest), which may be hidden."""

    ids: torch.Tensor
    there: torch.Tensor
    ordinary: torch.Tensor


def token_rows(tokenizer: PreTrainedTokenizerFast, texts: Sequence[str], block: int) -> Rows:
    """Each document as one row; one longer than the block as several, cut between sentences.

    Rows never cross documents. A sentence longer than the block is cut where the block is full.
    """
    coded: Any = tokenizer(list(texts), verbose=False)["input_ids"] if texts else []
    before, after = _around(tokenizer)
    room = block - before - after
    rows: list[Ids] = []
    for text, ids in zip(texts, coded, strict=True):
        own = ids[before : len(ids) - after]
        if len(own) <= room:
            cuts = [(0, len(own))] if own else []
        else:
            cuts = list(_cuts(_sentence_ends(tokenizer, text, before), len(own), room))
        first, last = ids[:before], ids[len(ids) - after :]
        rows.extend(
            np.array([*first, *own[begin:end], *last], dtype=np.int64) for begin, end in cuts
        )
    return Rows(rows, before, after)


def batches(lengths: Sequence[int], tokens: int, rng: np.random.Generator) -> list[list[int]]:
    """The rows in random order as batches of like lengths, of at most so many padded tokens.

    >>> made = batches([4, 9, 4, 6], 10, np.random.default_rng(0))
    >>> sorted(sorted(batch) for batch in made)
    [[0, 2], [1], [3]]
    """
    order = rng.permutation(len(lengths)).tolist()
    made: list[list[int]] = []
    for window in _windows(order, lengths, WINDOW * tokens):
        part: list[list[int]] = []
        for row in sorted(window, key=lengths.__getitem__, reverse=True):
            if part and lengths[part[-1][0]] * (len(part[-1]) + 1) <= tokens:
                part[-1].append(row)
            else:
                part.append([row])
        made.extend(part[place] for place in rng.permutation(len(part)).tolist())
    return made


def batch_of(rows: Rows, chosen: Sequence[int], padding: int) -> Batch:
    """The chosen rows as tensors."""
    import torch

    picked = [rows.ids[row] for row in chosen]
    longest = max(map(len, picked))
    ids = np.full((len(picked), longest), padding, dtype=np.int64)
    there = np.zeros((len(picked), longest), dtype=np.int64)
    ordinary = np.zeros((len(picked), longest), dtype=bool)
    for place, row in enumerate(picked):
        ids[place, : len(row)] = row
        there[place, : len(row)] = 1
        ordinary[place, rows.before : len(row) - rows.after] = True
    return Batch(torch.from_numpy(ids), torch.from_numpy(there), torch.from_numpy(ordinary))


def _around(tokenizer: PreTrainedTokenizerFast) -> tuple[int, int]:
    """How many special tokens the tokenizer puts before and after a text."""
    added: Any = tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]
    before = added.index(0)
    return before, added[::-1].index(0)


def _sentence_ends(tokenizer: PreTrainedTokenizerFast, text: str, before: int) -> list[int]:
    """After how many of the text's own tokens each sentence ends."""
    coded: Any = tokenizer(text, return_offsets_mapping=True, verbose=False)
    offsets: list[tuple[int, int]] = coded["offset_mapping"][before:]
    ends = [end for _, end in sentences(text)]
    places: list[int] = []
    place = 0
    for end in ends:
        while place < len(offsets) and offsets[place][1] <= end and any(offsets[place]):
            place += 1
        places.append(place)
    return places


def _cuts(ends: Sequence[int], total: int, room: int) -> Iterator[tuple[int, int]]:
    """Spans of at most `room` tokens that end with a sentence wherever one does in reach.

    >>> list(_cuts([3, 5, 9, 20], 20, 6))
    [(0, 5), (5, 9), (9, 15), (15, 20)]
    """
    begin = 0
    while begin < total:
        full = begin + room
        last = bisect_right(ends, full) - 1
        end = min(ends[last] if last >= 0 and ends[last] > begin else full, total)
        yield begin, end
        begin = end


def _windows(order: Sequence[int], lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    window: list[int] = []
    held = 0
    for row in order:
        window.append(row)
        held += lengths[row]
        if held >= tokens:
            yield window
            window, held = [], 0
    if window:
        yield window


@dataclass(frozen=True, slots=True)
class Hidden:
    """A batch with some tokens hidden: what is shown, where something is hidden, and what."""

    shown: torch.Tensor
    there: torch.Tensor | None
    places: torch.Tensor
    """Places in the flattened batch."""
    labels: torch.Tensor

    def to(self, device: torch.device) -> Hidden:
        """The same on a device."""
        there = None if self.there is None else self.there.to(device)
        return Hidden(self.shown.to(device), there, self.places.to(device), self.labels.to(device))


class Hiding:
    """Chooses a share of the ordinary tokens: 80 % masked, 10 % another token, 10 % left."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, share: float) -> None:
        import torch

        self._special = torch.tensor(tokenizer.all_special_ids)
        self._mask = int(tokenizer.mask_token_id)
        every = torch.arange(len(tokenizer))
        self._others = every[~torch.isin(every, self._special)]
        self._share = share

    def __call__(self, batch: Batch, seed: int) -> Hidden:
        """The batch with tokens hidden, the same ones for the same seed."""
        import torch

        draw = torch.Generator().manual_seed(seed)
        ids = batch.ids.flatten()
        ordinary = batch.ordinary.flatten() & ~torch.isin(ids, self._special)
        candidates = ordinary.nonzero()[:, 0]
        count = min(len(candidates), max(1, round(self._share * len(candidates))))
        order = torch.randperm(len(candidates), generator=draw)
        places = candidates[order[:count]].sort().values
        labels = ids[places]
        fate = torch.rand(count, generator=draw)
        other = self._others[torch.randint(len(self._others), (count,), generator=draw)]
        seen = torch.where(fate < 0.8, self._mask, torch.where(fate < 0.9, other, labels))
        shown = ids.scatter(0, places, seen).view_as(batch.ids)
        full = bool(batch.there.all())
        return Hidden(shown, None if full else batch.there, places, labels)


def masked_loss(network: PreTrainedModel, hidden: Hidden) -> torch.Tensor:
    """The mean cross-entropy at the hidden places; the head is computed nowhere else."""
    from torch.nn.functional import cross_entropy

    states = network.base_model(
        input_ids=hidden.shown, attention_mask=hidden.there
    ).last_hidden_state
    chosen = states.flatten(0, 1).index_select(0, hidden.places)
    return cross_entropy(logits_of(network, chosen).float(), hidden.labels)


EVALUATION_TOKENS = 20_000
"""The evaluation loss rests on no more tokens than these, so that it costs little."""

TOKENISED_AT_ONCE = 1000
"""Documents tokenised at once."""


class Material:
    """Rows and batches of each epoch: they depend on the documents and the settings alone."""

    def __init__(self, model: Model, documents: Documents, settings: Settings) -> None:
        for name, part in (("learn from", documents.training), ("evaluate", documents.evaluation)):
            if not part:
                raise InputError(
                    f"text: expected documents to {name}, got none of {documents.read} read; "
                    "more text is needed"
                )
        self.settings = settings
        self.block = min(settings.block, model.longest)
        self._tokenizer = model.tokenizer
        self._padding = int(model.tokenizer.pad_token_id or 0)
        self._hiding = Hiding(model.tokenizer, settings.mask)
        self.training = self._capped(documents.training, settings.max_tokens)
        self._kept: tuple[int, Rows] | None = None
        self.evaluation_documents = self._capped(documents.evaluation, EVALUATION_TOKENS)
        self.evaluation = self._evaluation()
        self.epoch_tokens = self.rows(0).tokens
        self.planned = min(settings.max_tokens, settings.epochs * self.epoch_tokens)

    def rows(self, epoch: int) -> Rows:
        """The rows of an epoch, rewritten as it asks."""
        if self.settings.rewrite != "substitute":
            epoch = 0  # every epoch reads the same
        if self._kept is None or self._kept[0] != epoch:
            texts = rewritten(self.training, self.settings.rewrite, self.settings.seed, epoch)
            self._kept = epoch, token_rows(self._tokenizer, texts, self.block)
        return self._kept[1]

    def batches(self, epoch: int) -> list[list[int]]:
        """Which rows make up each step of an epoch."""
        rng = np.random.default_rng(derived_seed(self.settings.seed, "order", epoch))
        return self._batches(self.rows(epoch), rng)

    def step(self, epoch: int, chosen: Sequence[int], step: int) -> tuple[Hidden, int]:
        """The rows of a step with tokens hidden, and how many tokens they have."""
        batch = batch_of(self.rows(epoch), chosen, self._padding)
        hidden = self._hiding(batch, derived_seed(self.settings.seed, "mask", step))
        return hidden, int(batch.there.sum())

    def _batches(self, rows: Rows, rng: np.random.Generator) -> list[list[int]]:
        lengths = [len(ids) for ids in rows.ids]
        return batches(lengths, self.settings.batch * self.block, rng)

    def _capped(self, texts: Sequence[str], tokens: int) -> tuple[str, ...]:
        """The first documents that together have so many tokens."""
        taken = reached = 0
        for start in range(0, len(texts), TOKENISED_AT_ONCE):
            coded: Any = self._tokenizer(
                list(texts[start : start + TOKENISED_AT_ONCE]), verbose=False
            )
            for ids in coded["input_ids"]:
                taken, reached = taken + 1, reached + len(ids)
                if reached >= tokens:
                    return tuple(texts[:taken])
        return tuple(texts)

    def _evaluation(self) -> list[Hidden]:
        """The evaluation documents, rewritten once and hidden once: the same at every look."""
        settings = self.settings
        texts = rewritten(self.evaluation_documents, settings.rewrite, settings.seed, "evaluation")
        rows = token_rows(self._tokenizer, texts, self.block)
        rng = np.random.default_rng(derived_seed(settings.seed, "order", "evaluation"))
        return [
            self._hiding(
                batch_of(rows, chosen, self._padding),
                derived_seed(settings.seed, "evaluation mask", number),
            )
            for number, chosen in enumerate(self._batches(rows, rng))
        ]


WORK = 250_000
"""Plain sentences are taken until the squares of their lengths add up to this: every token is
hidden once, so that is how many tokens the model computes for the perplexity.
"""
FEWEST = 2
MOST = 2000
"""Masked sentences to measure on, at most."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Masked sentences, plain sentences, pairs, and how the sentences were found.

    Each masked sentence is there once and can be scored; `duplicates` and `refused` were not taken.
    """

    sentences: tuple[Sentence, ...]
    plain: tuple[str, ...]
    pairs: tuple[Pair, ...]
    origin: str
    duplicates: int = 0
    refused: int = 0

    def texts(self) -> Iterable[str]:
        """All that may not be learned from; the plain sentences were not chosen from it."""
        yield from (sentence.text for sentence in self.sentences)
        for pair in self.pairs:
            yield from (pair.more, pair.less)


def held_out(
    model: Model,
    documents: Documents,
    *,
    given: Iterable[Sentence] | None = None,
    pairs: Sequence[Pair] = (),
) -> HeldOut:
    """The given sentences, or those that the structural filter keeps of the held-out documents.

    Antecedents such as "someone" are kept, since there would be few sentences without them. Of
    every document one sentence is taken, so that those measured on are independent. Plain sentences
    that the training text holds as well are passed over: documents that share a common one would
    otherwise all be lost to training.
    """
    if given is not None:
        found, origin = list(given), "given"
        distinct = {one.text.encode(): one for one in reversed(found)}
    else:
        found = list(islice(_filtered(documents.held_out), MOST))
        distinct = {key(one.text): one for one in reversed(found)}
        origin = (
            f"structural filter, someone kept, one a document, on {len(documents.held_out):,} "
            "held-out documents"
        )
    taken, refusals = _scorable(model, list(reversed(distinct.values())))
    if len(taken) < FEWEST:
        why = f"; {len(refusals)} cannot be scored: {refusals[0]}" if refusals else ""
        raise InputError(
            f"held-out sentences: expected {FEWEST} or more to measure on, got {len(taken)} "
            f"({origin}{why}); give some with --sentences, or more text"
        )
    plain = tuple(_plain(model, documents.held_out, documents.learned()))
    if len(plain) < FEWEST:
        raise InputError(
            f"held-out text: expected {FEWEST} or more sentences for the perplexity, got "
            f"{len(plain)}; more text is needed"
        )
    return HeldOut(
        tuple(taken),
        plain,
        tuple(pairs),
        origin,
        duplicates=len(found) - len(distinct),
        refused=len(refusals),
    )


def _scorable(model: Model, found: Sequence[Sentence]) -> tuple[list[Sentence], list[str]]:
    """The sentences that the model can score, and why it cannot score the others."""
    taken: list[Sentence] = []
    refusals: list[str] = []
    for sentence in found:
        try:
            mask_query(model, sentence.text)
            taken.append(sentence)
        except UnscorableTextError as refused:
            refusals.append(str(refused))
    return taken, refusals


def _filtered(documents: Sequence[str]) -> Iterable[Sentence]:
    judge = Filter(someone=True)
    seen: set[bytes] = set()
    for document in documents:
        if (made := key(document)) in seen:
            continue
        seen.add(made)
        kept = [
            found
            for start, end in sentences(document)
            if isinstance(found := judge.sentence(document[start:end]), Accepted)
            and sum(map(found.masked.count, MASKS)) == 1
        ]
        if kept:
            found = kept[_draw(made, len(kept))]
            yield Sentence(found.masked, found.pronoun)


def _plain(model: Model, documents: Sequence[str], learned: set[bytes]) -> Iterable[str]:
    """One sentence of each document, drawn by its hash, that the model can take whole."""
    marks = (*MASKS, str(model.tokenizer.mask_token))
    work = 0
    for document in documents:
        spans = sentences(document)
        start, end = spans[_draw(key(document), len(spans))]
        text = document[start:end]
        if any(mark in text for mark in marks) or counterfactual_key(text) in learned:
            continue
        coded: Any = model.tokenizer(text, verbose=False)["input_ids"]
        if not 4 <= len(coded) <= model.longest:
            continue
        work += len(coded) ** 2
        yield text
        if work >= WORK:
            return


def _draw(made: bytes, count: int) -> int:
    return int.from_bytes(made[4:12], "big") % count


def read_documents(sources: Sequence[str], form: Form) -> Iterator[str]:
    """The documents of the files, one file after the other; `-` is stdin."""
    if not sources:
        raise InputError("no input: expected at least one file, or - for stdin")
    for source in sources:
        if source != STDIN and Path(source).is_dir():
            raise FileError(source, "is a folder: expected a file")
    for chunk in chunks(sources, form, same_columns=False):
        text = chunk.data.decode("utf-8", "surrogateescape")
        block = chunk.layout.parse(text, chunk.location).block
        for index in range(len(block)):
            yield block.document(index)


def input_hashes(sources: Sequence[str]) -> dict[str, str | None]:
    """The SHA-256 of each file as it is on disk; none for stdin or a pipe, which give it once."""
    found: dict[str, str | None] = {}
    for source in sources:
        found[source] = None
        path = Path(source)
        if source != STDIN and (path.is_file() or not path.exists()):
            with path.open("rb") as file:
                found[source] = hashlib.file_digest(file, "sha256").hexdigest()
    return found
