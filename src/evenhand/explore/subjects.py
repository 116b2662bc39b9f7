"""What the explorer shows: models, vectors, an audit, predictions, answers; all loaded before."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, TypeVar

from evenhand.cache import Cache
from evenhand.errors import InputError, UnknownNameError
from evenhand.files import public_names

if TYPE_CHECKING:
    from evenhand.answers.table import Answers
    from evenhand.explore.run import PredictionTable
    from evenhand.models.asking import Reference
    from evenhand.report.findings import Findings
    from evenhand.vectors.store import Vectors

S = TypeVar("S", bound=Any)

DEBIASED = 3
"""So many debiased copies of vectors are held in memory."""


@dataclass(kw_only=True)
class Subjects:
    """What is explored, by the names that the browser may ask for.

    Parameters
    ----------
    models : Mapping of str to masked or causal model
    vectors : Mapping of str to Vectors
    findings : Findings, optional
        Of an audit.
    predictions : PredictionTable, optional
        Of a classifier.
    collected : Answers, optional
        What a model wrote.
    cache : Cache, optional
        Of the models' answers.

    """

    models: Mapping[str, Any] = field(default_factory=dict)
    vectors: Mapping[str, Vectors] = field(default_factory=dict)
    findings: Findings | None = None
    predictions: PredictionTable | None = None
    collected: Answers | None = None
    cache: Cache | None = None
    _references: dict[str, Reference] = field(default_factory=dict, repr=False)
    _debiased: dict[tuple[str, str, str], Vectors] = field(default_factory=dict, repr=False)

    def model(self, name: str) -> Any:
        """The model of that name."""
        if name not in self.models:
            raise UnknownNameError("model", name, self.models)
        return self.models[name]

    def words(self, name: str) -> Vectors:
        """The vectors of that name."""
        if name not in self.vectors:
            raise UnknownNameError("vectors", name, self.vectors)
        return self.vectors[name]

    def answers(self) -> Cache:
        """The cache of the models' answers; by default the one of `evenhand ask`."""
        from evenhand.files import user_cache

        if self.cache is None:
            self.cache = Cache(user_cache("answers"), optional=True)
        return self.cache

    def reference(self, name: str) -> Reference:
        """What the model expects in the built-in sentences, computed once."""
        from evenhand.models.asking import find_reference

        if name not in self._references:
            self._references[name] = find_reference(self.model(name), self.answers())
        return self._references[name]

    def debiased(self, name: str, topic: str, method: str) -> Vectors:
        """The vectors after debiasing for a topic; the last few are held."""
        from evenhand import lexicon
        from evenhand.vectors.mitigation import debias_topic

        if topic not in lexicon.topic_names():
            raise UnknownNameError("topic", topic, lexicon.topic_names())
        key = (name, topic, method)
        if key not in self._debiased:
            if len(self._debiased) >= DEBIASED:
                self._debiased.pop(next(iter(self._debiased)))
            debiased = debias_topic(self.words(name), lexicon.topic(topic), method)
            self._debiased[key] = debiased.vectors
        return self._debiased[key]


def load_subjects(
    models: Sequence[str] = (),
    vectors: Sequence[str] = (),
    run: str | os.PathLike[str] | None = None,
    *,
    load_model: Callable[[str], Any],
    load_vectors: Callable[[str], Vectors],
    predictions: PredictionTable | None = None,
    collected: Answers | None = None,
    cache: Cache | None = None,
) -> Subjects:
    """Load everything that is explored, so that what is wrong is an error before the start."""
    from evenhand.models.likelihood import is_causal
    from evenhand.report.findings import read_findings

    findings = None if run is None else read_findings(run)
    named_models = name_subjects(models, load_model)
    for model in named_models.values():
        is_causal(model)  # anything without pronouns to expect is refused
    named_vectors = name_subjects(vectors, load_vectors)
    return Subjects(
        models=named_models,
        vectors=named_vectors,
        findings=findings,
        predictions=predictions,
        collected=collected,
        cache=cache,
    )


def name_subjects(sources: Sequence[str], load: Callable[[str], S]) -> dict[str, S]:
    """Subjects by their names; those of one name are distinguished by how they were given."""
    loaded = {source: load(source) for source in sources}
    counts, names = Counter(each.name for each in loaded.values()), public_names(loaded)
    chosen = {
        names[source] if counts[each.name] > 1 else each.name: each
        for source, each in loaded.items()
    }
    if len(chosen) < len(loaded):
        raise InputError(f"expected sources with different names, got {', '.join(loaded)}")
    return {
        name: each if each.name == name else replace(each, name=name)
        for name, each in chosen.items()
    }
