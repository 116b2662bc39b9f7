"""Connections that never finish a request are closed, so that they keep nobody out."""

from __future__ import annotations

import socket
import threading
import time

import pytest

from evenhand.explore import server

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    "begun", [b"", b"GET / HT", b"POST /api/x HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\na"]
)
def test_half_open_connections_are_closed(subjects, monkeypatch, begun):
    monkeypatch.setattr(server, "REQUEST_SECONDS", 1.0)
    connection = server.listen(None)
    address = connection.getsockname()
    running = server.make_server(subjects, connection, "token")
    thread = threading.Thread(target=running.run, kwargs={"sockets": [connection]}, daemon=True)
    thread.start()
    open_ones = []
    try:
        time.sleep(1)
        for _ in range(80):
            each = socket.create_connection(address, timeout=10)
            each.sendall(begun)
            open_ones.append(each)
        time.sleep(2.5)
        with socket.create_connection(address, timeout=10) as last:
            last.sendall(f"GET / HTTP/1.1\r\nHost: 127.0.0.1:{address[1]}\r\n\r\n".encode())
            answer = last.recv(100)
        assert answer.startswith(b"HTTP/1.1 ")
        assert b" 503 " not in answer
    finally:
        for each in open_ones:
            each.close()
        running.should_exit = True
        thread.join(10)
        connection.close()
