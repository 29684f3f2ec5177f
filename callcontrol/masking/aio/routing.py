"""Routing of each call to a masked number: by the sessions, then by the customer's webhook."""

import asyncio
import logging
from collections.abc import Callable, Collection, Sequence
from typing import Final

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.calls.aio.context import ActiveCall
from callcontrol.calls.records.journal import CallJournal
from callcontrol.directory.directory import Directory
from callcontrol.egress.aio.http_client import CustomerHttpClient, NotAnswered
from callcontrol.egress.requests import Reply
from callcontrol.egress.url_policy import Destinations
from callcontrol.errors import DomainError
from callcontrol.masking.aio.sessions import MaskingSessionService
from callcontrol.masking.aio.settings import MaskingSettingsService
from callcontrol.masking.routing import (
    MAX_ANSWER_BYTES,
    ROUTING_EVENT,
    TIMEOUT_S,
    InvalidRoutingAnswer,
    RoutingResult,
    read_routing,
    routing_request,
    session_route,
)
from callcontrol.masking.settings import MaskingSettings
from callcontrol.masking.steps.route_by_caller import CallerRouted, RouteCaller
from callcontrol.models import CallRecord, WebhookEvent
from callcontrol.webhooks.aio.exchanges import note_exchange

log: Final = logging.getLogger(__name__)


class MaskedRouter:
    """
    Finds the target of a caller.

    ``numbers`` knows the masked numbers; ``secrets_of`` returns the signing secrets of an account, for
    requests to servers of accounts whose masking webhook has no secret of its own; ``journal`` gets each
    request with its answer.
    """

    def __init__(
        self,
        sessions: MaskingSessionService,
        settings: MaskingSettingsService,
        destinations: Destinations,
        numbers: Directory,
        secrets_of: Callable[[str], Sequence[str]],
        allowed_countries: Collection[str],
        journal: CallJournal,
    ) -> None:
        self._sessions = sessions
        self._settings = settings
        self._numbers = numbers
        self._client = CustomerHttpClient(
            destinations, timeout_s=TIMEOUT_S, max_answer_bytes=MAX_ANSWER_BYTES
        )
        self._secrets_of = secrets_of
        self._allowed_countries = allowed_countries
        self._journal = journal

    async def prepare(self, record: CallRecord) -> None:
        """
        Set the account's masking webhook in the record of a masked call that is about to be recorded.

        Raises:
            ServiceUnavailable: The database does not answer.
        """
        settings = await self._settings.of(record.account_sid)
        record.status_webhook_url = settings.events_to
        record.details = {**(record.details or {}), "subscription_id": settings.subscription_id}

    def perform(self, call: ActiveCall, effect: RouteCaller) -> None:
        """Find the target of a caller; ``CallerRouted`` follows while the call is active."""
        call.mailbox.spawn_helper(self._perform(call, effect))

    async def _perform(self, call: ActiveCall, effect: RouteCaller) -> None:
        found = None
        try:
            found = await self.route(call.record, effect.caller_number, effect.masked_number)
        except DomainError as failure:
            call.mailbox.log.warning("the caller was not routed: %s", failure.message)
        call.mailbox.post(CallerRouted(effect.number, found))

    async def route(self, record: CallRecord, caller: str | None, masked_number: str) -> RoutingResult:
        """
        Find the target of a caller; a caller without a number is in no session.

        A masked number that calls another one is a masked call that loops back, and is not routed: it would
        call the next number, and so on without end.

        Raises:
            ServiceUnavailable: The database does not answer.
        """
        if caller is not None and self._is_masked(caller):
            log.warning(
                "call refused: a masked number calls a masked number", extra={"call_sid": record.call_sid}
            )
            return "unknown"
        account_sid = record.account_sid
        settings = await self._settings.of(account_sid)
        if caller is not None:
            session = await self._sessions.find(account_sid, caller, masked_number)
            if session is not None:
                return session_route(session, caller, record_calls=settings.record_calls)
        if settings.routing_url is None:
            return "unknown"
        return await self._ask(record, settings, settings.routing_url, caller, masked_number)

    def _is_masked(self, number: str) -> bool:
        found = self._numbers.number(number)
        return found is not None and found.binding is not None and found.binding.target == "masking"

    async def close(self) -> None:
        """Close all connections to customers' servers."""
        await self._client.close()

    async def _ask(
        self,
        record: CallRecord,
        settings: MaskingSettings,
        url: str,
        caller: str | None,
        masked_number: str,
    ) -> RoutingResult:
        at = utc_now()
        event = WebhookEvent(
            event_id=new_id(),
            account_sid=record.account_sid,
            event=ROUTING_EVENT,
            url=url,
            body=routing_request(record.call_sid, caller, masked_number, at),
            created_at=at,
            call_sid=record.call_sid,
        )
        own = settings.webhook_secret
        secrets = self._secrets_of(record.account_sid) if own is None else (own,)
        loop = asyncio.get_running_loop()
        began = loop.time()
        outcome: Reply | NotAnswered
        try:
            outcome = await self._client.ask(event, secrets)
        except NotAnswered as failure:
            outcome = failure
        took_ms = round((loop.time() - began) * 1000)
        note_exchange(self._journal, event, secrets, outcome, attempt=1, took_ms=took_ms)
        try:
            if isinstance(outcome, NotAnswered):
                raise outcome
            return read_routing(
                outcome.body,
                caller=caller,
                masked_number=masked_number,
                record_calls=settings.record_calls,
                allowed_countries=self._allowed_countries,
                is_masked=self._is_masked,
            )
        except (NotAnswered, InvalidRoutingAnswer) as problem:
            log.warning(
                "the routing webhook gave no usable answer: %s", problem, extra={"call_sid": record.call_sid}
            )
            return "unknown"
