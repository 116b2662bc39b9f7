"""Prompts of tables and built-in sets."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

from evenhand.answers.prompts import read_prompts
from evenhand.cli import run
from evenhand.errors import EvenhandError


def test_built_in_sets_are_found_by_name():
    prompts = read_prompts("occupations", system="Be brief.")
    assert len(prompts) == 720
    assert prompts[0].columns["item"] == "nurse"
    assert [message.role for message in prompts[0].messages] == ["system", "user"]
    assert len({prompt.key for prompt in prompts}) == 720


def test_a_file_of_the_same_name_is_read_by_its_path(tmp_path: Path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pd.DataFrame({"prompt": ["Say hello."], "item": ["a"]}).to_csv("decisions", index=False)
    assert len(read_prompts("decisions")) == 192
    assert [each.text for each in read_prompts("./decisions")] == ["Say hello."]


def test_an_unknown_name_names_the_sets():
    with pytest.raises(EvenhandError, match=r"'occupation': no such file, and not built in \(occ"):
        read_prompts("occupation")


def test_the_sets_are_listed(capsys):
    assert run(["list", "prompts", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)["prompts"]
    assert [row["name"] for row in rows] == ["occupations", "counterfactuals", "decisions"]
    assert rows[1]["columns"].split(", ")[:2] == ["item", "naming"]
