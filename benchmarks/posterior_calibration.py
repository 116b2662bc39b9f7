"""Coverage, false positives and power of 89 % intervals, by model.

    python benchmarks/posterior_calibration.py [--sets 200] [--workers 2] [--figure FILE.svg]

Tables of the size of the religion table of Dobrzeniecka (2021) (15 protected words, 11 stereotypes,
27 human and 242 neutral words) are simulated from the crossed model with the scales of that table,
half of them without a difference between classes, half with δ = -.05 only. The contrasts of every
model are measured. Then δ is measured from the stereotypes only, as `evenhand plan` does,
on the same tables and on further ones.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from evenhand.charts import BLUE, GREEN, GREY, INK, ORANGE, PURPLE, Chart, data, to_svg
from evenhand.files import replace_file
from evenhand.posterior import Fit, Table, measure_contrasts, simulate
from evenhand.posterior.crossed import CrossedData, CrossedPrior, fit_crossed
from evenhand.posterior.planning import sample_delta
from evenhand.posterior.tables import CONTRASTS
from evenhand.posterior.thesis import fit_paper, fit_thesis
from evenhand.statistics.intervals import wilson

EFFECT = -0.05
LEVEL = 0.93
NOMINAL = 0.89
GUESS = np.array([0.12, 0.19, 0.03, 0.14, 0.01])
"""Start of the search for the mode of the scales: error, stereotypes, δ, words, interaction."""
NAMES = tuple(f"{first}-{second}" for first, second in CONTRASTS)
FITS: dict[str, Callable[[Table, int], Fit]] = {
    "crossed": lambda table, seed: fit_crossed(
        table, draws=480, seed=seed, warm_up=(30, 40, 50), attempts=1
    ),
    "crossed-no-interaction": lambda table, seed: fit_crossed(
        table, interaction=False, draws=480, seed=seed, warm_up=(30, 40, 50), attempts=1
    ),
    "coefficients": lambda table, seed: fit_thesis("coefficients", table, draws=2000, seed=seed),
    "separate": lambda table, seed: fit_thesis("separate", table, draws=2000, seed=seed),
    "paper": lambda table, seed: fit_paper(table, draws=2000, seed=seed),
}
COLOURS = dict(zip(FITS, (BLUE, "#56B4E9", ORANGE, PURPLE, GREEN), strict=True))


@dataclass(frozen=True)
class Cell:
    """Counts of a model and a contrast: intervals that contain the truth, and that exclude 0."""

    model: str
    contrast: str
    effect: float
    covered: int
    excluded: int
    sets: int

    @property
    def truth(self) -> float:
        return self.effect if self.contrast.startswith("associated") else 0.0


def assess_table(effect: float, seed: int) -> list[tuple[str, str, bool, bool]]:
    """Model, contrast, whether the interval contains the truth and whether it excludes 0."""
    table, outcomes = simulate_table(effect, seed), []
    with threadpool_limits(1, "blas"):
        for model, fitted in FITS.items():
            for name, m in measure_contrasts(fitted(table, seed), NOMINAL).items():
                truth = effect if name.startswith("associated") else 0.0
                outcomes.append((model, name, m.low <= truth <= m.high, not m.low <= 0 <= m.high))
    return outcomes


def simulate_table(effect: float, seed: int) -> Table:
    """Simulate a table with this δ and no other difference."""
    return simulate(delta=effect, neutral=242, levels=(LEVEL, LEVEL, LEVEL), seed=seed)


def assess_stereotypes(effect: float, seed: int) -> tuple[bool, bool]:
    """Whether the interval of δ contains the truth and excludes 0, without the controls."""
    table = simulate_table(effect, seed)
    data = CrossedData.of(table.select(table.group[table.attribute] == 0))
    rng = np.random.default_rng(seed + 1_000_000)
    with threadpool_limits(1, "blas"):
        posterior = sample_delta(data, CrossedPrior(), GUESS, rng)
    return (
        posterior.mass_denser_than(effect) <= NOMINAL,
        posterior.mass_denser_than(0.0) > NOMINAL,
    )


def further(sets: int, workers: int, seed: int, more: int) -> Iterator[str]:
    """Lines on δ from stereotypes only: on the tables of the study, and on `more` others."""
    yield f"{'δ, stereotypes only':36}{'truth':>7}{'covered, nominal .89':>22}{'excluded 0':>22}"
    parts = {
        "the tables above": (0.0, seed, sets),
        "the tables above, with δ": (EFFECT, seed + sets, sets),
        "further tables": (EFFECT, seed + 2 * sets, more),
    }
    with ProcessPoolExecutor(workers) as pool:
        for name, (effect, first, count) in parts.items():
            work = partial(assess_stereotypes, effect)
            outcomes = list(pool.map(work, range(first, first + count), chunksize=10))
            covered, excluded = (sum(column) for column in zip(*outcomes, strict=True))
            yield (
                f"{f'{name} ({count})':36}{effect:>7.2f}{share(covered, count):>22}"
                f"{share(excluded, count):>22}"
            )


def study(sets: int, workers: int, seed: int) -> list[Cell]:
    """Count over all tables; those with an effect are not those without."""
    cells: list[Cell] = []
    with ProcessPoolExecutor(workers) as pool:
        for part, effect in enumerate((0.0, EFFECT)):
            first = seed + part * sets
            work = pool.map(partial(assess_table, effect), range(first, first + sets))
            tally: dict[tuple[str, str], list[int]] = {}
            for done, outcome in enumerate(work, start=1):
                for model, name, covered, excluded in outcome:
                    count = tally.setdefault((model, name), [0, 0])
                    count[0] += covered
                    count[1] += excluded
                if sys.stderr.isatty():
                    print(f"\rδ = {effect:g}: {done} of {sets}", end="", file=sys.stderr)
            cells += [Cell(*key, effect, *counts, sets) for key, counts in tally.items()]
    return cells


def lines(cells: list[Cell]) -> Iterator[str]:
    """One table: coverage, and the share of intervals that exclude 0, each with its interval."""
    yield f"{cells[0].sets} tables each; intervals of the shares: 95 %, Wilson"
    yield (
        f"{'model':24}{'contrast':22}{'truth':>7}{'covered, nominal .89':>22}"
        f"{'excluded 0':>22}  kind"
    )
    for cell in sorted(cells, key=lambda c: (NAMES.index(c.contrast), list(FITS).index(c.model))):
        kind = "power" if cell.truth else "false (nominal .11)"
        yield (
            f"{cell.model:24}{cell.contrast:22}{cell.truth:>7.2f}"
            f"{share(cell.covered, cell.sets):>22}{share(cell.excluded, cell.sets):>22}  {kind}"
        )


def share(count: int, sets: int) -> str:
    """A share with its interval."""
    value, low, high = wilson(count, sets)
    return f"{value:.3f} [{low:.3f}, {high:.3f}]"


def figure(cells: list[Cell]) -> Chart:
    """Coverage by contrast and model, all tables together, against the nominal."""
    import altair as alt

    values: list[dict[str, Any]] = []
    for name in NAMES:
        for model in FITS:
            same = [c for c in cells if (c.model, c.contrast) == (model, name)]
            value, low, high = wilson(sum(c.covered for c in same), sum(c.sets for c in same))
            values.append(
                {"contrast": name, "model": model, "value": value, "low": low, "high": high}
            )
    chart = alt.Chart(data(values))
    base = chart.encode(
        y=alt.Y(
            "model:N",
            sort=list(FITS),
            title=None,
            axis=alt.Axis(ticks=False, domain=False, labelPadding=8),
        ),
        color=alt.Color(
            "model:N",
            legend=None,
            scale=alt.Scale(domain=list(COLOURS), range=list(COLOURS.values())),
        ),
    )
    axis = alt.X(
        "low:Q",
        title="share of 89 % intervals that contain the truth",
        scale=alt.Scale(domain=[0, 1]),
        axis=alt.Axis(format=".0%"),
    )
    layers = alt.layer(
        chart.mark_rule(color=GREY, strokeDash=[4, 3]).encode(x=alt.datum(NOMINAL)),
        base.mark_rule(strokeWidth=2.5).encode(x=axis, x2="high:Q"),
        base.mark_point(filled=True, size=70, opacity=1).encode(x="value:Q"),
        base.mark_text(align="left", dx=6, fontSize=11).encode(
            x="high:Q", text=alt.Text("value:Q", format=".0%"), color=alt.value(INK)
        ),
    )
    return layers.properties(width=430, height={"step": 20}).facet(
        row=alt.Row(
            "contrast:N",
            sort=list(NAMES),
            title=None,
            header=alt.Header(labelAngle=0, labelAlign="left", labelFontSize=12),
        ),
        spacing=10,
    )


def main(sets: int, workers: int, seed: int, more: int, path: Path | None) -> None:
    """Run the study, print its table and write its figure."""
    cells = study(sets, workers, seed)
    print(*lines(cells), sep="\n")
    if path:
        with replace_file(path) as file:
            file.write(to_svg(figure(cells)).encode())
    for line in further(sets, workers, seed, more):
        print(line, flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--sets", type=int, default=200, help="tables with and without an effect")
    parser.add_argument("--workers", type=int, default=2, help="processes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--more", type=int, default=1000, help="further tables, for δ only")
    parser.add_argument("--figure", dest="path", type=Path, metavar="FILE.svg")
    main(**vars(parser.parse_args()))
