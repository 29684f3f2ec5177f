"""Health probes of targets by OPTIONS (RFC 3261 11)."""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sip.aio.resolver import is_address
from sip.location.rfc3263 import Destination, Target
from sip.message.message import Response
from sip.message.uri import SipUri

if TYPE_CHECKING:
    from sip.aio.user_agent import UserAgent

MAX_AT_ONCE = 16
_DEAD = (408, 503)


async def probe(agent: "UserAgent", destination: Destination, limit_s: float) -> float | None:
    """
    Probe all targets of a destination at once and update their backoff.

    Any final response but 408 and 503 counts as alive. Returns the shortest time in seconds, or None.
    """
    found: asyncio.Future[Sequence[Target]] = asyncio.get_running_loop().create_future()
    agent.router.resolver.locate(destination, lambda targets: _settle(found, targets))
    targets = await found
    answers = await asyncio.gather(*(_ask(agent, target, destination, limit_s) for target in targets))
    return min((answer for answer in answers if answer is not None), default=None)


async def probe_backed_off(agent: "UserAgent", limit_s: float) -> None:
    """Probe the targets whose backoff is over."""
    due = agent.router.backoff.due(agent.layer.clock.time())[:MAX_AT_ONCE]
    await asyncio.gather(*(_ask(agent, target, Destination(None, target.name, 0), limit_s) for target in due))


def _settle(found: "asyncio.Future[Sequence[Target]]", targets: Sequence[Target]) -> None:
    if not found.done():
        found.set_result(targets)


async def _ask(agent: "UserAgent", target: Target, wanted: Destination, limit_s: float) -> float | None:
    """Probe one target; returns its response time in seconds, None if it is not alive."""
    clock = agent.layer.clock
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
        agent.router.backoff.failed(target, now, None if response is None else response.retry_after_s)
    elif not dead:
        agent.router.backoff.answered(target)
    return None if dead else now - began
