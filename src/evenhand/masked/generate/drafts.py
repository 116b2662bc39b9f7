"""A seed with some of its words replaced: its text, what may still be replaced, what passes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from evenhand.masked.generate.seeds import Seed
from evenhand.masked.generate.words import akin, may_enter, may_leave, same_form
from evenhand.text.rewrite.neutralize import article_edit
from evenhand.text.structural import Accepted, Filter
from evenhand.text.tagger import tag
from evenhand.text.tokens import tokenize

__all__ = ["Draft", "Edit", "Ground"]

Span = tuple[int, int]
CHUNK = re.compile(r"\S+")
PARTICLES = frozenset({"away", "back", "down", "off", "out", "over", "up"})
"""What makes one expression of itself and the word before it: "make up", "shows off"."""
BEHIND = re.compile(r"[,.;:!?]?(?:\s(?![-–—/])|$)")
BEFORE = re.compile(r"(?<![-–—/]) $")


@dataclass(frozen=True, slots=True)
class Edit:
    """One word of the seed, where it stands there, and the word put in its place."""

    offset: int
    old: str
    new: str

    def as_dict(self) -> dict[str, int | str]:
        return {"offset": self.offset, "old": self.old, "new": self.new}


@dataclass(frozen=True, eq=False)
class Ground:
    """What all drafts of a seed share: its tokens, tags, and the words that stay."""

    seed: Seed
    antecedent: bool = False
    """Whether the head of the antecedent may be replaced too."""

    @cached_property
    def _tokenized(self) -> tuple[list[str], list[int]]:
        return tokenize(self.seed.found.sentence)

    @property
    def tokens(self) -> list[str]:
        return self._tokenized[0]

    @property
    def starts(self) -> list[int]:
        """Where each token begins in the seed."""
        return self._tokenized[1]

    @cached_property
    def tags(self) -> list[str]:
        return tag(self.tokens)

    @cached_property
    def link(self) -> Span:
        """The tokens of the antecedent: those nearest before the pronoun, else the first behind."""
        found = self.seed.found
        place = found.sentence.rfind(found.antecedent, 0, found.offset)
        if place < 0:
            place = found.sentence.index(found.antecedent)
        end = place + len(found.antecedent)
        inside = [i for i, start in enumerate(self.starts) if place <= start < end]
        return inside[0], inside[-1] + 1

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The tokens that may be replaced: words behind a space that are not part of another."""
        text, head = self.seed.found.sentence, self.tokens[self.link[1] - 1].lower()
        return tuple(
            i
            for i, (word, start, mark) in enumerate(
                zip(self.tokens, self.starts, self.tags, strict=True)
            )
            if may_leave(word, mark)
            and (self.antecedent or word.lower() != head)
            and BEFORE.search(text, 0, start)
            and BEHIND.match(text, start + len(word))
            and "".join(self.tokens[i + 1 : i + 2]).lower() not in PARTICLES
        )


@dataclass(frozen=True)
class Draft:
    """A seed with some tokens replaced: `changes` maps their places, in order, to new words."""

    ground: Ground
    changes: tuple[tuple[int, str], ...] = ()

    @cached_property
    def text(self) -> str:
        """The sentence, the seed's pronoun in its place."""
        return self.with_words({})

    def with_words(self, words: Mapping[int, str], pronoun: str | None = None) -> str:
        """The sentence with further tokens replaced and, if given, another word as pronoun."""
        ground, found = self.ground, self.ground.seed.found
        text, at = [], 0
        wanted = {**dict(self.changes), **words}
        if pronoun is not None:
            wanted[ground.starts.index(found.offset)] = pronoun
        for place in sorted(wanted):
            text += [found.sentence[at : ground.starts[place]], wanted[place]]
            at = ground.starts[place] + len(ground.tokens[place])
        return "".join([*text, found.sentence[at:]])

    @property
    def offset(self) -> int:
        """Where the pronoun stands in the text."""
        before = [
            len(word) - len(self.ground.tokens[place])
            for place, word in self.changes
            if self.ground.starts[place] < self.ground.seed.found.offset
        ]
        return self.ground.seed.found.offset + sum(before)

    def masked(self, mask: str = "[MASK]") -> str:
        """The sentence with a mask for the pronoun."""
        return self.with_words({}, mask)

    @property
    def open_places(self) -> tuple[int, ...]:
        """The tokens that may still be replaced."""
        done = dict(self.changes)
        return tuple(place for place in self.ground.places if place not in done)

    @property
    def edits(self) -> tuple[Edit, ...]:
        ground = self.ground
        return tuple(Edit(ground.starts[i], ground.tokens[i], word) for i, word in self.changes)

    @cached_property
    def chunks(self) -> tuple[list[Span], int]:
        """What stands between spaces, and the number of the one that holds the pronoun."""
        spans = [match.span() for match in CHUNK.finditer(self.text)]
        at = self.offset
        return spans, next(i for i, (start, end) in enumerate(spans) if start <= at < end)

    def near_chunks(self, reach: int) -> list[int]:
        """The chunks at most so far from one that holds a replaced token, that one included."""
        starts = [self._starts[place] for place, _ in self.changes]
        spans, _ = self.chunks
        hit = [i for i, (begin, end) in enumerate(spans) if any(begin <= s < end for s in starts)]
        return [i for i in range(len(spans)) if any(abs(i - k) <= reach for k in hit)]

    def fits(self, place: int, word: str) -> bool:
        """Whether a word may take the place of a token, by the words alone.

        It is in the form of the old one, new to the sentence, and "a" or "an" before it stays.
        """
        old = self.ground.tokens[place]
        if not may_enter(word) or not same_form(old, word, self.ground.tags[place]):
            return False
        others = (t.lower() for i, t in enumerate(self._tokens) if i != place)
        if any(akin(word, other) for other in others):
            return False
        start = self._starts[place]
        return article_edit(self.text, start, old, word) is None

    def edited(self, place: int, word: str) -> Draft:
        """The draft with one more token replaced."""
        return Draft(self.ground, tuple(sorted((*self.changes, (place, word)))))

    @property
    def same_tags(self) -> bool:
        """Whether every token of the sentence is still tagged as in the seed."""
        return tag(self._tokens) == self.ground.tags

    def passed(self, filter: Filter) -> Accepted | None:  # noqa: A002
        """What the structural filter keeps of it, if it links the pronoun as it did in the seed."""
        found = filter.sentence(self.text)
        first, end = self.ground.link
        begin, last = self._starts[first], end - 1
        wanted = self.text[begin : self._starts[last] + len(self._tokens[last])]
        if not isinstance(found, Accepted) or found.antecedent != wanted:
            return None
        return found if found.offset == self.offset else None

    @property
    def _tokens(self) -> list[str]:
        tokens = list(self.ground.tokens)
        for place, word in self.changes:
            tokens[place] = word
        return tokens

    @cached_property
    def _starts(self) -> list[int]:
        starts, moved = [], 0
        changes = dict(self.changes)
        for place, start in enumerate(self.ground.starts):
            starts.append(start + moved)
            if place in changes:
                moved += len(changes[place]) - len(self.ground.tokens[place])
        return starts
