"""Commands of an agent, and their bounds."""

from typing import Any

import pytest

from media.streams import (
    AgentClear,
    AgentDtmf,
    AgentHangup,
    AgentHold,
    AgentMark,
    AgentMute,
    AgentRecord,
    AgentTransfer,
    CommandError,
    decode_command,
)


@pytest.mark.parametrize(
    ("message", "command"),
    [
        ({"event": "mark", "mark": {"name": "x"}}, AgentMark("x")),
        ({"event": "mark", "mark": {"name": "n" * 256}}, AgentMark("n" * 256)),
        ({"event": "clear"}, AgentClear()),
        (
            {"event": "dtmf", "dtmf": {"digits": "12w3#", "duration_ms": 200, "gap_ms": 100}},
            AgentDtmf("12w3#", 200, 100),
        ),
        ({"event": "dtmf", "dtmf": {"digit": "5"}}, AgentDtmf("5")),
        ({"event": "sendDTMF", "dtmf": "123#"}, AgentDtmf("123#")),
        ({"event": "hangup"}, AgentHangup(True, "completed", ends_call=True)),
        (
            {"event": "hangup", "hangup": {"drain": False, "reason": "busy"}},
            AgentHangup(False, "busy", ends_call=True),
        ),
        ({"event": "stop", "stop": {"anything": 1}}, AgentHangup()),
        ({"event": "transfer", "transfer": {"to": "+919812345678"}}, AgentTransfer("+919812345678")),
        (
            {
                "event": "transfer",
                "transfer": {
                    "to": "tel:+919812345678",
                    "mode": "refer",
                    "caller_id": "+918047000000",
                    "timeout": 20,
                    "headers": {"X-Reason": "billing"},
                },
            },
            AgentTransfer("tel:+919812345678", "refer", "+918047000000", 20, (("X-Reason", "billing"),)),
        ),
        ({"event": "hold", "hold": {"active": True}}, AgentHold(True)),
        ({"event": "mute", "mute": {"active": False}}, AgentMute(False)),
        ({"event": "record", "record": {"action": "resume"}}, AgentRecord("resume")),
    ],
)
def test_commands_are_read(message: dict[str, Any], command: object) -> None:
    assert decode_command(message) == command


@pytest.mark.parametrize(
    ("event", "body"),
    [
        ("mark", None),
        ("mark", {}),
        ("mark", {"name": ""}),
        ("mark", {"name": 7}),
        ("mark", {"name": "n" * 257}),
        ("mark", {"name": "\ud800"}),
        ("dtmf", "5"),
        ("dtmf", {}),
        ("dtmf", {"digits": ""}),
        ("dtmf", {"digits": "12x"}),
        ("dtmf", {"digits": "5\n"}),
        ("dtmf", {"digits": "5" * 65}),
        ("dtmf", {"digits": "5", "duration_ms": 39}),
        ("dtmf", {"digits": "5", "duration_ms": 5001}),
        ("dtmf", {"digits": "5", "duration_ms": True}),
        ("dtmf", {"digits": "5", "duration_ms": 100.0}),
        ("dtmf", {"digits": "5", "gap_ms": "80"}),
        ("hangup", []),
        ("hangup", {"drain": 1}),
        ("hangup", {"reason": "a\r\nb"}),
        ("hangup", {"reason": "x" * 65}),
        ("transfer", {}),
        ("transfer", {"to": "example.com"}),
        ("transfer", {"to": "sip:a b@c"}),
        ("transfer", {"to": "sip:a@b\r\nX: y"}),
        ("transfer", {"to": "sip:" + "a" * 300}),
        ("transfer", {"to": "+919812345678\n"}),
        ("transfer", {"to": "+919812345678", "mode": "blind"}),
        ("transfer", {"to": "+919812345678", "mode": []}),
        ("transfer", {"to": "+919812345678", "caller_id": 7}),
        ("transfer", {"to": "+919812345678", "timeout": 4}),
        ("transfer", {"to": "+919812345678", "headers": []}),
        ("transfer", {"to": "+919812345678", "headers": {"Via": "x"}}),
        ("transfer", {"to": "+919812345678", "headers": {"X-A": "b\r\nc"}}),
        ("transfer", {"to": "+919812345678", "headers": {"X-A": 1}}),
        ("transfer", {"to": "+919812345678", "headers": {f"X-{n}": "" for n in range(17)}}),
        ("hold", {}),
        ("hold", {"active": "yes"}),
        ("mute", {"active": None}),
        ("record", {"action": "erase"}),
        ("record", {"action": ["start"]}),
    ],
)
def test_wrong_bodies_are_refused_and_say_of_what(event: str, body: object) -> None:
    with pytest.raises(CommandError) as caught:
        decode_command({"event": event, event: body})
    assert caught.value.ref == event
    assert caught.value.code == "invalid_command"
    assert caught.value.counts


@pytest.mark.parametrize("event", ["unheard-of", None, 7, "e" * 100])
def test_unknown_events_are_no_abuse(event: object) -> None:
    with pytest.raises(CommandError) as caught:
        decode_command({"event": event})
    assert caught.value.code == "unknown_event"
    assert not caught.value.counts
    assert caught.value.ref == ("unheard-of" if event == "unheard-of" else None)
