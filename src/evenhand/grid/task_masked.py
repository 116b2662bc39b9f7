"""Cells that measure a masked language model, as `evenhand masked …` does; also shard by shard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from evenhand.errors import InputError
from evenhand.grid import files
from evenhand.grid.task import Task, Workspace

__all__ = ["TASK", "MaskedSettings"]

OPTIONS: Mapping[str, tuple[str, ...]] = {
    "score": ("data", "shard", "shards", "out", "rows", "filter", "keep_someone", "top_k", "delta",
              "least", "words", "seed"),
    "associate": ("data", "templates", "professions", "persons"),
    "phrases": ("sets", "vectors", "seed"),
    "crows": ("data", "method", "seed"),
}  # fmt: skip
"""The options of each measure; those of others do not touch a cell's result."""
ENDINGS = (".gz", ".bz2", ".zst", ".jsonl", ".ndjson", ".json", ".txt")


class MaskedSettings(BaseModel):
    """What one cell asks of one model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: str = Field("mini", description="mini, the path of a folder, or hf:NAME.")
    measure: Literal["score", "associate", "phrases", "crows"] = "score"
    data: str = Field(
        "", description="score: masked sentences (by default the embedded ones); associate: a "
        "table as BEC-Pro; crows: the pairs, needed."
    )  # fmt: skip
    shard: str = Field(
        "", description="score: one file of many, whose scores are pooled; `shards: PATTERN` in "
        "fixed makes an axis of all that match."
    )  # fmt: skip
    out: str = Field(
        "", description="score: the folder for every sentence's score, a file a shard; {model} and "
        "any other setting in braces is filled in."
    )  # fmt: skip
    rows: Literal["jsonl", "csv", "parquet"] = Field("jsonl", description="How out is written.")
    filter: bool = Field(False, description="The sentences are plain text: filter and mask them.")
    keep_someone: bool = Field(False, description='With filter: keep "someone" too.')
    top_k: int = Field(10, ge=1, description="Gender words are looked for among the likeliest k.")
    delta: float = Field(0.05, ge=0, lt=0.5, description="Scores within .5 ± delta are neutral.")
    least: float = Field(0.05, ge=0, le=1, description="Undecided below this probability.")
    words: Literal["all", "pronouns"] = "all"
    templates: str | None = Field(None, description="associate: your own sentences.")
    professions: str | None = Field(None, description="associate: your own professions.")
    persons: tuple[str, ...] = Field((), description="associate: your own pairs, as he/she.")
    sets: tuple[str, ...] = Field((), description="phrases: names of sets, or a TOML file.")
    vectors: tuple[str, ...] = Field((), description="phrases: embed by these word vectors too.")
    method: Literal["shared", "unmasked"] = Field("shared", description="crows: which tokens.")
    dtype: Literal["float32", "bfloat16", "float16"] = "float32"
    int8: bool = Field(False, description="8-bit weights on the CPU: faster, no longer exact.")
    prob: float = Field(0.95, gt=0, lt=1, description="Probability of the intervals.")
    seed: int = Field(0, ge=0)

    @property
    def chosen(self) -> dict[str, Any]:
        """The options that count for the measure."""
        return {name: getattr(self, name) for name in OPTIONS[self.measure] if name != "shards"}

    @property
    def source(self) -> str:
        """The file of sentences, or nothing for the embedded ones."""
        return self.shard or self.data

    @property
    def folder(self) -> Path:
        return files.folder_of(self.out, self.model_dump())


class _Masked:
    name = "masked"
    version = 1
    settings = MaskedSettings

    def expand(
        self, fixed: Mapping[str, Any], axes: Mapping[str, Sequence[Any]]
    ) -> tuple[dict[str, Any], dict[str, list[Any]]]:
        """`shards: PATTERN` becomes an axis; options and axes that cannot be meant are refused."""
        files.refuse_unused(fixed, axes, "measure", OPTIONS, "score")
        rest, varied = files.expand_shards(fixed, axes, lambda shard: rows_name(shard, ""))
        usual = {name: one.default for name, one in MaskedSettings.model_fields.items()}
        files.refuse_shared_files(
            rest, varied, usual, lambda one: bool(one["out"]) and one["measure"] == "score"
        )
        return rest, varied

    def check(self, settings: MaskedSettings) -> None:
        _check_model(settings.model)
        if settings.measure == "crows" and not settings.data:
            raise InputError("data: expected the file of pairs for crows, got none")
        if settings.data and settings.shard:
            raise InputError("shard: expected either data or shard, got both of them")
        for name, path in _files_of(settings).items():
            if not Path(path).is_file():
                raise InputError(f"{name}: expected a file, got '{path}'")
        if settings.keep_someone and not settings.filter:
            raise InputError("keep_someone: goes with filter: true")
        if settings.filter and not settings.source:
            raise InputError("filter: goes with data or shard, got neither of them")
        if settings.out and not settings.source:
            raise InputError("out: goes with data or shard, got neither of them")
        if len({PurePath(each).name for each in settings.vectors}) < len(settings.vectors):
            raise InputError("vectors: expected files of different names, got some of the same")
        own = settings.templates or settings.professions or settings.persons
        if settings.measure == "associate" and settings.data and own:
            raise InputError(
                "data: has its own sentences, expected no templates, professions or persons"
            )
        if settings.out:
            target = settings.folder / rows_name(settings.source, settings.rows)
            if target.resolve() == Path(settings.source).resolve():
                raise InputError(f"out: '{target}' is what is read: expected another folder")

    def identity(self, settings: MaskedSettings) -> dict[str, Any]:
        chosen = settings.chosen | {"dtype": settings.dtype, "int8": settings.int8}
        chosen |= {name: files.file_digest(path) for name, path in _files_of(settings).items()}
        out = bool(chosen.pop("out", ""))
        if not out:
            chosen.pop("rows", None)
        if settings.shard:
            chosen["shard"] = {
                "name": PurePath(settings.shard).name, "content": chosen["shard"],
            }  # fmt: skip
        elif out:
            chosen["named"] = PurePath(settings.data).name
        return {
            "measure": settings.measure,
            "model": _model_identity(settings),
            "options": chosen | {"prob": settings.prob, "written": out},
            "asked": _asked(settings),
        }

    def group(self, settings: MaskedSettings) -> str:
        return f"{settings.model} {settings.dtype} {settings.int8}"

    def compute(self, settings: MaskedSettings, place: Workspace) -> dict[str, Any]:
        from evenhand.grid.masked_material import model_of
        from evenhand.grid.masked_measures import MEASURES

        named = _model_identity(settings)
        model = model_of(
            settings.model, named["name"], named["content"], place.device, settings.dtype,
            settings.int8,
        )  # fmt: skip
        found = MEASURES[settings.measure](model, settings, place)
        return files.plain({"measure": settings.measure, **found})

    def intact(self, settings: MaskedSettings, result: Mapping[str, Any]) -> bool:
        """Whether the scores that the cell wrote are still there and the same."""
        outputs = result.get("outputs", [])
        return not outputs or files.are_intact(settings.folder, outputs)

    def row(self, result: Mapping[str, Any]) -> dict[str, Any]:
        from evenhand.grid.masked_measures import figures

        return figures(result)

    def pool(self, results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The scores of all shards as one: those of one run over the joined sentences."""
        from evenhand.grid.masked_shards import pooled

        return pooled(results)


