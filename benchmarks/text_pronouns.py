"""Her -> him or his, his -> her or hers, 's -> is or has: five ways to decide, one table.

    python benchmarks/text_pronouns.py [--shared ../shared] [--mini] [--split held]

Accuracy with Wilson's interval; decisions a second on one core, and as a ratio to the shipped
judge, all measured in this run. Nothing here was trained on the treebank, on WinoBias or on the
project's gold files; the "corpus" rows are documents held out of training (mini has seen them:
its figure there is too good).
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path

from evenhand.statistics.intervals import wilson
from evenhand.text.grammar import (
    PronounContext,
    contraction,
    embedded_model,
    following,
    her_is_possessive,
    his_is_determiner,
    preceding,
    subject,
)
from pronoun_gold import Gold, contractions, rewritten, treebank, winobias

Way = Callable[[str, int, int], bool]

DATA = Path(__file__).resolve().parents[1] / "tests" / "text" / "data"
AFTER = re.compile(r"\W*(\w*)")
_OBJECT = """
    a an the this that these those to for from in on at by with of as and or but if when while
    because so than who what how where why i he she it they we you is was are were will would
    can could should had has have did does not never up out down away off over back again into
    about after before until since through too
"""
OBJECT = frozenset(_OBJECT.split())
"""Function words that rarely begin a noun phrase behind a possessive."""
_TWO = "give gives gave giving tell tells told telling ask asks asked asking call calls called let"
TWO = frozenset([*_TWO.split(), "made", "make", "makes", "saw", "see", "watched", "heard"])
_PARTICIPLE = re.compile(r"(?:not |never |always |already |just |also |\w+ly )*(\w+)")
_HAS = frozenset(
    [
        "been",
        "had",
        "got",
        "gone",
        "done",
        "seen",
        "come",
        "become",
        "made",
        "taken",
        "given",
        "lost",
        "won",
    ]
)


def next_word(text: str, start: int, end: int) -> bool:  # noqa: ARG001 - the rule looks ahead only
    """The rule of ten lines: possessive unless the sentence ends or a function word follows."""
    result = AFTER.match(text, end)
    gap, word = text[end : result.start(1)] if result else "", result[1] if result else ""
    if not word or any(mark in gap for mark in ".,;:!?"):
        return False
    return word.lower() not in OBJECT


def context_rules(text: str, start: int, end: int) -> bool:
    """Rules by hand: the above, then -ly and -ing, two-object verbs and bare verbs, names."""
    if not next_word(text, start, end):
        return False
    word, second, _, _, capital = following(text, start, end)
    before = preceding(text, start)[0]
    if word.endswith("ly") and second in ("", ".", ",", "and", "to", "in"):
        return False
    if before in TWO and subject(text, start, "she") != "same":
        return not (word.endswith(("ing", "s")) and second in ("", ".", ",")) and not capital
    return True


def trained(text: str, start: int, end: int) -> bool:
    """The shipped judge."""
    return her_is_possessive(text, start, end)


@cache
def _mini() -> Callable[[str, int, int], float]:
    import torch

    from evenhand.models.masked import load

    torch.set_num_threads(1)
    model = load("mini", device="cpu")
    words = model.tokenizer
    his, him = words.convert_tokens_to_ids(["his", "him"])

    def score(text: str, start: int, end: int) -> float:
        """Log odds of his against him at the mask, brackets taken out."""
        first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
        left, right = text[first:start], text[end : last if last >= 0 else len(text)]
        sides = [re.sub(r"[\[\]]", " ", side) for side in (left[-300:], right[:300])]
        before, after = (words(side, add_special_tokens=False)["input_ids"] for side in sides)
        before, after = before[-60:], after[:60]
        row = [words.cls_token_id, *before, words.mask_token_id, *after, words.sep_token_id]
        logits = model.logits([row], [len(before) + 1])[0]
        return float(logits[his] - logits[him])

    return score


def mini(text: str, start: int, end: int) -> bool:
    """The embedded masked model as judge."""
    return _mini()(text, start, end) > 0


def together(text: str, start: int, end: int) -> bool:
    """The shipped judge, and where it is unsure its log odds and mini's added up."""
    who = subject(text, start, "she")
    around = PronounContext(following(text, start, end), preceding(text, start), who)
    score = embedded_model().score("her", around)
    if abs(score) > 3:
        return trained(text, start, end)
    return score + _mini()(text, start, end) > 0


def is_rule(text: str, start: int, end: int) -> bool:  # noqa: ARG001 - the rule looks ahead only
    """For 's: has before been, got … and before -ed, is otherwise."""
    result = _PARTICIPLE.match(text, end + 3)
    word = result[1].lower() if result else ""
    return not (word in _HAS or word.endswith("ed"))


