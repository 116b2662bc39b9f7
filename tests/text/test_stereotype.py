"""Pro- and anti-stereotypical corpora: who is rewritten, what stays, and the way back."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from by_lists import odds
from evenhand.cli import run
from evenhand.errors import InputError
from evenhand.text import stereotype, swap
from evenhand.text.rewrite.stereotype import Selection, leanings

TEXTS = {"M": "He thanked his mother.", "F": "She thanked her father."}
SIZES = {"nurse": (10, 40), "pilot": (45, 5), "cook": (30, 25)}


def rows():
    listed = [
        (f'{TEXTS[gender]} "{job}, {number}"', job, gender)
        for job, counts in SIZES.items()
        for gender, count in zip("MF", counts, strict=True)
        for number in range(count)
    ]
    return [*listed, ("They sang.", "nurse", "x"), ("It rained.", "pilot", "F")]


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with (tmp_path / "bios.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("bio", "job", "sex"), *rows()])
    with (tmp_path / "bios.jsonl").open("w") as file:
        for bio, job, sex in rows():
            file.write(json.dumps({"bio": bio, "job": job, "sex": sex}) + "\n")
    return tmp_path


def shell(name, version, *more):
    output = f"{version}-{name}"
    columns = ["--text", "bio", "--label", "job", "--gender", "sex", "--names", "off"]
    assert (
        run(["rewrite", "stereotype", name, *columns, "--stereotype", version, "-o", output, *more])
        == 0
    )
    return output


def read(path):
    with Path(path).open(newline="") as file:
        if path.endswith(".jsonl"):
            return [tuple(json.loads(line).values()) for line in file]
        return [tuple(row) for row in csv.reader(file)][1:]


@pytest.mark.parametrize("name", ["bios.csv", "bios.jsonl"])
@pytest.mark.parametrize("version", ["pro", "anti"])
def test_persons_get_the_gender_that_the_version_calls_for(corpus, capsys, name, version):
    written = read(shell(name, version, "--json"))
    content = json.loads(capsys.readouterr().out)
    assert content["leaning"] == {"nurse": "female", "pilot": "male"}
    wanted = {"nurse": "F", "pilot": "M"}
    if version == "anti":
        wanted = {"nurse": "M", "pilot": "F"}
    changed = 0
    for (text, job, gender), (before, _, sex) in zip(written, rows(), strict=True):
        moved = job in wanted and sex in TEXTS and sex != wanted[job] and before != "It rained."
        changed += moved
        assert text == (swap(before).text if moved else before)
        assert gender == (wanted[job] if moved else sex)
    assert content["changed"] == changed == {"pro": 15, "anti": 85}[version]
    left = {"as it should be": {"pro": 85, "anti": 15}[version], "class without a leaning": 55}
    left |= {"unknown gender": 1}
    if version == "pro":
        left["no gendered word"] = 1
    else:
        left["no gendered word"] = 0
        left["as it should be"] += 1
    assert content["unchanged"] == {reason: n for reason, n in left.items() if n}


def test_the_new_corpus_leans_as_far_as_it_can(corpus):
    before, pro, anti = (
        {part.query: part.value for part in odds(path, "job", "sex").select("class")}
        for path in ("bios.csv", shell("bios.csv", "pro"), shell("bios.csv", "anti"))
    )
    assert pro["pilot"] > before["pilot"] > 1 > anti["pilot"]
    assert pro["nurse"] < before["nurse"] < 1 < anti["nurse"]


def test_it_is_undone(corpus):
    output = shell("bios.jsonl", "anti", "--edits", "edits.jsonl")
    assert run(["rewrite", "undo", output, "edits.jsonl", "-o", "back.jsonl", "--text", "bio"]) == 0
    assert read("back.jsonl") == rows()


def test_the_same_from_python(corpus):
    texts, labels, genders = zip(*rows(), strict=True)
    for version in ("pro", "anti"):
        made = stereotype(texts, labels, genders, version, names="off")
        assert [str(text) for text in made] == [row[0] for row in read(shell("bios.csv", version))]
    given = stereotype(texts, labels, genders, "pro", leaning={"cook": "male"}, names="off")
    assert sum(bool(each.edits) for each in given) == 25
    drawn = stereotype(["James sang."], ["nurse"], ["M"], "pro", leaning={"nurse": "female"})
    assert "James" not in drawn[0].text


def test_other_codes_and_rules(corpus):
    text = (corpus / "bios.csv").read_text().replace(",M\n", ",1\n").replace(",M\r", ",1\r")
    (corpus / "coded.csv").write_text(text.replace(",F\n", ",2\n").replace(",F\r", ",2\r"))
    output = shell("coded.csv", "pro", "--male", "1", "--female", "2", "--leaning", "share")
    sexes = {job: {row[2] for row in read(output) if row[1] == job} for job in SIZES}
    assert sexes == {"nurse": {"2", "x"}, "pilot": {"1", "2"}, "cook": {"1"}}  # it rained
    assert leanings({"a": 5}, {"a": 5, "b": 1}, "share") == {"b": "female"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("-", "--text", "bio"), "they are read twice"),
        (("bios.csv", "--text", "bio", "--male", "1"), "--male and --female go together"),
        (("bios.csv", "--text", "bio", "--label", "jobs"), "jobs"),
        (("bios.csv", "--input-format", "lines"), "JSONL and CSV"),
    ],
)
def test_what_is_wrong_is_named(corpus, capsys, arguments, problem):
    usual = ("--stereotype", "pro", "--gender", "sex", "-o", "out.csv")
    label = () if "--label" in arguments else ("--label", "job")
    assert run(["rewrite", "stereotype", *arguments, *usual, *label]) == 2
    assert problem in capsys.readouterr().err
    assert not (corpus / "out.csv").exists()


def test_versions_are_two():
    with pytest.raises(InputError, match="direction: expected pro or anti, got 'both'"):
        Selection("both", {}, {})
    with pytest.raises(InputError, match="expected as many texts, labels and genders"):
        stereotype(["a"], ["b"], [], "pro")
