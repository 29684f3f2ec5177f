from __future__ import annotations

import pytest

from callcontrol.accounts import keys as accounts
from callcontrol.errors import Unauthorized, ValidationFailed
from callcontrol.models import Service
from tests.support.domain import make_account

SERVICES: list[Service] = ["platform", "messaging", "assistant", "tools", "admin"]


@pytest.mark.parametrize("service", SERVICES)
def test_a_key_has_the_form_of_a_key(service: Service) -> None:
    key = accounts.make_key(service, bytes(range(32)))
    assert key.startswith(accounts.PREFIXES[service])
    accounts.check_form(key)
    assert key.startswith(accounts.shown_prefix(key, service))
    assert len(accounts.shown_prefix(key, service)) < 12


def test_platform_keys_begin_with_vp() -> None:
    assert accounts.make_key("platform", b"\0" * 32) == "vp_" + "A" * 43


@pytest.mark.parametrize(
    "text",
    ["", "vp_", "vp_" + "a" * 42, "vp_" + "a" * 44, "xx_" + "a" * 43, "vp_" + "ä" * 43, "vp_" + "a b" * 15],
)
def test_what_cannot_be_a_key_is_refused_unread(text: str) -> None:
    with pytest.raises(Unauthorized):
        accounts.check_form(text)


def test_the_stored_hash_is_not_the_key() -> None:
    key = accounts.make_key("platform", bytes(32))
    assert key not in accounts.hash_key(key)
    assert accounts.hash_key(key) != accounts.hash_key(key + "x")


def test_webhook_scopes_are_never_implicit() -> None:
    implicit = accounts.scopes_of("platform", None)
    assert "calls.write" in implicit
    assert not any(scope.startswith("webhooks.") for scope in implicit)
    assert accounts.scopes_of("platform", ["webhooks.read"]) == ("webhooks.read",)


@pytest.mark.parametrize("wanted", [[], ["calls.fly"], ["messages.send"]])
def test_scopes_of_another_service_are_refused(wanted: list[str]) -> None:
    with pytest.raises(ValidationFailed):
        accounts.scopes_of("platform", wanted)


def test_unknown_services_are_refused() -> None:
    assert accounts.parse_service("tools") == "tools"
    with pytest.raises(ValidationFailed):
        accounts.parse_service("kitchen")


def test_all_wrong_fields_of_an_account_are_named() -> None:
    with pytest.raises(ValidationFailed) as caught:
        accounts.check_account(make_account("A1", name="", max_cps=0, max_calls=0), -1)
    assert {error.field for error in caught.value.errors} == {"name", "balance", "max_cps", "max_calls"}
