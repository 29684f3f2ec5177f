"""
Reading of an inbound INVITE: the carrier that sent it, the caller's identity, and bounded header fields.

A carrier with a certificate name or a password of its own is identified by these alone, from any address;
a carrier with neither is identified by the addresses of its inbound gateways. The identity that a trusted
carrier (``trusts_identity``) asserts is believed.

Header fields are not verified: they are shown to the application and forwarded by policy. A value that is too
long or not printable is left out and never cut: half a signature or half an address would be worse than none.
Bytes that are not UTF-8 are read as Latin-1, and forwarded as UTF-8.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any, Final

from callcontrol.directory.directory import Directory
from callcontrol.models import Carrier, Gateway, PhoneNumber
from callcontrol.trunks.number_format import caller_number_in, number_in, user_of
from sip import Headers, NameAddr, ParseError, Request, SipUri, readable
from sip.protection.rate_limits import FRONT_HEADER
from sip.values import frozen

ANONYMOUS: Final = "anonymous"
"""Shown for a caller that withholds its number or has none."""

MAX_CUSTOM_HEADERS: Final = 32
"""Limit of X- header fields used per message."""

_MAX_PRIVACY_WORDS: Final = 32
_MAX_CALLER_CHARS: Final = 64
_IDENTITY: Final = frozenset({"p-asserted-identity", "remote-party-id", "p-preferred-identity", "privacy"})
_WITHHOLDING: Final = frozenset({"id", "user", "header", "session"})
_MAX_VALUE_CHARS: Final = 1024
_MAX_IDENTITY_CHARS: Final = 4096  # a PASSporT with its certificate's address is 600 to 1000 characters
_MAX_ENTRIES: Final = 8
_MAX_SHOWN_CHARS: Final = 8192
_HEEDED: Final = frozenset({"diversion", "history-info", "user-to-user", "identity", "session-id", "privacy"})
_KEY: Final = itemgetter(0)
"""Returns the key of an entry of header fields."""
_FRONT_HEADER: Final = FRONT_HEADER.lower()
_X_SIGNS: Final = ("X-", "x-")
_X_HEADER: Final = re.compile(r"X-[A-Za-z0-9-]{1,64}", re.IGNORECASE | re.ASCII)

InboundTrunk = tuple[Carrier, Gateway]
"""Carrier and the gateway the call came by; ``gateway_sid`` is empty if the gateway is not its own."""


@frozen
class Identification:
    """
    Identification of a caller before its call is processed.

    ``carriers`` are proved by a certificate. Without these, and if the caller is not ``asked`` for a
    password, a ``known`` address is enough.
    """

    known: bool = False
    asked: bool = False
    carriers: tuple[str, ...] = ()


UNKNOWN: Final = Identification()


# --- carrier ------------------------------------------------------------------------------------------------


def proves_itself(carrier: Carrier) -> bool:
    """Return True if a carrier is identified by certificate or password rather than by address."""
    return bool(carrier.inbound_auth_username or carrier.certificate_name)


def identify(
    source: tuple[str, int],
    names: Collection[str],
    request: Request,
    routes: Directory,
) -> Identification:
    """
    Identify a caller, and decide if it has to authenticate.

    ``names`` are those of its verified certificate. The called number decides between carriers that share an
    address. A caller whose number none of the carriers there may deliver is asked for a password: a carrier
    that has one may call from any address.
    """
    proved = routes.carriers_with_certificate(names) if names else []
    if proved:
        return Identification(known=True, carriers=tuple(carrier.carrier_sid for carrier in proved))
    here = [carrier for carrier, _ in routes.gateways_at(*source)]
    open_here = [carrier for carrier in here if not proves_itself(carrier)]
    closed_here = [carrier for carrier in here if carrier.inbound_auth_username]
    if not open_here:
        return (
            Identification(asked=routes.asks_passwords) if closed_here or routes.asks_passwords else UNKNOWN
        )
    if closed_here and request.headers.first("authorization") is not None:
        return Identification(asked=True)
    if closed_here or routes.asks_passwords:
        if not _serves(open_here, (request.uri, request.to.uri), routes):
            return Identification(asked=True)
    return Identification(known=True)


def _serves(carriers: Sequence[Carrier], called: Sequence[SipUri], routes: Directory) -> bool:
    """Return True if one of the carriers may deliver calls to the number, or if nobody has the number."""
    for uri in called:
        e164 = number_in(user_of(uri))
        found = routes.number(e164) if e164 is not None else None
        if found is not None:
            return any(delivers(carrier, found) for carrier in carriers)
    return True


def delivers(carrier: Carrier, number: PhoneNumber) -> bool:
    """
    Return True if calls to a number may come by a carrier.

    An account's carriers may deliver calls to all its numbers, the platform's carriers to leased ones only:
    nobody has verified that an account owns a number on a carrier of its own. If the platform's carriers
    delivered calls to these too, an account could claim any number that they serve, and get its calls.
    """
    if carrier.account_sid is None:
        return number.carrier_sid is None
    return carrier.account_sid == number.account_sid


def origins_of(carriers: Sequence[str], source: tuple[str, int], routes: Directory) -> list[InboundTrunk]:
    """Carriers that a call may come from: the proved ones, else those at its address, best match first."""
    if not carriers:
        return [origin for origin in routes.gateways_at(*source) if not proves_itself(origin[0])]
    here = {carrier.carrier_sid: gateway for carrier, gateway in routes.gateways_at(*source)}
    known = (routes.carrier(carrier_sid) for carrier_sid in carriers)
    return [
        (carrier, here.get(carrier.carrier_sid) or _elsewhere(carrier, source))
        for carrier in known
        if carrier is not None and carrier.is_active
    ]


def _elsewhere(carrier: Carrier, source: tuple[str, int]) -> Gateway:
    host, port = source
    return Gateway("", carrier.carrier_sid, host, carrier.created_at, carrier.updated_at, port)


# --- caller -------------------------------------------------------------------------------------------------


@frozen
class Caller:
    """
    Caller identity: a number in E.164 or, without a number, the user part of its address.

    The number of a caller that ``withheld`` it goes to trusted carriers only: customers see ``shown``. The
    identity of a caller from a customer's own carrier is the customer's claim: it is not ``trusted``, and
    no carrier of the platform receives it.
    """

    number: str
    name: str | None = None
    withheld: bool = False
    trusted: bool = True

    @property
    def shown(self) -> str:
        """Public form of the identity."""
        return ANONYMOUS if self.withheld else self.number


def caller_of(from_: NameAddr, headers: Headers, carrier: Carrier) -> Caller:
    """
    The caller of an INVITE that the carrier sent.

    The identity asserted by a trusted carrier takes precedence over From, which any sender can forge.

    Source: RFC 3325 5, RFC 3323 4.
    """
    stated = not _IDENTITY.isdisjoint(map(_KEY, headers.entries))
    asserted = _asserted(headers, carrier) if stated and carrier.trusts_identity else None
    address = asserted or from_
    withheld = _withholds(from_, headers) if stated else _is_anonymous(from_)
    number = caller_number_in(user_of(address.uri), carrier)
    return Caller(
        number or _clean(address.uri.user or ""),
        _clean(address.display_name) if address.display_name else None,
        withheld=withheld,
        trusted=carrier.account_sid is None,
    )


def privacy_of(headers: Headers) -> tuple[str, ...]:
    """Privacy values of a message, in lower case (RFC 3323 4.2); unknown values are kept."""
    if headers.first("privacy") is None:
        return ()
    words = (word.strip().lower() for value in headers.get_all("Privacy") for word in value.split(";"))
    kept = (word[:_MAX_CALLER_CHARS] for word in words if word.isascii() and word.isprintable() and word)
    return tuple(dict.fromkeys(kept))[:_MAX_PRIVACY_WORDS]


def _asserted(headers: Headers, carrier: Carrier) -> NameAddr | None:
    """
    Identity asserted by a carrier; one with a number is preferred.

    P-Preferred-Identity comes last: it is only what a user asks its carrier to assert (RFC 3325 9.2).
    """
    found: NameAddr | None = None
    for name in ("P-Asserted-Identity", "Remote-Party-ID", "P-Preferred-Identity"):
        for address in _asserted_addresses(headers, name):
            if name == "Remote-Party-ID" and (address.param("party") or "calling").lower() != "calling":
                continue
            if caller_number_in(user_of(address.uri), carrier) is not None:
                return address
            found = found or address
    return found


def _asserted_addresses(headers: Headers, name: str) -> Iterator[NameAddr]:
    return _parsed(headers.get_all(name)[:4]) if headers.first(name.lower()) is not None else iter(())


def _is_anonymous(from_: NameAddr) -> bool:
    return (from_.uri.user or "").lower() == ANONYMOUS or from_.uri.host == "anonymous.invalid"


def _withholds(from_: NameAddr, headers: Headers) -> bool:
    words = privacy_of(headers)
    if "none" in words:
        return False
    if _WITHHOLDING.intersection(words) or _is_anonymous(from_):
        return True
    return any(
        (address.param("privacy") or "off").lower() not in ("off", "name")
        for address in _asserted_addresses(headers, "Remote-Party-ID")
    )


def _clean(text: str) -> str:
    """Caller text that is not a number (anonymous, a name), bounded and printable."""
    shown = "".join(character for character in text if character.isprintable())
    return shown[:_MAX_CALLER_CHARS] or ANONYMOUS


# --- header fields ------------------------------------------------------------------------------------------


@frozen
class Received:
    """
    Bounded header fields of an INVITE.

    ``history`` has the History-Info entries (RFC 7044), ``diversions`` those of Diversion (RFC 5806), latest
    first; ``user_to_user`` is RFC 7433's, ``identity`` the signed PASSporTs of RFC 8224, unchanged.
    """

    custom: tuple[tuple[str, str], ...] = ()
    diversions: tuple[NameAddr, ...] = ()
    history: tuple[NameAddr, ...] = ()
    user_to_user: tuple[str, ...] = ()
    identity: tuple[str, ...] = ()
    session_id: str | None = None
    privacy: tuple[str, ...] = ()

    @classmethod
    def of(cls, headers: Headers) -> "Received":
        """Read the header fields of an INVITE."""
        keys = [*map(_KEY, headers.entries)]
        if _HEEDED.isdisjoint(keys) and not [key for key in keys if key[:2] == "x-"]:
            return _NOTHING  # most calls
        return cls(
            custom=custom_headers(headers.items()),
            diversions=tuple(_parsed(_values(headers, "Diversion", _MAX_VALUE_CHARS))),
            history=tuple(_parsed(_values(headers, "History-Info", _MAX_VALUE_CHARS))),
            user_to_user=user_to_user(headers),
            identity=tuple(_values(headers, "Identity", _MAX_IDENTITY_CHARS)),
            session_id=next(_values(headers, "Session-ID", 128), None),
            privacy=privacy_of(headers),
        )

    def shown(self, caller: Caller | None = None) -> dict[str, Any]:
        """
        Fields as the call object shows them, without empty ones.

        For a caller that withholds its number, the display name and the signed identity are left out.
        """
        hidden = caller is not None and caller.withheld
        if self is _NOTHING and (caller is None or caller.name is None):
            return {}
        facts: dict[str, Any] = {
            "headers": dict(self.custom),
            "display_name": caller.name if caller is not None and not hidden else None,
            "privacy": list(self.privacy),
            "diversion": [str(address) for address in self.diversions],
            "history_info": [str(address) for address in self.history],
            "user_to_user": list(self.user_to_user),
            "session_id": self.session_id,
            "identity": [] if hidden else list(self.identity),
        }
        return _bounded({name: value for name, value in facts.items() if value})


_NOTHING: Final = Received()


def custom_headers(fields: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """
    X- header fields that may be copied into another message: bounded, printable, first of each name.

    The field in which a SIP front names the source of a request is for this server alone.
    """
    found: dict[str, tuple[str, str]] = {}
    for name, value in fields:
        if name[:2] not in _X_SIGNS:  # most header fields
            continue
        if len(found) >= MAX_CUSTOM_HEADERS:
            break
        if name.lower() == _FRONT_HEADER:
            continue
        shown = readable(value)
        if _X_HEADER.fullmatch(name) and _is_safe(shown, _MAX_VALUE_CHARS):
            found.setdefault(name.lower(), (name, shown))
    return tuple(found.values())


def user_to_user(headers: Headers) -> tuple[str, ...]:
    """User-to-User values of a message (RFC 7433)."""
    if headers.first("user-to-user") is None:
        return ()
    return tuple(_values(headers, "User-to-User", _MAX_VALUE_CHARS))


def _values(headers: Headers, name: str, limit_chars: int) -> Iterator[str]:
    for value in headers.get_all(name)[:_MAX_ENTRIES]:
        shown = readable(value)
        if _is_safe(shown, limit_chars):
            yield shown


def _parsed(values: Iterable[str]) -> Iterator[NameAddr]:
    for value in values:
        try:
            yield NameAddr.parse(value)
        except ParseError:
            continue


def _is_safe(value: str, limit_chars: int) -> bool:
    """Return True for a value that a header field can hold: no line end, no control, no lone surrogate."""
    return 0 < len(value) <= limit_chars and value.isprintable()


def _bounded(facts: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that fit within ``_MAX_SHOWN_CHARS`` together, in order."""
    kept: dict[str, Any] = {}
    left = _MAX_SHOWN_CHARS
    for name, value in facts.items():
        left -= len(str(value))
        if left >= 0:
            kept[name] = value
        else:
            left += len(str(value))
    return kept
