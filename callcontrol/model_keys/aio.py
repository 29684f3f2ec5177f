"""Stored keys of vendors: created, listed, deleted, and read when a session is opened."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.database import revisions
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.database.rows import ValueTable
from callcontrol.database.tables.secrets import model_keys
from callcontrol.errors import Conflict, DomainError, NotFound
from callcontrol.model_keys.keys import MAX_MODEL_KEYS, ModelKey, new_key

_KEYS: Final = ValueTable(
    model_keys, ModelKey, called="model key", order=(model_keys.c.created_at, model_keys.c.key_id)
)


class ModelKeys:
    """The keys of vendors that accounts have stored; only the opening of a session reads one."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer

    async def create(self, account_sid: str, values: Mapping[str, Any]) -> ModelKey:
        """
        Store a key.

        Raises:
            ValidationFailed: Names every wrong, missing or unknown field.
            Conflict: The account has a key of this name, or the maximum number.
        """
        made = new_key(new_id(), account_sid, values, utc_now())

        def write(connection: Connection) -> DomainError | None:
            # The lock of all writers of secrets: see callcontrol.bootstrap.reseal.
            revisions.next_revision(connection)
            former = _named(connection, account_sid, made.name)
            if former is not None:
                # The answer to a first commit may have been lost.
                is_ours = former.key_id == made.key_id
                return None if is_ours else Conflict(f"The account has a key {made.name}; delete it first.")
            try:
                _KEYS.check_room(connection, account_sid, MAX_MODEL_KEYS)
            except Conflict as refusal:
                return refusal
            _KEYS.insert(connection, made)
            return None

        await self._writer.commit(write)
        return made

    async def list(self, account_sid: str) -> Sequence[ModelKey]:
        """The account's keys, oldest first."""
        found, _ = await self._database.read(partial(_KEYS.of_account, account_sid=account_sid))
        return found

    async def delete(self, account_sid: str, key_id: str) -> None:
        """
        Delete a key; sessions that are open go on.

        Raises:
            NotFound: There is no such key.
            Forbidden: It is another account's.
        """

        def write(connection: Connection) -> DomainError | None:
            revisions.next_revision(connection)
            try:
                _KEYS.owned(connection, account_sid, key_id, lock=True)
            except DomainError as refusal:
                return refusal
            connection.execute(sa.delete(model_keys).where(model_keys.c.key_id == key_id))
            return None

        await self._writer.commit(write)

    async def secret(self, account_sid: str, name: str) -> str:
        """
        Return the key of a name, for the vendor's server alone.

        Raises:
            NotFound: The account has none of this name.
        """
        found = await self._database.look_up(partial(_named, account_sid=account_sid, name=name))
        if found is None:
            raise NotFound(f"There is no stored key {name}.")
        return found.secret


def _named(connection: Connection, account_sid: str, name: str) -> ModelKey | None:
    return _KEYS.first(connection, model_keys.c.account_sid == account_sid, model_keys.c.name == name)
