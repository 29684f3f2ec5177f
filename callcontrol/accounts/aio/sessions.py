"""
Sessions of the console: opened with an API key or a printed link, valid on every node of the database.

Those of operators are of no key and no account: whoever can run commands on the database makes their links.
"""

import base64
import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.accounts import store as accounts
from callcontrol.accounts.aio.keys import KeyService
from callcontrol.accounts.store import OperatorAction, OperatorSession
from callcontrol.aio.tokens import new_secret_bytes, utc_now
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import NotFound, Unauthorized, ValidationFailed
from callcontrol.models import Principal

SESSION_LIFE: Final = timedelta(hours=12)
"""Time after which a session ends in any case."""
LINK_LIFE: Final = timedelta(minutes=10)
"""Time in which a link may be used."""
MAX_SESSIONS: Final = 50
"""Sessions of one key; the oldest ends when there are more."""

OPERATOR_PREFIX: Final = "operator_"
"""Beginning of the tokens of operators; no other token of the console has its length."""

ACTIONS_KEPT: Final = timedelta(days=400)
"""Retention of what operators did."""

_OPERATOR: Final = re.compile(r"[A-Za-z0-9._@-]{1,64}")
_MAX_PATH_CHARS: Final = 300
_TOKEN_BYTES: Final = 32
_TOKEN_CHARS: Final = 43


@dataclass(frozen=True, slots=True)
class ConsoleSessions:
    """
    Sessions of people who are signed in to the console.

    Only hashes of tokens are stored. A session has the rights of its key at the time of each request, so it
    ends when the key is revoked.
    """

    database: Database
    writer: Writer
    keys: KeyService

    async def make_link(self, key_id: str) -> str:
        """Make the token of a link that opens one session with a key, within ``LINK_LIFE``."""
        token, now = _new_token(), utc_now()
        token_hash = _hash(token)

        def write(connection: Connection) -> None:
            if not accounts.has_token(connection, token_hash):
                accounts.insert_token(connection, token_hash, "link", key_id, now, now + LINK_LIFE)

        await self.writer.commit(write)
        return token

    async def open(self, key: str) -> str:
        """
        Open a session with an API key; returns the session's token.

        Raises:
            Unauthorized: The key is malformed, unknown or revoked.
        """
        principal = await self.keys.authenticate(key)
        token = _new_token()
        await self.writer.commit(lambda connection: _begin(connection, token, principal.key_id))
        return token

    async def redeem(self, link: str) -> str:
        """
        Open a session with the token of a link, which is used up; returns the session's token.

        Raises:
            Unauthorized: The link was used, has expired or was never made, or its key is revoked.
        """
        refusal = Unauthorized("This link has been used, or is older than ten minutes.")
        if len(link) != _TOKEN_CHARS:
            raise refusal
        token, link_hash = _new_token(), _hash(link)

        def write(connection: Connection) -> Unauthorized | None:
            # The session may exist: the result of a first commit can be lost.
            if accounts.has_token(connection, _hash(token)):
                return None
            key_id = accounts.use_link(connection, link_hash, utc_now())
            if key_id is None:
                return refusal
            _begin(connection, token, key_id)
            return None

        await self.writer.commit(write)
        await self.principal(token)
        return token

    async def principal(self, token: str) -> Principal:
        """
        Return the principal of the key of a session.

        Raises:
            Unauthorized: The session has ended, or its key is revoked.
        """
        ended = Unauthorized("You are signed out; sign in again.")
        if len(token) != _TOKEN_CHARS:
            raise ended
        token_hash, now = _hash(token), utc_now()
        key_hash = await self.database.look_up(
            lambda connection: accounts.key_hash_of(connection, token_hash, "session", now)
        )
        if key_hash is None:
            raise ended
        return await self.keys.authenticate_hash(key_hash)

    async def close(self, token: str) -> None:
        """End a session, if it exists."""
        await self.writer.commit(lambda connection: accounts.delete_token(connection, _hash(token)))

    async def sweep(self) -> int:
        """Delete expired sessions and links; returns their number."""
        now = utc_now()
        return await self.writer.commit(lambda connection: accounts.delete_expired_tokens(connection, now))


