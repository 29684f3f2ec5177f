"""Phone numbers and their configuration."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.rows import Part, Row, ValueTable
from callcontrol.database.statements import (
    Statement,
    to_micros,
    to_micros_or_none,
    to_moment,
    to_moment_or_none,
)
from callcontrol.database.tables.agents import agents
from callcontrol.database.tables.trunks import phone_numbers
from callcontrol.models import Billing, PhoneNumber


def _billing_columns(_: Connection, number: PhoneNumber) -> Mapping[str, Any]:
    billing = number.billing
    return {
        "billing_anchor_at": to_micros(billing.anchor_at) if billing else None,
        "paid_months": billing.paid_months if billing else None,
        "next_billing_at": to_micros(billing.next_at) if billing else None,
        "payment_deadline_at": to_micros_or_none(billing.deadline_at) if billing else None,
    }


def _billing(_: Connection, row: Row) -> Billing | None:
    if row["next_billing_at"] is None:
        return None
    return Billing(
        anchor_at=to_moment(row["billing_anchor_at"]),
        paid_months=row["paid_months"],
        next_at=to_moment(row["next_billing_at"]),
        deadline_at=to_moment_or_none(row["payment_deadline_at"]),
    )


NUMBERS: Final = ValueTable(
    phone_numbers,
    PhoneNumber,
    order=(phone_numbers.c.created_at.desc(), phone_numbers.c.phone_number_id),
    fixed=("account_sid", "number", "created_at"),
    parts={"billing": Part(_billing_columns, _billing)},
)
"""Numbers of all accounts, newest first."""

insert, update, get, number_of = NUMBERS.insert, NUMBERS.update, NUMBERS.get, NUMBERS.value_of

(_LIVE,) = NUMBERS.live
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


def delete(connection: Connection, phone_number_id: str, now: datetime) -> None:
    """Remove a number from its account; the row stays for the call records that name it."""
    NUMBERS.delete(connection, phone_number_id, now, status="released", updated_at=to_micros(now))


def by_number(connection: Connection, number: str) -> PhoneNumber | None:
    """Get a number by its E.164 form."""
    return NUMBERS.first(connection, phone_numbers.c.number == number, _LIVE)


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
    return NUMBERS.page(connection, *conditions, offset=offset, limit=limit)


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
    return NUMBERS.all(connection, *conditions, order=(when, key), limit=limit)


def on_carriers(
    connection: Connection, account_sid: str, filters: Mapping[str, str], *, offset: int, limit: int
) -> tuple[list[PhoneNumber], int]:
    """Page of the account's numbers on its own carriers, newest first, and the total."""
    mine = [phone_numbers.c.account_sid == account_sid, phone_numbers.c.carrier_sid.is_not(None), _LIVE]
    mine += [phone_numbers.c[name] == value for name, value in filters.items()]
    return NUMBERS.page(connection, *mine, offset=offset, limit=limit)
