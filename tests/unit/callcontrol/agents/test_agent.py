"""Voice agents: what makes sense of one, and what its calls do."""

from datetime import timedelta
from typing import Any

import pytest

from callcontrol.agents.agent import agent_step, changed_agent, new_agent, with_agent
from callcontrol.agents.steps.converse import Converse
from callcontrol.calls.plan import Stream
from callcontrol.calls.requests import CreateCall
from callcontrol.directory.directory import Changes, Directory
from callcontrol.errors import ValidationFailed
from callcontrol.models import Binding, VoiceAgent
from callcontrol.numbers.aio.binding_checks import agent_errors
from tests.support.domain import ACCOUNT_SID, CALLEE, NOW, OTHER_SID, OWN_NUMBER

AGENT_ID = "0a6c4d0e-5b0e-4f7e-9a35-0f6d6f7f2a10"
WORKSPACE = "0b6c4d0e-5b0e-4f7e-9a35-0f6d6f7f2a10"
URL = "wss://agents.example/asha"
AUTH = {"type": "bearer", "token": "t0p-s3cret"}
SCRIPT = {"nodes": {"start": {"say": "Hello {{name|there}}.", "hangup": True}}}
LATER = NOW + timedelta(hours=1)


def make(**values: Any) -> VoiceAgent:
    return new_agent(AGENT_ID, ACCOUNT_SID, {"name": "Asha", **values}, NOW)


def wrong(**values: Any) -> set[str]:
    with pytest.raises(ValidationFailed) as refusal:
        make(**values)
    return {error.field for error in refusal.value.errors}


def test_an_agent_needs_a_name_and_nothing_else() -> None:
    agent = make()
    assert (agent.name, agent.language, agent.stream) == ("Asha", "en-IN", None)
    step = agent_step(agent)
    assert isinstance(step, Converse) and step.variables == {"agent_name": "Asha"}


def test_a_stream_is_filled_in_and_keeps_its_secret_to_itself() -> None:
    agent = make(stream_url=URL, stream_auth=AUTH, language="hi-IN")
    assert agent.stream is not None
    assert (agent.stream.sample_rate, agent.stream.stream_protocol, agent.stream.encoding) == (
        8000,
        "exotel",
        "l16",
    )
    assert "t0p-s3cret" not in repr(agent)


@pytest.mark.parametrize(
    ("values", "fields"),
    [
        ({"name": " "}, {"name"}),
        (
            {"name": "x" * 129, "greeting": "x" * 2001, "instructions": 7},
            {"name", "greeting", "instructions"},
        ),
        ({"language": "Hindi", "workspace_id": "mine"}, {"language", "workspace_id"}),
        ({"stream_url": "https://x.example/", "voice": "x" * 129}, {"stream_url", "voice"}),
        ({"stream_url": URL, "sample_rate": 44_100}, {"sample_rate"}),
        ({"sample_rate": 8000, "stream_auth": AUTH}, {"sample_rate", "stream_auth"}),
        ({"colour": "red"}, {"colour"}),
        ({"language": "fr-FR"}, {"language"}),
        ({"greeting": "Hello {{name"}, {"greeting"}),
        ({"script": {"nodes": {"start": {"say": "Hi", "next": "there"}}}}, {"script.nodes.start.next"}),
        ({"script": SCRIPT, "stream_url": URL}, {"script"}),
        (
            {"language": "fr", "greeting": "{{", "workspace_id": "mine"},
            {"language", "greeting", "workspace_id"},
        ),
        ({"script": SCRIPT, "stream_url": URL, "workspace_id": "mine"}, {"script", "workspace_id"}),
    ],
)
def test_every_wrong_field_is_named(values: dict[str, Any], fields: set[str]) -> None:
    assert wrong(**values) == fields


