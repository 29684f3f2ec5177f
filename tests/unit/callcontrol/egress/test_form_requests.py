"""Questions to servers of TwiML: the fields they expect, and the signature they check."""

import hmac
from base64 import b64encode
from urllib.parse import parse_qsl, urlsplit

import pytest

from callcontrol.calls.records.call_form import form_fields
from callcontrol.egress.requests import form_request, form_signature
from tests.support.domain import ACCOUNT_SID, CALL_SID, OWN_NUMBER, make_ringing

URL = "https://customer.example/calls?shop=7"


def test_the_fields_have_the_names_that_servers_know() -> None:
    asked = make_ringing(sip={"headers": {"X-Shop": "7"}}, answered_by="machine")
    assert form_fields(asked, ()) == {
        "CallSid": CALL_SID,
        "AccountSid": ACCOUNT_SID,
        "From": "+919811111111",
        "To": OWN_NUMBER,
        "Caller": "+919811111111",
        "Called": OWN_NUMBER,
        "CallStatus": "ringing",
        "Direction": "inbound",
        "ApiVersion": "2010-04-01",
        "AnsweredBy": "machine_start",
        "SipHeader_X-Shop": "7",
    }
    assert form_fields(make_ringing(direction="outbound"), ())["Direction"] == "outbound-api"


@pytest.mark.parametrize(
    ("fact", "field"),
    [
        (("digits", ""), ("Digits", "")),
        (("finished_on_key", "#"), ("FinishedOnKey", "#")),
        (("recording_duration_ms", 2600), ("RecordingDuration", "3")),
        (("dial_call_status", "busy"), ("DialCallStatus", "busy")),
        (("dial_call_duration", 0), ("DialCallDuration", "0")),
    ],
)
def test_what_came_of_a_verb_is_told(fact: tuple[str, str | int], field: tuple[str, str]) -> None:
    assert field in form_fields(make_ringing(), [fact]).items()


def test_what_came_of_nothing_is_left_out() -> None:
    assert form_fields(make_ringing(), [("finished_on_key", None), ("unheard_of", "x")]) == form_fields(
        make_ringing(), ()
    )


def test_a_post_is_signed_over_its_address_and_its_fields_in_order() -> None:
    # The worked example that their documentation gives for checking an implementation.
    fields = {
        "CallSid": "CA1234567890ABCDE",
        "Caller": "+14158675309",
        "Digits": "1234",
        "From": "+14158675309",
        "To": "+18005551212",
    }
    expected = "RSOYDt4T1cUTdK1PDd93/VVr8B8="
    assert form_signature("12345", "https://mycompany.com/myapp.php?foo=1&bar=2", fields) == expected
    asked = form_request(URL, "POST", fields, "12345")
    assert asked.url == URL
    assert dict(parse_qsl(asked.body.decode())) == fields
    assert asked.headers["Content-Type"] == "application/x-www-form-urlencoded"
    assert asked.headers["X-Twilio-Signature"] == form_signature("12345", URL, fields)
    assert "X-Twilio-Signature" not in form_request(URL, "POST", fields, None).headers


def test_a_get_has_the_fields_in_its_address_and_that_is_signed() -> None:
    asked = form_request(URL, "GET", {"From": "+91", "Digits": "1#"}, "key")
    assert asked.url == "https://customer.example/calls?shop=7&From=%2B91&Digits=1%23"
    assert asked.body == b""
    digest = hmac.digest(b"key", asked.url.encode(), "sha1")
    assert asked.headers == {"X-Twilio-Signature": b64encode(digest).decode()}


def test_an_address_goes_out_as_it_is_signed() -> None:
    asked = form_request("https://customer.example/café?a=%20", "POST", {}, "key")
    assert asked.url == "https://customer.example/caf%C3%A9?a=%20"
    assert urlsplit(asked.url).path.isascii()
