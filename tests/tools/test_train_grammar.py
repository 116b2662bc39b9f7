"""Training the judge of pronouns on a small made-up text."""

from __future__ import annotations

import bz2
import random
from pathlib import Path

import pytest

import train_grammar
from evenhand.text.grammar import (
    Model,
    PronounContext,
    embedded_model,
    following,
    preceding,
    read_model,
    subject,
)
from grammar_training.examples import of_contraction, of_her, of_his
from grammar_training.fitting import balanced
from grammar_training.writing import write_model


def document(rng: random.Random) -> str:
    noun = rng.choice(["dog", "boat", "garden", "sister", "letter"])
    verb = rng.choice(["saw", "met", "called", "found", "heard"])
    time = rng.choice(["yesterday", "again", "today", "in May"])
    done = rng.choice(["been", "seen", "lost", "found"])
    parts = [
        f"I {verb} him {time}.",
        f"He {verb} his {noun} {time}.",
        f"They {verb} them {time}.",
        f"They {verb} their {noun} {time}.",
        f"My {noun} is bigger than yours, and your {noun} is mine.",
        f"They're a {noun}, you know.",
        f"You've {done} a {noun}.",
    ]
    rng.shuffle(parts)
    return " ".join(parts)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = random.Random(0)  # noqa: S311
    path = tmp_path_factory.mktemp("grammar") / "text.txt.bz2"
    path.write_bytes(bz2.compress("\n\n".join(document(rng) for _ in range(300)).encode()))
    return path


@pytest.fixture(scope="module")
def model(text: Path) -> Model:
    out = text.with_name("model.npz")
    assert train_grammar.main(["--text", str(text), "--out", str(out), "--least", "2"]) == 0
    return read_model(out.read_bytes())


def yes(model: Model, task: str, sentence: str, word: str, own: str = "") -> bool:
    start = sentence.index(word)
    end = start + len(word)
    who = subject(sentence, start, own)
    around = PronounContext(following(sentence, start, end), preceding(sentence, start), who)
    return model.score(task, around) > 0


def test_it_learns_what_the_text_shows(model: Model) -> None:
    assert yes(model, "her", "We saw her boat today.", "her", "she")
    assert not yes(model, "her", "We saw her today.", "her", "she")
    assert yes(model, "his", "It is his dog.", "his", "he")
    assert not yes(model, "his", "It is bigger than his.", "his", "he")
    assert yes(model, "contraction", "She's a sister, you know.", "She's")
    assert not yes(model, "contraction", "She's seen a boat.", "She's")


def test_the_same_text_gives_the_same_bytes(text: Path, model: Model) -> None:
    first, again = text.with_name("model.npz"), text.with_name("again.npz")
    train_grammar.main(["--text", str(text), "--out", str(again), "--least", "2"])
    assert first.read_bytes() == again.read_bytes()


def test_the_file_is_what_was_read() -> None:
    embedded = embedded_model()
    data = write_model(embedded)
    assert read_model(data) == embedded
    assert data == write_model(read_model(data))
    assert len(data) < 1_000_000


def test_every_twentieth_document_is_held_out(text: Path, tmp_path: Path) -> None:
    train, held = train_grammar.parts([text])
    assert (len(train), len(held)) == (285, 15)
    plain = tmp_path / "lines.txt"
    plain.write_text("one\ntwo\n")
    assert train_grammar.documents(plain) == ["one", "two"]


def test_labels_come_from_the_words() -> None:
    her = [
        (e.source, e.yes) for e in of_her("He gave them his US map. The US saw a friend of his.")
    ]
    assert her == [("them", False), ("his", True)]
    his = [(e.source, e.yes) for e in of_his("I took your gold to the mine. Yours is mine.")]
    assert his == [("your", True), ("mine", False)]
    has = "We're ill. They have a dog. I've never really seen it. She has been. He is. It is red."
    assert [(e.source, e.yes) for e in of_contraction(has)] == [
        ("we're", True),
        ("i've", False),
        ("she has", False),
        ("it is", True),
    ]


def test_both_kinds_of_documents_get_the_same_shares() -> None:
    talk = "I saw him. You saw him. I saw my dog and my cat and my cow."
    plain = "The river passed them. The river left its bed and their fields for their towns."
    examples = [*of_her(talk), *of_her(plain)]
    weights = balanced(examples, 0.6)
    for spoken in (True, False):
        kept = [(w, e) for w, e in zip(weights, examples, strict=True) if e.talk is spoken]
        total = sum(w for w, _ in kept)
        assert sum(w for w, e in kept if e.yes) == pytest.approx(0.6 * total)


def test_a_missing_text_is_an_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    missing = tmp_path / "none.txt"
    assert train_grammar.main(["--text", str(missing), "--out", str(tmp_path / "out.npz")]) == 2
    assert "none.txt" in capsys.readouterr().err
    assert not (tmp_path / "out.npz").exists()
