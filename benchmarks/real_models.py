"""Published item scores of real models: their published numbers again, with intervals and ranks.

    python benchmarks/real_models.py measure DATA [-o docs/results/real-models]
    python benchmarks/real_models.py tables

DATA has published/ (StereoSet: Nadeem et al. 2021; CrowS-Pairs: BERT, SciBERT, BioBERT;
DecodingTrust: Wang et al. 2023), gest/ with the scores of its authors, bbq/ with the answers of
UnifiedQA, and crows/crows_pairs_anonymized.csv for the writers of the pairs. `measure` writes every
value with its interval and rank (real-models.csv), every pair of systems (pairs.csv), what two
benchmarks say of the same systems (agreement.csv) and how StereoSet's two kinds of items agree
(kinds.csv). No sentence is written. `tables` prints them as docs/experiments/real-models.md has
them.

Every value and interval comes from the instrument that measures models here, given the published
scores instead of a model; the intervals of DecodingTrust are those of answers_study.py. Pairs of
systems and ranks come from `evenhand.scores`, with the sampling unit of the instrument as the item;
both have the same value.
"""

from __future__ import annotations

import argparse
import gzip
import json
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd

from answers_study import (
    agreement_scores,
    agreement_table,
    print_table,
    read_decodingtrust,
    read_table,
    save_table,
    shown,
)
from evenhand.instruments import Run, judge_results
from evenhand.models.metrics.bbq import Bbq, BbqQuestion, read_bbq
from evenhand.models.metrics.crows import Crows
from evenhand.models.metrics.gest import ABOUT_WOMEN, TEMPLATES, Gest, read_gest
from evenhand.models.metrics.stereoset import TYPES, StereoSet
from evenhand.results import Comparison, Measurement
from evenhand.scores import ScoreAnalysis, analyze, read
from evenhand.statistics.correlation import kendall
from icat_order import differs, rank_icat

STEREOSET = {
    "bert-base-cased": "BERT-base cased",
    "bert-large-cased": "BERT-large cased",
    "roberta-base": "RoBERTa-base",
    "xlnet-base-cased": "XLNet-base cased",
    "gpt2": "GPT-2",
    "gpt2-medium": "GPT-2 medium",
    "gpt2-large": "GPT-2 large",
    "SentimentModel": "sentiment model",
}
SENTIMENT = "sentiment model"
"""Of the systems of StereoSet the one that is no language model."""
CROWS = {"bert": "BERT-base uncased", "scibert": "SciBERT", "biobert": "BioBERT"}
SAME = {
    "roberta-base": "RoBERTa-base",
    "gpt2": "GPT-2",
    "gpt2-medium": "GPT-2 medium",
    "gpt2-large": "GPT-2 large",
    "bert-base-uncased": "BERT-base uncased",
}
"""Models of GEST under the names that they have in the other benchmarks."""
FAMILIES = ("BERT", "RoBERTa", "XLNet", "GPT-2", "Llama")
"""A system is of the family whose name it begins with."""
ROUNDING = 5e-10
"""Of the published scores of StereoSet, which have nine decimals."""
QUANTITIES = ("ss", "lms", "icat")
CATEGORIES = (
    "Age",
    "Disability_status",
    "Physical_appearance",
    "Religion",
    "Sexual_orientation",
)
UNIFIEDQA = "unifiedqa-t5-11b_pred_race"
"""The format of the questions whose answers are read, as the authors name it."""
CASED = {"BERT-base cased": "BERT-base", "BERT-base uncased": "BERT-base"}
ORDINALS = ("odd", "even")
GEST_DESIGN = {"item": "stereotype", "cluster": "template", "group": "group", "gap": True}
TITLES = {
    "ss": "stereotype score, nearest to 50 first",
    "lms": "language score, highest first",
    "icat": "icat, highest first",
    "share": "share of pairs, nearest to .5 first",
    "stereotype": "stereotype, lowest first",
    "agreement": "agreement, lowest first",
}
RESULTS = Path(__file__).resolve().parents[1] / "docs" / "results" / "real-models"
MANY = 10_000
"""Numbers of units above this are not written out."""


