"""Every option is declared once: by an instrument, by settings, or by one shared option."""

import ast
from collections import defaultdict
from pathlib import Path

import click
import pytest

import evenhand.cli
from evenhand.cli import command
from evenhand.cli.options import flags_of
from evenhand.fewshot.settings import DataSettings, RunSettings, SharedSettings, TrainingSettings
from evenhand.instruments import all_declarations, options_of
from evenhand.masked.finetuning import Settings as FinetuneSettings
from evenhand.masked.generation import Settings as GenerationSettings
from evenhand.text.rewrite.names import Anonymize
from evenhand.text.rewrite.neutralize import Neutralize
from evenhand.text.rewrite.swap import Swap
from evenhand.text.structural import Filter
from evenhand.vectors.mitigation import DebiasSettings

SETTINGS = (
    DataSettings,
    RunSettings,
    SharedSettings,
    TrainingSettings,
    FinetuneSettings,
    GenerationSettings,
    Anonymize,
    Neutralize,
    Swap,
    Filter,
    DebiasSettings,
)
OTHER_MEANINGS = {
    "--batch": "blocks per step of fine-tuning; episodes per step of a few-shot run",
    "--control": "a second training on the unchanged text; a benchmark rewritten",
    "--data": "labelled texts of a run; material of the metrics of a model",
    "--direction": "where generation pushes the bias; which words are swapped",
    "--draws": "from a posterior; of random words",
    "--dtype": "of a model that is run; of training",
    "--duplicates": "of a data set; of odds, where every row can count",
    "--edits": "how many words are replaced; a file of all edits",
    "--female": "the code of a column; values of odds, repeatable",
    "--fills": "words tried in generation; top words of DisCo",
    "--format": "of figures; of the input; of a file of vectors",
    "--gender": "the column of a data set; of odds, where pronouns can replace it",
    "--judge": "a second model; what distinguishes her and her",
    "--label": "the column of a data set; of odds; what an audit is called",
    "--learning-rate": "of fine-tuning; of a few-shot network",
    "--limit": "of seeds; of the length of texts",
    "--male": "the code of a column; values of odds, repeatable",
    "--mask": "what the pronoun becomes; the share of masked tokens",
    "--method": "of debiasing; how CrowS pairs are scored",
    "--model": "a language model; a Bayesian model",
    "--names": "first names too; a file of names of DisCo",
    "--option": "of a network; of an engine",
    "--output": "a file; a folder",
    "--patience": "in evaluations of fine-tuning; in validations of a few-shot run",
    "--seed": "of all draws; of the training alone",
    "--sentences": "a file to measure on; whether documents are cut",
    "--sets": "of phrases; of simulated tables",
    "--text": "the column of a data set; of odds, whose pronouns count",
    "--words": "of a measure of models; protected words of a distance table",
    "--top-k": "of the pronoun score; of the second score of fine-tuning; of DisCo",
    "-o": "a file; a folder",
}
"""Flags that several declarations have since they mean different things."""


def written_by_hand() -> dict[str, list[str]]:
    """Where a flag is written in the code of the commands."""
    places = defaultdict(list)
    for path in sorted(Path(evenhand.cli.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(getattr(node, "func", None), "attr", None) or getattr(
                getattr(node, "func", None), "id", None
            )
            if isinstance(node, ast.Call) and name in ("option", "shared"):
                for argument in node.args:
                    value = getattr(argument, "value", None)
                    if isinstance(value, str) and value.startswith("-"):
                        places[value].append(f"{path.name}:{node.lineno}")
    return places


def declared() -> dict[str, set[str]]:
    """The declarations of each flag; instruments that share a help text share the declaration."""
    flags = defaultdict(set)
    for about in all_declarations():
        for option in about.options:
            for flag in flags_of(option):
                flags[flag].add(f"instruments: {option.name}")
    for cls in SETTINGS:
        for option in options_of(cls):
            for flag in flags_of(option) if option.public else ():
                flags[flag].add(f"{cls.__module__}: {option.help}")
    return flags


def test_no_option_is_declared_twice():
    hand, settings = written_by_hand(), declared()
    several = {
        flag: [*hand.get(flag, ()), *sorted(settings.get(flag, ()))]
        for flag in {*hand, *settings}
        if len(hand.get(flag, ())) + len(settings.get(flag, ())) > 1
    }
    assert {flag: places for flag, places in several.items() if flag not in OTHER_MEANINGS} == {}
    assert set(OTHER_MEANINGS) <= set(several)


def commands(group, words=()):
    context = click.Context(group)
    for name in group.list_commands(context):
        member = group.get_command(context, name)
        if isinstance(member, click.Group):
            yield from commands(member, (*words, name))
        else:
            yield " ".join((*words, name)), member


@pytest.mark.parametrize("member", [pytest.param(m, id=n) for n, m in commands(command)])
def test_a_command_has_each_flag_once_and_explains_it(member):
    flags = [
        flag
        for parameter in member.params
        if isinstance(parameter, click.Option)
        for flag in (*parameter.opts, *parameter.secondary_opts)
    ]
    assert len(flags) == len(set(flags))
    assert all(p.help for p in member.params if isinstance(p, click.Option))
