"""The legs of one call as SIP sessions: commands become SIP, what SIP reports becomes events."""

import re
from collections.abc import Callable
from typing import Final

from callcontrol.events import (
    DigitReceived,
    Event,
    LegAnswered,
    LegCancelled,
    LegConfirmed,
    LegEnded,
    LegFailed,
    LegOffered,
    LegProgress,
)
from callcontrol.hangup import NORMAL_TEMPORARY_FAILURE, HangupCause
from callcontrol.ids import LegId
from callcontrol.models import Carrier
from callcontrol.plan import Party
from callcontrol.routing import Attempt
from sip import (
    Answered,
    Cancelled,
    Confirmed,
    Credentials,
    Ended,
    Failed,
    InfoReceived,
    InvalidValue,
    NameAddr,
    OfferAnswered,
    OfferReceived,
    Progress,
    SessionEvent,
    SipUri,
)
from sip.aio import Destination, InboundSession, OutboundInvite, OutboundSession, Session, UserAgent

Post = Callable[[Event], None]

_X_HEADER: Final = re.compile(r"X-[A-Za-z0-9-]{1,64}", re.IGNORECASE)
_DTMF_RELAY: Final = re.compile(r"^\s*signal\s*=\s*([0-9*#A-D])", re.IGNORECASE | re.MULTILINE)
_DTMF_DURATION: Final = re.compile(r"^\s*duration\s*=\s*(\d{1,5})", re.IGNORECASE | re.MULTILINE)
_INFO_DIGIT_MS: Final = 160
_MAX_FORWARDS: Final = 70  # RFC 3261 8.1.1.6


class SipLegs:
    """
    The SIP sessions of one call, by leg.

    ``post`` takes the events in the order in which they happened. ``on_late_answer`` gets the SDP answer to
    an offer that a party asked us for within the call. After ``release`` nothing more is posted.
    """

    def __init__(
        self, user_agent: UserAgent, post: Post, on_late_answer: Callable[[LegId, bytes], None]
    ) -> None:
        self._user_agent = user_agent
        self._post = post
        self._on_late_answer = on_late_answer
        self._sessions: dict[LegId, Session] = {}
        self._max_forwards = _MAX_FORWARDS

    def adopt(self, leg: LegId, session: InboundSession) -> None:
        """Make a session that came in a leg of the call."""
        hops_left = session.request.max_forwards
        if hops_left is not None:
            # A number that leads back to us would ring for ever, one call opening the next (RFC 7332 3).
            self._max_forwards = max(min(hops_left, _MAX_FORWARDS) - 1, 0)
        self._attach(leg, session)

    def dial(self, leg: LegId, attempt: Attempt, party: Party, offer: bytes) -> str:
        """Send the INVITE of a leg; returns its Call-ID."""
        destination = _destination(attempt)
        invite = _invite(attempt, party, destination, self._local_host(destination.transport), offer)
        invite.max_forwards = self._max_forwards
        session: OutboundSession = self._user_agent.invite(invite, self._listener(leg))
        self._sessions[leg] = session
        return session.call_id

    def ring(self, leg: LegId, status: int, body: bytes) -> None:
        """Send a provisional response to the caller."""
        session = self._sessions.get(leg)
        if isinstance(session, InboundSession):
            session.progress(status, body)

    def answer(self, leg: LegId, body: bytes) -> None:
        """Answer the caller."""
        session = self._sessions.get(leg)
        if isinstance(session, InboundSession):
            session.answer(body)

    def reject(self, leg: LegId, status: int, cause: HangupCause) -> None:
        """Refuse the caller."""
        session = self._sessions.pop(leg, None)
        if isinstance(session, InboundSession):
            session.on_event = None
            session.reject(status, headers=[("Reason", cause.reason_header())])

    def hang_up(self, leg: LegId, cause: HangupCause) -> None:
        """End the leg from our side; nothing more is heard of it."""
        session = self._sessions.pop(leg, None)
        if session is not None:
            session.on_event = None
            session.hangup(reason=cause.reason_header(), status=503)

    def accept_offer(self, leg: LegId, body: bytes) -> None:
        """Answer a party's offer."""
        session = self._sessions.get(leg)
        if session is not None:
            session.accept_offer(body)

    def reject_offer(self, leg: LegId, status: int, warning: str | None) -> None:
        """Refuse a party's offer; the session goes on as it was."""
        session = self._sessions.get(leg)
        if session is not None:
            session.reject_offer(status, warning)

    def release(self) -> None:
        """Listen to the sessions no more, and end those that nobody has ended."""
        for leg in list(self._sessions):
            self.hang_up(leg, NORMAL_TEMPORARY_FAILURE)

    def _attach(self, leg: LegId, session: Session) -> None:
        self._sessions[leg] = session
        session.on_event = self._listener(leg)

    def _listener(self, leg: LegId) -> Callable[[SessionEvent], None]:
        def listen(event: SessionEvent) -> None:
            if isinstance(event, OfferAnswered):
                self._on_late_answer(leg, event.body)
                return
            if isinstance(event, Failed | Cancelled | Ended):
                self._sessions.pop(leg, None)
            translate = _TRANSLATIONS.get(type(event))
            translated = translate(leg, event) if translate is not None else None
            if translated is not None:
                self._post(translated)

        return listen

    def _local_host(self, transport: str | None) -> str:
        for listen in self._user_agent.addresses:
            if transport in (None, listen.transport):
                return listen.advertise or listen.host
        return "localhost"


