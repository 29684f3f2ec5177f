"""
Encryption of secret columns.

A repository encrypts values for the ``SEALED`` columns and decrypts values read from them; the domain only
sees clear text. The key comes with the connection, an argument of every repository function. A value is
bound to its column and row, and cannot be decrypted anywhere else.
"""

from collections.abc import Mapping
from typing import Any, Final, Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from callcontrol.database.statements import pack, unpack
from callcontrol.database.tables.accounts import accounts
from callcontrol.database.tables.agents import agents
from callcontrol.database.tables.applications import applications
from callcontrol.database.tables.secrets import model_keys
from callcontrol.database.tables.subscriptions import subscriptions
from callcontrol.database.tables.tools import tools
from callcontrol.database.tables.trunks import carriers, phone_numbers
from callcontrol.models import Binding

OPTION: Final = "trunkline_secrets"
"""Execution option of a connection that holds its cipher."""

_STREAM_AUTH: Final = "stream_auth"
_MODEL: Final = "model"
_API_KEY: Final = "api_key"
SECRETS_OF_BINDINGS: Final = (_STREAM_AUTH, _API_KEY)
"""Names of the secret fields, as they are in a stored binding."""


class Cipher(Protocol):
    """Encryption with the secret key, which the database is opened with; see ``callcontrol.secrets.aio``."""

    def seal(self, purpose: str, text: str) -> str:
        """Encrypt a text for a purpose."""

    def open(self, purpose: str, sealed: str) -> str:
        """Decrypt a text that was sealed for the same purpose."""

    def is_sealed(self, text: str) -> bool:
        """Return True if a stored text is sealed."""

    def is_current(self, text: str) -> bool:
        """Return True if a stored text is sealed with the current key."""

    def digest(self, purpose: str, data: bytes) -> bytes:
        """Return a keyed digest of the data."""

    def matches(self, purpose: str, data: bytes, digest: bytes) -> bool:
        """Return True if ``digest`` is that of the data, under any of the keys."""


SEALED: Final[tuple[sa.Column[Any], ...]] = (
    accounts.c.webhook_secret,
    accounts.c.former_webhook_secret,
    accounts.c.stream_secret,
    accounts.c.former_stream_secret,
    carriers.c.register_password,
    carriers.c.inbound_auth_password,
    model_keys.c.secret,
    subscriptions.c.secret,
    tools.c.headers,
    tools.c.secret,
)
"""Columns whose whole text is a secret."""

BINDINGS: Final[tuple[sa.Column[Any], ...]] = (
    phone_numbers.c.binding,
    applications.c.binding,
    agents.c.binding,
)
"""Columns with a binding, whose ``stream_auth`` and the ``api_key`` of whose ``model`` are secret."""


def cipher_of(connection: Connection) -> Cipher:
    """Return the cipher that the database was opened with."""
    cipher: Cipher | None = connection.get_execution_options().get(OPTION)
    if cipher is None:
        raise RuntimeError("this database was opened without a key for its secrets")
    return cipher


def seal(connection: Connection, column: sa.Column[Any], row: str, text: str | None) -> str | None:
    """Encrypt a secret for ``column`` of the row with the key ``row``."""
    return None if text is None else cipher_of(connection).seal(_purpose(column, row), text)


def unseal(connection: Connection, column: sa.Column[Any], row: str, stored: str | None) -> str | None:
    """
    Decrypt the secret stored in ``column`` of the row with the key ``row``.

    Text that is not sealed was written by an earlier version, and is returned unchanged until the next start
    seals it.

    Raises:
        SecretsUnreadable: It was sealed with a key that this process does not have, or was changed since.
    """
    if stored is None:
        return None
    cipher = cipher_of(connection)
    return cipher.open(_purpose(column, row), stored) if cipher.is_sealed(stored) else stored


def seal_binding(
    connection: Connection, column: sa.Column[Any], row: str, binding: Binding | None
) -> str | None:
    """Serialize a binding for ``column`` of the row with the key ``row``, encrypting its secret."""
    if binding is None:
        return None
    values = binding.to_json()
    if binding.stream_auth is not None:
        values[_STREAM_AUTH] = seal(connection, column, row, pack(dict(binding.stream_auth)))
    model = values.get(_MODEL) or {}
    if model.get(_API_KEY) is not None:
        values[_MODEL] = {**model, _API_KEY: seal(connection, column, row, str(model[_API_KEY]))}
    return pack(values)


def unseal_binding(
    connection: Connection, column: sa.Column[Any], row: str, stored: str | None
) -> Binding | None:
    """
    Parse the binding stored in ``column`` of the row with the key ``row``, decrypting its secret.

    Raises:
        SecretsUnreadable: As ``unseal``.
    """
    if not stored:
        return None
    values: dict[str, Any] = unpack(stored)
    auth = values.get(_STREAM_AUTH)
    if isinstance(auth, str):
        values[_STREAM_AUTH] = unpack(unseal(connection, column, row, auth) or "{}")
    model = values.get(_MODEL) or {}
    if model.get(_API_KEY) is not None:
        values[_MODEL] = {**model, _API_KEY: unseal(connection, column, row, model[_API_KEY])}
    return Binding.from_json(values)


def reseal(connection: Connection, column: sa.Column[Any], row: str, stored: str) -> str:
    """Encrypt a stored secret with the current key; it may have been sealed before or not."""
    if column in _BINDING_SET:
        sealed = seal_binding(connection, column, row, unseal_binding(connection, column, row, stored))
    else:
        sealed = seal(connection, column, row, unseal(connection, column, row, stored))
    return sealed or stored


def is_current(connection: Connection, column: sa.Column[Any], stored: str) -> bool:
    """Return True if a stored value is fully sealed with the current key."""
    if column not in _BINDING_SET:
        return cipher_of(connection).is_current(stored)
    values: Mapping[str, Any] = unpack(stored)
    secrets = (values.get(_STREAM_AUTH), (values.get(_MODEL) or {}).get(_API_KEY))
    cipher = cipher_of(connection)
    return all(item is None or (isinstance(item, str) and cipher.is_current(item)) for item in secrets)


_BINDING_SET: Final = frozenset(BINDINGS)


def _purpose(column: sa.Column[Any], row: str) -> str:
    return f"{column.table.name}.{column.name}/{row}"
