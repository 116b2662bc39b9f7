r"""Phrase WEAT: are phrases of what people do closer to the words for one gender?

$s(w, A, B) = \operatorname{mean}_{a \in A} \cos(w, a) - \operatorname{mean}_{b \in B} \cos(w, b)$

for a phrase w, and the effect size d of Caliskan, Bryson & Narayanan (2017) for two sets X and Y of
phrases that state no gender but are associated with one (Ye et al. 2021, §2.1).

A phrase is embedded by a masked language model (the mean of its last layer) or by word vectors (the
mean of its words). The embeddings of language models all point in a similar direction, so that raw
cosines are near 1; centred embeddings have the mean of control phrases subtracted.

Do embeddings and predicted pronouns agree? Ye et al. (2021) leave that open. The association of
each phrase is correlated with its mean log odds of a male pronoun. Both separate the sides of the
sets, and that alone makes them correlate over all phrases; "within groups" (each side of each set
centred on its own mean) asks whether they also agree on which phrase of a side leans more.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Unpack, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.cache import Querying
from evenhand.errors import InputError, LexiconError, UnknownNameError, VocabularyError
from evenhand.instruments import (
    Evidence,
    Instrument,
    Option,
    Run,
    instrument,
    paired_jackknife,
)
from evenhand.models.gender_words import bias, probabilities
from evenhand.models.masked import MaskedLM, MaskedModel
from evenhand.models.words import MASKS
from evenhand.results import Comparison, Items, Measurement
from evenhand.statistics.association import association, effect
from evenhand.statistics.correlation import agreement
from evenhand.statistics.intervals import Floats, effect_size
from evenhand.statistics.sequential import Seed, draw_until_clear
from evenhand.statistics.tests import two_sample
from evenhand.wording import interval, number, p_relation

if TYPE_CHECKING:
    from evenhand.lexicon.phrases import PhraseLists

MAX_EXCHANGES = 16
"""Up to this many pairs of attributes every exchange is counted."""
MOST_PERMUTATIONS = 100_000
"""Of the tests of effect sizes."""
RESAMPLES, PERMUTATIONS = 2000, 9999
"""Of the correlations with the pronouns."""
CORRELATION = "phrases_pronouns"
PHRASES_OF = ("all phrases", "within groups")
"""The metric of the correlation with the pronouns."""

NOTES = (
    "The sides of the sets were chosen to differ, which alone makes the two scores correlate over "
    "all phrases; 'within groups' takes each side of each set at its own mean.",
    "Intervals of r: Fisher's or the bootstrap's, at each end the one further out, since Fisher's "
    "alone is too short where one side of a set varies much more than the others.",
    "Intervals and p-values are over phrases, with these carriers and attributes held fixed; "
    "reliability (all split halves of carriers, of attribute pairs, by Spearman and Brown) shows "
    "how much those matter. The corrected correlation divides by it where both are at least .5.",
)

Embed = Callable[[list[str]], ArrayLike]
"""Texts to embeddings (n, dim), such as `Model.embed`; a row of NaN means that there is none."""


class WordVectors(Protocol):
    """A mapping from known words to vectors."""

    def __contains__(self, word: object) -> bool: ...
    def __getitem__(self, word: str) -> ArrayLike: ...


@runtime_checkable
class EmbedsTexts(Protocol):
    """A model that embeds texts."""

    def embed(self, texts: list[str]) -> ArrayLike: ...


@dataclass(frozen=True, slots=True)
class WordMean:
    """A text's embedding as the mean of its words' vectors; words without one are skipped.

    `missing` collects them; a text without any known word has no embedding.

    >>> mean = WordMean({"fixes": [1.0, 0.0], "engines": [0.0, 1.0]})
    >>> mean(["fixes old engines", "sleeps"]), sorted(mean.missing)
    (array([[0.5, 0.5], [nan, nan]]), ['old', 'sleeps'])
    """

    vectors: WordVectors
    missing: set[str] = field(default_factory=set)

    def __call__(self, texts: Sequence[str]) -> Floats:
        rows = []
        for text in texts:
            words = text.split()
            self.missing.update(word for word in words if word not in self.vectors)
            known = [
                np.asarray(self.vectors[word], float) for word in words if word in self.vectors
            ]
            rows.append(np.mean(known, axis=0) if known else None)
        width = next((len(row) for row in rows if row is not None), 1)
        return np.array([np.full(width, np.nan) if row is None else row for row in rows])


@instrument(
    name="phrases",
    subjects=("masked",),
    label="Phrase WEAT",
    question="Are phrases of what people do closer to the words for one gender?",
    above="phrases of the first side are closer to the first attributes than those of the second",
    below="phrases of the second side are closer to the first attributes than those of the first",
    formula="s(w) = mean cos(w, a in A) - mean cos(w, b in B); "
    "d = (mean s(X) - mean s(Y)) / sd of s over X and Y, n - 1 in the sd",
    source="Caliskan, Bryson & Narayanan (2017); phrases as in Ye et al. (2021)",
    role="decides",
    size="d",
    unit="phrases",
    material="phrase sets (TOML)",
    reading="The effect size of WEAT on the model's sentence embeddings, from which the mean "
    "embedding of control phrases is subtracted; the part 'raw' is without that. Above 0 the first "
    "side of a set is closer to the first attributes (male in the built-in sets). Interval: "
    "noncentral t or jackknife over the phrases, the wider; p: permutation of the phrases between "
    "the sides.",
    audit=True,
)
class Phrases(Instrument):
    """Phrase WEAT of every phrase set, and how it agrees with the model's pronouns.

    The material is `evenhand.lexicon.Phrases`: phrase sets with attributes, carriers and control
    phrases; the built-in ones by default. `embeds` are further ways of embedding by name, such as
    `WordMean` on word vectors; they are correlated with the model's pronouns too.

    Returns
    -------
    Measurements
        For each way of embedding one measurement per set (metric "phrases"): the effect size of
        centred embeddings, the raw one as a part by "embedding". Then one of the metric
        "phrases_pronouns": Pearson's r of association and log odds within groups, with parts by
        "phrases" (all phrases, within groups, each kind of side) that have Spearman's r as a part,
        and the same for raw embeddings as a part by "embedding". There are several results: measure
        by `eh.measure(model, lists, [Phrases()])`.

    Notes
    -----
    $s(w, A, B)$ and d as in WEAT (Caliskan et al. 2017). `p_attributes` in `details` is the test
    over the attributes with the phrases held fixed.
    """

    controls: ClassVar[tuple[str, ...]] = ("neutral",)
    material_options: ClassVar[tuple[Option, ...]] = (
        Option(
            name="sets",
            type=str,
            default=(),
            multiple=True,
            flag="--set",
            metavar="NAME",
            help="Phrase set: force, machines, command, neutral (all by default), or a TOML file "
            "of yours; repeatable.",
        ),
    )

    embeds: Mapping[str, Embed] = field(default_factory=dict, repr=False)
    """Further ways of embedding, by name."""

    def with_vectors(self, vectors: Mapping[str, WordVectors]) -> Phrases:
        """The instrument that also embeds phrases by the mean of these word vectors."""
        return replace(self, embeds={name: WordMean(each) for name, each in vectors.items()})

    def read(self, path: str | os.PathLike[str]) -> PhraseLists:
        """The phrase sets of a TOML file."""
        from evenhand.lexicon.phrases import read_phrases

        return read_phrases(path)

    @staticmethod
    def choose(*, sets: Sequence[str] | None = None) -> PhraseLists:
        """The phrase sets: built-in ones by name, those of one TOML file, or both."""
        from evenhand.lexicon.phrases import phrases as built_in
        from evenhand.lexicon.phrases import read_phrases

        files = [name for name in sets or () if name.endswith(".toml")]
        names = [name for name in sets or () if name not in files]
        if len(files) > 1:
            raise InputError(f"sets: expected one file, got {len(files)}: {', '.join(files)}")
        if not files:
            return built_in().select(names) if names else built_in()
        lists = read_phrases(files[0])
        refuse_masks(lists, (), files[0])
        return lists.join(built_in().select(names)) if names else lists

    def measure(
        self, subject: MaskedModel, material: PhraseLists | None = None, run: Run = Run()
    ) -> list[Measurement]:
        from evenhand.lexicon.phrases import phrases as built_in

        if not isinstance(subject, EmbedsTexts):
            raise InputError(f"phrases: expected a model that embeds texts, got '{subject.name}'")
        chosen = built_in() if material is None else material
        refuse_masks(chosen, [subject])
        every = [phrase for listed in chosen.sets.values() for phrase in listed.phrases]
        odds, leaning = pronoun_odds(subject, every, chosen.carriers, **run.querying)
        pronouns = {phrase: (odds[i], leaning[i]) for i, phrase in enumerate(every)}
        sources: dict[str, Embed] = {subject.name: subject.embed, **self.embeds}
        results: list[Measurement] = []
        for source, embed in sources.items():
            space = embed_phrases(embed, chosen, source=source)
            measured = [weat(space, name, run) for name in chosen.sets]
            results += [replace(m, notes=_anisotropy(source, measured)) for m in measured]
            results.append(correlate(space, pronouns, run, pronouns_of=subject.name))
        return results

    def audit(self, subject: MaskedModel, run: Run, data: object) -> dict[str, Any]:
        """The built-in phrase sets, with their titles."""
        from evenhand.lexicon.phrases import phrases as built_in

        lists = built_in()
        return {
            "measurements": tuple(self.measure(subject, lists, run)),
            "details": {
                "titles": {name: listed.title for name, listed in lists.sets.items()},
                "provenance": lists.provenance,
            },
        }

    @staticmethod
    def charts(measurement: Measurement) -> dict[str, Any]:
        """Each phrase's association against its mean log odds of the male pronoun."""
        from evenhand.charts import BLUE, GREY, ORANGE, heading, scatter

        if measurement.metric != CORRELATION:
            return {}
        charts = {}
        for m in (measurement.part("raw", "embedding"), measurement):
            if not m.select("phrases"):
                raise InputError("scatter: expected at least 4 phrases, got fewer")
            marks = ((BLUE, "circle"), (ORANGE, "triangle-up"), (GREY, "cross"))
            kinds = zip((*m.details["kinds"], "neutral"), marks, strict=True)
            name = "centred" if m.details["centred"] else "raw"
            charts[f"pronouns-{name}"] = scatter(
                [{**item, "series": item["kind"]} for item in m.items],
                x="association",
                y="log_odds",
                x_title=f"association s(w, A, B) by {measurement.subject}, {name}",
                y_title=f"log odds of the male pronoun, {m.details['pronouns_of']}",
                looks={kind: look for kind, look in kinds if kind in set(m.items["kind"])},
                tips={
                    "phrase": "",
                    "set": "set",
                    "association": "association",
                    "log_odds": "log odds",
                },
                title=heading(
                    "Do a phrase's embedding and its pronoun agree?",
                    *(
                        f"{r.query}: r = {number(r.value, 2)} {interval(r.low, r.high, 2)}, "
                        f"p {p_relation(r.p_value, r.details.get('draws'))}, n = {r.n}"
                        for r in (m.part(which, "phrases") for which in PHRASES_OF)
                    ),
                ),
                level=0,
            ).properties(
                description="each mark is a phrase. The further right, the nearer its embedding is "
                "to the words for men; the higher, the more the model prefers a male pronoun."
            )
        return charts

    @staticmethod
    def evidence(measurement: Measurement) -> list[Evidence]:
        """Centred embeddings decide, neutral sets do not: raw ones all point the same way."""
        if measurement.details["neutral"]:
            return []
        more, less = ("men", "women") if measurement.value > 0 else ("women", "men")
        return [
            Evidence(
                measurement=measurement,
                label=f"Phrase theme “{measurement.query}”",
                claim=f"places phrases about {more} nearer to the words for men "
                f"(theme “{measurement.query}”)",
                sentence=f"Phrases associated with {more} (theme “{measurement.query}”) lie nearer "
                f"to the words for men than those associated with {less}.",
            )
        ]

    @classmethod
    def example(cls) -> tuple[MaskedModel, PhraseLists]:
        """The embedded model and one set."""
        from evenhand.lexicon.phrases import phrases as built_in
        from evenhand.models.masked import load

        return load("mini"), built_in().select(["neutral"])

    @staticmethod
    def compare(before: Measurement, after: Measurement) -> Comparison:
        """The change of the effect size, centred and raw, by the paired jackknife over phrases."""
        raw = [m.part("raw", "embedding") for m in (before, after)]
        return replace(paired_jackknife(before, after), parts=(paired_jackknife(*raw),))


