"""One pass of a masked language model that computes what is asked for and no more.

Rows of one length need no padding and no mask. The last layer and the head are computed at the
places that are asked about only, where the model is of a family whose last layer is known here
(BERT, RoBERTa, ELECTRA and their kin, DistilBERT, ALBERT); other models are run whole.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

__all__ = ["hidden_of", "logits_of"]


def logits_of(network: PreTrainedModel, hidden: torch.Tensor) -> torch.Tensor:
    """The head of the model on hidden states (n, width): logits (n, vocabulary)."""
    return _head(network)(hidden)


def hidden_of(
    network: PreTrainedModel, ids: torch.Tensor
) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    """The model run once on a batch of token ids; what comes back gives, as often as asked, the
    last hidden states (n, width) at (rows[k], places[k]).
    """
    layer, times = _last_layer(network)
    if layer is None:
        hidden: torch.Tensor = network.base_model(
            input_ids=ids, attention_mask=None
        ).last_hidden_state
        return lambda rows, places: hidden[rows, places]
    entering = _before(network, layer, times, ids)
    finish = _FINISH[type(layer).__name__]
    return lambda rows, places: finish(layer, entering, rows, places)


class _ReachedError(Exception):
    """Carries the input of the last layer out of the model's own forward pass."""

    def __init__(self, hidden: torch.Tensor) -> None:
        super().__init__()
        self.hidden = hidden


def _before(network: PreTrainedModel, layer: Any, times: int, ids: torch.Tensor) -> torch.Tensor:
    """The hidden states that enter the last layer, at its `times`-th call (ALBERT shares one)."""
    calls = 0

    def stop(_: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        nonlocal calls
        calls += 1
        if calls == times:
            raise _ReachedError(arguments[0] if arguments else named["hidden_states"])

    handle = layer.register_forward_pre_hook(stop, with_kwargs=True)
    try:
        network.base_model(input_ids=ids, attention_mask=None)
    except _ReachedError as reached:
        return reached.hidden
    finally:
        handle.remove()
    raise RuntimeError("the last layer of the model was never called")


def _last_layer(network: PreTrainedModel) -> tuple[Any, int]:
    """The last layer, if its kind is known here, and how often a pass calls it."""
    base: Any = network.base_model
    encoder: Any = getattr(base, "encoder", None)
    if hasattr(encoder, "albert_layer_groups"):
        group = encoder.albert_layer_groups
        alone = len(group) == 1 and len(group[0].albert_layers) == 1
        return (group[0].albert_layers[0], network.config.num_hidden_layers) if alone else (None, 0)
    layers: Any = getattr(encoder or getattr(base, "transformer", None), "layer", None)
    known = layers is not None and type(layers[-1]).__name__ in _FINISH
    return (layers[-1], 1) if known else (None, 0)


def _attended(
    heads: int, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, rows: torch.Tensor
) -> torch.Tensor:
    """Attention of one place a question (n, width) over the whole of its row."""
    from torch.nn.functional import scaled_dot_product_attention

    n, width = query.shape
    size = width // heads

    def split(x: torch.Tensor) -> torch.Tensor:
        return x.view(*x.shape[:-1], heads, size).transpose(1, 2)[rows]

    asked = query.view(n, heads, 1, size)
    return scaled_dot_product_attention(asked, split(key), split(value)).reshape(n, width)


def _mixed(inner: Any, chosen: torch.Tensor, hidden: torch.Tensor, rows: Any) -> torch.Tensor:
    """Attention by the names that BERT and ALBERT have for its parts."""
    query, key, value = inner.query(chosen), inner.key(hidden), inner.value(hidden)
    return _attended(inner.num_attention_heads, query, key, value, rows)


def _bert(layer: Any, hidden: Any, rows: Any, places: Any) -> torch.Tensor:
    inner = layer.attention.self
    chosen = hidden[rows, places]
    mixed = _mixed(inner, chosen, hidden, rows)
    attended = layer.attention.output(mixed, chosen)
    finished: torch.Tensor = layer.output(layer.intermediate(attended), attended)
    return finished


def _distilbert(layer: Any, hidden: Any, rows: Any, places: Any) -> torch.Tensor:
    inner = layer.attention
    chosen = hidden[rows, places]
    mixed = _attended(
        inner.n_heads, inner.q_lin(chosen), inner.k_lin(hidden), inner.v_lin(hidden), rows
    )
    attended = layer.sa_layer_norm(inner.out_lin(mixed) + chosen)
    finished: torch.Tensor = layer.output_layer_norm(layer.ffn(attended) + attended)
    return finished


def _albert(layer: Any, hidden: Any, rows: Any, places: Any) -> torch.Tensor:
    inner = layer.attention
    chosen = hidden[rows, places]
    mixed = _mixed(inner, chosen, hidden, rows)
    attended = inner.LayerNorm(chosen + inner.dense(mixed))
    finished: torch.Tensor = layer.full_layer_layer_norm(layer.ff_chunk(attended) + attended)
    return finished


_FINISH: dict[str, Callable[[Any, Any, Any, Any], torch.Tensor]] = {
    "AlbertLayer": _albert,
    "BertLayer": _bert,
    "CamembertLayer": _bert,
    "ElectraLayer": _bert,
    "RobertaLayer": _bert,
    "TransformerBlock": _distilbert,
    "XLMRobertaLayer": _bert,
}


def _head(network: Any) -> Callable[[torch.Tensor], torch.Tensor]:
    """What a model puts on its last hidden states, by the names transformers gives it."""
    if hasattr(network, "generator_lm_head"):
        return lambda hidden: network.generator_lm_head(network.generator_predictions(hidden))
    if hasattr(network, "vocab_projector"):
        return lambda hidden: network.vocab_projector(
            network.vocab_layer_norm(network.activation(network.vocab_transform(hidden)))
        )
    for name in ("cls", "lm_head", "predictions"):
        if hasattr(network, name):
            head: Callable[[torch.Tensor], torch.Tensor] = getattr(network, name)
            return head
    from evenhand.errors import InputError

    kind = type(network).__name__
    raise InputError(f"model: expected a masked language model with a known head, got {kind}")
