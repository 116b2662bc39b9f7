"""The stages for few-shot classifiers: one per network, with and without mitigations.

Every run has a folder under the audit's work folder, so that an interrupted audit resumes; the
features of texts are cached there for all of them.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.audit.stages import Options, Progress, Stage, skip
from evenhand.errors import InputError
from evenhand.fewshot.data import FEMALE, MALE, Dataset
from evenhand.files import to_json, versions
from evenhand.instruments import LANGUAGE
from evenhand.results import Comparison, Measurement

if TYPE_CHECKING:
    from evenhand.fewshot.runs import FewShotRun
    from evenhand.fewshot.settings import RunSettings
    from evenhand.fewshot.splits import Split

KIND = "fewshot"


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How much is done: `episodes` to train, validate and test with by network, about so many
    `texts`, and of each text `tokens` at most.
    """

    episodes: Mapping[str, str]
    mitigations: tuple[str, ...]
    splits: int
    texts: int
    tokens: int


FULL = Size(
    episodes={
        "proto-euclidean": "1000/100/200",
        "matching-cosine": "1000/100/200",
        "induction": "300/40/200",
    },
    mitigations=("none", "neutralize", "augment", "calibrate"),
    splits=4,
    texts=1200,
    tokens=128,
)
QUICK = Size(
    episodes={"proto-euclidean": "1000/50/100"},
    mitigations=("none", "neutralize"),
    splits=2,
    texts=560,
    tokens=128,
)


def fewshot_stages(
    model: str,
    data: Dataset,
    options: Options,
    *,
    kind: str = "masked",
    size: Size | None = None,
) -> list[Stage]:
    """A stage for each network, on the model as it is and on the data as far as they suffice."""
    if kind == "causal":
        return [_skipped(data, f"expected a masked model or an encoder, got a {LANGUAGE[kind]}")]
    chosen = size or (QUICK if options.quick else FULL)
    try:
        fit = fitted(data, chosen.texts, options.seed)
    except InputError as error:
        return [_skipped(data, str(error))]
    from evenhand.models.masked import load

    loaded = load(model, head=False, device=options.device)
    work = _Work(model, fit, chosen, options, min(chosen.tokens, loaded.longest))
    identity = {
        "model": loaded.fingerprint,
        "data": fit.data.digest,
        "versions": versions("scikit-learn", "torch", "transformers"),
    }
    stages = []
    for network in chosen.episodes:
        settings = {
            mitigation: work.settings(network, mitigation).to_dict()
            for mitigation in chosen.mitigations
        }
        depends = {**identity, "settings": settings, "prob": options.prob, "notes": fit.notes}
        stages.append(
            Stage(
                kind=KIND,
                title=f"few-shot: {network}",
                subject="fewshot",
                depends=depends,
                compute=partial(work.compute, network, _digest(identity)),
            )
        )
    return stages


