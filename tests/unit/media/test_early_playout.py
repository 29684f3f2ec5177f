"""Marks that wait, and those that are taken back while their audio stays."""

from __future__ import annotations

from media.aio.early_playout import PendingMarks


def test_marks_are_told_when_they_are_reached() -> None:
    marks = PendingMarks()
    for name in ("a", "b", "a"):
        marks.add(name)
    assert [marks.reached(name) for name in ("a", "b", "a")] == [True, True, True]


def test_marks_that_were_taken_back_are_not_told_again() -> None:
    marks = PendingMarks()
    for name in ("mark:a", "play:1", "mark:b"):
        marks.add(name)
    assert marks.take_back("mark:") == ["mark:a", "mark:b"]
    # A new mark of the same name stands behind the one that was taken back.
    marks.add("mark:a")
    reported = ["mark:a", "play:1", "mark:b", "mark:a"]
    assert [marks.reached(name) for name in reported] == [False, True, False, True]
    assert marks.take_back("") == []


def test_marks_are_bounded_also_by_those_that_the_queue_still_holds() -> None:
    marks = PendingMarks()
    for number in range(1000):
        assert not marks.full
        marks.add(str(number))
    assert marks.full
    marks.take_back("")
    assert marks.full
    marks.reached("0")
    assert not marks.full


def test_a_mark_that_nobody_set_is_told_all_the_same() -> None:
    assert PendingMarks().reached("x")
