"""Sentences with implicit gender bias, made by editing seeds with the model under test.

A beam search looks for edits that push the bias of a sentence; random edits of the same seeds are
the control. Both use the same candidates under the same conditions; only the order in which
candidates are tried differs. All sentences advance a step together, so that the model is queried in
large batches. Other models may judge both.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.cache import Cache
from evenhand.errors import InputError, UnknownNameError
from evenhand.files import replace_file, to_json
from evenhand.masked.drafts import (
    Asker,
    Candidate,
    Draft,
    Fluency,
    Ground,
    Proposal,
    Seeds,
    Slot,
    read_seeds,
    seeds_of,
)
from evenhand.masked.gender_words import check_pieces
from evenhand.masked.model import MaskedLM
from evenhand.masked.scoring import Progress
from evenhand.results import Comparison, Estimate, Measurement
from evenhand.statistics.intervals import Floats, bootstrap_mean, wilson
from evenhand.statistics.tests import sign_test
from evenhand.text.structural import Accepted, Filter

__all__ = ["Generation", "Seeds", "Settings", "generate", "read_seeds"]

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


INTERVAL = "studentised bootstrap over seeds"
SHARES = "Wilson's, over seeds"
TEST = "exact sign test over seeds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What counts as moved (a change of `gain`), the threshold of a strong bias, and intervals."""

    gain: float
    threshold: float
    prob: float
    seed: int


def read(
    model: str,
    sides: Sequence[Side],
    seeds: Sequence[Slot],
    search: Sequence[Slot],
    control: Sequence[Slot] | None,
    rule: Rule,
    *,
    own: bool,
) -> tuple[list[Measurement], list[Comparison]]:
    """Seeds, generated sentences and random edits as one model reads them, and how they differ.

    One measurement per direction, with parts by "sentences": seeds, found, random. Their value is
    the mean |bias - .5|; their parts by "component" are `push` (how far the bias lies on the wanted
    side of .5), `distance_top` (the distance by the top k, over sentences that have a gender word
    there), and the shares `moved` (to the wanted side) and `above_threshold` (there). Comparisons
    are paired seed by seed, with exact sign tests.
    """
    measurements, comparisons = [], []
    for toward in ("own",) if own else ("male", "female"):
        chosen = [i for i, side in enumerate(sides) if toward in ("own", side)]
        if not chosen:
            continue
        sign = np.array([1.0 if sides[i] == "male" else -1.0 for i in chosen])
        kinds = {"seeds": seeds, "found": search} | ({"random": control} if control else {})
        pushes = {
            name: sign * (np.array([slots[i].bias for i in chosen]) - 0.5)
            for name, slots in kinds.items()
        }
        arms = {
            name: _arm(
                model,
                name,
                pushes[name],
                np.abs(np.array([slots[i].bias_top for i in chosen]) - 0.5),
                pushes["seeds"],
                rule,
            )
            for name, slots in kinds.items()
        }
        details = {"toward": toward}
        found = arms["found"]
        measurements.append(
            replace(found, query=toward, by="", parts=tuple(arms.values()), details=details)
        )
        comparisons += [
            replace(
                _difference(arms[name], found, pushes[name], pushes["found"], rule), details=details
            )
            for name in arms
            if name != "found"
        ]
    return measurements, comparisons


def _arm(
    model: str, name: str, push: Floats, top: Floats, before: Floats, rule: Rule
) -> Measurement:
    known = top[np.isfinite(top)]

    def part(
        query: str, estimate: Estimate, n: int, *, by: str, interval: str = INTERVAL
    ) -> Measurement:
        return Measurement(
            metric="generation",
            query=query,
            value=estimate.value,
            low=estimate.low,
            high=estimate.high,
            prob=rule.prob,
            n=n,
            ideal=None if interval == SHARES else 0.0,
            worse="higher",
            interval=interval,
            subject=model,
            by=by,
            seed=rule.seed,
        )

    n = int(push.size)
    moved = _share(push - before >= rule.gain - 1e-9, rule)
    strong = _share(push >= rule.threshold, rule)
    components = (
        part("push", _mean(push, (-0.5, 0.5), rule), n, by="component"),
        part("distance_top", _mean(known, (0.0, 0.5), rule), len(known), by="component"),
        part("moved", moved, n, by="component", interval=SHARES),
        part("above_threshold", strong, n, by="component", interval=SHARES),
    )
    distance = part(name, _mean(np.abs(push), (0.0, 0.5), rule), n, by="sentences")
    return replace(distance, parts=components, details={"without_top": len(top) - len(known)})


