"""Packages and models of others that rules can be replaced by: spaCy, coreferee, fastcoref."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any, TypeVar

from evenhand.errors import InputError, MissingExtraError

T = TypeVar("T")


def import_package(name: str, purpose: str, install: str) -> Any:
    """Import an optional package, or raise an error that says how to install it."""
    try:
        return import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise MissingExtraError(name, purpose, install) from None


def load_model(load: Callable[[], T], name: str, model: str) -> T:
    """The result of `load`; packages raise different errors for weights that are absent."""
    try:
        return load()
    except Exception as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(f"resolver {name}: {model} cannot be loaded: {reason}") from None


def load_pipeline(model: str, option: str) -> Any:
    """An installed spaCy pipeline, or an error that says how to install it."""
    spacy = import_package("spacy", f"{option} 'spacy:{model}'", "evenhand[spacy]")
    try:
        return spacy.load(model)
    except OSError:
        raise InputError(
            f"{option} 'spacy:{model}': expected an installed spaCy pipeline, found none of that "
            f"name: python -m spacy download {model}"
        ) from None
