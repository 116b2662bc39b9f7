"""Networks of known families, read from a folder without transformers.

`read_network` reads BERT, RoBERTa, CamemBERT, XLM-RoBERTa, ELECTRA, DistilBERT and ALBERT with
their masked heads: the configuration and the weights, under the names that transformers gives to
modules and weights. It reads only folders in which everything is as expected. For every other
folder it returns None, and transformers reads it or says what is wrong with it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from evenhand.models.forward import ALBERT_LAYER, BERT_LAYER, DISTILBERT_LAYER, Layer, LayerNames

Ints = NDArray[np.integer[Any]]
MOST = 1 << 26


class Gelu:
    """The exact activation."""

    act = staticmethod(functional.gelu)

    def __call__(self, states: torch.Tensor) -> torch.Tensor:
        return functional.gelu(states)


def _new_gelu(x: torch.Tensor) -> torch.Tensor:
    inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
    return 0.5 * x * (1.0 + torch.tanh(inner))


ACTIVATIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "gelu": Gelu(),
    "gelu_new": _new_gelu,
    "relu": functional.relu,
}


class Family(NamedTuple):
    """The paths of the parts of a family's networks, by the names of transformers."""

    prefix: str
    """The name of the base model."""
    layers: str
    """The path of a layer, with its number."""
    parts: LayerNames
    dense: str
    norm: str
    decoder: str
    """The parts of the head, in the order in which they are run."""
    bias: str = ""
    """The module whose bias the decoder has, where that is another one."""
    projection: str = ""
    """From the width of the embeddings to that of the layers."""
    gelu: bool = False
    """Whether the head has GELU, whatever the activation of the layers."""


BERT = Family(
    "bert",
    "encoder.layer.{}",
    BERT_LAYER,
    "cls.predictions.transform.dense",
    "cls.predictions.transform.LayerNorm",
    "cls.predictions.decoder",
    "cls.predictions",
)
ROBERTA = Family(
    "roberta",
    "encoder.layer.{}",
    BERT_LAYER,
    "lm_head.dense",
    "lm_head.layer_norm",
    "lm_head.decoder",
    "lm_head",
    gelu=True,
)
FAMILIES = {
    "albert": Family(
        "albert",
        "encoder.albert_layer_groups.0.albert_layers.{}",
        ALBERT_LAYER,
        "predictions.dense",
        "predictions.LayerNorm",
        "predictions.decoder",
        "predictions",
        projection="encoder.embedding_hidden_mapping_in",
    ),
    "bert": BERT,
    "camembert": ROBERTA,
    "distilbert": Family(
        "distilbert",
        "transformer.layer.{}",
        DISTILBERT_LAYER,
        "vocab_transform",
        "vocab_layer_norm",
        "vocab_projector",
    ),
    "electra": Family(
        "electra",
        "encoder.layer.{}",
        BERT_LAYER,
        "generator_predictions.dense",
        "generator_predictions.LayerNorm",
        "generator_lm_head",
        projection="embeddings_project",
        gelu=True,
    ),
    "roberta": ROBERTA,
    "xlm-roberta": ROBERTA,
}

SIZES = {
    "hidden_size": "dim",
    "intermediate_size": "hidden_dim",
    "num_attention_heads": "n_heads",
    "num_hidden_layers": "n_layers",
}
"""The sizes that every family states, and their names in DistilBERT."""
IGNORED = {
    *("architectures", "dtype", "model_type", "torch_dtype", "transformers_version"),
    *("bos_token_id", "cls_token_id", "eos_token_id", "mask_token_id", "sep_token_id"),
    *("attention_dropout", "attention_probs_dropout_prob", "dropout", "hidden_dropout_prob"),
    *("classifier_dropout", "classifier_dropout_prob", "qa_dropout", "seq_classif_dropout"),
    *("gradient_checkpointing", "initializer_range", "unk_token_id", "use_cache", "_name_or_path"),
    *("down_scale_factor", "gap_size", "net_structure_type", "num_memory_blocks", "tie_weights_"),
    *("summary_activation", "summary_last_dropout", "summary_type", "summary_use_proj"),
}
"""Settings that change nothing about the masked head of a network that is not trained."""
FIXED: dict[str, tuple[object, ...]] = {
    **dict.fromkeys(("add_cross_attention", "is_decoder"), (None, False)),
    **dict.fromkeys(("output_attentions", "output_hidden_states"), (None, False)),
    **dict.fromkeys(("inner_group_num", "num_hidden_groups"), (1,)),
    "position_embedding_type": (None, "absolute"),
    "sinusoidal_pos_embds": (False,),
    "tie_word_embeddings": (True,),
}
"""Settings with the values that are read here."""


