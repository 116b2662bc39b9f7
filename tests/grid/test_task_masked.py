"""Masked cells: the numbers of the commands, the same again, and shards that pool to the whole."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from evenhand.errors import FileError, InputError
from evenhand.grid.task import Workspace
from evenhand.grid.task_masked import TASK, MaskedSettings
from evenhand.lexicon.pronoun_sentences import pronoun_sentences
from evenhand.masked.metrics.pronouns import pronouns, pronouns_of_file
from evenhand.masked.model import Model, load
from evenhand.results import to_json

TEXTS = [*pronoun_sentences().sentences[:40], "[MASK] " + "waves and " * 400 + "leaves."]


@pytest.fixture(scope="session")
def mini() -> Model:
    return load("mini", device="cpu")


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    return place_in(tmp_path / "work")


def place_in(work: Path) -> Workspace:
    work.mkdir(parents=True, exist_ok=True)
    return Workspace(work=work, cache=work, device="cpu", threads=1, lock=nullcontext)


def settings(**given: Any) -> MaskedSettings:
    made = MaskedSettings(**given)
    TASK.check(made)
    return made


def key(made: MaskedSettings) -> str:
    return to_json(TASK.identity(made))


def plain(value: Any) -> Any:
    return json.loads(to_json(value))


def written(path: Path, texts: Sequence[str]) -> str:
    rows = [{"masked": text, "pronoun": ("her", "she", "")[i % 3]} for i, text in enumerate(texts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def pooled(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = TASK.pool(results)  # type: ignore[attr-defined]
    return found


def test_embedded_sentences_score_as_the_function_says_and_again(mini, place, tmp_path):
    made = settings(prob=0.9, seed=4)
    result = TASK.compute(made, place)
    m = pronouns(mini, pronoun_sentences().sentences, prob=0.9, seed=4)
    expected = plain(m.to_dict(items=False))
    assert {name: result[name] for name in expected} == expected
    assert to_json(TASK.compute(made, place_in(tmp_path / "afresh"))) == to_json(result)
    assert to_json(TASK.compute(made, place)) == to_json(result)  # from the answers kept there
    row = TASK.row(result)
    assert row["sentences"] == 120
    assert row["score"]["low"] < row["score"]["value"] < row["score"]["high"]
    assert row["score"]["value"] == m.part("all sentences").value


def test_a_cell_taken_up_again_ends_with_the_same_bytes(place, tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand.masked.gender_words.STEP", 16)
    whole = TASK.compute(settings(), place_in(tmp_path / "undisturbed"))

    class Killed(BaseException):
        pass

    def killed(_: str, done: int, total: int, __: str) -> None:
        if done > total / 2:
            raise Killed

    with pytest.raises(Killed):
        TASK.compute(settings(), replace(place, progress=killed))
    steps: list[int] = []
    told = replace(place, progress=lambda _, done, *__: steps.append(done))
    assert to_json(TASK.compute(settings(), told)) == to_json(whole)
    assert steps[0] > 60  # what was asked before is not asked again


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    """Three shards and an empty one; some sentences are in two, one is too long for the model."""
    parts = [[*TEXTS[:15], TEXTS[40]], [*TEXTS[10:30], TEXTS[3], TEXTS[40], TEXTS[12]], TEXTS[30:]]
    made = [written(tmp_path / f"part-{i}.jsonl", part) for i, part in enumerate(parts)]
    (tmp_path / "part-9.jsonl").write_text("\n\n")
    return [*made, str(tmp_path / "part-9.jsonl")]


def close(found: Any, expected: Any) -> None:
    """The same to rounding: a model's last bits hang on the batch."""
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for name, value in expected.items():
            close(found[name], value)
    elif isinstance(expected, list):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            close(one, other)
    elif isinstance(expected, float):
        assert found == pytest.approx(expected, rel=1e-5, abs=1e-6)
    else:
        assert found == expected


