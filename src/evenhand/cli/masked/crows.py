"""`evenhand masked crows`: which sentence of stereotype pairs a model finds the likelier one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.declared import configure, declared_options
from evenhand.cli.masked.shared import (
    load_model,
    models_option,
    open_cache,
    running_options,
    scoring_bar,
)
from evenhand.cli.options import json_option, output_option, prob_option, seed_option
from evenhand.masked.metrics.crows import Crows

if TYPE_CHECKING:
    from evenhand.results import Comparison, Estimate, Measurement


@click.command(short_help="CrowS-Pairs: is the stereotype the likelier sentence?")
@click.argument("path", metavar="FILE", type=click.Path(allow_dash=True))
@models_option
@declared_options(Crows)
@output_option("Write every pair with its scores to this CSV file.")
@running_options
@seed_option
@prob_option
@json_option
def crows(
    path: str,
    models: tuple[str, ...],
    output: str | None,
    device: str,
    dtype: str,
    int8: bool,
    cache: str | None,
    seed: int,
    prob: float,
    as_json: bool,
    **options: Any,
) -> None:
    """Score the sentence pairs of CrowS-Pairs, or of a CSV file with its columns.

    In each pair the tokens that both sentences share are hidden one at a time; the sentence in
    which they are likelier counts as preferred. Without a preference half of the pairs would go
    each way. FILE has the columns sent_more, sent_less, stereo_antistereo, bias_type and optionally
    anon_writer, as crows_pairs_anonymized.csv; it may be compressed, and - is the standard input.
    With several models each is compared with the first, pair by pair.

    \b
    Examples:
      evenhand masked crows crows_pairs_anonymized.csv
      evenhand masked crows crows_pairs_anonymized.csv -o pairs.csv --json
      evenhand masked crows pairs.csv --model mini --model tuned/ --cache answers/
    """
    from dataclasses import replace

    from evenhand.cli.output import print_json
    from evenhand.instruments import Run

    instrument = configure(Crows, options)
    pairs, answers = instrument.read(path), open_cache(cache)
    results = []
    for source in dict.fromkeys(models):
        model = load_model(source, device, dtype, int8)
        with scoring_bar(f"scoring {source}") as progress:
            run = Run(seed=seed, prob=prob, cache=answers, progress=progress)
            results.append(replace(instrument.measure(model, pairs, run), subject=source))
    changes = [Crows.compare(results[0], other) for other in results[1:]]
    if output:
        _save(output, results)
    if as_json:
        print_json(measurements=results, comparisons=changes)
        return
    for result in results:
        _print(result)
    for change in changes:
        _print_change(change)
    click.echo("Read with care:")
    for caveat in Crows.declaration.caveats:
        click.echo(f"- {caveat}")


def _save(output: str, results: Sequence[Measurement]) -> None:
    import pandas as pd

    from evenhand.files import replace_file

    frames = [m.to_frame() for m in results]
    for frame, m in zip(frames, results, strict=True):
        frame.insert(0, "model", m.subject)
    with replace_file(output) as file:
        pd.concat(frames).to_csv(file, index=False)


def _print(m: Measurement) -> None:
    from evenhand.cli.output import table

    table(
        f"{m.subject}: share of pairs whose more stereotypical sentence is the likelier",
        ("pairs of", "n", "share", "interval", "p", "mean difference"),
        [
            _row("all pairs", m),
            *(_row(f"direction {part.query}", part) for part in m.select("direction")),
            *(_row(part.query, part) for part in m.select("category")),
        ],
    )
    for by_writer in m.select("unit"):
        click.echo(
            f"all pairs, with the {m.details['writers']} writers as the unit: "
            f"{_percent(by_writer.estimate)} {_percents(by_writer.estimate)}"
        )
    ties = f", ties {m.details['ties']}" if m.details["ties"] else ", no ties"
    click.echo(
        f"intervals: {m.prob:.0%}. share: no preference is 50 %. p: exact against 50 %, for the "
        "categories corrected for their number (Holm). mean difference: score of the more minus "
        "the less stereotypical sentence, in nats. Share with ties as not stereotyped, as the "
        f"authors count: {m.details['authors_score']:.2f} %{ties}."
    )
    if m.left_out:
        more = f"; and {len(m.left_out) - 5} more" if len(m.left_out) > 5 else ""
        click.echo(f"left out: {len(m.left_out)} pairs: {'; '.join(m.left_out[:5])}{more}")
    click.echo()


def _row(name: str, m: Measurement) -> tuple[str, ...]:
    from evenhand.cli.output import p_text

    return (
        name,
        str(m.n),
        _percent(m.estimate),
        _percents(m.estimate),
        p_text(m.details.get("p_holm", m.p_value)),
        _nats(m.part("mean difference").estimate),
    )


def _print_change(change: Comparison) -> None:
    from evenhand.cli.output import table

    categories = [part for part in change.parts if part.before.by == "category"]
    table(
        f"{change.after.subject} against {change.before.subject}, pair by pair",
        ("pairs of", "n", "before", "after", "change", "interval", "p", "mean difference"),
        [
            _change_row("all pairs", change),
            *(_change_row(part.query, part) for part in categories),
        ],
    )
    click.echo(
        f"intervals: {change.change.prob:.0%}. change: of the share, in percentage points "
        "(Newcombe's paired interval; p: McNemar's exact test, for the categories corrected by "
        "Holm). mean difference: its change, in nats. "
        f"Pairs that only one model took: {change.details['unpaired']}.\n"
    )


def _change_row(name: str, part: Comparison) -> tuple[str, ...]:
    from evenhand.cli.output import number, p_text

    share, details = part.change, part.details
    return (
        name,
        str(part.paired),
        *(f"{number(100 * _nan(details[when]), 1)} %" for when in ("before", "after")),
        f"{100 * share.value:+.1f}",
        f"[{100 * share.low:+.1f}, {100 * share.high:+.1f}]",
        p_text(details.get("p_holm", part.p_value)),
        _nats(part.part("mean difference").change),
    )


def _nan(value: float | None) -> float:
    return float("nan") if value is None else value


def _percent(share: Estimate) -> str:
    return f"{100 * share.value:.1f} %"


def _percents(share: Estimate) -> str:
    return f"[{100 * share.low:.1f}, {100 * share.high:.1f}]"


def _nats(gap: Estimate) -> str:
    from evenhand.cli.output import number

    return f"{number(gap.value)} [{number(gap.low)}, {number(gap.high)}]"