def _difference(
    before: Measurement, after: Measurement, one: Floats, two: Floats, rule: Rule
) -> Comparison:
    distance, push = np.abs(two) - np.abs(one), two - one

    def comparison(
        first: Measurement, second: Measurement, x: Floats, bounds: tuple[float, float]
    ) -> Comparison:
        return Comparison(
            before=first,
            after=second,
            change=_mean(x, bounds, rule),
            interval=f"{INTERVAL}, paired",
            paired=int(x.size),
            p_value=sign_test(x),
            test=TEST,
        )

    part = comparison(before.part("push"), after.part("push"), push, (-1.0, 1.0))
    return replace(comparison(before, after, distance, (-0.5, 0.5)), parts=(part,))


def _mean(values: Floats, bounds: tuple[float, float], rule: Rule) -> Estimate:
    mean = bootstrap_mean(values, prob=rule.prob, seed=rule.seed, bounds=bounds)
    return Estimate.of(mean, rule.prob)


def _share(true: NDArray[np.bool_], rule: Rule) -> Estimate:
    share, low, high = wilson(int(true.sum()), true.size, rule.prob)
    return Estimate(value=share, low=low, high=high, prob=rule.prob)


Direction = Literal["own", "both", "male", "female"]


@dataclass(frozen=True)
class Outcome:
    """A seed pushed to one side: what the search found, and what random edits made of it."""

    task: Task
    search: Found | Missed
    control: Found | Missed | None


