"""A process that is killed has lost no call that it had accepted, and no money."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from callcontrol.bootstrap.aio.services import Storage
from callcontrol.models import CallFilter, CallStatus
from tests.support.secrets import SECRETS

# Accepts calls without end and says so on its output; every other one it ends.
PROCESS = """
import asyncio, sys
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.models import CallRecord, CallStatus
from tests.support.secrets import SECRETS

async def main():
    storage = await Storage.open(sys.argv[1], deliver=False, secrets=SECRETS)

    async def call(number):
        record = CallRecord(new_id(), sys.argv[2], "outbound", "+911", "+912", utc_now())
        await storage.calls.insert(record, reserve_paise=100)
        print(record.call_sid, flush=True)
        record.status = CallStatus.RINGING
        storage.calls.update(record)
        await asyncio.sleep(0.01)
        if number % 2:
            record.status, record.ended_at = CallStatus.COMPLETED, utc_now()
            storage.calls.finish(record, charge_paise=60)

    number = 0
    while True:
        await asyncio.gather(*(call(number + more) for more in range(5)))
        number += 5

asyncio.run(main())
"""


@pytest.mark.parametrize("accepted", [pytest.param(1, marks=pytest.mark.long("a kill at another time")), 153])
async def test_a_killed_process_lost_nothing(url: str, accepted: int) -> None:
    storage = await Storage.open(url, deliver=False, secrets=SECRETS)
    account, _ = await storage.accounts.create("Acme", balance_paise=10_000_000)
    root = Path(__file__).parents[3]
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROCESS, url, account.account_sid), stdout=asyncio.subprocess.PIPE, cwd=root
    )
    assert process.stdout is not None
    try:
        said = {(await process.stdout.readline()).decode().strip() for _ in range(accepted)}
    finally:
        process.kill()
        rest = await process.stdout.read()
        await process.wait()
    # What it managed to say before it died counts too; the last line may be half a line.
    said |= {line for line in rest.decode().split("\n")[:-1] if line}
    assert len(said) >= accepted

    unfinished = {item.call_sid for item in await storage.calls.unfinished()}
    page = await storage.calls.list(account.account_sid, CallFilter(status=CallStatus.COMPLETED), 1, 10_000)
    ended = {item.call_sid for item in page.items}
    assert said <= unfinished | ended
    # What is open holds its reserve and nothing else does, so reconciling it leaves the books straight.
    assert {item.call_sid for item in await storage.wallet.open_reserves()} == unfinished
    wallet = await storage.wallet.wallet(account.account_sid)
    assert wallet.reserved_paise == 100 * len(unfinished)
    assert wallet.balance_paise == 10_000_000 - 60 * len(ended)
    assert wallet.balance_paise == await storage.wallet.ledger_sum(account.account_sid)
    await storage.close()
