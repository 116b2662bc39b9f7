"""`evenhand lab fewshot run` and `bias`: one command from texts to figures with intervals."""

from __future__ import annotations

import csv
import errno
import html
import io
import json
import math
import os
import re
import shlex
import shutil
import sys

import pandas as pd
import pytest
from cli_shell import failure, output
from scipy.special import stdtrit

from evenhand.charts import ChartSet
from evenhand.cli import run
from evenhand.cli.options import parse_numbers
from evenhand.errors import InputError
from evenhand.fewshot import read
from evenhand.fewshot.answers import Classifier
from evenhand.fewshot.data import PROFESSIONS
from evenhand.fewshot.networks import NAMES
from evenhand.fewshot.runs import read_run, summarise
from evenhand.fewshot.settings import parse_shares
from evenhand.report import fewshot as charts_fewshot
from small_encoder import save_small

SHAPE = ("--ways", "3", "--shots", "2", "--queries", "3", "--episodes", "16/6/24")
HOW = ("--encoder", "small", "--cache", "cache", "--workers", "1", "--batch", "4")
DATA = "simulated:per_class=14,leak=1"
QUICK = (
    "lab",
    "fewshot",
    "run",
    *SHAPE,
    *HOW,
    "--data",
    DATA,
    "--leaning",
    "share",
    "--no-neutral",
)
MEASURES = ("association", "epsilon", "skew", "stereotype")


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A folder with an encoder and two finished runs, the first with its figures and page."""
    folder = tmp_path_factory.mktemp("fewshot")
    save_small(folder / "small")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        assert run([*QUICK, "--out", "base"]) == 0
        patched.setattr(charts_fewshot, "run_charts", lambda *_: ChartSet())
        patched.setattr(charts_fewshot, "write_run", lambda *_: None)
        neutral = ("--mitigation", "neutralize", "--mitigate", "all")
        assert run([*QUICK, "--out", "neutral", *neutral]) == 0
    return folder


@pytest.fixture
def here(made, monkeypatch):
    """The working folder; figures and page, which take longest, are left out."""
    monkeypatch.chdir(made)
    monkeypatch.setattr(charts_fewshot, "run_charts", lambda *_: ChartSet())
    monkeypatch.setattr(charts_fewshot, "write_run", lambda *_: None)
    return made


def strict(text):
    """A JSON document and nothing else, without NaN or Infinity."""

    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def without_items(content):
    """A document without the items of its measurements, at any depth."""
    if isinstance(content, dict):
        return {name: without_items(value) for name, value in content.items() if name != "items"}
    return [without_items(row) for row in content] if isinstance(content, list) else content


def parts(measured, by="measure"):
    """The parts of a measurement, or of a comparison, of a document by their query."""
    rows = measured["parts"]
    return {row["query"]: row for row in rows if row.get("by", by) == by}


def test_a_run_leaves_all_in_its_folder(here):
    base = here / "base"
    files = {str(path.relative_to(base)) for path in base.rglob("*") if path.is_file()}
    assert files == {
        "run.json",
        "results.json",
        "report.html",
        "splits.json",
        "by_class.csv",
        "associations.csv",
        *(f"figures/{n}.svg" for n in ("results", "curves")),
        *(
            f"figures/accuracy-{by}-{model}-new-classes.svg"
            for by in ("class", "component", "gender", "score")
            for model in ("counting-words-tf-idf", "proto-euclidean")
        ),
        *(
            f"figures/fewshot_bias-{by}-proto-euclidean-gender.svg"
            for by in ("class", "measure", "original", "set")
        ),
        *(
            f"split-0/{name}"
            for name in (
                "episodes.npz",
                "baseline.npz",
                "seed-0/answers.npz",
                "seed-0/curve.csv",
                "seed-0/trained.safetensors",
            )
        ),
    }
    document = strict((here / "base" / "results.json").read_text())
    assert document["command"] == "fewshot run"
    assert html.escape(document["sentence"], quote=False) in (base / "report.html").read_text()
    assert document["settings"]["episodes"] == "16/6/24"
    right, own, baseline = document["measurements"]
    assert [m["metric"] for m in document["measurements"]] == [
        "accuracy",
        "fewshot_bias",
        "accuracy",
    ]
    assert baseline["low"] < baseline["value"]
    for one in (right, *(part for part in right["parts"] if part["by"] == "score")):
        assert one["low"] <= one["value"] <= one["high"]
        assert one["details"]["naive_low"] <= one["value"] <= one["details"]["naive_high"]
    assert len(right["items"]["class"]) == len(own["items"]["association"]) == 3 * 24
    rows = list(csv.DictReader(io.StringIO((base / "by_class.csv").read_text())))
    classes = [part["query"] for part in right["parts"] if part["by"] == "class"]
    assert [row["class"] for row in rows] == classes
    assert {row["leaning"] for row in rows} <= {"male", "female", ""}
    record = strict((here / "base" / "run.json").read_text())
    assert record["data"]["texts"] == 14 * 28
    assert record["versions"]["torch"]
    assert not [
        line for line in str(document).split() if line.startswith(str(here))
    ]  # no such paths


def test_a_finished_run_again_says_the_same(here, capsys):
    results = here / "base" / "results.json"
    before = results.read_bytes()
    shown = output(capsys, *QUICK, "--out", "base")
    assert shown == output(capsys, *QUICK, "--out", "base")
    document = strict(output(capsys, *QUICK, "--out", "base", "--json"))
    assert results.read_bytes() == before
    assert document == without_items(strict(before))
    found = summarise(read_run("base"))
    assert document["sentence"] == found.sentence
    assert " ".join(shown.split()).endswith(found.sentence)
    accuracy = found.accuracy
    assert f"{accuracy.value:.3f}" in shown
    assert f"[{accuracy.low:.3f}, {accuracy.high:.3f}]" in shown
    naive = accuracy.details["naive_low"], accuracy.details["naive_high"]
    assert f"[{naive[0]:.3f}, {naive[1]:.3f}]" in shown
    assert shown.index("counting words") < shown.index("proto-euclidean")
    assert "data: simulated:per_class=14,leak=1, 392 texts in 28 classes" in shown
    for row in accuracy.select("class"):
        assert re.search(rf"{row.query}.* {row.value:.3f} +\[{row.low:.3f}", shown)
    gap = accuracy.part("gap", by="gender")
    assert f"women less men   {gap.value:.3f}" in re.sub(" +", "   ", shown).replace(
        "women   less   men", "women less men"
    )
    for name in MEASURES:
        one = found.bias.part(name, by="measure")
        assert re.search(rf"{one.value:.3f} +\[{one.low:.3f}, {one.high:.3f}\]", shown)
    assert "for new classes: jackknife" in shown


def test_other_intervals_of_a_finished_run(here, capsys, tmp_path):
    copied = str(shutil.copytree("base", tmp_path / "base"))
    wide, narrow = (
        strict(
            output(capsys, *QUICK, "--out", copied, "--prob", prob, "--margin", margin, "--json")
        )
        for prob, margin in (("0.999", "0.5"), ("0.5", "0.001"))
    )
    first, second = wide["measurements"][0], narrow["measurements"][0]
    assert first["value"] == second["value"]
    assert first["low"] < second["low"]
    own = narrow["measurements"][1]
    assert (first["prob"], parts(own)["epsilon"]["prob"]) == (0.999, 0.5)
    assert own["details"]["margin"] == 0.001
    assert without_items(strict((tmp_path / "base" / "results.json").read_text())) == narrow
    assert "99.9% intervals" in output(capsys, *QUICK, "--out", copied, "--prob", "0.999")


def test_bias_of_one_run(here, capsys):
    document = strict(output(capsys, "lab", "fewshot", "bias", "base", "--json"))
    right, own = document["measurements"]
    for row in (right, *parts(own).values()):
        low, value, high = (row[key] for key in ("low", "value", "high"))
        assert all(type(number) is float and math.isfinite(number) for number in (low, value, high))
        assert low <= value <= high
    run_printed = strict((here / "base" / "results.json").read_text())
    same = [{k: v for k, v in m.items() if k != "sentence"} for m in document["measurements"]]
    assert same == without_items(run_printed["measurements"][:2])
    shown = output(capsys, "lab", "fewshot", "bias", "base")
    assert "Gender bias of proto-euclidean" in shown
    assert "ε-robust at 0.05" in shown


@pytest.mark.slow
def test_a_page_of_what_a_mitigation_changed(made, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(made)
    page = tmp_path / "page.html"
    shown = output(capsys, "lab", "fewshot", "bias", "base", "neutral", "-o", str(page))
    closing = " ".join(shown.partition(f"written: {page}")[2].split())
    assert closing.startswith(("proto-euclidean neutralize is", "No clear change"))
    assert html.escape(closing, quote=False) in page.read_text(encoding="utf-8").replace("−", "-")


def test_what_a_mitigation_changed(here, capsys, tmp_path):
    document = strict(
        output(
            capsys,
            "lab",
            "fewshot",
            "bias",
            "base",
            "neutral",
            "--figures",
            str(tmp_path),
            "--json",
        )
    )
    assert document["runs"] == {"proto-euclidean": "base", "proto-euclidean neutralize": "neutral"}
    right, before, other, after = document["measurements"]
    assert (before["subject"], after["subject"]) == tuple(document["runs"])
    assert abs(after["value"]) < 0.02
    cost, moved = document["comparisons"]
    for name in MEASURES:
        gap = parts(after)[name]["value"] - parts(before)[name]["value"]
        change = parts(moved)[name]["change"]
        assert change["value"] == pytest.approx(gap, abs=1e-9)
        assert change["low"] <= change["value"] <= change["high"]
    assert cost["change"]["value"] == pytest.approx(other["value"] - right["value"], abs=1e-9)
    assert {"results.svg", "changes.svg"} <= {path.name for path in tmp_path.iterdir()}
    shown = output(capsys, "lab", "fewshot", "bias", "base", "neutral")
    assert "proto-euclidean → proto-euclidean neutralize: paired on the same queries" in shown


def test_several_changes_hold_together(here, capsys, tmp_path):
    """Two changes have Bonferroni's intervals and p-values; one change has its own."""
    shutil.copytree("neutral", tmp_path / "again")
    alone, both = (
        strict(output(capsys, "lab", "fewshot", "bias", *folders, "--json"))["comparisons"]
        for folders in (("base", "neutral"), ("base", "neutral", str(tmp_path / "again")))
    )
    for one, together in zip(alone, both[:2], strict=True):
        for plain, wide in zip([one, *one["parts"]], [together, *together["parts"]], strict=True):
            assert (plain["family"], plain["p_corrected"]) == (1, None)
            assert wide["family"] == 2
            freedom = wide["details"]["freedom"]
            stretch = stdtrit(freedom, 1 - 0.05 / 4) / stdtrit(freedom, 1 - 0.05 / 2)
            half, wider = (c["change"]["high"] - c["change"]["value"] for c in (plain, wide))
            assert wider == pytest.approx(stretch * half)
            assert wide["p_corrected"] == pytest.approx(min(1, 2 * plain["p_value"]))
    assert "for the 2 runs compared" in output(
        capsys, "lab", "fewshot", "bias", "base", "neutral", str(tmp_path / "again")
    )


