"""What a report shows of a masked language model: pronouns, professions, phrases, fine-tuning."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from evenhand.charts import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    Chart,
    ChartSet,
    curves,
    forest,
    forests,
    histogram,
    panel_heading,
    panels,
    row_of,
    scatter,
)
from evenhand.errors import InputError
from evenhand.masked.metrics.phrases import CORRELATION
from evenhand.masked.metrics.pronouns import BUILT_IN
from evenhand.report.blocks import (
    Block,
    P,
    Prose,
    Section,
    Table,
    Text,
    cell,
    change_columns,
    count,
    n_column,
    not_measured,
    p_cell,
    result_table,
    span,
    value_columns,
)
from evenhand.report.findings import Findings
from evenhand.results import Comparison, Measurement
from evenhand.wording import interval, number, p_relation, p_value, percent

if TYPE_CHECKING:
    from evenhand.masked.finetuning import FinetuneResult

prose = Prose("masked")

ROWS = 200
"""Sentences in a table at most; all rows are in the CSV file."""
GROUPS = {
    "male": (BLUE, "circle"),
    "balanced": (GREEN, "square"),
    "female": (ORANGE, "triangle-up"),
    "none given": (INK, "diamond"),
}
"""The looks of the groups of professions."""
KINDS = {"raw": (GREY, "square"), "centred on control phrases": (BLUE, "circle")}
TIMES = {"before": (ORANGE, "circle"), "after": (BLUE, "square")}
VERDICTS = ("male", "female", "neutral", "undecided")
DIFFERENCE = "association with men minus association with women (log ratio)"
Row = Mapping[str, Any]


# ------------------------------------------------------------------------------- pronoun scores


def score_charts(scores: Sequence[Measurement], comparisons: Sequence[Comparison]) -> ChartSet:
    """The figures of `masked score`: the distribution of each model, and their differences."""
    figures = ChartSet()
    figures.add("scores", lambda: distributions(scores))
    if len(scores) > 1:
        figures.add("differences", lambda: differences(comparisons))
    return figures


def _top(m: Measurement) -> Measurement:
    """The score by the k likeliest words."""
    return m.select("vocabulary")[0]


def _counts(top: Measurement) -> list[tuple[int, str]]:
    """How many sentences are male, female, neutral and undecided."""
    return [(top.part(name, "verdict").details["count"], name) for name in VERDICTS]


def distributions(scores: Sequence[Measurement]) -> Chart:
    """The distribution of the scores of each model, as in Figure 3 of Ye et al. (2021)."""
    if not any(_top(m).n for m in scores):
        raise InputError("no sentence is decided: there is no distribution to draw")
    settings, last = scores[0].details["settings"], len(scores) - 1
    return panels(
        [_distribution(m, axis=index == last) for index, m in enumerate(scores)],
        title="Pronoun score: P(male) / (P(male) + P(female))",
        subtitle=[
            f"bars: sentences decided by the {settings['top_k']} likeliest words; outline: by the "
            "full vocabulary;",
            f"grey band: neutral, .5 ± {settings['delta']:g}; dot and line: mean and its "
            f"{percent(scores[0].prob)} interval",
        ],
    )


def _distribution(m: Measurement, *, axis: bool) -> Chart:
    """One model: bars by the top k, an outline by the full vocabulary, band, mean."""
    top = _top(m)
    counts, full = (score.details["histogram"]["counts"] for score in (top, m))
    bins, delta = len(counts), m.details["settings"]["delta"]
    bars = [
        {
            "low": i / bins,
            "high": (i + 1) / bins,
            "n": n,
            "full": full[i],
            "bin": f"{i / bins:.2f} to {(i + 1) / bins:.2f}",
        }
        for i, n in enumerate(counts)
    ]
    shown = f"{number(top.value)} {interval(top.low, top.high)}"
    verdicts = ", ".join(f"{n:,} {name}" for n, name in _counts(top))
    return histogram(
        bars,
        title=panel_heading(m.subject, f"{verdicts}; mean {shown}"),
        x="0: female … 1: male" if axis else "",
        y="sentences",
        outline="full",
        band=(0.5 - delta, 0.5 + delta),
        middle=0.5,
        mean={**top.estimate.to_dict(), "shown": shown, "n": top.n} if top.n else None,
        tips={"bin": "score", "n": "top k", "full": "full vocabulary"},
        axis=axis,
    )


def differences(comparisons: Sequence[Comparison]) -> Chart:
    """The paired difference of every two models, with its interval."""
    rows = [
        row_of(
            c.change,
            f"{pair.after.subject} − {pair.before.subject}",
            series=series,
            n=c.paired,
            p=p_value(pair.p) if c is pair else "–",
        )
        for pair in comparisons
        for series, c in (("full vocabulary", pair), ("top k", pair.parts[0]))
        if c.paired
    ]
    prob = percent(comparisons[0].change.prob)
    return forest(
        rows,
        title="Models on the same sentences",
        subtitle=[f"mean difference with its {prob} interval"],
        x="difference of the score; right: the first model is more male",
        looks={"full vocabulary": (BLUE, "circle"), "top k": (ORANGE, "square")},
        beside=True,
        references=[{"value": 0}],
        tips={"n": "sentences", "p": "p, corrected"},
        text="shown",
        width=420,
        step=32,
    )


def sentence_strip(m: Measurement, titles: Mapping[str, str]) -> Chart:
    """The score of each sentence as a dot, one row per group, and the means of the groups."""
    points = [
        {
            "label": titles[item["group"]],
            "value": item["full_bias"],
            "sentence": item["masked"],
            "score": number(item["full_bias"], 2),
            "words": f"{item['male_word']} {percent(item['p_male'])}, "
            f"{item['female_word']} {percent(item['p_female'])}",
            "hollow": item["full_verdict"] == "undecided",
        }
        for item in _furthest(m)
    ]
    means = [
        row_of(part, titles[part.query], sentence=titles[part.query])
        for part in m.select("group")
        if math.isfinite(part.value)
    ]
    return forest(
        means,
        title="Every sentence",
        subtitle=[
            "blue dot: a sentence; hollow: no gender word is likely there;",
            f"orange: the mean of the decided ones and its {percent(m.prob)} interval",
        ],
        x="0: female … 1: male",
        colour=ORANGE,
        points=points,
        references=[{"value": 0.5}],
        tips={"sentence": "", "score": "score", "words": "likeliest words"},
        digits=2,
        domain=[0, 1],
        ticks=[0, 0.25, 0.5, 0.75, 1],
        tick_format=".2~f",
        width=420,
        step=46,
    )


# ---------------------------------------------------------------------------------- professions


def association_charts(results: Sequence[Measurement]) -> ChartSet:
    """The figures of `masked associate`; the name of the model is added where there are several."""
    figures = ChartSet()
    for m in results:
        model = re.sub(r"[^\w.-]+", "-", m.subject)
        name = f"-{model}" if len(results) > 1 else ""
        figures.add(f"professions{name}", partial(professions, m))
        figures.add(f"templates{name}", partial(templates, m))
    return figures


def professions(m: Measurement) -> Chart:
    """Every profession: right of 0 it is associated with men, left of 0 with women."""
    rows = [
        _bounded(
            part.part("pooled"),
            part.query,
            series=part.details["group"] or "none given",
            tick=part.value,
        )
        for part in m.select("profession")
    ]
    return forest(
        rows,
        title=f"Which professions are associated with men? {m.subject}",
        subtitle=[
            f"dot and line: partially pooled difference and its {percent(m.prob)} interval;",
            "grey tick: the plain mean over templates and pairs of persons",
        ],
        x=DIFFERENCE,
        looks=GROUPS,
        legend="mostly held by",
        references=[{"value": 0}],
        tips={"tick": "not pooled"},
        step=14,
    )


def templates(m: Measurement) -> Chart:
    """The result with each template alone, and with all but that one."""
    rows = [
        _bounded(part, part.query, other=part.details["without"]) for part in m.select("template")
    ]
    return forest(
        rows,
        title=f"Does the wording decide? {m.subject}",
        subtitle=[
            f"dot and line: one template alone and its {percent(m.prob)} interval; orange diamond: "
            "all but this one;",
            f"blue: all templates, {number(m.value)} {interval(m.low, m.high)}",
        ],
        x=DIFFERENCE,
        colour=INK,
        references=[row_of(m, "", colour=BLUE), {"value": 0}],
        tips={"other": "all but this one"},
        width=330,
        step=24,
        line=70,
    )


def _bounded(m: Measurement, label: str, **more: Any) -> Row:
    if not (math.isfinite(m.low) and math.isfinite(m.high)):
        raise InputError(f"'{label}' has no interval: a single sentence pair has no spread")
    return row_of(m, label, **more)


# -------------------------------------------------------------------------------------- phrases


def phrase_charts(results: Sequence[Measurement]) -> ChartSet:
    """The figures of `masked phrases`: effect sizes, and a scatter for each correlation."""
    figures = ChartSet()
    figures.add("effect-sizes", lambda: phrase_forest(_effects(results)))
    for m in results:
        if m.metric == CORRELATION:
            model = m.details["pronouns_of"]
            by = "" if model == m.subject else f"-{_file_part(model)}"
            for part in (m.part("raw", "embedding"), m):
                name = f"pronouns-{_file_part(m.subject)}{by}-{_embedding(part)}"
                figures.add(name, partial(phrase_scatter, part))
    return figures


def _effects(results: Sequence[Measurement]) -> list[Measurement]:
    """The effect sizes with raw and with centred embeddings."""
    return [
        replace(part, query=m.query)
        for m in results
        if m.metric != CORRELATION
        for part in (m.part("raw", "embedding"), m)
    ]


def _embedding(m: Measurement) -> str:
    return "centred" if m.details["centred"] else "raw"


def phrase_forest(effects: Sequence[Measurement]) -> Chart:
    """Effect sizes with intervals, one row per set, raw and centred beside each other."""
    if not effects:
        raise InputError("effect sizes: expected measurements, got none")
    raw, centred = KINDS
    return forests(
        (
            (
                m.subject,
                row_of(
                    m,
                    m.query,
                    series=centred if m.details["centred"] else raw,
                    p=p_value(m.p, m.draws),
                    n=m.n,
                ),
            )
            for m in effects
            if math.isfinite(m.low) and math.isfinite(m.high)
        ),
        title="Phrase WEAT: do phrases lean to words for one gender?",
        subtitle=[f"lines: {percent(effects[0].prob)} intervals over phrases"],
        x="effect size d; above 0: the first side leans to the first attributes",
        looks=KINDS,
        beside=True,
        scale=lambda _: "",
        references=[{"value": 0, "colour": INK}],
        tips={"value": "d", "p": "p", "n": "phrases"},
        digits=2,
        width=440,
        step=34,
    )


def phrase_scatter(m: Measurement) -> Chart:
    """Each phrase's association against its mean log odds of the male pronoun."""
    if not m.select("phrases"):
        raise InputError("scatter: expected at least 4 phrases, got fewer")
    present = set(m.items["kind"])
    marks = ((BLUE, "circle"), (ORANGE, "triangle-up"), (GREY, "cross"))
    looks = {
        kind: look
        for kind, look in zip((*m.details["kinds"], "neutral"), marks, strict=True)
        if kind in present
    }
    how = "centred on control phrases" if m.details["centred"] else "raw"
    lines = [
        f"{r.query}: r = {number(r.value, 2)} {interval(r.low, r.high, 2)} ({percent(r.prob)}), "
        f"p {p_relation(r.p_value, r.details.get('draws'))}, n = {r.n}"
        for r in (m.part(name, "phrases") for name in ("all phrases", "within groups"))
    ]
    return scatter(
        [{**item, "series": item["kind"]} for item in m.items],
        x="association",
        y="log_odds",
        x_title=f"association s(w, A, B) by {m.subject}, {how}",
        y_title=f"log odds of the male pronoun, {m.details['pronouns_of']}",
        looks=looks,
        tips={
            "phrase": "",
            "set": "set",
            "side": "side",
            "association": "association",
            "log_odds": "log odds",
            "bias": "male pronoun",
        },
        title=panel_heading("Do a phrase's embedding and its pronoun agree?", *lines),
        level=0,
        width=440,
        height=340,
    )


