"""Requirements of `sips` URIs: TLS on the hop, and a Contact that keeps it up (RFC 3261 26.2, RFC 5630)."""

import pytest

from sip import Answered, SipUri
from tests.support.sip_agents import SDP, Agent, make_network
from tests.support.sip_stage import ALICE, BOB, Stage

LISTENS = ("udp", "tcp", "tls")


async def secure_stage(transports: tuple[str, ...] = LISTENS) -> Stage:
    network = make_network()
    alice = await Agent(network, ALICE, transports=transports).start()
    bob = await Agent(network, BOB, transports=transports).start()
    return Stage(network, alice, bob)


@pytest.mark.parametrize(
    ("method", "transports", "status"),
    [
        ("INVITE", ("udp",), 416),
        ("OPTIONS", ("udp",), 416),
        ("INVITE", LISTENS, 480),
        ("OPTIONS", LISTENS, 480),
    ],
)
async def test_a_promise_that_was_broken_before_us(
    method: str, transports: tuple[str, ...], status: int
) -> None:
    stage = await secure_stage(transports)
    raw = stage.raw()
    request = raw.request(method, branch="a", body=SDP)
    request.uri = request.uri.with_(scheme="sips")
    raw.send(request)
    stage.advance()
    [response] = raw.responses(method)
    assert response.status == status
    assert ("Warning" in response.headers) is (status == 480)
    stage.finish()


@pytest.mark.parametrize("scheme", ["sip", "sips"])
async def test_a_secure_call_says_so_in_every_contact(scheme: str) -> None:
    stage = await secure_stage()
    side = stage.alice.call(BOB, "tls", uri=SipUri.parse(f"{scheme}:bob@192.0.2.2:5060"))
    stage.advance()
    assert isinstance(side.events[-1], Answered)
    [inbound] = stage.bob.inbound
    told = "<sips:192.0.2.1:5060>" if scheme == "sips" else "<sip:192.0.2.1:5060;transport=tls>"
    assert inbound.session.request.headers.get("Contact") == told
    side.session.hangup()
    stage.advance()
    byes = [data for _, source, _, data in stage.network.wire if source == ALICE and data.startswith(b"BYE")]
    assert byes[0].startswith(f"BYE {scheme}:192.0.2.2:5060".encode())
    assert b"Via: SIP/2.0/TLS " in byes[0]
    stage.finish()


async def test_only_tls_offers_its_connection_for_calls_back() -> None:
    stage = await secure_stage()
    for transport in LISTENS:
        stage.alice.call(BOB, transport)
    stage.advance()
    offers = [inbound.session.request.via.param("alias") for inbound in stage.bob.inbound]
    assert offers == [None, None, ""]
