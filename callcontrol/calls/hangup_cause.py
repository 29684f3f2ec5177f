"""
Hangup causes, and the mapping of SIP outcomes to call statuses.

The mapping of SIP responses follows Asterisk's ``ast_sip_hangup_sip2cause`` with FreeSWITCH's names and
numbers. Codes above 127 are no Q.850 values: they are shown in records, and on the wire the nearest Q.850
cause replaces them.
"""

from dataclasses import dataclass
from typing import Final

from callcontrol.models import CallStatus
from sip import read_reasons


@dataclass(frozen=True, slots=True)
class HangupCause:
    """
    One hangup cause: its name, its number, and its Q.850 value on the wire.

    ``sip_reason`` is a reason of the protocol SIP that precedes it there.
    """

    name: str
    code: int
    wire_code: int = 0
    sip_reason: str = ""

    @property
    def q850(self) -> int:
        """The value for a Reason header (RFC 3326), 1 to 127."""
        return self.wire_code or self.code

    def reason_header(self) -> str:
        """The value of a Reason header that carries the cause (RFC 3326 2)."""
        reason = f'Q.850;cause={self.q850};text="{self.name}"'
        return f"{self.sip_reason}, {reason}" if self.sip_reason else reason


@dataclass(frozen=True, slots=True)
class Outcome:
    """Outcome of an attempt to reach a party: the status of the call, and the cause."""

    status: CallStatus
    cause: HangupCause


UNALLOCATED_NUMBER: Final = HangupCause("UNALLOCATED_NUMBER", 1)
NO_ROUTE_DESTINATION: Final = HangupCause("NO_ROUTE_DESTINATION", 3)
NORMAL_CLEARING: Final = HangupCause("NORMAL_CLEARING", 16)
USER_BUSY: Final = HangupCause("USER_BUSY", 17)
NO_USER_RESPONSE: Final = HangupCause("NO_USER_RESPONSE", 18)
NO_ANSWER: Final = HangupCause("NO_ANSWER", 19)
CALL_REJECTED: Final = HangupCause("CALL_REJECTED", 21)
NUMBER_CHANGED: Final = HangupCause("NUMBER_CHANGED", 22)
EXCHANGE_ROUTING_ERROR: Final = HangupCause("EXCHANGE_ROUTING_ERROR", 25)
DESTINATION_OUT_OF_ORDER: Final = HangupCause("DESTINATION_OUT_OF_ORDER", 27)
INVALID_NUMBER_FORMAT: Final = HangupCause("INVALID_NUMBER_FORMAT", 28)
FACILITY_REJECTED: Final = HangupCause("FACILITY_REJECTED", 29)
SUBSCRIBER_ABSENT: Final = HangupCause("SUBSCRIBER_ABSENT", 20)
NORMAL_CIRCUIT_CONGESTION: Final = HangupCause("NORMAL_CIRCUIT_CONGESTION", 34)
NORMAL_TEMPORARY_FAILURE: Final = HangupCause("NORMAL_TEMPORARY_FAILURE", 41)
BEARERCAPABILITY_NOTAVAIL: Final = HangupCause("BEARERCAPABILITY_NOTAVAIL", 58)
RECOVERY_ON_TIMER_EXPIRE: Final = HangupCause("RECOVERY_ON_TIMER_EXPIRE", 102)
INTERWORKING: Final = HangupCause("INTERWORKING", 127)
ORIGINATOR_CANCEL: Final = HangupCause("ORIGINATOR_CANCEL", 487, wire_code=16)
LOSE_RACE: Final = HangupCause(
    "LOSE_RACE", 502, wire_code=26, sip_reason='SIP;cause=200;text="Call completed elsewhere"'
)
"""Another branch of the caller's forked call was answered (RFC 3326 3.1)."""
CRASH: Final = HangupCause("CRASH", 700, wire_code=41)
SYSTEM_SHUTDOWN: Final = HangupCause("SYSTEM_SHUTDOWN", 701, wire_code=41)
ALLOTTED_TIMEOUT: Final = HangupCause("ALLOTTED_TIMEOUT", 802, wire_code=16)
MEDIA_TIMEOUT: Final = HangupCause("MEDIA_TIMEOUT", 804, wire_code=41)
STREAM_DISCONNECTED: Final = HangupCause("STREAM_DISCONNECTED", 900, wire_code=41)
BALANCE_EXHAUSTED: Final = HangupCause("BALANCE_EXHAUSTED", 901, wire_code=16)
MACHINE_DETECTED: Final = HangupCause("MACHINE_DETECTED", 902, wire_code=16)
"""A machine answered a call that was for people only."""

