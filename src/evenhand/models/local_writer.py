"""Texts that a causal model writes in process, many at once.

The tokens of a prompt are read once for all its samples, whose queries attend to the same keys and
values; texts that have ended leave the batch. A text depends on its prompt, the settings and its
seed, not on the others of its batch, up to rounding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from evenhand.models.causal import BETWEEN, CausalModel
from evenhand.models.causal_scoring import log_likelihoods
from evenhand.models.writing import Budget, Finish, Request, WriteSettings, Written
from evenhand.statistics.intervals import Floats

if TYPE_CHECKING:
    import torch

    from evenhand.models.decoder import Decoder

__all__ = ["LocalWriter"]

ROWS, GPU_ROWS = 64, 512
"""Texts that are written at once."""
Tokens = list[int]


@dataclass(frozen=True, eq=False)
class LocalWriter:
    """Writes with a causal language model.

    The chat template of the model is used where it has one; otherwise the messages are joined by
    blank lines and continued.
    """

    model: CausalModel

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def fingerprint(self) -> str:
        return f"{self.model.fingerprint} {self._template or ''}"

    @property
    def about(self) -> dict[str, object]:
        return {"model": self.name, "chat_template": self._template is not None}

    @property
    def _template(self) -> str | None:
        template: str | None = getattr(self.model.tokenizer, "chat_template", None)
        return template

    def render(self, request: Request) -> str:
        """The text that the model continues."""
        messages = [{"role": each.role, "content": each.content} for each in request.messages]
        if self._template is None:
            return "\n\n".join(each["content"] for each in messages)
        return str(
            self.model.tokenizer.apply_chat_template(
                messages, tokenize=False, add_generation_prompt=True
            )
        )

    def _encode(self, requests: Sequence[Request]) -> list[Tokens]:
        begin = self.model.begin if self._template is None else None
        before = [] if begin is None else [begin]
        coded = self.model.encode([self.render(request) for request in requests])
        return [[*before, *each.ids] for each in coded]

    def count_tokens(self, requests: Sequence[Request]) -> list[int]:
        """The tokens of each prompt."""
        return list(map(len, self._encode(requests)))

    @cached_property
    def _ends(self) -> frozenset[int]:
        """The tokens that end a text."""
        tokenizer = self.model.tokenizer
        ends = {tokenizer.eos_token_id, tokenizer.get_vocab().get(BETWEEN)}
        generation = getattr(self.model.core, "generation_config", None)
        known = getattr(generation, "eos_token_id", None)
        ends |= set(known if isinstance(known, list) else [known])
        return frozenset(end for end in ends if end is not None)

    def write(
        self, requests: Sequence[Request], settings: WriteSettings, budget: Budget | None = None
    ) -> Iterator[tuple[int, Written]]:
        """Write a text for each request; yields (number of the request, text) as they end.

        Requests that the budget has no room for, with the most tokens of each, are left out.
        """
        budget = budget or Budget()
        prompts = self._encode(requests)
        most = [min(len(p) + settings.max_new_tokens, self.model.longest) for p in prompts]
        fitting = []
        for i, prompt in enumerate(prompts):
            if 0 < len(prompt) < self.model.longest:
                if budget.reserve(most[i]):
                    fitting.append(i)
            else:
                error = f"expected a prompt of 1 to {self.model.longest - 1:,} tokens, got "
                yield i, Written(text="", finish="error", error=f"{error}{len(prompt):,}")
        fitting.sort(key=lambda i: (len(prompts[i]), prompts[i]))
        for batch in self._batches(fitting, prompts):
            for i, written in self._write_batch(batch, prompts, requests, settings):
                budget.settle(most[i], len(prompts[i]) + written.tokens)
                yield i, written

    def _batches(self, order: Sequence[int], prompts: Sequence[Tokens]) -> Iterator[list[int]]:
        """Numbers of requests; a model whose decoder is not known takes one prompt at a time."""
        most = ROWS if self.model.device.type == "cpu" else GPU_ROWS
        known = self.model.decoder is not None
        for _, group in groupby(order, key=lambda i: None if known else tuple(prompts[i])):
            numbers = list(group)
            for first in range(0, len(numbers), most):
                yield numbers[first : first + most]

    def _write_batch(
        self,
        batch: Sequence[int],
        prompts: Sequence[Tokens],
        requests: Sequence[Request],
        settings: WriteSettings,
    ) -> Iterator[tuple[int, Written]]:
        import torch

        distinct = list(dict.fromkeys(tuple(prompts[i]) for i in batch))
        owners = np.array([distinct.index(tuple(prompts[i])) for i in batch])
        limits = [min(settings.max_new_tokens, self.model.longest - len(prompts[i])) for i in batch]
        draws = [np.random.default_rng(requests[i].seed) for i in batch]
        texts: list[Tokens] = [[] for _ in batch]
        running = list(range(len(batch)))
        with torch.inference_mode():
            decoder = self.model.decoder
            cache: _Cache = (
                _NetworkCache(self.model.network, len(batch))
                if decoder is None
                else _DecoderCache(decoder, owners)
            )
            logits = cache.read(distinct)[owners]
            while True:
                chosen = _choose(logits, [draws[i] for i in running], settings)
                going = []
                for place, (i, token) in enumerate(zip(running, chosen, strict=True)):
                    ended = token in self._ends
                    texts[i] += [] if ended else [token]
                    if ended or len(texts[i]) == limits[i]:
                        text = str(self.model.tokenizer.decode(texts[i], skip_special_tokens=True))
                        finish: Finish = "stop" if ended else "length"
                        yield batch[i], Written(text=text, finish=finish, tokens=len(texts[i]))
                    else:
                        going.append(place)
                if not going:
                    return
                if len(going) < len(running):
                    cache.keep(going)
                running = [running[place] for place in going]
                logits = cache.step([chosen[place] for place in going])

    def label_likelihoods(
        self, requests: Sequence[Request], labels: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        """The log-likelihood of each label as the beginning of the answer.

        A prompt that is continued is followed by a space.
        """
        rows, begins = [], []
        before = " " if self._template is None else ""
        for prompt, own in zip(self._encode(requests), labels, strict=True):
            for coded in self.model.encode([f"{before}{label}" for label in own]):
                rows.append([*prompt, *coded.ids])
                begins.append(len(prompt))
        values = iter(log_likelihoods(self.model, rows, begins).tolist())
        return [[next(values) for _ in own] for own in labels]


def _choose(
    logits: torch.Tensor, draws: Sequence[np.random.Generator], settings: WriteSettings
) -> Tokens:
    """The next token of each row: the likeliest, or sampled with one uniform number per row."""
    if settings.temperature == 0:
        likeliest: Tokens = logits.argmax(dim=1).tolist()
        return likeliest
    shares = (logits.double() / settings.temperature).softmax(dim=1).cpu().numpy()
    return [
        _sample(row, rng.random(), settings.top_p) for row, rng in zip(shares, draws, strict=True)
    ]


def _sample(shares: Floats, uniform: float, top_p: float) -> int:
    """Sample from the smallest set of the likeliest tokens that has a share of `top_p`."""
    if top_p == 1:
        cumulated = shares.cumsum()
        return int(np.searchsorted(cumulated, uniform * cumulated[-1], side="right"))
    order = np.argsort(-shares, kind="stable")
    cumulated = shares[order].cumsum()
    last = int(np.searchsorted(cumulated, top_p * cumulated[-1]))
    return int(order[np.searchsorted(cumulated[:last], uniform * cumulated[last], side="right")])


class _Cache(Protocol):
    """Keys and values of the texts of a batch."""

    def read(self, prompts: Sequence[tuple[int, ...]]) -> torch.Tensor:
        """The logits (prompts, vocabulary) after each prompt."""

    def step(self, tokens: Tokens) -> torch.Tensor:
        """The logits (texts, vocabulary) after a further token of each text."""

    def keep(self, texts: Sequence[int]) -> None:
        """Drop all other texts."""


class _DecoderCache:
    """Of a decoder: those of a prompt are stored once, whatever the number of its texts."""

    def __init__(self, decoder: Decoder, owners: NDArray[Any]) -> None:
        self.decoder = decoder
        self.owners = owners
        self.prompts: list[tuple[torch.Tensor, torch.Tensor]] = []
        """By layer, keys and values (prompts, groups, tokens, size)."""
        self.texts: list[list[torch.Tensor]] = []
        """By layer, keys and values (texts, groups, tokens, size); more tokens than are read."""
        self.length = 0

    def read(self, prompts: Sequence[tuple[int, ...]]) -> torch.Tensor:
        import torch

        from evenhand.models.decoder import attend, rotate

        decoder, device = self.decoder, self.decoder.head.device
        sizes = torch.tensor([len(prompt) for prompt in prompts], device=device)
        width = int(sizes.max())
        padded = [[*prompt, *[0] * (width - len(prompt))] for prompt in prompts]
        tokens = torch.tensor(padded, device=device).reshape(-1)
        positions = torch.arange(width, device=device).repeat(len(prompts))
        rotation = decoder.rotation(positions)
        both = decoder.heads + decoder.groups
        states = decoder.embed(tokens, positions)
        for number, layer in enumerate(decoder.layers, start=1):
            qkv = layer.qkv(layer.before(states)).view(len(tokens), -1, decoder.size)
            if rotation is not None:
                qkv = torch.cat([rotate(qkv[:, :both], rotation), qkv[:, both:]], dim=1)
            qkv = qkv.view(len(prompts), width, -1, decoder.size)
            states = states + layer.out(attend(decoder, qkv, None).reshape(len(tokens), -1))
            states = states + layer.feed(layer.after(states))
            if number in decoder.maps:
                states = decoder.maps[number](states)
            key, value = qkv.transpose(1, 2)[:, decoder.heads :].chunk(2, dim=1)
            self.prompts.append((key.contiguous(), value.contiguous()))
        self.sizes = sizes
        self.unseen = torch.arange(width, device=device)[None] >= sizes[:, None]
        self._place()
        last = states.view(len(prompts), width, -1)[torch.arange(len(prompts)), sizes - 1]
        return torch.nn.functional.linear(decoder.norm(last), decoder.head)

    def _place(self) -> None:
        """Number the texts of each prompt."""
        import torch

        owners = self.owners.tolist()
        self.order = torch.tensor(owners, device=self.decoder.head.device)
        numbers = [owners[:i].count(owner) for i, owner in enumerate(owners)]
        self.number = torch.tensor(numbers, device=self.decoder.head.device)

    def step(self, tokens: Tokens) -> torch.Tensor:
        import torch

        from evenhand.models.decoder import rotate

        decoder, device = self.decoder, self.decoder.head.device
        positions = self.sizes[self.order] + self.length
        states = decoder.embed(torch.tensor(tokens, device=device), positions)
        rotation = decoder.rotation(positions)
        both = decoder.heads + decoder.groups
        self._grow(len(tokens), states)
        for number, layer in enumerate(decoder.layers, start=1):
            qkv = layer.qkv(layer.before(states)).view(len(tokens), -1, decoder.size)
            if rotation is not None:
                qkv = torch.cat([rotate(qkv[:, :both], rotation), qkv[:, both:]], dim=1)
            for own, new in zip(
                self.texts[number - 1],
                qkv[:, decoder.heads :].chunk(2, dim=1),
                strict=True,
            ):
                own[:, :, self.length] = new
            seen = self._attend(number - 1, qkv[:, : decoder.heads])
            states = states + layer.out(seen.reshape(len(tokens), -1))
            states = states + layer.feed(layer.after(states))
            if number in decoder.maps:
                states = decoder.maps[number](states)
        self.length += 1
        return torch.nn.functional.linear(decoder.norm(states), decoder.head)

    def _grow(self, texts: int, states: torch.Tensor) -> None:
        """Make room for a further token."""
        import torch

        decoder = self.decoder
        room = self.texts[0][0].shape[2] if self.texts else 0
        if self.length < room:
            return
        further = states.new_empty(texts, decoder.groups, max(32, room), decoder.size)
        if not self.texts:
            self.texts = [[further.clone(), further.clone()] for _ in decoder.layers]
            return
        self.texts = [[torch.cat([old, further], dim=2) for old in own] for own in self.texts]

    def _attend(self, layer: int, query: torch.Tensor) -> torch.Tensor:
        """Attention of each text's query (texts, heads, size) to its prompt and to itself."""
        decoder = self.decoder
        texts, groups, size = len(query), decoder.groups, decoder.size
        each = decoder.heads // groups
        query = query.view(texts, groups, each, size) / size**0.5
        key, value = (own[:, :, : self.length + 1] for own in self.texts[layer])
        prompt_key, prompt_value = self.prompts[layer]
        # queries of one prompt's texts side by side: (prompts, groups, texts of it × heads, size)
        wide = query.new_zeros(len(prompt_key), int(self.number.max()) + 1, groups, each, size)
        wide[self.order, self.number] = query
        wide = wide.permute(0, 2, 1, 3, 4)
        scores = wide.flatten(2, 3) @ prompt_key.transpose(2, 3)
        scores = scores.masked_fill(self.unseen[:, None, None], float("-inf"))
        scores = scores.view(*wide.shape[:4], -1).permute(0, 2, 1, 3, 4)[self.order, self.number]
        both = scores.new_empty(texts, groups, each, scores.shape[-1] + self.length + 1)
        both[..., : scores.shape[-1]] = scores
        both[..., scores.shape[-1] :] = query @ key.transpose(2, 3)
        weights = both.float().softmax(dim=-1).to(query.dtype)
        of_prompt = weights.new_zeros(
            len(prompt_key), wide.shape[2], groups, each, scores.shape[-1]
        )
        of_prompt[self.order, self.number] = weights[..., : scores.shape[-1]]
        mean = of_prompt.permute(0, 2, 1, 3, 4).flatten(2, 3) @ prompt_value
        mean = mean.view(*wide.shape).permute(0, 2, 1, 3, 4)[self.order, self.number]
        return mean + weights[..., scores.shape[-1] :] @ value

    def keep(self, texts: Sequence[int]) -> None:
        self.owners = self.owners[list(texts)]
        self._place()
        self.texts = [[old[list(texts)] for old in own] for own in self.texts]


class _NetworkCache:
    """Of a network of transformers, all of whose texts have one prompt."""

    def __init__(self, network: Any, texts: int) -> None:
        self.network, self.count = network, texts
        self.cache: Any = None

    def _run(self, tokens: list[list[int]]) -> torch.Tensor:
        import torch

        ids = torch.tensor(tokens, device=self.network.device)
        out = self.network(input_ids=ids, past_key_values=self.cache, use_cache=True)
        self.cache = out.past_key_values
        logits: torch.Tensor = out.logits[:, -1]
        return logits

    def read(self, prompts: Sequence[tuple[int, ...]]) -> torch.Tensor:
        logits = self._run([list(prompts[0])])
        self.cache.batch_repeat_interleave(self.count)
        return logits

    def step(self, tokens: Tokens) -> torch.Tensor:
        return self._run([[token] for token in tokens])

    def keep(self, texts: Sequence[int]) -> None:
        import torch

        self.cache.batch_select_indices(torch.tensor(texts, device=self.network.device))
