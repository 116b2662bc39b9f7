"""Loading word vectors: ours against pandas' C parser and gensim, on one file in one run.

    python benchmarks/load.py [--words 100000] [--dim 300]

Prints the best of the repeats as seconds of the processor and as a ratio to pandas. "first load"
includes writing the cache, "text alone" does not; "cached load" is every later one.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from evenhand.vectors.store import Vectors, load


def main(words: int = 100_000, dim: int = 300, repeats: int = 3, gensim: bool = True) -> None:
    """Make a random file, time each way to load it, print one table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "random.txt"
        make(path, words, dim)
        ways: dict[str, Callable[[], object]] = {
            "pandas, C parser": lambda: with_pandas(path, dim),
            "ours, text alone": lambda: load(path, cache=False),
            "ours, first load": lambda: first(path),
            "ours, cached load": lambda: load(path),
        }
        times: dict[str, list[float]] = {name: [] for name in ways}
        for _ in range(repeats):  # in turn, so that a busy moment hits all alike
            for name, way in ways.items():
                times[name].append(seconds(way))
        if gensim and importlib.util.find_spec("gensim"):
            times["gensim"] = [seconds(lambda: with_gensim(path))]
        megabytes = path.stat().st_size / 1e6
        print(f"{words:,} words × {dim}, {megabytes:,.0f} MB of text")
        print(f"{'':20}{'seconds':>10}{'ratio':>10}")
        for name, measured in times.items():
            ratio = min(measured) / min(times["pandas, C parser"])
            print(f"{name:20}{min(measured):>10.4f}{ratio:>10.4f}")


def make(path: Path, words: int, dim: int) -> None:
    """Random numbers of five decimals, as GloVe's files have them."""
    matrix = np.random.default_rng(0).normal(0, 0.4, (words, dim)).round(5)
    Vectors.from_arrays([f"word{row}" for row in range(words)], matrix).save(path, "glove")


def first(path: Path) -> Vectors:
    """Load as if for the first time."""
    path.with_name(path.name + ".evenhand-cache").unlink(missing_ok=True)
    return load(path)


def with_pandas(path: Path, dim: int) -> np.ndarray[Any, Any]:
    """What one would write with pandas alone, which checks nothing."""
    types: dict[int, Any] = {0: str} | dict.fromkeys(range(1, dim + 1), np.float32)
    frame = pd.read_csv(
        path, engine="c", sep=" ", header=None, quoting=3, dtype=types, na_filter=False
    )
    return frame.iloc[:, 1:].to_numpy(np.float32)


def with_gensim(path: Path) -> object:
    """The loader most people use."""
    from gensim.models import KeyedVectors  # type: ignore[import-untyped]

    return KeyedVectors.load_word2vec_format(path, no_header=True)


def seconds(way: Callable[[], object]) -> float:
    """How long one run takes."""
    start = time.process_time()
    way()
    return time.process_time() - start


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--words", type=int, default=100_000)
    parser.add_argument("--dim", type=int, default=300)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--no-gensim", dest="gensim", action="store_false", help="it is slow")
    main(**vars(parser.parse_args()))