def test_runs_that_cannot_be_compared(here, capsys, tmp_path):
    other = tmp_path / "other"
    output(capsys, *QUICK, "--data", "simulated:per_class=14,leak=0", "--out", str(other))
    message = failure(capsys, "lab", "fewshot", "bias", "base", str(other))
    assert (
        "proto-euclidean (base) and proto-euclidean (other): expected runs on the same" in message
    )
    assert "expected each folder once" in failure(
        capsys, "lab", "fewshot", "bias", "base", "./base"
    )
    output(capsys, *QUICK, "--split-seed", "3", "--out", str(other), "--restart")
    message = failure(capsys, "lab", "fewshot", "bias", "base", str(other))
    assert "expected the same test queries" in message
    assert "(--each-gender leaves such classes out)" in message


def test_files_of_every_kind_are_the_same_data(here, capsys, tmp_path):
    data = read(DATA)
    rows = pd.DataFrame(
        {
            "bio": data.texts,
            "job": [data.classes[label] for label in data.labels],
            "sex": [("man", "woman")[gender] for gender in data.genders],
        }
    )
    rows.to_csv(tmp_path / "own.csv", index=False)
    rows.to_json(tmp_path / "own.jsonl.gz", orient="records", lines=True)
    rows.to_parquet(tmp_path / "own.parquet")
    expected = (here / "base/split-0/seed-0/answers.npz").read_bytes()
    columns = ("--text", "bio", "--label", "job", "--gender", "sex")
    codes = ("--male", "man", "--female", "woman")
    for name in ("own.csv", "own.jsonl.gz", "own.parquet"):
        out = tmp_path / f"run {name}"
        output(capsys, *QUICK, "--data", str(tmp_path / name), *columns, *codes, "--out", str(out))
        assert (out / "split-0/seed-0/answers.npz").read_bytes() == expected
    numbers = pd.DataFrame(
        {
            "hard_text": data.texts,
            "gender": data.genders,
            "profession": [PROFESSIONS.index(job.replace(" ", "_")) for job in rows["job"]],
        }
    )
    numbers.to_csv(tmp_path / "bios.csv", index=False)
    document = strict(
        output(
            capsys,
            *QUICK,
            "--data",
            str(tmp_path / "bios.csv"),
            "--out",
            str(out),
            "--restart",
            "--json",
        )
    )
    assert document["data"]["classes"].keys() == set(PROFESSIONS)
    expected = strict((here / "base/results.json").read_text())["measurements"][0]
    for key in ("value", "low", "high", "n"):
        assert document["measurements"][0][key] == expected[key]


