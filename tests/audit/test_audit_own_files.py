"""A user's own files: every format is read, and what is wrong is reported before any work."""

from __future__ import annotations

import importlib.util
import json
import shutil
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from evenhand.audit import audit, main
from evenhand.audit.inputs import gather
from evenhand.cli import run
from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.lexicon import topic
from evenhand.models import load
from evenhand.models.sources import quiet
from evenhand.vectors import nulls
from evenhand.vectors.store import Vectors
from small_encoder import save_small

spec = importlib.util.spec_from_file_location(
    "small_models", Path(__file__).parents[1] / "models" / "small_models.py"
)
small_models = importlib.util.module_from_spec(spec)
spec.loader.exec_module(small_models)

JOBS = ("baker", "pilot", "nurse", "clerk")
ROWS = [
    (f"{'She' if n % 3 else 'He'} works as a {job} in town number {n}.", job, "FM"[n % 3 == 0])
    for job in JOBS
    for n in range(6)
]
TEXT = "text,label,gender\n" + "".join(f"{text},{job},{sex}\n" for text, job, sex in ROWS)


@pytest.fixture(scope="module")
def words() -> Vectors:
    """Vectors of eighths, which every format keeps as they are, of the words on gender."""
    message = dict.fromkeys(word for word in topic("gender").words() if " " not in word)
    names = [*message, *(f"word{n}" for n in range(300))]
    matrix = np.random.default_rng(4).integers(-40, 40, (len(names), 12)) / 8
    return Vectors.from_arrays(names, matrix)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return save_small(tmp_path_factory.mktemp("own") / "my-bert")


@pytest.fixture
def here(tmp_path, monkeypatch, words, model) -> Path:
    """A folder with good files of each kind, in which the work itself is forbidden."""

    def work(*_):
        raise AssertionError("work has begun")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(main, "run_stage", work)
    words.save("my.vec")
    shutil.copytree(model, "my-bert")
    Path("my.csv").write_text(TEXT)
    return tmp_path


def refused(capsys, *arguments: str) -> str:
    """The one line of error; nothing was written."""
    code = run(["audit", *arguments])
    message = capsys.readouterr()
    assert (code, message.out, Path("audit-out").exists()) == (2, "", False)
    assert message.err.startswith("error: ")
    assert message.err.count("\n") == 1
    return message.err


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("a.txt", "glove"),
        ("a.txt", "word2vec"),
        ("a.vec", "word2vec"),
        ("a.npz", "npz"),
        ("a.bin", "word2vec-binary"),
        ("a.bin.gz", "word2vec-binary"),
        ("a.txt.gz", "glove"),
        ("named-as-nothing.else", "word2vec"),
    ],
)
def test_vectors_of_every_format_are_the_same(tmp_path, words, name, form):
    words.save(tmp_path / name, form)
    found = gather(tmp_path / name, None, None)
    plain = gather(words, None, None)
    content = found.subjects["vectors"]["content_sha256"]
    assert content == plain.subjects["vectors"]["content_sha256"]
    assert found.parts == ("vectors", "posterior")


@pytest.mark.parametrize("family", small_models.FAMILIES)
def test_models_of_every_family_are_taken(tmp_path, family):
    tokenizer, network = small_models.made(family)
    network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    found = gather(None, tmp_path, None)
    assert found.subjects["masked"]["layers"] == 3
    assert found.parts == ("masked",)


def packed(path: Path, frame) -> None:
    if path.name.endswith(".parquet"):
        frame.to_parquet(path)
    elif ".jsonl" in path.name:
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_csv(path, index=False, sep="\t" if ".tsv" in path.name else ",")


@pytest.mark.parametrize(
    "name", ["a.csv", "a.tsv", "a.jsonl", "a.parquet", "a.csv.gz", "a.jsonl.gz", "a.csv.bz2"]
)
def test_data_of_every_format_are_the_same(tmp_path, name, model):
    import pandas as pd

    packed(tmp_path / name, pd.DataFrame(ROWS, columns=["bio", "job", "sex"]))
    columns = {"text": "bio", "label": "job", "gender": "sex"}
    found = gather(None, model, tmp_path / name, skip=("masked",), columns=columns)
    (tmp_path / "plain.csv").write_text(TEXT)
    plain = gather(None, model, tmp_path / "plain.csv", skip=("masked",))
    assert found.subjects["corpus"]["digest"] == plain.subjects["corpus"]["digest"]
    assert found.subjects["corpus"]["texts"] == len(ROWS)