@dataclass(frozen=True, kw_only=True)
class Generation:
    """The sentences found, why some seeds yielded none, and the comparison with random edits."""

    model: str
    direction: Direction
    settings: Settings
    read: int
    left_out: Mapping[str, int]
    outcomes: tuple[Outcome, ...] = field(repr=False)
    measurements: tuple[Measurement, ...]
    comparisons: tuple[Comparison, ...]
    rule: Rule

    @property
    def sentences(self) -> list[dict[str, Any]]:
        """The sentences found, as the filter writes them, with seed, edits, bias and fluency."""
        return self._records([(o.task, o.search) for o in self.outcomes])

    @property
    def controls(self) -> list[dict[str, Any]]:
        """The sentences that random edits made, in the same form."""
        return self._records([(o.task, o.control) for o in self.outcomes])

    def _records(self, made: Iterable[tuple[Task, Found | Missed | None]]) -> list[dict[str, Any]]:
        return [_record(self.model, task, f) for task, f in made if isinstance(f, Found)]

    @property
    def nothing(self) -> dict[str, int]:
        """How many searches yielded nothing, by what ruled out most of their candidates."""
        return _reasons(o.search for o in self.outcomes)

    def lines(self) -> bytes:
        """The sentences, a JSON line each."""
        return "".join(to_json(row, indent=None) + "\n" for row in self.sentences).encode()

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the sentences, whole or not at all."""
        with replace_file(path) as file:
            file.write(self.lines())

    def to_dict(self) -> dict[str, Any]:
        """The summary; the sentences stand apart."""
        return {
            "model": self.model,
            "direction": self.direction,
            "settings": asdict(self.settings),
            "seed": self.rule.seed,
            "read": self.read,
            "left_out": dict(self.left_out),
            "searches": len(self.outcomes),
            "generated": len(self.sentences),
            "nothing": self.nothing,
            "controls": len(self.controls),
            "control_nothing": _reasons(o.control for o in self.outcomes),
            "threshold": self.rule.threshold,
            "measurements": [m.to_dict(items=False) for m in self.measurements],
            "comparisons": [c.to_dict(items=False) for c in self.comparisons],
        }


def _reasons(found: Iterable[Found | Missed | None]) -> dict[str, int]:
    return dict(sorted(Counter(f.reason for f in found if isinstance(f, Missed)).items()))


def _record(model: str, task: Task, found: Found) -> dict[str, Any]:
    """A line of the output."""
    seed = task.ground.seed
    return {
        "line": seed.line,
        "source": seed.source,
        **{name: getattr(found.kept, name) for name in found.kept.__slots__},
        "model": model,
        "direction": task.side,
        "seed": seed.found.sentence,
        "edits": [edit.to_dict() for edit in found.draft.edits],
        "bias_before": task.before.bias,
        "bias_after": found.slot.bias,
        "perplexity_ratio": found.fluency.ratio,
        "fluency_loss": found.fluency.loss,
    }


DIRECTIONS = ("own", "both", "male", "female")


def generate(
    model: MaskedLM,
    seeds: Seeds | Iterable[str],
    *,
    direction: Direction = "own",
    settings: Settings = Settings(),  # noqa: B008
    filter: Filter = Filter(),  # noqa: A002, B008
    control: bool = True,
    judges: Sequence[MaskedLM] = (),
    top_k: int = 10,
    threshold: float = 0.4,
    prob: float = 0.95,
    seed: int = 0,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> Generation:
    """Edit each seed so that the model's bias P(m) / (P(m) + P(f)) goes to one end.

    Ye et al. (2021) left this to future work. `direction` is `male`, `female`, `both` (each seed
    is pushed both ways) or `own` (the way it leans). What is found passes the structural filter
    again, links the pronoun to the same antecedent, and no gendered word or name enters. The
    control replaces as many words at random places by random words out of the same candidates,
    under the same conditions. `judges` are models that read all sentences too: the search
    maximises the searched model's own score, so that score alone says little about others.

    >>> from evenhand.masked import load
    >>> made = generate(load("mini"), ["The cook put her spoon on the table."], control=False)
    >>> [row["pronoun"] for row in made.sentences]
    ['her']
    """
    if direction not in DIRECTIONS:
        raise UnknownNameError("direction", direction, DIRECTIONS)
    if not 0 <= threshold < 0.5:
        raise InputError(f"threshold: expected 0 to below .5, got {threshold}")
    for each in (model, *judges):
        check_pieces(each)
    given = seeds if isinstance(seeds, Seeds) else seeds_of(map(Candidate, seeds), filter=filter)
    asker = Asker(
        model,
        fills=settings.fills,
        likely=settings.likely,
        top_k=top_k,
        cache=cache,
        progress=progress,
    )
    grounds = [Ground(each, antecedent=settings.antecedent) for each in given.seeds]
    readable = [ground for ground in grounds if asker.can_read(Draft(ground))]
    unreadable = len(grounds) - len(readable)
    left_out = {**given.left_out, **({"unreadable": unreadable} if unreadable else {})}
    if not readable:
        reasons = ", ".join(f"{reason} {n:,}" for reason, n in left_out.items())
        raise InputError(
            "seeds: expected sentences in which a pronoun stands for a neutral word, got none of "
            f"{given.read:,} read ({reasons or 'no sentence at all'})"
        )
    tasks = _tasks(asker, readable, direction)
    found = search(asker, tasks, settings, filter)
    drawn: list[Found | Missed] | None = None
    if control:
        lengths = [len(each.draft.changes) if isinstance(each, Found) else 1 for each in found]
        drawn = random_edits(asker, tasks, lengths, settings, filter, seed)
    rule = Rule(gain=settings.gain, threshold=threshold, prob=prob, seed=seed)
    askers = [asker, *(Asker(each, top_k=top_k, cache=cache, progress=progress) for each in judges)]
    readings = [
        _reading(reader, tasks, found, drawn, rule, own=direction == "own") for reader in askers
    ]
    return Generation(
        model=model.name,
        direction=direction,
        settings=settings,
        read=given.read,
        left_out=left_out,
        outcomes=tuple(
            Outcome(task, each, drawn[i] if drawn is not None else None)
            for i, (task, each) in enumerate(zip(tasks, found, strict=True))
        ),
        measurements=tuple(m for measured, _ in readings for m in measured),
        comparisons=tuple(c for _, compared in readings for c in compared),
        rule=rule,
    )


def _tasks(asker: Asker, grounds: Sequence[Ground], direction: Direction) -> list[Task]:
    tasks = []
    for ground, slot in zip(grounds, asker.slots(map(Draft, grounds)), strict=True):
        leaning: Side = "male" if slot.bias >= 0.5 else "female"
        if direction == "both":
            tasks += [Task(ground, "male", slot), Task(ground, "female", slot)]
        else:
            tasks.append(Task(ground, leaning if direction == "own" else direction, slot))
    return tasks


def _reading(
    asker: Asker,
    tasks: Sequence[Task],
    found: Sequence[Found | Missed],
    drawn: Sequence[Found | Missed] | None,
    rule: Rule,
    *,
    own: bool,
) -> tuple[list[Measurement], list[Comparison]]:
    """All sentences as one model reads them; a seed that yielded nothing stands for itself."""

    def slots(kind: Sequence[Found | Missed]) -> list[Slot]:
        return asker.slots(
            each.draft if isinstance(each, Found) else Draft(task.ground)
            for each, task in zip(kind, tasks, strict=True)
        )

    return read(
        asker.model.name,
        [task.side for task in tasks],
        asker.slots(Draft(task.ground) for task in tasks),
        slots(found),
        slots(drawn) if drawn is not None else None,
        rule,
        own=own,
    )
