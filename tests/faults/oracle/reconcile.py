"""Compares what all parties know, call by call and paisa by paisa; each disagreement is named."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from typing import Any, Final

from tests.faults.oracle.evidence import Discrepancy, Evidence, Hook, Leg, Tariff, is_end

__all__ = ["reconcile"]

_FINAL: Final = frozenset({"completed", "failed", "busy", "no-answer", "canceled"})
CRASH: Final = "CRASH"

# A kill can hide what came within this time before it: a record is written a moment after its call has moved.
_BLIND_S: Final = 2.0
# An answer that crosses a CANCEL, or comes when its leg was given up after silence, is acknowledged and hung
# up at once; that costs nothing.
_CROSSED_S: Final = 2.0


def reconcile(evidence: Evidence) -> list[Discrepancy]:
    """Everything in which the parties do not agree; the server has nothing under way any more."""
    case = _Case(evidence)
    return [found for check in _CHECKS for found in check(case)]


class _Case:
    """The evidence, by call."""

    def __init__(self, evidence: Evidence) -> None:
        self.evidence = evidence
        self.records_of_dialog: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for record in evidence.records:
            if record.get("sip_call_id"):
                self.records_of_dialog[record["sip_call_id"]].append(record)
        self.records: dict[str, dict[str, Any]] = {record["call_sid"]: record for record in evidence.records}
        self.legs = {leg.call_id: leg for leg in evidence.legs}
        self.by_session: dict[str, list[Leg]] = defaultdict(list)
        self._session_of = self._sessions()
        for leg in evidence.legs:
            self.by_session[self.session(leg)].append(leg)
        self.hooks: dict[str, list[Hook]] = defaultdict(list)
        for hook in evidence.hooks:
            self.hooks[hook.call_sid].append(hook)

    def session(self, leg: Leg) -> str:
        """Return the id that all legs of a call have in common."""
        own = leg.session_id or leg.call_id
        return self._session_of.get(own, own)

    def _sessions(self) -> dict[str, str]:
        """
        By the identifier of a call, which legs are shown where no caller has told one: that of its caller.

        A caller that is gone by the time its callee is dialled is such a case.
        """
        found = {}
        for record in self.evidence.records:
            first = self.legs.get(record.get("sip_call_id") or "")
            if first is not None and first.session_id:
                found[_own_session(record)] = first.session_id
        return found

    def group(self, record: dict[str, Any]) -> list[Leg]:
        """The legs of a call, the first one first; none when no far end has seen it."""
        first = self.legs.get(record.get("sip_call_id") or "")
        if first is None:
            return self.by_session.get(_own_session(record), [])
        others = self.by_session[self.session(first)]
        return [first, *(leg for leg in others if leg is not first and self._belongs(leg, record))]

    def _belongs(self, leg: Leg, record: dict[str, Any]) -> bool:
        """
        Return True if a callee's leg is this record's, where one INVITE has become several calls.

        It was repeated until a server took it that had not been killed; each has dialled anew.
        """
        earlier = [
            one
            for one in self.records_of_dialog[record["sip_call_id"]]
            if self.evidence.moment(one["created_at"]) <= leg.began_at
        ]
        newest = max(earlier, key=lambda one: str(one["created_at"]), default=record)
        return newest is record

    def blind(self, record: dict[str, Any], leg: Leg) -> bool:
        """
        Return True if the server may have been killed before it recorded that the leg was up.

        A callee may read its INVITE after the kill of its sender: the record is older than the leg.
        """
        began = min(leg.began_at, self.evidence.moment(record["created_at"]))
        cut = min((at for at in self.evidence.kills if at >= began), default=math.inf)
        return leg.confirmed_at is None or leg.confirmed_at + _BLIND_S > cut

    def killed_within(self, since: float, until: float) -> bool:
        """The server was killed in this time."""
        return any(since <= at <= until for at in self.evidence.kills)


def _own_session(record: dict[str, Any]) -> str:
    return str(record["call_sid"]).replace("-", "")


def _without_record(case: _Case) -> Iterator[Discrepancy]:
    """Call without record."""
    for sid, kind in case.evidence.placed.items():
        if sid not in case.records:
            yield Discrepancy("call without record", sid, f"the API accepted it ({kind})")
    recorded = {case.session(leg) for record in case.evidence.records for leg in case.group(record)}
    for leg in case.evidence.legs:
        told = leg.role == "callee" or leg.rang_at is not None or leg.answered
        if told and case.session(leg) not in recorded:
            yield Discrepancy("call without record", leg.call_id, f"{leg.role}, {leg.kind}, {leg.status}")


def _without_call(case: _Case) -> Iterator[Discrepancy]:
    """Record without call."""
    unasked = []
    for sid, record in case.records.items():
        legs = case.group(record)
        if record["direction"] == "inbound" and not legs:
            yield Discrepancy("record without call", sid, "nobody called")
        elif record["direction"] != "inbound" and sid not in case.evidence.placed:
            unasked.append(sid)
        elif record.get("answered_at") and not any(leg.answered for leg in legs):
            yield Discrepancy("record without call", sid, "it is told as answered, and no far end answered")
    # A request whose client never heard of it may have had its effect.
    for sid in unasked[case.evidence.unsure :]:
        yield Discrepancy("record without call", sid, "nobody asked for it")


def _without_end(case: _Case) -> Iterator[Discrepancy]:
    """Record without end or cause."""
    for sid, record in case.records.items():
        if record["status"] not in _FINAL or not record["ended_at"] or not record["hangup_cause"]:
            state = {name: record[name] for name in ("status", "ended_at", "hangup_cause")}
            yield Discrepancy("record without end", sid, str(state))


def _billing(case: _Case) -> Iterator[Discrepancy]:
    """Call answered but billed 0, or the reverse; billed other than the legs were up."""
    for sid, record in case.records.items():
        legs = case.group(record)
        if not legs or record["price"] is None:
            continue
        paise = round(100 * record["price"])
        least, most = _worth(case, record, legs)
        if not least <= paise <= most:
            kind = "answered but not billed" if not paise else "billed wrong" if most else "billed unanswered"
            seconds = [(leg.role, round(leg.dialog_s, 1), round(leg.rtp_s, 1)) for leg in legs]
            yield Discrepancy(kind, sid, f"{paise} paise, not {least} to {most}, for legs of {seconds}")


def _worth(case: _Case, record: dict[str, Any], legs: list[Leg]) -> tuple[int, int]:
    """Return the least and the greatest cost of a call, by the evidence of its far ends."""
    tariff, apart_s = case.evidence.tariff, case.evidence.apart_s
    if record["hangup_cause"] == CRASH:
        return _worth_of_cut(case, record, legs)
    if legs[0].role == "caller" and not legs[0].answered:
        return 0, 0  # A callee's answer that crosses the caller's CANCEL is hung up at once.
    least = most = 0
    for leg in legs:
        if not leg.answered:
            continue
        rate = tariff.inbound_paise if leg.role == "caller" else tariff.outbound_paise
        # RTP that is heard proves that the leg was up, whatever its dialog says.
        up_s = max(min(leg.dialog_s, 1e9), leg.rtp_s)
        if leg.confirmed_at is not None and not _hung_up_at_once(leg):
            least += rate * _pulses(up_s - apart_s, tariff)
        most += rate * _pulses(up_s + apart_s, tariff)
    return least, most


def _hung_up_at_once(leg: Leg) -> bool:
    """
    Return True if the server hung up as soon as it had the answer, and nothing was heard meanwhile.

    The answer may have waited for its ACK: it counts from there where the BYE came from the server.
    """
    if leg.confirmed_at is None or leg.ended_at is None:
        return False
    since = leg.confirmed_at if leg.ended_by == "peer" else leg.answered_at or leg.confirmed_at
    return max(leg.ended_at - since, leg.rtp_s) <= _CROSSED_S


def _worth_of_cut(case: _Case, record: dict[str, Any], legs: list[Leg]) -> tuple[int, int]:
    """A call that a kill has cut: a pulse for each leg of which it is known that it was answered."""
    tariff = case.evidence.tariff
    answered = [leg for leg in legs if leg.answered]
    # What came shortly before the kill may not be written down, and what came later was not heard.
    known = [leg for leg in answered if not case.blind(record, leg)]
    first = [leg for leg in known if leg is legs[0]]
    rates = [tariff.inbound_paise if leg.role == "caller" else tariff.outbound_paise for leg in answered]
    least = sum(tariff.inbound_paise if leg.role == "caller" else tariff.outbound_paise for leg in first)
    return least, sum(rates)


def _pulses(seconds: float, tariff: Tariff) -> int:
    return max(1, math.ceil(seconds / tariff.pulse_s))


def _billed_seconds(case: _Case) -> Iterator[Discrepancy]:
    """Seconds that the record tells against those of the dialog and of the audio."""
    for sid, record in case.records.items():
        legs = case.group(record)
        if not legs or record["hangup_cause"] == CRASH or not legs[0].answered:
            continue
        if not record["answered_at"] and _hung_up_at_once(legs[0]):
            continue  # Nobody had the answer.
        told_s, seen_s = record["duration_sec"] or 0, legs[0].dialog_s
        heard_s = legs[0].rtp_s
        if abs(told_s - seen_s) > case.evidence.apart_s or heard_s > told_s + case.evidence.apart_s:
            text = f"told as {told_s} s, seen as {seen_s:.1f} s, heard for {heard_s:.1f} s"
            yield Discrepancy("seconds differ", sid, text)


def _charges(case: _Case) -> Iterator[Discrepancy]:
    """Charge without call, charged twice, and sums that differ."""
    charges = [entry for entry in case.evidence.ledger if entry["kind"] == "charge"]
    by_call = Counter(entry["call_sid"] for entry in charges)
    for sid, times in by_call.items():
        if sid not in case.records:
            yield Discrepancy("charge without call", str(sid), f"{times} charges")
        elif times > 1:
            yield Discrepancy("charged twice", str(sid), f"{times} charges")
    charged = {entry["call_sid"]: -round(100 * entry["amount"]) for entry in charges}
    for sid, record in case.records.items():
        told = round(100 * (record["price"] or 0))
        if charged.get(sid, 0) != told:
            text = f"the record says {told} paise, the ledger {charged.get(sid, 0)}"
            yield Discrepancy("charge differs", sid, text)
    sums = {
        "charges": -sum(round(100 * entry["amount"]) for entry in charges),
        "records": sum(round(100 * (record["price"] or 0)) for record in case.evidence.records),
        "wallet": case.evidence.balance_before_paise - case.evidence.balance_after_paise,
    }
    if len(set(sums.values())) != 1:
        yield Discrepancy("sums differ", "wallet", f"{sums} paise")
    if case.evidence.reserved_paise:
        yield Discrepancy("reserve left", "wallet", f"{case.evidence.reserved_paise} paise")


def _webhooks(case: _Case) -> Iterator[Discrepancy]:
    """Webhook missing, without its record, unsigned, out of order, or telling another end than the record."""
    for sid, hooks in case.hooks.items():
        if sid not in case.records:
            yield Discrepancy("webhook without record", sid, str([hook.event for hook in hooks]))
        yield from _order(sid, hooks)
        if not all(hook.signed for hook in hooks):
            yield Discrepancy("webhook not signed", sid, str([hook.event for hook in hooks]))
    for sid, record in case.records.items():
        ends = {hook.delivery_id: hook for hook in case.hooks.get(sid, []) if is_end(hook.event)}
        if len(ends) != 1:
            told = [hook.event for hook in case.hooks.get(sid, [])]
            yield Discrepancy("webhook missing" if not ends else "ended twice", sid, f"told {told}")
        for hook in ends.values():
            if "price" in hook.data and hook.data["price"] != record["price"]:
                text = f"{hook.data['price']} was told, {record['price']} recorded"
                yield Discrepancy("webhook differs", sid, text)


def _order(sid: str, hooks: list[Hook]) -> Iterator[Discrepancy]:
    first: dict[str, Hook] = {}
    for hook in hooks:
        first.setdefault(hook.delivery_id, hook)
    came = [hook.sequence for hook in first.values()]
    if came != sorted(came):
        yield Discrepancy("webhooks out of order", sid, str(came))
    missing = set(range(1, max(came, default=0) + 1)) - set(came)
    if missing:
        yield Discrepancy("webhook missing", sid, f"of {max(came)} events not {sorted(missing)}")
    if len(set(came)) != len(came):
        yield Discrepancy("webhook doubled", sid, f"two events have one number: {came}")


def _sides(case: _Case) -> Iterator[Discrepancy]:
    """Up at one side only, or at both for ever."""
    for session, legs in case.by_session.items():
        answered = [leg for leg in legs if leg.answered]
        for leg in answered:
            if leg.ended_at is None:
                yield Discrepancy("still up", leg.call_id, f"the {leg.role} has heard of no end")
        ends = [leg.ended_at for leg in answered if leg.ended_at is not None]
        if len(ends) > 1 and max(ends) - min(ends) > case.evidence.apart_s:
            if not case.killed_within(min(leg.began_at for leg in legs), max(ends)):
                text = f"its legs ended {max(ends) - min(ends):.1f} s apart"
                yield Discrepancy("up at one side only", session, text)
        if len(answered) == 1 and answered[0].role == "caller" and answered[0].kind == "forwarded":
            if not case.killed_within(answered[0].began_at, answered[0].ended_at or math.inf):
                yield Discrepancy("up at one side only", session, "the caller was answered, and no callee")


def _doubles(case: _Case) -> Iterator[Discrepancy]:
    """Doubled calls."""
    for call_id, records in case.records_of_dialog.items():
        whole = [record["call_sid"] for record in records if record["hangup_cause"] != CRASH]
        if len(whole) > 1:
            yield Discrepancy("doubled call", call_id, f"one INVITE became {whole}")
    for session, legs in case.by_session.items():
        callees = [leg for leg in legs if leg.role == "callee"]
        numbers = Counter(leg.number for leg in callees if leg.answered)
        began = min((leg.began_at for leg in legs), default=0.0)
        ended = max((leg.ended_at or math.inf for leg in legs), default=0.0)
        if any(times > 1 for times in numbers.values()) and not case.killed_within(began, ended):
            yield Discrepancy("doubled call", session, f"answered by {dict(numbers)}")
        for leg in callees:
            if leg.invites > 1:
                yield Discrepancy("doubled call", leg.call_id, f"{leg.invites} INVITEs for one call")


_CHECKS: Final[tuple[Callable[[_Case], Iterator[Discrepancy]], ...]] = (
    _without_record,
    _without_call,
    _without_end,
    _billing,
    _billed_seconds,
    _charges,
    _webhooks,
    _sides,
    _doubles,
)
