"""Accounts, API keys, and principals of requests."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Literal

Service = Literal["platform", "messaging", "assistant", "tools", "admin", "all"]
Environment = Literal["live", "sandbox"]

MAX_RETENTION_DAYS: Final = 3650
"""Longest retention of an account's recordings."""


@dataclass(frozen=True, slots=True)
class StreamSecret:
    """Key that signs requests to agents, its creation time, and the previous key while both are used."""

    secret: str = field(repr=False)
    made_at: datetime
    former: str | None = field(default=None, repr=False)
    former_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Account:
    """
    Customer, with its limits and the secret that signs its webhooks.

    None means the server's limit for ``requests_per_minute`` and ``assistant_requests_per_minute``, no limit
    for ``max_spend_paise_per_hour``, and the server's retention for ``recording_retention_days``; a retention
    of 0 keeps recordings without end.

    The previous webhook secret signs beside ``webhook_secret`` until ``former_webhook_until``; see
    ``webhook_secrets``.
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
    former_webhook_secret: str | None = field(default=None, repr=False)
    former_webhook_until: datetime | None = None
    stream_protocol: str | None = None
    """Default stream protocol of the account's agents; None for the server's default."""
    stream_secret: StreamSecret | None = None

    def webhook_secrets(self, now: datetime) -> tuple[str, ...]:
        """Secrets that sign the account's webhooks, the current one first: two during a rotation."""
        former = self._former_webhook_secret(now)
        return (self.webhook_secret,) if former is None else (self.webhook_secret, former)

    def stream_secrets(self, now: datetime) -> tuple[str | None, str | None]:
        """
        Secrets that sign requests to agents: the current one, and the previous one while it is valid.

        An account without a stream secret signs with its webhook secrets.
        """
        own = self.stream_secret
        if own is None:
            return self.webhook_secret or None, self._former_webhook_secret(now)
        return own.secret, own.former if own.former_until is not None and own.former_until > now else None

    def _former_webhook_secret(self, now: datetime) -> str | None:
        """The previous webhook secret, while it is valid."""
        until = self.former_webhook_until
        return self.former_webhook_secret if until is not None and until > now else None


@dataclass(frozen=True, slots=True)
class ApiKey:
    """
    API key without the key itself, of which only a hash is stored; ``prefix`` identifies it to users.

    A key of the service ``all`` opens every service. The scope ``*`` stands for all scopes of the service.
    ``revoked_at`` is in the future while a rotated key may still be used beside its successor.
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
        """Return True if the key is no longer valid."""
        return self.revoked_at is not None and self.revoked_at <= now


@dataclass(frozen=True, slots=True)
class Principal:
    """
    Authenticated key of a request.

    ``scopes`` has the scopes that ``*`` stands for, besides ``*`` itself. ``requests_per_minute`` and
    ``assistant_requests_per_minute`` are the account's own limits, the latter for the voice assistant, None
    if it has none. A principal of the ``sandbox`` places sandbox calls of the assistant and sees no others.
    """

    account_sid: str
    key_id: str
    service: Service
    scopes: frozenset[str]
    requests_per_minute: int | None = None
    sandbox: bool = False
    assistant_requests_per_minute: int | None = None
