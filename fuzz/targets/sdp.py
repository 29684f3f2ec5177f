"""Targets of session descriptions: reading, and answering what was read."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

from fuzz.harness import Target
from media.sdp import (
    LocalMedia,
    Negotiated,
    NegotiationError,
    SdpError,
    SessionDescription,
    accept_answer,
    answer_offer,
    make_offer,
    remember,
)
from media.sdp.crypto import KEY_BYTES, parse_crypto
from media.types import SrtpKey, SrtpUse

LOCAL = LocalMedia(
    "192.0.2.10", 20_000, ("PCMU", "PCMA", "G722", "L16", "OPUS"), comfort_noise=True, session_id=1
)

SEEDS = [
    b"v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n"
    b"m=audio 4000 RTP/AVP 0 8 101\r\na=rtpmap:101 telephone-event/8000\r\na=fmtp:101 0-15\r\n"
    b"a=ptime:20\r\na=maxptime:60\r\na=sendrecv\r\n",
    b"v=0\no=x 1 1 IN IP6 ::1\ns=-\nt=0 0\nm=audio 0 RTP/AVP 0\nm=audio 4 RTP/AVPF 96\nc=IN IP4 0.0.0.0\n"
    b"a=rtpmap:96 PCMA/8000/1\na=sendonly\nm=video 6/2 RTP/SAVP 31\nm=application 8 UDP/BFCP *\n",
    b"v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n"
    b"m=audio 4000 RTP/AVP 96 97 13\r\na=rtpmap:96 opus/48000/2\r\na=rtpmap:97 telephone-event/48000\r\n"
    b"a=fmtp:96 maxaveragebitrate=16000; useinbandfec=1;usedtx=1\r\n",
    make_offer(LOCAL).to_bytes(),
]

WORDS = [
    *(
        b"v=0",
        b"o=- 1 1 IN IP4 ",
        b"s=-",
        b"c=IN IP4 192.0.2.1",
        b"t=0 0",
        b"b=AS:64",
        b"m=audio 4000 RTP/AVP 0",
    ),
    *(
        b"a=rtpmap:",
        b"a=fmtp:",
        b"a=ptime:",
        b"a=inactive",
        b"telephone-event/8000",
        b"PCMU/8000",
        b"opus/48000/2",
        b"L16/16000",
        b"CN/8000",
        b"maxplaybackrate=8000",
        b"useinbandfec=1",
        b"0-15,66",
    ),
    *(b"IN IP6 ::", b"0.0.0.0", b"224.2.1.1/127", b"fe80::1%1", b"RTP/SAVP", b" 127", b" 256"),
]


def check_session(data: bytes) -> str:
    """A parsed description is written so that it parses to the same."""
    session = SessionDescription.parse(data)
    wire = session.to_bytes()
    again = SessionDescription.parse(wire)
    assert again == session
    assert again.to_bytes() == wire
    for media in session.media:
        codecs = media.codecs()
        assert all(0 <= codec.payload_type <= 127 for codec in codecs)
        assert media.ptime_ms is None or media.ptime_ms > 0
    return f"{len(session.media)} {[len(media.codecs()) for media in session.media]}"


def check_negotiation(data: bytes) -> str:
    """Any offer is answered section by section, or refused; any answer is taken or refused."""
    session = SessionDescription.parse(data)
    offer = make_offer(LOCAL)
    taken: str
    try:
        taken = accept_answer(offer, session).remote.direction
    except NegotiationError as error:
        taken = error.warning
    negotiated = answer_offer(session, LOCAL)
    answer = negotiated.answer
    assert answer is not None
    assert SessionDescription.parse(answer.to_bytes()) == answer
    assert [media.kind for media in answer.media] == [media.kind for media in session.media]
    assert sum(media.port != 0 for media in answer.media) == 1
    assert negotiated.codec in LOCAL.codecs
    assert negotiated.remote.ptime_ms in range(10, 61)
    assert negotiated.remote.port > 0
    assert 6_000 <= negotiated.remote.opus.bitrate_bps <= LOCAL.opus.bitrate_bps
    check_stable_numbers(negotiated)
    return f"{taken} {negotiated.remote.direction} {negotiated.remote.dtmf_payload_type is not None}"


CRYPTO_SEEDS = [
    b"1 AES_CM_128_HMAC_SHA1_80 inline:PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR|2^20",
    b"2 AES_256_CM_HMAC_SHA1_32 inline:" + b"A" * 62 + b"== WSH=64 -X",
]
CRYPTO_WORDS = [
    b"|1:4",
    b"|2^48",
    b" KDR=1",
    b";inline:",
    b"AES_CM_128_HMAC_SHA1_32",
    b" UNENCRYPTED_SRTP",
    b"=",
]


def check_crypto(data: bytes) -> str:
    """A line that is taken is written so that it reads the same."""
    line = parse_crypto(data.decode("utf-8", "replace"))
    if line is None:
        return "refused"
    assert parse_crypto(str(line)) == line
    return line.key.suite


def check_stable_numbers(agreed: Negotiated) -> None:
    """An offer after an agreement gives no payload type of it another meaning."""
    again = make_offer(remember(LOCAL, agreed))
    meanings = {entry.payload_type: str(entry).lower() for entry in agreed.numbers}
    for entry in again.media[0].codecs():
        known = meanings.get(entry.payload_type, str(entry).lower())
        assert str(entry).lower().startswith(known)


KEYS = tuple(SrtpKey(suite, bytes(size)) for suite, size in KEY_BYTES.items())
ENCRYPTION_SEEDS = [
    seed.replace(b"RTP/AVP 0", profile + b" 0") + b"a=crypto:" + line + b"\r\n"
    for seed in SEEDS[:2]
    for profile, line in zip((b"RTP/AVP", b"RTP/SAVP"), CRYPTO_SEEDS, strict=True)
]


def check_encryption(data: bytes) -> str:
    """A stream is encrypted with keys of both sides or not at all, and never plain where that is required."""
    session = SessionDescription.parse(data)
    outcomes: list[str] = []
    for use in get_args(SrtpUse):
        local = replace(LOCAL, srtp=use, srtp_keys=KEYS)
        for negotiate in (accept_answer_of, answer_offer):
            try:
                remote = negotiate(session, local).remote
            except NegotiationError as error:
                outcomes.append(error.warning)
                continue
            encrypted = remote.srtp_send is not None
            assert encrypted == (remote.srtp_receive is not None)
            assert encrypted or use != "required"
            assert not encrypted or use != "off"
            assert remote.srtp_send != remote.srtp_receive or not encrypted
            outcomes.append(str(encrypted))
    return " ".join(outcomes)


def accept_answer_of(session: SessionDescription, local: LocalMedia) -> Negotiated:
    """Accept a description as the answer to our offer."""
    return accept_answer(make_offer(local), session)


TARGETS = [
    Target(
        "sdp-encryption",
        check_encryption,
        (SdpError,),
        ENCRYPTION_SEEDS,
        [*WORDS, *CRYPTO_SEEDS, *CRYPTO_WORDS, b"a=crypto:", b"m=audio 4000 RTP/SAVPF 0"],
    ),
    Target("sdp-crypto", check_crypto, (), CRYPTO_SEEDS, CRYPTO_WORDS),
    Target("sdp", check_session, (SdpError,), SEEDS, WORDS),
    Target("sdp-negotiation", check_negotiation, (SdpError, NegotiationError), SEEDS, WORDS),
]
