"""Request and response models of the trunk portal."""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, ConfigDict, Field

from api.schemas.base import RequestModel, ResponseModel, all_optional
from api.schemas.common import E164, Filled, Id, Name, Page, PerPage, Timestamp
from api.schemas.serializers import shown
from callcontrol.errors import FieldError
from callcontrol.models import Carrier, Gateway
from callcontrol.trunks.gateway_health import Health
from callcontrol.trunks.registration import RegistrationView
from callcontrol.trunks.validation import AUTO_NEEDS_NO_PORT, carrier_errors, host_errors

__all__ = [
    "CarrierObject",
    "CreateCarrier",
    "CreateGateway",
    "GatewayObject",
    "Paging",
    "UpdateCarrier",
    "UpdateGateway",
    "carrier_json",
    "gateway_json",
]

_REGISTER = ("register_username", "register_password")
_INBOUND_AUTH = ("inbound_auth_username", "inbound_auth_password")
_EITHER = f"is required by trunk_type auth, unless {' and '.join(_INBOUND_AUTH)} are given"

_PREFIX = "[0-9#*]{1,16}"


def _prefix(text: str) -> str:
    if re.fullmatch(_PREFIX, text) is None:
        raise ValueError("must be 1 to 16 of 0-9, * and #")
    return text


Text = Annotated[Filled, Field(max_length=256)]
Secret = Annotated[str, Field(min_length=1, max_length=256, json_schema_extra={"writeOnly": True})]

# The last label begins with a letter (RFC 1123 2.1), which distinguishes a name from an address.
_HOST_NAME = re.compile(
    r"([A-Za-z0-9]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*[A-Za-z]([A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
)


def _host(host: str) -> str:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        if _HOST_NAME.fullmatch(host) is None:
            raise ValueError("must be an IP address or a host name") from None
    return host


Host = Annotated[
    str,
    Field(
        min_length=1,
        max_length=253,
        json_schema_extra={
            "anyOf": [{"pattern": f"^{_HOST_NAME.pattern}$"}, {"format": "ipv4"}, {"format": "ipv6"}],
            "examples": ["sip.carrier.example"],
        },
    ),
    AfterValidator(_host),
]


class Paging(RequestModel):
    """Page of a list."""

    page: Page = 1
    per_page: PerPage = 20


