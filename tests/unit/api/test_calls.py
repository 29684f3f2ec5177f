"""The call endpoints: fields, filters, answers."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from api.schemas.verbs import AVAILABLE
from callcontrol.bootstrap.aio.services import Services
from callcontrol.calls.events.commands import HangupRequested
from callcontrol.calls.hangup_cause import NORMAL_CLEARING
from callcontrol.e164 import MAX_NUMBER_CHARS, NOT_A_NUMBER
from callcontrol.instructions.verbs import NO_REJECT
from callcontrol.models import TEST_PREFIX, CallFilter, CallStatus, TranscriptSegment
from sip.aio import Listen
from tests.support.api_facts import (
    ACCOUNT,
    CALL_SID,
    ENDED_SID,
    NOWHERE,
    NUMBER,
    OTHER_ACCOUNT,
    OTHER_CALL_SID,
    PLATFORM_CARRIER_SID,
    call,
)
from tests.support.api_stage import ApiStage, asked
from tests.unit.api.client import Client

STREAM_CALL: dict[str, Any] = {
    "from": NUMBER,
    "to": "+919800000001",
    "stream_url": "wss://bot.example.com/ws",
}
VERB_CALL: dict[str, Any] = {
    "from": NUMBER,
    "to": "+919800000001",
    "verbs": [{"verb": "play", "url": "prompt:welcome"}, {"verb": "hangup"}],
}
ONE = {"type": "phone", "number": "+919800000001"}
BOTH_PATHS = ("/v1/calls", f"/v1/Accounts/{ACCOUNT}/Calls")


def without(body: dict[str, Any], *names: str, **changes: Any) -> dict[str, Any]:
    return {**{name: value for name, value in body.items() if name not in names}, **changes}


@pytest.mark.parametrize("path", BOTH_PATHS)
async def test_a_call_is_created(client: Client, services: Services, path: str) -> None:
    requests = asked(services.calls, "create_call")
    answer = await client.post(path, STREAM_CALL)
    assert answer.status == 201
    assert answer.data["call_sid"] == answer.data["sid"]
    assert answer.data["status"] == "queued"
    assert set(answer.json()["meta"]) == {"request_id", "timestamp"}
    account_sid, request = requests[0]
    assert account_sid == ACCOUNT
    assert request.from_ == NUMBER
    assert request.to == "+919800000001"
    kept = await services.calls.get_call(ACCOUNT, answer.data["sid"])
    assert (kept.from_, kept.to) == (request.from_, request.to)


async def test_every_wrong_field_is_named_at_once(client: Client, services: Services) -> None:
    requests = asked(services.calls, "create_call")
    answer = await client.post(
        "/v1/calls",
        {
            "to": 17,
            "stream_url": True,
            "sample_rate": "8000",
            "timeout": 4,
            "time_limit": 14401,
            "record": "yes",
            "recording_channels": "stereo",
            "transcribe": "yes",
            "transcription_language": "the Queen's",
            "status_webhook_events": ["initiated", "hungup"],
            "send_digits": "12x",
            "headers": {"From": "x"},
            "custom_parameters": {"a": 1},
            "stream_auth": {"type": "oauth"},
            "machine_detection": "ask",
            "webhook_url": "https://example.com",
            "webhook_method": "PUT",
            "agent_id": "a",
            "colour": "blue",
        },
    )
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    assert answer.fields == {
        "from": "is required",
        "to": "must be a string",
        "stream_url": "must be a string",
        "sample_rate": "must be a whole number",
        "timeout": "must be at least 5",
        "time_limit": "must be at most 14400",
        "record": "must be true or false",
        "recording_channels": "must be one of mono or dual",
        "transcribe": "must be true or false",
        "transcription_language": "must be a language such as en-IN or hi",
        "status_webhook_events[1]": "must be one of initiated, ringing, early-media, answered or completed",
        "send_digits": "must be 1 to 64 of 0-9, *, #, A-D, w (half a second) and W (a second)",
        "headers.From": "is not allowed; only X-* headers are passed on",
        "custom_parameters.a": "must be a string",
        "stream_auth.type": "must be one of basic or bearer",
        "machine_detection": "must be one of off, detect or hangup",
        "webhook_url": "cannot be combined with stream_url",
        "webhook_method": "must be one of POST or GET",
        "agent_id": "cannot be combined with stream_url",
        "colour": "is not a known field",
    }
    assert requests == []


async def test_what_numbers_and_urls_look_like_is_named_with_all_else(
    client: Client, services: Services
) -> None:
    requests = asked(services.calls, "create_call")
    answer = await client.post(
        "/v1/calls",
        {
            "from": "shop",
            "to": "98",
            "stream_url": "https://bot.example/ws",
            "sample_rate": 11025,
            "status_webhook_url": "ftp://shop.example",
            "timeout": 4,
        },
    )
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    assert set(answer.fields) == {
        "from",
        "to",
        "stream_url",
        "sample_rate",
        "status_webhook_url",
        "timeout",
    }
    assert requests == []


@pytest.mark.parametrize(
    ("changes", "field", "message"),
    [
        ({"to": {"type": "phone"}}, "to.number", "is required with type phone"),
        ({"to": {"type": "sip"}}, "to.sip_uri", "is required with type sip"),
        ({"to": {"type": "sip", "number": "+919800000001"}}, "to.sip_uri", "is required with type sip"),
        ({"to": {"type": "teams", "number": "9198000001"}}, "to.type", "must be one of phone or sip"),
        ({"to": {"number": "+919800000001", "colour": 1}}, "to.colour", "is not a known field"),
        ({"to": None}, "to", "must be a string"),
        ({"to": ["+919800000001"]}, "to", "must be a string"),
        ({"from": ""}, "from", NOT_A_NUMBER),
        ({"to": {"number": "x"}}, "to.number", NOT_A_NUMBER),
        ({"to": ""}, "to", f"{NOT_A_NUMBER}, or a sip: address"),
        ({"to": "garbage"}, "to", f"{NOT_A_NUMBER}, or a sip: address"),
        ({"to": "+91980000000"}, "to", f"{NOT_A_NUMBER}, or a sip: address"),
        ({"timeout": 60.5}, "timeout", "must be a whole number"),
        ({"timeout": True}, "timeout", "must be a whole number"),
        ({"headers": {"X-A": "a\r\nVia: b"}}, "headers.X-A", None),
        ({"headers": {"X-A b": "a"}}, "headers.X-A b", "is not allowed; only X-* headers are passed on"),
        ({"headers": {"Foo": 5}}, "headers.Foo", None),
        ({"headers": {f"X-{index}": "" for index in range(21)}}, "headers", "must have at most 20 items"),
        ({"caller_name": "a\nb"}, "caller_name", "must not contain control characters"),
        ({"tag": "x" * 256}, "tag", "must have at most 255 characters"),
        ({"app_sid": ""}, "app_sid", "must be a UUID"),
        ({"x" * 5000: 1}, "x" * 100 + "...", "is not a known field"),
    ],
)
async def test_single_fields(
    client: Client, changes: dict[str, Any], field: str, message: str | None
) -> None:
    answer = await client.post("/v1/calls", {**STREAM_CALL, **changes})
    assert answer.status == 400
    assert list(answer.fields) == [field]
    if message is not None:
        assert answer.fields[field] == message


@pytest.mark.parametrize(
    ("verbs", "fields"),
    [
        ([], {"verbs": "must have at least 1 item"}),
        ("play", {"verbs": "must be a list"}),
        ([17, "x"], dict.fromkeys(["verbs[0]", "verbs[1]"], "must be an object with the field verb")),
        (
            [{"verb": "gather", "prompts": [{"verb": "hangup"}, 7, {"verb": "say", "text": "a"}]}],
            {
                "verbs[0].prompts[0].verb": "must be one of say, play, pause",
                "verbs[0].prompts[1]": "must be an object with the field verb",
            },
        ),
        (
            [
                {
                    "verb": "dial",
                    "target": [ONE],
                    "timeout": 4,
                    "headers": {"Foo": "x", "X-A": "a\n", "X-B": "b"},
                }
            ],
            {
                "verbs[0].timeout": "must be at least 5",
                "verbs[0].headers.Foo": "is not allowed; only X-* headers are passed on",
                "verbs[0].headers.X-A": None,
            },
        ),
        ([{"verb": "dial", "target": [ONE], "headers": {"X-A": 5}}], {"verbs[0].headers.X-A": None}),
        ([{"verb": "say"}], {"verbs[0].text": "is required"}),
        ([{"verb": "reject"}], {"verbs[0].verb": NO_REJECT}),
        (
            [{"verb": "play", "url": "prompt:x", "loop": 0}],
            {"verbs[0].loop": "must be at least 1", "verbs[0].url": "names no prompt of this server"},
        ),
        ([{"verb": "redirect", "method": "GET"}], {"verbs[0].url": "is required"}),
        (
            [{"verb": "dance"}, {}],
            dict.fromkeys(
                ["verbs[0].verb", "verbs[1].verb"],
                f"must be one of {', '.join(AVAILABLE)}",
            ),
        ),
        (
            [{"verb": "play"}, {"verb": "pause", "length": 0}, {"verb": "hangup", "reason": "x"}],
            {
                "verbs[0].url": "is required",
                "verbs[1].length": "must be more than 0",
                "verbs[2].reason": "is not a known field",
            },
        ),
        ([{"verb": "dial", "target": []}], {"verbs[0].target": "must have at least 1 item"}),
        (
            [{"verb": "dial", "target": [{"type": "sip", "number": "+919800000001"}]}],
            {"verbs[0].target[0].sip_uri": "is required with type sip"},
        ),
        (
            [{"verb": "gather", "finish_on_key": "##"}, {"verb": "record", "finish_on_key": "A"}],
            {
                "verbs[0].finish_on_key": "must be one key of 0-9 * #, or empty",
                "verbs[1].finish_on_key": "must be at most 12 keys of 0-9 * #",
            },
        ),
        ([{"verb": "send_digits", "digits": "hello"}], {"verbs[0].digits": None}),
        ([{"verb": ["play"]}], {"verbs[0].verb": None}),
    ],
)
async def test_verbs(client: Client, verbs: Any, fields: dict[str, str | None]) -> None:
    answer = await client.post("/v1/calls", {**VERB_CALL, "verbs": verbs})
    assert answer.status == 400
    assert list(answer.fields) == list(fields)
    for field, message in fields.items():
        assert message is None or answer.fields[field] == message


async def test_all_headers_and_identifiers_that_are_wrong_are_named(client: Client) -> None:
    headers = {"Foo": "a", "Bar": "b", "X-A": "a\r\nVia: x", "X-B": 5, "X-C": "c"}
    answer = await client.post(
        "/v1/calls", {**STREAM_CALL, "headers": headers, "carrier_sid": "mine", "app_sid": "x", "timeout": 1}
    )
    named = {*(f"headers.{name}" for name in headers if name != "X-C"), "carrier_sid", "app_sid", "timeout"}
    assert (answer.status, set(answer.fields)) == (400, named)
    headers["X-B"] = "b"
    dial = {"verb": "dial", "target": [{"type": "phone", "number": "+919800000001"}], "headers": headers}
    answer = await client.post("/v1/calls", {**VERB_CALL, "verbs": [dial]})
    assert set(answer.fields) == {f"verbs[0].headers.{name}" for name in ("Foo", "Bar", "X-A")}


async def test_the_caller_id_of_a_verb_is_taken_in_any_writing(client: Client) -> None:
    dial = {"verb": "dial", "target": [ONE], "caller_id": " - ".join(f"0{NUMBER.removeprefix('+91')}")}
    assert 32 < len(dial["caller_id"]) <= MAX_NUMBER_CHARS
    assert (await client.post("/v1/calls", {**VERB_CALL, "verbs": [dial]})).status == 201


async def test_a_call_needs_one_thing_to_do(client: Client) -> None:
    neither = await client.post("/v1/calls", without(STREAM_CALL, "stream_url"))
    assert list(neither.fields) == ["stream_url"]
    both = await client.post("/v1/calls", {**STREAM_CALL, **VERB_CALL, "verbs": [{"verb": "hangup"}]})
    assert list(both.fields) == ["verbs"]


async def test_a_call_for_a_streaming_agent_has_no_instructions(client: Client) -> None:
    fields = {"webhook_url": "https://x.example/", "webhook_method": "GET", "webhook_format": "form"}
    body = {**STREAM_CALL, **fields, "verbs": [{"verb": "hangup"}]}
    answer = await client.post(f"/v1/Accounts/{ACCOUNT}/Calls", body)
    assert answer.fields == dict.fromkeys([*fields, "verbs"], "is a field of POST /v1/calls only")


async def test_a_call_may_be_controlled_by_a_webhook_or_talk_to_an_agent(
    client: Client, services: Services
) -> None:
    agent_id = (await services.storage.agents.create(ACCOUNT, {"name": "Asha"})).agent_id
    requests = asked(services.calls, "create_call")
    bare = without(STREAM_CALL, "stream_url", "sample_rate")
    answer = await client.post(
        "/v1/calls", {**bare, "webhook_url": "https://x.example/", "webhook_method": "GET"}
    )
    assert answer.status == 201
    _, request = requests[-1]
    assert (request.webhook_url, request.webhook_method, request.says_what_to_do) == (
        "https://x.example/",
        "GET",
        True,
    )
    for path in BOTH_PATHS:
        assert (await client.post(path, {**bare, "agent_id": agent_id})).status == 201
        _, request = requests[-1]
        assert (request.agent_id, request.stream) == (agent_id, None)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"webhook_url": "https://x.example/", "sample_rate": 16000}, ["sample_rate"]),
        ({"agent_id": NOWHERE, "encoding": "l16", "custom_parameters": {"a": "1"}}, ["encoding"]),
        ({"agent_id": "a", "webhook_url": "https://x.example/"}, ["agent_id"]),
        ({"agent_id": NOWHERE, "webhook_method": "GET"}, ["webhook_method"]),
    ],
)
async def test_fields_of_what_a_call_does_not_do_are_named(
    client: Client, fields: dict[str, Any], wrong: list[str]
) -> None:
    answer = await client.post("/v1/calls", {**without(STREAM_CALL, "stream_url", "sample_rate"), **fields})
    assert (answer.status, list(answer.fields)) == (400, wrong)


@pytest.mark.parametrize("word", ["nope", "", "x"])
async def test_a_word_instead_of_a_url_is_told_how_urls_start(client: Client, word: str) -> None:
    answer = await client.post("/v1/calls", {**STREAM_CALL, "stream_url": word, "status_webhook_url": word})
    assert answer.fields == {
        "stream_url": "must be a URL that starts with ws://, wss:// or audiosocket://",
        "status_webhook_url": (
            "must be a URL that starts with https://; a server for development takes http:// "
            "with TRUNKLINE_ALLOW_PRIVATE_DESTINATIONS=1"
        ),
    }


async def test_the_streaming_endpoint_needs_a_stream(client: Client) -> None:
    answer = await client.post(BOTH_PATHS[1], VERB_CALL)
    assert answer.fields == {
        "stream_url": "is required, unless agent_id or app_sid says what to do with the call",
        "verbs": "is a field of POST /v1/calls only",
    }


@pytest.mark.parametrize(
    ("before", "changes", "status", "code"),
    [
        (None, {"to": "sip:desk@pbx.example.com"}, 400, "VALIDATION_ERROR"),
        (ApiStage.empty_wallet, {}, 402, "INSUFFICIENT_BALANCE"),
        (None, {"from": "+918047000009"}, 403, "NUMBER_NOT_OWNED"),
        (None, {"to": "+14155550123"}, 403, "FORBIDDEN"),
        (ApiStage.stop_platform_carrier, {}, 400, "VALIDATION_ERROR"),
        (ApiStage.rest_platform_carrier, {}, 503, "SERVICE_UNAVAILABLE"),
    ],
    ids=[
        "no gateway's host",
        "no money",
        "another's number",
        "another country",
        "no carrier",
        "no gateway now",
    ],
)
async def test_refusals(
    client: Client,
    stage: ApiStage,
    before: Callable[[ApiStage], Awaitable[None]] | None,
    changes: dict[str, Any],
    status: int,
    code: str,
) -> None:
    if before is not None:
        await before(stage)
    for path in BOTH_PATHS:
        answer = await client.post(path, {**STREAM_CALL, **changes})
        assert (answer.status, answer.code) == (status, code)
        assert answer.json()["error"]["message"]
        assert ("Retry-After" in answer.headers) == (status == 503)


async def test_a_number_without_a_route_says_so(client: Client, stage: ApiStage) -> None:
    prefixes = {"prefixes": (TEST_PREFIX,)}
    await stage.services.trunks.update_carrier(None, PLATFORM_CARRIER_SID, prefixes)
    dial = {"verb": "dial", "target": [{"number": "+919876543210"}]}
    for path, body, field in (
        (BOTH_PATHS[0], {**STREAM_CALL, "to": "+919876543210"}, "to"),
        (BOTH_PATHS[1], {**STREAM_CALL, "to": "+919876543210"}, "to"),
        (BOTH_PATHS[0], {**VERB_CALL, "verbs": [dial]}, "verbs[0].target[0].number"),
    ):
        answer = await client.post(path, body)
        assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
        (error,) = answer.json()["error"]["details"]["errors"]
        assert (error["field"], error["reason"]) == (field, "no_route")
        assert f"{TEST_PREFIX} (the sandbox)" in error["message"]
        assert "Retry-After" not in answer.headers


async def test_another_account_is_forbidden(client: Client) -> None:
    create = await client.post(f"/v1/Accounts/{OTHER_ACCOUNT}/Calls", STREAM_CALL)
    get = await client.get(f"/v1/Accounts/{OTHER_ACCOUNT}/Calls/{OTHER_CALL_SID}")
    end = await client.delete(f"/v1/Accounts/nonsense/Calls/{OTHER_CALL_SID}")
    own_path = await client.get(f"/v1/Accounts/{ACCOUNT}/Calls/{OTHER_CALL_SID}")
    trace = await client.get(f"/v1/calls/{OTHER_CALL_SID}/trace")
    for answer in (create, get, end, own_path, trace):
        assert (answer.status, answer.code) == (403, "FORBIDDEN")


@pytest.mark.parametrize("call_sid", [NOWHERE, "nonsense", "%00", "44444444-4444-4444-8444-44444444444"])
async def test_calls_that_do_not_exist(client: Client, call_sid: str) -> None:
    for method, path in (
        ("GET", f"/v1/Accounts/{ACCOUNT}/Calls/{call_sid}"),
        ("DELETE", f"/v1/Accounts/{ACCOUNT}/Calls/{call_sid}"),
        ("GET", f"/v1/calls/{call_sid}/trace"),
    ):
        answer = await client.request(method, path)
        assert (answer.status, answer.code) == (404, "NOT_FOUND")


async def test_get_and_hang_up(client: Client, stage: ApiStage) -> None:
    parked = stage.park(record=call(status=CallStatus.IN_PROGRESS))
    got = await client.get(f"/v1/Accounts/{ACCOUNT.upper()}/Calls/{CALL_SID}")
    assert (got.status, got.data["status"]) == (200, "in-progress")
    ended = await client.delete(f"/v1/Accounts/{ACCOUNT}/Calls/{CALL_SID}")
    assert (ended.status, ended.data["call_sid"]) == (200, CALL_SID)
    assert parked.posted == [HangupRequested("api", NORMAL_CLEARING)]
    again = await client.delete(f"/v1/Accounts/{ACCOUNT}/Calls/{ENDED_SID}")
    assert (again.status, again.code) == (409, "CALL_ENDED")


async def test_trace(client: Client, services: Services) -> None:
    traces, listen = services.calls.traces, Listen("udp", "127.0.0.1", 5060)
    traces.claim(CALL_SID, "a", "abc@host")
    for at_s, direction, message in (
        (0.0, "out", b"INVITE sip:x SIP/2.0\r\n\r\n"),
        (0.01, "in", b"SIP/2.0 100 Trying\r\n\r\n"),
    ):
        traces.note(at_s, direction, listen, ("127.0.0.1", 5080), message, "abc@host")
    answer = await client.get(f"/v1/calls/{CALL_SID}/trace")
    assert answer.data["call_sid"] == CALL_SID
    assert "leg a: 127.0.0.1:5080" in answer.data["ladder"].splitlines()[0]
    assert "INVITE" in answer.data["ladder"].splitlines()[2]
    assert answer.data["messages"][0] == {
        "at": "2026-01-31T12:00:00.123Z",
        "leg": "a",
        "direction": "out",
        "transport": "udp",
        "peer": "127.0.0.1:5080",
        "call_id": "abc@host",
        "message": "INVITE sip:x SIP/2.0\r\n\r\n",
    }


async def test_a_transcript_is_deleted_when_its_last_words_have_come(client: Client, stage: ApiStage) -> None:
    record = await stage.services.calls.get_call(ACCOUNT, ENDED_SID)
    path = f"/v1/calls/{ENDED_SID}/transcript"
    stage.storage.transcripts.add(record, TranscriptSegment("a", "good bye", 0, 900))
    stage.park(record=record)
    assert ((await client.delete(path)).status, len((await client.get(path)).data["sentences"])) == (409, 1)
    stage.services.calls._runners.clear()
    assert (await client.delete(path)).status == 204
    assert (await client.get(path)).data["sentences"] == []


async def test_list(client: Client) -> None:
    answer = await client.get("/v1/calls")
    assert answer.status == 200
    meta = answer.json()["meta"]
    assert {name: meta[name] for name in ("total", "page", "per_page", "total_pages")} == {
        "total": 2,
        "page": 1,
        "per_page": 20,
        "total_pages": 1,
    }


async def test_list_filters(client: Client, services: Services) -> None:
    lists = asked(services.calls, "list_calls")
    query = (
        "status=no-answer&direction=inbound&from=+919812345678&to=080+4700+0001"
        "&start_date=2026-01-01&end_date=2026-01-31"
    )
    assert (await client.get(f"/v1/calls?{query}&page=3&per_page=100")).status == 200
    every_filter = CallFilter(
        status=CallStatus.NO_ANSWER,
        direction="inbound",
        from_="+919812345678",
        to="+918047000001",
        start=datetime(2026, 1, 1, tzinfo=UTC),
        end=datetime(2026, 2, 1, tzinfo=UTC),
    )
    assert lists == [(ACCOUNT, every_filter, 3, 100, None)]
    moments = "start_date=2026-01-01T05:30:00+05:30&end_date=2026-01-01T12:00:00.5Z"
    assert (await client.get(f"/v1/calls?{moments}")).status == 200
    assert lists[1][1].start == datetime(2026, 1, 1, tzinfo=UTC)
    assert lists[1][1].end == datetime(2026, 1, 1, 12, 0, 0, 501000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("919800000003", "+919800000003"),
        ("+91+98000+00003", "+919800000003"),
        ("%2B91%2098000%2000003", "+919800000003"),
        ("09800000003", "+919800000003"),
        ("tel:%2B91-98000-00003", "+919800000003"),
        ("sip:desk@Pbx.Example:5070", "sip:desk@pbx.example:5070"),
        ("Anonymous", "anonymous"),
    ],
)
async def test_calls_are_looked_for_as_their_records_have_them(
    client: Client, services: Services, text: str, stored: str
) -> None:
    lists = asked(services.calls, "list_calls")
    assert (await client.get(f"/v1/calls?from={text}")).status == 200
    assert lists == [(ACCOUNT, CallFilter(from_=stored), 1, 20, None)]


async def test_a_list_goes_on_behind_its_cursor(client: Client, services: Services) -> None:
    whole = (await client.get("/v1/calls")).json()["meta"]
    assert whole["next_cursor"] is None
    first = await client.get("/v1/calls?per_page=1")
    meta = first.json()["meta"]
    assert (meta["page"], meta["total"]) == (1, 2)
    lists = asked(services.calls, "list_calls")
    answer = await client.get(f"/v1/calls?per_page=1&cursor={meta['next_cursor']}")
    assert answer.status == 200
    assert "page" not in answer.json()["meta"]
    assert {shown["sid"] for shown in (*first.data, *answer.data)} == {CALL_SID, ENDED_SID}
    ((*_, place),) = lists
    assert place is not None and place.identifier == first.data[0]["sid"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("to=%2B91980000000", "to"),
        ("cursor=", "cursor"),
        ("cursor=abc", "cursor"),
        ("cursor=%C3%A4", "cursor"),
        ("cursor=MTp4OjE", "cursor"),
        ("cursor=MToxOjE&page=1", "page cursor"),
        ("status=ringing2", "status"),
        ("direction=both", "direction"),
        ("from=garbage", "from"),
        ("from=", "from"),
        ("to=98000", "to"),
        ("to=sip:", "to"),
        ("start_date=yesterday", "start_date"),
        ("start_date=2026-02-30", "start_date"),
        ("start_date=2026-01-01T00:00:00", "start_date"),
        ("end_date=9999-12-31", "end_date"),
        ("end_date=9999-12-31T23:59:59.999Z", "end_date"),
        ("start_date=2026-02-01&end_date=2026-01-01", "end_date"),
        ("page=0", "page"),
        ("page=x", "page"),
        ("page=99999999999999999999", "page"),
        ("per_page=101", "per_page"),
        ("per_page=0", "per_page"),
    ],
)
async def test_list_queries_that_are_wrong(client: Client, query: str, field: str) -> None:
    answer = await client.get(f"/v1/calls?{query}")
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    assert list(answer.fields) == field.split()
