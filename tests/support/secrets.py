"""The key that the secrets of databases in tests are sealed with."""

from callcontrol.aio.secrets import SecretBox

SECRETS = SecretBox([bytes(range(32))])
