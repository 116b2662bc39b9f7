"""What the subcommands do that need torch."""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from evenhand.errors import InputError
from evenhand.files import replace_file

from . import checkpoints, export
from .checks import SPACE, CausalReader, Reader, plain, pronouns, pseudo_perplexity
from .decoder import build
from .evaluation import losses, validation_tasks
from .model import Model, parameter_count
from .prepared import Prepared, Text, load
from .recipe import Recipe
from .tokenizer import is_causal, load_tokenizer
from .training import Data, Limits, Run


@dataclass(frozen=True)
class Place:
    """Where a command finds its data and where it runs."""

    data: Path
    tokenizer: Path
    device: torch.device
    compiled: bool

    @classmethod
    def of(cls, options: argparse.Namespace) -> Place:
        name = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
        if name == "cuda":
            torch.set_float32_matmul_precision("high")
        compiled = name == "cuda" and not options.no_compile
        return cls(options.data, options.tokenizer, torch.device(name), compiled)

    def prepared(self) -> Prepared:
        """The text; that of causal models has a mark after every document."""
        made = load(sorted(self.data.glob("*.tokens.xz")))
        if is_causal(load_tokenizer(self.tokenizer)):
            return dataclasses.replace(made, text=made.text.closed(0))
        return made

    def pieces(self) -> list[str]:
        vocabulary = load_tokenizer(self.tokenizer).get_vocab()
        return sorted(vocabulary, key=lambda piece: vocabulary[piece])


def say(text: str) -> None:
    """Print at once, also into a file."""
    print(text, flush=True)


def probe(recipe: Recipe, settings: list[dict[str, str]], seconds: float, place: Place) -> None:
    """Train each setting for equal time, compilation left out, and print one table."""
    recipes = [recipe.changed(setting) for setting in settings]
    data = Data.of(place.prepared(), place.pieces(), recipe)
    table = []
    for setting, changed in zip(settings, recipes, strict=True):
        name = ",".join(f"{key}={value}" for key, value in setting.items())
        say(f"--- {name}")
        run = Run(data, changed, device=place.device, compiled=place.compiled, say=say)
        run.rehearse()
        outcome = run.train(Limits(deadline=time.time() + seconds))
        found = losses(dataclasses.replace(outcome.model, compiled=False), data.validation)
        table.append(
            f"{found.full:10.4f} {found.every:10.4f} {outcome.loss:8.4f} {outcome.step:7,} "
            f"{outcome.speed / 1e6:8.2f} {parameter_count(changed) / 1e6:7.2f}  {name}"
        )
        say(table[-1])
        del run, outcome
    say(
        f"{'validation':>10} {'all rows':>10} {'training':>8} {'steps':>7} {'M tok/s':>8} M weights"
    )
    say("\n".join(sorted(table)))


def train(
    recipe: Recipe, options: argparse.Namespace, deadline: float | None, place: Place
) -> None:
    """Train or go on, write the checkpoint, say what is next."""
    limits = Limits(options.steps, deadline)
    data = Data.of(place.prepared(), place.pieces(), recipe)
    run = Run(data, recipe, device=place.device, compiled=place.compiled, say=say)
    if checkpoints.exists(options.checkpoint):
        run.resume(options.checkpoint)
        say(f"going on from step {run.step:,}")
    run.rehearse()
    outcome = run.train(limits, folder=options.checkpoint, snapshots=options.snapshot)
    if options.carry:
        checkpoints.save(run.checkpoint(), options.carry, options.carry_kind)
    state = "finished" if outcome.finished else "to be continued"
    say(
        f"{state}: step {outcome.step:,} of {outcome.steps:,}, "
        f"{outcome.step * recipe.batch_tokens / 1e9:.2f} G tokens, "
        f"{outcome.speed / 1e6:.2f} M tokens/s"
    )
    if data.validation:
        found = losses(dataclasses.replace(outcome.model, compiled=False), data.validation)
        say(f"validation loss {found.full:.4f} (full rows), {found.every:.4f} (all rows)")


def load_model(path: Path, device: torch.device) -> Model:
    """A model in float32 from an exported folder or from a checkpoint of any kind."""
    if checkpoints.exists(path):
        kept = checkpoints.load(path)
        model = build(kept.recipe, kept.weights)
    elif (path / "config.json").is_file():
        model = export.load_exported(path)
    else:
        raise InputError(f"{path}: expected a checkpoint or an exported model")
    weights = {name: value.to(device) for name, value in model.weights.items()}
    return dataclasses.replace(model, weights=weights)


