r"""Few-shot classification by prompting: a causal model reads the examples and names the label.

Nothing is trained. The examples of an episode are in the prompt, in an order that the seed draws.
The probabilities of the classes are those of their labels as the answer,
$p_c \propto P(\text{label}_c \mid \text{prompt})$. A model prefers some labels whatever the text
is, so they are divided by their mean after queries without content and normalised again (Zhao,
Wallace, Feng, Klein & Singh 2021). Or the model writes its answer, and the first label in it
counts: its class has the probability $2 / (C + 2)$, each other one and *no label* $1 / (C + 2)$
(add-one smoothing over C + 1 outcomes).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError, PartialFailure, parameter
from evenhand.fewshot.episodes import NPZ_ERRORS, Episodes
from evenhand.files import replace_file
from evenhand.models.writing import Message, Request, Writer, WriteSettings
from evenhand.statistics.intervals import Floats

if TYPE_CHECKING:
    from evenhand.fewshot.settings import LabelBy

__all__ = ["ContextPrompts", "answer_queries", "check_window", "classify", "draw_orders"]

CONTENT_FREE = ("N/A", "[MASK]", "")
"""Queries without content, as in Zhao et al. (2021)."""
STORED = 8
"""Episodes after which what is done is stored."""
WRITING = WriteSettings(temperature=0, max_new_tokens=24)
ORDERS = 0x0DE2  # separates these draws from others of the same seed


def clean_labels(names: Sequence[str]) -> list[str]:
    """Class names as prompts have them.

    >>> clean_labels(["nurse", "stage_actor"])
    ['nurse', 'stage actor']
    """
    labels = [" ".join(name.replace("_", " ").split()) for name in names]
    for label in labels:
        same = [other for other, own in zip(names, labels, strict=True) if own == label]
        if not label or len(same) > 1:
            given = " and ".join(f"'{other}'" for other in same)
            raise InputError(
                f"classes: expected names that make different labels, got {given} for '{label}'"
            )
    return labels


def draw_orders(episodes: Episodes, seed: int, split: int) -> NDArray[np.int64]:
    """The order of each episode's examples (E, C * K)."""
    rng = np.random.default_rng([seed, split, ORDERS])
    return rng.random((len(episodes), episodes.ways * episodes.shots)).argsort(axis=1)


@dataclass(frozen=True, eq=False)
class ContextPrompts:
    """The prompts of episodes.

    Parameters
    ----------
    episodes : Episodes
        Their supports are the examples.
    texts : sequence of str
        The texts that their rows are of.
    names : sequence of str
        The names of the classes.
    orders : array (E, C * K)
    limit : int
        The longest text in words; the rest is left out. All versions of a text have about the same
        words, so that they end at the same place, for every model.

    """

    episodes: Episodes
    texts: Sequence[str] = field(repr=False)
    names: Sequence[str]
    orders: NDArray[np.int64] = field(repr=False)
    limit: int

    @cached_property
    def _labels(self) -> list[str]:
        return clean_labels(self.names)

    def labels(self, episode: int) -> list[str]:
        """The labels of an episode, in the order of its classes."""
        return [self._labels[index] for index in self.episodes.classes[episode].tolist()]

    def query(self, row: int) -> str:
        """The text of a row, cut, as a query."""
        return " ".join(self.texts[row].split()[: self.limit])

    def requests(self, episode: int, queries: Sequence[str]) -> list[Request]:
        """Requests whose answers are the labels of these queries."""
        order = self.orders[episode]
        support = self.episodes.support[episode]
        rows = support.ravel()[order].tolist()
        labels = np.repeat(self.labels(episode), support.shape[1])[order].tolist()
        shared = f"Each text has one of these labels: {', '.join(dict.fromkeys(labels))}.\n\n"
        for row, label in zip(rows, labels, strict=True):
            shared += f"Text: {self.query(row)}\nLabel: {label}\n\n"
        return [Request((Message("user", f"{shared}Text: {query}\nLabel:"),)) for query in queries]