_BY_STATUS: Final[dict[int, Outcome]] = {
    status: Outcome(call_status, cause)
    for call_status, cause, statuses in (
        (CallStatus.BUSY, USER_BUSY, (486, 600)),
        (CallStatus.BUSY, CALL_REJECTED, (603,)),
        (CallStatus.NO_ANSWER, NO_USER_RESPONSE, (408,)),
        (CallStatus.NO_ANSWER, NO_ANSWER, (480, 487)),
        (CallStatus.FAILED, CALL_REJECTED, (401, 403, 407)),
        (CallStatus.FAILED, UNALLOCATED_NUMBER, (404, 485, 604)),
        (CallStatus.FAILED, NUMBER_CHANGED, (410,)),
        (CallStatus.FAILED, INVALID_NUMBER_FORMAT, (484,)),
        (CallStatus.FAILED, BEARERCAPABILITY_NOTAVAIL, (488, 606)),
        (CallStatus.FAILED, NO_ROUTE_DESTINATION, (420,)),
        (CallStatus.FAILED, NO_ANSWER, (483,)),
        (CallStatus.FAILED, NORMAL_TEMPORARY_FAILURE, (409, 500)),
        (CallStatus.FAILED, FACILITY_REJECTED, (501,)),
        (CallStatus.FAILED, DESTINATION_OUT_OF_ORDER, (502,)),
        (CallStatus.FAILED, NORMAL_CIRCUIT_CONGESTION, (503,)),
        (CallStatus.FAILED, RECOVERY_ON_TIMER_EXPIRE, (504,)),
    )
    for status in statuses
}
_OTHER_SERVER_FAILURE: Final = Outcome(CallStatus.FAILED, NORMAL_CIRCUIT_CONGESTION)
_OTHER_FAILURE: Final = Outcome(CallStatus.FAILED, INTERWORKING)

_BY_Q850: Final = {
    cause.code: cause
    for cause in (
        UNALLOCATED_NUMBER,
        NO_ROUTE_DESTINATION,
        NORMAL_CLEARING,
        USER_BUSY,
        NO_USER_RESPONSE,
        NO_ANSWER,
        CALL_REJECTED,
        NUMBER_CHANGED,
        EXCHANGE_ROUTING_ERROR,
        DESTINATION_OUT_OF_ORDER,
        INVALID_NUMBER_FORMAT,
        FACILITY_REJECTED,
        NORMAL_CIRCUIT_CONGESTION,
        NORMAL_TEMPORARY_FAILURE,
        BEARERCAPABILITY_NOTAVAIL,
        RECOVERY_ON_TIMER_EXPIRE,
        INTERWORKING,
        # Causes that only peers send.
        HangupCause("NO_ROUTE_TRANSIT_NET", 2),
        HangupCause("CHANNEL_UNACCEPTABLE", 6),
        HangupCause("CALL_AWARDED_DELIVERED", 7),
        SUBSCRIBER_ABSENT,
        HangupCause("REDIRECTION_TO_NEW_DESTINATION", 23),
        HangupCause("NON_SELECTED_USER", 26),
        HangupCause("RESPONSE_TO_STATUS_ENQUIRY", 30),
        HangupCause("NORMAL_UNSPECIFIED", 31),
        HangupCause("NETWORK_OUT_OF_ORDER", 38),
        HangupCause("SWITCH_CONGESTION", 42),
        HangupCause("ACCESS_INFO_DISCARDED", 43),
        HangupCause("REQUESTED_CHAN_UNAVAIL", 44),
        HangupCause("PRE_EMPTED", 45),
        HangupCause("RESOURCE_UNAVAILABLE", 47),
        HangupCause("FACILITY_NOT_SUBSCRIBED", 50),
        HangupCause("OUTGOING_CALL_BARRED", 52),
        HangupCause("INCOMING_CALL_BARRED", 54),
        HangupCause("BEARERCAPABILITY_NOTAUTH", 57),
        HangupCause("SERVICE_UNAVAILABLE", 63),
        HangupCause("BEARERCAPABILITY_NOTIMPL", 65),
        HangupCause("CHAN_NOT_IMPLEMENTED", 66),
        HangupCause("FACILITY_NOT_IMPLEMENTED", 69),
        HangupCause("SERVICE_NOT_IMPLEMENTED", 79),
        HangupCause("INVALID_CALL_REFERENCE", 81),
        HangupCause("INCOMPATIBLE_DESTINATION", 88),
        HangupCause("INVALID_MSG_UNSPECIFIED", 95),
        HangupCause("MANDATORY_IE_MISSING", 96),
        HangupCause("MESSAGE_TYPE_NONEXIST", 97),
        HangupCause("WRONG_MESSAGE", 98),
        HangupCause("IE_NONEXIST", 99),
        HangupCause("INVALID_IE_CONTENTS", 100),
        HangupCause("WRONG_CALL_STATE", 101),
        HangupCause("MANDATORY_IE_LENGTH_ERROR", 103),
        HangupCause("PROTOCOL_ERROR", 111),
    )
}
_SAYS_NOTHING: Final = frozenset({"NORMAL_CLEARING", "NORMAL_UNSPECIFIED", "INTERWORKING"})
"""Causes that are less specific than the rejection or the CANCEL that carries them."""

