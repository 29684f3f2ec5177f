"""Settings of an account for its streams to voice agents: the default protocol and the signing secret."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from callcontrol.errors import ValidationFailed
from callcontrol.models import Account, StreamSecret
from media.streams import WEBSOCKET_DIALECTS

DEFAULT_OVERLAP_S: Final = 86_400
"""Default time, in seconds, in which requests are signed with the previous secret as well."""

MAX_OVERLAP_S: Final = 30 * 86_400


def check_protocol(protocol: str | None) -> None:
    """
    Refuse an unsupported protocol.

    Raises:
        ValidationFailed: It names the field ``default_stream_protocol``.
    """
    if protocol is not None and protocol not in WEBSOCKET_DIALECTS:
        raise ValidationFailed.of(
            "default_stream_protocol", f"must be one of {', '.join(sorted(WEBSOCKET_DIALECTS))}"
        )


def rotated(account: Account, secret: str, overlap_s: int, now: datetime) -> Account:
    """An account with a new stream secret; the previous one signs requests too for ``overlap_s``."""
    if not 0 <= overlap_s <= MAX_OVERLAP_S:
        raise ValidationFailed.of("overlap_sec", f"must be from 0 to {MAX_OVERLAP_S}")
    former, _ = account.stream_secrets(now)
    until = now + timedelta(seconds=overlap_s)
    made = StreamSecret(secret, now, former if overlap_s else None, until if overlap_s and former else None)
    return replace(account, stream_secret=made, updated_at=now)
