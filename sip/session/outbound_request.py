"""INVITE of the calling side: sent, and sent again for a challenge, a Min-SE or another target."""

from collections.abc import Sequence
from typing import Any

from sip.auth.client import Authenticator
from sip.effects import Arm, Effect, Purpose, StartRequest
from sip.machine import NOTHING
from sip.message.headers import Headers
from sip.message.message import Request, Response
from sip.message.responses import ALLOW, add_fields, supported_fields
from sip.message.uri import SipUri
from sip.session.model import Event, SessionSettings, State
from sip.session.outbound_early import OutboundEarlySession
from sip.session.outbound_invite import OutboundInvite
from sip.session.prack import OPTION_TAG
from sip.session.redirects import Redirection, Redirector
from sip.session.session_timer import SessionTimer

__all__ = ["OutboundRequestSession", "credentials_of"]

_CHALLENGEABLE = (Purpose.BYE, Purpose.REINVITE, Purpose.PRACK, Purpose.UPDATE, Purpose.REFRESH)
_PLAIN = (Purpose.INFO, Purpose.REFER, Purpose.NOTIFY)
"""Requests within the dialog that no other part of the session stores."""
MAX_PLAIN = 16
"""Limit of stored plain requests, by CSeq: digits follow each other faster than their responses."""
_MADE_ANEW = frozenset(
    ("via", "max-forwards", "from", "to", "call-id", "cseq", "route", "contact", "content-type")
    + ("authorization", "proxy-authorization", "content-length")
)


