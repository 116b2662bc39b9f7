"""Progress: bars in a terminal, lines in logs, nothing with --quiet."""

import io
import re
import sys
import time

import click
import pytest

from evenhand.cli import progress, run
from evenhand.cli.commands import Command
from evenhand.cli.progress import INTERVAL, ProgressLines, bar, progress_bar, step_bars


class Clock:
    """A clock that a test moves."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    """The clock of progress in lines, on a stderr that is no terminal."""
    moved = Clock()
    defaults = dict(ProgressLines.__init__.__kwdefaults__, clock=moved)
    monkeypatch.setattr(ProgressLines.__init__, "__kwdefaults__", defaults)
    return moved


def lines(clock, *, seconds, steps, **options):
    written = []
    show = ProgressLines({"scoring": "sentences"}, clock=clock, write=written.append)
    for done in steps:
        show("scoring", done, **options)
        clock.now += seconds
    return written


def test_a_line_every_few_seconds():
    written = lines(Clock(), seconds=1, steps=range(0, 1000, 10), total=1000, text="")
    assert len(written) == 99 // INTERVAL
    assert written[0] == "scoring: 50 of 1,000 (5%), 10 sentences/s, 1:35 left"


def test_short_work_writes_nothing():
    assert lines(Clock(), seconds=INTERVAL / 20, steps=range(20), total=20, text="") == []


def test_lines_without_a_total_and_with_a_rate_of_their_own():
    assert lines(Clock(), seconds=6, steps=(0, 12), total=None, text="") == [
        "scoring: 12, 2 sentences/s"
    ]
    assert lines(Clock(), seconds=6, steps=(0, 12), total=24, text="3 cells/s") == [
        "scoring: 12 of 24 (50%), 3 cells/s"
    ]


def test_a_new_step_has_a_rate_of_its_own():
    clock, written = Clock(), []
    show = ProgressLines({}, clock=clock, write=written.append)
    show("reading", 0, 10, "")
    clock.now += 6
    show("training", 100, 200, "")
    clock.now += 10
    show("training", 150, 200, "epoch 2")
    assert written == [
        "training: 100 of 200 (50%)",
        "training: 150 of 200 (75%), 5/s, 0:10 left, epoch 2",
    ]


def test_a_step_of_long_work_has_a_line_when_it_begins():
    clock, written = Clock(), []
    show = ProgressLines({}, clock=clock, write=written.append)
    for step, seconds in (("one", 2), ("two", 4), ("three", 2), ("four", 0.5), ("five", 9)):
        show(step, 0, None, "")
        clock.now += seconds
    assert written == ["three", "four"]


def test_the_steps_of_a_command_share_the_time(clock, capsys):
    @click.command(cls=Command)
    def work():
        for label in ("one", "two", "three"):
            for _ in bar([1, 2], label):
                clock.now += 2

    work.main([], standalone_mode=False)
    assert capsys.readouterr().err.splitlines() == [
        "two: 1 of 2 (50%), 0.5/s, 0:02 left",
        "three",
    ]


def test_without_a_terminal_progress_is_lines_on_stderr(clock, capsys):
    with progress_bar("reading", "kB", scale=1000) as show:
        clock.now += 10
        show(50_000, 100_000)
    for _ in bar([1, 2, 3], "measuring"):
        clock.now += 3
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines() == [
        "reading: 50 of 100 (50%), 5 kB/s, 0:10 left",
        "measuring: 2 of 3 (67%), 0.33/s, 0:03 left",
    ]


def test_quiet_silences_lines_and_bars(clock, capsys, monkeypatch):
    @click.command(cls=Command)
    def work():
        with step_bars() as show:
            assert show is None
        for _ in bar([1, 2], "working"):
            clock.now += 10

    for quiet in ("-q", "--quiet"):
        work.main([quiet], standalone_mode=False)
        assert capsys.readouterr().err == ""

    @click.command(cls=Command)
    def loud():
        for _ in bar([1, 2], "working"):
            clock.now += 10

    loud.main([], standalone_mode=False)
    assert capsys.readouterr().err.startswith("working: 1 of 2")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    work.main(["-q"], standalone_mode=False)
    assert capsys.readouterr().err == ""


def test_a_measuring_command_writes_lines_and_is_quiet(clock, capsys, monkeypatch):
    monkeypatch.setattr(progress, "INTERVAL", -1.0)  # every call is due
    arguments = ["measure", "glove", "--topic", "gender", "--metric", "mac", "--json"]
    assert run(arguments) == 0
    out, err = capsys.readouterr()
    assert out.startswith("{")
    assert "measuring" in err
    assert run([*arguments, "--quiet"]) == 0
    assert capsys.readouterr() == (out, "")


def test_progress_bars_show_rate_time_left_and_text(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "110")
    with step_bars({"encoding": "tokens"}) as show:
        for number_done in range(4):
            show("encoding", 20 * number_done, 100, f"{number_done} of 9 texts")
            time.sleep(0.01)
    assert re.search(r"[\d,]+ tokens/s, 0:\d\d left, 3 of 9 texts", sys.stderr.getvalue())
    with step_bars() as show:
        show("rewriting", 0, 1, "")
        show("training", 10, 10, "12 episodes/s, 0:00 left")
    shown = re.sub(r"\x1b\[[\d;?]*\w", "", sys.stderr.getvalue())
    assert "10/10 12 episodes/s, 0:00 left" in shown