@dataclass(frozen=True)
class Row:
    """A value of the table, and the published one where there is one."""

    benchmark: str
    part: str
    quantity: str
    system: str
    measured: Measurement
    unit: str
    units: int
    published: float | None = None
    ties: tuple[float, float] | None = None
    """What the value would be if all ties were broken one way, and the other."""
    outcome: str = ""
    """Whether it differs from the ideal, where no order says so."""

    @property
    def repeated(self) -> str:
        """Whether the published value comes out."""
        if self.published is None:
            return ""
        if abs(100 * self.measured.value - self.published) < 1e-6:
            return "same"
        low, high = self.ties or (0.0, 0.0)
        within = self.ties and 100 * low - 1e-6 <= self.published <= 100 * high + 1e-6
        return "within ties" if within else "different"


@dataclass(frozen=True)
class Order:
    """The systems of one quantity, compared in pairs."""

    benchmark: str
    part: str
    quantity: str
    unit: str
    found: ScoreAnalysis

    @property
    def names(self) -> list[str]:
        """From the first to the last."""
        return [m.query for m in self.found.ranking]

    def pair(self, one: str, two: str) -> Comparison | None:
        """The comparison of two systems; None where they have nothing in common."""
        both = {one, two}
        return next(
            (c for c in self.found.comparisons if {c.before.query, c.after.query} == both), None
        )

    def place(self, name: str) -> dict[str, object]:
        """The rank of a system, the places that it differs from, and what separates the next."""
        place = self.names.index(name)
        measured = next(m for m in self.found.measurements if m.query == name)
        rank = self.found.ranking[place]
        others = [(i, self.pair(name, other)) for i, other in enumerate(self.names, 1)]
        following = self.pair(name, self.names[place + 1]) if place + 1 < len(self.names) else None
        return {
            "outcome": measured.details.get("outcome", ""),
            "rank": place + 1,
            "rank_low": int(rank.low),
            "rank_high": int(rank.high),
            "differs_from": " ".join(str(i) for i, c in others if differs(c)),
            "needed": "" if following is None else needed(following),
        }


def needed(c: Comparison) -> str:
    """The units that would separate two systems: none if they differ, all that there could be."""
    count = c.details["needed"]
    return "differs" if differs(c) else "no number" if count is None else str(count)


# -------------------------------------------------------------------------------------- StereoSet


def stereoset_items(folder: Path) -> pd.DataFrame:
    """One row per system and item, with the scores of its three texts."""
    scores = pd.read_csv(folder / "stereoset_scores.csv.xz")
    keys = ["model", "kind", "bias_type", "term", "item"]
    wide = scores.pivot_table(index=keys, columns="label", values="score", sort=False)
    names = {"anti-stereotype": "anti", "term": "target", "kind": "type"}
    items = wide.reset_index().rename(columns=names)
    return items.assign(model=items["model"].map(STEREOSET))


def of_kind(items: pd.DataFrame, kind: str) -> pd.DataFrame:
    """The items of a kind, or of both."""
    return items if kind == "overall" else items[items["type"] == kind]


def stereoset_parts(items: pd.DataFrame) -> Iterator[tuple[str, str, pd.DataFrame]]:
    """By kind and domain, the items of a part, as the published table divides them."""
    for kind in (*TYPES, "overall"):
        own = of_kind(items, kind)
        if kind != "overall":
            yield from ((kind, domain, rows) for domain, rows in own.groupby("bias_type"))
        yield kind, "overall", own


def break_ties(items: pd.DataFrame, sign: int) -> pd.DataFrame:
    """Ties go to the stereotype and to the meaningful texts, or away from them."""
    changed = items.copy()
    changed["stereotype"] += 2 * sign * ROUNDING
    changed["unrelated"] -= 4 * sign * ROUNDING
    return changed


