"""A real browser, driven over the DevTools protocol through a pipe; the standard library is enough.

https://chromedevtools.github.io/devtools-protocol/
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--remote-debugging-pipe",
)
KEYS = {
    "Enter": (13, "\r"),
    "Tab": (9, ""),
    "Escape": (27, ""),
    " ": (32, " "),
    "End": (35, ""),
    "Home": (36, ""),
    "ArrowRight": (39, ""),
    "ArrowLeft": (37, ""),
    "ArrowDown": (40, ""),
}
PATIENCE = 60.0


class Browser:
    """A headless Chromium; each page is a tab of its own."""

    def __init__(self, program: str, profile: Path) -> None:
        (reading, its_out), (its_in, self._writing) = _pipe(), _pipe()
        self._reading = reading
        # The protocol is spoken on the browser's descriptors 3 and 4; what it says else is noise.
        self._process = os.posix_spawn(
            program,
            [program, *FLAGS, f"--user-data-dir={profile}"],
            os.environ,
            file_actions=[
                (os.POSIX_SPAWN_DUP2, its_in, 3),
                (os.POSIX_SPAWN_DUP2, its_out, 4),
                (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
                (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
            ],
        )
        os.close(its_in)
        os.close(its_out)
        self._waiting = b""
        self._number = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its answer; what comes meanwhile is kept in `events`."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._writing, data) :]
        number = self._number
        while (answer := self._next()).get("id") != number:
            self.events.append(answer)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']['message']}")
        result: dict[str, Any] = answer["result"]
        return result

    def wait_for(self, method: str, session: str) -> None:
        """Wait until an event has come."""
        while not any(e.get("method") == method for e in self.of(session)):
            self.events.append(self._next())

    def of(self, session: str) -> list[dict[str, Any]]:
        """The events of one page."""
        return [event for event in self.events if event.get("sessionId") == session]

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._waiting:
            ready, _, _ = select.select([self._reading], [], [], max(0.0, end - time.monotonic()))
            more = os.read(self._reading, 1 << 16) if ready else b""
            if not more:
                raise RuntimeError("the browser does not answer")
            self._waiting += more
        first, self._waiting = self._waiting.split(b"\0", 1)
        message: dict[str, Any] = json.loads(first)
        return message

    def open(
        self,
        path: Path | str,
        *,
        width: int = 1280,
        height: int = 900,
        dark: bool = False,
        media: str = "",
        at: str = "",
    ) -> Page:
        """A file or address at a width, light or dark, on the screen or as in print."""
        return Page(self, path, width, height, dark, media, at)

    def close(self) -> None:
        self.call("Browser.close")
        os.waitpid(self._process, 0)
        os.close(self._reading)
        os.close(self._writing)


class Page:
    """One tab."""

    def __init__(
        self,
        browser: Browser,
        path: Path | str,
        width: int,
        height: int,
        dark: bool,
        media: str,
        at: str,
    ) -> None:
        self.browser = browser
        self._target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        attached = browser.call("Target.attachToTarget", targetId=self._target, flatten=True)
        self.session: str = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")
        self.resize(width, height)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        still = {"name": "prefers-reduced-motion", "value": "reduce"}
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme, still])
        address = path if isinstance(path, str) else path.resolve().as_uri()
        self.call("Page.navigate", url=address + (f"#{at}" if at else ""))
        browser.wait_for("Page.loadEventFired", self.session)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self.browser.call(method, self.session, **parameters)

    def resize(self, width: int, height: int) -> None:
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )

    def run(self, script: str) -> Any:
        """The value of an expression in the page; a promise is waited for."""
        answer = self.call(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise RuntimeError(answer["exceptionDetails"]["exception"].get("description", ""))
        return answer["result"].get("value")

    def complaints(self) -> list[str]:
        """Errors and warnings of the console, of the script and of the content policy."""
        found = []
        for event in self.browser.of(self.session):
            shown = event["params"]
            if event["method"] == "Runtime.exceptionThrown":
                found.append(str(shown["exceptionDetails"]["text"]))
            elif event["method"] == "Runtime.consoleAPICalled":
                found.append(str(shown["args"]))
            elif event["method"] == "Log.entryAdded":
                found.append(str(shown["entry"]["text"]))
        return found

    def requests(self) -> list[str]:
        """The addresses that the page asked for, itself among them."""
        return [
            str(event["params"]["request"]["url"])
            for event in self.browser.of(self.session)
            if event["method"] == "Network.requestWillBeSent"
        ]

    def place(self, element: str) -> tuple[float, float]:
        """The middle of an element (an expression) on the screen, scrolled there first."""
        x, y = self.run(
            f"(async () => {{ const e = {element}; e.scrollIntoView({{block: 'center'}});"
            " for (let i = 0; i < 2; i += 1) await new Promise(requestAnimationFrame);"
            " const b = e.getBoundingClientRect();"
            " return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        return x, y

    def point(self, element: str, by: tuple[float, float] = (0, 0)) -> None:
        """Move the pointer over an element."""
        x, y = self.place(element)
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x + by[0], y=y + by[1])

    def click(self, element: str) -> None:
        x, y = self.place(element)
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, *keys: str, shift: bool = False) -> None:
        """Press and release keys by name."""
        for key in keys:
            code, text = KEYS[key]
            common = {
                "key": key,
                "code": key,
                "windowsVirtualKeyCode": code,
                "modifiers": 8 * shift,
            }
            self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **common)
            self.call("Input.dispatchKeyEvent", type="keyUp", **common)

    def write(self, text: str) -> None:
        self.call("Input.insertText", text=text)

    def screenshot(self, *, whole: bool = False) -> bytes:
        """The page as PNG: what is in view, or all of it."""
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        return base64.b64decode(shot["data"])

    def printed(self, paper: Sequence[float] = (8.27, 11.69)) -> bytes:
        """The page as PDF on a paper of so many inches."""
        made = self.call(
            "Page.printToPDF", paperWidth=paper[0], paperHeight=paper[1], preferCSSPageSize=False
        )
        return base64.b64decode(made["data"])

    def close(self) -> None:
        self.browser.call("Target.closeTarget", targetId=self._target)


def wait(page: Page, expression: str) -> Any:
    """Wait until an expression is true in the page."""
    return page.run(
        "new Promise((done, fail) => { let left = 1000; const look = () => {"
        f" const value = {expression};"
        " if (value) done(value); else if (left-- > 0) setTimeout(look, 50);"
        " else fail(new Error(document.body.innerText)); }; look(); })"
    )


def _pipe() -> tuple[int, int]:
    """A pipe with numbers far from those that the browser wants."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 20) for end in ends)
    for end in ends:
        os.close(end)
    return moved[0], moved[1]
