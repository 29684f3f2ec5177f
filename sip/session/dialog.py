"""
Dialog state: tags, route set, remote target and sequence numbers (RFC 3261 12), and how it is saved.

A saved dialog, or INVITE that is not answered, lets the next process end it; see `sip.recovery`. It holds no
body, password or key.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sip.errors import ParseError
from sip.message.fields import NameAddr
from sip.message.message import Entry, Headers, Message, Request, Response
from sip.message.uri import SipUri
from sip.values import constructed_natively

_OF_OURS = frozenset(("via", "route", "from", "to", "call-id", "cseq", "session-id"))
"""Header fields that the CANCEL of an INVITE and the ACK of its refusal repeat (RFC 3261 9.1, 17.1.1.3)."""
_OF_PEERS = frozenset(("via", "from", "call-id", "cseq"))
"""Header fields that a response to an INVITE repeats, besides To (RFC 3261 8.2.6)."""


class Kind(StrEnum):
    """Progress of a saved session."""

    UP = "up"
    CALLING = "calling"
    """Outbound, not answered."""
    CALLED = "called"
    """Inbound, not answered."""


@constructed_natively
@dataclass(slots=True, eq=False)
class Dialog:
    """
    One dialog, early or confirmed.

    `local` and `remote` are the From and To values of our requests, as on the wire. `local_contact` is our
    Contact value. `description` is the peer's session description of the last offer/answer exchange within
    the dialog, if any. The machines that use a dialog decide when it begins and ends.
    """

    call_id: str
    local: str
    local_tag: str
    remote: str
    remote_tag: str | None
    remote_target: SipUri
    local_seq: int = 0
    remote_seq: int = -1
    local_contact: str = ""
    route_set: tuple[str, ...] = ()
    session_id: str = ""
    description: bytes = b""
    _allow: str = ""

    @classmethod
    def from_request(cls, request: Request, local_tag: str, local_contact: str) -> "Dialog":
        """
        Build the dialog of an inbound INVITE.

        Raises:
            ParseError: The request has no usable Contact or Record-Route.

        Source: RFC 3261 12.1.1.
        """
        headers, contact = request.headers, request.contact
        if contact is None or not contact.uri.host:
            raise ParseError("Missing Contact header field, or no host in it")
        call_id, number, remote = request.call_id, request.cseq.number, request.from_
        allow = ",".join(headers.all_of("allow"))
        to, from_ = headers.first("to") or "", headers.first("from") or ""
        return cls(
            call_id,
            f"{to};tag={local_tag}",
            local_tag,
            from_,
            remote.tag,
            _target(contact.uri),
            remote_seq=number,
            local_contact=local_contact,
            route_set=_routes_of(request),
            _allow=allow,
        )

    @classmethod
    def from_response(cls, request: Request, response: Response) -> "Dialog":
        """
        Build the dialog that a response to our INVITE establishes.

        Without a usable Contact the Request-URI is the remote target, and with a malformed Record-Route the
        route set is empty: the peer has answered, and must be acknowledged.

        Source: RFC 3261 12.1.2.
        """
        local, remote = request.headers.first("from") or "", response.headers.first("to") or ""
        # Only the peer's tag is taken from the response: it may repeat our own fields wrongly.
        local_tag, remote_tag = request.from_.tag or "", response.to.tag
        dialog = cls(request.call_id, local, local_tag, remote, remote_tag, request.uri, request.cseq.number)
        dialog.local_contact = request.headers.first("contact") or ""
        dialog.refresh_target(response)
        dialog._take_route(response)
        dialog.session_id = _session_id_of(request, response)
        return dialog

    def confirm(self, response: Response) -> None:
        """
        Confirm an early dialog of ours: the 2xx sets its target and its route set again.

        Source: RFC 3261 13.2.2.4.
        """
        self.remote = response.headers.first("to") or self.remote
        self.refresh_target(response)
        self._take_route(response)

    def _take_route(self, response: Response) -> None:
        try:
            self.route_set = _routes_of(response)[::-1]
        except ParseError:
            self.route_set = ()

    def allows(self, method: str) -> bool:
        """
        Return True when the peer's Allow lists a method; False without an Allow.

        Source: RFC 3261 20.5, RFC 3311 5.1.
        """
        return method in self._allow.replace(" ", "").upper().split(",")

    def disallow(self) -> None:
        """Discard the peer's Allow, after it refused a method it had listed."""
        self._allow = ""

    def accept_sequence(self, request: Request) -> bool:
        """
        Store the sequence number of a request; False when it does not rise.

        Source: RFC 3261 12.2.2.
        """
        number = request.cseq.number
        if number <= self.remote_seq:
            return False
        self.remote_seq = number
        return True

    def refresh_target(self, message: Message) -> None:
        """
        Update the remote target from the Contact of a message, if usable, and its Allow, if any.

        Source: RFC 3261 12.2.1.2, 12.2.2.
        """
        self._allow = ",".join(message.headers.all_of("allow")) or self._allow
        try:
            contact = message.contact
        except ParseError:
            return
        if contact is not None and contact.uri.host:
            self.remote_target = _target(contact.uri)

    def next_hop(self) -> SipUri:
        """Return the next hop of requests: the first route, or the remote target without routes."""
        if not self.route_set:
            return self.remote_target
        return _uri_of(self.route_set[0])

    def request(
        self,
        method: str,
        *,
        cseq: int | None = None,
        headers: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
        content_type: str | None = None,
    ) -> Request:
        """
        Build the next request of this dialog, without a Via; `cseq` reuses a number, as an ACK does.

        Source: RFC 3261 12.2.1.1.
        """
        if cseq is None:
            self.local_seq += 1
            cseq = self.local_seq
        uri, routes = self._address_line() if self.route_set else (self.remote_target, ())
        entries: list[Entry] = [
            ("max-forwards", "Max-Forwards", "70"),
            ("from", "From", self.local),
            ("to", "To", self.remote),
            ("call-id", "Call-ID", self.call_id),
            ("cseq", "CSeq", f"{cseq} {method}"),
        ]
        for route in routes:
            entries.append(("route", "Route", route))
        if self.session_id:
            entries.append(("session-id", "Session-ID", self.session_id))
        if method in _TARGET_REFRESH:
            entries.append(("contact", "Contact", self.local_contact))
        request = Request(method, uri, Headers.from_entries(entries), body)
        request.headers.call_id = self.call_id
        if headers:
            request.headers.extend(headers)
        if body and content_type:
            entries.append(("content-type", "Content-Type", content_type))
        return request

    def _address_line(self) -> tuple[SipUri, Sequence[str]]:
        """Return the Request-URI and the Route entries of requests that have a route."""
        first = _uri_of(self.route_set[0])
        if first.param("lr") is not None:
            return self.remote_target, self.route_set
        # A strict router of RFC 2543 needs its own URI as Request-URI, and the target as last route.
        return first.with_(headers=None), (*self.route_set[1:], f"<{self.remote_target}>")