def answer_queries(
    writer: Writer,
    prompts: ContextPrompts,
    versions: Sequence[NDArray[Any]],
    label_by: LabelBy,
    path: Path,
    progress: Callable[[int], None],
) -> list[NDArray[np.float32]]:
    """The log-probabilities (E, M, C) of the queries in each of several versions.

    Parameters
    ----------
    writer : Writer
    prompts : ContextPrompts
    versions : sequence of array (E, C, Q)
        The rows of the queries, in each version.
    label_by : {"calibrated", "likelihood", "written"}
    path : path
        What is done is stored here: an interrupted call resumes.
    progress : callable
        Called with the episodes done.

    """
    count = len(prompts.episodes)
    rows = np.stack([version.reshape(count, -1) for version in versions], axis=1)
    check_window(writer, prompts, rows.reshape(count, -1))
    shape = (*rows.shape, prompts.episodes.ways)
    done = _read_done(path, shape)
    path.parent.mkdir(parents=True, exist_ok=True)
    for episode in range(len(done), count):
        progress(episode)
        queries = [prompts.query(row) for row in rows[episode].ravel().tolist()]
        values = classify(writer, prompts, episode, queries, label_by)
        done.append(values.reshape(shape[1:]).astype(np.float32))  # as they are saved
        if len(done) % STORED == 0:
            with replace_file(path, durable=False) as file:
                np.savez(file, log_probs=np.stack(done))
    progress(count)
    path.unlink(missing_ok=True)
    return list(np.stack(done, axis=1))


def _read_done(path: Path, shape: tuple[int, ...]) -> list[NDArray[np.float32]]:
    """What was stored of an array of this shape; nothing where it is damaged."""
    try:
        with np.load(path, allow_pickle=False) as file:
            stored = file["log_probs"]
    except NPZ_ERRORS:
        return []
    return list(stored) if stored.shape[1:] == shape[1:] and len(stored) <= shape[0] else []


def check_window(writer: Writer, prompts: ContextPrompts, queries: NDArray[Any]) -> None:
    """Raise an error where the model cannot read the longest prompt with its label.

    Of each episode the prompt with the longest query is counted. The window of an endpoint is not
    known here: it refuses prompts itself.
    """
    from evenhand.models.local_writer import LocalWriter

    if not isinstance(writer, LocalWriter):
        return
    needed, window = 0, writer.model.longest
    for episode, rows in enumerate(queries.tolist()):
        longest = max((prompts.query(row) for row in rows), key=len)
        [tokens] = writer.count_tokens(prompts.requests(episode, [longest]))
        label = max(len(coded.ids) for coded in writer.model.encode(prompts.labels(episode)))
        needed = max(needed, tokens + label)
    if needed > window:
        ways, shots = prompts.episodes.ways, prompts.episodes.shots
        raise InputError(
            f"{ways} ways × {shots} shots: expected prompts of at "
            f"most {window:,} tokens, the window of model '{writer.name}', got one of {needed:,} "
            f"({ways * shots} examples of {prompts.limit} words or fewer); "
            f"{parameter('limit', option='--max-length')} shortens the texts"
        )


def classify(
    writer: Writer,
    prompts: ContextPrompts,
    episode: int,
    queries: Sequence[str],
    label_by: LabelBy = "calibrated",
) -> Floats:
    """The log-probabilities (queries, C) of the classes of an episode.

    Each distinct query is asked once.
    """
    labels = prompts.labels(episode)
    distinct = list(dict.fromkeys(queries))
    free = CONTENT_FREE if label_by == "calibrated" else ()
    requests = prompts.requests(episode, [*distinct, *free])
    if label_by == "written":
        values = _written(writer, requests, labels)
    else:
        values = np.array(writer.label_likelihoods(requests, [labels] * len(requests)))
        values = _normalised(values)
        if free:
            prior = np.exp(values[len(distinct) :]).mean(axis=0)
            values = _normalised(values[: len(distinct)] - np.log(prior))
    return values[[distinct.index(query) for query in queries]]


def _normalised(values: Floats) -> Floats:
    top = values.max(axis=1, keepdims=True)
    result: Floats = values - top - np.log(np.exp(values - top).sum(axis=1, keepdims=True))
    return result


def _written(writer: Writer, requests: Sequence[Request], labels: Sequence[str]) -> Floats:
    """From the answers that are written; one that failed is an error."""
    counts = np.ones((len(requests), len(labels)))
    for number, written in dict(writer.write(requests, WRITING)).items():
        if written.finish == "error":
            raise PartialFailure(f"model '{writer.name}': no answer: {written.error}")
        named = find_label(written.text, labels)
        if named is not None:
            counts[number, named] = 2
    values: Floats = np.log(counts / (len(labels) + 2))
    return values


def find_label(text: str, labels: Sequence[str]) -> int | None:
    """The index of the first label in an answer, the longest of those that begin there.

    >>> find_label("A stage actor, I think.", ["actor", "stage actor"])
    1
    """
    found = [
        (match.start(), -len(label), index)
        for index, label in enumerate(labels)
        if (match := re.search(rf"(?<!\w){re.escape(label)}(?!\w)", text, re.IGNORECASE))
    ]
    return min(found)[2] if found else None
