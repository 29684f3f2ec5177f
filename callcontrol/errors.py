"""
Errors of the domain, and their codes.

::

    DomainError
    ├── ValidationFailed        VALIDATION_ERROR      names every wrong field
    │   └── InvalidNumbers      invalid_numbers       masking, lower case
    ├── Unauthorized            UNAUTHORIZED
    ├── InsufficientBalance     INSUFFICIENT_BALANCE
    │   └── SpendLimitReached   SPEND_LIMIT_EXCEEDED
    ├── Forbidden               FORBIDDEN
    │   ├── DestinationForbidden
    │   └── KycRequired         KYC_REQUIRED
    ├── NumberNotOwned          NUMBER_NOT_OWNED
    ├── NumberTaken             NUMBER_NOT_OWNED      on purchase: somebody else has it
    ├── QuoteStale              QUOTE_STALE
    ├── NotFound                NOT_FOUND
    ├── CallEnded               CALL_ENDED
    ├── Conflict                CONFLICT
    │   ├── AlreadyExists       ALREADY_EXISTS        messaging
    │   └── WrongCallState      CONFLICT              the call is not in a state that allows the change
    ├── IdempotencyConflict     IDEMPOTENCY_CONFLICT
    ├── InboundBound            inbound_bound         number wiring, lower case
    ├── InboundConflict         inbound_conflict
    ├── BindFailed              bind_failed           names every wrong field
    ├── NotConfigured           not_configured
    ├── ChannelNotConfigured    CHANNEL_NOT_CONFIGURED
    ├── ProviderRejected        PROVIDER_REJECTED     the messaging network refused the content
    ├── SendFailed              SEND_FAILED           the messaging network did not accept a message
    ├── ToolFailed              TOOL_FAILED           a tool gave no answer, or a wrong one
    ├── ToolTimedOut            TOOL_TIMED_OUT
    ├── RateLimited             RATE_LIMITED
    ├── ServiceUnavailable      SERVICE_UNAVAILABLE
    │   └── NodeUnreachable     NODE_UNREACHABLE      another node must answer, and cannot be asked
    ├── OutcomeUnknown          OUTCOME_UNKNOWN       another node got the request, and did not answer
    └── Internal                INTERNAL_ERROR

Callers branch on the class or its ``code``, never on the message; the message says what to do next. Codes are
those of the platform interface; a service whose interface spells them in lower case converts them at its own
edge.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Final, TypeVar

T = TypeVar("T")

NO_ROUTE: Final = "no_route"
"""Reason of a refused number or address that no carrier serves; repeating the request does not help."""
OPTED_OUT: Final = "opted_out"
"""Reason of a refused recipient who does not want messages of the account."""


@dataclass(frozen=True, slots=True)
class FieldError:
    """
    One wrong field of a request, by its path (``stream.url``), and what is wrong with it.

    ``reason`` is a word that callers may branch on, for the errors that have one.
    """

    field: str
    message: str
    reason: str | None = None

    def shown(self) -> dict[str, str]:
        """Return the error as it stands in the details of a refusal."""
        shown = {"field": self.field, "message": self.message}
        return shown if self.reason is None else {**shown, "reason": self.reason}


class DomainError(Exception):
    """A refused request: a code that callers may branch on and a message for people."""

    code: ClassVar[str] = "INTERNAL_ERROR"
    limit: str | None = None
    """The limit of calls that is reached, as metrics name it; None for any other refusal."""

    def __init__(self, message: str, *, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.details: dict[str, Any] = dict(details or {})


class ValidationFailed(DomainError):
    """The request has missing, unknown or invalid fields; all of them are listed."""

    code = "VALIDATION_ERROR"

    def __init__(self, errors: Sequence[FieldError], message: str | None = None) -> None:
        listed = tuple(errors)
        super().__init__(message or describe(listed), details={"errors": [error.shown() for error in listed]})
        self.errors = listed

    @classmethod
    def of(cls, field: str, message: str, reason: str | None = None) -> "ValidationFailed":
        """Return the refusal of a single field."""
        return cls([FieldError(field, message, reason)])

    def renamed(self, name_of: Callable[[str], str]) -> "ValidationFailed":
        """Return the refusal with its fields named as the caller's own request names them."""
        return ValidationFailed([replace(error, field=name_of(error.field)) for error in self.errors])


