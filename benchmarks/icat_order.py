"""Systems compared by icat, the score of StereoSet that joins its two others.

icat = 2 lms min(ss, 1 - ss) is the smaller of two smooth products, with ss and with 1 - ss. Each is
compared by `evenhand.scores` through its linear approximation over target terms (the delta method);
what holds of the products is joined by which is the smaller, so that nothing is approximated at the
kink, where ss is .5.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np
import pandas as pd

from evenhand.judging import ranks
from evenhand.results import Comparison, Estimate, Measurement, Measurements
from evenhand.scores import ScoreAnalysis, analyze


def differs(c: Comparison | None) -> bool:
    """What the judge said of a pair."""
    return c is not None and c.details["outcome"] == "differs"


def icat_scores(terms: pd.DataFrame, found: Mapping[str, bool]) -> pd.DataFrame:
    """Linear scores of terms whose mean is 2 lms ss, and 2 lms (1 - ss), of each system.

    icat is the smaller of the two. Of a system whose ss is found to differ from .5 that one is
    enough; of the others both are there.
    """
    rows = []
    for system, own in terms.groupby("model", sort=False):
        lms, mean = own["lms"], own["lms"].mean()
        for side, share in (("ss", own["ss"]), ("1 - ss", 1 - own["ss"])):
            if found[system] and share.mean() > 0.5:
                continue
            middle = share.mean()
            score = 2 * (middle * lms + mean * share - middle * mean)
            rows.append(
                pd.DataFrame(
                    {"target": own["target"], "system": system, "side": side, "score": score}
                )
            )
    return pd.concat(rows, ignore_index=True)


def rank_icat(terms: pd.DataFrame, found: Mapping[str, bool]) -> ScoreAnalysis:
    """Systems compared by icat: the analysis of both products, joined by which is the smaller."""
    scores = icat_scores(terms, found)
    scores["model"] = scores["system"] + ", " + scores["side"]
    columns = ["target", "model", "score"]
    sides = analyze(scores[columns], item="target", model="model", score="score")
    products = {m.query: m for m in sides.measurements}
    of_system = {
        system: sorted(set(own["model"]), key=lambda name: products[name].value)
        for system, own in scores.groupby("system", sort=False)
    }
    least = {
        system: replace(products[own[0]], query=system, subject=system)
        for system, own in of_system.items()
    }
    known = {(c.before.query, c.after.query): c for c in sides.comparisons}
    comparisons = [
        join_products(
            [[known[before, after] for before in of_system[one]] for after in of_system[two]],
            (least[one], least[two]),
        )
        for one, two in combinations(of_system, 2)
    ]
    better = [
        (c.after.query, c.before.query) if c.change.value > 0 else (c.before.query, c.after.query)
        for c in comparisons
        if differs(c)
    ]
    possible = ranks(list(of_system), better)
    ranking = [
        replace(
            sides.ranking[0],
            query=m.query,
            subject=m.query,
            value=place,
            low=possible[m.query][0],
            high=possible[m.query][1],
            details={"mean": m.value, "could_be_first": possible[m.query][0] == 1},
        )
        for place, m in enumerate(sorted(least.values(), key=lambda m: -m.value), 1)
    ]
    return replace(
        sides,
        measurements=Measurements(least.values()),
        comparisons=tuple(comparisons),
        ranking=tuple(ranking),
    )


def join_products(
    table: Sequence[Sequence[Comparison]], systems: tuple[Measurement, Measurement]
) -> Comparison:
    """The smallest of rows less the smallest of columns, from the differences of all of them.

    Rows are the products of the second system, columns those of the first, both from the smallest.
    The second is higher if each of its products is higher than one of the first's, and lower if
    each of the first's is higher than one of its own.
    """
    observed = table[0][0]
    rises = observed.change.value > 0
    lows, highs = (
        np.array([[getattr(c.change, end) for c in row] for row in table])
        for end in ("low", "high")
    )
    ends = (observed.change.value, lows.max(axis=1).min(), highs.min(axis=0).max())
    of_higher = table if rises else list(zip(*table, strict=True))

    def p_towards(c: Comparison) -> float:
        same = (c.change.value > 0) == rises and c.p_corrected is not None
        return float(c.p_corrected) if same else 1.0

    def found(c: Comparison) -> bool:
        return differs(c) and (c.change.value > 0) == rises

    outcome = "differs" if all(any(map(found, row)) for row in of_higher) else "undecided"
    return replace(
        observed,
        before=systems[0],
        after=systems[1],
        change=Estimate.of(tuple(map(float, ends)), observed.change.prob),
        p_corrected=max(min(map(p_towards, row)) for row in of_higher),
        details={**observed.details, "outcome": outcome},
    )
