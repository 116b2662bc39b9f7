"""Short ways to the numbers of few-shot classifiers."""

from __future__ import annotations

from evenhand.fewshot.metrics import bias as metrics
from evenhand.fewshot.metrics.accuracy import SCORES, scores, share
from evenhand.instruments import Run


def scored(answers):
    """Accuracy, F1 and F1 by episode, without parts."""
    run = Run()
    return {metric: share(scores(answers)[metric], run, "", metric=metric) for metric in SCORES}


def compared(before, after):
    """The gaps of accuracy, F1 and F1 by episode."""
    run = Run()
    return {
        metric: share(
            scores(after)[metric] - scores(before)[metric], run, "", metric=metric, gap=True
        )
        for metric in SCORES
    }


def naive(measured):
    """The interval over episodes alone."""
    return measured.details["naive_low"], measured.details["naive_high"]


def measures(both, seed=0, prob=0.95, **options):
    """The parts of the bias by measure."""
    measured = metrics.Bias(**options)(both, seed=seed, prob=prob)
    return {part.query: part for part in measured.select("measure")}
