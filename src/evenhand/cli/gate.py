"""`evenhand gate`: does a model meet a policy?"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evenhand.cli import completion
from evenhand.cli.commands import Command
from evenhand.cli.options import file_option, json_option, seed_option
from evenhand.cli.output import print_json, print_notes, print_rows, say, table
from evenhand.cli.outputs import OutputFile
from evenhand.files import replace_file, signed

if TYPE_CHECKING:
    from evenhand.gate import GatePlan

FAILS = 3
"""The exit code of a gate that fails: not met or, where its policy says so, inconclusive."""


@click.command(cls=Command)
@click.argument(
    "sources", metavar="POLICY RESULTS…", nargs=-1, required=True, type=completion.RESULTS
)
@click.option(
    "--baseline",
    multiple=True,
    metavar="RESULTS",
    help="Earlier results, for rules on the change or the worsening; repeatable.",
)
@file_option(
    "--junit",
    type=OutputFile(dir_okay=False),
    help="Write JUnit XML, as CI systems read it.",
)
@file_option(
    "--markdown",
    type=OutputFile(dir_okay=False),
    help="Write a summary for a pull request.",
)
@click.option(
    "--init",
    is_flag=True,
    help="Print a first policy for RESULTS with the numbers of today, and check nothing.",
)
@click.option(
    "--plan",
    "planned",
    is_flag=True,
    help="Simulate how often the policy is met, not met and inconclusive for a model that has not "
    "changed, and how often it fails one that is worse.",
)
@click.option(
    "--worsening",
    "worsenings",
    multiple=True,
    type=float,
    metavar="SIZE",
    help="--plan: a worsening, on the scale of the measures; repeatable.  [default: 1 to 5 "
    "standard errors of each]",
)
@seed_option()
@json_option
def gate(
    sources: tuple[str, ...],
    baseline: tuple[str, ...],
    junit: str | None,
    markdown: str | None,
    init: bool,
    planned: bool,
    worsenings: tuple[float, ...],
    seed: int,
) -> int:
    """Check results against a policy: exit 0 if it is met, 3 if it fails.

    POLICY is a TOML file of rules. RESULTS is the folder of an audit or of a few-shot run, or a
    JSON document that a command (--json, -o) or save wrote; - is standard input.

    A rule limits the value of a measure, or its change from the baseline, and is judged by the
    interval. It is met if the interval is inside the limits, not met if it is outside, and
    inconclusive if it crosses a limit. A rule fails unless it is met; with fails_if = "clearly
    outside" only what is not met fails, and a gate that is inconclusive exits with 0. Changes are
    paired on the same items, which --json leaves out: save with -o FILE.json, or gate an audit.

    With max = 0.1, an interval from 0.02 to 0.08 is met, one from 0.12 to 0.18 is not met, and one
    from 0.05 to 0.15 is inconclusive: too few items to say. A measure with bias on both sides of
    its ideal needs min and max.

    \b
    Examples:
      evenhand gate --init audit-out > policy.toml
      evenhand gate policy.toml audit-out
      evenhand gate policy.toml new.json --baseline old.json --junit gate.xml --markdown gate.md
      evenhand gate policy.toml new.json --baseline old.json --plan
    """
    from evenhand.gate import check, draft_policy, plan

    if init:
        if planned or junit or markdown:
            raise click.UsageError("--init: checks nothing, so it takes no other output")
        click.echo(draft_policy(*sources, baseline=bool(baseline)), nl=False)
        return 0
    policy, *results = sources
    if not results:
        raise click.UsageError("expected a policy and results, got one argument")
    if worsenings and not planned:
        raise click.UsageError("--worsening: only --plan has it")
    earlier = list(baseline) or None
    if planned:
        from evenhand.gate.planning import STEPS

        found = plan(policy, results, earlier, worsenings=worsenings, seed=seed)
        if not print_json(command="gate --plan", plan=found.to_dict()):
            sizes = [f"+{size:g}" for size in worsenings]
            _print_plan(found, sizes or [f"+{step:g} se" for step in STEPS])
        return 0
    checked = check(policy, results, earlier)
    for path, text in ((junit, checked.to_junit), (markdown, checked.to_markdown)):
        if path is not None:
            with replace_file(path) as file:
                file.write(signed(text()))
    if not print_json(command="gate", gate=checked.to_dict()):
        from evenhand.gate.checking import COLUMNS, cells

        table(checked.title or "Gate", COLUMNS, map(cells, checked.rows))
        probs = {row.estimate.prob for row in checked.rows if row.estimate is not None}
        if len(probs) == 1:
            say(f"interval: {100 * probs.pop():g}%.")
        say(checked.summary)
    return FAILS if checked.failed else 0


def _print_plan(found: GatePlan, sizes: list[str]) -> None:
    curve = {
        size: lambda row, i=i: f"{100 * row.curve[i].fails:.0f}%" for i, size in enumerate(sizes)
    }
    print_rows(
        "Operating curve: a model that has not changed, and how often worse ones fail",
        found.rows,
        {
            "rule": lambda row: " ".join(
                filter(None, (row.rule, row.query if row.query not in row.rule else ""))
            ),
            "n": "n",
            "error": "standard_error",
            "met": lambda row: f"{100 * row.unchanged.met:.1f}%",
            "inconclusive": lambda row: f"{100 * row.unchanged.inconclusive:.1f}%",
            "not met": lambda row: f"{100 * row.unchanged.not_met:.1f}%",
            "by value": lambda row: f"{100 * row.false_alarms_by_value:.1f}%",
            **curve,
            "detected": "detected",
            "margin": "margin",
        },
    )
    say(
        "error (se): the standard error of what is limited (of a ratio, on the logarithm). "
        "met, inconclusive, not met: how often each is said of a model that has not changed; "
        "by value: how often a rule that looks at the value alone fails it. +: how often a model "
        "that is so much worse fails. detected: the worsening that fails with a probability of "
        "80%. margin: how much a limit has to allow so that a model that has not changed meets it "
        "with a probability of 80%."
    )
    print_notes(row.note for row in found.rows if row.note)
    for rule, reason in found.unplanned:
        say(f"not planned: {rule}: {reason}")
    say(
        f"a model that has not changed meets the policy in {100 * found.met:.1f}% of cases and "
        f"fails it in {100 * found.false_alarms:.1f}%, if the errors of the rules are independent; "
        f"by values alone it fails in {100 * found.false_alarms_by_value:.1f}%"
    )
