"""Health probes of targets by OPTIONS (RFC 3261 11)."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Protocol

from sip.aio.request_routing import Ways
from sip.aio.resolver import is_address
from sip.location.rfc3263 import Target, Wanted
from sip.message.message import Response
from sip.message.uri import SipUri
from sip.session.outbound_invite import Destination

__all__ = ["probe", "probe_rested"]

MAX_AT_ONCE = 16
_DEAD = (408, 503)


class Asking(Protocol):
    """Methods of the user agent that a probe calls."""

    def options(self, destination: Destination, uri: SipUri) -> Awaitable[Response | None]:
        """Send OPTIONS to a peer; None when it does not answer."""


async def probe(agent: Asking, ways: Ways, destination: Destination, limit_s: float) -> float | None:
    """
    Probe all targets of a destination at once and update their backoff.

    Any final response but 408 and 503 counts as alive. Returns the shortest time in seconds, or None.
    """
    found: asyncio.Future[Sequence[Target]] = asyncio.get_running_loop().create_future()
    wanted = Wanted(destination.host, destination.port, destination.transport, verify=destination.verify)
    ways.resolver.locate(wanted, lambda targets: _settle(found, targets))
    targets = await found
    answers = await asyncio.gather(*(_ask(agent, ways, target, destination, limit_s) for target in targets))
    return min((answer for answer in answers if answer is not None), default=None)


async def probe_rested(agent: Asking, ways: Ways, limit_s: float) -> None:
    """Probe the targets whose backoff is over."""
    due = ways.rests.due(ways.endpoint.clock.time())[:MAX_AT_ONCE]
    await asyncio.gather(
        *(_ask(agent, ways, target, Destination(None, target.name, 0), limit_s) for target in due)
    )


def _settle(found: "asyncio.Future[Sequence[Target]]", targets: Sequence[Target]) -> None:
    if not found.done():
        found.set_result(targets)


async def _ask(
    agent: Asking, ways: Ways, target: Target, wanted: Destination, limit_s: float
) -> float | None:
    """Probe one target; returns its response time in seconds, None if it is not alive."""
    clock = ways.endpoint.clock
    began = clock.time()
    there = Destination(target.transport, target.host, target.port, target.name)
    params = (("transport", target.transport),) if target.transport != "udp" else ()
    host = wanted.host.strip("[]").lower()
    uri = SipUri("sip", host=host, port=wanted.port or None, params=params)
    response: Response | None
    try:
        async with asyncio.timeout(limit_s):
            response = await agent.options(there, uri)
    except TimeoutError:
        response = None
    now = clock.time()
    dead = response is None or response.status in _DEAD
    if dead and not is_address(host):  # An address has no other target to try first.
        ways.rests.failed(target, now, None if response is None else response.retry_after_s)
    elif not dead:
        ways.rests.answered(target)
    return None if dead else now - began
