"""Links to recordings: what opens one, for how long, and that nothing else does."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.recordings.links import LINK_VALID, RecordingLinks, may_open
from callcontrol.secrets.aio import SecretBox

NOW = datetime(2026, 8, 1, 12, 30, tzinfo=UTC)
ACCOUNT, OTHER_ACCOUNT = "a3c1d3f0-8a55-4a34-9c0f-5b1f3f5a7d12", "b3c1d3f0-8a55-4a34-9c0f-5b1f3f5a7d12"
CALL, OTHER_CALL = "c3c1d3f0-8a55-4a34-9c0f-5b1f3f5a7d12", "d3c1d3f0-8a55-4a34-9c0f-5b1f3f5a7d12"
KEY, OTHER_KEY = b"k" * 32, b"o" * 32
LINKS = RecordingLinks(SecretBox([KEY]))


def made(links: RecordingLinks = LINKS) -> dict[str, str]:
    """The query of a link that was made now."""
    return dict(parse_qsl(urlsplit(links.link(ACCOUNT, CALL, NOW)).query, strict_parsing=True))


def test_a_link_is_a_path_with_its_end_and_its_proof() -> None:
    url = urlsplit(LINKS.link(ACCOUNT, CALL, NOW))
    assert (url.scheme, url.netloc, url.path) == ("", "", f"/recordings/{CALL}.wav")
    query = made()
    assert list(query) == ["expires", "signature"]
    assert int(query["expires"]) == int((NOW + timedelta(hours=1)).timestamp())
    assert ACCOUNT not in LINKS.link(ACCOUNT, CALL, NOW)


def test_a_link_opens_its_recording_until_it_ends() -> None:
    query = made()
    assert LINKS.opens(ACCOUNT, CALL, query, NOW)
    assert LINKS.opens(ACCOUNT, CALL, query, NOW + LINK_VALID - timedelta(seconds=1))
    assert not LINKS.opens(ACCOUNT, CALL, query, NOW + LINK_VALID)
    assert not LINKS.opens(ACCOUNT, CALL, query, NOW + timedelta(days=365))


@pytest.mark.parametrize(
    ("account", "call"), [(OTHER_ACCOUNT, CALL), (ACCOUNT, OTHER_CALL), (CALL, ACCOUNT), ("nobody", CALL)]
)
def test_a_link_opens_nothing_else(account: str, call: str) -> None:
    assert not LINKS.opens(account, call, made(), NOW)


def test_every_character_of_a_link_counts() -> None:
    for name, value in made().items():
        for place, character in enumerate(value):
            for other in "0123456789abcdefABCDEF-_=+ ":
                changed = {**made(), name: value[:place] + other + value[place + 1 :]}
                assert LINKS.opens(ACCOUNT, CALL, changed, NOW) is (other == character), (name, place, other)


@pytest.mark.parametrize(
    "changed",
    [
        {"expires": ""},
        {"expires": "9" * 400},
        {"expires": "-1"},
        {"expires": "+1785591000"},
        {"expires": "1e12"},
        {"expires": "\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661\u0661"},
        {"expires": "1785591000\n"},
        {"signature": ""},
        {"signature": "0" * 63},
        {"signature": "0" * 65},
        {"signature": "\uff10" * 64},
        {"signature": "g" * 64},
        {"signature": "0" * 100_000},
    ],
)
def test_what_is_malformed_opens_nothing(changed: dict[str, str]) -> None:
    query = {**made(), **changed}
    assert not may_open(query, NOW)
    assert not LINKS.opens(ACCOUNT, CALL, query, NOW)


@pytest.mark.parametrize("left", ["expires", "signature"])
def test_half_a_link_opens_nothing(left: str) -> None:
    assert not LINKS.opens(ACCOUNT, CALL, {left: made()[left]}, NOW)


@given(st.text(), st.text())
def test_no_text_whatever_breaks_the_judgement(expires: str, signature: str) -> None:
    assert not LINKS.opens(ACCOUNT, CALL, {"expires": expires, "signature": signature}, NOW)


def test_every_server_with_the_key_opens_a_link_and_no_other() -> None:
    assert RecordingLinks(SecretBox([KEY])).opens(ACCOUNT, CALL, made(), NOW)
    assert not RecordingLinks(SecretBox([OTHER_KEY])).opens(ACCOUNT, CALL, made(), NOW)


def test_a_link_outlives_the_rotation_of_the_key() -> None:
    rotated = RecordingLinks(SecretBox([OTHER_KEY, KEY]))
    assert rotated.opens(ACCOUNT, CALL, made(), NOW)
    assert not LINKS.opens(ACCOUNT, CALL, made(rotated), NOW), (
        "made with the new key, which is not known here"
    )
