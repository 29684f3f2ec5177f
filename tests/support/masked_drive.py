"""Masked calls on virtual time, with the webhooks that they are told by."""

from typing import Any

from callcontrol.bootstrap.products import PRODUCTS, STEPS
from callcontrol.calls.call import CallMachine
from callcontrol.calls.charges import Rates
from callcontrol.calls.effects import Effect
from callcontrol.calls.effects.records import FindRoute, Finish, Save
from callcontrol.calls.events.answers import RouteRefused
from callcontrol.calls.events.legs import LegAnswered, LegProgress
from callcontrol.calls.hangup_cause import NORMAL_CIRCUIT_CONGESTION
from callcontrol.clock import WallClock
from callcontrol.masking.calls import PRODUCT, masked_details, masked_object
from callcontrol.masking.steps.connect import Connect
from tests.support.call_drive import A, B, Drive, assert_nothing_left, make_party
from tests.support.domain import CALLEE, NOW, OWN_NUMBER

SECOND = "+919812345678"
HOOK = "https://customer.example/masked"


class Masked(Drive):
    """A masked call, and the webhooks that it was told by."""

    def __init__(self, *, inbound: bool = False, record: bool = False, limit_s: float | None = None) -> None:
        super().__init__(
            Connect(make_party(SECOND), limit_s, record),
            inbound=inbound,
        )
        self.record.product = PRODUCT
        self.record.status_webhook_url = HOOK
        self.record.details = {
            **masked_details(
                direction="inbound" if inbound else "click_to_call",
                caller_number=CALLEE,
                target_number=SECOND,
                masked_number=OWN_NUMBER,
                max_duration_s=None if limit_s is None else int(limit_s),
            ),
            "subscription_id": "subscription-1",
        }
        rates = Rates()
        self.machine = CallMachine(
            self.record,
            self.plan,
            rates=rates,
            policy=PRODUCTS.of(self.record),
            clock=WallClock(self.now, NOW),
            step_makers=STEPS,
            reserved_paise=self.plan.reserve_paise(rates),
        )
        self.reachable = True
        """True if the second party can be reached."""
        self.start()

    def _oblige(self, effect: Effect) -> None:
        if isinstance(effect, FindRoute) and not self.reachable:
            self._take(self.machine.handle(RouteRefused(NORMAL_CIRCUIT_CONGESTION, "no gateway"), self.now))
        else:
            super()._oblige(effect)

    @property
    def shown(self) -> dict[str, Any]:
        return masked_object(self.record)

    @property
    def legs(self) -> list[tuple[str, str | None]]:
        return [(leg["status"], leg["hangup_cause"]) for leg in self.shown["legs"]]

    @property
    def told(self) -> list[str]:
        """The statuses that webhooks told of, each with the call as it then was."""
        saved = [(effect.event, effect.shown) for effect in self.done(Save) if effect.event is not None]
        if self.done(Finish):
            saved.append(("call.completed", None))
        told = []
        for number, (event, shown) in enumerate(saved):
            made = PRODUCTS.of(self.record).webhook_event(
                self.record, event, {}, event_id=str(number), at=NOW, shown=shown
            )
            if made is not None:
                assert made.subscription_id == "subscription-1"
                status = made.event.removeprefix("masking.call.")
                assert shown is None or shown["status"] == status
                told.append(status)
        return told

    def ended(self) -> tuple[str, str | None]:
        assert_nothing_left(self)
        assert self.shown["status"] == self.told[-1]
        return self.shown["status"], self.shown["hangup_cause"]


def a_answered(**changes: Any) -> Masked:
    drive = Masked(**changes)
    drive.feed(LegProgress(A, 180), LegAnswered(A, b"sdp"))
    return drive


def bridged(**changes: Any) -> Masked:
    drive = a_answered(**changes)
    drive.after(4)
    drive.feed(LegProgress(B, 180))
    drive.after(6)
    drive.feed(LegAnswered(B, b"sdp"))
    return drive
