"""HTTP requests to the customer's server for instructions: at most two, within seconds."""

import asyncio
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Final

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.calls.aio.context import ActiveCall
from callcontrol.calls.effects.instructions import AskWebhook, StopAsking
from callcontrol.calls.events import Event
from callcontrol.calls.events.instructions import InstructionsFailed, InstructionsReceived
from callcontrol.calls.plan import Step
from callcontrol.calls.records.call_form import form_fields
from callcontrol.calls.records.call_info import info_body, request_info
from callcontrol.egress.aio.http_client import CustomerHttpClient, NotAnswered
from callcontrol.egress.requests import FormRequest, Reply, form_request
from callcontrol.egress.url_policy import Destinations
from callcontrol.errors import DomainError
from callcontrol.ids import CallSid
from callcontrol.instructions.instructions import (
    ACCEPT,
    ATTEMPTS,
    JSON,
    MAX_ANSWER_BYTES,
    RETRY_AFTER_S,
    TIMEOUT_S,
    read_instructions,
    request_body,
)
from callcontrol.instructions.jambonz.aio import JambonzSessions
from callcontrol.instructions.verbs import VerbRules, WebhookDefaults
from callcontrol.instructions.verbs.values import is_session
from callcontrol.models import WebhookEvent
from callcontrol.webhooks.aio.exchanges import note_exchange

_FIRST_EVENTS: Final = ("call.incoming", "call.answered")
"""Reasons of the first request of a call."""

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
        self._sessions = JambonzSessions(
            destinations, self._commanded, timeout_s=TIMEOUT_S, max_bytes=MAX_ANSWER_BYTES
        )
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
        await self._sessions.close()
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
            body=_body(call, effect, event_id, at),
            created_at=at,
            call_sid=call.record.call_sid,
            method=effect.method,
        )
        secrets = self._secrets_of(call.account.account_sid)
        loop = asyncio.get_running_loop()
        for attempt in range(1, ATTEMPTS + 1):
            form, began = _form(call, effect), loop.time()
            outcome: Reply | NotAnswered
            try:
                if is_session(effect.url):
                    verbs = await self._sessions.ask(call, effect, event, secrets)
                    outcome = Reply(JSON, verbs, length_bytes=len(verbs))
                else:
                    outcome = await self._client.ask(event, secrets, form)
            except NotAnswered as failure:
                outcome = problem = failure
            took_ms = round((loop.time() - began) * 1000)
            journal = call.context.services.calls.journal
            note_exchange(journal, event, secrets, outcome, attempt=attempt, took_ms=took_ms, form=form)
            if isinstance(outcome, Reply):
                return self._read(call, effect, outcome.media_type, outcome.body, attempt)
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
            steps = self._steps(call, media_type, body, effect.url, webhooks)
        except DomainError as refusal:
            message = refusal.message[:_MAX_ERRORS_CHARS]
            if is_session(effect.url):
                self._sessions.report(call, message)
            return InstructionsFailed(effect.number, "instruction", message, 200, attempt)
        return InstructionsReceived(effect.number, steps)

    def _commanded(self, call: ActiveCall, body: bytes, url: str) -> list[Step]:
        """The steps of verbs that an application orders without being asked."""
        return self._steps(call, JSON, body, url, WebhookDefaults("jambonz"))

    def _steps(
        self, call: ActiveCall, media_type: str, body: bytes, url: str, webhooks: WebhookDefaults
    ) -> list[Step]:
        return read_instructions(
            media_type, body, self._rules, call.record, caller=call.caller, url=url, webhooks=webhooks
        )


def _body(call: ActiveCall, effect: AskWebhook, event_id: str, at: datetime) -> bytes:
    """The body of a request in JSON, in our form or in that of jambonz."""
    if effect.format != "jambonz":
        return request_body(call.record, effect.event, event_id=event_id, at=at, facts=effect.facts)
    name = call.caller.name if call.caller is not None else None
    is_new = effect.event in _FIRST_EVENTS
    return info_body(request_info(call.record, effect.facts, caller_name=name, is_new=is_new))


def _form(call: ActiveCall, effect: AskWebhook) -> FormRequest | None:
    """The request as servers of TwiML expect it, None for a request in JSON."""
    if effect.format != "form":
        return None
    fields = form_fields(call.record, effect.facts)
    secret, _ = call.account.stream_secrets(utc_now())
    return form_request(effect.url, effect.method, fields, secret)
