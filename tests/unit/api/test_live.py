"""The change of a call that is up: its fields, and what cannot be combined."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from callcontrol.bootstrap.aio.services import Services
from callcontrol.calls.events.commands import RecordingRequested
from callcontrol.calls.live.requests import LiveUpdate, TransferRequest
from tests.support.api_facts import ACCOUNT, CALL_SID, ENDED_SID, NUMBER, PLATFORM_HOST
from tests.support.api_stage import ApiStage, asked
from tests.support.call_drive import Drive, bridged, forward, streamed
from tests.unit.api.client import Client

PATH = f"/v1/Accounts/{ACCOUNT}/Calls/{CALL_SID}"


def recorded() -> Drive:
    """A call that is being recorded."""
    drive = bridged()
    drive.feed(RecordingRequested("start", 2))
    return drive


@pytest.mark.parametrize(
    ("make", "body", "update"),
    [
        (forward, {"call_status": "no-answer"}, LiveUpdate(call_status="no-answer")),
        (bridged, {"mute_status": "mute"}, LiveUpdate(mute_status="mute")),
        (
            bridged,
            {"mute_status": "unmute", "party": "b", "mute_direction": "both"},
            LiveUpdate(mute_status="unmute", party="b", mute_direction="both"),
        ),
        (streamed, {"listen_status": "silence"}, LiveUpdate(listen_status="silence")),
        (recorded, {"record": {"action": "pause"}}, LiveUpdate(recording="pause")),
        (
            bridged,
            {"record": {"action": "start", "channels": "mono"}},
            LiveUpdate(recording="start", recording_channels="mono"),
        ),
        (bridged, {"transcribe": {"action": "start"}}, LiveUpdate(transcription="start")),
        (
            bridged,
            {"transcribe": {"action": "start", "language": "hi-IN"}},
            LiveUpdate(transcription="start", transcription_language="hi-IN"),
        ),
        (
            bridged,
            {"dub": {"action": "add", "track": "music", "url": "https://x.example/m.wav", "gain": -6}},
            LiveUpdate(
                dub={"action": "add", "track": "music", "url": "https://x.example/m.wav", "gain": -6.0}
            ),
        ),
        (
            bridged,
            {"dub": {"action": "add", "track": "music", "party": "b"}},
            LiveUpdate(dub={"action": "add", "track": "music"}, dub_party="b"),
        ),
        (bridged, {"dtmf": {"digits": "12w#"}}, LiveUpdate(digits="12w#")),
        (
            bridged,
            {"dtmf": {"digits": "1", "party": "b"}, "time_limit": 90},
            LiveUpdate(digits="1", digits_party="b", time_limit_s=90.0),
        ),
        (
            bridged,
            {"webhook_url": "https://x.example/next", "webhook_method": "GET"},
            LiveUpdate(webhook_url="https://x.example/next", webhook_method="GET"),
        ),
        (
            bridged,
            {"transfer": {"to": {"type": "phone", "number": "9812345678"}, "timeout": 20}},
            LiveUpdate(transfer=TransferRequest(to="+919812345678", timeout_s=20.0)),
        ),
        (
            bridged,
            {
                "transfer": {
                    "to": f"sip:a@{PLATFORM_HOST}",
                    "party": "b",
                    "caller_id": NUMBER,
                    "headers": {"X-A": "1"},
                }
            },
            LiveUpdate(
                transfer=TransferRequest(
                    to=f"sip:a@{PLATFORM_HOST}", party="b", caller_id=NUMBER, headers=(("X-A", "1"),)
                )
            ),
        ),
    ],
)
async def test_what_is_asked_of_a_call(
    client: Client, stage: ApiStage, make: Callable[[], Drive], body: dict[str, Any], update: LiveUpdate
) -> None:
    parked = stage.park(make().machine)
    updates = asked(stage.services.calls, "update_call")
    answer = await client.post(PATH, body)
    assert (answer.status, answer.data["call_sid"]) == (202, CALL_SID)
    assert updates == [(ACCOUNT, CALL_SID, update)]
    assert len(parked.posted) == len(body.keys() - {"party", "mute_direction", "webhook_method"})


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        ({}, {"body"}),
        ({"party": "a"}, {"body", "party"}),
        ({"mute_status": "loud"}, {"mute_status"}),
        ({"mute_status": "mute", "party": "c", "mute_direction": "up"}, {"party", "mute_direction"}),
        ({"call_status": "completed", "time_limit": 5}, {"call_status"}),
        ({"call_status": "busy"}, {"call_status"}),
        ({"listen_status": "stop"}, {"listen_status"}),
        ({"record": {"action": "go", "channels": 2}}, {"record.action", "record.channels"}),
        (
            {"transcribe": {"action": "pause", "language": "x" * 100}},
            {"transcribe.action", "transcribe.language"},
        ),
        ({"transcribe": {"language": "hi-IN"}}, {"transcribe.action"}),
        ({"transcribe": {"action": "stop", "language": "hi-IN"}}, {"transcribe.language"}),
        ({"transcribe": True}, {"transcribe"}),
        ({"dub": {"action": "mix", "party": "z"}}, {"dub.action", "dub.track", "dub.party"}),
        ({"dub": {"action": "add", "track": "a\0b"}}, {"dub.track"}),
        (
            {"dub": {"action": "play", "track": "m", "url": "https://10.0.0.1/x.wav"}, "time_limit": 0},
            {"dub.url", "time_limit"},
        ),
        ({"dub": {"action": "play", "track": "m", "url": "ftp://x.example/x.wav"}}, {"dub.url"}),
        ({"dub": {"action": "silence", "track": "m", "loop": True}}, {"dub.loop"}),
        ({"dtmf": {"digits": "x", "party": "z"}}, {"dtmf.digits", "dtmf.party"}),
        ({"transfer": {"timeout": 1}}, {"transfer.to", "transfer.timeout"}),
        ({"transfer": {"to": "+919812345678", "headers": {"From": "x"}}}, {"transfer.headers.From"}),
        ({"webhook_url": "https://x.example/", "transfer": {"to": "+919812345678"}}, {"webhook_url"}),
        ({"webhook_method": "PUT"}, {"body", "webhook_method"}),
        ({"time_limit": 0}, {"time_limit"}),
        ({"time_limit": 0, "webhook_url": "https://10.0.0.1/"}, {"time_limit", "webhook_url"}),
        ({"time_limit": 20000}, {"time_limit"}),
        ({"volume": 3}, {"volume"}),
    ],
)
async def test_requests_that_are_wrong(
    client: Client, services: Services, body: dict[str, Any], fields: set[str]
) -> None:
    updates = asked(services.calls, "update_call")
    refused = await client.post(PATH, body)
    assert (refused.status, refused.code) == (400, "VALIDATION_ERROR")
    assert set(refused.fields) == fields
    assert not updates


async def test_a_call_in_another_state_is_left_alone(client: Client, stage: ApiStage) -> None:
    ended = await client.post(f"/v1/Accounts/{ACCOUNT}/Calls/{ENDED_SID}", {"mute_status": "mute"})
    assert (ended.status, ended.code) == (409, "CALL_ENDED")
    parked = stage.park(bridged().machine)
    refused = await client.post(PATH, {"record": {"action": "stop"}})
    assert (refused.status, refused.code) == (409, "CONFLICT")
    assert refused.json()["error"]["details"]["conflicts"] == {"record": "the call is not being recorded"}
    assert parked.posted == []
