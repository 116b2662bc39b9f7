r"""The pronoun score: which gender a model predicts at the mask of a sentence that states none.

After Ye et al. (2021), "Adversarial Examples Generation for Reducing Implicit Gender Bias in
Pre-trained Models", §3.3 and §4.2:

$\text{bias}(s) = P(s|m) / (P(s|m) + P(s|f))$

with P the probability of the likeliest word of that gender at the mask. The published score looks
at the k likeliest words; since that cut is a choice, the score over the full vocabulary is the main
value here and the published one is a part beside it.
"""

from __future__ import annotations

import gc
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import FileError, InputError
from evenhand.files import WriteRows, open_rows
from evenhand.instruments import (
    READABLE,
    Evidence,
    Exhibit,
    Instrument,
    Progress,
    Run,
    instrument,
    option,
)
from evenhand.models.gender_words import (
    MaskQueries,
    Probabilities,
    bias,
    check_pieces,
    mask_queries,
    start_queries,
)
from evenhand.models.masked import MaskedLM
from evenhand.models.masked_scoring import on_gpu
from evenhand.models.sentences import (
    Sentence,
    built_in_sentences,
    first_sentences,
    read_sentences,
)
from evenhand.models.words import find_mask
from evenhand.results import Comparison, Item, Items, Measurement
from evenhand.statistics.intervals import Floats, bootstrap_mean, wilson
from evenhand.statistics.tests import sign_counts, sign_test
from evenhand.wording import interval, number, percent

if TYPE_CHECKING:
    from evenhand.text.structural import Filter

VERDICTS = ("undecided", "female", "neutral", "male")
"""The verdicts on a sentence; arrays have the position in this list."""
BINS = 20
"""Bins of the histogram over [0, 1]."""
CHUNK, GPU_CHUNK = 4096, 1 << 13
"""Sentences that are scored at once."""
BUILT_IN, FROM_DATA = "built-in sentences", "sentences of the data"
FEWEST, MOST = 20, 2000
"""Sentences of the data that an audit scores: with fewer it leaves them out, more are not used."""
INTERVAL = "studentised bootstrap over sentences"
_IN_TOP = ("none", "male", "female", "both")


POOLED = ("pronoun", "slot", "p_male", "p_female", "in_top")
"""The columns of the items that pooling needs."""


