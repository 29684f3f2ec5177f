"""
Challenge peers and verify their answers; a peer that has not proved a password costs no memory.

Source: RFC 3261 22, RFC 7616, RFC 8760.
"""

import hashlib
import hmac
import re
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from sip.auth.digest import ALGORITHMS, Challenge, Credentials, digest_response, hash_name, parse_digest
from sip.errors import ParseError
from sip.message.grammar import quote, unquote
from sip.message.message import Request, Response, reply
from sip.message.uri import SipUri
from sip.protection.rate_limits import source_of

_MAX_ANSWERS = 8
"""Limit of Authorization header fields read from one request."""
_MAX_SECRETS = 16
"""Limit of passwords per user name: several accounts may use the same name for the same carrier."""

_COUNT = re.compile(r"[0-9a-fA-F]{8}")
_HEXADECIMAL = re.compile(r"[0-9a-fA-F]{32,128}")
_NONCE = re.compile(r"([0-9a-f]{32})([0-9a-f]{32})")
_NEEDED = ("username", "realm", "nonce", "uri", "response")


class Outcome(Enum):
    """Result of verifying the credentials of a request."""

    ACCEPTED = "accepted"
    MISSING = "missing"
    """The request answers no challenge of ours, as is normal for a first request."""
    STALE = "stale"
    """The nonce is too old, already used, or was not issued to this source: a new challenge is needed."""
    REJECTED = "rejected"
    """The user is unknown or the password wrong."""
    MALFORMED = "malformed"
    """The answer is malformed, or was made for another request."""


@dataclass(frozen=True, slots=True)
class Secret:
    """A password of a user, and the identity it proves."""

    password: str = field(repr=False)
    identity: Hashable = None


SecretsOf = Callable[[str], Sequence[Secret]]
"""Returns the passwords of a user name; none when the user is unknown."""


@dataclass(frozen=True, slots=True)
class DigestVerdict:
    """
    Outcome of a request; with `ACCEPTED`, the identities whose password was given.

    `username` is the name the peer gave, for reports of failures.
    """

    outcome: Outcome
    identities: tuple[Hashable, ...] = ()
    username: str = ""


@dataclass(frozen=True, slots=True)
class DigestSettings:
    """
    Settings of digest challenges.

    A nonce is valid for `nonce_lifetime_s`. The use counts of at most `max_nonces` nonces are kept; one more
    makes the oldest stale.
    """

    realm: str = "trunkline"
    algorithms: tuple[str, ...] = ALGORITHMS
    qop: tuple[str, ...] = ("auth", "auth-int")
    nonce_lifetime_s: float = 300.0
    max_nonces: int = 20_000


