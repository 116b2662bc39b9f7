"""`evenhand doctor`: what is installed, what it runs on, and where it stores things."""

from __future__ import annotations

import os
from importlib.metadata import PackageNotFoundError, metadata, requires
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click

from evenhand.cli.commands import Command
from evenhand.cli.options import json_option
from evenhand.cli.output import print_json, say, table
from evenhand.files import show_size, user_cache, versions

PACKAGES = ("scipy", "scikit-learn", "pandas", "torch", "transformers", "tokenizers", "altair")
IMPORTED_AS = {"scikit-learn": "sklearn", "huggingface-hub": "huggingface_hub"}
PURPOSES = {
    "arviz": "posteriors for ArviZ",
    "explore": "the explorer in a browser",
    "gguf": "causal models in GGUF files",
    "hub": "data sets of the hub",
    "models": "language models and few-shot classifiers (PyTorch, transformers)",
    "nuts": "posteriors by NUTS",
    "ray": "grids on Ray",
    "slurm": "grids on a Slurm cluster",
    "spacy": "spaCy as the tagger of her and his",
    "trainer": "measuring while a transformers Trainer trains",
    "word2vec": "word vectors of your own corpus",
}


@click.command(cls=Command)
@json_option
def doctor() -> None:
    """Show versions, extras, devices and caches: what to say when something does not work.

    \b
    Example:  evenhand doctor
    """
    report: dict[str, Any] = {
        "versions": versions(*PACKAGES),
        "extras": _extras(),
        "devices": _devices(),
        "caches": _caches(),
    }
    if print_json(command="doctor", **report):
        return
    table("Versions", ("", "version"), list(report["versions"].items()))
    rows = [
        (name, "installed" if each["installed"] else "–", each["purpose"])
        for name, each in report["extras"].items()
    ]
    table("Extras", ("extra", "", "for"), rows)
    missing = [name for name, each in report["extras"].items() if not each["installed"]]
    if missing:
        say(f"pip install 'evenhand[{missing[0]}]' installs one of them.")
    table("Devices", ("", ""), [(name, str(value)) for name, value in report["devices"].items()])
    caches = [(each["path"], each["size"]) for each in report["caches"]]
    table("Caches", ("folder", "size"), caches)


def _extras() -> dict[str, dict[str, Any]]:
    """For each extra whether its packages are there."""
    try:
        names = metadata("evenhand").get_all("Provides-Extra") or []
        needed = requires("evenhand") or []
    except PackageNotFoundError:  # a source tree that is not installed
        names, needed = list(PURPOSES), []
    extras: dict[str, dict[str, Any]] = {}
    for name in names:
        if name in ("dev", "docs"):
            continue
        marks = (f"extra == '{name}'", f'extra == "{name}"')
        own = [text for text in needed if any(mark in text for mark in marks)]
        packages = [_package(text) for text in own] or [name]
        there = all(find_spec(IMPORTED_AS.get(p, p).replace("-", "_")) for p in packages)
        extras[name] = {"installed": there, "purpose": PURPOSES.get(name, ""), "packages": packages}
    return extras


def _package(requirement: str) -> str:
    """The name of the package that is required."""
    end = next((i for i, c in enumerate(requirement) if c in "<>=!~;[ "), len(requirement))
    return requirement[:end]


def _devices() -> dict[str, Any]:
    from evenhand.threads import available_cores

    devices: dict[str, Any] = {"cores": available_cores()}
    if find_spec("torch") is None:
        return {**devices, "torch": "not installed: models cannot be run"}
    import torch

    devices["torch threads"] = torch.get_num_threads()
    if torch.cuda.is_available():
        devices |= {
            f"cuda:{i}": f"{torch.cuda.get_device_name(i)}, "
            f"{show_size(torch.cuda.get_device_properties(i).total_memory)}"
            for i in range(torch.cuda.device_count())
        }
    else:
        devices["cuda"] = "none"
    return devices


def _caches() -> list[dict[str, str]]:
    """Ours and that of the hub, with their sizes."""
    hub = Path(os.environ.get("HF_HOME") or Path.home() / ".cache" / "huggingface")
    caches = []
    for folder in (user_cache(), hub):
        size = "none yet"
        if folder.is_dir():
            files = (path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
            size = show_size(sum(path.stat().st_size for path in files))
        caches.append({"path": str(folder), "size": size})
    return caches
