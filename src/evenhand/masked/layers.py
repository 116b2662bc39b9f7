"""The layers of a transformer by one set of names, whichever family the model is of.

BERT, RoBERTa, ELECTRA and their kin, DistilBERT and ALBERT compute the same thing under different
names: attention, a residual and a norm, then two linear layers, a residual and a norm. A layer
that is not quite that (other parts, adapters, hooks) is not read, and the model is run as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from torch import nn
    from transformers import PreTrainedModel

__all__ = ["Layer", "layers_of"]


@dataclass(frozen=True, slots=True)
class Layer:
    """One layer: attention (`query`, `key`, `value`, `out`), then `up`, the activation, `down`."""

    heads: int
    query: nn.Linear
    key: nn.Linear
    value: nn.Linear
    out: nn.Linear
    norm: nn.LayerNorm
    up: nn.Linear
    activation: Callable[[torch.Tensor], torch.Tensor]
    down: nn.Linear
    last_norm: nn.LayerNorm

    @property
    def linear(self) -> tuple[nn.Linear, ...]:
        return (self.query, self.key, self.value, self.out, self.up, self.down)


def layers_of(network: PreTrainedModel) -> Sequence[Layer] | None:
    """The layers in the order they are run (ALBERT runs one several times), None if unknown."""
    base: Any = network.base_model
    encoder: Any = getattr(base, "encoder", None)
    if hasattr(encoder, "albert_layer_groups"):
        groups = encoder.albert_layer_groups
        if len(groups) != 1 or len(groups[0].albert_layers) != 1:
            return None
        found = [groups[0].albert_layers[0]] * int(network.config.num_hidden_layers)
    else:
        found = list(getattr(encoder or getattr(base, "transformer", None), "layer", None) or [])
    kinds = {type(each).__name__ for each in found}
    if len(kinds) != 1 or not kinds <= _READ.keys() or not _plain(network):
        return None
    read = _READ[type(found[0]).__name__]
    layers = [read(each) for each in found]
    return layers if all(_usual(layer) for layer in layers) else None


def _plain(network: PreTrainedModel) -> bool:
    """Whether the model does what its parts do: absolute positions, both ways, all parts the
    libraries' own, nothing hooked, no dropout.
    """
    settings: Any = network.config
    positions = getattr(settings, "position_embedding_type", "absolute") or "absolute"
    causal = getattr(settings, "is_decoder", False)
    return (
        positions == "absolute"
        and not causal
        and not network.training
        and all(_untouched(part) for part in network.base_model.modules())
    )


def _untouched(part: nn.Module) -> bool:
    hooked = part._forward_hooks or part._forward_pre_hooks or "forward" in vars(part)
    return not hooked and type(part).__module__.startswith(("torch.nn.", "transformers."))


def _usual(layer: Layer) -> bool:
    """Whether every part is a plain one (an adapter, say, is another class)."""
    from torch import nn

    linear = all(type(each) is nn.Linear and each.bias is not None for each in layer.linear)
    return linear and all(type(each) is nn.LayerNorm for each in (layer.norm, layer.last_norm))


def _bert(layer: Any) -> Layer:
    inner, attended, up = layer.attention.self, layer.attention.output, layer.intermediate
    return Layer(
        inner.num_attention_heads, inner.query, inner.key, inner.value, attended.dense,
        attended.LayerNorm, up.dense, up.intermediate_act_fn, layer.output.dense,
        layer.output.LayerNorm,
    )  # fmt: skip


def _distilbert(layer: Any) -> Layer:
    inner, ffn = layer.attention, layer.ffn
    return Layer(
        inner.n_heads, inner.q_lin, inner.k_lin, inner.v_lin, inner.out_lin, layer.sa_layer_norm,
        ffn.lin1, ffn.activation, ffn.lin2, layer.output_layer_norm,
    )  # fmt: skip


def _albert(layer: Any) -> Layer:
    inner = layer.attention
    return Layer(
        inner.num_attention_heads, inner.query, inner.key, inner.value, inner.dense,
        inner.LayerNorm, layer.ffn, layer.activation, layer.ffn_output,
        layer.full_layer_layer_norm,
    )  # fmt: skip


_READ: dict[str, Callable[[Any], Layer]] = {
    "AlbertLayer": _albert,
    "BertLayer": _bert,
    "CamembertLayer": _bert,
    "ElectraLayer": _bert,
    "RobertaLayer": _bert,
    "TransformerBlock": _distilbert,
    "XLMRobertaLayer": _bert,
}
