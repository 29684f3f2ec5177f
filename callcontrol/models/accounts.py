"""Accounts, their keys, and who makes a request."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

Service = Literal["platform", "messaging", "assistant", "tools", "admin"]
Environment = Literal["live", "sandbox"]


@dataclass(frozen=True, slots=True)
class StreamSecret:
    """The key that signs requests to agents, since when, and the one before it while both are used."""

    secret: str = field(repr=False)
    made_at: datetime
    former: str | None = field(default=None, repr=False)
    former_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """
    A customer: what it may do at once, and the secret that signs its webhooks.

    None for ``requests_per_minute`` and ``assistant_requests_per_minute`` is the limit of the server, for
    ``max_spend_paise_per_hour`` no limit, and for ``recording_retention_days`` the time of the server; 0
    there keeps recordings for ever.
    """

    account_sid: str
    name: str
    created_at: datetime
    updated_at: datetime
    is_active: bool = True
    kyc_complete: bool = False
    max_cps: int = 10
    max_calls: int = 100
    requests_per_minute: int | None = None
    max_spend_paise_per_hour: int | None = None
    recording_retention_days: int | None = None
    assistant_requests_per_minute: int | None = None
    webhook_secret: str = field(default="", repr=False)
    stream_protocol: str | None = None
    """What agents are spoken to in that nothing else is said of; None for the server's default."""
    stream_secret: StreamSecret | None = None

    def stream_secrets(self, now: datetime) -> tuple[str | None, str | None]:
        """
        What requests to agents are signed with: the secret, and the one before it while that is good, too.

        An account that never made a stream secret signs with that of its webhooks.
        """
        own = self.stream_secret
        if own is None:
            return self.webhook_secret or None, None
        return own.secret, own.former if own.former_until is not None and own.former_until > now else None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """
    An API key without the key itself, of which only a hash is kept; ``prefix`` is for recognition.

    ``revoked_at`` lies ahead while a key that was rotated may still be used beside its successor.
    """

    key_id: str
    account_sid: str
    service: Service
    scopes: tuple[str, ...]
    prefix: str
    created_at: datetime
    revoked_at: datetime | None = None
    name: str | None = None
    environment: Environment = "live"

    def is_revoked(self, now: datetime) -> bool:
        """Whether the key opens nothing any more."""
        return self.revoked_at is not None and self.revoked_at <= now


@dataclass(frozen=True, slots=True)
class Principal:
    """
    Who makes a request: an authenticated key.

    ``requests_per_minute`` is the limit of the account's own for the key's service, None when it has none.
    Who is confined to the ``sandbox`` places sandbox calls of the assistant and sees no others.
    """

    account_sid: str
    key_id: str
    service: Service
    scopes: frozenset[str]
    requests_per_minute: int | None = None
    sandbox: bool = False

    def may(self, scope: str) -> bool:
        """Whether the key carries the scope."""
        return scope in self.scopes
