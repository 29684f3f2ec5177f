"""
What must outlive the process of a session so that the next one can end it, as plain values for a journal.

How far the session is decides what ends it: a BYE the dialog that stands, a CANCEL an INVITE of ours that was
not answered, a final response an INVITE that a peer waits for. No body, password or key is among the values.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from sip.errors import ParseError
from sip.message.fields import NameAddr
from sip.message.headers import Headers
from sip.message.message import Request
from sip.message.uri import SipUri
from sip.session.dialog import Dialog

__all__ = ["CSEQ_MARGIN", "FormerSession", "Kind", "Saved", "restore", "save_dialog", "save_invite"]

Saved = Mapping[str, Any]
"""A saved session: values that JSON can hold."""

CSEQ_MARGIN = 1000
"""Added to the last sequence number that was saved: requests may have left since (RFC 3261 12.2.1.1)."""

_OF_OURS = frozenset(("via", "route", "from", "to", "call-id", "cseq", "session-id"))
"""What the CANCEL of an INVITE is made of (RFC 3261 9.1), and the ACK of its refusal."""
_OF_PEERS = frozenset(("via", "from", "call-id", "cseq"))
"""What a response to an INVITE repeats of it (RFC 3261 8.2.6)."""


class Kind(StrEnum):
    """How far a session was."""

    UP = "up"
    CALLING = "calling"
    """Ours, not answered."""
    CALLED = "called"
    """A peer's, not answered."""


@dataclass(slots=True)
class FormerSession:
    """
    A session whose process is gone.

    `request` is the INVITE that is not answered yet, with the fields that its end takes; `dialog` stands when
    `kind` is UP. `transport`, `peer` and `name` are the way on which the peer was heard last.
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
    """The values of a dialog that stands."""
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
    The values of an INVITE that waits for its answer.

    `to` is the To of our responses, with our tag, for an INVITE of a peer.
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


def restore(saved: Saved) -> FormerSession:
    """
    Make a session of what was saved of it.

    Raises:
        ParseError: It is not what `save_dialog` and `save_invite` give.
    """
    try:
        kind = Kind(saved["kind"])
        transport, host, port = saved["via"]
        way = (str(transport), (str(host), int(port)), saved.get("name"))
        return _dialog(saved, way) if kind is Kind.UP else _invite(kind, saved, way)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ParseError(f"A saved session cannot be read: {error!r}") from None


_Way = tuple[str, tuple[str, int], str | None]


def _dialog(saved: Saved, way: _Way) -> FormerSession:
    local, remote = str(saved["local"]), str(saved["remote"])
    local_tag = NameAddr.parse(local).tag or ""
    dialog = Dialog(str(saved["call_id"]), (local, local_tag), (remote, NameAddr.parse(remote).tag))
    dialog.local_seq = int(saved["seq"]) + CSEQ_MARGIN
    dialog.remote_target = SipUri.parse(saved["target"])
    routes: Iterable[str] = saved.get("routes", ())
    dialog.route_set = tuple(str(route) for route in routes)
    dialog.next_hop()  # It says now what is wrong with the routes, and not when the BYE is to leave.
    dialog.session_id = str(saved.get("session_id", ""))
    return FormerSession(Kind.UP, *way, dialog.call_id, local_tag, dialog=dialog)


def _invite(kind: Kind, saved: Saved, way: _Way) -> FormerSession:
    headers = Headers([(str(name), str(value)) for name, value in saved["fields"]])
    request = Request("INVITE", SipUri.parse(saved["target"]), headers)
    tag = request.from_.tag if kind is Kind.CALLING else request.to.tag
    if request.via.branch is None or request.cseq.method != "INVITE":
        raise ParseError("A saved INVITE lacks its branch")
    return FormerSession(kind, *way, request.call_id, tag or "", request=request)
