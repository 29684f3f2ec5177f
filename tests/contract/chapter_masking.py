"""The masking chapter."""

from __future__ import annotations

from typing import Any

from tests.contract.cases import foreign, ok, refused, row, unseen
from tests.contract.givens import (
    ECHO,
    ELSEWHERE,
    NOWHERE,
    RINGS,
    TONE,
    caller_id,
    hang_up,
    has_no_route,
    held_to_its_limit,
    masked_call,
    masked_call_without_answer,
    masked_when,
    no_platform_carrier,
    nothing,
    recorded_masked_call,
    resting_platform_gateways,
    used_key,
)
from tests.contract.stage import Answer, Stage

_CALLS = "/v1/masking/calls"
_BODY = {"party_a": ECHO[3:], "party_b": TONE[3:], "max_duration_sec": 7200}


async def _two_parties(_: Stage) -> Any:
    return {"party_a": ECHO[3:], "party_b": TONE[3:]}


async def _is_connected(stage: Stage, answer: Answer) -> None:
    """Both parties are called, one after the other, and the call is billed from when they were connected."""
    started = answer.data
    assert (started["party_a"], started["party_b"]) == (_BODY["party_a"], _BODY["party_b"])
    assert started["status"] == "initiated" and started["masked_number"].startswith("+91")
    call_sid = started["call_sid"]
    call = await masked_when(stage, call_sid, "in-progress")
    assert (call["id"], call["direction"]) == (call_sid, "click_to_call")
    assert (call["caller_number"], call["target_number"]) == (ECHO, TONE[3:])
    assert call["masked_number"] == started["masked_number"] and call["answered_at"] is not None
    await hang_up(stage, call_sid)
    ended = await masked_when(stage, call_sid, "completed")
    assert ended["ended_at"] is not None and ended["price"] is not None and ended["bill_duration_sec"] > 0


async def _has_a_number_of_its_own(stage: Stage, answer: Answer) -> None:
    assert answer.data["masked_number"] == await caller_id("other")(stage)
    await hang_up(stage, answer.data["call_sid"], by="other")


async def _was_completed(stage: Stage, answer: Answer) -> None:
    assert answer.data["id"] == answer.data["platform_call_sid"] == stage.kept["masked call"]
    assert answer.data["status"] == "completed" and answer.data["hangup_cause"] == "NORMAL_CLEARING"


async def _ringing(stage: Stage) -> str:
    """A masked call whose first party lets it ring."""
    await caller_id()(stage)
    started = await stage.data("POST", _CALLS, body={"party_a": RINGS[3:], "party_b": ECHO[3:]})
    return str(started["call_sid"])


async def _given_up(stage: Stage) -> str:
    """A masked call that was ended over the API."""
    call_sid = await _ringing(stage)
    await stage.ask("DELETE", f"{_CALLS}/{call_sid}")
    await stage.call_when(call_sid, "canceled")
    return call_sid


async def _ends(stage: Stage, answer: Answer) -> None:
    call = await stage.call_when(answer.data["id"], "canceled")
    assert call["hangup_source"] == "api"


async def _opens_without_a_key(stage: Stage, answer: Answer) -> None:
    """The path is signed: it opens by itself, and no longer when anything of it is changed."""
    url = answer.data["url"]
    assert url.startswith("/") and answer.data["call_sid"] == stage.kept["masked call"]
    opened = await stage.ask("GET", url, key="")
    assert opened.status == 200 and opened.raw.startswith(b"RIFF"), opened
    changed = await stage.ask("GET", url[:-2] + ("aa" if url[-2:] != "aa" else "bb"), key="")
    assert changed.status in {403, 404}, changed


async def _is_listed(stage: Stage, answer: Answer) -> None:
    assert stage.kept["masked call"] in [item["id"] for item in answer.data]
    assert answer.meta["total"] >= len(answer.data) and answer.meta["page"] == 1


async def _started_at(stage: Stage) -> str:
    """When the call that is listed began, as it is shown."""
    return str((await stage.data("GET", f"{_CALLS}/{await masked_call(stage)}"))["started_at"])


async def _are_of_the_party(stage: Stage, answer: Answer) -> None:
    assert stage.kept["masked call"] in [item["id"] for item in answer.data]
    assert all(item["status"] == "completed" for item in answer.data)


async def _are_counted(stage: Stage, answer: Answer) -> None:
    listed = await stage.ask("GET", "/v1/masking/call-logs")
    counted = answer.data
    assert counted["total_calls"] == listed.meta["total"] > 0
    assert 0 < counted["answered_calls"] <= counted["total_calls"]
    assert counted["total_minutes"] > 0 and counted["total_cost"] > 0


async def _is_counted(_: Stage, answer: Answer) -> None:
    assert answer.data["total_calls"] >= 1
    assert answer.data["period"]["start"] == answer.data["period"]["end"]


async def _counts_nothing(_: Stage, answer: Answer) -> None:
    assert all(answer.data[name] == 0 for name in ("total_calls", "total_minutes", "total_cost")), answer


async def _is_the_wallet(stage: Stage, answer: Answer) -> None:
    assert answer.data["currency"] == "INR" and answer.data["wallet_balance"] > 0


async def _is_empty(_: Stage, answer: Answer) -> None:
    assert answer.data["wallet_balance"] == 0


def _with(**changes: Any) -> dict[str, Any]:
    return {**_BODY, **changes}


async def _says_how_to_register(_: Stage, answer: Answer) -> None:
    assert "POST /v1/phone-numbers/{id}/carrier" in answer.message


