"""Receipts: in any order, doubled and late."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.messaging.models import MessageStatus
from callcontrol.messaging.network import ReceiptStatus
from callcontrol.messaging.receipts import passed

ORDER = ("queued", "sent", "delivered", "read")
RECEIPTS = get_args(ReceiptStatus)


def run(receipts: list[str]) -> list[str]:
    """The states that a message passes, from its first one on."""
    states: list[MessageStatus] = ["queued"]
    for receipt in receipts:
        states += passed(states[-1], receipt)
    return list(states)


def test_a_message_goes_through_all_states_in_their_order() -> None:
    assert run(["sent", "delivered", "read"]) == ["queued", "sent", "delivered", "read"]


def test_what_was_read_had_been_delivered() -> None:
    assert run(["read", "delivered", "sent"]) == ["queued", "sent", "delivered", "read"]


@pytest.mark.parametrize("reached", [["sent"], ["delivered"], ["sent", "delivered"]])
def test_a_receipt_of_reading_passes_what_was_not_told(reached: list[str]) -> None:
    assert run([*reached, "read"]) == ["queued", "sent", "delivered", "read"]


def test_what_arrived_has_not_failed() -> None:
    assert run(["sent", "delivered", "failed", "read"]) == ["queued", "sent", "delivered", "read"]


def test_what_failed_has_ended() -> None:
    assert run(["sent", "failed", "delivered", "read", "failed"]) == ["queued", "sent", "failed"]


def test_nothing_is_told_of_what_was_received() -> None:
    assert [passed("received", receipt) for receipt in RECEIPTS] == [()] * len(RECEIPTS)


@given(st.lists(st.sampled_from(RECEIPTS), max_size=12))
def test_no_order_of_receipts_takes_a_message_back_or_through_a_state_twice(receipts: list[str]) -> None:
    states = run(receipts)
    assert len(set(states)) == len(states)
    reached = [state for state in states if state != "failed"]
    assert reached == list(ORDER[: len(reached)])
    assert "failed" not in states[:-1]
    if "failed" in states:
        assert reached[-1] in ("queued", "sent")


@given(st.lists(st.sampled_from(("sent", "delivered", "read")), min_size=1))
def test_without_a_failure_the_furthest_receipt_decides(receipts: list[str]) -> None:
    assert run(receipts)[-1] == max(receipts, key=ORDER.index)
