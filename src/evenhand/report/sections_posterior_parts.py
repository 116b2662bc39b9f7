"""What stands in a topic's part on how sure one can be: its figures and tables."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from evenhand.errors import InputError
from evenhand.posterior.checks import Check
from evenhand.posterior.tables import Table as Distances
from evenhand.posterior.tables import read_table
from evenhand.report import charts_posterior as forests
from evenhand.report import charts_posterior_data as pictures
from evenhand.report.blocks import Block, Cell, Figure, Table, Text, cell, span
from evenhand.report.charts_posterior_calibration import calibration, calibration_rows
from evenhand.report.charts_posterior_parts import forest_row, probability
from evenhand.report.charts_posterior_sets import telling_words
from evenhand.report.wording import interval, number, percent
from evenhand.vectors.distances import DistanceTable

__all__ = [
    "change_blocks", "contrast_blocks", "distance_blocks", "trust_blocks", "word_blocks",
]  # fmt: skip

Content = Mapping[str, Any]
MODELS = {"crossed": "our model", "coefficients": "published model"}
FOREST = (
    "How to read it: the dot is the mean, the thick line holds the true value with a probability "
    "of 50 %, the thin line with {}; a thin line clear of the dashed one speaks for a difference, "
    "one across it leaves the question open."
)
CHANGED = (
    "Hard debiasing makes the words of a defining set equal to each other in everything but the "
    "bias direction, so the difference becomes 0, or nearly so, by construction. That is no "
    "success: whether bias is still hidden elsewhere is for the tests of hidden bias to say."
)


def contrast_blocks(content: Content, name: str, title: str) -> list[Block]:
    """The contrasts of our model, beside those of the published one."""
    values = [
        forest_row(found, label=forests.minus(key), series=series)
        for series, of in ((forests.CROSSED, "contrasts"), (forests.NAIVE, "naive_contrasts"))
        for key, found in content[of].items()
    ]
    spoken = "; ".join(f"{forests.minus(k)} {_said(s)}" for k, s in content["contrasts"].items())
    return [
        Figure.of(
            f"posterior-contrasts-{name}", forests.contrast_forest(values, title, content["prob"]),
            _forest(content) + " Only the first row compares the same words with both classes, "
            "the others compare different words, which can differ for reasons that are no bias; "
            "the grey squares are what a published model (Dobrzeniecka 2021) claims, which takes "
            "all distances as independent.",
            f"Forest plot of differences of mean cosine distance for {title}: {spoken}.",
        ),
        Table.of(
            "Differences of mean cosine distance (associated: stereotypes of the word's own class; "
            "different: of another class; human: words about people; none: neutral words)",
            ("Difference", "Model", *_headers(content)),
            (
                (forests.minus(key), model, *_cells(found))
                for model, of in (("ours", "contrasts"), ("published", "naive_contrasts"))
                for key, found in content[of].items()
            ),
        ),
    ]  # fmt: skip


def word_blocks(content: Content, name: str, title: str) -> list[Block]:
    """δ of each class and of each protected word."""
    words = [forest_row(w, label=w["word"], group=w["class"], series=forests.WORD)
             for w in content["words"]]  # fmt: skip
    classes = [forest_row(c, label="all of them", group=c["class"], series=forests.MEAN_OF)
               for c in content["classes"]]  # fmt: skip
    if not words:
        return []
    spoken = "; ".join(f"{c['class']} {_said(c)}" for c in content["classes"])
    return [
        Figure.of(
            f"posterior-words-{name}",
            forests.delta_forest(words, classes, title, content["prob"]),
            _forest(content) + " Each row is a protected word and says how much nearer the "
            "stereotypes of its class lie to it than to the words of other classes; a word of "
            "which the data say little is drawn towards the others.",
            f"Forest plot of the difference for each protected word of {title}. Means of the "
            f"classes: {spoken}.",
        ),
        Table.of(
            "The difference for each class and each protected word",
            ("Word", "Class", *_headers(content)),
            (
                (one["word"] or "all of them", one["class"] or "not told", *_cells(one))
                for one in (*content["classes"], *content["words"])
            ),
            words=True, folded=True,
        ),
    ]  # fmt: skip


def distance_blocks(
    content: Content, name: str, title: str, *, densities: bool, seed: int
) -> list[Block]:
    """Radial pictures of two telling words; the densities where they stand nowhere else."""
    table = _distances(content["distances"])
    blocks: list[Block] = []
    if densities:
        blocks += _densities(table, name, title)
    for place, word in enumerate(telling_words(table), 1):
        mine = table.select_words([word])
        own = sorted(
            (float(d), told)
            for d, k, told in zip(
                mine.distance, mine.connection,
                (mine.attributes[j] for j in mine.attribute), strict=True,
            )
            if k == 0
        )  # fmt: skip
        blocks.append(
            Figure.of(
                f"posterior-radial-{place}-{name}", pictures.radial(table, word, seed=seed),
                "How to read it: of all protected words the one in the centre has its own "
                f"stereotypes {'nearest' if place == 1 else 'farthest'}, beside those of other "
                "classes; the nearer a mark is to the centre, the nearer the word is in the "
                "vectors. The direction means nothing, and of the control words only a few are "
                "shown, drawn at random.",
                f"Radial picture of {word}. Stereotypes of its class, nearest first: "
                + ", ".join(f"{told} {number(d)}" for d, told in own) + ".",
            )
        )  # fmt: skip
    return blocks


def _densities(table: Distances, name: str, title: str) -> list[Block]:
    try:
        chart = pictures.densities(table)
    except InputError:  # too few different distances for a curve
        return []
    return [
        Figure.of(
            f"posterior-densities-{name}", chart,
            "How to read it: each curve shows how far the protected words are from one kind of "
            "word, further left being nearer. Single distances spread widely: curves can overlap "
            "and their means still differ.",
            f"Densities of cosine distance by kind of word for {title}.",
        )
    ]  # fmt: skip


def trust_blocks(content: Content, name: str) -> list[Block]:
    """Whether the model makes data like these, whether its intervals hold, whether it converged."""
    checks = {
        MODELS[model]: [Check(**{key: _number(c[key]) for key in Check.__slots__}) for c in found]
        for model, found in content["checks"].items()
    }
    blocks: list[Block] = []
    try:
        chart = forests.checks(checks)
    except InputError:  # no attribute recurs
        chart = None
    if chart is not None:
        blocks.append(
            Figure.of(
                f"posterior-check-{name}", chart,
                "How to read it: a word that is far from one protected word is often far from all "
                "of them. The dashed line says how much so in the data, each row how much so in "
                "tables that a model makes: a model whose line misses the dashed one cannot have "
                "made the data, and its ranges are not to be trusted.",
                "Correlation of the distances of an attribute, in the data and by model: "
                + "; ".join(
                    f"{model}: data {number(c.observed)}, model {interval(c.low, c.high)}"
                    for model, found in checks.items() for c in found
                    if c.statistic.startswith("intra-class")
                ) + ".",
            )
        )  # fmt: skip
    if content["calibration"]:
        blocks += _calibration(content, name)
    blocks.append(_diagnostics(content))
    return blocks


def _calibration(content: Content, name: str) -> list[Block]:
    found, prob = content["calibration"], content["prob"]
    values = calibration_rows(found, prob)
    return [
        Figure.of(
            f"posterior-calibration-{name}", calibration(found, prob),
            "How to read it: tables with as many words as this one were made with a known truth "
            "and given to the model. The dot is the share of them in which the range held the "
            "truth, raised a false alarm, or found a difference that was there. The line should "
            "reach the upright stroke or lie on its safe side: more truths held, fewer alarms.",
            "Shares of simulated tables: "
            + "; ".join(f"{row['label']} {_share(row)}" for row in values) + ".",
        ),
        Table.of(
            f"What the range does on {found[0]['tables']} simulated tables each",
            ("On tables with", "Share", "95 % interval", "Promised"),
            (
                (
                    row["label"], Cell(percent(row["value"]), row["value"]),
                    Cell(f"{percent(row['low'])} to {percent(row['high'])}", row["low"]),
                    "–" if row["promised"] is None else Cell(
                        percent(row["promised"]), row["promised"]),
                )
                for row in values
            ),
            folded=True,
        ),
    ]  # fmt: skip


def _share(row: Mapping[str, Any]) -> str:
    return f"{percent(row['value'])} ({percent(row['low'])} to {percent(row['high'])})"


def _diagnostics(content: Content) -> Table:
    change = content["change"]
    every = {**content["diagnostics"], **(change["diagnostics"] if change else {})}
    return Table.of(
        "Whether the random draws can be trusted (R-hat, the agreement of the chains of draws: 1 "
        "is perfect, 1.01 still good; effective draws: some hundred at least)",
        ("Model of", "R-hat, the worst", "Effective draws, the fewest", "Of"),
        (
            (of, cell(found["rhat_max"]), cell(found["ess_min"], 0), found["worst"])
            for of, found in every.items()
        ),
        folded=True,
    )


def change_blocks(content: Content, name: str, title: str) -> list[Block]:
    """The contrasts before and after hard debiasing, where that could be had."""
    change = content["change"]
    if not change:
        return []
    rows = [(key, when, found) for key, times in change["contrasts"].items()
            for when, found in times.items()]  # fmt: skip
    values = [forest_row(found, label=forests.minus(key), series=when) for key, when, found in rows]
    first = next(iter(change["contrasts"].values()))
    alike = f" Made alike: {', '.join(change['equalised'])}." if change["equalised"] else ""
    return [
        Text(CHANGED + alike),
        Figure.of(
            f"posterior-change-{name}", forests.change_forest(values, content["prob"]),
            _forest(content) + " The change is measured on the same pairs of words, so its line "
            "is the one to go by.",
            f"Forest plot for {title}, own class less others: "
            + "; ".join(f"{when} {_said(found)}" for when, found in first.items()) + ".",
        ),
        Table.of(
            "Differences before and after hard debiasing",
            ("Difference", "When", *_headers(content)),
            ((forests.minus(key), when, *_cells(found)) for key, when, found in rows),
            folded=True,
        ),
    ]  # fmt: skip


def _headers(content: Content) -> Iterable[str]:
    return ("Mean", f"{percent(content['prob'])} range", "Probability of being below 0")


def _cells(found: Mapping[str, float]) -> Iterable[Cell]:
    p = found["p_below_zero"]
    return cell(found["mean"]), span(found["low"], found["high"]), Cell(probability(p), p)


def _said(found: Mapping[str, float]) -> str:
    return f"{number(found['mean'])} {interval(found['low'], found['high'])}"


def _forest(content: Content) -> str:
    return FOREST.format(percent(content["prob"]))


def _number(value: Any) -> Any:
    """JSON has no nan: null stands for it."""
    return float("nan") if value is None else value


def _distances(saved: Mapping[str, Any]) -> Distances:
    """The saved distances as a table."""
    names: dict[str, Any] = {
        key: tuple(value) for key, value in saved.items() if key not in ("topic", "distance")
    }
    matrix = np.array([line.split() for line in saved["distance"]], dtype=float)
    return read_table(DistanceTable(topic=saved["topic"], distance=matrix, **names))
