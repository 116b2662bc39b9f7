"""Text cells: a shard filtered, rewritten or counted is what the command makes of that file."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from by_lists import odds
from evenhand.errors import FileError, InputError
from evenhand.files import to_json
from evenhand.grid import Store, make_grid, run
from evenhand.grid.corpus import TASK, TextSettings
from evenhand.grid.task import Workspace
from evenhand.text.corpus.pipeline import RewriteWork, stream
from evenhand.text.rewrite.swap import Swap, build_substitution
from evenhand.text.structural import Filter

LINES = (
    "The baker forgot his apron at home.",
    "A plumber said that she would come at noon.",
    "Nobody was there.",
    "My aunt painted her fence while he slept.",
    "The pilot checked her map twice.",
    "Mr. Stone thanked the waitress.",
)


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    work = tmp_path / "work"
    work.mkdir()
    return Workspace(
        work=work,
        cache=tmp_path / "cache",
        device="cpu",
        threads=1,
        lock=nullcontext,
    )


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(3):
        turned = LINES[number:] + LINES[:number]
        (folder / f"part-{number}.txt").write_text("\n".join(turned) + "\n")
    return folder


def settings(**given: Any) -> TextSettings:
    chosen = TASK.settings(**given)
    TASK.check(chosen)
    return chosen


def key(chosen: TextSettings) -> str:
    return to_json(TASK.identity(chosen))


def pooled(results: list[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = TASK.pool(results)  # type: ignore[attr-defined]
    return found


@pytest.mark.parametrize("ending", ["txt", "txt.gz", "txt.zst"])
def test_the_same_bytes_as_the_command_and_again(tmp_path, corpus, workspace, ending):
    shard = corpus / f"part-0.{ending}"
    if ending != "txt":
        stream([corpus / "part-0.txt"], shard, RewriteWork(Swap(probability=0)))
    chosen = settings(operation="substitute", shard=str(shard), out=str(tmp_path / "out"), seed=3)
    result = TASK.compute(chosen, workspace)
    expected = tmp_path / f"by-command.{ending}"
    counts = stream([shard], expected, RewriteWork(build_substitution(seed=3)))
    written = (tmp_path / "out" / shard.name).read_bytes()
    assert written == expected.read_bytes()
    assert result["changed"] == counts["changed"] > 0
    assert result["records"] == 6
    assert result["outputs"][0]["bytes"] == len(written)
    assert not list(workspace.work.iterdir())
    assert TASK.compute(chosen, workspace) == result
    assert (tmp_path / "out" / shard.name).read_bytes() == written


@pytest.mark.parametrize("ending", ["gz", "zst"])
def test_a_cell_resumed_ends_with_the_same_bytes(tmp_path, workspace, ending):
    text, shard = tmp_path / "long.txt", tmp_path / f"long.txt.{ending}"
    text.write_text("\n".join(LINES * 10_000) + "\n")  # more than one block
    stream([text], shard, RewriteWork(Swap(probability=0)))
    chosen = settings(operation="substitute", shard=str(shard), out=str(tmp_path / "a"))
    whole = TASK.compute(chosen, workspace)

    class Killed(BaseException):
        pass

    def killed(*_: object) -> None:
        raise Killed

    chosen = chosen.model_copy(update={"out": str(tmp_path / "b")})
    with pytest.raises(Killed):
        TASK.compute(chosen, replace(workspace, progress=killed))
    assert not (tmp_path / "b").exists()
    assert TASK.compute(chosen, workspace) == whole
    assert (tmp_path / "a" / shard.name).read_bytes() == (tmp_path / "b" / shard.name).read_bytes()


def test_neither_the_folders_nor_the_other_shards_change_what_is_written(
    tmp_path, corpus, workspace
):
    moved = tmp_path / "elsewhere" / "deep"
    moved.mkdir(parents=True)
    shutil.copy(corpus / "part-1.txt", moved)
    found = []
    for shard, out in ((corpus / "part-1.txt", "a"), (moved / "part-1.txt", "b")):
        for rest in (
            {"operation": "filter", "rejected": True},
            {"operation": "substitute", "names": "random", "edits": True, "seed": 5},
        ):
            chosen = settings(shard=str(shard), out=str(tmp_path / out), **rest)
            found.append((key(chosen), TASK.compute(chosen, workspace)))
    assert found[:2] == found[2:]
    names = ["part-1.txt", "part-1.txt.edits.jsonl", "part-1.txt.rejected.jsonl"]
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == names
    for name in names:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_filter_counts_and_writes_what_the_filter_keeps(tmp_path, corpus, workspace):
    chosen = settings(
        operation="filter",
        shard=str(corpus / "part-0.txt"),
        out=str(tmp_path / "out"),
        rejected=True,
    )
    result = TASK.compute(chosen, workspace)
    kept = [one for one in map(Filter().sentence, LINES) if hasattr(one, "masked")]
    lines = (tmp_path / "out" / "part-0.txt").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["masked"] for row in rows] == [one.masked for one in kept]
    assert {row["source"] for row in rows} == {"part-0.txt"}
    assert 0 < result["accepted"] == len(kept)
    assert result["records"] == 6 == result["accepted"] + sum(result["reasons"].values())
    rejected = (tmp_path / "out" / "part-0.txt.rejected.jsonl").read_text().splitlines()
    assert len(rejected) == 6 - len(kept)
    row = TASK.row(result)
    assert row["accepted"] == len(kept)
    share = row["share accepted"]
    assert share["low"] < share["value"] < share["high"]


@pytest.mark.parametrize("operation", ["swap", "neutralize", "anonymize"])
def test_rewriting_a_field_leaves_the_rest_of_the_record(tmp_path, workspace, operation):
    shard = tmp_path / "people.csv"
    shard.write_text('id,bio\n1,"He met Marie Curie."\n2,They hum.\n')
    chosen = settings(operation=operation, shard=str(shard), text="bio", out=str(tmp_path / "out"))
    result = TASK.compute(chosen, workspace)
    assert result["changed"] == 1
    message = (tmp_path / "out" / "people.csv").read_text().splitlines()
    after = {
        "swap": "She met Marie Curie.",
        "neutralize": "They met Marie Curie.",
        "anonymize": "He met E1 E2.",
    }[operation]
    assert message[0] == "id,bio"
    assert after in message[1]
    assert message[2] == "2,They hum."


def test_what_is_gone_or_changed_is_not_whole(tmp_path, corpus, workspace):
    chosen = settings(operation="swap", shard=str(corpus / "part-0.txt"), out=str(tmp_path / "out"))
    result = TASK.compute(chosen, workspace)
    whole = TASK.intact  # type: ignore[attr-defined]
    target = tmp_path / "out" / "part-0.txt"
    assert whole(chosen, result)
    content = target.read_bytes()
    stat = target.stat()
    target.write_bytes(content.replace(b"she", b"shy"))
    os.utime(target, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert target.stat().st_size == len(content)
    assert not whole(chosen, result)
    target.write_bytes(content)
    assert whole(chosen, result)
    target.unlink()
    assert not whole(chosen, result)


def test_identity_is_content_name_and_the_options_that_count(tmp_path, corpus):
    shard = corpus / "part-0.txt"
    first = settings(operation="swap", shard=str(shard), out=str(tmp_path / "a"))
    assert str(tmp_path) not in key(first)
    same = [
        {"out": str(tmp_path / "b")},
        {"names": "off", "rewrite_share": 1.0, "input_format": "lines"},
        {"nouns": "all", "resolver": "rules", "prob": 0.5},
    ]
    for rest in same:
        assert key(
            settings(**{"out": "x", **first.model_dump(include={"operation", "shard"}), **rest})
        ) == key(first)
    for rest in ({"seed": 1}, {"direction": "male-to-female"}, {"operation": "substitute"}):
        given = {"operation": "swap", "shard": str(shard), "out": "x", **rest}
        assert key(settings(**given)) != key(first)
    pairs = tmp_path / "own.csv"
    keys = set()
    for text in ("female,male\nhen,rooster\n", "female,male\nqueen,king\n"):
        pairs.write_text(text)
        keys.add(key(settings(operation="swap", shard=str(shard), out="x", pairs=str(pairs))))
    assert len(keys) == 2
    before = key(first)
    shard.write_text(shard.read_text() + "He hums.\n")
    assert key(first) != before
    assert key(TASK.settings(**json.loads(first.model_dump_json()))) == key(first)


def test_pairs_of_ones_own_are_used(tmp_path, workspace):
    shard, pairs = tmp_path / "a.txt", tmp_path / "own.csv"
    shard.write_text("The hen and her chick.\n")
    pairs.write_text("female,male\nhen,rooster\n")
    chosen = settings(operation="swap", shard=str(shard), out=str(tmp_path / "o"), pairs=str(pairs))
    TASK.compute(chosen, workspace)
    assert (tmp_path / "o" / "a.txt").read_text() == "The rooster and her chick.\n"


def expand(fixed: dict[str, Any], **axes: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    found: tuple[dict[str, Any], dict[str, Any]] = TASK.expand(fixed, axes)  # type: ignore[attr-defined]
    return found


def test_shards_become_an_axis_of_sorted_files(corpus):
    fixed = {"operation": "swap", "shards": f"{corpus}/*.txt", "out": "o"}
    rest, axes = expand(fixed)
    assert rest == {"operation": "swap", "out": "o"}
    assert axes == {"shard": [str(corpus / f"part-{i}.txt") for i in range(3)]}


@pytest.mark.parametrize(
    ("fixed", "axes", "message"),
    [
        ({"shards": "{corpus}/*.json"}, {}, "expected files that match"),
        ({"shards": "{corpus}/*", "shard": "a"}, {}, "either shard or shards"),
        ({}, {"shards": ["{corpus}/*"]}, "in fixed"),
        ({}, {"shard": ["a/part.txt", "b/part.txt"]}, "different names"),
        ({}, {"seed": [1, 2]}, "put {seed} into"),
        ({"nouns": "all"}, {}, "nouns: goes with operation neutralize, not with swap"),
        ({"out": "o/{sead}"}, {}, "'{sead}'"),
    ],
)
def test_what_cannot_be_meant_is_refused(corpus, fixed, axes, message):
    def filled(value: Any) -> Any:
        return value.replace("{corpus}", str(corpus)) if isinstance(value, str) else value

    given = {"operation": "swap", "out": "o"} | {k: filled(v) for k, v in fixed.items()}
    with pytest.raises(InputError, match=message.replace("{", r"\{")):
        expand(given, **axes)


def test_axes_in_the_name_of_the_folder_keep_files_apart(corpus):
    expand({"operation": "swap", "out": "o/{seed}"}, seed=[1, 2])
    expand({"out": "o/{operation}", "nouns": "all"}, operation=["swap", "neutralize", "odds"])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"out": ""}, "out: expected a folder"),
        ({"out": "{corpus}"}, "where the shards are"),
        ({"shard": "{corpus}/none.txt"}, "shard: expected a file"),
        ({"text": "bio"}, "input_format: expected one beside text"),
        ({"input_format": "csv"}, "text: expected"),
        ({"tagger": "moon"}, "unknown judge"),
        ({"operation": "odd"}, "unknown operation 'odd': did you mean 'odds'"),
    ],
)
def test_check_tells_what_is_wrong_before_any_work(corpus, given, message):
    usual = {"operation": "swap", "shard": "{corpus}/part-0.txt", "out": "o"} | given
    filled = {name: value.replace("{corpus}", str(corpus)) for name, value in usual.items()}
    with pytest.raises(InputError, match=message):
        settings(**filled)


ROWS = [
    ("nurse", "F"),
    ("nurse", "F"),
    ("nurse", "M"),
    ("pilot", "M"),
    ("pilot", "M"),
    ("pilot", "F"),
    ("clerk", "M"),
    ("clerk", "x"),
    ("", "F"),
    ("judge", ""),
    ("clerk", "F"),
]


@pytest.mark.parametrize("how", ["column", "pronouns", "both"])
def test_pooled_odds_are_those_of_the_joined_file(tmp_path, workspace, how):
    said = {"F": "She left early.", "M": "His car is red.", "x": "They hum.", "": ""}
    rows = [f"{job},{sex},{said[sex if i % 5 else 'M']}" for i, (job, sex) in enumerate(ROWS)]
    header = "job,sex,bio"
    cuts = [rows[:3], rows[3:5], rows[5:]]  # the second has men only, and one class
    results = []
    columns = {
        "column": {"gender": "sex"},
        "pronouns": {"text": "bio"},
        "both": {"gender": "sex", "text": "bio"},
    }[how]
    for number, part in enumerate(cuts):
        shard = tmp_path / f"part-{number}.csv"
        shard.write_text("\n".join([header, *part]) + "\n")
        chosen = settings(operation="odds", shard=str(shard), label="job", prob=0.9, **columns)
        results.append(json.loads(to_json(TASK.compute(chosen, workspace))))
    whole = tmp_path / "whole.csv"
    whole.write_text("\n".join([header, *rows]) + "\n")
    expected = json.loads(to_json(odds(whole, "job", prob=0.9, **columns).to_dict(items=False)))
    result = pooled(results)
    (found,) = result["measurements"]
    row = TASK.row(result)
    assert row["odds job: class nurse"]["value"] == found["parts"][2]["value"] < 1
    assert (result["operation"], result["shards"]) == ("odds", 3)
    assert found.pop("subject") == "3 shards"
    expected.pop("subject")
    assert found == expected
    assert TASK.row(results[1]) == {"read": 2, "male": 2, "female": 0, "left_out": 0, "classes": 1}


def test_pooled_refuses_what_does_not_belong_together(tmp_path, workspace):
    shard = tmp_path / "a.csv"
    shard.write_text("job,sex\nnurse,F\npilot,M\n")
    one, two = (
        TASK.compute(settings(operation="odds", shard=str(shard), label="job", prob=p), workspace)
        for p in (0.9, 0.95)
    )
    with pytest.raises(InputError, match="same prob"):
        pooled([one, two])
    with pytest.raises(InputError, match="one operation"):
        pooled([one, {"operation": "swap"}])


def test_other_codes_for_the_genders(tmp_path, workspace):
    shard = tmp_path / "a.csv"
    shard.write_text("job,sex\nnurse,1\npilot,0\n")
    chosen = settings(
        operation="odds", shard=str(shard), label="job", gender="sex", male=0, female=(1, 2)
    )
    again = TASK.settings(**json.loads(chosen.model_dump_json()))
    assert TASK.compute(again, workspace)["tally"]["male"] == {"pilot": 1}
    assert key(again) == key(chosen)


def test_a_bad_record_is_named_and_nothing_is_written(tmp_path, workspace):
    shard = tmp_path / "a.jsonl"
    shard.write_text('{"bio": "He hums."}\n{"bio": 3\n')
    chosen = settings(operation="swap", shard=str(shard), text="bio", out=str(tmp_path / "out"))
    with pytest.raises(FileError, match=r"a\.jsonl, line 2"):
        TASK.compute(chosen, workspace)
    assert not (tmp_path / "out").exists()


def test_a_grid_of_shards_is_the_whole_corpus_rewritten(tmp_path, corpus):
    (corpus / "part-3.txt.gz").write_bytes(gzip.compress("\n".join(LINES).encode(), mtime=0))
    grid = make_grid(
        {
            "task": "text",
            "fixed": {"operation": "swap", "shards": f"{corpus}/*", "out": str(tmp_path / "out")},
        }
    )
    run(grid, tmp_path / "grid", on="local", workers=1)
    results = [result for _, result in Store(tmp_path / "grid").results()]
    assert len(results) == 4
    total = pooled(results)
    assert (total["records"], total["shards"]) == (24, 4)
    joined = tmp_path / "joined.txt"
    joined.write_text("\n".join(LINES) + "\n")
    counts = stream([joined], tmp_path / "swapped.txt", RewriteWork(Swap()))
    assert total["edits"] == 4 * counts["edits"]
    (tmp_path / "out" / "part-1.txt").write_text("torn")
    run(grid, tmp_path / "grid", on="local", workers=1)
    assert [result for _, result in Store(tmp_path / "grid").results()] == results
    assert "torn" not in (tmp_path / "out" / "part-1.txt").read_text()
