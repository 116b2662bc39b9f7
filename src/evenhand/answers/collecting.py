"""Collecting answers: every prompt is put to a model several times, and every outcome is kept.

Answers are cached one by one, by the content of their request, so that a run that was killed is
resumed and a longer file or more samples asks only what is new. Failed requests are asked again.
"""

from __future__ import annotations

import os
import warnings
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from evenhand.answers.outcomes import OUTCOMES, outcome_of
from evenhand.answers.prompts import Prompt, read_prompts
from evenhand.answers.table import Answers, read_answers
from evenhand.cache import Cache, content_key
from evenhand.errors import FileError, InputError, PartialFailure, check_whole, parameter
from evenhand.files import (
    check_folder,
    digest_of,
    document,
    is_ours,
    open_rows,
    parse_json,
    plain,
    public_name,
    read_document,
    record_of,
    save_json,
    to_json,
    versions,
)
from evenhand.models.endpoint import Endpoint, EndpointSettings, estimate_tokens, is_address
from evenhand.models.memory import ModelSource
from evenhand.models.sources import DType
from evenhand.models.writing import Budget, Request, Writer, WriteSettings, Written
from evenhand.text.tables import Source

__all__ = ["CollectedAnswers", "Collection", "CollectionSize", "collect", "open_writer", "prepare"]

Progress: TypeAlias = Callable[[int, int], None]
SAMPLES = 25
OWN = ("prompt", "system", "sample", "text", "outcome", "finish", "tokens", "error", "model")
"""The columns of answers besides those of their prompts."""


def open_writer(
    source: ModelSource | Writer,
    *,
    endpoint: EndpointSettings | None = None,
    device: str = "auto",
    dtype: DType = "float32",
) -> Writer:
    """A model that writes: behind an address, or a causal language model in process.

    Parameters
    ----------
    source : str, path or model in memory
        The address of a server that speaks the protocol of OpenAI, such as
        `http://127.0.0.1:8080/v1`; or a causal language model: an embedded name, a folder, a GGUF
        file, `hf:NAME`, or a model in memory.
    endpoint : EndpointSettings, optional
        How requests are sent to an address.
    device, dtype : str
        Where and in which data type a model in process computes.

    Returns
    -------
    Writer

    """
    from evenhand.models.local_writer import LocalWriter

    if isinstance(source, Endpoint | LocalWriter):
        return source
    if isinstance(source, str) and is_address(source):
        return Endpoint(source, endpoint or EndpointSettings())
    from evenhand.models.causal import load
    from evenhand.models.loading import kind_of

    if (kind := kind_of(source)) != "causal":
        raise InputError(
            f"{source}: expected a causal language model or an address, got a model of kind {kind}"
        )
    return LocalWriter(load(source, device=device, dtype=dtype))


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionSize:
    """The size of a collection.

    Parameters
    ----------
    prompts, samples : int
    cached : int
        Requests that have an answer already.
    requests : int
        Requests that are left.
    prompt_tokens : int
        Tokens of the prompts of these requests.
    new_tokens : int
        The most tokens that their answers can have.
    estimated : bool
        Whether the tokens of the prompts are an estimate, as the tokenizer is not known.

    """

    prompts: int
    samples: int
    cached: int
    requests: int
    prompt_tokens: int
    new_tokens: int
    estimated: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedAnswers:
    """What came of a collection.

    Parameters
    ----------
    rows : list of dict
        One per request that was made, now or before, prompt by prompt.
    problem : str
        What is missing or has failed, in one line; empty if nothing.
    complete : bool
    dates : tuple of str
        When the first and the last of the answers came.
    budget : Budget
        What this run has taken.

    """

    rows: list[dict[str, Any]]
    problem: str
    complete: bool
    dates: tuple[str, str]
    budget: Budget

    @property
    def outcomes(self) -> dict[str, int]:
        """The number of answers by outcome."""
        counts = Counter(row["outcome"] for row in self.rows)
        return {outcome: counts[outcome] for outcome in OUTCOMES}