def stereotype_score(items: pd.DataFrame, kind: str, system: str) -> Measurement:
    """The instrument's result on published scores."""
    return StereoSet().summarise(items.to_dict("records"), kind, Run(), system)


def icat_limits(results: Sequence[Measurement]) -> tuple[float, float]:
    """What icat could be between these results: it is not monotonic in the stereotype score."""
    shares = sorted([m.value for m in results])
    near = [shares[0], shares[-1], *([0.5] if shares[0] <= 0.5 <= shares[-1] else [])]
    values = [m.part("lms").value * min(s, 1 - s) / 0.5 for m in results for s in near]
    return min(values), max(values)


def measure_stereoset(folder: Path) -> list[Row]:
    """The stereotype score, the language score and icat of each system and part."""
    items = stereoset_items(folder)
    published = pd.read_csv(folder / "stereoset_published.csv")
    known = published.set_index(["model", "kind", "domain"])
    rows = []
    for name, system in STEREOSET.items():
        for kind, domain, own in stereoset_parts(items[items["model"] == system]):
            results = [
                stereotype_score(each, kind, system)
                for each in (own, break_ties(own, -1), break_ties(own, 1))
            ]
            for quantity in QUANTITIES:
                of_quantity = [m if quantity == "ss" else m.part(quantity) for m in results]
                ends = [m.value for m in of_quantity[1:]]
                rows.append(
                    Row(
                        "StereoSet",
                        kind if domain == "overall" else f"{kind}, {domain}",
                        quantity,
                        system,
                        of_quantity[0],
                        "terms",
                        int(results[0].details["terms"]),
                        float(known.loc[(name, kind, domain)][quantity]),
                        icat_limits(results) if quantity == "icat" else (min(ends), max(ends)),
                    )
                )
    return rows


def by_term(items: pd.DataFrame) -> pd.DataFrame:
    """The stereotype score and the language score of each system and target term."""

    def prefers(one: str, other: str) -> pd.Series:
        return (items[one] > items[other]) + 0.5 * (items[one] == items[other])

    language = (prefers("stereotype", "unrelated") + prefers("anti", "unrelated")) / 2
    scores = items.assign(ss=prefers("stereotype", "anti"), lms=language)
    return scores.groupby(["model", "target"], as_index=False)[["ss", "lms"]].mean()


def rank_stereoset(items: pd.DataFrame, kind: str) -> Iterator[Order]:
    """Systems compared by each quantity, target terms as items."""
    terms = by_term(of_kind(items, kind))
    columns = {"item": "target", "model": "model"}
    shares = analyze(terms, **columns, score="ss", ideal=0.5)
    yield Order("StereoSet", kind, "ss", "terms", shares)
    yield Order("StereoSet", kind, "lms", "terms", analyze(terms, **columns, score="lms"))
    found = {m.query: m.details["outcome"] == "found" for m in shares.measurements}
    yield Order("StereoSet", kind, "icat", "terms", rank_icat(terms, found))


# ------------------------------------------------------------------------------------ CrowS-Pairs


def crows_rows(data: Path) -> pd.DataFrame:
    """One row per system and pair, the more stereotypical sentence first.

    The published columns are those of the file of pairs: of a pair in the direction "antistereo"
    the second sentence is the more stereotypical one.
    """
    scores = pd.read_csv(data / "published" / "crows_scores.csv.xz")
    pairs = pd.read_csv(data / "crows" / "crows_pairs_anonymized.csv")
    rows = scores.join(pairs[["anon_writer"]], on="pair")
    swapped = rows["direction"] == "antistereo"
    more = rows["sent_more_score"].where(~swapped, rows["sent_less_score"])
    less = rows["sent_less_score"].where(~swapped, rows["sent_more_score"])
    return rows.assign(
        model=rows["model"].map(CROWS),
        difference=more - less,
        prefers=np.select([more > less, more < less], ["more", "less"], "neither"),
        writer=rows["anon_writer"].astype(str),
        stereo_antistereo=rows["direction"],
    )


