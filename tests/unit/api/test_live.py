"""The change of a call that is up: its fields, and what cannot be combined."""

from __future__ import annotations

from typing import Any

import pytest

from callcontrol.calls.live.requests import LiveUpdate, TransferRequest
from callcontrol.errors import Conflict
from tests.unit.api.client import Client
from tests.unit.api.fakes import ACCOUNT, CALL_SID, ENDED_SID, Fakes

PATH = f"/v1/Accounts/{ACCOUNT}/Calls/{CALL_SID}"


@pytest.mark.parametrize(
    ("body", "update"),
    [
        ({"call_status": "no-answer"}, LiveUpdate(call_status="no-answer")),
        ({"mute_status": "mute"}, LiveUpdate(mute_status="mute")),
        (
            {"mute_status": "unmute", "party": "b", "mute_direction": "both"},
            LiveUpdate(mute_status="unmute", party="b", mute_direction="both"),
        ),
        ({"listen_status": "silence"}, LiveUpdate(listen_status="silence")),
        ({"record": {"action": "pause"}}, LiveUpdate(recording="pause")),
        (
            {"record": {"action": "start", "channels": "mono"}},
            LiveUpdate(recording="start", recording_channels="mono"),
        ),
        ({"dtmf": {"digits": "12w#"}}, LiveUpdate(digits="12w#")),
        (
            {"dtmf": {"digits": "1", "party": "b"}, "time_limit": 90},
            LiveUpdate(digits="1", digits_party="b", time_limit_s=90.0),
        ),
        (
            {"webhook_url": "https://x.example/next", "webhook_method": "GET"},
            LiveUpdate(webhook_url="https://x.example/next", webhook_method="GET"),
        ),
        (
            {"transfer": {"to": {"type": "phone", "number": "9812345678"}, "timeout": 20}},
            LiveUpdate(transfer=TransferRequest(to="9812345678", timeout_s=20.0)),
        ),
        (
            {
                "transfer": {
                    "to": "sip:a@b",
                    "party": "b",
                    "caller_id": "+918047000001",
                    "headers": {"X-A": "1"},
                }
            },
            LiveUpdate(
                transfer=TransferRequest(
                    to="sip:a@b", party="b", caller_id="+918047000001", headers=(("X-A", "1"),)
                )
            ),
        ),
    ],
)
async def test_what_is_asked_of_a_call(
    client: Client, fakes: Fakes, body: dict[str, Any], update: LiveUpdate
) -> None:
    answer = await client.post(PATH, body)
    assert (answer.status, answer.data["call_sid"]) == (202, CALL_SID)
    assert fakes.calls.updates == [update]


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
        ({"dtmf": {"digits": "x", "party": "z"}}, {"dtmf.digits", "dtmf.party"}),
        ({"transfer": {"timeout": 1}}, {"transfer.to", "transfer.timeout"}),
        ({"transfer": {"to": "+919812345678", "headers": {"From": "x"}}}, {"transfer.headers"}),
        ({"webhook_url": "https://x.example/", "transfer": {"to": "+919812345678"}}, {"webhook_url"}),
        ({"webhook_method": "PUT"}, {"body", "webhook_method"}),
        ({"time_limit": 0}, {"time_limit"}),
        ({"time_limit": 20000}, {"time_limit"}),
        ({"volume": 3}, {"volume"}),
    ],
)
async def test_requests_that_are_wrong(
    client: Client, fakes: Fakes, body: dict[str, Any], fields: set[str]
) -> None:
    refused = await client.post(PATH, body)
    assert (refused.status, refused.code) == (400, "VALIDATION_ERROR")
    assert set(refused.fields) == fields
    assert not fakes.calls.updates


async def test_a_call_in_another_state_is_left_alone(client: Client, fakes: Fakes) -> None:
    ended = await client.post(f"/v1/Accounts/{ACCOUNT}/Calls/{ENDED_SID}", {"mute_status": "mute"})
    assert (ended.status, ended.code) == (409, "CALL_ENDED")
    fakes.calls.failure = Conflict("No.", details={"conflicts": {"record": "why"}})
    refused = await client.post(PATH, {"record": {"action": "stop"}})
    assert (refused.status, refused.code) == (409, "CONFLICT")
    assert refused.json()["error"]["details"]["conflicts"] == {"record": "why"}
