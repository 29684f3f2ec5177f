"""Media policy of a trunk: codecs, DTMF, encryption."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from callcontrol.models import Carrier, DtmfType, Gateway, MediaEncryption

Srtp = Literal["off", "optional", "required"]

_SRTP: Final[dict[MediaEncryption, Srtp]] = {"off": "off", "sdes": "optional", "require": "required"}


@dataclass(frozen=True, slots=True)
class MediaPolicy:
    """Media policy of a leg's trunk: codecs in preference order, DTMF transport, and SRTP."""

    codecs: tuple[str, ...] = ("PCMU", "PCMA")
    dtmf_type: DtmfType = "rfc2833"
    srtp: Srtp = "off"

    @classmethod
    def of(cls, carrier: Carrier, gateway: Gateway) -> "MediaPolicy":
        """Policy of a carrier at one of its gateways."""
        srtp = "required" if gateway.encrypts else _SRTP[carrier.srtp]
        return cls(carrier.codecs, carrier.dtmf_type, srtp)

    @property
    def events(self) -> bool:
        """True if DTMF is sent as RTP telephone events (RFC 4733)."""
        return self.dtmf_type == "rfc2833"


@lru_cache(maxsize=256)
def preferring(codecs: tuple[str, ...], codec: str | None) -> tuple[str, ...]:
    """Codecs with ``codec`` moved to the front, if present."""
    return tuple(sorted(codecs, key=lambda name: name != codec))
