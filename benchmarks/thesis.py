r"""Dobrzeniecka (2021) repeated on its own tables, and what the crossed model says of them.

    python benchmarks/thesis.py FOLDER --out docs/results/thesis --figures docs/figures \
        [--vectors glove-400k.npz] [--draws 4000] [--seed 0]
    python benchmarks/thesis.py --tables docs/results/thesis

FOLDER has the published tables: religion, gender and race in Reddit and Google vectors
(religionReddit.csv, genderGoogle.csv …), those of Reddit after debiasing
(debiasedReligionReddit.csv …), the control words (controlReddit.csv …) and the inner products of
occupations (genderProjections.csv), which are those of GloVe with 50 dimensions: `--vectors` is
that file, as `benchmarks/measured_here.py vectors` writes it. Embedded GloVe vectors, before and
after debiasing, stand in for tables that were not published. The first line writes results.csv.gz
and the figures. The second prints the tables of
docs/experiments/thesis.md from results.csv.gz, published values beside ours.
"""

from __future__ import annotations

import argparse
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import evenhand as eh
from evenhand.charts import save_charts
from evenhand.instruments import judge_results
from evenhand.judging import BiasTest, judge
from evenhand.posterior import (
    Change,
    CrossedPrior,
    Fit,
    Priors,
    Table,
    compare_models,
    compare_tables,
    compute_criteria,
    describe_table,
    fit,
    measure_contrasts,
    measure_levels,
    read_table,
)
from evenhand.posterior.charts import level_forests, word_means
from evenhand.posterior.checks import intra_class_correlation
from evenhand.posterior.fits import word_level_draws
from evenhand.posterior.tables import CONNECTIONS
from evenhand.results import Measurement
from evenhand.statistics.intervals import Floats
from evenhand.statistics.mcmc import hdi, hdi_error
from evenhand.vectors.debias import debias
from published import drop_zero, read_rows, save_rows

PROB = 0.89
"""Of the intervals. The thesis prints quantiles (5.5 and 94.5 %) beside its coefficients."""
TOPICS = ("religion", "gender", "race")
REDDIT, GOOGLE, GLOVE = "Reddit", "Google", "GloVe"
MODELS = ("baseline", "coefficients", "separate")
RELIGION, ISLAM = "religionReddit", "religionReddit, Islam"
ISLAM_WORDS = ("imam", "islam", "mosque", "muslim", "quran")
DELTA, OTHERS = "associated-different", ("associated-human", "associated-none")
RESULTS = "results.csv.gz"
FIELDS = ("part", "table", "model", "query", "word")
NUMBERS = ("value", "low", "high", "sd", "p")
WAIC = {
    "separate": (-2400, 93, 60, 0, None, 1),
    "coefficients": (-2328, 93, 20, 72, 29, 0),
    "baseline": (-2283, 95, 16, 117, 37, 0),
}
"""Published: WAIC, SE, p, difference, its SE, weight (§4.1)."""
TWO = {
    "coefficients": (-2328, 93, 20, 0, None, 1),
    "baseline": (-2283, 95, 16, 45, 17, 0),
}
"""The same of §3.5."""
COEFFICIENTS = {
    RELIGION: {
        "associated": (-0.150, 0.115, -0.326, 0.037),
        "different": (-0.099, 0.115, -0.274, 0.088),
        "human": (-0.073, 0.113, -0.245, 0.112),
        "none": (-0.031, 0.113, -0.203, 0.153),
    },
    ISLAM: {
        "associated": (-0.198, 0.171, -0.468, 0.076),
        "different": (-0.033, 0.169, -0.302, 0.237),
        "human": (-0.019, 0.168, -0.284, 0.249),
        "none": (-0.000, 0.167, -0.266, 0.268),
    },
}
"""Published: mean, sd and interval of religion (§3.5) and of the words of Islam (§3.6)."""
MAC = {RELIGION: ".859", "debiasedReligionReddit": ".934"}
"""Published in Manzini et al. (2019) and in the text (§2.5)."""
SPREADS = {
    "negligible or half-normal(.1), as given": {},
    "half-normal(.1), never negligible": {"negligible_scale": 0.1},
    "half-normal(.25), like the other scales": {"spread_scale": 0.25, "negligible_scale": 0.25},
}
"""Priors of the spreads of δᵢ and η."""
LENGTHS = {"cosine": "", "Euclidean": "raw", "Euclidean, all of length one": "unit"}

# -------------------------------------------------------------------------- the statements of §5.2

CHANGE = "change of associated"
AFTER = (DELTA, "associated-human", "associated-none")
FAMILY = dict.fromkeys(TOPICS, (CHANGE, *AFTER)) | {"gender": (CHANGE, *AFTER, "different-none")}
"""Tests of each protected word: one family for all words, topics and statements of a model."""


@dataclass(frozen=True)
class Statement:
    """A sentence of §5.2 as tests of protected words.

    The sign is that of the values that the sentence expects; 0: no difference. A word agrees if
    every one of its tests is found with this sign (or, for 0, if none is found in all of them) and
    disagrees if one of its tests is found otherwise, or is none found where a sign is expected.
    """

    topic: str
    quote: str
    tests: tuple[str, ...]
    sign: int
    some: bool = False
    """Whether one word is enough; otherwise more than half of them must agree."""
    of: str = ""
    """A class of protected words, if not all."""


