"""`evenhand measure`: what a model of any kind is, and measuring it."""

from __future__ import annotations

import json

import pytest
from small_causal import small_network, small_tokenizer

from evenhand.cli import run
from evenhand.instruments import instruments


@pytest.fixture(scope="module")
def causal(tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "small-llama"
    small_network("llama").save_pretrained(folder)
    small_tokenizer().save_pretrained(folder)
    return str(folder)


@pytest.fixture(scope="module")
def items(tmp_path_factory):
    path = tmp_path_factory.mktemp("items") / "items.jsonl"
    rows = [
        {
            "type": "intersentence",
            "target": f"w{i}",
            "bias_type": "gender",
            "context": f"w{i} w3",
            "stereotype": "w4 w5",
            "anti-stereotype": "w6 w7",
            "unrelated": "w8",
        }
        for i in range(10, 14)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return str(path)


@pytest.mark.parametrize(("source", "kind"), [("mini", "masked"), ("causal", "causal")])
def test_info_says_what_a_model_is(source, kind, causal, capsys):
    assert run(["info", causal if source == "causal" else source, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["model"]["kind"] == f"{kind} language model"
    assert content["model"]["weights"] > 1000
    assert "stereoset" in content["metrics"]
    assert ("pronouns" in content["metrics"]) == (kind == "masked")


@pytest.mark.parametrize("source", ["mini", "causal"])
def test_measure_gives_the_same_document_for_every_kind(source, causal, items, capsys):
    model = causal if source == "causal" else source
    arguments = ["measure", model, "--metric", "stereoset", "--data", items]
    assert run([*arguments, "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    assert {"schema", "kind", "measurements"} <= content.keys()
    [measured] = content["measurements"]
    assert measured["metric"] == "stereoset"
    assert {part["query"] for part in measured["parts"]} >= {"lms", "icat"}
    assert run(arguments) == 0
    assert "stereoset_icat" in capsys.readouterr().out


def test_a_control_is_measured_and_marked(tmp_path, capsys):
    path = tmp_path / "items.jsonl"
    rows = [
        {
            "type": "intersentence",
            "target": f"term{i}",
            "bias_type": "profession",
            "context": f"The worker came on day {i}.",
            "stereotype": "She was late.",
            "anti-stereotype": "They had walked there.",
            "unrelated": "Iron is old.",
        }
        for i in range(8)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["measure", "mini", "--metric", "stereoset", "--data", str(path)]
    assert run([*arguments, "--control", "negate", "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    [check], [measured] = content["controls"], content["measurements"]
    outcome = check["details"]["outcome"]
    assert outcome in ("survives", "responds", "no effect", "undecided")
    assert measured["details"]["outcome"] == outcome
    assert sum(part["by"] == "control" for part in measured["parts"]) == 2
    assert run([*arguments, "--control", "negate"]) == 0
    shown = capsys.readouterr().out
    assert "Control: negate" in shown
    assert outcome in shown
    assert run([*arguments, "--control", "swap"]) == 2
    error = capsys.readouterr().err.strip()
    assert error.startswith("error: control 'swap': expected items that can be rewritten, got none")
    assert "\n" not in error


def test_a_metric_of_another_kind_says_what_fits(causal, capsys):
    assert run(["measure", causal, "--metric", "pronouns"]) == 2
    error = capsys.readouterr().err
    fitting = ", ".join(instruments("causal"))
    assert f"'pronouns' does not measure a causal language model; these do: {fitting}" in error


def test_a_tokenizer_without_the_words_of_built_in_material(causal, capsys):
    for metrics, problem in (
        ([], "model 'small-llama': its tokenizer can represent none of the professions"),
        (["--metric", "seat"], "the tokenizer of 'small-llama' may not have these words"),
    ):
        assert run(["measure", causal, *metrics]) == 2
        error = capsys.readouterr().err
        assert problem in error
        assert error.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere"], "unknown source 'nowhere'"),
        (["mini", "--metric", "stereosets"], "stereoset"),
        (["mini", "--metric", "stereoset"], "expected --data FILE with"),
    ],
)
def test_wrong_input_is_one_line(arguments, message, capsys):
    assert run(["measure", *arguments]) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert "\n" not in error


def test_int8_is_for_masked_models(causal, capsys):
    assert run(["info", causal, "--int8"]) == 2
    assert "expected a masked language model" in capsys.readouterr().err


def test_a_question_gets_a_short_answer(causal, capsys):
    sentences = ["The clerk lost [MASK] keys.", "[MASK] is a nurse."]
    assert run(["ask", *sentences]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == sentences[0]
    assert shown[1].startswith("mini: his ")
    assert "over 6 wordings" in shown[2]
    assert shown[3].startswith("Undecided: ")
    assert run(["ask", sentences[0], "--model", "mini", "--json"]) == 0
    [answer] = json.loads(capsys.readouterr().out)["answers"]
    assert answer["words"][0]["word"] == "his"
    assert run(["ask", "no mask"]) == 2
    assert "expected one pronoun" in capsys.readouterr().err


def test_pairs_and_schemas_by_command(causal, tmp_path, capsys):
    pairs = tmp_path / "pairs.csv"
    pairs.write_text(
        "sent_more,sent_less,stereo_antistereo,bias_type\n"
        "w5 w6,w7 w6,stereo,a\nw8 w9,w9 w9,stereo,b\n"
    )
    arguments = ["measure", "crows", causal, "--data", str(pairs)]
    assert run([*arguments, "--json"]) == 0
    [measured] = json.loads(capsys.readouterr().out)["measurements"]
    assert measured["details"]["method"] == "likelihood"
    assert run([*arguments, "--method", "attention"]) == 2
    assert capsys.readouterr().err.startswith("error: method: expected none for causal model")
    names = [f"{side}_stereotyped_type1.txt.dev" for side in ("pro", "anti")]
    for name, pronoun, other in zip(names, ("he", "she"), ("her", "his"), strict=True):
        (tmp_path / name).write_text(
            f"1 [The guard] met the nurse because [{pronoun}] was late.\n"
            f"2 The guard met [the nurse] because it was [{other}] car.\n"
        )
    command = ["measure", "mini", "--metric", "coreference", "--data"]
    assert run([*command, str(tmp_path), "--json"]) == 0
    [measured] = json.loads(capsys.readouterr().out)["measurements"]
    assert measured["n"] == 2
    assert {part["query"] for part in measured["parts"]} >= {"accuracy", "guard", "nurse"}
    (tmp_path / names[1]).unlink()
    assert run([*command, str(tmp_path / names[0])]) == 2
    problem = capsys.readouterr().err
    assert problem.startswith("error: ")
    assert names[1] in problem
    assert problem.count("\n") == 1


def test_tests_of_one_command_are_corrected_together(capsys):
    assert run(["measure", "mini", "--metric", "phrases", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)["measurements"]
    themes = [m for m in measured if m["metric"] == "phrases" and not m["details"]["neutral"]]
    assert [m["family"] for m in themes] == [len(themes)] * len(themes)
    assert all(m["p_corrected"] >= m["p_value"] for m in themes)
