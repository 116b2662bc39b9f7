"""Search for sentences with implicit gender bias, from seeds and with the model under test."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from evenhand.errors import InputError, UnknownNameError
from evenhand.masked.gender_words import check_pieces
from evenhand.masked.generate.asking import Asker, Slot
from evenhand.masked.generate.drafts import Draft, Ground
from evenhand.masked.generate.reading import Reading, Rule, read
from evenhand.masked.generate.result import Direction, Generation, Outcome
from evenhand.masked.generate.search import (
    Found,
    Missed,
    Settings,
    Side,
    Task,
    random_edits,
    search,
)
from evenhand.masked.generate.seeds import Seeds, Told, seeds_of
from evenhand.masked.model import MaskedLM
from evenhand.masked.scoring import Progress
from evenhand.text.structural import Filter

if TYPE_CHECKING:
    from evenhand.cache import Cache

__all__ = ["generate"]

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
    beyond: float = 0.4,
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
    if not 0 <= beyond < 0.5:
        raise InputError(f"beyond: expected 0 to below .5, got {beyond}")
    for each in (model, *judges):
        check_pieces(each)
    given = seeds if isinstance(seeds, Seeds) else seeds_of(map(Told, seeds), filter=filter)
    asker = Asker(
        model, fills=settings.fills, likely=settings.likely, top_k=top_k, cache=cache,
        progress=progress,
    )  # fmt: skip
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
    rule = Rule(gain=settings.gain, beyond=beyond, prob=prob, seed=seed)
    askers = [asker, *(Asker(each, top_k=top_k, cache=cache, progress=progress) for each in judges)]
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
        readings=tuple(
            _reading(reader, tasks, found, drawn, rule, own=direction == "own") for reader in askers
        ),
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
) -> Reading:
    """All sentences as one model reads them; a seed that yielded nothing stands for itself."""

    def slots(kind: Sequence[Found | Missed]) -> list[Slot]:
        return asker.slots(
            each.draft if isinstance(each, Found) else Draft(task.ground)
            for each, task in zip(kind, tasks, strict=True)
        )

    groups = read(
        [task.side for task in tasks],
        asker.slots(Draft(task.ground) for task in tasks),
        slots(found),
        slots(drawn) if drawn is not None else None,
        rule,
        own=own,
    )
    return Reading(model=asker.model.name, groups=groups)
