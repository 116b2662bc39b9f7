"""A small random encoder, saved on disk: quick, and reads any text."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast

from evenhand.models import load

PIECES = 3000
"""The pieces of words of `mini` that come first: all characters and the most frequent words."""


@cache
def small_tokenizer() -> Any:
    """The tokenizer of `mini` with fewer pieces of words."""
    whole = load("mini").tokenizer
    content = json.loads(whole.backend_tokenizer.to_str())
    vocabulary = content["model"]["vocab"]
    content["model"]["vocab"] = {word: k for word, k in vocabulary.items() if k < PIECES}
    names = ("unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
    return PreTrainedTokenizerFast(
        tokenizer_object=Tokenizer.from_str(json.dumps(content)),
        model_max_length=whole.model_max_length,
        **{name: getattr(whole, name) for name in names},
    )


def small_config() -> BertConfig:
    """The sizes of a small encoder with this tokenizer."""
    tokenizer = small_tokenizer()
    return BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id,
    )


def save_small(folder: Path) -> Path:
    """The folder, with the same model in it every time."""
    torch.manual_seed(3)
    BertForMaskedLM(small_config()).save_pretrained(folder)
    small_tokenizer().save_pretrained(folder)
    return folder