def test_without_genders(here, capsys, tmp_path):
    data = read(DATA)
    lines = [
        {"sentence": text, "label": data.classes[label]}
        for text, label in zip(data.texts, data.labels, strict=True)
    ]
    lines.append({"sentence": data.texts[0], "label": data.classes[data.labels[0]]})
    (tmp_path / "plain.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    out = str(tmp_path / "plain")
    assert run([*QUICK, "--data", str(tmp_path / "plain.jsonl"), "--out", out]) == 0
    captured = capsys.readouterr()
    assert captured.err == ""
    assert "gender bias not measured: no test query is of known gender" in captured.out
    assert "(left out: duplicate text: 1)" in captured.out
    assert not (tmp_path / "plain" / "associations.csv").exists()
    assert "no bias can be measured" in failure(capsys, "lab", "fewshot", "bias", out)
    document = strict(
        output(capsys, *QUICK, "--data", str(tmp_path / "plain.jsonl"), "--out", out, "--json")
    )
    assert [m["metric"] for m in document["measurements"]] == ["accuracy", "accuracy"]
    assert [skip["metric"] for skip in document["skipped"]] == ["fewshot_bias"]
    assert not parts(document["measurements"][0], "gender")


def test_splits_seeds_and_splits_from(here, capsys, tmp_path):
    out = str(tmp_path / "many")
    shown = output(capsys, *QUICK, "--out", out, "--splits", "2", "--seeds", "2", "--seed", "5")
    assert "48 test episodes" in shown
    assert "and new training runs: the spread of splits and seeds" in shown
    assert "SD that each source gives the accuracy of one run" in shown
    assert (tmp_path / "many/split-1/seed-6/answers.npz").is_file()
    written = tmp_path / "many" / "splits.json"
    again = strict(
        output(
            capsys,
            *QUICK,
            "--out",
            str(tmp_path / "given"),
            "--splits-from",
            str(written),
            "--seed",
            "5",
            "--json",
        )
    )
    assert again["measurements"][0]["details"]["episodes"] == 24
    first = (tmp_path / "many/split-0/seed-5/answers.npz").read_bytes()
    assert (tmp_path / "given/split-0/seed-5/answers.npz").read_bytes() == first
    labels = tmp_path / "labels"
    labels.mkdir()
    for number, split in enumerate(strict(written.read_text())["splits"], 1):
        for part in ("train", "valid", "test"):
            (labels / f"labels.{number:02}.{part}.txt").write_text("\n".join(split[part]))
    output(
        capsys,
        *QUICK,
        "--out",
        str(tmp_path / "files"),
        "--splits-from",
        str(labels),
        "--seed",
        "5",
        "--splits",
        "2",
        "--seeds",
        "2",
    )
    for name in ("split-0/seed-5", "split-1/seed-6"):
        saved = Classifier.load(tmp_path / "files" / name / "answers.npz")
        assert saved.answers.same_queries(
            Classifier.load(tmp_path / "many" / name / "answers.npz").answers
        )
    message = failure(
        capsys, *QUICK, "--out", str(tmp_path / "x"), "--splits-from", str(labels), "--splits", "3"
    )
    assert "splits: expected 3 in what was given, got 2" in message


def test_fine_tuning(here, capsys, tmp_path):
    document = strict(
        output(
            capsys,
            *QUICK,
            "--finetune",
            "--mitigation",
            "augment+calibrate",
            "--each-gender",
            "2",
            "--network",
            "proto-soft",
            "--encoder-learning-rate",
            "0.01",
            "--out",
            str(tmp_path / "tuned"),
            "--json",
        )
    )
    assert document["settings"]["finetune"] is True
    assert document["settings"]["unlabelled"] == 3
    assert any(
        "fewer than 2 texts of one gender" in reason for reason in document["data"]["left_out"]
    )
    assert len(document["curves"]["split 0, seed 0"]) >= 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("--network protos", "unknown network 'protos': did you mean 'proto-soft'"),
        ("--mitigation neutralise", "did you mean 'neutralize'"),
        ("--encoder minni", "model 'minni': no such folder"),
        ("--data simulatd", "simulatd: no such file, and not simulated; a data set of the hub"),
        ("--data simulated:leek=1", "did you mean 'leak'"),
        ("--mitigation calibrate --shots 3", "shots: expected an even number"),
        ("--text bio", "text: simulated data have no columns to name"),
        ("--episodes 10/10", "episodes: expected TRAIN/VALID/TEST such as 10000/600/600, got '10/"),
        ("--shares 90/5/5", "(not needed with --any-leaning"),
        ("--ways 9", "validation classes of split 0: ways: expected 2 to 7"),
        ("--network maml --option stepz=3", "network maml: no option 'stepz'"),
        ("--splits-from small/config.json", "small/config.json: the key 'splits' is missing"),
        ("--out small/config.json/x", "config.json is one"),
        ("--out small/config.json", "got a file"),
        ("--margin 0", "margin: expected above 0 and below 1, got 0"),
        ("--device moon", "device: expected auto, cpu or cuda, got 'moon'"),
        ("--device meta", "device: expected auto, cpu or cuda, got 'meta'"),
        pytest.param(
            "--device mps",
            "device: 'mps' is not there",
            marks=pytest.mark.skipif(sys.platform == "darwin", reason="a Mac has it"),
        ),
        ("--margin nan", "margin: expected above 0 and below 1, got nan"),
        ("--shares 50/50/50", "shares: expected three numbers that add up to 100"),
        ("--splits 1000000", "is not in the range 1<=x<=1000"),
        ("--seeds 1000000", "is not in the range 1<=x<=1000"),
        ("--ways 9", "these options work: --ways 5 --shots 5 --queries 5 --splits 1 --at-least"),
    ],
)
def test_bad_input_is_one_line(here, capsys, tmp_path, words, message):
    out = () if "--out" in words else ("--out", str(tmp_path / "bad"))
    assert message in failure(capsys, *QUICK, *out, *shlex.split(words))
    assert not list(tmp_path.glob("bad/*"))


