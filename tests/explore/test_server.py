"""Who may use the explorer, and what a request may be."""

from __future__ import annotations

import json
import re
import threading
from importlib import import_module
from pathlib import Path

import pytest
from explorer_world import ORIGIN, PORT, TOKEN

pytest.importorskip("starlette", reason="needs starlette, of the extra explore")
pytest.importorskip("uvicorn", reason="needs uvicorn, of the extra explore")
pytest.importorskip("httpx2", reason="needs httpx2, of the extra dev")
from starlette.testclient import TestClient

from evenhand.explore import server
from evenhand.explore.server import HEADERS, MOST_BYTES, PAGES, TOKEN_HEADER, application
from evenhand.explore.worker import QueueFullError, SupersededError, Worker

WITH_TOKEN = {TOKEN_HEADER: TOKEN}
ENDPOINTS = (
    "start",
    "sentence",
    "built-in",
    "versions",
    "association",
    "axes",
    "neighbours",
    "run",
    "table",
    "table.csv",
    "item",
    "answers",
    "answer",
)


@pytest.mark.parametrize("name", ENDPOINTS)
@pytest.mark.parametrize("given", [{}, {TOKEN_HEADER: ""}, {TOKEN_HEADER: TOKEN + "x"}])
def test_every_endpoint_needs_the_token(client, name, given):
    answer = client.post(f"/api/{name}", json={}, headers=given)
    assert answer.status_code == 401
    assert list(answer.json()) == ["error"]


def test_the_endpoints_tested_are_all(subjects):
    explorer = server.Explorer(subjects)
    assert set(ENDPOINTS) == {*explorer.queued, *explorer.direct}


def test_the_token_is_not_accepted_elsewhere(client):
    answer = client.post(f"/api/start?token={TOKEN}", json={}, headers={"cookie": f"token={TOKEN}"})
    assert answer.status_code == 401
    assert "set-cookie" not in answer.headers


@pytest.mark.parametrize("path", list(PAGES))
def test_pages_have_no_data_and_strict_headers(client, path):
    answer = client.get(path)
    assert answer.status_code == 200
    assert TOKEN not in answer.text
    for name, value in HEADERS.items():
        assert answer.headers[name] == value
    assert "unsafe" not in answer.headers["content-security-policy"]
    assert answer.headers["cache-control"] == "no-store"


def test_the_page_has_no_inline_script_or_style_and_loads_nothing_from_elsewhere(client):
    page = client.get("/").text
    assert re.findall(r"<script(?! src=\"/explore.js\" defer></script>)", page) == []
    assert " style=" not in page
    assert "<style" not in page
    assert re.findall(r"\son\w+=", page) == []
    addresses = re.findall(r'(?:src|href)="([^"]*)"', page)
    assert set(addresses) == {"data:,", "/colours.css", "/explore.css", "/explore.js", "#main"}
    script = client.get("/explore.js").text
    assert "http" not in script.replace("http://www.w3.org/2000/svg", "")
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|\beval\b|new Function", script)


def test_charts_have_the_report_colours_on_dark_paper(client):
    from evenhand.charts import BLUE, GREY, INK

    style = client.get("/colours.css").text
    for colour in (BLUE, GREY, INK):
        assert f'[fill="{colour}"]' in style
    defined = set(re.findall(r"(--[a-z]+): light-dark", style))
    own = client.get("/explore.css").text
    assert "light-dark" not in own  # colours are defined in one place
    assert {
        name for name in re.findall(r"var\((--[a-z]+)\)", own) if f"{name}:" not in own
    } <= defined


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8750", "127.0.0.1", "127.0.0.1:1", "127.0.0.2:8750", ""]
)
@pytest.mark.parametrize("path", ["/", "/api/start"])
def test_another_host_is_refused(client, host, path):
    answer = client.request(
        "POST" if "api" in path else "GET", path, headers={**WITH_TOKEN, "host": host}
    )
    assert answer.status_code == 403
    assert answer.json()["error"].startswith("host: expected 127.0.0.1:8750")
    assert answer.headers["content-security-policy"] == HEADERS["content-security-policy"]


def test_localhost_is_this_machine(client):
    assert client.get("/", headers={"host": f"localhost:{PORT}"}).status_code == 200


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "https://127.0.0.1:8750", "http://127.0.0.1:8751"]
)
def test_another_origin_is_refused(client, origin):
    answer = client.post("/api/start", json={}, headers={**WITH_TOKEN, "origin": origin})
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