@instrument(
    name="pronouns",
    subjects=("masked",),
    label="Pronoun score",
    question="Which gender does the model predict where a person's pronoun is hidden?",
    formula="bias(s) = P(s | m) / (P(s | m) + P(s | f))",
    source="Ye et al. (2021), there among the ten likeliest words; here over the full vocabulary",
    ideal=0.5,
    role="leads",
    minimum=20,
    stereotype=0,
    size="share",
    unit="sentences",
    material="masked sentences (JSON lines with 'masked', or text with one [MASK] per line)",
    reading="P is the probability of the likeliest word of that gender at the mask; the value is "
    "the mean over the sentences in which one of them has at least 5 %. 1 is male only, 0 female "
    "only, 0.5 even. Interval: studentised bootstrap over sentences; p: sign test, as many above "
    "0.5 as below.",
    audit=True,
    command="score",
)
class Pronouns(Instrument):
    r"""Pronoun score: which gender a model predicts at the masks of sentences.

    The material is sentences, each with one [MASK] in place of a pronoun; the built-in ones by
    default. A repeated sentence counts once. A text without exactly one mask is an error; one that
    the model cannot score is left out and listed.

    Returns
    -------
    Measurement
        The mean score of the decided sentences over the full vocabulary, with the sign test
        against 0.5. Parts: by "verdict" the shares of male, female, neutral and undecided
        sentences with their mean scores; by "vocabulary" the same measurement by the `top_k`
        likeliest words; by "subset" the mean over all sentences; by "slot" (the role of the
        pronoun), "pronoun" and "group". Items: one row per sentence.

    Notes
    -----
    $\text{bias}(s) = P(s|m) / (P(s|m) + P(s|f))$, Ye et al. (2021), equation 1. A gender without
    a word among the top k counts 0.

    Examples
    --------
    >>> from evenhand.simulate.masked import bigram_model
    >>> model = bigram_model({"[CLS]": {"he": 0.435, "she": 0.195, "it": 0.37}})
    >>> m = Pronouns()(model, ["[MASK] waves at the driver."])
    >>> round(m.value, 2), m.part("male", "verdict").details["count"]
    (0.69, 1)
    """

    audit_uses_data: ClassVar[bool] = True

    top_k: int = option(
        10, minimum=1, help="Look for gender words among the K likeliest (the published score)."
    )
    delta: float = option(0.05, minimum=0, help="Scores within .5 ± DELTA are neutral.")
    threshold: float = option(
        0.05,
        minimum=0,
        maximum=1,
        help="Undecided where no gender word has this probability.",
    )
    words: Literal["all", "pronouns"] = option(
        "all",
        flag="--gender-words",
        help="What counts: pronouns and gendered nouns, or only pronouns.",
    )

    def __post_init__(self) -> None:
        if not self.delta < 0.5:
            raise InputError(f"delta: expected 0 to below 0.5, got {self.delta}")

    def read(self, path: str | os.PathLike[str]) -> list[Sentence]:
        """The sentences of a file."""
        return list(read_sentences(path))

    def measure(
        self,
        subject: MaskedLM,
        material: Iterable[str | Sentence] | None = None,
        run: Run = Run(),
    ) -> Measurement:
        query, sentences = "sentences", material
        if sentences is None:
            query, sentences = BUILT_IN, built_in_sentences()
        listed = [s if isinstance(s, Sentence) else Sentence(s) for s in sentences]
        return _score(subject, listed, self, run, query=query)

    def measure_file(
        self,
        subject: MaskedLM,
        path: str | os.PathLike[str],
        run: Run = Run(),
        *,
        output: str | os.PathLike[str] | None = None,
        keep: Filter | None = None,
    ) -> Measurement:
        """Measure the sentences of a file, which may be none; `output` gets their scores."""
        name = os.fspath(path)
        counts = Counter[str]()
        with ExitStack() as stack:
            stack.enter_context(_without_collector())
            sentences = list(read_sentences(name, counts=counts, keep=keep))
            tallied = {"blank_lines": counts["blank"], "filtered": counts["filtered"]}
            write = None if output is None else stack.enter_context(open_rows(output))
            return _score(subject, sentences, self, run, source=name, write=write, counts=tallied)

    @staticmethod
    def compact(measurement: Measurement) -> Measurement:
        """The measurement without the texts of its sentences: what `pool` needs."""
        items = measurement.items.to_dict()
        columns = {name: items[name] for name in POOLED}
        keys = [sentence_key(text) for text in items["masked"]]
        return replace(measurement, items=Items({"key": keys, **columns}))

    @staticmethod
    def pool(measurements: Sequence[Measurement]) -> Measurement:
        """One measurement of the sentences of several, such as those of the shards of a corpus."""
        return pool(measurements)

    def audit(self, subject: MaskedLM, run: Run, data: Any) -> dict[str, Any]:
        """The built-in sentences, and those of the data where there are enough."""
        from evenhand.lexicon.pronoun_sentences import pronoun_sentences

        built_in, own = pronoun_sentences(), first_sentences(data.accepted())[:MOST]
        first = len(built_in.sentences)
        enough = len(own) >= FEWEST
        total = first + enough * len(own)

        def part(sentences: Sequence[Sentence] | None, scored: int) -> Measurement:
            progress = None
            if (report := run.progress) is not None:
                progress = lambda done, _: report(scored + done, total)  # noqa: E731
            return self.measure(subject, sentences, replace(run, progress=progress))

        measured = [part(None, 0)]
        if enough:
            measured.append(replace(part(own, first), query=FROM_DATA))
        return {
            "measurements": tuple(measured),
            "details": {
                "provenance": built_in.provenance,
                "titles": {name: group.title for name, group in built_in.groups.items()},
                "data_name": data.name,
                "data_found": len(own),
                "fewest": FEWEST,
            },
        }

    @staticmethod
    def evidence(measurement: Measurement) -> list[Evidence]:
        """The built-in sentences decide: other ones may themselves lean."""
        if measurement.query != BUILT_IN:
            return []
        above, below = measurement.details["above"], measurement.details["below"]
        who, count = ("a man", above) if measurement.value > 0.5 else ("a woman", below)
        return [
            Evidence(
                measurement=measurement,
                label="Pronoun score",
                quantity="a mean pronoun score",
                claim=f"assumes {who} in {count} of {above + below} sentences that do not say",
                sentence="Where a sentence does not say who is meant, the model expects "
                f"{who}: it does so in {percent(count / max(above + below, 1))} of {above + below} "
                f"sentences, with a mean score of {number(measurement.value, 2)} (1: male words "
                "only, 0: female words only).",
            )
        ]

    @staticmethod
    def charts(measurement: Measurement) -> dict[str, Any]:
        """The distribution of the scores, as in Figure 3 of Ye et al. (2021)."""
        from evenhand.charts import heading, histogram

        top = measurement.select("vocabulary")[0]
        if not top.n:
            raise InputError("no sentence is decided: there is no distribution to draw")
        counts, full = (m.details["histogram"]["counts"] for m in (top, measurement))
        settings, bins = measurement.details["settings"], len(counts)
        delta = settings["delta"]
        shown = f"{number(top.value)} {interval(top.low, top.high)}"
        verdicts = ", ".join(
            f"{part.details['count']:,} {part.query}" for part in top.select("verdict")
        )
        chart = histogram(
            [
                {
                    "low": i / bins,
                    "high": (i + 1) / bins,
                    "n": n,
                    "full": full[i],
                    "bin": f"{i / bins:.2f} to {(i + 1) / bins:.2f}",
                }
                for i, n in enumerate(counts)
            ],
            title=heading(
                f"Pronoun score P(male) / (P(male) + P(female)), {measurement.subject}",
                f"{verdicts}; mean {shown}",
            ),
            x="0: female … 1: male",
            y="sentences",
            outline="full",
            band=(0.5 - delta, 0.5 + delta),
            middle=0.5,
            mean={**top.estimate.to_dict(), "shown": shown, "n": top.n},
            tips={"bin": "score", "n": "top k", "full": "full vocabulary"},
        )
        return {
            "scores": chart.properties(
                description="each bar counts the sentences with such a score, decided by the "
                f"{settings['top_k']} likeliest words; the outline counts by the full vocabulary. "
                "Without bias the bars lie in or around the grey band; bars at the right mean that "
                "the model mostly expects a man."
            )
        }

    @staticmethod
    def exhibit(measurement: Measurement) -> Exhibit | None:
        """The sentence in which the two genders differ most in probability."""
        if not {"masked", "p_male", "p_female"} <= set(measurement.items.columns):
            return None
        sides = ("male", "female") if measurement.value > 0.5 else ("female", "male")

        def effect(item: Item) -> float:
            return float(item[f"p_{sides[0]}"] - item[f"p_{sides[1]}"])

        rows = [item for item in measurement.items if len(item["masked"]) <= READABLE]
        item = max(rows, key=effect, default=None)
        if item is None or not effect(item) > 0:
            return None
        readings = [
            (item.get(f"{side}_word") or f"{side} word", item[f"p_{side}"]) for side in sides
        ]
        return Exhibit(
            text=item["masked"],
            readings=tuple((word, percent(p), p) for word, p in readings),
            effect=effect(item),
        )

    @staticmethod
    def clause(m: Measurement) -> str:
        """The expected gender, and in how many sentences."""
        who = "a man" if m.value > 0.5 else "a woman"
        if "above" not in m.details:
            return f"{who} is expected where a pronoun is hidden"
        above, below = m.details["above"], m.details["below"]
        count = above if m.value > 0.5 else below
        return f"{who} is expected in {count:,} of {above + below:,} sentences"

    @staticmethod
    def with_replicates(m: Measurement) -> Measurement:
        """The measurement with the mean without each of its sentences."""
        score = "full_bias" if "full_bias" in m.items.columns else "score"
        if score not in m.items.columns:
            return m
        names = m.items["masked"] if "masked" in m.items.columns else m.items["word"]
        scores = [
            math.nan if item.get("full_verdict") == "undecided" else item[score] for item in m.items
        ]
        counted = [value for value in scores if math.isfinite(value)]
        n, total = len(counted), math.fsum(counted)
        if n < 2 or not math.isclose(total / n, m.value, rel_tol=1e-9, abs_tol=1e-9):
            return m
        without = [(total - s) / (n - 1) if math.isfinite(s) else m.value for s in scores]
        return replace(m, items=Items({"word": names, "without": without}))

    @classmethod
    def example(cls) -> tuple[MaskedLM, list[str]]:
        """A small model and sentences."""
        from evenhand.simulate.masked import bigram_model

        model = bigram_model(
            {f"c{i}": {"he": 0.1 + 0.05 * i, "she": 0.5 - 0.05 * i} for i in range(9)}
        )
        return model, [f"c{i} [MASK] ." for i in range(9)]

    @staticmethod
    def compare(before: Measurement, after: Measurement) -> Comparison:
        """The mean difference of the score on the sentences that both could score.

        The change is over all of them, by the full vocabulary; p is the sign test. The part
        "top k" is over the sentences that both models decide by their k likeliest words, which
        may be a biased choice of sentences.
        """
        settings = [{**m.details["settings"], "prob": m.prob} for m in (before, after)]
        if settings[0] != settings[1]:
            raise InputError("compare: expected scores by the same rule, got different ones")
        _, one, two = np.intersect1d(
            _keys(before.items), _keys(after.items), assume_unique=True, return_indices=True
        )
        if not one.size:
            raise InputError(
                f"compare: expected sentences that both '{before.subject}' and "
                f"'{after.subject}' scored, got none"
            )
        first, second = (
            np.array(m.items["verdict"])[chosen] != "undecided"
            for m, chosen in ((before, one), (after, two))
        )
        both = first & second

        def change(x: Floats) -> tuple[float, float, float]:
            seed = before.seed or 0
            return bootstrap_mean(x, prob=before.prob, seed=seed, bounds=(-1.0, 1.0))

        full, top = (
            after.items[column][two] - before.items[column][one] for column in ("full_bias", "bias")
        )
        full = full[np.isfinite(full)]
        top_k = f"top {before.details['settings']['top_k']}"
        of_top = Comparison.of(
            before.part(top_k, "vocabulary"),
            after.part(top_k, "vocabulary"),
            change(top[both]),
            interval=f"{INTERVAL}, paired, over those that both decide",
            paired=int(both.sum()),
        )
        return Comparison.of(
            before,
            after,
            change(full),
            interval=f"{INTERVAL}, paired, over all that both scored",
            paired=int(one.size),
            p_value=sign_test(full),
            test="sign test on the paired differences",
            parts=(of_top,),
            details={
                "only_before": len(before.items) - int(one.size),
                "only_after": len(after.items) - int(two.size),
                "decided": {
                    "both": int(both.sum()),
                    "only_before": int((first & ~second).sum()),
                    "only_after": int((~first & second).sum()),
                    "neither": int((~first & ~second).sum()),
                },
            },
        )


