"""Carriers and their gateways."""

from collections.abc import Iterator
from dataclasses import fields
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from callcontrol.database.encryption import seal, unseal
from callcontrol.database.tables.applications import applications
from callcontrol.database.tables.calls import calls
from callcontrol.database.tables.trunks import carriers, gateways, phone_numbers
from callcontrol.database.values import to_micros, to_moment
from callcontrol.models import Carrier, Gateway

_CARRIER_FIELDS: Final = tuple(item.name for item in fields(Carrier))
_GATEWAY_FIELDS: Final = tuple(item.name for item in fields(Gateway))
_LISTS: Final = ("codecs", "prefixes", "forwarded_headers", "registrars")
_SECRETS: Final = ("register_password", "inbound_auth_password")
_CONVERTED: Final = frozenset({*_LISTS, "created_at", "updated_at"})


def insert_carrier(connection: Connection, carrier: Carrier, revision: int) -> None:
    """Write a new carrier."""
    connection.execute(sa.insert(carriers).values(**_carrier_row(connection, carrier), revision=revision))


def insert_gateway(connection: Connection, gateway: Gateway, revision: int) -> None:
    """Write a new gateway."""
    connection.execute(sa.insert(gateways).values(**_row(gateway, _GATEWAY_FIELDS), revision=revision))


def update_carrier(connection: Connection, carrier: Carrier, revision: int) -> None:
    """Write a changed carrier."""
    connection.execute(
        sa.update(carriers)
        .where(carriers.c.carrier_sid == carrier.carrier_sid)
        .values(**_carrier_row(connection, carrier), revision=revision)
    )


def update_gateway(connection: Connection, gateway: Gateway, revision: int) -> None:
    """Write a changed gateway."""
    connection.execute(
        sa.update(gateways)
        .where(gateways.c.gateway_sid == gateway.gateway_sid)
        .values(**_row(gateway, _GATEWAY_FIELDS), revision=revision)
    )


def get_carrier(connection: Connection, carrier_sid: str, *, lock: bool = False) -> Carrier | None:
    """Get a carrier of any owner; ``lock`` keeps other writers from it until the transaction ends."""
    wanted = sa.select(carriers).where(carriers.c.carrier_sid == carrier_sid, carriers.c.deleted_at.is_(None))
    row = connection.execute(wanted.with_for_update() if lock else wanted).first()
    return _carrier(connection, row) if row is not None else None


def carriers_of(
    connection: Connection, account_sid: str | None, *, offset: int = 0, limit: int | None = None
) -> tuple[list[Carrier], int]:
    """Page of an account's carriers, or of the platform's for None, oldest first, and the total."""
    mine = [carriers.c.account_sid == account_sid, carriers.c.deleted_at.is_(None)]
    total = connection.scalar(sa.select(sa.func.count()).select_from(carriers).where(*mine)) or 0
    rows = connection.execute(
        sa.select(carriers)
        .where(*mine)
        .order_by(carriers.c.created_at, carriers.c.carrier_sid)
        .offset(offset)
        .limit(limit)
    )
    return [_carrier(connection, row) for row in rows], total


def gateways_of(connection: Connection, carrier_sid: str) -> list[Gateway]:
    """Gateways of a carrier, preferred first."""
    rows = connection.execute(
        sa.select(gateways)
        .where(gateways.c.carrier_sid == carrier_sid, gateways.c.deleted_at.is_(None))
        .order_by(gateways.c.priority, gateways.c.created_at, gateways.c.gateway_sid)
    )
    return [_gateway(row) for row in rows]


def get_gateway(connection: Connection, gateway_sid: str) -> Gateway | None:
    """Get a gateway."""
    row = connection.execute(
        sa.select(gateways).where(gateways.c.gateway_sid == gateway_sid, gateways.c.deleted_at.is_(None))
    ).first()
    return _gateway(row) if row is not None else None


def platform_carrier_exists(connection: Connection) -> bool:
    """Return True if the platform has an active carrier to provision numbers on."""
    found = connection.scalar(
        sa.select(carriers.c.carrier_sid)
        .where(carriers.c.account_sid.is_(None), carriers.c.is_active, carriers.c.deleted_at.is_(None))
        .limit(1)
    )
    return found is not None


