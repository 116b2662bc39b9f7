"""Small runs on simulated biographies with a small encoder, each computed once per test file."""

from __future__ import annotations

from pathlib import Path

from evenhand.fewshot import read
from evenhand.fewshot.episodes import Episodes
from evenhand.fewshot.metrics.bias import Bias
from evenhand.fewshot.runs import FewShotRun, run
from evenhand.fewshot.settings import RunSettings, TrainingSettings
from evenhand.files import to_json
from small_encoder import save_small

TRAINING = {"batch": 4, "validate_every": 8, "learning_rate": 1e-2}


def chosen(network="proto-euclidean", options=(), seed=0, **more):
    """Settings of a run of a few small episodes."""
    usual = {"ways": 3, "shots": 2, "queries": 2, "episodes": "24/8/40", "mitigate": "all"}
    usual["neutral"] = False
    learning = TrainingSettings(network=network, options=dict(options), seed=seed, **TRAINING)
    return RunSettings(training=learning, **{**usual, **more})


def episodes_of(found: FewShotRun, split=0):
    return Episodes.load(found.folder / f"split-{split}" / "episodes.npz")


class Runs:
    """The encoder, the data, and finished runs by their settings."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.encoder, self.cache = folder, folder / "small", folder / "cache"
        save_small(self.encoder)
        # men and women enough in each class that calibrating leaves the queries alone
        people = read("simulated:per_class=24,leak=1", leaning="share")
        self.people = people.at_least(1, each_gender=3)
        self._done: dict[str, FewShotRun] = {}

    def make(self, settings, folder, dataset=None, **more):
        how = {"encoder": self.encoder, "cache": self.cache, "bias": Bias(permutations=200), **more}
        return run(self.people if dataset is None else dataset, settings, folder, **how)

    def done(self, network="proto-euclidean", **more):
        """The finished run of these settings, computed if there is none yet."""
        settings = chosen(network, **more)
        key = to_json(settings.to_dict())
        if key not in self._done:
            self._done[key] = self.make(settings, self.folder / f"run {len(self._done)}")
        return self._done[key]
