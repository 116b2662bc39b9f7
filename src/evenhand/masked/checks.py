"""A checkpoint looked over as it is loaded: that its answers come from what was trained.

transformers makes up what a checkpoint lacks: a head with random weights for a model that was
saved without one, a tokenizer that knows no word. Their scores would look like any others.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.errors import FileError

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

__all__ = ["check_family", "check_tokenizer", "check_weights"]


def check_family(folder: Path) -> None:
    """The configuration is that of a family that has masked language models."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES as FAMILIES

    path = folder / "config.json"
    if not path.is_file():
        raise FileError(
            folder, "expected config.json and the weights of a transformers model, got none"
        )
    try:
        told = json.loads(path.read_bytes())
    except ValueError as error:
        raise FileError(path, f"not valid JSON: {error}") from None
    family = told.get("model_type") if isinstance(told, dict) else None
    if family not in FAMILIES:
        raise FileError(
            path,
            "expected model_type to be a family with a masked head (bert, roberta, distilbert, "
            f"albert, electra …), got {family!r}, which cannot fill in a masked word",
        )


def check_tokenizer(
    place: str, tokenizer: PreTrainedTokenizerFast, network: PreTrainedModel, *, hub: bool
) -> None:
    """The tokenizer was saved with the model, and is the model's own."""
    names = dict.fromkeys(["tokenizer.json", *tokenizer.vocab_files_names.values()])
    if not hub and not any((Path(place) / name).is_file() for name in names):
        raise FileError(
            place,
            f"expected the model's tokenizer ({' or '.join(names)}), got none: save it into the "
            "same folder with tokenizer.save_pretrained",
        )
    words: Any = network.get_input_embeddings()
    known = int(words.weight.shape[0])
    if len(tokenizer) > known:
        raise FileError(
            place,
            f"expected a tokenizer of the model's {known:,} tokens, got one of {len(tokenizer):,}: "
            "they do not belong together",
        )


def check_weights(
    place: str, network: PreTrainedModel, told: Mapping[str, Any], *, head: bool
) -> None:
    """Every weight came from the files and is a number; `told` is what transformers says of them.

    Without `head`, that of the masked language model may be missing; it is then all zeros.
    """
    import torch

    absent = {*told["missing_keys"], *(str(key) for key in told["mismatched_keys"])}
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
            place,
            f"expected the weights of a masked language model, got none for {first}"
            + (f" and {len(more)} more" if more else "")
            + ": it was saved without its masked head or for another task, and random weights "
            "would take their place",
        )
    for name, weight in network.named_parameters():
        if not bool(torch.isfinite(weight).all()):
            raise FileError(place, f"expected numbers, got nan or infinite ones in {name}")
