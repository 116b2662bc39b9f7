"""The losses of a few steps of each training are those on record."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.fewshot import Dataset, sample
from evenhand.fewshot.encoders import TunedEncoder, encode
from evenhand.fewshot.settings import TrainingSettings
from evenhand.fewshot.training import train as train_episodes
from evenhand.models import load
from evenhand.models.finetuning.text import TrainingText, collect
from evenhand.models.finetuning.training import FinetuneSettings, train
from small_encoder import save_small

THINGS = ("horse", "bridge", "letter", "song", "fire", "clock", "coat", "lamp")
TEXTS = [
    f"The {job} said {pronoun} {verb} {thing} {number}."
    for number in range(2)
    for job in ("nurse", "doctor", "teacher", "engineer")
    for pronoun in ("he", "she")
    for verb in ("lost the", "reads a")
    for thing in ("book", "table")
]


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    return save_small(tmp_path_factory.mktemp("losses") / "small")


@pytest.mark.parametrize(
    ("network", "tuned", "training", "validation"),
    [
        (
            "relation-ntl",
            False,
            (0.6690030, 0.6178482, 0.5936597),
            (0.6255254, 0.6242753, 0.6234113, 0.6231455),
        ),
        (
            "proto-euclidean",
            True,
            (1.1087625, 0.3139280, 0.2168086),
            (0.4958453, 0.1492401, 0.1084944, 0.1028605),
        ),
        (
            "maml",
            False,
            (0.8400466, 0.7215804, 0.6454282),
            (0.4239230, 0.4222472, 0.4212283, 0.4209245),
        ),
    ],
)
def test_losses_of_episodes(small, network, tuned, training, validation):
    texts = [
        f"Number {k} is about a {thing} {'of old ' * (k % 5)}days."
        for thing in THINGS
        for k in range(12)
    ]
    data = Dataset.of(texts, [thing for thing in THINGS for _ in range(12)], name="things")
    shape = {"ways": 3, "shots": 2, "queries": 2, "seed": 1}
    settings = TrainingSettings(
        network=network,
        options={"slices": 4} if "ntl" in network else {},
        batch=4,
        validate_every=8,
        **({"encoder_learning_rate": 1e-3} if tuned else {}),
    )
    trained = train_episodes(
        settings,
        TunedEncoder(small, data.texts) if tuned else encode(small, data.texts),
        sample(data, THINGS[:4], episodes=24, purpose="train", **shape),
        sample(data, THINGS[4:], episodes=12, purpose="valid", **shape),
    )
    np.testing.assert_allclose(
        [point.training_loss for point in trained.points[1:]], training, rtol=1e-4
    )
    np.testing.assert_allclose(
        [point.validation_loss for point in trained.points], validation, rtol=1e-4
    )


def test_losses_of_masked_tokens(small, tmp_path):
    model = load(small)
    settings = FinetuneSettings(
        max_tokens=1500, batch=4, block=32, learning_rate=5e-3, epochs=3, evaluations=4
    )
    split = collect(TEXTS, held_out=0.2, evaluation=0.2, max_tokens=1500)
    done = train(model, TrainingText(model, split, settings), tmp_path / "c.safetensors")
    np.testing.assert_allclose(
        [point.training for point in done.points[1:]],
        (7.965443, 7.736323, 7.522686, 7.508524),
        rtol=1e-4,
    )
    np.testing.assert_allclose(
        [point.evaluation for point in done.points],
        (8.023563, 7.782135, 7.595360, 7.504353, 7.449264),
        rtol=1e-4,
    )
