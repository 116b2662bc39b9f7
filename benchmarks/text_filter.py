"""The resolver's precision and coverage, the filter's funnel on SWAG, and its speed.

    .venv/bin/python benchmarks/text_filter.py ../shared/data [MEGABYTES]
    .venv/bin/python benchmarks/text_filter.py ../shared/data --levels

With --levels only the table of docs/data/implicit.md: what the resolver finds, and how much of it
is right, at three levels of confidence.

The confidence of each rule is measured without labels, by gender: the resolver is made blind to sex
and run on running text; where the antecedent it finds states a sex ("the queen"), a right link
agrees with the pronoun, and a wrong one does so by chance, in a share q of cases. So the precision
is 1 - (1 - agree) / (1 - q).
"""

from __future__ import annotations

import bz2
import csv
import lzma
import re
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from coreference_gold import gold_sentences, winobias
from evenhand.lexicon.pronouns import FEMALE, PRONOUNS
from evenhand.statistics.intervals import wilson
from evenhand.text.block import Block
from evenhand.text.coreference import CONFIDENCE, THRESHOLD, Link, Rules
from evenhand.text.structural import STEPS, Accepted, Filter
from evenhand.text.tokens import sentences, tokenize
from evenhand.text.vocabulary import nouns
from implicit_data import PUBLISHED

DATA = Path(__file__).parent.parent / "docs" / "data"
GOLD = Path(__file__).parent.parent / "tests" / "text" / "data" / "coreference.txt"
PRONOUN = re.compile(rf"\b(?:{'|'.join(PRONOUNS)})\b", re.IGNORECASE)


LEVELS = (0.5, THRESHOLD, 0.85)
"""Confidences at which the cost of the resolver is shown; the middle one is the default."""
KINDS = ("type1_pro", "type1_anti", "type2_pro", "type2_anti")


def show(name: str, linked: int, right: int, total: int) -> None:
    """A row of the table of accuracy."""
    precision = right / linked if linked else float("nan")
    print(f"{name:<44}{precision:>10.1%}{linked / total:>10.1%}{total:>8}")


def accuracy(data: Path) -> None:
    """Against gold antecedents: our own sentences and WinoBias."""
    print(f"{'resolver: gold antecedents':<44}{'precision':>10}{'coverage':>10}{'n':>8}")
    for threshold in (THRESHOLD, 0.0):
        show(f"own sentences, confidence ≥ {threshold}", *own_links(threshold))
        for kind in KINDS:
            counts = winobias_links(data, kind, threshold)
            show(f"WinoBias dev {kind}, confidence ≥ {threshold}", *counts)


def own_links(threshold: float) -> tuple[int, int, int]:
    """Of our own sentences the links, those that are right, and the sentences."""
    rules = Rules(threshold)
    gold = list(gold_sentences(GOLD))
    result = [(rules(tokens, i), reported) for tokens, i, reported in gold]
    links = [(link, reported) for link, reported in result if link is not None]
    right = sum(link.text.replace(" 's", "'s") == reported for link, reported in links)
    return len(links), right, len(gold)


def winobias_links(data: Path, kind: str, threshold: float) -> tuple[int, int, int]:
    """The same of a part of WinoBias dev; a link is right if it overlaps the gold span."""
    rules = Rules(threshold)
    path = data / "winobias" / "conll_format" / f"dev_{kind}_stereotype.v4_auto_conll"
    cases = list(winobias(path))
    created = [(rules(tokens, i), span) for tokens, i, span in cases]
    spans = [(link, span) for link, span in created if link is not None]
    right = sum(link.start < span[1] and span[0] < link.end for link, span in spans)
    return len(spans), right, len(cases)


def levels(data: Path) -> str:
    """The cost of the resolver at each level of confidence, in Markdown."""
    heads = [f"≥ {level:g}" + " (default)" * (level == THRESHOLD) for level in LEVELS]
    rows = [f"| confidence | {' | '.join(heads)} |", "|" + " --- |" * (len(LEVELS) + 1)]
    for name, part in (("WinoBias type 1", "type1"), ("WinoBias type 2", "type2")):
        for version in ("pro", "anti"):
            counts = [winobias_links(data, f"{part}_{version}", level) for level in LEVELS]
            rows += _of_gold(f"{name}, {version}", counts)
    rows += _of_gold("own sentences", [own_links(level) for level in LEVELS])
    lines = (data / "swag" / "swag_sent1_subset.txt").read_text(encoding="utf-8").splitlines()
    swag = [
        sum(isinstance(Filter(min_confidence=level).sentence(line), Accepted) for line in lines)
        for level in LEVELS
    ]
    rows.append(f"| SWAG: accepted sentences | {' | '.join(map(str, swag))} |")
    for name, links in published_links().items():
        reached = [[yes for confidence, yes in links if confidence >= level] for level in LEVELS]
        accepted = [f"{len(each):,}" for each in reached]
        judged = [[yes == "yes" for yes in each if yes] for each in reached]
        shares = [_share(sum(each), len(each)) for each in judged]
        for title, cells in (("accepted sentences", accepted), ("judged structural", shares)):
            known = [c if x >= THRESHOLD else "" for c, x in zip(cells, LEVELS, strict=True)]
            rows.append(f"| {name}: {title} | {' | '.join(known)} |")
    return "\n".join(rows)


