"""Keys of SRTP in session descriptions (RFC 4568, RFC 6188)."""

from __future__ import annotations

import base64
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from media.sdp import Attribute, SessionDescription, parse_session_description
from media.sdp.crypto import KEY_BYTES, CryptoLine, choose_crypto, match_crypto, offer_crypto, parse_crypto
from media.types import SrtpKey, SrtpSuite

SUITES: tuple[SrtpSuite, ...] = get_args(SrtpSuite)
# The first example of RFC 4568 4.
EXAMPLE = "1 AES_CM_128_HMAC_SHA1_80 inline:PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR|2^20|1:32"
INLINE = "PS1uQCVeeCFCanVmcjkpPywjNWhcYD0mXXtxaVBR"
KEY = base64.b64decode(INLINE)


def key(suite: SrtpSuite, fill: int = 7) -> SrtpKey:
    return SrtpKey(suite, bytes([fill]) * KEY_BYTES[suite])


def line(suite: str = "AES_CM_128_HMAC_SHA1_80", inline: str = INLINE, tail: str = "", tag: str = "1") -> str:
    return f"{tag} {suite} inline:{inline}{tail}"


class TestParsing:
    def test_a_plain_line(self) -> None:
        assert parse_crypto(line()) == CryptoLine(1, SrtpKey("AES_CM_128_HMAC_SHA1_80", KEY))

    @pytest.mark.parametrize("suite", SUITES)
    def test_every_suite_is_written_as_it_is_read(self, suite: SrtpSuite) -> None:
        written = CryptoLine(42, key(suite))
        assert parse_crypto(str(written)) == written

    @pytest.mark.parametrize(
        "tail", ["|2^20", "|1048576", "|2^48", "|2^31 ", " WSH=128", " -NEW=1", "|2^20 WSH=64 -X"]
    )
    def test_lifetimes_and_hints_are_passed_over(self, tail: str) -> None:
        found = parse_crypto(line(tail=tail))
        assert found is not None
        assert found.key.key == KEY

    @pytest.mark.parametrize(
        "value",
        [
            EXAMPLE,
            line(tail="|1:32"),
            line(tail=f";inline:{INLINE}|2^20|2:4"),
            line(tail="|2^49"),
            line(tail="|0"),
            line(tail="|2^20|2^20"),
            line(tail="|"),
            line(tail=" KDR=1"),
            line(tail=" UNENCRYPTED_SRTP"),
            line(tail=" UNENCRYPTED_SRTCP"),
            line(tail=" UNAUTHENTICATED_SRTP"),
            line(tail=" FEC_ORDER=FEC_SRTP"),
            line(tail=" WSH=64x"),
            line(tail=" SOMETHING_NEW"),
            line(suite="F8_128_HMAC_SHA1_80"),
            line(suite="AEAD_AES_128_GCM"),
            line(suite="aes_cm_128_hmac_sha1_80"),
            line(suite="AES_256_CM_HMAC_SHA1_80"),
            line(inline=INLINE[:-4]),
            line(inline=INLINE + "AAAA"),
            line(inline=INLINE[:-1]),
            line(inline=INLINE[:-1] + "-"),
            line(inline=INLINE[:20] + "\n" + INLINE[20:]),
            line(inline=INLINE + "="),
            line(inline=""),
            line(tag="01"),
            line(tag="-1"),
            line(tag="1234567890"),
            line(tag="1\n"),
            line(tag="١"),
            line(inline=INLINE.replace("P", "Ｐ")),
            f"1 AES_CM_128_HMAC_SHA1_80 uri:{INLINE}",
            f"1 AES_CM_128_HMAC_SHA1_80 {INLINE}",
            "1 AES_CM_128_HMAC_SHA1_80",
            "1",
            "",
            line(tail=" " * 600),
        ],
    )
    def test_what_cannot_be_used_is_as_good_as_absent(self, value: str) -> None:
        assert parse_crypto(value) is None

    def test_a_key_has_one_spelling(self) -> None:
        # 46 bytes leave four bits of the last character unused.
        spelled = str(CryptoLine(1, key("AES_256_CM_HMAC_SHA1_80", 0)))
        assert spelled.endswith("A==")
        assert parse_crypto(spelled[:-3] + "B==") is None
        assert parse_crypto(spelled.rstrip("=")) is None

    @given(st.text(max_size=200) | st.from_regex(r"[0-9]{1,3} AES_CM_128_HMAC_SHA1_(32|80) inline:.{0,60}"))
    def test_nothing_raises_and_what_is_taken_is_written_back(self, value: str) -> None:
        found = parse_crypto(value)
        if found is not None:
            assert parse_crypto(str(found)) == found


