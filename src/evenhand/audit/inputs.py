"""What is audited: vectors, a language model, labelled texts, predictions, answers, as given."""

from __future__ import annotations

import difflib
import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import FileError, InputError, UnknownNameError, parameter, require_models
from evenhand.fewshot.settings import COLUMNS
from evenhand.files import HUB, public_name
from evenhand.instruments import LANGUAGE

if TYPE_CHECKING:
    from evenhand.answers.table import Answers
    from evenhand.classifier.predictions import Predictions
    from evenhand.fewshot.data import Dataset
    from evenhand.vectors.store import Vectors

NEEDS = {
    "corpus": "data",
    "vectors": "vectors",
    "posterior": "vectors",
    "masked": "model",
    "causal": "model",
    "encoder": "model",
    "answers": "model",
    "fewshot": "data",
    "predictions": "predictions",
}
"""What must be given for a part; saved answers do without a model."""
PARTS = tuple(NEEDS)
"""The parts of an audit, which can be left out."""
VECTORS, MODEL, DATA = "glove", "mini", "simulated"
NO_TEMPLATE = "it has no chat template, so that it is not asked for answers"
MOST_NAMES = 1000
"""Names of a folder that are searched for one that was meant."""


@dataclass(frozen=True)
class Inputs:
    """What was given, loaded, and the parts of the audit that it allows.

    Where a model is given without data, it is fine-tuned on the simulated ones.
    """

    vectors: Vectors | None
    model: str
    kind: str
    data: Dataset | None
    predictions: Predictions | None
    answers: Answers | None
    parts: tuple[str, ...]
    subjects: dict[str, dict[str, Any]] = field(repr=False)


