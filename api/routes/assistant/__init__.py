"""Voice assistant: /api/v1 calls, keys and webhooks."""
