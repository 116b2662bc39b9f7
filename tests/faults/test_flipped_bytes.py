"""A flipped byte in any cache: what was saved, computed again, or refused in one line."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from cli_shell import failure, output

from evenhand.audit.stages import Silent, Stage, run_stage
from evenhand.cache import Cache, content_key
from evenhand.errors import EvenhandError
from evenhand.fewshot import answers, data, encoders, episodes, features
from evenhand.grid.spec import cell_key
from evenhand.grid.store import Store
from evenhand.models import encoding
from evenhand.results import Measurement
from evenhand.training import read_tensors, save_tensors
from evenhand.vectors.cache import SUFFIX
from evenhand.vectors.store import load

REFUSED = object()


def flips(path: Path, count: int = 150) -> Iterator[None]:
    """The file with one byte changed, at places all over it, and with several."""
    original = path.read_bytes()
    rng = np.random.default_rng(len(original))
    places = np.unique(np.linspace(0, len(original) - 1, count).astype(int))
    for number, place in enumerate(places.tolist()):
        content = bytearray(original)
        content[place] ^= 1 << number % 8
        if number % 5 == 0:
            for other in rng.integers(0, len(content), 3).tolist():
                content[other] = (content[other] + 1) % 256
        path.write_bytes(content)
        yield
    path.write_bytes(original)


def check(path: Path, read: Callable[[], Any], same: Callable[[Any], bool]) -> None:
    """However a byte is changed, reading gives the same, nothing, or an error of ours."""
    assert same(read())
    changed = 0
    for _ in flips(path):
        try:
            value = read()
        except EvenhandError as error:
            assert "\n" not in str(error)  # noqa: PT017
            value = REFUSED
        changed += value is REFUSED or value is None
        assert value is REFUSED or value is None or same(value)
    assert changed > 0


def test_answers_of_a_model_and_embeddings(tmp_path):
    entries = np.random.default_rng(0).normal(size=(20, 3))
    keys = [content_key("model", number) for number in range(20)]
    Cache(tmp_path).store(keys, entries)
    (path,) = tmp_path.glob("*.npy")

    def read() -> Any:
        stored = Cache(tmp_path).get(keys)
        return None if all(entry is None for entry in stored) else np.array(stored)

    check(path, read, lambda value: np.array_equal(value, entries))


def test_a_command_with_the_cache_of_a_causal_model(tmp_path, monkeypatch, capsys):
    """The output is the same, however the cache is damaged; a damaged mark is refused."""
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("The nurse reads a book.\nThe judge reads a book.\n")
    words = ["measure", "perplexity", "tiny-causal", "--data", "in.txt", "--cache", "c", "--json"]
    first = output(capsys, *words)
    (path,) = Path("c").glob("*.npy")
    for _ in flips(path, 6):
        assert output(capsys, *words) == first
    for _ in flips(Path("c/evenhand-cache"), 3):
        assert "use another folder" in failure(capsys, *words)


def test_a_large_batch_that_is_mapped(tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand.cache.MAPPED", 1)
    test_answers_of_a_model_and_embeddings(tmp_path)


def test_features_and_rewritten_texts(tmp_path):
    array = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    path = tmp_path / "features.npz"
    features._save_array(path, array)
    check(path, lambda: features._read_array(path), lambda value: np.array_equal(value, array))


def test_the_list_of_texts_that_an_interrupted_encoding_lacked(tmp_path, monkeypatch):
    texts = [f"she reads book {number}." for number in range(6)]
    expected = encoders.encode("mini", texts)
    requests: list[Path] = []
    unlink = Path.unlink

    def keep(path: Path, **options: bool) -> None:
        if path.name.startswith(".request."):
            requests.append(path)
        else:
            unlink(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", keep)
        encoders.encode("mini", texts, cache=tmp_path)
    (path,) = requests
    read = encoding._read_request
    check(path, lambda: read(path, 6), lambda value: np.array_equal(value, np.arange(6)))
    for file in tmp_path.glob("*.npy"):
        file.unlink()
    path.write_bytes(path.read_bytes()[:-1] + b"\x55")
    np.testing.assert_array_equal(encoders.encode("mini", texts, cache=tmp_path), expected)


def test_answers_and_episodes_of_few_shot_runs(tmp_path):
    dataset = data.read("simulated:per_class=20")
    drawn = episodes.sample(
        dataset, dataset.classes[:6], ways=3, shots=2, queries=2, episodes=5, seed=0
    )
    path = tmp_path / "episodes.npz"
    drawn.save(path)
    check(path, lambda: episodes.Episodes.load(path), lambda value: value.digest == drawn.digest)
    rng = np.random.default_rng(0)
    given = answers.FewShotPredictions.of(np.log(rng.dirichlet(np.ones(3), (5, 6))), drawn, dataset)
    saved = answers.Classifier.of(given, np.zeros(len(given.names), dtype=np.int64))
    path = tmp_path / "answers.npz"
    saved.save(path)
    first = answers.Classifier.load(path)

    def same(value: Any) -> bool:
        return all(
            np.array_equal(getattr(value.answers, name), getattr(first.answers, name))
            for name in ("log_probs", "rows", "truth", "classes", "genders", "names")
        )

    check(path, lambda: answers.Classifier.load(path), same)


def test_networks_and_checkpoints(tmp_path):
    import torch

    tensors = {"a": torch.randn(4, 3), "b": torch.arange(5), "c": torch.tensor(1.5).bfloat16()}
    record = {"step": 5, "best": 0.123456}
    path = tmp_path / "checkpoint.safetensors"
    save_tensors(path, tensors, record)

    def same(value: Any) -> bool:
        read, about = value
        return about == record and all(torch.equal(read[name], tensors[name]) for name in tensors)

    check(path, lambda: read_tensors(path, "checkpoint"), same)


def test_cells_of_a_grid(tmp_path):
    store = Store(tmp_path)
    identity = {"seed": 1}
    key = cell_key("task", 1, identity)
    store.save("task", 1, identity, {"value": 0.123456789, "words": ["a", "b"]})
    check(
        store.file(key),
        lambda: store.result(key),
        lambda value: value == {"value": 0.123456789, "words": ["a", "b"]},
    )


def test_stages_of_an_audit(tmp_path):
    made: list[int] = []
    measurement = Measurement(
        metric="weat",
        query="q",
        value=0.123456789,
        low=0.1,
        high=0.2,
        prob=0.95,
        n=10,
        ideal=0.0,
        worse="away",
        interval="t",
    )

    def compute(_: Any) -> dict[str, Any]:
        made.append(1)
        return {"measurements": (measurement,), "details": {"words": ["a", "b"]}}

    stage = Stage(kind="weat", title="t", subject="vectors", compute=compute)
    first, seconds = run_stage(stage, tmp_path, "key", Silent())
    path = tmp_path / f"{stage.name}.json"
    for _ in flips(path):
        again, _seconds = run_stage(stage, tmp_path, "key", Silent())
        assert again.to_dict() == first.to_dict()
    assert len(made) > 50
    assert run_stage(stage, tmp_path, "key", Silent())[1] == seconds


def test_vectors(tmp_path):
    source = tmp_path / "small.vec"
    rng = np.random.default_rng(0)
    for dim in (6, 7):  # an odd number of numbers too
        rows = rng.normal(size=(21, dim))
        lines = (f"word{n} " + " ".join(f"{x:.6f}" for x in row) for n, row in enumerate(rows))
        source.write_text("\n".join(lines) + "\n")
        first = load(source)
        cache = source.with_name(source.name + SUFFIX)
        assert cache.is_file()
        for _ in flips(cache, 300):
            again = load(source)
            np.testing.assert_array_equal(again.matrix, first.matrix)
            assert list(again.words) == list(first.words)
        with contextlib.suppress(FileNotFoundError):
            cache.unlink()
