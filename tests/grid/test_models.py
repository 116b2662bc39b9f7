"""Cells of models: the numbers of the functions, the same again, and shards that pool."""

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
from evenhand.files import to_json
from evenhand.grid.measures import MODELS as TASK
from evenhand.grid.measures import ModelSettings
from evenhand.grid.task import Workspace
from evenhand.instruments import Run
from evenhand.lexicon.pronoun_sentences import pronoun_sentences
from evenhand.models.masked import MaskedModel, load
from evenhand.models.metrics.pronouns import Pronouns

TEXTS = [*pronoun_sentences().sentences[:40], "[MASK] " + "waves and " * 400 + "leaves."]


@pytest.fixture(scope="session")
def mini() -> MaskedModel:
    return load("mini", device="cpu")


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return workspace_in(tmp_path / "work")


def workspace_in(work: Path) -> Workspace:
    work.mkdir(parents=True, exist_ok=True)
    return Workspace(work=work, cache=work, device="cpu", threads=1, lock=nullcontext)


def settings(**given: Any) -> ModelSettings:
    chosen = TASK.settings(**given)
    TASK.check(chosen)
    return chosen


def key(chosen: ModelSettings) -> str:
    return to_json(TASK.identity(chosen))


def plain(value: Any) -> Any:
    return json.loads(to_json(value))


