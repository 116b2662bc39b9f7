from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from evenhand.errors import InputError, UnknownNameError
from evenhand.fewshot.data import Dataset, read
from evenhand.fewshot.episodes import sample
from evenhand.fewshot.mitigation import apply, neutralize, read_as, swap_gender
from evenhand.fewshot.settings import TextMitigation
from evenhand.lexicon.first_names import names as first_names
from evenhand.simulate.biographies import biographies

NAMES = ("augment", "neutralize", "calibrate")
GENDERED = re.compile(r"\b(?:s?he|him|hers?|his|himself|herself)\b", re.IGNORECASE)


@pytest.fixture(scope="module")
def simulated() -> Dataset:
    made = biographies(12, leak=1, seed=3, occupations=["nurse", "poet", "surgeon", "dj"])
    return Dataset.of(made.texts, made.occupations, made.genders, name="simulated")


class TestNames:
    def test_any_order_one_form(self) -> None:
        for count in range(1, 4):
            for chosen in itertools.combinations(NAMES, count):
                for order in itertools.permutations(chosen):
                    found = TextMitigation.parse("+".join(order))
                    assert found.name == "+".join(chosen)
                    assert {name for name in NAMES if getattr(found, name)} == set(chosen)
        assert TextMitigation.parse("none") == TextMitigation()
        assert str(TextMitigation()) == "none"

    def test_wrong_names(self) -> None:
        with pytest.raises(UnknownNameError, match="'neutralise': did you mean 'neutralize'"):
            TextMitigation.parse("augment+neutralise")
        with pytest.raises(UnknownNameError, match="unknown mitigation ''"):
            TextMitigation.parse("augment+")
        with pytest.raises(InputError, match="'none' by itself"):
            TextMitigation.parse("none+augment")
        with pytest.raises(InputError, match="'augment' twice"):
            TextMitigation.parse("augment+augment")
        with pytest.raises(InputError, match="'anti' by itself, got 'augment\\+anti'"):
            TextMitigation.parse("augment+anti")


