"""Few-shot runs: train on each class split with each seed, test once at the end, save everything.

`run` trains one network with one mitigation and writes a folder, `read_run` reads it again, and
`summarise` measures it: accuracy against the baseline, and bias. The folder has

- `run.json`: the settings, the data, the encoder; `results.json`, `by_class.csv` and
  `associations.csv` once the run is complete;
- `splits.json`; for each split `split-0/` with `episodes.npz` (the test episodes as rows of the
  data set) and `baseline.npz`; for each seed `split-0/seed-0/` with `answers.npz`, the trained
  network and `curve.csv`, and with several learning rates `rates.csv` and a folder for each. A
  causal model that reads the examples in its prompt (in-context) is not trained: its seeds are
  orders of the examples.
"""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evenhand import files
from evenhand.arguments import checked
from evenhand.display import Result
from evenhand.errors import FileError, InputError, parameter, require_models
from evenhand.fewshot.answers import (
    Classifier,
    Counterfactuals,
    FewShotPredictions,
    join,
    leaning_codes,
)
from evenhand.fewshot.baseline import predict_baseline
from evenhand.fewshot.data import Dataset
from evenhand.fewshot.episodes import Episodes, episode_rows, sample
from evenhand.fewshot.features import load_word_vectors
from evenhand.fewshot.metrics.accuracy import Accuracy
from evenhand.fewshot.metrics.bias import Bias
from evenhand.fewshot.mitigation import Mitigated, apply, neutralize, read_as, swap_gender
from evenhand.fewshot.parity import equalize
from evenhand.fewshot.settings import LIMIT, RunSettings, StepProgress, check_pooling
from evenhand.fewshot.splits import Split, make_splits, save_splits
from evenhand.files import (
    document,
    parse_json,
    public_name,
    public_names,
    save_json,
    to_json,
    versions,
)
from evenhand.instruments import compare, compare_together, correct_results
from evenhand.results import Comparison, Measurement, Measurements
from evenhand.statistics.jackknife import Ints
from evenhand.summary import summarize

if TYPE_CHECKING:
    from evenhand.fewshot.features import FeatureStore
    from evenhand.fewshot.training import Source
    from evenhand.models.base import LoadedModel
    from evenhand.models.causal import CausalModel
    from evenhand.models.endpoint import EndpointSettings
    from evenhand.models.memory import ModelSource
    from evenhand.models.writing import Writer

__all__ = ["FewShotRun", "RunResults", "read_run", "run", "summarise"]

ANSWERS, BASELINE, EPISODES, CURVE = "answers.npz", "baseline.npz", "episodes.npz", "curve.csv"
RATES = "rates.csv"
BY_CLASS, ASSOCIATIONS = TABLES = ("by_class.csv", "associations.csv")
CONTROL = "none (control)"
PAGE, PROMPTED = "report.html", "prompted.npz"
BASELINE_NAME = "counting words (TF-IDF)"
PURPOSES = {"train": "training", "valid": "validation", "test": "test"}


# the folder, and the run it holds


class FewShotFolder(files.RunFolder):
    """The folder of `lab fewshot run`."""

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

    @classmethod
    def of(cls, run: FewShotRun, measured: Measurement, bias: Measurement | None) -> RunResults:
        """The accuracy and the bias of a run, with the baseline on the same queries."""
        baseline = Accuracy()(run.baseline, prob=measured.prob)
        return cls(
            accuracy=measured,
            baseline=baseline,
            above_baseline=Accuracy.compare(baseline, measured),
            bias=bias,
        )

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

    subject_kind: ClassVar[str] = "fewshot"
    deterministic: ClassVar[bool] = False

    folder: Path
    settings: RunSettings
    record: Mapping[str, Any] = field(repr=False)
    saved: tuple[tuple[Classifier, ...], ...] = field(repr=False)
    saved_baseline: tuple[Classifier, ...] = field(repr=False)
    curves: Mapping[str, list[dict[str, float | None]]] = field(repr=False)
    results: RunResults | None = field(default=None, repr=False)
    rates: Mapping[str, list[dict[str, float | None]]] = field(default_factory=dict, repr=False)

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def data(self) -> str:
        """The digest of its data."""
        return str(self.record["data"]["digest"])

    @property
    def leaning(self) -> Ints | None:
        """The gender that each class leans to: 0 male, 1 female, -1 neither."""
        return self.saved[0][0].leaning

    @cached_property
    def answers(self) -> FewShotPredictions:
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
            **{name: self.record[name] for name in ("encoder", "model") if name in self.record},
            **results.to_dict(items=items),
            "sentence": results.sentence,
            "curves": dict(self.curves),
            **({"learning_rates": dict(self.rates)} if self.rates else {}),
        }

    def _headline(self) -> str:
        measured = "not measured yet" if self.results is None else self.results._headline()
        return f"{self.name}: {measured}"

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [] if self.results is None else self.results._rows()


