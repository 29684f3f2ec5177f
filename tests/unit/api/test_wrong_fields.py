"""One refusal names every wrong field, whichever check finds it."""

from __future__ import annotations

import pytest

from callcontrol.accounts.keys import SCOPES
from tests.support.api_facts import (
    ACCOUNT,
    CARRIER_SID,
    GATEWAY_SID,
    KEY,
    MESSAGING_KEY,
    NUMBER,
    NUMBER_ID,
    PLATFORM_HOST,
)
from tests.support.api_stage import ApiStage
from tests.support.api_webhooks import SUBSCRIPTION_ID
from tests.unit.api.client import Client

ASSISTANT_KEY, ADMIN_KEY = "va_" + "a" * 43, "vadm_" + "c" * 43
APPLICATIONS, CALLS = "/v1/trunk-portal/applications", "/v1/calls"
FAR, PRIVATE = "ftp://s.example.com/", "https://10.0.0.1/"
TWILIO = f"/2010-04-01/Accounts/{ACCOUNT}"
ECHO = "+919800000001"
DIAL = {"verb": "dial", "target": [{"type": "phone", "number": ECHO}]}
URLS = ("webhook_url", "fallback_url", "status_webhook_url")


@pytest.fixture(autouse=True)
async def keys(stage: ApiStage) -> None:
    await stage.add_key(ASSISTANT_KEY, "assistant", SCOPES["assistant"])
    await stage.add_key(ADMIN_KEY, "admin", ["admin"])


@pytest.mark.parametrize(
    ("path", "key", "fields"),
    [
        ("/v1/calls?status=x&start_date=q&cursor=z", KEY, {"status", "start_date", "cursor"}),
        ("/v1/calls?cursor=z&end_date=q", KEY, {"cursor", "end_date"}),
        ("/v1/calls?direction=x&start_date=2026-02-01&end_date=2026-01-01", KEY, {"direction", "end_date"}),
        ("/v1/calls?to=x&status=busy&status=busy&tag=a&page=0", KEY, {"to", "status", "page"}),
        ("/v1/calls?from=%00&end_date=q", KEY, {"from", "end_date"}),
        ("/v1/masking/call-logs?status=x&start_date=q", KEY, {"status", "start_date"}),
        ("/v1/wallet/ledger?page=0&start_date=z&kind=zzz", KEY, {"page", "start_date", "kind"}),
        ("/v1/voice-otp/calls?status=x&end_date=z", KEY, {"status", "end_date"}),
        ("/v1/trunk-portal/call-logs?start=x&end_date=y&page=0", KEY, {"start", "end_date", "page"}),
        ("/v1/trunk-portal/call-logs?start=x&start_date=y", KEY, {"start", "start_date"}),
        ("/v1/trunk-portal/call-logs?days=3&start=2026-01-01&page=0", KEY, {"days", "page"}),
        ("/api/v1/calls?status=x&start_date=q", ASSISTANT_KEY, {"status", "start_date"}),
        ("/api/v1/analytics?agent_id=x&start_date=2020-01-01", ASSISTANT_KEY, {"agent_id", "start_date"}),
        ("/integrations/admin/usage?start_date=x&key_id=y", ADMIN_KEY, {"start_date", "key_id"}),
    ],
)
async def test_filters(client: Client, path: str, key: str, fields: set[str]) -> None:
    answer = await client.get(path, key=key)
    assert (answer.status, set(answer.fields)) == (400, fields)


async def test_a_replay(client: Client) -> None:
    path = f"/v1/webhooks/subscriptions/{SUBSCRIPTION_ID}/deliveries/replay"
    answer = await client.post(path, {"status": "x", "since": 7, "until": "z"})
    assert answer.status == 400
    assert all(f"{name}: " in answer.json()["error"] for name in ("status", "since", "until"))