def test_what_the_parts_do_not_need_is_not_read(here, words):
    Path("bad.vec").write_text("no vectors\nat all\n")
    given = gather("bad.vec", None, "my.csv", skip=("vectors", "posterior", "fewshot"))
    assert (given.vectors, given.parts, list(given.subjects)) == (None, ("corpus",), ["corpus"])
    given = gather("my.vec", None, "my.csv", skip=("corpus", "fewshot"))
    assert (given.data, list(given.subjects)) == (None, ["vectors"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--vectors", "my.vce"], "my.vce: no such file: did you mean 'my.vec'? (embedded"),
        (["--vectors", "glov"], "did you mean 'glove'?"),
        (["--vectors", "my-bert"], "my-bert: is a folder: expected a file of vectors"),
        (["--vectors", "not/my.vec"], "no such file, and no folder not"),
        (["--vectors", "hf:some"], "got a name of the hub"),
        (
            ["--model", "my-bret"],
            "no such folder: did you mean 'my-bert'? (embedded model: mini, tiny-causal)",
        ),
        (["--model", "my.csv"], "my.csv: expected the folder of a model"),
        (["--data", "my.cvs"], "my.cvs: no such file: did you mean 'my.csv'?"),
        (["--data", "simulate"], "did you mean 'simulated'?"),
        (["--data", "my-bert"], "is a folder: expected a file of data"),
        (["--text", "bio"], "text: expected data whose column it names, got none"),
        (["--vectors", "my.vec", "--label", "job"], "label: expected data whose column it names"),
        (["--data", "simulated", "--text", "bio"], "these have no columns"),
        (["--data", "my.csv", "--male", "1", "--female", "1"], "two codes, got '1' twice"),
        (["--vectors", "my.vec", "--vectors", "b.vec"], "expected once, got my.vec, b.vec"),
        (["--data", "my.csv", "--out", "my.vec"], "expected a folder to write into, got a file"),
        (["--data", "my.csv", "--out", "my.vec/in"], "my.vec is one"),
    ],
)
def test_a_wrong_name_is_an_error_at_once(here, capsys, monkeypatch, arguments, message):
    monkeypatch.setattr("evenhand.models.masked.load", lambda *_: pytest.fail("a model was read"))
    monkeypatch.setattr("evenhand.vectors.store.load", lambda *_: pytest.fail("vectors were read"))
    monkeypatch.setattr("evenhand.fewshot.data.read", lambda *_: pytest.fail("data were read"))
    assert message in refused(capsys, *arguments)


@pytest.mark.parametrize("wrong", ["vectors", "model", "data"])
def test_a_wrong_third_is_an_error_before_the_others_are_read(here, capsys, monkeypatch, wrong):
    given = {"vectors": "my.vec", "model": "my-bert", "data": "my.csv", wrong: "nowhere.at-all"}
    test_a_wrong_name_is_an_error_at_once(
        here,
        capsys,
        monkeypatch,
        [x for name in given for x in (f"--{name}", given[name])],
        "nowhere.at-all: no such",
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"she 1 2 3\nhe 1 2\nit 1 2 3\n", "line 2: expected a word and 3 numbers, got 2"),
        (b"ziz 1 2 3\nzaz 2 3 4\n", "its 2 words begin with 'ziz', 'zaz'. Are they English"),
        (b'{"she": [1, 2]}\n', "looks like JSON"),
    ],
)
def test_wrong_vectors(here, capsys, content, message):
    Path("bad.vec").write_bytes(content)
    assert message in refused(capsys, "--vectors", "bad.vec")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "the file is empty"),
        (b"text,label,gender\n", "no text with a class is left (no rows)"),
        (b"bio,job\na,b\n", "or others named with --text and --label"),
        (b"text,label,gender\na,b,homme\n", "row 1: gender: expected M or F, male or female"),
        (b"text,label,gender\na,b,2\n", "named with --male and --female"),
        (b"text,label\na,b,c\n", "line 2: expected 2 fields as in the header, got 3"),
        ("text,label\ncafé,b\n".encode("latin-1"), "line 2: expected UTF-8, got the byte 0xe9"),
        (TEXT.encode("utf-16"), "expected UTF-8, got UTF-16: --encoding utf-16"),
        (b'[{"text": "a"}]', "one JSON object per line, got an array"),
    ],
)
def test_wrong_data(here, capsys, content, message):
    Path("bad.csv").write_bytes(content)
    assert message in refused(capsys, "--vectors", "my.vec", "--data", "bad.csv")


def test_a_column_with_a_slip(here, capsys):
    message = refused(capsys, "--data", "my.csv", "--label", "lable")
    assert "my.csv: label: unknown column 'lable': did you mean 'label'?" in message


def edited(name: str, change) -> None:
    path = Path("my-bert") / name
    message = json.loads(path.read_text())
    change(message)
    path.write_text(json.dumps(message))


