"""Answers kept on disk: a run that is killed goes on where it stopped, and nothing is mixed up."""

from __future__ import annotations

import signal
import struct
import subprocess
import sys

import numpy as np
import pytest
import torch

from evenhand.errors import FileError
from evenhand.masked import forward
from evenhand.masked.kept import Kept
from evenhand.masked.model import load
from evenhand.masked.scoring import Place, ask, log_probs, target_log_probs, top_k
from evenhand.simulate.masked import bigram_model

PLACES = [Place((2, *range(300, 300 + 3 + k % 5), 700 + k, 3), 2) for k in range(60)]
BATCH = 60

CHILD = """
import sys, time
sys.path.insert(0, {here!r})
from test_masked_kept import BATCH, PLACES, Kept, ask, load

def told(done, total):
    print(done, flush=True)
    time.sleep(0.05)

ask(load("mini"), PLACES, tokens=[5, 6], k=3, batch_tokens=BATCH, progress=told, kept=Kept({folder!r}))
"""  # noqa: E501


@pytest.fixture
def rows_run(monkeypatch):
    """How many rows were run, pass by pass."""
    seen: list[int] = []

    def counted(self, network, rows, stages, plain=forward.Pass.__init__):
        seen.append(len(rows))
        plain(self, network, rows, stages)

    monkeypatch.setattr(forward.Pass, "__init__", counted)
    return seen


def answers(model, kept):
    found = ask(model, PLACES, tokens=[5, 6], k=3, batch_tokens=BATCH, kept=kept)
    return np.hstack([found.log_probs, found.top.log_probs, found.top.ids])


@pytest.mark.slow
def test_a_killed_run_goes_on_and_ends_with_the_same_bits(tmp_path, rows_run):
    """A real kill -9 of a process in the middle of its work."""
    folder = tmp_path / "kept"
    here = str(__file__).rsplit("/", 1)[0]
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD.format(here=here, folder=str(folder))],
        stdout=subprocess.PIPE,
        text=True,
    )
    for line in child.stdout:
        if int(line) > 20:
            child.send_signal(signal.SIGKILL)
            break
    child.stdout.close()
    assert child.wait() == -signal.SIGKILL
    model = load("mini")
    whole = answers(model, None)
    kept = Kept(folder)
    already = len(kept)
    assert 20 < already < len(PLACES)
    rows_run.clear()
    assert np.array_equal(answers(model, kept), whole)
    assert sum(rows_run) == len(PLACES) - already
    rows_run.clear()
    told: list[tuple[int, int]] = []
    ask(
        model, PLACES, tokens=[5, 6], k=3, kept=Kept(folder), progress=lambda *n: told.append(n)
    )  # fmt: skip
    assert rows_run == []
    assert told == [(60, 60)]


def test_a_torn_tail_costs_one_batch(tmp_path):
    """The file cut at any byte of its last batch gives back all batches before it."""
    kept = Kept(tmp_path)
    keys = [[bytes([b, i]) * 8 for i in range(3)] for b in range(3)]
    for b in range(3):
        kept.store(keys[b], np.full((3, 2), float(b)))
    [file] = tmp_path.glob("*.answers")
    content = file.read_bytes()
    size = len(content) // 3
    for cut in range(2 * size, 3 * size):
        file.write_bytes(content[:cut])
        assert len(Kept(tmp_path)) == 6
    file.write_bytes(content)
    assert len(Kept(tmp_path)) == 9
    for at in range(2 * size, 3 * size):  # and so does any byte of it that is not what it was
        file.write_bytes(content[:at] + bytes([content[at] ^ 64]) + content[at + 1 :])
        found = Kept(tmp_path)
        assert len(found) == 6
        assert np.array_equal(found.find([keys[1][2]])[0], [1.0, 1.0])
    file.write_bytes(content[: 2 * size] + struct.pack("<4sIII", b"EHA1", 1 << 30, 9, 0))
    assert len(Kept(tmp_path)) == 6


def test_two_at_once_share_a_folder(tmp_path, rows_run):
    model = load("mini")
    one, two = Kept(tmp_path), Kept(tmp_path)
    first = log_probs(model, PLACES[:40], [5], batch_tokens=30, kept=one)
    second = log_probs(model, PLACES[20:], [5], batch_tokens=45, kept=two)
    assert np.allclose(first[20:], second[:20], atol=1e-5)
    assert len(list(tmp_path.glob("*.answers"))) == 2
    rows_run.clear()
    both = Kept(tmp_path)
    assert len(both) == 60
    log_probs(model, PLACES, [5], kept=both)
    assert rows_run == []


