"""`evenhand ask`: one sentence, one answer."""

from __future__ import annotations

import click

from evenhand.cli.commands import Command
from evenhand.cli.options import ModelLoader, json_option, model_option, model_options
from evenhand.cli.output import print_json, say


@click.command(cls=Command)
@click.argument("sentences", metavar="SENTENCE…", nargs=-1, required=True)
@model_option(multiple=True, default=("mini",), help="A masked or causal model; repeatable.")
@model_options
@json_option
def ask(sentences: tuple[str, ...], model: tuple[str, ...], load: ModelLoader) -> None:
    """Say which pronoun a model expects in a sentence, and whether that is a lean.

    A sentence has one pronoun, or [MASK] in its place. Percentages are probabilities among all
    words for a masked model, among these pronouns for a causal one.

    The ratio has a range: the sentence is also asked with five openings that change nothing in it,
    such as "By the way, …". The model leans where this range excludes 1 and the range of 40 neutral
    sentences ("Somebody lost [MASK] keys."), and not where he, she and they together have less than
    1 % of the probability.

    \b
    Examples:
      evenhand ask "The clerk lost [MASK] keys."
      evenhand ask "The engineer fixed his bug."
      evenhand ask "The nurse said that [MASK] was late." --model mini --model ./gpt2
    """
    from evenhand.models.asking import ask as answer

    models = [load.any(source) for source in dict.fromkeys(model)]
    answers = answer(list(sentences), models, cache=load.cache)
    if print_json(command="ask", answers=[each.to_dict() for each in answers]):
        return
    for sentence in sentences:
        if len(sentences) > 1:
            say(sentence)
        for each in answers:
            if each.sentence == sentence:
                say(str(each))
