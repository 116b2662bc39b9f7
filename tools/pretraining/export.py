"""The trained weights in the layout of transformers, and back."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors
from torch import Tensor

from evenhand.errors import EvenhandError, FileError
from evenhand.files import replace_file

from . import decoder
from .decoder import build
from .model import EPSILON, Batch, Model
from .recipe import Recipe
from .tokenizer import CLS, MASK, PAD, SEP, SPECIAL

TOKENIZER_FILES = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.txt"
)  # fmt: skip
_ENDS = {
    "words": "bert.embeddings.word_embeddings.weight",
    "positions": "bert.embeddings.position_embeddings.weight",
    "types": "bert.embeddings.token_type_embeddings.weight",
    "norm0": "bert.embeddings.LayerNorm.weight",
    "norm0_bias": "bert.embeddings.LayerNorm.bias",
    "transform": "cls.predictions.transform.dense.weight",
    "transform_bias": "cls.predictions.transform.dense.bias",
    "norm3": "cls.predictions.transform.LayerNorm.weight",
    "norm3_bias": "cls.predictions.transform.LayerNorm.bias",
    "decoder_bias": "cls.predictions.bias",
}
_LAYERED = {
    "out": "attention.output.dense",
    "norm1": "attention.output.LayerNorm",
    "up": "intermediate.dense",
    "down": "output.dense",
    "norm2": "output.LayerNorm",
}
_PARTS = ("query", "key", "value")
_CAUSAL_ENDS = {"words": "model.embed_tokens.weight", "norm3": "model.norm.weight"}
_CAUSAL_LAYERED = {
    "out": "self_attn.o_proj",
    "norm1": "input_layernorm",
    "gate": "mlp.gate_proj",
    "up": "mlp.up_proj",
    "down": "mlp.down_proj",
    "norm2": "post_attention_layernorm",
}


def configuration(recipe: Recipe) -> dict[str, object]:
    """The `config.json` of the model."""
    if recipe.kind == "causal":
        return {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": recipe.vocabulary,
            "hidden_size": recipe.width,
            "num_hidden_layers": recipe.layers,
            "num_attention_heads": recipe.heads,
            "num_key_value_heads": recipe.heads,
            "intermediate_size": recipe.inner,
            "max_position_embeddings": recipe.max_positions,
            "hidden_act": "silu",
            "rms_norm_eps": decoder.EPSILON,
            "rope_theta": decoder.THETA,
            "attention_bias": False,
            "mlp_bias": False,
            "initializer_range": 0.02,
            "bos_token_id": 0,
            "eos_token_id": 0,
            "tie_word_embeddings": True,
            "torch_dtype": "float32",
        }
    return {
        "architectures": ["BertForMaskedLM"],
        "model_type": "bert",
        "vocab_size": recipe.vocabulary,
        "hidden_size": recipe.width,
        "num_hidden_layers": recipe.layers,
        "num_attention_heads": recipe.heads,
        "intermediate_size": recipe.inner,
        "max_position_embeddings": recipe.max_positions,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
        "layer_norm_eps": EPSILON,
        "initializer_range": 0.02,
        "type_vocab_size": 2,
        "pad_token_id": PAD,
        "tie_word_embeddings": True,
        "torch_dtype": "float32",
    }


def to_transformers(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """Our stacked weights under the names of `BertForMaskedLM` or `LlamaForCausalLM`."""
    if "gate" in weights:
        named = {theirs: weights[ours] for ours, theirs in _CAUSAL_ENDS.items()}
        for number in range(len(weights["qkv"])):
            prefix = f"model.layers.{number}"
            for name, part in zip("qkv", weights["qkv"][number].chunk(3), strict=True):
                named[f"{prefix}.self_attn.{name}_proj.weight"] = part
            for ours, theirs in _CAUSAL_LAYERED.items():
                named[f"{prefix}.{theirs}.weight"] = weights[ours][number]
        return named
    named = {theirs: weights[ours] for ours, theirs in _ENDS.items()}
    for number in range(len(weights["qkv"])):
        prefix = f"bert.encoder.layer.{number}"
        for kind, suffix in (("weight", ""), ("bias", "_bias")):
            parts = weights[f"qkv{suffix}"][number].chunk(3)
            for name, part in zip(_PARTS, parts, strict=True):
                named[f"{prefix}.attention.self.{name}.{kind}"] = part
            for ours, theirs in _LAYERED.items():
                named[f"{prefix}.{theirs}.{kind}"] = weights[ours + suffix][number]
    return named


def from_transformers(named: dict[str, Tensor], layers: int) -> dict[str, Tensor]:
    """The reverse of `to_transformers`."""
    if "model.norm.weight" in named:
        weights = {ours: named[theirs] for ours, theirs in _CAUSAL_ENDS.items()}
        prefixes = [f"model.layers.{number}" for number in range(layers)]
        weights["qkv"] = torch.stack(
            [
                torch.cat([named[f"{prefix}.self_attn.{name}_proj.weight"] for name in "qkv"])
                for prefix in prefixes
            ]
        )
        for ours, theirs in _CAUSAL_LAYERED.items():
            weights[ours] = torch.stack([named[f"{prefix}.{theirs}.weight"] for prefix in prefixes])
        return weights
    weights = {ours: named[theirs] for ours, theirs in _ENDS.items()}
    prefixes = [f"bert.encoder.layer.{number}" for number in range(layers)]
    for kind, suffix in (("weight", ""), ("bias", "_bias")):
        weights[f"qkv{suffix}"] = torch.stack(
            [
                torch.cat([named[f"{prefix}.attention.self.{name}.{kind}"] for name in _PARTS])
                for prefix in prefixes
            ]
        )
        for ours, theirs in _LAYERED.items():
            stack = [named[f"{prefix}.{theirs}.{kind}"] for prefix in prefixes]
            weights[ours + suffix] = torch.stack(stack)
    return weights


def export(recipe: Recipe, weights: dict[str, Tensor], tokenizer: Path, folder: Path) -> int:
    """Write a model folder with float16 weights; returns the size of all its files in bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    named = to_transformers({name: value.detach().cpu() for name, value in weights.items()})
    half = {name: value.half().contiguous() for name, value in named.items()}
    for name, value in half.items():
        if not bool(torch.isfinite(value).all()):
            raise EvenhandError(f"{name}: a weight is too large for float16")
    with replace_file(folder / "model.safetensors") as file:
        file.write(save_tensors(half, metadata={"format": "pt"}))
    with replace_file(folder / "config.json") as file:
        file.write((json.dumps(configuration(recipe), indent=2) + "\n").encode())
    copied = TOKENIZER_FILES[:2] if recipe.kind == "causal" else TOKENIZER_FILES
    for name in copied:
        shutil.copyfile(tokenizer / name, folder / name)
    names = ("model.safetensors", "config.json", *copied)
    return sum((folder / name).stat().st_size for name in names)


