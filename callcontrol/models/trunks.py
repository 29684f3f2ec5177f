"""Carriers and their gateways."""

from dataclasses import field
from datetime import datetime
from functools import lru_cache
from typing import Literal

from media.types import SrtpKey, SrtpUse
from sip.values import frozen

Protocol = Literal["udp", "tcp", "tls", "tls/srtp", "auto"]
NumberFormat = Literal["e164", "national", "significant"]
IdentityHeader = Literal["pai", "ppi", "rpid", "none"]
Reliability = Literal["off", "supported", "required"]
DtmfType = Literal["rfc2833", "info", "tones"]
MediaEncryption = Literal["off", "sdes", "require"]
TrunkType = Literal["static_ip", "auth", "reg"]


@frozen
class Carrier:
    """
    Trunk to one carrier; ``account_sid`` is None if the platform owns it.

    With ``prefixes`` it serves only numbers that begin with one of them, and takes precedence for these over
    carriers that serve all numbers.

    ``number_format`` is the format of its own country's numbers: ``e164`` (with ``+`` if
    ``e164_leading_plus``), ``national`` (with the trunk prefix, 09876543210) or ``significant`` (9876543210).
    ``identity_header`` carries the caller's identity; with ``trusts_identity`` the one it sends is believed.
    ``rel100`` is the use of reliable provisional responses (RFC 3262), ``session_expires_s`` the requested
    session interval (RFC 4028, None: no session timer). ``registrars`` are the hosts to register with, with
    an optional port; the default is the outbound gateways. ``certificate_name`` is the client certificate
    name that identifies its calls. ``forwarded_headers`` are the X- header fields that may pass between it
    and another leg.

    ``dtmf_type`` is the DTMF transport: telephone events in RTP, INFO requests, or tones in the audio.
    ``srtp`` is the encryption of its media (RFC 3711, keys by RFC 4568): ``off``, ``sdes`` (encrypted if the
    far end supports it) or ``require``.
    """

    carrier_sid: str
    account_sid: str | None
    name: str
    created_at: datetime
    updated_at: datetime
    description: str | None = None
    is_active: bool = True
    trunk_type: TrunkType = "static_ip"
    e164_leading_plus: bool = True
    tech_prefix: str | None = None
    requires_register: bool = False
    register_username: str | None = None
    register_password: str | None = field(default=None, repr=False)
    register_sip_realm: str | None = None
    register_from_user: str | None = None
    register_from_domain: str | None = None
    register_transport: str | None = None
    inbound_auth_username: str | None = None
    inbound_auth_password: str | None = field(default=None, repr=False)
    outbound_proxy: str | None = None
    diversion: str | None = None
    dtmf_type: DtmfType = "rfc2833"
    codecs: tuple[str, ...] = ("PCMU", "PCMA")
    prefixes: tuple[str, ...] = ()
    srtp: MediaEncryption = "off"
    max_concurrent_calls: int | None = None
    max_cps: int | None = None
    app_sid: str | None = None
    number_format: NumberFormat = "e164"
    identity_header: IdentityHeader = "pai"
    trusts_identity: bool = True
    forwards_history: bool = False
    forwarded_headers: tuple[str, ...] = ()
    allows_refer: bool = False
    follows_redirects: bool = False
    rel100: Reliability = "supported"
    session_expires_s: int | None = 1800
    registrars: tuple[str, ...] = ()
    register_expires_s: int = 3600
    certificate_name: str | None = None
    registers: bool = field(init=False, repr=False, compare=False)
    """True if the server must stay registered with the carrier."""

    def __post_init__(self) -> None:
        registers = self.is_active and (self.requires_register or self.trunk_type == "reg")
        object.__setattr__(self, "registers", registers)


@frozen
class Gateway:
    """
    Host of a carrier.

    A lower ``priority`` is tried first; among equals the share of calls follows ``weight``. ``netmask``
    widens an inbound address to a network (32: that address alone, also for IPv6). With ``port`` 0, DNS
    determines the port and, with protocol ``auto``, the transport (RFC 3263). The protocol ``tls/srtp`` is
    TLS with encrypted media, whatever the carrier's setting.
    """

    gateway_sid: str
    carrier_sid: str
    host: str
    created_at: datetime
    updated_at: datetime
    port: int = 5060
    netmask: int = 32
    protocol: Protocol = "udp"
    inbound: bool = True
    outbound: bool = True
    priority: int = 0
    weight: int = 1
    send_options_ping: bool = False
    is_active: bool = True
    max_concurrent_calls: int | None = None
    max_cps: int | None = None
    transport: str | None = field(init=False, repr=False, compare=False)
    """SIP transport of the gateway; None if DNS determines it."""
    encrypts: bool = field(init=False, repr=False, compare=False)
    """True if media must be encrypted, whatever the carrier's setting."""

    def __post_init__(self) -> None:
        transport = None if self.protocol == "auto" else self.protocol.removesuffix("/srtp")
        object.__setattr__(self, "transport", transport)
        object.__setattr__(self, "encrypts", self.protocol == "tls/srtp")


@frozen
class MediaPolicy:
    """
    Media policy of a leg's trunk: codecs in preference order, DTMF transport, and SRTP.

    ``events`` is True if DTMF is sent as RTP telephone events (RFC 4733). Our side sends with ``srtp_keys``,
    or with random keys where there are none.
    """

    codecs: tuple[str, ...] = ("PCMU", "PCMA")
    dtmf_type: DtmfType = "rfc2833"
    srtp: SrtpUse = "off"
    events: bool = True
    srtp_keys: tuple[SrtpKey, ...] = ()


@lru_cache(maxsize=256)
def preferring(codecs: tuple[str, ...], codec: str | None) -> tuple[str, ...]:
    """Codecs with ``codec`` moved to the front, if present."""
    return tuple(sorted(codecs, key=lambda name: name != codec))
