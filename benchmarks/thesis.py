"""Dobrzeniecka (2021) repeated on its own tables, and what the crossed model says of them.

    python benchmarks/thesis.py FOLDER [-o OUT] [--draws 4000] [--seed 0]

FOLDER has the published tables: religion, gender and race in Reddit and Google vectors
(religionReddit.csv, genderGoogle.csv …) and those of Reddit after debiasing
(debiasedReligionReddit.csv …). Embedded GloVe vectors, before and after hard debiasing, stand in
for those that were not published. Prints the tables of docs/experiments/thesis.md, published
values beside ours; OUT gets the figures and results.json.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from evenhand import lexicon, vectors
from evenhand.charts import save_charts
from evenhand.files import document, save_json
from evenhand.posterior import (
    Fit,
    Priors,
    Table,
    compare_models,
    compute_criteria,
    describe_table,
    fit,
    measure_contrasts,
    measure_levels,
    read_table,
)
from evenhand.posterior.charts import distance_densities, level_forests, prior_curves, word_means
from evenhand.posterior.radial import radial
from evenhand.results import Measurement
from evenhand.vectors.debias import debias

PROB = 0.89
"""Of the intervals. The thesis prints quantiles (5.5 and 94.5 %) beside its coefficients."""
TOPICS = ("religion", "gender", "race")
VECTORS = ("Reddit", "Google", "Glove")
MODELS = ("baseline", "coefficients", "separate")
ISLAM = ("imam", "islam", "mosque", "muslim", "quran")
WAIC = {
    "separate": (-2400, 93, 60, 0, None, 1),
    "coefficients": (-2328, 93, 20, 72, 29, 0),
    "baseline": (-2283, 95, 16, 117, 37, 0),
}
"""Published: WAIC, SE, p, difference, its SE, weight (§4.1)."""
COEFFICIENTS = {
    "associated": (-0.150, 0.115, -0.326, 0.037),
    "different": (-0.099, 0.115, -0.274, 0.088),
    "human": (-0.073, 0.113, -0.245, 0.112),
    "none": (-0.031, 0.113, -0.203, 0.153),
}
"""Published: mean, sd and interval of religion (§3.5)."""
ISLAM_COEFFICIENTS = {
    "associated": (-0.198, 0.171, -0.468, 0.076),
    "different": (-0.033, 0.169, -0.302, 0.237),
    "human": (-0.019, 0.168, -0.284, 0.249),
    "none": (-0.000, 0.167, -0.266, 0.268),
}
"""Published: the same of the words of Islam (§3.6)."""
MAC = {"religionReddit": "0.859", "debiasedReligionReddit": "0.934"}
"""Published in Manzini et al. (2019) and in the text (§2.5)."""


def main(folder: Path, out: Path | None, draws: int, seed: int) -> None:
    """Print the tables and write the figures."""
    before, after = read_tables(folder)
    settings: dict[str, Any] = {"draws": draws, "seed": seed}
    results: dict[str, Any] = {}
    fits: dict[str, Fit] = {}

    title("The three models")
    for name, table in before.items():
        three = {model: fit(table, model, **settings) for model in MODELS}
        fits[name] = three["coefficients"]
        results[f"models/{name}"] = print_criteria(name, three, published=name == "religionReddit")
        if name == "religionReddit":
            separate = three["separate"]

    title("Coefficients")
    for name, result in fits.items():
        known = COEFFICIENTS if name == "religionReddit" else {}
        results[f"coefficients/{name}"] = print_levels(name, result, known)
    wide = Priors(thesis=replace(Priors().thesis, coefficient_sd=1.0))
    religion = before["religionReddit"]
    print_levels(
        "religionReddit, co ~ N(0, 1)", fit(religion, "coefficients", priors=wide, **settings)
    )

    title("Islam words alone")
    islam = religion.select_words(ISLAM)
    results["coefficients/islam"] = print_levels(
        "religionReddit, Islam", fit(islam, "coefficients", **settings), ISLAM_COEFFICIENTS
    )

    title("MAC and the contrast without a model")
    rows = []
    for name, table in {**before, **after}.items():
        described = describe_table(drop_repeats(folder, name, table), seed=seed)
        results[f"described/{name}"] = list(described.measurements)
        mac, contrast = described.measurements
        p = f"{contrast.p_value:.4f}"
        rows.append((name, MAC.get(name, ""), text(mac), text(contrast), p))
    print_rows(("table", "MAC published", "MAC, 95 %", "associated-different, 95 %", "p"), rows)

    title("Coefficients before and after debiasing")
    times = {name: {"before": result} for name, result in fits.items()}
    for name, table in after.items():
        source = "".join((name[8].lower(), name[9:]))
        times[source]["after"] = fit(table, "coefficients", **settings)
        results[f"coefficients/{name}"] = print_levels(name, times[source]["after"])
    glove = embedded_tables()
    stand_in = {
        f"{topic}, embedded GloVe": {
            when: fit(table, "coefficients", **settings) for when, table in tables.items()
        }
        for topic, tables in glove.items()
    }
    for name, by_time in stand_in.items():
        for when, result in by_time.items():
            results[f"coefficients/{name}, {when}"] = print_levels(f"{name}, {when}", result)

    title("What crossed says")
    crossed = {
        name: fit(drop_repeats(folder, name, table), **settings)
        for name, table in {**before, **after}.items()
    }
    crossed["religionReddit, Islam"] = fit(islam, **settings)
    crossed |= {
        f"{topic}, embedded GloVe, {when}": fit(table, **settings)
        for topic, tables in glove.items()
        for when, table in tables.items()
    }
    naive = {**fits, "religionReddit, Islam": fit(islam, "coefficients", **settings)}
    rows = []
    for name, result in crossed.items():
        contrasts = measure_contrasts(result, PROB)
        results[f"crossed/{name}"] = list(contrasts.values())
        other = measure_contrasts(naive[name], PROB) if name in naive else {}
        for query, m in contrasts.items():
            published = text(other[query]) if query in other else ""
            p = f"{m.details['p_below_zero']:.3f}"
            rows.append((name, query, published, text(m), p))
    print_rows(("table", "contrast", "by coefficients", "by crossed", "P(< 0)"), rows)
    classes = measure_contrasts(crossed["religionReddit"], PROB)["associated-different"].select(
        "class"
    )
    print_rows(
        ("religion, class", "associated-different, complete table", "P(< 0)"),
        [(m.query, text(m), f"{m.details['p_below_zero']:.3f}") for m in classes],
    )
    if out:
        figures = {
            "thesis-coefficients": level_forests(of_reddit(times), PROB),
            "thesis-coefficients-glove": level_forests(stand_in, PROB),
            "thesis-crossed": level_forests(of_reddit(crossed_times(crossed)), PROB),
            "thesis-words": word_means({"religionReddit, separate": separate}, PROB),
            "thesis-words-debiased": word_means(
                {
                    "before": separate,
                    "after": fit(after["debiasedReligionReddit"], "separate", **settings),
                },
                PROB,
            ),
            "thesis-densities": distance_densities(religion),
            "thesis-densities-islam": distance_densities(islam),
            "thesis-radial-muslim": radial(religion, "muslim", seed=seed),
            "thesis-radial-priest": radial(religion, "priest", seed=seed),
            "thesis-priors": prior_curves(fits["religionReddit"], Priors()),
        }
        save_charts(figures, out)
        save_json(out / "results.json", document(**results))


def read_tables(folder: Path) -> tuple[dict[str, Table], dict[str, Table]]:
    """The tables that are there, by name, before and after debiasing; repeated rows count."""
    names = [f"{topic}{source}" for source in VECTORS for topic in TOPICS]
    before = {name: folder / f"{name}.csv" for name in names}
    after = {
        name: folder / f"{name}.csv"
        for name in (f"debiased{name[0].upper()}{name[1:]}" for name in names)
    }
    return tuple(  # type: ignore[return-value]
        {n: read_table(p, duplicates="keep") for n, p in paths.items() if p.exists()}
        for paths in (before, after)
    )


def drop_repeats(folder: Path, name: str, table: Table) -> Table:
    """The table with one row per pair of words."""
    return read_table(folder / f"{name}.csv") if table.repeated else table


def embedded_tables() -> dict[str, dict[str, Table]]:
    """The topics in embedded GloVe vectors, before and after hard debiasing."""
    v, tables = vectors.load("glove"), {}
    for name in TOPICS:
        topic = lexicon.topic(name)
        fair = debias(v, "hard", topic.definitional, options={"equalize": topic.equalize}).vectors
        tables[name] = {
            when: read_table(vectors.distance_table(source, topic))
            for when, source in (("before", v), ("after", fair))
        }
    return tables


def crossed_times(crossed: Mapping[str, Fit]) -> dict[str, dict[str, Fit]]:
    """The fits of the published tables by table and time."""
    times: dict[str, dict[str, Fit]] = {}
    for name, result in crossed.items():
        if "," not in name and not name.startswith("debiased"):
            times[name] = {"before": result}
            other = f"debiased{name[0].upper()}{name[1:]}"
            if other in crossed:
                times[name]["after"] = crossed[other]
    return times


def of_reddit(times: Mapping[str, dict[str, Fit]]) -> dict[str, dict[str, Fit]]:
    """The fits of the Reddit tables, as in the figures of the thesis."""
    return {name: fits for name, fits in times.items() if name.endswith("Reddit")}


def print_criteria(name: str, fits: Mapping[str, Fit], *, published: bool) -> dict[str, Any]:
    """WAIC of the models, the published values in brackets."""
    scores = {model: compute_criteria(result) for model, result in fits.items()}
    rows = []
    for d in compare_models(scores):
        s = scores[d.model]
        ours: tuple[float, ...] = (s.waic, s.waic_se, s.p_waic)
        ours += (d.waic_difference, d.waic_difference_se, d.weight)
        theirs = WAIC[d.model] if published else (None,) * 6
        digits = (0, 0, 0, 0, 0, 2)
        cells = [
            f"{value:.{places}f}" + (f" ({known})" if known is not None else "")
            for value, known, places in zip(ours, theirs, digits, strict=True)
        ]
        rows.append((d.model, *cells))
    heading = f"{name}, {fits['baseline'].table.rows:,} rows"
    print_rows((heading, "WAIC", "SE", "p", "difference", "SE of it", "weight"), rows)
    return {model: score.to_dict() for model, score in scores.items()}


def print_levels(
    name: str, result: Fit, published: Mapping[str, tuple[float, ...]] | None = None
) -> list[Measurement]:
    """Coefficients; where there are published ones, with quantiles as these, beside them."""
    measured = measure_levels(result, PROB)
    none = measured["none"].value
    rows = []
    for level, m in measured.items():
        row = [level, text(m), f"{m.details['sd']:.3f}", f"{m.value - none:.3f}"]
        if published:
            low, high = np.quantile(result.levels[level], ((1 - PROB) / 2, (1 + PROB) / 2))
            row[1] = f"{m.value:.3f} [{low:.3f}, {high:.3f}]"
            mean, sd, low, high = published[level]
            row += [f"{mean:.3f} [{low:.3f}, {high:.3f}]", f"{sd:.3f}"]
            row.append(f"{mean - published['none'][0]:.3f}")
        rows.append(row)
    columns = [name, "co", "sd", "co - co[none]"]
    columns += ["published", "published sd", "published co - co[none]"] if published else []
    print_rows(columns, rows)
    return list(measured.values())


def text(m: Measurement) -> str:
    """Mean and interval."""
    return f"{m.value:.3f} [{m.low:.3f}, {m.high:.3f}]"


def title(words: str) -> None:
    """Print a heading."""
    print(f"\n## {words}", flush=True)


def print_rows(header: Iterable[str], rows: Iterable[Iterable[str]]) -> None:
    """A Markdown table."""
    columns = list(header)
    print("\n| " + " | ".join(columns) + " |")
    print("| " + " | ".join("---" for _ in columns) + " |")
    for row in rows:
        print("| " + " | ".join(row) + " |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder of the published tables")
    parser.add_argument("-o", "--out", type=Path, help="folder for figures and results.json")
    parser.add_argument("--draws", type=int, default=4000, help="draws from each posterior")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random draws")
    main(**vars(parser.parse_args()))
