"""Tickets of legs between nodes: who can make one, and how often it opens a leg."""

from __future__ import annotations

from dataclasses import replace

import pytest

from callcontrol.calls.conference_room import MemberTerms
from callcontrol.calls.conference_ticket import VALID_S, ConferenceTicket, TicketGate
from callcontrol.secrets.aio import SecretBox
from tests.support.domain import ACCOUNT_SID, CALL_SID
from tests.support.secrets import SECRETS

NOW_S = 1_800_000_000.0
TICKET = ConferenceTicket(
    call_id="leg-1",
    node="b",
    incarnation="run-1",
    account_sid=ACCOUNT_SID,
    conference="sales \u0939 \ud800",
    call_sid=CALL_SID,
    terms=MemberTerms(muted=True, starts=False, ends=True, beeps=False),
    max_members=7,
    made_at_s=NOW_S,
)


@pytest.fixture
def gate() -> TicketGate:
    return TicketGate(SECRETS, "run-1")


def test_a_ticket_says_all_that_it_was_made_of(gate: TicketGate) -> None:
    sealed = TICKET.seal(SECRETS)
    assert sealed.isascii() and "\r" not in sealed and "\n" not in sealed
    assert ACCOUNT_SID not in sealed, "it is encrypted"
    assert gate.accept(sealed, "leg-1", NOW_S) == TICKET


def test_a_ticket_opens_one_leg(gate: TicketGate) -> None:
    sealed = TICKET.seal(SECRETS)
    assert gate.accept(sealed, "leg-2", NOW_S) is None, "it is for another leg"
    assert gate.accept(sealed, "leg-1", NOW_S) == TICKET
    assert gate.accept(sealed, "leg-1", NOW_S) is None


@pytest.mark.parametrize("late_s", [-VALID_S - 1, VALID_S + 1])
def test_a_ticket_of_another_time_is_refused(gate: TicketGate, late_s: float) -> None:
    assert gate.accept(TICKET.seal(SECRETS), "leg-1", NOW_S + late_s) is None


def test_a_used_ticket_is_remembered_for_as_long_as_it_is_valid(gate: TicketGate) -> None:
    """The clock of the node that makes it may be ahead."""
    ahead = replace(TICKET, made_at_s=NOW_S + VALID_S).seal(SECRETS)
    assert gate.accept(ahead, "leg-1", NOW_S) is not None
    for number in range(3):
        other = replace(TICKET, call_id=f"other-{number}", made_at_s=NOW_S + VALID_S).seal(SECRETS)
        assert gate.accept(other, f"other-{number}", NOW_S + number * VALID_S) is not None
    assert gate.accept(ahead, "leg-1", NOW_S + 2 * VALID_S) is None


def test_a_ticket_for_an_earlier_run_of_the_node_is_refused() -> None:
    assert TicketGate(SECRETS, "run-2").accept(TICKET.seal(SECRETS), "leg-1", NOW_S) is None


def test_nobody_without_the_key_makes_a_ticket(gate: TicketGate) -> None:
    stranger = SecretBox([bytes(32)])
    sealed = TICKET.seal(SECRETS)
    forged = [
        TICKET.seal(stranger),
        SECRETS.seal("another purpose", "{}"),
        SECRETS.seal("conference leg", "{}"),
        SECRETS.seal("conference leg", "[]"),
        sealed[:-4] + "AAAA",
        "",
        "sealed:1:",
    ]
    assert [gate.accept(text, "leg-1", NOW_S) for text in forged] == [None] * len(forged)
    assert gate.accept(sealed, "leg-1", NOW_S) is not None


def test_a_rotated_key_still_opens_tickets() -> None:
    old, new = bytes(range(32)), bytes(range(1, 33))
    gate = TicketGate(SecretBox([new, old]), "run-1")
    assert gate.accept(TICKET.seal(SecretBox([old])), "leg-1", NOW_S) == TICKET
