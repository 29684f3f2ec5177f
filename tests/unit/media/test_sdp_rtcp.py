"""Address of RTCP by SDP (RFC 5761, RFC 3605)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from media.sdp import LocalMedia, SessionDescription, accept_answer, answer_offer, make_offer

LOCAL = LocalMedia("192.0.2.10", 20_000, codecs=("PCMU",), session_id=99)


def described(*lines: str, port: int = 4000) -> SessionDescription:
    text = ["v=0", "o=- 5 6 IN IP4 203.0.113.7", "s=-", "c=IN IP4 203.0.113.7", "t=0 0"]
    return SessionDescription.parse("\r\n".join([*text, f"m=audio {port} RTP/AVP 0", *lines]).encode())


def rtcp_lines(session: SessionDescription | None) -> list[str]:
    assert session is not None
    return [str(item) for item in session.media[0].attributes if item.name.startswith("rtcp")]


def test_an_offer_shares_the_port_and_names_another_for_who_does_not() -> None:
    assert rtcp_lines(make_offer(LOCAL)) == ["rtcp:20001", "rtcp-mux"]
    assert rtcp_lines(make_offer(replace(LOCAL, rtcp_mux=False))) == ["rtcp:20001"]


def test_one_port_where_both_want_it() -> None:
    answered = answer_offer(described("a=rtcp-mux", "a=rtcp:4009"), LOCAL)
    assert answered.remote.rtcp_port is None
    assert rtcp_lines(answered.answer) == ["rtcp-mux"]
    accepted = accept_answer(make_offer(LOCAL), described("a=rtcp-mux"))
    assert accepted.remote.rtcp_port is None


def test_two_ports_where_one_does_not() -> None:
    answered = answer_offer(described("a=rtcp-mux"), replace(LOCAL, rtcp_mux=False))
    assert answered.remote.rtcp_port == 4001
    assert rtcp_lines(answered.answer) == ["rtcp:20001"]
    answered = answer_offer(described(), LOCAL)
    assert answered.remote.rtcp_port == 4001
    assert rtcp_lines(answered.answer) == ["rtcp:20001"]
    assert accept_answer(make_offer(LOCAL), described()).remote.rtcp_port == 4001
    # Agreeing to what was not offered counts for nothing.
    unasked = accept_answer(make_offer(replace(LOCAL, rtcp_mux=False)), described("a=rtcp-mux"))
    assert unasked.remote.rtcp_port == 4001


@pytest.mark.parametrize(
    ("value", "port", "address"),
    [
        ("53020", 53020, None),
        ("53020 IN IP4 203.0.113.7", 53020, None),
        ("53020 IN IP4 203.0.113.99", 53020, "203.0.113.99"),
        # What cannot be used leaves the port that was said, or the one by default.
        ("53020 IN IP6 2001:db8::1", 53020, None),
        ("53020 IN IP4 224.0.0.1", 53020, None),
        ("53020 IN IP4 host.example", 53020, None),
        ("53020 IN IP4", 53020, None),
        ("0", 4001, None),
        ("65536", 4001, None),
        ("999999999999999999999", 4001, None),
        ("-1", 4001, None),
        ("x", 4001, None),
        ("", 4001, None),
    ],
)
def test_the_port_that_is_named_is_used(value: str, port: int, address: str | None) -> None:
    remote = answer_offer(described(f"a=rtcp:{value}"), LOCAL).remote
    assert (remote.rtcp_port, remote.rtcp_address) == (port, address)


def test_above_the_highest_port_there_is_none() -> None:
    assert answer_offer(described(port=65535), LOCAL).remote.rtcp_port == 0