class InvalidNumbers(ValidationFailed):
    """The two parties of a masked call cannot be joined: they are the same number."""

    code = "invalid_numbers"


class Unauthorized(DomainError):
    """The API key is missing, malformed, unknown or revoked."""

    code = "UNAUTHORIZED"


class InsufficientBalance(DomainError):
    """The wallet cannot cover what the request would reserve."""

    code = "INSUFFICIENT_BALANCE"


class SpendLimitReached(InsufficientBalance):
    """The account's spending limit for this hour is reached; the wallet itself could pay."""

    code = "SPEND_LIMIT_EXCEEDED"


class Forbidden(DomainError):
    """The resource belongs to another account, or the key lacks the scope."""

    code = "FORBIDDEN"


class DestinationForbidden(Forbidden):
    """The host of a URL is, or resolves to, an address this server must not connect to."""


@dataclass(slots=True, kw_only=True)
class RequestErrors:
    """
    Errors of a request, collected while its values are read.

    ``forbidden`` is the first ``Forbidden``, such as that of a country: it is told once all values are right.
    """

    errors: list[FieldError] = field(default_factory=list)
    forbidden: Forbidden | None = None

    def read(self, value: Callable[[], T]) -> T | None:
        """Return what ``value`` returns; None if it raises ``ValidationFailed`` or ``Forbidden``."""
        try:
            return value()
        except ValidationFailed as refusal:
            self.errors += refusal.errors
        except Forbidden as refusal:
            self.forbidden = self.forbidden or refusal
        return None

    def raise_found(self) -> None:
        """
        Refuse the request if anything is wrong with it.

        Raises:
            ValidationFailed: Values are wrong; all of them are named.
            Forbidden: All values are right, and one of them is not allowed.
        """
        if self.errors:
            raise ValidationFailed(self.errors)
        if self.forbidden is not None:
            raise self.forbidden


class NumberNotOwned(DomainError):
    """The number is not on the account, or is not registered for outbound use."""

    code = "NUMBER_NOT_OWNED"


class KycRequired(Forbidden):
    """The account has not completed KYC, without which no number is sold."""

    code = "KYC_REQUIRED"


class NumberTaken(DomainError):
    """On purchase: someone has bought the number already."""

    code = "NUMBER_NOT_OWNED"


class QuoteStale(DomainError):
    """The price is not the one that was acknowledged, or changed during the purchase."""

    code = "QUOTE_STALE"


class NotFound(DomainError):
    """No such resource on the account."""

    code = "NOT_FOUND"


class CallEnded(DomainError):
    """The call has already ended."""

    code = "CALL_ENDED"


class Conflict(DomainError):
    """The resource is in a state that does not allow the request."""

    code = "CONFLICT"


class AlreadyExists(Conflict):
    """The account has a resource of this name or number already; `details.id` is the existing one."""

    code = "ALREADY_EXISTS"


class WrongCallState(Conflict):
    """The call is not in a state that allows the change."""


class IdempotencyConflict(DomainError):
    """The idempotency key was used for another request, or its first request is still running."""

    code = "IDEMPOTENCY_CONFLICT"


class InboundBound(DomainError):
    """Inbound calls of the number are still bound; unbind first or force."""

    code = "inbound_bound"


class InboundConflict(DomainError):
    """Inbound calls of the number are bound elsewhere; force takes them over."""

    code = "inbound_conflict"


class BindFailed(DomainError):
    """The inbound binding was rejected; the wrong fields are listed."""

    code = "bind_failed"

    def __init__(self, errors: Sequence[FieldError], message: str | None = None) -> None:
        listed = tuple(errors)
        super().__init__(message or describe(listed), details={"errors": [error.shown() for error in listed]})
        self.errors = listed


class NotConfigured(DomainError):
    """There is no platform carrier to provision the number on."""

    code = "not_configured"


class ChannelNotConfigured(DomainError):
    """The account has no connected messaging channel."""

    code = "CHANNEL_NOT_CONFIGURED"


class ProviderRejected(DomainError):
    """The messaging network reviewed the content and refused it."""

    code = "PROVIDER_REJECTED"


class SendFailed(DomainError):
    """The messaging network did not accept the message."""

    code = "SEND_FAILED"


