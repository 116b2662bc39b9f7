"""Numbers as text for readers: true minus signs, brackets, p-values, percentages."""

from __future__ import annotations

import hashlib
import math
import re
import unicodedata


def number(value: float | None, digits: int = 3) -> str:
    """A few decimals and a true minus sign; a dash where there is no number.

    >>> number(-0.05812), number(None), number(-0.0001), number(math.inf)
    ('−0.058', '–', '0.000', '∞')
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.{digits}f}"
    return text.removeprefix("-") if not float(text) else text.replace("-", "−")


def shortest(value: float | None) -> str:
    """As few digits as a number needs, and a true minus sign; a dash where there is none.

    >>> shortest(0.5), shortest(-1.0), shortest(None)
    ('0.5', '−1', '–')
    """
    return "–" if value is None else f"{value:g}".replace("-", "−")


def interval(low: float | None, high: float | None, digits: int = 3) -> str:
    """Both ends in brackets.

    >>> interval(-0.095, 0.021)
    '[−0.095, 0.021]'
    """
    return f"[{number(low, digits)}, {number(high, digits)}]"


def supported(p: float, draws: float | None) -> tuple[float, int, bool]:
    """What can be said of a p-value that was counted from random draws.

    Its standard error, the root of p (1 - p) / draws, is at most one unit of the last decimal.
    Where no draw was extreme, or nothing but zeros is left, p plus two standard errors, rounded
    up to one digit, is an upper bound.

    Parameters
    ----------
    p : float
    draws : float or None
        None: p is exact. Where p is a multiple of the share of extreme draws, as a corrected
        p-value is, the number of draws divided by that multiple, which has the same error.

    Returns
    -------
    p : float
        Rounded, or the bound.
    decimals : int
        How many decimals it has, at most 9.
    bound : bool

    Examples
    --------
    >>> supported(0.0509, 1000), supported(0.0012, 10_000), supported(0.0012, None)
    ((0.05, 2, False), (0.001, 3, False), (0.0012, 9, False))
    >>> supported(1 / 1001, 1000)
    (0.003, 3, True)

    """
    if not draws or not 0 < p < 1:
        return p, 9, False
    error = math.sqrt(p * (1 - p) / draws)
    decimals = min(9, max(1, math.floor(-math.log10(error))))
    if p * (draws + 1) >= 1.5 and round(p, decimals):
        return round(p, decimals), decimals, False
    bound = min(1.0, p + 2 * error)
    decimals = math.ceil(-math.log10(bound))
    return round(math.ceil(bound * 10**decimals - 1e-9) / 10**decimals, decimals), decimals, True


def p_value(p: float | None, draws: float | None = None) -> str:
    r"""Three decimals, and "< 0.001" below them, with no line break inside.

    Of a p-value that was counted from random draws, the decimals that these support (`supported`).

    >>> p_value(0.0004), p_value(0.0312), p_value(None)
    ('<\xa00.001', '0.031', '–')
    >>> p_value(0.0509, 1000), p_value(1 / 1001, 1000), p_value(1 / 100_001, 100_000)
    ('0.05', '<\xa00.003', '<\xa00.001')
    """
    if p is None or not math.isfinite(p):
        return "–"
    p, decimals, bound = supported(p, draws)
    if p < 0.001:
        return "<\u00a00.001"
    return "<\u00a0" * bound + f"{p:.{min(3, decimals)}f}"


def p_relation(p: float | None, draws: float | None = None) -> str:
    r"""The p-value with its relation sign.

    >>> p_relation(0.0312), p_relation(0.0004)
    ('=\xa00.031', '<\xa00.001')
    """
    text = p_value(p, draws)
    return text if text.startswith("<") else f"=\u00a0{text}"


def probability(p: float) -> str:
    r"""Three decimals, and never 0 or 1, which posterior draws cannot show.

    >>> probability(0.98912), probability(1.0), probability(0.0)
    ('0.989', '>\xa00.999', '<\xa00.001')
    """
    return ">\u00a00.999" if p > 0.9995 else p_value(p)


def percent(share: float) -> str:
    """A share in whole percent.

    >>> percent(0.95)
    '95 %'
    """
    return f"{100 * share:.0f} %"


def upper_first(text: str) -> str:
    """A text that begins with a capital letter; the other letters stay as they are.

    >>> upper_first("a mean effect size"), upper_first("LEACE"), upper_first("")
    ('A mean effect size', 'LEACE', '')
    """
    return text[:1].upper() + text[1:]


LONGEST_SLUG = 100


def slug(name: str) -> str:
    """A name as part of a file name; a name without letters and digits, or a long one, by a hash.

    >>> slug("gender: soft, summed"), slug("../=")
    ('gender-soft-summed', 'name-971c1068')
    """
    text = re.sub(r"\W+", "-", name).strip("-").lower()
    if text and len(text) <= LONGEST_SLUG:
        return text
    digest = hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{text[:LONGEST_SLUG] or 'name'}-{digest}"


_INVISIBLE = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)


def visible(text: str) -> str:
    r"""The text with control characters, and those that reverse the direction, spelled out.

    In a terminal they would be commands, in a page they would reorder what follows.

    >>> print(visible("\x1b[31mred \u202eder"))
    \x1b[31mred \u202eder
    """
    return _INVISIBLE.sub(lambda match: ascii(match[0])[1:-1], text)


_SPELLED = {
    **dict.fromkeys("–—−‐‑─", "-"),
    **dict.fromkeys("“”„", '"'),
    **dict.fromkeys("‘’", "'"),
    "→": "->",
    "←": "<-",
    "↔": "<->",
    "↑": "^",
    "↓": "v",
    "↕": "^v",
    "∞": "inf",
    "…": "...",
    "×": "x",
    "·": "*",
    "≥": ">=",
    "≤": "<=",
    "≠": "!=",
    "±": "+-",
    "√": "sqrt ",
    "\u00a0": " ",
    "ε": "epsilon",
    "μ": "mu",
    "µ": "mu",
    "δ": "delta",
    "Δ": "delta",
    "τ": "tau",
    "σ": "sigma",
    "α": "alpha",
    "κ": "kappa",
    "π": "pi",
    "ŷ": "y^",
    "∑": "sum",
    "∈": "in",
    "¬": "not ",
}


def encodable(text: str, encoding: str | None) -> str:
    r"""The text with characters that the encoding lacks spelled in those that it has.

    Old code pages of terminals have no arrows or true minus signs. A letter without its accent is
    better than none; of what has no spelling the number is given, so that two names stay distinct.

    >>> encodable("−0.5 → ∞, naïve ☃", "cp437")
    '-0.5 -> ∞, naïve \\u2603'
    >>> encodable("naïve", "ascii")
    'naive'
    """
    encoding = encoding or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return "".join(_spell(character, encoding) for character in text)
    except LookupError:
        return encodable(text, "ascii")
    return text


def _spell(character: str, encoding: str) -> str:
    spelled = unicodedata.normalize("NFKD", character)
    without = "".join(c for c in spelled if not unicodedata.combining(c))
    for option in (character, _SPELLED.get(character), without):
        if option is None:
            continue
        try:
            option.encode(encoding)
        except UnicodeEncodeError:
            continue
        return option
    return character.encode("ascii", "backslashreplace").decode()