def written(path: Path, texts: Sequence[str]) -> str:
    rows = [{"masked": text, "pronoun": ("her", "she", "")[i % 3]} for i, text in enumerate(texts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


def pooled(results: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = TASK.pool(results)  # type: ignore[attr-defined]
    return found


def test_embedded_sentences_score_as_the_function_says_and_again(mini, workspace, tmp_path):
    chosen = settings(prob=0.9, seed=4)
    result = TASK.compute(chosen, workspace)
    m = Pronouns()(mini, pronoun_sentences().sentences, prob=0.9, seed=4)
    (found,) = result["measurements"]
    assert found["query"] == "built-in sentences"
    expected = plain(m.to_dict(items=False))
    assert {name: found[name] for name in ("value", "low", "high", "p_value", "seed", "prob")} == {
        name: expected[name] for name in ("value", "low", "high", "p_value", "seed", "prob")
    }
    assert to_json(TASK.compute(chosen, workspace_in(tmp_path / "afresh"))) == to_json(result)
    assert to_json(TASK.compute(chosen, workspace)) == to_json(
        result
    )  # from the answers kept there
    row = TASK.row(result)
    score = row["pronouns built-in sentences"]
    assert score["low"] < score["value"] < score["high"]
    assert score["p_value"] == m.p_value
    every = row["pronouns built-in sentences: subset all sentences"]
    assert every["value"] == m.part("all sentences").value


def test_a_cell_resumed_ends_with_the_same_bytes(workspace, tmp_path, monkeypatch):
    monkeypatch.setattr("evenhand.models.gender_words.STEP", 16)
    whole = TASK.compute(settings(), workspace_in(tmp_path / "undisturbed"))

    class Killed(BaseException):
        pass

    def killed(_: str, done: int, total: int, __: str) -> None:
        if done > total / 2:
            raise Killed

    with pytest.raises(Killed):
        TASK.compute(settings(), replace(workspace, progress=killed))
    steps: list[int] = []
    message = replace(workspace, progress=lambda _, done, *__: steps.append(done))
    assert to_json(TASK.compute(settings(), message)) == to_json(whole)
    assert steps[0] > 60  # what was asked before is not asked again


@pytest.fixture
def shards(tmp_path: Path) -> list[str]:
    """Three shards and an empty one; some sentences are in two, one is too long for the model."""
    parts = [[*TEXTS[:15], TEXTS[40]], [*TEXTS[10:30], TEXTS[3], TEXTS[40], TEXTS[12]], TEXTS[30:]]
    chosen = [written(tmp_path / f"part-{i}.jsonl", part) for i, part in enumerate(parts)]
    (tmp_path / "part-9.jsonl").write_text("\n\n")
    return [*chosen, str(tmp_path / "part-9.jsonl")]


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


def test_pooled_shards_are_one_run_over_the_joined_sentences(mini, workspace, shards, tmp_path):
    results = [TASK.compute(settings(shard=shard, seed=1), workspace) for shard in shards]
    joined = tmp_path / "joined.jsonl"
    joined.write_text("".join(Path(shard).read_text() for shard in shards))
    chosen = settings(data=str(joined), seed=1)
    (whole,) = TASK.compute(chosen, workspace)["measurements"]
    by_file = Pronouns().measure_file(mini, joined)
    assert len(by_file.items) == whole["details"]["sentences"] == 40
    result = pooled([plain(result) for result in results])
    assert result["shards"] == 4
    (found,) = result["measurements"]
    [left_out] = found["details"].pop("left_out")
    assert (left_out["shard"], left_out["line"]) == ("part-0.jsonl", 16)
    assert len(whole["details"].pop("left_out")) == 1
    assert whole["details"]["duplicates"] == 9
    del whole["left_out"], found["left_out"]
    close(plain(found), plain(whole))
    assert TASK.row(result)["pronouns sentences"]["value"] == found["value"]
    assert results[3]["measurements"][0]["details"]["sentences"] == 0


def test_pooling_is_of_one_model_and_one_rule(workspace, shards):
    one = TASK.compute(settings(shard=shards[0]), workspace)
    two = TASK.compute(settings(shard=shards[1], delta=0.1), workspace)
    with pytest.raises(InputError, match="one rule"):
        pooled([one, two])
    other = {**one["measurements"][0], "subject": "other"}
    with pytest.raises(InputError, match="one model"):
        pooled([one, one | {"measurements": [other]}])
    with pytest.raises(InputError, match="one measure"):
        pooled([one, {"measure": "crows"}])
    with pytest.raises(InputError, match="crows cannot be pooled"):
        pooled([{"measure": "crows"}])


@pytest.mark.parametrize("rows", ["jsonl", "csv", "parquet"])
def test_rows_are_written_as_by_the_command_and_watched(mini, workspace, shards, tmp_path, rows):
    chosen = settings(shard=shards[1], out=str(tmp_path / "out" / "{model}"), rows=rows)
    result = TASK.compute(chosen, workspace)
    target = tmp_path / "out" / "mini" / f"part-1.{rows}"
    expected = tmp_path / f"expected.{rows}"
    Pronouns().measure_file(mini, shards[1], output=expected)
    assert target.read_bytes() == expected.read_bytes()
    whole = TASK.intact  # type: ignore[attr-defined]
    assert whole(chosen, result)
    content = target.read_bytes()
    target.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    assert not whole(chosen, result)
    assert to_json(TASK.compute(chosen, workspace)) == to_json(result)
    assert whole(chosen, result)


def test_plain_text_is_filtered_first(workspace, tmp_path):
    text = tmp_path / "plain.txt"
    text.write_text("The pilot checked her map twice.\nNobody was there.\n")
    result = TASK.compute(settings(data=str(text), filter=True), workspace)
    details = result["measurements"][0]["details"]
    assert (details["sentences"], details["filtered"]) == (1, 1)
    text.write_text("Nobody was there.\n")
    with pytest.raises(FileError, match="expected sentences to score"):
        TASK.compute(settings(data=str(text), filter=True), workspace)
    result = TASK.compute(settings(shard=str(text), filter=True), workspace)
    assert result["measurements"][0]["details"]["sentences"] == 0


def test_pairs_are_measured_as_by_the_function(mini, workspace, tmp_path):
    from evenhand.models.metrics.crows import Crows
    from evenhand.models.pairs import read_pairs

    pairs = tmp_path / "pairs.csv"
    pairs.write_text(
        "sent_more,sent_less,stereo_antistereo,bias_type\n"
        "The nurse lost her keys.,The nurse lost his keys.,stereo,gender\n"
        "The pilot lost his keys.,The pilot lost her keys.,antistereo,gender\n"
    )
    result = TASK.compute(settings(measure="crows", data=str(pairs), method="unmasked"), workspace)
    measured = Crows(method="unmasked").measure(mini, read_pairs(pairs))
    expected = plain(measured.to_dict(items=False))
    assert result["measurements"] == [expected]
    assert TASK.row(result)["crows pairs.csv"]["value"] == expected["value"]


def test_identity_is_what_is_in_the_files_not_where_they_are(workspace, shards, tmp_path):
    with resources.as_file(resources.files("evenhand.assets") / "mini") as folder:
        copies = [shutil.copytree(folder, tmp_path / where / "bert") for where in "ab"]
    moved = tmp_path / "moved" / "part-0.jsonl"
    moved.parent.mkdir()
    shutil.copy(shards[0], moved)
    chosen = [
        settings(model=str(copy), shard=str(shard), out=str(copy.parent / "out"))
        for copy, shard in zip(copies, (shards[0], moved), strict=True)
    ]
    assert key(chosen[0]) == key(chosen[1])
    assert str(tmp_path) not in key(chosen[0])
    results = [TASK.compute(one, workspace) for one in chosen]
    assert to_json(results[0]) == to_json(results[1])
    config = copies[1] / "tokenizer_config.json"
    config.write_text(config.read_text() + " ")
    assert key(chosen[0]) != key(chosen[1])
    again = TASK.settings(**json.loads(chosen[0].model_dump_json()))
    assert key(again) == key(chosen[0])


def test_identity_has_the_options_that_count_and_no_others(shards):
    first = key(settings(shard=shards[0]))
    assert key(settings(shard=shards[0], method="unmasked")) == first
    assert key(settings(shard=shards[0], rows="csv")) == first  # nothing is written
    for rest in ({"delta": 0.1}, {"seed": 1}, {"prob": 0.9}, {"dtype": "bfloat16"}, {"out": "o"}):
        assert key(settings(shard=shards[0], **rest)) != first
    one, two = (settings(shard=shards[0], out="o", rows=rows) for rows in ("csv", "jsonl"))
    assert key(one) != key(two)
    assert key(settings(shard=shards[0], measure="pronouns")) == first
    assert key(settings(shard=shards[0], threshold=0.05)) == first


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"model": "nowhere"}, "model: expected mini, a folder with config.json or hf:NAME"),
        ({"measure": "crows"}, "data: expected a file of sentence pairs"),
        ({"data": "none.txt"}, "data: expected a file"),
        ({"keep_someone": True}, "keep_someone: goes with filter"),
        ({"filter": True}, "filter: goes with data or shard"),
        ({"out": "o"}, "out: goes with data or shard"),
        ({"measure": "scores"}, "unknown measure 'scores': did you mean 'score'"),
        ({"top_k": 0}, "top_k: expected 1 or more, got 0"),
    ],
)
def test_check_tells_what_is_wrong_before_any_work(given, message):
    with pytest.raises(InputError, match=message):
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
    with pytest.raises(InputError, match="method: goes with measure crows, not with score"):
        expand({"method": "unmasked"})
    with pytest.raises(InputError, match="different names"):
        expand({}, shard=["a.jsonl", "a.txt.gz"])


