"""Results that may be published name files by their base names: no path of the user's machine."""

from __future__ import annotations

import json
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import yaml

from evenhand.audit import stages
from evenhand.cli import run
from evenhand.files import public, public_arguments, public_name, public_names
from evenhand.lexicon import topic
from evenhand.vectors import nulls
from evenhand.vectors.store import Vectors
from small_encoder import save_small

PEOPLE = ("nurse", "doctor", "guard", "clerk", "cook", "baker", "pilot", "judge")
ROWS = [
    (f"{('He', 'She')[woman]} works as a {job} in town number {n}.", job, "MF"[woman])
    for number, job in enumerate(PEOPLE)
    for n in range(9)
    for woman in [int((n % 3 == 0) == (number % 2 == 0))]
]


def test_names_of_sources():
    assert public_name("/home/anna/a b/x.csv") == "x.csv"
    assert public_name("hf:org/bert") == "hf:org/bert"
    assert public_name("simulated:leak=0.8") == "simulated:leak=0.8"
    assert public_name(Path.cwd() / "..") == Path.cwd().parent.name
    assert public_names(["/d/x/m", "/e/x/m", "m"]) == {
        "/d/x/m": "d/x/m",
        "/e/x/m": "e/x/m",
        "m": "m",
    }


def test_paths_within_texts(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "anna lee"))
    home = Path.home()
    data = tmp_path / "secret" / "data.csv"
    shown = public(
        {
            str(data): f"{data}, line 3: expected a number",
            "below": [f"OSError: '{home}/.cache/x/y.bin' is full", f"{home}", 3, None],
            "other": "he/she, /r/science, /m/02x and 3/4",
        },
        data,
    )
    assert shown == {
        "data.csv": "data.csv, line 3: expected a number",
        "below": ["OSError: 'y.bin' is full", "…", 3, None],
        "other": "he/she, /r/science, /m/02x and 3/4",
    }


def test_command_lines(tmp_path):
    given = [
        "audit",
        "-o",
        f"{tmp_path}/out",
        f"--topic=gender,{tmp_path}/a.toml",
        "--shares",
        "6/2/2",
    ]
    assert public_arguments(given) == [
        "audit",
        "-o",
        "out",
        "--topic=gender,a.toml",
        "--shares",
        "6/2/2",
    ]


@pytest.fixture
def private(tmp_path, monkeypatch) -> Path:
    """A home folder with a user's files; the shell stands somewhere else."""
    home = tmp_path / "home of anna" / "client"
    home.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home.parent))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home.parent / ".cache"))
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    few = partial(nulls.dimension_spread, dims=(2, 10), points=50, repeats=2)
    monkeypatch.setattr(nulls, "dimension_spread", few)
    stages.loaded.cache_clear()
    names = dict.fromkeys(word for word in topic("gender").words() if " " not in word)
    matrix = np.random.default_rng(4).integers(-40, 40, (len(names) + 300, 12)) / 8
    words = [*names, *(f"word{n}" for n in range(300))]
    Vectors.from_arrays(words, matrix).save(home / "my.vec")
    save_small(home / "my-bert")
    rows = "".join(f"{text},{job},{sex}\n" for text, job, sex in ROWS)
    (home / "my.csv").write_text("text,label,gender\n" + rows)
    sentences = [f"The {who} opens [MASK] book.\n" for who in PEOPLE]
    (home / "masked.txt").write_text("".join(sentences))
    texts = [
        f"The {who} drops {her} hat {n} times.\n"
        for who in PEOPLE
        for her in ("his", "her")
        for n in "23456"
    ]
    (home / "text.txt").write_text("".join(texts))
    return home


def call(monkeypatch, capsys, *arguments: object) -> str:
    """The output of a command that succeeds."""
    given = [str(argument) for argument in arguments]
    monkeypatch.setattr(sys, "argv", ["evenhand", *given])
    code = run(given)
    shown = capsys.readouterr()
    assert code == 0, shown.err
    return shown.out


def assert_public(folder: Path, private: Path, *outputs: str) -> None:
    """No file below the folder and no output has the path of the user's folders."""
    paths = {str(private), str(private.parent), str(private.parents[1])}
    texts = dict(enumerate(outputs))
    for file in folder.rglob("*") if folder.is_dir() else [folder]:
        if file.is_file():
            texts[str(file)] = file.read_text(encoding="utf-8", errors="replace")
    assert texts
    leaks = [(name, path) for name, text in texts.items() for path in paths if path in text]
    assert leaks == []


