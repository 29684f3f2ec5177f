"""The messaging service: /api/v1 and /api/webhook-endpoints."""
