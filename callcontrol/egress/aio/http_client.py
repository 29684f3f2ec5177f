"""HTTP client for requests to customers' servers: one attempt, time limit, size limit."""

import asyncio
import errno
import socket
import ssl
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import aiohttp
from yarl import URL

from callcontrol.aio.tokens import unix_time_s
from callcontrol.egress.aio.connector import checked_connector
from callcontrol.egress.requests import (
    FormRequest,
    Reply,
    RequestProblem,
    is_success,
    query_url,
    signed_headers,
)
from callcontrol.egress.url_policy import WEB_SCHEMES, Destinations
from callcontrol.errors import DomainError
from callcontrol.models import WebhookEvent

MAX_MESSAGE_CHARS: Final = 300
MAX_REFUSAL_BYTES: Final = 8192
"""Bytes that are read of an answer that is no success; it is only shown."""

_REFUSAL_S: Final = 0.5


class NotAnswered(Exception):
    """Request without a usable answer: a reason code, a readable message, and a refusal if there was one."""

    def __init__(
        self,
        reason: RequestProblem,
        message: str,
        http_status: int | None = None,
        reply: Reply | None = None,
    ) -> None:
        super().__init__(message)
        self.reply = reply
        self.reason = reason
        self.message = message[:MAX_MESSAGE_CHARS]
        self.http_status = http_status


class CustomerHttpClient:
    """
    Sends requests to customers' servers for all calls of a process; connections are reused.

    ``timeout_s`` covers the whole request, from name resolution to the last byte of the answer.
    """

    def __init__(
        self,
        destinations: Destinations,
        *,
        timeout_s: float,
        max_answer_bytes: int,
        accept: str = "application/json",
    ) -> None:
        self._accept = accept
        self._destinations = destinations
        self._timeout_s = timeout_s
        self._max_answer_bytes = max_answer_bytes
        self._session: aiohttp.ClientSession | None = None

    async def ask(
        self, event: WebhookEvent, secrets: Sequence[str], form: FormRequest | None = None
    ) -> Reply:
        """
        Send one request, signed with each of the secrets, and return the answer.

        A ``form`` replaces the event's own URL and body, and adds its header fields.

        Raises:
            NotAnswered: There is no usable answer.
        """
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._ask(event, secrets, form)
        except NotAnswered:
            raise
        except DomainError as refusal:
            raise NotAnswered("connect", refusal.message) from None
        except TimeoutError:
            raise NotAnswered("timeout", f"no answer within {self._timeout_s:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NotAnswered(reason_of(error), problem_of(error)) from None

    async def _ask(self, event: WebhookEvent, secrets: Sequence[str], form: FormRequest | None) -> Reply:
        self._destinations.check_url(event.url, schemes=WEB_SCHEMES)
        get, limit = event.method == "GET", self._max_answer_bytes
        if form is not None:
            event = replace(event, body=form.body)
        headers = {
            **signed_headers(event, secrets, unix_time_s()),
            **(form.headers if form is not None else {}),
        }
        async with self._opened().request(
            event.method,
            # The signature covers the URL as written, so it must be sent unchanged.
            URL(form.url, encoded=True) if form is not None else query_url(event) if get else event.url,
            data=None if get else event.body,
            headers=headers,
            allow_redirects=False,
        ) as response:
            if not is_success(response.status):
                refusal = await _refusal(response, headers)
                raise NotAnswered("http_status", f"answered {response.status}", response.status, refusal)
            body = await read_bounded(response, limit)
            return Reply(response.content_type, body, response.status, len(body), sent=headers)

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = customer_session(self._destinations, self._accept)
        return self._session

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


def customer_session(destinations: Destinations, accept: str) -> aiohttp.ClientSession:
    """HTTP session limited to permitted addresses; the caller sets the time limit."""
    return aiohttp.ClientSession(
        # Every call sends one request at a time; a limit would let busy servers delay others.
        connector=checked_connector(destinations, limit=0, limit_per_host=0),
        timeout=aiohttp.ClientTimeout(total=None),
        headers={
            "User-Agent": "trunkline",
            "Accept": accept,
            # A compressed body may expand without limit.
            "Accept-Encoding": "identity",
        },
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
        trust_env=False,
    )


async def _refusal(response: aiohttp.ClientResponse, sent: Mapping[str, str]) -> Reply:
    """Read the beginning of an answer that is no success, for a moment: what follows must not wait for it."""
    body, is_whole = b"", False
    try:
        async with asyncio.timeout(_REFUSAL_S):
            while not is_whole and len(body) < MAX_REFUSAL_BYTES:
                chunk = await response.content.read(MAX_REFUSAL_BYTES - len(body))
                body, is_whole = body + chunk, not chunk
    except (TimeoutError, aiohttp.ClientError, OSError):
        pass
    if not is_whole:
        response.close()
    return Reply(response.content_type, body, response.status, len(body), is_whole, sent)


async def read_bounded(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """
    Read the body of a response.

    Raises:
        NotAnswered: The body is longer than ``limit`` bytes; the connection is closed.
    """
    body = await response.content.read(limit + 1)
    while len(body) <= limit and (more := await response.content.read(limit)):
        body += more
    if len(body) > limit:
        response.close()
        raise NotAnswered("protocol", f"the answer is longer than {limit} bytes", response.status)
    return body


_UNREACHABLE: Final = "the host cannot be reached"
_CLOSED: Final = "the host closed the connection"
_OF_ASYNCIO: Final = ("Connect call failed", "Multiple exceptions")
_CONNECT_PROBLEMS: Final[Mapping[int | None, str]] = {
    errno.ECONNREFUSED: "the host refuses connections at this port",
    errno.ECONNRESET: _CLOSED,
    errno.EPIPE: _CLOSED,
    errno.ETIMEDOUT: "the host does not answer",
    errno.EHOSTUNREACH: _UNREACHABLE,
    errno.ENETUNREACH: _UNREACHABLE,
}


def problem_of(error: Exception) -> str:
    """One-line error text for customers: no URL, whose query may hold a secret, and no text of a library."""
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return _tls_problem(error)
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        unknown = isinstance(error.os_error, socket.gaierror)
        return "the host name does not resolve" if unknown else error.os_error.strerror or _UNREACHABLE
    if isinstance(error, aiohttp.ClientConnectorError):
        return _connect_problem(error.os_error)
    if isinstance(error, OSError):
        return _connect_problem(error)
    if isinstance(error, aiohttp.InvalidURL):
        return "the address cannot be asked"
    # For a response that is not HTTP, the library's text includes the address and much of the data.
    text = error.message if isinstance(error, aiohttp.ClientResponseError) else str(error)
    return text.strip().partition("\n")[0].strip() or type(error).__name__


def _tls_problem(error: Exception) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        error = error.certificate_error
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the certificate of the host is not valid: {error.verify_message}"
    return "TLS cannot be negotiated with the host"


def _connect_problem(error: OSError) -> str:
    if isinstance(error, ConnectionResetError | BrokenPipeError):
        return _CLOSED
    known = _CONNECT_PROBLEMS.get(error.errno)
    if known is not None or error.strerror is None:
        return known or _UNREACHABLE
    # Texts of the checks before a connection are for customers; those of asyncio hold the address.
    return _UNREACHABLE if error.strerror.startswith(_OF_ASYNCIO) else error.strerror


def reason_of(error: Exception) -> RequestProblem:
    """Reason code of a failed request."""
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "dns"
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return "tls"
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientOSError | OSError):
        return "connect"
    return "protocol"
