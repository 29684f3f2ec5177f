"""Voice OTP: one-time passwords that are generated, spoken in a call, counted and verified."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_digits, new_id, utc_now
from callcontrol.calls.aio.service import CallControl
from callcontrol.calls.plan import Announce, Plan
from callcontrol.calls.requests import CallMetadata
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.egress.url_policy import WEB_SCHEMES, Destinations, url_errors
from callcontrol.errors import (
    DomainError,
    RequestErrors,
    ServiceUnavailable,
    ValidationFailed,
)
from callcontrol.models import Page
from callcontrol.models.parties import DEFAULT_RING_TIMEOUT_S, Party, PhoneTarget, Target
from callcontrol.numbers.binding import no_registered_number
from callcontrol.numbers.store.numbers import default_caller_id
from callcontrol.otp import store as otps
from callcontrol.otp.otp import (
    OtpCall,
    OtpFilter,
    OtpState,
    OtpStats,
    Period,
    SendOtp,
    Verification,
    callee_errors,
    refusal_of,
    split_template,
    time_limit_s,
    wording_errors,
)
from callcontrol.otp.product import PRODUCT, otp_details
from callcontrol.routing.targets import normalise_number, parse_target
from callcontrol.secrets.aio import SecretBox
from media.audio import AudioError, Clip, Pause, Sound, Speaker, SpeechError, SpeechUnavailable
from media.audio.speech import Synthesizer

INTRO: Final = "code-is"
"""The prompt before the digits if there is no template."""

_PURPOSE: Final = "otp"
_BREATH: Final = Pause(250)
# Longer passwords are easier to write down in two halves.
_GROUPS: Final = {6: 3, 8: 4}


@dataclass(frozen=True, slots=True)
class _ValidatedRequest:
    """The validated parts of a request."""

    target: Target
    from_: str | None
    sounds: Sequence[Sound]


class _Announcement:
    """Builds the announcement: the digits by ``speaker``, templates by ``synthesizer``."""

    def __init__(self, speaker: Speaker, synthesizer: Synthesizer) -> None:
        self._speaker = speaker
        self._synthesizer = synthesizer

    async def sounds(self, request: SendOtp, code: str) -> list[Sound]:
        """
        The sounds of one repetition.

        Raises:
            ValidationFailed: The language or the template cannot be spoken.
            ServiceUnavailable: The announcement cannot be spoken at present.
        """
        language = request.language
        errors = wording_errors(language, request.template, self._speaker.languages)
        if errors:
            raise ValidationFailed(errors)
        try:
            digits = self._speaker.digits(language, code, _GROUPS.get(len(code), 0))
            if request.template is None:
                return [self._speaker.prompt(language, INTRO), _BREATH, *digits]
            before, behind = split_template(request.template)
            before_it: list[Sound] = [*await self._spoken(before, language), _BREATH]
            behind_it = await self._spoken(behind, language)
        except AudioError as failure:
            raise ServiceUnavailable(f"The password cannot be spoken: {failure}") from None
        return [*before_it, *digits, *([_BREATH] if behind_it else []), *behind_it]

    async def _spoken(self, text: str, language: str) -> list[Clip]:
        if not any(character.isalnum() for character in text):
            return []  # a full stop behind the digits
        try:
            return [await self._synthesizer.speak(text, language)]
        except SpeechUnavailable:
            raise
        except SpeechError as refusal:
            raise ValidationFailed.of("template", str(refusal)) from None


class VoiceOtp:
    """
    Speaks one-time passwords.

    Templates are spoken by ``synthesizer``, all else by ``speaker``.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        calls: CallControl,
        destinations: Destinations,
        speaker: Speaker,
        synthesizer: Synthesizer,
        secrets: SecretBox,
        allowed_countries: Collection[str],
    ) -> None:
        self._database = database
        self._writer = writer
        self._calls = calls
        self._destinations = destinations
        self._wording = _Announcement(speaker, synthesizer)
        self._secrets = secrets
        self._allowed_countries = allowed_countries

    async def send(self, account_sid: str, request: SendOtp) -> OtpCall:
        """
        Call a number and speak a password.

        Raises:
            ValidationFailed: Names every wrong value.
            RateLimited: The number was called too often recently; or as in ``CallControl.create_call``.
            DomainError: Any error of ``CallControl.create_call``; no call was recorded.
        """
        code = request.code or new_digits(request.length)
        asked = await self._check(request, code)
        from_ = asked.from_ or await self._default_from(account_sid)
        now = utc_now()
        otp = otps.NewOtp(
            otp_id=new_id(),
            account_sid=account_sid,
            to=str(asked.target),
            created_at=now,
            expires_at=now + timedelta(seconds=request.ttl_s),
            reference=request.reference,
        )
        announce = Announce(tuple(asked.sounds), request.repeat)
        ring_s = min(DEFAULT_RING_TIMEOUT_S, float(request.ttl_s))
        plan = Plan(
            (announce,),
            dial=Party(asked.target, from_, ring_timeout_s=ring_s),
            time_limit_s=time_limit_s(announce.sounds, request.repeat + announce.max_again),
        )
        metadata = CallMetadata(
            product=PRODUCT,
            details=otp_details(
                otp.otp_id,
                language=request.language,
                repeat=request.repeat,
                reference=request.reference,
                expires_at=otp.expires_at,
            ),
            status_webhook_url=request.status_webhook_url,
        )
        attachment = _Stored(otp, self._secrets.digest(_PURPOSE, _bound(otp.otp_id, code)).hex())
        record = await self._calls.place(account_sid, plan, metadata, attachment=attachment)
        state = OtpState(otp.otp_id, account_sid, record.call_sid, otp.expires_at, attempts=0)
        return OtpCall(state, record)

    async def get(self, account_sid: str, otp_id: str) -> OtpCall:
        """
        One password of the account, with its call in its newest state.

        Raises:
            NotFound: The password does not exist.
            Forbidden: It is another account's.
        """
        state = await self._database.look_up(lambda connection: otps.get(connection, account_sid, otp_id))
        return OtpCall(state, await self._calls.get_call(account_sid, state.call_sid))

    async def list(self, account_sid: str, query: OtpFilter, page: int, per_page: int) -> Page[OtpCall]:
        """Passwords of the account, newest first."""
        await self._writer.flush_pending()
        return await self._database.page(
            partial(otps.page, account_sid=account_sid, query=query), page, per_page
        )

    async def stats(self, account_sid: str, period: Period) -> OtpStats:
        """Statistics of the passwords sent in a period of days."""
        await self._writer.flush_pending()
        start = datetime.combine(period.first, datetime.min.time(), UTC)
        # The last microsecond of the day: the last day of the calendar has no next day.
        end = datetime.combine(period.last, datetime.max.time(), UTC)
        return await self._database.read(lambda connection: otps.stats(connection, account_sid, start, end))

    async def verify(self, account_sid: str, otp_id: str, guess: str) -> Verification:
        """
        Verify a guess; each comparison counts as an attempt, right or wrong.

        Raises:
            NotFound: The password does not exist.
            Forbidden: It is another account's.
        """
        now = utc_now()

        def matches(code_hash: bytes) -> bool:
            return self._secrets.matches(_PURPOSE, _bound(otp_id, guess), code_hash)

        return await self._writer.commit(
            lambda connection: otps.verify(connection, account_sid, otp_id, matches, now)
        )

    async def _default_from(self, account_sid: str) -> str:
        found = await self._database.look_up(partial(default_caller_id, account_sid=account_sid))
        if found is None:
            raise no_registered_number("to call from")
        return found

    async def _check(self, request: SendOtp, code: str) -> _ValidatedRequest:
        values = RequestErrors()
        target = values.read(lambda: _phone(request.to, self._allowed_countries))
        from_ = request.from_
        if from_ is not None:
            from_ = values.read(lambda: normalise_number(request.from_ or "", field="from"))
        url = request.status_webhook_url
        if url is not None:
            check_url = self._destinations.check_url
            values.errors += url_errors(check_url, "status_webhook_url", url, schemes=WEB_SCHEMES)
        sounds: Sequence[Sound] = ()
        try:
            sounds = await self._wording.sounds(request, code)
        except ValidationFailed as refusal:
            values.errors += refusal.errors
        values.raise_found()
        assert target is not None, "its error was raised"
        return _ValidatedRequest(target, from_, sounds)


