"""
Redirections: the order and the limits of calling the Contacts of a 3xx.

Source: RFC 3261 8.1.3.4, 21.3.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from sip.errors import ParseError
from sip.location.rfc3263 import Destination
from sip.message.fields import NameAddr
from sip.message.message import Response
from sip.message.uri import SipUri

FOLLOWED: Final = frozenset((300, 301, 302))
"""Without 305, which names a proxy of the peer's choice, and 380, which asks for another service."""

MAX_CONTACTS: Final = 10
"""Limit of Contacts per response; those with the best q are used."""


@dataclass(frozen=True, slots=True)
class Redirection:
    """Target of a Contact: the Request-URI, and the address to send to."""

    uri: SipUri
    destination: Destination


@dataclass(frozen=True, slots=True)
class Redirects:
    """
    Policy of the redirections of one INVITE.

    ``judge`` returns the target of a Contact, None to refuse it. ``most`` limits the targets called after the
    first one, over all redirections.
    """

    judge: Callable[[SipUri], Redirection | None]
    most: int = 5


class Redirector:
    """
    Targets named by the redirections of one INVITE: each is called once, the best first.

    Source: RFC 3261 8.1.3.4.
    """

    def __init__(self, redirects: Redirects, first: SipUri) -> None:
        self._redirects = redirects
        self._seen = {_key(first)}
        self._waiting: list[Redirection] = []
        self._followed = 0

    def learn(self, response: Response) -> None:
        """Queue the Contacts of a redirection, before the remaining ones of earlier redirections."""
        if response.status in FOLLOWED:
            found = [self._redirects.judge(uri) for uri in _contacts(response)]
            self._waiting = [target for target in found if target is not None] + self._waiting

    def next(self) -> Redirection | None:
        """Return the next target to call, None when none is left or the limit is reached."""
        while self._waiting and self._followed < self._redirects.most:
            target = self._waiting.pop(0)
            key = _key(target.uri)
            if key not in self._seen:  # Prevents a redirection loop.
                self._seen.add(key)
                self._followed += 1
                return target
        return None


def _key(uri: SipUri) -> tuple[str, str | None, str, int]:
    """Return the identity of a target, without parameters, which could hide a redirection loop."""
    return uri.scheme, uri.user, uri.host, uri.port or 5060


def _contacts(response: Response) -> Sequence[SipUri]:
    """Return the usable Contacts of a redirection, by q; malformed ones are skipped."""
    found: list[tuple[float, SipUri]] = []
    for value in response.headers.get_all("Contact"):
        try:
            contact = NameAddr.parse(value)
        except ParseError:
            continue
        if contact.uri.param("method") in (None, "INVITE"):
            found.append((_q(contact.param("q")), contact.uri.with_(headers=None)))
    found.sort(key=lambda item: -item[0])
    return [uri for _, uri in found[:MAX_CONTACTS]]


def _q(text: str | None) -> float:
    """Return the q of a Contact; 1.0 when absent or malformed."""
    if not text or len(text) > 5 or not text.replace(".", "", 1).isdecimal() or not text.isascii():
        return 1.0
    return min(float(text), 1.0)
