"""SIP traces of calls whose Call-ID is used again: each call has its own messages, and no other one's."""

from __future__ import annotations

from callcontrol.calls.aio.sip_trace import TraceBook
from callcontrol.clock import WallClock
from sip.aio import Listen
from tests.support.domain import NOW

OLD, NEW = ("192.0.2.1", 5060), ("192.0.2.2", 5060)
LISTEN = Listen("udp", "127.0.0.1")


class Wire:
    """Messages of one Call-ID, each with a text by which it is known again."""

    def __init__(self) -> None:
        self.book = TraceBook(WallClock(0.0, NOW), max_calls=2)
        self._at_s = 0.0

    def note(
        self,
        line: str,
        text: str,
        *,
        tag: str,
        to: str = "",
        branch: str = "",
        extra: str = "",
        remote: tuple[str, int] = OLD,
        ours: bool = False,
    ) -> None:
        self._at_s += 1.0
        to_tag = f";tag={to}" if to else ""
        message = (
            f"{line}\r\nv: SIP/2.0/UDP x;branch={branch or line}\r\n{extra}"
            f'From: "a;tag=none" <sip:a@x;tag=uri>\r\n ;tag={tag}\r\nt:<sip:b@x>{to_tag}\r\n\r\n{text}'
        )
        direction = "out" if line.startswith("SIP/2.0") != ours else "in"
        self.book.note(self._at_s, direction, LISTEN, remote, message.encode(), "x")

    def invite(
        self,
        text: str,
        tag: str,
        branch: str,
        *,
        remote: tuple[str, int] = OLD,
        ours: bool = False,
        is_proved: bool = False,
    ) -> None:
        extra = "Authorization: Digest a\r\n" if is_proved else ""
        line = "INVITE sip:b@x SIP/2.0"
        self.note(line, text, tag=tag, branch=branch, extra=extra, remote=remote, ours=ours)

    def texts(self, call_sid: str) -> list[str]:
        return [entry.message.partition("\r\n\r\n")[2] for entry in self.book.of(call_sid)]


def talk(wire: Wire, name: str, tag: str, remote: tuple[str, int]) -> None:
    """Call, answer, ask and hang up."""
    wire.invite(f"{name} invite", tag, f"branch-{name}", remote=remote)
    wire.book.claim(name, "a", "x", tag)
    wire.note(
        "SIP/2.0 200 OK", f"{name} ok", tag=tag, to=f"to-{name}", branch=f"branch-{name}", remote=remote
    )
    wire.note("INVITE sip:b@x SIP/2.0", f"{name} hold", tag=tag, to=f"to-{name}", remote=remote)
    wire.note("BYE sip:b@x SIP/2.0", f"{name} bye", tag=f"to-{name}", to=tag, remote=remote, ours=True)


def test_a_call_with_the_call_id_of_another_has_its_own_messages_alone() -> None:
    wire = Wire()
    talk(wire, "old", "t1", OLD)
    talk(wire, "new", "t2", NEW)
    wire.note("BYE sip:b@x SIP/2.0", "old late", tag="t1", to="to-old")
    assert wire.texts("old") == ["old invite", "old ok", "old hold", "old bye", "old late"]
    assert wire.texts("new") == ["new invite", "new ok", "new hold", "new bye"]
    assert wire.book.call_of("x") is None, "log lines of the Call-ID are of neither"


def test_the_same_tag_as_well_shows_no_message_of_the_other_call() -> None:
    wire = Wire()
    talk(wire, "old", "t1", OLD)
    talk(wire, "new", "t1", NEW)
    assert wire.texts("old") == ["old invite", "old ok", "old hold", "old bye"]
    # What could be of either is dropped.
    assert wire.texts("new") == ["new invite", "new ok"]


def test_a_copied_branch_from_elsewhere_is_another_call() -> None:
    wire = Wire()
    talk(wire, "old", "t1", OLD)
    wire.invite("new invite", "t1", "branch-old", remote=NEW)
    wire.book.claim("new", "a", "x", "t1")
    assert "new invite" not in wire.texts("old")
    assert wire.texts("new") == ["new invite"]


def test_a_refused_invite_is_not_shown_to_the_next_call_of_its_call_id() -> None:
    wire = Wire()
    wire.invite("refused", "t1", "b1")
    wire.note("SIP/2.0 403 Forbidden", "refusal", tag="t1", to="r", branch="b1")
    wire.invite("new invite", "t1", "b2", remote=OLD)
    wire.book.claim("new", "a", "x", "t1")
    assert wire.texts("new") == ["new invite"]
    # One that was displaced before it was claimed takes no other's place.
    wire.invite("displaced", "t3", "b3")
    wire.invite("displaces", "t4", "b4")
    wire.book.claim("third", "a", "x", "t3")
    assert wire.texts("third") == []


def test_a_challenge_and_retransmissions_are_of_the_call() -> None:
    wire = Wire()
    wire.invite("first", "t1", "b1")
    wire.note("SIP/2.0 401 Unauthorized", "challenge", tag="t1", to="r", branch="b1")
    wire.invite("proved", "t1", "b2", is_proved=True)
    wire.book.claim("call", "a", "x", "t1")
    wire.invite("again", "t1", "b2", is_proved=True)
    wire.note("SIP/2.0 180 Ringing", "ringing", tag="t1", to="l", branch="b2")
    assert wire.texts("call") == ["first", "challenge", "proved", "again", "ringing"]


def test_a_merged_request_keeps_the_trace_of_its_call() -> None:
    wire = Wire()
    wire.invite("invite", "t1", "b1")
    wire.book.claim("call", "a", "x", "t1")
    wire.invite("other way", "t1", "b2", remote=NEW)
    wire.note("SIP/2.0 482 Loop Detected", "merged", tag="t1", to="m", branch="b2", remote=NEW)
    wire.note("SIP/2.0 200 OK", "ok", tag="t1", to="l", branch="b1")
    wire.note("BYE sip:b@x SIP/2.0", "bye", tag="t1", to="l")
    assert wire.texts("call") == ["invite", "ok", "bye"]


def test_messages_of_a_call_that_is_no_longer_kept_are_not_taken_for_another_one() -> None:
    wire = Wire()
    talk(wire, "old", "t1", OLD)
    for number in range(2):
        wire.book.claim(f"later-{number}", "a", f"y{number}", "t")
    assert wire.texts("old") == []
    talk(wire, "new", "t2", NEW)
    wire.note("BYE sip:b@x SIP/2.0", "old late", tag="t1", to="to-old")
    assert wire.texts("new") == ["new invite", "new ok", "new hold", "new bye"]
    assert wire.book.size_bytes > 0
    for number in range(2, 4):
        wire.book.claim(f"later-{number}", "a", f"y{number}", "t")
    assert wire.book.size_bytes == 0, "all of it is given back"


def test_our_own_invite_is_sent_again_with_another_branch() -> None:
    wire = Wire()
    wire.book.claim("call", "b", "x")
    wire.invite("invite", "t1", "b1", ours=True)
    wire.invite("redirected", "t1", "b2", ours=True)
    wire.note("SIP/2.0 200 OK", "ok", tag="t1", to="l", branch="b2", ours=True)
    assert wire.texts("call") == ["invite", "redirected", "ok"]
