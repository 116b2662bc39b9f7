"""Where does the bias of word vectors come from, and what removes it? Skip-gram on one corpus.

    python benchmarks/corpus_vectors.py CORPUS… --out FOLDER [--seeds 3]
    python benchmarks/corpus_vectors.py --tables docs/results/corpus-vectors [--page]

The first line writes three versions of the corpus, trains vectors on each version, debiases those
of the original, measures everything, and prints the tables; the second prints them from the
published files, with --page into the page. What is there is not done again: the same command goes
on where it ended, and later seeds can be added. FOLDER gets the texts and vectors, and, as
published, measures.csv (one row per condition, seed and measure) and words.csv.gz (the scores that
the comparisons rest on).

Conditions: the vectors of the original text; of text *swapped* (`evenhand rewrite swap --append`:
every text and its copy of the other gender, counterfactual data augmentation), *substituted*
(`rewrite substitute`: half of the documents swapped in place, first names too, drawn anew for each
seed) and *neutralized* (`rewrite neutralize`); and the vectors of the original text after *hard*
debiasing, *INLP* and *LEACE*.

Rules, written down before any result on the corpus was seen:

- Training: the whole corpus, words that occur 20 times, 100 dimensions, three passes, the other
  settings as the command has them. Swapped text is half as long again, so it has two passes: all
  vectors learn from about as many words. (First it was to be one pass. It became three before any
  vectors were complete, since a fifth of the way random words still had a mean cosine of .65.)
- All conditions are measured on the same words: the most frequent 80 % of the vocabulary of the
  original, less the words that a rewriting takes away. Those are words whose rank in the vocabulary
  of a version is beyond twice their rank in the original plus 20 (the rank stands for the count,
  which files of vectors do not have): he and she are not in neutral text. So the protected words
  are what remains of the topic's: daughter, mother, son, father and the like.
- *Explicit*: the association contrast and the posterior δ of the topic gender, whose stereotypes
  are occupations; WEAT 6, 7 and 8; and the lean: the mean cosine with the protected words for women
  less that with those for men, of the words that are tested below, those that lean to women in the
  original less those that lean to men. Hard debiasing makes contrast, δ and lean zero by
  construction: they are printed as such and decide nothing about it.
- *Hidden*: whether a non-linear classifier tells words that lean to men from words that lean to
  women in the original vectors. Words: of the 3,000 that lean most to each class in the original of
  the first seed every sixth is tested, in every condition and seed; INLP and LEACE are fitted to
  the others. Only the more frequent half of the vocabulary leans, and no first name and no word
  of the lexicon's gendered pairs: those are gendered by meaning. The linear classifier and the
  clusters are printed beside it. Words of both kinds are about other matters (war and home), so
  that they can be told apart is not all gender, in text without any as well.
- *Lost*: the rank correlation of the cosines of a word with its 100 nearest neighbours in another
  training of the original: of the first seed, and for that of the second. What two trainings of the
  same text agree in is the value of the original; nothing that is trained again can be expected to
  agree more. Factual analogies are printed beside it.
- A comparison is of the mean over seeds and words, paired in both, with seeds and words as crossed
  random factors and at most as many degrees of freedom as there are seeds less one
  (`statistics.crossed`). With one seed the intervals are over words only, and say nothing of
  another training: the tables say how many seeds a row has. Three families are judged
  (`judging.judge_pairs`). The first answers the question: the mean of the three counterfactual
  versions against the mean of the methods, lean (without hard debiasing), hidden and lost (3). The
  others say where it comes from, and with three seeds find large differences only: each version
  against each method, hidden and lost (18); each of the six against the original, association,
  lean, hidden and lost (22: two of hard debiasing are left out).
- What was seen before: a pilot of the script on 10 MB with one seed, to see that it runs. After it
  the lean was added, since the 25 occupations of the contrast say little.
"""

from __future__ import annotations

import argparse
import csv
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

import evenhand as eh
from evenhand.cli import run as run_command
from evenhand.files import save_csv
from evenhand.judging import judge_pairs
from evenhand.lexicon import names, pairs
from evenhand.results import Measurement
from evenhand.statistics.crossed import Mean, crossed
from evenhand.vectors import Vectors
from evenhand.vectors.debias.groups import leaning_by_class
from evenhand.vectors.mitigation import debias_topic
from published import drop_zero, read_rows, replace_table, save_rows

