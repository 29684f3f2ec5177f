"""Limit of guesses from one source at the password of one name."""

from sip.auth.server import LOCK_S, MAX_ENTRIES, MAX_FAILURES, Lockout

HERE, THERE = "192.0.2.1", "192.0.2.2"


def guess(lockout: Lockout, times: int, at_s: float, username: str = "victim", source: str = HERE) -> None:
    for _ in range(times):
        lockout.note(source, username, at_s, right=False)


def test_after_too_many_guesses_nothing_is_believed_for_a_while() -> None:
    lockout = Lockout()
    guess(lockout, MAX_FAILURES - 1, 1.0)
    assert not lockout.holds(HERE, "victim", 1.0)
    guess(lockout, 1, 2.0)
    assert lockout.holds(HERE, "victim", 2.0 + LOCK_S - 1)
    assert not lockout.holds(HERE, "other", 3.0) and not lockout.holds(THERE, "victim", 3.0)
    assert not lockout.holds(HERE, "victim", 2.0 + LOCK_S)
    guess(lockout, 1, 2.0 + LOCK_S)
    assert lockout.holds(HERE, "victim", 3.0 + LOCK_S), "one guess more, and no more"


def test_the_own_password_gives_no_right_to_guess_another() -> None:
    lockout = Lockout()
    for _ in range(MAX_FAILURES):
        guess(lockout, 1, 1.0)
        lockout.note(HERE, "own", 1.0, right=True)
    assert lockout.holds(HERE, "victim", 1.0) and not lockout.holds(HERE, "own", 1.0)


def test_a_right_password_and_time_both_forgive() -> None:
    lockout = Lockout()
    guess(lockout, MAX_FAILURES - 1, 1.0)
    lockout.note(HERE, "victim", 2.0, right=True)
    guess(lockout, MAX_FAILURES - 1, 3.0)
    assert not lockout.holds(HERE, "victim", 3.0)
    guess(lockout, 1, 4000.0)
    assert not lockout.holds(HERE, "victim", 4000.0)


def test_memory_is_bounded() -> None:
    lockout = Lockout()
    for number in range(MAX_ENTRIES + 100):
        guess(lockout, 1, 1.0, username=str(number))
    assert len(lockout._failures) == MAX_ENTRIES
