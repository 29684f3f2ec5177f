"""Recordings of calls: who is on which side, and one that fails while its call goes on."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from callcontrol.models import CallStatus
from fixtures.audio_check import find_tone, read_stereo
from sip import Confirmed
from tests.support.domain import OWN_NUMBER
from tests.support.phone import PhoneCall, eventually
from tests.support.waiting import time_passes
from tests.support.world import running

OTHER_CALLEE = "+919876543299"


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


@pytest.mark.parametrize("inbound", [True, False], ids=["forwarded", "dialled"])
async def test_the_first_party_is_on_the_left_and_the_other_on_the_right(
    tmp_path: Path, inbound: bool
) -> None:
    async with running(tmp_path) as world:
        if inbound:
            world.forward(record=True)
            a = world.phone.call(OWN_NUMBER, world.port)
        else:
            dial = {"verb": "dial", "target": [{"type": "phone", "number": OTHER_CALLEE}]}
            await world.place(dial, record=True)
            a = await world.phone.next_call(1)
        b = await world.phone.next_call(2)
        await b.wait(Confirmed)
        a.speak(440.0)
        b.speak(1000.0)
        await b.hears(440.0)
        await a.hears(1000.0)
        await time_passes(0.6)  # what is long enough to tell tones apart
        a.hang_up()
        record = await world.ended()
        assert await eventually(lambda: record.recording_status == "completed")
        assert world.records.event_names()[-1] == "call.recording.ready"
        assert record.recording_path is not None
        left, right, rate = read_stereo(Path(record.recording_path))
        for side, frequency_hz in ((left, 440.0), (right, 1000.0)):
            heard = find_tone(side, rate)
            assert abs(heard.frequency_hz - frequency_hz) < 10 and heard.share > 0.8, (frequency_hz, heard)
