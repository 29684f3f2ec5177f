"""Tools of a speech model that act on its call."""

from __future__ import annotations

import json

import pytest

from callcontrol.calls.model_tools import (
    MAX_RESULT_CHARS,
    NAME_OF_REF,
    TOOLS,
    command_of,
    read_arguments,
    shortened,
)
from callcontrol.tools.schemas import checked_schema
from media.streams import AgentDtmf, AgentHangup, AgentHold, AgentTransfer, CommandError
from media.streams.speech_models import CALL_TOOLS


def test_every_tool_of_the_call_is_described_by_a_schema_that_accounts_could_have() -> None:
    assert tuple(TOOLS) == CALL_TOOLS
    assert set(NAME_OF_REF.values()) < set(TOOLS)
    for tool in TOOLS.values():
        assert checked_schema(tool.parameters, "parameters").errors({"x": 1}, "arguments")


def test_tools_are_commands_of_agents() -> None:
    assert command_of("transfer", {"to": "+919812345678"}) == AgentTransfer("+919812345678")
    assert command_of("hangup", {}) == AgentHangup(drain=True, ends_call=True)
    assert command_of("hold", {"active": True}) == AgentHold(True)
    assert command_of("send_digits", {"digits": "12w#"}) == AgentDtmf("12w#")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("transfer", {}),
        ("transfer", {"to": "the manager"}),
        ("transfer", {"to": ["+919812345678"]}),
        ("hold", {"active": "yes"}),
        ("send_digits", {"digits": "one"}),
        ("send_digits", {"digits": "1" * 65}),
    ],
)
def test_wrong_arguments_are_refused(name: str, arguments: dict[str, object]) -> None:
    with pytest.raises(CommandError):
        command_of(name, arguments)


@pytest.mark.parametrize("text", ["", "null", "{}"])
def test_no_arguments_are_an_empty_object(text: str) -> None:
    assert read_arguments(text) == {}


@pytest.mark.parametrize(
    "text", ["nonsense", "[]", "7", '{"a":' * 40 + "1" + "}" * 40, '{"a":' * 9000 + "1" + "}" * 9000]
)
def test_arguments_that_are_no_plain_object_are_refused(text: str) -> None:
    with pytest.raises(CommandError):
        read_arguments(text)


def test_arguments_may_be_nested() -> None:
    assert read_arguments(json.dumps({"a": [{"b": 1}]})) == {"a": [{"b": 1}]}


def test_long_results_are_cut() -> None:
    assert shortened("x" * MAX_RESULT_CHARS) == "x" * MAX_RESULT_CHARS
    cut = shortened("x" * (MAX_RESULT_CHARS + 1))
    assert len(cut) < MAX_RESULT_CHARS + 100 and cut.endswith("characters)")
