"""Requests of the client: arguments, lists, errors, repetitions; both kinds of client alike."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from fake_api import CALL, FakeServer, MakeAsyncClient, MakeClient, data, refusal
from trunkline_client import (
    ApiError,
    BadRequest,
    Client,
    Conflict,
    ConnectionFailed,
    FieldError,
    ResponseInvalid,
    RetryPolicy,
    ServerError,
)
from trunkline_client.errors import error_of, retry_after_s
from trunkline_client.operation import Operation, Prepared

HANGUP: Any = [{"verb": "hangup"}]


def test_fields_are_the_body_and_a_key_makes_the_request_repeatable(client_of: MakeClient) -> None:
    server = FakeServer(data(CALL, 201))
    call = client_of(server).calls.create(from_="+918047000001", to="+919800000001", verbs=HANGUP)
    (request,) = server.asked
    assert (request.method, request.url.path) == ("POST", "/v1/calls")
    assert server.body() == {"from": "+918047000001", "to": "+919800000001", "verbs": HANGUP}
    assert request.headers["authorization"] == "Bearer vk_1" and len(request.headers["idempotency-key"]) == 36
    assert (call.sid, call.from_, call.created_at.year) == ("c-1", "+918047000001", 2026)


async def test_an_async_client_asks_the_same(async_client_of: MakeAsyncClient) -> None:
    server = FakeServer(data(CALL, 201), data(CALL))
    async with async_client_of(server) as client:
        call = await client.calls.create(
            from_="+918047000001", to="+919800000001", verbs=HANGUP, idempotency_key="k-1"
        )
        assert (await call.refresh()).sid == "c-1"
    assert server.asked[0].headers["idempotency-key"] == "k-1"
    assert server.asked[1].url.path == "/v1/calls/c-1"


def test_the_account_of_a_path_is_that_of_the_key_and_asked_for_once(client_of: MakeClient) -> None:
    server = FakeServer(data({"account_sid": "a-1"}), data(CALL), data(CALL))
    calls = client_of(server).calls
    calls.hangup("c/1")
    calls.update("c-1", call_status="completed")
    assert [request.url.raw_path.decode() for request in server.asked] == [
        "/v1/account",
        "/v1/Accounts/a-1/Calls/c%2F1",
        "/v1/Accounts/a-1/Calls/c-1",
    ]


def test_a_list_is_read_by_its_cursor(client_of: MakeClient) -> None:
    server = FakeServer(
        data([CALL, {**CALL, "sid": "c-2"}], total=3, total_pages=2, page=1, per_page=2, next_cursor="x"),
        data([{**CALL, "sid": "c-3"}], total=3, total_pages=2, per_page=2, next_cursor=None),
    )
    found = [
        call.sid for call in client_of(server).calls.list(status="completed", from_="+91 80", per_page=2)
    ]
    assert found == ["c-1", "c-2", "c-3"]
    assert dict(server.asked[0].url.params) == {"status": "completed", "from": "+91 80", "per_page": "2"}
    assert dict(server.asked[1].url.params)["cursor"] == "x"


async def test_a_list_without_a_cursor_is_read_by_pages(async_client_of: MakeAsyncClient) -> None:
    row = {"id": 1, "phoneNumber": "+91", "name": None}
    page = {"page": 1, "pageSize": 1, "total": 2, "totalPages": 2}
    server = FakeServer(
        httpx.Response(200, json={"success": True, "data": [row], "pagination": page}),
        httpx.Response(200, json={"success": True, "data": [row], "pagination": {**page, "page": 2}}),
        httpx.Response(200, json={"success": True, "data": [row], "pagination": page}),
    )
    contacts = async_client_of(server).contacts.list(pageSize=1)
    with pytest.raises(ResponseInvalid, match="Contact"):
        [contact async for contact in contacts]
    turned = [request.url.params.get("page") for request in server.asked]
    assert turned == [None]
    assert await contacts.total() == 2
    assert [request.url.params.get("pageSize") for request in server.asked] == ["1", "1"]


def test_deletions_files_and_lists_without_pages(client_of: MakeClient) -> None:
    server = FakeServer(httpx.Response(204), httpx.Response(200, content=b"RIFF"), data([]))
    client = client_of(server)
    client.applications.delete("x")
    assert client.recordings.get("c-1", expires="5", signature="s") == b"RIFF"
    assert client.subscriptions.list() == []
    assert server.asked[1].url.path == "/recordings/c-1.wav"


@pytest.mark.parametrize(
    ("status", "content", "code", "message"),
    [
        (400, {"error": {"code": "VALIDATION_ERROR", "message": "m"}}, "VALIDATION_ERROR", "m"),
        (400, {"success": False, "error": "Bad Request", "code": "X", "message": "m"}, "X", "m"),
        (404, {"error": "no such subscription"}, "HTTP_404", "no such subscription"),
        (502, None, "HTTP_502", "the response names no reason"),
        (500, {"error": {"code": None, "details": "?"}}, "HTTP_500", "the response names no reason"),
    ],
)
def test_every_form_of_a_refusal_is_read(status: int, content: Any, code: str, message: str) -> None:
    error = error_of(status, content, {"x-request-id": "r-1"})
    assert (error.status, error.code, error.message, error.request_id) == (status, code, message, "r-1")
    assert isinstance(error, ServerError if status >= 500 else ApiError)


def test_a_refusal_names_the_wrong_fields(client_of: MakeClient) -> None:
    listed = [{"field": "to", "message": "has no route", "reason": "no_route"}, "not an object"]
    server = FakeServer(refusal(400, "VALIDATION_ERROR", errors=listed))
    with pytest.raises(BadRequest) as caught:
        client_of(server).calls.create(from_="x", to="y", verbs=HANGUP)
    assert caught.value.fields == (FieldError("to", "has no route", "no_route"),)
    assert "r-9" in str(caught.value)


def test_a_post_is_repeated_with_its_key_alone(client_of: MakeClient) -> None:
    server = FakeServer(
        httpx.ReadTimeout("slow"),
        refusal(409, "IDEMPOTENCY_CONFLICT"),
        refusal(503, "SERVICE_UNAVAILABLE", {"Retry-After": "0"}),
        data(CALL, 201),
    )
    client_of(server).calls.create(from_="x", to="y", verbs=HANGUP)
    assert len({request.headers["idempotency-key"] for request in server.asked}) == 1
    assert len(server.asked) == 4


@pytest.mark.parametrize("failure", [httpx.ReadTimeout("slow"), httpx.ConnectError("closed")])
def test_a_post_without_a_key_is_not_repeated(client_of: MakeClient, failure: Exception) -> None:
    server = FakeServer(failure)
    with pytest.raises(ConnectionFailed, match="POST"):
        client_of(server).applications.create(app_name="x", app_type="webhook")  # type: ignore[call-arg]  # Fields do not matter.
    assert len(server.asked) == 1


async def test_an_async_client_gives_up_after_its_repetitions(async_client_of: MakeAsyncClient) -> None:
    server = FakeServer(*[refusal(500, "INTERNAL_ERROR") for _ in range(4)])
    with pytest.raises(ServerError):
        await async_client_of(server).wallet.get()
    assert len(server.asked) == 4


def test_a_first_conflict_is_not_repeated(client_of: MakeClient) -> None:
    server = FakeServer(refusal(409, "IDEMPOTENCY_CONFLICT"))
    with pytest.raises(Conflict):
        client_of(server).calls.create(from_="x", to="y", verbs=HANGUP)


GET = Prepared("GET", "/v1/wallet", {}, None, None)


def test_waits_between_repetitions() -> None:
    policy = RetryPolicy()
    lost = ConnectionFailed("lost")
    assert [policy.wait_s(attempt, GET, lost, lambda: 1.0) for attempt in (1, 2, 3, 4)] == [
        0.5,
        1.0,
        2.0,
        None,
    ]
    assert policy.wait_s(1, GET, lost, lambda: 0.0) == 0.25
    assert policy.wait_s(1, GET, ServerError(503, "X", "m", retry_after_s=7.0)) == 7.0
    assert policy.wait_s(1, GET, ServerError(503, "X", "m", retry_after_s=61.0)) is None
    assert policy.wait_s(1, GET, ServerError(504, "TOOL_TIMED_OUT", "m")) is None
    assert policy.wait_s(1, GET, ResponseInvalid("m")) is None


@pytest.mark.parametrize(
    ("value", "wait_s"),
    [
        *[("5", 5.0), (None, None), ("soon", None), ("Thu, 01 Jan 1970 00:01:40 GMT", 40.0)],
        ("Thu, 01 Jan 1970 00:00:01 GMT", 0.0),
    ],
)
def test_retry_after(value: str | None, wait_s: float | None) -> None:
    assert retry_after_s(value, now=60.0) == wait_s


def test_fields_of_a_request() -> None:
    operation = Operation("PATCH", "/x/{id}/y/{n}.wav", queries=frozenset({"force"}))
    request = operation.prepare(("a b", 7), {"force": True, "from_": None, "name": "n"}, None)
    assert (request.path, request.query) == ("/x/a%20b/y/7.wav", {"force": True})
    assert request.body == {"from": None, "name": "n"}


def test_a_response_of_something_else_is_invalid(client_of: MakeClient) -> None:
    server = FakeServer(
        httpx.Response(200, text="<html>"), httpx.Response(200, json=[1]), data({"no": "wallet"})
    )
    client = client_of(server)
    for _ in range(3):
        with pytest.raises(ResponseInvalid):
            client.wallet.get()


def test_fields_of_a_later_server_are_kept(client_of: MakeClient) -> None:
    found = client_of(FakeServer(data({**CALL, "weather": "fine"}))).calls.get("c-1")
    assert found.model_extra == {"weather": "fine"}


def test_a_client_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("TRUNKLINE_KEY", "KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="TRUNKLINE_KEY"):
        Client()
    monkeypatch.setenv("TRUNKLINE_KEY", "vk_secret")
    with Client() as client:
        assert "vk_secret" not in repr(client._transport.options)


def stages() -> list[dict[str, Any]]:
    ringing = {**CALL, "status": "ringing", "ringing_at": CALL["created_at"], "sip_call_id": "s"}
    answered = {**ringing, "status": "in-progress", "answered_at": CALL["created_at"]}
    ended = {**answered, "status": "completed", "answered_by": "human", "ended_at": CALL["created_at"]}
    return [CALL, ringing, ended]


EVENTS = ["call.initiated", "call.ringing", "call.answered", "call.machine_detection", "call.completed"]


def test_events_of_a_call_are_found_even_when_it_is_faster_than_the_polls(client_of: MakeClient) -> None:
    server = FakeServer(data(CALL), *map(data, stages()))
    call = client_of(server).calls.get("c-1")
    told = list(call.events(poll_s=0.001))
    assert [event.name for event in told] == EVENTS
    assert told[-1].call.status == "completed"
    server.answers = [data(stages()[-1])]
    assert call.wait().status == "completed"


async def test_events_of_an_awaited_call(async_client_of: MakeAsyncClient) -> None:
    server = FakeServer(data(CALL), *map(data, stages()))
    call = await async_client_of(server).calls.get("c-1")
    assert [event.name async for event in call.events(poll_s=0.001)] == EVENTS