STATEMENTS = (
    Statement(
        "religion",
        "most of the distances for associated words slightly increased",
        (CHANGE,),
        1,
    ),
    Statement(
        "religion",
        "some of the distances from different class are still smaller than for the associated",
        (DELTA,),
        1,
        some=True,
    ),
    Statement(
        "religion",
        "the distances for all classes seem in most cases to cluster together",
        AFTER,
        0,
    ),
    Statement(
        "religion",
        "in some cases distances from human class are smaller than for the associated",
        ("associated-human",),
        1,
        some=True,
    ),
    Statement("gender", "the change is really minor", (CHANGE,), 0),
    Statement("gender", "still zero out of HPDI range", ("associated-none",), -1),
    Statement(
        "gender",
        "the different attributes still have high similarity value",
        ("different-none",),
        -1,
    ),
    Statement(
        "gender",
        "distances for gender protected words are still clustered together",
        (DELTA,),
        0,
    ),
    Statement(
        "gender",
        "some of [female] attributes still have high similarity with male protected words",
        ("different-none",),
        -1,
        some=True,
        of="man",
    ),
    Statement("race", "there is a small improvement", (CHANGE,), 1),
    Statement("race", "in some cases the distances just cluster together", AFTER, 0, some=True),
    Statement(
        "race",
        "in general distances for associated are still higher than for the rest of classes",
        AFTER,
        1,
    ),
)
"""That the uncertainty of associated and different is high is no test: see `print_widths`."""

Row = dict[str, Any]


def row(part: str, table: str, **more: Any) -> Row:
    """A row of the results."""
    return {"part": part, "table": table, **more}


def measured(part: str, table: str, m: Measurement, **more: Any) -> Row:
    """A row with the numbers of a measurement; p is P(< 0) of a posterior quantity."""
    p = m.details.get("p_below_zero", m.p_value)
    numbers = {"value": m.value, "low": m.low, "high": m.high, "sd": m.details.get("sd"), "p": p}
    return row(part, table, **{"query": m.query, **numbers, **more})


# ------------------------------------------------------------------------------------- computing


def compute(
    folder: Path, out: Path, figures: Path | None, vectors: Path | None, **settings: Any
) -> None:
    """Write the results, and the figures."""
    rows: list[Row] = []
    fits: dict[str, dict[str, Fit]] = {}

    def report(more: Iterable[Row]) -> None:
        rows.extend(more)
        print(f"{rows[-1]['part']}: {rows[-1]['table']}", flush=True)

    pairs = {
        f"{t}Reddit": [folder / f"{n}.csv" for n in (f"{t}Reddit", debiased(t))] for t in TOPICS
    }
    pairs |= {f"{topic}{GLOVE}": tables for topic, tables in embedded_tables().items()}
    crossed: dict[str, Fit] = {}
    changes = {}
    for name, tables in pairs.items():
        changes[name] = change = compare_tables(*tables, **settings)
        crossed |= dict(zip(names_of(name), (change.before, change.after), strict=True))
        report(measure_change(name, change))
    for topic in TOPICS:
        name = f"{topic}{GOOGLE}"
        crossed[name] = fit(folder / f"{name}.csv", **settings)
    for name, result in crossed.items():
        report(measure_crossed(name, result))
        report(describe(name, result.table))
        fits[name] = {}
        if GLOVE in name:
            fits[name]["coefficients"] = naive = fit(result.table, "coefficients", **settings)
            report(measure_coefficients(name, naive))
        else:
            report(measure_published(name, folder / f"{name}.csv", fits[name], settings))
    report(measure_islam(fits[RELIGION]["coefficients"].table, settings))
    report(debias_embedded())
    for source in (REDDIT, GOOGLE):
        report(measure_controls(source, folder / f"control{source}.csv"))
    report(judge_deltas([r for r in rows if "judgement" in r]))
    of_reddit = {topic: changes[f"{topic}Reddit"] for topic in TOPICS}
    report(check_statements("crossed", of_reddit, settings))
    separate = {
        topic: compare_tables(*pairs[f"{topic}Reddit"], "separate", **settings) for topic in TOPICS
    }
    report(check_statements("separate", separate, settings))
    report(measure_priors(folder / "religionGoogle.csv", settings))
    report(measure_euclidean())
    if vectors:
        report(measure_products(folder / "genderProjections.csv", vectors))
    out.mkdir(parents=True, exist_ok=True)
    columns = (*FIELDS, *NUMBERS, "outcome")
    save_rows(out / RESULTS, [columns, *([r.get(name) for name in columns] for r in rows)])
    if figures:
        draw(fits, figures)


def debiased(topic: str) -> str:
    """The name of the table of a topic in Reddit vectors after debiasing."""
    return f"debiased{topic.capitalize()}Reddit"


def names_of(pair: str) -> tuple[str, str]:
    """The names of the tables of a pair, before and after debiasing."""
    if pair.endswith(REDDIT):
        return pair, debiased(pair.removesuffix(REDDIT))
    return pair, f"{pair}, debiased"


def is_after(name: str) -> bool:
    """Whether a table is of debiased vectors."""
    return "debiased" in name