class OutboundRequestSession(OutboundEarlySession):
    """Outbound session that sends its INVITE, and answers challenges of any request."""

    __slots__ = ("_authenticator", "_bye_reason", "_cseq", "_invite", "_plain", "_redirector", "_reinvite")

    def __init__(self, invite: OutboundInvite, call_id: str, contact: str, settings: SessionSettings) -> None:
        super().__init__(call_id, settings.token(), settings)
        self._invite = invite
        if invite.session_expires_s is not None:
            self.timer = SessionTimer(invite.session_expires_s, settings.min_se_s)
        self._request = self._make_request(contact)
        self.offers.ours = invite.body
        self._cseq = 1
        self._bye_reason: str | None = None
        self._authenticator: Authenticator | None = None
        self._plain: dict[int, Request] = {}
        self._reinvite: Request | None = None
        redirects = invite.redirects
        self._redirector = None if redirects is None else Redirector(redirects, invite.uri)

    def _make_request(self, contact: str) -> Request:
        invite = self._invite
        from_ = invite.from_.with_tag(self.local_tag)
        headers = Headers.from_entries(
            [
                ("max-forwards", "Max-Forwards", str(invite.max_forwards)),
                ("from", "From", str(from_)),
                ("to", "To", str(invite.to)),
                ("call-id", "Call-ID", self.call_id),
                ("cseq", "CSeq", "1 INVITE"),
                ("contact", "Contact", contact),
                ("allow", "Allow", ALLOW),
                ("user-agent", "User-Agent", self.settings.product),
            ],
            {"from": from_, "call-id": self.call_id},
        )
        for name, value in supported_fields() if invite.rel100 != "off" else supported_fields(OPTION_TAG):
            headers.add(name, value)
        for name, value in self._timer_fields():
            headers.add(name, value)
        if invite.rel100 == "required":
            headers.add("Require", OPTION_TAG)
        if invite.body:
            headers.add("Content-Type", invite.content_type)
        add_fields(headers, invite.headers)
        return Request("INVITE", invite.uri, headers, invite.body)

    def _learn(self, response: Response) -> bool:
        credentials = self._invite.credentials
        if credentials is None:
            return False
        if self._authenticator is None:
            self._authenticator = Authenticator(credentials, self.settings.token)
        return self._authenticator.learn(response)

    def _credentials(self, method: str, uri: SipUri, body: bytes) -> Sequence[tuple[str, str]]:
        if self._authenticator is None:
            return ()
        return self._authenticator.headers(method, uri, body)

    def _next_target(self, response: Response | None) -> Redirection | None:
        """Return the next target after a final response, or after none at all; None when none is left."""
        redirector = self._redirector
        if redirector is None or self.state > State.EARLY:
            return None
        if response is not None:
            redirector.learn(response)
            if response.status >= 600:
                return None  # A 6xx ends the search for targets (RFC 3261 16.7).
        return redirector.next()

    def _redirect(self, target: Redirection) -> Sequence[Effect]:
        """
        Send the INVITE to the target of a redirection, with the same Call-ID and From tag.

        Source: RFC 3261 8.1.3.4.
        """
        invite = self._invite
        invite.uri, invite.destination = target.uri, target.destination
        return self._invite_again(None)

    def await_response(self) -> Sequence[Effect]:
        """Arm the timer of the first response from the current target."""
        if self.state > State.EARLY:
            return NOTHING
        self._heard = False
        silence_s = self._invite.first_response_timeout_s
        if silence_s is None:
            silence_s = self.settings.first_response_timeout_s
        return (Arm(Event.TIMER_SILENCE, silence_s),)

    def _invite_again(self, _: Response | None) -> Sequence[Effect]:
        old = self._request
        headers = old.headers.copy()
        for name in ("Via", "Authorization", "Proxy-Authorization", "Session-Expires", "Min-SE"):
            headers.remove(name)
        for name, value in self._timer_fields():
            headers.add(name, value)
        self._cseq += 1
        headers.set("CSeq", f"{self._cseq} INVITE")
        uri = self._invite.uri
        for name, value in self._credentials("INVITE", uri, old.body):
            headers.add(name, value)
        self._request = Request("INVITE", uri, headers, old.body)
        send = StartRequest(self._request, Purpose.INVITE, None)
        return (*self._forget_forks(), send, *self.await_response())

    def _answer_challenge(self, purpose: Purpose, response: Response) -> Sequence[Effect]:
        """Send a request within the dialog again, with credentials; no effects when a retry is pointless."""
        plain = self._plain.pop(response.cseq.number, None)
        if plain is None and purpose not in _CHALLENGEABLE:
            return NOTHING
        # A request sent before another one was challenged only lacks the credentials of that challenge.
        auth = self._authenticator
        behind = plain is not None and auth is not None and auth.ready and not credentials_of(plain)
        if not behind and not self._learn(response):
            return NOTHING
        if plain is not None:
            return self._start_again(plain, purpose)
        if purpose is Purpose.BYE:
            return (self._bye(self._bye_reason),)
        if purpose is Purpose.PRACK:
            return self._prack_challenged(response)
        if purpose is Purpose.REFRESH:
            return self._refresh_challenged()
        if not self._is_awaited(response):
            return NOTHING
        self.offers.take_back()
        return self._offer_if_free()

    def _start(self, method: str, purpose: Purpose, **parts: Any) -> StartRequest:
        """Build a request; plain requests and the re-INVITE are stored for a retry and for the ACK."""
        effect = super()._start(method, purpose, **parts)
        if purpose in _PLAIN:
            while len(self._plain) >= MAX_PLAIN:
                del self._plain[next(iter(self._plain))]
            self._plain[effect.request.cseq.number] = effect.request
        elif purpose is Purpose.REINVITE and self._authenticator is not None:
            self._reinvite = effect.request
        return effect

    def _ack_credentials(self, number: int) -> Sequence[tuple[str, str]]:
        request = self._reinvite
        return () if request is None or request.cseq.number != number else credentials_of(request)

    def _start_again(self, request: Request, purpose: Purpose) -> Sequence[Effect]:
        dialog = self._talking() or self.dialog
        if dialog is None:
            return NOTHING  # Sent within an early dialog that has ended.
        fields = [(name, value) for key, name, value in request.headers.entries() if key not in _MADE_ANEW]
        content_type = request.headers.get("Content-Type")
        body = request.body
        send = self._start(
            request.method, purpose, headers=fields, body=body, content_type=content_type, within=dialog
        )
        return (send,)

    def _bye(self, reason: str | None) -> StartRequest:
        self._bye_reason = reason
        return super()._bye(reason)


def credentials_of(invite: Request) -> Sequence[tuple[str, str]]:
    """
    Return the credentials of an INVITE, which the ACK of its 2xx repeats.

    Source: RFC 3261 22.1.
    """
    return [
        (name, value)
        for name in ("Authorization", "Proxy-Authorization")
        for value in invite.headers.get_all(name)
    ]
