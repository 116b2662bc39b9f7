"""`evenhand masked crows`: which sentence of stereotype pairs a model finds the likelier one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from evenhand.cli.masked.shared import (
    load_model,
    models_option,
    open_cache,
    running_options,
    scoring_bar,
)
from evenhand.cli.options import json_option, output_option, prob_option, seed_option

if TYPE_CHECKING:
    from evenhand.masked.metrics.crows import CrowsChange, CrowsResult, Method, Preference, Shift
    from evenhand.results import Estimate

__all__ = ["crows"]


@click.command(short_help="CrowS-Pairs: is the stereotype the likelier sentence?")
@click.argument("path", metavar="FILE", type=click.Path(allow_dash=True))
@models_option
@click.option(
    "--method", type=click.Choice(["shared", "unmasked"]), default="shared", show_default=True,
    help="shared: the tokens both sentences have, hidden one at a time (Nangia et al. 2020); "
    "unmasked: all tokens, none hidden (Kaneko & Bollegala 2022).",
)  # fmt: skip
@output_option("Write every pair with its scores to this CSV file.")
@running_options
@seed_option
@prob_option
@json_option
def crows(
    path: str,
    models: tuple[str, ...],
    method: Method,
    output: str | None,
    device: str,
    dtype: str,
    int8: bool,
    cache: str | None,
    seed: int,
    prob: float,
    as_json: bool,
) -> None:
    """Score the sentence pairs of CrowS-Pairs, or of a CSV file with its columns.

    Of each pair the tokens that both sentences share are hidden one at a time; the sentence in
    which they are likelier counts as preferred. With no preference half of the pairs would go
    each way. FILE has the columns sent_more, sent_less, stereo_antistereo, bias_type and perhaps
    anon_writer, as crows_pairs_anonymized.csv; it may be packed, and - is the standard input.
    With several models each is compared with the first, pair by pair.

    \b
    Examples:
      evenhand masked crows crows_pairs_anonymized.csv
      evenhand masked crows crows_pairs_anonymized.csv -o pairs.csv --json
      evenhand masked crows pairs.csv --model mini --model tuned/ --cache answers/
    """
    from dataclasses import replace

    from evenhand.cli.output import print_json
    from evenhand.masked.metrics.crows import compare, read_pairs, score

    pairs, answers = read_pairs(path), open_cache(cache)
    results = []
    for source in dict.fromkeys(models):
        with scoring_bar(f"scoring {source}") as progress:
            found = score(
                load_model(source, device, dtype, int8), pairs, method=method, prob=prob,
                seed=seed, progress=progress, cache=answers,
            )  # fmt: skip
        results.append(replace(found, model=source))
    changes = [compare(results[0], other) for other in results[1:]]
    if output:
        _save(output, results)
    if as_json:
        print_json(
            models=[found.as_dict() for found in results],
            comparisons=[change.as_dict() for change in changes],
        )
        return
    for found in results:
        _print(found)
    for change in changes:
        _print_change(change)
    click.echo("Read with care:")
    for caveat in results[0].caveats:
        click.echo(f"- {caveat}")


def _save(output: str, results: Sequence[CrowsResult]) -> None:
    import pandas as pd

    from evenhand.results import replace_file

    with replace_file(output) as file:
        pd.concat([found.to_frame() for found in results]).to_csv(file, index=False)


def _print(found: CrowsResult) -> None:
    from evenhand.cli.output import table

    rows = [
        _row("all pairs", found.overall),
        *(_row(f"direction {name}", part) for name, part in found.directions.items()),
        *(_row(name, part) for name, part in found.categories.items()),
    ]
    table(
        f"{found.model}: share of pairs whose more stereotypical sentence is the likelier",
        ("pairs of", "n", "share", "interval", "p", "mean difference"),
        rows,
    )
    if found.by_writer:
        click.echo(
            f"all pairs, with the {found.writers} writers as the unit: "
            f"{_percent(found.by_writer)} {_percents(found.by_writer)}"
        )
    ties = f", ties {found.overall.ties}" if found.overall.ties else ", no ties"
    click.echo(
        f"intervals: {found.overall.share.prob:.0%}. share: no preference is 50 %. p: exact "
        "against 50 %, for the categories corrected for their number (Holm). mean difference: "
        "score of the more minus the less stereotypical sentence, in nats. Share with ties "
        f"as not stereotyped, as the authors count: {found.authors_score:.2f} %{ties}."
    )
    if found.left_out:
        first = "; ".join(f"line {x.pair.line} ({x.reason})" for x in found.left_out[:5])
        more = f"; and {len(found.left_out) - 5} more" if len(found.left_out) > 5 else ""
        click.echo(f"left out: {len(found.left_out)} pairs: {first}{more}")
    click.echo()


def _row(name: str, part: Preference) -> tuple[str, ...]:
    from evenhand.cli.output import p_text

    return (
        name,
        str(part.n),
        _percent(part.share),
        _percents(part.share),
        p_text(part.p_value if part.p_holm is None else part.p_holm),
        _nats(part.difference),
    )


def _print_change(change: CrowsChange) -> None:
    from evenhand.cli.output import table

    parts = {"all pairs": change.overall, **change.categories}
    table(
        f"{change.after} against {change.before}, pair by pair",
        ("pairs of", "n", "before", "after", "change", "interval", "p", "mean difference"),
        [_shift_row(name, part) for name, part in parts.items()],
    )
    click.echo(
        f"intervals: {change.overall.share.prob:.0%}. change: of the share, in percentage points "
        "(Newcombe's paired interval; p: McNemar's exact test, for the categories corrected by "
        "Holm). mean difference: its change, in nats. "
        f"Pairs that only one model took: {change.unpaired}.\n"
    )


def _shift_row(name: str, part: Shift) -> tuple[str, ...]:
    from evenhand.cli.output import p_text

    share = part.share
    return (
        name,
        str(part.n),
        f"{100 * part.before:.1f} %",
        f"{100 * part.after:.1f} %",
        f"{100 * share.value:+.1f}",
        f"[{100 * share.low:+.1f}, {100 * share.high:+.1f}]",
        p_text(part.p_value if part.p_holm is None else part.p_holm),
        _nats(part.difference),
    )


def _percent(share: Estimate) -> str:
    return f"{100 * share.value:.1f} %"


def _percents(share: Estimate) -> str:
    return f"[{100 * share.low:.1f}, {100 * share.high:.1f}]"


def _nats(gap: Estimate) -> str:
    from evenhand.cli.output import number

    return f"{number(gap.value)} [{number(gap.low)}, {number(gap.high)}]"
