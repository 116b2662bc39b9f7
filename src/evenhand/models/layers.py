"""Affine maps within a model: what they are, where they are stored, how they are applied.

A map at layer k changes the states after the k-th layer, at every token; layers are counted from 1.
`LayerMaps` are stored in the folder of a model as one file, and loading the model applies them. Our
own passes take them as functions by layer; a network of transformers gets forward hooks.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.errors import FileError, InputError
from evenhand.files import replace_file
from evenhand.statistics.erasure import AffineMap

if TYPE_CHECKING:
    import torch
    from torch import nn

FILE = "layer_maps.safetensors"
"""The file in the folder of a model."""
PARTS = ("left", "right", "shift")

StateMap = Callable[["torch.Tensor"], "torch.Tensor"]


@dataclass(frozen=True, eq=False)
class LayerMaps:
    """Affine maps of a model's states, by layer.

    Parameters
    ----------
    maps : Mapping of int to AffineMap
        By the number of the layer after which they are applied, from 1.
    about : Mapping
        How they were fitted: `method`, `strength` and what else is worth knowing.

    """

    maps: Mapping[int, AffineMap] = field(repr=False)
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.maps:
            raise InputError("layer maps: expected one layer or more, got none")
        if min(self.maps) < 1:
            raise InputError(f"layer maps: expected layers from 1, got {min(self.maps)}")
        if len({each.dim for each in self.maps.values()}) > 1:
            raise InputError("layer maps: expected maps of one dimension, got several")

    @property
    def layers(self) -> tuple[int, ...]:
        return tuple(sorted(self.maps))

    @property
    def dim(self) -> int:
        return self.maps[self.layers[0]].dim

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the maps."""
        digest = blake2b(digest_size=16)
        for name, array in sorted(self._arrays().items()):
            digest.update(f"{name} {array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    @cached_property
    def functions(self) -> dict[int, StateMap]:
        """The maps of tensors of states (…, width), by layer."""
        return {layer: TensorMap(self.maps[layer]) for layer in self.layers}

    def __str__(self) -> str:
        method, strength = self.about.get("method", "affine maps"), self.about.get("strength", 1)
        how = "" if strength == 1 else f", strength {strength:g}"
        return f"{method} at {show_layers(self.layers)}{how}"

    def scaled(self, strength: float) -> LayerMaps:
        """The maps that change the states by `strength` times as much."""
        maps = {layer: each.scaled(strength) for layer, each in self.maps.items()}
        return LayerMaps(maps, {**self.about, "strength": strength})

    def save(self, folder: str | Path) -> None:
        """Write the maps into the folder of a model."""
        from safetensors.numpy import save

        content = save(self._arrays(), metadata={"evenhand": json.dumps(dict(self.about))})
        with replace_file(Path(folder) / FILE) as file:
            file.write(content)

    def check(self, place: str, layers: int, width: int) -> None:
        """Check that these maps fit a model with this number of layers and this width."""
        if self.layers[-1] > layers:
            raise FileError(
                place, f"layer maps: expected layers 1 to {layers}, got {self.layers[-1]}"
            )
        if self.dim != width:
            raise FileError(
                place, f"layer maps: expected {width} dimensions as in the model, got {self.dim}"
            )

    def _arrays(self) -> dict[str, Any]:
        return {
            f"{layer}.{part}": getattr(self.maps[layer], part)
            for layer in self.layers
            for part in PARTS
        }


def read_maps(folder: str | Path) -> LayerMaps | None:
    """Read the maps in the folder of a model, None if there are none."""
    from safetensors import SafetensorError, safe_open

    path = Path(folder) / FILE
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="np") as file:
            about = json.loads((file.metadata() or {}).get("evenhand", "{}"))
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        layers = sorted({int(name.partition(".")[0]) for name in arrays})
        expected = {f"{layer}.{part}" for layer in layers for part in PARTS}
        if arrays.keys() != expected or not isinstance(about, dict):
            raise FileError(path, "expected left, right and shift of each layer, got others")
        if any(array.dtype != np.float64 for array in arrays.values()):
            raise FileError(path, "expected numbers of 64 bits, got others")
        if not all(np.isfinite(array).all() for array in arrays.values()):
            raise FileError(path, "expected finite numbers, got others")
        maps = {
            layer: AffineMap(*(arrays[f"{layer}.{part}"] for part in PARTS)) for layer in layers
        }
        return LayerMaps(maps, about)
    except FileError:
        raise
    except (SafetensorError, OSError, ValueError, RecursionError, InputError) as error:
        raise FileError(path, f"not the maps of a model's layers: {error}") from error


class TensorMap:
    """An affine map of tensors; in single precision, where states have less."""

    def __init__(self, affine: AffineMap) -> None:
        import torch

        self.right, self.left, self.shift = (
            torch.from_numpy(np.ascontiguousarray(array, dtype=np.float32))
            for array in (affine.right.T, affine.left.T, affine.shift)
        )

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        if self.shift.device != states.device:
            self.right, self.left, self.shift = (
                part.to(states.device) for part in (self.right, self.left, self.shift)
            )
        wide = states.float()
        return (wide - (wide @ self.right) @ self.left + self.shift).to(states.dtype)


def show_layers(layers: Iterable[int]) -> str:
    """Layers in words.

    >>> show_layers([3]), show_layers([1, 2, 3, 6])
    ('layer 3', 'layers 1-3, 6')
    """
    runs: list[list[int]] = []
    for layer in sorted(layers):
        if runs and runs[-1][-1] == layer - 1:
            runs[-1].append(layer)
        else:
            runs.append([layer])
    shown = ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs)
    return f"layer{'s' if sum(map(len, runs)) > 1 else ''} {shown}"


def layer_modules(network: Any) -> list[nn.Module]:
    """The layers of a network of transformers, each run once and in this order."""
    from torch import nn

    count = getattr(network.config.get_text_config(), "num_hidden_layers", None)
    for module in network.base_model.modules():
        if isinstance(module, nn.ModuleList) and len(module) == count:
            return list(module)
    kind = type(network).__name__
    raise InputError(f"layers: expected a network with a list of its layers, got {kind}")


def hook_network(network: object, maps: LayerMaps) -> Any:
    """The network of transformers, which from now on applies the maps."""
    _register(network, maps.functions)
    return network


@contextmanager
def hooked(network: object, functions: Mapping[int, StateMap]) -> Iterator[None]:
    """Within this context the network applies the functions after its layers."""
    handles = _register(network, functions)
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _register(network: Any, functions: Mapping[int, StateMap]) -> list[Any]:
    modules = layer_modules(network)

    def hook(function: StateMap) -> Callable[..., Any]:
        def apply(module: Any, inputs: Any, output: Any) -> Any:  # noqa: ARG001
            if isinstance(output, tuple):
                return (function(output[0]), *output[1:])
            return function(output)

        return apply

    return [
        modules[layer - 1].register_forward_hook(hook(function))
        for layer, function in functions.items()
    ]
