"""Few-shot runs: train on each class split with each seed, test once at the end, save everything.

`run` trains one network with one mitigation and writes a folder, `read_run` reads it again, and
`summarise` measures it: accuracy against the baseline, and bias. The folder has

- `run.json`: the settings, the data, the encoder; `results.json`, `by_class.csv` and
  `associations.csv` once the run is complete;
- `splits.json`; for each split `split-0/` with `episodes.npz` (the test episodes as rows of the
  data set) and `baseline.npz`; for each seed `split-0/seed-0/` with the trained network,
  `curve.csv` and `answers.npz`.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evenhand import files
from evenhand.display import Result
from evenhand.errors import FileError, InputError, parameter, require_models
from evenhand.fewshot.answers import (
    Answers,
    Classifier,
    Counterfactuals,
    SavedAnswers,
    join,
    leaning_codes,
)
from evenhand.fewshot.baseline import predict_baseline
from evenhand.fewshot.data import Dataset
from evenhand.fewshot.episodes import Episodes, sample
from evenhand.fewshot.features import load_word_vectors
from evenhand.fewshot.metrics.accuracy import accuracy, compare_accuracy
from evenhand.fewshot.metrics.bias import bias
from evenhand.fewshot.mitigation import Mitigated, apply, neutralize, swap_gender
from evenhand.fewshot.settings import RunSettings, StepProgress
from evenhand.fewshot.splits import Split, make_splits, save_splits
from evenhand.files import document, public_name, save_json, to_json, versions
from evenhand.instruments import correct_results
from evenhand.results import Comparison, Measurement, Measurements
from evenhand.statistics.jackknife import Ints
from evenhand.summary import summarize

if TYPE_CHECKING:
    from evenhand.fewshot.features import FeatureStore
    from evenhand.fewshot.training import Source
    from evenhand.masked.memory import ModelSource
    from evenhand.masked.model import Model

__all__ = ["FewShotRun", "RunResults", "read_run", "run", "summarise"]

ANSWERS, BASELINE, EPISODES, CURVE = "answers.npz", "baseline.npz", "episodes.npz", "curve.csv"
BY_CLASS, ASSOCIATIONS = TABLES = ("by_class.csv", "associations.csv")
PAGE = "report.html"
BASELINE_NAME = "counting words (TF-IDF)"
PURPOSES = {"train": "training", "valid": "validation", "test": "test"}


# the folder, and the run it holds


class RunFolder(files.RunFolder):
    """The folder of `fewshot run`."""

    command = "fewshot run"
    products = (
        "results.json",
        f"split-[0-9]*/seed-*/{ANSWERS}",
        "split-[0-9]*/seed-*/*.safetensors",
    )
    cleared = ("results.json", PAGE, "splits.json", "split-[0-9]*", "figures", *TABLES)
    temporary = (
        *files.RunFolder.temporary,
        *(f".{name}.*" for name in ("run.json", "results.json", PAGE, "splits.json", *TABLES)),
        "split-[0-9]*/.*",
        "split-[0-9]*/seed-*/.*",
        "figures/.*",
    )

    def split(self, number: int) -> Path:
        return self.path / f"split-{number}"

    def seed(self, number: int, seed: int) -> Path:
        return self.split(number) / f"seed-{seed}"


@dataclass(frozen=True, kw_only=True, repr=False)
class RunResults(Result):
    """The measurements of a finished run.

    Parameters
    ----------
    accuracy, baseline : Measurement
        Of the network, and of counting words on the same queries.
    above_baseline : Comparison
        The paired difference of the two.
    bias : Measurement or None
        None where the data have no test queries of known gender in classes that lean.

    """

    accuracy: Measurement
    baseline: Measurement
    above_baseline: Comparison
    bias: Measurement | None

    @property
    def sentence(self) -> str:
        """What was found and how sure that is: of the bias, or of the accuracy without it."""
        return summarize(self.bias or self.accuracy)

    def to_dict(self, *, items: bool = True) -> dict[str, Any]:
        """The measurements, comparisons and what was skipped, as `results.load` reads them."""
        measured = [self.accuracy, *([] if self.bias is None else [self.bias]), self.baseline]
        reason = "no test query is of known gender in a class that leans male or female"
        skipped = {"metric": "fewshot_bias", "query": "gender", "reason": reason}
        return {
            "measurements": [m.to_dict(items=items) for m in measured],
            "comparisons": [self.above_baseline.to_dict(items=items)],
            "skipped": [skipped] if self.bias is None else [],
        }

    def _headline(self) -> str:
        bias = "not measured" if self.bias is None else str(self.bias.estimate)
        return f"accuracy {self.accuracy.estimate}, bias {bias}"

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        measured = [self.accuracy, self.baseline, *([] if self.bias is None else [self.bias])]
        return Measurements(measured)._rows()


@dataclass(frozen=True, eq=False, repr=False)
class FewShotRun(Result):
    """A finished run: the answers by split and seed, those of the baseline by split.

    It is what the instruments of few-shot classifiers measure: `eh.measure(run)`. `results` has
    what `run` measured (None in a run that was read: `summarise` measures it).
    """

    subject_kind: ClassVar[str] = "classifier"

    folder: Path
    settings: RunSettings
    record: Mapping[str, Any] = field(repr=False)
    saved: tuple[tuple[SavedAnswers, ...], ...] = field(repr=False)
    saved_baseline: tuple[SavedAnswers, ...] = field(repr=False)
    curves: Mapping[str, list[dict[str, float | None]]] = field(repr=False)
    results: RunResults | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def data(self) -> str:
        """The digest of its data."""
        return str(self.record["data"]["digest"])

    @property
    def leaning(self) -> Ints:
        """The gender that each class leans to: 0 male, 1 female, -1 neither."""
        return self.saved[0][0].leaning

    @cached_property
    def answers(self) -> Answers:
        """All answers as one."""
        return join([[saved.answers for saved in split] for split in self.saved])

    @cached_property
    def counterfactuals(self) -> Counterfactuals | None:
        """All counterfactuals as one; None where no bias can be measured."""
        runs = [
            [both for saved in split if (both := saved.counterfactuals) is not None]
            for split in self.saved
        ]
        return Counterfactuals.join(runs) if all(runs) else None

    @cached_property
    def baseline(self) -> Classifier:
        """The baseline on the same test queries."""
        return Classifier(
            name=BASELINE_NAME,
            answers=join([[saved.answers] for saved in self.saved_baseline]),
            leaning=self.leaning,
            data=self.data,
            deterministic=True,
        )

    def to_dict(self, *, items: bool = True) -> dict[str, Any]:
        """The content of `results.json`; `items=False` leaves out the items."""
        results = self.results or summarise(self)
        return {
            "name": self.name,
            "settings": self.settings.to_dict(),
            "data": self.record.get("data"),
            "encoder": self.record.get("encoder"),
            **results.to_dict(items=items),
            "sentence": results.sentence,
            "curves": dict(self.curves),
        }

    def _headline(self) -> str:
        measured = "not measured yet" if self.results is None else self.results._headline()
        return f"{self.name}: {measured}"

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [] if self.results is None else self.results._rows()


def summarise(
    run: FewShotRun,
    *,
    prob: float = 0.95,
    margin: float = 0.05,
    permutations: int = 2000,
    seed: int = 0,
) -> RunResults:
    """Measure a finished run.

    Parameters
    ----------
    run : FewShotRun
    prob : float
        Probability of the intervals.
    margin, permutations, seed
        As for `evenhand.fewshot.bias`.

    """
    measured = accuracy(run, prob=prob)
    baseline = accuracy(run.baseline, prob=prob)
    biases = (
        []
        if run.counterfactuals is None
        else correct_results(
            [bias(run, prob=prob, margin=margin, permutations=permutations, seed=seed)]
        )
    )
    return RunResults(
        accuracy=measured,
        baseline=baseline,
        above_baseline=compare_accuracy(baseline, measured),
        bias=next(iter(biases), None),
    )


def read_run(folder: str | os.PathLike[str]) -> FewShotRun:
    """Read a finished run; of an unfinished one the error names what is missing."""
    path = Path(folder)
    place = RunFolder(path)
    record = _read_record(path)
    try:
        settings = RunSettings.from_dict(record["settings"])
        first, _ = settings.training.seed, record["data"]["digest"]
    except (KeyError, TypeError, AttributeError, InputError) as error:
        raise FileError(path / "run.json", f"not the record of a few-shot run: {error}") from None
    saved, baseline, curves = [], [], {}
    for split in range(settings.splits):
        baseline.append(_read_answers(place.split(split) / BASELINE))
        row = []
        for seed in range(first, first + settings.seeds):
            here = place.seed(split, seed)
            row.append(_read_answers(here / ANSWERS))
            curves[f"split {split}, seed {seed}"] = _read_curve(here / CURVE)
        saved.append(tuple(row))
    return FewShotRun(path, settings, record, tuple(saved), tuple(baseline), curves)


def _read_record(path: Path) -> dict[str, Any]:
    file = path / "run.json"
    if not file.is_file():
        raise FileError(path, "expected the folder of a few-shot run, it has no run.json")
    try:
        record = json.loads(file.read_bytes())
    except (ValueError, RecursionError) as error:
        raise FileError(file, f"not valid JSON: {error}") from None
    if not isinstance(record, dict) or record.get("command") != RunFolder.command:
        raise FileError(file, f"expected the record of '{RunFolder.command}', got another one")
    return record


def _read_answers(path: Path) -> SavedAnswers:
    if not path.is_file():
        raise FileError(path, "missing, this run is not finished: repeat its command to resume it")
    try:
        return SavedAnswers.load(path)
    except FileError as error:
        raise FileError(
            path, f"{error.problem}; delete it and repeat the command of the run"
        ) from None


def _read_curve(path: Path) -> list[dict[str, float | None]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [
                {name: float(cell) if cell else None for name, cell in row.items()}
                for row in csv.DictReader(file)
            ]
    except FileNotFoundError:
        raise FileError(
            path, f"missing, the run has lost its curve: {parameter('restart', True)} repeats it"
        ) from None
    except (ValueError, TypeError, csv.Error) as error:
        raise FileError(
            path, f"expected a curve: {error}; {parameter('restart', True)} repeats the run"
        ) from None
    if not rows:
        raise FileError(
            path, f"expected a curve, got no rows: {parameter('restart', True)} repeats the run"
        )
    return rows


# what a run works on


@dataclass(frozen=True, eq=False)
class Part:
    """A class split with its episodes as rows of the data set."""

    number: int
    split: Split
    valid: Episodes = field(repr=False)
    test: Episodes = field(repr=False)

    def training(self, dataset: Dataset, settings: RunSettings, seed: int) -> Episodes:
        """The training episodes of a seed."""
        return _sample(dataset, self.split.train, settings, "train", seed, self.number)


@dataclass(frozen=True, eq=False)
class Material:
    """Every text as the classifier reads it: those of the pool, then those of the data set as they
    are where only training texts are neutralised, then the counterfactuals of the test queries (El
    Zein 2021, §4.1.2), read through the mitigation of the test, and their neutral versions.

    `counterfactual` has the row of a text's counterfactual, or -1, and `neutral` that of its
    neutral version; `plain` is the row of the first text as it is.
    """

    dataset: Dataset
    settings: RunSettings
    parts: tuple[Part, ...]
    mitigated: Mitigated
    texts: tuple[str, ...] = field(repr=False)
    counterfactual: NDArray[np.int64] = field(repr=False)
    plain: int = 0
    neutral: NDArray[np.int64] | None = field(default=None, repr=False)

    @property
    def has_counterfactuals(self) -> bool:
        return bool((self.counterfactual >= 0).any())

    def training(self, part: Part, number: int) -> Episodes:
        """The training episodes of the seed of that number, as rows of the texts."""
        seed = self.settings.training_of(number).seed
        drawn = part.training(self.dataset, self.settings, seed)
        return self.mitigated.rows(drawn, training=True, seed=seed)

    def validation(self, part: Part) -> Episodes:
        return self.mitigated.rows(part.valid)

    def test(self, part: Part) -> Episodes:
        if self.settings.test_mitigation == self.settings.mitigation:
            return self.mitigated.rows(part.test)
        drawn = part.test
        unlabelled = None if drawn.unlabelled is None else drawn.unlabelled + self.plain
        return replace(
            drawn,
            support=drawn.support + self.plain,
            query=drawn.query + self.plain,
            unlabelled=unlabelled,
            dataset=self.mitigated.pool.digest,
        )

    def counterfactuals(self, part: Part) -> Episodes:
        """The test episodes with every query replaced by its counterfactual."""
        return self._other_queries(part, self.counterfactual)

    def neutral_versions(self, part: Part) -> Episodes:
        """The test episodes with every query replaced by its neutral version."""
        assert self.neutral is not None  # noqa: S101
        return self._other_queries(part, self.neutral)

    def _other_queries(self, part: Part, versions: NDArray[np.int64]) -> Episodes:
        rows: NDArray[np.int64] = versions[part.test.query]
        return replace(self.test(part), query=rows.astype(np.int32))


def draw_parts(
    dataset: Dataset,
    settings: RunSettings,
    splits: Sequence[Split] | None = None,
    *,
    shares: Sequence[float] = (0.5, 0.25, 0.25),
    both_leanings: bool = True,
) -> tuple[Part, ...]:
    """The splits, drawn or given, each with its episodes; errors name the classes that are too
    small.

    The first training episodes are drawn too, so that all of the data is known to suffice.
    """
    if splits is None:
        splits = make_splits(
            dataset,
            settings.splits,
            seed=settings.split_seed,
            shares=shares,
            both_leanings=both_leanings,
        )
    elif len(splits) < settings.splits:
        raise InputError(f"splits: expected {settings.splits} in what was given, got {len(splits)}")
    parts = []
    for number, split in enumerate(splits[: settings.splits]):
        try:
            split.check(dataset)
        except InputError as error:
            raise InputError(f"splits: split {number}: {error}") from None
        valid, test = (
            _sample(dataset, classes, settings, purpose, settings.split_seed, number)
            for classes, purpose in ((split.valid, "valid"), (split.test, "test"))
        )
        part = Part(number, split, valid, test)
        part.training(dataset, settings, settings.training.seed)
        parts.append(part)
    return tuple(parts)


def prepare(
    dataset: Dataset,
    settings: RunSettings,
    parts: Sequence[Part],
    *,
    workers: int = 1,
    store: FeatureStore | None = None,
) -> Material:
    """Rewrite the texts for the mitigation, and the test queries to counterfactuals.

    There are none where the gender of no query is known. A store has all of them ready, and a
    counterfactual for every text.
    """
    queries = np.unique(np.concatenate([part.test.query.ravel() for part in parts]))
    known = bool((dataset.genders[queries] >= 0).any())
    counterfactual, neutral = np.full(len(dataset), -1), np.full(len(dataset), -1)
    swapped: tuple[str, ...] = ()
    neutral_texts: tuple[str, ...] = ()
    tested = settings.test_mitigation
    if store is not None:
        mitigated = store.mitigated(settings.mitigation)
        swapped = store.counterfactuals(tested)
        numbers = queries
        if known and settings.neutral:
            neutral_texts = store.texts("neutral")
    else:
        mitigated = apply(dataset, settings.mitigation, workers=workers)
        if known:
            texts = [dataset.texts[row] for row in queries]
            swapped = tested.read(
                swap_gender(texts, names="fixed", workers=workers), workers=workers
            )
            if settings.neutral:
                neutral_texts = neutralize(texts, workers=workers)
        numbers = np.arange(len(queries))
    both = settings.mitigation.neutralize and not tested.neutralize
    unchanged = dataset.texts if both else ()
    if known:
        counterfactual[queries] = len(mitigated.pool) + len(unchanged) + numbers
        neutral[queries] = counterfactual[queries] + len(swapped)
    return Material(
        dataset,
        settings,
        tuple(parts),
        mitigated,
        (*mitigated.pool.texts, *unchanged, *swapped, *neutral_texts),
        counterfactual,
        len(mitigated.pool) if both else 0,
        neutral if neutral_texts else None,
    )


def _sample(
    dataset: Dataset,
    classes: Sequence[str],
    settings: RunSettings,
    purpose: str,
    seed: int,
    number: int,
) -> Episodes:
    try:
        return _sample_once(
            dataset,
            tuple(classes),
            settings.ways,
            settings.shots,
            settings.queries,
            getattr(settings.episodes, purpose),
            (settings.test_mitigation if purpose == "test" else settings.mitigation).calibrate,
            settings.unlabelled or 0,
            seed,
            f"{purpose} {number}",
        )
    except InputError as error:
        raise type(error)(f"{PURPOSES[purpose]} classes of split {number}: {error}") from None


@lru_cache(maxsize=32)
def _sample_once(
    dataset: Dataset,
    classes: tuple[str, ...],
    ways: int,
    shots: int,
    queries: int,
    episodes: int,
    calibrated: bool,
    unlabelled: int,
    seed: int,
    purpose: str,
) -> Episodes:
    """`sample`, the last few of them held: runs of other networks draw the same episodes."""
    return sample(
        dataset,
        classes,
        ways=ways,
        shots=shots,
        queries=queries,
        episodes=episodes,
        calibrated=calibrated,
        unlabelled=unlabelled,
        seed=seed,
        purpose=purpose,
    )


# running


def run(
    dataset: Dataset,
    settings: RunSettings | None = None,
    folder: str | os.PathLike[str] = "fewshot-run",
    *,
    encoder: ModelSource = "mini",
    splits: Sequence[Split] | None = None,
    shares: Sequence[float] = (0.5, 0.25, 0.25),
    both_leanings: bool = True,
    cache: str | os.PathLike[str] | None = None,
    device: str = "auto",
    workers: int = 1,
    restart: bool = False,
    prob: float = 0.95,
    margin: float = 0.05,
    permutations: int = 2000,
    about: Mapping[str, Any] | None = None,
    progress: StepProgress | None = None,
    finish: Callable[[FewShotRun], None] | None = None,
    store: FeatureStore | None = None,
) -> FewShotRun:
    """Train and test a few-shot classifier, measure it, and save everything in a folder.

    An interrupted call resumes when it is repeated, and ends with the same numbers.

    Parameters
    ----------
    dataset : Dataset
    settings : RunSettings, optional
    folder : path
        A folder of another run is refused.
    encoder : str, path, (network, tokenizer) or pipeline
        A model by name or in memory, as for `evenhand.masked.load`.
    splits : sequence of Split, optional
        The class splits; by default they are drawn.
    shares : sequence of float
        The shares of the classes to train, validate and test on, where splits are drawn.
    both_leanings : bool
        Whether each part of a split must have classes that lean male and classes that lean female.
    cache : path, optional
        A folder for the features of a frozen encoder and the vectors of the baseline.
    device : str
    workers : int
        Processes that rewrite texts.
    restart : bool
        Whether an earlier run in the folder is cleared.
    prob, margin, permutations
        As for `summarise`.
    about : Mapping, optional
        Added to `run.json`.
    progress : callable, optional
        Called with the step, the amount done, the total and a text.
    finish : callable, optional
        Called with the measured run before `results.json` is written, while the folder is locked,
        to write more into it.
    store : FeatureStore, optional
        The texts and features of this data set, with its own encoder, cache and device.

    Returns
    -------
    FewShotRun
        With its `results`, which `results.json` has too.

    """
    require_models("few-shot classification")
    from evenhand.masked.memory import is_path
    from evenhand.masked.model import load

    chosen = settings or RunSettings()
    if store is not None:
        _check_store(store, dataset, chosen)
    parts = draw_parts(dataset, chosen, splits, shares=shares, both_leanings=both_leanings)
    with RunFolder.working(folder) as place:
        model = load(encoder, device=device, head=False) if store is None else store.model
        fingerprint = model.fingerprint if store is None else store.fingerprint
        _check_network(chosen, model.dim)
        identity = {
            "settings": chosen.to_dict(),
            "data": dataset.digest,
            "leaning": dataset.leaning_by
            if isinstance(dataset.leaning_by, str)
            else dict(dataset.leaning_by),
            "encoder": fingerprint,
            "splits": _splits_digest(parts),
        }
        if restart or not place.holds(identity):
            given = encoder if store is None else store.encoder
            source = public_name(given) if is_path(given) else model.name
            place.claim(
                identity,
                {
                    "settings": chosen.to_dict(),
                    "data": dataset.to_dict(),
                    "encoder": {"source": source, "fingerprint": fingerprint},
                    "versions": versions("scikit-learn", "torch", "transformers"),
                    **(about or {}),
                },
            )
        work = _Work(place, dataset, chosen, parts, model, cache, workers, progress, store)
        work.save_episodes()
        work.train_and_test()
        work.answer_baseline()
        finished = read_run(place.path)
        results = summarise(finished, prob=prob, margin=margin, permutations=permutations)
        finished = replace(finished, results=results)
        _save_tables(place, results)
        if finish is not None:
            finish(finished)
        content = document(command=RunFolder.command, **finished.to_dict())
        save_json(place.path / "results.json", content)
        return finished


def by_class_rows(accuracy: Measurement) -> list[dict[str, Any]]:
    """Accuracy and F1 of each class as the rows of a table."""
    f1 = accuracy.part("f1", by="score")
    return [
        {
            "class": part.query,
            "leaning": part.details["leaning"],
            "texts": part.details["texts"],
            "queries": part.details["queries"],
            **_columns("accuracy", part),
            **_columns("f1", f1.part(part.query, by="class")),
            "precision": part.details["precision"],
            "confused_with": part.details["confused_with"],
        }
        for part in accuracy.select("class")
    ]


def association_rows(bias: Measurement) -> list[dict[str, Any]]:
    """The associations by class and gender as the rows of a table."""
    return [
        {
            "class": part.query,
            "leaning": part.details["leaning"],
            "gender": own.query,
            "texts": own.n,
            **_columns("association", own),
            "signed": own.details["signed"],
        }
        for part in bias.select("class")
        for own in part.select("gender")
    ]


def _columns(name: str, part: Measurement) -> dict[str, float]:
    return {name: part.value, f"{name}_low": part.low, f"{name}_high": part.high}


def _save_tables(place: RunFolder, results: RunResults) -> None:
    place.save_table(by_class_rows(results.accuracy), BY_CLASS)
    if results.bias is not None:
        place.save_table(association_rows(results.bias), ASSOCIATIONS)


@dataclass(frozen=True)
class _Work:
    place: RunFolder
    dataset: Dataset
    settings: RunSettings
    parts: tuple[Part, ...]
    model: Model
    cache: str | os.PathLike[str] | None
    workers: int
    progress: StepProgress | None
    store: FeatureStore | None

    def save_episodes(self) -> None:
        """The splits and the test episodes, which any other tool can replay."""
        save_splits(self.place.path / "splits.json", [part.split for part in self.parts])
        for part in self.parts:
            folder = self.place.split(part.number)
            folder.mkdir(exist_ok=True)
            part.test.save(folder / EPISODES)

    def train_and_test(self) -> None:
        """Each split with each seed that has no answers yet."""
        missing = [
            (part, number)
            for part in self.parts
            for number in range(self.settings.seeds)
            if not (self._seed_folder(part, number) / ANSWERS).is_file()
        ]
        if not missing:
            return
        self._report("rewriting", 0, 1)
        material = prepare(
            self.dataset, self.settings, self.parts, workers=self.workers, store=self.store
        )
        source = self._source(material)
        for part, number in missing:
            self._train(material, source, part, number)

    def answer_baseline(self) -> None:
        """The baseline's answers to the test queries of each split."""
        missing = [
            (part, file)
            for part in self.parts
            if not (file := self.place.split(part.number) / BASELINE).is_file()
        ]
        if not missing:
            return
        self._report("counting words", 0, 1)
        vectors = load_word_vectors(self.dataset, self.cache) if self.store is None else None
        for part, file in missing:
            if self.store is None:
                answers = predict_baseline(self.dataset, part.test, vectors=vectors)
            else:
                answers = self.store.baseline(part.test)
            SavedAnswers(answers, None, leaning_codes(self.dataset.leaning)).save(file)

    def _train(self, material: Material, source: Source, part: Part, number: int) -> None:
        from evenhand.fewshot.training import Predictions, evaluate, train

        folder = self._seed_folder(part, number)
        settings = self.settings.training_of(number)
        prefix = f"split {part.number}, seed {settings.seed}: "

        def report(step: str, done: int, total: int, text: str) -> None:
            self._report(prefix + step, done, total, text)

        trained = train(
            settings,
            source,
            material.training(part, number),
            material.validation(part),
            folder,
            progress=report,
        )
        log_probs = evaluate(trained, source, material.test(part)).log_probs
        answers = Predictions(log_probs, part.test).answers(self.dataset)
        swapped = None
        if material.has_counterfactuals:
            swapped = evaluate(trained, source, material.counterfactuals(part)).log_probs
        neutral = None
        if material.neutral is not None:
            neutral = evaluate(trained, source, material.neutral_versions(part)).log_probs
        saved = SavedAnswers(answers, swapped, leaning_codes(self.dataset.leaning), neutral)
        saved.save(folder / ANSWERS)

    def _source(self, material: Material) -> Source:
        """Frozen features, or the encoder that learns."""
        from evenhand.fewshot.encoders import TunedEncoder, encode
        from evenhand.fewshot.training import as_source

        settings = self.settings
        if self.store is not None:
            return self.store.source(
                settings.mitigation,
                tested=settings.test_mitigation,
                neutral=settings.neutral,
                finetune=settings.finetune,
                progress=self.progress,
            )
        if settings.finetune:
            return TunedEncoder(
                self.model, material.texts, pooling=settings.pooling, limit=settings.limit
            )
        try:
            features = encode(
                self.model,
                material.texts,
                pooling=settings.pooling,
                limit=settings.limit,
                cache=self.cache,
                progress=self.progress,
            )
        except OSError as error:  # the error of a full disk does not name it
            raise OSError(error.errno, error.strerror, error.filename or self.cache) from error
        return as_source(features, self.model.device)

    def _seed_folder(self, part: Part, number: int) -> Path:
        return self.place.seed(part.number, self.settings.training_of(number).seed)

    def _report(self, step: str, done: int, total: int, text: str = "") -> None:
        if self.progress is not None:
            self.progress(step, done, total, text)


def _check_store(store: FeatureStore, dataset: Dataset, settings: RunSettings) -> None:
    if store.dataset.digest != dataset.digest:
        raise InputError("store: expected that of this data set, got that of other texts")
    for name in ("pooling", "limit"):
        there, wanted = getattr(store, name), getattr(settings, name)
        if there != wanted:
            raise InputError(f"store: {name}: expected {wanted}, got {there}")


def _check_network(settings: RunSettings, dim: int) -> None:
    """Report options that the network does not take before the texts are encoded."""
    from evenhand.fewshot.training import make_network

    try:
        make_network(settings.training, dim, tuned=settings.finetune)
    except TypeError:
        given = ", ".join(f"{name}={value}" for name, value in settings.training.options.items())
        raise InputError(
            f"network {settings.training.network}: options: expected whole numbers, got {given}"
        ) from None


def _splits_digest(parts: Sequence[Part]) -> str:
    content = to_json([part.split.to_dict() for part in parts], indent=None)
    return blake2b(content.encode(), digest_size=16).hexdigest()
