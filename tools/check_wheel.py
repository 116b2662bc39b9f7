"""Build the wheel and try it in bare virtual environments: alone, with every extra, and oldest.

    python tools/check_wheel.py                  base, every extra, oldest versions
    python tools/check_wheel.py base models      some of them
    python tools/check_wheel.py --list

`base` has none of the packages of the extras: text, vectors, posteriors and reports work, and a
command that needs a model says in one line what to install. Every extra is installed on top of it,
alone. `oldest` is the base with `constraints-oldest.txt`; `oldest-models` adds the extra `models`
with torch as in constraints.txt (the oldest torch has no build for CPUs alone at the index).

It needs the package index, about 3 GB of temporary disk and 10 to 20 minutes for everything.
`--wheel FILE` takes a wheel that is built already; `--keep` leaves the environments.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
MODELS = ("torch", "transformers", "tokenizers")

IMPORT = """
import sys
import evenhand as eh
assert eh.__file__.startswith(sys.prefix) or "--layered" in sys.argv, eh.__file__
from importlib.util import find_spec
print("evenhand", eh.__version__)
"""

WITHOUT_MODELS = f"""
from importlib.util import find_spec
assert not [name for name in {MODELS!r} if find_spec(name)], "the base has packages of `models`"
import evenhand as eh
try:
    eh.models.load("mini")
except eh.errors.MissingExtraError as error:
    assert "evenhand[models]" in str(error), error
else:
    raise AssertionError("a model was loaded without the extra models")
"""

HELP = """
import sys
import click
from evenhand.cli import command

def walk(current, context):
    current.get_help(context)
    count = 1
    if isinstance(current, click.Group):
        for name in current.list_commands(context):
            child = current.get_command(context, name)
            count += walk(child, click.Context(child, info_name=name, parent=context))
    return count

