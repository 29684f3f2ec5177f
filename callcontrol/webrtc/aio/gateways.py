"""
Gateways between WebRTC and SIP: each joins a browser's leg and one on-net INVITE.

A call of a browser sends the INVITE once the browser has agreed on keys; a call to a browser came by an
INVITE, and is answered then. Either has a description with the browser's key, and the engine gets ours within
the process.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

from callcontrol.aio.tokens import utc_now
from callcontrol.calls.aio.on_net import OnNet
from callcontrol.calls.hangup_cause import (
    CALL_REJECTED,
    NORMAL_CLEARING,
    NORMAL_TEMPORARY_FAILURE,
    SUBSCRIBER_ABSENT,
    HangupCause,
)
from callcontrol.errors import CallEnded, ValidationFailed, WrongCallState
from callcontrol.models import Carrier
from callcontrol.models.parties import BrowserTarget, Party, PhoneTarget
from media.capabilities import built_codecs
from media.webrtc.aio import BrowserLeg, BrowserSocket, LegEnd
from media.webrtc.descriptions import (
    CODECS,
    BrowserOffer,
    EngineOffer,
    OfferRefused,
    engine_port,
    parse_offer,
)
from media.webrtc.dtls import SrtpKeys
from sip import (
    Answered,
    Cancelled,
    Destination,
    Ended,
    Failed,
    NameAddr,
    OfferReceived,
    OutboundInvite,
    Progress,
    SessionEvent,
    SipUri,
)
from sip.aio import InboundSession, OutboundSession

log = logging.getLogger(__name__)

State = Literal["connecting", "ringing", "active", "ended"]
Direction = Literal["outgoing", "incoming"]

MAX_WAIT_S: Final = 4.0
"""Longest wait for another state."""

# Cut short by us: nothing says that the browser wanted to hang up.
_LOST: Final = frozenset({LegEnd.SILENT, LegEnd.NO_KEYS, LegEnd.NEVER_CONNECTED})
_NO_CALLS: Final = "the server takes no calls now"
DECLINED: Final = 603


@dataclass(slots=True, kw_only=True, eq=False)
class BrowserCall:
    """
    A browser's call, from the offer or the ringing until a minute after its end.

    Attributes:
        direction: As the browser sees it.
        identity: Name of the telephone.
        from_: Caller: the name of a telephone, or a number.
        answer: Our answer to the browser's offer.
        reason: Reason of the end; None before.
        sip_status: Status of a call that was refused; None for any other.
    """

    call_sid: str
    account_sid: str
    identity: str
    from_: str
    to: str
    direction: Direction = "outgoing"
    answer: str = field(default="", repr=False)
    state: State = "connecting"
    reason: str | None = None
    sip_status: int | None = None
    ended_at: datetime | None = None
    _changed: asyncio.Event = field(default_factory=asyncio.Event, repr=False)

    def turn(self, state: State) -> None:
        """Change the state, and wake up who waits for that."""
        if state != self.state and self.state != "ended":
            self.state = state
            changed, self._changed = self._changed, asyncio.Event()
            changed.set()

    async def differs(self, state: State | None) -> None:
        """Wait for another state than this one, for ``MAX_WAIT_S`` at most."""
        try:
            async with asyncio.timeout(MAX_WAIT_S):
                while self.state == state and state != "ended":
                    await self._changed.wait()
        except TimeoutError:
            pass  # the state is the same


class Gateway(ABC):
    """Joins a browser's leg and the INVITE of its call; ``on_over`` is called once, at the end."""

    def __init__(self, on_net: OnNet, call: BrowserCall, on_over: Callable[["Gateway"], None]) -> None:
        self.call = call
        self.leg: BrowserLeg | None = None
        self._on_net = on_net
        self._on_over = on_over
        self._session: InboundSession | OutboundSession | None = None
        self._keys: SrtpKeys | None = None
        self._key_of: str | None = None

    def open(self, socket: BrowserSocket, offer: BrowserOffer) -> None:
        """
        Open the browser's leg, and answer its offer.

        Raises:
            OSError: There are too many legs, or no socket can be bound.
        """
        self.leg = socket.open_leg(offer, self.on_keys, self.on_leg_end)
        self.call.answer = self.leg.answer()

    @abstractmethod
    def on_keys(self, keys: SrtpKeys) -> None:
        """Begin or answer the call: the browser has agreed on keys."""

    def change(self, sdp: str) -> None:
        """
        Change the path or the direction of the browser's leg; the call has the answer to its offer.

        Another direction is offered to the other side, which is on hold while the browser sends nothing.

        Raises:
            ValidationFailed: The offer is wrong, or changes more than that.
            CallEnded: The call has ended.
        """
        leg = self.leg
        if leg is None:
            if self.call.state == "ended":
                raise CallEnded("The call has already ended.")
            raise WrongCallState("The call is not answered yet.")
        offer = read_offer(sdp, (leg.codec,))
        former = leg.direction
        try:
            self.call.answer = leg.change(offer)
        except OfferRefused as refusal:
            raise ValidationFailed.of("sdp", str(refusal)) from None
        if leg.direction != former and self._session is not None and self._keys is not None:
            self._session.reinvite(leg.engine_offer(self._keys))

    def on_leg_end(self, end: LegEnd) -> None:
        """Hang up: the browser's leg has ended by itself."""
        log.info("a browser's leg has ended: %s", end.value, extra={"call_sid": self.call.call_sid})
        self.end(end.value, cause=NORMAL_TEMPORARY_FAILURE if end in _LOST else NORMAL_CLEARING, status=480)

    def end(
        self,
        reason: str,
        sip_status: int | None = None,
        *,
        cause: HangupCause = NORMAL_CLEARING,
        status: int = DECLINED,
    ) -> None:
        """End both sides; ``status`` refuses a call that was not answered. Idempotent."""
        session, self._session = self._session, None
        if session is not None:
            session.on_event = None
            session.hangup(reason=cause.reason_header(), status=status)
        leg, self.leg = self.leg, None
        if leg is not None:
            leg.close()
        if self.call.state != "ended":
            self.call.reason, self.call.sip_status = reason, sip_status
            self.call.ended_at = utc_now()
            self.call.turn("ended")
            if self._key_of is not None:
                # Handed over for an answer that may never have fetched it.
                self._on_net.take_key(self._key_of)
            self._on_over(self)

    def _on_event(self, event: SessionEvent) -> None:
        match event:
            case OfferReceived() if self._session is not None:
                # The browser's side is settled, and our own engine sends no other offers.
                self._session.reject_offer(488)
            case Ended():
                self._session = None
                self.end("hung up")


