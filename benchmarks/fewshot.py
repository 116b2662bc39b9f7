"""Few-shot classification: ours and the usual loop, in one run.

    python benchmarks/fewshot.py [--model mini] [--shots 5] [--threads 1] [--rounds 3] [--json]

Episodes a second: of processor time with one thread, of time on the clock with several. The ways
take turns, round by round, so that other work on the machine strikes all alike; a rate is the best
round's. The usual loop encodes the texts of each episode anew, padded to its longest, learns with
a dense AdamW from one episode a step, and evaluates in the same manner. The texts are the intents
of HWU64 from ../shared, or simulated biographies where that is absent.
"""

from __future__ import annotations

import argparse
import copy
import json
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from evenhand.fewshot import Dataset, Episodes, read, sample
from evenhand.fewshot.encoders import TunedEncoder, encode
from evenhand.fewshot.networks import NAMES
from evenhand.fewshot.settings import TrainingSettings
from evenhand.fewshot.training import TrainedNetwork, evaluate, train
from evenhand.models import MaskedModel, load

INTENTS = Path(__file__).resolve().parents[2] / "shared/data/intents/HWU64/full.jsonl"


def clock() -> float:
    """Seconds of the processor, or on the clock where there are several threads."""
    return time.process_time() if torch.get_num_threads() == 1 else time.perf_counter()


@dataclass
class Way:
    """One way to do a task: each call of `work` gives episodes and the seconds they took."""

    task: str
    name: str
    work: Callable[[], tuple[int, float]]
    rates: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        return max(self.rates)


def data() -> Dataset:
    """Classes with texts enough for an episode."""
    if INTENTS.is_file():
        return read(INTENTS, name="HWU64").at_least(20)
    from evenhand.simulate.biographies import biographies

    made = biographies(100, seed=0)
    return Dataset.of(made.texts, made.occupations, name="simulated biographies")


class Usual:
    """The loop as it is usually written, for prototypical networks."""

    def __init__(self, model: MaskedModel, texts: tuple[str, ...]) -> None:
        self.encoder = copy.deepcopy(model.network.base_model)
        self.tokenizer, self.texts = model.tokenizer, texts
        self.longest = model.longest
        self.optimizer = torch.optim.AdamW(self.encoder.parameters(), lr=2e-5)

    def logits(self, episodes: Episodes, number: int) -> torch.Tensor:
        """Tokenise and encode the texts of one episode, and compare queries with prototypes."""
        support, query = episodes.support[number], episodes.query[number]
        rows = [*support.ravel().tolist(), *query.ravel().tolist()]
        given = self.tokenizer(
            [self.texts[row] for row in rows],
            padding=True,
            truncation=True,
            max_length=self.longest,
            return_tensors="pt",
        )
        states = self.encoder(**given).last_hidden_state
        weights = given["attention_mask"].unsqueeze(-1).float()
        points = (states * weights).sum(dim=1) / weights.sum(dim=1)
        prototypes = points[: support.size].view(*support.shape, -1).mean(dim=1)
        return -torch.cdist(points[support.size :], prototypes).square()

    def learn(self, episodes: Episodes, count: int) -> tuple[int, float]:
        wanted = torch.arange(episodes.ways).repeat_interleave(episodes.queries)
        self.encoder.train()
        begin = clock()
        for number in range(count):
            self.optimizer.zero_grad()
            loss = functional.cross_entropy(self.logits(episodes, number), wanted)
            loss.backward()
            self.optimizer.step()
            loss.item()
        return count, clock() - begin

    @torch.no_grad()
    def evaluate(self, episodes: Episodes, count: int) -> tuple[int, float]:
        self.encoder.eval()
        begin = clock()
        for number in range(count):
            self.logits(episodes, number).argmax(dim=-1).tolist()
        return count, clock() - begin


def learning(
    settings: TrainingSettings,
    source: np.ndarray | TunedEncoder,
    training: Episodes,
    validation: Episodes,
) -> tuple[int, float]:
    """Our training, from the end of the first step to that of the last but one."""
    moments: list[tuple[int, float]] = []
    train(
        settings,
        source,
        training,
        validation,
        progress=lambda what, done, total, words: moments.append((done, clock())),  # noqa: ARG005
    )
    (first, began), (last, ended) = moments[0], moments[-2]
    return last - first, ended - began