def _file_part(name: str) -> str:
    return "".join(letter if letter.isalnum() else "-" for letter in name).strip("-")


# ---------------------------------------------------------------------------------- fine-tuning


def finetune_charts(result: FinetuneResult) -> ChartSet:
    """The figures of `masked finetune`: the loss, that of the control, and the bias."""
    figures = ChartSet()
    figures.add("loss", lambda: loss_curve(result.curve, chosen=result.training["best"]["step"]))
    if result.control_curve:
        figures.add("loss_control", lambda: loss_curve(result.control_curve))
    if result.changes:
        labels = score_labels(result.settings["top_k"])
        figures.add("bias", lambda: score_changes(result.changes, labels))
    return figures


def score_labels(top_k: int) -> dict[str, str]:
    """What the changes of the pronoun score are called, by their queries."""
    full = {"mean bias": "mean score", "mean |bias - .5|": "mean distance from 0.5"}
    top = {
        f"{query}, top {top_k}": f"{label}, {top_k} likeliest words"
        for query, label in full.items()
    }
    held_out = {**full, **top}
    built_in = {f"{query}, {BUILT_IN}": f"{label}, {BUILT_IN}" for query, label in held_out.items()}
    return {**held_out, **built_in}


def loss_curve(curve: Sequence[Row], *, chosen: int | None = None) -> Chart:
    """Training and evaluation loss over the steps; a line marks the weights that were saved.

    The training loss is the mean of the steps since the point before, on new text; the evaluation
    loss is on the same hidden tokens every time. They fall together unless the model overfits.
    """
    rows = [
        {
            "step": point["step"],
            "epoch": round(point["epoch"], 2),
            "loss": point[name],
            "series": name,
        }
        for point in curve
        for name in ("training", "evaluation")
        if point[name] is not None
    ]
    return curves(
        rows,
        {"training": (ORANGE, (1, 0)), "evaluation": (BLUE, (1, 0))},
        x="step",
        y="loss",
        x_title="step",
        y_title="loss at hidden tokens (nats)",
        title="Loss while fine-tuning, in training and on evaluation text",
        points=True,
        marks=[] if chosen is None else [{"step": chosen, "text": "saved"}],
        tips={"step": "step", "epoch": "epoch", "loss": "loss"},
        y_scale={"zero": False, "nice": True},
        x_axis={"tickMinStep": 1, "format": ",d"},
        width=460,
    )


