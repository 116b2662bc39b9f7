"""The section on how sure one can be: what the Bayesian model says of each topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from evenhand.report.blocks import Block, Section, Text
from evenhand.report.charts_posterior_parts import probability
from evenhand.report.findings import Findings
from evenhand.report.sections_posterior_parts import (
    change_blocks,
    contrast_blocks,
    distance_blocks,
    trust_blocks,
    word_blocks,
)
from evenhand.report.tables import slug
from evenhand.report.verdicts import SOME, Number
from evenhand.report.wording import interval, number, p_relation, percent

__all__ = ["posterior_numbers", "posterior_section"]

TITLE = "Word vectors: how sure can we be?"
DELTA = "associated-different"
RHAT, ESS = 1.01, 400
"""Above this R-hat, or below so many effective draws, draws are not to be trusted."""


def posterior_section(findings: Findings) -> Section:
    """A part for each topic that was modelled."""
    parts = [_topic(findings, topic.name, topic.title) for topic in findings.topics]
    shown = [part for part in parts if part.blocks]
    return Section("posterior", TITLE, _intro(findings) if shown else [], shown)


def posterior_numbers(findings: Findings, topic: str) -> tuple[Number, ...]:
    """The contrast for a verdict on the vectors; none where its draws are not to be trusted."""
    content = _content(findings, topic)
    if content is None or not _trusted(content["diagnostics"]):
        return ()
    delta = content["contrasts"][DELTA]
    return (
        Number(
            label="Bayesian contrast, own class less others, which does not decide (probability "
            f"that stereotypes lie nearer their own class: {probability(delta['p_below_zero'])})",
            value=delta["mean"], low=delta["low"], high=delta["high"], ideal=0.0,
        ),
    )  # fmt: skip


def _content(findings: Findings, topic: str) -> Mapping[str, Any] | None:
    found = (c for stage, c in findings.contents("posterior") if stage.topic == topic)
    return next(found, None)


def _trusted(diagnostics: Mapping[str, Mapping[str, Any]]) -> bool:
    return not _doubts(diagnostics)


def _doubts(diagnostics: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What of the draws is not to be trusted, in words; a number that is missing is a doubt."""
    return [
        f"{name}: R-hat is {number(found['rhat_max'])} (good: at most {RHAT}), the effective "
        f"number of draws {number(found['ess_min'], 0)} (good: at least {ESS}), the worst being "
        f"{found['worst']}"
        for name, found in diagnostics.items()
        if not ((found["rhat_max"] or 9) <= RHAT and (found["ess_min"] or 0) >= ESS)
    ]


def _intro(findings: Findings) -> list[Block]:
    level = percent(findings.settings["prob"])
    blocks: list[Block] = [
        Text(
            "A Bayesian model of the cosine distances is asked one question for each topic: does a "
            "stereotype lie nearer the words of the class it is told of than the words of other "
            "classes? It sets the same stereotype against both, so a word that is far from "
            "everything does not count. Below 0 means nearer the own class, as the stereotype says."
        ),
        Text(
            "The answer is a range, not a single number. If the model is right, the true "
            f"difference lies in the range with a probability of {level}. The range speaks of "
            "words like these: how the difference would come out with other protected words and "
            "other stereotypes of the same kind. It does not speak of other vectors, nor of harm "
            "in what is built on them."
        ),
    ]
    modelled = [stage.topic for stage in findings.of("posterior")]
    left = [topic.title for topic in findings.topics if topic.name not in modelled]
    if left:
        blocks.append(Text(f"Not modelled in a quick audit: {', '.join(left)}."))
    return blocks


def _topic(findings: Findings, topic: str, title: str) -> Section:
    name = slug(topic)
    blocks: list[Block] = []
    content = _content(findings, topic)
    if content is not None:
        delta = content["contrasts"][DELTA]
        blocks.append(Text(" ".join((_answer(delta), *_tested(findings, topic, delta)))))
        blocks += _warnings(content)
        blocks += contrast_blocks(content, name, title)
        blocks += word_blocks(content, name, title)
        drawn = any(stage.distances is not None for stage in findings.of("measures", topic))
        blocks += distance_blocks(
            content, name, title, densities=not drawn, seed=findings.run["seed"]
        )
        blocks += trust_blocks(content, name)
        blocks += change_blocks(content, name, title)
        blocks.append(Text(_basis(content)))
    blocks += [
        Text(f"Not measured: {skip['metric']}: {skip['reason']}", "warning")
        for stage in findings.of("posterior", topic)
        for skip in stage.skipped
    ]
    return Section(f"posterior-{name}", f"{title}, modelled", blocks)


def _answer(delta: Mapping[str, float]) -> str:
    """The finding in plain words."""
    chance = f"The probability that they lie nearer at all is {probability(delta['p_below_zero'])}."
    size = number(abs(delta["mean"]))
    if delta["high"] < 0:
        return (
            f"Stereotypes lie nearer their own class, by {size} of cosine distance; plausible are "
            f"{number(-delta['high'])} to {number(-delta['low'])}. {chance}"
        )
    if delta["low"] > 0:
        return (
            f"Stereotypes lie farther from their own class than from the others, by {size} of "
            f"cosine distance; plausible are {number(delta['low'])} to {number(delta['high'])}. "
            "That is against the stereotype: look at the single words."
        )
    return (
        "Whether stereotypes lie nearer their own class stays open: the difference is "
        f"{number(delta['mean'])} {interval(delta['low'], delta['high'])}, and 0 is among the "
        f"plausible values. {chance} Open is not the same as none: a difference anywhere in that "
        "range fits the distances."
    )


def _tested(findings: Findings, topic: str, delta: Mapping[str, float]) -> list[str]:
    """What to make of a range clear of 0 where the test that decides is not clear."""
    measured = findings.measured("measures", topic)
    found = next((m for m in measured if m.metric == "association"), None)
    clear = delta["high"] < 0 or delta["low"] > 0
    if found is None or found.p_value is None or found.p_value < SOME or not clear:
        return []
    return [
        "The association contrast, which shuffles the words and needs no such model, is not clear "
        f"({number(found.value)} {interval(found.low, found.high)}, p {p_relation(found.p_value)})."
        " The verdict follows that test; take this range for a hint."
    ]


def _warnings(content: Mapping[str, Any]) -> list[Block]:
    found: list[Block] = [
        Text(
            f"Do not conclude from these numbers: the draws are not to be trusted for {doubt}. "
            "The contrast is left out of the verdict. Another seed may help; more words do.",
            "warning",
        )
        for doubt in _doubts(content["diagnostics"])
    ]
    change = content["change"]
    found += [
        Text(f"Before and after: the draws are not to be trusted for {doubt}.", "warning")
        for doubt in _doubts(change["diagnostics"] if change else {})
    ]
    missed = [
        check["statistic"]
        for check in content["checks"]["crossed"]
        if check["observed"] is not None and not check["passed"]
    ]
    if missed:
        found.append(
            Text(
                "Tables made by the model are not like the data in: "
                f"{', '.join(missed)}. Take the ranges as rough.",
                "warning",
            )
        )
    return found


def _basis(content: Mapping[str, Any]) -> str:
    dropped = sum(content["dropped"].values())
    left_out = content["left_out"]
    return (
        f"Rests on {content['rows']:,} distances of {content['protected']} protected words to "
        f"{content['attributes']} others, {content['stereotypes']} of them stereotypes; "
        f"{content['draws']:,} draws. "
        + (f"{dropped:,} distances were dropped. " if dropped else "")
        + (f"Without a vector: {', '.join(left_out)}." if left_out else "No word lacks a vector.")
    )
