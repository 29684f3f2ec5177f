"""Recordings that fail while a call is up: the call goes on, and the record says so."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from callcontrol.models import CallStatus
from sip import Confirmed
from tests.support.domain import OWN_NUMBER
from tests.support.phone import PhoneCall, eventually
from tests.support.world import running


async def test_a_full_disk_ends_the_recording_and_not_the_call(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with running(tmp_path) as world:
        world.forward(record=True)
        world.phone.on_call = PhoneCall.ring

        def fill_the_disk() -> bool:
            """The file that will be recorded into takes nothing."""
            for call_sid in world.records.records:
                (tmp_path / "recordings" / f"{call_sid}.wav").symlink_to("/dev/full")
            return bool(world.records.records)

        a = world.phone.call(OWN_NUMBER, world.port)
        b = await world.phone.next_call(2)
        assert fill_the_disk()
        with caplog.at_level(logging.WARNING):
            b.answer()
            await b.wait(Confirmed)
            a.speak(440.0)
            assert await eventually(lambda: world.records.only().recording_status == "failed")
        assert any("the recording failed: No space left" in message for message in caplog.messages)
        await b.hears(440.0)
        assert world.records.only().status is CallStatus.IN_PROGRESS
        a.hang_up()
        record = await world.ended()
        assert (record.status, record.recording_url) == (CallStatus.COMPLETED, None)
        assert record.recording_status == "failed"
        assert "call.recording.ready" not in world.records.event_names()
