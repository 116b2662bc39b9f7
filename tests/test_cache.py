"""The cache: a killed run resumes where it stopped, and entries are never confused."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

from evenhand.cache import Cache, content_key
from evenhand.errors import FileError
from evenhand.models import forward
from evenhand.models.masked import load
from evenhand.models.masked_scoring import (
    MaskedPosition,
    log_probs,
    query_tokens,
    target_log_probs,
    top_k,
)
from evenhand.simulate.masked import bigram_model

POSITIONS = [MaskedPosition((2, *range(300, 300 + 3 + k % 5), 700 + k, 3), 2) for k in range(60)]
BATCH = 60

CHILD = """
import sys, time
sys.path.insert(0, {here!r})
from test_cache import BATCH, POSITIONS, Cache, query_tokens, load

def report(done, total):
    print(done, flush=True)
    time.sleep(0.05)

query_tokens(load("mini"), POSITIONS, tokens=[5, 6], k=3, batch_tokens=BATCH, progress=report, cache=Cache({folder!r}))
"""  # noqa: E501


@pytest.fixture
def rows_run(monkeypatch):
    """How many rows were run, pass by pass."""
    seen: list[int] = []

    def counted(self, network, ids, lengths, stages, plain=forward.ForwardPass.__init__):
        seen.append(len(lengths))
        plain(self, network, ids, lengths, stages)

    monkeypatch.setattr(forward.ForwardPass, "__init__", counted)
    return seen


def answers(model, cache):
    result = query_tokens(model, POSITIONS, tokens=[5, 6], k=3, batch_tokens=BATCH, cache=cache)
    return np.hstack([result.log_probs, result.top.log_probs, result.top.ids])


@pytest.mark.slow
def test_a_killed_run_resumes_and_ends_with_the_same_bits(tmp_path, rows_run):
    """A real kill -9 of a process in the middle of its work."""
    folder = tmp_path / "cache"
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
    expected = answers(model, None)
    cache = Cache(folder)
    already = len(cache)
    assert 20 < already < len(POSITIONS)
    rows_run.clear()
    assert np.array_equal(answers(model, cache), expected)
    assert sum(rows_run) == len(POSITIONS) - already
    rows_run.clear()
    calls: list[tuple[int, int]] = []
    cache = Cache(folder)
    query_tokens(
        model, POSITIONS, tokens=[5, 6], k=3, cache=cache, progress=lambda *n: calls.append(n)
    )
    assert rows_run == []
    assert calls == [(60, 60)]


def test_a_damaged_file_costs_its_batch_and_no_other(tmp_path):
    """A file cut at any byte, or with any byte changed, is ignored; the others are read."""
    cache = Cache(tmp_path)
    keys = [[bytes([b, i]) * 8 for i in range(3)] for b in range(3)]
    for b in range(3):
        cache.store(keys[b], np.full((3, 2), float(b)))
        if b == 1:
            before = set(tmp_path.glob("*.npy"))
    [file] = set(tmp_path.glob("*.npy")) - before
    content = file.read_bytes()
    for cut in range(len(content)):
        file.write_bytes(content[:cut])
        assert len(Cache(tmp_path)) == 6
    file.write_bytes(content)
    assert len(Cache(tmp_path)) == 9
    for at in range(len(content)):
        file.write_bytes(content[:at] + bytes([content[at] ^ 64]) + content[at + 1 :])
        damaged = Cache(tmp_path)
        assert len(damaged) == 6
        assert np.array_equal(damaged.get([keys[1][2]])[0], [1.0, 1.0])


def test_large_files_are_mapped_and_have_the_same_numbers(tmp_path, monkeypatch):
    values = np.random.default_rng(0).normal(size=(50, 7)).astype(np.float32)
    keys = [content_key("model", text=f"text {i}") for i in range(50)]
    Cache(tmp_path).store(keys, values)
    small = Cache(tmp_path).stack(keys)
    monkeypatch.setattr("evenhand.cache.MAPPED", 1)
    mapped = Cache(tmp_path)
    assert isinstance(mapped._batches[0], np.memmap)
    assert np.array_equal(mapped.stack(keys), values)
    assert np.array_equal(small, values)
    assert mapped.stack(keys).dtype == np.float32
    [file] = tmp_path.glob("*.npy")
    file.write_bytes(file.read_bytes()[:-1])
    assert len(Cache(tmp_path)) == 0


def test_missing_names_each_key_once_and_refresh_reads_what_others_stored(tmp_path):
    one, two = Cache(tmp_path), Cache(tmp_path)
    keys = [content_key("model", n) for n in (1, 2, 1, 3)]
    assert one.missing(keys) == [0, 1, 3]
    two.store(keys[:1], np.zeros((1, 4)))
    assert one.missing(keys) == [0, 1, 3]
    with one.lock():
        assert one.missing(keys) == [1, 3]
    assert keys[0] in one
    assert [entry is None for entry in one.get(keys)] == [False, True, False, True]


def test_two_at_once_share_a_folder(tmp_path, rows_run):
    model = load("mini")
    one, two = Cache(tmp_path), Cache(tmp_path)
    first = log_probs(model, POSITIONS[:40], [5], batch_tokens=30, cache=one)
    second = log_probs(model, POSITIONS[20:], [5], batch_tokens=45, cache=two)
    assert np.allclose(first[20:], second[:20], atol=1e-5)
    rows_run.clear()
    both = Cache(tmp_path)
    assert len(both) == 60
    log_probs(model, POSITIONS, [5], cache=both)
    assert rows_run == []


def test_only_the_same_question_is_the_same(tmp_path, rows_run):
    model, cache = load("mini"), Cache(tmp_path)
    exact = log_probs(model, POSITIONS, [5, 6], cache=cache)
    for question in (
        lambda: log_probs(model, POSITIONS, [6, 5], cache=cache),
        lambda: log_probs(model, POSITIONS, [5], cache=cache),
        lambda: top_k(model, POSITIONS, 2, cache=cache),
        lambda: query_tokens(model, POSITIONS, tokens=[5, 6], k=1, cache=cache),
        lambda: log_probs(
            model, [MaskedPosition(p.ids, 1) for p in POSITIONS], [5, 6], cache=cache
        ),
    ):
        rows_run.clear()
        question()
        assert sum(rows_run) == 60
    rows_run.clear()
    alone = target_log_probs(model, POSITIONS, [5] * 60, cache=cache)  # one column was asked above
    assert rows_run == []
    assert np.allclose(alone, exact[:, 0], atol=1e-6)


def test_another_model_does_not_match(tmp_path, rows_run):
    cache = Cache(tmp_path)
    log_probs(load("mini"), POSITIONS, [5], cache=cache)
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
        log_probs(model, POSITIONS, [5], cache=cache)
        assert sum(rows_run) == 60


def test_a_model_without_a_fingerprint_is_never_cached(tmp_path):
    cache = Cache(tmp_path)
    for share in (0.6, 0.1):
        model = bigram_model({"[CLS]": {"he": share}, "she": {}})
        ids = tuple(model.tokenizer("[MASK] he")["input_ids"])
        he = model.tokenizer.convert_tokens_to_ids("he")
        result = log_probs(model, [MaskedPosition(ids, 1)], [he], cache=cache)
        assert np.exp(result[0, 0]) == pytest.approx(share)
    assert len(cache) == 0


def test_a_folder_of_something_else_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("do not touch")
    with pytest.raises(FileError, match=r"expected an empty folder or a cache.* 'thesis\.tex'"):
        Cache(tmp_path)
    with pytest.raises(FileError, match="expected a folder for a cache, got a file"):
        Cache(tmp_path / "thesis.tex")
    with pytest.raises(FileError, match="expected a folder for a cache, got a file"):
        Cache(tmp_path / "thesis.tex" / "inside")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
    later = tmp_path / "later"
    Cache(later)
    (later / "evenhand-cache").write_text("evenhand cache 3\n")
    with pytest.raises(FileError, match="expected 'evenhand cache 2', got 'evenhand cache 3'"):
        Cache(later)


def test_a_full_disk_loses_the_batch_and_no_other(tmp_path, monkeypatch):
    cache = Cache(tmp_path)
    cache.store([b"a" * 16], np.ones((1, 2)))

    def full(*paths):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.replace", full)
        with pytest.raises(OSError, match="No space left"):
            cache.store([b"b" * 16], np.ones((1, 2)))
    cache.store([b"c" * 16], np.ones((1, 2)))
    for opened in (cache, Cache(tmp_path)):
        entries = opened.get([b"a" * 16, b"b" * 16, b"c" * 16])
        assert [entry is not None for entry in entries] == [True, False, True]
    assert len(list(tmp_path.glob("*"))) == 3
