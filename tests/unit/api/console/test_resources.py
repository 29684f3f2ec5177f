"""Pages of trunks, agents, products and webhooks: what they do, refuse and escape."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from html.parser import HTMLParser

import pytest

from callcontrol.accounts.keys import SCOPES
from tests.support.api_facts import ACCOUNT, CARRIER_SID, GATEWAY_SID, NUMBER, NUMBER_ID, insert_key
from tests.support.api_stage import ApiStage
from tests.support.console_stage import Person, sign_in
from tests.unit.api.client import Client
from tests.unit.api.console.test_numbers import text_of

ALL_KEY = "vk_" + "a" * 43
HOSTILE = (
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onfocus=alert(1) autofocus='",
    "{{name}}</textarea><svg/onload=alert(1)>",
    "javascript:alert(1)",
)


@pytest.fixture
async def everybody(stage: ApiStage, web: Client) -> Person:
    """Somebody with a key of every scope of every service."""
    await stage.write(lambda connection: insert_key(connection, ALL_KEY, "all", SCOPES["all"]))
    return await sign_in(web, ALL_KEY)


async def made(person: Person, path: str, fields: Mapping[str, str]) -> str:
    """Send a form that makes something; the path that it leads to."""
    answer = await person.post(path, fields)
    assert answer.status == 303, re.findall("<li><code>.*|<p>.*</p>", answer.body.decode())
    return str(answer.headers["Location"]).partition("?")[0]


def dangers(page: str) -> list[str]:
    """Parts of a page that a browser would execute, but for the scripts of the console."""
    found: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            given = {name: value or "" for name, value in attrs}
            ours = given.get("src", "").startswith("/console/static/")
            if tag in ("svg", "iframe", "object", "embed") or (tag in ("script", "img") and not ours):
                found.append(tag)
            found.extend(name for name in given if name.startswith("on") or name in ("style", "autofocus"))
            found.extend(it for it in given.values() if it.strip().startswith("javascript:") and tag == "a")

    Reader().feed(page)
    return found


async def test_a_trunk_is_made_gets_gateways_and_is_deleted(everybody: Person) -> None:
    trunk = await made(everybody, "/console/trunks", {"name": "Airtel", "trunk_type": "static_ip"})
    gateway = {"host": "192.0.2.50", "port": "5070", "protocol": "udp", "send_options_ping": "true"}
    await made(everybody, f"{trunk}/gateways", gateway)
    page = text_of(await everybody.get(trunk))
    assert "192.0.2.50" in page and "5070" in page and 'class="status unknown"' in page
    found = re.search(rf"{trunk}/gateways/[0-9a-f-]{{36}}", page)
    assert found is not None
    await made(everybody, found[0], {"send_options_ping": "false"})
    await made(everybody, found[0], {"is_active": "false"})
    await made(everybody, f"{found[0]}/remove", {})
    await made(everybody, f"{trunk}/active", {"is_active": "false"})
    assert await made(everybody, f"{trunk}/delete", {}) == "/console/trunks"
    assert (await everybody.get(trunk)).status == 404


async def test_a_wrong_gateway_is_refused_beside_its_field(everybody: Person) -> None:
    path = f"/console/trunks/{CARRIER_SID}/gateways"
    page = text_of(await everybody.post(path, {"host": "not a host", "port": "far"}), 400)
    assert 'id="add-host-hint"' in page and 'id="add-port-hint"' in page and 'value="far"' in page
    assert GATEWAY_SID in text_of(await everybody.get(f"/console/trunks/{CARRIER_SID}"))


async def test_a_test_call_goes_by_the_trunk(everybody: Person) -> None:
    gateway = {"host": "192.0.2.60", "protocol": "udp", "port": "5060"}
    await made(everybody, f"/console/trunks/{CARRIER_SID}/gateways", gateway)
    call = await made(
        everybody, f"/console/trunks/{CARRIER_SID}/call", {"from": NUMBER, "to": "+919800000001"}
    )
    assert re.fullmatch("/console/calls/[0-9a-f-]{36}", call)
    refused = await everybody.post(f"/console/trunks/{CARRIER_SID}/call", {"from": NUMBER, "to": "12"})
    assert 'id="test-to-hint"' in text_of(refused, 400)


async def test_an_agent_is_made_bound_changed_and_deleted(everybody: Person) -> None:
    agent = await made(everybody, "/console/agents", {"name": "Asha", "greeting": "Hello"})
    await made(everybody, f"{agent}/bind", {"number": NUMBER_ID})
    assert "voice_agent" in text_of(await everybody.get(f"/console/numbers/{NUMBER_ID}"))
    await made(everybody, agent, {"name": "Asha", "stream_url": "wss://bot.example.com/ws"})
    page = text_of(await everybody.get(agent))
    assert 'value="wss://bot.example.com/ws"' in page and "Hello" not in page
    assert "script" in text_of(await everybody.post(agent, {"name": "Asha", "script": "{]"}), 400)
    assert (await everybody.post(f"{agent}/delete")).status == 409
    await made(everybody, f"/console/numbers/{NUMBER_ID}/unbind", {})
    assert await made(everybody, f"{agent}/delete", {}) == "/console/agents"


async def test_a_masking_session_is_opened_and_closed(everybody: Person) -> None:
    await made(everybody, "/console/masking/numbers", {"number": NUMBER})
    parties = {"party_a": "+919800000001", "party_b": "+919800000002", "expires_in_sec": "600"}
    await made(everybody, "/console/masking/sessions", parties)
    page = text_of(await everybody.get("/console/masking"))
    assert "<td>9800000001</td>" in page
    close = re.search("/console/masking/sessions/[^/]+/close", page)
    assert close is not None
    await made(everybody, close[0], {})
    assert "/close" not in text_of(await everybody.get("/console/masking?status=active"))
    wrong = await everybody.post("/console/masking/sessions", {**parties, "party_b": "x"})
    assert 'id="create-party_b-hint"' in text_of(wrong, 400)
    assert (await everybody.get("/console/masking/logs")).status == 200
    assert "must" in text_of(await everybody.get("/console/masking?status=x"), 400)


async def test_a_code_is_told_and_checked(everybody: Person) -> None:
    sent = {"to": "+919800000001", "otp": "482913", "language": "en", "reference": "order <7>"}
    await made(everybody, "/console/otp/send", sent)
    page = text_of(await everybody.get("/console/otp"))
    assert "order &lt;7&gt;" in page and "482913" not in page
    identifier = re.search("<td>([0-9a-f-]{36})</td>", page)
    assert identifier is not None
    wrong = await everybody.post("/console/otp/verify", {"id": identifier[1], "otp": "000000"})
    assert "The code is not right." in text_of(wrong)
    assert 'id="send-to-hint"' in text_of(await everybody.post("/console/otp/send", {"to": "x"}), 400)
    assert (await everybody.post("/console/otp/verify", {"id": "../x", "otp": "1234"})).status == 404


async def test_templates_and_messages(everybody: Person) -> None:
    template = {"name": "order_done", "category": "UTILITY", "body": "Order {{1}} is done."}
    await made(everybody, "/console/templates", template)
    page = text_of(await everybody.get("/console/templates"))
    assert "Order {{1}} is done." in page
    sync = re.search("/console/templates/[^/]+/sync", page)
    assert sync is not None
    assert (await everybody.post(sync[0])).status in (303, 400, 409)
    page = text_of(await everybody.post("/console/templates", {"name": "", "body": ""}), 400)
    assert 'id="create-name-hint"' in page
    page = text_of(
        await everybody.post("/console/messages", {"type": "text", "to": "x", "form": "text"}), 400
    )
    assert 'id="text-to-hint"' in page and 'id="text-text-hint"' in page
    assert (await everybody.get("/console/messages")).status == 200
    assert (await everybody.get("/console/messages/no-such")).status == 404


@pytest.mark.parametrize(
    ("product", "event"),
    [("calls", "call.missed"), ("messaging", "message.sent"), ("assistant", "call.completed")],
)
async def test_a_webhook_is_made_paused_and_deleted(everybody: Person, product: str, event: str) -> None:
    fields = {"product": product, "url": "https://8.8.8.8/<b>", "events": event}
    answer = await everybody.post("/console/webhooks", {**fields, "url": "https://8.8.8.8/hook"})
    assert answer.status in (200, 303), answer.body.decode()
    page = text_of(await everybody.get("/console/webhooks"))
    found = re.search(f'href="(/console/webhooks/{product}/[^/"]+)"', page)
    assert found is not None
    await made(everybody, f"{found[1]}/active", {"is_active": "false"})
    page = text_of(await everybody.get(found[1]))
    assert "Go on" in page
    assert (await everybody.get(f"{found[1]}/deliveries/none")).status == 404
    # A paused webhook sends nothing again.
    assert (await everybody.post(f"{found[1]}/replay")).status == 409
    await made(everybody, f"{found[1]}/active", {"is_active": "true"})
    assert (await everybody.post(f"{found[1]}/deliveries/none/replay")).status == 404
    await made(everybody, f"{found[1]}/replay", {})
    assert await made(everybody, f"{found[1]}/delete", {}) == "/console/webhooks"
    wrong = await everybody.post("/console/webhooks", {**fields, "events": "nothing"})
    assert 'id="create-events-hint"' in text_of(wrong, 400)
    assert (await everybody.get("/console/webhooks/none/1")).status == 404


@pytest.mark.parametrize("text", HOSTILE)
async def test_hostile_texts_are_shown_as_texts(everybody: Person, text: str) -> None:
    trunk = await made(everybody, "/console/trunks", {"name": text[:60], "trunk_type": "static_ip"})
    script = json.dumps({"greeting": text})
    agent = await made(
        everybody, "/console/agents", {"name": text, "greeting": text, "instructions": text, "voice": text}
    )
    await made(everybody, f"/console/numbers/{NUMBER_ID}/label", {"friendly_name": text})
    await everybody.post("/console/keys/create", {"name": text, "service": "platform"})
    await everybody.post("/console/templates", {"name": "hostile", "category": "UTILITY", "body": text})
    await everybody.post("/console/otp/send", {"to": "+919800000001", "reference": text[:60]})
    pages = [
        await everybody.get(path)
        for path in (
            *("/console/trunks", trunk, "/console/agents", agent, "/console/numbers"),
            *(f"/console/numbers/{NUMBER_ID}", "/console/keys", "/console/templates", "/console/otp"),
        )
    ]
    # A refused form shows what was typed.
    for path in ("/console/agents", "/console/trunks", "/console/messages", "/console/masking/sessions"):
        fields = {"name": "", "script": text + script, "stream_url": text, "to": text, "party_a": text}
        pages.append(await everybody.post(path, {**fields, "register_username": text, "type": "text"}))
    pages.append(await everybody.get("/console/numbers?region=%3Cscript%3Ealert(1)%3C/script%3E"))
    for answer in pages:
        page = answer.body.decode()
        assert answer.status in (200, 400), page
        assert dangers(page) == []


async def test_pages_of_other_services_say_what_is_missing(person: Person) -> None:
    for path in ("/console/agents", "/console/messages", "/console/templates"):
        assert "service platform" in text_of(await person.get(path), 403)
    page = text_of(await person.get("/console/webhooks"))
    assert "Your key lacks the scope" in page
    assert ACCOUNT not in page