def headless() -> None:
    from safetensors.torch import load_file, save_file

    path = Path("my-bert/model.safetensors")
    kept = {name: weight for name, weight in load_file(path).items() if "cls." not in name}
    save_file(kept, path, metadata={"format": "pt"})


def not_numbers() -> None:
    from safetensors.torch import load_file, save_file

    path = Path("my-bert/model.safetensors")
    weights = load_file(path)
    weights["cls.predictions.transform.dense.weight"][0, 0] = float("nan")
    save_file(weights, path, metadata={"format": "pt"})


def other_tokenizer() -> None:
    tokenizer, network = small_models.made("bert")
    with quiet():
        network.save_pretrained("my-bert")
    assert len(tokenizer) < 100


def gone(*patterns: str) -> None:
    for pattern in patterns:
        for path in Path("my-bert").glob(pattern):
            path.unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (partial(gone, "*"), "my-bert: expected config.json and the weights"),
        (partial(gone, "*token*", "vocab*"), "my-bert: expected the model's tokenizer"),
        (partial(gone, "*.safetensors"), "no file named model.safetensors"),
        (lambda: Path("my-bert/model.safetensors").write_bytes(b"x" * 99), "header too large"),
        (
            lambda: Path("my-bert/config.json").write_text("{"),
            "config.json, line 1: not valid JSON",
        ),
        (lambda: edited("config.json", lambda c: c.update(model_type="gpt2")), "got 'gpt2'"),
        (headless, "got none for cls.predictions.bias and 5 more: it was saved without"),
        (not_numbers, "nan or infinite ones in cls.predictions.transform.dense.weight"),
        (other_tokenizer, "they do not belong together"),
    ],
)
def test_a_wrong_model(here, capsys, damage, message):
    damage()
    assert message in refused(capsys, "--vectors", "my.vec", "--model", "my-bert")


def test_a_checkpoint_of_old_is_taken(here):
    """Older checkpoints name the norm's weights otherwise and have more than is needed."""
    import torch
    from safetensors.torch import load_file

    path = Path("my-bert/model.safetensors")
    old = {
        name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): weight
        for name, weight in load_file(path).items()
    }
    row = [[2, 5, 4, 6, 3]]
    before = load("my-bert").logits(row, [2])
    path.unlink()
    torch.save({**old, "bert.pooler.dense.bias": torch.zeros(16)}, "my-bert/pytorch_model.bin")
    assert load("my-bert").logits(row, [2]) == pytest.approx(before, abs=1e-5)


def test_from_python_a_wrong_argument_is_an_error_too(here, words):
    with pytest.raises(UnknownNameError, match="did you mean 'label'"):
        audit(data="my.csv", columns={"lable": "job"})
    with pytest.raises(FileError, match=r"my\.cvs"):
        audit(words, data=Path("my.cvs"))
    with pytest.raises(InputError, match="these have no columns"):
        audit(data=gather(None, None, "my.csv").data, columns={"text": "bio"})


def test_too_few_words_to_measure_anything_leave_nothing_behind(tmp_path, monkeypatch):
    few = partial(nulls.dimension_spread, dims=(2, 10), points=50, repeats=2)
    monkeypatch.setattr(nulls, "dimension_spread", few)
    alone = Vectors.from_arrays(["she", "tree"], [[1.0, 0.0], [0.0, 1.0]], name="two words")
    with pytest.raises(InputError, match="nothing could be measured in two words: "):
        audit(alone, topics=["gender"], quick=True, skip=("posterior",), out=tmp_path / "new")
    assert not (tmp_path / "new").exists()


@pytest.mark.slow
def test_all_three_of_ones_own(tmp_path, monkeypatch, capsys, words, model):
    """One run over small files of each kind: verdicts on all, and nothing failed."""
    few = partial(nulls.dimension_spread, dims=(2, 10), points=50, repeats=2)
    monkeypatch.setattr(nulls, "dimension_spread", few)
    monkeypatch.chdir(tmp_path)
    words.save("my.vec")
    Path("my.csv").write_text(TEXT.replace("label", "job", 1))
    given = ["--vectors", "my.vec", "--model", str(model), "--data", "my.csv", "--label", "job"]
    small = ["--quick", "--topic", "gender", "--skip", "posterior", "--json", "--workers", "1"]
    assert run(["audit", *given, *small]) == 0
    message = json.loads(capsys.readouterr().out)
    assert {verdict["subject"] for verdict in message["verdicts"]} >= {
        "corpus",
        "vectors",
        "masked",
    }
    assert message["failed"] == {}
    assert "my.vec" in Path(message["report"]).read_text()
