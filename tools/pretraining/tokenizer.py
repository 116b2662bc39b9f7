"""The tokenizers: uncased WordPiece for masked models, byte-level BPE for causal ones.

A causal model predicts text as it is written, so that its tokens have upper and lower case and
spaces. A text begins as if a space were before it: a sentence has the same tokens wherever it is.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from evenhand.errors import FileError
from evenhand.files import replace_file

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PAD, UNK, CLS, SEP, MASK = range(5)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
MAX_POSITIONS = 256
BETWEEN = "<|endoftext|>"
"""Before and after every text of a causal model; its id is 0."""
Kind = Literal["masked", "causal"]


def train_tokenizer(documents: Iterable[list[str]], size: int, kind: Kind = "masked") -> Tokenizer:
    """Learn `size` tokens; the special ones have the first ids."""
    return _train_bpe(documents, size) if kind == "causal" else _train_wordpiece(documents, size)


def _train_bpe(documents: Iterable[list[str]], size: int) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors
    from tokenizers.trainers import BpeTrainer

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = BpeTrainer(
        vocab_size=size,
        special_tokens=[BETWEEN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(documents, trainer)
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=True)
    return tokenizer


def _train_wordpiece(documents: Iterable[list[str]], size: int) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
    from tokenizers.trainers import WordPieceTrainer

    tokenizer = Tokenizer(models.WordPiece(unk_token=SPECIAL[UNK], max_input_chars_per_word=100))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = WordPieceTrainer(
        vocab_size=size, special_tokens=SPECIAL, limit_alphabet=200, show_progress=False
    )
    tokenizer.train_from_iterator(documents, trainer)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", SEP), ("[CLS]", CLS))
    tokenizer.decoder = decoders.WordPiece(prefix="##")
    return tokenizer


def save_tokenizer(tokenizer: Tokenizer, folder: Path) -> None:
    """Write the files that `AutoTokenizer.from_pretrained` reads, of transformers 4 and 5."""
    folder.mkdir(parents=True, exist_ok=True)
    if is_causal(tokenizer):
        configuration = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "model_max_length": MAX_POSITIONS,
            "clean_up_tokenization_spaces": False,
            "bos_token": BETWEEN,
            "eos_token": BETWEEN,
        }
        _write(folder / "tokenizer.json", tokenizer.to_str() + "\n")
        _write(folder / "tokenizer_config.json", json.dumps(configuration, indent=2) + "\n")
        return
    names = ["pad_token", "unk_token", "cls_token", "sep_token", "mask_token"]
    special = dict(zip(names, SPECIAL, strict=True))
    configuration = {
        "tokenizer_class": "BertTokenizer",
        "do_lower_case": True,
        "strip_accents": None,
        "tokenize_chinese_chars": True,
        "model_max_length": MAX_POSITIONS,
        "clean_up_tokenization_spaces": False,
        **special,
    }
    pieces = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    _write(folder / "tokenizer.json", tokenizer.to_str(pretty=True) + "\n")
    _write(folder / "tokenizer_config.json", json.dumps(configuration, indent=2) + "\n")
    _write(folder / "special_tokens_map.json", json.dumps(special, indent=2) + "\n")
    _write(folder / "vocab.txt", "".join(f"{piece}\n" for piece, _ in pieces))


def is_causal(tokenizer: Tokenizer) -> bool:
    """Whether a tokenizer is that of a causal model."""
    return tokenizer.token_to_id(BETWEEN) is not None


def load_tokenizer(folder: Path) -> Tokenizer:
    """Read the trained tokenizer back, without the limits and templates of transformers."""
    from tokenizers import Tokenizer

    path = folder / "tokenizer.json"
    if not path.is_file():
        raise FileError(path, "expected a trained tokenizer; `pretrain.py tokenizer` makes one")
    return Tokenizer.from_file(str(path))


def _write(path: Path, text: str) -> None:
    with replace_file(path) as file:
        file.write(text.encode())
