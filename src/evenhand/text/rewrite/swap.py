"""Swapping gender: every gendered word to its dual (Lu et al. 2018; Hall Maudslay et al. 2019)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias, TypedDict, Unpack, cast

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import checked
from evenhand.errors import InputError
from evenhand.instruments import check_options, documented, option
from evenhand.lexicon import GenderedPair, fixed_phrases, names, pairs, read_pairs
from evenhand.lexicon.gendered import Direction
from evenhand.text.block import Block
from evenhand.text.edits import Edit, in_order
from evenhand.text.grammar import Judge, judge
from evenhand.text.people import Person, find_people
from evenhand.text.rewrite import Rewritten, judge_option, rewrite_all, takes_options
from evenhand.text.rewrite.names import NameSwap, full_possessive
from evenhand.text.rewrite.readings import LOOK_BACK, inside_name, is_surname, is_verb
from evenhand.text.tokens import WordIndex, Words, match_case, protected

Names: TypeAlias = Literal["fixed", "random", "off"]
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


def _mixed(seed: int, numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """SplitMix64 (Steele, Lea and Flood 2014) of the seed and each document's number."""
    base = np.array([seed % 2**64], dtype=np.uint64) * np.uint64(0xD1342543DE82EF95)
    z = (numbers + base + np.uint64(1)) * GOLDEN
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return cast("NDArray[np.uint64]", z ^ (z >> np.uint64(31)))


def chosen_documents(block: Block, probability: float, seed: int) -> NDArray[np.bool_]:
    """The documents of a block that are drawn, each with the given probability."""
    numbers = np.arange(block.first, block.first + len(block), dtype=np.uint64)
    uniform = (_mixed(seed, numbers) >> np.uint64(11)).astype(np.float64) / 2.0**53
    return uniform < probability


BY_GRAMMAR = frozenset({"her", "his"})


class Phrase(NamedTuple):
    """A word of several parts ("ma'am"), met at its first part."""

    written: str
    after: str
    rule: str


@dataclass(frozen=True, slots=True)
class Pairing:
    """`forms` gives for a word as written what it becomes and by which rule; `opening` the same for
    plurals that take a capital only where they open a sentence ("Sons and daughters", but "Lehman
    Sons"); `phrases` the words of several parts by their first part; `index` finds the words where
    any of this may apply.
    """

    forms: dict[str, tuple[str, str]]
    opening: dict[str, tuple[str, str]]
    phrases: dict[str, tuple[Phrase, ...]]
    index: WordIndex
    grammar: frozenset[str]


def _arrows(pair: GenderedPair, direction: str) -> Iterator[tuple[str, str]]:
    if direction != "male-to-female" and pair.direction != "male-to-female":
        yield pair.female, pair.male
    if direction != "female-to-male" and pair.direction != "female-to-male":
        yield pair.male, pair.female


def _written(pair: GenderedPair, word: str, after: str) -> Iterator[tuple[str, str]]:
    """The ways in which a word is written where it is meant, and what each becomes."""
    if pair.case != "capital":
        yield word, after
    if pair.case != "lower":
        yield word[:1].upper() + word[1:], after[:1].upper() + after[1:]
    if pair.case == "any":
        yield word.upper(), after.upper()


def _parts(word: str) -> list[str]:
    parts = Words(word)
    return [word[s:e] for s, e in zip(parts.starts, parts.ends, strict=True)]


def by_first_word(phrases: Iterable[Phrase]) -> dict[str, tuple[Phrase, ...]]:
    """Phrases by their first word in lower case, the longest first."""
    found: dict[str, list[Phrase]] = {}
    for phrase in sorted(phrases, key=lambda phrase: -len(phrase.written)):
        found.setdefault(_parts(phrase.written)[0], []).append(phrase)
    return {first: tuple(group) for first, group in found.items()}


