"""Answers are collected once each: cached, resumed, bounded, private, and none is dropped."""

from __future__ import annotations

import json
import os
import re
import signal
import stat
import subprocess
import sys
import time
from itertools import count

import numpy as np
import pandas as pd
import pytest
from answering_server import KEY, chat, serving

from evenhand.answers.collecting import Collection, cache_of, collect, open_writer, prepare
from evenhand.answers.prompts import Prompt
from evenhand.answers.table import read_answers
from evenhand.cli import run
from evenhand.cli.progress import ProgressLines
from evenhand.errors import InputError, PartialFailure
from evenhand.files import is_ours, read_document, record_of
from evenhand.models import endpoint
from evenhand.models.endpoint import EndpointSettings
from evenhand.models.writing import Budget, WriteSettings

pytest.importorskip("httpx2", reason="needs httpx2")


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(endpoint, "FIRST_WAIT", 0.01)
    monkeypatch.delenv("EVENHAND_API_KEY", raising=False)


def prompts_of(count):
    rows = [
        {"prompt": f"Question {i}?", "item": f"i{i}", "gender": "fm"[i % 2]} for i in range(count)
    ]
    return pd.DataFrame(rows)


def rows_of(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


def asked(server):
    return [(body["messages"][-1]["content"], body["seed"]) for body in server.bodies]


def own(handler, body, number):
    """An answer that depends on the request only."""
    return chat(f"Answer {body['seed']}.")


def test_rows_have_the_columns_of_the_contract(tmp_path):
    out = tmp_path / "answers.jsonl"
    with serving(own) as server:
        answers = collect(
            server.address, prompts_of(3), samples=4, system="Be brief.", group="gender", output=out
        )
        assert len(set(asked(server))) == 12
        assert len({seed for _, seed in asked(server)}) == 12
    assert (answers.items[4], answers.groups["gender"][4]) == ("i1", "m")
    rows = rows_of(out)
    assert list(rows[0]) == [
        *("item", "gender", "prompt", "system", "sample"),
        *("text", "outcome", "finish", "tokens", "error", "model"),
    ]
    assert [(row["item"], row["sample"]) for row in rows] == [
        (f"i{i}", s) for i in range(3) for s in range(4)
    ]
    assert read_answers(out, group="gender").texts == answers.texts
    record = read_document(record_of(out))
    assert record["complete"] is True
    assert record["identity"]["temperature"] == 1.0
    assert record["model"]["system_fingerprint"] == ["decoy-7"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", record["dates"]["first"])
    assert is_ours(out)


def test_everything_is_private(tmp_path):
    out = tmp_path / "answers.jsonl"
    out.touch(0o644)
    with serving(own) as server:
        collect(server.address, prompts_of(2), samples=2, output=out)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    content = {
        path: mode for path, mode in modes.items() if path.is_file() and path.name != ".lock"
    }
    assert modes[cache_of(out)] == 0o700
    assert set(content.values()) == {0o600}
    assert len(content) == 3 + 4  # with the marker of the cache


def test_only_what_is_new_is_asked(tmp_path):
    out = tmp_path / "answers.jsonl"
    with serving(own) as server:
        first = collect(server.address, prompts_of(3), samples=2, output=out)
        assert len(server.bodies) == 6
        again = collect(server.address, prompts_of(3), samples=2, output=out)
        assert len(server.bodies) == 6
        collect(server.address, prompts_of(5), samples=2, output=out)
        assert len(server.bodies) == 10
        more = collect(server.address, prompts_of(5), samples=3, output=out)
        assert len(server.bodies) == 15
    assert first.texts == again.texts == tuple(np.array(more.texts).reshape(5, 3)[:3, :2].ravel())
    assert len(set(asked(server))) == 15


def test_progress_begins_with_what_is_known(tmp_path):
    out, seen = tmp_path / "answers.jsonl", []
    with serving(own) as server:
        for number in (2, 3):
            collect(
                server.address,
                prompts_of(number),
                samples=2,
                output=out,
                progress=lambda *done: seen.append(done),
            )
    assert seen == [(0, 4), (1, 4), (2, 4), (3, 4), (4, 4), (4, 6), (5, 6), (6, 6)]


def test_other_settings_are_another_run(tmp_path):
    out = tmp_path / "answers.jsonl"
    with serving(own) as server:
        collect(server.address, prompts_of(1), samples=1, output=out)
        for change, named in (
            ({"settings": WriteSettings(temperature=0.5)}, "temperature: 1.0 there, 0.5 now"),
            ({"seed": 1}, "seed: 0 there, 1 now"),
            ({"system": "Be kind."}, "another system"),
        ):
            with pytest.raises(InputError, match=named):
                collect(server.address, prompts_of(1), samples=1, output=out, **change)
            assert len(server.bodies) == 1
        settings = WriteSettings(temperature=0.5)
        collect(
            server.address, prompts_of(1), output=out, settings=settings, overwrite=True, samples=1
        )
        assert len(server.bodies) == 2
        out.write_text(out.read_text() + "\n")  # an answer that somebody has edited
        with pytest.raises(InputError, match="was changed or is not Evenhand's"):
            collect(server.address, prompts_of(1), output=out, settings=settings, samples=1)


def test_the_same_prompt_twice_is_asked_twice():
    twice = [Prompt("Question?", {"item": "a"}), Prompt("Question?", {"item": "b"})]
    collection = prepare("tiny-causal", twice, samples=3)
    assert len({request.seed for request in collection.requests}) == 6
    assert len(set(collection.keys)) == 6


def test_seeds_depend_on_seed_and_prompt_only():
    def seeds(prompts, seed=0, samples=2):
        own = Collection(open_writer("tiny-causal"), prompts, samples, WriteSettings(), seed)
        return [r.seed for r in own.requests]

    one, two = Prompt("One?"), Prompt("Two?")
    assert seeds([one, two])[::2] == seeds([one])
    assert seeds([two, one])[1::2] == seeds([one])
    assert seeds([one], samples=5)[:2] == seeds([one])
    assert not set(seeds([one], seed=1, samples=50)) & set(seeds([one], samples=50))
    assert all(0 <= seed < 2**31 for seed in seeds([one], samples=50))


def test_every_outcome_is_kept_and_failures_are_asked_again(tmp_path):
    out = tmp_path / "answers.jsonl"
    broken = True

    def mixed(handler, body, number):
        text = body["messages"][-1]["content"]
        if "0" in text:
            return chat("")
        if "1" in text:
            return chat("I can't help with that.")
        if "2" in text:
            return chat("She went to", finish="length")
        if "3" in text and broken:
            return handler.send({"error": {"message": "broken"}}, 400)
        return chat("She nods.")

    with serving(mixed) as server:
        with pytest.warns(UserWarning, match=r"1 requests failed .*broken"):
            answers = collect(server.address, prompts_of(5), samples=1, output=out)
        assert dict(answers.counts) == {
            "answered": 1,
            "refused": 1,
            "empty": 1,
            "cut off": 1,
            "failed": 1,
        }
        assert read_document(record_of(out))["complete"] is False
        broken = False
        answers = collect(server.address, prompts_of(5), samples=1, output=out)
        assert (answers.counts["failed"], len(server.bodies)) == (0, 6)


def test_the_bounds_stop_and_save(tmp_path):
    out = tmp_path / "answers.jsonl"
    with serving(own) as server:
        with pytest.warns(UserWarning, match="the bound is reached: 5 of 12 answers are missing"):
            answers = collect(server.address, prompts_of(4), samples=3, output=out, max_requests=7)
        assert (len(answers), len(server.bodies)) == (7, 7)
        assert {answers.items.count(f"i{i}") for i in range(4)} == {1, 2}  # as many of each
        collect(server.address, prompts_of(4), samples=3, output=out)
        assert len(set(asked(server))) == len(server.bodies) == 12


def test_tokens_in_process_are_counted(tmp_path):
    prompts = [Prompt("The nurse said"), Prompt("The judge said that")]
    collection = prepare(
        "tiny-causal", prompts, samples=2, settings=WriteSettings(max_new_tokens=6)
    )
    size = collection.size()
    lengths = collection.writer.count_tokens(collection.requests)
    assert (size.prompt_tokens, size.new_tokens, size.estimated) == (sum(lengths), 24, False)
    budget = Budget(tokens=lengths[0] + 6 + lengths[1] + 5)
    collected = collection.ask(budget)
    assert [row["prompt"] for row in collected.rows] == ["The nurse said"]
    assert lengths[0] < budget.tokens <= lengths[0] + 6
    with pytest.raises(PartialFailure, match="the bound is reached: 4 of 4"):
        collection.ask(Budget(tokens=3))


def test_texts_in_process_do_not_depend_on_the_others(tmp_path):
    settings = WriteSettings(max_new_tokens=6)
    few = collect("tiny-causal", prompts_of(1), samples=2, settings=settings)
    many = collect("tiny-causal", prompts_of(3), samples=2, settings=settings)
    assert few.texts == many.texts[:2]
    assert len(set(many.texts)) == 6


def test_a_temperature_of_zero_has_one_sample():
    greedy = WriteSettings(temperature=0)
    assert prepare("tiny-causal", prompts_of(2), settings=greedy).samples == 1
    assert prepare("tiny-causal", prompts_of(2)).samples == 25
    assert prepare("tiny-causal", prompts_of(2), settings=greedy, samples=3).samples == 3


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"samples": 0}, "samples: expected a whole number from 1 up"),
        ({"output": "answers.csv"}, "expected a file that ends in .jsonl"),
        ({"prompts": pd.DataFrame({"prompt": ["a"], "sample": [1]})}, "no column 'sample'"),
        ({"prompts": []}, "prompts: expected some"),
        ({"source": "mini"}, "expected a causal language model or an address"),
        ({"max_tokens": 0}, "tokens: expected a whole number from 1 up"),
    ],
)
def test_bad_input_is_one_line(change, message, tmp_path):
    given = {"source": "tiny-causal", "prompts": prompts_of(1), **change}
    if "output" in given:
        given["output"] = tmp_path / given["output"]
    with pytest.raises(InputError, match=re.escape(message)):
        collect(**given)


