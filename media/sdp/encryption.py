"""
Negotiation of SRTP for a stream: profile and keys (RFC 4568, RFC 8643).

The profiles RTP/SAVP and RTP/SAVPF require encryption. With RTP/AVP and RTP/AVPF keys may be offered too, and
an answer accepts or omits them: opportunistic SRTP, which "optional" offers. Keys decide, not the name of the
profile: a stream with keys of both sides is encrypted, any other is not.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from media.sdp.crypto import choose_crypto, match_crypto, offer_crypto
from media.sdp.errors import NegotiationError
from media.sdp.model import Attribute, MediaDescription
from media.types import SrtpKey, SrtpSuite, SrtpUse

__all__ = [
    "AgreedSrtp",
    "Encryption",
    "accepted_encryption",
    "answered_encryption",
    "offered_encryption",
    "secure_first",
]

_PLAIN: Final = ("RTP/AVP", "RTP/AVPF")
_SECURE: Final = ("RTP/SAVP", "RTP/SAVPF")
# Accepted when offered; few peers have it, and a description should fit into a datagram.
_NOT_OFFERED: Final[SrtpSuite] = "AES_256_CM_HMAC_SHA1_32"
_TRANSPORT, _ATTRIBUTE = 302, 306
"""Warning codes of RFC 3261 20.43."""


@dataclass(frozen=True, slots=True)
class AgreedSrtp:
    """Profile and suite of an encrypted stream, which our later offers keep."""

    protocol: str
    suite: SrtpSuite


@dataclass(frozen=True, slots=True)
class Encryption:
    """
    Profile, attributes and keys of a stream.

    Attributes:
        protocol: Profile of our section.
        lines: Attributes of our section.
        send, receive: Keys; None for plain RTP.
    """

    protocol: str
    lines: tuple[Attribute, ...] = field(default=(), repr=False)
    send: SrtpKey | None = None
    receive: SrtpKey | None = None

    @property
    def agreed(self) -> AgreedSrtp | None:
        """Profile and suite for later offers; None for plain RTP."""
        return None if self.send is None else AgreedSrtp(self.protocol, self.send.suite)


def offered_encryption(use: SrtpUse, keys: Iterable[SrtpKey], agreed: AgreedSrtp | None) -> Encryption:
    """Return profile and keys of an offer; once SRTP is in use, only the agreed ones."""
    if use == "off":
        return Encryption("RTP/AVP")
    if agreed is not None:
        chosen = [key for key in keys if key.suite == agreed.suite]
        protocol = agreed.protocol
    else:
        chosen = [key for key in keys if key.suite != _NOT_OFFERED]
        protocol = "RTP/SAVP" if use == "required" else "RTP/AVP"
    return Encryption(protocol, tuple(Attribute("crypto", str(line)) for line in offer_crypto(chosen)))


def answered_encryption(media: MediaDescription, use: SrtpUse, keys: Iterable[SrtpKey]) -> Encryption:
    """
    Return profile and keys of the answer to an offered section.

    Raises:
        NegotiationError: It has another profile, or no usable key though it requires one, or one side
            requires encryption that the other refuses or lacks.
    """
    secure = media.protocol in _SECURE
    if not secure and media.protocol not in _PLAIN:
        raise NegotiationError("Only RTP/AVP and RTP/SAVP are supported", _TRANSPORT)
    if use == "off":
        if secure:
            raise NegotiationError("Encrypted media is not accepted here, only RTP/AVP", _TRANSPORT)
        return Encryption(media.protocol)
    chosen = choose_crypto(media.values("crypto"), tuple(keys))
    if chosen is not None:
        line, theirs = chosen
        return Encryption(media.protocol, (Attribute("crypto", str(line)),), line.key, theirs)
    if secure:
        raise NegotiationError("No SRTP key is offered that can be used", _ATTRIBUTE)
    if use == "required":
        raise NegotiationError("Encrypted media (RTP/SAVP) is required", _TRANSPORT)
    return Encryption(media.protocol)


def accepted_encryption(ours: MediaDescription, theirs: MediaDescription) -> Encryption:
    """
    Return the keys that an answer to our offer agrees on.

    Raises:
        NegotiationError: It has another profile, or keys that do not fit, or none where they are required.
    """
    offered, answered = ours.values("crypto"), theirs.values("crypto")
    possible = (*_PLAIN, *_SECURE) if offered else _PLAIN
    if theirs.protocol not in possible:
        raise NegotiationError("The answer has another transport protocol", _TRANSPORT)
    if not offered or not answered:
        if theirs.protocol in _SECURE or ours.protocol in _SECURE:
            raise NegotiationError("The answer has no SRTP key", _ATTRIBUTE)
        return Encryption(ours.protocol)
    keys = match_crypto(offered, answered)
    if keys is None:
        # They would encrypt, and neither side could decrypt.
        raise NegotiationError("The SRTP key of the answer does not fit the offer", _ATTRIBUTE)
    return Encryption(ours.protocol, (), *keys)


def secure_first(sections: Iterable[MediaDescription], use: SrtpUse) -> list[tuple[int, MediaDescription]]:
    """Return the sections with their indexes, those with keys first unless we do not encrypt."""
    placed = list(enumerate(sections))
    if use != "off":
        placed.sort(key=lambda item: item[1].attribute("crypto") is None)
    return placed
