"""`evenhand answers collect`: put prompts to a model, in process or behind an address."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli import completion
from evenhand.cli import options as opt
from evenhand.cli.commands import Command
from evenhand.cli.output import print_json, say, table
from evenhand.cli.progress import is_set, step_bars
from evenhand.errors import PartialFailure
from evenhand.models.endpoint import EndpointSettings
from evenhand.models.writing import Budget, WriteSettings

if TYPE_CHECKING:
    from evenhand.answers.collecting import Collection
    from evenhand.models.sources import DType


@click.command(cls=Command)
@click.argument("source", metavar="SRC", type=completion.MODEL)
@click.option(
    "--prompts",
    required=True,
    metavar="FILE",
    type=completion.TABLE,
    help="The prompts: a table with one row per prompt (CSV, JSONL, Parquet), or the name of a "
    "built-in set.",
)
@click.option(
    "--prompt",
    metavar="COLUMN",
    help="The column of the prompts, where it is not called prompt, question, input or text.",
)
@click.option("--system", metavar="TEXT", help="A system prompt for all prompts.")
@click.option(
    "--samples",
    type=click.IntRange(1),
    help="Answers per prompt.  [default: 25; 1 with --temperature 0]",
)
@opt.declared_options(WriteSettings)
@opt.declared_options(EndpointSettings)
@click.option(
    "--max-requests", type=click.IntRange(1), help="Send at most so many requests in this run."
)
@click.option(
    "--max-tokens",
    type=click.IntRange(1),
    help="Take at most so many tokens in this run, of prompts and answers together.",
)
@click.option("--dry-run", is_flag=True, help="Only print how many requests and tokens are left.")
@opt.file_option(
    "-o",
    "--out",
    "output",
    endings=(".jsonl",),
    help="The answers, one JSON object per line; needed but for --dry-run.",
)
@opt.device_option()
@opt.dtype_option
@opt.cache_option(
    help="The folder of the answers so far, which only you can read.  [default: NAME.cache beside "
    "NAME.jsonl]"
)
@opt.reading_options
@opt.seed_option(help="Seed; each sample of each prompt has one of its own, derived from it.")
@opt.json_option
def collect(
    source: str,
    prompts: str,
    max_requests: int | None,
    max_tokens: int | None,
    dry_run: bool,
    output: str | None,
    cache: Path | None,
    samples: int | None,
    system: str | None,
    prompt: str | None,
    device: str,
    dtype: DType,
    seed: int,
    **options: Any,
) -> None:
    """Put every prompt to a model several times and save the answers.

    SRC is a causal language model (tiny-causal, a folder, a GGUF file, hf:NAME), which runs in
    this process, or the address of a server that speaks the protocol of OpenAI, such as
    http://127.0.0.1:8080/v1 of llama.cpp, vLLM or Ollama. A model is asked by its chat template
    where it has one.

    FILE has one row per prompt. Its other columns (item, wording, topic, and groups such as gender)
    are copied to the answers, for `evenhand answers measure`. Each answer has an outcome: answered,
    refused, empty, cut off (by --max-new-tokens) or failed; none is dropped. The settings, dates,
    model and server are in NAME.run.json beside NAME.jsonl. Only you can read these files.

    Run the same command again after an interruption: answers so far are in NAME.cache, and a longer
    file, more samples and failed requests ask only what is missing. With --max-requests or
    --max-tokens the run stops at the bound, saves what it has and exits with 1; repeated
    requests count.

    Requests go to the address that you name and nowhere else. The key of a server is read from
    the environment variable of --key-env and is written nowhere.

    \b
    Examples:
      evenhand answers collect tiny-causal --prompts prompts.csv --samples 5 -o answers.jsonl
      evenhand answers collect model.gguf --prompts prompts.csv --temperature 0.7 -o a.jsonl
      evenhand answers collect http://127.0.0.1:8080/v1 --prompts prompts.csv --dry-run
      evenhand answers collect https://HOST/v1 --name MODEL --key-env KEY --prompts p.csv -o a.jsonl
    """
    from evenhand.answers.collecting import cache_of, prepare

    if output is None and not dry_run:
        raise click.UsageError("expected a file for the answers: -o FILE.jsonl")
    if cache is None and output is not None:
        cache = cache_of(output)
    if dry_run and cache is not None and not cache.exists():
        cache = None
    collection = prepare(
        source,
        prompts,
        samples=samples,
        settings=opt.configure(WriteSettings, options),
        endpoint=opt.configure(EndpointSettings, options),
        system=system or "",
        prompt=prompt,
        seed=seed,
        device=device,
        dtype=dtype,
        cache=cache,
    )
    if output is None or dry_run:
        _print_size(collection)
        return
    collection.check(output, overwrite=is_set("overwrite"))
    budget = Budget(max_requests, max_tokens)
    with step_bars({"asking": "answers"}) as show:
        progress = None if show is None else lambda done, total: show("asking", done, total, "")
        collected = collection.ask(budget, progress)
    collection.save(output, collected)
    if not print_json(
        command="answers collect",
        output=output,
        model=collection.writer.about,
        answers=len(collected.rows),
        outcomes=collected.outcomes,
        complete=collected.complete,
        problem=collected.problem,
        taken={"requests": budget.requests, "tokens": budget.tokens},
    ):
        shares = [
            (outcome, count, f"{count / len(collected.rows):.1%}")
            for outcome, count in collected.outcomes.items()
        ]
        title = f"{len(collected.rows):,} answers of {collection.writer.name}"
        table(title, ["outcome", "answers", "share"], shares)
        say(f"this run: {budget.requests:,} requests, {budget.tokens:,} tokens")
        say(f"written: {output}")
    if collected.problem:
        raise PartialFailure(f"{collected.problem}; saved: {output}; the same command resumes")


def _print_size(collection: Collection) -> None:
    size = collection.size()
    if print_json(command="answers collect", model=collection.writer.about, **asdict(size)):
        return
    about = "about " if size.estimated else ""
    cached = f", {size.cached:,} of them answered before" if size.cached else ""
    say(
        f"{size.prompts:,} prompts × {size.samples:,} samples{cached}: {size.requests:,} requests "
        f"with {about}{size.prompt_tokens:,} tokens of prompts and at most {size.new_tokens:,} new "
        "tokens. Nothing was asked."
    )
    if size.estimated:
        say("The tokenizer of a server is not known: the tokens of prompts are estimated.")