def embedded_tables() -> dict[str, list[Any]]:
    """The topics in embedded GloVe vectors, before and after hard debiasing."""
    v = eh.vectors.load("glove")
    return {
        name: [
            eh.vectors.distance_table(v, topic := eh.lexicon.topic(name)),
            eh.vectors.distance_table(debiased_vectors(v, topic), topic),
        ]
        for name in TOPICS
    }


def debiased_vectors(v: Any, topic: Any, method: str = "hard", **options: Any) -> Any:
    """The vectors as `evenhand debias` makes them: as many dimensions as classes, less one."""
    options["k"] = len(topic.classes) - 1
    if method == "hard":
        options["equalize"] = topic.equalize
    return debias(v, method, topic.definitional, options=options).vectors


def measure_published(
    name: str, path: Path, fits: dict[str, Fit], settings: Mapping[str, Any]
) -> Iterator[Row]:
    """The models of the thesis, which count repeated rows."""
    table = read_table(path, duplicates="keep")
    models = MODELS[1:] if is_after(name) else MODELS
    fits |= {model: fit(table, model, **settings) for model in models}
    yield row("rows", name, value=table.rows)
    if not is_after(name):
        yield from measure_criteria("three models", name, fits)
        yield from measure_criteria("two models", name, {m: fits[m] for m in MODELS[:2]})
    yield from measure_coefficients(name, fits["coefficients"])
    for level, m in measure_levels(fits["separate"], PROB).items():
        for part in m.parts:
            yield measured("word", name, part, model="separate", query=level, word=part.query)
    if name == RELIGION:
        wide = Priors().update(["thesis.coefficient_sd=1"])
        yield from measure_coefficients(
            f"{name}, wide", fit(table, "coefficients", priors=wide, **settings)
        )


def describe(name: str, table: Table) -> Iterator[Row]:
    """What the table says without a model."""
    mac, contrast = describe_table(table).measurements
    yield measured("MAC", name, mac, query="")
    yield measured("described", name, contrast, query=DELTA, **judged(name, contrast))
    if name == RELIGION:
        without = [word for word in table.words if word != "rabbi"]
        mac, _ = describe_table(table.select_words(without)).measurements
        yield measured("MAC", f"{name}, without rabbi", mac, query="")
        correlation = intra_class_correlation(table, table.distance[None])
        yield row("correlation", name, value=float(correlation[0]))
    neutral = table.connection == CONNECTIONS.index("none")
    distance, word = table.distance[neutral], table.word[neutral]
    means = np.bincount(word, weights=distance) / np.bincount(word)
    yield row("neutral", name, value=float(np.sqrt(np.mean((distance - means[word]) ** 2))))


def measure_criteria(part: str, name: str, fits: Mapping[str, Fit]) -> Iterator[Row]:
    """WAIC with its SE and p; the difference from the best with its SE and the weight."""
    scores = {model: compute_criteria(result) for model, result in fits.items()}
    for d in compare_models(scores):
        s = scores[d.model]
        yield row(part, name, model=d.model, query="WAIC", value=s.waic, sd=s.waic_se, p=s.p_waic)
        ours = {"value": d.waic_difference, "sd": d.waic_difference_se, "p": d.weight}
        yield row(part, name, model=d.model, query="difference", **ours)


def measure_coefficients(name: str, result: Fit) -> Iterator[Row]:
    """Coefficients with quantiles, and contrasts with highest-density intervals."""
    for level, m in measure_levels(result, PROB).items():
        low, high = np.quantile(result.levels[level], ((1 - PROB) / 2, (1 + PROB) / 2))
        yield measured("coefficient", name, m, low=float(low), high=float(high))
    for m in measure_contrasts(result, PROB).values():
        yield measured("contrast", name, m, model="coefficients")


def measure_crossed(name: str, result: Fit) -> Iterator[Row]:
    """Contrasts at 89 %; δ at 95 %, as it is judged."""
    for m in measure_contrasts(result, PROB).values():
        yield measured("contrast", name, m, model="crossed")
    delta = measure_contrasts(result)[DELTA]
    yield measured("crossed, 95 %", name, delta, **judged(name, delta))
    if name == RELIGION:
        yield from measure_criteria("crossed", name, {"crossed": result})
        for m in measure_contrasts(result, PROB)[DELTA].select("class"):
            yield measured("class", name, m, model="crossed")


def judged(name: str, m: Measurement) -> Row:
    """What is judged: δ of the complete tables before debiasing, where it is not 0 by design."""
    return {} if is_after(name) or name == ISLAM else {"judgement": m}


def measure_islam(table: Table, settings: Mapping[str, Any]) -> Iterator[Row]:
    """The words of Islam alone, and mean distances of its stereotypes and of the others."""
    islam = table.select_words(ISLAM_WORDS)
    yield from measure_coefficients(ISLAM, fit(islam, "coefficients", **settings))
    yield from measure_crossed(ISLAM, fit(islam, **settings))
    stereotype = table.group[table.attribute] == 0
    own = np.isin(np.array(table.words), ISLAM_WORDS)[table.word]
    associated = {islam.attributes[j] for j in islam.attribute[islam.connection == 0]}
    four = np.isin(np.array(table.attributes), [*associated])[table.attribute]
    for query, attributes in (("the four", four), ("the seven others", ~four)):
        for word, words in (("Islam", own), ("others", ~own)):
            mean = float(table.distance[stereotype & attributes & words].mean())
            yield row("mean", RELIGION, query=query, word=word, value=mean)


