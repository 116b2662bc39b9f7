from __future__ import annotations

from pathlib import Path

import pytest

from evenhand.errors import FileError, InputError
from evenhand.grid import make_grid, read_grid

GOOD = """\
task: own_tasks:TASK
fixed: {power: 3}
axes:
  number: [1, 2, 3]
  seed: [0, 1]
skip:
  - {number: 3, seed: 1}
"""


@pytest.fixture(autouse=True)
def _importable(squares):
    """Tasks of the tests can be named."""


def write(folder: Path, text: str) -> Path:
    path = folder / "grid.yaml"
    path.write_text(text)
    return path


def test_a_cell_for_each_combination_but_those_skipped(tmp_path):
    grid = read_grid(write(tmp_path, GOOD))
    combinations = [(cell.axes["number"], cell.axes["seed"]) for cell in grid.cells]
    assert combinations == [(1, 0), (1, 1), (2, 0), (2, 1), (3, 0)]
    assert all(cell.settings["power"] == 3 for cell in grid.cells)
    assert len({cell.key for cell in grid.cells}) == 5


def test_the_key_depends_on_what_determines_the_result_alone():
    def keys(**fixed):
        made = make_grid({"task": "own_tasks:TASK", "fixed": fixed, "axes": {"number": [1, 2]}})
        return [cell.key for cell in made.cells]

    assert keys() == keys(power=2) == keys(seconds=0.5)
    assert not set(keys()) & set(keys(power=3))


def test_the_key_follows_the_content_of_a_file(tmp_path):
    path = tmp_path / "a.txt"

    def key():
        fixed = {"file": str(path), "number": 1}
        return make_grid({"task": "own_tasks:TASK", "fixed": fixed}).cells[0].key

    path.write_text("one")
    first = key()
    path.write_text("two")
    assert key() != first
    path.write_text("one")
    assert key() == first


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("axes:", "axs:", 3, "unknown key 'axs': did you mean 'axes'?"),
        ("  seed:", "  sead:", 5, "unknown setting of squares 'sead': did you mean 'seed'?"),
        ("power: 3", "pwer: 3", 2, "unknown setting of squares 'pwer': did you mean 'power'?"),
        ("power: 3", "power: high", 2, "power: expected a valid integer"),
        ("[1, 2, 3]", "[1, two, 3]", 4, "number: expected a valid integer"),
        ("[1, 2, 3]", "[1, -2, 3]", 4, "number: expected 0 or more, got -2"),
        ("[1, 2, 3]", "3", 4, "expected|a single value belongs in fixed"),
        ("[1, 2, 3]", "[]", 4, "number: expected one value or more, got none"),
        ("[1, 2, 3]", "[1, 2, 1]", 4, "number: expected each value once, got 1 twice"),
        ("power: 3", "seed: 3", 5, "expected 'seed' in fixed or in axes, got it in both"),
        ("  seed: [0", "  number: [0", 5, "expected 'number' once, got it twice"),
        ("[0, 1]", "[0, 1", 6, "not valid YAML"),
        ("own_tasks:TASK", "fewshots", 1, "unknown task 'fewshots': did you mean 'fewshot'?"),
        ("own_tasks:TASK", "own_task:TASK", 1, "package.module:ATTRIBUTE"),
        ("{number: 3, seed: 1}", "{numbr: 3}", 7, "did you mean 'number'?"),
    ],
)
def test_errors_name_the_line_and_the_nearest_name(tmp_path, old, new, line, words):
    assert old in GOOD
    path = write(tmp_path, GOOD.replace(old, new))
    with pytest.raises(FileError) as caught:
        read_grid(path)
    message = str(caught.value)
    assert message.startswith(f"{path}, line {line}: "), message
    assert all(word in message for word in words.split("|")), message
    assert "\n" not in message


def test_numbers_with_an_exponent_are_numbers(tmp_path):
    grid = read_grid(write(tmp_path, GOOD.replace("{power: 3}", "{spin: 1e-9, seconds: -5E-1}")))
    assert grid.cells[0].settings["spin"] == 1e-9
    assert grid.cells[0].settings["seconds"] == -0.5


def test_options_of_instruments_are_keys_and_errors_name_their_line(tmp_path):
    text = "task: masked\nfixed:\n  measure: score\n  top_k: {value}\n"
    (cell,) = read_grid(write(tmp_path, text.format(value=3))).cells
    assert cell.settings["top_k"] == 3
    with pytest.raises(FileError, match=r"line 4: top_k: expected 1 or more, got 0"):
        read_grid(write(tmp_path, text.format(value=0)))
    with pytest.raises(FileError, match=r"line 4: unknown setting of masked 'topk'.*'top_k'"):
        read_grid(write(tmp_path, text.format(value=3).replace("top_k", "topk")))
    with pytest.raises(FileError, match=r"method: goes with measure crows, not with score"):
        read_grid(write(tmp_path, text.format(value=3) + "  method: shared\n"))


def test_null_as_a_key_is_a_name(tmp_path):
    text = GOOD.replace("own_tasks:TASK", "vectors").replace("{power: 3}", "{null: 0}")
    text = text.partition("axes:")[0] + "axes: {seed: [0, 1]}\n"
    assert {cell.settings["null"] for cell in read_grid(write(tmp_path, text)).cells} == {0}


