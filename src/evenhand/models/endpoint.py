"""A model behind an address: a server that speaks the protocol of OpenAI.

Requests go to the address that the user names and nowhere else: no redirect is followed, no proxy
and no credentials are taken from the environment. The key is read from one environment variable
when a request is sent; it is removed from whatever the server says.
"""

from __future__ import annotations

import json
import os
import queue
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from email.utils import parsedate_to_datetime
from functools import cached_property
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from evenhand.errors import InputError, MissingExtraError, PartialFailure
from evenhand.errors import parameter as named
from evenhand.files import encodable_name, public_name
from evenhand.instruments import check_options, documented, option
from evenhand.models.writing import Budget, Finish, Request, WriteSettings, Written

if TYPE_CHECKING:
    import httpx2

__all__ = ["Endpoint", "EndpointSettings", "is_address"]

T = TypeVar("T")
FIRST_WAIT, LONGEST_WAIT = 0.5, 60.0
"""Seconds before the first repetition of a request, which double, and the most of them."""
MOST_PATIENCE = 600.0
"""Seconds that a server may ask to wait for."""
CONNECT = 10.0
"""Seconds in which a connection is made."""
LARGEST_REPLY = 64 << 20
OLDER_LIMIT, NEWER_LIMIT = "max_tokens", "max_completion_tokens"
"""What servers call the limit of new tokens; those that want the newer name say so."""
FAILURES = 8
"""Requests in a row without an answer after which no further one is sent."""
LISTED = (1000, 20)
"""How many of the likeliest tokens are requested: servers allow 20 or any number."""
REPEATED = (408, 409, 425, 429, *range(500, 600))
"""What a server answers where the same request may succeed later."""
WITHHELD = ("content_filter", "content_policy_violation", "responsible_ai_policy_violation")
"""Errors that say that the request or its answer was withheld, and not that it failed."""
FULL_SHARES: Mapping[str, Mapping[str, float]] = {
    "llamacpp": {"top_k": 0, "min_p": 0},
    "vllm": {"top_k": -1, "min_p": 0},
}
"""By what a server calls itself, settings that let it sample from all tokens, as it does not by
default. Other servers refuse settings that they do not know."""
SHORTEST_REMOVED = 12
"""Characters of a key that is removed from answers; shorter ones may be words ("none")."""
VERSION = re.compile(r"[-:@](latest|\d{4}-\d\d-\d\d|\d{3,8})$")


def is_address(source: object) -> bool:
    """Whether a source is the address of a server.

    >>> is_address("http://127.0.0.1:8080/v1"), is_address("tiny-causal")
    (True, False)
    """
    return isinstance(source, str) and source.lower().startswith(("http://", "https://"))


@documented
@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointSettings:
    """How requests are sent to an address."""

    name: str | None = option(
        None, metavar="MODEL", help="The model of the server; not needed where it serves only one."
    )
    completions: bool = option(
        False, help="Plain completions: the server continues the prompt, without a chat template."
    )
    parallel: int = option(4, minimum=1, maximum=256, help="Requests to a server at a time.")
    timeout: float = option(
        120.0, above=0, maximum=86_400, help="Seconds in which a server has to answer a request."
    )
    retries: int = option(
        5,
        minimum=0,
        maximum=100,
        help="How often a request is repeated where the server is busy or the connection breaks.",
    )
    key_env: str = option(
        "EVENHAND_API_KEY",
        metavar="VARIABLE",
        help="The environment variable with the key of the server, if it needs one.",
    )

    def __post_init__(self) -> None:
        check_options(self)


@dataclass(frozen=True, slots=True)
class Reply:
    """What a server answered; status 0 where it did not, with the reason as its text."""

    status: int
    text: str
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Outage:
    """A request that failed for a reason that may end: `wait` as the server asked for."""

    problem: str
    wait: float = 0.0


