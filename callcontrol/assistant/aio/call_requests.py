"""Resolution of requests to place a call: their application, their voice agent, and their plan."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from callcontrol.agents.agent import with_agent
from callcontrol.applications.call_defaults import applied
from callcontrol.assistant.calls import PRODUCT, assistant_details
from callcontrol.calls.plan import Plan, Step, WebhookFormat
from callcontrol.calls.records.call_form import STATUS_FORMAT
from callcontrol.calls.records.call_info import CUSTOMER_DATA
from callcontrol.calls.requests import DEFAULT_STATUS_EVENTS, CallMetadata, CreateCall
from callcontrol.directory.directory import Directory
from callcontrol.errors import Forbidden, ValidationFailed
from callcontrol.instructions.call_plan import plan_of
from callcontrol.instructions.verbs import VerbRules, VerbValues, WebhookDefaults, read_verbs
from callcontrol.models import Application, CallRecord, VoiceAgent


class CallRequests:
    """
    Plans requests to place a call.

    ``refresh`` updates the directory when an application or an agent is missing.
    """

    def __init__(self, routes: Directory, refresh: Callable[[], Awaitable[None]], rules: VerbRules) -> None:
        self._routes = routes
        self._refresh = refresh
        self._rules = rules

    async def plan(self, account_sid: str, request: CreateCall) -> tuple[Plan, CallMetadata]:
        """
        Return the plan of a request, and the contents of its call's record.

        Raises:
            ValidationFailed: Values are wrong; all of them are named.
            Forbidden: A number may not be dialled, or the agent or application is another account's.
        """
        if request.app_sid is not None:
            request = applied(request, await self._application(account_sid, request.app_sid))
        metadata = CallMetadata()
        if request.agent_id is not None:
            agent = await self._agent(account_sid, request.agent_id)
            metadata = CallMetadata(product=PRODUCT, details=_details(agent, request))
            request = with_agent(request, agent)
        plan = plan_of(request, self._rules)
        # Events of a voice agent have names and a form of their own.
        if metadata.product is None:
            metadata = replace(metadata, details=_format_details(request))
        events = request.status_webhook_events
        return plan, replace(
            metadata,
            tag=request.tag,
            app_sid=request.app_sid,
            status_webhook_url=request.status_webhook_url,
            status_webhook_events=DEFAULT_STATUS_EVENTS if events is None else tuple(events),
        )

    def read_verbs(
        self, record: CallRecord, verbs: Sequence[Mapping[str, Any]], webhook_format: WebhookFormat
    ) -> list[Step]:
        """
        Return the steps of verbs that an active call is given.

        A dialled party sees the account's number of the call unless a verb says otherwise.

        Raises:
            ValidationFailed: Values are wrong; all of them are named.
            Forbidden: A number may not be dialled.
        """
        own = record.to if record.direction == "inbound" else record.from_
        values = VerbValues(self._rules, own, webhooks=WebhookDefaults(webhook_format))
        steps = read_verbs(values, "verbs", verbs)
        values.raise_found()
        return steps

    async def _application(self, account_sid: str, app_sid: str) -> Application:
        found = self._routes.application(app_sid)
        if found is None:
            await self._refresh()
            found = self._routes.application(app_sid)
        if found is None:
            raise ValidationFailed.of("app_sid", "there is no such application")
        if found.account_sid != account_sid:
            raise Forbidden("The application belongs to another account.")
        return found

    async def _agent(self, account_sid: str, agent_id: str) -> VoiceAgent:
        found = self._routes.agent(agent_id.lower())
        if found is None:
            await self._refresh()
            found = self._routes.agent(agent_id.lower())
        if found is None:
            raise ValidationFailed.of("agent_id", "there is no such agent")
        if found.account_sid != account_sid:
            raise Forbidden("The agent belongs to another account.")
        return found


def _format_details(request: CreateCall) -> dict[str, Any] | None:
    """Return the details of a call whose events have another form than ours, None of any other."""
    # A server that is asked as jambonz asks expects events in that form.
    form = "jambonz" if request.webhook_format == "jambonz" else request.status_webhook_format
    details: dict[str, Any] = {} if form == "json" else {STATUS_FORMAT: form}
    if request.customer_data:
        details[CUSTOMER_DATA] = dict(request.customer_data)
    return details or None


def _details(agent: VoiceAgent, request: CreateCall) -> dict[str, Any]:
    """Return the details of the agent for the record of its call."""
    context = request.stream_fields.get("custom_parameters")
    return assistant_details(
        agent.agent_id,
        language=agent.language,
        context=context if isinstance(context, Mapping) else None,
        sandbox_carrier=request.carrier_sid if request.sandbox else None,
    )