def refuse_masks(lists: PhraseLists, models: Iterable[MaskedLM], file: str | None = None) -> None:
    """Refuse phrases with a mask: the only one is the carrier's, for the pronoun.

    An error names `file`, where the lists come from one.
    """
    marks = dict.fromkeys((*MASKS, *(str(model.tokenizer.mask_token) for model in models)))
    listed = {
        f"sets.{name}.targets.{side}": words
        for name, each in lists.sets.items()
        for side, words in each.targets.items()
    }
    listed |= {f"attributes.{name}": words for name, words in lists.attributes.items()}
    for key, words in (listed | {"control": lists.control}).items():
        for phrase in words:
            if any(mark in phrase for mark in marks):
                problem = f"{key}: expected a phrase without a mask, got '{phrase}'"
                raise LexiconError(file, problem) if file else InputError(problem)


def pronoun_odds(
    model: MaskedLM,
    listed: Sequence[str],
    carriers: Sequence[str],
    **how: Unpack[Querying],
) -> tuple[Floats, Floats]:
    """The prediction beside each phrase in each carrier, over the full vocabulary.

    Returns log P(male pronoun) - log P(female pronoun) at the mask, and P(male) / (P(male) +
    P(female)), both (phrases, carriers).

    >>> from evenhand.simulate.masked import bigram_model
    >>> fake = bigram_model({"engines": {"he": 0.6, "she": 0.2, "his": 0.1, "her": 0.1}})
    >>> odds, score = pronoun_odds(fake, ["fixes engines"], ["someone {phrase} [MASK] says"])
    >>> score.round(2), odds.round(3)
    (array([[0.75]]), array([[1.099]]))
    """
    texts = [carrier.replace("{phrase}", phrase) for phrase in listed for carrier in carriers]
    p = probabilities(model, texts, words="pronouns", **how)
    shape = (len(listed), len(carriers))
    odds = (np.log(p.p_male) - np.log(p.p_female)).reshape(shape)
    return odds, np.asarray(bias(p.p_male, p.p_female)).reshape(shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedPhrases:
    """The phrases of some sets and their embeddings, in the order of the sets.

    `side` is 0 for a phrase of a set's first side and 1 for the second's; `left_out` are texts
    without an embedding, and words without a vector.
    """

    source: str
    lists: PhraseLists
    phrases: tuple[str, ...]
    sets: tuple[str, ...]
    side: NDArray[np.int64]
    vectors: Floats = field(repr=False)
    attributes: tuple[Floats, Floats] = field(repr=False)
    control: Floats = field(repr=False)
    left_out: tuple[str, ...] = ()

    def unit_vectors(self, *, centred: bool = False) -> tuple[Floats, Floats, Floats]:
        """The phrases and the two lists of attributes at length 1, centred or as they are."""
        parts = (self.vectors, *self.attributes)
        if centred:
            if len(self.control) < 2:
                raise VocabularyError(
                    "centring: expected at least 2 control phrases with an embedding"
                )
            centre = self.control.mean(axis=0)
            parts = tuple(part - centre for part in parts)
        for part in parts:
            if (np.linalg.norm(part, axis=1) == 0).any():
                raise InputError(
                    "phrases: expected embeddings that differ from 0, got 0 for a phrase"
                )
        words, one, two = (part / np.linalg.norm(part, axis=1, keepdims=True) for part in parts)
        return words, one, two

    def associations(self, *, centred: bool = False) -> Floats:
        """s(w, A, B) of every phrase (n,)."""
        return association(*self.unit_vectors(centred=centred))

    def terms(self, *, centred: bool = False) -> Floats:
        """cos(w, a) - cos(w, b) for every phrase and pair of attributes (n, pairs).

        Attributes are paired in their order; lists of different lengths give one column,
        s(w, A, B). The mean of the columns is s(w, A, B) in either case.
        """
        words, a, b = self.unit_vectors(centred=centred)
        if len(a) == len(b):
            return np.asarray(words @ (a - b).T)
        return association(words, a, b)[:, None]


def embed_phrases(embed: Embed, lists: PhraseLists, *, source: str = "") -> EmbeddedPhrases:
    """Embed the phrases, attributes and control phrases of the lists, once and together."""
    targets = [
        (phrase, name, side)
        for name, each in lists.sets.items()
        for side, listed in enumerate(each.targets.values())
        for phrase in listed
    ]
    parts = [[phrase for phrase, _, _ in targets], *lists.attributes.values(), lists.control]
    every = list(dict.fromkeys(text for part in parts for text in part))
    vectors = embed_known(embed, every)
    used = [target for target in targets if target[0] in vectors]
    for name, side in dict.fromkeys((name, side) for _, name, side in targets):
        if sum(target[1:] == (name, side) for target in used) < 2:
            raise VocabularyError(
                f"phrase set '{name}': expected at least 2 phrases with an embedding on each side"
            )
    phrases, one, two, control = (
        np.array([vectors[text] for text in part if text in vectors]) for part in parts
    )
    if not len(one) or not len(two):
        raise VocabularyError("phrase attributes: expected some with an embedding on each side")
    missing = sorted(embed.missing) if isinstance(embed, WordMean) else []
    return EmbeddedPhrases(
        source=source,
        lists=lists,
        phrases=tuple(phrase for phrase, _, _ in used),
        sets=tuple(name for _, name, _ in used),
        side=np.array([side for _, _, side in used]),
        vectors=phrases,
        attributes=(one, two),
        control=control,
        left_out=(*(text for text in every if text not in vectors), *missing),
    )


def embed_known(embed: Embed, texts: Sequence[str]) -> dict[str, Floats]:
    """The embeddings of the texts that have one."""
    matrix = np.asarray(embed(list(texts)), dtype=float)
    if matrix.ndim != 2 or len(matrix) != len(texts):
        raise InputError(
            f"embed: expected an embedding for each of {len(texts)} texts, got {matrix.shape}"
        )
    return {text: row for text, row in zip(texts, matrix, strict=True) if np.isfinite(row).all()}


def weat(space: EmbeddedPhrases, name: str, run: Run = Run()) -> Measurement:
    """The effect size of one of the sets, centred, with the raw one as a part.

    The p-value is exact over all partitions of up to 40 phrases; `p_attributes` in `details` is
    the same question over the attributes, the phrases fixed: paired attributes are exchanged. The
    interval is over phrases, the attributes held fixed. `mean_cosine` is that of the set's phrases
    with each other.

    >>> from evenhand.lexicon.phrases import phrases
    >>> from evenhand.models import load
    >>> space = embed_phrases(load("mini").embed, phrases().select(["neutral"]), source="mini")
    >>> weat(space, "neutral").details["partitions"]
    9075135300
    """
    if name not in space.lists.sets:
        raise UnknownNameError("phrase set", name, space.lists.sets)
    raw, centred = (_effect(space, name, centred, run) for centred in (False, True))
    return replace(centred, parts=(replace(raw, query="raw", by="embedding"),))


def _effect(space: EmbeddedPhrases, name: str, centred: bool, run: Run) -> Measurement:
    members = np.array([of == name for of in space.sets])
    every, one, two = space.unit_vectors(centred=centred)
    words, side = every[members], space.side[members]
    scores = association(words, one, two)
    x, y = scores[side == 0], scores[side == 1]
    test = two_sample(x, y, permutations=MOST_PERMUTATIONS, seed=run.seed)
    direction = words[side == 0].mean(axis=0) - words[side == 1].mean(axis=0)
    p, draws = _test_attributes(one @ direction, two @ direction, run.seed)
    cosines = words @ words.T
    n = len(words)
    names = list(space.lists.sets[name].targets)
    columns: dict[str, Any] = {
        "word": np.array(space.phrases, dtype=object)[members],
        "group": [names[k] for k in side],
        "score": scores,
        "without": _without_each(scores, side),
    }
    return Phrases.declaration.result(
        run,
        name,
        effect_size(x, y, run.prob),
        n=n,
        interval="noncentral t or jackknife, the wider, over phrases; attributes held fixed",
        p_value=test.p_value,
        test=test.words.replace("words", "phrases"),
        subject=space.source,
        items=Items(columns),
        left_out=space.left_out,
        details={
            "neutral": space.lists.sets[name].neutral,
            "centred": centred,
            "mean_difference": float(x.mean() - y.mean()),
            f"mean {names[0]}": float(x.mean()),
            f"mean {names[1]}": float(y.mean()),
            "p_attributes": p,
            **({"draws_attributes": draws} if draws else {}),
            "exact": test.exact,
            "partitions": test.partitions,
            **test.details,
            "mean_cosine": float((cosines.sum() - n) / (n * (n - 1))),
        },
    )


def _test_attributes(one: Floats, two: Floats, seed: int) -> tuple[float, int | None]:
    """The two-sided p-value, and the number of random draws it is based on.

    The two attributes of each pair are exchanged, or any if they are not paired.
    """
    if len(one) != len(two):
        test = two_sample(one, two, permutations=MOST_PERMUTATIONS, seed=seed)
        return test.p_value, test.details.get("draws")
    differences = one - two
    if len(differences) <= MAX_EXCHANGES:
        flips = np.arange(1 << len(differences))[:, None] >> np.arange(len(differences)) & 1
        sums = np.abs((1 - 2 * flips) @ differences)
        return float((sums >= sums[0] * (1 - 1e-12)).mean()), None

    def count(size: int, seed: Seed) -> int:
        signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=(size, len(differences)))
        return int((np.abs(signs @ differences) >= abs(differences.sum()) * (1 - 1e-12)).sum())

    counted = draw_until_clear(count, MOST_PERMUTATIONS, seed)
    return counted.p_value, counted.draws


