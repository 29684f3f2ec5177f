"""The signalling ladder: labels of messages, and where the arrows point."""

from __future__ import annotations

import pytest

from api.routes.ladder import LadderMessage, draw_ladder, label_of


def message(at_s: float, outgoing: bool, lane: str, label: str) -> LadderMessage:
    return LadderMessage(at_s, outgoing, lane, f"party {lane}", label)


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("INVITE sip:a@b SIP/2.0\r\nContent-Type: application/sdp\r\n\r\nv=0", "INVITE [SDP]"),
        ("INVITE sip:a@b SIP/2.0\r\nc: application/sdp\r\n\r\nv=0", "INVITE [SDP]"),
        ("SIP/2.0 180 Ringing\r\nCSeq: 1 INVITE\r\n\r\n", "180 Ringing"),
        ("SIP/2.0 200 OK\r\nCSeq: 2 BYE\r\n\r\n", "200 OK (BYE)"),
        ("SIP/2.0 481 Call/Transaction Does Not Exist\r\n\r\n", "481 Call/Transaction Does Not Exist"),
        ("BYE sip:a@b SIP/2.0\r\n\r\n", "BYE"),
        ("", ""),
    ],
)
def test_label(text: str, label: str) -> None:
    assert label_of(text) == label


def test_one_leg_stands_to_the_right_of_the_server() -> None:
    drawn = draw_ladder([message(0, True, "a", "INVITE"), message(0.25, False, "a", "200 OK")]).splitlines()
    assert drawn[0].split() == ["trunkline", "party", "a"]
    assert drawn[2].startswith("+0.000 s") and drawn[2].rstrip().endswith("->|") and " INVITE " in drawn[2]
    assert drawn[3].startswith("+0.250 s") and "|<-" in drawn[3] and drawn[3].endswith("|")


def test_the_caller_stands_to_the_left_and_the_callee_to_the_right() -> None:
    drawn = draw_ladder([message(0, False, "a", "INVITE"), message(0.1, True, "b", "INVITE")]).splitlines()
    assert drawn[0].split() == ["party", "a", "trunkline", "party", "b"]
    assert drawn[2].index(">") < drawn[3].index(">")
    assert len(drawn[2]) == len(drawn[3])


def test_an_arrow_to_a_far_party_passes_over_the_one_between() -> None:
    drawn = draw_ladder([message(0, True, "a", "INVITE"), message(1, True, "b", "INVITE")]).splitlines()
    assert drawn[3].count("|") == 2 and drawn[3].endswith(">|")


def test_a_long_label_is_cut_and_nothing_is_an_empty_ladder() -> None:
    drawn = draw_ladder([message(0, True, "a", "X" * 200)]).splitlines()
    assert len({len(line) for line in drawn[1:]}) == 1
    assert draw_ladder([]).split() == ["trunkline", "|"]


def test_what_a_terminal_would_obey_is_not_drawn() -> None:
    assert label_of("SIP/2.0 486 Busy\x1b[2J\u2028\r\nCSeq: 1 INVITE\r\n\r\n") == "486 Busy?[2J?"
