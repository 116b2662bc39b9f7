"""First names swapped for names of the other gender, and person names replaced by E1, E2 … or by
gender-free names.

Fixed pairs matched on frequency are those of counterfactual data substitution (Hall Maudslay et al.
2019); names drawn at random by frequency are those of El Zein (2021, §3.5), and so is the
replacement by E1, E2 … (§4.2.2).
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, chain, count, groupby
from operator import itemgetter
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import checked
from evenhand.errors import InputError
from evenhand.instruments import check_options, option
from evenhand.lexicon.first_names import names, persons
from evenhand.lexicon.gendered import DIRECTIONS
from evenhand.text.block import Block
from evenhand.text.edits import Edit
from evenhand.text.people import (
    COMMON,
    GIVEN,
    HEAD,
    PREFIX,
    PROPER,
    RANK,
    SUFFIX,
    SURNAME,
    TITLE,
    Person,
    finder,
    kinds,
    known_names,
)
from evenhand.text.rewrite import Rewritten, rewrite_all
from evenhand.text.tokens import WordIndex, Words, protected

Codes = NDArray[np.uint32] | NDArray[np.uint8]
SPACE = 32
FARTHEST = 4  # capitalised words behind a name that are looked at
ENDERS = ".!?:;\n…—–\"“‘'("
NICKNAME_ENDS = ('" ', ") ", "” ", "' ", "’ ")
NICKNAME_BEGINS = "\"(“'‘"


def character_codes(text: str) -> Codes:
    """The characters of a text as numbers."""
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")


class _Neighbours:
    """A block's words with what the rules ask of them."""

    __slots__ = ("capital", "ends", "joined", "starts", "text")

    def __init__(self, words: Words, codes: Codes) -> None:
        first = codes[words.starts]
        self.text = words.text
        self.starts = words.starts
        self.ends = words.ends
        self.capital = np.append((first >= 65) & (first <= 90), False)
        gap = words.starts[1:] - words.ends[:-1]
        self.joined = np.zeros(len(words.starts) + 1, dtype=bool)  # a single space before the word
        self.joined[1:-1] = (gap == 1) & (codes[words.ends[:-1]] == SPACE)

    def word(self, k: int) -> str:
        return self.text[self.starts[k] : self.ends[k]]

    def capital_before(self, k: int) -> str:
        """The capitalised word directly before word k, "" where there is none."""
        if not k or not self.capital[k - 1]:
            return ""
        word = self.word(k - 1)
        if self.joined[k]:
            return word
        dotted = self.text[self.ends[k - 1] : self.starts[k]] == ". "
        return word if dotted and (len(word) == 1 or kinds(word) & (TITLE | RANK | PREFIX)) else ""

    def after_nickname(self, k: int) -> bool:
        """Whether word k follows a name in quotes or brackets: William "Bill" Thomas."""
        start = self.starts[k]
        return bool(
            k
            and self.capital[k - 1]
            and self.text[start - 2 : start] in NICKNAME_ENDS
            and self.text[self.starts[k - 1] - 1] in NICKNAME_BEGINS
        )

    def opening(self, k: int) -> bool:
        """Whether word k begins a sentence."""
        start = self.starts[k]
        before = self.text[max(0, start - 3) : start].rstrip(" ")
        return not before or before[-1] in ENDERS

    def in_capitals(self, k: int) -> bool:
        """Whether a word beside word k is in capitals too, so that k is not an abbreviation."""
        near = [self.word(n) for n in (k - 1, k + 1) if 0 <= n < len(self.starts)]
        return any(len(word) > 1 and word.isupper() for word in near)

    def capitals_behind(self, k: int) -> list[int]:
        """What the capitalised words right after word k may be."""
        kinds_behind: list[int] = []
        while len(kinds_behind) < FARTHEST and self.joined[k + 1] and self.capital[k + 1]:
            k += 1
            kinds_behind.append(kinds(self.word(k)))
        return kinds_behind

    def before(self, k: int) -> str:
        """The word before word k with a space between, in lower case."""
        return self.word(k - 1).lower() if self.joined[k] else ""

    def behind(self, k: int) -> str:
        """The word after word k, separated by a space."""
        return self.word(k + 1) if self.joined[k + 1] else ""


ARTICLES = frozenset({"the", "a", "an"})
THE = frozenset({"the ", "The "})
SAFE_BEFORE = np.array([c in ' \n\t"(' for c in map(chr, range(128))])
SAFE_AFTER = np.array([c in ' \n\t"),;!?' for c in map(chr, range(128))])


class Mention(NamedTuple):
    """A first name as written, where it begins in the block, and the name of the lexicon it is."""

    start: int
    written: str
    name: str


@cache
def _index() -> WordIndex:
    return WordIndex(name.lower() for name in known_names())


