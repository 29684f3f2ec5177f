"""Accounts, API keys, and sessions of the console, of keys and of operators."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.encryption import seal, unseal
from callcontrol.database.notifications import KEY, notify
from callcontrol.database.rows import JSON_TUPLE, Codec, Part, Row, ValueTable, count
from callcontrol.database.statements import to_micros, to_micros_or_none, to_moment, to_moment_or_none
from callcontrol.database.tables.accounts import (
    accounts,
    api_keys,
    console_sessions,
    operator_actions,
    operator_sessions,
)
from callcontrol.models import Account, ApiKey, Service, StreamSecret

_STREAM_SECRET: Final = accounts.c.stream_secret
_FORMER_SECRET: Final = accounts.c.former_stream_secret


def _stream_columns(connection: Connection, account: Account) -> Mapping[str, Any]:
    sid, made = account.account_sid, account.stream_secret
    return {
        "stream_secret": seal(connection, _STREAM_SECRET, sid, made.secret if made else None),
        "stream_signed_since": to_micros(made.made_at) if made else None,
        "former_stream_secret": seal(connection, _FORMER_SECRET, sid, made.former if made else None),
        "former_signature_until": to_micros_or_none(made.former_until if made else None),
    }


def _stream_secret(connection: Connection, row: Row) -> StreamSecret | None:
    secret = unseal(connection, _STREAM_SECRET, row["account_sid"], row["stream_secret"])
    if secret is None:
        return None
    return StreamSecret(
        secret,
        to_moment(row["stream_signed_since"]),
        unseal(connection, _FORMER_SECRET, row["account_sid"], row["former_stream_secret"]),
        to_moment_or_none(row["former_signature_until"]),
    )


_STREAM_SETTINGS: Final = ("stream_protocol", "stream_secret")
_WEBHOOK_SECRETS: Final = ("webhook_secret", "former_webhook_secret", "former_webhook_until")
_ACCOUNTS: Final = ValueTable(
    accounts,
    Account,
    order=(accounts.c.created_at,),
    fixed=("created_at", *_WEBHOOK_SECRETS, *_STREAM_SETTINGS),
    parts={"stream_secret": Part(_stream_columns, _stream_secret)},
)
_KEYS: Final = ValueTable(
    api_keys,
    ApiKey,
    order=(api_keys.c.created_at,),
    codecs={"scopes": JSON_TUPLE, "environment": Codec(str, lambda stored: stored or "live")},
)

insert, update, get, every = _ACCOUNTS.insert, _ACCOUNTS.update, _ACCOUNTS.get, _ACCOUNTS.all


def set_streams(connection: Connection, account: Account, revision: int) -> None:
    """Write an account's settings for streams to voice agents."""
    _ACCOUNTS.update(connection, account, revision, *_STREAM_SETTINGS, "updated_at")


def set_webhook_secrets(connection: Connection, account: Account, revision: int) -> None:
    """Write an account's webhook secrets."""
    _ACCOUNTS.update(connection, account, revision, *_WEBHOOK_SECRETS, "updated_at")


def any_exists(connection: Connection) -> bool:
    """Return True if any account exists."""
    return connection.scalar(sa.select(accounts.c.account_sid).limit(1)) is not None


def changed_since(connection: Connection, seen: int) -> list[Account]:
    """Accounts changed after a revision of the directory."""
    return _ACCOUNTS.all(connection, accounts.c.revision > seen)


def insert_key(connection: Connection, key: ApiKey, key_hash: str) -> None:
    """Write a new key by its hash."""
    _KEYS.insert(connection, key, key_hash=key_hash)
    notify(connection, KEY, key.key_id)


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
    row = (
        connection.execute(
            sa.select(
                api_keys,
                accounts.c.is_active,
                accounts.c.requests_per_minute,
                accounts.c.assistant_requests_per_minute,
            )
            .join(accounts, accounts.c.account_sid == api_keys.c.account_sid)
            .where(api_keys.c.key_hash == key_hash)
        )
        .mappings()
        .first()
    )
    if row is None:
        return None
    return StoredKey(
        _KEYS.value_of(connection, row),
        row["key_hash"],
        row["is_active"],
        row["requests_per_minute"],
        row["assistant_requests_per_minute"],
    )


