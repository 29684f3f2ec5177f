# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.sandbox`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import sandbox as fields_of
from trunkline_client.generated.results import sandbox
from trunkline_client.operation import Operation
from trunkline_client.transport import AsyncResource, Resource

_CALL = Operation("POST", "/v1/sandbox/inbound")


class SandboxResource(Resource):
    """Operations of `client.sandbox`."""

    def call(self, **fields: Unpack[fields_of.CallFromSandboxFields]) -> sandbox.PartyCall:
        """Place a call of a sandbox party to one of the account's numbers."""
        return self._transport.item(_CALL, (), fields, sandbox.PartyCall)


class AsyncSandboxResource(AsyncResource):
    """Operations of `client.sandbox`."""

    async def call(self, **fields: Unpack[fields_of.CallFromSandboxFields]) -> sandbox.PartyCall:
        """Place a call of a sandbox party to one of the account's numbers."""
        return await self._transport.item(_CALL, (), fields, sandbox.PartyCall)