def score_changes(changes: Sequence[Comparison], labels: Mapping[str, str]) -> Chart:
    """The pronoun score before and after, beside the ideal; the change at the right."""
    rows = [
        row_of(
            m,
            labels[c.query],
            series=time,
            ideal=m.ideal,
            change=f"{number(c.change.value)} {interval(c.change.low, c.change.high)}"
            if time == "after"
            else "",
        )
        for c in changes
        if c.query in labels and c.paired
        for time, m in zip(TIMES, (c.before, c.after), strict=True)
    ]
    if not rows:
        raise InputError("bias: no sentence was scored both before and after")
    return forest(
        rows,
        title="Pronoun score on held-out sentences of the text, and on built-in sentences",
        subtitle=["grey: no bias; at the right: the change, paired, with its interval"],
        x="score: 1 male words only, 0 female words only",
        looks=TIMES,
        beside=True,
        domain=[0, 1],
        text="change",
        width=420,
        step=40,
    )


# ------------------------------------------------------------------------------------- sections


def masked_section(findings: Findings) -> Section:
    """What the model expects of men and women, measured in four ways."""
    measured = any(stage.subject == "model" for stage in findings.stages)
    parts = [part(findings) for part in SECTIONS.values()] if measured else []
    return Section.of("masked", "The masked language model", parts)


