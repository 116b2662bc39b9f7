"""`evenhand vectors …`: look at, measure and debias static word vectors."""

from __future__ import annotations

import click

from evenhand.cli.lazy import LazyGroup

__all__ = ["vectors"]


@click.group(
    cls=LazyGroup,
    short_help="Look at, measure and debias static word vectors.",
    places={
        name: f"evenhand.cli.vectors.{name}:{name}"
        for name in ("info", "distances", "measure", "debias", "analogies", "null")
    },
)
def vectors() -> None:
    """Static word vectors: info, distances, measure, debias, analogies, null.

    SRC is an embedded name (glove) or a file: GloVe or word2vec text, word2vec binary, fastText
    .vec, our .npz, or gzip of these.
    """