class CreateCarrier(RequestModel):
    """One of the account's own carriers."""

    name: Name
    description: Annotated[Filled, Field(max_length=1024)] | None = None
    is_active: bool = True
    trunk_type: Literal["static_ip", "auth", "reg"] = "static_ip"
    e164_leading_plus: bool = True
    tech_prefix: (
        Annotated[str, AfterValidator(_prefix), Field(json_schema_extra={"pattern": f"^{_PREFIX}$"})] | None
    ) = None
    number_format: Annotated[
        Literal["e164", "national", "significant"],
        Field(description="How numbers of the carrier's country are written to it."),
    ] = "e164"
    requires_register: bool = False
    register_username: Annotated[Text, Field(description="User name of outbound digest answers.")] | None = (
        None
    )
    register_password: Secret | None = None
    register_sip_realm: Text | None = None
    register_from_user: Text | None = None
    register_from_domain: Text | None = None
    register_transport: Literal["udp", "tcp", "tls"] | None = None
    register_expires_s: Annotated[int, Field(ge=60, le=86_400)] = 3600
    registrars: Annotated[
        list[Text], Field(max_length=8, description="Hosts to register with; none: the outbound gateways.")
    ] = []
    inbound_auth_username: Text | None = None
    inbound_auth_password: Secret | None = None
    certificate_name: (
        Annotated[Text, Field(description="Name in the client certificate its calls are known by.")] | None
    ) = None
    outbound_proxy: Text | None = None
    diversion: E164 | None = None
    identity_header: Literal["pai", "ppi", "rpid", "none"] = "pai"
    trusts_identity: bool = True
    forwards_history: bool = False
    forwarded_headers: Annotated[list[Text], Field(max_length=32)] = []
    allows_refer: bool = False
    follows_redirects: bool = False
    rel100: Literal["off", "supported", "required"] = "supported"
    session_expires_s: Annotated[int, Field(ge=90, le=86_400)] | None = 1800
    dtmf_type: Annotated[
        Literal["rfc2833", "info", "tones"],
        Field(description="Digits as telephone events in RTP, in INFO requests, or as tones in the audio."),
    ] = "rfc2833"
    codecs: Annotated[
        list[Literal["PCMU", "PCMA", "G722", "L16", "OPUS"]],
        Field(min_length=1, max_length=5, description="Offered and preferred in this order."),
    ] = ["PCMU", "PCMA"]
    srtp: Annotated[
        Literal["off", "sdes", "require"],
        Field(description="Encryption of media. sdes: where the far end can; require: always."),
    ] = "off"
    max_concurrent_calls: Annotated[int, Field(ge=1, le=100_000)] | None = None
    max_cps: Annotated[int, Field(ge=1, le=100_000)] | None = None
    app_sid: (
        Annotated[Id, Field(description="Where calls to its numbers go that have no target of their own.")]
        | None
    ) = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Require username and password together; for `auth`, those of either direction."""
        registers = given.get("requires_register") is True or given.get("trunk_type") == "reg"
        told = any(given.get(name) is not None for name in (*_REGISTER, *_INBOUND_AUTH))
        if given.get("trunk_type") == "auth" and not registers and not told:
            return [FieldError(name, _EITHER) for name in _REGISTER]
        return _half_given(given, *_REGISTER, needed=registers) + _half_given(given, *_INBOUND_AUTH)

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """Errors of the single fields."""
        return carrier_errors(sound)


class UpdateCarrier(CreateCarrier):
    """Fields of a carrier to change; omitted fields keep their values."""

    model_config = ConfigDict(json_schema_extra=all_optional)

    name: Name = ""

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Check nothing: the other half of a pair may be stored already."""
        return []


def _half_given(given: Mapping[str, Any], *halves: str, needed: bool = False) -> list[FieldError]:
    if not needed and all(given.get(name) is None for name in halves):
        return []
    missing = [name for name in halves if given.get(name) is None]
    return [FieldError(name, "is required for digest authentication") for name in missing]


class CreateGateway(RequestModel):
    """One reachable host of a carrier."""

    host: Host
    port: Annotated[int, Field(ge=1, le=65535)] | None = Field(
        5060, description="5061 by default for tls and tls/srtp; null: looked up by SRV."
    )
    netmask: Annotated[
        int,
        Field(ge=8, le=128, description="Widens an inbound address to a network; 32: that address alone."),
    ] = 32
    protocol: Annotated[
        Literal["udp", "tcp", "tls", "tls/srtp", "auto"],
        Field(description="tls/srtp: TLS, and encrypted media; auto: looked up by NAPTR, needs port null."),
    ] = "udp"
    inbound: bool = True
    outbound: bool = True
    priority: Annotated[int, Field(ge=0, le=65535, description="Lower is tried first.")] = 0
    weight: Annotated[int, Field(ge=0, le=65535)] = 1
    send_options_ping: bool = False
    is_active: bool = True
    max_concurrent_calls: Annotated[int, Field(ge=1, le=100_000)] | None = None
    max_cps: Annotated[int, Field(ge=1, le=100_000)] | None = None

    @classmethod
    def cross_check(cls, given: Mapping[str, Any]) -> list[FieldError]:
        """Refuse a netmask on a host name, and the protocol auto with a port."""
        errors: list[FieldError] = []
        port = given.get("port", None if cls is UpdateGateway else 5060)
        if given.get("protocol") == "auto" and port is not None:
            errors.append(FieldError("protocol", AUTO_NEEDS_NO_PORT))
        host, netmask = given.get("host"), given.get("netmask", 32)
        if isinstance(host, str) and netmask != 32 and re.fullmatch(r"[0-9.]+|[0-9A-Fa-f:.]+", host) is None:
            errors.append(FieldError("netmask", "needs an IP address as host"))
        return errors

    @classmethod
    def rules(cls, sound: Mapping[str, Any]) -> list[FieldError]:
        """The error of the host."""
        return host_errors(sound["host"]) if "host" in sound else []


