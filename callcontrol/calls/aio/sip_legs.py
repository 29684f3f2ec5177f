"""The legs of one call as SIP sessions: translates commands to SIP, and SIP reports to events."""

import re
from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

from callcontrol.calls.aio.context import CallContext
from callcontrol.calls.events import Event
from callcontrol.calls.events.transfers import TransferRequested
from callcontrol.calls.hangup_cause import NORMAL_TEMPORARY_FAILURE, HangupCause
from callcontrol.calls.sip_events import DTMF_RELAY, TRANSLATIONS, digit_body, digit_type_in, digit_type_of
from callcontrol.ids import LegId
from callcontrol.models import CallRecord, Carrier
from callcontrol.models.parties import BrowserTarget, Party, RouteAttempt
from callcontrol.routing.on_net import BrowserLine, OnNetCall
from callcontrol.trunks.inbound_invite import Received, custom_headers, user_to_user
from callcontrol.trunks.outbound_invite import (
    Origin,
    destination_of,
    invite_for,
    may_pass,
    route_by,
)
from media.types import SrtpKey
from sip import (
    Answered,
    Cancelled,
    Ended,
    Failed,
    Headers,
    InfoReceived,
    OfferAnswered,
    OfferReceived,
    Progress,
    Redirects,
    ReferReceived,
    SessionEvent,
    SipUri,
)
from sip.aio import InboundSession, OutboundSession, Session
from sip.values import constructed_natively

Post = Callable[[Event], None]

_MAX_FORWARDS: Final = 70  # RFC 3261 8.1.1.6
_SESSION_ID: Final = re.compile(r"\s*([0-9a-f]{32})\s*(?:;.*)?", re.ASCII | re.DOTALL)
NIL: Final = "0" * 32
"""Session identifier of a party that has sent none."""
_RELIABLE: Final[dict[str, bool | None]] = {"off": False, "supported": None, "required": True}


@constructed_natively
@dataclass(slots=True)
class _SipLeg:
    """One leg's session, its trunk, and the leg whose party it was dialled for."""

    session: Session
    carrier: Carrier
    other: LegId | None = None
    answer_headers: list[tuple[str, str]] = field(default_factory=list)
    """Headers of the other leg's responses that may be forwarded to this leg."""
    bye_headers: list[tuple[str, str]] = field(default_factory=list)
    """Headers of the other leg's BYE for the BYE to this leg."""
    saved: int | None = None
    """The INVITE of ours that is saved: responses before the answer change nothing of it."""
    digit_type: str = DTMF_RELAY
    """Format of digits in INFO: from its party's Accept header, or from its own INFO."""