@dataclass(frozen=True, slots=True)
class OperatorSessions:
    """
    Sessions of operators, who see all accounts, and act in one that they choose.

    Tokens begin with ``OPERATOR_PREFIX``. A session ends with its time, by sign-out, or when all of its
    operator are ended.
    """

    database: Database
    writer: Writer

    async def make_link(self, operator: str) -> str:
        """
        Make the token of a link that opens one session of an operator, within ``LINK_LIFE``.

        Raises:
            ValidationFailed: The name is not of 1 to 64 letters, digits, dots, dashes, underscores or ``@``.
        """
        if _OPERATOR.fullmatch(operator) is None:
            raise ValidationFailed.of("operator", "must be 1 to 64 letters, digits, dots, dashes, _ or @")
        token, now = OPERATOR_PREFIX + _new_token(), utc_now()
        await self.writer.commit(
            lambda connection: accounts.insert_operator_token(
                connection, _hash(token), "link", operator, now, now + LINK_LIFE
            )
        )
        return token

    async def redeem(self, link: str) -> str:
        """
        Open a session with the token of a link, which is used up; returns the session's token.

        Raises:
            Unauthorized: The link was used, has expired or was never made.
        """
        token, now = OPERATOR_PREFIX + _new_token(), utc_now()

        def write(connection: Connection) -> bool:
            # The session may exist: the result of a first commit can be lost.
            if accounts.operator_session(connection, _hash(token), "session", now) is not None:
                return True
            found = accounts.operator_session(connection, _hash(link), "link", now)
            # Another node may use it in the same moment.
            if found is None or not accounts.delete_operator_token(connection, _hash(link)):
                return False
            accounts.insert_operator_token(
                connection, _hash(token), "session", found.operator, now, now + SESSION_LIFE
            )
            return True

        if len(link) != len(token) or not await self.writer.commit(write):
            raise Unauthorized("This link has been used, or is older than ten minutes.")
        return token

    async def find(self, token: str) -> OperatorSession:
        """
        Return the operator of a session, and the account that it is in.

        Raises:
            Unauthorized: The session has ended.
        """
        now = utc_now()
        found = await self.database.look_up(
            lambda connection: accounts.operator_session(connection, _hash(token), "session", now)
        )
        if found is None:
            raise Unauthorized("You are signed out; sign in again with a new link.")
        return found

    async def choose(self, token: str, account_sid: str | None) -> None:
        """
        Enter an account with a session, or leave it for all accounts.

        Raises:
            NotFound: There is no such account.
        """

        def write(connection: Connection) -> bool:
            if account_sid is not None and accounts.get(connection, account_sid) is None:
                return False
            accounts.choose_account(connection, _hash(token), account_sid)
            return True

        if not await self.writer.commit(write):
            raise NotFound("There is no such account.")

    async def close(self, token: str) -> None:
        """End a session, if it exists."""
        token_hash = _hash(token)
        await self.writer.commit(lambda connection: accounts.delete_operator_token(connection, token_hash))

    async def end(self, operator: str) -> int:
        """End all sessions and links of an operator; returns their number."""
        return await self.writer.commit(lambda connection: accounts.delete_operator(connection, operator))

    async def note(self, operator: str, account_sid: str, path: str) -> int:
        """Record a form of an operator, before it is done; returns the number of the entry."""
        action = OperatorAction(operator, account_sid, path[:_MAX_PATH_CHARS], utc_now())
        return await self.writer.commit(lambda connection: accounts.insert_action(connection, action))

    async def withdraw(self, number: int) -> None:
        """Delete an entry of the record, of a form that another node has recorded."""
        await self.writer.commit(lambda connection: accounts.delete_action(connection, number))

    async def actions(self, limit: int) -> Sequence[OperatorAction]:
        """Newest actions of all operators, newest first."""
        return await self.database.read(lambda connection: accounts.newest_actions(connection, limit))

    async def sweep(self) -> int:
        """Delete expired sessions and links, and old actions; returns their number."""
        now = utc_now()
        return await self.writer.commit(
            lambda connection: accounts.delete_old_of_operators(connection, now, now - ACTIONS_KEPT)
        )


def _begin(connection: Connection, token: str, key_id: str) -> None:
    now, token_hash = utc_now(), _hash(token)
    if not accounts.has_token(connection, token_hash):
        accounts.insert_token(connection, token_hash, "session", key_id, now, now + SESSION_LIFE)
        accounts.delete_older_sessions(connection, key_id, MAX_SESSIONS)


def _new_token() -> str:
    return base64.urlsafe_b64encode(new_secret_bytes(_TOKEN_BYTES)).rstrip(b"=").decode()


def _hash(token: str) -> str:
    # As for API keys: 256 random bits need no slow hash.
    return hashlib.sha256(token.encode(errors="replace")).hexdigest()
