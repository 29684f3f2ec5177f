# Written by scripts/client from the OpenAPI document of the server; do not edit.

from __future__ import annotations

from typing import Literal, NotRequired, TypedDict


class CreateCarrierFields(TypedDict):
    """
    Fields of `trunks.create_carrier`.
    """

    name: str
    description: NotRequired[str | None]
    is_active: NotRequired[bool]
    trunk_type: NotRequired[Literal['static_ip', 'auth', 'reg']]
    e164_leading_plus: NotRequired[bool]
    tech_prefix: NotRequired[str | None]
    number_format: NotRequired[Literal['e164', 'national', 'significant']]
    requires_register: NotRequired[bool]
    register_username: NotRequired[str | None]
    register_password: NotRequired[str | None]
    register_sip_realm: NotRequired[str | None]
    register_from_user: NotRequired[str | None]
    register_from_domain: NotRequired[str | None]
    register_transport: NotRequired[Literal['udp', 'tcp', 'tls'] | None]
    register_expires_s: NotRequired[int]
    registrars: NotRequired[list[str]]
    inbound_auth_username: NotRequired[str | None]
    inbound_auth_password: NotRequired[str | None]
    certificate_name: NotRequired[str | None]
    outbound_proxy: NotRequired[str | None]
    diversion: NotRequired[str | None]
    identity_header: NotRequired[Literal['pai', 'ppi', 'rpid', 'none']]
    trusts_identity: NotRequired[bool]
    forwards_history: NotRequired[bool]
    forwarded_headers: NotRequired[list[str]]
    allows_refer: NotRequired[bool]
    follows_redirects: NotRequired[bool]
    rel100: NotRequired[Literal['off', 'supported', 'required']]
    session_expires_s: NotRequired[int | None]
    dtmf_type: NotRequired[Literal['rfc2833', 'info', 'tones']]
    codecs: NotRequired[list[Literal['PCMU', 'PCMA', 'G722', 'L16', 'OPUS']]]
    srtp: NotRequired[Literal['off', 'sdes', 'require']]
    max_concurrent_calls: NotRequired[int | None]
    max_cps: NotRequired[int | None]
    app_sid: NotRequired[str | None]


class ListCarriersFields(TypedDict):
    """
    Fields of `trunks.list_carriers`.
    """

    per_page: NotRequired[int]


class UpdateCarrierFields(TypedDict):
    """
    Fields of `trunks.update_carrier`.
    """

    name: NotRequired[str]
    description: NotRequired[str | None]
    is_active: NotRequired[bool]
    trunk_type: NotRequired[Literal['static_ip', 'auth', 'reg']]
    e164_leading_plus: NotRequired[bool]
    tech_prefix: NotRequired[str | None]
    number_format: NotRequired[Literal['e164', 'national', 'significant']]
    requires_register: NotRequired[bool]
    register_username: NotRequired[str | None]
    register_password: NotRequired[str | None]
    register_sip_realm: NotRequired[str | None]
    register_from_user: NotRequired[str | None]
    register_from_domain: NotRequired[str | None]
    register_transport: NotRequired[Literal['udp', 'tcp', 'tls'] | None]
    register_expires_s: NotRequired[int]
    registrars: NotRequired[list[str]]
    inbound_auth_username: NotRequired[str | None]
    inbound_auth_password: NotRequired[str | None]
    certificate_name: NotRequired[str | None]
    outbound_proxy: NotRequired[str | None]
    diversion: NotRequired[str | None]
    identity_header: NotRequired[Literal['pai', 'ppi', 'rpid', 'none']]
    trusts_identity: NotRequired[bool]
    forwards_history: NotRequired[bool]
    forwarded_headers: NotRequired[list[str]]
    allows_refer: NotRequired[bool]
    follows_redirects: NotRequired[bool]
    rel100: NotRequired[Literal['off', 'supported', 'required']]
    session_expires_s: NotRequired[int | None]
    dtmf_type: NotRequired[Literal['rfc2833', 'info', 'tones']]
    codecs: NotRequired[list[Literal['PCMU', 'PCMA', 'G722', 'L16', 'OPUS']]]
    srtp: NotRequired[Literal['off', 'sdes', 'require']]
    max_concurrent_calls: NotRequired[int | None]
    max_cps: NotRequired[int | None]
    app_sid: NotRequired[str | None]


class CreateGatewayFields(TypedDict):
    """
    Fields of `trunks.create_gateway`.
    """

    host: str
    port: NotRequired[int | None]
    netmask: NotRequired[int]
    protocol: NotRequired[Literal['udp', 'tcp', 'tls', 'tls/srtp', 'auto']]
    inbound: NotRequired[bool]
    outbound: NotRequired[bool]
    priority: NotRequired[int]
    weight: NotRequired[int]
    send_options_ping: NotRequired[bool]
    is_active: NotRequired[bool]
    max_concurrent_calls: NotRequired[int | None]
    max_cps: NotRequired[int | None]


class ListGatewaysFields(TypedDict):
    """
    Fields of `trunks.list_gateways`.
    """

    per_page: NotRequired[int]


class UpdateGatewayFields(TypedDict):
    """
    Fields of `trunks.update_gateway`.
    """

    host: NotRequired[str]
    port: NotRequired[int | None]
    netmask: NotRequired[int]
    protocol: NotRequired[Literal['udp', 'tcp', 'tls', 'tls/srtp', 'auto']]
    inbound: NotRequired[bool]
    outbound: NotRequired[bool]
    priority: NotRequired[int]
    weight: NotRequired[int]
    send_options_ping: NotRequired[bool]
    is_active: NotRequired[bool]
    max_concurrent_calls: NotRequired[int | None]
    max_cps: NotRequired[int | None]


class RegisterTrunkNumberFields(TypedDict):
    """
    Fields of `trunks.register_number`.
    """

    number: str
    carrier_sid: str
    app_sid: NotRequired[str | None]
    friendly_name: NotRequired[str | None]


class ListTrunkNumbersFields(TypedDict):
    """
    Fields of `trunks.list_numbers`.
    """

    carrier_sid: NotRequired[str | None]
    app_sid: NotRequired[str | None]
    per_page: NotRequired[int]


class UpdateTrunkNumberFields(TypedDict):
    """
    Fields of `trunks.update_number`.
    """

    carrier_sid: NotRequired[str]
    app_sid: NotRequired[str | None]
    friendly_name: NotRequired[str | None]


class ListCallLogsFields(TypedDict):
    """
    Fields of `trunks.list_call_logs`.
    """

    days: NotRequired[int | None]
    start: NotRequired[str | None]
    end: NotRequired[str | None]
    start_date: NotRequired[str | None]
    end_date: NotRequired[str | None]
    direction: NotRequired[Literal['inbound', 'outbound'] | None]
    answered: NotRequired[bool | None]
    carrier_sid: NotRequired[str | None]
    filter: NotRequired[str | None]
    per_page: NotRequired[int]