def test_professions_of_the_users_own_are_chosen_by_key(mini, workspace, tmp_path):
    from evenhand.lexicon.templates import PersonPair, Profession
    from evenhand.models.designs import design
    from evenhand.models.metrics.professions import Professions

    jobs = tmp_path / "jobs.txt"
    jobs.write_text("nurse\nplumber\npilot\n")
    chosen = settings(measure="associate", professions=str(jobs), persons=["he/she"])
    result = TASK.compute(chosen, workspace)
    sentences = design(
        attributes=[Profession(name) for name in ("nurse", "plumber", "pilot")],
        persons=[PersonPair("he", "she")],
    )
    expected = Professions().measure(mini, sentences)
    assert result["measurements"] == [plain(expected.to_dict(items=False))]
    assert TASK.row(result)["professions professions"]["value"] == expected.value
    before = key(chosen)
    jobs.write_text("nurse\nplumber\n")
    assert key(chosen) != before
    with pytest.raises(InputError, match="data: has its own material, expected no persons"):
        settings(measure="associate", data=str(jobs), persons=["he/she"])
    with pytest.raises(InputError, match=r"persons: goes with measure .*associate, not with score"):
        expand({"persons": ["he/she"]})


def test_an_instrument_that_is_declared_elsewhere_is_a_measure(mini, workspace, monkeypatch):
    from dataclasses import dataclass

    from evenhand import instruments
    from evenhand.grid.measures import _Models
    from evenhand.results import Measurement

    @instruments.instrument(
        name="vocabulary", subjects=("masked",), label="Vocabulary", question="How many tokens?"
    )
    @dataclass(frozen=True, kw_only=True)
    class Vocabulary(instruments.Instrument):
        factor: int = instruments.option(1, minimum=1, help="Multiplies the size.")

        def measure(self, subject, material=None, run=None):
            size = float(self.factor * len(subject.tokenizer))
            return Measurement(
                metric="vocabulary",
                query="",
                value=size,
                low=size,
                high=size,
                n=1,
                ideal=None,
                worse="away",
                interval="none",
                subject=subject.name,
            )

    declared = {**instruments.instruments("masked"), "vocabulary": Vocabulary}
    monkeypatch.setitem(instruments._LOADED, "masked", declared)
    task = _Models()
    assert task.expand({"measure": "vocabulary"}, {"factor": [1, 2]})[1] == {"factor": [1, 2]}
    with pytest.raises(InputError, match="factor: goes with measure vocabulary, not with score"):
        task.expand({"factor": 2}, {})
    first, second = (task.settings(measure="vocabulary", factor=factor) for factor in (1, 2))
    assert task.identity(first) != task.identity(second)
    assert task.row(task.compute(second, workspace))["vocabulary"]["value"] == 2 * len(
        mini.tokenizer
    )
    with pytest.raises(InputError, match="factor: expected 1 or more, got 0"):
        task.check(task.settings(measure="vocabulary", factor=0))


