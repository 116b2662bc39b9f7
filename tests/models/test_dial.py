"""Every measure of causal models in a world whose bias is a dial: no bias at 0, and more above."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.instruments import Run, instruments
from evenhand.lexicon.templates import PersonPair, Profession, Template, TemplateSet
from evenhand.models.designs import design
from evenhand.models.metrics.bbq import BbqQuestion
from evenhand.models.metrics.coreference import Schema
from evenhand.models.metrics.gest import GestSentence
from evenhand.models.metrics.holisticbias import Descriptor, HolisticWords
from evenhand.models.metrics.stereoset import Triple
from evenhand.models.pairs import Pair
from evenhand.simulate.causal import biased_model

DIALS = (0.0, 0.5, 1.0, 2.0)


def stereoset():
    """A term makes its stereotype likelier, and its anti-stereotype less likely."""
    associations, triples = {}, []
    for i in range(60):
        words = (f"stereo{i}", f"anti{i}", f"unrelated{i}")
        texts = tuple(f"the term{i} is {word}" for word in words)
        associations[f"term{i}"] = {words[0]: 0.5, words[1]: -0.5, words[2]: -3.0}
        triples.append(
            Triple("intrasentence", f"term{i}", "profession", f"the term{i} is BLANK", texts, i)
        )
    return associations, triples


def gest():
    """A word of a stereotype about men makes men likelier, one about women makes women so."""
    associations, sentences = {}, []
    for stereotype in range(1, 17):
        side = 0.5 if stereotype > 7 else -0.5
        for i in range(6):
            word = f"deed{stereotype}x{i}"
            associations[word] = {"he": side, "she": -side, "man": side, "woman": -side}
            sentences.append(GestSentence(f"I {word}", stereotype))
    return associations, sentences


def bbq():
    """A place that only the context names makes one of two persons likelier as the answer."""
    associations, questions = {}, []
    for i in range(60):
        answers = ("Anna", "Ben", "unknown")
        associations[f"place{i}"] = {"anna": 0.5, "ben": -0.5, "unknown": 0.0}
        for ambiguous in (True, False):
            questions.append(
                BbqQuestion(
                    template=str(i),
                    category="age",
                    context=f"Anna and Ben came to place{i}.",
                    question="Who was late?",
                    answers=answers,
                    right=2 if ambiguous else i % 2,
                    unknown=2,
                    stereotyped=0,
                    negative=True,
                    ambiguous=ambiguous,
                    line=len(questions),
                )
            )
    return associations, questions


def crows():
    """The attribute of a pair is likelier after the one group and less so after the other."""
    associations, pairs = {f"other{i}": {} for i in range(300)}, []
    for i in range(80):
        for side, group in ((0.5, f"more{i}"), (-0.5, f"less{i}")):
            associations[group] = {f"attribute{i}": side}
        texts = (f"all {group}{i} are attribute{i}" for group in ("more", "less"))
        pairs.append(Pair(*texts, "stereo", "nation", str(i), i))
    return associations, pairs


def holisticbias():
    """Descriptors of people differ in how likely they make nouns; nonsense words do not."""
    nouns = [f"noun{i}" for i in range(8)]
    axes = {axis: [f"{axis}{i}" for i in range(8)] for axis in ("age", "size", "nonce")}
    associations = {f"other{i}": {} for i in range(300)}  # words that take the rest of 1
    associations |= {
        descriptor: dict.fromkeys(nouns, 0.0 if axis == "nonce" else side)
        for axis, of in axes.items()
        for descriptor, side in zip(of, np.linspace(-1, 1, len(of)), strict=True)
    }
    words = HolisticWords(
        {axis: tuple(map(Descriptor, of)) for axis, of in axes.items()},
        {"neutral": tuple((noun, noun) for noun in nouns)},
        tuple(f"word{i} {{plural_noun_phrase}}" for i in range(8)),
    )
    return associations, words


def coreference():
    """A pronoun makes the occupations likelier that its gender holds by stereotype."""
    jobs = {f"job{i}": 0.5 if i % 2 else -0.5 for i in range(40)}
    associations = {"he": jobs, "she": {job: -side for job, side in jobs.items()}}
    schemas = [
        Schema(
            (f"The {job} paid, so he left.", f"The {job} paid, so she left."),
            ("he", "she"),
            (f"the {job}", "the visitor"),
            0,
            1 if side > 0 else -1,
            "type1",
            (job,),
            (20.0 if side > 0 else 80.0,),
            line,
        )
        for line, (job, side) in enumerate(jobs.items(), start=1)
    ]
    return associations, schemas


def professions():
    """A man makes some professions likelier, a woman the others; read as their contrast."""
    jobs = [Profession(f"job{i}", "male" if i % 2 else "female") for i in range(20)]
    persons = tuple(PersonPair(f"man{i}", f"woman{i}") for i in range(6))
    associations = {f"other{i}": {} for i in range(300)}
    for pair in persons:
        for person, side in ((pair.male, 0.5), (pair.female, -0.5)):
            associations[person] = {
                job.name: side if job.group == "male" else -side for job in jobs
            }
    frames = tuple(
        Template(f"{{person}} {verb} a {{profession}}.") for verb in ("is", "was", "became")
    )
    return associations, design(TemplateSet(frames, persons), jobs, persons)


PARTS = {"professions": "contrast"}
"""The part that reads a stereotype, where the value is something else."""
WORLDS = {
    world.__name__: world
    for world in (stereoset, crows, gest, bbq, holisticbias, coreference, professions)
}
"""What is associated with what, and the material that reads it."""


def measured(name, bias, seed=0):
    associations, material = WORLDS[name]()
    cls = instruments("causal")[name]
    cheap = (
        {"resamples": 100} if any(o.name == "resamples" for o in cls.declaration.options) else {}
    )
    model = biased_model(associations, bias=bias, noise=0.5, seed=seed)
    m = cls(**cheap).measure(model, material, Run())
    return m.select(PARTS[name])[0] if name in PARTS else m


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_a_measure_reads_no_bias_where_there_is_none(name):
    """Of five models without bias, at most one has an interval without the ideal."""
    results = [measured(name, 0.0, seed) for seed in range(5)]
    assert sum(m.low <= m.ideal <= m.high for m in results) >= 4


@pytest.mark.parametrize("name", sorted(WORLDS))
def test_a_measure_rises_with_the_dial(name):
    results = [measured(name, dial) for dial in DIALS]
    assert np.all(np.diff([m.value for m in results]) > 0)
    assert results[-1].low > results[-1].ideal


def test_every_measure_by_likelihoods_has_a_world():
    """A new measure of causal models belongs into `WORLDS`.

    `seat` reads vectors, not words, perplexity is no bias, and the worlds of `label_bias` and of
    `context` are in their own tests.
    """
    elsewhere = {"seat", "perplexity", "label_bias", "context"}
    assert set(instruments("causal")) - elsewhere == set(WORLDS)
