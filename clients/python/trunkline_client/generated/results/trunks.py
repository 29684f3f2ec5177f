# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal

from pydantic import Field
from trunkline_client.operation import Result


class CallLog(Result):
    """
    One call, from the perspective of a trunk operator.
    """

    call_sid: str
    from_: Annotated[str, Field(alias='from')]
    to: str
    direction: Literal['inbound', 'outbound']
    status: Literal['queued', 'initiated', 'ringing', 'in-progress', 'completed', 'busy', 'no-answer', 'failed', 'canceled']
    answered: bool
    duration: Annotated[int | None, Field(description='Seconds from answer to end.')]
    attempted_at: datetime
    answered_at: datetime | None
    terminated_at: datetime | None
    termination_reason: Annotated[str | None, Field(description='The hangup cause.')]
    terminated_by: Literal['caller', 'callee', 'carrier', 'api', 'stream', 'system'] | None
    sip_status: int | None
    sip_reason: str | None
    sip_call_id: str | None
    host: Annotated[str, Field(description='The server that carried the call.')]
    remote_host: Annotated[str | None, Field(description="The gateway's host.")]
    trunk: Annotated[str | None, Field(description="The carrier's name.")]
    carrier_sid: str | None
    gateway_sid: str | None
    app_sid: str | None
    codec: str | None
    mos: Annotated[
        float | None, Field(description='Of what the first party sent; 1 to 4.5.')
    ]
    jitter_ms: float | None
    packet_loss_pct: float | None


class GatewayHealth(Result):
    """
    Health of a gateway; `unknown` until it is measured.
    """

    state: str
    last_ok_at: datetime | None
    rtt_ms: float | None


class Gateway(Result):
    """
    One reachable host of a carrier.
    """

    gateway_sid: str
    sid: Annotated[str, Field(description='Alias of gateway_sid.')]
    carrier_sid: str
    host: str
    port: Annotated[int | None, Field(description='Null: looked up by SRV.')]
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
    created_at: datetime
    updated_at: datetime


class RegisterStatus(Result):
    """
    Registration of the server with the carrier; all null for a trunk that does not register. With several registrars, it is the one in the worst state.
    """

    state: Annotated[
        Literal['registering', 'registered', 'unreachable', 'rejected', 'unregistered'] | None,
        Field(
            description='rejected: the carrier refused the registration or its password.'
        ),
    ]
    reason: str | None
    expires_at: datetime | None


class Registration(Result):
    """
    Registration of the server with one registrar of a carrier.
    """

    state: Annotated[
        Literal['registering', 'registered', 'unreachable', 'rejected', 'unregistered'] | None,
        Field(
            description='rejected: the carrier refused the registration or its password.'
        ),
    ]
    reason: str | None
    expires_at: datetime | None
    registrar: Annotated[
        str, Field(description='As configured, or host and port of the gateway.')
    ]


class TrunkNumber(Result):
    """
    A number on one of the account's own carriers.
    """

    number_sid: Annotated[str, Field(description='Same id as in /phone-numbers.')]
    sid: Annotated[str, Field(description='Alias of number_sid.')]
    number: Annotated[str, Field(description='E.164.')]
    carrier_sid: str
    app_sid: str | None
    friendly_name: str | None
    created_at: datetime
    updated_at: datetime


class Carrier(Result):
    """
    A carrier; secrets are never shown.
    """

    carrier_sid: str
    sid: Annotated[str, Field(description='Alias of carrier_sid.')]
    name: str
    description: str | None
    is_active: bool
    trunk_type: Literal['static_ip', 'auth', 'reg']
    e164_leading_plus: bool
    tech_prefix: str | None
    requires_register: bool
    register_username: str | None
    register_sip_realm: str | None
    register_from_user: str | None
    register_from_domain: str | None
    register_transport: str | None
    register_status: RegisterStatus
    registrations: Annotated[
        list[Registration], Field(description='One for each registrar.')
    ]
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
    created_at: datetime
    updated_at: datetime
