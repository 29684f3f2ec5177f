"""Outbound calls: checks, reserve and record before the first INVITE is sent."""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from callcontrol.agents.agent import VoiceAgent, with_agent
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.applications.application import Application
from callcontrol.applications.call_defaults import applied
from callcontrol.assistant.calls import PRODUCT as ASSISTANT
from callcontrol.assistant.calls import assistant_details
from callcontrol.assistant.sandbox import rates_of
from callcontrol.calls.aio.settings import CallControlSettings, CallServices
from callcontrol.calls.plan import Dial, Plan
from callcontrol.calls.ports import Companion
from callcontrol.calls.records.metrics import CallFigures
from callcontrol.calls.requests import DEFAULT_STATUS_EVENTS, CreateCall, plan_of
from callcontrol.calls.reserve import initial_reserve_paise
from callcontrol.errors import (
    DomainError,
    FieldError,
    Forbidden,
    InsufficientBalance,
    NotFound,
    ServiceUnavailable,
    ValidationFailed,
)
from callcontrol.instructions.verbs import VerbRules
from callcontrol.models import Account, CallRecord
from callcontrol.routing.capacity import Capacity
from callcontrol.routing.party import Party
from callcontrol.routing.router import Router
from callcontrol.routing.targets import Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class CallFacts:
    """
    Contents of a placed call's record beyond its plan.

    ``product`` is the product that placed the call, when that is not the call interface (``otp``, ...), and
    ``details`` are the product's data for it; both decide the form of its events
    (``callcontrol.calls.records.events``).
    """

    tag: str | None = None
    app_sid: str | None = None
    product: str | None = None
    details: Mapping[str, Any] | None = None
    status_webhook_url: str | None = None
    status_webhook_events: Sequence[str] = DEFAULT_STATUS_EVENTS


class Begin(Protocol):
    """Runs a call whose record is durable."""

    def __call__(
        self,
        record: CallRecord,
        plan: Plan,
        account: Account,
        reserve_paise: int,
        attempts: Sequence[Attempt],
    ) -> None:
        """Start the call's task."""


