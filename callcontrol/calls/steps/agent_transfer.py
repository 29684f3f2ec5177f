"""
Transfer of a party that talks with its voice agent: a part of ``callcontrol.calls.steps.agent_stream``.

The agent asks for it, or our own side does. We dial the other party and join the two, or ask the party itself
to call elsewhere (REFER). Until that has come about the agent goes on being heard.
"""

from collections.abc import Iterator

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect, ReferLeg, Save, TellAgentError, TellAgentTransfer
from callcontrol.calls.events import AgentTransfer, Event, LegProgress, LegReferred
from callcontrol.calls.hangup_cause import NORMAL_CLEARING, HangupCause, outcome_of
from callcontrol.calls.steps.base import CallParts
from callcontrol.calls.steps.bridge import Bridge
from callcontrol.calls.transfers.transfer import transfer_failed
from callcontrol.errors import DomainError
from callcontrol.models import CallStatus
from callcontrol.routing.party import Party
from callcontrol.routing.transfer_target import agent_party


class StreamTransfer:
    """The transfer that is under way, if any; an agent is told how its own ones go."""

    def __init__(self, call: CallParts) -> None:
        self._call = call
        self.bridge: Bridge | None = None
        """What dials the other party, and takes the stream's place when that answers."""
        self._referring = False
        self._referred_to = ""
        self._ordered = False
        """Whether our own side has the party transferred: the agent did not ask and is not told."""
        self.cause: HangupCause = NORMAL_CLEARING
        """Why the last transfer failed."""

    @property
    def pending(self) -> bool:
        """Whether the party is being put through."""
        return self.bridge is not None or self._referring

    def order(self, party: Party) -> Iterator[Effect]:
        """Begin, because our own side says so."""
        self._ordered = True
        self.bridge = Bridge(self._call, party, quiet=True)
        yield from self.bridge.begin()

    def ask(self, event: AgentTransfer) -> Iterator[Effect]:
        """Begin, because the agent wants it, or tell it why not."""
        if self.pending:
            yield TellAgentError("invalid_command", "a transfer is already under way", "transfer")
        elif event.mode == "refer":
            self._referring, self._ordered = True, False
            self._referred_to = event.to
            yield ReferLeg(self._call.a_leg.id, _refer_target(event.to))
        elif event.mode != "bridge":
            yield TellAgentError("invalid_command", "the transfer mode must be bridge or refer", "transfer")
        else:
            try:
                party = self._party_of(event)
            except DomainError as refusal:
                yield TellAgentError("invalid_command", refusal.message, "transfer")
                return
            self._ordered = False
            self.bridge = Bridge(self._call, party, quiet=True)
            yield from self.bridge.begin()

    def _party_of(self, event: AgentTransfer) -> Party:
        """Whom to dial; the caller-ID is the number of the call that belongs to the account, if not given."""
        return agent_party(
            self._call.record,
            event.to,
            event.caller_id,
            ring_timeout_s=event.timeout_s,
            headers=event.headers,
        )

    def after_bridge(self, bridge: Bridge, event: Event) -> Iterator[Effect]:
        """Tell the agent what became of the event that the bridge took."""
        if bridge.over:
            self.bridge = None
            ending = bridge.ending
            sip_status, cause = (ending.sip_status, ending.cause) if ending else (None, None)
            self.cause = cause or NORMAL_CLEARING
            if self._ordered:
                yield transfer_failed(bridge.party, sip_status, cause)
            else:
                yield TellAgentTransfer("failed", sip_status, cause.name if cause else None)
        elif self._ordered:
            return
        elif not bridge.joined and isinstance(event, LegProgress) and event.leg == bridge.b_leg:
            yield TellAgentTransfer("ringing", event.status)

    def referred(self, event: LegReferred) -> Iterator[Effect]:
        """
        The party that was asked to call someone else by itself tells how that goes.

        It is not ``pending`` any more when it has failed; ``reached`` says whether it has succeeded.
        """
        if not self._referring or event.status == 100:
            return
        if event.status < 200:
            yield TellAgentTransfer("ringing", event.status)
            return
        self._referring = False
        if event.status >= 300:
            self.cause = outcome_of(event.status).cause
            yield TellAgentTransfer("failed", event.status, self.cause.name)

    def done(self) -> Iterator[Effect]:
        """Tell the agent that the party talks to someone else now."""
        if not self._ordered:
            yield TellAgentTransfer("answered", 200)

    def announcement(self) -> Save:
        """What the customer is told of a transfer that came about."""
        mode = "refer" if self.bridge is None else "bridge"
        to = self._referred_to if self.bridge is None else str(self.bridge.party.target)
        return Save("call.transferred", {"transfer": {"mode": mode, "to": to}})

    def abandon(self, ending: Ending | None = None) -> Iterator[Effect]:
        """Give up the other party."""
        self._referring = False
        if self.bridge is not None:
            bridge, self.bridge = self.bridge, None
            yield from bridge.stop(ending or Ending(CallStatus.COMPLETED, NORMAL_CLEARING, "stream"))


def _refer_target(to: str) -> str:
    """What the agent wrote, sent as it is (sip:, sips:, tel:); a bare number becomes a tel: address."""
    return to if ":" in to else f"tel:{to}"
