from __future__ import annotations

from datetime import timedelta

import pytest

from callcontrol.accounts import keys as accounts
from callcontrol.errors import Forbidden, Unauthorized, ValidationFailed
from callcontrol.models import Environment, Principal, Service
from tests.support.domain import NOW, make_account

SERVICES: list[Service] = ["platform", "messaging", "assistant", "tools", "admin", "all"]


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


@pytest.mark.parametrize("service", SERVICES)
def test_scopes_that_make_more_of_a_key_are_never_implicit(service: Service) -> None:
    implicit = accounts.scopes_of(service, None)
    assert not {"webhooks.read", "webhooks.write", "keys.write", "assistant.keys"} & set(implicit)


@pytest.mark.parametrize("service", SERVICES)
def test_the_wildcard_stands_for_every_scope_of_the_service_and_stands_alone(service: Service) -> None:
    assert accounts.scopes_of(service, ["*", "*"]) == ("*",)
    assert accounts.granted(service, ["*"]) == {"*", *accounts.SCOPES[service]}
    with pytest.raises(ValidationFailed) as refused:
        accounts.scopes_of(service, ["*", accounts.SCOPES[service][0]])
    (error,) = refused.value.errors
    assert error.message == 'must be ["*"] alone; leave * out to name single scopes'


def test_a_key_without_the_wildcard_has_the_scopes_that_it_names() -> None:
    assert accounts.granted("platform", ["calls.read"]) == {"calls.read"}


def test_the_scopes_of_all_services_are_those_of_each() -> None:
    each = {scope for service in SERVICES if service != "all" for scope in accounts.SCOPES[service]}
    assert set(accounts.SCOPES["all"]) == each and len(accounts.SCOPES["all"]) == len(each)


@pytest.mark.parametrize("service", SERVICES)
def test_a_key_opens_its_own_service_and_what_is_of_all(service: Service) -> None:
    opened = [of for of in SERVICES if accounts.opens(service, of)]
    assert opened == (SERVICES if service == "all" else [service, "all"])


def principal(service: Service, *scopes: str, sandbox: bool = False) -> Principal:
    return Principal("A1", "K1", service, accounts.granted(service, scopes), sandbox=sandbox)


@pytest.mark.parametrize(
    ("asking", "service", "scopes"),
    [
        (principal("platform", "calls.read", "keys.write"), "platform", ["calls.read"]),
        (principal("platform", "calls.read", "keys.write"), "platform", ["calls.read", "keys.write"]),
        (principal("platform", "*"), "platform", ["*"]),
        (principal("platform", "*"), "platform", ["webhooks.write"]),
        (principal("all", "*"), "all", ["*"]),
        (principal("all", "*"), "messaging", ["*"]),
        (principal("all", "*"), "admin", ["admin"]),
        (principal("all", "tools", "keys.write"), "tools", ["tools", "tool:place_call"]),
    ],
)
def test_a_key_manages_keys_with_no_more_rights_than_its_own(
    asking: Principal, service: Service, scopes: list[str]
) -> None:
    accounts.check_managed(asking, service, "live", scopes)


@pytest.mark.parametrize(
    ("asking", "service", "scopes", "lacking"),
    [
        (
            principal("platform", "calls.read"),
            "platform",
            ["calls.read", "calls.write"],
            "the scope calls.write",
        ),
        (principal("platform", "*"), "messaging", ["webhooks.read"], "the service messaging"),
        (principal("platform", "*"), "all", ["calls.read"], "the service all"),
        (principal("platform", *accounts.SCOPES["platform"]), "platform", ["*"], "the scope *"),
        (principal("all", *accounts.SCOPES["all"]), "platform", ["*"], "the scope *"),
        (principal("all", "calls.read"), "admin", ["admin"], "the scope admin"),
        (principal("platform", "*"), "admin", ["admin"], "the service admin and the scope admin"),
        (principal("all", "calls.read"), "tools", ["tools", "tool:x"], "the scopes tools, tool:x"),
        (principal("tools", "tools", "tool:x"), "tools", ["tools", "tool:y"], "the scope tool:y"),
        (principal("messaging", "keys.write"), "platform", ["keys.write"], "the service platform"),
    ],
)
def test_a_key_with_more_rights_is_refused_and_what_is_lacking_named(
    asking: Principal, service: Service, scopes: list[str], lacking: str
) -> None:
    with pytest.raises(Forbidden) as caught:
        accounts.check_managed(asking, service, "live", scopes)
    assert caught.value.message.endswith(f"lacks {lacking}.")


def test_a_key_of_the_sandbox_manages_no_live_key() -> None:
    asking = principal("assistant", "*", sandbox=True)
    accounts.check_managed(asking, "assistant", "sandbox", ["assistant"])
    with pytest.raises(Forbidden):
        accounts.check_managed(asking, "assistant", "live", ["assistant"])


@pytest.mark.parametrize("service", SERVICES)
@pytest.mark.parametrize("environment", ["live", "sandbox"])
def test_the_assistant_alone_has_a_sandbox(service: Service, environment: Environment) -> None:
    if environment == "live" or service == "assistant":
        accounts.check_environment(service, environment)
        return
    with pytest.raises(ValidationFailed):
        accounts.check_environment(service, environment)


def test_a_webhook_secret_that_was_replaced_signs_until_the_overlap_is_over() -> None:
    first = make_account("A1", webhook_secret="whsec_1")
    assert first.webhook_secrets(NOW) == ("whsec_1",)
    second = accounts.with_new_webhook_secret(first, "whsec_2", 60, NOW)
    assert second.webhook_secrets(NOW) == ("whsec_2", "whsec_1") == second.stream_secrets(NOW)
    assert second.webhook_secrets(NOW + timedelta(seconds=60)) == ("whsec_2",)
    assert second.stream_secrets(NOW + timedelta(seconds=60)) == ("whsec_2", None)
    third = accounts.with_new_webhook_secret(second, "whsec_3", 60, NOW)
    assert third.webhook_secrets(NOW) == ("whsec_3", "whsec_2"), "the first one has ended"
    assert accounts.with_new_webhook_secret(third, "whsec_4", 0, NOW).webhook_secrets(NOW) == ("whsec_4",)
    assert "whsec" not in repr(third)


@pytest.mark.parametrize("overlap_s", [-1, accounts.MAX_OVERLAP_S + 1])
def test_an_overlap_of_secrets_is_bounded(overlap_s: int) -> None:
    with pytest.raises(ValidationFailed):
        accounts.with_new_webhook_secret(make_account(), "whsec_2", overlap_s, NOW)


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
