"""Offers and answers while it rings, on real sockets: what the server itself never asks for."""

import pytest

from sip import Answered, Ended, OfferAnswered, OfferReceived, Progress, SessionEvent
from sip.aio import InboundSession
from tests.integration.test_sip_transports import SDP, Party, parties
from tests.support.waiting import until

OFFER = b"v=0\r\ns=offer\r\n"
HOLD = b"v=0\r\ns=hold\r\n"


def keep(party: Party) -> None:
    """Make a party keep incoming calls, and do nothing of itself."""

    def take(session: InboundSession) -> None:
        party.inbound.append(session)
        session.on_event = party.events.append

    party.ua.on_invite = take


def seen(events: list[SessionEvent], kind: type[SessionEvent]) -> bool:
    return any(isinstance(event, kind) for event in events)


@pytest.mark.parametrize("transport", ["udp", "tcp"])
async def test_an_offer_with_the_ringing_answered_in_prack_and_changed_by_update(transport: str) -> None:
    async with parties() as (alice, bob):
        keep(bob)
        session, events = alice.call(bob.port(transport), transport, body=b"")
        await until(lambda: bob.inbound)
        bob.inbound[0].progress(183, OFFER)
        await until(lambda: seen(events, Progress))
        [progress] = [event for event in events if isinstance(event, Progress)]
        assert (progress.body, progress.needs_answer) == (OFFER, True)
        session.accept_offer(SDP)
        await until(lambda: seen(bob.events, OfferAnswered))
        session.update(HOLD)
        await until(lambda: seen(bob.events, OfferReceived))
        bob.inbound[0].accept_offer(SDP)
        await until(lambda: seen(events, OfferAnswered))
        bob.inbound[0].answer(SDP)
        await until(lambda: seen(events, Answered))
        [answered] = [event for event in events if isinstance(event, Answered)]
        assert (answered.body, answered.needs_answer) == (SDP, False)
        session.hangup()
        await until(lambda: seen(bob.events, Ended))


@pytest.mark.parametrize("transport", ["udp", "tcp"])
async def test_an_offer_with_the_answer_is_answered_in_the_ack(transport: str) -> None:
    async with parties() as (alice, bob):
        keep(bob)
        session, events = alice.call(bob.port(transport), transport, body=b"")
        await until(lambda: bob.inbound)
        bob.inbound[0].progress(180)
        bob.inbound[0].answer(OFFER)
        await until(lambda: seen(events, Answered))
        session.accept_offer(SDP)
        await until(lambda: bob.events)
        assert getattr(bob.events[0], "body", None) == SDP
        session.hangup()
        await until(lambda: seen(bob.events, Ended))
