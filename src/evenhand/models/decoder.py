"""Decoders of known families as one kind of network: GPT-2, Llama and OPT.

A decoder has an input embedding, layers and an output head. What differs between the families is
which normalisation and which feed-forward part a layer has, and how positions enter: as a table
(GPT-2, OPT) or as a rotation of queries and keys (Llama). `read_decoder` builds one from a
configuration and weights in the names of transformers, None for settings that it does not know.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

Map = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class DecoderLayer:
    """One layer: x + out(attention(qkv(before(x)))), then x + feed(after(x))."""

    before: Map
    qkv: Map
    """To queries, keys and values, side by side."""
    out: Map
    after: Map
    feed: Map


@dataclass(frozen=True, eq=False)
class Decoder:
    """A network that predicts the next token.

    Parameters
    ----------
    tokens : Tensor (vocabulary, width)
        The input embedding.
    positions : Tensor (positions, width) or None
        Added to the input embedding by position.
    layers : tuple of DecoderLayer
    norm : callable
        The normalisation before the head.
    head : Tensor (vocabulary, width)
    heads, groups, size : int
        Attention heads, heads of keys and values, and the width of a head.
    theta : float or None
        The base of the rotation of queries and keys; None without one.
    longest : int
        The longest row.
    maps : Mapping of int to callable
        Maps of the states after some layers, by number from 1.

    """

    tokens: Tensor
    positions: Tensor | None
    layers: tuple[DecoderLayer, ...]
    norm: Map
    head: Tensor
    heads: int
    groups: int
    size: int
    theta: float | None
    longest: int
    maps: Mapping[int, Map] = field(default_factory=dict)

    def embed(self, tokens: Tensor, positions: Tensor) -> Tensor:
        """The input of the first layer (tokens, width)."""
        states = self.tokens[tokens]
        return states if self.positions is None else states + self.positions[positions]

    def rotation(self, positions: Tensor) -> tuple[Tensor, Tensor] | None:
        """Cosines and sines (tokens, 1, size) of the angles at the positions."""
        if self.theta is None:
            return None
        steps = torch.arange(0, self.size, 2, dtype=torch.float32, device=positions.device)
        angles = positions[:, None].float() * self.theta ** (-steps / self.size)
        both = torch.cat([angles, angles], dim=-1)[:, None]
        return both.cos().to(self.head.dtype), both.sin().to(self.head.dtype)


def rotate(states: Tensor, rotation: tuple[Tensor, Tensor]) -> Tensor:
    """States (tokens, heads, size) with each pair of halves turned by the angle of its position."""
    cosine, sine = rotation
    first, second = states.chunk(2, dim=-1)
    return states * cosine + torch.cat([-second, first], dim=-1) * sine


def read_decoder(config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> Decoder | None:
    """The decoder of a configuration and weights of transformers, None if it is not known here."""
    build = {"gpt2": _gpt2, "llama": _llama, "opt": _opt}.get(str(config.get("model_type")))
    return None if build is None else build(config, weights)


@dataclass(frozen=True, slots=True)
class _Weights:
    """Weights by name, with one of the prefixes or none before it; norms have this epsilon."""

    weights: Mapping[str, Tensor]
    prefixes: tuple[str, ...]
    eps: float

    def __call__(self, name: str) -> Tensor:
        for prefix in (*self.prefixes, ""):
            if f"{prefix}{name}" in self.weights:
                return self.weights[f"{prefix}{name}"]
        raise KeyError(name)

    def linear(self, *names: str, bias: bool = True, turned: bool = False) -> Map:
        """A linear map, or several of one input as one."""
        weight = _joined([self(f"{name}.weight") for name in names])
        shift = _joined([self(f"{name}.bias") for name in names]) if bias else None
        weight = weight.T.contiguous() if turned else weight
        return lambda states: functional.linear(states, weight, shift)

    def norm(self, name: str) -> Map:
        weight, bias = self(f"{name}.weight"), self(f"{name}.bias")
        return lambda states: functional.layer_norm(states, weight.shape, weight, bias, self.eps)

    def rms_norm(self, name: str) -> Map:
        weight = self(f"{name}.weight")

        def normalise(states: Tensor) -> Tensor:
            wide = states.float()
            scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + self.eps)
            return weight * (wide * scale).to(states.dtype)

        return normalise

    def head(self, config: Mapping[str, Any], tokens: Tensor, *, tied: bool) -> Tensor:
        """The weights of the head; `tied` to the tokens where the configuration does not say."""
        return tokens if config.get("tie_word_embeddings", tied) else self("lm_head.weight")


def _joined(parts: list[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(parts)


def _new_gelu(states: Tensor) -> Tensor:
    return functional.gelu(states, approximate="tanh")


ACTIVATIONS: dict[str, Map] = {
    "gelu": functional.gelu,
    "gelu_new": _new_gelu,
    "gelu_pytorch_tanh": _new_gelu,
    "relu": functional.relu,
    "silu": functional.silu,
}


def _two_maps(first: Map, activation: Map, second: Map) -> Map:
    return lambda states: second(activation(first(states)))


def _gated(both: Map, activation: Map, second: Map) -> Map:
    def feed(states: Tensor) -> Tensor:
        gate, value = both(states).chunk(2, dim=-1)
        return second(activation(gate) * value)

    return feed


def _gpt2(config: Mapping[str, Any], stored: Mapping[str, Tensor]) -> Decoder | None:
    others = ("scale_attn_by_inverse_layer_idx", "add_cross_attention", "n_inner_groups")
    plain = config.get("scale_attn_weights", True) is True and not any(map(config.get, others))
    activation = ACTIVATIONS.get(config.get("activation_function", "gelu_new"))
    if activation is None or not plain:
        return None
    weights = _Weights(stored, ("transformer.",), float(config.get("layer_norm_epsilon", 1e-5)))
    layers = []
    for number in range(config["n_layer"]):
        path = f"h.{number}"
        first = weights.linear(f"{path}.mlp.c_fc", turned=True)
        second = weights.linear(f"{path}.mlp.c_proj", turned=True)
        layers.append(
            DecoderLayer(
                before=weights.norm(f"{path}.ln_1"),
                qkv=weights.linear(f"{path}.attn.c_attn", turned=True),
                out=weights.linear(f"{path}.attn.c_proj", turned=True),
                after=weights.norm(f"{path}.ln_2"),
                feed=_two_maps(first, activation, second),
            )
        )
    tokens, positions, heads = weights("wte.weight"), weights("wpe.weight"), config["n_head"]
    return Decoder(
        tokens=tokens,
        positions=positions,
        layers=tuple(layers),
        norm=weights.norm("ln_f"),
        head=weights.head(config, tokens, tied=True),
        heads=heads,
        groups=heads,
        size=config["n_embd"] // heads,
        theta=None,
        longest=len(positions),
    )


def _llama(config: Mapping[str, Any], stored: Mapping[str, Tensor]) -> Decoder | None:
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    activation = ACTIVATIONS.get(config.get("hidden_act", "silu"))
    if kind != "default" or activation is None:
        return None
    weights = _Weights(stored, ("model.",), float(config.get("rms_norm_eps", 1e-6)))
    own, fed = bool(config.get("attention_bias")), bool(config.get("mlp_bias"))
    layers = []
    for number in range(config["num_hidden_layers"]):
        path = f"layers.{number}"
        gate = weights.linear(f"{path}.mlp.gate_proj", f"{path}.mlp.up_proj", bias=fed)
        second = weights.linear(f"{path}.mlp.down_proj", bias=fed)
        layers.append(
            DecoderLayer(
                before=weights.rms_norm(f"{path}.input_layernorm"),
                qkv=weights.linear(*(f"{path}.self_attn.{x}_proj" for x in "qkv"), bias=own),
                out=weights.linear(f"{path}.self_attn.o_proj", bias=own),
                after=weights.rms_norm(f"{path}.post_attention_layernorm"),
                feed=_gated(gate, activation, second),
            )
        )
    tokens, heads = weights("embed_tokens.weight"), config["num_attention_heads"]
    return Decoder(
        tokens=tokens,
        positions=None,
        layers=tuple(layers),
        norm=weights.rms_norm("norm"),
        head=weights.head(config, tokens, tied=False),
        heads=heads,
        groups=config.get("num_key_value_heads") or heads,
        size=config.get("head_dim") or config["hidden_size"] // heads,
        theta=float(rope.get("rope_theta", config.get("rope_theta", 10_000.0))),
        longest=config["max_position_embeddings"],
    )


def _opt(config: Mapping[str, Any], stored: Mapping[str, Tensor]) -> Decoder | None:
    activation = ACTIVATIONS.get(config.get("activation_function", "relu"))
    wanted = ("do_layer_norm_before", "enable_bias", "layer_norm_elementwise_affine")
    plain = (
        all(config.get(name, True) for name in wanted)
        and not config.get("_remove_final_layer_norm")
        and config.get("word_embed_proj_dim", config["hidden_size"]) == config["hidden_size"]
    )
    if activation is None or not plain:
        return None
    weights = _Weights(stored, ("model.decoder.", "decoder."), 1e-5)
    layers = []
    for number in range(config["num_hidden_layers"]):
        path = f"layers.{number}"
        first, second = weights.linear(f"{path}.fc1"), weights.linear(f"{path}.fc2")
        layers.append(
            DecoderLayer(
                before=weights.norm(f"{path}.self_attn_layer_norm"),
                qkv=weights.linear(*(f"{path}.self_attn.{x}_proj" for x in "qkv")),
                out=weights.linear(f"{path}.self_attn.out_proj"),
                after=weights.norm(f"{path}.final_layer_norm"),
                feed=_two_maps(first, activation, second),
            )
        )
    tokens, heads = weights("embed_tokens.weight"), config["num_attention_heads"]
    positions = weights("embed_positions.weight")[2:]  # the first are unused
    return Decoder(
        tokens=tokens,
        positions=positions,
        layers=tuple(layers),
        norm=weights.norm("final_layer_norm"),
        head=weights.head(config, tokens, tied=True),
        heads=heads,
        groups=heads,
        size=config["hidden_size"] // heads,
        theta=None,
        longest=len(positions),
    )


def attend(decoder: Decoder, states: Tensor, mask: Tensor | None) -> Tensor:
    """Attention over padded rows (rows, tokens, heads + 2 groups, size).

    Without a mask every token sees those before it and itself.
    """
    query, key, value = torch.split(
        states.transpose(1, 2), [decoder.heads, decoder.groups, decoder.groups], dim=1
    )
    return functional.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=mask,
        is_causal=mask is None,
        scale=1 / math.sqrt(decoder.size),
        enable_gqa=decoder.groups != decoder.heads,
    ).transpose(1, 2)
