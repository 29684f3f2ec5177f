"""Number masking as a product: the policy of masked calls."""

from typing import Final

from callcontrol.calls.events.commands import (
    RedirectRequested,
    StepsRequested,
    TranscriptionRequested,
    TransferCommand,
)
from callcontrol.calls.plan import Plan
from callcontrol.calls.product import BoundCall, InboundPlan, ProductPolicy
from callcontrol.masking.calls import PRODUCT, masked_details, masked_event, masked_object
from callcontrol.masking.progress import MaskedProgress, cut_off
from callcontrol.masking.steps.route_by_caller import RouteByCaller
from callcontrol.masking.store.calls import ROWS


def plan_inbound(call: BoundCall) -> InboundPlan:
    """Plan an inbound call to a masked number; the caller's number decides the target."""
    caller, number = call.caller, call.number.number
    shown = None if caller.withheld or not caller.number.startswith("+") else caller.number
    steps = (RouteByCaller(shown, number, call.binding.language or "en"),)
    details = masked_details(
        direction="inbound", caller_number=caller.shown, target_number=None, masked_number=number
    )
    return InboundPlan(Plan(steps, time_limit_s=call.time_limit_s), None, PRODUCT, details)


MASKING: Final = ProductPolicy(
    name=PRODUCT,
    may_transfer=False,
    passes_headers=False,
    refused_commands=(TransferCommand, RedirectRequested, StepsRequested, TranscriptionRequested),
    refused_because="the call is masked: its two parties are the only ones it has",
    event_name=masked_event,
    shape=masked_object,
    progress=MaskedProgress,
    cut_off=cut_off,
    target="masking",
    plan_inbound=plan_inbound,
    rows=ROWS,
)
