"""A server killed in the middle of a campaign: everybody gets one message, and it completes once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from callcontrol.bootstrap.aio.services import Storage
from tests.support.campaigns import approve
from tests.support.phone import PATIENCE_S
from tests.support.server_process import ServerProcess, wait_until

pytestmark = [pytest.mark.durable, pytest.mark.real_time(reason="a server in a process of its own is killed")]

TOTAL = 300
# Beside those that are read: delivered only, fails later, refused at once, unreachable twice, told twice.
FATES = [f"+9198001000{digits}" for digits in ("01", "03", "04", "05", "07", "08", "09", "10")]
NUMBERS = FATES + [f"+9198002{number:05d}" for number in range(TOTAL - len(FATES))]
DEAD = "https://127.0.0.1:1/hook"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    server = ServerProcess(tmp_path / "server")
    server.start()
    yield server
    server.stop()


async def approved(server: ServerProcess, account_sid: str) -> None:
    """An approved template, written beside the server."""
    url = f"sqlite+aiosqlite:///{server.data_dir / 'trunkline.db'}"
    storage = await Storage.open(url, deliver=False)
    await approve(storage, account_sid)
    await storage.close()


@pytest.mark.long(reason="a campaign of thousands that is killed")
def test_a_campaign_outlives_its_process(server: ServerProcess) -> None:
    account_sid = server.add_account().account_sid
    scopes = "campaigns.create,campaigns.read,messages.send,webhooks.read,webhooks.write"
    given = ("--account", account_sid, "--service", "messaging", "--scopes", scopes)
    key = str(server.command("keys", "create", *given)["key"])
    asyncio.run(approved(server, account_sid))
    hook = {"url": DEAD, "events": ["campaign.completed"]}
    hook_id = server.request("POST", "/api/webhook-endpoints", key, hook).data["id"]
    body = {
        "templateName": "offer",
        "campaignName": "Diwali",
        "phoneNumbers": NUMBERS,
        "variables": {"1": "Asha", "2": "10 %"},
    }
    taken = server.request("POST", "/api/v1/send", key, body)
    assert (taken.status, taken.data["total"]) == (201, TOTAL)
    campaign_id = taken.data["campaignId"]

    def status() -> dict[str, Any]:
        found: dict[str, Any] = server.request("GET", f"/api/v1/{campaign_id}/status", key).data
        assert sum(found["counts"].values()) == found["total"] == TOTAL, found
        return found

    def left(share: float) -> bool:
        return bool(status()["progress"] >= share)

    server.kill()
    for share in (20, 50, 80):
        server.start()
        assert wait_until(partial(left, share), PATIENCE_S), status()
        server.kill()
    server.start()
    assert wait_until(lambda: status()["status"] == "completed", 2 * PATIENCE_S), status()
    assert wait_until(lambda: status()["counts"]["read"] == TOTAL - 4, PATIENCE_S), status()
    assert status()["counts"] == {
        "queued": 0,
        "sent": 0,
        "delivered": 1,
        "read": TOTAL - 4,
        "failed": 3,
        "cancelled": 0,
    }
    found = [
        message["to"]
        for page in range(1, 1 + TOTAL // 100)
        for message in server.request(
            "GET", f"/api/v1/messages?campaignId={campaign_id}&pageSize=100&page={page}", key
        ).data
    ]
    assert Counter(found) == Counter(NUMBERS)
    log = server.request("GET", f"/api/webhook-endpoints/{hook_id}/deliveries", key).data
    assert len(log) == 1