class ToolFailed(DomainError):
    """A tool did not answer, or its answer is not in the promised form."""

    code = "TOOL_FAILED"


class ToolTimedOut(DomainError):
    """A tool timed out; its action may have been done nevertheless."""

    code = "TOOL_TIMED_OUT"


class RateLimited(DomainError):
    """Too many requests; repeat after ``retry_after_s``."""

    code = "RATE_LIMITED"

    def __init__(self, message: str, *, retry_after_s: float, limit: str | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.limit = limit


class ServiceUnavailable(DomainError):
    """The server cannot take the request now: no capacity, draining, or its database is failing."""

    code = "SERVICE_UNAVAILABLE"

    def __init__(self, message: str, *, retry_after_s: float = 1.0, limit: str | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s
        self.limit = limit


class NodeUnreachable(ServiceUnavailable):
    """
    Another node must answer the request, and cannot be asked.

    The API forwards a request that is refused with it, and sends the refusal if that fails.

    Attributes:
        node: That node.
        subject: What is there: a clause that ends before the place.
    """

    code = "NODE_UNREACHABLE"

    def __init__(
        self, node: str, subject: str = "The call is active", why: str = "which this one cannot ask"
    ) -> None:
        super().__init__(f"{subject} on the node {node}, {why}.", retry_after_s=2.0)
        self.node = node
        self.subject = subject

    def because(self, why: str) -> "NodeUnreachable":
        """Return the refusal with another reason."""
        return NodeUnreachable(self.node, self.subject, why)


class OutcomeUnknown(DomainError):
    """Another node got the request and did not answer: it may have been carried out."""

    code = "OUTCOME_UNKNOWN"

    def __init__(self, node: str) -> None:
        super().__init__(
            f"The node {node} got the request and did not answer, so it may have been carried out; "
            "look at its effect before you repeat it."
        )


class Internal(DomainError):
    """An unexpected failure of the server itself; the cause is in its log, not in the message."""

    code = "INTERNAL_ERROR"


class SecretsUnreadable(Exception):
    """
    Stored secrets cannot be opened: the key is a different one, or the secrets were changed.

    It is addressed to the operator, not to API users, and aborts the start.
    """


class NodeTaken(Exception):
    """
    Another server on the database has the name of this one's node, and would lose its calls.

    It is addressed to the operator, and aborts the start.
    """

    def __init__(self, node: str, url: str) -> None:
        at = f" at {url}" if url else ""
        super().__init__(
            f"a server with the node {node} runs on this database already{at}, and would lose its calls: "
            "stop it first, or set TRUNKLINE_NODE to another name"
        )


class SchemaTooNew(Exception):
    """
    The database was migrated by a later version of this program, beside which this one does not run.

    It is addressed to the operator and aborts the start.
    """


class NodesTooOld(Exception):
    """
    Nodes run whose version does not work with the schema of this one; nothing was migrated.

    It is addressed to the operator and aborts the start.
    """

    def __init__(self, nodes: Sequence[str]) -> None:
        super().__init__(
            f"nodes that run cannot go on with the schema of this version: {', '.join(nodes)}; "
            "drain all nodes of their version, then start this one"
        )


def too_many_calls(max_calls: int) -> ServiceUnavailable:
    """Refusal of a call of an account that has as many as it may."""
    return ServiceUnavailable(
        f"The account has {max_calls} calls up, which is its limit; wait until one ends.",
        retry_after_s=5.0,
        limit="account_calls",
    )


def too_many_starts(max_cps: int, wait_s: float) -> RateLimited:
    """Refusal of a call of an account that begins calls faster than it may."""
    return RateLimited(
        f"The account may begin {max_cps} calls a second; slow down.",
        retry_after_s=wait_s,
        limit="account_rate",
    )


def no_free_trunk(wait_s: float = 5.0) -> ServiceUnavailable:
    """Refusal of a call that no gateway can take now; ``wait_s`` is until one may."""
    return ServiceUnavailable(
        "No carrier can take this call now: its gateways are at their limit or in cooldown; try again"
        " shortly.",
        retry_after_s=wait_s,
        limit="trunk",
    )


def describe(errors: Sequence[FieldError]) -> str:
    """One sentence for a list of wrong fields."""
    if not errors:
        return "The request is invalid."
    return "; ".join(f"{error.field}: {error.message}" for error in errors)
