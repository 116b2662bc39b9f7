"""Malformed model folders: exit 2 and one line, or a result; never a traceback, never a hang."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import malformed_models
import pytest
from cli_shell import failure

CASES = list(malformed_models.cases())
UNUSED = [f"bert config {name} null" for name in ("is_decoder", "add_cross_attention")]
"""Settings of training, and of kinds of models that none is not."""
HARMLESS = [
    "architectures",
    "dtype",
    "torch_dtype",
    "chunk_size_feed_forward",
    "position_embedding_type",
    "id2label",
    "output_attentions",
    "return_dict",
    "attention_probs_dropout_prob",
    "hidden_dropout_prob",
    "initializer_range",
    "pad_token_id",
    "quantization_config",
]
"""Settings that the answer does not depend on, or that have a default."""

pytestmark = pytest.mark.slow


def check(case: str, code: int, err: str) -> None:
    assert code in (0, 2), f"{case}: {code} {err}"
    if code == 2:
        assert err.startswith("error: "), f"{case}: {err}"
        assert err.count("\n") == 1, f"{case}: {err}"
        assert len(err) < 1000, f"{case}: {err}"
        assert "Traceback" not in err
    else:
        assert err == "", f"{case}: {err}"


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models")
    return folder, malformed_models.prepare(folder)


@pytest.mark.parametrize(("family", "name", "change"), CASES[::9], ids=[c[1] for c in CASES[::9]])
def test_some(models, family, name, change):
    folder, sound = models
    check(name, *malformed_models.run_case(folder, sound[family], change))


REFUSED = (
    "config num_hidden_layers huge",
    "config num_hidden_layers negative",
    "config hidden_size huge",
    "config vocab_size huge",
    "config intermediate_size enormous",
    "config layer_norm_eps nan",
    "config.json nested",
    "tokenizer.json nested",
    "tokenizer_config.json nested",
    "vocabulary id above",
    "template id above",
    "weights half",
    "weights int8",
    "weights nan",
    "weights overflow",
    "header shape huge",
    "pickle text",
    "a loop of links as config.json",
)


@pytest.mark.parametrize("wanted", REFUSED)
def test_what_must_be_refused(models, wanted):
    folder, sound = models
    family, name, change = next(case for case in CASES if case[1] == wanted)
    code, err = malformed_models.run_case(folder, sound[family], change)
    check(name, code, err)
    assert code == 2


def test_there_are_many_cases():
    assert len(CASES) > 400
    assert len({(family, name) for family, name, _ in CASES}) == len(CASES)


def test_all(tmp_path):
    script = Path(malformed_models.__file__)
    paths = [*sys.path, str(script.parent), str(script.parents[1] / "models")]
    done = subprocess.run(
        [sys.executable, str(script), str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=1800,  # a hang is a failure
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
        check=True,
    )
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{"case')]
    assert len(rows) == len(CASES)
    for row in rows:
        check(row["case"], row["code"], row["stderr"])
    accepted = [row["case"] for row in rows if row["code"] == 0 and " config " in row["case"]]
    wrong = [
        case
        for case in accepted
        if case.split()[2] not in (*HARMLESS, "sinusoidal_pos_embds") and case not in UNUSED
    ]
    assert not wrong


@pytest.mark.parametrize(
    "content",
    [
        "text,label\nShe reads.,cook\n",
        "text,label\n" + "She reads a long book about many people.,cook\n" * 5000,
        f"{'a' * 100_000}\nnurse\n",
    ],
)
def test_a_wrong_file_of_professions_is_refused_at_once(capsys, tmp_path, content):
    path = tmp_path / "jobs.csv"
    path.write_text(content)
    assert "jobs.csv, line 1: " in failure(
        capsys, "measure", "professions", "mini", "--professions", str(path)
    )
