"""Conclusions that a node draws from its own renewals."""

from __future__ import annotations

import pytest

from callcontrol.nodes.lease import LeaseSettings, Node, NodeState, RenewalRecord, wait_s

LEASE_S = 8.0


def renewals(until_s: float, *, begin_s: float = 0.0) -> RenewalRecord:
    record = RenewalRecord(begin_s, LEASE_S)
    now_s = begin_s
    while now_s <= until_s:
        record.renewed(now_s)
        now_s += 2.0
    return record


def node(lease_left_s: float) -> Node:
    return Node("b", "1", "", "", lease_left_s)


@pytest.mark.parametrize(
    ("found", "state"),
    [
        (Node("b", "1", "", "", 6.0), NodeState.UP),
        (Node("b", "1", "", "", 6.0, is_draining=True), NodeState.DRAINING),
        (Node("b", "1", "", "", 0.0), NodeState.DEAD),
        (Node("b", "1", "", "", -3.0, is_draining=True), NodeState.DEAD),
        (Node("b", "1", "", "", 20.0, adopted_by="a"), NodeState.BEING_ADOPTED),
        (Node("b", "1", "", "", 20.0, adopted_by="a", is_draining=True), NodeState.BEING_ADOPTED),
        (Node("b", "1", "", "", -1.0, adopted_by="a"), NodeState.DEAD),
    ],
)
def test_the_state_of_a_node(found: Node, state: NodeState) -> None:
    """A drain ends with the lease, and a lease after an adoption is the adopter's, which may die too."""
    assert found.state is state
    assert found.is_living is (state in (NodeState.UP, NodeState.DRAINING))


@pytest.mark.parametrize(("renewed_s", "allowed"), [(0.0, False), (14.0, False), (16.0, True), (60.0, True)])
def test_only_a_node_that_renewed_through_two_leases_adopts(renewed_s: float, allowed: bool) -> None:
    assert renewals(renewed_s).may_adopt(renewed_s) is allowed


def test_a_failed_renewal_begins_the_time_anew() -> None:
    record = renewals(60.0)
    record.failed(61.0)
    assert not record.may_adopt(61.0)
    record.renewed(62.0)
    assert not record.may_adopt(76.0)


def test_a_process_that_stood_still_adopts_nobody() -> None:
    record = renewals(60.0)
    assert record.may_adopt(68.0)
    assert not record.may_adopt(68.1)
    record.renewed(80.0)
    assert not record.may_adopt(80.0)
    for at_s in range(82, 98, 2):
        record.renewed(float(at_s))
    assert record.may_adopt(96.0)


@pytest.mark.parametrize(
    ("left_s", "expected_s"), [((), 2.0), ((7.0,), 2.0), ((0.5, 7.0), 0.55), ((-3.0,), 2.0)]
)
def test_the_next_look_is_at_the_end_of_a_lease(left_s: tuple[float, ...], expected_s: float) -> None:
    assert wait_s(LeaseSettings(), [node(each) for each in left_s]) == pytest.approx(expected_s)
