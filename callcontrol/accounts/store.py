"""Accounts and API keys."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Row

from callcontrol.database.encryption import seal, unseal
from callcontrol.database.tables.accounts import accounts, api_keys
from callcontrol.database.values import (
    pack,
    to_micros,
    to_micros_or_none,
    to_moment,
    to_moment_or_none,
    unpack,
)
from callcontrol.models import Account, ApiKey, StreamSecret

_SECRET: Final = accounts.c.webhook_secret
_STREAM_SECRET: Final = accounts.c.stream_secret
_FORMER_SECRET: Final = accounts.c.former_stream_secret


def insert(connection: Connection, account: Account, revision: int) -> None:
    """Write a new account."""
    connection.execute(
        sa.insert(accounts).values(
            account_sid=account.account_sid,
            name=account.name,
            is_active=account.is_active,
            kyc_complete=account.kyc_complete,
            max_cps=account.max_cps,
            max_calls=account.max_calls,
            requests_per_minute=account.requests_per_minute,
            max_spend_paise_per_hour=account.max_spend_paise_per_hour,
            recording_retention_days=account.recording_retention_days,
            assistant_requests_per_minute=account.assistant_requests_per_minute,
            webhook_secret=seal(connection, _SECRET, account.account_sid, account.webhook_secret),
            created_at=to_micros(account.created_at),
            updated_at=to_micros(account.updated_at),
            revision=revision,
        )
    )


def get(connection: Connection, account_sid: str) -> Account | None:
    """Get an account, or None."""
    row = connection.execute(sa.select(accounts).where(accounts.c.account_sid == account_sid)).first()
    return _account(connection, row) if row is not None else None


def update(connection: Connection, account: Account, revision: int) -> None:
    """Write the state of an account."""
    connection.execute(
        sa.update(accounts)
        .where(accounts.c.account_sid == account.account_sid)
        .values(
            name=account.name,
            is_active=account.is_active,
            kyc_complete=account.kyc_complete,
            max_cps=account.max_cps,
            max_calls=account.max_calls,
            requests_per_minute=account.requests_per_minute,
            max_spend_paise_per_hour=account.max_spend_paise_per_hour,
            recording_retention_days=account.recording_retention_days,
            assistant_requests_per_minute=account.assistant_requests_per_minute,
            updated_at=to_micros(account.updated_at),
            revision=revision,
        )
    )


def set_streams(connection: Connection, account: Account, revision: int) -> None:
    """Write an account's settings for streams to voice agents."""
    sid, made = account.account_sid, account.stream_secret
    connection.execute(
        sa.update(accounts)
        .where(accounts.c.account_sid == sid)
        .values(
            stream_protocol=account.stream_protocol,
            stream_secret=seal(connection, _STREAM_SECRET, sid, made.secret if made else None),
            stream_signed_since=to_micros(made.made_at) if made else None,
            former_stream_secret=seal(connection, _FORMER_SECRET, sid, made.former if made else None),
            former_signature_until=to_micros_or_none(made.former_until if made else None),
            updated_at=to_micros(account.updated_at),
            revision=revision,
        )
    )


def every(connection: Connection) -> list[Account]:
    """All accounts, oldest first."""
    return [
        _account(connection, row)
        for row in connection.execute(sa.select(accounts).order_by(accounts.c.created_at))
    ]


def any_exists(connection: Connection) -> bool:
    """Return True if any account exists."""
    return connection.scalar(sa.select(accounts.c.account_sid).limit(1)) is not None


def changed_since(connection: Connection, seen: int) -> Iterator[Account]:
    """Accounts changed after a revision of the directory."""
    for row in connection.execute(sa.select(accounts).where(accounts.c.revision > seen)):
        yield _account(connection, row)


def insert_key(connection: Connection, key: ApiKey, key_hash: str) -> None:
    """Write a new key by its hash."""
    connection.execute(
        sa.insert(api_keys).values(
            key_id=key.key_id,
            account_sid=key.account_sid,
            service=key.service,
            scopes=pack(list(key.scopes)),
            prefix=key.prefix,
            key_hash=key_hash,
            created_at=to_micros(key.created_at),
            revoked_at=None,
            name=key.name,
            environment=key.environment,
        )
    )