def test_what_is_left_out_of_a_change_stays() -> None:
    agent = make(stream_url=URL, sample_rate=16000, greeting="Namaste", language="hi-IN")
    changed = changed_agent(agent, {"name": "Ravi", "greeting": None, "language": None}, LATER)
    assert (changed.name, changed.greeting, changed.language) == ("Ravi", None, "en-IN")
    assert (changed.stream, changed.created_at, changed.updated_at) == (agent.stream, NOW, LATER)
    assert changed_agent(agent, {}, LATER) == agent
    slower = changed_agent(agent, {"sample_rate": 8000}, LATER)
    assert slower.stream is not None and (slower.stream.stream_url, slower.stream.sample_rate) == (URL, 8000)
    assert changed_agent(agent, {"stream_url": None}, LATER).stream is None


def test_the_calls_of_an_agent_stream_to_its_server() -> None:
    step = agent_step(make(stream_url=URL, custom_parameters={"desk": "1"}), {"order": "42"})
    assert isinstance(step, Stream) and step.choice.url == URL
    assert dict(step.choice.custom_parameters) == {"agent_id": AGENT_ID, "desk": "1", "order": "42"}


def test_the_calls_of_an_agent_without_a_server_follow_its_script() -> None:
    agent = make(script=SCRIPT, greeting="Namaste.", language="hi-IN")
    step = agent_step(agent, {"name": "Ravi\n" + "x" * 600})
    assert isinstance(step, Converse)
    assert (step.agent_id, step.language, step.greeting) == (AGENT_ID, "hi-IN", "Namaste.")
    assert step.script.nodes["start"].say == "Hello {{name|there}}."
    assert step.variables["name"].startswith("Ravi x") and len(step.variables["name"]) == 512
    stock = agent_step(changed_agent(agent, {"script": None}, LATER))
    assert isinstance(stock, Converse) and set(stock.script.nodes) == {"start", "noted", "goodbye"}


def test_a_placed_call_adds_its_own_parameters() -> None:
    agent = make(stream_url=URL, custom_parameters={"desk": "1"}, stream_auth=AUTH)
    request = CreateCall(
        from_=OWN_NUMBER,
        to=CALLEE,
        agent_id=AGENT_ID,
        stream_fields={"custom_parameters": {"desk": "2", "order": "42"}},
    )
    asked = with_agent(request, agent)
    assert asked.agent_id is None and asked.stream is not None
    assert asked.stream.url == URL
    parameters = {"agent_id": AGENT_ID, "desk": "2", "order": "42"}
    assert asked.stream.fields["custom_parameters"] == parameters
    assert asked.stream.fields["stream_auth"] == AUTH
    talking = with_agent(request, make())
    assert talking.agent_id is None and isinstance(talking.step, Converse)
    assert talking.step.variables["order"] == "42"


@pytest.mark.parametrize(
    ("agent", "fields"),
    [
        (None, ["agent_id"]),
        (new_agent(AGENT_ID, OTHER_SID, {"name": "x", "stream_url": URL}, NOW), ["agent_id"]),
        (make(), []),
        (make(workspace_id=AGENT_ID), ["workspace_id"]),
        (make(stream_url=URL), []),
        (make(stream_url=URL, workspace_id=WORKSPACE), []),
    ],
)
def test_a_binding_must_name_an_agent_that_can_be_reached(
    agent: VoiceAgent | None, fields: list[str]
) -> None:
    directory = Directory()
    directory.apply(Changes(1, agents=[(agent, True)] if agent is not None else []))
    binding = Binding("voice_agent", agent_id=AGENT_ID, workspace_id=WORKSPACE)
    found = directory.agent(AGENT_ID)
    owner = None if found is None else (found.account_sid, found.workspace_id)
    assert [error.field for error in agent_errors(ACCOUNT_SID, binding, owner)] == fields


def test_the_directory_forgets_an_agent_that_is_deleted() -> None:
    directory = Directory()
    directory.apply(Changes(1, agents=[(make(), True)]))
    assert directory.agent(AGENT_ID) == make()
    directory.apply(Changes(2, agents=[(make(), False)]))
    assert directory.agent(AGENT_ID) is None
