"""Sentence encoders: a network whose token states are pooled to one vector per text.

A folder is in the layout of sentence-transformers, whose `modules.json` says how token states are
pooled and what follows (linear maps, unit length), or a transformers network without a head, whose
states are averaged over all tokens.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.cache import Cache
from evenhand.errors import FileError, InputError
from evenhand.files import parse_json
from evenhand.instruments import Progress
from evenhand.models.causal_scoring import mean_states
from evenhand.models.masked import MaskedModel
from evenhand.models.masked import load as load_masked
from evenhand.models.memory import ModelSource, is_encoder, is_path, name_in_memory, save
from evenhand.models.sources import DType, first_sentence, locate, read_settings

if TYPE_CHECKING:
    import torch

    from evenhand.models.encoding import StepProgress

MODULES = "modules.json"
"""The file by which a folder is one of sentence-transformers."""
MODES = {
    "cls_token": "cls",
    "max_tokens": "max",
    "mean_tokens": "mean",
    "mean_sqrt_len_tokens": "mean_sqrt",
    "weightedmean_tokens": "weighted_mean",
    "lasttoken": "last",
}
"""The poolings as sentence-transformers names them, in the order in which they are concatenated."""
ACTIVATIONS = {"Identity": "identity", "Tanh": "tanh", "ReLU": "relu", "GELU": "gelu"}


class PooledDense(NamedTuple):
    """A linear map of the pooled vector with an activation."""

    weight: torch.Tensor
    bias: torch.Tensor | None
    activation: str

    def __call__(self, vectors: torch.Tensor) -> torch.Tensor:
        from torch.nn import functional

        mapped = functional.linear(vectors, self.weight, self.bias)
        if self.activation == "identity":
            return mapped
        activated: torch.Tensor = getattr(functional, self.activation)(mapped)
        return activated


@dataclass(frozen=True, eq=False)
class SentenceEncoder:
    """A loaded sentence encoder.

    Parameters
    ----------
    name : str
    model : MaskedModel
        The network and the tokenizer.
    pooling : str
        How token states become a vector, special tokens included: `mean`, `cls`, `max` …, or
        several joined by +, which are concatenated.
    limit : int
        The longest text in tokens; what follows is left out.
    dense : tuple of PooledDense
        Linear maps after pooling.
    normalize : bool
        Whether vectors have unit length.
    lower : bool
        Whether texts are lower-cased first.
    prompt : str
        What is put before each text.

    """

    name: str
    model: MaskedModel = field(repr=False)
    pooling: str = "mean"
    limit: int = 512
    dense: tuple[PooledDense, ...] = field(default=(), repr=False)
    normalize: bool = False
    lower: bool = False
    prompt: str = ""
    subject_kind: ClassVar[str] = "encoder"

    @property
    def tokenizer(self) -> Any:
        return self.model.tokenizer

    @property
    def base(self) -> Any:
        """The network, without a head."""
        return self.model.core.base_model

    @property
    def longest(self) -> int:
        """The maximum number of tokens of an input, special ones included."""
        return self.limit

    @property
    def device(self) -> torch.device:
        return self.model.device

    @property
    def dim(self) -> int:
        """The width of a vector."""
        if self.dense:
            return len(self.dense[-1].weight)
        return self.model.dim * len(self.pooling.split("+"))

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything the vectors depend on."""
        settings = (self.pooling, self.limit, self.normalize, self.lower, self.prompt)
        digest = blake2b(repr((self.model.fingerprint, settings)).encode(), digest_size=16)
        for layer in self.dense:
            digest.update(layer.activation.encode())
            for tensor in (layer.weight, layer.bias):
                if tensor is not None:
                    digest.update(tensor.float().cpu().contiguous().numpy().tobytes())
        return digest.hexdigest()

    def encode(
        self,
        texts: Sequence[str],
        *,
        cache: Cache | str | os.PathLike[str] | None = None,
        progress: Progress | None = None,
    ) -> NDArray[np.float32]:
        """The vectors (n, dim) of texts, in their order.

        Parameters
        ----------
        texts : sequence of str
        cache : Cache or path, optional
            Stores pooled states by text.
        progress : callable, optional
            Called with (tokens done, tokens).

        """
        import torch

        from evenhand.models.encoding import encode_texts

        inputs = [f"{self.prompt}{text}" for text in texts]
        if self.lower:
            inputs = [text.lower() for text in inputs]
        pooled = encode_texts(
            self.model,
            inputs,
            pooling=self.pooling,
            limit=self.limit,
            special=True,
            cache=cache,
            progress=_steps(progress),
        )
        if not self.dense and not self.normalize:
            return pooled
        with torch.inference_mode():
            vectors = torch.from_numpy(pooled)
            for layer in self.dense:
                vectors = layer(vectors)
            if self.normalize:
                vectors = torch.nn.functional.normalize(vectors, dim=1)
            return np.asarray(vectors.numpy())