def test_only_the_same_question_is_the_same(tmp_path, rows_run):
    model, kept = load("mini"), Kept(tmp_path)
    exact = log_probs(model, PLACES, [5, 6], kept=kept)
    for question in (
        lambda: log_probs(model, PLACES, [6, 5], kept=kept),
        lambda: log_probs(model, PLACES, [5], kept=kept),
        lambda: top_k(model, PLACES, 2, kept=kept),
        lambda: ask(model, PLACES, tokens=[5, 6], k=1, kept=kept),
        lambda: log_probs(model, [Place(p.ids, 1) for p in PLACES], [5, 6], kept=kept),
    ):
        rows_run.clear()
        question()
        assert sum(rows_run) == 60
    rows_run.clear()
    alone = target_log_probs(model, PLACES, [5] * 60, kept=kept)  # one column was asked above
    assert rows_run == []
    assert np.allclose(alone, exact[:, 0], atol=1e-6)


def test_another_model_does_not_match(tmp_path, rows_run):
    kept = Kept(tmp_path)
    log_probs(load("mini"), PLACES, [5], kept=kept)
    changed = load("mini")
    with torch.no_grad():
        changed.network.base_model.embeddings.LayerNorm.bias[7] += 1e-3
    other = load("mini")
    other.network.config.layer_norm_eps = 1e-6
    cased = load("mini")
    cased.tokenizer.add_tokens(["Newword"])
    prints = {load("mini").fingerprint}
    for model in (changed, other, cased, load("mini", int8=True), load("mini", dtype="float16")):
        prints.add(model.fingerprint)
    assert len(prints) == 6
    used = load("mini")
    used.tokenizer(["one", "one two"], padding=True, truncation=True, max_length=9)
    used.embed(["one"])
    assert used.fingerprint == load("mini").fingerprint in prints
    for model in (changed, load("mini", int8=True)):
        rows_run.clear()
        log_probs(model, PLACES, [5], kept=kept)
        assert sum(rows_run) == 60


def test_a_model_without_a_fingerprint_is_never_kept(tmp_path):
    kept = Kept(tmp_path)
    for share in (0.6, 0.1):
        model = bigram_model({"[CLS]": {"he": share}, "she": {}})
        ids = tuple(model.tokenizer("[MASK] he")["input_ids"])
        he = model.tokenizer.convert_tokens_to_ids("he")
        found = log_probs(model, [Place(ids, 1)], [he], kept=kept)
        assert np.exp(found[0, 0]) == pytest.approx(share)
    assert len(kept) == 0


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("do not touch")
    with pytest.raises(FileError, match=r"expected an empty folder .* with 'thesis\.tex'"):
        Kept(tmp_path)
    with pytest.raises(FileError, match="expected a folder for the model's answers, got a file"):
        Kept(tmp_path / "thesis.tex")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    later = tmp_path / "later"
    Kept(later)
    (later / "evenhand-answers").write_text("evenhand answers 2\n")
    with pytest.raises(FileError, match="expected 'evenhand answers 1', got 'evenhand answers 2'"):
        Kept(later)


def test_a_full_disk_loses_the_batch_and_no_other(tmp_path, monkeypatch):
    kept = Kept(tmp_path)
    kept.store([b"a" * 16], np.ones((1, 2)))
    [file] = tmp_path.glob("*.answers")
    opened = type(file).open

    class Full:
        def __init__(self, path, *_, **__):
            self.file = opened(path, "ab", buffering=0)

        def __enter__(self):
            return self

        def __exit__(self, *given):
            self.file.close()

        def write(self, content):
            self.file.write(content[:20])
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(type(file), "open", lambda *given, **named: Full(*given, **named))
        with pytest.raises(OSError, match="No space left"):
            kept.store([b"b" * 16], np.ones((1, 2)))
    kept.store([b"c" * 16], np.ones((1, 2)))
    found = Kept(tmp_path).find([b"a" * 16, b"b" * 16, b"c" * 16])
    assert [answer is not None for answer in found] == [True, False, True]
