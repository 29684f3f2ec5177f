"""Messages that parties left on calls; all of it beyond the specification's rows."""

from __future__ import annotations

from tests.contract.cases import Case, foreign, ok, refused, row
from tests.contract.givens import NOWHERE, ended_call, message, messaged_call
from tests.contract.stage import Answer, Stage

_OF_CALL = "/v1/calls/{callSid}/messages"


async def _can_be_heard(stage: Stage, answer: Answer) -> None:
    """Each by its link without a key, and by its path with one."""
    assert answer.data["messages"]
    for left in answer.data["messages"]:
        assert left["duration_ms"] == 500
        assert left["url"].startswith(f"{left['recording_url']}?expires=")
        opened = await stage.ask("GET", left["url"], key="")
        assert (opened.status, opened.raw[:4]) == (200, b"RIFF")
        assert (await stage.ask("GET", left["recording_url"])).status == 200
        assert (await stage.ask("GET", left["recording_url"], by="other")).status == 403


async def _is_gone(stage: Stage, answer: Answer) -> None:
    left = await stage.data("GET", f"/v1/calls/{stage.kept['messaged call']}/messages")
    assert stage.kept["message"] not in [item["message_sid"] for item in left["messages"]]
    gone = await stage.ask("GET", f"/recordings/{stage.kept['message']}.wav")
    assert gone.status == 404


CASES: tuple[Case, ...] = (
    *row(
        f"GET {_OF_CALL}",
        ok(before=(message,), path={"callSid": messaged_call}, then=_can_be_heard),
        foreign(403, "FORBIDDEN", path={"callSid": ended_call}),
        refused(404, "NOT_FOUND", path={"callSid": NOWHERE}),
    ),
    *row(
        f"DELETE {_OF_CALL}/{{messageSid}}",
        ok(204, path={"messageSid": message, "callSid": messaged_call}, then=_is_gone),
        foreign(403, "FORBIDDEN", path={"messageSid": message, "callSid": messaged_call}),
        refused(404, "NOT_FOUND", path={"callSid": ended_call, "messageSid": NOWHERE}),
        refused(
            404, "NOT_FOUND", name="of another call", path={"callSid": ended_call, "messageSid": message}
        ),
        refused(404, "NOT_FOUND", name="no call", path={"callSid": NOWHERE, "messageSid": NOWHERE}),
    ),
)
