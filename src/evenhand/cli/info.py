"""`evenhand info`: what word vectors or a language model are."""

from __future__ import annotations

import click

from evenhand.cli import completion
from evenhand.cli import options as opt
from evenhand.cli.commands import Command
from evenhand.cli.output import print_json, print_notes, say, shortened, table
from evenhand.instruments import instruments
from evenhand.wording import number


@click.command(cls=Command)
@click.argument("source", metavar="SRC", type=completion.SOURCE)
@opt.case_option
@opt.model_options
@opt.json_option
def info(source: str, case: str, load: opt.ModelLoader) -> None:
    """Show the kind and size of word vectors or a model, and what can be measured.

    Of vectors: which words of the built-in lists they have. Of a model: its metrics.

    \b
    Examples:
      evenhand info glove
      evenhand info ./SmolLM2-135M.gguf --json
    """
    if opt.kind_of_source(source) == "vectors":
        _show_vectors(source, case)
    else:
        _show_model(source, load)


def _show_model(source: str, load: opt.ModelLoader) -> None:
    from evenhand.models.gguf_header import read_header
    from evenhand.models.loading import describe
    from evenhand.models.sources import locate

    kind = "causal"
    if source.lower().endswith(".gguf"):  # its weights need minutes, and nothing here needs them
        name, path, _ = locate(source, "causal")
        about = read_header(path).describe(name)
    else:
        loaded = load.any(source)
        kind, about = loaded.subject_kind, describe(loaded)
    metrics = [cls.declaration for cls in instruments(kind).values()]
    if print_json(command="info", model=about, metrics=[each.name for each in metrics]):
        return
    shown = [
        (name, f"{value:,}" if isinstance(value, int) else value) for name, value in about.items()
    ]
    table("Model", ("", ""), shown)
    rows = [(each.name, each.material or "built in", each.question) for each in metrics]
    table("Metrics", ("metric", "material", "question"), rows)


def _show_vectors(source: str, case: str) -> None:
    import numpy as np

    from evenhand import lexicon
    from evenhand.files import public_name

    v = opt.load_vectors(source, case)
    lists = {name: lexicon.topic(name).words() for name in lexicon.topic_names()}
    for query in lexicon.weat_queries():
        sets = [*query.targets.values(), *query.attributes.values()]
        lists[query.name] = tuple(dict.fromkeys(word for words in sets for word in words))
    coverage = {name: v.find(words) for name, words in lists.items()}
    norms = np.linalg.norm(v.matrix[: min(len(v), 50_000)].astype(float), axis=1)
    if print_json(
        name=v.name,
        source=public_name(v.source),
        words=len(v),
        dim=v.dim,
        notes=list(v.notes),
        median_norm=float(np.median(norms)),
        coverage={
            name: {
                "found": len(rows.words),
                "of": len(rows.words) + len(rows.missing),
                "missing": list(rows.missing),
            }
            for name, rows in coverage.items()
        },
    ):
        return
    say(f"{v.name}: {len(v):,} words × {v.dim}, median length {number(np.median(norms), 2)}")
    print_notes(v.notes)
    table(
        "Words of the built-in lists",
        ("list", "words", "of", "without a vector"),
        (
            (
                name,
                str(len(rows.words)),
                str(len(rows.words) + len(rows.missing)),
                shortened(rows.missing, 8),
            )
            for name, rows in coverage.items()
        ),
    )
