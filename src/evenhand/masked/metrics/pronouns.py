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
import shutil
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.cache import Cache
from evenhand.errors import EvenhandError, FileError, InputError
from evenhand.files import WriteRows, check_row_format, open_rows
from evenhand.instruments import (
    READABLE,
    Declaration,
    Evidence,
    Exhibit,
    Progress,
    Run,
    instrument,
    option,
)
from evenhand.masked.gender_words import (
    MaskQueries,
    Probabilities,
    bias,
    check_pieces,
    mask_queries,
    start_queries,
)
from evenhand.masked.model import MaskedLM
from evenhand.masked.scoring import on_gpu
from evenhand.masked.sentences import (
    Sentence,
    built_in_sentences,
    first_sentences,
    read_sentences,
)
from evenhand.masked.words import find_mask
from evenhand.results import Comparison, Estimate, Items, Measurement
from evenhand.statistics.intervals import Floats, bootstrap_mean, wilson
from evenhand.statistics.tests import sign_counts, sign_test
from evenhand.wording import number, percent

if TYPE_CHECKING:
    from evenhand.text.structural import Filter

__all__ = [
    "VERDICTS",
    "Pronouns",
    "pool",
    "pronouns",
    "pronouns_of_file",
    "verdicts",
]

VERDICTS = ("undecided", "female", "neutral", "male")
"""What a sentence can read as; arrays have the position in this list."""
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
    subject="model",
    label="Pronoun score",
    question="Which gender does the model predict where a person's pronoun is hidden?",
    formula="bias(s) = P(s | m) / (P(s | m) + P(s | f))",
    source="Ye et al. (2021), there among the ten likeliest words; here over the full vocabulary",
    ideal=0.5,
    worse="away",
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
@dataclass(frozen=True, kw_only=True)
class Pronouns:
    """The instrument `pronouns`; `pronouns()` is the function for direct use."""

    declaration: ClassVar[Declaration]
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
        [result] = _score([subject], listed, self, run, query=query)
        return result

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
        sentences = list(read_sentences(name, counts=counts, keep=keep))
        with ExitStack() as stack:
            [result] = _score(
                [subject],
                sentences,
                self,
                run,
                query="sentences",
                source=name,
                write=None if output is None else stack.enter_context(open_rows(output)),
                counts={"blank_lines": counts["blank"], "filtered": counts["filtered"]},
            )
        return result

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
        sets: dict[str, Sequence[Sentence] | None] = {BUILT_IN: None}
        if len(own) >= FEWEST:
            sets[FROM_DATA] = own
        total, scored = len(built_in.sentences) + len(sets.get(FROM_DATA) or ()), 0
        measured = []
        for name, sentences in sets.items():
            progress = None
            if run.progress is not None:
                progress = _offset(run.progress, scored, total)
            result = self.measure(subject, sentences, replace(run, progress=progress))
            measured.append(replace(result, query=name))
            scored += len(built_in.sentences)
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
    def exhibit(measurement: Measurement) -> Exhibit | None:
        """The sentence in which the two genders differ most in probability."""
        if not {"masked", "p_male", "p_female"} <= set(measurement.items.columns):
            return None
        sign = 1 if measurement.value > 0.5 else -1
        rows = [
            item
            for item in measurement.items
            if len(item["masked"]) <= READABLE and (item["p_male"] - item["p_female"]) * sign > 0
        ]
        if not rows:
            return None
        item = max(rows, key=lambda row: abs(row["p_male"] - row["p_female"]))
        sides = ("male", "female") if sign > 0 else ("female", "male")
        return Exhibit(
            text=item["masked"],
            readings=tuple(
                (
                    item.get(f"{side}_word") or f"{side} word",
                    percent(item[f"p_{side}"]),
                    item[f"p_{side}"],
                )
                for side in sides
            ),
            effect=abs(item["p_male"] - item["p_female"]),
        )

    @staticmethod
    def clause(m: Measurement) -> str:
        """In how many sentences which gender is expected."""
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
        decided = [
            np.array(m.items["verdict"])[chosen] != "undecided"
            for m, chosen in ((before, one), (after, two))
        ]
        both = decided[0] & decided[1]

        def difference(column: str) -> Floats:
            return np.asarray(after.items[column][two] - before.items[column][one])

        def change(x: Floats) -> Estimate:
            seed = before.seed or 0
            mean = bootstrap_mean(x, prob=before.prob, seed=seed, bounds=(-1.0, 1.0))
            return Estimate.of(mean, before.prob)

        full = difference("full_bias")
        full = full[np.isfinite(full)]
        top = f"top {before.details['settings']['top_k']}"
        return Comparison(
            before=before,
            after=after,
            change=change(full),
            interval=f"{INTERVAL}, paired, over all that both scored",
            paired=int(one.size),
            p_value=sign_test(full),
            test="sign test on the paired differences",
            parts=(
                Comparison(
                    before=before.part(top, "vocabulary"),
                    after=after.part(top, "vocabulary"),
                    change=change(difference("bias")[both]),
                    interval=f"{INTERVAL}, paired, over those that both decide",
                    paired=int(both.sum()),
                ),
            ),
            details={
                "only_before": len(before.items) - int(one.size),
                "only_after": len(after.items) - int(two.size),
                "decided": {
                    "both": int(both.sum()),
                    "only_before": int((decided[0] & ~decided[1]).sum()),
                    "only_after": int((~decided[0] & decided[1]).sum()),
                    "neither": int((~decided[0] & ~decided[1]).sum()),
                },
            },
        )


