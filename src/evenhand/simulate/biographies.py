r"""Short biographies of people in 28 occupations, with a known gender bias.

The occupations and their shares of women are those of Table 3 of El Zein (2021). A text never
contains the name of an occupation. Gender acts as follows:

1. The *recorded* gender of a person is female with probability $1/2 + \mathrm{shares}
   (\mathrm{share}_c - 1/2)$ in occupation $c$.
2. The text *states* the recorded gender with probability `leak`, otherwise a random one. Pronouns,
   title, first name and words such as chairwoman follow the stated gender.
3. Where a sentence has a wording typical of women and one typical of men (knitting or woodwork), it
   has that of the stated gender with probability `wording`, otherwise a random one. No list of
   gendered words swaps or removes these.
4. Nothing else depends on gender. A label is wrong with probability `label_noise`; all other
   occupations are equally likely.

So the text depends on the recorded gender only through the stated gender. At leak 0 the text is
independent of the recorded gender given the occupation, and a text and its counterfactual (the same
draws, the other gender stated) are exchangeable. Then for every classifier and encoder every
contrast of recorded genders within an occupation has expectation zero: the association
$\log p(c \mid x) / p(c \mid x')$, the accuracies of pro- and anti-stereotypical texts, F1 by
gender.
(Sets pooled over occupations differ in their occupations: give the occupations equal weight.)
Above 0, `Biographies.pull` is the exact bias of the text.

A text is drawn once, with its gendered slots open, and then written for a woman and for a man: the
two are exact counterfactuals of each other.
"""

from __future__ import annotations

import math
import os
import tomllib
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from itertools import accumulate
from numbers import Real
from string import Formatter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from evenhand.errors import InputError, UnknownNameError, check_whole
from evenhand.files import save_csv
from evenhand.lexicon.first_names import names
from evenhand.text.people import known_names

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


COLUMNS = ("hard_text", "profession", "gender")
"""Column names of Bias in Bios (De-Arteaga et al. 2019)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Biographies:
    """Simulated biographies, grouped by occupation; every tuple has one entry per person.

    Attributes
    ----------
    texts, counterfactuals : tuple of str
        The texts, and the same texts with the other gender stated.
    occupations, true_occupations : tuple of str
        Labels, wrong at the rate of the label noise, and the truth.
    genders, stated_genders : tuple of str
        Recorded genders and those that the texts state, "F" or "M".
    share_of_women : mapping of str to float
        By occupation.
    leak, shares, wording, label_noise, seed
        Parameters of the simulation.
    """

    texts: tuple[str, ...] = field(repr=False)
    occupations: tuple[str, ...] = field(repr=False)
    genders: tuple[str, ...] = field(repr=False)
    counterfactuals: tuple[str, ...] = field(repr=False)
    true_occupations: tuple[str, ...] = field(repr=False)
    stated_genders: tuple[str, ...] = field(repr=False)
    share_of_women: Mapping[str, float]
    leak: float
    shares: float
    wording: float
    label_noise: float
    seed: int

    @property
    def classes(self) -> tuple[str, ...]:
        """Occupations, in the order of `share_of_women`."""
        return tuple(self.share_of_women)

    @property
    def pull(self) -> dict[str, float]:
        r"""True bias: log-odds of the gendered words by occupation.

        $\log p(x_F \mid c) - \log p(x_M \mid c)$ for a text $x$ written for a woman and for a man:
        the log-odds that a text of occupation $c$ states a woman, with
        $p = 1/2 + \mathrm{leak}\,(\mathrm{share}_c - 1/2)$. It is exact, because nothing else in a
        text depends on both gender and occupation; 0 for every occupation at leak 0.
        """
        stated = {name: 0.5 + self.leak * (p - 0.5) for name, p in self.share_of_women.items()}
        return {name: math.log(p / (1 - p)) for name, p in stated.items()}

    def to_frame(self) -> pd.DataFrame:
        """Return one row per text: the columns of Bias in Bios, then those of the simulation."""
        import pandas as pd

        values = (self.texts, self.occupations, self.genders)
        simulated = {
            "counterfactual": self.counterfactuals,
            "true_occupation": self.true_occupations,
            "stated_gender": self.stated_genders,
        }
        return pd.DataFrame({**dict(zip(COLUMNS, values, strict=True)), **simulated})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a CSV file with the columns of Bias in Bios: hard_text, profession, gender."""
        rows = zip(self.texts, self.occupations, self.genders, strict=True)
        save_csv(path, (dict(zip(COLUMNS, row, strict=True)) for row in rows), COLUMNS)


