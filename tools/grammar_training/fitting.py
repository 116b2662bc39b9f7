"""From examples to the weights of a log-linear model."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evenhand.text.grammar import Kind, PronounQuestion, far_features, near_features
from grammar_training.examples import Example

Verbs = Mapping[str, tuple[str, str]]


def balanced(examples: Sequence[Example], share: float) -> NDArray[np.float64]:
    """Weights that give `yes` the share `share`, alike in talking and in expository documents.

    Without it the model learns what an encyclopedia sounds like (his: him = 8 : 1) and not what
    an object looks like.
    """
    yes = np.array([example.yes for example in examples])
    talk = np.array([example.talk for example in examples])
    weights = np.ones(len(examples))
    for domain in (talk, ~talk):
        for label, part in ((yes, share), (~yes, 1 - share)):
            if np.any(chosen := domain & label):
                weights[chosen] = part * domain.sum() / chosen.sum()
    return weights


def fit(
    examples: Sequence[Example],
    kinds: Mapping[str, Kind],
    verbs: Verbs,
    *,
    share: float,
    min_count: int,
    size: int,
) -> PronounQuestion:
    """Logistic regression (L2) on features seen `min_count` times, refitted on the best `size`."""
    rows = [
        (
            *near_features(example.around.right, example.around.left, kinds),
            *far_features(example.around, kinds, verbs),
        )
        for example in examples
    ]
    counts = Counter(feature for row in rows for feature in row)
    names = sorted(feature for feature, count in counts.items() if count >= min_count)
    yes = np.array([example.yes for example in examples])
    weights = balanced(examples, share)
    bias, result = _regression(rows, names, yes, weights)
    if len(names) > size:
        gain = np.abs(result) * np.sqrt([counts[name] for name in names])
        names = [names[i] for i in np.sort(np.argsort(-gain, kind="stable")[:size])]
        bias, result = _regression(rows, names, yes, weights)
    doubtless = settled(examples, weights)
    return PronounQuestion(bias, dict(zip(names, result.tolist(), strict=True)), doubtless)


def _regression(
    rows: Sequence[Sequence[str]],
    names: Sequence[str],
    yes: NDArray[np.bool_],
    weights: NDArray[np.float64],
) -> tuple[float, NDArray[np.float64]]:
    from scipy import sparse
    from sklearn.linear_model import LogisticRegression

    number = {name: column for column, name in enumerate(names)}
    columns = [[number[feature] for feature in row if feature in number] for row in rows]
    ends = np.cumsum([0, *map(len, columns)])
    flat = np.fromiter((column for row in columns for column in row), np.int32, ends[-1])
    matrix = sparse.csr_matrix((np.ones(len(flat)), flat, ends), shape=(len(rows), len(names)))
    regression = LogisticRegression(C=0.7, max_iter=300, tol=1e-4)
    regression.fit(matrix, yes, sample_weight=weights)
    return float(regression.intercept_[0]), regression.coef_[0]


def settled(
    examples: Sequence[Example],
    weights: NDArray[np.float64],
    times: int = 400,
    share: float = 0.9985,
) -> dict[str, bool]:
    """The next tokens that leave no doubt: nothing else needs to be looked at."""
    count: Counter[str] = Counter()
    total: defaultdict[str, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for example, weight in zip(examples, weights.tolist(), strict=True):
        token = example.around.right[0]
        count[token] += 1
        total[token][example.yes] += weight
    return {
        token: yes > no
        for token, (no, yes) in sorted(total.items())
        if count[token] >= times and max(no, yes) >= share * (no + yes)
    }
