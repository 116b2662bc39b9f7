"""Compare printed output with what a page shows, numbers within a tolerance.

Another processor changes the last digits of a computed number. A documented number therefore
counts as printed where it lies within two units of its last documented digit.
"""

from __future__ import annotations

import doctest
import re

NUMBER = re.compile(r"(?<![\w.])-?\d+(?:,\d{3})*\.\d+(?:e[-+]?\d+)?(?![\w.])")
UNITS = 2


class NumberChecker(doctest.OutputChecker):
    """A doctest checker that compares numbers with a decimal point within a tolerance."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, with_documented_numbers(want, got), optionflags)


def with_documented_numbers(want: str, got: str) -> str:
    """`got` with each number replaced by the documented one where they agree."""
    documented, printed = NUMBER.findall(want), NUMBER.findall(got)
    if len(documented) != len(printed):
        return got
    pairs = iter(zip(documented, printed, strict=True))

    def replaced(_: re.Match[str]) -> str:
        expected, actual = next(pairs)
        return expected if agree(expected, actual) else actual

    return NUMBER.sub(replaced, got)


def agree(expected: str, actual: str) -> bool:
    """Whether a printed number lies within the tolerance of the documented one.

    >>> agree("1.637", "1.638"), agree("1.637", "1.640"), agree("0.10", "0.25")
    (True, False, False)
    """
    mantissa, _, exponent = expected.partition("e")
    decimals = len(mantissa.partition(".")[2])
    unit = 10.0 ** (int(exponent or 0) - decimals)
    one, other = (float(text.replace(",", "")) for text in (expected, actual))
    return abs(one - other) <= (UNITS + 1e-6) * unit
