"""Behaviour around every endpoint: keys, limits, envelope, bodies, idempotency."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from api.http import body as bodies
from api.http.app import create_app
from api.http.endpoint import Endpoint, Identifiers, path_parameters
from api.http.errors import HTTP_STATUS, WIRING_CODES, ErrorStyle, status_of, to_api_error
from api.process.lifecycle import Phase
from api.process.metrics import Metrics
from api.routes import ENDPOINTS
from callcontrol import errors as domain
from callcontrol.accounts.keys import SCOPES
from callcontrol.bootstrap.aio.services import Services, Storage
from callcontrol.errors import DomainError, InsufficientBalance
from tests.support.api_facts import (
    ACCOUNT,
    CALL_SID,
    KEY,
    MESSAGING_KEY,
    NUMBER,
    NUMBER_ID,
    READER_KEY,
    REVOKED_KEY,
)
from tests.support.api_stage import ApiStage, asked
from tests.unit.api.client import Client, client_for

CALL = {"from": NUMBER, "to": "+919800000001", "stream_url": "wss://bot.example.com/ws"}


def all_domain_errors() -> list[type[DomainError]]:
    found: list[type[DomainError]] = []
    waiting: list[type[DomainError]] = [DomainError]
    while waiting:
        subclasses = waiting.pop().__subclasses__()
        found += subclasses
        waiting += subclasses
    return found


def test_every_domain_error_has_a_status_of_its_own() -> None:
    assert len(all_domain_errors()) >= 17
    missed = [error.__name__ for error in all_domain_errors() if error not in HTTP_STATUS]
    assert missed == []


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (domain.ValidationFailed, 400, "VALIDATION_ERROR"),
        (domain.Unauthorized, 401, "UNAUTHORIZED"),
        (domain.InsufficientBalance, 402, "INSUFFICIENT_BALANCE"),
        (domain.Forbidden, 403, "FORBIDDEN"),
        (domain.NumberNotOwned, 403, "NUMBER_NOT_OWNED"),
        (domain.NotFound, 404, "NOT_FOUND"),
        (domain.CallEnded, 409, "CALL_ENDED"),
        (domain.Conflict, 409, "CONFLICT"),
        (domain.IdempotencyConflict, 409, "IDEMPOTENCY_CONFLICT"),
        (domain.RateLimited, 429, "RATE_LIMITED"),
        (domain.ServiceUnavailable, 503, "SERVICE_UNAVAILABLE"),
        (domain.Internal, 500, "INTERNAL_ERROR"),
    ],
)
def test_general_codes(error: type[DomainError], status: int, code: str) -> None:
    assert status_of(error) == (status, code)


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (domain.ValidationFailed, 400, "validation"),
        (domain.BindFailed, 400, "bind_failed"),
        (domain.NotFound, 404, "not_found"),
        (domain.Forbidden, 404, "not_found"),
        (domain.InboundConflict, 409, "inbound_conflict"),
        (domain.InboundBound, 409, "inbound_bound"),
        (domain.NotConfigured, 503, "not_configured"),
        (domain.ServiceUnavailable, 503, "not_configured"),
        (domain.Internal, 500, "internal_error"),
    ],
)
def test_wiring_codes(error: type[DomainError], status: int, code: str) -> None:
    assert status_of(error, ErrorStyle.WIRING) == (status, code)


def test_wiring_codes_are_lower_case() -> None:
    assert all(code == code.lower() for _, code in WIRING_CODES.values())


def test_an_unlisted_subclass_takes_its_ancestors_status() -> None:
    class Poorer(InsufficientBalance):
        pass

    assert status_of(Poorer) == (402, "INSUFFICIENT_BALANCE")
    assert status_of(DomainError) == (500, "INTERNAL_ERROR")


def test_retry_after_is_rounded_up() -> None:
    error = domain.ServiceUnavailable("No carrier has capacity.", retry_after_s=0.2)
    assert to_api_error(error).headers["Retry-After"] == "1"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Authorization": ""},
        {"Authorization": "Bearer"},
        {"Authorization": f"Basic {KEY}"},
        {"Authorization": KEY},
        {"Authorization": "Bearer sk_0123456789abcdef0123456789"},
        {"Authorization": "Bearer vp_short"},
        {"Authorization": f"Bearer {KEY} {KEY}"},
        {"Authorization": f"Bearer {REVOKED_KEY}"},
        {"Authorization": "Bearer vp_" + "x" * 5000},
    ],
)
async def test_missing_malformed_and_revoked_keys(client: Client, headers: dict[str, str]) -> None:
    for method, path in (("GET", "/v1/calls"), ("GET", f"/v1/phone-numbers/{NUMBER_ID}/telephony")):
        answer = await client.request(method, path, key=None, headers=headers)
        assert (answer.status, answer.code) == (401, "UNAUTHORIZED")
        assert answer.headers["WWW-Authenticate"].startswith("Bearer")
        assert "X-Request-Id" in answer.headers
        assert "vp_" + "x" * 50 not in answer.body.decode()


@pytest.mark.parametrize(
    ("headers", "told"),
    [
        ({}, "Send the API key: Authorization: Bearer KEY, where KEY begins with vp_ or vk_."),
        (
            {"Authorization": "Bearer sk_0123"},
            "This is no API key; send Authorization: Bearer KEY, where KEY begins with vp_ or vk_.",
        ),
        (
            {"Authorization": "Bearer vp_short"},
            "The API key is malformed: behind its prefix a key has 43 letters, digits, - and _;"
            " send it whole.",
        ),
    ],
)
async def test_a_refusal_of_a_key_says_what_is_wrong_with_it(
    client: Client, headers: dict[str, str], told: str
) -> None:
    answer = await client.get("/v1/calls", key=None, headers=headers)
    assert (answer.status, answer.json()["error"]["message"]) == (401, told)


async def test_a_refusal_of_a_client_of_twilio_names_both_schemes(client: Client) -> None:
    answer = await client.get(f"/2010-04-01/Accounts/{ACCOUNT}/Calls/{CALL_SID}.json", key=None)
    assert answer.status == 401
    ways = "Authorization: Basic and account_sid:KEY in Base64, or Authorization: Bearer KEY"
    assert ways in answer.json()["message"]


async def test_two_authorization_headers_are_refused(client: Client) -> None:
    line = f"Authorization: Bearer {KEY}\r\n"
    answer = await client.raw(f"GET /v1/calls HTTP/1.1\r\nHost: x\r\n{line}{line}\r\n".encode())
    assert (answer.status, answer.code) == (401, "UNAUTHORIZED")


async def test_the_scheme_is_case_insensitive(client: Client) -> None:
    answer = await client.get("/v1/calls", key=None, headers={"Authorization": f"bearer {KEY}"})
    assert answer.status == 200


async def test_a_key_without_the_scope(client: Client) -> None:
    answer = await client.post("/v1/calls", CALL, key=READER_KEY)
    assert (answer.status, answer.code) == (403, "FORBIDDEN")
    assert "calls.write" in answer.json()["error"]["message"]


async def test_a_key_of_another_service(client: Client) -> None:
    answer = await client.get("/v1/calls", key=MESSAGING_KEY)
    assert (answer.status, answer.code) == (403, "FORBIDDEN")


async def test_no_body_is_read_for_a_stranger(client: Client, storage: Storage) -> None:
    keys = asked(storage.keys, "authenticate")
    answer = await client.raw(b"POST /v1/calls HTTP/1.1\r\nHost: x\r\nContent-Length: 1000000\r\n\r\n")
    assert answer.status == 401
    assert keys == []


async def test_request_id(client: Client) -> None:
    given = await client.get("/v1/calls", headers={"X-Request-Id": "abc-123"})
    assert given.headers["X-Request-Id"] == given.json()["meta"]["request_id"] == "abc-123"
    made = await client.get("/v1/calls", headers={"X-Request-Id": 'a "bad" one'})
    assert made.headers["X-Request-Id"] == made.json()["meta"]["request_id"] != 'a "bad" one'
    assert made.json()["meta"]["timestamp"].endswith("Z")


async def test_unknown_paths_and_methods(client: Client) -> None:
    missing = await client.get("/v1/nothing")
    assert (missing.status, missing.code) == (404, "NOT_FOUND")
    wrong = await client.request("PATCH", "/v1/calls")
    assert (wrong.status, wrong.code) == (405, "METHOD_NOT_ALLOWED")
    assert wrong.headers["Allow"] == "GET, HEAD, POST"


async def test_the_administration_is_for_its_keys_at_every_path(client: Client, stage: ApiStage) -> None:
    admin = f"vadm_{'a' * 43}"
    await stage.add_key(admin, "admin", SCOPES["admin"])
    for method, path in (
        ("GET", "/integrations/admin/nothing"),
        ("POST", "/integrations/admin/nothing/at/all"),
        ("GET", "/integrations/admin"),
        ("PUT", "/integrations/admin/tools"),
    ):
        stranger = await client.request(method, path, key=None)
        assert (stranger.status, stranger.code) == (401, "UNAUTHORIZED")
        assert stranger.headers["WWW-Authenticate"].startswith("Bearer")
        assert (await client.request(method, path)).status == 403
        assert (await client.request(method, path, key=admin)).status in (404, 405)
    assert (await client.get("/integrations/administration", key=None)).status == 404


async def test_a_slash_at_the_end_is_the_same_path(client: Client, storage: Storage) -> None:
    assert (await client.get("/v1/phone-numbers/")).data == (await client.get("/v1/phone-numbers")).data
    assert (await client.get(f"/v1/calls/{CALL_SID}/?")).data["call_sid"] == CALL_SID
    assert (await client.get("/v1/phone-numbers//")).status == 404
    assert (await client.get("/schemas/streams/twilio.json/", key=None)).status == 200
    names = asked(storage.idempotency, "begin")
    for path in ("/v1/calls", "/v1/calls/"):
        assert (await client.post(path, CALL, headers={"Idempotency-Key": "order-17"})).status == 201
    assert [name for _, _, name, _ in names] == ["POST /v1/calls"] * 2
    text = (await client.get("/metrics", key=None)).body.decode()
    assert 'route="/v1/phone-numbers"' in text and 'route="/v1/phone-numbers/"' not in text


async def test_head_is_answered_as_get_without_the_body(client: Client) -> None:
    for path, status in (
        ("/v1/calls", 200),
        ("/v1/calls?page=0", 400),
        (f"/v1/calls/{NUMBER_ID}", 404),
        ("/health", 200),
        ("/docs", 200),
    ):
        head = await client.request("HEAD", path)
        assert (head.status, head.body) == (status, b"")
        assert int(head.headers["Content-Length"]) > 0
    assert (await client.request("HEAD", "/v1/calls", key=None)).status == 401
    assert (await client.request("HEAD", "/v1/voice-otp/send")).status == 405


@pytest.mark.parametrize(
    "method, path, status",
    [
        ("GET", "/v1/masking/nothing", 404),
        ("GET", "/v1/masking/calls/1/2/3", 404),
        ("PUT", "/v1/masking/calls", 405),
        ("POST", "/v1/masking/stats", 405),
    ],
)
async def test_unknown_paths_of_masking_are_refused_as_masking_refuses(
    client: Client, method: str, path: str, status: int
) -> None:
    answer = await client.request(method, path)
    assert (answer.status, answer.code) == (status, {404: "not_found", 405: "method_not_allowed"}[status])


@pytest.mark.parametrize(
    "endpoint",
    [one for one in ENDPOINTS if one.style is ErrorStyle.MESSAGING],
    ids=lambda one: f"{one.method} {one.path}",
)
async def test_methods_that_messaging_has_not_are_refused_as_messaging_refuses(
    client: Client, endpoint: Endpoint[Any, Any]
) -> None:
    """Also where the path begins with what other services have, and a number stands for its first word."""
    numbers = {
        name: "7" if endpoint.identified_by(name) is Identifiers.INTEGER else CALL_SID
        for name in path_parameters(endpoint.path)
    }
    answer = await client.request("PROPFIND", endpoint.path.format(**numbers))
    body = answer.json()
    assert (answer.status, body["success"], body["code"]) == (405, False, "METHOD_NOT_ALLOWED")


@pytest.mark.parametrize("rest", ["", "/", "/7", "/7/test"])
async def test_webhook_endpoints_below_the_base_path_are_told_where_they_are(
    client: Client, rest: str
) -> None:
    answer = await client.get(f"/api/v1/webhook-endpoints{rest}")
    body = answer.json()
    assert (answer.status, body["success"], body["code"]) == (404, False, "NOT_FOUND")
    assert "did you mean /api/webhook-endpoints?" in body["message"]


@pytest.mark.parametrize("path", ["/api/v1", "/api/v1/nothing", "/api/v1/webhook-endpointsx"])
async def test_an_unknown_path_that_two_services_share_is_refused_in_the_general_form(
    client: Client, path: str
) -> None:
    answer = await client.get(path)
    assert (answer.status, answer.code) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    "method, path, status",
    [
        ("GET", f"/v1/webhooks/subscriptions/{CALL_SID}", 405),
        ("PUT", "/v1/webhooks/subscriptions", 405),
        ("GET", f"/v1/webhooks/subscriptions/{CALL_SID}/nothing", 404),
    ],
)
async def test_unknown_paths_of_subscriptions_are_refused_in_plain_text(
    client: Client, method: str, path: str, status: int
) -> None:
    answer = await client.request(method, path)
    assert answer.status == status and isinstance(answer.json()["error"], str)


async def test_rate_limit_and_its_headers(client: Client) -> None:
    for left in range(19, -1, -1):
        answer = await client.get("/v1/calls")
        assert answer.status == 200
        assert answer.headers["X-RateLimit-Limit"] == "20"
        assert answer.headers["X-RateLimit-Remaining"] == str(left)
        assert int(answer.headers["X-RateLimit-Reset"]) > 1_700_000_000
        assert answer.headers["RateLimit-Policy"] == '"key";q=20;w=60'
    for path in ("/v1/calls", f"/v1/phone-numbers/{NUMBER_ID}/telephony"):
        refused = await client.get(path)
        assert (refused.status, refused.code) == (429, "RATE_LIMITED")
        assert 1 <= int(refused.headers["Retry-After"]) <= 60
        assert refused.headers["X-RateLimit-Remaining"] == "0"
    assert (await client.get("/v1/calls", key=READER_KEY)).status == 200
    assert (await client.get("/v1/calls", peer="10.1.2.3")).status == 200


async def test_an_account_s_own_limit_is_one_for_all_its_keys(client: Client, storage: Storage) -> None:
    await storage.accounts.update(ACCOUNT, {"requests_per_minute": 30})
    left = []
    for number in range(30):
        answer = await client.get("/v1/calls", key=(KEY, READER_KEY)[number % 2])
        assert answer.status == 200
        assert answer.headers["RateLimit-Policy"] == '"account";q=30;w=60'
        left.append(int(answer.headers["X-RateLimit-Remaining"]))
    assert left == list(range(29, -1, -1))
    assert [(await client.get("/v1/calls", key=key)).status for key in (KEY, READER_KEY)] == [429, 429]


async def test_an_endpoint_s_own_limit_counts_beside_that_of_the_key(
    stage: ApiStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = [
        replace(endpoint, requests_per_minute=2) if endpoint.name == "get_call" else endpoint
        for endpoint in ENDPOINTS
    ]
    monkeypatch.setattr("api.http.app.ENDPOINTS", limited)
    app = create_app(
        stage.services,
        mcp=stage.mcp,
        lifecycle=stage.lifecycle,
        metrics=Metrics(),
        public_url="http://x",
        check_replies=True,
    )
    path = f"/v1/Accounts/{ACCOUNT}/Calls/{CALL_SID}"
    async with client_for(app) as client:
        answers = [await client.get(path) for _ in range(3)]
        assert [answer.status for answer in answers] == [200, 200, 429]
        assert answers[2].code == "RATE_LIMITED" and int(answers[2].headers["Retry-After"]) <= 60
        told = "More than 2 requests in 60 s to this endpoint; wait for Retry-After."
        assert answers[2].json()["error"]["message"] == told
        assert answers[2].headers["X-RateLimit-Limit"] == "2"
        assert answers[2].headers["RateLimit-Policy"] == '"endpoint";q=2;w=60, "key";q=600;w=60'
        # What was refused was counted by neither; other endpoints go on.
        assert (await client.get("/v1/calls")).headers["X-RateLimit-Remaining"] == "597"


@pytest.mark.parametrize(
    ("body", "part"),
    [
        (b"", "required"),
        (b"   ", "required"),
        (b"{", "JSON"),
        (b"[]", "object"),
        (b"null", "object"),
        (b'"text"', "object"),
        (b"\xff\xfe", "UTF-8"),
        (b'{"from":"a","from":"b"}', "repeats"),
        (b'{"timeout":NaN}', "NaN"),
        (b'{"a":' * 40 + b"1" + b"}" * 40, "deep"),
        (b"[" * 100_000, "deep"),
        (b'{"timeout":' + b"9" * 5000 + b"}", "JSON"),
    ],
)
async def test_bodies_that_are_no_strict_json(client: Client, body: bytes, part: str) -> None:
    answer = await client.post("/v1/calls", body=body)
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    assert list(answer.fields) == ["body"]
    assert part in answer.fields["body"]


async def test_bodies_above_the_limit(client: Client) -> None:
    body = json.dumps({**CALL, "tag": "x" * 1024 * 1024}).encode()
    answer = await client.post("/v1/calls", body=body)
    assert (answer.status, answer.code) == (413, "PAYLOAD_TOO_LARGE")
    chunk = b"x" * 65536
    chunked = b"".join(b"10000\r\n" + chunk + b"\r\n" for _ in range(18)) + b"0\r\n\r\n"
    head = (
        f"POST /v1/calls HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n"
        "Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
    )
    answer = await client.raw(head.encode() + chunked)
    assert (answer.status, answer.code) == (413, "PAYLOAD_TOO_LARGE")


async def test_a_body_of_another_type(client: Client) -> None:
    answer = await client.post("/v1/calls", CALL, headers={"Content-Type": "text/plain"})
    assert (answer.status, answer.code) == (415, "UNSUPPORTED_MEDIA_TYPE")


async def test_endpoints_without_body_take_an_empty_object_only(client: Client) -> None:
    path = f"/v1/phone-numbers/{NUMBER_ID}/carrier"
    assert (await client.post(path)).status == 200
    assert (await client.post(path, body=b"{}")).status == 200
    answer = await client.post(path, {"force": True})
    assert (answer.status, answer.code, list(answer.fields)) == (400, "validation", ["force"])


@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "application/json", "x"])
async def test_an_empty_body_may_be_of_any_type_and_others_are_refused_everywhere(
    client: Client, kind: str
) -> None:
    path, headers = f"/v1/phone-numbers/{NUMBER_ID}/carrier", {"Content-Type": kind}
    assert (await client.post(path, body=b"", headers=headers)).status == 200
    given = await client.post(path, body=b"{}", headers=headers)
    if kind == "application/json":
        assert given.status == 200
        return
    assert (given.status, given.code) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert "takes no body" in given.json()["error"]["message"]


async def test_an_unexpected_failure_tells_nothing(
    client: Client, stage: ApiStage, caplog: pytest.LogCaptureFixture
) -> None:
    await stage.drop_table("calls")
    answer = await client.get("/v1/calls")
    assert (answer.status, answer.code) == (500, "INTERNAL_ERROR")
    assert "no such table" not in answer.body.decode()
    assert "no such table" in caplog.text


async def test_a_body_that_is_not_what_its_encoding_says_is_named(client: Client) -> None:
    answer = await client.post("/v1/calls", body=b"abcde", headers={"Content-Encoding": "gzip"})
    assert (answer.status, answer.code, list(answer.fields)) == (400, "VALIDATION_ERROR", ["body"])


async def test_a_client_that_goes_in_the_middle_is_no_failure_of_ours(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    head = f"POST /v1/calls HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
    await client.broken_off(f"{head}Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{{".encode())
    assert "POST /v1/calls 408" in caplog.text
    assert "Traceback" not in caplog.text


async def test_a_body_that_does_not_come_is_not_waited_for(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "_BODY_TIMEOUT_S", 0.05)
    head = f"POST /v1/calls HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {KEY}\r\n"
    body = b"Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"
    answer = await client.raw(head.encode() + body)
    assert (answer.status, answer.code) == (408, "REQUEST_TIMEOUT")


async def test_an_unexpected_failure_of_wiring(client: Client, stage: ApiStage) -> None:
    await stage.drop_table("phone_numbers")
    answer = await client.get(f"/v1/phone-numbers/{NUMBER_ID}/telephony")
    assert (answer.status, answer.code) == (500, "internal_error")


@pytest.mark.parametrize("phase", [Phase.STARTING, Phase.DRAINING])
async def test_no_new_calls_while_not_ready(client: Client, stage: ApiStage, phase: Phase) -> None:
    requests = asked(stage.services.calls, "create_call")
    stage.lifecycle.phase = phase
    for path in ("/v1/calls", f"/v1/Accounts/{ACCOUNT}/Calls"):
        answer = await client.post(path, CALL)
        assert (answer.status, answer.code) == (503, "SERVICE_UNAVAILABLE")
        assert "Retry-After" in answer.headers
    assert requests == []
    assert (await client.get("/v1/calls")).status == 200


async def test_new_calls_while_load_balancers_have_yet_to_see_that_it_leaves(
    client: Client, stage: ApiStage
) -> None:
    requests = asked(stage.services.calls, "create_call")
    stage.lifecycle.phase = Phase.LEAVING
    assert (await client.get("/ready", key=None)).status == 503
    assert (await client.post("/v1/calls", CALL)).status == 201
    assert len(requests) == 1


class TestIdempotency:
    HEADERS = {"Idempotency-Key": "order-17"}

    async def test_the_same_request_is_answered_once(self, client: Client, services: Services) -> None:
        requests = asked(services.calls, "create_call")
        first = await client.post("/v1/calls", CALL, headers=self.HEADERS)
        again = await client.post("/v1/calls", CALL, headers=self.HEADERS)
        assert (first.status, again.status) == (201, 201)
        assert first.body == again.body
        assert "Idempotent-Replayed" not in first.headers
        assert again.headers["Idempotent-Replayed"] == "true"
        assert len(requests) == 1

    async def test_another_body_or_path_conflicts(self, client: Client) -> None:
        await client.post("/v1/calls", CALL, headers=self.HEADERS)
        for path, body in (("/v1/calls", {**CALL, "tag": "x"}), (f"/v1/Accounts/{ACCOUNT}/Calls", CALL)):
            answer = await client.post(path, body, headers=self.HEADERS)
            assert (answer.status, answer.code) == (409, "IDEMPOTENCY_CONFLICT")

    async def test_a_refusal_gives_the_key_back(self, client: Client, stage: ApiStage) -> None:
        await stage.empty_wallet()
        assert (await client.post("/v1/calls", CALL, headers=self.HEADERS)).status == 402
        await stage.storage.wallet.top_up(ACCOUNT, 100_000)
        assert (await client.post("/v1/calls", CALL, headers=self.HEADERS)).status == 201

    async def test_an_invalid_request_does_not_claim_the_key(self, client: Client, storage: Storage) -> None:
        claims = asked(storage.idempotency, "begin")
        assert (await client.post("/v1/calls", {}, headers=self.HEADERS)).status == 400
        assert claims == []

    async def test_an_unexpected_failure_is_replayed(self, client: Client, services: Services) -> None:
        def dial(*_: object) -> None:
            raise RuntimeError("it may have dialled")

        services.calls._originator._begin = dial
        requests = asked(services.calls, "create_call")
        for _ in range(2):
            answer = await client.post("/v1/calls", CALL, headers=self.HEADERS)
            assert (answer.status, answer.code) == (500, "INTERNAL_ERROR")
        assert len(requests) == 1

    @pytest.mark.parametrize("status", [201, 402])
    async def test_a_database_that_fails_after_the_deed_hides_no_answer(
        self, client: Client, stage: ApiStage, monkeypatch: pytest.MonkeyPatch, status: int
    ) -> None:
        async def away(*_: object, **__: object) -> None:
            raise domain.ServiceUnavailable("The database is away.")

        for name in ("complete", "release"):
            monkeypatch.setattr(stage.storage.idempotency, name, away)
        if status == 402:
            await stage.empty_wallet()
        assert (await client.post("/v1/calls", CALL, headers=self.HEADERS)).status == status

    @pytest.mark.parametrize("key", ["", "x" * 256, "spa ce", "ümlaut"])
    async def test_keys_that_cannot_be_used(self, client: Client, key: str) -> None:
        answer = await client.post("/v1/calls", CALL, headers={"Idempotency-Key": key})
        told = "must be one value of 1 to 255 printable ASCII characters without spaces"
        assert (answer.status, answer.fields) == (400, {"Idempotency-Key": told})

    async def test_other_endpoints_do_not_look_at_it(self, client: Client, storage: Storage) -> None:
        claims = asked(storage.idempotency, "begin")
        await client.post("/v1/trunk-portal/carriers", {"name": "x"}, headers=self.HEADERS)
        assert claims == []


@pytest.mark.parametrize(
    "request_line",
    ["GET /v1/calls?page=1&page=2 HTTP/1.1", "GET /v1/calls?from=%00 HTTP/1.1"],
)
async def test_queries_that_cannot_be_read(client: Client, request_line: str) -> None:
    head = f"{request_line}\r\nHost: x\r\nAuthorization: Bearer {KEY}\r\n\r\n"
    answer = await client.raw(head.encode())
    assert (answer.status, answer.code) == (400, "VALIDATION_ERROR")
    assert len(answer.fields) == 1


async def test_parameters_that_are_not_known_are_ignored(client: Client) -> None:
    answer = await client.get("/v1/calls?_=123&x=1&x=2&colour=%00&per_page=1")
    assert (answer.status, answer.json()["meta"]["per_page"]) == (200, 1)
    both = await client.get("/v1/calls?_=123&per_page=0")
    assert (both.status, list(both.fields)) == (400, ["per_page"])
    assert (await client.get("/v1/wallet?page=1&page=2")).status == 200


async def test_every_answer_forbids_sniffing_and_caching(client: Client) -> None:
    for path in ("/v1/calls", "/nowhere", "/health"):
        answer: Any = await client.get(path)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
