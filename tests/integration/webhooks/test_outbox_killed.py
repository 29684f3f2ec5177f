"""A server that is killed while it sends bursts of events loses none, and what comes twice says so."""

import asyncio
import json
import sys
from collections import defaultdict
from pathlib import Path

import pytest

from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from tests.support.secrets import SECRETS
from tests.support.waiting import until
from tests.support.webhook_stage import Received, Receiver

# Publishes bursts of events of calls without end, as the records of the calls change; says what is committed.
SERVER = """
import asyncio, json, sys
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.models import CallRecord, CallStatus, WebhookEvent
from tests.support.secrets import SECRETS

async def main():
    url, account_sid, hook = sys.argv[1:]
    storage = await Storage.open(
        url, StorageSettings(place="here", allow_private_destinations=True), secrets=SECRETS
    )

    async def call():
        record = CallRecord(new_id(), account_sid, "outbound", "+911", "+912", utc_now())
        told = []

        def event(number):
            event_id = f"{record.call_sid}/{number}"
            body = json.dumps({"event_id": event_id}).encode()
            told.append(event_id)
            return WebhookEvent(
                event_id, account_sid, "call.ringing", hook, body, utc_now(), record.call_sid
            )

        await storage.calls.insert(record, events=[event(0)])
        record.status = CallStatus.RINGING
        storage.calls.update(record, events=[event(1), event(2)])
        record.status, record.ended_at = CallStatus.COMPLETED, utc_now()
        storage.calls.finish(record, events=[event(3)])
        await storage.calls.flush()
        print(json.dumps(told), flush=True)

    while True:
        await asyncio.gather(*(call() for _ in range(20)))

asyncio.run(main())
"""


async def _killed_after(lines: int, *arguments: str) -> list[str]:
    """Return the ids that a server reported as committed before it was killed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", SERVER, *arguments),
        stdout=asyncio.subprocess.PIPE,
        cwd=Path(__file__).parents[3],
    )
    assert process.stdout is not None
    try:
        said = [(await process.stdout.readline()).decode() for _ in range(lines)]
    finally:
        process.kill()
        rest = (await process.stdout.read()).decode()
        await process.wait()
    # The last line may be half a line.
    said += [line for line in rest.split("\n")[:-1] if line]
    return [event_id for line in said for event_id in json.loads(line)]


@pytest.mark.long(reason="starts a process for each kill")
async def test_kills_during_bursts_lose_nothing(
    receiver: Receiver, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    url = f"sqlite+aiosqlite:///{tmp_path / 'outbox.db'}"
    storage = await Storage.open(url, deliver=False, secrets=SECRETS)
    account, _ = await storage.accounts.create("Acme", balance_paise=0)
    await storage.close()
    committed: list[str] = []
    for lines in (1, 35, 90):
        committed += await _killed_after(lines, url, account.account_sid, receiver.url("/hook"))
    assert len(committed) >= 4 * 126

    # The next start takes up what the killed ones had committed or held.
    storage = await Storage.open(
        url, StorageSettings(place="here", allow_private_destinations=True), secrets=SECRETS
    )
    expected = set(committed)
    await until(lambda: expected <= set(receiver.ids()))
    await until(lambda: not storage.outbox.held)
    await storage.close()

    bodies: dict[str, set[bytes]] = defaultdict(set)
    first_of_call: dict[str, list[str]] = defaultdict(list)
    for got in receiver.requests:
        _check(got)
        call_sid, _, number = got.delivery_id.partition("/")
        if not bodies[got.delivery_id]:
            first_of_call[call_sid].append(number)
        bodies[got.delivery_id].add(got.body)
    # A double is the same event under the same id; without them, every call's events came in their order.
    assert all(len(found) == 1 for found in bodies.values())
    assert all(numbers == sorted(numbers) for numbers in first_of_call.values())
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


def _check(got: Received) -> None:
    assert json.loads(got.body) == {"event_id": got.delivery_id}
    assert got.headers["webhook-id"] == got.delivery_id
    assert got.headers["X-Service-Signature"].startswith("sha256=")
