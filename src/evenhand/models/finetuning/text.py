"""Text for fine-tuning: training, evaluation and held-out documents, and their batches.

A hash of its words assigns a document to training, evaluation or held-out text, so the same text
always gets the same part however the input is ordered or split into files. Gendered pronouns and
masks do not count, so a sentence and its masked form are the same document. Sentences that are
measured on are then looked up in the training text by a second key, for which the gendered words of
safe pairs are equal too, so that their counterfactuals are not trained on either. First names do
count: a counterfactual with another name may be trained on.

Text is rewritten as it is read: the files do not change, and every epoch may draw other documents.
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

from evenhand.errors import FileError, InputError, parameter
from evenhand.files import public_names
from evenhand.lexicon import pairs
from evenhand.lexicon.pronouns import PRONOUNS
from evenhand.models.forward import logits_of
from evenhand.models.gender_words import UnscorableTextError, mask_query
from evenhand.models.masked import MaskedModel
from evenhand.models.sentences import Sentence, built_in_sentences
from evenhand.models.words import MASKS
from evenhand.text.corpus.compression import STDIN, SURROGATE
from evenhand.text.corpus.formats import Form
from evenhand.text.corpus.reading import chunks
from evenhand.text.rewrite import Rewriter, rewrite_all
from evenhand.text.structural import Accepted, Filter
from evenhand.text.tokens import sentences

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from evenhand.models.finetuning.training import FinetuneSettings
    from evenhand.models.pairs import Pair

WORD = re.compile(r"[^\W_]+")
SILENT = frozenset(PRONOUNS) | {"mask"}
CHARACTERS_PER_TOKEN = 12
"""Characters held in memory per training token, held-out text included."""
CHARACTERS = 4_000_000
"""Minimum of characters held in memory, so that there is enough text to measure on."""


@dataclass(frozen=True, slots=True)
class Documents:
    """The documents of a run in three disjoint parts, and how many were read."""

    training: tuple[str, ...]
    evaluation: tuple[str, ...]
    held_out: tuple[str, ...]
    read: int
    empty: int
    above_cap: int
    """Documents left out above the cap by their hash: the rest is a random sample."""
    held_out_elsewhere: int = 0
    """Documents left out of training because they contain a measured sentence."""

    def without(self, measured: Iterable[str]) -> Documents:
        """Remove the training documents that contain one of the measured sentences."""
        known = {counterfactual_key(text) for text in measured}
        parts = [
            tuple(text for text in part if known.isdisjoint(_keys_of(text)))
            for part in (self.training, self.evaluation)
        ]
        removed = len(self.training) + len(self.evaluation) - sum(map(len, parts))
        return replace(self, training=parts[0], evaluation=parts[1], held_out_elsewhere=removed)

    def learned(self) -> set[bytes]:
        """The keys of all training and evaluation documents, and of their sentences."""
        return {digest for text in (*self.training, *self.evaluation) for digest in _keys_of(text)}

    def fingerprint(self) -> str:
        """A hash of the text of all parts."""
        digest = hashlib.sha256()
        for part in (self.training, self.evaluation, self.held_out):
            digest.update(f"{len(part)}\n".encode())
            for text in part:
                digest.update(text.encode() + b"\0")
        return digest.hexdigest()


def key(text: str) -> bytes:
    """A hash of the words of a text, pronouns and masks left out.

    >>> key("She lost her keys.") == key("[MASK] lost  his keys")
    True
    """
    return _hash(_words(text))


def counterfactual_key(text: str) -> bytes:
    """A hash for which both words of a safe pair are equal: counterfactuals share it.

    >>> swapped = counterfactual_key("The waiter saw his daughter.")
    >>> counterfactual_key("The waitress saw her son.") == swapped
    True
    """
    forms = _forms()
    return _hash(forms.get(word, word) for word in _words(text))


def collect(
    texts: Iterable[str], *, held_out: float, evaluation: float, max_tokens: int
) -> Documents:
    """Read the documents, sample them if there are more than needed, and split them.

    >>> texts = ["One day.", "Two nights.", " "]
    >>> documents = collect(texts, held_out=.3, evaluation=.3, max_tokens=9)
    >>> parts = documents.training + documents.evaluation + documents.held_out
    >>> documents.read, documents.empty, len(parts)
    (3, 1, 2)
    """
    limit_characters = max(CHARACTERS, CHARACTERS_PER_TOKEN * max_tokens)
    collected: list[tuple[bytes, int, str]] = []
    read = empty = size = 0
    limit: bytes | None = None
    for document in texts:
        read += 1
        text = SURROGATE.sub("\ufffd", document)
        if not text.strip():
            empty += 1
            continue
        digest = key(text)
        order = digest[8:]
        if limit is not None and order > limit:
            continue
        collected.append((digest, read, text))
        size += len(text)
        if size > 2 * limit_characters:
            collected, size = _fitting(collected, limit_characters)
            limit = collected[-1][0][8:]
    collected, _ = _fitting(collected, limit_characters)
    limits = (held_out, held_out + evaluation)
    parts: tuple[list[str], ...] = ([], [], [])
    for digest, _, text in collected:
        parts[bisect_right(limits, int.from_bytes(digest[:8], "big") / 2**64)].append(text)
    return Documents(
        held_out=tuple(parts[0]),
        evaluation=tuple(parts[1]),
        training=tuple(parts[2]),
        read=read,
        empty=empty,
        above_cap=read - empty - len(collected),
    )


def _fitting(
    collected: Sequence[tuple[bytes, int, str]], limit_characters: int
) -> tuple[list[tuple[bytes, int, str]], int]:
    """The documents in the order of their hashes, as many as fit, and their size."""
    ordered = sorted(collected, key=lambda entry: (entry[0][8:], entry[1]))
    size = 0
    for number, entry in enumerate(ordered):
        if size and size + len(entry[2]) > limit_characters:
            return ordered[:number], size
        size += len(entry[2])
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
    """One common form for all words that safe pairs link, such as mrs, ms, miss and mr."""
    forms: dict[str, str] = {}
    for pair in pairs():
        if pair.safe:
            female_form, male_form = (
                forms.setdefault(word, word) for word in (pair.female, pair.male)
            )
            forms.update({word: male_form for word, form in forms.items() if form == female_form})
    return forms


REWRITTEN_AT_ONCE = 2000
"""Documents rewritten together."""


def derived_seed(seed: int, *names: object) -> int:
    """Derive a separate seed for each use (63 bits, the same on every machine).

    >>> derived_seed(0, "mask", 1) != derived_seed(0, "mask", 2)
    True
    """
    text = ":".join(map(str, (seed, *names)))
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def rewritten(texts: Sequence[str], rewrite: str, seed: int, epoch: int | str) -> list[str]:
    """Rewrite the texts for an epoch; substitution draws documents and names by epoch.

    >>> rewritten(["She sings."], "swap", 0, 1)
    ['He sings.']
    """
    from evenhand.text.rewrite.neutralize import Neutralize
    from evenhand.text.rewrite.swap import Swap, build_substitution

    rewriter: Rewriter
    if rewrite == "swap":
        rewriter = Swap()
    elif rewrite == "substitute":
        rewriter = build_substitution(seed=derived_seed(seed, "substitute", epoch))
    elif rewrite == "neutralize":
        rewriter = Neutralize()
    else:
        return list(texts)
    results: list[str] = []
    for first in range(0, len(texts), REWRITTEN_AT_ONCE):
        part = texts[first : first + REWRITTEN_AT_ONCE]
        results.extend(result.text for result in rewrite_all(part, rewriter, first=first))
    return results


Ids = NDArray[np.int64]
WINDOW = 16
"""Batches whose rows are sorted by length together: little padding, random order."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of token ids, and how many special tokens begin and end each of them."""

    ids: list[Ids]
    before: int
    after: int

    @property
    def tokens(self) -> int:
        """The number of tokens, special ones included."""
        return sum(map(len, self.ids))


