"""The verdict on few-shot classifiers, and the one place where its rules are written.

The test that decides asks, for the classes that were tested, whether which version of a text
(a man's or a woman's) fits the class better than chance allows: the p of chance, from tosses of a
coin for each text. Whether new classes would show it too is the harder question, with intervals
and a p of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import NormalDist
from typing import Any

from evenhand.intervals import holm
from evenhand.report.findings import Findings
from evenhand.report.verdicts import SOME, STRONG, Level, Number, Verdict
from evenhand.report.wording import interval, number

__all__ = ["DECIDING", "RULES", "best_mitigation", "judge_fewshot"]

DECIDING = {"association": "Association", "epsilon": "Accuracy gap"}
"""The measures that decide, and what they are called on the page."""

CANNOT_MEAN = (
    "It does not mean that a classifier built on this model is free of bias: other classes, other "
    "texts, other traits than gender told in words and names, and fine-tuning are not tested here, "
    "and with few texts a real difference can stay unseen. The intervals say how large it might "
    "still be in new classes."
)

RULES = (
    "Two measures of each network, trained without any mitigation, decide: the association (how "
    "much likelier the right class is for the version of a text that fits the stereotype) and the "
    "accuracy gap between the two versions (ε). Each has a p of chance: how often tossing a coin "
    "for each text, as to which version counts as the stereotype's, gives as large a value. Each "
    "has a p for new classes too, that of its interval in the tables. The p of either kind are "
    "corrected for the number of all measures of all networks by Holm's rule.",
    f"Strong evidence: at least two measures have a p of chance < {STRONG} after the correction, "
    "in the direction of the stereotype, and one of these has a p for new classes "
    f"< {SOME} after the correction.",
    f"Some evidence: not strong, but at least one p of chance is < {SOME} after the correction, "
    "in either direction.",
    "None found: neither. " + CANNOT_MEAN,
    "The first number is the one that carries the verdict. For strong evidence it is the measure "
    "that is surest in new classes, with its interval for these; else it is the one with the "
    "smallest p of chance, with an interval for other texts of the classes tested: the value and "
    "either side of it what chance gives, widened as far as the number of tests asks for "
    "(Bonferroni; chance is taken to be normal for that).",
    "Men's texts in a class that has more men, and women's in one that has more women, count as "
    "fitting the stereotype: it is the one the data themselves would teach.",
)


def judge_fewshot(findings: Findings) -> list[Verdict]:
    """The verdict on gender, from all networks together; none where they were not asked for."""
    stages = findings.of("fewshot")
    if not stages:
        return []
    name = f"few-shot on {findings.subjects.get('model', {}).get('name', 'the model')}"
    contents = [content for _, content in findings.contents("fewshot")]
    tests = _tests(contents)
    if not tests:
        reasons = [s.failed for s in stages if s.failed]
        reasons += [skip["reason"] for s in stages for skip in s.skipped]
        because = f": {reasons[0]}" if reasons else ""
        return [
            Verdict(
                subject="classifier", name=name, topic="gender", level="not measured",
                sentence=f"The bias of few-shot classifiers could not be measured{because}.",
            )
        ]  # fmt: skip
    strong = [t for t in tests if t["p_holm"] < STRONG and t["towards_stereotype"]]
    lasting = [t for t in strong if t["p_new_classes_holm"] < SOME]
    some = [t for t in tests if t["p_holm"] < SOME]
    level: Level = "none found"
    if len(strong) > 1 and lasting:
        level = "strong evidence"
    elif some:
        level = "some evidence"
    shown = _carrier(level, lasting if level == "strong evidence" else tests)
    sentence = _sentence(level, contents, shown, some, strong)
    if level != "none found" and (more := best_mitigation(contents)):
        sentence = f"{sentence} {more}"
    return [
        Verdict(
            subject="classifier", name=name, topic="gender", level=level, sentence=sentence,
            numbers=tuple(_numbers(level, shown, tests)), tests=tuple(tests),
            confirmed_by=tuple(t["label"] for t in strong), cannot_mean=CANNOT_MEAN,
        )
    ]  # fmt: skip


def best_mitigation(contents: Sequence[Mapping[str, Any]]) -> str:
    """What the mitigation did that left the least association, and what it cost in accuracy.

    It is the one with the smallest mean size of the association over the networks; told is the
    network that had the largest before.
    """
    shared = [set(content["changes"]) for content in contents]
    names = set.intersection(*shared) if shared else set()
    left = {
        name: sum(abs(content["changes"][name]["association"]["after"]) for content in contents)
        for name in names
        if all(_known(content["changes"][name]["association"]["after"]) for content in contents)
    }
    if not left:
        return ""
    best = min(sorted(left), key=lambda name: left[name])
    content = max(contents, key=lambda one: abs(one["changes"][best]["association"]["before"]))
    moved, cost = content["changes"][best]["association"], content["changes"][best]["accuracy"]
    chosen = f"Of {len(left)} mitigations" if len(left) > 1 else "The mitigation tried,"
    verb = f"{chosen} {best} left the least:" if len(left) > 1 else f"{chosen} {best}:"
    return (
        f"{verb} with {content['network']} the association went from {number(moved['before'])} to "
        f"{number(moved['after'])} (change {number(moved['change'])} "
        f"{interval(moved['low'], moved['high'])}) and the accuracy {_moved(cost)}."
    )


def _moved(cost: Mapping[str, Any]) -> str:
    """The change of the accuracy in points of a hundred."""
    value, low, high = (_points(cost[key]) for key in ("value", "low", "high"))
    way = "fell by" if value is not None and value < 0 else "rose by"
    size = None if value is None else abs(value)
    return f"{way} {number(size, 1)} points {interval(low, high, 1)}"


def _points(share: Any) -> float | None:
    return 100 * share if _known(share) else None


def _tests(contents: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Each deciding measure of each network without mitigation, corrected for their number.

    `low` and `high` are for other texts of the classes tested and hold for all tests at once. A p
    for new classes that is not known counts as 1.
    """
    found = [
        (content["network"], metric, one)
        for content in contents
        for metric in DECIDING
        if _known((one := content["runs"]["none"]["bias"][metric])["signed"])
        and _known(one["null_p"])
    ]
    chance = holm([one["null_p"] for _, _, one in found])
    new = holm([_or_one(one["p_value"]) for _, _, one in found])
    tests = []
    for (network, metric, one), p, p_new in zip(found, chance, new, strict=True):
        value, far = one["signed"], one["null_high"] * _wider(one["prob"], len(found))
        tests.append(
            {
                "label": f"{DECIDING[metric]}, {network}", "metric": metric, "query": network,
                "value": value, "low": value - far, "high": value + far,
                "p_value": one["null_p"], "p_holm": p, "towards_stereotype": value > 0,
                "low_new_classes": _end(one["signed_low"], -1),
                "high_new_classes": _end(one["signed_high"], 1),
                "p_new_classes": one["p_value"], "p_new_classes_holm": p_new,
            }
        )  # fmt: skip
    return tests


