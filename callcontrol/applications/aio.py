"""Applications of accounts; ``callcontrol.applications.application`` validates them."""

from collections.abc import Collection, Mapping
from typing import Any, Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.applications.application import changed_application, new_application
from callcontrol.applications.store import APPLICATIONS, attached
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.directory.aio.cached_rows import OwnedRows
from callcontrol.directory.aio.loader import DirectoryLoader
from callcontrol.egress.url_policy import Destinations
from callcontrol.errors import Conflict, ValidationFailed
from callcontrol.models import Application, Page
from callcontrol.numbers.aio.binding_checks import binding_errors, kept_agent_errors
from callcontrol.trunks import store as trunks

_MAX_APPLICATIONS: Final = 1000


class ApplicationService:
    """
    Applications.

    An application of another account is refused with ``Forbidden``, an unknown one with ``NotFound``.
    """

    def __init__(
        self,
        database: Database,
        writer: Writer,
        directory: DirectoryLoader,
        destinations: Destinations,
        allowed_countries: Collection[str],
    ) -> None:
        self._rows = OwnedRows(database, writer, directory, APPLICATIONS)
        self._directory = directory
        self._destinations = destinations
        self._allowed_countries = allowed_countries

    async def create(self, account_sid: str, values: Mapping[str, Any]) -> Application:
        """
        Create an application with the given fields.

        Raises:
            ValidationFailed: Names every wrong, missing or unknown field.
            Conflict: The account has the maximum number of applications.
        """
        application = new_application(new_id(), account_sid, values, utc_now())
        await self._check_reach(application)
        return await self._rows.create(
            account_sid,
            application,
            _MAX_APPLICATIONS,
            lambda connection: _check_agent(connection, account_sid, application),
        )

    async def list(self, account_sid: str, page: int = 1, per_page: int = 20) -> Page[Application]:
        """Applications of the account, oldest first."""
        return await self._rows.list(account_sid, page, per_page)

    async def get(self, account_sid: str, app_sid: str) -> Application:
        """
        One application of the account.

        Raises:
            NotFound: The application does not exist.
            Forbidden: It is another account's.
        """
        return await self._rows.get(account_sid, app_sid)

    async def update(self, account_sid: str, app_sid: str, values: Mapping[str, Any]) -> Application:
        """
        Change the given fields; the change applies from the next call on.

        Raises:
            NotFound: The application does not exist.
            Forbidden: It is another account's.
            ValidationFailed: Names every unknown field, and every field with a wrong value.
        """
        # Reachability is checked outside the transaction, which must not wait for I/O.
        now = utc_now()
        await self._check_reach(changed_application(await self.get(account_sid, app_sid), values, now))

        def change(connection: Connection, owned: Application) -> Application:
            changed = changed_application(owned, values, now)
            _check_agent(connection, account_sid, changed)
            return changed

        return await self._rows.update(account_sid, app_sid, change)

    async def delete(self, account_sid: str, app_sid: str) -> None:
        """
        Delete an application.

        Raises:
            NotFound: The application does not exist.
            Forbidden: It is another account's.
            Conflict: It has active calls, or numbers or carriers are attached to it.
        """
        await self._rows.settle()

        def check(connection: Connection) -> None:
            up = trunks.count_active_calls(connection, app_sid=app_sid)
            if up:
                raise Conflict(
                    "Calls on this application have not ended; wait until they have.", details={"calls": up}
                )
            found = attached(connection, app_sid)
            if found:
                raise Conflict(
                    "Numbers or carriers are attached to this application; give them another one first.",
                    details=found,
                )

        await self._rows.delete(account_sid, app_sid, check)

    async def _check_reach(self, application: Application) -> None:
        unreachable = await binding_errors(
            application.account_sid,
            application.binding,
            self._directory,
            self._destinations,
            self._allowed_countries,
        )
        if unreachable:
            raise ValidationFailed(unreachable)


def _check_agent(connection: Connection, account_sid: str, application: Application) -> None:
    """Reject an application whose agent cannot be kept; the agent is locked against deletion."""
    errors = kept_agent_errors(connection, account_sid, application.binding)
    if errors:
        raise ValidationFailed(errors)
