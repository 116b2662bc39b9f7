"""A small world for the statistics of few-shot results: classes as clouds of points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

from evenhand.fewshot.answers import Counterfactuals, FewShotPredictions


@dataclass
class World:
    """Classes of Gaussian texts, some wide and some narrow; queries go to the nearest centroid."""

    texts: int = 40
    ways: int = 5
    shots: int = 5
    queries: int = 5
    episodes: int = 200
    dimensions: int = 8

    def points(self, rng, classes):
        centres = rng.normal(size=(classes, 1, self.dimensions))
        width = np.exp(rng.normal(0.25, 0.35, (classes, 1, 1)))
        return centres + width * rng.normal(size=(classes, self.texts, self.dimensions))

    def draw(self, rng, classes):
        chosen = np.argsort(rng.random((self.episodes, classes)), axis=1)[:, : self.ways]
        shape = (self.episodes, self.ways, self.texts)
        texts = np.argsort(rng.random(shape), axis=2)[:, :, : self.shots + self.queries]
        return chosen, texts[..., : self.shots], texts[..., self.shots :]

    def log_probs(self, points, asked, chosen, support, query):
        centres = points[chosen[..., None], support].mean(axis=2)
        at = asked[chosen[..., None], query]
        logits = -((at[:, :, :, None] - centres[:, None, None]) ** 2).sum(-1)
        logits = logits.reshape(len(chosen), -1, self.ways)
        logits -= logits.max(-1, keepdims=True)
        return logits - np.log(np.exp(logits).sum(-1, keepdims=True))

    def answers(self, log_probs, chosen, query, genders=None, classes=None):
        rows = (chosen[..., None] * self.texts + query).reshape(len(chosen), -1)
        truth = np.tile(np.repeat(np.arange(self.ways), self.queries), (len(chosen), 1))
        names = tuple(f"class {k}" for k in range(classes)) if classes else ()
        known = None if genders is None else genders.ravel()[rows]
        return FewShotPredictions(log_probs, rows, truth, chosen, known, names)

    def run(self, rng, classes, noise=0.0):
        """Predictions of a classifier and of one that sees the same texts through noise."""
        points = self.points(rng, classes)
        drawn = self.draw(rng, classes)
        blurred = points + noise * rng.normal(size=points.shape)
        return tuple(
            self.answers(self.log_probs(p, p, *drawn), drawn[0], drawn[2])
            for p in (points, blurred)
        )

    def counterfactuals(self, rng, classes, leak, share=0.8, effect=1.0, even=0):
        """Every second class leans female, the last `even` ones nowhere; a stated gender moves a
        text along one axis.
        """
        points = self.points(rng, classes)
        leaning = np.where(np.arange(classes) < classes - even, np.arange(classes) % 2, -1)
        women = np.select([leaning == 1, leaning == 0], [share, 1 - share], 0.5)[:, None]
        recorded = (rng.random((classes, self.texts)) < women).astype(int)
        random = rng.integers(0, 2, recorded.shape)
        stated = np.where(rng.random(recorded.shape) < leak, recorded, random)
        push = (2 * stated - 1)[..., None] * effect * np.eye(self.dimensions)[0]
        drawn = self.draw(rng, classes)
        original = self.log_probs(points + push, points + push, *drawn)
        swapped = self.log_probs(points + push, points - push, *drawn)
        answers = self.answers(original, drawn[0], drawn[2], recorded, classes)
        return Counterfactuals.of(answers, swapped, leaning)


@pytest.fixture
def world():
    return World()