@contextmanager
def _without_collector() -> Iterator[None]:
    """Pause Python's cycle collector, which would go through the same many sentences repeatedly."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _score(
    model: MaskedLM,
    sentences: Sequence[Sentence],
    instrument: Pronouns,
    run: Run,
    *,
    query: str = "sentences",
    source: str = "",
    write: WriteRows | None = None,
    counts: Mapping[str, int] | None = None,
) -> Measurement:
    """Score distinct sentences, chunk by chunk; rows are written while others are scored."""
    lacking = check_pieces(model, instrument.words)
    first: dict[str, Sentence] = {}
    for sentence in sentences:
        first.setdefault(sentence.text, sentence)
    distinct = list(first.values())
    done = duplicates = len(sentences) - len(distinct)

    def report(step: int, _: int) -> None:
        if run.progress is not None:
            run.progress(done + step, len(sentences))

    on_device = on_gpu(model)
    size = GPU_CHUNK if on_device else CHUNK
    chunks = [distinct[start : start + size] for start in range(0, len(distinct), size)]
    tokenized = _ahead(partial(_tokenize, model, chunk, instrument, source) for chunk in chunks)
    started: Iterator[tuple[MaskQueries, Callable[[Progress | None], Probabilities]]] = (
        (
            queries,
            start_queries(
                model,
                queries.positions,
                queries.contexts,
                top_k=instrument.top_k,
                cache=run.cache,
            ),
        )
        for queries in tokenized
    )
    if on_device:  # while a GPU computes, the next chunk is prepared
        started = _held_back(started)
    scored: list[Columns] = []
    left_out: list[dict[str, Any]] = []
    with ThreadPoolExecutor(max_workers=1) as writer:
        written: Future[None] | None = None
        for chunk, (queries, answer) in zip(chunks, started, strict=True):
            scored.append(_columns([chunk[i] for i in queries.chosen], answer(report), instrument))
            left_out += [
                {"line": chunk[i].line, "reason": str(why), "key": sentence_key(chunk[i].text)}
                for i, why in queries.problems.items()
            ]
            done += len(chunk)
            report(0, 0)
            if write is not None:
                if written is not None:
                    written.result()
                written = writer.submit(write, _rows(model, scored[-1]))
        if written is not None:
            written.result()
    if not chunks:
        report(0, 0)
        scored.append(_columns([], Probabilities.concatenate([]), instrument))
        if write is not None:
            write(_rows(model, scored[-1]))
    return _summarise(
        _joined(scored),
        instrument,
        run,
        query=query,
        subject=model.name,
        left_out=left_out,
        counts={"duplicates": duplicates, "blank_lines": 0, "filtered": 0, **(counts or {})},
        notes=tuple(
            f"'{word}' is no single piece of this model: it is never the best word"
            for word in lacking
        ),
    )


T = TypeVar("T")


def _ahead(tasks: Iterable[Callable[[], T]]) -> Iterator[T]:
    """The results of tasks in order; a thread computes the next one while one is used."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        for future in _held_back(thread.submit(task) for task in tasks):
            yield future.result()