def test_too_small_classes_are_named_with_the_option(here, capsys, tmp_path):
    many = failure(capsys, *QUICK, "--shots", "20", "--out", str(tmp_path / "x"))
    assert re.search(
        r"expected 23 texts per class .* fewer in '.*' \(14\), .*; --at-least 23 ", many
    )
    message = failure(capsys, *QUICK, "--mitigation", "calibrate", "--out", str(tmp_path / "x"))
    assert re.search(
        r"fewer in '.*' \(\d+ men, \d+ women\).*; --at-least 5 --each-gender 1 ", message
    )
    options = re.search(r"--at-least \d+ --each-gender \d+", message)[0].split()
    output(capsys, *QUICK, "--mitigation", "calibrate", *options, "--out", str(tmp_path / "x"))
    (tmp_path / "codes.csv").write_text("text,label,gender\na,x,1\nb,y,2\n")
    message = failure(capsys, *QUICK, "--data", str(tmp_path / "codes.csv"))
    assert "codes.csv: row 1: gender: expected M or F" in message
    assert "named with --male and --female" in message
    (tmp_path / "codes.csv").write_text("a,b\n1,2\n")
    message = failure(capsys, *QUICK, "--data", str(tmp_path / "codes.csv"))
    assert "others named with --text and --label; the columns are" in message


