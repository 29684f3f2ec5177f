"""
Calls in Twilio's interface: placing, listing, reading, changing and ending them.

Path, form and response are those of Twilio, so that its own clients need another base address and no other
change. The domain functions are those of ``/v1/calls``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from api.http.cursor import write_cursor
from api.http.endpoint import Context, Reply, Routes
from api.http.errors import ErrorStyle
from api.http.middleware import current_request
from api.routes.twilio_api.shapes import ACCOUNT, moment, numbered, position, times
from api.schemas.base import NoBody, NoQuery
from api.schemas.twilio_api.base import API_VERSION
from api.schemas.twilio_api.calls import (
    CreateTwilioCall,
    TwilioCall,
    TwilioCallList,
    TwilioCallQuery,
    UpdateTwilioCall,
)
from callcontrol.calls.live.requests import LiveUpdate
from callcontrol.calls.requests import CreateCall
from callcontrol.errors import (
    CallEnded,
    Conflict,
    FieldError,
    InsufficientBalance,
    NumberNotOwned,
    SpendLimitReached,
    ValidationFailed,
    WrongCallState,
)
from callcontrol.instructions.twiml import named_in, read_twiml
from callcontrol.models import CallFilter, CallRecord, CallStatus
from callcontrol.wallet.money import rupees

__all__ = ["routes"]

_ALL = f"{ACCOUNT}/Calls.json"
_ONE = f"{ACCOUNT}/Calls/{{callSid}}.json"
_MIN_RING_S, _MAX_RING_S = 5, 120
_LISTED = "calls"
_NAMES: Mapping[str, str] = {
    "to": "To",
    "from": "From",
    "webhook_url": "Url",
    "fallback_url": "FallbackUrl",
    "status_webhook_url": "StatusCallback",
    "send_digits": "SendDigits",
    "app_sid": "ApplicationSid",
    "carrier_sid": "Byoc",
    "verbs": "Twiml",
    "time_limit": "TimeLimit",
    "call_status": "Status",
    "stream_url": "ApplicationSid",
}
"""Twilio's name of each field that the domain may refuse."""
_STATUSES: Mapping[CallStatus, str] = {CallStatus.INITIATED: "queued"}
_ANSWERED_BY: Mapping[str, str] = {"machine": "machine_start"}

routes = Routes("calls.read", "calls.write", style=ErrorStyle.TWILIO, tag="calls, as Twilio's clients ask")


@routes.post(
    _ALL,
    success=201,
    response=TwilioCall,
    errors=(InsufficientBalance, SpendLimitReached, NumberNotOwned),
    places_calls=True,
)
async def create_twilio_call(context: Context[CreateTwilioCall, NoQuery]) -> Reply:
    """
    Place a call, as Twilio's clients do.

    The user name is the account_sid, the password a platform key, the body a form.
    """
    body = context.body
    document = _Document(body.Twiml)
    request = CreateCall(
        from_=body.From,
        to=body.To,
        verbs=document.verbs,
        webhook_url=body.Url,
        webhook_method=body.Method,
        webhook_format="form",
        fallback_url=body.FallbackUrl,
        app_sid=body.ApplicationSid,
        timeout_s=float(min(max(body.Timeout, _MIN_RING_S), _MAX_RING_S)),
        time_limit_s=float(body.TimeLimit),
        record=body.Record,
        recording_channels=body.RecordingChannels,
        machine_detection="off" if body.MachineDetection is None else "detect",
        send_digits=body.SendDigits,
        carrier_sid=body.Byoc,
        status_webhook_url=body.StatusCallback,
        status_webhook_events=tuple(body.StatusCallbackEvent),
        status_webhook_format="form" if body.StatusCallback is not None else "json",
    )
    try:
        record = await context.services.calls.create_call(context.account_sid, request)
    except ValidationFailed as refusal:
        raise refusal.renamed(document.name_of) from refusal
    current_request().call_sid = record.call_sid
    return Reply(shown(record))


@routes.get(_ALL, response=TwilioCallList)
async def list_twilio_calls(context: Context[NoBody, TwilioCallQuery]) -> Reply:
    """
    List calls in Twilio's shape, newest first.

    The filters by StartTime go by date_created.
    """
    query = context.query
    page = await context.services.calls.list_calls(
        context.account_sid,
        _filter(query),
        query.Page + 1,
        query.PageSize,
        position(_LISTED, query.PageToken),
    )
    links = query.links(
        _ALL.format(sid=context.account_sid),
        has_next=page.after is not None,
        token=write_cursor(_LISTED, page.after),
    )
    return Reply(numbered({"calls": [shown(record) for record in page.items], **links}, "calls"))


