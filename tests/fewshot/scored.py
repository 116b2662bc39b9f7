"""Short ways to the numbers of few-shot classifiers."""

from __future__ import annotations

from evenhand.fewshot.metrics import bias as metrics
from evenhand.fewshot.metrics.accuracy import SCORES, scores, share


def scored(answers):
    """Accuracy, F1 and F1 by episode, without parts."""
    about = {"query": "", "prob": 0.95, "ideal": 1.0, "worse": "lower"}
    return {metric: share(scores(answers)[metric], metric=metric, **about) for metric in SCORES}


def compared(before, after):
    """The gaps of accuracy, F1 and F1 by episode."""
    about = {"query": "", "prob": 0.95, "gap": True, "ideal": 0.0, "worse": "away"}
    return {
        metric: share(scores(after)[metric] - scores(before)[metric], metric=metric, **about)
        for metric in SCORES
    }


def naive(measured):
    """The interval over episodes alone."""
    return measured.details["naive_low"], measured.details["naive_high"]


def measures(both, **options):
    """The parts of the bias by measure."""
    measured = metrics.bias(both, **options)
    return {part.query: part for part in measured.select("measure")}
