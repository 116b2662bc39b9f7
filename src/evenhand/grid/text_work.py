"""What a cell does to the records of its shard, made of its options; and what it counted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import PurePath
from typing import Any

from evenhand.text.block import Block
from evenhand.text.corpus.formats import Csv, Form, Jsonl, Layout, Lines, Records
from evenhand.text.corpus.pipeline import Done, RewriteWork, Work
from evenhand.text.rewrite import Rewriter
from evenhand.text.structural import REASONS, STEPS, Filter

__all__ = ["form_of", "outside", "told_of", "work_of"]

_OWN = {"rules", "embedded"}
_OF_ALL = ("field", "format", "append", "edits")


def form_of(name: str, field: str | None) -> Form:
    """How the records of a shard are cut."""
    if name == "lines" or field is None:
        return Lines()
    return Jsonl(field) if name == "jsonl" else Csv(field, delimiter="\t" if name == "tsv" else ",")


def work_of(operation: str, options: Mapping[str, Any]) -> Work | RewriteWork:
    """What is done to each block; a package or a model that is missing is told here."""
    if operation == "filter":
        from evenhand.text.coreference import resolver

        resolver(options["resolver"])
        return _Kept(
            Filter(
                resolver=options["resolver"],
                someone=options["keep_someone"],
                names=options["keep_names"],
                min_confidence=options["min_confidence"],
                mask=options["mask"],
                split=options["sentences"],
                log=options["rejected"],
            )
        )
    return _Rewritten(_rewriter(operation, options), append=options["append"])


def outside(options: Mapping[str, Any]) -> dict[str, str]:
    """The versions of packages and models from elsewhere that have a say in the result."""
    given = {options.get(name) for name in ("judge", "entities", "resolver")} - {None} - _OWN
    names = sorted({part for one in given for part in str(one).split(":") if part})
    return {name: _version(name) for name in names}


def told_of(counts: Mapping[str, int]) -> dict[str, Any]:
    """The counts of a shard: what was read, what became of it, and by which rule or reason."""
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


def _rewriter(operation: str, options: Mapping[str, Any]) -> Rewriter:
    from evenhand.text.grammar import judge
    from evenhand.text.people import finder
    from evenhand.text.rewrite.names import Anonymize
    from evenhand.text.rewrite.neutralize import Neutralize
    from evenhand.text.rewrite.swap import Swap

    own = {name: value for name, value in options.items() if name not in _OF_ALL}
    if operation == "anonymize":
        finder(own["entities"])
        return Anonymize(**own)
    judge(own["judge"])
    return Neutralize(**own) if operation == "neutralize" else Swap(**own)


def _named(block: Block) -> Block:
    """The block, its source by its name alone: what is written must not tell of our folders."""
    return replace(block, source=PurePath(block.source).name)


@dataclass(frozen=True, slots=True)
class _Kept:
    """The filter, on blocks that know their source by its name."""

    work: Filter

    def __call__(self, block: Block) -> Done:
        return self.work(_named(block))


@dataclass(frozen=True, slots=True)
class _Rewritten(RewriteWork):
    """A rewriting, on blocks that know their source by its name."""

    def rewrite(self, records: Records, layout: Layout, *, log: bool = False) -> Done:
        named = replace(records, block=_named(records.block))
        return RewriteWork.rewrite(self, named, layout, log=log)


def _version(name: str) -> str:
    try:
        return version(name)
    except (PackageNotFoundError, ValueError):
        return ""