async def test_the_url_of_a_subscription_beside_another_field(client: Client) -> None:
    body = {"url": "ftp://shop.example/", "event_types": ["call.found"]}
    error = (await client.post("/v1/webhooks/subscriptions", body)).json()["error"]
    assert "https://; a server for development takes http:// with TRUNKLINE_ALLOW_PRIVATE" in error


async def test_an_agent_that_is_none(client: Client) -> None:
    body = {"target": "voice_agent", "agent_id": "x"}
    answer = await client.put(f"/v1/phone-numbers/{NUMBER_ID}/inbound", body)
    assert answer.fields == {"agent_id": "must be a UUID", "workspace_id": "is required: a UUID"}


async def test_verbs(client: Client) -> None:
    dialled = {"target": [{"type": "phone", "number": "+919800000001"}], "timeout": 1}
    verbs = [{"verb": "say", "text": "a", "language": "fr"}, {"verb": "sing"}, {"verb": "dial", **dialled}]
    gather = {"verb": "gather", "prompts": [{"verb": "say", "text": "a", "language": "tlh"}]}
    body = {"from": NUMBER, "to": "+919800000001", "verbs": [*verbs, gather]}
    answer = await client.post("/v1/calls", body)
    assert answer.status == 400
    assert set(answer.fields) == {
        "verbs[0].language",
        "verbs[1].verb",
        "verbs[2].timeout",
        "verbs[3].prompts[0].language",
    }


async def test_a_stream_in_verbs(client: Client) -> None:
    stream = {"verb": "stream", "url": "wss://bot.example.com/", "stream_protocol": "x", "stream_track": "y"}
    body = {"from": NUMBER, "to": "+919800000001", "verbs": [stream]}
    answer = await client.post("/v1/calls", body)
    assert set(answer.fields) == {"verbs[0].stream_protocol", "verbs[0].stream_track"}


@pytest.mark.parametrize("retries", [11, 1])
async def test_a_binding(client: Client, retries: int) -> None:
    wrong = {"stream_protocol": "x", "encoding": "y", "sample_rate": 7, "stream_track": "z"}
    body = {"target": "media_stream", "stream_url": "http://bot.example.com/", **wrong}
    answer = await client.put(
        f"/v1/phone-numbers/{NUMBER_ID}/inbound", {**body, "stream_max_retries": retries}
    )
    named = {"stream_url", *wrong} | ({"stream_max_retries"} if retries > 10 else set())
    assert (answer.status, answer.code, set(answer.fields)) == (400, "bind_failed", named)


@pytest.mark.parametrize("beside", [{"annotations": {"zz": 1}}, {"title": ""}], ids=str)
async def test_a_tool(client: Client, beside: dict[str, object]) -> None:
    body = {
        **{"name": "a b", "description": "", "url": "ftp://x", "secret": " ", "headers": {"Host": "x"}},
        **{"input_schema": {"type": "array"}, "output_schema": {"type": 7}, **beside},
    }
    made = await client.post("/integrations/admin/tools", body, key=ADMIN_KEY)
    assert (made.status, {field.partition(".")[0] for field in made.fields}) == (400, set(body))
    del body["name"]
    changed = await client.post("/integrations/admin/tools/find_order", body, key=ADMIN_KEY)
    assert (changed.status, {field.partition(".")[0] for field in changed.fields}) == (400, set(body))


@pytest.mark.parametrize("url", [FAR, PRIVATE, "http://s.example.com/"])
async def test_an_application_of_a_webhook(client: Client, url: str) -> None:
    wrong = {"webhook_method": "PUT", "webhook_format": "xml", "timeout": 1, "status_webhook_events": ["x"]}
    body = {"name": " ", "target": "webhook", **dict.fromkeys(URLS, url), **wrong}
    answer = await client.post(APPLICATIONS, body)
    assert (answer.status, set(answer.fields)) == (400, {"name", *URLS, *wrong})


