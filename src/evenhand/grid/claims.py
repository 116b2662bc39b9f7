"""Who works on what, agreed upon through files alone, whatever the clocks of the hosts say.

The claim on a name is a file `NAME.1`, made by a link, which only one process can make. Its owner
writes a new number into it every few seconds. Whoever wants the name and has watched the same
number for long enough by his own clock, which alone counts, takes the owner for dead and makes
`NAME.2`; of several who do so one succeeds. So no lock has to be broken, and no two hosts need
agree on the time. An owner on the same host whose process is gone is known to be dead at once.
"""

from __future__ import annotations

import json
import os
import platform
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

__all__ = ["BEAT", "PATIENCE", "Claim", "Claims", "Owner"]

BEAT = 5.0
"""Seconds from one sign of life to the next."""
PATIENCE = 60.0
"""Seconds without one after which an owner elsewhere is taken for dead."""


@dataclass(frozen=True, slots=True)
class Owner:
    """A process: `place` tells hosts, their starts and process namespaces apart."""

    place: str
    host: str
    pid: int
    started: str

    @classmethod
    def this(cls) -> Owner:
        """The process that asks."""
        pid = os.getpid()
        return cls(_place(), platform.node(), pid, _started(pid) or "")

    @property
    def gone(self) -> bool:
        """Whether it is known to have ended; elsewhere that cannot be known."""
        return self.place == _place() and _started(self.pid) != self.started


@dataclass(slots=True)
class Claim:
    """A name that is this process's alone until it is released.

    `generation` is 1 where nobody had it before; else those before died with it.
    """

    path: Path
    generation: int
    handle: int
    content: dict[str, Any]
    claims: Claims
    beats: int = 0

    def beat(self) -> None:
        """Give a sign of life."""
        self.beats += 1
        told = json.dumps({**self.content, "beats": self.beats}).encode()
        os.pwrite(self.handle, told, 0)  # in place: a claim taken over is not made anew

    def release(self) -> None:
        """Give the name back; where another took over from us, it is left to him."""
        self.claims._forget(self)
        name = self.path.name.rpartition(".")[0]
        if not self.path.with_name(f"{name}.{self.generation + 1}").exists():
            for number in range(1, self.generation + 1):  # the highest last: it is what counts
                self.path.with_name(f"{name}.{number}").unlink(missing_ok=True)
        os.close(self.handle)


@dataclass(slots=True)
class Claims:
    """The claims kept in one folder, for one process; `launch` names what it belongs to."""

    folder: Path
    launch: str = ""
    beat: float = BEAT
    patience: float = PATIENCE
    clock: Callable[[], float] = time.monotonic
    _seen: dict[Path, tuple[bytes, float]] = field(default_factory=dict)
    _held: list[Claim] = field(default_factory=list)
    _lock: Any = field(default_factory=threading.Lock)
    _heart: threading.Thread | None = None

    def take(self, name: str) -> Claim | None:
        """Claim a name; None while another process has it and is not known to be dead."""
        number = self._highest(name)
        if number and not self._dead(self._path(name, number)):
            return None
        return self._make(name, number + 1)

    @contextmanager
    def alone(self, name: str, *, every: float = 0.2) -> Iterator[None]:
        """Wait until the name is free, and hold it."""
        while (claim := self.take(name)) is None:
            time.sleep(every)
        try:
            yield
        finally:
            claim.release()

    def owners(self, name: str) -> list[dict[str, Any]]:
        """What is known of all who have had the name since it was last released, the first first.

        The last one may still have it.
        """
        found = []
        for number in range(1, self._highest(name) + 1):
            told = _told(_read(self._path(name, number)))
            found.append(told)
        return found

    def held(self, name: str) -> dict[str, Any] | None:
        """Who has a name now, as far as can be known; None where nobody has."""
        number = self._highest(name)
        if not number or self._dead(self._path(name, number)):
            return None
        return _told(_read(self._path(name, number)))

    def _path(self, name: str, number: int) -> Path:
        return self.folder / f"{name}.{number}"

    def _highest(self, name: str) -> int:
        number = 0
        while self._path(name, number + 1).exists():
            number += 1
        return number

    def _dead(self, path: Path) -> bool:
        content = _read(path)
        told = _told(content)
        with suppress(TypeError, KeyError):
            if Owner(**told["owner"]).gone:
                return True
        now = self.clock()
        before, since = self._seen.get(path, (None, now))
        if content != before:
            self._seen[path] = (content, now)
            return False
        return now - since >= self.patience

    def _make(self, name: str, number: int) -> Claim | None:
        self.folder.mkdir(parents=True, exist_ok=True)
        owner = Owner.this()
        content = {
            "owner": {key: getattr(owner, key) for key in owner.__slots__},
            "launch": self.launch, "nonce": uuid.uuid4().hex,
        }  # fmt: skip
        path = self._path(name, number)
        draft = self.folder / f".{content['nonce']}"
        handle = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            os.write(handle, json.dumps({**content, "beats": 0}).encode())
            os.link(draft, path)
        except FileExistsError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        finally:
            draft.unlink(missing_ok=True)
        claim = Claim(path, number, handle, content, self)
        with self._lock:
            self._held.append(claim)
            if self._heart is None:
                self._heart = threading.Thread(target=self._beating, daemon=True)
                self._heart.start()
        return claim

    def _forget(self, claim: Claim) -> None:
        with self._lock:
            self._held.remove(claim)

    def _beating(self) -> None:
        while True:
            time.sleep(self.beat)
            with self._lock:
                for claim in self._held:
                    with suppress(OSError):  # a full disk: others may then take us for dead
                        claim.beat()


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return b""


def _told(content: bytes) -> dict[str, Any]:
    try:
        told = json.loads(content)
    except ValueError:  # read while it was written
        return {}
    return told if isinstance(told, dict) else {}


@lru_cache(maxsize=1)
def _place() -> str:
    """The host since its start, and the process namespace in it: where a pid means something."""
    parts = [platform.node()]
    with suppress(OSError):
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text().strip())
        parts.append(str(Path("/proc/self/ns/pid").readlink()))
    return " ".join(parts)


def _started(pid: int) -> str | None:
    """When a process began, in the kernel's words; None where there is none."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return _alive(pid)
    fields = told.rpartition(")")[2].split()
    return None if fields[0] == "Z" else fields[19]


def _alive(pid: int) -> str | None:
    """The same where there is no /proc: all that is known is whether there is such a process."""
    if Path("/proc/self/stat").exists():
        return None
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return ""
