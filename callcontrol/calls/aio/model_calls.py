"""Request for a session to its vendor, for those whose WebSocket has a URL of each session."""

import asyncio
import errno
from dataclasses import replace
from http import HTTPStatus
from typing import Final
from urllib.parse import urlsplit

import aiohttp

from callcontrol.egress.aio.http_client import (
    NotAnswered,
    customer_session,
    problem_of,
    read_bounded,
    reason_of,
)
from callcontrol.egress.requests import is_success
from callcontrol.egress.url_policy import SOCKET_SCHEMES, WEB_SCHEMES, Destinations
from callcontrol.errors import DomainError
from media.aio.agent_settings import AgentStreamSettings
from media.streams import CommandError, ModelSession, StreamConnectError, StreamSetup
from media.streams.model import ConnectFailure
from media.streams.session_requests import SessionRequest, read_refusal, session_request
from media.streams.speech_models import without_key

# The answer repeats the instructions and the tools.
_MAX_ANSWER_BYTES: Final = 512 * 1024
_UNREACHED: Final = frozenset({"dns", "connect", "tls"})


async def created(
    setup: StreamSetup, session: ModelSession, destinations: Destinations, settings: AgentStreamSettings
) -> tuple[StreamSetup, AgentStreamSettings]:
    """
    Ask for a session; returns the setup of its WebSocket, and the settings with the time that is left for it.

    Both are as they were for a vendor that wants no request.
    Failures of connecting, 429 and 5xx answers are retried, as for the opening of a socket: a session that
    nobody joins ends by itself.

    Raises:
        StreamConnectError: There is no session. It is ``rejected`` where the account's quota is used up.
    """
    try:
        request = session_request(session, setup.url)
    except CommandError as fault:
        raise StreamConnectError("protocol", attempts=1, detail=fault.message) from None
    if request is None:
        return setup, settings
    loop = asyncio.get_running_loop()
    started, dial = loop.time(), settings.dial
    deadline = started + dial.budget_s
    failure = StreamConnectError("timeout", detail="no answer within the budget")
    async with customer_session(destinations, "application/json") as http:
        for attempt, offset_s in enumerate(dial.offsets_s, 1):
            await asyncio.sleep(min(started + offset_s, deadline) - loop.time())
            try:
                async with asyncio.timeout_at(deadline):
                    url = await _ask(http, request, session.api_key, destinations)
            except StreamConnectError as error:
                failure = error
            except TimeoutError:
                failure = StreamConnectError("timeout", detail="no answer within the budget")
            else:
                left = replace(dial, budget_s=max(deadline - loop.time(), 0.1))
                return replace(setup, url=url), replace(settings, dial=left)
            failure.attempts = attempt
            if not _may_try_again(failure) or loop.time() >= deadline:
                break
    raise failure


async def _ask(
    http: aiohttp.ClientSession, request: SessionRequest, key: str, destinations: Destinations
) -> str:
    try:
        destinations.check_url(request.url, schemes=WEB_SCHEMES)
        async with http.request(
            "GET" if request.body is None else "POST",
            request.url,
            data=request.body,
            headers=request.headers,
            allow_redirects=False,
        ) as response:
            body = await read_bounded(response, _MAX_ANSWER_BYTES)
            if not is_success(response.status):
                raise _refused(response.status, body, key)
        joined = request.read(body)
        # Its path and query are a secret that is used once, and what is checked is kept.
        origin = urlsplit(joined)._replace(path="/", query="")
        destinations.check_url(origin.geturl(), schemes=SOCKET_SCHEMES)
    except DomainError as refusal:
        raise StreamConnectError("forbidden", detail=refusal.message) from None
    except (CommandError, NotAnswered) as problem:
        raise StreamConnectError("protocol", detail=problem.message) from None
    except TimeoutError:
        raise
    except (aiohttp.ClientError, OSError, ValueError) as error:
        raise StreamConnectError(_reason_of(error), detail=problem_of(error)) from None
    return joined


def _refused(status: int, body: bytes, key: str) -> StreamConnectError:
    error, is_quota = read_refusal(status, body)
    error = replace(error, message=without_key(error.message, key))
    return StreamConnectError("rejected" if is_quota else "http_status", status, error=error)


def _reason_of(error: Exception) -> ConnectFailure:
    # What the check of an address refuses comes as an error of the system; see `CheckedResolver`.
    is_forbidden = getattr(getattr(error, "os_error", error), "errno", None) == errno.EACCES
    return "forbidden" if is_forbidden else reason_of(error)


def _may_try_again(failure: StreamConnectError) -> bool:
    """Return True as for the opening of a socket, but not after a timeout: it may have been received."""
    status = failure.http_status
    if status is not None:
        return status >= 500 or status == HTTPStatus.TOO_MANY_REQUESTS
    return failure.reason in _UNREACHED