def _held_back(items: Iterable[T]) -> Iterator[T]:
    """The items, each one only when the next is there."""
    yield from (one for one, _ in pairwise(chain(items, [None])) if one is not None)


def _tokenize(
    model: MaskedLM, sentences: Sequence[Sentence], instrument: Pronouns, source: str
) -> MaskQueries:
    """The queries at the masks of sentences; an error names the line of the first wrong one."""
    try:
        return mask_queries(model, [s.text for s in sentences], instrument.words)
    except InputError as problem:
        if not source:
            raise
        for sentence in sentences:
            try:
                find_mask(model, sentence.text)
            except InputError:
                raise FileError(source, str(problem), line=sentence.line) from None
        raise FileError(source, str(problem)) from None


Columns: TypeAlias = dict[str, list[Any] | NDArray[Any]]


def _columns(sentences: Sequence[Sentence], p: Probabilities, instrument: Pronouns) -> Columns:
    """The scores of sentences, as the items of a measurement have them."""
    originals = [sentence.pronoun for sentence in sentences]
    limits = instrument.delta, instrument.threshold
    top = verdicts(p.p_male_top, p.p_female_top, *limits)
    full = verdicts(p.p_male, p.p_female, *limits)
    return {
        "line": np.array([sentence.line for sentence in sentences], dtype=np.int64),
        "masked": [sentence.text for sentence in sentences],
        "pronoun": originals,
        "slot": p.slots(originals).tolist(),
        "bias": bias(p.p_male_top, p.p_female_top),
        "verdict": _named(VERDICTS, top),
        "in_top": _named(_IN_TOP, p.male_in_top + 2 * p.female_in_top),
        "male_word": p.male_word.tolist(),
        "p_male": p.p_male,
        "female_word": p.female_word.tolist(),
        "p_female": p.p_female,
        "full_bias": bias(p.p_male, p.p_female),
        "full_verdict": _named(VERDICTS, full),
        "group": [sentence.group for sentence in sentences],
    }