@routes.get(_ONE, response=TwilioCall)
async def get_twilio_call(context: Context[NoBody, NoQuery]) -> Reply:
    """Get a call, in Twilio's shape."""
    record = await context.services.calls.get_call(context.account_sid, context.path["callSid"])
    return Reply(shown(record))


@routes.post(_ONE, errors=(CallEnded, WrongCallState), response=TwilioCall)
async def update_twilio_call(context: Context[UpdateTwilioCall, NoQuery]) -> Reply:
    """
    End a call or give it other instructions, as Twilio's clients do.

    The user name is the account_sid, the password a platform key, the body a form.
    """
    calls, call_sid, body = context.services.calls, context.path["callSid"], context.body
    current_request().call_sid = call_sid
    status = body.Status
    if status == "canceled" and (await calls.get_call(context.account_sid, call_sid)).answered_at is not None:
        raise WrongCallState("The call is answered, and canceled is for one that is not; send completed.")
    document = _Document(body.Twiml)
    update = LiveUpdate(
        call_status="completed" if status is not None else None,
        time_limit_s=float(body.TimeLimit) if body.TimeLimit is not None else None,
        webhook_url=body.Url,
        webhook_method=body.Method,
        webhook_format="form",
        verbs=document.verbs,
    )
    try:
        record = await calls.update_call(context.account_sid, call_sid, update)
    except ValidationFailed as refusal:
        raise refusal.renamed(document.name_of) from refusal
    except Conflict as refusal:
        reasons = refusal.details["conflicts"].items()
        listed = "; ".join(f"{_NAMES.get(name, name)}: {reason}" for name, reason in reasons)
        raise WrongCallState(f"Nothing was changed. {listed}.") from refusal
    # The hang-up is in progress: clients expect the status that they requested, and do not ask again.
    return Reply({**shown(record), "status": status} if status is not None else shown(record))


class _Document:
    """The TwiML of a request: its verbs, and the names of their fields in the document."""

    def __init__(self, text: str | None) -> None:
        self.verbs: list[dict[str, Any]] | None = None
        self._places: Mapping[str, str] = {}
        if text is None:
            return
        try:
            # It comes from no address: what would lead back to its own must say where.
            verbs, self._places, errors = read_twiml(text.encode(), "")
        except ValidationFailed as refusal:
            raise refusal.renamed(lambda _: "Twiml") from refusal
        if errors:
            raise ValidationFailed(errors).renamed(lambda place: f"Twiml.{place}")
        assert isinstance(verbs, list), "a document is read into a list"
        self.verbs = verbs or [{"verb": "hangup"}]

    def name_of(self, field: str) -> str:
        """Twilio's name of a field of the domain; of a verb, its place in the document."""
        place = named_in(FieldError(field, ""), self._places).field
        return f"Twiml.{place}" if place != field else _NAMES.get(field, field)


def _filter(query: TwilioCallQuery) -> CallFilter:
    start, end = times(query.on, query.after, query.before, "StartTime")
    return CallFilter(
        status=CallStatus(query.Status) if query.Status is not None else None,
        from_=query.From,
        to=query.To,
        start=start,
        end=end,
    )


def shown(record: CallRecord) -> dict[str, Any]:
    """Call resource of a record."""
    uri = _ONE.format(sid=record.account_sid, callSid=record.call_sid)
    updated = record.ended_at or record.answered_at or record.ringing_at or record.created_at
    return {
        "sid": record.call_sid,
        "account_sid": record.account_sid,
        "parent_call_sid": record.parent_call_sid,
        "from": record.from_,
        "from_formatted": record.from_,
        "to": record.to,
        "to_formatted": record.to,
        "status": _STATUSES.get(record.status, record.status.value),
        "direction": "inbound" if record.direction == "inbound" else "outbound-api",
        "answered_by": _ANSWERED_BY.get(record.answered_by or "", record.answered_by),
        "phone_number_sid": record.phone_number_id,
        "trunk_sid": record.carrier_sid,
        "date_created": moment(record.created_at),
        "date_updated": moment(updated),
        "start_time": moment(record.answered_at),
        "end_time": moment(record.ended_at),
        "duration": str(record.duration_sec) if record.duration_sec is not None else None,
        "price": f"{-rupees(record.price_paise):.2f}" if record.price_paise is not None else None,
        "price_unit": record.currency,
        "annotation": None,
        "caller_name": None,
        "forwarded_from": None,
        "group_sid": None,
        "queue_time": "0",
        "api_version": API_VERSION,
        "uri": uri,
        "subresource_uris": {"recordings": uri.removesuffix(".json") + "/Recordings.json"},
    }
