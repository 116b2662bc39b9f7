"""A server behind an address: what it answers, its faults, and the key, which is nowhere."""

from __future__ import annotations

import logging
import math
import socket
import time
import traceback
from email.utils import formatdate

import pytest
from answering_server import KEY, MODEL, chat, serving

from evenhand.errors import EvenhandError, InputError, PartialFailure
from evenhand.models import endpoint
from evenhand.models.endpoint import Endpoint, EndpointSettings
from evenhand.models.writing import Budget, Message, Request, WriteSettings

pytest.importorskip("httpx2", reason="needs httpx2")

SETTINGS = WriteSettings(temperature=0.5, top_p=0.9, max_new_tokens=20)


@pytest.fixture(autouse=True)
def impatient(monkeypatch):
    monkeypatch.setattr(endpoint, "FIRST_WAIT", 0.01)
    monkeypatch.delenv("EVENHAND_API_KEY", raising=False)


def requests_of(count):
    return [Request((Message("user", f"question {i}"),), seed=i) for i in range(count)]


def written(server, count=1, budget=None, **settings):
    settings = {"retries": 3, "timeout": 5.0, **settings}
    writer = Endpoint(server.address, EndpointSettings(**settings))
    return dict(writer.write(requests_of(count), SETTINGS, budget))


def failing(times, fault):
    """`fault` for the first requests, then an answer."""

    def answer(handler, _, number):
        return fault(handler) if number < times else chat()

    return answer


def status(code, content=None, **headers):
    def fault(handler):
        handler.send(content or {"error": {"message": "not now"}}, code, **headers)

    return fault


