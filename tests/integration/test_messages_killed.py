"""Messages whose server is killed: what was answered with 200 is sent, once, and comes to its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.server_process import ServerProcess, wait_until

pytestmark = [pytest.mark.durable, pytest.mark.real_time(reason="a server in a process of its own is killed")]

PATIENCE_S = 40.0
ENDS = {"+919800100200": "read", "+919800100201": "delivered", "+919800100203": "failed"}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    # At this pace most of what is sent at once waits for its turn.
    server = ServerProcess(tmp_path / "server", environment={"TRUNKLINE_MESSAGES_PER_SECOND": "10"})
    server.start()
    yield server
    server.stop()


def test_what_was_accepted_is_sent_by_whoever_comes_next(server: ServerProcess) -> None:
    account = server.add_account()
    made = server.command("keys", "create", "--account", account.account_sid, "--service", "messaging")
    key = str(made["key"])
    accepted: dict[str, str] = {}
    for place in range(30):
        to = list(ENDS)[place % len(ENDS)]
        reply = server.request("POST", "/api/v1/messages", key, {"to": to, "type": "text", "text": "Hello"})
        assert reply.status == 200, reply
        accepted[reply.body["messageId"]] = to
    server.kill()
    server.start()

    def listed() -> list[dict[str, Any]]:
        reply = server.request("GET", "/api/v1/messages?pageSize=100", key)
        found: list[dict[str, Any]] = reply.data
        return found

    def all_ended() -> bool:
        return all(message["status"] == ENDS[message["to"]] for message in listed())

    assert wait_until(all_ended, PATIENCE_S), Counter(message["status"] for message in listed())
    assert {message["messageId"]: message["to"] for message in listed()} == accepted
    assert server.metric("trunkline_messages_queued") == 0
