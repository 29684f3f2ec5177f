"""The voice assistant as a product: the policy of calls with voice agents."""

from typing import Final

from callcontrol.agents.agent import agent_step
from callcontrol.assistant.calls import PRODUCT, assistant_details, assistant_event, end_events, start_events
from callcontrol.assistant.sandbox import confined, rates_of
from callcontrol.assistant.store import ROWS
from callcontrol.calls.inbound import NOT_AVAILABLE
from callcontrol.calls.plan import Plan
from callcontrol.calls.product import BoundCall, InboundPlan, ProductPolicy
from callcontrol.errors import DomainError
from media.streams import StreamSetupError


def plan_inbound(call: BoundCall) -> InboundPlan:
    """Plan an inbound call to a voice agent, of any kind."""
    agent = call.routes.agent(call.binding.agent_id or "")
    if agent is None or agent.account_sid != call.number.account_sid:
        return InboundPlan(None, NOT_AVAILABLE)
    details = assistant_details(agent.agent_id, language=agent.language)
    try:
        step = agent_step(agent)
    except (StreamSetupError, DomainError):
        return InboundPlan(None, NOT_AVAILABLE, PRODUCT, details)
    plan = Plan((step,), record=bool(call.binding.record), time_limit_s=call.time_limit_s)
    return InboundPlan(plan, None, PRODUCT, details)


ASSISTANT: Final = ProductPolicy(
    name=PRODUCT,
    rates=rates_of,
    confine=confined,
    subscriber_event=assistant_event,
    start_events=start_events,
    end_events=end_events,
    target="voice_agent",
    plan_inbound=plan_inbound,
    rows=ROWS,
)
