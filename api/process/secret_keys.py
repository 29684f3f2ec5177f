"""Encryption keys for secrets in the database, from the settings."""

from __future__ import annotations

from api.process.config import Settings
from callcontrol.secrets.aio import KEY_FILE, SecretBox, key_file

__all__ = ["secret_box"]


def secret_box(settings: Settings) -> SecretBox:
    """
    Load the keys of TRUNKLINE_SECRET_KEY, or else that of the file in the data directory.

    Where both exist, the file's key is an additional one, so that setting the variable moves an installation
    from the file to the operator's key. Reads files.

    Raises:
        SecretsUnreadable: The file holds no key, or everybody can read it.
        OSError: The file cannot be read or created.
    """
    path = settings.data_dir / KEY_FILE
    keys = list(settings.secret_key)
    if not keys or path.exists():
        keys.append(key_file(path))
    return SecretBox(keys)
