"""
Answer digest challenges.

Source: RFC 3261 22, RFC 7616, RFC 8760.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from sip.errors import InvalidValue
from sip.grammar import quote

__all__ = ["Challenge", "Credentials", "answer_challenge", "choose_challenge", "parse_challenges"]

_HASHES = {"sha-512-256": "sha512_256", "sha-256": "sha256", "md5": "md5"}
"""Best first: where several are offered, the first that can be used is."""

_PREFERENCE = [name for name, python in _HASHES.items() if python in hashlib.algorithms_available]

_PARAM = re.compile(
    r'[ \t,]*([A-Za-z0-9\-.!%*_+`\'~]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^\s",]+))[ \t]*(?=,|$)',
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Credentials:
    """User name and password of a trunk; with a realm, they are told to no other."""

    username: str
    password: str = field(repr=False)
    realm: str | None = None


@dataclass(frozen=True, slots=True)
class Challenge:
    """
    One usable digest challenge.

    ``realm``, ``nonce`` and ``opaque`` are kept as they stood between their
    quotes, escapes included, since that is what is hashed and sent back.
    ``algorithm`` is as sent, None when it was not (then it is MD5). ``qop``
    is "auth", "auth-int", or None for a challenge of before RFC 2617.
    """

    realm: str
    nonce: str
    opaque: str | None = None
    algorithm: str | None = None
    qop: str | None = None
    stale: bool = False


def parse_challenges(values: Sequence[str]) -> list[Challenge]:
    """
    The challenges among these WWW-Authenticate or Proxy-Authenticate values that can be answered.

    Best first: SHA-512-256, SHA-256, MD5. Other schemes, unknown algorithms
    and malformed values are left out, since another value may still do.
    """
    challenges = [challenge for value in values if (challenge := _parse_challenge(value)) is not None]
    return sorted(challenges, key=lambda challenge: _PREFERENCE.index(_hash_name(challenge.algorithm)))


def choose_challenge(challenges: Sequence[Challenge], credentials: Credentials) -> Challenge | None:
    """The first challenge whose realm these credentials may be used for."""
    for challenge in challenges:
        if credentials.realm is None or quote(credentials.realm) == f'"{challenge.realm}"':
            return challenge
    return None


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
    The Authorization or Proxy-Authorization value that answers a challenge.

    ``uri`` is the request URI as written in the request. ``cnonce`` is fresh
    random text chosen by the caller; ``nc`` counts the requests answered with
    this nonce, from 1.

    Raises:
        InvalidValue: The client nonce is not plain hexadecimal or base64 text,
            or the counter does not fit eight hexadecimal digits.

    Source: RFC 7616 3.4.
    """
    if not re.fullmatch(r"[A-Za-z0-9+/=_-]+", cnonce) or not 0 < nc <= 0xFFFFFFFF:
        raise InvalidValue("The client nonce or its counter is malformed")
    username = quote(credentials.username)
    count = f"{nc:08x}"
    response = _response(challenge, credentials, (method, uri), body, (cnonce, count))
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


def _response(
    challenge: Challenge,
    credentials: Credentials,
    request: tuple[str, str],
    body: bytes,
    client: tuple[str, str],
) -> str:
    name = _HASHES[_hash_name(challenge.algorithm)]

    def digest(*parts: str) -> str:
        return hashlib.new(name, ":".join(parts).encode(), usedforsecurity=False).hexdigest()

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
    scheme, _, rest = value.strip().partition(" ")
    params = _parse_params(rest.strip()) if scheme.lower() == "digest" else None
    if params is None or "realm" not in params or not params.get("nonce"):
        return None
    algorithm = params.get("algorithm")
    if _hash_name(algorithm) not in _PREFERENCE:
        return None
    offered = [option.strip().lower() for option in params.get("qop", "").split(",") if option.strip()]
    qop = next((option for option in ("auth", "auth-int") if option in offered), None)
    if offered and qop is None:
        return None
    stale = params.get("stale", "").lower() == "true"
    return Challenge(params["realm"], params["nonce"], params.get("opaque"), algorithm, qop, stale)


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


def _hash_name(algorithm: str | None) -> str:
    """The key of the hash behind an algorithm name."""
    return "md5" if algorithm is None else algorithm.lower().removesuffix("-sess")


def _is_session(algorithm: str | None) -> bool:
    return algorithm is not None and algorithm.lower().endswith("-sess")
