"""Identifiers, secrets and the wall clock, which the pure modules take as arguments."""

import base64
import os
import secrets
import time
from datetime import UTC, datetime


def new_id() -> str:
    """
    New opaque identifier: a UUIDv7 as text.

    It begins with the time, so rows written together are adjacent in every index on them, and a transaction
    touches few pages however large the tables are; 74 of its bits are random.

    Source: RFC 9562 5.7.
    """
    number = (time.time_ns() // 1_000_000) << 80 | int.from_bytes(os.urandom(10))
    number = number & ~(0xF000 << 64) & ~(0xC000 << 48) | (0x7000 << 64) | (0x8000 << 48)
    text = f"{number:032x}"
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def new_secret_bytes(size_bytes: int = 32) -> bytes:
    """Random bytes from the operating system's generator."""
    return secrets.token_bytes(size_bytes)


def new_webhook_secret() -> str:
    """Signing secret for requests to customers' servers, in the format of Standard Webhooks."""
    return "whsec_" + base64.b64encode(new_secret_bytes()).decode()


def new_digits(count: int) -> str:
    """Random digits that people hear and type; any may be zero."""
    return f"{secrets.randbelow(10**count):0{count}d}"


def utc_now() -> datetime:
    """Wall clock, for timestamps; durations are measured on the monotonic clock."""
    return datetime.now(UTC)


def unix_s() -> float:
    """Wall clock in seconds since 1970, for times that become a ``datetime`` only when they are shown."""
    return time.time()


def unix_time_s() -> int:
    """Wall clock in whole seconds since 1970, for signatures."""
    return int(time.time())
