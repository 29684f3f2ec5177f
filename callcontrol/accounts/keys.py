"""Accounts and API keys: key format, scopes, stored hash, webhook secrets and validation."""

import base64
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final, get_args

from callcontrol.errors import FieldError, Forbidden, Unauthorized, ValidationFailed
from callcontrol.models import Account, Environment, Principal, Service
from callcontrol.models.accounts import MAX_RETENTION_DAYS
from callcontrol.wallet.money import MAX_PAISE

PREFIXES: Final[Mapping[Service, str]] = {
    "platform": "vp_",
    "messaging": "vm_",
    "assistant": "va_",
    "tools": "vt_",
    "admin": "vadm_",
    "all": "vk_",
}

_KEY_SCOPES: Final = ("keys.read", "keys.write")
_PLATFORM_SCOPES: Final = (
    *("calls.read", "calls.write", "calls.listen", "numbers.read", "numbers.write"),
    *("trunks.read", "trunks.write"),
    *("otp.send", "otp.read", "masking.read", "masking.write", "webhooks.read", "webhooks.write"),
    *("models.read", "models.write"),
    *_KEY_SCOPES,
)
_MESSAGING_SCOPES: Final = (
    *("messages.send", "campaigns.create", "campaigns.read", "templates.read", "templates.write"),
    *("contacts.read", "contacts.write", "webhooks.read", "webhooks.write"),
    *_KEY_SCOPES,
)
_SCOPES: Final[Mapping[Service, tuple[str, ...]]] = {
    "platform": _PLATFORM_SCOPES,
    "messaging": _MESSAGING_SCOPES,
    "assistant": ("assistant", "assistant.keys"),
    "tools": ("tools",),
    "admin": ("admin",),
}
SCOPES: Final[Mapping[Service, tuple[str, ...]]] = {
    **_SCOPES,
    "all": tuple(dict.fromkeys(scope for scopes in _SCOPES.values() for scope in scopes)),
}
"""All scopes of the keys of each service, apart from ``*`` and ``tool:NAME``."""

EVERY_SCOPE: Final = "*"
"""Scope that stands for all scopes of its key's service, those of later versions too."""

_TOOL_SCOPE: Final = "tool:"
_ONE_TOOL: Final = re.compile(_TOOL_SCOPE + "[A-Za-z0-9_-]{1,64}")
_EXPLICIT: Final = frozenset(
    {"calls.listen", "webhooks.read", "webhooks.write", "keys.write", "assistant.keys"}
)
MAX_OVERLAP_S: Final = 30 * 24 * 3600
"""Longest overlap of a rotated key or secret with its successor, in seconds."""
DEFAULT_OVERLAP_S: Final = 3600
"""Default overlap of a rotated key with its successor, in seconds."""
DEFAULT_SECRET_OVERLAP_S: Final = 24 * 3600
"""Default overlap of a rotated webhook secret with its successor, in seconds."""

_KEY_BYTES: Final = 32
_BODY_CHARS: Final = 43
_SHOWN_CHARACTERS: Final = 5
_MAX_NAME_CHARACTERS: Final = 200
_LIMITS: Final = (
    ("max_cps", 1, 100_000),
    ("max_calls", 1, 100_000),
    ("requests_per_minute", 1, 1_000_000),
    ("assistant_requests_per_minute", 1, 10_000),
)


def make_key(service: Service, random_bytes: bytes) -> str:
    """Build an API key of a service from 32 random bytes."""
    assert len(random_bytes) == _KEY_BYTES
    return PREFIXES[service] + base64.urlsafe_b64encode(random_bytes).rstrip(b"=").decode()


def hash_key(key: str) -> str:
    """
    Hash under which a key is stored.

    A plain SHA-256 is enough: a slow or salted hash protects guessable secrets, and 256 random bits cannot
    be guessed. A key is found by its hash in one indexed query.
    """
    return hashlib.sha256(key.encode()).hexdigest()