def key_of(connection: Connection, account_sid: str, key_id: str) -> ApiKey | None:
    """Get a key of the account, or None."""
    return _KEYS.first(connection, api_keys.c.key_id == key_id, api_keys.c.account_sid == account_sid)


def keys_of(connection: Connection, account_sid: str) -> list[ApiKey]:
    """List the account's keys, oldest first, revoked ones included."""
    return _KEYS.all(connection, api_keys.c.account_sid == account_sid)


def valid_keys(
    connection: Connection, account_sid: str, now: datetime, *, offset: int, limit: int
) -> tuple[list[ApiKey], int]:
    """Page of the account's valid keys, newest first, and their total number."""
    order = (api_keys.c.created_at.desc(), api_keys.c.key_id.desc())
    return _KEYS.page(connection, *_valid(account_sid, now), order=order, offset=offset, limit=limit)


def count_valid_keys(connection: Connection, account_sid: str, service: Service, now: datetime) -> int:
    """Count the account's valid keys of a service."""
    return count(connection, api_keys, *_valid(account_sid, now), api_keys.c.service == service)


def _valid(account_sid: str, now: datetime) -> tuple[sa.ColumnElement[bool], ...]:
    """Conditions of the account's valid keys; a key that was rotated is valid until its end."""
    ends = api_keys.c.revoked_at
    return (api_keys.c.account_sid == account_sid, sa.or_(ends.is_(None), ends > to_micros(now)))


def revoke_key(connection: Connection, account_sid: str, key_id: str, moment: datetime) -> bool:
    """Revoke a key from `moment` on, or from an earlier time already set; False without such a key."""
    at = to_micros(moment)
    revoked_at = api_keys.c.revoked_at
    changed = connection.execute(
        sa.update(api_keys)
        .where(api_keys.c.key_id == key_id, api_keys.c.account_sid == account_sid)
        .values(revoked_at=sa.case((revoked_at < at, revoked_at), else_=at))
    )
    notify(connection, KEY, key_id)
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
    notify(connection, KEY, key_id)
    return changed.rowcount == 1


TokenKind = Literal["link", "session"]


def insert_token(
    connection: Connection, token_hash: str, kind: TokenKind, key_id: str, now: datetime, expires_at: datetime
) -> None:
    """Write the token of a link or a session of the console, by its hash."""
    connection.execute(
        sa.insert(console_sessions).values(
            token_hash=token_hash,
            kind=kind,
            key_id=key_id,
            created_at=to_micros(now),
            expires_at=to_micros(expires_at),
        )
    )


def key_hash_of(connection: Connection, token_hash: str, kind: TokenKind, now: datetime) -> str | None:
    """Hash of the key that a valid token stands for, or None."""
    return connection.scalar(
        sa.select(api_keys.c.key_hash)
        .join(console_sessions, console_sessions.c.key_id == api_keys.c.key_id)
        .where(
            console_sessions.c.token_hash == token_hash,
            console_sessions.c.kind == kind,
            console_sessions.c.expires_at > to_micros(now),
        )
    )


def use_link(connection: Connection, token_hash: str, now: datetime) -> str | None:
    """Delete the token of a link and return its key's id; None without a valid one."""
    used = (
        sa.delete(console_sessions)
        .where(
            console_sessions.c.token_hash == token_hash,
            console_sessions.c.kind == "link",
            console_sessions.c.expires_at > to_micros(now),
        )
        .returning(console_sessions.c.key_id)
    )
    return connection.execute(used).scalars().first()


def has_token(connection: Connection, token_hash: str) -> bool:
    """Return True if a token exists."""
    found = sa.select(console_sessions.c.kind).where(console_sessions.c.token_hash == token_hash)
    return connection.scalar(found) is not None


def delete_token(connection: Connection, token_hash: str) -> None:
    """Delete a token."""
    connection.execute(sa.delete(console_sessions).where(console_sessions.c.token_hash == token_hash))


def delete_older_sessions(connection: Connection, key_id: str, kept: int) -> None:
    """Delete all but the newest sessions of a key."""
    of_key = sa.and_(console_sessions.c.key_id == key_id, console_sessions.c.kind == "session")
    newest = (
        sa.select(console_sessions.c.token_hash)
        .where(of_key)
        .order_by(console_sessions.c.created_at.desc())
        .limit(kept)
    )
    connection.execute(
        sa.delete(console_sessions).where(of_key, console_sessions.c.token_hash.not_in(newest))
    )


