"""Skip-gram vectors: what a planted corpus must give, the same bytes twice, resuming, bad input."""

import gzip
import json
import signal
import subprocess
import sys

import numpy as np
import pytest

import evenhand as eh
from evenhand.cli import run
from evenhand.errors import EvenhandError, FileError, InputError, MissingExtraError
from evenhand.text.corpus.reading import chunks
from evenhand.vectors import TrainSettings, train, training

pytest.importorskip("gensim", reason="needs the extra word2vec")

SIDES = {
    "flowers": [f"flower{i}" for i in range(8)],
    "insects": [f"insect{i}" for i in range(8)],
    "pleasant": [f"pleasant{i}" for i in range(8)],
    "unpleasant": [f"unpleasant{i}" for i in range(8)],
}
QUERY = eh.lexicon.Query(
    name="planted",
    targets={name: tuple(SIDES[name]) for name in ("flowers", "insects")},
    attributes={name: tuple(SIDES[name]) for name in ("pleasant", "unpleasant")},
)
SMALL = TrainSettings(dimensions=20, epochs=3, min_count=2)


def write_corpus(path, share, texts=3000, seed=0):
    """Texts of a target word, an attribute and fillers; the attribute is of the target's side
    with the probability `share`.
    """
    rng = np.random.default_rng(seed)
    with path.open("w") as file:
        for _ in range(texts):
            side = int(rng.integers(2))
            other = side if rng.random() < share else 1 - side
            words = [
                *rng.choice(SIDES[("flowers", "insects")[side]], 2),
                *rng.choice(SIDES[("pleasant", "unpleasant")[other]], 2),
                *(f"filler{i}" for i in rng.integers(0, 60, 4)),
            ]
            file.write(" ".join(rng.permutation(words)) + "\n")
    return path


@pytest.fixture
def corpus(tmp_path):
    return write_corpus(tmp_path / "corpus.txt", 0.9)


@pytest.fixture
def small_chunks(monkeypatch):
    """The corpus in some twenty pieces, and a checkpoint after each."""

    def cut(*args, **options):
        return chunks(*args, size=1 << 14, **options)

    monkeypatch.setattr(training, "chunks", cut)
    monkeypatch.setattr(training, "INTERVAL", 0.0)


def association(v):
    """The mean cosine with words of the own side less that with the other."""
    x, y, a, b = (v.unit(v.find(words).rows) for words in SIDES.values())
    return float(((x @ a.T).mean() - (x @ b.T).mean() - (y @ a.T).mean() + (y @ b.T).mean()) / 2)


def test_a_planted_association_is_in_the_vectors(tmp_path, corpus):
    settings = TrainSettings(dimensions=20, epochs=8, min_count=2, learning_rate=0.05)
    planted = train(corpus, settings=settings).vectors
    absent = train(write_corpus(tmp_path / "none.txt", 0.5), settings=settings).vectors
    weat = eh.vectors.Weat()(planted, QUERY)
    assert weat.value > 1.5
    assert weat.p_value < 0.001
    assert association(planted) > 5 * abs(association(absent))


