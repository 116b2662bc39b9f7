"""The web application: three static files, a small JSON interface, and who may use it.

The page is served to anybody who reaches the port, since it has no data. Every request for data
must carry the token of this run in the header `X-Evenhand-Token`. The token is in the fragment of
the printed address, which browsers never send; the page's script reads it there and removes it
from the address. A cookie would not do: browsers send the cookies of 127.0.0.1 to every port of
it, so that another program on this machine could read it. A header that is not a standard one can
also not be sent by a page of another origin, unless the server allows it, which this one never
does.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import re
import secrets
import socket
import sys
import traceback
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from importlib import resources
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints
from pydantic import ValidationError as InvalidRequestError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from evenhand import __version__
from evenhand.answers.outcomes import Outcome
from evenhand.charts import inline, to_svg
from evenhand.errors import EvenhandError
from evenhand.explore import answers, run, sentence, words
from evenhand.explore.subjects import Subjects
from evenhand.explore.worker import QueueFullError, SupersededError, Worker
from evenhand.files import to_json
from evenhand.instruments import LANGUAGE, subject_of

if TYPE_CHECKING:
    import asyncio

    import uvicorn
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from evenhand.answers.table import Answers

HOST = "127.0.0.1"
PORT = 8750
TOKEN_HEADER = "x-evenhand-token"  # noqa: S105
VIEW_HEADER = "x-evenhand-view"
MOST_BYTES = 64 * 1024
"""The longest body of a request."""
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "x-frame-options": "DENY",
}
PAGES = {
    "/": ("evenhand.explore", "pages/index.html", "text/html; charset=utf-8"),
    "/colours.css": ("evenhand.report", "templates/colours.css", "text/css; charset=utf-8"),
    "/explore.css": ("evenhand.explore", "pages/explore.css", "text/css; charset=utf-8"),
    "/explore.js": ("evenhand.explore", "pages/explore.js", "text/javascript; charset=utf-8"),
}
"""Everything that is served as a file, read once at the start."""


# -------------------------------------------------------------------------------- requests


def _encodable(text: str) -> str:
    text.encode()  # half of a surrogate pair is a ValueError
    return text


Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_encodable)]
Word = Annotated[str, StringConstraints(min_length=1, max_length=80), AfterValidator(_encodable)]
Text = Annotated[str, StringConstraints(max_length=600), AfterValidator(_encodable)]
Models = Annotated[list[Name], Field(min_length=1, max_length=4)]
WordList = Annotated[list[Word], Field(max_length=300)]
Pair = Annotated[dict[Name, WordList], Field(max_length=2)]


class Body(BaseModel):
    """A request: known fields only, of the declared types."""

    model_config = ConfigDict(extra="forbid", strict=True)


class Nothing(Body):
    """A request without fields."""


class Sentences(Body):
    """One or two texts, for some models."""

    texts: Annotated[list[Text], Field(min_length=1, max_length=2)]
    models: Models


class OneModel(Body):
    """One model."""

    model: Name


class Versions(Body):
    """A text, for some models."""

    text: Text
    models: Models


class AssociationRequest(Body):
    """Four lists of words."""

    vectors: Name
    targets: Pair
    attributes: Pair
    narrow: bool = False


class Axes(Body):
    """Words and two axes."""

    vectors: Name
    words: WordList
    x: Pair
    y: Pair
    narrow: bool = False


class NeighboursRequest(Body):
    """A word before and after debiasing, or in other vectors."""

    vectors: Name
    word: Word
    topic: Name = "gender"
    method: Name = "hard"
    other: Annotated[str, StringConstraints(max_length=200)] = ""


class TableView(Body):
    """Rows of a table: that of a number, or of predictions."""

    table: Annotated[int, Field(ge=0, le=1_000_000)] | None
    find: Text = ""
    where: Annotated[dict[Name, Text], Field(max_length=10)] = {}
    sort: Annotated[str, StringConstraints(max_length=200)] = ""
    descending: bool = False
    first: Annotated[int, Field(ge=0, le=100_000_000)] = 0


class Item(Body):
    """The name of a text."""

    item: Text


Column = Annotated[str, StringConstraints(max_length=200), AfterValidator(_encodable)]


class AnswerItems(Body):
    """Which items of answers are listed."""

    find: Text = ""
    by: Column = ""
    outcome: Outcome | Literal[""] = ""


class AnswerItem(Body):
    """An item whose answers are shown; `item` may be a prompt, which is long."""

    item: Annotated[str, StringConstraints(max_length=20_000), AfterValidator(_encodable)]
    by: Column = ""
    outcome: Outcome | Literal[""] = ""
    first: Annotated[int, Field(ge=0, le=100_000_000)] = 0


Answer = Callable[..., object]
"""Called with the fields of a request."""
Endpoint = Callable[[Request], Awaitable[Response]]


class RefusedError(Exception):
    """A request that gets an error of this status."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


