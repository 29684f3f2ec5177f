"""The keys of a process that seal secrets in the database, from its settings."""

from __future__ import annotations

from api.process.config import Settings
from callcontrol.bootstrap.aio.services import KEY_FILE
from callcontrol.secrets.aio import SecretBox, key_file

__all__ = ["secret_box"]


def secret_box(settings: Settings) -> SecretBox:
    """
    The keys of TRUNKLINE_SECRET_KEY, or else that of the file in the data directory.

    The file's key is a further one where both are there, so that an installation that began with the file is
    moved to a key of the operator's by setting the variable. Reads files.

    Raises:
        SecretsUnreadable: The file holds no key, or everybody can read it.
        OSError: The file cannot be read or made.
    """
    path = settings.data_dir / KEY_FILE
    keys = list(settings.secret_key)
    if not keys or path.exists():
        keys.append(key_file(path))
    return SecretBox(keys)