@dataclass(frozen=True, eq=False)
class Endpoint:
    """Writes with the model of a server.

    Parameters
    ----------
    address : str
        The base address, such as `http://127.0.0.1:8080/v1`.
    settings : EndpointSettings

    """

    address: str
    settings: EndpointSettings = EndpointSettings()

    def __post_init__(self) -> None:
        parts = urlsplit(self.address)
        if parts.scheme.lower() not in ("http", "https") or not parts.hostname:
            raise InputError(f"expected an address such as http://127.0.0.1:8080/v1, got {self}")
        if parts.username or parts.password or parts.query or parts.fragment:
            raise InputError(
                f"{parts.scheme}://{parts.hostname}: expected an address without a user, a "
                f"password or a query; a key is given by {named('key_env')}"
            )
        object.__setattr__(self, "address", self.address.rstrip("/"))
        self._key()  # a key that cannot be sent is an error before any work

    def __str__(self) -> str:
        return self.address

    # ---- what is known of the server

    @property
    def name(self) -> str:
        """The model, of a path its last part."""
        return public_name(self.settings.name or self._served)

    @property
    def fingerprint(self) -> str:
        kind = "completions" if self.settings.completions else "chat"
        return f"endpoint 1 {self.address} {kind} {self.settings.name or self._served}"

    @property
    def about(self) -> dict[str, object]:
        """What is recorded; the server's own facts are known after the first request."""
        facts = self._facts
        return {
            "model": self.name,
            "address": self.address,
            "kind": "completions" if self.settings.completions else "chat completions",
            **{key: value for key, value in facts.items() if key != "models" and value},
        }

    @cached_property
    def _facts(self) -> dict[str, Any]:
        """What the server says of itself; grows with its answers."""
        return {}

    @cached_property
    def _listed(self) -> dict[str, list[str]]:
        """The models that the server lists, with their other names; empty where it lists none."""
        try:
            reply = self._get("models")
            self._facts["server"] = self._cleaned(reply.headers.get("server", ""))
            content = _parse(reply.text) if reply.status == HTTPStatus.OK else None
            if content is not None:
                self._facts["version"] = self._version()
        finally:
            self._disconnect()
        silent = reply.status in (0, HTTPStatus.UNAUTHORIZED) or reply.status in REPEATED
        if silent or 300 <= reply.status < 400:
            raise InputError(f"{self.address}: {self._explain(reply)}")
        rows = content.get("data") if isinstance(content, dict) else None
        models: dict[str, list[str]] = {}
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, dict) and isinstance(row.get("id"), str):
                others = row.get("aliases")
                models[row["id"]] = [x for x in others or () if isinstance(x, str)]
                self._facts.setdefault("owner", str(row.get("owned_by") or ""))
        return models

    def _version(self) -> str:
        """The version, where it is served beside the address, as vLLM and Ollama do."""
        root = re.sub(r"/v\d+$", "", self.address)
        for path in ("version", "api/version"):
            reply = self._exchange("GET", f"{root}/{path}", secret=False)
            content = _parse(reply.text) if reply.status == HTTPStatus.OK else None
            if isinstance(content, dict) and isinstance(content.get("version"), str):
                return self._cleaned(content["version"])
        return ""

    @cached_property
    def _served(self) -> str:
        """The model as the server calls it; an error if it does not serve it."""
        given, listed = self.settings.name, self._listed
        if not listed:
            if given:
                return given
            raise InputError(
                f"{self.address}: does not list its models: name one with {named('name')}"
            )
        if not given and len(listed) == 1:
            return next(iter(listed))
        known = ", ".join(public_name(model) for model in sorted(listed)[:10])
        if not given:
            raise InputError(
                f"{self.address}: serves several models ({known}): name one with {named('name')}"
            )
        for model, others in listed.items():
            if any(is_same_model(given, each) for each in (model, *others)):
                return model
        raise InputError(f"{self.address}: expected the model {given}, got a server of {known}")

    # ---- one exchange

    def _key(self) -> str:
        key = os.environ.get(self.settings.key_env, "").strip()
        if not (key.isascii() and key.isprintable()):
            raise InputError(f"{self.settings.key_env}: expected a key of printable characters")
        if not key and self.settings.key_env != EndpointSettings().key_env:
            raise InputError(f"{self.settings.key_env}: expected a key in this variable, got none")
        return key

    @cached_property
    def _client(self) -> httpx2.Client:
        try:
            import httpx2
        except ImportError:
            raise MissingExtraError("httpx2", "an address", "httpx2>=2") from None
        from evenhand import __version__

        timeout = self.settings.timeout
        return httpx2.Client(
            trust_env=False,
            follow_redirects=False,
            timeout=httpx2.Timeout(timeout, connect=min(CONNECT, timeout)),
            limits=httpx2.Limits(max_connections=self.settings.parallel),
            headers={"User-Agent": f"evenhand/{__version__}", "Accept-Encoding": "identity"},
        )

    def _disconnect(self) -> None:
        """Close the connections; the next request opens others."""
        if (client := self.__dict__.pop("_client", None)) is not None:
            client.close()

    def _exchange(
        self, method: str, address: str, body: object = None, *, secret: bool = True
    ) -> Reply:
        """Send one request. Errors become a reply: a traceback would hold the key."""
        client, key = self._client, self._key() if secret else ""
        import httpx2

        headers = {"Authorization": f"Bearer {key}"} if key else {}
        parts: list[bytes] = []
        size, problem = 0, ""
        try:
            end = time.monotonic() + self.settings.timeout
            with client.stream(method, address, json=body, headers=headers) as response:
                for part in response.iter_bytes():
                    parts.append(part)
                    size += len(part)
                    if size > LARGEST_REPLY:
                        return Reply(0, "the answer has no end")
                    if time.monotonic() > end:
                        return Reply(0, f"no answer within {self.settings.timeout:g} s")
                text = b"".join(parts).decode("utf-8", "replace")
                return Reply(response.status_code, self._hidden(text), dict(response.headers))
        except httpx2.TimeoutException:
            problem = f"no answer within {self.settings.timeout:g} s"
        except httpx2.ConnectError as error:
            problem = f"no connection ({error})"
        except (httpx2.RequestError, httpx2.InvalidURL, httpx2.StreamError, OSError) as error:
            problem = f"the connection broke ({error})"
        return Reply(0, self._cleaned(problem))

    def _hidden(self, text: str) -> str:
        """A text of the server without the key."""
        key = self._key()
        return text.replace(key, "…") if len(key) >= SHORTEST_REMOVED else text

    def _cleaned(self, text: str) -> str:
        """A text of the server in one line of a message, without the key, however short."""
        key = self._key()
        text = " ".join(text.split())
        return encodable_name(text.replace(key, "…") if key else text)[:300]

    def _get(self, path: str) -> Reply:
        for attempt in range(self.settings.retries + 1):
            reply = self._exchange("GET", f"{self.address}/{path}")
            if reply.status not in REPEATED or attempt == self.settings.retries:
                break
            time.sleep(max(back_off(attempt), min(asked_wait(reply.headers), LONGEST_WAIT)))
        return reply

    def _explain(self, reply: Reply) -> str:
        """What a reply that is no answer says."""
        if not reply.status:
            return reply.text
        if 300 <= reply.status < 400:
            to = self._cleaned(reply.headers.get("location", ""))
            return f"expected an answer, got a redirect to {to}, which is not followed"
        if reply.status == HTTPStatus.UNAUTHORIZED:
            variable = self.settings.key_env
            return f"the server refuses the key of the variable {variable}, or its absence"
        said = self._cleaned(_error_of(_parse(reply.text))[0] or reply.text)
        return f"the server answers {reply.status}" + (f": {said}" if said else "")

    # ---- texts

    def count_tokens(self, requests: Sequence[Request]) -> None:
        """None: the tokenizer of a server is not known."""
        return

    def write(
        self, requests: Sequence[Request], settings: WriteSettings, budget: Budget | None = None
    ) -> Iterator[tuple[int, Written]]:
        """Write a text for each request; yields (number of the request, text) as they come.

        Requests that a budget has no room for are left out; repetitions count as requests. Several
        failures in a row are a PartialFailure: what came until then has been yielded.
        """
        spent, failures = budget or Budget(), 0

        def job(number: int, pace: Pace) -> Written | Outage | None:
            return self._write_one(requests[number], settings, spent, pace)

        for number, result in self._each(len(requests), job):
            if isinstance(result, Written):
                failures = 0
                yield number, result
            elif result is not None:
                failures += 1
                yield number, Written(text="", finish="error", error=result.problem)
                if failures >= max(FAILURES, 2 * self.settings.parallel):
                    raise PartialFailure(
                        f"{self.address}: stopped after {failures} requests in a row without an "
                        f"answer ({result.problem})"
                    )

    def _each(self, count: int, job: Callable[[int, Pace], T]) -> Iterator[tuple[int, T]]:
        """Run numbered jobs in threads; yields (number, result) as they come.

        A job begins when the result of an earlier one has been processed: no more than
        `parallel` results are lost if the process is killed.
        """
        running = min(count, self.settings.parallel)
        numbers, pace, lock = iter(range(count)), Pace(), threading.Lock()
        results: queue.SimpleQueue[tuple[int, T] | Exception | None] = queue.SimpleQueue()
        slots = threading.Semaphore(running)

        def work() -> None:
            try:
                while slots.acquire() and not pace.stopped.is_set():
                    with lock:
                        number = next(numbers, None)
                    if number is None:
                        break
                    results.put((number, job(number, pace)))
            except Exception as error:
                results.put(error)
            finally:
                slots.release()
                results.put(None)

        if count:
            _ = self._served, self._client  # made once, by this thread
        for _ in range(running):
            threading.Thread(target=work, daemon=True).start()
        try:
            while running:
                result = results.get()
                if result is None:
                    running -= 1
                elif isinstance(result, Exception):
                    raise result
                else:
                    yield result
                    slots.release()
        finally:
            pace.stopped.set()
            slots.release()
            self._disconnect()

    def _write_one(
        self, request: Request, settings: WriteSettings, budget: Budget, pace: Pace
    ) -> Written | Outage | None:
        worst = estimate_tokens(request) + settings.max_new_tokens
        body = {
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "seed": request.seed,
            self._limit[0]: settings.max_new_tokens,
        }
        content = self._send(request, body, worst, budget, pace)
        if not isinstance(content, dict):
            return content
        written = _read_choice(content)
        return replace(written, text=self._hidden(written.text))

    @cached_property
    def _limit(self) -> list[str]:
        """What the server calls the limit of new tokens."""
        return [OLDER_LIMIT]

    def _send(
        self, request: Request, body: dict[str, Any], worst: int, budget: Budget, pace: Pace
    ) -> dict[str, Any] | Written | Outage | None:
        """The content of an answer; None where the budget has no room, or the work has stopped."""
        content: dict[str, Any] | Written | Outage | None = None
        asked = self._asked(request)
        pause = 0.0
        for attempt in range(self.settings.retries + 1):
            if not pace.wait(pause) or not budget.reserve(worst, wait=True):
                return content
            reply = self._exchange("POST", *asked(body))
            content = self._read(reply, pace)
            used = worst if reply.status in (0, HTTPStatus.OK) else 0
            budget.settle(worst, _total(content, used))
            if OLDER_LIMIT in body and reply.status == 400 and NEWER_LIMIT in reply.text:
                body[NEWER_LIMIT] = body.pop(OLDER_LIMIT)
                self._limit[0] = NEWER_LIMIT
                continue
            if not isinstance(content, Outage):
                return content
            if content.wait > MOST_PATIENCE:
                return Outage(f"{content.problem}; it asks to wait {content.wait:,.0f} s")
            pause = back_off(attempt)
            pace.hold(content.wait)
        return content

    def _asked(self, request: Request) -> Callable[[dict[str, Any]], tuple[str, dict[str, Any]]]:
        """The address of a request, and its body with some settings."""
        full = FULL_SHARES.get(self._facts.get("owner", ""), {})
        if self.settings.completions:
            path = "completions"
            what: dict[str, Any] = {"prompt": plain_prompt(request)}
        else:
            path = "chat/completions"
            what = {
                "messages": [
                    {"role": each.role, "content": encodable_name(each.content)}
                    for each in request.messages
                ]
            }
        fixed = {"model": self._served, **what, **full}
        return lambda body: (f"{self.address}/{path}", {**fixed, **body})

    def _read(self, reply: Reply, pace: Pace) -> dict[str, Any] | Written | Outage:
        """What a reply says: an answer, a failure of this request, or one that may end.

        A failure of the first request that every other one would share is an InputError.
        """
        content = _parse_answer(reply)
        said, code = _error_of(content)
        if (
            reply.status == HTTPStatus.OK
            and isinstance(content, dict)
            and _choice(content) is not None
        ):
            self._check_model(content)
            pace.answered = True
            return content
        if reply.status == 400 and any(word in f"{code} {said}" for word in WITHHELD):
            pace.answered = True
            return Written(text="", finish="refusal")
        if not reply.status or reply.status in REPEATED:
            return Outage(self._explain(reply), asked_wait(reply.headers))
        if reply.status == HTTPStatus.OK:
            if not said:
                return Outage("expected an answer in JSON, got " + self._cleaned(reply.text)[:60])
            if code.isdecimal() and int(code) in REPEATED:
                return Outage(f"the server answers {code}: {self._cleaned(said)}")
            return Written(text="", finish="error", error=self._cleaned(said))
        problem = self._explain(reply)
        if not pace.answered and reply.status not in (400, 413, 422):
            raise InputError(f"{self.address}: {problem}")
        return Written(text="", finish="error", error=problem)

    def _check_model(self, content: Mapping[str, Any]) -> None:
        model = content.get("model")
        if isinstance(model, str) and model and not is_same_model(self._served, model):
            raise InputError(
                f"{self.address}: expected the model {public_name(self._served)}, got an answer of "
                f"{self._cleaned(public_name(model))}"
            )
        version = content.get("system_fingerprint")
        if isinstance(version, str):
            known = self._facts.setdefault("system_fingerprint", [])
            if version not in known and len(known) < 100:
                known.append(self._cleaned(version))

    # ---- likelihoods

    def label_likelihoods(
        self, requests: Sequence[Request], labels: Sequence[Sequence[str]]
    ) -> list[list[float]]:
        """The log-likelihood of each label as the beginning of the answer.

        A prompt that is continued is followed by a space. Plain completions that repeat the prompt
        (`echo`, as vLLM has it) take labels of any length. Otherwise the server lists its likeliest
        first tokens, and a label has to be one of these.
        """
        results: list[list[float]] = [[] for _ in requests]

        def job(number: int, pace: Pace) -> list[float] | Outage:
            before = " " if self.settings.completions else ""
            own = [f"{before}{label}" for label in labels[number]]
            return self._likelihoods_of(requests[number], own, pace)

        for number, result in self._each(len(requests), job):
            if isinstance(result, Outage):
                raise PartialFailure(f"{self.address}: {result.problem}")
            results[number] = result
        return results

    def _likelihoods_of(
        self, request: Request, labels: Sequence[str], pace: Pace
    ) -> list[float] | Outage:
        values: list[float] = []
        for label in labels if self._echoes[0] else ():
            echoed = self._echoed(request, label, pace)
            if isinstance(echoed, Outage):
                return echoed
            if echoed is None:
                self._echoes[0] = False
                break
            values.append(echoed)
        if values and len(values) == len(labels):
            return values
        listed = self._first_tokens(request, pace)
        if isinstance(listed, Outage):
            return listed
        for label in labels:
            if label not in listed:
                raise InputError(
                    f"{self.address}: expected labels of one token each, of the {len(listed)} "
                    f"likeliest that the server lists, got {label!r}: compare the answers instead"
                )
        return [listed[label] for label in labels]

    @cached_property
    def _echoes(self) -> list[bool]:
        """Whether the server can repeat a prompt with its likelihoods, as far as is known."""
        return [self.settings.completions]

    def _first_tokens(self, request: Request, pace: Pace) -> dict[str, float] | Outage:
        """The log-likelihoods of the likeliest first tokens."""
        problem = ""
        for count in LISTED:
            body: dict[str, Any] = {"temperature": 0, self._limit[0]: 1}
            listing = (
                {"logprobs": count}
                if self.settings.completions
                else {"logprobs": True, "top_logprobs": count}
            )
            content = self._send(request, {**body, **listing}, 1, Budget(), pace)
            if isinstance(content, Outage):
                return content
            if isinstance(content, Written):
                problem = f" ({content.error})"
            elif content is not None and (listed := _listed_tokens(content)):
                return listed
        raise InputError(
            f"{self.address}: does not serve log-probabilities{problem}: "
            "compare the answers instead"
        )

    def _echoed(self, request: Request, label: str, pace: Pace) -> float | Outage | None:
        """The log-likelihood of a label behind the prompt, which the server repeats."""
        prompt = plain_prompt(request)
        body = {"temperature": 0, OLDER_LIMIT: 1, "echo": True, "logprobs": 1}
        content = self._send(request, {**body, "prompt": prompt + label}, 1, Budget(), pace)
        choice = _choice(content) if isinstance(content, dict) else None
        about = choice.get("logprobs") if choice else None
        if not isinstance(about, dict):
            return None
        values, places = about.get("token_logprobs"), about.get("text_offset")
        if not (isinstance(values, list) and isinstance(places, list)):
            return None
        end = len(prompt) + len(label)
        own = [v for v, at in zip(values, places, strict=False) if len(prompt) <= at < end]
        if len(prompt) not in places or not all(isinstance(v, float | int) for v in own):
            return None
        return float(sum(own))


