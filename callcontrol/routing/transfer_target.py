"""Parser for the transfer target of a voice agent: a number or a ``sip:`` address."""

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
    Party to dial; the default caller-ID is the account's own number on the call.

    Raises:
        ValidationFailed: The target is no number or address, or the caller-ID is no number.
    """
    own = record.to if record.direction == "inbound" else record.from_
    target = parse_sip_target(to) if to[:4].lower() == "sip:" else PhoneTarget(normalise_number(to))
    shown = normalise_number(caller_id, field="caller_id") if caller_id else own
    return Party(target, shown, ring_timeout_s=ring_timeout_s, headers=headers)