# ---- the command


def arguments(server, folder, *more):
    file = folder / "prompts.csv"
    if not file.exists():
        prompts_of(10).to_csv(file, index=False)
    words = ["answers", "collect", server.address, "--prompts", str(file), "--samples", "4"]
    return [*words, "-o", str(folder / "answers.jsonl"), *more]


def test_a_killed_run_is_resumed(tmp_path):
    def slowly(handler, body, number):
        time.sleep(0.1)
        return own(handler, body, number)

    with serving(slowly) as server:
        words = arguments(server, tmp_path, "--parallel", "2", "-q")
        with subprocess.Popen([sys.executable, "-m", "evenhand", *words]) as process:
            while len(server.bodies) < 14 and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(signal.SIGKILL)
        assert not (tmp_path / "answers.jsonl").exists()
        stored = len(list((tmp_path / "answers.cache").glob("*.npy")))
        before = len(server.bodies)
        assert before - 2 <= stored <= before
        assert run(words) == 0
        assert len(server.bodies) == before + 40 - stored
    assert len({row["text"] for row in rows_of(tmp_path / "answers.jsonl")}) == 40
    assert not list(tmp_path.rglob("*.tmp"))


def test_an_interrupted_run_stops_at_once(tmp_path):
    def slowly(handler, body, number):
        time.sleep(0.05 if number < 6 else 30)
        return own(handler, body, number)

    with serving(slowly) as server:
        words = arguments(server, tmp_path, "--parallel", "2", "-q")
        code = (
            "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
            "from evenhand.cli import run; sys.exit(run(sys.argv[1:]))"
        )
        process = subprocess.Popen(
            [sys.executable, "-c", code, *words], stderr=subprocess.PIPE, text=True
        )
        with process:
            while len(server.bodies) < 8 and process.poll() is None:
                time.sleep(0.01)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=20)
        assert process.returncode == 130
        assert said.strip() == "error: stopped; run the same command again to resume"
        assert len(list((tmp_path / "answers.cache").glob("*.npy"))) == 6


