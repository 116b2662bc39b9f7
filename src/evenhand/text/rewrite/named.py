"""Which gendered words refer to somebody named: the words CDA proper leaves alone.

Lu et al. (2018) do not touch a coreference cluster that holds a proper noun, so that "Elizabeth …
she … queen" does not become "Elizabeth … he … king". Here the clusters come from rules: a pronoun
goes with the last person of its gender, named or not; a noun goes with a name it stands beside
("Queen Elizabeth", "her husband John"), that it is said of ("Elizabeth was a good queen"), or that
it was tied to earlier in the document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache

from evenhand.lexicon import names, pairs
from evenhand.text.block import Block
from evenhand.text.entities import Person, people

__all__ = ["referring_to_names"]

Span = tuple[int, int]

BESIDE = re.compile(r"\.?,?\s+")
SAID_OF = re.compile(
    r"(?:['’]s)?\s*(?:,|\(|\bwho\b|\b(?:was|is|became|remained|has been|had been|would be|as)\b)"
    r"[^.;!?]{0,40}"
)
OWNED = re.compile(
    r"(?:\b(?:her|his|my|our|their|your|its)|['’]s?)\s+(?:[\w-]+\s+)?$", re.IGNORECASE
)
LOOK_BACK = 40


def referring_to_names(block: Block, spans: Sequence[Span]) -> set[Span]:
    """Those of the gendered words at the spans that refer to a person named in their document."""
    kept: set[Span] = set()
    position = 0
    for index in range(len(block)):
        begin, end = block.span(index)
        inside: list[Span] = []
        while position < len(spans) and spans[position][0] < end:
            inside.append((spans[position][0] - begin, spans[position][1] - begin))
            position += 1
        if inside:
            document = block.text[begin:end]
            found = _Reading(document).read(inside, people(document))
            kept.update((start + begin, stop + begin) for start, stop in found)
    return kept


@cache
def _genders() -> dict[str, tuple[str, bool]]:
    """The gender of each word of the pairs, and whether it is a pronoun."""
    found: dict[str, tuple[str, bool]] = {}
    for pair in pairs():
        pronoun = pair.kind == "pronoun"
        found.setdefault(pair.female, ("female", pronoun))
        found.setdefault(pair.male, ("male", pronoun))
    return found


@dataclass
class _Reading:
    """One pass over a document: who was last spoken of, for each gender."""

    text: str
    named: dict[str, bool] = field(default_factory=dict)
    waiting: dict[str, list[Span]] = field(default_factory=lambda: {"female": [], "male": []})
    tied: set[str] = field(default_factory=set)
    last_kept: int = -1000

    def read(self, words: Sequence[Span], persons: Sequence[Person]) -> Iterator[Span]:
        """The words that refer to a named person."""
        events: list[tuple[int, Span | Person]] = [(span[0], span) for span in words]
        events += [(person.start, person) for person in persons]
        starts = {person.start for person in persons}
        for _, event in sorted(events, key=lambda pair: pair[0]):
            if isinstance(event, Person):
                for gender in self._name(event):
                    yield from self.waiting[gender]
                    self.waiting[gender].clear()
            elif self._refers(event, starts):
                self.last_kept = event[1]
                yield event

    def _name(self, person: Person) -> tuple[str, ...]:
        given = next((p for p in person.parts if p.kind == "given"), None)
        gender = names().gender(self.text[given.start : given.end].title()) if given else None
        found = (gender,) if gender else ("female", "male")
        for each in found:
            self.named[each] = True
        self.last_kept = person.end
        return found

    def _refers(self, span: Span, names_begin: set[int]) -> bool:
        word = self.text[slice(*span)].lower()
        gender, pronoun = _genders().get(word, ("female", False))
        if pronoun:
            if gender not in self.named:  # nobody yet: whoever is named next
                self.waiting[gender].append(span)
            return self.named.get(gender, False)
        beside = BESIDE.match(self.text, span[1])
        tied = (
            (beside is not None and beside.end() in names_begin)
            or word in self.tied
            or (
                span[0] - self.last_kept <= LOOK_BACK
                and SAID_OF.fullmatch(self.text, max(self.last_kept, 0), span[0]) is not None
            )
        )
        if tied:
            self.tied.add(word)
            self.named[gender] = True
        elif not OWNED.search(self.text, max(0, span[0] - LOOK_BACK), span[0]):
            self.named[gender] = False
            self.waiting[gender].clear()
        return tied
