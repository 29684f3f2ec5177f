"""Recordings from a whole server: by link, in parts, until they are deleted; also after a restart."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio.services import Storage
from callcontrol.calls.recording import recording_file
from callcontrol.models import CallRecord, CallStatus
from callcontrol.webhooks.store import deliveries
from fixtures.audio_check import find_tone, read_stereo
from fixtures.scripts import SCRIPTS, Answer, PlayTone
from media.audio import Clip, tone, write_wav
from tests.support.recording_desk import NUMBER, PARTY_A, PATIENCE_S, Desk, served
from tests.support.waiting import look_again, time_passes

PARTY_B = "9800000009"
A_HZ, B_HZ = 440.0, 1000.0

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def desk(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Desk]:
    async with served(tmp_path_factory.mktemp("desk")) as running:
        yield running


async def test_a_masked_call_has_a_recording_with_a_side_for_each_party(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(SCRIPTS, f"+91{PARTY_A}", (Answer(), PlayTone(A_HZ)))
    monkeypatch.setitem(SCRIPTS, f"+91{PARTY_B}", (Answer(), PlayTone(B_HZ)))
    status, started = await desk.ask(
        "POST", "/v1/masking/calls", {"party_a": PARTY_A, "party_b": PARTY_B, "max_duration_sec": 10}
    )
    assert status == 201, started
    call_sid = started["call_sid"]
    path = f"/v1/masking/calls/{call_sid}"
    async with asyncio.timeout(PATIENCE_S):
        while (await desk.ask("GET", path))[1]["status"] != "in-progress":  # noqa: ASYNC110 - asked over HTTP
            await look_again()
    await time_passes(0.9)  # what is long enough to tell tones apart
    status, error = await desk.ask("GET", f"{path}/recording")
    assert (status, error["code"]) == (404, "not_found"), "it is still being recorded"
    await desk.ask("DELETE", f"/v1/Accounts/{desk.account_sid}/Calls/{call_sid}")
    await desk.becomes(call_sid, status="completed")
    ended_s = time.monotonic()
    await desk.becomes(call_sid, recording_status="completed")
    assert time.monotonic() - ended_s < PATIENCE_S
    status, found = await desk.ask("GET", f"{path}/recording")
    assert status == 200 and found["call_sid"] == call_sid
    assert (await desk.ask("GET", path))[1]["recording_url"] == found["url"].partition("?")[0]
    status, _, audio = await desk.fetch(found["url"])
    assert status == 200
    file = tmp_path / "masked.wav"
    file.write_bytes(audio)
    left, right, rate = read_stereo(file)
    for side, frequency_hz in ((left, A_HZ), (right, B_HZ)):
        heard = find_tone(side, rate)
        assert abs(heard.frequency_hz - frequency_hz) < 10 and heard.share > 0.8, (frequency_hz, heard)


async def test_a_link_opens_for_an_hour_and_only_as_it_was_given(desk: Desk) -> None:
    call_sid = await desk.recorded()
    link = await desk.link(call_sid)
    assert link.startswith(f"/recordings/{call_sid}.wav?expires="), "it is a path, and nothing else"
    expires = int(link.partition("expires=")[2].partition("&")[0])
    assert abs(expires - utc_now().timestamp() - 3600) < PATIENCE_S
    status, headers, audio = await desk.fetch(link)
    assert (status, audio[:4]) == (200, b"RIFF")
    assert headers["Content-Disposition"] == f'attachment; filename="{call_sid}.wav"'
    assert headers["Cache-Control"] == "private, no-cache"
    last = link[-1]
    for changed in (
        link[:-1] + ("0" if last != "0" else "1"),
        link[:-1],
        link.replace(str(expires), str(expires + 3600)),
        link.replace(call_sid, new_id()),
        link.partition("&")[0],
    ):
        status, _, body = await desk.fetch(changed)
        assert status == 403 and call_sid.encode() not in body, changed
    status, _, _ = await desk.fetch(link.partition("?")[0])
    assert status == 401


async def test_a_head_says_what_a_get_would_send(desk: Desk) -> None:
    link = await desk.link(await desk.recorded())
    status, headers, audio = await desk.fetch(link)
    head_status, head_headers, nothing = await desk.fetch(link, "HEAD")
    assert (head_status, nothing) == (status, b"")
    for name in ("Content-Length", "Content-Type", "Content-Disposition", "Accept-Ranges", "Etag"):
        assert head_headers[name] == headers[name]
    assert int(head_headers["Content-Length"]) == len(audio)


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        ("bytes=0-99", slice(0, 100)),
        ("bytes=44-", slice(44, None)),
        ("bytes=-10", slice(-10, None)),
        ("bytes=0-0", slice(0, 1)),
        ("bytes=100-999999999", slice(100, None)),
        ("bytes=-999999999", slice(0, None)),
        ("Bytes=0-99", slice(0, 100)),
    ],
)
async def test_a_part_is_sent(desk: Desk, asked: str, part: slice) -> None:
    link = await desk.link(await desk.recorded())
    _, _, audio = await desk.fetch(link)
    status, headers, got = await desk.fetch(link, Range=asked)
    start, stop, _ = part.indices(len(audio))
    assert (status, got) == (206, audio[part])
    assert headers["Content-Range"] == f"bytes {start}-{stop - 1}/{len(audio)}"
    status, headers, nothing = await desk.fetch(link, "HEAD", Range=asked)
    assert (status, nothing) == (206, b"")
    assert int(headers["Content-Length"]) == len(got)


async def test_the_parts_of_a_recording_make_the_whole(desk: Desk) -> None:
    link = await desk.link(await desk.recorded())
    _, _, audio = await desk.fetch(link)
    step = len(audio) // 7 + 1
    parts = [
        (await desk.fetch(link, Range=f"bytes={start}-{start + step - 1}"))[2]
        for start in range(0, len(audio), step)
    ]
    assert b"".join(parts) == audio


@pytest.mark.parametrize("asked", ["bytes=999999999-", "bytes=999999998-999999999"])
async def test_a_part_behind_the_end_is_refused(desk: Desk, asked: str) -> None:
    link = await desk.link(await desk.recorded())
    _, _, audio = await desk.fetch(link)
    status, headers, refusal = await desk.fetch(link, Range=asked)
    assert (status, headers["Content-Range"]) == (416, f"bytes */{len(audio)}")
    assert json.loads(refusal)["error"]["code"] == "RANGE_NOT_SATISFIABLE"


@pytest.mark.parametrize(
    "asked", ["bytes=0-1,4-5", "bytes=0-1, -2", "items=0-1", "bytes=x", "bytes", "bytes=-"]
)
async def test_what_is_no_single_part_gets_the_whole(desk: Desk, asked: str) -> None:
    link = await desk.link(await desk.recorded())
    _, _, audio = await desk.fetch(link)
    status, headers, got = await desk.fetch(link, Range=asked)
    assert (status, got) == (200, audio)
    assert "Content-Range" not in headers


async def test_a_part_is_sent_only_of_the_file_that_was_meant(desk: Desk) -> None:
    link = await desk.link(await desk.recorded())
    _, headers, audio = await desk.fetch(link)
    part = {"Range": "bytes=0-9"}
    conditions = {
        headers["Etag"]: 206,
        headers["Last-Modified"]: 206,
        '"another"': 200,
        f"W/{headers['Etag']}": 200,
        "Sat, 01 Jan 2000 00:00:00 GMT": 200,
        "nonsense": 200,
    }
    for condition, expected in conditions.items():
        status, _, got = await desk.fetch(link, **part, If_Range=condition)
        assert (status, got) == (expected, audio[:10] if expected == 206 else audio), condition
    status, _, nothing = await desk.fetch(link, If_None_Match=headers["Etag"])
    assert (status, nothing) == (304, b"")


async def test_a_deleted_recording_is_gone_for_everybody(desk: Desk) -> None:
    call_sid = await desk.record()
    link = await desk.link(call_sid)
    path = desk.server.settings.data_dir / "recordings" / recording_file(call_sid)
    assert path.exists()
    assert (await desk.ask("DELETE", f"/v1/calls/{call_sid}/recording"))[0] == 204
    assert not path.exists()
    call = await desk.becomes(call_sid, recording_status="deleted")
    assert call["recording_url"] is None and call["status"] == "completed"
    assert (await desk.fetch(link))[0] == 404
    for again in ("GET", "DELETE"):
        assert (await desk.ask(again, f"/v1/calls/{call_sid}/recording"))[0] == 404


async def test_old_recordings_are_swept_by_the_server_itself(desk: Desk) -> None:
    call_sid = await desk.record()
    path = desk.server.settings.data_dir / "recordings" / recording_file(call_sid)
    await desk.server.storage.accounts.update(desk.account_sid, {"recording_retention_days": 1})
    await desk.server.storage.housekeeper.clean()
    assert path.exists(), "it is younger than a day"

    def age(connection: Any) -> None:
        connection.exec_driver_sql(
            f"UPDATE calls SET ended_at = ended_at - 86400000000 WHERE call_sid = '{call_sid}'"
        )

    await desk.server.storage.calls.flush()
    await desk.server.storage.writer.commit(age)
    await desk.server.storage.housekeeper.clean()
    assert not path.exists()
    await desk.becomes(call_sid, recording_status="deleted")


@pytest.mark.parametrize(("audio", "expected"), [(True, "completed"), (False, "failed")])
async def test_a_recording_that_a_kill_left_incomplete_is_had_after_the_restart(
    tmp_path: Path, audio: bool, expected: str
) -> None:
    async with served(tmp_path) as before:
        account_sid, key = before.account_sid, before.key
        settings = before.server.settings
    # Killed when the end of the call was written and that of its recording was not.
    record = CallRecord(new_id(), account_sid, "outbound", NUMBER, f"+91{PARTY_A}", utc_now())
    record.status_webhook_url = "https://shop.example/calls"
    storage = await Storage.open(settings.database_url, deliver=False)
    await storage.calls.insert(record)
    record.status, record.ended_at = CallStatus.COMPLETED, utc_now()
    record.recording_status = "in-progress"
    storage.calls.finish(record)
    await storage.close()
    if audio:
        file = settings.data_dir / "recordings" / recording_file(record.call_sid)
        file.write_bytes(write_wav(Clip(tone(A_HZ, 500))))
    async with served(tmp_path) as after:
        desk = Desk(after.server, after.http, account_sid, key)
        call = await desk.becomes(record.call_sid, recording_status=expected)
        assert (call["recording_url"] is not None) is audio
        told = await after.server.storage.database.read(
            lambda connection: deliveries.of_call(connection, record.call_sid)
        )
        assert [delivery.event.event for delivery in told] == ["call.recording.ready"] * audio
        if audio:
            assert 400 < json.loads(told[0].event.body)["data"]["recording_duration_ms"] <= 500
            assert (await desk.fetch(await desk.link(record.call_sid)))[0] == 200