def cut(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", "5000")
    handler.end_headers()
    handler.wfile.write(b'{"choices": [')
    handler.close_connection = True


def hang_up(handler):
    handler.connection.shutdown(socket.SHUT_RDWR)
    handler.close_connection = True


def test_what_is_sent_and_what_comes_back():
    with serving() as server:
        writer = Endpoint(server.address)
        messages = (Message("system", "Be brief."), Message("user", "Who?"))
        [(number, text)] = writer.write([Request(messages, seed=7)], SETTINGS)
    assert (number, text.text, text.finish, text.tokens) == (0, "Fine.", "stop", 3)
    [body] = server.bodies
    assert body == {
        "path": "/v1/chat/completions",
        "model": MODEL,
        "messages": [{"role": m.role, "content": m.content} for m in messages],
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 7,
        "max_tokens": 20,
    }
    about = writer.about
    assert (about["model"], about["server"], about["version"]) == (MODEL, "decoy/1", "7.1")
    assert about["system_fingerprint"] == ["decoy-7"]
    assert not any("Authorization" in each for each in server.headers)


def test_plain_completions_have_no_template():
    content = {"choices": [{"text": " and so on", "finish_reason": "length"}]}
    with serving(lambda *_: content) as server:
        [text] = written(server, completions=True).values()
    assert (text.text, text.finish) == (" and so on", "length")
    assert server.bodies[0]["prompt"] == "question 0"
    assert server.bodies[0]["path"] == "/v1/completions"


def test_requests_run_in_parallel_up_to_the_limit():
    def slowly(*_):
        time.sleep(0.05)
        return chat()

    with serving(slowly) as server:
        assert len(written(server, 24, parallel=4)) == 24
    assert 2 <= server.most_at_once <= 4
    assert sorted(each["seed"] for each in server.bodies) == list(range(24))


@pytest.mark.parametrize(
    "fault",
    [
        status(429),
        status(500),
        status(503),
        cut,
        hang_up,
        lambda handler: handler.send(b'{"choices": [{"mess'),
        lambda handler: handler.send(b"<html>busy</html>", Content_Type="text/html"),
        lambda handler: handler.send({"error": {"message": "overloaded", "code": 502}}),
        lambda handler: handler.send(b"no gzip", Content_Encoding="gzip"),
        lambda handler: handler.send(b'data: {"choices": [{"delta": {"content": "Fi"}}]}\n\n'),
    ],
    ids=[
        "429",
        "500",
        "503",
        "cut",
        "hang up",
        "torn",
        "page",
        "error in 200",
        "gzip",
        "torn pieces",
    ],
)
def test_a_fault_that_ends_costs_nothing(fault):
    with serving(failing(2, fault)) as server:
        [text] = written(server).values()
    assert (text.text, text.finish, text.error) == ("Fine.", "stop", "")
    assert len(server.bodies) == 3


def test_a_fault_that_lasts_fails_one_request():
    def faulty(handler, body, number):
        if body["seed"] == 1:
            return handler.send({"error": {"message": "no luck"}}, 500)
        return chat()

    with serving(faulty) as server:
        texts = written(server, 3)
    assert [texts[i].finish for i in range(3)] == ["stop", "error", "stop"]
    assert texts[1].error == "the server answers 500: no luck"
    assert len(server.bodies) == 2 + 4


def test_the_server_says_how_long_to_wait():
    seen = []

    def busy(handler, body, number):
        seen.append(time.monotonic())
        return handler.send({}, 429, Retry_After="1") if number == 0 else chat()

    with serving(busy) as server:
        assert len(written(server, 3, parallel=3)) == 3
    assert seen[-1] - seen[0] >= 0.9
    assert endpoint.asked_wait({"retry-after": formatdate(time.time() + 30)}) > 20
    with serving(failing(9, status(429, Retry_After="86400"))) as server:
        [text] = written(server).values()
    assert "asks to wait 86,400 s" in text.error
    assert len(server.bodies) == 1


def test_waits_double_and_differ(monkeypatch):
    monkeypatch.setattr(endpoint, "FIRST_WAIT", 0.5)
    for attempt, longest in enumerate((0.5, 1, 2, 4, 8, 16, 32, 60, 60)):
        waits = {endpoint.back_off(attempt) for _ in range(20)}
        assert len(waits) > 1
        assert all(longest / 2 <= wait <= longest for wait in waits)


def test_slow_answers_are_given_up():
    def drip(handler):  # a byte now and then, so that no single read takes long
        handler.send_response(200)
        handler.send_header("Content-Length", "1000")
        handler.end_headers()
        for _ in range(100):
            handler.wfile.write(b" ")
            handler.wfile.flush()
            time.sleep(0.1)

    for fault in (drip, lambda _: time.sleep(2)):
        with serving(failing(1, fault)) as server:
            assert written(server, timeout=0.5)[0].text == "Fine."
            assert len(server.bodies) == 2


def test_an_endless_answer_is_given_up(monkeypatch):
    monkeypatch.setattr(endpoint, "LARGEST_REPLY", 1000)
    with serving(lambda *_: chat("a" * 2000)) as server:
        assert written(server, retries=0)[0].error == "the answer has no end"


def test_a_server_that_is_down():
    with serving() as server:
        address = server.address
    with pytest.raises(InputError, match=r"no connection"):
        dict(Endpoint(address).write(requests_of(1), SETTINGS))


def test_a_server_that_dies_stops_the_run():
    def dying(handler, body, number):
        return chat() if number < 5 else hang_up(handler)

    with serving(dying) as server:
        writer = Endpoint(server.address, EndpointSettings(parallel=1, retries=0))
        seen = []

        def run():
            for _, text in writer.write(requests_of(50), SETTINGS):
                seen.append(text.finish)

        with pytest.raises(PartialFailure, match="stopped after 8 requests in a row"):
            run()
    assert seen == ["stop"] * 5 + ["error"] * 8


@pytest.mark.parametrize(
    ("models", "name", "message"),
    [
        (("one", "two"), "", "serves several models (one, two): name one"),
        (("/models/one.gguf",), "two", "expected the model two, got a server of one.gguf"),
        (None, "", "does not list its models: name one"),
        (("decoy",), "", "expected the model decoy, got an answer of another"),
    ],
)
def test_the_wrong_model(models, name, message):
    with (
        serving(lambda *_: chat(model="another"), models) as server,
        pytest.raises(InputError) as caught,
    ):
        written(server, name=name)
    assert message in str(caught.value)


def test_the_right_model_by_other_names():
    for models, name, answered in (
        (("/models/one.gguf",), "one", "/models/one.gguf"),
        (("gpt-x",), "gpt-x", "gpt-x-2024-08-06"),
        (("one", "two"), "two", "two"),
        (None, "any", "any"),
    ):
        with serving(lambda *_, own=answered: chat(model=own), models) as server:
            assert written(server, name=name)[0].text == "Fine."


def test_answers_in_pieces_are_put_together():
    pieces = [
        {"choices": [{"delta": {"role": "assistant", "content": None}}]},
        {"choices": [{"delta": {"content": "Fi"}}]},
        {"choices": [{"delta": {"content": "ne"}, "finish_reason": "length"}]},
        {"choices": [], "usage": {"completion_tokens": 2}},
    ]

    def stream(handler, body, number):
        import json

        handler.send_response(200)
        handler.send_header("Content-Type", "text/event-stream")
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        for piece in (*map(json.dumps, pieces), "[DONE]"):
            for part in (f"data: {piece}"[:9], f"data: {piece}\n\n"[9:]):
                handler.wfile.write(f"{len(part):x}\r\n{part}\r\n".encode())
        handler.wfile.write(b"0\r\n\r\n")

    with serving(stream) as server:
        text = written(server)[0]
    assert (text.text, text.finish, text.tokens) == ("Fine", "length", 2)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (lambda *_: chat("", finish="content_filter"), ("", "refusal")),
        (lambda *_: chat(None, refusal="I won't."), ("I won't.", "refusal")),
        (lambda *_: chat(None), ("", "stop")),
        (lambda *_: chat([{"type": "text", "text": "Fi"}, {"text": "ne"}]), ("Fine", "stop")),
        (lambda *_: chat("odd \ud800", finish=None), ("odd \ufffd", "stop")),
        (
            lambda handler, *_: handler.send({"error": {"code": "content_filter"}}, 400),
            ("", "refusal"),
        ),
    ],
)
def test_refusals_and_odd_contents(answer, expected):
    with serving(answer) as server:
        text = written(server)[0]
    assert (text.text, text.finish) == expected


