"""Places at trunks with limits: which legs come under a limit, and which are allowed now."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from callcontrol.models.parties import RouteAttempt
from callcontrol.trunks.places import (
    Limits,
    Place,
    PlaceBook,
    TrunkLimit,
    choices_of,
    first_leg,
    leg_of,
    limits_of,
    sids_of,
)
from tests.support.domain import make_carrier, make_gateway

SECOND_US = 1_000_000
NOW_US = 1_000 * SECOND_US
TWO_LEGS: Limits = (TrunkLimit("carrier", 2, None),)
THREE_A_SECOND: Limits = (TrunkLimit("carrier", None, 3),)


def book(
    legs: Mapping[str, int] | None = None,
    paced_until_us: Mapping[str, int] | None = None,
    now_us: int = NOW_US,
) -> PlaceBook:
    return PlaceBook(legs or {}, paced_until_us or {}, now_us)


def test_limits_of_a_carrier_and_a_gateway() -> None:
    carrier, gateway = make_carrier(max_concurrent_calls=4), make_gateway(max_cps=2)
    assert limits_of(make_carrier(), make_gateway()) == ()
    assert limits_of(carrier, make_gateway()) == (TrunkLimit("carrier-1", 4, None),)
    assert limits_of(make_carrier(), gateway) == (TrunkLimit("gateway-1", None, 2),)
    assert sids_of([limits_of(carrier, gateway), TWO_LEGS]) == ["carrier", "carrier-1", "gateway-1"]


def test_choices_end_with_the_first_route_without_a_limit() -> None:
    free, full = make_gateway("free"), make_gateway("limited", max_concurrent_calls=1)
    routes = [RouteAttempt(make_carrier(), gateway, "1") for gateway in (full, free, full)]
    limited = (TrunkLimit("limited", 1, None),)
    assert choices_of(routes) == [limited, ()]
    assert choices_of(routes[2:]) == [limited]
    assert choices_of(routes[1:]) == choices_of([]) == ()


def test_legs_at_once() -> None:
    some = book({"carrier": 1})
    assert some.wait_us(TWO_LEGS) == 0
    some.take("call/0", TWO_LEGS)
    assert some.wait_us(TWO_LEGS) == 5 * SECOND_US
    assert some.taken == [Place("call/0", TWO_LEGS)]
    assert some.give_back("call/0")
    assert (some.wait_us(TWO_LEGS), some.taken) == (0, [])


def test_a_carrier_and_its_gateway_must_both_have_a_place() -> None:
    both: Limits = (*TWO_LEGS, TrunkLimit("gateway", 1, None))
    assert book({"gateway": 1}).wait_us(both) > 0
    assert book({"carrier": 2}).wait_us(both) > 0
    assert book({"carrier": 1}).wait_us(both) == 0


def test_legs_a_second() -> None:
    """After a burst of three, another leg is allowed each third of a second, to the microsecond."""
    some = book()
    for number in range(3):
        assert some.wait_us(THREE_A_SECOND) == 0
        some.take(leg_of("call", number), THREE_A_SECOND)
    wait_us = some.wait_us(THREE_A_SECOND)
    assert wait_us == pytest.approx(SECOND_US / 3, abs=1)
    later = book(paced_until_us=some.paces(), now_us=NOW_US + wait_us)
    assert later.wait_us(THREE_A_SECOND) == 0
    assert book(paced_until_us=some.paces(), now_us=NOW_US + wait_us - 1).wait_us(THREE_A_SECOND) == 1
    later.take("call/3", THREE_A_SECOND)
    assert later.wait_us(THREE_A_SECOND) > 0


def test_a_rate_that_rested_begins_anew() -> None:
    """An old moment gives no more than one burst."""
    some = book(paced_until_us={"carrier": 5})
    taken = 0
    while some.wait_us(THREE_A_SECOND) == 0:
        some.take(leg_of("call", taken), THREE_A_SECOND)
        taken += 1
    assert taken == 3


def test_a_leg_given_back_uses_no_rate() -> None:
    some = book()
    for number in range(3):
        some.take(leg_of("call", number), THREE_A_SECOND)
    assert some.give_back("call/2")
    assert some.wait_us(THREE_A_SECOND) == 0


def test_a_leg_without_a_limit() -> None:
    some = book()
    some.take(first_leg("call"), ())
    assert some.wait_us(()) == 0
    assert some.paces() == {}
    assert not some.give_back(first_leg("call"))
