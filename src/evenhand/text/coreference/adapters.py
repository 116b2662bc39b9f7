"""Resolvers of other packages: fastcoref, coreferee and spaCy's coreference component.

Each finds clusters of mentions; the link is the mention of the pronoun's cluster that says most: a
noun before a pronoun, and of these the nearest before the pronoun. None of their packages comes
with Evenhand, and nothing is downloaded unless a model was named that the package itself fetches.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any

from evenhand.errors import InputError, MissingExtraError
from evenhand.text.coreference import Link
from evenhand.text.coreference.vocabulary import FUNCTION_WORDS, PRONOUNS

__all__ = ["Coreferee", "FastCoref", "Spacy"]

Span = tuple[int, int]


class FastCoref:
    """F-coref (Otmazgin et al. 2022): `fastcoref`, or `fastcoref:MODEL` for a name or a folder."""

    def __init__(self, model: str = "") -> None:
        package = _package("fastcoref", "the resolver fastcoref", "fastcoref")
        tokenizer = _package("spacy", "the resolver fastcoref", "fastcoref").blank("en")
        keywords = {"model_name_or_path": model} if model else {}

        def load() -> Any:
            return package.FCoref(
                device="cpu", nlp=tokenizer, enable_progress_bar=False, **keywords
            )

        self._model = _loaded(load, "fastcoref", model or "the default model")

    def __call__(self, tokens: Sequence[str], i: int) -> Link | None:
        """The antecedent of tokens[i]; the confidence is the logistic of the model's score."""
        text, starts = _joined(tokens)
        found = self._model.predict(texts=[text])[0]
        clusters = [
            [_tokens(span, starts, tokens) for span in cluster]
            for cluster in found.get_clusters(as_strings=False)
        ]

        def confidence(span: Span) -> float | None:
            pronoun = (starts[i], starts[i] + len(tokens[i]))
            mention = (starts[span[0]], starts[span[1] - 1] + len(tokens[span[1] - 1]))
            first, second = sorted((mention, pronoun))
            try:
                score = float(found.get_logit(span_i=second, span_j=first))
            except (KeyError, ValueError):
                return None
            return 1 / (1 + math.exp(-max(-50.0, min(50.0, score))))

        return _link(clusters, tokens, i, "fastcoref", confidence)


class _SpacyPipeline(ABC):
    """What the two resolvers on spaCy share: the pipeline, fed with our tokens."""

    name = "spacy"
    extra = "spacy"

    def __init__(self, model: str = "") -> None:
        if not model:
            raise InputError(f"resolver {self.name}: expected {self.name}:MODEL, a spaCy pipeline")
        purpose = f"the resolver {self.name}"
        self._spacy = _package("spacy", purpose, self.extra)
        self._nlp = _loaded(lambda: self._spacy.load(model), self.name, model)
        self._prepare(model)

    @abstractmethod
    def _prepare(self, model: str) -> None:
        """See to it that the pipeline has what the resolver needs."""

    def _read(self, tokens: Sequence[str]) -> Any:
        made = self._spacy.tokens.Doc(self._nlp.vocab, words=list(tokens))
        return self._nlp(made)


class Coreferee(_SpacyPipeline):
    """coreferee on a spaCy pipeline: `coreferee:en_core_web_lg`."""

    name = "coreferee"
    extra = "coreferee"

    def _prepare(self, model: str) -> None:
        _package("coreferee", "the resolver coreferee", "coreferee")
        if "coreferee" not in self._nlp.pipe_names:
            _loaded(lambda: self._nlp.add_pipe("coreferee"), self.name, f"its data for {model}")

    def __call__(self, tokens: Sequence[str], i: int) -> Link | None:
        """The antecedent of tokens[i]; a mention is a head with what stands before it."""
        doc = self._read(tokens)
        clusters = [
            [
                (doc[mention.token_indexes[0]].left_edge.i, mention.token_indexes[-1] + 1)
                for mention in chain.mentions
            ]
            for chain in doc._.coref_chains
        ]
        return _link(clusters, tokens, i, self.name)


class Spacy(_SpacyPipeline):
    """A spaCy pipeline with a coreference component: `spacy:en_coreference_web_trf`."""

    def _prepare(self, model: str) -> None:
        if not any("coref" in name for name in self._nlp.pipe_names):
            pipes = ", ".join(self._nlp.pipe_names) or "none"
            raise InputError(
                f"spaCy pipeline {model}: expected a coreference component (coref), got {pipes}"
            )

    def __call__(self, tokens: Sequence[str], i: int) -> Link | None:
        """The antecedent of tokens[i], from the span groups coref_clusters_1, coref_clusters_2 …"""
        doc = self._read(tokens)
        clusters = [
            [(span.start, span.end) for span in group]
            for key, group in doc.spans.items()
            if key.startswith("coref_clusters_")
        ]
        return _link(clusters, tokens, i, self.name)


def _package(name: str, purpose: str, install: str) -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise MissingExtraError(name, purpose, install) from None


def _loaded(load: Callable[[], Any], name: str, model: str) -> Any:
    """What `load` makes; each package has errors of its own for weights that are absent."""
    try:
        return load()
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"resolver {name}: {model} cannot be loaded: {reason}") from None


def _joined(tokens: Sequence[str]) -> tuple[str, list[int]]:
    """The tokens with blanks between them, and where each begins."""
    starts: list[int] = []
    place = 0
    for token in tokens:
        starts.append(place)
        place += len(token) + 1
    return " ".join(tokens), starts


def _tokens(span: Span, starts: list[int], tokens: Sequence[str]) -> Span:
    """The tokens that a span of characters touches."""
    touched = [
        k for k, start in enumerate(starts) if start < span[1] and start + len(tokens[k]) > span[0]
    ]
    return touched[0], touched[-1] + 1


def _link(
    clusters: Iterable[Sequence[Span]],
    tokens: Sequence[str],
    i: int,
    rule: str,
    confidence: Callable[[Span], float | None] = lambda _: None,
) -> Link | None:
    """The best mention of the cluster that has the pronoun for a mention of its own."""
    cluster = next((c for c in clusters if (i, i + 1) in c), None)
    if cluster is None:
        return None
    others = [span for span in cluster if span != (i, i + 1)]
    if not others:
        return None

    def rank(span: Span) -> tuple[bool, bool, int]:
        word = tokens[span[0]].lower()
        pronoun = span[1] - span[0] == 1 and (word in PRONOUNS or FUNCTION_WORDS.get(word) == "O")
        return pronoun, span[0] > i, abs(i - span[0])

    start, end = best = min(others, key=rank)
    return Link(
        start=start,
        end=end,
        text=" ".join(tokens[start:end]),
        confidence=confidence(best),
        size=len(cluster),
        rule=rule,
    )
