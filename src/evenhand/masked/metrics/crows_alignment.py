"""Which tokens two sentences share: a longest common subsequence, the same whichever comes first.

Nangia et al. (2020) call the tokens that the two sentences of a pair have in common U. Their own
code finds them with `difflib`, whose blocks need be neither as many as possible nor the same when
the sentences change places; a longest common subsequence is the most that can be shared.
"""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["shared"]


def shared(one: Sequence[int], other: Sequence[int]) -> list[tuple[int, int]]:
    """Places (i, j) of equal tokens, increasing in both, as many as there can be.

    Where several choices are equally long the beginning and the end of the sentences are matched
    first, and in between the smaller of two differing ids is passed over, so that the choice does
    not depend on the order of the sentences.

    >>> shared([5, 7, 9, 2], [5, 8, 8, 9, 2])
    [(0, 0), (2, 3), (3, 4)]
    """
    start = 0
    while start < min(len(one), len(other)) and one[start] == other[start]:
        start += 1
    end = 0
    while end < min(len(one), len(other)) - start and one[-1 - end] == other[-1 - end]:
        end += 1
    first, second = one[start : len(one) - end], other[start : len(other) - end]
    return [
        *((i, i) for i in range(start)),
        *((start + i, start + j) for i, j in _between(first, second)),
        *((len(one) - k, len(other) - k) for k in range(end, 0, -1)),
    ]


def _between(one: Sequence[int], other: Sequence[int]) -> list[tuple[int, int]]:
    lengths = [[0] * (len(other) + 1) for _ in range(len(one) + 1)]
    for i in reversed(range(len(one))):
        for j in reversed(range(len(other))):
            lengths[i][j] = (
                lengths[i + 1][j + 1] + 1
                if one[i] == other[j]
                else max(lengths[i + 1][j], lengths[i][j + 1])
            )
    pairs = []
    i = j = 0
    while i < len(one) and j < len(other):
        if one[i] == other[j]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif (lengths[i + 1][j], other[j]) > (lengths[i][j + 1], one[i]):
            i += 1
        else:
            j += 1
    return pairs
