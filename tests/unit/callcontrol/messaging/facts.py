"""A moment that everything is from."""

from datetime import UTC, datetime

MOMENT = datetime(2026, 1, 31, 12, 0, tzinfo=UTC)