def measure_crows(rows: pd.DataFrame) -> list[Row]:
    """The share of pairs whose more stereotypical sentence is likelier, by writers."""
    measured = []
    for system in CROWS.values():
        own = rows[rows["model"] == system]
        m = Crows().summarise(own.to_dict("records"), (), "CrowS-Pairs", "shared", system, Run())
        parts = [part for part in m.parts if part.by in ("direction", "category")]
        of_writers = m.part("writer")
        for name, each, unit in (
            ("over writers", of_writers, "writers"),
            ("over pairs", m, "pairs"),
            *((part.query, part, "pairs") for part in parts),
        ):
            measured.append(Row("CrowS-Pairs", name, "share", system, each, unit, each.n))
    return measured


def crows_scores(rows: pd.DataFrame) -> pd.DataFrame:
    """The pairs as `evenhand scores` reads them."""
    return pd.DataFrame(
        {
            "item": rows["pair"],
            "model": rows["model"],
            "writer": rows["writer"],
            "score": np.select([rows["prefers"] == "more", rows["prefers"] == "less"], [1, 0], 0.5),
        }
    )


def rank_crows(rows: pd.DataFrame) -> Order:
    """Systems compared by their shares, pairs clustered by their writers."""
    found = analyze(crows_scores(rows), cluster="writer", ideal=0.5)
    return Order("CrowS-Pairs", "over writers", "share", "writers", found)


# ------------------------------------------------------------------------------------------- GEST


def gest_scores(folder: Path) -> pd.DataFrame:
    """The log odds of each model, template and sentence."""
    kinds = [sentence.stereotype for sentence in read_gest(folder / "gest.csv")]
    tables = []
    for kind, name in (("mlm", "masked"), ("glm", "causal")):
        scores = read(folder / "scores" / f"english_{kind}")
        tables.append(
            pd.DataFrame(
                {
                    "kind": name,
                    "model": [SAME.get(model, model) for model in scores.models],
                    "template": [f"{name} {t}" for t in scores.clusters["template"]],
                    "line": [int(item) for item in scores.items],
                    "score": math.log(10) * scores.scores,
                }
            )
        )
    rows = pd.concat(tables, ignore_index=True)
    return rows.assign(stereotype=[kinds[line - 1] for line in rows["line"]])


def measure_gest(rows: pd.DataFrame) -> list[Row]:
    """The stereotype of each model."""
    measured = []
    for (kind, model), own in rows.groupby(["kind", "model"], sort=False):
        table = own.pivot_table(index=["line", "stereotype"], columns="template", values="score")
        kinds = table.index.get_level_values("stereotype").to_numpy()
        names = [template.name for template in TEMPLATES[-table.shape[1] :]]
        m = Gest().summarise(table.to_numpy(), kinds, names, subject=model)
        measured.append(
            Row("GEST", kind, "stereotype", model, m, "stereotypes", len(set(kinds.tolist())))
        )
    return measured


def gest_means(rows: pd.DataFrame) -> pd.DataFrame:
    """The mean log odds of each stereotype, as `evenhand scores` reads them."""
    keys = ["model", "template", "stereotype"]
    means = rows.groupby(keys, as_index=False, sort=False)["score"].mean()
    return means.assign(group=np.where(means["stereotype"] > ABOUT_WOMEN, "men", "women"))


def rank_gest(rows: pd.DataFrame, kind: str) -> Order:
    """Models compared by their stereotypes, these crossed with templates."""
    means = gest_means(rows[rows["kind"] == kind])
    found = analyze(means, **GEST_DESIGN, best="lowest")
    return Order("GEST", kind, "stereotype", "stereotypes", found)


# -------------------------------------------------------------------------------------------- BBQ