def _config(folder: Path) -> dict[str, Any] | None:
    """The configuration, by the names of BERT; None if it is not one that is read here."""
    config: dict[str, Any] = json.loads((folder / "config.json").read_bytes())
    family = config.get("model_type")
    if family not in FAMILIES:
        return None
    needed = {*SIZES, "vocab_size", "max_position_embeddings"}
    if family == "distilbert":
        names = {own: name for name, own in (*SIZES.items(), ("hidden_act", "activation"))}
        config = {names.get(name, name): value for name, value in config.items()}
        config["layer_norm_eps"] = 1e-12
    else:
        needed.add("type_vocab_size")
    if FAMILIES[family].projection:
        needed.add("embedding_size")
    if family == "albert":
        config = {"inner_group_num": None, "num_hidden_groups": None} | config
    others = {"hidden_act", "layer_norm_eps", "pad_token_id"}
    padding, eps = config["pad_token_id"], config["layer_norm_eps"]
    known = (
        config.keys() <= needed | others | FIXED.keys() | IGNORED
        and all(type(config[name]) is int and 0 < config[name] < MOST for name in needed)
        and all(config[name] in allowed for name, allowed in FIXED.items() if name in config)
        and config["hidden_act"] in ACTIVATIONS
        and (type(eps) is float and 0 < eps < 1)
        and config["hidden_size"] % config["num_attention_heads"] == 0
        and (padding is None or (type(padding) is int and 0 <= padding < config["vocab_size"]))
    )
    if FAMILIES[family] is ROBERTA:  # which counts positions from the padding token
        known = known and padding is not None and padding + 1 < config["max_position_embeddings"]
    return config if known else None