def _destination(attempt: Attempt) -> Destination:
    gateway = attempt.gateway
    transport = None if gateway.protocol == "auto" else gateway.protocol
    proxy = attempt.carrier.outbound_proxy
    if proxy:
        host, colon, port = proxy.rpartition(":")
        if colon and port.isdecimal() and "]" not in port:
            return Destination(transport, host.strip("[]"), int(port))
        return Destination(transport, proxy.strip("[]"), 0)
    return Destination(transport, gateway.host, gateway.port)


def _invite(
    attempt: Attempt, party: Party, destination: Destination, local_host: str, offer: bytes
) -> OutboundInvite:
    """
    The INVITE of a leg.

    It is made of the party and the gateway only: nothing of another leg's signalling is in it. The number
    of hops that are left is for the caller of this function to say.
    """
    carrier, gateway = attempt.carrier, attempt.gateway
    params = (("transport", "tcp"),) if destination.transport == "tcp" else ()
    port = gateway.port if gateway.port not in (0, 5060) else None
    uri = SipUri("sip", user=attempt.user, host=gateway.host, port=port, params=params)
    domain = carrier.register_from_domain or local_host
    try:
        caller = SipUri("sip", user=_caller_user(carrier, party.caller_id), host=domain)
    except InvalidValue:
        caller = SipUri("sip", user="anonymous", host=domain)  # a caller's own name, cut off in an escape
    identity = NameAddr(party.caller_name, caller)
    return OutboundInvite(
        uri=uri,
        from_=identity,
        to=NameAddr(None, SipUri("sip", user=attempt.user, host=gateway.host, port=port)),
        destination=destination,
        headers=[
            ("P-Asserted-Identity", str(identity)),
            *(item for item in party.headers if _X_HEADER.fullmatch(item[0]) and item[1].isprintable()),
        ],
        body=offer,
        credentials=_credentials(carrier),
    )


def _caller_user(carrier: Carrier, caller_id: str) -> str:
    if carrier.register_from_user:
        return carrier.register_from_user
    if not caller_id.startswith("+"):
        return caller_id
    return caller_id if carrier.e164_leading_plus else caller_id[1:]


def _credentials(carrier: Carrier) -> Credentials | None:
    if not carrier.register_username or carrier.register_password is None:
        return None
    return Credentials(carrier.register_username, carrier.register_password, carrier.register_sip_realm)


# --- what SIP reports ---------------------------------------------------------------------------------------


def _progress(leg: LegId, event: Progress) -> Event:
    return LegProgress(leg, event.status, event.body)


def _answered(leg: LegId, event: Answered) -> Event:
    return LegAnswered(leg, event.body)


def _failed(leg: LegId, event: Failed) -> Event:
    return LegFailed(leg, event.status, event.reason, event.cause, event.retry_after_s)


def _confirmed(leg: LegId, event: Confirmed) -> Event:
    return LegConfirmed(leg, event.body)


def _cancelled(leg: LegId, _: Cancelled) -> Event:
    return LegCancelled(leg)


def _ended(leg: LegId, event: Ended) -> Event:
    return LegEnded(leg, clean=event.cause == "bye")


def _offered(leg: LegId, event: OfferReceived) -> Event:
    return LegOffered(leg, event.body)


def _info(leg: LegId, event: InfoReceived) -> Event | None:
    """Digits in INFO, of ``application/dtmf-relay`` and ``application/dtmf``; others are not ours."""
    kind = event.content_type.partition(";")[0].strip().lower()
    text = event.body[:256].decode("ascii", "replace")
    if kind == "application/dtmf-relay":
        signal, duration = _DTMF_RELAY.search(text), _DTMF_DURATION.search(text)
        if signal is None:
            return None
        duration_ms = int(duration[1]) if duration else _INFO_DIGIT_MS
        return DigitReceived(leg, signal[1].upper(), min(duration_ms, 5000), in_band=False)
    digit = text.strip().upper()
    if kind == "application/dtmf" and len(digit) == 1 and digit in "0123456789*#ABCD":
        return DigitReceived(leg, digit, _INFO_DIGIT_MS, in_band=False)
    return None


_TRANSLATIONS: Final[dict[type, Callable[..., Event | None]]] = {
    Progress: _progress,
    Answered: _answered,
    Failed: _failed,
    Confirmed: _confirmed,
    Cancelled: _cancelled,
    Ended: _ended,
    OfferReceived: _offered,
    InfoReceived: _info,
}
