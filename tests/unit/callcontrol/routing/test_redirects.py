"""Permitted targets of a carrier's redirections."""

from dataclasses import replace

import pytest

from callcontrol.directory.directory import Changes, Directory
from callcontrol.models import Carrier
from callcontrol.models.parties import RouteAttempt
from callcontrol.routing.capacity import Capacity
from callcontrol.routing.router import Router
from sip import SipUri
from tests.support.domain import ACCOUNT_SID, make_carrier, make_gateway

CARRIER = replace(make_carrier(), follows_redirects=True)
OTHER = replace(make_carrier(), carrier_sid="other", follows_redirects=True)
FIRST = replace(
    make_gateway("first"), host="gw1.example", port=5060, carrier_sid=CARRIER.carrier_sid, outbound=True
)
SECOND = replace(FIRST, gateway_sid="second", host="gw2.example", port=5070)
FOREIGN = replace(FIRST, gateway_sid="foreign", host="gw.other.example", carrier_sid="other")


def judged(uri: str, carrier: Carrier = CARRIER) -> str | None:
    """Return the target of a Contact in the end."""
    directory = Directory()
    directory.apply(
        Changes(
            1,
            carriers=[(item, True) for item in (CARRIER, OTHER)],
            gateways=[(item, True) for item in (FIRST, SECOND, FOREIGN)],
        )
    )
    router = Router(directory, Capacity(10, 10), {"IN"})
    redirects = router.redirects(ACCOUNT_SID, RouteAttempt(carrier, FIRST, "+919812345678"))
    if redirects is None:
        return None
    found = redirects.judge(SipUri.parse(uri))
    return None if found is None else f"{found.uri} at {found.destination.host}:{found.destination.port}"


@pytest.mark.parametrize(
    ("uri", "leads"),
    [
        ("sip:+919812345679@gw2.example:5070", "sip:+919812345679@gw2.example:5070 at gw2.example:5070"),
        ("sip:201@gw2.example", "sip:201@gw2.example:5070 at gw2.example:5070"),
        ("tel:+91-98123-45679", "sip:+919812345679@gw1.example at gw1.example:5060"),
        ("sip:+919812345679@gw.other.example", None),
        ("sip:+919812345679@192.0.2.1", None),
        ("sip:gw2.example", None),
        ("sips:+919812345679@gw2.example", None),
        ("tel:+19005550123", None),
        ("tel:112233", None),
        ("sip:+19005550123@gw2.example", None),
        ("sip:0019005550123@gw2.example", None),
        ("sip:%2B19005550123@gw2.example", None),
        ("sip:+1-900-555-0123@gw2.example", None),
        ("sip:99999999999999999999@gw2.example", None),
    ],
)
def test_a_contact_leads_to_the_carriers_own_gateways_only(uri: str, leads: str | None) -> None:
    assert judged(uri) == leads


def test_nothing_is_followed_of_a_carrier_without_the_right() -> None:
    assert judged("sip:201@gw2.example", replace(CARRIER, follows_redirects=False)) is None
