"""A beam search over edits that push the bias of a sentence, and random edits to hold against it.

Both draw on the same candidates, under the same conditions; only the order in which candidates are
taken differs. All sentences go a step together, so that the model is asked in large batches.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from evenhand.errors import InputError
from evenhand.masked.generate.asking import Asker, Fluency, Proposal, Slot
from evenhand.masked.generate.drafts import Draft, Ground
from evenhand.text.structural import Accepted, Filter

__all__ = ["REASONS", "Found", "Missed", "Settings", "Side", "Task", "random_edits", "search"]

Side = Literal["male", "female"]

REASONS = {
    "no_place": "no word of it may be replaced",
    "no_fill": "no word of the model's may stand there",
    "no_gain": "no candidate moved the bias",
    "undecided": "the model expects no gender word there",
    "filter": "the structural filter kept no candidate",
    "fluency": "no candidate was fluent enough",
    "same": "the sentence came from another seed already",
}
"""Why a seed yields nothing."""
LATE = ("filter", "undecided", "fluency")
"""What rules out candidates that push."""

SLACK = 0.1
"""A word whose own loss is so far above what all words may lose together is not tried."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """How far a search goes and what it accepts.

    At most `edits` words are replaced, by the `fills` likeliest that may stand at a place, none
    of them less than `likely` times as likely as the first. Of a sentence `tried` candidates are
    scored, those whose effect should be largest, and `beam` are gone on from. `fluency` is the
    largest `Fluency.loss`, `least` the smallest probability of the likeliest gender word, `gain`
    the smallest change of the bias that is worth an edit. `antecedent` lets the head of the
    antecedent be replaced too.
    """

    edits: int = 2
    beam: int = 2
    fills: int = 20
    likely: float = 0.1
    tried: int = 32
    fluency: float = 1.1
    least: float = 0.05
    gain: float = 0.01
    antecedent: bool = False

    def __post_init__(self) -> None:
        for name in ("edits", "beam", "fills", "tried"):
            if getattr(self, name) < 1:
                raise InputError(f"{name}: expected at least 1, got {getattr(self, name)}")
        if not self.fluency >= 1:
            raise InputError(f"fluency: expected a factor of 1 or more, got {self.fluency}")
        for name in ("likely", "least", "gain"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"{name}: expected 0 to below 1, got {getattr(self, name)}")


@dataclass(frozen=True, eq=False)
class Task:
    """A seed to be pushed to one side."""

    ground: Ground
    side: Side
    before: Slot

    def push(self, slot: Slot) -> float:
        """How far the bias lies on the wanted side of one half, from -.5 to .5."""
        return slot.bias - 0.5 if self.side == "male" else 0.5 - slot.bias


@dataclass(frozen=True, slots=True)
class Found:
    """A draft that passes everything, with what the filter and the model say of it."""

    draft: Draft
    kept: Accepted
    slot: Slot
    fluency: Fluency


@dataclass(frozen=True, slots=True)
class Missed:
    """Nothing was found; the reason is a key of `REASONS`."""

    reason: str


@dataclass
class _Run:
    """A task on its way."""

    task: Task
    beam: list[Draft]
    passed: list[Found] = field(default_factory=list)
    rejected: Counter[str] = field(default_factory=Counter)


Order = Callable[[_Run, Draft, Sequence[Proposal]], Iterable[tuple[float, Proposal]]]
"""Gives each proposal for a draft a rank; the lowest are tried first."""


def search(
    asker: Asker,
    tasks: Sequence[Task],
    settings: Settings,
    filter: Filter,  # noqa: A002
) -> list[Found | Missed]:
    """The best draft of each task: of those within `gain` of the largest push the least edited."""
    runs = [_Run(task, [Draft(task.ground)]) for task in tasks]
    for step in range(settings.edits):
        last = step == settings.edits - 1
        live = [run for run in runs if run.beam]
        candidates = _candidates(asker, live, settings, _by_effect)
        asker.slots(draft for drafts in candidates for draft in drafts)
        queues = [
            _gaining(asker, run, drafts, settings)
            for run, drafts in zip(live, candidates, strict=True)
        ]
        _accept(asker, live, queues, settings, filter, 1 if last else settings.beam)
        for run in live:
            best = max((run.task.push(found.slot) for found in run.passed), default=-0.5)
            if best > 0.5 - settings.gain:
                run.beam = []
    return _without_repeats([_best(run, settings) for run in runs])


def random_edits(
    asker: Asker,
    tasks: Sequence[Task],
    edits: Sequence[int],
    settings: Settings,
    filter: Filter,  # noqa: A002
    seed: int,
) -> list[Found | Missed]:
    """Each task with so many edits at random places, by fills drawn at random from its candidates.

    A draw that the filter, the fluency limit or the model's indecision rules out is drawn again.
    """
    runs = [_Run(task, [Draft(task.ground)]) for task in tasks]
    drawing = {id(run): np.random.default_rng([seed, number]) for number, run in enumerate(runs)}
    for step in range(max(edits, default=0)):
        live = [run for run, n in zip(runs, edits, strict=True) if run.beam and step < n]
        candidates = _candidates(
            asker, live, settings, lambda run, _, told: _shuffled(drawing[id(run)], told)
        )
        _accept(asker, live, candidates, settings, filter, 1)
    return [run.passed[-1] if run.beam else Missed(_reason(run)) for run in runs]


def _by_effect(run: _Run, _: Draft, told: Sequence[Proposal]) -> Iterable[tuple[float, Proposal]]:
    sign = -1 if run.task.side == "male" else 1
    return [(sign * proposal.effect, proposal) for proposal in told]


def _shuffled(
    rng: np.random.Generator, told: Sequence[Proposal]
) -> Iterable[tuple[float, Proposal]]:
    """A place is drawn first, so that places with few fills are not passed over, then a fill."""
    places: dict[int, list[Proposal]] = {}
    for proposal in told:
        places.setdefault(proposal.place, []).append(proposal)
    left = {place: [of[i] for i in rng.permutation(len(of))] for place, of in places.items()}
    rank = 0
    while left:
        place = sorted(left)[int(rng.integers(len(left)))]
        yield rank, left[place].pop()
        rank += 1
        if not left[place]:
            del left[place]


def _candidates(
    asker: Asker, runs: Sequence[_Run], settings: Settings, order: Order
) -> list[list[Draft]]:
    """The drafts one edit further that are tried, `tried` for each draft of a run's beam."""
    told = iter(asker.proposals(draft for run in runs for draft in run.beam))
    chosen = []
    for run in runs:
        ranked: dict[Draft, float] = {}
        for draft in run.beam:
            proposals = next(told)
            if not draft.open_places:
                run.rejected["no_place"] += 1
            elif not proposals:
                run.rejected["no_fill"] += 1
            bound = len(draft.chunks[0]) * np.log(settings.fluency) + SLACK
            fluent = [proposal for proposal in proposals if proposal.loss <= bound]
            run.rejected["unlikely"] += len(proposals) - len(fluent)
            for rank, proposal in order(run, draft, fluent):
                new = draft.edited(proposal.place, proposal.word)
                ranked[new] = min(rank, ranked.get(new, rank))
        most = settings.tried * len(run.beam)
        fitting: list[Draft] = []
        for draft in sorted(ranked, key=lambda d: (ranked[d], d.text)):
            if len(fitting) == most:
                break
            if draft.same_tags:
                fitting.append(draft)
        if ranked and not fitting:
            run.rejected["no_fill"] += 1
        chosen.append(fitting)
    return chosen


