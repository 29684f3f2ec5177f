"""Recovery of calls whose process was killed: their records, charges, recordings and SIP dialogs."""

import asyncio
import logging
import wave
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.calls.aio.context import RecordingUploads
from callcontrol.calls.aio.mailbox import CallLogger
from callcontrol.calls.charges import Rates
from callcontrol.calls.hangup_cause import CRASH
from callcontrol.calls.product import ProductPolicy, Products
from callcontrol.calls.recording import PENDING, READY, recording_file, recording_url
from callcontrol.calls.records.aio import CallStore
from callcontrol.calls.records.end import close_record
from callcontrol.directory.directory import Directory
from callcontrol.errors import DomainError
from callcontrol.models import CallRecord, WebhookEvent
from callcontrol.trunks.outbound_invite import credentials_of
from sip import Credentials, ParseError
from sip.aio import UserAgent

log = logging.getLogger(__name__)

# Faster than dialogs are ended: a process that is killed again and again must not leave ever more of them.
_FORGET_EVERY_S: Final = 0.1
_FORGET_AGAIN_S: Final = 1.0
_FORGET_AT_ONCE: Final = 200
"""Number of rows that one statement deletes."""

_WAV_HEADER_BYTES: Final = 92


class CrashRecovery:
    """
    The calls that a previous process of this node left behind, with dialogs still open at their peers.

    ``collect`` saves the dialogs, so that they are ended even if this process is killed as well; ``settle``
    ends the records; ``begin`` ends the dialogs, beside new calls.

    Args:
        folder: Folder of the recordings.
        uploads: Uploads of recordings, if they are kept in an object store.
    """

    def __init__(
        self,
        user_agent: UserAgent,
        calls: CallStore,
        routes: Directory,
        products: Products,
        folder: Path,
        uploads: RecordingUploads | None,
    ) -> None:
        self._uploads = uploads
        self._products = products
        self._folder = folder
        self._user_agent = user_agent
        self._calls = calls
        self._routes = routes
        self._legs: dict[str, int] = {}
        self._over: list[str] = []
        self._kept: Mapping[str, Mapping[str, Any]] = {}
        self._task: asyncio.Task[None] | None = None

    async def collect(self, records: Sequence[CallRecord]) -> None:
        """Collect the dialogs of unfinished calls, and those that an earlier process has not ended."""
        kept = await self._calls.keep_dialogs(records)
        self._kept = {call_sid: dialogs for call_sid, dialogs in kept.items() if call_sid not in self._legs}

    def begin(self) -> None:
        """Start ending the dialogs; the user agent has to be listening."""
        kept, self._kept = self._kept, {}
        if not kept:
            return
        self._legs |= {call_sid: len(dialogs) for call_sid, dialogs in kept.items()}
        # The newest first: peers of older processes have most likely been told, and are only not forgotten.
        legs = [
            (call_sid, saved) for call_sid in sorted(kept, reverse=True) for saved in kept[call_sid].values()
        ]
        log.warning("ending %d legs of %d calls of the previous process", len(legs), len(kept))
        self._over += [call_sid for call_sid, dialogs in kept.items() if not dialogs]
        for call_sid, saved in legs:
            self._end(call_sid, saved)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._forget(), name="former-calls")

    async def settle(
        self,
        unfinished: Sequence[CallRecord],
        rates: Rates,
        node: str | None = None,
        *,
        has_recordings: bool = True,
    ) -> None:
        """
        End the records of calls that a process left behind, charge them, and recover recordings.

        Without ``has_recordings`` these are left to the node, on whose machine they are.
        """
        calls, folder = self._calls, self._folder
        for record in unfinished:
            policy = self._products.of(record)
            charge_paise = close_record(record, CRASH, rates, policy)
            record.price_paise = charge_paise
            recorded_ms = await recover_recording(record, folder) if has_recordings else None
            events = [
                *_late_event(record, policy, "call.completed"),
                *self._recorded_events(record, policy, recorded_ms),
            ]
            calls.finish(record, charge_paise=charge_paise, events=events)
            CallLogger(record.call_sid).warning("the call was interrupted by a restart")
        for record in await calls.cut_recordings(node) if has_recordings else ():
            policy = self._products.of(record)
            recorded_ms = await recover_recording(record, folder)
            calls.update(record, events=self._recorded_events(record, policy, recorded_ms))
        await calls.flush()

    def _recorded_events(
        self, record: CallRecord, policy: ProductPolicy, recorded_ms: int | None
    ) -> list[WebhookEvent]:
        """Return the event of a recording completed after a restart, unless it follows its upload."""
        if recorded_ms is None:
            return []
        details = {"recording_duration_ms": recorded_ms}
        if self._uploads is not None:
            self._uploads.add(record, details, over=True)
            return []
        return _late_event(record, policy, READY, **details)

    async def close(self) -> None:
        """Stop; dialogs that are not ended remain saved for the next process."""
        task, self._task = self._task, None
        if task is not None:
            task.cancel()
            await asyncio.wait([task])

    def _end(self, call_sid: str, saved: Mapping[str, Any]) -> None:
        def over() -> None:
            self._legs[call_sid] -= 1
            if not self._legs[call_sid]:
                self._over.append(call_sid)

        try:
            credentials = self._credentials(saved)
            self._user_agent.terminate_recovered(saved, CRASH.reason_header(), credentials, over)
        except ParseError as error:
            # Another version of this server saved it; the peer's own timers have to end the dialog.
            log.warning("cannot end a leg: %s", error.reason, extra={"call_sid": call_sid})
            over()

    def _credentials(self, saved: Mapping[str, Any]) -> Credentials | None:
        carrier = self._routes.carrier(str(saved.get("carrier")))
        return None if carrier is None else credentials_of(carrier)

    async def _forget(self) -> None:
        while self._legs:
            await asyncio.sleep(_FORGET_EVERY_S)
            over = self._over[:_FORGET_AT_ONCE]
            if not over:
                continue
            try:
                await self._calls.forget_dialogs(over)
            except DomainError as failure:
                log.info("cannot delete the saved dialogs of ended legs: %s", failure.message)
                await asyncio.sleep(_FORGET_AGAIN_S)
                continue
            del self._over[: len(over)]
            for call_sid in over:
                self._legs.pop(call_sid, None)
        log.info("all legs of calls of the previous process have ended")


