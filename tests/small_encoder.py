"""A small random encoder with the tokenizer of mini, saved on disk: quick, and reads any text."""

from __future__ import annotations

from pathlib import Path

import torch
from transformers import BertConfig, BertForMaskedLM

from evenhand.masked import load


def save_small(folder: Path) -> Path:
    """The folder, with the same model in it every time."""
    tokenizer = load("mini").tokenizer
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(tokenizer), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=64, pad_token_id=tokenizer.pad_token_id,
    )  # fmt: skip
    BertForMaskedLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
