"""Streaming under faults: killed runs resume, dead workers are reported, damaged input is named."""

from __future__ import annotations

import bz2
import gzip
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import zstandard

from evenhand.errors import FileError, PartialFailure
from evenhand.text.block import Block
from evenhand.text.corpus import writing
from evenhand.text.corpus.formats import Csv, Form, Jsonl, Lines
from evenhand.text.corpus.pipeline import RewriteWork, stream
from evenhand.text.edits import Edit

pytestmark = pytest.mark.slow

LINES = 4000
TEXT = "".join(f"{n} he saw Zoë and she saw her\n" for n in range(LINES))
JSONL = "".join(json.dumps({"n": n, "text": f"{n} he saw"}) + "\n" for n in range(LINES))
CSV = "n,text\n" + "".join(f'{n},"{n} he\nsaw"\n' for n in range(LINES))

RUN = """
import sys, time
from dataclasses import dataclass
from pathlib import Path
from evenhand.text.corpus import Csv, Jsonl, Lines, RewriteWork, stream, writing
from evenhand.text.edits import Edit

@dataclass(frozen=True)
class Slow:
    seconds: float
    def __call__(self, block):
        time.sleep(self.seconds)
        edits, place = [], block.text.find("he")
        while place >= 0:
            edits.append(Edit(place, "pair", "he", f"she{block.first + int(block.owner(place))}"))
            place = block.text.find("he", place + 2)
        return edits

def main():
    folder, output, form, workers, seconds = sys.argv[1:]
    writing.INTERVAL = 0.02
    sources = sorted(str(path) for path in Path(folder).glob("in*"))
    stream(sources, output, RewriteWork(Slow(float(seconds))), form=eval(form),
           workers=int(workers), block_size=1 << 11, edits=output.replace("out", "edits"),
           fingerprint="slow",
           progress=lambda done, total: print(done, file=sys.stderr, flush=True))

if __name__ == "__main__":
    main()
"""


