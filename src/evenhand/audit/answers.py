"""The stages that put built-in prompts to a model with a chat template, and measure its answers.

A bounded number of prompts is asked, so that an audit ends within minutes; the page states it. More
are asked by `evenhand answers collect`, whose answers an audit takes as they are.
"""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.answers.collecting import collect
from evenhand.answers.outcomes import OUTCOMES
from evenhand.answers.prompts import Prompt, read_prompts
from evenhand.answers.table import Answers
from evenhand.audit.stages import Options, Progress, Stage, instrument_stages, loaded
from evenhand.errors import PartialFailure
from evenhand.instruments import instruments
from evenhand.models.writing import WriteSettings

if TYPE_CHECKING:
    from evenhand.models.local_writer import LocalWriter

ITEMS, QUICK_ITEMS = 30, 10
"""So many items of each set of prompts are asked."""
TOKENS, QUICK_TOKENS = 96, 48
"""The longest answers."""
GROUP, GROUPS = "gender", ("woman", "man")
"""The groups that are compared: two, so that there are few questions and many answers to each."""
LONGEST = 10 * 60
"""Seconds after which asking stops; the answers so far are saved for the next run."""
QUOTED = 600
"""So many characters of an answer are quoted."""


def local_writer(source: str, device: str) -> LocalWriter:
    """The model of an audit as one that writes."""
    from evenhand.models.local_writer import LocalWriter

    return LocalWriter(loaded(source, device))


def answer_stages(source: str, options: Options) -> Iterable[Stage]:
    """For each set of prompts that instruments measure: a stage that asks, then theirs."""
    declared = [cls for cls in instruments("answers").values() if cls.declaration.audits("answers")]
    for name in dict.fromkeys(cls.prompts for cls in declared if cls.prompts):
        asked = AskedPrompts(name, partial(local_writer, source, options.device), options)
        yield Stage(
            kind="collect",
            title=f"answers: {name}",
            subject="answers",
            measures=False,
            depends=asked.depends,
            compute=asked.ask,
        )
        yield from instrument_stages(
            "answers", asked.collected, asked.depends, options, prompts=name
        )


@dataclass(eq=False)
class AskedPrompts:
    """A bounded number of the prompts of a set, and the answers to them."""

    name: str
    writer: Callable[[], LocalWriter] = field(repr=False)
    options: Options

    @cached_property
    def prompts(self) -> list[Prompt]:
        """All wordings of some items, drawn at random; people are named in the first way only."""
        every = read_prompts(self.name)
        items = list(dict.fromkeys(str(each.columns["item"]) for each in every))
        most = QUICK_ITEMS if self.options.quick else ITEMS
        rng = np.random.default_rng(self.options.seed)
        drawn = set(rng.permutation(items)[:most].tolist())
        return [
            each
            for each in every
            if each.columns["item"] in drawn
            and each.columns.get("naming") == every[0].columns.get("naming")
            and each.columns.get(GROUP) in (None, *GROUPS)
        ]

    @property
    def settings(self) -> WriteSettings:
        """How the answers are written."""
        return WriteSettings(max_new_tokens=QUICK_TOKENS if self.options.quick else TOKENS)

    @property
    def file(self) -> str:
        """Where the answers are, in the folder of the audit."""
        return f"answers/{self.name}.jsonl"

    @cached_property
    def depends(self) -> dict[str, Any]:
        """What the answers depend on."""
        fingerprint = blake2b(self.writer().fingerprint.encode(), digest_size=16).hexdigest()
        prompts = [each.key for each in self.prompts]
        return {"writer": fingerprint, "prompts": prompts, "settings": asdict(self.settings)}

    def collected(self) -> Answers:
        """The answers, which are asked once."""
        return self._collect(None)

    def ask(self, progress: Progress) -> dict[str, Any]:
        """Ask, and say what was asked and stored."""
        answers = self._collect(progress)
        every = read_prompts(self.name)
        return {
            "details": {
                "prompts": self.name,
                "count": len(self.prompts),
                "of": len(every),
                "item_count": len({each.columns["item"] for each in self.prompts}),
                "of_items": len({each.columns["item"] for each in every}),
                "settings": asdict(self.settings),
                "file": self.file,
                "outcomes": _outcomes(answers),
                "examples": _examples(answers),
            }
        }

    def _collect(self, progress: Progress | None) -> Answers:
        if self._problem:
            raise PartialFailure(self._problem)
        if self._answers is None:
            try:
                self._answers = self._asked(progress)
            except PartialFailure as error:
                self._problem = str(error)
                raise
        return self._answers

    def _asked(self, progress: Progress | None) -> Answers:
        folder = self.options.work.parent
        (folder / "answers").mkdir(mode=0o700, exist_ok=True)
        began = time.monotonic()

        def report(done: int, of: int) -> None:
            if done and time.monotonic() - began > LONGEST:
                raise PartialFailure("out of time")  # collect returns the answers so far
            if progress is not None:
                progress.step(done, of)

        columns = {name for each in self.prompts for name in each.columns}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # failed requests are an outcome, which the page states
            answers = collect(
                self.writer(),
                self.prompts,
                samples=1,
                settings=self.settings,
                group=[GROUP] if GROUP in columns else [],
                seed=self.options.seed,
                output=folder / self.file,
                cache=self.options.work / "written",
                overwrite=True,
                progress=report,
            )
        if len(answers) < len(self.prompts):
            raise PartialFailure(
                f"{len(answers)} of {len(self.prompts)} answers came within {LONGEST // 60} "
                "minutes; the same command goes on, and without the part answers the audit does "
                "without them"
            )
        return answers

    _answers: Answers | None = field(default=None, init=False, repr=False)
    _problem: str = field(default="", init=False, repr=False)


def given_stages(answers: Answers, options: Options) -> Iterable[Stage]:
    """The stages of answers that are given: how many there are by outcome, and the measures."""
    depends = {"answers": answers.digest}
    details = {"name": answers.name, "count": len(answers), "outcomes": _outcomes(answers)}
    yield Stage(
        kind="collect",
        title=f"answers: {answers.name}",
        subject="answers",
        measures=False,
        depends=depends,
        compute=lambda _: {"details": details},
    )
    yield from instrument_stages("answers", lambda: answers, depends, options)


def _outcomes(answers: Answers) -> dict[str, dict[str, int]]:
    """By group of the finest column, the number of answers of each outcome."""
    column = ["", *answers.columns][-1]
    labels = answers.columns.get(column, ("",) * len(answers))
    counts = Counter(zip(labels, answers.outcomes, strict=True))
    return {
        "no group" if group is None else group: {each: counts[group, each] for each in OUTCOMES}
        for group in dict.fromkeys(labels)
    }


def _examples(answers: Answers) -> list[dict[str, str]]:
    """The answers to the first item in its first wording, one of each group."""
    shown: dict[str, dict[str, str]] = {}
    for i, item in enumerate(answers.items):
        group = answers.groups[GROUP][i] if answers.groups else ""
        if item == answers.items[0] and group not in shown:
            shown[str(group)] = {
                "item": item,
                "group": str(group),
                "prompt": answers.prompts[i],
                "text": answers.texts[i][:QUOTED] + " …" * (len(answers.texts[i]) > QUOTED),
                "outcome": answers.outcomes[i],
            }
    return list(shown.values())