def test_folders_of_others(here, capsys, tmp_path):
    copied = shutil.copytree("base", tmp_path / "base")
    message = failure(capsys, *QUICK, "--out", str(copied), "--shots", "4")
    assert "has another run (shots: 2 there, 4 now): give another folder, or --restart" in message
    (copied / "split-0" / "seed-0" / "answers.npz").write_bytes(b"PK\x03\x04")
    message = failure(capsys, "lab", "fewshot", "bias", str(copied))
    assert "answers.npz: expected the answers of a few-shot run" in message
    assert "delete it and repeat the command of the run" in message
    (copied / "split-0" / "seed-0" / "answers.npz").unlink()
    message = failure(capsys, "lab", "fewshot", "bias", str(copied))
    assert "answers.npz: missing, this run is not finished: repeat its command" in message
    (copied / "run.json").write_text("{")
    assert "not valid JSON" in failure(capsys, "lab", "fewshot", "bias", str(copied))
    assert "--restart starts over" in failure(capsys, *QUICK, "--out", str(copied))
    output(capsys, *QUICK, "--out", str(copied), "--restart")
    assert (copied / "results.json").read_bytes() == (here / "base/results.json").read_bytes()
    (tmp_path / "run.json").write_text('{"command": "masked finetune", "identity": {}}')
    message = failure(capsys, *QUICK, "--out", str(tmp_path), "--restart")
    assert "has the run.json of 'masked finetune', not of 'fewshot run'" in message
    assert "it has no run.json" in failure(capsys, "lab", "fewshot", "bias", "small")


