# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.wallet`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import wallet as fields_of
from trunkline_client.generated.results import wallet
from trunkline_client.operation import Operation
from trunkline_client.pages import AsyncPages, Pages
from trunkline_client.transport import AsyncResource, Resource

_GET = Operation("GET", "/v1/wallet")
_LIST_LEDGER = Operation(
    "GET", "/v1/wallet/ledger", queries=frozenset({"kind", "start_date", "end_date", "per_page"})
)


class WalletResource(Resource):
    """Operations of `client.wallet`."""

    def get(self) -> wallet.Wallet:
        """Get balance, reserved and available money."""
        return self._transport.item(_GET, (), {}, wallet.Wallet)

    def list_ledger(self, **fields: Unpack[fields_of.ListLedgerFields]) -> Pages[wallet.LedgerEntry]:
        """List changes of the balance, newest first."""
        return self._transport.pages(_LIST_LEDGER, (), fields, wallet.LedgerEntry)


class AsyncWalletResource(AsyncResource):
    """Operations of `client.wallet`."""

    async def get(self) -> wallet.Wallet:
        """Get balance, reserved and available money."""
        return await self._transport.item(_GET, (), {}, wallet.Wallet)

    def list_ledger(self, **fields: Unpack[fields_of.ListLedgerFields]) -> AsyncPages[wallet.LedgerEntry]:
        """List changes of the balance, newest first."""
        return self._transport.pages(_LIST_LEDGER, (), fields, wallet.LedgerEntry)
