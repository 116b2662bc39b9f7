"""Writing many answers in process: ours / `generate` of transformers, in one run.

    python benchmarks/answers.py [MODEL] [--prompts 8] [--samples 25] [--tokens 32] [--plain 20]
        [--threads 1] [--device cpu]

MODEL is an embedded model, a folder or a GGUF file. The usual way is one call of `generate` per
answer; `--plain` is the number of answers that it writes. Greedy texts of both have to be the same.
"End to end" is `answers.collect` with its cache and files, all but loading the model. Rates are
answers per second of processor time on a CPU, and on the clock elsewhere.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from evenhand.answers.collecting import collect, prepare
from evenhand.answers.prompts import Prompt
from evenhand.models.causal import load
from evenhand.models.local_writer import LocalWriter
from evenhand.models.writing import Request, WriteSettings

OCCUPATIONS = ("nurse", "judge", "clerk", "farmer", "pilot", "baker", "singer", "guard")
TEXT = (
    "You write short texts for a magazine that everybody reads, in plain words and without lists. "
    "Write about a working day of a {}: what the day begins with, who comes to see them, what goes "
    "wrong before noon, and how the evening ends. Begin with the person."
)


def timed(work: Callable[[], object], device: torch.device) -> float:
    """Processor time, or the time on the clock of a GPU."""
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    start = clock()
    work()
    return clock() - start


def usual(writer: LocalWriter, request: Request, settings: WriteSettings) -> str:
    """The text of one call of `generate`."""
    model = writer.model
    [prompt] = writer._encode([request])
    ids = torch.tensor([prompt], device=model.device)
    sampled = settings.temperature > 0
    options = {"temperature": settings.temperature, "top_k": 0} if sampled else {}
    out = model.network.generate(
        ids,
        attention_mask=torch.ones_like(ids),
        do_sample=sampled,
        max_new_tokens=settings.max_new_tokens,
        pad_token_id=min(writer._ends),
        eos_token_id=sorted(writer._ends),
        **options,
    )
    return str(model.tokenizer.decode(out[0, ids.shape[1] :], skip_special_tokens=True))


def main() -> None:
    """Measure, and print one table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", nargs="?", default="tiny-causal")
    for name, default in (("prompts", 8), ("samples", 25), ("tokens", 32), ("plain", 20)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    prompts = [Prompt(TEXT.format(name)) for name in OCCUPATIONS[: given.prompts]]
    model = load(given.model, device=given.device)
    writer = LocalWriter(model)
    model.network  # noqa: B018 (loaded before the clock runs)
    plain_writer = LocalWriter(load(given.model, device=given.device))

    greedy = WriteSettings(temperature=0, max_new_tokens=given.tokens)
    requests = prepare(writer, prompts, samples=1, settings=greedy).requests
    texts = dict(writer.write(requests, greedy))
    same = sum(usual(plain_writer, r, greedy) == texts[i].text for i, r in enumerate(requests))
    print(f"greedy texts of {model.name} that are the same: {same} of {len(requests)}")

    settings = WriteSettings(max_new_tokens=given.tokens)
    requests = prepare(writer, prompts, samples=given.samples, settings=settings).requests
    every = len(requests) // min(given.plain, len(requests))
    chosen = requests[::every]
    with tempfile.TemporaryDirectory() as folder:

        def complete() -> None:
            output = Path(folder) / "answers.jsonl"
            collect(writer, prompts, samples=given.samples, settings=settings, output=output)

        times = {
            "generate, one by one": timed(
                lambda: [usual(plain_writer, each, settings) for each in chosen], model.device
            )
            / len(chosen),
            "ours": timed(lambda: list(writer.write(requests, settings)), model.device)
            / len(requests),
            "ours, end to end": timed(complete, model.device) / len(requests),
        }
    base = times["generate, one by one"]
    print(f"{len(prompts)} prompts × {given.samples} samples, up to {given.tokens} new tokens")
    for name, seconds in times.items():
        print(f"{name:22s} {1 / seconds:8.2f} answers/s  {base / seconds:5.1f} ×")


if __name__ == "__main__":
    main()
