# Written by scripts/client from the OpenAPI document of the server; do not edit.
"""Operations of `client.applications`."""

from __future__ import annotations

from typing import Unpack

from trunkline_client.generated.fields import applications as fields_of
from trunkline_client.generated.results import applications
from trunkline_client.operation import Operation
from trunkline_client.pages import AsyncPages, Pages
from trunkline_client.transport import AsyncResource, Resource

_CREATE = Operation("POST", "/v1/trunk-portal/applications")
_LIST = Operation("GET", "/v1/trunk-portal/applications", queries=frozenset({"per_page"}))
_GET = Operation("GET", "/v1/trunk-portal/applications/{app_sid}")
_UPDATE = Operation("PATCH", "/v1/trunk-portal/applications/{app_sid}")
_DELETE = Operation("DELETE", "/v1/trunk-portal/applications/{app_sid}")


class ApplicationsResource(Resource):
    """Operations of `client.applications`."""

    def create(self, **fields: Unpack[fields_of.CreateApplicationFields]) -> applications.Application:
        """Create an application."""
        return self._transport.item(_CREATE, (), fields, applications.Application)

    def list(self, **fields: Unpack[fields_of.ListApplicationsFields]) -> Pages[applications.Application]:
        """List applications."""
        return self._transport.pages(_LIST, (), fields, applications.Application)

    def get(self, app_sid: str, /) -> applications.Application:
        """Get an application."""
        return self._transport.item(_GET, (app_sid,), {}, applications.Application)

    def update(
        self, app_sid: str, /, **fields: Unpack[fields_of.UpdateApplicationFields]
    ) -> applications.Application:
        """Update an application."""
        return self._transport.item(_UPDATE, (app_sid,), fields, applications.Application)

    def delete(self, app_sid: str, /) -> None:
        """Delete an application."""
        return self._transport.nothing(_DELETE, (app_sid,), {})


class AsyncApplicationsResource(AsyncResource):
    """Operations of `client.applications`."""

    async def create(self, **fields: Unpack[fields_of.CreateApplicationFields]) -> applications.Application:
        """Create an application."""
        return await self._transport.item(_CREATE, (), fields, applications.Application)

    def list(
        self, **fields: Unpack[fields_of.ListApplicationsFields]
    ) -> AsyncPages[applications.Application]:
        """List applications."""
        return self._transport.pages(_LIST, (), fields, applications.Application)

    async def get(self, app_sid: str, /) -> applications.Application:
        """Get an application."""
        return await self._transport.item(_GET, (app_sid,), {}, applications.Application)

    async def update(
        self, app_sid: str, /, **fields: Unpack[fields_of.UpdateApplicationFields]
    ) -> applications.Application:
        """Update an application."""
        return await self._transport.item(_UPDATE, (app_sid,), fields, applications.Application)

    async def delete(self, app_sid: str, /) -> None:
        """Delete an application."""
        return await self._transport.nothing(_DELETE, (app_sid,), {})