@pytest.mark.slow
def test_audit(private, monkeypatch, capsys):
    out = private / "audit"
    shown = call(
        monkeypatch,
        capsys,
        "audit",
        "--vectors",
        private / "my.vec",
        "--model",
        private / "my-bert",
        "--data",
        private / "my.csv",
        "--topic",
        "gender",
        "--quick",
        "--out",
        out,
        "--json",
    )
    assert json.loads(shown)["report"] == str(out / "report.html"), "where it is written stays"
    assert_public(out, private)
    subjects = json.loads((out / "run.json").read_text())["subjects"]
    assert {kind: about["source"] for kind, about in subjects.items()} == {
        "corpus": "my.csv", "vectors": "my.vec", "masked": "my-bert",
    }  # fmt: skip
    assert len(subjects["corpus"]["sha256"]) == len(subjects["vectors"]["sha256"]) == 64
    assert subjects["masked"]["fingerprint"]


def test_a_part_that_fails(private, monkeypatch, capsys):

    def fail(*_):
        raise OSError(5, "Input/output error", str(private / "my.csv"))

    monkeypatch.setattr(stages, "_filter", fail)
    out = private / "audit"
    code = run(["audit", "--data", str(private / "my.csv"), "--skip", "fewshot", "--out", str(out)])
    assert code == 1
    assert "my.csv" in (out / "stages" / "filter-data-structural-filter.error.txt").read_text()
    assert "my.csv" in (out / "results.json").read_text()
    assert_public(out, private)


@pytest.mark.slow
def test_vectors_and_posterior(private, monkeypatch, capsys):
    shell = partial(call, monkeypatch, capsys)
    v, table, out = private / "my.vec", private / "gender.csv", private / "out"
    outputs = [
        shell("info", v, "--json"),
        shell("measure", v, "--topic", "gender", "--metric", "weat", "--json"),
        shell("lab", "vectors", "distances", v, "--topic", "gender", "-o", table),
        shell("lab", "posterior", "fit", table, "--draws", "400", "-o", out, "--json"),
    ]
    assert_public(out, private, outputs[0], outputs[1], outputs[3])
    assert json.loads(outputs[0])["source"] == "my.vec"


@pytest.mark.slow
def test_fewshot(private, monkeypatch, capsys):
    shell = partial(call, monkeypatch, capsys)
    options = (
        "--data",
        private / "my.csv",
        "--encoder",
        private / "my-bert",
        "--ways",
        2,
        "--shots",
        2,
        "--queries",
        2,
        "--episodes",
        "8/4/8",
        "--leaning",
        "share",
        "--workers",
        1,
    )
    first = shell("lab", "fewshot", "run", *options, "--out", private / "a" / "run", "--json")
    shell("lab", "fewshot", "run", *options, "--out", private / "b" / "run")
    both = shell("lab", "fewshot", "bias", private / "a" / "run", private / "b" / "run", "--json")
    assert_public(private / "a", private, first, both)
    record = json.loads((private / "a" / "run" / "run.json").read_text())
    assert record["encoder"]["source"] == "my-bert"
    assert record["arguments"][:5] == ["lab", "fewshot", "run", "--data", "my.csv"]


def test_masked(private, monkeypatch, capsys):
    shell = partial(call, monkeypatch, capsys)
    model, out = private / "my-bert", private / "out"
    scored = shell(
        "measure",
        "pronouns",
        model,
        "--data",
        private / "masked.txt",
        "--json",
        "--items",
        private / "s.csv",
    )
    tuned = shell(
        "finetune",
        private / "text.txt",
        "--model",
        model,
        "--max-tokens",
        600,
        "--max-length",
        64,
        "--evaluations",
        1,
        "-o",
        out,
        "--sentences",
        private / "masked.txt",
    )
    assert tuned
    without = json.dumps(
        {name: value for name, value in json.loads(scored).items() if name != "output"}
    )
    assert_public(out, private, without)
    assert_public(private / "s.csv", private)
    record = json.loads((out / "run.json").read_text())
    assert set(record["inputs"]) == {"text.txt", "masked.txt"}


def test_generated_sentences(private, monkeypatch, capsys):
    (private / "seeds.txt").write_text(
        "Each nurse who forgets her keys calls the guard.\n"
        "Every judge raises his voice in the hall.\n"
    )
    out = private / "generated.jsonl"
    shell = partial(call, monkeypatch, capsys)
    shell("lab", "generate", private / "seeds.txt", "--max-edits", 1, "--tried", 12, "-o", out)
    assert_public(out, private)


def test_grid(private, monkeypatch, capsys):
    shell = partial(call, monkeypatch, capsys)
    (private / "b").mkdir()
    (private / "b" / "my.vec").write_bytes(
        (private / "my.vec").read_bytes().replace(b"word299", b"word300")
    )
    content = {
        "task": "vectors",
        "fixed": {"metrics": ["weat"], "topic": "gender", "permutations": 200},
        "axes": {"vectors": [str(private / "my.vec"), str(private / "b" / "my.vec")]},
    }
    (private / "grid.yaml").write_text(yaml.safe_dump(content))
    out = private / "grid"
    shown = shell(
        "lab", "grid", "run", private / "grid.yaml", "--out", out, "--workers", 1, "--json"
    )
    report = shell("lab", "grid", "report", out, "--json")
    assert shown
    assert_public(out, private, report)
    assert "b/my.vec" in report
