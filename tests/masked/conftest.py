"""Small random models of five families, saved on disk: tests that take `family` run on all."""

from __future__ import annotations

import pytest
from small_models import FAMILIES, made


@pytest.fixture(scope="session", params=FAMILIES)
def family(request, tmp_path_factory):
    """The folder of one small model; tests that take it run on all five families."""
    folder = tmp_path_factory.mktemp(request.param)
    tokenizer, network = made(request.param)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
