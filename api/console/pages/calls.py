"""The list of calls: search by number, time, status, cause, trunk, product, length, MOS and price."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any, Final

from aiohttp import web

from api.console.page import Navigation, Pages
from api.console.rendering import refusal_text
from api.console.visit import HOME, Visit
from api.http.cursor import read_cursor, write_cursor
from api.http.time_ranges import time_span
from callcontrol.aio.tokens import utc_now
from callcontrol.clock import MILLISECOND
from callcontrol.errors import DomainError, FieldError, ValidationFailed
from callcontrol.models import CallFilter, CallRecord, CallStatus, Carrier, Direction, Page, Position

__all__ = ["pages"]

PATH: Final = f"{HOME}/calls"
PER_PAGE: Final = 50

_LISTED: Final = "calls"
_DIRECTIONS: Final[dict[str, Direction]] = {"inbound": "inbound", "outbound": "outbound"}
_FIELDS: Final = (
    "text",
    "status",
    "direction",
    "cause",
    "trunk",
    "product",
    "length",
    "mos",
    "price",
    "start",
    "end",
)
# What a field for date and time sends, in UTC: the script of the page says so by Z.
_MINUTE: Final = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2})(:[0-9]{2})?Z?", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?")
_PRODUCTS: Final = ("masking", "otp", "assistant")
_NO_PRODUCT: Final = "calls"
# Without an index a text is looked for in every row of the time, so there is always one.
_SEARCHED: Final = timedelta(days=31)
# Over all accounts there is no index but that of the time.
_SEARCHED_EVERYWHERE: Final = timedelta(days=7)

pages = Pages("calls", scope="calls.read", nav=Navigation("calls", 20, PATH), every_account=True)


@pages.get(PATH)
async def list_calls(visit: Visit) -> web.StreamResponse:
    """Show a page of calls, newest first."""
    wanted, cursor = visit.queries(*_FIELDS), visit.query("cursor")
    trunks = await trunks_of(visit)
    shown: dict[str, Any] = {
        "wanted": wanted,
        "searched": any(wanted.values()),
        "moments": {name: _moment_of(wanted, name) for name in ("start", "end")},
        "trunks": trunks,
        "names": {trunk.carrier_sid: trunk.name for trunk in trunks},
        # A value of a row narrows the search that has found it.
        "kept": wanted,
        "statuses": list(CallStatus),
        "products": [_NO_PRODUCT, *_PRODUCTS],
    }
    try:
        place = read_cursor(_LISTED, cursor) if cursor else None
        page = await _page(visit, wanted, place)
    except DomainError as refusal:
        return visit.show_invalid("calls.html", refusal, calls=[], newest=None, older=None, **shown)
    following = write_cursor(_LISTED, page.after)
    return visit.show(
        "calls.html",
        calls=page.items,
        newest=visit.address(**wanted) if place else None,
        older=visit.address(**wanted, cursor=following) if following else None,
        **shown,
    )


async def _page(visit: Visit, wanted: dict[str, str], place: Position | None) -> Page[CallRecord]:
    query = filter_of(wanted)
    if not visit.every_account:
        return await visit.services.calls.list_calls(visit.account_sid, query, 1, PER_PAGE, after=place)
    if query.start is None or not wanted["start"]:
        now = (query.end or utc_now()).replace(minute=0, second=0, microsecond=0)
        query = replace(query, start=now - _SEARCHED_EVERYWHERE)
    return await visit.storage.calls.list_of_all_accounts(query, PER_PAGE, after=place)


async def trunks_of(visit: Visit) -> Sequence[Carrier]:
    """Trunks of the account, for choices; none without the right to see them."""
    if not visit.may("trunks.read"):
        return []
    return (await visit.services.trunks.list_carriers(visit.account_sid, 1, 100)).items


def filter_of(wanted: Mapping[str, str]) -> CallFilter:
    """
    Convert the fields of the search; unknown values of a choice are no filter.

    Raises:
        ValidationFailed: A time or a number is none, or the end is before the start.
    """
    start, end = _span(wanted)
    length_s, mos, price = (_bound(name, wanted[name]) for name in ("length", "mos", "price"))
    if wanted["text"] and start is None:
        # From a full hour, so that all pages of a search have the same time.
        start = (end or utc_now().replace(minute=0, second=0, microsecond=0)) - _SEARCHED
    statuses = {status.value: status for status in CallStatus}
    product = wanted["product"]
    return CallFilter(
        status=statuses.get(wanted["status"]),
        direction=_DIRECTIONS.get(wanted["direction"]),
        start=start,
        end=end,
        text=wanted["text"] or None,
        cause=wanted["cause"] or None,
        carrier_sid=wanted["trunk"] or None,
        product="" if product == _NO_PRODUCT else product or None,
        min_duration_s=None if length_s is None else math.ceil(length_s),
        max_mos=mos,
        min_price_paise=None if price is None else round(price * 100),
    )


def _span(wanted: Mapping[str, str]) -> tuple[datetime | None, datetime | None]:
    """The time that is searched: an end of minutes or seconds includes all of its minute or second."""
    filled = {}
    for name, rest, of_minute in (("start", "", ":00"), ("end", ".999", ":59")):
        found = _MINUTE.fullmatch(wanted[name])
        filled[name] = f"{found[1]}{found[2] or of_minute}{rest}Z" if found else wanted[name]
    return time_span(filled["start"] or None, filled["end"] or None, ("start", "end"))


def _moment_of(wanted: Mapping[str, str], name: str) -> str:
    """The value of one end for its field: in UTC, without the zone; empty if it is none."""
    try:
        start, end = _span({"start": "", "end": "", name: wanted[name]})
    except ValidationFailed:
        return ""
    moment = start if name == "start" else end and end - MILLISECOND
    return "" if moment is None else f"{moment:%Y-%m-%dT%H:%M:%S}"


def _bound(name: str, text: str) -> float | None:
    """Read a number of seconds, MOS or rupees."""
    if not text:
        return None
    if _NUMBER.fullmatch(text) is None:
        raise ValidationFailed([FieldError(name, refusal_text("no_number"))])
    return float(text)
