"""Accounts, created by the operator, each with a wallet and a first key."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy.engine import Connection

from callcontrol.accounts import store as accounts
from callcontrol.accounts.aio.keys import KeyService
from callcontrol.accounts.keys import check_account, with_new_webhook_secret
from callcontrol.aio.tokens import new_id, new_webhook_secret, utc_now
from callcontrol.database import revisions
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import DomainError, NotFound
from callcontrol.models import Account, Principal, Service
from callcontrol.wallet.store import ledger

log = logging.getLogger(__name__)


class AccountService:
    """Accounts of customers; ``refresh`` applies a change to the directory of this process."""

    def __init__(
        self,
        database: Database,
        writer: Writer,
        keys: KeyService,
        refresh: Callable[[], Awaitable[None]],
    ) -> None:
        self._database = database
        self._writer = writer
        self._keys = keys
        self._refresh = refresh

    async def create(
        self,
        name: str,
        balance_paise: int = 0,
        kyc: bool = False,
        max_cps: int = 10,
        max_calls: int = 100,
        *,
        service: Service = "platform",
        scopes: Sequence[str] | None = None,
    ) -> tuple[Account, str]:
        """
        Create an account with a wallet and a first key, which is returned only here.

        The key is of ``service``, with its default scopes unless ``scopes`` names others.

        Raises:
            ValidationFailed: With every wrong field.
        """
        now = utc_now()
        account = Account(
            account_sid=new_id(),
            name=name,
            created_at=now,
            updated_at=now,
            kyc_complete=kyc,
            max_cps=max_cps,
            max_calls=max_calls,
            webhook_secret=new_webhook_secret(),
        )
        check_account(account, balance_paise)
        account = replace(account, name=name.strip())
        record, key, key_hash = self._keys.make(account.account_sid, service, scopes)

        def write(connection: Connection) -> None:
            accounts.insert(connection, account)
            ledger.create(connection, account.account_sid, now)
            if balance_paise:
                ledger.top_up(connection, account.account_sid, balance_paise, now, note="opening balance")
            accounts.insert_key(connection, record, key_hash)

        await self._writer.commit(write)
        await self._refresh()
        return account, key

    async def update(self, account_sid: str, changes: Mapping[str, Any]) -> Account:
        """
        Change attributes of an account; a running server applies them within a second.

        Raises:
            ValidationFailed: With every wrong field.
            NotFound: There is no such account.
        """

        def change(account: Account, now: datetime) -> Account:
            changed = replace(account, **changes, updated_at=now)
            check_account(changed)
            return changed

        return await self.change(account_sid, change)

    async def change(
        self,
        account_sid: str,
        change: Callable[[Account, datetime], Account],
        store: Callable[[Connection, Account, int], None] = accounts.update,
    ) -> Account:
        """
        Store the result of ``change``, unless it raises a ``DomainError``.

        Raises:
            NotFound: There is no such account.
        """
        now = utc_now()

        def write(connection: Connection) -> Account | DomainError:
            # Taking the revision first locks the account against changes after it is read.
            revision = revisions.next_revision(connection)
            found = accounts.get(connection, account_sid)
            if found is None:
                return NotFound("There is no such account.")
            try:
                changed = change(found, now)
            except DomainError as refusal:
                return refusal
            store(connection, changed, revision)
            return changed

        changed = await self._writer.commit(write)
        await self._refresh()
        return changed

    async def rotate_webhook_secret(self, principal: Principal, overlap_s: int) -> tuple[Account, str]:
        """
        Replace the secret that signs the account's webhooks; the new one is returned only here.

        The previous secret signs beside it for ``overlap_s``. Other processes sign with the new one within a
        second.

        Raises:
            ValidationFailed: The overlap is too long.
        """
        secret = new_webhook_secret()
        changed = await self.change(
            principal.account_sid,
            lambda account, now: with_new_webhook_secret(account, secret, overlap_s, now),
            accounts.set_webhook_secrets,
        )
        log.info(
            "the key %s rotated the webhook secret, with an overlap of %d s",
            principal.key_id,
            overlap_s,
            extra={"account_sid": principal.account_sid},
        )
        return changed, secret

    async def get(self, account_sid: str) -> Account:
        """
        Get an account.

        Raises:
            NotFound: There is no such account.
        """
        account = await self._database.look_up(lambda connection: accounts.get(connection, account_sid))
        if account is None:
            raise NotFound("There is no such account.")
        return account

    async def list(self) -> list[Account]:
        """List all accounts, oldest first."""
        return await self._database.read(accounts.every)

    async def any(self) -> bool:
        """Return True if any account exists."""
        return await self._database.look_up(accounts.any_exists)
