"""Cells that rewrite, filter or count one shard of a corpus, as `evenhand text …` does one file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from evenhand.errors import InputError
from evenhand.grid import files
from evenhand.grid.task import Task, Workspace
from evenhand.intervals import wilson

__all__ = ["TASK", "TextSettings"]

Operation = Literal["filter", "swap", "substitute", "neutralize", "anonymize", "odds"]
Code = str | int | float

_SWAP = ("direction", "names", "probability", "seed", "kinds", "unsafe", "pairs", "keep_named",
         "judge")  # fmt: skip
_REWRITE = ("field", "format", "append", "edits")
OPTIONS: Mapping[str, tuple[str, ...]] = {
    "filter": ("field", "format", "resolver", "keep_someone", "keep_names", "min_confidence",
               "sentences", "mask", "rejected"),
    "swap": (*_REWRITE, *_SWAP),
    "substitute": (*_REWRITE, *_SWAP),
    "neutralize": (*_REWRITE, "nouns", "reflexive", "judge"),
    "anonymize": (*_REWRITE, "entities"),
    "odds": ("label", "gender", "text", "male", "female", "prob"),
}  # fmt: skip
"""The options of each operation; those of others do not touch a cell's result."""

ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "tsv"}
PACKED = (".gz", ".bz2", ".zst")


