"""Settings of accounts for their streams to voice agents; a running server applies them within a second."""

import base64
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from sqlalchemy.engine import Connection

from callcontrol.accounts import store as accounts
from callcontrol.accounts.aio.accounts import Refresher
from callcontrol.agents.stream_settings import check_protocol, rotated
from callcontrol.aio.tokens import new_secret_bytes, utc_now
from callcontrol.database import revisions
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import DomainError, NotFound
from callcontrol.models import Account


class StreamSettingsService:
    """The default dialect and the stream secret of accounts."""

    def __init__(self, database: Database, writer: Writer, directory: Refresher) -> None:
        self._database = database
        self._writer = writer
        self._directory = directory

    async def of(self, account_sid: str) -> Account:
        """
        The account, with its settings.

        Raises:
            NotFound: The account does not exist.
        """
        account = await self._database.look_up(lambda connection: accounts.get(connection, account_sid))
        if account is None:
            raise NotFound("There is no such account.")
        return account

    async def set_protocol(self, account_sid: str, protocol: str | None) -> Account:
        """
        Set the stream protocol used when a call names none; None for the server's default.

        Raises:
            ValidationFailed: The protocol is not supported.
            NotFound: The account does not exist.
        """
        check_protocol(protocol)
        return await self._change(
            account_sid, lambda account, now: replace(account, stream_protocol=protocol, updated_at=now)
        )

    async def rotate_secret(self, account_sid: str, overlap_s: int) -> tuple[Account, str]:
        """
        Rotate the account's stream secret; the new one cannot be shown again.

        Raises:
            ValidationFailed: The overlap is too long.
            NotFound: The account does not exist.
        """
        secret = "strsec_" + base64.b64encode(new_secret_bytes()).decode()
        account = await self._change(
            account_sid, lambda account, now: rotated(account, secret, overlap_s, now)
        )
        return account, secret

    async def _change(self, account_sid: str, change: Callable[[Account, datetime], Account]) -> Account:
        now = utc_now()

        def write(connection: Connection) -> Account | DomainError:
            # Taking the revision first prevents other changes of the account after it was read.
            revision = revisions.next_revision(connection)
            found = accounts.get(connection, account_sid)
            if found is None:
                return NotFound("There is no such account.")
            try:
                changed = change(found, now)
            except DomainError as refusal:
                return refusal
            accounts.set_streams(connection, changed, revision)
            return changed

        changed = await self._writer.commit(write)
        await self._directory.refresh()
        return changed
