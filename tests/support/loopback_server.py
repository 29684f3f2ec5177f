"""Settings of whole servers within a test: everything on loopback, with a sandbox carrier."""

from __future__ import annotations

from pathlib import Path

from api.process.config import Settings, load_settings
from tests.support.ports import port_range


def loopback_settings(data_dir: Path, *, rtp_ports: int = 200, **changes: str) -> Settings:
    """
    Settings of a server with so many ports for RTP, and as many more for its sandbox.

    `changes` are names as in the environment, without their prefix.
    """
    # One allocation: successive ones of this size may overlap, which the settings do not permit.
    first, last = port_range(2 * rtp_ports)
    values = {
        "HTTP_LISTEN": "127.0.0.1:0",
        "SIP_LISTEN": "udp:127.0.0.1:0,tcp:127.0.0.1:0",
        "SANDBOX_LISTEN": "udp:127.0.0.1:0",
        "RTP_PORTS": f"{first}-{first + rtp_ports - 1}",
        "SANDBOX_RTP_PORTS": f"{first + rtp_ports}-{last}",
        "DATA_DIR": str(data_dir),
        "ALLOW_PRIVATE_DESTINATIONS": "1",
        "DRAIN_S": "1",
        "WEBRTC_PORT": "0",
        **changes,
    }
    return load_settings({f"TRUNKLINE_{name}": value for name, value in values.items()})