def _gaining(asker: Asker, run: _Run, drafts: Sequence[Draft], settings: Settings) -> list[Draft]:
    """Those that push further than the seed, the furthest first."""
    pushes = {
        draft: run.task.push(slot) for draft, slot in zip(drafts, asker.slots(drafts), strict=True)
    }
    least = run.task.push(run.task.before) + settings.gain
    gaining = [draft for draft in drafts if pushes[draft] >= least]
    run.rejected["no_gain"] += len(drafts) - len(gaining)
    return sorted(gaining, key=lambda draft: (-pushes[draft], draft.text))


def _accept(
    asker: Asker,
    runs: Sequence[_Run],
    queues: Sequence[Sequence[Draft]],
    settings: Settings,
    filter: Filter,  # noqa: A002
    wanted: int,
) -> None:
    """Make the first `wanted` drafts of each queue that pass the beam of its run."""
    left = [list(queue) for queue in queues]
    for run in runs:
        run.beam = []
    while True:
        batch: list[tuple[_Run, Draft, Accepted]] = []
        for run, queue in zip(runs, left, strict=True):
            lacking = wanted - len(run.beam)
            while queue and lacking:
                draft = queue.pop(0)
                kept = draft.passed(filter)
                if kept is None:
                    run.rejected["filter"] += 1
                    continue
                batch.append((run, draft, kept))
                lacking -= 1
        if not batch:
            return
        slots = asker.slots(draft for _, draft, _ in batch)
        decided = []
        for (run, draft, kept), slot in zip(batch, slots, strict=True):
            if slot.likeliest >= settings.least:
                decided.append((run, draft, kept, slot))
            else:
                run.rejected["undecided"] += 1
        told = asker.fluency([draft for _, draft, _, _ in decided], settings.fluency)
        for (run, draft, kept, slot), fluency in zip(decided, told, strict=True):
            if fluency is not None:
                run.beam.append(draft)
                run.passed.append(Found(draft, kept, slot, fluency))
            else:
                run.rejected["fluency"] += 1


def _best(run: _Run, settings: Settings) -> Found | Missed:
    if not run.passed:
        return Missed(_reason(run))
    pushes = {id(found): run.task.push(found.slot) for found in run.passed}
    near = [f for f in run.passed if pushes[id(f)] >= max(pushes.values()) - settings.gain]
    return min(near, key=lambda f: (len(f.draft.changes), -pushes[id(f)], f.draft.text))


def _reason(run: _Run) -> str:
    """What ruled out most of the candidates that push; if none does, how far others came."""
    late = {reason: n for reason in LATE if (n := run.rejected[reason])}
    if late:
        return max(late, key=lambda reason: late[reason])
    if run.rejected["no_gain"]:
        return "no_gain"
    if run.rejected["unlikely"]:
        return "fluency"
    return "no_fill" if run.rejected["no_fill"] else "no_place"


def _without_repeats(found: Sequence[Found | Missed]) -> list[Found | Missed]:
    """The same sentence may come from two seeds that differ in one word: the first keeps it."""
    seen: set[str] = set()
    kept: list[Found | Missed] = []
    for each in found:
        repeated = isinstance(each, Found) and each.kept.masked in seen
        kept.append(Missed("same") if repeated else each)
        if isinstance(each, Found):
            seen.add(each.kept.masked)
    return kept
