"""HTTP client for one webhook delivery attempt."""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import aiohttp

from callcontrol.aio.tokens import unix_time_s, utc_now
from callcontrol.egress.aio.connector import checked_connector
from callcontrol.egress.aio.http_client import problem_of
from callcontrol.egress.requests import is_success, query_url, signed_headers
from callcontrol.egress.url_policy import WEB_SCHEMES, Destinations
from callcontrol.errors import DomainError
from callcontrol.models import WebhookEvent
from callcontrol.webhooks.attempts import MAX_BODY_BYTES, Body, kept_body, margin_bytes, withheld_values
from callcontrol.webhooks.retries import retry_after_s

log = logging.getLogger(__name__)

_MAX_ANSWER_BYTES: Final = 64 * 1024
_DRAIN_S: Final = 1.0
_MAX_PROBLEM_CHARS: Final = 300


@dataclass(frozen=True, slots=True)
class Answer:
    """
    Result of a delivery attempt.

    Attributes:
        status: HTTP status; 0 without a response.
        problem: Error text; None if the receiver accepted the event.
        retry_after_s: Retry-After of the receiver, in seconds.
        unanswered: True if the receiver could not be reached or did not answer.
        took_s: Time to the status line or the failure; None if no request was made.
        body: Beginning of the response's body.
    """

    status: int = 0
    problem: str | None = None
    retry_after_s: float | None = None
    unanswered: bool = False
    took_s: float | None = None
    body: Body = field(default=Body(), repr=False)


class WebhookClient:
    """
    Sends webhooks to permitted addresses; follows no redirects and stores no cookie.

    Args:
        destinations: Decides which destinations are permitted.
        timeout_s: Time limit for a response, in seconds, name resolution included.
    """

    def __init__(self, destinations: Destinations, timeout_s: float) -> None:
        self._destinations = destinations
        self._timeout_s = timeout_s
        # The outbox limits concurrent requests; a limit here would let busy hosts delay idle ones.
        self._session = aiohttp.ClientSession(
            connector=checked_connector(destinations, limit=0, limit_per_host=0),
            timeout=aiohttp.ClientTimeout(total=timeout_s),
            # A compressed body could not be shown.
            headers={"User-Agent": "trunkline", "Accept-Encoding": "identity"},
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            trust_env=False,
        )

    async def send(
        self, event: WebhookEvent, secrets: Sequence[str], form_secret: str | None = None
    ) -> Answer:
        """
        Make one attempt, signed with the secrets; every error is reported in the answer.

        A form is signed with ``form_secret`` as well.
        """
        loop = asyncio.get_running_loop()
        began = loop.time()
        answer = await self._attempt(event, secrets, form_secret)
        # One that was answered has its time up to the status line; one that was not sent has none.
        return replace(answer, took_s=loop.time() - began) if answer.unanswered else answer

    async def _attempt(self, event: WebhookEvent, secrets: Sequence[str], form_secret: str | None) -> Answer:
        try:
            return await self._send(event, secrets, form_secret)
        except DomainError as refusal:
            return Answer(problem=refusal.message)
        except TimeoutError:
            return Answer(problem=f"no answer within {self._timeout_s:g} s", unanswered=True)
        except (aiohttp.ClientError, OSError) as error:
            return Answer(problem=problem_of(error)[:_MAX_PROBLEM_CHARS], unanswered=True)
        except ValueError as error:
            return Answer(problem=str(error)[:_MAX_PROBLEM_CHARS])
        except Exception:
            # A defect with one event counts as a failed attempt; the deliveries of others go on.
            log.exception("a webhook could not be sent")
            return Answer(problem="the server failed; see its log")

    async def _send(self, event: WebhookEvent, secrets: Sequence[str], form_secret: str | None) -> Answer:
        self._destinations.check_url(event.url, schemes=WEB_SCHEMES)
        headers = signed_headers(event, secrets, unix_time_s(), form_secret)
        get = event.method == "GET"
        loop = asyncio.get_running_loop()
        began = loop.time()
        async with self._session.request(
            event.method,
            query_url(event) if get else event.url,
            data=None if get else event.body,
            headers=headers,
            allow_redirects=False,
        ) as response:
            took_s = loop.time() - began
            body = await _read(response, headers, (*secrets, form_secret))
            if is_success(response.status):
                return Answer(response.status, took_s=took_s, body=body)
            wait_s = retry_after_s(
                response.headers.get("Retry-After"), response.headers.get("Date"), utc_now()
            )
            problem = f"answered {response.status}"
            return Answer(response.status, problem, wait_s, took_s=took_s, body=body)

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()


async def _read(
    response: aiohttp.ClientResponse, sent: Mapping[str, str], secrets: Sequence[str | None]
) -> Body:
    """
    Read a short body, so that its connection can be reused, and return what is kept of it.

    It must not repeat the secrets of the request, or the signatures among the header fields that were sent.

    A body that is long, slow or broken costs the connection.
    """
    if response.content.at_eof():
        return Body()
    begin, length, is_whole = bytearray(), 0, False
    withheld = withheld_values(sent, secrets)
    most = MAX_BODY_BYTES + margin_bytes(withheld)
    try:
        async with asyncio.timeout(_DRAIN_S):
            while not is_whole and length < _MAX_ANSWER_BYTES:
                chunk = await response.content.read(_MAX_ANSWER_BYTES - length)
                is_whole = not chunk
                length += len(chunk)
                begin += chunk[: most - len(begin)]
    except (TimeoutError, aiohttp.ClientError, OSError):
        response.close()
    return kept_body(bytes(begin), length, withheld, is_whole=is_whole)