class Originator:
    """Places calls; none while ``is_draining`` returns True. ``begin`` runs each."""

    def __init__(
        self,
        settings: CallControlSettings,
        services: CallServices,
        router: Router,
        capacity: Capacity,
        figures: CallFigures,
        verb_rules: Callable[[], VerbRules],
        is_draining: Callable[[], bool],
        begin: Begin,
    ) -> None:
        self._settings = settings
        self._services = services
        self._router = router
        self._capacity = capacity
        self._figures = figures
        self._verb_rules = verb_rules
        self._is_draining = is_draining
        self._begin = begin

    async def create_call(self, account_sid: str, request: CreateCall) -> CallRecord:
        """Place the call of a request; see ``CallControl.create_call``."""
        if request.app_sid is not None:
            request = applied(request, await self._application(account_sid, request.app_sid))
        facts = CallFacts()
        if request.agent_id is not None:
            agent = await self._agent(account_sid, request.agent_id)
            facts = CallFacts(product=ASSISTANT, details=_details(agent, request))
            request = with_agent(request, agent)
        plan = plan_of(request, self._verb_rules())
        facts = replace(
            facts,
            tag=request.tag,
            app_sid=request.app_sid,
            status_webhook_url=request.status_webhook_url,
            status_webhook_events=tuple(request.status_webhook_events),
        )
        # Verbs are counted as in the request, which does not include the digits to send at once.
        return await self.place(account_sid, plan, facts, first_verb=0 if request.send_digits is None else 1)

    async def place(
        self,
        account_sid: str,
        plan: Plan,
        facts: CallFacts,
        *,
        first_verb: int = 0,
        companion: Companion | None = None,
    ) -> CallRecord:
        """
        Check the numbers of a call, reserve its money, record it with its companion and start to dial.

        Raises:
            DomainError: As ``CallControl.create_call`` says; nothing was recorded.
        """
        if self._is_draining():
            self._figures.refused["draining"] += 1
            raise ServiceUnavailable("The server is shutting down; try again in a moment.", retry_after_s=5)
        self._services.gate.check()
        assert plan.dial is not None
        number = await self._services.numbers.owned(account_sid, plan.dial.caller_id)
        account = await self._account(account_sid)
        now = asyncio.get_running_loop().time()
        attempts = await self._attempts(account_sid, plan, now)
        self._check_second_parties(account_sid, plan, first_verb, now)
        record = CallRecord(
            call_sid=new_id(),
            account_sid=account_sid,
            direction="outbound",
            from_=plan.dial.caller_id,
            to=str(plan.dial.target),
            created_at=utc_now(),
            phone_number_id=number.phone_number_id,
            app_sid=facts.app_sid,
            tag=facts.tag,
            status_webhook_url=facts.status_webhook_url,
            status_webhook_events=tuple(facts.status_webhook_events),
            product=facts.product,
            details=facts.details,
        )
        self._capacity.enter(account, now)
        reserve_paise = initial_reserve_paise(plan, rates_of(record, self._settings.rates))
        try:
            await self._services.calls.insert(record, reserve_paise=reserve_paise, companion=companion)
        except BaseException as failure:
            self._capacity.leave(account_sid)
            if isinstance(failure, InsufficientBalance):
                self._figures.wallet_failures["reserve"] += 1
            elif isinstance(failure, ServiceUnavailable):
                self._figures.refused["not_recorded"] += 1
            raise
        self._begin(record, plan, account, reserve_paise, attempts)
        return record

    async def check_transfer(self, account_sid: str, party: Party) -> None:
        """
        Check a transfer before it starts, so that a refusal is returned at once.

        Raises:
            DomainError: The party may not be called with that caller-ID, or has no route now.
        """
        await self._services.numbers.owned(account_sid, party.caller_id)
        try:
            self._router.attempts(account_sid, party, asyncio.get_running_loop().time())
        except ValidationFailed as refusal:
            raise ValidationFailed(
                [FieldError("transfer.to", error.message) for error in refusal.errors]
            ) from None

    async def _application(self, account_sid: str, app_sid: str) -> Application:
        found = self._services.routes.application(app_sid)
        if found is None:
            await self._services.refresh()
            found = self._services.routes.application(app_sid)
        if found is None:
            raise ValidationFailed.of("app_sid", "there is no such application")
        if found.account_sid != account_sid:
            raise Forbidden("The application belongs to another account.")
        return found

    async def _agent(self, account_sid: str, agent_id: str) -> VoiceAgent:
        found = self._services.routes.agent(agent_id.lower())
        if found is None:
            await self._services.refresh()
            found = self._services.routes.agent(agent_id.lower())
        if found is None:
            raise ValidationFailed.of("agent_id", "there is no such agent")
        if found.account_sid != account_sid:
            raise Forbidden("The agent belongs to another account.")
        return found

    async def _attempts(self, account_sid: str, plan: Plan, now: float) -> list[Attempt]:
        assert plan.dial is not None
        try:
            return self._router.attempts(account_sid, plan.dial, now)
        except DomainError:
            await self._services.refresh()
            return self._router.attempts(account_sid, plan.dial, now)

    def _check_second_parties(self, account_sid: str, plan: Plan, first_verb: int, now: float) -> None:
        """Check the targets of dial verbs now, because a later refusal would have no receiver."""
        for index, step in enumerate(plan.steps):
            if not isinstance(step, Dial):
                continue
            try:
                self._router.attempts(account_sid, step.party, now)
            except ValidationFailed as refusal:
                path = f"verbs[{index - first_verb}].target[0].sip_uri"
                raise ValidationFailed([FieldError(path, item.message) for item in refusal.errors]) from None
            except ServiceUnavailable:
                pass  # there may be a gateway when the verb is reached

    async def _account(self, account_sid: str) -> Account:
        account = self._services.routes.account(account_sid)
        if account is None:
            await self._services.refresh()
            account = self._services.routes.account(account_sid)
        if account is None:
            raise NotFound("There is no such account.")
        return account


def _details(agent: VoiceAgent, request: CreateCall) -> dict[str, Any]:
    """Return the details of the agent for the record of its call."""
    context = request.stream_fields.get("custom_parameters")
    return assistant_details(
        agent.agent_id,
        language=agent.language,
        context=context if isinstance(context, Mapping) else None,
        sandbox_carrier=request.carrier_sid if request.sandbox else None,
    )
