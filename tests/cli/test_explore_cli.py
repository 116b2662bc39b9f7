"""The command `evenhand explore`, without its server."""

from __future__ import annotations

import sys
import webbrowser

import pytest
from cli_shell import failure, output

from evenhand.cli.options import ModelLoader
from evenhand.simulate import masked

server = pytest.importorskip("evenhand.explore.server", reason="needs the extra explore")


@pytest.fixture
def served(monkeypatch):
    """What would be served; the user presses Ctrl-C at once."""
    calls = []

    def serve(subjects, connection, *, ready):
        port = connection.getsockname()[1]
        calls.append((subjects, port))
        ready(f"http://127.0.0.1:{port}/#token=secret")
        raise KeyboardInterrupt

    monkeypatch.setattr(server, "serve", serve)
    monkeypatch.setattr(webbrowser, "open", lambda address: calls.append(address))
    return calls


def test_it_prints_the_address_opens_the_browser_and_ends_cleanly(capsys, served):
    printed = output(capsys, "explore", "--vectors", "glove")
    (subjects, port), opened = served
    assert printed.splitlines() == [
        f"explorer: http://127.0.0.1:{port}/#token=secret",
        "Ctrl-C ends it.",
        "explorer: ended",
    ]
    assert opened == f"http://127.0.0.1:{port}/#token=secret"
    assert list(subjects.vectors) == ["glove"]
    assert not subjects.models


def test_no_browser(capsys, served):
    output(capsys, "explore", "--vectors", "glove", "--no-browser")
    assert len(served) == 1


def test_without_options_the_embedded_model_and_vectors(capsys, served, monkeypatch):
    monkeypatch.setattr(
        ModelLoader, "any", lambda _, name: masked.bigram_model({"a": {"b": 0.5}}, name=name)
    )
    output(capsys, "explore", "--no-browser")
    [(subjects, _)] = served
    assert (list(subjects.models), list(subjects.vectors)) == (["mini"], ["glove"])


def test_predictions(capsys, served, tmp_path):
    path = tmp_path / "test.csv"
    path.write_text("y,yhat,sex,bio\nnurse,judge,f,She has nursed.\n", encoding="utf-8")
    columns = ("--true", "y", "--pred", "yhat", "--group", "sex", "--text", "bio")
    output(capsys, "explore", "--predictions", str(path), *columns, "--no-browser")
    [(subjects, _)] = served
    assert subjects.predictions.rows[0]["text"] == "She has nursed."


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--vectors", "no-such.vec"], "no such file"),
        (["--run", "{folder}"], "expected what `evenhand audit` has written"),
        (["--model", "{folder}"], "expected config.json"),
        (["--true", "y"], "need --predictions"),
        (["--port", "70000"], "70000 is not in the range"),
    ],
)
def test_wrong_input_is_one_line_before_the_start(capsys, served, tmp_path, arguments, message):
    given = [argument.format(folder=tmp_path) for argument in arguments]
    assert message in failure(capsys, "explore", *given)
    assert served == []


def test_a_port_that_is_taken(capsys, served):
    with server.listen() as connection:
        port = str(connection.getsockname()[1])
        assert f"--port {port}: " in failure(
            capsys, "explore", "--vectors", "glove", "--port", port
        )


@pytest.mark.parametrize("package", ["starlette", "uvicorn"])
def test_without_the_extra_it_says_what_to_install(capsys, monkeypatch, package):
    monkeypatch.setitem(sys.modules, package, None)
    error = failure(capsys, "explore", "--vectors", "glove")
    assert f"needs the package {package}: pip install 'evenhand[explore]'" in error


def test_help_teaches(capsys):
    printed = output(capsys, "explore", "--help")
    for taught in (
        "Ctrl-C ends it",
        "127.0.0.1",
        "Sentence",
        "Words",
        "Run",
        "evenhand explore --",
    ):
        assert taught in printed