def delete_expired_tokens(connection: Connection, now: datetime) -> int:
    """Delete expired tokens; returns their number."""
    expired = console_sessions.c.expires_at <= to_micros(now)
    return connection.execute(sa.delete(console_sessions).where(expired)).rowcount


@dataclass(frozen=True, slots=True)
class OperatorSession:
    """Session of an operator: the name given to its link, and the account chosen, None for all."""

    operator: str
    account_sid: str | None = None


@dataclass(frozen=True, slots=True)
class OperatorAction:
    """Form that an operator has sent in an account: the path, which says what it does, and the time."""

    operator: str
    account_sid: str
    path: str
    at: datetime


def insert_operator_token(
    connection: Connection, token_hash: str, kind: TokenKind, operator: str, now: datetime, ends: datetime
) -> None:
    """Write the token of an operator's link or session, by its hash, unless it is there."""
    known = sa.select(operator_sessions.c.kind).where(operator_sessions.c.token_hash == token_hash)
    if connection.scalar(known) is None:
        connection.execute(
            sa.insert(operator_sessions).values(
                token_hash=token_hash,
                kind=kind,
                operator=operator,
                created_at=to_micros(now),
                expires_at=to_micros(ends),
            )
        )


def operator_session(
    connection: Connection, token_hash: str, kind: TokenKind, now: datetime
) -> OperatorSession | None:
    """Get what a valid token of an operator stands for, or None."""
    row = connection.execute(
        sa.select(operator_sessions.c.operator, operator_sessions.c.account_sid).where(
            operator_sessions.c.token_hash == token_hash,
            operator_sessions.c.kind == kind,
            operator_sessions.c.expires_at > to_micros(now),
        )
    ).first()
    return None if row is None else OperatorSession(row.operator, row.account_sid)


def choose_account(connection: Connection, token_hash: str, account_sid: str | None) -> None:
    """Set the account that an operator's session is in; None for all."""
    mine = operator_sessions.c.token_hash == token_hash
    connection.execute(sa.update(operator_sessions).where(mine).values(account_sid=account_sid))


def delete_operator_token(connection: Connection, token_hash: str) -> bool:
    """Delete a token of an operator; False if it is gone already."""
    mine = operator_sessions.c.token_hash == token_hash
    return connection.execute(sa.delete(operator_sessions).where(mine)).rowcount == 1


def delete_operator(connection: Connection, operator: str) -> int:
    """Delete all tokens of an operator; returns their number."""
    mine = operator_sessions.c.operator == operator
    return connection.execute(sa.delete(operator_sessions).where(mine)).rowcount


def delete_old_of_operators(connection: Connection, now: datetime, actions_before: datetime) -> int:
    """Delete expired tokens of operators, and old actions; returns their number."""
    expired = operator_sessions.c.expires_at <= to_micros(now)
    old = operator_actions.c.created_at < to_micros(actions_before)
    tokens = connection.execute(sa.delete(operator_sessions).where(expired)).rowcount
    return tokens + connection.execute(sa.delete(operator_actions).where(old)).rowcount


def insert_action(connection: Connection, action: OperatorAction) -> int:
    """Record what an operator does; returns the position in the record."""
    written = connection.execute(
        sa.insert(operator_actions).values(
            operator=action.operator,
            account_sid=action.account_sid,
            path=action.path,
            created_at=to_micros(action.at),
        )
    )
    (position,) = written.inserted_primary_key or (0,)
    return int(position)


def delete_action(connection: Connection, position: int) -> None:
    """Delete an entry of the record."""
    connection.execute(sa.delete(operator_actions).where(operator_actions.c.position == position))


def newest_actions(connection: Connection, limit: int) -> list[OperatorAction]:
    """Newest actions of all operators, newest first."""
    rows = connection.execute(
        sa.select(operator_actions).order_by(operator_actions.c.position.desc()).limit(limit)
    )
    return [
        OperatorAction(row.operator, row.account_sid, row.path, to_moment(row.created_at)) for row in rows
    ]
