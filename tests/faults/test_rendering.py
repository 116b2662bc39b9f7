"""A renderer that dies takes no work with it: the page is written and says what is missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import evenhand as eh
from evenhand import rendering
from evenhand.charts import ChartSet, forest, save_charts, to_svg
from evenhand.cli.output import save_figures
from evenhand.errors import DrawingError
from evenhand.report.blocks import Figure

ROWS = [{"label": "nurse", "value": 0.2, "low": 0.1, "high": 0.3}]


@pytest.fixture
def dying(monkeypatch):
    """A renderer that ends by a signal, as the real one does without memory."""
    monkeypatch.setattr(rendering, "_RENDERER", rendering._Renderer())
    server = "import os, signal\nos.kill(os.getpid(), signal.SIGTRAP)"
    monkeypatch.setattr(rendering, "SERVER", server)


def test_the_renderer_that_died_is_named(dying):
    with pytest.raises(DrawingError, match=r"the renderer ended \(signal 5\)"):
        to_svg(forest(ROWS))


def test_a_page_says_which_chart_is_missing(dying):
    figure = Figure.of("a", forest(ROWS), "caption", "words")
    assert "the renderer ended" in figure.svg
    assert "the renderer ended" in figure.inlined


def test_figures_that_could_not_be_drawn_are_named(dying, tmp_path, capsys):
    save_figures(ChartSet({"a": forest(ROWS)}), tmp_path, ("svg", "html"))
    assert [path.name for path in tmp_path.iterdir()] == ["a.html"]
    assert "figure not drawn: a.svg: the chart could not be drawn" in capsys.readouterr().err


def test_after_a_death_the_next_chart_is_drawn(monkeypatch):
    monkeypatch.setattr(rendering, "_RENDERER", rendering._Renderer())
    first = to_svg(forest(ROWS))
    rendering._RENDERER._process.kill()
    with pytest.raises(DrawingError, match="signal 9"):
        to_svg(forest(ROWS))
    assert to_svg(forest(ROWS)) == first
    rendering._RENDERER.close()


def test_a_wrong_specification_is_an_error_and_not_the_end():
    with pytest.raises(DrawingError):
        rendering.render("svg", {"mark": 5}, "6_1")
    assert to_svg(forest(ROWS)).startswith("<svg")


def test_files_say_who_wrote_them(tmp_path):
    from evenhand.files import is_ours

    paths = save_charts({"a": forest(ROWS)}, tmp_path, ("svg", "pdf", "html"))
    assert all(map(is_ours, paths))
    assert len(paths) == 3


LIMITED = """
import resource, sys
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
from evenhand.cli import run
sys.exit(run(["audit", "--vectors", "glove", "--topic", "gender", "--quick", "-o", "out"]))
"""


@pytest.mark.slow
def test_an_audit_under_a_limit_of_memory(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", LIMITED], cwd=tmp_path, capture_output=True, text=True, timeout=500,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "out" / "report.html").read_text()
    assert "the renderer ended" in page
    assert eh.__version__
    assert Path(tmp_path / "out" / "results.json").is_file()