@pytest.mark.parametrize(
    ("target", "wrong"),
    [
        ("webhook", {"webhook_url": FAR, "webhook_method": "PUT"}),
        ("forward", {"forward_to": "x", "caller_id": "x", "timeout": 500}),
        ("voice_agent", {"agent_id": "x", "workspace_id": "x"}),
        ("media_stream", {"stream_url": "http://x.example/", "encoding": "x", "stream_max_retries": 11}),
        ("nothing", {"target": "nothing", "webhook_method": "PUT", "agent_id": "x", "timeout": 500}),
    ],
)
async def test_record_all_calls_beside_other_fields(
    client: Client, target: str, wrong: dict[str, object]
) -> None:
    body = {"name": "Shop", "target": target, "record_all_calls": "yes", **wrong}
    answer = await client.post(APPLICATIONS, body)
    assert (answer.status, set(answer.fields)) == (400, {"record_all_calls", *wrong})


async def test_a_change_of_an_application_names_given_fields_alone(client: Client) -> None:
    made = await client.post(
        APPLICATIONS, {"name": "Shop", "target": "webhook", "webhook_url": "https://s.example.com/"}
    )
    path = f"{APPLICATIONS}/{made.data['app_sid']}"
    wrong = {"record_all_calls": "x", "webhook_method": "PUT"}
    assert set((await client.patch(path, wrong)).fields) == set(wrong)
    # The application has the URL that the request leaves out.
    assert set((await client.patch(path, {"target": "webhook", **wrong})).fields) == set(wrong)
    # A stream may have said its protocol in its URL.
    told = {"record_all_calls": "x", "stream_track": "both", "encoding": "mulaw"}
    assert set((await client.patch(path, told)).fields) == {"record_all_calls"}


@pytest.mark.parametrize("url", ["http://bot.example.com/", "wss://10.0.0.1/"])
@pytest.mark.parametrize("path", [CALLS, f"/v1/Accounts/{ACCOUNT}/Calls"])
async def test_a_call_for_a_stream(client: Client, path: str, url: str) -> None:
    wrong = {"stream_protocol": "x", "encoding": "y", "sample_rate": 7, "stream_track": "z"}
    wrong |= {"stream_auth": {"type": "basic"}, "fallback_url": PRIVATE, "status_webhook_url": PRIVATE}
    body = {"from": NUMBER, "to": "+919800000001", "stream_url": url, "timeout": 1, **wrong}
    answer = await client.post(path, body)
    assert (answer.status, set(answer.fields)) == (400, {"stream_url", "timeout", *wrong})


@pytest.mark.parametrize("url", [FAR, PRIVATE])
async def test_a_call_for_a_webhook(client: Client, url: str) -> None:
    body = {"from": "x", "to": "+919800000001", "webhook_method": "PUT", **dict.fromkeys(URLS, url)}
    answer = await client.post(CALLS, body)
    assert (answer.status, set(answer.fields)) == (400, {"from", "webhook_method", *URLS})


async def test_values_of_verbs_beside_other_fields(client: Client) -> None:
    dial = {"verb": "dial", "target": [{"type": "phone", "number": "+442071838750"}], "caller_id": "xx"}
    stream = {"verb": "stream", "url": "wss://bot.example.com/", "encoding": "x"}
    verbs = [dial, stream, {"verb": "play", "url": "file:///x"}]
    answer = await client.post(CALLS, {"from": "x", "to": "+919800000001", "verbs": verbs})
    assert set(answer.fields) == {"from", "verbs[0].caller_id", "verbs[1].encoding", "verbs[2].url"}


async def test_wrong_values_come_before_a_country_that_may_not_be_called(client: Client) -> None:
    body = {"from": NUMBER, "to": "+14155550100", "stream_url": "wss://bot.example.com/"}
    wrong = await client.post(CALLS, {**body, "encoding": "x"})
    assert (wrong.status, set(wrong.fields)) == (400, {"encoding"})
    assert (await client.post(CALLS, body)).status == 403
    sent = {"to": "+14155550100"}
    wrong = await client.post("/v1/voice-otp/send", {**sent, "language": "fr"})
    assert (wrong.status, set(wrong.fields)) == (400, {"language"})
    assert (await client.post("/v1/voice-otp/send", sent)).status == 403