def _first_name(words: _Neighbours, k: int, doubtful: bool) -> bool | None:
    """Whether word k is a first name here, None where the rest of the document decides."""
    capitals = words.capitals_behind(k)
    if any(kind & HEAD for kind in capitals):
        return False
    follows = bool(capitals) and not capitals[0] & SUFFIX
    leading = words.capital_before(k)
    if leading:
        verdict = _behind_capital(words, k, leading, follows)
        if verdict is not None:
            return verdict
    lists = persons()
    if words.after_nickname(k):
        return follows
    before, behind = words.before(k), words.behind(k)
    if before in ARTICLES or behind in lists["thing_nouns"]:
        return False
    if not doubtful:
        return True
    if follows:
        return True if not capitals[0] or capitals[0] & (SURNAME | GIVEN) else None
    if before in lists["kin"] or before in lists["greetings"]:
        return True
    kind = kinds(words.word(k))
    if kind & (SURNAME | PROPER) or not kind & COMMON:
        return None
    if not words.opening(k):
        return True
    if behind in lists["speech_verbs"] or behind in lists["person_verbs"]:
        return True
    # "Will you" is no name even where Will is one elsewhere in the document
    return None if not behind or behind in lists["plain_verbs"] else False


def _behind_capital(words: _Neighbours, k: int, leading: str, follows: bool) -> bool | None:
    """The verdict by the capitalised word before, None where that word is as good as none."""
    kind = kinds(leading)
    if leading.lower() in persons()["given_titles"] and not kind & PREFIX:
        return True
    if kind & (TITLE | RANK) or len(leading) == 1 or (kind & GIVEN and not kind & COMMON):
        return follows
    if kind & COMMON and not kind & (PREFIX | HEAD) and words.opening(k - 1):
        return None
    return False


_Candidate = tuple[int, int, int, int, bool, bool]
"""A capitalised name of the lexicon: the document it is in, which word of the block it is, where it
begins and ends, whether the characters around it need a closer look, and whether there is no
capitalised word before or behind."""


def first_names(
    block: Block, chosen: NDArray[np.bool_] | None = None, words: Words | None = None
) -> Iterator[tuple[int, list[Mention], frozenset[str]]]:
    """For each chosen document with first names: its place in the block, the mentions in order, and
    all names of the lexicon that stand capitalised in it, first names or not.
    """
    block_words = Words(block.text) if words is None else words
    if not len(block_words):
        return
    codes = character_codes(block.text)
    near = _Neighbours(block_words, codes)
    picked = _index().select(block_words)
    picked = picked[near.capital[picked]]
    owners = block.owner(block_words.starts[picked])
    if chosen is not None:
        picked, owners = picked[chosen[owners]], owners[chosen[owners]]
    starts, ends = block_words.starts[picked], block_words.ends[picked]
    behind = near.capital[picked + 1] & near.joined[picked + 1]
    alone = ~(near.capital[picked - 1] | behind)
    columns = (owners, picked, starts, ends, _risky(codes, starts, ends), alone)
    candidates = zip(*(column.tolist() for column in columns), strict=True)
    for number, group in groupby(candidates, key=itemgetter(0)):
        mentions, present = _of_document(near, group)
        if mentions:
            yield number, mentions, present