def debias_embedded() -> Iterator[Row]:
    """The change of MAC of religion by hard and soft debiasing, embedded GloVe."""
    v, topic = eh.vectors.load("glove"), eh.lexicon.topic("religion")
    others = {
        "hard": debiased_vectors(v, topic),
        "soft, λ = .2": debiased_vectors(v, topic, "soft"),
        "soft, with sums as printed": debiased_vectors(v, topic, "soft", scale="sum"),
    }
    first = eh.measure(v, topic, "mac")
    for method, fair in others.items():
        change = eh.compare(first, eh.measure(fair, topic, "mac")).change
        ends = {"value": change.value, "low": change.low, "high": change.high}
        yield row("change of MAC", f"religion{GLOVE}", query=method, **ends)


def measure_controls(source: str, path: Path) -> Iterator[Row]:
    """MAC of the control words, those about people (`human` in the table) and the others."""
    import pandas as pd

    listed = pd.read_csv(path)
    for topic in TOPICS:
        own = read_table(path.with_name(f"{topic}{source}.csv"))
        stereotypes = [w for w, group in zip(own.attributes, own.group, strict=True) if not group]
        chosen = listed[listed["word_to_compare"].isin(stereotypes)]
        people = chosen["connection"] == "human"
        for query, part in (("about people", chosen[people]), ("others", chosen[~people])):
            wide = part.drop_duplicates(["protected_word", "word_to_compare"]).pivot(
                index="protected_word", columns="word_to_compare", values="cosine_distance"
            )
            table = eh.vectors.DistanceTable(
                topic=topic,
                protected=tuple(wide.index),
                protected_class=(query,) * len(wide),
                attributes=tuple(wide.columns),
                attribute_class=("stereotype",) * wide.shape[1],
                distance=wide.to_numpy(),
            )
            m = eh.vectors.mac_of_table(table)
            yield measured("controls", f"{topic}{source}", m, query=query)


def judge_deltas(rows: Sequence[Row]) -> Iterator[Row]:
    """What the judge says of δ in all tables before debiasing: a family for each method."""
    for part in ("described", "crossed, 95 %"):
        chosen = [r for r in rows if r["part"] == part]
        whole = [replace(r["judgement"], parts=()) for r in chosen]
        for r, (_, j) in zip(chosen, judge_results(whole), strict=True):
            numbers = {"value": r["value"], "low": j.low, "high": j.high, "p": j.p, "sd": j.family}
            yield row("judged", r["table"], model=part, query=DELTA, outcome=j.outcome, **numbers)


def measure_change(name: str, change: Change) -> Iterator[Row]:
    """Associated-none before, after, and the paired change."""
    compared = change.contrasts(PROB)["associated-none"]
    for when in ("before", "after", "change"):
        e = getattr(compared, when)
        ends = {"value": e.value, "low": e.low, "high": e.high}
        yield row("change", name, model=when, query="associated-none", **ends)


def check_statements(
    model: str, changes: Mapping[str, Change], settings: Mapping[str, Any]
) -> Iterator[Row]:
    """What the judge says of every test of every word; `sd` is the value without a model."""
    tests, rows = [], []
    for topic, change in changes.items():
        changed, after = (levels_by_word(f) for f in (change.change, change.after))
        moved, cells = (cell_means(f.table) for f in (change.change, change.after))
        table = change.after.table
        spread = float(fit(table, "separate", **settings).draws["sigma"].mean())
        for i, word in enumerate(table.words):
            for query in FAMILY[topic]:
                first, _, second = query.partition("-")
                if query == CHANGE:
                    draws, plain = changed[i, "associated"], moved[i, "associated"]
                else:
                    draws = after[i, first] - after[i, second]
                    plain = cells[i, first] - cells[i, second]
                rows.append((table.word_class[i], plain))
                tests.append(word_test(topic, word, query, draws, spread))
    for (group, plain), j in zip(rows, judge(tests), strict=True):
        t = j.test
        where = {"model": model, "query": t.metric, "word": f"{t.query}|{group}"}
        numbers = {"value": t.value, "low": j.low, "high": j.high, "sd": plain, "p": j.family}
        yield row("statement", t.subject, outcome=j.outcome, **where, **numbers)


def word_test(topic: str, word: str, query: str, draws: Floats, spread: float) -> BiasTest:
    """The test of a difference; sizes are in units of the distances' spread."""
    low, high = hdi(draws, 0.95)
    return BiasTest(
        metric=query,
        query=word,
        label=query,
        subject=topic,
        value=float(draws.mean()),
        low=low,
        high=high,
        error=hdi_error(draws, 0.95),
        role="decides",
        size="spread",
        spread=spread,
    )


def levels_by_word(result: Fit) -> dict[tuple[int, str], Floats]:
    """Draws of the mean distance of each word to each kind of attribute."""
    return {(i, level): draws for i, level, draws in word_level_draws(result)}