def biographies(
    per_class: int = 200,
    *,
    leak: float = 0.5,
    shares: float = 1.0,
    wording: float = 0.0,
    label_noise: float = 0.0,
    seed: int = 0,
    occupations: Iterable[str] | None = None,
) -> Biographies:
    """Simulate short biographies with a known gender bias.

    Parameters
    ----------
    per_class : int, default 200
        Persons per occupation.
    leak : float, default 0.5
        Probability that a text states the recorded gender rather than a random one.
    shares : float, default 1.0
        Scale of the differences of the shares of women from one half (0: one half everywhere, 1:
        Table 3 of El Zein (2021)).
    wording : float, default 0.0
        Probability that a typically gendered wording follows the stated gender.
    label_noise : float, default 0.0
        Probability of a wrong label.
    seed : int, default 0
    occupations : iterable of str, optional
        Default: all 28.

    Returns
    -------
    Biographies

    Notes
    -----
    Apart from the stated gender, the text of a person depends only on the seed, the occupation and
    the person's number: other parameters, sizes or occupations do not change it.

    Examples
    --------
    >>> sample = biographies(3, leak=1, seed=4, occupations=["nurse", "composer"])
    >>> sample.occupations
    ('nurse', 'nurse', 'nurse', 'composer', 'composer', 'composer')
    >>> print(sample.texts[3][-72:])
    His training began in Belfast, where he studied music theory until 2002.
    >>> print(sample.counterfactuals[3][-73:])
    Her training began in Belfast, where she studied music theory until 2002.
    """
    parameters = {"leak": leak, "shares": shares, "wording": wording, "label_noise": label_noise}
    for name, value in parameters.items():
        if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= value <= 1:
            raise InputError(f"{name}: expected a number from 0 to 1, got {value!r}")
    check_whole(per_class=per_class)
    check_whole(0, seed=seed)
    book = grammar()
    known = list(book.occupations)
    classes = known if occupations is None else _check_occupations(occupations, known)
    if label_noise and len(classes) < 2:
        raise InputError("label_noise: expected at least two occupations to confuse, got one")
    women = {name: 0.5 + shares * (book.occupations[name].women - 0.5) for name in classes}
    rows = []
    for index, name in enumerate(classes):
        numbers = np.random.default_rng([seed, known.index(name)]).random((per_class, 5 + DRAWS))
        recorded = np.where(numbers[:, 0] < women[name], 0, 1)
        stated = np.where(numbers[:, 1] < leak, recorded, numbers[:, 2] >= 0.5)
        step = 1 + (numbers[:, 4] * (len(classes) - 1)).astype(int)
        labels = np.where(numbers[:, 3] < label_noise, (index + step) % len(classes), index)
        for gender, shown, label, row in zip(
            recorded.tolist(),
            stated.tolist(),
            labels.tolist(),
            numbers[:, 5:].tolist(),
            strict=True,
        ):
            both = write(book, book.occupations[name], wording=wording, draws=row)
            persons = GENDERS[gender], GENDERS[shown]
            rows.append((both[shown], classes[label], both[1 - shown], name, *persons))
    texts, given, counterfactuals, truth, genders, stated_genders = zip(*rows, strict=True)
    return Biographies(
        texts=texts,
        occupations=given,
        genders=genders,
        counterfactuals=counterfactuals,
        true_occupations=truth,
        stated_genders=stated_genders,
        share_of_women=women,
        seed=int(seed),
        **{name: float(value) for name, value in parameters.items()},
    )


def _check_occupations(occupations: Iterable[str], known: list[str]) -> list[str]:
    if isinstance(occupations, str):
        raise InputError(f"occupations: expected a list of names, got the text {occupations!r}")
    classes = list(occupations)
    if not classes:
        raise InputError("occupations: expected at least one, got none")
    for name in classes:
        if name not in known:
            raise UnknownNameError("occupation", str(name), known)
        if classes.count(name) > 1:
            raise InputError(f"occupations: expected each once, got '{name}' twice")
    return classes


GENDERS = ("F", "M")
KINDS = ("study", "work", "subject", "place", "did")
"""Kinds of phrases of an occupation and its fields."""

OWN = 0.3
"""Share of phrases from the occupation itself; the rest comes from its fields."""