class TestAnswering:
    def test_the_first_usable_line_of_the_offer_is_taken(self) -> None:
        ours = tuple(key(suite, 9) for suite in SUITES)
        offered = [line(suite="AEAD_AES_256_GCM", tag="1"), *(str(CryptoLine(5, key(SUITES[2], 1))),)]
        offered.append(line(tag="6"))
        chosen = choose_crypto(offered, ours)
        assert chosen == (CryptoLine(5, key(SUITES[2], 9)), key(SUITES[2], 1))

    def test_only_suites_that_we_have_keys_for(self) -> None:
        assert choose_crypto([line()], [key("AES_CM_128_HMAC_SHA1_32")]) is None
        assert choose_crypto([line()], []) is None
        assert choose_crypto([], [key("AES_CM_128_HMAC_SHA1_32")]) is None

    def test_a_key_that_is_ours_is_refused(self) -> None:
        ours = key("AES_CM_128_HMAC_SHA1_80")
        assert choose_crypto([str(CryptoLine(1, ours))], [ours]) is None

    def test_lines_beyond_any_reason_are_not_read(self) -> None:
        nonsense = ["1 NO_SUCH_SUITE inline:AAAA"] * 40
        assert choose_crypto([*nonsense, line()], [key("AES_CM_128_HMAC_SHA1_80")]) is None


class TestTakingAnAnswer:
    def setup_method(self) -> None:
        self.keys = tuple(key(suite) for suite in SUITES)
        self.offered = [str(item) for item in offer_crypto(self.keys)]

    def test_the_line_named_by_tag_gives_both_keys(self) -> None:
        for number, suite in enumerate(SUITES, 1):
            answer = str(CryptoLine(number, key(suite, 3)))
            assert match_crypto(self.offered, [answer]) == (self.keys[number - 1], key(suite, 3))

    def test_another_tag_or_suite_or_several_lines_are_refused(self) -> None:
        right = str(CryptoLine(1, key(SUITES[0], 3)))
        assert match_crypto(self.offered, [str(CryptoLine(2, key(SUITES[0], 3)))]) is None
        assert match_crypto(self.offered, [str(CryptoLine(9, key(SUITES[0], 3)))]) is None
        assert match_crypto(self.offered, [right, right]) is None
        assert match_crypto(self.offered, []) is None
        assert match_crypto(self.offered, [EXAMPLE]) is None
        assert match_crypto(self.offered, [self.offered[0]]) is None
        assert match_crypto([], [right]) is None


class TestSecrecy:
    def test_no_representation_shows_a_key(self) -> None:
        found = parse_crypto(line())
        assert found is not None
        shown = repr(found) + repr(Attribute("crypto", line())) + repr(Attribute("Crypto", line()))
        assert INLINE not in shown
        assert repr(KEY) not in shown
        assert repr(Attribute("ptime", "20")) == "Attribute('ptime', '20')"

    def test_a_description_with_keys_is_read_written_and_not_shown(self) -> None:
        text = (
            "v=0\r\no=- 1 1 IN IP4 192.0.2.1\r\ns=-\r\nc=IN IP4 192.0.2.1\r\nt=0 0\r\n"
            f"m=audio 4000 RTP/SAVP 0\r\na=crypto:{line()}\r\n"
        )
        description = parse_session_description(text.encode())
        assert description.to_bytes() == text.encode()
        assert INLINE not in repr(description)
        assert description.media[0].values("crypto") == (line(),)

    def test_keys_stay_in_no_cache(self) -> None:
        text = f"v=0\r\no=- 1 1 IN IP4 1.2.3.4\r\ns=-\r\nm=audio 1 RTP/SAVP 0\r\na=crypto:{line()}\r\n"
        first, second = (SessionDescription.parse(text.encode()) for _ in range(2))
        assert first.media[0].attributes[0] is not second.media[0].attributes[0]
