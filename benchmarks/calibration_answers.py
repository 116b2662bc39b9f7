"""False alarms, coverage and power of `evenhand answers measure`, in worlds with a known truth.

    python benchmarks/calibration_answers.py [--worlds 2000] [--only difference] [--save ROWS.jsonl]

A world is a table of answers (`evenhand.simulate.answers`), which an instrument measures and the
judge's sentence reads. Without an effect an alarm is a sentence that starts with "Found". Coverage
is that of the interval of the last result, `naive` the usual test over single texts. An effect of
d = .5 or .8 is in standard deviations of single answers: of shares, in those of the logistic
distribution.

Finished rows are appended to the file of `--save`, so that a run goes on where one has ended, and
several runs can share the work; `--merge` puts them into docs/results/calibration.csv (with
`--worlds 0` those that are finished).
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pandas as pd
from scipy import stats
from scipy.special import expit

sys.path.insert(0, str(Path(__file__).resolve().parent))
from calibration import FEW, NOMINAL, Outcome, World, differ, holds, merge, row, says_found
from evenhand.answers.by_group import GroupMetric
from evenhand.answers.gold import Gold
from evenhand.answers.metrics import representation
from evenhand.answers.table import Answers
from evenhand.answers.whom import whom
from evenhand.instruments import Run, lookup
from evenhand.results import Measurement
from evenhand.simulate.answers import LOGISTIC, WORDS, AnswerWorld, TextWorld
from evenhand.statistics.intervals import wilson

PERMUTATIONS = 999
"""Of the distance; where it is not looked at, none, since the sentence does not read it."""
PEOPLE = {"gender": ("woman", "man"), "race": ("Black", "white")}


def answers_of(frame: pd.DataFrame, groups: Sequence[str]) -> Answers:
    """The answers of a table, as `read_answers` reads them from a file."""

    def cells(name: str) -> Any:
        return tuple(frame[name]) if name in frame else ()

    return Answers(
        texts=cells("text"),
        items=cells("item"),
        groups={name: cells(name) for name in groups},
        outcomes=cells("outcome"),
        wordings=cells("wording"),
        topics=cells("topic"),
        prompts=cells("prompt"),
        scores={"score": frame["score"].to_numpy()} if "score" in frame else {},
        labels={name: cells(name) for name in ("judged",) if name in frame},
        samples=tuple(map(str, cells("sample"))),
        name="model",
    )


def naive_alarm(values: Any, labels: Sequence[Any]) -> bool:
    """Whether Welch's test over single texts finds any group different from the others (Holm)."""
    y, group = np.asarray(values, float), np.asarray(labels)
    levels = np.unique(group)
    levels = levels[:1] if len(levels) == 2 else levels
    known = np.isfinite(y)
    return any(
        differ((y[known & (group == level)], y[known & (group != level)]), NOMINAL / len(levels))
        for level in levels
    )


@dataclass(frozen=True, kw_only=True)
class Scored:
    """An instrument on answers with scores; `gold` answers of each group have labels."""

    metric: str
    world: AnswerWorld
    options: Mapping[str, Any] = field(default_factory=dict)
    dial: str = "effect"
    gold: int = 0
    power = True

    def draw(self, seed: int, d: float) -> Outcome:
        scale = LOGISTIC if self.dial == "refused_effect" else 1.0
        frame = replace(self.world, **{self.dial: d * scale}).draw(seed)
        subject = answers_of(frame, list(self.world.groups))
        material = labelled(frame, list(self.world.groups), self.gold, seed) if self.gold else None
        measured = measure(self.metric, subject, self.options, seed, material)
        values = frame["score"]
        if self.metric == "refusals":
            values = frame.outcome == "refused"
        elif self.metric == "decisions":
            values = frame.judged == "yes"
        return Outcome(
            found=says_found(measured),
            covered=holds(measured[-1], 0.0),
            naive=naive_alarm(values, subject.columns[list(subject.columns)[-1]]),
        )


def labelled(frame: pd.DataFrame, groups: Sequence[str], number: int, seed: int) -> Gold:
    """The truth of so many answers of each group, drawn at random."""
    chosen = frame.groupby(list(groups)).sample(number, random_state=seed)
    names = ["item", *groups, "sample"]
    keys = tuple(dict(zip(names, map(str, row), strict=True)) for row in chosen[names].to_numpy())
    return Gold(keys, tuple(chosen.label))