def gather(
    vectors: str | os.PathLike[str] | Vectors | Any | None,
    model: str | os.PathLike[str] | None,
    data: str | os.PathLike[str] | Dataset | Any | None,
    *,
    predictions: str | os.PathLike[str] | Predictions | Any | None = None,
    answers: str | os.PathLike[str] | Answers | Any | None = None,
    skip: Sequence[str] = (),
    columns: dict[str, str | None] | None = None,
    read_from: str | os.PathLike[str] | None = None,
    device: str = "auto",
) -> Inputs:
    """Load what is given; with nothing given, all of the embedded defaults.

    Where something is given, only that is audited: vectors by their own measures and posterior, a
    model by the measures of its kind that have built-in material, data by their odds and by
    few-shot classifiers on the model, or on `mini`, answers by their groups. A causal model that
    has a chat template is asked for answers, where none are given. Everything that can be checked
    without reading is checked first, and what no part needs is not read.
    """
    from evenhand.answers.table import Answers, read_answers
    from evenhand.classifier.predictions import Predictions, read_predictions
    from evenhand.fewshot.data import Dataset, read
    from evenhand.models.loading import kind_of
    from evenhand.vectors.store import load

    if predictions is not None and not isinstance(predictions, Predictions):
        predictions = read_predictions(predictions)
    if answers is not None and not isinstance(answers, Answers):
        answers = read_answers(answers)
    for name in skip:
        if name not in PARTS:
            raise UnknownNameError("part of an audit", name, PARTS)
    everything = all(each is None for each in (vectors, model, data, predictions, answers))
    if everything:
        vectors, model, data = VECTORS, MODEL, DATA
    given = {"vectors": vectors, "model": model, "data": data, "predictions": predictions}
    named = os.fspath(model) if model is not None else MODEL
    source = DATA if data is None else data
    _check(vectors, named, None if everything else data, columns or {})
    kind = kind_of(named)
    others = {each for each in LANGUAGE if each != kind}
    if answers is not None:
        given["answers"] = answers
    needs = {**NEEDS, "answers": "answers" if answers is not None else "model"}
    if answers is None and kind != "causal":
        others.add("answers")
    parts = [name for name in PARTS if given[needs[name]] is not None and name not in others]
    chosen = tuple(name for name in parts if name not in skip)
    if not chosen:
        raise InputError(f"nothing is left to audit: all of {', '.join(parts)} is skipped")
    subjects: dict[str, dict[str, Any]] = {}
    asks = "answers" in chosen and answers is None
    used = ({kind, "fewshot"} & set(chosen)) | ({"answers"} if asks else set())
    if used:
        needing = " and ".join(sorted(used))
        require_models(
            f"the audit of the embedded model (not that of {parameter('vectors', 'glove')})"
            if everything
            else f"the audit's part {needing} ({parameter('skip')} leaves it out)"
        )
    facts = _describe_model(named, device) if used else None
    if asks and facts is not None and facts["chat_template"] == "no":
        chosen = tuple(name for name in chosen if name != "answers")
        if not chosen:
            raise InputError(f"{facts['name']}: {NO_TEMPLATE}")
    texts: Dataset | None = None
    if "corpus" in chosen or used - {"answers"}:
        named_columns: dict[str, Any] = dict(columns or {})
        texts = source if isinstance(source, Dataset) else read(source, **named_columns)
        if data is not None:
            subjects["corpus"] = {
                "name": texts.name,
                "source": public_name(source) if isinstance(source, str) else texts.name,
                "texts": len(texts),
                "classes": len(texts.classes),
                "digest": texts.digest,
                "left_out": dict(texts.left_out),
                "sha256": _hash(source),
            }
    v: Vectors | None = None
    if vectors is not None and {"vectors", "posterior"} & set(chosen):
        v = load(vectors)
        if isinstance(vectors, str | os.PathLike):
            read_from = vectors
    if v is not None:
        subjects["vectors"] = {
            "name": v.name,
            "source": public_name(v.source),
            "words": len(v),
            **{name: getattr(v, name) for name in ("dim", "case", "notes")},
            "content_sha256": _content(v),
            "sha256": _hash(read_from),
        }
    if facts is not None:
        subjects[kind] = facts
    if answers is not None and "answers" in chosen:
        subjects["answers"] = {
            "name": answers.name,
            "answers": len(answers),
            "items": len(set(answers.items)),
            "outcomes": {name: n for name, n in answers.counts.items() if n},
            "groups": list(answers.groups),
            "digest": answers.digest,
        }
    elif "answers" in chosen and facts is not None:
        known = ("name", "source", "fingerprint")
        subjects["answers"] = {name: facts[name] for name in known} | {"groups": ["gender"]}
    if predictions is not None and "predictions" in chosen:
        subjects["predictions"] = {
            "name": public_name(predictions.name),
            "texts": len(predictions.originals),
            "versions": len(predictions) - len(predictions.originals),
            "classes": len(predictions.classes),
            "groups": list(predictions.groups),
            "digest": predictions.digest,
        }
    return Inputs(v, named, kind, texts, predictions, answers, chosen, subjects)


def _check(vectors: object, model: str, data: object, columns: Mapping[str, str | None]) -> None:
    """Raise an error for what is wrong with any of the inputs, before one of them is read."""
    from evenhand.fewshot.data import Dataset
    from evenhand.models.sources import EMBEDDED as MODELS
    from evenhand.vectors.store import EMBEDDED

    if isinstance(vectors, str | os.PathLike):
        given = os.fspath(vectors)
        if given.startswith(HUB):
            known = ", ".join(EMBEDDED)
            raise InputError(
                f"vectors '{given}': expected a file or {known}, got a name of the hub"
            )
        _check_file("vectors", given, EMBEDDED)
    _check_model(model, tuple(MODELS))
    path = os.fspath(data) if isinstance(data, str | os.PathLike) else None
    named_data = path in (None, "-") or str(path).startswith((HUB, f"{DATA}:"))
    if path is not None and not named_data:
        _check_file("data", path, [DATA])
    named = [name for name, column in columns.items() if column is not None]
    for name in named:
        if name not in COLUMNS:
            raise UnknownNameError("column of the data", name, COLUMNS)
    if named and data is None:
        raise InputError(f"{named[0]}: expected data whose column it names, got none")
    simulated = path is not None and path.partition(":")[0] == DATA and not Path(path).exists()
    if named and (simulated or isinstance(data, Dataset)):
        raise InputError(f"{named[0]}: expected data from a file or the hub: these have no columns")
    if columns.get("male") is not None and columns.get("male") == columns.get("female"):
        raise InputError(f"male and female: expected two codes, got '{columns['male']}' twice")