def _compile(chosen: Iterable[GenderedPair], direction: str, unchanged: Iterable[str]) -> Pairing:
    forms: dict[str, tuple[str, str]] = {}
    opening: dict[str, tuple[str, str]] = {}
    phrases = [Phrase(phrase, phrase, "unchanged") for phrase in unchanged]
    grammar: set[str] = set()
    for pair in chosen:
        for word, after in _arrows(pair, direction):
            if pair.kind == "pronoun" and word in BY_GRAMMAR:
                grammar.add(word)
                continue
            if len(_parts(word)) > 1:
                phrases.append(Phrase(word, after, pair.kind))
                continue
            for written, becomes in _written(pair, word, after):
                forms.setdefault(written, (becomes, pair.kind))
            if pair.case == "lower" and pair.number == "plural":
                opening.setdefault(word.capitalize(), (after.capitalize(), pair.kind))
    by_first = by_first_word(phrases)
    index = WordIndex({word.lower() for word in forms} | by_first.keys() | grammar)
    return Pairing(forms, opening, by_first, index, frozenset(grammar))


@cache
def pairing(
    direction: str = "both",
    kinds: tuple[str, ...] | None = None,
    unsafe: bool = False,
    own: str | None = None,
) -> Pairing:
    """The embedded pairs, or those of a file, compiled for one direction.

    `kinds` keeps only some kinds of words (pronoun, title, family, …); `unsafe` adds the pairs
    whose swap is wrong in much running text (count and countess, master and mistress).

    >>> pairing().forms["Mother"]
    ('Father', 'family')
    """
    listed = read_pairs(Path(own)) if own is not None else pairs()
    known = {pair.kind for pair in listed}
    unknown = [kind for kind in kinds or () if kind not in known]
    if unknown:
        raise InputError(
            f"kinds: expected some of {', '.join(sorted(known))}, got {', '.join(unknown)!r}"
        )
    chosen = [p for p in listed if (p.safe or unsafe) and (kinds is None or p.kind in kinds)]
    nouns = any(pair.kind != "pronoun" for pair in chosen)
    return _compile(chosen, direction, fixed_phrases() if nouns and own is None else ())


def phrase_at(text: str, start: int, phrases: tuple[Phrase, ...]) -> tuple[str, Phrase] | None:
    """The longest of the phrases that begins at `start`, as written there."""
    for phrase in phrases:
        stop = start + len(phrase.written)
        written = text[start:stop]
        if written.lower().replace("’", "'") == phrase.written:
            following = text[stop : stop + 1]
            compound = following == "-" and text[stop + 1 : stop + 2].isalpha()
            if not (following.isalnum() or following == "_" or compound):
                return written, phrase
    return None


def phrase_after(written: str, phrase: Phrase) -> str:
    """The replacement of a phrase, with its case and apostrophe."""
    after = match_case(written, phrase.after)
    return after.replace("'", "’") if "’" in written else after


Span = tuple[int, int]

BESIDE = re.compile(r"\.?,?\s+")
SAID_OF = re.compile(
    r"(?:['’]s)?\s*(?:,|\(|\bwho\b|\b(?:was|is|became|remained|has been|had been|would be|as)\b)"
    r"[^.;!?]{0,40}"
)
OWNED = re.compile(
    r"(?:\b(?:her|his|my|our|their|your|its)|['’]s?)\s+(?:[\w-]+\s+)?$", re.IGNORECASE
)


def referring_to_names(block: Block, spans: Sequence[Span]) -> set[Span]:
    """Those of the gendered words at the spans that refer to a person named in their document.

    Lu et al. (2018) do not change a coreference cluster that holds a proper noun, so that
    "Elizabeth … she … queen" does not become "Elizabeth … he … king". Here the clusters come from
    rules: a pronoun goes with the last person of its gender, named or not; a noun goes with a name
    it stands beside ("Queen Elizabeth", "her husband John"), that it is said of ("Elizabeth was a
    good queen"), or that it was tied to earlier in the document.
    """
    referring: set[Span] = set()
    position = 0
    for index in range(len(block)):
        begin, end = block.span(index)
        inside: list[Span] = []
        while position < len(spans) and spans[position][0] < end:
            inside.append((spans[position][0] - begin, spans[position][1] - begin))
            position += 1
        if inside:
            document = block.text[begin:end]
            spans_found = _Reading(document).read(inside, find_people(document))
            referring.update((start + begin, stop + begin) for start, stop in spans_found)
    return referring


@cache
def _genders() -> dict[str, tuple[str, bool]]:
    """The gender of each word of the pairs, and whether it is a pronoun."""
    genders: dict[str, tuple[str, bool]] = {}
    for pair in pairs():
        pronoun = pair.kind == "pronoun"
        genders.setdefault(pair.female, ("female", pronoun))
        genders.setdefault(pair.male, ("male", pronoun))
    return genders


