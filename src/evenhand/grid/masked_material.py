"""What masked cells are made of: models, held for the cells to come, and the lists asked about."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.grid.vector_files import vectors_digest
from evenhand.lexicon.phrases import Phrases, phrases, read_phrases
from evenhand.lexicon.professions import (
    PersonPair,
    Profession,
    TemplateSet,
    professions,
    read_professions,
    read_templates,
    template_set,
)
from evenhand.lexicon.pronoun_sentences import pronoun_sentences

if TYPE_CHECKING:
    from evenhand.grid.task_masked import MaskedSettings
    from evenhand.masked.model import Model

__all__ = ["associated", "lists", "model_of", "named", "sentences"]


@lru_cache(maxsize=2)
def model_of(
    source: str,
    name: str,
    content: str,  # noqa: ARG001
    device: str,
    dtype: Any,
    int8: bool,
) -> Model:
    """A model under a name; `content` tells one state of its files from another."""
    from evenhand.masked.model import load

    return replace(load(source, device=device, dtype=dtype, int8=int8), name=name)


def sentences() -> tuple[str, ...]:
    """The embedded sentences of the pronoun score."""
    return pronoun_sentences().sentences


def associated(
    settings: MaskedSettings,
) -> tuple[TemplateSet, tuple[Profession, ...], tuple[PersonPair, ...]]:
    """Templates, professions and persons of the association test, ours where none are given."""
    chosen = read_templates(settings.templates) if settings.templates else template_set()
    listed = read_professions(settings.professions) if settings.professions else professions()
    pairs = [PersonPair.parse(text) for text in settings.persons] or chosen.persons
    return chosen, tuple(listed), tuple(pairs)


def lists(settings: MaskedSettings) -> Phrases:
    """The phrase sets: embedded ones by name, those of one file, or both."""
    own = [name for name in settings.sets if name.endswith(".toml")]
    chosen = [name for name in settings.sets if name not in own]
    if not own:
        return phrases().select(chosen) if chosen else phrases()
    if len(own) > 1:
        raise InputError(f"sets: expected one file, got {len(own)}: {', '.join(own)}")
    read = read_phrases(own[0])
    return read.join(phrases().select(chosen)) if chosen else read


def named(vectors: tuple[str, ...]) -> dict[str, str]:
    """The word vectors by the name they have in results, and what is in them."""
    return {PurePath(each).name: vectors_digest(each) for each in vectors}