class SipLegs:
    """
    The SIP sessions of one call, by leg.

    ``post`` receives the events in the order in which they happened. ``on_late_answer`` gets the SDP answer
    to an offer that a party requested from us within the call. With ``private`` no header of one party is
    forwarded to the other. After ``release`` nothing more is posted.
    """

    def __init__(
        self,
        context: CallContext,
        record: CallRecord,
        post: Post,
        on_late_answer: Callable[[LegId, bytes], None],
        *,
        private: bool,
    ) -> None:
        self._user_agent = context.user_agent
        self._on_net = context.on_net
        self._post = post
        self._on_late_answer = on_late_answer
        self._open_headers = context.settings.forwarded_headers
        self._on_gateway = context.on_gateway
        self._service_route = context.service_route
        self._private = private
        self._journal = DialogJournal(record.dialogs)
        self._on_saved = partial(context.services.calls.update, record)
        self._ids = SessionIds(record.call_sid.replace("-", ""))  # for parties without one (RFC 7989)
        self._call_sid = record.call_sid
        self._legs: dict[LegId, _SipLeg] = {}
        self._referred: dict[LegId, Session] = {}
        self._origin: Origin | None = None
        self._max_forwards = _MAX_FORWARDS
        self._numbers: tuple[str, ...] = (record.to,) if record.direction == "inbound" else ()
        """Numbers held here that the call has come to, in the calls it continues too."""

    def adopt(
        self,
        leg: LegId,
        session: InboundSession,
        carrier: Carrier,
        received: Received,
        own: OnNetCall | None,
    ) -> None:
        """Make a session that came in over a carrier's trunk a leg of the call; ``own`` if it is on net."""
        hops_left = session.request.max_forwards
        if hops_left is not None:
            # Prevents endless loops: a number that leads back to us would make each call open another (RFC
            # 7332 3).
            self._max_forwards = max(min(hops_left, _MAX_FORWARDS) - 1, 0)
        if own is not None:
            self._numbers = own.numbers
        if not self._private:
            self._origin = Origin(carrier, received, self._open_headers)
        self.take_in(leg, session, carrier, received)

    def take_in(self, leg: LegId, session: InboundSession, carrier: Carrier, received: Received) -> None:
        """Make a session that came in for an active call a leg of it."""
        self._ids.learn(leg, received.session_id)
        session_id = self._ids.header(leg, None)
        self._attach(leg, _SipLeg(session, carrier))
        self._learn_accepted(leg, session.request.headers)
        session.set_session_id(session_id)
        if carrier.session_expires_s is not None:
            session.want_timer(carrier.session_expires_s)
        session.on_event = self._listener(leg)
        self._journal.save(leg, session.saved(), carrier.carrier_sid)  # written when the call is inserted

    def _save(self, leg: LegId) -> None:
        """Save the leg's dialog in its current state."""
        found = self._legs.get(leg)
        if found is not None:
            session = found.session
            found.saved = session.attempt if isinstance(session, OutboundSession) else None
            if self._journal.save(leg, session.saved(), found.carrier.carrier_sid):
                self._on_saved()

    def _attach(self, leg: LegId, found: _SipLeg) -> None:
        self._legs[leg] = found
        found.session.data = (self._call_sid, leg)
        found.session.allows_refer = found.carrier.allows_refer

    def dial(
        self,
        leg: LegId,
        attempt: RouteAttempt,
        party: Party,
        offer: bytes,
        other: LegId | None = None,
        redirects: Redirects | None = None,
    ) -> str:
        """Send the INVITE of a leg, for the party of the leg ``other`` if any; return its Call-ID."""
        if self._private:
            other = None  # Headers of one party are not forwarded to the other in a private call.
        destination = destination_of(attempt.carrier, attempt.gateway)
        user_agent = self._on_net.user_agent if attempt.on_net else self._user_agent
        local_host = user_agent.local_host(destination)
        invite = invite_for(attempt, party, offer, destination, local_host=local_host, origin=self._origin)
        if attempt.carrier.registers:
            route_by(invite, self._service_route(attempt.carrier, attempt.gateway))
        invite.headers.append(("Session-ID", self._ids.header(leg, other)))
        invite.max_forwards = self._max_forwards
        invite.redirects = redirects
        session: OutboundSession
        if isinstance(party.target, BrowserTarget):
            line = BrowserLine(attempt.carrier.account_sid or "", attempt.user, self._call_sid)
            session = self._on_net.call_browser(invite, self._listener(leg), line)
        elif attempt.on_net:
            numbers = (*self._numbers, str(party.target))
            session = self._on_net.invite(invite, self._listener(leg), attempt, numbers)
        else:
            session = user_agent.invite(invite, self._listener(leg, attempt.gateway.gateway_sid))
        self._attach(leg, _SipLeg(session, attempt.carrier, other))
        self._save(leg)
        return session.call_id

    def take_key(self, leg: LegId) -> SrtpKey | None:
        """Return the key that our side must send with to a browser, at its answer; None for other parties."""
        session = self._session(leg)
        return None if session is None else self._on_net.take_key(session.call_id)

    def ring(self, leg: LegId, status: int, body: bytes) -> None:
        """Send a provisional response to the caller."""
        found = self._legs.get(leg)
        if found is not None and isinstance(found.session, InboundSession):
            reliable = _RELIABLE[found.carrier.rel100]
            found.session.progress(status, body, self._response_headers(leg, found), reliable=reliable)

    def answer(self, leg: LegId, body: bytes) -> bool:
        """Answer the caller; False when the caller has left, which an event is about to report."""
        found = self._legs.get(leg)
        if found is None or not isinstance(found.session, InboundSession):
            return False
        found.session.answer(body, self._response_headers(leg, found))
        self._save(leg)
        return True

    def send_digit(self, leg: LegId, digit: str, duration_ms: int) -> None:
        """Send one digit in an INFO, in the format that the party accepts."""
        found = self._legs.get(leg)
        if found is not None:
            kind = found.digit_type
            found.session.info(kind, digit_body(digit, duration_ms, kind))

    def reject(
        self,
        leg: LegId,
        status: int,
        cause: HangupCause,
        warning: str | None = None,
        retry_after_s: int | None = None,
    ) -> None:
        """Reject the caller; ``warning`` is the value of a Warning header field."""
        session_id = self._ids.header(leg, None)
        session = self._drop(leg)
        if isinstance(session, InboundSession):
            headers = [("Reason", cause.reason_header()), ("Session-ID", session_id)]
            if warning is not None:
                headers.append(("Warning", warning))
            if retry_after_s is not None:
                headers.append(("Retry-After", str(retry_after_s)))
            session.reject(status, headers=headers)

    def hang_up(self, leg: LegId, cause: HangupCause) -> None:
        """End the leg from our side; no more events of it are posted."""
        found = self._legs.get(leg)
        session = self._drop(leg)
        if session is not None and found is not None:
            session.hangup(reason=cause.reason_header(), status=503, headers=found.bye_headers)

    def accept_offer(self, leg: LegId, body: bytes) -> None:
        """Answer a party's offer."""
        session = self._session(leg)
        if session is not None:
            session.accept_offer(body)

    def reject_offer(self, leg: LegId, status: int, warning: str | None) -> None:
        """Reject a party's offer; the session continues unchanged."""
        session = self._session(leg)
        if session is not None:
            session.reject_offer(status, warning)

    # --- transfers ----------------------------------------------------------------------------------------

    def accept_refer(self, leg: LegId) -> None:
        """Accept a party's REFER, also after it has hung up."""
        session = self._referred.get(leg)
        if session is not None:
            session.accept_refer()

    def refuse_refer(self, leg: LegId, status: int) -> None:
        """Reject a party's REFER."""
        session = self._referred.get(leg)
        if session is not None:
            session.reject_refer(status)

    def notify_refer(self, leg: LegId, status: int) -> None:
        """Send a party a NOTIFY with the progress of its transfer; a final status is the last one."""
        session = self._referred.get(leg)
        if session is not None:
            session.notify_refer(status)

    def refer(self, leg: LegId, target: str) -> bool:
        """
        Send a party a REFER; False when its trunk has no right to transfers.

        Raises:
            InvalidValue: The target is not valid in SIP.
        """
        session = self._session(leg)
        if session is None or not session.allows_refer:
            return False
        session.refer(target)
        return True

    def _refer_received(self, leg: LegId, event: ReferReceived) -> None:
        found, refer = self._legs.get(leg), event.refer
        if found is not None:
            self._referred[leg] = found.session
            local = self._is_ours(refer.target)
            self._post(TransferRequested(leg, refer.target, refer.replaces, local))

    def _is_ours(self, uri: SipUri) -> bool:
        """True when a URI names this server; a gateway may share our address, at another port."""
        return any(
            uri.host == (listen.advertise or listen.host) and uri.port in (None, listen.port)
            for listen in self._user_agent.addresses
        )

    def release(self) -> None:
        """Detach from the sessions, and end those that are still open."""
        for session in self._referred.values():
            session.reject_refer(603)
            session.notify_refer(487)
        self._referred.clear()
        for leg in list(self._legs):
            self.hang_up(leg, NORMAL_TEMPORARY_FAILURE)

    def _session(self, leg: LegId) -> Session | None:
        found = self._legs.get(leg)
        return found.session if found is not None else None

    def _drop(self, leg: LegId) -> Session | None:
        found = self._legs.pop(leg, None)
        self._journal.remove(leg)
        self._ids.forget(leg)
        if found is None:
            return None
        found.session.on_event = None
        return found.session

    def _listener(self, leg: LegId, gateway_sid: str | None = None) -> Callable[[SessionEvent], None]:
        def listen(event: SessionEvent) -> None:
            if gateway_sid is not None:
                self._on_gateway(gateway_sid, event)
            heed = _HEEDED.get(type(event))
            if heed is not None:
                heed(self, leg, event)
            translate = TRANSLATIONS.get(type(event))
            translated = translate(leg, event) if translate is not None else None
            if translated is not None:
                self._post(translated)

        return listen

    def _offer_answered(self, leg: LegId, event: OfferAnswered) -> None:
        self._on_late_answer(leg, event.body)

    def _offered(self, leg: LegId, _: OfferReceived) -> None:
        self._save(leg)  # The offer may carry a new target (Contact).

    def _info(self, leg: LegId, event: InfoReceived) -> None:
        self._learn_digit_type(leg, digit_type_in(event))

    def _part(self, leg: LegId, event: SessionEvent) -> None:
        """Forget an ended leg; the User-to-User of its BYE is kept for the BYE to the peer (RFC 7433)."""
        found = self._legs.pop(leg, None)
        self._journal.remove(leg)
        self._ids.forget(leg)
        if not isinstance(event, Ended) or event.headers is None or found is None or found.other is None:
            return
        left = self._legs.get(found.other)
        if left is not None and left.other == leg:
            left.bye_headers = [("User-to-User", value) for value in user_to_user(event.headers)]

    def _learn_accepted(self, leg: LegId, headers: Headers) -> None:
        if headers.first("accept") is not None:  # few INVITEs have it
            self._learn_digit_type(leg, digit_type_of(headers))

    def _learn_digit_type(self, leg: LegId, kind: str | None) -> None:
        found = self._legs.get(leg)
        if found is not None and kind is not None:
            found.digit_type = kind

    def _responded(self, leg: LegId, event: Progress | Answered) -> None:
        """Learn from the headers of a party's response, and save its dialog."""
        found = self._legs.get(leg)
        if found is not None:
            self._learn(leg, found, event.headers)
            session, answered = found.session, isinstance(event, Answered)
            if answered or not isinstance(session, OutboundSession) or session.attempt != found.saved:
                self._save(leg)

    def _learn(self, leg: LegId, found: _SipLeg, headers: Headers) -> None:
        other = found.other
        self._learn_accepted(leg, headers)
        self._ids.learn(leg, headers.get("Session-ID"))
        found.session.set_session_id(self._ids.header(leg, other))
        waiting = self._legs.get(other) if other is not None else None
        if other is None or waiting is None:
            return
        waiting.other = leg
        waiting.session.set_session_id(self._ids.header(other, leg))
        waiting.answer_headers = [("User-to-User", value) for value in user_to_user(headers)]
        if self._open_headers or (found.carrier.forwarded_headers and waiting.carrier.forwarded_headers):
            waiting.answer_headers[:0] = [
                item
                for item in custom_headers(headers.items())
                if may_pass(item[0], found.carrier, waiting.carrier, self._open_headers)
            ]

    def _response_headers(self, leg: LegId, found: _SipLeg) -> list[tuple[str, str]]:
        return [("Session-ID", self._ids.header(leg, found.other)), *found.answer_headers]


