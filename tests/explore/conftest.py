"""The explorer on small subjects, and how the tests ask it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from explorer_world import ORIGIN, PORT, TOKEN, make_subjects

from evenhand.explore.subjects import Subjects
from evenhand.vectors import Vectors

Ask = Callable[..., Any]


@pytest.fixture(scope="session")
def subjects(glove: Vectors, tmp_path_factory: pytest.TempPathFactory) -> Subjects:
    return make_subjects(glove, tmp_path_factory.mktemp("explorer"))


@pytest.fixture(scope="session")
def client(subjects: Subjects) -> Any:
    """A client without the token."""
    from starlette.testclient import TestClient

    from evenhand.explore.server import application

    app = application(subjects, token=TOKEN, port=PORT)
    return TestClient(app, base_url=ORIGIN, raise_server_exceptions=False)


@pytest.fixture(scope="session")
def ask(client: Any) -> Ask:
    """Ask for something with the token, and read the answer."""
    from evenhand.explore.server import TOKEN_HEADER

    def ask(name: str, expected: int = 200, **body: Any) -> Any:
        answer = client.post(f"/api/{name}", json=body, headers={TOKEN_HEADER: TOKEN})
        assert answer.status_code == expected, answer.text
        return answer.text if name.endswith(".csv") else answer.json()

    return ask
