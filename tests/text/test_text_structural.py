"""The structural filter: its four steps, the paper's examples, blocks, the hand-checked sheet."""

from __future__ import annotations

import csv
import json
import pickle
from collections import Counter
from pathlib import Path

import pytest

from evenhand.errors import InputError
from evenhand.text.block import Block
from evenhand.text.structural import REASONS, STEP_OF, STEPS, Accepted, Filter, Rejected

SHEET = Path(__file__).resolve().parents[2] / "docs" / "structural-check.csv"

KEPT = "The drummer sits at the back of the stage tapping her foot."
SENTENCES = [
    KEPT,
    "A girl took her kite to the beach.",
    "Someone rolls up his left sleeve and paints the fence with a broom.",
    "The boy met his friends in his house.",
    "Someone carries a ladder to the barn.",
    "A clerk hands him a ticket.",
    "Kowalczyk lifts his hat.",
    "",
]


def reason(sentence: str, **settings: object) -> str:
    result = Filter(**settings).sentence(sentence)
    return result.reason if isinstance(result, Rejected) else "kept"


def test_the_paper_s_examples() -> None:
    assert [reason(s) for s in SENTENCES[:5]] == [
        "kept",
        "other_indicator",
        "someone",
        "several_pronouns",
        "no_pronoun",
    ]
    assert reason(SENTENCES[2], someone=True) == "kept"
    assert reason("The nurse is looking after her patients.") == "kept"


def test_an_accepted_sentence_has_every_field() -> None:
    assert Filter().sentence(KEPT) == Accepted(
        sentence=KEPT,
        masked="The drummer sits at the back of the stage tapping [MASK] foot.",
        pronoun="her",
        offset=KEPT.index("her "),
        antecedent="The drummer",
        confidence=Filter().sentence(KEPT).confidence,  # type: ignore[union-attr]
        resolver="rules",
    )


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The crewman lifts his hat.", "other_indicator"),  # not in any list, but a man
        ("The human lifts his hat.", "kept"),
        ("The bearded plumber drops his wrench.", "other_indicator"),
        ("As Martina sings, the guard lifts his hat.", "other_indicator"),
        ("The WAITRESS drops her tray.", "other_indicator"),
        ("The actor drops her tray.", "kept"),
        ("The clerk says she's tired.", "kept"),
        ("The clerk says she’s seen her.", "several_pronouns"),
        ("He/she signs the form.", "several_pronouns"),
        ("The clerk fed the she-wolf.", "no_pronoun"),
        ("The clerk sees www.he.net/x today.", "no_pronoun"),
        ("The clerk likes this sheet.", "no_pronoun"),
        ("The dog wags his tail.", "unresolved"),
        ("A clerk hands him a ticket.", "unresolved"),
        ("Kowalczyk lifts his hat.", "name"),
        ("Everyone raises his hand.", "someone"),
        ("Each player brings HIS racket.", "kept"),
    ],
)
def test_reasons(sentence: str, expected: str) -> None:
    assert reason(sentence) == expected


def test_switches() -> None:
    assert reason("Kowalczyk lifts his hat.", names=True) == "kept"
    assert reason("Everyone raises his hand.", someone=True) == "kept"
    assert reason("The clerk waits, and she sighs.", min_confidence=0.99) == "unresolved"
    result = Filter(mask="<mask>", min_confidence=0.0).sentence("She's late, says the clerk.")
    assert isinstance(result, Rejected)
    result = Filter(mask="<mask>").sentence("The clerk says she’s late.")
    assert isinstance(result, Accepted)
    assert result.masked == "The clerk says <mask>’s late."
    with pytest.raises(InputError, match="min_confidence: expected 0 to 1, got 2"):
        Filter(min_confidence=2)


def test_a_block_gives_lines_counts_and_reasons() -> None:
    done = Filter(log=True)(Block.of_lines("\n".join(SENTENCES), source="a.txt"))
    (accepted,) = map(json.loads, done.output.splitlines())
    assert accepted["line"] == 1
    assert accepted["source"] == "a.txt"
    assert list(accepted) == [
        "line",
        "source",
        "sentence",
        "masked",
        "pronoun",
        "offset",
        "antecedent",
        "confidence",
        "resolver",
    ]
    rejected = [json.loads(line) for line in done.edits.splitlines()]
    assert [(row["line"], row["reason"]) for row in rejected] == [
        (2, "other_indicator"),
        (3, "someone"),
        (4, "several_pronouns"),
        (5, "no_pronoun"),
        (6, "unresolved"),
        (7, "name"),
    ]
    assert rejected[0]["word"] == "girl"
    assert [done.counts[step] for step in STEPS] == [7, 5, 4, 3, 1]
    reported = {r: done.counts[f"reason:{r}"] for r in REASONS if done.counts.get(f"reason:{r}")}
    assert reported == Counter(row["reason"] for row in rejected)
    assert set(STEP_OF) == set(REASONS)