# --------------------------------------------------------------------------------- the answers


class Explorer:
    """What each address answers."""

    def __init__(self, subjects: Subjects) -> None:
        self.subjects = subjects
        self.tables = [] if subjects.findings is None else run.listings(subjects.findings)
        self.queued: dict[str, tuple[type[Body], Answer]] = {
            "sentence": (Sentences, self.sentence),
            "built-in": (OneModel, partial(sentence.read_built_in, subjects)),
            "versions": (Versions, partial(sentence.read_versions, subjects)),
            "association": (
                AssociationRequest,
                lambda **lists: _drawn(words.read_association(subjects, **lists), "association"),
            ),
            "axes": (Axes, lambda **lists: _drawn(words.read_axes(subjects, **lists), "axes")),
            "neighbours": (NeighboursRequest, partial(words.read_neighbours, subjects)),
        }
        """By address, what models and vectors answer."""
        self.direct: dict[str, tuple[type[Body], Answer]] = {
            "start": (Nothing, self.start),
            "run": (Nothing, self.verdicts),
            "table": (TableView, lambda **view: run.read_page(*self.table(**view))),
            "table.csv": (TableView, lambda **view: run.as_csv(*self.table(**view))),
            "item": (Item, self.item),
            "answers": (AnswerItems, lambda **view: answers.read_items(self._collected(), **view)),
            "answer": (AnswerItem, lambda **view: answers.read_item(self._collected(), **view)),
        }
        """By address, what needs no computation."""

    def start(self) -> dict[str, Any]:
        """What there is to explore."""
        from evenhand.vectors.debias import METHODS

        s = self.subjects
        return {
            "version": __version__,
            "models": [
                {"name": name, "kind": LANGUAGE[subject_of(model)]}
                for name, model in s.models.items()
            ],
            "vectors": [
                {"name": name, "words": len(v), "dimensions": v.dim}
                for name, v in s.vectors.items()
            ],
            "run": s.findings is not None,
            "predictions": None if s.predictions is None else s.predictions.counts(),
            "answers": s.collected is not None,
            "methods": sorted(METHODS),
            **(words.presets() if s.vectors else {}),
        }

    def sentence(self, texts: Sequence[str], models: Sequence[str]) -> dict[str, Any]:
        read = [sentence.read_sentence(self.subjects, text, models) for text in texts]
        return {"texts": read}

    def verdicts(self) -> dict[str, Any]:
        if self.subjects.findings is None:
            raise RefusedError(404, "no audit: start with evenhand explore --run FOLDER")
        return run.read_run(self.subjects.findings, self.tables)

    def table(self, table: int | None, **view: Any) -> tuple[list[run.Row], run.View]:
        """The rows of a table, or without a number of the predictions, and how they are shown."""
        if table is None:
            return self._predictions().rows, run.View(**view)
        if table >= len(self.tables):
            raise RefusedError(404, f"table: expected 0 to {len(self.tables) - 1}")
        return self.tables[table].rows, run.View(**view)

    def item(self, item: str) -> dict[str, Any]:
        return {"versions": self._predictions().versions(item)}

    def _predictions(self) -> run.PredictionTable:
        if self.subjects.predictions is None:
            raise RefusedError(
                404, "no predictions: start with evenhand explore --predictions FILE"
            )
        return self.subjects.predictions

    def _collected(self) -> Answers:
        if self.subjects.collected is None:
            raise RefusedError(404, "no answers: start with evenhand explore --answers FILE")
        return self.subjects.collected