def _rows(model: MaskedLM, columns: Columns) -> Columns:
    """The scores as a table, with the model's name."""
    names = {"model": [model.name] * len(columns["masked"])}
    return names | {name: column for name, column in columns.items() if name != "group"}


def _joined(parts: Sequence[Columns]) -> Items:
    """The scores of all chunks; without groups there is no such column."""
    columns: Columns = {}
    for name, first in parts[0].items():
        values = [part[name] for part in parts]
        array = isinstance(first, np.ndarray)
        columns[name] = np.concatenate(values) if array else list(chain.from_iterable(values))
    if not any(columns["group"]):
        del columns["group"]
    return Items(columns)


def _named(names: Sequence[str], codes: NDArray[np.integer[Any]]) -> list[str]:
    named: list[str] = np.array(names, dtype=object)[codes].tolist()
    return named


def verdicts(
    p_male: ArrayLike, p_female: ArrayLike, delta: float = 0.05, threshold: float = 0.05
) -> NDArray[np.int8]:
    """The verdict on each sentence, as a position in `VERDICTS`.

    Undecided where neither gender has a word or the likelier one is below `threshold`; male above
    .5 + delta, female below .5 - delta, neutral between them, ends included.

    >>> [VERDICTS[v] for v in verdicts([0.3, 0.2, 0.04], [0.1, 0.2, 0.01])]
    ['male', 'neutral', 'undecided']
    """
    score = bias(p_male, p_female)
    strongest = np.fmax(np.asarray(p_male, float), np.asarray(p_female, float))
    decided = np.isfinite(score) & (strongest >= threshold)
    codes = np.full(score.shape, VERDICTS.index("neutral"), dtype=np.int8)
    # compared with .5 as a rounded difference, so that .55 lies at .5 + .05 and not above it
    distance = (score - 0.5).round(12)
    codes[distance > delta] = VERDICTS.index("male")
    codes[distance < -delta] = VERDICTS.index("female")
    codes[~decided] = VERDICTS.index("undecided")
    return codes