@dataclass(frozen=True, slots=True)
class Batch:
    """Padded rows: ids, attention mask, and which tokens may be masked (n, longest)."""

    ids: torch.Tensor
    attention_mask: torch.Tensor
    ordinary: torch.Tensor


def token_rows(tokenizer: PreTrainedTokenizerFast, texts: Sequence[str], block: int) -> Rows:
    """Tokenize each document as one row, or as several if it is longer than the block.

    Rows never cross documents. Long documents are split between sentences, and a sentence longer
    than the block is split where the block is full.
    """
    coded: list[list[int]] = tokenizer(list(texts), verbose=False)["input_ids"] if texts else []
    added: list[int] = tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]
    before, after = added.index(0), added[::-1].index(0)  # special tokens around a text
    room = block - before - after
    rows: list[Ids] = []
    for text, ids in zip(texts, coded, strict=True):
        tokens = ids[before : len(ids) - after]
        ends = _sentence_ends(tokenizer, text, before) if len(tokens) > room else []
        first, last = ids[:before], ids[len(ids) - after :]
        rows.extend(
            np.array([*first, *tokens[begin:end], *last], dtype=np.int64)
            for begin, end in _cuts(ends, len(tokens), room)
        )
    return Rows(rows, before, after)


def batches(lengths: Sequence[int], tokens: int, rng: np.random.Generator) -> list[list[int]]:
    """Group the rows in random order into batches of similar length, at most `tokens` padded.

    >>> groups = batches([4, 9, 4, 6], 10, np.random.default_rng(0))
    >>> sorted(sorted(batch) for batch in groups)
    [[0, 2], [1], [3]]
    """
    order = rng.permutation(len(lengths)).tolist()
    result: list[list[int]] = []
    for window in _windows(order, lengths, WINDOW * tokens):
        part: list[list[int]] = []
        for row in sorted(window, key=lengths.__getitem__, reverse=True):
            if part and lengths[part[-1][0]] * (len(part[-1]) + 1) <= tokens:
                part[-1].append(row)
            else:
                part.append([row])
        result.extend(part[index] for index in rng.permutation(len(part)).tolist())
    return result


