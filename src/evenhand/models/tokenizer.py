"""A tokenizer of a folder, read without transformers.

`read_tokenizer` reads `tokenizer.json` where the settings beside it change nothing about it, so
that its ids, offsets and special tokens are those of transformers. For every other folder it
returns None, and transformers reads the tokenizer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from evenhand.models.sources import read_settings

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Backend

NAMED = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
"""The special tokens that have names."""
NO_LIMIT = int(1e30)
"""The longest input of a tokenizer that states none, as in transformers."""

AS_SAVED = ("PreTrainedTokenizerFast", "TokenizersBackend")
"""Classes of transformers that use tokenizer.json unchanged."""
BERT_CLASSES = ("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer")
BERT_FAMILIES = ("bert", "distilbert", "electra")
BERT_TOKENS = {name: f"[{name.upper()}]" for name in ("unk", "sep", "pad", "cls", "mask")}

IGNORED = {
    *("backend", "clean_up_tokenization_spaces", "errors", "is_local", "local_files_only"),
    *("do_basic_tokenize", "never_split", "name_or_path", "special_tokens_map_file"),
    *("max_length", "model_max_length", "padding_side", "tokenizer_class", "truncation_side"),
}
"""Settings that do not change how a text is tokenized."""


def content(backend: Backend) -> str:
    """The tokenizer as JSON, without the settings of its last call."""
    settings = json.loads(backend.to_str())
    for transient in ("padding", "truncation"):
        settings.pop(transient, None)
    return json.dumps(settings, sort_keys=True)


class Tokenizer:
    """A tokenizer of the Rust library with the special tokens and limits of its folder.

    Whatever else is asked of it (padding, saving, added tokens) is done by the tokenizer of
    transformers, which is loaded then and shares its state with this one.

    Parameters
    ----------
    backend : tokenizers.Tokenizer
    special : mapping of str to str
        The special tokens by name: "mask", "unk" …
    model_max_length : int
    folder : path

    """

    def __init__(
        self, backend: Backend, special: Mapping[str, str], model_max_length: int, folder: Path
    ) -> None:
        self._backend = backend
        self._folder = folder
        self._complete: Any = None
        self._loaded = ""
        self.model_max_length = model_max_length
        for name in NAMED:
            token = special.get(name)
            setattr(self, f"{name}_token", token)
            number = None if token is None else backend.token_to_id(token)
            setattr(self, f"{name}_token_id", number)
        ids = [getattr(self, f"{name}_token_id") for name in NAMED]
        self.all_special_ids = list(dict.fromkeys(i for i in ids if i is not None))

    @property
    def backend_tokenizer(self) -> Backend:
        return self._backend if self._complete is None else self._complete.backend_tokenizer

    def complete(self) -> Any:
        """The tokenizer of transformers; from then on both share one backend."""
        if self._complete is None:
            from transformers import AutoTokenizer

            self._complete = AutoTokenizer.from_pretrained(
                str(self._folder), use_fast=True, local_files_only=True, trust_remote_code=False
            )
            self._loaded = content(self._complete.backend_tokenizer)
        return self._complete

    @property
    def content(self) -> str:
        """The tokenizer as JSON; it changes when tokens are added."""
        if self._complete is not None:
            now = content(self._complete.backend_tokenizer)
            if now != self._loaded:
                return now
        return content(self._backend)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("_complete", "_folder", "_backend", "_loaded"):
            raise AttributeError(name)
        return getattr(self.complete(), name)

    def __len__(self) -> int:
        return int(self.backend_tokenizer.get_vocab_size(with_added_tokens=True))

    def __bool__(self) -> bool:
        return True

    def get_vocab(self) -> dict[str, int]:
        """The ids of all tokens."""
        vocabulary: dict[str, int] = self.backend_tokenizer.get_vocab(with_added_tokens=True)
        return vocabulary

    def __call__(self, text: Any, *given: Any, **options: Any) -> Any:
        """The token ids of a text or of a list of texts, as `{"input_ids": …}`."""
        plain = {"truncation", "max_length", "add_special_tokens", "verbose"}
        texts = [text] if isinstance(text, str) else text
        if (
            given
            or not options.keys() <= plain
            or not isinstance(texts, Sequence)
            or not all(isinstance(each, str) for each in texts)
            or not isinstance(options.get("truncation", False), bool)
        ):
            return self.complete()(text, *given, **options)
        backend = self.backend_tokenizer
        if options.get("truncation"):
            backend.enable_truncation(options.get("max_length") or self.model_max_length)
        else:
            backend.no_truncation()
        backend.no_padding()
        coded = backend.encode_batch(
            list(texts), add_special_tokens=options.get("add_special_tokens", True)
        )
        backend.no_truncation()
        ids = [encoding.ids for encoding in coded]
        return {"input_ids": ids[0] if isinstance(text, str) else ids}

    def convert_ids_to_tokens(self, ids: int | Sequence[int]) -> Any:
        """The token of an id, or those of several."""
        backend = self.backend_tokenizer
        if isinstance(ids, int):
            return str(backend.id_to_token(ids))
        return [backend.id_to_token(int(i)) for i in ids]

    def convert_tokens_to_ids(self, tokens: str | Sequence[str]) -> Any:
        """The id of a token, or those of several; that of the unknown token where it is none."""
        if isinstance(tokens, str):
            number = self.backend_tokenizer.token_to_id(tokens)
            return self.unk_token_id if number is None else number
        return [self.convert_tokens_to_ids(token) for token in tokens]


def read_tokenizer(folder: Path, family: str) -> Tokenizer | None:
    """Read the tokenizer of a folder, None if anything in it is not as expected."""
    from tokenizers import Tokenizer as Backend

    try:
        return _read(folder, family, Backend)
    except BaseException as error:  # the Rust library panics with a class of its own
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return None


def _read(folder: Path, family: str, reader: type[Backend]) -> Tokenizer | None:
    if not (folder / "tokenizer.json").is_file() or (folder / "added_tokens.json").exists():
        return None
    settings = read_settings(folder / "tokenizer_config.json")
    name = settings.get("tokenizer_class")
    if name is None and family in BERT_FAMILIES:
        name = "BertTokenizer"
    if not isinstance(name, str):
        return None
    is_bert = name.removesuffix("Fast") in BERT_CLASSES
    if not is_bert and name not in AS_SAVED:
        return None
    special = dict(BERT_TOKENS) if is_bert else {}
    special |= _special(settings)
    legacy = folder / "special_tokens_map.json"
    if legacy.is_file() and not _special(read_settings(legacy)).items() <= special.items():
        return None
    backend = reader.from_file(str(folder / "tokenizer.json"))
    if backend.truncation is not None or backend.padding is not None:
        return None
    longest = settings.get("model_max_length", NO_LIMIT)
    longest = NO_LIMIT if type(longest) is float and longest >= NO_LIMIT else longest
    if type(longest) is not int or longest < 1:
        return None
    unknown = settings.keys() - IGNORED - {f"{token}_token" for token in NAMED}
    if is_bert:
        unknown -= {"do_lower_case", "strip_accents", "tokenize_chinese_chars"}
        if not _is_bert(backend, settings, special):
            return None
    if "added_tokens_decoder" in unknown and _same_added(settings, backend):
        unknown -= {"added_tokens_decoder"}
    for kind in ("additional", "extra", "model_specific"):
        if not settings.get(f"{kind}_special_tokens"):
            unknown -= {f"{kind}_special_tokens"}
    if unknown or not _are_added(backend, special):
        return None
    return Tokenizer(backend, special, longest, folder)


def _special(settings: Mapping[str, Any]) -> dict[str, str]:
    """The named special tokens of some settings, which must be texts."""
    special = {}
    for name in NAMED:
        if (token := settings.get(f"{name}_token")) is not None:
            if not isinstance(token, str):
                raise TypeError
            special[name] = token
    return special


def _are_added(backend: Backend, special: Mapping[str, str]) -> bool:
    """Whether the special tokens are known to the tokenizer as such."""
    tokens = backend.get_added_tokens_decoder().values()
    added = {token.content for token in tokens if token.special}
    return set(special.values()) <= added and backend.post_processor is not None


def _same_added(settings: Mapping[str, Any], backend: Backend) -> bool:
    """Whether the added tokens of the settings are those of the tokenizer."""
    names = ("content", "lstrip", "normalized", "rstrip", "single_word", "special")
    own = {
        str(number): {name: getattr(token, name) for name in names}
        for number, token in backend.get_added_tokens_decoder().items()
    }
    return bool(settings["added_tokens_decoder"] == own)


def _is_bert(backend: Backend, settings: Mapping[str, Any], special: Mapping[str, str]) -> bool:
    """Whether the tokenizer is the one that BERT's settings describe."""
    model = backend.model
    normalizer = {
        "type": "BertNormalizer",
        "clean_text": True,
        "handle_chinese_chars": settings.get("tokenize_chinese_chars", True),
        "strip_accents": settings.get("strip_accents"),
        "lowercase": settings.get("do_lower_case", True),
    }
    ends = [backend.token_to_id(special[name]) for name in ("cls", "sep")]
    added = backend.get_added_tokens_decoder().values()
    return (
        type(model).__name__ == "WordPiece"
        and model.unk_token == special["unk"]
        and model.continuing_subword_prefix == "##"
        and model.max_input_chars_per_word == 100
        and _state(backend.normalizer) == normalizer
        and _state(backend.pre_tokenizer) == {"type": "BertPreTokenizer"}
        and _state(backend.post_processor).get("type") in ("BertProcessing", "TemplateProcessing")
        and backend.encode("").ids == ends
        and {token.content for token in added} == set(special.values())
        and not any(t.normalized or t.lstrip or t.rstrip or t.single_word for t in added)
    )


def _state(part: Any) -> dict[str, Any]:
    state: dict[str, Any] = json.loads(part.__getstate__())
    return state
