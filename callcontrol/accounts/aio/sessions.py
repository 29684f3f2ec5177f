"""Sessions of the console: opened with an API key or a printed link, valid on every node of the database."""

import base64
import hashlib
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.accounts import store as accounts
from callcontrol.accounts.aio.keys import KeyService
from callcontrol.aio.tokens import new_secret_bytes, utc_now
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import Unauthorized
from callcontrol.models import Principal

SESSION_LIFE: Final = timedelta(hours=12)
"""Time after which a session ends in any case."""
LINK_LIFE: Final = timedelta(minutes=10)
"""Time in which a link may be used."""
MAX_SESSIONS: Final = 50
"""Sessions of one key; the oldest ends when there are more."""

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
