r"""SEAT: do the vectors of sentences associate two sets of words with two others?

A word is put into templates that mention it, and WEAT is computed on the vectors of the sentences:
in template t, with targets X and Y and attributes A and B,

$s_t(w) = \operatorname{mean}_{a \in A} \cos(w, a) - \operatorname{mean}_{b \in B} \cos(w, b)$

$d_t = \dfrac{\operatorname{mean}_{x \in X} s_t(x) - \operatorname{mean}_{y \in Y} s_t(y)}
{\operatorname{std}_{w \in X \cup Y} s_t(w)}$

May et al. (2019) put all sentences into one test, as if those of one word were independent. Here
templates are random effects, as contexts are in CEAT (Guo & Caliskan 2021): the effects $d_t$ are a
sample of those of all templates, with mean $\mu$ and variance $\tau^2$. They have the same words,
so that their errors have a covariance, which the jackknife over target words gives; variances and
covariances are pooled over templates, whose weights are therefore equal.

**Control.** Names that a tokenizer splits into many pieces have vectors of their own kind whatever
the weights are: BERT networks with random weights read 1.2 to 1.4 on European and African American
names. So the same tests are made with random encoders that have the tokenizer of the model: the
vector of a text is the mean of random vectors of its tokens and of their positions. A test in which
more of them have p < .05 than 5 % can explain says nothing about the model, and has no part in a
verdict.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import InputError
from evenhand.instruments import Evidence, Instrument, Run, instrument
from evenhand.judging import SOME, is_below
from evenhand.lexicon import Query, read_query, sentence_templates, weat_queries
from evenhand.models.encoder import encode
from evenhand.results import Items, Measurement
from evenhand.statistics.association import association, effect, unit
from evenhand.statistics.intervals import Floats, effect_size
from evenhand.statistics.random_effects import RandomEffects, random_effects
from evenhand.statistics.tests import two_sample

WORD = "{word}"
INTERVAL = "random effects over templates (Hartung & Knapp) with the jackknife over target words"
TOPICS = {
    "weat-3": "race",
    "weat-4": "race",
    "weat-5": "race",
    "weat-6": "gender",
    "weat-7": "gender",
    "weat-8": "gender",
    "weat-9": "disease",
    "weat-10": "age",
}
"""What the published tests are about; the first two are not about people."""
NULL = 2000
"""Permutations behind the range of values without any association."""
ENCODERS, MOST = 20, 4
"""Random encoders, and how many of them may have p < .05: more are as rare as 3 in 1,000."""
RANDOM = (
    "{count} of {encoders} random encoders with the same tokenizer have p < .05 (mean "
    "{mean:.2f}): the pieces of the words explain such a value, so the test does not decide"
)


@instrument(
    name="seat",
    subjects=("masked", "causal", "encoder"),
    label="SEAT",
    question="Do the vectors of sentences associate two sets of words with two others?",
    formula="WEAT's effect size d on the vectors of sentences that mention the words, in each "
    "template; the mean over templates as random effects",
    source="May et al. (2019); random effects after Guo & Caliskan (2021)",
    role="decides",
    size="d",
    unit="words",
    material="built in (WEAT 1 to 10), or a query with two target and two attribute sets (JSON)",
    reading="An effect size in standard deviations, between -2 and 2. Above 0, the first target "
    "set goes with the first attribute set. tau is its standard deviation between templates.",
    scale="Effect size in standard deviations (ideal: 0)",
    caveats=(
        "Attribute words are held fixed; other attribute words can give other values.",
        "A vector of a sentence says little about what a model does with it: an effect size here "
        "is no rate of harm.",
        "A tokenizer that splits the words of one set into more pieces gives an effect to encoders "
        "with random weights too; such tests are marked and do not decide.",
        "Flowers and insects (weat-1), instruments and weapons (weat-2) are harmless: a model that "
        "does not separate these has vectors that show little of what words mean.",
    ),
    audit=("causal", "encoder"),
)
class Seat(Instrument):
    """SEAT: associations of words in the vectors of sentences that mention them.

    The material is a query with two target and two attribute sets, or several; WEAT 1 to 10 by
    default. Several are measured by `eh.measure(model, queries, [Seat()])`. Vectors are those of
    `evenhand.models.encode`.

    Returns
    -------
    Measurement
        The mean effect size over templates. Parts: by "template" the effect size in
        each. `details` has `tau2`, the variance of the effect between templates, `i2`, `q`, the
        range of values with the target words permuted (`null_low` to `null_high`), the mean of
        what random encoders with the same tokenizer read (`random_model`), and how many of 20 have
        p < .05 (`random_significant`; more than 4 are marked in `notes`). Target words and
        templates are the sampling units; attribute words are held fixed. The p-value is that of
        the permutation of target words between the sets, the same one in all templates.

    Notes
    -----
    See `evenhand.statistics.random_effects`.

    Examples
    --------
    >>> encoder, query = Seat.example()
    >>> m = Seat()(encoder, query)
    >>> m.value > 1, len(m.parts), m.low < m.value < m.high
    (True, 12, True)
    """

    controls: ClassVar[tuple[str, ...]] = ("weat-1", "weat-2")

    def read(self, path: str | os.PathLike[str]) -> Query:
        """The query of a file."""
        return read_query(path)

    def measure(
        self,
        subject: Any,
        material: Query | Sequence[Query] | None = None,
        run: Run = Run(),
    ) -> list[Measurement]:
        queries = [material] if isinstance(material, Query) else list(material or weat_queries())
        for query in queries:
            _check(query)
        templates = sentence_templates()
        words = list(dict.fromkeys(word for query in queries for word in _words(query)))
        texts = [_sentence(template, word) for template in templates for word in words]
        vectors = encode(subject, texts, **run.querying)

        def by_query(drawn: ArrayLike) -> list[Floats]:
            """Unit vectors (templates, words, dim) of the words of each query."""
            table = unit(np.asarray(drawn, dtype=float).reshape(len(templates), len(words), -1))
            return [table[:, list(map(words.index, _words(query)))] for query in queries]

        measured = [
            self.summarise(own, query, templates, subject=subject.name, run=run)
            for query, own in zip(queries, by_query(vectors), strict=True)
        ]
        if getattr(subject, "tokenizer", None) is None:
            return measured
        controls = [
            [_read_random(own, query, run.seed) for query, own in zip(queries, of, strict=True)]
            for of in map(by_query, _random_vectors(subject, texts, vectors.shape[1], run.seed))
        ]
        return list(map(_with_control, measured, zip(*controls, strict=True)))

    def summarise(
        self,
        vectors: Floats,
        query: Query,
        templates: Sequence[str],
        *,
        subject: str = "",
        run: Run = Run(),
    ) -> Measurement:
        """The measurement of unit vectors (templates, words, dim) of the words of a query.

        The words are in the order of the query: both target sets, then both attribute sets.
        """
        (x, first), (y, second) = query.targets.items()
        a, b = query.attributes
        scores, labels = _scores(vectors, query)
        targets = len(labels)
        mean = _mean_scaled(scores)
        if mean is None:
            raise InputError(
                f"seat '{query.name}': expected vectors that differ between words, got equal ones: "
                f"the tokenizer of '{subject}' may not have these words"
            )
        combined = combine_templates(scores, labels, run.prob)
        test = two_sample(mean[labels == 0], mean[labels == 1], seed=run.seed)
        without_template = (combined.effects.sum() - combined.effects) / (len(templates) - 1)
        by_template = [
            self.declaration.result(
                run,
                template,
                effect_size(scores[t, labels == 0], scores[t, labels == 1], run.prob),
                n=targets,
                subject=subject,
                interval="noncentral t or jackknife, the wider, over target words",
                by="template",
                details={"without": float(without_template[t])},
            )
            for t, template in enumerate(templates)
        ]
        columns: dict[str, Sequence[str] | Floats] = {
            "axis": ["target"] * targets + ["template"] * len(templates),
            "word": [*first, *second, *templates],
            "group": [x] * len(first) + [y] * len(second) + [""] * len(templates),
            "association": np.concatenate([mean, combined.effects]),
            "without": np.concatenate([combined.without, without_template]),
        }
        return self.declaration.result(
            run,
            query.name,
            (combined.whole.mean.value, combined.low, combined.high),
            p_value=test.p_value,
            n=targets,
            subject=subject,
            interval=INTERVAL,
            test=test.words,
            parts=tuple(by_template),
            items=Items(columns),
            details={
                "topic": TOPICS.get(query.name, ""),
                "title": query.title,
                "targets": [x, y],
                "attributes": [a, b],
                "tau2": combined.whole.tau2,
                "tau": float(np.sqrt(combined.whole.tau2)),
                "i2": combined.whole.i2,
                "q": combined.whole.q,
                "templates": len(templates),
                "random_model": 0.0,
                "random_significant": 0,
                **_null(mean, labels, run),
                **test.details,
            },
            notes=self.declaration.caveats,
        )

    @staticmethod
    def explained(measurement: Measurement) -> str:
        """An explanation of the value other than a bias."""
        if measurement.details.get("random_significant", 0) <= MOST:
            return ""
        return "random encoders with the same tokenizer show it too, so it does not decide"

    @classmethod
    def evidence(cls, measurement: Measurement) -> list[Evidence]:
        """What is about people decides, unless random encoders show it too."""
        if measurement.query in cls.controls or cls.explained(measurement):
            return []
        first, second, a, b = _sides(measurement)
        title = str(measurement.details["title"] or measurement.query).replace("_", " ")
        return [
            Evidence(
                measurement=measurement,
                label=f"SEAT, {title}",
                quantity="a mean effect size",
                claim=f"places '{first}' nearer to '{a}' and '{second}' nearer to '{b}'",
                sentence=f"{title}: sentences that mention words of '{first}' lie nearer to "
                f"'{a}', those of '{second}' nearer to '{b}'.",
            )
        ]

    @staticmethod
    def clause(m: Measurement) -> str:
        """The target words by attribute."""
        first, second, a, b = _sides(m)
        return f"'{first}' goes with '{a}', '{second}' with '{b}'"

    @classmethod
    def example(cls) -> tuple[Any, Query]:
        """An encoder with a known association, and a short query."""
        from evenhand.simulate.encoders import SimulatedEncoder

        query = Query(
            name="numbers",
            targets={"math": ("algebra", "geometry", "sum"), "arts": ("poem", "dance", "song")},
            attributes={"male": ("he", "man"), "female": ("she", "woman")},
        )
        return SimulatedEncoder(query, bias=0.5), query


def _sides(m: Measurement) -> tuple[str, str, str, str]:
    """The target sets that go with the first and with the second attribute set, and these."""
    (x, y), (a, b) = m.details["targets"], m.details["attributes"]
    first, second = (x, y) if m.value > 0 else (y, x)
    first, second, a, b = (name.replace("_", " ") for name in (first, second, a, b))
    return first, second, a, b


class Combined(NamedTuple):
    """Effects by template, combined."""

    effects: Floats
    """The effect size in each template."""
    whole: RandomEffects
    low: float
    high: float
    without: Floats
    """The mean effect size without each target word."""


def combine_templates(scores: Floats, labels: NDArray[np.intp], prob: float = 0.95) -> Combined:
    r"""Combine the effects of templates from the associations (templates, target words).

    Parameters
    ----------
    scores : array (templates, words)
        The association of each word in each template.
    labels : array (words)
        0 for the words of X, 1 for those of Y; three or more of each.
    prob : float
        The probability of the interval.

    Notes
    -----
    The covariance matrix of the effects' errors is that of the jackknife over target words within
    X and Y. All templates have the same words, so its variances and its covariances are pooled, and
    templates have equal weights. The variance of d depends on d, so the interval is made on a scale
    where it does not: $\operatorname{arsinh}(c\,\delta)$, with $\delta$ the difference of the means
    over the standard deviation within the sets and $c = \sqrt{n_X n_Y / 2} / n$. With few words
    that has the coverage that intervals of d itself lack (.94 instead of .89 with eight words a
    set).
    """
    sizes = np.bincount(labels)
    n, product = int(sizes.sum()), float(sizes[0] * sizes[1])
    curve, share = math.sqrt(product / 2) / n, product / n**2

    def stable(chosen: Floats, own: NDArray[np.intp]) -> Floats:
        unbiased = 1 - 3 / (4 * (len(own) - 2) - 1)
        return np.asarray(np.arcsinh(curve * unbiased * _delta(chosen, own)))

    def d_of(z: float) -> float:
        delta = math.sinh(z) / curve
        return delta / math.sqrt(1 + share * delta**2)

    subsets = [(np.delete(scores, w, axis=1), np.delete(labels, w)) for w in range(n)]
    effects = effect(scores, labels)
    without = np.stack([effect(*subset) for subset in subsets], axis=1)
    whole = _combine(effects, without, labels)
    moved = np.stack([stable(*subset) for subset in subsets], axis=1)
    low, high = map(d_of, _combine(stable(scores, labels), moved, labels).mean.interval(prob))
    value = whole.mean.value
    return Combined(effects, whole, min(low, value), max(high, value), without.mean(axis=0))


def _delta(scores: Floats, labels: NDArray[np.intp]) -> Floats:
    """The difference of the means of X and Y over the standard deviation within them."""
    x, y = scores[..., labels == 0], scores[..., labels == 1]
    squares = sum(((side - side.mean(axis=-1, keepdims=True)) ** 2).sum(axis=-1) for side in (x, y))
    return np.asarray((x.mean(axis=-1) - y.mean(axis=-1)) / np.sqrt(squares / (len(labels) - 2)))


def _combine(effects: Floats, without: Floats, labels: NDArray[np.intp]) -> RandomEffects:
    """Effects (templates) combined, by those without each word (templates, words)."""
    templates, words = without.shape
    covariance = np.zeros((templates, templates))
    for label in (0, 1):
        own = without[:, labels == label]
        deviations = own - own.mean(axis=1, keepdims=True)
        covariance += (1 - 1 / own.shape[1]) * deviations @ deviations.T
    variance = float(np.trace(covariance)) / templates
    shared = (float(covariance.sum()) - variance * templates) / (templates * (templates - 1))
    pooled = np.full_like(covariance, shared) + np.eye(templates) * (variance - shared)
    return random_effects(effects, pooled, freedom=words - 2)


def _null(mean: Floats, labels: NDArray[np.intp], run: Run) -> dict[str, float]:
    """The range of values with the targets permuted, which is what a random encoder reads."""
    rng = np.random.default_rng(run.seed)
    chosen = rng.permuted(np.tile(labels == 0, (NULL, 1)), axis=1)
    sums, size = chosen @ mean, int((labels == 0).sum())
    values = sums / size - (mean.sum() - sums) / (len(labels) - size)
    tail = (1 - run.prob) / 2
    low, median, high = np.quantile(values, [tail, 0.5, 1 - tail])
    return {"null_low": float(low), "null_median": float(median), "null_high": float(high)}


def _scores(vectors: Floats, query: Query) -> tuple[Floats, NDArray[np.intp]]:
    """The associations (templates, target words), and the set of each word."""
    sizes = [len(words) for words in query.targets.values()]
    words, rest = np.split(vectors, [sum(sizes)], axis=1)
    first = len(next(iter(query.attributes.values())))
    pairs = zip(words, rest, strict=True)
    scores = [association(own, other[:first], other[first:]) for own, other in pairs]
    return np.stack(scores), np.repeat([0, 1], sizes)


def _random_vectors(subject: Any, texts: Sequence[str], dim: int, seed: int) -> Iterator[Floats]:
    """The vectors of texts by encoders with random vectors of tokens and positions, one by one."""
    from scipy.sparse import csr_array

    backend = getattr(subject.tokenizer, "backend_tokenizer", subject.tokenizer)
    backend.no_truncation()
    backend.no_padding()
    special = subject.subject_kind == "encoder"
    rows = [coded.ids for coded in backend.encode_batch(list(texts), add_special_tokens=special)]
    lengths = np.array([len(row) for row in rows])
    used, columns = np.unique(np.concatenate(rows), return_inverse=True)
    ends = np.cumsum([0, *lengths])
    counts = csr_array((np.ones(len(columns)), columns, ends), shape=(len(rows), len(used)))
    for number in range(ENCODERS):
        rng = np.random.default_rng([seed, number])
        tokens = counts @ rng.standard_normal((len(used), dim))
        positions = rng.standard_normal((int(lengths.max()), dim)).cumsum(axis=0)[lengths - 1]
        yield np.asarray((tokens + positions) / lengths[:, None])


def _read_random(vectors: Floats, query: Query, seed: int) -> tuple[float, float]:
    """The mean effect and its p-value; none where all words are alike."""
    scores, labels = _scores(vectors, query)
    mean = _mean_scaled(scores)
    if mean is None:
        return 0.0, 1.0
    x, y = mean[labels == 0], mean[labels == 1]
    test = two_sample(x, y, permutations=NULL, seed=seed, exact=False)
    return float(x.mean() - y.mean()), test.p_value


def _mean_scaled(scores: Floats) -> Floats | None:
    """The mean over templates of scores in standard deviations; None where words are alike."""
    deviations = scores.std(axis=1, ddof=1)
    if not (deviations > 1e-9).all():
        return None
    return np.asarray((scores / deviations[:, None]).mean(axis=0))


def _with_control(m: Measurement, control: Sequence[tuple[float, float]]) -> Measurement:
    """The measurement with what random encoders read."""
    mean = float(np.mean([value for value, _ in control]))
    count = sum(is_below(p, SOME) for _, p in control)
    details = {**m.details, "random_model": mean, "random_significant": count}
    note = RANDOM.format(count=count, encoders=len(control), mean=mean)
    notes = (f"{m.query}: {note}", *m.notes) if count > MOST else m.notes
    return replace(m, details=details, notes=notes)


def _check(query: Query) -> None:
    for kind, sets in (("target", query.targets), ("attribute", query.attributes)):
        if len(sets) != 2:
            raise InputError(f"seat '{query.name}': expected two {kind} sets, got {len(sets)}")
    for name, words in query.targets.items():
        if len(words) < 3:
            raise InputError(
                f"seat '{query.name}': target set '{name}': expected three words or more, got "
                f"{len(words)}"
            )


def _words(query: Query) -> list[str]:
    """The words in the order of the query: both target sets, then both attribute sets."""
    return [
        word for sets in (query.targets, query.attributes) for own in sets.values() for word in own
    ]


def _sentence(template: str, word: str) -> str:
    """The template with the word in it; a word that begins it is capitalised."""
    text = template.replace(WORD, word)
    return text[:1].upper() + text[1:]