def evaluate(options: argparse.Namespace, place: Place) -> None:
    """Print the evaluation, and write it as JSON if asked to."""
    torch.set_float32_matmul_precision("highest")
    model = load_model(options.model, place.device)
    causal = model.recipe.kind == "causal"
    reader = (CausalReader if causal else Reader)(model, load_tokenizer(place.tokenizer))
    prepared = place.prepared()
    if causal:
        results = _causal_validation(model, prepared, place.pieces())
    else:
        results = _validation(model, prepared, options.draws)
    results["plain"] = plain(reader)
    for sentence, best in results["plain"].items():
        say(f"{sentence:48} " + "  ".join(f"{word} {chance:.2f}" for word, chance in best))
    if not causal:
        firsts = [word for best in results["plain"].values() for word, _ in best]
        results["pieces within words in the top 5"] = sum(word.startswith("##") for word in firsts)
        say(f"pieces within words in the top 5: {results['pieces within words in the top 5']}")
    if options.occupations:
        found = pronouns(reader, options.occupations)
        results["pronouns"] = dataclasses.asdict(found)
        say(f"pronouns: AUC {found.auc:.3f}, both together {found.probability:.3f}")
        ranked = sorted(found.leaning.items(), key=lambda item: item[1])
        say("  " + ", ".join(f"{word} {value:+.1f}" for word, value in ranked))
        for template, auc in found.by_template.items():
            say(f"  {template:48} AUC {auc:.3f}")
    if options.sentences:
        perplexity = pseudo_perplexity(reader, options.sentences)
        name = "perplexity" if causal else "pseudo-perplexity"
        results[name] = dataclasses.asdict(perplexity)
        say(
            f"{name} {perplexity.value:.2f} "
            f"({perplexity.sentences:,} sentences, {perplexity.tokens:,} tokens)"
        )
    if options.out:
        with replace_file(options.out) as file:
            file.write((json.dumps(results, indent=2) + "\n").encode())


def _validation(model: Model, prepared: Prepared, draws: int) -> dict[str, Any]:
    """Losses on held-out documents, by both maskings, and on as many documents seen in training."""
    held = prepared.validation()
    if not len(held.tokens):
        raise InputError("expected held-out documents in the prepared text, got none")
    texts = (
        ("validation, 80/10/10", held, False),
        ("validation, all [MASK]", held, True),
        ("seen in training, 80/10/10", _sample(prepared, len(held.documents)), False),
    )
    results: dict[str, Any] = {}
    vocabulary, longest = model.recipe.vocabulary, model.recipe.max_positions
    for name, text, only_mask in texts:
        tasks = validation_tasks(text, vocabulary, longest, draws=draws, only_mask=only_mask)
        found = losses(model, tasks)
        results[name] = dataclasses.asdict(found)
        say(
            f"{name}, 15 % hidden: loss {found.full:.4f} on full rows "
            f"(perplexity {math.exp(found.full):.2f}), {found.every:.4f} on all; "
            f"{found.tokens:,} tokens"
        )
    return results


def _causal_validation(model: Model, prepared: Prepared, pieces: list[str]) -> dict[str, Any]:
    """Losses on held-out documents, and on as many documents seen in training.

    A byte-level token has as many letters as bytes, and one that begins a word begins with a space.
    """
    held = prepared.validation()
    if not len(held.tokens):
        raise InputError("expected held-out documents in the prepared text, got none")
    sizes = np.array([0, *map(len, pieces[1:])])
    begins = np.array([piece.startswith(SPACE) for piece in pieces])
    results: dict[str, Any] = {}
    vocabulary, longest = model.recipe.vocabulary, model.recipe.max_positions
    texts = (
        ("validation", held),
        ("seen in training", _sample(prepared, len(held.documents))),
    )
    for name, text in texts:
        tasks = validation_tasks(text, vocabulary, longest, causal=True)
        found = losses(model, tasks)
        labels = np.concatenate([task.labels.numpy() for task in tasks])
        nats = found.every * found.tokens
        words = nats / int(begins[labels].sum())
        bits = nats / math.log(2) / int(sizes[labels].sum())
        results[name] = {
            **dataclasses.asdict(found),
            "perplexity": math.exp(found.every),
            "perplexity per word": math.exp(min(words, 700.0)),
            "bits per byte": bits,
        }
        say(
            f"{name}: loss {found.every:.4f} on all rows (perplexity {math.exp(found.every):.2f} "
            f"per token, {results[name]['perplexity per word']:.1f} per word, {bits:.3f} bits per "
            f"byte), {found.full:.4f} on full rows; {found.tokens:,} tokens"
        )
    return results


def _sample(prepared: Prepared, count: int) -> Text:
    """As many documents of the training part, drawn at random, always the same."""
    places = np.flatnonzero(~prepared.held_out)
    chosen = np.zeros(len(prepared.held_out), dtype=bool)
    chosen[np.random.default_rng(1).permutation(places)[:count]] = True
    return prepared.text.take(chosen)


def export_checkpoint(checkpoint: Path, tokenizer: Path, folder: Path) -> None:
    """Export, then load the result with transformers and compare the logits."""
    model = load_model(checkpoint, torch.device("cpu"))
    size = export.export(model.recipe, model.weights, tokenizer, folder)
    say(f"{folder}: {size:,} bytes, {parameter_count(model.recipe):,} weights")
    if checkpoints.exists(checkpoint):
        step = checkpoints.load(checkpoint).step
        export.write_card(model.recipe, step, parameter_count(model.recipe), size, folder)
    rounded = export.load_exported(folder)
    say(
        f"largest difference of a logit from transformers: {export.difference(rounded, folder):.1e}"
    )
    say(f"largest by rounding to float16: {export.difference(model, folder):.1e}")