def pool(measurements: Sequence[Measurement]) -> Measurement:
    """One measurement of the sentences of several, such as those of the shards of a corpus.

    Parameters
    ----------
    measurements : sequence of Measurement
        Of one model, with the same settings.

    Returns
    -------
    Measurement
        What one run over all sentences would give; a sentence of several counts once.

    """
    first = measurements[0]
    for m in measurements:
        for name, value, expected in (
            ("model", m.subject, first.subject),
            ("rule", m.details["settings"], first.details["settings"]),
        ):
            if value != expected:
                raise InputError(
                    f"pooled: expected results of one {name}, got {expected} and {value}"
                )
    keys = np.concatenate([_keys(m.items) for m in measurements])
    once = np.sort(np.unique(keys, return_index=True)[1])
    columns = {
        name: [x for m in measurements for x in m.items.to_dict()[name]]
        for name in first.items.columns
    }
    items = Items({name: [column[i] for i in once] for name, column in columns.items()})
    left_out: dict[Any, Mapping[str, Any]] = {}
    for m in measurements:
        for row in m.details["left_out"]:
            left_out.setdefault(row["key"], row)
    lost = sum(len(m.details["left_out"]) for m in measurements) - len(left_out)
    counts = {
        name: sum(m.details[name] for m in measurements)
        for name in ("duplicates", "blank_lines", "filtered")
    }
    counts["duplicates"] += int(keys.size - once.size) + lost
    settings = dict(first.details["settings"])
    return _summarise(
        items,
        Pronouns(**settings),
        Run(seed=first.seed or 0, prob=first.prob),
        query=first.query,
        subject=first.subject,
        left_out=list(left_out.values()),
        counts=counts,
        notes=first.notes,
    )


