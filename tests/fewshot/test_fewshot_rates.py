"""Learning rates are chosen on the validation classes, and every one is recorded."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from small_runs import Runs, chosen

from evenhand.errors import InputError
from evenhand.fewshot.runs import read_run
from evenhand.fewshot.settings import RunSettings
from evenhand.fewshot.training import TrainedNetwork


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("rates"))


def test_the_rate_that_is_best_on_the_validation_classes_is_tested(runs, tmp_path):
    rates = (1e-9, 3e-2)
    settings = chosen(
        "relation-ntl", episodes="160/16/12", learning_rates=",".join(map(str, rates))
    )
    found = runs.make(settings, tmp_path / "run")
    [listed] = found.rates.values()
    assert [row["learning_rate"] for row in listed] == list(rates)
    # each as a run of this rate alone has it
    alone = []
    for rate in rates:
        training = replace(settings.training, learning_rate=rate)
        one = replace(settings, training=training, learning_rates=None)
        alone.append(runs.make(one, tmp_path / f"{rate}"))
    best = [max(p["validation_accuracy"] for p in each.curves["split 0, seed 0"]) for each in alone]
    assert [row["validation_accuracy"] for row in listed] == pytest.approx(best)
    assert len(set(best)) > 1  # the rate matters here
    kept = TrainedNetwork.load(tmp_path / "run" / "split-0" / "seed-0")
    assert kept.settings.learning_rate == rates[int(np.argmax(best))]
    np.testing.assert_array_equal(
        found.answers.log_probs, alone[int(np.argmax(best))].answers.log_probs
    )
    saved = json.loads((tmp_path / "run" / "results.json").read_text())
    assert saved["learning_rates"] == found.rates == read_run(tmp_path / "run").rates
    assert "learning_rates" not in alone[0].to_dict()


def test_equal_rates_and_other_words_are_refused():
    for wrong in ("1e-3,1e-3", "fast", "1e-3,0", "", "1e-3,inf"):
        with pytest.raises(InputError, match="learning_rates: expected different numbers above 0"):
            RunSettings(learning_rates=wrong)
    assert "learning_rates" not in RunSettings().to_dict()