@dataclass
class _Reading:
    """One pass over a document: who was last spoken of, for each gender."""

    text: str
    named: dict[str, bool] = field(default_factory=dict)
    waiting: dict[str, list[Span]] = field(default_factory=lambda: {"female": [], "male": []})
    tied: set[str] = field(default_factory=set)
    last_end: int = -1000

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
                self.last_end = event[1]
                yield event

    def _name(self, person: Person) -> tuple[str, ...]:
        given = next((p for p in person.parts if p.kind == "given"), None)
        gender = names().gender(self.text[given.start : given.end].title()) if given else None
        genders = (gender,) if gender else ("female", "male")
        for named_gender in genders:
            self.named[named_gender] = True
        self.last_end = person.end
        return genders

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
                span[0] - self.last_end <= LOOK_BACK
                and SAID_OF.fullmatch(self.text, max(self.last_end, 0), span[0]) is not None
            )
        )
        if tied:
            self.tied.add(word)
            self.named[gender] = True
        elif not OWNED.search(self.text, max(0, span[0] - LOOK_BACK), span[0]):
            self.named[gender] = False
            self.waiting[gender].clear()
        return tied


BOTH = re.compile(r"(?:\(s\)|(?<!\w)s/)$", re.IGNORECASE)
OPENING = re.compile(r"""(?:^|\n|[.!?…]["'”’)\]]*\s+)["'“‘(\[]*$""")


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """Every gendered word of a document to its dual, in the same case.

    `her` becomes him or his and `his` becomes her or hers by grammar.

    The rule of `keep_named` is that of counterfactual data augmentation (Lu et al. 2018). What is
    drawn depends on `seed` and the number of the document. Pairs that are `unsafe` are wrong in
    much running text (count and countess).

    Examples
    --------
    >>> from evenhand.text.edits import apply
    >>> text = "Her neighbour waved to her."
    >>> apply(text, Swap()(Block.of_lines(text)))
    'His neighbour waved to him.'

    """

    direction: Direction = option(
        "both",
        help="Which words are swapped: all, only those for men, only those for women.",
    )
    probability: float = option(
        1.0,
        flag="--rewrite-share",
        minimum=0,
        maximum=1,
        help="Share of the documents that is rewritten; drawn from the seed and its number.",
    )
    seed: int = 0
    names: Names = option(
        "off",
        help="First names too: by fixed pairs of similar frequency, or drawn for each document.",
    )
    keep_named: bool = option(
        False,
        help="Do not change words that refer to somebody named (CDA's rule): Elizabeth … she … "
        "queen.",
    )
    kinds: tuple[str, ...] | None = option(
        None,
        flag="--kind",
        metavar="KIND[,KIND…]",
        help="Only some kinds of words: pronoun, title, family, person, role, royalty, religion, "
        "fiction, animal, body; repeatable.",
    )
    unsafe: bool = option(
        False,
        help="Also pairs that are wrong in much running text (count and countess, cow and bull).",
    )
    pairs: str | None = option(
        None,
        metavar="FILE",
        help="Your own pairs instead: a CSV file with the columns female and male.",
    )
    judge: str = judge_option()

    def __post_init__(self) -> None:
        check_options(self)
        pairing(self.direction, self.kinds, self.unsafe, self.pairs)

    def __call__(self, block: Block) -> list[Edit]:
        """The edits of a block."""
        table = pairing(self.direction, self.kinds, self.unsafe, self.pairs)
        block_words = Words(block.text)
        chosen = chosen_documents(block, self.probability, self.seed)
        starts, ends = table.index.find(block_words)
        if self.probability < 1:
            wanted = chosen[block.owner(starts)]
            starts, ends = starts[wanted], ends[wanted]
        spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
        if self.keep_named:
            named = referring_to_names(block, spans)
            spans = [span for span in spans if span not in named]
        edits = swap_words(block.text, spans, table, judge(self.judge))
        if self.names == "off" or self.keep_named:
            return edits
        swapped = NameSwap(self.names, self.seed, self.direction)(block, chosen, block_words)
        return in_order([*edits, *swapped])


class SwapWords(TypedDict, total=False):
    """The options of `Swap` but for those that choose among documents and directions."""

    seed: int
    names: Names
    keep_named: bool
    kinds: tuple[str, ...] | None
    unsafe: bool
    pairs: str | None
    judge: str


