"""Requests derived from an outbound INVITE: its ACK and its CANCEL."""

from sip.message.message import Entry, Headers, Request, Response

_COPIED = frozenset(("route", "from", "call-id", "session-id"))


def make_ack(invite: Request, response: Response) -> Request:
    """
    Build the ACK of a non-2xx final response.

    Source: RFC 3261 17.1.1.3.
    """
    to = response.headers.first("to") or ""
    return _derive(invite, "ACK", to)


def make_cancel(invite: Request, reason: str | None = None) -> Request:
    """
    Build the CANCEL of an INVITE; `reason` is the value of a Reason header field.

    Source: RFC 3261 9.1, RFC 3326.
    """
    cancel = _derive(invite, "CANCEL", invite.headers.first("to") or "")
    if reason is not None:
        cancel.headers.add("Reason", reason)
    return cancel


def _derive(invite: Request, method: str, to: str) -> Request:
    entries: list[Entry] = []
    for entry in invite.headers.entries:
        if entry[0] == "via" and not entries:
            entries.append(entry)
        elif entry[0] in _COPIED:
            entries.append(entry)
    entries += (
        ("to", "To", to),
        ("cseq", "CSeq", f"{invite.cseq.number} {method}"),
        ("max-forwards", "Max-Forwards", "70"),
    )
    return Request(method, invite.uri, Headers.from_entries(entries))
