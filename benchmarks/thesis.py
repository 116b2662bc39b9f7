"""Dobrzeniecka (2021) repeated on its own tables, and what the crossed model says of them.

    python benchmarks/thesis.py FOLDER --out docs/results/thesis --figures docs/figures \\
        [--vectors glove-400k.npz] [--draws 16000] [--seed 0]
    python benchmarks/thesis.py --tables docs/results/thesis

FOLDER has the published tables: religion, gender and race in Reddit and Google vectors
(religionReddit.csv, genderGoogle.csv …), those of Reddit after debiasing
(debiasedReligionReddit.csv …), the control words (controlReddit.csv …) and the inner products of
occupations (genderProjections.csv), which are those of GloVe with 50 dimensions: `--vectors` is
that file, as `benchmarks/measured_here.py vectors` writes it. Embedded GloVe vectors, before and
after debiasing, stand in for tables that were not published. The first line writes results.csv.gz
and the figures; NUTS runs only if NumPyro is installed. The second prints the tables of
docs/experiments/thesis.md from results.csv.gz, published values beside ours.
"""

from __future__ import annotations

import argparse
import importlib.util
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

import evenhand as eh
from evenhand.charts import save_charts
from evenhand.instruments import judge_results
from evenhand.judging import BiasTest, judge
from evenhand.posterior import (
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
from evenhand.posterior.fits import contrast_draws, word_level_draws
from evenhand.posterior.tables import CONNECTIONS
from evenhand.results import Measurement
from evenhand.statistics.intervals import Floats
from evenhand.statistics.mcmc import diagnose, hdi, hdi_error
from evenhand.vectors.debias import debias
from published import drop_zero, read_rows, save_rows

PROB = 0.89
"""Of the intervals. The thesis prints quantiles (5.5 and 94.5 %) beside its coefficients."""
TOPICS = ("religion", "gender", "race")
REDDIT, GOOGLE, GLOVE = "Reddit", "Google", "GloVe"
MODELS = ("baseline", "coefficients", "separate")
RELIGION, ISLAM = "religionReddit", "religionReddit, Islam"
ISLAM_WORDS = ("imam", "islam", "mosque", "muslim", "quran")
DELTA, OTHERS = "associated-different", ("associated-human", "associated-none", "human-none")
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
FAMILY = {topic: (CHANGE, *AFTER) for topic in TOPICS} | {
    "gender": (CHANGE, *AFTER, "different-none")
}
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

    for name, path in find_tables(folder).items():
        fits[name] = {}
        report(measure_published(name, path, fits[name], settings))
    report(measure_islam(fits[RELIGION]["coefficients"].table, settings))
    glove = embedded_tables()
    for topic, times in glove.items():
        for when, distances in times.items():
            table = read_table(distances)
            name = f"{topic}{GLOVE}, {when}"
            fits[name] = {"coefficients": fit(table, "coefficients", **settings)}
            report(measure_embedded(name, table, settings))
    report(judge_deltas([r for r in rows if r["query"] == DELTA and is_delta(r)]))
    for topic in TOPICS:
        before, after = (folder / f"{n}.csv" for n in (f"{topic}Reddit", debiased(topic)))
        report(measure_changes(f"{topic}Reddit", before, after, settings))
        report(measure_changes(f"{topic}{GLOVE}", *glove[topic].values(), settings))
    for model in ("separate", "crossed"):
        report(check_statements(folder, model, settings))
    report(measure_priors(folder / "religionGoogle.csv", settings))
    report(measure_euclidean())
    if vectors:
        report(measure_products(folder / "genderProjections.csv", vectors))
    if importlib.util.find_spec("numpyro"):
        report(time_nuts(read_table(folder / f"{RELIGION}.csv")))
    out.mkdir(parents=True, exist_ok=True)
    columns = (*FIELDS, *NUMBERS, "outcome")
    save_rows(out / RESULTS, [columns, *([r.get(name) for name in columns] for r in rows)])
    if figures:
        draw(fits, figures)


def is_delta(r: Row) -> bool:
    """Whether a row is δ of a table before debiasing, at 95 %."""
    return r["part"] in ("crossed, 95 %", "described") and "judgement" in r


def debiased(topic: str) -> str:
    """The name of the table of a topic in Reddit vectors after debiasing."""
    return f"debiased{topic.capitalize()}Reddit"


def find_tables(folder: Path) -> dict[str, Path]:
    """The published tables by name, before and after debiasing."""
    names = [f"{topic}{source}" for source in (REDDIT, GOOGLE) for topic in TOPICS]
    names += [debiased(topic) for topic in TOPICS]
    return {name: folder / f"{name}.csv" for name in names}


def embedded_tables() -> dict[str, dict[str, Any]]:
    """The topics in embedded GloVe vectors, before and after hard debiasing."""
    v = eh.vectors.load("glove")
    return {
        name: {
            "before": eh.vectors.distance_table(v, topic := eh.lexicon.topic(name)),
            "after": eh.vectors.distance_table(debias_hard(v, topic), topic),
        }
        for name in TOPICS
    }


def debias_hard(v: Any, topic: Any) -> Any:
    """The vectors after hard debiasing, the topic's sets equalised."""
    return debias(v, "hard", topic.definitional, options={"equalize": topic.equalize}).vectors


def measure_published(
    name: str, path: Path, fits: dict[str, Fit], settings: Mapping[str, Any]
) -> Iterator[Row]:
    """All models of a published table; those of the thesis count repeated rows."""
    table, unique = read_table(path, duplicates="keep"), read_table(path)
    after = name.startswith("debiased")
    fits |= {m: fit(table, m, **settings) for m in (MODELS[1:] if after else MODELS)}
    yield row("rows", name, value=table.rows)
    if not after:
        yield from measure_criteria("three models", name, fits)
        yield from measure_criteria("two models", name, {m: fits[m] for m in MODELS[:2]})
    yield from measure_coefficients(name, fits["coefficients"])
    for level, m in measure_levels(fits["separate"], PROB).items():
        for part in m.parts:
            yield measured("word", name, part, model="separate", query=level, word=part.query)
    crossed = fit(unique, **settings)
    yield from measure_crossed(name, crossed, judged=not after)
    if name == RELIGION:
        yield from measure_criteria("crossed", name, {"crossed": crossed})
        for m in measure_contrasts(crossed, PROB)[DELTA].select("class"):
            yield measured("class", name, m, model="crossed")
        wide = Priors().update(["thesis.coefficient_sd=1"])
        yield from measure_coefficients(
            f"{name}, wide", fit(table, "coefficients", priors=wide, **settings)
        )
    yield from describe(name, unique)


def describe(name: str, table: Table) -> Iterator[Row]:
    """What the table says without a model."""
    mac, contrast = describe_table(table).measurements
    yield measured("MAC", name, mac, query="")
    yield measured("described", name, contrast, query=DELTA, judgement=contrast)
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


def measure_crossed(name: str, result: Fit, *, judged: bool) -> Iterator[Row]:
    """Contrasts at 89 %; that of δ before debiasing is judged at 95 %."""
    for m in measure_contrasts(result, PROB).values():
        yield measured("contrast", name, m, model="crossed")
    delta = measure_contrasts(result)[DELTA]
    yield measured("crossed, 95 %", name, delta, **({"judgement": delta} if judged else {}))


def measure_islam(table: Table, settings: Mapping[str, Any]) -> Iterator[Row]:
    """The words of Islam alone, and mean distances of its stereotypes and of the others."""
    islam = table.select_words(ISLAM_WORDS)
    yield from measure_coefficients(ISLAM, fit(islam, "coefficients", **settings))
    yield from measure_crossed(ISLAM, fit(islam, **settings), judged=False)
    stereotype = table.group[table.attribute] == 0
    own = np.isin(np.array(table.words), ISLAM_WORDS)[table.word]
    associated = {islam.attributes[j] for j in islam.attribute[islam.connection == 0]}
    four = np.isin(np.array(table.attributes), [*associated])[table.attribute]
    for query, attributes in (("the four", four), ("the seven others", ~four)):
        for word, words in (("Islam", own), ("others", ~own)):
            mean = float(table.distance[stereotype & attributes & words].mean())
            yield row("mean", RELIGION, query=query, word=word, value=mean)


def measure_embedded(name: str, table: Table, settings: Mapping[str, Any]) -> Iterator[Row]:
    """A table of embedded vectors."""
    before = name.endswith("before")
    yield from measure_crossed(name, fit(table, **settings), judged=before)
    for r in describe(name, table):
        if before or r["part"] != "described":
            yield r
        else:
            yield {k: v for k, v in r.items() if k != "judgement"}
    if name == f"religion{GLOVE}, before":
        v, topic = eh.vectors.load("glove"), eh.lexicon.topic("religion")
        others = {
            "hard": debias_hard(v, topic),
            "soft, λ = .2": debias(v, "soft", topic.definitional).vectors,
            "soft, sums as printed": debias(
                v, "soft", topic.definitional, options={"scale": "sum"}
            ).vectors,
        }
        first = eh.measure(v, topic, "mac")
        for method, fair in others.items():
            change = eh.compare(first, eh.measure(fair, topic, "mac")).change
            ends = {"value": change.value, "low": change.low, "high": change.high}
            yield row("change of MAC", name, query=method, **ends)


def judge_deltas(rows: Sequence[Row]) -> Iterator[Row]:
    """What the judge says of δ in all tables before debiasing: a family for each method."""
    for part in ("described", "crossed, 95 %"):
        chosen = [r for r in rows if r["part"] == part]
        whole = [replace(r["judgement"], parts=()) for r in chosen]
        for r, (_, j) in zip(chosen, judge_results(whole), strict=True):
            numbers = {"value": r["value"], "low": j.low, "high": j.high, "p": j.p, "sd": j.family}
            yield row("judged", r["table"], model=part, query=DELTA, outcome=j.outcome, **numbers)


def measure_changes(
    name: str, before: Any, after: Any, settings: Mapping[str, Any]
) -> Iterator[Row]:
    """Associated-none before, after, and the paired change."""
    compared = compare_tables(before, after, **settings).contrasts(PROB)["associated-none"]
    for when in ("before", "after", "change"):
        e = getattr(compared, when)
        ends = {"value": e.value, "low": e.low, "high": e.high}
        yield row("change", name, model=when, query="associated-none", **ends)


def check_statements(folder: Path, model: str, settings: Mapping[str, Any]) -> Iterator[Row]:
    """What the judge says of every test of every word; values without a model beside it."""
    tests, rows = [], []
    for topic in TOPICS:
        tables = [read_table(folder / f"{n}.csv") for n in (f"{topic}Reddit", debiased(topic))]
        compared = compare_tables(*tables, model, **settings)
        spread = float(fit(tables[1], "separate", **settings).draws["sigma"].mean())
        changed, after = (levels_by_word(f) for f in (compared.change, compared.after))
        cells, moved = (cell_means(t) for t in (compared.after.table, compared.change.table))
        words = compared.after.table
        for i, word in enumerate(words.words):
            for query in FAMILY[topic]:
                first, _, second = query.partition("-")
                if query == CHANGE:
                    draws, plain = changed[i, "associated"], moved[i, "associated"]
                else:
                    draws = after[i, first] - after[i, second]
                    plain = cells[i, first] - cells[i, second]
                low, high = hdi(draws, 0.95)
                tests.append(
                    BiasTest(
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
                )
                rows.append((words.word_class[i], plain))
    for (group, plain), j in zip(rows, judge(tests), strict=True):
        t = j.test
        numbers = {"value": t.value, "low": j.low, "high": j.high, "sd": plain, "p": j.family}
        where = {"model": model, "query": t.metric, "word": f"{t.query}|{group}"}
        yield row("statement", t.subject, outcome=j.outcome, **where, **numbers)


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


def time_nuts(table: Table) -> Iterator[Row]:
    """Exact draws and NUTS of every model: seconds, effective draws, and a contrast by both."""
    from posterior import exact, numpyro, timed, worst

    for model in (*MODELS, "crossed"):
        engines: dict[str, Callable[[], Any]] = {
            "exact": lambda m=model: exact(table, m),  # type: ignore[misc]
            "NUTS": numpyro(table, model, dense=model in MODELS),
        }
        drawn = {}
        for name, engine in engines.items():
            drawn[name], seconds = timed(engine, repeats=5 if name == "exact" else 1)
            size = worst(drawn[name])
            yield row("NUTS", model, model=name, query="time", value=seconds, sd=size)
        shared = sorted({*drawn["exact"]} & {*drawn["NUTS"]})
        gap = max(float(gaps(drawn["exact"][k], drawn["NUTS"][k]).max()) for k in shared)
        count = sum(drawn["exact"][k][0, 0].size for k in shared)
        yield row("NUTS", model, query="gap", value=gap, sd=count)
        for name, draws in drawn.items():
            q = quantity(model, draws)
            yield row(
                "NUTS", model, model=name, query="quantity", value=q.mean(), sd=q.std(ddof=1)
            )


def quantity(model: str, draws: Mapping[str, Floats]) -> Floats:
    """δ, or associated-none, or the error of the distances."""
    if model == "crossed":
        return draws["delta"]
    return draws["co"][..., 0] - draws["co"][..., 3] if model == "coefficients" else draws["sigma"]


def gaps(first: Floats, second: Floats) -> Floats:
    """Differences of the means of two sets of draws, in Monte Carlo errors."""
    errors = []
    for draws in (first, second):
        size = diagnose(draws.reshape(*draws.shape[:2], -1))[1].reshape(draws.shape[2:])
        errors.append(draws.std(axis=(0, 1), ddof=1) / np.sqrt(size))
    difference = first.mean(axis=(0, 1)) - second.mean(axis=(0, 1))
    return np.asarray(np.abs(difference) / np.hypot(*errors))


def draw(fits: Mapping[str, Mapping[str, Fit]], figures: Path) -> None:
    """The figures of §4.2, §5.1 and §5.2."""
    pairs = {topic: {"before": f"{topic}Reddit", "after": debiased(topic)} for topic in TOPICS}
    embedded = {t: {w: f"{t}{GLOVE}, {w}" for w in ("before", "after")} for t in TOPICS}

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
    save_charts(charts, figures)


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
    print_nuts(results)


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
    for part, published in (("two models", TWO), ("three models", WAIC)):
        rows = []
        for model, theirs in published.items():
            waic, gap = (
                results.one(part, RELIGION, model=model, query=q) for q in ("WAIC", "difference")
            )
            best = not theirs[3]
            ours = [show(waic[k], 0) for k in ("value", "sd", "p")]
            ours += [show(gap["value"], 0), "" if best else show(gap["sd"], 0), show(gap["p"], 2)]
            known = ["" if x is None or (best and i == 3) else f" ({x})" for i, x in enumerate(theirs)]
            rows.append((model, *(a + b for a, b in zip(ours, known, strict=True))))
        print_rows(("", "WAIC", "SE", "p", "difference", "SE of it", "weight"), rows, part)
    rows = []
    for source in (REDDIT, GOOGLE):
        for topic in TOPICS:
            name = f"{topic}{source}"
            if name == RELIGION:
                continue
            cells = [
                results.one("three models", name, model=m, query="WAIC") for m in MODELS
            ]
            weight = results.one("three models", name, model="separate", query="difference")["p"]
            rows.append(
                (
                    f"{source}, {topic}",
                    f"{float(results.one('rows', name)['value']):,.0f}",
                    *(f"{show(c['value'], 0)} ({show(c['sd'], 0)}, {show(c['p'], 0)})" for c in cells),
                    show(weight, 2),
                )
            )
    print_rows(("WAIC (SE, p)", "rows", *MODELS, "weight of separate"), rows)
    print(f"crossed: {show(results.one('crossed', RELIGION, query='WAIC')['value'], 0)}")


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
    print("co ~ N(0, 1), sd:", ", ".join(show(r["sd"]) for r in wide))
    rows = []
    for topic in TOPICS:
        for when, name in (("before", f"{topic}Reddit"), ("after", debiased(topic))):
            r = results.one("contrast", name, model="coefficients", query="associated-none")
            rows.append((topic, when, with_interval(r)))
    print_rows(("co less co[none], associated", "", ""), rows)


def print_mac(results: Results) -> None:
    """MAC of all tables."""
    rows = [
        (r["table"], MAC.get(r["table"], ""), with_interval(r)) for r in results.select("MAC")
    ]
    print_rows(("MAC", "published", "from the table, 95 %"), [(label(n), *c) for n, *c in rows])
    rows = [(r["query"], with_interval(r)) for r in results.select("change of MAC")]
    print_rows(("debiasing", "change of MAC"), rows)


def label(name: str) -> str:
    """A table as the page calls it."""
    for topic in TOPICS:
        name = name.replace(debiased(topic), f"Reddit, {topic}, debiased")
        for source in (REDDIT, GOOGLE, GLOVE):
            name = name.replace(f"{topic}{source}", f"{source}, {topic}")
    return name.replace(", before", "").replace(", after", ", debiased")


def print_contrasts(results: Results) -> None:
    """δ with what the judge says, then all contrasts."""
    rows = []
    for r in results.select("judged", model="crossed, 95 %"):
        name = r["table"]
        crossed, plain = (
            results.one(part, name, query=DELTA) for part in ("crossed, 95 %", "described")
        )
        permuted = results.one("judged", name, model="described")
        naive = results.select("contrast", table=name, model="coefficients", query=DELTA)
        p = float(permuted["p"])
        rows.append(
            (
                label(name),
                *(with_interval(n) for n in naive or [])
                if naive
                else ("",),
                with_interval(results.one("contrast", name, model="crossed", query=DELTA)),
                share(crossed["p"]),
                r["outcome"],
                with_interval(plain),
                "< .001" if p < 0.001 else show(p),
                permuted["outcome"],
            )
        )
    print_rows(
        (
            DELTA,
            "coefficients, 89 %",
            "crossed, 89 %",
            "P(< 0)",
            "judge",
            "no model, 95 %",
            "p (Holm)",
            "judge",
        ),
        rows,
    )
    rows = []
    for name in dict.fromkeys(r["table"] for r in results.select("contrast", model="crossed")):
        shown = (DELTA, *OTHERS) if name == ISLAM or "debiased" in name or ", after" in name else OTHERS
        for query in shown:
            r = results.one("contrast", name, model="crossed", query=query)
            naive = results.select("contrast", table=name, model="coefficients", query=query)
            by = with_interval(naive[0]) if naive else ""
            rows.append((label(name), query, by, with_interval(r), share(r["p"])))
    print_rows(("", "contrast", "coefficients", "crossed", "P(< 0) by crossed"), rows)


def print_priors(results: Results) -> None:
    """δ of religion in Google vectors under three priors."""
    rows = []
    for name in SPREADS:
        found = results.select("prior", table=name)
        rows.append((name, "; ".join(map(with_interval, found)), show(found[0]["sd"])))
    print_rows(("spreads", "δ, 95 %", "sd"), rows)


def print_islam(results: Results) -> None:
    """Where the difference of Islam comes from."""
    rows = [(r["query"], with_interval(r)) for r in results.select("class")]
    print_rows(("class", "δ"), rows)
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
    print_rows(("", "§5.2", "words of the table", "by separate", "by crossed"), rows)


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
    rows = []
    for r in results.select("distance"):
        p = float(r["p"])
        shown = "< .001" if p < 0.001 else show(p)
        rows.append((r["table"], r["query"], show(r["sd"], 2), with_interval(r, 2), shown, r["outcome"]))
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
    columns = ("nearer to the own side", "he", "she", "correlation of he and she", "with the length")
    print_rows(columns, rows)
    r = results.one("products", "projections")
    print(f"projections: {with_interval(r)}, p {float(r['p']):.2g}")


def print_nuts(results: Results) -> None:
    """Exact draws and NUTS."""
    rows = []
    for model in dict.fromkeys(r["table"] for r in results.select("NUTS")):
        cells, rates = [], []
        for engine in ("exact", "NUTS"):
            time = results.one("NUTS", model, model=engine, query="time")
            q = results.one("NUTS", model, model=engine, query="quantity")
            rates.append(float(time["sd"]) / float(time["value"]))
            cells += [f"{show(q['value'], 4)} ({show(q['sd'], 4)})"]
            cells += [f"{float(time['value']):.2g}", show(time["sd"], 0), f"{rates[-1]:,.0f}"]
        gap = results.one("NUTS", model, query="gap")
        rows.append((model, *cells, f"{show(gap['value'], 1)} of {show(gap['sd'], 0)}"))
    names = ("mean (sd)", "CPU s", "ESS", "ESS/s")
    columns = ("", *(f"{e}: {n}" for e in ("exact", "NUTS") for n in names), "largest gap")
    print_rows(columns, rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="folder of the published tables, or of results")
    parser.add_argument("--tables", action="store_true", help="print the tables of the page")
    parser.add_argument("--out", type=Path, default=Path("thesis"), help="folder for the results")
    parser.add_argument("--figures", type=Path, help="folder for the figures")
    parser.add_argument("--vectors", type=Path, help="GloVe vectors with 50 dimensions")
    parser.add_argument("--draws", type=int, default=16_000, help="draws from each posterior")
    parser.add_argument("--seed", type=int, default=0, help="seed of all random draws")
    options = vars(parser.parse_args())
    if options.pop("tables"):
        print_tables(options["folder"])
    else:
        compute(**options)
