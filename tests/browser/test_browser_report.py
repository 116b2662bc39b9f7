"""The page in a real browser: it opens without an error, and its script works."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from evenhand.audit import audit
from evenhand.simulate import world
from evenhand.vectors import nulls
from evenhand.vectors.store import Vectors

Open = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("chromium is not installed")
    return found


@pytest.fixture(scope="session")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    w = world(bias=0.5, dim=30, vocabulary=600, seed=2)
    with pytest.MonkeyPatch.context() as patch:
        few = partial(nulls.dimension_spread, dims=(2, 10, 50), points=100, repeats=4)
        patch.setattr(nulls, "dimension_spread", few)
        out = tmp_path_factory.mktemp("browser") / "out"
        v = Vectors.from_arrays(w.words, w.matrix)
        return audit(v, topics=[w.topic], out=out, quick=True).report


@pytest.fixture
def open_page(chromium: str, tmp_path: Path) -> Open:
    def run(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [
                chromium, "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
                "--disable-background-networking", f"--user-data-dir={tmp_path / 'profile'}",
                "--enable-logging=stderr", "--virtual-time-budget=3000", *options, "--dump-dom",
                path.as_uri(),
            ],
            capture_output=True, text=True, timeout=120, check=True,
        )  # fmt: skip

    return run


def with_script(page: Path, target: Path, script: str) -> Path:
    """A copy of the page that acts on itself once loaded."""
    text = page.read_text(encoding="utf-8").replace("</body>", f"<script>{script}</script></body>")
    target.write_text(text, encoding="utf-8")
    return target


def console(stderr: str) -> list[str]:
    return [line for line in stderr.splitlines() if ":CONSOLE" in line]


def test_it_opens_without_a_complaint(page: Path, open_page: Open) -> None:
    shown = open_page(page)
    assert console(shown.stderr) == []
    assert "Simulated: strong evidence" in shown.stdout
    assert (
        '<th scope="col" class="number"><button type="button">Value</button></th>' in shown.stdout
    )
    assert re.search(r'<div class="search">', shown.stdout)


def test_a_complaint_would_be_seen(page: Path, open_page: Open, tmp_path: Path) -> None:
    broken = with_script(page, tmp_path / "broken.html", "nothing.here()")
    assert console(open_page(broken).stderr)


def test_a_click_sorts_and_a_second_turns_round(
    page: Path, open_page: Open, tmp_path: Path
) -> None:
    acting = """
      const table = document.querySelector("table.words");
      const values = () => Array.from(table.tBodies[0].rows, r => Number(r.cells[2].dataset.value));
      const sorted = sign => values().every((v, i, all) => !i || sign * (v - all[i - 1]) >= 0);
      const button = table.querySelectorAll("thead button")[2];
      button.click(); const up = sorted(1);
      button.click(); const down = sorted(-1);
      document.title = `${values().length > 10} ${up} ${down}`;
    """
    shown = open_page(with_script(page, tmp_path / "sort.html", acting))
    assert "<title>true true true</title>" in shown.stdout


def test_search_leaves_only_matching_rows(page: Path, open_page: Open, tmp_path: Path) -> None:
    acting = """
      const box = document.getElementById("find");
      const shown = () => document.querySelectorAll("table.words tbody tr:not([hidden])").length;
      const before = shown();
      box.value = "female-stereotype-3"; box.dispatchEvent(new Event("input"));
      const few = shown(), said = document.getElementById("found").textContent;
      box.value = ""; box.dispatchEvent(new Event("input"));
      document.title = `${few} ${said} ${before > few && shown() === before}`;
    """
    shown = open_page(with_script(page, tmp_path / "search.html", acting))
    assert "<title>1 1 row true</title>" in shown.stdout


def test_nothing_is_cut_off_at_phone_width(page: Path, open_page: Open, tmp_path: Path) -> None:
    frame = tmp_path / "frame.html"
    frame.write_text(
        f'<iframe id="f" src="{page.as_uri()}" width="390" height="800"></iframe>'
        "<script>addEventListener('load', () => { const d = f.contentDocument.documentElement;"
        " document.title = d.scrollWidth + ' ' + d.clientWidth; });</script>"
    )
    shown = open_page(frame, "--allow-file-access-from-files")
    widths = re.search(r"<title>(\d+) (\d+)</title>", shown.stdout)
    assert widths, shown.stderr
    assert int(widths[1]) <= int(widths[2]) <= 390