def test_the_command_exits_with_one_at_a_bound(tmp_path, capsys):
    with serving(own) as server:
        words = arguments(server, tmp_path)
        assert run([*words, "--max-requests", "9"]) == 1
        error = capsys.readouterr().err.splitlines()[-1]
        assert error.startswith("error: the bound is reached: 31 of 40 answers are missing; saved")
        assert len(rows_of(tmp_path / "answers.jsonl")) == 9
        assert run([*words, "--json"]) == 0
        content = json.loads(capsys.readouterr().out)
        assert (content["answers"], content["taken"]["requests"]) == (40, 31)


def test_the_rate_is_that_of_this_run(tmp_path, capsys, monkeypatch):
    ticks = count(0, 10)
    defaults = dict(ProgressLines.__init__.__kwdefaults__, clock=lambda: next(ticks))
    with serving(own) as server:
        words = arguments(server, tmp_path)
        assert run([*words, "-q", "--max-requests", "36"]) == 1
        capsys.readouterr()
        monkeypatch.setattr(ProgressLines.__init__, "__kwdefaults__", defaults)
        assert run(words) == 0
    assert capsys.readouterr().err.splitlines() == [
        "asking: 37 of 40 (92%), 0.1 answers/s, 0:30 left",
        "asking: 38 of 40 (95%), 0.1 answers/s, 0:20 left",
        "asking: 39 of 40 (98%), 0.1 answers/s, 0:10 left",
        "asking: 40 of 40 (100%), 0.1 answers/s, 0:00 left",
    ]