async def test_an_unknown_target_of_a_binding_beside_other_fields(client: Client) -> None:
    body = {"target": "x", "webhook_method": "PUT", "timeout": 1, "fallback_url": PRIVATE, "language": "fr"}
    answer = await client.put(f"/v1/phone-numbers/{NUMBER_ID}/inbound", body)
    assert (answer.status, answer.code, set(answer.fields)) == (400, "bind_failed", set(body))


@pytest.mark.parametrize("change", [False, True], ids=["new", "changed"])
async def test_a_carrier(client: Client, change: bool) -> None:
    wrong = {
        **{"name": "", "register_sip_realm": "\x01", "register_from_domain": "a b", "registrars": ["a b"]},
        **{"outbound_proxy": "a b", "forwarded_headers": ["Via"], "codecs": ["PCMU", "PCMU"], "max_cps": 0},
    }
    path = "/v1/trunk-portal/carriers"
    answer = await (client.patch(f"{path}/{CARRIER_SID}", wrong) if change else client.post(path, wrong))
    assert (answer.status, set(answer.fields)) == (400, set(wrong))


async def test_a_gateway(client: Client) -> None:
    wrong = {"host": "0.0.0.0", "protocol": "auto", "weight": -1}
    path = f"/v1/trunk-portal/carriers/{CARRIER_SID}/gateways"
    assert set((await client.post(path, wrong)).fields) == set(wrong)
    # The gateway may have the port null already.
    changed = await client.patch(f"{path}/{GATEWAY_SID}", {"protocol": "auto", "weight": -1})
    assert set(changed.fields) == {"weight"}


@pytest.mark.parametrize(
    ("path", "key", "wrong"),
    [
        ("/v1/voice-otp/send", KEY, {"to": "x", "status_webhook_url": PRIVATE}),
        ("/api/v1/calls/outbound", ASSISTANT_KEY, {"agent_id": "x", "status_webhook_url": PRIVATE}),
        ("/api/v1/agents", ASSISTANT_KEY, {"name": "", "stream_url": "wss://10.0.0.1/"}),
        ("/api/v1/webhooks", ASSISTANT_KEY, {"events": [], "url": PRIVATE}),
    ],
)
async def test_a_host_that_is_not_reached(
    client: Client, path: str, key: str, wrong: dict[str, object]
) -> None:
    right = {"phone_number": "+919800000001"} if "agent_id" in wrong else {}
    answer = await client.post(path, {**right, **wrong}, key=key)
    assert (answer.status, set(answer.fields)) == (400, set(wrong))


FORWARDS = [("+442071838750", "country (GB)"), ("sip:a@strange.example", "strange.example is not a gateway")]


@pytest.mark.parametrize(("forward_to", "why"), FORWARDS)
@pytest.mark.parametrize(
    "beside", [{"timeout": 1}, {"status_webhook_url": PRIVATE}, {"record": "x"}], ids=str
)
async def test_a_party_to_forward_to_beside_other_fields(
    client: Client, forward_to: str, why: str, beside: dict[str, object]
) -> None:
    body = {"target": "forward", "forward_to": forward_to}
    path = f"/v1/phone-numbers/{NUMBER_ID}/inbound"
    bound = await client.put(path, {**body, **beside})
    assert (bound.status, set(bound.fields)) == (400, {"forward_to", *beside})
    assert why in bound.fields["forward_to"]
    made = await client.post(APPLICATIONS, {"name": "", **body, **beside})
    assert (made.status, set(made.fields)) == (400, {"name", "forward_to", *beside})
    alone = await client.put(path, {**body, "force": True})
    assert (alone.status, alone.code, set(alone.fields)) == (400, "bind_failed", {"forward_to"})


