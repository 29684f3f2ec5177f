"""
Following a redirection: which Contact of a 3xx is called next, and where it ends.

Source: RFC 3261 8.1.3.4, 21.3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from sip.errors import ParseError
from sip.message.fields import NameAddr
from sip.message.message import Response
from sip.message.uri import SipUri

if TYPE_CHECKING:
    from sip.session.outbound_invite import Destination

__all__ = ["Redirection", "Redirects", "Redirector"]

FOLLOWED: Final = frozenset((300, 301, 302))
"""305 would have us go through a host of the peer's choice, 380 asks for another service."""

MAX_CONTACTS: Final = 10
"""Of a response that names more the best are considered."""


@dataclass(frozen=True, slots=True)
class Redirection:
    """Where a Contact leads in the end: the Request-URI, and where to send it."""

    uri: SipUri
    destination: Destination


@dataclass(frozen=True, slots=True)
class Redirects:
    """
    What may be followed of the redirections of one INVITE.

    ``judge`` says where a Contact leads, None where it may not lead; ``most`` bounds the targets that are
    called after the first one, however they were come by.
    """

    judge: Callable[[SipUri], Redirection | None]
    most: int = 5


class Redirector:
    """
    The targets that the redirections of one INVITE have named: each is called once, the best first.

    Source: RFC 3261 8.1.3.4.
    """

    __slots__ = ("_followed", "_redirects", "_seen", "_waiting")

    def __init__(self, redirects: Redirects, first: SipUri) -> None:
        self._redirects = redirects
        self._seen = {_key(first)}
        self._waiting: list[Redirection] = []
        self._followed = 0

    @property
    def redirected(self) -> bool:
        """Whether any redirection was followed."""
        return self._followed > 0

    def learn(self, response: Response) -> None:
        """Take the Contacts of a redirection; they go before those that an earlier one left."""
        if response.status in FOLLOWED:
            found = [self._redirects.judge(uri) for uri in _contacts(response)]
            self._waiting = [target for target in found if target is not None] + self._waiting

    def next(self) -> Redirection | None:
        """The next target to call, None when there is none or enough were called."""
        while self._waiting and self._followed < self._redirects.most:
            target = self._waiting.pop(0)
            key = _key(target.uri)
            if key not in self._seen:  # Else it would go round in circles.
                self._seen.add(key)
                self._followed += 1
                return target
        return None


def _key(uri: SipUri) -> tuple[str, str | None, str, int]:
    """What makes two targets one: parameters that vary must not make a circle endless."""
    return uri.scheme, uri.user, uri.host, uri.port or 5060


def _contacts(response: Response) -> Sequence[SipUri]:
    """The usable Contacts of a redirection, by q; a malformed one does not spoil the others."""
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
    """The preference of a Contact; one that says nothing, or nonsense, is taken for the best."""
    if not text or len(text) > 5 or not text.replace(".", "", 1).isdecimal() or not text.isascii():
        return 1.0
    return min(float(text), 1.0)
