"""SemBias: which pair of words is most like *he* and *she*, a definition or a stereotype?

An item has four pairs: one that differs in gender by definition (waiter, waitress), one by
stereotype (doctor, nurse) and two of related meaning (cup, lid). The pair whose difference has the
largest cosine with *he* - *she* is chosen; Zhao, Zhou, Li, Wang & Chang (2018).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import FileError, InputError
from evenhand.instruments import Instrument, Run, instrument, option
from evenhand.results import Items, Measurement
from evenhand.statistics.association import unit
from evenhand.statistics.crossed import clustered
from evenhand.statistics.intervals import Floats
from evenhand.statistics.sequential import Counted, Seed, draw_until_clear
from evenhand.text.tables import Source, name_of, open_table
from evenhand.vectors.store import Vectors, load

WordPair = tuple[str, str]
COLUMNS = ("definition", "stereotype", "none 1", "none 2")

DEFINITIONS = """waiter:waitress actor:actress king:queen prince:princess duke:duchess son:daughter
father:mother uncle:aunt nephew:niece brother:sister husband:wife grandfather:grandmother boy:girl
man:woman gentleman:lady groom:bride monk:nun host:hostess heir:heiress emperor:empress
widower:widow wizard:witch"""
STEREOTYPES = """doctor:nurse programmer:secretary engineer:teacher mechanic:hairdresser
carpenter:florist pilot:receptionist plumber:housekeeper surgeon:dietitian boss:assistant
architect:decorator soldier:dancer scientist:librarian electrician:stylist janitor:maid
manager:clerk lawyer:paralegal farmer:homemaker miner:typist captain:babysitter
warrior:dressmaker"""
OTHERS = """cup:lid dog:cat bread:butter river:lake table:chair pen:pencil moon:star gold:silver
door:window salt:pepper shoe:sock coffee:tea train:bus guitar:piano apple:pear desk:lamp rain:snow
hammer:nail north:south pillow:blanket paper:ink spoon:fork island:coast stone:brick sugar:honey
engine:wheel roof:floor bottle:glass leaf:branch clock:calendar copper:iron field:forest soup:salad
ladder:rope camera:lens wine:beer summer:winter ship:boat road:bridge letter:envelope"""


@dataclass(frozen=True, slots=True)
class SemBiasItem:
    """Four pairs of words: by definition, by stereotype, and two others."""

    definition: WordPair
    stereotype: WordPair
    others: tuple[WordPair, WordPair]

    @property
    def pairs(self) -> tuple[WordPair, ...]:
        """The four pairs, in the order of `COLUMNS`."""
        return (self.definition, self.stereotype, *self.others)


def read_sembias(source: Source) -> list[SemBiasItem]:
    """Read items from a table with the columns definition, stereotype, none 1 and none 2.

    A cell is a pair "he-word:she-word".
    """
    name = name_of(source)
    with open_table(source) as table:
        items = [
            _item(*(_pair(str(cell or ""), name, number) for cell in row))
            for number, row in enumerate(table.rows(*COLUMNS), 1)
        ]
    if not items:
        raise FileError(name, "expected items, one per row, got none")
    return items


def _pair(text: str, name: str = "", row: int = 0) -> WordPair:
    first, colon, second = (part.strip() for part in text.partition(":"))
    if not (first and colon and second) or ":" in second:
        raise FileError(name, f"row {row}: expected a pair of words a:b, got '{text}'")
    return first, second


def _item(
    definition: WordPair, stereotype: WordPair, one: WordPair, other: WordPair
) -> SemBiasItem:
    return SemBiasItem(definition, stereotype, (one, other))


def built_in_items() -> list[SemBiasItem]:
    """Every definition with every stereotype of our own lists, each with two other pairs."""
    definitions, stereotypes, others = (
        [_pair(text) for text in words.split()] for words in (DEFINITIONS, STEREOTYPES, OTHERS)
    )
    half = len(others) // 2
    return [
        _item(definition, stereotype, others[(i + j) % half], others[half + (3 * i + j) % half])
        for i, definition in enumerate(definitions)
        for j, stereotype in enumerate(stereotypes)
    ]


@instrument(
    name="sembias",
    subjects=("vectors",),
    label="SemBias",
    question="Is a stereotype, such as doctor and nurse, more like he and she than other pairs?",
    above="stereotype pairs are chosen as he and she more often than other related pairs",
    formula="share of items in which the stereotype pair (a, b) has the largest "
    "cos(he - she, a - b) of four pairs (a definition, a stereotype and two others), less half the "
    "share of the two others",
    source="Zhao, Zhou, Li, Wang & Chang (2018)",
    worse="higher",
    material="items of four pairs (CSV: definition, stereotype, none 1, none 2; a:b each)",
    reading="0 where stereotypes are chosen like any related pair. The shares that are usually "
    "published are parts: of stereotypes, lower is better; of definitions, higher.",
    caveats=(
        "The built-in pairs are our own, in the design of the published 440 items: shares are not "
        "comparable with those printed for the published ones.",
        "Two words, he and she, are the whole direction.",
    ),
)
class SemBias(Instrument):
    """How much more often a stereotype than another pair is most like *he* and *she*.

    Parts by "component" are the shares of items in which the stereotype, the definition and one of
    the other pairs is chosen. Intervals are over stereotype and definition pairs, which are
    crossed; the test exchanges stereotype and other pairs.

    Examples
    --------
    >>> import evenhand as eh
    >>> m = eh.measure("glove", None, "sembias")
    >>> m.n, m.part("stereotype").value < m.part("definition").value
    (440, True)
    """

    first: str = option("he", help="The first word of the direction.")
    second: str = option("she", help="The second word of the direction.")
    permutations: int = option(
        2000,
        minimum=0,
        help="Random permutations, and more where p is near a level; 0: no test.",
    )

    def read(self, path: Source) -> list[SemBiasItem]:
        return read_sembias(path)

    def misfit(self, material: object = None) -> str | None:
        taken = material is None or (
            isinstance(material, Sequence)
            and all(isinstance(each, SemBiasItem) for each in material)
        )
        return None if taken else "takes items of four pairs of words"

    def measure(
        self, subject: Vectors, material: Sequence[SemBiasItem] | None = None, run: Run = Run()
    ) -> Measurement:
        items = built_in_items() if material is None else list(material)
        words = dict.fromkeys(word for item in items for pair in item.pairs for word in pair)
        unknown = set(subject.find([*words, self.first, self.second]).missing)
        for word in unknown & {self.first, self.second}:
            raise InputError(f"sembias: expected a vector of '{word}', got none")
        used = [i for i in items if not any(word in unknown for pair in i.pairs for word in pair)]
        if not used:
            raise InputError(f"sembias: expected items with known words, got none of {len(items)}")

        def difference(pair: WordPair) -> Floats:
            one, two = unit(np.array([subject[word] for word in pair], dtype=float))
            result: Floats = one - two
            return result

        direction = unit(difference((self.first, self.second))[None])[0]
        pairs = list(dict.fromkeys(pair for item in used for pair in item.pairs))
        cosine = unit(np.array([difference(pair) for pair in pairs])) @ direction
        number = {pair: k for k, pair in enumerate(pairs)}
        chosen = np.array([[number[pair] for pair in item.pairs] for item in used])
        cosines = cosine[chosen]
        best = cosines.argmax(axis=1)
        clusters = {
            "stereotype pairs": [":".join(item.stereotype) for item in used],
            "definition pairs": [":".join(item.definition) for item in used],
        }

        def share(
            query: str, scores: Any, limits: tuple[float, float], **fields: Any
        ) -> Measurement:
            mean = replace(clustered(scores, clusters), limits=limits)
            return self.declaration.result(
                run,
                query,
                (mean.value, *mean.interval(run.prob)),
                n=len(used),
                interval="jackknife over stereotype and definition pairs; others held fixed",
                subject=subject.name,
                **fields,
            )

        shares = {
            name: np.isin(best, places).astype(float)
            for name, places in (("stereotype", [1]), ("definition", [0]), ("other", [2, 3]))
        }
        excess = shares["stereotype"] - shares["other"] / 2
        test = self._exchange(cosine, chosen, float(excess.mean()), run.seed)
        return share(
            f"{self.first}/{self.second}",
            excess,
            (-0.5, 1.0),
            p_value=None if test is None else test.p_value,
            test="" if test is None else "permutation of stereotype and other pairs",
            items=Items(
                {
                    "item": [" ".join(map(":".join, item.pairs)) for item in used],
                    "cluster": clusters["stereotype pairs"],
                    "score": excess,
                    "chosen": [":".join(item.pairs[k]) for item, k in zip(used, best, strict=True)],
                    **{name: cosines[:, k] for k, name in enumerate(COLUMNS)},
                }
            ),
            left_out=tuple(sorted(unknown)),
            parts=tuple(
                share(
                    name,
                    own,
                    (0.0, 1.0),
                    metric=f"sembias_{name}",
                    ideal=None,
                    worse="lower" if name == "definition" else "higher",
                    by="component",
                )
                for name, own in shares.items()
            ),
            details={
                "items_left_out": len(items) - len(used),
                **({} if test is None else test.details),
            },
        )

    def _exchange(
        self, cosine: Floats, chosen: NDArray[np.intp], observed: float, seed: int
    ) -> Counted | None:
        """Count permutations of stereotype and other pairs as far from 0 as what was observed."""
        if not self.permutations:
            return None
        exchanged = np.unique(chosen[:, 1:])

        def count(size: int, seed: Seed) -> int:
            rng, extreme = np.random.default_rng(seed), 0
            for _ in range(size):
                drawn = cosine.copy()
                drawn[exchanged] = rng.permutation(cosine[exchanged])
                best = drawn[chosen].argmax(axis=1)
                value = (best == 1).mean() - (best > 1).mean() / 2
                extreme += bool(abs(value) >= abs(observed) - 1e-12)
            return extreme

        return draw_until_clear(count, self.permutations, seed)

    @classmethod
    def example(cls) -> tuple[Vectors, list[SemBiasItem]]:
        """The embedded vectors and the built-in items."""
        return load("glove"), built_in_items()