def _without_each(scores: Floats, side: NDArray[np.int64]) -> list[float]:
    """The effect size with each phrase left out; NaN where a side would have none."""
    result = []
    for k in range(scores.size):
        rest = np.arange(scores.size) != k
        s, labels = scores[rest], side[rest]
        usable = len(set(labels.tolist())) == 2 and s.std(ddof=1) > 0
        result.append(float(effect(s, labels)) if usable else float("nan"))
    return result


def correlate(
    space: EmbeddedPhrases,
    pronouns: Mapping[str, tuple[Floats, Floats]],
    run: Run = Run(),
    *,
    pronouns_of: str = "",
) -> Measurement:
    """Correlate the phrases' associations with the pronouns that a model predicts beside them.

    `pronouns` has the log odds and the scores of every phrase, one number per carrier;
    `pronouns_of` is the name of the model.
    """
    if missing := [phrase for phrase in space.phrases if phrase not in pronouns]:
        raise InputError(
            f"correlation: expected pronoun scores of all phrases, got none of {missing[0]!r}"
        )
    raw, centred = (
        _correlation(space, pronouns, pronouns_of, centred, run) for centred in (False, True)
    )
    part = replace(raw, query="raw", by="embedding")
    return replace(centred, parts=(*centred.parts, part), notes=NOTES)