RING_TIMEOUT: Final = Outcome(CallStatus.NO_ANSWER, NO_ANSWER)
"""We gave up ringing: CANCEL was sent."""

NO_RESPONSE: Final = Outcome(CallStatus.FAILED, NO_USER_RESPONSE)
"""No gateway sent a response: the trunk failed, unlike a 408 that a gateway sent."""

UNREACHABLE: Final = Outcome(CallStatus.FAILED, DESTINATION_OUT_OF_ORDER)
"""No gateway could be reached: its name does not resolve, or its transport fails."""


def outcome_of(sip_status: int) -> Outcome:
    """Map a final non-2xx response to our INVITE to an outcome."""
    outcome = _BY_STATUS.get(sip_status)
    if outcome is not None:
        return outcome
    return _OTHER_SERVER_FAILURE if 500 <= sip_status <= 599 else _OTHER_FAILURE


def cause_of(reason: str | None) -> HangupCause | None:
    """
    Map a Reason header to a cause; None when no value in it is known.

    A Q.850 cause takes precedence over a SIP one, in any order: networks translate it to the status of the
    latter, not back.

    Source: RFC 3326 2.
    """
    reasons = [(protocol.upper(), code) for protocol, code, _ in read_reasons(reason)]
    if ("SIP", 200) in reasons:
        return LOSE_RACE
    for protocol, code in reasons:
        if protocol == "Q.850" and code in _BY_Q850:
            return _BY_Q850[code]
    for protocol, code in reasons:
        if protocol == "SIP" and 300 <= code <= 699:
            return ORIGINATOR_CANCEL if code == 487 else outcome_of(code).cause
    return None


def telling_cause_of(reason: str | None) -> HangupCause | None:
    """Like ``cause_of``, but None for causes that are less specific than the rejection or CANCEL itself."""
    cause = cause_of(reason)
    return None if cause is None or cause.name in _SAYS_NOTHING else cause


def refused_outcome(sip_status: int, cause: HangupCause | None) -> Outcome:
    """Map a final response to an outcome; ``cause`` is that of its Reason header, if any."""
    outcome = outcome_of(sip_status)
    if cause is None:
        return outcome
    if cause is USER_BUSY:
        return Outcome(CallStatus.BUSY, cause)
    silent = cause in (NO_USER_RESPONSE, NO_ANSWER)
    return Outcome(CallStatus.NO_ANSWER if silent else outcome.status, cause)


# Final responses about the called party, which are forwarded to the caller as they are. All others are
# between us and the gateway: a 401 or 407 without a challenge, or a 481, would only mislead the caller's
# side.
_PASSED_ON: Final = frozenset({404, 408, 410, 480, 484, 485, 486, 488, 502, 503, 504, 600, 603, 604, 606})

_STATUS_OF_CAUSE: Final[dict[int, int]] = {
    UNALLOCATED_NUMBER.code: 404,
    NO_ROUTE_DESTINATION.code: 404,
    USER_BUSY.code: 486,
    NO_USER_RESPONSE.code: 480,
    NO_ANSWER.code: 480,
    CALL_REJECTED.code: 403,
    NUMBER_CHANGED.code: 410,
    DESTINATION_OUT_OF_ORDER.code: 502,
    INVALID_NUMBER_FORMAT.code: 484,
    NORMAL_CIRCUIT_CONGESTION.code: 503,
    BEARERCAPABILITY_NOTAVAIL.code: 488,
    RECOVERY_ON_TIMER_EXPIRE.code: 504,
    SYSTEM_SHUTDOWN.code: 503,
    NORMAL_TEMPORARY_FAILURE.code: 500,
}


def rejection_of(cause: HangupCause, sip_status: int | None = None) -> int:
    """
    Return the final response that rejects a caller.

    ``sip_status`` is the far end's status, if any; it is forwarded when it is about the called party. Causes
    that are not listed become 480, which makes no caller's network try elsewhere.
    """
    if sip_status in _PASSED_ON:
        return sip_status
    return _STATUS_OF_CAUSE.get(cause.code, 480)