def write_card(recipe: Recipe, step: int, weights: int, size: int, folder: Path) -> None:
    """Write the facts of a model and of its training to README.md."""
    family = "Llama (causal)" if recipe.kind == "causal" else "BERT (masked)"
    rates = f"AdamW ({recipe.lr:g})"
    if recipe.optimizer == "muon":
        rates = f"Muon for the matrices ({recipe.matrix_lr:g}), {rates} for the rest"
    text = f"""# {folder.name}

A small {recipe.kind} language model, trained for {step:,} steps by `tools/pretrain.py`.

| | |
| --- | --- |
| architecture | {family}, {recipe.layers} layers × {recipe.width}, {recipe.heads} heads, inner {recipe.inner:,}, {recipe.max_positions} positions, {weights:,} weights |
| vocabulary | {recipe.vocabulary:,} tokens |
| files | float16, {size:,} bytes |
| rows | {recipe.shares} (length limit : part of the tokens; 1 means single sentences) |
| optimizer | {rates}, weight decay {recipe.weight_decay:g}, {recipe.warmup:,} steps of warm-up, linear decay over the last {recipe.decay:.0%} |
| tokens | {recipe.batch_tokens:,} per step, {step * recipe.batch_tokens:,} in all |
"""  # noqa: E501
    with replace_file(folder / "README.md") as file:
        file.write(text.encode())


def load_exported(folder: Path) -> Model:
    """An exported model as a training model in float32."""
    try:
        config = json.loads((folder / "config.json").read_text())
        named = load_tensors((folder / "model.safetensors").read_bytes())
        recipe = Recipe(
            kind="causal" if config["model_type"] == "llama" else "masked",
            vocabulary=config["vocab_size"],
            layers=config["num_hidden_layers"],
            width=config["hidden_size"],
            heads=config["num_attention_heads"],
            inner=config["intermediate_size"],
            max_positions=config["max_position_embeddings"],
            shares=f"{config['max_position_embeddings']}:1",
        )
        weights = from_transformers(named, recipe.layers)
    except (OSError, ValueError, KeyError) as problem:
        raise FileError(folder, f"expected an exported model, got: {problem}") from problem
    return build(recipe, {name: value.float() for name, value in weights.items()})


@torch.no_grad()
def difference(model: Model, folder: Path) -> float:
    """The largest difference of a logit between our model and transformers' on random rows; nan
    where a logit is none.
    """
    from transformers import AutoModelForCausalLM, AutoModelForMaskedLM

    recipe = model.recipe
    causal = recipe.kind == "causal"
    family = AutoModelForCausalLM if causal else AutoModelForMaskedLM
    theirs = family.from_pretrained(folder, dtype=torch.float32).eval()
    generator = torch.Generator().manual_seed(5)
    worst = torch.zeros(())
    for size in (3, 17, recipe.max_positions):
        row = torch.randint(len(SPECIAL), recipe.vocabulary, (size,), generator=generator)
        if causal:
            row[0] = 0
        else:
            row[0], row[size // 2], row[-1] = CLS, MASK, SEP
        places = torch.arange(size)
        batch = Batch(row, places, torch.tensor([0, size], dtype=torch.int32), size)
        ours = model.logits(model.here(batch), places.to(model.device)).cpu()
        worst = torch.maximum(worst, (theirs(row[None]).logits[0] - ours).abs().max())
    return float(worst)