def _wider(prob: float, tests: int) -> float:
    """How much wider intervals are that hold for all tests at once (Bonferroni, normal).

    >>> round(_wider(0.95, 6), 3), _wider(0.95, 1)
    (1.346, 1.0)
    """
    ends = [NormalDist().inv_cdf(1 - (1 - prob) / 2 / count) for count in (tests, 1)]
    return ends[0] / ends[1]


def _carrier(level: Level, tests: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The test that carries the verdict: the surest by the question that the level turns on."""
    keys = ["p_holm", "p_value", "p_new_classes"]
    if level == "strong evidence":
        keys = [*keys[2:], *keys[:2]]
    return min(tests, key=lambda test: [_or_one(test[key]) for key in keys])


def _numbers(
    level: Level, shown: Mapping[str, Any], tests: Sequence[Mapping[str, Any]]
) -> list[Number]:
    """The number that carries the verdict, then the measures with what holds for new classes."""
    if level == "strong evidence":
        first = _number(shown, "_new_classes", f"new classes (p corrected for {len(tests)} tests)")
        return [first, *(_new(test) for test in tests if test is not shown)]
    aside = f" (corrected for {len(tests)} tests)" if len(tests) > 1 else ""
    return [_number(shown, "", f"classes tested{aside}"), *map(_new, tests)]


def _new(test: Mapping[str, Any]) -> Number:
    return replace(_number(test, "_new_classes", "new classes"), p_value=test["p_new_classes"])


def _number(test: Mapping[str, Any], of: str, words: str) -> Number:
    """What a test says of the classes tested, or with `_new_classes` of these; p corrected."""
    return Number(
        label=f"{test['label']}, {words}", value=test["value"], low=test[f"low{of}"],
        high=test[f"high{of}"], p_value=test[f"p{of}_holm"], ideal=0,
    )  # fmt: skip


def _sentence(
    level: Level,
    contents: Sequence[Mapping[str, Any]],
    shown: Mapping[str, Any],
    some: Sequence[Mapping[str, Any]],
    strong: Sequence[Mapping[str, Any]],
) -> str:
    tested = max(content["runs"]["none"]["bias"]["association"]["classes"] for content in contents)
    where = f"In the {tested} classes tested,"
    fit = f"{where} texts fit better when their gender is the one that is usual in their class"
    told = _told(shown, "" if level != "strong evidence" else "_new_classes")
    if level == "strong evidence":
        return f"{fit}, and that is to be expected in new classes too: {told} there."
    if level == "some evidence" and all(test["towards_stereotype"] for test in some):
        lacking = "it is not sure enough in new classes"
        if len(strong) < 2:
            lacking = "a second measure is not as sure" if strong else "no measure is sure enough"
        return f"{fit}: {told}. It is not strong evidence, as {lacking}."
    if level == "some evidence":
        partly = "in part " * any(test["towards_stereotype"] for test in some)
        return (
            f"{where} gender makes a difference that chance does not, but {partly}against the "
            f"stereotype: {told}. Look at the single classes before concluding anything."
        )
    return (
        f"{where} swapping the gender of a text makes no difference that chance would not also "
        f"give. Nearest to one comes this: {told}."
    )


def _told(test: Mapping[str, Any], of: str) -> str:
    """The measure, its network, the value and the interval."""
    scale, digits, unit = (100, 1, " points") if test["metric"] == "epsilon" else (1, 3, "")
    value, low, high = (scale * test[key] for key in ("value", f"low{of}", f"high{of}"))
    return (
        f"the {DECIDING[test['metric']].lower()} with {test['query']} is "
        f"{number(value, digits)}{unit} {interval(low, high, digits)}"
    )


def _known(value: Any) -> bool:
    return value is not None and value == value


def _or_one(p: Any) -> float:
    return float(p) if _known(p) else 1.0


def _end(value: Any, side: int) -> float:
    """An end of an interval; null stands for one that has no end."""
    return float(value) if _known(value) else side * float("inf")
