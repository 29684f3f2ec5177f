"""The key that the secrets of databases in tests are sealed with."""

from callcontrol.secrets.aio import SecretBox

SECRETS = SecretBox([bytes(range(32))])
