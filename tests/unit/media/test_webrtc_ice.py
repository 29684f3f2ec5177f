"""ICE of a browser's leg: checks, their signatures, and the path that the browser selects."""

from __future__ import annotations

import hmac
import struct
import zlib
from hashlib import sha1

from hypothesis import given
from hypothesis import strategies as st

from media.webrtc.ice import IceCredentials, IceLite
from media.webrtc.stun import parse_request, respond
from tests.support.browser_peer import binding_request

# RFC 5769 2.1.
RFC_PASSWORD = "VOkJxbRl1RmTxUk/WvJxBt"
RFC_REQUEST = bytes.fromhex(
    "000100582112a442b7e7a701bc34d686fa87dfae802200105354554e207465737420636c69656e74002400046e0001ff"
    "80290008932ff9b151263b36000600096576746a3a68367659202020000800149aeaa70cbfd8cb56781ef2b5b2d3f249"
    "c1b571a280280004e57a3bcf"
)
LOCAL = IceCredentials("ours", "a" * 22)
HERE, THERE = ("192.0.2.1", 32853), ("198.51.100.7", 4000)


def check(agent: IceLite, source: tuple[str, int], data: bytes) -> bytes | None:
    request = parse_request(data)
    return None if request is None else agent.receive(request, source)


def test_the_request_of_the_rfc_is_read_and_its_signature_is_right() -> None:
    request = parse_request(RFC_REQUEST)
    assert request is not None
    assert (request.username, request.priority, request.nominates) == ("evtj:h6vY", 0x6E0001FF, False)
    assert request.is_signed_with(RFC_PASSWORD)
    assert not request.is_signed_with(RFC_PASSWORD[:-1])


def test_the_response_has_the_source_and_is_signed() -> None:
    request = parse_request(RFC_REQUEST)
    assert request is not None
    response = respond(request, HERE, RFC_PASSWORD)
    assert response[:2] == b"\x01\x01" and response[4:20] == RFC_REQUEST[4:20]
    # The mapped address of the RFC's response (RFC 5769 2.2).
    assert response[20:32] == bytes.fromhex("002000080001a147e112a643")
    signed = response[:2] + struct.pack("!H", 36) + response[4:32]
    assert response[36:56] == hmac.digest(RFC_PASSWORD.encode(), signed, sha1)
    assert response[-4:] == struct.pack("!I", zlib.crc32(response[:-8]) ^ 0x5354554E)


def test_a_response_to_an_address_of_ipv6_has_all_of_it() -> None:
    request = parse_request(RFC_REQUEST)
    assert request is not None
    response = respond(request, ("2001:db8:1234:5678:11:2233:4455:6677", 32853), RFC_PASSWORD)
    # RFC 5769 2.3.
    assert response[20:44] == bytes.fromhex("002000140002a1470113a9faa5d3f179bc25f4b5bed2b9d9")


@given(st.binary(max_size=200) | st.binary(max_size=80).map(lambda tail: RFC_REQUEST[:20] + tail))
def test_any_bytes_are_read_or_are_no_request(data: bytes) -> None:
    request = parse_request(data)
    assert request is None or not request.is_signed_with(RFC_PASSWORD)


def test_a_request_that_was_changed_is_not_signed() -> None:
    for place in (9, 47, 60, 75):
        changed = bytearray(RFC_REQUEST)
        changed[place] ^= 1
        request = parse_request(bytes(changed))
        assert request is None or not request.is_signed_with(RFC_PASSWORD)


def test_only_a_signed_check_enters_an_address() -> None:
    agent = IceLite(LOCAL, "peer")
    for username, password in (("ours:peer", "b" * 22), ("ours:else", "a" * 22), ("else:peer", "a" * 22)):
        assert check(agent, HERE, binding_request(username, password)) is None
    assert agent.selected is None and not agent.addresses
    assert check(agent, HERE, binding_request("ours:peer", LOCAL.password)) is not None
    assert agent.selected == HERE and list(agent.addresses) == [HERE]


def test_a_check_that_selects_nothing_only_enters_the_address() -> None:
    agent = IceLite(LOCAL, "peer")
    assert check(agent, HERE, binding_request("ours:peer", LOCAL.password, nominates=False)) is not None
    assert agent.selected is None and HERE in agent.addresses


def test_the_selected_path_with_the_highest_priority_is_used_until_it_is_silent() -> None:
    agent = IceLite(LOCAL, "peer")
    check(agent, HERE, binding_request("ours:peer", LOCAL.password, priority=20))
    check(agent, THERE, binding_request("ours:peer", LOCAL.password, priority=10))
    assert agent.selected == HERE
    agent.forget_selection()
    check(agent, THERE, binding_request("ours:peer", LOCAL.password, priority=10))
    assert agent.selected == THERE


def test_addresses_are_bounded() -> None:
    agent = IceLite(LOCAL, "peer")
    answered = [
        check(agent, ("192.0.2.1", port), binding_request("ours:peer", LOCAL.password))
        for port in range(5000, 5100)
    ]
    assert len(agent.addresses) == sum(item is not None for item in answered) == 16
