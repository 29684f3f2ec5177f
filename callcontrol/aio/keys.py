"""API keys: made, checked on every request, revoked."""

import asyncio
import hmac
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol import accounts as rules
from callcontrol.aio.database import Database
from callcontrol.aio.tokens import new_id, new_secret_bytes, utc_now
from callcontrol.aio.writer import Writer
from callcontrol.errors import NotFound, Unauthorized
from callcontrol.models import ApiKey, Principal, Service
from callcontrol.store.repositories import accounts

CACHE_S: Final = 2.0
"""For how long a key that was revoked by another process may still be taken."""

_MAX_CACHED: Final = 10_000


class KeyService:
    """Keys of accounts; only a key's hash is stored."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._cache: OrderedDict[str, tuple[float, Principal | None]] = OrderedDict()

    def make(
        self, account_sid: str, service: Service, scopes: Sequence[str] | None
    ) -> tuple[ApiKey, str, str]:
        """
        A new key that is not stored yet: its record, the key itself and its hash.

        Raises:
            ValidationFailed: A scope does not belong to the service.
        """
        key = rules.make_key(service, new_secret_bytes())
        record = ApiKey(
            key_id=new_id(),
            account_sid=account_sid,
            service=service,
            scopes=rules.scopes_of(service, scopes),
            prefix=rules.shown_prefix(key, service),
            created_at=utc_now(),
        )
        return record, key, rules.hash_key(key)

    async def create(self, account_sid: str, service: str, scopes: Sequence[str] | None = None) -> str:
        """
        Create a key and return it: this is the only time it can be seen.

        Raises:
            ValidationFailed: There is no such service, or a scope is not one of it.
            NotFound: There is no such account.
        """
        record, key, key_hash = self.make(account_sid, rules.parse_service(service), scopes)

        def write(connection: Connection) -> NotFound | None:
            if accounts.get(connection, account_sid) is None:
                return NotFound("There is no such account.")
            accounts.insert_key(connection, record, key_hash)
            return None

        await self._writer.commit(write)
        self._cache.pop(key_hash, None)
        return key

    async def authenticate(self, key: str) -> Principal:
        """
        Who a key stands for.

        Raises:
            Unauthorized: It is malformed, unknown or revoked, or its account is not active.
        """
        rules.check_form(key)
        key_hash = rules.hash_key(key)
        now = asyncio.get_running_loop().time()
        cached = self._cache.get(key_hash)
        if cached is None or cached[0] <= now:
            cached = (now + CACHE_S, await self._look_up(key_hash))
            self._cache[key_hash] = cached
            while len(self._cache) > _MAX_CACHED:
                self._cache.popitem(last=False)
        principal = cached[1]
        if principal is None:
            raise Unauthorized("The API key is unknown or revoked; use a valid one.")
        return principal

    async def list(self, account_sid: str) -> list[ApiKey]:
        """The account's keys, oldest first, revoked ones too."""
        return await self._database.read(lambda connection: accounts.keys_of(connection, account_sid))

    async def revoke(self, account_sid: str, key_id: str) -> None:
        """
        Revoke a key: at once in this process, within ``CACHE_S`` in others.

        Raises:
            NotFound: The account has no such key.
        """
        now = utc_now()
        found = await self._writer.commit(
            lambda connection: accounts.revoke_key(connection, account_sid, key_id, now)
        )
        for key_hash, (_, principal) in list(self._cache.items()):
            if principal is not None and principal.key_id == key_id:
                del self._cache[key_hash]
        if not found:
            raise NotFound("There is no such key on the account.")

    async def _look_up(self, key_hash: str) -> Principal | None:
        found = await self._database.look_up(lambda connection: accounts.key_by_hash(connection, key_hash))
        if found is None:
            return None
        record, stored_hash, active = found
        # The index has compared them already, and what that gives away is about hashes, not keys; this
        # costs nothing and leaves no doubt.
        if not hmac.compare_digest(stored_hash, key_hash) or record.revoked_at is not None or not active:
            return None
        return Principal(record.account_sid, record.key_id, record.service, frozenset(record.scopes))