def encode(
    model: Any,
    texts: Sequence[str],
    *,
    cache: Cache | None = None,
    progress: Progress | None = None,
) -> NDArray[np.float32]:
    """Compute one vector per text by a model of any kind.

    A sentence encoder pools as its folder says. Of masked and causal models it is the mean of the
    last layer's states of the text's own tokens, without special tokens: the first token of a
    masked model is not trained to represent the text, and the last one of a causal model is mostly
    a full stop.

    Parameters
    ----------
    model : SentenceEncoder, MaskedModel or CausalModel
    texts : sequence of str
    cache, progress
        As for `Run`.

    Returns
    -------
    array (n, dim)

    Examples
    --------
    >>> import evenhand as eh
    >>> eh.models.encode(eh.models.load("mini"), ["She sings.", "He cooks."]).shape
    (2, 256)

    """
    kind = getattr(model, "subject_kind", "masked")
    if kind == "causal":
        return mean_states(model, texts, cache=cache, progress=progress)
    if kind == "encoder":
        vectors: NDArray[np.float32] = model.encode(texts, cache=cache, progress=progress)
        return vectors
    if not isinstance(model, MaskedModel):
        raise InputError(f"model '{model.name}': expected a network with inner states, got none")
    from evenhand.models.encoding import encode_texts

    return encode_texts(model, texts, cache=cache, progress=_steps(progress))


def _steps(progress: Progress | None) -> StepProgress | None:
    return None if progress is None else lambda _step, done, total, _text: progress(done, total)


def load(
    source: ModelSource,
    *,
    device: str = "auto",
    dtype: DType = "float32",
) -> SentenceEncoder:
    """Load a sentence encoder; raises an error if a part of it is missing or not known.

    Parameters
    ----------
    source : str, path, (network, tokenizer), pipeline or SentenceTransformer
        A folder in the layout of transformers or sentence-transformers, `hf:NAME` for a model of
        the hub (the only case in which something may be downloaded), or a model in memory: a
        `SentenceTransformer`, of which a copy is loaded, or a transformers network without a head
        with its tokenizer, whose states are averaged over all tokens.
    device : str
        `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:1` …
    dtype : {"float32", "bfloat16", "float16"}
        The data type of the network.

    """
    if isinstance(source, SentenceEncoder):
        return source
    if is_encoder(source):
        with tempfile.TemporaryDirectory() as written:
            save(source, written)
            copied = load(written, device=device, dtype=dtype)
        return replace(copied, name=name_in_memory(copied.model.network))
    if not is_path(source):
        model = load_masked(source, head=False)
        return SentenceEncoder(model.name, model, limit=model.longest)
    shown, folder, _ = locate(source)
    if not (folder / MODULES).is_file():
        model = load_masked(source, device=device, dtype=dtype, head=False)
        return SentenceEncoder(shown, model, limit=model.longest)
    steps = _modules(folder)
    kinds = [kind for kind, _ in steps]
    if kinds[:2] != ["Transformer", "Pooling"]:
        raise FileError(
            folder / MODULES,
            f"expected a Transformer and its Pooling first, got {', '.join(kinds) or 'none'}",
        )
    (_, inner), (_, pooling), *others = steps
    del kinds[:2]
    if unknown := [kind for kind in kinds if kind not in ("Dense", "Normalize")]:
        raise FileError(
            folder / MODULES,
            f"expected modules of the types Dense and Normalize after Pooling, got {unknown[0]}",
        )
    if "Normalize" in kinds[:-1]:
        raise FileError(folder / MODULES, "expected Normalize as the last module")
    settings = _settings(inner / "sentence_bert_config.json")
    modes, include_prompt = _pooling(pooling / "config.json")
    prompt = _prompt(folder / "config_sentence_transformers.json")
    if prompt and not include_prompt:
        raise FileError(
            pooling / "config.json",
            "include_prompt: expected true, got false: pooling without the tokens of the prompt is "
            "not known",
        )
    model = load_masked(inner, device=device, dtype=dtype, head=False)
    longest = settings.get("max_seq_length")
    limit = longest if isinstance(longest, int) and longest > 2 else model.longest
    width, dense = model.dim * len(modes), []
    for kind, path in others:
        if kind == "Dense":
            dense.append(_dense(path, width))
            width = len(dense[-1].weight)
    return SentenceEncoder(
        shown,
        model,
        pooling="+".join(modes),
        limit=min(limit, model.longest),
        dense=tuple(dense),
        normalize="Normalize" in kinds,
        lower=settings.get("do_lower_case") is True,
        prompt=prompt,
    )


