"""
Forwarding of requests to the node that must answer them.

A request goes on as it came, with the caller's own credentials, which that node checks like any others. The
header `X-Trunkline-Forwarded-By` says that it has been forwarded: it is not forwarded again, and proves
nothing. Bodies of responses are passed on as they arrive.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import aiohttp
from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from api.http.connections import has_left
from api.http.middleware import current_request
from callcontrol.errors import DomainError, NodeUnreachable, OutcomeUnknown
from callcontrol.nodes.aio import Membership
from callcontrol.nodes.forwarding import NoWay
from callcontrol.nodes.metrics import ForwardMetrics, ForwardOutcome

__all__ = ["FORWARDED_BY", "ForwardTimes", "Forwarder"]

_log = logging.getLogger("api.http.forward")

FORWARDED_BY: Final = "X-Trunkline-Forwarded-By"

_BODILESS: Final = frozenset({"GET", "HEAD"})
_OF_A_CONNECTION: Final = frozenset(
    {
        *("connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "proxy-connection"),
        *("te", "trailer", "transfer-encoding", "upgrade", "content-length"),
    }
)
# The body was decoded when it was read, and the Origin was checked here.
_NOT_SENT: Final = _OF_A_CONNECTION | {"host", "expect", "content-encoding", "origin", "x-request-id"}
# Limits and origins are those of the node that the client has asked.
_NOT_RETURNED: Final = _OF_A_CONNECTION | {
    *("date", "server", "vary", "x-request-id"),
    *("ratelimit", "ratelimit-policy"),
    *("x-ratelimit-limit", "x-ratelimit-remaining", "x-ratelimit-reset"),
}


@dataclass(frozen=True, slots=True)
class ForwardTimes:
    """
    Time limits of a forwarded request.

    Attributes:
        connect_s: Until the other node has accepted the connection.
        answer_s: Until the head of its response, which it sends when it has carried out the request.
        silence_s: Between two parts of the body of its response; an event stream has one every 15 s.
        look_every_s: Interval of checks for a client that has left.
    """

    connect_s: float = 1.0
    answer_s: float = 5.0
    silence_s: float = 45.0
    look_every_s: float = 1.0


class Forwarder:
    """
    Forwards requests to other nodes; its client is opened with the first one.

    Attributes:
        metrics: Requests by outcome, and times of responses.
    """

    def __init__(self, membership: Membership, times: ForwardTimes | None = None) -> None:
        self.metrics = ForwardMetrics()
        self._membership = membership
        self._times = times or ForwardTimes()
        self._session: aiohttp.ClientSession | None = None
        self._closed = False

    async def answer(self, request: web.Request, elsewhere: NodeUnreachable) -> web.StreamResponse:
        """
        Pass on the response of another node to a request whose body has been read.

        Raises:
            NodeUnreachable: The node cannot be asked; it has done nothing, or the request is repeatable.
            OutcomeUnknown: The node may have carried out the request, and the response is missing.
        """
        if FORWARDED_BY in request.headers:
            self.metrics.note(ForwardOutcome.SECOND_HOP)
            raise elsewhere.because(NoWay.FORWARDED.value)
        body = None if request.method in _BODILESS else await request.read()
        headers = _sent(request.headers)
        headers["X-Request-Id"] = current_request().request_id
        found = await self.ask(elsewhere, request.method, str(request.rel_url), headers, body)
        async with found:
            return await self._pass_on(request, found)

    async def ask(
        self,
        elsewhere: NodeUnreachable,
        method: str,
        target: str,
        headers: Mapping[str, str],
        body: bytes | None,
    ) -> aiohttp.ClientResponse:
        """
        Send a request for a path and query to another node; returns its response once the head has arrived.

        Raises:
            NodeUnreachable, OutcomeUnknown: As in ``answer``.
        """
        if self._closed:
            raise elsewhere
        began_s = asyncio.get_running_loop().time()
        way = await self._membership.way_to(elsewhere.node)
        if isinstance(way, NoWay):
            self.metrics.note(ForwardOutcome.NO_NODE)
            raise elsewhere.because(way.value)
        lines = CIMultiDict(headers)
        lines[FORWARDED_BY] = self._membership.name or ""
        try:
            async with asyncio.timeout(self._times.answer_s):
                found = await self._opened().request(
                    method,
                    URL(way + target, encoded=True),
                    headers=lines,
                    data=body or None,
                    allow_redirects=False,
                )
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise self._not_connected(elsewhere, way, error) from error
        except (aiohttp.ClientError, TimeoutError) as error:
            raise self._not_answered(elsewhere, method, target, error) from error
        self.metrics.answered(asyncio.get_running_loop().time() - began_s)
        return found

    def _not_connected(self, elsewhere: NodeUnreachable, url: str, error: Exception) -> DomainError:
        self.metrics.note(ForwardOutcome.NOT_CONNECTED)
        self._membership.forget(elsewhere.node)
        _log.warning("the node %s cannot be reached at %s: %s", elsewhere.node, url, _named(error))
        return elsewhere.because(NoWay.UNREACHABLE.value)

    def _not_answered(
        self, elsewhere: NodeUnreachable, method: str, target: str, error: Exception
    ) -> DomainError:
        self.metrics.note(ForwardOutcome.NOT_ANSWERED)
        path = target.partition("?")[0][:200]
        _log.warning("the node %s has not answered %s %s: %s", elsewhere.node, method, path, _named(error))
        return _unanswered(method, elsewhere)

    async def ask_whole(
        self, elsewhere: NodeUnreachable, method: str, target: str, headers: Mapping[str, str], body: bytes
    ) -> tuple[int, bytes]:
        """
        Send a request as ``ask`` does; returns the status and the body of the response.

        Raises:
            NodeUnreachable, OutcomeUnknown: As in ``answer``.
        """
        try:
            async with (
                await self.ask(elsewhere, method, target, headers, body) as found,
                asyncio.timeout(self._times.silence_s),
            ):
                return found.status, await found.read()
        except (aiohttp.ClientError, TimeoutError) as error:
            raise _unanswered(method, elsewhere) from error

    async def close(self) -> None:
        """End all streams and connections."""
        self._closed = True
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # Of a connection that was kept, it is unknown if the last request on it has been read. The
                # clients of this server limit the number.
                connector=aiohttp.TCPConnector(force_close=True, limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=self._times.connect_s),
                middlewares=(_once,),
            )
        return self._session

    async def _pass_on(self, request: web.Request, found: aiohttp.ClientResponse) -> web.StreamResponse:
        response = web.StreamResponse(status=found.status, reason=found.reason)
        refused = found.status == 429
        for name, value in found.headers.items():
            if not _is_own(name.lower(), refused=refused):
                response.headers.add(name, value)
        response.content_length = found.content_length
        current_request().mark(response)
        try:
            await response.prepare(request)
            while request.method != "HEAD" and (part := await self._next_part(request, found)):
                await response.write(part)
            await response.write_eof()
        except (aiohttp.ClientError, TimeoutError, ConnectionError) as error:
            # The status has been sent already, so only closing the connection can signal the failure.
            if not has_left(request):
                _log.warning("a forwarded response has ended early: %s", _named(error))
            if request.transport is not None:
                request.transport.abort()
        return response

    async def _next_part(self, request: web.Request, found: aiohttp.ClientResponse) -> bytes:
        """
        Wait for the next part of a body; empty at its end.

        Raises:
            ConnectionResetError: The client has left.
            TimeoutError: The other node is silent for too long.
        """
        reading = asyncio.create_task(found.content.readany())
        waited_s = 0.0
        try:
            while waited_s < self._times.silence_s:
                done, _ = await asyncio.wait({reading}, timeout=self._times.look_every_s)
                if done:
                    return reading.result()
                if has_left(request):
                    raise ConnectionResetError("the client has left")
                waited_s += self._times.look_every_s
            raise TimeoutError("the node is silent")
        finally:
            reading.cancel()


class _Disconnected(aiohttp.ClientError):
    """The other node has disconnected before its response."""


async def _once(request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Send a request once: after a disconnection the client would repeat some, which may then run twice."""
    try:
        return await send(request)
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
        raise
    except (aiohttp.ClientOSError, aiohttp.ServerDisconnectedError) as error:
        raise _Disconnected("it has disconnected") from error


def _named(error: Exception) -> str:
    """Name an error for the log; texts of the client repeat the query, which may be a link to a recording."""
    cause = error.os_error if isinstance(error, aiohttp.ClientConnectorError) else error
    return getattr(cause, "strerror", None) or type(error).__name__


def _unanswered(method: str, elsewhere: NodeUnreachable) -> DomainError:
    """Refusal without a response: every request but a POST can be repeated as it is."""
    if method == "POST":
        return OutcomeUnknown(elsewhere.node)
    return elsewhere.because("which got the request and has not answered")


def _sent(headers: Mapping[str, str]) -> CIMultiDict[str]:
    """Headers of a request that are sent on; one that is not UTF-8 is not."""
    of_the_connection = {name.strip().lower() for name in headers.get("Connection", "").split(",")}
    left_out = _NOT_SENT | of_the_connection
    return CIMultiDict(
        (name, value)
        for name, value in headers.items()
        if name.lower() not in left_out and value.isprintable()
    )


def _is_own(name: str, *, refused: bool) -> bool:
    """Return True for a header of a response that the client gets from this node."""
    if refused and "ratelimit" in name:
        return False
    return name in _NOT_RETURNED or name.startswith("access-control-")