@dataclass(frozen=True, slots=True)
class _Work:
    model: str
    fit: FittedData
    size: Size
    options: Options
    tokens: int

    def settings(self, network: str, mitigation: str) -> RunSettings:
        """Those of one run."""
        from evenhand.fewshot.settings import EpisodeCounts, RunSettings, TrainingSettings

        episodes = EpisodeCounts.parse(self.size.episodes[network])
        every = max(1, episodes.train // 5)
        return RunSettings(
            training=TrainingSettings(
                network=network, seed=self.options.seed, validate_every=every
            ),
            ways=self.fit.ways,
            shots=SHOTS,
            queries=QUERIES,
            episodes=episodes,
            mitigation=mitigation,  # type: ignore[arg-type]
            mitigate="all",
            neutral=False,
            splits=self.size.splits,
            split_seed=self.options.seed,
            limit=self.tokens,
        )

    def compute(self, network: str, identity: str, progress: Progress) -> dict[str, Any]:
        """Train and test with each mitigation; compare each with none."""
        from evenhand.instruments import compare

        reasons = {name: self.lacking(network, name) for name in self.size.mitigations}
        possible = [name for name, reason in reasons.items() if not reason]
        runs: dict[str, FewShotRun] = {}
        for number, mitigation in enumerate(possible):
            report = _Steps(progress, number, len(possible))
            runs[mitigation] = self._run(network, mitigation, identity, report)
        progress.step(len(possible), len(possible))
        results = {name: run.results for name, run in runs.items() if run.results is not None}
        before, *_ = results.values()
        if before.bias is None:
            reason = "no test text is of known gender in a class that has more of one gender"
            return _skip(network, reason)
        measured: list[Measurement] = []
        compared: list[Comparison] = []
        for mitigation, found in results.items():
            name = runs[mitigation].name
            about = {"network": network, "mitigation": mitigation, "run": name}
            roles = {"performance": found.accuracy, "baseline": found.baseline, "bias": found.bias}
            measured += [
                _marked(m, **about, role=role) for role, m in roles.items() if m is not None
            ]
            pairs = {"above baseline": found.above_baseline}
            if found is not before and found.bias is not None:
                pairs["performance"] = compare(before.accuracy, found.accuracy)
                pairs["bias"] = compare(before.bias, found.bias)
            compared += [
                replace(c, details={**c.details, **about, "role": role})
                for role, c in pairs.items()
            ]
        women = dict(zip(self.fit.data.classes, self.fit.data.share_of_women.tolist(), strict=True))
        settings = self.settings(network, "none")
        return {
            "measurements": tuple(measured),
            "comparisons": tuple(compared),
            "details": {
                "network": network,
                "mitigations": list(results),
                "task": {
                    **{name: getattr(settings, name) for name in TASK},
                    "episodes": str(settings.episodes),
                    "tokens": self.tokens,
                    "parts": part_sizes(len(self.fit.data.classes)),
                    "seed": self.options.seed,
                },
                "data": self.fit.data.to_dict(),
                "share_of_women": women,
                "notes": self.fit.notes,
            },
            "skipped": tuple(
                {"metric": name, "query": network, "reason": reason}
                for name, reason in reasons.items()
                if reason
            ),
        }

    def _run(self, network: str, mitigation: str, identity: str, report: _Steps) -> FewShotRun:
        from evenhand.fewshot.runs import run
        from evenhand.fewshot.training import thread_count

        settings = self.settings(network, mitigation)
        key = _digest({"identity": identity, "settings": settings.to_dict()})
        folder = self.options.work / "fewshot" / f"{network}-{mitigation}-{key}"
        if network == next(iter(self.size.episodes)):
            self._encode(settings, report)
        with thread_count(1):  # the networks are so small that threads only wait for each other
            finished = run(
                self.fit.data,
                settings,
                folder,
                encoder=self.model,
                splits=self.splits(),
                cache=self.options.work / "features",
                device=self.options.device,
                workers=self.options.workers,
                prob=self.options.prob,
                progress=report,
            )
        for path in finished.folder.glob("split-*/seed-*/*.safetensors"):
            path.unlink()  # not needed once all answers are there, and can be large
        return finished

    def _encode(self, settings: RunSettings, report: _Steps) -> None:
        """The features of all texts, which the run finds in the cache."""
        from evenhand.fewshot.encoders import encode
        from evenhand.fewshot.runs import draw_parts, prepare

        parts = draw_parts(self.fit.data, settings, self.splits())
        texts = prepare(self.fit.data, settings, parts, workers=self.options.workers).texts
        encode(
            self.model,
            texts,
            pooling=settings.pooling,
            limit=settings.limit,
            cache=self.options.work / "features",
            device=self.options.device,
            progress=report,
        )

    def splits(self) -> tuple[Split, ...]:
        """The class splits, those of every network and mitigation."""
        from evenhand.fewshot.splits import make_splits

        sizes = part_sizes(len(self.fit.data.classes))
        return make_splits(self.fit.data, self.size.splits, seed=self.options.seed, sizes=sizes)

    def lacking(self, network: str, mitigation: str) -> str:
        """Why the data do not allow a mitigation; nothing where they do.

        Calibration must leave the test queries alone, or nothing could be compared.
        """
        from evenhand.fewshot.runs import draw_parts

        if "calibrate" not in mitigation:
            return ""
        plain = draw_parts(self.fit.data, self.settings(network, "none"), self.splits())
        try:
            parts = draw_parts(self.fit.data, self.settings(network, mitigation), self.splits())
        except InputError:
            parts = ()
        if parts and all(
            np.array_equal(a.test.query, b.test.query) for a, b in zip(plain, parts, strict=True)
        ):
            return ""
        few = self.fit.data.gender_sizes.min(axis=1)
        fewest = [self.fit.data.classes[i] for i in few.argsort(kind="stable")[:3]]
        return (
            "it gives as many texts of men as of women of each class, and some classes have too "
            f"few of one gender for that; the fewest {', '.join(fewest)}"
        )


@dataclass(slots=True)
class _Steps:
    """The progress of a run as steps of the stage: encoding counts for one half."""

    progress: Progress
    number: int
    of: int
    so_far: float = 0.0

    def __call__(self, what: str, done: int, total: int, _words: str) -> None:
        share = done / max(1, total) / 2
        self.so_far = max(self.so_far, share + 0.5 * (what != "encoding"))
        self.progress.step(round(100 * (self.number + self.so_far)), 100 * self.of)


def _marked(m: Measurement, **about: str) -> Measurement:
    """The measurement without its items, with the run that it belongs to in its details."""
    bare = Measurement.from_dict(m.to_dict(items=False))
    return replace(bare, details={**bare.details, **about})


def _skipped(data: Dataset, reason: str) -> Stage:
    return Stage(
        kind=KIND,
        title="few-shot classifiers",
        subject="fewshot",
        depends={"data": data.digest, "reason": reason},
        compute=lambda _: _skip(data.name, reason),
    )


_skip = partial(skip, "few-shot classifiers")


def _digest(value: Mapping[str, Any]) -> str:
    return hashlib.sha256(to_json(value, indent=None).encode()).hexdigest()[:12]


# -------------------------------------------------------------------------------- data that fit

WAYS, SHOTS, QUERIES = 5, 4, 5
EACH_GENDER = SHOTS // 2 + QUERIES
"""With so many texts of each gender a class can be calibrated with the same test queries."""
CLASSES = 60
"""More classes than this make the test longer, but hardly surer."""
FEWEST, MOST = 20, 100
"""Texts drawn of a class: no fewer where it has them, no more."""
NAMED = 12
TASK = ("ways", "shots", "queries", "splits")
"""The settings that say what a task is."""


@dataclass(frozen=True, eq=False)
class FittedData:
    """The texts to test with and the classes of a task, and in words what was left out."""

    data: Dataset
    ways: int
    notes: tuple[str, ...]


def fitted(data: Dataset, texts: int, seed: int) -> FittedData:
    """About `texts` texts of classes that are large enough; an error says why there are none.

    Classes of fewer than 4 + 5 texts are left out, and of very many all but the largest. Of the
    rest as many texts are drawn of each, in the shares of its genders (see `_counts`). Classes lean
    by their shares, which a draw preserves; intervals of odds ratios would grow with it.
    """
    notes = []
    data = replace(data, leaning_by="share")
    if not (data.genders >= 0).any():
        raise InputError("the data have no text of known gender, which the test needs")
    large = [
        name for name, size in zip(data.classes, data.sizes, strict=True) if size >= SHOTS + QUERIES
    ]
    small = [name for name in data.classes if name not in set(large)]
    if small:
        more = f" and {len(small) - NAMED} more" if len(small) > NAMED else ""
        listed = ", ".join(small[:NAMED]) + more
        notes.append(f"Left out, with fewer than {SHOTS + QUERIES} texts: {listed}.")
    many = min(CLASSES, max(12, texts // FEWEST))
    if len(large) > many:
        notes.append(
            f"Of {len(large)} classes the {many} largest are used, half of them with more women as "
            "far as there are so many."
        )
        large = _largest(data, large, many)
    chosen = data.subset(large)
    _check_leanings(chosen)
    most = min(MOST, max(FEWEST, texts // len(large)))
    drawn = _drawn(chosen, most, seed)
    if len(drawn) < len(chosen):
        fewest = f", but no fewer than {EACH_GENDER} of either where it has them"
        notes.append(
            f"Of each class {most} texts at most were drawn, {len(drawn):,} of {len(chosen):,} in "
            f"all, men and women in the shares they have in it{fewest if _tops_up(most) else ''}."
        )
    return FittedData(drawn, min(WAYS, *part_sizes(len(large))), tuple(notes))


def part_sizes(classes: int) -> tuple[int, int, int]:
    """How many classes to train, to validate and to test on: a half, a quarter and a quarter.

    >>> part_sizes(28), part_sizes(6)
    ((14, 7, 7), (2, 2, 2))
    """
    part = math.ceil(classes / 4)
    return classes - 2 * part, part, part


def _check_leanings(data: Dataset) -> None:
    men, women = (data.leaning.count(side) for side in ("male", "female"))
    if min(men, women) < 3:
        raise InputError(
            "the test needs at least three classes that have more men and three that have more "
            f"women, to train, to validate and to test on, of {SHOTS + QUERIES} texts or more "
            f"each; the data have {men} and {women}"
        )


def _largest(data: Dataset, classes: list[str], many: int) -> list[str]:
    """The largest classes of either leaning by turns, then those of none."""
    order = []
    for sides in (("male",), ("female",), ("even", "unknown")):
        places = [p for p in data.indices(classes) if data.leaning[p] in sides]
        places.sort(key=lambda i: -int(data.sizes[i]))
        later = len(classes) * (sides[0] == "even")
        order += [(turn + later, data.classes[i]) for turn, i in enumerate(places)]
    return [name for _, name in sorted(order, key=lambda one: one[0])[:many]]


def _drawn(data: Dataset, most: int, seed: int) -> Dataset:
    """`most` texts of each class at random, or all it has."""
    rng = np.random.default_rng([seed, 0xFE3])
    rows: list[int] = []
    for number, size in enumerate(data.sizes.tolist()):
        here = rng.permutation(np.flatnonzero(data.labels == number))
        if size > most:
            genders = data.genders[here]
            counts = _counts([int((genders == code).sum()) for code in (MALE, FEMALE)], size, most)
            first = [
                here[genders == code][:n] for code, n in zip((MALE, FEMALE), counts, strict=True)
            ]
            others = here[genders < 0][: most - sum(counts)]
            here = np.concatenate([*first, others])
        rows += here.tolist()
    rows.sort()
    left = dict(data.left_out)
    if len(rows) < len(data):
        left["not drawn for the few-shot test"] = len(data) - len(rows)
    return replace(
        data,
        texts=tuple(data.texts[row] for row in rows),
        labels=data.labels[rows],
        genders=data.genders[rows],
        left_out=left,
        rows=data.rows[rows],
    )


def _counts(sizes: list[int], size: int, most: int) -> list[int]:
    """How many men and women to draw of a class: their shares, and the leaning stays as it is.

    Of the rarer gender no fewer than calibration needs are drawn, unless these were more than a
    sixth of all.

    >>> _counts([190, 10], 200, 60), _counts([100, 60], 200, 60), _counts([190, 10], 200, 25)
    ([53, 7], [30, 18], [24, 1])
    """
    fewer, more = sorted(range(2), key=lambda side: sizes[side])
    counts = [round(most * each / size) for each in sizes]
    if _tops_up(most):
        counts[fewer] = max(counts[fewer], min(sizes[fewer], EACH_GENDER))
    if sizes[fewer] == sizes[more]:
        return [min(counts[fewer], most // 2)] * 2
    known = sum(sizes) == size
    counts[fewer] = min(counts[fewer], (most - 1) // 2)
    counts[more] = most - counts[fewer] if known else max(counts[more], counts[fewer] + 1)
    return counts


def _tops_up(most: int) -> bool:
    return most / 6 >= EACH_GENDER
