"""Routes to numbers that accounts here hold, and the end of loops between them."""

from typing import Any

import pytest

from callcontrol.errors import Forbidden, NumberNotOwned
from callcontrol.models import Gateway
from callcontrol.models.parties import Party, PhoneTarget, RouteAttempt, SipTarget
from callcontrol.routing.capacity import Capacity
from callcontrol.routing.on_net import MAX_NUMBERS, ON_NET, OnNetCall, gateway_at
from callcontrol.routing.router import Router
from tests.support.domain import (
    ACCOUNT_SID,
    CALLER,
    OTHER_SID,
    OWN_NUMBER,
    MemoryDirectory,
    make_account,
    make_carrier,
    make_gateway,
    make_number,
)

SECOND, THEIRS, BROUGHT, CLAIMED, ABROAD = (
    *("+918047491801", "+918047491802", "+918047491803", "+918047491804", "+12025550123"),
)
HERE = gateway_at("127.0.0.1", 5060)


class TestRoutes:
    """The account has two numbers of the platform and one of its carrier's; so has another account."""

    def setup_method(self) -> None:
        self.here: Gateway | None = HERE
        routes = MemoryDirectory()
        routes.put(
            accounts=[make_account(OTHER_SID)],
            carriers=[make_carrier(), make_carrier("own", ACCOUNT_SID), make_carrier("theirs", OTHER_SID)],
            gateways=[
                make_gateway(),
                make_gateway("gateway-own", "127.0.0.2", carrier_sid="own"),
                make_gateway("gateway-theirs", "127.0.0.3", carrier_sid="theirs"),
            ],
            numbers=[
                make_number(),
                make_number(SECOND),
                make_number(BROUGHT, carrier_sid="own"),
                make_number(THEIRS, account_sid=OTHER_SID),
                make_number(CLAIMED, account_sid=OTHER_SID, carrier_sid="theirs"),
                make_number(ABROAD),
            ],
        )
        self.router = Router(routes, Capacity(10, 10), {"IN"}, on_net=lambda: self.here)

    def route(self, to: str, caller_id: str = OWN_NUMBER, **party: Any) -> RouteAttempt:
        wanted = Party(PhoneTarget(to), caller_id, **party)
        (attempt,) = self.router.attempts(ACCOUNT_SID, wanted, 0.0)
        return attempt

    @pytest.mark.parametrize("to", [OWN_NUMBER, SECOND, THEIRS, BROUGHT])
    def test_numbers_held_here_are_reached_here(self, to: str) -> None:
        assert self.route(to) == RouteAttempt(ON_NET, HERE, to, on_net=True)

    def test_a_claim_of_another_account_diverts_no_call(self) -> None:
        """Else anybody could register anybody's number on a carrier of his own, and be called as it."""
        attempt = self.route(CLAIMED)
        assert (attempt.carrier.carrier_sid, attempt.on_net) == ("carrier-1", False)

    @pytest.mark.parametrize(
        "party",
        [
            {"caller_id": BROUGHT},
            {"caller_id": CALLER, "passthrough": True, "trusted": False, "number": OWN_NUMBER},
        ],
    )
    def test_a_caller_that_only_the_customer_answers_for_stays_within_the_account(
        self, party: dict[str, Any]
    ) -> None:
        attempt = self.route(SECOND, **party)
        assert (attempt.on_net, attempt.carrier.account_sid) == (True, ACCOUNT_SID)
        for to in (THEIRS, CLAIMED):
            try:
                assert self.route(to, **party).carrier.carrier_sid == "own"
            except NumberNotOwned as refusal:
                assert "own carriers only" in refusal.message

    def test_a_trusted_caller_that_is_passed_through_reaches_everybody(self) -> None:
        assert self.route(THEIRS, CALLER, passthrough=True).carrier is ON_NET

    def test_a_carrier_that_is_named_is_used(self) -> None:
        assert not self.route(SECOND, carrier_sid="carrier-1").on_net

    def test_a_sip_address_is_a_gateways(self) -> None:
        party = Party(SipTarget(SECOND, "127.0.0.1"), OWN_NUMBER)
        (attempt,) = self.router.attempts(ACCOUNT_SID, party, 0.0)
        assert not attempt.on_net

    def test_without_an_address_of_our_own_all_calls_leave_by_carriers(self) -> None:
        self.here = None
        assert self.route(SECOND).carrier.carrier_sid == "carrier-1"

    def test_who_may_call_whom_is_asked_first(self) -> None:
        with pytest.raises(Forbidden):
            self.route(ABROAD)
        with pytest.raises(NumberNotOwned):
            self.route(SECOND, THEIRS)


def call(*numbers: str) -> OnNetCall:
    return OnNetCall(ON_NET, HERE, numbers)


def test_a_loop_is_told_from_a_chain() -> None:
    assert call("A").rejection is None
    assert call("A", "B", "C").rejection is None
    assert call("A", "A").rejection == 482
    assert call("A", "B", "C", "B").rejection == 482


def test_a_chain_has_an_end() -> None:
    numbers = [f"number {place}" for place in range(MAX_NUMBERS + 1)]
    assert call(*numbers[:-1]).rejection is None
    assert call(*numbers).rejection == 483
