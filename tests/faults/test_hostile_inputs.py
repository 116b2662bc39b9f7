"""Inputs and outputs of odd kinds: one line and exit 2, no traceback and no warning."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from cli_shell import failure, output

from evenhand.cli import run
from evenhand.errors import FileError, InputError
from evenhand.fewshot.networks import make
from evenhand.files import parse_json, read_document, replace_file
from evenhand.vectors.debias.subspace import project_out, transform_rows, unit_rows

pytestmark = pytest.mark.slow

NESTED = {
    "lists": "[" * 100_000,
    "objects": '{"a":' * 100_000,
    "complete": '{"schema": "evenhand/2", "a": ' + "[" * 50_000 + "]" * 50_000 + "}",
}


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.mark.parametrize("kind", NESTED)
@pytest.mark.parametrize(
    "arguments",
    [
        ("rewrite", "swap", "FILE", "--text", "text", "--input-format", "jsonl"),
        ("odds", "FILE", "--label", "label"),
        ("lab", "annotate", "sheet", "FILE", "-o", "sheet.csv"),
        ("rewrite", "undo", "in.txt", "FILE", "-o", "back"),
        ("measure", "pronouns", "mini", "--data", "FILE"),
        ("lab", "generate", "FILE"),
        ("lab", "fewshot", "run", "--data", "FILE", "-o", "run"),
        ("audit", "--data", "FILE", "-o", "audit"),
        ("measure", "glove", "--query", "FILE"),
        ("report", "FOLDER"),
        ("lab", "fewshot", "bias", "FOLDER"),
    ],
    ids=lambda arguments: " ".join(arguments[:2]),
)
def test_json_that_is_nested_deeply(capsys, kind, arguments):
    Path("in.txt").write_text("she reads.\n")
    Path("file.json").write_text(NESTED[kind] + "\n")
    Path("folder").mkdir()
    for name in ("run.json", "results.json"):
        Path("folder", name).write_text(NESTED[kind])
    names = {"FILE": "file.json", "FOLDER": "folder"}
    failure(capsys, *(names.get(word, word) for word in arguments))


def test_the_place_of_wrong_json_is_named():
    with pytest.raises(FileError, match=r"a.json, line 2: not valid JSON"):
        parse_json(b'{"a":\n x}', "a.json")
    with pytest.raises(FileError, match="nested too deeply"):
        parse_json(NESTED["lists"], "a.json")
    with pytest.raises(FileError, match="not valid JSON"):
        parse_json("1" * 10_000, "a.json")
    Path("a.json").write_bytes(b"\xff\xfe")
    with pytest.raises(FileError, match="not valid JSON"):
        read_document("a.json")


@pytest.mark.parametrize(
    "arguments",
    [
        ("rewrite", "swap", "in.txt", "-o", "LOOP"),
        ("rewrite", "swap", "in.txt", "-o", "out", "--edits", "LOOP"),
        ("rewrite", "swap", "LOOP", "-o", "out"),
        ("filter", "in.txt", "-o", "LOOP"),
        ("odds", "in.csv", "--label", "label", "--gender", "gender", "-o", "LOOP.csv"),
        ("lab", "vectors", "distances", "glove", "--topic", "gender", "-o", "LOOP.csv"),
        ("measure", "pronouns", "mini", "--data", "in.txt", "--items", "LOOP.csv"),
        ("measure", "professions", "mini", "-o", "LOOP"),
        ("lab", "fewshot", "run", "--data", "in.csv", "-o", "LOOP"),
        ("audit", "--vectors", "glove", "-o", "LOOP"),
        ("lab", "posterior", "fit", "in.csv", "-o", "LOOP"),
    ],
    ids=" ".join,
)
def test_links_that_form_a_loop(capsys, arguments):
    Path("in.txt").write_text("She lost [MASK] keys.\n")
    Path("in.csv").write_text("text,label,gender\na,b,F\nc,d,M\n")
    for name in ("loop", "loop.csv"):
        Path(name).symlink_to(f"{name}.other")
        Path(f"{name}.other").symlink_to(name)
    failure(capsys, *(word.replace("LOOP", "loop") for word in arguments))
    assert Path("loop").is_symlink()


def test_a_link_to_itself_is_not_written_to():
    Path("loop").symlink_to("loop")
    with pytest.raises(FileError, match="loop of symbolic links"), replace_file("loop"):
        pass


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("relation-base", {"hidden": 10**9}),
        ("relation-base", {"hidden": 10**30}),
        ("relation-base", {"hidden": -1}),
        ("relation-base", {"hidden": 2.5}),
        ("proto-cosine", {"projection": 10**9}),
        ("proto-cosine", {"projection": 1.5}),
        ("induction", {"slices": 100_000}),
        ("induction", {"iterations": 10**9}),
        ("maml", {"steps": 10**9}),
        ("maml", {"steps": 0}),
    ],
)
def test_absurd_options_of_a_network(name, options):
    from evenhand.fewshot.networks import NAMES

    name = next(known for known in NAMES if known.startswith(name))
    with pytest.raises(InputError, match=r"network|expected"):
        make(name, 256, projection=options.pop("projection", None), settings=options)


def test_absurd_options_of_a_run(capsys):
    calls = ("lab", "fewshot", "run", "--data", "simulated:per_class=20", "-o", "run")
    for option in ("projection=1000000000", "hidden=1e300", "scale=nan", "hidden", "=3"):
        failure(capsys, *calls, "--network", "relation-base", "--option", option)
    for name in ("--ways", "--shots", "--splits"):
        failure(capsys, *calls, name, str(10**12))
    for device in ("meta", "mps", "xla", "cuda:99", ""):
        assert "device" in failure(
            capsys, "measure", "pronouns", "mini", "--data", "-", "--device", device
        )


@pytest.mark.parametrize("scale", [1e-44, 1e-30, 1e18, 1e37, 3e38])
def test_lengths_that_overflow(scale):
    plain = np.random.default_rng(0).uniform(-1, 1, (50, 8)).astype(np.float32)
    rows = (plain * scale).astype(np.float32)
    axis = np.eye(8)[:1]
    turn = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 8)))[0]
    rough = 0.3 if scale < 1e-40 else 1e-5  # few digits are left of the smallest numbers
    np.testing.assert_allclose(unit_rows(rows), unit_rows(plain), atol=rough)
    expected = project_out(plain, axis).matrix
    np.testing.assert_allclose(project_out(rows, axis).matrix, expected, atol=rough)
    np.testing.assert_allclose(transform_rows(rows, turn), transform_rows(plain, turn), atol=rough)


def test_no_warning_of_vectors_that_overflow(capsys, glove):
    words = list(glove.words)[:4000]
    matrix = np.random.default_rng(0).uniform(-1, 1, (len(words), 6)) * 3e38
    lines = (
        " ".join([w, *map("{:.4g}".format, row)]) for w, row in zip(words, matrix, strict=True)
    )
    Path("large.vec").write_text("\n".join(lines) + "\n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        output(capsys, "info", "large.vec")
        output(capsys, "lab", "vectors", "analogies", "large.vec", "man", "king", "woman")
        for method in ("hard", "soft", "inlp", "leace"):
            calls = ("debias", "large.vec", "--method", method, "-o", "out.vec")
            assert run(calls) in (0, 2)
    assert "Warning" not in capsys.readouterr().err


def test_results_nested_in_each_other(capsys):
    part: dict[str, object] = {}
    for _ in range(300):
        part = {"parts": [part]}
    Path("results.json").write_text(json.dumps({"schema": "evenhand/2", **part}))
    failure(capsys, "report", ".")