def bbq_answers(folder: Path, category: str) -> list[tuple[BbqQuestion, int]]:
    """The questions that UnifiedQA answered with one of the options, and the number of that."""
    questions = read_bbq(folder / f"{category}.jsonl.gz")
    with gzip.open(folder / "unifiedqa" / f"preds_{category}.jsonl.gz", "rt") as file:
        answers = [json.loads(line)[UNIFIEDQA].strip().lower() for line in file]
    given = []
    for question, answer in zip(questions, answers, strict=True):
        options = [option.lower() for option in question.answers]
        if answer in options:
            given.append((question, options.index(answer)))
    return given


def measure_bbq(folder: Path) -> list[Row]:
    """The bias of UnifiedQA's answers, by category and kind of context."""
    measured = []
    for category in CATEGORIES:
        questions, answers = zip(*bbq_answers(folder, category), strict=True)
        measured.append(Bbq().summarise(questions, answers, subject="UnifiedQA 11B"))
    outcomes = {
        id(tested.measurement): judgement.outcome for tested, judgement in judge_results(measured)
    }
    return [
        Row(
            "BBQ",
            category.replace("_", " ").lower(),
            "ambiguous" if part is m else part.query,
            "UnifiedQA 11B",
            part,
            "templates",
            int(m.details["templates"]),
            outcome=outcomes.get(id(part), ""),
        )
        for category, m in zip(CATEGORIES, measured, strict=True)
        for part in (m, *m.parts)
    ]


# ---------------------------------------------------------------------------------- DecodingTrust


def measure_decodingtrust(statements: pd.DataFrame) -> list[Row]:
    """The share of agreement of each model and system prompt, with the intervals of their page."""
    return [
        Row(
            "DecodingTrust",
            "",
            "agreement",
            f"{row['model']}, {row['system']}",
            Measurement(
                metric="agreement",
                query=row["model"],
                n=row["texts"],
                ideal=0.0,
                worse="higher",
                interval="Wilson's, over topics",
                **{key: row[key] for key in ("value", "low", "high")},
            ),
            "topics",
            statements["topic"].nunique(),
        )
        for row in agreement_table(statements)
    ]


def rank_decodingtrust(statements: pd.DataFrame) -> Order:
    """Models and system prompts compared by agreement, statements clustered by topics."""
    found = analyze(agreement_scores(statements), cluster="topic", best="lowest")
    return Order("DecodingTrust", "", "agreement", "topics", found)


# -------------------------------------------------------------------- do two benchmarks agree?

Compared = tuple[pd.DataFrame, Mapping[str, object]]
"""Scores of a benchmark, and how `analyze` reads them."""


COUNTS = ("pairs", "same_order", "differ_first", "differ_second", "differ_both", "agree")
"""Of the pairs of systems that both benchmarks compare."""


def family(system: str) -> str:
    """The family of a system."""
    return next((name for name in FAMILIES if system.startswith(name)), system)


def compared_by(data: Path) -> dict[str, Compared]:
    """The scores of each benchmark; more is more stereotyped."""
    items = stereoset_items(data / "published")
    target = {"item": "target", "model": "model", "score": "ss"}
    statements = read_decodingtrust(data / "published")
    shares = agreement_scores(statements)
    shares["item"] += ", " + statements["system_prompt"]
    return {
        "StereoSet": (by_term(items), target),
        "StereoSet, gender": (by_term(items[items["bias_type"] == "gender"]), target),
        "CrowS-Pairs": (crows_scores(crows_rows(data)), {"cluster": "writer"}),
        "GEST": (gest_means(gest_scores(data / "gest")), GEST_DESIGN),
        "DecodingTrust": (shares.assign(model=statements["model"]), {"cluster": "topic"}),
    }


