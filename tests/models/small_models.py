"""Small random models of five families, each with a real tokenizer of its kind, saved on disk."""

from __future__ import annotations

import torch
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    ElectraConfig,
    ElectraForMaskedLM,
    PreTrainedTokenizerFast,
    RobertaConfig,
    RobertaForMaskedLM,
)

FAMILIES = ("bert", "distilbert", "roberta", "albert", "electra")

TEXT = [
    "The nurse said that he was late and she was early.",
    "The doctor lost his keys, and her keys were on the table.",
    "A teacher reads a book to him and to her.",
    "He sings and she reads; the engineer is here.",
    "his her him he she the a said was is and to",
] * 20

BERT = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
ROBERTA = {"pad": "<pad>", "unk": "<unk>", "cls": "<s>", "sep": "</s>", "mask": "<mask>"}


def _wrapped(tokenizer: Tokenizer, special: dict[str, str]) -> PreTrainedTokenizerFast:
    ids = {token: tokenizer.token_to_id(token) for token in special.values()}
    first, last = special["cls"], special["sep"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{first} $A {last}",
        special_tokens=[(first, ids[first]), (last, ids[last])],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=40,
        **{f"{name}_token": token for name, token in special.items()},
    )


def _wordpiece(*, lower: bool) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=90, special_tokens=list(BERT.values()))
    tokenizer.train_from_iterator(TEXT, trainer)
    return _wrapped(tokenizer, BERT)


def _byte_bpe() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=320,
        special_tokens=list(ROBERTA.values()),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    return _wrapped(tokenizer, ROBERTA)


def _unigram() -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=90, special_tokens=list(BERT.values()), unk_token="[UNK]"
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    return _wrapped(tokenizer, BERT)


def made(family: str):
    tokenizer = {
        "bert": lambda: _wordpiece(lower=True),
        "distilbert": lambda: _wordpiece(lower=False),
        "roberta": _byte_bpe,
        "albert": _unigram,
        "electra": lambda: _wordpiece(lower=True),
    }[family]()
    shape = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    usual = {
        "hidden_size": 32,
        "num_hidden_layers": 3,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 48,
        "initializer_range": 0.2,
    }
    torch.manual_seed(7)
    if family == "bert":
        return tokenizer, BertForMaskedLM(BertConfig(**shape, **usual))
    if family == "roberta":
        return tokenizer, RobertaForMaskedLM(RobertaConfig(**shape, **usual))
    if family == "albert":
        return tokenizer, AlbertForMaskedLM(AlbertConfig(**shape, **usual, embedding_size=16))
    if family == "electra":
        return tokenizer, ElectraForMaskedLM(ElectraConfig(**shape, **usual, embedding_size=16))
    config = DistilBertConfig(
        **shape,
        dim=32,
        n_layers=3,
        n_heads=4,
        hidden_dim=64,
        max_position_embeddings=48,
        initializer_range=0.2,
    )
    return tokenizer, DistilBertForMaskedLM(config)