print(walk(command, click.Context(command, info_name="evenhand")), "help pages")
assert "torch" not in sys.modules
"""

AUDIT = """
import evenhand as eh
result = eh.audit("glove", topics=["gender"], quick=True, out="audit")
assert result.report.is_file() and not result.failed, result.failed
"""

ARRAYS = """
import evenhand as eh
v = eh.vectors.load("glove")
weat = eh.measure(v, eh.lexicon.weat(6), "weat")
assert 1 < weat.value < 2, weat
frame = weat.to_frame()
assert len(frame), frame
"""

MODEL = """
import torch
import evenhand as eh
mini = eh.models.load("mini")
row = mini.tokenizer("the king loved [MASK] wife.")["input_ids"]
best = mini.logits([row], [row.index(mini.tokenizer.mask_token_id)])[0].argmax()
assert mini.tokenizer.convert_ids_to_tokens(int(best)) == "his"
network = eh.fewshot.networks.make("proto-cosine", 8)
print("torch", torch.__version__)
"""

ARVIZ = """
import arviz
import evenhand as eh
table = eh.posterior.read_table("distances.csv")
fit = eh.posterior.fit(table, "baseline", draws=400)
assert "posterior" in fit.to_arviz().groups()
"""

TRAIN = """
from pathlib import Path
import evenhand as eh
Path("corpus.txt").write_text("she sings and he hums\\n" * 20)
trained = eh.vectors.train("corpus.txt", "own.vec", eh.vectors.TrainSettings(dimensions=4))
assert len(eh.vectors.load("own.vec")) == len(trained.vectors) == 5
"""

EXPLORE = """
import uvicorn
from evenhand.explore.server import application
from evenhand.explore.subjects import Subjects
application(Subjects(), token="t", port=8750)
"""

BASE_COMMANDS = (
    ("rewrite swap -", "Her neighbour waved to her.\n", "His neighbour waved to him."),
    ("measure glove --topic gender --metric weat --figures figures --json", "", '"metric": "weat"'),
    ("lab vectors distances glove --topic gender -o distances.csv", "", "distances.csv"),
    ("lab posterior fit distances.csv --family baseline --draws 400 --json", "", '"schema"'),
    ("list metrics", "", "weat"),
    ("doctor", "", "models"),
)
MODEL_COMMANDS = (('ask "The clerk lost [MASK] keys."', "", "his"),)

EXTRAS = {
    "arviz": ARVIZ,
    "explore": EXPLORE,
    "gguf": "import gguf" + MODEL,
    "hub": "import datasets",
    "models": MODEL,
    "nuts": "import numpyro",
    "ray": "import ray",
    "slurm": "import submitit",
    "spacy": "import spacy",
    "trainer": "from evenhand.integrations import BiasCallback" + MODEL,
    "word2vec": TRAIN,
}
"""What is run with each extra; one without an entry is only installed."""


class Failed(Exception):  # noqa: N818
    """A check that failed, with what was printed."""


class Environment:
    """A virtual environment and a working folder; one that is in the folder is used again."""

    def __init__(
        self, folder: Path, below: Environment | None = None, python: str = sys.executable
    ) -> None:
        self.folder = folder
        self.python = folder / "venv" / "bin" / "python"
        self.work = folder / "work"
        self.work.mkdir(parents=True, exist_ok=True)
        if not self.python.exists():
            _call([python, "-m", "venv", str(folder / "venv")])
        if below is not None:  # what the base has need not be installed again
            (self.packages / "below.pth").write_text(f"{below.packages}\n")
            (self.work / "distances.csv").write_bytes((below.work / "distances.csv").read_bytes())

    @property
    def packages(self) -> Path:
        (folder,) = (self.folder / "venv" / "lib").glob("python*/site-packages")
        return folder

    def install(self, *packages: str, constraints: str = "constraints.txt") -> None:
        pip = [str(self.python), "-m", "pip", "install", "--quiet", "-c", str(ROOT / constraints)]
        _call([*pip, *packages])

    def run(self, script: str, *arguments: str) -> None:
        _call([str(self.python), "-W", "error::ImportWarning", "-c", script, *arguments], self.work)

    def command(self, line: str, given: str, expected: str, code: int = 0) -> None:
        words = [str(self.python), "-m", "evenhand", *shlex.split(line)]
        done = subprocess.run(
            words,
            cwd=self.work,
            input=given,
            text=True,
            capture_output=True,
            env=_bare(),
            timeout=900,
            check=False,
        )
        printed = done.stdout + done.stderr
        if done.returncode != code or expected not in printed or "Traceback" in printed:
            raise Failed(
                f"evenhand {line}: exit {done.returncode}, expected {expected!r} in:\n{printed}"
            )


def _bare() -> dict[str, str]:
    """The environment without what would bring other packages in."""
    dropped = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if name not in dropped}


def _call(words: list[str], folder: Path | None = None) -> None:
    done = subprocess.run(
        words, cwd=folder, text=True, capture_output=True, env=_bare(), check=False, timeout=3600
    )
    if done.returncode:
        raise Failed(f"{' '.join(words)[:200]}: exit {done.returncode}\n{done.stdout}{done.stderr}")


def build(folder: Path) -> Path:
    """The wheel of this tree."""
    _call([sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT)])
    (wheel,) = folder.glob("evenhand-*.whl")
    return wheel


def check_base(environment: Environment, wheel: Path, constraints: str = "constraints.txt") -> None:
    """Everything that does without the extras."""
    environment.install(str(wheel), constraints=constraints)
    environment.run(IMPORT)
    environment.run(WITHOUT_MODELS)
    environment.run(HELP)
    for line, given, expected in BASE_COMMANDS:
        environment.command(line, given, expected)
    environment.run(ARRAYS)
    environment.run(AUDIT)
    environment.command("report audit", "", "report.html")
    for line in (
        'ask "The clerk lost [MASK] keys."',
        "lab fewshot run --out run",
        "audit --out other",
    ):
        environment.command(line, "", "pip install 'evenhand[models]'", code=2)


def check_extra(environment: Environment, wheel: Path, extra: str, constraints: str) -> None:
    """One extra on top of the base."""
    if "models" in needs(extra):
        environment.install(f"torch=={pinned('torch')}")  # the plain name would bring CUDA
    environment.install(f"{wheel}[{extra}]", constraints=constraints)
    environment.run(IMPORT, "--layered")
    environment.run(EXTRAS.get(extra, ""))
    if "models" in needs(extra):
        for line, given, expected in MODEL_COMMANDS:
            environment.command(line, given, expected)


def extras() -> dict[str, list[str]]:
    """The extras of pyproject.toml for users."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return {
        name: each
        for name, each in project["optional-dependencies"].items()
        if name not in ("dev", "docs")
    }