def test_a_full_disk_and_the_same_command_again(here, capsys, tmp_path, monkeypatch):
    def full(*_, **__):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    copied = shutil.copytree("base", tmp_path / "base")
    (copied / "results.json").unlink()
    with monkeypatch.context() as patched:
        patched.setattr("evenhand.fewshot.runs.save_json", full)
        assert run([*QUICK, "--out", str(copied)]) == 1
    message = capsys.readouterr().err
    assert re.fullmatch(
        r"error: .*base: No space left on device; results saved .* resumes.*\n", message
    )
    output(capsys, *QUICK, "--out", str(copied))
    assert (copied / "results.json").read_bytes() == (here / "base/results.json").read_bytes()


def test_the_users_cache_is_the_default(here, capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    at = QUICK.index("--cache")
    output(capsys, *QUICK[:at], *QUICK[at + 2 :], "--out", str(tmp_path / "run"))
    assert list((tmp_path / "home" / "evenhand" / "embeddings").glob("*.npy"))
    expected = (here / "base/split-0/seed-0/answers.npz").read_bytes()
    assert (tmp_path / "run/split-0/seed-0/answers.npz").read_bytes() == expected


def test_shares_and_options_as_written():
    assert parse_shares("2/1/1") == (0.5, 0.25, 0.25)
    assert parse_numbers(("slices=50", "scale = 1e-1")) == {"slices": 50, "scale": 0.1}
    assert type(parse_numbers(("slices=-3",))["slices"]) is int
    for text in ("1/1", "1/1/0", "1/1/x", "nan/1/1", "inf/1/1"):
        with pytest.raises(InputError, match="shares: expected three numbers such as"):
            parse_shares(text)
    for text in ("slices", "slices=many", "=3", "scale=nan"):
        with pytest.raises(InputError, match="option: expected NAME=NUMBER, got"):
            parse_numbers((text,))
    with pytest.raises(InputError, match="'a' once"):
        parse_numbers(("a=1", "a=2"))


def test_help_teaches(capsys):
    for command, words in (
        ("run", (*NAMES, "Examples:", "--splits-from", "--each-gender")),
        ("bias", ("association:", "stereotype:", "--figures")),
    ):
        assert run(["lab", "fewshot", command, "--help"]) == 0
        shown = capsys.readouterr().out.replace("\\\n", " ")
        for word in words:
            assert word in shown
        for line in shown.splitlines():
            if line.strip().startswith("evenhand lab fewshot"):
                arguments = shlex.split(line)[3:]
                options = {word for word in arguments if word.startswith("--")}
                assert options <= set(re.findall(r"--[a-z-]+", shown.partition("Options:")[2]))


def test_a_small_table_gets_tasks_that_fit(here, capsys, tmp_path):
    jobs = ("nurse", "clerk", "baker", "pilot", "judge", "coach", "singer")
    rows = [
        {"text": f"A {job} in town {n}.", "label": job, "gender": "MF"[(n % 3 == 0) == number % 2]}
        for number, job in enumerate(jobs)
        for n in range(7)
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "small.csv", index=False)
    small = (
        "lab",
        "fewshot",
        "run",
        "--data",
        str(tmp_path / "small.csv"),
        *HOW,
        "--episodes",
        "8/4/8",
    )
    assert run([*small, "--out", str(tmp_path / "run"), "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err.startswith("note: chosen for these data: 2 ways, 3 shots, 3 queries, 4 splits")
    settings = read_run(tmp_path / "run").settings
    assert (settings.ways, settings.shots, settings.queries, settings.splits) == (2, 3, 3, 4)
    document = strict(shown.out)
    for measured in document["measurements"]:
        assert measured["low"] is not None
        assert measured["high"] is not None
    rows = [row for row in rows if row["label"] in jobs[:4]]
    pd.DataFrame(rows).to_csv(tmp_path / "small.csv", index=False)
    message = failure(capsys, *small, "--out", str(tmp_path / "other"))
    assert "expected 2 classes each to train, to validate and to test on" in message
    assert "got 4 classes of 7, 7, 7, 7 texts" in message