def _drawn(read: Mapping[str, Any], name: str) -> dict[str, Any]:
    """With the chart as part of the page, without a style of its own, which the policy forbids."""
    svg = inline(to_svg(read["chart"]), name, TITLES[name])
    return {**read, "chart": re.sub(r" style=\"[^\"]*\"", "", svg, count=1)}


TITLES = {"association": "The effect size", "axes": "Words on two axes"}


# --------------------------------------------------------------------------------- the web


def application(
    subjects: Subjects, *, token: str, port: int, worker: Worker | None = None
) -> ASGIApp:
    """The application, for requests that are sent to this port."""
    explorer = Explorer(subjects)
    queue = worker or Worker()
    files = {
        path: (resources.files(package).joinpath(name).read_bytes(), media)
        for path, (package, name, media) in PAGES.items()
    }

    async def page(request: Request) -> Response:
        content, media = files[request.url.path]
        return Response(content, headers={"content-type": media})

    def endpoint(name: str, kind: type[Body], answer: Answer, *, queued: bool) -> Endpoint:
        async def respond(request: Request) -> Response:
            try:
                _authorise(request, token)
                answered = partial(answer, **dict(await _body(request, kind)))
                if queued:
                    view = f"{name} {request.headers.get(VIEW_HEADER, '')[:100]}"
                    value = await asyncio.wrap_future(queue.submit(view, answered))
                else:
                    value = await run_in_threadpool(answered)
            except Exception as error:
                return _failure(error)
            if name.endswith(".csv"):
                return Response(value, headers={"content-type": "text/csv; charset=utf-8"})
            return _json(value)

        return respond

    routes = [Route(path, page, methods=["GET"]) for path in files]
    for group, queued in ((explorer.queued, True), (explorer.direct, False)):
        routes += [
            Route(f"/api/{name}", endpoint(name, kind, answer, queued=queued), methods=["POST"])
            for name, (kind, answer) in group.items()
        ]

    def refused(request: Request, error: Exception) -> Response:  # noqa: ARG001
        status = error.status_code if isinstance(error, HTTPException) else 500
        words = {404: "no such address", 405: "no such method"}
        return _json({"error": words.get(status, "error")}, status)

    return Guard(Starlette(routes=routes, exception_handlers={HTTPException: refused}), port)


class Guard:
    """Refuses requests for another host or from another origin; sets the headers of all answers.

    A page of another site could otherwise reach the server by a name that resolves to this machine
    (DNS rebinding): such a request has that name as its host.
    """

    def __init__(self, app: ASGIApp, port: int) -> None:
        self.app = app
        self.hosts = {f"{name}:{port}" for name in (HOST, "localhost")}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                own = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                message = {**message, "headers": [*message["headers"], *own]}
            await send(message)

        problem = self._problem(scope)
        if problem is not None:
            await _json({"error": problem}, 403)(scope, receive, send_safely)
            return
        await self.app(scope, receive, send_safely)

    def _problem(self, scope: Scope) -> str | None:
        headers: dict[str, list[str]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.decode("latin-1").lower(), []).append(value.decode("latin-1"))
        host = headers.get("host", [])
        if len(host) != 1 or host[0] not in self.hosts:
            return f"host: expected {' or '.join(sorted(self.hosts))}"
        if any(origin != f"http://{host[0]}" for origin in headers.get("origin", [])):
            return f"origin: expected http://{host[0]}"
        site = headers.get("sec-fetch-site", [])
        if scope["path"].startswith("/api/") and set(site) - {"same-origin", "none"}:
            return "expected a request of the explorer's own page"
        return None


