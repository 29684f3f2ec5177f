"""Settings of whole servers within a test: everything on loopback, with a sandbox carrier."""

from __future__ import annotations

from pathlib import Path

from api.config import Settings, load_settings


def loopback_settings(data_dir: Path, rtp_from: int, *, rtp_ports: int = 200, **changes: str) -> Settings:
    """
    Settings of a server that takes `rtp_ports` ports from `rtp_from` on, and as many more for its sandbox.

    Each module has ports of its own: two may run at the same time. `changes` are names as in the environment,
    without their prefix.
    """
    sandbox_from = rtp_from + rtp_ports
    values = {
        "HTTP_LISTEN": "127.0.0.1:0",
        "SIP_LISTEN": "udp:127.0.0.1:0,tcp:127.0.0.1:0",
        "SANDBOX_LISTEN": "udp:127.0.0.1:0",
        "RTP_PORTS": f"{rtp_from}-{sandbox_from - 1}",
        "SANDBOX_RTP_PORTS": f"{sandbox_from}-{sandbox_from + rtp_ports - 1}",
        "DATA_DIR": str(data_dir),
        "ALLOW_PRIVATE_DESTINATIONS": "1",
        "DRAIN_S": "1",
        **changes,
    }
    return load_settings({f"TRUNKLINE_{name}": value for name, value in values.items()})
