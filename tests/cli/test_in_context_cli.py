"""`lab fewshot run --network in-context`: a causal model in the place of encoder and training."""

from __future__ import annotations

import csv
import json
import re

import numpy as np
import pytest
from answering_server import chat, serving
from cli_shell import failure, output

from evenhand.cli import run as run_command
from evenhand.fewshot.runs import read_run

RUN = (
    *("lab", "fewshot", "run", "--network", "in-context", "--model", "tiny-causal"),
    *("--ways", "2", "--shots", "2", "--queries", "2", "--episodes", "2/2/6", "--workers", "1"),
    *("--data", "simulated:per_class=12,leak=1", "--leaning", "share", "--max-length", "9"),
    *("--no-neutral", "--permutations", "20"),
)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_has_tables_a_page_and_results(here, capsys):
    text = output(capsys, *RUN, "-o", "asked")
    assert "336 of 336 texts are longer than 9 words and cut there" in text
    assert "tiny-causal, 2 orders of the examples: 6 test episodes" in text
    page = (here / "asked" / "report.html").read_text(encoding="utf-8")
    assert "the causal model tiny-causal has the labelled texts in its prompt" in page
    assert "divided by that for queries without content" in page
    assert 'id="training"' not in page
    record = json.loads((here / "asked" / "run.json").read_bytes())
    assert record["model"]["source"] == "tiny-causal"
    assert "encoder" not in record
    content = json.loads((here / "asked" / "results.json").read_bytes())
    assert content["name"] == "in-context"
    assert content["settings"]["seeds"] == 2
    assert not list((here / "asked").rglob("*.safetensors"))
    with (here / "asked" / "by_class.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) > 2
    # repeated, it asks nothing and says the same; another mitigation is compared with it
    before = (here / "asked" / "split-0" / "seed-0" / "answers.npz").stat().st_mtime_ns
    again = json.loads(output(capsys, *RUN, "-o", "asked", "--json"))
    assert again["measurements"][0]["value"] == content["measurements"][0]["value"]
    assert (here / "asked" / "split-0" / "seed-0" / "answers.npz").stat().st_mtime_ns == before
    output(capsys, *RUN, "-o", "neutral", "--mitigation", "neutralize")
    compared = output(capsys, "lab", "fewshot", "bias", "asked", "neutral", "-o", "both.html")
    assert "in-context → in-context neutralize (train): paired on the same queries" in compared
    assert "examples in the prompts" in (here / "both.html").read_text(encoding="utf-8")


def test_written_answers_are_counted(here, capsys):
    text = output(capsys, *RUN, "-o", "asked", "--label-by", "written", "--seeds", "1")
    run = read_run(here / "asked")
    none = (run.answers.predicted < 0).mean()
    assert none > 0  # the model is small
    assert "answers that name no label, counted as wrong:" in text
    accuracy = json.loads((here / "asked" / "results.json").read_bytes())["measurements"][0]
    [share] = [part for part in accuracy["parts"] if part["metric"] == "no_label"]
    assert share["value"] == pytest.approx(none, abs=1e-6)
    assert accuracy["value"] <= 1 - none


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--encoder", "mini"), "--encoder: expected none, in-context is not trained"),
        (("--batch", "4"), "--batch: expected none, in-context is not trained"),
        (("--finetune",), "--finetune: expected none, in-context is"),
        (("--network", "maml"), "--model: expected none, the network maml has no prompts"),
        (
            ("--name", "decoy"),
            "--name: expected none, in-context is not trained",
        ),
        (("--max-length", "99"), "2 ways × 2 shots: expected prompts of at most 256 tokens"),
        (("--model", "nowhere"), "model 'nowhere': no such folder or GGUF file"),
        (("--model", "mini"), "mini"),
        (("--label-by", "vote"), "--label-by"),
    ],
)
def test_what_is_wrong_is_one_line(here, capsys, more, message):
    assert message in failure(capsys, *RUN, "-o", "asked", *more)
    assert not list(here.rglob("answers.npz"))


def test_a_model_is_needed(here, capsys):
    without = [part for part in RUN if part not in ("--model", "tiny-causal")]
    assert "--model: expected a causal model for in-context" in failure(capsys, *without)


def test_networks_lists_it(capsys):
    assert "in-context" in output(capsys, "list", "networks")


# behind an address


def at_address(server, *more):
    model = [server.address if part == "tiny-causal" else part for part in RUN]
    return (*model, "-o", "asked", "--retries", "0", *more)


def test_a_server_writes_the_labels(here, capsys):
    """It names the label of the last example, or none."""

    def answer(_, body, number):
        prompt = body["messages"][-1]["content"]
        labels = re.findall(r"Label: (.+)", prompt)
        return chat("I cannot say." if number % 4 == 0 else f"The label is {labels[-1]}.")

    with serving(answer) as server:
        output(capsys, *at_address(server, "--label-by", "written"))
        asked = len(server.bodies)
        output(capsys, *at_address(server, "--label-by", "written"))
        assert len(server.bodies) == asked  # the finished run is read
    # episodes, queries, versions, orders; versions that are cut to the same words are asked once
    assert 6 * 4 * 2 < asked <= 6 * 4 * 2 * 2
    assert {body["temperature"] for body in server.bodies} == {0}
    run = read_run(here / "asked")
    assert (run.answers.predicted < 0).mean() == pytest.approx(0.25, abs=0.12)
    assert run.record["model"]["model"] == "decoy"


def test_a_server_gives_likelihoods(here, capsys):
    """Plain completions that repeat the prompt: each character of a label costs a nat."""

    def answer(_, body, __):
        prompt = body["prompt"]
        start = prompt.rindex("Label:") + len("Label:")
        about = {
            "token_logprobs": [None, -float(len(prompt) - start)],
            "text_offset": [0, start],
            "tokens": [prompt[:start], prompt[start:]],
        }
        return {"model": "decoy", "choices": [{"text": "", "logprobs": about}]}

    with serving(answer) as server:
        output(capsys, *at_address(server, "--completions", "--label-by", "likelihood"))
    answers = read_run(here / "asked").answers
    for classes, log_probs in zip(answers.classes, answers.log_probs, strict=True):
        lengths = [len(answers.names[index]) for index in classes]
        expected = -np.array(lengths) - np.logaddexp.reduce(-np.array(lengths, dtype=float))
        np.testing.assert_allclose(log_probs, [expected] * 4, atol=1e-5)


def test_a_server_that_fails_leaves_no_answers(here, capsys):
    def answer(handler, *_):
        handler.send({"error": {"message": "broken"}}, 500)

    with serving(answer) as server:
        assert run_command(at_address(server, "--label-by", "written")) == 1
    assert "no answer: the server answers 500: broken" in capsys.readouterr().err
    assert not list(here.rglob("answers.npz"))
