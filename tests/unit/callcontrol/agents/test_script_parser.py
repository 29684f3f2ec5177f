"""Valid scripts of an agent, and the errors of invalid ones."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from callcontrol.agents.script import STOCK_WORDS, fill, sentences, stock_script, usable
from callcontrol.agents.script_parser import read_script
from callcontrol.errors import ValidationFailed
from callcontrol.models.scripts import DIGITS
from tests.support.examples import examples

BYE = {"say": "Goodbye.", "hangup": True}
MENU = {
    "nodes": {
        "start": {
            "say": "Press 1 for sales, or 23 for support.",
            "gather": {"timeout_s": 4, "variable": "choice"},
            "on": {"1": "sales", "23": "bye", "speech": "bye", "none": "start", "failed": "bye"},
        },
        "sales": {"transfer": {"to": "9812345678"}, "on": {"failed": "bye"}},
        "bye": BYE,
    }
}


def wrong(script: object) -> dict[str, str]:
    with pytest.raises(ValidationFailed) as refusal:
        read_script(script)
    return {error.field.removeprefix("script."): error.message for error in refusal.value.errors}


def one(**node: Any) -> dict[str, Any]:
    return {"nodes": {"start": node, "bye": BYE}}


def test_a_script_is_read_with_what_it_leaves_out() -> None:
    script = read_script(MENU)
    start = script.nodes["start"]
    assert (script.start, script.max_turns, script.hears_speech) == ("start", 50, True)
    assert start.listening is not None
    assert (start.listening.num_digits, start.listening.finish_on_key) == (2, "#")
    assert (start.listening.barge_in, start.listening.retries, start.listening.timeout_s) == (True, 1, 4)
    sales = script.nodes["sales"].forwarding
    assert sales is not None and (sales.to, sales.timeout_s) == ("+919812345678", 30)
    assert script.nodes["bye"].say == "Goodbye."


def test_the_first_node_may_have_another_name() -> None:
    assert read_script({"start": "bye", "nodes": {"bye": BYE}, "max_turns": 3}).start == "bye"


def test_a_key_that_leads_somewhere_finishes_nothing() -> None:
    node = read_script(one(gather={}, on={"#": "bye"})).nodes["start"]
    assert node.listening is not None and node.listening.finish_on_key == ""


@pytest.mark.parametrize(
    ("script", "fields"),
    [
        (7, {"nodes", "script"}),
        ({"nodes": {}}, {"nodes"}),
        ({"nodes": {"two words": BYE}}, {"nodes", "start"}),
        ({"nodes": {"bye": BYE}}, {"start"}),
        ({"nodes": {"start": BYE}, "max_turns": 0, "colour": "red"}, {"max_turns", "colour"}),
        ({"nodes": {"start": BYE}, "max_turns": True}, {"max_turns"}),
        ({"nodes": {"start": BYE}, "max_turns": 2.5}, {"max_turns"}),
        ({"nodes": {"start": BYE, "island": BYE}}, {"nodes.island"}),
        ({"nodes": {"start": {"say": "x", "next": "start"}}}, {"nodes.start"}),
        (
            {
                "nodes": {
                    "start": {"next": "b"},
                    "b": {"transfer": {"to": "9812345678"}, "on": {"failed": "start"}},
                }
            },
            {"nodes.start", "nodes.b"},
        ),
        ({"nodes": {"start": {"say": "x"}}}, {"nodes.start"}),
        ({"nodes": {"start": {"next": "bye", "hangup": True}, "bye": BYE}}, {"nodes.start"}),
        ({"nodes": {"start": {"hangup": "yes"}}}, {"nodes.start.hangup"}),
        ({"nodes": {"start": {**BYE, "on": {"1": "start"}}}}, {"nodes.start.on.1"}),
        ({"nodes": {"start": {"next": "there"}}}, {"nodes.start.next"}),
        ({"nodes": {"start": {"next": 7}}}, {"nodes.start.next"}),
        ({"nodes": {"start": {**BYE, "say": "x" * 1001}}}, {"nodes.start.say"}),
        ({"nodes": {"start": {**BYE, "say": "Hello {{name"}}}, {"nodes.start.say"}),
        ({"nodes": {"start": {**BYE, "say": "Hello {{two words}}"}}}, {"nodes.start.say"}),
        (one(gather={}), {"nodes.start.on", "nodes.bye"}),
        (one(gather={}, on={"failed": "bye"}), {"nodes.start.on"}),
        (one(gather={}, on=["bye"]), {"nodes.start.on", "nodes.bye"}),
        (one(gather={}, on={"5x": "bye", "1": "bye"}), {"nodes.start.on.5x"}),
        (one(gather={}, on={"1": "bye", "2": "there", "3": 4}), {"nodes.start.on.2", "nodes.start.on.3"}),
        (one(gather={"num_digits": 1}, on={"12": "bye"}), {"nodes.start.gather.num_digits"}),
        (one(gather={"finish_on_key": "1"}, on={"12": "bye"}), {"nodes.start.gather.finish_on_key"}),
        (one(gather={"finish_on_key": "ab"}, on={"1": "bye"}), {"nodes.start.gather.finish_on_key"}),
        (
            one(gather={"timeout_s": 0, "retries": 9, "barge_in": 1, "variable": "a b"}, on={"1": "bye"}),
            {f"nodes.start.gather.{name}" for name in ("timeout_s", "retries", "barge_in", "variable")},
        ),
        (one(gather={"timeout_s": float("nan")}, on={"1": "bye"}), {"nodes.start.gather.timeout_s"}),
        (one(transfer={"to": "police"}, on={"failed": "bye"}), {"nodes.start.transfer.to"}),
        (one(transfer={"to": "sip:@x"}, on={"failed": "bye"}), {"nodes.start.transfer.to"}),
        (
            one(
                transfer={"to": "9812345678", "caller_id": "sip:a@b", "timeout_s": 300}, on={"failed": "bye"}
            ),
            {"nodes.start.transfer.caller_id", "nodes.start.transfer.timeout_s"},
        ),
        (one(transfer={"to": "9812345678"}, on={"none": "bye"}), {"nodes.start.on.none", "nodes.bye"}),
    ],
)
def test_every_wrong_value_is_named_by_its_path(script: object, fields: set[str]) -> None:
    assert {field or "script" for field in wrong(script)} == fields


def test_a_circle_that_listens_is_allowed() -> None:
    read_script({"nodes": {"start": {"gather": {}, "on": {DIGITS: "again"}}, "again": {"next": "start"}}})


_NAMES = st.sampled_from(
    ["nodes", "start", "say", "gather", "on", "transfer", "to", "next", "hangup", "1", "failed", "timeout_s"]
) | st.text(max_size=4)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=25,
)


@given(JSON)
@settings(max_examples=examples(400), deadline=None)
def test_anything_is_read_or_refused(value: object) -> None:
    try:
        script = read_script(value)
    except ValidationFailed as refusal:
        assert refusal.errors
    else:
        assert script.start in script.nodes


@given(st.dictionaries(st.sampled_from(list(MENU["nodes"])), JSON))
@settings(max_examples=examples(200), deadline=None)
def test_any_node_is_read_or_refused(nodes: dict[str, Any]) -> None:
    try:
        read_script({"nodes": {**MENU["nodes"], **nodes}})
    except ValidationFailed as refusal:
        assert refusal.errors


@pytest.mark.parametrize("language", [*STOCK_WORDS, "ml-IN"])
def test_the_stock_script_can_be_run_in_every_language(language: str) -> None:
    script = stock_script(language)
    assert script.hears_speech and all(
        target in script.nodes for node in script.nodes.values() for target in node.leads_to()
    )


def test_variables_are_put_in() -> None:
    known = usable({"name": "Ravi\tKumar\x00", "empty": "", "sneaky": "{{name}}"})
    assert fill("Hello {{ name }}, {{title|dear customer}}. {{unknown}}{{empty|Nothing}}!", known) == (
        "Hello Ravi Kumar , dear customer. Nothing!"
    )
    assert fill("{{sneaky}}", known) == "{{name}}", "what is put in is not read again"


def test_a_text_is_spoken_in_sentences() -> None:
    assert sentences("One. Two!  क्या? हाँ। ... Three") == ["One.", "Two!", "क्या?", "हाँ।", "Three"]
    long = sentences("word " * 500)
    assert len(long) == 3 and all(len(piece) <= 1000 for piece in long)
    assert sentences("x" * 1500) == ["x" * 1000, "x" * 500] and sentences(" ... ") == []