@dataclass(frozen=True, eq=False)
class Collection:
    """What is to be collected: the requests of every prompt and sample, and what is known.

    Parameters
    ----------
    writer : Writer
    prompts : sequence of Prompt
    samples : int
    settings : WriteSettings
    seed : int
        Each sample of each prompt has a seed of its own, derived from this one.
    cache : Cache, optional
        What has been answered.
    about : mapping
        What is recorded besides.

    """

    writer: Writer
    prompts: Sequence[Prompt]
    samples: int
    settings: WriteSettings
    seed: int = 0
    cache: Cache | None = None
    about: Mapping[str, object] = field(default_factory=dict)

    @cached_property
    def requests(self) -> list[Request]:
        """Sample by sample, so that what is cut short has as many of each prompt."""
        seen: Counter[str] = Counter()
        keys = []
        for prompt in self.prompts:
            keys.append(f"{prompt.key} {seen[prompt.key]}")  # the same prompt twice is asked twice
            seen[prompt.key] += 1
        return [
            Request(prompt.messages, _seed_of(self.seed, key, sample))
            for sample in range(self.samples)
            for prompt, key in zip(self.prompts, keys, strict=True)
        ]

    @cached_property
    def keys(self) -> list[bytes]:
        """What each answer depends on, hashed, for the cache."""
        context = f"answers 1 {self.writer.fingerprint} {to_json(asdict(self.settings))}"
        return [
            content_key(context, each.seed, text=to_json(each.messages)) for each in self.requests
        ]

    @cached_property
    def missing(self) -> list[int]:
        """The numbers of the requests that have no answer."""
        if self.cache is None:
            return list(range(len(self.requests)))
        return [i for i, key in enumerate(self.keys) if key not in self.cache]

    def size(self) -> CollectionSize:
        """What is left to ask; nothing is sent but the question which models a server has."""
        requests = [self.requests[i] for i in self.missing]
        counted = self.writer.count_tokens(requests)
        return CollectionSize(
            prompts=len(self.prompts),
            samples=self.samples,
            cached=len(self.requests) - len(requests),
            requests=len(requests),
            prompt_tokens=sum(map(estimate_tokens, requests) if counted is None else counted),
            new_tokens=len(requests) * self.settings.max_new_tokens,
            estimated=counted is None,
        )

    def ask(
        self, budget: Budget | None = None, progress: Progress | None = None
    ) -> CollectedAnswers:
        """Ask what is missing, as far as the budget allows."""
        budget = budget or Budget()
        with self.cache.lock() if self.cache is not None else nullcontext():
            answers, problem = self._ask(budget, progress)
        problems = [problem] if problem else []
        lacking = len(self.requests) - len(answers)
        if lacking:
            reason = "" if problem else "the bound is reached: "
            problems.append(f"{reason}{lacking:,} of {len(self.requests):,} answers are missing")
        failed = Counter(each["error"] for each in answers.values() if each["finish"] == "error")
        if failed:
            often = failed.most_common(1)[0][0]
            problems.append(f"{failed.total():,} requests failed ({often})")
        if not answers:
            raise PartialFailure("; ".join(problems))
        dates = sorted(each["date"] for each in answers.values())
        return CollectedAnswers(
            rows=self._rows(answers),
            problem="; ".join(problems),
            complete=not (lacking or failed),
            dates=(dates[0], dates[-1]),
            budget=budget,
        )

    def _ask(self, budget: Budget, progress: Progress | None) -> tuple[dict[int, Any], str]:
        known = self.cache.get(self.keys) if self.cache else []
        answers: dict[int, Any] = {
            i: parse_json(bytes(entry[0]), "cache")
            for i, entry in enumerate(known)
            if entry is not None
        }
        missing = self.missing
        asked = [self.requests[i] for i in missing]
        try:
            if progress is not None:
                progress(len(answers), len(self.requests))
            for number, written in self.writer.write(asked, self.settings, budget):
                place = missing[number]
                answers[place] = answer = _answer_of(written)
                if self.cache is not None and written.finish != "error":
                    entry = to_json(answer, indent=None).encode()
                    self.cache.store([self.keys[place]], np.array([[entry]]))
                if progress is not None:
                    progress(len(answers), len(self.requests))
        except PartialFailure as error:
            return answers, str(error)
        return answers, ""

    def _rows(self, answers: Mapping[int, Mapping[str, Any]]) -> list[dict[str, Any]]:
        """One row per answer, prompt by prompt."""
        names = dict.fromkeys(name for prompt in self.prompts for name in prompt.columns)
        systems = any(prompt.system for prompt in self.prompts)
        count, model = len(self.prompts), self.writer.name
        rows = []
        for number in sorted(answers, key=lambda i: (i % count, i // count)):
            sample, place = divmod(number, count)
            prompt, answer = self.prompts[place], answers[number]
            row: dict[str, Any] = {name: prompt.columns.get(name) for name in names}
            row["prompt"] = prompt.text
            if systems:
                row["system"] = prompt.system or None
            row |= {
                "sample": sample,
                "text": answer["text"],
                "outcome": outcome_of(answer["text"], answer["finish"], answer["error"]),
                "finish": answer["finish"],
                "tokens": answer["tokens"],
                "error": answer["error"] or None,
                "model": model,
            }
            rows.append(row)
        return rows

    @property
    def identity(self) -> dict[str, object]:
        """What all answers of an output have in common."""
        fingerprint = blake2b(self.writer.fingerprint.encode(), digest_size=16).hexdigest()
        return {
            "model": self.writer.name,
            "fingerprint": fingerprint,
            "seed": self.seed,
            "system": self.about.get("system", ""),
            **asdict(self.settings),
        }

    def check(self, output: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Check that an output can be written and, if it is there, has answers of this run."""
        path, record = Path(output), record_of(output)
        if path.suffix != ".jsonl":
            raise InputError(f"{path}: expected a file that ends in .jsonl")
        check_folder(path.parent)
        if record.exists() and not (overwrite or is_ours(record)):
            raise FileError(record, "expected the record of a collection, got another file")
        if overwrite or not path.exists() or not path.stat().st_size:
            return
        if not is_ours(path):
            raise FileError(
                path,
                f"was changed or is not Evenhand's: {parameter('overwrite', True)} replaces it",
            )
        there, now = read_document(record).get("identity") or {}, plain(self.identity)
        differences = [
            f"another {name}"
            if name in ("fingerprint", "system")
            else f"{name}: {there.get(name)} there, {now[name]} now"
            for name in now
            if there.get(name) != now[name]
        ]
        if differences:
            raise FileError(
                path,
                f"has answers of another run ({'; '.join(differences)}): give another file, or "
                f"{parameter('overwrite', True)} to replace it",
            )

    def save(self, output: str | os.PathLike[str], collected: CollectedAnswers) -> None:
        """Write the answers and, beside them, the record of the run."""
        rows, more = collected.rows, dict(self.about)
        about: Any = more.pop("prompts", {})
        with open_rows(output, private=True) as write:
            write({name: [row[name] for row in rows] for name in rows[0]})
        content = document(
            command="answers collect",
            file=Path(output).name,
            sha256=digest_of(output),
            identity=self.identity,
            model=self.writer.about,
            samples=self.samples,
            prompts={"count": len(self.prompts), **about},
            dates=dict(zip(("first", "last"), collected.dates, strict=True)),
            complete=collected.complete,
            problem=collected.problem,
            requests={"all": len(self.requests), "made": len(rows)},
            outcomes=collected.outcomes,
            versions=versions("httpx2", "torch"),
            **more,
        )
        save_json(record_of(output), content, private=True)


def _answer_of(written: Written) -> dict[str, Any]:
    """What is stored of an answer."""
    return {
        "text": written.text,
        "finish": written.finish,
        "tokens": written.tokens,
        "error": written.error,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _seed_of(seed: int, prompt: str, sample: int) -> int:
    """The seed of a sample, of 31 bits, as every server takes it."""
    digest = blake2b(f"{seed} {prompt} {sample}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") >> 1


def prepare(
    source: ModelSource | Writer,
    prompts: Source | Sequence[Prompt],
    *,
    samples: int | None = None,
    settings: WriteSettings | None = None,
    endpoint: EndpointSettings | None = None,
    system: str = "",
    prompt: str | None = None,
    seed: int = 0,
    device: str = "auto",
    dtype: DType = "float32",
    cache: str | os.PathLike[str] | None = None,
) -> Collection:
    """What `collect` would ask, whose parameters these are; its `size()` says how much that is.

    Examples
    --------
    >>> size = prepare("tiny-causal", [Prompt("The nurse said")], samples=3).size()
    >>> size.requests, size.new_tokens
    (3, 768)
    """
    settings = settings or WriteSettings()
    if samples is None:
        samples = 1 if settings.temperature == 0 else SAMPLES
    check_whole(samples=samples)
    listed = _read(prompts, prompt, system)
    return Collection(
        prompts=listed,
        writer=open_writer(source, endpoint=endpoint, device=device, dtype=dtype),
        samples=samples,
        settings=settings,
        seed=seed,
        cache=None if cache is None else Cache(cache, private=True),
        about={
            "prompts": _about(prompts, listed),
            "system": system,
            **({"device": device, "dtype": dtype} if not is_address(source) else {}),
        },
    )


def collect(
    source: ModelSource | Writer,
    prompts: Source | Sequence[Prompt],
    *,
    samples: int | None = None,
    settings: WriteSettings | None = None,
    endpoint: EndpointSettings | None = None,
    system: str = "",
    prompt: str | None = None,
    group: str | Sequence[str] = (),
    seed: int = 0,
    max_requests: int | None = None,
    max_tokens: int | None = None,
    device: str = "auto",
    dtype: DType = "float32",
    output: str | os.PathLike[str] | None = None,
    cache: str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Answers:
    """Put every prompt to a model several times.

    Parameters
    ----------
    source : str, path or model in memory
        An address such as `http://127.0.0.1:8080/v1`, or a causal language model, as for
        `open_writer`.
    prompts : path, DataFrame or sequence of Prompt
        The prompts, as for `read_prompts`.
    samples : int, optional
        Answers per prompt; by default 25, with a temperature of 0 one.
    settings : WriteSettings, optional
        Temperature, top-p and the length of the answers.
    endpoint : EndpointSettings, optional
        How requests are sent to an address.
    system : str
        A system prompt for all prompts without one.
    prompt : str, optional
        The column of the prompts.
    group : str or sequence of str
        The columns of the groups that prompts name.
    seed : int
        Each sample has a seed of its own, derived from this one and the prompt.
    max_requests, max_tokens : int, optional
        The most requests, and tokens of prompts and answers together, that this call may take.
    device, dtype : str
        Where and in which data type a model in process computes.
    output : path, optional
        A file that ends in .jsonl, one row per answer. The record of the run is written beside it
        as `NAME.run.json`. Only this user can read what is written.
    cache : path, optional
        The folder of the answers so far; by default `NAME.cache` beside the output. Without
        either nothing is resumed.
    overwrite : bool
        Whether an output with other answers is replaced.
    progress : callable, optional
        Called with the number of answers and that of all.

    Returns
    -------
    Answers
        A warning says how many requests failed or were not made.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"prompt": ["The nurse said", "The judge said"]})
    >>> answers = collect("tiny-causal", table, samples=2, settings=WriteSettings(max_new_tokens=5))
    >>> len(answers), answers.items[0]
    (4, 'The nurse said')
    """
    if output is not None and cache is None:
        cache = cache_of(output)
    collection = prepare(
        source,
        prompts,
        samples=samples,
        settings=settings,
        endpoint=endpoint,
        system=system,
        prompt=prompt,
        seed=seed,
        device=device,
        dtype=dtype,
        cache=cache,
    )
    if output is not None:
        collection.check(output, overwrite=overwrite)
    collected = collection.ask(Budget(max_requests, max_tokens), progress)
    if output is not None:
        collection.save(output, collected)
    if collected.problem:
        warnings.warn(collected.problem, stacklevel=2)
    import pandas as pd

    answers = read_answers(pd.DataFrame(collected.rows), group=group)
    return replace(answers, name=collection.writer.name)


def cache_of(output: str | os.PathLike[str]) -> Path:
    """The folder of the answers so far, beside the output."""
    return Path(output).with_suffix(".cache")


def _read(prompts: Source | Sequence[Prompt], column: str | None, system: str) -> list[Prompt]:
    if isinstance(prompts, Sequence) and not isinstance(prompts, str):
        given = [each if each.system else replace(each, system=system) for each in prompts]
    else:
        given = read_prompts(prompts, prompt=column, system=system)
    if not given:
        raise InputError("prompts: expected some, got none")
    for name in dict.fromkeys(name for each in given for name in each.columns):
        if name in OWN:
            raise InputError(
                f"prompts: expected no column '{name}', which answers have: give it another name"
            )
    return given


def _about(source: Source | Sequence[Prompt], listed: Sequence[Prompt]) -> dict[str, object]:
    """The name of the prompts, and the digest of their file or, without one, of their content."""
    if isinstance(source, str | os.PathLike):
        if Path(source).is_file():
            return {"name": public_name(source), "sha256": digest_of(source)}
        name = os.fspath(source)
    else:
        name = type(source).__name__
    content = to_json([[each.text, each.system, each.columns] for each in listed])
    return {"name": name, "content_sha256": sha256(content.encode()).hexdigest()}
