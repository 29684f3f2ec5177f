"""The settings of number masking, which the specification has no endpoint of."""

from __future__ import annotations

from tests.contract.cases import ok, refused, row, unseen
from tests.contract.stage import Answer, Stage

_SETTINGS = "/v1/masking/settings"
_SECRET = "a secret of the contract"
_DEFAULTS = {
    "webhook_url": None,
    "has_webhook_secret": False,
    "webhook_active": True,
    "routing_url": None,
    "record_calls": True,
    "updated_at": None,
}


async def _set(stage: Stage) -> None:
    url = f"{stage.own.account_sid}.example.com"
    body = {"webhook_url": f"https://{url}/events", "webhook_secret": _SECRET, "record_calls": True}
    await stage.data("PATCH", _SETTINGS, body=body)


async def _nothing_set(stage: Stage) -> None:
    await stage.data(
        "PATCH", _SETTINGS, body={"webhook_url": None, "routing_url": None, "record_calls": True}
    )


async def _shows_no_secret(stage: Stage, answer: Answer) -> None:
    assert answer.data["webhook_url"].startswith(f"https://{stage.own.account_sid}")
    assert answer.data["has_webhook_secret"] and _SECRET.encode() not in answer.raw


async def _has_kept_the_rest(stage: Stage, answer: Answer) -> None:
    assert (answer.data["webhook_active"], answer.data["has_webhook_secret"]) == (False, True)
    assert await stage.data("GET", _SETTINGS) == answer.data
    await _nothing_set(stage)


async def _has_the_defaults(stage: Stage, answer: Answer) -> None:
    assert answer.data == _DEFAULTS


async def _is_as_it_was(stage: Stage, answer: Answer) -> None:
    assert answer.data["webhook_url"] is None
    assert (await stage.data("GET", _SETTINGS))["webhook_url"] is not None
    await _nothing_set(stage)


CASES = (
    *row(
        f"GET {_SETTINGS}",
        ok(before=(_set,), then=_shows_no_secret),
        refused(400, "validation", query={"colour": "red"}, fields=("colour",)),
        unseen(before=(_set,), then=_has_the_defaults),
    ),
    *row(
        f"PATCH {_SETTINGS}",
        ok(before=(_set,), body={"webhook_active": False}, then=_has_kept_the_rest),
        refused(
            400,
            "validation",
            body={"webhook_url": "gopher://x", "webhook_secret": "x", "record_calls": 1, "colour": "red"},
            fields=("webhook_url", "webhook_secret", "record_calls", "colour"),
        ),
        refused(
            400,
            "validation",
            name="a secret for no webhook",
            before=(_nothing_set,),
            body={"webhook_secret": _SECRET},
            fields=("webhook_secret",),
        ),
        unseen(before=(_set,), body={"record_calls": True}, then=_is_as_it_was),
    ),
)