def test_pooled_shards_are_one_run_over_the_joined_sentences(mini, place, shards, tmp_path):
    results = [TASK.compute(settings(shard=shard, seed=1), place) for shard in shards]
    joined = tmp_path / "joined.jsonl"
    joined.write_text("".join(Path(shard).read_text() for shard in shards))
    made = settings(data=str(joined), seed=1)
    whole = TASK.compute(made, place)
    (by_file,) = pronouns_of_file([mini], joined)
    assert len(by_file.items) == whole["details"]["sentences"] == 40
    found = pooled([plain(result) for result in results])
    assert found.pop("shards") == 4
    [left_out] = found["details"].pop("left_out")
    assert (left_out["shard"], left_out["line"]) == ("part-0.jsonl", 16)
    assert len(whole["details"].pop("left_out")) == 1
    assert whole["details"]["duplicates"] == 9
    del whole["items"], whole["left_out"], found["left_out"]
    close(plain(found), plain(whole))
    assert TASK.row(found)["score"]["value"] == pytest.approx(TASK.row(whole)["score"]["value"])
    assert results[3]["details"]["sentences"] == 0


def test_pooling_is_of_one_model_and_one_rule(place, shards):
    one = TASK.compute(settings(shard=shards[0]), place)
    two = TASK.compute(settings(shard=shards[1], delta=0.1), place)
    with pytest.raises(InputError, match="one rule"):
        pooled([one, two])
    with pytest.raises(InputError, match="one model"):
        pooled([one, one | {"subject": "other"}])
    with pytest.raises(InputError, match="measure score"):
        pooled([one, {"measure": "crows"}])


@pytest.mark.parametrize("rows", ["jsonl", "csv", "parquet"])
def test_rows_are_written_as_by_the_command_and_watched(mini, place, shards, tmp_path, rows):
    made = settings(shard=shards[1], out=str(tmp_path / "out" / "{model}"), rows=rows)
    result = TASK.compute(made, place)
    target = tmp_path / "out" / "mini" / f"part-1.{rows}"
    expected = tmp_path / f"expected.{rows}"
    pronouns_of_file([mini], shards[1], output=expected)
    assert target.read_bytes() == expected.read_bytes()
    whole = TASK.intact  # type: ignore[attr-defined]
    assert whole(made, result)
    content = target.read_bytes()
    target.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert not whole(made, result)
    assert to_json(TASK.compute(made, place)) == to_json(result)
    assert whole(made, result)


def test_plain_text_is_filtered_first(place, tmp_path):
    text = tmp_path / "plain.txt"
    text.write_text("The pilot checked her map twice.\nNobody was there.\n")
    result = TASK.compute(settings(data=str(text), filter=True), place)
    assert (result["details"]["sentences"], result["details"]["filtered"]) == (1, 1)
    text.write_text("Nobody was there.\n")
    with pytest.raises(FileError, match="expected sentences to score"):
        TASK.compute(settings(data=str(text), filter=True), place)
    result = TASK.compute(settings(shard=str(text), filter=True), place)
    assert result["details"]["sentences"] == 0


def test_associate_phrases_and_crows_are_those_of_the_commands(mini, place, tmp_path):
    from evenhand.lexicon.phrases import read_phrases
    from evenhand.lexicon.professions import PersonPair, Profession
    from evenhand.masked.designs import design
    from evenhand.masked.metrics import crows
    from evenhand.masked.metrics.phrases import phrases
    from evenhand.masked.metrics.professions import professions

    jobs = tmp_path / "jobs.txt"
    jobs.write_text("nurse\nplumber\npilot\n")
    made = settings(measure="associate", professions=str(jobs), persons=["he/she"])
    result = TASK.compute(made, place)
    asked = design(
        attributes=[Profession(name) for name in ("nurse", "plumber", "pilot")],
        persons=[PersonPair("he", "she")],
    )
    expected = plain(professions(mini, asked).to_dict(items=False))
    assert {name: result[name] for name in expected} == expected
    assert TASK.row(result)["association"]["value"] == expected["value"]
    before = key(made)
    jobs.write_text("nurse\nplumber\n")
    assert key(made) != before

    own = tmp_path / "own.toml"
    own.write_text(
        '[sets.garden.targets]\nheavy = ["fells the old oak", "digs the long ditch", "lifts rocks"]'
        '\nlight = ["waters the herbs", "ties up the roses", "picks the plums"]\n'
    )
    made = settings(measure="phrases", sets=[str(own)], seed=2)
    result = TASK.compute(made, place)
    results = phrases(mini, read_phrases(own), seed=2)
    assert result["measurements"] == plain([m.to_dict(items=False) for m in results])
    assert list(TASK.row(result)) == ["garden by mini", "garden by mini, centred"]
    before = key(made)
    own.write_text(own.read_text().replace("herbs", "ferns"))
    assert key(made) != before

    pairs = tmp_path / "pairs.csv"
    pairs.write_text(
        "sent_more,sent_less,stereo_antistereo,bias_type\n"
        "The nurse lost her keys.,The nurse lost his keys.,stereo,gender\n"
        "The pilot lost his keys.,The pilot lost her keys.,antistereo,gender\n"
    )
    result = TASK.compute(settings(measure="crows", data=str(pairs), method="unmasked"), place)
    measured = crows.crows(mini, crows.read_pairs(pairs), method="unmasked")
    expected = plain(measured.to_dict(items=False))
    assert {name: result[name] for name in expected} == expected
    assert TASK.row(result)["stereotype"] == {
        end: expected[end] for end in ("value", "low", "high")
    }


