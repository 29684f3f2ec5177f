"""Call logs of the trunk portal (telephony specification, carrier trunks)."""

from __future__ import annotations

from typing import Any

from api.http.endpoint import Context, Reply, Routes
from api.http.time_ranges import time_span
from api.schemas.base import NoBody
from api.schemas.call_logs import CallLogList, CallLogObject
from api.schemas.serializers import page_meta, shown
from callcontrol.aio.tokens import utc_now
from callcontrol.calls.records.cdr import Cdr, CdrFilter, span_of

__all__ = ["routes"]

routes = Routes("trunks.read", tag="carrier trunks")


@routes.get("/v1/trunk-portal/call-logs", response=CallLogObject, paged=True)
async def list_call_logs(context: Context[NoBody, CallLogList]) -> Reply:
    """
    List call logs, newest first.

    One entry for each call: its route, its end and its audio quality.
    """
    query = context.query
    page = await context.storage.call_logs.list(
        context.account_sid, _filter(query), query.page, query.per_page
    )
    return Reply([_json(entry) for entry in page.items], page_meta(page))


def _filter(query: CallLogList) -> CdrFilter:
    given = [
        time_span(query.start, query.end, names=("start", "end")),
        time_span(query.start_date, query.end_date, names=("start_date", "end_date")),
    ]
    first, last = (one or other for one, other in zip(*given, strict=True))
    start, end = span_of(utc_now(), query.days, first, last)
    return CdrFilter(start, end, query.direction, query.answered, query.carrier_sid, query.filter)


def _json(entry: Cdr) -> dict[str, Any]:
    return shown(CallLogObject, entry, duration=entry.duration_sec, answered=entry.answered_at is not None)
