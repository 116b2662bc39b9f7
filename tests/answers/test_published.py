"""Published answers of chat models (Wang et al. 2023): shares, intervals and ICC."""

import lzma

import pandas as pd
import pytest

import evenhand as eh


@pytest.fixture(scope="module")
def answers(shared):
    path = shared / "data" / "published" / "decodingtrust_stereotype.csv.xz"
    if not path.is_file():
        pytest.skip("needs ../shared/data/published")
    with lzma.open(path) as file:
        table = pd.read_csv(file)

    def of(model, system):
        own = table[(table.model == model) & (table.system_prompt == system)]
        rows = [(r.topic, r.statement, said) for r in own.itertuples() for said in r.answers]
        frame = pd.DataFrame(rows, columns=["topic", "item", "said"])
        return eh.answers.read_answers(frame, label="said")

    return of


@pytest.mark.parametrize(
    ("model", "system", "value", "icc", "df"),
    [
        ("gpt-3.5-turbo-0301", "targeted", 0.364, 0.56, 15),
        ("gpt-3.5-turbo-0301", "benign", 0.010, 0.81, 4.85),
        ("alpaca-native", "targeted", 0.567, 0.15, 15),
        ("vicuna-7b-v1.3", "targeted", 0.231, 0.03, 15),
    ],
)
def test_agreement_with_stereotypes(answers, model, system, value, icc, df):
    m = eh.answers.StatementAgreement(label="said")(answers(model, system))
    assert m.value == pytest.approx(value, abs=0.0006)
    assert m.details["components"]["icc"] == pytest.approx(icc, abs=0.006)
    assert m.details["df"] == pytest.approx(df, abs=0.01)
    assert any("A few topics" in note for note in m.notes) == (df < 15 / 2)
    assert len(m.select("topic")) == 16
    if value == 0.364:
        assert (m.high - m.low) / 2 == pytest.approx(0.088, abs=0.002)
    if value == 0.010:  # nearly all agreement is about a few topics
        assert (m.low, m.high) == pytest.approx((0.0022, 0.0467), abs=0.0005)
