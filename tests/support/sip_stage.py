"""Two user agents on one in-memory network."""

from dataclasses import dataclass
from typing import Any

from sip import Request
from sip.aio import UserAgentSettings
from tests.support.sip_agents import SDP, Agent, RawPeer, Side, make_network
from tests.support.sip_network import Network

ALICE = ("192.0.2.1", 5060)
BOB = ("192.0.2.2", 5060)
RAW = ("192.0.2.9", 5060)


@dataclass
class Stage:
    """A network with Alice and Bob on it, and room for a raw peer."""

    network: Network
    alice: Agent
    bob: Agent

    def advance(self, seconds: float = 0.05) -> None:
        self.network.clock.advance(seconds)

    def raw(self, target: Agent | None = None) -> RawPeer:
        """A raw peer that talks to Bob, or to another agent."""
        return RawPeer(self.network, RAW, (target or self.bob).address)

    def answered_by_raw(self) -> tuple[RawPeer, Side, Request]:
        """A call of Alice that a raw peer has answered: the peer, her side of it, and her INVITE."""
        raw, side = self.raw(self.alice), self.alice.call(RAW)
        self.advance()
        [invite] = raw.requests("INVITE")
        raw.respond(invite, 200, body=SDP)
        self.advance()
        return raw, side, invite

    def finish(self) -> None:
        """Wait until all timers have run out, and check that nothing is left."""
        self.advance(400)
        self.alice.assert_clean()
        self.bob.assert_clean()
        assert self.network.clock.scheduled == 0


async def make_stage(
    settings: UserAgentSettings | None = None, *, caller: UserAgentSettings | None = None, **options: Any
) -> Stage:
    """A stage whose agents have these settings, Alice those of the caller if given."""
    network = make_network()
    alice = await Agent(network, ALICE, caller or settings).start()
    bob = await Agent(network, BOB, settings, **options).start()
    return Stage(network, alice, bob)
