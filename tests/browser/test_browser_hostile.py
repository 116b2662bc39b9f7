"""Labels, words, file and model names that try to be code: an audit shows them as they are."""

from __future__ import annotations

import csv
import html
import re
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
import yaml
from devtools import Page

from evenhand.audit import audit, stages
from evenhand.cli import run
from evenhand.simulate import world
from evenhand.vectors import nulls
from evenhand.vectors.store import Vectors
from small_encoder import save_small

pytestmark = pytest.mark.slow

Open = Callable[..., Page]

MARKUP = "<img src=x onerror=window.pwned=1>"
TEMPLATE = "{{7*191}}{% raw %}${7*191}"
VEGA = "'+warn(datum.value)+'\"\\"
PARENT = "../../../escaped"
FORMULA = '=HYPERLINK("http://127.0.0.1:9/x","y")'
TERMINAL = "\x1b[31mred\x07\u202eder\u2069"
SCRIPT = "</script><script>window.pwned=1</script>"
MARKDOWN = "[a](javascript:window.pwned=1) `b` | c"
LABELS = (MARKUP, TEMPLATE, VEGA, PARENT, FORMULA, TERMINAL, SCRIPT, MARKDOWN)


def listing(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*")}


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of an audit of a model, vectors and data of hostile names and content."""
    home = tmp_path_factory.mktemp("hostile") / "a" / "b" / "c"
    home.mkdir(parents=True)
    stages.loaded.cache_clear()
    model = save_small(home / "{{7*191}}<svg onload=window.pwned=1>")
    w = world(bias=0.5, dim=30, vocabulary=600, seed=2, classes=(MARKUP, FORMULA))
    v = Vectors.from_arrays([*w.words, *LABELS], [*w.matrix, *w.matrix[:8]])
    v.save(home / f"{MARKUP}.npz")
    topic = replace(w.topic, name=f"{PARENT} {TEMPLATE}", title=f"{SCRIPT}{TERMINAL}")
    rows = [
        {
            "text": f"{('He', 'She')[(n % 3 == 0) == number % 2]} met a {label} in town {n}.",
            "label": label,
            "gender": "MF"[(n % 3 == 0) == number % 2],
        }
        for number, label in enumerate(LABELS)
        for n in range(12)
    ]
    data = home / f"{FORMULA.replace('/', '')}{TERMINAL}.csv"
    pd.DataFrame(rows).to_csv(data, index=False)
    before = listing(home.parents[2])
    with pytest.MonkeyPatch.context() as patch:
        few = partial(nulls.dimension_spread, dims=(2, 10, 50), points=100, repeats=4)
        patch.setattr(nulls, "dimension_spread", few)
        done = audit(
            home / f"{MARKUP}.npz",
            model=model,
            data=data,
            topics=[topic],
            out=home / "out",
            quick=True,
            interactive=True,
        )
    assert not done.failed
    new = listing(home.parents[2]) - before
    assert {name for name in new if not name.startswith("a/b/c/out")} == {
        f"a/b/c/{MARKUP}.npz.evenhand-cache"  # beside the vectors, as documented
    }
    return home / "out"


@pytest.fixture
def report(hostile: Path) -> Path:
    return hostile / "report.html"


def test_nothing_is_executed_in_the_page(show: Open, report: Path) -> None:
    page = show()
    assert page.complaints() == []
    assert page.requests() == [report.as_uri()]
    page.run("new Promise(done => setTimeout(done, 300))")
    assert page.run("window.pwned") is None
    text = page.run("document.documentElement.textContent")
    assert "1337" not in text
    for shown in (MARKUP, TEMPLATE, FORMULA, PARENT):
        assert shown in text
    assert page.run("document.querySelectorAll('img, svg[onload], [onerror]').length") == 0
    assert page.run("document.querySelectorAll('a[href^=javascript]').length") == 0


def test_characters_that_cannot_be_seen_are_spelled_out(report: Path) -> None:
    text = report.read_text(encoding="utf-8")
    assert not set(text) & set("\x00\x07\x1b\u202e\u2066\u2069")
    assert "\\x1b[31mred\\x07\\u202eder" in html.unescape(text)


def test_figures_are_well_formed_and_have_no_script(hostile: Path) -> None:
    figures = [*hostile.rglob("*.svg")]
    assert figures
    for file in figures:
        for element in ElementTree.parse(file).iter():  # noqa: S314
            assert not element.tag.endswith(("script", "foreignObject", "}a"))
            assert not [name for name in element.attrib if name.lower().startswith("on")]


def test_cards_have_no_markup_of_labels(hostile: Path) -> None:
    cards = [*hostile.glob("*.md")]
    assert len(cards) == 4
    for card in cards:
        text = card.read_text(encoding="utf-8")
        front, body = re.match(r"(?:---\n(.*?)\n---\n)?(.*)", text, re.DOTALL).groups()
        assert front is None or isinstance(yaml.safe_load(front), dict)
        assert not re.search(r"(?<!\\)<(img|script|/script|svg)", body)
        assert not re.search(r"(?<!\\)\]\(javascript", body)
        assert "1337" not in body
        assert not set(body) & set("\x07\x1b\u202e")


def test_tables_give_the_labels_back_as_they_are(hostile: Path) -> None:
    """CSV files are data; only what a spreadsheet would compute has an apostrophe before it."""
    labels = {f"'{label}" if label.startswith("=") else label for label in LABELS}
    odds = pd.read_csv(hostile / "tables" / "measurements.csv")
    assert labels <= set(odds["query"])
    with (hostile / "tables" / "measurements.csv").open(newline="", encoding="utf-8") as file:
        assert labels <= {row["query"] for row in csv.DictReader(file)}


def test_a_terminal_shows_no_control_characters(tmp_path: Path, capsys) -> None:
    data = tmp_path / "d.csv"
    rows = [
        {"text": f"{n} {s}", "label": s, "gender": "MF"[n % 2]} for n in range(9) for s in LABELS
    ]
    pd.DataFrame(rows).to_csv(data, index=False)
    assert run(["odds", str(data), "--label", "label"]) in (0, 2)
    assert run(["info", f"{tmp_path}/{TERMINAL}"]) == 2
    shown = capsys.readouterr()
    assert shown.err.startswith("error: ")
    for stream in shown:
        assert not set(stream) & set("\x07\x1b\u202e")
