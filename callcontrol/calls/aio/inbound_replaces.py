"""Callers that replace a party of a call (INVITE with Replaces, RFC 3891): authorization and dispatch."""

from collections.abc import Mapping

from callcontrol.calls.aio.registry import place_of
from callcontrol.calls.aio.runner import CallRunner
from callcontrol.calls.inbound import origin_for
from callcontrol.directory.routes import Routes
from callcontrol.ids import CallSid
from callcontrol.trunks.inbound_headers import Received
from sip.aio import InboundSession


def take_replacement(session: InboundSession, runners: Mapping[CallSid, CallRunner], routes: Routes) -> None:
    """
    Queue a caller for the party whose dialog it replaces, if its trunk may.

    The trunk must be one of the account or of the platform (403), and have the right to transfer (603).
    """
    place = place_of(session.replaces)
    runner = runners.get(place[0]) if place is not None else None
    if place is None or runner is None:
        session.reject(481)
        return
    carriers = tuple(str(carrier_sid) for carrier_sid in session.identities)
    origin = origin_for(carriers, session.source, runner.record.account_sid, routes)
    if origin is None:
        session.reject(403)
    elif not origin[0].allows_refer:
        session.reject(603)
    else:
        runner.replace(place[1], session, origin, Received.of(session.request.headers))
