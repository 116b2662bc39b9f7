"""A small random sentence encoder, as sentence-transformers saves it."""

from __future__ import annotations

import json
from pathlib import Path

import torch
from transformers import BertModel

from evenhand.models.encoder import MODES
from small_encoder import small_config, small_tokenizer

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
    torch.manual_seed(5)
    network = BertModel(small_config())
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.1 * torch.randn_like(weight)
    network.save_pretrained(folder / inner)
    small_tokenizer().save_pretrained(folder / inner)
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
