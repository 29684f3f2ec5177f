"""STUN and TURN servers of the settings, and the credentials that pages get for them."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from callcontrol.webrtc.ice_servers import IceServer, IceServers, parse_ice_servers


@pytest.mark.parametrize(
    ("text", "servers"),
    [
        ("", ()),
        ("stun:stun.example.com", (IceServer("stun:stun.example.com"),)),
        (" STUN:192.0.2.1:3478 , ", (IceServer("stun:192.0.2.1:3478"),)),
        ("turn:[2001:db8::1]:3478?transport=tcp", (IceServer("turn:[2001:db8::1]:3478?transport=tcp"),)),
        (
            "turns:asha:a%2Cb%3A%40c:d@turn.example.com:443",
            (IceServer("turns:turn.example.com:443", "asha", "a,b:@c:d"),),
        ),
    ],
)
def test_addresses_are_read(text: str, servers: tuple[IceServer, ...]) -> None:
    assert parse_ice_servers(text) == servers


@pytest.mark.parametrize(
    "word",
    [
        "stun.example.com",
        "http://stun.example.com",
        "stun://stun.example.com",
        "stun:",
        "stun:a b",
        "stun:-a.example.com",
        "stun:192.0.2.256",
        "stun:[::1",
        "stun:[:::1]",
        "stun:stun.example.com:0",
        "stun:stun.example.com:65536",
        "stun:stun.example.com?transport=udp",
        "stun:asha:hush@stun.example.com",
        "turn:turn.example.com?transport=sctp",
        "turn:asha@turn.example.com",
        "turn::hush@turn.example.com",
        "turn:asha:@turn.example.com",
        "turn:asha:hush%0A@turn.example.com",
        "turn:asha:hush@",
    ],
)
def test_a_wrong_address_is_named_by_its_place_alone(word: str) -> None:
    with pytest.raises(ValueError, match="^server 2 ") as refusal:
        parse_ice_servers(f"stun:stun.example.com,{word}")
    assert "hush" not in str(refusal.value)


def test_too_many_servers() -> None:
    with pytest.raises(ValueError, match="more than 20"):
        parse_ice_servers(",".join(["stun:stun.example.com"] * 21))


def test_credentials_made_with_the_secret_expire_with_the_token() -> None:
    servers = parse_ice_servers("stun:a.example,turn:b.example,turns:b.example,turn:asha:own@c.example")
    offered = IceServers(servers, "hush").offered("asha", 1_800_000_000.9)
    made = hmac.new(b"hush", b"1800000000:asha", hashlib.sha1).digest()
    assert [(one.urls, one.username, one.credential) for one in offered] == [
        (["stun:a.example"], "", ""),
        (["turn:b.example", "turns:b.example"], "1800000000:asha", base64.b64encode(made).decode()),
        (["turn:c.example"], "asha", "own"),
    ]
    assert "hush" not in repr(IceServers(servers, "hush")) + repr(offered)
    assert made.hex() and "own" not in repr(servers)


def test_without_servers_nothing_is_offered() -> None:
    assert IceServers().offered("asha", 1.0) == []