async def test_a_party_to_forward_to_that_may_be_called_is_not_named(client: Client) -> None:
    body = {"target": "forward", "forward_to": f"sip:a@{PLATFORM_HOST}", "timeout": 1}
    answer = await client.put(f"/v1/phone-numbers/{NUMBER_ID}/inbound", body)
    assert set(answer.fields) == {"timeout"}


async def test_hosts_and_prompts_in_verbs_beside_other_fields(client: Client) -> None:
    verbs = [
        *({"verb": "play", "url": url} for url in ("prompt:none", PRIVATE, "https://s.example.com/a.wav")),
        {"verb": "say", "text": ""},
        {"verb": "dial", "target": [{"type": "phone", "number": "+442071838750"}]},
        {"verb": "stream", "url": "wss://10.0.0.1/"},
    ]
    answer = await client.post(CALLS, {"from": NUMBER, "to": "+919800000001", "timeout": 1, "verbs": verbs})
    named = {"timeout", "verbs[0].url", "verbs[1].url", "verbs[3].text", "verbs[5].url"}
    assert (answer.status, set(answer.fields)) == (400, named)


async def test_wrong_verbs_come_before_a_country_that_may_not_be_called(client: Client) -> None:
    dial = {"verb": "dial", "target": [{"type": "phone", "number": "+442071838750"}]}
    body = {"from": NUMBER, "to": "+919800000001"}
    wrong = await client.post(CALLS, {**body, "verbs": [dial, {"verb": "play", "url": "prompt:none"}]})
    assert (wrong.status, set(wrong.fields)) == (400, {"verbs[1].url"})
    assert (await client.post(CALLS, {**body, "verbs": [dial]})).status == 403


@pytest.mark.parametrize(
    ("wrong", "fields"),
    [
        ({"to": "x"}, {"to"}),
        ({"media": {"type": "gif", "url": PRIVATE, "caption": ""}}, {"media.type", "media.caption"}),
    ],
)
async def test_the_host_of_a_file_beside_other_fields(
    client: Client, wrong: dict[str, object], fields: set[str]
) -> None:
    media = {"type": "image", "url": "http://10.0.0.1/a.png"}
    body = {"to": "+919800100000", "type": "media", "media": media, **wrong}
    details = (await client.post("/api/v1/messages", body, key=MESSAGING_KEY)).json()["details"]
    assert {error["field"] for error in details["errors"]} == {"media.url", *fields}


async def test_the_host_of_a_file_for_twilio_clients(client: Client, stage: ApiStage) -> None:
    key = "vk_" + "e" * 43
    await stage.add_key(key, "all", SCOPES["all"])
    body = {"To": "x", "From": "+918001100000", "MediaUrl": "http://10.0.0.1/a.png"}
    answer = await client.post(f"{TWILIO}/Messages.json", body, key=key)
    assert {error["field"] for error in answer.json()["details"]["errors"]} == {"To", "MediaUrl"}


async def test_a_form_without_fields_names_those_that_are_required(client: Client) -> None:
    headers = {"Content-Type": "application/x-www-form-urlencoded"}
    answer = await client.request("POST", f"{TWILIO}/Calls.json", body=b"", headers=headers)
    errors = answer.json()["details"]["errors"]
    assert (answer.status, {error["field"] for error in errors}) == (400, {"To", "From", "Url"})


async def test_a_day_that_is_none_is_named_once(client: Client) -> None:
    answer = await client.get(f"{TWILIO}/Calls.json?StartTime=x")
    assert [error["field"] for error in answer.json()["details"]["errors"]] == ["StartTime"]


async def test_settings_of_masking(client: Client) -> None:
    body = {"webhook_url": PRIVATE, "routing_url": PRIVATE, "webhook_secret": "whsec_*"}
    answer = await client.patch("/v1/masking/settings", body)
    assert (answer.status, set(answer.fields)) == (400, set(body))
    enrolled = {"number": "x", "language": "fr"}
    assert set((await client.post("/v1/masking/numbers", enrolled)).fields) == set(enrolled)