def _content(v: Vectors) -> str:
    digest = hashlib.sha256(v.vocabulary.blob)
    digest.update(v.matrix.data if v.matrix.flags.c_contiguous else v.matrix.tobytes())
    return digest.hexdigest()


def _hash(source: object) -> str | None:
    """The hash of the file that was read, or of the embedded asset; None where there is none."""
    from evenhand.vectors.store import EMBEDDED

    if not isinstance(source, str | os.PathLike):
        return None
    asset = resources.files("evenhand.assets") / f"{os.fspath(source)}.npz"
    path = Path(str(asset)) if os.fspath(source) in EMBEDDED else Path(source)
    if not path.is_file():
        return None
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _describe_model(source: str, device: str = "auto") -> dict[str, Any]:
    """Load the model, which checks that it can be audited, and return its facts."""
    from evenhand.audit.answers import local_writer
    from evenhand.audit.stages import loaded
    from evenhand.models.loading import describe

    about = describe(loaded(source, device))
    shown = ("weights", "layers", "dimension", "pooling", "fingerprint")
    facts = {name: about[name] for name in shown if name in about}
    if about["kind"] == LANGUAGE["causal"]:
        writes = local_writer(source, device).about["chat_template"]
        facts["chat_template"] = "yes" if writes else "no"
    return {"name": about["name"], "source": public_name(source), **facts}


def _check_model(given: str, embedded: Sequence[str]) -> None:
    """An embedded name, a name of the hub, or a folder or GGUF file that is there."""
    from evenhand.models.endpoint import is_address

    path = Path(given)
    if given in embedded or given.startswith(HUB) or path.is_dir():
        return
    if is_address(given):
        raise InputError(
            f"{given}: an audit reads a model's files; ask a server by evenhand answers collect "
            "and audit what it wrote: evenhand audit --answers FILE"
        )
    if path.exists() and path.suffix.lower() != ".gguf":
        raise FileError(given, "expected the folder of a model (config.json, weights), got a file")
    if path.exists():
        return
    more = "; a model of the hub is named hf:NAME"
    raise FileError(given, _missing("folder", "model", given, embedded) + more)


def _check_file(kind: str, given: str, embedded: Sequence[str]) -> None:
    """An embedded name, or a file that is there."""
    path = Path(given)
    if given in embedded:
        return
    if path.is_dir():
        raise FileError(given, f"is a folder: expected a file of {kind}{_inside(path)}")
    if not path.exists():
        raise FileError(given, _missing("file", kind, given, embedded))


def _missing(what: str, kind: str, given: str, embedded: Sequence[str]) -> str:
    """The message for a name that does not exist, with the nearest one that does."""
    path = Path(given)
    names = [*(embedded if path.name == given else ()), *_names(path.parent)]
    near = difflib.get_close_matches(path.name, names, n=1)
    hint = f": did you mean '{near[0]}'?" if near else ""
    if not path.parent.is_dir():
        hint = f", and no folder {path.parent}"
    return f"no such {what}{hint} (embedded {kind}: {', '.join(embedded)})"


def _inside(folder: Path) -> str:
    """A file of the folder that might have been meant, where it has only a few."""
    files = [name for name in _names(folder) if (folder / name).is_file()]
    return f", such as {folder / files[0]}" if 0 < len(files) <= 3 else ""


def _names(folder: Path) -> list[str]:
    try:
        return sorted(path.name for path in folder.iterdir())[:MOST_NAMES]
    except OSError:
        return []
