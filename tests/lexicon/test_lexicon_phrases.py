"""The built-in phrase sets, and phrase sets from files."""

import re

import pytest

from evenhand.errors import InputError, LexiconError
from evenhand.lexicon import pairs
from evenhand.lexicon.phrases import phrases, read_phrases


def test_what_is_built_in():
    lists = phrases()
    themes = [phrase_set for phrase_set in lists.sets.values() if not phrase_set.neutral]
    assert len(themes) >= 3
    assert any(phrase_set.neutral for phrase_set in lists.sets.values())
    for phrase_set in lists.sets.values():
        assert all(len(side) >= 16 for side in phrase_set.targets.values())
        assert len({len(side) for side in phrase_set.targets.values()}) == 1
    assert len(lists.carriers) >= 5
    male, female = lists.attributes.values()
    assert len(male) == len(female)


def test_no_phrase_states_a_gender():
    lists = phrases()
    people = [pair for pair in pairs() if pair.safe and pair.kind != "animal"]  # steers, counts
    stating = {pair.female for pair in people if pair.direction != "male-to-female"}
    stating |= {pair.male for pair in people if pair.direction != "female-to-male"}
    every = [phrase for phrase_set in lists.sets.values() for phrase in phrase_set.phrases]
    for text in [*every, *lists.control, *lists.carriers]:
        assert not stating & set(re.findall(r"[a-z]+", text.lower())), text
    for phrase in [*every, *lists.control]:
        assert phrase == phrase.lower()
        assert phrase.split()[0].endswith("s"), phrase  # third person singular
        assert len(phrase.split()) >= 2
    assert not set(every) & set(lists.control)


OWN = """
[sets.tools.targets]
tools = ["saws the plank", "files the key"]
yarn = ["spins the wool", "winds the yarn"]
"""


def test_the_users_own(tmp_path):
    path = tmp_path / "own.toml"
    path.write_text(OWN)
    own = read_phrases(path)
    assert own.sets["tools"].title == "tools"
    assert own.sets["tools"].phrases[2] == "spins the wool"
    assert own.carriers == phrases().carriers
    assert own.control == phrases().control
    path.write_text('carriers = ["{phrase}? [MASK]!", "[MASK] {phrase}."]\n' + OWN)
    assert read_phrases(path).carriers == ("{phrase}? [MASK]!", "[MASK] {phrase}.")
    both = own.join(phrases().select(["neutral"]))
    assert list(both.sets) == ["tools", "neutral"]
    with pytest.raises(InputError, match="got two"):
        own.join(own)
    with pytest.raises(InputError, match="did you mean 'machines'"):
        phrases().select(["machnes"])


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "the key 'sets' is missing"),
        ("[sets]", "sets: expected at least one phrase set"),
        ("[sets.a]", "sets.a: the key 'targets' is missing"),
        (OWN.replace("files the key", "spins the wool"), "sets.tools.targets: 'spins the wool'"),
        (OWN + 'more = ["a b", "c d"]', "sets.tools.targets: expected two named lists, got 3"),
        ('carriers = ["{phrase} only", "x"]' + OWN, "carriers #1: expected a sentence with one"),
        (
            OWN + "[sets.b]\nneutral = 1\n[sets.b.targets]\nx = ['p q', 'r s']\ny = ['t u', 'v w']",
            "sets.b.neutral: expected true or false, got 1",
        ),
        (OWN + "[attributes]\nmale = ['he', 'him']", "attributes: expected two named lists, got 1"),
    ],
)
def test_an_error_names_its_key(tmp_path, text, complaint):
    path = tmp_path / "own.toml"
    path.write_text(text)
    with pytest.raises(LexiconError) as error:
        read_phrases(path)
    assert str(error.value).startswith(str(path))
    assert complaint in str(error.value)
