"""Distance tables without a model: the same values as from vectors, and the published ones."""

import numpy as np
import pandas as pd
import pytest

from evenhand import lexicon, measure
from evenhand.errors import InputError
from evenhand.posterior import describe_table, read_table, simulate
from evenhand.vectors import distance_table


def test_a_table_has_the_values_of_its_vectors(glove, tmp_path):
    topic = lexicon.topic("religion")
    path = tmp_path / "religion.csv"
    distance_table(glove, topic).save(path)
    described = {m.metric: m for m in describe_table(path).measurements}
    for expected in measure(glove, topic, ["mac", "association"], options={"null": 0}):
        m = described[expected.metric]
        assert m.value == pytest.approx(expected.value, abs=1e-6)
        assert (m.low, m.high) == pytest.approx((expected.low, expected.high), abs=1e-6)
        assert m.n == expected.n
    assert described["mac"].p_value is None
    assert described["association"].p_value is not None


def test_what_is_incomplete_is_left_out_and_named():
    table = simulate(words=(3, 3), stereotypes=(3, 3), human=2, neutral=2, seed=1)
    gaps = table.select(~((table.word == 0) & (table.attribute == 1)))
    wide = gaps.to_distances()
    assert wide.left_out == ("attribute2",)
    assert wide.distance.shape == (6, 9)
    assert np.array_equal(wide.connection()[0, :2], ["associated", "associated"])
    controls = describe_table(table.select(table.connection > 1))
    assert set(controls.skipped) == {"mac", "association"}
    assert list(controls.connections) == ["human", "none"]
    frame = table.to_distances().to_frame()
    twice = read_table(pd.concat([frame, frame]), duplicates="keep")
    with pytest.raises(InputError, match="repeated rows"):
        twice.to_distances()


@pytest.mark.parametrize(
    ("file", "value"),
    [("religionReddit", 0.861), ("debiasedReligionReddit", 0.948), ("genderReddit", 0.623)],
)
def test_mac_of_the_reddit_tables(shared, file, value):
    (mac, _) = describe_table(shared / "data" / "cosine" / f"{file}.csv").measurements
    assert mac.value == pytest.approx(value, abs=0.001)
    assert mac.low < mac.value < mac.high


def equalised(scale=0.0):
    """A table in which each word of a class has a word of the other with the same distances."""
    table = simulate(words=(4, 4), stereotypes=(4, 4), human=2, neutral=2, seed=1)
    distance = table.distance.reshape(8, -1).copy()
    distance[4:] = distance[:4]
    noise = scale * np.random.default_rng(0).standard_normal(distance.shape)
    return table.with_distance((distance + noise).ravel(), "equalised.csv")


@pytest.mark.parametrize("scale", [1e-17, 3e-8])
def test_a_contrast_that_is_zero_by_construction_is_not_found(scale):
    """Its p-value counted differences that are rounding: 0.000 [-.031, .031]; p = .005."""
    described = describe_table(equalised(scale))
    contrast = described.measurements[1]
    assert contrast.value == 0
    assert contrast.p_value == 1
    assert contrast.low < 0 < contrast.high
    assert "by construction" in contrast.notes[-1]
    assert len(contrast.details["equalised"]) == 8
    other = describe_table(simulate(delta=-0.1, seed=1)).measurements[1]
    assert "equalised" not in other.details
    assert not any("by construction" in note for note in other.notes)


@pytest.mark.parametrize("topic", ["Religion", "Gender"])
def test_the_debiased_reddit_tables_have_no_contrast(shared, topic):
    table = shared / "data" / "cosine" / f"debiased{topic}Reddit.csv"
    contrast = describe_table(table).measurements[1]
    assert (contrast.value, contrast.p_value) == (0, 1)
