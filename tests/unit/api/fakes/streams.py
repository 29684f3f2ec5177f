"""What accounts set for their streams, in memory."""

from __future__ import annotations

from dataclasses import replace

from callcontrol.agents.stream_settings import check_protocol, rotated
from callcontrol.models import Account
from tests.unit.api.fakes.facts import ACCOUNT, MOMENT


class FakeStreamSettings:
    def __init__(self) -> None:
        self.held = Account(ACCOUNT, "Acme", MOMENT, MOMENT, webhook_secret="whsec_x")

    async def of(self, account_sid: str) -> Account:
        return self.held

    async def set_protocol(self, account_sid: str, protocol: str | None) -> Account:
        check_protocol(protocol)
        self.held = replace(self.held, stream_protocol=protocol)
        return self.held

    async def rotate_secret(self, account_sid: str, overlap_s: int) -> tuple[Account, str]:
        self.held = rotated(self.held, "strsec_new", overlap_s, MOMENT)
        return self.held, "strsec_new"