def needs(extra: str) -> set[str]:
    """The extra itself and those of our own that it names."""
    named = {text[len("evenhand[") : -1] for text in extras()[extra] if text[:9] == "evenhand["}
    return {extra, *named}


def pinned(package: str) -> str:
    """The version in constraints.txt."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return next(line.partition("==")[2] for line in lines if line.startswith(f"{package}=="))


def oldest_with_tested_torch(folder: Path) -> Path:
    """constraints-oldest.txt with torch as in constraints.txt."""
    lines = (ROOT / "constraints-oldest.txt").read_text(encoding="utf-8").splitlines()
    changed = [f"torch=={pinned('torch')}" if each[:7] == "torch==" else each for each in lines]
    path = folder / "constraints-oldest-models.txt"
    path.write_text("\n".join(changed) + "\n", encoding="utf-8")
    return path


def main() -> None:
    """Run the chosen checks; exit 1 if one failed, with what was printed."""
    known = ["base", *extras(), "oldest", "oldest-models"]
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checks", nargs="*", metavar="CHECK", help=", ".join(known))
    parser.add_argument("--wheel", type=Path, help="a wheel that is built already")
    parser.add_argument("--keep", action="store_true", help="leave the environments")
    parser.add_argument("--list", action="store_true", help="list the checks")
    chosen = parser.parse_args()
    if chosen.list:
        print("\n".join(known))
        return
    for name in chosen.checks:
        if name not in known:
            parser.error(f"unknown check '{name}' (known: {', '.join(known)})")
    folder = Path(tempfile.mkdtemp(prefix="evenhand-wheel-"))
    try:
        run_checks(chosen.checks or known, folder, chosen.wheel)
    finally:
        if chosen.keep:
            print(folder)
        else:
            shutil.rmtree(folder)


def run_checks(checks: list[str], folder: Path, given: Path | None) -> None:
    """The checks in order; every environment but the bases is deleted after its own."""
    wheel = given.resolve() if given else build(folder)
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB", flush=True)
    bases: dict[str, Environment] = {}

    def base(kind: str) -> Environment:
        if kind not in bases:
            if (folder / kind).exists():
                raise Failed(f"{kind} has failed already")
            start = time.monotonic()
            environment = Environment(folder / kind)
            own = "constraints-oldest.txt" if kind == "oldest" else "constraints.txt"
            check_base(environment, wheel, own)
            bases[kind] = environment
            print(f"{kind}: passed ({time.monotonic() - start:.0f} s)", flush=True)
        return bases[kind]

    failed = []
    for check in checks:
        old = check.startswith("oldest")
        try:
            below = base("oldest" if old else "base")
            if check in ("base", "oldest"):
                continue
            start = time.monotonic()
            environment = Environment(folder / check, below)
            constraints = str(oldest_with_tested_torch(folder)) if old else "constraints.txt"
            check_extra(environment, wheel, "models" if old else check, constraints)
            print(f"{check}: passed ({time.monotonic() - start:.0f} s)", flush=True)
            shutil.rmtree(environment.folder)
        except Failed as problem:
            failed.append(check)
            print(f"{check}: failed\n{problem}", flush=True)
    if failed:
        sys.exit(f"failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()