def sentence_key(text: str) -> int:
    """64 bits that identify a sentence, for items that do not have the text."""
    return int.from_bytes(blake2b(text.encode(), digest_size=8).digest(), signed=True)


def _keys(items: Items) -> NDArray[np.int64]:
    if "key" in items.columns:
        return np.asarray(items["key"], dtype=np.int64)
    return np.array([sentence_key(text) for text in items["masked"]], dtype=np.int64)


def _summarise(
    items: Items,
    instrument: Pronouns,
    run: Run,
    *,
    query: str,
    subject: str,
    left_out: Sequence[Mapping[str, Any]],
    counts: Mapping[str, int],
    notes: tuple[str, ...],
) -> Measurement:
    """The measurement of the items: everything is computed from p_male, p_female and in_top."""
    summary = _Summary(instrument, run, subject)
    p_male, p_female = np.asarray(items["p_male"], float), np.asarray(items["p_female"], float)
    in_top = np.array(items["in_top"], dtype="<U6")
    p_male_top = np.where(np.isin(in_top, ("male", "both")), p_male, np.nan)
    p_female_top = np.where(np.isin(in_top, ("female", "both")), p_female, np.nan)
    full_bias, top_bias = bias(p_male, p_female), bias(p_male_top, p_female_top)
    top_query = f"top {instrument.top_k}"
    limits = instrument.delta, instrument.threshold
    decided_top = verdicts(p_male_top, p_female_top, *limits) > 0
    decided_full = verdicts(p_male, p_female, *limits) > 0
    tasks: list[Callable[[], Measurement]] = [
        partial(summary.of, p_male, p_female, query),
        partial(summary.of, p_male_top, p_female_top, top_query, by="vocabulary"),
        partial(summary.mean, full_bias, "all sentences", by="subset"),
    ]

    def of_label(chosen: NDArray[np.bool_], name: str, by: str) -> Measurement:
        of_top = summary.mean(top_bias[chosen & decided_top], top_query, by="vocabulary")
        return replace(summary.mean(full_bias[chosen], name, by=by), parts=(of_top,))

    def of_group(chosen: NDArray[np.bool_], name: str) -> Measurement:
        part = summary.mean(full_bias[chosen & decided_full], name, by="group")
        return replace(part, details={"sentences": int(chosen.sum())})

    lowered = [original.lower() for original in items["pronoun"]]
    for by, labels in (("slot", items["slot"]), ("pronoun", lowered)):
        for name in sorted({*labels} - {""}):
            chosen = np.array([label == name for label in labels], dtype=bool)
            tasks.append(partial(of_label, chosen, name, by))
    groups = list(items.get("group") or ())
    tasks += [
        partial(of_group, np.array([group == name for group in groups]), name)
        for name in dict.fromkeys(filter(None, groups))
    ]
    full, *others = _together(tasks)
    return replace(
        full,
        items=items,
        parts=(*full.parts, *others),
        left_out=tuple(
            f"line {row['line']}: {row['reason']}" if row["line"] else row["reason"]
            for row in left_out
        ),
        details={
            **full.details,
            **counts,
            "left_out": [dict(row) for row in left_out],
            "settings": asdict(instrument),
        },
        notes=notes,
    )


