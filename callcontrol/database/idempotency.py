"""Idempotency keys: claims of requests, and their responses."""

from collections.abc import Callable
from datetime import datetime
from typing import Final

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.statements import Statement, insert_into, to_micros
from callcontrol.database.tables.system import idempotency_keys
from callcontrol.errors import IdempotencyConflict
from callcontrol.models import InterruptedRequest, StoredReply

_KEY: Final = (
    idempotency_keys.c.account_sid == sa.bindparam("_account_sid"),
    idempotency_keys.c.key == sa.bindparam("_key"),
)
_INSERT: Final = insert_into(idempotency_keys, ignore_conflict=True)
_FIND: Final = Statement(sa.select(idempotency_keys).where(*_KEY))
_FORGET: Final = Statement(sa.delete(idempotency_keys).where(*_KEY))
_FORGET_OLD: Final = Statement(
    sa.delete(idempotency_keys).where(
        *_KEY, idempotency_keys.c.created_at < sa.bindparam("before", type_=sa.BigInteger)
    )
)
_COMPLETE: Final = Statement(
    sa.update(idempotency_keys)
    .where(*_KEY)
    .values(status=sa.bindparam("status", type_=sa.Integer), body=sa.bindparam("body", type_=sa.LargeBinary))
)
_FORGET_EFFECT: Final = Statement(
    sa.delete(idempotency_keys).where(
        *_KEY, idempotency_keys.c.effect == sa.bindparam("effect", type_=sa.Text)
    )
)
_NOTE: Final = Statement(
    sa.update(idempotency_keys)
    .where(*_KEY, idempotency_keys.c.status.is_(None))
    .values(effect=sa.bindparam("effect", type_=sa.Text))
)


def begin(
    connection: Connection,
    key: tuple[str, str],
    endpoint: str,
    body_hash: str,
    is_same: Callable[[str], bool],
    *,
    now: datetime,
    before: datetime,
    node: str,
) -> StoredReply | IdempotencyConflict | None:
    """
    Claim a key; returns None if claimed, else the first request's response or the conflict.

    Args:
        connection: The transaction's connection.
        key: Account and key.
        endpoint: Method and path of the request; a key is for one request only.
        body_hash: Keyed digest of the request's body.
        is_same: Returns True if a stored digest is that of this body, under any key.
        now: Time of the claim.
        before: A claim older than this counts as absent.
        node: Process that runs the request.
    """
    names = {"_account_sid": key[0], "_key": key[1]}
    _FORGET_OLD.run(connection, {**names, "before": to_micros(before)})
    claimed = _INSERT.run(
        connection,
        {
            "account_sid": key[0],
            "key": key[1],
            "endpoint": endpoint,
            "body_hash": body_hash,
            "status": None,
            "body": None,
            "node": node,
            "effect": None,
            "created_at": to_micros(now),
        },
    )
    if claimed == 1:
        return None
    row = _FIND.first(connection, names)
    if row is None:
        return IdempotencyConflict("The key is being released by another request; try again.")
    if row["endpoint"] != endpoint or not is_same(row["body_hash"]):
        return used_otherwise()
    if row["status"] is None:
        return still_running()
    return StoredReply(status=row["status"], body=bytes(row["body"]))


def used_otherwise() -> IdempotencyConflict:
    """Error for a key that was used for another request, or by another API key where a secret was shown."""
    return IdempotencyConflict(
        "This Idempotency-Key was used for another request or, where the response shows a secret, by another"
        " API key; use a new one."
    )


def still_running() -> IdempotencyConflict:
    """Error for a repetition while the first request is still running."""
    return IdempotencyConflict("The first request with this Idempotency-Key is still running; try later.")


def complete(connection: Connection, key: tuple[str, str], reply: StoredReply) -> None:
    """Store the response of the request that claimed the key."""
    _COMPLETE.run(
        connection, {"_account_sid": key[0], "_key": key[1], "status": reply.status, "body": reply.body}
    )


def release(connection: Connection, key: tuple[str, str]) -> None:
    """Release the key: its request did nothing."""
    _FORGET.run(connection, {"_account_sid": key[0], "_key": key[1]})


def note_effect(connection: Connection, key: tuple[str, str], effect: str) -> None:
    """
    Record the effect of the running request that claimed a key, in the transaction of the effect.

    If its process is killed before it responds, a repetition does not have the effect again.
    """
    _NOTE.run(connection, {"_account_sid": key[0], "_key": key[1], "effect": effect})


def release_effect(connection: Connection, key: tuple[str, str], effect: str) -> None:
    """Release a key whose request had this effect, which is undone; not one that was claimed anew since."""
    _FORGET_EFFECT.run(connection, {"_account_sid": key[0], "_key": key[1], "effect": effect})


def free(connection: Connection, node: str) -> int:
    """Release keys of requests that an earlier run of this node left running without effect; their count."""
    gone = connection.execute(
        sa.delete(idempotency_keys).where(*_running(node), idempotency_keys.c.effect.is_(None))
    )
    return gone.rowcount


def interrupted(connection: Connection, node: str) -> list[InterruptedRequest]:
    """Requests that an earlier run of this node left running after they took effect."""
    rows = connection.execute(
        sa.select(
            idempotency_keys.c.account_sid,
            idempotency_keys.c.key,
            idempotency_keys.c.effect,
            idempotency_keys.c.endpoint,
        )
        .where(*_running(node), idempotency_keys.c.effect.is_not(None))
        .order_by(idempotency_keys.c.created_at)
    )
    return [InterruptedRequest(*row) for row in rows]


def purge(connection: Connection, before: datetime, limit: int) -> int:
    """Delete claims older than ``before``, up to ``limit``; returns their number."""
    old = (
        sa.select(idempotency_keys.c.account_sid, idempotency_keys.c.key)
        .where(idempotency_keys.c.created_at < to_micros(before))
        .limit(limit)
    )
    names = sa.tuple_(idempotency_keys.c.account_sid, idempotency_keys.c.key)
    return connection.execute(sa.delete(idempotency_keys).where(names.in_(old))).rowcount


def _running(node: str) -> tuple[sa.ColumnElement[bool], ...]:
    return idempotency_keys.c.node == node, idempotency_keys.c.status.is_(None)
