"""The section on a masked language model: pronouns, professions, phrases, fine-tuning."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from evenhand.errors import InputError
from evenhand.masked.metrics.phrases import CORRELATION
from evenhand.report import charts_masked_association, charts_masked_phrases
from evenhand.report.blocks import Block, Cell, Figure, Section, Table, Text, cell, p_cell, span
from evenhand.report.charts_masked_scores import distributions
from evenhand.report.charts_masked_sentences import sentences
from evenhand.report.findings import Findings
from evenhand.report.sections_finetune import finetune_part
from evenhand.report.wording import interval, number, p_relation, percent
from evenhand.results import Measurement

__all__ = ["masked_section"]

SHOWN = 500
"""Sentences that are drawn or listed at most, those furthest from .5."""
MOST = 200
"""Sentences in a table at most; the rest is in the CSV file."""

GROUPS = {
    "": "all professions",
    "male": "mostly held by men",
    "female": "mostly held by women",
    "balanced": "held by both",
    "male-leaning - female-leaning professions": "men's professions less women's",
}
"""The groups of professions, as the table calls them."""


def masked_section(findings: Findings) -> Section:
    """What the model thinks of men and women, asked in four ways."""
    parts = [
        _pronouns(findings), _professions(findings), _phrases(findings), finetune_part(findings)
    ]  # fmt: skip
    return Section(
        "masked", "The masked language model", parts=[part for part in parts if part.blocks]
    )


def _skipped(findings: Findings, kind: str) -> list[Block]:
    return [
        Text(f"Not measured: {skip['reason']}.", "warning")
        for stage in findings.of(kind)
        for skip in stage.skipped
    ]


def _pronouns(findings: Findings) -> Section:
    title = "Whom does the model think of?"
    content = findings.content("pronouns")
    if content is None:
        return Section("masked-pronouns", title, _skipped(findings, "pronouns"))
    built_in, *rest = findings.measured("pronouns")
    groups = _groups(built_in, content["titles"])
    items = _furthest(built_in)
    blocks: list[Block] = [
        Text(
            "A masked language model guesses a word that is hidden. Here the hidden word is the "
            "pronoun of a person of whom the sentence does not say whether it is a man or a woman. "
            "The score of a sentence is the male word's share of the two likeliest gender words: "
            "1 is male alone, 0 female alone, 0.5 even. The "
            f"{built_in.details['sentences']} sentences were "
            "written for this purpose, as many of work that is told of men as of work that is told "
            "of women."
        ),
        *_distribution("masked-pronouns", built_in, "built-in sentences"),
        Figure.of(
            "masked-sentences",
            sentences(items, groups, built_in.prob),
            "How to read it: each dot is a sentence, point at it to read it; right of the dashed "
            "line the model prefers a male word, left of it a female one.",
            "Mean pronoun score by kind of situation: "
            + "; ".join(
                f"{group['title']} {number(group['value'], 2)} "
                f"{interval(group['low'], group['high'], 2)}"
                for group in groups
            ),
        ),
        _summary(findings.measured("pronouns")),
        _sentences("The built-in sentences", items, groups),
    ]
    if rest:
        [of_data] = rest
        blocks += [
            Text(
                f"The same score on {of_data.details['sentences']:,} sentences of "
                f"“{content['data_name']}”, one "
                "a text, in which the structural filter found an assumed gender. They show the "
                "model on this kind of text; the verdict does not rest on them."
            ),
            *_distribution("masked-pronouns-data", of_data, "sentences of the data"),
            _sentences("Sentences of the data", _furthest(of_data), ()),
        ]
    else:
        blocks.append(
            Text(
                f"In the data “{content['data_name']}” the structural filter found "
                f"{content['data_found']} sentences to score; with fewer than "
                f"{content['fewest']} there is no score of the data's own sentences."
            )
        )
    blocks += [Text(f"Note: {note}.") for note in built_in.notes]
    return Section("masked-pronouns", title, blocks)


def _groups(m: Measurement, titles: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {"group": part.query, "title": titles[part.query], "n": part.details["sentences"],
         "decided": part.n, **part.estimate.to_dict()}
        for part in m.select("group")
    ]  # fmt: skip


def _furthest(m: Measurement) -> list[Mapping[str, Any]]:
    """The sentences, those furthest from .5 first."""
    return sorted(m.items, key=lambda row: -abs(row["full_bias"] - 0.5))[:SHOWN]


def _distribution(name: str, told: Measurement, words: str) -> list[Block]:
    try:
        chart = distributions([told])
    except InputError as error:
        return [Text(f"No distribution is drawn: {error}.", "warning")]
    [top] = told.select("vocabulary")
    counts = ", ".join(
        f"{top.part(verdict, 'verdict').details['count']} {verdict}"
        for verdict in ("male", "female", "neutral", "undecided")
    )
    return [
        Figure.of(
            name,
            chart,
            "How to read it: each bar counts the sentences with such a score. Without bias the "
            "bars lie in or around the grey band; bars at the right mean that the model mostly "
            "expects a man.",
            f"Histogram of the pronoun scores of {told.subject} on {top.details['sentences']} "
            f"{words}: {counts}; mean {number(top.value)} {interval(top.low, top.high)}.",
        )
    ]


def _summary(measured: Sequence[Measurement]) -> Table:
    return Table.of(
        "The mean pronoun score (over the whole vocabulary, decided sentences)",
        ("Sentences", "Mean", f"{percent(measured[0].prob)} interval", "Above 0.5", "Below 0.5",
         "p (sign test)", "Decided"),
        (
            (
                m.query, cell(m.value), span(m.low, m.high), cell(float(m.details["above"]), 0),
                cell(float(m.details["below"]), 0), p_cell(m.p_value), cell(float(m.n), 0),
            )
            for m in measured
        ),
    )  # fmt: skip


def _sentences(
    caption: str, items: Sequence[Mapping[str, Any]], groups: Sequence[Mapping[str, Any]]
) -> Table:
    titles = {group["group"]: group["title"] for group in groups}
    kind = ("Situation",) if groups else ("Pronoun in the text",)
    shown = items[:MOST]
    more = f", the {MOST} furthest from 0.5" if len(items) > MOST else ""
    return Table.of(
        f"{caption}, one by one{more}",
        ("Sentence", *kind, "Score", "Male word", "P", "Female word", "P", "Says"),
        (
            (
                item["masked"], titles[item["group"]] if groups else item["pronoun"],
                cell(item["full_bias"], 2), item["male_word"], cell(item["p_male"]),
                item["female_word"], cell(item["p_female"]), item["full_verdict"],
            )
            for item in shown
        ),
        words=True,
        folded=True,
    )  # fmt: skip


def _professions(findings: Findings) -> Section:
    title = "Which professions call for a man?"
    if not findings.measured("profession"):
        return Section("masked-professions", title, _skipped(findings, "profession"))
    [told] = findings.measured("profession")
    measured = [told, *told.select("group"), *told.select("contrast")]
    of = told.details
    ends = told.select("profession")
    blocks: list[Block] = [
        Text(
            "In “my sister earns a living as a plumber” the word for the person is hidden and the "
            "model is asked how likely “sister” and “brother” are, once with the profession shown "
            "and once with it hidden too. How much more the profession calls for the man's word "
            "than for the woman's is its association (the natural logarithm of a ratio; 0 is "
            f"even). It is asked in {of['templates']} sentences, with {of['professions']} "
            f"professions and {of['pairs']} pairs of persons."
        )
    ]
    for name, make, caption, words in (
        (
            "masked-professions", charts_masked_association.professions,
            "How to read it: right of the dashed line a profession calls for a man, left of it for "
            "a woman; colour and shape tell who mostly holds it. Without bias the groups lie mixed "
            "around the line.",
            "Associations of professions. Most male: "
            + ", ".join(row.query for row in ends[:5])
            + "; most female: "
            + ", ".join(row.query for row in reversed(ends[-5:])),
        ),
        (
            "masked-templates", charts_masked_association.templates,
            "How to read it: each row is one wording of the question, its dot the association with "
            "that wording alone. If the dots agree, the result does not hang on the wording.",
            f"Association by template: {of['templates']} templates, overall "
            f"{number(told.value)} {interval(told.low, told.high)}.",
        ),
    ):  # fmt: skip
        try:
            blocks.append(Figure.of(name, make(told), caption, words))
        except InputError as error:
            blocks.append(Text(f"No figure: {error}.", "warning"))
    blocks += [
        Table.of(
            "Men's word less women's word, by group of professions",
            ("Professions", "Value", f"{percent(measured[0].prob)} interval", "p", "Answers"),
            (
                (GROUPS[m.query if m.by else ""], cell(m.value), span(m.low, m.high),
                 p_cell(m.p_value), Cell(f"{m.n:,}", float(m.n)))
                for m in measured
            ),
        ),
        Table.of(
            "The professions, one by one (pooled: drawn towards the mean of all as far as the "
            "answers are few or at odds)",
            ("Profession", "Mostly held by", "Women in it, %", "Association", "Interval",
             "Pooled", "Pooled interval"),
            (
                (
                    row.query, row.details["group"] or "–", cell(row.details["women"], 0),
                    cell(row.value), span(row.low, row.high),
                    cell(row.parts[0].value), span(row.parts[0].low, row.parts[0].high),
                )
                for row in ends
            ),
            words=True, folded=True,
        ),
    ]  # fmt: skip
    blocks += [Text(f"Note: {note}.") for note in told.notes]
    return Section("masked-professions", title, blocks)


def _phrases(findings: Findings) -> Section:
    title = "What do people of each gender do?"
    results = findings.measured("phrases")
    if not results:
        return Section("masked-phrases", title, _skipped(findings, "phrases"))
    titles = (findings.content("phrases") or {})["titles"]
    effects = [m for m in results if m.metric != CORRELATION]
    measured = [
        replace(part, query=m.query) for m in effects for part in (m.part("raw", "embedding"), m)
    ]
    blocks: list[Block] = [
        Text(
            "“Welds the steel frame” states no gender. The phrase WEAT asks whether the model's "
            "embedding of such phrases lies nearer the words for men or for women. Each theme sets "
            "phrases told of men against phrases told of women; in the neutral set nothing should "
            "differ. Centred means that the direction in which all of the model's embeddings point "
            "was taken away first."
        ),
        Figure.of(
            "masked-phrases",
            charts_masked_phrases.forest(effects),
            "How to read it: the dot is the effect size, the line its interval; right of the "
            "dashed line the phrases told of men lie nearer the words for men. 0.2 counts as "
            "small, 0.8 as large.",
            "Phrase WEAT: "
            + "; ".join(
                f"{m.query}{' centred' if m.details['centred'] else ' raw'} {number(m.value, 2)} "
                f"{interval(m.low, m.high, 2)}"
                for m in measured
            ),
        ),
        Table.of(
            "The themes",
            ("Theme", "Embeddings", "Effect size", f"{percent(measured[0].prob)} interval", "p",
             "p over the gender words", "Phrases"),
            (
                (
                    titles[m.query], "centred" if m.details["centred"] else "raw",
                    cell(m.value, 2), span(m.low, m.high, 2), p_cell(m.p_value),
                    p_cell(m.details["p_attributes"]), cell(float(m.n), 0),
                )
                for m in measured
            ),
        ),
    ]  # fmt: skip
    for found in results:
        if found.metric != CORRELATION or not found.select("phrases"):
            continue
        blocks += [
            Figure.of(
                "masked-phrases-pronouns",
                charts_masked_phrases.scatter(found),
                "How to read it: each mark is a phrase. The further right, the nearer its "
                "embedding is to the words for men; the higher, the more the model puts a male "
                "pronoun beside it.",
                f"Phrases by embedding and by pronoun: within groups r = "
                f"{number(found.value, 2)} {interval(found.low, found.high, 2)}, p "
                f"{p_relation(found.p_value)}.",
            ),
            _phrase_table(found.items),
        ]
    blocks += [Text(f"Note: {note}") for note in dict.fromkeys(n for m in results for n in m.notes)]
    return Section("masked-phrases", title, blocks)


def _phrase_table(items: Iterable[Mapping[str, Any]]) -> Table:
    return Table.of(
        "The phrases, one by one (association above 0: nearer the words for men; male pronoun: its "
        "share against the female one, mean over the carrier sentences)",
        ("Phrase", "Theme", "Side", "Association", "Male pronoun"),
        (
            (
                item["phrase"], item["set"], item["side"], cell(item["association"], 4),
                cell(item["bias"], 2),
            )
            for item in items
        ),
        words=True,
        folded=True,
    )  # fmt: skip
