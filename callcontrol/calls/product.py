"""
Products of the platform, as the call machinery sees them.

A call of the call interface has no product. A product (number masking, voice OTP, the voice assistant)
describes in its own folder, as a ``ProductPolicy``, where its calls differ; the composition root hands all
policies to the call machinery as ``Products``.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Protocol
from urllib.parse import urlencode

from sqlalchemy.engine import Connection

from callcontrol.calls.charges import Rates
from callcontrol.calls.dialer import Ending
from callcontrol.calls.events import Event
from callcontrol.calls.hangup_cause import HangupCause
from callcontrol.calls.plan import Plan
from callcontrol.calls.records.call_form import FORM_EVENTS, STATUS_FORMAT, event_fields
from callcontrol.calls.records.call_info import STATUS_EVENTS, event_info, info_body
from callcontrol.calls.records.call_json import call_object
from callcontrol.calls.records.store.product_rows import ProductRows
from callcontrol.clock import timestamp
from callcontrol.directory.directory import Directory
from callcontrol.errors import DomainError
from callcontrol.models import Binding, CallRecord, PhoneNumber, SubscribedEvent, WebhookEvent
from callcontrol.models.parties import Party
from callcontrol.trunks.inbound_invite import Caller
from sip.values import frozen

_CHOSEN: Final = frozenset(
    {"call.initiated", "call.ringing", "call.early-media", "call.answered", "call.completed"}
)
"""Events that ``status_webhook_events`` can select; all others are always sent."""

_SENT_IN: Final[Mapping[str, Mapping[str, str]]] = {"form": FORM_EVENTS, "jambonz": STATUS_EVENTS}
"""Events that are sent at all, in the forms that have not every one."""


class CallProgress:
    """Progress of a call in the details of its product; this base records nothing."""

    def first_rings(self) -> None:
        """Record that the first party rings, or hears the ringing of the other."""

    def first_answers(self, at: datetime) -> None:
        """Record that the first party answered, or that its call was answered."""

    def ended(self, ending: Ending, now_s: float) -> None:
        """Record the end of the call."""

    def revert_answer(self) -> None:
        """Revert an answer that the caller never received."""


class CallAttachment(Protocol):
    """
    A row of a product that is written in the transaction that inserts its call.

    Its methods may run several times, each time in a new transaction after the previous one was rolled back.
    """

    def refusal(self, connection: Connection) -> DomainError | None:
        """Return why the call must not be placed, or None; called before anything is written."""

    def insert(self, connection: Connection, call_sid: str) -> None:
        """Write the row; the call is already inserted."""

    def take_back(self, connection: Connection) -> None:
        """Delete the row: the request that placed the call was abandoned."""


@frozen
class BoundCall:
    """An inbound call to a number whose binding names the target of a product."""

    number: PhoneNumber
    binding: Binding
    caller: Caller
    routes: Directory
    time_limit_s: float


@frozen
class InboundPlan:
    """
    Plan of an inbound call; without a ``plan`` the call is rejected with ``refusal``.

    ``product`` and ``details`` are those of its record.
    """

    plan: Plan | None
    refusal: Ending | None = None
    product: str | None = None
    details: Mapping[str, Any] | None = None


def chosen_event(record: CallRecord, event: str) -> str | None:
    """Name of an event of a call without a product; None when its status webhook does not select it."""
    if event in _CHOSEN and event.removeprefix("call.") not in record.status_webhook_events:
        return None
    return event


@dataclass(frozen=True, slots=True, kw_only=True)
class ProductPolicy:
    """
    Differences of the calls of one product; the defaults are those of calls without a product.

    Attributes:
        name: ``CallRecord.product`` of its calls.
        may_transfer: False when no party may transfer, replace or leave the other.
        passes_headers: False when no header of one party reaches the other.
        refused_commands: API commands that its calls never carry out, for the reason ``refused_because``.
        event_name: Name of an event for the status webhook; None for an event that is not sent.
        shape: JSON form of the call in these events.
        rates: Rates of a call, from those of the process.
        confine: The further party to dial for the one requested, None: that one; raises ``Forbidden``.
        progress: Makes the progress of a new call.
        cut_off: Records a call with an unknown end; returns True when its second party had answered.
        subscriber_event: Event of an active call for subscribers, in addition to the status webhook; called
            with the record, the event's name, its details, ``event_id`` and ``at``.
        start_events: Events for subscribers of a new call, written in the transaction that inserts it.
        end_events: Events for subscribers of an ended call; the last argument is the base URL of links.
        target: Target of bindings whose inbound calls ``plan_inbound`` plans.
        rows: Rows that are written with the records.
    """

    name: str | None = None
    may_transfer: bool = True
    passes_headers: bool = True
    refused_commands: tuple[type[Event], ...] = ()
    refused_because: str = ""
    event_name: Callable[[CallRecord, str], str | None] = chosen_event
    shape: Callable[[CallRecord], dict[str, Any]] = call_object
    rates: Callable[[CallRecord, Rates], Rates] = lambda _, rates: rates
    confine: Callable[[CallRecord, Party], Party] | None = None
    progress: Callable[[CallRecord, Rates], CallProgress] = lambda _, rates: CallProgress()
    cut_off: Callable[[CallRecord, HangupCause, float], bool] = lambda *_: False
    subscriber_event: Callable[..., SubscribedEvent | None] | None = None
    start_events: Callable[[CallRecord], Sequence[SubscribedEvent]] = lambda _: ()
    end_events: Callable[[CallRecord, datetime, str], Sequence[SubscribedEvent]] = lambda *_: ()
    target: str | None = None
    plan_inbound: Callable[[BoundCall], InboundPlan] | None = None
    rows: ProductRows | None = None

    def webhook_event(
        self,
        record: CallRecord,
        event: str,
        details: Mapping[str, Any],
        *,
        event_id: str,
        at: datetime,
        shown: Mapping[str, Any] | None = None,
    ) -> WebhookEvent | None:
        """
        Return an event of a call for its status webhook, None when nobody subscribed to it.

        ``shown`` is the call at the time of the event; None stands for the present record. Increments
        ``record.sequence``: receivers see every number once, without gaps. ``details`` of the record name the
        subscription of a product whose events go to one, and say in what form the call's events are.
        """
        url = record.status_webhook_url
        name = None if url is None else self.event_name(record, event)
        form = (record.details or {}).get(STATUS_FORMAT, "json")
        if url is None or name is None or name not in _SENT_IN.get(form, (name,)):
            return None
        record.sequence += 1
        call = self.shape(record) if shown is None else shown
        body = {
            "event": name,
            "event_id": event_id,
            "timestamp": timestamp(at),
            "sequence": record.sequence,
            "data": {**call, **details},
        }
        if form == "form":
            content = urlencode(event_fields(record, name, call, at)).encode()
        else:
            content = info_body(event_info(record, name, call)) if form == "jambonz" else _json(body)
        return WebhookEvent(
            event_id=event_id,
            account_sid=record.account_sid,
            event=name,
            url=url,
            body=content,
            created_at=at,
            call_sid=record.call_sid,
            subscription_id=(record.details or {}).get("subscription_id"),
        )


def _json(body: Mapping[str, Any]) -> bytes:
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


NO_PRODUCT: Final = ProductPolicy()
"""Policy of calls of the call interface."""


class Products:
    """The policies of all products of a process."""

    def __init__(self, *policies: ProductPolicy) -> None:
        self._by_name = {policy.name: policy for policy in policies}
        self.planners = {
            policy.target: policy.plan_inbound for policy in policies if policy.plan_inbound is not None
        }
        """Planners of inbound calls, by the target of the number's binding."""
        self.rows = {policy.name: policy.rows for policy in policies if policy.rows is not None}
        """Rows that are written with the records of calls, by product."""

    def of(self, record: CallRecord) -> ProductPolicy:
        """Policy of a call."""
        return self._by_name.get(record.product, NO_PRODUCT)
