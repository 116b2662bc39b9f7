"""Charts drawn by a process of their own.

The renderer has a JavaScript engine, which ends the whole process where it gets too little memory.
In a child it takes one chart with it and not the work of an audit.
"""

from __future__ import annotations

import atexit
import json
import os
import struct
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from threading import Lock, Timer
from typing import Any, Literal

from evenhand.errors import DrawingError

SECONDS = 300.0
"""Time that one chart may take."""
SERVER = """
import json, struct, sys
import vl_convert
while head := sys.stdin.buffer.read(8):
    kind, version, spec = json.loads(sys.stdin.buffer.read(*struct.unpack("<Q", head)))
    try:
        drawn = getattr(vl_convert, f"vegalite_to_{kind}")(spec, vl_version=version)
        answer = b"+" + (drawn.encode() if isinstance(drawn, str) else drawn)
    except Exception as error:
        answer = b"-" + str(error)[:300].encode()
    sys.stdout.buffer.write(struct.pack("<Q", len(answer)) + answer)
    sys.stdout.buffer.flush()
"""


class _Renderer:
    """The child process; a new one after it has died, and in a forked process."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._lock = Lock()

    def render(self, kind: str, specification: Mapping[str, Any], version: str) -> bytes:
        if self._owner != os.getpid():
            self._process, self._owner, self._lock = None, os.getpid(), Lock()
        request = json.dumps([kind, version, specification]).encode()
        with self._lock:
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-c", SERVER],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # Ctrl-C is for the parent
                )
            answer = self._ask(self._process, request)
        if answer[:1] != b"+":
            raise DrawingError(f"the chart could not be drawn: {answer[1:].decode()}")
        return answer[1:]

    def _ask(self, process: subprocess.Popen[bytes], request: bytes) -> bytes:
        assert process.stdin is not None  # noqa: S101
        assert process.stdout is not None  # noqa: S101
        limit = Timer(SECONDS, process.kill)
        limit.start()
        try:
            process.stdin.write(struct.pack("<Q", len(request)) + request)
            process.stdin.flush()
            head = process.stdout.read(8)
            answer = process.stdout.read(*struct.unpack("<Q", head)) if len(head) == 8 else b""
        except OSError:
            answer = b""
        except BaseException:  # interrupted between a request and its answer
            self.close(kill=True)
            raise
        finally:
            limit.cancel()
        if not answer:
            code = self.close()
            how = f"signal {-code}" if code < 0 else f"exit {code}"
            raise DrawingError(
                f"the chart could not be drawn: the renderer ended ({how}), as it does with too "
                "little memory"
            )
        return answer

    def close(self, *, kill: bool = False) -> int:
        """End the child."""
        process, self._process = self._process, None
        if process is None or self._owner != os.getpid():
            return 0
        if kill:
            process.kill()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        return process.wait()


_RENDERER = _Renderer()
atexit.register(_RENDERER.close)


def render(kind: Literal["svg", "pdf"], specification: Mapping[str, Any], version: str) -> bytes:
    """The drawn chart of a Vega-Lite specification; DrawingError where that fails."""
    return _RENDERER.render(kind, specification, version)