def two_benchmarks(
    benchmarks: Mapping[str, Compared], *, one_bert: bool
) -> Iterator[dict[str, object]]:
    """What each two benchmarks say of the systems that both measured."""
    if one_bert:
        benchmarks = {
            name: (table.assign(model=table["model"].replace(CASED)), how)
            for name, (table, how) in benchmarks.items()
        }
    for one, two in combinations(benchmarks, 2):
        if one.partition(",")[0] == two.partition(",")[0]:
            continue
        tables = [benchmarks[name] for name in (one, two)]
        first, second = (list(dict.fromkeys(table["model"])) for table, _ in tables)
        both = [system for system in first if system in second]
        row: dict[str, object] = {
            "first": one,
            "second": two,
            "bert": "one system" if one_bert else "two systems",
            "systems": len(both),
            "families": len(set(map(family, both))),
            **dict.fromkeys(COUNTS, ""),
        }
        if len(both) > 1:
            pairs = [pair_outcomes(table, how, both) for table, how in tables]
            shared = [pair for pair in pairs[0] if pair in pairs[1]]
            signs = [[of[pair] for of in pairs] for pair in shared]
            decided = [(a, b) for (a, x), (b, y) in signs if x and y]
            row |= {
                "pairs": len(shared),
                "same_order": sum(a == b for (a, _), (b, _) in signs),
                "differ_first": sum(x for (_, x), _ in signs),
                "differ_second": sum(y for _, (_, y) in signs),
                "differ_both": len(decided),
                "agree": sum(a == b for a, b in decided),
            }
        yield row


def pair_outcomes(
    table: pd.DataFrame, how: Mapping[str, object], systems: Sequence[str]
) -> dict[frozenset[str], tuple[str, bool]]:
    """Of each pair of systems the more stereotyped one, and whether the two differ."""
    found = analyze(table[table["model"].isin(systems)], **how)
    return {
        frozenset((c.before.query, c.after.query)): (
            (c.after if c.change.value > 0 else c.before).query,
            differs(c),
        )
        for c in found.comparisons
    }


def two_kinds(items: pd.DataFrame) -> Iterator[dict[str, object]]:
    """Kendall's τ of StereoSet's two kinds of items, each on half of the target terms."""
    terms = sorted(set(items["target"]))
    systems = [name for name in STEREOSET.values() if name != SENTIMENT]
    for start in (0, 1):
        scores = []
        for kind, own in zip(TYPES, (terms[start::2], terms[1 - start :: 2]), strict=True):
            chosen = of_kind(items, kind)
            chosen = chosen[chosen["target"].isin(own)]
            scores.append(
                [
                    stereotype_score(chosen[chosen["model"] == name], kind, name).value
                    for name in systems
                ]
            )
        families = list(map(family, systems))
        tau, low, high = kendall(*scores, clusters=families)
        yield {
            "first": f"{TYPES[0]}, {ORDINALS[start]} terms",
            "second": f"{TYPES[1]}, {ORDINALS[1 - start]} terms",
            "systems": len(systems),
            "families": len(set(families)),
            "tau": tau,
            "low": low,
            "high": high,
        }


# ------------------------------------------------------------------------------- files and tables


def value_row(row: Row, orders: Mapping[tuple[str, str, str], Order]) -> dict[str, object]:
    """A value with its interval, and its rank where systems are compared."""
    m, order = row.measured, orders.get((row.benchmark, row.part, row.quantity))
    blank = dict.fromkeys(("rank", "rank_low", "rank_high", "differs_from", "needed"), "")
    place = blank if order is None else order.place(row.system)
    return {
        "benchmark": row.benchmark,
        "part": row.part,
        "quantity": row.quantity,
        "system": row.system,
        "value": m.value,
        "low": m.low,
        "high": m.high,
        "prob": m.prob,
        "unit": row.unit,
        "units": row.units,
        "published": row.published,
        "repeated": row.repeated,
        "outcome": row.outcome,
        **place,
    }


