"""HEP packets, read back by a reader that knows nothing of the writer."""

import socket
import struct
from ipaddress import ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sip.hep import HepMessage, encode_hep
from sip.redaction import withhold_secrets

INVITE = b"INVITE sip:a SIP/2.0\r\n\r\n"


def read_chunks(packet: bytes) -> dict[int, bytes]:
    """The chunks of a packet by type, read as the specification describes them."""
    assert packet[:4] == b"HEP3"
    (total,) = struct.unpack_from("!H", packet, 4)
    assert total == len(packet)
    chunks: dict[int, bytes] = {}
    offset = 6
    while offset < total:
        vendor, kind, length = struct.unpack_from("!HHH", packet, offset)
        assert vendor == 0 and length >= 6 and kind not in chunks
        chunks[kind] = packet[offset + 6 : offset + length]
        offset += length
    assert offset == total
    return chunks


def make(**changes: object) -> HepMessage:
    values: dict[str, object] = {
        "transport": "udp",
        "source": ("192.0.2.1", 5060),
        "target": ("192.0.2.2", 5070),
        "at_us": 1_700_000_000_123_456,
        "payload": INVITE,
        "correlation": "call-1",
    }
    return HepMessage(**{**values, **changes})  # type: ignore[arg-type]


def test_every_chunk_of_a_packet() -> None:
    assert read_chunks(encode_hep(make(), 2001, "secret")) == {
        1: bytes((socket.AF_INET,)),
        2: bytes((socket.IPPROTO_UDP,)),
        3: ip_address("192.0.2.1").packed,
        4: ip_address("192.0.2.2").packed,
        7: (5060).to_bytes(2, "big"),
        8: (5070).to_bytes(2, "big"),
        9: (1_700_000_000).to_bytes(4, "big"),
        10: (123_456).to_bytes(4, "big"),
        11: b"\x01",
        12: (2001).to_bytes(4, "big"),
        14: b"secret",
        15: INVITE,
        17: b"call-1",
    }


def test_ipv6_has_chunks_of_its_own_and_no_password_has_none() -> None:
    chunks = read_chunks(
        encode_hep(make(source=("2001:db8::1", 1), target=("2001:db8::2%eth0", 2), transport="tls"), 7)
    )
    assert chunks[1] == bytes((10,)) and chunks[2] == bytes((socket.IPPROTO_TCP,))
    assert chunks[5] == ip_address("2001:db8::1").packed and chunks[6] == ip_address("2001:db8::2").packed
    assert not {3, 4, 14} & set(chunks)


def test_a_call_id_that_is_not_utf_8_is_sent_as_text() -> None:
    assert read_chunks(encode_hep(make(correlation="\udce9\udc80"), 1))[17] == "é\ufffd".encode()


@pytest.mark.parametrize("host", ["0.0.0.0", "", "sip.example.com"])
def test_an_address_that_is_none_is_sent_as_zeros(host: str) -> None:
    assert read_chunks(encode_hep(make(target=(host, 5060)), 1))[4] == bytes(4)


@given(
    payload=st.binary(max_size=70_000),
    correlation=st.text(max_size=3000),
    at_us=st.integers(0, 2**52),
    port=st.integers(0, 65535),
)
def test_whatever_is_packed_can_be_read(payload: bytes, correlation: str, at_us: int, port: int) -> None:
    message = make(payload=payload, correlation=correlation, at_us=at_us, source=("192.0.2.1", port))
    packet = encode_hep(message, 1, "p")
    chunks = read_chunks(packet)
    assert len(packet) <= 65507
    assert payload.startswith(chunks[15])
    assert len(chunks[15]) == len(payload) or len(packet) == 65507
    seconds, microseconds = int.from_bytes(chunks[9], "big"), int.from_bytes(chunks[10], "big")
    assert (seconds, microseconds) == (at_us // 10**6 & 0xFFFFFFFF, at_us % 10**6)


def test_answers_to_challenges_are_withheld() -> None:
    message = (
        b"REGISTER sip:x SIP/2.0\r\nAuthorization: Digest username=a,\r\n response=1f\r\nVia: y\r\n"
        b"Proxy-authorization : Digest 2\r\n\r\nAuthorization"
    )
    assert withhold_secrets(message) == (
        b"REGISTER sip:x SIP/2.0\r\nAuthorization: (withheld)\r\nVia: y\r\n"
        b"Proxy-authorization : (withheld)\r\n\r\nAuthorization"
    )


KEY = b"PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR"


@pytest.mark.parametrize(
    "body",
    [
        b"a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:" + KEY + b"|2^20|1:4 WSH=64\r\n",
        b"a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:" + KEY + b";inline:" + KEY + b"\n",
        b"A=Crypto:1 AES_CM_128_HMAC_SHA1_80 INLINE: " + KEY + b"\r\n",
        b"a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:" + KEY,
        b"a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:" + KEY[:20] + b"\r\n(cut off)",
        b"v=0\r\nk=clear:" + KEY + b"\r\n",
    ],
)
def test_keys_of_media_are_withheld(body: bytes) -> None:
    message = b"INVITE sip:x SIP/2.0\r\nContent-Disposition: inline\r\n\r\nv=0\r\n" + body
    shown = withhold_secrets(message)
    assert KEY[:20] not in shown
    assert b"(withheld)" in shown
    assert shown.startswith(b"INVITE sip:x SIP/2.0\r\nContent-Disposition: inline\r\n\r\nv=0\r\n")


def test_what_surrounds_a_key_is_shown() -> None:
    body = b"a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:" + KEY + b"\r\na=sendrecv\r\n"
    assert withhold_secrets(body) == b"a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:(withheld)\r\na=sendrecv\r\n"
