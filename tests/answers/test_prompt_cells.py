"""Several prompts of an item and group, by word and by name, are no samples of one prompt."""

import numpy as np

from evenhand.answers import Answers
from evenhand.answers.cells import make_cells, make_contrast
from evenhand.answers.components import components


def test_the_icc_is_of_the_samples_of_a_prompt():
    rng = np.random.default_rng(0)
    rows = [
        (item, group, f"{item} {group} {naming}", value + 0.01 * rng.normal())
        for item in "abcdef"
        for group in ("man", "woman")
        for naming, value in zip(("word", "name"), rng.normal(size=2), strict=True)
        for _ in range(3)
    ]
    items, groups, prompts, values = zip(*rows, strict=True)
    answers = Answers(("",) * len(rows), items, groups={"gender": groups}, prompts=prompts)
    cells = make_cells(answers, np.array(values), groups)
    assert len(cells.means) == 24
    assert set(cells.sizes) == {3}
    assert components(cells)["icc"] > 0.99
    whole = make_contrast(cells, "man", "woman")
    without = Answers(("",) * len(rows), items, groups={"gender": groups})
    same = make_contrast(make_cells(without, np.array(values), groups), "man", "woman")
    np.testing.assert_allclose(whole.mean.value, same.mean.value)
    np.testing.assert_allclose(whole.mean.variance, same.mean.variance)
