"""Pretrain a small language model, masked (BERT) or causal (Llama), on one GPU, in minutes.

    pretrain.py tokenizer TEXT… --kind causal --out TOKENIZER   learn the tokens of a kind
    pretrain.py prepare TEXT… --tokenizer TOKENIZER --out FOLDER    split and tokenise, once
    pretrain.py probe …     short runs of several settings, one table
    pretrain.py train …     the long run, with checkpoints; the same command again goes on
    pretrain.py evaluate …  validation loss, pronouns, plain sentences, pseudo-perplexity
    pretrain.py export …    the model folder for transformers

docs/developers/pretraining.md goes through it.
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from pathlib import Path

STARTED = time.time()
sys.path[:0] = [str(Path(__file__).parents[1] / "src")]

from evenhand.errors import EvenhandError, InputError  # noqa: E402
from pretraining import corpus, prepared, tokenizer  # noqa: E402
from pretraining.recipe import Recipe  # noqa: E402


def main(arguments: list[str] | None = None) -> int:
    """Run one subcommand; 2 where the input is wrong."""
    options = parser().parse_args(arguments)
    try:
        options.run(options)
    except InputError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    except EvenhandError as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("stopped; `train` goes on from its last checkpoint", file=sys.stderr)
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = top.add_subparsers(required=True, metavar="command")

    command = commands.add_parser("tokenizer", help="learn the tokens")
    command.add_argument("text", nargs="+", type=Path)
    command.add_argument("--kind", choices=["masked", "causal"], default=Recipe.kind)
    command.add_argument("--size", type=int, default=Recipe.vocabulary)
    command.add_argument("--out", type=Path, required=True, help="folder for the tokenizer")
    command.set_defaults(run=run_tokenizer)

    command = commands.add_parser("prepare", help="split into sentences and tokenise")
    command.add_argument("text", nargs="+", type=Path)
    command.add_argument("--tokenizer", type=Path, required=True)
    command.add_argument("--out", type=Path, required=True, help="folder for the prepared texts")
    command.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    command.set_defaults(run=run_prepare)

    command = commands.add_parser("probe", help="short runs of several settings, one table")
    _add_data(command)
    _add_recipe(command)
    command.add_argument("--setting", action="append", required=True, metavar="NAME=VALUE,…")
    command.add_argument("--seconds", type=float, default=60, help="training time of each")
    command.set_defaults(run=run_probe)

    command = commands.add_parser("train", help="train, or go on from the checkpoint")
    _add_data(command)
    _add_recipe(command)
    command.add_argument("--checkpoint", type=Path, required=True, help="folder, made if need be")
    command.add_argument("--steps", type=int, help="of the whole run; without, as many as fit")
    command.add_argument("--minutes", type=float, help="stop so long after the start")
    command.add_argument("--carry", type=Path, help="folder for a smaller copy of the checkpoint")
    command.add_argument("--carry-kind", choices=["compact", "weights"], default="compact")
    command.add_argument(
        "--snapshot",
        type=int,
        action="append",
        default=[],
        metavar="STEP",
        help="also write the weights after this step to CHECKPOINT-STEP; may be repeated",
    )
    command.set_defaults(run=run_train)

    command = commands.add_parser("evaluate", help="the whole evaluation")
    _add_data(command)
    command.add_argument("model", type=Path, help="an exported model or a checkpoint")
    command.add_argument("--occupations", type=Path, help="folder of WinoBias's two lists")
    command.add_argument("--sentences", type=Path, help="file for pseudo-perplexity, one a line")
    command.add_argument("--draws", type=int, default=4, help="masks drawn for each row")
    command.add_argument("--out", type=Path, help="also write the numbers as JSON")
    command.set_defaults(run=run_evaluate)

    command = commands.add_parser("export", help="write the model folder for transformers")
    command.add_argument("checkpoint", type=Path)
    command.add_argument("--tokenizer", type=Path, required=True)
    command.add_argument("--out", type=Path, required=True)
    command.set_defaults(run=run_export)
    return top


def _add_data(command: argparse.ArgumentParser) -> None:
    command.add_argument("--data", type=Path, required=True, help="folder of prepared texts")
    command.add_argument("--tokenizer", type=Path, required=True)
    command.add_argument("--device", help="cuda or cpu; cuda where there is one")
    command.add_argument("--no-compile", action="store_true", help="run without torch.compile")


def _add_recipe(command: argparse.ArgumentParser) -> None:
    for field in _choices():
        name = "--" + field.name.replace("_", "-")
        if field.type == "bool":
            command.add_argument(name, action="store_true")
        else:
            kind = type(field.default)
            command.add_argument(name, type=kind, default=field.default, help="%(default)s")


def _choices() -> list[dataclasses.Field[object]]:
    """The fields of a recipe but the kind and the vocabulary, which are the tokenizer's."""
    own = ("kind", "vocabulary")
    return [field for field in dataclasses.fields(Recipe) if field.name not in own]


def _recipe(options: argparse.Namespace) -> Recipe:
    chosen = {field.name: getattr(options, field.name) for field in _choices()}
    known = tokenizer.load_tokenizer(options.tokenizer)
    kind = "causal" if tokenizer.is_causal(known) else "masked"
    return Recipe(kind=kind, vocabulary=known.get_vocab_size(), **chosen)


def run_tokenizer(options: argparse.Namespace) -> None:
    """Learn the tokens from the documents that are not held out."""
    documents = (item for item in corpus.documents(options.text) if not corpus.held_out(item))
    made = tokenizer.train_tokenizer(documents, options.size, options.kind)
    tokenizer.save_tokenizer(made, options.out)
    print(f"{made.get_vocab_size():,} pieces in {options.out}")


def run_prepare(options: argparse.Namespace) -> None:
    """Write one prepared file for each text."""
    options.out.mkdir(parents=True, exist_ok=True)
    for path in options.text:
        made = prepared.prepare(path, options.tokenizer, workers=options.workers)
        target = options.out / f"{path.name.partition('.')[0]}.tokens.xz"
        prepared.save(made, target)
        print(f"{target}: {prepared.describe(made)}; {target.stat().st_size:,} bytes")


def run_probe(options: argparse.Namespace) -> None:
    """Train every setting for equal time and compare them on the held-out documents."""
    from pretraining import commands

    settings = [_setting(text) for text in options.setting]
    commands.probe(_recipe(options), settings, options.seconds, commands.Place.of(options))


def _setting(text: str) -> dict[str, str]:
    """`layers=8,lr=0.001` as names and values; `shares` takes all the rest."""
    before, found, shares = text.partition("shares=")
    pairs = [pair.split("=", 1) for pair in before.split(",") if pair]
    if any(len(pair) != 2 for pair in pairs):
        raise InputError(f"--setting: expected NAME=VALUE,…, got {text!r}")
    return {**dict(pairs), **({"shares": shares} if found else {})}


def run_train(options: argparse.Namespace) -> None:
    """Train until the steps or the minutes are over; the checkpoint says where it stands."""
    from pretraining import commands

    deadline = None if options.minutes is None else STARTED + 60 * options.minutes
    commands.train(_recipe(options), options, deadline, commands.Place.of(options))


def run_evaluate(options: argparse.Namespace) -> None:
    """Print the whole evaluation of a model."""
    from pretraining import commands

    commands.evaluate(options, commands.Place.of(options))


def run_export(options: argparse.Namespace) -> None:
    """Write the model folder and compare it with the training model."""
    from pretraining import commands

    commands.export_checkpoint(options.checkpoint, options.tokenizer, options.out)


if __name__ == "__main__":
    sys.exit(main())
