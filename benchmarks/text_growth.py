"""Time over the length of a line: every rewriting on texts made to be slow.

    python benchmarks/text_growth.py [--characters 20000] [--threshold 1.3] [--all]

Each text is one line: a pattern repeated, and something behind it. It is read at two lengths, the
second four times the first; the exponent is log4 of the ratio of the processor times, 1 for linear
time and 2 for quadratic. Printed are the exponents above the threshold, or all of them.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Mapping

from evenhand.text import Block
from evenhand.text.metrics.odds import pronoun_gender
from evenhand.text.rewrite.names import Anonymize
from evenhand.text.rewrite.neutralize import Neutralize
from evenhand.text.rewrite.swap import Swap
from evenhand.text.structural import Filter

Work = Callable[[str], object]

OPERATIONS: Mapping[str, Work] = {
    "swap": lambda text: Swap()(Block.of_lines(text)),
    "swap, names": lambda text: Swap(names="random")(Block.of_lines(text)),
    "swap, keep named": lambda text: Swap(keep_named=True)(Block.of_lines(text)),
    "neutralize": lambda text: Neutralize(nouns="all")(Block.of_lines(text)),
    "anonymize": lambda text: Anonymize()(Block.of_lines(text)),
    "filter": lambda text: Filter(log=True)(Block.of_lines(text)),
    "filter, by sentence": lambda text: Filter(log=True, split=True)(Block.of_lines(text)),
    "odds": pronoun_gender,
}
_MARKS = "aA7 -'\"“.?,(/@#_—\t\r"
_WORDS = (
    "A |a |A. |A.|A-|A'|() |... |...|? |. |' |\" |- |-- |he/|he |her |his |He |she said |he or |"
    "s/he |he's |he ' s |does n't |she is, |he, |and |is |runs |he runs, |he very |very |he who |"
    "she (|says he |he-|her-|her.|he@|he'|www.|a@b.|/a/|http://|Mary |Mary, |Mary and |Mr. |Mr |"
    "de la |Mary de |J. |Will |Will. |James' |Xyz |Xyz, |London |E1 |The |Dr. X |al-|Al-|Mary-|O'|"
    "Smith's |mother |chairman |man in the street |groom the |ladies' |Lord |Women's |teacher |"
    "the teacher, |1,|1-|1 |12:|before |neither nor "
)
PATTERNS = {
    **{repr(mark): mark for mark in _MARKS},
    **{repr(word): word for word in _WORDS.split("|")},
    "combining mark": "\N{COMBINING ACUTE ACCENT}",
    "letter with a mark": "e\N{COMBINING ACUTE ACCENT}",
    "emoji": "\N{GRINNING FACE}",
    "joined emoji": "\N{WOMAN}\N{ZERO WIDTH JOINER}",
    "soft hyphen": "\N{SOFT HYPHEN}",
    "no-break space": "\N{NO-BREAK SPACE}",
    "accented capital": "É ",
    "prose": "The doctor said that she had seen his brother with her, and Mary Smith was glad. ",
    "prose without full stops": "the doctor said that she had seen his brother and he waits ",
    "names without full stops": "Ada Foreman met Mr. King while she waited and Otto runs home ",
    "long words": "x" * 500 + " she ",
}
TAILS = {
    "": "",
    "x": "x",
    "she": " She waits for the teacher who lost her keys.",
    "her": " the teacher lost her keys.",
}


def line_of(pattern: str, tail: str, characters: int) -> str:
    """A line of about so many characters."""
    return pattern * max(1, characters // len(pattern)) + tail


def seconds(work: Work, text: str, repeats: int = 3) -> float:
    """Processor time, the least of some runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work(text)
        times.append(time.process_time() - start)
    return min(times)


def exponent(work: Work, pattern: str, tail: str, characters: int) -> tuple[float, float]:
    """The exponent of the growth from `characters` to four times as many, and the longer time."""
    short = seconds(work, line_of(pattern, tail, characters))
    long = seconds(work, line_of(pattern, tail, 4 * characters))
    return math.log(max(long, 1e-4) / max(short, 1e-4), 4), long


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--characters", type=int, default=20_000)
    parser.add_argument("--threshold", type=float, default=1.3)
    parser.add_argument("--all", action="store_true", help="print every exponent")
    options = parser.parse_args()
    print(f"{'operation':22}{'pattern':28}{'behind':8}{'exponent':>9}{'s':>8}")
    for name, work in OPERATIONS.items():
        work("He saw Mary. She runs.")
        largest = (0.0, "", "", 0.0)
        for label, pattern in PATTERNS.items():
            for behind, tail in TAILS.items():
                value, long = exponent(work, pattern, tail, options.characters)
                largest = max(largest, (value, label, behind, long))
                if options.all or (value > options.threshold and long > 0.05):
                    print(f"{name:22}{label:28}{behind:8}{value:9.2f}{long:8.3f}", flush=True)
        print(f"{name:22}largest: {largest[0]:.2f} ({largest[1]}, {largest[3]:.3f} s)", flush=True)


if __name__ == "__main__":
    main()
