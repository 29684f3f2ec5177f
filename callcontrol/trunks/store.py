"""Carriers and their gateways, and the legs at those with limits."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database import revisions
from callcontrol.database.rows import COMMA_TUPLE, ValueTable, count
from callcontrol.database.statements import CLOCK_US, to_micros
from callcontrol.database.tables.applications import applications
from callcontrol.database.tables.calls import calls
from callcontrol.database.tables.trunks import carriers, gateways, phone_numbers
from callcontrol.models import Carrier, Gateway
from callcontrol.trunks.places import Limits, Place, PlaceBook, sids_of

# For PostgreSQL alone: only there is a limit counted in the database.
_PLACES: Final = sa.text(
    f"""
    SELECT wanted.sid, (SELECT count(*) FROM trunk_legs WHERE trunk_legs.sid = wanted.sid),
        coalesce(trunk_paces.paced_until, 0), {CLOCK_US}
    FROM unnest(CAST(:sids AS text[])) AS wanted(sid) LEFT JOIN trunk_paces USING (sid)
    """
)
_ADD_LEGS: Final = sa.text(
    """
    INSERT INTO trunk_legs (leg, sid, node)
    SELECT leg, sid, :node FROM unnest(CAST(:legs AS text[]), CAST(:sids AS text[])) AS new(leg, sid)
    ON CONFLICT DO NOTHING
    """
)
_PACE: Final = sa.text(
    """
    INSERT INTO trunk_paces (sid, paced_until)
    SELECT sid, paced_until
    FROM unnest(CAST(:sids AS text[]), CAST(:moments AS bigint[])) AS new(sid, paced_until)
    ON CONFLICT (sid) DO UPDATE SET paced_until = excluded.paced_until
    """
)
_REMOVE_LEGS: Final = sa.text("DELETE FROM trunk_legs WHERE leg = ANY(CAST(:legs AS text[]))")
_REMOVE_NODE: Final = sa.text("DELETE FROM trunk_legs WHERE node = :node")

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


def places(connection: Connection, choices: Iterable[Limits]) -> PlaceBook:
    """
    Legs and rates of all carriers and gateways of limits.

    What is decided by them is exact until the end of a writing transaction: others take turns with it.
    """
    rows = connection.execute(_PLACES, {"sids": sids_of(choices)}).all()
    return PlaceBook(
        {sid: legs for sid, legs, _, _ in rows},
        {sid: paced_until for sid, _, paced_until, _ in rows},
        rows[0][3] if rows else 0,
    )


def write_places(connection: Connection, node: str, book: PlaceBook) -> None:
    """Write the legs that were counted, and the rates that they used."""
    add_legs(connection, node, book.taken)
    paces = book.paces()
    if paces:
        connection.execute(_PACE, {"sids": list(paces), "moments": list(paces.values())})


def add_legs(connection: Connection, node: str, taken: Iterable[Place]) -> None:
    """Write legs of a node at the carriers and gateways that limit their number; one already there stays."""
    legs = [(leg, limit.sid) for leg, limits in taken for limit in limits if limit.max_legs is not None]
    if legs:
        values = {"node": node, "legs": [leg for leg, _ in legs], "sids": [sid for _, sid in legs]}
        connection.execute(_ADD_LEGS, values)


def remove_legs(connection: Connection, legs: Sequence[str]) -> None:
    """Delete legs that have ended."""
    connection.execute(_REMOVE_LEGS, {"legs": list(legs)})


def remove_legs_of(connection: Connection, node: str) -> None:
    """Delete all legs of a node, whose process is dead."""
    connection.execute(_REMOVE_NODE, {"node": node})
