"""Conversion of the server's settings to those of the SIP user agent."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from api.process.config import Settings
from sip import DigestSettings
from sip.aio import ClientCertificates, Listen, NameServer, StreamLimits, TlsSettings, UserAgentSettings

__all__ = ["name_servers", "sip_listens", "user_agent_settings"]


def sip_listens(settings: Settings) -> list[Listen]:
    """Listening addresses, each with the advertised address of its IP version."""
    return [
        Listen(listen.transport, listen.host, listen.port, _advertised(listen.host, settings.sip_advertise))
        for listen in settings.sip_listen
    ]


def _advertised(host: str, addresses: Sequence[str]) -> str | None:
    return next((address for address in addresses if (":" in address) is (":" in host)), None)


def user_agent_settings(settings: Settings) -> UserAgentSettings:
    """Settings of the user agent."""
    return UserAgentSettings(
        streams=replace(StreamLimits(), keepalive_s=settings.sip_keepalive_s),
        tls=_tls(settings),
        digest=DigestSettings(realm=settings.sip_realm, algorithms=settings.sip_digest),
        min_se_s=settings.sip_min_se,
        max_udp_request_bytes=settings.sip_udp_max_bytes,
        name_servers=name_servers(settings),
    )


def name_servers(settings: Settings) -> list[NameServer]:
    """DNS servers for peers' names; an empty list means those of the system."""
    return [(server.host, server.port) for server in settings.dns_servers]


def _tls(settings: Settings) -> TlsSettings | None:
    if settings.sip_tls_cert is None or settings.sip_tls_key is None:
        return None
    return TlsSettings(
        settings.sip_tls_cert,
        settings.sip_tls_key,
        settings.sip_tls_ca,
        verify_servers=settings.sip_tls_verify,
        clients=ClientCertificates(settings.sip_tls_clients),
        wildcards=settings.sip_tls_wildcards,
    )
