"""What a session knows of the challenges it met: answered once, then ahead of being asked (RFC 3261 22)."""

from collections.abc import Callable

from sip.digest import Challenge, Credentials, answer_challenge, choose_challenge, parse_challenges
from sip.message import Response
from sip.uri import SipUri

__all__ = ["Authenticator"]

_HEADERS = {401: ("WWW-Authenticate", "Authorization"), 407: ("Proxy-Authenticate", "Proxy-Authorization")}


class _Answered:
    """One challenge and how many requests were sent with its nonce."""

    __slots__ = ("challenge", "count")

    def __init__(self, challenge: Challenge) -> None:
        self.challenge = challenge
        self.count = 0


class Authenticator:
    """
    The digest state of one session.

    Servers and proxies may both challenge, each once; a second challenge of the same one means that
    the password was refused, unless it says that only the nonce was stale.
    """

    __slots__ = ("_answered", "_credentials", "_token")

    def __init__(self, credentials: Credentials, token: Callable[[], str]) -> None:
        self._credentials = credentials
        self._token = token
        self._answered: dict[int, _Answered] = {}

    def learn(self, response: Response) -> bool:
        """Take a 401 or 407; True when the request is worth sending again."""
        names = _HEADERS.get(response.status)
        if names is None:
            return False
        challenges = parse_challenges(response.headers.get_all(names[0]))
        challenge = choose_challenge(challenges, self._credentials)
        known = self._answered.get(response.status)
        if challenge is None or (known is not None and not self._is_fresh(known, challenge)):
            return False
        self._answered[response.status] = _Answered(challenge)
        return True

    def headers(self, method: str, uri: SipUri, body: bytes) -> list[tuple[str, str]]:
        """The header fields that answer all challenges so far, for one request."""
        fields: list[tuple[str, str]] = []
        for status, answered in self._answered.items():
            answered.count += 1
            value = answer_challenge(
                answered.challenge, self._credentials, method, str(uri), body, self._token(), answered.count
            )
            fields.append((_HEADERS[status][1], value))
        return fields

    @staticmethod
    def _is_fresh(known: _Answered, challenge: Challenge) -> bool:
        # A nonce that goes stale before its first use would make an endless exchange.
        return challenge.stale and known.count > 0 and known.challenge.nonce != challenge.nonce
