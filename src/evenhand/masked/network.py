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
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

Ints = NDArray[np.integer[Any]]
Check = Callable[[Any], bool]
Shapes = Mapping[str, list[int]]
MOST = 1 << 26


def _size(value: Any) -> bool:
    return type(value) is int and 0 < value < MOST


def _index(value: Any) -> bool:
    return value is None or (type(value) is int and 0 <= value < MOST)


def _share(value: Any) -> bool:
    return value is None or (type(value) in (int, float) and 0 <= value <= 1)


def _epsilon(value: Any) -> bool:
    return type(value) is float and 0 < value < 1


def _no(value: Any) -> bool:
    return value is None or value is False


def _any(value: Any) -> bool:
    del value
    return True


def _activation(value: Any) -> bool:
    return isinstance(value, str) and value in ACTIVATIONS


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

COMMON: dict[str, Check] = {
    **dict.fromkeys(
        (
            "architectures",
            "bos_token_id",
            "cls_token_id",
            "dtype",
            "eos_token_id",
            "gradient_checkpointing",
            "initializer_range",
            "mask_token_id",
            "model_type",
            "sep_token_id",
            "torch_dtype",
            "transformers_version",
            "unk_token_id",
            "use_cache",
            "_name_or_path",
        ),
        _any,
    ),
    **dict.fromkeys(
        ("add_cross_attention", "is_decoder", "output_attentions", "output_hidden_states"), _no
    ),
    **dict.fromkeys(
        (
            "attention_dropout",
            "attention_probs_dropout_prob",
            "classifier_dropout",
            "classifier_dropout_prob",
            "dropout",
            "hidden_dropout_prob",
            "qa_dropout",
            "seq_classif_dropout",
        ),
        _share,
    ),
    "pad_token_id": _index,
    "position_embedding_type": lambda value: value in (None, "absolute"),
    "tie_word_embeddings": lambda value: value is True,
    "vocab_size": _size,
    "max_position_embeddings": _size,
}
"""Settings that every family may have, with what is accepted."""

BERT: dict[str, Check] = {
    **dict.fromkeys(
        (
            "hidden_size",
            "intermediate_size",
            "num_attention_heads",
            "num_hidden_layers",
            "type_vocab_size",
        ),
        _size,
    ),
    "hidden_act": _activation,
    "layer_norm_eps": _epsilon,
}
DISTILBERT: dict[str, Check] = {
    **dict.fromkeys(("dim", "hidden_dim", "n_heads", "n_layers"), _size),
    "activation": _activation,
}
OPTIONAL: dict[str, dict[str, Check]] = {
    "albert": dict.fromkeys(("down_scale_factor", "gap_size", "net_structure_type"), _any)
    | {"num_memory_blocks": _any},
    "distilbert": {"sinusoidal_pos_embds": lambda value: value is False, "tie_weights_": _any},
    "electra": dict.fromkeys(
        ("summary_activation", "summary_last_dropout", "summary_type", "summary_use_proj"), _any
    ),
}
REQUIRED: dict[str, dict[str, Check]] = {
    "albert": BERT
    | {
        "embedding_size": _size,
        "inner_group_num": lambda value: type(value) is int and value == 1,
        "num_hidden_groups": lambda value: type(value) is int and value == 1,
    },
    "bert": BERT,
    "camembert": BERT,
    "distilbert": DISTILBERT,
    "electra": BERT | {"embedding_size": _size},
    "roberta": BERT,
    "xlm-roberta": BERT,
}
"""The settings of each family that describe its network; all must be present."""
FROM_PADDING = ("camembert", "roberta", "xlm-roberta")
"""Families that count positions from the padding token."""


def _config(folder: Path) -> dict[str, Any] | None:
    """The configuration of a known family, None if it is not one that is read here."""
    config = json.loads((folder / "config.json").read_bytes())
    family = config.get("model_type")
    if family not in REQUIRED:
        return None
    required = REQUIRED[family]
    checks = COMMON | OPTIONAL.get(family, {}) | required
    needed = {*required, "vocab_size", "max_position_embeddings", "pad_token_id"}
    if needed - config.keys() or any(
        name not in checks or not checks[name](value) for name, value in config.items()
    ):
        return None
    width, heads = (
        (config["dim"], config["n_heads"])
        if family == "distilbert"
        else (config["hidden_size"], config["num_attention_heads"])
    )
    padding = config["pad_token_id"]
    if width % heads or (padding is not None and padding >= config["vocab_size"]):
        return None
    if family in FROM_PADDING and (
        padding is None or padding + 1 >= config["max_position_embeddings"]
    ):
        return None
    return dict(config)


