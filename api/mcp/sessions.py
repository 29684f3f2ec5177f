"""Which sessions are open, whose they are, and which of them have to make room."""

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
        session_id: Its name on the wire; None until it is open.
        in_flight: How many requests of it are being answered, streams among them.
        idle_since_s: When the last of them was.
        stream: Its open stream, on which its client is told things.
        tell: Has its client told that the tools have changed; None before it said that it is ready.
    """

    account_sid: str
    key_id: str
    idle_since_s: float
    session_id: str | None = None
    in_flight: int = 0
    stream: Bridge | None = None
    tell: Callable[[], Awaitable[None]] | None = None


class Sessions:
    """The sessions of a process. What has to end is only named here; its end is told by `end`."""

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
        A place for a new session, and the one that has to end for it: the account's own, if it has too many,
        else whichever has not been used for longest.

        Raises:
            RateLimited: The account has as many as it may, and all of them are in use.
            ServiceUnavailable: So has the server.
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
        """A session that was begun has a name, by which its client may use it from now on."""
        session.session_id = session_id
        self._open[session_id] = session

    def begun(self, session: Session) -> None:
        """Its opening request is answered; if it has no name by now, it has come to nothing."""
        self._opening.discard(session)
        self._rest(session)

    def find(self, session_id: str, principal: Principal) -> Session:
        """
        A session by its name.

        Raises:
            NotFound: There is none of this key.
        """
        session = self._open.get(session_id)
        if session is None or session.key_id != principal.key_id:
            raise NotFound("There is no such session of this key; open one with initialize.")
        return session

    @contextmanager
    def using(self, session: Session) -> Iterator[None]:
        """Hold a session while a request of it is answered."""
        session.in_flight += 1
        try:
            yield
        finally:
            self._rest(session)

    def end(self, session_id: str) -> None:
        """A session is over. Idempotent."""
        self._open.pop(session_id, None)

    def idle(self) -> list[str]:
        """The sessions that nobody has used for too long."""
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
    """The one that could end without anybody's request being cut, and was used least recently."""
    free = [one for one in sessions if not one.in_flight]
    return min(free, key=lambda one: one.idle_since_s, default=None)
