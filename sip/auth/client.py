"""Digest authentication of the client: answers challenges, then authenticates preemptively (RFC 3261 22)."""

from collections.abc import Callable

from sip.auth.digest import Challenge, Credentials, answer_challenge, choose_challenges, parse_challenges
from sip.message.message import Response
from sip.message.uri import SipUri

__all__ = ["Authenticator"]

_HEADERS = {401: ("WWW-Authenticate", "Authorization"), 407: ("Proxy-Authenticate", "Proxy-Authorization")}

_MAX_ROUNDS = 8
"""Limit of challenges answered in a row; a server may call every nonce stale."""
_MAX_CHALLENGES = 32
"""Limit of challenges read from one response."""


class _Answered:
    """One challenge, the number of requests sent with its nonce, and a flag set once one was accepted."""

    __slots__ = ("challenge", "count", "proved")

    def __init__(self, challenge: Challenge) -> None:
        self.challenge = challenge
        self.count = 0
        self.proved = False


class Authenticator:
    """
    Digest state of one session or registration.

    Servers and proxies may all challenge, each realm once. A second challenge of the same realm means that
    the password was refused, unless only the nonce was stale.

    Source: RFC 3261 22.2, 22.3.
    """

    __slots__ = ("_answered", "_credentials", "_rounds", "_token")

    def __init__(self, credentials: Credentials, token: Callable[[], str]) -> None:
        self._credentials = credentials
        self._token = token
        self._answered: dict[tuple[int, str], _Answered] = {}
        self._rounds = 0

    def learn(self, response: Response) -> bool:
        """Handle a 401 or 407; True when the request is worth sending again."""
        names = _HEADERS.get(response.status)
        if names is None or self._rounds >= _MAX_ROUNDS:
            return False
        offered = parse_challenges(response.headers.get_all(names[0])[:_MAX_CHALLENGES])
        challenges = choose_challenges(offered, self._credentials)
        if not challenges or not all(self._is_fresh(response.status, item) for item in challenges):
            return False
        self._rounds += 1
        for challenge in challenges:
            self._answered[(response.status, challenge.realm)] = _Answered(challenge)
        return True

    @property
    def ready(self) -> bool:
        """True when a challenge is stored that later requests can answer preemptively."""
        return bool(self._answered)

    def accepted(self) -> None:
        """
        Record that the server accepted the credentials.

        Many servers want a new nonce for each request and omit stale=true. A server that has accepted the
        password before is allowed to do so.
        """
        self._rounds = 0
        for answered in self._answered.values():
            answered.proved = True

    def headers(self, method: str, uri: SipUri, body: bytes) -> list[tuple[str, str]]:
        """Return the header fields that answer all challenges so far, for one request."""
        fields: list[tuple[str, str]] = []
        for (status, _), answered in self._answered.items():
            answered.count += 1
            value = answer_challenge(
                answered.challenge, self._credentials, method, str(uri), body, self._token(), answered.count
            )
            fields.append((_HEADERS[status][1], value))
        return fields

    def _is_fresh(self, status: int, challenge: Challenge) -> bool:
        known = self._answered.get((status, challenge.realm))
        if known is None or known.challenge.nonce == challenge.nonce:
            return known is None
        # A nonce that is stale before its first use would cause an endless exchange.
        return known.proved or (challenge.stale and known.count > 0)