def evaluation(
    trained: TrainedNetwork, source: np.ndarray | TunedEncoder, episodes: Episodes
) -> tuple[int, float]:
    """Our evaluation of all episodes."""
    begin = clock()
    evaluate(trained, source, episodes)
    return len(episodes), clock() - begin


def ways(given: argparse.Namespace, model: MaskedModel, texts: Dataset) -> list[Way]:
    """All ways of all tasks; the usual one first."""
    half = len(texts.classes) // 2
    sides = {"training": texts.classes[:half], "validation": texts.classes[half:]}

    def drawn(kind: str, count: int) -> Episodes:
        return sample(
            texts,
            sides[kind],
            ways=5,
            shots=given.shots,
            queries=given.shots,
            episodes=count,
            purpose=kind,
        )

    test, few = drawn("validation", 600), drawn("validation", 4)
    long = TrainingSettings(validate_every=10**9)
    usual = Usual(model, texts.texts)
    encoder = TunedEncoder(model, texts.texts)
    tuned = train(long, encoder, drawn("training", 1), few)
    learnt, asked = drawn("training", 16), 20
    made = [
        Way("fine-tuned training", "usual loop", lambda: usual.learn(learnt, 16)),
        *(
            Way(
                "fine-tuned training",
                f"ours, {batch} a step",
                lambda batch=batch: learning(
                    TrainingSettings(batch=batch, validate_every=10**9),
                    encoder,
                    drawn("training", 16 + 2 * batch),
                    few,
                ),
            )
            for batch in (1, 8)
        ),
        Way("evaluation", "usual loop", lambda: usual.evaluate(test, asked)),
        Way("evaluation", "ours, fine-tuned", lambda: evaluation(tuned, encoder, test)),
    ]
    features = encode(model, texts.texts)
    for name in NAMES:
        settings = TrainingSettings(network=name, validate_every=10**9)
        trained = train(settings, features, drawn("training", 16), few)
        made += [
            Way(
                "evaluation",
                f"ours, frozen, {name}",
                lambda trained=trained: evaluation(trained, features, test),
            ),
            Way(
                "frozen training",
                name,
                lambda settings=settings: learning(settings, features, drawn("training", 320), few),
            ),
        ]
    return made


def measured(given: argparse.Namespace) -> dict[str, object]:
    """The table as one document."""
    model, texts = load(given.model, device="cpu"), data()
    listed = ways(given, model, texts)
    for _ in range(given.rounds):
        for way in listed:
            episodes, seconds = way.work()
            way.rates.append(episodes / seconds)
    usual = {way.task: way.rate for way in listed if way.name == "usual loop"}
    rows = [
        {
            "task": way.task,
            "way": way.name,
            "rate": way.rate,
            "times_usual": way.rate / usual[way.task] if way.task in usual else None,
        }
        for way in sorted(listed, key=lambda way: way.task)
    ]
    return {
        "model": model.name,
        "data": texts.name,
        "texts": len(texts),
        "ways": 5,
        "shots": given.shots,
        "queries": given.shots,
        "threads": torch.get_num_threads(),
        "rounds": given.rounds,
        "rows": rows,
    }


def show(result: dict[str, object]) -> None:
    """The table for reading."""
    print(
        f"{result['model']}, {result['data']} ({result['texts']:,} texts), 5-way "
        f"{result['shots']}-shot {result['queries']}-query, {result['threads']} threads, "
        f"best of {result['rounds']} rounds"
    )
    print(f"{'':<22}{'':<36}{'episodes/s':>12}{'x usual':>10}")
    for row in result["rows"]:
        times = "" if row["times_usual"] is None else f"{row['times_usual']:.2f}"
        print(f"{row['task']:<22}{row['way']:<36}{row['rate']:>12,.1f}{times:>10}")


def main() -> None:
    """Print the table, or one JSON document."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="mini", help="mini, a folder or hf:NAME")
    parser.add_argument("--shots", type=int, default=5, help="support and query texts a class")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    torch.set_num_threads(given.threads)
    result = measured(given)
    if given.json:
        print(json.dumps(result, indent=2))
    else:
        show(result)


if __name__ == "__main__":
    main()