class SwapOptions(SwapWords, total=False):
    """The options of `Swap`."""

    direction: Direction
    probability: float


@takes_options(Swap, probability=0.5, names="fixed")
def build_substitution(**options: Unpack[SwapOptions]) -> Swap:
    """Counterfactual data substitution (CDS): in place, half of the documents, names too."""
    return Swap(**options)


def swap_words(
    text: str, spans: list[tuple[int, int]], table: Pairing, grammar: Judge
) -> list[Edit]:
    """The edits that turn the gendered words at the spans into their duals."""
    edits: list[Edit] = []
    forms, phrases, by_grammar, opening = table.forms, table.phrases, table.grammar, table.opening
    done = 0
    for start, end in spans:
        if start < done:
            continue
        word = text[start:end]
        change = forms.get(word)
        if change is None:
            lower = word.lower()
            if lower in by_grammar:
                after = _by_grammar(text, start, end, lower, grammar)
                change = (match_case(word, after), "pronoun")
            elif word in opening and opens_sentence(text, start, end):
                change = opening[word]
        if candidates := phrases.get(word.lower()):
            met = phrase_at(text, start, candidates)
            if met is not None:
                word, phrase = met
                end = start + len(word)
                if phrase.rule == "unchanged":
                    done = end
                    continue
                change = (phrase_after(word, phrase), phrase.rule)
        if change is None:
            continue
        plain = text[start - 1 : start] == " " == text[end : end + 1]
        if not plain and (protected(text, start, end) or _both_already(text, start)):
            continue
        after, rule = change
        if rule not in ("pronoun", "title") and _is_no_noun(text, start, end, rule):
            continue
        if word[-1] in "sS" and not plain and rule != "pronoun":
            word, after = full_possessive(text, end, word, after)
        edits.append(Edit(start, rule, word, after))
        done = start + len(word)
    return edits


def opens_sentence(text: str, start: int, end: int) -> bool:
    """Whether the word opens a sentence and continues in lower case: "Sons and daughters"."""
    opens = OPENING.search(text, max(start - 5, 0), start) is not None or start == 0
    return opens and text[end : end + 1] == " " and text[end + 1 : end + 2].islower()


def _is_no_noun(text: str, start: int, end: int, kind: str) -> bool:
    """Whether the gendered noun is part of a name or a verb."""
    if text[start].isupper() and (
        is_surname(text, start, end) or inside_name(text, start, end, kind)
    ):
        return True
    return is_verb(text, start, end)


def _both_already(text: str, start: int) -> bool:
    """Whether the word at `start` is the he of "(s)he" or "s/he", which is its own dual."""
    return BOTH.search(text, max(start - 4, 0), start) is not None


def _by_grammar(text: str, start: int, end: int, lower: str, grammar: Judge) -> str:
    if lower == "her":
        return "his" if grammar.her_is_possessive(text, start, end) else "him"
    return "her" if grammar.his_is_determiner(text, start, end) else "hers"


@takes_options(Swap)
@checked
def swap(document: str, **options: Unpack[SwapOptions]) -> Rewritten:
    """Replace every gendered word of a document by its dual.

    Parameters
    ----------
    document : str
    direction, probability, seed, names, keep_named, kinds, unsafe, pairs, judge
        As for `Swap`.

    Returns
    -------
    Rewritten
        The text with every gendered word swapped, and the edits.

    Examples
    --------
    >>> swap("“He’s her brother,” said the woman.").text
    '“She’s his sister,” said the man.'

    """
    return rewrite_all([document], Swap(**options))[0]


@takes_options(Swap, probability=0.5, names="fixed")
@checked
def substitute(documents: Iterable[str], **options: Unpack[SwapOptions]) -> list[Rewritten]:
    """Swap half of the documents in place, first names too (counterfactual data substitution).

    Parameters
    ----------
    documents : iterable of str
    direction, probability, seed, names, keep_named, kinds, unsafe, pairs, judge
        As for `Swap`.

    Returns
    -------
    list of Rewritten

    Notes
    -----
    Hall Maudslay et al. (2019). Which documents are swapped depends on the seed and their number.

    """
    return rewrite_all(list(documents), build_substitution(**options))
