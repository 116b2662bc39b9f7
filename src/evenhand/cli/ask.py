"""`evenhand ask`: one sentence, one answer."""

from __future__ import annotations

import click

from evenhand.cli.commands import Command
from evenhand.cli.options import ModelLoader, json_option, model_option, model_options
from evenhand.cli.output import print_json, say

__all__ = ["ask"]


@click.command(cls=Command, short_help="Which pronoun a model expects in a sentence.")
@click.argument("sentences", metavar="SENTENCE…", nargs=-1, required=True)
@model_option(multiple=True, default=("mini",), help="A masked or causal model; repeatable.")
@model_options
@json_option
def ask(
    sentences: tuple[str, ...], model: tuple[str, ...], load: ModelLoader, as_json: bool
) -> None:
    """Say which pronoun a model expects at the [MASK] of a sentence, and how usual that is.

    Percentages are probabilities among all words for a masked model, among these pronouns for a
    causal one. The comparison is with our built-in sentences, in which the person's gender is not
    stated either.

    \b
    Examples:
      evenhand ask "The clerk lost [MASK] keys."
      evenhand ask "The nurse said that [MASK] was late." --model mini --model ./gpt2
    """
    from evenhand.language.asking import ask as answer

    models = [load.any(source) for source in dict.fromkeys(model)]
    answers = answer(list(sentences), models, cache=load.cache)
    if as_json:
        print_json(command="ask", answers=[each.to_dict() for each in answers])
        return
    for sentence in sentences:
        if len(sentences) > 1:
            say(sentence)
        for each in answers:
            if each.sentence == sentence:
                say(str(each))
