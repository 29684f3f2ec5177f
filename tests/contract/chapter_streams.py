"""Settings that all streams of an account share; the specification has no endpoint for them."""

from __future__ import annotations

from callcontrol.aio.tokens import utc_now
from tests.contract.cases import ok, refused, row, unseen
from tests.contract.stage import Answer, Stage


async def _is_shown(_: Stage, answer: Answer) -> None:
    assert answer.data["default_stream_protocol"] is None


async def _is_the_others(stage: Stage, answer: Answer) -> None:
    own = await stage.server.storage.accounts.get(stage.own.account_sid)
    assert answer.data["stream_secret"] not in own.stream_secrets(utc_now())


async def _is_set(stage: Stage, answer: Answer) -> None:
    assert answer.data["default_stream_protocol"] == "exotel"
    await stage.data("PATCH", "/v1/streams/settings", body={"default_stream_protocol": None})


async def _is_shown_once(stage: Stage, answer: Answer) -> None:
    assert answer.data["stream_secret"].startswith("strsec_")
    shown = await stage.data("GET", "/v1/streams/settings")
    assert shown["has_stream_secret"] and "stream_secret" not in shown
    assert shown["former_secret_until"] == answer.data["former_secret_until"]


CASES = (
    *row(
        "GET /v1/streams/settings",
        ok(then=_is_shown),
        unseen(by="poor", then=_is_shown),
    ),
    *row(
        "PATCH /v1/streams/settings",
        ok(body={"default_stream_protocol": "exotel"}, then=_is_set),
        refused(
            400, "VALIDATION_ERROR", body={"colour": "red"}, fields=("default_stream_protocol", "colour")
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="a dialect nobody speaks",
            body={"default_stream_protocol": "esperanto"},
            fields=("default_stream_protocol",),
        ),
        unseen(body={"default_stream_protocol": None}, then=_is_shown),
    ),
    *row(
        "POST /v1/streams/secret/rotate",
        ok(body={"overlap_sec": 3600}, then=_is_shown_once),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"overlap_sec": -1, "colour": "red"},
            fields=("overlap_sec", "colour"),
        ),
        unseen(body={"overlap_sec": 0}, then=_is_the_others),
    ),
)
