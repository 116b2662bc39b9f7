"""Metrics of word vectors on plain lists of words, and the odds of a table."""

from evenhand.instruments import Run
from evenhand.lexicon import AnalogyQuestions as Questions
from evenhand.lexicon import Query, WefatQuery
from evenhand.text.metrics.odds import Odds
from evenhand.text.tables import Corpus
from evenhand.vectors import (
    Analogies,
    AnalogyAccuracy,
    Association,
    DirectBias,
    Ect,
    Mac,
    Projections,
    Ripa,
    Rnd,
    Rnsb,
    Same,
    Weat,
    Wefat,
)


def ask(cls, v, targets, attributes, *, seed=0, prob=0.95, query="q", **options):
    """The result of a metric on these sets."""
    question = Query(name=query, targets=targets, attributes=attributes)
    return cls(**options)(v, question, seed=seed, prob=prob)


def weat(v, X, Y, A, B, **options):
    return ask(Weat, v, {"X": X, "Y": Y}, {"A": A, "B": B}, **options)


def mac(v, targets, attributes, **options):
    return ask(Mac, v, targets, attributes, **options)


def same(v, groups, words, **options):
    return ask(Same, v, groups, {"words": words}, **options)


def direct_bias(v, sets, words, **options):
    return ask(DirectBias, v, _ends(sets), {"words": words}, **options)


def ripa(v, pairs, words, **options):
    return ask(Ripa, v, _ends(pairs), {"words": words}, **options)


def _ends(pairs):
    return dict(zip(("first", "second"), zip(*pairs, strict=True), strict=True))


def rnd(v, first, second, words, **options):
    return ask(Rnd, v, {"first": first, "second": second}, {"words": words}, **options)


def ect(v, first, second, words, **options):
    return ask(Ect, v, {"first": first, "second": second}, {"words": words}, **options)


def rnsb(v, targets, positive, negative, **options):
    return ask(Rnsb, v, targets, {"positive": positive, "negative": negative}, **options)


def wefat(v, words, A, B, facts=None, *, query="q", **options):
    if facts is None:
        return ask(Wefat, v, {"words": words}, {"A": A, "B": B}, query=query, **options)
    attributes = {"female": A, "male": B}
    question = WefatQuery(name=query, words=words, shares=facts, attributes=attributes)
    return Wefat(**options)(v, question)


def projections(v, groups, *, ends=("he", "she"), **options):
    first, second = ends
    return ask(Projections, v, groups, {"first": (first,), "second": (second,)}, **options)


def analogies(v, pairs, words):
    return Analogies()(v, Questions(name="own", pairs=pairs, occupations=tuple(words)))


def analogy_accuracy(v, questions):
    return AnalogyAccuracy()(v, Questions(name="own", controls={"own": questions}))


def association_contrast(table, *, seed=0, prob=0.95, **options):
    return Association(**options).measure_table(table, Run(seed=seed, prob=prob))


def odds(source, label=None, gender=None, text=None, *, male=(), female=(), prob=0.95, **options):
    codes = [tuple(code) if isinstance(code, tuple | list) else (code,) for code in (male, female)]
    metric = Odds(label=label, gender=gender, text=text, male=codes[0], female=codes[1], **options)
    return metric.measure(Corpus(source), run=Run(prob=prob))
