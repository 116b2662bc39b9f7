"""Models made by others: fetched as data, checked before anything is built from them.

A model is a folder of data: a configuration, a tokenizer and weights. Nothing in it is ever run.
From the hub only such files are downloaded, never code. A folder that needs code of its own
(`auto_map`), kernels of the hub or an adapter is refused. What its configuration describes is
bounded by the size of its weights, so that a wrong number neither hangs nor fills the memory.
"""

from __future__ import annotations

import json
import re
import struct
import sys
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Literal

from evenhand.errors import FileError, InputError
from evenhand.files import parse_json

DATA_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")
"""What is downloaded of a model of the hub; pickled weights where it has no others."""
PICKLED = ("pytorch_model*.bin", "*.index.json")
MODULE_FILES = ("?_*/*.json", "?_*/*.txt", "?_*/model.safetensors")
"""What is downloaded besides of a sentence encoder, whose modules have folders of their own."""
TIMEOUT = 5.0
"""Seconds in which the hub has to answer."""
ATTENTION = (None, "eager", "sdpa")
"""Implementations of attention that are part of torch; others may be downloaded as code."""
COMMON_FAMILIES = (
    "albert",
    "bert",
    "camembert",
    "distilbert",
    "electra",
    "roberta",
    "xlm-roberta",
)
"""Families with a masked head that are known without asking transformers."""
CAUSAL_FAMILIES = ("gpt2", "llama", "opt")
"""Families that predict the next token, known without asking transformers."""
MOST_LAYERS = 1000
DEPTH = re.compile(r"^(num_hidden_|n_|num_)layers$")
LAYERS = re.compile(r"(layers?|groups|group_num|blocks)$")
LARGEST_HEADER = 100 << 20


def reachable() -> bool:
    """Whether the hub answers, asked once and not again and again."""
    try:
        from huggingface_hub import constants, get_session

        get_session().head(constants.ENDPOINT, timeout=TIMEOUT)
    except Exception:  # the kinds of errors differ between versions of the library
        return False
    return True


@contextmanager
def offline() -> Iterator[None]:
    """The libraries of the hub do not try to connect, and so do not wait either."""
    from huggingface_hub import constants

    data_sets = getattr(sys.modules.get("datasets"), "config", None)
    with ExitStack() as stack:
        libraries: list[Any] = [constants, data_sets]
        for settings in libraries:
            if hasattr(settings, "HF_HUB_OFFLINE"):
                stack.callback(setattr, settings, "HF_HUB_OFFLINE", settings.HF_HUB_OFFLINE)
                settings.HF_HUB_OFFLINE = True
        yield


def fetch(name: str) -> Path:
    """The folder of the model `name` of the hub; downloaded if it is not there yet.

    Only data is downloaded. Without network what was downloaded earlier is used.
    """
    from huggingface_hub import snapshot_download

    def download(*patterns: str, ignore: str = "*/*") -> Path:
        return Path(
            snapshot_download(
                name,
                allow_patterns=list(patterns),
                ignore_patterns=[ignore],
                local_files_only=not online,
            )
        )

    online = reachable()
    try:
        with ExitStack() as stack:
            if not online:
                stack.enter_context(offline())
            folder = download(*DATA_FILES)
            if (folder / "modules.json").is_file():
                folder = download(*MODULE_FILES, ignore="*/*/*")
            if not any(any(folder.glob(f"{inner}*.safetensors")) for inner in ("", "0_*/")):
                folder = download(*DATA_FILES, *PICKLED)
    except Exception as error:  # the library raises errors of many kinds
        reason = first_sentence(error) if online else "the hub does not answer"
        raise InputError(
            f"model 'hf:{name}': could not be had from the hub ({reason}); without network give "
            "the path of a folder that holds the model"
        ) from error
    return folder


def first_sentence(error: BaseException) -> str:
    """What an error of a library says, in one line."""
    text = " ".join(str(error).split()).split(". ")[0]
    return (text or type(error).__name__)[:300]


Kind = Literal["masked", "causal"]


