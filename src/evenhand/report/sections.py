"""The sections on what was measured: topics, published tests, the geometry of the vectors."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand import lexicon
from evenhand.lexicon import Topic
from evenhand.report import charts_tests, charts_topic
from evenhand.report.blocks import (
    Block,
    Cell,
    Figure,
    Section,
    Table,
    Text,
    cell,
    p_cell,
    span,
)
from evenhand.report.findings import Findings
from evenhand.report.methods import label, row_label
from evenhand.report.tables import slug
from evenhand.report.wording import interval, number, percent
from evenhand.results import Measurement
from evenhand.vectors.distances import DistanceTable

__all__ = ["ARROWS", "published_tests", "topic_sections", "vector_geometry"]

EXPLAINED = (
    "Word vectors place words used alike near each other. Protected words name a group, such as "
    "“she” or “mosque”; stereotypes are words that are told of a group. Is a stereotype nearer "
    "the words of its own group than those of the others? The association contrast asks just that "
    "and decides the verdict together with WEAT and the projections. The other measures are those "
    "of published studies, for comparison: the methods in the appendix say what each of them asks "
    "and by which formula."
)

ARROWS = {"higher": "above", "lower": "below", "away": "either side"}


def topic_sections(findings: Findings) -> Section:
    """A part for each topic: its measures, distances, occupations and words."""
    parts = [_topic(findings, topic) for topic in findings.topics]
    shown = [part for part in parts if part.blocks]
    blocks = [Text(EXPLAINED)] if shown else []
    return Section("topics", "Word vectors: what was measured", blocks, shown)


def _topic(findings: Findings, topic: Topic) -> Section:
    measured = findings.measured("measures", topic.name)
    name = slug(topic.name)
    blocks: list[Block] = []
    if measured:
        blocks += [
            Figure.of(
                f"forest-{name}",
                charts_topic.forest(measured, topic.name),
                "How to read it: the dot is the value, the line its interval, the dashed line the "
                "measure's ideal; the grey band holds the middle 95 % of the values that random "
                "words of like frequency give: a value inside it is what chance reads (measures "
                "with a test of their own have no band).",
                f"Forest plot of {len(measured)} measures for {topic.title}: "
                + "; ".join(_spoken(m, topic.name) for m in measured),
            ),
            _measures_table(measured, topic),
        ]
    for stage in findings.of("measures", topic.name):
        if stage.distances is not None:
            blocks.append(_density(stage.distances, topic, measured))
        blocks += [
            Text(f"Not measured: {label(s['metric'])}, {s['query']}: {s['reason']}", "warning")
            for s in stage.skipped
        ]
    blocks += [_occupations(m, name) for m in measured if m.metric == "projections"]
    if measured:
        blocks.append(_words(measured, topic))
    return Section(f"topic-{name}", topic.title, blocks)


def _spoken(m: Measurement, topic: str) -> str:
    return f"{row_label(m, topic)} {number(m.value)} {interval(m.low, m.high)}"


def _measures_table(measured: Sequence[Measurement], topic: Topic) -> Table:
    return Table.of(
        f"Measures of {topic.title}",
        ("Measure", "Value", f"{percent(measured[0].prob)} interval", "p",
         "Random words give", "Ideal", "More bias lies", "Words", "Left out"),
        (
            (
                row_label(m, topic.name), cell(m.value), span(m.low, m.high),
                p_cell(m.p_value), _null(m), cell(m.ideal, 0),
                ARROWS[m.worse], cell(float(m.n), 0), ", ".join(m.left_out) or "none",
            )
            for m in measured
        ),
    )  # fmt: skip


def _null(m: Measurement) -> Cell:
    if "null_median" not in m.details:
        return Cell("–")
    median = m.details["null_median"]
    band = interval(m.details["null_low"], m.details["null_high"])
    return Cell(f"{number(median)} {band}", median)


def _density(table: DistanceTable, topic: Topic, measured: Sequence[Measurement]) -> Figure:
    found = next((m.details for m in measured if m.metric == "association"), {})
    means = [
        f"{words} {number(found[f'mean_{kind}'])}"
        for kind, words in charts_topic.CONNECTIONS.items()
        if f"mean_{kind}" in found
    ]
    return Figure.of(
        f"distances-{slug(topic.name)}",
        charts_topic.density(table),
        "How to read it: each curve shows how far the protected words are from one kind of word; "
        "a curve further to the left means nearer. Without bias the curves for stereotypes of the "
        "own and of another class lie on each other.",
        f"Densities of cosine distance for {topic.title}. Means: {', '.join(means)}.",
    )


def _occupations(m: Measurement, name: str) -> Figure:
    ordered = sorted(m.items, key=lambda item: item["score"])
    lowest = ", ".join(item["word"] for item in ordered[:5])
    highest = ", ".join(item["word"] for item in reversed(ordered[-5:]))
    return Figure.of(
        f"occupations-{name}",
        charts_topic.occupations(m),
        "How to read it: each dot is an occupation on the line between the two words at the ends; "
        "without bias dots of both kinds lie mixed around the dashed line. The mean difference is "
        f"{number(m.value)} {interval(m.low, m.high)}.",
        f"Projections of {m.n} occupations. Nearest one end: {lowest}; the other: {highest}.",
    )


def _words(measured: Sequence[Measurement], topic: Topic) -> Table:
    shown = ("association", "direct_bias", "same")
    scores: dict[str, dict[str, float]] = {}
    for m in measured:
        if m.metric in shown:
            for item in m.items:
                if item.get("axis") == "protected":
                    continue
                scores.setdefault(item["word"], {})[m.metric] = item["score"]
    classes = {word: name for name in topic.classes for word in topic.attributes(name)}
    return Table.of(
        "Stereotype words one by one (association: distance to the own class minus distance to "
        "the others, below 0 means nearer the own class)",
        ("Word", "Told of", *(label(metric) for metric in shown)),
        (
            (word, classes.get(word, ""), *(cell(found.get(metric)) for metric in shown))
            for word, found in sorted(scores.items())
        ),
        words=True,
    )


def published_tests(findings: Findings) -> Section:
    """WEAT, WEFAT and analogies."""
    parts = [_weat(findings), _wefat(findings), _analogies(findings)]
    shown = [part for part in parts if part.blocks]
    return Section("published", "Word vectors: published tests", parts=shown)


def _weat(findings: Findings) -> Section:
    measured = findings.measured("weat")
    titles = {query.name: query.title for query in lexicon.weat_queries()}
    by = {(m.metric, m.query): m for m in measured}
    tests = [m for m in measured if m.metric == "weat"]
    blocks: list[Block] = []
    if tests:
        blocks += [
            Text(
                "The ten tests of Caliskan, Bryson and Narayanan. The first two are about flowers, "
                "insects, instruments and weapons: they show what a strong, harmless association "
                "looks like."
            ),
            Figure.of(
                "weat",
                charts_tests.weat_forest(measured, titles),
                "How to read it: the dot is the effect size, the blue line its interval; the grey "
                "band spans the effect sizes with any one word left out, so a wide band means that "
                "single words carry the result.",
                "Forest plot of WEAT 1 to 10: "
                + "; ".join(f"{titles.get(m.query)} {number(m.value, 2)}" for m in tests),
            ),
            Table.of(
                "WEAT 1 to 10 (d: effect size; p: by shuffling the words of the first two lists, "
                "over attributes: of the other two; halves: the middle 95 % of d with half of each "
                "list, and how often it keeps its sign)",
                ("Test", "d", "Interval", "p", "p over attributes", "One word left out",
                 "Random halves", "Halves on the same side", "Words", "Left out"),
                (
                    (
                        f"{m.query.removeprefix('weat-')}. {titles.get(m.query, m.query)}",
                        cell(m.value, 2), span(m.low, m.high, 2), p_cell(m.p_value),
                        p_cell(m.details.get("p_attributes")),
                        _range(by.get(("leave_one_out(weat)", m.query))),
                        _range(by.get(("split_half(weat)", m.query))),
                        _same_side(by.get(("split_half(weat)", m.query))),
                        cell(float(m.n), 0), ", ".join(m.left_out) or "none",
                    )
                    for m in tests
                ),
            ),
        ]  # fmt: skip
    return Section("weat", "Word association tests (WEAT)", [*blocks, *_skipped(findings, "weat")])


def _range(m: Measurement | None) -> Cell:
    return Cell("–") if m is None else span(m.low, m.high, 2)


def _same_side(m: Measurement | None) -> Cell:
    share = None if m is None else m.details["same_side"]
    return Cell("–" if share is None else percent(share), share)


def _wefat(findings: Findings) -> Section:
    measured = findings.measured("wefat")
    titles = {query.name: query.title for query in lexicon.wefat_queries()}
    blocks: list[Block] = []
    if measured:
        blocks = [
            Figure.of(
                "wefat",
                charts_tests.wefat_scatter(measured, titles),
                "How to read it: each dot is a word, placed by the share of women and by its tie "
                "to women's or men's words; a rising line means that the vectors mirror the fact. "
                "The vectors then repeat how things are; whether a program may use that is another "
                "question.",
                "Scatter plots: "
                + "; ".join(
                    f"{titles.get(m.query, m.query)}: r {number(m.value, 2)} "
                    f"{interval(m.low, m.high, 2)}"
                    for m in measured
                ),
            ),
            Table.of(
                "Words and facts (score above 0: nearer women's words)",
                ("Word", "List", "Percent women", "Score"),
                (
                    (item["word"], titles.get(m.query, m.query), cell(item["fact"], 1),
                     cell(item["score"], 2))
                    for m in measured
                    for item in m.items
                ),
                words=True, folded=True,
            ),
        ]  # fmt: skip
    return Section(
        "wefat", "Associations and facts (WEFAT)", [*blocks, *_skipped(findings, "wefat")]
    )


def _analogies(findings: Findings) -> Section:
    measured = findings.measured("analogies")
    probes = [m for m in measured if m.metric == "analogies"]
    controls = [m for m in measured if m.metric == "analogy_accuracy"]
    blocks: list[Block] = []
    if probes:
        blocks += [
            Text(
                "“he is to doctor as she is to …” is usually asked with the three words barred "
                "from the answer. The answer “doctor” is then impossible, and whatever comes looks "
                "like bias. Here both answers stand side by side."
            ),
            Table.of(
                "How often the word itself is the best answer if it may be given",
                ("Pair", "Share", "Interval", "Questions"),
                ((m.query, cell(m.value, 2), span(m.low, m.high, 2), cell(float(m.n), 0))
                 for m in probes),
            ),
            Table.of(
                "All questions: a is to the word as c is to …",
                ("Word", "a → c", "Best answer, inputs allowed", "Best answer, inputs barred"),
                ((item["word"], item["group"], item["allowed"], item["barred"])
                 for m in probes for item in m.items),
                words=True, folded=True,
            ),
        ]  # fmt: skip
    if controls:
        blocks.append(
            Table.of(
                "Analogies with one right answer, as a check that the vectors can do them at all",
                ("Relation", "Share right", "Interval", "Questions"),
                ((m.query, cell(m.value, 2), span(m.low, m.high, 2), cell(float(m.n), 0))
                 for m in controls),
            )
        )  # fmt: skip
    return Section("analogies", "Analogies", [*blocks, *_skipped(findings, "analogies")])


def _skipped(findings: Findings, kind: str) -> list[Text]:
    return [
        Text(f"Not measured: {skip['query']}: {skip['reason']}", "warning")
        for stage in findings.of(kind)
        for skip in stage.skipped
    ]


def vector_geometry(findings: Findings) -> Section:
    """The dimension experiment: what a cosine is worth."""
    blocks = [
        Figure.of(
            "dimension",
            charts_tests.dimension(m, int(findings.subjects["vectors"]["dim"])),
            "How to read it: the more dimensions, the narrower the cosines of random vectors lie "
            "around their mean, so the same cosine counts for more. The slope for normal "
            f"coordinates is {number(m.value)} {interval(m.low, m.high)}; theory says −0.5.",
            f"Standard deviation of random cosines against dimension, slope {number(m.value)}.",
        )
        for m in findings.measured("dimension")
    ]
    explained = Text(
        "How large is a cosine of 0.3? That depends on how many numbers a vector has. These are "
        "cosines of vectors drawn at random, which mean nothing: what they reach by chance is the "
        "scale for those above."
    )
    return Section(
        "dimension", "Word vectors: what a cosine is worth", [explained, *blocks] if blocks else []
    )