TASK: Task = _Masked()


def rows_name(source: str, ending: str) -> str:
    """The name of the file with the scores of a file of sentences.

    >>> rows_name("corpus/part-7.jsonl.zst", "csv")
    'part-7.csv'
    """
    name = PurePath(source).name
    while (end := PurePath(name).suffix) in ENDINGS:
        name = name.removesuffix(end)
    return f"{name}.{ending}"


def _check_model(model: str) -> None:
    from evenhand.masked.model import EMBEDDED

    folder = Path(model)
    if model in EMBEDDED or (model.startswith("hf:") and len(model) > 3):
        return
    if not (folder / "config.json").is_file():
        raise InputError(
            f"model: expected {', '.join(EMBEDDED)}, a folder with config.json or hf:NAME, got "
            f"'{model}'"
        )


def _files_of(settings: MaskedSettings) -> dict[str, str]:
    """The files that the options of the measure name, by option."""
    names = ("data", "shard", "templates", "professions")
    return {name: path for name in names if (path := settings.chosen.get(name))}


def _model_identity(settings: MaskedSettings) -> dict[str, str]:
    """The model by its name, which the results have, and by what it is made of."""
    from evenhand.masked.model import EMBEDDED

    source = settings.model
    known = source in EMBEDDED or source.startswith(files.HUB)
    name = source if known else Path(source).resolve().name
    return {"name": name, "content": files.model_digest(source)}


def _asked(settings: MaskedSettings) -> str:
    """The hash of the word lists and sentences that are asked about, embedded ones too."""
    from evenhand.grid import masked_material as material

    if settings.measure == "score" and not settings.source:
        return files.content_digest(material.sentences())
    if settings.measure == "associate" and not settings.data:
        return files.content_digest(material.associated(settings))
    if settings.measure == "phrases":
        return files.content_digest((material.lists(settings), material.named(settings.vectors)))
    return ""
