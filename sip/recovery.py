"""
Journal values of a session that let the next process end it.

The progress of a session decides how it is ended: a confirmed dialog by BYE, an unanswered INVITE of ours by
CANCEL, an unanswered INVITE of a peer by a final response. The values hold no body, password or key.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sip.errors import ParseError
from sip.message.fields import NameAddr
from sip.message.message import Headers, Request
from sip.message.uri import SipUri
from sip.session.dialog import Dialog

Saved = Mapping[str, Any]
"""A saved session, as JSON values."""

CSEQ_MARGIN = 1000
"""Added to the saved sequence number: requests may have been sent since (RFC 3261 12.2.1.1)."""

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


@dataclass(slots=True)
class RecoveredDialog:
    """
    A session whose process has ended.

    `dialog` is set when `kind` is UP. Otherwise `request` is the unanswered INVITE with the header fields
    needed to end it. `transport`, `peer` and `name` identify the latest flow to the peer.
    """

    kind: Kind
    transport: str
    peer: tuple[str, int]
    name: str | None
    call_id: str
    local_tag: str
    dialog: Dialog | None = None
    request: Request | None = None


def save_dialog(dialog: Dialog, transport: str, peer: tuple[str, int], name: str | None) -> dict[str, Any]:
    """Return the journal values of a confirmed dialog."""
    saved: dict[str, Any] = {
        "kind": Kind.UP.value,
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
    kept = _OF_OURS if to is None else _OF_PEERS
    fields = [[entry[1], entry[2]] for entry in invite.headers.entries() if entry[0] in kept]
    saved: dict[str, Any] = {
        "kind": (Kind.CALLING if to is None else Kind.CALLED).value,
        "via": [transport, *peer],
        "target": str(invite.uri),
        "fields": fields if to is None else [*fields, ["To", to]],
    }
    if name is not None:
        saved["name"] = name
    return saved


def restore(saved: Saved) -> RecoveredDialog:
    """
    Rebuild a session from its journal values.

    Raises:
        ParseError: The values are not those of `save_dialog` or `save_invite`.
    """
    try:
        kind = Kind(saved["kind"])
        transport, host, port = saved["via"]
        way = (str(transport), (str(host), int(port)), saved.get("name"))
        return _dialog(saved, way) if kind is Kind.UP else _invite(kind, saved, way)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ParseError(f"A saved session cannot be read: {error!r}") from None


_Way = tuple[str, tuple[str, int], str | None]


def _dialog(saved: Saved, way: _Way) -> RecoveredDialog:
    local, remote = str(saved["local"]), str(saved["remote"])
    local_tag = NameAddr.parse(local).tag or ""
    remote_tag, target = NameAddr.parse(remote).tag, SipUri.parse(saved["target"])
    dialog = Dialog(str(saved["call_id"]), local, local_tag, remote, remote_tag, target)
    dialog.local_seq = int(saved["seq"]) + CSEQ_MARGIN
    routes: Iterable[str] = saved.get("routes", ())
    dialog.route_set = tuple(str(route) for route in routes)
    dialog.next_hop()  # Raises for malformed routes now, not when the BYE is sent.
    dialog.session_id = str(saved.get("session_id", ""))
    return RecoveredDialog(Kind.UP, *way, dialog.call_id, local_tag, dialog=dialog)


def _invite(kind: Kind, saved: Saved, way: _Way) -> RecoveredDialog:
    headers = Headers([(str(name), str(value)) for name, value in saved["fields"]])
    request = Request("INVITE", SipUri.parse(saved["target"]), headers)
    tag = request.from_.tag if kind is Kind.CALLING else request.to.tag
    if request.via.branch is None or request.cseq.method != "INVITE":
        raise ParseError("A saved INVITE lacks its branch")
    return RecoveredDialog(kind, *way, request.call_id, tag or "", request=request)
