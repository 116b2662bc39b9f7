"""Models made by others: fetched as data, checked before anything is built from them.

A model is a folder of data: a configuration, a tokenizer and weights. Nothing in it is ever run.
From the hub only such files are downloaded, never code. A folder that needs code of its own
(`auto_map`), kernels of the hub or an adapter is refused. What its configuration describes is
bounded by the size of its weights, so that a wrong number neither hangs nor fills the memory.
"""

from __future__ import annotations

import json
import os
import re
import struct
import sys
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from functools import cache
from importlib import resources
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from evenhand.errors import EvenhandError, FileError, InputError, UnknownNameError, require_models
from evenhand.files import parse_json

if TYPE_CHECKING:
    import torch

Kind = Literal["masked", "causal", "encoder"]
"""Masked and causal language models and sentence encoders, by the names of their instruments'
subjects."""
DType = Literal["float32", "bfloat16", "float16"]
MASKED, CAUSAL = ("mini",), ("tiny-causal",)
EMBEDDED: dict[str, Kind] = {**dict.fromkeys(MASKED, "masked"), **dict.fromkeys(CAUSAL, "causal")}
"""The models that come with the package, and their kinds."""
HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")

DATA_FILES = ("*.json", "*.txt", "*.model", "*.safetensors")
"""The files downloaded of a model of the hub; pickled weights where it has no others."""
PICKLED = ("pytorch_model*.bin", "*.index.json")
MODULE_FILES = ("?_*/*.json", "?_*/*.txt", "?_*/model.safetensors")
"""Further files downloaded of a sentence encoder, whose modules have their own folders."""
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


class Place(NamedTuple):
    """A model on disk: its name, its folder or GGUF file, and how errors name it."""

    name: str
    path: Path
    shown: str


def locate(source: str | os.PathLike[str], kind: Kind | None = None) -> Place:
    """Find a model by an embedded name, `hf:NAME` or the path of a folder or GGUF file.

    Only `hf:NAME` may download something. `kind` is the kind that is expected, if any.
    """
    name = os.fspath(source)
    if name in EMBEDDED and kind in (None, EMBEDDED[name]):
        folder = Path(str(resources.files("evenhand.assets") / name))
        return Place(name, folder, str(folder))
    if name.startswith("hf:"):
        return Place(name, fetch(name[3:]), name)
    path = Path(name)
    if path.is_file():
        if path.suffix.lower() == ".gguf" and kind in (None, "causal"):
            return Place(path.stem, path, name)
        other = "" if kind == "masked" else " or a .gguf file"
        raise FileError(path, f"expected a folder with config.json and weights{other}, got a file")
    if not path.is_dir():
        known = ", ".join(each for each, own in EMBEDDED.items() if kind in (None, own))
        file = "" if kind == "masked" else " or GGUF file"
        raise InputError(
            f"model '{name}': no such folder{file}, and not embedded ({known}); "
            "a model of the hub is named hf:NAME"
        )
    return Place(name_of(path), path, name)


GENERIC = re.compile(
    r"(|\.+|(my|the|new|final|best|last|saved|pytorch|hf|trained|fine-?tuned)?[-_]?models?|final|best|"
    r"last|out|outputs?|exports?|checkpoints?([-_]?\d+)?|step[-_]?\d+|epoch[-_]?\d+|[0-9a-f]{40})",
    re.IGNORECASE,
)
"""Names of folders that say nothing about the model in them."""


def name_of(folder: str | os.PathLike[str]) -> str:
    """The name of the model in a folder: the folder's, unless that says nothing.

    Then the name in its model card, or in its configuration, or the parent's name.
    """
    path = Path(folder)
    if path.name in ("", ".."):
        path = path.resolve()
    if not GENERIC.fullmatch(path.name):
        return path.name
    if title := _card_title(path):
        return title
    with suppress(OSError, ValueError, RecursionError):
        config = json.loads((path / "config.json").read_bytes())
        given = config.get("_name_or_path") if isinstance(config, dict) else None
        if isinstance(given, str) and given.strip():
            base = given if HUB_ID.fullmatch(given) else PureWindowsPath(given).name
            if base and not GENERIC.fullmatch(base):
                return f"{base} ({path.name})"
    parent = path.resolve().parent.name
    return f"{parent}/{path.name}" if parent else path.name


def _card_title(folder: Path) -> str:
    """The first heading of the model card, unless it is that of an unfilled template."""
    try:
        with (folder / "README.md").open(encoding="utf-8", errors="replace") as file:
            head = file.read(1 << 16)
    except OSError:
        return ""
    body = re.sub(r"\A---\n.*?\n---\n", "", head, flags=re.DOTALL)
    title = re.search(r"^#\s+(.{1,100})$", body, re.MULTILINE)
    name = re.sub(r"(?i)^model card (for|of)\s+", "", title[1].strip("# \r")) if title else ""
    return "" if GENERIC.fullmatch(name) or name.lower() in ("model id", "model card") else name


