"""HTTP requests to the customer's server for instructions: at most two, within seconds."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.calls.aio.mailbox import CallLogger
from callcontrol.calls.effects.instructions import AskWebhook, RouteCaller
from callcontrol.calls.events import Event
from callcontrol.calls.events.instructions import CallerRouted, InstructionsFailed, InstructionsReceived
from callcontrol.calls.ports import MaskedRoutes
from callcontrol.egress.aio.http_client import MAX_MESSAGE_CHARS, CustomerHttpClient, NotAnswered
from callcontrol.egress.requests import FormRequest
from callcontrol.egress.url_policy import Destinations
from callcontrol.errors import DomainError
from callcontrol.instructions.instructions import (
    ACCEPT,
    ATTEMPTS,
    MAX_ANSWER_BYTES,
    RETRY_AFTER_S,
    TIMEOUT_S,
    read_instructions,
    request_body,
)
from callcontrol.instructions.twilio_request import form_fields, form_request
from callcontrol.instructions.verbs import VerbRules, WebhookDefaults
from callcontrol.models import Account, CallRecord, WebhookEvent
from callcontrol.trunks.inbound_invite import Caller

__all__ = ["InstructionClient", "InstructionRequests"]


class InstructionClient:
    """
    Requests instructions for calls from customers' servers.

    ``rules`` are those for the verbs of an answer, ``http`` sends the requests.
    """

    def __init__(self, destinations: Destinations, rules: VerbRules) -> None:
        self.http = CustomerHttpClient(
            destinations, timeout_s=TIMEOUT_S, max_answer_bytes=MAX_ANSWER_BYTES, accept=ACCEPT
        )
        self.rules = rules

    def for_call(
        self,
        record: CallRecord,
        account: Account,
        log: CallLogger,
        post: Callable[[Event], None],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        routes: MaskedRoutes | None = None,
    ) -> "InstructionRequests":
        """Make the requests of one call, whose outcomes go to ``post``."""
        return InstructionRequests(self, record, account, log, post, spawn, routes)

    async def close(self) -> None:
        """Close all connections."""
        await self.http.close()


class InstructionRequests:
    """The requests of one call: that of its plan, and beside it one made by the API."""

    def __init__(
        self,
        client: InstructionClient,
        record: CallRecord,
        account: Account,
        log: CallLogger,
        post: Callable[[Event], None],
        spawn: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
        routes: MaskedRoutes | None = None,
    ) -> None:
        self.caller: Caller | None = None
        """The caller of an inbound call, for verbs that pass its number through."""
        self._client = client
        self._record = record
        self._account = account
        self._log = log
        self._post = post
        self._spawn = spawn
        self._routes = routes
        self._requests: dict[int, asyncio.Task[None]] = {}

    def ask(self, effect: AskWebhook) -> None:
        """Send a request; ``InstructionsReceived`` or ``InstructionsFailed`` follows unless stopped."""
        self._requests[effect.number] = self._spawn(self._ask(effect))

    def route(self, effect: RouteCaller) -> None:
        """Find the target of the caller of a masked number; ``CallerRouted`` follows, as for ``ask``."""
        self._requests[effect.number] = self._spawn(self._route(effect))

    def stop(self, number: int) -> None:
        """Cancel a request, if it is under way."""
        task = self._requests.pop(number, None)
        if task is not None:
            task.cancel()

    def stop_all(self) -> None:
        """Cancel all requests under way."""
        for number in list(self._requests):
            self.stop(number)

    async def _route(self, effect: RouteCaller) -> None:
        routes, found = self._routes, None
        try:
            # A server without sessions knows no caller.
            found = (
                await routes.route(self._record, effect.caller_number, effect.masked_number)
                if routes is not None
                else "unknown"
            )
        except DomainError as failure:
            self._log.warning("the caller was not routed: %s", failure.message)
        self._requests.pop(effect.number, None)
        self._post(CallerRouted(effect.number, found))

    async def _ask(self, effect: AskWebhook) -> None:
        outcome = await self._outcome(effect)
        self._requests.pop(effect.number, None)
        if isinstance(outcome, InstructionsFailed):
            self._log.warning("no instructions received: %s", outcome.message)
        self._post(outcome)

    async def _outcome(self, effect: AskWebhook) -> Event:
        event_id, at = new_id(), utc_now()
        event = WebhookEvent(
            event_id=event_id,
            account_sid=self._account.account_sid,
            event=effect.event,
            url=effect.url,
            body=request_body(self._record, effect.event, event_id=event_id, at=at, facts=effect.facts),
            created_at=at,
            call_sid=self._record.call_sid,
            method=effect.method,
        )
        secret = self._account.webhook_secret
        for attempt in range(1, ATTEMPTS + 1):
            try:
                media_type, body = await self._client.http.ask(event, (secret,), self._form(effect))
            except NotAnswered as failure:
                problem = failure
            else:
                return self._read(effect, media_type, body, attempt)
            if attempt < ATTEMPTS:
                await asyncio.sleep(RETRY_AFTER_S)
        return InstructionsFailed(
            effect.number, problem.reason, problem.message, problem.http_status, ATTEMPTS
        )

    def _form(self, effect: AskWebhook) -> FormRequest | None:
        """The request as servers of TwiML expect it, None for a request in JSON."""
        if effect.format != "form":
            return None
        fields = form_fields(self._record, effect.facts)
        secret, _ = self._account.stream_secrets(utc_now())
        return form_request(effect.url, effect.method, fields, secret)

    def _read(self, effect: AskWebhook, media_type: str, body: bytes, attempt: int) -> Event:
        """The event of an answer. An invalid answer is not requested again, as it would be the same."""
        webhooks = WebhookDefaults(effect.format, effect.fallback)
        try:
            steps = read_instructions(
                media_type,
                body,
                self._client.rules,
                self._record,
                caller=self.caller,
                url=effect.url,
                webhooks=webhooks,
            )
        except DomainError as refusal:
            message = refusal.message[:MAX_MESSAGE_CHARS]
            return InstructionsFailed(effect.number, "instruction", message, 200, attempt)
        return InstructionsReceived(effect.number, steps)
