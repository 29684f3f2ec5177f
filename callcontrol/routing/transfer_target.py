"""Whom an agent may have a call put through to, as it writes that: a number, or an address."""

from callcontrol.models import CallRecord
from callcontrol.routing.party import Party
from callcontrol.routing.targets import PhoneTarget, normalise_number, parse_sip_target


def agent_party(
    record: CallRecord,
    to: str,
    caller_id: str | None,
    *,
    ring_timeout_s: float,
    headers: tuple[tuple[str, str], ...] = (),
) -> Party:
    """
    Whom to dial; the caller-ID is the number of the call that belongs to the account, if not given.

    Raises:
        ValidationFailed: One of the two is no number.
    """
    own = record.to if record.direction == "inbound" else record.from_
    target = parse_sip_target(to) if to[:4].lower() == "sip:" else PhoneTarget(normalise_number(to))
    shown = normalise_number(caller_id, field="caller_id") if caller_id else own
    return Party(target, shown, ring_timeout_s=ring_timeout_s, headers=headers)
