"""`evenhand gate`: exit codes, what is written, and errors in one line."""

from __future__ import annotations

import io
import json
from xml.etree import ElementTree

import pytest
from cli_shell import failure, output

from evenhand.cli import run
from evenhand.lexicon import topic
from evenhand.vectors.mitigation import debias_topic


@pytest.fixture(scope="module")
def saved(tmp_path_factory, glove):
    """Gender bias of embedded GloVe, and of its debiased vectors, with items."""
    folder = tmp_path_factory.mktemp("gate")
    fair = str(folder / "fair.npz")
    measure = ["--topic", "gender", "--metric", "association", "-o"]
    debias_topic(glove, topic("gender")).vectors.save(fair)
    assert run(["measure", "glove", *measure, str(folder / "old.json")]) == 0
    assert run(["measure", fair, *measure, str(folder / "new.json")]) == 0
    return folder


@pytest.fixture
def policy(tmp_path):
    def write(text, **keys):
        path = tmp_path / "policy.toml"
        rule = "".join(f"{key} = {value!r}\n" for key, value in keys.items())
        path.write_text(f"{text}\n[[rules]]\n{rule}")
        return str(path)

    return write


def test_a_first_policy_is_met_by_its_results(saved, tmp_path, capsys):
    path = tmp_path / "policy.toml"
    path.write_text(output(capsys, "gate", "--init", str(saved / "old.json")))
    shown = output(capsys, "gate", str(path), str(saved / "old.json"))
    assert shown.splitlines()[-1] == "gate met: 1 met"
    assert run(["gate", str(path), str(saved / "new.json")]) == 0


@pytest.mark.parametrize(("fails_if", "code"), [("possibly outside", 3), ("clearly outside", 0)])
def test_an_inconclusive_gate_is_never_called_met(saved, policy, tmp_path, capsys, fails_if, code):
    rule = {"metric": "association", "min": -0.05}
    path = policy(f'fails_if = "{fails_if}"', **rule)
    junit, markdown = tmp_path / "gate.xml", tmp_path / "gate.md"
    files = ["--junit", str(junit), "--markdown", str(markdown)]
    assert run(["gate", path, str(saved / "old.json"), *files]) == code
    captured = capsys.readouterr()
    fails = "fails" if code else "does not fail"
    last = captured.out.splitlines()[-1]
    assert last == f"gate inconclusive, which {fails} by this policy: 1 inconclusive"
    assert captured.err == ""
    case = ElementTree.parse(junit).getroot()[0][0][0]  # noqa: S314
    assert case.tag == ("failure" if code else "skipped")
    assert case.get("message") == "inconclusive: the interval crosses the lower limit"
    assert markdown.read_text().splitlines()[0] == "### Bias gate: inconclusive"
    assert run(["gate", path, str(saved / "old.json"), "--json"]) == code
    shown = json.loads(capsys.readouterr().out)["gate"]
    assert (shown["state"], shown["met"], shown["fails"]) == ("inconclusive", False, bool(code))
    assert shown["rules"][0]["outcome"] == "inconclusive"
    assert run(["gate", policy("", **rule), str(saved / "old.json")]) == 3  # the default


def test_a_worse_model_exits_with_3_and_writes_what_ci_reads(saved, policy, tmp_path, capsys):
    path = policy("", metric="association", max_worsening=0.0)
    old, new = str(saved / "old.json"), str(saved / "new.json")
    assert run(["gate", path, new, "--baseline", old]) == 0
    capsys.readouterr()
    junit, markdown = tmp_path / "gate.xml", tmp_path / "gate.md"
    files = ["--junit", str(junit), "--markdown", str(markdown)]
    assert run(["gate", path, old, "--baseline", new, *files]) == 3
    captured = capsys.readouterr()
    assert captured.err == ""
    assert captured.out.splitlines()[-1] == "gate not met: 1 not met"
    root = ElementTree.parse(junit).getroot()  # noqa: S314
    assert root.get("failures") == "1"
    assert "not met" in markdown.read_text().splitlines()[0]
    assert run(["gate", path, old, "--baseline", new, "--json"]) == 3
    shown = json.loads(capsys.readouterr().out)
    assert shown["gate"]["met"] is False
    (rule,) = shown["gate"]["rules"]
    assert rule["outcome"] == "not met"
    assert rule["estimate"]["low"] > 0


