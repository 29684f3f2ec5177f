"""Sealing, opening and digests; the key file."""

from __future__ import annotations

import base64
import stat
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from callcontrol.errors import SecretsUnreadable
from callcontrol.secrets.aio import SecretBox, key_file, new_key, parse_key

OLD, NEW = bytes(range(32)), bytes(range(32, 64))
BOX = SecretBox([OLD])


@given(st.text(max_size=200), st.text(max_size=40))
def test_what_is_sealed_opens_again_and_shows_nothing(text: str, purpose: str) -> None:
    sealed = BOX.seal(purpose, text)
    assert BOX.open(purpose, sealed) == text
    assert sealed.isascii() and "\0" not in sealed
    assert len(text) < 4 or text not in sealed
    assert BOX.seal(purpose, text) != sealed


def test_sealed_text_opens_for_its_purpose_alone() -> None:
    sealed = BOX.seal("carriers.register_password/1", "secret")
    with pytest.raises(SecretsUnreadable, match="carriers.register_password/2"):
        BOX.open("carriers.register_password/2", sealed)


def test_any_change_of_sealed_text_is_noticed() -> None:
    sealed = BOX.seal("p", "secret")
    mark, encoded = sealed.rsplit(":", 1)
    packed = bytearray(base64.b64decode(encoded))
    for place in range(len(packed)):
        packed[place] ^= 1
        with pytest.raises(SecretsUnreadable):
            BOX.open("p", f"{mark}:{base64.b64encode(packed).decode()}")
        packed[place] ^= 1
    for broken in (f"{mark}:", f"{mark}:!", sealed[:-4], "sealed:1:", "sealed:2:x:y", ""):
        with pytest.raises(SecretsUnreadable):
            BOX.open("p", broken)


def test_another_key_is_named_and_opens_nothing() -> None:
    sealed = BOX.seal("p", "secret")
    other = SecretBox([NEW])
    with pytest.raises(SecretsUnreadable) as refusal:
        other.open("p", sealed)
    assert BOX.key_names[0] in str(refusal.value) and other.key_names[0] in str(refusal.value)
    assert "TRUNKLINE_SECRET_KEY" in str(refusal.value)


def test_keys_are_replaced_one_by_another() -> None:
    sealed = BOX.seal("p", "secret")
    both = SecretBox([NEW, OLD])
    assert both.open("p", sealed) == "secret"
    assert both.is_sealed(sealed) and not both.is_current(sealed)
    again = both.seal("p", "secret")
    assert both.is_current(again)
    assert SecretBox([NEW]).open("p", again) == "secret"


def test_digests_are_of_their_purpose_and_outlive_a_replaced_key() -> None:
    digest = BOX.digest("otp/1", b"4711")
    assert len(digest) == 32 and digest == BOX.digest("otp/1", b"4711")
    assert BOX.matches("otp/1", b"4711", digest)
    assert not BOX.matches("otp/1", b"4712", digest)
    assert not BOX.matches("otp/2", b"4711", digest)
    assert BOX.digest("otp/14", b"711") != digest
    assert SecretBox([NEW, OLD]).matches("otp/1", b"4711", digest)
    assert not SecretBox([NEW]).matches("otp/1", b"4711", digest)


def test_a_box_does_not_show_its_keys() -> None:
    shown = repr(BOX)
    assert shown == f"SecretBox({BOX.key_names[0]})"
    assert OLD.hex() not in shown and base64.b64encode(OLD).decode() not in shown
    with pytest.raises(ValueError, match="at least one"):
        SecretBox([])
    with pytest.raises(ValueError, match="32 bytes"):
        SecretBox([b"short"])


@pytest.mark.parametrize(
    "text",
    [
        base64.b64encode(NEW).decode(),
        base64.urlsafe_b64encode(NEW).decode().rstrip("="),
        NEW.hex(),
        f"  {NEW.hex().upper()}\n",
    ],
)
def test_keys_are_read_in_the_usual_spellings(text: str) -> None:
    assert parse_key(text) == NEW


@pytest.mark.parametrize("text", ["", "passw0rd", "zz" * 32, base64.b64encode(b"x" * 31).decode(), "ü" * 43])
def test_what_is_no_key_is_refused_without_being_repeated(text: str) -> None:
    with pytest.raises(ValueError, match="32 random bytes") as refusal:
        parse_key(text)
    assert not text or text not in str(refusal.value)


def test_processes_that_start_together_share_one_key_file(tmp_path: Path) -> None:
    path = tmp_path / "var" / "secret.key"
    with ThreadPoolExecutor(8) as pool:
        keys = set(pool.map(lambda _: key_file(path), range(24)))
    assert len(keys) == 1
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [item.name for item in path.parent.iterdir()] == ["secret.key"]


def test_a_key_file_that_everybody_reads_or_that_has_no_key_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "secret.key"
    path.write_text(base64.b64encode(new_key()).decode())
    path.chmod(0o644)
    with pytest.raises(SecretsUnreadable, match="chmod 600"):
        key_file(path)
    path.chmod(0o640)
    assert len(key_file(path)) == 32
    path.write_text("")
    with pytest.raises(SecretsUnreadable, match="no key"):
        key_file(path)
