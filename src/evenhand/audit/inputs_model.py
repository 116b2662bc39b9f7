"""A model that was given, loaded and looked over before hours are spent on it."""

from __future__ import annotations

from typing import Any

__all__ = ["described"]


def described(source: str) -> dict[str, Any]:
    """The model's facts, once it has been found fit to be audited."""
    from evenhand.masked.model import load

    model = load(source)
    weights = sum(weight.numel() for weight in model.network.parameters())
    return {
        "name": model.name, "source": source, "weights": weights, "layers":
        int(model.network.config.num_hidden_layers), "fingerprint": model.fingerprint,
    }  # fmt: skip
