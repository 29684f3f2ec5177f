"""Voice agents and voice OTP, in memory."""

from __future__ import annotations

from datetime import datetime

from callcontrol.errors import DomainError, NotFound
from callcontrol.models import Page
from callcontrol.otp.otp import OtpCall, OtpFilter, OtpState, OtpStats, Period, SendOtp, Verification
from callcontrol.otp.product import otp_details
from tests.support.api_facts import ACCOUNT, CALL_SID, MOMENT, OTP_ID
from tests.unit.api.fakes.calls import call


class FakeOtp:
    def __init__(self) -> None:
        self.sent: list[SendOtp] = []
        self.periods: list[Period] = []
        self.filters: list[OtpFilter] = []
        self.guesses: list[str] = []
        self.failure: DomainError | None = None

    def _call(self, otp_id: str = OTP_ID, verified_at: datetime | None = None) -> OtpCall:
        details = otp_details(otp_id, language="hi-IN", repeat=2, reference=None, expires_at=MOMENT)
        state = OtpState(otp_id, ACCOUNT, CALL_SID, MOMENT, attempts=0, verified_at=verified_at)
        return OtpCall(state, call(product="otp", details=details, to="+919876543210"))

    async def send(self, account_sid: str, request: SendOtp) -> OtpCall:
        self.sent.append(request)
        if self.failure is not None:
            raise self.failure
        return self._call()

    async def get(self, account_sid: str, otp_id: str) -> OtpCall:
        if otp_id != OTP_ID:
            raise NotFound("There is no such one-time password.")
        return self._call(verified_at=MOMENT)

    async def list(self, account_sid: str, query: OtpFilter, page: int, per_page: int) -> Page[OtpCall]:
        self.filters.append(query)
        return Page([self._call()], 1, page, per_page)

    async def stats(self, account_sid: str, period: Period) -> OtpStats:
        self.periods.append(period)
        return OtpStats(total=1, answered=1, completed=1, duration_sec=17, cost_paise=60)

    async def verify(self, account_sid: str, otp_id: str, guess: str) -> Verification:
        await self.get(account_sid, otp_id)
        self.guesses.append(guess)
        return Verification("wrong", 4)
