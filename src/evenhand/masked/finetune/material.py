"""What a run learns from: batches of every epoch, and a fixed set for the evaluation loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenhand.errors import InputError
from evenhand.masked.finetune.blocks import Rows, batch_of, batches, made_rows
from evenhand.masked.finetune.documents import Documents
from evenhand.masked.finetune.masking import Hidden, Hiding
from evenhand.masked.finetune.rewriting import derived_seed, rewritten
from evenhand.masked.finetune.settings import Settings
from evenhand.masked.model import Model

__all__ = ["Material"]

EVALUATION_TOKENS = 20_000
"""The evaluation loss rests on no more tokens than these, so that it costs little."""

PIECE = 1000
"""Documents tokenised at once."""


class Material:
    """Rows and batches of each epoch: they depend on the documents and the settings alone."""

    def __init__(self, model: Model, documents: Documents, settings: Settings) -> None:
        for name, part in (("learn from", documents.training), ("evaluate", documents.evaluation)):
            if not part:
                raise InputError(
                    f"text: expected documents to {name}, got none of {documents.read} read; "
                    "more text is needed"
                )
        self.settings = settings
        self.block = min(settings.block, model.longest)
        self._tokenizer = model.tokenizer
        self._padding = int(model.tokenizer.pad_token_id or 0)
        self._hiding = Hiding(model.tokenizer, settings.mask)
        self.training = self._capped(documents.training, settings.max_tokens)
        self._kept: tuple[int, Rows] | None = None
        self.evaluation_documents = self._capped(documents.evaluation, EVALUATION_TOKENS)
        self.evaluation = self._evaluation()
        self.epoch_tokens = self.rows(0).tokens
        self.planned = min(settings.max_tokens, settings.epochs * self.epoch_tokens)

    def rows(self, epoch: int) -> Rows:
        """The rows of an epoch, rewritten as it asks."""
        if self.settings.rewrite != "substitute":
            epoch = 0  # every epoch reads the same
        if self._kept is None or self._kept[0] != epoch:
            texts = rewritten(self.training, self.settings.rewrite, self.settings.seed, epoch)
            self._kept = epoch, made_rows(self._tokenizer, texts, self.block)
        return self._kept[1]

    def batches(self, epoch: int) -> list[list[int]]:
        """Which rows make up each step of an epoch."""
        rng = np.random.default_rng(derived_seed(self.settings.seed, "order", epoch))
        return self._batches(self.rows(epoch), rng)

    def step(self, epoch: int, chosen: Sequence[int], step: int) -> tuple[Hidden, int]:
        """The rows of a step with tokens hidden, and how many tokens they have."""
        batch = batch_of(self.rows(epoch), chosen, self._padding)
        hidden = self._hiding(batch, derived_seed(self.settings.seed, "mask", step))
        return hidden, int(batch.there.sum())

    def _batches(self, rows: Rows, rng: np.random.Generator) -> list[list[int]]:
        lengths = [len(ids) for ids in rows.ids]
        return batches(lengths, self.settings.batch * self.block, rng)

    def _capped(self, texts: Sequence[str], tokens: int) -> tuple[str, ...]:
        """The first documents that together have so many tokens."""
        taken = reached = 0
        for start in range(0, len(texts), PIECE):
            coded: Any = self._tokenizer(list(texts[start : start + PIECE]), verbose=False)
            for ids in coded["input_ids"]:
                taken, reached = taken + 1, reached + len(ids)
                if reached >= tokens:
                    return tuple(texts[:taken])
        return tuple(texts)

    def _evaluation(self) -> list[Hidden]:
        """The evaluation documents, rewritten once and hidden once: the same at every look."""
        settings = self.settings
        texts = rewritten(self.evaluation_documents, settings.rewrite, settings.seed, "evaluation")
        rows = made_rows(self._tokenizer, texts, self.block)
        rng = np.random.default_rng(derived_seed(settings.seed, "order", "evaluation"))
        return [
            self._hiding(
                batch_of(rows, chosen, self._padding),
                derived_seed(settings.seed, "evaluation mask", number),
            )
            for number, chosen in enumerate(self._batches(rows, rng))
        ]