def test_without_a_log_the_counts_are_the_same() -> None:
    block = Block.of_lines("\n".join(SENTENCES))
    with_log, without = Filter(log=True)(block), Filter()(block)
    assert without.counts == with_log.counts
    assert without.output == with_log.output
    assert without.edits == ""


def test_sentences_of_documents() -> None:
    document = "Dr. Lee came in. The nurse lifts her pen.\nIt rains! The clerk drops his cup."
    block = Block.of_documents(["Nothing here.", document], source="b.jsonl")
    done = Filter(split=True)(block)
    rows = [json.loads(line) for line in done.output.splitlines()]
    assert [(row["line"], row["sentence"]) for row in rows] == [
        (2, "The nurse lifts her pen."),
        (2, "The clerk drops his cup."),
    ]
    assert [row["sentence"][row["offset"] :][:3] for row in rows] == ["her", "his"]
    assert done.counts["read"] == 5
    assert Filter()(block).counts["one_pronoun"] == 0


def test_blocks_do_not_change_the_result() -> None:
    text = "\n".join(SENTENCES * 3) + "\n"
    complete = Filter()(Block.of_lines(text))
    parts = [
        Filter()(Block.of_lines(line + "\n", line=n)) for n, line in enumerate(SENTENCES * 3, 1)
    ]
    assert "".join(part.output for part in parts) == complete.output
    assert sum((Counter(part.counts) for part in parts), Counter()) == Counter(complete.counts)


def test_empty_and_odd_text() -> None:
    for text in ("", "\n\n", "   \n", "his", "\ud800 his 🙂 hat", "ʼs he's"):
        done = Filter(log=True)(Block.of_lines(text))
        assert done.output == ""
        assert done.counts["read"] == len(done.edits.splitlines())


@pytest.mark.parametrize(
    ("sentence", "named"),
    [
        ("Bingham lived there with a paid nurse to look after her.", "Bingham"),
        ("McKinnon was named a member of the order in praise of his work.", "McKinnon"),
        ("The nurse lifts her pen in front of McKinnon.", ""),
    ],
)
def test_somebody_named_before_the_pronoun_may_be_meant(sentence: str, named: str) -> None:
    result = Filter().sentence(sentence)
    assert isinstance(result, Rejected) == bool(named)
    if isinstance(result, Rejected):
        assert (result.reason, result.word) == ("unresolved", named)


def test_what_is_no_text_does_not_spoil_the_json() -> None:
    text = b"The nurse lifts her caf\xe9 cup.\nIt \xff rains.\n".decode("utf-8", "surrogateescape")
    done = Filter(log=True)(Block.of_lines(text))
    for lines in (done.output, done.edits):
        assert "\ufffd" in json.loads(lines.encode())["sentence"]


def test_a_filter_can_be_sent_to_another_process() -> None:
    work = Filter(someone=True)
    again = pickle.loads(pickle.dumps(work))  # noqa: S301
    assert again == work
    assert again(Block.of_lines(KEPT)).output == work(Block.of_lines(KEPT)).output


def test_swag_is_what_the_sheet_judged(shared: Path) -> None:
    """Every accepted sentence was judged by hand; at least nine of ten are structural."""
    text = (shared / "data" / "swag" / "swag_sent1_subset.txt").read_text(encoding="utf-8")
    done = Filter()(Block.of_lines(text))
    rows = {row["line"]: row for row in map(json.loads, done.output.splitlines())}
    with SHEET.open(encoding="utf-8", newline="") as file:
        sheet = {int(row["line"]): row for row in csv.DictReader(file)}
    assert done.counts["read"] == 11_841
    judged = {line: sheet[line] for line in rows if line in sheet}
    assert len(rows) >= 90
    assert len(judged) / len(rows) >= 0.95
    assert all(rows[line]["pronoun"].lower() == row["pronoun"] for line, row in judged.items())
    verdicts = Counter(row["structural"] for row in judged.values())
    assert set(verdicts) <= {"yes", "no"}
    assert verdicts["yes"] / verdicts.total() >= 0.9