async def test_a_message_of_no_type(client: Client) -> None:
    body = {"to": "x", "type": "x", "media": {"type": "audio", "url": FAR, "caption": ""}}
    details = (await client.post("/api/v1/messages", body, key=MESSAGING_KEY)).json()["details"]
    named = {error["field"] for error in details["errors"]}
    assert named == {"to", "type", "media.url", "media.caption"}


@pytest.mark.parametrize(
    ("path", "key"),
    [("/v1/voice-otp/stats", KEY), ("/v1/masking/stats", KEY), ("/api/v1/analytics", ASSISTANT_KEY)],
)
async def test_a_day_that_has_not_begun_is_one_in_utc(client: Client, path: str, key: str) -> None:
    answer = await client.get(f"{path}?start_date=2999-01-01", key=key)
    (message,) = answer.fields.values()
    assert (answer.status, message.endswith("UTC")) == (400, True)


@pytest.mark.parametrize("url", ["x", "ws://app.example.com/", "http://app.example.com/"])
@pytest.mark.parametrize("more", [{}, {"timeout": 1}])
async def test_a_url_is_judged_by_the_schemes_that_its_field_takes(
    client: Client, url: str, more: dict[str, int]
) -> None:
    body = {"name": "a", "target": "webhook", "webhook_url": url, **more}
    answer = await client.post(APPLICATIONS, body)
    told = "must be a URL that starts with https://; a server for development takes http://"
    assert answer.fields.keys() == {"webhook_url", *more}
    assert answer.fields["webhook_url"].startswith(told)
    answer = await client.post(APPLICATIONS, {**body, "webhook_format": "jambonz"})
    if url.startswith("ws:"):
        assert answer.status == 201 or answer.fields.keys() == {*more}
    else:
        with_sockets = "must be a URL that starts with https://, ws:// or wss://;"
        assert answer.fields["webhook_url"].startswith(with_sockets)
    bound = await client.put(
        f"/v1/phone-numbers/{NUMBER_ID}/inbound", {"target": "webhook", "webhook_url": url}
    )
    called = await client.post(CALLS, {"from": NUMBER, "to": ECHO, "webhook_url": url})
    assert bound.fields["webhook_url"].startswith(told) and called.fields["webhook_url"].startswith(told)
    verbs = [{"verb": "play", "url": url}]
    answer = await client.post(CALLS, {"from": NUMBER, "to": "+919800000001", "verbs": verbs})
    wanted = "must be prompt:NAME, or the URL of a WAV file that starts with https://; a server"
    assert answer.fields["verbs[0].url"].startswith(told if url.startswith("http:") else wanted)


@pytest.mark.parametrize(
    ("target", "field"),
    [("webhook", "webhook_url"), ("media_stream", "stream_url"), ("forward", "forward_to")],
)
async def test_what_a_target_needs_is_required(client: Client, target: str, field: str) -> None:
    bound = await client.put(f"/v1/phone-numbers/{NUMBER_ID}/inbound", {"target": target})
    made = await client.post(APPLICATIONS, {"name": "a", "target": target})
    assert bound.fields == made.fields == {field: "is required"}


@pytest.mark.parametrize(
    ("path", "body", "field", "told"),
    [
        (
            "/v1/voice-otp/send",
            {"to": "+919800000001", "template": "x"},
            "template",
            "must have {otp} in it once",
        ),
        (CALLS, {"to": {"type": "sip", "sip_uri": "x"}}, "to.sip_uri", "is no SIP address"),
        (
            CALLS,
            {"to": ECHO, "verbs": [{**DIAL, "caller_id": "x"}]},
            "verbs[0].caller_id",
            "must be a telephone",
        ),
    ],
)
async def test_a_word_is_told_what_is_wanted_and_not_how_long(
    client: Client, path: str, body: dict[str, object], field: str, told: str
) -> None:
    answer = await client.post(path, {"from": NUMBER, **body})
    assert answer.status == 400 and told in answer.fields[field]
