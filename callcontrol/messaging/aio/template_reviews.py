"""
Submission, polling and withdrawal of templates at the network.

Every step is written before the network is asked, with the time at which any process may take it over if this
one does not finish it. A repeated request is the same to the network, by its reference.
"""

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.database.aio.writer import Writer
from callcontrol.errors import ProviderRejected, ServiceUnavailable
from callcontrol.messaging.approval import (
    ReviewFailure,
    SubmissionRefused,
    TemplateReview,
    Verdict,
    VerdictGiven,
)
from callcontrol.messaging.events import template_decision_event
from callcontrol.messaging.models import Channel, Template
from callcontrol.messaging.store import channels, templates
from callcontrol.messaging.store.templates import Withdrawal
from callcontrol.messaging.template_states import after_verdict, next_check
from callcontrol.webhooks.aio.outbox import Outbox
from callcontrol.webhooks.store import publish as fan_out

log = logging.getLogger(__name__)

LEASE: Final = timedelta(seconds=15)
"""Time that a template is reserved for the process that works on it; longer than the network's time limit."""

_NETWORK_TIMEOUT_S: Final = 10.0
_FIRST_RETRY: Final = timedelta(seconds=1)
_LONGEST_RETRY: Final = timedelta(hours=1)
_NO_REASON: Final = "The network gives no reason."


Clock = Callable[[], datetime]
"""Returns the current time."""


class TemplateReviews:
    """Asks one network about the templates of all accounts."""

    def __init__(self, writer: Writer, review: TemplateReview, outbox: Outbox, clock: Clock) -> None:
        self._writer = writer
        self._clock = clock
        self._review = review
        self._outbox = outbox

    async def submit_new(self, template: Template, channel: Channel) -> Template:
        """
        Submit a template whose customer waits; if the network is unavailable it is submitted later.

        Raises:
            ProviderRejected: The network does not accept it; it is deleted here.
        """
        try:
            return await self._submit(template, channel)
        except SubmissionRefused as refusal:
            await self._writer.commit(lambda connection: templates.delete(connection, template.reference))
            raise ProviderRejected(
                f"The network does not take this template: {refusal.reason}",
                details={"reason": refusal.reason},
            ) from None
        except ServiceUnavailable as failure:
            await self._postpone(template, failure)
            return template

    async def refresh(self, template: Template) -> Template | None:
        """
        Fetch the state of a template at the network; None when it was deleted meanwhile.

        Raises:
            ServiceUnavailable: The network does not answer.
        """
        if template.network_ref is not None:
            async with _network():
                given = await self._review.verdict(template.network_ref)
            return await self._apply(template.reference, given)
        channel = await self._writer.commit(
            lambda connection: channels.channel_of(connection, template.account_sid)
        )
        try:
            return await self._submit(template, channel)
        except SubmissionRefused as refusal:
            # The customer has seen it as pending, so it stays, with the network's reason.
            return await self._apply(template.reference, VerdictGiven(Verdict.REJECTED, refusal.reason))

    async def submit_or_check(self, template: Template) -> None:
        """Refresh a due template; if that fails now, it is due again later."""
        try:
            await self.refresh(template)
        except ServiceUnavailable as failure:
            await self._postpone(template, failure)

    async def withdraw(self, withdrawal: Withdrawal) -> None:
        """Ask the network to forget a template that was deleted here; a failed request is repeated later."""
        try:
            async with _network():
                await self._review.withdraw(withdrawal.reference, withdrawal.network_ref)
        except ServiceUnavailable as failure:
            log.warning("withdrawing a template failed, trying again later: %s", failure.__cause__ or failure)
            now = self._clock()
            again = now + min(max(now - withdrawal.created_at, _FIRST_RETRY), _LONGEST_RETRY)
            await self._writer.commit(
                lambda connection: templates.postpone_withdrawal(connection, withdrawal.reference, again)
            )
        else:
            await self._writer.commit(
                lambda connection: templates.withdrawn(connection, withdrawal.reference)
            )

    async def _postpone(self, template: Template, failure: ServiceUnavailable) -> None:
        log.warning(
            "checking a template with the network failed, trying again later: %s",
            failure.__cause__ or failure,
            extra={"account_sid": template.account_sid},
        )
        again = next_check(template.status, template.updated_at, self._clock())
        await self._writer.commit(
            lambda connection: templates.postpone(connection, template.reference, again)
        )

    async def _submit(self, template: Template, channel: Channel) -> Template:
        """
        Submit a template, for the first time or again.

        Raises:
            SubmissionRefused: The network does not accept it.
            ServiceUnavailable: The network does not answer.
        """
        async with _network():
            network_ref = await self._review.submit(template, channel.number)
        now = self._clock()
        check_at = next_check(template.status, template.updated_at, now) or now
        submitted = replace(template, network_ref=network_ref)

        def note(connection: Connection) -> Template:
            noted = templates.note_submitted(connection, template.reference, network_ref, check_at)
            if noted is None:
                # It was deleted during the submission: the network has it now and has to forget it.
                templates.withdraw(connection, submitted, now, now)
            return noted or submitted

        return await self._writer.commit(note)

    async def _apply(self, reference: str, given: VerdictGiven) -> Template | None:
        """Store the network's verdict on a template, and publish an event of the change."""
        now = self._clock()
        changed = await self._writer.commit(lambda connection: _decide(connection, reference, given, now))
        self._outbox.changed()
        return changed


def _decide(connection: Connection, reference: str, given: VerdictGiven, now: datetime) -> Template | None:
    template = templates.by_reference(connection, reference, lock=True)
    if template is None:
        return None
    status = after_verdict(template.status, given.verdict)
    if status is None:
        templates.postpone(connection, reference, next_check(template.status, template.updated_at, now))
        return template
    reason = None if status == "APPROVED" else given.reason or _NO_REASON
    changed = replace(template, status=status, rejection_reason=reason, updated_at=now)
    templates.update_status(connection, changed, next_check(status, now, now))
    event = template_decision_event(changed, now)
    if event is not None:
        fan_out.publish(connection, [event])
    return changed


@contextlib.asynccontextmanager
async def _network() -> AsyncIterator[None]:
    """Turn failures of the network into ``ServiceUnavailable``."""
    try:
        async with asyncio.timeout(_NETWORK_TIMEOUT_S):
            yield
    except (ReviewFailure, TimeoutError, OSError) as error:
        raise ServiceUnavailable("The messaging network does not answer; try again shortly.") from error
