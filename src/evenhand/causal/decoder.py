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

__all__ = ["Decoder", "Layer", "read_decoder"]

Map = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class Layer:
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
    layers : tuple of Layer
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
    layers: tuple[Layer, ...]
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
    return None if build is None else build(config, _Weights(weights))


class _Weights:
    """Weights by name, with or without the name of the base model before it."""

    def __init__(self, weights: Mapping[str, Tensor]) -> None:
        self.weights = weights

    def __call__(self, name: str, *prefixes: str) -> Tensor:
        for prefix in (*prefixes, ""):
            if f"{prefix}{name}" in self.weights:
                return self.weights[f"{prefix}{name}"]
        raise KeyError(name)

    def linear(self, name: str, *prefixes: str, bias: bool = True, turned: bool = False) -> Map:
        weight = self(f"{name}.weight", *prefixes)
        return _linear(
            weight.T.contiguous() if turned else weight,
            self(f"{name}.bias", *prefixes) if bias else None,
        )

    def joined(self, names: tuple[str, ...], *prefixes: str, bias: bool) -> Map:
        """Several linear maps of one input as one."""
        return _linear(
            torch.cat([self(f"{name}.weight", *prefixes) for name in names]),
            torch.cat([self(f"{name}.bias", *prefixes) for name in names]) if bias else None,
        )

    def norm(self, name: str, *prefixes: str, eps: float) -> Map:
        weight, bias = self(f"{name}.weight", *prefixes), self(f"{name}.bias", *prefixes)
        return lambda states: functional.layer_norm(states, weight.shape, weight, bias, eps)

    def rms_norm(self, name: str, *prefixes: str, eps: float) -> Map:
        weight = self(f"{name}.weight", *prefixes)

        def normalise(states: Tensor) -> Tensor:
            wide = states.float()
            scale = torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)
            return weight * (wide * scale).to(states.dtype)

        return normalise


def _linear(weight: Tensor, bias: Tensor | None) -> Map:
    return lambda states: functional.linear(states, weight, bias)


def _new_gelu(states: Tensor) -> Tensor:
    return functional.gelu(states, approximate="tanh")


ACTIVATIONS: dict[str, Map] = {
    "gelu": functional.gelu,
    "gelu_new": _new_gelu,
    "gelu_pytorch_tanh": _new_gelu,
    "relu": functional.relu,
    "silu": functional.silu,
}


def _gpt2(config: Mapping[str, Any], weights: _Weights) -> Decoder | None:
    plain = not any(
        config.get(name)
        for name in ("scale_attn_by_inverse_layer_idx", "add_cross_attention", "n_inner_groups")
    )
    if not plain or config.get("scale_attn_weights", True) is not True:
        return None
    activation = ACTIVATIONS.get(config.get("activation_function", "gelu_new"))
    if activation is None:
        return None
    eps, base = float(config.get("layer_norm_epsilon", 1e-5)), "transformer."
    layers = []
    for number in range(config["n_layer"]):
        path = f"h.{number}"
        first = weights.linear(f"{path}.mlp.c_fc", base, turned=True)
        second = weights.linear(f"{path}.mlp.c_proj", base, turned=True)
        layers.append(
            Layer(
                before=weights.norm(f"{path}.ln_1", base, eps=eps),
                qkv=weights.linear(f"{path}.attn.c_attn", base, turned=True),
                out=weights.linear(f"{path}.attn.c_proj", base, turned=True),
                after=weights.norm(f"{path}.ln_2", base, eps=eps),
                feed=_two_maps(first, activation, second),
            )
        )
    tokens = weights("wte.weight", base)
    positions = weights("wpe.weight", base)
    heads = config["n_head"]
    return Decoder(
        tokens=tokens,
        positions=positions,
        layers=tuple(layers),
        norm=weights.norm("ln_f", base, eps=eps),
        head=_head(config, weights, tokens, default=True),
        heads=heads,
        groups=heads,
        size=config["n_embd"] // heads,
        theta=None,
        longest=len(positions),
    )


def _two_maps(first: Map, activation: Map, second: Map) -> Map:
    return lambda states: second(activation(first(states)))


def _gated(both: Map, activation: Map, second: Map) -> Map:
    def feed(states: Tensor) -> Tensor:
        gate, value = both(states).chunk(2, dim=-1)
        return second(activation(gate) * value)

    return feed