def check_dtype(dtype: str) -> None:
    """Check that a data type is one of `DType`."""
    if dtype not in get_args(DType):
        raise UnknownNameError("dtype", dtype, get_args(DType))


def choose_device(name: str) -> torch.device:
    """The device of a name; an error if it is not there."""
    require_models()
    import torch

    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device: expected auto, cpu or cuda, got '{name}'") from None
    if device.type not in ("cpu", "cuda", "mps"):
        raise InputError(f"device: expected auto, cpu or cuda, got '{name}'")
    if device.type == "mps" and not torch.backends.mps.is_available():
        raise InputError(f"device: '{name}' is not there")
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise InputError(f"device: '{name}' is not there ({torch.cuda.device_count()} GPUs)")
    return device


@contextmanager
def quiet() -> Iterator[None]:
    """Disable the progress bar of a load, its warnings and the report on missing weights, which
    `check_weights` replaces.
    """
    from transformers.utils import logging

    progress_bar, verbosity = logging.is_progress_bar_enabled(), logging.get_verbosity()
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    logging.set_verbosity_error()  # type: ignore[no-untyped-call]
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.set_verbosity(verbosity)
        if progress_bar:
            logging.enable_progress_bar()  # type: ignore[no-untyped-call]


@contextmanager
def refusing(place: str, kind: str = "masked") -> Iterator[None]:
    """Whatever a library raises about a damaged or hostile model becomes one error."""
    try:
        yield
    except EvenhandError:
        raise
    except MemoryError:
        raise FileError(place, f"not a {kind} language model that loads: out of memory") from None
    except BaseException as error:
        panic = type(error).__name__ == "PanicException"  # of tokenizers, which is not an Exception
        if not (isinstance(error, Exception) or panic):
            raise
        reason = first_sentence(error)
        raise FileError(place, f"not a {kind} language model that loads: {reason}") from error


def reachable() -> bool:
    """Whether the hub answers; asked only once."""
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
        for settings in (constants, data_sets):
            before = getattr(settings, "HF_HUB_OFFLINE", None)
            if before is not None:
                stack.callback(setattr, settings, "HF_HUB_OFFLINE", before)
                setattr(settings, "HF_HUB_OFFLINE", True)  # noqa: B010
        yield


@cache
def fetch(name: str) -> Path:
    """The folder of the model `name` of the hub; downloaded if it is not there yet.

    Only data is downloaded, and the hub asked once. Without network what was downloaded earlier is
    used.
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
    """The message of a library's error in one line."""
    text = " ".join(str(error).split()).split(". ")[0]
    return (text or type(error).__name__)[:300]


def read_configuration(folder: Path, name: str) -> dict[str, Any]:
    """The configuration of a complete model that is loaded without running code of its own."""
    if (folder / "adapter_config.json").exists():
        raise FileError(
            name, "expected a complete model, got an adapter: merge it into its model and save that"
        )
    path, tokenizer = folder / "config.json", folder / "tokenizer_config.json"
    if not path.is_file():
        raise FileError(
            name, "expected config.json and the weights of a transformers model, got none"
        )
    config = read_settings(path)
    for file in (path, tokenizer, folder / "generation_config.json"):
        if file.is_file():
            _check_code(file, read_settings(file))
    return config


def check_model_folder(folder: Path, name: str, kind: Kind = "masked") -> None:
    """Check that the folder is a model of this kind that is loaded without code of its own."""
    path, config = folder / "config.json", read_configuration(folder, name)
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


def read_settings(path: Path) -> dict[str, Any]:
    """The object in a JSON file."""
    settings = parse_json(path.read_bytes(), path)
    if not isinstance(settings, dict):
        raise FileError(path, f"expected a JSON object, got {type(settings).__name__}")
    check_finite(path, settings)
    return settings


def check_finite(path: Path, settings: object, name: str = "") -> None:
    """Check that every number of a configuration is a finite floating-point number."""
    match settings:
        case dict():
            for key, value in settings.items():
                check_finite(path, value, f"{name}.{key}" if name else str(key))
        case list():
            for value in settings:
                check_finite(path, value, name)
        case float() | int() if not abs(settings) <= sys.float_info.max:
            shown = str(settings) if isinstance(settings, float) else "a larger integer"
            raise FileError(path, f"{name}: expected a finite number, got {shown}")


def _check_code(path: Path, settings: Mapping[str, Any]) -> None:
    """Refuse settings that name code, at any depth."""
    stack: list[object] = [settings]
    while stack:
        value = stack.pop()
        if isinstance(value, list):
            stack.extend(value)
        if not isinstance(value, dict):
            continue
        stack.extend(value.values())
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

    def check(module: object, parameter_name: str, parameter: torch.Tensor | None) -> None:  # noqa: ARG001
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