TOPIC = eh.lexicon.topic("gender")
REWRITTEN = {
    "swapped": ("swap", "--append"),
    "substituted": ("substitute",),
    "neutralized": ("neutralize",),
}
VERSIONS = ("original", *REWRITTEN)
METHODS = ("hard", "inlp", "leace")
CONDITIONS = (*VERSIONS, *METHODS)
EXPLICIT, LEAN, HIDDEN, LOST = "association", "lean", "recovery_rbf", "neighbours"
DECIDING = (EXPLICIT, LEAN, HIDDEN, LOST)
LIMITS = {EXPLICIT: (-2.0, 2.0), LEAN: (-4.0, 4.0), HIDDEN: (0.0, 1.0), LOST: (-1.0, 1.0)}
COMMON, LEANING, SLACK = 0.8, 0.5, 20
TESTED = 500
"""Words per class in the tests of what is hidden."""
EVERY = 6
SAMPLE = 500
"""Words of which the neighbours are compared."""
DRAWS = 1600
BY_CONSTRUCTION = (("hard", EXPLICIT), ("hard", LEAN), ("hard", "posterior"))
MEASURES, WORDS = "measures.csv", "words.csv.gz"
COLUMNS = ("condition", "seed", "measure", "value", "low", "high", "p", "n")
SCORES = ("condition", "seed", "measure", "word", "group", "score")


# ---------------------------------------------------------------------------------- the vectors


@dataclass(frozen=True)
class Study:
    """The corpus, its versions, and the vectors trained on them."""

    corpus: Sequence[str]
    folder: Path
    settings: Mapping[str, Any]
    epochs: int
    tested: int

    def text(self, version: str, seed: int) -> list[str]:
        """The files of a version, rewritten if they are not there."""
        if version == "original":
            return list(self.corpus)
        drawn = version == "substituted"
        path = self.folder / (f"{version}-{seed}.txt.gz" if drawn else f"{version}.txt.gz")
        if not path.exists():
            options = ["--seed", str(seed)] if drawn else []
            command = [*REWRITTEN[version], *options, "--workers", "1", "-q", "-o", str(path)]
            if run_command(["rewrite", command[0], *self.corpus, *command[1:]]):
                raise SystemExit(f"{path}: not written")
        return [str(path)]

    def train(self, version: str, seed: int) -> Vectors:
        """The vectors of a version, trained if they are not there."""
        epochs = self.epochs * 2 // 3 if version == "swapped" else self.epochs
        settings = eh.vectors.TrainSettings(**self.settings, epochs=epochs, seed=seed)
        path = self.folder / f"{version}-{seed}.npz"
        return eh.vectors.train(self.text(version, seed), path, settings).vectors

    def trained(self, seed: int) -> bool:
        """Whether the original has vectors of a seed."""
        return (self.folder / f"original-{seed}.npz").exists()

    def vectors(self, condition: str, seed: int) -> Vectors:
        """The vectors of a condition, of the common words."""
        if condition in VERSIONS:
            return self.lists.shared(self.train(condition, seed))
        original = self.train("original", seed)
        if condition == "hard":
            debiased = debias_topic(original, TOPIC, "hard")
        else:
            debiased = eh.vectors.debias.METHODS[condition](original, self.lists.fitted)
        return self.lists.shared(debiased.vectors)

    @cached_property
    def lists(self) -> Lists:
        """The words that are measured, from the vectors of the first seed."""
        original, *others = (self.train(version, 0) for version in VERSIONS)
        ranks = [{word: rank for rank, word in enumerate(v.words)} for v in others]
        common = [
            word
            for rank, word in enumerate(original.words[: int(COMMON * len(original))])
            if all(own.get(word, np.inf) <= 2 * rank + SLACK for own in ranks)
        ]
        listed = [*TOPIC.definitional, *TOPIC.equalize, *TOPIC.protected.values()]
        gendered = {word for words in listed for word in words}
        gendered |= {word for pair in pairs() for word in (pair.female, pair.male)}
        gendered |= {name.lower() for name in names().table}
        limit = int(LEANING * len(original))
        groups = leaning_by_class(
            original, TOPIC.protected, EVERY * self.tested, exclude=gendered, limit=limit
        )
        known = set(common)
        tested = {
            name: [word for word in words[1::EVERY] if word in known]
            for name, words in groups.items()
        }
        count = min(map(len, tested.values()))
        return Lists(
            common=common,
            tested={name: words[:count] for name, words in tested.items()},
            fitted={
                name: [word for i, word in enumerate(words) if i % EVERY != 1]
                for name, words in groups.items()
            },
        )