def check_model_folder(folder: Path, name: str, kind: Kind = "masked") -> None:
    """Check that the folder is a model that is loaded without running any code of its own."""
    if (folder / "adapter_config.json").exists():
        raise FileError(
            name, "expected a complete model, got an adapter: merge it into its model and save that"
        )
    path = folder / "config.json"
    if not path.is_file():
        raise FileError(
            name, "expected config.json and the weights of a transformers model, got none"
        )
    config = _settings(path)
    for file in (path, folder / "tokenizer_config.json"):
        if file.is_file():
            _check_code(file, _settings(file))
    family = config.get("model_type")
    if not isinstance(family, str) or not _has_head(family, kind):
        heads = {
            "masked": "with a masked head (bert, roberta, distilbert, albert, electra …), got "
            f"{family!r:.100}, which cannot fill in a masked word",
            "causal": f"that predicts the next word (gpt2, llama, opt …), got {family!r:.100}",
        }
        raise FileError(path, f"expected model_type to be a family {heads[kind]}")
    for key, value in config.items():
        if DEPTH.search(key) and isinstance(value, int | float) and not value >= 1:
            raise FileError(path, f"{key}: expected one layer or more, got {value}")
        if LAYERS.search(key) and isinstance(value, int | float) and not value <= MOST_LAYERS:
            raise FileError(path, f"{key}: expected at most {MOST_LAYERS} layers, got {value:.6g}")


def _has_head(family: str, kind: Kind) -> bool:
    if family in COMMON_FAMILIES:
        return kind == "masked"
    if family in CAUSAL_FAMILIES:
        return kind == "causal"
    from transformers.models.auto import modeling_auto

    masked = family in modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    causal = family in modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return masked if kind == "masked" else causal and not masked


def _settings(path: Path) -> dict[str, Any]:
    settings = parse_json(path.read_bytes(), path)
    if not isinstance(settings, dict):
        raise FileError(path, f"expected a JSON object, got {type(settings).__name__}")
    return settings


def _check_code(path: Path, settings: Mapping[str, Any]) -> None:
    """Refuse settings that name code, at any depth."""
    stack: list[Any] = [settings]
    while stack:
        value = stack.pop()
        if isinstance(value, dict):
            stack.extend(value.values())
        elif isinstance(value, list):
            stack.extend(value)
        if not isinstance(value, dict):
            continue
        if value.get("auto_map"):
            raise FileError(
                path,
                "the model comes with code of its own (auto_map), which is never run: expected a "
                "model that transformers knows; a copy without auto_map loads as its model_type",
            )
        for key in ("attn_implementation", "_attn_implementation", "experts_implementation"):
            given = value.get(key)
            choices = list(given.values()) if isinstance(given, dict) else [given]
            if any(choice not in ATTENTION for choice in choices):
                raise FileError(
                    path,
                    f"{key}: expected eager or sdpa, got {given!r:.100}: kernels of the hub are "
                    "code, which is never run",
                )


@contextmanager
def bounded(folder: Path, name: str) -> Iterator[None]:
    """Within this context no network is built that is much larger than the weights in the folder.

    Every parameter that a module registers is counted, whatever the architecture and whichever
    number of its configuration is wrong.
    """
    from torch.nn.modules.module import register_module_parameter_registration_hook

    tensors, size = _stored(folder)
    most_tensors, most_numbers = 16 * tensors + 10_000, 8 * size + (1 << 24)
    count = numbers = 0

    def check(module: Any, parameter_name: str, parameter: Any) -> None:  # noqa: ARG001
        nonlocal count, numbers
        if parameter is None:
            return
        count += 1
        numbers += parameter.numel()
        if count > most_tensors or numbers > most_numbers:
            raise FileError(
                name,
                "config.json describes a model much larger than its weights "
                f"({tensors:,} tensors, {size / 2**20:,.1f} MB): they do not belong together",
            )

    handle = register_module_parameter_registration_hook(check)
    try:
        yield
    finally:
        handle.remove()


def _stored(folder: Path) -> tuple[int, int]:
    """The number of tensors in the weights of a folder, and their bytes."""
    tensors = size = 0
    for path in folder.iterdir():
        if path.suffix in (".safetensors", ".bin") and path.is_file():
            size += path.stat().st_size
            tensors += _tensors(path)
    return tensors, size


def _tensors(path: Path) -> int:
    """The number of tensors of a file; 0 where that cannot be known."""
    if path.suffix == ".bin":
        try:
            with zipfile.ZipFile(path) as archive:
                return len(archive.namelist())
        except (OSError, zipfile.BadZipFile):
            return 0
    with path.open("rb") as file:
        head = file.read(8)
        length = struct.unpack("<Q", head)[0] if len(head) == 8 else 0
        if length > min(LARGEST_HEADER, path.stat().st_size):
            raise FileError(path, f"damaged: header too large ({length:,} bytes)")
        try:
            header = json.loads(file.read(length) or b"{}")
        except (ValueError, RecursionError):
            return 0  # its reader says what is wrong
    if not isinstance(header, dict):
        return 0
    for name, about in header.items():
        kind = about.get("dtype") if isinstance(about, dict) else None
        if name.endswith((".weight", ".bias")) and isinstance(kind, str) and "F" not in kind:
            raise FileError(path, f"{name}: expected floating-point numbers, got {kind}")
    return len(header)
