"""Voice agents, which numbers and calls name."""

from __future__ import annotations

from callcontrol.agents.aio import service as agent_service
from tests.contract.cases import foreign, ok, refused, row, unseen
from tests.contract.givens import NOWHERE, agent_url, bound_agent, limited, nothing, voice_agent
from tests.contract.stage import Answer, Stage

_AGENTS = "/api/v1/agents"
_BODY = {"name": "Front desk", "language": "hi-IN", "stream_url": agent_url, "sample_rate": 16000}
_ONE = {"agent_id": voice_agent}


_SCRIPT = {
    "nodes": {
        "start": {"say": "Press 1.", "gather": {"num_digits": 1}, "on": {"1": "bye", "failed": "bye"}},
        "bye": {"say": "Goodbye {{name|then}}.", "hangup": True},
    }
}


async def _has_a_script(_: Stage, answer: Answer) -> None:
    assert answer.data["script"] == _SCRIPT and answer.data["stream_url"] is None


async def _streams(stage: Stage, answer: Answer) -> None:
    assert (answer.data["stream_url"], answer.data["sample_rate"]) == (stage.agent.url, 16000)


async def _is_listed(_: Stage, answer: Answer) -> None:
    assert answer.meta["total"] >= len(answer.data) >= 1 and answer.meta["per_page"] == 20


async def _is_renamed(_: Stage, answer: Answer) -> None:
    assert (answer.data["name"], answer.data["language"]) == ("Reception", "hi-IN")


async def _counts_numbers(_: Stage, answer: Answer) -> None:
    assert answer.error["details"]["numbers"] == 1


async def _belongs_to_the_other(stage: Stage, answer: Answer) -> None:
    refusal = await stage.ask("GET", f"{_AGENTS}/{answer.data['id']}")
    assert (refusal.status, refusal.code) == (403, "FORBIDDEN")


CASES = (
    *row(
        f"POST {_AGENTS}",
        ok(201, body=_BODY, then=_streams),
        refused(
            400,
            "VALIDATION_ERROR",
            body={"language": 7, "sample_rate": "fast", "colour": "red"},
            fields=("name", "language", "sample_rate", "colour"),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="what no stream can be",
            body={"name": "x", "stream_url": "https://agent.example", "sample_rate": 11025},
            fields=("stream_url", "sample_rate"),
        ),
        ok(201, body={"name": "Reception", "greeting": "Namaste.", "script": _SCRIPT}, then=_has_a_script),
        refused(
            400,
            "VALIDATION_ERROR",
            name="a script that leads nowhere",
            body={"name": "x", "script": {"nodes": {"start": {"gather": {}, "on": {"1": "sales"}}}}},
            fields=("script.nodes.start.on.1",),
        ),
        refused(
            400,
            "VALIDATION_ERROR",
            name="a script that is none",
            body={"name": "x", "script": {"nodes": {"start": {"say": 7, "colour": "red"}}}},
            fields=("script.nodes.start.say", "script.nodes.start.colour"),
        ),
        refused(409, "CONFLICT", body=_BODY, during=limited(agent_service, "_MAX_AGENTS")),
        unseen(201, body=_BODY, then=_belongs_to_the_other),
    ),
    *row(
        f"GET {_AGENTS}",
        ok(before=(voice_agent,), then=_is_listed),
        refused(400, "VALIDATION_ERROR", query={"page": "0"}, fields=("page",)),
        unseen(by="poor", before=(voice_agent,), then=nothing),
    ),
    *row(
        f"GET {_AGENTS}/{{agent_id}}",
        ok(path=_ONE, then=_streams),
        foreign(403, "FORBIDDEN", path=_ONE),
        refused(404, "NOT_FOUND", path={"agent_id": NOWHERE}),
    ),
    *row(
        f"PATCH {_AGENTS}/{{agent_id}}",
        ok(path=_ONE, body={"name": "Reception"}, then=_is_renamed),
        refused(
            400, "VALIDATION_ERROR", path=_ONE, body={"name": "", "colour": "red"}, fields=("name", "colour")
        ),
        foreign(403, "FORBIDDEN", path=_ONE, body={"name": "Reception"}),
        refused(404, "NOT_FOUND", path={"agent_id": NOWHERE}, body={"name": "Reception"}),
        ok(path={"agent_id": bound_agent}, body={"stream_url": None, "script": _SCRIPT}, then=_has_a_script),
        refused(
            400,
            "VALIDATION_ERROR",
            name="a script for a server that speaks itself",
            path=_ONE,
            body={"script": _SCRIPT},
            fields=("script",),
        ),
    ),
    *row(
        f"DELETE {_AGENTS}/{{agent_id}}",
        ok(204, path=_ONE),
        foreign(403, "FORBIDDEN", path=_ONE),
        refused(404, "NOT_FOUND", path={"agent_id": NOWHERE}),
        refused(409, "CONFLICT", path={"agent_id": bound_agent}, then=_counts_numbers),
    ),
)
