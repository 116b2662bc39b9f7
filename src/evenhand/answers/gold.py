"""A few answers whose truth people have labelled, and what they say of what was read from texts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from evenhand.answers.cells import Cells, GroupContrast, Ints, worth
from evenhand.answers.table import USUAL, Answers
from evenhand.errors import FileError, parameter
from evenhand.statistics.clusters import cluster_mean
from evenhand.statistics.intervals import Floats
from evenhand.statistics.misclassification import JudgedShare
from evenhand.text.tables import Source, open_table

LABELS = ("gold", "truth", "true", "label")
"""The names by which the column of the labels is recognised."""
KEYS = ("item", "wording", "topic", "prompt", "sample", "text")


@dataclass(frozen=True, slots=True)
class Gold:
    """Labelled answers: the cells that say which answer a row is of, and its label.

    Parameters
    ----------
    keys : tuple of Mapping of str to str
        By role ("item", "sample", "text" …) or name of a group's column.
    labels : tuple of str
    name : str

    """

    keys: tuple[Mapping[str, str], ...]
    labels: tuple[str, ...]
    name: str = "gold"

    def truth(self, answers: Answers, positive: Callable[[str], bool | None]) -> Floats:
        """1 or 0 for each answer whose label is positive or not; NaN for all others.

        `positive` says of a label what it is, None where it is neither.
        """
        columns = {
            "item": answers.items,
            "wording": answers.wordings,
            "topic": answers.topics,
            "prompt": answers.prompts,
            "sample": answers.samples,
            "text": answers.texts,
            **answers.groups,
        }
        shared = [role for role in self.keys[0] if columns.get(role)]
        if not shared:
            raise FileError(
                self.name,
                f"expected columns that say which answer a label is of ({', '.join(KEYS)}, or "
                f"groups), got {', '.join(self.keys[0]) or 'none'}",
            )
        rows: dict[tuple[str, ...], list[int]] = defaultdict(list)
        for row, key in enumerate(zip(*(columns[role] for role in shared), strict=True)):
            rows[tuple(str(cell).strip() for cell in key)].append(row)
        truth = np.full(len(answers), np.nan)
        for number, (key_cells, label) in enumerate(zip(self.keys, self.labels, strict=True), 1):
            found = rows.get(tuple(key_cells[role] for role in shared), [])
            free = [row for row in found if np.isnan(truth[row])]
            if not free or len({answers.texts[row] for row in found}) > 1:
                shown = f"{len(found):,} with different texts" if free else "none"
                more = "; a column of the sample or the text tells them apart" if free else ""
                raise FileError(
                    self.name,
                    f"row {number}: expected one answer with its {', '.join(shared)}, got "
                    f"{shown}{more}",
                )
            value = positive(label)
            if value is None:
                raise FileError(self.name, f"row {number}: expected a label, got '{label[:40]}'")
            truth[free[0]] = float(value)
        return truth


def read_gold(source: Source, label: str | None = None) -> Gold:
    """Read labelled answers from a table.

    Parameters
    ----------
    source : path or DataFrame
        Its columns say which answer a row is of, by the names that they have in the answers (item,
        wording, topic, prompt, sample, text, groups), and its label.
    label : str, optional
        The column of the labels; by default "gold", "truth", "true" or "label".

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"item": ["nurse"], "sample": [0], "gold": ["yes"]})
    >>> read_gold(table).labels
    ('yes',)
    """
    with open_table(source) as table:
        column = table.column(label, LABELS)
        if column is None:
            raise FileError(
                table.name,
                f"which column has the labels? Name it with {parameter('label')} (columns: "
                f"{', '.join(table.columns)})",
            )
        names = [name for name in table.columns if name and name != column]
        roles = {name: role for role in KEYS for name in names if name.lower() in USUAL[role]}
        roles = {name: roles.get(name, name) for name in names}
        keys, labels = [], []
        for number, cells in enumerate(table.rows(*names, column), 1):
            if cells[-1] is None:
                raise FileError(table.name, f"row {number}: '{column}': expected a label, got none")
            own = zip(names, cells, strict=False)
            keys.append({roles[name]: str(cell).strip() for name, cell in own})
            labels.append(cells[-1])
        if not labels:
            raise FileError(table.name, "expected labelled answers, got a header only")
        return Gold(tuple(keys), tuple(labels), table.name)


def judged_share(
    cells: Cells, answers: Answers, values: Floats, truth: Floats, chosen: Ints
) -> JudgedShare:
    """A group's share as the judge counted it, and how well it judges the labelled answers.

    Labelled answers of one unit are alike, so that they count as many as they are worth.

    Parameters
    ----------
    cells : Cells
        Of the group.
    answers, values, truth
        All answers, what was read from them and what is true.
    chosen : array of int
        The answers of the group.

    """
    share, own = worth(cells, cells.mean())
    known = chosen[np.isfinite(truth[chosen]) & np.isfinite(values[chosen])]
    units = np.unique([answers.units[row] for row in known], return_inverse=True)[1]
    counts = []
    for kind in (1.0, 0.0):
        of = truth[known] == kind
        right = (values[known] == truth[known])[of].astype(float)
        number = float(len(right))
        if number:
            mean = cluster_mean(right, units[of], int(units.max()) + 1)
            number = min(number, max(1.0, mean.worth))
        counts.append((number, number * float(right.mean()) if len(right) else 0.0))
    (positives, found), (negatives, cleared) = counts
    return JudgedShare(
        share=share,
        worth=own,
        positives=positives,
        found=found,
        negatives=negatives,
        cleared=cleared,
    )


def correlation(contrast: GroupContrast) -> float:
    """Of the errors of both groups' shares, by the variances of these and of their difference."""
    variances = [side.mean().variance for side in contrast.sides]
    if not min(variances) > 0:
        return 0.0
    both = 2 * float(np.sqrt(variances[0] * variances[1]))
    return float(np.clip((sum(variances) - contrast.mean.variance) / both, -0.99, 0.99))