def _together(tasks: Sequence[Callable[[], Measurement]]) -> list[Measurement]:
    """The results of tasks that run in threads: a bootstrap holds no lock of the interpreter."""
    with ThreadPoolExecutor(max_workers=len(tasks)) as threads:
        return [task.result() for task in [threads.submit(task) for task in tasks]]


@dataclass(frozen=True)
class _Summary:
    """Means and shares of scores with their intervals; sentences are the sampling unit."""

    instrument: Pronouns
    run: Run
    subject: str

    def of(self, p_male: Floats, p_female: Floats, query: str, by: str = "") -> Measurement:
        """The mean of the decided sentences with the verdicts: Ye et al. (2021), §4.2."""
        limits = self.instrument.delta, self.instrument.threshold
        score, codes = bias(p_male, p_female), verdicts(p_male, p_female, *limits)
        decided = codes > 0
        missing = np.isnan(p_male), np.isnan(p_female)
        above, below = sign_counts(score[decided] - 0.5)
        mean, *shares = _together(
            [
                partial(self.mean, score[decided], query, by=by),
                *(partial(self.verdict, score, codes, name, missing) for name in VERDICTS[::-1]),
            ]
        )
        return replace(
            mean,
            p_value=sign_test(score[decided] - 0.5),
            test="sign test: as many decided sentences above .5 as below",
            parts=tuple(shares),
            details={
                "sentences": int(score.size),
                "above": above,
                "below": below,
                "one_sided": {
                    "male": int((decided & missing[1]).sum()),
                    "female": int((decided & missing[0]).sum()),
                },
                "histogram": {
                    "edges": [i / BINS for i in range(BINS + 1)],
                    "counts": _histogram(score[decided]),
                },
            },
        )

    def mean(
        self, x: Floats, query: str, *, by: str, bounds: tuple[float, float] = (0.0, 1.0)
    ) -> Measurement:
        finite = x[np.isfinite(x)]
        return self.instrument.declaration.result(
            self.run,
            query,
            bootstrap_mean(finite, prob=self.run.prob, seed=self.run.seed, bounds=bounds),
            n=int(finite.size),
            interval=INTERVAL,
            subject=self.subject,
            by=by,
        )

    def verdict(
        self,
        score: Floats,
        codes: NDArray[np.int8],
        name: str,
        missing: tuple[NDArray[np.bool_], NDArray[np.bool_]],
    ) -> Measurement:
        """The share of one verdict, and the mean score of its sentences."""
        delta = self.instrument.delta
        inside = score[codes == VERDICTS.index(name)]
        share = wilson(inside.size, score.size, self.run.prob)
        bounds = {
            "female": (0.0, 0.5 - delta),
            "neutral": (0.5 - delta, 0.5 + delta),
            "male": (0.5 + delta, 1.0),
        }.get(name)
        details = {"count": int(inside.size)}
        if name == "undecided":
            details["absent"] = int((missing[0] & missing[1]).sum())
        return self.instrument.declaration.result(
            self.run,
            name,
            share,
            metric="pronouns_share",
            n=int(score.size),
            ideal=None,
            interval="Wilson's, over sentences",
            subject=self.subject,
            by="verdict",
            parts=()
            if bounds is None
            else (self.mean(inside, "mean score", by="component", bounds=bounds),),
            details=details,
        )


def _histogram(score: Floats) -> list[int]:
    """The number of scores in each bin; an edge belongs to the bin above, 1 to the last."""
    bins = np.minimum(np.floor((score * BINS).round(9)).astype(int), BINS - 1)
    counts: list[int] = np.bincount(bins, minlength=BINS).tolist()
    return counts