class Pace:
    """When the threads of a writer send requests; one that a server holds up holds up all."""

    def __init__(self) -> None:
        self.stopped = threading.Event()
        self.answered = False
        """Whether the server has answered any request."""
        self._resume = 0.0

    def hold(self, seconds: float) -> None:
        """Send nothing for so long."""
        self._resume = max(self._resume, time.monotonic() + seconds)

    def wait(self, seconds: float) -> bool:
        """Wait so long, and for what holds all up; False where the work has stopped."""
        until = max(time.monotonic() + seconds, self._resume)
        return not self.stopped.wait(max(0.0, until - time.monotonic()))


def back_off(attempt: int) -> float:
    """Seconds before a repetition: doubled each time, at random between half and all of that."""
    longest = min(LONGEST_WAIT, FIRST_WAIT * 2.0**attempt)
    return secrets.SystemRandom().uniform(longest / 2, longest)


def asked_wait(headers: Mapping[str, str]) -> float:
    """The seconds of `Retry-After`, which is a number or a date; 0 without.

    >>> asked_wait({"retry-after": "7"}), asked_wait({"retry-after": "soon"}), asked_wait({})
    (7.0, 0.0, 0.0)
    """
    said = headers.get("retry-after", "").strip()
    if re.fullmatch(r"\d{1,9}(\.\d+)?", said):
        return float(said)
    with suppress(ValueError, OverflowError, TypeError):
        return max(0.0, parsedate_to_datetime(said).timestamp() - time.time())
    return 0.0