class MaskedNetwork(nn.Module):
    """A network of a known family, with the module and weight names of transformers.

    Its weights are assigned later: none are made and initialised first.
    """

    def __init__(self, settings: Mapping[str, Any], config: Mapping[str, Any]) -> None:
        super().__init__()
        self.settings = dict(settings)
        self.config = SimpleNamespace(**config)
        self.family = FAMILIES[config["model_type"]]
        self.base_model_prefix = self.family.prefix
        self.tied: dict[str, str] = {}
        self._activation = ACTIVATIONS[config["hidden_act"]]
        with torch.device("meta"):
            self._build()
        self.shapes = {name: list(weight.shape) for name, weight in self.state_dict().items()}

    @property
    def base_model(self) -> nn.Module:
        base: nn.Module = getattr(self, self.base_model_prefix)
        return base

    @property
    def device(self) -> torch.device:
        return self.base_model.embeddings.word_embeddings.weight.device  # type: ignore[union-attr, return-value]

    @property
    def dtype(self) -> torch.dtype:
        return self.base_model.embeddings.word_embeddings.weight.dtype  # type: ignore[union-attr, return-value]

    def get_input_embeddings(self) -> nn.Module:
        """The table of word embeddings."""
        return self.base_model.embeddings.word_embeddings  # type: ignore[union-attr, return-value]

    def embed(self, tokens: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
        """The input of the first layer (tokens, width), before any projection."""
        table: Any = self.base_model.embeddings
        states = table.word_embeddings(tokens)
        if self.family.prefix != "distilbert":
            states = states + table.token_type_embeddings.weight[0]
        embedded: torch.Tensor = table.LayerNorm(states + table.position_embeddings(positions))
        return embedded

    def positions(self, ids: Ints, lengths: Ints) -> Ints:
        """The numbers of the positions of packed rows."""
        table: Any = self.base_model.embeddings
        starts = np.repeat(np.cumsum(lengths) - lengths, lengths)
        padding = table.position_embeddings.padding_idx
        if padding is None:
            return np.arange(len(ids)) - starts
        shown = ids != padding
        before = np.concatenate([[0], np.cumsum(shown)])
        numbers: Ints = (before[1:] - before[starts]) * shown + padding
        return numbers

    def _add(self, path: str, module: nn.Module) -> None:
        """Add a module under a dotted name."""
        parent: nn.Module = self
        names = path.split(".")
        for name, following in pairwise(names):
            if name not in parent._modules:
                parent.add_module(name, nn.ModuleList() if following.isdigit() else nn.Module())
            parent = parent._modules[name]  # type: ignore[assignment]
        parent.add_module(names[-1], module)

    def _build(self) -> None:
        config, family = self.config, self.family
        width, inner = config.hidden_size, getattr(config, "embedding_size", config.hidden_size)
        self._tables(f"{family.prefix}.embeddings", inner)
        if inner != width or family.prefix == "albert":
            self._add(f"{family.prefix}.{family.projection}", nn.Linear(inner, width))
        for number in range(1 if family.prefix == "albert" else config.num_hidden_layers):
            self._layer(f"{family.prefix}.{family.layers.format(number)}", width)
        self._add(family.dense, nn.Linear(width, inner))
        self._add(family.norm, nn.LayerNorm(inner, config.layer_norm_eps))
        decoder = nn.Linear(inner, config.vocab_size)
        self._add(family.decoder, decoder)
        self.tied[f"{family.decoder}.weight"] = f"{family.prefix}.embeddings.word_embeddings.weight"
        if family.bias:
            self.get_submodule(family.bias).register_parameter("bias", decoder.bias)
            self.tied[f"{family.decoder}.bias"] = f"{family.bias}.bias"

    def _tables(self, path: str, width: int) -> None:
        config = self.config
        padding = config.pad_token_id if self.family is ROBERTA else None
        self._table(f"{path}.word_embeddings", config.vocab_size, width)
        self._table(f"{path}.position_embeddings", config.max_position_embeddings, width, padding)
        if self.family.prefix != "distilbert":
            self._table(f"{path}.token_type_embeddings", config.type_vocab_size, width)
        self._add(f"{path}.LayerNorm", nn.LayerNorm(width, config.layer_norm_eps))

    def _table(self, path: str, size: int, width: int, padding: int | None = None) -> None:
        # to initialise one without memory, torch imports much
        empty = torch.empty(size, width)
        self._add(path, nn.Embedding(size, width, padding, _weight=empty))

    def _layer(self, path: str, width: int) -> None:
        inner, eps = self.config.intermediate_size, self.config.layer_norm_eps
        names = self.family.parts
        for name in (names.query, names.key, names.value, names.out):
            self._add(f"{path}.{name}", nn.Linear(width, width))
        self._add(f"{path}.{names.up}", nn.Linear(width, inner))
        self._add(f"{path}.{names.down}", nn.Linear(inner, width))
        for name in (names.norm, names.last_norm):
            self._add(f"{path}.{name}", nn.LayerNorm(width, eps))
        for name, value in (
            (names.heads, self.config.num_attention_heads),
            (names.activation, self._activation),
        ):
            parent, _, attribute = f"{path}.{name}".rpartition(".")
            setattr(self.get_submodule(parent), attribute, value)

    def layers(self) -> list[Layer]:
        """The layers in the order in which they are run; ALBERT runs one several times."""
        albert = self.family.prefix == "albert"
        paths = [
            f"{self.family.prefix}.{self.family.layers.format(0 if albert else number)}"
            for number in range(self.config.num_hidden_layers)
        ]
        return [self.family.parts.read(self.get_submodule(path)) for path in paths]

    def head(self) -> tuple[nn.Linear, Callable[..., torch.Tensor], nn.LayerNorm, nn.Linear]:
        """The parts of the head in the order in which they are run."""
        family = self.family
        dense, norm, decoder = attrgetter(family.dense, family.norm, family.decoder)(self)
        return dense, ACTIVATIONS["gelu"] if family.gelu else self._activation, norm, decoder

    def assign(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Take these tensors as weights; tied ones are shared."""
        parameters: dict[str, nn.Parameter] = {}
        for name, weight in weights.items():
            parameters[name] = nn.Parameter(weight, requires_grad=False)
        for name, source in self.tied.items():
            parameters[name] = parameters[source]
        for name, parameter in parameters.items():
            path, _, last = name.rpartition(".")
            self.get_submodule(path).register_parameter(last, parameter)


def read_network(folder: Path, dtype: torch.dtype) -> MaskedNetwork | None:
    """Read the network of a folder, None if anything in it is not as expected."""
    try:
        config = _config(folder)
        if config is None or not _is_alone(folder):
            return None
        network = MaskedNetwork(json.loads((folder / "config.json").read_bytes()), config)
        return network if _load(network, folder / "model.safetensors", dtype) else None
    except Exception:  # whatever is wrong, transformers says it
        return None


def _is_alone(folder: Path) -> bool:
    """Whether the weights are in one file and nothing changes how they are read."""
    others = ("model.safetensors.index.json", "adapter_config.json")
    return (folder / "model.safetensors").is_file() and not any(
        (folder / name).exists() for name in others
    )


LAYER_NAME = (".layer.", ".layers.")


def _load(network: MaskedNetwork, path: Path, dtype: torch.dtype) -> bool:
    """Load the weights; whether all are there, of the right shape, and finite."""
    from safetensors import safe_open

    expected = network.shapes
    with safe_open(path, framework="pt") as file:
        names = set(file.keys())
        if any(any(part in name for part in LAYER_NAME) for name in names - expected.keys()):
            return False
        if expected.keys() - names - network.tied.keys():
            return False
        for name in names & expected.keys():
            stored = file.get_slice(name)
            if stored.get_shape() != expected[name]:
                return False
            if stored.get_dtype() not in ("F32", "F16", "BF16"):
                return False
        weights = {name: file.get_tensor(name) for name in sorted(names & expected.keys())}
    for name, source in network.tied.items():
        given = weights.pop(name, None)
        if given is not None and not torch.equal(given, weights[source]):
            return False
    if not all(map(_is_finite, weights.values())):
        return False
    network.assign({name: weight.to(dtype) for name, weight in weights.items()})
    network.eval()
    return True


def _is_finite(weight: torch.Tensor) -> bool:
    """Whether all numbers are finite; false also where their sum is not."""
    if weight.dtype == torch.bfloat16:
        return bool(torch.isfinite(weight).all())
    with np.errstate(over="ignore", invalid="ignore"):
        return bool(np.isfinite(weight.numpy().sum(dtype=np.float32)))


def parameters_of(network: Any) -> Iterator[tuple[str, torch.Tensor]]:
    """The weights and buffers of a network by name; tied ones once."""
    seen: set[int] = set()
    for name, tensor in sorted(network.state_dict(keep_vars=True).items()):
        if id(tensor) not in seen:
            seen.add(id(tensor))
            yield name, tensor
