"""Applications of accounts; ``callcontrol.applications.application`` validates them."""

from collections.abc import Collection, Mapping
from functools import partial
from typing import Any, Final

from sqlalchemy.engine import Connection

from callcontrol.aio.tokens import new_id, utc_now
from callcontrol.applications import store as applications
from callcontrol.applications.application import changed_application, new_application
from callcontrol.database import revisions
from callcontrol.database.aio.database import Database
from callcontrol.database.aio.writer import Writer
from callcontrol.directory.aio.cached_rows import CachedRows
from callcontrol.directory.aio.loader import DirectoryLoader
from callcontrol.egress.url_policy import Destinations
from callcontrol.errors import Conflict, DomainError, Forbidden, NotFound, ValidationFailed
from callcontrol.models import Application, Page
from callcontrol.numbers.aio.binding_checks import binding_errors, kept_agent_errors
from callcontrol.trunks import store as trunks

__all__ = ["ApplicationService"]

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
        self._rows = CachedRows(database, writer, directory)
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

        def write(connection: Connection) -> DomainError | None:
            if applications.page(connection, account_sid, offset=0, limit=1)[1] >= _MAX_APPLICATIONS:
                return Conflict(f"The account has {_MAX_APPLICATIONS} applications; delete one first.")
            errors = kept_agent_errors(connection, account_sid, application.binding)
            if errors:
                return ValidationFailed(errors)
            applications.insert(connection, application, revisions.next_revision(connection))
            return None

        await self._rows.change(write)
        return application

    async def list(self, account_sid: str, page: int = 1, per_page: int = 20) -> Page[Application]:
        """Applications of the account, oldest first."""
        return await self._rows.page(partial(applications.page, account_sid=account_sid), page, per_page)

    async def get(self, account_sid: str, app_sid: str) -> Application:
        """
        One application of the account.

        Raises:
            NotFound: The application does not exist.
            Forbidden: It is another account's.
        """
        return await self._rows.look_up(lambda connection: _own_application(connection, account_sid, app_sid))

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

        def write(connection: Connection) -> Application | DomainError:
            owned = _own_application(connection, account_sid, app_sid, lock=True)
            if isinstance(owned, DomainError):
                return owned
            try:
                changed = changed_application(owned, values, now)
            except ValidationFailed as refusal:
                return refusal
            errors = kept_agent_errors(connection, account_sid, changed.binding)
            if errors:
                return ValidationFailed(errors)
            applications.update(connection, changed, revisions.next_revision(connection))
            return changed

        return await self._rows.change(write)

    async def delete(self, account_sid: str, app_sid: str) -> None:
        """
        Delete an application.

        Raises:
            NotFound: The application does not exist.
            Forbidden: It is another account's.
            Conflict: It has active calls, or numbers or carriers are attached to it.
        """
        now = utc_now()
        await self._rows.settle()

        def write(connection: Connection) -> DomainError | None:
            owned = _own_application(connection, account_sid, app_sid, lock=True)
            if isinstance(owned, DomainError):
                return owned
            up = trunks.count_active_calls(connection, app_sid=app_sid)
            if up:
                return Conflict(
                    "Calls are up on this application; wait until they end.", details={"calls": up}
                )
            attached = applications.attached(connection, app_sid)
            if attached:
                return Conflict(
                    "Numbers or carriers are attached to this application; give them another one first.",
                    details=attached,
                )
            applications.delete(connection, app_sid, now, revisions.next_revision(connection))
            return None

        await self._rows.change(write)

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


def _own_application(
    connection: Connection, account_sid: str, app_sid: str, *, lock: bool = False
) -> Application | DomainError:
    """An application of the account, or the reason that it is not available."""
    found = applications.get(connection, app_sid, lock=lock)
    if found is None:
        return NotFound("There is no such application.")
    if found.account_sid != account_sid:
        return Forbidden("The application belongs to another account.")
    return found