class DigestServer:
    """
    Server side of digest authentication for one realm; no clock: the caller passes the time.

    A nonce carries its creation time and an HMAC over the source it was issued to. Challenges therefore cost
    no memory, and only the challenged source can try a password. A nonce is stored only after it came back
    with a correct password, with the highest count it was used with. The count must rise, so an intercepted
    answer cannot be replayed.

    `secret` is random and at least 16 bytes; `token` returns 20 hexadecimal digits, unique per call.

    Source: RFC 7616 3.3, 3.4, 5.4, 5.5.
    """

    def __init__(self, settings: DigestSettings, secret: bytes, token: Callable[[], str]) -> None:
        self._settings = settings
        self._secret = secret
        self._token = token
        self._counts: OrderedDict[str, int] = OrderedDict()
        self._floor_ms = -1
        self._opaque = hmac.new(secret, b"opaque", hashlib.sha256).hexdigest()[:16]

    # Challenges.

    def challenge(self, source: str, now_s: float, *, stale: bool = False) -> list[tuple[str, str]]:
        """
        Return the header fields of a 401: one challenge for each algorithm, strongest first.

        Source: RFC 8760 2.3.
        """
        text = f"{int(now_s * 1000):012x}"[-12:] + self._token()[:20]
        nonce = text + self._mark(text, source)
        settings = self._settings
        rest = f', qop="{",".join(settings.qop)}"' + (", stale=true" if stale else "")
        given = f'Digest realm={quote(settings.realm)}, nonce="{nonce}", opaque="{self._opaque}"'
        return [("WWW-Authenticate", f"{given}, algorithm={name}{rest}") for name in settings.algorithms]

    def _mark(self, text: str, source: str) -> str:
        return hmac.new(self._secret, f"{text}{source}".encode(), hashlib.sha256).hexdigest()[:32]

    def _is_ours(self, nonce: str, source: str) -> bool:
        match = _NONCE.fullmatch(nonce)
        return match is not None and hmac.compare_digest(self._mark(match[1], source), match[2])

    # Answers.

    def judge(self, request: Request, source: str, secrets_of: SecretsOf, now_s: float) -> DigestVerdict:
        """
        Verify the Authorization header fields of a request.

        An unknown user takes as much time as a wrong password. A nonce that this process did not issue to
        this source says nothing about the password. For a nonce of ours the password is checked before the
        age: a wrong password must not get stale=true.
        """
        answer = self._answer_of(request)
        if answer is None:
            return DigestVerdict(Outcome.MISSING)
        username = unquote(f'"{answer.get("username", "")}"')[:64]
        if not self._is_sound(answer, request):
            return DigestVerdict(Outcome.MALFORMED, username=username)
        # Old clients omit opaque. A foreign opaque, like a foreign nonce, stems from a previous process.
        if not self._is_ours(answer["nonce"], source) or answer.get("opaque", self._opaque) != self._opaque:
            return DigestVerdict(Outcome.STALE, username=username)
        proved = self._prove(answer, request, secrets_of)
        if not proved:
            return DigestVerdict(Outcome.REJECTED, username=username)
        if not self._use_nonce(answer, now_s):
            return DigestVerdict(Outcome.STALE, username=username)
        return DigestVerdict(Outcome.ACCEPTED, proved, username)

    def _answer_of(self, request: Request) -> Mapping[str, str] | None:
        """Find the answer to a challenge of our realm; empty when only a malformed one was sent."""
        realm = quote(self._settings.realm)[1:-1]
        broken: Mapping[str, str] | None = None
        for value in request.headers.get_all("Authorization")[:_MAX_ANSWERS]:
            params = parse_digest(value)
            if params is None:
                broken = {}
            elif params.get("realm") == realm:
                return params
        return broken

    def _is_sound(self, answer: Mapping[str, str], request: Request) -> bool:
        settings = self._settings
        if any(not answer.get(name) for name in _NEEDED):
            return False
        algorithm = answer.get("algorithm", "MD5")
        if algorithm.upper() not in settings.algorithms or not _HEXADECIMAL.fullmatch(answer["response"]):
            return False
        qop = answer.get("qop")
        if qop is None:
            # A client older than RFC 2617 supports MD5 only.
            return hash_name(algorithm) == "md5" and _is_for(answer["uri"], request)
        counted = _COUNT.fullmatch(answer.get("nc", "")) is not None and bool(answer.get("cnonce"))
        return qop.lower() in settings.qop and counted and _is_for(answer["uri"], request)

    def _prove(
        self, answer: Mapping[str, str], request: Request, secrets_of: SecretsOf
    ) -> tuple[Hashable, ...]:
        username = unquote(f'"{answer["username"]}"')
        secrets = list(secrets_of(username))[:_MAX_SECRETS]
        given = answer["response"].lower().encode()
        qop = answer.get("qop")
        challenge = Challenge(
            answer["realm"],
            answer["nonce"],
            algorithm=answer.get("algorithm"),
            qop=None if qop is None else qop.lower(),
        )
        client = (answer.get("cnonce", ""), answer.get("nc", ""))
        proved: list[Hashable] = []
        for secret in secrets or [_NOBODY]:
            credentials = Credentials(username, secret.password)
            wanted = digest_response(
                challenge, credentials, (request.method, answer["uri"]), request.body, client
            )
            if hmac.compare_digest(wanted.encode(), given) and secret is not _NOBODY:
                proved.append(secret.identity)
        return tuple(proved)

    def _use_nonce(self, answer: Mapping[str, str], now_s: float) -> bool:
        """Count a use of a nonce; False when it is too old or its count does not rise."""
        nonce = answer["nonce"]
        made_ms = _made_ms(nonce)
        age_s = now_s - made_ms / 1000
        if not -1.0 <= age_s <= self._settings.nonce_lifetime_s:
            return False
        count = int(answer["nc"], 16) if "qop" in answer else 1
        highest = self._counts.get(nonce)
        if highest is None:
            return count > 0 and made_ms > self._floor_ms and self._remember(nonce, count, now_s)
        if count <= highest:
            return False
        self._counts[nonce] = count
        return True

    def _remember(self, nonce: str, count: int, now_s: float) -> bool:
        counts = self._counts
        oldest_ms = int((now_s - self._settings.nonce_lifetime_s) * 1000)
        while counts and _made_ms(next(iter(counts))) < oldest_ms:
            counts.popitem(last=False)  # Expired.
        if len(counts) >= self._settings.max_nonces:
            forgotten, _ = counts.popitem(last=False)
            # The use counts of nonces made up to then are no longer certain.
            self._floor_ms = max(self._floor_ms, _made_ms(forgotten))
        counts[nonce] = count
        return True


