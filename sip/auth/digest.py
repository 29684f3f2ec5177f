"""
Digest challenges and their answers.

Source: RFC 3261 22, RFC 7616, RFC 8760.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from sip.errors import InvalidValue
from sip.message.encoding import to_bytes
from sip.message.grammar import quote
from sip.message.message import Request, Response
from sip.message.uri import SipUri

_HASHES = {"sha-512-256": "sha512_256", "sha-256": "sha256", "md5": "md5"}
"""Strongest first: of several offered algorithms the first usable one is chosen."""

_PREFERENCE = [name for name, python in _HASHES.items() if python in hashlib.algorithms_available]

ALGORITHMS = tuple(name.upper() for name in _PREFERENCE)
"""Algorithms available in this process, strongest first, as written in header fields."""

_MAX_REALMS = 4
"""Limit of challenges answered per response: few proxies on a path ask for a password."""

_PARAM = re.compile(
    r'[ \t,]*([A-Za-z0-9\-.!%*_+`\'~]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))[ \t]*(?=,|$)',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """User name and password of a trunk; with a realm, they are sent to no other realm."""

    username: str
    password: str = field(repr=False)
    realm: str | None = None


@dataclass(frozen=True, slots=True)
class Challenge:
    """
    One usable digest challenge.

    ``realm``, ``nonce`` and ``opaque`` are the text between the quotes,
    escapes included, since that text is hashed and sent back. ``algorithm``
    is as sent, None when absent (then it is MD5). ``qop`` is "auth",
    "auth-int", or None for a challenge older than RFC 2617.
    """

    realm: str
    nonce: str
    opaque: str | None = None
    algorithm: str | None = None
    qop: str | None = None
    stale: bool = False


def parse_challenges(values: Sequence[str]) -> list[Challenge]:
    """
    Return the usable challenges among these WWW-Authenticate or Proxy-Authenticate values.

    Strongest first: SHA-512-256, SHA-256, MD5. Other schemes, unknown
    algorithms and malformed values are skipped, since another value may be
    usable.
    """
    challenges = [challenge for value in values if (challenge := _parse_challenge(value)) is not None]
    return sorted(challenges, key=lambda challenge: _PREFERENCE.index(hash_name(challenge.algorithm)))


def choose_challenges(challenges: Sequence[Challenge], credentials: Credentials) -> list[Challenge]:
    """
    Choose the challenges to answer: the first of each realm these credentials may be used for.

    Several proxies may challenge one request, each in its own realm.

    Source: RFC 3261 22.3, RFC 8760 2.4.
    """
    chosen: dict[str, Challenge] = {}
    for challenge in challenges:
        if credentials.realm is None or quote(credentials.realm) == f'"{challenge.realm}"':
            chosen.setdefault(challenge.realm, challenge)
    return list(chosen.values())[:_MAX_REALMS]


def answer_challenge(
    challenge: Challenge,
    credentials: Credentials,
    method: str,
    uri: str,
    body: bytes,
    cnonce: str,
    nc: int,
) -> str:
    """
    Return the Authorization or Proxy-Authorization value that answers a challenge.

    ``uri`` is the Request-URI as written in the request. ``cnonce`` is fresh
    random text from the caller; ``nc`` counts the requests sent with this
    nonce, from 1.

    Raises:
        InvalidValue: The client nonce is not plain hexadecimal or base64 text,
            or the counter does not fit eight hexadecimal digits.

    Source: RFC 7616 3.4.
    """
    if not re.fullmatch(r"[A-Za-z0-9+/=_-]+", cnonce) or not 0 < nc <= 0xFFFFFFFF:
        raise InvalidValue("The client nonce or its counter is malformed")
    username = quote(credentials.username)
    count = f"{nc:08x}"
    response = digest_response(challenge, credentials, (method, uri), body, (cnonce, count))
    parts = [
        f"Digest username={username}",
        f'realm="{challenge.realm}"',
        f'nonce="{challenge.nonce}"',
        f'uri="{uri}"',
        f'response="{response}"',
    ]
    if challenge.algorithm is not None:
        parts.append(f"algorithm={challenge.algorithm}")
    if challenge.qop is not None:
        parts += [f"qop={challenge.qop}", f"nc={count}"]
    if challenge.qop is not None or _is_session(challenge.algorithm):
        parts.append(f'cnonce="{cnonce}"')
    if challenge.opaque is not None:
        parts.append(f'opaque="{challenge.opaque}"')
    return ", ".join(parts)


def digest_response(
    challenge: Challenge,
    credentials: Credentials,
    request: tuple[str, str],
    body: bytes,
    client: tuple[str, str],
) -> str:
    """
    Compute the ``response`` parameter that proves the password.

    ``request`` is method and URI. ``client`` is the client nonce and the nonce count of eight hexadecimal
    digits, both as written in the header field.

    Source: RFC 7616 3.4.1 to 3.4.3.
    """
    name = _HASHES[hash_name(challenge.algorithm)]

    def digest(*parts: str) -> str:
        return hashlib.new(name, to_bytes(":".join(parts)), usedforsecurity=False).hexdigest()

    cnonce, count = client
    secret = digest(credentials.username, challenge.realm, credentials.password)
    if _is_session(challenge.algorithm):
        secret = digest(secret, challenge.nonce, cnonce)
    if challenge.qop is None:
        return digest(secret, challenge.nonce, digest(*request))
    if challenge.qop == "auth-int":
        entity = hashlib.new(name, body, usedforsecurity=False).hexdigest()
        request_digest = digest(*request, entity)
    else:
        request_digest = digest(*request)
    return digest(secret, challenge.nonce, count, cnonce, challenge.qop, request_digest)


def _parse_challenge(value: str) -> Challenge | None:
    params = parse_digest(value)
    if params is None or "realm" not in params or not params.get("nonce"):
        return None
    algorithm = params.get("algorithm")
    if hash_name(algorithm) not in _PREFERENCE:
        return None
    offered = [option.strip().lower() for option in params.get("qop", "").split(",") if option.strip()]
    qop = next((option for option in ("auth", "auth-int") if option in offered), None)
    if offered and qop is None:
        return None
    stale = params.get("stale", "").lower() == "true"
    return Challenge(params["realm"], params["nonce"], params.get("opaque"), algorithm, qop, stale)


def parse_digest(value: str) -> dict[str, str] | None:
    """
    Return the parameters of a challenge or an answer by lower-case name; None when malformed or not Digest.

    Quoted values are returned without quotes, with their escapes.
    """
    scheme, _, rest = value.strip().partition(" ")
    return _parse_params(rest.strip()) if scheme.lower() == "digest" else None


def _parse_params(text: str) -> dict[str, str] | None:
    params: dict[str, str] = {}
    text = text.rstrip(" \t,")
    at = 0
    while at < len(text):
        match = _PARAM.match(text, at)
        if match is None:
            return None
        name, quoted, token = match.groups()
        if name.lower() in params:
            return None
        params[name.lower()] = token if quoted is None else quoted
        at = match.end()
    return params


def hash_name(algorithm: str | None) -> str:
    """Return the key of the hash behind an algorithm name."""
    return "md5" if algorithm is None else algorithm.lower().removesuffix("-sess")


def _is_session(algorithm: str | None) -> bool:
    return algorithm is not None and algorithm.lower().endswith("-sess")


_HEADERS = {401: ("WWW-Authenticate", "Authorization"), 407: ("Proxy-Authenticate", "Proxy-Authorization")}

_MAX_ROUNDS = 8
"""Limit of challenges answered in a row; a server may call every nonce stale."""
_MAX_CHALLENGES = 32
"""Limit of challenges read from one response."""


@dataclass(slots=True)
class _Answered:
    """One challenge, the number of requests sent with its nonce, and a flag set once one was accepted."""

    challenge: Challenge
    count: int = 0
    proved: bool = False


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


def credentials_of(request: Request) -> Sequence[tuple[str, str]]:
    """
    Return the credentials in a request; the ACK of a 2xx repeats those of its INVITE.

    Source: RFC 3261 22.1.
    """
    return [
        (name, value)
        for name in ("Authorization", "Proxy-Authorization")
        for value in request.headers.get_all(name)
    ]
