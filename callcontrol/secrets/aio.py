"""
Encryption of stored secrets.

Secrets needed in the clear (a carrier's password, the secret that signs webhooks) are encrypted with a key
that is not in the database, so a copy or backup of the database reveals nothing. Of secrets that are only
compared (a one-time password) only the digest under the same key is stored.

Each key derives one key for sealing, one for digests and a short name, so that no key has two purposes.
Sealing is AES-256-GCM with a random nonce. A sealed value is bound to its purpose, so a value copied into
another row or column cannot be decrypted there.

Source: NIST SP 800-38D; RFC 2104.
"""

import base64
import binascii
import contextlib
import hmac
import os
import secrets
import stat
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from callcontrol.errors import SecretsUnreadable

KEY_FILE: Final = "secret.key"
"""File of the default key, in the data directory beside the SQLite database."""

KEY_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_MARK: Final = "sealed:1:"
"""Prefix of sealed text, with the version of its format."""


class _Key:
    """Keys derived from one secret key."""

    __slots__ = ("cipher", "digest_key", "name")

    def __init__(self, key: bytes) -> None:
        if len(key) != KEY_BYTES:
            raise ValueError(f"a key has {KEY_BYTES} bytes")
        self.cipher = AESGCM(hmac.digest(key, b"trunkline seal", sha256))
        self.digest_key = hmac.digest(key, b"trunkline digest", sha256)
        self.name = hmac.digest(key, b"trunkline name", sha256)[:4].hex()


class SecretBox:
    """
    Encrypts text with the first of its keys, and decrypts text of any of them.

    Several keys allow rotation: see ``docs/api/keys.md``.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys:
            raise ValueError("at least one key is needed")
        self._first = _Key(keys[0])
        self._keys = {key.name: key for key in (self._first, *(_Key(key) for key in keys[1:]))}
        self._current = f"{_MARK}{self._first.name}:"

    def __repr__(self) -> str:
        return f"SecretBox({', '.join(self._keys)})"

    @property
    def key_names(self) -> tuple[str, ...]:
        """Names of the keys, the sealing key first; a name reveals nothing about its key."""
        return tuple(self._keys)

    def seal(self, purpose: str, text: str) -> str:
        """Encrypt ``text`` for ``purpose``; equal texts give different results."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = self._first.cipher.encrypt(nonce, text.encode("utf-8", "surrogatepass"), purpose.encode())
        return self._current + base64.b64encode(nonce + sealed).decode()

    def open(self, purpose: str, sealed: str) -> str:
        """
        Decrypt the result of ``seal`` for the same purpose.

        Raises:
            SecretsUnreadable: It was sealed with an unknown key or for another purpose, or was changed since.
        """
        name, _, encoded = sealed.removeprefix(_MARK).partition(":")
        key = self._keys.get(name)
        if not sealed.startswith(_MARK) or key is None:
            raise SecretsUnreadable(
                f"The secrets in the database are sealed with the key {name[:8]!r}, and this process has "
                f"{' and '.join(self._keys)}; start it with the TRUNKLINE_SECRET_KEY, or the file secret.key "
                "in the data directory, that the database was used with before."
            )
        try:
            packed = base64.b64decode(encoded, validate=True)
            nonce, content = packed[:_NONCE_BYTES], packed[_NONCE_BYTES:]
            return key.cipher.decrypt(nonce, content, purpose.encode()).decode("utf-8", "surrogatepass")
        except (InvalidTag, binascii.Error, ValueError):
            raise SecretsUnreadable(
                f"The secret for {purpose} was changed since it was sealed; set it anew."
            ) from None

    def is_sealed(self, text: str) -> bool:
        """Return True if a stored text is sealed; earlier versions stored secrets in the clear."""
        return text.startswith(_MARK)

    def is_current(self, text: str) -> bool:
        """Return True if a stored text is sealed with the first key."""
        return text.startswith(self._current)

    def digest(self, purpose: str, data: bytes) -> bytes:
        """Keyed 32-byte digest of ``data``; it cannot be computed or guessed without the key."""
        return _digest(self._first, purpose, data)

    def matches(self, purpose: str, data: bytes, digest: bytes) -> bool:
        """Return True if ``digest`` is that of ``data`` under any of the keys, in constant time."""
        return any([hmac.compare_digest(_digest(key, purpose, data), digest) for key in self._keys.values()])


def _digest(key: _Key, purpose: str, data: bytes) -> bytes:
    # The length prefix separates purpose and data.
    name = purpose.encode()
    return hmac.digest(key.digest_key, len(name).to_bytes(4, "big") + name + data, sha256)


def new_key() -> bytes:
    """Return a random key."""
    return secrets.token_bytes(KEY_BYTES)


def parse_key(text: str) -> bytes:
    """
    Parse a key of 32 bytes, written in base64 (standard or URL-safe) or in 64 hexadecimal digits.

    Raises:
        ValueError: The text is neither; the message does not contain it.
    """
    text = text.strip()
    key = b""
    with contextlib.suppress(ValueError):
        if len(text) == 2 * KEY_BYTES:
            key = bytes.fromhex(text)
        else:
            plain = text.rstrip("=").translate(str.maketrans("-_", "+/"))
            key = base64.b64decode(plain + "=" * (-len(plain) % 4), validate=True)
    if len(key) != KEY_BYTES:
        raise ValueError(f"must be {KEY_BYTES} random bytes in base64, as `openssl rand -base64 32` prints")
    return key


def key_file(path: Path) -> bytes:
    """
    Read the key from a private file; create the file with a new key if it does not exist.

    Processes that start at the same time all get the key of the first one.

    Raises:
        SecretsUnreadable: The file has no key, or everybody on the machine can read or write it.
        OSError: The file cannot be read or created.
    """
    if not path.exists():
        _make(path)
    if stat.S_IMODE(path.stat().st_mode) & (stat.S_IROTH | stat.S_IWOTH):
        raise SecretsUnreadable(f"Everybody on this machine can read {path}; run chmod 600 on it.")
    try:
        return parse_key(path.read_text("ascii"))
    except ValueError:
        raise SecretsUnreadable(
            f"There is no key in {path}; put the key back that the database was used with."
        ) from None


def _make(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        with open(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            file.write(base64.b64encode(new_key()) + b"\n")
            file.flush()
            os.fsync(file.fileno())
        # Linking is atomic, and never replaces a key written by another process.
        with contextlib.suppress(FileExistsError):
            os.link(draft, path)
    finally:
        draft.unlink(missing_ok=True)
