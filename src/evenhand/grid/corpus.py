"""Cells that rewrite, filter or measure one shard of a corpus, as `evenhand text` does one file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path, PurePath
from typing import Any, Literal

from pydantic import BaseModel, Field

from evenhand.errors import InputError, UnknownNameError
from evenhand.grid import files
from evenhand.grid.measures import (
    MeasureSettings,
    add_options,
    figures,
    given_options,
    instrument_identities,
    option_keys,
)
from evenhand.grid.task import Task, Workspace
from evenhand.instruments import Run, instruments, plan, run_jobs
from evenhand.statistics.intervals import wilson
from evenhand.text.block import Block
from evenhand.text.corpus.formats import Csv, Form, Jsonl, Layout, Lines, Records
from evenhand.text.corpus.pipeline import Done, RewriteWork, Work
from evenhand.text.structural import REASONS, STEPS, Filter

__all__ = ["TASK", "TextSettings"]

_SWAP = (
    "direction",
    "names",
    "rewrite_share",
    "seed",
    "kind",
    "unsafe",
    "pairs",
    "keep_named",
    "tagger",
)
NAMES = {"rewrite_share": "probability", "kind": "kinds", "tagger": "judge"}
"""Keys of a grid that have another name in the rewriters."""
_STREAM = ("text", "input_format", "append", "edits")
REWRITING: Mapping[str, tuple[str, ...]] = {
    "filter": (
        "text",
        "input_format",
        "resolver",
        "keep_someone",
        "keep_names",
        "min_confidence",
        "split_sentences",
        "mask",
        "rejected",
    ),
    "swap": (*_STREAM, *_SWAP),
    "substitute": (*_STREAM, *_SWAP),
    "neutralize": (*_STREAM, "nouns", "reflexive", "tagger"),
    "anonymize": (*_STREAM, "entities"),
}
"""The options of the operations that write files; only these are part of a cell's identity."""

FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "tsv"}
COMPRESSED = (".gz", ".bz2", ".zst")


class TextSettings(MeasureSettings):
    """What one cell does to one shard; the options of the instruments of a corpus come along."""

    operation: str = Field(
        description="filter, swap, substitute, neutralize, anonymize, or an instrument (odds)."
    )
    shard: str = Field(
        description="The file; `shards: PATTERN` in fixed makes an axis of all that match."
    )
    out: str = Field(
        "",
        description="The folder for what is written, named as the shard; {seed} and any other "
        "setting in braces is filled in.",
    )
    text: str | None = Field(None, description="The JSONL field or CSV column of the document.")
    input_format: Literal["lines", "jsonl", "csv", "tsv"] | None = Field(
        None, description="How records are cut; by default lines, or with text by the ending."
    )
    append: bool = Field(False, description="Keep each record, its changed copy behind it (CDA).")
    edits: bool = Field(False, description="Also write every edit, to SHARD.edits.jsonl.")
    direction: Literal["both", "male-to-female", "female-to-male"] = "both"
    names: Literal["fixed", "random", "off"] | None = Field(
        None, description="First names too; by default off for swap and fixed for substitute."
    )
    rewrite_share: float | None = Field(
        None,
        ge=0,
        le=1,
        description="That a document is rewritten, drawn from the seed and its number in the "
        "shard; by default 1 for swap and one half for substitute.",
    )
    kind: tuple[str, ...] | None = Field(None, description="Only these kinds of words.")
    unsafe: bool = Field(False, description="Also pairs that are wrong in much running text.")
    pairs: str | None = Field(None, description="Your own pairs: CSV with female and male.")
    keep_named: bool = Field(False, description="Leave words that refer to somebody named.")
    tagger: str = Field("embedded", description="What distinguishes her (him) from her (his).")
    nouns: Literal["roles", "all", "none"] = "roles"
    reflexive: Literal["themself", "themselves"] = "themself"
    entities: str = Field("rules", description="What finds the names.")
    resolver: str = Field("rules", description="What finds the antecedent.")
    keep_someone: bool = Field(False, description='Keep antecedents such as "someone".')
    keep_names: bool = Field(False, description="Keep antecedents that are a person's name.")
    min_confidence: float = Field(0.7, ge=0, le=1)
    split_sentences: bool = Field(False, description="Cut each document into its sentences.")
    mask: str = "[MASK]"
    rejected: bool = Field(False, description="Also write what is left out, with the reason.")

    @property
    def rewrites(self) -> bool:
        """Whether the operation writes files; otherwise it is an instrument."""
        return self.operation in REWRITING

    @property
    def options(self) -> dict[str, Any]:
        """The options of an operation that writes files, with its defaults."""
        options = {name: getattr(self, name) for name in REWRITING[self.operation]}
        if self.operation in ("swap", "substitute"):
            swap = self.operation == "swap"
            defaults = {"names": "off" if swap else "fixed", "rewrite_share": 1.0 if swap else 0.5}
            options |= {name: value for name, value in defaults.items() if options[name] is None}
        if "input_format" in options:
            by_name = _format_of(self.shard) if self.text else "lines"
            options["input_format"] = self.input_format or by_name
        return options

    @property
    def folder(self) -> Path:
        return files.folder_of(self.out, self.model_dump())

    @property
    def log_ending(self) -> str:
        """The ending of the second file, if there is one."""
        if self.operation == "filter":
            return ".rejected.jsonl" if self.rejected else ""
        return ".edits.jsonl" if self.edits else ""


