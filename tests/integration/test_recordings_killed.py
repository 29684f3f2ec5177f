"""A server killed in the middle of a recorded call: what it had recorded is had from the next one."""

from __future__ import annotations

import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from fixtures.audio_check import find_tone, read_stereo
from tests.support.server_process import ServerProcess, wait_until

pytestmark = pytest.mark.real_time(reason="a server in a process of its own is killed")

TONE, TONE_HZ = "+919800000007", 1000.0
DEMO_NUMBER = "+918047000001"
ENOUGH_BYTES = 40_000  # more than a second of two channels


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    environment = {
        "TRUNKLINE_SANDBOX_CARRIER": "1",
        "TRUNKLINE_SANDBOX_LISTEN": "udp:127.0.0.1:0",
    }
    server = ServerProcess(tmp_path / "server", environment=environment)
    server.start()
    yield server
    server.stop()


def test_what_was_recorded_outlives_the_process(server: ServerProcess, tmp_path: Path) -> None:
    key = server.first_key()
    body = {"from": DEMO_NUMBER, "to": TONE, "record": True, "verbs": [{"verb": "pause", "length": 60}]}
    call_sid = server.request("POST", "/v1/calls", key, body).data["call_sid"]
    file = server.data_dir / "recordings" / f"{call_sid}.wav"
    assert wait_until(lambda: file.exists() and file.stat().st_size > ENOUGH_BYTES)
    server.kill()
    server.start()
    link = server.request("GET", f"/v1/calls/{call_sid}/recording", key).data["url"]
    copy = tmp_path / "recording.wav"
    with urllib.request.urlopen(server.url + link) as response:
        copy.write_bytes(response.read())
    left, _, rate = read_stereo(copy)
    heard = find_tone(left, rate)
    assert abs(heard.frequency_hz - TONE_HZ) < 10 and heard.share > 0.8, heard
    shown = next(
        call for call in server.request("GET", "/v1/calls", key).data if call["call_sid"] == call_sid
    )
    assert (shown["status"], shown["hangup_cause"]) == ("completed", "CRASH")
    assert (shown["recording_status"], shown["recording_url"]) == ("completed", link.partition("?")[0])
    gone = server.request("DELETE", f"/v1/calls/{call_sid}/recording", key)
    assert gone.status == 204 and not file.exists()
