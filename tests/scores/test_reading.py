"""Scores from tables, logs of other tools and folders, and what is wrong with them."""

import gzip
import json
import math
import tracemalloc

import pandas as pd
import pytest

from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.scores import analyze, read

ROWS = [
    ("q1", "a", 1.0, "d1"),
    ("q2", "a", 0.0, "d1"),
    ("q1", "b", 1.0, "d1"),
    ("q2", "b", 0.5, "d1"),
]
TABLE = pd.DataFrame(ROWS, columns=["item", "model", "score", "document"])


def harness(folder, task, values, **more):
    """Samples as lm-evaluation-harness writes them."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"samples_{task}_2026-01-02T03-04-05.123456.jsonl"
    lines = [
        {
            "doc_id": i,
            "doc": {"question": "?"},
            "target": "1",
            "resps": [["x"]],
            "filtered_resps": ["x"],
            "doc_hash": "0",
            **own,
            **more,
        }
        for i, own in enumerate(values)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def inspect_log(path, model, samples):
    """A log as inspect writes it: (id, epoch, value) of every sample."""
    content = {
        "version": 2,
        "status": "success",
        "eval": {"task": "qa", "model": model},
        "samples": [
            {"id": i, "epoch": epoch, "scores": {"match": {"value": value, "answer": "x"}}}
            for i, epoch, value in samples
        ],
    }
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "frame"])
def test_tables_of_every_format_give_the_same_scores(tmp_path, kind):
    path = tmp_path / f"scores.{kind}"
    if kind == "csv":
        TABLE.to_csv(path, index=False)
    elif kind == "jsonl":
        TABLE.to_json(path, orient="records", lines=True)
    elif kind == "parquet":
        TABLE.to_parquet(path)
    scores = read(TABLE if kind == "frame" else path)
    assert scores.scores.tolist() == [1.0, 0.0, 1.0, 0.5]
    assert scores.items == ("q1", "q2", "q1", "q2")
    assert scores.models == ("a", "a", "b", "b")
    assert scores.clusters == {"document": ("d1",) * 4}


def test_columns_by_name_and_words_for_scores():
    renamed = TABLE.assign(ok=["true", "FALSE", "yes", None]).rename(columns={"item": "question"})
    scores = read(renamed, item="question", score="ok", model="model")
    assert scores.scores.tolist() == [1.0, 0.0, 1.0]
    assert scores.left_out == ("q2 (b): no score",)


def test_a_frame_of_polars_is_read():
    polars = pytest.importorskip("polars")
    scores = read(polars.DataFrame({"item": [1, 2], "score": [0.5, None], "model": ["a", "a"]}))
    assert scores.scores.tolist() == [0.5]


def test_a_table_without_models_is_one_named_like_the_file(tmp_path):
    for name in ("first", "second"):
        TABLE[:2][["item", "score"]].to_csv(tmp_path / f"{name}.csv", index=False)
    scores = read(tmp_path / "first.csv", tmp_path / "second.csv")
    assert scores.models == ("first", "first", "second", "second")
    assert read(tmp_path).models == scores.models


def test_samples_of_the_harness(tmp_path):
    values = [{"acc": 1.0, "acc_norm": 0.0}, {"acc": 0.0, "acc_norm": 0.0}]
    harness(tmp_path / "org__one", "arc_easy", values)
    harness(tmp_path / "org__one", "boolq", values[:1])
    harness(tmp_path / "two", "arc_easy", values[::-1])
    with pytest.raises(InputError, match=r"expected one task, got 2 \(arc_easy, boolq\)"):
        read(tmp_path, score="acc")
    scores = read(tmp_path, score="acc", task="*")
    assert sorted(set(scores.models)) == ["org/one", "two"]
    found = dict(zip(zip(scores.models, scores.items, strict=True), scores.scores, strict=True))
    assert found["org/one", "arc_easy/0"] == found["two", "arc_easy/1"] == 1
    assert set(scores.groups) == {"arc_easy", "boolq"}
    assert read(tmp_path, score="acc_norm", task="*").scores.sum() == 0
    one = read(tmp_path, score="acc", task="arc_easy")
    assert set(one.items) == {"arc_easy/0", "arc_easy/1"}
    assert one.groups == ()
    with pytest.raises(UnknownNameError, match="unknown task 'arc_esy': did you mean 'arc_easy'"):
        read(tmp_path, score="acc", task="arc_esy")
    with pytest.raises(FileError, match="unknown metric 'acc_nrom': did you mean 'acc_norm'"):
        read(tmp_path, score="acc_nrom")


def test_filters_of_the_harness_must_be_chosen(tmp_path):
    lines = [
        {"exact_match": float(f == "flexible"), "filter": f, "doc_id": i}
        for i in range(3)
        for f in ("strict", "flexible")
    ]
    path = harness(tmp_path / "m", "gsm8k", lines)
    with pytest.raises(FileError, match=r"which filter.*exact_match,FILTER.*flexible, strict"):
        read(path)
    assert read(path, score="exact_match,flexible").scores.tolist() == [1.0] * 3
    with pytest.raises(FileError, match="got none; filters: flexible, strict"):
        read(path, score="exact_match,loose")


def test_logs_of_inspect_average_epochs_and_count_grades(tmp_path):
    inspect_log(tmp_path / "a.json", "org/a", [("1", 1, "C"), ("1", 2, "I"), ("2", 1, 0.25)])
    inspect_log(tmp_path / "b.json", "org/b", [("1", 1, "P"), ("2", 1, "N")])
    scores = read(tmp_path)
    assert scores.models == ("org/a", "org/a", "org/b", "org/b")
    assert scores.scores.tolist() == [0.5, 0.25, 0.5, 0.0]
    assert scores.items[:2] == ("qa/1", "qa/2")


def test_folders_of_lines_with_and_without_templates(tmp_path):
    for model in ("gpt2", "bert_base"):
        for template in (0, 1):
            path = tmp_path / "t" / f"{model}_template-{template}.txt.gz"
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(gzip.compress(b"0.5\n-1\n"))
    scores = read(tmp_path / "t")
    assert set(scores.models) == {"gpt2", "bert_base"}
    assert set(scores.clusters["template"]) == {"0", "1"}
    assert scores.items == ("1", "2") * 4
    (tmp_path / "plain").mkdir()
    (tmp_path / "plain" / "one.txt").write_text("1\n2\n")
    (tmp_path / "plain" / "two.txt").write_text("1\n\n")
    plain = read(tmp_path / "plain")
    assert plain.clusters == {}
    assert plain.left_out == ("2 (two): no score",)
    (tmp_path / "plain" / "two.txt").write_text("1\n")
    with pytest.raises(FileError, match=r"expected as many lines as .*one\.txt has \(2\), got 1"):
        read(tmp_path / "plain")


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        ({}, {"score": "scroe"}, "unknown column 'scroe': did you mean 'score'"),
        ({"item": "name"}, {}, "which column is the item. Name it with item="),
        ({"score": "number"}, {}, "which column is the score. Name it with score="),
        ({}, {"group": "score"}, "column 'score': expected one role, got several"),
        ({}, {"cluster": ["document", "templat"]}, "unknown column 'templat'"),
    ],
)
def test_wrong_columns_are_named(change, settings, message):
    with pytest.raises(FileError, match=message):
        read(TABLE.rename(columns=change), **settings)


def test_wrong_cells_are_located(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("item,model,score\nq1,a,1\nq2,a,good\n")
    with pytest.raises(FileError, match="row 2: expected a number as score, got 'good'"):
        read(path)
    path.write_text("item,model,score\nq1,a,1\nq1,a,0\n")
    with pytest.raises(
        FileError, match=r"row 2: item 'q1' has several scores of model 'a'.*cluster="
    ):
        read(path)
    path.write_text("item,model,score\nq1,,1\n")
    with pytest.raises(FileError, match="'model': expected a name, got none"):
        read(path)
    path.write_text("item,model,score\nq1,a,inf\n")
    with pytest.raises(FileError, match="expected a finite score"):
        read(path)
    path.write_text("item,model,score\nq1,a,\n")
    with pytest.raises(FileError, match="expected scores, got none"):
        read(path)


def test_wrong_logs_and_folders(tmp_path):
    with pytest.raises(FileError, match="one score a line, got none of them"):
        read(tmp_path)
    (tmp_path / "x.json").write_text("{}")
    with pytest.raises(FileError, match="expected a JSON log of inspect"):
        read(tmp_path)
    (tmp_path / "x.eval").write_text("")
    with pytest.raises(FileError, match="inspect log convert --to json"):
        read(tmp_path / "x.eval")
    with pytest.raises(InputError, match="got none"):
        read()
    with pytest.raises(InputError, match="expected the same clusters in every source"):
        read(TABLE, TABLE.drop(columns="document").assign(model="c"))
    assert math.isfinite(read(TABLE).scores.sum())


def test_tasks_of_a_table_are_not_averaged_silently():
    tasks = pd.concat([TABLE.assign(task="one"), TABLE.assign(task="two", score=0.0)])
    with pytest.raises(InputError, match=r"expected one task, got 2 \(one, two\)"):
        read(tasks)
    assert read(tasks, task="one").scores.tolist() == [1.0, 0.0, 1.0, 0.5]
    both = read(tasks, task=["one", "t*"])
    assert len(both) == 8
    assert set(both.groups) == {"one", "two"}
    assert set(read(tasks.assign(item=range(8)), group="task").groups) == {"one", "two"}
    assert read(TABLE.assign(task="one")).groups == ()


def test_memory_of_many_items(tmp_path):
    """5 million scores take less than 1 GB: 200 bytes each."""
    models, items = 5, 20_000
    path = tmp_path / "scores.csv"
    with path.open("w") as file:
        file.write("item,model,score\n")
        for item in range(items):
            file.writelines(f"item{item},m{m},{(item * 7 + m) % 13 / 13}\n" for m in range(models))
    analyze(path)
    tracemalloc.start()
    try:
        analyze(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 180 * items * models, peak / items / models
