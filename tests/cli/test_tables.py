"""Tables at every width: they fit, no number is cut, and rows can be distinguished."""

import random
import re

import pytest

from evenhand.cli.tables import lay_out, width, wrap

WIDTHS = (60, 80, 110, 200)
WORDS = "stereotype associated religion: words held mostly by men, sentences of Ye et al. (2021)"


def random_table(seed):
    """Names, numbers, intervals and texts of every length."""
    draw = random.Random(seed)  # noqa: S311
    words = WORDS.split()

    def text(most):
        return " ".join(draw.choice(words) for _ in range(draw.randint(1, most)))

    kinds = ["name", *draw.choices(["number", "interval", "short", "prose"], k=draw.randint(1, 9))]
    make = {
        "name": lambda: text(draw.choice([2, 8])),
        "number": lambda: f"{draw.uniform(-2000, 2000):.3f}",
        "interval": lambda: f"[{draw.uniform(-9, 0):.3f}, {draw.uniform(0, 90):.3f}]",
        "short": lambda: draw.choice(["better", "no clear change", "", "–"]),
        "prose": lambda: text(30),
    }
    headers = [draw.choice(["value", "", "p of chance", "interval after"]) for _ in kinds]
    return headers, [[make[kind]() for kind in kinds] for _ in range(draw.randint(1, 5))]


@pytest.mark.parametrize("limit", WIDTHS)
@pytest.mark.parametrize("seed", range(40))
def test_every_table_fits_and_has_every_number_and_word(seed, limit):
    headers, rows = random_table(seed)
    lines = [line.text for line in lay_out(headers, rows, limit)]
    assert max(map(width, lines)) <= limit
    shown = "\n".join(lines)
    for row in rows:
        for cell in row:
            if re.fullmatch(r"[-\d.]+|\[.*\]", cell):
                assert re.search(rf"(?<![\d.-]){re.escape(cell)}(?![\d.])", shown), cell
            for word in cell.replace("–", "").split():
                assert word in shown
    assert "…" not in shown


def columns_of(lines, header):
    """Where a column of numbers ends."""
    [head] = [line for line in lines if header in line]
    return head.index(header) + len(header)


def test_what_fits_is_one_line_per_row():
    rows = [["weat", "0.500", "[0.100, 0.900]"], ["mac", "-1.000", "[-2.000, ∞]"]]
    lines = [line.text for line in lay_out(["metric", "value", "interval"], rows, 80)]
    assert len(lines) == 2 + len(rows)
    assert all(line.endswith("]") for line in lines[2:])
    assert lines[2].index("0.500") + 5 == columns_of(lines, "value")


def test_prose_is_a_paragraph_below_its_row_where_the_column_would_be_narrow():
    sentence = "Where a sentence does not say who is meant, the model expects a man. " * 3
    rows = [
        [f"mini: {topic}", "strong evidence", "0.900", "[0.830, 0.950]", "1e-04", sentence.strip()]
        for topic in ("gender", "religion")
    ]
    headers = ["what", "verdict", "value", "interval", "p", "summary"]
    for limit in (80, 109):
        lines = [line.text for line in lay_out(headers, rows, limit)]
        first = next(i for i, line in enumerate(lines) if "mini: gender" in line)
        assert "[0.830, 0.950]" in lines[first]
        assert lines[first + 1].startswith("    Where a sentence does not say who is meant,")
        assert "" in lines[first:], "a line between the rows"
    wide = [line.text for line in lay_out(headers, rows, 200)]
    assert "Where a sentence" in next(line for line in wide if "mini: gender" in line)


def test_names_have_a_line_of_their_own_where_numbers_take_the_rest():
    query = "religion: christian/muslim: muslim stereotypes"
    rows = [
        ["rnd", query.replace("muslim s", f"{word} s"), "0.064", "[-0.019, 0.147]", "0.112", "4"]
        for word in ("muslim", "christian")
    ]
    headers = ["metric", "query", "value", "interval", "p", "n"]
    lines = [line.text for line in lay_out(headers, rows, 60)]
    assert f" rnd  {rows[0][1]}" in lines
    assert lines[lines.index(f" rnd  {rows[1][1]}") + 1].split() == [
        "0.064",
        "[-0.019,",
        "0.147]",
        "0.112",
        "4",
    ]


def test_many_numbers_are_shown_in_blocks_with_the_names_again():
    rows = [[name, *(f"{i}.125" for i in range(12))] for name in ("crossed", "baseline")]
    lines = [line.text for line in lay_out(["model", *(f"x{i}" for i in range(12))], rows, 60)]
    assert sum("crossed" in line for line in lines) > 1
    assert max(map(len, lines)) <= 60


def test_a_long_word_is_cut_only_where_it_must_be():
    assert wrap("neighbour_rank_correlation of words", 30) == [
        "neighbour_rank_correlation of",
        "words",
    ]
    path = "/" + "x" * 50
    assert wrap(path, 20, cut=False) == [path]
    assert max(map(width, wrap("名" * 30, 20))) <= 20
    rows = [["neighbour_rank_correlation", "0.959"], ["x" * 70, "0.100"]]
    shown = [line.text for line in lay_out(["metric", "value"], rows, 60)]
    assert any("neighbour_rank_correlation" in line for line in shown)
    assert max(map(len, shown)) <= 60


def test_an_interval_is_never_wrapped():
    text = "changed by 0.500 [0.400, 0.600] in 12 words, p = 0.010, of which 0.250 [-∞, ∞] are new"
    for limit in range(24, 90):
        joined = wrap(text, limit)
        for whole in ("0.500 [0.400, 0.600]", "p = 0.010", "0.250 [-∞, ∞]"):
            assert any(whole in line for line in joined), (limit, joined)


def test_a_text_of_megabytes_is_shortened():
    """A word of 8 MB took minutes to lay out: each line copied the rest of it."""
    rows = [["0.500", "a" * 8_000_000, "b " * 4_000_000]]
    lines = [line.text for line in lay_out(["value", "word", "text"], rows, 80)]
    assert max(map(width, lines)) <= 80
    assert sum(map(len, lines)) < 10_000
    assert "".join(lines).count("…") == 2