class TextSettings(BaseModel):
    """What one cell does to one shard."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    operation: Operation
    shard: str = Field(
        description="The file; `shards: PATTERN` in fixed makes an axis of all that match."
    )
    out: str = Field(
        "", description="The folder for what is written, named as the shard; {seed} and any other "
        "setting in braces is filled in."
    )  # fmt: skip
    field: str | None = Field(None, description="The JSONL field or CSV column of the document.")
    format: Literal["lines", "jsonl", "csv", "tsv"] | None = Field(
        None, description="How records are cut; by default lines, or with field by the ending."
    )
    append: bool = Field(False, description="Keep each record, its changed copy behind it (CDA).")
    edits: bool = Field(False, description="Also write every edit, to SHARD.edits.jsonl.")
    direction: Literal["both", "male-to-female", "female-to-male"] = "both"
    names: Literal["fixed", "random", "off"] | None = Field(
        None, description="First names too; by default off for swap and fixed for substitute."
    )
    probability: float | None = Field(
        None, ge=0, le=1, description="That a document is rewritten, drawn from the seed and its "
        "number in the shard; by default 1 for swap and one half for substitute."
    )  # fmt: skip
    seed: int = Field(0, ge=0)
    kinds: tuple[str, ...] | None = Field(None, description="Only these kinds of words.")
    unsafe: bool = Field(False, description="Also pairs that are wrong in much running text.")
    pairs: str | None = Field(None, description="Your own pairs: CSV with female and male.")
    keep_named: bool = Field(False, description="Leave words that refer to somebody named.")
    judge: str = Field("embedded", description="Who tells her (him) from her (his).")
    nouns: Literal["roles", "all", "none"] = "roles"
    reflexive: Literal["themself", "themselves"] = "themself"
    entities: str = Field("rules", description="Who finds the names.")
    resolver: str = Field("rules", description="Who finds the antecedent.")
    keep_someone: bool = Field(False, description='Keep antecedents such as "someone".')
    keep_names: bool = Field(False, description="Keep antecedents that are a person's name.")
    min_confidence: float = Field(0.7, ge=0, le=1)
    sentences: bool = Field(False, description="Cut each document into its sentences.")
    mask: str = "[MASK]"
    rejected: bool = Field(False, description="Also write what is left out, with the reason.")
    label: str | None = Field(None, description="The column with each row's class.")
    gender: str | None = Field(None, description="The column with each row's gender.")
    text: str | None = Field(None, description="The column whose pronouns tell the gender.")
    male: Code | tuple[Code, ...] | None = Field(None, description="What means male, if not M.")
    female: Code | tuple[Code, ...] | None = Field(None, description="What means female.")
    prob: float = Field(0.95, gt=0, lt=1)

    @property
    def chosen(self) -> dict[str, Any]:
        """The options that count for the operation, defaults written out."""
        found = {name: getattr(self, name) for name in OPTIONS[self.operation]}
        if self.operation in ("swap", "substitute"):
            whole = self.operation == "swap"
            usual = {"names": "off" if whole else "fixed", "probability": 1.0 if whole else 0.5}
            found |= {name: value for name, value in usual.items() if found[name] is None}
        if "format" in found:
            found["format"] = self.format or (_by_ending(self.shard) if self.field else "lines")
        return found

    @property
    def folder(self) -> Path:
        return files.folder_of(self.out, self.model_dump())

    @property
    def log(self) -> str:
        """The ending of the second file, if one is asked for."""
        if self.operation == "filter":
            return ".rejected.jsonl" if self.rejected else ""
        return ".edits.jsonl" if self.edits else ""


class _Text:
    name = "text"
    version = 1
    settings = TextSettings

    def expand(
        self, fixed: Mapping[str, Any], axes: Mapping[str, Sequence[Any]]
    ) -> tuple[dict[str, Any], dict[str, list[Any]]]:
        """`shards: PATTERN` becomes an axis; options and axes that cannot be meant are refused."""
        files.refuse_idle(fixed, axes, "operation", OPTIONS)
        rest, varied = files.expand_shards(fixed, axes, lambda shard: PurePath(shard).name)
        usual = {name: one.default for name, one in TextSettings.model_fields.items()}
        files.refuse_shared_files(
            rest, varied, usual, lambda one: bool(one["out"]) and one["operation"] != "odds"
        )
        return rest, varied

    def check(self, settings: TextSettings) -> None:
        shard = Path(settings.shard)
        if not shard.is_file():
            raise InputError(f"shard: expected a file, got '{settings.shard}'")
        if settings.operation == "odds":
            if settings.label is None:
                raise InputError("label: expected the column with each row's class, got none")
            return
        if not settings.out:
            raise InputError("out: expected a folder for what is written, got none")
        if (settings.folder / shard.name).resolve() == shard.resolve():
            raise InputError(f"out: '{settings.out}' is where the shards are: expected another one")
        _check_form(settings)
        _work(settings)

    def identity(self, settings: TextSettings) -> dict[str, Any]:
        from evenhand.grid.text_work import outside

        chosen = settings.chosen
        if chosen.get("pairs"):
            chosen["pairs"] = files.file_digest(chosen["pairs"])
        return {
            "operation": settings.operation,
            "shard": {
                "name": PurePath(settings.shard).name,
                "content": files.file_digest(settings.shard),
            },
            "options": chosen,
            "with": outside(chosen),
        }

    def group(self, settings: TextSettings) -> str:
        return settings.operation

    def compute(self, settings: TextSettings, place: Workspace) -> dict[str, Any]:
        if settings.operation == "odds":
            from evenhand.grid.text_odds import counted

            return {"operation": "odds", **counted(settings.shard, **settings.chosen)}
        from evenhand.grid.text_work import form_of, told_of
        from evenhand.text.corpus.compression import codec_of
        from evenhand.text.corpus.pipeline import stream

        name, work = PurePath(settings.shard).name, _work(settings)
        made = [place.work / name, *([place.work / (name + settings.log)] if settings.log else [])]
        counts = stream(
            [settings.shard],
            made[0],
            work,
            form=form_of(settings.chosen["format"], settings.field),
            edits=made[1] if settings.log else None,
            # the blocks of a zstd frame would tell where it was taken up again
            resume=codec_of(name) != "zst",
            progress=_progress(place, name),
            fingerprint=f"{work!r} {self.identity(settings)}",
        )
        outputs = [files.publish(each, settings.folder / each.name) for each in made]
        return {"operation": settings.operation, **told_of(counts), "outputs": outputs}

    def intact(self, settings: TextSettings, result: Mapping[str, Any]) -> bool:
        """Whether what the cell wrote is still there and the same."""
        outputs = result.get("outputs", [])
        return not outputs or files.intact(settings.folder, outputs)

    def row(self, result: Mapping[str, Any]) -> dict[str, Any]:
        if result["operation"] == "odds":
            from evenhand.grid.text_odds import figures

            return figures(result)
        part = "kept" if result["operation"] == "filter" else "changed"
        value, low, high = wilson(result[part], result["records"])
        found = {"records": result["records"], part: result[part]}
        found |= {"edits": result["edits"]} if part == "changed" else {}
        return {
            **found,
            f"share {part}": {"value": value, "low": low, "high": high},
            "bytes": sum(output["bytes"] for output in result["outputs"]),
        }

    def pool(self, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """All shards as one: the sums of the counts, or the odds ratios over all rows."""
        operations = {result["operation"] for result in results}
        if len(operations) != 1:
            got = ", ".join(sorted(operations)) or "none"
            raise InputError(f"pooled: expected results of one operation, got {got}")
        if operations == {"odds"}:
            from evenhand.grid.text_odds import pooled

            return files.plain({"operation": "odds", "shards": len(results), **pooled(results)})
        numbers = (
            ("records", "kept") if operations == {"filter"} else ("records", "changed", "edits")
        )
        reasons = Counter[str]()
        for result in results:
            reasons.update(result["reasons"])
        return {
            "operation": operations.pop(),
            "shards": len(results),
            **{name: sum(result[name] for result in results) for name in numbers},
            "reasons": dict(sorted(reasons.items())),
            "outputs": [output for result in results for output in result["outputs"]],
        }


TASK: Task = _Text()


def _work(settings: TextSettings) -> Any:
    """What is done to each block; what cannot be done is told here."""
    from evenhand.grid.text_work import work_of

    return work_of(settings.operation, settings.chosen)


def _by_ending(shard: str) -> str:
    """The format that the shard's name tells, apart from its compression."""
    name = PurePath(shard.lower())
    ending = PurePath(name.stem).suffix if name.suffix in PACKED else name.suffix
    if ending not in ENDINGS:
        raise InputError(
            f"format: expected one beside field, since {shard} does not end in {', '.join(ENDINGS)}"
        )
    return ENDINGS[ending]


def _check_form(settings: TextSettings) -> None:
    form = settings.chosen["format"]
    if form == "lines" and settings.field is not None:
        raise InputError("field: goes with the formats jsonl, csv and tsv, not with lines")
    if form != "lines" and settings.field is None:
        raise InputError(f"field: expected the one that holds the document of {form}, got none")


def _progress(place: Workspace, name: str) -> Any:
    if (tell := place.progress) is None:
        return None
    return lambda done, total: tell(name, done, total or done, "bytes")