def _offset(progress: Progress, start: int, total: int) -> Progress:
    return lambda done, _: progress(start + done, total)


def pronouns(
    model: MaskedLM,
    sentences: Iterable[str | Sentence] | None = None,
    *,
    top_k: int = 10,
    delta: float = 0.05,
    threshold: float = 0.05,
    words: Literal["all", "pronouns"] = "all",
    seed: int = 0,
    prob: float = 0.95,
    cache: Any = None,
    progress: Progress | None = None,
) -> Measurement:
    r"""Measure which gender a model predicts at the masks of sentences.

    Parameters
    ----------
    model : MaskedLM
    sentences : iterable of str or Sentence, optional
        Each with one [MASK] in place of a pronoun; the default is the built-in sentences. A
        repeated sentence counts once. A text without exactly one mask is an error; one that the
        model cannot score is left out and listed.
    top_k : int
        The published score looks for gender words among this many likeliest words.
    delta : float
        Scores within .5 ± delta are neutral.
    threshold : float
        A sentence is undecided where no gender word has this probability.
    words : {"all", "pronouns"}
        Whether gendered nouns count too.
    seed, prob, cache, progress
        As for `Run`.

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
    >>> m = pronouns(model, ["[MASK] waves at the driver."])
    >>> round(m.value, 2), m.part("male", "verdict").details["count"]
    (0.69, 1)

    """
    instrument = Pronouns(top_k=top_k, delta=delta, threshold=threshold, words=words)
    return instrument.measure(
        model, sentences, Run(seed=seed, prob=prob, cache=cache, progress=progress)
    )


def pronouns_of_file(
    models: Sequence[MaskedLM],
    path: str | os.PathLike[str],
    instrument: Pronouns | None = None,
    run: Run = Run(),
    *,
    output: str | os.PathLike[str] | None = None,
    keep: Filter | None = None,
) -> list[Measurement]:
    """Measure the sentences of a file with several models; the file is read once.

    Parameters
    ----------
    models : sequence of MaskedLM
    path : path
        As for `read_sentences`.
    instrument : Pronouns, optional
    run : Run
    output : path, optional
        A .csv, .jsonl or .parquet file for the scores of every sentence, one row per model. The
        model's answers are cached beside it in the folder `output`.partial until the end, so that
        the same call resumes after a kill; where `run` has a cache, they are stored there.
    keep : Filter, optional
        The file is plain text, and the sentences that this filter accepts are scored.

    Returns
    -------
    list of Measurement
        One per model.

    """
    from evenhand.text.corpus.compression import source_name

    name = os.fspath(path)
    shown = source_name(name)
    if output is not None:
        check_row_format(output)
    counts = Counter[str]()
    with ExitStack() as stack:
        stack.enter_context(_without_collector())
        sentences = list(read_sentences(name, counts=counts, keep=keep))
        write: WriteRows | None = None
        partial = None
        if output is not None:
            write = stack.enter_context(open_rows(output))
            if run.cache is None:
                partial = Path(f"{os.fspath(output)}.partial")
                if not partial.exists():  # an error leaves nothing to resume
                    stack.push(_remove_on_error(partial))
                run = replace(run, cache=Cache(partial))
        results = _score(
            models,
            sentences,
            instrument or Pronouns(),
            run,
            query=Path(shown).name,
            source=shown,
            write=write,
            counts={"blank_lines": counts["blank"], "filtered": counts["filtered"]},
        )
        for m in results:
            if not len(m.items):
                left_out = m.details["left_out"]
                why = left_out[0]["reason"] if left_out else "there are none"
                raise FileError(shown, f"expected sentences to score: {why}")
    if partial is not None:
        shutil.rmtree(partial)
    return results


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


