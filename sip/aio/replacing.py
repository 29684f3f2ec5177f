"""Lookup of the session that an INVITE replaces (RFC 3891)."""

from collections.abc import Mapping

from sip.aio.session import OutboundSession, Session
from sip.errors import ParseError
from sip.message.message import Request, Response
from sip.message.responses import reply
from sip.session.replaces import objection, replaces_of

__all__ = ["find_replaced"]


def find_replaced(request: Request, sessions: Mapping[tuple[str, str], Session]) -> Session | Response | None:
    """
    Return the session that an INVITE replaces, the response that refuses it, or None if it replaces none.

    The application decides whether the sender may replace it. A session whose peer may not transfer is never
    replaced.

    Source: RFC 3891 3.
    """
    try:
        wanted = replaces_of(request)
    except ParseError as error:
        return reply(request, 400, error.reason)
    if wanted is None:
        return None
    session = sessions.get((wanted.call_id, wanted.to_tag))
    if session is None or not session.is_with(wanted.from_tag):
        return reply(request, 481)
    if not session.allows_refer:
        return reply(request, 603)
    status = objection(wanted, session.state, called_by_us=isinstance(session, OutboundSession))
    return session if status is None else reply(request, status)