class _Text:
    name = "text"
    version = 1

    @cached_property
    def settings(self) -> type[BaseModel]:
        return add_options(TextSettings, "corpus")

    def expand(
        self, fixed: Mapping[str, Any], axes: Mapping[str, Sequence[Any]]
    ) -> tuple[dict[str, Any], dict[str, list[Any]]]:
        """Write `shards: PATTERN` out as an axis; refuse options and axes without an effect."""
        files.refuse_unused(fixed, axes, "operation", {**REWRITING, **_instrument_options()})
        rest, varied = files.expand_shards(fixed, axes, lambda shard: PurePath(shard).name)
        defaults = {name: field.default for name, field in self.settings.model_fields.items()}
        files.refuse_shared_files(
            rest, varied, defaults, lambda given: bool(given["out"]) and _rewrites(given)
        )
        return rest, varied

    def check(self, settings: TextSettings) -> None:
        shard = Path(settings.shard)
        known = [*REWRITING, *instruments("corpus")]
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
        from evenhand.text.corpus.compression import codec_of
        from evenhand.text.corpus.pipeline import stream

        name = PurePath(settings.shard).name
        work = _make_work(settings.operation, settings.options)
        written = [workspace.work / name]
        if settings.log_ending:
            written.append(workspace.work / (name + settings.log_ending))
        counts = stream(
            [settings.shard],
            written[0],
            work,
            form=_form(settings.options["input_format"], settings.text),
            edits=written[1] if settings.log_ending else None,
            # the blocks of a zstd frame would show where it was resumed
            restart=codec_of(name) == "zst",
            progress=_byte_progress(workspace, name),
            fingerprint=f"{work!r} {self.identity(settings)}",
        )
        outputs = [files.publish(path, settings.folder / path.name) for path in written]
        return {"operation": settings.operation, **_count(counts), "outputs": outputs}

    def intact(self, settings: TextSettings, result: Mapping[str, Any]) -> bool:
        """Whether the files that the cell wrote are still there and the same."""
        outputs = result.get("outputs", [])
        return not outputs or files.are_intact(settings.folder, outputs)

    def row(self, result: Mapping[str, Any]) -> dict[str, Any]:
        if "tally" in result:
            return dict(result["tally"]["counts"])
        if "measurements" in result:
            return figures(result["measurements"])
        part = "accepted" if result["operation"] == "filter" else "changed"
        count = _number(result, part)
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
        if operation not in REWRITING:
            return files.plain({**shards, "measurements": [_pool_tallies(operation, results)]})
        filtered = operation == "filter"
        names = ("records", "accepted") if filtered else ("records", "changed", "edits")
        reasons = Counter[str]()
        for result in results:
            reasons.update(result["reasons"])
        return {
            **shards,
            **{name: sum(_number(result, name) for result in results) for name in names},
            "reasons": dict(sorted(reasons.items())),
            "outputs": [output for result in results for output in result["outputs"]],
        }


TASK: Task = _Text()


# ---- instruments


def _instrument_options() -> dict[str, tuple[str, ...]]:
    """Return the keys of each instrument of a corpus."""
    return {
        name: tuple(key for option in cls.declaration.options for key in option_keys(option))
        for name, cls in instruments("corpus").items()
    }


def _rewrites(given: Mapping[str, Any]) -> bool:
    return given["operation"] in REWRITING


def _jobs(settings: TextSettings) -> Any:
    names = {o.name for o in instruments("corpus")[settings.operation].declaration.options}
    options = given_options("corpus", settings)
    chosen = {name: value for name, value in options.items() if name in names}
    return plan("corpus", None, settings.operation, chosen)