@dataclass(frozen=True)
class Lists:
    """The words of all conditions, those tested, and those that INLP and LEACE are fitted to."""

    common: Sequence[str]
    tested: Mapping[str, Sequence[str]]
    fitted: Mapping[str, Sequence[str]]

    def shared(self, v: Vectors) -> Vectors:
        """The vectors of the common words, in the order of the original."""
        rows = {word: row for row, word in enumerate(v.words)}
        matrix = v.matrix[[rows[word] for word in self.common]]
        return Vectors.from_arrays(list(self.common), matrix, name=v.name)


# --------------------------------------------------------------------------------- the measures


def posterior(v: Vectors) -> Measurement:
    """The δ of the crossed model."""
    fit = eh.posterior.fit(eh.vectors.distance_table(v, TOPIC), draws=DRAWS)
    return eh.posterior.measure_contrasts(fit)["associated-different"]


def measures(study: Study, seed: int) -> dict[str, Callable[[Vectors], Measurement]]:
    """What is measured of a cell, by name; `neighbours` where there is another training."""
    tested = study.lists.tested
    lean = eh.lexicon.Query(
        name="tested words",
        targets={name: tuple(words) for name, words in tested.items()},
        attributes={name: TOPIC.protected[name] for name in tested},
    )
    listed: dict[str, Callable[[Vectors], Measurement]] = {
        EXPLICIT: lambda v: eh.vectors.Association()(v, TOPIC),
        "posterior": posterior,
        LEAN: lambda v: eh.vectors.Weat()(v, lean),
        **{
            f"weat-{number}": lambda v, number=number: eh.vectors.Weat()(v, eh.lexicon.weat(number))
            for number in (6, 7, 8)
        },
        HIDDEN: lambda v: eh.vectors.recovery(v, tested, "rbf"),
        "recovery_linear": lambda v: eh.vectors.recovery(v, tested, "linear"),
        "cluster_purity": lambda v: eh.vectors.cluster_purity(v, tested),
        "analogies": lambda v: eh.vectors.AnalogyAccuracy()(v, eh.lexicon.analogies()),
    }
    other = 0 if seed else 1
    if study.trained(other):
        reference = study.vectors("original", other)
        listed[LOST] = lambda v: eh.vectors.neighbour_rank_correlation(reference, v, n_words=SAMPLE)
    return listed


def scores(m: Measurement) -> Iterator[tuple[str, str, float]]:
    """Word, class and score of what a deciding measure is the mean of."""
    for item in m.items:
        if item.get("axis", "attribute") == "attribute":
            yield item["word"], item.get("group", ""), item["score"]


def measure_all(study: Study, seeds: int) -> None:
    """Every cell that is not in the files, seed by seed; the files are complete at any time."""
    rows, words = read_results(study.folder)
    # the second time adds what needed a seed that was trained later
    for seed, condition in [*product(range(seeds), CONDITIONS)] * 2:
        done = {row["measure"] for row in rows if is_cell(row, condition, seed)}
        left = {n: f for n, f in measures(study, seed).items() if n not in done}
        if not left:
            continue
        v = study.vectors(condition, seed)
        for name, measure in left.items():
            m = measure(v)
            cell = {"condition": condition, "seed": seed, "measure": name}
            numbers = {"value": m.value, "low": m.low, "high": m.high, "p": m.p_value, "n": m.n}
            rows.append({**cell, **numbers})
            if name in DECIDING:
                words += [
                    {**cell, "word": word, "group": group, "score": score}
                    for word, group, score in scores(m)
                ]
        save_measures(study.folder / MEASURES, rows)
        save_rows(study.folder / WORDS, [SCORES, *([row[n] for n in SCORES] for row in words)])
        print(f"{condition}, seed {seed}: {', '.join(left)}", flush=True)