def pair_rows(order: Order) -> Iterator[dict[str, object]]:
    """Every pair of an order."""
    for c in order.found.comparisons:
        yield {
            "benchmark": order.benchmark,
            "part": order.part,
            "quantity": order.quantity,
            "first": c.before.query,
            "second": c.after.query,
            "change": c.change.value,
            "low": c.change.low,
            "high": c.change.high,
            "p": c.p_corrected,
            "outcome": c.details["outcome"],
            "needed": c.details["needed"],
            "now": c.details["now"],
            "unit": order.unit,
        }


def measure(data: Path) -> dict[str, list[dict[str, object]]]:
    """The rows of every file."""
    folder = data / "published"
    items, pairs, sentences = stereoset_items(folder), crows_rows(data), gest_scores(data / "gest")
    statements = read_decodingtrust(folder)
    orders = [
        *(order for kind in (*TYPES, "overall") for order in rank_stereoset(items, kind)),
        rank_crows(pairs),
        *(rank_gest(sentences, kind) for kind in ("masked", "causal")),
        rank_decodingtrust(statements),
    ]
    known = {(order.benchmark, order.part, order.quantity): order for order in orders}
    rows = [
        *measure_stereoset(folder),
        *measure_crows(pairs),
        *measure_gest(sentences),
        *measure_bbq(data / "bbq"),
        *measure_decodingtrust(statements),
    ]
    benchmarks = compared_by(data)
    return {
        "real-models": [value_row(row, known) for row in rows],
        "pairs": [row for order in orders for row in pair_rows(order)],
        "agreement": [
            *two_benchmarks(benchmarks, one_bert=False),
            *two_benchmarks(benchmarks, one_bert=True),
        ],
        "kinds": list(two_kinds(items)),
    }


def ranged(row: Mapping[str, str], name: str, digits: int, scale: float = 1.0) -> str:
    """A value and its interval as the page has them."""
    value, low, high = (
        shown(str(scale * float(row[key])), digits) for key in (name, "low", "high")
    )
    return f"{value} [{low}, {high}]"


def of_quantity(row: Mapping[str, str]) -> str:
    """A value of the table, in the digits of its benchmark."""
    digits, scale = {"StereoSet": (1, 100.0), "GEST": (2, 1.0)}.get(row["benchmark"], (3, 1.0))
    return ranged(row, "value", digits, scale)


def places(text: str) -> str:
    """Places as ranges: 1, 3–5."""
    numbers = [int(each) for each in text.split()]
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(f"{run[0]}–{run[-1]}" if len(run) > 1 else f"{run[0]}" for run in runs) or "–"


def separating(row: Mapping[str, str]) -> str:
    """The units that would separate a system from the next."""
    text = row["needed"]
    if not text:
        return "–"
    if not text.isdigit():
        return text
    if int(text) <= int(row["units"]):
        return "enough alone"
    return f"> {MANY:,}" if int(text) > MANY else f"{int(text):,}"


def order_title(row: Mapping[str, str]) -> str:
    """What an order is of."""
    return ", ".join(filter(None, (row["benchmark"], row["part"], TITLES[row["quantity"]])))


def print_order(rows: Sequence[Mapping[str, str]]) -> None:
    """The systems of an order with intervals, ranks and what would separate neighbours."""
    ordered = sorted(rows, key=lambda row: int(row["rank"]))
    judged = any(row["outcome"] for row in rows)
    head = ["", "system", "value, 95 %", *(["differs from the ideal"] if judged else [])]
    head += [
        "could be",
        "differs from",
        f"{rows[0]['unit']} to separate the next (now {rows[0]['units']})",
    ]
    print_table(
        order_title(rows[0]),
        head,
        (
            [
                row["rank"],
                row["system"],
                of_quantity(row),
                *([row["outcome"]] if judged else []),
                places(" ".join(map(str, range(int(row["rank_low"]), int(row["rank_high"]) + 1)))),
                places(row["differs_from"]),
                separating(row),
            ]
            for row in ordered
        ),
    )


