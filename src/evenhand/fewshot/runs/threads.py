"""A number of threads for a while: the last bits of sums may depend on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["threads"]


@contextmanager
def threads(count: int) -> Iterator[None]:
    """So many threads of torch and of the linear algebra of others."""
    import torch
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        with threadpool_limits(count):
            yield
    finally:
        torch.set_num_threads(before)
