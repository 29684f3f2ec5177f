"""
Campaigns: one approved template to many recipients, as states and counts.

=========  ===========  =========  ====================================================================
state      event        next       meaning
=========  ===========  =========  ====================================================================
draft      started      running    it is sent by a later request: recipients become messages from now on
scheduled  started      running    it is due: recipients become messages from now on
running    settled      completed  no message waits any more, and some messages have not failed
running    all failed   failed     no message waits any more, and every message has failed
draft      cancel       cancelled  nothing was sent
scheduled  cancel       cancelled  nothing was sent
running    cancel       cancelled  messages that had not left are not sent
=========  ===========  =========  ====================================================================

Recipients become messages in batches, a few seconds of the channel's pace ahead. Until then they count as
queued, so that the counts of a campaign always add up to its total.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum, IntEnum
from typing import Final, cast

from callcontrol.e164 import read_number
from callcontrol.errors import FieldError
from callcontrol.messaging.models import CampaignStatus

MAX_RECIPIENTS: Final = 1000
MAX_NAME_CHARS: Final = 128
MAX_VALUE_CHARS: Final = 1024
MAX_OPEN: Final = 100
"""Campaigns of an account that may be scheduled or running at once."""

MAX_DRAFTS: Final = 100

MAX_AHEAD: Final = timedelta(days=90)
"""Longest time ahead for which a campaign may be scheduled."""

RECEIPTS_AWAITED: Final = timedelta(seconds=60)
"""Longest time that a campaign waits for deliveries after its last message has left."""

NO_RECIPIENTS: Final = FieldError("phoneNumbers", "holds no telephone number, such as +919876543210")

CANCELLED_REASON: Final = "The campaign was cancelled before the message was sent."

_STRETCH: Final = 50
_AHEAD_S: Final = 5
_LEAST_AHEAD: Final = 100
_TOLD_OF: Final = 20


class CampaignState(IntEnum):
    """State of a campaign; stored by its name in lower case."""

    DRAFT = 0
    SCHEDULED = 1
    RUNNING = 2
    COMPLETED = 3
    FAILED = 4
    CANCELLED = 5

    @property
    def status(self) -> CampaignStatus:
        """The name of the state in the API."""
        return cast(CampaignStatus, self.name.lower())

    @property
    def is_open(self) -> bool:
        """True while messages may still leave without another request."""
        return self in (CampaignState.SCHEDULED, CampaignState.RUNNING)


_S = CampaignState


class CampaignEvent(Enum):
    """An event of a campaign."""

    STARTED = "started"
    SETTLED = "settled"
    ALL_FAILED = "all failed"
    CANCEL = "cancel"


_E = CampaignEvent

RULES: Final[Mapping[tuple[CampaignState, CampaignEvent], tuple[CampaignState]]] = {
    (_S.DRAFT, _E.STARTED): (_S.RUNNING,),
    (_S.SCHEDULED, _E.STARTED): (_S.RUNNING,),
    (_S.RUNNING, _E.SETTLED): (_S.COMPLETED,),
    (_S.RUNNING, _E.ALL_FAILED): (_S.FAILED,),
    (_S.DRAFT, _E.CANCEL): (_S.CANCELLED,),
    (_S.SCHEDULED, _E.CANCEL): (_S.CANCELLED,),
    (_S.RUNNING, _E.CANCEL): (_S.CANCELLED,),
}
# A state that is over ignores late receipts; no campaign settles before it has started.
IGNORED: Final = frozenset((state, event) for state in _S for event in _E if (state, event) not in RULES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """
    One template for many recipients.

    ``reference`` is the server's name, made before the campaign has a number. ``starts_at`` is the earliest
    time its first message may leave, of a draft that of its creation; ``scheduled_for`` is the same if the
    request named a time. ``made`` is
    how many of the ``total`` recipients have become messages. ``handed_at`` is when the last of these had
    left.
    """

    reference: str
    account_sid: str
    name: str
    template_id: int
    template_name: str
    language: str
    body_parameters: tuple[str, ...]
    total: int
    created_at: datetime
    starts_at: datetime
    campaign_id: int = 0
    state: CampaignState = CampaignState.SCHEDULED
    made: int = 0
    scheduled_for: datetime | None = None
    started_at: datetime | None = None
    handed_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class CampaignCounts:
    """Number of messages of a campaign in each state; together they are all of its recipients."""

    queued: int = 0
    sent: int = 0
    delivered: int = 0
    read: int = 0
    failed: int = 0
    cancelled: int = 0

    @property
    def total(self) -> int:
        """The number of messages in all states."""
        return self.queued + self.sent + self.delivered + self.read + self.failed + self.cancelled


def settled(counts: CampaignCounts) -> CampaignEvent:
    """The event of a campaign that has no waiting messages left."""
    return _E.ALL_FAILED if counts.failed == counts.total else _E.SETTLED


def batch_size(queued: int, messages_per_second: int) -> int:
    """
    Number of recipients to turn into messages now, given the campaign's messages that are still queued.

    Only as many messages wait as the channel sends in a few seconds: opt-outs and paused templates are
    checked when a recipient becomes a message.
    """
    ahead = max(_LEAST_AHEAD, messages_per_second * _AHEAD_S)
    # A whole batch or none: one transaction for every few messages would cost more than sending them.
    return _STRETCH if queued + _STRETCH <= ahead else 0


def progress_percent(counts: CampaignCounts) -> float:
    """Percentage of a campaign's messages that have left, or will not leave."""
    if counts.total == 0:
        return 100.0
    # Rounded down, so that 100 means that all are done.
    return (counts.total - counts.queued) * 1000 // counts.total / 10