def batch_of(rows: Rows, chosen: Sequence[int], padding: int) -> Batch:
    """The chosen rows as tensors."""
    import torch

    selected = [torch.from_numpy(rows.ids[row]) for row in chosen]
    ids = torch.nn.utils.rnn.pad_sequence(selected, batch_first=True, padding_value=padding)
    lengths = torch.tensor([len(row) for row in selected])[:, None]
    at = torch.arange(ids.shape[1])
    ordinary = (at >= rows.before) & (at < lengths - rows.after)
    return Batch(ids, (at < lengths).long(), ordinary)


def _sentence_ends(tokenizer: PreTrainedTokenizerFast, text: str, before: int) -> list[int]:
    """The number of tokens of the text up to the end of each sentence."""
    coded: Any = tokenizer(text, return_offsets_mapping=True, verbose=False)
    offsets: list[tuple[int, int]] = coded["offset_mapping"][before:]
    counts: list[int] = []
    count = 0
    for _, end in sentences(text):
        while count < len(offsets) and offsets[count][1] <= end and any(offsets[count]):
            count += 1
        counts.append(count)
    return counts


def _cuts(ends: Sequence[int], total: int, room: int) -> Iterator[tuple[int, int]]:
    """Spans of at most `room` tokens that end with a sentence where possible.

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
    size = 0
    for row in order:
        window.append(row)
        size += lengths[row]
        if size >= tokens:
            yield window
            window, size = [], 0
    if window:
        yield window


@dataclass(frozen=True, slots=True)
class MaskedBatch:
    """A batch with some tokens masked: the shown ids, the masked positions and their labels."""

    shown: torch.Tensor
    attention_mask: torch.Tensor | None
    positions: torch.Tensor
    """Positions in the flattened batch."""
    labels: torch.Tensor

    def to(self, device: torch.device) -> MaskedBatch:
        """Move the batch to a device."""
        attention_mask = None if self.attention_mask is None else self.attention_mask.to(device)
        return MaskedBatch(
            self.shown.to(device), attention_mask, self.positions.to(device), self.labels.to(device)
        )


class TokenMasker:
    """Selects a share of the ordinary tokens: 80 % masked, 10 % replaced, 10 % unchanged."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, share: float) -> None:
        import torch

        self._special = torch.tensor(tokenizer.all_special_ids)
        self._mask = int(tokenizer.mask_token_id)
        tokens = torch.arange(len(tokenizer))
        self._others = tokens[~torch.isin(tokens, self._special)]
        self._share = share

    def __call__(self, batch: Batch, seed: int) -> MaskedBatch:
        """Mask tokens of the batch, the same ones for the same seed."""
        import torch

        generator = torch.Generator().manual_seed(seed)
        ids = batch.ids.flatten()
        ordinary = batch.ordinary.flatten() & ~torch.isin(ids, self._special)
        candidates = ordinary.nonzero()[:, 0]
        count = min(len(candidates), max(1, round(self._share * len(candidates))))
        order = torch.randperm(len(candidates), generator=generator)
        positions = candidates[order[:count]].sort().values
        labels = ids[positions]
        uniform = torch.rand(count, generator=generator)
        other = self._others[torch.randint(len(self._others), (count,), generator=generator)]
        replacement = torch.where(
            uniform < 0.8, self._mask, torch.where(uniform < 0.9, other, labels)
        )
        shown = ids.scatter(0, positions, replacement).view_as(batch.ids)
        complete = bool(batch.attention_mask.all())
        return MaskedBatch(shown, None if complete else batch.attention_mask, positions, labels)


