"""
Routing of calls to masked numbers, without I/O: targets of callers, and answers of the routing webhook.

A session of the caller comes first. Without one the account's routing webhook is asked, if there is one; a
caller that neither knows is an unknown caller.
"""

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from callcontrol.clock import timestamp
from callcontrol.errors import DomainError
from callcontrol.masking.parties import MAX_DURATION_S, MIN_DURATION_S
from callcontrol.masking.sessions import MaskingSession
from callcontrol.masking.steps.connect import Connect, connect_to
from callcontrol.models.parties import PhoneTarget
from callcontrol.routing.targets import is_answered_by_somebody, parse_target

TIMEOUT_S: Final = 3.0
"""Time limit of a routing webhook, from the lookup of its name to the last byte of its answer."""

MAX_ANSWER_BYTES: Final = 16 * 1024

ROUTING_EVENT: Final = "masking.route"

_MAX_SHOWN_CHARS: Final = 100


class InvalidRoutingAnswer(Exception):
    """The answer of a routing webhook is invalid; the message names the reason."""


@dataclass(frozen=True, slots=True)
class CallerRoute:
    """Target of a caller, in E.164, with settings of the call; and the session that routes it, if any."""

    target_number: str
    record: bool
    max_duration_s: int | None = None
    session_id: str | None = None

    def connect(self, masked_number: str) -> Connect:
        """The step that joins the two."""
        return connect_to(
            self.target_number, masked_number, max_duration_s=self.max_duration_s, record=self.record
        )


UnroutedReason = Literal["unknown", "rejected"]
"""No session or webhook names a target, or the customer's server rejects the caller."""

RoutingResult = CallerRoute | UnroutedReason


def session_route(session: MaskingSession, caller: str, *, record_calls: bool) -> CallerRoute:
    """The route of a session for one of its parties."""
    return CallerRoute(
        session.peer_of(caller),
        record_calls if session.record is None else session.record,
        session.call_time_limit_s,
        session.session_id,
    )


def routing_request(call_sid: str, caller: str | None, masked_number: str, at: datetime) -> bytes:
    """The JSON body of the request to a routing webhook; a caller without a number is null."""
    body = {
        "call_sid": call_sid,
        "caller_number": caller,
        "masked_number": masked_number,
        "timestamp": timestamp(at),
    }
    return json.dumps(body, separators=(",", ":")).encode()


def read_routing(
    body: bytes,
    *,
    caller: str | None,
    masked_number: str,
    record_calls: bool,
    allowed_countries: Collection[str],
    is_masked: Callable[[str], bool] = lambda _: False,
) -> RoutingResult:
    """
    Parse the answer of a routing webhook; unknown fields are ignored.

    ``is_masked`` returns True for a masked number, which must not be a target.

    Raises:
        InvalidRoutingAnswer: The answer is invalid, or names no target that can be called.
    """
    try:
        answer: Any = json.loads(body)
    except (ValueError, RecursionError):
        raise InvalidRoutingAnswer("the answer is no JSON") from None
    if not isinstance(answer, dict):
        raise InvalidRoutingAnswer("the answer is no JSON object")
    if answer.get("action") == "reject":
        return "rejected"
    if answer.get("action") is not None:
        raise InvalidRoutingAnswer(f"action must be reject, not {_shown(answer['action'])}")
    target = _target(answer.get("target_number"), allowed_countries)
    if target in (caller, masked_number):
        raise InvalidRoutingAnswer("target_number must be neither the caller nor the masked number")
    if is_masked(target):
        raise InvalidRoutingAnswer("target_number must not be a masked number")
    record = answer.get("record")
    if record is not None and not isinstance(record, bool):
        raise InvalidRoutingAnswer(f"record must be true or false, not {_shown(record)}")
    return CallerRoute(
        target, record_calls if record is None else record, _limit_s(answer.get("max_duration_sec"))
    )


def _target(given: object, allowed_countries: Collection[str]) -> str:
    if not isinstance(given, str):
        raise InvalidRoutingAnswer("target_number must be a number as text")
    try:
        target = parse_target(given, allowed_countries, field="target_number")
    except DomainError as refusal:
        raise InvalidRoutingAnswer(refusal.message) from None
    if not isinstance(target, PhoneTarget) or not is_answered_by_somebody(target.number):
        raise InvalidRoutingAnswer("target_number must be the telephone number of a subscriber")
    return target.number


def _limit_s(given: object) -> int | None:
    if given is None:
        return None
    if type(given) is not int or not MIN_DURATION_S <= given <= MAX_DURATION_S:
        raise InvalidRoutingAnswer(
            f"max_duration_sec must be {MIN_DURATION_S} to {MAX_DURATION_S}, not {_shown(given)}"
        )
    return given


def _shown(value: object) -> str:
    return repr(value)[:_MAX_SHOWN_CHARS]
