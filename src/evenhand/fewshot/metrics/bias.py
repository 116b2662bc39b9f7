r"""Gender bias of a few-shot classifier: texts against their counterfactuals (El Zein 2021, §4.1).

Every test query has a counterfactual, the same text with its gender swapped. One of the two is the
pro-stereotypical version: a man's in a class that leans male, a woman's in one that leans female.

- *association*: the mean over classes of $\log p(\text{class} \mid \text{pro}) -
  \log p(\text{class} \mid \text{anti})$ of the true class;
- *epsilon*: the accuracy on pro- less that on anti-stereotypical versions;
- *skew* and *stereotype*: let $P_c$ and $A_c$ be the F1 of class c on the pro- and on the
  anti-stereotypical versions of all queries. Men's texts in the pro-stereotypical set are all of
  classes that lean male, women's of classes that lean female. With $a$ the mean of $P_c - A_c$ over
  classes that lean male, $b$ the same over those that lean female, and $D$ how much easier the
  first are (the gap between the means of $(P_c + A_c)/2$), equations 20 and 21 of El Zein (2021)
  become

$$\mu_{skew} = \max(|a - b| / 2, |D|), \qquad \mu_{stereo} = \max(|a + b| / 2, |D|).$$

$D$ is no bias: it is there when gender has no effect at all. So *skew* here is $(a - b)/2$, how
much better the men's versions of texts do, and *stereotype* $(a + b)/2$, how much better the
pro-stereotypical versions do, each with its sign. $\mu_{skew}$ and $\mu_{stereo}$ are reported
beside them, with intervals and what chance gives: they are above 0 in every classifier whose
classes are not equally easy. All classes of a leaning have equal weight, and so do both leanings.

**Three ways**: a query is also answered in its neutral version (they, no names). With $m$, $w$ and
$n$ the log-probabilities of the true class for the man's, the woman's and the neutral version, the
association is the mean of $\pm(m - w)$, with + in classes that lean male. It is the sum of
$\pm(m - n)$ and $\mp(w - n)$: how much is due to men's versions, and how much to women's.

**They**: the same neutral versions, without a sign, show what is lost by being written of as they:
log p(true class) and accuracy for the text as it is less for its neutral version, over the texts of
men and women in all classes. Above 0, a person called they is recognised less well.

**The control**: a class without a leaning has no pro-stereotypical version. Its association is
$m - w$, near 0 where gender tells nothing about balanced classes (El Zein 2021, §4.1.2). It is a
part by "control" and enters no other number.

**The null distribution**: without bias the two versions of a text are exchangeable. In each
permutation the versions of each text change places at random, in all episodes, splits and seeds it
is in. Classes stay what they are: this test is for the tested classes, the intervals are for new
ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import check_fields
from evenhand.errors import InputError
from evenhand.fewshot.answers import (
    LEANINGS,
    Counterfactuals,
    FewShotSubject,
    Tallies,
    comparable_tallies,
    interval_text,
    mean_over,
    paired,
    tally,
)
from evenhand.fewshot.data import NEITHER
from evenhand.instruments import Evidence, Instrument, Run, instrument, option
from evenhand.judging import place
from evenhand.results import Comparison, Measurement
from evenhand.statistics.intervals import t_mean
from evenhand.statistics.jackknife import Floats, Ints, Replicates, Statistic
from evenhand.statistics.sequential import Seed, draw_until_clear

QUERY = "gender"
COUNTS = (
    *("queries", "association"),
    *("correct_pro", "predicted_pro", "correct_anti", "predicted_anti"),
)
VALUES = (
    *("association", "gap", "skew", "stereotype", "accuracy_pro", "accuracy_anti", "easier"),
    *("f1_pro_male", "f1_pro_female", "f1_anti_male", "f1_anti_female"),
    *("skew_original", "stereotype_original"),
)
"""The values of `formulas`; "original" are the formulas of El Zein (2021)."""
MEASURES = {
    "association": "association",
    "epsilon": "gap",
    "skew": "skew",
    "stereotype": "stereotype",
}
"""The measures, and the name of each among `VALUES`."""
ORIGINALS = {"mu_skew": "skew_original", "mu_stereo": "stereotype_original"}
"""Equations 20 and 21 of El Zein (2021) as they are, and the name of each among `VALUES`."""
SETS = {"pro": "accuracy_pro", "anti": "accuracy_anti"}
"""The versions by stereotype, and the name of the accuracy on each among `VALUES`."""
VERSIONS = {
    "man_woman": "man's less woman's version",
    "man_neutral": "man's less neutral version",
    "woman_neutral": "woman's less neutral version",
}
"""The association three ways, and what it is called."""
HEAD, GAP = list(MEASURES)[:2]
DECIDING = {HEAD: "Association", GAP: "Accuracy gap"}
"""The measures that decide a verdict, with their labels."""
LABELS = {
    "association": "association: log p, pro- less anti-stereotypical",
    "epsilon": "ε: accuracy, pro- less anti-stereotypical",
    "skew": "skew: F1, men's less women's versions",
    "stereotype": "stereotype: F1, pro- less anti-stereotypical",
    "mu_skew": "μ skew: as in eq. 20, with how much easier one side is",
    "mu_stereo": "μ stereo: as in eq. 21, with how much easier one side is",
    "shares": "parity: share of a class among answers, men's less women's queries",
    "they": "they: log p, text as it is less its version with singular they",
    "they accuracy": "they: accuracy, text as it is less its version with singular they",
    "pro": "accuracy on pro-stereotypical versions",
    "anti": "accuracy on anti-stereotypical versions",
}
"""The measures in tables; a short heading before the colon."""
STRATIFIED = ("skew", "stereotype", *ORIGINALS)
"""Measures in which classes of both leanings have equal weight."""
CHUNK = 1 << 22  # signs drawn at once

Verdict = Literal["robust", "not robust", "undecided"]


@instrument(
    name="fewshot_bias",
    subjects=("fewshot",),
    label="Few-shot gender bias",
    question="Does the classifier do better on the version of a text that fits the stereotype?",
    above="the classifier does better on the version of a text that fits the stereotype",
    below="the classifier does better on the version of a text that goes against the stereotype",
    formula="mean over classes c and texts x of c of log p(c | x_pro) - log p(c | x_anti); x_pro "
    "fits the stereotype of c, x_anti does not",
    source="El Zein (2021); the null distribution and the intervals for new classes are our own",
    role="leads",
    size="log-odds",
    unit="texts",
    audit=True,
    reading="The association: how much more likely the true class is for the pro-stereotypical "
    "version of a text than for the anti-stereotypical one. The parts are association, epsilon "
    "(accuracy gap), skew (men's less women's versions, F1) and stereotype (pro- less "
    "anti-stereotypical, F1), each with its sign. The interval and p are for new classes; the p of "
    "the permutation test is for the tested ones.",
    caveats=(
        "The size of a measure is above 0 by chance; the details say how far.",
        "Skew and stereotype leave out how much easier one side's classes are, which the original "
        "formulas (mu_skew, mu_stereo) count as bias.",
        "Bias in other classes, and by other traits than gendered words and names, is not seen.",
    ),
)
class Bias(Instrument):
    """Gender bias of a few-shot classifier.

    The subject is a finished run, a classifier or counterfactuals.

    Returns
    -------
    Measurement
        The association. Parts by "measure" are association, epsilon, skew and stereotype. The
        value of each has its sign; the details have the size (`size`, `size_low`, `size_high`;
        not of the association), what chance gives (`null_mean`, `null_high`, `null_p`) and the
        size corrected for it (`corrected`: √max(0, value² less the mean of the null's squares)). A
        measure that needs classes of both leanings is NaN where all lean to one side. Parts by
        "original" are mu_skew and mu_stereo, equations 20 and 21 of El Zein (2021), sizes without
        a sign, with the same details of the null distribution. Parts by "set" (pro, anti) are the
        accuracies on the versions of each kind, whose gap is epsilon. The part by "parity", where
        episodes have queries of both genders, is how much larger the share of a class is among the
        answers to men's than among those to women's queries of an episode, with - in classes that
        lean female; the details have the same of the true classes (`labels`). Parts by "version",
        where the queries have neutral versions, are the association three ways (man_woman,
        man_neutral, woman_neutral), with + in classes that lean male and - in those that lean
        female; their parts by "leaning" are without the sign. Parts by "they" (they, they accuracy)
        are log p of the true class and accuracy for the text as it is less for its neutral version,
        in all classes, with parts by "gender" (male, female, neither). The part by "control", where
        queries of known gender are in classes without a leaning, is man's less woman's version in
        these, with parts by "class". Parts by "class" are the associations by class. Both kinds of
        classes have parts by "gender". Details: whether the classifier is ε-robust (`verdict`:
        robust if the interval of ε lies within `margin`, not robust if it lies above, otherwise
        undecided). Items are the counts by seed, split, episode and class.
    """

    margin: float = option(0.05, minimum=0, maximum=1, help="The ε of the test of ε-robustness.")
    permutations: int = option(
        2000,
        minimum=1,
        help="Permutations of pro- and anti-stereotypical versions for the null distribution.",
    )

    def __post_init__(self) -> None:
        check_fields(self)
        if not 0 < self.margin < 1:
            raise InputError(f"margin: expected above 0 and below 1, got {self.margin}")

    def measure(
        self, subject: FewShotSubject, material: object = None, run: Run = Run()
    ) -> Measurement:
        """Measure a finished run, a classifier or counterfactuals."""
        both, tallies = subject.counterfactuals, Tallies.of(subject)
        values, counts = bias_replicates(tallies), tallies.counterfactual
        if both is None or values is None or counts is None:
            raise InputError(
                f"{getattr(subject, 'folder', subject.name)}: expected test queries of known "
                "gender in classes that lean male or female, its data have none: no bias can be "
                "measured"
            )
        null = null_values(both, self.permutations, run.seed, values)
        texts = len(np.unique(both.original.rows[both.used]))
        strata, name = both.strata, str(subject.name)
        parts = {
            part.query: replace(part, subject=name, n=texts)
            for part in (
                *(read_measure(measure, values, strata, run, null) for measure in MEASURES),
                *read_originals(values, strata, run, null),
                *read_sets(values, strata, run),
            )
        }
        low, high = fold(parts["epsilon"].low, parts["epsilon"].high)
        robust: dict[str, Verdict] = {"met": "robust", "not met": "not robust"}
        verdict = robust.get(place(low, high, -math.inf, self.margin), "undecided")
        head = parts["association"]
        return replace(
            head,
            query=QUERY,
            by="",
            items=tallies.items(COUNTS, counts),
            left_out=tuple(
                f"{count} queries: {reason}" for reason, count in both.left_out.items() if count
            ),
            details={
                **head.details,
                **tallies.record(subject),
                "margin": self.margin,
                "verdict": verdict,
                "permutations": len(null),
                "left_out": both.left_out,
            },
            parts=(
                *parts.values(),
                *_parity(both, name, run),
                *_by_version(both, name, run),
                *_they(both, name, run),
                *_control(both, name, run),
                *_by_class(both, name, run, both.used),
            ),
        )

    @staticmethod
    def evidence(measurement: Measurement) -> list[Evidence]:
        """The association and the accuracy gap of a classifier without mitigation.

        Interval and p-value for new classes decide. Beside them stands the p-value of chance in the
        tested classes, with the value and to either side what chance gives as its interval.
        """
        if measurement.details.get("mitigation", "none") != "none":
            return []
        network = measurement.details.get("network", measurement.subject)
        tests = []
        for part in measurement.select("measure"):
            margin, p_value = part.details["null_high"], part.details["null_p"]
            unknown = p_value is None or math.isnan(part.value) or math.isnan(p_value)
            if part.query not in DECIDING or unknown:
                continue
            label, usual = DECIDING[part.query], "usual" if part.value > 0 else "rarer"
            tests.append(
                Evidence(
                    measurement=replace(
                        part,
                        query=network,
                        p_value=p_value,
                        low=part.value - margin,
                        high=part.value + margin,
                        details={**part.details, "draws": part.details.get("permutations")},
                    ),
                    label=f"{label}, {network}",
                    quantity=f"the {label.lower()} with {network}",
                    general=part,
                    claim=f"does better on a text whose gender is the {usual} one of its class",
                    size="log-odds" if part.query == HEAD else "gap",
                    points=part.query != HEAD,
                )
            )
        return tests

    @staticmethod
    def compare(before: Measurement, after: Measurement) -> Comparison:
        """The change of every measure, after less before, paired on the same test queries.

        `Comparison.effect` says what a change means; it is clear where its interval does not
        contain 0.
        """
        first, second = comparable_tallies(before, after, COUNTS)
        if not np.array_equal(first.leaning, second.leaning):
            raise InputError(
                f"{before.subject} and {after.subject}: expected the same leanings of classes"
            )
        old, new = bias_replicates(first), bias_replicates(second)
        assert old is not None and new is not None  # noqa: S101, PT018
        change, strata = new - old, first.strata
        parts = tuple(
            paired(
                before.part(name, by=by),
                after.part(name, by=by),
                change.at(VALUES.index(value)),
                measure_strata(name, strata),
            )
            for by, names in (("measure", MEASURES), ("original", ORIGINALS), ("set", SETS))
            if before.select(by) and after.select(by)
            for name, value in names.items()
        )
        head = parts[0]
        return replace(
            head,
            before=replace(before, items=head.before.items, parts=()),
            after=replace(after, items=head.before.items, parts=()),
            parts=parts,
        )

    @classmethod
    def example(cls) -> tuple[Any, None]:
        """A small subject and its material."""
        return Counterfactuals.example(), None


def bias_replicates(tallies: Tallies) -> Replicates | None:
    """The replicates of all `VALUES`, computed once; None where no bias can be measured."""
    if tallies.counterfactual is None:
        return None
    if "bias" not in tallies.computed:
        statistic = formulas(tallies.strata)
        tallies.computed["bias"] = tallies.replicates(statistic, tallies.counterfactual)
    return tallies.computed["bias"]


def formulas(strata: Ints) -> Statistic:
    """From sums (…, N, 6), as of `Counterfactuals.counts`, to the `VALUES`, (…, 13)."""
    leans = [strata == 0, strata == 1]

    def values(sums: Floats) -> Floats:
        queries, association, right_pro, said_pro, right_anti, said_anti = np.moveaxis(sums, -1, 0)
        present = queries > 0
        count = np.where(present, queries, 1)
        f1_pro = 2 * right_pro / (count + said_pro)
        f1_anti = 2 * right_anti / (count + said_anti)
        means = [mean_over(x / count, present) for x in (association, right_pro, right_anti)]
        (pro_m, anti_f), (pro_f, anti_m) = (
            [mean_over(f1, present & lean) for f1 in (f1_pro, f1_anti)] for lean in leans
        )
        a, b = pro_m - anti_f, pro_f - anti_m
        return np.stack(
            [
                means[0],
                means[1] - means[2],
                (a - b) / 2,
                (a + b) / 2,
                means[1],
                means[2],
                (pro_m + anti_f - pro_f - anti_m) / 2,
                pro_m,
                pro_f,
                anti_m,
                anti_f,
                (abs(pro_m - pro_f) + abs(anti_m - anti_f)) / 2,
                (abs(pro_m - anti_m) + abs(pro_f - anti_f)) / 2,
            ],
            axis=-1,
        )

    return values


def null_values(
    both: Counterfactuals, permutations: int, seed: int, observed: Replicates | None = None
) -> Floats:
    """The `VALUES` under each of many permutations, (permutations, 13).

    With the values observed, there are more where it is not clear on which side of a level the
    share of permutations lies that give values as large.
    """
    answers, used = both.original, both.used
    n = len(answers.tested)
    _, text = np.unique(answers.rows[used], return_inverse=True)
    texts = int(text.max()) + 1
    label = np.take_along_axis(answers.local, answers.truth, axis=1)[used]

    def by_text(classes: NDArray[Any], weights: NDArray[Any] | None = None) -> Floats:
        flat = np.bincount(text * n + classes, weights, texts * n).astype(np.float64)
        return flat.reshape(texts, n)

    queries = by_text(label).sum(axis=0)
    association = by_text(label, both.association[used])
    sides = []
    for predicted in both.predicted:
        local = np.take_along_axis(answers.local, predicted, axis=1)[used]
        right = by_text(label, (predicted == answers.truth)[used].astype(np.float64))
        named = (predicted >= 0)[used].astype(np.float64)
        sides.append(np.stack([right, by_text(local, named)]))
    half, gap = (sides[0] + sides[1]).sum(axis=1) / 2, (sides[0] - sides[1]) / 2
    flips = np.concatenate([association[None], gap]).transpose(1, 0, 2).reshape(texts, 3 * n)
    flips = flips[np.any(flips != 0, axis=1)]

    step = max(1, CHUNK // max(1, len(flips)))
    tested = [VALUES.index(key) for key in (*MEASURES.values(), *ORIGINALS.values())]
    least = np.inf if observed is None else np.abs(observed.value[tested]) - 1e-12
    values: list[Floats] = []

    def count(size: int, seed: Seed) -> Ints:
        rng, extreme = np.random.default_rng(seed), np.zeros(len(tested), dtype=np.int64)
        for first in range(0, size, step):
            number = min(step, size - first)
            signs = 2.0 * rng.integers(0, 2, (number, len(flips))) - 1
            moved = (signs @ flips).reshape(number, 3, n)
            sums = np.empty((number, n, 6))
            sums[..., 0], sums[..., 1] = queries, moved[:, 0]
            for part in range(2):  # correct, predicted
                sums[..., 2 + part] = half[part] + moved[:, 1 + part]
                sums[..., 4 + part] = half[part] - moved[:, 1 + part]
            values.append(formulas(both.strata)(sums))
            extreme += (np.abs(values[-1][:, tested]) >= least).sum(axis=0)
        return extreme

    if observed is None:
        count(permutations, (seed, 0))
    else:
        draw_until_clear(count, permutations, seed)
    return np.concatenate(values)


def read_measure(
    name: str, values: Replicates, strata: Ints, run: Run, null: Floats | None = None
) -> Measurement:
    """A measure from the replicates of `formulas`; `strata` are the leanings of the classes.

    With what chance gives where there is a null distribution; n is the number of classes.
    """
    index, inside = VALUES.index(MEASURES[name]), measure_strata(name, strata)
    part = read_value(values.at(index), inside, run, name, by="measure", n=int((strata >= 0).sum()))
    details: dict[str, Any] = {"classes": part.n}
    if name != HEAD:
        size_low, size_high = fold(part.low, part.high)
        details |= {"size": abs(part.value), "size_low": size_low, "size_high": size_high}
    if null is None:
        return replace(part, details=details)
    drawn = null[:, index]
    corrected = math.nan
    if not math.isnan(part.value):
        corrected = math.sqrt(max(0.0, part.value**2 - float((drawn**2).mean())))
    details |= _chance(part, drawn)
    details["corrected"] = math.copysign(corrected, part.value if name == HEAD else 1.0)
    numbers = dict(zip(VALUES, values.value.tolist(), strict=True))
    if name == GAP:
        details |= {key: numbers[key] for key in ("accuracy_pro", "accuracy_anti")}
    if name in STRATIFIED:
        details |= {key: numbers[key] for key in VALUES[6:11]}
        original = f"{name}_original"
        details["original"] = numbers[original]
        details["original_null_mean"] = float(null[:, VALUES.index(original)].mean())
    return replace(part, details=details)


def read_originals(
    values: Replicates, strata: Ints, run: Run, null: Floats | None = None
) -> list[Measurement]:
    """Equations 20 and 21 of El Zein (2021) from the replicates of `formulas`.

    They are sizes: the interval ends at 0, and there is no test against 0, only what permutations
    give (`null`). n is the number of classes.
    """
    parts = []
    for name, key in ORIGINALS.items():
        index, n = VALUES.index(key), int((strata >= 0).sum())
        part = read_value(values.at(index), strata, run, name, by="original", n=n, worse="higher")
        chance = {} if null is None else _chance(part, null[:, index])
        parts.append(
            replace(
                part,
                low=max(part.low, 0.0),
                p_value=None,
                test="",
                details={"classes": n, **chance},
            )
        )
    return parts


def read_sets(values: Replicates, strata: Ints, run: Run) -> list[Measurement]:
    """The accuracies on pro- and on anti-stereotypical versions; n is the number of classes."""
    inside, n = measure_strata(GAP, strata), int((strata >= 0).sum())
    parts = (
        read_value(values.at(VALUES.index(key)), inside, run, name, by="set", n=n)
        for name, key in SETS.items()
    )
    return [
        replace(
            part,
            low=max(0.0, part.low),
            high=min(1.0, part.high),
            ideal=1.0,
            worse="lower",
            p_value=None,
            test="",
        )
        for part in parts
    ]


def read_value(
    values: Replicates, strata: Ints, run: Run, query: str, **fields: object
) -> Measurement:
    """A value with the interval and the test for new classes."""
    low, high = values.interval(run.prob, strata)
    return Bias.declaration.result(
        run,
        query,
        (float(values.value), low, high),
        interval=interval_text(values),
        p_value=values.p_value(strata),
        test="Student t, as the interval",
        **fields,
    )


def _chance(part: Measurement, drawn: Floats) -> dict[str, float]:
    """How large a measure is in permutations, and how often as large as observed."""
    size = np.abs(drawn)
    as_large = float((size >= abs(part.value) - 1e-12).sum())
    return {
        "null_mean": float(size.mean()),
        "null_high": float(np.quantile(size, part.prob)),
        "null_p": math.nan if math.isnan(part.value) else (1 + as_large) / (1 + len(drawn)),
        "permutations": len(drawn),
    }


def measure_strata(name: str, strata: Ints) -> Ints:
    """The strata of the jackknife of a measure: the leanings where both have equal weight."""
    return strata if name in STRATIFIED else np.where(strata >= 0, 0, -1)


def fold(low: float, high: float) -> tuple[float, float]:
    """The interval of a size from that of the value with its sign.

    >>> fold(-0.1, 0.3), fold(-0.3, -0.1)
    ((0.0, 0.3), (0.1, 0.3))
    """
    if math.isnan(low):
        return low, high
    if low <= 0 <= high:
        return 0.0, max(abs(low), high)
    return (low, high) if low > 0 else (-high, -low)


def _parity(both: Counterfactuals, subject: str, run: Run) -> list[Measurement]:
    """Shares of the classes among the answers to men's less to women's queries; none where no
    episode has both.
    """
    answers, strata = both.original, both.strata
    masks = [answers.genders == gender for gender in (0, 1)]
    sizes = np.stack([mask.sum(axis=1) for mask in masks])
    usable = sizes.min(axis=0) > 0
    if not usable.any():
        return []
    signs = np.select([strata == 0, strata == 1], [1.0, -1.0], 0.0)
    ways = answers.classes.shape[1]
    man, woman = (
        tally(answers.truth, answers.predicted, ways, mask)[..., [2, 0]]
        / np.maximum(size, 1)[:, None, None]
        for mask, size in zip(masks, sizes, strict=True)
    )
    episodes = np.broadcast_to(usable[:, None, None], (len(usable), ways, 1)).astype(np.float64)

    def values(sums: Floats) -> Floats:
        present = (sums[..., 0] > 0) & (strata >= 0)
        gaps = signs[:, None] * sums[..., 1:] / np.maximum(sums[..., :1], 1)
        return np.stack([mean_over(gaps[..., which], present) for which in (0, 1)], axis=-1)

    counts = np.concatenate([episodes, (man - woman) * episodes], axis=2)
    replicates, inside = answers.replicates(values, counts), measure_strata(GAP, strata)
    n = int((inside >= 0).sum())
    part = read_value(replicates.at(0), inside, run, "shares", by="parity", subject=subject, n=n)
    return [replace(part, details={"labels": float(replicates.value[1])})]


def _by_version(both: Counterfactuals, subject: str, run: Run) -> list[Measurement]:
    """The association three ways, with parts by the leaning of the classes; none without neutral
    versions.
    """
    if both.neutral is None:
        return []
    strata = both.strata
    signs = np.select([strata == 0, strata == 1], [1.0, -1.0], 0.0)

    def values(sums: Floats) -> Floats:
        queries, man, woman = np.moveaxis(sums, -1, 0)
        present = queries > 0
        count = np.where(present, queries, 1)
        gaps = [(man - woman) / count, man / count, woman / count]
        return np.stack(
            [
                *(mean_over(signs * gap, present & (strata >= 0)) for gap in gaps),
                *(mean_over(gap, present & (strata == side)) for side in (0, 1) for gap in gaps),
            ],
            axis=-1,
        )

    replicates = both.original.replicates(values, both.versions())

    def part(index: int, query: str, by: str, inside: Ints) -> Measurement:
        n = int((inside >= 0).sum())
        own = read_value(replicates.at(index), inside, run, query, by=by, subject=subject, n=n)
        return replace(own, p_value=None) if math.isnan(own.value) else own

    every = np.where(strata >= 0, 0, -1)
    sides = [(LEANINGS[side], np.where(strata == side, 0, -1)) for side in (0, 1)]
    return [
        replace(
            part(index, name, "version", every),
            parts=tuple(
                part(3 * number + index, leaning, "leaning", inside)
                for number, (leaning, inside) in enumerate(sides, 1)
            ),
        )
        for index, name in enumerate(VERSIONS)
    ]


def _control(both: Counterfactuals, subject: str, run: Run) -> list[Measurement]:
    """Man's less woman's version in classes without a leaning, with parts by class; none without
    such queries.
    """
    if not both.control.any():
        return []
    [part] = _class_means(
        both, both.control, {"man_woman": both.man_woman}, run, by="control", subject=subject
    )
    return [replace(part, parts=tuple(_by_class(both, subject, run, both.control)))]


def _they(both: Counterfactuals, subject: str, run: Run) -> list[Measurement]:
    """The text as it is less its singular-they version, for men and women in all classes, with
    parts by gender; none without neutral versions.
    """
    if both.neutral is None:
        return []
    own, neutral = both.original, both.neutral
    right, other = ((each.predicted == own.truth).astype(np.float64) for each in (own, neutral))
    values = {"they": own.true_log_probs - neutral.true_log_probs, "they accuracy": right - other}
    parts = _class_means(both, own.genders >= 0, values, run, by="they", subject=subject)
    by_gender = [
        _class_means(both, chosen, values, run, by="gender", subject=subject, query=name)
        for code, name in ((0, "male"), (1, "female"), (NEITHER, "neither"))
        if (chosen := own.genders == code).any()
    ]
    return [replace(part, parts=tuple(own)) for part, *own in zip(parts, *by_gender, strict=True)]


def _class_means(
    both: Counterfactuals,
    chosen: NDArray[np.bool_],
    values: Mapping[str, Floats],
    run: Run,
    *,
    query: str = "",
    **fields: object,
) -> list[Measurement]:
    """Means of each of the values (E, M) over chosen queries, all classes with equal weight."""

    def means(sums: Floats) -> Floats:
        queries = sums[..., 0]
        shares = sums[..., 1:] / np.where(queries > 0, queries, 1)[..., None]
        every = [mean_over(shares[..., i], queries > 0) for i in range(len(values))]
        return np.stack(every, axis=-1)

    counts = both.sums(chosen, *values.values())
    asked = np.bincount(both.original.local.ravel(), counts[..., 0].ravel()) > 0
    replicates, inside = both.original.replicates(means, counts), np.where(asked, 0, -1)
    return [
        read_value(replicates.at(i), inside, run, query or name, n=int(asked.sum()), **fields)
        for i, name in enumerate(values)
    ]


def _by_class(
    both: Counterfactuals, subject: str, run: Run, chosen: NDArray[np.bool_]
) -> list[Measurement]:
    """The association of each class over its chosen texts, with parts by the gender of the texts.

    By gender it is log(p_original / p_swapped): above 0 the text as it is supports its class more
    than its counterfactual does; `signed` is above 0 where that is pro-stereotypical, and in a
    class without a leaning where the man's version supports it more. The unit is the text, with
    the mean of all episodes it is in; an interval from one text is unbounded.
    """
    answers = both.original
    rows, first, text = np.unique(answers.rows[chosen], return_index=True, return_inverse=True)
    gap = (answers.true_log_probs - both.swapped.true_log_probs)[chosen]
    means: Floats = np.bincount(text, gap, len(rows)) / np.bincount(text, minlength=len(rows))
    label = answers.true_classes[chosen][first]
    gender = answers.genders[chosen][first]
    parts = []
    for index in np.unique(label):
        leaning = int(both.leaning[index])
        positive = max(leaning, 0)  # the gender whose versions count as they are

        def part(values: Floats, query: str, by: str, **details: object) -> Measurement:
            return Bias.declaration.result(
                run,
                query,
                t_mean(values, run.prob),
                by=by,
                subject=subject,
                n=values.size,
                interval="new texts of the class: Student t over texts",
                details=details,
            )

        here = label == index
        by_gender = []
        for code in (0, 1):
            values = means[here & (gender == code)]
            if values.size:
                own = part(values, LEANINGS[code], "gender")
                signed = own.value if code == positive else -own.value
                by_gender.append(replace(own, details={"signed": signed}))
        signs = np.where(gender[here] == positive, 1.0, -1.0)
        total = part(means[here] * signs, answers.names[index], "class", leaning=LEANINGS[leaning])
        parts.append(replace(total, parts=tuple(by_gender)))
    return parts
