"""A small random sentence encoder with the tokenizer of mini, as sentence-transformers saves it."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from transformers import BertConfig, BertModel

import evenhand as eh
from evenhand.language.encoders import MODES

PREFIX = "sentence_transformers.models."


def save_encoder(
    folder: Path,
    modes: tuple[str, ...] = ("mean_tokens",),
    *,
    modules: tuple[str, ...] = (),
    inner: str = "",
    limit: int = 40,
    **settings: object,
) -> Path:
    """The folder, with the same network in it every time, pooled and followed by these modules."""
    tokenizer = eh.masked.load("mini").tokenizer
    torch.manual_seed(5)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        pad_token_id=tokenizer.pad_token_id,
    )
    network = BertModel(config)
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.1 * torch.randn_like(weight)
    network.save_pretrained(folder / inner)
    tokenizer.save_pretrained(folder / inner)
    names = ["Transformer", "Pooling", *modules]
    paths = [inner, *(f"{number}_{name}" for number, name in enumerate(names[1:], start=1))]
    listed = [
        {"idx": idx, "name": str(idx), "path": path, "type": f"{PREFIX}{name}"}
        for idx, (name, path) in enumerate(zip(names, paths, strict=True))
    ]
    for path in paths[1:]:
        (folder / path).mkdir()
    write(folder / "modules.json", listed)
    chosen = {f"pooling_mode_{key}": key in modes for key in MODES}
    write(folder / "1_Pooling/config.json", {"word_embedding_dimension": 16, **chosen})
    write(folder / inner / "sentence_bert_config.json", {"max_seq_length": limit, **settings})
    return folder


def write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content))
