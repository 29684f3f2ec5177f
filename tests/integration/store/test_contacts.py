"""Contacts and their lists over a real database."""

from __future__ import annotations

from callcontrol.aio.storage import Storage
from callcontrol.aio.tokens import utc_now
from callcontrol.models import Account
from callcontrol.store.repositories import contacts

ASHA, RAVI, NOBODY = "+919876543210", "+919876543211", "+919876543212"


async def test_who_opts_out_is_remembered_until_they_opt_in(storage: Storage, account: Account) -> None:
    sid, now = account.account_sid, utc_now()

    async def hear(number: str, out: bool) -> bool:
        return await storage.writer.commit(lambda rows: contacts.set_opted_out(rows, sid, number, out, now))

    async def out() -> set[str]:
        numbers = [ASHA, RAVI, NOBODY]
        return await storage.database.read(lambda rows: contacts.opted_out(rows, sid, numbers))

    assert await hear(ASHA, True) and await hear(RAVI, True)
    assert not await hear(ASHA, True), "that is known"
    assert not await hear(NOBODY, False), "nobody who has not opted out is made a contact"
    assert await out() == {ASHA, RAVI}
    assert await hear(ASHA, False)
    assert await out() == {RAVI}
    found, total = await storage.database.read(lambda rows: contacts.page(rows, sid, offset=0, limit=10))
    assert [(contact.phone_number, contact.opted_out) for contact in found] == [(ASHA, False), (RAVI, True)]
    assert total == 2
    other = await storage.database.read(lambda rows: contacts.opted_out(rows, "another", [RAVI]))
    assert other == set()
