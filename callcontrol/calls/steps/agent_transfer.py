"""
Transfer of a party that talks with a voice agent: a part of ``callcontrol.calls.steps.agent_stream``.

The agent asks for it, or the API commands it. We dial the other party and connect the two, or send the
party a REFER. Until the transfer has succeeded the agent is still heard.
"""

from collections.abc import Iterator

from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.agent import TellAgentError, TellAgentTransfer
from callcontrol.calls.effects.records import Save
from callcontrol.calls.effects.transfers import ReferLeg
from callcontrol.calls.events import Event
from callcontrol.calls.events.agent import AgentTransfer
from callcontrol.calls.events.legs import LegProgress
from callcontrol.calls.events.transfers import LegReferred
from callcontrol.calls.hangup_cause import NORMAL_CLEARING, HangupCause, outcome_of
from callcontrol.calls.steps.base import CallParts
from callcontrol.calls.steps.bridge import BridgeStep
from callcontrol.calls.transfers.transfer import transfer_failed
from callcontrol.errors import DomainError
from callcontrol.models import CallStatus
from callcontrol.models.parties import Party
from callcontrol.routing.targets import parse_transfer_target


class AgentTransfers:
    """The current transfer, if any; the agent is notified of the progress of its own ones."""

    def __init__(self, call: CallParts) -> None:
        self._call = call
        self.bridge: BridgeStep | None = None
        """The step that dials the other party, and replaces the stream when that party answers."""
        self._referring = False
        self._referred_to = ""
        self._by_api = False
        """True for a transfer commanded by the API: the agent did not ask and is not notified."""
        self.cause: HangupCause = NORMAL_CLEARING
        """Cause of the last transfer's failure."""

    @property
    def pending(self) -> bool:
        """True while a transfer is in progress."""
        return self.bridge is not None or self._referring

    def start(self, party: Party) -> Iterator[Effect]:
        """Begin a transfer commanded by the API."""
        self._by_api = True
        self.bridge = BridgeStep(self._call, party, quiet=True)
        yield from self.bridge.begin()

    def ask(self, event: AgentTransfer) -> Iterator[Effect]:
        """Begin a transfer that the agent asked for, or send it the reason of a refusal."""
        if self.pending:
            yield TellAgentError("invalid_command", "a transfer is already under way", "transfer")
        elif event.mode == "refer":
            self._referring, self._by_api = True, False
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
            self._by_api = False
            self.bridge = BridgeStep(self._call, party, quiet=True)
            yield from self.bridge.begin()

    def _party_of(self, event: AgentTransfer) -> Party:
        """Return the party to dial; its caller-ID defaults to the account's number of the call."""
        return parse_transfer_target(
            self._call.record,
            event.to,
            event.caller_id,
            ring_timeout_s=event.timeout_s,
            headers=event.headers,
        )

    def after_bridge(self, bridge: BridgeStep, event: Event) -> Iterator[Effect]:
        """Notify the agent, or report a failed command, after the bridge has handled an event."""
        if bridge.over:
            self.bridge = None
            ending = bridge.ending
            sip_status, cause = (ending.sip_status, ending.cause) if ending else (None, None)
            self.cause = cause or NORMAL_CLEARING
            if self._by_api:
                yield transfer_failed(bridge.party, sip_status, cause)
            else:
                yield TellAgentTransfer("failed", sip_status, cause.name if cause else None)
        elif self._by_api:
            return
        elif not bridge.joined and isinstance(event, LegProgress) and event.leg == bridge.b_leg:
            yield TellAgentTransfer("ringing", event.status)

    def referred(self, event: LegReferred) -> Iterator[Effect]:
        """
        Handle NOTIFY progress of a REFER we sent.

        A final status ends the transfer: it is no longer ``pending``.
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
        """Notify the agent that the party talks to someone else now."""
        if not self._by_api:
            yield TellAgentTransfer("answered", 200)

    def announcement(self) -> Save:
        """Return the event for a successful transfer."""
        mode = "refer" if self.bridge is None else "bridge"
        to = self._referred_to if self.bridge is None else str(self.bridge.party.target)
        return Save("call.transferred", {"transfer": {"mode": mode, "to": to}})

    def abandon(self, ending: Ending | None = None) -> Iterator[Effect]:
        """Abandon the transfer; hang up the other party, if dialled."""
        self._referring = False
        if self.bridge is not None:
            bridge, self.bridge = self.bridge, None
            yield from bridge.stop(ending or Ending(CallStatus.COMPLETED, NORMAL_CLEARING, "stream"))


def _refer_target(to: str) -> str:
    """Return the agent's target unchanged (sip:, sips:, tel:); a bare number becomes a tel: URI."""
    return to if ":" in to else f"tel:{to}"