def _of_gold(name: str, counts: list[tuple[int, int, int]]) -> list[str]:
    found = " | ".join(_share(linked, total) for linked, _, total in counts)
    right = " | ".join(_share(right, linked) for linked, right, _ in counts)
    return [f"| {name}: linked | {found} |", f"| {name}: right of these | {right} |"]


def _share(count: int, total: int) -> str:
    if not total:
        return "none"
    value, low, high = (100 * x for x in wilson(count, total))
    return f"{value:.0f} % [{low:.0f}, {high:.0f}] of {total}"


def published_links() -> dict[str, list[tuple[float, str]]]:
    """By published corpus the confidence and the verdict of every sentence."""
    links: defaultdict[str, list[tuple[float, str]]] = defaultdict(list)
    for name in PUBLISHED:
        with lzma.open(DATA / f"implicit-{name}.csv.xz", "rt", encoding="utf-8") as file:
            for row in csv.DictReader(file):
                accepted = Filter().sentence(row["sentence"])
                if isinstance(accepted, Accepted):
                    links[name].append((accepted.confidence or 0.0, row["verdict"]))
    return links


def lines(data: Path) -> Iterator[str]:
    """The lines of the corpus."""
    for part in (1, 2):
        with bz2.open(data / "corpus" / f"corpus-{part}.txt.bz2", "rt", encoding="utf-8") as file:
            yield from file


def stated(tokens: list[str], link: Link) -> str | None:
    """The sex that a common-noun antecedent states."""
    if not tokens[link.end - 1].islower():
        return None
    sexes = {nouns().sex.get(word.lower()) for word in tokens[link.start : link.end]} - {None}
    return sexes.pop() if len(sexes) == 1 else None


def agreement(data: Path, half: int) -> tuple[dict[str, Counter[tuple[str, str]]], float]:
    """How often pronoun and antecedent are of which sex, by rule; the share of male pronouns."""
    rules = Rules(threshold=0.0, agreement=False)
    pairs: defaultdict[str, Counter[tuple[str, str]]] = defaultdict(Counter)
    pronouns: Counter[str] = Counter()
    for line in islice(lines(data), half, None, 2):
        for begin, end in sentences(line):
            sentence = line[begin:end]
            if not 20 < len(sentence) < 250 or len(PRONOUN.findall(sentence)) != 1:
                continue
            tokens, _ = tokenize(sentence)
            index = next((k for k, word in enumerate(tokens) if word.lower() in PRONOUNS), None)
            if index is None:
                continue
            sex = "female" if tokens[index].lower() in FEMALE else "male"
            pronouns[sex] += 1
            link = rules(tokens, index)
            reported = stated(tokens, link) if link is not None else None
            if link is not None and reported is not None:
                pairs[link.rule][sex, reported] += 1
    return pairs, pronouns["male"] / pronouns.total()


def measured(counts: Counter[tuple[str, str]], male: float) -> tuple[int, float]:
    """Links of a rule and the estimated share that is right."""
    n = counts.total()
    if not n:
        return 0, float("nan")
    agree = sum(k for (a, b), k in counts.items() if a == b) / n
    men = sum(k for (_, b), k in counts.items() if b == "male") / n
    chance = male * men + (1 - male) * (1 - men)
    return n, 1 - (1 - agree) / (1 - chance)


def calibration(data: Path) -> None:
    """Each rule on the half of the corpus its confidence comes from, and on the other half.

    `shrunk` adds ten links of which five are right: what the confidence should be.
    """
    (first, male), (second, other) = agreement(data, 0), agreement(data, 1)
    print(
        f"\n{'rule':<30}{'n':>6}{'right':>7}{'shrunk':>8}{'states':>8}{'held out':>10}{'right':>7}"
    )
    for rule in CONFIDENCE:
        n, right = measured(first.get(rule, Counter()), male)
        shrunk = ((right * n if n else 0.0) + 5) / (n + 10)
        m, check = measured(second.get(rule, Counter()), other)
        row = f"{rule:<30}{n:>6}{right:>7.2f}{shrunk:>8.2f}{CONFIDENCE[rule]:>8.2f}"
        print(f"{row}{m:>10}{check:>7.2f}")


def funnel_and_speed(data: Path, megabytes: int) -> None:
    """What each step leaves, and megabytes a CPU-second."""
    swag = (data / "swag" / "swag_sent1_subset.txt").read_text(encoding="utf-8")
    running = "".join(islice(lines(data), 0, None, 7))[: megabytes << 20]
    for name, text, split in (("SWAG", swag, False), ("corpus, --split-sentences", running, True)):
        block = Block.of_lines(text)
        keep = Filter(split=split)
        keep(Block.of_lines(text[:20000]))
        begin = time.process_time()
        counts = keep(block).counts
        seconds = time.process_time() - begin
        size = len(text.encode()) / 1e6
        steps = " → ".join(f"{counts[step]:,}" for step in STEPS)
        print(f"\nfilter, {name}: {steps}")
        print(f"{size:.1f} MB in {seconds:.2f} CPU-s: {size / seconds:.1f} MB/s (limit: 1)")


def main() -> None:
    """Print it all."""
    data = Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data")
    if "--levels" in sys.argv:
        print(levels(data))
        return
    accuracy(data)
    calibration(data)
    funnel_and_speed(data, int(sys.argv[2]) if len(sys.argv) > 2 else 8)


if __name__ == "__main__":
    main()
