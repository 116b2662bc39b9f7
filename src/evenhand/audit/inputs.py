"""What is audited: vectors, a masked language model, labelled texts, as they were given."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError, UnknownNameError

if TYPE_CHECKING:
    from evenhand.fewshot.data import Dataset
    from evenhand.vectors.store import Vectors

__all__ = ["PARTS", "Inputs", "gather"]

PARTS = ("text", "vectors", "posterior", "masked", "fewshot")
"""The parts of an audit, each of which can be left out."""
VECTORS, MODEL, DATA = "glove", "mini", "simulated"


@dataclass(frozen=True, kw_only=True)
class Inputs:
    """What was given, loaded, and the parts of the audit that are made of it.

    Where a model is given without data, the simulated ones are there to fine-tune it on.
    """

    vectors: Vectors | None
    model: str
    data: Dataset | None
    parts: tuple[str, ...]
    subjects: dict[str, dict[str, Any]] = field(repr=False)


def gather(
    vectors: str | os.PathLike[str] | Vectors | None,
    model: str | os.PathLike[str] | None,
    data: str | os.PathLike[str] | Dataset | None,
    *,
    skip: Sequence[str] = (),
    columns: dict[str, str | None] | None = None,
    read_from: str | os.PathLike[str] | None = None,
) -> Inputs:
    """Load what is asked for; with nothing given, all of the embedded defaults.

    Where something is given, only that is audited: vectors by their own measures and posterior, a
    model by its pronouns, associations and phrases, data by their odds and by few-shot classifiers
    on the model, or on `mini`.
    """
    from evenhand.fewshot.data import Dataset, read
    from evenhand.vectors.store import Vectors, load

    for name in skip:
        if name not in PARTS:
            raise UnknownNameError("part of an audit", name, PARTS)
    everything = vectors is None and model is None and data is None
    if everything:
        vectors = VECTORS
    found: dict[str, dict[str, Any]] = {}
    parts = []
    texts: Dataset | None = None
    if everything or model is not None or data is not None:
        texts = data if isinstance(data, Dataset) else read(data or DATA, **(columns or {}))
    if texts is not None and (everything or data is not None):
        parts += ["text", "fewshot"]
        found["data"] = {
            "name": texts.name, "source": str(data) if isinstance(data, str) else texts.name,
            "texts": len(texts), "classes": len(texts.classes), "digest": texts.digest,
            "left_out": dict(texts.left_out), "sha256": _hash(data),
        }  # fmt: skip
    v: Vectors | None = None
    if vectors is not None:
        parts += ["vectors", "posterior"]
        if isinstance(vectors, Vectors):
            v = vectors
        else:
            v, read_from = load(vectors), vectors
        found["vectors"] = {
            "name": v.name, "source": v.source, "words": len(v), "dim": v.dim, "case": v.case,
            "content_sha256": _content(v), "notes": v.notes, "sha256": _hash(read_from),
        }  # fmt: skip
    if everything or model is not None:
        parts.append("masked")
    kept = tuple(name for name in PARTS if name in parts and name not in skip)
    if not kept:
        raise InputError(f"nothing is left to audit: all of {', '.join(parts)} is skipped")
    named = os.fspath(model) if model is not None else MODEL
    if "masked" in kept or "fewshot" in kept:
        found["model"] = _model(named)
    return Inputs(vectors=v, model=named, data=texts, parts=kept, subjects=found)


def _model(source: str) -> dict[str, Any]:
    from evenhand.masked.model import load

    model = load(source)
    weights = sum(weight.numel() for weight in model.network.parameters())
    return {
        "name": model.name, "source": source, "weights": weights, "layers":
        int(model.network.config.num_hidden_layers), "fingerprint": model.fingerprint,
    }  # fmt: skip


def _content(v: Vectors) -> str:
    digest = hashlib.sha256(v.vocabulary.blob)
    digest.update(v.matrix.data if v.matrix.flags.c_contiguous else v.matrix.tobytes())
    return digest.hexdigest()


def _hash(source: Any) -> str | None:
    """The hash of the file that was read, or of the embedded asset; None where there is none."""
    from evenhand.vectors.store import EMBEDDED

    if not isinstance(source, str | os.PathLike):
        return None
    asset = resources.files("evenhand.assets") / f"{os.fspath(source)}.npz"
    place = asset if os.fspath(source) in EMBEDDED else Path(source)
    if not place.is_file():
        return None
    digest = hashlib.sha256()
    with place.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
