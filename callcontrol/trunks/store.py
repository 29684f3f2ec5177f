"""Carriers and their gateways."""

from datetime import datetime
from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database import revisions
from callcontrol.database.rows import COMMA_TUPLE, ValueTable, count
from callcontrol.database.statements import to_micros
from callcontrol.database.tables.applications import applications
from callcontrol.database.tables.calls import calls
from callcontrol.database.tables.trunks import carriers, gateways, phone_numbers
from callcontrol.models import Carrier, Gateway

CARRIERS: Final = ValueTable(
    carriers,
    Carrier,
    called="carrier",
    order=(carriers.c.created_at, carriers.c.carrier_sid),
    codecs=dict.fromkeys(("codecs", "prefixes", "forwarded_headers", "registrars"), COMMA_TUPLE),
)
"""Carriers of all accounts and of the platform, oldest first."""

GATEWAYS: Final = ValueTable(
    gateways,
    Gateway,
    order=(gateways.c.priority, gateways.c.created_at, gateways.c.gateway_sid),
    fixed=("carrier_sid", "created_at"),
)
"""Gateways of all carriers, preferred first."""


def gateways_of(connection: Connection, carrier_sid: str) -> list[Gateway]:
    """Gateways of a carrier, preferred first."""
    return GATEWAYS.all(connection, gateways.c.carrier_sid == carrier_sid, *GATEWAYS.live)


def platform_carrier_exists(connection: Connection) -> bool:
    """Return True if the platform has an active carrier to provision numbers on."""
    found = connection.scalar(
        sa.select(carriers.c.carrier_sid)
        .where(carriers.c.account_sid.is_(None), carriers.c.is_active, carriers.c.deleted_at.is_(None))
        .limit(1)
    )
    return found is not None


def delete_carrier(connection: Connection, carrier_sid: str, now: datetime) -> None:
    """Delete a carrier with its gateways."""
    revision = revisions.next_revision(connection)
    connection.execute(
        sa.update(gateways)
        .where(gateways.c.carrier_sid == carrier_sid, *GATEWAYS.live)
        .values(deleted_at=to_micros(now), revision=revision)
    )
    # The row stays for the call records that name it; its passwords are no longer needed.
    forgotten = {"register_password": None, "inbound_auth_password": None}
    CARRIERS.delete(connection, carrier_sid, now, revision, **forgotten)


def count_active_calls(connection: Connection, **column: str) -> int:
    """Count the active calls with a value in one column: ``carrier_sid``, ``app_sid`` and the like."""
    ((name, value),) = column.items()
    return count(connection, calls, calls.c.ended_at.is_(None), calls.c[name] == value)


def count_numbers(connection: Connection, carrier_sid: str) -> int:
    """Count the numbers on a carrier of an account."""
    mine = (phone_numbers.c.carrier_sid == carrier_sid, phone_numbers.c.deleted_at.is_(None))
    return count(connection, phone_numbers, *mine)


def lock_application(connection: Connection, app_sid: str) -> str | None:
    """Return the account of an application, locked until the transaction ends; None if there is no such."""
    wanted = sa.select(applications.c.account_sid).where(
        applications.c.app_sid == app_sid, applications.c.deleted_at.is_(None)
    )
    return connection.scalar(wanted.with_for_update())
