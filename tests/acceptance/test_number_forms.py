"""Numbers as people and programs write them: the same in every field, filter and path of all services."""

from __future__ import annotations

from typing import Any

import aiohttp
import pytest

from tests.acceptance.clients.http import Api
from tests.acceptance.clients.phone import Manner
from tests.acceptance.shapes import assert_messaging_error, assert_platform_error
from tests.acceptance.stage import Customer, Line, NewCustomer, mobile, own_number
from tests.support.server_process import ServerProcess

# Writings of +919811100001.
FORMS = [
    *("+919811100001", "919811100001", "00919811100001", "9811100001", "09811100001"),
    *("+91 98111 00001", "98111-00001", "tel:+919811100001", "tel:+91-98111-00001", "0091 98111 00001"),
]
NO_NUMBERS = ["garbage", "12", "+91", "tel:", "98111000011111111"]


def written(number: str) -> list[str]:
    """Writings of an Indian number."""
    national = number.removeprefix("+91")
    return [number, f"91{national}", f"0091{national}", national, f"0{national}", f"tel:{number}"]


@pytest.fixture
def customer(new_customer: NewCustomer) -> Customer:
    """A customer whose only number is the one that calls."""
    return new_customer()


@pytest.mark.parametrize("form", FORMS)
async def test_a_called_number_in_any_form_is_the_same(line: Line, form: str) -> None:
    line.phone.manner = Manner(status=486)
    placed = await line.place(form, verbs=[{"verb": "hangup"}])
    assert placed["to"] == mobile()
    assert (await line.phone.rings()).number == mobile()
    listed = (await line.api.get("/v1/calls", to=form)).expect(200).data
    assert [call["call_sid"] for call in listed] == [placed["call_sid"]]


async def test_a_caller_in_any_form_is_the_same(line: Line) -> None:
    line.phone.manner = Manner(status=486)
    for form in written(line.number):
        body = {"from": form, "to": mobile(), "verbs": [{"verb": "hangup"}]}
        placed = (await line.api.post("/v1/calls", body)).expect(201).data
        assert placed["from"] == line.number, form
        found = (await line.api.get("/v1/calls", **{"from": form})).expect(200).data
        assert placed["call_sid"] in [call["call_sid"] for call in found], form


@pytest.mark.parametrize("text", NO_NUMBERS)
async def test_what_is_no_number_is_refused_and_finds_no_empty_list(line: Line, text: str) -> None:
    body = {"from": line.number, "to": text, "verbs": [{"verb": "hangup"}]}
    assert_platform_error(await line.api.post("/v1/calls", body), 400, "VALIDATION_ERROR", "to")
    for path, name in (
        *(("/v1/calls", "to"), ("/v1/calls", "from"), ("/v1/voice-otp/calls", "to")),
        ("/v1/masking/call-logs", "party"),
    ):
        code = "validation" if "masking" in path else "VALIDATION_ERROR"
        assert_platform_error(await line.api.get(path, **{name: text}), 400, code, name)


@pytest.mark.parametrize("form", FORMS[1:])
async def test_every_service_takes_a_called_number_in_any_form(
    line: Line, customer: Customer, form: str
) -> None:
    line.phone.manner = Manner(status=486)
    sent = (await line.api.post("/v1/voice-otp/send", {"to": form})).expect(201).data
    assert sent["to"].endswith(mobile()[-4:])
    assert (await line.phone.rings()).number == mobile()
    otps = (await line.api.get("/v1/voice-otp/calls", to=form)).expect(200).data
    assert [found["id"] for found in otps] == [sent["id"]]
    assistant = line.api.with_key(customer.key_of("assistant"))
    agent = (await assistant.post("/api/v1/agents", {"name": "Asha"})).expect(201).data["id"]
    body: dict[str, Any] = {"phone_number": form, "agent_id": agent}
    call = (await assistant.post("/api/v1/calls/outbound", body)).expect(201).data
    assert call["phone_number"] == mobile()
    assert (await line.phone.rings()).number == mobile()
    parties = {"party_a": form, "party_b": mobile(2)}
    masked = (await line.api.post("/v1/masking/calls", parties)).expect(201).data
    assert (await line.phone.rings()).number == mobile()
    logs = (await line.api.get("/v1/masking/call-logs", party=form)).expect(200).data
    assert [log["id"] for log in logs] == [masked["call_sid"]]
    found = (await line.api.get("/v1/trunk-portal/call-logs", filter=mobile()[-5:])).expect(200).data
    assert len(found) == 3


async def test_a_number_of_the_account_is_named_in_any_form(api: Api) -> None:
    carrier = (await api.post("/v1/trunk-portal/carriers", {"name": "Own"})).expect(201).data
    sid = carrier["carrier_sid"]
    for index in range(6):
        number = own_number()
        body = {"number": written(number)[index], "carrier_sid": sid}
        made = (await api.post("/v1/trunk-portal/numbers", body)).expect(201).data
        assert made["number"] == number, body
        enrolled = {"number": written(number)[index], "force": True}
        masked = (await api.post("/v1/masking/numbers", enrolled)).expect(201).data
        assert masked["number"] == number, body


@pytest.mark.parametrize("form", FORMS[1:])
async def test_messaging_takes_numbers_in_any_form(
    session: aiohttp.ClientSession, server: ServerProcess, customer: Customer, form: str
) -> None:
    chat = Api(session, server.url, customer.key_of("messaging"))
    body = {"to": form, "type": "text", "text": "Hello"}
    assert (await chat.post("/api/v1/messages", body)).expect(200).body["to"] == mobile()
    made = (await chat.post("/api/v1/contacts", {"phoneNumber": form})).expect(201).data
    assert made["phoneNumber"] == mobile()
    listed = (await chat.get("/api/v1/messages", to=form)).expect(200).data
    assert len(listed) == 1
    found = (await chat.get("/api/v1/contacts", search=form)).expect(200).data
    assert found == [made]
    wrong = await chat.get("/api/v1/messages", to="garbage")
    assert_messaging_error(wrong, 400, "VALIDATION_ERROR", "to")
