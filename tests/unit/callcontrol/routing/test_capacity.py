"""Limits on calls at once and on calls a second."""

import pytest

from callcontrol.errors import (
    RateLimited,
    ServiceUnavailable,
    no_free_trunk,
    too_many_calls,
    too_many_starts,
)
from callcontrol.routing.capacity import Capacity
from tests.support.domain import ACCOUNT_SID, OTHER_SID, make_account, make_carrier, make_gateway


def test_calls_at_once() -> None:
    capacity = Capacity(max_calls=3, max_cps=100)
    one, other = make_account(max_calls=2), make_account(OTHER_SID)
    capacity.enter(one, 0.0)
    capacity.enter(one, 0.0)
    with pytest.raises(ServiceUnavailable, match="account has 2"):
        capacity.enter(one, 0.0)
    capacity.enter(other, 0.0)
    with pytest.raises(ServiceUnavailable, match="All 3"):
        capacity.enter(other, 0.0)
    capacity.leave(ACCOUNT_SID)
    capacity.enter(one, 0.0)
    assert capacity.calls == 3


def test_an_account_begins_calls_no_faster_than_it_may() -> None:
    capacity = Capacity(1000, 1000)
    account = make_account(max_cps=2, max_calls=1000)
    capacity.enter(account, 0.0)
    capacity.enter(account, 0.0)
    with pytest.raises(RateLimited) as refusal:
        capacity.enter(account, 0.0)
    assert refusal.value.retry_after_s == pytest.approx(0.5)
    capacity.enter(account, 0.5)
    assert sum(_begun(capacity, account, number / 100) for number in range(51, 1051)) == 20


def _begun(capacity: Capacity, account: object, now: float) -> bool:
    try:
        capacity.enter(account, now)  # type: ignore[arg-type]
    except RateLimited:
        return False
    return True


def test_the_server_begins_calls_no_faster_than_it_may() -> None:
    capacity = Capacity(1000, 1)
    capacity.enter(make_account(), 0.0)
    with pytest.raises(ServiceUnavailable):
        capacity.enter(make_account(OTHER_SID), 0.1)
    capacity.enter(make_account(OTHER_SID), 1.0)


def test_a_refused_call_counts_for_nothing() -> None:
    capacity = Capacity(1, 100)
    capacity.enter(make_account(), 0.0)
    for _ in range(50):
        with pytest.raises(ServiceUnavailable):
            capacity.enter(make_account(), 0.0)
    capacity.leave(ACCOUNT_SID)
    capacity.enter(make_account(), 0.0)
    assert capacity.calls == 1


def test_carriers_and_gateways_have_limits_of_their_own() -> None:
    capacity = Capacity(10, 10)
    carrier, gateway = make_carrier(max_concurrent_calls=3), make_gateway(max_concurrent_calls=1)
    other = make_gateway("gateway-2")
    capacity.enter_trunk(carrier, gateway, 0.0)
    assert capacity.wait_for_trunk_s(carrier, gateway, 0.0) > 0.0
    assert capacity.wait_for_trunk_s(carrier, other, 0.0) == 0.0
    capacity.enter_trunk(carrier, other, 0.0)
    capacity.enter_trunk(carrier, other, 0.0)
    assert capacity.wait_for_trunk_s(carrier, other, 0.0) > 0.0
    assert (capacity.legs_at("carrier-1"), capacity.legs_at("gateway-2")) == (3, 2)
    for at in (gateway, other, other):
        capacity.leave_trunk(carrier, at)
    assert capacity.wait_for_trunk_s(carrier, gateway, 0.0) == 0.0
    assert (capacity.legs_at("carrier-1"), capacity.legs_at("gateway-1"), capacity.legs_at("gateway-2")) == (
        0,
        0,
        0,
    )


def test_a_trunk_begins_no_more_in_a_second_than_it_may() -> None:
    capacity = Capacity(10, 10)
    carrier, gateway = make_carrier(max_cps=4), make_gateway(max_cps=2)
    for _ in range(2):
        assert capacity.wait_for_trunk_s(carrier, gateway, 0.0) == 0.0
        capacity.enter_trunk(carrier, gateway, 0.0)
    assert capacity.wait_for_trunk_s(carrier, gateway, 0.0) == pytest.approx(0.5)
    assert capacity.wait_for_trunk_s(carrier, make_gateway("gateway-2"), 0.0) == 0.0
    assert capacity.wait_for_trunk_s(carrier, gateway, 0.5) == 0.0


def test_an_account_without_a_rate_begins_nothing() -> None:
    with pytest.raises(RateLimited):
        Capacity(10, 10).enter(make_account(max_cps=0), 0.0)
    with pytest.raises(ServiceUnavailable):
        Capacity(10, 0).enter(make_account(), 0.0)


def test_a_refusal_by_another_count_is_counted_by_its_limit() -> None:
    """The database refuses what only all servers together exceed."""
    capacity = Capacity(10, 10)
    for refusal in (too_many_calls(3), too_many_starts(2, 0.1), no_free_trunk()):
        assert capacity.note(refusal)
    assert not capacity.note(ServiceUnavailable("The database is away."))
    counted = {name: count for name, count in capacity.refused.items() if count}
    assert counted == {"account_calls": 1, "account_rate": 1, "trunk": 1}
