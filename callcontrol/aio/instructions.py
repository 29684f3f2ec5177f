"""Asking the customer's server what to do with a call, over HTTP: twice at most, within seconds."""

import asyncio
import ssl
import time
from collections.abc import Callable, Coroutine
from typing import Any, Final

import aiohttp

from callcontrol.aio.call_log import CallLog
from callcontrol.aio.destinations import checked_connector
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.effects import AskWebhook
from callcontrol.errors import DomainError
from callcontrol.events import Event, InstructionProblem, InstructionsFailed, InstructionsReceived
from callcontrol.identity import Caller
from callcontrol.instructions import (
    ATTEMPTS,
    MAX_ANSWER_BYTES,
    RETRY_AFTER_S,
    TIMEOUT_S,
    question,
    read_instructions,
)
from callcontrol.interfaces import Destinations
from callcontrol.models import Account, CallRecord, WebhookEvent
from callcontrol.verbs import VerbRules
from callcontrol.webhooks import is_success, query_url, signed_headers

__all__ = ["CallAsker", "InstructionClient", "NotAnswered"]

_MAX_MESSAGE_CHARS: Final = 300


class NotAnswered(Exception):
    """A try that brought no answer: why, in one word and for people."""

    def __init__(self, reason: InstructionProblem, message: str, http_status: int | None = None) -> None:
        super().__init__(message)
        self.reason = reason
        self.message = message[:_MAX_MESSAGE_CHARS]
        self.http_status = http_status


class InstructionClient:
    """
    Asks customers' servers, for all calls of a process; connections are kept for the next question.

    ``rules`` are what the verbs of an answer are checked against, asked for at every answer.
    """

    def __init__(self, destinations: Destinations, rules: Callable[[], VerbRules]) -> None:
        self._destinations = destinations
        self._session: aiohttp.ClientSession | None = None
        self.rules = rules

    async def ask(self, event: WebhookEvent, secret: str) -> tuple[str, bytes]:
        """
        Ask once; returns the media type and the body of the answer.

        Raises:
            NotAnswered: There is none that could be read.
        """
        try:
            async with asyncio.timeout(TIMEOUT_S):
                return await self._ask(event, secret)
        except NotAnswered:
            raise
        except DomainError as refusal:
            raise NotAnswered("connect", refusal.message) from None
        except TimeoutError:
            raise NotAnswered("timeout", f"no answer within {TIMEOUT_S:g} s") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise NotAnswered(_reason_of(error), str(error) or type(error).__name__) from None

    async def _ask(self, event: WebhookEvent, secret: str) -> tuple[str, bytes]:
        self._destinations.check_url(event.url, schemes=("http", "https"))
        get = event.method == "GET"
        async with self._opened().request(
            event.method,
            query_url(event) if get else event.url,
            data=None if get else event.body,
            headers=signed_headers(event, (secret,), int(time.time())),
            allow_redirects=False,
        ) as response:
            if not is_success(response.status):
                raise NotAnswered("http_status", f"answered {response.status}", response.status)
            body = await response.content.read(MAX_ANSWER_BYTES + 1)
            while len(body) <= MAX_ANSWER_BYTES and (more := await response.content.read(MAX_ANSWER_BYTES)):
                body += more
            if len(body) > MAX_ANSWER_BYTES:
                response.close()
                message = f"the answer is longer than {MAX_ANSWER_BYTES} bytes"
                raise NotAnswered("protocol", message, response.status)
            return response.content_type, body

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # Every call asks one question at a time; a limit would let busy servers hold up the others.
                connector=checked_connector(self._destinations, limit=0, limit_per_host=0),
                timeout=aiohttp.ClientTimeout(total=None),
                headers={
                    "User-Agent": "trunkline",
                    "Accept": "application/json",
                    # What is compressed may be without end once it is not.
                    "Accept-Encoding": "identity",
                },
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                trust_env=False,
            )
        return self._session

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None


class CallAsker:
    """The questions of one call: that of its plan, and beside it one that the API wants asked."""

    def __init__(
        self,
        client: InstructionClient,
        record: CallRecord,
        account: Account,
        log: CallLog,
        post: Callable[[Event], None],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ) -> None:
        self.caller: Caller | None = None
        """Who called us, for verbs that pass its number through."""
        self._client = client
        self._record = record
        self._account = account
        self._log = log
        self._post = post
        self._spawn = spawn
        self._asking: dict[int, asyncio.Task[None]] = {}

    def ask(self, effect: AskWebhook) -> None:
        """Ask; ``InstructionsReceived`` or ``InstructionsFailed`` follows unless ``stop`` does."""
        self._asking[effect.number] = self._spawn(self._ask(effect))

    def stop(self, number: int) -> None:
        """Give up a question, if it is being asked."""
        task = self._asking.pop(number, None)
        if task is not None:
            task.cancel()

    def stop_all(self) -> None:
        """Give up whatever is being asked."""
        for number in list(self._asking):
            self.stop(number)

    async def _ask(self, effect: AskWebhook) -> None:
        outcome = await self._outcome(effect)
        self._asking.pop(effect.number, None)
        if isinstance(outcome, InstructionsFailed):
            self._log.warning("no instructions: %s", outcome.message)
        self._post(outcome)

    async def _outcome(self, effect: AskWebhook) -> Event:
        event_id, at = new_id(), utc_now()
        event = WebhookEvent(
            event_id=event_id,
            account_sid=self._account.account_sid,
            event=effect.event,
            url=effect.url,
            body=question(self._record, effect.event, event_id=event_id, at=at),
            created_at=at,
            call_sid=self._record.call_sid,
            method=effect.method,
        )
        for attempt in range(1, ATTEMPTS + 1):
            try:
                media_type, body = await self._client.ask(event, self._account.webhook_secret)
            except NotAnswered as failure:
                problem = failure
            else:
                return self._read(effect, media_type, body, attempt)
            if attempt < ATTEMPTS:
                await asyncio.sleep(RETRY_AFTER_S)
        return InstructionsFailed(
            effect.number, problem.reason, problem.message, problem.http_status, ATTEMPTS
        )

    def _read(self, effect: AskWebhook, media_type: str, body: bytes, attempt: int) -> Event:
        """What an answer means. One that cannot be followed is not asked for again: it would come again."""
        try:
            steps = read_instructions(
                media_type, body, self._client.rules(), self._record, caller=self.caller, url=effect.url
            )
        except DomainError as refusal:
            message = refusal.message[:_MAX_MESSAGE_CHARS]
            return InstructionsFailed(effect.number, "instruction", message, 200, attempt)
        return InstructionsReceived(effect.number, steps)


def _reason_of(error: Exception) -> InstructionProblem:
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        return "dns"
    if isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        return "tls"
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.ClientOSError | OSError):
        return "connect"
    return "protocol"