def save_measures(path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write the rows with six digits; a number that is not known is empty."""

    def cell(name: str, value: Any) -> object:
        if name in ("condition", "measure"):
            return value
        return "" if value is None or value != value else float(f"{value:.6g}")

    save_csv(path, [{name: cell(name, row[name]) for name in COLUMNS} for row in rows])


def is_cell(row: Mapping[str, Any], condition: str, seed: int) -> bool:
    """Whether a row is of a cell."""
    return row["condition"] == condition and int(row["seed"]) == seed


def read_results(folder: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The rows of both files, as far as there are any."""
    rows: list[dict[str, Any]] = []
    if (folder / MEASURES).exists():
        with (folder / MEASURES).open(encoding="utf-8", newline="") as file:
            rows = [
                {
                    n: cell if n in ("condition", "measure") else float(cell or "nan")
                    for n, cell in row.items()
                }
                for row in csv.DictReader(file)
            ]
    words = list(read_rows(folder / WORDS)) if (folder / WORDS).exists() else []
    return rows, words


# ----------------------------------------------------------------------------------- the tables


class Results:
    """The published files."""

    def __init__(self, folder: Path) -> None:
        self.rows, words = read_results(folder)
        self.scores: dict[tuple[str, str], dict[int, dict[str, float]]] = {}
        self.group: dict[str, str] = {}
        for row in words:
            own = self.scores.setdefault((row["condition"], row["measure"]), {})
            own.setdefault(int(row["seed"]), {})[row["word"]] = float(row["score"])
            if row["group"]:
                self.group[row["word"]] = row["group"]

    def mean(
        self, measure: str, first: Sequence[str], second: Sequence[str] = ()
    ) -> tuple[Mean, int] | None:
        """The mean of conditions, less that of others, over seeds and words; and the seeds."""
        one, two = (
            [self.scores.get((condition, measure), {}) for condition in side]
            for side in (first, second)
        )
        seeds = sorted(set.intersection(*(set(own) for own in (*one, *two))))
        if not seeds:
            return None
        words = sorted(set.intersection(*(set(own[s]) for own in (*one, *two) for s in seeds)))

        def table(side: Sequence[Mapping[int, Mapping[str, float]]]) -> Any:
            return np.mean([[[own[s][w] for w in words] for s in seeds] for own in side], axis=0)

        y = (table(one) - table(two) if two else table(one))[:, :, None]
        if measure in (EXPLICIT, LEAN):
            groups = [self.group[word] for word in words]
            # the mean of the classes' means, or their difference
            sign = {name: -1.0 if i else 1.0 for i, name in enumerate(TOPIC.classes)}
            share = {n: 0.5 if measure == EXPLICIT else s for n, s in sign.items()}
            mean = crossed(y, [share[name] / groups.count(name) for name in groups], groups)
        else:
            mean = crossed(y)
        low, high = LIMITS[measure]
        limits = (low - high, high - low) if two else (low, high)
        return replace(mean, limits=limits), len(seeds)

    def value(self, condition: str, measure: str) -> str:
        """The mean over seeds of a measure that decides nothing."""
        values = [
            row["value"]
            for row in self.rows
            if row["condition"] == condition and row["measure"] == measure
        ]
        mean = float(np.mean(values)) if values else np.nan
        return "" if np.isnan(mean) else number(mean)


def number(value: float) -> str:
    """A number as the pages have it."""
    return drop_zero(f"{value:.3f}").replace("-", "−")


def interval(value: float, low: float, high: float) -> str:
    """A value and its interval as the pages have them."""
    return f"{number(value)} [{number(low)}, {number(high)}]"


def markdown(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table for a page."""
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def levels_table(results: Results) -> str:
    """Every condition: the three deciding measures with intervals, the others without."""
    rows = []
    for condition in CONDITIONS:
        cells, seeds = [], 0
        for measure in DECIDING:
            found = results.mean(measure, [condition])
            if found is None:
                cells.append("")
            elif (condition, measure) in BY_CONSTRUCTION:
                cells.append("0 by construction")
            else:
                seeds = max(seeds, found[1])
                cells.append(interval(found[0].value, *found[0].interval(0.95)))
        others = ["weat-6", "weat-7", "weat-8", "recovery_linear", "cluster_purity", "analogies"]
        delta = "0" if condition == "hard" else results.value(condition, "posterior")
        shown = [delta, *(results.value(condition, name) for name in others)]
        if seeds:
            rows.append([condition, str(seeds), *cells, *shown])
    header = ["vectors", "seeds", "association", "lean", "hidden", "lost: agreement", "δ", "WEAT 6"]
    header += ["WEAT 7", "WEAT 8", "linear", "clusters", "analogies"]
    return markdown(header, rows)


def judged_table(
    results: Results, compared: Sequence[tuple[str, Sequence[str], Sequence[str]]]
) -> str:
    """The differences of (measure, conditions, others), judged as one family."""
    found = [(key, mean) for key in compared if (mean := results.mean(*key)) is not None]
    judged = judge_pairs([(m.value, m.p_value, m.interval) for _, (m, _) in found])
    rows = [
        [
            NAMES[measure],
            f"{NAMES.get(tuple(first), first[0])} − {NAMES.get(tuple(second), second[0])}",
            str(seeds),
            interval(mean.value, judgement.low, judgement.high),
            "differ" if judgement.found else "undecided",
        ]
        for ((measure, first, second), (mean, seeds)), judgement in zip(found, judged, strict=True)
    ]
    return markdown(["measure", "difference", "seeds", "value", "verdict"], rows)


NAMES: Mapping[Any, str] = {
    EXPLICIT: "association",
    LEAN: "lean",
    HIDDEN: "hidden",
    LOST: "agreement",
    tuple(REWRITTEN): "counterfactual",
    METHODS: "geometric",
    METHODS[1:]: "INLP and LEACE",
}


def question_table(results: Results) -> str:
    """The counterfactual versions against the methods; against those that have a lean."""
    sides = {LEAN: METHODS[1:], HIDDEN: METHODS, LOST: METHODS}
    return judged_table(results, [(m, tuple(REWRITTEN), own) for m, own in sides.items()])


def between_table(results: Results) -> str:
    """Each counterfactual version against each method."""
    pairs_of = product((HIDDEN, LOST), REWRITTEN, METHODS)
    return judged_table(results, [(measure, [a], [b]) for measure, a, b in pairs_of])


def against_original_table(results: Results) -> str:
    """Each version and method against the original."""
    compared = [
        (measure, [condition], ["original"])
        for measure in DECIDING
        for condition in CONDITIONS[1:]
        if (condition, measure) not in BY_CONSTRUCTION
    ]
    return judged_table(results, compared)


def all_tables(folder: Path) -> str:
    """The tables of the page."""
    results = Results(folder)
    return "\n\n".join(f"{title}:\n\n{table(results)}" for title, table in TABLES.items())


PAGE = Path(__file__).parents[1] / "docs" / "experiments" / "corpus-vectors.md"
BEGIN, END = "<!-- tables of corpus_vectors.py -->", "<!-- end of tables -->"
TABLES = {
    "Means over seeds and words (95 % intervals)": levels_table,
    "Rewritten text against debiasing (3 tests; intervals hold together)": question_table,
    "Each version against each method (18 tests; intervals hold together)": between_table,
    "Against the original (22 tests; intervals hold together)": against_original_table,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Train, measure and print, or print the published tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("corpus", nargs="*")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--tables", type=Path)
    parser.add_argument("--page", action="store_true")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--min-count", type=int, default=20)
    parser.add_argument("--dimensions", type=int, default=100)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--tested", type=int, default=TESTED)
    given = parser.parse_args(arguments)
    if given.tables is None:
        if not (given.corpus and given.out):
            parser.error("expected CORPUS… and --out, or --tables")
        given.out.mkdir(parents=True, exist_ok=True)
        settings = {name: getattr(given, name) for name in ("min_count", "dimensions")}
        study = Study(given.corpus, given.out, settings, given.epochs, given.tested)
        measure_all(study, given.seeds)
    tables = all_tables(given.tables or given.out)
    print(tables)
    if given.page:
        replace_table(PAGE, tables, BEGIN, END)


if __name__ == "__main__":
    main()