class TestTexts:
    def test_none_and_calibrate_change_no_text(self, simulated: Dataset) -> None:
        for name in ("none", "calibrate"):
            assert apply(simulated, name).pool.digest == simulated.digest

    def test_counterfactuals_of_the_other_gender(self) -> None:
        texts = ["Her brother James is a father.", "Rain fell.", "He met his aunt."]
        dataset = Dataset.of(texts, ["x", "x", "y"], ["F", None, "M"], name="tiny")
        made = apply(dataset, "augment", names="fixed")
        assert made.pool.texts == (
            *texts,
            "His sister Mary is a mother.",
            "Rain fell.",
            "She met her uncle.",
        )
        assert made.pool.genders.tolist() == [1, -1, 0, 0, -1, 1]
        assert made.pool.labels.tolist() == [0, 0, 1, 0, 0, 1]
        assert made.texts == 3

    def test_fixed_names_give_the_counterfactuals_of_the_simulation(self) -> None:
        made = biographies(8, leak=1, seed=2)
        assert swap_gender(made.texts, names="fixed") == made.counterfactuals

    def test_random_names_are_of_the_other_gender(self) -> None:
        made = biographies(8, leak=1, seed=2)
        drawn = swap_gender(made.texts, seed=1)
        fixed = made.counterfactuals
        differing = 0
        for one, two in zip(drawn, fixed, strict=True):
            for word, other in zip(one.split(), two.split(), strict=True):
                if word != other:
                    found, wanted = (re.sub(r"\W.*", "", each) for each in (word, other))
                    assert first_names().gender(found) == first_names().gender(wanted)
                    differing += 1
        assert differing > 20
        assert swap_gender(made.texts, seed=1) == drawn
        assert swap_gender(made.texts, seed=2) != drawn

    def test_neutral_texts_tell_no_gender(self) -> None:
        made = biographies(8, leak=1, seed=3)
        plain, others = neutralize(made.texts), neutralize(made.counterfactuals)
        assert plain == others
        assert any(GENDERED.search(text) for text in made.texts)
        assert not any(GENDERED.search(text) for text in plain)

    def test_renamed_texts_have_gender_free_names_alone(self) -> None:
        made = biographies(4, leak=1, seed=3)
        plain, others = (
            neutralize(texts, become="names") for texts in (made.texts, made.counterfactuals)
        )
        assert plain == others
        numbered = neutralize(made.texts)
        assert [re.sub(r"\bE\d+\b", "", text) for text in numbered] != list(numbered)
        free = set(first_names().gender_free)
        for one, two in zip(plain, numbered, strict=True):
            words = zip(re.findall(r"\w+", one), re.findall(r"\w+", two), strict=True)
            assert all(x == y or (x in free and re.fullmatch(r"E\d+", y)) for x, y in words)
        assert read_as(TextMitigation.parse("rename"), ["James sings."]) == ("Casey sings.",)
        with pytest.raises(InputError, match="neutralize or rename, got both"):
            TextMitigation.parse("neutralize+rename")

    def test_both_rewritings(self, simulated: Dataset) -> None:
        made = apply(simulated, "neutralize+augment")
        half = made.texts
        assert made.pool.texts[:half] == neutralize(simulated.texts)
        assert made.pool.texts[half:] == made.pool.texts[:half]  # nothing is left to swap
        assert read_as(made.mitigation, ["She sings."]) == ("They sing.",)
        assert read_as(TextMitigation.parse("augment"), ["She sings."]) == ("She sings.",)

    def test_processes_change_nothing(
        self, simulated: Dataset, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        whole = swap_gender(simulated.texts)
        monkeypatch.setattr("evenhand.fewshot.mitigation.BATCH", 20)
        assert swap_gender(simulated.texts) == whole
        assert swap_gender(simulated.texts, workers=2) == whole
        with pytest.raises(InputError, match="workers: expected 1 or more, got 0"):
            swap_gender(simulated.texts, workers=0)


class TestRows:
    def test_without_counterfactuals_the_rows_stay(self, simulated: Dataset) -> None:
        drawn = sample(simulated, simulated.classes, ways=3, shots=2, queries=3, episodes=9)
        for name in ("none", "neutralize", "calibrate"):
            made = apply(simulated, name)
            placed = made.rows(drawn, training=True)
            np.testing.assert_array_equal(placed.support, drawn.support)
            np.testing.assert_array_equal(placed.query, drawn.query)
            placed.check(made.pool)

    def test_support_has_both_counterfactuals_and_test_queries_stay(
        self, simulated: Dataset
    ) -> None:
        drawn = sample(
            simulated, simulated.classes, ways=3, shots=2, queries=3, unlabelled=2, episodes=9
        )
        made = apply(simulated, "augment")
        placed = made.rows(drawn)
        np.testing.assert_array_equal(placed.query, drawn.query)
        np.testing.assert_array_equal(placed.unlabelled, drawn.unlabelled)
        assert placed.shots == 4
        np.testing.assert_array_equal(placed.support % len(simulated), np.tile(drawn.support, 2))
        assert (made.pool.genders[placed.support] == 1).sum(axis=2).tolist() == [[2] * 3] * 9
        assert (made.pool.labels[placed.support] == placed.classes[:, :, None]).all()
        placed.check(made.pool)

    @pytest.mark.parametrize("version", ["pro", "anti"])
    def test_only_texts_of_the_other_version_are_replaced(self, version: str) -> None:
        rows = [("nurse", "M"), ("nurse", "F"), ("dj", "M"), ("dj", "F"), ("dj", None)]
        rows += [("poet", "M"), ("poet", "F")]
        texts = [
            f"{'She' if gender == 'F' else 'He'} sings {i}." for i, (_, gender) in enumerate(rows)
        ]
        labels, genders = zip(*rows, strict=True)
        data = Dataset.of(texts, labels, genders, name="tiny")
        data = replace(data, leaning_by={"nurse": "female", "dj": "male"})
        made = apply(data, version)
        stays = {"pro": [1, 2, 4, 5, 6], "anti": [0, 3, 4, 5, 6]}[version]
        moved = [row for row in range(7) if row not in stays]
        wanted = [row + 7 * (row in moved) for row in range(7)]
        assert (np.arange(7) + made.shift).tolist() == wanted
        # nurses are women and djs men in the pro-stereotypical version, others as they were
        said = ["She" if made.pool.texts[row].startswith("She") else "He" for row in wanted]
        pro = ["She", "She", "He", "He", "He", "He", "She"]
        anti = ["He", "He", "She", "She", "He", "He", "She"]
        assert said == (pro if version == "pro" else anti)
        drawn = sample(data, data.classes, ways=3, shots=1, queries=1, unlabelled=0, episodes=5)
        for name, more in (("training", True), ("validation", True), ("neither", False)):
            placed = made.rows(drawn, **({name: True} if more else {}))
            np.testing.assert_array_equal(placed.support, np.array(wanted)[drawn.support])
            asked = np.array(wanted)[drawn.query] if more else drawn.query
            np.testing.assert_array_equal(placed.query, asked)

    def test_training_queries_are_either_counterfactual_and_never_of_the_support(
        self, simulated: Dataset
    ) -> None:
        drawn = sample(
            simulated, simulated.classes, ways=4, shots=3, queries=4, unlabelled=2, episodes=300
        )
        made = apply(simulated, "augment")
        placed = made.rows(drawn, training=True, seed=4)
        base = len(simulated)
        np.testing.assert_array_equal(placed.query % base, drawn.query)
        others = (placed.query >= base).mean()
        assert abs(others - 0.5) < 0.04  # five standard errors of 4800 coins
        for support, query in zip(placed.support, placed.query, strict=True):
            assert not set((support % base).ravel().tolist()) & set((query % base).ravel().tolist())
        assert placed.unlabelled is not None
        assert (placed.unlabelled >= base).any()
        assert made.rows(drawn, training=True, seed=4).digest == placed.digest
        assert made.rows(drawn, training=True, seed=5).digest != placed.digest


def test_real_biographies(shared: Path) -> None:
    texts = read(shared / "data/bios/wikibios.csv.gz").texts[::100]
    neutral, other = neutralize(texts), swap_gender(texts)
    before = sum(len(GENDERED.findall(text)) for text in texts)
    assert before > 1000
    assert sum(len(GENDERED.findall(text)) for text in neutral) <= before / 500
    assert (
        sum(text == counterfactual for text, counterfactual in zip(texts, other, strict=True)) <= 1
    )
