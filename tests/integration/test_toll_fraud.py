"""Every way by which somebody may have us dial, tried with every dress of a number we may not dial."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import cast
from urllib.parse import quote

import pytest

from callcontrol.errors import DomainError
from sip import Answered, Failed, ReferAccepted, ReferFailed
from sip.aio import InboundSession
from tests.support.domain import CALLEE, OWN_NUMBER, make_account, make_carrier, make_gateway
from tests.support.phone import PhoneCall, eventually
from tests.support.world import World, running

# What a caller dials where there is no host to name.
NUMBERS = (
    "+442071234567",
    "00442071234567",
    "442071234567",
    "+44 20 7123 4567",
    "+44(0)2071234567",
    "+19005550123",
    "+18765550123",
    "+882161234567",
    "+8835100012345",
    "+9607123456",
    "011442071234567",
    "+999123456789",
    "+91+442071234567",
    "+9100442071234567",
    "+91442071234567",  # without its country code, as some carriers want numbers, it is of another one
    "+9144207123456",
    "+9100019005550123",
)
# What stands before the host of a gateway; '%' is an escape of the URI.
USERS = (
    "+442071234567",
    "%2b442071234567",
    "%252b442071234567",
    "+%3442071234567",
    "00442071234567",
    "0%30442071234567",
    "442071234567",
    "+44-20-7123-4567",
    "+44.20.7123.4567",
    "(00)442071234567",
    "%20+442071234567",
    "++442071234567",
    "+91+442071234567",
    "+9100442071234567",
    "+91442071234567",
    "011442071234567",
    "0011442071234567",
    "810442071234567",
    "9011442071234567",
    "+442071234567%23",
    "00442071234567*",
    "*72*00442071234567",
    "99%2300442071234567",
    "1234*+442071234567",
    "+442071234567,1",
    "+442071234567&1001",
    "1001&00442071234567",
    "+442071234567=",
    "~00442071234567",
    "tp00442071234567",
    "sip00442071234567",
    "x+442071234567",
    "00442071234567p1",
    "00442071234567/1001",
    "1001/00442071234567",
    "+442071234567;npdi",
    "+442071234567;ext=5",
    "+442071234567;isub=1;postd=pp22",
    "+919876543210;rn=+442071234567",
    "+919876543210;rn=442071234567;npdi",
    "9876543210;rn=00442071234567",
    "+919876543210;cic=+44",
    "7700900123;phone-context=+44",
    "7700900123;phone-context=%2B44",
    "9005550123;phone-context=+1",
    "1001;phone-context=+44",
    "+19005550123",
    "+18765550123",
    "+882161234567",
    "+999123456789",
    "+",
)
TEL = (
    "tel:+442071234567",
    "tel:+44-20-7123-4567",
    "tel:00442071234567",
    "tel:442071234567",
    "tel:7700900123;phone-context=+44",
    "tel:2071234567;phone-context=+44;ext=1",
    "tel:9005550123;phone-context=+1",
    "tel:+19005550123",
    "tel:+442071234567;npdi;rn=+919876543210",
)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with running(tmp_path) as world:
        world.directory.put(
            accounts=[make_account(max_cps=1000)],
            carriers=[make_carrier(allows_refer=True, follows_redirects=True)],
        )
        yield world


def came(world: World) -> list[PhoneCall]:
    """The INVITEs that left the server."""
    return [call for call in world.phone.calls if isinstance(call.session, InboundSession)]


def addresses(world: World) -> list[str]:
    return [f"sip:{user}@127.0.0.1:{world.phone.port}" for user in USERS]


async def test_the_api_dials_none_of_them(world: World) -> None:
    for to in [*NUMBERS, *addresses(world), *TEL]:
        key, kind = ("sip_uri", "sip") if to.startswith("sip:") else ("number", "number")
        dial = {"verb": "dial", "target": [{"type": kind, key: to}]}
        for attempt in ({"to": to}, {"verbs": [dial]}):
            verbs = attempt.pop("verbs", [{"verb": "hangup"}])
            try:
                await world.place(*verbs, **attempt)
            except DomainError:
                continue
            pytest.fail(f"{to} was dialled")
    assert not came(world) and not world.records.records


async def test_no_number_is_forwarded_to_them(world: World) -> None:
    attempts = [*NUMBERS, *addresses(world), *TEL]
    for to in attempts:
        world.forward(to)
        caller = world.phone.call(OWN_NUMBER, world.port)
        failed = await caller.wait(Failed, 3.0)
        assert isinstance(failed, Failed) and failed.status == 480, to
    assert not came(world)
    assert len(world.records.records) == len(attempts)


async def test_no_transfer_leads_to_them(world: World) -> None:
    world.forward()
    caller = world.phone.call(OWN_NUMBER, world.port)
    await caller.wait(Answered)
    assert await eventually(lambda: len(came(world)) == 1)
    here, there = f"127.0.0.1:{world.port}", f"127.0.0.1:{world.phone.port}"
    users = [*USERS, *(quote(number, safe="+()") for number in NUMBERS)]
    # At a host of ours the number alone counts: what stands beside it is not sent on.
    local = [user for user in users if "9876543210;" not in user]
    targets = [f"sip:{user}@{host}" for host, some in ((here, local), (there, users)) for user in some]
    for party in (caller, came(world)[0]):
        for target in [*targets, *TEL]:
            party.events.clear()
            party.session.refer(target)
            await party.wait(ReferFailed)
            assert not any(isinstance(event, ReferAccepted) for event in party.events), target
    assert len(came(world)) == 1
    caller.hang_up()
    await world.ended()


class Redirecting(asyncio.DatagramProtocol):
    """A gateway that sends every call on to one address."""

    def __init__(self) -> None:
        self.contact = ""
        self.called: list[str] = []
        self.transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.DatagramTransport, transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        lines = data.decode().split("\r\n")
        if lines[0].startswith("INVITE "):
            self.called.append(lines[0].split(" ")[1])
            kept = [line for line in lines if line.startswith(("Via:", "From:", "To:", "Call-ID:", "CSeq:"))]
            kept = [f"{line};tag=x" if line.startswith("To:") else line for line in kept]
            answer = ["SIP/2.0 302 Moved", *kept, f"Contact: <{self.contact}>", "Content-Length: 0", "", ""]
            self.transport.sendto("\r\n".join(answer).encode(), addr)


async def test_no_redirection_leads_to_them(world: World) -> None:
    loop = asyncio.get_running_loop()
    transport, gateway = await loop.create_datagram_endpoint(Redirecting, ("127.0.0.1", 0))
    port = transport.get_extra_info("sockname")[1]
    world.directory.put(
        gateways=[make_gateway(port=port), make_gateway("callers", port=world.phone.port, outbound=False)]
    )
    world.forward()
    gateway.contact = f"sip:1001@127.0.0.1:{port}"
    await world.phone.call(OWN_NUMBER, world.port).wait(Failed, 3.0)
    assert len(gateway.called) == 2  # It is followed where it may be.
    for target in [*(f"sip:{user}@127.0.0.1:{port}" for user in USERS), *TEL]:
        gateway.called.clear()
        gateway.contact = target
        await world.phone.call(OWN_NUMBER, world.port).wait(Failed, 3.0)
        assert len(gateway.called) == 1, target
    transport.close()


@pytest.mark.parametrize("field", ["From", "P-Asserted-Identity", "Remote-Party-ID"])
async def test_a_caller_of_another_name_gets_no_further(world: World, field: str) -> None:
    """The caller's claimed identity opens nothing: neither unassigned numbers nor other countries."""
    world.forward()
    for to in ("+442071234567", "00442071234567", CALLEE, f"{OWN_NUMBER};rn=+442071234567"):
        headers = [] if field == "From" else [(field, f"<sip:{OWN_NUMBER}@127.0.0.1>")]
        caller = world.phone.call(to, world.port, from_user=OWN_NUMBER, headers=headers)
        event = await caller.wait(Failed if ";" not in to else Answered)
        assert ";" in to or (isinstance(event, Failed) and event.status == 404)
    assert [call.request.uri.user for call in came(world)] == [CALLEE]
    caller.hang_up()
    assert await eventually(lambda: world.control.active_calls == 0)


async def test_a_replaces_of_another_call_opens_nothing(world: World) -> None:
    """Without the tags of a call nobody gets into it, and a guess costs a 481 and no more."""
    world.forward()
    caller = world.phone.call(OWN_NUMBER, world.port)
    await caller.wait(Answered)
    call_id = caller.session.call_id
    for value in (
        f"{call_id};to-tag=a;from-tag=b",
        f"{call_id};to-tag={caller.session.local.tag};from-tag=x",
        "other;to-tag=a;from-tag=b",
    ):
        intruder = world.phone.call(OWN_NUMBER, world.port, headers=[("Replaces", value)])
        failed = await intruder.wait(Failed, 3.0)
        assert isinstance(failed, Failed) and failed.status == 481
    assert len(came(world)) == 1
    caller.hang_up()
    await world.ended()