_HEEDED: Final[dict[type[SessionEvent], Callable[[SipLegs, LegId, Any], None]]] = {
    OfferAnswered: SipLegs._offer_answered,
    ReferReceived: SipLegs._refer_received,
    InfoReceived: SipLegs._info,
    Progress: SipLegs._responded,
    Answered: SipLegs._responded,
    OfferReceived: SipLegs._offered,
    Failed: SipLegs._part,
    Cancelled: SipLegs._part,
    Ended: SipLegs._part,
}
"""Handlers of the legs themselves for events of sessions, called before the call gets the event."""


class DialogJournal:
    """Keeps ``dialogs`` up to date, leg by leg."""

    def __init__(self, dialogs: MutableMapping[str, Mapping[str, Any]]) -> None:
        self._dialogs = dialogs

    def save(self, leg: LegId, saved: dict[str, Any] | None, carrier_sid: str) -> bool:
        """Save the dialog of a leg; False if ``saved`` is None, because nothing has changed."""
        if saved is None:
            return False
        # Credentials are read from the carrier when needed: no password is written here.
        saved["carrier"] = carrier_sid
        self._dialogs[str(leg)] = saved
        return True

    def remove(self, leg: LegId) -> None:
        """Remove the dialog of an ended leg."""
        self._dialogs.pop(str(leg), None)


class SessionIds:
    """
    Session identifiers of a call's parties; ``own`` is ours, and stands in for parties without one.

    Source: RFC 7989 6, 7. The older form without ``remote`` (RFC 7329) is accepted.
    """

    def __init__(self, own: str) -> None:
        self.own = own
        self._of_party: dict[LegId, str] = {}

    def learn(self, leg: LegId, value: str | None) -> None:
        """Store the identifier of a party's Session-ID header field; ignore a malformed or nil one."""
        if value is None:
            return
        match = _SESSION_ID.fullmatch(value)
        if match is not None and match[1] != NIL:
            self._of_party[leg] = match[1]

    def forget(self, leg: LegId) -> None:
        """Drop a leg that has ended."""
        self._of_party.pop(leg, None)

    def header(self, leg: LegId, other: LegId | None) -> str:
        """Session-ID value for a leg whose peer is the leg ``other``, or this server."""
        local = self.own if other is None else self._of_party.get(other, self.own)
        return f"{local};remote={self._of_party.get(leg, NIL)}"
