"""`evenhand masked associate`: which professions a model gives to men and which to women."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenhand.cli.masked.shared import (
    load_model,
    models_option,
    open_cache,
    running_options,
    scoring_bar,
)
from evenhand.cli.options import folder_option, format_option, json_option, prob_option
from evenhand.cli.output import save_figures

if TYPE_CHECKING:
    from evenhand.masked.designs import Design
    from evenhand.results import Comparison, Estimate, Measurement

MOST = 8
"""Professions of either end that are shown; JSON and -o have all."""


@click.command(short_help="Which professions suggest a man, which a woman.")
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
    """The association of professions with men and women: log(p_target / p_prior).

    p_target is the probability of the person word with the profession shown, p_prior that of the
    same word at the same position with every piece of the profession masked (Kurita et al. 2019,
    Bartl et al. 2020); reported is the man's minus the woman's. Above 0 the profession suggests a
    man. Templates, professions and person words are all samples, and the intervals allow for all
    three.

    Without FILE the built-in templates, professions and persons are used, or yours. FILE is a table
    in the layout of BEC-Pro (columns Sentence, Template, Person, Gender, Profession, Prof_Gender).

    \b
    Examples:
      evenhand masked associate
      evenhand masked associate BEC-Pro_EN.tsv --model ./bert --json
      evenhand masked associate --model mini --model ./tuned -o out
      evenhand masked associate --persons he/she --professions jobs.txt --templates own.toml
    """
    from evenhand.instruments import Run
    from evenhand.masked.metrics.professions import Professions

    asked, incomplete = _design(file, templates, professions, persons)
    results = []
    sources = tuple(dict.fromkeys(models))
    for source in sources:
        model = load_model(source, device, dtype, int8)
        if len(sources) > 1:
            model = replace(model, name=source)
        with scoring_bar(f"scoring {model.name}", " words") as progress:
            run = Run(prob=prob, cache=open_cache(cache), progress=progress)
            results.append(Professions().measure(model, asked, run))
    changes = [Professions.compare(results[0], other) for other in results[1:]]
    if output:
        _save(results, changes, incomplete, output, formats)
    if as_json:
        from evenhand.cli.output import print_json

        print_json(
            command="masked associate",
            file=file,
            incomplete=incomplete,
            measurements=results,
            comparisons=changes,
        )
        return
    for m in results:
        _print(m)
    _print_changes(changes)
    if incomplete:
        click.echo(f"left out, since {file} lacks some of their sentences: {', '.join(incomplete)}")


def _design(
    file: str | None, templates: str | None, professions: str | None, persons: Sequence[str]
) -> tuple[Design, tuple[str, ...]]:
    """The sentences, and the professions for which some are missing."""
    from evenhand.lexicon.professions import PersonPair, read_professions, read_templates
    from evenhand.masked.designs import design, read_becpro

    if file is not None:
        if templates or professions or persons:
            raise click.UsageError(
                "FILE has its own sentences: give it without --templates, --professions, --persons"
            )
        return read_becpro(file)
    filled = design(
        read_templates(templates) if templates else None,
        read_professions(professions) if professions else None,
        [PersonPair.parse(text) for text in persons] or None,
    )
    return filled, ()


def _save(
    results: Sequence[Measurement],
    changes: Sequence[Comparison],
    incomplete: Sequence[str],
    folder: Path,
    formats: tuple[str, ...],
) -> None:
    import pandas as pd

    from evenhand.files import document, replace_file, save_json
    from evenhand.report.masked import association_charts

    folder.mkdir(exist_ok=True)
    content = document(
        measurements=[m.to_dict(items=False) for m in results],
        comparisons=[change.to_dict(items=False) for change in changes],
        incomplete=incomplete,
    )
    save_json(folder / "results.json", content)
    items = pd.concat([m.to_frame().assign(model=m.subject) for m in results])
    with replace_file(folder / "items.csv") as out:
        items.to_csv(out, index=False)
    save_figures(association_charts(results), folder, formats)


def _print(m: Measurement) -> None:
    from evenhand.cli.output import number, table

    sizes = {
        "template": m.details["templates"],
        "profession": m.details["professions"],
        "pair of persons": m.details["pairs"],
    }
    shown = {"all": m, **{part.query: part for part in m.select("group")}}
    for part in m.select("contrast"):
        shown["male - female"] = part
    table(
        f"Association of {m.subject}: {' × '.join(_counted(*size) for size in sizes.items())}",
        ("professions", "value", "interval", "p", "n"),
        ((name, *_cells(part)) for name, part in shown.items()),
    )
    click.echo(
        f"value: log(p_target / p_prior) of men minus that of women, {m.prob:.0%} "
        f"interval over {_listed(sizes)}. groups: who mostly holds the profession."
    )
    for women in m.select("correlation"):
        click.echo(
            f"rank correlation with the share of women, n = {women.n}: "
            f"{number(women.value)} [{number(women.low)}, {number(women.high)}]"
        )
    parts = m.select("profession")
    ends = parts if len(parts) <= 2 * MOST else (*parts[:MOST], *parts[-MOST:])
    table(
        f"Professions, the {MOST} most male and the {MOST} most female"
        if len(ends) < len(parts)
        else "Professions, the most male first",
        ("profession", "group", "value", "interval", "pooled", "pooled interval"),
        (
            (
                part.query,
                part.details["group"] or "–",
                *_span(part.estimate),
                *_span(part.part("pooled").estimate),
            )
            for part in ends
        ),
    )
    table(
        "Templates: the value of each, and of all others without it",
        ("template", "value", "interval", "without", "sign changes", "agreement"),
        (
            (
                part.query,
                *_span(part.estimate),
                number(part.details["without"]),
                f"{part.details['sign_changes']:.0%}",
                number(part.details["agreement"], 2),
            )
            for part in m.select("template")
        ),
    )
    sensitivity = m.details["sensitivity"]
    if sensitivity["low"] is not None:
        click.echo(
            f"one template left out: {number(sensitivity['low'])} to "
            f"{number(sensitivity['high'])}. {sensitivity['changing']:.0%} of the professions "
            f"change sign with the template, {sensitivity['sign_changes']:.0%} of single answers "
            "differ in sign from their profession's mean."
        )
    for note in m.notes:
        click.echo(f"note: {note}")


def _plural(name: str) -> str:
    return name.replace("pair ", "pairs ") if name.startswith("pair ") else f"{name}s"


def _counted(name: str, n: int) -> str:
    return f"{n} {name if n == 1 else _plural(name)}"


def _listed(sizes: Mapping[str, int]) -> str:
    """What the interval is over: that of which there are several."""
    several = [_plural(name) for name, n in sizes.items() if n > 1]
    return " and ".join(filter(None, (", ".join(several[:-1]), several[-1]))) if several else "none"


def _print_changes(changes: Sequence[Comparison]) -> None:
    from evenhand.cli.output import p_text, table

    if not changes:
        return
    table(
        "Models on the same sentences: difference, paired",
        ("models", "professions", "change", "interval", "p", "n"),
        (
            (
                f"{change.after.subject} - {change.before.subject}",
                "male - female" if part.before.by == "contrast" else "all",
                *_span(part.change),
                p_text(part.p_value),
                f"{change.paired:,}",
            )
            for change in changes
            for part in (change, *change.parts)
        ),
    )


def _cells(measured: Measurement) -> tuple[str, ...]:
    from evenhand.cli.output import p_text

    return (*_span(measured.estimate), p_text(measured.p_value), f"{measured.n:,}")


def _span(told: Estimate) -> tuple[str, str]:
    from evenhand.cli.output import number

    return number(told.value), f"[{number(told.low)}, {number(told.high)}]"