def cell_means(table: Table) -> dict[tuple[int, str], float]:
    """Mean distance of each word to each kind of attribute."""
    return {
        (i, level): float(table.distance[(table.word == i) & (table.connection == k)].mean())
        for i in range(len(table.words))
        for k, level in enumerate(CONNECTIONS)
        if ((table.word == i) & (table.connection == k)).any()
    }


def measure_priors(path: Path, settings: Mapping[str, Any]) -> Iterator[Row]:
    """δ at 95 % under three priors of its spreads, with two seeds."""
    for name, changes in SPREADS.items():
        priors = Priors(crossed=replace(CrossedPrior(), **changes))
        for seed in (0, 1):
            result = fit(path, priors=priors, **{**settings, "seed": seed})
            yield measured("prior", name, measure_contrasts(result)[DELTA], word=str(seed))


def measure_euclidean() -> Iterator[Row]:
    """The association contrast by three distances: one family."""
    v, found, orders = eh.vectors.load("glove"), [], []
    for topic in TOPICS:
        table = eh.vectors.distance_table(v, topic)
        a, b = (
            np.array([v[w] for w in words], float) for words in (table.protected, table.attributes)
        )
        columns = table.stereotypes()
        for length in LENGTHS.values():
            y = table.distance
            if length:
                scaled = (
                    x / np.linalg.norm(x, axis=1)[:, None] if length == "unit" else x
                    for x in (a, b)
                )
                y = euclidean(*scaled)
            found.append(eh.vectors.Association().measure_table(replace(table, distance=y)))
            orders.append(rank_correlation(table.distance[:, columns], y[:, columns]))
    keys = [(topic, name) for topic in TOPICS for name in LENGTHS]
    for (topic, name), order, (_, j) in zip(keys, orders, judge_results(found), strict=True):
        ends = {"value": j.size, "low": j.size_low, "high": j.size_high, "p": j.p}
        yield row("distance", topic, query=name, sd=order, outcome=j.outcome, **ends)


def euclidean(a: Floats, b: Floats) -> Floats:
    """Distances of the rows of two matrices."""
    return np.asarray(np.linalg.norm(a[:, None] - b[None], axis=2))


def rank_correlation(x: Floats, y: Floats) -> float:
    """Spearman's correlation."""
    from scipy.stats import spearmanr

    return float(spearmanr(x.ravel(), y.ravel()).statistic)


def measure_products(path: Path, vectors: Path) -> Iterator[Row]:
    """The published inner products of occupations, our own, and the cosines of the same vectors."""
    import pandas as pd

    v, published = eh.vectors.load(vectors), pd.read_csv(path)
    words = published["word"].tolist()
    kinds = np.where(published["bias"] == "heOccupations", 1, -1)
    matrix, ends = (np.array([v[w] for w in ws], float) for ws in (words, ["he", "she"]))
    theirs, ours = published[["he", "she"]].to_numpy(), matrix @ ends.T
    norms = np.linalg.norm(matrix, axis=1)[:, None] * np.linalg.norm(ends, axis=1)
    yield row("products", "largest difference", value=float(np.abs(theirs - ours).max()))
    lists = {"he": [w for w, k in zip(words, kinds, strict=True) if k > 0]}
    lists["she"] = [w for w in words if w not in lists["he"]]
    query = eh.lexicon.Query(
        name="occupations", targets=lists, attributes={"he": ("he",), "she": ("she",)}
    )
    test = eh.vectors.Projections()(v, query)
    yield measured("products", "projections", test, query="")
    for name, values in (("inner products", ours), ("cosines", ours / norms)):
        gap = values[:, 0] - values[:, 1]
        for query_, kind in (("he", 1), ("she", -1)):
            own = int(np.sum(gap[kinds == kind] * kind > 0))
            yield row("products", name, query=query_, value=own)
        r = float(np.corrcoef(values.T)[0, 1])
        yield row("products", name, query="correlation", value=r)
        length = float(np.corrcoef(norms[:, 0], values.mean(axis=1))[0, 1])
        yield row("products", name, query="with length", value=length)


def draw(fits: Mapping[str, Mapping[str, Fit]], figures: Path) -> None:
    """The figures of §4.2, §5.1 and §5.2."""
    pairs = {topic: {"before": f"{topic}Reddit", "after": debiased(topic)} for topic in TOPICS}
    embedded = {
        topic: dict(zip(("before", "after"), names_of(f"{topic}{GLOVE}"), strict=True))
        for topic in TOPICS
    }

    def chosen(names: Mapping[str, str], model: str) -> dict[str, Fit]:
        return {when: fits[name][model] for when, name in names.items()}

    charts = {
        f"thesis-words-{topic}": word_means(chosen(pairs[topic], "separate"), PROB)
        for topic in TOPICS
    }
    charts |= {
        f"thesis-words-{topic}-google": word_means(
            {"before": fits[f"{topic}{GOOGLE}"]["separate"]}, PROB
        )
        for topic in TOPICS
    }
    for name, tables in (("thesis-coefficients", pairs), ("thesis-coefficients-glove", embedded)):
        panels = {topic: chosen(tables[topic], "coefficients") for topic in TOPICS}
        charts[name] = level_forests(panels, PROB)
    for path in save_charts(charts, figures):
        path.write_text(shrink(path.read_text(encoding="utf-8")), encoding="utf-8")