def estimated_end(
    campaign: Campaign,
    counts: CampaignCounts,
    messages_per_second: int,
    now: datetime,
    due_at: datetime | None = None,
) -> datetime | None:
    """
    Estimate when the last message will have left; None when none is left to send.

    The pace is the channel's, or the campaign's own so far if that is slower: campaigns share the channel.
    ``due_at`` is the latest time for which a queued message waits: that of its next attempt, if the network
    was unavailable.
    """
    if not campaign.state.is_open or counts.queued == 0:
        return None
    pace = float(max(1, messages_per_second))
    done = counts.total - counts.queued
    if campaign.started_at is not None and done >= _TOLD_OF:
        elapsed_s = max((now - campaign.started_at).total_seconds(), 0.001)
        pace = min(pace, done / elapsed_s)
    end = max(now, campaign.starts_at) + timedelta(seconds=counts.queued / pace)
    return end if due_at is None else max(end, due_at)


def first_state(scheduled_for: datetime | None, *, immediately: bool) -> CampaignState:
    """
    State of a new campaign.

    One with a time waits for it, also when it says ``immediately``, which is what a request says by default.
    """
    if scheduled_for is not None:
        return CampaignState.SCHEDULED
    return CampaignState.RUNNING if immediately else CampaignState.DRAFT


def schedule_errors(scheduled_for: datetime | None, now: datetime) -> list[FieldError]:
    """Errors in the start time of a campaign."""
    if scheduled_for is None:
        return []
    if scheduled_for <= now:
        return [FieldError("scheduledFor", "must be in the future; leave it out to send now")]
    if scheduled_for > now + MAX_AHEAD:
        return [FieldError("scheduledFor", f"must be within {MAX_AHEAD.days} days")]
    return []


def wrong_recipients(numbers: Iterable[str]) -> list[FieldError]:
    """The error of recipients none of which is a telephone number."""
    for text in numbers:
        try:
            read_number(text)
        except ValueError:
            continue
        return []
    return [NO_RECIPIENTS]


def body_parameters(variables: Mapping[str, str], count: int) -> tuple[str, ...] | Sequence[FieldError]:
    """
    The values of a template's ``count`` variables in their order; or the errors in the given values.

    Variables are named as the template writes them: ``{{1}}`` is ``"1"``.
    """
    names = [str(number) for number in range(1, count + 1)]
    takes = f"the template has the variables 1 to {count}" if count else "the template has no variables"
    errors = [
        FieldError(f"variables.{name}", f"is required; {takes}") for name in names if name not in variables
    ]
    errors += [
        FieldError(f"variables.{name}", f"is none of the template's; {takes}")
        for name in variables
        if name not in names
    ]
    return errors if errors else tuple(variables[name] for name in names)
