"""`evenhand posterior …`: Bayesian uncertainty for cosine bias."""

from __future__ import annotations

import click

from evenhand.cli.lazy import LazyGroup

__all__ = ["posterior"]


@click.group(
    cls=LazyGroup,
    short_help="Bayesian models of distance tables.",
    places={name: f"evenhand.cli.posterior.{name}:{name}" for name in ("fit", "compare", "plan")},
)
def posterior() -> None:
    """Bayesian models of tables of cosine distances: fit, compare; plan a study.

    A table is a CSV with the columns protectedWord, wordToCompare, connection (associated,
    different, human, none) and cosineDistance or cosineSimilarity, under these names or ones like
    them. `evenhand vectors distances` writes one.
    """
