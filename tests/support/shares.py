"""Shares of the runners: which tests each begins with, before it takes over tests of others."""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from itertools import groupby

import pytest

__all__ = ["shares"]


def shares(
    items: Sequence[pytest.Item], runners: int, *, duration_s: Callable[[pytest.Item], float]
) -> list[pytest.Item]:
    """
    Order tests so that equal numbers of them, one behind the other, take about the same time.

    Of two kinds of tests one computes and the other waits for far ends. Files are shuffled, the same way in
    each run, so that there are always some of both. Tests without a duration are in single pieces at the end
    of each share, from where other runners take over what is left.
    """
    long = [item for item in items if duration_s(item) > 0]
    short = [item for item in items if duration_s(item) <= 0]
    files = [list(group) for _, group in groupby(long, key=lambda item: item.path)]
    random.Random(1).shuffle(files)
    taken: list[list[list[pytest.Item]]] = [[] for _ in range(runners)]
    heap = [(0.0, number) for number in range(runners)]
    # The longest file goes to the runner that has least, and so on.
    for file in sorted(files, key=lambda file: -_sum(file, duration_s)):
        load_s, number = heapq.heappop(heap)
        taken[number].append(file)
        heapq.heappush(heap, (load_s + _sum(file, duration_s), number))
    place = {id(file): number for number, file in enumerate(files)}
    ordered: list[pytest.Item] = []
    rest = iter(short)
    for number, mine in enumerate(taken):
        share = [item for file in sorted(mine, key=lambda file: place[id(file)]) for item in file]
        # As the tests are distributed: what is left, by the runners that are left.
        size = (len(items) - len(ordered)) // (runners - number)
        share += [item for _, item in zip(range(size - len(share)), rest, strict=False)]
        ordered += share
    return [*ordered, *rest]


def _sum(file: Sequence[pytest.Item], duration_s: Callable[[pytest.Item], float]) -> float:
    return sum(duration_s(item) for item in file)