FIRST_NAMES = 300
"""Number of pairs of first names, the most frequent ones."""

Pieces = tuple[tuple[str, str | None], ...]
"""A sentence as pairs of plain text and the slot after it."""


@dataclass(frozen=True, slots=True)
class Pools:
    """Lists of phrases with the upper bounds of their intervals in [0, 1)."""

    lists: Sequence[Sequence[str]]
    bounds: Sequence[float]


@dataclass(frozen=True, slots=True)
class Occupation:
    """An occupation: its share of women and the sources of its phrases."""

    name: str
    women: float
    phrases: Mapping[str, Pools]


@dataclass(frozen=True, slots=True)
class Grammar:
    """Vocabulary and sentences of the biographies.

    `words` has for both genders the gendered words by slot, including typical wordings: the slot
    `hobby-3` is the fourth pair of hobbies.
    """

    occupations: Mapping[str, Occupation]
    sentences: Mapping[str, tuple[Pieces, ...]]
    orders: Sequence[Sequence[str]]
    lists: Mapping[str, Sequence[str]]
    wording: Mapping[str, Sequence[Sequence[str]]]
    words: tuple[Mapping[str, str], Mapping[str, str]]
    first_names: tuple[tuple[str, str], ...]


@cache
def grammar() -> Grammar:
    """Return the built-in grammar."""
    folder = files("evenhand.simulate").joinpath("data")
    fields: dict[str, dict[str, list[str]]] = {}
    for part in sorted(folder.joinpath("fields").iterdir(), key=lambda file: file.name):
        fields |= _read(part)
    sentences, pairs = (_read(folder / f"{name}.toml") for name in ("sentences", "pairs"))
    orders = sentences.pop("orders")
    subjects = (subject for lists in fields.values() for subject in lists["subject"])
    return Grammar(
        occupations={
            name: _occupation(name, entry, fields)
            for name, entry in _read(folder / "occupations.toml").items()
        },
        sentences={kind: _split(texts) for kind, texts in sentences.items()},
        orders=orders,
        lists=_read(folder / "lists.toml") | {"aside": list(dict.fromkeys(subjects))},
        wording=pairs["wording"],
        words=_gendered(pairs["words"], pairs["wording"]),
        first_names=_first_names(),
    )


def _read(file: Traversable) -> dict[str, Any]:
    return tomllib.loads(file.read_text("utf-8"))


def _occupation(
    name: str, entry: Mapping[str, Any], fields: Mapping[str, Mapping[str, list[str]]]
) -> Occupation:
    weights = entry["fields"]
    phrases = {}
    for kind in KINDS:
        own = entry.get(kind, [])
        lists = [fields[field][kind] for field in weights]
        rest = (1 - OWN) if own else 1.0
        shares = [rest * weight / sum(weights.values()) for weight in weights.values()]
        if own:
            lists, shares = [own, *lists], [OWN, *shares]
        phrases[kind] = Pools(lists, list(accumulate(shares)))
    return Occupation(name, entry["women"] / 100, phrases)


def _split(texts: Iterable[str]) -> tuple[Pieces, ...]:
    return tuple(
        tuple((plain, slot) for plain, slot, _, _ in Formatter().parse(text)) for text in texts
    )