def test_identity_is_what_is_in_the_files_not_where_they_are(place, shards, tmp_path):
    with resources.as_file(resources.files("evenhand.assets") / "mini") as folder:
        copies = [shutil.copytree(folder, tmp_path / where / "bert") for where in "ab"]
    moved = tmp_path / "moved" / "part-0.jsonl"
    moved.parent.mkdir()
    shutil.copy(shards[0], moved)
    made = [
        settings(model=str(copy), shard=str(shard), out=str(copy.parent / "out"))
        for copy, shard in zip(copies, (shards[0], moved), strict=True)
    ]
    assert key(made[0]) == key(made[1])
    assert str(tmp_path) not in key(made[0])
    results = [TASK.compute(one, place) for one in made]
    assert to_json(results[0]) == to_json(results[1])
    config = copies[1] / "tokenizer_config.json"
    config.write_text(config.read_text() + " ")
    assert key(made[0]) != key(made[1])
    again = MaskedSettings(**json.loads(made[0].model_dump_json()))
    assert key(again) == key(made[0])


def test_identity_has_the_options_that_count_and_no_others(shards):
    first = key(settings(shard=shards[0]))
    assert key(settings(shard=shards[0], method="unmasked", persons=["he/she"])) == first
    assert key(settings(shard=shards[0], rows="csv")) == first  # nothing is written
    for rest in ({"delta": 0.1}, {"seed": 1}, {"prob": 0.9}, {"dtype": "bfloat16"}, {"out": "o"}):
        assert key(settings(shard=shards[0], **rest)) != first
    one, two = (settings(shard=shards[0], out="o", rows=rows) for rows in ("csv", "jsonl"))
    assert key(one) != key(two)
    assert key(settings(measure="associate", seed=1)) == key(settings(measure="associate"))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"model": "nowhere"}, "model: expected mini, a folder with config.json or hf:NAME"),
        ({"measure": "crows"}, "data: expected the file of pairs"),
        ({"data": "none.txt"}, "data: expected a file"),
        ({"keep_someone": True}, "keep_someone: goes with filter"),
        ({"filter": True}, "filter: goes with data or shard"),
        ({"out": "o"}, "out: goes with data or shard"),
        ({"measure": "phrases", "vectors": ["a/x.vec", "b/x.vec"]}, "different names"),
    ],
)
def test_check_tells_what_is_wrong_before_any_work(given, told):
    with pytest.raises(InputError, match=told):
        settings(**given)


def expand(fixed: dict[str, Any], **axes: list[Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    found: tuple[dict[str, Any], dict[str, Any]] = TASK.expand(fixed, axes)  # type: ignore[attr-defined]
    return found


def test_shards_become_an_axis_and_files_are_kept_apart(shards, tmp_path):
    fixed = {"shards": f"{tmp_path}/part-*.jsonl", "out": "o"}
    _, axes = expand(fixed)
    assert axes == {"shard": shards}
    with pytest.raises(InputError, match=r"put \{model\} into"):
        expand(fixed, model=["mini", "hf:some/bert"])
    expand(fixed | {"out": "o/{model}"}, model=["mini", "hf:some/bert"])
    with pytest.raises(InputError, match="goes with measure crows, not with score"):
        expand({"method": "unmasked"})
    with pytest.raises(InputError, match="different names"):
        expand({}, shard=["a.jsonl", "a.txt.gz"])
