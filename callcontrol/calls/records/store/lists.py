"""SQL of the lists of calls and of call logs: conditions in a form that the indexes support."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from callcontrol.calls.records.cdr import Cdr, CdrFilter, searched
from callcontrol.database.listing import Listing
from callcontrol.database.statements import to_micros, to_moment, to_moment_or_none, unpack
from callcontrol.database.tables.calls import calls
from callcontrol.database.tables.trunks import carriers, gateways
from callcontrol.models import CallFilter

LISTING: Final = Listing(calls.c.created_at, calls.c.call_sid)

# An identifier is made a moment before the call's time, or after a clock that was set.
_APART_MICROS: Final = 60_000_000


def of_all_accounts(
    connection: Connection, query: CallFilter, *, limit: int, after: str | None = None
) -> list[str]:
    """
    Identifiers of calls of all accounts, newest first, after another one.

    They begin with the time, so the primary key has the order, and none of the indexes by account is needed.
    """
    wanted = [*conditions(None, query)]
    if query.start is not None:
        start = to_micros(query.start)
        wanted += [calls.c.created_at >= start, calls.c.call_sid >= _begin_of_ids(start - _APART_MICROS)]
    if query.end is not None:
        end = to_micros(query.end)
        wanted += [calls.c.created_at < end, calls.c.call_sid < _begin_of_ids(end + _APART_MICROS)]
    if after is not None:
        wanted.append(calls.c.call_sid < after)
    keys = sa.select(calls.c.call_sid).where(*wanted).order_by(calls.c.call_sid.desc()).limit(limit)
    return list(connection.scalars(keys))


def _begin_of_ids(micros: int) -> str:
    """Beginning of the identifiers (UUIDv7) that are made at a time."""
    digits = f"{max(0, micros) // 1000:012x}"
    return f"{digits[:8]}-{digits[8:]}"


def count_active(connection: Connection) -> int:
    """Number of calls of all accounts that are up."""
    up = sa.select(sa.func.count()).select_from(calls).where(calls.c.ended_at.is_(None))
    return connection.scalar(up) or 0


def conditions(account_sid: str | None, query: CallFilter) -> Sequence[sa.ColumnElement[bool]]:
    """Return the conditions of a list of calls, except for its time; None for those of all accounts."""
    mine = sa.true() if account_sid is None else calls.c.account_sid == account_sid
    equal = {
        calls.c.direction: query.direction,
        calls.c.from_number: query.from_,
        calls.c.to_number: query.to,
    }
    wanted = {column: value for column, value in equal.items() if value is not None}
    active = query.active or (query.status is not None and not query.status.ended)
    if not active:
        found = [mine, *(column == value for column, value in wanted.items())]
        if query.status is not None:
            found.append(calls.c.outcome == query.status.value)
        return [*found, *_narrower(query)]
    # Active calls are few and have an index of their own. The other columns are wrapped, so that no planner
    # chooses one of the long indexes for them.
    return [
        mine,
        calls.c.ended_at.is_(None),
        *([] if query.status is None else [calls.c.status == query.status.value]),
        *(sa.func.coalesce(column, "") == value for column, value in wanted.items()),
        *_narrower(query),
    ]


def _narrower(query: CallFilter) -> list[sa.ColumnElement[bool]]:
    """Return conditions that have no index: they are tried on the rows that the others find."""
    found: list[sa.ColumnElement[bool]] = []
    if query.text is not None:
        found.append(_contains(query.text))
    if query.cause is not None:
        found.append(calls.c.hangup_cause == query.cause)
    if query.carrier_sid is not None:
        found.append(calls.c.carrier_sid == query.carrier_sid)
    if query.product is not None:
        found.append(sa.func.coalesce(calls.c.product, "") == query.product)
    if query.min_duration_s is not None:
        found.append(calls.c.duration_sec >= query.min_duration_s)
    if query.max_mos is not None:
        found.append(_Mos(calls.c.quality) <= query.max_mos)
    if query.min_price_paise is not None:
        found.append(calls.c.price_paise >= query.min_price_paise)
    return found


class _Mos(FunctionElement[float]):
    """MOS in the stored quality of a call; NULL where there is none."""

    inherit_cache = True
    type = sa.Float()


@compiles(_Mos, "sqlite")
def _mos_of_sqlite(element: _Mos, compiler: SQLCompiler, **options: Any) -> str:
    return f"json_extract({compiler.process(element.clauses, **options)}, '$.mos')"


@compiles(_Mos, "postgresql")
def _mos_of_postgres(element: _Mos, compiler: SQLCompiler, **options: Any) -> str:
    return f"CAST(CAST({compiler.process(element.clauses, **options)} AS json) ->> 'mos' AS double precision)"


def _contains(text: str) -> sa.ColumnElement[bool]:
    """Return the condition of a text in one of the numbers or the Call-ID."""
    columns = (calls.c.from_number, calls.c.to_number, calls.c.sip_call_id)
    occurs = (column.icontains(each, autoescape=True) for column in columns for each in searched(text))
    return sa.or_(*occurs)


_QUALITY = ("codec", "mos", "jitter_ms", "packet_loss_pct")

# Deleted trunks keep their names in the logs of their calls.
_SOURCE = calls.outerjoin(carriers, carriers.c.carrier_sid == calls.c.carrier_sid).outerjoin(
    gateways, gateways.c.gateway_sid == calls.c.gateway_sid
)
_COLUMNS: Final[Sequence[sa.ColumnElement[Any]]] = (
    calls.c.call_sid,
    calls.c.from_number,
    calls.c.to_number,
    calls.c.direction,
    calls.c.status,
    calls.c.carrier_sid,
    calls.c.gateway_sid,
    calls.c.app_sid,
    calls.c.sip_status,
    calls.c.sip_reason,
    calls.c.sip_call_id,
    calls.c.duration_sec,
    calls.c.created_at,
    calls.c.answered_at,
    calls.c.ended_at,
    calls.c.hangup_cause,
    calls.c.hangup_source,
    calls.c.node,
    calls.c.quality,
    carriers.c.name.label("trunk"),
    gateways.c.host.label("remote_host"),
)


def cdrs_by_sids(connection: Connection, call_sids: Sequence[str]) -> list[Cdr]:
    """Call logs of the calls with these identifiers, in their order."""
    rows = connection.execute(
        sa.select(*_COLUMNS).select_from(_SOURCE).where(calls.c.call_sid.in_(call_sids))
    )
    found = {row.call_sid: _cdr(row) for row in rows}
    return [found[call_sid] for call_sid in call_sids if call_sid in found]


def cdr_conditions(account_sid: str, query: CdrFilter) -> list[sa.ColumnElement[bool]]:
    """Return the conditions of a filter, except for its time."""
    wanted: list[sa.ColumnElement[bool]] = [calls.c.account_sid == account_sid]
    if query.direction is not None:
        wanted.append(calls.c.direction == query.direction)
    if query.answered is not None:
        never = calls.c.answered_at.is_(None)
        wanted.append(sa.not_(never) if query.answered else never)
    if query.carrier_sid is not None:
        wanted.append(calls.c.carrier_sid == query.carrier_sid)
    if query.text is not None:
        wanted.append(_contains(query.text))
    return wanted


def _cdr(row: Row[Any]) -> Cdr:
    quality: Mapping[str, Any] = unpack(row.quality) if row.quality else {}
    return Cdr(
        call_sid=row.call_sid,
        from_=row.from_number,
        to=row.to_number,
        direction=row.direction,
        status=row.status,
        carrier_sid=row.carrier_sid,
        gateway_sid=row.gateway_sid,
        app_sid=row.app_sid,
        sip_status=row.sip_status,
        sip_reason=row.sip_reason,
        sip_call_id=row.sip_call_id,
        duration_sec=row.duration_sec,
        attempted_at=to_moment(row.created_at),
        answered_at=to_moment_or_none(row.answered_at),
        terminated_at=to_moment_or_none(row.ended_at),
        termination_reason=row.hangup_cause,
        terminated_by=row.hangup_source,
        host=row.node,
        remote_host=row.remote_host,
        trunk=row.trunk,
        **{name: quality.get(name) for name in _QUALITY},
    )