def _correlation(
    space: EmbeddedPhrases,
    pronouns: Mapping[str, tuple[Floats, Floats]],
    pronouns_of: str,
    centred: bool,
    run: Run,
) -> Measurement:
    every = space.terms(centred=centred)
    odds = np.array([pronouns[phrase][0] for phrase in space.phrases])
    leaning = np.array([pronouns[phrase][1] for phrase in space.phrases])
    keys = list(zip(space.sets, space.side.tolist(), strict=True))
    numbers = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    groups = np.array([numbers[key] for key in keys])
    stereotyped = [f"stereotyped {name}" for name in space.lists.attributes]
    kinds = [
        "neutral" if space.lists.sets[name].neutral else stereotyped[side] for name, side in keys
    ]
    everything = np.ones(len(groups), dtype=bool)
    chosen = {"all phrases": (everything, False), "within groups": (everything, True)}
    for kind in (*stereotyped, "neutral"):
        chosen[kind] = (np.array([k == kind for k in kinds]), True)
    parts = [
        correlation(
            name, every[members], odds[members], groups[members], space.source, run, within=within
        )
        for name, (members, within) in chosen.items()
        if members.sum() >= 4
    ]
    main = next((part for part in parts if part.query == "within groups"), None)
    unknown = _correlation_result(
        "", (float("nan"), -1.0, 1.0), run, n=len(groups), subject=space.source
    )
    return replace(
        main or unknown,
        query="association and pronouns",
        by="",
        items=Items(
            {
                "phrase": space.phrases,
                "set": space.sets,
                "side": [list(space.lists.sets[name].targets)[side] for name, side in keys],
                "kind": kinds,
                "association": every.mean(axis=1),
                "log_odds": odds.mean(axis=1),
                "bias": leaning.mean(axis=1),
            }
        ),
        parts=tuple(parts),
        details={
            **(main.details if main else {}),
            "centred": centred,
            "pronouns_of": pronouns_of,
            "kinds": stereotyped,
        },
    )