_UUID = re.compile(r"[0-9a-f]{32}", re.ASCII)
_TARGET_REFRESH = frozenset(("INVITE", "UPDATE", "SUBSCRIBE", "REFER", "NOTIFY"))


def _session_id_of(request: Request, response: Response) -> str:
    """Return the Session-ID of requests from the ACK on: our UUID, and the peer's if sent (RFC 7989 6)."""
    ours = request.headers.first("session-id")
    if ours is None:
        return ""
    theirs = (response.headers.first("session-id") or "").partition(";")[0].strip()
    return f"{ours.partition(';')[0]};remote={theirs}" if _UUID.fullmatch(theirs) else ours


def _routes_of(message: Message) -> tuple[str, ...]:
    """
    Return the Record-Route entries as written: a proxy may look for its own text in a Route.

    Raises:
        ParseError: An entry is malformed.

    Source: RFC 3261 12.1.1, 16.12.
    """
    if message.headers.first("record-route") is None or not message.record_routes:
        return ()
    return tuple(message.headers.get_all("Record-Route"))


def _target(uri: SipUri) -> SipUri:
    # A Request-URI carries no header fields (RFC 3261 19.1.1).
    return uri if uri.headers is None else uri.with_(headers=None)


def _uri_of(route: str) -> SipUri:
    return NameAddr.parse(route).uri


# How it is saved.


def save_dialog(dialog: Dialog, transport: str, peer: tuple[str, int], name: str | None) -> dict[str, Any]:
    """Return the journal values of a confirmed dialog."""
    saved: dict[str, Any] = {
        "kind": Kind.UP,
        "via": [transport, *peer],
        "call_id": dialog.call_id,
        "local": dialog.local,
        "remote": dialog.remote,
        "seq": dialog.local_seq,
        "target": str(dialog.remote_target),
    }
    if dialog.route_set:
        saved["routes"] = dialog.route_set
    if dialog.session_id:
        saved["session_id"] = dialog.session_id
    if name is not None:
        saved["name"] = name
    return saved


def save_invite(
    invite: Request, transport: str, peer: tuple[str, int], name: str | None, to: str | None = None
) -> dict[str, Any]:
    """
    Return the journal values of an unanswered INVITE.

    For an INVITE of a peer, `to` is the To of our responses, with our tag; None for one of ours.
    """
    kept = Headers()
    kept.copy_keys(invite.headers, _OF_OURS if to is None else _OF_PEERS)
    fields = [*map(list, kept.items())]
    saved: dict[str, Any] = {
        "kind": Kind.CALLING if to is None else Kind.CALLED,
        "via": [transport, *peer],
        "target": str(invite.uri),
        "fields": fields if to is None else [*fields, ["To", to]],
    }
    if name is not None:
        saved["name"] = name
    return saved