def test_words_are_counted_and_the_most_frequent_is_first(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("She's HERE, she\n\nhere it is; she-wolf Ünique\n")
    v = train(path, settings=TrainSettings(min_count=1, dimensions=3))
    assert v.vectors.words == ["she", "here", "is", "it", "s", "wolf", "ünique"]
    corpus = {name: v.corpus[name] for name in ("texts", "words", "types", "learned")}
    assert corpus == {"texts": 2, "words": 10, "types": 7, "learned": 10}
    fewer = train(path, settings=TrainSettings(min_count=2, dimensions=3))
    assert fewer.vectors.words == ["she", "here"]
    assert fewer.corpus["learned"] == 5


def test_long_texts_are_cut_not_left_out(tmp_path):
    path = tmp_path / "corpus.txt"
    path.write_text("she sings " * 12_000 + "\n" + "he hums\n")
    (chunk,) = chunks([str(path)], eh.text.corpus.Lines())
    assert [len(text) for text in training.texts_of(chunk)] == [10_000, 10_000, 4_000, 2]


def test_one_seed_gives_the_same_bytes_and_another_does_not(tmp_path, corpus):
    files = []
    for name, seed in (("a", 0), ("b", 0), ("c", 1)):
        settings = TrainSettings(dimensions=20, epochs=1, min_count=2, seed=seed)
        train(corpus, tmp_path / f"{name}.vec", settings)
        files.append((tmp_path / f"{name}.vec").read_bytes())
    assert files[0] == files[1]
    assert files[0] != files[2]


class Killed(Exception):  # noqa: N818
    pass


def stop_at(words):
    def progress(step, done, total, text):
        if step == "training" and done >= words:
            raise Killed

    return progress


@pytest.mark.parametrize("words", [2_000, 33_000, 50_000])
def test_a_killed_run_resumes_with_the_same_bytes(tmp_path, corpus, small_chunks, words):
    whole, resumed = tmp_path / "whole.npz", tmp_path / "resumed.npz"
    expected = train(corpus, whole, SMALL)
    with pytest.raises(Killed):
        train(corpus, resumed, SMALL, progress=stop_at(words))
    assert not resumed.exists()
    with pytest.raises(Killed):  # a second time, later
        train(corpus, resumed, SMALL, progress=stop_at(words + 20_000))
    read = []
    result = train(
        corpus, resumed, SMALL, progress=lambda step, done, *_: read.append((step, done))
    )
    assert {step for step, _ in read} == {"training"}
    assert min(done for _, done in read) > words
    assert (result.vectors.matrix == expected.vectors.matrix).all()
    assert result.corpus == expected.corpus
    matrices = [eh.vectors.load(path, cache=False).matrix for path in (whole, resumed)]
    assert (matrices[0] == matrices[1]).all()
    assert not list(tmp_path.glob(".*.training"))


SLOWLY = """
import sys, time
from evenhand.vectors import training

chunks = training.chunks
training.chunks = lambda *args, **options: chunks(*args, size=1 << 14, **options)
training.INTERVAL = float(sys.argv[2])
settings = training.TrainSettings(dimensions=20, epochs=3, min_count=2)

def progress(step, done, total, text):
    print(step, done, flush=True)
    time.sleep(0.02)

training.train("corpus.txt", sys.argv[1], settings, progress=progress)
"""


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "interval"), [(signal.SIGKILL, 0.0), (signal.SIGINT, 1e9)])
def test_a_process_that_is_stopped_resumes_with_the_same_bytes(tmp_path, corpus, sent, interval):
    def start(output):
        words = [sys.executable, "-c", SLOWLY, output, str(interval)]
        return subprocess.Popen(words, cwd=tmp_path, stdout=subprocess.PIPE, text=True)

    whole = start("whole.vec")
    whole.communicate(timeout=300)
    stopped = start("stopped.vec")
    for line in stopped.stdout:
        if line.startswith("training") and int(line.split()[1]) > 30_000:
            stopped.send_signal(sent)
            break
    stopped.communicate(timeout=300)
    assert (whole.returncode, bool(stopped.returncode)) == (0, True)
    assert not (tmp_path / "stopped.vec").exists()
    again = start("stopped.vec")
    printed, _ = again.communicate(timeout=300)
    assert again.returncode == 0
    assert "counting" not in printed
    assert (tmp_path / "stopped.vec").read_bytes() == (tmp_path / "whole.vec").read_bytes()


def test_ctrl_c_saves_a_checkpoint(tmp_path, corpus, small_chunks, monkeypatch):
    monkeypatch.setattr(training, "INTERVAL", 1e9)
    monkeypatch.setattr(training, "defer_interrupt", pressed_at_once)
    with pytest.raises(KeyboardInterrupt):
        train(corpus, tmp_path / "v.npz", SMALL)
    assert (tmp_path / ".v.npz.training" / "checkpoint.npz").is_file()


class pressed_at_once:  # noqa: N801
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def is_set(self):
        return True


def test_a_finished_run_is_not_repeated_but_another_is(tmp_path, corpus):
    output = tmp_path / "v.npz"
    first = train(corpus, output, SMALL)
    steps = []
    again = train(corpus, output, SMALL, progress=lambda step, *_: steps.append(step))
    assert not steps
    assert again.corpus == first.corpus
    assert (again.vectors.matrix == first.vectors.matrix).all()
    other = TrainSettings(dimensions=10, epochs=1, min_count=2)
    assert train(corpus, output, other).vectors.dim == 10
    assert eh.vectors.load(output).dim == 10


def test_a_checkpoint_of_other_settings_is_not_used(tmp_path, corpus, small_chunks):
    with pytest.raises(Killed):
        train(corpus, tmp_path / "v.npz", SMALL, progress=stop_at(2_000))
    other = TrainSettings(dimensions=10, epochs=1, min_count=2)
    steps = []
    train(corpus, tmp_path / "v.npz", other, progress=lambda step, *_: steps.append(step))
    assert "counting" in steps