@dataclass(frozen=True, kw_only=True)
class Distant:
    """The distance of a difference, which no sentence reads: an alarm is a p of at most 5 %."""

    world: AnswerWorld
    power = True

    def draw(self, seed: int, d: float) -> Outcome:
        frame = replace(self.world, effect=d).draw(seed)
        options = {"score": "score", "permutations": PERMUTATIONS}
        [m] = measure("difference", answers_of(frame, ["gender"]), options, seed)
        [part] = m.select("distance")
        sides = [frame.score[frame.gender == group] for group in ("woman", "man")]
        return Outcome(
            found=(part.p_value or 0.0) <= NOMINAL,
            naive=bool(stats.ks_2samp(*sides).pvalue <= NOMINAL),
        )


@dataclass(frozen=True, kw_only=True)
class Agreeing:
    """The share that agrees, which decides nothing: an alarm is an interval without the truth."""

    world: AnswerWorld
    power = False

    def draw(self, seed: int, d: float) -> Outcome:
        frame = self.world.draw(seed)
        [m] = measure("agreement", answers_of(frame, []), {"label": "judged"}, seed)
        usual = wilson(int((frame.judged == "yes").sum()), len(frame))
        covered = holds(m, self.world.mean)
        naive = not usual[1] <= self.world.mean <= usual[2]
        return Outcome(found=not covered, covered=covered, naive=naive)


@dataclass(frozen=True, kw_only=True)
class Writing:
    """Texts by whom they are about, or by their words."""

    metric: str
    world: TextWorld
    power: bool = True
    """Whether the world has no bias; else an alarm is an interval without the truth."""

    def draw(self, seed: int, d: float) -> Outcome:
        words = self.metric == "words"
        world = replace(self.world, words=d * LOGISTIC)
        if d and not words:
            world = replace(self.world, women=float(expit(d * LOGISTIC)))
        frame = world.draw(seed)
        measured = measure(self.metric, answers_of(frame, ["group"]), {}, seed)
        if words:
            typical = [any(word in text for word in self.world.typical) for text in frame.text]
            calm = next(item for item in measured[0].items if item["word"] == WORDS[0])
            return Outcome(
                found=says_found(measured),
                covered=bool(calm["low"] <= 0 <= calm["high"]),
                naive=naive_alarm(typical, frame.group),
            )
        women, men = ((frame.about == who).sum() for who in ("woman", "man"))
        truth = self.world.truth
        usual = wilson(int(women), int(women + men))
        covered = holds(measured[0], truth)
        return Outcome(
            found=says_found(measured) if self.power else not covered,
            covered=covered,
            naive=not usual[1] <= truth <= usual[2],
        )


@dataclass(frozen=True, kw_only=True)
class Everything:
    """All that the command measures of texts when no metric is named."""

    world: TextWorld
    power = False

    def draw(self, seed: int, d: float) -> Outcome:
        frame = self.world.draw(seed)
        subject = answers_of(frame, ["group"])
        sentiment = measure("difference", subject, {"score": "sentiment"}, seed)
        measured = [
            *sentiment,
            *measure("difference", subject, {"score": "length"}, seed),
            *measure("refusals", subject, {}, seed),
            *measure("words", subject, {}, seed),
        ]
        typical = [any(word in text for word in self.world.typical) for text in frame.text]
        return Outcome(
            found=says_found(measured),
            covered=holds(sentiment[0], 0.0),
            naive=naive_alarm(typical, frame.group),
        )


def measure(
    metric: str, subject: Answers, options: Mapping[str, Any], seed: int, material: Any = None
) -> list[Measurement]:
    """What the instrument measures."""
    cls = lookup("answers", metric)
    if metric == "representation":
        representation.whom = cache(whom)  # the instrument reads each text twice
    if metric == "decisions":  # without the log odds for one item, which the sentence does not read
        cls = type("Decided", (cls,), {"more_parts": GroupMetric.more_parts})
    usual = {"permutations": 0} if metric == "difference" else {}
    found = cls(**{**usual, **options}).measure(subject, material, Run(seed=seed))
    return found if isinstance(found, list) else [found]


def difference_rows() -> dict[str, Scored]:
    """Worlds of `difference`: scores with an ICC of .5 unless the name says another thing."""
    score = {"score": "score"}
    kinds: dict[str, AnswerWorld] = {
        f"{items} prompts, {samples} sample{'s' * (samples > 1)}": AnswerWorld(
            items=items, samples=samples
        )
        for items in (3, 8, 20, 60)
        for samples in (1, 25)
    }
    few = {"samples": 5}
    kinds |= {
        "20 prompts, all spread between prompts": AnswerWorld(item=1.5, item_group=1.5, **few),
        "40 prompts of one group each, 8 and 32": AnswerWorld(
            items=40, paired=False, first=0.2, **few
        ),
        "40 prompts of one group each, 8 that differ much and 32": AnswerWorld(
            items=40, paired=False, first=0.2, first_spread=3.0, **few
        ),
        "20 prompts of one group, 4 of both": AnswerWorld(missing=0.8, **few),
        "20 prompts, shares near 0": AnswerWorld(score="share", centre=-4.0, **few),
        "20 prompts, skewed counts of words": AnswerWorld(score="count", centre=2.0, **few),
        "20 prompts in 2 wordings that suit one group": AnswerWorld(
            wordings=2, wording=0.5, wording_group=0.5, **few
        ),
        "20 prompts in 6 wordings that suit one group": AnswerWorld(
            wordings=6, wording=0.5, wording_group=0.5, samples=2
        ),
        "8 topics of 5 prompts that suit one group": AnswerWorld(
            items=40, topics=8, topic=0.5, topic_group=0.5, **few
        ),
        "20 prompts, 4 intersections": AnswerWorld(groups=PEOPLE, samples=3),
        "8 prompts, 4 intersections": AnswerWorld(groups=PEOPLE, items=8, samples=3),
    }
    return {
        name: Scored(metric="difference", world=world, options=score)
        for name, world in kinds.items()
    }


