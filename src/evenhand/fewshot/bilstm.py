"""A bidirectional LSTM over word vectors, as the first few-shot papers had it.

It is a network like those of transformers, so that it is trained through the episodes as they are.
Words are lower-cased; those that have no vector share one, at first the mean of all.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence
from transformers import PreTrainedConfig, PreTrainedModel
from transformers.modeling_outputs import BaseModelOutput

from evenhand.models.base import LoadedModel, Networks, Tensors
from evenhand.vectors.store import Vectors, load

NAME = "bilstm"
PADDING, UNKNOWN = "[PAD]", "[UNK]"
WORDS = r"\w+(?:[-']\w+)*|[^\w\s]"
"""What is one word: GloVe has those with hyphens and apostrophes inside."""
WIDTH = 128
"""Numbers of a state in each direction."""
LONGEST = 512


class BiLstmConfig(PreTrainedConfig):  # type: ignore[no-untyped-call]
    """The sizes of a network."""

    model_type = "evenhand-bilstm"

    def __init__(self, **given: Any) -> None:
        super().__init__(**{"hidden_size": 2 * WIDTH, "num_hidden_layers": 1, **given})


class BiLstm(PreTrainedModel):  # type: ignore[no-untyped-call]
    """One layer over word embeddings; the states of both directions are concatenated."""

    config_class = BiLstmConfig
    base_model_prefix = ""

    def __init__(self, embeddings: Tensor) -> None:
        super().__init__(BiLstmConfig(pad_token_id=0))
        count, width = embeddings.shape
        self.embeddings = nn.Embedding(count, width, padding_idx=0, _weight=embeddings)
        self.lstm = nn.LSTM(embeddings.shape[1], WIDTH, batch_first=True, bidirectional=True)
        self.draw(0)

    @torch.no_grad()
    def draw(self, seed: int) -> None:
        """Draw the weights that are not learned before: those of the layer."""
        generator = torch.Generator().manual_seed(seed)
        bound = 1 / math.sqrt(WIDTH)
        for weight in self.lstm.parameters():
            weight.copy_(torch.empty(weight.shape).uniform_(-bound, bound, generator=generator))

    def get_input_embeddings(self) -> nn.Embedding:
        return self.embeddings

    def set_input_embeddings(self, value: Any) -> None:
        self.embeddings = value

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> BaseModelOutput:
        """The states of the words of rows, some of them padded where there is a mask."""
        words = self.embeddings(input_ids)
        if attention_mask is None:
            return BaseModelOutput(last_hidden_state=self.lstm(words)[0])
        lengths = attention_mask.sum(dim=1).cpu()
        packed = pack_padded_sequence(words, lengths, batch_first=True, enforce_sorted=False)
        length = input_ids.shape[1]
        states: Any = pad_packed_sequence(self.lstm(packed)[0], True, total_length=length)[0]
        return BaseModelOutput(last_hidden_state=states)


@dataclass(frozen=True, eq=False)
class WordModel(LoadedModel):
    """A network over words with its vocabulary."""

    subject_kind: ClassVar[str] = "words"

    @property
    def longest(self) -> int:
        return int(self.tokenizer.model_max_length)

    def tensors(self) -> Tensors:
        return sorted(self.core.state_dict().items())


def build(device: torch.device, vectors: Vectors | None = None) -> WordModel:
    """The network before any training over word vectors, by default the embedded GloVe, with their
    vocabulary.
    """
    from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    vectors = load("glove") if vectors is None else vectors
    matrix = np.asarray(vectors.matrix, dtype=np.float32)
    first = np.stack([np.zeros_like(matrix[0]), matrix.mean(axis=0)])
    ids = {word: number for number, word in enumerate([PADDING, UNKNOWN, *vectors.words])}
    backend = Tokenizer(models.WordLevel(ids, unk_token=UNKNOWN))
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(WORDS), behavior="removed", invert=True)
    tokenizer: Any = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend,
        unk_token=UNKNOWN,
        pad_token=PADDING,
        model_max_length=LONGEST,
    )
    network: Any = BiLstm(torch.from_numpy(np.concatenate([first, matrix])))
    network.eval().to(device)
    return WordModel(NAME, Networks(network), tokenizer)
