"""Hiding tokens (Devlin et al. 2019) and the loss at the hidden places alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from evenhand.masked.forward import logits_of

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

    from evenhand.masked.finetune.blocks import Batch

__all__ = ["Hidden", "Hiding", "masked_loss"]


@dataclass(frozen=True, slots=True)
class Hidden:
    """A batch with some tokens hidden: what is shown, where something is hidden, and what."""

    shown: torch.Tensor
    there: torch.Tensor | None
    places: torch.Tensor
    """Places in the flattened batch."""
    labels: torch.Tensor

    def to(self, device: torch.device) -> Hidden:
        """The same on a device."""
        there = None if self.there is None else self.there.to(device)
        return Hidden(self.shown.to(device), there, self.places.to(device), self.labels.to(device))


class Hiding:
    """Chooses a share of the ordinary tokens: 80 % masked, 10 % another token, 10 % left."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast, share: float) -> None:
        import torch

        self._special = torch.tensor(tokenizer.all_special_ids)
        self._mask = int(tokenizer.mask_token_id)
        every = torch.arange(len(tokenizer))
        self._others = every[~torch.isin(every, self._special)]
        self._share = share

    def __call__(self, batch: Batch, seed: int) -> Hidden:
        """The batch with tokens hidden, the same ones for the same seed."""
        import torch

        draw = torch.Generator().manual_seed(seed)
        ids = batch.ids.flatten()
        ordinary = batch.ordinary.flatten() & ~torch.isin(ids, self._special)
        candidates = ordinary.nonzero()[:, 0]
        count = min(len(candidates), max(1, round(self._share * len(candidates))))
        order = torch.randperm(len(candidates), generator=draw)
        places = candidates[order[:count]].sort().values
        labels = ids[places]
        fate = torch.rand(count, generator=draw)
        other = self._others[torch.randint(len(self._others), (count,), generator=draw)]
        seen = torch.where(fate < 0.8, self._mask, torch.where(fate < 0.9, other, labels))
        shown = ids.scatter(0, places, seen).view_as(batch.ids)
        full = bool(batch.there.all())
        return Hidden(shown, None if full else batch.there, places, labels)


def masked_loss(network: PreTrainedModel, hidden: Hidden) -> torch.Tensor:
    """The mean cross-entropy at the hidden places; the head is computed nowhere else."""
    from torch.nn.functional import cross_entropy

    states = network.base_model(
        input_ids=hidden.shown, attention_mask=hidden.there
    ).last_hidden_state
    chosen = states.flatten(0, 1).index_select(0, hidden.places)
    return cross_entropy(logits_of(network, chosen).float(), hidden.labels)