def test_phrases_of_the_users_own_also_by_word_vectors(mini, glove, workspace, tmp_path):
    from evenhand.lexicon.phrases import read_phrases
    from evenhand.models.metrics.phrases import Phrases, WordMean

    own = tmp_path / "own.toml"
    own.write_text(
        '[sets.garden.targets]\nheavy = ["fells the old oak", "digs the long ditch", "lifts rocks"]'
        '\nlight = ["waters the herbs", "ties up the roses", "picks the plums"]\n'
    )
    chosen = settings(measure="phrases", sets=[str(own)], vectors=["glove"], seed=2)
    result = TASK.compute(chosen, workspace)
    with_glove = Phrases(embeds={"glove": WordMean(glove)})
    expected = with_glove.measure(mini, read_phrases(own), Run(seed=2))
    assert result["measurements"] == [plain(m.to_dict(items=False)) for m in expected]
    row = TASK.row(result)
    assert {"phrases garden", "phrases garden by glove"} <= set(row)
    before = key(chosen)
    own.write_text(own.read_text().replace("herbs", "ferns"))
    assert key(chosen) != before
    with pytest.raises(InputError, match="different names"):
        settings(measure="phrases", vectors=["a/x.vec", "b/x.vec"])
    with pytest.raises(InputError, match=r"vectors: goes with measure phrases.*, not with score"):
        expand({"vectors": ["glove"]})