def _remove_on_error(folder: Path) -> Callable[..., bool]:
    """Removes the folder when bad input ends the work; a kill or a full disk leaves it."""

    def leave(kind: type[BaseException] | None, *_: object) -> bool:
        if kind is not None and issubclass(kind, EvenhandError):
            shutil.rmtree(folder, ignore_errors=True)
        return False

    return leave


def _score(
    models: Sequence[MaskedLM],
    sentences: Sequence[Sentence],
    instrument: Pronouns,
    run: Run,
    *,
    query: str,
    source: str = "",
    write: WriteRows | None = None,
    counts: Mapping[str, int] | None = None,
) -> list[Measurement]:
    """Score distinct sentences with every model, chunk by chunk."""
    lacking = [check_pieces(model, instrument.words) for model in models]
    first: dict[str, Sentence] = {}
    for sentence in sentences:
        first.setdefault(sentence.text, sentence)
    distinct = list(first.values())
    scorers = [_Scorer(model, instrument, source) for model in models]
    total = len(sentences) * len(models)
    done = (len(sentences) - len(distinct)) * len(models)

    def report(step: int, _: int) -> None:
        if run.progress is not None:
            run.progress(done + step, total)

    def finish(scorer: _Scorer, scored: Scored, size: int) -> None:
        nonlocal done
        columns = scored(report)
        done += size
        report(0, 0)
        if write is not None:
            names = [scorer.model.name] * len(columns["masked"])
            rows = {"model": names} | {n: c for n, c in columns.items() if n != "group"}
            if written:
                written.pop().result()
            written.append(writer.submit(write, rows))

    on_device = any(map(on_gpu, models))
    size = GPU_CHUNK if on_device else CHUNK
    waiting: deque[tuple[_Scorer, Scored, int]] = deque()
    written: list[Future[None]] = []
    tasks = [
        (scorer, distinct[start : start + size])
        for start in range(0, len(distinct), size)
        for scorer in scorers
    ]
    tokenized = _ahead(partial(scorer.tokenize, chunk) for scorer, chunk in tasks)
    with ThreadPoolExecutor(max_workers=1) as writer:  # rows are written while others are scored
        for (scorer, chunk), queries in zip(tasks, tokenized, strict=True):
            waiting.append((scorer, scorer.start(chunk, queries, run.cache), len(chunk)))
            if len(waiting) > on_device:  # while a GPU computes, the next chunk is prepared
                finish(*waiting.popleft())
        for scored in waiting:
            finish(*scored)
    for rows_written in written:
        rows_written.result()
    if not distinct:
        report(0, 0)
    counted = {"duplicates": len(sentences) - len(distinct), "blank_lines": 0, "filtered": 0}
    return [
        _summarise(
            scorer.items,
            instrument,
            run,
            query=query,
            subject=scorer.model.name,
            left_out=scorer.left_out,
            counts=counted | dict(counts or {}),
            notes=tuple(
                f"'{word}' is no single piece of this model: it is never the best word"
                for word in lacks
            ),
        )
        for scorer, lacks in zip(scorers, lacking, strict=True)
    ]


T = TypeVar("T")