class UpdateGateway(CreateGateway):
    """Fields of a gateway to change; omitted fields keep their values."""

    model_config = ConfigDict(json_schema_extra=all_optional)

    host: Host = ""


class RegisterStatus(ResponseModel):
    """
    Registration of the server with the carrier; all null for a trunk that does not register.

    With several registrars, it is the one in the worst state.
    """

    state: Annotated[
        Literal["registering", "registered", "unreachable", "rejected", "unregistered"] | None,
        Field(description="rejected: the carrier refused the registration or its password."),
    ]
    reason: str | None
    expires_at: Timestamp | None


class RegistrationObject(RegisterStatus):
    """Registration of the server with one registrar of a carrier."""

    registrar: Annotated[str, Field(description="As configured, or host and port of the gateway.")]


class CarrierObject(ResponseModel):
    """A carrier; secrets are never shown."""

    carrier_sid: str
    sid: Annotated[str, Field(description="Alias of carrier_sid.")]
    name: str
    description: str | None
    is_active: bool
    trunk_type: Literal["static_ip", "auth", "reg"]
    e164_leading_plus: bool
    tech_prefix: str | None
    requires_register: bool
    register_username: str | None
    register_sip_realm: str | None
    register_from_user: str | None
    register_from_domain: str | None
    register_transport: str | None
    register_status: RegisterStatus
    registrations: Annotated[list[RegistrationObject], Field(description="One for each registrar.")]
    inbound_auth_username: str | None
    outbound_proxy: str | None
    diversion: str | None
    dtmf_type: str
    codecs: list[str]
    srtp: str
    max_concurrent_calls: int | None
    max_cps: int | None
    app_sid: str | None
    number_format: str
    identity_header: str
    trusts_identity: bool
    forwards_history: bool
    forwarded_headers: list[str]
    allows_refer: bool
    follows_redirects: bool
    rel100: str
    session_expires_s: int | None
    registrars: list[str]
    register_expires_s: int
    certificate_name: str | None
    created_at: Timestamp
    updated_at: Timestamp


class GatewayHealth(ResponseModel):
    """Health of a gateway; `unknown` until it is measured."""

    state: str
    last_ok_at: Timestamp | None
    rtt_ms: float | None


class GatewayObject(ResponseModel):
    """One reachable host of a carrier."""

    gateway_sid: str
    sid: Annotated[str, Field(description="Alias of gateway_sid.")]
    carrier_sid: str
    host: str
    port: Annotated[int | None, Field(description="Null: looked up by SRV.")]
    netmask: int
    protocol: str
    inbound: bool
    outbound: bool
    priority: int
    weight: int
    send_options_ping: bool
    is_active: bool
    max_concurrent_calls: int | None
    max_cps: int | None
    health: GatewayHealth
    created_at: Timestamp
    updated_at: Timestamp


def carrier_json(carrier: Carrier, registrations: Sequence[RegistrationView] = ()) -> dict[str, Any]:
    """
    Public fields of a carrier.

    ``registrations`` are the states at its registrars, the worst first.
    """
    absent = "unregistered" if carrier.registers else None
    worst: dict[str, Any] = {"state": absent, "reason": None, "expires_at": None}
    if registrations:
        worst = shown(RegisterStatus, registrations[0], state=registrations[0].state.value)
    return shown(
        CarrierObject,
        carrier,
        sid=carrier.carrier_sid,
        register_status=worst,
        registrations=[shown(RegistrationObject, view, state=view.state.value) for view in registrations],
    )


def gateway_json(gateway: Gateway, health: Health) -> dict[str, Any]:
    """Public fields of a gateway, with its health from calls and OPTIONS pings."""
    rtt_ms = None if health.rtt_ms is None else round(health.rtt_ms, 1)
    return shown(
        GatewayObject,
        gateway,
        sid=gateway.gateway_sid,
        port=gateway.port or None,
        health=shown(GatewayHealth, health, state=health.state.name.lower(), rtt_ms=rtt_ms),
    )