def test_a_dry_run_asks_nothing(tmp_path, capsys):
    with serving(own) as server:
        words = [*arguments(server, tmp_path), "--dry-run", "--json"]
        assert run(words) == 0
        content = json.loads(capsys.readouterr().out)
        assert (content["requests"], content["cached"], content["new_tokens"]) == (40, 0, 40 * 256)
        assert content["estimated"] is True
        assert not server.bodies
        assert sorted(path.name for path in tmp_path.iterdir()) == ["prompts.csv"]
        assert run([*arguments(server, tmp_path), "--max-requests", "4", "-q"]) == 1
        capsys.readouterr()
        assert run(words) == 0
        assert json.loads(capsys.readouterr().out)["cached"] == 4
        assert len(server.bodies) == 4


def test_the_key_is_in_no_file_and_no_output(tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)

    def echo(handler, body, number):
        said = handler.headers["Authorization"]
        if number % 5 == 4:
            return handler.send({"error": {"message": f"wrong: {said}"}}, 400)
        return chat(f"{said} {body['seed']}")

    with serving(echo) as server:
        assert run(arguments(server, tmp_path, "--key-env", "MY_KEY")) == 1
        assert {h.get("Authorization") for h in server.headers} >= {f"Bearer {KEY}"}
    shown = capsys.readouterr()
    assert KEY not in shown.out + shown.err
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) > 30
    assert not any(KEY.encode() in path.read_bytes() for path in files)


@pytest.mark.parametrize("wrong", [["--name", "another"], ["--key-env", "NO_SUCH_KEY"]])
def test_wrong_input_is_one_line(tmp_path, capsys, wrong):
    with serving(own) as server:
        assert run(arguments(server, tmp_path, *wrong)) == 2
        assert not server.bodies
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert error.count("\n") == 1
    assert not (tmp_path / "answers.jsonl").exists()


def test_an_output_of_others_is_not_replaced(tmp_path, capsys):
    (tmp_path / "answers.jsonl").write_text('{"text": "mine"}\n')
    with serving(own) as server:
        assert run(arguments(server, tmp_path)) == 2
        assert "--overwrite" in capsys.readouterr().err
        assert run(arguments(server, tmp_path, "--overwrite", "-q")) == 0
    assert len(rows_of(tmp_path / "answers.jsonl")) == 40


def test_the_settings_of_endpoints_are_options():
    settings = EndpointSettings()
    assert settings.parallel == 4
    with pytest.raises(InputError, match="parallel: expected"):
        EndpointSettings(parallel=0)
    assert os.environ.get(settings.key_env) is None
