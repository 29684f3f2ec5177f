"""
Caller identity and privacy: reading it from inbound calls and asserting it on outbound calls.

The identity that a trusted carrier (``trusts_identity``) asserts is believed, and the carrier receives the
caller's number even if the caller withholds it. Everybody else gets only what the caller allows.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from callcontrol.models import Carrier
from callcontrol.trunks.number_format import caller_number_in, caller_user_for, user_of
from sip import Headers, InvalidValue, NameAddr, ParseError, SipUri

ANONYMOUS: Final = "anonymous"
"""Shown for a caller that withholds its number or has none."""

_NOBODY: Final = NameAddr("Anonymous", SipUri("sip", user=ANONYMOUS, host="anonymous.invalid"))
_MAX_PRIVACY_WORDS: Final = 32
_MAX_CALLER_CHARS: Final = 64
_WITHHOLDING: Final = frozenset({"id", "user", "header", "session"})
_USER_SAFE: Final = "-_.!~*'()&=+$,;?/"  # beside letters and digits (RFC 3261 25.1, user)
_ESCAPED_SAFE: Final = _USER_SAFE + "%"


@dataclass(frozen=True, slots=True)
class Caller:
    """
    Caller identity: a number in E.164 or, without a number, the user part of its address.

    The number of a caller that ``withheld`` it goes to trusted carriers only: customers see ``shown``. The
    identity of a caller from a customer's own carrier is the customer's claim: it is not ``vouched`` for, and
    no carrier of the platform receives it.
    """

    number: str
    name: str | None = None
    withheld: bool = False
    vouched: bool = True

    @property
    def shown(self) -> str:
        """Public form of the identity."""
        return ANONYMOUS if self.withheld else self.number


# --- inbound ------------------------------------------------------------------------------------------------


def caller_of(from_: NameAddr, headers: Headers, carrier: Carrier) -> Caller:
    """
    The caller of an INVITE that the carrier sent.

    The identity asserted by a trusted carrier takes precedence over From, which any sender can forge.

    Source: RFC 3325 5, RFC 3323 4.
    """
    asserted = _asserted(headers, carrier) if carrier.trusts_identity else None
    address = asserted or from_
    number = caller_number_in(user_of(address.uri), carrier)
    return Caller(
        number or _clean(address.uri.user or ""),
        _clean(address.display_name) if address.display_name else None,
        withheld=_withholds(from_, headers),
        vouched=carrier.account_sid is None,
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
        for address in _addresses(headers, name):
            if name == "Remote-Party-ID" and (address.param("party") or "calling").lower() != "calling":
                continue
            if caller_number_in(user_of(address.uri), carrier) is not None:
                return address
            found = found or address
    return found


def _addresses(headers: Headers, name: str) -> Iterator[NameAddr]:
    if headers.first(name.lower()) is None:
        return
    for value in headers.get_all(name)[:4]:
        try:
            yield NameAddr.parse(value)
        except ParseError:
            continue


def _withholds(from_: NameAddr, headers: Headers) -> bool:
    words = privacy_of(headers)
    if "none" in words:
        return False
    if _WITHHOLDING.intersection(words):
        return True
    if (from_.uri.user or "").lower() == ANONYMOUS or from_.uri.host == "anonymous.invalid":
        return True
    return any(
        (address.param("privacy") or "off").lower() not in ("off", "name")
        for address in _addresses(headers, "Remote-Party-ID")
    )


def _clean(text: str) -> str:
    """Caller text that is not a number (anonymous, a name), bounded and printable."""
    shown = "".join(character for character in text if character.isprintable())
    return shown[:_MAX_CALLER_CHARS] or ANONYMOUS


# --- outbound -----------------------------------------------------------------------------------------------


def from_address(carrier: Carrier, caller: Caller, local_host: str) -> NameAddr:
    """
    From of a call to the carrier, without a tag.

    For a carrier with ``register_from_user`` the From has that user, and only the identity header has the
    caller.

    Source: RFC 3261 8.1.1.3, RFC 3323 4.1.
    """
    host = carrier.register_from_domain or local_host
    hidden = caller.withheld or caller.number == ANONYMOUS
    if carrier.register_from_user:
        name = "Anonymous" if hidden else caller.name
        return NameAddr(name, SipUri("sip", user=quote(carrier.register_from_user, _USER_SAFE), host=host))
    if hidden:
        return _NOBODY
    return _address(carrier, caller, host) or _NOBODY


def identity_headers(carrier: Carrier, caller: Caller, local_host: str) -> list[tuple[str, str]]:
    """
    Identity and privacy header fields of a call to the carrier.

    Source: RFC 3325 6, 9; RFC 3323 4.2; draft-ietf-sip-privacy-04 for Remote-Party-ID.
    """
    privacy = [("Privacy", "id")] if caller.withheld else []
    told = carrier.trusts_identity or not caller.withheld
    if carrier.identity_header == "none" or not told or caller.number == ANONYMOUS:
        return privacy
    address = _address(carrier, caller, carrier.register_from_domain or local_host)
    if address is None:
        return privacy
    match carrier.identity_header:
        case "ppi":
            return [("P-Preferred-Identity", str(address)), *privacy]
        case "rpid":
            shown = "full" if caller.withheld else "off"
            return [("Remote-Party-ID", f"{address};party=calling;screen=yes;privacy={shown}"), *privacy]
    return [("P-Asserted-Identity", str(address)), *privacy]


def _address(carrier: Carrier, caller: Caller, host: str) -> NameAddr | None:
    """Caller's address at our host; None if its identity does not fit a URI."""
    number = caller.number
    try:
        user = caller_user_for(carrier, number) if number.startswith("+") else quote(number, _ESCAPED_SAFE)
        return NameAddr(caller.name, SipUri("sip", user=user, host=host))
    except InvalidValue:
        return None
