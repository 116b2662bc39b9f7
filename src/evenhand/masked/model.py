"""A masked language model by name: `mini` (embedded), a folder, or `hf:NAME` from the hub.

torch is imported when a model is loaded, not before; transformers only for families that
`network` does not read, and when its own network or tokenizer is asked for, as for training.
Nothing is ever fetched unless the name begins with `hf:`.
"""

from __future__ import annotations

import copy
import json
import os
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from importlib import resources
from pathlib import Path, PureWindowsPath
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import (
    EvenhandError,
    FileError,
    InputError,
    UnknownNameError,
    require_models,
)
from evenhand.masked.forward import (
    Dense,
    ForwardPass,
    Stage,
    guard_half,
    int8_stages,
    layers_of,
    logits_of,
    map_stages,
    stages_of,
)
from evenhand.masked.layers import LayerMaps, hook_network, read_maps
from evenhand.masked.memory import (
    HUB_ID,
    SETTINGS,
    ModelSource,
    borrow,
    is_path,
    name_in_memory,
    split,
)
from evenhand.masked.sources import bounded, check_model_folder, fetch, first_sentence

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

__all__ = ["EMBEDDED", "MaskedLM", "Model", "load", "quiet"]

EMBEDDED = ("mini",)
"""Names of the models that come with the package."""

Pooling = Literal["mean", "cls"]


class MaskedLM(Protocol):
    """A model that can be scored: its tokenizer, and logits at given positions."""

    @property
    def name(self) -> str: ...
    @property
    def tokenizer(self) -> PreTrainedTokenizerFast: ...

    def logits(
        self, rows: Sequence[Sequence[int]], positions: Sequence[int]
    ) -> NDArray[np.float32]:
        """The logits (n, vocabulary) at one position per row of token ids, rows of one length."""


