"""A server process with a sandbox carrier, on ports of its own, and calls over its API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.support.ports import free_port, port_range
from tests.support.server_process import Account, ServerProcess, wait_until
from tests.support.waiting import PATIENCE_S

__all__ = ["ECHO", "NUMBER", "calls", "place_call", "sandbox_process"]

NUMBER, ECHO = "+918047491899", "+919800000001"
"""An account's own number, and one of the sandbox that answers and repeats what it hears."""

_RTP_PORTS = 60


def sandbox_process(data_dir: Path, *, prefix: tuple[str, ...] = (), **changes: str) -> ServerProcess:
    """A server that is yet to be started; `changes` are settings without their prefix."""
    values = {
        "SANDBOX_CARRIER": "1",
        "SANDBOX_LISTEN": f"udp:127.0.0.1:{free_port()}",
        "SANDBOX_RTP_PORTS": "{}-{}".format(*port_range(_RTP_PORTS)),
        "DRAIN_S": "1",
        **changes,
    }
    environment = {f"TRUNKLINE_{name}": value for name, value in values.items()}
    return ServerProcess(data_dir, environment=environment, rtp_ports=_RTP_PORTS, prefix=prefix)


def calls(server: ServerProcess, account: Account) -> list[dict[str, Any]]:
    """The calls of an account, newest first."""
    listed: list[dict[str, Any]] = server.request("GET", "/v1/calls", account.api_key).data
    return listed


def place_call(
    server: ServerProcess, account: Account, *verbs: dict[str, Any], **fields: Any
) -> dict[str, Any]:
    """Place a call to the sandbox, do what verbs say, hang up, and wait for its end."""
    body = {"from": NUMBER, "to": ECHO, "verbs": [*verbs, {"verb": "hangup"}], **fields}
    placed = server.request("POST", "/v1/calls", account.api_key, body)
    assert placed.status == 201, placed.body

    def found() -> dict[str, Any]:
        sid = placed.data["call_sid"]
        return next(call for call in calls(server, account) if call["call_sid"] == sid)

    assert wait_until(lambda: found()["ended_at"] is not None, PATIENCE_S), server.log()
    return found()
