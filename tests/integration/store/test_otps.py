"""One-time passwords over a real database: limits, guesses, lists and statistics."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from random import Random
from typing import Any

import pytest
import sqlalchemy as sa

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.bootstrap.aio import services as storage_module
from callcontrol.bootstrap.aio.services import Storage, StorageSettings
from callcontrol.calls.aio.service import CallControl
from callcontrol.calls.plan import Announce, Plan
from callcontrol.calls.product import CallAttachment
from callcontrol.calls.requests import CallMetadata
from callcontrol.database.tables.otp import otps
from callcontrol.errors import (
    Forbidden,
    InsufficientBalance,
    NotFound,
    NumberNotOwned,
    RateLimited,
    ServiceUnavailable,
    ValidationFailed,
)
from callcontrol.models import Account, CallRecord, CallStatus
from callcontrol.otp import aio as otp_module
from callcontrol.otp.aio import VoiceOtp
from callcontrol.otp.otp import MAX_ATTEMPTS, PER_DESTINATION, WINDOW, OtpFilter, OtpStats, Period, SendOtp
from fixtures.carrier import PROMPTS_DIRECTORY
from media.audio import Clip, PromptLibrary, Speaker, SpeechError, SpeechUnavailable
from media.audio.speech import Synthesizer
from tests.support.customers import add_platform_carrier, add_registered_number
from tests.support.secrets import SECRETS

NUMBER = "+918047491899"
TO = "+919876543210"
CODE = "27182818"
SPEAKER = Speaker(PromptLibrary(PROMPTS_DIRECTORY))


class Door(CallControl):
    """Places calls as call control does, but for the call."""

    def __init__(self, storage: Storage, reserve_paise: int = 300) -> None:
        self.storage = storage
        self.reserve_paise = reserve_paise
        self.plans: list[Plan] = []

    async def place(
        self,
        account_sid: str,
        plan: Plan,
        metadata: CallMetadata,
        *,
        attachment: CallAttachment | None = None,
    ) -> CallRecord:
        assert plan.dial is not None
        self.plans.append(plan)
        record = CallRecord(
            call_sid=new_id(),
            account_sid=account_sid,
            direction="outbound",
            from_=plan.dial.caller_id,
            to=str(plan.dial.target),
            created_at=utc_now(),
            product=metadata.product,
            details=metadata.details,
        )
        await self.storage.calls.insert(record, reserve_paise=self.reserve_paise, attachment=attachment)
        return record

    async def get_call(self, account_sid: str, call_sid: str) -> CallRecord:
        return await self.storage.calls.get(account_sid, call_sid)


class Voice(Synthesizer):
    """Speaks texts, or does not."""

    failure: SpeechError | None = None

    async def speak(self, text: str, language: str, *, keep: bool = True) -> Clip:
        if self.failure is not None:
            raise self.failure
        return Clip(b"\1\0" * len(text))


@dataclass
class Stage:
    otp: VoiceOtp
    door: Door
    voice: Voice
    storage: Storage
    account_sid: str

    async def send(self, **request: Any) -> str:
        return (
            await self.otp.send(self.account_sid, SendOtp(**{"to": TO, "from_": NUMBER, **request}))
        ).state.otp_id


def stage_on(storage: Storage, account_sid: str) -> Stage:
    door, voice = Door(storage), Voice()
    otp = VoiceOtp(
        storage.database,
        storage.writer,
        door,
        storage.destinations,
        SPEAKER,
        voice,
        SECRETS,
        frozenset({"IN"}),
    )
    return Stage(otp, door, voice, storage, account_sid)


@pytest.fixture
async def stage(storage: Storage, account: Account) -> Stage:
    return stage_on(storage, account.account_sid)


@pytest.fixture
async def other(url: str, stage: Stage) -> AsyncIterator[Stage]:
    """Another process on the same database."""
    opened = await Storage.open(url, StorageSettings(node="other"), deliver=False, secrets=SECRETS)
    yield stage_on(opened, stage.account_sid)
    await opened.close()


def at(monkeypatch: pytest.MonkeyPatch, moment: datetime) -> None:
    monkeypatch.setattr(otp_module, "utc_now", lambda: moment)


async def test_a_password_is_spoken_and_only_its_digest_is_stored(stage: Stage) -> None:
    otp_id = await stage.send(code=CODE, language="hi-IN", reference="login")
    [plan] = stage.door.plans
    [step] = plan.steps
    assert isinstance(step, Announce) and step.times == 2 and not plan.record
    assert [sound for sound in step.sounds if sound in SPEAKER.digits("hi", CODE)]
    assert CODE not in repr(plan)
    row = await stage.storage.database.read(lambda connection: connection.execute(sa.select(otps)).one())
    assert CODE not in str(row) and len(row.code_hash) == 64
    found = await stage.otp.get(stage.account_sid, otp_id)
    assert found.record.details is not None and found.record.details["language"] == "hi-IN"


async def test_a_password_that_we_make_has_the_length_asked_for(stage: Stage) -> None:
    await stage.send(length=4)
    [step] = stage.door.plans[0].steps
    assert isinstance(step, Announce)
    digits = {SPEAKER.prompt("en", str(digit)) for digit in range(10)}
    assert sum(sound in digits for sound in step.sounds) == 4


async def test_a_guess_is_right_once(stage: Stage) -> None:
    otp_id = await stage.send(code=CODE)
    wrong = await stage.otp.verify(stage.account_sid, otp_id, "27182819")
    assert (wrong.verified, wrong.attempts_left) == (False, MAX_ATTEMPTS - 1)
    assert (await stage.otp.verify(stage.account_sid, otp_id, CODE)).verified
    assert (await stage.otp.verify(stage.account_sid, otp_id, CODE)).verdict == "used"
    assert (await stage.otp.get(stage.account_sid, otp_id)).state.verified_at is not None


async def test_guesses_are_counted_across_processes(stage: Stage, other: Stage) -> None:
    otp_id = await stage.send(code=CODE)
    guesses = [f"{number:08d}" for number in range(2 * MAX_ATTEMPTS)]
    outcomes = await asyncio.gather(
        *(
            (stage, other)[n % 2].otp.verify(stage.account_sid, otp_id, guess)
            for n, guess in enumerate(guesses)
        )
    )
    verdicts = sorted(outcome.verdict for outcome in outcomes)
    assert verdicts == ["exhausted"] * MAX_ATTEMPTS + ["wrong"] * MAX_ATTEMPTS
    assert (await stage.otp.verify(stage.account_sid, otp_id, CODE)).verdict == "exhausted"


async def test_a_password_expires_and_is_forgotten(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    otp_id = await stage.send(code=CODE, ttl_s=30)
    assert await stage.storage.forget_passwords() == 0
    later = utc_now() + timedelta(seconds=30)
    at(monkeypatch, later)
    monkeypatch.setattr(storage_module, "utc_now", lambda: later)
    assert (await stage.otp.verify(stage.account_sid, otp_id, CODE)).verdict == "expired"
    assert await stage.storage.forget_passwords() == 1
    kept = await stage.storage.database.read(
        lambda connection: connection.scalar(sa.select(otps.c.code_hash))
    )
    assert kept is None
    assert (await stage.otp.verify(stage.account_sid, otp_id, CODE)).verdict == "expired"


async def test_whose_password_it_is(stage: Stage) -> None:
    otp_id = await stage.send(code=CODE)
    stranger, _ = await stage.storage.accounts.create("Other", balance_paise=100_000)
    for act in (
        lambda sid, which: stage.otp.get(sid, which),
        lambda sid, which: stage.otp.verify(sid, which, CODE),
    ):
        with pytest.raises(Forbidden):
            await act(stranger.account_sid, otp_id)
        with pytest.raises(NotFound):
            await act(stage.account_sid, new_id())
    assert (await stage.otp.list(stranger.account_sid, OtpFilter(), 1, 20)).total == 0
    ever = Period(date.min, date.max)
    assert [
        (await stage.otp.stats(sid, ever)).total for sid in (stranger.account_sid, stage.account_sid)
    ] == [0, 1]
    assert (await stage.otp.verify(stage.account_sid, otp_id, CODE)).verified


async def test_two_processes_call_a_number_five_times_in_all(stage: Stage, other: Stage) -> None:
    async def send(number: int) -> bool:
        try:
            await (stage, other)[number % 2].send(to=("9876543210", TO)[number % 2])
        except RateLimited as refusal:
            assert 0 < refusal.retry_after_s <= WINDOW.total_seconds()
            return False
        return True

    assert sum(await asyncio.gather(*map(send, range(4 * PER_DESTINATION)))) == PER_DESTINATION
    await stage.send(to="+919876543211")
    assert len(await stage.storage.wallet.open_reserves()) == PER_DESTINATION + 1, "refusals reserve nothing"


async def test_the_limit_outlives_the_process_and_ends_with_its_window(
    stage: Stage, other: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(PER_DESTINATION):
        await stage.send()
    await stage.storage.calls.flush()
    with pytest.raises(RateLimited):
        await other.send()  # as a process that was started just now
    at(monkeypatch, utc_now() + WINDOW)
    await other.send()


async def test_a_refused_call_leaves_nothing(stage: Stage) -> None:
    stage.door.reserve_paise = 10**9
    with pytest.raises(InsufficientBalance):
        await stage.send()
    assert (await stage.otp.list(stage.account_sid, OtpFilter(), 1, 20)).total == 0
    stage.door.reserve_paise = 300
    for _ in range(PER_DESTINATION):
        await stage.send()


async def test_requests_that_are_wrong(stage: Stage) -> None:
    with pytest.raises(ValidationFailed) as refusal:
        await stage.send(to="nobody", from_="x", language="xx", status_webhook_url="ftp://a.example/")
    fields = [error.field for error in refusal.value.errors]
    assert fields == ["to", "from", "status_webhook_url", "language"]
    with pytest.raises(ValidationFailed):
        await stage.send(to="sip:a@192.0.2.1")
    with pytest.raises(ValidationFailed):
        await stage.send(template="no place for it")
    with pytest.raises(ValidationFailed) as refusal:
        await stage.send(status_webhook_url="http://127.0.0.1/")
    assert [error.field for error in refusal.value.errors] == ["status_webhook_url"]
    with pytest.raises(Forbidden):
        await stage.send(to="+12025550123")
    for service in ("+911800123456", "+9118001234567", "+9118601234567", "+911409876543"):
        with pytest.raises(ValidationFailed, match="toll-free"):
            await stage.send(to=service)
    assert not stage.door.plans


async def test_a_template_is_spoken_around_the_password(stage: Stage) -> None:
    await stage.send(code="1234", template="Your code is {otp}. Bye")
    [step] = stage.door.plans[0].steps
    assert isinstance(step, Announce)
    assert step.sounds[0] == Clip(b"\1\0" * len("Your code is")) and step.sounds[-1] == Clip(b"\1\0" * 5)
    await stage.send(code="1234", template="{otp}.")
    stage.voice.failure = SpeechError("too long")
    with pytest.raises(ValidationFailed):
        await stage.send(template="Your code is {otp}")
    stage.voice.failure = SpeechUnavailable("espeak-ng cannot be run")
    with pytest.raises(ServiceUnavailable):
        await stage.send(template="Your code is {otp}")


async def test_the_oldest_registered_number_calls(stage: Stage) -> None:
    storage, account_sid = stage.storage, stage.account_sid
    with pytest.raises(NumberNotOwned):
        await stage.send(from_=None)
    await add_platform_carrier(storage)
    await storage.numbers.add(account_sid, "+918047491800")
    for number in (NUMBER, "+918047491898"):
        await add_registered_number(storage, account_sid, number)
    await stage.send(from_=None)
    dialled = stage.door.plans[0].dial
    assert dialled is not None and dialled.caller_id == NUMBER


STATUSES = [CallStatus.IN_PROGRESS, *(status for status in CallStatus if status.ended)]


def counted(sent: list[tuple[date, CallRecord, bool]], period: Period) -> OtpStats:
    """The statistics, counted one by one."""
    mine = [(record, used) for day, record, used in sent if period.first <= day <= period.last]
    records = [record for record, _ in mine]
    names = {status: status.name.lower() for status in STATUSES}
    return OtpStats(
        total=len(mine),
        answered=sum(record.answered_at is not None for record in records),
        verified=sum(used for _, used in mine),
        duration_sec=sum(record.duration_sec or 0 for record in records),
        cost_paise=sum(record.price_paise or 0 for record in records),
        **{name: sum(record.status is status for record in records) for status, name in names.items()},
    )


async def test_lists_and_statistics_agree_with_what_was_sent(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever became of the calls, and on whichever day, to the last microsecond of it."""
    random = Random(5)
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC)
    sent: list[tuple[date, CallRecord, bool]] = []
    for number in range(60):
        midnight = datetime(2026, 2, random.randint(26, 28), tzinfo=UTC) + timedelta(
            days=random.randint(0, 4)
        )
        moment = midnight + timedelta(microseconds=random.choice([0, 1, 43_200_000_000, 86_399_999_999]))
        at(monkeypatch, moment)
        otp_id = await stage.send(code=CODE, to=f"+9198765{number:05d}", reference=f"r{number % 3}")
        used = random.random() < 0.5 and (await stage.otp.verify(stage.account_sid, otp_id, CODE)).verified
        record = (await stage.otp.get(stage.account_sid, otp_id)).record
        record.status = random.choice(STATUSES)
        if record.status in (CallStatus.COMPLETED, CallStatus.IN_PROGRESS):
            record.answered_at = noon
        if record.status.ended:
            record.ended_at = noon
            record.duration_sec = random.randint(0, 90) if record.answered_at else 0
            stage.storage.calls.finish(record, charge_paise=60 if record.answered_at else 0)
        else:
            stage.storage.calls.update(record)
        sent.append((moment.date(), replace(record), used))
    days = [date(2026, 2, 26) + timedelta(days=n) for n in range(7)]
    for first in days:
        for last in (day for day in days if day >= first):
            period = Period(first, last)
            assert await stage.otp.stats(stage.account_sid, period) == counted(sent, period)
    assert (await stage.otp.stats(stage.account_sid, Period(date.min, date.max))).total == 60
    page = await stage.otp.list(stage.account_sid, OtpFilter(), 2, 25)
    assert (page.total, page.total_pages, len(page.items)) == (60, 3, 25)
    for status in STATUSES:
        found = await stage.otp.list(stage.account_sid, OtpFilter(status=status, reference="r1"), 1, 100)
        wanted = {
            record.call_sid
            for _, record, _ in sent
            if record.status is status and (record.details or {}).get("reference") == "r1"
        }
        assert {item.record.call_sid for item in found.items} == wanted and found.total == len(wanted)
    start = datetime(2026, 3, 1, tzinfo=UTC)
    lately = await stage.otp.list(stage.account_sid, OtpFilter(start=start), 1, 100)
    assert lately.total == sum(day >= start.date() for day, _, _ in sent)
    one = await stage.otp.list(stage.account_sid, OtpFilter(to="+919876500007", end=noon), 1, 100)
    assert one.total == sum(record.to == "+919876500007" for day, record, _ in sent if day <= noon.date())
