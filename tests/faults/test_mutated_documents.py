"""JSON in which one value is another: the right result, or one line and exit code 2."""

from __future__ import annotations

import copy
import json
import random
import shutil
from pathlib import Path

import pytest
from cli_shell import failure

from evenhand.cli import run

HUGE = "9" * 400
VALUES = [
    None,
    5,
    -1,
    1e308,
    HUGE,
    "x",
    "",
    [],
    {},
    [5],
    {"a": 1},
    True,
    [[]],
    "\ud800",
    ["x", None],
]
GONE = object()
TRIED = 60


def _paths(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value[:2])
    for key, child in inner:
        if isinstance(child, dict | list):
            yield from _paths(child, (*path, key))
        else:
            yield (*path, key)


def _mutated(document, path, value):
    changed = copy.deepcopy(document)
    place = changed
    for key in path[:-1]:
        place = place[key]
    if value is GONE:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return changed


def _mutations(document):
    cases = [(path, value) for path in _paths(document) if path for value in (*VALUES, GONE)]
    random.Random(1).shuffle(cases)  # noqa: S311
    for path, value in cases[:TRIED]:
        yield path, _mutated(document, path, value)


def _text(value, lines):
    rows = [json.dumps(row) for row in value] if lines else [json.dumps(value)]
    return "\n".join(rows).replace(f'"{HUGE}"', HUGE) + "\n"


GENDERS = ["f", "m"] * 4
INSPECT = {
    "version": 2,
    "eval": {"model": "m", "task": "t"},
    "samples": [
        {
            "id": i,
            "epoch": 1,
            "input": [{"role": "user", "content": "Describe the nurse."}],
            "metadata": {"gender": gender},
            "output": {"choices": [{"message": {"content": "She is kind."}}], "completion": ""},
            "scores": {"match": {"value": "CI"[i % 3 > 0]}},
        }
        for i, gender in enumerate(GENDERS)
    ],
}
HARNESS = [
    {
        "doc_id": i,
        "doc": {"gender": gender},
        "arguments": {"gen_args_0": {"arg_0": "Describe."}},
        "filtered_resps": ["She is kind."],
        "filter": "none",
        "acc": float(i % 3),
    }
    for i, gender in enumerate(GENDERS)
]
ANSWERS = [
    {"item": f"i{i // 2}", "gender": gender, "text": "She is kind.", "hired": "yn"[i % 3 > 0]}
    for i, gender in enumerate(GENDERS)
]
PREDICTIONS = [
    {"true": "ab"[i % 2], "pred": "ab"[i % 3 % 2], "gender": "fm"[i // 2 % 2]} for i in range(20)
]
LOG = "samples_t_2024-01-01T00-00-00.jsonl"
GROUP = ("--group", "gender")
CASES = {
    "inspect, answers": ("i.json", INSPECT, "answers measure i.json --metric refusals"),
    "inspect, scores": ("i.json", INSPECT, "scores i.json"),
    "harness, answers": (LOG, HARNESS, f"answers measure {LOG} --metric refusals"),
    "harness, scores": (LOG, HARNESS, f"scores {LOG}"),
    "answers": ("a.jsonl", ANSWERS, "answers measure a.jsonl --metric decisions --label hired"),
    "predictions": ("p.jsonl", PREDICTIONS, "classifier p.jsonl"),
}


def _try(capsys, words):
    code, shown = run(words), capsys.readouterr().err
    assert code in (0, 2, 3), shown
    assert "Traceback" not in shown
    assert code != 2 or (shown.startswith("error:") and shown.count("\n") == 1), shown
    return code


@pytest.mark.parametrize("case", CASES)
def test_logs_and_tables(tmp_path, monkeypatch, capsys, case):
    monkeypatch.chdir(tmp_path)
    name, document, command = CASES[case]
    words = [*command.split(), *(() if command.startswith("scores") else GROUP)]
    Path(name).write_text(_text(document, name.endswith("l")))
    assert _try(capsys, words) == 0
    codes = []
    for _, changed in _mutations(document):
        Path(name).write_text(_text(changed, name.endswith("l")))
        codes.append(_try(capsys, words))
    assert set(codes) == {0, 2}


@pytest.mark.parametrize(
    "command", ["compare r.json x.json", "gate p.toml x.json", "gate --init x.json"]
)
def test_results(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    words = ["measure", "glove", "--topic", "gender", "--metric", "weat", "-o", "r.json"]
    assert run(words) == 0
    capsys.readouterr()
    document = json.loads(Path("r.json").read_text())
    for m in document["measurements"]:
        m |= {key: value[:2] for key, value in m.items() if isinstance(value, list)}
    Path("p.toml").write_text('[[rules]]\nmetric = "weat"\nmin = -1.0\nmax = 1.0\n')
    codes = []
    for _, changed in _mutations(document):
        Path("x.json").write_text(_text(changed, False))
        codes.append(_try(capsys, command.split()))
    assert set(codes) & {0, 3}
    assert 2 in codes


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("verdicts", 0, "numbers", 0, "value"), ["x"]),
        (("verdicts", 0, "numbers", 0, "label"), ["x"]),
        (("verdicts", 0, "tests", 0, "draws"), -1),
        (("verdicts", 0, "tests", 0, "metric"), {"a": 1}),
        (("verdicts", 0, "tests", 0, "prob"), "x"),
        (("verdicts", 0, "verdict"), ""),
        (("stages", 0), [[]]),
        (("subjects", "predictions"), "x"),
    ],
    ids=str,
)
def test_the_folder_of_an_audit(audited, tmp_path, monkeypatch, capsys, place, value):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(audited, "out")
    document = json.loads(Path("out/results.json").read_text())
    Path("out/results.json").write_text(json.dumps(_mutated(document, place, value)))
    assert "results.json: " in failure(capsys, "report", "out")


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    folder = tmp_path_factory.mktemp("audited")
    rows = [f"{'xy'[i % 2]},{'xy'[i % 3 % 2]},{'mf'[i // 2 % 2]}\n" for i in range(60)]
    table = folder / "p.csv"
    table.write_text("true,pred,gender\n" + "".join(rows))
    words = ["audit", "--predictions", str(table), "--group", "gender", "-o", str(folder / "out")]
    assert run(words) == 0
    return folder / "out"
