"""The voice assistant: inbound and outbound calls of agents, their transcripts and their analytics."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Final

from callcontrol.agents.aio.service import AgentService
from callcontrol.agents.aio.transcripts import TranscriptStore
from callcontrol.aio.tokens import utc_now
from callcontrol.assistant import store as assistant_calls
from callcontrol.assistant.analytics import AnalyticsQuery, AssistantCallFilter, DayCount, query_of
from callcontrol.assistant.calls import PRODUCT, status_of
from callcontrol.assistant.sandbox import is_sandbox
from callcontrol.calls.aio.service import CallControl
from callcontrol.calls.plan import DEFAULT_TIME_LIMIT_S, MachineDetection
from callcontrol.calls.records.store import calls
from callcontrol.calls.requests import CreateCall
from callcontrol.calls.sandbox import is_test_number
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.pages import ListQuery, Pager
from callcontrol.database.aio.writer import Writer
from callcontrol.errors import (
    NO_ROUTE,
    Conflict,
    FieldError,
    Forbidden,
    NotFound,
    RequestErrors,
    ValidationFailed,
)
from callcontrol.models import TEST_PREFIX, CallRecord, Page, TranscriptSegment
from callcontrol.models.parties import DEFAULT_RING_TIMEOUT_S, PhoneTarget
from callcontrol.numbers.binding import no_registered_number
from callcontrol.numbers.store.numbers import default_caller_id
from callcontrol.routing.targets import normalise_number, parse_target

# A row is inserted within seconds of its creation time; its outcome is known when the longest call has ended.
_INSERTS_SETTLED: Final = timedelta(minutes=10)
_OUTCOMES_SETTLED: Final = timedelta(hours=5)
_NO_SUCH_CALL: Final = "There is no such call with an agent."


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundCall:
    """
    A request for an outbound call of an agent.

    ``context`` is passed to the agent; ``from_`` None means the account's oldest number.
    """

    phone_number: str
    agent_id: str
    context: Mapping[str, str] = field(default_factory=dict)
    from_: str | None = None
    machine_detection: MachineDetection = "off"
    record: bool = False
    timeout_s: float = DEFAULT_RING_TIMEOUT_S
    time_limit_s: float = DEFAULT_TIME_LIMIT_S
    status_webhook_url: str | None = None


class AssistantService:
    """
    Calls of agents.

    A principal confined to the sandbox (``sandbox_only``) places sandbox calls and sees no others.
    ``sandbox_carrier`` returns the sandbox carrier of this server, None while it has none.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        calls: CallControl,
        agents: AgentService,
        transcripts: TranscriptStore,
        allowed_countries: Collection[str],
        sandbox_carrier: Callable[[], str | None],
    ) -> None:
        self._database = database
        self._writer = writer
        self._calls = calls
        self._agents = agents
        self._transcripts = transcripts
        self._allowed_countries = allowed_countries
        self._sandbox_carrier = sandbox_carrier
        self._pager = Pager(assistant_calls.LISTING)

    async def start_call(self, account_sid: str, request: OutboundCall, *, sandbox_only: bool) -> CallRecord:
        """
        Place a call of an agent; a test number is called in the sandbox.

        Raises:
            ValidationFailed: Names every wrong value.
            NotFound: The agent does not exist.
            Forbidden: The number may not be called, or not from the sandbox; or the agent is another
                account's.
            DomainError: Any error of ``CallControl.create_call``; no call was recorded.
        """
        number, from_ = self._numbers(request)
        sandbox = self._sandbox(number, sandbox_only=sandbox_only)
        agent = await self._agents.get(account_sid, request.agent_id)
        if from_ is None:
            from_ = await self._database.look_up(partial(default_caller_id, account_sid=account_sid))
        if from_ is None:
            raise no_registered_number("to call from")
        wanted = CreateCall(
            from_=from_,
            to=number,
            agent_id=agent.agent_id,
            stream_fields={"custom_parameters": dict(request.context)},
            carrier_sid=sandbox,
            sandbox=sandbox is not None,
            machine_detection=request.machine_detection,
            record=request.record,
            timeout_s=request.timeout_s,
            time_limit_s=request.time_limit_s,
            status_webhook_url=request.status_webhook_url,
        )
        try:
            return await self._calls.create_call(account_sid, wanted)
        except ValidationFailed as refusal:
            raise refusal.renamed(lambda name: "phone_number" if name == "to" else name) from None

    async def get_call(self, account_sid: str, call_sid: str, *, sandbox_only: bool) -> CallRecord:
        """
        One call of the account's agents, in its newest state.

        Raises:
            NotFound: There is no such call, it has no agent, or it is not visible from the sandbox.
            Forbidden: It is another account's.
        """
        try:
            record = await self._calls.get_call(account_sid, call_sid)
        except NotFound:
            # One text for both, so that it does not tell a key of the sandbox if there is a live call.
            raise NotFound(_NO_SUCH_CALL) from None
        if record.product != PRODUCT or (sandbox_only and not is_sandbox(record)):
            raise NotFound(_NO_SUCH_CALL)
        return record

    async def end_call(self, account_sid: str, call_sid: str, *, sandbox_only: bool) -> CallRecord:
        """
        End a call; the record returned may still show it as active.

        Raises:
            NotFound: As in ``get_call``.
            Forbidden: It is another account's.
            CallEnded: It has ended already.
        """
        await self.get_call(account_sid, call_sid, sandbox_only=sandbox_only)
        return await self._calls.hangup_call(account_sid, call_sid)

    async def said(self, record: CallRecord) -> Sequence[TranscriptSegment]:
        """The transcript of a call so far."""
        return await self._transcripts.of_agent(record.call_sid)

    async def transcript(
        self, account_sid: str, call_sid: str, *, sandbox_only: bool
    ) -> tuple[CallRecord, Sequence[TranscriptSegment]]:
        """
        The transcript of a call that has ended.

        Raises:
            NotFound: As in ``get_call``; or the call was not answered, or has not ended.
            Forbidden: It is another account's.
        """
        record = await self.get_call(account_sid, call_sid, sandbox_only=sandbox_only)
        if not record.status.ended:
            raise NotFound("The transcript is not ready: the call is still up; transcript.ready tells of it.")
        if record.answered_at is None:
            status = status_of(record.status, record.answered_by)
            raise NotFound(f"There is no transcript: the call was not answered ({status}).")
        return record, await self.said(record)

    async def delete_transcript(self, account_sid: str, call_sid: str, *, sandbox_only: bool) -> None:
        """
        Delete the transcript of a call for ever; repeating it changes nothing.

        Raises:
            NotFound: As in ``get_call``.
            Forbidden: It is another account's.
            Conflict: The call is active, so the transcript may grow.
        """
        record = await self.get_call(account_sid, call_sid, sandbox_only=sandbox_only)
        if not record.status.ended:
            raise Conflict("The call is up; hang it up, or delete its transcript when it has ended.")
        await self._transcripts.delete_of_agent(call_sid)

    async def list_calls(
        self, account_sid: str, query: AssistantCallFilter, page: int, per_page: int
    ) -> Page[CallRecord]:
        """Calls of the account's agents, newest first."""
        await self._writer.flush_pending()
        wanted = ListQuery(
            (account_sid, replace(query, start=None, end=None)),
            assistant_calls.conditions(account_sid, query),
            query.start,
            query.end,
            _OUTCOMES_SETTLED if query.status else _INSERTS_SETTLED,
        )

        return await self._database.read(
            lambda connection: self._pager.page(
                connection, wanted, calls.by_sids, page=page, per_page=per_page
            )
        )

    async def analytics(
        self,
        account_sid: str,
        start: datetime | None,
        end: datetime | None,
        *,
        agent_id: str | None = None,
        sandbox: bool = False,
    ) -> tuple[AnalyticsQuery, Sequence[DayCount]]:
        """
        Counts of the calls of a period, by day; see ``query_of`` for the defaults.

        Raises:
            ValidationFailed: The period is invalid.
        """
        query = query_of(start, end, utc_now(), agent_id=agent_id, sandbox=sandbox)
        await self._writer.flush_pending()
        return query, await self._database.read(
            lambda connection: assistant_calls.day_counts(connection, account_sid, query)
        )

    def _numbers(self, request: OutboundCall) -> tuple[str, str | None]:
        """Validate the number to call and the caller ID, and return both in E.164."""
        values = RequestErrors()
        number, from_ = request.phone_number, request.from_
        target = values.read(lambda: parse_target(number, self._allowed_countries, field="phone_number"))
        if target is not None and not isinstance(target, PhoneTarget):
            message = "must be a telephone number, such as +919800000001"
            values.errors.append(FieldError("phone_number", message))
        if from_ is not None:
            from_ = values.read(lambda: normalise_number(request.from_ or "", field="from"))
        values.raise_found()
        assert isinstance(target, PhoneTarget), "its error was raised"
        return target.number, from_

    def _sandbox(self, number: str, *, sandbox_only: bool) -> str | None:
        """The carrier of a sandbox call, None for any other call."""
        if not is_test_number(number):
            if sandbox_only:
                raise Forbidden(
                    f"A sandbox key calls test numbers alone: {TEST_PREFIX} and three digits; use a live key."
                )
            return None
        carrier_sid = self._sandbox_carrier()
        if carrier_sid is None and sandbox_only:
            raise ValidationFailed.of(
                "phone_number",
                "has no route: the sandbox of this server is off; have its operator turn it on"
                " (TRUNKLINE_SANDBOX_CARRIER), or use a live key",
                NO_ROUTE,
            )
        return carrier_sid