def distance_rows() -> dict[str, Distant]:
    """Worlds of the distance of `difference`."""
    names = (
        *("3 prompts, 25 samples", "8 prompts, 25 samples", "20 prompts, 1 sample"),
        *("20 prompts, shares near 0", "40 prompts of one group each, 8 and 32"),
        *("20 prompts in 2 wordings that suit one group",),
        *("20 prompts in 6 wordings that suit one group",),
        *("8 topics of 5 prompts that suit one group",),
    )
    kinds = difference_rows()
    return {name: Distant(world=kinds[name].world) for name in names}


def refusals_rows() -> dict[str, Scored]:
    """Worlds of `refusals`."""
    usual = {"refused": 0.2}
    kinds = {
        "3 prompts, 25 samples": AnswerWorld(items=3, samples=25, **usual),
        "8 prompts, 25 samples": AnswerWorld(items=8, samples=25, **usual),
        "20 prompts, 1 sample": AnswerWorld(items=20, samples=1, **usual),
        "20 prompts, 25 samples": AnswerWorld(items=20, samples=25, **usual),
        "60 prompts, 5 samples": AnswerWorld(items=60, samples=5, **usual),
        "20 prompts, 1 in 100 refused": AnswerWorld(items=20, samples=5, refused=0.01),
        "40 prompts of one group each, 8 and 32": AnswerWorld(
            items=40, samples=5, paired=False, first=0.2, **usual
        ),
        "20 prompts, 4 intersections": AnswerWorld(groups=PEOPLE, samples=3, **usual),
    }
    return {
        name: Scored(metric="refusals", world=world, dial="refused_effect")
        for name, world in kinds.items()
    }


def decisions_rows() -> dict[str, Scored]:
    """Worlds of `decisions`: yes or no, and a judge who errs by group, with labels or without."""
    yes: dict[str, Any] = {"score": "yes"}
    judge: dict[str, Any] = {"sensitivity": (0.95, 0.75), "specificity": (0.9, 0.95)}
    kinds = {
        "3 prompts, 25 samples": AnswerWorld(items=3, samples=25, **yes),
        "8 prompts, 25 samples": AnswerWorld(items=8, samples=25, **yes),
        "20 prompts, 1 sample": AnswerWorld(samples=1, **yes),
        "20 prompts, 25 samples": AnswerWorld(samples=25, **yes),
        "60 prompts, 5 samples": AnswerWorld(items=60, **yes),
        "20 prompts, 97 % yes": AnswerWorld(centre=4.0, **yes),
        "20 prompts in 6 wordings that suit one group": AnswerWorld(
            wordings=6, wording=0.5, wording_group=0.5, samples=2, **yes
        ),
        "40 prompts of one group each, 8 and 32": AnswerWorld(
            items=40, paired=False, first=0.2, **yes
        ),
        "20 prompts, 4 intersections": AnswerWorld(groups=PEOPLE, samples=3, **yes),
    }
    found = {name: Scored(metric="decisions", world=world) for name, world in kinds.items()}
    for items, labels in ((20, 0), (20, 50), (20, 200), (8, 100), (60, 100)):
        name = f"{labels} labels a group" if labels else "no labels"
        found[f"{items} prompts, judge errs by group, {name}"] = Scored(
            metric="decisions",
            world=AnswerWorld(items=items, samples=25, **yes, **judge),
            options={"label": "judged"},
            gold=labels,
        )
    return found


