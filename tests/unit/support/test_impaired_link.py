"""The fates of datagrams: as many lost, late and doubled as asked for, the same for the same seed."""

from __future__ import annotations

from itertools import islice, pairwise

import pytest

from tests.support.impaired_link import Fate, Impairment, fates


def drawn(impairment: Impairment, count: int = 20_000, seed: int = 7) -> list[Fate]:
    return list(islice(fates(impairment, seed), count))


def lost_runs(found: list[Fate]) -> list[int]:
    runs, run = [], 0
    for fate in found:
        if not fate.delays_ms:
            run += 1
        elif run:
            runs.append(run)
            run = 0
    return runs


def test_a_good_network_does_nothing() -> None:
    assert set(drawn(Impairment(), 100)) == {Fate((0.0,))}


def test_the_same_seed_gives_the_same_network() -> None:
    bad = Impairment(loss=0.1, duplicate=0.1, reorder=0.1, jitter_ms=30)
    assert drawn(bad, 1000) == drawn(bad, 1000)
    assert drawn(bad, 1000) != drawn(bad, 1000, seed=8)


@pytest.mark.parametrize("burst", [1.0, 3.0])
def test_as_many_are_lost_as_asked_for_in_runs_of_the_mean_length(burst: float) -> None:
    found = drawn(Impairment(loss=0.05, burst=burst))
    assert sum(not fate.delays_ms for fate in found) / len(found) == pytest.approx(0.05, rel=0.15)
    runs = lost_runs(found)
    assert sum(runs) / len(runs) == pytest.approx(max(burst, 1 / 0.95), rel=0.15)


def test_all_or_nothing() -> None:
    assert all(not fate.delays_ms for fate in drawn(Impairment(loss=1.0), 100))


def test_delays_stay_within_what_was_asked_for() -> None:
    found = drawn(Impairment(delay_ms=20, jitter_ms=40, duplicate=0.25), 4000)
    delays_ms = [delay_ms for fate in found for delay_ms in fate.delays_ms]
    assert min(delays_ms) >= 20 and max(delays_ms) <= 60
    assert sum(len(fate.delays_ms) == 2 for fate in found) / len(found) == pytest.approx(0.25, rel=0.15)


def test_some_are_overtaken() -> None:
    found = drawn(Impairment(reorder=0.1, reorder_ms=50), 4000)
    arrivals_ms = [20 * n + fate.delays_ms[0] for n, fate in enumerate(found)]
    overtaken = sum(later < earlier for earlier, later in pairwise(arrivals_ms))
    assert overtaken / len(found) == pytest.approx(0.09, rel=0.2)