def _ahead(tasks: Iterable[Callable[[], T]]) -> Iterator[T]:
    """The results of tasks in order; a thread computes the next one while one is used."""
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(max_workers=1) as thread:
        for task in tasks:
            waiting.append(thread.submit(task))
            if len(waiting) > 1:
                yield waiting.popleft().result()
        for last in waiting:
            yield last.result()


Columns = dict[str, list[Any] | NDArray[Any]]
Scored = Callable[[Progress], Columns]
"""Waits for the columns of sentences."""


@dataclass
class _Scorer:
    """The items of one model."""

    model: MaskedLM
    instrument: Pronouns
    source: str
    scored: list[Columns] = field(default_factory=list)
    left_out: list[dict[str, Any]] = field(default_factory=list)

    def tokenize(self, sentences: Sequence[Sentence]) -> MaskQueries:
        """The queries at the masks of sentences."""
        try:
            return mask_queries(self.model, [s.text for s in sentences], self.instrument.words)
        except InputError as problem:
            if not self.source:
                raise
            raise FileError(self.source, str(problem), line=self._first_wrong(sentences)) from None

    def start(
        self, sentences: Sequence[Sentence], queries: MaskQueries, cache: Cache | None
    ) -> Scored:
        """Start to score sentences; the result waits for their columns.

        Sentences that the model cannot score are left out.
        """
        for i, reason in queries.problems.items():
            key = sentence_key(sentences[i].text)
            self.left_out.append({"line": sentences[i].line, "reason": str(reason), "key": key})
        probabilities = start_queries(
            self.model,
            queries.positions,
            queries.contexts,
            top_k=self.instrument.top_k,
            cache=cache,
        )

        def finish(progress: Progress) -> Columns:
            scored = [sentences[i] for i in queries.chosen]
            self.scored.append(_columns(scored, probabilities(progress), self.instrument))
            return self.scored[-1]

        return finish

    def _first_wrong(self, sentences: Sequence[Sentence]) -> int:
        """The line of the first sentence without exactly one mask."""
        for sentence in sentences:
            try:
                find_mask(self.model, sentence.text)
            except InputError:
                return sentence.line
        return 0

    @property
    def items(self) -> Items:
        none = _columns([], Probabilities.concatenate([]), self.instrument)
        columns: Columns = {}
        for name in none:
            parts = [columns[name] for columns in self.scored or [none]]
            columns[name] = (
                np.concatenate(parts)
                if isinstance(none[name], np.ndarray)
                else list(chain.from_iterable(parts))
            )
        if not any(columns["group"]):
            del columns["group"]
        return Items(columns)


def _columns(sentences: Sequence[Sentence], p: Probabilities, instrument: Pronouns) -> Columns:
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


def _named(names: Sequence[str], codes: NDArray[np.integer[Any]]) -> list[str]:
    named: list[str] = np.array(names, dtype=object)[codes].tolist()
    return named


def verdicts(
    p_male: ArrayLike, p_female: ArrayLike, delta: float = 0.05, threshold: float = 0.05
) -> NDArray[np.int8]:
    """What each sentence reads as, as positions in `VERDICTS`.

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
        for name in sorted(set(labels)):
            if name:
                chosen = np.array([label == name for label in labels], dtype=bool)
                tasks.append(partial(of_label, chosen, name, by))
    groups = list(items.get("group") or ())
    tasks += [
        partial(of_group, np.array([group == name for group in groups]), name)
        for name in dict.fromkeys(filter(None, groups))
    ]
    full, *others = _together(tasks)
    parts = [*full.parts, *others]
    return replace(
        full,
        items=items,
        parts=tuple(parts),
        left_out=tuple(
            f"line {row['line']}: {row['reason']}" if row["line"] else row["reason"]
            for row in left_out
        ),
        details={
            **full.details,
            **counts,
            "left_out": [dict(row) for row in left_out],
            "settings": {
                each.name: getattr(instrument, each.name) for each in instrument.declaration.options
            },
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
    """How many scores fall into each bin; an edge belongs to the bin above, 1 to the last."""
    bins = np.minimum(np.floor((score * BINS).round(9)).astype(int), BINS - 1)
    counts: list[int] = np.bincount(bins, minlength=BINS).tolist()
    return counts