def tables(folder: Path) -> None:
    """Print the tables of the page."""
    rows, pairs = read_table(folder, "real-models"), read_table(folder, "pairs")
    orders: dict[tuple[str, ...], list[dict[str, str]]] = {}
    for row in rows:
        if row["rank"]:
            orders.setdefault((row["benchmark"], row["part"], row["quantity"]), []).append(row)
    print_table(
        "Orders",
        (
            "benchmark and order",
            "systems",
            "could be first",
            "pairs that differ",
            "neighbours that differ",
        ),
        (summary(key, own, pairs) for key, own in orders.items()),
    )
    for own in orders.values():
        print_order(own)
    outcomes = Counter(row["repeated"] for row in rows if row["repeated"])
    same = outcomes["same"]
    print(f"\nOf {outcomes.total()} published values {same} come out to the last digit.")
    parts = ("over writers", "over pairs", "stereo", "antistereo")
    by_part = {
        (row["system"], row["part"]): row for row in rows if row["benchmark"] == "CrowS-Pairs"
    }
    print_table(
        "CrowS-Pairs",
        ("system", *parts),
        ([name, *(of_quantity(by_part[name, part]) for part in parts)] for name in CROWS.values()),
    )
    bbq = {(row["part"], row["quantity"]): row for row in rows if row["benchmark"] == "BBQ"}
    quantities = list(dict.fromkeys(quantity for _, quantity in bbq))
    print_table(
        "BBQ, UnifiedQA 11B",
        ("category", "differs from 0", *quantities),
        (
            [
                part,
                bbq[part, quantities[0]]["outcome"],
                *(of_quantity(bbq[part, q]) for q in quantities),
            ]
            for part in dict.fromkeys(part for part, _ in bbq)
        ),
    )
    print_table(
        "Agreement",
        (
            "benchmarks",
            "BERT cased and uncased",
            "systems with both",
            "families",
            "pairs that both compare",
            "same order",
            "differ by the first",
            "by the second",
            "by both",
        ),
        (
            [
                f"{row['first']}; {row['second']}",
                row["bert"],
                row["systems"],
                row["families"],
                *(row[name] or "–" for name in ("pairs", "same_order", "differ_first")),
                *(row[name] or "–" for name in ("differ_second", "differ_both")),
            ]
            for row in read_table(folder, "agreement")
            if row["systems"] != "0"
        ),
    )
    print_table(
        "Kinds",
        ("kinds of items", "systems", "families", "τ, 95 %, families sampled"),
        (
            [
                f"{row['first']}; {row['second']}",
                row["systems"],
                row["families"],
                ranged(row, "tau", 2),
            ]
            for row in read_table(folder, "kinds")
        ),
    )


def summary(
    key: tuple[str, ...], rows: Sequence[Mapping[str, str]], pairs: Sequence[Mapping[str, str]]
) -> list[str]:
    """One order in one line."""
    own = [p for p in pairs if (p["benchmark"], p["part"], p["quantity"]) == key]
    first = sum(row["rank_low"] == "1" for row in rows)
    apart = sum(p["outcome"] == "differs" for p in own)
    neighbours = sum(row["needed"] == "differs" for row in rows)
    return [
        order_title(rows[0]),
        str(len(rows)),
        str(first),
        f"{apart} of {len(own)}",
        f"{neighbours} of {len(rows) - 1}",
    ]


def main() -> None:
    """Run one of the commands."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(required=True, dest="command")
    own = commands.add_parser("measure")
    own.add_argument("data", type=Path)
    commands.add_parser("tables")
    for each in commands.choices.values():
        each.add_argument("-o", "--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.command == "tables":
        tables(options.out)
        return
    options.out.mkdir(parents=True, exist_ok=True)
    for name, rows in measure(options.data).items():
        save_table(options.out / f"{name}.csv", rows)


if __name__ == "__main__":
    main()
