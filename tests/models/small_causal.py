"""Small random causal models of each family."""

from __future__ import annotations

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    OPTConfig,
    OPTForCausalLM,
    PreTrainedTokenizerFast,
)

from evenhand.models.causal import CausalModel

VOCABULARY = 211
FAMILIES = ("gpt2", "llama", "llama, grouped", "opt")
SIZE = {"vocab_size": VOCABULARY, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 1}


def small_network(family: str) -> torch.nn.Module:
    """A random network whose numbers are large enough for differences to show."""
    torch.manual_seed(len(family))
    deep = {"hidden_size": 48, "num_hidden_layers": 3, "num_attention_heads": 4}
    if family == "gpt2":
        network = GPT2LMHeadModel(
            GPT2Config(**SIZE, n_embd=48, n_layer=3, n_head=4, n_positions=64)
        )
    elif family == "opt":
        config = OPTConfig(
            **SIZE, **deep, ffn_dim=96, max_position_embeddings=64, word_embed_proj_dim=48
        )
        network = OPTForCausalLM(config)
    else:
        grouped = family != "llama"
        config = LlamaConfig(
            **SIZE,
            **deep,
            intermediate_size=96,
            num_key_value_heads=2 if grouped else 4,
            tie_word_embeddings=grouped,
            attention_bias=not grouped,
            max_position_embeddings=64,
        )
        network = LlamaForCausalLM(config)
    with torch.no_grad():
        for weight in network.parameters():
            if weight.ndim == 1:
                weight += 0.1 * torch.randn_like(weight)
            else:
                weight *= 3
    return network.eval()


def small_tokenizer() -> PreTrainedTokenizerFast:
    """Words w2, w3 …, and tokens that begin and end a text."""
    words = {"<s>": 0, "</s>": 1} | {f"w{i}": i for i in range(2, VOCABULARY)}
    backend = Tokenizer(models.WordLevel(words, unk_token="</s>"))
    backend.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(
        tokenizer_object=backend, bos_token="<s>", eos_token="</s>", unk_token="</s>"
    )


def small_model(family: str) -> CausalModel:
    return CausalModel(family, small_network(family), small_tokenizer())
