"""Text that a model writes: requests, settings and answers, the same for every source."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Condition
from typing import Literal, Protocol, TypeAlias

from evenhand.errors import check_whole
from evenhand.instruments import check_options, documented, option

__all__ = ["Budget", "Finish", "Message", "Request", "WriteSettings", "Writer", "Written"]

Finish: TypeAlias = Literal["stop", "length", "refusal", "error"]
"""Why a text ends: by itself, at its limit, as the server declined, or as something failed."""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True, slots=True)
class Request:
    """One text to be written.

    Parameters
    ----------
    messages : tuple of Message
        What is given. A model without a chat template continues the contents, joined by blank
        lines.
    seed : int
        Seed of this text: requests that are equal in everything have the same answer.

    """

    messages: tuple[Message, ...]
    seed: int = 0


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class WriteSettings:
    """How texts are written."""

    temperature: float = option(
        1.0, minimum=0, maximum=2, help="Temperature of sampling; 0 takes the likeliest token."
    )
    top_p: float = option(
        1.0, above=0, maximum=1, help="Share of the probability that tokens are sampled from."
    )
    max_new_tokens: int = option(
        256, minimum=1, maximum=65_536, help="Tokens after which an answer is cut off."
    )

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Written:
    """What was written for a request.

    Parameters
    ----------
    text : str
    finish : {"stop", "length", "refusal", "error"}
    tokens : int
        Tokens of the text, where they are known; else 0.
    error : str
        What went wrong, in one line, where `finish` is "error".

    """

    text: str
    finish: Finish
    tokens: int = 0
    error: str = ""


class Budget:
    """What writing may cost; shared by the threads of a writer.

    Each request is reserved with the most tokens that it can take before it is sent, and settled
    when the tokens that it took are known, so that the bounds hold whatever the answers are.

    Parameters
    ----------
    requests, tokens : int, optional
        The most requests, and tokens of prompts and answers together; unlimited by default.

    Examples
    --------
    >>> budget = Budget(tokens=100)
    >>> budget.reserve(60), budget.settle(60, 30), budget.reserve(70), budget.reserve(1)
    (True, None, True, False)

    """

    def __init__(self, requests: int | None = None, tokens: int | None = None) -> None:
        if requests is not None:
            check_whole(requests=requests)
        if tokens is not None:
            check_whole(tokens=tokens)
        self.limits = requests, tokens
        self.requests = self.tokens = 0
        self.refused = False
        """Whether a request was not sent for lack of budget; no later one is sent then."""
        self._open = 0
        self._changed = Condition()

    def reserve(self, tokens: int, *, wait: bool = False) -> bool:
        """Whether there is room for a request of at most so many tokens, which then is reserved.

        With `wait`, requests of other threads that are not settled are waited for.
        """
        with self._changed:
            while not self._fits(tokens):
                if self.refused or not (wait and self._open):
                    self.refused = True
                    return False
                self._changed.wait()
            self.requests += 1
            self.tokens += tokens
            self._open += 1
            return True

    def settle(self, reserved: int, used: int) -> None:
        """Replace the tokens that were reserved for a request by those that it took."""
        with self._changed:
            self.tokens += used - reserved
            self._open -= 1
            self._changed.notify_all()

    def _fits(self, tokens: int) -> bool:
        requests, most = self.limits
        enough = requests is None or self.requests < requests
        return not self.refused and enough and (most is None or self.tokens + tokens <= most)


class Writer(Protocol):
    """A model that writes texts: in process, or behind an endpoint."""

    @property
    def name(self) -> str: ...

    @property
    def fingerprint(self) -> str:
        """What its answers depend on besides requests and settings, for caches."""

    @property
    def about(self) -> dict[str, object]:
        """What is recorded beside the answers, such as the version of the server."""

    def write(
        self, requests: Sequence[Request], settings: WriteSettings, budget: Budget | None = None
    ) -> Iterator[tuple[int, Written]]:
        """Write a text for each request; yields (number of the request, text) as they come.

        Requests that the budget has no room for are left out.
        """

    def count_tokens(self, requests: Sequence[Request]) -> list[int] | None:
        """The tokens of each prompt; None where the tokenizer is not known."""

    def label_likelihoods(
        self, requests: Sequence[Request], labels: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        """The log-likelihood of each label as the beginning of the answer."""