def _measure(settings: TextSettings) -> dict[str, Any]:
    """Tally the shard where the instrument can pool tallies, and measure it otherwise."""
    from evenhand.text.tables import Corpus

    corpus = Corpus(settings.shard, PurePath(settings.shard).name)
    jobs = _jobs(settings)
    result: dict[str, Any] = {"operation": settings.operation, "prob": settings.prob}
    if hasattr(jobs[0].instrument, "tally"):
        return files.plain({**result, "tally": jobs[0].instrument.tally(corpus)})
    run = Run(seed=settings.seed, prob=settings.prob)
    return files.plain({**result, "measurements": list(run_jobs(corpus, jobs, run, strict=True))})


def _pool_tallies(operation: str, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    probs = {result["prob"] for result in results}
    if len(probs) > 1:
        raise InputError(f"pooled: expected shards of the same prob, got {sorted(probs)}")
    if any("tally" not in result for result in results):
        raise InputError(f"pooled: {operation} cannot be pooled over shards")
    pool = instruments("corpus")[operation].pool
    pooled: dict[str, Any] = pool(
        [result["tally"] for result in results], prob=probs.pop()
    ).to_dict(items=False)
    return pooled


# ---- operations that write files


def _form(name: str, field: str | None) -> Form:
    """Return how the records of a shard are cut."""
    if name == "lines" or field is None:
        return Lines()
    return Jsonl(field) if name == "jsonl" else Csv(field, delimiter="\t" if name == "tsv" else ",")


def _format_of(shard: str) -> str:
    """Return the format by the shard's ending, its compression ignored."""
    name = PurePath(shard.lower())
    ending = PurePath(name.stem).suffix if name.suffix in COMPRESSED else name.suffix
    if ending not in FORMATS:
        raise InputError(
            f"input_format: expected one beside text, since {shard} does not end in "
            f"{', '.join(FORMATS)}"
        )
    return FORMATS[ending]


def _make_work(operation: str, options: Mapping[str, Any]) -> Work | RewriteWork:
    """Return what is done to each block; a missing package or model is an error."""
    if operation == "filter":
        from evenhand.text.coreference import resolver

        resolver(options["resolver"])
        return _FilterWork(
            Filter(
                resolver=options["resolver"],
                someone=options["keep_someone"],
                names=options["keep_names"],
                min_confidence=options["min_confidence"],
                mask=options["mask"],
                split=options["split_sentences"],
                log=options["rejected"],
            )
        )
    from evenhand.text.grammar import judge
    from evenhand.text.people import finder
    from evenhand.text.rewrite.names import Anonymize
    from evenhand.text.rewrite.neutralize import Neutralize
    from evenhand.text.rewrite.swap import Swap

    own = {NAMES.get(name, name): options[name] for name in options if name not in _STREAM}
    if operation == "anonymize":
        finder(own["entities"])
        return _NamedRewriteWork(Anonymize(**own), append=options["append"])
    judge(own["judge"])
    rewriter = Neutralize(**own) if operation == "neutralize" else Swap(**own)
    return _NamedRewriteWork(rewriter, append=options["append"])


def _name_source(block: Block) -> Block:
    """Return the block with the name of its source: no folder appears in what is written."""
    return replace(block, source=PurePath(block.source).name)


@dataclass(frozen=True, slots=True)
class _FilterWork:
    """The filter, on blocks with the name of their source."""

    work: Filter

    def __call__(self, block: Block) -> Done:
        return self.work(_name_source(block))


@dataclass(frozen=True, slots=True)
class _NamedRewriteWork(RewriteWork):
    """A rewriting, on blocks with the name of their source."""

    def rewrite(self, records: Records, layout: Layout, *, log: bool = False) -> Done:
        named = replace(records, block=_name_source(records.block))
        return RewriteWork.rewrite(self, named, layout, log=log)


def _versions(options: Mapping[str, Any]) -> dict[str, str]:
    """Return the versions of other packages and models that the result depends on."""
    given = {options.get(name) for name in ("tagger", "entities", "resolver")}
    given -= {None, "rules", "embedded"}
    names = sorted({part for name in given for part in str(name).split(":") if part})
    versions = {}
    for name in names:
        try:
            versions[name] = version(name)
        except (PackageNotFoundError, ValueError):
            versions[name] = ""
    return versions


def _number(result: Mapping[str, Any], name: str) -> int:
    """Return a count of a result; results of version 0.1 call the accepted records kept."""
    return int(result[name] if name in result else result["kept"])


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


def _byte_progress(workspace: Workspace, name: str) -> Callable[[int, int | None], None] | None:
    if (progress := workspace.progress) is None:
        return None
    return lambda done, total: progress(name, done, total or done, "bytes")
