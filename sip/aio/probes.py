"""Health probes of targets by OPTIONS (RFC 3261 11)."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, TypeVar

from sip.aio.resolver import is_address
from sip.aio.transaction_io import ClientTransaction
from sip.aio.transaction_layer import make_token
from sip.aio.transport import Flow
from sip.effects import Failure, Purpose
from sip.location.rfc3263 import Destination, Target
from sip.message.fields import NameAddr
from sip.message.message import Headers, Request, Response
from sip.message.responses import ACCEPT
from sip.message.uri import SipUri

if TYPE_CHECKING:
    from sip.aio.user_agent import UserAgent

T = TypeVar("T")

MAX_AT_ONCE = 16
_DEAD = (408, 503)


class Probes:
    """OPTIONS requests of a user agent, and what they show of the targets of its requests."""

    def __init__(self, agent: "UserAgent") -> None:
        self._agent = agent

    async def probe(self, destination: Destination, limit_s: float = 4.0) -> float | None:
        """
        Send OPTIONS to all targets of a destination at once and update their backoff.

        Any final response but 408 and 503 counts as alive. Returns the response time of the fastest in
        seconds, or None when none answered in time.
        """
        found: asyncio.Future[Sequence[Target]] = asyncio.get_running_loop().create_future()
        self._agent.router.resolver.locate(destination, lambda targets: _settle(found, targets))
        targets = await found
        answers = await asyncio.gather(*(self._probe(target, destination, limit_s) for target in targets))
        return min((answer for answer in answers if answer is not None), default=None)

    async def probe_backed_off(self, limit_s: float = 4.0) -> None:
        """Send OPTIONS to the targets whose backoff is over, before calls try them again."""
        due = self._agent.router.backoff.due(self._agent.layer.clock.time())[:MAX_AT_ONCE]
        await asyncio.gather(
            *(self._probe(target, Destination(None, target.name, 0), limit_s) for target in due)
        )

    async def _probe(self, target: Target, wanted: Destination, limit_s: float) -> float | None:
        """Probe one target; returns its response time in seconds, None if it is not alive."""
        clock, backoff = self._agent.layer.clock, self._agent.router.backoff
        began = clock.time()
        there = Destination(target.transport, target.host, target.port, target.name)
        params = (("transport", target.transport),) if target.transport != "udp" else ()
        host = wanted.host.strip("[]").lower()
        uri = SipUri("sip", host=host, port=wanted.port or None, params=params)
        response: Response | None
        try:
            async with asyncio.timeout(limit_s):
                response = await self.options(there, uri)
        except TimeoutError:
            response = None
        now = clock.time()
        dead = response is None or response.status in _DEAD
        if dead and not is_address(host):  # An address has no other target to try first.
            backoff.failed(target, now, None if response is None else response.retry_after_s)
        elif not dead:
            backoff.answered(target)
        return None if dead else now - began

    def options(self, destination: Destination, uri: SipUri) -> Awaitable[Response | None]:
        """Send OPTIONS to a peer; None when it does not answer. Cancelling the wait ends the transaction."""
        agent = self._agent
        answered: asyncio.Future[Response | None] = asyncio.get_running_loop().create_future()
        local = NameAddr(None, SipUri("sip", host=agent.local_host(destination)))
        fields = (
            ("Max-Forwards", "70"),
            ("From", str(local.with_tag(make_token()))),
            ("To", f"<{uri}>"),
            ("Call-ID", make_token()),
            ("CSeq", "1 OPTIONS"),
            ("Contact", agent.contact(destination)),
            ("Accept", ACCEPT),
            ("User-Agent", agent.settings.product),
        )
        request = Request("OPTIONS", uri, Headers(fields))

        def end_if_cancelled(transaction: ClientTransaction) -> None:
            if answered.cancelled():
                agent.layer.end_client(transaction)

        def send(flow: Flow | None, failure: Failure) -> None:
            if flow is None:
                _settle(answered, None)
                return
            transaction = agent.layer.start_client(request, flow, _PendingOptions(answered), Purpose.INFO)
            answered.add_done_callback(lambda _: end_if_cancelled(transaction))

        agent.router.resolve_flow(destination, None, send)
        return answered


class _PendingOptions:
    """User of the transaction of an OPTIONS request."""

    def __init__(self, answered: "asyncio.Future[Response | None]") -> None:
        self._answered = answered

    def on_response(self, transaction: ClientTransaction, response: Response) -> None:
        if response.status >= 200:
            _settle(self._answered, response)

    def on_failure(self, transaction: ClientTransaction, failure: Failure) -> None:
        _settle(self._answered, None)


def _settle(future: "asyncio.Future[T]", result: T) -> None:
    if not future.done():
        future.set_result(result)
