"""The settings of number masking, which the specification has no endpoint of."""

from __future__ import annotations

from datetime import timedelta

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.models import WebhookEvent
from callcontrol.webhooks.store import publish as fan_out
from tests.contract.cases import foreign, ok, refused, row, unseen
from tests.contract.givens import NOWHERE
from tests.contract.stage import Answer, Stage

_SETTINGS = "/v1/masking/settings"
_WEBHOOK = f"{_SETTINGS}/webhook"
_NOBODY = "https://127.0.0.1:9/masking"
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


async def _received(stage: Stage) -> None:
    """The masking webhook of the account goes to where nothing listens."""
    await stage.data("PATCH", _SETTINGS, body={"webhook_url": _NOBODY, "webhook_active": True})


async def _failed(stage: Stage) -> str:
    """A delivery to the masking webhook that has failed because that was paused; it is not now."""
    await _received(stage)
    sid = stage.own.account_sid
    settings = await stage.server.storage.masking_settings.of(sid)
    event = WebhookEvent(
        new_id(),
        sid,
        "masking.call.initiated",
        _NOBODY,
        b"{}",
        utc_now() + timedelta(hours=1),
        subscription_id=settings.subscription_id,
    )
    await stage.server.storage.writer.commit(lambda connection: fan_out.publish(connection, [event]))
    await stage.data("PATCH", _SETTINGS, body={"webhook_active": False})
    await stage.data("PATCH", _SETTINGS, body={"webhook_active": True})
    return event.delivery_id


async def _paused(stage: Stage) -> str:
    delivery_id = await _failed(stage)
    await stage.data("PATCH", _SETTINGS, body={"webhook_active": False})
    return delivery_id


async def _names_its_switch(_: Stage, answer: Answer) -> None:
    assert answer.message == "The masking webhook is paused; set webhook_active to true, then replay."


async def _did_not_answer(stage: Stage, answer: Answer) -> None:
    assert answer.data["success"] is False and answer.data["status_code"] == 0 and answer.data["error"]


async def _shows_the_failed_one(stage: Stage, answer: Answer) -> None:
    shown = answer.data[0]
    assert (shown["event_type"], shown["status"]) == ("masking.call.initiated", "failed")


async def _replays_one(stage: Stage, answer: Answer) -> None:
    assert answer.data["replayed"] == 1
    await _nothing_set(stage)


async def _replays_some(stage: Stage, answer: Answer) -> None:
    assert answer.data["replayed"] >= 1 and answer.data["truncated"] is False
    await _nothing_set(stage)


CASES = (
    *row(
        f"POST {_WEBHOOK}/test",
        ok(before=(_received,), then=_did_not_answer),
        refused(404, "not_found", before=(_nothing_set,)),
        foreign(404, "not_found", before=(_received,)),
    ),
    *row(
        f"GET {_WEBHOOK}/deliveries",
        ok(before=(_failed,), then=_shows_the_failed_one),
        refused(400, "validation", query={"limit": "201"}, fields=("limit",)),
        refused(404, "not_found", before=(_nothing_set,)),
        foreign(404, "not_found", before=(_failed,)),
    ),
    *row(
        f"POST {_WEBHOOK}/deliveries/{{delivery_id}}/replay",
        ok(path={"delivery_id": _failed}, then=_replays_one),
        refused(404, "not_found", before=(_received,), path={"delivery_id": NOWHERE}),
        refused(409, "conflict", path={"delivery_id": _paused}, then=_names_its_switch),
        foreign(404, "not_found", path={"delivery_id": _failed}),
    ),
    *row(
        f"POST {_WEBHOOK}/deliveries/replay",
        ok(before=(_failed,), body={}, then=_replays_some),
        refused(400, "validation", body={"status": "delivered", "since": "x"}, fields=("status", "since")),
        refused(404, "not_found", before=(_nothing_set,), body={}),
        refused(409, "conflict", before=(_paused,), body={}, then=_names_its_switch),
        foreign(404, "not_found", before=(_failed,), body={}),
    ),
    *row(
        f"GET {_SETTINGS}",
        ok(before=(_set,), then=_shows_no_secret),
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