def shown_prefix(key: str, service: Service) -> str:
    """Beginning of a key, by which users distinguish their keys."""
    return key[: len(PREFIXES[service]) + _SHOWN_CHARACTERS]


def check_form(key: str) -> None:
    """
    Reject a malformed key without a database query.

    Raises:
        Unauthorized: It has no known prefix, the wrong length, or characters outside base64url.
    """
    body = next((key[len(prefix) :] for prefix in PREFIXES.values() if key.startswith(prefix)), "")
    if len(body) != _BODY_CHARS or not body.isascii() or not body.replace("-", "").replace("_", "").isalnum():
        raise Unauthorized(
            f"The API key is malformed: behind its prefix a key has {_BODY_CHARS} letters, digits, - and _;"
            " send it whole."
        )


def parse_service(text: str) -> Service:
    """
    Return the service with a name.

    Raises:
        ValidationFailed: There is no such service.
    """
    known: tuple[Service, ...] = get_args(Service)
    for service in known:
        if service == text:
            return service
    raise ValidationFailed.of("service", f"must be one of {', '.join(known)}")


def scopes_of(service: Service, wanted: Iterable[str] | None) -> tuple[str, ...]:
    """
    Scopes of a new key: the wanted ones, else the default scopes of its service.

    The webhook scopes let a holder redirect events, ``calls.listen`` lets it hear what people say, and
    ``keys.write`` and ``assistant.keys`` let it create keys, so they are granted only if named, or by ``*``,
    which stands alone. Scopes ``tool:NAME`` limit a key
    of the service ``tools`` to these tools.

    Raises:
        ValidationFailed: A scope does not belong to the service.
    """
    known = SCOPES[service]
    if wanted is None:
        return tuple(scope for scope in known if scope not in _EXPLICIT)
    chosen = tuple(dict.fromkeys(wanted))
    if chosen == (EVERY_SCOPE,):
        return chosen
    if EVERY_SCOPE in chosen:
        raise ValidationFailed.of(
            "scopes", f'must be ["{EVERY_SCOPE}"] alone; leave {EVERY_SCOPE} out to name single scopes'
        )
    if service == "tools" and chosen:
        chosen = tuple(dict.fromkeys((*known, *chosen)))
    unknown = [scope for scope in chosen if scope not in known and not _is_of_tool(service, scope)]
    if unknown or not chosen:
        among = f"must be {EVERY_SCOPE} alone, or among {', '.join(known)}"
        raise ValidationFailed.of("scopes", among + (f", not {', '.join(unknown)}" if unknown else ""))
    return chosen


def scope_errors(service: Service, wanted: Iterable[str] | None) -> list[FieldError]:
    """Errors of the wanted scopes of a new key; see `scopes_of`."""
    try:
        scopes_of(service, wanted)
    except ValidationFailed as refusal:
        return list(refusal.errors)
    return []


def granted(service: Service, scopes: Iterable[str]) -> frozenset[str]:
    """Scopes by which requests with a key are judged: its own, and those that ``*`` stands for."""
    own = frozenset(scopes)
    return own.union(SCOPES[service]) if EVERY_SCOPE in own else own


def _is_of_tool(service: Service, scope: str) -> bool:
    return service == "tools" and _ONE_TOOL.fullmatch(scope) is not None


def tool_scopes(names: Iterable[str]) -> tuple[str, ...]:
    """Scopes of a key that is limited to some tools."""
    return (*SCOPES["tools"], *(_TOOL_SCOPE + name for name in names))


def tools_of(scopes: Iterable[str]) -> frozenset[str] | None:
    """Tools that the scopes limit a key to; None if it is not limited."""
    names = frozenset(scope.removeprefix(_TOOL_SCOPE) for scope in scopes if scope.startswith(_TOOL_SCOPE))
    return names or None