def _modules(folder: Path) -> list[tuple[str, Path]]:
    """The kind of each module and its folder."""
    path = folder / MODULES
    listed = parse_json(path.read_bytes(), path)
    if not isinstance(listed, list):
        raise FileError(path, f"expected a list of modules, got {type(listed).__name__}")
    steps = []
    for module in listed:
        kind = module.get("type") if isinstance(module, dict) else None
        inner = module.get("path", "") if isinstance(module, dict) else None
        if not isinstance(kind, str) or not isinstance(inner, str):
            raise FileError(path, f"expected modules with a type and a path, got {module!r:.100}")
        if not (folder / inner).resolve().is_relative_to(folder.resolve()):
            raise FileError(path, f"path: expected a folder within the model, got '{inner:.100}'")
        steps.append((kind.rpartition(".")[2], folder / inner))
    return steps


def _settings(path: Path) -> Mapping[str, Any]:
    """The settings of a file that may be absent."""
    return read_settings(path) if path.is_file() else {}


def _pooling(path: Path) -> tuple[list[str], bool]:
    """The poolings, and whether the tokens of a prompt count."""
    if not path.is_file():
        raise FileError(path, "expected the settings of the pooling, got no file")
    settings = _settings(path)
    modes = [mode for key, mode in MODES.items() if settings.get(f"pooling_mode_{key}") is True]
    if not modes:
        known = ", ".join(f"pooling_mode_{key}" for key in MODES)
        raise FileError(path, f"expected one of {known} to be true, got none")
    return modes, settings.get("include_prompt", True) is not False


def _prompt(path: Path) -> str:
    """The default prefix of every text."""
    settings = _settings(path)
    prompts, chosen = settings.get("prompts"), settings.get("default_prompt_name")
    if chosen is None or not isinstance(prompts, dict):
        return ""
    prompt = prompts.get(chosen)
    if not isinstance(prompt, str):
        raise FileError(path, f"prompts: expected one called '{chosen}', got none")
    return prompt


def _dense(folder: Path, width: int) -> PooledDense:
    """The linear map of a folder, for vectors of that width."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    settings = _settings(folder / "config.json")
    activation = str(settings.get("activation_function", "Identity")).rpartition(".")[2]
    if activation not in ACTIVATIONS:
        raise FileError(
            folder / "config.json",
            f"activation_function: expected one of {', '.join(ACTIVATIONS)}, got {activation}",
        )
    path = folder / "model.safetensors"
    try:
        stored = load_file(path)
    except (OSError, SafetensorError) as error:
        reason = first_sentence(error)
        raise FileError(path, f"expected the weights of a linear map: {reason}") from None
    weights = {name.removeprefix("linear."): value.float() for name, value in stored.items()}
    shapes = {name: tuple(value.shape) for name, value in weights.items()}
    outputs = shapes.get("weight", (0,))[0]
    if shapes != {"weight": (outputs, width)} | ({"bias": (outputs,)} if "bias" in shapes else {}):
        raise FileError(path, f"expected the weights of a linear map of {width} numbers")
    return PooledDense(weights["weight"], weights.get("bias"), ACTIVATIONS[activation])
