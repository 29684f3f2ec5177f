"""A server process with a sandbox carrier, on ports of its own, and calls over its API."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from fixtures.server_process import Account, ServerProcess, free_port, wait_until
from tests.support.waiting import PATIENCE_S

__all__ = ["ECHO", "NUMBER", "calls", "place_call", "sandbox_process"]

NUMBER, ECHO = "+918047491899", "+919800000001"
"""An account's own number, and one of the sandbox that answers and repeats what it hears."""

_RTP_PORTS = 60


def sandbox_process(
    data_dir: Path, rtp_from: int, *, prefix: tuple[str, ...] = (), **changes: str
) -> ServerProcess:
    """
    A server that is yet to be started, and takes 120 ports from `rtp_from` on; each module has its own.

    `changes` are settings as in the environment, without their prefix.
    """
    sandbox_from = rtp_from + _RTP_PORTS
    values = {
        "SANDBOX_CARRIER": "1",
        "SANDBOX_LISTEN": f"udp:127.0.0.1:{free_port()}",
        "RTP_PORTS": f"{rtp_from}-{sandbox_from - 1}",
        "SANDBOX_RTP_PORTS": f"{sandbox_from}-{sandbox_from + _RTP_PORTS - 1}",
        "DRAIN_S": "1",
        **changes,
    }
    environment = {f"TRUNKLINE_{name}": value for name, value in values.items()}
    return ServerProcess(data_dir, environment=environment, prefix=prefix)


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
