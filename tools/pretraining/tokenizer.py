"""An uncased WordPiece tokenizer of the BERT kind, trained on the text."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from evenhand.errors import FileError
from evenhand.files import replace_file

if TYPE_CHECKING:
    from tokenizers import Tokenizer

PAD, UNK, CLS, SEP, MASK = range(5)
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
MAX_POSITIONS = 256


def train_tokenizer(documents: Iterable[list[str]], size: int) -> Tokenizer:
    """Learn `size` word pieces; the special tokens have the ids 0 to 4."""
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
