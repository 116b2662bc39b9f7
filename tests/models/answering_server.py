"""A small server that speaks the protocol of OpenAI, with faults that a test chooses."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

KEY = "sk-decoy-0123456789abcdef"
MODEL = "decoy"


def chat(text="Fine.", *, finish="stop", model=MODEL, **message):
    """The content of an answer."""
    return {
        "model": model,
        "system_fingerprint": "decoy-7",
        "choices": [{"message": {"content": text, **message}, "finish_reason": finish}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 3},
    }


class AnsweringServer(ThreadingHTTPServer):
    """Answers each request as `answer` does, which has the server, the request and its number.

    `answer` returns the content of a JSON answer, or sends it itself and returns None.
    """

    daemon_threads = True

    def __init__(self, answer: Callable[..., Any] | None = None, models=(MODEL,)) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer or (lambda *_: chat())
        self.models = models
        self.lock = threading.Lock()
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.times: list[float] = []
        self.at_once = self.most_at_once = 0

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, *_: object) -> None:
        """A client that has gone is no error."""


class Handler(BaseHTTPRequestHandler):
    server: AnsweringServer
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "decoy/1", ""

    def log_message(self, *_: object) -> None:
        pass

    def send(self, content, status=200, **headers):
        body = content if isinstance(content, bytes) else json.dumps(content).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.server.headers.append(dict(self.headers))
        if self.path == "/v1/models" and self.server.models is not None:
            self.send({"data": [{"id": model} for model in self.server.models]})
        elif self.path == "/version":
            self.send({"version": "7.1"})
        else:
            self.send({"error": {"message": "no such path"}}, 404)

    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with server.lock:
            number = len(server.bodies)
            server.bodies.append({"path": self.path, **body})
            server.headers.append(dict(self.headers))
            server.times.append(time.monotonic())
            server.at_once += 1
            server.most_at_once = max(server.most_at_once, server.at_once)
        try:
            content = server.answer(self, body, number)
            if content is not None:
                self.send(content)
        finally:
            with server.lock:
                server.at_once -= 1


@contextmanager
def serving(answer=None, models=(MODEL,)) -> Iterator[AnsweringServer]:
    with AnsweringServer(answer, models) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
