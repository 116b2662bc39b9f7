"""What masked and causal models share: a network with its tokenizer, read, checked, identified.

torch is imported when a model is loaded, not before; transformers only for networks that are not
read without it, and when its own network is asked for, as for training.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self
from weakref import WeakKeyDictionary

from evenhand.errors import FileError, InputError
from evenhand.models.layers import LayerMaps, hook_network, read_maps
from evenhand.models.memory import SETTINGS, check_tokenizer
from evenhand.models.sources import Kind, bounded, quiet, refusing

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

_FINGERPRINTS: WeakKeyDictionary[Any, tuple[Any, str]] = WeakKeyDictionary()
Tensors = Sequence[tuple[str, "torch.Tensor"]]


class Networks:
    """The network of a model: that of transformers, or one read without it until it is asked for.

    Parameters
    ----------
    core : Network or PreTrainedModel
    load : callable, optional
        Loads the network of transformers.

    """

    def __init__(self, core: Any, load: Callable[[], Any] | None = None) -> None:
        self.core = core
        self._load = load

    def complete(self) -> Any:
        """The network of transformers, which replaces the other one."""
        if self._load is not None:
            network, self._load = self._load(), None
            setattr(network, SETTINGS, (self.core.settings, network.config.to_dict()))
            self.core = network
        return self.core

    def copy(self) -> Networks:
        """The network of transformers with weights of its own."""
        return Networks(copy.deepcopy(self.complete()))

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


@dataclass(frozen=True, eq=False)
class LoadedModel:
    """A network with its tokenizer."""

    name: str
    networks: Networks = field(repr=False)
    """A network of transformers becomes one of these."""
    tokenizer: PreTrainedTokenizerFast = field(repr=False)
    maps: LayerMaps | None = field(default=None, repr=False)
    """Affine maps of the states after some layers; see `with_maps`."""
    subject_kind: ClassVar[str]

    def __post_init__(self) -> None:
        if not isinstance(self.networks, Networks):
            object.__setattr__(self, "networks", Networks(self.networks))

    @property
    def network(self) -> Any:
        """The network of transformers. A model that was read without it loads it on first use; from
        then on this network is the one that is run.
        """
        return self.networks.complete()

    @property
    def core(self) -> Any:
        """The network that is run: the one of transformers, or the one that was read without it."""
        return self.networks.core

    @property
    def settings(self) -> dict[str, Any]:
        """The configuration of the network."""
        return self.networks.settings()

    @property
    def device(self) -> torch.device:
        device: torch.device = self.core.device
        return device

    @property
    def dtype(self) -> torch.dtype:
        dtype: torch.dtype = self.core.dtype
        return dtype

    @property
    def longest(self) -> int:
        """The maximum number of tokens of an input, special ones included."""
        raise NotImplementedError

    @property
    def before(self) -> tuple[int, ...] | None:
        """The tokens that are put before a text; None where the tokenizer adds special tokens."""
        return None

    @property
    def dim(self) -> int:
        """The width of a state."""
        return int(self.core.config.hidden_size)

    @property
    def layers(self) -> int:
        """The number of layers."""
        return int(self.core.config.num_hidden_layers)

    def tensors(self) -> Tensors:
        """The weights and buffers by name, in the order of their names; tied ones once."""
        raise NotImplementedError

    @property
    def fingerprint(self) -> str:
        """A hash of everything the results depend on: the current weights, the configuration,
        the tokenizer and the data type.

        It is computed once per state of the weights. Training changes that state: the version
        counters of the tensors or, with fused optimizers that do not update them, their first
        numbers.
        """
        tensors = self.tensors()
        versions = [(name, tensor.data_ptr(), tensor._version) for name, tensor in tensors]
        settings = self.settings
        for irrelevant in ("_name_or_path", "transformers_version"):
            settings.pop(irrelevant, None)
        configuration = json.dumps(settings, sort_keys=True, default=str)
        state = (versions, _first_numbers(tensors), configuration, len(self.tokenizer))
        known = _FINGERPRINTS.get(self.core)
        if known is None or known[0] != state:
            digest = hash_model(tensors, settings, self.tokenizer)
            known = _FINGERPRINTS[self.core] = (state, digest)
        return known[1] if self.maps is None else f"{self.maps.fingerprint} {known[1]}"

    def with_maps(self, maps: LayerMaps, *, copied: bool = True) -> Self:
        """The same model with affine maps of the states after some of its layers.

        The network of transformers, if it is loaded, is copied: this model stays as it is.
        """
        place = f"model '{self.name}'"
        if self.maps is not None:
            raise InputError(f"{place}: expected a model without layer maps, got {self.maps}")
        if self.settings.get("model_type") == "albert":
            raise InputError(
                f"{place}: expected layers with weights of their own, got albert, whose layers "
                "share theirs"
            )
        maps.check(place, self.layers, self.dim)
        return replace(self, networks=self.networks.with_maps(maps, copied), maps=maps)

    def with_maps_of(self, folder: Path) -> Self:
        """The same model with the maps that are stored in its folder, if there are any."""
        maps = read_maps(folder)
        return self if maps is None else self.with_maps(maps, copied=False)


def _first_numbers(tensors: Tensors) -> bytes:
    import torch

    first = [tensor.detach().reshape(-1)[:256].double() for _, tensor in tensors]
    return torch.cat(first).cpu().numpy().tobytes()


def hash_model(
    tensors: Tensors,
    settings: Mapping[str, Any],
    tokenizer: Any,
) -> str:
    """The hash of a model by its content."""
    import torch

    from evenhand.models.tokenizer import Tokenizer, content

    own = isinstance(tokenizer, Tokenizer)
    words = tokenizer.content if own else content(tokenizer.backend_tokenizer)
    digest = blake2b(digest_size=16)
    digest.update(json.dumps([settings, words], sort_keys=True, default=str).encode())
    for name, tensor in tensors:
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        plain = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(plain.view(torch.uint8).numpy().data)
    return digest.hexdigest()


def load_networks(
    kind: Kind,
    place: str,
    folder: Path,
    device: torch.device,
    dtype: str,
    own: tuple[Any, Any] | None = None,
    *,
    head: bool = True,
) -> tuple[Networks, Any]:
    """The networks and the tokenizer of a folder.

    `own` are the network and the tokenizer as they were read without transformers, on the device.
    """

    def read() -> tuple[Any, Any]:
        network, tokenizer = read_complete(kind, place, folder, dtype, head=head)
        return network.to(device), tokenizer

    def complete() -> Any:
        with refusing(place, kind):
            return read()[0]

    if own is None:
        network, tokenizer = read()
        return Networks(network), tokenizer
    return Networks(own[0], complete), own[1]


def read_complete(
    kind: Kind, place: str, folder: Path, dtype: str, *, head: bool = True
) -> tuple[Any, Any]:
    """The network and the tokenizer of a folder as transformers reads them, checked."""
    import torch
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM, AutoTokenizer

    options: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    auto: Any = AutoModelForCausalLM if kind == "causal" else AutoModelForMaskedLM
    with quiet(), bounded(folder, place):
        tokenizer = AutoTokenizer.from_pretrained(str(folder), use_fast=True, **options)
        network, loading_info = auto.from_pretrained(
            str(folder),
            dtype=getattr(torch, dtype),
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # check_weights refuses them, and says which they are
            **options,
        )
    names = dict.fromkeys(["tokenizer.json", *tokenizer.vocab_files_names.values()])
    if not any((folder / name).is_file() for name in names):
        raise FileError(
            place,
            f"expected the model's tokenizer ({' or '.join(names)}), got none: save it into the "
            "same folder with tokenizer.save_pretrained",
        )
    check_vocabulary(place, tokenizer, network)
    check_weights(place, network, loading_info, kind, head=head)
    return network.eval(), tokenizer


def check_vocabulary(place: str, tokenizer: Any, network: PreTrainedModel) -> None:
    """Check that the tokenizer is a fast one and the network has an embedding for every token."""
    check_tokenizer(tokenizer, f"'{place}'")
    embeddings: Any = network.get_input_embeddings()
    vocabulary_size = int(embeddings.weight.shape[0])
    largest = max(tokenizer.get_vocab().values(), default=0)
    if len(tokenizer) > vocabulary_size or largest >= vocabulary_size:
        raise FileError(
            place,
            f"expected a tokenizer of the model's {vocabulary_size:,} tokens, got one of "
            f"{max(len(tokenizer), largest + 1):,}: they do not belong together",
        )


LAYER = re.compile(r"\.layers?\.\d+\.")


def check_weights(
    path: str,
    network: PreTrainedModel,
    loading_info: Mapping[str, Any],
    kind: Kind = "masked",
    *,
    head: bool = True,
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
    if unused and kind == "masked":  # files of causal models have buffers that are computed now
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
            f"expected the weights of a {kind} language model, got none for {first}"
            + (f" and {len(more)} more" if more else "")
            + f": it was saved without its {kind} head or for another task, and random weights "
            "would take their place",
        )
    for name, weight in network.named_parameters() if kind == "masked" else ():
        if not bool(torch.isfinite(weight).all()):
            raise FileError(path, f"expected numbers, got nan or infinite ones in {name}")