def test_a_message_that_is_none_fails():
    with serving(lambda *_: {"choices": [{"message": 5}]}) as server:
        [text] = written(server).values()
    assert (text.finish, text.error) == ("error", "expected a message of an answer, got 5")


def test_a_request_that_is_refused_fails_alone():
    def strict(handler, body, number):
        if body["seed"] == 0:
            return handler.send({"error": {"message": "too long"}}, 400)
        return chat()

    with serving(strict) as server:
        texts = written(server, 2)
    assert texts[0].error == "the server answers 400: too long"
    assert texts[1].text == "Fine."


def test_a_newer_name_of_the_limit():
    def newer(handler, body, number):
        if "max_tokens" in body:
            text = "Unsupported parameter: use 'max_completion_tokens' instead."
            return handler.send({"error": {"message": text}}, 400)
        return chat()

    with serving(newer) as server:
        texts = written(server, 3, parallel=1)
    assert {text.text for text in texts.values()} == {"Fine."}
    assert len(server.bodies) == 4
    assert server.bodies[-1]["max_completion_tokens"] == 20


def test_nothing_goes_to_another_host(monkeypatch):
    with serving() as other:
        for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
            monkeypatch.setenv(variable, other.address)
        for code in (301, 302, 307, 308):
            redirect = status(code, Location=f"{other.address}/chat/completions")
            with (
                serving(lambda handler, *_, r=redirect: r(handler)) as server,
                pytest.raises(InputError, match=r"a redirect to .* is not followed"),
            ):
                written(server)
        with serving() as server:
            assert written(server)[0].text == "Fine."
    assert not other.bodies
    assert not other.headers


@pytest.mark.parametrize(
    "address",
    ["http://", "http://me:secret@127.0.0.1:1/v1", "http://127.0.0.1:1/v1?key=secret", "ftp://x"],
)
def test_an_address_without_secrets(address):
    with pytest.raises(InputError) as caught:
        Endpoint(address)
    assert "secret" not in str(caught.value)


# ---- the key


def test_the_key_is_sent_and_shown_nowhere(monkeypatch, caplog):
    monkeypatch.setenv("MY_KEY", f" {KEY}\n")

    def echo(handler, body, number):
        said = handler.headers["Authorization"]
        if body["seed"] == 0:
            return chat(f"You said {said}", model=MODEL)
        if body["seed"] == 1:
            return handler.send({"error": {"message": f"wrong key {said}"}}, 400)
        if body["seed"] == 2:
            return handler.send(f"no JSON, {said}".encode())
        return hang_up(handler)

    with caplog.at_level(logging.DEBUG), serving(echo) as server:
        settings = EndpointSettings(key_env="MY_KEY", retries=1, timeout=5)
        writer = Endpoint(server.address, settings)
        texts = dict(writer.write(requests_of(4), SETTINGS))
        shown = [repr(writer), str(writer), repr(vars(writer)), writer.fingerprint, caplog.text]
        shown += [repr(texts), repr(writer.about), repr(settings)]
    assert {each["Authorization"] for each in server.headers if "Authorization" in each} == {
        f"Bearer {KEY}"
    }
    assert texts[0].text == "You said Bearer …"
    assert not any(KEY in text for text in shown)