def _pronouns(findings: Findings) -> Section:
    title = prose.title_pronouns()
    content = findings.details("pronouns")
    if content is None:
        return Section("masked-pronouns", title, not_measured(findings.skipped("pronouns")))
    measured = findings.measured("pronouns")
    built_in, *rest = measured
    titles = content["titles"]
    blocks: list[Block] = [
        prose.text("pronouns", n=built_in.details["sentences"]),
        _distribution_figure("masked-pronouns", built_in, "built-in sentences"),
        prose.figure(
            "masked-sentences",
            lambda: sentence_strip(built_in, titles),
            groups=[(titles[part.query], part) for part in built_in.select("group")],
        ),
        result_table(
            "The mean pronoun score (over the full vocabulary, decided sentences)",
            ("Sentences",),
            ((m.query, m) for m in measured),
            {
                **value_columns(built_in.prob, "Mean"),
                "Above 0.5": lambda m: count(m.details["above"]),
                "Below 0.5": lambda m: count(m.details["below"]),
                "p (sign test)": lambda m: p_cell(m.p),
                **n_column("Decided"),
            },
        ),
        _sentence_table("The built-in sentences", built_in, titles),
    ]
    if rest:
        [of_data] = rest
        n = of_data.details["sentences"]
        blocks += [
            prose.text("pronouns_data", n=n, name=content["data_name"]),
            _distribution_figure("masked-pronouns-data", of_data, "sentences of the data"),
            _sentence_table("Sentences of the data", of_data, {}),
        ]
    else:
        blocks.append(prose.text("pronouns_no_data", content=content))
    blocks += [Text(f"Note: {note}.") for note in built_in.notes]
    return Section("masked-pronouns", title, blocks)


