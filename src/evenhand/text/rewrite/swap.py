"""Swapping gender: every gendered word to its dual (Lu et al. 2018; Hall Maudslay et al. 2019)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from operator import attrgetter

from evenhand.errors import InputError
from evenhand.text.block import Block
from evenhand.text.edits import Edit
from evenhand.text.grammar.pronouns import Judge, judge
from evenhand.text.rewrite.chance import chosen_documents
from evenhand.text.rewrite.naming import NAME_MODES, NameSwap
from evenhand.text.rewrite.pairing import Pairing, pairing, phrase_after, phrase_at
from evenhand.text.rewrite.possessive import full_possessive
from evenhand.text.rewrite.proper import inside_name
from evenhand.text.tokens import Words, match_case, protected

__all__ = ["Swap", "substitute"]

BOTH = re.compile(r"(?:\(s\)|(?<!\w)s/)$", re.IGNORECASE)
OPENING = re.compile(r"""(?:^|\n|[.!?…]["'”’)\]]*\s+)["'“‘(\[]*$""")


@dataclass(frozen=True, slots=True, kw_only=True)
class Swap:
    """Every gendered word of a document to its dual, its case kept.

    `her` becomes him or his and `his` becomes her or hers by grammar. A document is rewritten with
    the given `probability`, drawn for it from the seed. `names` swaps first names too: "fixed" by
    pairs of equal frequency, "random" by a draw for each document. `keep_named` is the rule of CDA
    proper: words that refer to somebody named ("Elizabeth … she … queen") are left alone.

    >>> from evenhand.text.edits import apply
    >>> text = "Her neighbour waved to her."
    >>> apply(text, Swap()(Block.of_lines(text)))
    'His neighbour waved to him.'
    """

    direction: str = "both"
    probability: float = 1.0
    seed: int = 0
    names: str = "off"
    keep_named: bool = False
    kinds: tuple[str, ...] | None = None
    unsafe: bool = False
    pairs: str | None = None
    judge: str = "embedded"

    def __post_init__(self) -> None:
        if not 0 <= self.probability <= 1:
            raise InputError(f"probability: expected 0 to 1, got {self.probability}")
        if self.names not in ("off", *NAME_MODES):
            expected = ", ".join(("off", *NAME_MODES))
            raise InputError(f"names: expected one of {expected}, got {self.names!r}")
        pairing(self.direction, self.kinds, self.unsafe, self.pairs)

    def __call__(self, block: Block) -> list[Edit]:
        """The edits of a block."""
        table = pairing(self.direction, self.kinds, self.unsafe, self.pairs)
        found = Words(block.text)
        chosen = chosen_documents(block, self.probability, self.seed)
        starts, ends = table.index.find(found)
        if self.probability < 1:
            wanted = chosen[block.owner(starts)]
            starts, ends = starts[wanted], ends[wanted]
        spans = list(zip(starts.tolist(), ends.tolist(), strict=True))
        if self.keep_named:
            from evenhand.text.rewrite.named import referring_to_names

            named = referring_to_names(block, spans)
            spans = [span for span in spans if span not in named]
        edits = swap_words(block.text, spans, table, judge(self.judge))
        if self.names == "off" or self.keep_named:
            return edits
        swapped = NameSwap(self.names, self.seed, self.direction).edits(block, chosen, found)
        return _merged(edits, swapped)


def substitute(*, probability: float = 0.5, names: str = "fixed", **options: object) -> Swap:
    """Counterfactual data substitution (CDS): in place, half of the documents, names too."""
    return Swap(probability=probability, names=names, **options)  # type: ignore[arg-type]


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
            elif word in opening and _opens_sentence(text, start, end):
                change = opening[word]
        if found := phrases.get(word):
            met = phrase_at(text, start, found)
            if met is not None:
                word, phrase = met
                end = start + len(word)
                if phrase.rule == "kept":
                    done = end
                    continue
                change = (phrase_after(word, phrase), phrase.rule)
        if change is None:
            continue
        plain = text[start - 1 : start] == " " == text[end : end + 1]
        if not plain and (protected(text, start, end) or _both_already(text, start)):
            continue
        after, rule = change
        if word[0].isupper() and inside_name(text, start, end, rule):
            continue
        if word[-1] in "sS" and not plain and rule != "pronoun":
            word, after = full_possessive(text, end, word, after)
        edits.append(Edit(start, rule, word, after))
        done = start + len(word)
    return edits


def _opens_sentence(text: str, start: int, end: int) -> bool:
    """Whether the word opens a sentence and goes on in lower case: "Sons and daughters"."""
    opens = OPENING.search(text, max(start - 5, 0), start) is not None or start == 0
    return opens and text[end : end + 1] == " " and text[end + 1 : end + 2].islower()


def _both_already(text: str, start: int) -> bool:
    """Whether the word at `start` is the he of "(s)he" or "s/he", which is its own dual."""
    return BOTH.search(text, max(start - 4, 0), start) is not None


def _by_grammar(text: str, start: int, end: int, lower: str, grammar: Judge) -> str:
    if lower == "her":
        return "his" if grammar.her_is_possessive(text, start, end) else "him"
    return "her" if grammar.his_is_determiner(text, start, end) else "hers"


def _merged(words: list[Edit], names: list[Edit]) -> list[Edit]:
    """Both kinds of edits in order; where they meet, the gendered word wins."""
    edits: list[Edit] = []
    done = 0
    for edit in sorted([*words, *names], key=attrgetter("offset")):
        if edit.offset >= done:
            edits.append(edit)
            done = edit.offset + len(edit.before)
    return edits
