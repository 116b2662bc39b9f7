"""`evenhand fewshot …`: train few-shot classifiers, measure their bias and what mitigations do."""

from __future__ import annotations

import click

from evenhand.cli.lazy import LazyGroup

__all__ = ["fewshot"]


@click.group(
    cls=LazyGroup,
    short_help="Accuracy and gender bias of few-shot text classifiers.",
    places={
        "run": "evenhand.cli.fewshot.run:run",
        "bias": "evenhand.cli.fewshot.bias:bias",
    },
)
def fewshot() -> None:
    """Few-shot text classification: run, bias.

    `run` trains a network on many small tasks, tests it on classes it has never seen and keeps all
    its answers in a folder; `bias` reads such folders: the bias of one, or what a mitigation
    changed between two or more.
    """