def opens(service: Service, of: Service) -> bool:
    """Return True if a key of `service` may be used for what belongs to `of`; `all` fits every service."""
    return service == of or "all" in (service, of)


def check_environment(service: Service, environment: Environment) -> None:
    """
    Reject a key of the sandbox for a service that has none.

    Raises:
        ValidationFailed: The environment is ``sandbox``, and the service is not the voice assistant.
    """
    if environment == "sandbox" and service != "assistant":
        raise ValidationFailed.of("environment", "must be live, but for the service assistant")


def check_managed(
    principal: Principal, service: Service, environment: Environment, scopes: Iterable[str]
) -> None:
    """
    Reject a key that is created, rotated or revoked by a key with fewer rights.

    Raises:
        Forbidden: It has a service or a scope that the principal lacks, or it is a live key, and the
            principal is of the sandbox.
    """
    more = [] if principal.service in (service, "all") else [f"the service {service}"]
    lacking = [scope for scope in scopes if not _holds(principal, scope)]
    if lacking:
        more.append(f"the scope{'s' if len(lacking) > 1 else ''} {', '.join(lacking)}")
    if more:
        lacked = " and ".join(more)
        raise Forbidden(f"A key manages no key with more rights than its own; yours lacks {lacked}.")
    if principal.sandbox and environment != "sandbox":
        raise Forbidden("A key of the sandbox manages keys of the sandbox alone.")


def _holds(principal: Principal, scope: str) -> bool:
    """Return True if a principal has a scope; one that may use every tool may use each of them."""
    if scope.startswith(_TOOL_SCOPE) and tools_of(principal.scopes) is None:
        scope = "tools"
    return scope in principal.scopes


def check_overlap(overlap_s: int) -> None:
    """
    Reject an invalid overlap of a rotated key.

    Raises:
        ValidationFailed: The overlap is negative, or longer than 30 days.
    """
    if not 0 <= overlap_s <= MAX_OVERLAP_S:
        raise ValidationFailed.of("overlap", f"must be 0 to {MAX_OVERLAP_S} seconds")


def with_new_webhook_secret(account: Account, secret: str, overlap_s: int, now: datetime) -> Account:
    """
    Account whose webhooks a new secret signs, beside the previous one for ``overlap_s``.

    A secret that was replaced before ends at once.

    Raises:
        ValidationFailed: The overlap is negative, or longer than 30 days.
    """
    check_overlap(overlap_s)
    former = account.webhook_secret if overlap_s and account.webhook_secret else None
    return replace(
        account,
        webhook_secret=secret,
        former_webhook_secret=former,
        former_webhook_until=now + timedelta(seconds=overlap_s) if former else None,
        updated_at=now,
    )


def check_account(account: Account, balance_paise: int = 0) -> None:
    """
    Reject an account with invalid fields, or a negative opening balance.

    Raises:
        ValidationFailed: With every wrong field.
    """
    errors: list[FieldError] = []
    if not account.name.strip() or len(account.name) > _MAX_NAME_CHARACTERS:
        errors.append(FieldError("name", f"must have 1 to {_MAX_NAME_CHARACTERS} characters"))
    if balance_paise < 0:
        errors.append(FieldError("balance", "must not be negative"))
    for name, least, most in _LIMITS:
        limit = getattr(account, name)
        if limit is not None and not least <= limit <= most:
            errors.append(FieldError(name, f"must be {least} to {most}"))
    spend_paise = account.max_spend_paise_per_hour
    if spend_paise is not None and not 0 <= spend_paise <= MAX_PAISE:
        errors.append(FieldError("max_spend_per_hour", "must be an amount of money that is not negative"))
    days = account.recording_retention_days
    if days is not None and not 0 <= days <= MAX_RETENTION_DAYS:
        errors.append(FieldError("recording_retention_days", f"must be 0 to {MAX_RETENTION_DAYS}"))
    if errors:
        raise ValidationFailed(errors)
