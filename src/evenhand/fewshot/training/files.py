"""Tensors with a few words about them in one file that is replaced as a whole."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from evenhand.errors import FileError
from evenhand.results import replace_file

__all__ = ["read_tensors", "save_tensors"]


def save_tensors(path: Path, tensors: Mapping[str, Tensor], told: Mapping[str, Any]) -> None:
    """Write the file; where there is no room for it, the one before stays."""
    from safetensors.torch import save

    plain = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    with replace_file(path) as file:
        file.write(save(plain, metadata={"told": json.dumps(told)}))


def read_tensors(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors by name, and what was told of them."""
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            told = json.loads(file.metadata()["told"])
            return {name: file.get_tensor(name) for name in file.keys()}, told  # noqa: SIM118
    except FileNotFoundError:
        raise FileError(path, "expected a trained network, got no such file") from None
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise FileError(path, f"not the file of a training: {error}") from error