def masked_loss(network: PreTrainedModel, hidden: MaskedBatch) -> torch.Tensor:
    """The mean cross-entropy at the masked positions, the only ones where the head is computed."""
    from torch.nn.functional import cross_entropy

    states = network.base_model(
        input_ids=hidden.shown, attention_mask=hidden.attention_mask
    ).last_hidden_state
    chosen = states.flatten(0, 1).index_select(0, hidden.positions)
    return cross_entropy(logits_of(network, chosen).float(), hidden.labels)


EVALUATION_TOKENS = 20_000
"""Tokens of the evaluation loss, at most."""

TOKENISED_AT_ONCE = 1000
"""Documents tokenized together."""


class TrainingText:
    """Rows and batches of each epoch; they depend only on the documents and the settings."""

    def __init__(
        self, model: MaskedModel, documents: Documents, settings: FinetuneSettings
    ) -> None:
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
        self._masker = TokenMasker(model.tokenizer, settings.mask)
        self.training = self._capped(documents.training, settings.most_tokens)
        self._cached_rows: tuple[int, Rows] | None = None
        self.evaluation_documents = self._capped(documents.evaluation, EVALUATION_TOKENS)
        self.evaluation = self._evaluation()
        self.epoch_tokens = self.rows(0).tokens
        self.planned = min(settings.most_tokens, settings.epochs * self.epoch_tokens)

    def rows(self, epoch: int) -> Rows:
        """The rows of an epoch, rewritten as the settings require."""
        if self.settings.rewrite != "substitute":
            epoch = 0  # every epoch has the same text
        if self._cached_rows is None or self._cached_rows[0] != epoch:
            texts = rewritten(self.training, self.settings.rewrite, self.settings.seed, epoch)
            self._cached_rows = epoch, token_rows(self._tokenizer, texts, self.block)
        return self._cached_rows[1]

    def batches(self, epoch: int) -> list[list[int]]:
        """The row numbers of each step of an epoch."""
        rng = np.random.default_rng(derived_seed(self.settings.seed, "order", epoch))
        return self._batches(self.rows(epoch), rng)

    def step(self, epoch: int, chosen: Sequence[int], step: int) -> tuple[MaskedBatch, int]:
        """The masked rows of a step, and their number of tokens."""
        batch = batch_of(self.rows(epoch), chosen, self._padding)
        hidden = self._masker(batch, derived_seed(self.settings.seed, "mask", step))
        return hidden, int(batch.attention_mask.sum())

    def _batches(self, rows: Rows, rng: np.random.Generator) -> list[list[int]]:
        lengths = [len(ids) for ids in rows.ids]
        return batches(lengths, self.settings.batch * self.block, rng)

    def _capped(self, texts: Sequence[str], tokens: int) -> tuple[str, ...]:
        """The first documents that together have `tokens` tokens."""
        count = total = 0
        for start in range(0, len(texts), TOKENISED_AT_ONCE):
            part = list(texts[start : start + TOKENISED_AT_ONCE])
            for ids in self._tokenizer(part, verbose=False)["input_ids"]:
                count, total = count + 1, total + len(ids)
                if total >= tokens:
                    return tuple(texts[:count])
        return tuple(texts)

    def _evaluation(self) -> list[MaskedBatch]:
        """The evaluation documents, rewritten and masked once: the same at every evaluation."""
        settings = self.settings
        texts = rewritten(self.evaluation_documents, settings.rewrite, settings.seed, "evaluation")
        rows = token_rows(self._tokenizer, texts, self.block)
        rng = np.random.default_rng(derived_seed(settings.seed, "order", "evaluation"))
        return [
            self._masker(
                batch_of(rows, chosen, self._padding),
                derived_seed(settings.seed, "evaluation mask", number),
            )
            for number, chosen in enumerate(self._batches(rows, rng))
        ]


