"""Golden inputs of benchmarks/peers.py: Evenhand's answers are the exact ones, and those published.

No other tool is needed. The rows of docs/results/peers.csv are what `make peers` saw.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
import peer_cases  # noqa: E402
import peer_drivers  # noqa: E402
import peers  # noqa: E402

CASES = peer_cases.cases()
ROWS = peers.read()


@pytest.mark.parametrize("name", CASES)
def test_ours_is_the_exact_answer(name):
    case = CASES[name]
    expected = case.exact() if case.says is None else case.says
    assert peers.close(case.ours(), expected, case.tolerance)


@pytest.mark.parametrize("name", CASES)
def test_published_numbers_are_those_computed(name):
    case = CASES[name]
    ours, exact = peers.shown(case.ours()), peers.shown(case.exact())
    rows = [row for row in ROWS if row["case"] == name]
    for row in rows:
        for saved, now in ((row["ours"], ours), (row["exact"], exact)):
            assert saved == now or abs(float(saved) - float(now)) < 0.002
    assert rows, f"no peer was asked {name}"


def test_the_page_has_the_published_table():
    assert peers.markdown(ROWS) in peers.PAGE.read_text(encoding="utf-8")


def test_verdicts_follow_from_the_numbers():
    for row in ROWS:
        case = CASES[row["case"]]
        if row["verdict"] == "raises":
            continue
        theirs, exact = (
            float(row[name]) if row[name].lstrip("-")[0].isdigit() else row[name]
            for name in ("theirs", "exact")
        )
        same = peers.close(theirs, exact, max(case.tolerance, 0.002))
        assert same == (row["verdict"] == "agrees"), row


def test_every_claim_has_an_input_and_a_driver():
    assert set(peers.PEERS) == set(peer_drivers.DRIVERS)
    claims = [(name, claim.case) for name, peer in peers.PEERS.items() for claim in peer.claims]
    assert {case for _, case in claims} == set(CASES)
    saved = {(row["peer"], row["case"]) for row in ROWS}
    assert saved == set(claims)
    wrong = {(row["peer"], row["case"]) for row in ROWS if row["verdict"] in ("differs", "raises")}
    for name, peer in peers.PEERS.items():
        for claim in peer.claims:
            assert claim.why or (name, claim.case) not in wrong, claim


def test_a_peer_that_does_not_install_is_a_row(monkeypatch, tmp_path, capsys):
    """A version of Python that is not there, with the page and the rows as they were."""
    import check_wheel

    monkeypatch.setattr(peers, "interpreter", lambda _wanted: None)
    monkeypatch.setattr(peers, "CSV", tmp_path / "peers.csv")
    monkeypatch.setattr(peers, "PAGE", tmp_path / "peers.md")
    peers.PAGE.write_text(f"before {peers.BEGIN}{peers.END} after")
    peers.CSV.write_text(Path(ROOT / "docs/results/peers.csv").read_text())
    monkeypatch.setattr(sys, "argv", ["peers.py", "responsibly", "--keep", str(tmp_path / "kept")])
    peers.main()
    printed = capsys.readouterr().out
    assert "| responsibly 0.1.3 | | not run: needs Python 3.7, which is not here |" in printed
    assert peers.read() == ROWS
    assert issubclass(check_wheel.Failed, Exception)


def test_drivers_need_nothing_of_evenhand():
    """They run in environments without it, one of them under an old Python."""
    script = "import peer_drivers, sys; sys.exit('evenhand' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT / "benchmarks", check=False)
    assert done.returncode == 0