def test_the_own_origin_is_accepted(client):
    headers = {**WITH_TOKEN, "origin": ORIGIN, "sec-fetch-site": "same-origin"}
    assert client.post("/api/start", json={}, headers=headers).status_code == 200


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_requests_of_other_sites_are_refused(client, site):
    headers = {**WITH_TOKEN, "sec-fetch-site": site}
    assert client.post("/api/start", json={}, headers=headers).status_code == 403
    assert client.get("/", headers={"sec-fetch-site": site}).status_code == 200


def test_no_preflight_is_granted(client):
    answer = client.options("/api/start", headers={"origin": ORIGIN})
    assert answer.status_code == 405
    assert not any(name.startswith("access-control") for name in answer.headers)


@pytest.mark.parametrize(
    "path",
    [
        "/../pyproject.toml",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/pages/index.html",
        "/explore.js/../../server.py",
        "/api/",
        "/api/table/../../etc/passwd",
        "//etc/passwd",
    ],
)
def test_no_path_leads_to_a_file(client, path):
    answer = client.get(path, headers=WITH_TOKEN)
    assert answer.status_code in (404, 405)
    assert list(answer.json()) == ["error"]


@pytest.mark.parametrize("name", ["/etc/passwd", "../masked", "mini", "hf:gpt2", "masked\x00"])
def test_models_and_vectors_are_names_of_what_is_loaded(ask, name, monkeypatch):
    def opened(*_, **__):
        raise AssertionError("a file was opened")

    import_module("evenhand.vectors.mitigation")  # pytest reads a module with Path.open
    monkeypatch.setattr(Path, "open", opened)
    error = ask("sentence", 400, texts=["[MASK] left"], models=[name])["error"]
    assert "unknown model" in error
    lists = {"x": {"a": ["he"], "b": ["she"]}, "y": {"a": ["he"], "b": ["she"]}}
    assert "unknown vectors" in ask("axes", 400, vectors=name, words=["nurse"], **lists)["error"]
    assert "unknown vectors" in ask("neighbours", 400, vectors=name, word="nurse")["error"]
    topic = ask("neighbours", 400, vectors="glove", word="nurse", topic=f"{name}.toml")
    assert "unknown topic" in topic["error"]


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "expected a JSON object"),
        (b"[]", 400, "request: "),
        (b"[" * 20_000, 400, "expected a JSON object"),
        (b"\xff", 400, "expected a JSON object"),
        (b'{"texts": ["[MASK]"], "models": ["masked"], "path": "x"}', 400, "path: "),
        (b'{"texts": "she", "models": ["masked"]}', 400, "texts: "),
        (b'{"texts": ["\\ud800"], "models": ["masked"]}', 400, "texts.0: "),
        (b'{"texts": [], "models": ["masked"]}', 400, "texts: "),
        (b'{"texts": ["a", "b", "c"], "models": ["masked"]}', 400, "texts: "),
        (b'{"texts": ["she"], "models": []}', 400, "models: "),
        (b'{"texts": ["' + b"x" * 601 + b'"], "models": ["masked"]}', 400, "texts.0: "),
        (b" " * (MOST_BYTES + 1), 413, "expected at most 65,536 bytes"),
    ],
)
def test_wrong_requests_get_one_line(client, body, status, message):
    headers = {**WITH_TOKEN, "content-type": "application/json"}
    answer = client.post("/api/sentence", content=body, headers=headers)
    assert answer.status_code == status
    assert answer.json()["error"].startswith(message)
    assert "\n" not in answer.json()["error"]


def test_a_body_without_a_length_is_not_read_to_its_end(client):
    sent = []

    def parts():
        for _ in range(100):
            sent.append(1)
            yield b" " * 4096

    headers = {**WITH_TOKEN, "content-type": "application/json"}
    answer = client.post("/api/start", content=parts(), headers=headers)
    assert answer.status_code == 413


def test_other_media_are_refused(client):
    headers = {**WITH_TOKEN, "content-type": "text/plain"}
    assert client.post("/api/start", content=b"{}", headers=headers).status_code == 415


def test_long_lists_are_refused(ask):
    lists = {"targets": {"x": ["he"] * 301, "y": []}, "attributes": {}}
    assert "targets.x: " in ask("association", 400, vectors="glove", **lists)["error"]
    three = {"targets": {"x": [], "y": [], "z": []}, "attributes": {}}
    assert "targets: " in ask("association", 400, vectors="glove", **three)["error"]


def test_a_fault_of_ours_is_one_line_and_shown_in_the_terminal(subjects, monkeypatch, capsys):
    def broken(*_, **__):
        raise RuntimeError("secret")

    monkeypatch.setattr(server.sentence, "read_built_in", broken)
    client = TestClient(application(subjects, token=TOKEN, port=PORT), base_url=ORIGIN)
    answer = client.post("/api/built-in", json={"model": "masked"}, headers=WITH_TOKEN)
    assert answer.status_code == 500
    assert answer.json() == {"error": "internal error (RuntimeError); see the terminal"}
    assert "secret" in capsys.readouterr().err