def test_the_plan(saved, policy, capsys):
    path = policy("", metric="association", max_worsening=0.0, fails_if="clearly outside")
    arguments = ["gate", path, str(saved / "new.json"), "--baseline", str(saved / "old.json")]
    shown = output(capsys, *arguments, "--plan")
    assert "+5 se" in shown
    assert "detected" in shown
    document = json.loads(output(capsys, *arguments, "--plan", "--json", "--worsening", "0.05"))
    (rule,) = document["plan"]["rules"]
    assert rule["false_alarms"] < 0.05
    assert rule["unchanged"]["inconclusive"] > 0.9
    assert rule["curve"][0]["worsening"] == 0.05
    strict = policy("", metric="association", max_worsening=0.0)
    document = json.loads(output(capsys, "gate", strict, *arguments[2:], "--plan", "--json"))
    assert document["plan"]["rules"][0]["false_alarms"] > 0.95  # a limit of 0 leaves no room


def test_json_without_items_and_standard_input(saved, policy, monkeypatch, capsys):
    measure = ["measure", "glove", "--topic", "gender", "--metric", "association"]
    text = output(capsys, *measure, "--json")
    stream = io.TextIOWrapper(io.BytesIO(text.encode()))
    monkeypatch.setattr("sys.stdin", stream)
    path = policy("", metric="association", min=-1.0)
    assert "1 met" in output(capsys, "gate", path, "-")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    path = policy("", metric="association", max_worsening=0.0)
    assert run(["gate", path, "-", "--baseline", str(saved / "old.json")]) == 3
    assert "saved without items" in " ".join(capsys.readouterr().out.split())


def test_a_model_is_saved_with_its_items(tmp_path, policy, capsys):
    path = tmp_path / "mini.json"
    data = tmp_path / "pairs.csv"
    data.write_text(
        "sent_more,sent_less,stereo_antistereo,bias_type\n"
        + "The nurse lost her keys.,The nurse lost his keys.,stereo,gender\n" * 1
        + "The clerk lost his keys.,The clerk lost her keys.,stereo,gender\n"
    )
    metric = ["--metric", "crows", "--data", str(data)]
    assert run(["measure", "mini", *metric, "-o", str(path)]) == 0
    saved = json.loads(path.read_text())
    assert saved["measurements"][0]["items"]
    capsys.readouterr()
    gated = policy("", metric="crows", min=0.0, max=1.0)
    assert "1 met" in output(capsys, "gate", gated, str(path))


@pytest.mark.parametrize(
    ("keys", "more", "message"),
    [
        ({"metric": "asociation", "max": 1.0}, [], "did you mean 'association'?"),
        ({"metric": "association", "maxx": 1.0}, [], "unknown key 'maxx': did you mean 'max'?"),
        ({"metric": "association", "max_worsening": 0.0}, [], "expected a baseline (--baseline"),
        (
            {"metric": "weat", "max": 0.5},
            [],
            "rules #1: weat can lie on either side of 0: expected",
        ),
        ({"metric": "weat", "max": 0.5}, ["--plan"], "write min = -0.5 and max = 0.5"),
        ({"metric": "association", "max": 1.0}, ["--baseline", "none.json"], "no such file"),
        ({"metric": "association", "max": 1.0}, ["--worsening", "1"], "only --plan has it"),
        ({"metric": "association", "max": 1.0}, ["--junit", "no/x.xml"], "a folder that exists"),
        ({"metric": "association", "max": 1.0}, ["--init", "--plan"], "--init: checks nothing"),
    ],
)
def test_wrong_input_is_one_line(saved, policy, capsys, keys, more, message):
    path = policy("", **keys)
    assert message in failure(capsys, "gate", path, str(saved / "old.json"), *more)


def test_files_that_are_not_ours(saved, policy, tmp_path, capsys):
    path = policy("", metric="association", max=1.0)
    other = tmp_path / "other.json"
    other.write_text('{"accuracy": 1}')
    assert "evenhand/2" in failure(capsys, "gate", path, str(other))
    assert "not TOML" in failure(capsys, "gate", str(other), str(saved / "old.json"))
    assert "got one argument" in failure(capsys, "gate", path)