@dataclass(frozen=True, eq=False)
class Model:
    """A loaded transformers masked language model."""

    name: str
    network: PreTrainedModel = field(repr=False)
    """The network of transformers. A model that was read without it loads it on first use; from
    then on this network is the one that is run.
    """
    tokenizer: PreTrainedTokenizerFast = field(repr=False)
    int8: tuple[Stage, ...] | None = field(default=None, repr=False)
    """The 8-bit layers of a model loaded with `int8`."""
    maps: LayerMaps | None = field(default=None, repr=False)
    """Affine maps of the states after some layers; see `with_maps`."""
    subject_kind: ClassVar[str] = "model"

    @property
    def core(self) -> Any:
        """The network that is run: the one of transformers, or the one that was read without it."""
        return self.__dict__["_networks"].core

    @property
    def settings(self) -> dict[str, Any]:
        """The configuration of the network."""
        settings: dict[str, Any] = self.__dict__["_networks"].settings()
        return settings

    @property
    def device(self) -> torch.device:
        device: torch.device = self.core.device
        return device

    @property
    def dtype(self) -> torch.dtype:
        dtype: torch.dtype = self.core.dtype
        return dtype

    @property
    def dim(self) -> int:
        """The width of a sentence's embedding."""
        return int(self.core.config.hidden_size)

    @property
    def longest(self) -> int:
        """The maximum number of tokens of an input, special ones included."""
        core = self.core
        positions = int(getattr(core.config, "max_position_embeddings", 1 << 20))
        embeddings: Any = getattr(core.base_model, "embeddings", None)
        table = getattr(embeddings, "position_embeddings", None)
        padding = getattr(table, "padding_idx", None)  # RoBERTa-like models count from there
        offset = 0 if padding is None else padding + 1
        return min(positions - offset, self.tokenizer.model_max_length)

    @property
    def fingerprint(self) -> str:
        """A hash of everything the results depend on: the current weights, the configuration,
        the tokenizer and the data type.

        It is computed once per state of the weights. Training changes that state: the version
        counters of the tensors or, with fused optimizers that do not update them, their first
        numbers.
        """
        from evenhand.masked.network import parameters_of

        networks: Networks = self.__dict__["_networks"]
        tensors = list(parameters_of(self.core))
        versions = [(name, tensor.data_ptr(), tensor._version) for name, tensor in tensors]
        settings = networks.settings()
        for irrelevant in ("_name_or_path", "transformers_version"):
            settings.pop(irrelevant, None)
        configuration = json.dumps(settings, sort_keys=True, default=str)
        state = (versions, _first_numbers(tensors), configuration, len(self.tokenizer))
        known = _FINGERPRINTS.get(self.core)
        if known is None or known[0] != state:
            digest = fingerprint_of(tensors, settings, self.tokenizer)
            known = _FINGERPRINTS[self.core] = (state, digest)
        digest = known[1] if self.maps is None else f"{self.maps.fingerprint} {known[1]}"
        return f"int8 {digest}" if self.int8 else digest

    @property
    def layers(self) -> int:
        """The number of layers."""
        return int(self.core.config.num_hidden_layers)

    def with_maps(self, maps: LayerMaps, *, copied: bool = True) -> Model:
        """The same model with affine maps of the states after some of its layers.

        The network of transformers, if it is loaded, is copied: this model stays as it is.
        """
        networks: Any = mapped_networks(self, maps, copied)
        return Model(self.name, networks, self.tokenizer, self.int8, maps)

    def stages(self) -> Sequence[Stage] | None:
        """The layers ready to run, from the current weights, since these may be trained. None for
        a model of an unknown family, which is run unchanged.
        """
        stages: Sequence[Stage] | None = self.int8
        if stages is None:
            layers = layers_of(self.core)  # None where the network has the maps as hooks
            stages = None if layers is None else stages_of(layers, Dense)
        if stages is None or self.maps is None:
            return stages
        return map_stages(stages, self.maps.functions)

    def logits(
        self, rows: Sequence[Sequence[int]], positions: Sequence[int]
    ) -> NDArray[np.float32]:
        """The logits at one position per row; rows have one length, so there is no padding."""
        import torch

        if len({len(row) for row in rows}) > 1:
            raise InputError("logits: expected rows of one length, got several")
        with torch.inference_mode():
            ids, lengths = np.array(rows), np.array([len(row) for row in rows])
            hidden = ForwardPass(self.core, ids.reshape(-1), lengths, self.stages()).states_at(
                np.arange(len(rows)), np.array(positions)
            )
            return np.asarray(logits_of(self.core, hidden).float().cpu().numpy())

    def embed(
        self, texts: Iterable[str], *, pooling: Pooling = "mean", batch_size: int = 64
    ) -> NDArray[np.float32]:
        """Sentence embeddings (n, dim) from the last layer, in the order given.

        `mean` averages over the tokens of the text without special tokens; `cls` takes the first
        token. Texts longer than the model allows are truncated. Texts of one length share a batch,
        so there is no padding and the batch does not change the numbers.

        >>> import evenhand as eh
        >>> eh.masked.load("mini").embed(["she reads.", "he sings a song."]).shape
        (2, 256)
        """
        import torch

        if pooling not in ("mean", "cls"):
            raise UnknownNameError("pooling", pooling, ["mean", "cls"])
        inputs = list(texts)
        ids = [self._ids(text) for text in inputs]
        result = np.empty((len(inputs), self.dim), dtype=np.float32)
        with torch.inference_mode():
            stages = self.stages()
            for chosen in _batches([len(row) for row in ids], batch_size):
                rows = np.array([ids[i] for i in chosen])
                lengths = np.full(len(rows), rows.shape[1])
                [hidden] = ForwardPass(self.network, rows.reshape(-1), lengths, stages).all_states()
                batch_ids = torch.tensor(rows, device=self.device)
                result[chosen] = self._pooled(hidden, batch_ids, pooling).float().cpu().numpy()
        return result

    def _ids(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer(text, truncation=True, max_length=self.longest)["input_ids"]
        return ids

    def _pooled(self, hidden: torch.Tensor, ids: torch.Tensor, pooling: Pooling) -> torch.Tensor:
        import torch

        if pooling == "cls":
            return hidden[:, 0]
        special = torch.tensor(self.tokenizer.all_special_ids, device=ids.device)
        unknown = self.tokenizer.unk_token_id
        special = special[special != unknown] if unknown is not None else special
        included = ~torch.isin(ids, special)
        # an empty text has only special tokens
        included |= ~included.any(dim=1, keepdim=True)
        weights = included.to(hidden.dtype)
        return torch.einsum("bl,bld->bd", weights, hidden) / weights.sum(dim=1, keepdim=True)


class Networks:
    """The network of a model: that of transformers, or one read without it until it is asked for.

    Parameters
    ----------
    core : Network or PreTrainedModel
    load : callable, optional
        Loads the network of transformers.

    """

    def __init__(self, core: Any, load: Callable[[], PreTrainedModel] | None = None) -> None:
        self.core = core
        self._load = load

    def complete(self) -> PreTrainedModel:
        """The network of transformers, which replaces the other one."""
        if self._load is not None:
            network, self._load = self._load(), None
            setattr(network, SETTINGS, (self.core.settings, network.config.to_dict()))
            self.core = network
        complete: PreTrainedModel = self.core
        return complete

    def with_maps(self, maps: LayerMaps, copied: bool) -> Networks:
        """The same with hooks; a network that was read without transformers is shared."""
        if self._load is None:
            network = copy.deepcopy(self.core) if copied else self.core
            return Networks(hook_network(network, maps))
        load = self._load
        return Networks(self.core, lambda: hook_network(load(), maps))

    def settings(self) -> dict[str, Any]:
        """The configuration, which is that of the folder until it is changed."""
        if self._load is not None:
            return dict(self.core.settings)
        now: dict[str, Any] = self.core.config.to_dict()
        of_folder, then = getattr(self.core, SETTINGS, (now, now))
        return dict(of_folder) if then == now else now


def mapped_networks(model: Any, maps: LayerMaps, copied: bool) -> Networks:
    """The network of a model, masked or causal, with maps."""
    if model.maps is not None:
        raise InputError(
            f"model '{model.name}': expected a model without layer maps, got {model.maps}"
        )
    networks: Networks = model.__dict__["_networks"]
    if networks.settings().get("model_type") == "albert":
        raise InputError(
            f"model '{model.name}': expected layers with weights of their own, got albert, whose "
            "layers share theirs"
        )
    maps.check(f"model '{model.name}'", model.layers, model.dim)
    return networks.with_maps(maps, copied)


class NetworkField:
    """The field `network` of a model."""

    def __get__(self, model: Model | None, owner: type | None = None) -> Any:
        return self if model is None else model.__dict__["_networks"].complete()

    def __set__(self, model: Model, network: Any) -> None:
        known = network if isinstance(network, Networks) else Networks(network)
        model.__dict__["_networks"] = known


Model.network = NetworkField()  # type: ignore[assignment]


_FINGERPRINTS: WeakKeyDictionary[Any, tuple[Any, str]] = WeakKeyDictionary()


def _first_numbers(tensors: Sequence[tuple[str, torch.Tensor]]) -> bytes:
    import torch

    first = [tensor.detach().reshape(-1)[:256].double() for _, tensor in tensors]
    return torch.cat(first).cpu().numpy().tobytes()


def fingerprint_of(
    tensors: Sequence[tuple[str, torch.Tensor]],
    settings: Mapping[str, Any],
    tokenizer: Any,
) -> str:
    import torch

    from evenhand.masked.tokenizer import Tokenizer, content

    own = isinstance(tokenizer, Tokenizer)
    words = tokenizer.content if own else content(tokenizer.backend_tokenizer)
    digest = blake2b(digest_size=16)
    digest.update(json.dumps([settings, words], sort_keys=True, default=str).encode())
    for name, tensor in tensors:
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        plain = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(plain.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def load(
    source: ModelSource = "mini",
    *,
    device: str = "auto",
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
    int8: bool = False,
    head: bool = True,
) -> Model:
    """Load a masked language model; raises an error if a part of it is missing.

    Parameters
    ----------
    source : str, path, (network, tokenizer) or pipeline
        `mini`, the path of a folder in the transformers layout, `hf:NAME` for a model of the hub
        (the only case in which something may be downloaded), or a model in memory: the pair
        (network, tokenizer) of transformers, or its pipeline. A model in memory is not changed; it
        stays on its device and in its data type.
    device : str
        `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:1` …
    dtype : {"float32", "bfloat16", "float16"}
        The data type of the computation.
    int8 : bool
        Whether linear maps are computed with 8-bit integers.
    head : bool
        Without it an encoder is sufficient, which can embed texts but not predict words.

    Examples
    --------
    >>> load("mini").name
    'mini'

    """
    if isinstance(source, Model):
        return source
    if not is_path(source):
        return _from_memory(source, int8, head)
    name = os.fspath(source)
    if dtype not in ("float32", "bfloat16", "float16"):
        raise UnknownNameError("dtype", dtype, ["float32", "bfloat16", "float16"])
    if name.startswith("hf:"):
        return _loaded(name, fetch(name[3:]), device, dtype, int8, head)
    if name in EMBEDDED:
        with resources.as_file(resources.files("evenhand.assets") / name) as folder:
            return _loaded(name, folder, device, dtype, int8, head)
    folder = Path(name)
    if not folder.is_dir():
        if folder.is_file():
            raise FileError(folder, "expected a folder with config.json and weights, got a file")
        raise InputError(
            f"model '{name}': no such folder, and not embedded ({', '.join(EMBEDDED)}); "
            "a model of the hub is named hf:NAME"
        )
    return _loaded(name_of(folder), folder, device, dtype, int8, head)


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


def _loaded(name: str, folder: Path, device: str, dtype: str, int8: bool, head: bool) -> Model:
    torch_device = choose_device(device)
    place = name if name.startswith("hf:") else str(folder)
    check_model_folder(folder, place)
    with refusing(place):
        return _built(name, place, folder, torch_device, dtype, int8, head)


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


def _from_memory(source: Any, int8: bool, head: bool) -> Model:
    given, own = split(source)
    name = name_in_memory(given)
    if head and (given._forward_hooks or given._forward_pre_hooks):
        raise InputError(f"model '{name}': expected hooks inside of the network only")
    network, tokenizer = borrow(given, own)
    if network.device.type == "cpu" and network.dtype.itemsize < 4:
        guard_half()
    stages = int8_stages(network) if int8 else None
    model = Model(f"{name}, int8" if int8 else name, network, tokenizer, stages)
    if not head:
        return model
    if tokenizer.mask_token_id is None:
        raise InputError(f"model '{name}': its tokenizer has no mask token")
    with refusing(name):
        check_vocabulary(name, tokenizer, network)
        check_run(name, model)
    return model


def load_to_train(source: ModelSource, device: str = "auto", *, head: bool = True) -> Model:
    """A model whose weights may be changed: those of a model in memory are copied."""
    model = load(source, device=device, head=head)
    return model if is_path(source) else replace(model, network=copy.deepcopy(model.network))


def _built(
    name: str,
    place: str,
    folder: Path,
    torch_device: torch.device,
    dtype: str,
    int8: bool,
    head: bool,
) -> Model:
    own = _read_own(folder, dtype) if head else None
    if own is not None:
        core, tokenizer = own
        core.to(torch_device)

        def complete() -> PreTrainedModel:
            with refusing(place):
                network: PreTrainedModel = _read_complete(place, folder, dtype, head)[0]
                network.to(torch_device)  # type: ignore[arg-type]
                return network

        networks = Networks(core, complete)
    else:
        network, tokenizer = _read_complete(place, folder, dtype, head, name)
        core = network.to(torch_device)
        networks = Networks(core)
    if torch_device.type == "cpu" and dtype != "float32":
        guard_half()
    stages = int8_stages(core) if int8 else None
    shown: Any = networks
    model = Model(f"{name} (int8)" if int8 else name, shown, tokenizer, stages)
    maps = read_maps(folder)
    model = model if maps is None else model.with_maps(maps, copied=False)
    check_run(place, model)
    return model


def _read_own(folder: Path, dtype: str) -> tuple[Any, Any] | None:
    """The network and the tokenizer of a known family, read without transformers; else None."""
    import torch

    from evenhand.masked.network import read_network
    from evenhand.masked.tokenizer import read_tokenizer

    network = read_network(folder, getattr(torch, dtype))
    if network is None:
        return None
    tokenizer = read_tokenizer(folder, str(network.settings["model_type"]))
    if tokenizer is None or tokenizer.mask_token_id is None:
        return None
    largest = max(tokenizer.get_vocab().values(), default=0)
    fits = max(len(tokenizer), largest + 1) <= network.config.vocab_size
    return (network, tokenizer) if fits else None


def _read_complete(
    place: str, folder: Path, dtype: str, head: bool, name: str = ""
) -> tuple[Any, Any]:
    """The network and the tokenizer as transformers reads them, checked."""
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer, PreTrainedTokenizerFast

    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    with quiet(), bounded(folder, place):
        tokenizer = AutoTokenizer.from_pretrained(str(folder), use_fast=True, **options)
        network, loading_info = AutoModelForMaskedLM.from_pretrained(
            str(folder),
            dtype=getattr(torch, dtype),
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # check_weights refuses them, and says which they are
            **options,
        )
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        raise InputError(
            f"model '{name}': expected a fast tokenizer, got {type(tokenizer).__name__}"
        )
    if tokenizer.mask_token_id is None:
        raise InputError(f"model '{name}': its tokenizer has no mask token")
    check_tokenizer(place, folder, tokenizer, network)
    check_weights(place, network, loading_info, head=head)
    return network.eval(), tokenizer


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


def choose_device(name: str) -> torch.device:
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


def _batches(lengths: Sequence[int], size: int) -> Iterator[list[int]]:
    """Indices of texts of equal length, at most `size` per batch."""
    order = sorted(range(len(lengths)), key=lengths.__getitem__)
    batch: list[int] = []
    for index in order:
        if batch and (len(batch) == size or lengths[batch[0]] != lengths[index]):
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch


def check_tokenizer(
    place: str, folder: Path, tokenizer: PreTrainedTokenizerFast, network: PreTrainedModel
) -> None:
    """Check that the tokenizer was saved with the model and belongs to it."""
    names = dict.fromkeys(["tokenizer.json", *tokenizer.vocab_files_names.values()])
    if not any((folder / name).is_file() for name in names):
        raise FileError(
            place,
            f"expected the model's tokenizer ({' or '.join(names)}), got none: save it into the "
            "same folder with tokenizer.save_pretrained",
        )
    check_vocabulary(place, tokenizer, network)


def check_vocabulary(
    place: str, tokenizer: PreTrainedTokenizerFast, network: PreTrainedModel
) -> None:
    """Check that the network has an embedding for every token."""
    embeddings: Any = network.get_input_embeddings()
    vocabulary_size = int(embeddings.weight.shape[0])
    largest = max(tokenizer.get_vocab().values(), default=0)
    if len(tokenizer) > vocabulary_size or largest >= vocabulary_size:
        raise FileError(
            place,
            f"expected a tokenizer of the model's {vocabulary_size:,} tokens, got one of "
            f"{max(len(tokenizer), largest + 1):,}: they do not belong together",
        )


def check_run(place: str, model: Model) -> None:
    """Check that the model reads a text and predicts with finite numbers."""
    longest = model.longest
    if longest < 3:
        raise FileError(place, f"expected a model for texts of 3 tokens or more, got {longest}")
    tokenizer = model.tokenizer
    row = model._ids(f"{tokenizer.mask_token} reads.")
    if not row or len(row) > longest:
        raise FileError(place, f"its tokenizer makes {len(row)} tokens of a text of three words")
    logits = model.logits([row], [0])
    if not np.isfinite(logits).all():
        raise FileError(place, "expected finite predictions, got nan or infinite ones")
    if logits.shape[1] <= (tokenizer.mask_token_id or 0):
        raise FileError(place, f"expected predictions for all tokens, got {logits.shape[1]:,}")


LAYER = re.compile(r"\.layers?\.\d+\.")


def check_weights(
    path: str, network: PreTrainedModel, loading_info: Mapping[str, Any], *, head: bool
) -> None:
    """Check that every weight was loaded and is finite; `loading_info` is from transformers.

    Without `head`, the head of the masked language model may be missing; it is then all zeros.
    """
    import torch

    for name, stored, expected in sorted(loading_info["mismatched_keys"]):
        raise FileError(
            path,
            f"{name}: expected the shape {tuple(expected)} that config.json describes, "
            f"got {tuple(stored)}",
        )
    unused = sorted(name for name in loading_info["unexpected_keys"] if LAYER.search(name))
    if unused:
        raise FileError(
            path, f"config.json describes fewer layers than the weights have: {unused[0]} is unused"
        )
    absent = set(loading_info["missing_keys"])
    if not head:
        before = f"{network.base_model_prefix}."
        extra = {name for name in absent if not name.startswith(before)}
        absent -= extra
        with torch.no_grad():
            for name, weight in network.named_parameters():
                if name in extra:
                    weight.zero_()
    if absent:
        first, *more = sorted(absent)
        raise FileError(
            path,
            f"expected the weights of a masked language model, got none for {first}"
            + (f" and {len(more)} more" if more else "")
            + ": it was saved without its masked head or for another task, and random weights "
            "would take their place",
        )
    for name, weight in network.named_parameters():
        if not bool(torch.isfinite(weight).all()):
            raise FileError(path, f"expected numbers, got nan or infinite ones in {name}")
