"""Distributions of what is measured."""

from __future__ import annotations

from math import inf

from callcontrol.histogram import Histogram


def test_values_are_counted_by_the_first_bound_they_are_within() -> None:
    histogram = Histogram((1.0, 5.0))
    for value in (0.0, 1.0, 1.5, 5.0, 7.0):
        histogram.observe(value)
    assert histogram.cumulative() == [(1.0, 2), (5.0, 4), (inf, 5)]
    assert (histogram.count, histogram.sum) == (5, 14.5)


def test_nothing_came() -> None:
    assert Histogram((1.0,)).cumulative() == [(1.0, 0), (inf, 0)]
