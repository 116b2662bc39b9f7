"""`evenhand answers …`: what language models write in answer to prompts."""

from __future__ import annotations

import click

from evenhand.cli.commands import CommandTree

SECTIONS = {
    "Commands": {
        "collect": ("Ask a model, in process or behind an endpoint.", "answers_collect:collect"),
        "measure": ("Measure answers by the groups of their prompts.", "answers_measure:measure"),
    },
}


@click.group(cls=CommandTree, sections=SECTIONS)
def answers() -> None:
    """What language models write: collect answers to prompts and measure them.

    \b
    Examples:
      evenhand answers collect tiny-causal --prompts occupations -o answers.jsonl
      evenhand answers collect http://127.0.0.1:8080/v1 --name MODEL --prompts p.csv -o a.jsonl
      evenhand answers measure answers.jsonl --group gender
    """