def _authorise(request: Request, token: str) -> None:
    given = request.headers.get(TOKEN_HEADER, "")
    if not hmac.compare_digest(given.encode(), token.encode()):
        raise RefusedError(
            401, "open the address that `evenhand explore` printed: it has the token of this run"
        )


async def _body(request: Request, kind: type[Body]) -> Body:
    """The body of a request, checked; too long a one is not read."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media != "application/json":
        raise RefusedError(415, "expected application/json")
    too_long = RefusedError(413, f"expected at most {MOST_BYTES:,} bytes")
    length = request.headers.get("content-length", "0")
    if not length.isdigit() or int(length) > MOST_BYTES:
        raise too_long
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > MOST_BYTES:
            raise too_long
    try:
        return kind.model_validate(json.loads(content))
    except InvalidRequestError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"])) or "request"
        raise RefusedError(400, f"{where}: {first['msg']}") from None
    except (ValueError, RecursionError):
        raise RefusedError(400, "expected a JSON object") from None


def _json(value: object, status: int = 200) -> Response:
    content = to_json(value, indent=None).encode("utf-8", "backslashreplace")
    return Response(content, status, headers={"content-type": "application/json"})


def _failure(error: Exception) -> Response:
    """One line that says what is wrong; what is our fault is shown in the terminal."""
    if isinstance(error, RefusedError):
        return _json({"error": str(error)}, error.status)
    if isinstance(error, EvenhandError):
        return _json({"error": " ".join(str(error).split())}, 400)
    if isinstance(error, QueueFullError):
        return _json({"error": "busy: too many requests are waiting; try again soon"}, 503)
    if isinstance(error, SupersededError):
        return _json({"error": "superseded by a later request"}, 409)
    traceback.print_exception(error, file=sys.stderr)
    return _json({"error": f"internal error ({type(error).__name__}); see the terminal"}, 500)


# -------------------------------------------------------------------------------- serving


def listen(port: int | None = None) -> socket.socket:
    """A socket on this machine only; without a port the usual one, or a free one if it is taken."""
    for wanted in (PORT, 0) if port is None else (port,):
        connection = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            connection.bind((HOST, wanted))
        except OSError:
            connection.close()
            if wanted == 0 or port is not None:
                raise
        else:
            connection.listen(64)
            return connection
    raise AssertionError


REQUEST_SECONDS = 10.0
"""In so many seconds a request has to be complete; a connection without one takes a place."""


def _protocol() -> type[Any]:
    """HTTP of uvicorn, with a deadline for requests: it has none of its own."""
    import h11
    from uvicorn.protocols.http.h11_impl import H11Protocol

    class Protocol(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait(True)

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            state = self.conn.their_state
            self._wait(state is h11.SEND_BODY or (state is h11.IDLE and self.conn.trailing_data[0]))

        def connection_lost(self, exc: Exception | None) -> None:
            self._wait(False)
            super().connection_lost(exc)

        def _wait(self, incomplete: object) -> None:
            if not incomplete and self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None
            elif incomplete and self._deadline is None:
                self._deadline = self.loop.call_later(REQUEST_SECONDS, self.transport.close)

    return Protocol


def make_server(subjects: Subjects, connection: socket.socket, token: str) -> uvicorn.Server:
    """The server of a socket that listens."""
    import uvicorn

    config = uvicorn.Config(
        application(subjects, token=token, port=connection.getsockname()[1]),
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        ws="none",
        http=_protocol(),
        loop="asyncio",
        h11_max_incomplete_event_size=32 * 1024,
        limit_concurrency=64,
        timeout_graceful_shutdown=1,
    )
    return uvicorn.Server(config)


def serve(subjects: Subjects, connection: socket.socket, *, ready: Callable[[str], None]) -> None:
    """Serve until interrupted.

    Parameters
    ----------
    subjects : Subjects
    connection : socket
        As `listen` returns it.
    ready : callable
        Called with the address, which has the token.

    """
    token = secrets.token_urlsafe(32)
    server = make_server(subjects, connection, token)
    ready(f"http://{HOST}:{connection.getsockname()[1]}/#token={token}")
    server.run(sockets=[connection])
