"""API keys: creation, authentication of requests, rotation, revocation."""

import asyncio
import hmac
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.accounts import keys as rules
from callcontrol.accounts import store as accounts
from callcontrol.aio.tokens import new_id, new_secret_bytes, utc_now
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import Conflict, NotFound, ServiceUnavailable, Unauthorized
from callcontrol.models import ApiKey, Environment, Page, Principal, Service

CACHE_S: Final = 1.0
"""Time that a key revoked by another process, which does not notify this one, may be accepted, in seconds."""

MAX_CACHED: Final = 10_000
"""Keys that are remembered, invalid ones included."""

_KNOWN_WITHOUT_DATABASE_S: Final = 300.0


@dataclass(frozen=True, slots=True)
class _Known:
    """
    Cached principal of a key, None for an invalid key, and the time until it must be looked up again.

    While the database does not answer, it is valid until ``at_most_until``, later for keys without an end.
    """

    principal: Principal | None
    until: float
    at_most_until: float


class KeyService:
    """Keys of accounts; only a key's hash is stored."""

    def __init__(self, database: Database, writer: Writer) -> None:
        self._database = database
        self._writer = writer
        self._cache: OrderedDict[str, _Known] = OrderedDict()
        self._changes = 0

    @property
    def cached(self) -> int:
        """Number of keys that are remembered."""
        return len(self._cache)

    def make(
        self, account_sid: str, service: Service, scopes: Sequence[str] | None
    ) -> tuple[ApiKey, str, str]:
        """
        Create a key without storing it: its record, the key itself and its hash.

        Raises:
            ValidationFailed: A scope does not belong to the service.
        """
        return self._make(account_sid, service, rules.scopes_of(service, scopes), utc_now())

    async def create(self, account_sid: str, service: str, scopes: Sequence[str] | None = None) -> str:
        """Create a key and return it; see `issue`."""
        _, key = await self.issue(account_sid, service, scopes)
        return key

    async def issue(
        self,
        account_sid: str,
        service: str,
        scopes: Sequence[str] | None = None,
        *,
        name: str | None = None,
        environment: Environment = "live",
        at_most: int | None = None,
    ) -> tuple[ApiKey, str]:
        """
        Create a key and return its record and the key, which is returned only here.

        ``at_most`` limits the valid keys of its service on the account.

        Raises:
            ValidationFailed: There is no such service, or a scope or the environment does not belong to it.
            NotFound: There is no such account.
            Conflict: The account has the maximum number of keys.
        """
        of = rules.parse_service(service)
        rules.check_environment(of, environment)
        record, key, key_hash = self.make(account_sid, of, scopes)
        record = replace(record, name=name, environment=environment)

        def write(connection: Connection) -> NotFound | Conflict | None:
            if accounts.get(connection, account_sid) is None:
                return NotFound("There is no such account.")
            if at_most is not None:
                others = accounts.count_valid_keys(connection, account_sid, of, record.created_at)
                if others >= at_most:
                    return Conflict(f"The account has {at_most} keys of the service {of}; revoke one first.")
            accounts.insert_key(connection, record, key_hash)
            return None

        await self._writer.commit(write)
        self._cache.pop(key_hash, None)
        return record, key

    async def rotate(
        self, account_sid: str, key_id: str, overlap_s: int, *, at_most: int | None = None
    ) -> tuple[ApiKey, str, ApiKey]:
        """
        Create the successor of a key, with its service and scopes; the old key ends after `overlap_s`.

        Both changes are atomic, so repeated attempts create only one successor. ``at_most`` limits the valid
        keys of its service on the account while both keys are valid.

        Returns:
            The successor's record, the successor, and the old key's changed record.

        Raises:
            ValidationFailed: The overlap is too long.
            NotFound: The account has no such key.
            Conflict: The key is revoked, or was rotated already; or the account has the maximum number of
                keys.
        """
        rules.check_overlap(overlap_s)
        now = utc_now()
        ends_at = now + timedelta(seconds=overlap_s)
        old = await self.get(account_sid, key_id)
        record, key, key_hash = self._make(account_sid, old.service, old.scopes, now)
        record = replace(record, name=old.name, environment=old.environment)

        def write(connection: Connection) -> Conflict | None:
            # The successor may exist: the result of a first commit can be lost.
            if accounts.key_of(connection, account_sid, record.key_id) is not None:
                return None
            of = record.service
            limit = at_most if overlap_s else None
            if limit is not None and accounts.count_valid_keys(connection, account_sid, of, now) >= limit:
                return Conflict(
                    f"The account has {limit} keys of the service {of}; rotate without an overlap, or revoke"
                    " one first."
                )
            if not accounts.retire_key(connection, account_sid, key_id, ends_at):
                return Conflict("The key is revoked or was rotated already; rotate its successor.")
            accounts.insert_key(connection, record, key_hash)
            return None

        await self._writer.commit(write)
        self._cache.pop(key_hash, None)
        self._forget(key_id)
        return record, key, replace(old, revoked_at=ends_at)

    async def authenticate(self, key: str) -> Principal:
        """
        Return the principal of a key.

        Raises:
            Unauthorized: The key is malformed, unknown or revoked, or its account is not active.
        """
        rules.check_form(key)
        return await self.authenticate_hash(rules.hash_key(key))

    async def authenticate_hash(self, key_hash: str) -> Principal:
        """
        Return the principal of a key that was authenticated before, by its hash.

        Raises:
            Unauthorized: The key is unknown or revoked, or its account is not active.
        """
        now = asyncio.get_running_loop().time()
        cached = self._cache.get(key_hash)
        if cached is None or cached.until <= now:
            changes = self._changes
            cached = await self._look_up_again(key_hash, cached, now)
            if changes == self._changes:  # Otherwise the row may have been read before the change.
                self._cache[key_hash] = cached
            while len(self._cache) > MAX_CACHED:
                self._cache.popitem(last=False)
        principal = cached.principal
        if principal is None:
            raise Unauthorized("The API key is unknown or revoked; use a valid one.")
        return principal

    async def list(self, account_sid: str) -> list[ApiKey]:
        """
        List the account's keys, oldest first, revoked ones included.

        Raises:
            NotFound: There is no such account.
        """
        keys = await self._database.read(lambda connection: accounts.keys_of(connection, account_sid))
        if not keys and await self._database.look_up(lambda it: accounts.get(it, account_sid)) is None:
            raise NotFound("There is no such account.")
        return keys

    async def page(self, account_sid: str, page: int, per_page: int) -> Page[ApiKey]:
        """Page of the account's valid keys, newest first."""
        now, offset = utc_now(), (page - 1) * per_page
        items, total = await self._database.read(
            lambda connection: accounts.valid_keys(
                connection, account_sid, now, offset=offset, limit=per_page
            )
        )
        return Page(items, total, page, per_page)

    async def get(self, account_sid: str, key_id: str) -> ApiKey:
        """
        Get a key of the account, which may be revoked.

        Raises:
            NotFound: The account has no such key.
        """
        found = await self._database.look_up(
            lambda connection: accounts.key_of(connection, account_sid, key_id)
        )
        if found is None:
            raise NotFound("There is no such key on the account.")
        return found

    async def revoke(self, account_sid: str, key_id: str) -> ApiKey:
        """
        Revoke a key: at once in this process, within ``CACHE_S`` in others; on PostgreSQL as soon as they are
        notified. Repeating it changes nothing.

        Raises:
            NotFound: The account has no such key.
        """
        now = utc_now()

        def write(connection: Connection) -> ApiKey | NotFound:
            accounts.revoke_key(connection, account_sid, key_id, now)
            return accounts.key_of(connection, account_sid, key_id) or NotFound(
                "There is no such key on the account."
            )

        revoked = await self._writer.commit(write)
        self._forget(key_id)
        return revoked

    def _make(
        self, account_sid: str, service: Service, scopes: tuple[str, ...], now: datetime
    ) -> tuple[ApiKey, str, str]:
        key = rules.make_key(service, new_secret_bytes())
        record = ApiKey(
            key_id=new_id(),
            account_sid=account_sid,
            service=service,
            scopes=scopes,
            prefix=rules.shown_prefix(key, service),
            created_at=now,
        )
        return record, key, rules.hash_key(key)

    def changed(self, key_id: str) -> None:
        """Look a key up again: another process has made or changed it."""
        self._changes += 1
        for key_hash, known in list(self._cache.items()):
            # A key that was unknown may be the new one.
            if known.principal is None or known.principal.key_id == key_id:
                del self._cache[key_hash]

    def expire(self) -> None:
        """Look all keys up again, while the database answers: changes of other processes may be missed."""
        self._changes += 1
        for key_hash, known in list(self._cache.items()):
            self._cache[key_hash] = replace(known, until=float("-inf"))

    def _forget(self, key_id: str) -> None:
        self._changes += 1
        for key_hash, known in list(self._cache.items()):
            if known.principal is not None and known.principal.key_id == key_id:
                del self._cache[key_hash]

    async def _look_up_again(self, key_hash: str, known: _Known | None, now: float) -> _Known:
        try:
            principal, known_for_s = await self._look_up(key_hash)
        except ServiceUnavailable:
            if known is None or known.principal is None or known.at_most_until <= now:
                raise
            return replace(known, until=min(now + CACHE_S, known.at_most_until))
        extra_s = _KNOWN_WITHOUT_DATABASE_S if known_for_s == CACHE_S else 0.0
        return _Known(principal, now + known_for_s, now + known_for_s + extra_s)

    async def _look_up(self, key_hash: str) -> tuple[Principal | None, float]:
        """Principal of the key with a hash, and the seconds that it may be cached."""
        found = await self._database.look_up(lambda connection: accounts.key_by_hash(connection, key_hash))
        # The index lookup has compared them already, and its timing reveals hashes, not keys; the second
        # comparison costs nothing.
        if found is None or not hmac.compare_digest(found.key_hash, key_hash):
            return None, CACHE_S
        record, now = found.key, utc_now()
        left_s = None if record.revoked_at is None else (record.revoked_at - now).total_seconds()
        if not found.account_is_active or (left_s is not None and left_s <= 0.0):
            return None, CACHE_S
        principal = Principal(
            record.account_sid,
            record.key_id,
            record.service,
            rules.granted(record.service, record.scopes),
            found.requests_per_minute,
            record.environment == "sandbox",
            found.assistant_requests_per_minute,
        )
        return principal, CACHE_S if left_s is None else min(CACHE_S, left_s)