async def _carries_retry_after(_: Stage, answer: Answer) -> None:
    assert 1 <= int(answer.headers["Retry-After"]) <= 60
    assert (answer.headers["X-RateLimit-Limit"], answer.headers["X-RateLimit-Remaining"]) == ("100", "0")


async def _names_a_time(_: Stage, answer: Answer) -> None:
    assert int(answer.headers["Retry-After"]) > 0


CASES = (
    *row(
        f"POST {_CALLS}",
        ok(201, before=(caller_id(),), body=_BODY, then=_is_connected),
        refused(400, "invalid_numbers", body=_with(party_b=_BODY["party_a"])),
        refused(
            400,
            "invalid_numbers",
            name="not of ten digits",
            body=_with(party_a="12345", party_b="+14155550100"),
            fields=("party_a", "party_b"),
        ),
        refused(
            400,
            "validation",
            body={"party_a": "12345", "max_duration_sec": 9, "colour": "red"},
            fields=("party_a", "party_b", "max_duration_sec", "colour"),
        ),
        refused(
            400,
            "validation",
            name="more than two hours",
            body=_with(max_duration_sec=7201),
            fields=("max_duration_sec",),
        ),
        refused(402, "insufficient_balance", before=(caller_id("poor"),), by="poor", body=_BODY),
        refused(
            402,
            "insufficient_balance",
            name="spent",
            before=(caller_id("thrifty"),),
            by="thrifty",
            body=_BODY,
        ),
        refused(403, "number_not_owned", by="numberless", body=_BODY, then=_says_how_to_register),
        refused(
            409,
            "idempotency_conflict",
            body=_BODY,
            headers={"Idempotency-Key": used_key(_CALLS, _two_parties)},
        ),
        refused(
            429, "rate_limited", by="hasty", during=held_to_its_limit, body=_BODY, then=_carries_retry_after
        ),
        # An account without a carrier of its own, by which calls may leave under some of its numbers.
        refused(
            400,
            "validation",
            name="no carrier",
            by="other",
            before=(caller_id("other"),),
            body=_BODY,
            during=no_platform_carrier,
            fields=("party_a", "party_b"),
            then=has_no_route,
        ),
        *(
            refused(
                400,
                "validation",
                name=f"no carrier serves {party}",
                by="other",
                before=(caller_id("other"),),
                body=_with(**{party: ELSEWHERE[3:]}),
                fields=(party,),
                then=has_no_route,
            )
            for party in ("party_a", "party_b")
        ),
        refused(
            503,
            "service_unavailable",
            by="other",
            before=(caller_id("other"),),
            body=_BODY,
            during=resting_platform_gateways,
            then=_names_a_time,
        ),
        unseen(201, before=(caller_id("other"),), body=_BODY, then=_has_a_number_of_its_own),
    ),
    *row(
        f"GET {_CALLS}/{{call_sid}}",
        ok(path={"call_sid": masked_call}, then=_was_completed),
        foreign(404, "not_found", path={"call_sid": masked_call}),
        refused(404, "not_found", path={"call_sid": NOWHERE}),
        refused(404, "not_found", name="no UUID", path={"call_sid": "42"}),
    ),
    *row(
        f"DELETE {_CALLS}/{{call_sid}}",
        ok(path={"call_sid": _ringing}, then=_ends),
        foreign(404, "not_found", path={"call_sid": _ringing}),
        refused(404, "not_found", path={"call_sid": NOWHERE}),
        refused(409, "call_ended", path={"call_sid": _given_up}),
    ),
    *row(
        f"GET {_CALLS}/{{call_sid}}/recording",
        ok(path={"call_sid": recorded_masked_call}, then=_opens_without_a_key),
        foreign(404, "not_found", path={"call_sid": recorded_masked_call}),
        refused(404, "not_found", path={"call_sid": NOWHERE}),
        refused(404, "not_found", name="not recorded", path={"call_sid": masked_call_without_answer}),
    ),
    *row(
        "GET /v1/masking/call-logs",
        ok(before=(masked_call,), query={"per_page": "100"}, then=_is_listed),
        ok(
            name="of one party",
            before=(masked_call,),
            query={"party": TONE.removeprefix("+"), "status": "completed", "per_page": "100"},
            then=_are_of_the_party,
        ),
        ok(
            name="of one time",
            query={"start_date": _started_at, "end_date": _started_at},
            then=_is_listed,
        ),
        refused(
            400,
            "validation",
            query={"status": "gone", "party": "garbage", "session_id": "abc", "page": "0", "colour": "red"},
            fields=("status", "party", "session_id", "page"),
        ),
        refused(
            400,
            "validation",
            name="no moment",
            query={"start_date": "yesterday"},
            fields=("start_date",),
        ),
        unseen(before=(masked_call,), by="buyer", then=nothing),
    ),
    *row(
        "GET /v1/masking/stats",
        ok(before=(masked_call,), then=_are_counted),
        ok(name="of one time", query={"start_date": _started_at, "end_date": _started_at}, then=_is_counted),
        refused(400, "validation", query={"start_date": "31-01-2026"}, fields=("start_date",)),
        refused(
            400,
            "validation",
            name="end before start",
            query={"start_date": "2026-02-01T00:00:00Z", "end_date": "2026-01-31T00:00:00Z"},
            fields=("end_date",),
        ),
        unseen(before=(masked_call,), by="buyer", then=_counts_nothing),
    ),
    *row(
        "GET /v1/masking/billing",
        ok(then=_is_the_wallet),
        unseen(by="poor", then=_is_empty),
    ),
)