def is_same_model(given: str, served: str) -> bool:
    """Whether two names mean one model: paths by their last part, and one may lack the version.

    >>> is_same_model("gpt-4o", "gpt-4o-2024-08-06"), is_same_model("gpt-4o", "gpt-4o-mini")
    (True, False)
    >>> is_same_model("gpt-4-0613", "gpt-4-0314"), is_same_model("llama3:8b", "llama3:70b")
    (False, False)
    >>> is_same_model("smollm", "/models/SmolLM.gguf")
    True
    """

    def short(name: str) -> str:
        last = name.rstrip("/").rpartition("/")[2].lower()
        return last.removesuffix(".gguf")

    first, second = short(given), short(served)
    bases = VERSION.sub("", first), VERSION.sub("", second)
    versioned = [
        name != base and not name.endswith("latest")
        for name, base in zip((first, second), bases, strict=True)
    ]
    return first == second or (bases[0] == bases[1] and not all(versioned))


def plain_prompt(request: Request) -> str:
    """The text that is continued without a chat template."""
    return encodable_name("\n\n".join(each.content for each in request.messages))


def estimate_tokens(request: Request) -> int:
    """About how many tokens a prompt has where the tokenizer is not known; rather too many."""
    return sum(len(each.content.encode("utf-8", "replace")) // 3 + 8 for each in request.messages)


# ---- what servers say


def _parse(text: str) -> object:
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value


def _parse_answer(reply: Reply) -> object:
    """The answer of a reply; one that came in pieces is put together."""
    pieces = "event-stream" in reply.headers.get("content-type", "")
    if not pieces and not reply.text.startswith("data:"):
        return _parse(reply.text)
    whole: dict[str, Any] = {}
    text, finish = "", None
    for line in reply.text.splitlines():
        content = _parse(line.removeprefix("data:")) if line.startswith("data:") else None
        if not isinstance(content, dict):
            continue
        if "error" in content:
            return content
        whole.update({key: value for key, value in content.items() if value is not None})
        if (choice := _choice(content)) is not None:
            delta = choice.get("delta")
            text += _text_of(delta if isinstance(delta, dict) else choice)
            finish = choice.get("finish_reason") or finish
    if finish is None:  # it was cut off on its way
        return None
    message = {"message": {"content": text}, "text": text, "finish_reason": finish}
    return {**whole, "choices": [message]}


def _choice(content: object) -> dict[str, Any] | None:
    choices = content.get("choices") if isinstance(content, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else None
    return choice if isinstance(choice, dict) else None


def _text_of(message: Mapping[str, Any]) -> str:
    """The text of a message, which may be in parts, or of a completion."""
    content = message.get("content", message.get("text"))
    if isinstance(content, list):
        parts = [each.get("text") for each in content if isinstance(each, dict)]
        content = "".join(part for part in parts if isinstance(part, str))
    return encodable_name(content) if isinstance(content, str) else ""


def _read_choice(content: Mapping[str, Any]) -> Written:
    """The text of an answer and why it ended."""
    choice = _choice(content) or {}
    message = choice.get("message")
    if message is not None and not isinstance(message, dict):
        problem = f"expected a message of an answer, got {message!r:.60}"
        return Written(text="", finish="error", error=problem)
    message = choice if message is None else message
    text, reason = _text_of(message), choice.get("finish_reason")
    finish: Finish = "length" if reason in ("length", "max_tokens") else "stop"
    refusal = message.get("refusal")
    if reason in ("content_filter", "refusal") or (isinstance(refusal, str) and refusal):
        finish = "refusal"
        text = text or (encodable_name(refusal) if isinstance(refusal, str) else "")
    return Written(text=text, finish=finish, tokens=_count(content, "completion_tokens"))


def _count(content: Mapping[str, Any], name: str) -> int:
    usage = content.get("usage")
    count = usage.get(name) if isinstance(usage, dict) else None
    return count if isinstance(count, int) and count >= 0 else 0


def _total(content: object, otherwise: int) -> int:
    """The tokens that an answer took; without a number, what it could have taken."""
    counted = 0
    if isinstance(content, dict):
        counted = _count(content, "prompt_tokens") + _count(content, "completion_tokens")
    return counted or otherwise


def _error_of(content: object) -> tuple[str, str]:
    """The message and the code of an error, in any of the shapes that servers use."""
    error = content.get("error", content) if isinstance(content, dict) else content
    if isinstance(error, str):
        return error, ""
    if not isinstance(error, dict):
        return "", ""
    said = error.get("message") or error.get("detail") or ""
    return said if isinstance(said, str) else json.dumps(said), str(error.get("code") or "")


def _listed_tokens(content: Mapping[str, Any]) -> dict[str, float]:
    """The log-likelihoods of the likeliest first tokens, in both shapes that servers use."""
    choice = _choice(content) or {}
    about = choice.get("logprobs")
    if not isinstance(about, dict):
        return {}
    rows = about.get("content")
    first = rows[0] if isinstance(rows, list) and rows else None
    if isinstance(first, dict):
        listed = first.get("top_logprobs")
        pairs = [
            (each.get("token"), each.get("logprob"))
            for each in (listed if isinstance(listed, list) else ())
            if isinstance(each, dict)
        ]
    else:
        tops = about.get("top_logprobs")
        top = tops[0] if isinstance(tops, list) and tops else None
        pairs = list(top.items()) if isinstance(top, dict) else []
    return {
        token: float(value)
        for token, value in pairs
        if isinstance(token, str) and isinstance(value, float | int)
    }