class CallingGateway(Gateway):
    """
    Gateway of a browser that calls.

    ``party`` is whom the call goes to; without one it goes where the called number is bound.
    """

    def __init__(
        self,
        on_net: OnNet,
        call: BrowserCall,
        on_over: Callable[[Gateway], None],
        carrier: Carrier,
        parameters: Mapping[str, str],
        party: Party | None,
    ) -> None:
        super().__init__(on_net, call, on_over)
        self._carrier = carrier
        self._headers = [(f"X-{name}", value) for name, value in parameters.items()]
        self._party = party

    def on_keys(self, keys: SrtpKeys) -> None:
        """Send the INVITE."""
        on_net = self._on_net
        gateway, source, leg = on_net.gateway, on_net.source, self.leg
        if gateway is None or source is None or leg is None:
            self.end(_NO_CALLS, 503)
            return
        call, self._keys = self.call, keys
        to = SipUri("sip", _user_of(call.to, self._party), None, gateway.host, gateway.port)
        invite = OutboundInvite(
            uri=to,
            from_=NameAddr(None, SipUri("sip", call.from_, None, *source)),
            to=NameAddr(None, to),
            destination=Destination("udp", gateway.host, gateway.port),
            headers=self._headers,
            body=leg.engine_offer(keys),
        )
        self._session = on_net.enter(
            invite,
            self._on_event,
            self._carrier,
            call.call_sid,
            (keys.ours,),
            None if self._party is None else (call.account_sid, self._party),
        )

    def _on_event(self, event: SessionEvent) -> None:
        match event:
            case Progress(body=body):
                self._connect(body)
                self.call.turn("ringing")
            case Answered(body=body):
                self._connect(body)
                self.call.turn("active")
            case Failed(status=status, reason=reason):
                self._session = None
                self.end(reason or "refused", status)
            case _:
                super()._on_event(event)

    def _connect(self, answer: bytes) -> None:
        port = engine_port(answer) if answer else None
        if port is not None and self.leg is not None:
            self.leg.connect_engine(port)