WORK = 250_000
"""Tokens that the model computes for the perplexity, at most: since every token is masked once,
the sum of the squared lengths of the sentences.
"""
MIN_SENTENCES = 2
MAX_SENTENCES = 2000
"""Masked sentences to measure on, at most."""
MIN_WATCHED, MAX_WATCHED = 20, 300
"""Masked sentences to watch while training: their mean has a standard error of about .01 to .04."""


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Masked sentences, plain sentences, pairs, and the origin of the sentences.

    The masked sentences are distinct and can be scored; `duplicates` and `refused` count others.
    `built_in` are the built-in sentences, which are of another kind than the text; there are none
    where they are the masked sentences. `watched` are masked sentences that are not measured on,
    by which training is stopped.
    """

    sentences: tuple[Sentence, ...]
    plain: tuple[str, ...]
    pairs: tuple[Pair, ...]
    origin: str
    duplicates: int = 0
    refused: int = 0
    built_in: tuple[Sentence, ...] = ()
    watched: tuple[Sentence, ...] = ()

    @property
    def kind(self) -> str:
        """The kind of the masked sentences: given, built-in, or held out."""
        if self.origin == "given":
            return "given"
        return "built-in" if self.origin.startswith("built-in") else "held out"

    def texts(self) -> Iterable[str]:
        """All texts that must not be trained on; plain sentences are not in the training text."""
        yield from (sentence.text for sentence in (*self.sentences, *self.built_in))
        for pair in self.pairs:
            yield from (pair.more, pair.less)


def held_out(
    model: MaskedModel,
    documents: Documents,
    *,
    given: Iterable[Sentence] | None = None,
    pairs: Sequence[Pair] = (),
) -> HeldOut:
    """Select the given sentences, or those of held-out documents that the filter accepts.

    Antecedents such as "someone" are accepted, since there would be few sentences without them. One
    sentence per document is used, so that the sentences are independent. Plain sentences that also
    occur in the training text are skipped: otherwise every document that shares a common sentence
    would be lost for training. The built-in sentences that the model can score are added, or are
    measured on alone where the filter accepts fewer than two of the text.
    """
    if given is not None:
        candidates, origin = list(given), "given"
        distinct = {sentence.text.encode(): sentence for sentence in reversed(candidates)}
    else:
        candidates = list(islice(_filtered(documents.held_out), MAX_SENTENCES))
        distinct = {key(sentence.text): sentence for sentence in reversed(candidates)}
        origin = (
            "structural filter, someone accepted, one per document, on "
            f"{len(documents.held_out):,} held-out documents"
        )
    scorable, refusals = _scorable(model, list(reversed(distinct.values())))
    if given is None and len(scorable) < MIN_SENTENCES:
        origin = (
            f"built-in sentences, which are of another kind than the text: of {origin}, "
            f"{len(scorable)} can be measured on"
        )
        candidates = list(built_in_sentences())
        distinct = {sentence.text.encode(): sentence for sentence in candidates}
        scorable, refusals = _scorable(model, candidates)
    if len(scorable) < MIN_SENTENCES:
        why = f"; {len(refusals)} cannot be scored: {refusals[0]}" if refusals else ""
        raise InputError(
            f"held-out sentences: expected {MIN_SENTENCES} or more to measure on, got "
            f"{len(scorable)} ({origin}{why}); give some with "
            f"{parameter('sentences')}, or more text, or measure nothing with "
            f"{parameter('measure', False)}"
        )
    known = {sentence.text for sentence in scorable}
    built_in, _ = _scorable(model, [s for s in built_in_sentences() if s.text not in known])
    plain = tuple(_plain(model, documents.held_out, documents.learned()))
    if len(plain) < MIN_SENTENCES:
        raise InputError(
            f"held-out text: expected {MIN_SENTENCES} or more sentences for the perplexity, got "
            f"{len(plain)}; more text is needed"
        )
    return HeldOut(
        tuple(scorable),
        plain,
        tuple(pairs),
        origin,
        duplicates=len(candidates) - len(distinct),
        refused=len(refusals),
        built_in=tuple(built_in) if len(built_in) >= MIN_SENTENCES else (),
    )


def watch(
    model: MaskedModel,
    documents: Documents,
    measured: HeldOut,
    *,
    given: Iterable[Sentence] | None = None,
) -> tuple[Sentence, ...]:
    """Select sentences to watch while training, none of which is measured on.

    They are the given ones, or all that the filter accepts in the evaluation documents; none if
    these are fewer than `MIN_WATCHED`, whose mean would say too little.
    """
    known = {counterfactual_key(text) for text in measured.texts()}
    candidates = _accepted(documents.evaluation) if given is None else given
    distinct = {counterfactual_key(sentence.text): sentence for sentence in candidates}
    others = [sentence for key, sentence in distinct.items() if key not in known]
    scorable, _ = _scorable(model, others[:MAX_WATCHED])
    if len(scorable) >= MIN_WATCHED:
        return tuple(scorable)
    if given is not None:
        raise InputError(
            f"watched sentences: expected {MIN_WATCHED} or more that can be scored and are not "
            f"measured on, got {len(scorable)}"
        )
    return ()


def _scorable(
    model: MaskedModel, candidates: Sequence[Sentence]
) -> tuple[list[Sentence], list[str]]:
    """The sentences that the model can score, and the errors of the others."""
    scorable, refusals = [], []
    for sentence in candidates:
        try:
            mask_query(model, sentence.text)
            scorable.append(sentence)
        except UnscorableTextError as error:
            refusals.append(str(error))
    return scorable, refusals


def _filtered(documents: Sequence[str]) -> Iterable[Sentence]:
    """One accepted sentence per distinct document, drawn by its hash."""
    seen: set[bytes] = set()
    for document in documents:
        if (digest := key(document)) in seen:
            continue
        seen.add(digest)
        if accepted := list(_accepted([document])):
            yield accepted[_draw(digest, len(accepted))]


def _accepted(documents: Iterable[str]) -> Iterable[Sentence]:
    structural_filter = Filter(someone=True)
    for document in documents:
        for start, end in sentences(document):
            result = structural_filter.sentence(document[start:end])
            if isinstance(result, Accepted) and sum(map(result.masked.count, MASKS)) == 1:
                yield Sentence(result.masked, result.pronoun)


def _plain(model: MaskedModel, documents: Sequence[str], learned: set[bytes]) -> Iterable[str]:
    """One sentence per document, drawn by its hash, that fits into the model."""
    marks = (*MASKS, str(model.tokenizer.mask_token))
    work = 0
    for document in documents:
        spans = sentences(document)
        start, end = spans[_draw(key(document), len(spans))]
        text = document[start:end]
        if any(mark in text for mark in marks) or counterfactual_key(text) in learned:
            continue
        coded: list[int] = model.tokenizer(text, verbose=False)["input_ids"]
        if not 4 <= len(coded) <= model.longest:
            continue
        work += len(coded) ** 2
        yield text
        if work >= WORK:
            return


def _draw(digest: bytes, count: int) -> int:
    return int.from_bytes(digest[4:12], "big") % count


def read_documents(sources: Sequence[str], form: Form) -> Iterator[str]:
    """Read the documents of the files in order; `-` is stdin."""
    if not sources:
        raise InputError("no input: expected at least one file, or - for stdin")
    for source in sources:
        if source != STDIN and Path(source).is_dir():
            raise FileError(source, "is a folder: expected a file")
    for chunk in chunks(sources, form, same_columns=False):
        block = chunk.layout.parse(chunk.text(), chunk.location).block
        for index in range(len(block)):
            yield block.document(index)


def input_hashes(sources: Sequence[str]) -> dict[str, str | None]:
    """The SHA-256 of each file; None for stdin or a pipe, which can be read only once."""
    hashes: dict[str, str | None] = {}
    for source, name in public_names(sources).items():
        hashes[name] = None
        path = Path(source)
        if source != STDIN and (path.is_file() or not path.exists()):
            with path.open("rb") as file:
                hashes[name] = hashlib.file_digest(file, "sha256").hexdigest()
    return hashes
