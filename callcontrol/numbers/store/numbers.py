"""Phone numbers and their configuration."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from callcontrol.database.encryption import seal_binding, unseal_binding
from callcontrol.database.statements import Statement
from callcontrol.database.tables.agents import agents
from callcontrol.database.tables.trunks import phone_numbers
from callcontrol.database.values import to_micros, to_micros_or_none, to_moment, to_moment_or_none
from callcontrol.models import Billing, PhoneNumber

_BINDING: Final = phone_numbers.c.binding
_LIVE = phone_numbers.c.deleted_at.is_(None)
_OLDEST_NUMBER: Final = Statement(
    sa.select(phone_numbers.c.number)
    .where(
        phone_numbers.c.account_sid == sa.bindparam("account_sid"),
        _LIVE,
        phone_numbers.c.status == "active",
        phone_numbers.c.registered,
    )
    .order_by(phone_numbers.c.created_at, phone_numbers.c.phone_number_id)
    .limit(sa.literal_column("1"))
)


def insert(connection: Connection, number: PhoneNumber, revision: int) -> None:
    """Write a new number."""
    connection.execute(
        sa.insert(phone_numbers).values(
            phone_number_id=number.phone_number_id,
            account_sid=number.account_sid,
            number=number.number,
            deleted_at=None,
            created_at=to_micros(number.created_at),
            **_mutable(connection, number, revision),
        )
    )


def update(connection: Connection, number: PhoneNumber, revision: int) -> None:
    """Write the state of a number."""
    connection.execute(
        sa.update(phone_numbers)
        .where(phone_numbers.c.phone_number_id == number.phone_number_id)
        .values(_mutable(connection, number, revision))
    )


def delete(connection: Connection, phone_number_id: str, now: datetime, revision: int) -> None:
    """Remove a number from its account; the row stays for the call records that name it."""
    connection.execute(
        sa.update(phone_numbers)
        .where(phone_numbers.c.phone_number_id == phone_number_id)
        .values(deleted_at=to_micros(now), status="released", revision=revision)
    )


def get(connection: Connection, phone_number_id: str, *, lock: bool = False) -> PhoneNumber | None:
    """Get a number by its identifier; ``lock`` keeps other writers from it until the transaction ends."""
    wanted = sa.select(phone_numbers).where(phone_numbers.c.phone_number_id == phone_number_id, _LIVE)
    row = connection.execute(wanted.with_for_update() if lock else wanted).first()
    return number_of(connection, row) if row is not None else None


def by_number(connection: Connection, number: str) -> PhoneNumber | None:
    """Get a number by its E.164 form."""
    row = connection.execute(sa.select(phone_numbers).where(phone_numbers.c.number == number, _LIVE)).first()
    return number_of(connection, row) if row is not None else None


def page(
    connection: Connection,
    account_sid: str,
    filters: Mapping[str, str],
    *,
    region: str | None = None,
    offset: int,
    limit: int,
) -> tuple[list[PhoneNumber], int]:
    """
    Page of the account's numbers, newest first, and the total.

    ``region`` is the beginning of a number, or the name of a region. Released numbers are listed only if
    the filters ask for that status.
    """
    conditions = [phone_numbers.c.account_sid == account_sid]
    conditions += [phone_numbers.c[name] == value for name, value in filters.items()]
    if filters.get("status") != "released":
        conditions.append(_LIVE)
    if region is not None and region.startswith("+"):
        conditions.append(phone_numbers.c.number.startswith(region, autoescape=True))
    elif region is not None:
        conditions.append(sa.func.lower(phone_numbers.c.region) == region.lower())
    total = connection.scalar(sa.select(sa.func.count()).select_from(phone_numbers).where(*conditions)) or 0
    rows = connection.execute(
        sa.select(phone_numbers)
        .where(*conditions)
        .order_by(phone_numbers.c.created_at.desc(), phone_numbers.c.phone_number_id)
        .offset(offset)
        .limit(limit)
    )
    return [number_of(connection, row) for row in rows], total


def default_caller_id(connection: Connection, account_sid: str) -> str | None:
    """The oldest number of the account that may call out; None without one."""
    row = _OLDEST_NUMBER.first(connection, {"account_sid": account_sid})
    return row["number"] if row is not None else None


def lock_agent(connection: Connection, agent_id: str) -> tuple[str, str | None] | None:
    """Return account and workspace of an agent, which then exists until the transaction ends."""
    wanted = sa.select(agents.c.account_sid, agents.c.workspace_id).where(
        agents.c.agent_id == agent_id, agents.c.deleted_at.is_(None)
    )
    row = connection.execute(wanted.with_for_update()).first()
    return None if row is None else (row.account_sid, row.workspace_id)


def due(
    connection: Connection, now: datetime, *, after: tuple[datetime, str] | None = None, limit: int
) -> list[PhoneNumber]:
    """Numbers whose next month is due, longest due first; ``after`` is the last one seen."""
    when, key = phone_numbers.c.next_billing_at, phone_numbers.c.phone_number_id
    conditions = [when.is_not(None), _LIVE, when <= to_micros(now)]
    if after is not None:
        seen, seen_id = to_micros(after[0]), after[1]
        conditions.append(sa.or_(when > seen, sa.and_(when == seen, key > seen_id)))
    rows = connection.execute(sa.select(phone_numbers).where(*conditions).order_by(when, key).limit(limit))
    return [number_of(connection, row) for row in rows]


def on_carriers(
    connection: Connection, account_sid: str, filters: Mapping[str, str], *, offset: int, limit: int
) -> tuple[list[PhoneNumber], int]:
    """Page of the account's numbers on its own carriers, newest first, and the total."""
    mine = [phone_numbers.c.account_sid == account_sid, phone_numbers.c.carrier_sid.is_not(None), _LIVE]
    mine += [phone_numbers.c[name] == value for name, value in filters.items()]
    total = connection.scalar(sa.select(sa.func.count()).select_from(phone_numbers).where(*mine)) or 0
    rows = connection.execute(
        sa.select(phone_numbers)
        .where(*mine)
        .order_by(phone_numbers.c.created_at.desc(), phone_numbers.c.phone_number_id)
        .offset(offset)
        .limit(limit)
    )
    return [number_of(connection, row) for row in rows], total