def test_the_key_is_in_no_traceback(monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)

    def refuse(handler, body, number):
        handler.send({"error": f"{handler.headers['Authorization']} is wrong"}, 403)

    settings = EndpointSettings(key_env="MY_KEY", retries=0, timeout=5)
    with serving(refuse) as server:
        caught = []
        for address in (server.address, "http://127.0.0.1:9/v1"):
            try:
                dict(Endpoint(address, settings).write(requests_of(1), SETTINGS))
            except EvenhandError as error:
                caught.append(error)
    assert len(caught) == 2
    for error in caught:
        full = traceback.TracebackException.from_exception(error, capture_locals=True)
        assert KEY not in "".join(full.format())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (None, "expected a key in this variable"),
        ("sk-\nx", "printable"),
        ("schlüssel", "printable"),
    ],
)
def test_a_key_that_cannot_be_sent(monkeypatch, value, message):
    if value is not None:
        monkeypatch.setenv("MY_KEY", value)
    with pytest.raises(InputError, match=message) as caught:
        Endpoint("http://127.0.0.1:9/v1", EndpointSettings(key_env="MY_KEY"))
    assert not value or value not in str(caught.value)


def test_a_key_that_the_server_refuses():
    refuse = status(401, {"error": {"message": "no"}})
    with (
        serving(lambda handler, *_: refuse(handler)) as server,
        pytest.raises(InputError, match="refuses the key of the variable EVENHAND_API_KEY"),
    ):
        written(server)


# ---- the bounds


def test_repeated_requests_count():
    with serving(lambda handler, *_: status(500)(handler)) as server:
        budget = Budget(requests=5)
        written(server, 4, budget, parallel=2, retries=9)
        assert len(server.bodies) == budget.requests == 5
        assert budget.refused


def test_tokens_are_bounded_by_the_most_that_an_answer_can_have():
    with serving() as server:
        budget = Budget(tokens=200)  # about 31 are reserved, 13 are taken
        texts = written(server, 50, budget, parallel=4)
    assert budget.tokens == 13 * len(texts)
    assert 200 - 31 < budget.tokens <= 200


# ---- likelihoods


def test_likelihoods_of_first_tokens():
    listed = [{"token": "yes", "logprob": -0.5}, {"token": "no", "logprob": -1.5}]

    def answer(handler, body, number):
        if body["top_logprobs"] > 20:
            return handler.send({"error": {"message": "top_logprobs: at most 20"}}, 400)
        return {
            "choices": [
                {
                    "message": {"content": "yes"},
                    "logprobs": {"content": [{"top_logprobs": listed}]},
                    "finish_reason": "length",
                }
            ]
        }

    with serving(answer) as server:
        writer = Endpoint(server.address)
        assert writer.label_likelihoods(requests_of(1), [["no", "yes"]]) == [[-1.5, -0.5]]
        with pytest.raises(InputError, match="expected labels of one token each"):
            writer.label_likelihoods(requests_of(1), [["no", "maybe"]])


def test_likelihoods_that_are_not_served():
    with serving() as server, pytest.raises(InputError, match="does not serve log-probabilities"):
        Endpoint(server.address).label_likelihoods(requests_of(1), [["no", "yes"]])


def test_likelihoods_of_labels_of_any_length():
    def echo(handler, body, number):
        words = body["prompt"].replace(" ", "| ").split("|")
        offsets = [len("".join(words[:i])) for i in range(len(words))]
        return {
            "choices": [
                {
                    "text": body["prompt"],
                    "logprobs": {
                        "token_logprobs": [None, *(-0.1 * len(word) for word in words[1:]), -9.0],
                        "text_offset": [*offsets, len(body["prompt"])],
                    },
                    "finish_reason": "length",
                }
            ]
        }

    with serving(echo) as server:
        writer = Endpoint(server.address, EndpointSettings(completions=True))
        [values] = writer.label_likelihoods(requests_of(1), [["no", "not at all"]])
    assert values == pytest.approx([-0.3, -1.1])
    assert not any(map(math.isnan, values))
