"""`evenhand vectors distances`: the distance table of a topic."""

from __future__ import annotations

import click

from evenhand.cli.options import (
    case_option,
    json_option,
    load_vectors,
    output_option,
    prob_option,
    seed_option,
    source_argument,
)

__all__ = ["distances"]


@click.command(short_help="Protected words against stereotypes and controls.")
@source_argument
@click.option("--topic", required=True, help="gender, religion, race, or your topic's .toml file.")
@output_option("Write the whole table here as CSV.")
@click.option("--extended", is_flag=True, help="Add our own stereotype words to the published.")
@case_option
@seed_option
@prob_option
@json_option
def distances(
    source: str,
    topic: str,
    output: str | None,
    extended: bool,
    case: str,
    seed: int,
    prob: float,
    as_json: bool,
) -> None:
    """Cosine distances of protected words to stereotypes and control words.

    The CSV has the columns protectedWord, wordToCompare, wordClass, cosineDistance,
    cosineSimilarity, connection. The contrast compares each stereotype's distance to its own
    class with that to the others; below 0 means that stereotypes stand nearer their class.

    \b
    Example:  evenhand vectors distances glove --topic religion -o religion.csv
    """
    from evenhand.cli.output import measurements_table, number, print_json, table
    from evenhand.lexicon import topic as read_topic
    from evenhand.vectors.distances import association_contrast, distance_table

    made = distance_table(load_vectors(source, case), read_topic(topic), extended=extended)
    contrast = association_contrast(made, seed=seed, prob=prob)
    frame = made.to_frame()
    by_connection = frame.groupby("connection")["cosineDistance"].agg(["mean", "median", "size"])
    if output:
        made.save(output)
    if as_json:
        print_json(
            topic=made.topic, rows=len(frame), output=output, left_out=list(made.left_out),
            connections=by_connection.to_dict(orient="index"), measurements=[contrast],
        )  # fmt: skip
        return
    table(
        f"{made.topic}: {len(made.protected)} protected words × {len(made.attributes)} attributes",
        ("connection", "mean", "median", "n"),
        (
            (str(name), number(row["mean"]), number(row["median"]), str(int(row["size"])))
            for name, row in by_connection.iterrows()
        ),
    )
    measurements_table("Contrast associated - different, same attribute", [contrast])
    if made.left_out:
        click.echo(f"left out, no vector: {', '.join(made.left_out)}")
    if output:
        click.echo(f"{len(frame):,} rows written to {output}")
