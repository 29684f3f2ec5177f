"""Outbound calls: checks, reserve and record before the first INVITE is sent."""

import asyncio
import contextlib
from collections.abc import Callable, Sequence

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.calls.aio.context import CallControlSettings, CallServices
from callcontrol.calls.plan import Dial, Plan
from callcontrol.calls.product import CallAttachment
from callcontrol.calls.records.metrics import CallMetrics
from callcontrol.calls.requests import CallMetadata
from callcontrol.errors import (
    DomainError,
    InsufficientBalance,
    NotFound,
    ServiceUnavailable,
    ValidationFailed,
)
from callcontrol.ids import stream_sid
from callcontrol.models import Account, CallRecord
from callcontrol.models.parties import Party, PhoneTarget, RouteAttempt
from callcontrol.routing.capacity import Capacity
from callcontrol.routing.router import Router
from callcontrol.trunks.places import Limits, choices_of

Begin = Callable[[CallRecord, Plan, Account, int, Sequence[RouteAttempt], Limits], None]
"""
Runs a call whose record is durable, with its reserve in paise and the routes to its party.

The last argument is the limits of the first route, if a place there was taken with the record.
"""


class Originator:
    """Places calls; none while ``is_draining`` returns True. ``begin`` runs each."""

    def __init__(
        self,
        settings: CallControlSettings,
        services: CallServices,
        router: Router,
        capacity: Capacity,
        metrics: CallMetrics,
        is_draining: Callable[[], bool],
        begin: Begin,
    ) -> None:
        self._settings = settings
        self._services = services
        self._router = router
        self._capacity = capacity
        self._metrics = metrics
        self._is_draining = is_draining
        self._begin = begin

    async def place(
        self,
        account_sid: str,
        plan: Plan,
        metadata: CallMetadata,
        *,
        first_verb: int = 0,
        attachment: CallAttachment | None = None,
    ) -> CallRecord:
        """
        Check the numbers of a call, reserve its money, record it with its attachment and start to dial.

        Raises:
            DomainError: As ``CallControl.create_call`` says; nothing was recorded.
        """
        if self._is_draining():
            self._metrics.refused["draining"] += 1
            raise ServiceUnavailable("The server is shutting down; try again in a moment.", retry_after_s=5)
        self._services.gate.check()
        assert plan.dial is not None
        number = await self._services.numbers.owned(account_sid, plan.dial.caller_id)
        account = await self._account(account_sid)
        now = asyncio.get_running_loop().time()
        attempts = await self._attempts(account_sid, plan.dial, now)
        await self._check_second_parties(account_sid, plan, first_verb)
        record = CallRecord(
            call_sid=new_id(),
            account_sid=account_sid,
            direction="outbound",
            from_=plan.dial.caller_id,
            to=str(plan.dial.target),
            created_at=utc_now(),
            phone_number_id=number.phone_number_id,
            app_sid=metadata.app_sid,
            tag=metadata.tag,
            status_webhook_url=metadata.status_webhook_url,
            status_webhook_events=tuple(metadata.status_webhook_events),
            product=metadata.product,
            details=metadata.details,
        )
        if plan.first_stream is not None:
            protocol = account.stream_protocol or self._settings.stream_protocol
            record.stream = plan.first_stream.pending(stream_sid(record.call_sid, 1), protocol)
        self._capacity.enter(account, now)
        rates = self._services.features.products.of(record).rates(record, self._settings.rates)
        reserve_paise = plan.reserve_paise(rates)
        choices = self._choices(attempts)
        try:
            choice = await self._services.calls.insert(
                record, reserve_paise=reserve_paise, attachment=attachment, limited=True, choices=choices
            )
        except BaseException as failure:
            self._capacity.leave(account_sid)
            self._note(failure)
            raise
        placed = choices[choice] if choices else ()
        self._begin(record, plan, account, reserve_paise, attempts[choice:], placed)
        return record

    def _note(self, failure: BaseException) -> None:
        """Count a call that was not placed."""
        if isinstance(failure, DomainError) and self._capacity.note(failure):
            return
        if isinstance(failure, InsufficientBalance):
            self._metrics.wallet_failures["reserve"] += 1
        elif isinstance(failure, ServiceUnavailable):
            self._metrics.refused["not_recorded"] += 1

    def _choices(self, attempts: Sequence[RouteAttempt]) -> Sequence[Limits]:
        """Limits that are counted over all servers; see ``choices_of``."""
        return () if self._services.places is None else choices_of(attempts)

    async def check_route(self, account_sid: str, party: Party, field: str) -> None:
        """
        Check that a party may be called and has a route now; nothing is reserved or recorded.

        ``field`` names the party in a refusal.

        Raises:
            DomainError: As ``Router.attempts`` says.
        """
        attempts = await self._attempts_for(account_sid, party, field)
        if self._services.places is not None:
            await self._services.places.check(choices_of(attempts))

    async def check_transfer(self, account_sid: str, party: Party) -> None:
        """
        Check a transfer before it starts, so that a refusal is returned at once.

        Raises:
            DomainError: The party may not be called with that caller-ID, or has no route now.
        """
        await self._services.numbers.owned(account_sid, party.caller_id)
        await self.check_route(account_sid, party, "transfer.to")

    async def _attempts_for(self, account_sid: str, party: Party, field: str) -> list[RouteAttempt]:
        try:
            return await self._attempts(account_sid, party, asyncio.get_running_loop().time())
        except ValidationFailed as refusal:
            raise refusal.renamed(lambda _: field) from None

    async def _attempts(self, account_sid: str, party: Party, now: float) -> list[RouteAttempt]:
        try:
            return self._router.attempts(account_sid, party, now)
        except DomainError:
            await self._services.refresh()
            return self._router.attempts(account_sid, party, now)

    async def _check_second_parties(self, account_sid: str, plan: Plan, first_verb: int) -> None:
        """Check the targets of dial verbs now, because a later refusal would have no receiver."""
        for index, step in enumerate(plan.steps):
            if not isinstance(step, Dial):
                continue
            key = "number" if isinstance(step.party.target, PhoneTarget) else "sip_uri"
            # A gateway that is at its limit now may be free when the verb is reached.
            with contextlib.suppress(ServiceUnavailable):
                field = f"verbs[{index - first_verb}].target[0].{key}"
                await self._attempts_for(account_sid, step.party, field)

    async def _account(self, account_sid: str) -> Account:
        account = self._services.routes.account(account_sid)
        if account is None:
            await self._services.refresh()
            account = self._services.routes.account(account_sid)
        if account is None:
            raise NotFound("There is no such account.")
        return account