def _gendered(
    words: Mapping[str, Sequence[str]], wording: Mapping[str, Sequence[Sequence[str]]]
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    slots = dict(words)
    for slot, (woman, man) in words.items():
        slots[slot.capitalize()] = [woman.capitalize(), man.capitalize()]
    for kind, pairs in wording.items():
        slots |= {f"{kind}-{i}": pair for i, pair in enumerate(pairs)}
    women, men = ({slot: pair[side] for slot, pair in slots.items()} for side in (0, 1))
    return women, men


def _first_names() -> tuple[tuple[str, str], ...]:
    """The most frequent pairs of unambiguous first names."""
    known = names()
    clear = known_names() - known.ambiguous
    pairs = [
        (name, other)
        for name in known.female
        if name in clear and (other := known.partner(name)) in clear
        if other is not None and known.gender(other) == "male" and known.partner(other) == name
    ]
    return tuple(pairs[:FIRST_NAMES])


DRAWS = 160
"""Uniform numbers available to one biography."""

SENTENCES = (3, 6)
WORDS = (40, 100)
NOW = 2021


def write(
    grammar: Grammar, occupation: Occupation, *, wording: float, draws: Sequence[float]
) -> tuple[str, str]:
    """Write the biography of a woman and, from the same draws, of a man."""
    page = _Page(grammar, occupation, wording, draws)
    low, high = SENTENCES
    count = low + int(page.draw() * (high - low + 1))
    order = page.pick(grammar.orders)
    drafts = [page.sentence(page.pick(grammar.sentences[kind])) for kind in order[:high]]
    words = [
        {**slots, "first": name}
        for slots, name in zip(grammar.words, page.first_names, strict=True)
    ]
    lengths = [len(draft.format_map(words[0]).split()) for draft in drafts]
    while count < high and sum(lengths[:count]) < WORDS[0]:
        count += 1
    while count > low and sum(lengths[:count]) > WORDS[1]:
        count -= 1
    draft = " ".join(drafts[:count])
    return draft.format_map(words[0]), draft.format_map(words[1])


class _Page:
    """The draws of a text and the phrases it has used."""

    def __init__(
        self, grammar: Grammar, occupation: Occupation, wording: float, draws: Sequence[float]
    ) -> None:
        self._draws: Iterator[float] = iter(draws)
        self._grammar = grammar
        self._occupation = occupation
        self._wording = wording
        self._used: set[str] = set()
        self._opening = True
        self._named = False
        self.first_names = self.pick(grammar.first_names)
        self._surname = self.pick(grammar.lists["surname"])
        self._short = self.pick(
            (self._surname, self._surname, "{title} " + self._surname, "{first}")
        )
        self._graduated = 1986 + int(self.draw() * 24)

    def draw(self) -> float:
        return next(self._draws)

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self.draw() * len(choices))]

    def sentence(self, pieces: Pieces) -> str:
        """Fill every slot of a sentence except those of gendered words."""
        text = "".join(
            plain + (self._fill(slot) if slot is not None else "") for plain, slot in pieces
        )
        self._opening = False
        return text

    def _fill(self, slot: str) -> str:
        kind = slot.lower()
        if kind in self._grammar.words[0]:
            return f"{{{slot}}}"
        if kind in ("who", "whose"):
            return self._person(slot)
        filled = self._drawn(kind)
        return filled if slot == kind else filled[0].upper() + filled[1:]

    def _drawn(self, kind: str) -> str:
        if kind in self._grammar.wording:
            return self._worded(kind)
        if kind == "graduated":
            return str(self._graduated)
        if kind == "later":
            return str(self._graduated + 2 + int(self.draw() * (NOW - 2 - self._graduated)))
        if kind == "years":
            return self.pick(self._grammar.lists["years"][: NOW - self._graduated - 2])
        if kind == "number":
            return self._fresh(self._grammar.lists["years"][:6])
        if kind in self._grammar.lists:
            return self._fresh(self._grammar.lists[kind])
        pools = self._occupation.phrases[kind]
        index = bisect_right(pools.bounds[:-1], self.draw())
        return self._fresh(pools.lists[index])

    def _fresh(self, phrases: Sequence[str]) -> str:
        """Return a phrase that the text does not use yet: the one drawn or the next one."""
        start = int(self.draw() * len(phrases))
        for i in range(len(phrases)):
            phrase = phrases[(start + i) % len(phrases)]
            if phrase not in self._used:
                break
        self._used.add(phrase)
        return phrase

    def _worded(self, kind: str) -> str:
        """Return a pair open for the stated gender, or a random side of it."""
        pairs = self._grammar.wording[kind]
        start = int(self.draw() * len(pairs))
        slots = (f"{kind}-{(start + i) % len(pairs)}" for i in range(len(pairs)))
        slot = next(slot for slot in slots if slot not in self._used)
        self._used.add(slot)
        is_open, side = self.draw() < self._wording, int(self.draw() * 2)
        return f"{{{slot}}}" if is_open else self._grammar.words[side][slot]

    def _person(self, slot: str) -> str:
        """Return a name or a pronoun: never two names in succession, the full name only first."""
        chance = self.draw()
        by_name = chance < (0.75 if self._opening else 0.35) and not self._named
        self._named = by_name
        if not by_name:
            pronoun = "they" if slot.lower() == "who" else "their"
            return f"{{{pronoun.capitalize() if slot[0].isupper() else pronoun}}}"
        full = self._opening and chance < 0.3 and "{title}" not in self._short
        name = "{first} " + self._surname if full else self._short
        return name if slot.lower() == "who" else f"{name}'s"
