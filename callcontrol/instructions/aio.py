"""HTTP requests to the customer's server for instructions: at most two, within seconds."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.calls.aio.context import ActiveCall
from callcontrol.calls.effects.instructions import AskWebhook, StopAsking
from callcontrol.calls.events import Event
from callcontrol.calls.events.instructions import InstructionsFailed, InstructionsReceived
from callcontrol.calls.records.call_form import form_fields
from callcontrol.calls.records.journal import JournalEntry
from callcontrol.egress.aio.http_client import CustomerHttpClient, NotAnswered
from callcontrol.egress.requests import FormRequest, form_request
from callcontrol.egress.url_policy import Destinations
from callcontrol.errors import DomainError
from callcontrol.ids import CallSid
from callcontrol.instructions.instructions import (
    ACCEPT,
    ATTEMPTS,
    MAX_ANSWER_BYTES,
    RETRY_AFTER_S,
    TIMEOUT_S,
    read_instructions,
    request_body,
)
from callcontrol.instructions.verbs import VerbRules, WebhookDefaults
from callcontrol.models import WebhookEvent

_MAX_ERRORS_CHARS: Final = 1000
"""Room for the names of all wrong fields; a request by GET to the fallback has them in its URL."""


class InstructionClient:
    """
    Requests instructions for calls from customers' servers.

    A call has one request for its plan, and beside it one made by the API; the end of the call cancels both.
    ``rules`` are those for the verbs of an answer. ``secrets_of`` returns the signing secrets of an account,
    newest first.
    """

    def __init__(
        self,
        destinations: Destinations,
        rules: VerbRules,
        secrets_of: Callable[[str], Sequence[str]],
    ) -> None:
        self._client = CustomerHttpClient(
            destinations, timeout_s=TIMEOUT_S, max_answer_bytes=MAX_ANSWER_BYTES, accept=ACCEPT
        )
        self._rules = rules
        self._secrets_of = secrets_of
        self._requests: dict[tuple[CallSid, int], asyncio.Task[None]] = {}

    def request(self, call: ActiveCall, effect: AskWebhook) -> None:
        """Send a request; ``InstructionsReceived`` or ``InstructionsFailed`` follows unless stopped."""
        key = call.record.call_sid, effect.number
        task = self._requests[key] = call.mailbox.spawn_helper(self._request(call, effect))
        task.add_done_callback(lambda _: self._requests.pop(key, None))

    def stop(self, call: ActiveCall, effect: StopAsking) -> None:
        """Cancel a request, if it is under way."""
        task = self._requests.get((call.record.call_sid, effect.number))
        if task is not None:
            task.cancel()

    async def close(self) -> None:
        """Close all connections."""
        await self._client.close()

    async def _request(self, call: ActiveCall, effect: AskWebhook) -> None:
        outcome = await self._outcome(call, effect)
        if isinstance(outcome, InstructionsFailed):
            call.mailbox.log.warning("no instructions received: %s", outcome.message)
        call.mailbox.post(outcome)

    async def _outcome(self, call: ActiveCall, effect: AskWebhook) -> Event:
        event_id, at = new_id(), utc_now()
        event = WebhookEvent(
            event_id=event_id,
            account_sid=call.account.account_sid,
            event=effect.event,
            url=effect.url,
            body=request_body(call.record, effect.event, event_id=event_id, at=at, facts=effect.facts),
            created_at=at,
            call_sid=call.record.call_sid,
            method=effect.method,
        )
        secrets = self._secrets_of(call.account.account_sid)
        for attempt in range(1, ATTEMPTS + 1):
            try:
                media_type, body = await self._client.ask(event, secrets, _form(call, effect))
            except NotAnswered as failure:
                problem = failure
                _note(call, effect, attempt, failure.http_status, failure.message)
            else:
                _note(call, effect, attempt, 200, None)
                return self._read(call, effect, media_type, body, attempt)
            if attempt < ATTEMPTS:
                await asyncio.sleep(RETRY_AFTER_S)
        return InstructionsFailed(
            effect.number, problem.reason, problem.message, problem.http_status, ATTEMPTS
        )

    def _read(
        self, call: ActiveCall, effect: AskWebhook, media_type: str, body: bytes, attempt: int
    ) -> Event:
        """The event of an answer. An invalid answer is not requested again, as it would be the same."""
        webhooks = WebhookDefaults(effect.format, effect.fallback)
        try:
            steps = read_instructions(
                media_type,
                body,
                self._rules,
                call.record,
                caller=call.caller,
                url=effect.url,
                webhooks=webhooks,
            )
        except DomainError as refusal:
            message = refusal.message[:_MAX_ERRORS_CHARS]
            return InstructionsFailed(effect.number, "instruction", message, 200, attempt)
        return InstructionsReceived(effect.number, steps)


def _note(
    call: ActiveCall, effect: AskWebhook, attempt: int, status: int | None, problem: str | None
) -> None:
    details = {"url": effect.url, "attempt": attempt, "status": status, "problem": problem}
    entry = JournalEntry(utc_now(), "step", "instructions", details)
    call.context.services.calls.journal.note(call.record.call_sid, entry)


def _form(call: ActiveCall, effect: AskWebhook) -> FormRequest | None:
    """The request as servers of TwiML expect it, None for a request in JSON."""
    if effect.format != "form":
        return None
    fields = form_fields(call.record, effect.facts)
    secret, _ = call.account.stream_secrets(utc_now())
    return form_request(effect.url, effect.method, fields, secret)