def shrink(svg: str) -> str:
    """The picture without what an image on a page does not show, positions to .1 pixel."""
    hidden = r' (?:aria-[a-z]+|role|class|pointer-events|stroke-miterlimit)="[^"]*"| opacity="1"'
    return re.sub(
        r"-?\d+\.\d{2,}",
        lambda number: f"{float(number.group()):.1f}".removesuffix(".0"),
        re.sub(hidden, "", svg),
    )


# -------------------------------------------------------------------------------------- printing


class Results:
    """The published rows."""

    def __init__(self, folder: Path) -> None:
        self.rows = read_rows(folder / RESULTS)

    def select(self, part: str, **where: str) -> list[dict[str, str]]:
        """The rows of a part."""
        return [
            r
            for r in self.rows
            if r["part"] == part and all(r[name] == value for name, value in where.items())
        ]

    def one(self, part: str, table: str, **where: str) -> dict[str, str]:
        """The one row of a table."""
        [found] = self.select(part, table=table, **where)
        return found


def show(value: str | float, digits: int = 3) -> str:
    """A number as the page has it."""
    x = float(value)
    return "" if math.isnan(x) else drop_zero(f"{x:.{digits}f}")


def with_interval(r: Mapping[str, str], digits: int = 3) -> str:
    """Value and interval."""
    ends = ", ".join(show(r[end], digits) for end in ("low", "high"))
    return f"{show(r['value'], digits)} [{ends}]"


def share(p: str) -> str:
    """P(< 0), never 0 or 1."""
    x = float(p)
    return "> .999" if x > 0.9995 else "< .001" if x < 0.0005 else show(x)


def print_tables(folder: Path) -> None:
    """Print the tables of the page."""
    results = Results(folder)
    print_criteria(results)
    print_coefficients(results)
    print_mac(results)
    print_contrasts(results)
    print_priors(results)
    print_islam(results)
    print_changes(results)
    print_statements(results)
    print_words(results)
    print_widths(results)
    print_scale(results)
    print_distances(results)
    print_products(results)


def print_rows(header: Iterable[str], rows: Iterable[Iterable[str]], title: str = "") -> None:
    """A Markdown table."""
    columns = list(header)
    print(f"\n{title}\n" if title else "")
    print("| " + " | ".join(columns) + " |")
    print("| " + " | ".join("---" for _ in columns) + " |")
    for cells in rows:
        print("| " + " | ".join(cells) + " |", flush=True)


def print_criteria(results: Results) -> None:
    """WAIC of the models, the published values in brackets."""
    rows = []
    for part, section, published in (("two models", "§3.5", TWO), ("three models", "§4.1", WAIC)):
        for model, theirs in published.items():
            waic, gap = (
                results.one(part, RELIGION, model=model, query=q) for q in ("WAIC", "difference")
            )
            ours = [*(show(waic[k], 0) for k in ("value", "sd", "p")), show(gap["value"], 0)]
            ours += [show(gap["sd"], 0) if theirs[3] else "", show(gap["p"], 2)]
            known = [f" ({x})" if x else "" for x in theirs]
            cells = (a + b for a, b in zip(ours, known, strict=True))
            rows.append((f"{section} {model}", *cells))
    print_rows(("religion", "WAIC", "SE", "p", "difference", "SE of it", "weight"), rows)
    rows = []
    for name in (f"{topic}{source}" for source in (REDDIT, GOOGLE) for topic in TOPICS):
        cells = [results.one("three models", name, model=m, query="WAIC") for m in MODELS]
        weight = results.one("three models", name, model="separate", query="difference")["p"]
        numbers = [f"{show(c['value'], 0)} ({show(c['sd'], 0)}, {show(c['p'], 0)})" for c in cells]
        size = f"{float(results.one('rows', name)['value']):,.0f}"
        rows.append((label(name), size, *numbers, show(weight, 2)))
    print_rows(("WAIC (SE, p)", "rows", *MODELS, "weight of separate"), rows)
    print(f"\ncrossed: {show(results.one('crossed', RELIGION, query='WAIC')['value'], 0)}")


def print_coefficients(results: Results) -> None:
    """Coefficients with quantiles, the published ones beside them."""
    for name, published in COEFFICIENTS.items():
        none = float(results.one("coefficient", name, query="none")["value"])
        rows = []
        for level, (mean, sd, low, high) in published.items():
            r = results.one("coefficient", name, query=level)
            theirs = {"value": mean, "low": low, "high": high}
            offsets = (float(r["value"]) - none, mean - published["none"][0])
            rows.append(
                (
                    level,
                    with_interval(r),
                    show(r["sd"]),
                    with_interval(theirs),  # type: ignore[arg-type]
                    show(sd),
                    *(show(x) for x in offsets),
                )
            )
        label = "Islam words only" if name == ISLAM else "religion"
        print_rows((label, "ours", "sd", "published", "sd", "ours less none", "published"), rows)
    wide = results.select("coefficient", table=f"{RELIGION}, wide")
    print("\nco ~ N(0, 1), sd:", ", ".join(show(r["sd"]) for r in wide))


