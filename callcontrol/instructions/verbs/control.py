"""Verbs that control the call itself: answer, redirect, reject, hangup, and digits to send."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from callcontrol.calls.plan import Answer, Hangup, Reject, SendDtmf, Step
from callcontrol.instructions.verbs.values import VerbValues

REJECT_STATUSES: Final = (403, 404, 408, 410, 480, 484, 486, 488, 500, 502, 503, 504, 600, 603, 604, 606)

_MAX_DIGITS: Final = 64
_DIGITS: Final = frozenset("0123456789*#ABCDwW")


def read_answer(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that answers a waiting caller."""
    return [Answer()]


def read_hangup(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that ends the call."""
    return [Hangup()]


def read_redirect(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that requests further instructions from a server."""
    return values.request_instructions(
        f"{path}.url", values.absolute(verb.get("url")), f"{path}.method", verb.get("method")
    )


def read_reject(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that rejects a waiting caller."""
    status = verb.get("status", 486)
    if isinstance(status, bool) or status not in REJECT_STATUSES:
        allowed = ", ".join(str(item) for item in REJECT_STATUSES)
        values.wrong(f"{path}.status", f"must be one of {allowed}")
        return []
    return [Reject(int(status))]


def read_send_digits(values: VerbValues, path: str, verb: Mapping[str, Any]) -> Sequence[Step]:
    """Read the verb that sends digits to the party."""
    return digit_steps(values, f"{path}.digits", verb.get("digits"))


def digit_steps(values: VerbValues, path: str, digits: object) -> list[Step]:
    """The step that sends digits; none if they are invalid."""
    text = digits if isinstance(digits, str) else ""
    if not 1 <= len(text) <= _MAX_DIGITS or not _DIGITS.issuperset(text):
        values.wrong(path, f"must be 1 to {_MAX_DIGITS} of 0-9 * # A-D w W")
        return []
    return [SendDtmf(text)]