def test_a_damaged_checkpoint_is_named_and_restart_ignores_it(tmp_path, corpus):
    folder = tmp_path / ".v.npz.training"
    folder.mkdir()
    (folder / "checkpoint.npz").write_bytes(b"PK\x03\x04 nothing")
    with pytest.raises(FileError, match=r"not a checkpoint: .*restart=True"):
        train(corpus, tmp_path / "v.npz", SMALL)
    assert len(train(corpus, tmp_path / "v.npz", SMALL, restart=True).vectors) == 92


@pytest.mark.parametrize(
    ("text", "settings", "problem"),
    [
        (b"", {}, "expected text, got no words"),
        (b" \n\n -- \n", {}, "expected text, got no words"),
        (b"she sings\nshe hums\n", {"min_count": 3}, "'she' is the most frequent, 2 times"),
        (b"she sings\nshe hums\n", {}, r"min_count=: .*occur 5 times, got 0"),
        (b"she sings\n\xff\xfe hums \n", {}, r"line 2: expected UTF-8"),
    ],
)
def test_text_that_cannot_be_trained_on(tmp_path, text, settings, problem):
    path = tmp_path / "corpus.txt"
    path.write_bytes(text)
    with pytest.raises(InputError, match=problem):
        train(path, tmp_path / "v.npz", TrainSettings(**settings))
    assert [each.name for each in tmp_path.iterdir()] == ["corpus.txt"]


def test_inputs_and_outputs_that_cannot_be(tmp_path, corpus):
    for source, problem in (
        ([], "expected one file or more"),
        ("-", "read several times"),
        (tmp_path, "read several times"),
    ):
        with pytest.raises(InputError, match=problem):
            train(source, settings=SMALL)
    with pytest.raises(FileNotFoundError):
        train(tmp_path / "absent.txt", tmp_path / "v.npz")
    (tmp_path / "v.run.json").write_text("{}")
    (tmp_path / "folder.npz").mkdir()
    for output, problem in (
        ("v.pdf", "cannot tell the format"),
        ("corpus.txt/v.npz", "expected a folder to write into"),
        ("folder.npz", "is a folder"),
        ("v.npz", "expected the record of a training"),
    ):
        with pytest.raises(InputError, match=problem):
            train(corpus, tmp_path / output, SMALL)


@pytest.mark.parametrize(
    "options",
    [
        {"dimensions": 0},
        {"window": 0},
        {"epochs": 0},
        {"negative": 0},
        {"min_count": 0},
        {"sample": 1.0},
        {"learning_rate": 0.0},
        {"learning_rate": 2.0},
        {"threads": 0},
        {"seed": 2**32},
        {"dimensions": 2.5},
    ],
)
def test_settings_out_of_range(options):
    (name,) = options
    with pytest.raises(InputError, match=f"{name}: expected"):
        TrainSettings(**options)


def test_gensim_missing(monkeypatch, corpus):
    monkeypatch.setitem(sys.modules, "gensim", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'evenhand\[word2vec\]'"):
        train(corpus)
    assert issubclass(MissingExtraError, EvenhandError)


def test_the_command_writes_vectors_and_a_record(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines = [json.dumps({"body": f"she sings and he hums {i % 3}"}) for i in range(50)]
    with gzip.open("corpus.jsonl.gz", "wt") as file:
        file.write("\n".join(lines))
    words = ["lab", "vectors", "train", "corpus.jsonl.gz", "--text", "body", "-o", "v.vec"]
    options = ["--dimensions", "8", "--epochs", "2", "--seed", "3", "--json"]
    assert run([*words, *options]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["vocabulary"], printed["corpus"]["words"]) == (8, 300)
    record = json.loads((tmp_path / "v.run.json").read_text())
    assert record["identity"]["settings"]["seed"] == 3
    assert record["corpus"] == printed["corpus"]
    assert set(record["identity"]["inputs"]) == {"corpus.jsonl.gz"}
    assert record["identity"]["versions"]["gensim"]
    assert run(["measure", "v.vec", "--topic", "gender"]) != 0  # read, but too few words
    assert run([*words, *options]) == 0  # ours, so no --overwrite is needed
    (tmp_path / "v.vec").write_text("mine")
    capsys.readouterr()
    assert run([*words, *options]) == 2
    assert "--overwrite" in capsys.readouterr().err
    assert run(["lab", "vectors", "train", "-", "-o", "w.vec"]) == 2
    assert "<stdin>: expected a file" in capsys.readouterr().err
