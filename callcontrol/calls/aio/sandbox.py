"""Calls of sandbox parties to numbers of accounts, by which inbound calls are tried without a carrier."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import replace
from typing import Final

from callcontrol.calls.aio.own_numbers import owner_of
from callcontrol.calls.aio.service import CallControl
from callcontrol.calls.sandbox import (
    PartyCall,
    PartyCallRequest,
    SandboxParties,
    is_test_number,
)
from callcontrol.directory.directory import Directory
from callcontrol.errors import NotFound, ServiceUnavailable, ValidationFailed
from callcontrol.models import TEST_PREFIX
from callcontrol.routing.targets import normalise_number
from media.errors import PortsExhausted

_FIRST_RESPONSE_S: Final = 1.0
"""Time in which a number usually rings, or refuses the call."""

_RETRY_AFTER_S: Final = 5.0


class SandboxCalls:
    """
    Places calls of sandbox parties, which reach this server by SIP as any inbound call does.

    ``parties`` is the sandbox carrier, None where it does not run; ``refresh`` updates the directory.
    """

    def __init__(
        self,
        calls: CallControl,
        routes: Directory,
        refresh: Callable[[], Awaitable[None]],
        parties: SandboxParties | None,
    ) -> None:
        self._calls = calls
        self._routes = routes
        self._refresh = refresh
        self._parties = parties

    async def place(self, account_sid: str, request: PartyCallRequest) -> PartyCall:
        """
        Place a call of a sandbox party to a number of the account, and wait a moment for it to begin.

        Raises:
            ValidationFailed: ``from_`` is no number of the sandbox, or ``to`` is no number.
            NotFound: No sandbox carrier reaches this server.
            NumberNotOwned: ``to`` is no active number of the account.
            RateLimited: The account's calls begin too fast.
            ServiceUnavailable: There is no capacity.
        """
        asked = replace(
            request,
            to=normalise_number(request.to),
            from_=normalise_number(request.from_, field="from"),
        )
        if not is_test_number(asked.from_):
            raise ValidationFailed.of("from", f"must be a sandbox number: {TEST_PREFIX} and three digits")
        if self._parties is None or not self._parties.reach_server:
            raise NotFound(
                "No sandbox carrier reaches this server: it needs TRUNKLINE_SANDBOX_CARRIER=1 and a udp:"
                " address in TRUNKLINE_SIP_LISTEN."
            )
        account = await owner_of(self._routes, self._refresh, account_sid, asked.to)
        self._calls.check_capacity(account)
        try:
            placed = self._parties.place(asked)
        except PortsExhausted:
            raise ServiceUnavailable(
                "All RTP ports of the sandbox carrier are in use; try again shortly.",
                retry_after_s=_RETRY_AFTER_S,
            ) from None
        with suppress(TimeoutError):
            await asyncio.wait_for(placed.progressed(), _FIRST_RESPONSE_S)
        call_sid = self._calls.call_of(placed.call_id)
        if call_sid is None and placed.over:
            raise ServiceUnavailable(
                "The server did not accept the call; try again shortly.", retry_after_s=_RETRY_AFTER_S
            )
        return PartyCall(placed.call_id, call_sid, asked.from_, asked.to)
