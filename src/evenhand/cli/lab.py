"""`evenhand lab …`: tools for research."""

from __future__ import annotations

import click

from evenhand.cli.commands import CommandTree

SECTIONS = {
    "Commands": {
        "fewshot": ("Few-shot classifiers: accuracy and gender bias.", "fewshot:fewshot"),
        "grid": ("Many experiments: one machine, Slurm or Ray.", "grid:grid"),
        "posterior": ("Bayesian models of distance tables.", "posterior:posterior"),
        "generate": ("Edit sentences until a model's bias shows.", "generate:generate"),
        "annotate": ("Sheets for annotators, and their verdicts back.", "text:annotate"),
        "vectors": ("Train vectors; distances, analogies, random words.", "vectors:vectors"),
    },
}


@click.group(cls=CommandTree, sections=SECTIONS)
def lab() -> None:
    """Tools for research: experiments, Bayesian models, generated and annotated sentences.

    \b
    Examples:
      evenhand lab fewshot run --network proto -o run
      evenhand lab posterior fit religion.csv
      evenhand lab vectors analogies glove man doctor woman
    """