class Network(nn.Module):
    """A network of a known family, with the module and weight names of transformers."""

    def __init__(self, settings: Mapping[str, Any]) -> None:
        super().__init__()
        self.settings = dict(settings)
        family = str(settings["model_type"])
        distil = family == "distilbert"
        self.config = SimpleNamespace(
            hidden_size=settings["dim" if distil else "hidden_size"],
            num_hidden_layers=settings["n_layers" if distil else "num_hidden_layers"],
            max_position_embeddings=settings["max_position_embeddings"],
            vocab_size=settings["vocab_size"],
            pad_token_id=settings["pad_token_id"],
        )
        self.base_model_prefix = "roberta" if family in FROM_PADDING else family
        self.tied: dict[str, str] = {}
        self.shapes: dict[str, list[int]] = {}
        self._activation = ACTIVATIONS[settings["activation" if distil else "hidden_act"]]
        self._eps = 1e-12 if distil else float(settings["layer_norm_eps"])
        build = {"albert": self._albert, "electra": self._electra, "distilbert": self._distilbert}
        build.get(family, self._bert)()

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
        if hasattr(table, "token_type_embeddings"):
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

    def _module(self, path: str, kind: type[nn.Module], shapes: Shapes, **settings: Any) -> None:
        """Add a module whose weights are assigned later: none are made and initialised first."""
        module = kind.__new__(kind)
        nn.Module.__init__(module)
        for name, shape in shapes.items():
            self.shapes[f"{path}.{name}"] = shape
        for name, value in settings.items():
            setattr(module, name, value)
        self._add(path, module)

    def _linear(self, path: str, inputs: int, outputs: int) -> None:
        shapes = {"weight": [outputs, inputs], "bias": [outputs]}
        self._module(path, nn.Linear, shapes, in_features=inputs, out_features=outputs)

    def _norm(self, path: str, width: int) -> None:
        self._module(
            path,
            nn.LayerNorm,
            {"weight": [width], "bias": [width]},
            normalized_shape=(width,),
            eps=self._eps,
            elementwise_affine=True,
        )

    def _embedding(self, path: str, size: int, width: int, padding: int | None = None) -> None:
        self._module(
            path,
            nn.Embedding,
            {"weight": [size, width]},
            num_embeddings=size,
            embedding_dim=width,
            padding_idx=padding,
            max_norm=None,
            norm_type=2.0,
            scale_grad_by_freq=False,
            sparse=False,
        )

    def _tables(self, width: int, *, padding: int | None = None) -> None:
        path, config = f"{self.base_model_prefix}.embeddings", self.config
        self._embedding(f"{path}.word_embeddings", config.vocab_size, width)
        self._embedding(
            f"{path}.position_embeddings", config.max_position_embeddings, width, padding
        )
        if "type_vocab_size" in self.settings:
            self._embedding(
                f"{path}.token_type_embeddings", self.settings["type_vocab_size"], width
            )
        self._norm(f"{path}.LayerNorm", width)

    def _at(self, path: str) -> Any:
        return self.get_submodule(path)

    def _layers(self) -> None:
        settings, width = self.settings, self.config.hidden_size
        for number in range(self.config.num_hidden_layers):
            path = f"{self.base_model_prefix}.encoder.layer.{number}"
            for name in ("query", "key", "value"):
                self._linear(f"{path}.attention.self.{name}", width, width)
            self._at(f"{path}.attention.self").num_attention_heads = settings["num_attention_heads"]
            self._linear(f"{path}.attention.output.dense", width, width)
            self._norm(f"{path}.attention.output.LayerNorm", width)
            self._linear(f"{path}.intermediate.dense", width, settings["intermediate_size"])
            self._at(f"{path}.intermediate").intermediate_act_fn = self._activation
            self._linear(f"{path}.output.dense", settings["intermediate_size"], width)
            self._norm(f"{path}.output.LayerNorm", width)

    def _decoder(self, path: str, width: int, bias_of: str = "") -> None:
        """The last product of the head, its weight tied to the word embeddings."""
        self._linear(path, width, self.config.vocab_size)
        self.tied[f"{path}.weight"] = f"{self.base_model_prefix}.embeddings.word_embeddings.weight"
        if bias_of:
            self.shapes[f"{bias_of}.bias"] = [self.config.vocab_size]
            self.tied[f"{path}.bias"] = f"{bias_of}.bias"

    def _bert(self) -> None:
        width, prefix = self.config.hidden_size, self.base_model_prefix
        padding = self.config.pad_token_id if prefix == "roberta" else None
        self._tables(width, padding=padding)
        self._layers()
        if prefix == "roberta":
            self._linear("lm_head.dense", width, width)
            self._norm("lm_head.layer_norm", width)
            self._decoder("lm_head.decoder", width, "lm_head")
        else:
            self._linear("cls.predictions.transform.dense", width, width)
            self._norm("cls.predictions.transform.LayerNorm", width)
            self._decoder("cls.predictions.decoder", width, "cls.predictions")

    def _electra(self) -> None:
        width, inner = self.config.hidden_size, self.settings["embedding_size"]
        self._tables(inner)
        if inner != width:
            self._linear("electra.embeddings_project", inner, width)
        self._layers()
        self._norm("generator_predictions.LayerNorm", inner)
        self._linear("generator_predictions.dense", width, inner)
        self._decoder("generator_lm_head", inner)

    def _distilbert(self) -> None:
        width, settings = self.config.hidden_size, self.settings
        self._tables(width)
        for number in range(self.config.num_hidden_layers):
            path = f"distilbert.transformer.layer.{number}"
            for name in ("q_lin", "k_lin", "v_lin", "out_lin"):
                self._linear(f"{path}.attention.{name}", width, width)
            self._at(f"{path}.attention").n_heads = settings["n_heads"]
            self._norm(f"{path}.sa_layer_norm", width)
            self._linear(f"{path}.ffn.lin1", width, settings["hidden_dim"])
            self._linear(f"{path}.ffn.lin2", settings["hidden_dim"], width)
            self._at(f"{path}.ffn").activation = self._activation
            self._norm(f"{path}.output_layer_norm", width)
        self._linear("vocab_transform", width, width)
        self._norm("vocab_layer_norm", width)
        self._decoder("vocab_projector", width)

    def _albert(self) -> None:
        width, settings = self.config.hidden_size, self.settings
        inner = settings["embedding_size"]
        self._tables(inner)
        self._linear("albert.encoder.embedding_hidden_mapping_in", inner, width)
        path = "albert.encoder.albert_layer_groups.0.albert_layers.0"
        self._norm(f"{path}.full_layer_layer_norm", width)
        for name in ("query", "key", "value", "dense"):
            self._linear(f"{path}.attention.{name}", width, width)
        self._norm(f"{path}.attention.LayerNorm", width)
        self._at(f"{path}.attention").num_attention_heads = settings["num_attention_heads"]
        self._linear(f"{path}.ffn", width, settings["intermediate_size"])
        self._linear(f"{path}.ffn_output", settings["intermediate_size"], width)
        self._at(path).activation = self._activation
        self._norm("predictions.LayerNorm", inner)
        self._linear("predictions.dense", width, inner)
        self._decoder("predictions.decoder", inner, "predictions")

    def head(self) -> tuple[nn.Linear, Callable[..., torch.Tensor], nn.LayerNorm, nn.Linear]:
        """The parts of the head in the order in which they are run."""
        gelu = ACTIVATIONS["gelu"]
        dense, activation, norm, decoder = {
            "albert": ("predictions.dense", self._activation, "predictions.LayerNorm", ""),
            "bert": (
                "cls.predictions.transform.dense",
                self._activation,
                "cls.predictions.transform.LayerNorm",
                "",
            ),
            "distilbert": ("vocab_transform", self._activation, "vocab_layer_norm", ""),
            "electra": (
                "generator_predictions.dense",
                gelu,
                "generator_predictions.LayerNorm",
                "",
            ),
            "roberta": ("lm_head.dense", gelu, "lm_head.layer_norm", ""),
        }[self.base_model_prefix]
        decoder = next(name for name in self.tied if name.endswith(".weight"))
        return (
            self._at(dense),
            activation,
            self._at(norm),
            self._at(decoder.removesuffix(".weight")),
        )

    def assign(self, weights: Mapping[str, torch.Tensor]) -> None:
        """Take these tensors as weights; tied ones are shared."""
        parameters: dict[str, nn.Parameter] = {}
        for name, weight in weights.items():
            parameters[name] = nn.Parameter(weight, requires_grad=False)
        for name, source in self.tied.items():
            parameters[name] = parameters[source]
        for name, parameter in parameters.items():
            path, _, last = name.rpartition(".")
            self._at(path).register_parameter(last, parameter)


def read_network(folder: Path, dtype: torch.dtype) -> Network | None:
    """Read the network of a folder, None if anything in it is not as expected."""
    try:
        settings = _config(folder)
        if settings is None or not _is_alone(folder):
            return None
        network = Network(settings)
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


def _load(network: Network, path: Path, dtype: torch.dtype) -> bool:
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
