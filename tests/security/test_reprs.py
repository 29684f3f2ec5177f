"""Printed objects, in a traceback or a line of the log, show no secret."""

from __future__ import annotations

import dataclasses
import importlib
import pkgutil
import re
from collections.abc import Iterator

import pytest

from api.process.logs import redact
from api.schemas.otp import SendOtp
from api.schemas.trunks import CreateCarrier
from callcontrol.accounts.keys import PREFIXES, make_key
from sip.message.message import Headers

_SECRET = re.compile(
    r"(^|_)(secrets?|password|token|otp|api_key|secret_key|database_url|stream_auth|extra_headers)$"
)
# Their fields show nothing of themselves, or are no secrets: functions that make tags, and numbers of orders.
_HARMLESS = {
    "SessionSettings.token",
    "UserAgentSettings.token",
    "AdoptLeg.token",
    "RefuseReplacement.token",
    "ReplacementCalled.token",
    "Account.stream_secret",
    "Services.otp",
    "Endpoint.token",
    "PhonePrincipal.token",
}


def _dataclasses() -> Iterator[type]:
    for package in ("sip", "media", "callcontrol", "api"):
        root = importlib.import_module(package)
        for found in pkgutil.walk_packages(root.__path__, f"{package}."):
            if ".migrations" in found.name or found.name.endswith("__main__"):
                continue
            module = importlib.import_module(found.name)
            yield from (
                value
                for value in vars(module).values()
                if isinstance(value, type)
                and dataclasses.is_dataclass(value)
                and value.__module__ == module.__name__
            )


def test_no_object_shows_a_field_that_is_called_a_secret() -> None:
    shown = {
        f"{kind.__module__}.{kind.__qualname__}.{field.name}: {field.type}"
        for kind in _dataclasses()
        for field in dataclasses.fields(kind)
        if field.repr and _SECRET.search(field.name) and f"{kind.__qualname__}.{field.name}" not in _HARMLESS
    }
    assert sorted(shown) == []


def test_messages_show_no_answers_to_challenges() -> None:
    fields = Headers(
        [("To", "<sip:x@y>"), ("AUTHORIZATION", "Digest response=c0ffee"), ("Proxy-Authorization", "c0ffee")]
    )
    assert "c0ffee" not in repr(fields) and "sip:x@y" in repr(fields)


def test_bodies_name_their_fields_and_show_no_value() -> None:
    otp = SendOtp.model_validate({"to": "+919800000001", "otp": "90417263"})
    assert repr(otp) == "SendOtp('otp', 'to')" and "90417263" not in str(otp)
    carrier = CreateCarrier(name="x", inbound_auth_username="u", inbound_auth_password="hunter2hunter2")
    assert "hunter2" not in f"{carrier!r} {carrier}"


@pytest.mark.parametrize("service", PREFIXES)
def test_keys_of_every_service_are_blotted_out(service: str) -> None:
    key = make_key(service, bytes(range(32)))  # type: ignore[arg-type]  # Of the parametrization, a plain text.
    assert key[len(PREFIXES[service]) + 4 :] not in redact(f"the key {key} is of no account")  # type: ignore[index]


@pytest.mark.parametrize(
    "text",
    [
        "{'password': 'hunter2hunter2'}",
        '{"secret": "hunter2hunter2"}',
        "Secret(token='hunter2hunter2')",
        "X-Api-Key: whsec_hunter2hunter2",
        "api_key=hunter2hunter2&x=1",
        "Proxy-Authorization='hunter2hunter2'",
    ],
)
def test_what_is_called_a_secret_is_blotted_out(text: str) -> None:
    assert "hunter2" not in redact(text)
