"""`evenhand vectors info`: what is in the vectors."""

from __future__ import annotations

import click

from evenhand.cli.options import case_option, json_option, load_vectors, source_argument

__all__ = ["info"]


@click.command(short_help="Size, dimension, and which of our words it has.")
@source_argument
@case_option
@json_option
def info(source: str, case: str, as_json: bool) -> None:
    """What is in the file: size, dimension, and which words of our lists it has.

    \b
    Example:  evenhand vectors info glove
    """
    import numpy as np

    from evenhand import lexicon
    from evenhand.cli.output import number, print_json, shortened, table

    v = load_vectors(source, case)
    lists = {name: lexicon.topic(name).words() for name in lexicon.topic_names()}
    for query in lexicon.weat_queries():
        sets = [*query.targets.values(), *query.attributes.values()]
        lists[query.name] = tuple(dict.fromkeys(word for words in sets for word in words))
    found = {name: v.find(words) for name, words in lists.items()}
    norms = np.linalg.norm(v.matrix[: min(len(v), 50_000)].astype(float), axis=1)
    if as_json:
        print_json(
            name=v.name, source=v.source, words=len(v), dim=v.dim, notes=list(v.notes),
            median_norm=float(np.median(norms)),
            coverage={
                name: {
                    "found": len(hit.words), "of": len(hit.words) + len(hit.missing),
                    "missing": list(hit.missing),
                }
                for name, hit in found.items()
            },
        )  # fmt: skip
        return
    click.echo(f"{v.name}: {len(v):,} words × {v.dim}, median length {number(np.median(norms), 2)}")
    for note in v.notes:
        click.echo(f"note: {note}")
    table(
        "Words of our lists",
        ("list", "words", "of", "without a vector"),
        (
            (name, str(len(hit.words)), str(len(hit.words) + len(hit.missing)),
             shortened(hit.missing, 8))
            for name, hit in found.items()
        ),
    )  # fmt: skip
