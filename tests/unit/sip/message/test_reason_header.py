"""Values read from Reason header fields (RFC 3326)."""

import pytest

from sip import Ended, read_reasons
from sip.events import Cancelled
from sip.message.reason_header import Reason
from tests.support.sip_agents import SDP
from tests.support.sip_stage import RAW, Stage


@pytest.mark.parametrize(
    ("value", "reasons"),
    [
        ('Q.850;cause=17;text="User busy"', [Reason("Q.850", 17, "User busy")]),
        (
            'SIP ;cause=200 ;text="Call completed elsewhere", Q.850;cause=26',
            [Reason("SIP", 200, "Call completed elsewhere"), Reason("Q.850", 26)],
        ),
        ('q.850;CAUSE=16;TEXT="a, b; c\\"d"', [Reason("q.850", 16, 'a, b; c"d')]),
        ("Q.850;cause=16;cause=17", [Reason("Q.850", 16)]),
        ("Preemption, Q.850;cause=8", [Reason("Q.850", 8)]),
        ("Q.850;cause=8;text=unquoted;location=U", [Reason("Q.850", 8, "unquoted")]),
        (",,;;,Q.850;cause=;,Q.850;cause=x;,Q.850;cause=99999,Q.850;cause=-1,;cause=3", []),
        ('Q.850;cause=16;text="never closed', [Reason("Q.850", 16, '"never closed')]),
        ("", []),
        (None, []),
        ("Q.850;cause=16" + " " * 2000, []),
    ],
)
def test_reading(value: str | None, reasons: list[Reason]) -> None:
    assert read_reasons(value) == reasons


def test_no_more_than_eight_are_read() -> None:
    assert len(read_reasons(", ".join(["Q.850;cause=16"] * 20))) == 8


async def test_all_reasons_of_a_bye_are_told_as_one(stage: Stage) -> None:
    raw = stage.raw(stage.alice)
    alice = stage.alice.call(RAW)
    stage.advance()
    invite = raw.requests("INVITE")[0]
    raw.respond(invite, 200, body=SDP)
    stage.advance()
    headers = invite.headers
    bye = raw.request("BYE", branch="bye", To=headers.get("From") or "", Call_ID=invite.call_id)
    bye.headers.set("From", f"{headers.get('To')};tag=peer")
    bye.headers.add("Reason", "SIP;cause=486")
    bye.headers.add("Reason", "Q.850;cause=17")
    raw.send(bye)
    stage.advance()
    assert alice.last(Ended) == Ended("remote", "bye", "SIP;cause=486, Q.850;cause=17")
    stage.finish()


async def test_the_reason_of_a_cancel(stage: Stage) -> None:
    raw = stage.raw()
    stage.bob.answer = lambda session: session.progress(180)
    raw.send(raw.request("INVITE", branch="a", body=SDP))
    stage.advance()
    value = 'SIP;cause=200;text="Call completed elsewhere"'
    raw.send(raw.request("CANCEL", branch="a", Reason=value))
    stage.advance()
    assert stage.bob.inbound[0].last(Cancelled).reason_header == value
    raw.send(raw.request("ACK", branch="a"))
    stage.finish()
