"""Encrypted media in offers and answers (RFC 4568, RFC 8643)."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from media.sdp import (
    LocalMedia,
    Negotiated,
    NegotiationError,
    SessionDescription,
    accept_answer,
    answer_offer,
    make_offer,
    remember,
    revise,
)
from media.sdp.crypto import KEY_BYTES, CryptoLine
from media.types import SrtpKey, SrtpSuite, SrtpUse

SUITES: tuple[SrtpSuite, ...] = get_args(SrtpSuite)


def keys(fill: int) -> tuple[SrtpKey, ...]:
    return tuple(SrtpKey(suite, bytes([fill]) * KEY_BYTES[suite]) for suite in SUITES)


def local(srtp: SrtpUse, fill: int = 1) -> LocalMedia:
    return LocalMedia("192.0.2.1", 4000, srtp=srtp, srtp_keys=keys(fill), session_id=1)


def described(*sections: str) -> SessionDescription:
    head = "v=0\r\no=- 1 1 IN IP4 203.0.113.7\r\ns=-\r\nc=IN IP4 203.0.113.7\r\nt=0 0\r\n"
    return SessionDescription.parse((head + "".join(f"{section}\r\n" for section in sections)).encode())


def line(suite: SrtpSuite = "AES_CM_128_HMAC_SHA1_80", fill: int = 9, tag: int = 1) -> str:
    return f"a=crypto:{CryptoLine(tag, SrtpKey(suite, bytes([fill]) * KEY_BYTES[suite]))}"


def section(protocol: str, *lines: str) -> str:
    return "\r\n".join([f"m=audio 5000 {protocol} 0", *lines])


def lines_of(description: SessionDescription) -> tuple[str, ...]:
    return description.media[0].values("crypto")


class TestOffering:
    @pytest.mark.parametrize(
        ("srtp", "protocol", "count"),
        [("off", "RTP/AVP", 0), ("optional", "RTP/AVP", 3), ("required", "RTP/SAVP", 3)],
    )
    def test_profile_and_keys_follow_the_policy(self, srtp: SrtpUse, protocol: str, count: int) -> None:
        media = make_offer(local(srtp)).media[0]
        assert (media.protocol, len(media.values("crypto"))) == (protocol, count)

    def test_the_preferred_suite_stands_first(self) -> None:
        assert [text.split()[:2] for text in lines_of(make_offer(local("required")))] == [
            ["1", "AES_CM_128_HMAC_SHA1_80"],
            ["2", "AES_CM_128_HMAC_SHA1_32"],
            ["3", "AES_256_CM_HMAC_SHA1_80"],
        ]


class TestAnswering:
    @pytest.mark.parametrize("protocol", ["RTP/SAVP", "RTP/SAVPF", "RTP/AVP", "RTP/AVPF"])
    @pytest.mark.parametrize("srtp", ["optional", "required"])
    @pytest.mark.parametrize("suite", SUITES)
    def test_a_key_is_answered_with_ours_under_the_same_profile(
        self, protocol: str, srtp: SrtpUse, suite: SrtpSuite
    ) -> None:
        negotiated = answer_offer(described(section(protocol, line(suite, tag=7))), local(srtp))
        assert negotiated.answer is not None
        media = negotiated.answer.media[0]
        ours = next(key for key in keys(1) if key.suite == suite)
        assert media.protocol == protocol
        assert media.values("crypto") == (str(CryptoLine(7, ours)),)
        assert negotiated.remote.srtp_send == ours
        assert negotiated.remote.srtp_receive == SrtpKey(suite, bytes([9]) * KEY_BYTES[suite])

    @pytest.mark.parametrize("srtp", ["off", "optional"])
    def test_plain_is_answered_plain(self, srtp: SrtpUse) -> None:
        negotiated = answer_offer(described(section("RTP/AVP")), local(srtp))
        assert negotiated.answer is not None
        assert lines_of(negotiated.answer) == ()
        assert negotiated.remote.srtp_send is None is negotiated.remote.srtp_receive

    def test_opportunistic_keys_are_passed_over_when_encryption_is_off(self) -> None:
        negotiated = answer_offer(described(section("RTP/AVP", line())), local("off"))
        assert negotiated.answer is not None
        assert lines_of(negotiated.answer) == ()
        assert negotiated.remote.srtp_send is None

    @pytest.mark.parametrize(
        ("srtp", "offered", "code", "words"),
        [
            ("off", section("RTP/SAVP", line()), 302, "Encrypted media is not accepted"),
            ("required", section("RTP/AVP"), 302, "is required"),
            ("required", section("RTP/AVP", "a=crypto:1 NULL inline:AAAA"), 302, "is required"),
            ("optional", section("RTP/SAVP"), 306, "No SRTP key"),
            ("required", section("RTP/SAVP", f"{line()}|1:4"), 306, "No SRTP key"),
            ("required", section("UDP/TLS/RTP/SAVP", line()), 302, "Only RTP/AVP and RTP/SAVP"),
        ],
    )
    def test_what_does_not_fit_is_refused_with_a_reason(
        self, srtp: SrtpUse, offered: str, code: int, words: str
    ) -> None:
        with pytest.raises(NegotiationError, match=words) as caught:
            answer_offer(described(offered), local(srtp))
        assert (caught.value.status, caught.value.warn_code) == (488, code)

    @pytest.mark.parametrize(("srtp", "used"), [("off", 0), ("optional", 1), ("required", 1)])
    def test_of_two_sections_the_one_is_used_that_fits(self, srtp: SrtpUse, used: int) -> None:
        offer = described(section("RTP/AVP"), section("RTP/SAVP", line()))
        answer = answer_offer(offer, local(srtp)).answer
        assert answer is not None
        assert [media.port != 0 for media in answer.media] == [place == used for place in range(2)]

    def test_a_plain_section_serves_when_the_encrypted_one_cannot(self) -> None:
        answer = answer_offer(described(section("RTP/SAVP"), section("RTP/AVP")), local("optional")).answer
        assert answer is not None
        assert [media.port != 0 for media in answer.media] == [False, True]


class TestTakingAnswers:
    @pytest.mark.parametrize("protocol", ["RTP/SAVP", "RTP/SAVPF", "RTP/AVP"])
    @pytest.mark.parametrize("srtp", ["optional", "required"])
    def test_keys_of_both_sides_encrypt(self, srtp: SrtpUse, protocol: str) -> None:
        answer = described(section(protocol, line("AES_256_CM_HMAC_SHA1_80", tag=3)))
        remote = accept_answer(make_offer(local(srtp)), answer).remote
        assert remote.srtp_send == keys(1)[2]
        assert remote.srtp_receive == SrtpKey("AES_256_CM_HMAC_SHA1_80", b"\x09" * 46)

    def test_an_answer_without_keys_leaves_optional_media_plain(self) -> None:
        remote = accept_answer(make_offer(local("optional")), described(section("RTP/AVP"))).remote
        assert remote.srtp_send is None is remote.srtp_receive

    @pytest.mark.parametrize(
        ("srtp", "answered", "words"),
        [
            ("required", section("RTP/AVP"), "no SRTP key"),
            ("required", section("RTP/SAVP"), "no SRTP key"),
            ("optional", section("RTP/SAVP"), "no SRTP key"),
            ("off", section("RTP/SAVP", line()), "another transport"),
            ("optional", section("RTP/AVP", line(tag=9)), "does not fit"),
            ("optional", section("RTP/AVP", line(), line()), "does not fit"),
            ("required", section("RTP/SAVP", line("AES_CM_128_HMAC_SHA1_32")), "does not fit"),
            ("required", section("RTP/SAVP", line(fill=1)), "does not fit"),
            ("required", section("UDP/TLS/RTP/SAVP", line()), "another transport"),
        ],
    )
    def test_what_does_not_fit_is_refused(self, srtp: SrtpUse, answered: str, words: str) -> None:
        with pytest.raises(NegotiationError, match=words):
            accept_answer(make_offer(local(srtp)), described(answered))


class TestLaterOffers:
    def agree(self, srtp: SrtpUse, offered: str) -> tuple[LocalMedia, Negotiated]:
        ours = local(srtp)
        negotiated = answer_offer(described(offered), ours)
        return remember(ours, negotiated), negotiated

    def test_they_keep_profile_suite_and_key(self) -> None:
        ours, negotiated = self.agree(
            "optional", section("RTP/SAVPF", line("AES_256_CM_HMAC_SHA1_32", tag=4))
        )
        assert negotiated.answer is not None
        offer = make_offer(ours)
        assert offer.media[0].protocol == "RTP/SAVPF"
        assert lines_of(offer) == (str(CryptoLine(1, keys(1)[3])),)
        assert negotiated.remote.srtp_send == keys(1)[3]

    def test_a_session_that_is_plain_goes_on_offering_keys(self) -> None:
        ours, _ = self.agree("optional", section("RTP/AVP"))
        assert len(lines_of(make_offer(ours))) == 3

    def test_hold_and_resume_change_no_key(self) -> None:
        offered = section("RTP/SAVP", line())
        ours, first = self.agree("required", offered)
        held = answer_offer(described(section("RTP/SAVP", line(), "a=sendonly")), ours)
        resumed = answer_offer(described(offered), remember(ours, held))
        assert held.held
        assert (first.remote.srtp_send, first.remote.srtp_receive) == (
            held.remote.srtp_send,
            held.remote.srtp_receive,
        )
        assert resumed.remote == first.remote
        assert first.answer is not None and resumed.answer is not None
        assert revise(first.answer, resumed.answer) == first.answer

    def test_a_new_key_of_theirs_is_taken_and_ours_stays(self) -> None:
        ours, first = self.agree("required", section("RTP/SAVP", line()))
        changed = answer_offer(described(section("RTP/SAVP", line(fill=8))), ours)
        assert changed.remote.srtp_send == first.remote.srtp_send
        assert changed.remote.srtp_receive == SrtpKey(SUITES[0], b"\x08" * 30)

    def test_another_suite_may_be_offered_later(self) -> None:
        ours, _ = self.agree("required", section("RTP/SAVP", line()))
        changed = answer_offer(described(section("RTP/SAVP", line("AES_256_CM_HMAC_SHA1_80"))), ours)
        assert changed.remote.srtp_send == keys(1)[2]
        assert make_offer(remember(ours, changed)).media[0].values("crypto")[0].split()[1] == SUITES[2]


def test_nothing_shows_a_key() -> None:
    ours = local("required")
    negotiated = answer_offer(described(section("RTP/SAVP", line())), ours)
    shown = repr((ours, negotiated, make_offer(ours), replace(ours, srtp="optional")))
    for key in (*keys(1), *keys(9)):
        assert str(CryptoLine(1, key)).split("inline:")[1] not in shown
        assert repr(key.key) not in shown