def files(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class Runs:
    """The same command, to be started again and again."""

    def __init__(self, folder: Path, suffix: str, form: Form, workers: int) -> None:
        self.folder, self.suffix, self.form, self.workers = folder, suffix, form, workers
        (folder / "run.py").write_text(RUN)
        (folder / "data").mkdir()
        self.output = folder / f"out{suffix}"
        self.edits = folder / f"edits{suffix}"

    def start(self, output: Path, seconds: float) -> subprocess.Popen[str]:
        command = [sys.executable, "run.py", "data", output.name]
        command += [repr(self.form), str(self.workers), str(seconds)]
        return subprocess.Popen(
            command,
            cwd=self.folder,
            stderr=subprocess.PIPE,
            text=True,
            # a job in the background begins with SIGINT ignored, and so would what it starts
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
        )

    def killed(self, blocks: int, seconds: float) -> int:
        """Kill a run some time after so many blocks; up to which document it had come."""
        with self.start(self.output, 0.004) as process:
            assert process.stderr is not None
            for _ in range(blocks):
                process.stderr.readline()
            time.sleep(seconds)
            process.send_signal(signal.SIGKILL)
        saved = json.loads(self.output.with_name(f".{self.output.name}.progress.json").read_bytes())
        return int(saved["position"]["document"])

    def finished(self, output: Path) -> list[int]:
        with self.start(output, 0) as process:
            assert process.stderr is not None
            reported = [int(line) for line in process.stderr]
            assert process.wait() == 0
        return reported


def content(path: Path) -> bytes:
    data = path.read_bytes()
    if path.suffix == ".zst":
        return zstandard.ZstdDecompressor().decompressobj().decompress(data)
    return data


CASES = [
    ("", "txt", Lines(), 1),
    (".gz", "txt", Lines(), 2),
    (".zst", "txt.gz", Lines(), 1),
    (".bz2", "jsonl.zst", Jsonl("text"), 1),
    ("", "csv.bz2", Csv("text"), 1),
]


@pytest.mark.parametrize(
    ("suffix", "kind", "form", "workers", "rounds"),
    [(*CASES[0], 2)] + [pytest.param(*case, 6, marks=pytest.mark.slow) for case in CASES],
)
def test_killed_again_and_again_the_output_is_the_same(
    tmp_path: Path, suffix: str, kind: str, form: Form, workers: int, rounds: int
) -> None:
    runs = Runs(tmp_path, suffix, form, workers)
    text = {"txt": TEXT, "jsonl": JSONL, "csv": CSV}[kind.split(".")[0]].encode()
    pack = {"gz": gzip.compress, "bz2": bz2.compress, "zst": zstandard.ZstdCompressor().compress}
    packed = pack.get(kind.split(".")[-1], bytes)
    (tmp_path / "data" / f"in1.{kind}").write_bytes(packed(text))
    (tmp_path / "data" / f"in2.{kind}").write_bytes(packed(text.removesuffix(b"\n")))
    undisturbed = runs.finished(tmp_path / f"undisturbed-out{suffix}")
    moment = random.Random(rounds)  # noqa: S311
    reached = [runs.killed(moment.randint(8, 14), moment.random() / 50) for _ in range(rounds)]
    assert not runs.output.exists()
    rest = runs.finished(runs.output)
    assert content(runs.output) == content(tmp_path / f"undisturbed-out{suffix}")
    assert content(runs.edits) == content(tmp_path / f"undisturbed-edits{suffix}")
    if suffix != ".zst":
        assert runs.output.read_bytes() == (tmp_path / f"undisturbed-out{suffix}").read_bytes()
    assert reached == sorted(set(reached))
    assert len(rest) < len(undisturbed)
    assert not [name for name in files(tmp_path) if name.startswith(".")]


def children(process: int) -> list[int]:
    listed = Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in listed.read_text().split()] if listed.exists() else []


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def gone(processes: list[int], seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if not any(alive(process) for process in processes):
            return True
        time.sleep(0.02)
    return False


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.parametrize(
    "how",
    [
        signal.SIGKILL,
        pytest.param(signal.SIGINT, marks=pytest.mark.slow),
        pytest.param(signal.SIGTERM, marks=pytest.mark.slow),
    ],
)
def test_workers_end_with_their_parent(tmp_path: Path, how: signal.Signals) -> None:
    runs = Runs(tmp_path, "", Lines(), 2)
    (tmp_path / "data" / "in.txt").write_text(TEXT)
    with runs.start(runs.output, 0.05) as process:
        assert process.stderr is not None
        process.stderr.readline()
        workers = children(process.pid)
        assert len(workers) >= 2
        process.send_signal(how)
        assert process.wait(timeout=10) != 0
        assert gone(workers)
        rest = process.stderr.read()
    assert "Process " not in rest  # no worker shows a traceback of its own
    assert not runs.output.exists()
    assert runs.finished(runs.output)
    assert runs.output.read_text().startswith("0 she0 saw Zoë")


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
def test_a_killed_worker_is_reported_and_the_run_resumes(tmp_path: Path) -> None:
    runs = Runs(tmp_path, "", Lines(), 2)
    (tmp_path / "data" / "in.txt").write_text(TEXT)
    with runs.start(runs.output, 0.05) as process:
        assert process.stderr is not None
        for _ in range(6):
            process.stderr.readline()
        serving = [child for child in children(process.pid) if _is_worker(child)]
        os.kill(serving[0], signal.SIGKILL)
        assert process.wait(timeout=20) == 1
        reported = process.stderr.read()
    assert "a worker process ended before its work was done: it was killed" in reported
    assert "the same command resumes from there" in reported
    assert runs.finished(runs.output)[0] > 1 << 12
    assert len(runs.output.read_text().splitlines()) == LINES


def _is_worker(process: int) -> bool:
    return b"spawn_main" in Path(f"/proc/{process}/cmdline").read_bytes()


class Shout:
    """Makes the text longer, and counts its calls."""

    def __init__(self) -> None:
        self.blocks = 0

    def __call__(self, block: Block) -> list[Edit]:
        self.blocks += 1
        return [Edit(int(start), "shout", "", "!!! ") for start in block.starts]


def test_a_run_resumes_after_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing, "INTERVAL", 0.0)
    (tmp_path / "in").write_text(TEXT)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    source = tmp_path / "in"

    def run(output: Path) -> int:
        shout = Shout()
        work = RewriteWork(shout)
        counts = stream([source], output, work, block_size=4000, fingerprint="shout")
        assert counts["documents"] == LINES
        return shout.blocks

    for suffix in ("", ".zst", ".gz"):
        output, undisturbed = tmp_path / f"out{suffix}", tmp_path / f"undisturbed{suffix}"
        blocks = run(undisturbed)
        resource.setrlimit(resource.RLIMIT_FSIZE, (undisturbed.stat().st_size * 2 // 3, hard))
        try:
            with pytest.raises(PartialFailure, match="File too large; the same command resumes"):
                run(output)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        assert not output.exists()
        assert run(output) < blocks * 2 // 3
        data = gzip.decompress(output.read_bytes()) if suffix == ".gz" else content(output)
        assert data.decode() == "".join(f"!!! {line}\n" for line in TEXT.splitlines())


def stopped(folder: Path, source: Path, **options: object) -> int:
    """Start a run that stops in its middle; how many blocks it worked on."""
    shout = Shout()

    def stop(done: int, total: int | None) -> None:
        if total is not None and done > 30_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        stream(
            [source],
            folder / "out",
            RewriteWork(shout),
            block_size=1000,
            progress=stop,
            **options,  # type: ignore[arg-type]
        )
    return shout.blocks


def rest(folder: Path, source: Path, **options: object) -> int:
    shout = Shout()
    options = {"fingerprint": "a", **options}
    stream([source], folder / "out", RewriteWork(shout), block_size=1000, **options)  # type: ignore[arg-type]
    lines = (folder / "out").read_text().splitlines()
    assert lines == [f"!!! {line}" for line in source.read_text().splitlines()]
    return shout.blocks


def test_only_the_same_run_on_the_same_input_resumes(tmp_path: Path) -> None:
    source = tmp_path / "in.txt"
    source.write_text(TEXT)
    complete = rest(tmp_path, source)
    begun = stopped(tmp_path, source, fingerprint="a")
    assert rest(tmp_path, source) <= complete - begun + 1  # the same: from where it was
    stopped(tmp_path, source, fingerprint="b")
    assert rest(tmp_path, source) == complete  # other settings
    stopped(tmp_path, source, fingerprint="a")
    source.write_text(TEXT.replace("her", "him"))
    assert rest(tmp_path, source) == complete  # an input that has changed
    stopped(tmp_path, source, fingerprint="a")
    assert rest(tmp_path, source, edits=tmp_path / "edits") == complete  # another output
    stopped(tmp_path, source, fingerprint="a")
    (tmp_path / ".out.partial").write_text("cut off by hand")
    assert rest(tmp_path, source) == complete
    stopped(tmp_path, source, fingerprint="a")
    (tmp_path / ".out.progress.json").write_text("{")
    assert rest(tmp_path, source) == complete
    stopped(tmp_path, source, fingerprint="a")
    assert rest(tmp_path, source, restart=True) == complete
    begun = stopped(tmp_path, source)
    assert (
        stopped(tmp_path, source) == begun
    )  # the default repr does not identify the work: restarted
    stopped(tmp_path, source, restart=True)
    assert files(tmp_path) == ["edits", "in.txt", "out"]


def test_two_runs_on_one_output_do_not_mix(tmp_path: Path) -> None:
    (tmp_path / "in.txt").write_text(TEXT)

    def meddle(done: int, total: int | None) -> None:
        with pytest.raises(FileError, match="out: is being written by another run"):
            stream([tmp_path / "in.txt"], tmp_path / "out", RewriteWork(Shout()))
        with pytest.raises(FileError, match="out: is being written by another run"):
            stream(
                [tmp_path / "in.txt"],
                tmp_path / "other",
                RewriteWork(Shout()),
                edits=tmp_path / "out",
            )

    stream([tmp_path / "in.txt"], tmp_path / "out", RewriteWork(Shout()), progress=meddle)
    assert len((tmp_path / "out").read_text().splitlines()) == LINES
    assert files(tmp_path) == ["in.txt", "out"]


@pytest.mark.parametrize(
    ("pack", "name"),
    [
        (gzip.compress, "gz"),
        (bz2.compress, "bz2"),
        (zstandard.ZstdCompressor(write_checksum=True).compress, "zst"),
    ],
)
def test_damaged_compressed_input_is_named(tmp_path: Path, pack, name: str) -> None:  # type: ignore[no-untyped-def]
    complete = pack(os.urandom(3000).hex().encode())
    source = tmp_path / f"in.{name}"
    for length in (20, len(complete) // 2, len(complete) - 1):
        source.write_bytes(complete[:length])
        with pytest.raises(FileError, match=rf"in\.{name}: the {name} data ends too soon"):
            stream([source], tmp_path / "out", RewriteWork(Shout()))
    middle = len(complete) // 2
    source.write_bytes(complete[:middle] + b"\0" * 40 + complete[middle + 40 :])
    with pytest.raises(FileError, match=rf"in\.{name}: damaged {name} data"):
        stream([source], tmp_path / "out", RewriteWork(Shout()))
    source.write_bytes(complete + b"something else, and long enough to be a header")
    with pytest.raises(FileError, match=rf"in\.{name}: "):
        stream([source], tmp_path / "out", RewriteWork(Shout()))
    assert files(tmp_path) == [f"in.{name}"]