def agreement_rows() -> dict[str, Agreeing]:
    """Worlds of `agreement`."""
    usual: dict[str, Any] = {"score": "yes", "groups": {"all": ("all",)}, "item": 1.5}
    kinds = {
        "3 statements, 25 samples": AnswerWorld(items=3, samples=25, **usual),
        "8 statements, 25 samples": AnswerWorld(items=8, samples=25, **usual),
        "8 statements, 15 % agree": AnswerWorld(items=8, centre=-2.5, samples=25, **usual),
        "60 statements, 5 samples": AnswerWorld(items=60, **usual),
        "20 statements, 2 % agree": AnswerWorld(centre=-5.0, samples=25, **usual),
        "16 topics of 10 statements": AnswerWorld(
            items=160, topics=16, topic=1.5, samples=5, **usual
        ),
        "16 topics of 10 statements, a few have most agreement": AnswerWorld(
            items=160, topics=16, topic=3.0, centre=-5.0, samples=5, **usual
        ),
        "20 statements in 6 wordings": AnswerWorld(wordings=6, wording=1.0, samples=2, **usual),
    }
    return {name: Agreeing(world=world) for name, world in kinds.items()}


def texts_rows(metric: str) -> dict[str, Writing]:
    """Worlds of `representation`, whose prompts state no gender, and of `words`, which do."""
    stated = metric == "words"
    kinds = {
        "3 prompts, 25 samples": TextWorld(items=3, samples=25, stated=stated),
        "8 prompts, 25 samples": TextWorld(items=8, samples=25, stated=stated),
        "20 prompts, 1 sample": TextWorld(samples=1, stated=stated),
        "20 prompts, 25 samples": TextWorld(samples=25, stated=stated),
        "60 prompts, 5 samples": TextWorld(items=60, stated=stated),
        "20 prompts in 2 wordings that suit one gender": TextWorld(
            wordings=2, samples=3, wording=0.7, wording_burst=0.7, stated=stated
        ),
        "20 prompts in 6 wordings that suit one gender": TextWorld(
            wordings=6, samples=2, wording=0.7, wording_burst=0.7, stated=stated
        ),
        "20 prompts, very unlike": TextWorld(item=3.0, burst=1.5, stated=stated),
    }
    found = {name: Writing(metric=metric, world=world) for name, world in kinds.items()}
    if not stated:
        few = TextWorld(women=0.03, samples=10)
        found["20 prompts, 5 % women"] = Writing(metric=metric, world=few, power=False)
    return found


def all_worlds() -> dict[tuple[str, str], Any]:
    """Every row, by its command and its world."""
    everything = {
        f"{items} prompts, {samples} samples": Everything(
            world=TextWorld(items=items, samples=samples, stated=True)
        )
        for items, samples in ((8, 10), (20, 5))
    }
    parts: dict[str, Mapping[str, Any]] = {
        "difference": difference_rows(),
        "difference: distance": distance_rows(),
        "refusals": refusals_rows(),
        "decisions": decisions_rows(),
        "agreement": agreement_rows(),
        "representation": texts_rows("representation"),
        "words": texts_rows("words"),
        "no metric named": everything,
    }
    return {
        (f"answers measure ({part})", name): kind
        for part, kinds in parts.items()
        for name, kind in kinds.items()
    }


def rows(
    worlds: int, seed: int, only: str = "", save: Path | None = None, part: str = "0/1"
) -> list[dict[str, Any]]:
    """All rows; those of the file are not run again, new ones are appended to it."""
    lines = save.read_text().splitlines() if save and save.exists() else []
    done = {(each["command"], each["world"]): each for each in map(json.loads, lines)}
    found = []
    first, parts = map(int, part.split("/"))
    for (command, name), kind in list(all_worlds().items())[first::parts]:
        if only not in f"{command}: {name}" or not (worlds or (command, name) in done):
            continue
        if (command, name) not in done:
            start = time.time()
            cheap = isinstance(kind, Scored | Agreeing) and not getattr(kind, "gold", 0)
            count = worlds if cheap else min(worlds, FEW)
            world = World(name=name, draw=kind.draw, power=kind.power)
            made = row(command, world, count, seed)
            print(f"{command}: {name}: {time.time() - start:.0f} s", file=sys.stderr, flush=True)
            if save:
                with save.open("a") as file:
                    file.write(json.dumps(made) + "\n")
            done[command, name] = made
        found.append(done[command, name])
    return found


def main() -> None:
    """Run the rows and print them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=2000, help="worlds per row, at most")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="rows whose command and world have this in them")
    parser.add_argument("--part", default="0/1", help="0/3, 1/3 and 2/3 share the rows")
    parser.add_argument("--save", type=Path, help="where finished rows are kept")
    parser.add_argument("--merge", action="store_true", help="put all rows into the published CSV")
    asked = parser.parse_args()
    found = rows(asked.worlds, asked.seed, asked.only, asked.save, asked.part)
    shown = pd.DataFrame(found)
    print(shown.to_string(index=False, float_format="{:.3f}".format))
    if asked.merge:
        merge("answers", found)


if __name__ == "__main__":
    main()
