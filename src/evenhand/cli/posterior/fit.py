"""`evenhand posterior fit`: the models of one distance table."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.figures import format_option, save_figures
from evenhand.cli.options import folder_option, json_option, seed_option
from evenhand.cli.posterior.shared import (
    draws_option,
    print_dropped,
    prior_option,
    prob_option,
    save_named,
    shown,
)

if TYPE_CHECKING:
    from evenhand.posterior.checks import Assessment
    from evenhand.posterior.contrasts import Named
    from evenhand.posterior.models import Priors

__all__ = ["fit"]


@click.command(short_help="Fit models to a distance table.")
@click.argument("table", metavar="TABLE", type=click.Path())
@click.option(
    "--model", "models", multiple=True, default=("all",), show_default=True,
    help="baseline, coefficients, separate, paper, crossed, or all; repeatable.",
)  # fmt: skip
@click.option(
    "--sampler", type=click.Choice(["exact", "nuts"]), default="exact", show_default=True,
    help="nuts: NumPyro's, as a check; needs the extra nuts.",
)  # fmt: skip
@click.option(
    "--errors", type=click.Choice(["normal", "student"]), default="normal", show_default=True,
    help="Errors of the model crossed.",
)  # fmt: skip
@click.option("--checks", is_flag=True, help="Add posterior predictive checks.")
@click.option("--sensitivity", is_flag=True, help="Add the contrasts under other priors.")
@draws_option
@prior_option
@folder_option("Folder for results.json, contrasts.csv, levels.csv, the draws and the figures.")
@format_option
@click.option(
    "--word", "words", multiple=True,
    help="Protected word to draw a radial picture of; repeatable.  [default: two telling ones]",
)  # fmt: skip
@seed_option
@prob_option
@json_option
def fit(
    table: str,
    models: tuple[str, ...],
    sampler: Any,
    errors: Any,
    checks: bool,
    sensitivity: bool,
    draws: int,
    priors: tuple[str, ...],
    output: Path | None,
    formats: tuple[str, ...],
    words: tuple[str, ...],
    seed: int,
    prob: float,
    as_json: bool,
) -> None:
    """Fit models to a table of cosine distances, compare them, and give the contrasts.

    The contrasts come from the model crossed, in which protected words and attributes both have
    effects of their own: below 0 means that stereotypes stand nearer their class. The thesis'
    models (baseline, coefficients, separate) and the 2024 paper's are there to be reproduced.

    \b
    Examples:
      evenhand vectors distances glove --topic religion -o religion.csv
      evenhand posterior fit religion.csv
      evenhand posterior fit religion.csv --model crossed --json
    """
    from evenhand.cli.output import bar, print_json
    from evenhand.errors import UnknownNameError
    from evenhand.posterior.checks import assess
    from evenhand.posterior.models import MODELS, Priors, fit_models
    from evenhand.posterior.tables import read_table

    if words and not output:
        raise click.UsageError("--word draws a figure: expected -o FOLDER with it, got none")
    asked = [name for text in models for name in text.split(",")]
    everything = "all" in asked
    for name in asked:
        if name not in (*MODELS, "all"):
            raise UnknownNameError("model", name, (*MODELS, "all"))
    names = MODELS if everything else tuple(dict.fromkeys(asked))
    chosen, data = Priors().update(priors), read_table(table)
    if words:
        data.select_words(words)  # an unknown word is told of before the work, not after it
    fitted = fit_models(
        data, bar(names, "fitting", quiet=as_json), strict=not everything, priors=chosen,
        draws=draws, seed=seed, sampler=sampler, errors=errors,
    )  # fmt: skip
    report = assess(fitted, prob=prob, checks=checks, seed=seed)
    if sensitivity:
        report = report.with_sensitivity(chosen.crossed, draws=draws, seed=seed)
    if output:
        _save(output, report)
        _draw(output, report, chosen, formats, words, seed)
    if as_json:
        print_json(**report.as_dict())
        return
    _print(report)
    if output:
        click.echo(
            f"written to {output}: results.json, contrasts.csv, levels.csv, draws/, figures/"
        )


def _save(folder: Path, report: Assessment) -> None:
    from evenhand.results import document, replace_file, save_json

    (folder / "draws").mkdir(parents=True, exist_ok=True)
    save_named(folder / "contrasts.csv", report.all_contrasts())
    save_named(folder / "levels.csv", report.all_levels())
    for name, model in report.fitted.fits.items():
        with replace_file(folder / "draws" / f"{name}.csv") as file:
            model.to_frame().to_csv(file, index=False, float_format="%.7g")
    save_json(folder / "results.json", document(**report.as_dict()))


def _draw(
    folder: Path,
    report: Assessment,
    priors: Priors,
    formats: tuple[str, ...],
    words: tuple[str, ...],
    seed: int,
) -> None:
    from evenhand.report.posterior import fit_charts

    save_figures(fit_charts(report, priors, words=words, seed=seed), folder, formats)


def _print(report: Assessment) -> None:
    from evenhand.cli.output import number, table

    fitted, level = report.fitted, f"{report.prob:.0%}"
    table(
        f"{fitted.table.source}: {fitted.table.rows:,} rows, {len(fitted.table.words)} protected "
        f"words, {len(fitted.table.attributes)} attributes",
        ("model", "WAIC", "SE", "p", "difference", "SE of it", "LOO", "k > .7", "R-hat", "ESS"),
        (
            (
                d.model, number(report.scores[d.model].waic, 1),
                number(report.scores[d.model].waic_se, 1), number(report.scores[d.model].p_waic, 1),
                number(d.waic_difference, 1), number(d.waic_difference_se, 1),
                number(report.scores[d.model].loo, 1), str(report.scores[d.model].high_k),
                number(report.diagnostics[d.model].rhat_max),
                number(report.diagnostics[d.model].ess_min, 0),
            )
            for d in report.differences
        ),
    )  # fmt: skip
    table(
        f"Mean distance by connection ({level} highest-density intervals; coefficients: co)",
        ("model", "connection", "mean", "sd", "interval"),
        (
            (name, connection, *shown(summary)[:3])
            for name, model in fitted.fits.items()
            for connection, summary in model.coefficients(report.prob).items()
        ),
    )
    for title, rows in report.contrast_tables().items():
        table(
            f"{title} ({level})", ("", "mean", "sd", "interval", "P(< 0)"),
            ((_name(row), *shown(row.summary)) for row in rows),
        )  # fmt: skip
    for name, found in report.checks.items():
        table(
            f"Tables made by {name} beside the data",
            ("statistic", "data", "model", "interval", "p"),
            ((c.statistic, number(c.observed), number(c.mean),
              f"[{number(c.low)}, {number(c.high)}]", number(c.p)) for c in found),
        )  # fmt: skip
    if report.sensitivity:
        table(
            "associated-different under other priors",
            ("prior", "mean", "sd", "interval", "P(< 0)"),
            ((s.name, *shown(s.contrasts["associated-different"])) for s in report.sensitivity),
        )
    print_dropped(fitted.table.source, fitted.table.dropped)
    for name, reason in fitted.skipped.items():
        click.echo(f"not fitted: {name}: {reason}")
    for note in report.notes:
        click.echo(f"note: {note}")


def _name(row: Named) -> str:
    place = row.word or row.group
    return f"{place} ({row.group})" if row.word and row.group else place or row.of