def print_mac(results: Results) -> None:
    """MAC of all tables, and of control words."""
    rows = []
    for source in (REDDIT, GOOGLE, GLOVE):
        for topic in TOPICS:
            name, after = f"{topic}{source}", names_of(f"{topic}{source}")[1]
            of = [*results.select("MAC", table=name), *results.select("controls", table=name)]
            cells = [with_interval(r) for r in of] + [""] * (3 - len(of))
            fair = "" if source == GOOGLE else with_interval(results.one("MAC", after))
            rows.append((label(name), MAC.get(name, ""), cells[0], fair, *cells[1:]))
    columns = ("", "published", "MAC, 95 %", "hard debiased", "control words: people", "others")
    print_rows(columns, rows)
    rows = [(r["query"], with_interval(r)) for r in results.select("change of MAC")]
    print_rows(("GloVe, religion", "change of MAC"), rows)
    rabbi = results.one("MAC", f"{RELIGION}, without rabbi")
    print(f"\nwithout rabbi: {show(rabbi['value'])}")


def label(name: str) -> str:
    """A table as the page calls it."""
    for topic in TOPICS:
        name = name.replace(debiased(topic), f"Reddit, {topic}, debiased")
        for source in (REDDIT, GOOGLE, GLOVE):
            name = name.replace(f"{topic}{source}", f"{source}, {topic}")
    return name


def print_contrasts(results: Results) -> None:
    """δ with what the judge says, then the contrasts with control words."""
    rows = []
    for r in results.select("judged", model="crossed, 95 %"):
        name = r["table"]
        plain = results.one("described", name)
        permuted = results.one("judged", name, model="described")
        naive, crossed = both(results, name, DELTA)
        own = (with_interval(plain), below(permuted["p"]), permuted["outcome"])
        rows.append((label(name), naive, *crossed, r["outcome"], *own))
    models = ("coefficients, 89 %", "crossed, 89 %", "P(< 0)")
    columns = (*models, "judge", "no model, 95 %", "p (Holm)", "judge")
    print_rows((DELTA, *columns), rows)
    rows = []
    names = [r["table"] for r in results.select("contrast", model="crossed", query=DELTA)]
    for name in names:
        cells = []
        for query in (DELTA, *OTHERS) if name == ISLAM else () if is_after(name) else OTHERS:
            naive, crossed = both(results, name, query)
            cells.append((label(name), query, naive, *crossed))
        rows += cells
    print_rows(("", "contrast", *models), rows)


def both(results: Results, name: str, query: str) -> tuple[str, tuple[str, str]]:
    """A contrast by coefficients, and by crossed with P(< 0)."""
    naive, crossed = (
        results.one("contrast", name, model=model, query=query)
        for model in ("coefficients", "crossed")
    )
    return with_interval(naive), (with_interval(crossed), share(crossed["p"]))


def below(p: str) -> str:
    """A p-value with two decimals, three below .01: some are counted from random draws."""
    x = float(p)
    return "< .001" if x < 0.0005 else show(x, 3 if x < 0.01 else 2)


def print_priors(results: Results) -> None:
    """δ of religion in Google vectors under three priors."""
    rows = []
    for name in SPREADS:
        found = results.select("prior", table=name)
        rows.append((name, "; ".join(map(with_interval, found)), show(found[0]["sd"])))
    print_rows(("spreads", "δ, 95 %", "sd"), rows)


def print_islam(results: Results) -> None:
    """Where the difference of Islam comes from."""
    classes = [f"{r['query']} {with_interval(r)}" for r in results.select("class")]
    print("\nδ by class:", "; ".join(classes))
    rows = []
    for query in ("the four", "the seven others"):
        found = results.select("mean", query=query)
        rows.append((query, *(show(r["value"]) for r in found)))
    print_rows(("attributes", "from Islam words", "from those of the other religions"), rows)
    print(f"correlation by attribute: {show(results.one('correlation', RELIGION)['value'])}")


def print_changes(results: Results) -> None:
    """Associated-none before and after debiasing, and the paired change."""
    rows = []
    for name in dict.fromkeys(r["table"] for r in results.select("change")):
        found = results.select("change", table=name)
        rows.append((label(name), *map(with_interval, found)))
    print_rows(("vectors", "before", "after", "change, paired"), rows)


def judge_statement(statement: Statement, rows: Iterable[Mapping[str, str]]) -> tuple[str, str]:
    """How many words agree, disagree and are open, and what follows for the statement."""
    of_word: dict[str, list[Mapping[str, str]]] = {}
    for r in rows:
        word, _, group = r["word"].partition("|")
        if r["query"] in statement.tests and statement.of in ("", group):
            of_word.setdefault(word, []).append(r)
    agree = disagree = 0
    for tests in of_word.values():
        signs = [
            (1 if float(r["value"]) > 0 else -1) if r["outcome"] == "found" else 0 for r in tests
        ]
        none = [r["outcome"] == "none found" for r in tests]
        if statement.sign:
            agree += all(s == statement.sign for s in signs)
            disagree += any(s == -statement.sign for s in signs) or any(none)
        else:
            agree += all(none)
            disagree += any(signs)
    n = len(of_word)
    if statement.some:
        outcome = "holds" if agree else "does not hold" if disagree == n else "undecided"
    elif agree > n / 2:
        outcome = "holds"
    else:
        outcome = "does not hold" if disagree >= n / 2 else "undecided"
    return f"{agree}, {disagree}, {n - agree - disagree}", outcome