@checked
def summarise(
    run: FewShotRun, bias: Bias = Bias(), *, prob: float = 0.95, seed: int = 0
) -> RunResults:
    """Measure a finished run.

    Parameters
    ----------
    run : FewShotRun
    bias : Bias
        The measure of bias with its options.
    prob : float
        Probability of the intervals.
    seed : int

    """
    own = None
    if run.counterfactuals is not None:
        [own] = correct_results([bias(run, prob=prob, seed=seed)])
    return RunResults.of(run, Accuracy()(run, prob=prob), own)


def compare_runs(
    measured: Sequence[tuple[Measurement, Measurement]],
) -> list[tuple[Comparison, Comparison]]:
    """What each run changed against the first, from the accuracy and the bias of each.

    The intervals of each measure hold together for all runs.
    """
    (first, *_) = measured
    changes = [
        tuple(compare(before, after) for before, after in zip(first, other, strict=True))
        for other in measured[1:]
    ]
    by_measure = [_compare_together(own) for own in zip(*changes, strict=True)]
    return [(accuracy, bias) for accuracy, bias in zip(*by_measure, strict=True)]


def _compare_together(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons, and their parts of each name, with intervals that hold together."""
    by_part = [compare_together(own) for own in zip(*(c.parts for c in comparisons), strict=True)]
    return [
        replace(comparison, parts=parts)
        for comparison, parts in zip(
            compare_together(comparisons), zip(*by_part, strict=True), strict=True
        )
    ]


def name_runs(runs: Sequence[FewShotRun]) -> list[str]:
    """The runs' names, with their folders where several have the same name."""
    names, folders = [run.name for run in runs], public_names(run.folder for run in runs)
    return [
        name if names.count(name) == 1 else f"{name} ({folders[str(run.folder)]})"
        for name, run in zip(names, runs, strict=True)
    ]


@checked
def read_run(folder: str | os.PathLike[str]) -> FewShotRun:
    """Read a finished run; of an unfinished one the error names what is missing."""
    path = Path(folder)
    place = FewShotFolder(path)
    record = _read_record(path)
    try:
        settings = RunSettings.from_dict(record["settings"])
        first, _ = settings.training.seed, record["data"]["digest"]
    except (KeyError, TypeError, AttributeError, InputError) as error:
        raise FileError(path / "run.json", f"not the record of a few-shot run: {error}") from None
    splits = range(settings.splits)
    seeds = range(first, first + settings.seeds)
    baseline = [_read_answers(place.split(n) / BASELINE) for n in splits]
    saved = [[_read_answers(place.seed(n, seed) / ANSWERS) for seed in seeds] for n in splits]
    return _make_run(place, record, settings, saved, baseline)


def _make_run(
    place: FewShotFolder,
    record: Mapping[str, Any],
    settings: RunSettings,
    saved: Sequence[Sequence[Classifier]],
    baseline: Sequence[Classifier],
) -> FewShotRun:
    """The run of these answers, with the learning curves and rates of its folder."""
    first = settings.training.seed

    def curves(name: str) -> dict[str, list[dict[str, float | None]]]:
        return {
            f"split {split}, seed {seed}": _read_curve(place.seed(split, seed) / name)
            for split in range(settings.splits)
            for seed in range(first, first + settings.seeds)
        }

    return FewShotRun(
        place.path,
        settings,
        record,
        tuple(map(tuple, saved)),
        tuple(baseline),
        curves={} if settings.in_context else curves(CURVE),
        rates=curves(RATES) if settings.rates else {},
    )


def _read_record(path: Path) -> dict[str, Any]:
    file = path / "run.json"
    if not file.is_file():
        raise FileError(path, "expected the folder of a few-shot run, it has no run.json")
    record = parse_json(file.read_bytes(), file)
    if not isinstance(record, dict) or record.get("command") != FewShotFolder.command:
        raise FileError(file, f"expected the record of '{FewShotFolder.command}', got another one")
    return dict(record)


def _read_answers(path: Path) -> Classifier:
    if not path.is_file():
        raise FileError(path, "missing, this run is not finished: repeat its command to resume it")
    try:
        return Classifier.load(path)
    except FileError as error:
        raise FileError(
            path, f"{error.problem}; delete it and repeat the command of the run"
        ) from None


def _read_curve(path: Path) -> list[dict[str, float | None]]:
    again = f"{parameter('restart', True)} repeats the run"
    try:
        rows = [
            {name: float(cell) if cell else None for name, cell in row.items()}
            for row in csv.DictReader(path.read_text(encoding="utf-8").splitlines())
        ]
        if not rows:
            raise ValueError("it has no rows")
    except FileNotFoundError:
        raise FileError(path, f"missing, the run has lost its curve: {again}") from None
    except (ValueError, TypeError, csv.Error) as error:
        raise FileError(path, f"expected a curve: {error}; {again}") from None
    return rows


# what a run works on


@dataclass(frozen=True, eq=False)
class SplitEpisodes:
    """A class split with its episodes as rows of the data set."""

    number: int
    split: Split
    valid: Episodes = field(repr=False)
    test: Episodes = field(repr=False)

    def training(self, dataset: Dataset, settings: RunSettings, seed: int) -> Episodes:
        """The training episodes of a seed."""
        return _sample(dataset, self.split.train, settings, "train", seed, self.number)


@dataclass(frozen=True, eq=False)
class RunMaterial:
    """Every text as the classifier reads it: those of the pool, then those of the data set as they
    are where only training texts are neutralised, then the counterfactuals of the test queries (El
    Zein 2021, §4.1.2), read through the mitigation of the test, and their neutral versions.

    `swapped` has the row of a text's counterfactual and `neutral` that of its neutral version,
    where there are some; `plain` is the row of the first text as it is. `index` has the number of
    each of these rows among the texts where some are left out.
    """

    dataset: Dataset
    settings: RunSettings
    parts: tuple[SplitEpisodes, ...]
    mitigated: Mitigated
    texts: tuple[str, ...] = field(repr=False)
    plain: int = 0
    swapped: Ints | None = field(default=None, repr=False)
    neutral: Ints | None = field(default=None, repr=False)
    index: Ints | None = field(default=None, repr=False)

    def training(self, part: SplitEpisodes, number: int) -> Episodes:
        """The training episodes of the seed of that number, as rows of the texts."""
        seed = self.settings.training_of(number).seed
        drawn = part.training(self.dataset, self.settings, seed)
        return self._numbered(self.mitigated.rows(drawn, training=True, seed=seed))

    def reduced(self) -> RunMaterial:
        """The same without the texts that no episode has, where the episodes draw less often than
        there are texts.
        """
        settings = self.settings
        drawn = settings.ways * (settings.shots + settings.queries) * settings.episodes.train
        if drawn * settings.splits * settings.seeds >= len(self.texts):
            return self
        versions = (self.swapped, self.neutral)
        episodes = [
            each
            for part in self.parts
            for each in (
                self.validation(part),
                self.test(part),
                *(self.test(part, rows) for rows in versions if rows is not None),
                *(self.training(part, number) for number in range(settings.seeds)),
            )
        ]
        used = np.unique(np.concatenate([np.unique(episode_rows(each)) for each in episodes]))
        index = np.full(len(self.texts), -1)
        index[used] = np.arange(len(used))
        return replace(self, texts=tuple(self.texts[row] for row in used.tolist()), index=index)

    def _numbered(self, episodes: Episodes) -> Episodes:
        """Episodes whose rows are those of `texts`."""
        if self.index is None:
            return episodes
        support, query = (
            self.index[rows].astype(np.int32) for rows in (episodes.support, episodes.query)
        )
        others = episodes.unlabelled
        unlabelled = None if others is None else self.index[others].astype(np.int32)
        return replace(episodes, support=support, query=query, unlabelled=unlabelled)

    def validation(self, part: SplitEpisodes) -> Episodes:
        return self._numbered(self.mitigated.rows(part.valid, validation=True))

    def test(self, part: SplitEpisodes, versions: Ints | None = None) -> Episodes:
        """The test episodes, with every query in another version where `versions` has its row."""
        drawn = part.test
        episodes = self.mitigated.rows(drawn)
        if self.settings.test_mitigation != self.settings.mitigation:
            unlabelled = None if drawn.unlabelled is None else drawn.unlabelled + self.plain
            support = episodes.support if self.settings.in_context else drawn.support + self.plain
            episodes = replace(
                episodes, support=support, query=drawn.query + self.plain, unlabelled=unlabelled
            )
        if versions is not None:
            episodes = replace(episodes, query=versions[drawn.query].astype(np.int32))
        return self._numbered(episodes)


def draw_parts(
    dataset: Dataset,
    settings: RunSettings,
    splits: Sequence[Split] | None = None,
    *,
    shares: Sequence[float] = (0.5, 0.25, 0.25),
    both_leanings: bool = True,
) -> tuple[SplitEpisodes, ...]:
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
        part = SplitEpisodes(number, split, valid, test)
        part.training(dataset, settings, settings.training.seed)
        parts.append(part)
    return tuple(parts)


def prepare(
    dataset: Dataset,
    settings: RunSettings,
    parts: Sequence[SplitEpisodes],
    *,
    workers: int = 1,
    store: FeatureStore | None = None,
) -> RunMaterial:
    """Rewrite the texts for the mitigation, and the test queries to counterfactuals.

    There are none where the gender of no query is known. A store has all of them ready, and a
    counterfactual for every text.
    """
    queries = np.unique(np.concatenate([part.test.query.ravel() for part in parts]))
    known = bool((dataset.genders[queries] >= 0).any())
    swapped: tuple[str, ...] = ()
    neutral: tuple[str, ...] = ()
    tested = settings.test_mitigation
    if store is not None:
        mitigated = store.mitigated(settings.mitigation)
        numbers = queries
        swapped = store.counterfactuals(tested)
        if known and settings.neutral:
            neutral = store.texts("neutral")
    else:
        mitigated = apply(dataset, settings.mitigation, workers=workers)
        numbers = np.arange(len(queries))
        if known:
            texts = [dataset.texts[row] for row in queries]
            swapped = swap_gender(texts, names="fixed", workers=workers)
            swapped = read_as(tested, swapped, workers=workers)
            if settings.neutral:
                neutral = neutralize(texts, workers=workers)
    both = bool(settings.mitigation.rewritten and not tested.rewritten)
    unchanged = dataset.texts if both else ()
    first = len(mitigated.pool) + len(unchanged)

    def rows(before: int) -> Ints:
        """The rows of another version of the queries, behind so many texts."""
        found = np.full(len(dataset), -1)
        found[queries] = before + numbers
        return found

    return RunMaterial(
        dataset,
        settings,
        tuple(parts),
        mitigated,
        (*mitigated.pool.texts, *unchanged, *swapped, *neutral),
        plain=len(mitigated.pool) if both else 0,
        swapped=rows(first) if known else None,
        neutral=rows(first + len(swapped)) if neutral else None,
    )


def _sample(
    dataset: Dataset,
    classes: Sequence[str],
    settings: RunSettings,
    purpose: str,
    seed: int,
    number: int,
) -> Episodes:
    mitigation = settings.support_mitigation if purpose == "test" else settings.mitigation
    try:
        return sample(
            dataset,
            classes,
            ways=settings.ways,
            shots=settings.shots,
            queries=settings.queries,
            episodes=getattr(settings.episodes, purpose),
            calibrated=mitigation.calibrate,
            unlabelled=settings.unlabelled or 0,
            seed=seed,
            purpose=f"{purpose} {number}",
        )
    except InputError as error:
        raise type(error)(f"{PURPOSES[purpose]} classes of split {number}: {error}") from None


# running


@checked
def run(
    dataset: Dataset,
    settings: RunSettings | None = None,
    folder: str | os.PathLike[str] = "fewshot-run",
    *,
    encoder: ModelSource = "mini",
    model: str | Writer | CausalModel | None = None,
    endpoint: EndpointSettings | None = None,
    splits: Sequence[Split] | None = None,
    shares: Sequence[float] = (0.5, 0.25, 0.25),
    both_leanings: bool = True,
    cache: str | os.PathLike[str] | None = None,
    device: str = "auto",
    workers: int = 1,
    restart: bool = False,
    bias: Bias = Bias(),
    prob: float = 0.95,
    about: Mapping[str, Any] | None = None,
    progress: StepProgress | None = None,
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
        A masked or causal model by name or in memory, as for `evenhand.models.load`.
    model : str, CausalModel or Writer, optional
        The causal model of in-context, which has no encoder: by name, in memory, or the address of
        a server that speaks the protocol of OpenAI.
    endpoint : EndpointSettings, optional
        How requests are sent to an address.
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
    bias, prob
        As for `summarise`.
    about : Mapping, optional
        Added to `run.json`.
    progress : callable, optional
        Called with the step, the amount done, the total and a text.
    store : FeatureStore, optional
        The texts and features of this data set, with its own encoder, cache and device.

    Returns
    -------
    FewShotRun
        With its `results`, which `results.json` has too.

    """
    require_models("few-shot classification")
    chosen = settings or RunSettings()
    if store is not None:
        _check_store(store, dataset, chosen)
    if chosen.in_context == (model is None):
        wanted = "a causal model for" if model is None else "none, in-context has one, not"
        raise InputError(f"{parameter('model')}: expected {wanted} {chosen.training.network}")
    parts = draw_parts(dataset, chosen, splits, shares=shares, both_leanings=both_leanings)
    with FewShotFolder.working(folder) as place:
        encoding, writer, learner = _open_learner(
            dataset, chosen, encoder, model, device, endpoint, store
        )
        if encoding is not None:
            check_pooling(chosen.pooling, encoding.subject_kind)
        leaning = dataset.leaning_by
        drawn = to_json([part.split.to_dict() for part in parts], indent=None)
        identity = {
            "settings": chosen.to_dict(),
            "data": dataset.digest,
            "leaning": leaning if isinstance(leaning, str) else dict(leaning),
            **{name: own["fingerprint"] for name, own in learner.items()},
            "splits": blake2b(drawn.encode(), digest_size=16).hexdigest(),
        }
        if restart or not place.holds(identity):
            place.claim(
                identity,
                {
                    "settings": chosen.to_dict(),
                    "data": dataset.to_dict(),
                    **learner,
                    "versions": versions("scikit-learn", "torch", "transformers"),
                    **(about or {}),
                },
            )
        work = _Work(
            place, dataset, chosen, parts, encoding, writer, cache, workers, progress, store
        )
        work.save_episodes()
        saved = [[work.answers(part, n) for n in range(chosen.seeds)] for part in parts]
        baseline = [work.baseline(part) for part in parts]
        finished = _make_run(place, _read_record(place.path), chosen, saved, baseline)
        results = summarise(finished, bias, prob=prob)
        finished = replace(finished, results=results)
        place.save_table(by_class_rows(results.accuracy), BY_CLASS)
        if results.bias is not None:
            place.save_table(association_rows(results.bias), ASSOCIATIONS)
        content = document(command=FewShotFolder.command, **finished.to_dict())
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
    """The associations by class and gender as the rows of a table, then those of the control."""
    controls = (part for control in bias.select("control") for part in control.select("class"))
    return [
        {
            "class": part.query,
            "leaning": part.details["leaning"] or CONTROL,
            "gender": own.query,
            "texts": own.n,
            **_columns("association", own),
            "signed": own.details["signed"],
        }
        for part in (*bias.select("class"), *controls)
        for own in part.select("gender")
    ]


def _columns(name: str, part: Measurement) -> dict[str, float]:
    return {name: part.value, f"{name}_low": part.low, f"{name}_high": part.high}


@dataclass(frozen=True)
class _Work:
    place: FewShotFolder
    dataset: Dataset
    settings: RunSettings
    parts: tuple[SplitEpisodes, ...]
    model: LoadedModel | None
    writer: Writer | None
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

    def answers(self, part: SplitEpisodes, number: int) -> Classifier:
        """The answers of a split and seed: those of an earlier call, or after training."""
        folder = self.place.seed(part.number, self.settings.training_of(number).seed)
        if (folder / ANSWERS).is_file():
            return _read_answers(folder / ANSWERS)
        saved = (
            self._train(part, number, folder)
            if self.writer is None
            else self._prompt(self.writer, part, number, folder)
        )
        if self.settings.mitigation.parity:
            saved = equalize(saved)
        saved.save(folder / ANSWERS)
        return saved

    def baseline(self, part: SplitEpisodes) -> Classifier:
        """The baseline's answers to the test queries of a split."""
        file = self.place.split(part.number) / BASELINE
        if file.is_file():
            return _read_answers(file)
        self._report("counting words", 0, 1)
        if self.store is None:
            answers = predict_baseline(self.dataset, part.test, vectors=self._word_vectors)
        else:
            answers = self.store.baseline(part.test)
        saved = Classifier.of(answers, leaning_codes(self.dataset.leaning))
        saved.save(file)
        return saved

    @cached_property
    def _word_vectors(self) -> NDArray[np.float32]:
        return load_word_vectors(self.dataset, self.cache)

    @cached_property
    def _material(self) -> RunMaterial:
        self._report("rewriting", 0, 1)
        material = prepare(
            self.dataset, self.settings, self.parts, workers=self.workers, store=self.store
        )
        whole = self.settings.in_context or self.store is not None
        return material if whole else material.reduced()

    def _train(self, part: SplitEpisodes, number: int, folder: Path) -> Classifier:
        from evenhand.fewshot.training import choose, evaluate, train

        material, source = self._material, self._source
        settings = self.settings.training_of(number)
        prefix = f"split {part.number}, seed {settings.seed}: "

        def report(step: str, done: int, total: int, text: str) -> None:
            self._report(prefix + step, done, total, text)

        drawn = material.training(part, number), material.validation(part)
        if not self.settings.rates:
            trained = train(settings, source, *drawn, folder, progress=report)
        else:
            searched = {
                rate: train(
                    settings.with_rate(rate),
                    source,
                    *drawn,
                    folder / f"rate-{rate:g}",
                    progress=report,
                )
                for rate in self.settings.rates
            }
            trained = choose(list(searched.values()))
            trained.save(folder)
            tables = {
                CURVE: [asdict(point) for point in trained.points],
                RATES: [
                    {"learning_rate": rate, "validation_accuracy": each.best.validation_accuracy}
                    for rate, each in searched.items()
                ],
            }
            for name, rows in tables.items():
                self.place.save_table(rows, str(folder.relative_to(self.place.path) / name))

        def answer(versions: Ints | None = None) -> NDArray[np.float32]:
            return evaluate(trained, source, material.test(part, versions)).log_probs

        answers = FewShotPredictions.of(answer(), part.test, self.dataset)
        swapped, neutral = (
            None if versions is None else answer(versions)
            for versions in (material.swapped, material.neutral)
        )
        return Classifier.of(answers, leaning_codes(self.dataset.leaning), swapped, neutral)

    def _prompt(self, writer: Writer, part: SplitEpisodes, number: int, folder: Path) -> Classifier:
        """The answers of a causal model; those of each episode are stored as they come."""
        from evenhand.fewshot.in_context import ContextPrompts, answer_queries, draw_orders

        material, settings = self._material, self.settings
        seed = settings.training_of(number).seed
        episodes = material.test(part)
        orders = draw_orders(episodes, seed, part.number)
        others = [rows for rows in (material.swapped, material.neutral) if rows is not None]
        limit = settings.limit or LIMIT
        prompts = ContextPrompts(episodes, material.texts, self.dataset.classes, orders, limit)
        step = f"split {part.number}, order {seed}: prompting"
        log_probs = answer_queries(
            writer,
            prompts,
            [episodes.query, *(versions[part.test.query] for versions in others)],
            settings.label_by,
            folder / PROMPTED,
            lambda done: self._report(step, done, len(episodes)),
        )
        answers = FewShotPredictions.of(log_probs[0], part.test, self.dataset)
        return Classifier.of(answers, leaning_codes(self.dataset.leaning), *log_probs[1:])

    @cached_property
    def _source(self) -> Source:
        """Frozen features, or the encoder that learns."""
        from evenhand.fewshot.encoders import TunedEncoder, encode
        from evenhand.fewshot.training import as_source

        settings, model = self.settings, self.model
        assert model is not None  # noqa: S101
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
                model, self._material.texts, pooling=settings.pooling, limit=settings.limit
            )
        try:
            features = encode(
                model,
                self._material.texts,
                pooling=settings.pooling,
                limit=settings.limit,
                cache=self.cache,
                progress=self.progress,
            )
        except OSError as error:  # the error of a full disk does not name it
            raise OSError(error.errno, error.strerror, error.filename or self.cache) from error
        return as_source(features, model.device)

    def _report(self, step: str, done: int, total: int, text: str = "") -> None:
        if self.progress is not None:
            self.progress(step, done, total, text)


def open_writer(
    model: str | Writer | CausalModel, device: str, endpoint: EndpointSettings | None = None
) -> Writer:
    """A causal model by name or in memory, or behind an address; a writer as it is."""
    from evenhand.models.causal import CausalModel, load
    from evenhand.models.endpoint import Endpoint, EndpointSettings, is_address
    from evenhand.models.local_writer import LocalWriter

    if isinstance(model, str) and is_address(model):
        return Endpoint(model, endpoint or EndpointSettings())
    if isinstance(model, str | CausalModel):
        return LocalWriter(load(model, device=device))
    return model


def _open_learner(
    dataset: Dataset,
    settings: RunSettings,
    encoder: ModelSource,
    model: str | Writer | CausalModel | None,
    device: str,
    endpoint: EndpointSettings | None,
    store: FeatureStore | None,
) -> tuple[LoadedModel | None, Writer | None, dict[str, dict[str, Any]]]:
    """The encoder, or the writer of in-context, and what is recorded of it."""
    from evenhand.fewshot.encoders import check_frozen, load_encoder

    if model is not None:
        writer = open_writer(model, device, endpoint)
        limit = settings.limit or LIMIT
        about = {
            "source": _name_source(model, writer.name),
            "fingerprint": writer.fingerprint,
            "texts_cut": sum(len(text.split()) > limit for text in dataset.texts),
            **writer.about,
        }
        return None, writer, {"model": about}
    loaded = load_encoder(encoder, device=device) if store is None else store.model
    if not settings.finetune:
        check_frozen(loaded)
    _check_network(settings, loaded.dim)
    about = {
        "source": _name_source(encoder if store is None else store.encoder, loaded.name),
        "fingerprint": loaded.fingerprint,
    }
    return loaded, None, {"encoder": about}


def _name_source(source: object, name: str) -> str:
    """How a record names a model: by what was given, or by its name where it was in memory."""
    return public_name(source) if isinstance(source, str | os.PathLike) else name


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