def _risky(codes: Codes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Whether the characters around a word need a closer look (#Mary, Mary-Ann)."""
    behind = np.append(codes, np.array([ord(" ")], dtype=codes.dtype))[ends]
    before = np.where(starts > 0, codes[starts - 1], ord(" "))
    fine: NDArray[np.bool_] = (
        SAFE_BEFORE[np.minimum(before, 127)] & SAFE_AFTER[np.minimum(behind, 127)]
    )
    return ~fine


def _standing_alone(text: str, start: int, end: int) -> bool:
    """Whether a name is a word of its own, not a piece of a compound or of an address."""
    before, after = text[start - 1 : start], text[end : end + 1]
    if before == "-" or (after == "-" and text[end + 1 : end + 2].isalnum()):
        return False
    if before in ("'", "’") and text[start - 2 : start - 1].isalnum():
        return False
    if text[end : end + 2] in ("'t", "’t"):
        return False
    return not protected(text, start, end)


def _of_document(
    words: _Neighbours, candidates: Iterable[_Candidate]
) -> tuple[list[Mention], frozenset[str]]:
    ambiguous = names().ambiguous
    things = persons()["thing_nouns"]
    text = words.text
    mentions: list[Mention] = []
    open_questions: list[Mention] = []
    present: set[str] = set()
    for _, k, start, end, risky, alone in candidates:
        written = text[start:end]
        name = written.capitalize()
        present.add(name)
        if risky and not _standing_alone(text, start, end):
            continue
        if written.isupper() and not words.in_capitals(k):
            continue
        doubtful = name in ambiguous
        verdict: bool | None
        if alone and not doubtful:
            verdict = text[start - 4 : start] not in THE and words.behind(k) not in things
        else:
            verdict = _first_name(words, k, doubtful)
        if verdict:
            mentions.append(Mention(start, written, name))
        elif verdict is None:
            open_questions.append(Mention(start, written, name))
    if open_questions:
        sure = {mention.name for mention in mentions}
        late = [mention for mention in open_questions if mention.name in sure]
        if late:
            mentions = sorted(mentions + late)
    return mentions, frozenset(present)


BARE = re.compile(r"['’](?= \w)")
QUOTE = re.compile(r"(?:^|[\s(\[—–-])['‘](?=\w)")
LOOK_BACK = 300


def full_possessive(text: str, end: int, before: str, after: str) -> tuple[str, str]:
    """What is written and what takes its place, with a bare apostrophe after the word completed.

    "James' hat" becomes "Mary's hat", not "Mary' hat". An apostrophe that may close a quotation is
    not changed.

    >>> full_possessive("James' hat", 5, "James", "Mary")
    ("James'", "Mary's")
    >>> full_possessive("James' hat", 5, "James", "Frances")
    ('James', 'Frances')
    >>> full_possessive("'I saw James' he said", 12, "James", "Mary")
    ('James', 'Mary')
    """
    if before[-1:] not in "sS" or after[-1:] in "sS":
        return before, after
    mark = BARE.match(text, end)
    near = max(0, end - LOOK_BACK)
    if mark is None or QUOTE.search(text, max(near, text.rfind("\n", near, end)), end):
        return before, after
    added = "S" if len(after) > 1 and after.isupper() else "s"
    return before + mark.group(), f"{after}{mark.group()}{added}"


NAME_MODES = ("fixed", "random")
MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class NameSwap:
    """Swaps first names: `fixed` by the pairs of the lexicon, `random` by draws.

    A fixed swap made twice gives the text back, but for names that are also words and lose what
    showed them to be names, and for "James' hat", which comes back as "James's hat". A random one
    draws a name in proportion to its births, one that the document does not hold and that no other
    of its names has become; the draws depend on the seed and the number of the document alone.
    Surnames are not changed. `direction` restricts the swap to names of one gender.

    >>> from evenhand.text.edits import apply
    >>> block = Block.of_lines("James saw Mary. Mr. James left James's hat with Mary Smith.")
    >>> apply(block.text, NameSwap()(block))
    "Mary saw James. Mr. James left Mary's hat with James Smith."
    """

    mode: str = "fixed"
    seed: int = 0
    direction: str = "both"

    def __post_init__(self) -> None:
        for name, value, allowed in (
            ("names", self.mode, NAME_MODES),
            ("direction", self.direction, DIRECTIONS),
        ):
            if value not in allowed:
                raise InputError(f"{name}: expected one of {', '.join(allowed)}, got {value!r}")

    def __call__(
        self, block: Block, chosen: NDArray[np.bool_] | None = None, words: Words | None = None
    ) -> list[Edit]:
        """The edits of the chosen documents of a block (all, where nothing is chosen).

        `words` are the words of its text where they are known already. A name is left where its
        gender is not clear (fewer than 95 % of its bearers share one) or where the lexicon has no
        name to pair it with.
        """
        edits: list[Edit] = []
        for number, mentions, present in first_names(block, chosen, words):
            become = self._become(mentions, present, block.first + number)
            for start, written, name in mentions:
                after = become.get(name)
                if after is None:
                    continue
                if len(written) > 1 and written.isupper():
                    after = after.upper()
                change = full_possessive(block.text, start + len(written), written, after)
                edits.append(Edit(start, "name", *change))
        return edits

    def _become(
        self, mentions: list[Mention], present: frozenset[str], number: int
    ) -> dict[str, str]:
        """The replacement of each name of a document."""
        swapped = list(dict.fromkeys(m.name for m in mentions if self._goes(m.name)))
        if self.mode == "random":
            return _drawn(swapped, present, self.seed, number)
        partners = _partners()
        become = {name: partners[name] for name in swapped if name in partners}
        if self.direction != "both":
            # where the partner stays in the document, another name distinguishes the two
            taken = [name for name, after in become.items() if after in present]
            become |= _drawn(taken, present | set(become.values()), self.seed, number)
        return become

    def _goes(self, name: str) -> bool:
        """Whether the direction lets this name be swapped."""
        if self.direction == "both":
            return True
        return names().gender(name) == self.direction.partition("-")[0]


@cache
def _partners() -> dict[str, str]:
    """The fixed pairs of which both names are looked for in texts."""
    known = known_names()
    pairs = ((name, names().partner(name)) for name in known)
    return {name: partner for name, partner in pairs if partner in known and partner}


@cache
def _drawable(gender: str) -> tuple[tuple[str, ...], list[int]]:
    """The names of a gender that are nothing else, and their births summed up."""
    known = names()
    names_of_gender = known.female if gender == "female" else known.male
    clear = known_names() - known.ambiguous
    chosen = tuple(name for name in names_of_gender if name in clear)
    return chosen, list(accumulate(known.count(name) for name in chosen))


def _uniform(seed: int, number: int) -> Iterator[int]:
    """64-bit numbers for one document by SplitMix64 (Steele, Lea and Flood 2014)."""
    state = _mix((_mix(seed & MASK) + number) & MASK)
    while True:
        state = (state + GOLDEN) & MASK
        yield _mix(state)


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def _drawn(swapped: list[str], present: frozenset[str], seed: int, number: int) -> dict[str, str]:
    """A name drawn for each name, none that is present and none twice."""
    become: dict[str, str] = {}
    used = set(present)
    numbers, known = _uniform(seed, number), names()
    for name in swapped:
        gender = known.gender(name)
        if gender is None:
            continue
        others, sums = _drawable("male" if gender == "female" else "female")
        after = name
        while after == name or after in used:
            after = others[bisect_right(sums, next(numbers) * sums[-1] >> 64)]
        used.add(after)
        become[name] = after
    return become


TAKEN = re.compile(r"(?<!\w)E(\d+)(?!\w)")


@dataclass(frozen=True, slots=True)
class Anonymize:
    """Every word of a person's name becomes E and a number, or a gender-free first name.

    Numbers count from 1 in each document, names are taken in the order of
    `evenhand.lexicon.first_names.Names.gender_free`, so that a text and its counterfactual have the
    same ones; after its last one come E1, E2 … Words are compared without case; a number or name
    that the document already has is not given. Titles, suffixes and the possessive 's stay.
    `entities` is `rules` or `spacy:MODEL`.

    >>> from evenhand.text.edits import apply
    >>> block = Block.of_lines("Barak Obama won. Mr. OBAMA's wife, Michelle Obama, smiled.")
    >>> apply(block.text, Anonymize()(block))
    "E1 E2 won. Mr. E2's wife, E3 E2, smiled."
    """

    entities: str = option(
        "rules", metavar="NAME", help="What finds the names: rules, or spacy:MODEL."
    )
    become: Literal["numbers", "names"] = option(
        "numbers",
        help="What the words of names become: E1, E2 …, or first names given to girls and boys "
        "about equally often.",
    )

    def __post_init__(self) -> None:
        check_options(self)

    def __call__(self, block: Block) -> list[Edit]:
        find = finder(self.entities)
        edits: list[Edit] = []
        for index in range(len(block)):
            begin, end = block.span(index)
            document = block.text[begin:end]
            edits.extend(_document_edits(document, begin, find(document), self.become))
        return edits


def _document_edits(
    document: str, begin: int, persons: list[Person], become: str
) -> Iterator[Edit]:
    if not persons:
        return
    free = _free_numbers(document)
    if become == "names":
        free = chain(_free_names(document), free)
    given: dict[str, str] = defaultdict(lambda: next(free))
    for person in persons:
        for part in person.parts:
            word = document[part.start : part.end]
            after = given[word.casefold()]
            if len(word) > 1 and word.isupper():
                after = after.upper()
            if become == "names":
                word, after = full_possessive(document, part.end, word, after)
            yield Edit(begin + part.start, "name", word, after)


def _free_numbers(document: str) -> Iterator[str]:
    """E1, E2 …, without those that the document has."""
    taken = {int(number) for number in TAKEN.findall(document)}
    return (f"E{number}" for number in count(1) if number not in taken)


def _free_names(document: str) -> Iterator[str]:
    """The gender-free names that the document does not have."""
    present = set(re.findall(r"\w+", document.casefold()))
    return (name for name in names().gender_free if name.casefold() not in present)


@checked
def anonymize(
    document: str,
    *,
    entities: str = "rules",
    become: Literal["numbers", "names"] = "numbers",
) -> Rewritten:
    """Replace person names by E1, E2 … or by gender-free names, the same name by the same one.

    Parameters
    ----------
    document : str
    entities : str
        What finds the names: "rules", or "spacy:MODEL".
    become : {"numbers", "names"}

    Returns
    -------
    Rewritten
        The text without names of persons, and the edits.

    Examples
    --------
    >>> anonymize("Marie Curie spoke. Curie was thanked.").text
    'E1 E2 spoke. E2 was thanked.'
    >>> anonymize("Marie Curie spoke. Curie was thanked.", become="names").text
    'Casey Jackie spoke. Jackie was thanked.'

    """
    return rewrite_all([document], Anonymize(entities=entities, become=become))[0]