def is_trained(text: str, start: int, end: int) -> bool:
    """For 's: the shipped judge."""
    return contraction(text, start, end) == "is"


def held_out(shared: Path, most: int) -> dict[str, list[Gold]]:
    """Places of the documents that training left out, with the pronoun put to the test."""
    import sys

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
    from train_grammar import parts

    _, held = parts(sorted((shared / "data" / "corpus").glob("*.bz2")))
    patterns = {
        "her": (r"\b(?:(him)|(his)(?= ?[\w\[(]))\b", "her"),
        "his": (r"\b(?:(theirs|ours)|(their|our))\b", "his"),
        "'s": (r"\b(?:they|we|you)'(?:(ve)(?! (?:a|an|the|no|to|any|nothing)\b)|(re))\b", "he's"),
    }
    return {
        name: list(_replaced(held, re.compile(pattern, re.IGNORECASE), word))[:most]
        for name, (pattern, word) in patterns.items()
    }


def _replaced(documents: Sequence[str], pattern: re.Pattern[str], word: str) -> Iterator[Gold]:
    """Each match with `word` in its place, in its line; the answer is which group matched."""
    end = 2 if word == "he's" else len(word)
    for document in documents:
        for line in document.split("\n"):
            for match in pattern.finditer(line):
                text = line[: match.start()] + word + line[match.end() :]
                yield Gold(text, match.start(), match.start() + end, match[2] is not None)


def measure(name: str, gold: Sequence[Gold], ways: dict[str, Way]) -> None:
    """Print a line for each way: how often right, how fast."""
    speed: dict[str, float] = {}
    right: dict[str, int] = {}
    for label, way in ways.items():
        sample = gold[:500] if label in ("mini", "together") else gold
        way(*sample[0][:3])  # whatever is loaded first is not timed
        start = time.perf_counter()
        right[label] = sum(way(*index[:3]) is index.answer for index in sample)
        speed[label] = len(sample) / (time.perf_counter() - start)
    for label in ways:
        n = min(500, len(gold)) if label in ("mini", "together") else len(gold)
        share, low, high = wilson(right[label], n)
        print(
            f"{name:22}{label:15}{n:>7,}{share:>8.2%} [{low:.2%}, {high:.2%}]"
            f"{speed[label]:>12,.0f}{speed[label] / speed['trained']:>9.3f}"
        )


def main(shared: Path, with_mini: bool, split: str, most: int) -> None:
    """Print the table."""
    her: dict[str, Way] = {"next word": next_word, "context rules": context_rules}
    her["trained"] = trained
    if with_mini:
        her |= {"mini": mini, "together": together}
    his: dict[str, Way] = {"next word": next_word, "trained": his_is_determiner}
    has: dict[str, Way] = {"next word": is_rule, "trained": is_trained}
    print(f"{'':22}{'way':15}{'n':>7}{'right':>8} [95 % interval]{'a second':>14}{'ratio':>9}")
    treebank_file = shared / "data" / "ud" / "en_ewt-ud-dev.conllu"
    corpus = held_out(shared, most)
    swap, neutral = DATA / "swap.tsv", DATA / "neutral.tsv"
    measure("her, UD EWT dev", treebank(treebank_file, "her"), her)
    measure("her, WinoBias dev", winobias(shared / "data" / "winobias"), her)
    measure("her, corpus", corpus["her"], her)
    wanted = {"him": False, "his": True}
    measure(f"her, swap.tsv {split}", rewritten(swap, split, "her", wanted), her)
    wanted = {"them": False, "their": True}
    measure(f"her, neutral.tsv {split}", rewritten(neutral, split, "her", wanted), her)
    measure("his, UD EWT dev", treebank(treebank_file, "his"), his)
    measure("his, corpus", corpus["his"], his)
    wanted = {"hers": False, "her": True}
    measure(f"his, swap.tsv {split}", rewritten(swap, split, "his", wanted), his)
    measure("'s, corpus", corpus["'s"], has)
    measure(f"'s, neutral.tsv {split}", contractions(neutral, split), has)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    root = Path(__file__).resolve().parents[1]
    parser.add_argument("--shared", type=Path, default=root.parent / "shared")
    parser.add_argument("--mini", dest="with_mini", action="store_true", help="it is slow")
    parser.add_argument("--split", choices=["tune", "held"], default="held")
    parser.add_argument("--most", type=int, default=20_000, help="places of the corpus, at most")
    main(**vars(parser.parse_args()))
