"""`evenhand list …`: what there is, from the declarations."""

from __future__ import annotations

from collections.abc import Sequence

import click

from evenhand.cli import completion
from evenhand.cli.commands import Group
from evenhand.cli.options import flags_of, json_option
from evenhand.cli.output import print_json, say, table, terminal_width
from evenhand.errors import UnknownNameError
from evenhand.instruments import Declaration, Option, all_declarations

WORSE = {
    "higher": "above it is worse",
    "lower": "below it is worse",
    "away": "either side is worse",
}


NETWORKS = {
    "matching": "attention over the labelled texts (Vinyals et al. 2016)",
    "proto": "the nearest mean of a class (Snell et al. 2017; soft: Ren et al. 2018)",
    "relation": "a learned similarity to the mean of a class (Sung et al. 2018)",
    "induction": "a class vector by dynamic routing (Geng et al. 2019)",
    "maml": "a linear classifier fitted in a few steps (Finn et al. 2017)",
    "in": "a causal model that reads the texts in its prompt (Brown et al. 2020)",
}


@click.group("list", cls=Group)
def reference() -> None:
    """What there is: topics, metrics, embedded models, networks, templates and prompts.

    \b
    Examples:
      evenhand list metrics
      evenhand list metrics weat
      evenhand list topics --json
    """


@reference.command(short_help="Every metric; with NAME, all about one.")
@click.argument("name", required=False, type=completion.METRIC)
@json_option
def metrics(name: str | None) -> None:
    """List the metrics of word vectors, models, corpora and classifiers.

    With NAME: its question, formula, options with their defaults, ideal value, source and caveats.

    \b
    Examples:
      evenhand list metrics
      evenhand list metrics weat
    """
    declarations = all_declarations()
    if name is not None:
        chosen = [about for about in declarations if about.name == name]
        if not chosen:
            raise UnknownNameError("metric", name, [about.name for about in declarations])
        declarations = chosen
    if print_json(metrics=[_as_json(about) for about in declarations]):
        return
    if name is not None:
        for about in declarations:
            _explain(about)
    else:
        table(
            "Metrics",
            ("name", "subject", "question"),
            [(about.name, ", ".join(about.subjects), about.question) for about in declarations],
        )
        say("evenhand list metrics NAME explains one of them.")


def _listed(kind: str, headers: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> None:
    """A table, or the same as a list of objects under the name of the kind."""
    if not print_json(**{kind: [dict(zip(headers, row, strict=True)) for row in rows]}):
        table(kind.capitalize(), headers, rows)


@reference.command(short_help="The topics of word vectors and posteriors.")
@json_option
def topics() -> None:
    """List the built-in topics with their classes; a topic of your own is a TOML file.

    \b
    Example:  evenhand list topics
    """
    from evenhand import lexicon

    found = [lexicon.topic(name) for name in lexicon.topic_names()]
    rows = [(t.name, t.title, ", ".join(t.classes)) for t in found]
    _listed("topics", ("name", "title", "classes"), rows)


@reference.command(short_help="The embedded models and vectors.")
@json_option
def models() -> None:
    """List what is embedded; everything else is named by its path, or as hf:NAME.

    \b
    Example:  evenhand list models
    """
    from evenhand.models.sources import CAUSAL, MASKED
    from evenhand.vectors.store import EMBEDDED as VECTORS

    kinds = {
        ("static word vectors", "evenhand measure"): VECTORS,
        ("masked model", "evenhand measure"): MASKED,
        ("causal model", "evenhand measure"): CAUSAL,
    }
    rows = [
        (name, kind, f"{command} {name}")
        for (kind, command), names in kinds.items()
        for name in names
    ]
    _listed("models", ("name", "kind", "measure it"), rows)


@reference.command(short_help="The networks of few-shot classification.")
@json_option
def networks() -> None:
    """List the networks that `lab fewshot run --network` takes, with their own settings.

    \b
    Example:  evenhand list networks
    """
    from evenhand.fewshot.networks import CHOICES, IN_CONTEXT, options

    rows = [
        (name, NETWORKS[name.split("-")[0]], ", ".join(() if name == IN_CONTEXT else options(name)))
        for name in CHOICES
    ]
    _listed("networks", ("name", "classifies by", "settings"), rows)


@reference.command(short_help="The sentence templates of the metrics.")
@json_option
def templates() -> None:
    """List the sentence templates of the metrics; {…} stands for the word in question.

    \b
    Example:  evenhand list templates
    """
    from evenhand import lexicon
    from evenhand.lexicon.phrases import phrases
    from evenhand.models.metrics.disco import TEMPLATES as DISCO
    from evenhand.models.metrics.gest import TEMPLATES as GEST

    rows = [("professions", template.text) for template in lexicon.template_set().templates]
    rows += [("phrases", text) for text in phrases().carriers]
    rows += [("seat", text) for text in lexicon.sentence_templates()]
    rows += [("disco", text) for text in DISCO]
    rows += [("gest", f"{t.before}{{{t.male}|{t.female}}}{t.after}") for t in GEST]
    _listed("templates", ("metric", "template"), rows)


@reference.command(short_help="The prompts of `answers collect`.")
@json_option
def prompts() -> None:
    """List the built-in sets of prompts, which `answers collect --prompts` takes by name.

    \b
    Example:  evenhand list prompts
    """
    from evenhand.lexicon.prompts import prompt_rows, prompt_sets

    rows = []
    for name, chosen in prompt_sets().items():
        found = prompt_rows(name)
        columns = ", ".join(found[0][1])
        rows.append((name, chosen.title, str(len(found)), columns))
    _listed("prompts", ("name", "title", "prompts", "columns"), rows)


def _explain(about: Declaration) -> None:
    ideal = "none" if about.ideal is None else f"{about.ideal:g}; {WORSE[about.worse]}"
    role = "its test decides a verdict" if about.decides else ""
    role = role or ("it can support a verdict, not decide one" if about.confirms else "")
    rows = [
        ("measures", f"{', '.join(about.subjects)}; material: {about.material or 'built in'}"),
        ("formula", about.formula),
        ("ideal", ideal),
        ("reading", about.reading),
        ("verdict", role),
        ("source", about.source),
        *(("caveat", caveat) for caveat in about.caveats),
    ]
    say(f"{about.name}: {about.label}\n{about.question}\n")
    formatter = click.HelpFormatter(width=min(100, terminal_width() or 100))
    formatter.write_dl([(name, text) for name, text in rows if text])
    if about.options:
        formatter.write("\n")
        with formatter.section("Options"):
            formatter.write_dl([(_names(option), _help(option)) for option in about.options])
    click.echo(formatter.getvalue().rstrip())


def _names(option: Option) -> str:
    flags = ", ".join(flags_of(option))
    return f"{flags} ({option.name})" if option.flag else flags


def _help(option: Option) -> str:
    allowed = f" One of {', '.join(map(str, option.choices))}." if option.choices else ""
    unset = option.default is None or option.default in ((), False)
    default = "" if unset else f" Default: {option.default}."
    return f"{option.help}{allowed}{default}"


FIELDS = (
    *("name", "subjects", "label", "question", "formula", "source", "ideal", "worse"),
    *("decides", "confirms", "material", "reading", "caveats"),
)


def _as_json(about: Declaration) -> dict[str, object]:
    options = [
        {
            "name": option.name,
            "flags": flags_of(option),
            "type": option.type.__name__,
            **{name: getattr(option, name) for name in ("default", "choices", "help")},
        }
        for option in about.options
    ]
    return {**{name: getattr(about, name) for name in FIELDS}, "options": options}
