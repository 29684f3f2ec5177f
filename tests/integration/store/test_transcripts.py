"""Storage of transcripts."""

from __future__ import annotations

from typing import Literal

import sqlalchemy as sa

from callcontrol.agents.transcripts import segments_of
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.database.tables.assistant import transcript_segments
from callcontrol.models import Account, CallStatus, TranscriptSegment
from tests.support.domain import new_record
from tests.support.secrets import SECRETS


async def test_what_was_said_is_durable_when_the_end_of_its_call_is(url: str) -> None:
    storage = await Storage.open(url, deliver=False, secrets=SECRETS)
    account, _ = await storage.accounts.create("Acme", balance_paise=1000)
    call = new_record(account.account_sid)
    await storage.calls.insert(call)
    storage.transcripts.add(call, TranscriptSegment("agent", "Good morning\0", 0, 900))
    storage.transcripts.add(call, TranscriptSegment("user", "\ud800hello", 1000))
    call.status, call.ended_at = CallStatus.COMPLETED, call.created_at
    storage.calls.finish(call)
    await storage.close()

    again = await Storage.open(url, deliver=False, secrets=SECRETS)
    assert [
        (one.role, one.text, one.start_ms, one.end_ms)
        for one in await again.transcripts.of_call(call.call_sid)
    ] == [
        ("agent", "Good morning", 0, 900),
        ("user", "?hello", 1000, None),
    ]
    assert segments_of(await again.calls.get(account.account_sid, call.call_sid)) == 2
    await again.close()


async def test_a_transcript_is_read_in_the_order_in_which_things_were_said(
    storage: Storage, account: Account
) -> None:
    call = new_record(account.account_sid)
    await storage.calls.insert(call)
    for start_ms in (500, 0, 500, 250):
        storage.transcripts.add(call, TranscriptSegment("agent", f"at {start_ms}", start_ms))
    said = await storage.transcripts.of_call(call.call_sid)
    assert [one.start_ms for one in said] == [0, 250, 500, 500]


async def test_a_segment_that_cannot_be_stored_takes_no_other_with_it(
    storage: Storage, account: Account
) -> None:
    call = new_record(account.account_sid)
    await storage.calls.insert(call)
    storage.transcripts.add(call, TranscriptSegment("agent", "before", 0))
    stranger = new_record("nobody")
    storage.transcripts.add(stranger, TranscriptSegment("agent", "of nobody", 0))
    storage.transcripts.add(call, TranscriptSegment("agent", "after", 1))
    await storage.transcripts.of_call(call.call_sid)
    said = await storage.transcripts.of_call(call.call_sid)
    assert [one.text for one in said] == ["before", "after"]
    count = sa.select(sa.func.count()).select_from(transcript_segments)
    assert await storage.database.read(lambda connection: connection.scalar(count)) == 2


async def test_what_parties_said_is_kept_apart_from_the_conversation_with_an_agent(
    storage: Storage, account: Account
) -> None:
    call = new_record(account.account_sid)
    await storage.calls.insert(call)
    roles: tuple[Literal["a", "agent", "b", "user"], ...] = ("a", "agent", "b", "user")
    for role in roles:
        storage.transcripts.add(call, TranscriptSegment(role, f"by {role}", 0))
    transcripts = storage.transcripts
    assert [one.text for one in await transcripts.of_parties(call.call_sid)] == ["by a", "by b"]
    assert [one.text for one in await transcripts.of_agent(call.call_sid)] == ["by agent", "by user"]
    await transcripts.delete_of_agent(call.call_sid)
    assert [one.text for one in await transcripts.of_call(call.call_sid)] == ["by a", "by b"]
    storage.transcripts.add(call, TranscriptSegment("agent", "again", 0))
    await transcripts.delete_of_parties(call.call_sid)
    assert [one.text for one in await transcripts.of_call(call.call_sid)] == ["again"]
