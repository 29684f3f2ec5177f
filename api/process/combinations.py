"""Settings that are valid each by itself, and not together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from api.process.values import ListenAddress
from callcontrol.webrtc.ice_servers import IceServer

__all__ = ["PREFIX", "Problem", "check_together"]

PREFIX = "TRUNKLINE_"


@dataclass(frozen=True, slots=True)
class Problem:
    """One invalid setting: its full name, the problem, and where it was set if that helps."""

    variable: str
    message: str
    source: str = "the environment"

    def __str__(self) -> str:
        origin = f" (from {self.source})" if self.source else ""
        return f"{self.variable}{origin}: {self.message}"


def check_together(values: Mapping[str, Any], problems: list[Problem]) -> None:
    """Add a problem for each combination that cannot work; `values` are by the names of the fields."""
    listens: tuple[ListenAddress, ...] = values["sip_listen"]
    _check_tls(values, problems)
    _check_turn(values["ice_servers"], values["turn_secret"], problems)
    told = {":" in address for address in values["sip_advertise"]}
    if any(listen.is_any and (":" in listen.host) not in told for listen in listens):
        problems.append(_any_without_advertise("SIP"))
    if values["rtp_advertise"] is None and values["rtp_listen"] in ("0.0.0.0", "::"):
        problems.append(_any_without_advertise("RTP"))
    if len(values["sandbox_listen"]) != 1 or values["sandbox_listen"][0].transport != "udp":
        problems.append(Problem(PREFIX + "SANDBOX_LISTEN", "must be one udp:address:port", ""))
    if values["sandbox_carrier"] and values["sandbox_rtp_ports"].overlaps(values["rtp_ports"]):
        problems.append(
            Problem(
                PREFIX + "SANDBOX_RTP_PORTS",
                f"overlaps {PREFIX}RTP_PORTS; the two need ports of their own",
                "",
            )
        )


def _check_turn(servers: tuple[IceServer, ...], secret: str | None, problems: list[Problem]) -> None:
    """Refuse TURN servers for which pages would get no credential, and a secret that no server needs."""
    without = [server.url for server in servers if server.needs_secret]
    if without and secret is None:
        message = f"{without[0]} needs USER:PASSWORD@ before its host, or {PREFIX}TURN_SECRET"
        problems.append(Problem(PREFIX + "ICE_SERVERS", message, ""))
    if secret is not None and not without:
        message = f"is of no use: {PREFIX}ICE_SERVERS has no turn: or turns: address without USER:PASSWORD@"
        problems.append(Problem(PREFIX + "TURN_SECRET", message, ""))


def _check_tls(values: Mapping[str, Any], problems: list[Problem]) -> None:
    """Refuse a tls: address without certificate and key, and one of the two files without the other."""
    listens: tuple[ListenAddress, ...] = values["sip_listen"]
    serves = any(listen.transport == "tls" for listen in listens)
    for name in ("SIP_TLS_CERT", "SIP_TLS_KEY"):
        other = "SIP_TLS_KEY" if name == "SIP_TLS_CERT" else "SIP_TLS_CERT"
        if values[name.lower()] is None and (serves or values[other.lower()] is not None):
            why = f"{PREFIX}SIP_LISTEN has a tls: address" if serves else f"{PREFIX}{other} is set"
            problems.append(Problem(PREFIX + name, f"must name a PEM file, since {why}", ""))
    if values["sip_tls_clients"] != "none" and values["sip_tls_ca"] is None:
        message = "must name the authorities of the clients' certificates, or anybody's would do"
        problems.append(Problem(PREFIX + "SIP_TLS_CA", message, ""))


def _any_without_advertise(which: str) -> Problem:
    message = f"listens on every address, so {PREFIX}{which}_ADVERTISE must say which one peers shall use"
    return Problem(f"{PREFIX}{which}_LISTEN", message, "")
