"""What a trunk takes of media: codecs, digits, encryption."""

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal

from callcontrol.models import Carrier, DtmfType, Gateway, MediaEncryption

Srtp = Literal["off", "optional", "required"]

_SRTP: Final[dict[MediaEncryption, Srtp]] = {"off": "off", "sdes": "optional", "require": "required"}


@dataclass(frozen=True, slots=True)
class MediaPolicy:
    """What a leg's trunk takes: codecs in its order, how digits pass, and whether media is encrypted."""

    codecs: tuple[str, ...] = ("PCMU", "PCMA")
    dtmf_type: DtmfType = "rfc2833"
    srtp: Srtp = "off"

    @classmethod
    def of(cls, carrier: Carrier, gateway: Gateway) -> "MediaPolicy":
        """The policy of a carrier at one of its gateways."""
        srtp = "required" if gateway.encrypts else _SRTP[carrier.srtp]
        return cls(carrier.codecs, carrier.dtmf_type, srtp)

    @property
    def events(self) -> bool:
        """Whether digits pass as telephone events in RTP (RFC 4733)."""
        return self.dtmf_type == "rfc2833"


@lru_cache(maxsize=256)
def preferring(codecs: tuple[str, ...], codec: str | None) -> tuple[str, ...]:
    """Codecs with one of them before all others, if it is among them."""
    return tuple(sorted(codecs, key=lambda name: name != codec))
