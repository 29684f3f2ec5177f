"""Table of open sessions, with limits per account and server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from api.mcp.asgi import Bridge
from callcontrol.errors import NotFound, RateLimited, ServiceUnavailable
from callcontrol.models import Principal

__all__ = ["MAX_SESSIONS", "MAX_SESSIONS_OF_ACCOUNT", "Session", "Sessions"]

MAX_SESSIONS = 1000
MAX_SESSIONS_OF_ACCOUNT = 50
IDLE_S = 30 * 60.0


@dataclass(slots=True, eq=False)
class Session:
    """
    One session; it belongs to the key that opened it.

    Attributes:
        session_id: Value of ``Mcp-Session-Id``; None until it is open.
        in_flight: Number of its requests in progress, including streams.
        idle_since_s: Monotonic time at which its latest request ended.
        stream: Its open stream, for notifications to its client.
        tell: Notifies its client that the tools have changed; None before the client's `initialized`.
    """

    account_sid: str
    key_id: str
    idle_since_s: float
    session_id: str | None = None
    in_flight: int = 0
    stream: Bridge | None = None
    tell: Callable[[], Awaitable[None]] | None = None


class Sessions:
    """Bookkeeping of a process's sessions; the caller ends those that `begin` and `idle` return."""

    def __init__(
        self,
        monotonic: Callable[[], float],
        *,
        most: int = MAX_SESSIONS,
        most_of_account: int = MAX_SESSIONS_OF_ACCOUNT,
        idle_s: float = IDLE_S,
    ) -> None:
        self._monotonic = monotonic
        self._most = most
        self._most_of_account = most_of_account
        self._idle_s = idle_s
        self._opening: set[Session] = set()
        self._open: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._open)

    def begin(self, principal: Principal) -> tuple[Session, str | None]:
        """
        Reserve a new session, and return the id of the session that must end for it, if any.

        At the limit of the account, its longest idle session must end; at the limit of the server, the
        longest idle of all.

        Raises:
            RateLimited: The account has its maximum, and all of them are in use.
            ServiceUnavailable: The server has its maximum, and all of them are in use.
        """
        own = [one for one in self._all() if one.account_sid == principal.account_sid]
        displaced: Session | None = None
        if len(own) >= self._most_of_account:
            displaced = _longest_idle(own)
            if displaced is None:
                message = f"All {len(own)} sessions of this account are in use; end one with DELETE."
                raise RateLimited(message, retry_after_s=60)
        elif sum(1 for _ in self._all()) >= self._most:
            displaced = _longest_idle(self._open.values())
            if displaced is None:
                raise ServiceUnavailable("The server has no room for another session.", retry_after_s=60)
        session = Session(principal.account_sid, principal.key_id, self._monotonic(), in_flight=1)
        self._opening.add(session)
        if displaced is None or displaced.session_id is None:
            return session, None
        self.end(displaced.session_id)
        return session, displaced.session_id

    def opened(self, session: Session, session_id: str) -> None:
        """Register a reserved session under its id; the client may use it from now on."""
        session.session_id = session_id
        self._open[session_id] = session

    def begun(self, session: Session) -> None:
        """Record that the opening request has ended; a session without an id is dropped."""
        self._opening.discard(session)
        self._rest(session)

    def find(self, session_id: str, principal: Principal) -> Session:
        """
        Return a session by its id.

        Raises:
            NotFound: The key has no session of this id.
        """
        session = self._open.get(session_id)
        if session is None or session.key_id != principal.key_id:
            raise NotFound("There is no such session of this key; open one with initialize.")
        return session

    @contextmanager
    def using(self, session: Session) -> Iterator[None]:
        """Mark a session as in use for the time of a request."""
        session.in_flight += 1
        try:
            yield
        finally:
            self._rest(session)

    def end(self, session_id: str) -> None:
        """Remove a session. Idempotent."""
        self._open.pop(session_id, None)

    def idle(self) -> list[str]:
        """Ids of the sessions that have been idle for too long."""
        before = self._monotonic() - self._idle_s
        return [name for name, one in self._open.items() if not one.in_flight and one.idle_since_s <= before]

    def of_account(self, account_sid: str) -> list[Session]:
        """The open sessions of an account."""
        return [one for one in self._open.values() if one.account_sid == account_sid]

    def _all(self) -> Iterator[Session]:
        yield from self._open.values()
        yield from (one for one in self._opening if one.session_id is None)

    def _rest(self, session: Session) -> None:
        session.in_flight -= 1
        session.idle_since_s = self._monotonic()


def _longest_idle(sessions: Iterable[Session]) -> Session | None:
    """Least recently used session without a request in progress."""
    free = [one for one in sessions if not one.in_flight]
    return min(free, key=lambda one: one.idle_since_s, default=None)
