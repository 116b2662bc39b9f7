"""Answers in the logs of lm-evaluation-harness and inspect, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import FileError
from evenhand.files import parse_json, read_limited
from evenhand.text.tables import json_objects

if TYPE_CHECKING:
    import pandas as pd


def read_log(path: str) -> pd.DataFrame | None:
    """The samples of a log, one row per answer; None for any other file.

    The columns are item, prompt, sample and text, and those of the document or metadata.
    """
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix == ".eval":
        raise FileError(file, "expected a JSON log, which inspect log convert makes, got another")
    if suffix == ".json":
        rows = list(_inspect(file))
    elif file.name.startswith("samples_") and ".jsonl" in file.name:
        rows = list(_harness(file))
    else:
        return None
    import pandas as pd

    return pd.DataFrame(rows)


def _harness(path: Path) -> Iterator[dict[str, Any]]:
    for number, line in json_objects(path):
        responses = line.get("filtered_resps") or line.get("resps")
        if "doc_id" not in line or not isinstance(responses, list):
            raise FileError(path, "expected 'doc_id' and 'resps', got none", line=number)
        prompt = line.get("arguments")
        while isinstance(prompt, list | Mapping) and prompt:
            prompt = next(iter(prompt.values() if isinstance(prompt, Mapping) else prompt))
        texts = [
            text for each in responses for text in (each if isinstance(each, list) else [each])
        ]
        for sample, text in enumerate(texts):
            if not isinstance(text, str):
                raise FileError(path, f"expected a text, got {text!r:.40}", line=number)
            yield {
                **_plain(line.get("doc")),
                "item": str(line["doc_id"]),
                "prompt": prompt if isinstance(prompt, str) else None,
                "sample": sample,
                "text": text,
            }


def _inspect(path: Path) -> Iterator[dict[str, Any]]:
    log = parse_json(read_limited(path), path)
    samples = log.get("samples") if isinstance(log, dict) else None
    if not isinstance(samples, list) or not samples or "eval" not in log:
        raise FileError(path, "expected a JSON log of inspect with 'eval' and 'samples'")
    for number, sample in enumerate(samples, 1):
        if not isinstance(sample, dict) or "id" not in sample:
            raise FileError(path, f"sample {number}: expected 'id', got none")
        output = sample.get("output") or {}
        choices = _at(output, "choices") or [{}]
        first = choices[0] if isinstance(choices, list) else None
        content = _at(output, "completion") or _at(_at(first, "message"), "content")
        given = sample.get("input")
        if isinstance(given, list):
            given = "\n".join(str(_at(message, "content") or "") for message in given)
        yield {
            **_plain(sample.get("metadata")),
            "item": str(sample["id"]),
            "prompt": given,
            "sample": sample.get("epoch", 1),
            "text": content if isinstance(content, str) else "",
            "outcome": "failed" if sample.get("error") else None,
        }


def _at(value: object, name: str) -> Any:
    """An entry of a mapping; None where there is none."""
    return value.get(name) if isinstance(value, Mapping) else None


def _plain(cells: object) -> dict[str, Any]:
    """The entries that fit into a cell."""
    if not isinstance(cells, Mapping):
        return {}
    return {
        str(name): value for name, value in cells.items() if isinstance(value, str | int | float)
    }