def delete_carrier(connection: Connection, carrier_sid: str, now: datetime, revision: int) -> None:
    """Delete a carrier with its gateways."""
    gone = {"deleted_at": to_micros(now), "revision": revision}
    connection.execute(
        sa.update(gateways)
        .where(gateways.c.carrier_sid == carrier_sid, gateways.c.deleted_at.is_(None))
        .values(gone)
    )
    # The row stays for the call records that name it; its passwords are no longer needed.
    forgotten = dict.fromkeys(_SECRETS)
    connection.execute(
        sa.update(carriers).where(carriers.c.carrier_sid == carrier_sid).values({**gone, **forgotten})
    )


def delete_gateway(connection: Connection, gateway_sid: str, now: datetime, revision: int) -> None:
    """Delete a gateway."""
    connection.execute(
        sa.update(gateways)
        .where(gateways.c.gateway_sid == gateway_sid)
        .values(deleted_at=to_micros(now), revision=revision)
    )


def carriers_changed_since(connection: Connection, seen: int) -> Iterator[tuple[Carrier, bool]]:
    """Carriers changed after a revision, each with True if it still exists."""
    for row in connection.execute(sa.select(carriers).where(carriers.c.revision > seen)):
        yield _carrier(connection, row), row.deleted_at is None


def gateways_changed_since(connection: Connection, seen: int) -> Iterator[tuple[Gateway, bool]]:
    """Gateways changed after a revision, each with True if it still exists."""
    for row in connection.execute(sa.select(gateways).where(gateways.c.revision > seen)):
        yield _gateway(row), row.deleted_at is None


def _carrier_row(connection: Connection, carrier: Carrier) -> dict[str, Any]:
    row = _row(carrier, _CARRIER_FIELDS)
    for name in _SECRETS:
        row[name] = seal(connection, carriers.c[name], carrier.carrier_sid, row[name])
    return row


def _row(item: Carrier | Gateway, names: tuple[str, ...]) -> dict[str, Any]:
    row = {name: getattr(item, name) for name in names if name not in _CONVERTED}
    row["created_at"] = to_micros(item.created_at)
    row["updated_at"] = to_micros(item.updated_at)
    if isinstance(item, Carrier):
        row |= {name: ",".join(getattr(item, name)) for name in _LISTS}
    return row


def _carrier(connection: Connection, row: Row[Any]) -> Carrier:
    values = {name: getattr(row, name) for name in _CARRIER_FIELDS if name not in _CONVERTED}
    for name in _LISTS:
        text = getattr(row, name)
        values[name] = tuple(text.split(",")) if text else ()
    for name in _SECRETS:
        values[name] = unseal(connection, carriers.c[name], row.carrier_sid, values[name])
    return Carrier(
        **values,
        created_at=to_moment(row.created_at),
        updated_at=to_moment(row.updated_at),
    )


def _gateway(row: Row[Any]) -> Gateway:
    values = {name: getattr(row, name) for name in _GATEWAY_FIELDS if name not in _CONVERTED}
    return Gateway(**values, created_at=to_moment(row.created_at), updated_at=to_moment(row.updated_at))


def count_active_calls(connection: Connection, **column: str) -> int:
    """Count the active calls with a value in one column: ``carrier_sid``, ``app_sid`` and the like."""
    ((name, value),) = column.items()
    wanted = sa.select(sa.func.count()).select_from(calls).where(calls.c.ended_at.is_(None))
    return connection.scalar(wanted.where(calls.c[name] == value)) or 0


def count_numbers(connection: Connection, carrier_sid: str) -> int:
    """Count the numbers on a carrier of an account."""
    wanted = sa.select(sa.func.count()).select_from(phone_numbers)
    mine = (phone_numbers.c.carrier_sid == carrier_sid, phone_numbers.c.deleted_at.is_(None))
    return connection.scalar(wanted.where(*mine)) or 0


def lock_application(connection: Connection, app_sid: str) -> str | None:
    """Return the account of an application, locked until the transaction ends; None if there is no such."""
    wanted = sa.select(applications.c.account_sid).where(
        applications.c.app_sid == app_sid, applications.c.deleted_at.is_(None)
    )
    return connection.scalar(wanted.with_for_update())
