"""Tools: used with an app key, managed with an admin key."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from callcontrol.tools.aio import app_keys, registry
from tests.contract.cases import Given, foreign, ok, refused, row, unseen
from tests.contract.givens import (
    BUSY,
    ECHO,
    ELSEWHERE,
    NOWHERE,
    caller_id,
    disconnected_channel,
    ended_call,
    has_no_route,
    limited,
    place,
    unregistered_caller_id,
    used_key,
)
from tests.contract.stage import Answer, Stage
from tests.support.waiting import time_passes
from tests.support.webhook_stage import Received, statuses

_EXECUTE = "/integrations/v1/tools/{name}/execute"
_TOOLS = "/integrations/admin/tools"
_TOOL = _TOOLS + "/{name}"
_KEYS = "/integrations/admin/keys"
_SCHEMA = {
    "type": "object",
    "properties": {"number": {"type": "string"}},
    "required": ["number"],
    "additionalProperties": False,
}


def tool(path: str = "/tool", by: str = "own", **changes: Any) -> Given:
    """The name of a tool that an account has registered."""

    async def given(stage: Stage) -> str:
        stage.receiver.answers.setdefault("/tool", _answers)
        stage.receiver.answers.setdefault("/tool-broken", statuses(500))
        stage.receiver.answers.setdefault("/tool-slow", _slowly)
        name = f"tool_{len(stage.kept.setdefault('tools', []))}"
        stage.kept["tools"].append(name)
        body = {
            "name": name,
            "description": "Finds an order.",
            "url": stage.receiver.url(path),
            "input_schema": _SCHEMA,
            **changes,
        }
        return str((await stage.data("POST", _TOOLS, by=by, body=body))["name"])

    return given


def _answers(_: Received) -> web.Response:
    return web.json_response({"state": "packed"})


async def _slowly(_: Received) -> web.Response:
    await time_passes(1.5)
    return web.json_response({"state": "late"})


async def _url(stage: Stage) -> str:
    return stage.receiver.url("/tool")


async def _fresh_name(stage: Stage) -> str:
    stage.kept.setdefault("tools", []).append("fresh")
    return f"fresh_{len(stage.kept['tools'])}"


async def disabled_tool(stage: Stage) -> str:
    """The name of a tool that is disabled."""
    name = str(await tool()(stage))
    await stage.data("POST", f"{_TOOLS}/{name}/disable")
    return name


def app_key(by: str = "own") -> Given:
    """The id of an app key of an account."""

    async def given(stage: Stage) -> str:
        return str((await stage.data("POST", _KEYS, by=by, body={"name": "app"}))["id"])

    return given


async def _lists_tools(stage: Stage, answer: Answer) -> None:
    listed = {item["name"]: item for item in answer.data}
    assert {"place_call", "send_otp", "wallet_balance", "hang_up", "call_status"} <= listed.keys()
    assert all(item["input_schema"]["type"] == "object" for item in answer.data)
    assert not set(stage.kept.get("disabled", ())) & listed.keys()


async def _lists_none_of_ours(stage: Stage, answer: Answer) -> None:
    assert {item["kind"] for item in answer.data} == {"builtin"}


async def _placed(stage: Stage, answer: Answer) -> None:
    result = answer.data["result"]
    assert answer.data["tool"] == "place_call" and result["to"] == ECHO
    assert (await stage.call(result["call_sid"]))["call_sid"] == result["call_sid"]


async def _names_the_message(_: Stage, answer: Answer) -> None:
    assert answer.error["details"].keys() == {"message_id", "reason"}


async def _shows_status_500(_: Stage, answer: Answer) -> None:
    assert answer.error["details"] == {"status": 500}


async def _shows_what_was_answered(_: Stage, answer: Answer) -> None:
    details = answer.error["details"]
    assert (details["status"], details["answer"]) == (200, '{"state": "packed"}')
    assert [error["field"] for error in details["errors"]] == ["result.weight"]


async def _was_packed(stage: Stage, answer: Answer) -> None:
    assert answer.data["result"] == {"state": "packed"}
    got = [item for item in stage.receiver.requests if item.path == "/tool"][-1]
    assert got.body == b'{"number": "17"}' and got.headers["webhook-signature"].startswith("v1,")


async def _shows_its_secret(stage: Stage, answer: Answer) -> None:
    made = answer.data
    assert made["secret"].startswith("whsec_") and made["is_enabled"] and made["headers"] == ["X-Shop"]
    shown = await stage.ask("GET", f"{_TOOLS}/{made['name']}")
    assert "secret" not in shown.data and b"t0p" not in shown.raw


async def _is_not_ours(stage: Stage, answer: Answer) -> None:
    assert (await stage.ask("GET", f"{_TOOLS}/{answer.data['name']}")).status == 404


async def _is_changed(_: Stage, answer: Answer) -> None:
    assert (answer.data["timeout_sec"], answer.data["output_schema"]) == (5, None)


async def _is_off(stage: Stage, answer: Answer) -> None:
    assert answer.data["is_enabled"] is False
    listed = await stage.data("GET", "/integrations/v1/tools")
    assert answer.data["name"] not in [item["name"] for item in listed]


async def _is_on(_: Stage, answer: Answer) -> None:
    assert answer.data["is_enabled"] is True


async def _opens_one(stage: Stage, answer: Answer) -> None:
    """The key opens the tool it names, and no other."""
    key = answer.data["key"]
    listed = await stage.data("GET", "/integrations/v1/tools", key=key)
    assert [item["name"] for item in listed] == answer.data["tools"] == ["wallet_balance"]
    path = "/integrations/v1/tools/{}/execute"
    assert (await stage.ask("POST", path.format("wallet_balance"), key=key, body={})).status == 200
    other = await stage.ask("POST", path.format("call_status"), key=key, body={})
    assert (other.status, other.code) == (404, "NOT_FOUND")


async def _keeps_keys_to_itself(_: Stage, answer: Answer) -> None:
    assert answer.data and all("key" not in item for item in answer.data)


async def _shows_none_of_ours(stage: Stage, answer: Answer) -> None:
    own = {item["id"] for item in await stage.data("GET", _KEYS)}
    assert own.isdisjoint(item["id"] for item in answer.data)


async def _is_its_own_key(stage: Stage, answer: Answer) -> None:
    assert answer.data["id"] not in [item["id"] for item in await stage.data("GET", _KEYS)]


async def used(stage: Stage) -> None:
    """A tool was used."""
    await stage.data("POST", _EXECUTE.format(name="wallet_balance"), body={})


async def _counts(_: Stage, answer: Answer) -> None:
    assert answer.data["calls"] >= 1 and not answer.data["truncated"]
    assert "wallet_balance" in [item["tool"] for item in answer.data["rows"]]


async def _counts_nothing(_: Stage, answer: Answer) -> None:
    assert (answer.data["calls"], answer.data["rows"]) == (0, [])


def _call(**arguments: Any) -> dict[str, Any]:
    given = {"from": caller_id(), "to": ECHO, "message": "Hello."}
    return {"arguments": {**given, **arguments}}


async def _ended(stage: Stage) -> str:
    return str(await ended_call(stage))


async def _nothing(_: Stage) -> dict[str, Any]:
    return {}


async def _of_another(stage: Stage) -> str:
    return await place(stage, BUSY, "own")


async def _sent(stage: Stage, answer: Answer) -> None:
    result = answer.data["result"]
    assert result["to"] == ELSEWHERE and result["message_id"] and "text" not in result


async def known(stage: Stage) -> str:
    """The number of a contact."""
    number = stage.fresh_number()
    body = {"phoneNumber": number, "firstName": "Asha", "notes": "Writes back."}
    await stage.data("POST", "/api/v1/contacts", body=body)
    return number


async def _is_known(_: Stage, answer: Answer) -> None:
    (found,) = answer.data["result"]["contacts"]
    assert (found["first_name"], found["notes"], found["opted_out"]) == ("Asha", "Writes back.", False)
    assert answer.data["result"]["total"] == 1


async def _knows_nobody(_: Stage, answer: Answer) -> None:
    assert answer.data["result"] == {"contacts": [], "total": 0}


_REFUSED_AT_ONCE = "+919800100004"
_MESSAGE = {"to": ELSEWHERE, "text": "Your table is ready."}
_PLACE = {"name": "place_call"}
_NUMBER = {"arguments": {"number": "17"}}

CASES = (
    *row(
        "GET /integrations/v1/tools",
        ok(before=(tool(),), then=_lists_tools),
        unseen(before=(tool(),), then=_lists_none_of_ours),
    ),
    *row(
        f"POST {_EXECUTE}",
        ok(path=_PLACE, body=_call(), then=_placed),
        ok(path={"name": tool()}, body=_NUMBER, name="a tool of its own", then=_was_packed),
        ok(path={"name": "send_message"}, body={"arguments": _MESSAGE}, name="a message", then=_sent),
        ok(
            path={"name": "lookup_contact"},
            body={"arguments": {"search": known}},
            name="a contact",
            then=_is_known,
        ),
        unseen(path={"name": "lookup_contact"}, body={"arguments": {"search": known}}, then=_knows_nobody),
        refused(
            400,
            "VALIDATION_ERROR",
            name="a template that is not there",
            path={"name": "send_message"},
            body={"arguments": {"to": ELSEWHERE, "template": "none", "body_parameters": ["1"]}},
            fields=("arguments.template",),
        ),
        refused(
            502,
            "SEND_FAILED",
            path={"name": "send_message"},
            body={"arguments": {**_MESSAGE, "to": _REFUSED_AT_ONCE}},
            then=_names_the_message,
        ),
        refused(
            400,
            "CHANNEL_NOT_CONFIGURED",
            path={"name": "send_message"},
            body={"arguments": _MESSAGE},
            during=disconnected_channel,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            path=_PLACE,
            body={"arguments": {"to": 7, "colour": "red"}},
            fields=("arguments.to", "arguments.colour"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="what only the call knows to be wrong",
            path=_PLACE,
            body=_call(to="+911"),
            fields=("arguments.to",),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="no carrier serves the number",
            path=_PLACE,
            body=_call(to=ELSEWHERE),
            fields=("arguments.to",),
            then=has_no_route,
        ),
        refused(
            402, "INSUFFICIENT_BALANCE", by="poor", path=_PLACE, body=_call(**{"from": caller_id("poor")})
        ),
        refused(
            402,
            "SPEND_LIMIT_EXCEEDED",
            by="thrifty",
            path=_PLACE,
            body=_call(**{"from": caller_id("thrifty")}),
        ),
        refused(403, "NUMBER_NOT_OWNED", path=_PLACE, body=_call(**{"from": unregistered_caller_id})),
        refused(404, "NOT_FOUND", path={"name": "no_such_tool"}, body={}),
        refused(409, "CONFLICT", path={"name": disabled_tool}, body=_NUMBER),
        refused(409, "CALL_ENDED", path={"name": "hang_up"}, body={"arguments": {"call_sid": _ended}}),
        refused(
            409,
            "IDEMPOTENCY_CONFLICT",
            path={"name": "wallet_balance"},
            body={"arguments": {}},
            headers={"Idempotency-Key": used_key(_EXECUTE.format(name="wallet_balance"), _nothing)},
        ),
        refused(
            502, "TOOL_FAILED", path={"name": tool("/tool-broken")}, body=_NUMBER, then=_shows_status_500
        ),
        refused(
            502,
            "TOOL_FAILED",
            name="a result of another form",
            path={"name": tool(output_schema={"type": "object", "required": ["weight"]})},
            body=_NUMBER,
            then=_shows_what_was_answered,
        ),
        refused(504, "TOOL_TIMED_OUT", path={"name": tool("/tool-slow", timeout_sec=1)}, body=_NUMBER),
        foreign(404, "NOT_FOUND", path={"name": tool()}, body=_NUMBER),
        foreign(
            403,
            "FORBIDDEN",
            name="a call of another account",
            path={"name": "call_status"},
            body={"arguments": {"call_sid": _of_another}},
        ),
    ),
    *row(
        f"GET {_TOOLS}",
        ok(before=(disabled_tool,)),
        unseen(before=(tool(),), then=_lists_none_of_ours),
    ),
    *row(
        f"POST {_TOOLS}",
        ok(
            201,
            body={
                "name": _fresh_name,
                "description": "x",
                "url": _url,
                "headers": {"X-Shop": "t0p"},
                "output_schema": _SCHEMA,
            },
            then=_shows_its_secret,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"name": "a", "description": "", "url": 7, "colour": "red"},
            fields=("description", "url", "colour"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="what only the domain knows to be wrong",
            body={
                "name": "place_call",
                "description": "x",
                "url": _url,
                "headers": {"Host": "x"},
                "input_schema": {"type": "object", "properties": {"a": {"$ref": "http://a.example/"}}},
            },
            fields=("name", "headers.Host", "input_schema"),
        ),
        refused(409, "CONFLICT", body={"name": tool(), "description": "x", "url": _url}),
        refused(
            409,
            "CONFLICT",
            name="as many as it may have",
            body={"name": _fresh_name, "description": "x", "url": _url},
            during=limited(registry, "MAX_TOOLS"),
        ),
        unseen(201, body={"name": _fresh_name, "description": "x", "url": _url}, then=_is_not_ours),
    ),
    *row(
        f"GET {_TOOL}",
        ok(path={"name": tool()}),
        foreign(404, "NOT_FOUND", path={"name": tool()}),
        refused(404, "NOT_FOUND", path={"name": "no_such_tool"}),
    ),
    *row(
        f"POST {_TOOL}",
        ok(
            path={"name": tool(output_schema=_SCHEMA)},
            body={"timeout_sec": 5, "output_schema": None},
            then=_is_changed,
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            path={"name": tool()},
            body={"timeout_sec": 31, "url": None},
            fields=("timeout_sec", "url"),
        ),
        refused(409, "CONFLICT", path={"name": "place_call"}, body={"timeout_sec": 5}),
        foreign(404, "NOT_FOUND", path={"name": tool()}, body={"timeout_sec": 5}),
        refused(404, "NOT_FOUND", path={"name": "no_such_tool"}, body={"timeout_sec": 5}),
    ),
    *row(
        f"POST {_TOOL}/enable",
        ok(path={"name": disabled_tool}, then=_is_on),
        foreign(404, "NOT_FOUND", path={"name": tool()}),
        refused(404, "NOT_FOUND", path={"name": "no_such_tool"}),
    ),
    *row(
        f"POST {_TOOL}/disable",
        ok(path={"name": tool()}, then=_is_off),
        foreign(404, "NOT_FOUND", path={"name": tool()}),
        refused(404, "NOT_FOUND", path={"name": "no_such_tool"}),
    ),
    *row(
        f"POST {_TOOL}/delete",
        ok(204, path={"name": tool()}),
        refused(409, "CONFLICT", path={"name": "place_call"}),
        foreign(404, "NOT_FOUND", path={"name": tool()}),
        refused(404, "NOT_FOUND", path={"name": "no_such_tool"}),
    ),
    *row(
        f"GET {_KEYS}",
        ok(before=(app_key(),), then=_keeps_keys_to_itself),
        unseen(before=(app_key(),), then=_shows_none_of_ours),
    ),
    *row(
        f"POST {_KEYS}",
        ok(201, body={"name": "app", "tools": ["wallet_balance"]}, then=_opens_one),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"name": "app", "tools": ["wallet_balance", "no_such_tool"]},
            fields=("tools[1]",),
        ),
        refused(409, "CONFLICT", body={"name": "app"}, during=limited(app_keys, "MAX_APP_KEYS")),
        unseen(201, body={"name": "theirs"}, then=_is_its_own_key),
    ),
    *row(
        f"POST {_KEYS}/{{key_id}}/revoke",
        ok(path={"key_id": app_key()}),
        foreign(404, "NOT_FOUND", path={"key_id": app_key()}),
        refused(404, "NOT_FOUND", path={"key_id": NOWHERE}),
    ),
    *row(
        "GET /integrations/admin/usage",
        ok(before=(used,), then=_counts),
        refused(400, "VALIDATION_ERROR", query={"start_date": "yesterday"}, fields=("start_date",)),
        refused(400, "VALIDATION_ERROR", name="no key", query={"key_id": "vt_1"}, fields=("key_id",)),
        unseen(by="buyer", then=_counts_nothing),
    ),
)
