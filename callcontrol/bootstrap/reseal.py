"""Check of the current key against all sealed columns, and re-encryption with it."""

from collections.abc import Iterator
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.encryption import (
    BINDINGS,
    SEALED,
    SECRETS_OF_BINDINGS,
    cipher_of,
    is_current,
    reseal,
)
from callcontrol.database.tables.secrets import secret_check
from callcontrol.database.tables.system import directory_revision
from callcontrol.errors import SecretsUnreadable

_SAMPLE: Final = "trunkline"
_ONLY: Final = 1


def sample_is_current(connection: Connection) -> bool:
    """
    Return True if the database's sample is sealed with the current key; False if it has none yet.

    Raises:
        SecretsUnreadable: The sample is sealed with a key that this process does not have.
    """
    stored = connection.scalar(sa.select(secret_check.c.sealed).where(secret_check.c.id == _ONLY))
    if stored is None:
        return False
    cipher = cipher_of(connection)
    if cipher.open(secret_check.name, stored) != _SAMPLE:
        raise SecretsUnreadable("The sample in the table secret_check is not what it has to be.")
    return cipher.is_current(stored)


def any_stale(connection: Connection) -> bool:
    """Return True if some secret is in the clear, or sealed with another key than the current one."""
    return next(_stale(connection), None) is not None


def reseal_all(connection: Connection) -> int | SecretsUnreadable:
    """
    Seal every secret with the current key.

    Returns:
        Number of resealed secrets; or, with nothing changed, the error of one sealed with a missing key.
    """
    # Every writer of a row with a secret takes this lock first, so no change is overwritten.
    connection.execute(sa.select(directory_revision.c.revision).with_for_update())
    try:
        sample_is_current(connection)
        stale = [
            (column, row, reseal(connection, column, row, stored))
            for column, row, stored in _stale(connection)
        ]
    except SecretsUnreadable as error:
        return error
    for column, row, sealed in stale:
        connection.execute(sa.update(column.table).where(_key(column) == row).values({column: sealed}))
    sample = cipher_of(connection).seal(secret_check.name, _SAMPLE)
    if connection.execute(sa.update(secret_check).values(sealed=sample)).rowcount == 0:
        connection.execute(sa.insert(secret_check).values(id=_ONLY, sealed=sample))
    return len(stale)


def _stale(connection: Connection) -> Iterator[tuple[sa.Column[Any], str, str]]:
    for column in SEALED:
        yield from _stale_of(connection, column, column.is_not(None))
    for column in BINDINGS:
        named = [column.contains(f'"{name}"') for name in SECRETS_OF_BINDINGS]
        yield from _stale_of(connection, column, sa.or_(*named))


def _stale_of(
    connection: Connection, column: sa.Column[Any], wanted: sa.ColumnElement[bool]
) -> Iterator[tuple[sa.Column[Any], str, str]]:
    for row, stored in connection.execute(sa.select(_key(column), column).where(wanted)):
        if not is_current(connection, column, stored):
            yield column, row, stored


def _key(column: sa.Column[Any]) -> sa.Column[Any]:
    (key,) = column.table.primary_key.columns
    return key