def correlation(
    name: str,
    scores: Floats,
    odds: Floats,
    groups: NDArray[np.int64],
    source: str,
    run: Run,
    *,
    within: bool,
    unit: str = "phrases",
    held: str = "; carriers and attributes fixed",
) -> Measurement:
    """Pearson's r of scores and log odds (units, repeats), with Spearman's as a part.

    `unit` is what was permuted and resampled, `held` what the interval does not count.
    """
    found = agreement(
        scores,
        odds,
        groups,
        within=within,
        prob=run.prob,
        resamples=RESAMPLES,
        permutations=PERMUTATIONS,
        seed=run.seed,
    )
    pearson, spearman = (
        _correlation_result(
            query,
            each.interval,
            run,
            n=found.n,
            p_value=each.p_value,
            subject=source,
            by=by,
            interval=f"Fisher's or bootstrap over {unit}, the wider{held}",
            test=f"permutation of the {unit}, two-sided",
            details={
                "fisher": dict(zip(("low", "high"), each.fisher, strict=True)),
                "bootstrap": dict(zip(("low", "high"), each.bootstrap, strict=True)),
                "draws": found.draws,
            },
        )
        for query, by, each in (
            (name, "phrases", found.pearson),
            ("spearman", "coefficient", found.spearman),
        )
    )
    return replace(
        pearson,
        parts=(spearman,),
        details={
            **pearson.details,
            "groups": found.groups,
            "reliability": dict(zip(("association", "pronoun"), found.reliability, strict=True)),
            "corrected": found.corrected,
        },
    )


def _correlation_result(
    query: str, estimate: tuple[float, float, float], run: Run, **fields: object
) -> Measurement:
    known = {"metric": CORRELATION, "ideal": None, "interval": "unbounded: too few phrases"}
    return Phrases.declaration.result(run, query, estimate, **{**known, **fields})


def _anisotropy(source: str, measured: Sequence[Measurement]) -> tuple[str, ...]:
    """A warning where the raw embeddings of a source all point in a similar direction."""
    cosine = float(np.mean([m.part("raw").details["mean_cosine"] for m in measured]))
    if cosine <= 0.5:
        return ()
    return (
        f"{source}: two phrases have a cosine of {cosine:.2f} on average before centring: the "
        "embeddings all point in a similar direction (anisotropy), so raw associations are "
        "differences of cosines near that; centring subtracts the mean of control phrases.",
    )
