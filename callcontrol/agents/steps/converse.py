"""
The built-in voice agent on a call: it visits the nodes of its script, with one turn at each.

A transfer is a bridge of its own. The party hears ringing meanwhile, the bridge replaces the conversation
once the two are joined, and the script continues when it fails.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from callcontrol.agents.script import fill, sentences, stock_words
from callcontrol.agents.steps.turn import Sentence, Turn, TurnResult
from callcontrol.calls.dialer import Ending
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.media import DetectSpeech, StopSpeech
from callcontrol.calls.effects.records import Save
from callcontrol.calls.events import Event
from callcontrol.calls.events.media import DigitReceived, SpeechEnded, SpeechStarted
from callcontrol.calls.hangup_cause import NORMAL_CLEARING
from callcontrol.calls.plan import Step
from callcontrol.calls.steps.base import CallParts, RunningStep
from callcontrol.calls.steps.bridge import BridgeStep
from callcontrol.errors import DomainError
from callcontrol.models import CallStatus
from callcontrol.models.parties import Party
from callcontrol.models.scripts import DIGITS, FAILED, NONE, SPEECH, Forwarding, Listening, Node, Script
from callcontrol.routing.targets import parse_transfer_target

_LAST_WORDS: Final = Node()
"""Node of a conversation that exceeds its number of turns: it hangs up."""


@dataclass(frozen=True, slots=True)
class Converse(Step):
    """
    Connect the party to the built-in agent, which follows its script, in a language such as ``hi-IN``.

    The greeting comes before the first node, and only a key interrupts it. Texts may refer to ``variables``,
    and to ``from`` and ``to``.
    """

    agent_id: str
    script: Script
    language: str = "en-IN"
    greeting: str = ""
    variables: Mapping[str, str] = field(default_factory=dict, repr=False)


class ConverseStep(RunningStep):
    """The step in which the built-in agent talks with the party."""

    def __init__(self, call: CallParts, converse: Converse) -> None:
        super().__init__(call)
        self._converse = converse
        self._script = converse.script
        record = call.record
        self._variables = {"from": record.from_, "to": record.to, **converse.variables}
        self._node = _LAST_WORDS
        self._turn: Turn | None = None
        self._transfer: BridgeStep | None = None
        self._retries_left = 0
        self._turns = 0
        self._spoken = 0
        self._talking = False

    @property
    def transferring(self) -> bool:
        """True while the target of a transfer is being called."""
        return self._transfer is not None

    def begin(self) -> Iterator[Effect]:
        """Start listening for speech if needed, and greet the party."""
        if self._script.hears_speech:
            yield DetectSpeech(self.call.a_leg.id)
        greeting = [Sentence(text, guarded=True) for text in self._filled(self._converse.greeting)]
        yield from self._enter(self._script.start, greeting)
        yield from self._go_on()

    def handle(self, event: Event) -> Iterator[Effect]:
        """Handle one event of the call."""
        self._note(event)
        if self._transfer is not None:
            yield from self._transferred(self._transfer, self._transfer.handle(event))
        elif self._turn is not None:
            yield from self._turn.handle(event)
        yield from self._go_on()

    def stop(self, ending: Ending) -> Iterator[Effect]:
        """Stop speaking because the call ends."""
        transfer, self._transfer = self._transfer, None
        if transfer is not None:
            yield from transfer.stop(ending)
        if self._turn is not None:
            yield from self._turn.stop()
        yield from self._listen_no_more()

    # --- nodes ----------------------------------------------------------------------------------------------

    def _go_on(self) -> Iterator[Effect]:
        """Continue with the next node for as long as the current turn is over."""
        while self._turn is not None and self._turn.over and self._transfer is None and not self.over:
            yield from self._after(self._turn.result)

    def _after(self, result: TurnResult) -> Iterator[Effect]:
        node = self._node
        if node.listening is not None:
            yield from self._answered(node, node.listening, result)
        elif node.forwarding is not None:
            yield from self._begin_transfer(node.forwarding)
        elif node.then is not None:
            yield from self._enter(node.then)
        else:
            yield from self._hang_up()

    def _answered(self, node: Node, listening: Listening, result: TurnResult) -> Iterator[Effect]:
        if result.kind == "digits" and listening.variable is not None:
            self._variables[listening.variable] = result.digits
        target = _next_node(node, result)
        if target is None and self._retries_left:
            self._retries_left -= 1
            again = node.say if listening.retry_say is None else listening.retry_say
            yield from self._speak(node, again)
        elif target is None and FAILED in node.on:
            yield from self._enter(node.on[FAILED])
        elif target is None:
            yield from self._hang_up()
        else:
            yield from self._enter(target)

    def _enter(self, name: str, before: list[Sentence] | None = None) -> Iterator[Effect]:
        node = self._script.nodes[name]
        self._retries_left = node.listening.retries if node.listening is not None else 0
        yield from self._speak(node, node.say, before)

    def _speak(self, node: Node, text: str, before: list[Sentence] | None = None) -> Iterator[Effect]:
        """Begin a turn; one beyond the limit says goodbye and is the last."""
        self._turns += 1
        if self._turns > self._script.max_turns:
            node, text = _LAST_WORDS, stock_words(self._converse.language).goodbye
        self._node = node
        self._turn = Turn(
            self.call,
            [*(before or ()), *(Sentence(piece) for piece in self._filled(text))],
            self._converse.language,
            self._next_number,
            listening=node.listening,
            hears_speech=node.hears_speech,
            # Keys pressed while no node listened are for the node that listens next.
            early=self.call.keys.drain() if node.listening is not None else "",
        )
        yield from self._turn.begin(talking=self._talking)

    def _next_number(self) -> int:
        self._spoken += 1
        return self._spoken

    def _filled(self, text: str) -> list[str]:
        return sentences(fill(text, self._variables))

    def _note(self, event: Event) -> None:
        """Record the state that the next turn needs."""
        match event:
            case SpeechStarted() if event.leg == self.call.a_leg.id:
                self._talking = True
            case SpeechEnded() if event.leg == self.call.a_leg.id:
                self._talking = False
            case DigitReceived() if event.leg == self.call.a_leg.id and self._keeps_keys:
                self.call.keys.append(event)

    @property
    def _keeps_keys(self) -> bool:
        """True while keys are for the next node that listens, as no other step takes them."""
        return self._node.listening is None and self._transfer is None

    def _hang_up(self) -> Iterator[Effect]:
        self.over = True
        self.ending = Ending(CallStatus.COMPLETED, NORMAL_CLEARING, "stream")
        yield from self._listen_no_more()

    def _listen_no_more(self) -> Iterator[Effect]:
        if self._script.hears_speech and not self.call.a_leg.over:
            yield StopSpeech(self.call.a_leg.id)

    # --- transfer -------------------------------------------------------------------------------------------

    def _begin_transfer(self, forwarding: Forwarding) -> Iterator[Effect]:
        try:
            party = self._party_of(forwarding)
        except DomainError:  # the values of the variables are no number
            yield from self._transfer_failed()
            return
        data = {"transfer": {"mode": "bridge", "to": str(party.target)}}
        self._transfer = BridgeStep(self.call, party, announce=Save("call.transferred", data))
        yield from self._transferred(self._transfer, self._transfer.begin())

    def _transferred(self, bridge: BridgeStep, effects: Iterable[Effect]) -> Iterator[Effect]:
        """Run the effects of the bridge, then check its state."""
        wanted = list(effects)
        if bridge.joined:
            yield from self._listen_no_more()
            self._transfer, self._turn = None, None
            self.successor, self.over = bridge, True
        yield from wanted
        if bridge.over and not self.over:
            self._transfer = None
            yield from self._transfer_failed()

    def _transfer_failed(self) -> Iterator[Effect]:
        failed = self._node.on.get(FAILED)
        if failed is not None:
            yield from self._enter(failed)
        else:
            yield from self._speak(_LAST_WORDS, stock_words(self._converse.language).unreachable)

    def _party_of(self, forwarding: Forwarding) -> Party:
        """The party to call; its caller ID is the account's number of the call, unless the script has one."""
        return parse_transfer_target(
            self.call.record,
            fill(forwarding.to, self._variables),
            fill(forwarding.caller_id or "", self._variables),
            ring_timeout_s=forwarding.timeout_s,
        )


def _next_node(node: Node, result: TurnResult) -> str | None:
    """The next node for an input; None without a branch for it."""
    if result.kind == "digits":
        return node.on.get(result.digits) or node.on.get(DIGITS)
    return node.on.get(SPEECH if result.kind == "speech" else NONE)