# ---- the queue

PATIENCE = 300.0
"""Seconds after which a test gives up; none waits so long."""


class Gate:
    """Work that waits until it may go on."""

    def __init__(self) -> None:
        self.begun, self.open = threading.Event(), threading.Event()

    def __call__(self) -> str:
        self.begun.set()
        assert self.open.wait(PATIENCE)
        return "done"


def test_jobs_run_one_after_the_other_and_the_queue_is_bounded():
    worker, gate, order = Worker(limit=2), Gate(), []
    first = worker.submit("a", gate)
    assert gate.begun.wait(PATIENCE)
    second = worker.submit("b", lambda: order.append("b"))
    third = worker.submit("c", lambda: order.append("c"))
    with pytest.raises(QueueFullError):
        worker.submit("d", lambda: order.append("d"))
    assert order == []
    gate.open.set()
    assert first.result(PATIENCE) == "done"
    second.result(PATIENCE), third.result(PATIENCE)
    assert order == ["b", "c"]


def test_a_later_job_of_the_same_view_takes_the_place_of_one_that_waits():
    worker, gate, order = Worker(limit=1), Gate(), []
    running = worker.submit("view", gate)
    assert gate.begun.wait(PATIENCE)
    earlier = worker.submit("view", lambda: order.append("earlier"))
    later = worker.submit("view", lambda: order.append("later"))
    with pytest.raises(SupersededError):
        earlier.result(PATIENCE)
    gate.open.set()
    later.result(PATIENCE)
    assert running.result(PATIENCE) == "done", "a job that has begun is finished"
    assert order == ["later"]


def test_a_job_that_fails_does_not_end_the_worker():
    worker = Worker()
    with pytest.raises(ZeroDivisionError):
        worker.submit("a", lambda: 1 / 0).result(PATIENCE)
    assert worker.submit("a", lambda: 1).result(PATIENCE) == 1


def test_a_full_queue_and_a_superseded_request_say_so(subjects):
    subjects.reference("masked")  # computed before, so that its request is short
    worker, gate = Worker(limit=1), Gate()
    client = TestClient(
        application(subjects, token=TOKEN, port=PORT, worker=worker), base_url=ORIGIN
    )
    worker.submit("running", gate)
    assert gate.begun.wait(PATIENCE)
    answers = {}

    def post(name: str, view: str) -> None:
        headers = {**WITH_TOKEN, "x-evenhand-view": view}
        answers[name] = client.post("/api/built-in", json={"model": "masked"}, headers=headers)

    waiting = threading.Thread(target=post, args=("earlier", "tab 1"))
    waiting.start()
    while not worker._jobs:
        threading.Event().wait(0.01)
    post("other", "tab 2")
    assert answers["other"].status_code == 503
    assert answers["other"].json()["error"].startswith("busy: ")
    later = threading.Thread(target=post, args=("later", "tab 1"))
    later.start()
    waiting.join(PATIENCE)
    assert answers["earlier"].status_code == 409
    assert answers["earlier"].json() == {"error": "superseded by a later request"}
    gate.open.set()
    later.join(PATIENCE)
    assert answers["later"].status_code == 200


def test_tables_do_not_wait_for_models(subjects):
    worker, gate = Worker(limit=1), Gate()
    client = TestClient(
        application(subjects, token=TOKEN, port=PORT, worker=worker), base_url=ORIGIN
    )
    worker.submit("running", gate)
    assert gate.begun.wait(PATIENCE)
    worker.submit("waiting", lambda: None)
    answer = client.post("/api/table", json={"table": 0}, headers=WITH_TOKEN)
    gate.open.set()
    assert answer.status_code == 200


def test_answers_are_strict_json(client):
    answer = client.post("/api/run", json={}, headers=WITH_TOKEN)

    def refuse(name):
        raise AssertionError(name)

    verdict = json.loads(answer.text, parse_constant=refuse)["verdicts"][0]
    assert verdict["numbers"][0]["high"] is None


# ---- the socket


def test_it_listens_on_this_machine_only():
    with server.listen(None) as connection:
        host, port = connection.getsockname()
        assert host == "127.0.0.1"
        with server.listen(None) as other:
            assert other.getsockname()[1] != port, "a free one, where the usual one is taken"
        with pytest.raises(OSError, match="in use"):
            server.listen(port)