class _Stored:
    """The row of a password, written in the transaction that inserts its call."""

    def __init__(self, otp: otps.NewOtp, code_hash: str) -> None:
        self._otp = otp
        self._code_hash = code_hash

    def refusal(self, connection: Connection) -> DomainError | None:
        """The reason that the call must not be placed; None if it may."""
        otp = self._otp
        limiting = otps.limiting_call(connection, otp.account_sid, otp.to, otp.created_at)
        return refusal_of(limiting, otp.created_at)

    def insert(self, connection: Connection, call_sid: str) -> None:
        """Write the row."""
        otps.insert(connection, self._otp, self._code_hash, call_sid)

    def take_back(self, connection: Connection) -> None:
        """Delete the row."""
        otps.delete(connection, self._otp.otp_id)


def _bound(otp_id: str, code: str) -> bytes:
    """The data to be digested: the id is included so that equal passwords have different digests."""
    return f"{otp_id}:{code}".encode()


def _phone(text: str, allowed_countries: Collection[str]) -> PhoneTarget:
    target = parse_target(text, allowed_countries)
    if not isinstance(target, PhoneTarget):
        raise ValidationFailed.of("to", "must be a telephone number")
    errors = callee_errors(target.number)
    if errors:
        raise ValidationFailed(errors)
    return target
