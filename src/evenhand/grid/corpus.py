"""Cells that rewrite, filter or measure one shard of a corpus, as commands do one file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePath
from typing import Any, Literal

from pydantic import Field, create_model

from evenhand.errors import InputError, UnknownNameError
from evenhand.grid import files
from evenhand.grid.measures import (
    ShardSettings,
    ShardTask,
    add_options,
    figures,
    given_options,
    instrument_identities,
    instrument_keys,
    option_fields,
    option_keys,
)
from evenhand.grid.task import Workspace
from evenhand.instruments import Instrument, Job, Run, instruments, options_of, plan, run_jobs
from evenhand.results import Measurement
from evenhand.statistics.intervals import wilson
from evenhand.text.coreference import resolver
from evenhand.text.corpus.compression import codec_of
from evenhand.text.corpus.formats import FORMATS, ending_of, make_form
from evenhand.text.corpus.pipeline import CorpusWork, RewriteWork, stream
from evenhand.text.grammar import judge
from evenhand.text.people import finder
from evenhand.text.rewrite.names import Anonymize
from evenhand.text.rewrite.neutralize import Neutralize
from evenhand.text.rewrite.swap import Swap
from evenhand.text.structural import REASONS, STEPS, Filter

OPERATIONS: Mapping[str, Any] = {
    "filter": Filter,
    "swap": Swap,
    "substitute": Swap,
    "neutralize": Neutralize,
    "anonymize": Anonymize,
}
"""Operations that write files; the options of these classes are keys of the grid."""
LOADERS: Mapping[str, Callable[[str], Any]] = {
    "tagger": judge,
    "entities": finder,
    "resolver": resolver,
}
"""Keys that name what another package may have."""


def _keys_of(operation: str) -> tuple[str, ...]:
    """Return the keys of an operation; only these are part of a cell's identity."""
    if operation == "filter":
        more = ["text", "input_format", "rejected"]
    else:
        more = ["text", "input_format", "append", "edits"]
    more += ["seed"] if OPERATIONS[operation] is Swap else []
    return (*more, *(option_keys(option)[-1] for option in options_of(OPERATIONS[operation])))


def _declared() -> dict[str, Any]:
    """Return the fields of a cell that the operations declare."""
    fields: dict[str, Any] = {}
    for cls in OPERATIONS.values():
        options = options_of(cls)
        if cls is Swap:  # swap and substitute differ in these defaults
            options = tuple(
                replace(option, default=None, optional=True)
                if option.name in ("names", "probability")
                else option
                for option in options
            )
        fields |= option_fields(options)
    return fields


class TextSettings(ShardSettings):
    """Settings of a cell that works on one shard; the options of corpus instruments are added."""

    operation: str = Field(
        description="filter, swap, substitute, neutralize, anonymize, or an instrument (odds)."
    )
    shard: str = Field(
        description="The file; `shards: PATTERN` in fixed makes an axis of all that match."
    )
    text: str | None = Field(None, description="The JSONL field or CSV column of the document.")
    input_format: Literal["lines", "jsonl", "csv", "tsv"] | None = Field(
        None, description="How records are cut; by default lines, or with text by the ending."
    )
    append: bool = Field(False, description="Keep each record, followed by its changed copy (CDA).")
    edits: bool = Field(False, description="Also write every edit, to SHARD.edits.jsonl.")
    rejected: bool = Field(False, description="Also write what is left out, with the reason.")

    @property
    def rewrites(self) -> bool:
        """Whether the operation writes files; otherwise it is an instrument."""
        return self.operation in OPERATIONS

    @property
    def options(self) -> dict[str, Any]:
        """The options of an operation that writes files, with its defaults."""
        options = {name: getattr(self, name) for name in _keys_of(self.operation)}
        if OPERATIONS[self.operation] is Swap:
            swap = self.operation == "swap"
            defaults = {"names": "off" if swap else "fixed", "rewrite_share": 1.0 if swap else 0.5}
            options |= {name: value for name, value in defaults.items() if options[name] is None}
        options["input_format"] = self.input_format or self._format_by_ending()
        return options

    def _format_by_ending(self) -> str:
        if not self.text:
            return "lines"
        if (ending := ending_of(self.shard)) not in FORMATS:
            raise InputError(
                f"input_format: expected one beside text, since {self.shard} does not end in "
                f"{', '.join(FORMATS)}"
            )
        return FORMATS[ending]

    @property
    def log_ending(self) -> str:
        """The ending of the second file, if there is one."""
        if self.operation == "filter":
            return ".rejected.jsonl" if self.rejected else ""
        return ".edits.jsonl" if self.edits else ""


