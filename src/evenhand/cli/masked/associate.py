"""`evenhand masked associate`: which professions a model gives to men and which to women."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenhand.cli.figures import format_option, save_figures
from evenhand.cli.masked.shared import (
    load_model,
    models_option,
    open_cache,
    running_options,
    scoring_bar,
)
from evenhand.cli.options import folder_option, json_option, prob_option

if TYPE_CHECKING:
    from evenhand.masked.metrics.association import Association, ModelChange
    from evenhand.masked.metrics.association_design import Design
    from evenhand.results import Estimate, Measurement

__all__ = ["associate"]

MOST = 8
"""Professions of either end that are shown; JSON and -o have all."""


@click.command(short_help="Which professions call for a man, which for a woman.")
@click.argument("file", metavar="[FILE.tsv]", type=click.Path(), required=False)
@models_option
@click.option(
    "--templates", metavar="FILE", type=click.Path(),
    help="Your own sentences with {person} and {profession}: one a line, or a TOML file.",
)  # fmt: skip
@click.option(
    "--professions", metavar="FILE", type=click.Path(),
    help="Your own professions: one a line, or CSV with profession, group, women.",
)  # fmt: skip
@click.option(
    "--persons", metavar="MALE/FEMALE", multiple=True,
    help="Your own pair of persons, such as he/she or 'my brother/my sister'. Repeatable.",
)  # fmt: skip
@folder_option("Folder for results.json, items.csv and the figures.")
@format_option
@running_options
@prob_option
@json_option
def associate(
    file: str | None,
    models: tuple[str, ...],
    templates: str | None,
    professions: str | None,
    persons: tuple[str, ...],
    output: Path | None,
    formats: tuple[str, ...],
    device: str,
    dtype: str,
    int8: bool,
    cache: str | None,
    prob: float,
    as_json: bool,
) -> None:
    """The association test: log(p_target / p_prior), the man's less the woman's.

    p_target is the probability of the person word with the profession shown, p_prior that of the
    same word at the same place with every piece of the profession masked (Kurita et al. 2019,
    Bartl et al. 2020). Above 0 the profession calls for a man. Templates, professions and person
    words are all samples, and the intervals allow for all three.

    Without FILE our own templates, professions and persons are used, or yours. FILE is a table
    laid out as BEC-Pro (columns Sentence, Template, Person, Gender, Profession, Prof_Gender).

    \b
    Examples:
      evenhand masked associate
      evenhand masked associate BEC-Pro_EN.tsv --model ./bert --json
      evenhand masked associate --model mini --model ./tuned -o out
      evenhand masked associate --persons he/she --professions jobs.txt --templates own.toml
    """
    from evenhand.masked.metrics import association

    asked, left_out = _design(file, templates, professions, persons)
    results = []
    sources = tuple(dict.fromkeys(models))
    for source in sources:
        model = load_model(source, device, dtype, int8)
        if len(sources) > 1:
            model = replace(model, name=source)
        with scoring_bar(f"asking {model.name}", " words") as progress:
            found = association.associate(
                model, asked, prob=prob, cache=open_cache(cache), progress=progress
            )
        results.append(found)
    changes = association.compare(results, prob) if len(results) > 1 else ()
    if output:
        _save(results, changes, left_out, output, formats)
    if as_json:
        from evenhand.cli.output import print_json

        print_json(
            command="masked associate", file=file, incomplete=left_out,
            models=[found.as_dict() for found in results],
            comparisons=[change.as_dict() for change in changes],
        )  # fmt: skip
        return
    for found in results:
        _print(found)
    _print_changes(changes)
    if left_out:
        click.echo(f"left out, since {file} lacks some of their sentences: {', '.join(left_out)}")


def _design(
    file: str | None, templates: str | None, professions: str | None, persons: Sequence[str]
) -> tuple[Design, tuple[str, ...]]:
    """The sentences to ask about, and the professions whose sentences are not all there."""
    from evenhand.lexicon.professions import PersonPair, read_professions, read_templates
    from evenhand.masked.metrics.association import design, read_becpro

    if file is not None:
        if templates or professions or persons:
            raise click.UsageError(
                "FILE has its own sentences: give it without --templates, --professions, --persons"
            )
        return read_becpro(file)
    made = design(
        read_templates(templates) if templates else None,
        read_professions(professions) if professions else None,
        [PersonPair.parse(text) for text in persons] or None,
    )
    return made, ()


def _save(
    results: Sequence[Association],
    changes: Sequence[ModelChange],
    left_out: Sequence[str],
    folder: Path,
    formats: tuple[str, ...],
) -> None:
    import pandas as pd

    from evenhand.report.charts_masked_association import association_charts
    from evenhand.results import document, replace_file, save_json

    folder.mkdir(exist_ok=True)
    content = document(
        models=[found.as_dict() for found in results],
        comparisons=[change.as_dict() for change in changes],
        incomplete=left_out,
    )
    save_json(folder / "results.json", content)
    items = pd.concat([found.to_frame().assign(model=found.model) for found in results])
    with replace_file(folder / "items.csv") as out:
        items.to_csv(out, index=False)
    save_figures(association_charts(results), folder, formats)


def _print(found: Association) -> None:
    from evenhand.cli.output import number, table

    templates, professions, pairs = found.design.shape
    told = {"all": found.overall, **found.groups}
    if found.stereotype:
        told["male - female"] = found.stereotype
    sizes = {"template": templates, "profession": professions, "pair of persons": pairs}
    table(
        f"Association of {found.model}: {' × '.join(_counted(*size) for size in sizes.items())}",
        ("professions", "value", "interval", "p", "n"),
        ((name, *_cells(measured)) for name, measured in told.items()),
    )
    click.echo(
        f"value: log(p_target / p_prior) of men less that of women, {found.overall.prob:.0%} "
        f"interval over {_listed(sizes)}. groups: who mostly has the profession."
    )
    if found.women:
        women = found.women
        click.echo(
            f"rank correlation with the share of women, n = {women['n']}: "
            f"{number(women['value'])} [{number(women['low'])}, {number(women['high'])}]"
        )
    ends = found.professions
    shown = ends if len(ends) <= 2 * MOST else (*ends[:MOST], *ends[-MOST:])
    table(
        f"Professions, the {MOST} most male and the {MOST} most female"
        if len(shown) < len(ends) else "Professions, the most male first",
        ("profession", "group", "value", "interval", "pooled", "pooled interval"),
        (
            (line.profession, line.group or "–", *_span(line.difference), *_span(line.pooled))
            for line in shown
        ),
    )  # fmt: skip
    table(
        "Templates: what each says alone, and all without it",
        ("template", "value", "interval", "without", "sign changes", "agreement"),
        (
            (
                line.template, *_span(line.difference), number(line.without),
                f"{line.sign_changes:.0%}", number(line.agreement, 2),
            )
            for line in found.templates
        ),
    )  # fmt: skip
    how = found.sensitivity
    if how.low is not None:
        click.echo(
            f"one template left out: {number(how.low)} to {number(how.high)}. "
            f"{how.changing:.0%} of the professions change sign with the template, "
            f"{how.sign_changes:.0%} of single answers differ in sign from their profession's mean."
        )
    for note in found.notes:
        click.echo(f"note: {note}")


def _plural(name: str) -> str:
    return name.replace("pair ", "pairs ") if name.startswith("pair ") else f"{name}s"


def _counted(name: str, n: int) -> str:
    return f"{n} {name if n == 1 else _plural(name)}"


def _listed(sizes: Mapping[str, int]) -> str:
    """What the interval is over: that of which there are several."""
    several = [_plural(name) for name, n in sizes.items() if n > 1]
    return " and ".join(filter(None, (", ".join(several[:-1]), several[-1]))) if several else "none"


def _print_changes(changes: Sequence[ModelChange]) -> None:
    from evenhand.cli.output import p_text, table

    if not changes:
        return
    table(
        "Models on the same sentences: difference, paired",
        ("models", "professions", "change", "interval", "p", "n"),
        (
            (f"{change.model} - {change.against}", name, *_span(told), p_text(p), f"{change.n:,}")
            for change in changes
            for name, told, p in (
                ("all", change.overall, change.p_value),
                ("male - female", change.stereotype, change.stereotype_p_value),
            )
            if told is not None
        ),
    )


def _cells(measured: Measurement) -> tuple[str, ...]:
    from evenhand.cli.output import p_text

    return (*_span(measured.estimate), p_text(measured.p_value), f"{measured.n:,}")


def _span(told: Estimate) -> tuple[str, str]:
    from evenhand.cli.output import number

    return number(told.value), f"[{number(told.low)}, {number(told.high)}]"