def test_other_wrong_files(tmp_path):
    with pytest.raises(FileError, match="expected a mapping with task, fixed and axes, got list"):
        read_grid(write(tmp_path, "- 1"))
    with pytest.raises(FileError, match="expected 'task', it is not there"):
        read_grid(write(tmp_path, "axes: {number: [1]}"))
    with pytest.raises(FileError, match="expected some cells to be left"):
        read_grid(write(tmp_path, GOOD + "  - {power: 3}\n"))
    (tmp_path / "grid.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(FileError, match="expected UTF-8 text"):
        read_grid(tmp_path / "grid.yaml")


def test_settings_that_come_to_the_same_are_refused():
    asked = {"task": "own_tasks:TASK", "fixed": {"number": 1}, "axes": {"seconds": [0, 1]}}
    with pytest.raises(InputError, match="expected cells that differ"):
        make_grid(asked)


LAUGHS = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join([f'*{old}'] * 9)}]\n"
    for old, new in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (LAUGHS, "expected at most 200,000 values, aliases written out"),
        ("task: vectors\nfixed: &a {topic: *a}\n", "line 2: a value that contains itself"),
        ("task: vectors\naxes: {seed: &a [1, *a]}\n", "line 2: a value that contains itself"),
        (
            "task: vectors\nfixed: {topic: " + "[" * 50 + "]" * 50 + "}",
            "expected at most 20 levels",
        ),
        ("task: " + "[" * 20_000, "expected at most 20 levels"),
        ("task: " + "{a: " * 20_000, "expected at most 20 levels"),
        ("task: vectors\nfixed: {seed: " + "9" * 5000 + "}", "a value that cannot be read"),
        ("task: vectors\nfixed: {topic: !!timestamp 2001-99-99}", "not valid YAML|cannot be read"),
        (
            "task: vectors\nfixed: {topic: !!timestamp 2001-01-02}",
            "line 2: expected a text, a number",
        ),
        ("task: vectors\nfixed: {topic: !!binary aGk=}", "line 2: expected a text, a number"),
        ("task: vectors\nfixed: {topic: !!set {a, b}}", "line 2: expected a text, a number"),
        ("task: vectors\nfixed: {prob: .nan}", "line 2: expected a finite number, got nan"),
        ("task: vectors\nfixed: {1: a}", "line 2: expected names as keys, got 1"),
        (
            "task: vectors\naxes:\n  seed: ["
            + ",".join(map(str, range(2000)))
            + "]\n  limit: ["
            + ",".join(map(str, range(1, 2001)))
            + "]\n",
            "at most 100,000 combinations (max_cells= allows",
        ),
        ("task: !!python/object/apply:os.system [id]", "not valid YAML"),
    ],
)
def test_hostile_files_are_one_line(tmp_path, content, words):
    with pytest.raises(FileError) as caught:
        read_grid(write(tmp_path, content))
    message = str(caught.value)
    assert any(word in message for word in words.split("|")), message
    assert "\n" not in message
    assert len(message) < 500


def test_a_date_is_a_text(tmp_path):
    text = "task: vectors\nfixed: {topic: 2001-01-02}\n"
    with pytest.raises(FileError, match="2001-01-02"):
        read_grid(write(tmp_path, text))


def test_an_alias_is_as_good_as_its_value(tmp_path):
    text = GOOD.replace("number: [1, 2, 3]", "number: &n [1, 2]").replace("[0, 1]", "*n")
    assert len(read_grid(write(tmp_path, text)).cells) == 4


def test_more_cells_on_request():
    many = {"task": "own_tasks:TASK", "axes": {"number": list(range(40)), "seed": [0, 1]}}
    with pytest.raises(InputError, match=r"at most 60 combinations .*, got 40 × 2"):
        make_grid(many, max_cells=60)
    assert len(make_grid(many, max_cells=80).cells) == 80


@pytest.mark.parametrize(
    "task",
    [
        "os:system",
        "subprocess:Popen",
        "sys:exit",
        "builtins:print",
        "os:path",
        ":x",
        "..:x",
        "own_tasks:",
        "os:nothing",
        "json:loads:x",
        "this_is_no_module:x",
        "a b:c",
    ],
)
def test_what_is_no_task_is_never_called(tmp_path, task, monkeypatch):
    def called(*_, **__):
        raise AssertionError("it was called")

    monkeypatch.setattr("os.system", called)
    with pytest.raises(FileError, match=r"line 1: task: expected ") as caught:
        read_grid(write(tmp_path, f"task: '{task}'\nfixed: {{command: id}}\n"))
    assert "\n" not in str(caught.value)


def test_a_module_that_fails_when_it_is_imported_is_one_line(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    for name, code in (("broken", "1 +"), ("leaving", "raise SystemExit(3)"), ("zero", "1 / 0")):
        (tmp_path / f"{name}_task.py").write_text(code)
        with pytest.raises(InputError, match="that can be imported"):
            make_grid({"task": f"{name}_task:TASK"})