class _Text(ShardTask[TextSettings]):
    name = "text"
    choice = "operation"

    @cached_property
    def settings(self) -> type[TextSettings]:
        base = create_model(
            "TextSettings", __base__=TextSettings, __module__=__name__, **_declared()
        )
        return add_options(base, "corpus")

    def keys(self) -> Mapping[str, Sequence[str]]:
        writing = {name: (*_keys_of(name), "out") for name in OPERATIONS}
        measuring = {name: instrument_keys(cls) for name, cls in instruments("corpus").items()}
        return writing | measuring

    def check(self, settings: TextSettings) -> None:
        shard = Path(settings.shard)
        known = [*OPERATIONS, *instruments("corpus")]
        if settings.operation not in known:
            raise UnknownNameError("operation", settings.operation, known)
        if not shard.is_file():
            raise InputError(f"shard: expected a file, got '{settings.shard}'")
        if not settings.rewrites:
            _jobs(settings)
            return
        if not settings.out:
            raise InputError("out: expected a folder for what is written, got none")
        if (settings.folder / shard.name).resolve() == shard.resolve():
            raise InputError(f"out: '{settings.out}' is where the shards are: expected another one")
        form = settings.options["input_format"]
        if form == "lines" and settings.text is not None:
            raise InputError("text: goes with the formats jsonl, csv and tsv, not with lines")
        if form != "lines" and settings.text is None:
            raise InputError(f"text: expected the one that holds the document of {form}, got none")
        _make_work(settings.operation, settings.options)

    def identity(self, settings: TextSettings) -> dict[str, Any]:
        shard = {
            "name": PurePath(settings.shard).name,
            "content": files.file_digest(settings.shard),
        }
        if not settings.rewrites:
            return {
                "instruments": instrument_identities(_jobs(settings)),
                "shard": shard,
                "prob": settings.prob,
                "seed": settings.seed,
            }
        options = settings.options
        if options.get("pairs"):
            options["pairs"] = files.file_digest(options["pairs"])
        return {
            "operation": settings.operation,
            "shard": shard,
            "options": options,
            "with": _versions(options),
        }

    def group(self, settings: TextSettings) -> str:
        return settings.operation

    def compute(self, settings: TextSettings, workspace: Workspace) -> dict[str, Any]:
        if not settings.rewrites:
            return _measure(settings)
        name = PurePath(settings.shard).name
        work = _make_work(settings.operation, settings.options)
        written = [workspace.work / name]
        if settings.log_ending:
            written.append(workspace.work / (name + settings.log_ending))
        counts = stream(
            [settings.shard],
            written[0],
            work,
            form=make_form(settings.options["input_format"], settings.text),
            edits=written[1] if settings.log_ending else None,
            # the blocks of a zstd frame would show where it was resumed
            restart=codec_of(name) == "zst",
            progress=workspace.step(name),
            fingerprint=f"{work!r} {self.identity(settings)}",
            folders=False,
        )
        outputs = [files.publish(path, settings.folder / path.name) for path in written]
        return {"operation": settings.operation, **_count(counts), "outputs": outputs}

    def row(self, result: Mapping[str, Any]) -> dict[str, Any]:
        if "tally" in result:
            return dict(result["tally"]["counts"])
        if "measurements" in result:
            return figures(result["measurements"])
        part = "accepted" if result["operation"] == "filter" else "changed"
        count = int(result[part])
        value, low, high = wilson(count, result["records"])
        edits = {"edits": result["edits"]} if part == "changed" else {}
        return {
            "records": result["records"],
            part: count,
            **edits,
            f"share {part}": {"value": value, "low": low, "high": high},
            "bytes": sum(output["bytes"] for output in result["outputs"]),
        }

    def pool(self, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """Join all shards: the sums of the counts, or the measurement of all rows."""
        operations = {result["operation"] for result in results}
        if len(operations) != 1:
            received = ", ".join(sorted(operations)) or "none"
            raise InputError(f"pooled: expected results of one operation, got {received}")
        (operation,) = operations
        shards = {"operation": operation, "shards": len(results)}
        if operation not in OPERATIONS:
            return files.plain({**shards, "measurements": [_pool_tallies(operation, results)]})
        filtered = operation == "filter"
        names = ("records", "accepted") if filtered else ("records", "changed", "edits")
        reasons = Counter[str]()
        for result in results:
            reasons.update(result["reasons"])
        return {
            **shards,
            **{name: sum(int(result[name]) for result in results) for name in names},
            "reasons": dict(sorted(reasons.items())),
            "outputs": [output for result in results for output in result["outputs"]],
        }


TASK = _Text()


# ---- instruments


def _jobs(settings: TextSettings) -> list[Job]:
    options = given_options([instruments("corpus")[settings.operation]], settings)
    return plan("corpus", None, settings.operation, options)


def _measure(settings: TextSettings) -> dict[str, Any]:
    """Tally the shard where the instrument can pool tallies, and measure it otherwise."""
    from evenhand.text.tables import Corpus

    corpus = Corpus(settings.shard, PurePath(settings.shard).name)
    jobs = _jobs(settings)
    result: dict[str, Any] = {"operation": settings.operation, "prob": settings.prob}
    if type(jobs[0].instrument).tally is not Instrument.tally:
        return files.plain({**result, "tally": jobs[0].instrument.tally(corpus)})
    run = Run(seed=settings.seed, prob=settings.prob)
    return files.plain({**result, "measurements": list(run_jobs(corpus, jobs, run, strict=True))})


def _pool_tallies(operation: str, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    probs = {result["prob"] for result in results}
    if len(probs) > 1:
        raise InputError(f"pooled: expected shards of the same prob, got {sorted(probs)}")
    if any("tally" not in result for result in results):
        raise InputError(f"pooled: {operation} cannot be pooled over shards")
    pool: Callable[..., Measurement] = instruments("corpus")[operation].pool
    tallies = [result["tally"] for result in results]
    return pool(tallies, prob=probs.pop()).to_dict(items=False)


# ---- operations that write files


def _make_work(operation: str, options: Mapping[str, Any]) -> CorpusWork | RewriteWork:
    """Return what is done to each block; a missing package or model is an error."""
    for key, load in LOADERS.items():
        if key in options:
            load(options[key])
    cls = OPERATIONS[operation]
    own = {option.name: options[option_keys(option)[-1]] for option in options_of(cls)}
    if cls is Filter:
        return Filter(**own, log=options["rejected"])
    seed = {"seed": options["seed"]} if cls is Swap else {}
    return RewriteWork(cls(**own, **seed), append=options["append"])


def _versions(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions of other packages and models that the result depends on."""
    given = {options.get(name) for name in LOADERS}
    given -= {None, "rules", "embedded"}
    names = sorted({part for name in given for part in str(name).split(":") if part})
    versions = {}
    for name in names:
        try:
            versions[name] = version(name)
        except (PackageNotFoundError, ValueError):
            versions[name] = ""
    return versions


def _count(counts: Mapping[str, int]) -> dict[str, Any]:
    """Return the counts of a shard: records, how many were accepted or changed, and reasons."""
    if "read" in counts:
        return {
            "records": counts["read"],
            "accepted": counts.get("accepted", 0),
            "steps": {step: counts.get(step, 0) for step in STEPS},
            "reasons": {reason: counts.get(f"reason:{reason}", 0) for reason in REASONS},
        }
    rules = {k.removeprefix("rule:"): n for k, n in counts.items() if k.startswith("rule:")}
    return {
        "records": counts.get("documents", 0),
        "changed": counts.get("changed", 0),
        "edits": counts.get("edits", 0),
        "reasons": dict(sorted(rules.items())),
    }
