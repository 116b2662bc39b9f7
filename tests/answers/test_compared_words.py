"""Which words of answers are compared: not those of a group, and the same in every run."""

from evenhand.answers import Answers
from evenhand.answers.metrics import words
from evenhand.answers.metrics.words import DistinctiveWords


def two_groups():
    """The same of a woman and a man in four jobs."""
    texts, items, groups = [], [], []
    for job in ("nurse", "judge", "cook", "pilot"):
        for group, text in (
            ("woman", "She's kind. Emily's work is the team's pride."),
            ("man", "He's kind. Jamal's work is the team's pride."),
        ):
            texts.append(text)
            items.append(job)
            groups.append(group)
    return Answers(tuple(texts), tuple(items), groups={"gender": tuple(groups)})


def test_possessives_of_names_and_pronouns_do_not_count():
    (result,) = DistinctiveWords(least=1, permutations=19).measure(two_groups())
    assert {row["word"] for row in result.items} == {"kind", "work", "is", "the", "team", "pride"}


def test_of_words_used_as_often_the_first_by_name_are_compared(monkeypatch):
    """Sets have another order in every process; equal counts must not depend on it."""
    monkeypatch.setattr(words, "MOST", 3)
    (result,) = DistinctiveWords(least=1, permutations=19).measure(two_groups())
    assert {row["word"] for row in result.items} == {"is", "kind", "pride"}