def changed_since(connection: Connection, seen: int) -> Iterator[tuple[PhoneNumber, bool]]:
    """Numbers changed after a revision, each with True if it still belongs to its account."""
    for row in connection.execute(sa.select(phone_numbers).where(phone_numbers.c.revision > seen)):
        yield number_of(connection, row), row.deleted_at is None


def _mutable(connection: Connection, number: PhoneNumber, revision: int) -> dict[str, Any]:
    return {
        "friendly_name": number.friendly_name,
        "status": number.status,
        "number_type": number.number_type,
        "voice_enabled": number.voice_enabled,
        "sms_enabled": number.sms_enabled,
        "monthly_cost_paise": number.monthly_cost_paise,
        "carrier_sid": number.carrier_sid,
        "app_sid": number.app_sid,
        "registered": number.registered,
        "binding": seal_binding(connection, _BINDING, number.phone_number_id, number.binding)
        if number.binding
        else None,
        "region": number.region,
        "order_id": number.order_id,
        **_billing_columns(number.billing),
        "updated_at": to_micros(number.updated_at),
        "revision": revision,
    }


def _billing_columns(billing: Billing | None) -> dict[str, int | None]:
    return {
        "billing_anchor_at": to_micros(billing.anchor_at) if billing else None,
        "paid_months": billing.paid_months if billing else None,
        "next_billing_at": to_micros(billing.next_at) if billing else None,
        "payment_deadline_at": to_micros_or_none(billing.deadline_at) if billing else None,
    }


def _billing(row: Row[Any]) -> Billing | None:
    if row.next_billing_at is None:
        return None
    return Billing(
        anchor_at=to_moment(row.billing_anchor_at),
        paid_months=row.paid_months,
        next_at=to_moment(row.next_billing_at),
        deadline_at=to_moment_or_none(row.payment_deadline_at),
    )


def number_of(connection: Connection, row: Row[Any]) -> PhoneNumber:
    """Number of a row."""
    return PhoneNumber(
        phone_number_id=row.phone_number_id,
        account_sid=row.account_sid,
        number=row.number,
        friendly_name=row.friendly_name,
        status=row.status,
        number_type=row.number_type,
        voice_enabled=bool(row.voice_enabled),
        sms_enabled=bool(row.sms_enabled),
        monthly_cost_paise=row.monthly_cost_paise,
        carrier_sid=row.carrier_sid,
        app_sid=row.app_sid,
        registered=bool(row.registered),
        binding=unseal_binding(connection, _BINDING, row.phone_number_id, row.binding)
        if row.binding
        else None,
        region=row.region,
        order_id=row.order_id,
        billing=_billing(row),
        created_at=to_moment(row.created_at),
        updated_at=to_moment(row.updated_at),
    )