async def recover_recording(record: CallRecord, folder: Path) -> int | None:
    """
    Attach the recording of a recovered call to its record; returns its length in milliseconds.

    Returns None without a new recording: there is none, it has no audio, or the record has it already.
    """
    path = folder / recording_file(record.call_sid)
    recorded_ms = None
    if record.recording_url is None:
        recorded_ms = await asyncio.to_thread(_recorded_ms, path)
    if recorded_ms is not None:
        record.recording_path = str(path)
        record.recording_url = recording_url(record.call_sid)
        record.recording_status = "completed"
    elif record.recording_status in PENDING:
        record.recording_status = "failed"
    return recorded_ms


def _recorded_ms(path: Path) -> int | None:
    """Length of a recording by the size of its file: the header may be a second behind."""
    try:
        audio_bytes = path.stat().st_size - _WAV_HEADER_BYTES
        with wave.open(str(path), "rb") as file:
            second_bytes = file.getframerate() * file.getnchannels() * file.getsampwidth()
    except (OSError, EOFError, wave.Error):
        return None
    return audio_bytes * 1000 // second_bytes if audio_bytes > 0 else None


def _late_event(record: CallRecord, policy: ProductPolicy, event: str, **details: Any) -> list[WebhookEvent]:
    """Return an event that a previous process did not send; empty when nobody subscribed to it."""
    event_made = policy.webhook_event(record, event, details, event_id=new_id(), at=utc_now())
    return [event_made] if event_made is not None else []