def _made_ms(nonce: str) -> int:
    return int(nonce[:12], 16)


_NOBODY = Secret("\x00")
"""Placeholder for the passwords of an unknown user, so that checking it takes the same time."""


def _is_for(text: str, request: Request) -> bool:
    """
    Check that an answer was made for this request.

    Proxies rewrite the Request-URI, and clients omit the user or the port or write the number differently.
    Only the user must match, that of the Request-URI or of To, and only if the answer names one.

    Source: RFC 3261 22.4, RFC 7616 3.4.
    """
    try:
        uri = SipUri.parse(text)
    except ParseError:
        return False
    return uri.user is None or uri.number in (request.uri.number, request.to.uri.number)


MAX_FAILURES = 20
MEMORY_S = 600.0
LOCK_S = 300.0
MAX_ENTRIES = 20_000


class Lockout:
    """
    Counts wrong passwords by source and user name; no clock, bounded memory.

    Trusted sources are locked out too: the gateway of one carrier must not guess the password of another.
    A correct password clears the count of its own user name only.
    """

    def __init__(self) -> None:
        self._failures: OrderedDict[tuple[str, str], tuple[int, float]] = OrderedDict()

    def holds(self, source: str, username: str, now_s: float) -> bool:
        """True while every password of a source for a user name is refused, right or wrong."""
        count, at_s = self._failures.get((source, username), (0, 0.0))
        return count >= MAX_FAILURES and now_s - at_s < LOCK_S

    def note(self, source: str, username: str, now_s: float, *, right: bool) -> None:
        """Record the result of a password check."""
        key = source, username
        count, at_s = self._failures.pop(key, (0, 0.0))
        if right:
            return
        self._failures[key] = (count + 1 if now_s - at_s < MEMORY_S else 1, now_s)
        if len(self._failures) > MAX_ENTRIES:
            self._failures.popitem(last=False)


class InboundAuthenticator:
    """
    Admits, challenges or refuses a new INVITE by its credentials, before any state is allocated for it.

    ACK and CANCEL are never challenged, since they cannot be sent again (RFC 3261 22.1). Requests within a
    dialog are not challenged either: they must carry the tags and the Call-ID of an admitted call.

    `on_credentials` is called with the host of each right or wrong password, and True for a right one; not
    for a request without credentials or with a stale nonce.
    """

    def __init__(self, digest: DigestServer, on_credentials: Callable[[str, bool], None]) -> None:
        self._digest = digest
        self._on_credentials = on_credentials
        self._lockout = Lockout()

    def authenticate(
        self, request: Request, host: str, secrets_of: SecretsOf | None, now_s: float
    ) -> tuple[Hashable, ...] | Response:
        """Return the identities of a caller with a right password, otherwise the challenge or the refusal."""
        origin = source_of(host)
        verdict = self._digest.judge(request, origin, secrets_of or (lambda _: ()), now_s)
        if verdict.outcome in (Outcome.ACCEPTED, Outcome.REJECTED):
            if self._lockout.holds(origin, verdict.username, now_s):
                return reply(request, 403)
            right = verdict.outcome is Outcome.ACCEPTED
            self._lockout.note(origin, verdict.username, now_s, right=right)
            self._on_credentials(host, right)
        if verdict.outcome is Outcome.ACCEPTED:
            return verdict.identities
        if verdict.outcome is Outcome.MALFORMED:
            return reply(request, 400, "Malformed Authorization")
        stale = verdict.outcome is Outcome.STALE
        challenges = self._digest.challenge(origin, now_s, stale=stale)
        return reply(request, 401, headers=challenges)