def _furthest(m: Measurement) -> list[Row]:
    """The sentences, at most 500, those furthest from .5 first."""
    return sorted(m.items, key=lambda row: -abs(row["full_bias"] - 0.5))[:500]


def _distribution_figure(name: str, m: Measurement, text: str) -> Block:
    top = _top(m)
    return prose.figure(
        name,
        lambda: distributions([m]),
        "distribution",
        m=m,
        top=top,
        counts=_counts(top),
        sentences=text,
    )


def _sentence_table(caption: str, m: Measurement, titles: Mapping[str, str]) -> Table:
    kind = "Situation" if titles else "Pronoun in the text"
    more = f", the {ROWS} furthest from 0.5" if len(m.items) > ROWS else ""
    return Table.of(
        f"{caption}, one by one{more}",
        ("Sentence", kind, "Score", "Male word", "P", "Female word", "P", "Result"),
        (
            (
                item["masked"],
                titles[item["group"]] if titles else item["pronoun"],
                cell(item["full_bias"], 2),
                item["male_word"],
                cell(item["p_male"]),
                item["female_word"],
                cell(item["p_female"]),
                item["full_verdict"],
            )
            for item in _furthest(m)[:ROWS]
        ),
        words=True,
        folded=True,
    )


def _professions(findings: Findings) -> Section:
    title = prose.title_professions()
    measured = findings.measured("professions")
    if not measured:
        return Section("masked-professions", title, not_measured(findings.skipped("professions")))
    [overall] = measured
    causal = "_causal" if findings.of("professions")[0].subject == "causal" else ""
    parts = overall.select("profession")
    names = [part.query for part in parts]
    blocks: list[Block] = [
        prose.text(f"professions{causal}", of=overall.details),
        prose.figure(
            "masked-professions",
            lambda: professions(overall),
            male=names[:5],
            female=names[:-6:-1],
        ),
        prose.figure(
            "masked-templates",
            lambda: templates(overall),
            n=overall.details["templates"],
            overall=overall,
        ),
        result_table(
            "Men's word minus women's word, by group of professions",
            ("Professions",),
            (
                (prose.group(query=m.query if m.by else ""), m)
                for m in (overall, *overall.select("group"), *overall.select("contrast"))
            ),
            {**value_columns(overall.prob), **P, **n_column("Answers")},
        ),
        result_table(
            prose.table_professions(),
            ("Profession",),
            ((part.query, part) for part in parts),
            {
                "Mostly held by": lambda m: m.details["group"] or "–",
                "Women in it, %": lambda m: cell(m.details["women"], 0),
                **value_columns(value="Association"),
                "Pooled": lambda m: cell(m.part("pooled").value),
                "Pooled interval": lambda m: span(m.part("pooled").low, m.part("pooled").high),
            },
            words=True,
            folded=True,
        ),
    ]
    blocks += [Text(f"Note: {note}.") for note in overall.notes]
    return Section("masked-professions", title, blocks)