@dataclass(frozen=True, slots=True)
class StoredKey:
    """Key found by its hash, with the stored hash, and the account's state and request limits."""

    key: ApiKey
    key_hash: str
    account_is_active: bool
    requests_per_minute: int | None
    assistant_requests_per_minute: int | None


def key_by_hash(connection: Connection, key_hash: str) -> StoredKey | None:
    """Get the key with a hash, or None."""
    row = connection.execute(
        sa.select(
            api_keys,
            accounts.c.is_active,
            accounts.c.requests_per_minute,
            accounts.c.assistant_requests_per_minute,
        )
        .join(accounts, accounts.c.account_sid == api_keys.c.account_sid)
        .where(api_keys.c.key_hash == key_hash)
    ).first()
    if row is None:
        return None
    return StoredKey(
        _key(row),
        row.key_hash,
        bool(row.is_active),
        row.requests_per_minute,
        row.assistant_requests_per_minute,
    )


def key_of(connection: Connection, account_sid: str, key_id: str) -> ApiKey | None:
    """Get a key of the account, or None."""
    row = connection.execute(
        sa.select(api_keys).where(api_keys.c.key_id == key_id, api_keys.c.account_sid == account_sid)
    ).first()
    return _key(row) if row is not None else None


def keys_of(connection: Connection, account_sid: str) -> list[ApiKey]:
    """List the account's keys, oldest first, revoked ones included."""
    rows = connection.execute(
        sa.select(api_keys).where(api_keys.c.account_sid == account_sid).order_by(api_keys.c.created_at)
    )
    return [_key(row) for row in rows]


def revoke_key(connection: Connection, account_sid: str, key_id: str, moment: datetime) -> bool:
    """Revoke a key from `moment` on, or from an earlier time already set; False without such a key."""
    at = to_micros(moment)
    revoked_at = api_keys.c.revoked_at
    changed = connection.execute(
        sa.update(api_keys)
        .where(api_keys.c.key_id == key_id, api_keys.c.account_sid == account_sid)
        .values(revoked_at=sa.case((revoked_at < at, revoked_at), else_=at))
    )
    return changed.rowcount == 1


def retire_key(connection: Connection, account_sid: str, key_id: str, moment: datetime) -> bool:
    """Set the end of a key to `moment`; False if there is no such key, or it has an end already."""
    changed = connection.execute(
        sa.update(api_keys)
        .where(
            api_keys.c.key_id == key_id,
            api_keys.c.account_sid == account_sid,
            api_keys.c.revoked_at.is_(None),
        )
        .values(revoked_at=to_micros(moment))
    )
    return changed.rowcount == 1


def _account(connection: Connection, row: Row[Any]) -> Account:
    return Account(
        account_sid=row.account_sid,
        name=row.name,
        is_active=bool(row.is_active),
        kyc_complete=bool(row.kyc_complete),
        max_cps=row.max_cps,
        max_calls=row.max_calls,
        requests_per_minute=row.requests_per_minute,
        max_spend_paise_per_hour=row.max_spend_paise_per_hour,
        recording_retention_days=row.recording_retention_days,
        assistant_requests_per_minute=row.assistant_requests_per_minute,
        webhook_secret=unseal(connection, _SECRET, row.account_sid, row.webhook_secret) or "",
        stream_protocol=row.stream_protocol,
        stream_secret=_stream_secret(connection, row),
        created_at=to_moment(row.created_at),
        updated_at=to_moment(row.updated_at),
    )


def _stream_secret(connection: Connection, row: Row[Any]) -> StreamSecret | None:
    secret = unseal(connection, _STREAM_SECRET, row.account_sid, row.stream_secret)
    if secret is None:
        return None
    return StreamSecret(
        secret,
        to_moment(row.stream_signed_since),
        unseal(connection, _FORMER_SECRET, row.account_sid, row.former_stream_secret),
        to_moment_or_none(row.former_signature_until),
    )


def _key(row: Row[Any]) -> ApiKey:
    return ApiKey(
        key_id=row.key_id,
        account_sid=row.account_sid,
        service=row.service,
        scopes=tuple(unpack(row.scopes)),
        prefix=row.prefix,
        created_at=to_moment(row.created_at),
        revoked_at=to_moment_or_none(row.revoked_at),
        name=row.name,
        environment=row.environment or "live",
    )