class CalledGateway(Gateway):
    """Gateway of a browser that is called: the INVITE waits for a page that answers."""

    def __init__(
        self,
        on_net: OnNet,
        call: BrowserCall,
        on_over: Callable[[Gateway], None],
        session: InboundSession,
        engine: EngineOffer,
    ) -> None:
        super().__init__(on_net, call, on_over)
        self._engine = engine
        self._session = session
        session.on_event = self._on_event
        session.progress(180)

    def answer(self, socket: BrowserSocket, sdp: str) -> None:
        """
        Answer with the offer of a page, the first that comes.

        Raises:
            ValidationFailed: The offer is wrong.
            WrongCallState: Another page has answered.
            CallEnded: The call has ended.
            OSError: There are too many legs, or no socket can be bound.
        """
        self._check_ringing()
        try:
            # The codec of the other side, so that nothing is transcoded.
            offer = read_offer(sdp, self._engine.codecs[:1])
        except ValidationFailed:
            offer = read_offer(sdp, self._engine.codecs)
        self.open(socket, offer)
        self.call.turn("connecting")

    def refuse(self) -> None:
        """
        Refuse the call for all pages.

        Raises:
            WrongCallState: A page has answered.
            CallEnded: The call has ended.
        """
        self._check_ringing()
        self.end("refused", DECLINED, cause=CALL_REJECTED)

    def leave(self) -> None:
        """End the call unless it is answered: no page with the telephone is open any more."""
        if self.call.state == "ringing":
            self.end("no page is open", 480, cause=SUBSCRIBER_ABSENT, status=480)

    def on_keys(self, keys: SrtpKeys) -> None:
        """Answer the INVITE."""
        leg, session = self.leg, self._session
        if leg is None or not isinstance(session, InboundSession):
            return
        self._keys = keys
        leg.connect_engine(self._engine.port)
        self._key_of = session.call_id
        self._on_net.hand_key(session.call_id, keys.ours)
        session.answer(leg.engine_offer(keys, self._engine.line))
        self.call.turn("active")

    def _check_ringing(self) -> None:
        if self.call.state == "ended":
            raise CallEnded("The call has already ended.")
        if self.call.state != "ringing":
            raise WrongCallState("Another page has answered the call.")

    def _on_event(self, event: SessionEvent) -> None:
        match event:
            case Cancelled():
                self._session = None
                self.end("the caller gave up")
            case _:
                super()._on_event(event)


def read_offer(sdp: str, codecs: tuple[str, ...] = CODECS) -> BrowserOffer:
    """
    Read a browser's offer, for one of these codecs.

    Raises:
        ValidationFailed: It cannot be answered.
    """
    try:
        return parse_offer(sdp, [codec for codec in codecs if codec in built_codecs()])
    except OfferRefused as refusal:
        raise ValidationFailed.of("sdp", str(refusal)) from None


def _user_of(to: str, party: Party | None) -> str:
    """Return the user to call; the party tells all, where there is one."""
    if party is None or isinstance(party.target, PhoneTarget):
        return to
    return party.target.identity if isinstance(party.target, BrowserTarget) else party.target.user
