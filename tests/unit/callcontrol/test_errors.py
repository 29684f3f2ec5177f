from __future__ import annotations

from callcontrol import errors


def every(base: type[errors.DomainError]) -> list[type[errors.DomainError]]:
    return [item for child in base.__subclasses__() for item in (child, *every(child))]


def test_every_refusal_has_a_code_of_the_interface() -> None:
    codes = {item.__name__: item.code for item in every(errors.DomainError)}
    assert codes == {
        "AlreadyExists": "ALREADY_EXISTS",
        "BindFailed": "bind_failed",
        "CallEnded": "CALL_ENDED",
        "ChannelNotConfigured": "CHANNEL_NOT_CONFIGURED",
        "Conflict": "CONFLICT",
        "DestinationForbidden": "FORBIDDEN",
        "Forbidden": "FORBIDDEN",
        "IdempotencyConflict": "IDEMPOTENCY_CONFLICT",
        "InboundBound": "inbound_bound",
        "InboundConflict": "inbound_conflict",
        "InsufficientBalance": "INSUFFICIENT_BALANCE",
        "Internal": "INTERNAL_ERROR",
        "InvalidNumbers": "invalid_numbers",
        "KycRequired": "KYC_REQUIRED",
        "NodeUnreachable": "NODE_UNREACHABLE",
        "NotConfigured": "not_configured",
        "NotFound": "NOT_FOUND",
        "NumberNotOwned": "NUMBER_NOT_OWNED",
        "NumberTaken": "NUMBER_NOT_OWNED",
        "OutcomeUnknown": "OUTCOME_UNKNOWN",
        "ProviderRejected": "PROVIDER_REJECTED",
        "QuoteStale": "QUOTE_STALE",
        "RateLimited": "RATE_LIMITED",
        "SendFailed": "SEND_FAILED",
        "ServiceUnavailable": "SERVICE_UNAVAILABLE",
        "SpendLimitReached": "SPEND_LIMIT_EXCEEDED",
        "ToolFailed": "TOOL_FAILED",
        "ToolTimedOut": "TOOL_TIMED_OUT",
        "Unauthorized": "UNAUTHORIZED",
        "ValidationFailed": "VALIDATION_ERROR",
        "WrongCallState": "CONFLICT",
    }


def test_every_refusal_is_in_the_tree_at_the_top_of_the_module() -> None:
    assert errors.__doc__ is not None
    for item in every(errors.DomainError):
        assert item.__name__ in errors.__doc__


def test_wrong_fields_are_in_the_message_and_in_the_details() -> None:
    refusal = errors.ValidationFailed(
        [errors.FieldError("to", "is needed"), errors.FieldError("x", "is unknown")]
    )
    assert str(refusal) == "to: is needed; x: is unknown"
    assert refusal.details == {
        "errors": [{"field": "to", "message": "is needed"}, {"field": "x", "message": "is unknown"}]
    }


def test_a_reason_is_listed_with_its_field_and_stays_when_the_field_is_renamed() -> None:
    refused = errors.ValidationFailed.of("to", "has no route", errors.NO_ROUTE)
    refusal = refused.renamed(lambda name: f"a.{name}")
    assert str(refusal) == "a.to: has no route"
    assert refusal.details == {"errors": [{"field": "a.to", "message": "has no route", "reason": "no_route"}]}