def _phrases(findings: Findings) -> Section:
    title = prose.title_phrases()
    results, content = findings.measured("phrases"), findings.details("phrases")
    if not results or content is None:
        return Section("masked-phrases", title, not_measured(findings.skipped("phrases")))
    effects = _effects(results)
    blocks: list[Block] = [
        prose.text("phrases"),
        prose.figure(
            "masked-phrases",
            lambda: phrase_forest(effects),
            measured=[(f"{m.query} {_embedding(m)}", m) for m in effects],
        ),
        result_table(
            "The themes",
            ("Theme",),
            ((content["titles"][m.query], m) for m in effects),
            {
                "Embeddings": _embedding,
                **value_columns(effects[0].prob, "Effect size", digits=2),
                **P,
                "p over the gender words": lambda m: p_cell(
                    m.details["p_attributes"], m.details.get("draws_attributes")
                ),
                **n_column("Phrases"),
            },
        ),
    ]
    for m in results:
        if m.metric == CORRELATION and m.select("phrases"):
            blocks += [
                prose.figure(
                    "masked-phrases-pronouns",
                    partial(phrase_scatter, m),
                    r=m,
                ),
                Table.of(
                    prose.table_phrases(),
                    ("Phrase", "Theme", "Side", "Association", "Male pronoun"),
                    (
                        (
                            item["phrase"],
                            item["set"],
                            item["side"],
                            cell(item["association"], 4),
                            cell(item["bias"], 2),
                        )
                        for item in m.items
                    ),
                    words=True,
                    folded=True,
                ),
            ]
    notes = dict.fromkeys(note for m in results for note in m.notes)
    blocks += [Text(f"Note: {note}") for note in notes]
    return Section("masked-phrases", title, blocks)


def _finetune(findings: Findings) -> Section:
    title = prose.title_finetune()
    content = findings.details("finetune")
    if content is None:
        missing = not_measured(findings.skipped("finetune"), text="Not done")
        return Section("masked-finetune", title, missing)
    training = content["training"]
    labels = score_labels(content["settings"]["top_k"])
    changes = {c.query: c for stage in findings.of("finetune") for c in stage.comparisons}
    scores = [c for query, c in changes.items() if query in labels]
    kinds = [
        [changes[f"{query}{end}"] for query in ("mean bias", "mean |bias - .5|")]
        for end in ("", f", {BUILT_IN}")
        if f"mean bias{end}" in changes
    ]
    cost = changes["pseudo-perplexity"]
    blocks: list[Block] = [
        prose.text("finetune", training=training, data=content["data"], name=content["data_name"]),
        prose.text("finetune_result", kinds=kinds, cost=cost),
        prose.figure(
            "masked-finetune-bias",
            lambda: score_changes(scores, labels),
            changes=[(labels.get(c.query, c.query), c) for c in (*scores, cost)],
        ),
        prose.figure(
            "masked-finetune-loss",
            lambda: loss_curve(content["curve"], chosen=training["best"]["step"]),
            loss=training["evaluation_loss"],
        ),
        result_table(
            prose.table_finetune(),
            ("Measure",),
            ((labels.get(c.query) or prose.changed(c=c), c) for c in changes.values()),
            {
                **change_columns(),
                "Ideal": lambda c: "–" if c.before.ideal is None else f"{c.before.ideal:g}",
                "Items": lambda c: count(c.paired),
            },
        ),
        prose.text("finetune_caveats"),
    ]
    blocks += [Text(f"Note: {note}.") for note in content["notes"]]
    return Section("masked-finetune", title, blocks)


SECTIONS = {
    "pronouns": _pronouns,
    "professions": _professions,
    "phrases": _phrases,
    "finetune": _finetune,
}
"""The sections by the kind of their stage."""
