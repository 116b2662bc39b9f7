"""`evenhand masked context` as its users meet it."""

import json

import pandas as pd
from cli_shell import failure, output

from evenhand.results import Measurement


def test_json_and_items(capsys, tmp_path):
    path, items = tmp_path / "sentences.txt", tmp_path / "items.csv"
    path.write_text("My sister repairs old cars.\nIt rains.\nHe cooks dinner.\n")
    found = json.loads(
        output(capsys, "masked", "context", str(path), "--items", str(items), "--json")
    )
    m = Measurement.from_dict(*found["measurements"])
    assert (m.metric, m.n, len(m.left_out)) == ("context", 2, 1)
    table = pd.read_csv(items)
    assert table["counterfactual"].tolist() == ["My brother repairs old cars.", "She cooks dinner."]


def test_without_a_file_the_examples_of_the_paper_are_shown(capsys):
    text = output(capsys, "masked", "context")
    assert "husbands/wives" in text
    assert "as written" in text


def test_a_file_without_gendered_words_is_an_error(capsys, tmp_path):
    path = tmp_path / "plain.txt"
    path.write_text("It rains.\n")
    assert "no gendered word" in failure(capsys, "masked", "context", str(path))