def agree_in_table(statement: Statement, rows: Iterable[Mapping[str, str]]) -> str:
    """How many words of the table, as it is, have the expected sign in all tests."""
    if not statement.sign:
        return ""
    of_word: dict[str, list[float]] = {}
    for r in rows:
        word, _, group = r["word"].partition("|")
        if r["query"] in statement.tests and statement.of in ("", group):
            of_word.setdefault(word, []).append(float(r["sd"]))
    count = sum(all(x * statement.sign > 0 for x in values) for values in of_word.values())
    return f"{count} of {len(of_word)}"


def print_statements(results: Results) -> None:
    """Every statement: the table as it is, and what the judge says by two models."""
    rows = []
    for s in STATEMENTS:
        cells = [agree_in_table(s, results.select("statement", table=s.topic, model="separate"))]
        for model in ("separate", "crossed"):
            counts, outcome = judge_statement(
                s, results.select("statement", table=s.topic, model=model)
            )
            cells.append(f"{outcome} ({counts})")
        rows.append((s.topic, f"“{s.quote}”", *cells))
    print_rows(("", "§5.2", "in the table", "by separate", "by crossed"), rows)


def print_words(results: Results) -> None:
    """The tests word by word."""
    columns = (CHANGE, *AFTER, "different-none")
    rows = []
    for topic in TOPICS:
        found = results.select("statement", table=topic)
        for word in dict.fromkeys(r["word"] for r in found):
            cells = []
            for query in columns:
                of = {r["model"]: r for r in found if (r["word"], r["query"]) == (word, query)}
                cells.append(word_cell(of) if of else "")
            rows.append((topic, word.partition("|")[0], *cells))
    print_rows(("", "word", *columns), rows)


def word_cell(of: Mapping[str, Mapping[str, str]]) -> str:
    """The value by separate, bold where found, and a dagger where crossed finds it."""
    text = show(of["separate"]["value"])
    text = f"**{text}**" if of["separate"]["outcome"] == "found" else text
    return text + " †" * (of["crossed"]["outcome"] == "found")


def print_widths(results: Results) -> None:
    """The mean width of the 89 % interval of a word by kind of attribute, after debiasing."""
    rows = []
    for topic in TOPICS:
        found = results.select("word", table=debiased(topic))
        cells = []
        for level in CONNECTIONS:
            widths = [float(r["high"]) - float(r["low"]) for r in found if r["query"] == level]
            cells.append(show(np.mean(widths)))
        rows.append((topic, *cells))
    print_rows(("width of an 89 % interval", *CONNECTIONS), rows)


def print_scale(results: Results) -> None:
    """Reddit and Google vectors: δ in units of the spread of the distances to neutral words."""
    rows = []
    for topic in TOPICS:
        cells = [topic]
        for source in (REDDIT, GOOGLE):
            name = f"{topic}{source}"
            spread = float(results.one("neutral", name)["value"])
            delta = results.one("contrast", name, model="crossed", query=DELTA)
            scaled = {k: str(float(delta[k]) / spread) for k in ("value", "low", "high")}
            cells += [show(spread), show(delta["value"]), with_interval(scaled, 2)]
        rows.append(cells)
    names = ("sd, neutral words", "δ", "δ / sd, 89 %")
    print_rows(("", *(f"{s}: {n}" for s in (REDDIT, GOOGLE) for n in names)), rows)


def print_distances(results: Results) -> None:
    """The association contrast by three distances."""
    rows = [
        (*names, show(r["sd"], 2), with_interval(r, 2), below(r["p"]), r["outcome"])
        for r in results.select("distance")
        for names in [(r["table"], r["query"])]
    ]
    columns = ("GloVe", "distance", "rank correlation with cosine", "d, 95 %", "p (Holm)", "judge")
    print_rows(columns, rows)


def print_products(results: Results) -> None:
    """Inner products and cosines of occupations."""
    if not results.select("products"):
        return
    largest = results.one("products", "largest difference")["value"]
    print(f"\nlargest difference from the published inner products: {float(largest):.1g}")
    rows = []
    for name in ("inner products", "cosines"):
        of = {r["query"]: r["value"] for r in results.select("products", table=name)}
        sides = [f"{float(of[k]):.0f} of 12" for k in ("he", "she")]
        rows.append((name, *sides, show(of["correlation"], 2), show(of["with length"], 2)))
    columns = (
        "nearer to the own side",
        "he",
        "she",
        "correlation of he and she",
        "with the length",
    )
    print_rows(columns, rows)
    r = results.one("products", "projections")
    print(f"projections: {with_interval(r)}, p {float(r['p']):.2g}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder of the published tables, or of results")
    parser.add_argument("--tables", action="store_true", help="print the tables of the page")
    parser.add_argument("--out", type=Path, default=Path("thesis"), help="folder for the results")
    parser.add_argument("--figures", type=Path, help="folder for the figures")
    parser.add_argument("--vectors", type=Path, help="GloVe vectors with 50 dimensions")
    parser.add_argument("--draws", type=int, default=4000, help="draws from each posterior")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random draws")
    options = vars(parser.parse_args())
    if options.pop("tables"):
        print_tables(options["folder"])
    else:
        compute(**options)
