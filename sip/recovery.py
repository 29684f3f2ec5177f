"""
Sessions of a process that has ended, restored from their saved state so that the next process can end them.

The progress of a session decides how it is ended: a confirmed dialog by BYE, an unanswered INVITE of ours by
CANCEL, an unanswered INVITE of a peer by a final response.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sip.errors import ParseError
from sip.message.fields import NameAddr
from sip.message.message import Headers, Request
from sip.message.uri import SipUri
from sip.session.dialog import Dialog, Kind

Saved = Mapping[str, Any]
"""A saved session, as JSON values."""

CSEQ_MARGIN = 1000
"""Added to the saved sequence number: requests may have been sent since (RFC 3261 12.2.1.1)."""


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
