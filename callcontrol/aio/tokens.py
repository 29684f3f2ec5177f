"""Identifiers, secrets and the wall clock: what the rest of the domain is given as arguments."""

import secrets
import uuid
from datetime import UTC, datetime


def new_id() -> str:
    """A new opaque identifier: a random UUID as text."""
    return str(uuid.uuid4())


def new_secret_bytes(size_bytes: int = 32) -> bytes:
    """Random bytes from the operating system's generator."""
    return secrets.token_bytes(size_bytes)


def utc_now() -> datetime:
    """The wall clock, for timestamps; durations are measured on the monotonic clock."""
    return datetime.now(UTC)
