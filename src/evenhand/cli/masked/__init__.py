"""`evenhand masked …`: score, associate, compare, generate and fine-tune masked language models."""

from __future__ import annotations

import click

from evenhand.cli.lazy import LazyGroup

__all__ = ["masked"]


@click.group(
    cls=LazyGroup,
    short_help="Measure and reduce bias in masked language models.",
    places={
        "score": "evenhand.cli.masked.score:score",
        "associate": "evenhand.cli.masked.associate:associate",
        "phrases": "evenhand.cli.masked.phrases:phrases",
        "crows": "evenhand.cli.masked.crows:crows",
        "generate": "evenhand.cli.masked.generate:generate",
        "finetune": "evenhand.cli.masked.finetune:finetune",
    },
)
def masked() -> None:
    """Masked language models: score, associate, phrases, crows, generate, finetune.

    A model is named mini (embedded, the default), by the path of a folder in the transformers
    layout, or as hf:NAME, the only case in which anything is downloaded.
    """