def _head(config: Mapping[str, Any], weights: _Weights, tokens: Tensor, *, default: bool) -> Tensor:
    if config.get("tie_word_embeddings", default):
        return tokens
    return weights("lm_head.weight")


def _llama(config: Mapping[str, Any], weights: _Weights) -> Decoder | None:
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    kind = rope.get("rope_type", rope.get("type", "default"))
    activation = ACTIVATIONS.get(config.get("hidden_act", "silu"))
    if kind != "default" or activation is None:
        return None
    eps, base = float(config.get("rms_norm_eps", 1e-6)), "model."
    own, fed = bool(config.get("attention_bias")), bool(config.get("mlp_bias"))
    layers = []
    for number in range(config["num_hidden_layers"]):
        path = f"layers.{number}"
        attention = tuple(f"{path}.self_attn.{name}_proj" for name in "qkv")
        gate = (f"{path}.mlp.gate_proj", f"{path}.mlp.up_proj")
        layers.append(
            Layer(
                before=weights.rms_norm(f"{path}.input_layernorm", base, eps=eps),
                qkv=weights.joined(attention, base, bias=own),
                out=weights.linear(f"{path}.self_attn.o_proj", base, bias=own),
                after=weights.rms_norm(f"{path}.post_attention_layernorm", base, eps=eps),
                feed=_gated(
                    weights.joined(gate, base, bias=fed),
                    activation,
                    weights.linear(f"{path}.mlp.down_proj", base, bias=fed),
                ),
            )
        )
    tokens = weights("embed_tokens.weight", base)
    heads = config["num_attention_heads"]
    return Decoder(
        tokens=tokens,
        positions=None,
        layers=tuple(layers),
        norm=weights.rms_norm("norm", base, eps=eps),
        head=_head(config, weights, tokens, default=False),
        heads=heads,
        groups=config.get("num_key_value_heads") or heads,
        size=config.get("head_dim") or config["hidden_size"] // heads,
        theta=float(rope.get("rope_theta", config.get("rope_theta", 10_000.0))),
        longest=config["max_position_embeddings"],
    )


def _opt(config: Mapping[str, Any], weights: _Weights) -> Decoder | None:
    activation = ACTIVATIONS.get(config.get("activation_function", "relu"))
    plain = (
        config.get("do_layer_norm_before", True)
        and not config.get("_remove_final_layer_norm")
        and config.get("enable_bias", True)
        and config.get("layer_norm_elementwise_affine", True)
        and config.get("word_embed_proj_dim", config["hidden_size"]) == config["hidden_size"]
    )
    if activation is None or not plain:
        return None
    eps, base = 1e-5, "model.decoder."
    layers = []
    for number in range(config["num_hidden_layers"]):
        path = f"layers.{number}"
        attention = tuple(f"{path}.self_attn.{name}_proj" for name in "qkv")
        layers.append(
            Layer(
                before=weights.norm(f"{path}.self_attn_layer_norm", base, "decoder.", eps=eps),
                qkv=weights.joined(attention, base, "decoder.", bias=True),
                out=weights.linear(f"{path}.self_attn.out_proj", base, "decoder."),
                after=weights.norm(f"{path}.final_layer_norm", base, "decoder.", eps=eps),
                feed=_two_maps(
                    weights.linear(f"{path}.fc1", base, "decoder."),
                    activation,
                    weights.linear(f"{path}.fc2", base, "decoder."),
                ),
            )
        )
    tokens = weights("embed_tokens.weight", base, "decoder.")
    positions = weights("embed_positions.weight", base, "decoder.")[2:]  # the first are unused
    heads = config["num_attention_heads"]
    return Decoder(
        tokens=tokens,
        positions=positions,
        layers=tuple(layers),
        norm=weights.norm("final_layer_norm", base, "decoder.", eps=eps),
        head=_head(config, weights, tokens, default=True),
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
    grouped = decoder.groups != decoder.heads
    return functional.scaled_dot_product_attention(
        query,
        key,
        value,
        attn_mask=mask,
        is_causal=mask is None,
        scale=1 / math.sqrt(decoder.size),
        enable_gqa=grouped,
    ).transpose(1, 2)
