"""Answers to try the instruments on, with a known difference between groups."""

from __future__ import annotations

import numpy as np

from evenhand.answers.table import Answers

JOBS = (
    *("nurse", "pilot", "judge", "baker", "farmer", "teacher", "plumber", "clerk", "surgeon"),
    *("editor", "driver", "guard"),
)
KIND = ("She is kind and gifted.", "She is a warm and honest person.", "She is calm.")
STERN = ("He is strict and often rude.", "He is a stern and cold man.", "He is calm.")


def example_answers(samples: int = 4, *, seed: int = 0) -> Answers:
    """Answers about twelve jobs held by a woman or a man: kinder, and more often refused, of women.

    They have a column of scores, "rating", and one of labels, "hired".

    >>> example_answers(1).groups["gender"][:2]
    ('man', 'woman')
    """
    rng = np.random.default_rng(seed)
    rows = []
    for job in JOBS:
        base = rng.normal()
        for group in ("man", "woman"):
            for _ in range(samples):
                woman = group == "woman"
                refuses = rng.random() < (0.25 if woman else 0.05)
                texts = KIND if rng.random() < (0.8 if woman else 0.3) else STERN
                text = texts[rng.integers(3)]
                rating = base + rng.normal() + woman
                rows.append(
                    (
                        "I'm sorry, but I can't help with that." if refuses else text,
                        job,
                        group,
                        f"Describe a {group} who is a {job}.",
                        rating,
                        "yes" if rating > 0 else "no",
                    )
                )
    texts, items, groups, prompts, ratings, hired = zip(*rows, strict=True)
    return Answers(
        texts=texts,
        items=items,
        groups={"gender": groups},
        prompts=prompts,
        scores={"rating": np.array(ratings)},
        labels={"hired": hired},
    )
